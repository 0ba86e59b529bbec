/* Joined streams: the events of a run, or of a thread across its runs. */
#include <stdlib.h>

#include "api/api.h"
#include "api/request/authorize.h"
#include "api/request/forward.h"
#include "api/event_stream.h"
#include "api/room/room_find.h"
#include "api/room/room_people.h"
#include "api/stream_follow.h"
#include "api/wait.h"
#include "records/record.h"
#include "records/stream_modes.h"
#include "run/queue.h"

#define MAX_PAGES ((size_t)256 << 20) /* bytes of stored events per read */
#define MAX_RECORD ((size_t)256 << 20)
#define MAX_READS 5 /* attempts, when events are evicted faster than they are read */

/* State of a join; in the arena of the call. */
struct join {
    struct hd_slice thread_id;
    struct hd_slice run_id;
    int64_t event_seq; /* of the thread's record, as the next */
    int64_t created_at;
    struct hd_arena pages;
    struct hd_entry *stored;
    uint64_t stored_after; /* `stored` has all stored events after this number */
    struct hd_event_stream_options events;
    bool is_resuming;
    uint64_t settled; /* evicted events up to this number can be read from the store */
    int reads;
};

static struct hd_slice last_event_id(struct hd_call *call)
{
    return hd_request_value(hd_exchange_request(call->exchange), HD_S("last-event-id"));
}

/* "-1" and "-": all kept events. HD_FROM_NOW for a missing id or one that is no number. */
static uint64_t after_of(struct hd_slice id)
{
    uint64_t number = 0;

    if (hd_slice_eq(id, HD_S("-1")) || hd_slice_eq(id, HD_S("-")))
        return 0;
    if (id.len == 0 || id.len > 18)
        return HD_FROM_NOW;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9')
            return HD_FROM_NOW;
        number = number * 10 + (uint64_t)(id.ptr[i] - '0');
    }
    return number;
}

static int read_modes(struct hd_call *call, uint32_t *modes)
{
    struct hd_slice *names;
    size_t count;
    int err = hd_params_list(&call->query, HD_S("stream_mode"), call->arena, &names, &count,
                             &call->fault);

    *modes = 0;
    for (size_t i = 0; !err && i < count; i++)
        err = hd_mode_add(names[i], modes, &call->fault);
    if (*modes == 0)
        *modes = HD_MODES_OF_RUNS;
    return err;
}

/* ---- a run ------------------------------------------------------------ */

/* A viewer's disconnect does not stop the run. */
static int read_cancelling(struct hd_call *call, struct join *join)
{
    bool *out = &join->events.cancels_on_disconnect;
    int err = hd_params_bool(&call->query, HD_S("cancel_on_disconnect"), false, out, &call->fault);

    *out = *out && call->role >= HD_ROLE_EDITOR;
    return err;
}

static struct join *make_join(struct hd_call *call)
{
    struct join *join = hd_arena_calloc(call->arena, 1, sizeof(*join));

    if (join)
        hd_arena_init(&join->pages, MAX_PAGES);
    call->state = join;
    return join;
}

/* Reads the stored events, when the client resumes after an event. */
static int read_stored(struct hd_call *call, struct join *join)
{
    struct hd_slice id = last_event_id(call);
    int err;

    join->events.after = after_of(id);
    join->is_resuming = join->events.after != HD_FROM_NOW;
    if (!join->is_resuming)
        return 0;
    join->stored_after = join->events.after;
    err = hd_event_log_pages_read(call->app->store, call->principal, join->thread_id, join->run_id,
                                  &join->stored_after, &join->pages, &join->stored, &call->fault);
    if (err)
        hd_arena_fini(&join->pages);
    return err;
}

static void note_thread(struct join *join, const struct hd_thread_rec *thread)
{
    join->event_seq = thread->event_seq;
    join->created_at = thread->created_at;
}

static int find_run(struct hd_call *call, struct join *join, struct hd_thread_rec *thread)
{
    struct hd_run_rec run;
    int err = hd_run_read(call->app->store, call->principal, join->thread_id, join->run_id,
                          call->arena, &run, &call->fault);

    if (!err)
        err = hd_thread_read(call->app->store, call->principal, join->thread_id, call->arena,
                             thread, &call->fault);
    if (!err)
        note_thread(join, thread);
    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        return hd_error_set(&call->fault, HD_ENOTFOUND, "Run not found");
    }
    return err;
}

static struct hd_step join_work(struct hd_call *call)
{
    struct join *join = make_join(call);
    struct hd_thread_rec thread;
    int err = join ? hd_path_uuid(call, 0, "thread_id", &join->thread_id) : HD_ENOMEM;

