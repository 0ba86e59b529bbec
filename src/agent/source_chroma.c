/*
 * `chroma`: one tool, search_archives, over collections of Chroma servers:
 *
 *   {"archives": [{"name", "collection_name", "chromadb_url", "embedding_model"}],
 *    "embeddings_url", "embeddings_api_key"}
 *
 * A search requests the vector of the query, once per model, and the ids of the collections, all
 * concurrently; each archive is queried as soon as both are known. The result names archives that
 * failed and has the hits of the others.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a_proto.h"
#include "agent/agent_internal.h"
#include "agent/rag.h"
#include "agent/tool.h"
#include "base/alloc.h"
#include "base/json.h"
#include "secret/secret.h"

#define MAX_ARCHIVES 32
#define MAX_TOP 20
#define DEFAULT_TOP 5
#define MAX_QUERY ((size_t)32 << 10)
#define MAX_NUMBERS 65536 /* of a vector */
#define DEFAULT_CHROMA "http://chromadb:8000"
#define DEFAULT_MODEL "jinaai/jina-embeddings-v2-base-de"
#define COLLECTIONS "/api/v2/tenants/default_tenant/databases/default_database/collections/"

struct archive {
    struct hd_slice name, collection, url, model;
    bool has_own_url;  /* from the environment, or the default */
    struct hd_val *id; /* of the collection; NULL: unknown */
};

struct chroma {
    struct hd_val *key; /* of the embeddings server; NULL: none */
    struct hd_slice embeddings_url;
    bool has_own_embeddings; /* the environment names their server */
    struct archive *archives;
    size_t count;
    size_t top; /* default number of hits */
    struct hd_slice layer;
};

/* ---- configuration -------------------------------------------------------- */

static int check_archive(const struct hd_val *archive, struct heddle_error *fault)
{
    static const char *const keys[] = {"name", "collection_name", "chromadb_url",
                                       "embedding_model"};
    struct hd_val *url = hd_val_get(archive, HD_S("chromadb_url"));
    struct hd_slice collection = hd_val_get_string(hd_val_get(archive, HD_S("collection_name")));

    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        struct hd_val *val = hd_val_get(archive, hd_slice_cstr(keys[i]));

        if (!hd_val_is_null(val) && !hd_val_is_string(val))
            return hd_error_set(fault, HD_EINVAL, "`%s` of an archive must be a string", keys[i]);
    }
    if (collection.len == 0 || collection.len > 512 || collection.ptr[0] == '.')
        return hd_error_set(fault, HD_EINVAL, "an archive must have a `collection_name`");
    if (hd_val_get_string(url).len && !hd_a2a_is_url(hd_val_get_string(url)))
        return hd_error_set(fault, HD_EINVAL, "`chromadb_url` must be an http or https URL");
    return 0;
}

static int check_archives(const struct hd_val *value, struct heddle_error *fault)
{
    const struct hd_val *list = hd_val_get(value, HD_S("archives"));
    struct hd_slice url = hd_val_get_string(hd_val_get(value, HD_S("embeddings_url")));
    int err = 0;

    if (!hd_val_is_object(value) || (!hd_val_is_null(list) && !hd_val_is_list(list)))
        return hd_error_set(fault, HD_EINVAL, "must be {\"archives\": [{\"collection_name\", …}]}");
    if (hd_val_count(list) > MAX_ARCHIVES)
        return hd_error_set(fault, HD_EINVAL, "has at most %d archives", MAX_ARCHIVES);
    if (url.len && !hd_a2a_is_url(url))
        return hd_error_set(fault, HD_EINVAL, "`embeddings_url` must be an http or https URL");
    for (size_t i = 0; i < hd_val_count(list) && !err; i++)
        err = check_archive(hd_val_at(list, i), fault);
    return err;
}

static struct hd_slice text_or(struct hd_slice text, const char *variable, const char *otherwise)
{
    const char *env = variable ? getenv(variable) : NULL;

