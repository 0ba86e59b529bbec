#include "run/room/room_answer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "events/event_batch.h"
#include "records/record.h"
#include "records/stream_modes.h"
#include "records/thread_heads.h"
#include "room/room_view.h"
#include "run/assistant_lookup.h"
#include "run/room/room_answer_internal.h"
#include "run/room/room_chain.h"

#define MAX_EVENT ((size_t)64 << 20)
#define MAX_EVENTS_BYTES ((size_t)32 << 20) /* of all messages: a page has 64 MiB */
#define MAX_SETTLED 16                      /* questions of one line */

/* ---- events ----------------------------------------------------------- */

static int add_event(struct hd_room_answering *a, struct hd_slice name, int err,
                     struct hd_buf *data)
{
    if (!err)
        err =
            hd_event_batch_add(a->events, hd_slice("", 0), HD_MODE_ROOM, name, hd_buf_slice(data));
    hd_buf_fini(data);
    return err;
}

/* The last event is that of the run. Readers of more changes than fit read the list again. */
static int add_message_event(struct hd_room_answering *a, const struct hd_room_message_rec *message,
                             const struct hd_room_content_rec *content)
{
    struct hd_buf data;
    int err;

    if (a->event_count++ >= HD_ROOM_ANSWER_EVENTS - 1)
        return 0;
    hd_buf_init(&data, MAX_EVENT);
    err = hd_room_view_message_event(&data, message, content, NULL, 0);
    a->event_bytes += hd_buf_slice(&data).len;
    if (!err && a->event_bytes > MAX_EVENTS_BYTES) {
        hd_buf_fini(&data);
        return 0;
    }
    return add_event(a, HD_S("room/message"), err, &data);
}

/* `status` empty: the run is deleted. */
static int add_run_event(struct hd_room_answering *a, struct hd_slice status)
{
    const struct hd_room_view_run view = hd_room_view_run_of(&a->run, status);
    struct hd_buf data;

    hd_buf_init(&data, MAX_EVENT);
    return add_event(a, HD_S("room/run"), hd_room_view_run_event(&data, &view), &data);
}

/* ---- messages --------------------------------------------------------- */

int hd_room_answer_add(struct hd_room_answering *a, const struct hd_room_message_rec *message,
                       const struct hd_room_content_rec *content)
{
    const struct hd_room_id_rec id = {.principal = message->principal,
                                      .thread_id = message->thread_id,
                                      .message_id = message->id,
                                      .seq = message->seq};
    int err = hd_room_id_put(a->batch, &id);

    if (!err)
        err = hd_room_message_add(a->batch, message);
    if (!err && content->content.len > 0)
        err = hd_room_content_add(a->batch, content);
    return err ? err : add_message_event(a, message, content);
}

int hd_room_answer_change(struct hd_room_answering *a, struct hd_room_message_rec *message,
                          const struct hd_room_content_rec *content)
{
    struct hd_room_content_rec stored;
    int err =
        content ? 0 : hd_room_contents_read(a->app->store, message, 1, a->arena, &stored, a->fault);

    message->changed = ++a->room.changes;
    message->updated_at = a->now;
    if (!err)
        err = hd_room_message_put(a->batch, message);
    return err ? err : add_message_event(a, message, content ? content : &stored);
}

/* ---- earlier questions ------------------------------------------------ */

struct open_questions {
    struct hd_room_answering *a;
    struct hd_room_message_rec list[MAX_SETTLED];
    size_t count;
};

static int on_question(void *arg, const struct hd_room_message_rec *message)
{
    struct open_questions *questions = arg;
    struct hd_room_answering *a = questions->a;
    int err;

    if (!hd_slice_eq(message->ns, a->run.ns) || hd_slice_eq(message->id, a->run.answer))
        return 0;
    if (questions->count == MAX_SETTLED)
        return 1; /* a later end settles the others */
    err = hd_room_message_copy(a->arena, message, &questions->list[questions->count]);
    questions->count += !err;
    return err;
}

