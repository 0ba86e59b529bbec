#include "store/prune.h"

#include "store/lane.h"
#include "store/prune_tree.h"
#include "store/retry.h"
#include "store/scan.h"

enum {
    PORTION = 500, /* checkpoints removed in one batch */
    PAGE = 64,     /* rows read together */
    LOOSE = 2      /* attempts without holding the lane */
};

int64_t hd_row_bytes(enum hd_table_id table, const struct hd_cell *cells)
{
    int64_t bytes = 0;

    for (unsigned i = 0; i < hd_tables[table].column_count; i++)
        bytes += cells[i].kind == HD_CELL_BYTES ? (int64_t)cells[i].bytes.len : 8;
    return bytes;
}

int hd_prune_name(struct hd_arena *arena, struct hd_slice ns, struct hd_slice id,
                  struct hd_slice *out)
{
    char *name = hd_arena_alloc(arena, sizeof(ns.len) + ns.len + id.len);

    if (!name)
        return HD_ENOMEM;
    memcpy(name, &ns.len, sizeof(ns.len));
    if (ns.len)
        memcpy(name + sizeof(ns.len), ns.ptr, ns.len);
    memcpy(name + sizeof(ns.len) + ns.len, id.ptr, id.len);
    *out = hd_slice(name, sizeof(ns.len) + ns.len + id.len);
    return 0;
}

/* ---- applying ---- */

struct application {
    struct hd_batch batch;
    size_t failed;
};

static int apply_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                     struct heddle_error *fault)
{
    struct application *a = arg;

    (void)lane;
    return hd_backend_apply(store->backend, &a->batch, &a->failed, fault);
}

int hd_prune_apply(struct hd_store *store, struct hd_slice thread,
                   const struct hd_batch_builder *builder, bool has_lane, size_t *failed,
                   struct heddle_error *fault)
{
    struct application a = {.batch = hd_batch_view(builder)};
    int err = has_lane ? apply_job(store, NULL, &a, fault)
                       : hd_lane_job(store, thread, apply_job, &a, fault);

    if (failed)
        *failed = a.failed;
    return err;
}

/* ---- one attempt ---- */

struct keeper {
    struct hd_store *store;
    struct hd_slice thread;
    const struct hd_prune_options *keep;
    struct heddle_error *fault;
    bool has_lane;
    bool is_refused; /* the operations of `rows` conflicted */
    bool is_done;    /* … were applied */
    int64_t epoch;
    int64_t updated_at; /* the last put */
    struct hd_tree tree;
    struct hd_batch_builder batch;
    struct heddle_usage removed; /* of all attempts */
};

static int prune_on_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    struct keeper *k = arg;

    (void)which;
    if (cells[HD_THREADS_CREATED].number == 0)
        return 0; /* a copy is in progress: see copy.c */
    k->epoch = cells[HD_THREADS_EPOCH].number;
    k->updated_at = cells[HD_THREADS_UPDATED].number;
    return 0;
}

static int read_thread(struct keeper *k)
{
    struct hd_cell key = hd_cell_bytes(k->thread);
    struct hd_query query = {.table = HD_THREADS,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};
    int err;

    k->epoch = -1;
    err = hd_backend_read(k->store->backend, &query, 1, prune_on_thread, k, k->fault);
    if (err)
        return err;
    return k->epoch == -1 ? HD_ENOTFOUND : 0;
}

/* ---- counting ---- */

static int prune_on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_tree *tree = &((struct keeper *)arg)->tree;
    const struct hd_tree_space *space = hd_tree_space(tree, cells[HD_WRITES_NS].bytes);
    size_t node = space ? hd_tree_find(tree, space, cells[HD_WRITES_CHECKPOINT].bytes) : HD_NO_NODE;

    (void)which;
    if (node != HD_NO_NODE) {
        tree->nodes[node].writes++;
        tree->nodes[node].write_bytes += hd_row_bytes(HD_WRITES, cells);
    }
    return 0;
}

