/*
 * Copies a thread row by row: the same chunks under the same numbers, so the references stay as
 * they are. Metadata that contain the thread's id contain the copy's id instead.
 *
 * The source's checkpoints and writes are read, then its chunks. If its epoch is even and unchanged
 * then, all chunks that the rows name were read; otherwise the copy starts again. An odd epoch
 * means that a collector is deleting chunks, perhaps those of a write that was replaced after it
 * was read here: the copy makes the epoch even first, and the collector starts over. The last batch
 * expects the epoch once more, so that rows deleted from the source meanwhile do not survive in the
 * copy. A copy that fits into one batch is one batch.
 *
 * For a larger one the target's row comes first, with an odd epoch and created at 0: such a thread
 * is invisible. The chunks are added in batches, and the rows follow in one batch that makes the
 * epoch even, so the target never appears half copied. Another writer of that thread, also after a
 * copier died, takes it over by changing the epoch, which all these batches expect.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/lane.h"
#include "store/retry.h"
#include "store/scan.h"

#define MAX_METADATA ((size_t)256 << 20)
#define BATCH_BYTES ((size_t)4 << 20)

struct copier {
    struct hd_store *store;
    struct hd_slice source, target;
    struct heddle_error *fault;
    struct hd_batch_builder head;   /* the rows that make the thread visible */
    struct hd_batch_builder chunks; /* flushed as it fills */
    struct hd_batch_builder rows;   /* checkpoints and writes */
    enum hd_table_id table;
    int64_t epoch; /* of the target while it is built: odd */
    bool is_begun; /* the target has its row */
};

static int add_thread_row(struct copier *c, int64_t epoch, int64_t created)
{
    struct hd_cell cells[] = {
        [HD_THREADS_ID] = hd_cell_bytes(c->target),
        [HD_THREADS_EPOCH] = hd_cell_int(epoch),
        [HD_THREADS_CREATED] = hd_cell_int(created),
        [HD_THREADS_UPDATED] = hd_cell_int(hd_clock_now_us()),
    };

    return hd_batch_row(&c->head, HD_OP_ADD, HD_THREADS, cells);
}

static int copy_apply(struct copier *c, const struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    size_t failed;

    return hd_backend_apply(c->store->backend, &batch, &failed, c->fault);
}

static int copy_begin(struct copier *c)
{
    int err = add_thread_row(c, c->epoch, 0);

    if (!err)
        err = copy_apply(c, &c->head);
    hd_batch_reset(&c->head);
    c->is_begun = !err;
    return err;
}

static int flush_chunks(struct copier *c)
{
    int err = c->is_begun ? 0 : copy_begin(c);

    if (!err)
        err = hd_batch_expect_epoch(&c->chunks, c->target, c->epoch, 0, 0);
    if (!err)
        err = copy_apply(c, &c->chunks);
    hd_batch_reset(&c->chunks);
    return err;
}

/* The part of a stored key, `principal:thread_id`, that metadata contain. */
static struct hd_slice copy_thread_id(struct hd_slice key)
{
    const char *colon = key.len > 0 ? memchr(key.ptr, ':', key.len) : NULL;
    size_t skip = colon ? (size_t)(colon - key.ptr) + 1 : 0;

    return hd_slice(key.ptr + skip, key.len - skip);
}

static int write_metadata(hd_json_val metadata, struct hd_slice id, struct hd_arena *arena,
                          struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(metadata);
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_METADATA);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        hd_jw_key(&jw, it.key);
        if (hd_slice_eq(it.key, HD_S("thread_id")))
            hd_jw_string(&jw, id);
        else
            hd_jw_val(&jw, it.val);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, arena, out);
}

/* Metadata that cannot be parsed are copied unchanged. */
static int copy_metadata(const struct copier *c, struct hd_arena *arena, struct hd_slice *metadata)
{
    struct hd_json json = {NULL};
    hd_json_val root;
    int err = hd_json_parse(&json, *metadata, NULL);

    if (err == HD_ENOMEM)
        return err;
    root = err ? NULL : hd_json_root(&json);
    if (hd_slice_eq(hd_json_string(hd_json_get(root, HD_S("thread_id"))),
                    copy_thread_id(c->source)))
        err = write_metadata(root, copy_thread_id(c->target), arena, metadata);
    else
        err = hd_arena_copy(arena, *metadata, metadata);
    hd_json_fini(&json);
    return err;
}

