/*
 * Deletes threads, runs, old checkpoints, and unreferenced chunks.
 *
 * Chunks have no reference counts: counting would make every put write to all chunks it shares.
 * Instead, after checkpoints were deleted, the thread's remaining references are read and the
 * chunks that none of them names are deleted. Writers in other processes may continue. Three steps
 * keep them safe:
 *
 *   1. One batch deletes the checkpoints and makes the epoch odd. From then on
 *      every writer that planned with the old epoch conflicts, reads the new
 *      one, and while it is odd refers to no old chunk at all.
 *   2. The chunks are listed, then the references are read. A chunk that is
 *      listed in this order and has no reference cannot come into use any more.
 *   3. Those chunks are deleted in batches that expect the odd epoch and make
 *      it the next odd one; the last makes it even again.
 *
 * A collector that dies in between leaves an odd epoch: the thread stays correct, only sharing
 * pauses until the next prune, or a writer that has seen it for half a minute (plan.c), takes over.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/lane.h"
#include "store/prune.h"
#include "store/retry.h"
#include "store/scan.h"

enum { ROUNDS = 10, DELETE_BATCH = 1000 };

static struct hd_query thread_query(enum hd_table_id table, const struct hd_cell *thread,
                                    unsigned columns)
{
    return (struct hd_query){.table = table,
                             .index = HD_PRIMARY,
                             .prefix = thread,
                             .prefix_count = 1,
                             .columns = columns};
}

static int collector_apply(struct hd_store *store, struct hd_batch_builder *builder,
                           struct heddle_error *fault)
{
    struct hd_batch batch = hd_batch_view(builder);
    size_t failed;

    return hd_backend_apply(store->backend, &batch, &failed, fault);
}

/* ---- the whole thread ---- */

int hd_delete_rows(struct hd_store *store, struct hd_slice thread, const int64_t *epoch,
                   struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err = 0;

    hd_batch_init(&batch);
    if (epoch)
        err = hd_batch_expect_epoch(&batch, thread, *epoch, 0, 0);
    if (!err)
        err = hd_batch_erase(&batch, thread);
    if (!err)
        err = collector_apply(store, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

static int delete_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                      struct heddle_error *fault)
{
    (void)lane;
    return hd_delete_rows(store, *(struct hd_slice *)arg, NULL, fault);
}

int hd_delete_thread(struct hd_store *store, struct hd_slice thread, struct heddle_error *fault)
{
    return hd_lane_job(store, thread, delete_job, &thread, fault);
}

/* ---- collecting chunks ---- */

struct chunk {
    struct hd_slice sequence;
    int64_t seq;
    int64_t bytes; /* size of the row, when counting */
    bool is_live;
};

struct collector {
    struct hd_store *store;
    struct hd_slice thread;
    int64_t epoch;
    bool has_lane; /* see prune.h, like the next two */
    const struct hd_map *doomed;
    struct heddle_usage *removed;
    struct heddle_error *fault;
    HD_VEC(struct chunk) chunks; /* ordered by (sequence, seq) */
    struct hd_arena arena;       /* sequence names */
    struct hd_arena scratch;     /* of one row */
};

static int collector_on_chunk(void *arg, size_t which, const struct hd_cell *cells)
{
    struct collector *c = arg;
    struct hd_slice sequence = cells[HD_CHUNKS_STREAM].bytes;
    const struct chunk *last = c->chunks.count ? &c->chunks.items[c->chunks.count - 1] : NULL;
    int err = 0;

    (void)which;
    if (last && hd_slice_eq(last->sequence, sequence))
        sequence = last->sequence;
    else
        err = hd_arena_copy(&c->arena, sequence, &sequence);
    if (!err)
        err = hd_vec_push(&c->chunks, (struct chunk){.sequence = sequence,
                                                     .seq = cells[HD_CHUNKS_SEQ].number,
                                                     .bytes = hd_row_bytes(HD_CHUNKS, cells)});
    return err;
}

/* The first chunk that is not before (sequence, seq). */
static size_t lower_bound(const struct collector *c, struct hd_slice sequence, int64_t seq)
{
    size_t low = 0, high = c->chunks.count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = hd_slice_cmp(c->chunks.items[mid].sequence, sequence);

        if (order < 0 || (order == 0 && c->chunks.items[mid].seq < seq))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int mark(struct collector *c, struct hd_slice encoded, struct hd_slice own)
{
    struct hd_ref ref;
    int err = hd_ref_parse(encoded, own, &c->scratch, &ref);

    if (err)
        return err;
    for (size_t i = 0; i < ref.segment_count; i++) {
        const struct hd_segment *extent = &ref.segments[i];

        if (!extent->is_extent)
            continue;
        for (size_t n = lower_bound(c, extent->sequence, extent->start);
             n < c->chunks.count && hd_slice_eq(c->chunks.items[n].sequence, extent->sequence) &&
             c->chunks.items[n].seq < extent->start + (int64_t)extent->count;
             n++)
            c->chunks.items[n].is_live = true;
    }
    return 0;
}

/* 1: it counts as deleted. Resets nothing, and needs the scratch. */
static int is_doomed(struct collector *c, struct hd_slice ns, struct hd_slice id)
{
    struct hd_slice name;
    int err;

    if (!c->doomed)
        return 0;
    err = hd_prune_name(&c->scratch, ns, id, &name);
    return err ? err : hd_map_get(c->doomed, name) != NULL;
}

static int mark_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    struct collector *c = arg;
    struct hd_checkpoint_body body;
    struct hd_slice encoded;
    int err;

    (void)which;
    hd_arena_reset(&c->scratch);
    err = is_doomed(c, cells[HD_CHECKPOINTS_NS].bytes, cells[HD_CHECKPOINTS_ID].bytes);
    if (err)
        return err < 0 ? err : 0;
    err = hd_unpack_copy(&c->scratch, cells[HD_CHECKPOINTS_BODY].bytes, &encoded);
    if (!err)
        err = hd_checkpoint_body_parse(encoded, &c->scratch, &body);
    for (size_t i = 0; !err && i < body.entry_count; i++)
        err = mark(c, body.entries[i].ref, body.entries[i].channel);
    return err;
}

static int mark_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct collector *c = arg;
    int err;

    (void)which;
    hd_arena_reset(&c->scratch);
    err = is_doomed(c, cells[HD_WRITES_NS].bytes, cells[HD_WRITES_CHECKPOINT].bytes);
    if (err)
        return err < 0 ? err : 0;
    return mark(c, cells[HD_WRITES_VALUE].bytes, cells[HD_WRITES_CHANNEL].bytes);
}