static int count_writes(struct keeper *k)
{
    struct hd_cell key = hd_cell_bytes(k->thread);
    struct hd_query query = {.table = HD_WRITES,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};

    return k->keep->removed ? hd_scan(k->store->backend, query, prune_on_write, k, k->fault) : 0;
}

static void count_node(struct keeper *k, const struct hd_tree_node *node)
{
    k->removed.checkpoints++;
    k->removed.writes += node->writes;
    k->removed.bytes += node->bytes + node->write_bytes;
}

/* A new parent may be longer or shorter; none counts like every empty column. */
static void count_parent(struct keeper *k, const struct hd_tree_node *node, size_t from, size_t to)
{
    const struct hd_tree_node *nodes = k->tree.nodes;
    size_t before = from == node->parent ? node->parent_id.len : nodes[from].id.len;

    k->removed.bytes += (int64_t)before - (to == HD_NO_NODE ? 8 : (int64_t)nodes[to].id.len);
}

/* ---- removing ---- */

static int delete_node(struct keeper *k, const struct hd_tree_node *node)
{
    struct hd_cell key[] = {hd_cell_bytes(k->thread), hd_cell_bytes(k->tree.spaces[node->space].ns),
                            hd_cell_bytes(node->id)};
    int err = hd_batch_delete(&k->batch, HD_CHECKPOINTS, key, 3);

    return err ? err : hd_batch_delete(&k->batch, HD_WRITES, key, 3);
}

/*
 * Selects the next removals: inner ones and the deepest first, so that every remaining checkpoint
 * always has its ancestors and its owner.
 */
static int portion_choose(struct keeper *k, size_t *pos, size_t *first)
{
    size_t count = 0, most = k->keep->fall ? SIZE_MAX : PORTION;
    int err = 0;

    *first = *pos;
    for (; !err && *pos < k->tree.count && count < most; (*pos)++) {
        struct hd_tree_node *node = &k->tree.nodes[k->tree.order[*pos]];

        if (node->is_kept)
            continue;
        node->is_gone = true;
        count++;
        err = delete_node(k, node);
    }
    return err;
}

struct row_copy {
    struct keeper *k;
    const size_t *nodes;
    size_t found;
};

