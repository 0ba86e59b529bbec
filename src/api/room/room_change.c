#include "api/room/room_change.h"

#include "api/request/forward.h"
#include "api/room/room_find.h"
#include "base/clock.h"
#include "events/event_batch.h"
#include "records/stream_modes.h"
#include "run/admit.h"

#define MAX_EVENT (HD_ROOM_MAX_CONTENT * 2)

/* ---- the batch (store thread) ----------------------------------------- */

int hd_room_change_refuse(struct hd_room_change *change, int status, const char *text)
{
    return hd_admit_refuse(change->group, &change->call->fault, status, "%s", text);
}

static int read_changed(struct hd_room_change *change)
{
    struct hd_call *call = change->call;
    int err = hd_room_find_of(call, &change->thread, &change->room);

    if (!err)
        err = hd_room_find_message(call, &change->thread, change->message_id, &change->message);
    return err == HD_ENOTFOUND
               ? hd_admit_refuse(change->group, &call->fault, 404, "%s", call->fault.text)
               : err;
}

static int add_message_event(struct hd_room_change *change)
{
    struct hd_room_details *details = &change->details;
    struct hd_buf data;
    int err = hd_room_details_read(change->call->app->store, &change->message, 1,
                                   change->call->arena, details, &change->call->fault);

    hd_buf_init(&data, MAX_EVENT);
    if (!err)
        err = hd_room_view_message_event(&data, &change->message, &details->content, details->runs,
                                         details->run_count);
    if (!err)
        err = hd_event_batch_add(change->events, hd_slice("", 0), HD_MODE_ROOM,
                                 HD_S("room/message"), hd_buf_slice(&data));
    hd_buf_fini(&data);
    return err;
}

static int put_changed(struct hd_room_change *change, struct hd_batch_builder *batch)
{
    int64_t now = hd_clock_now_us();
    int err;

    change->message.changed = ++change->room.changes;
    change->message.updated_at = change->room.updated_at = now;
    err = add_message_event(change);
    if (!err)
        err = hd_room_message_put(batch, &change->message);
    return err ? err : hd_room_put(batch, &change->room);
}

/* For hd_admission_group.extend. */
static int extend_with_change(void *ctx, struct hd_batch_builder *batch,
                              struct hd_thread_rec *thread, struct heddle_error *fault)
{
    struct hd_room_change *change = ctx;
    int err;

    (void)fault; /* it is call->fault */
    hd_event_batch_reset(change->events);
    change->needs_numbers = !hd_event_batch_fits(change->events, thread);
    if (change->needs_numbers)
        return HD_EBUSY;
    change->thread = *thread;
    change->stored = thread;
    err = read_changed(change);
    if (!err)
        err = change->apply(change->call, change, batch);
    if (!err)
        err = put_changed(change, batch);
    return err ? err : hd_event_batch_put(change->events, batch, thread);
}

static struct hd_step apply_room_change(struct hd_call *call)
{
    struct hd_room_change *change = call->state;

    change->needs_numbers = false; /* of an earlier round */
    *change->group = (struct hd_admission_group){.app = call->app,
                                                 .arena = call->arena,
                                                 .principal = call->principal,
                                                 .actor = call->actor,
                                                 .thread_id = change->thread.id,
                                                 .extend = extend_with_change,
                                                 .ctx = change};
    change->err = hd_admit_group(change->group, &call->fault);
    return HD_NEXT; /* the loop ends the events, also after an error */
}

/* ---- the events (loop) ------------------------------------------------ */

static void end_change_events(void *state)
{
    struct hd_room_change *change = state;

    hd_event_batch_end(change->events, false);
    change->events = NULL;
}

/* Runs of the thread have used the reserved numbers. */
static struct hd_step read_numbers(struct hd_call *call)
{
    struct hd_room_change *change = call->state;

    return hd_step_next(hd_room_find(call, &change->thread, &change->room));
}

static struct hd_step settle_change(struct hd_call *call)
{
    struct hd_room_change *change = call->state;
    const struct hd_admission_group *group = change->group;
    bool is_stored = !change->err && !group->refusal && group->holder.len == 0;

    hd_event_batch_end(change->events, is_stored);
    change->events = NULL;
    if (is_stored) {
        change->show(call, change);
        return HD_DONE;
    }
    if (change->needs_numbers && hd_event_batch_has_time(&change->until)) {
        call->fault = (struct heddle_error){0};
        return hd_call_visit(call, read_numbers, hd_room_change_then);
    }
    if (group->holder.len > 0) {
        hd_call_set_route(call, call->route);
        return hd_forward_again(call);
    }
    if (group->refusal)
        return hd_call_refuse(call, group->refusal, "%s", call->fault.text);
    return hd_step_fail(change->err);
}

struct hd_step hd_room_change_then(struct hd_call *call)
{
    struct hd_room_change *change = call->state;

    change->events = hd_event_batch_begin(call->app->event_logs, call->principal, change->thread.id,
                                          change->thread.event_seq, 1);
    if (!change->events)
        return hd_step_fail(HD_ENOMEM);
    call->free_state = end_change_events;
    return hd_call_visit(call, apply_room_change, settle_change);
}

struct hd_step hd_room_change_start(struct hd_call *call, struct hd_room_change *change)
{
    int err = hd_room_find(call, &change->thread, &change->room);

    call->state = change;
    change->call = call;
    change->group = hd_arena_calloc(call->arena, 1, sizeof(*change->group));
    if (!err && !change->group)
        err = HD_ENOMEM;
    if (!err)
        err = hd_room_find_message(call, &change->thread, change->message_id, &change->message);
    return err ? hd_step_fail(err) : change->check(call, change);
}

void hd_room_change_show_message(struct hd_call *call, const struct hd_room_change *change)
{
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("message"));
    hd_room_details_view(&call->jw, &change->message, &change->details);
}
