#include "base/clock.h"
#include "records/record_internal.h"
#include "store/store.h"

enum { MAX_NS = 1024, MAX_KEY = 1024 };
enum { MAX_PICKED = 64 }; /* items that are read at once */

#define ALL_BUT_VALUE (HD_ALL_COLUMNS & ~(1u << HD_ITEMS_VALUE))

int hd_item_check(struct hd_slice ns, struct hd_slice key, struct heddle_error *fault)
{
    int err = hd_check_length(ns, MAX_NS, "namespace", fault);

    return err ? err : hd_check_length(key, MAX_KEY, "key", fault);
}

/* ---- how they are stored ---------------------------------------------- */

static const struct hd_record_type item_type = {
    .table = HD_ITEMS,
    .size = sizeof(struct hd_item_rec),
    .id = HD_ITEMS_KEY,
    .columns =
        {
            [HD_ITEMS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, struct hd_item_rec, principal)},
            [HD_ITEMS_NAMESPACE] = {HD_RECORD_COLUMN(TEXT, struct hd_item_rec, ns)},
            [HD_ITEMS_KEY] = {HD_RECORD_COLUMN(TEXT, struct hd_item_rec, key)},
            [HD_ITEMS_CREATED] = {HD_RECORD_COLUMN(INT, struct hd_item_rec, created_at)},
            [HD_ITEMS_UPDATED] = {HD_RECORD_COLUMN(INT, struct hd_item_rec, updated_at)},
            [HD_ITEMS_EXPIRES] = {HD_RECORD_COLUMN(INT, struct hd_item_rec, expires_at)},
            [HD_ITEMS_TTL] = {HD_RECORD_COLUMN(INT, struct hd_item_rec, ttl_us)},
            [HD_ITEMS_VALUE] = {HD_RECORD_COLUMN(JSON, struct hd_item_rec, value)},
        },
};

static const struct hd_record_type vectors_type = {
    .table = HD_VECTORS,
    .size = sizeof(struct hd_vectors_rec),
    .id = HD_VECTORS_KEY,
    .columns =
        {
            [HD_VECTORS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, struct hd_vectors_rec, principal)},
            [HD_VECTORS_NAMESPACE] = {HD_RECORD_COLUMN(TEXT, struct hd_vectors_rec, ns)},
            [HD_VECTORS_KEY] = {HD_RECORD_COLUMN(TEXT, struct hd_vectors_rec, key)},
            [HD_VECTORS_UPDATED] = {HD_RECORD_COLUMN(INT, struct hd_vectors_rec, updated_at)},
            [HD_VECTORS_DIMS] = {HD_RECORD_COLUMN(INT, struct hd_vectors_rec, dims)},
            [HD_VECTORS_DATA] = {HD_RECORD_COLUMN(TEXT, struct hd_vectors_rec, data)},
        },
};

/* ---- reading ---------------------------------------------------------- */

static bool is_over(const struct hd_item_rec *item, int64_t now)
{
    return item->expires_at != 0 && item->expires_at <= now;
}

int hd_item_read(struct heddle *store, struct hd_slice principal, struct hd_slice ns,
                 struct hd_slice key, struct hd_arena *arena, struct hd_item_rec *out,
                 struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(ns),
                                     hd_cell_bytes(key)};
    int err = hd_record_read(store, &item_type, prefix, HD_COUNT(prefix), arena, out, fault);

    return !err && is_over(out, hd_clock_now_us()) ? HD_ENOTFOUND : err;
}

struct item_scan {
    hd_item_fn fn;
    void *arg;
    int64_t now; /* 0: also expired ones */
    bool is_ended;
};

static int on_item_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct item_scan *scan = arg;
    struct hd_item_rec item;
    int answer = hd_record_decode(&item_type, cells, NULL, &item, NULL);

    (void)which;
    if (answer)
        return answer;
    if (scan->now && is_over(&item, scan->now))
        return 0;
    answer = scan->fn(scan->arg, &item);
    scan->is_ended = answer != 0;
    return answer;
}

/* Namespaces below "a" begin with "a.": they stand from there up to "a/". */
struct below {
    char low[MAX_NS + 1], high[MAX_NS + 1];
    struct hd_cell bounds[2];
};