    if (!err)
        err = hd_path_uuid(call, 1, "run_id", &join->run_id);
    if (!err)
        err = read_modes(call, &join->events.modes);
    if (!err)
        err = read_cancelling(call, join);
    if (!err)
        err = find_run(call, join, &thread);
    if (!err)
        err = read_stored(call, join);
    return hd_step_next(err);
}

/* Only the id of the run is given. */
static struct hd_step join_stateless_work(struct hd_call *call)
{
    struct join *join = make_join(call);
    struct hd_run_rec run;
    struct hd_thread_rec thread;
    struct hd_step step = HD_NEXT;
    bool is_seen = true;
    int err = join ? hd_path_uuid(call, 0, "run_id", &join->run_id) : HD_ENOMEM;

    if (!err)
        err = read_modes(call, &join->events.modes);
    if (!err)
        err = hd_run_find(call->app->store, call->principal, join->run_id, call->arena, &run,
                          &call->fault);
    if (err == HD_ENOTFOUND)
        return hd_call_refuse(call, 404, "Run not found");
    if (!err) {
        join->thread_id = run.thread_id;
        err = find_run(call, join, &thread);
    }
    if (!err)
        err = hd_call_sees(call, HD_OF_THREADS, thread.metadata, &is_seen);
    if (!err && !is_seen)
        return hd_call_refuse(call, 404, "Run not found");
    if (!err)
        step = hd_forward_find(call, join->thread_id, HD_BY_LAST_HOLDER);
    if (!err && hd_step_is_next(step))
        err = read_stored(call, join);
    return err ? hd_step_fail(err) : step;
}

static struct hd_step read_again(struct hd_call *call)
{
    struct join *join = call->state;
    int err =
        hd_event_log_pages_settle(call->app->store, call->principal, join->thread_id, &call->fault);

    hd_arena_init(&join->pages, MAX_PAGES);
    return hd_step_next(err ? err : read_stored(call, join));
}

/* Events were evicted from memory before they were stored: waits for the store and reads again. */
static struct hd_step fill_hole(struct hd_call *call, struct join *join, struct hd_event_log *log)
{
    hd_event_log_flush(log);
    join->settled = hd_event_log_forgotten(log);
    hd_arena_fini(&join->pages);
    join->stored = NULL;
    if (++join->reads == MAX_READS) {
        hd_call_header_int(call, HD_S("Retry-After"), 1);
        return hd_call_refuse(call, 503, "events arrive faster than they are stored; try again");
    }
    return hd_call_visit(call, read_again, call->route->then);
}

/* HD_NEXT: *out is the event log, with its stored events prepended. */
static struct hd_step open_log(struct hd_call *call, struct join *join, struct hd_event_log **out)
{
    struct hd_event_log *log =
        hd_event_log_open(call->app->event_logs, call->principal, join->thread_id, join->created_at,
                          (uint64_t)join->event_seq);
    int err = log ? 0 : HD_ENOMEM;

    *out = log;
    if (!err && join->is_resuming &&
        hd_event_log_has_hole(log, join->stored, join->events.after, join->settled))
        return fill_hole(call, join, log);
    if (!err && join->is_resuming)
        err = hd_event_log_prepend(log, join->stored, join->stored_after);
    hd_arena_fini(&join->pages);
    return hd_step_next(err);
}

static struct hd_step join_then(struct hd_call *call)
{
    struct join *join = call->state;
    struct hd_event_log *log;
    struct hd_step step = open_log(call, join, &log);

    if (!hd_step_is_next(step))
        return step;
    join->events.thread_id = join->thread_id;
    join->events.run_id = join->run_id;
    join->events.is_over =
        !hd_queue_has(call->app->queue, call->principal, join->thread_id, join->run_id);
    return hd_event_stream_send(call, log, &join->events);
}

/* ---- waiting for a run ------------------------------------------------ */

static struct hd_step wait_work(struct hd_call *call)
{
    struct join *join = make_join(call);
    struct hd_thread_rec thread;
    int err = join ? hd_path_uuid(call, 0, "thread_id", &join->thread_id) : HD_ENOMEM;

    if (!err)
        err = hd_path_uuid(call, 1, "run_id", &join->run_id);
    if (!err)
        err = read_cancelling(call, join);
    if (!err)
        err = find_run(call, join, &thread);
    return hd_step_next(err);
}

static struct hd_step wait_then(struct hd_call *call)
{
    struct join *join = call->state;

    return hd_wait_send(call, join->thread_id, join->run_id, join->events.cancels_on_disconnect);
}

/* ---- a thread --------------------------------------------------------- */

/* Read marks, typing and presence are for those who may write. */
static uint32_t room_modes(const struct hd_call *call)
{
    return HD_MODE_ROOM | (call->role >= HD_ROLE_EDITOR ? (uint32_t)HD_MODE_PRESENCE : 0);
}

