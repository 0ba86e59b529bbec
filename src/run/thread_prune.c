#include "run/thread_prune.h"

#include "records/line.h"

#include "base/alloc.h"
#include "graph/engine/ns.h"
#include "run/run_commit.h"
#include "store/prune.h"
#include "store/rows.h"

#define MAX_READ ((size_t)256 << 20)

/* ---- kept heads ------------------------------------------------------- */

struct heads {
    struct hd_arena *arena;
    struct hd_slice thread; /* its stored key */
    struct hd_key *list;
    size_t count, cap;
};

static int add_head(struct heads *heads, struct hd_slice ns, struct hd_slice id)
{
    struct hd_key *key;
    int err;

    if (id.len == 0)
        return 0;
    if (heads->count == heads->cap) {
        size_t cap = heads->cap ? heads->cap * 2 : 8;
        struct hd_key *grown = hd_arena_calloc(heads->arena, cap, sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        if (heads->count > 0)
            memcpy(grown, heads->list, heads->count * sizeof(*grown));
        heads->list = grown;
        heads->cap = cap;
    }
    key = &heads->list[heads->count];
    key->thread = heads->thread;
    err = hd_arena_copy(heads->arena, ns, &key->ns);
    if (!err)
        err = hd_arena_copy(heads->arena, id, &key->id);
    heads->count += !err;
    return err;
}

static int add_chosen(struct heads *heads, struct hd_slice text, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = text.len > 0 ? hd_json_parse(&json, text, fault) : 0;

    it = hd_json_iter(hd_json_root(&json));
    while (!err && text.len > 0 && hd_json_next(&it))
        err = add_head(heads, it.key, hd_json_string(it.val));
    hd_json_fini(&json);
    return err;
}

/* Adds the checkpoints of subgraphs at which a run starts; the map's namespaces lack the root. */
static int add_map(struct heads *heads, struct hd_slice root, hd_json_val map)
{
    struct hd_json_iter it = hd_json_iter(map);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        char *ns = hd_ns_join(root, it.key, NULL);

        err = ns ? add_head(heads, hd_slice_cstr(ns), hd_json_string(it.val)) : HD_ENOMEM;
        hd_free(ns);
    }
    return err;
}

static int add_start(struct heads *heads, const struct hd_run_rec *run, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val configurable, map;
    struct hd_slice root;
    int err = hd_json_parse(&json, run->kwargs, fault);

    configurable =
        hd_json_get(hd_json_get(hd_json_root(&json), HD_S("config")), HD_S("configurable"));
    root = hd_json_string(hd_json_get(configurable, HD_S("checkpoint_ns")));
    map = hd_json_get(configurable, HD_S("checkpoint_map"));
    if (!err)
        err =
            add_head(heads, root, hd_json_string(hd_json_get(configurable, HD_S("checkpoint_id"))));
    if (!err && hd_json_is_object(map))
        err = add_map(heads, root, map);
    hd_json_fini(&json);
    return err;
}

/* In a room, checkpoints after a chosen head are of a cascade that did not take effect. */
static bool keeps_heads(const struct hd_thread_rec *thread, const struct hd_prune *prune)
{
    return prune->strategy == HD_TTL_KEEP_BRANCHES || (thread->is_room && thread->heads.len > 0);
}

static int add_heads(struct heads *heads, const struct hd_thread_rec *thread,
                     struct heddle_error *fault)
{
    int err = add_head(heads, thread->head.ns, thread->head.checkpoint_id);

    if (!err && thread->has_before)
        err = add_head(heads, thread->head_before.ns, thread->head_before.checkpoint_id);
    return err ? err : add_chosen(heads, thread->heads, fault);
}

static int find_heads(struct heddle *store, const struct hd_thread_rec *thread,
                      const struct hd_prune *prune, struct heads *heads, struct heddle_error *fault)
{
    struct hd_run_rec *runs = NULL;
    size_t count = 0;
    int err = keeps_heads(thread, prune) ? add_heads(heads, thread, fault) : 0;

    if (!err && thread->status == HD_THREAD_BUSY)
        err = hd_runs_active(store, thread->principal, thread->id, heads->arena, &runs, &count,
                             fault);
    for (size_t i = 0; !err && i < count; i++)
        err = add_start(heads, &runs[i], fault);
    return err;
}

/* ---- partial ---------------------------------------------------------- */

/* Changes the record in the same batch, or at least expects that it has not changed. */
static int change_record(struct hd_batch_builder *batch, struct hd_thread_rec thread,
                         const struct hd_prune *prune)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread.principal), hd_cell_bytes(thread.id)};
    bool forgets = !keeps_heads(&thread, prune) && (thread.heads.len > 0 || thread.has_before);

    if (!forgets && !prune->is_over)
        return hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, thread.rev);
    if (forgets) { /* the chosen heads are deleted, unless they are the latest */
        thread.heads = hd_slice(NULL, 0);
        thread.head.checkpoint_id = thread.head_before.checkpoint_id = hd_slice(NULL, 0);
    }
    if (prune->is_over)
        thread.expires_at = 0;
    return hd_thread_put(batch, &thread);
}

static int keep_some(struct heddle *store, const struct hd_thread_rec *thread,
                     const struct hd_prune *prune, struct heddle_usage *usage,
                     struct hd_arena *arena, struct heddle_error *fault)
{
    struct heads heads = {.arena = arena};
    struct hd_batch_builder batch;
    struct hd_batch also;
    struct hd_prune_options keep = {.strategy = prune->strategy == HD_TTL_KEEP_LATEST
                                                    ? HEDDLE_KEEP_LATEST
                                                    : HEDDLE_KEEP_BRANCHES,
                                    .last = prune->keep_last,
                                    .is_dry = prune->is_dry,
                                    .removed = usage};
    int err = hd_thread_lane(arena, thread->principal, thread->id, &heads.thread);

