#include "search/embed.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/json.h"
#include "config/config.h"
#include "config/project.h"
#include "net/http_client.h"
#include "search/embed_text.h"

#define DEFAULT_URL "https://api.openai.com/v1"
#define PROVIDER "openai:"
#define TIMEOUT_MS 30000
#define PATIENCE_US (30 * 1000000LL) /* for a worker that is starting */
#define MAX_ANSWER ((size_t)256 << 20)
#define PART_BYTES ((size_t)256 << 10) /* of the texts of one request … */

enum {
    PART_TEXTS = 256, /* … and how many they are */
    MAX_DIMS = 16384,
    MAX_FIELDS = 100,
    MAX_URL = 2048
};

struct hd_embedder {
    struct hd_app *app;
    struct hd_arena arena;
    size_t dims;
    struct hd_slice name; /* as the configuration has it */
    struct hd_slice *fields;
    size_t field_count;
    bool is_remote; /* a function of the project */
    enum hd_rt_language language;
    struct hd_slice model;
    char *url;
    char *authorization; /* a header; NULL: there is no key */
    size_t count;        /* of embeddings under way */
};

/* A response with vectors of some texts. */
struct part {
    struct part *next;
    struct hd_slice data; /* floats, or JSON */
    size_t count;         /* of texts */
};

struct hd_embedding {
    struct hd_embedder *embedder;
    const struct hd_slice *texts;
    size_t count;
    size_t asked;   /* the texts before this one */
    size_t pending; /* those requested */
    struct part *parts, **last;
    float *vectors;
    hd_embedded_fn done;
    void *ctx;
};

/* ---- the configuration ------------------------------------------------ */

static int read_fields(struct hd_embedder *e, hd_json_val list, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(list);
    size_t count = hd_json_size(list);
    int err = 0;

    if ((list && !hd_json_is_array(list)) || count > MAX_FIELDS)
        return hd_error_set(fault, HD_EINVAL, "store.index.fields: expected a list of paths");
    e->fields = hd_arena_calloc(&e->arena, count ? count : 1, sizeof(*e->fields));
    if (!e->fields)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it)) {
        if (!hd_json_is_string(it.val) || hd_json_string(it.val).len > HD_EMBED_MAX_PATH)
            return hd_error_set(fault, HD_EINVAL, "store.index.fields: expected a list of paths");
        err = hd_arena_copy(&e->arena, hd_json_string(it.val), &e->fields[e->field_count++]);
    }
    if (e->field_count == 0)
        e->fields[e->field_count++] = HD_S("$");
    return err;
}

static const char *variable(const char *name, const char *other)
{
    const char *value = getenv(name);

    if ((!value || !*value) && other)
        value = getenv(other);
    return value && *value ? value : NULL;
}

static int read_provider(struct hd_embedder *e, struct heddle_error *fault)
{
    const char *base = variable("OPENAI_BASE_URL", "OPENAI_API_BASE");
    const char *key = variable("OPENAI_API_KEY", NULL);
    size_t skip = strlen(PROVIDER), len;

    if (!hd_slice_starts(e->name, HD_S(PROVIDER)) || e->name.len == skip)
        return hd_error_set(fault, HD_EINVAL,
                            "store.index.embed: expected a function of the project "
                            "(\"./embed.py:embed\") or \"openai:MODEL\"");
    e->model = hd_slice(e->name.ptr + skip, e->name.len - skip);
    base = base ? base : DEFAULT_URL;
    len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        len--;
    if (len > MAX_URL)
        return hd_error_set(fault, HD_EINVAL, "OPENAI_BASE_URL: the URL is too long");
    e->url = hd_arena_printf(&e->arena, "%.*s/embeddings", (int)len, base);
    if (key)
        e->authorization = hd_arena_printf(&e->arena, "Authorization: Bearer %s", key);
    return e->url && (!key || e->authorization) ? 0 : HD_ENOMEM;
}

static int read_index(struct hd_embedder *e, hd_json_val index, struct heddle_error *fault)
{
    struct hd_project_code code;
    int64_t dims;
    int err;

    if (!hd_json_whole(hd_json_get(index, HD_S("dims")), &dims) || dims < 1 || dims > MAX_DIMS)
        return hd_error_set(fault, HD_EINVAL, "store.index.dims: expected a number from 1 to %d",
                            MAX_DIMS);
    e->dims = (size_t)dims;
    err = hd_arena_copy(&e->arena, hd_json_string(hd_json_get(index, HD_S("embed"))), &e->name);
    if (!err)
        err = read_fields(e, hd_json_get(index, HD_S("fields")), fault);
    if (err)
        return err;
    e->is_remote = hd_project_part(e->app->config, HD_PROJECT_EMBED, &code);
    e->language = code.language;
    return e->is_remote ? 0 : read_provider(e, fault);
}

