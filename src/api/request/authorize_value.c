#include "api/request/authorize_value.h"

#include <string.h>

#include "api/state/checkpoint_target.h"
#include "records/record.h"
#include "value/val.h"

#define OWNER HD_S("owner")
#define METADATA HD_S("metadata")

/* ---- the events */

static const struct hd_authorize_event events[] = {
    [HD_ON_THREADS_CREATE] = {"threads", "create", HD_OF_THREADS,
                              "thread_id metadata if_exists ttl", NULL, true, true},
    [HD_ON_THREADS_READ] = {"threads", "read", HD_OF_THREADS, "", NULL, false, false},
    [HD_ON_THREADS_UPDATE] = {"threads", "update", HD_OF_THREADS,
                              "metadata thread_id run_ids status", NULL, false, false},
    [HD_ON_THREADS_DELETE] = {"threads", "delete", HD_OF_THREADS, "thread_ids", NULL, false, false},
    [HD_ON_THREADS_SEARCH] = {"threads", "search", HD_OF_THREADS,
                              "metadata values status limit offset ids", NULL, true, false},
    [HD_ON_THREADS_CREATE_RUN] = {"threads", "create_run", HD_OF_THREADS,
                                  "assistant_id metadata multitask_strategy if_not_exists "
                                  "after_seconds",
                                  "kwargs", true, false},
    [HD_ON_ASSISTANTS_CREATE] = {"assistants", "create", HD_OF_ASSISTANTS,
                                 "assistant_id graph_id config context metadata if_exists name "
                                 "description",
                                 NULL, true, true},
    [HD_ON_ASSISTANTS_READ] = {"assistants", "read", HD_OF_ASSISTANTS, "", NULL, false, false},
    [HD_ON_ASSISTANTS_UPDATE] = {"assistants", "update", HD_OF_ASSISTANTS,
                                 "graph_id config context metadata name description version", NULL,
                                 false, false},
    [HD_ON_ASSISTANTS_DELETE] = {"assistants", "delete", HD_OF_ASSISTANTS, "", NULL, false, false},
    [HD_ON_ASSISTANTS_SEARCH] = {"assistants", "search", HD_OF_ASSISTANTS,
                                 "graph_id name metadata limit offset", NULL, true, false},
    [HD_ON_CRONS_CREATE] = {"crons", "create", HD_OF_CRONS,
                            "schedule timezone end_time enabled metadata", "payload", true, true},
    [HD_ON_CRONS_UPDATE] = {"crons", "update", HD_OF_CRONS,
                            "schedule timezone end_time enabled metadata", "payload", false, false},
    [HD_ON_CRONS_DELETE] = {"crons", "delete", HD_OF_CRONS, "", NULL, false, false},
    [HD_ON_CRONS_SEARCH] = {"crons", "search", HD_OF_CRONS,
                            "assistant_id thread_id metadata limit offset", NULL, true, false},
    [HD_ON_STORE_PUT] = {"store", "put", HD_OF_STORE, "namespace key value index ttl", NULL, false,
                         false},
    [HD_ON_STORE_GET] = {"store", "get", HD_OF_STORE, "namespace key", NULL, false, false},
    [HD_ON_STORE_DELETE] = {"store", "delete", HD_OF_STORE, "namespace key", NULL, false, false},
    [HD_ON_STORE_SEARCH] = {"store", "search", HD_OF_STORE,
                            "namespace=namespace_prefix filter limit offset query", NULL, false,
                            false},
    [HD_ON_STORE_LIST_NAMESPACES] = {"store", "list_namespaces", HD_OF_STORE,
                                     "namespace=prefix suffix max_depth limit offset", NULL, false,
                                     false},
};

const struct hd_authorize_event *hd_authorize_event(enum hd_on on)
{
    return &events[on];
}

static bool is_search(const struct hd_authorize_event *event)
{
    return strcmp(event->action, "search") == 0;
}

/* One of `members`: its name in the value and in the body. */
struct value_member {
    struct hd_slice name;
    struct hd_slice source;
};

/* Reads the next one from *at; false after the last. */
static bool next_member(const char **at, struct value_member *out)
{
    size_t len = strcspn(*at, " ");
    const char *equals = memchr(*at, '=', len);

    if (len == 0)
        return false;
    out->name = hd_slice(*at, equals ? (size_t)(equals - *at) : len);
    out->source = equals ? hd_slice(equals + 1, len - out->name.len - 1) : out->name;
    *at += len;
    *at += strspn(*at, " ");
    return true;
}

