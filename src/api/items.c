/*
 * The store: items that outlive threads, each a JSON object under a namespace and
 * a key. A namespace is a list of labels; where it is a query's parameter, its
 * labels are joined by dots.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "run/config.h"
#include "run/filter.h"
#include "run/labels.h"
#include "run/record.h"
#include "store/rows.h"

#define MAX_TTL_MINUTES 1e9
#define US_PER_MINUTE 60e6
#define MAX_FOUND ((size_t)1 << 30) /* bytes of the names that are sorted */
#define MAX_NAMESPACES 1000000
#define MAX_LABELS_ARENA ((size_t)1 << 20)
/* A read makes an item live longer when at least this part of its time has gone. */
#define REFRESH_PART 64

/* Where an item is; in the arena of the call. */
struct place {
    struct hd_labels labels;
    struct hd_slice ns; /* the labels, joined */
    struct hd_slice key;
};

/* ---- places ----------------------------------------------------------- */

static int join(struct hd_call *call, const struct hd_labels *labels, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, HD_LABELS_MAX_TEXT);
    err = hd_labels_join(labels, &buf);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

static int finish_place(struct hd_call *call, struct place *place)
{
    int err;

    if (place->key.len == 0)
        return hd_fault_set(&call->fault, HD_EINVAL, "key: expected a string that is not empty");
    if (memchr(place->key.ptr, '\0', place->key.len))
        return hd_fault_set(&call->fault, HD_EINVAL, "key: has a NUL in it");
    err = join(call, &place->labels, &place->ns);
    if (!err)
        err = hd_item_check(place->ns, place->key, &call->fault);
    if (err == HD_ELIMIT) /* of the name, not of the body */
        call->fault.code = err = HD_EINVAL;
    return err;
}

static int place_of_body(struct hd_call *call, struct place *place)
{
    hd_json_val labels = hd_body_get(call, "namespace");
    int err;

    if (!labels)
        return hd_fault_set(&call->fault, HD_EINVAL, "namespace: expected a list of labels");
    err = hd_labels_parse(&place->labels, labels, "namespace", call->arena, &call->fault);
    if (!err)
        err = hd_body_string(call, "key", &place->key);
    return err ? err : finish_place(call, place);
}

/* "a.b", or a parameter for each label. */
static int labels_of_query(struct hd_call *call, const char *name, struct hd_labels *labels)
{
    struct hd_slice text = {"", 0};
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, HD_LABELS_MAX_TEXT);
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
        err = hd_fault_set(&call->fault, HD_EINVAL, "%s: longer than %d bytes", name,
                           HD_LABELS_MAX_TEXT);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), &text);
    hd_buf_fini(&buf);
    return err ? err : hd_labels_split(labels, text, name, call->arena, &call->fault);
}

static int place_of_query(struct hd_call *call, struct place *place)
{
    int err = labels_of_query(call, "namespace", &place->labels);

    if (!err && place->labels.count == 0)
        return hd_fault_set(&call->fault, HD_EINVAL, "namespace: expected labels, joined by dots");
    if (!err && !hd_params_get(&call->query, HD_S("key"), &place->key))
        return hd_fault_set(&call->fault, HD_EINVAL, "key: expected a string that is not empty");
    return err ? err : finish_place(call, place);
}

/* ---- reading ---------------------------------------------------------- */

static void show(struct hd_call *call, const struct hd_item_rec *item, bool has_score)
{
    struct hd_jw *jw = &call->jw;
    struct hd_slice rest = item->ns;

    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("namespace"));
    hd_jw_array(jw);
    for (;;) {
        const char *dot = rest.len > 0 ? memchr(rest.ptr, '.', rest.len) : NULL;
        size_t len = dot ? (size_t)(dot - rest.ptr) : rest.len;

        hd_jw_string(jw, hd_slice(rest.ptr, len));
        if (!dot)
            break;
        rest = hd_slice(dot + 1, rest.len - len - 1);
    }
    hd_jw_array_end(jw);
    hd_jw_key(jw, HD_S("key"));
    hd_jw_string(jw, item->key);
    hd_jw_key(jw, HD_S("value"));
    hd_jw_json(jw, item->value, "{}");
    hd_jw_key(jw, HD_S("created_at"));
    hd_jw_time(jw, item->created_at);
    hd_jw_key(jw, HD_S("updated_at"));
    hd_jw_time(jw, item->updated_at);
    if (has_score) {
        hd_jw_key(jw, HD_S("score"));
        hd_jw_null(jw);
    }
    hd_jw_object_end(jw);
}

