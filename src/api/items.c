/* The store: items that outlive threads, each a JSON object under a namespace and a key. A
 * namespace is a list of labels; in a query the labels are joined by dots. */
#include "api/api.h"
#include "api/request/authorize.h"
#include "config/config.h"
#include "records/item_filter.h"
#include "search/embed.h"
#include "search/item_service.h"

static int sees(void *ctx, const struct hd_item_rec *item, bool *out)
{
    return hd_call_sees_item(ctx, item, out);
}

/* Items of the actor; read values are in the arena of the call. */
static struct hd_item_service items_of(struct hd_call *call)
{
    return (struct hd_item_service){.app = call->app,
                                    .principal = call->actor,
                                    .arena = call->arena,
                                    .fault = &call->fault,
                                    .sees = hd_call_is_filtered(call, HD_OF_STORE) ? sees : NULL,
                                    .ctx = call};
}

/* ---- places ----------------------------------------------------------- */

static int place_of_body(struct hd_call *call, struct hd_item_place *place)
{
    const struct hd_item_service items = items_of(call);
    hd_json_val list = hd_body_get(call, "namespace");
    struct hd_slice key = {NULL, 0};
    struct hd_item_namespace labels;
    int err;

    if (!list)
        return hd_error_set(&call->fault, HD_EINVAL, "namespace: expected a list of labels");
    err = hd_item_namespace_parse(&labels, list, "namespace", call->arena, &call->fault);
    if (!err)
        err = hd_body_string(call, "key", &key);
    return err ? err : hd_item_service_place(&items, &labels, key, place);
}

/* "a.b", or one parameter per label. */
static int labels_of_query(struct hd_call *call, const char *name, struct hd_item_namespace *labels)
{
    struct hd_slice text = {"", 0};
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, HD_ITEM_NAMESPACE_MAX_TEXT);
    for (size_t i = 0; !err && i < call->query.count; i++) {
        const struct hd_param *pair = &call->query.pairs[i];

        if (!hd_slice_eq(pair->name, hd_slice_cstr(name)) || pair->value.len == 0)
            continue;
        if (buf.len > 0)
            err = hd_buf_append_byte(&buf, '.');
        if (!err)
            err = hd_buf_append_slice(&buf, pair->value);
    }
    if (err == HD_ELIMIT)
        err = hd_error_set(&call->fault, HD_EINVAL, "%s: longer than %d bytes", name,
                           HD_ITEM_NAMESPACE_MAX_TEXT);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), &text);
    hd_buf_fini(&buf);
    return err ? err : hd_item_namespace_split(labels, text, name, call->arena, &call->fault);
}

static int place_of_query(struct hd_call *call, struct hd_item_place *place)
{
    const struct hd_item_service items = items_of(call);
    struct hd_slice key = {NULL, 0};
    struct hd_item_namespace labels;
    int err = labels_of_query(call, "namespace", &labels);

    if (!err && labels.count == 0)
        return hd_error_set(&call->fault, HD_EINVAL, "namespace: expected labels, joined by dots");
    if (!err && !hd_params_get(&call->query, HD_S("key"), &key))
        return hd_error_set(&call->fault, HD_EINVAL, "key: expected a non-empty string");
    return err ? err : hd_item_service_place(&items, &labels, key, place);
}

/* A custom auth handler may have turned the query into a body. */
static int find_item_place(struct hd_call *call, struct hd_item_place *place)
{
    return call->body ? place_of_body(call, place) : place_of_query(call, place);
}

/* ---- reading ---------------------------------------------------------- */

static struct hd_step get_item(struct hd_call *call)
{
    const struct hd_item_service items = items_of(call);
    bool refreshes = call->app->config->ttl_refresh_on_read;
    struct hd_item_place place;
    struct hd_item_rec item;
    int err = find_item_place(call, &place);

    if (!err)
        err =
            hd_params_bool(&call->query, HD_S("refresh_ttl"), refreshes, &refreshes, &call->fault);
    if (err)
        return hd_step_fail(err);
    err = hd_item_service_get(&items, &place, refreshes, &item);
    if (err == HD_ENOTFOUND) {
        hd_jw_null(&call->jw);
        return HD_DONE;
    }
    if (!err)
        hd_item_service_write(&items, &call->jw, &item, NULL);
    return hd_step_done(err);
}

/* ---- embeddings: search/embed.h ------------------------------------------ */

/* A search or a change that waits for vectors. */
struct meaning {
    struct hd_embed_texts texts;
    struct hd_embedding *embedding;
    bool is_search;
    struct hd_item_search search;
    struct hd_item_change change;
};

static void meaning_free(void *state)
{
    struct meaning *meaning = state;

    hd_embedding_free(meaning->embedding);
}

static struct hd_step begin_meaning(struct hd_call *call, const struct meaning *meaning)
{
    struct meaning *own = hd_arena_alloc(call->arena, sizeof(*own));

    if (!own)
        return hd_step_fail(HD_ENOMEM);
    *own = *meaning;
    call->state = own;
    call->free_state = meaning_free;
    return HD_NEXT;
}

