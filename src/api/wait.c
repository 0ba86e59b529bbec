#include "api/wait.h"

#include "api/disconnect.h"
#include "api/heartbeat.h"
#include "api/stream_access.h"
#include "api/thread_view.h"
#include "base/alloc.h"
#include "records/record.h"
#include "run/queue.h"

/* In the arena of its call. */
struct wait {
    struct hd_call *call;
    struct hd_slice thread_id;
    struct hd_slice run_id;
    bool cancels_on_disconnect;
    bool is_begun; /* as a stream, because the run takes long */
    bool is_ended; /* the response is complete; its rest is being sent */
    struct hd_waiter waiter;
    struct hd_heartbeat heartbeat;
    struct hd_stream_access watch;
    size_t sent;
};

static void wait_leave(struct wait *wait)
{
    hd_heartbeat_stop(&wait->heartbeat);
    hd_stream_access_stop(&wait->watch);
    hd_waiter_leave(&wait->waiter);
}

static void on_wait_gone(void *ctx)
{
    struct wait *wait = ctx;

    wait_leave(wait);
    if (wait->cancels_on_disconnect && !wait->is_ended)
        hd_disconnect_cancel(wait->call, wait->thread_id, wait->run_id);
    hd_call_free(wait->call);
}

/* Sends the part of the response that fits; the rest follows when there is room. */
static void on_room(void *ctx)
{
    struct wait *wait = ctx;
    struct hd_exchange *ex = wait->call->exchange;
    struct hd_slice rest;

    if (!wait->is_ended)
        return;
    rest = hd_slice(wait->call->out.ptr + wait->sent, wait->call->out.len - wait->sent);
    wait->sent += hd_http_stream_write(ex, &rest, 1);
    if (wait->sent < wait->call->out.len)
        return;
    hd_call_free(wait->call);
    hd_http_stream_end(ex);
}

/* Clients and proxies time out without data; JSON may begin with white space. */
static void on_heartbeat(void *ctx)
{
    struct wait *wait = ctx;
    struct hd_slice space = HD_S("\n");

    if (!wait->is_begun) {
        wait->is_begun = true;
        hd_call_send_headers(wait->call);
        hd_http_stream_begin(wait->call->exchange, 200, HD_TYPE_JSON, on_room, on_wait_gone, wait);
    }
    hd_http_stream_write(wait->call->exchange, &space, 1);
}

/* The response is in the call. */
static void wait_answer(struct wait *wait)
{
    wait_leave(wait);
    wait->is_ended = true;
    if (wait->is_begun) {
        on_room(wait);
        return;
    }
    hd_exchange_on_gone(wait->call->exchange, NULL, NULL);
    hd_call_resume(wait->call, HD_DONE);
}

static void put_wait_error(struct hd_jw *jw, struct hd_slice type, struct hd_slice text)
{
    hd_jw_object(jw);
    hd_jw_put_object(jw, "__error__");
    hd_jw_put_string(jw, "error", type);
    hd_jw_put_string(jw, "message", text);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static void answer_error(struct wait *wait, struct hd_slice type, struct hd_slice text)
{
    put_wait_error(&wait->call->jw, type, text);
    wait_answer(wait);
}

/* ---- current values --------------------------------------------------- */

static void put_run_error(struct hd_call *call, const struct hd_run_rec *run)
{
    hd_jw_object(&call->jw);
    hd_jw_put_raw_or(&call->jw, "__error__", run->error,
                     "{\"error\":\"RuntimeError\",\"message\":\"the run failed\"}");
    hd_jw_object_end(&call->jw);
}

/* For a run that has ended: its error, or the current values of its agent. */
static struct hd_step read_values(struct hd_call *call)
{
    struct wait *wait = call->state;
    struct hd_run_rec run;
    int err = hd_run_read(call->app->store, call->principal, wait->thread_id, wait->run_id,
                          call->arena, &run, &call->fault);

    if (!err && (run.status == HD_RUN_STATE_ERROR || run.status == HD_RUN_STATE_TIMEOUT)) {
        put_run_error(call, &run);
        return HD_DONE;
    }
    return hd_step_done(err ? err : hd_thread_view_run_values(call, &run, &call->out));
}

static struct hd_step on_read_error(struct hd_call *call, int err)
{
    if (err == HD_ENOTFOUND) /* a stateless run's thread was deleted with it */
        hd_jw_null(&call->jw);
    else
        put_wait_error(&call->jw, HD_S("RuntimeError"),
                       hd_slice_cstr(call->fault.code ? call->fault.text : hd_error_text(err)));
    return HD_DONE;
}

static void answer_too_large(struct wait *wait)
{
    hd_buf_reset(&wait->call->out);
    hd_jw_init(&wait->call->jw, &wait->call->out);
    answer_error(wait, HD_S("ValueError"),
                 HD_S("the values of the thread are larger than a response may be (max_answer)"));
}

static void on_outcome(void *ctx, const struct hd_outcome *outcome)
{
    struct wait *wait = ctx;

    wait->waiter.link = NULL;
    if (outcome->is_taken && !wait->is_begun) {
        hd_call_header_int(wait->call, HD_S("Retry-After"), 1);
        (void)hd_call_refuse(wait->call, 503, "another server continues the run; join it again");
        wait_answer(wait);
    } else if (outcome->status == HD_RUN_STATE_ERROR || outcome->status == HD_RUN_STATE_TIMEOUT) {
        answer_error(wait, outcome->error_type, outcome->error_text);
    } else {
        hd_jw_raw_or(&wait->call->jw, outcome->values, "null");
        if (wait->call->jw.err)
            answer_too_large(wait);
        else
            wait_answer(wait);
    }
}

/* The waiting client has lost its access. The run belongs to the thread and continues. */
static void on_watch(void *ctx, enum hd_stream_access_end why)
{
    struct wait *wait = ctx;

    if (wait->is_begun) {
        answer_error(wait, why == HD_STREAM_ACCESS_GONE ? HD_S("NotFound") : HD_S("Forbidden"),
                     hd_slice_cstr(hd_stream_access_text(why)));
        return;
    }
    if (why == HD_STREAM_ACCESS_GONE)
        (void)hd_call_refuse_thread(wait->call, wait->thread_id);
    else
        (void)hd_call_refuse(wait->call, hd_stream_access_status(why), "%s",
                             hd_stream_access_text(why));
    wait_answer(wait);
}

struct hd_step hd_wait_send(struct hd_call *call, struct hd_slice thread_id, struct hd_slice run_id,
                            bool cancels_on_disconnect)
{
    struct wait *wait = hd_arena_calloc(call->arena, 1, sizeof(*wait));
    struct hd_step step;

    if (!wait || hd_arena_copy(call->arena, thread_id, &wait->thread_id) ||
        hd_arena_copy(call->arena, run_id, &wait->run_id))
        return hd_step_fail(HD_ENOMEM);
    call->state = wait;
    wait->call = call;
    wait->cancels_on_disconnect = cancels_on_disconnect;
    wait->waiter.fn = on_outcome;
    wait->waiter.ctx = wait;
    if (!hd_queue_wait(call->app->queue, call->principal, thread_id, run_id, &wait->waiter)) {
        step = hd_call_visit(call, read_values, NULL);
        call->on_error = on_read_error;
        return step;
    }
    hd_exchange_on_gone(call->exchange, on_wait_gone, wait);
    hd_heartbeat_start(hd_api_heartbeats(call->api), &wait->heartbeat, on_heartbeat, wait);
    hd_stream_access_start(&wait->watch, call, wait->thread_id, cancels_on_disconnect, on_watch,
                           wait);
    return HD_WAIT;
}