static bool value_is_member(const struct hd_authorize_event *event, struct hd_slice source)
{
    const char *at = event->members;
    struct value_member member;

    while (next_member(&at, &member)) {
        if (hd_slice_eq(member.source, source))
            return true;
    }
    return false;
}

/* ---- values ----------------------------------------------------------- */

/* Writes the parameters of the path, in the order of call->params. */
static void put_params(struct hd_jw *jw, const struct hd_call *call)
{
    const char *at = call->route->pattern;

    for (size_t i = 0; i < HD_ROUTER_MAX_PARAMS && (at = strchr(at, '{')); i++) {
        size_t len = strcspn(++at, "}");

        hd_jw_key(jw, hd_slice(at, len));
        hd_jw_string(jw, call->params[i]);
    }
}

int hd_authorize_params(struct hd_call *call, struct hd_slice *out)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, HD_AUTHORIZE_MAX_VALUE);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    put_params(&jw, call);
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, call->arena, out);
}

/* The owner member of a client is dropped, as in all routes. */
static void put_value_metadata(struct hd_jw *jw, const struct hd_call *call,
                               const struct hd_authorize_event *event, hd_json_val metadata)
{
    struct hd_json_iter it = hd_json_iter(metadata);

    if (metadata && !hd_json_is_object(metadata)) { /* refused by the route */
        hd_jw_val(jw, metadata);
        return;
    }
    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (!is_search(event) && hd_slice_eq(it.key, OWNER))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    if (event->is_owned) {
        hd_jw_key(jw, OWNER);
        hd_jw_string(jw, call->identity->subject);
    }
    hd_jw_object_end(jw);
}

static void put_labels(struct hd_jw *jw, struct hd_slice ns)
{
    while (ns.len > 0) {
        const char *dot = memchr(ns.ptr, '.', ns.len);
        size_t len = dot ? (size_t)(dot - ns.ptr) : ns.len;

        hd_jw_string(jw, hd_slice(ns.ptr, len));
        ns = dot ? hd_slice(dot + 1, ns.len - len - 1) : hd_slice(NULL, 0);
    }
}

/* A list of labels: from the body, or from the query ("a.b", or one parameter per label). */
static void put_namespace(struct hd_jw *jw, const struct hd_call *call, hd_json_val given,
                          struct hd_slice source)
{
    if (given || call->body) {
        if (given)
            hd_jw_val(jw, given);
        else
            hd_jw_raw(jw, HD_S("[]"));
        return;
    }
    hd_jw_array(jw);
    for (size_t i = 0; i < call->query.count; i++) {
        if (hd_slice_eq(call->query.pairs[i].name, source))
            put_labels(jw, call->query.pairs[i].value);
    }
    hd_jw_array_end(jw);
}

static bool is_number(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    }
    return text.len > 0 && text.len < 18 && (text.len == 1 || text.ptr[0] != '0');
}

/* A route without a body takes the member from the query. */
static void put_of_query(struct hd_jw *jw, const struct hd_call *call,
                         const struct value_member *member)
{
    struct hd_slice text;

    if (call->body || !hd_params_get(&call->query, member->source, &text))
        return;
    hd_jw_key(jw, member->name);
    if (is_number(text) && !hd_slice_eq(member->name, HD_S("key")))
        hd_jw_raw(jw, text);
    else
        hd_jw_string(jw, text);
}

static void put_value_member(struct hd_jw *jw, const struct hd_call *call,
                             const struct hd_authorize_event *event, hd_json_val body,
                             const struct value_member *member)
{
    hd_json_val val = hd_json_get(body, member->source);

    if (hd_json_is_null(val))
        val = NULL;
    if (hd_slice_eq(member->name, METADATA) && (val || event->has_metadata)) {
        hd_jw_key(jw, member->name);
        put_value_metadata(jw, call, event, val);
    } else if (event->of == HD_OF_STORE && hd_slice_eq(member->name, HD_S("namespace"))) {
        hd_jw_key(jw, member->name);
        put_namespace(jw, call, val, member->source);
    } else if (val) {
        hd_jw_key(jw, member->name);
        hd_jw_val(jw, val);
    } else if (event->of == HD_OF_STORE) {
        put_of_query(jw, call, member);
    }
}

