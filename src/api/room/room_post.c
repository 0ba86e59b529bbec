/* Chat messages of people: posted, with or without the stream of their runs. */
#include <string.h>

#include "api/api.h"
#include "api/event_stream.h"
#include "api/request/forward.h"
#include "api/request/graph_headers.h"
#include "api/room/room_body.h"
#include "api/room/room_people.h"
#include "api/state/checkpoint_target.h"
#include "base/log.h"
#include "events/event_batch.h"
#include "http/sse.h"
#include "records/hold.h"
#include "records/stream_modes.h"
#include "room/room_input.h"
#include "run/cascade/room_cascade_jobs.h"
#include "run/queue.h"
#include "run/room/room_post.h"
#include "run/room/room_waiting.h"

#define MAX_MENTIONS 100
#define MAX_FRAME ((size_t)64 << 20)

/* The request; in the arena of its call. */
struct room_posting {
    struct hd_room_post post;
    struct hd_thread_rec thread;
    int64_t event_seq; /* of the thread */
    int64_t until;     /* for the reservation of numbers for the events */
    int err;           /* of the visit to a store thread */
    bool is_streamed;
};

/* ---- the request (store thread) --------------------------------------- */

/* Ids are parts of paths, in which "." and ".." are no names. */
static bool is_message_id(struct hd_slice id)
{
    size_t dots = 0;

    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_alnum && (c == '\0' || !strchr("-._~", c)))
            return false;
        dots += c == '.';
    }
    return id.len <= HD_ROOM_MAX_ID && !(dots == id.len && dots <= 2);
}

static int read_post_id(struct hd_call *call, const char *name, struct hd_slice *out)
{
    int err = hd_body_string(call, name, out);

    if (err || out->len == 0 || is_message_id(*out))
        return err;
    return hd_error_set(&call->fault, HD_EINVAL,
                        "%s: expected 1 to %d letters, digits or characters of -._~", name,
                        HD_ROOM_MAX_ID);
}

static int read_post_body(struct hd_call *call, struct hd_room_post *post)
{
    struct hd_slice *mentions = NULL;
    hd_json_val list = hd_body_get(call, "mentions");
    int err = hd_room_body_content(call, &post->content);

    if (!err)
        err = read_post_id(call, "id", &post->id);
    if (!err)
        err = read_post_id(call, "reply_to", &post->reply_to);
    if (!err)
        err = hd_room_body_metadata(call, &post->metadata);
    if (!err)
        err = hd_body_strings(call, "mentions", &mentions, &post->mention_count);
    post->mentions = mentions;
    post->has_mentions = list && !hd_json_is_null(list);
    if (!err && post->mention_count > MAX_MENTIONS)
        err = hd_error_set(&call->fault, HD_EINVAL, "mentions: more than %d", MAX_MENTIONS);
    return err;
}

/* ---- the caller and the thread (store thread) ------------------------- */

static int read_posting_thread(struct hd_call *call, struct room_posting *posting)
{
    const struct hd_held_thread *seen = hd_forward_thread(call);

    if (!seen || !seen->has_thread)
        return hd_call_thread(call, &posting->thread);
    posting->post.seen = seen;
    posting->thread = seen->thread;
    return 0;
}

static int read_poster(struct hd_call *call, struct room_posting *posting)
{
    struct hd_room_post *post = &posting->post;
    struct hd_room_person *people = NULL;
    int err = hd_room_people_me(call, &post->sender);

    if (!err)
        err = hd_room_people_read(call, &posting->thread, &people, &post->people_count);
    if (!err)
        err = hd_graph_headers_write(call, true, &post->headers);
    post->people = people;
    post->app = call->app;
    post->arena = call->arena;
    post->principal = call->principal;
    post->thread_id = posting->thread.id;
    post->role = call->role;
    if (call->identity) {
        post->subject = call->identity->subject;
        post->is_admin = call->identity->is_admin;
        post->user = call->identity->user;
    }
    return err;
}

static void free_posting(void *state)
{
    struct room_posting *posting = state;

    hd_room_post_fini(&posting->post);
    hd_event_batch_end(posting->post.events, false);
}

static struct hd_step read_posting(struct hd_call *call, bool is_streamed)
{
    struct room_posting *posting = hd_arena_calloc(call->arena, 1, sizeof(*posting));
    int err;

