/*
 * Embeddings without a model: each word of a text, in lower case, adds to one coordinate chosen by
 * its hash. So equal texts have equal vectors, texts that share words are close, and a test can
 * predict which text is found.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "mock/mock_internal.h"

#define DIMENSIONS 64
#define MAX_DIMENSIONS 4096
#define MAX_TEXTS 2048

static bool is_word_byte(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

/* FNV-1a. */
static uint64_t add_to_hash(uint64_t hash, unsigned char c)
{
    return (hash ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * UINT64_C(1099511628211);
}

static void add_words(double *vector, size_t dimensions, struct hd_slice text)
{
    const uint64_t start = UINT64_C(14695981039346656037);
    uint64_t hash = start;

    for (size_t i = 0; i <= text.len; i++) {
        unsigned char c = i < text.len ? (unsigned char)text.ptr[i] : ' ';

        if (is_word_byte(c)) {
            hash = add_to_hash(hash, c);
        } else if (hash != start) {
            vector[(hash >> 8) % dimensions] += hash & 1 ? 1 : -1;
            hash = start;
        }
    }
}

static void write_vector(struct hd_jw *jw, struct hd_slice text, double *vector, size_t dimensions)
{
    double sum = 0;
    char number[32];

    for (size_t i = 0; i < dimensions; i++)
        vector[i] = 0;
    add_words(vector, dimensions, text);
    for (size_t i = 0; i < dimensions; i++)
        sum += vector[i] * vector[i];
    if (sum == 0)
        vector[0] = sum = 1;
    hd_jw_array(jw);
    for (size_t i = 0; i < dimensions; i++) {
        int len = snprintf(number, sizeof(number), "%.6f", vector[i] / sqrt(sum));

        hd_jw_raw(jw, hd_slice(number, (size_t)len));
    }
    hd_jw_array_end(jw);
}

static void write_entry(struct hd_jw *jw, hd_json_val text, int64_t index, double *vector,
                        size_t dimensions)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "object", HD_S("embedding"));
    hd_jw_put_int(jw, "index", index);
    hd_jw_key(jw, HD_S("embedding"));
    write_vector(jw, hd_json_string(text), vector, dimensions);
    hd_jw_object_end(jw);
}

static int write_answer(struct hd_buf *out, hd_json_val root, double *vector, size_t dimensions)
{
    hd_json_val input = hd_json_get(root, HD_S("input"));
    struct hd_json_iter it = hd_json_iter(input);
    int64_t index = 0;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "object", HD_S("list"));
    hd_jw_put_string(&jw, "model", hd_json_string(hd_json_get(root, HD_S("model"))));
    hd_jw_put_array(&jw, "data");
    if (hd_json_is_string(input))
        write_entry(&jw, input, 0, vector, dimensions);
    while (hd_json_is_array(input) && hd_json_next(&it))
        write_entry(&jw, it.val, index++, vector, dimensions);
    hd_jw_array_end(&jw);
    hd_jw_put_raw(&jw, "usage", HD_S("{\"prompt_tokens\":0,\"total_tokens\":0}"));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int embed(hd_json_val root, int64_t dimensions, struct hd_mock_answer *out)
{
    double *vector = hd_calloc((size_t)dimensions, sizeof(*vector));
    int err;

    if (!vector)
        return HD_ENOMEM;
    *out = (struct hd_mock_answer){.status = 200, .rule = -1, .retry_after = -1};
    hd_buf_init(&out->text, HD_MOCK_MAX_ANSWER);
    err = write_answer(&out->text, root, vector, (size_t)dimensions);
    hd_free(vector);
    if (err)
        hd_mock_answer_fini(out);
    return err;
}

int hd_mock_embed(struct hd_slice body, struct hd_mock_answer *out)
{
    struct heddle_error fault = {0};
    struct hd_json json = {0};
    int err = hd_json_parse(&json, body, &fault);
    hd_json_val root = err ? NULL : hd_json_root(&json);
    hd_json_val input = hd_json_get(root, HD_S("input"));
    hd_json_val given = hd_json_get(root, HD_S("dimensions"));
    int64_t dimensions = DIMENSIONS;

    if (err == HD_EINVAL)
        err = hd_mock_refuse(HD_MOCK_OPENAI, 400, fault.text, out);
    else if (!err && ((!hd_json_is_string(input) && !hd_json_is_array(input)) ||
                      hd_json_size(input) > MAX_TEXTS))
        err = hd_mock_refuse(HD_MOCK_OPENAI, 400, "input must be a text or a list of texts", out);
    else if (!err && given &&
             (!hd_json_whole(given, &dimensions) || dimensions < 1 || dimensions > MAX_DIMENSIONS))
        err = hd_mock_refuse(HD_MOCK_OPENAI, 400, "dimensions must be from 1 to 4096", out);
    else if (!err)
        err = embed(root, dimensions, out);
    hd_json_fini(&json);
    return err;
}
