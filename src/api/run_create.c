/* New runs: in the background, streamed, or waited for; on a thread or stateless. */
#include "api/api.h"
#include "api/request/authorize.h"
#include "api/request/forward.h"
#include "api/request/graph_headers.h"
#include "api/event_stream.h"
#include "api/run_view.h"
#include "api/wait.h"
#include "base/log.h"
#include "config/config.h"
#include "records/stream_modes.h"
#include "run/admit.h"
#include "run/queue.h"

#define MAX_BATCH 1000

/* One requested run; in the arena of its call. */
struct run_creation {
    struct hd_run_request request;
    struct hd_admission admission;
};

struct creations {
    struct run_creation *list;
    size_t count;
};

/* ---- admission (store thread) ----------------------------------------- */

static int creation_admit(struct hd_call *call, struct run_creation *creation, hd_json_val body,
                          struct hd_slice thread_id)
{
    struct hd_admission *admission = &creation->admission;
    int err = hd_run_request_read(&creation->request, body, &call->fault);

    admission->app = call->app;
    admission->arena = call->arena;
    admission->principal = call->principal;
    admission->actor = call->actor;
    if (call->identity) {
        admission->subject = call->identity->subject;
        admission->is_admin = call->identity->is_admin;
        admission->user = call->identity->user;
    }
    if (!err && hd_call_is_stamped(call))
        err = hd_call_text(call, creation->request.metadata, &admission->stamps);
    admission->thread_id = thread_id;
    admission->seen = hd_forward_thread(call);
    admission->request = &creation->request;
    if (!err)
        err = hd_graph_headers_write(call, true, &admission->headers);
    if (!err)
        err = hd_admit(admission, &call->fault);
    return err;
}

static struct hd_step creation_refuse(struct hd_call *call, const struct hd_admission *admission)
{
    if (admission->retry_s > 0)
        hd_call_header_int(call, HD_S("Retry-After"), admission->retry_s);
    return hd_call_refuse(call, admission->refusal, "%s", call->fault.text);
}

static struct hd_step admit_one(struct hd_call *call, struct hd_slice thread_id)
{
    struct creations *all = hd_arena_calloc(call->arena, 1, sizeof(*all));
    int err;

    if (!all)
        return hd_step_fail(HD_ENOMEM);
    all->list = hd_arena_calloc(call->arena, 1, sizeof(*all->list));
    if (!all->list)
        return hd_step_fail(HD_ENOMEM);
    all->count = 1;
    call->state = all;
    err = creation_admit(call, all->list, call->body, thread_id);
    if (err)
        return hd_step_fail(err);
    if (all->list->admission.holder.len > 0)
        return hd_forward_again(call);
    if (all->list->admission.refusal)
        return creation_refuse(call, &all->list->admission);
    return HD_NEXT;
}

static struct hd_step work_on_thread(struct hd_call *call)
{
    struct hd_slice thread_id;
    int err = hd_path_uuid(call, 0, "thread_id", &thread_id);

    return err ? hd_step_fail(err) : admit_one(call, thread_id);
}

static struct hd_step work_alone(struct hd_call *call)
{
    return admit_one(call, hd_slice(NULL, 0));
}

/* The first refusal ends a batch: all-or-nothing would need a transaction over many threads. */
static struct hd_step work_batch(struct hd_call *call)
{
    struct creations *all = hd_arena_calloc(call->arena, 1, sizeof(*all));
    struct hd_json_iter it = hd_json_iter(call->body);
    size_t count = hd_json_size(call->body);
    int err = 0;

    if (!hd_json_is_array(call->body) || count == 0 || count > MAX_BATCH)
        return hd_step_fail(hd_error_set(&call->fault, HD_EINVAL,
                                         "the body must be a list of 1 to %d runs", MAX_BATCH));
    if (!all)
        return hd_step_fail(HD_ENOMEM);
    call->state = all;
    all->list = hd_arena_calloc(call->arena, count, sizeof(*all->list));
    if (!all->list)
        return hd_step_fail(HD_ENOMEM);
    while (!err && hd_json_next(&it)) {
        struct hd_run_request request;

        err = hd_run_request_read(&request, it.val, &call->fault);
    }
    it = hd_json_iter(call->body);
    while (!err && hd_json_next(&it)) {
        struct run_creation *creation = &all->list[all->count];

        err = creation_admit(call, creation, it.val, hd_slice(NULL, 0));
        if (!err && creation->admission.refusal) {
            (void)creation_refuse(call, &creation->admission);
            break;
        }
        all->count += !err;
    }
    return hd_step_next(all->count == 0 ? err : 0);
}

/* ---- the queue (loop) ------------------------------------------------- */

/* The run is stored: at the latest the next process recovers it. */
static void enqueue(struct hd_call *call, const struct run_creation *creation, bool is_streamed)
{
    const struct hd_admission *admission = &creation->admission;
    enum hd_cancel action = creation->request.multitask == HD_MULTITASK_ROLLBACK
                                ? HD_CANCEL_ROLLBACK
                                : HD_CANCEL_INTERRUPT;
    int err = hd_queue_add(call->app->queue, &admission->run, admission->event_seq, is_streamed);

    if (err)
        hd_log(HD_LOG_ERROR, "run", "run %.*s waits for a restart: %s",
               (int)admission->run.run_id.len, admission->run.run_id.ptr, hd_error_text(err));
    for (size_t i = 0; i < admission->cancelled_count; i++)
        hd_queue_cancel(call->app->queue, call->principal, admission->run.thread_id,
                        admission->cancelled[i], action);
}