int hd_embedder_create(struct hd_app *app, struct hd_embedder **out, struct heddle_error *fault)
{
    hd_json_val index = app->config->store_index.val;
    struct hd_embedder *e;
    int err;

    *out = NULL;
    if (!index || hd_json_is_null(index))
        return 0;
    e = hd_calloc(1, sizeof(*e));
    if (!e)
        return HD_ENOMEM;
    e->app = app;
    hd_arena_init(&e->arena, (size_t)1 << 20);
    err = read_index(e, index, fault);
    if (err)
        hd_embedder_destroy(e);
    else
        *out = e;
    return err;
}

void hd_embedder_destroy(struct hd_embedder *embedder)
{
    if (!embedder)
        return;
    hd_arena_fini(&embedder->arena);
    hd_free(embedder);
}

size_t hd_embedder_count(const struct hd_embedder *embedder)
{
    return embedder ? embedder->count : 0;
}

size_t hd_embedder_dims(const struct hd_embedder *embedder)
{
    return embedder->dims;
}

const struct hd_slice *hd_embedder_fields(const struct hd_embedder *embedder, size_t *count)
{
    *count = embedder->field_count;
    return embedder->fields;
}

/* ---- requests --------------------------------------------------------- */

static int request_vectors(struct hd_embedding *embedding);

static void end_embedding(struct hd_embedding *embedding, int err, const char *why)
{
    struct hd_slice name = embedding->embedder->name;
    struct heddle_error fault = {0};

    if (err)
        hd_error_set(&fault, err, "texts cannot be embedded: %.*s: %s",
                     (int)(name.len < 80 ? name.len : 80), name.ptr, why);
    embedding->embedder->count--;
    embedding->done(embedding->ctx, err, &fault);
}

/* Keeps the vectors received and requests the rest. */
static void keep_part(struct hd_embedding *embedding, struct hd_slice data)
{
    struct part *part = hd_malloc(sizeof(*part) + data.len);
    int err = part ? 0 : HD_ENOMEM;

    if (!err) {
        if (data.len)
            memcpy(part + 1, data.ptr, data.len);
        *part = (struct part){.data = hd_slice(part + 1, data.len), .count = embedding->pending};
        *embedding->last = part;
        embedding->last = &part->next;
        embedding->asked += embedding->pending;
        if (embedding->asked < embedding->count)
            err = request_vectors(embedding);
    }
    if (err || embedding->asked == embedding->count)
        end_embedding(embedding, err, hd_error_text(err));
}

static void on_response(void *ctx, const struct hd_client_response *response)
{
    struct hd_embedding *embedding = ctx;
    char why[64];

    if (response->error) {
        end_embedding(embedding, HD_EUNAVAILABLE, "its server does not respond");
    } else if (response->status != 200) {
        snprintf(why, sizeof(why), "the server returned status %ld", response->status);
        end_embedding(embedding, HD_EUNAVAILABLE, why);
    } else {
        keep_part(embedding, response->body);
    }
}

/* Errors of the function have their place in the worker's log: their texts may hold anything. */
static void on_function_end(void *ctx, enum hd_rt_end how, const struct hd_rt_message *message)
{
    struct hd_embedding *embedding = ctx;

    if (how == HD_RT_ANSWERED)
        keep_part(embedding, message->blob_count > 0 ? message->blobs[0] : HD_S(""));
    else
        end_embedding(embedding, HD_EUNAVAILABLE,
                      how == HD_RT_REFUSED ? "the function failed"
                      : how == HD_RT_LATE  ? "the function took too long"
                                           : "no worker provides it");
}

/* The next texts: as many as one request may have, and one at least. */
static size_t choose_texts(const struct hd_embedding *embedding)
{
    size_t count = 0, bytes = 0;

    while (count < PART_TEXTS && embedding->asked + count < embedding->count) {
        bytes += embedding->texts[embedding->asked + count].len;
        if (count > 0 && bytes > PART_BYTES)
            break;
        count++;
    }
    return count;
}