    if (text.len)
        return text;
    return hd_slice_cstr(env && env[0] ? env : otherwise);
}

static void read_archive(const struct hd_val *val, struct archive *archive)
{
    archive->collection = hd_val_get_string(hd_val_get(val, HD_S("collection_name")));
    archive->name = hd_val_get_string(hd_val_get(val, HD_S("name")));
    if (archive->name.len == 0)
        archive->name = archive->collection;
    archive->url = hd_val_get_string(hd_val_get(val, HD_S("chromadb_url")));
    archive->has_own_url = archive->url.len == 0;
    archive->url = text_or(archive->url, "DOCPROC_CHROMADB_URL", DEFAULT_CHROMA);
    archive->model =
        text_or(hd_val_get_string(hd_val_get(val, HD_S("embedding_model"))), NULL, DEFAULT_MODEL);
}

static size_t clamp_top(int64_t top)
{
    return top < 1 ? 1 : top > MAX_TOP ? MAX_TOP : (size_t)top;
}

static void read_environment(struct chroma *own)
{
    const char *top = getenv("RAG_DEFAULT_TOP_K"), *layer = getenv("RAG_DEFAULT_LAYER");
    char *end = NULL;
    long number = top ? strtol(top, &end, 10) : 0;

    own->top = end && end != top && !*end ? clamp_top(number) : DEFAULT_TOP;
    own->layer = hd_slice_cstr(layer ? layer : "chunk");
}

/* ---- opening and closing --------------------------------------------------- */

static int describe_archives(const struct chroma *own, struct hd_buf *out)
{
    int err = hd_buf_printf(out, "Searches document archives for passages relevant to a query: ");

    for (size_t i = 0; i < own->count && !err; i++)
        err = hd_buf_printf(out, "%s%.*s", i ? ", " : "", (int)own->archives[i].name.len,
                            own->archives[i].name.ptr);
    return err;
}

static int add_archives_tool(struct hd_tool_source *source)
{
    struct chroma *own = source->own;
    struct hd_tool tool = {.name = HD_S("search_archives"), .is_read_only = true, .own = own};
    struct hd_val *parameters;
    struct hd_buf about;
    char schema[512];
    int err;

    snprintf(
        schema, sizeof(schema),
        "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"description\":\"The "
        "query, phrased for semantic "
        "search.\"},\"top_k\":{\"type\":\"integer\",\"description\":\"The number of results; at "
        "most %d.\",\"default\":%zu}},\"required\":[\"query\"],\"additionalProperties\":false}",
        MAX_TOP, own->top);
    err = hd_val_parse_json(hd_slice_cstr(schema), &parameters, NULL);
    if (err)
        return err;
    tool.parameters = parameters;
    hd_buf_init(&about, (size_t)64 << 10);
    err = describe_archives(own, &about);
    tool.description = hd_buf_slice(&about);
    if (!err)
        err = hd_source_add(source, &tool);
    hd_buf_fini(&about);
    hd_val_unref(parameters);
    return err;
}

static void close_source(struct hd_tool_source *source)
{
    struct chroma *own = source->own;

    for (size_t i = 0; i < own->count; i++)
        hd_val_unref(own->archives[i].id);
    hd_val_unref(own->key);
    hd_free(own->archives);
    hd_free(own);
    source->own = NULL;
}