    if (!posting)
        return hd_step_fail(HD_ENOMEM);
    posting->is_streamed = is_streamed;
    call->state = posting;
    call->free_state = free_posting;
    err = read_post_body(call, &posting->post);
    if (!err)
        err = read_posting_thread(call, posting);
    if (!err)
        err = read_poster(call, posting);
    posting->event_seq = posting->thread.event_seq;
    return hd_step_next(err);
}

static struct hd_step post_work(struct hd_call *call)
{
    return read_posting(call, false);
}

static struct hd_step stream_post_work(struct hd_call *call)
{
    return read_posting(call, true);
}

/* ---- the response (loop) ---------------------------------------------- */

static void enqueue_room_run(struct hd_call *call, const struct hd_room_run *run, bool is_streamed)
{
    const struct hd_admission *admission = &run->admission;
    int err = hd_queue_add(call->app->queue, &admission->run, admission->event_seq, is_streamed);

    if (err)
        hd_log(HD_LOG_ERROR, "run", "run %.*s waits for a restart: %s",
               (int)admission->run.run_id.len, admission->run.run_id.ptr, hd_error_text(err));
}

static void show_post(struct hd_call *call, const struct hd_room_post *post)
{
    call->status = post->is_repeated ? 200 : 201;
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("message"));
    hd_room_view_message(&call->jw, &post->message, &post->body, post->views, post->view_count);
    hd_jw_put_array(&call->jw, "runs");
    for (size_t i = 0; i < post->view_count; i++) {
        hd_jw_object(&call->jw);
        hd_jw_put_string(&call->jw, "run_id", post->views[i].run_id);
        hd_jw_put_string(&call->jw, "assistant_id", post->views[i].assistant_id);
        hd_jw_object_end(&call->jw);
    }
    hd_jw_array_end(&call->jw);
    hd_jw_object_end(&call->jw);
}

/* The message as the first event of a stream that has no other source for it. */
static int write_first_frame(const struct hd_room_post *post, struct hd_slice *out)
{
    struct hd_buf data, frame;
    int err;

    hd_buf_init(&data, MAX_FRAME);
    hd_buf_init(&frame, MAX_FRAME);
    err = hd_room_view_message_event(&data, &post->message, &post->body, post->views,
                                     post->view_count);
    if (!err)
        err =
            hd_http_sse_frame(&frame, HD_S("room/message"), hd_buf_slice(&data), hd_slice(NULL, 0));
    if (!err)
        err = hd_arena_copy(post->arena, hd_buf_slice(&frame), out);
    hd_buf_fini(&frame);
    hd_buf_fini(&data);
    return err;
}

/* The runs of an earlier request that have not ended. */
static size_t list_live_runs(const struct hd_room_post *post, struct hd_slice *runs)
{
    size_t count = 0;

    for (size_t i = 0; i < post->view_count && count < HD_EVENT_STREAM_MAX_RUNS; i++) {
        if (hd_queue_has(post->app->queue, post->principal, post->thread_id, post->views[i].run_id))
            runs[count++] = post->views[i].run_id;
    }
    return count;
}

static struct hd_step send_post_stream(struct hd_call *call, const struct hd_room_post *post,
                                       struct hd_event_log *log)
{
    struct hd_slice runs[HD_EVENT_STREAM_MAX_RUNS];
    struct hd_event_stream_options events = {.thread_id = post->thread_id,
                                             .runs = runs,
                                             .modes =
                                                 HD_MODE_ROOM | HD_MODE_TUPLES | HD_MODE_UPDATES,
                                             .after = HD_FROM_NOW};
    int err = 0;

    if (post->is_repeated)
        events.run_count = list_live_runs(post, runs);
    for (size_t i = 0; !post->is_repeated && i < post->run_count; i++)
        runs[events.run_count++] = post->runs[i]->admission.run.run_id;
    if (post->is_repeated || events.run_count == 0)
        err = write_first_frame(post, &events.first);
    if (err)
        return hd_step_fail(err);
    return hd_event_stream_send(call, events.run_count > 0 ? log : NULL, &events);
}

/* The stream is opened before the events are published and the runs start: it misses nothing. */
static struct hd_step stream_post(struct hd_call *call, struct room_posting *posting)
{
    struct hd_room_post *post = &posting->post;
    struct hd_event_batch *events = post->events;
    struct hd_event_log *log = hd_event_log_get(call->app->event_logs, call->principal,
                                                post->thread_id, (uint64_t)post->event_seq);
    struct hd_step step;