static void write_texts(const struct hd_embedding *embedding, struct hd_jw *jw)
{
    hd_jw_array(jw);
    for (size_t i = 0; i < embedding->pending; i++)
        hd_jw_string(jw, embedding->texts[embedding->asked + i]);
    hd_jw_array_end(jw);
}

static int ask_worker(struct hd_embedding *embedding, struct hd_buf *body)
{
    const struct hd_embedder *e = embedding->embedder;
    struct hd_slice blob;
    struct hd_rt_call_options options = {.language = e->language,
                                         .head = HD_S("{\"op\":\"embed\"}"),
                                         .blobs = &blob,
                                         .blob_count = 1,
                                         .timeout_us = TIMEOUT_MS * 1000LL,
                                         .patience_us = PATIENCE_US,
                                         .on_end = on_function_end,
                                         .ctx = embedding};
    struct hd_rt_call *call;
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, body);
    write_texts(embedding, &jw);
    err = hd_jw_finish(&jw);
    blob = hd_buf_slice(body);
    return err ? err : hd_runtime_call(e->app->runtime, &options, &call);
}

static int ask_server(struct hd_embedding *embedding, struct hd_buf *body)
{
    const struct hd_embedder *e = embedding->embedder;
    const char *headers[] = {"Content-Type: application/json", e->authorization};
    struct hd_client_options options = {.method = "POST",
                                        .url = e->url,
                                        .headers = headers,
                                        .header_count = e->authorization ? 2 : 1,
                                        .timeout_ms = TIMEOUT_MS,
                                        .is_final = true,
                                        .is_trusted = true,
                                        .max_body = MAX_ANSWER};
    struct hd_client_request *request;
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, body);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "model", e->model);
    hd_jw_key(&jw, HD_S("input"));
    write_texts(embedding, &jw);
    hd_jw_put_string(&jw, "encoding_format", HD_S("float"));
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    options.body = hd_buf_slice(body);
    return err ? err : hd_client_send(e->app->http, &options, on_response, embedding, &request);
}

static int request_vectors(struct hd_embedding *embedding)
{
    struct hd_buf body;
    int err;

    hd_buf_init(&body, SIZE_MAX / 2);
    embedding->pending = choose_texts(embedding);
    err = embedding->embedder->is_remote ? ask_worker(embedding, &body)
                                         : ask_server(embedding, &body);
    hd_buf_fini(&body);
    return err;
}

int hd_embed(struct hd_embedder *embedder, const struct hd_slice *texts, size_t count,
             hd_embedded_fn done, void *ctx, struct hd_embedding **out)
{
    struct hd_embedding *embedding = hd_calloc(1, sizeof(*embedding));
    int err;

    if (!embedding)
        return HD_ENOMEM;
    *embedding = (struct hd_embedding){
        .embedder = embedder, .texts = texts, .count = count, .done = done, .ctx = ctx};
    embedding->last = &embedding->parts;
    err = request_vectors(embedding);
    if (err) {
        hd_embedding_free(embedding);
        return err;
    }
    embedder->count++;
    *out = embedding;
    return 0;
}

void hd_embedding_free(struct hd_embedding *embedding)
{
    if (!embedding)
        return;
    for (struct part *part = embedding->parts, *next; part; part = next) {
        next = part->next;
        hd_free(part);
    }
    hd_free(embedding->vectors);
    hd_free(embedding);
}

/* ---- reading what came ------------------------------------------------ */

static int refuse_vectors(struct heddle_error *fault, const char *what)
{
    return hd_error_set(fault, HD_EUNAVAILABLE, "store.index.embed: %s", what);
}

static int read_floats(const struct hd_embedder *e, const struct part *part, float *out,
                       struct heddle_error *fault)
{
    size_t count = e->dims * part->count;

    if (part->data.len != count * sizeof(float))
        return hd_error_set(
            fault, HD_EUNAVAILABLE,
            "store.index.embed: %zu texts have %zu numbers; with dims %zu expected %zu",
            part->count, part->data.len / sizeof(float), e->dims, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, part->data.ptr + i * sizeof(bits), sizeof(bits));
        bits = le32toh(bits);
        memcpy(&out[i], &bits, sizeof(bits));
    }
    return 0;
}