    if (!err)
        err = find_heads(store, thread, prune, &heads, fault);
    keep.heads = heads.list;
    keep.head_count = heads.count;
    hd_batch_init(&batch);
    if (!err)
        err = change_record(&batch, *thread, prune);
    also = hd_batch_view(&batch);
    keep.also = &also;
    if (!err)
        err = hd_prune_thread(hd_store_of(store), heads.thread, &keep, fault);
    hd_batch_fini(&batch);
    return err;
}

int hd_thread_prune_cut(struct heddle *store, struct hd_thread_rec *changed,
                        const struct hd_lines *lines, struct hd_slice ns, struct hd_slice id,
                        struct heddle_error *fault)
{
    struct hd_key fall = {.ns = ns, .id = id};
    struct hd_prune_options keep = {.fall = &fall};
    struct hd_batch_builder batch;
    struct hd_arena arena;
    struct hd_batch also;
    int err;

    hd_arena_init(&arena, MAX_READ);
    hd_batch_init(&batch);
    err = hd_thread_lane(&arena, changed->principal, changed->id, &fall.thread);
    if (!err)
        err = hd_thread_put(&batch, changed);
    if (!err)
        err = hd_lines_put(&batch, lines);
    also = hd_batch_view(&batch);
    keep.also = &also;
    if (!err)
        err = hd_prune_thread(hd_store_of(store), fall.thread, &keep, fault);
    hd_batch_fini(&batch);
    hd_arena_fini(&arena);
    return err;
}

/* ---- whole threads ---------------------------------------------------- */

struct counter {
    enum hd_table_id table;
    int64_t *rows;
    int64_t *bytes;
};

static int count_thread_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct counter *counter = arg;

    (void)which;
    (*counter->rows)++;
    *counter->bytes += hd_row_bytes(counter->table, cells);
    return 0;
}

static int count_rows(struct heddle *store, const struct hd_thread_rec *thread,
                      struct hd_removed *removed, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    int64_t others = 0;
    struct counter counters[] = {{HD_RUNS, &removed->runs, &removed->bytes},
                                 {HD_EVENT_PAGES, &removed->events, &removed->bytes},
                                 {HD_EXCHANGES, &others, &removed->bytes},
                                 {HD_OUTBOX, &others, &removed->bytes},
                                 {HD_LINES, &others, &removed->bytes},
                                 {HD_ROOM, &others, &removed->bytes},
                                 {HD_ROOM_MESSAGES, &others, &removed->bytes},
                                 {HD_ROOM_CONTENTS, &others, &removed->bytes},
                                 {HD_ROOM_IDS, &others, &removed->bytes},
                                 {HD_ROOM_RUNS, &others, &removed->bytes},
                                 {HD_ROOM_CASCADES, &others, &removed->bytes},
                                 {HD_ROOM_READS, &others, &removed->bytes},
                                 {HD_THREAD_INFO, &others, &removed->bytes}};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(counters); i++) {
        struct hd_query query = {.table = counters[i].table,
                                 .index = HD_PRIMARY,
                                 .prefix = key,
                                 .prefix_count = HD_COUNT(key),
                                 .columns = HD_ALL_COLUMNS};

        err = hd_rows_scan(store, query, count_thread_row, &counters[i], fault);
    }
    return err;
}

static int delete_all(struct heddle *store, const struct hd_thread_rec *thread,
                      const struct hd_prune *prune, struct hd_removed *removed,
                      struct heddle_usage *usage, struct heddle_error *fault)
{
    const struct heddle_thread key = {hd_to_public(thread->principal), hd_to_public(thread->id)};
    int err = heddle_thread_usage(store, &key, usage, fault);

    if (err)
        return err;
    err = count_rows(store, thread, removed, fault);
    removed->threads++;
    return err || prune->is_dry ? err : hd_run_commit_expire_thread(store, thread, fault);
}

int hd_thread_prune(struct heddle *store, const struct hd_thread_rec *thread,
                    const struct hd_prune *prune, struct hd_removed *removed,
                    struct heddle_error *fault)
{
    struct hd_removed sum = *removed;
    struct heddle_usage usage = {0};
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_READ);
    if (prune->strategy == HD_TTL_DELETE)
        err = delete_all(store, thread, prune, &sum, &usage, fault);
    else
        err = keep_some(store, thread, prune, &usage, &arena, fault);
    hd_arena_fini(&arena);
    if (err)
        return err;
    sum.checkpoints += usage.checkpoints;
    sum.writes += usage.writes;
    sum.bytes += usage.bytes;
    *removed = sum;
    return 0;
}

struct prune_by_id {
    struct heddle *store;
    struct hd_slice principal, id;
    const struct hd_prune *prune;
    struct hd_removed *removed;
};

static int prune_once(void *arg, struct heddle_error *fault)
{
    const struct prune_by_id *by_id = arg;
    struct hd_thread_rec thread;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_READ);
    err = hd_thread_read(by_id->store, by_id->principal, by_id->id, &arena, &thread, fault);
    if (!err)
        err = hd_thread_prune(by_id->store, &thread, by_id->prune, by_id->removed, fault);
    hd_arena_fini(&arena);
    return err;
}

int hd_thread_prune_by_id(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                          const struct hd_prune *prune, struct hd_removed *removed,
                          struct heddle_error *fault)
{
    struct prune_by_id by_id = {store, principal, id, prune, removed};

    return hd_rows_change(store, prune_once, &by_id, fault);
}