/* The line went on: it does not wait for the replies to its earlier questions any more. */
static int settle_questions(struct hd_room_answering *a)
{
    const struct hd_room_message_query query = {.state = HD_ROOM_PENDING, .changed_after = -1};
    struct open_questions *questions = hd_arena_calloc(a->arena, 1, sizeof(*questions));
    int err;

    if (!questions)
        return HD_ENOMEM;
    questions->a = a;
    err = hd_room_messages_scan(a->app->store, a->room.principal, a->room.thread_id, &query,
                                on_question, questions, a->fault);
    for (size_t i = 0; !err && i < questions->count; i++) {
        questions->list[i].state = HD_ROOM_OK;
        err = hd_room_answer_change(a, &questions->list[i], NULL);
    }
    return err;
}

/* ---- the answer ------------------------------------------------------- */

/* Reading the state again would fail again. */
bool hd_room_answer_is_lasting(int err)
{
    return err == HD_ECORRUPT || err == HD_EINVAL || err == HD_ELIMIT || err == HD_EVERSION ||
           err == HD_EUNSUPPORTED || err == HD_ENOTFOUND;
}

struct hd_room_said_place hd_room_answer_place(const struct hd_room_answering *a)
{
    const struct hd_run_commit *commit = a->commit;

    return (struct hd_room_said_place){
        .principal = a->room.principal,
        .thread_id = a->room.thread_id,
        .ns = a->run.ns,
        .graph_id = commit->graph_id.len > 0 ? commit->graph_id : a->run.graph_id,
        .before = a->run.head_before,
        .after = a->run.head_after,
        .kwargs = commit->run->kwargs,
        .trigger = a->run.is_answer ? hd_slice(NULL, 0) : a->run.trigger};
}

/* An unreadable state has no answer: the end of a run does not fail for that. */
static int read_said(struct hd_room_answering *a, struct hd_room_said *out)
{
    const struct hd_room_said_place place = hd_room_answer_place(a);
    int err = hd_room_answer_find(a->app, &place, a->arena, out, a->fault);

    if (!hd_room_answer_is_lasting(err))
        return err;
    *a->fault = (struct heddle_error){0};
    *out = (struct hd_room_said){.content = {NULL, 0}};
    return 0;
}

static enum hd_room_state state_of(const struct hd_run_commit *commit)
{
    switch (commit->status) {
    case HD_RUN_STATE_ERROR:
    case HD_RUN_STATE_TIMEOUT:
        return HD_ROOM_ERROR;
    case HD_RUN_STATE_INTERRUPTED:
        return HD_ROOM_STOPPED;
    default:
        return commit->has_next ? HD_ROOM_PENDING : HD_ROOM_OK;
    }
}

/* The name in the room, else that of the assistant. */
static int read_agent_name(struct hd_room_answering *a, struct hd_slice *out)
{
    struct hd_assistant_rec assistant;
    struct hd_room_agent *agents;
    size_t count;
    int err = hd_room_agents_read(&a->room, a->arena, &agents, &count, a->fault);

    *out = hd_slice("", 0);
    for (size_t i = 0; !err && i < count; i++) {
        if (hd_slice_eq(agents[i].assistant_id, a->run.assistant_id))
            *out = agents[i].name;
    }
    if (err || out->len > 0)
        return err;
    err = hd_assistant_lookup(a->app, a->commit->run->actor, a->run.assistant_id, a->arena,
                              &assistant, a->fault);
    if (!err)
        *out = assistant.name.len > 0 ? assistant.name : assistant.graph_id;
    return err == HD_ENOTFOUND ? 0 : err;
}

static int make_answer(struct hd_room_answering *a, const struct hd_room_said *said,
                       struct hd_room_message_rec *message)
{
    const struct hd_run_commit *commit = a->commit;