static int read_numbers(const struct hd_embedder *e, hd_json_val list, float *out,
                        struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(list);
    double number;

    if (!hd_json_is_array(list) || hd_json_size(list) != e->dims)
        return hd_error_set(fault, HD_EUNAVAILABLE,
                            "store.index.embed: a vector has %zu numbers, but dims is %zu",
                            hd_json_size(list), e->dims);
    while (hd_json_next(&it)) {
        if (!hd_json_double(it.val, &number))
            return refuse_vectors(fault, "a vector has an element that is not a number");
        *out++ = (float)number;
    }
    return 0;
}

/* {"data": [{"index": 0, "embedding": […]}, …]} */
static int read_embeddings(const struct hd_embedder *e, const struct part *part, float *out,
                           struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    hd_json_val data;
    size_t count = 0;
    int err;

    if (hd_json_parse(&json, part->data, NULL))
        return refuse_vectors(fault, "the server's response is not JSON");
    data = hd_json_get(hd_json_root(&json), HD_S("data"));
    it = hd_json_iter(data);
    err = hd_json_is_array(data) && hd_json_size(data) == part->count
              ? 0
              : refuse_vectors(fault, "the server returned another number of vectors");
    while (!err && hd_json_next(&it)) {
        int64_t index = (int64_t)count++;

        (void)hd_json_int(hd_json_get(it.val, HD_S("index")), &index);
        if (index < 0 || (size_t)index >= part->count)
            err = refuse_vectors(fault, "the server returned a vector for an unknown text");
        else
            err = read_numbers(e, hd_json_get(it.val, HD_S("embedding")),
                               out + (size_t)index * e->dims, fault);
    }
    hd_json_fini(&json);
    return err;
}

/* Zeros stay: they are near to nothing. */
static int make_unit(float *vector, size_t dims, struct heddle_error *fault)
{
    double sum = 0;

    for (size_t i = 0; i < dims; i++)
        sum += (double)vector[i] * (double)vector[i];
    if (!isfinite(sum))
        return refuse_vectors(fault, "a vector has an element that is not a number");
    for (size_t i = 0; sum > 0 && i < dims; i++)
        vector[i] = (float)(vector[i] / sqrt(sum));
    return 0;
}

int hd_embedding_read(struct hd_embedding *embedding, const float **out, struct heddle_error *fault)
{
    const struct hd_embedder *e = embedding->embedder;
    float *at;
    int err = 0;

    /* A server may name a text twice and another never. */
    embedding->vectors = hd_calloc(embedding->count * e->dims, sizeof(float));
    if (!embedding->vectors)
        return HD_ENOMEM;
    at = embedding->vectors;
    for (const struct part *part = embedding->parts; !err && part; part = part->next) {
        err = e->is_remote ? read_floats(e, part, at, fault) : read_embeddings(e, part, at, fault);
        at += part->count * e->dims;
    }
    for (size_t i = 0; !err && i < embedding->count; i++)
        err = make_unit(embedding->vectors + i * e->dims, e->dims, fault);
    *out = embedding->vectors;
    return err;
}

int hd_embed_pack(const float *vectors, size_t count, struct hd_arena *arena, struct hd_slice *out)
{
    char *bytes = hd_arena_alloc(arena, count * sizeof(float));

    if (!bytes)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &vectors[i], sizeof(bits));
        bits = htole32(bits);
        memcpy(bytes + i * sizeof(bits), &bits, sizeof(bits));
    }
    *out = hd_slice(bytes, count * sizeof(float));
    return 0;
}

/* Several sums, so that they need not wait for each other. */
static double nearness(const float *a, const char *stored, size_t dims)
{
    enum { LANES = 8 };
    float sums[LANES] = {0}, b[LANES];
    double sum = 0;
    size_t i = 0;

    for (; i + LANES <= dims; i += LANES) {
        memcpy(b, stored + i * sizeof(float), sizeof(b));
        for (size_t k = 0; k < LANES; k++)
            sums[k] += a[i + k] * b[k];
    }
    for (; i < dims; i++) {
        memcpy(b, stored + i * sizeof(float), sizeof(float));
        sum += (double)(a[i] * b[0]);
    }
    for (size_t k = 0; k < LANES; k++)
        sum += (double)sums[k];
    return sum;
}

double hd_embed_nearness(const float *query, size_t dims, struct hd_slice packed)
{
    double best = NAN;

    for (; packed.len >= dims * sizeof(float);) {
        double one = nearness(query, packed.ptr, dims);

        if (isnan(best) || one > best)
            best = one;
        packed = hd_slice(packed.ptr + dims * sizeof(float), packed.len - dims * sizeof(float));
    }
    return best;
}