static int read_thread_modes(struct hd_call *call, struct hd_event_stream_options *events)
{
    struct hd_slice *names;
    bool has_runs = false;
    size_t count;
    int err = hd_params_list(&call->query, HD_S("stream_mode"), call->arena, &names, &count,
                             &call->fault);

    if (!err && count == 0)
        err = hd_params_list(&call->query, HD_S("stream_modes"), call->arena, &names, &count,
                             &call->fault);
    for (size_t i = 0; !err && i < count; i++) {
        if (hd_slice_eq(names[i], HD_S("run_modes")))
            has_runs = true;
        else if (hd_slice_eq(names[i], HD_S("state_update")))
            events->modes |= HD_MODE_STATE_UPDATE;
        else if (hd_slice_eq(names[i], HD_S("lifecycle")))
            events->is_lifecycle = true;
        else if (hd_slice_eq(names[i], HD_S("room")))
            events->modes |= room_modes(call);
        else
            err = hd_error_set(&call->fault, HD_EINVAL,
                               "stream_mode: expected run_modes, lifecycle, state_update or room");
    }
    if (has_runs || count == 0) {
        events->modes |= HD_MODES_OF_RUNS;
        events->is_lifecycle = false;
    }
    events->is_selected = !has_runs && count > 0;
    return err;
}

/* Uses a temporary arena: the stream may be long, and needs only two numbers of the record. */
static int read_event_seq(struct hd_call *call, struct join *join)
{
    struct hd_thread_rec thread;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_RECORD);
    err = hd_thread_read(call->app->store, call->principal, join->thread_id, &arena, &thread,
                         &call->fault);
    if (!err)
        note_thread(join, &thread);
    hd_arena_fini(&arena);
    return err;
}

/* A reader of a room is shown to the others. */
static int read_reader(struct hd_call *call, struct join *join)
{
    struct hd_room_person *person;
    struct hd_thread_rec thread;
    struct hd_room_rec room;
    int err;

    if (!(join->events.modes & HD_MODE_ROOM))
        return 0;
    person = hd_arena_calloc(call->arena, 1, sizeof(*person));
    err = person ? hd_room_find(call, &thread, &room) : HD_ENOMEM;
    if (!err)
        err = hd_room_people_me(call, person);
    join->events.person = person;
    join->events.has_presence = !err && room.has_presence;
    return err;
}

static struct hd_step thread_work(struct hd_call *call)
{
    struct join *join = make_join(call);
    int err = join ? hd_path_uuid(call, 0, "thread_id", &join->thread_id) : HD_ENOMEM;

    if (!err)
        err = read_thread_modes(call, &join->events);
    if (!err)
        err = read_event_seq(call, join);
    if (err == HD_ENOTFOUND)
        return hd_call_refuse_thread(call, join->thread_id);
    if (!err)
        err = read_reader(call, join);
    if (!err && hd_forward_source(call).len > 0)
        join->events.after = after_of(last_event_id(call));
    else if (!err)
        err = read_stored(call, join);
    return hd_step_next(err);
}

static struct hd_step thread_then(struct hd_call *call)
{
    struct join *join = call->state;
    struct hd_event_log *log = NULL;
    struct hd_step step = HD_NEXT;

    join->events.thread_id = join->thread_id;
    if (hd_forward_source(call).len == 0)
        step = open_log(call, join, &log);
    if (!hd_step_is_next(step))
        return step;
    if (call->forwarded)
        hd_stream_follow_announce(call, log, &join->events);
    return hd_stream_follow_applies(call) ? hd_stream_follow_send(call, log, &join->events)
                                          : hd_event_stream_send(call, log, &join->events);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/runs/{run_id}/stream",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_LAST_HOLDER,
     .on = HD_ON_THREADS_READ,
     .work = join_work,
     .then = join_then,
     .tag = "Runs",
     .summary = "Join the stream of a run; Last-Event-ID resumes it",
     .query = "stream_mode cancel_on_disconnect",
     .answer = "text/event-stream"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/runs/{run_id}/join",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_READ,
     .work = wait_work,
     .then = wait_then,
     .tag = "Runs",
     .summary = "Wait for a run and get its values",
     .query = "cancel_on_disconnect",
     .answer = "Any"},
    {.method = HD_METHOD_GET,
     .pattern = "/runs/{run_id}/stream",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_READ,
     .work = join_stateless_work,
     .then = join_then,
     .tag = "Stateless runs",
     .summary = "Join the stream of a stateless run",
     .query = "stream_mode",
     .answer = "text/event-stream"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/stream",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_FOLLOWER,
     .on = HD_ON_THREADS_READ,
     .work = thread_work,
     .then = thread_then,
     .tag = "Threads",
     .summary = "Stream the events of a thread, across its runs",
     .query = "thread_stream_mode",
     .answer = "text/event-stream"},
};

const struct hd_routes hd_routes_stream_join = {routes, HD_COUNT(routes)};
