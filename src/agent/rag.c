/* Requests of the retrieval sources. */
#include "agent/rag.h"

#include <string.h>

#define ASK_MS 30000
#define MAX_LINE 16384

int hd_rag_ask(const struct hd_rag_ask *ask, struct hd_agent_exchange **out)
{
    const char *lines[3];
    struct hd_agent_exchange_options options = {.peer = "rag",
                                                .method = ask->method,
                                                .url = ask->url,
                                                .headers = lines,
                                                .body = ask->body,
                                                .timeout_ms = ASK_MS,
                                                .tries = 2,
                                                .is_direct = true,
                                                .is_trusted = ask->is_trusted,
                                                .max_body = HD_RAG_MAX_BODY,
                                                .secrets = &ask->token,
                                                .secret_count = ask->token.len > 0,
                                                .on_done = ask->on_done,
                                                .ctx = ask->ctx};
    struct hd_buf line;
    int err = 0;

    lines[options.header_count++] = "Accept: application/json";
    if (ask->body.ptr)
        lines[options.header_count++] = "Content-Type: application/json";
    hd_buf_init(&line, MAX_LINE);
    if (ask->token.len) {
        err =
            hd_buf_printf(&line, "Authorization: Bearer %.*s", (int)ask->token.len, ask->token.ptr);
        if (!err)
            err = hd_buf_append_byte(&line, 0);
        lines[options.header_count++] = line.ptr;
    }
    if (!err)
        err = ask->task ? hd_agent_exchange_start(ask->task, &options, out)
                        : hd_agent_exchange_start_run(ask->run, &options, out);
    hd_buf_fini(&line);
    return err;
}

int hd_rag_check(const struct hd_reply *reply, struct heddle_error *fault)
{
    if (reply->error)
        return hd_error_set(fault, HD_EIO, "%s", reply->error);
    if (reply->status == 401 || reply->status == 403)
        return hd_error_set(fault, HD_EIO, "it does not accept the token (HTTP status %ld)",
                            reply->status);
    if (reply->status == 404)
        return hd_error_set(fault, HD_EIO, "it does not exist (HTTP status 404)");
    if (reply->status < 200 || reply->status > 299)
        return hd_error_set(fault, HD_EIO, "HTTP status %ld", reply->status);
    return 0;
}

int hd_rag_put_base(struct hd_buf *out, struct hd_slice base)
{
    while (base.len && base.ptr[base.len - 1] == '/')
        base.len--;
    return hd_buf_append_slice(out, base);
}