static int find_dead(struct collector *c)
{
    struct hd_cell thread = hd_cell_bytes(c->thread);
    struct hd_backend *backend = c->store->backend;
    /* Chunks before references: see the top of this file. */
    int err = hd_scan(backend, thread_query(HD_CHUNKS, &thread, c->removed ? HD_ALL_COLUMNS : 0),
                      collector_on_chunk, c, c->fault);

    if (!err)
        err = hd_scan(backend, thread_query(HD_CHECKPOINTS, &thread, 1u << HD_CHECKPOINTS_BODY),
                      mark_checkpoint, c, c->fault);
    if (!err)
        err = hd_scan(
            backend,
            thread_query(HD_WRITES, &thread, 1u << HD_WRITES_CHANNEL | 1u << HD_WRITES_VALUE),
            mark_write, c, c->fault);
    return err;
}

/*
 * Up to DELETE_BATCH dead chunks from *pos on; the last batch ends the collection. Each changes the
 * epoch, so that readers notice (retry.h), and so that none is applied twice: the freed numbers may
 * be in use again by then.
 */
static int delete_dead(struct collector *c, struct hd_batch_builder *batch, size_t *pos)
{
    size_t dead = 0;
    int64_t next;
    int err = 0;

    hd_batch_reset(batch);
    for (; !err && *pos < c->chunks.count && dead < DELETE_BATCH; (*pos)++) {
        struct hd_cell key[] = {hd_cell_bytes(c->thread),
                                hd_cell_bytes(c->chunks.items[*pos].sequence),
                                hd_cell_int(c->chunks.items[*pos].seq)};

        if (c->chunks.items[*pos].is_live)
            continue;
        if (dead++ == 0)
            err = hd_batch_expect_epoch(batch, c->thread, c->epoch, HD_THREADS_EPOCH, c->epoch);
        if (!err)
            err = hd_batch_delete(batch, HD_CHUNKS, key, 3);
    }
    next = c->epoch + (*pos < c->chunks.count ? 2 : 1);
    if (!err)
        err = hd_batch_expect_epoch(batch, c->thread, c->epoch, HD_THREADS_EPOCH, next);
    if (!err)
        err = hd_prune_apply(c->store, c->thread, batch, c->has_lane, NULL, c->fault);
    c->epoch = next;
    return err;
}