static int show_item_found(struct hd_call *call, const struct hd_item_search *search)
{
    const struct hd_item_service items = items_of(call);
    int err;

    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("items"));
    err = hd_item_service_search(&items, search, &call->jw);
    hd_jw_object_end(&call->jw);
    return err;
}

static struct hd_step use_vectors(struct hd_call *call)
{
    const struct hd_item_service items = items_of(call);
    struct meaning *meaning = call->state;
    const float *vectors;
    int err = hd_embedding_read(meaning->embedding, &vectors, &call->fault);

    if (err)
        return hd_step_fail(err);
    meaning->search.vector = meaning->change.vectors = vectors;
    return hd_step_done(meaning->is_search ? show_item_found(call, &meaning->search)
                                           : hd_item_service_change(&items, &meaning->change, 1));
}

static void on_embedded(void *ctx, int err, const struct heddle_error *fault)
{
    struct hd_call *call = ctx;

    if (err)
        call->fault = *fault;
    hd_call_resume(call, err ? hd_step_fail(err) : hd_call_visit(call, use_vectors, NULL));
}

static struct hd_step embed(struct hd_call *call)
{
    struct meaning *meaning = call->state;
    int err = hd_embed(call->app->embedder, meaning->texts.list, meaning->texts.count, on_embedded,
                       call, &meaning->embedding);

    return err ? hd_step_fail(err) : HD_WAIT;
}

/* ---- writing ---------------------------------------------------------- */

static int read_item(struct hd_call *call, struct hd_item_change *change,
                     struct hd_embed_texts *texts)
{
    const struct hd_item_service items = items_of(call);
    hd_json_val value = NULL;
    int err = place_of_body(call, &change->place);

    if (!err)
        err = hd_item_namespace_check_put(&change->place.labels, &call->fault);
    if (!err)
        err = hd_body_object(call, "value", &value);
    if (!err && !value)
        err = hd_error_set(&call->fault, HD_EINVAL, "value: expected an object");
    if (!err)
        err = hd_item_service_texts(&items, value, hd_body_get(call, "index"), texts,
                                    &change->text_count);
    if (!err)
        err = hd_item_service_ttl(&items, hd_body_get(call, "ttl"), &change->ttl_us);
    return err ? err : hd_call_text(call, value, &change->value);
}

/* With a filter, both the new item and an existing one must be visible to the caller. */
static int may_put(struct hd_call *call, const struct hd_item_change *change, bool *out)
{
    const struct hd_item_rec item = {
        .ns = change->place.ns, .key = change->place.key, .value = change->value};
    struct hd_item_service items = items_of(call);
    struct hd_item_rec before;
    int err;

    *out = true;
    if (!items.sees)
        return 0;
    items.sees = NULL;
    err = hd_call_sees_item(call, &item, out);
    if (!err && *out) {
        err = hd_item_service_get(&items, &change->place, false, &before);
        if (!err)
            err = hd_call_sees_item(call, &before, out);
    }
    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        err = 0;
    }
    return err;
}

static struct hd_step put_item(struct hd_call *call)
{
    const struct hd_item_service items = items_of(call);
    hd_json_val labels = hd_body_get(call, "namespace");
    struct hd_embed_texts texts = {.arena = call->arena};
    struct hd_item_change change = {.is_deletion = false};
    bool is_allowed = true;
    int err;

    if (hd_json_is_array(labels) && hd_json_size(labels) == 0)
        return hd_call_refuse(call, 400, "namespace: must have at least one label");
    err = read_item(call, &change, &texts);
    if (!err)
        err = may_put(call, &change, &is_allowed);
    if (!err && !is_allowed)
        return hd_call_refuse(call, 403, "Forbidden");
    call->status = 204;
    if (!err && texts.count > 0)
        return begin_meaning(call, &(struct meaning){.texts = texts, .change = change});
    return hd_step_done(err ? err : hd_item_service_change(&items, &change, 1));
}

static struct hd_step delete_item(struct hd_call *call)
{
    const struct hd_item_service items = items_of(call);
    struct hd_item_change change = {.is_deletion = true};
    struct hd_item_rec item;
    int err = find_item_place(call, &change.place);

    call->status = 204;
    if (!err && items.sees) { /* an item hidden by the filter is treated as absent */
        err = hd_item_service_get(&items, &change.place, false, &item);
        if (err == HD_ENOTFOUND)
            return HD_DONE;
    }
    return hd_step_done(err ? err : hd_item_service_change(&items, &change, 1));
}

/* ---- searching -------------------------------------------------------- */

static int read_search(struct hd_call *call, struct hd_item_search *search)
{
    const struct hd_item_service items = items_of(call);
    hd_json_val prefix = hd_body_get(call, "namespace_prefix");
    struct hd_item_namespace labels;
    int err =
        hd_item_namespace_parse(&labels, prefix, "namespace_prefix", call->arena, &call->fault);

    if (!err)
        err = hd_item_service_join(&items, &labels, &search->prefix);
    if (!err)
        err = hd_body_object(call, "filter", &search->filter);
    if (!err)
        err = hd_filter_check(search->filter, &call->fault);
    search->limit = 10;
    if (!err)
        err = hd_body_int(call, "limit", 1, 1000, &search->limit);
    if (!err)
        err = hd_body_int(call, "offset", 0, INT32_MAX, &search->offset);
    if (!err)
        err = hd_body_string(call, "query", &search->query);
    search->refreshes = call->app->config->ttl_refresh_on_read;
    return err ? err : hd_body_bool(call, "refresh_ttl", &search->refreshes);
}

