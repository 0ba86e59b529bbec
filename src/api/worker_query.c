#include "api/worker_query.h"

#include "base/json.h"

#define TIMEOUT_US (60 * 1000000LL)

struct worker_query_call {
    struct hd_call *call;
    hd_worker_reply_fn then;
    void (*otherwise)(struct hd_call *call, int err);
    struct hd_rt_call *asked;
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
        return hd_fault_set(&call->fault, HD_ECORRUPT, "the worker's reply is invalid");
    type = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("type")));
    message = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("message")));
    err = error_of_code(hd_json_string(hd_json_get(hd_json_root(&json), HD_S("code"))));
    if (!err)
        err = error_of_type(type);
    hd_fault_set(&call->fault, err, "%.*s%s%.*s", (int)type.len, type.ptr, type.len > 0 ? ": " : "",
                 (int)message.len, message.ptr);
    hd_json_fini(&json);
    return err;
}

static void query_fail(struct worker_query_call *asking, int err)
{
    if (asking->otherwise)
        asking->otherwise(asking->call, err);
    else
        hd_call_fail(asking->call, err);
}

static void on_query_end(void *ctx, enum hd_rt_end how, const struct hd_rt_message *message)
{
    struct worker_query_call *asking = ctx;
    struct hd_call *call = asking->call;

    switch (how) {
    case HD_RT_ANSWERED:
        asking->then(call, message);
        return;
    case HD_RT_REFUSED:
        query_fail(asking, read_refusal(call, message->head));
        return;
    case HD_RT_LATE:
        query_fail(asking,
                   hd_fault_set(&call->fault, HD_EBUSY, "the worker did not answer in time"));
        return;
    case HD_RT_LOST:
        break;
    }
    (void)read_refusal(call, message->head);
    query_fail(asking, hd_fault_set(&call->fault, HD_ECLOSED, "no worker is available"));
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
    err = hd_fault_set(&call->fault, HD_EINVAL, "graph \"%.*s\" cannot be loaded: %.*s: %.*s",
                       (int)graph->id.len, graph->id.ptr, (int)type.len, type.ptr, (int)message.len,
                       message.ptr);
    hd_json_fini(&json);
    return err;
}

void hd_call_query_worker(struct hd_call *call, const struct hd_worker_query *ask)
{
    struct worker_query_call *asking = hd_arena_calloc(call->arena, 1, sizeof(*asking));
    int err = asking ? 0 : HD_ENOMEM;

    if (err) {
        hd_call_fail(call, err);
        return;
    }
    *asking =
        (struct worker_query_call){.call = call, .then = ask->then, .otherwise = ask->otherwise};

    const struct hd_rt_call_options options = {
        .language = ask->language,
        .head = ask->head,
        .blobs = &ask->blob,
        .blob_count = ask->blob.len > 0,
        .scope = ask->scope,
        .timeout_us = TIMEOUT_US,
        .patience_us = call->app->runtime_settings.start_timeout_us,
        .on_end = on_query_end,
        .ctx = asking,
    };

    err = call->app->runtime ? hd_runtime_call(call->app->runtime, &options, &asking->asked)
                             : HD_ECLOSED;
    if (err)
        query_fail(asking, err);
}

int hd_worker_reply_text(struct hd_call *call, const struct hd_rt_message *message,
                         struct hd_slice *out)
{
    if (message->blob_count == 0 || message->blobs[0].len == 0)
        return hd_fault_set(&call->fault, HD_ECORRUPT, "the worker's reply is empty");
    *out = message->blobs[0];
    return 0;
}
