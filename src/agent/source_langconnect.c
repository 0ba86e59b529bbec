/*
 * `langconnect`: document collections, each as one search tool:
 *
 *   {"rag_url": URL, "collections": [ID]}
 *
 * All requests use the token of the user who runs the graph.
 */
#include <stdio.h>
#include <string.h>

#include "agent/a2a/a2a_proto.h"
#include "agent/agent_internal.h"
#include "agent/rag.h"
#include "agent/tool.h"
#include "base/alloc.h"
#include "base/json.h"
#include "secret/secret.h"

#define MAX_COLLECTIONS 64
#define MAX_DESCRIPTION 2048
#define MAX_QUERY ((size_t)32 << 10)
#define LIMIT 10 /* documents of a search */

struct collection {
    struct hd_tool_source *source;
    struct hd_slice id;
    struct hd_agent_exchange *exchange;
    struct hd_val *name, *description; /* strings; NULL: unknown */
    struct heddle_error fault;
};

struct langconnect {
    struct hd_val *token; /* a string */
    struct hd_slice url;
    struct collection *list;
    size_t count;
    size_t waiting;
};

static int check_collections(const struct hd_val *value, struct heddle_error *fault)
{
    const struct hd_val *list = hd_val_get(value, HD_S("collections"));

    if (!hd_val_is_object(value))
        return hd_error_set(fault, HD_EINVAL, "must be {\"rag_url\", \"collections\"}");
    if (hd_val_count(list) == 0 && hd_val_is_null(hd_val_get(value, HD_S("rag_url"))))
        return 0;
    if (!hd_a2a_is_url(hd_val_get_string(hd_val_get(value, HD_S("rag_url")))))
        return hd_error_set(fault, HD_EINVAL, "`rag_url` must be an http or https URL");
    if (!hd_val_is_null(list) && !hd_val_is_list(list))
        return hd_error_set(fault, HD_EINVAL, "`collections` must be a list of ids");
    if (hd_val_count(list) > MAX_COLLECTIONS)
        return hd_error_set(fault, HD_EINVAL, "`collections` has at most %d", MAX_COLLECTIONS);
    for (size_t i = 0; i < hd_val_count(list); i++) {
        struct hd_slice id = hd_val_get_string(hd_val_at(list, i));

        if (id.len == 0 || id.len > 256 || id.ptr[0] == '.')
            return hd_error_set(fault, HD_EINVAL, "`collections` must be a list of ids");
    }
    return 0;
}

/* ---- requests --------------------------------------------------------- */

static int make_url(const struct collection *collection, const char *rest, struct hd_buf *out)
{
    const struct langconnect *own = collection->source->own;
    int err = hd_rag_put_base(out, own->url);

    if (!err)
        err = hd_buf_append(out, "/collections/", 13);
    if (!err)
        err = hd_buf_append_escaped(out, collection->id);
    return err ? err : hd_buf_append(out, rest, strlen(rest) + 1);
}

static int ask_collection(struct collection *collection, const char *rest, struct hd_rag_ask *what,
                          struct hd_agent_exchange **out)
{
    const struct langconnect *own = collection->source->own;
    struct hd_buf url;
    int err;

    hd_buf_init(&url, 8192);
    err = make_url(collection, rest, &url);
    what->url = url.ptr;
    what->run = collection->source->run;
    what->token = hd_val_get_string(own->token);
    if (!err)
        err = hd_rag_ask(what, out);
    hd_buf_fini(&url);
    return err;
}

/* ---- tools --------------------------------------------------------------- */

static int add_collection_tool(struct collection *collection)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"description\":\"The "
        "query.\"}},\"required\":[\"query\"],\"additionalProperties\":false}";
    struct hd_tool tool = {.description = hd_val_get_string(collection->description),
                           .is_read_only = true,
                           .own = collection};
    struct hd_val *parameters;
    char name[65];
    int err = hd_val_parse_json(hd_slice_cstr(schema), &parameters, NULL);

    if (err)
        return err;
    hd_rag_clean_name(hd_val_get_string(collection->name), name);
    tool.name = hd_slice_cstr(name);
    tool.parameters = parameters;
    if (tool.description.len == 0)
        tool.description = HD_S("Searches a collection of documents.");
    if (tool.description.len > MAX_DESCRIPTION)
        tool.description.len = MAX_DESCRIPTION;
    err = hd_source_add(collection->source, &tool);
    hd_val_unref(parameters);
    return err;
}