static int copy_on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct copier *c = arg;
    struct hd_batch_builder *batch = c->table == HD_CHUNKS ? &c->chunks : &c->rows;
    struct hd_cell row[HD_MAX_COLUMNS];
    int err = 0;

    (void)which;
    for (unsigned i = 0; !err && i < hd_tables[c->table].column_count; i++) {
        row[i] = cells[i];
        if (i == 0) /* every table's first column is the thread */
            row[i].bytes = c->target;
        else if (c->table == HD_CHECKPOINTS && i == HD_CHECKPOINTS_METADATA)
            err = copy_metadata(c, &batch->arena, &row[i].bytes);
        else if (row[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(&batch->arena, row[i].bytes, &row[i].bytes);
    }
    if (!err)
        err = hd_batch_row(batch, HD_OP_ADD, c->table, row);
    if (!err && c->chunks.bytes > BATCH_BYTES)
        err = flush_chunks(c);
    return err;
}

static int copy_table(struct copier *c, enum hd_table_id table)
{
    struct hd_cell key = hd_cell_bytes(c->source);
    struct hd_query query = {.table = table,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};

    c->table = table;
    return hd_scan(c->store->backend, query, copy_on_row, c, c->fault);
}

/* HD_ECONFLICT: chunks of the source were deleted meanwhile. */
static int check_source(struct copier *c, int64_t epoch)
{
    int64_t now;
    int err = hd_store_read_epoch(c->store, c->source, &now, c->fault);

    return !err && now != epoch ? HD_ECONFLICT : err;
}

/* The remaining rows, as one batch. */
static int copy_finish(struct copier *c, int64_t source_epoch)
{
    const struct hd_batch_builder *parts[] = {&c->head, &c->chunks, &c->rows};
    struct hd_batch batch = {NULL, 0};
    struct hd_op *ops;
    size_t failed;
    int err = c->is_begun
                  ? hd_batch_renew(&c->head, c->target, c->epoch, c->epoch + 1, hd_clock_now_us())
                  : add_thread_row(c, c->epoch + 1, hd_clock_now_us());

    if (!err)
        err = hd_batch_expect_epoch(&c->head, c->source, source_epoch, 0, 0);
    if (err)
        return err;
    ops = hd_arena_calloc(&c->head.arena, c->head.count + c->chunks.count + c->rows.count,
                          sizeof(*ops));
    if (!ops)
        return HD_ENOMEM;
    for (size_t i = 0; i < HD_COUNT(parts); i++) {
        if (parts[i]->count)
            memcpy(ops + batch.count, parts[i]->ops, parts[i]->count * sizeof(*ops));
        batch.count += parts[i]->count;
    }
    batch.ops = ops;
    return hd_backend_apply(c->store->backend, &batch, &failed, c->fault);
}

struct target_row {
    bool is_there;
    int64_t epoch, created;
};

static int on_target(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(struct target_row *)arg =
        (struct target_row){true, cells[HD_THREADS_EPOCH].number, cells[HD_THREADS_CREATED].number};
    return 0;
}

/* Clears a conflict with the target. HD_ECONFLICT: cleared, retry. */
static int examine_target(struct copier *c)
{
    struct hd_cell key = hd_cell_bytes(c->target);
    struct hd_query query = {.table = HD_THREADS,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};
    struct target_row row = {.is_there = false};
    int err = hd_backend_read(c->store->backend, &query, 1, on_target, &row, c->fault);

    if (err)
        return err;
    if (row.is_there && row.epoch == c->epoch + 1)
        return 0; /* our own batch: the reply was lost and the batch was sent again */
    if (row.is_there && row.created != 0)
        return hd_error_set(c->fault, HD_EEXISTS, "the target thread exists already");
    err = row.is_there ? hd_delete_rows(c->store, c->target, &row.epoch, c->fault) : 0;
    return err ? err : HD_ECONFLICT;
}

static int copy_once(struct copier *c, int64_t source_epoch)
{
    int err = hd_epoch_create(&c->epoch);

    c->epoch |= 1;
    if (!err)
        err = copy_table(c, HD_CHECKPOINTS);
    if (!err)
        err = copy_table(c, HD_WRITES);
    if (!err)
        err = copy_table(c, HD_CHUNKS);
    if (!err)
        err = check_source(c, source_epoch);
    if (!err)
        err = copy_finish(c, source_epoch);
    if (err == HD_ECONFLICT) {
        *c->fault = (struct heddle_error){0};
        return examine_target(c);
    }
    if (err && c->is_begun) { /* the first error is reported, not one of the clean-up */
        int ignored = hd_delete_rows(c->store, c->target, &c->epoch, NULL);

        (void)ignored;
    }
    return err;
}

/* HD_ECONFLICT: another writer changed it meanwhile. */
static int read_source_epoch(struct copier *c, int64_t *epoch)
{
    struct hd_batch_builder builder;
    int err = hd_store_read_epoch(c->store, c->source, epoch, c->fault);

    if (err || (*epoch & 1) == 0)
        return err;
    hd_batch_init(&builder);
    err = hd_batch_expect_epoch(&builder, c->source, *epoch, HD_THREADS_EPOCH, *epoch + 1);
    if (!err)
        err = copy_apply(c, &builder);
    hd_batch_fini(&builder);
    *epoch += 1;
    return err;
}

static int copy_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                    struct heddle_error *fault)
{
    struct copier *c = arg;
    struct hd_conflict_retry retry = {0};
    int64_t epoch;
    int err;

    (void)lane;
    c->fault = fault;
    do {
        c->is_begun = false;
        hd_batch_init(&c->head);
        hd_batch_init(&c->chunks);
        hd_batch_init(&c->rows);
        err = read_source_epoch(c, &epoch);
        if (!err)
            err = copy_once(c, epoch);
        hd_batch_fini(&c->head);
        hd_batch_fini(&c->chunks);
        hd_batch_fini(&c->rows);
    } while (err == HD_ECONFLICT && hd_conflict_retry(store, &retry, &err, fault));
    return err == HD_ENOTFOUND ? 0 : err;
}

int hd_copy_thread(struct hd_store *store, struct hd_slice source, struct hd_slice target,
                   struct heddle_error *fault)
{
    struct copier copier = {.store = store, .source = source, .target = target};

    if (hd_slice_eq(source, target))
        return hd_error_set(fault, HD_EEXISTS, "a thread cannot be copied onto itself");
    return hd_lane_job(store, target, copy_job, &copier, fault);
}
