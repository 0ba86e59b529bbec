/* Counts the rows of a thread, and reads everything to verify it. */
#include "store/codec/pack.h"
#include "store/fetch.h"
#include "store/retry.h"
#include "store/scan.h"

/* ---- usage ---- */

struct row_counter {
    struct heddle_usage *usage;
    enum hd_table_id table;
    int64_t *rows;
};

static int on_counted(void *arg, size_t which, const struct hd_cell *cells)
{
    struct row_counter *counter = arg;

    (void)which;
    (*counter->rows)++;
    for (unsigned i = 0; i < hd_tables[counter->table].column_count; i++)
        counter->usage->bytes += cells[i].kind == HD_CELL_BYTES ? (int64_t)cells[i].bytes.len : 8;
    return 0;
}

int hd_store_thread_usage(struct hd_store *store, struct hd_slice thread, struct heddle_usage *out,
                          struct heddle_error *fault)
{
    struct hd_cell key = hd_cell_bytes(thread);
    struct row_counter counters[] = {{out, HD_CHECKPOINTS, &out->checkpoints},
                                     {out, HD_WRITES, &out->writes},
                                     {out, HD_CHUNKS, &out->chunks}};
    int err = 0;

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; !err && i < HD_COUNT(counters); i++) {
        struct hd_query query = {.table = counters[i].table,
                                 .index = HD_PRIMARY,
                                 .prefix = &key,
                                 .prefix_count = 1,
                                 .columns = HD_ALL_COLUMNS};

        err = hd_scan(store->backend, query, on_counted, &counters[i], fault);
    }
    return err;
}

/* ---- check ---- */

struct checker {
    struct hd_store *store;
    struct heddle_error *fault;
    enum hd_table_id table;
    struct hd_arena arena; /* of one row */
    struct hd_reading reading;
};

static int damaged(struct checker *c, const char *what, struct hd_slice thread, struct hd_slice id)
{
    return hd_error_set(c->fault, HD_ECORRUPT,
                        "%s of checkpoint '%.*s' in thread '%.*s' is damaged", what,
                        (int)(id.len < 60 ? id.len : 60), id.ptr,
                        (int)(thread.len < 100 ? thread.len : 100), thread.ptr);
}

static int verify_value(struct checker *c, struct hd_slice thread, struct hd_slice channel,
                        struct hd_slice ref)
{
    struct hd_fetch fetch;
    struct heddle_bytes value;
    int err;

    hd_fetch_init(&fetch, &c->arena);
    hd_reading_reset(&c->reading);
    err = hd_fetch_add(&fetch, &c->reading, thread, channel, ref, &value);
    if (!err)
        err = hd_reading_run(&c->reading, c->store->backend, c->fault);
    return err ? err : hd_fetch_finish(&fetch);
}

static int check_checkpoint(struct checker *c, const struct hd_cell *cells)
{
    struct hd_slice encoded;
    struct hd_checkpoint_body body = {0};
    int err = hd_unpack_copy(&c->arena, cells[HD_CHECKPOINTS_BODY].bytes, &encoded);

    if (!err)
        err = hd_checkpoint_body_parse(encoded, &c->arena, &body);
    for (size_t i = 0; !err && i < body.entry_count; i++)
        err = verify_value(c, cells[HD_CHECKPOINTS_THREAD].bytes, body.entries[i].channel,
                           body.entries[i].ref);
    return err;
}

static int check_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct checker *c = arg;

    (void)which;
    hd_arena_reset(&c->arena);
    if (c->table == HD_CHECKPOINTS)
        return check_checkpoint(c, cells);
    return verify_value(c, cells[HD_WRITES_THREAD].bytes, cells[HD_WRITES_CHANNEL].bytes,
                        cells[HD_WRITES_VALUE].bytes);
}

/* A value that was deleted or replaced after it was read looks damaged. Reading again decides. */
static int check_again(void *arg, size_t which, const struct hd_cell *cells)
{
    struct checker *c = arg;
    struct hd_query query = {.table = c->table,
                             .index = HD_PRIMARY,
                             .prefix = cells,
                             .prefix_count = hd_tables[c->table].key_count,
                             .columns = HD_ALL_COLUMNS};
    struct hd_key key = {.thread = cells[0].bytes}; /* every table's first column */
    struct hd_conflict_retry retry = {0};
    int err = check_row(arg, which, cells);

    while (err == HD_ECORRUPT && hd_conflict_retry_read(c->store, &retry, &key, 1, &err, c->fault))
        err = hd_scan(c->store->backend, query, check_row, c, c->fault);
    if (err != HD_ECORRUPT)
        return err;
    _Static_assert((int)HD_CHECKPOINTS_ID == (int)HD_WRITES_CHECKPOINT, "both name the checkpoint");
    return damaged(c, c->table == HD_CHECKPOINTS ? "a value" : "a write",
                   cells[HD_CHECKPOINTS_THREAD].bytes, cells[HD_CHECKPOINTS_ID].bytes);
}

/* The rows of one thread, or of all when it is NULL. */
static int check_values(struct hd_store *store, const struct hd_cell *thread,
                        struct heddle_error *fault)
{
    struct checker c = {.store = store, .fault = fault, .table = HD_CHECKPOINTS};
    struct hd_query query = {.index = HD_PRIMARY,
                             .prefix = thread,
                             .prefix_count = thread ? 1 : 0,
                             .columns = HD_ALL_COLUMNS};
    int err;

    hd_arena_init(&c.arena, SIZE_MAX / 2);
    hd_reading_init(&c.reading);
    query.table = c.table;
    err = hd_scan(store->backend, query, check_again, &c, fault);
    if (!err) {
        query.table = c.table = HD_WRITES;
        err = hd_scan(store->backend, query, check_again, &c, fault);
    }
    hd_reading_fini(&c.reading);
    hd_arena_fini(&c.arena);
    return err;
}

int hd_check_values(struct hd_store *store, struct heddle_error *fault)
{
    return check_values(store, NULL, fault);
}

int hd_check_thread(struct hd_store *store, struct hd_slice thread, struct heddle_error *fault)
{
    struct hd_cell key = hd_cell_bytes(thread);

    return check_values(store, &key, fault);
}