    *message = (struct hd_room_message_rec){.principal = a->room.principal,
                                            .thread_id = a->room.thread_id,
                                            .seq = ++a->room.last_seq,
                                            .id = a->run.answer,
                                            .state = state_of(commit),
                                            .version = 1,
                                            .created_at = a->now,
                                            .sender = a->run.assistant_id,
                                            .kind = HD_ROOM_AGENT,
                                            .sender_id = a->run.assistant_id,
                                            .reply_to = a->reply_to,
                                            .replaces = a->replaces,
                                            .run_id = a->run.run_id,
                                            .checkpoint_id = a->run.head_after,
                                            .ns = a->run.ns,
                                            .error = commit->error};
    if (message->state == HD_ROOM_PENDING)
        message->interrupts = commit->interrupts;
    if (message->state == HD_ROOM_OK && said->content.len == 0)
        message->error = HD_S(HD_ROOM_SILENT);
    if (!hd_slice_eq(said->source_id, message->id))
        message->source_id = said->source_id;
    return read_agent_name(a, &message->sender_name);
}

static int post_answer(struct hd_room_answering *a)
{
    struct hd_room_message_rec message;
    struct hd_room_content_rec content;
    struct hd_room_said said;
    int err = read_said(a, &said);

    if (!err)
        err = make_answer(a, &said, &message);
    if (!err)
        err = hd_room_chain_ask(a, &message, said.content);
    if (err)
        return err;
    content = (struct hd_room_content_rec){.principal = message.principal,
                                           .thread_id = message.thread_id,
                                           .message_id = message.id,
                                           .version = message.version,
                                           .created_at = a->now,
                                           .content = said.content};
    return hd_room_answer_add(a, &message, &content);
}

/* ---- the run ---------------------------------------------------------- */

/* From the checkpoints that it made: another run may have moved the head after its admission. */
static int find_heads(struct hd_room_answering *a)
{
    const struct hd_run_rec *run = a->commit->run;
    struct hd_slice before;
    bool has_made;
    int err = hd_thread_heads_began(a->app->store, run->principal, run->thread_id, a->run.ns,
                                    run->run_id, a->arena, &before, &has_made, a->fault);

    if (err || !has_made)
        return err;
    a->run.head_before = before;
    return hd_thread_heads_made(a->app->store, run->principal, run->thread_id, a->run.ns,
                                run->run_id, a->arena, &a->run.head_after, a->fault);
}

/* ---- messages that the line did not get -------------------------------- */

/* The line's mark goes back before the message `id`. */
static int lower_mark(struct hd_room_answering *a, struct hd_slice id, struct hd_room_mark *mark)
{
    struct hd_room_message_rec message;
    int err = hd_room_message_read(a->app->store, a->room.principal, a->room.thread_id, id,
                                   a->arena, &message, a->fault);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (mark->seq >= message.seq)
        mark->seq = message.seq - 1;
    mark->changes = 0;
    return 0;
}

static int take_back_given(struct hd_room_answering *a)
{
    struct hd_json json = {NULL};
    struct hd_room_mark mark;
    struct hd_json_iter it;
    int err = hd_room_mark_get(&a->room, a->run.ns, &mark, a->fault);

    if (!err && a->run.given.len > 0)
        err = hd_json_parse(&json, a->run.given, a->fault);
    it = hd_json_iter(hd_json_is_array(hd_json_root(&json)) ? hd_json_root(&json) : NULL);
    while (!err && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(hd_json_is_array(it.val) ? it.val : NULL);

        if (hd_json_next(&pair))
            err = lower_mark(a, hd_json_string(pair.val), &mark);
    }
    hd_json_fini(&json);
    return err ? err : hd_room_mark_set(&a->room, a->run.ns, mark, a->arena);
}

/* A run without checkpoints has left nothing in its line: the next one gets its messages too. */
static int settle_given(struct hd_room_answering *a)
{
    bool is_lost = a->commit->is_rolled_back || a->run.head_after.len == 0;

    if (!is_lost || a->commit->run->is_off_head || a->run.is_answer || a->run.given.len == 0)
        return 0;
    return take_back_given(a);
}