static int read_config(struct hd_tool_source *source, struct chroma *own)
{
    const struct hd_val *list = hd_val_get(source->value, HD_S("archives"));
    struct hd_val *key = hd_val_get(source->value, HD_S("embeddings_api_key"));

    own->archives = hd_calloc(hd_val_count(list) + 1, sizeof(*own->archives));
    if (!own->archives)
        return HD_ENOMEM;
    own->count = hd_val_count(list);
    for (size_t i = 0; i < own->count; i++)
        read_archive(hd_val_at(list, i), &own->archives[i]);
    own->embeddings_url = hd_val_get_string(hd_val_get(source->value, HD_S("embeddings_url")));
    own->has_own_embeddings = own->embeddings_url.len == 0;
    own->embeddings_url = text_or(own->embeddings_url, "DOCPROC_TEI_EMBEDDINGS_URL", "");
    read_environment(own);
    if (!hd_val_is_string(key))
        return 0;
    own->key = hd_secrets_reveal(key, source->run->options.secrets);
    return own->key ? 0 : HD_ENOMEM;
}

static int open_archives(struct hd_tool_source *source)
{
    struct chroma *own = hd_calloc(1, sizeof(*own));
    int err;

    if (!own)
        return HD_ENOMEM;
    source->own = own;
    err = read_config(source, own);
    if (!err && own->count > 0 && own->embeddings_url.len > 0)
        err = add_archives_tool(source);
    if (err) {
        close_source(source);
        return err;
    }
    hd_source_ready(source,
                    own->count == 0 || own->embeddings_url.len
                        ? NULL
                        : "archives need `embeddings_url`, or DOCPROC_TEI_EMBEDDINGS_URL in "
                          "the environment");
    return 0;
}

/* ---- searching ------------------------------------------------------------- */

struct archive_work;

/* The query's vector for one model. */
struct vector {
    struct archive_work *work;
    struct hd_slice model;
    struct hd_agent_exchange *exchange;
    struct hd_buf text; /* [number, …]; empty: not received */
    struct heddle_error fault;
};

struct archive_search {
    struct archive_work *work;
    struct archive *archive;
    struct vector *vector;
    struct hd_agent_exchange *exchange;
    bool is_asked; /* the query was sent */
    bool is_over;
    struct heddle_error fault;
};

struct archive_work {
    struct hd_tool_call *call;
    struct chroma *own;
    struct vector vectors[MAX_ARCHIVES];
    size_t vector_count;
    struct archive_search searches[MAX_ARCHIVES];
    size_t top;
    struct hd_rag_hits hits;
};

static void free_archive_work(struct archive_work *work)
{
    for (size_t i = 0; i < work->vector_count; i++) {
        if (work->vectors[i].exchange)
            hd_agent_exchange_cancel(work->vectors[i].exchange);
        hd_buf_fini(&work->vectors[i].text);
    }
    for (size_t i = 0; i < work->own->count; i++) {
        if (work->searches[i].exchange)
            hd_agent_exchange_cancel(work->searches[i].exchange);
    }
    hd_rag_hits_fini(&work->hits);
    hd_free(work);
}

static void cancel_archive_work(struct hd_tool_call *call)
{
    struct archive_work *work = call->own;

    call->own = NULL;
    free_archive_work(work);
}

/* ---- the result -------------------------------------------------------------- */

static int put_failed(const struct archive_work *work, struct hd_buf *out, size_t *count)
{
    int err = 0;

    for (size_t i = 0; i < work->own->count && !err; i++) {
        const struct archive_search *search = &work->searches[i];
        const char *text = search->fault.text;

        if (!search->fault.code)
            continue;
        ++*count;
        err = hd_buf_printf(out, "%s[!] %.*s: %s", out->len ? "\n\n" : "",
                            (int)search->archive->name.len, search->archive->name.ptr,
                            text[0] ? text : hd_error_text(search->fault.code));
    }
    return err;
}

