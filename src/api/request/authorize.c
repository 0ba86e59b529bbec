#include "api/request/authorize.h"

#include "api/request/access.h"
#include "api/request/authorize_value.h"
#include "auth/auth_filter.h"
#include "base/log.h"
#include "gate/auth_service.h"
#include "gate/auth_worker.h"

#define MAX_HEADERS 16

/* ---- state of an authorization */

/* The events of a request: route->on for each element of a list, then route->also_on. */
struct hd_authorized {
    struct hd_slice handlers[2]; /* of on and also_on; empty: no handler */
    int which;                   /* 0: on, 1: also_on */
    size_t index;                /* of the element */
    bool has_event;              /* `value` is that of an event to send */
    struct hd_buf value;
    struct hd_slice reply; /* JSON, of the handler; its value may be in a blob */
    struct hd_slice changed;
    struct hd_slice *elements; /* changed elements of a list, as text; empty: unchanged */
    struct hd_json filters[HD_RESOURCES];
    bool is_stamped;
};

static const struct hd_authorize_event *event_of(const struct hd_call *call)
{
    const struct hd_authorized *a = call->authorized;

    return hd_authorize_event(a->which == 0 ? call->route->on : call->route->also_on);
}

static bool authorize_is_list(const struct hd_call *call)
{
    return call->route->body && call->route->body[0] == '[';
}

void hd_authorize_free(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;

    if (!a)
        return;
    hd_buf_fini(&a->value);
    for (size_t i = 0; i < HD_RESOURCES; i++)
        hd_json_fini(&a->filters[i]);
    call->authorized = NULL;
}

/* ---- building the event (store thread) */

static int write_value(struct hd_call *call, hd_json_val body)
{
    return hd_authorize_value(call, event_of(call), body, &call->authorized->value);
}

static hd_json_val element_at(hd_json_val list, size_t index)
{
    struct hd_json_iter it = hd_json_iter(list);

    for (size_t i = 0; hd_json_next(&it); i++) {
        if (i == index)
            return it.val;
    }
    return NULL;
}

/* The threads of an assistant matter only when they are deleted with it. */
static bool is_concerned(struct hd_call *call)
{
    bool deletes = true;

    if (call->route->on == HD_ON_ASSISTANTS_DELETE &&
        hd_params_bool(&call->query, HD_S("delete_threads"), false, &deletes, &call->fault))
        call->fault = (struct heddle_error){0};
    return deletes;
}

/* Builds the next event, starting at a->which and a->index. */
static int make_event(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    int err = 0;

    a->has_event = false;
    if (a->which == 0 && a->handlers[0].len > 0 && authorize_is_list(call) &&
        a->index < hd_json_size(call->body)) {
        a->has_event = true;
        return write_value(call, element_at(call->body, a->index));
    }
    if (a->which == 0 && a->handlers[0].len > 0 && !authorize_is_list(call) && a->index == 0) {
        a->has_event = true;
        return write_value(call, call->body);
    }
    if (a->which == 1 && a->index > 0)
        return 0;
    a->which = 1;
    a->index = 0;
    if (a->handlers[1].len == 0 || !is_concerned(call))
        return 0;
    a->has_event = true;
    if (call->route->also_on == HD_ON_THREADS_CREATE)
        err = hd_authorize_value_of_copy(call, event_of(call), &a->value, &a->has_event);
    else
        err = write_value(call, call->body);
    return err;
}

/* ---- applying the reply (store thread) */

/* Replaces the body by this text. */
static int replace_body(struct hd_call *call, struct hd_slice text)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, text, &call->fault);

    if (err)
        return err;
    hd_json_fini(&call->json);
    call->json = json;
    call->body = hd_json_root(&call->json);
    return 0;
}

static int change_body(struct hd_call *call, hd_json_val changed)
{
    struct hd_authorized *a = call->authorized;
    hd_json_val body = authorize_is_list(call) ? element_at(call->body, a->index) : call->body;
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    hd_buf_init(&buf, HD_AUTHORIZE_MAX_VALUE);
    hd_jw_init(&jw, &buf);
    hd_authorize_put_changed(&jw, event_of(call), body, changed);
    err = hd_jw_finish(&jw);
    if (!err && !authorize_is_list(call))
        err = replace_body(call, hd_buf_slice(&buf));
    if (!err && authorize_is_list(call) && !a->elements) {
        a->elements = hd_arena_calloc(call->arena, hd_json_size(call->body), sizeof(*a->elements));
        err = a->elements ? 0 : HD_ENOMEM;
    }
    if (!err && authorize_is_list(call))
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), &a->elements[a->index]);
    hd_buf_fini(&buf);
    return err;
}

