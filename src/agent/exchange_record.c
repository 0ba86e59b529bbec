/* Connects exchanges to recordings: hd_agent_exchange_record(), hd_agent_exchange_replay(). */
#include "agent/exchange_internal.h"

#include "base/error.h"
#include "base/log.h"
#include "secret/secret.h"

#define MAX_KEPT ((size_t)64 << 20)

void hd_agent_exchange_keep(struct hd_agent_exchange *exchange, struct hd_slice data)
{
    if (!exchange->recorder || !exchange->recorder->wrote || exchange->is_partial)
        return;
    if (exchange->kept.limit == 0)
        hd_buf_init(&exchange->kept, MAX_KEPT);
    exchange->is_partial = hd_buf_append_slice(&exchange->kept, data) != 0;
}

/* Masked copies for recordings; in one buffer, so that few allocations can fail. */
struct masks {
    const struct hd_agent_exchange *exchange;
    struct hd_buf url, headers, body, answer_headers, answer_body;
};

static int mask(const struct masks *masks, struct hd_buf *out, struct hd_slice text)
{
    hd_buf_init(out, 2 * MAX_KEPT);
    return hd_mask(out, text, masks->exchange->secrets, masks->exchange->secret_count);
}

/* A line without its end; skips those with secret names. */
static int add_header(const struct masks *masks, struct hd_buf *out, struct hd_slice line,
                      bool is_sent)
{
    struct hd_slice value;
    struct hd_slice name = hd_header_split(line, &value);
    int err;

    if (hd_secret_is_name(name) || (is_sent && hd_secret_is_header(name)))
        return 0;
    err = hd_mask(out, line, masks->exchange->secrets, masks->exchange->secret_count);
    return err ? err : hd_buf_append(out, "\r\n", 2);
}

static int mask_request(struct masks *masks)
{
    const struct hd_agent_exchange_options *options = &masks->exchange->options;
    int err = mask(masks, &masks->url, hd_slice_cstr(options->url));

    if (!err)
        err = mask(masks, &masks->body, options->body);
    hd_buf_init(&masks->headers, MAX_KEPT);
    for (size_t i = 0; i < options->header_count && !err; i++)
        err = add_header(masks, &masks->headers, hd_slice_cstr(options->headers[i]), true);
    return err;
}

static int mask_answer(struct masks *masks, const struct hd_reply *reply)
{
    struct hd_slice rest = reply->headers;
    int err = mask(masks, &masks->answer_body,
                   masks->exchange->is_given ? hd_buf_slice(&masks->exchange->kept) : reply->body);

    hd_buf_init(&masks->answer_headers, MAX_KEPT);
    while (!err && rest.len > 0) {
        const char *feed = memchr(rest.ptr, '\n', rest.len);
        size_t len = feed ? (size_t)(feed - rest.ptr) : rest.len;
        size_t bare = len > 0 && rest.ptr[len - 1] == '\r' ? len - 1 : len;

        if (bare > 0)
            err = add_header(masks, &masks->answer_headers, hd_slice(rest.ptr, bare), false);
        len += feed != NULL;
        rest = hd_slice(rest.ptr + len, rest.len - len);
    }
    return err;
}

static void free_masks(struct masks *masks)
{
    hd_buf_fini(&masks->url);
    hd_buf_fini(&masks->headers);
    hd_buf_fini(&masks->body);
    hd_buf_fini(&masks->answer_headers);
    hd_buf_fini(&masks->answer_body);
}

static struct hd_record_request request_of(const struct masks *masks)
{
    const struct hd_agent_exchange *exchange = masks->exchange;

    return (struct hd_record_request){.run = exchange->run,
                                      .task = exchange->task,
                                      .peer = hd_slice_cstr(exchange->options.peer),
                                      .method = hd_slice_cstr(exchange->options.method),
                                      .url = hd_buf_slice(&masks->url),
                                      .headers = hd_buf_slice(&masks->headers),
                                      .body = hd_buf_slice(&masks->body),
                                      .has_body = exchange->options.body.ptr != NULL};
}

void hd_agent_exchange_record(struct hd_agent_exchange *exchange, const struct hd_reply *reply)
{
    struct masks masks = {.exchange = exchange};
    int err;

    if (!exchange->recorder || !exchange->recorder->wrote || exchange->replay || !exchange->run)
        return;
    err = mask_request(&masks);
    if (!err)
        err = mask_answer(&masks, reply);
    if (err) {
        hd_log(HD_LOG_WARN, "agent", "an exchange is not recorded: %s", hd_error_text(err));
    } else {
        const struct hd_record_request request = request_of(&masks);
        const struct hd_record_answer answer = {.error = reply->error,
                                                .is_timeout = reply->is_timeout,
                                                .status = reply->status,
                                                .headers = hd_buf_slice(&masks.answer_headers),
                                                .body = hd_buf_slice(&masks.answer_body),
                                                .is_partial = exchange->is_partial,
                                                .tries = reply->tries};

        exchange->recorder->wrote(exchange->recorder->ctx, &request, &answer);
    }
    free_masks(&masks);
}

static int keep_answer(struct hd_agent_exchange *exchange, const struct hd_record_answer *answer)
{
    struct hd_slice error = hd_slice_cstr(answer->error);
    struct hd_record_answer *own = hd_arena_alloc(&exchange->arena, sizeof(*own));
    int err = own ? 0 : HD_ENOMEM;

    if (err)
        return err;
    *own = *answer;
    err = hd_arena_copy(&exchange->arena, answer->headers, &own->headers);
    if (!err)
        err = hd_arena_copy(&exchange->arena, answer->body, &own->body);
    if (!err && answer->error)
        err = hd_arena_copy(&exchange->arena, error, &error);
    own->error = error.ptr;
    if (!err)
        exchange->replay = own;
    return err;
}

int hd_agent_exchange_replay(struct hd_agent_exchange *exchange)
{
    struct masks masks = {.exchange = exchange};
    struct hd_record_answer answer = {0};
    struct hd_record_request request;
    int err;

    if (!exchange->recorder || !exchange->recorder->answer)
        return 0;
    if (exchange->options.is_detached) {
        answer.error = "not sent: the run is replayed";
        return keep_answer(exchange, &answer);
    }
    err = mask_request(&masks);
    request = request_of(&masks);
    if (!err && exchange->recorder->answer(exchange->recorder->ctx, &request, &answer))
        err = keep_answer(exchange, &answer);
    free_masks(&masks);
    return err;
}