static void finish_archive_work(struct archive_work *work)
{
    struct hd_tool_call *call = work->call;
    struct hd_val *content = NULL, *artifact;
    size_t failed = 0;
    bool is_failed;
    struct hd_buf text;
    int err;

    hd_rag_hits_sort(&work->hits, work->top);
    artifact = hd_rag_hits_val(&work->hits);
    hd_buf_init(&text, 2 * HD_RAG_MAX_TEXT);
    err = hd_rag_hits_text(&work->hits, HD_RAG_MAX_TEXT, &text);
    if (!err && text.len == 0)
        err = hd_buf_printf(&text, "No results.");
    if (!err)
        err = put_failed(work, &text, &failed);
    is_failed = failed == work->own->count;
    if (!err)
        content = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    call->own = NULL;
    free_archive_work(work);
    if (content && artifact && !is_failed) {
        hd_tool_done(call, content, artifact);
        return;
    }
    hd_tool_error(call, "%s%s", content ? "no archive can be searched. " : "",
                  content ? hd_val_get_string(content).ptr : hd_error_text(HD_ENOMEM));
    hd_val_unref(content);
    hd_val_unref(artifact);
}

static void finish_if_over(struct archive_work *work)
{
    for (size_t i = 0; i < work->own->count; i++) {
        if (!work->searches[i].is_over)
            return;
    }
    finish_archive_work(work);
}

/* ---- queries ------------------------------------------------------------------ */

static void fail_search(struct archive_search *search, int err, const char *text)
{
    (void)hd_error_set(&search->fault, err, "%s", text && text[0] ? text : hd_error_text(err));
    search->is_over = true;
}

static void on_archive_found(void *ctx, const struct hd_reply *reply)
{
    struct archive_search *search = ctx;
    int err = hd_rag_check(reply, &search->fault);

    search->exchange = NULL;
    if (!err)
        err = hd_rag_hits_read(&search->work->hits, reply->body, search->archive->name);
    /* It may have been recreated with another id. */
    if (err && reply->status == 404) {
        hd_val_unref(search->archive->id);
        search->archive->id = NULL;
    }
    if (err)
        fail_search(search, err, err == HD_EINVAL ? "its response is invalid" : NULL);
    search->is_over = true;
    finish_if_over(search->work);
}

static int make_query(const struct archive_search *search, struct hd_buf *out)
{
    static const char *const include[] = {"documents", "metadatas", "distances"};
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "query_embeddings");
    hd_jw_raw(&jw, hd_buf_slice(&search->vector->text));
    hd_jw_array_end(&jw);
    hd_jw_put_int(&jw, "n_results", (int64_t)search->work->top);
    hd_jw_put_array(&jw, "include");
    for (size_t i = 0; i < HD_COUNT(include); i++)
        hd_jw_string(&jw, hd_slice_cstr(include[i]));
    hd_jw_array_end(&jw);
    if (search->work->own->layer.len) {
        hd_jw_put_object(&jw, "where");
        hd_jw_put_string(&jw, "layer", search->work->own->layer);
        hd_jw_object_end(&jw);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int ask_chroma(struct archive_search *search, struct hd_slice collection, const char *rest,
                      struct hd_rag_ask *what)
{
    struct hd_buf url;
    int err;

    hd_buf_init(&url, 16384);
    err = hd_rag_put_base(&url, search->archive->url);
    if (!err)
        err = hd_buf_append(&url, COLLECTIONS, strlen(COLLECTIONS));
    if (!err)
        err = hd_buf_append_escaped(&url, collection);
    if (!err)
        err = hd_buf_append(&url, rest, strlen(rest) + 1);
    what->task = search->work->call->task;
    what->url = url.ptr;
    what->is_trusted = search->archive->has_own_url;
    what->ctx = search;
    if (!err)
        err = hd_rag_ask(what, &search->exchange);
    hd_buf_fini(&url);
    return err;
}

static int ask_query(struct archive_search *search)
{
    struct hd_rag_ask what = {.method = "POST", .on_done = on_archive_found};
    struct hd_buf body;
    int err;

    search->is_asked = true;
    hd_buf_init(&body, (size_t)4 << 20);
    err = make_query(search, &body);
    what.body = hd_buf_slice(&body);
    if (!err)
        err = ask_chroma(search, hd_val_get_string(search->archive->id), "/query", &what);
    hd_buf_fini(&body);
    return err;
}

/* Sends queries that are ready, and ends if a part has failed. */
static void advance(struct archive_search *search)
{
    int err = 0;

    if (search->is_over || search->is_asked)
        return;
    if (search->vector->fault.code)
        fail_search(search, search->vector->fault.code, search->vector->fault.text);
    else if (search->archive->id && search->vector->text.len && !search->exchange)
        err = ask_query(search);
    if (err)
        fail_search(search, err, NULL);
}

/* ---- collections ---------------------------------------------------------------- */

static int read_collection(struct archive *archive, struct hd_slice body,
                           struct heddle_error *fault)
{
    struct hd_json json;
    struct hd_slice id;
    int err = hd_json_parse(&json, body, NULL);

    if (err)
        return err == HD_EINVAL ? hd_error_set(fault, err, "its response is not JSON") : err;
    id = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("id")));
    if (id.len == 0 || id.len > 256 || id.ptr[0] == '.') {
        err = hd_error_set(fault, HD_EINVAL, "its response is not a collection");
    } else {
        hd_val_unref(archive->id);
        archive->id = hd_val_string(id);
        err = archive->id ? 0 : HD_ENOMEM;
    }
    hd_json_fini(&json);
    return err;
}