/* Makes of a query for the namespace itself that for those below; false: there can be none. */
static bool look_below(struct below *below, struct hd_slice ns, struct hd_query *query)
{
    if (ns.len > MAX_NS)
        return false;
    memcpy(below->low, ns.ptr, ns.len);
    memcpy(below->high, ns.ptr, ns.len);
    below->low[ns.len] = '.';
    below->high[ns.len] = '.' + 1;
    below->bounds[0] = hd_cell_bytes(hd_slice(below->low, ns.len + 1));
    below->bounds[1] = hd_cell_bytes(hd_slice(below->high, ns.len + 1));
    query->prefix_count = 1;
    query->low = &below->bounds[0];
    query->high = &below->bounds[1];
    return true;
}

static int scan_below(struct heddle *store, struct hd_query query, struct hd_slice ns, hd_row_fn fn,
                      void *arg, struct heddle_error *fault)
{
    struct below below;

    return look_below(&below, ns, &query) ? hd_rows_scan(store, query, fn, arg, fault) : 0;
}

int hd_items_scan(struct heddle *store, struct hd_slice principal, struct hd_slice prefix,
                  bool with_values, hd_item_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell cells[] = {hd_cell_bytes(principal), hd_cell_bytes(prefix)};
    struct item_scan scan = {.fn = fn, .arg = arg, .now = hd_clock_now_us()};
    struct hd_query query = {.table = HD_ITEMS,
                             .index = HD_PRIMARY,
                             .prefix = cells,
                             .prefix_count = prefix.len ? 2 : 1,
                             .columns = with_values ? HD_ALL_COLUMNS : ALL_BUT_VALUE};
    int err = hd_rows_scan(store, query, on_item_row, &scan, fault);

    if (err || scan.is_ended || prefix.len == 0)
        return err;
    return scan_below(store, query, prefix, on_item_row, &scan, fault);
}

int hd_items_expired(struct heddle *store, int64_t now, hd_item_fn fn, void *arg,
                     struct heddle_error *fault)
{
    const struct hd_cell high = hd_cell_int(now + 1);
    struct hd_query query = {
        .table = HD_ITEMS, .index = HD_ITEMS_BY_EXPIRY, .high = &high, .columns = ALL_BUT_VALUE};
    struct item_scan scan = {.fn = fn, .arg = arg};

    return hd_rows_scan(store, query, on_item_row, &scan, fault);
}

static int pick_some(struct heddle *store, struct hd_slice principal,
                     const struct hd_item_name *names, size_t count, unsigned columns,
                     struct item_scan *scan, struct heddle_error *fault)
{
    struct hd_cell cells[MAX_PICKED][3];
    struct hd_query queries[MAX_PICKED];

    for (size_t i = 0; i < count; i++) {
        cells[i][0] = hd_cell_bytes(principal);
        cells[i][1] = hd_cell_bytes(names[i].ns);
        cells[i][2] = hd_cell_bytes(names[i].key);
        queries[i] = (struct hd_query){.table = HD_ITEMS,
                                       .index = HD_PRIMARY,
                                       .prefix = cells[i],
                                       .prefix_count = HD_COUNT(cells[i]),
                                       .columns = columns};
    }
    return hd_rows_read(store, queries, count, on_item_row, scan, fault);
}

int hd_items_pick(struct heddle *store, struct hd_slice principal, const struct hd_item_name *names,
                  size_t count, bool with_values, hd_item_fn fn, void *arg,
                  struct heddle_error *fault)
{
    struct item_scan scan = {.fn = fn, .arg = arg, .now = hd_clock_now_us()};
    int err = 0;

    for (size_t at = 0; !err && !scan.is_ended && at < count; at += MAX_PICKED)
        err = pick_some(store, principal, names + at,
                        count - at < MAX_PICKED ? count - at : MAX_PICKED,
                        with_values ? HD_ALL_COLUMNS : ALL_BUT_VALUE, &scan, fault);
    return err;
}

struct vectors_scan {
    hd_vectors_fn fn;
    void *arg;
    bool is_ended;
};

