#include "records/hold.h"

#include <string.h>

#include "cluster/cluster.h"
#include "records/record_internal.h"

#define LOOKS 64 /* threads of one round trip */

static struct hd_hold hold_of_row(const struct hd_cell *cells)
{
    return (struct hd_hold){.token = cells[HD_HOLDS_TOKEN].number,
                            .server = cells[HD_HOLDS_SERVER].bytes,
                            .last = cells[HD_HOLDS_LAST].bytes};
}

int hd_hold_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                 struct hd_arena *arena, struct hd_hold *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_HOLDS, key, HD_COUNT(key), arena, cells, fault);

    *out = (struct hd_hold){.token = 0};
    if (err == HD_ENOTFOUND)
        return 0;
    if (err)
        return err;
    *out = hold_of_row(cells);
    return 0;
}

struct held_thread_reading {
    struct hd_held_thread *out;
    struct hd_arena *arena;
    struct heddle_error *fault;
};

/* The row of the thread, then that of its hold. */
static int on_held_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct held_thread_reading *reading = arg;
    enum hd_table_id table = which == 0 ? HD_THREAD_INFO : HD_HOLDS;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = hd_record_keep(reading->arena, table, cells, kept);

    if (err)
        return err;
    if (table == HD_HOLDS) {
        reading->out->hold = hold_of_row(kept);
        return 0;
    }
    reading->out->has_thread = true;
    return hd_thread_decode(kept, reading->arena, &reading->out->thread, reading->fault);
}

int hd_hold_read_thread(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                        struct hd_arena *arena, struct hd_held_thread *out,
                        struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};
    struct held_thread_reading reading = {.out = out, .arena = arena, .fault = fault};
    struct hd_query queries[] = {{.table = HD_THREAD_INFO}, {.table = HD_HOLDS}};

    for (size_t i = 0; i < HD_COUNT(queries); i++) {
        queries[i].index = HD_PRIMARY;
        queries[i].prefix = key;
        queries[i].prefix_count = HD_COUNT(key);
        queries[i].limit = 1;
        queries[i].columns = HD_ALL_COLUMNS;
    }
    queries[0].is_independent = true;
    *out = (struct hd_held_thread){.has_thread = false};
    return hd_rows_read(store, queries, HD_COUNT(queries), on_held_thread, &reading, fault);
}

/* ---- looks ------------------------------------------------------------ */

/* Each look is two queries: the row of its thread, and that of its hold. */
static int on_look(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_hold_look *look = (struct hd_hold_look *)arg + which / 2;
    struct hd_slice last = cells[HD_HOLDS_LAST].bytes;

    if (which % 2 == 0)
        look->has_thread = true;
    else if (last.len == HD_UUID_LEN)
        memcpy(look->last, last.ptr, HD_UUID_LEN);
    return 0;
}

static int look_at_some(struct heddle *store, struct hd_hold_look *looks, size_t count,
                        struct heddle_error *fault)
{
    struct hd_cell keys[LOOKS][2];
    struct hd_query queries[LOOKS * 2];

    for (size_t i = 0; i < count; i++) {
        looks[i].has_thread = false;
        memset(looks[i].last, 0, sizeof(looks[i].last));
        keys[i][0] = hd_cell_bytes(looks[i].principal);
        keys[i][1] = hd_cell_bytes(looks[i].thread);
        queries[2 * i] = (struct hd_query){.table = HD_THREAD_INFO,
                                           .index = HD_PRIMARY,
                                           .prefix = keys[i],
                                           .prefix_count = 2,
                                           .limit = 1};
        queries[2 * i + 1] = (struct hd_query){.table = HD_HOLDS,
                                               .index = HD_PRIMARY,
                                               .prefix = keys[i],
                                               .prefix_count = 2,
                                               .limit = 1,
                                               .columns = 1u << HD_HOLDS_LAST};
    }
    return hd_rows_read(store, queries, 2 * count, on_look, looks, fault);
}

