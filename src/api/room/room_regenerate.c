#include "api/room/room_regenerate.h"

#include "api/request/forward.h"
#include "api/room/room_people.h"
#include "api/state/checkpoint_target.h"
#include "events/event_batch.h"
#include "records/hold.h"
#include "run/cascade/room_cascade_jobs.h"

/* In the arena of its call. */
struct room_regenerate {
    struct hd_room_cascade op;
    hd_room_regenerate_show_fn show;
    struct hd_thread_rec thread;
    int64_t event_seq; /* of the thread */
    int64_t until;     /* for the reservation of numbers for the events */
    int err;           /* of the visit to a store thread */
};

static void free_change(void *state)
{
    struct room_regenerate *change = state;

    hd_room_cascade_fini(&change->op);
    hd_event_batch_end(change->op.events, false);
}

static struct hd_step refuse_change(struct hd_call *call, const struct hd_room_cascade *op)
{
    if (op->retry_s > 0)
        hd_call_header_int(call, HD_S("Retry-After"), op->retry_s);
    return hd_call_refuse(call, op->refusal, "%s", call->fault.text);
}

static int read_changed_thread(struct hd_call *call, struct room_regenerate *change)
{
    const struct hd_held_thread *seen = hd_forward_thread(call);

    if (!seen || !seen->has_thread)
        return hd_call_thread(call, &change->thread);
    change->op.seen = seen;
    change->thread = seen->thread;
    return 0;
}

static int read_mentionable_people(struct hd_call *call, struct room_regenerate *change)
{
    struct hd_room_person *people = NULL;
    int err = hd_room_people_read(call, &change->thread, &people, &change->op.people_count);

    change->op.people = people;
    return err;
}

static struct hd_step run_dry(struct hd_call *call, struct room_regenerate *change)
{
    int err = hd_room_cascade_apply(&change->op, &call->fault);

    if (err)
        return hd_step_fail(err);
    if (change->op.holder.len > 0)
        return hd_forward_again(call);
    if (change->op.refusal)
        return refuse_change(call, &change->op);
    change->show(call, &change->op);
    return HD_DONE;
}

struct hd_step hd_room_regenerate_begin(struct hd_call *call, const struct hd_room_cascade *op,
                                        hd_room_regenerate_show_fn show)
{
    struct room_regenerate *change = hd_arena_calloc(call->arena, 1, sizeof(*change));
    int err;

    if (!change)
        return hd_step_fail(HD_ENOMEM);
    change->op = *op;
    change->show = show;
    call->state = change;
    call->free_state = free_change;
    err = read_changed_thread(call, change);
    if (!err)
        err = hd_room_people_me(call, &change->op.editor);
    if (!err && op->verb == HD_ROOM_CASCADE_EDIT)
        err = read_mentionable_people(call, change);
    if (err)
        return hd_step_fail(err);
    change->event_seq = change->thread.event_seq;
    if (call->identity)
        change->op.user = call->identity->user;
    change->op.app = call->app;
    change->op.arena = call->arena;
    change->op.principal = call->principal;
    change->op.thread_id = change->thread.id;
    return change->op.is_dry ? run_dry(call, change) : HD_NEXT;
}

/* ---- the batch -------------------------------------------------------- */

static struct hd_step apply_change(struct hd_call *call)
{
    struct room_regenerate *change = call->state;

    change->err = hd_room_cascade_apply(&change->op, &call->fault);
    return HD_NEXT;
}

/* Another server has claimed the thread: the route begins again. */
static struct hd_step change_elsewhere(struct hd_call *call)
{
    call->work = call->route->work;
    call->then = call->route->then;
    return hd_forward_again(call);
}

static void drop_change_events(struct room_regenerate *change)
{
    struct hd_event_batch *events = change->op.events;

    change->op.events = NULL;
    hd_event_batch_end(events, false);
}

static struct hd_step answer_change(struct hd_call *call, struct room_regenerate *change)
{
    change->show(call, &change->op);
    hd_room_cascade_jobs_follow(call->app->cascades, &change->op);
    change->op.events = NULL;
    return HD_DONE;
}

static struct hd_step on_change_applied(struct hd_call *call)
{
    struct room_regenerate *change = call->state;

    if (!change->err && change->op.is_stored)
        return answer_change(call, change);
    drop_change_events(change);
    if (change->err)
        return hd_step_fail(change->err);
    if (change->op.holder.len > 0)
        return hd_call_visit(call, change_elsewhere, NULL);
    if (change->op.refusal)
        return refuse_change(call, &change->op);
    change->op.seen = NULL;
    change->event_seq = change->op.event_seq;
    return hd_room_regenerate_then(call);
}

struct hd_step hd_room_regenerate_then(struct hd_call *call)
{
    struct room_regenerate *change = call->state;

    if (!hd_event_batch_has_time(&change->until))
        return hd_step_fail(HD_ECONFLICT);
    change->op.events =
        hd_event_batch_begin(call->app->event_logs, call->principal, change->op.thread_id,
                             change->event_seq, HD_ROOM_CASCADE_EVENTS);
    if (!change->op.events)
        return hd_step_fail(HD_ENOMEM);
    return hd_call_visit(call, apply_change, on_change_applied);
}