static int on_vectors(void *arg, size_t which, const struct hd_cell *cells)
{
    struct vectors_scan *scan = arg;
    struct hd_vectors_rec vectors;
    int answer = hd_record_decode(&vectors_type, cells, NULL, &vectors, NULL);

    (void)which;
    if (!answer)
        answer = scan->fn(scan->arg, &vectors);
    scan->is_ended = answer != 0;
    return answer;
}

int hd_vectors_scan(struct heddle *store, struct hd_slice principal, struct hd_slice prefix,
                    hd_vectors_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell cells[] = {hd_cell_bytes(principal), hd_cell_bytes(prefix)};
    struct vectors_scan scan = {.fn = fn, .arg = arg};
    struct hd_query query = {.table = HD_VECTORS,
                             .index = HD_PRIMARY,
                             .prefix = cells,
                             .prefix_count = prefix.len ? 2 : 1,
                             .columns = HD_ALL_COLUMNS};
    int err = hd_rows_scan(store, query, on_vectors, &scan, fault);

    if (err || scan.is_ended || prefix.len == 0)
        return err;
    return scan_below(store, query, prefix, on_vectors, &scan, fault);
}

struct near_scan {
    hd_near_fn fn;
    void *arg;
};

static int on_near(void *arg, size_t which, const struct hd_cell *cells)
{
    struct near_scan *scan = arg;
    struct hd_vectors_rec vectors;
    int err = hd_record_decode(&vectors_type, cells, NULL, &vectors, NULL);

    return err ? err : scan->fn(scan->arg, which, &vectors);
}

int hd_vectors_nearest(struct heddle *store, struct hd_slice principal, struct hd_slice prefix,
                       struct hd_slice vector, size_t limit, hd_near_fn fn, void *arg,
                       struct heddle_error *fault)
{
    const struct hd_cell cells[] = {hd_cell_bytes(principal), hd_cell_bytes(prefix)};
    struct near_scan scan = {.fn = fn, .arg = arg};
    struct hd_query queries[2] = {{.table = HD_VECTORS,
                                   .index = HD_PRIMARY,
                                   .prefix = cells,
                                   .prefix_count = prefix.len ? 2 : 1,
                                   .limit = limit,
                                   .columns = HD_ALL_COLUMNS}};
    struct below below;
    size_t count = 1;

    queries[1] = queries[0];
    if (prefix.len && look_below(&below, prefix, &queries[1]))
        count = 2;
    return hd_rows_nearest(store, queries, count, vector, on_near, &scan, fault);
}

int hd_namespaces_scan(struct heddle *store, struct hd_slice principal, struct hd_slice from,
                       hd_ns_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct hd_cell low = hd_cell_bytes(from.len > 0 ? from : HD_S(""));
    struct hd_query query = {
        .table = HD_ITEMS, .index = HD_PRIMARY, .prefix = &prefix, .prefix_count = 1, .low = &low};
    struct hd_cell cells[HD_MAX_COLUMNS];
    struct hd_arena arena, last;
    int err;

    hd_arena_init(&arena, SIZE_MAX / 2);
    hd_arena_init(&last, SIZE_MAX / 2);
    while (!(err = hd_record_first(store, query, &arena, cells, fault)) &&
           !(err = fn(arg, cells[HD_ITEMS_NAMESPACE].bytes))) {
        /* The next greater one is this one with a NUL behind it, which an arena's copy has. */
        hd_arena_reset(&last);
        err = hd_arena_copy(&last, cells[HD_ITEMS_NAMESPACE].bytes, &low.bytes);
        if (err)
            break;
        low.bytes.len++;
        hd_arena_reset(&arena);
    }
    hd_arena_fini(&last);
    hd_arena_fini(&arena);
    return err == HD_ENOTFOUND || err > 0 ? 0 : err;
}

/* ---- writing ---------------------------------------------------------- */

int hd_item_put(struct hd_batch_builder *batch, const struct hd_item_rec *item)
{
    return hd_record_write(batch, &item_type, item, HD_OP_PUT);
}

