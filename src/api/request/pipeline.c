#include "api/request/pipeline.h"

#include "api/request/access.h"
#include "api/api.h"
#include "api/request/authorize.h"
#include "api/request/forward.h"
#include "api/custom.h"
#include "app/defer.h"
#include "base/log.h"
#include "config/config.h"

/* ---- stages of the API itself ----------------------------------------- */

static bool needs_credentials(const struct hd_call *call)
{
    return call->route->access != HD_ACCESS_PUBLIC;
}

static bool parses_query(const struct hd_call *call)
{
    return !call->route->is_application;
}

static struct hd_step parse_query(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);

    return hd_step_next(hd_params_parse(&call->query, request->query, call->arena, &call->fault));
}

static int parse_body(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    int err;

    if (!call->route->body)
        return 0;
    if (request->body.len == 0) {
        if (call->route->body[0] == '?')
            return 0;
        return hd_error_set(&call->fault, HD_EINVAL, "a JSON body is required");
    }
    err = hd_json_parse(&call->json, request->body, &call->fault);
    if (err)
        return err;
    call->body = hd_json_root(&call->json);
    err = hd_json_check_names(call->body, &call->fault);
    if (err)
        return err;
    if (hd_json_is_null(call->body))
        call->body = NULL;
    if (call->body && !hd_json_is_object(call->body) && call->route->body[0] != '[')
        return hd_error_set(&call->fault, HD_EINVAL, "the body must be an object, not %s",
                            hd_json_type_name(call->body));
    if (!call->body && call->route->body[0] != '?')
        return hd_error_set(&call->fault, HD_EINVAL, "a JSON body is required");
    return 0;
}

/*
 * Pages can send text and forms to any server without a preflight. Without users a page that sends
 * JSON therefore has to name its type.
 */
static bool has_sound_type(const struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);

    return call->app->config->auth.val || !call->route->body || request->body.len == 0 ||
           !hd_request_is_of_page(request) || hd_request_is_json(request);
}

/* A route without all of these answers on the loop, without a visit to a store thread. */
static bool needs_preparation(const struct hd_call *call)
{
    return call->work || call->route->body || call->forwarded || hd_access_is_thread(call->route) ||
           hd_authorize_has_handler(call);
}

/* The body is parsed on the store thread: parsing a large one would block the loop. */
static struct hd_step prepare(struct hd_call *call)
{
    struct hd_step step;

    if (!has_sound_type(call))
        return hd_call_refuse(call, 415,
                              "the body must be sent with Content-Type: application/json");
    if (call->forwarded) {
        step = hd_forward_check_body(call);
    } else {
        step = hd_access_path(call);
        if (hd_step_is_next(step))
            step = hd_access_storage(call);
    }
    return hd_step_is_next(step) ? hd_step_next(parse_body(call)) : step;
}

static bool has_work(const struct hd_call *call)
{
    return call->work != NULL;
}

static struct hd_step do_work(struct hd_call *call)
{
    return call->work(call);
}

static bool has_then(const struct hd_call *call)
{
    return call->then != NULL;
}

static struct hd_step do_then(struct hd_call *call)
{
    return call->then(call);
}

/* ---- the table -------------------------------------------------------- */

enum place { ON_LOOP, ON_STORE_THREAD };

static const struct pipeline_stage {
    enum place place;
    bool (*applies)(const struct hd_call *call);
    hd_stage_fn run;
} stages[HD_STAGES] = {
    [HD_STAGE_ROUTE] = {ON_LOOP, NULL, NULL}, /* hd_api_handle() */
    [HD_STAGE_APPLICATION] = {ON_LOOP, hd_custom_may_serve, hd_custom_try},
    [HD_STAGE_AUTHENTICATE] = {ON_LOOP, needs_credentials, hd_access_authenticate},
    [HD_STAGE_ACT_FOR] = {ON_LOOP, hd_access_names_user, hd_access_act_for},
    [HD_STAGE_FIND_USER] = {ON_STORE_THREAD, hd_access_acts_for, hd_access_find_user},
    [HD_STAGE_ENTER] = {ON_LOOP, needs_credentials, hd_access_enter},
    [HD_STAGE_QUERY] = {ON_LOOP, parses_query, parse_query},
    [HD_STAGE_FIND_HANDLERS] = {ON_LOOP, hd_authorize_applies, hd_authorize_find_handlers},
    [HD_STAGE_PREPARE] = {ON_STORE_THREAD, needs_preparation, prepare},
    [HD_STAGE_LOCATE] = {ON_STORE_THREAD, hd_forward_locates, hd_forward_locate},
    [HD_STAGE_FORWARD] = {ON_LOOP, hd_forward_is_elsewhere, hd_forward_send},
    [HD_STAGE_EVENT] = {ON_STORE_THREAD, hd_authorize_has_handler, hd_authorize_first_event},
    [HD_STAGE_AUTHORIZE] = {ON_LOOP, hd_authorize_has_event, hd_authorize_send_event},
    [HD_STAGE_APPLY] = {ON_STORE_THREAD, hd_authorize_has_event, hd_authorize_apply},
    [HD_STAGE_WORK] = {ON_STORE_THREAD, has_work, do_work},
    [HD_STAGE_THEN] = {ON_LOOP, has_then, do_then},
};

