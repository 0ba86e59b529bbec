#include "records/record_internal.h"

#include <string.h>

/* ---- reading ---------------------------------------------------------- */

int hd_record_keep(struct hd_arena *arena, enum hd_table_id table, const struct hd_cell *cells,
                   struct hd_cell *out)
{
    int err = 0;

    for (unsigned i = 0; !err && i < hd_tables[table].column_count; i++) {
        out[i] = cells[i];
        if (cells[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(arena, cells[i].bytes, &out[i].bytes);
    }
    return err;
}

struct first {
    enum hd_table_id table;
    struct hd_arena *arena;
    struct hd_cell *cells;
    bool is_found;
};

static int on_first(void *arg, size_t which, const struct hd_cell *cells)
{
    struct first *first = arg;
    int err = hd_record_keep(first->arena, first->table, cells, first->cells);

    (void)which;
    first->is_found = true;
    return err ? err : 1;
}

int hd_record_first(struct heddle *store, struct hd_query query, struct hd_arena *arena,
                    struct hd_cell cells[HD_MAX_COLUMNS], struct heddle_error *fault)
{
    struct first first = {.table = query.table, .arena = arena, .cells = cells};
    int err;

    query.limit = 1;
    err = hd_rows_read(store, &query, 1, on_first, &first, fault);
    return !err && !first.is_found ? HD_ENOTFOUND : err;
}

int hd_record_get(struct heddle *store, enum hd_table_id table, const struct hd_cell *key,
                  unsigned key_count, struct hd_arena *arena, struct hd_cell cells[HD_MAX_COLUMNS],
                  struct heddle_error *fault)
{
    struct hd_query query = {.table = table,
                             .index = HD_PRIMARY,
                             .prefix = key,
                             .prefix_count = key_count,
                             .columns = HD_ALL_COLUMNS};

    return hd_record_first(store, query, arena, cells, fault);
}

int hd_record_find(struct heddle *store, const struct hd_record_type *type, struct hd_query query,
                   struct hd_arena *arena, void *out, struct heddle_error *fault)
{
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err;

    query.table = type->table;
    query.columns = HD_ALL_COLUMNS;
    err = hd_record_first(store, query, arena, cells, fault);
    return err ? err : hd_record_decode(type, cells, arena, out, fault);
}

int hd_record_read(struct heddle *store, const struct hd_record_type *type,
                   const struct hd_cell *key, unsigned key_count, struct hd_arena *arena, void *out,
                   struct heddle_error *fault)
{
    const struct hd_query query = {.index = HD_PRIMARY, .prefix = key, .prefix_count = key_count};

    return hd_record_find(store, type, query, arena, out, fault);
}

struct records_scan {
    const struct hd_record_type *type;
    const void *fn;
    void *arg;
    struct heddle_error *fault;
    struct hd_arena arena; /* of one record */
};

static int on_scanned_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct records_scan *scan = arg;
    void *record;
    int err;

    (void)which;
    hd_arena_reset(&scan->arena);
    record = hd_arena_alloc(&scan->arena, scan->type->size);
    if (!record)
        return HD_ENOMEM;
    err = hd_record_decode(scan->type, cells, &scan->arena, record, scan->fault);
    return err ? err : scan->type->call(scan->fn, scan->arg, record);
}

int hd_records_scan(struct heddle *store, const struct hd_record_type *type, struct hd_query query,
                    const void *fn, void *arg, struct heddle_error *fault)
{
    struct records_scan scan = {.type = type, .fn = fn, .arg = arg, .fault = fault};
    int err;

    query.table = type->table;
    query.columns = HD_ALL_COLUMNS;
    hd_arena_init(&scan.arena, SIZE_MAX / 2);
    err = hd_rows_scan(store, query, on_scanned_row, &scan, fault);
    hd_arena_fini(&scan.arena);
    return err;
}

struct records_list {
    const struct hd_record_type *type;
    struct hd_arena *arena;
    char *records;
    size_t count, cap, most;
    struct heddle_error *fault;
};

static int grow_records(struct records_list *list)
{
    size_t cap = list->cap ? 2 * list->cap : 8;
    char *grown = hd_arena_calloc(list->arena, cap, list->type->size);

    if (!grown)
        return HD_ENOMEM;
    if (list->count > 0)
        memcpy(grown, list->records, list->count * list->type->size);
    list->records = grown;
    list->cap = cap;
    return 0;
}

static int on_listed_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct records_list *list = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = list->count == list->cap ? grow_records(list) : 0;

    (void)which;
    if (!err)
        err = hd_record_keep(list->arena, list->type->table, cells, kept);
    if (!err)
        err = hd_record_decode(list->type, kept, list->arena,
                               list->records + list->count * list->type->size, list->fault);
    if (err)
        return err;
    return ++list->count == list->most;
}

int hd_records_list(struct heddle *store, const struct hd_record_type *type, struct hd_query query,
                    size_t most, struct hd_arena *arena, void **out, size_t *count,
                    struct heddle_error *fault)
{
    struct records_list list = {.type = type, .arena = arena, .most = most, .fault = fault};
    int err;

    query.table = type->table;
    query.columns = HD_ALL_COLUMNS;
    err = hd_rows_scan(store, query, on_listed_row, &list, fault);
    if (err)
        return err;
    *out = list.records;
    *count = list.count;
    return 0;
}

int hd_record_damaged(enum hd_table_id table, struct hd_slice id, struct heddle_error *fault)
{
    return hd_error_set(fault, HD_ECORRUPT, "the row of %.*s in table %s is damaged",
                        (int)(id.len < 80 ? id.len : 80), id.ptr, hd_tables[table].name);
}

/* ---- writing ---------------------------------------------------------- */

static int64_t *rev_of(const struct hd_record_type *type, void *record)
{
    return (int64_t *)((char *)record + type->columns[type->rev].offset);
}

int hd_record_write(struct hd_batch_builder *batch, const struct hd_record_type *type,
                    const void *record, enum hd_op_kind kind)
{
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_encode(type, record, &batch->arena, cells);

    return err ? err : hd_batch_row(batch, kind, type->table, cells);
}

int hd_record_add(struct hd_batch_builder *batch, const struct hd_record_type *type, void *record)
{
    *rev_of(type, record) = 1;
    return hd_record_write(batch, type, record, HD_OP_ADD);
}

int hd_record_put(struct hd_batch_builder *batch, const struct hd_record_type *type, void *record)
{
    int64_t *rev = rev_of(type, record);
    struct hd_cell key[HD_MAX_COLUMNS];
    int err;

    hd_record_key(type, record, key);
    err = hd_batch_expect(batch, type->table, key, type->rev, *rev);
    if (err)
        return err;
    ++*rev;
    return hd_record_write(batch, type, record, HD_OP_PUT);
}

int hd_record_delete(struct hd_batch_builder *batch, const struct hd_record_type *type,
                     const void *record)
{
    struct hd_cell key[HD_MAX_COLUMNS];

    hd_record_key(type, record, key);
    return hd_batch_delete(batch, type->table, key, hd_tables[type->table].key_count);
}