static void count_dead(const struct collector *c)
{
    for (size_t i = 0; i < c->chunks.count; i++) {
        if (c->chunks.items[i].is_live)
            continue;
        c->removed->chunks++;
        c->removed->bytes += c->chunks.items[i].bytes;
    }
}

int hd_collect(struct hd_store *store, const struct hd_collection *collection,
               struct heddle_error *fault)
{
    struct collector c = {.store = store,
                          .thread = collection->thread,
                          .epoch = collection->epoch,
                          .has_lane = collection->has_lane,
                          .doomed = collection->doomed,
                          .removed = collection->removed,
                          .fault = fault};
    struct hd_batch_builder batch;
    size_t pos = 0;
    int err;

    hd_arena_init(&c.arena, SIZE_MAX / 2);
    hd_arena_init(&c.scratch, SIZE_MAX / 2);
    hd_batch_init(&batch);
    err = find_dead(&c);
    while (!err && !c.doomed) {
        err = delete_dead(&c, &batch, &pos);
        if (pos == c.chunks.count)
            break;
    }
    if (!err && c.removed)
        count_dead(&c);
    hd_batch_fini(&batch);
    hd_arena_fini(&c.scratch);
    hd_arena_fini(&c.arena);
    hd_vec_fini(&c.chunks);
    return err;
}

/* ---- deleting some checkpoints ---- */

struct doomed {
    struct hd_slice thread;
    HD_VEC(struct hd_key) keys;
    struct hd_arena arena;
};

static void doomed_init(struct doomed *doomed, struct hd_slice thread)
{
    memset(doomed, 0, sizeof(*doomed));
    doomed->thread = thread;
    hd_arena_init(&doomed->arena, SIZE_MAX / 2);
}

static void doomed_fini(struct doomed *doomed)
{
    hd_arena_fini(&doomed->arena);
    hd_vec_fini(&doomed->keys);
}

static int doom(struct doomed *doomed, struct hd_slice thread, struct hd_slice ns,
                struct hd_slice id)
{
    struct hd_key key = {0};
    int err = hd_arena_copy(&doomed->arena, thread, &key.thread);

    if (!err)
        err = hd_arena_copy(&doomed->arena, ns, &key.ns);
    if (!err)
        err = hd_arena_copy(&doomed->arena, id, &key.id);
    return err ? err : hd_vec_push(&doomed->keys, key);
}

static int collector_on_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    if (cells[HD_THREADS_CREATED].number != 0) /* otherwise a copy is in progress: see copy.c */
        *(int64_t *)arg = cells[HD_THREADS_EPOCH].number;
    return 0;
}

int hd_store_read_epoch(struct hd_store *store, struct hd_slice thread, int64_t *epoch,
                        struct heddle_error *fault)
{
    struct hd_cell key = hd_cell_bytes(thread);
    struct hd_query query = thread_query(HD_THREADS, &key, HD_ALL_COLUMNS);
    int err;

    *epoch = -1;
    err = hd_backend_read(store->backend, &query, 1, collector_on_thread, epoch, fault);
    if (err)
        return err;
    return *epoch == -1 ? HD_ENOTFOUND : 0;
}