static void finish_collections(struct hd_tool_source *source)
{
    struct langconnect *own = source->own;
    struct hd_buf problem;
    int err = 0;

    hd_buf_init(&problem, (size_t)64 << 10);
    for (size_t i = 0; i < own->count && !err; i++) {
        struct collection *collection = &own->list[i];

        if (collection->name)
            err = add_collection_tool(collection);
        else
            err =
                hd_buf_printf(&problem, "%scollection %.*s: %s", problem.len ? "; " : "",
                              (int)collection->id.len, collection->id.ptr, collection->fault.text);
    }
    if (!err)
        err = hd_buf_append_byte(&problem, 0);
    hd_source_ready(source, err ? hd_error_text(err) : problem.len == 1 ? NULL : problem.ptr);
    hd_buf_fini(&problem);
}

static int read_collection(struct collection *collection, struct hd_slice body)
{
    struct hd_json json;
    struct hd_slice name;
    hd_json_val metadata;
    int err = hd_json_parse(&json, body, NULL);

    if (err)
        return err == HD_EINVAL ? hd_error_set(&collection->fault, err, "its response is not JSON")
                                : err;
    name = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("name")));
    metadata = hd_json_get(hd_json_root(&json), HD_S("metadata"));
    if (name.len == 0) {
        err = hd_error_set(&collection->fault, HD_EINVAL, "its response is not a collection");
    } else {
        collection->description =
            hd_val_string(hd_json_string(hd_json_get(metadata, HD_S("description"))));
        collection->name = hd_val_string(name);
        err = collection->description && collection->name ? 0 : HD_ENOMEM;
    }
    hd_json_fini(&json);
    return err;
}

static void on_collection(void *ctx, const struct hd_reply *reply)
{
    struct collection *collection = ctx;
    struct langconnect *own = collection->source->own;
    int err = hd_rag_check(reply, &collection->fault);

    collection->exchange = NULL;
    if (!err)
        err = read_collection(collection, reply->body);
    if (err)
        (void)hd_error_set(&collection->fault, err, "%s", hd_error_text(err));
    if (--own->waiting == 0)
        finish_collections(collection->source);
}

/* ---- opening and closing -------------------------------------------------- */

static void close_source(struct hd_tool_source *source)
{
    struct langconnect *own = source->own;

    for (size_t i = 0; i < own->count; i++) {
        if (own->list[i].exchange)
            hd_agent_exchange_cancel(own->list[i].exchange);
        hd_val_unref(own->list[i].name);
        hd_val_unref(own->list[i].description);
    }
    hd_val_unref(own->token);
    hd_free(own->list);
    hd_free(own);
    source->own = NULL;
}

/* NULL: none. */
static struct hd_val *find_token(const struct hd_engine_run *run)
{
    const struct hd_val *config = run->options.config;
    struct hd_val *user = hd_val_get(config, HD_S("langgraph_auth_user"));
    struct hd_val *token = hd_val_get(config, HD_S("x-supabase-access-token"));

    if (hd_val_get_string(token).len == 0)
        token = hd_val_get(user, HD_S("token"));
    return token ? hd_secrets_reveal(token, run->options.secrets) : NULL;
}

static bool can_be_sent(struct hd_slice token)
{
    for (size_t i = 0; i < token.len; i++) {
        if ((unsigned char)token.ptr[i] <= ' ' || token.ptr[i] == 0x7f)
            return false;
    }
    return token.len > 0 && token.len <= 8192;
}

static void ask_all(struct hd_tool_source *source)
{
    struct langconnect *own = source->own;

    for (size_t i = 0; i < own->count; i++) {
        struct collection *collection = &own->list[i];
        struct hd_rag_ask what = {.method = "GET", .on_done = on_collection, .ctx = collection};
        int err = ask_collection(collection, "", &what, &collection->exchange);

        if (err)
            (void)hd_error_set(&collection->fault, err, "%s", hd_error_text(err));
        else
            own->waiting++;
    }
    if (own->waiting == 0)
        finish_collections(source);
}