/* After the handler has checked all elements of a list. */
static int change_list(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    struct hd_json_iter it = hd_json_iter(call->body);
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    if (!a->elements)
        return 0;
    hd_buf_init(&buf, HD_AUTHORIZE_MAX_VALUE);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; hd_json_next(&it); i++) {
        if (a->elements[i].len > 0)
            hd_jw_raw(&jw, a->elements[i]);
        else
            hd_jw_val(&jw, it.val);
    }
    hd_jw_array_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = replace_body(call, hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return err;
}

/* The first filter for a resource counts: records created afterwards belong to the caller. */
static struct hd_step keep_filter(struct hd_call *call, hd_json_val filter)
{
    struct hd_json *kept = &call->authorized->filters[event_of(call)->of];
    struct heddle_error why = {0};
    struct hd_slice text;
    int err = hd_auth_filter_check(filter, &why);

    if (err) {
        hd_log(HD_LOG_ERROR, "auth", "the handler of %s.%s: %s", event_of(call)->resource,
               event_of(call)->action, why.text);
        return hd_call_refuse(call, 500, "the project's authorization handler failed");
    }
    if (!filter || hd_json_is_null(filter) || hd_json_size(filter) == 0 || kept->doc)
        return HD_NEXT;
    err = hd_call_text(call, filter, &text);
    return hd_step_next(err ? err : hd_json_parse(kept, text, &call->fault));
}

static struct hd_step apply_decision(struct hd_call *call, hd_json_val reply, hd_json_val changed)
{
    struct hd_authorized *a = call->authorized;
    const struct hd_authorize_event *event = event_of(call);
    struct hd_step step;

    if (!hd_json_is_true(hd_json_get(reply, HD_S("allow"))))
        return hd_call_refuse(call, 403, "Forbidden");
    step = keep_filter(call, hd_json_get(reply, HD_S("filter")));
    if (hd_step_is_next(step) && hd_json_is_object(changed) && event->members[0]) {
        step = hd_step_next(change_body(call, changed));
        a->is_stamped |= hd_authorize_stamps(event, changed);
    }
    return step;
}

static struct hd_step read_reply(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    struct hd_json reply = {NULL}, changed = {NULL};
    struct hd_step step;
    hd_json_val value;
    int err = hd_json_parse(&reply, a->reply, &call->fault);

    value = hd_json_get(hd_json_root(&reply), HD_S("value"));
    if (!err && a->changed.len > 0) {
        err = hd_json_parse(&changed, a->changed, &call->fault);
        value = hd_json_root(&changed);
    }
    step = err ? hd_step_fail(err) : apply_decision(call, hd_json_root(&reply), value);
    hd_json_fini(&changed);
    hd_json_fini(&reply);
    return step;
}

struct hd_step hd_authorize_apply(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    struct hd_step step = read_reply(call);
    int err;

    /* Looks up the path's thread again: the filter may hide it from the caller. */
    if (hd_step_is_next(step) && hd_call_is_filtered(call, HD_OF_THREADS))
        step = hd_access_path(call);
    if (!hd_step_is_next(step))
        return step;
    a->index++;
    err = make_event(call);
    if (err)
        return hd_step_fail(err);
    return a->has_event ? hd_call_go_to(call, HD_STAGE_AUTHORIZE) : hd_step_next(change_list(call));
}

bool hd_authorize_has_handler(const struct hd_call *call)
{
    const struct hd_authorized *a = call->authorized;

    return a && (a->handlers[0].len > 0 || a->handlers[1].len > 0);
}

struct hd_step hd_authorize_first_event(struct hd_call *call)
{
    return hd_step_next(make_event(call));
}

/* ---- sending the event (loop) */

static bool is_header(struct hd_slice name, struct hd_slice value)
{
    static const char *const own[] = {"content-length",    "content-type", "content-encoding",
                                      "transfer-encoding", "connection",   "date",
                                      "x-request-id"};

    for (size_t i = 0; i < HD_COUNT(own); i++) {
        if (hd_slice_eq_nocase(name, hd_slice_cstr(own[i])))
            return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
            return false;
    }
    return name.len > 0 && hd_slice_is_token(name);
}

struct hd_step hd_authorize_refuse(struct hd_call *call, const struct hd_auth_refusal *refusal)
{
    struct hd_json_iter it = hd_json_iter(refusal->headers);

    for (size_t i = 0; i < MAX_HEADERS && hd_json_next(&it); i++) {
        if (hd_json_is_string(it.val) && is_header(it.key, hd_json_string(it.val)))
            hd_call_header(call, it.key, hd_json_string(it.val));
    }
    if (refusal->status == 503 && !refusal->headers)
        hd_call_header_int(call, HD_S("Retry-After"), 5);
    return hd_call_refuse(call, refusal->status, "%.*s", (int)refusal->detail.len,
                          refusal->detail.ptr);
}

