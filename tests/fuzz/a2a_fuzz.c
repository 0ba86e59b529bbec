/* libFuzzer: data from other agents. The bytes are a card and, line by line, the responses to one
 * request; parsed data can be rendered. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void operation(const struct hd_a2a_card *card)
{
    for (int op = HD_A2A_SEND; op <= HD_A2A_CANCEL; op++) {
        struct hd_a2a_operation what = {.op = (enum hd_a2a_op)op,
                                        .task_id = hd_slice_cstr(card->name),
                                        .text = hd_slice_cstr(card->description)};
        struct hd_a2a_request request;

        require(hd_a2a_request_make(card, &what, &request) == 0, "a request that cannot be made");
        require(hd_a2a_is_url(hd_slice_cstr(request.url.ptr)) || request.url.len > HD_A2A_MAX_URL,
                "a request to nowhere");
        require(hd_a2a_same_origin(hd_slice_cstr(request.url.ptr), hd_slice_cstr(card->url)),
                "a request to another server");
        hd_a2a_request_fini(&request);
    }
}

static void try_card(struct hd_slice text)
{
    struct heddle_error fault = {0};
    struct hd_a2a_card card;
    int err = hd_a2a_card_read(text, HD_A2A_ANY, &card, &fault);

    require(err == 0 || fault.text[0], "an error without a reason");
    if (err)
        return;
    require(hd_a2a_is_url(hd_slice_cstr(card.url)), "a card with a bad address");
    operation(&card);
    hd_a2a_card_fini(&card);
}

static void show(struct hd_a2a_answer *answer)
{
    struct hd_val *content = hd_a2a_answer_content(answer);
    struct hd_val *artifact = hd_a2a_answer_artifact(answer);
    struct hd_buf text;

    hd_buf_init(&text, (size_t)64 << 20);
    require(content && artifact, "an answer that cannot be shown");
    require(hd_val_write(&text, artifact) == 0, "an artifact that cannot be stored");
    hd_buf_fini(&text);
    hd_val_unref(content);
    hd_val_unref(artifact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_a2a_answer answer;
    const uint8_t *line = data, *end = data + size;

    try_card(hd_slice(data, size));
    hd_a2a_answer_init(&answer);
    while (line < end) {
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        struct heddle_error fault = {0};
        struct hd_a2a_progress progress;

        if (!stop)
            stop = end;
        if (hd_a2a_answer_read(&answer, hd_slice(line, (size_t)(stop - line)), &progress, &fault) !=
            0)
            require(fault.text[0], "an error without a reason");
        hd_val_unref(progress.parts);
        line = stop + 1;
    }
    show(&answer);
    hd_a2a_answer_fini(&answer);
    return 0;
}
