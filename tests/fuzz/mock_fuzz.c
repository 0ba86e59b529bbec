/* libFuzzer: the scripted model. The first byte selects the kind of the rest: a request in one of
 * the three forms (whole or streamed), texts to embed, or a script. Responses are JSON, or events
 * that are JSON, split into adjacent pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "mock/mock.h"

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_json(struct hd_slice text)
{
    struct hd_json json = {0};

    require(hd_json_parse(&json, text, NULL) == 0);
    hd_json_fini(&json);
}

/* Every data line is JSON, except the last of OpenAI's. */
static void check_events(struct hd_slice text)
{
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct hd_slice line = hd_slice(text.ptr, end ? (size_t)(end - text.ptr) : 0);

        require(end != NULL);
        if (hd_slice_starts(line, HD_S("data: ")) && !hd_slice_eq(line, HD_S("data: [DONE]")))
            check_json(hd_slice(line.ptr + 6, line.len - 6));
        text = hd_slice(end + 1, text.len - line.len - 1);
    }
}

static void check(int err, struct hd_mock_answer *answer)
{
    size_t before = 0;

    require(err == 0 || err == HD_ENOMEM || err == HD_ELIMIT);
    if (err)
        return;
    for (size_t i = 0; i < answer->count; i++) {
        require(answer->ends[i] > before);
        before = answer->ends[i];
    }
    require(answer->count == 0 || before == answer->text.len);
    require(answer->status >= 200 && answer->status < 600);
    if (answer->is_stream)
        check_events(hd_buf_slice(&answer->text));
    else
        check_json(hd_buf_slice(&answer->text));
    hd_mock_answer_fini(answer);
}

static void ask(struct hd_mock *mock, struct hd_slice body)
{
    for (int form = HD_MOCK_OPENAI; form <= HD_MOCK_GEMINI; form++) {
        struct hd_mock_ask ask = {.form = (enum hd_mock_form)form, .body = body};
        struct hd_mock_answer answer;

        ask.model = form == HD_MOCK_GEMINI ? HD_S("model") : hd_slice(NULL, 0);
        ask.is_stream = body.len % 2 == 0;
        check(hd_mock_chat(mock, &ask, &answer), &answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice rest = hd_slice(size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0);
    struct heddle_error fault = {0};
    struct hd_mock_answer answer;
    struct hd_mock *mock = NULL;

    if (size == 0)
        return 0;
    if (data[0] % 3 == 0) {
        check(hd_mock_embed(rest, &answer), &answer);
        return 0;
    }
    if (hd_mock_create(&mock, data[0] % 3 == 1 ? hd_slice(NULL, 0) : rest, &fault)) {
        require(data[0] % 3 == 2);
        return 0;
    }
    if (data[0] % 3 == 1)
        ask(mock, rest);
    else
        ask(mock,
            HD_S("{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                 "\"content\":\"use a with {}\"}],\"contents\":[{\"parts\":[{\"text\":\"x\"}]}]}"));
    hd_mock_destroy(mock);
    return 0;
}