/* Adds to the batch that the item was used, unless it was so a moment ago. */
static int refresh(struct hd_batch_builder *batch, const struct hd_item_rec *item, int64_t now)
{
    int64_t wanted = now + item->ttl_us;

    if (item->ttl_us == 0 || wanted - item->expires_at < item->ttl_us / REFRESH_PART)
        return 0;
    return hd_item_refresh(batch, item, wanted);
}

static int get_item(struct hd_call *call)
{
    bool refreshes = call->app->config->ttl_refresh_on_read;
    struct hd_batch_builder batch;
    struct place place = {.key = {NULL, 0}};
    struct hd_item_rec item;
    int err = place_of_query(call, &place);

    if (!err)
        err =
            hd_params_bool(&call->query, HD_S("refresh_ttl"), refreshes, &refreshes, &call->fault);
    if (!err)
        err = hd_item_read(call->app->store, call->actor, place.ns, place.key, call->arena, &item,
                           &call->fault);
    if (err == HD_ENOTFOUND) {
        hd_jw_null(&call->jw);
        return 0;
    }
    if (err)
        return err;
    hd_batch_init(&batch);
    if (refreshes)
        err = refresh(&batch, &item, hd_clock_now_us());
    if (!err)
        err = hd_items_apply(call->app->store, place.ns, &batch, &call->fault);
    hd_batch_fini(&batch);
    if (!err)
        show(call, &item, false);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static int read_ttl(struct hd_call *call, int64_t *ttl_us)
{
    hd_json_val val = hd_body_get(call, "ttl");
    double minutes;

    *ttl_us = call->app->config->ttl_items_us;
    if (!val)
        return 0;
    if (!hd_json_double(val, &minutes) || !(minutes > 0) || minutes > MAX_TTL_MINUTES)
        return hd_fault_set(&call->fault, HD_EINVAL,
                            "ttl: expected a number of minutes greater than 0");
    *ttl_us = (int64_t)ceil(minutes * US_PER_MINUTE);
    return 0;
}

/* There is no index yet, so it is only looked at. */
static int check_index(struct hd_call *call)
{
    hd_json_val val = hd_body_get(call, "index");
    struct hd_json_iter it = hd_json_iter(val);
    bool is_good = !val || hd_json_is_array(val) || hd_json_is_bool(val);

    while (is_good && hd_json_is_array(val) && hd_json_next(&it))
        is_good = hd_json_is_string(it.val);
    if (!is_good)
        return hd_fault_set(&call->fault, HD_EINVAL, "index: expected false or a list of paths");
    return 0;
}

static int read_item(struct hd_call *call, struct hd_item_rec *item)
{
    struct place place = {.key = {NULL, 0}};
    hd_json_val value;
    int err = place_of_body(call, &place);

    if (!err)
        err = hd_labels_check_put(&place.labels, &call->fault);
    if (!err)
        err = hd_body_object(call, "value", &value);
    if (!err && !value)
        err = hd_fault_set(&call->fault, HD_EINVAL, "value: expected an object");
    if (!err)
        err = check_index(call);
    if (!err)
        err = read_ttl(call, &item->ttl_us);
    if (!err)
        err = hd_call_text(call, value, &item->value);
    item->principal = call->actor;
    item->ns = place.ns;
    item->key = place.key;
    return err;
}

/* The time of creation stays; that of the change always grows, refreshing depends on it. */
static int date_item(struct hd_call *call, struct hd_item_rec *item)
{
    int64_t now = hd_clock_now_us();
    struct hd_item_rec before;
    int err = hd_item_read(call->app->store, call->actor, item->ns, item->key, call->arena, &before,
                           &call->fault);

    item->created_at = item->updated_at = now;
    item->expires_at = item->ttl_us > 0 ? now + item->ttl_us : 0;
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    item->created_at = before.created_at;
    if (item->updated_at <= before.updated_at)
        item->updated_at = before.updated_at + 1;
    return 0;
}

static int apply(struct hd_call *call, struct hd_slice lane, struct hd_batch_builder *batch)
{
    struct hd_batch view = hd_batch_view(batch);

    return hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
}

static int put_item(struct hd_call *call)
{
    hd_json_val labels = hd_body_get(call, "namespace");
    struct hd_item_rec item = {.ttl_us = 0};
    struct hd_batch_builder batch;
    int err;

    if (hd_json_is_array(labels) && hd_json_size(labels) == 0)
        return hd_call_refuse(call, 400, "namespace: must have at least one label");
    err = read_item(call, &item);
    if (!err)
        err = date_item(call, &item);
    if (err)
        return err;
    hd_batch_init(&batch);
    err = hd_item_put(&batch, &item);
    if (!err)
        err = apply(call, item.ns, &batch);
    hd_batch_fini(&batch);
    call->status = 204;
    return err;
}

static int delete_item(struct hd_call *call)
{
    struct place place = {.key = {NULL, 0}};
    struct hd_batch_builder batch;
    int err = call->body ? place_of_body(call, &place) : place_of_query(call, &place);

    if (err)
        return err;
    hd_batch_init(&batch);
    err = hd_item_delete(&batch, call->actor, place.ns, place.key);
    if (!err)
        err = apply(call, place.ns, &batch);
    hd_batch_fini(&batch);
    call->status = 204;
    return err;
}

/* ---- searching -------------------------------------------------------- */

/* The name of an item that matches, for sorting. */
struct found {
    int64_t updated_at;
    struct hd_slice ns;
    struct hd_slice key;
};

struct search {
    struct hd_call *call;
    struct hd_slice prefix;
    hd_json_val filter;
    int64_t limit, offset;
    bool has_query;
    bool refreshes;

    struct found *found;
    size_t count, cap;
    struct hd_arena arena; /* of what was found */
};

static int read_search(struct hd_call *call, struct search *search)
{
    hd_json_val prefix = hd_body_get(call, "namespace_prefix");
    struct hd_slice query = {NULL, 0};
    struct hd_labels labels;
    int err = hd_labels_parse(&labels, prefix, "namespace_prefix", call->arena, &call->fault);

    if (!err)
        err = join(call, &labels, &search->prefix);
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
        err = hd_body_string(call, "query", &query);
    search->refreshes = call->app->config->ttl_refresh_on_read;
    if (!err)
        err = hd_body_bool(call, "refresh_ttl", &search->refreshes);
    search->has_query = query.len > 0;
    return err;
}

static int matches(struct search *search, const struct hd_item_rec *item, bool *out)
{
    struct hd_json json = {NULL};
    int err;

    *out = true;
    if (!search->filter)
        return 0;
    err = hd_json_parse(&json, item->value, &search->call->fault);
    *out = !err && hd_filter_matches(search->filter, hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

static int on_item(void *arg, const struct hd_item_rec *item)
{
    struct search *search = arg;
    struct found *found;
    bool is_match;
    int err = matches(search, item, &is_match);

    if (err || !is_match)
        return err;
    if (search->count == search->cap) {
        size_t cap = search->cap ? search->cap * 2 : 64;
        struct found *grown = hd_realloc(search->found, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        search->found = grown;
        search->cap = cap;
    }
    found = &search->found[search->count];
    found->updated_at = item->updated_at;
    err = hd_arena_copy(&search->arena, item->ns, &found->ns);
    if (!err)
        err = hd_arena_copy(&search->arena, item->key, &found->key);
    search->count += !err;
    return err;
}

/* What was written last comes first. */
static int compare_found(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    int order;

    if (one->updated_at != other->updated_at)
        return one->updated_at > other->updated_at ? -1 : 1;
    order = hd_slice_cmp(one->ns, other->ns);
    return order != 0 ? order : hd_slice_cmp(one->key, other->key);
}

static int show_found(struct search *search)
{
    struct hd_call *call = search->call;
    size_t end = (size_t)(search->offset + search->limit);
    struct hd_batch_builder batch;
    int err = 0;

    if (search->count > 0)
        qsort(search->found, search->count, sizeof(*search->found), compare_found);
    hd_batch_init(&batch);
    for (size_t i = (size_t)search->offset; !err && i < search->count && i < end; i++) {
        const struct found *found = &search->found[i];
        struct hd_item_rec item;

        err = hd_item_read(call->app->store, call->actor, found->ns, found->key, call->arena, &item,
                           &call->fault);
        if (err == HD_ENOTFOUND) { /* gone a moment ago */
            err = 0;
            continue;
        }
        if (!err && search->refreshes)
            err = refresh(&batch, &item, hd_clock_now_us());
        if (!err)
            show(call, &item, search->has_query);
    }
    if (!err)
        err = hd_items_apply(call->app->store, search->prefix, &batch, &call->fault);
    hd_batch_fini(&batch);
    return err;
}

static int search_items(struct hd_call *call)
{
    struct search search = {.call = call};
    int err = read_search(call, &search);

    if (err)
        return err;
    hd_arena_init(&search.arena, MAX_FOUND);
    err = hd_items_scan(call->app->store, call->actor, search.prefix, search.filter != NULL,
                        on_item, &search, &call->fault);
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("items"));
    hd_jw_array(&call->jw);
    if (!err)
        err = show_found(&search);
    hd_jw_array_end(&call->jw);
    hd_jw_object_end(&call->jw);
    hd_free(search.found);
    hd_arena_fini(&search.arena);
    return err;
}

/* ---- namespaces ------------------------------------------------------- */

struct listing {
    struct hd_call *call;
    struct hd_labels prefix, suffix;
    int64_t max_depth; /* 0: any */
    int64_t limit, offset;
    struct hd_slice from; /* all that match begin with it */
    struct hd_label_set set;
    struct hd_arena arena; /* of one namespace */
};

/* What a prefix begins with before its first wildcard. */
static int find_start(struct hd_call *call, struct listing *listing)
{
    struct hd_labels fixed = {.items = listing->prefix.items};

    while (fixed.count < listing->prefix.count && !hd_slice_eq(fixed.items[fixed.count], HD_S("*")))
        fixed.count++;
    return join(call, &fixed, &listing->from);
}

static int on_namespace(void *arg, struct hd_slice ns)
{
    struct listing *listing = arg;
    struct hd_labels labels;
    int err;

    if (!hd_slice_starts(ns, listing->from))
        return 1;
    hd_arena_reset(&listing->arena);
    err = hd_labels_split(&labels, ns, "namespace", &listing->arena, &listing->call->fault);
    if (err || !hd_labels_start_with(&labels, &listing->prefix) ||
        !hd_labels_end_with(&labels, &listing->suffix))
        return err;
    return hd_label_set_add(&listing->set, &labels);
}

static void show_namespaces(struct hd_call *call, struct listing *listing)
{
    size_t end = (size_t)(listing->offset + listing->limit);
    struct hd_jw *jw = &call->jw;

    hd_label_set_sort(&listing->set);
    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("namespaces"));
    hd_jw_array(jw);
    for (size_t i = (size_t)listing->offset; i < listing->set.count && i < end; i++) {
        const struct hd_labels *labels = &listing->set.items[i];

        hd_jw_array(jw);
        for (size_t n = 0; n < labels->count; n++)
            hd_jw_string(jw, labels->items[n]);
        hd_jw_array_end(jw);
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

static int list(struct hd_call *call, struct listing *listing)
{
    int err = find_start(call, listing);

    if (err)
        return err;
    listing->call = call;
    hd_arena_init(&listing->arena, MAX_LABELS_ARENA);
    hd_label_set_init(&listing->set, call->arena, (size_t)listing->max_depth, MAX_NAMESPACES);
    err = hd_namespaces_scan(call->app->store, call->actor, listing->from, on_namespace, listing,
                             &call->fault);
    if (!err)
        show_namespaces(call, listing);
    hd_label_set_fini(&listing->set);
    hd_arena_fini(&listing->arena);
    return err;
}

static int post_namespaces(struct hd_call *call)
{
    struct listing listing = {.limit = 100};
    int err = hd_labels_parse(&listing.prefix, hd_body_get(call, "prefix"), "prefix", call->arena,
                              &call->fault);

    if (!err)
        err = hd_labels_parse(&listing.suffix, hd_body_get(call, "suffix"), "suffix", call->arena,
                              &call->fault);
    if (!err)
        err = hd_body_int(call, "max_depth", 1, HD_LABELS_MAX, &listing.max_depth);
    if (!err)
        err = hd_body_int(call, "limit", 1, 1000, &listing.limit);
    if (!err)
        err = hd_body_int(call, "offset", 0, INT32_MAX, &listing.offset);
    return err ? err : list(call, &listing);
}

static int get_namespaces(struct hd_call *call)
{
    struct listing listing = {.limit = 100};
    int err = labels_of_query(call, "prefix", &listing.prefix);

    if (!err)
        err = labels_of_query(call, "suffix", &listing.suffix);
    if (!err)
        err = hd_params_int(&call->query, HD_S("max_depth"), 1, HD_LABELS_MAX, 0,
                            &listing.max_depth, &call->fault);
    if (!err)
        err =
            hd_params_int(&call->query, HD_S("limit"), 1, 1000, 100, &listing.limit, &call->fault);
    if (!err)
        err = hd_params_int(&call->query, HD_S("offset"), 0, INT32_MAX, 0, &listing.offset,
                            &call->fault);
    return err ? err : list(call, &listing);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_PUT,
     .pattern = "/store/items",
     .access = HD_ACCESS_USER,
     .on = HD_ON_STORE_PUT,
     .grows = true,
     .work = put_item,
     .tag = "Store",
     .summary = "Put an item, or replace it",
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
     .tag = "Store",
     .summary = "Search the items below a namespace, the last written first",
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
