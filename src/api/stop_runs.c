#include "api/stop_runs.h"

#include <string.h>

#include "api/request/forward.h"

static struct hd_step wait_next(struct hd_stop_runs *stop);

static void on_stopped(void *ctx, const struct hd_outcome *outcome)
{
    struct hd_stop_runs *stop = ctx;

    (void)outcome;
    stop->waiter.link = NULL;
    hd_call_resume(stop->call, wait_next(stop));
}

static struct hd_step after_stop(struct hd_stop_runs *stop)
{
    if (stop->elsewhere.has_failed)
        return hd_forward_refuse(stop->call);
    return stop->then(stop->call);
}

/* Waits for the end of one run after the other. */
static struct hd_step wait_next(struct hd_stop_runs *stop)
{
    struct hd_call *call = stop->call;

    while (stop->ended < stop->count) {
        const struct hd_run_rec *run = &stop->runs[stop->ended++];

        stop->waiter.fn = on_stopped;
        stop->waiter.ctx = stop;
        if (hd_queue_wait(call->app->queue, call->principal, run->thread_id, run->run_id,
                          &stop->waiter))
            return HD_WAIT;
    }
    stop->has_all_here = true;
    return stop->is_waiting_elsewhere ? HD_WAIT : after_stop(stop);
}

static void on_stopped_elsewhere(void *ctx)
{
    struct hd_stop_runs *stop = ctx;

    stop->is_waiting_elsewhere = false;
    if (stop->has_all_here)
        hd_call_resume(stop->call, after_stop(stop));
}

/* In reverse order, so that no queued run starts when the one before it ends. */
struct hd_step hd_stop_runs_start(struct hd_stop_runs *stop)
{
    struct hd_call *call = stop->call;

    int err = 0;

    stop->ended = 0;
    stop->has_all_here = false;
    stop->elsewhere = (struct hd_peer_cancel){.call = call,
                                              .action = HD_CANCEL_INTERRUPT,
                                              .waits = true,
                                              .runs = stop->runs,
                                              .count = stop->count,
                                              .done = on_stopped_elsewhere,
                                              .ctx = stop};
    if (stop->count > 0)
        err = hd_peer_cancel_start(&stop->elsewhere);
    if (err < 0)
        return hd_step_fail(err);
    stop->is_waiting_elsewhere = stop->count > 0 && err == 0;
    for (size_t i = stop->count; i > 0; i--) {
        const struct hd_run_rec *run = &stop->runs[i - 1];

        hd_queue_cancel(call->app->queue, call->principal, run->thread_id, run->run_id,
                        HD_CANCEL_INTERRUPT);
    }
    return wait_next(stop);
}

int hd_stop_runs_add(struct hd_stop_runs *stop, const struct hd_run_rec *run)
{
    if (stop->count == stop->cap) {
        size_t cap = stop->cap ? stop->cap * 2 : 16;
        struct hd_run_rec *grown = hd_arena_calloc(stop->call->arena, cap, sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        if (stop->count > 0)
            memcpy(grown, stop->runs, stop->count * sizeof(*grown));
        stop->runs = grown;
        stop->cap = cap;
    }
    stop->runs[stop->count++] = *run;
    return 0;
}
