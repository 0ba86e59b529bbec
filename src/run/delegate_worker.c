/*
 * The worker operation `delegate`: delegates that graphs in workers call. The worker's run waits
 * for the reply. The delegate runs on the same thread, as any other, and ends before that run.
 */
#include <string.h>

#include "base/alloc.h"
#include "run/active_run.h"
#include "run/delegate_internal.h"
#include "worker/worker_wire.h"

#define MAX_READ ((size_t)256 << 20)
#define MAX_KEY 4096 /* bytes */
#define MAX_OUTPUT ((size_t)1 << 30)

/* ---- reply ------------------------------------------------------------ */

static const char *const statuses[] = {[HD_ENGINE_RUN_DONE] = "done",
                                       [HD_ENGINE_RUN_INTERRUPTED] = "interrupted",
                                       [HD_ENGINE_RUN_FAILED] = "failed",
                                       [HD_ENGINE_RUN_CANCELLED] = "cancelled"};

static void put_result_text(struct hd_jw *jw, const char *name, const char *text)
{
    hd_jw_put_string(jw, name, hd_slice_cstr(text ? text : ""));
}

static int write_result_head(struct hd_buf *out, const struct hd_engine_run_result *result)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    put_result_text(&jw, "status", statuses[result->status]);
    if (result->status == HD_ENGINE_RUN_FAILED) {
        hd_jw_put_object(&jw, "error");
        put_result_text(&jw, "type", result->error_type);
        put_result_text(&jw, "message", result->error_text);
        hd_jw_object_end(&jw);
    }
    if (result->status == HD_ENGINE_RUN_INTERRUPTED && result->interrupts) {
        hd_jw_key(&jw, HD_S("interrupts"));
        hd_val_put_rendered(&jw, result->interrupts);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int write_output(struct hd_rt_request *request, const struct hd_val *output)
{
    struct hd_buf text;
    int err;

    if (!output)
        return 0;
    request->blobs = hd_arena_alloc(request->arena, sizeof(*request->blobs));
    if (!request->blobs)
        return HD_ENOMEM;
    hd_buf_init(&text, MAX_OUTPUT);
    err = hd_val_render(&text, output);
    if (!err)
        err = hd_arena_copy(request->arena, hd_buf_slice(&text), request->blobs);
    if (!err)
        request->blob_count = 1;
    hd_buf_fini(&text);
    return err;
}

/* Replies and releases the worker's run, which may then end. */
static void answer_call(struct hd_rt_request *request, struct hd_runner *caller)
{
    hd_rt_request_answer(request);
    hd_runner_release(caller);
}

static void refuse_call(struct hd_rt_request *request, struct hd_runner *caller, int err,
                        const char *text)
{
    hd_error_set(&request->fault, err, "%s", text ? text : hd_error_text(err));
    answer_call(request, caller);
}

void hd_delegate_answer(struct hd_delegate *d, const struct hd_engine_run_result *result)
{
    struct hd_rt_request *request = d->request;
    struct hd_runner *caller = d->caller;
    int err = write_result_head(&request->head, result);

    if (!err && result->status == HD_ENGINE_RUN_DONE)
        err = write_output(request, result->output);
    request->state = NULL;
    hd_delegate_free(d);
    if (err)
        refuse_call(request, caller, err, NULL);
    else
        answer_call(request, caller);
}

/* ---- start ------------------------------------------------------------ */

/* A call whose assistant is being looked up. */
struct delegate_call {
    struct hd_delegation *delegation;
    struct hd_rt_request *request;
    struct hd_runner *caller;
    struct hd_slice assistant, key, input; /* borrowed from the request */
    bool is_cancelled;
};

static void on_cancel_lookup(struct hd_rt_request *request)
{
    struct delegate_call *call = request->state;

    call->is_cancelled = true;
}

static void on_cancel(struct hd_rt_request *request)
{
    if (request->state)
        hd_delegate_stop(request->state);
}

/* The namespace in a key: node:<task> in `node:<task>#2`. */
static struct hd_slice namespace_of_key(struct hd_slice key)
{
    const char *mark = key.len > 0 ? memrchr(key.ptr, '#', key.len) : NULL;

    return mark ? hd_slice(key.ptr, (size_t)(mark - key.ptr)) : key;
}

static int fill_delegate(struct hd_delegate *d, const struct delegate_call *call,
                         struct hd_slice assistant_id)
{
    const struct hd_runner_options *options = hd_runner_options(call->caller);
    int err = hd_arena_copy(&d->arena, options->principal, &d->principal);

    if (!err)
        err = hd_arena_copy(&d->arena, options->actor, &d->actor);
    if (!err)
        err = hd_arena_copy(&d->arena, options->thread, &d->thread);
    if (!err)
        err = hd_arena_copy(&d->arena, call->key, &d->task_id);
    if (!err)
        err = hd_arena_copy(&d->arena, assistant_id, &d->assistant_id);
    if (!err)
        err = hd_val_parse_json(call->input, &d->input, &call->request->fault);
    d->place = namespace_of_key(d->task_id);
    return err;
}

static int make_called_delegate(const struct delegate_call *call, struct hd_slice assistant_id,
                                struct hd_delegate **out)
{
    struct hd_delegate *d = hd_calloc(1, sizeof(*d));
    int err;

    if (!d)
        return HD_ENOMEM;
    d->delegation = call->delegation;
    d->caller = call->caller;
    d->request = call->request;
    d->outer = hd_delegate_of(call->caller);
    d->active = d->outer ? d->outer->active : hd_runner_options(call->caller)->ctx;
    hd_arena_init(&d->arena, MAX_READ);
    err = fill_delegate(d, call, assistant_id);
    if (err)
        hd_delegate_free(d);
    else
        *out = d;
    return err;
}

static void on_callee_found(void *arg, const struct hd_val *assistant)
{
    struct delegate_call *call = arg;
    struct hd_rt_request *request = call->request;
    struct hd_delegate *d = NULL;
    int err = 0;

    if (call->is_cancelled)
        err = hd_error_set(&request->fault, HD_ECLOSED, "the call was cancelled");
    else if (!assistant)
        err = hd_error_set(&request->fault, HD_ENOTFOUND, "unknown assistant \"%.*s\"",
                           (int)(call->assistant.len < 100 ? call->assistant.len : 100),
                           call->assistant.ptr);
    if (!err)
        err = make_called_delegate(
            call, hd_val_get_string(hd_val_get(assistant, HD_S("assistant_id"))), &d);
    if (!err) {
        request->state = d;
        request->on_cancel = on_cancel;
        err = hd_delegate_start(d);
    }
    if (err) {
        request->state = NULL;
        request->on_cancel = NULL;
        refuse_call(request, call->caller, err, NULL);
    }
    hd_free(call);
}

static int read_request(struct delegate_call *call)
{
    struct hd_rt_request *request = call->request;
    const struct hd_wire_in in = {.message = &request->message,
                                  .head = request->root,
                                  .arena = request->arena,
                                  .fault = &request->fault};
    int err = hd_wire_string(&in, "assistant", &call->assistant);

    if (!err)
        err = hd_wire_string(&in, "key", &call->key);
    if (!err)
        err = hd_wire_text(&in, "input", &call->input);
    if (!err && (call->assistant.len == 0 || call->key.len == 0 || call->key.len > MAX_KEY))
        err = hd_error_set(&request->fault, HD_EINVAL, "a delegate needs an assistant and a key");
    if (!err && call->input.len == 0)
        call->input = HD_S("null");
    return err;
}

static void start_call(struct hd_rt_request *request)
{
    struct hd_runner *caller = request->scope->owner;
    struct delegate_call *call = caller ? hd_calloc(1, sizeof(*call)) : NULL;
    int err = call ? 0 : HD_ENOMEM;

    if (!caller) {
        hd_error_set(&request->fault, HD_EINVAL, "only runs can call assistants");
        hd_rt_request_answer(request);
        return;
    }
    hd_runner_keep(caller);
    if (!err) {
        *call = (struct delegate_call){
            .delegation = request->ctx, .request = request, .caller = caller};
        err = read_request(call);
    }
    if (!err) {
        request->state = call;
        request->on_cancel = on_cancel_lookup;
        err = hd_delegate_find(call->delegation, hd_runner_options(caller)->actor, call->assistant,
                               on_callee_found, call);
    }
    if (err) {
        request->state = NULL;
        request->on_cancel = NULL;
        hd_free(call);
        refuse_call(request, caller, err, NULL);
    }
}

int hd_delegation_add_ops(struct hd_delegation *delegation)
{
    static const struct hd_rt_op ops[] = {
        {.name = "delegate", .start = start_call, .needs_scope = true},
    };

    return hd_runtime_add_ops(delegation->app->runtime, ops, HD_COUNT(ops), delegation);
}
