/* libFuzzer: any bytes as the response of a model server. The first byte selects the provider, and
 * streaming or not. Read whole or in pieces, the result is the same message or error; a message is
 * canonical and can be sent back to every provider. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/provider.h"
#include "store/codec/canon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hd_provider *const providers[] = {&hd_provider_openai, &hd_provider_anthropic,
                                                      &hd_provider_gemini};

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

struct reading {
    const struct hd_provider *provider;
    struct hd_completion answer;
};

static int on_event(void *ctx, const struct hd_sse_event *event)
{
    struct reading *r = ctx;
    struct hd_val *piece = NULL;
    int err = r->answer.is_done ? 0 : r->provider->event(&r->answer, event);

    if (!err)
        err = hd_completion_piece(&r->answer, "id", &piece);
    hd_val_unref(piece);
    return err;
}

static int read_stream(struct reading *r, struct hd_slice text, size_t step)
{
    struct hd_sse_read sse;
    int err = 0;

    hd_sse_read_init(&sse, 1 << 20);
    for (size_t pos = 0; pos < text.len && !err; pos += step)
        err = hd_sse_read(&sse,
                          hd_slice(text.ptr + pos, text.len - pos < step ? text.len - pos : step),
                          on_event, r);
    hd_sse_read_fini(&sse);
    return err;
}

/* A message is sent back in the next request, to this provider or another. */
static void send_back(const struct hd_val *message)
{
    struct hd_val *list = hd_val_append(hd_val_list(), hd_val_ref(message)), *prepared = NULL;

    require(hd_chat_prepare(list, &prepared, NULL) == 0, "a message that cannot be prepared");
    for (size_t i = 0; i < HD_COUNT(providers); i++) {
        struct hd_chat chat = {
            .model = HD_S("m"), .base_url = HD_S("http://x"), .messages = prepared};
        struct hd_chat_request request;
        struct hd_json json;

        hd_chat_request_init(&request);
        require(providers[i]->request(&chat, &request) == 0, "a message that cannot be sent");
        require(hd_json_parse(&json, hd_buf_slice(&request.body), NULL) == 0, "no JSON");
        hd_json_fini(&json);
        hd_chat_request_fini(&request);
    }
    hd_val_unref(prepared);
    hd_val_unref(list);
}

static void write_answer(struct reading *r, struct hd_buf *out)
{
    struct hd_val *message = hd_completion_message(&r->answer, "p", "id");

    require(message != NULL, "no message");
    require(hd_val_write(out, message) == 0, "a message that cannot be written");
    require(hd_canon_validate(hd_buf_slice(out), NULL) == 0, "a message that is not canonical");
    send_back(message);
    hd_val_unref(message);
}

/* Generated ids differ, so only responses without calls are compared. */
static int read_once(uint8_t which, struct hd_slice text, size_t step, struct hd_buf *out)
{
    struct reading r = {.provider = providers[(which >> 1) % HD_COUNT(providers)]};
    int err;

    hd_completion_init(&r.answer);
    hd_buf_init(out, (size_t)64 << 20);
    err = (which & 1) ? r.provider->body(&r.answer, text) : read_stream(&r, text, step);
    require(err == 0 || err == HD_EINVAL || err == HD_ELIMIT, "an odd error");
    require(err != HD_EINVAL || r.answer.error_type, "an error without a reason");
    if (!err)
        write_answer(&r, out);
    if (r.answer.call_count > 0)
        hd_buf_reset(out);
    hd_completion_fini(&r.answer);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_buf whole, pieces;
    struct hd_slice text;

    if (size < 1)
        return 0;
    text = hd_slice(data + 1, size - 1);
    require(read_once(data[0], text, text.len + 1, &whole) == read_once(data[0], text, 3, &pieces),
            "pieces and whole differ");
    require(hd_slice_eq(hd_buf_slice(&whole), hd_buf_slice(&pieces)), "two messages");
    hd_buf_fini(&whole);
    hd_buf_fini(&pieces);
    return 0;
}