static int open_collections(struct hd_tool_source *source)
{
    const struct hd_val *list = hd_val_get(source->value, HD_S("collections"));
    struct langconnect *own = hd_calloc(1, sizeof(*own));

    if (!own)
        return HD_ENOMEM;
    source->own = own;
    own->list = hd_calloc(hd_val_count(list) + 1, sizeof(*own->list));
    if (!own->list) {
        close_source(source);
        return HD_ENOMEM;
    }
    own->url = hd_val_get_string(hd_val_get(source->value, HD_S("rag_url")));
    own->token = find_token(source->run);
    own->count = hd_val_count(list);
    for (size_t i = 0; i < own->count; i++) {
        own->list[i].source = source;
        own->list[i].id = hd_val_get_string(hd_val_at(list, i));
    }
    if (own->count == 0)
        hd_source_ready(source, NULL);
    else if (!can_be_sent(hd_val_get_string(own->token)))
        hd_source_ready(source, "collections need the user's token, which this run does not have");
    else
        ask_all(source);
    return 0;
}

/* ---- searching ------------------------------------------------------------- */

struct collection_search {
    struct hd_tool_call *call;
    struct hd_agent_exchange *exchange;
};

static void cancel_collection_search(struct hd_tool_call *call)
{
    struct collection_search *search = call->own;

    call->own = NULL;
    if (search->exchange)
        hd_agent_exchange_cancel(search->exchange);
    hd_free(search);
}

static void on_documents_found(void *ctx, const struct hd_reply *reply)
{
    struct collection_search *search = ctx;
    struct hd_tool_call *call = search->call;
    struct heddle_error fault = {0};
    struct hd_val *content = NULL;
    struct hd_buf text;
    int err = hd_rag_check(reply, &fault);

    call->own = NULL;
    hd_free(search);
    hd_buf_init(&text, HD_RAG_MAX_TEXT + 1024);
    if (!err) {
        err = hd_rag_documents(reply->body, HD_RAG_MAX_TEXT, &text);
        if (err == HD_EINVAL)
            (void)hd_error_set(&fault, err, "its response is not a list of documents");
    }
    if (!err)
        content = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    if (content)
        hd_tool_done(call, content, NULL);
    else
        hd_tool_error(call, "the collection cannot be searched: %s",
                      fault.text[0] ? fault.text : hd_error_text(err ? err : HD_ENOMEM));
}

static int make_body(struct hd_slice query, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "query", query);
    hd_jw_put_int(&jw, "limit", LIMIT);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int call_collection_tool(struct hd_tool_call *call)
{
    struct hd_slice query = hd_val_get_string(hd_val_get(call->args, HD_S("query")));
    struct collection_search *search;
    struct hd_rag_ask what = {.task = call->task, .method = "POST", .on_done = on_documents_found};
    struct hd_buf body;
    int err;

    if (query.len == 0 || query.len > MAX_QUERY) {
        hd_tool_error(call, "`query` must be a text of at most %zu bytes", MAX_QUERY);
        return 0;
    }
    search = hd_calloc(1, sizeof(*search));
    if (!search)
        return HD_ENOMEM;
    search->call = call;
    what.ctx = search;
    hd_buf_init(&body, 8 * MAX_QUERY);
    err = make_body(query, &body);
    what.body = hd_buf_slice(&body);
    if (!err)
        err = ask_collection(call->tool->own, "/documents/search", &what, &search->exchange);
    hd_buf_fini(&body);
    if (err)
        hd_free(search);
    else
        call->own = search;
    return err;
}

extern const struct hd_source_kind hd_source_langconnect;

const struct hd_source_kind hd_source_langconnect = {
    .name = "langconnect",
    .check = check_collections,
    .open = open_collections,
    .close = close_source,
    .call = call_collection_tool,
    .cancel = cancel_collection_search,
};
