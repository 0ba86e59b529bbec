#include "store/retry.h"

#include "base/clock.h"

enum { PAUSE_MIN_US = 100, PAUSE_MAX_US = 250000 };

/* From d to 2 d. Close points in time give unrelated pauses. */
static int64_t between(int64_t d, int64_t now, const void *salt)
{
    uint64_t mixed = ((uint64_t)now ^ (uint64_t)(uintptr_t)salt) * 0x9e3779b97f4a7c15u;

    return d + (int64_t)((mixed >> 24) % (uint64_t)d);
}

static int64_t pause_after(const struct hd_conflict_retry *retry, int64_t now)
{
    int64_t pause = (int64_t)PAUSE_MIN_US << (retry->tries < 12 ? retry->tries : 12);
    int64_t took = (now - retry->began_us) * retry->tries, left = retry->until_us - now;

    if (pause > PAUSE_MAX_US)
        pause = PAUSE_MAX_US;
    pause = between(pause > took ? pause : took, now, retry);
    return pause < left ? pause : left;
}

static void fault_clear(struct heddle_error *fault)
{
    if (fault)
        *fault = (struct heddle_error){0};
}

bool hd_conflict_retry(const struct hd_store *store, struct hd_conflict_retry *retry, int *err,
                       struct heddle_error *fault)
{
    int64_t now = hd_clock_monotonic_us();

    fault_clear(fault);
    if (retry->tries == 0) {
        retry->until_us = now + store->timeout_us;
    } else if (now >= retry->until_us && retry->tries >= HD_TRIES_MIN) {
        *err = hd_error_set(fault, HD_EBUSY, "write conflicts continued for %d s",
                            (int)(store->timeout_us / 1000000));
        return false;
    } else if (now < retry->until_us) {
        hd_clock_sleep_us(pause_after(retry, now));
    }
    retry->tries++;
    retry->began_us = hd_clock_monotonic_us();
    return true;
}

/* ---- values that look damaged ---- */

struct epochs {
    uint64_t folded; /* all epochs as one number */
    bool is_there;   /* the latest row exists */
};

static int epoch_on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct epochs *epochs = arg;

    (void)which;
    epochs->folded += (uint64_t)cells[HD_THREADS_EPOCH].number;
    epochs->is_there = true;
    return 0;
}

/* *is_gone: one of the threads does not exist. */
static int read_epochs(struct hd_store *store, const struct hd_key *keys, size_t count,
                       uint64_t *out, bool *is_gone, struct heddle_error *fault)
{
    struct epochs epochs = {0, false};
    int err = 0;

    *is_gone = false;
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_cell thread = hd_cell_bytes(keys[i].thread);
        struct hd_query query = {.table = HD_THREADS,
                                 .index = HD_PRIMARY,
                                 .prefix = &thread,
                                 .prefix_count = 1,
                                 .columns = 1u << HD_THREADS_EPOCH};

        if (i > 0 && hd_slice_eq(keys[i].thread, keys[i - 1].thread))
            continue;
        epochs.folded *= 0x9e3779b97f4a7c15u;
        epochs.is_there = false;
        err = hd_backend_read(store->backend, &query, 1, epoch_on_row, &epochs, fault);
        *is_gone |= !epochs.is_there;
    }
    *out = epochs.folded;
    return err;
}

/*
 * A missing thread may have been created and deleted between two reads; if that is so every time,
 * its rows are remains of an incomplete deletion.
 */
bool hd_conflict_retry_read(struct hd_store *store, struct hd_conflict_retry *retry,
                            const struct hd_key *keys, size_t count, int *err,
                            struct heddle_error *fault)
{
    struct heddle_error cause = {0};
    uint64_t epochs;
    bool is_gone, is_first = retry->tries == 0;
    int problem = read_epochs(store, keys, count, &epochs, &is_gone, &cause);

    if (problem) {
        *err = problem;
        if (fault)
            *fault = cause;
        return false;
    }
    retry->has_changed |= !is_first && epochs != retry->epochs;
    retry->same = !is_first && epochs == retry->epochs && !is_gone ? retry->same + 1 : 0;
    if (retry->same == HD_LOOKS_MIN)
        return false;
    retry->epochs = epochs;
    if (hd_conflict_retry(store, retry, err, fault))
        return true;
    if (!retry->has_changed) {
        *err = HD_ECORRUPT;
        fault_clear(fault);
    }
    return false;
}