static int delete_keys(struct hd_store *store, const struct hd_key *keys, size_t count,
                       struct hd_slice thread, int64_t epoch, int64_t next,
                       struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_batch_expect_epoch(&batch, thread, epoch, HD_THREADS_EPOCH, next);
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_cell key[] = {hd_cell_bytes(keys[i].thread), hd_cell_bytes(keys[i].ns),
                                hd_cell_bytes(keys[i].id)};

        err = hd_batch_delete(&batch, HD_CHECKPOINTS, key, 3);
        if (!err)
            err = hd_batch_delete(&batch, HD_WRITES, key, 3);
    }
    if (!err)
        err = collector_apply(store, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The next odd epoch: begins a collection, or takes over an abandoned one. */
static int64_t odd_after(int64_t epoch)
{
    return epoch & 1 ? epoch + 2 : epoch + 1;
}

/* Deletes `keys` of one thread at the epoch they were chosen at, then collects. */
static int delete_and_collect(struct hd_store *store, struct hd_slice thread,
                              const struct hd_key *keys, size_t count, int64_t epoch,
                              struct heddle_error *fault)
{
    int64_t collecting = odd_after(epoch);
    int err = delete_keys(store, keys, count, thread, epoch, collecting, fault);

    const struct hd_collection collection = {
        .thread = thread, .epoch = collecting, .has_lane = true};

    return err ? err : hd_collect(store, &collection, fault);
}

/* ---- runs ---- */

struct run_search {
    const struct heddle_bytes *runs;
    size_t run_count;
    struct hd_slice principal;
    struct hd_slice thread; /* if limited to one thread */
    struct doomed *doomed;
};

static int on_run(void *arg, size_t which, const struct hd_cell *cells)
{
    struct run_search *search = arg;
    struct hd_slice thread = cells[HD_CHECKPOINTS_THREAD].bytes;
    struct hd_slice principal = search->principal;

    (void)which;
    if (thread.len <= principal.len || thread.ptr[principal.len] != ':' ||
        !hd_slice_starts(thread, principal))
        return 0;
    return doom(search->doomed, thread, cells[HD_CHECKPOINTS_NS].bytes,
                cells[HD_CHECKPOINTS_ID].bytes);
}

/* Selects the checkpoints of the runs, in one thread or in all of the principal. */
static int find_runs(struct hd_store *store, struct run_search *search, struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < search->run_count; i++) {
        struct hd_cell prefix[] = {hd_cell_bytes(hd_from_public(search->runs[i])),
                                   hd_cell_bytes(search->thread)};
        struct hd_query query = {.table = HD_CHECKPOINTS,
                                 .index = HD_CHECKPOINTS_BY_RUN,
                                 .prefix = prefix,
                                 .prefix_count = search->thread.len ? 2 : 1};

        if (search->runs[i].len > 0)
            err = hd_backend_read(store->backend, &query, 1, on_run, search, fault);
    }
    return err;
}

/* The runs' checkpoints are searched at the epoch at which they are deleted: puts may add some. */
static int delete_runs_once(struct hd_store *store, struct run_search *search,
                            struct heddle_error *fault)
{
    struct doomed doomed;
    int64_t epoch;
    int err = hd_store_read_epoch(store, search->thread, &epoch, fault);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    doomed_init(&doomed, search->thread);
    search->doomed = &doomed;
    err = find_runs(store, search, fault);
    if (!err && doomed.keys.count > 0)
        err = delete_and_collect(store, search->thread, doomed.keys.items, doomed.keys.count, epoch,
                                 fault);
    search->doomed = NULL;
    doomed_fini(&doomed);
    return err;
}

static int delete_runs_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                           struct heddle_error *fault)
{
    struct hd_conflict_retry retry = {0};
    int err;

    (void)lane;
    do
        err = delete_runs_once(store, arg, fault);
    while (err == HD_ECONFLICT && hd_conflict_retry(store, &retry, &err, fault));
    return err;
}

static int by_thread(const void *a, const void *b)
{
    const struct hd_key *x = a, *y = b;

    return hd_slice_cmp(x->thread, y->thread);
}

/* Thread by thread, each in its lane. *found: there were any. */
static int delete_found_runs(struct hd_store *store, const struct run_search *wanted, bool *found,
                             struct heddle_error *fault)
{
    struct run_search search = *wanted;
    struct doomed doomed;
    int err;

    doomed_init(&doomed, hd_slice(NULL, 0));
    search.doomed = &doomed;
    search.thread = hd_slice(NULL, 0);
    err = find_runs(store, &search, fault);
    if (doomed.keys.count > 1)
        qsort(doomed.keys.items, doomed.keys.count, sizeof(*doomed.keys.items), by_thread);
    for (size_t i = 0; !err && i < doomed.keys.count; i++) {
        if (i > 0 && hd_slice_eq(doomed.keys.items[i].thread, doomed.keys.items[i - 1].thread))
            continue;
        search.thread = doomed.keys.items[i].thread;
        err = hd_lane_job(store, search.thread, delete_runs_job, &search, fault);
    }
    *found = doomed.keys.count > 0;
    doomed_fini(&doomed);
    return err;
}

/*
 * Until none is left, because a thread may have been copied before its turn; but not while writers
 * keep adding new ones.
 */
int hd_delete_runs(struct hd_store *store, struct hd_slice principal,
                   const struct heddle_bytes *runs, size_t count, struct heddle_error *fault)
{
    struct run_search search = {.runs = runs, .run_count = count, .principal = principal};
    bool found = true;
    int err = hd_check_principal(principal, fault);

    for (int round = 0; !err && found && round < ROUNDS; round++)
        err = delete_found_runs(store, &search, &found, fault);
    return err;
}