static struct hd_step search_items(struct hd_call *call)
{
    struct meaning meaning = {.texts = {.arena = call->arena}, .is_search = true};
    int err = read_search(call, &meaning.search);

    if (err || !call->app->embedder || meaning.search.query.len == 0)
        return hd_step_done(err ? err : show_item_found(call, &meaning.search));
    err = hd_embed_texts_add(&meaning.texts, meaning.search.query);
    return err ? hd_step_fail(err) : begin_meaning(call, &meaning);
}

/* ---- namespaces ------------------------------------------------------- */

static int list(struct hd_call *call, struct hd_ns_search *search,
                const struct hd_ns_match matches[2])
{
    const struct hd_item_service items = items_of(call);
    int err;

    search->matches = matches;
    search->match_count = 2;
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("namespaces"));
    err = hd_item_service_namespaces(&items, search, &call->jw);
    hd_jw_object_end(&call->jw);
    return err;
}

static struct hd_step post_namespaces(struct hd_call *call)
{
    struct hd_ns_match matches[2] = {{.is_suffix = false}, {.is_suffix = true}};
    struct hd_ns_search search = {.limit = 100};
    int err = hd_item_namespace_parse(&matches[0].labels, hd_body_get(call, "prefix"), "prefix",
                                      call->arena, &call->fault);

    if (!err)
        err = hd_item_namespace_parse(&matches[1].labels, hd_body_get(call, "suffix"), "suffix",
                                      call->arena, &call->fault);
    if (!err)
        err = hd_body_int(call, "max_depth", 1, HD_ITEM_NAMESPACE_MAX, &search.max_depth);
    if (!err)
        err = hd_body_int(call, "limit", 1, 1000, &search.limit);
    if (!err)
        err = hd_body_int(call, "offset", 0, INT32_MAX, &search.offset);
    return hd_step_done(err ? err : list(call, &search, matches));
}

static struct hd_step get_namespaces(struct hd_call *call)
{
    struct hd_ns_match matches[2] = {{.is_suffix = false}, {.is_suffix = true}};
    struct hd_ns_search search = {.limit = 100};
    int err;

    if (call->body) /* a custom auth handler has turned the query into a body */
        return post_namespaces(call);
    err = labels_of_query(call, "prefix", &matches[0].labels);
    if (!err)
        err = labels_of_query(call, "suffix", &matches[1].labels);
    if (!err)
        err = hd_params_int(&call->query, HD_S("max_depth"), 1, HD_ITEM_NAMESPACE_MAX, 0,
                            &search.max_depth, &call->fault);
    if (!err)
        err = hd_params_int(&call->query, HD_S("limit"), 1, 1000, 100, &search.limit, &call->fault);
    if (!err)
        err = hd_params_int(&call->query, HD_S("offset"), 0, INT32_MAX, 0, &search.offset,
                            &call->fault);
    return hd_step_done(err ? err : list(call, &search, matches));
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_PUT,
     .pattern = "/store/items",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_PUT,
     .grows = true,
     .work = put_item,
     .then = embed,
     .tag = "Store",
     .summary = "Create or replace an item",
     .body = "ItemPut",
     .status = 204},
    {.method = HD_METHOD_GET,
     .pattern = "/store/items",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_GET,
     .work = get_item,
     .tag = "Store",
     .summary = "Get an item; null when there is none",
     .query = "namespace key refresh_ttl",
     .answer = "Item"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/store/items",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_DELETE,
     .frees = true,
     .work = delete_item,
     .tag = "Store",
     .summary = "Delete an item; the query may name it instead of the body",
     .body = "?ItemDelete",
     .status = 204},
    {.method = HD_METHOD_POST,
     .pattern = "/store/items/search",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_SEARCH,
     .work = search_items,
     .then = embed,
     .tag = "Store",
     .summary = "Search the items below a namespace: those nearest to `query`, or the latest",
     .body = "?ItemSearch",
     .answer = "ItemsFound"},
    {.method = HD_METHOD_POST,
     .pattern = "/store/namespaces",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_LIST_NAMESPACES,
     .work = post_namespaces,
     .tag = "Store",
     .summary = "List namespaces",
     .body = "?NamespaceSearch",
     .answer = "Namespaces"},
    {.method = HD_METHOD_GET,
     .pattern = "/store/namespaces",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_LIST_NAMESPACES,
     .work = get_namespaces,
     .tag = "Store",
     .summary = "List namespaces",
     .query = "prefix suffix max_depth limit offset",
     .answer = "Namespaces"},
};

const struct hd_routes hd_routes_items = {routes, HD_COUNT(routes)};
