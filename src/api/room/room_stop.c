/* Stops all runs of a room, and responds with their receipts. */
#include "api/api.h"
#include "api/run_view.h"
#include "api/state/checkpoint_target.h"
#include "api/stop_runs.h"

static struct hd_step show_receipts(struct hd_call *call)
{
    const struct hd_stop_runs *stop = call->state;
    struct hd_jw *jw = &call->jw;
    int err = 0;

    hd_jw_object(jw);
    hd_jw_put_array(jw, "cancelled");
    for (size_t i = 0; !err && i < stop->count; i++) {
        struct hd_run_rec run = stop->runs[i];

        err = hd_run_read(call->app->store, call->principal, run.thread_id, run.run_id, call->arena,
                          &run, &call->fault);
        if (err == HD_ENOTFOUND) { /* the run was rolled back or deleted at the same time */
            call->fault = (struct heddle_error){0};
            err = 0;
            continue;
        }
        if (!err)
            hd_run_view_receipt(jw, &run);
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    return hd_step_done(err);
}

static struct hd_step read_receipts(struct hd_call *call)
{
    return hd_call_visit(call, show_receipts, NULL);
}

static struct hd_step find_room_runs(struct hd_call *call)
{
    struct hd_stop_runs *stop = hd_arena_calloc(call->arena, 1, sizeof(*stop));
    struct hd_run_rec *runs = NULL;
    struct hd_thread_rec thread;
    size_t count = 0;
    int err = stop ? hd_call_thread(call, &thread) : HD_ENOMEM;

    if (!err)
        err = hd_runs_active(call->app->store, thread.principal, thread.id, call->arena, &runs,
                             &count, &call->fault);
    if (err)
        return hd_step_fail(err);
    call->state = stop;
    stop->call = call;
    stop->then = read_receipts;
    for (size_t i = 0; !err && i < count; i++)
        err = hd_stop_runs_add(stop, &runs[i]);
    return hd_step_next(err);
}

static struct hd_step stop_room(struct hd_call *call)
{
    return hd_stop_runs_start(call->state);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/stop",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = find_room_runs,
     .then = stop_room,
     .tag = "Rooms",
     .summary = "Cancel all runs of a room",
     .body = "?Ignored",
     .answer = "RoomStop"},
};

const struct hd_routes hd_routes_room_stop = {routes, HD_COUNT(routes)};
