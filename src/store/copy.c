/*
 * Copying a thread row by row: the same chunks under the same numbers, so the
 * references stay as they are.
 *
 * The target's row comes first, with an odd epoch: whoever writes there
 * meanwhile shares nothing and assumes nothing to be absent. Then the source's
 * checkpoints and writes are read, then its chunks, which are added to the
 * target in batches. If the source's epoch is still the same, all chunks that
 * the rows name were there, and the rows follow all at once: the target is
 * never seen half. Otherwise everything begins again.
 */
#include "base/clock.h"
#include "store/lane.h"
#include "store/scan.h"

enum { ATTEMPTS = 5 };
#define BATCH_BYTES ((size_t)4 << 20)

struct copier {
    struct hd_store *store;
    struct hd_slice source, target;
    struct hd_fault *fault;
    struct hd_batch_builder rows;   /* checkpoints and writes */
    struct hd_batch_builder chunks; /* flushed as it fills */
    enum hd_table_id table;
    int64_t epoch; /* of the target, odd */
};

static int flush(struct copier *c, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    size_t failed;
    int err = batch.count ? hd_backend_apply(c->store->backend, &batch, &failed, c->fault) : 0;

    hd_batch_reset(builder);
    return err;
}

static int on_row(void *arg, size_t which, const struct hd_cell *cells)
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
        else if (row[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(&batch->arena, row[i].bytes, &row[i].bytes);
    }
    if (!err)
        err = hd_batch_row(batch, HD_OP_ADD, c->table, row);
    if (!err && c->chunks.bytes > BATCH_BYTES)
        err = flush(c, &c->chunks);
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
    return hd_scan(c->store->backend, query, on_row, c, c->fault);
}

static int add_thread_row(struct copier *c)
{
    int64_t now = hd_clock_now_us();
    struct hd_cell cells[] = {
        [HD_THREADS_ID] = hd_cell_bytes(c->target),
        [HD_THREADS_EPOCH] = hd_cell_int(c->epoch),
        [HD_THREADS_CREATED] = hd_cell_int(now),
        [HD_THREADS_UPDATED] = hd_cell_int(now),
    };
    int err = hd_batch_row(&c->rows, HD_OP_ADD, HD_THREADS, cells);

    return err ? err : flush(c, &c->rows);
}

static int copy_rows(struct copier *c)
{
    int err = hd_batch_expect_epoch(&c->rows, c->target, c->epoch, HD_THREADS_EPOCH, c->epoch + 1);

    if (!err)
        err = copy_table(c, HD_CHECKPOINTS);
    if (!err)
        err = copy_table(c, HD_WRITES);
    if (!err)
        err = copy_table(c, HD_CHUNKS);
    return err ? err : flush(c, &c->chunks);
}

/* HD_EBUSY: the source lost chunks meanwhile, or is gone. */
static int copy_once(struct copier *c, int64_t source_epoch)
{
    int64_t now;
    int err = hd_epoch_create(&c->epoch);

    c->epoch |= 1;
    if (!err)
        err = add_thread_row(c);
    if (err == HD_ECONFLICT)
        return hd_fault_set(c->fault, HD_EEXISTS, "the target thread exists already");
    if (!err)
        err = copy_rows(c);
    if (!err)
        err = hd_read_epoch(c->store, c->source, &now, c->fault);
    if (!err && now != source_epoch)
        err = HD_EBUSY;
    if (!err)
        err = flush(c, &c->rows);
    if (err) { /* what went wrong matters more than whether this works */
        int ignored = hd_delete_rows(c->store, c->target, NULL);

        (void)ignored;
    }
    return err;
}

static int copy_job(struct hd_store *store, struct hd_lane *lane, void *arg, struct hd_fault *fault)
{
    struct copier *c = arg;
    int64_t epoch;
    int err = HD_EBUSY;

    (void)lane;
    c->fault = fault;
    for (int attempt = 0; err == HD_EBUSY && attempt < ATTEMPTS; attempt++) {
        hd_batch_init(&c->rows);
        hd_batch_init(&c->chunks);
        err = hd_read_epoch(store, c->source, &epoch, fault);
        if (!err)
            err = copy_once(c, epoch);
        hd_batch_fini(&c->rows);
        hd_batch_fini(&c->chunks);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

int hd_copy_thread(struct hd_store *store, struct hd_slice source, struct hd_slice target,
                   struct hd_fault *fault)
{
    struct copier copier = {.store = store, .source = source, .target = target};

    if (hd_slice_eq(source, target))
        return hd_fault_set(fault, HD_EEXISTS, "a thread cannot be copied onto itself");
    return hd_lane_job(store, target, copy_job, &copier, fault);
}
