#include "api/request/worker_query.h"

#include "base/json.h"

#define TIMEOUT_US (60 * 1000000LL)

struct worker_query_call {
    struct hd_call *call;
    hd_worker_reply_fn on_reply;
    struct hd_rt_call *sent;
};

static int error_of_code(struct hd_slice code)
{
    static const struct {
        const char *name;
        int err;
    } codes[] = {
        {"not_found", HD_ENOTFOUND}, {"invalid", HD_EINVAL}, {"conflict", HD_ECONFLICT},
        {"gone", HD_ENOTFOUND},      {"limit", HD_ELIMIT},   {"busy", HD_EBUSY},
        {"unavailable", HD_ECLOSED},
    };

    for (size_t i = 0; i < HD_COUNT(codes); i++) {
        if (hd_slice_eq(code, hd_slice_cstr(codes[i].name)))
            return codes[i].err;
    }
    return 0;
}

/* Exceptions that a graph raises because of its input; all others are faults of the graph. */
static int error_of_type(struct hd_slice type)
{
    static const char *const names[] = {"InvalidUpdateError", "ValueError",      "TypeError",
                                        "KeyError",           "EmptyInputError", "ValidationError",
                                        "LoadError"};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(type, hd_slice_cstr(names[i])))
            return HD_EINVAL;
    }
    return HD_ECORRUPT;
}

/* Reads the exception's text from a worker's refusal. */
static int read_refusal(struct hd_call *call, struct hd_slice head)
{
    struct hd_json json = {NULL};
    struct hd_slice type, message;
    int err;

    if (hd_json_parse(&json, head, NULL))
        return hd_error_set(&call->fault, HD_ECORRUPT, "the worker's reply is invalid");
    type = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("type")));
    message = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("message")));
    err = error_of_code(hd_json_string(hd_json_get(hd_json_root(&json), HD_S("code"))));
    if (!err)
        err = error_of_type(type);
    hd_error_set(&call->fault, err, "%.*s%s%.*s", (int)type.len, type.ptr, type.len > 0 ? ": " : "",
                 (int)message.len, message.ptr);
    hd_json_fini(&json);
    return err;
}

static struct hd_step read_query_end(struct worker_query_call *pending, enum hd_rt_end how,
                                     const struct hd_rt_message *message)
{
    struct hd_call *call = pending->call;

    switch (how) {
    case HD_RT_ANSWERED:
        call->on_error = NULL;
        return pending->on_reply(call, message);
    case HD_RT_REFUSED:
        return hd_step_fail(read_refusal(call, message->head));
    case HD_RT_LATE:
        return hd_step_fail(
            hd_error_set(&call->fault, HD_EBUSY, "the worker did not respond in time"));
    case HD_RT_LOST:
        break;
    }
    (void)read_refusal(call, message->head);
    return hd_step_fail(hd_error_set(&call->fault, HD_ECLOSED, "no worker is available"));
}

static void on_query_end(void *ctx, enum hd_rt_end how, const struct hd_rt_message *message)
{
    struct worker_query_call *pending = ctx;
    struct hd_call *call = pending->call;

    hd_call_resume(call, read_query_end(pending, how, message));
}

int hd_call_check_loaded(struct hd_call *call, const struct hd_app_graph *graph)
{
    struct hd_slice error = hd_app_form(graph)->error;
    struct hd_slice type, message;
    struct hd_json json = {NULL};
    int err;

    if (error.len == 0)
        return 0;
    if (hd_json_parse(&json, error, NULL))
        return HD_ENOMEM;
    type = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("type")));
    message = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("message")));
    err = hd_error_set(&call->fault, HD_EINVAL, "graph \"%.*s\" cannot be loaded: %.*s: %.*s",
                       (int)graph->id.len, graph->id.ptr, (int)type.len, type.ptr, (int)message.len,
                       message.ptr);
    hd_json_fini(&json);
    return err;
}

struct hd_step hd_call_query_worker(struct hd_call *call, const struct hd_worker_query *query)
{
    struct worker_query_call *pending = hd_arena_calloc(call->arena, 1, sizeof(*pending));
    const struct hd_rt_call_options options = {
        .language = query->language,
        .head = query->head,
        .blobs = &query->blob,
        .blob_count = query->blob.len > 0,
        .scope = query->scope,
        .timeout_us = TIMEOUT_US,
        .patience_us = call->app->runtime_settings.start_timeout_us,
        .on_end = on_query_end,
        .ctx = pending,
    };
    int err;

    if (!pending)
        return hd_step_fail(HD_ENOMEM);
    *pending = (struct worker_query_call){.call = call, .on_reply = query->on_reply};
    call->on_error = query->on_error;
    err = call->app->runtime ? hd_runtime_call(call->app->runtime, &options, &pending->sent)
                             : HD_ECLOSED;
    return err ? hd_step_fail(err) : HD_WAIT;
}

int hd_worker_query_reply_text(struct hd_call *call, const struct hd_rt_message *message,
                               struct hd_slice *out)
{
    if (message->blob_count == 0 || message->blobs[0].len == 0)
        return hd_error_set(&call->fault, HD_ECORRUPT, "the worker's reply is empty");
    *out = message->blobs[0];
    return 0;
}