static void on_collection(void *ctx, const struct hd_reply *reply)
{
    struct archive_search *search = ctx;
    struct archive_work *work = search->work;
    int err = hd_rag_check(reply, &search->fault);

    search->exchange = NULL;
    if (!err)
        err = read_collection(search->archive, reply->body, &search->fault);
    if (err)
        fail_search(search, err, NULL);
    else
        advance(search);
    finish_if_over(work);
}

static void ask_collection(struct archive_search *search)
{
    struct hd_rag_ask what = {.method = "GET", .on_done = on_collection};
    int err = ask_chroma(search, search->archive->collection, "", &what);

    if (err)
        fail_search(search, err, NULL);
}

/* ---- vectors ---------------------------------------------------------------------- */

static int read_vector(struct vector *vector, struct hd_slice body)
{
    struct hd_json json;
    struct hd_json_iter it;
    hd_json_val numbers = NULL;
    int err = hd_json_parse(&json, body, NULL);

    if (err)
        return err;
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("data")));
    if (hd_json_next(&it))
        numbers = hd_json_get(it.val, HD_S("embedding"));
    if (!hd_json_is_array(numbers) || hd_json_size(numbers) == 0 ||
        hd_json_size(numbers) > MAX_NUMBERS)
        err = HD_EINVAL;
    it = hd_json_iter(numbers);
    while (!err && hd_json_next(&it))
        err = hd_json_is_number(it.val) ? 0 : HD_EINVAL;
    if (!err)
        err = hd_json_write_val(&vector->text, numbers);
    hd_json_fini(&json);
    return err;
}

static void on_vector(void *ctx, const struct hd_reply *reply)
{
    struct vector *vector = ctx;
    struct archive_work *work = vector->work;
    struct heddle_error fault = {0};
    int err = hd_rag_check(reply, &fault);

    vector->exchange = NULL;
    if (!err) {
        err = read_vector(vector, reply->body);
        if (err == HD_EINVAL)
            (void)hd_error_set(&fault, err, "its response is invalid");
    }
    if (err)
        (void)hd_error_set(&vector->fault, err, "no embedding of the query: %s",
                           fault.text[0] ? fault.text : hd_error_text(err));
    for (size_t i = 0; i < work->own->count; i++) {
        if (work->searches[i].vector == vector)
            advance(&work->searches[i]);
    }
    finish_if_over(work);
}