/* The value is in the head, or in the blob that the head names. */
static int keep_reply(struct hd_call *call, const struct hd_rt_message *message)
{
    struct hd_authorized *a = call->authorized;
    int err = hd_arena_copy(call->arena, message->head, &a->reply);

    a->changed = hd_slice(NULL, 0);
    if (!err && message->blob_count > 0)
        err = hd_arena_copy(call->arena, message->blobs[0], &a->changed);
    return err;
}

static void on_handler_reply(void *ctx, const struct hd_rt_message *reply,
                             const struct hd_auth_refusal *refusal)
{
    struct hd_call *call = ctx;

    hd_call_resume(call, refusal ? hd_authorize_refuse(call, refusal)
                                 : hd_step_next(keep_reply(call, reply)));
}

bool hd_authorize_has_event(const struct hd_call *call)
{
    return call->authorized && call->authorized->has_event;
}

struct hd_step hd_authorize_send_event(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    const struct hd_authorize_event *event = event_of(call);
    const struct hd_auth_action action = {.identity = call->identity,
                                          .resource = event->resource,
                                          .action = event->action,
                                          .handler = a->handlers[a->which],
                                          .value = hd_buf_slice(&a->value)};
    int err = hd_auth_worker_authorize(hd_auth_service_worker(call->app->auth_service), &action,
                                       on_handler_reply, call);

    return err ? hd_step_fail(err) : HD_WAIT;
}

/* ---- finding the handlers (loop) */

static int find_handler(struct hd_call *call, enum hd_on on, struct hd_slice *out)
{
    const struct hd_authorize_event *event;

    if (on <= HD_ON_NOTHING)
        return 0;
    event = hd_authorize_event(on);
    return hd_arena_copy(call->arena,
                         hd_auth_worker_handler(hd_auth_service_worker(call->app->auth_service),
                                                event->resource, event->action),
                         out);
}

/* A worker has reported its handlers. */
static struct hd_step use_handlers(struct hd_call *call, const struct hd_auth_refusal *refusal)
{
    struct hd_authorized *a = call->authorized;
    int err;

    if (refusal)
        return hd_authorize_refuse(call, refusal);
    err = find_handler(call, call->route->on, &a->handlers[0]);
    if (!err)
        err = find_handler(call, call->route->also_on, &a->handlers[1]);
    return hd_step_next(err);
}

static void on_handlers_known(void *ctx, const struct hd_rt_message *reply,
                              const struct hd_auth_refusal *refusal)
{
    (void)reply;
    hd_call_resume(ctx, use_handlers(ctx, refusal));
}

bool hd_authorize_applies(const struct hd_call *call)
{
    return call->identity && call->app->auth_service &&
           hd_auth_service_worker(call->app->auth_service) &&
           (call->route->on > HD_ON_NOTHING || call->route->also_on > HD_ON_NOTHING);
}

struct hd_step hd_authorize_find_handlers(struct hd_call *call)
{
    const struct hd_auth_refusal *refusal;
    int err;

    call->authorized = hd_arena_calloc(call->arena, 1, sizeof(*call->authorized));
    if (!call->authorized)
        return hd_step_fail(HD_ENOMEM);
    hd_buf_init(&call->authorized->value, HD_AUTHORIZE_MAX_VALUE);
    err = hd_auth_worker_await(hd_auth_service_worker(call->app->auth_service), on_handlers_known,
                               call, &refusal);
    if (err == HD_READY)
        return use_handlers(call, refusal);
    return err ? hd_step_fail(err) : HD_WAIT;
}

/* ---- for routes --------------------------------------------------------- */

static hd_json_val filter_of(const struct hd_call *call, enum hd_resource resource)
{
    return call->authorized ? hd_json_root(&call->authorized->filters[resource]) : NULL;
}

bool hd_call_is_filtered(const struct hd_call *call, enum hd_resource resource)
{
    return filter_of(call, resource) != NULL;
}

int hd_call_sees(struct hd_call *call, enum hd_resource resource, struct hd_slice metadata,
                 bool *out)
{
    hd_json_val filter = filter_of(call, resource);
    struct hd_json json = {NULL};
    int err = 0;

    *out = true;
    if (!filter)
        return 0;
    if (metadata.len > 0)
        err = hd_json_parse(&json, metadata, &call->fault);
    *out = !err && hd_auth_filter_allows(filter, hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

int hd_call_sees_item(struct hd_call *call, const struct hd_item_rec *item, bool *out)
{
    struct hd_buf buf;
    int err;

    *out = true;
    if (!hd_call_is_filtered(call, HD_OF_STORE))
        return 0;
    hd_buf_init(&buf, HD_AUTHORIZE_MAX_VALUE);
    err = hd_authorize_value_of_item(call, item, &buf);
    if (!err)
        err = hd_call_sees(call, HD_OF_STORE, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

bool hd_call_is_stamped(const struct hd_call *call)
{
    return call->authorized && call->authorized->is_stamped;
}