    if (log)
        hd_event_log_hold(log);
    step = send_post_stream(call, post, log);
    post->events = NULL;
    hd_event_batch_end(events, !post->is_repeated);
    for (size_t i = 0; !post->is_repeated && i < post->run_count; i++)
        enqueue_room_run(call, post->runs[i], true);
    if (log)
        hd_event_log_release(log);
    return step;
}

static struct hd_step answer_post(struct hd_call *call, struct room_posting *posting)
{
    struct hd_room_post *post = &posting->post;
    struct hd_event_batch *events = post->events;

    if (post->cascade_id.len > 0)
        hd_room_cascade_jobs_add(call->app->cascades, call->principal, post->thread_id,
                                 post->cascade_id);
    if (post->has_waits) /* of a question that has ended meanwhile */
        hd_room_waiting_check(call->app, post->principal, post->thread_id);
    if (posting->is_streamed)
        return stream_post(call, posting);
    show_post(call, post);
    post->events = NULL;
    hd_event_batch_end(events, !post->is_repeated);
    for (size_t i = 0; !post->is_repeated && i < post->run_count; i++)
        enqueue_room_run(call, post->runs[i], false);
    return HD_DONE;
}

/* ---- posting ---------------------------------------------------------- */

static struct hd_step post_then(struct hd_call *call);

/* Another server has claimed the thread: the route begins again. */
static struct hd_step post_elsewhere(struct hd_call *call)
{
    call->work = call->route->work;
    call->then = call->route->then;
    return hd_forward_again(call);
}

static struct hd_step store_post(struct hd_call *call)
{
    struct room_posting *posting = call->state;

    hd_room_post_fini(&posting->post);
    posting->err = hd_room_post(&posting->post, &call->fault);
    return HD_NEXT;
}

static struct hd_step refuse_post(struct hd_call *call, const struct hd_room_post *post)
{
    if (post->retry_s > 0)
        hd_call_header_int(call, HD_S("Retry-After"), post->retry_s);
    return hd_call_refuse(call, post->refusal, "%s", call->fault.text);
}

/* The events of a post that was not stored have no readers. */
static void drop_events(struct hd_room_post *post)
{
    struct hd_event_batch *events = post->events;

    post->events = NULL;
    hd_event_batch_end(events, false);
}

static struct hd_step post_stored(struct hd_call *call)
{
    struct room_posting *posting = call->state;
    struct hd_room_post *post = &posting->post;

    if (!posting->err && !post->refusal && post->holder.len == 0 && !post->needs_numbers)
        return answer_post(call, posting);
    drop_events(post);
    if (posting->err)
        return hd_step_fail(posting->err);
    hd_room_post_fini(post);
    if (post->holder.len > 0)
        return hd_call_visit(call, post_elsewhere, NULL);
    if (post->refusal)
        return refuse_post(call, post);
    post->seen = NULL;
    posting->event_seq = post->event_seq;
    return post_then(call);
}

/* Reserves the numbers of the events: on the loop, before the batch is made. */
static struct hd_step post_then(struct hd_call *call)
{
    struct room_posting *posting = call->state;
    struct hd_room_post *post = &posting->post;

    if (!hd_event_batch_has_time(&posting->until))
        return hd_step_fail(HD_ECONFLICT);
    post->events = hd_event_batch_begin(call->app->event_logs, call->principal, post->thread_id,
                                        posting->event_seq, HD_ROOM_POST_EVENTS);
    if (!post->events)
        return hd_step_fail(HD_ENOMEM);
    return hd_call_visit(call, store_post, post_stored);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/messages",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = post_work,
     .then = post_then,
     .tag = "Rooms",
     .summary = "Post a chat message, which asks the agents that it mentions",
     .body = "RoomMessageCreate",
     .answer = "RoomMessagePosted",
     .status = 201,
     .also = 200},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/messages/stream",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = stream_post_work,
     .then = post_then,
     .tag = "Rooms",
     .summary = "Post a chat message and stream the events of its runs",
     .body = "RoomMessageCreate",
     .answer = "text/event-stream"},
};

const struct hd_routes hd_routes_room_post = {routes, HD_COUNT(routes)};