/* ---- the end ----------------------------------------------------------- */

static int end_room_run(struct hd_room_answering *a)
{
    const struct hd_run_commit *commit = a->commit;
    int err = hd_room_run_put(a->batch, &a->run);

    if (!err && !commit->run->is_off_head && a->run.answer.len > 0)
        err = post_answer(a);
    return err ? err : add_run_event(a, hd_slice_cstr(hd_run_state_name(commit->status)));
}

static int forget_room_run(struct hd_room_answering *a)
{
    const struct hd_room_id_rec id = {.principal = a->room.principal,
                                      .thread_id = a->room.thread_id,
                                      .message_id = a->run.answer};
    int err = hd_room_run_delete(a->batch, &a->run);

    if (!err && id.message_id.len > 0)
        err = hd_room_id_delete(a->batch, &id);
    return err ? err : add_run_event(a, hd_slice("", 0));
}

/* A plain run: *is_known is false if it leaves nothing in the room. */
static int begin_plain(struct hd_room_answering *a, bool *is_known)
{
    const struct hd_run_rec *run = a->commit->run;
    int err;

    *is_known = false;
    if (a->commit->is_rolled_back || run->is_off_head)
        return 0;
    a->run = (struct hd_room_run_rec){.run_id = run->run_id};
    err = hd_run_line(run, a->arena, &a->run.ns, a->fault);
    if (!err)
        err = find_heads(a);
    *is_known = !err && a->run.head_after.len > 0;
    if (*is_known)
        err = settle_questions(a);
    return err || !*is_known ? err : hd_room_plain_add(a);
}

static int begin_asked(struct hd_room_answering *a)
{
    int err = find_heads(a);

    a->reply_to = a->run.trigger;
    if (!err && a->commit->has_begun && !a->commit->run->is_off_head && !a->commit->is_rolled_back)
        err = settle_questions(a);
    return err;
}

static int begin_end(struct hd_room_answering *a, bool *is_known)
{
    const struct hd_run_rec *run = a->commit->run;
    int err = hd_room_run_read(a->app->store, run->principal, run->thread_id, run->run_id, a->arena,
                               &a->run, a->fault);

    *is_known = true;
    if (err == HD_ENOTFOUND)
        return begin_plain(a, is_known);
    return err ? err : begin_asked(a);
}

static int end_answering(struct hd_room_answering *a)
{
    bool is_known = false;
    int err = begin_end(a, &is_known);

    if (err || !is_known)
        return err;
    err = settle_given(a);
    if (!err)
        err = a->commit->is_rolled_back ? forget_room_run(a) : end_room_run(a);
    a->room.updated_at = a->now;
    if (a->commit->has_waits)
        *a->commit->has_waits = a->room.waits.len > 0;
    if (!err)
        err = hd_room_put(a->batch, &a->room);
    return err ? err : hd_event_batch_put(a->events, a->batch, a->thread);
}

int hd_room_answer_put(struct hd_app *app, const struct hd_run_commit *commit,
                       struct hd_thread_rec *thread, struct hd_event_batch *events,
                       struct hd_batch_builder *batch, struct hd_arena *arena,
                       struct heddle_error *fault)
{
    const struct hd_run_rec *run = commit->run;
    struct hd_room_answering a = {.app = app,
                                  .commit = commit,
                                  .thread = thread,
                                  .events = events,
                                  .batch = batch,
                                  .arena = arena,
                                  .fault = fault,
                                  .now = hd_clock_now_us()};
    int err;

    if (!thread->is_room)
        return 0;
    if (!events || !hd_event_batch_fits(events, thread))
        return HD_EBUSY;
    hd_event_batch_reset(events);
    err = hd_room_read(app->store, run->principal, run->thread_id, arena, &a.room, fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    return end_answering(&a);
}