static int on_joined(void *arg, size_t which, const struct hd_cell *cells)
{
    struct row_copy *copy = arg;
    struct keeper *k = copy->k;
    const struct hd_tree_node *node = &k->tree.nodes[copy->nodes[which]];
    struct hd_cell row[HD_MAX_COLUMNS];
    int err = 0;

    for (unsigned i = 0; !err && i < hd_tables[HD_CHECKPOINTS].column_count; i++) {
        row[i] = cells[i];
        if (cells[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(&k->batch.arena, cells[i].bytes, &row[i].bytes);
    }
    row[HD_CHECKPOINTS_PARENT] =
        node->joined == HD_NO_NODE ? hd_cell_null() : hd_cell_bytes(k->tree.nodes[node->joined].id);
    copy->found++;
    return err ? err : hd_batch_row(&k->batch, HD_OP_PUT, HD_CHECKPOINTS, row);
}

/* Puts the rows of these nodes with their new parents. HD_ECONFLICT: one was deleted. */
static int put_joined(struct keeper *k, const size_t *nodes, size_t count)
{
    struct hd_cell prefix[PAGE][3];
    struct hd_query queries[PAGE];
    struct row_copy copy = {.k = k, .nodes = nodes};
    int err;

    for (size_t i = 0; i < count; i++) {
        const struct hd_tree_node *node = &k->tree.nodes[nodes[i]];

        prefix[i][0] = hd_cell_bytes(k->thread);
        prefix[i][1] = hd_cell_bytes(k->tree.spaces[node->space].ns);
        prefix[i][2] = hd_cell_bytes(node->id);
        queries[i] = (struct hd_query){.table = HD_CHECKPOINTS,
                                       .index = HD_PRIMARY,
                                       .prefix = prefix[i],
                                       .prefix_count = 3,
                                       .columns = HD_ALL_COLUMNS};
    }
    err = hd_backend_read(k->store->backend, queries, count, on_joined, &copy, k->fault);
    return !err && copy.found < count ? HD_ECONFLICT : err;
}

static bool joins(const struct keeper *k)
{
    return k->keep->fall || k->keep->keeps_paths || k->keep->strategy == HEDDLE_KEEP_BRANCHES;
}

/* Sets a new parent for the remaining checkpoints that lost theirs. */
static int node_join(struct keeper *k)
{
    size_t lost[PAGE], count = 0;
    int err = 0;

    for (size_t i = 0; !err && i < k->tree.count; i++) {
        struct hd_tree_node *node = &k->tree.nodes[i];
        size_t from = node->joined, to = from;

        if (node->is_gone || from == HD_NO_NODE || !k->tree.nodes[from].is_gone)
            continue;
        while (to != HD_NO_NODE && k->tree.nodes[to].is_gone)
            to = k->tree.nodes[to].parent;
        node->joined = to;
        lost[count++] = i;
        if (count == PAGE) {
            err = put_joined(k, lost, count);
            count = 0;
        }
    }
    return err || count == 0 ? err : put_joined(k, lost, count);
}

static int begin_batch(struct keeper *k, int64_t next)
{
    struct hd_cell key = hd_cell_bytes(k->thread);
    int err = 0;

    hd_batch_reset(&k->batch);
    if (k->keep->also && !k->is_done)
        err = hd_batch_append(&k->batch, k->keep->also);
    if (!err)
        err = hd_batch_expect(&k->batch, HD_THREADS, &key, HD_THREADS_UPDATED, k->updated_at);
    return err ? err
               : hd_batch_expect_epoch(&k->batch, k->thread, k->epoch, HD_THREADS_EPOCH, next);
}

static int apply_batch(struct keeper *k, int64_t next)
{
    size_t failed = 0;
    int err = hd_prune_apply(k->store, k->thread, &k->batch, k->has_lane, &failed, k->fault);

    if (err == HD_ECONFLICT && k->keep->also && !k->is_done && failed < k->keep->also->count)
        k->is_refused = true;
    if (err)
        return err;
    k->is_done = true;
    k->epoch = next;
    return 0;
}

static void count_portion(struct keeper *k, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct hd_tree_node *node = &k->tree.nodes[k->tree.order[i]];

        if (!node->is_kept)
            count_node(k, node);
    }
}

/* One batch of removals, which makes the epoch odd, or the next odd one. */
static int remove_portion(struct keeper *k, size_t *pos)
{
    int64_t next = k->epoch & 1 ? k->epoch + 2 : k->epoch + 1;
    size_t first;
    int err = begin_batch(k, next);

    if (!err)
        err = portion_choose(k, pos, &first);
    if (!err && joins(k))
        err = node_join(k);
    if (!err)
        err = apply_batch(k, next);
    if (!err)
        count_portion(k, first, *pos);
    return err;
}

static void count_joins(struct keeper *k)
{
    for (size_t i = 0; i < k->tree.count; i++) {
        const struct hd_tree_node *node = &k->tree.nodes[i];

        if (!node->is_gone && node->parent != node->joined)
            count_parent(k, node, node->parent, node->joined);
    }
}

static int remove_all(struct keeper *k)
{
    struct hd_collection collection = {.thread = k->thread,
                                       .has_lane = k->has_lane,
                                       .removed = k->keep->removed ? &k->removed : NULL};
    size_t pos = 0;
    int err;

    do
        err = remove_portion(k, &pos);
    while (!err && pos < k->tree.count);
    if (err)
        return err;
    count_joins(k);
    collection.epoch = k->epoch;
    return hd_collect(k->store, &collection, k->fault);
}

/* ---- dry run ---- */

static int fill_doomed(struct keeper *k, struct hd_map *doomed)
{
    int err = 0;

    for (size_t i = 0; !err && i < k->tree.count; i++) {
        struct hd_tree_node *node = &k->tree.nodes[i];
        struct hd_slice name;

        if (node->is_kept)
            continue;
        node->is_gone = true;
        count_node(k, node);
        err = hd_prune_name(&k->tree.arena, k->tree.spaces[node->space].ns, node->id, &name);
        if (!err)
            err = hd_map_put(doomed, name, node);
    }
    return err;
}

static void foresee_joins(struct keeper *k)
{
    for (size_t i = 0; i < k->tree.count; i++) {
        struct hd_tree_node *node = &k->tree.nodes[i];

        while (!node->is_gone && node->joined != HD_NO_NODE && k->tree.nodes[node->joined].is_gone)
            node->joined = k->tree.nodes[node->joined].parent;
    }
    count_joins(k);
}

static int foresee(struct keeper *k)
{
    struct hd_map doomed;
    struct hd_collection collection = {
        .thread = k->thread, .doomed = &doomed, .removed = &k->removed};
    int err;

    hd_map_init(&doomed, SIZE_MAX / 2);
    err = fill_doomed(k, &doomed);
    if (!err && joins(k))
        foresee_joins(k);
    if (!err)
        err = hd_collect(k->store, &collection, k->fault);
    hd_map_fini(&doomed);
    return err;
}

/* ---- the whole prune ---- */

static int keep_once(struct keeper *k)
{
    int err = read_thread(k);

    if (err)
        return err;
    hd_tree_init(&k->tree);
    hd_batch_init(&k->batch);
    err = hd_tree_read(&k->tree, k->store, k->thread, k->keep, k->fault);
    for (size_t i = 0; i < k->tree.count; i++)
        k->tree.nodes[i].joined = k->tree.nodes[i].parent;
    if (!err)
        err = count_writes(k);
    if (!err)
        err = k->keep->is_dry ? foresee(k) : remove_all(k);
    hd_batch_fini(&k->batch);
    hd_tree_fini(&k->tree);
    return err;
}

static int keep_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                    struct heddle_error *fault)
{
    struct keeper *k = arg;
    struct hd_conflict_retry retry = {0};
    int err;

    (void)lane;
    k->has_lane = true;
    k->fault = fault;
    do
        err = keep_once(k);
    while (err == HD_ECONFLICT && !k->is_refused && hd_conflict_retry(store, &retry, &err, fault));
    return err;
}

