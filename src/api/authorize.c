#include "api/authorize.h"

#include <stdio.h>
#include <string.h>

#include "api/access.h"
#include "api/spot.h"
#include "auth/grant.h"
#include "base/log.h"
#include "graph/val.h"
#include "run/gate.h"
#include "run/gate_worker.h"
#include "run/record.h"

#define MAX_VALUE ((size_t)256 << 20)
#define MAX_HEADERS 16
#define OWNER HD_S("owner")
#define METADATA HD_S("metadata")

/* ---- what there is to be asked about ----------------------------------- */

/*
 * `members` are those of the body that the value has; "a=b": `a` of the value is `b` of the body.
 * All others are together under the name `rest`, unless that is NULL.
 */
struct event {
    const char *resource;
    const char *action;
    enum hd_resource of;
    const char *members;
    const char *rest;
    bool has_metadata; /* also when none were sent: handlers write into them */
    bool is_owned;     /* what is made has an owner */
};

static const struct event events[] = {
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

static bool is_search(const struct event *event)
{
    return strcmp(event->action, "search") == 0;
}

/* One of `members`: its name in the value and in the body. */
struct member {
    struct hd_slice name;
    struct hd_slice source;
};

/* From *at on; false after the last. */
static bool next_member(const char **at, struct member *out)
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

static bool is_member(const struct event *event, struct hd_slice source)
{
    const char *at = event->members;
    struct member member;

    while (next_member(&at, &member)) {
        if (hd_slice_eq(member.source, source))
            return true;
    }
    return false;
}

/* ---- a call that is asked about ---------------------------------------- */

/* What is to be asked: route->on for each element of a list, then route->also_on. */
struct hd_authorized {
    const struct hd_authorize_steps *steps;
    struct hd_slice handlers[2]; /* of on and also_on; empty: nobody is asked */
    int which;                   /* 0: on, 1: also_on */
    size_t index;                /* of the element */
    bool is_pending;             /* there is something to ask, `value` */
    struct hd_buf value;
    struct hd_slice answer; /* JSON: what the handler said, and the value in a blob */
    struct hd_slice changed;
    struct hd_slice *elements; /* of a list that were changed, as text; empty: as it was */
    struct hd_json filters[HD_RESOURCES];
    bool is_stamped;
};

static const struct event *event_of(const struct hd_call *call)
{
    const struct hd_authorized *a = call->authorized;

    return &events[a->which == 0 ? call->route->on : call->route->also_on];
}

static bool is_list(const struct hd_call *call)
{
    return call->route->body && call->route->body[0] == '[';
}

void hd_authorize_free(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;

    if (!a)
        return;
    hd_buf_fini(&a->value);
    for (size_t i = 0; i < HD_RESOURCES; i++)
        hd_json_fini(&a->filters[i]);
    call->authorized = NULL;
}

/* ---- values (store thread) --------------------------------------------- */

/* "{thread_id}" and so on, in the order of call->params. */
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
    int err;

    hd_buf_init(&buf, MAX_VALUE);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    put_params(&jw, call);
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

/* What clients say of the owner is dropped, as everywhere. */
static void put_metadata(struct hd_jw *jw, const struct hd_call *call, const struct event *event,
                         hd_json_val metadata)
{
    struct hd_json_iter it = hd_json_iter(metadata);

    if (metadata && !hd_json_is_object(metadata)) { /* which the route refuses */
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
        hd_jw_string(jw, call->who->subject);
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

/* A list of labels: of the body, or of a query ("a.b", or one parameter for each). */
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

/* Of a route without a body the query says it. */
static void put_of_query(struct hd_jw *jw, const struct hd_call *call, const struct member *member)
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

static void put_member(struct hd_jw *jw, const struct hd_call *call, const struct event *event,
                       hd_json_val body, const struct member *member)
{
    hd_json_val val = hd_json_get(body, member->source);

    if (hd_json_is_null(val))
        val = NULL;
    if (hd_slice_eq(member->name, METADATA) && (val || event->has_metadata)) {
        hd_jw_key(jw, member->name);
        put_metadata(jw, call, event, val);
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

static void put_rest(struct hd_jw *jw, const struct event *event, hd_json_val body)
{
    struct hd_json_iter it = hd_json_iter(body);

    if (!event->rest)
        return;
    hd_jw_key(jw, hd_slice_cstr(event->rest));
    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (is_member(event, it.key))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

/* What is in the path is said by the path alone. */
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

/* Of a name that occurs twice the handler would see one value, and the route take the other. */
static int check_names(struct hd_call *call)
{
    struct hd_val *val = NULL;
    int err = hd_val_parse_json(hd_buf_slice(&call->authorized->value), &val, &call->fault);

    hd_val_unref(val);
    return err;
}

static int write_value(struct hd_call *call, hd_json_val body)
{
    struct hd_authorized *a = call->authorized;
    const struct event *event = event_of(call);
    const char *at = event->members;
    struct hd_slice action;
    struct member member;
    struct hd_jw jw;
    int err;

    hd_buf_reset(&a->value);
    hd_jw_init(&jw, &a->value);
    hd_jw_object(&jw);
    if (&events[HD_ON_THREADS_CREATE] != event) /* of a copy: the id is that of the other */
        put_params(&jw, call);
    while (next_member(&at, &member)) {
        if (!is_param(call, member.name))
            put_member(&jw, call, event, body, &member);
    }
    put_rest(&jw, event, body);
    if (&events[HD_ON_THREADS_UPDATE] == event &&
        hd_params_get(&call->query, HD_S("action"), &action)) {
        hd_jw_key(&jw, HD_S("action"));
        hd_jw_string(&jw, action);
    }
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    return err ? err : check_names(call);
}

/* A copy has the metadata of what it is a copy of. *is_there: there is something to copy. */
static int write_copied(struct hd_call *call, bool *is_there)
{
    struct hd_authorized *a = call->authorized;
    struct hd_json json = {NULL};
    struct hd_thread_rec thread;
    struct hd_jw jw;
    int err = hd_call_thread(call, &thread);

    *is_there = !err;
    call->fault = (struct hd_fault){0};
    if (err) /* which the route says */
        return err == HD_ENOMEM ? err : 0;
    if (thread.metadata.len > 0)
        err = hd_json_parse(&json, thread.metadata, &call->fault);
    if (err)
        return err;
    hd_buf_reset(&a->value);
    hd_jw_init(&jw, &a->value);
    hd_jw_object(&jw);
    hd_jw_key(&jw, METADATA);
    put_metadata(&jw, call, event_of(call), hd_json_root(&json));
    hd_jw_object_end(&jw);
    hd_json_fini(&json);
    return hd_jw_finish(&jw);
}

static hd_json_val element_at(hd_json_val list, size_t index)
{
    struct hd_json_iter it = hd_json_iter(list);

    for (size_t i = 0; hd_json_next(&it); i++) {
        if (i == index)
            return it.val;
    }
    return NULL;
}

/* Threads of an assistant are only concerned when they are to go with it. */
static bool is_concerned(struct hd_call *call)
{
    bool deletes = true;

    if (call->route->on == HD_ON_ASSISTANTS_DELETE &&
        hd_params_bool(&call->query, HD_S("delete_threads"), false, &deletes, &call->fault))
        call->fault = (struct hd_fault){0};
    return deletes;
}

/* The next question, from a->which and a->index on. */
static int make_question(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    int err = 0;

    a->is_pending = false;
    if (a->which == 0 && a->handlers[0].len > 0 && is_list(call) &&
        a->index < hd_json_size(call->body)) {
        a->is_pending = true;
        return write_value(call, element_at(call->body, a->index));
    }
    if (a->which == 0 && a->handlers[0].len > 0 && !is_list(call) && a->index == 0) {
        a->is_pending = true;
        return write_value(call, call->body);
    }
    if (a->which == 1 && a->index > 0)
        return 0;
    a->which = 1;
    a->index = 0;
    if (a->handlers[1].len == 0 || !is_concerned(call))
        return 0;
    a->is_pending = true;
    if (call->route->also_on == HD_ON_THREADS_CREATE)
        err = write_copied(call, &a->is_pending);
    else
        err = write_value(call, call->body);
    return err;
}

/* ---- what the handler made of it (store thread) ------------------------- */

static void put_changed(struct hd_jw *jw, const struct event *event, hd_json_val body,
                        hd_json_val changed)
{
    struct hd_json_iter it = hd_json_iter(body);
    const char *at = event->members;
    struct member member;

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (event->rest || is_member(event, it.key))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    while (next_member(&at, &member)) {
        hd_json_val val = hd_json_get(changed, member.name);

        if (!val)
            continue;
        hd_jw_key(jw, member.source);
        hd_jw_val(jw, val);
    }
    it = hd_json_iter(event->rest ? hd_json_get(changed, hd_slice_cstr(event->rest)) : NULL);
    while (hd_json_next(&it)) {
        if (is_member(event, it.key))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

/* The body becomes that text. */
static int replace_body(struct hd_call *call, struct hd_slice text)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, text, &call->fault);

    if (err)
        return err;
    hd_json_fini(&call->json);
    call->json = json;
    call->body = hd_json_root(&call->json);
    return 0;
}

static int change_body(struct hd_call *call, hd_json_val changed)
{
    struct hd_authorized *a = call->authorized;
    hd_json_val body = is_list(call) ? element_at(call->body, a->index) : call->body;
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    hd_buf_init(&buf, MAX_VALUE);
    hd_jw_init(&jw, &buf);
    put_changed(&jw, event_of(call), body, changed);
    err = hd_jw_finish(&jw);
    if (!err && !is_list(call))
        err = replace_body(call, hd_buf_slice(&buf));
    if (!err && is_list(call) && !a->elements) {
        a->elements = hd_arena_calloc(call->arena, hd_json_size(call->body), sizeof(*a->elements));
        err = a->elements ? 0 : HD_ENOMEM;
    }
    if (!err && is_list(call))
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), &a->elements[a->index]);
    hd_buf_fini(&buf);
    return err;
}

/* When all of a list have been asked about. */
static int change_list(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    struct hd_json_iter it = hd_json_iter(call->body);
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    if (!a->elements)
        return 0;
    hd_buf_init(&buf, MAX_VALUE);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; hd_json_next(&it); i++) {
        if (a->elements[i].len > 0)
            hd_jw_raw(&jw, a->elements[i]);
        else
            hd_jw_val(&jw, it.val);
    }
    hd_jw_array_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = replace_body(call, hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return err;
}

/* The first filter for a resource counts: what is made afterwards is nobody else's. */
static int keep_filter(struct hd_call *call, hd_json_val filter)
{
    struct hd_json *kept = &call->authorized->filters[event_of(call)->of];
    struct hd_fault why = {0};
    struct hd_slice text;
    int err = hd_grant_check(filter, &why);

    if (err) {
        hd_log(HD_LOG_ERROR, "auth", "the handler of %s.%s: %s", event_of(call)->resource,
               event_of(call)->action, why.text);
        (void)hd_call_refuse(call, 500, "the project's own authorization has failed");
        return 1;
    }
    if (!filter || hd_json_is_null(filter) || hd_json_size(filter) == 0 || kept->doc)
        return 0;
    err = hd_call_text(call, filter, &text);
    return err ? err : hd_json_parse(kept, text, &call->fault);
}

/* Positive: it was refused. */
static int take_answer(struct hd_call *call, hd_json_val answer, hd_json_val changed)
{
    struct hd_authorized *a = call->authorized;
    const struct event *event = event_of(call);
    int err;

    if (!hd_json_is_true(hd_json_get(answer, HD_S("allow")))) {
        (void)hd_call_refuse(call, 403, "Forbidden");
        return 1;
    }
    err = keep_filter(call, hd_json_get(answer, HD_S("filter")));
    if (!err && hd_json_is_object(changed) && event->members[0]) {
        err = change_body(call, changed);
        if (!is_search(event) && is_member(event, METADATA) && hd_json_get(changed, METADATA))
            a->is_stamped = true;
    }
    return err;
}

static int read_answer(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    struct hd_json answer = {NULL}, changed = {NULL};
    hd_json_val value;
    int err = hd_json_parse(&answer, a->answer, &call->fault);

    value = hd_json_get(hd_json_root(&answer), HD_S("value"));
    if (!err && a->changed.len > 0) {
        err = hd_json_parse(&changed, a->changed, &call->fault);
        value = hd_json_root(&changed);
    }
    if (!err)
        err = take_answer(call, hd_json_root(&answer), value);
    hd_json_fini(&changed);
    hd_json_fini(&answer);
    return err;
}

static int apply(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    int err = read_answer(call);

    /* The thread of the path again: it may be one that the caller does not see. */
    if (!err && hd_call_is_filtered(call, HD_OF_THREADS))
        err = hd_access_path(call);
    a->index++;
    if (!err)
        err = make_question(call);
    if (!err && !a->is_pending)
        err = change_list(call);
    a->is_pending = a->is_pending && !err;
    if (err)
        return err > 0 ? HD_CALL_ANSWERED : err;
    return a->is_pending ? HD_CALL_GOES_ON : a->steps->work(call);
}

static int prepare(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    int err = a->steps->prepare(call);

    if (err != HD_CALL_GOES_ON)
        return err;
    err = make_question(call);
    if (err)
        return err;
    return a->is_pending ? HD_CALL_GOES_ON : a->steps->work(call);
}

/* ---- asking (loop) ------------------------------------------------------ */

static bool is_header(struct hd_slice name, struct hd_slice value)
{
    static const char *const own[] = {"content-length",    "content-type", "content-encoding",
                                      "transfer-encoding", "connection",   "date",
                                      "x-request-id"};

    for (size_t i = 0; i < HD_COUNT(own); i++) {
        if (hd_slice_eq_nocase(name, hd_slice_cstr(own[i])))
            return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
            return false;
    }
    return name.len > 0 && hd_slice_is_token(name);
}

void hd_authorize_refuse(struct hd_call *call, const struct hd_gate_refusal *refusal)
{
    struct hd_json_iter it = hd_json_iter(refusal->headers);

    for (size_t i = 0; i < MAX_HEADERS && hd_json_next(&it); i++) {
        if (hd_json_is_string(it.val) && is_header(it.key, hd_json_string(it.val)))
            hd_call_header(call, it.key, hd_json_string(it.val));
    }
    if (refusal->status == 503 && !refusal->headers)
        hd_call_header_int(call, HD_S("Retry-After"), 5);
    hd_call_refuse(call, refusal->status, "%.*s", (int)refusal->detail.len, refusal->detail.ptr);
    hd_call_answer(call);
}

static void ask(struct hd_call *call);

static void go_on(struct hd_call *call, int err)
{
    struct hd_authorized *a = call->authorized;

    if (err == HD_CALL_GOES_ON && a->is_pending)
        ask(call);
    else
        a->steps->go_on(call, err);
}

/* The value is in the head, or in the blob that the head names. */
static int keep_answer(struct hd_call *call, const struct hd_rt_message *message)
{
    struct hd_authorized *a = call->authorized;
    int err = hd_arena_copy(call->arena, message->head, &a->answer);

    a->changed = hd_slice(NULL, 0);
    if (!err && message->blob_count > 0)
        err = hd_arena_copy(call->arena, message->blobs[0], &a->changed);
    return err;
}

static void on_answer(void *ctx, const struct hd_rt_message *answer,
                      const struct hd_gate_refusal *refusal)
{
    struct hd_call *call = ctx;
    int err;

    if (refusal) {
        hd_authorize_refuse(call, refusal);
        return;
    }
    err = keep_answer(call, answer);
    if (!err)
        err = hd_call_defer(call, apply, go_on);
    if (err)
        hd_call_fail(call, err);
}

static void ask(struct hd_call *call)
{
    struct hd_authorized *a = call->authorized;
    const struct event *event = event_of(call);
    const struct hd_gate_question question = {.who = call->who,
                                              .resource = event->resource,
                                              .action = event->action,
                                              .handler = a->handlers[a->which],
                                              .value = hd_buf_slice(&a->value)};
    int err = hd_gate_worker_authorize(hd_gate_worker(call->app->gate), &question, on_answer, call);

    if (err)
        hd_call_fail(call, err);
}

static int find_handler(struct hd_call *call, enum hd_on on, struct hd_slice *out)
{
    const struct event *event = &events[on];

    if (on <= HD_ON_NOTHING)
        return 0;
    return hd_arena_copy(
        call->arena,
        hd_gate_worker_handler(hd_gate_worker(call->app->gate), event->resource, event->action),
        out);
}

/* Which handlers there are is known. */
static void on_known(void *ctx, const struct hd_rt_message *answer,
                     const struct hd_gate_refusal *refusal)
{
    struct hd_call *call = ctx;
    struct hd_authorized *a = call->authorized;
    int err;

    (void)answer;
    if (refusal) {
        hd_authorize_refuse(call, refusal);
        return;
    }
    err = find_handler(call, call->route->on, &a->handlers[0]);
    if (!err)
        err = find_handler(call, call->route->also_on, &a->handlers[1]);
    if (!err && a->handlers[0].len == 0 && a->handlers[1].len == 0) {
        a->steps->otherwise(call);
        return;
    }
    if (!err)
        err = hd_call_defer(call, prepare, go_on);
    if (err)
        hd_call_fail(call, err);
}

void hd_authorize(struct hd_call *call, const struct hd_authorize_steps *steps)
{
    struct hd_gate_worker *worker =
        call->who && call->app->gate ? hd_gate_worker(call->app->gate) : NULL;
    int err;

    if (!worker || (call->route->on <= HD_ON_NOTHING && call->route->also_on <= HD_ON_NOTHING)) {
        steps->otherwise(call);
        return;
    }
    call->authorized = hd_arena_calloc(call->arena, 1, sizeof(*call->authorized));
    if (!call->authorized) {
        hd_call_fail(call, HD_ENOMEM);
        return;
    }
    call->authorized->steps = steps;
    hd_buf_init(&call->authorized->value, MAX_VALUE);
    err = hd_gate_worker_await(worker, on_known, call);
    if (err)
        hd_call_fail(call, err);
}

/* ---- for routes --------------------------------------------------------- */

static hd_json_val filter_of(const struct hd_call *call, enum hd_resource resource)
{
    return call->authorized ? hd_json_root(&call->authorized->filters[resource]) : NULL;
}

bool hd_call_is_filtered(const struct hd_call *call, enum hd_resource resource)
{
    return filter_of(call, resource) != NULL;
}

int hd_call_sees(struct hd_call *call, enum hd_resource resource, struct hd_slice metadata,
                 bool *out)
{
    hd_json_val filter = filter_of(call, resource);
    struct hd_json json = {NULL};
    int err = 0;

    *out = true;
    if (!filter)
        return 0;
    if (metadata.len > 0)
        err = hd_json_parse(&json, metadata, &call->fault);
    *out = !err && hd_grant_allows(filter, hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

/* {…value, namespace, key}. */
static int describe(struct hd_call *call, const struct hd_item_rec *item, struct hd_buf *out)
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
    hd_jw_key(&jw, HD_S("namespace"));
    hd_jw_array(&jw);
    put_labels(&jw, item->ns);
    hd_jw_array_end(&jw);
    hd_jw_key(&jw, HD_S("key"));
    hd_jw_string(&jw, item->key);
    hd_jw_object_end(&jw);
    hd_json_fini(&json);
    return hd_jw_finish(&jw);
}

int hd_call_sees_item(struct hd_call *call, const struct hd_item_rec *item, bool *out)
{
    struct hd_buf buf;
    int err;

    *out = true;
    if (!hd_call_is_filtered(call, HD_OF_STORE))
        return 0;
    hd_buf_init(&buf, MAX_VALUE);
    err = describe(call, item, &buf);
    if (!err)
        err = hd_call_sees(call, HD_OF_STORE, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

bool hd_call_is_stamped(const struct hd_call *call)
{
    return call->authorized && call->authorized->is_stamped;
}