int hd_item_delete(struct hd_batch_builder *batch, struct hd_slice principal, struct hd_slice ns,
                   struct hd_slice key)
{
    const struct hd_cell cells[] = {hd_cell_bytes(principal), hd_cell_bytes(ns),
                                    hd_cell_bytes(key)};

    int err = hd_batch_delete(batch, HD_ITEMS, cells, HD_COUNT(cells));

    return err ? err : hd_vectors_delete(batch, principal, ns, key);
}

int hd_item_room_memory(struct hd_slice thread_id, struct hd_arena *arena, struct hd_slice *out)
{
    char *text = hd_arena_printf(arena, "heddle:room.%.*s", (int)thread_id.len, thread_id.ptr);

    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

static int on_remembered(void *arg, const struct hd_item_rec *item)
{
    struct hd_batch_builder *batch = arg;
    struct hd_slice principal = {NULL, 0}, ns = {NULL, 0}, key = {NULL, 0};
    int err = hd_arena_copy(&batch->arena, item->principal, &principal);

    if (!err)
        err = hd_arena_copy(&batch->arena, item->ns, &ns);
    if (!err)
        err = hd_arena_copy(&batch->arena, item->key, &key);
    return err ? err : hd_item_delete(batch, principal, ns, key);
}

int hd_item_room_memory_delete(struct heddle *store, struct hd_batch_builder *batch,
                               struct hd_slice principal, struct hd_slice thread_id,
                               struct heddle_error *fault)
{
    struct hd_slice ns;
    int err = hd_item_room_memory(thread_id, &batch->arena, &ns);

    return err ? err : hd_items_scan(store, principal, ns, false, on_remembered, batch, fault);
}

int hd_vectors_put(struct hd_batch_builder *batch, const struct hd_vectors_rec *vectors)
{
    return hd_record_write(batch, &vectors_type, vectors, HD_OP_PUT);
}

int hd_vectors_delete(struct hd_batch_builder *batch, struct hd_slice principal, struct hd_slice ns,
                      struct hd_slice key)
{
    const struct hd_cell cells[] = {hd_cell_bytes(principal), hd_cell_bytes(ns),
                                    hd_cell_bytes(key)};

    return hd_batch_delete(batch, HD_VECTORS, cells, HD_COUNT(cells));
}

int hd_item_refresh(struct hd_batch_builder *batch, const struct hd_item_rec *item,
                    int64_t expires_at)
{
    const struct hd_cell key[] = {hd_cell_bytes(item->principal), hd_cell_bytes(item->ns),
                                  hd_cell_bytes(item->key)};

    return hd_batch_expect_and_set(batch, HD_ITEMS, key, HD_ITEMS_UPDATED, item->updated_at,
                                   HD_ITEMS_EXPIRES, expires_at);
}

int hd_item_expire(struct hd_batch_builder *batch, const struct hd_item_rec *item)
{
    const struct hd_cell key[] = {hd_cell_bytes(item->principal), hd_cell_bytes(item->ns),
                                  hd_cell_bytes(item->key)};
    int err = hd_batch_expect(batch, HD_ITEMS, key, HD_ITEMS_EXPIRES, item->expires_at);

    return err ? err : hd_item_delete(batch, item->principal, item->ns, item->key);
}

/* Removes an operation that conflicts, and the deletion that depends on it. */
static void drop_conflict(struct hd_batch_builder *batch, size_t at)
{
    size_t end = at + 1;

    while (end < batch->count && batch->ops[end].kind != HD_OP_EXPECT)
        end++;
    memmove(&batch->ops[at], &batch->ops[end], (batch->count - end) * sizeof(*batch->ops));
    batch->count -= end - at;
}

int hd_items_apply(struct heddle *store, struct hd_slice lane_key, struct hd_batch_builder *batch,
                   struct heddle_error *fault)
{
    while (batch->count > 0) {
        struct hd_batch view = hd_batch_view(batch);
        struct heddle_error failure = {0};
        size_t failed = 0;
        int err = hd_rows_apply(store, lane_key, &view, &failed, &failure);

        if (err != HD_ECONFLICT)
            return failure.code ? hd_error_set(fault, err, "%s", failure.text) : err;
        drop_conflict(batch, failed);
    }
    return 0;
}
