/* Withdrawing a question: its agent's line does not wait for the answer any more. */
#include "api/api.h"
#include "api/room/room_change.h"
#include "base/clock.h"
#include "config/config.h"
#include "records/line.h"
#include "run/cascade/room_cascade_reply.h"
#include "run/room/room_waiting.h"

static struct hd_step check_question(struct hd_call *call, struct hd_room_change *change)
{
    (void)call;
    (void)change;
    return HD_NEXT; /* whether the question is open is known in the batch only */
}

static bool is_open_question(const struct hd_room_message_rec *message)
{
    return message->kind == HD_ROOM_AGENT && message->state == HD_ROOM_PENDING;
}

/* A run of the line may be answering the question now. */
static int find_line_runs(struct hd_call *call, struct hd_room_change *change, bool *is_busy,
                          bool *is_line_busy)
{
    const struct hd_thread_rec *thread = change->stored;
    struct hd_run_rec *active;
    size_t count = 0;
    int err = hd_runs_active(call->app->store, thread->principal, thread->id, call->arena, &active,
                             &count, &call->fault);

    *is_busy = !err && count > 0;
    *is_line_busy = false;
    return err ? err
               : hd_line_is_busy(call->app->store, thread, change->message.ns,
                                 call->app->config->namespaces_parallel, is_line_busy,
                                 &call->fault);
}

/* Only the run that left the line as it is has an open question there. */
static int end_question(struct hd_call *call, struct hd_room_change *change, bool is_busy,
                        struct hd_batch_builder *batch)
{
    struct hd_thread_rec *thread = change->stored;
    struct hd_line_rec *line;
    struct hd_lines lines;
    int err = hd_lines_read(call->app->store, thread, call->arena, &lines, &call->fault);

    line = err ? NULL : hd_lines_find(&lines, change->message.ns);
    if (!line || !hd_slice_eq(line->run_id, change->message.run_id))
        return err;
    line = hd_lines_change(&lines, thread, change->message.ns, call->arena);
    if (!line)
        return HD_ENOMEM;
    line->status = HD_THREAD_IDLE;
    line->interrupts = hd_slice(NULL, 0);
    line->updated_at = thread->updated_at = hd_clock_now_us();
    err = hd_lines_settle(&lines, thread, is_busy, call->arena);
    return err ? err : hd_lines_put(batch, &lines);
}

/* A cascade would wait for the reply for ever. */
static int check_cascade(struct hd_call *call, struct hd_room_change *change)
{
    struct hd_room_cascade_reply reply;
    int err =
        hd_room_cascade_reply_find(call->app, &change->message, call->arena, &reply, &call->fault);

    return !err && reply.is_open
               ? hd_room_change_refuse(change, 409, "the question belongs to an edit: decline it")
               : err;
}

static int withdraw_question(struct hd_call *call, struct hd_room_change *change,
                             struct hd_batch_builder *batch)
{
    bool is_busy, is_line_busy;
    int err;

    if (!is_open_question(&change->message))
        return hd_room_change_refuse(change, 409, "the message is no open question");
    err = check_cascade(call, change);
    if (!err)
        err = find_line_runs(call, change, &is_busy, &is_line_busy);
    if (!err && is_line_busy)
        return hd_room_change_refuse(change, 409, "a run of the agent is in progress");
    change->message.state = HD_ROOM_STOPPED;
    return err ? err : end_question(call, change, is_busy, batch);
}

/* Messages may have waited behind the question. */
static void show_withdrawn(struct hd_call *call, struct hd_room_change *change)
{
    hd_room_waiting_check(call->app, change->thread.principal, change->thread.id);
    hd_room_change_show_message(call, change);
    hd_jw_object_end(&call->jw);
}

static struct hd_step post_withdraw(struct hd_call *call)
{
    struct hd_room_change *change = hd_arena_calloc(call->arena, 1, sizeof(*change));

    if (!change)
        return hd_step_fail(HD_ENOMEM);
    *change = (struct hd_room_change){.message_id = call->params[1],
                                      .check = check_question,
                                      .apply = withdraw_question,
                                      .show = show_withdrawn};
    return hd_room_change_start(call, change);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}/withdraw",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = post_withdraw,
     .then = hd_room_change_then,
     .tag = "Rooms",
     .summary = "End an open question of an agent without an answer",
     .body = "?Ignored",
     .answer = "RoomMessageChange"},
};

const struct hd_routes hd_routes_room_question = {routes, HD_COUNT(routes)};
