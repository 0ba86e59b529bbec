/* Requests to agents, in the version and binding of the card. */
#include "agent/a2a/a2a_proto.h"

#include "graph/node/idempotency_key.h"

#define MAX_BODY ((size_t)4 << 20)

/* ---- messages ------------------------------------------------------------ */

static void put_member(struct hd_jw *jw, struct hd_slice key, struct hd_slice text)
{
    if (text.len == 0)
        return;
    hd_jw_key(jw, key);
    hd_jw_string(jw, text);
}

static void put_ask_part(struct hd_jw *jw, const struct hd_a2a_operation *operation, bool is_old)
{
    hd_jw_object(jw);
    if (is_old)
        put_member(jw, HD_S("kind"), operation->data ? HD_S("data") : HD_S("text"));
    hd_jw_key(jw, operation->data ? HD_S("data") : HD_S("text"));
    if (operation->data)
        hd_val_put_rendered(jw, operation->data);
    else
        hd_jw_string(jw, operation->text);
    hd_jw_object_end(jw);
}

static void put_message(struct hd_jw *jw, const struct hd_a2a_operation *operation, bool is_old)
{
    hd_jw_put_object(jw, "message");
    if (is_old)
        put_member(jw, HD_S("kind"), HD_S("message"));
    put_member(jw, HD_S("messageId"), operation->message_id);
    put_member(jw, HD_S("contextId"), operation->context_id);
    put_member(jw, HD_S("taskId"), operation->task_id);
    put_member(jw, HD_S("role"), is_old ? HD_S("user") : HD_S("ROLE_USER"));
    hd_jw_put_array(jw, "parts");
    put_ask_part(jw, operation, is_old);
    hd_jw_array_end(jw);
    if (operation->key.len > 0) {
        hd_jw_put_object(jw, "metadata");
        put_member(jw, HD_S(HD_CALL_KEY_META), operation->key);
        hd_jw_object_end(jw);
    }
    hd_jw_object_end(jw);
}

static void put_configuration(struct hd_jw *jw, bool is_old)
{
    static const struct hd_slice modes[] = {HD_S_INIT("text/plain"), HD_S_INIT("application/json")};

    hd_jw_put_object(jw, "configuration");
    hd_jw_put_array(jw, "acceptedOutputModes");
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        hd_jw_string(jw, modes[i]);
    hd_jw_array_end(jw);
    /* 1.0 waits unless disabled. */
    if (is_old)
        hd_jw_put_bool(jw, "blocking", true);
    hd_jw_object_end(jw);
}

static void put_params(struct hd_jw *jw, const struct hd_a2a_card *card,
                       const struct hd_a2a_operation *operation)
{
    bool is_old = card->dialect == HD_A2A_0_3;

    hd_jw_object(jw);
    put_member(jw, HD_S("tenant"), hd_slice_cstr(card->tenant));
    if (operation->op == HD_A2A_SEND || operation->op == HD_A2A_STREAM) {
        put_message(jw, operation, is_old);
        put_configuration(jw, is_old);
    } else {
        put_member(jw, HD_S("id"), operation->task_id);
    }
    hd_jw_object_end(jw);
}

/* ---- JSON-RPC ------------------------------------------------------------ */

static const char *method_of(enum hd_a2a_op op, bool is_old)
{
    switch (op) {
    case HD_A2A_SEND:
        return is_old ? "message/send" : "SendMessage";
    case HD_A2A_STREAM:
        return is_old ? "message/stream" : "SendStreamingMessage";
    case HD_A2A_GET:
        return is_old ? "tasks/get" : "GetTask";
    case HD_A2A_CANCEL:
        break;
    }
    return is_old ? "tasks/cancel" : "CancelTask";
}

static int make_rpc(const struct hd_a2a_card *card, const struct hd_a2a_operation *operation,
                    struct hd_a2a_request *out)
{
    const char *method = method_of(operation->op, card->dialect == HD_A2A_0_3);
    struct hd_jw jw;
    int err = hd_buf_append(&out->url, card->url, strlen(card->url) + 1);

    if (err)
        return err;
    out->method = "POST";
    hd_jw_init(&jw, &out->body);
    hd_jw_object(&jw);
    put_member(&jw, HD_S("jsonrpc"), HD_S("2.0"));
    hd_jw_put_int(&jw, "id", 1);
    put_member(&jw, HD_S("method"), hd_slice_cstr(method));
    hd_jw_key(&jw, HD_S("params"));
    put_params(&jw, card, operation);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* ---- HTTP+JSON ------------------------------------------------------------ */

/* Keeps a query of the card's URL at the end. */
static int make_url(const struct hd_a2a_card *card, const struct hd_a2a_operation *operation,
                    struct hd_buf *out)
{
    size_t end = strcspn(card->url, "?#"), len = end;
    bool is_task = operation->op == HD_A2A_GET || operation->op == HD_A2A_CANCEL;
    const char *verb = operation->op == HD_A2A_SEND     ? "/message:send"
                       : operation->op == HD_A2A_STREAM ? "/message:stream"
                                                        : "/tasks/";
    int err;

    while (len > 0 && card->url[len - 1] == '/')
        len--;
    err = hd_buf_append(out, card->url, len);
    if (!err && card->tenant[0])
        err = hd_buf_append_byte(out, '/');
    if (!err)
        err = hd_buf_append_escaped(out, hd_slice_cstr(card->tenant));
    if (!err)
        err = hd_buf_append(out, verb, strlen(verb));
    if (!err && is_task)
        err = hd_buf_append_escaped(out, operation->task_id);
    if (!err && operation->op == HD_A2A_CANCEL)
        err = hd_buf_append(out, ":cancel", 7);
    return err ? err : hd_buf_append(out, card->url + end, strlen(card->url + end) + 1);
}

static int make_rest(const struct hd_a2a_card *card, const struct hd_a2a_operation *operation,
                     struct hd_a2a_request *out)
{
    struct hd_jw jw;
    int err = make_url(card, operation, &out->url);

    out->method = operation->op == HD_A2A_GET ? "GET" : "POST";
    if (err || operation->op == HD_A2A_GET)
        return err;
    hd_jw_init(&jw, &out->body);
    put_params(&jw, card, operation);
    return hd_jw_finish(&jw);
}

int hd_a2a_request_make(const struct hd_a2a_card *card, const struct hd_a2a_operation *operation,
                        struct hd_a2a_request *out)
{
    int err;

    *out = (struct hd_a2a_request){0};
    out->version = card->dialect == HD_A2A_0_3 ? "0.3" : "1.0";
    hd_buf_init(&out->url, 16384);
    hd_buf_init(&out->body, MAX_BODY);
    err = card->binding == HD_A2A_JSONRPC ? make_rpc(card, operation, out)
                                          : make_rest(card, operation, out);
    if (err)
        hd_a2a_request_fini(out);
    return err;
}

void hd_a2a_request_fini(struct hd_a2a_request *request)
{
    hd_buf_fini(&request->url);
    hd_buf_fini(&request->body);
}