/* ---- the driver ------------------------------------------------------- */

/* Moves to the next stage that applies; false after the last. */
static bool advance(struct hd_call *call, struct hd_step step)
{
    if (step.kind == HD_STEP_NEXT)
        call->stage++;
    while (call->stage < HD_STAGES && !stages[call->stage].applies(call))
        call->stage++;
    return call->stage < HD_STAGES;
}

static bool goes_on(struct hd_step step)
{
    return step.kind == HD_STEP_NEXT || step.kind == HD_STEP_GO_TO;
}

/* Store thread: runs all stages up to the next one on the loop. */
static void run_on_store_thread(void *arg)
{
    struct hd_call *call = arg;
    struct hd_step step;

    do {
        step = stages[call->stage].run(call);
        if (goes_on(step))
            step = advance(call, step) ? hd_call_go_to(call, call->stage) : HD_DONE;
    } while (goes_on(step) && stages[call->stage].place == ON_STORE_THREAD);
    if (step.kind == HD_STEP_DONE && call->jw.err)
        step = hd_step_fail(call->jw.err);
    if (step.kind == HD_STEP_DONE && call->out.len > 0 &&
        hd_exchange_compress(call->exchange, call->content_type, &call->out))
        hd_log(HD_LOG_DEBUG, "api", "a response is sent uncompressed: out of memory");
    call->step = hd_budget_settle(call, step);
}

static void on_store_thread_done(void *arg)
{
    struct hd_call *call = arg;

    hd_call_resume(call, call->step);
}

static struct hd_step visit_store_thread(struct hd_call *call)
{
    int err = hd_defer_run(call->app->defer, run_on_store_thread, on_store_thread_done, call);

    return err ? hd_step_fail(err) : HD_WAIT;
}

static struct hd_step handle_error(struct hd_call *call, int err)
{
    hd_error_fn on_error = call->on_error;
    int status = err < 0 ? hd_error_http_status(err) : 500; /* not an error: a mistake */

    if (on_error) {
        call->on_error = NULL;
        return on_error(call, err);
    }
    if (status >= 500)
        hd_log(HD_LOG_ERROR, "api", "%s: %s", call->route ? call->route->pattern : "request",
               call->fault.code ? call->fault.text : hd_error_text(err));
    hd_error_hide_paths(call->fault.text);
    return hd_call_refuse(call, status, "%s",
                          call->fault.code ? call->fault.text : hd_error_text(err));
}

static void send_response(struct hd_call *call)
{
    struct hd_exchange *ex = call->exchange;
    struct hd_buf out = call->out;
    struct hd_slice content_type = call->content_type;
    int status = call->status;

    hd_call_send_headers(call);
    hd_buf_init(&call->out, 0);
    hd_call_free(call);
    if (out.len == 0)
        hd_answer_empty(ex, status);
    else
        hd_answer(ex, status, content_type, &out);
    hd_buf_fini(&out);
}

/* After HD_WAIT the call may have ended already. */
void hd_call_resume(struct hd_call *call, struct hd_step step)
{
    while (step.kind != HD_STEP_WAIT) {
        if (step.kind == HD_STEP_ERROR) {
            step = handle_error(call, step.err);
        } else if (step.kind == HD_STEP_DONE || !advance(call, step)) {
            send_response(call);
            return;
        } else if (stages[call->stage].place == ON_STORE_THREAD) {
            step = visit_store_thread(call);
        } else {
            step = stages[call->stage].run(call);
        }
    }
}

struct hd_step hd_call_go_to(struct hd_call *call, enum hd_stage stage)
{
    call->stage = stage;
    return (struct hd_step){HD_STEP_GO_TO, 0};
}

struct hd_step hd_call_visit(struct hd_call *call, hd_stage_fn work, hd_stage_fn then)
{
    call->work = work;
    call->then = then;
    call->on_error = NULL;
    return hd_call_go_to(call, HD_STAGE_WORK);
}