static int put_embeddings_url(const struct chroma *own, struct hd_buf *out)
{
    static const char *const ends[] = {"/embeddings", "/v1", ""};
    static const char *const rests[] = {"", "/embeddings", "/v1/embeddings"};
    int err = hd_rag_put_base(out, own->embeddings_url);

    for (size_t i = 0; i < 3 && !err; i++) {
        size_t len = strlen(ends[i]);

        if (out->len >= len && memcmp(out->ptr + out->len - len, ends[i], len) == 0)
            return hd_buf_append(out, rests[i], strlen(rests[i]) + 1);
    }
    return err;
}

static int make_embedding(const struct vector *vector, struct hd_slice query, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "model", vector->model);
    hd_jw_put_array(&jw, "input");
    hd_jw_string(&jw, query);
    hd_jw_array_end(&jw);
    hd_jw_put_string(&jw, "encoding_format", HD_S("float"));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static void ask_vector(struct vector *vector, struct hd_slice query)
{
    const struct chroma *own = vector->work->own;
    struct hd_rag_ask what = {.task = vector->work->call->task,
                              .method = "POST",
                              .is_trusted = own->has_own_embeddings,
                              .token = hd_val_get_string(own->key),
                              .on_done = on_vector,
                              .ctx = vector};
    struct hd_buf url, body;
    int err;

    hd_buf_init(&url, 8192);
    hd_buf_init(&body, 8 * MAX_QUERY);
    err = put_embeddings_url(own, &url);
    if (!err)
        err = make_embedding(vector, query, &body);
    what.url = url.ptr;
    what.body = hd_buf_slice(&body);
    if (!err)
        err = hd_rag_ask(&what, &vector->exchange);
    if (err)
        (void)hd_error_set(&vector->fault, err, "no embedding of the query: %s",
                           hd_error_text(err));
    hd_buf_fini(&url);
    hd_buf_fini(&body);
}

/* The vector of that model. */
static struct vector *find_vector(struct archive_work *work, struct hd_slice model)
{
    struct vector *vector = work->vectors;

    for (; vector < work->vectors + work->vector_count; vector++) {
        if (hd_slice_eq(vector->model, model))
            return vector;
    }
    work->vector_count++;
    vector->work = work;
    vector->model = model;
    hd_buf_init(&vector->text, (size_t)2 << 20);
    return vector;
}

/* ---- calls -------------------------------------------------------------------------- */

static void begin_searches(struct archive_work *work, struct hd_slice query)
{
    for (size_t i = 0; i < work->own->count; i++) {
        struct archive_search *search = &work->searches[i];

        search->work = work;
        search->archive = &work->own->archives[i];
        search->vector = find_vector(work, search->archive->model);
    }
    for (size_t i = 0; i < work->vector_count; i++)
        ask_vector(&work->vectors[i], query);
    for (size_t i = 0; i < work->own->count; i++) {
        if (!work->searches[i].archive->id)
            ask_collection(&work->searches[i]);
        advance(&work->searches[i]);
    }
}

static int call_archives_tool(struct hd_tool_call *call)
{
    struct hd_slice query = hd_val_get_string(hd_val_get(call->args, HD_S("query")));
    struct chroma *own = call->tool->own;
    struct archive_work *work;
    int64_t top = (int64_t)own->top;

    if (query.len == 0 || query.len > MAX_QUERY) {
        hd_tool_error(call, "`query` must be a text of at most %zu bytes", MAX_QUERY);
        return 0;
    }
    work = hd_calloc(1, sizeof(*work));
    if (!work)
        return HD_ENOMEM;
    (void)hd_val_get_int(hd_val_get(call->args, HD_S("top_k")), &top);
    work->call = call;
    work->own = own;
    work->top = clamp_top(top);
    call->own = work;
    begin_searches(work, query);
    finish_if_over(work);
    return 0;
}

extern const struct hd_source_kind hd_source_chroma;

const struct hd_source_kind hd_source_chroma = {
    .name = "chroma",
    .check = check_archives,
    .open = open_archives,
    .close = close_source,
    .call = call_archives_tool,
    .cancel = cancel_archive_work,
};