/* The address of the run. A stateless run has no visible thread. */
static void put_location(struct hd_call *call, const struct run_creation *creation,
                         const char *suffix)
{
    const struct hd_run_rec *run = &creation->admission.run;
    const char *format =
        creation->admission.thread_id.len > 0 ? "/threads/%.*s/runs/%.*s%s" : "%.*s/runs/%.*s%s";
    int thread_len = creation->admission.thread_id.len > 0 ? (int)run->thread_id.len : 0;
    char *content = hd_arena_printf(call->arena, format, thread_len, run->thread_id.ptr,
                                    (int)run->run_id.len, run->run_id.ptr, "");
    char *location = hd_arena_printf(call->arena, format, thread_len, run->thread_id.ptr,
                                     (int)run->run_id.len, run->run_id.ptr, suffix);

    if (!content || !location)
        return;
    hd_call_header(call, HD_S("Content-Location"), hd_slice_cstr(content));
    if (suffix[0])
        hd_call_header(call, HD_S("Location"), hd_slice_cstr(location));
}

/* The response shows the run as requested, although it may be running already. */
static void creation_show(struct hd_call *call, const struct run_creation *creation)
{
    struct hd_run_rec run = creation->admission.run;

    run.status = HD_RUN_STATE_PENDING;
    hd_run_view(call, &run);
}

static struct hd_step then_create(struct hd_call *call)
{
    struct creations *all = call->state;

    put_location(call, all->list, "");
    creation_show(call, all->list);
    enqueue(call, all->list, false);
    return HD_DONE;
}

static struct hd_step then_batch(struct hd_call *call)
{
    struct creations *all = call->state;
    bool is_refused = call->status != 200;

    if (!is_refused)
        hd_jw_array(&call->jw);
    for (size_t i = 0; i < all->count; i++) {
        if (!is_refused)
            creation_show(call, &all->list[i]);
        enqueue(call, &all->list[i], false);
    }
    if (!is_refused)
        hd_jw_array_end(&call->jw);
    return HD_DONE;
}

static struct hd_step then_stream(struct hd_call *call)
{
    struct creations *all = call->state;
    struct run_creation *creation = all->list;
    const struct hd_run_rec *run = &creation->admission.run;
    struct hd_event_log *log =
        hd_event_log_open(call->app->event_logs, call->principal, run->thread_id,
                          run->guard.created_at, (uint64_t)creation->admission.event_seq);
    const struct hd_event_stream_options events = {.thread_id = run->thread_id,
                                                   .run_id = run->run_id,
                                                   .modes = creation->request.modes,
                                                   .after = HD_FROM_NOW,
                                                   .cancels_on_disconnect =
                                                       creation->request.cancels_on_disconnect,
                                                   .is_creator = true};
    struct hd_step step;

    put_location(call, creation, "/stream");
    /* The stream is opened before the run starts, so that it misses no event. */
    if (log)
        hd_event_log_hold(log);
    step = hd_event_stream_send(call, log, &events);
    enqueue(call, creation, true);
    if (log)
        hd_event_log_release(log);
    return step;
}

static struct hd_step then_wait(struct hd_call *call)
{
    struct creations *all = call->state;
    struct run_creation *creation = all->list;
    const struct hd_run_rec *run = &creation->admission.run;

    put_location(call, creation, "/join");
    enqueue(call, creation, false);
    return hd_wait_send(call, run->thread_id, run->run_id, creation->request.cancels_on_disconnect);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/runs",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_on_thread,
     .then = then_create,
     .tag = "Runs",
     .summary = "Start a run in the background",
     .body = "RunCreate",
     .answer = "Run"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/runs/stream",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_on_thread,
     .then = then_stream,
     .tag = "Runs",
     .summary = "Start a run and stream its events",
     .body = "RunCreate",
     .answer = "text/event-stream"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/runs/wait",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_on_thread,
     .then = then_wait,
     .tag = "Runs",
     .summary = "Start a run and wait for its values",
     .body = "RunCreate",
     .answer = "Any"},
    {.method = HD_METHOD_POST,
     .pattern = "/runs",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_alone,
     .then = then_create,
     .tag = "Stateless runs",
     .summary = "Start a run on a new thread",
     .body = "RunCreate",
     .answer = "Run"},
    {.method = HD_METHOD_POST,
     .pattern = "/runs/stream",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_alone,
     .then = then_stream,
     .tag = "Stateless runs",
     .summary = "Start a run on a new thread and stream its events",
     .body = "RunCreate",
     .answer = "text/event-stream"},
    {.method = HD_METHOD_POST,
     .pattern = "/runs/wait",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_alone,
     .then = then_wait,
     .tag = "Stateless runs",
     .summary = "Start a run on a new thread and wait for its values",
     .body = "RunCreate",
     .answer = "Any"},
    {.method = HD_METHOD_POST,
     .pattern = "/runs/batch",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = work_batch,
     .then = then_batch,
     .tag = "Stateless runs",
     .summary = "Start several runs, each on a new thread",
     .body = "[RunCreate",
     .answer = "[Run"},
};

const struct hd_routes hd_routes_run_create = {routes, HD_COUNT(routes)};