/* The thread does not exist: only the operations of `rows` are applied. */
static int apply_also(struct keeper *k)
{
    int err;

    if (!k->keep->also || k->is_done || k->keep->is_dry)
        return 0;
    hd_batch_init(&k->batch);
    err = hd_batch_append(&k->batch, k->keep->also);
    if (!err)
        err = hd_prune_apply(k->store, k->thread, &k->batch, k->has_lane, NULL, k->fault);
    hd_batch_fini(&k->batch);
    return err;
}

int hd_prune_thread(struct hd_store *store, struct hd_slice thread,
                    const struct hd_prune_options *keep, struct heddle_error *fault)
{
    struct keeper k = {.store = store, .thread = thread, .keep = keep};
    int err = HD_ECONFLICT;

    for (int i = 0; err == HD_ECONFLICT && !k.is_refused && i < LOOSE; i++) {
        struct heddle_error told = {0};

        k.fault = &told;
        err = keep_once(&k);
        if (err && (err != HD_ECONFLICT || k.is_refused) && told.code)
            hd_error_set(fault, err, "%s", told.text);
    }
    k.fault = fault;
    if (err == HD_ECONFLICT && !k.is_refused)
        err = hd_lane_job(store, thread, keep_job, &k, fault);
    if (err == HD_ENOTFOUND)
        err = apply_also(&k);
    if (!err && keep->removed) {
        keep->removed->checkpoints += k.removed.checkpoints;
        keep->removed->writes += k.removed.writes;
        keep->removed->chunks += k.removed.chunks;
        keep->removed->bytes += k.removed.bytes;
    }
    return err;
}
