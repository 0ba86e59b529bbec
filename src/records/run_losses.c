#include "records/run_losses.h"

#include "base/arena.h"
#include "records/record.h"
#include "store/rows.h"

static int on_loss_row(void *arg, size_t which, const struct hd_cell *cells)
{
    int64_t *counts = arg;

    (void)cells;
    counts[which]++;
    return 0;
}

/* Reads keys alone. A step that is repeated replaces its writes, so their number does not grow. */
static int count_rows(struct heddle *store, struct hd_slice thread, struct hd_slice run_id,
                      int64_t counts[2], struct heddle_error *fault)
{
    const struct hd_cell by_run[] = {hd_cell_bytes(run_id), hd_cell_bytes(thread)};
    const struct hd_cell by_thread[] = {hd_cell_bytes(thread)};
    const struct hd_query queries[] = {{.table = HD_CHECKPOINTS,
                                        .index = HD_CHECKPOINTS_BY_RUN,
                                        .prefix = by_run,
                                        .prefix_count = HD_COUNT(by_run)},
                                       {.table = HD_WRITES,
                                        .index = HD_PRIMARY,
                                        .prefix = by_thread,
                                        .prefix_count = HD_COUNT(by_thread)}};

    return hd_rows_read(store, queries, HD_COUNT(queries), on_loss_row, counts, fault);
}

int hd_run_losses_add(struct hd_run_losses *losses, struct heddle *store, struct hd_slice principal,
                      struct hd_slice thread_id, struct hd_slice run_id, struct heddle_error *fault)
{
    int64_t counts[2] = {0, 0};
    struct hd_arena arena;
    struct hd_slice thread;
    int err;

    hd_arena_init(&arena, 4096);
    err = hd_thread_lane(&arena, principal, thread_id, &thread);
    if (!err)
        err = count_rows(store, thread, run_id, counts, fault);
    hd_arena_fini(&arena);
    if (err)
        return err;
    if (counts[0] != losses->checkpoints || counts[1] != losses->writes)
        losses->count = 0;
    losses->count++;
    losses->checkpoints = counts[0];
    losses->writes = counts[1];
    return 0;
}