/* The members of the object that the event does not list. */
static void put_others(struct hd_jw *jw, const struct hd_authorize_event *event, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(object);

    while (hd_json_next(&it)) {
        if (value_is_member(event, it.key))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
}

static void put_rest(struct hd_jw *jw, const struct hd_authorize_event *event, hd_json_val body)
{
    if (!event->rest)
        return;
    hd_jw_put_object(jw, event->rest);
    put_others(jw, event, body);
    hd_jw_object_end(jw);
}

/* The path has precedence over the body. */
static bool is_param(const struct hd_call *call, struct hd_slice name)
{
    const char *at = call->route->pattern;

    while ((at = strchr(at, '{'))) {
        size_t len = strcspn(++at, "}");

        if (hd_slice_eq(hd_slice(at, len), name))
            return true;
    }
    return false;
}

/* A duplicate name is refused: the handler and the route might use different values. */
static int check_names(struct hd_call *call, struct hd_slice value)
{
    struct hd_val *val = NULL;
    int err = hd_val_parse_json(value, &val, &call->fault);

    hd_val_unref(val);
    return err;
}

int hd_authorize_value(struct hd_call *call, const struct hd_authorize_event *event,
                       hd_json_val body, struct hd_buf *out)
{
    const char *at = event->members;
    struct hd_slice action;
    struct value_member member;
    struct hd_jw jw;
    int err;

    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    if (&events[HD_ON_THREADS_CREATE] != event) /* a copy: the path has the id of the original */
        put_params(&jw, call);
    while (next_member(&at, &member)) {
        if (!is_param(call, member.name))
            put_value_member(&jw, call, event, body, &member);
    }
    put_rest(&jw, event, body);
    if (&events[HD_ON_THREADS_UPDATE] == event &&
        hd_params_get(&call->query, HD_S("action"), &action)) {
        hd_jw_put_string(&jw, "action", action);
    }
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    return err ? err : check_names(call, hd_buf_slice(out));
}

int hd_authorize_value_of_copy(struct hd_call *call, const struct hd_authorize_event *event,
                               struct hd_buf *out, bool *is_there)
{
    struct hd_json json = {NULL};
    struct hd_thread_rec thread;
    struct hd_jw jw;
    int err = hd_call_thread(call, &thread);

    *is_there = !err;
    call->fault = (struct heddle_error){0};
    if (err) /* refused by the route */
        return err == HD_ENOMEM ? err : 0;
    if (thread.metadata.len > 0)
        err = hd_json_parse(&json, thread.metadata, &call->fault);
    if (err)
        return err;
    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_key(&jw, METADATA);
    put_value_metadata(&jw, call, event, hd_json_root(&json));
    hd_jw_object_end(&jw);
    hd_json_fini(&json);
    return hd_jw_finish(&jw);
}

int hd_authorize_value_of_item(struct hd_call *call, const struct hd_item_rec *item,
                               struct hd_buf *out)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_jw jw;
    int err = item->value.len > 0 ? hd_json_parse(&json, item->value, &call->fault) : 0;

    if (err)
        return err;
    it = hd_json_iter(hd_json_root(&json));
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("namespace")) || hd_slice_eq(it.key, HD_S("key")))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    hd_jw_put_array(&jw, "namespace");
    put_labels(&jw, item->ns);
    hd_jw_array_end(&jw);
    hd_jw_put_string(&jw, "key", item->key);
    hd_jw_object_end(&jw);
    hd_json_fini(&json);
    return hd_jw_finish(&jw);
}

/* ---- the handler's changes -------------------------------------------- */

void hd_authorize_put_changed(struct hd_jw *jw, const struct hd_authorize_event *event,
                              hd_json_val body, hd_json_val changed)
{
    const char *at = event->members;
    struct value_member member;

    hd_jw_object(jw);
    if (!event->rest)
        put_others(jw, event, body);
    while (next_member(&at, &member)) {
        hd_json_val val = hd_json_get(changed, member.name);

        if (!val)
            continue;
        hd_jw_key(jw, member.source);
        hd_jw_val(jw, val);
    }
    if (event->rest)
        put_others(jw, event, hd_json_get(changed, hd_slice_cstr(event->rest)));
    hd_jw_object_end(jw);
}

bool hd_authorize_stamps(const struct hd_authorize_event *event, hd_json_val changed)
{
    return !is_search(event) && value_is_member(event, METADATA) && hd_json_get(changed, METADATA);
}