int hd_holds_look(struct heddle *store, struct hd_hold_look *looks, size_t count,
                  struct heddle_error *fault)
{
    int err = 0;

    for (size_t at = 0; !err && at < count; at += LOOKS)
        err = look_at_some(store, looks + at, count - at < LOOKS ? count - at : LOOKS, fault);
    return err;
}

int64_t hd_hold_token(void)
{
    int64_t token;

    do
        hd_random(&token, sizeof(token));
    while (token == 0);
    return token;
}

int hd_hold_put(struct hd_batch_builder *batch, struct hd_slice principal, struct hd_slice thread,
                const struct hd_hold *hold)
{
    const struct hd_cell cells[] = {
        [HD_HOLDS_PRINCIPAL] = hd_cell_bytes(principal),
        [HD_HOLDS_THREAD] = hd_cell_bytes(thread),
        [HD_HOLDS_TOKEN] = hd_cell_int(hold->token),
        [HD_HOLDS_SERVER] = hold->token ? hd_cell_bytes(hold->server) : hd_cell_null(),
        [HD_HOLDS_LAST] = hd_cell_bytes(hold->last),
    };

    return hd_batch_row(batch, HD_OP_PUT, HD_HOLDS, cells);
}

int hd_hold_expect(struct hd_batch_builder *batch, struct hd_slice principal,
                   struct hd_slice thread, int64_t token)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};

    return hd_batch_expect(batch, HD_HOLDS, key, HD_HOLDS_TOKEN, token);
}

int hd_hold_announce(struct hd_batch_builder *batch, struct hd_cluster *cluster,
                     struct hd_slice principal, struct hd_slice thread, const struct hd_hold *hold,
                     struct heddle_error *fault)
{
    const struct hd_hold own = {.last = hd_cluster_self(cluster)};
    bool is_gone = true;
    int err = 0;

    if (!hold->token && hold->last.len > 0)
        err = hd_cluster_check_gone(cluster, hold->last, &is_gone, fault);
    if (err || hold->token || !is_gone)
        return err;
    return hd_hold_put(batch, principal, thread, &own);
}

int hd_hold_release(struct hd_batch_builder *batch, struct hd_slice principal,
                    struct hd_slice thread, int64_t token)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};

    return hd_batch_expect_and_clear(batch, HD_HOLDS, key, HD_HOLDS_TOKEN, token, 0,
                                     HD_HOLDS_SERVER);
}

/* ---- lists ------------------------------------------------------------ */

struct holds_scan {
    hd_hold_fn fn;
    void *arg;
};

static int on_hold(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct holds_scan *scan = arg;
    const struct hd_hold hold = hold_of_row(cells);

    (void)which;
    return scan->fn(scan->arg, cells[HD_HOLDS_PRINCIPAL].bytes, cells[HD_HOLDS_THREAD].bytes,
                    &hold);
}

static int scan_holds(struct heddle *store, const struct hd_cell *server, hd_hold_fn fn, void *arg,
                      struct heddle_error *fault)
{
    struct holds_scan scan = {fn, arg};
    const struct hd_query query = {.table = HD_HOLDS,
                                   .index = HD_HOLDS_BY_SERVER,
                                   .prefix = server,
                                   .prefix_count = server ? 1 : 0,
                                   .columns = HD_ALL_COLUMNS};

    return hd_rows_scan(store, query, on_hold, &scan, fault);
}

int hd_holds_of(struct heddle *store, struct hd_slice server, hd_hold_fn fn, void *arg,
                struct heddle_error *fault)
{
    const struct hd_cell cell = hd_cell_bytes(server);

    return scan_holds(store, &cell, fn, arg, fault);
}

int hd_holds_all(struct heddle *store, hd_hold_fn fn, void *arg, struct heddle_error *fault)
{
    return scan_holds(store, NULL, fn, arg, fault);
}
