/*
 * Derives the structure of an unknown graph from one of its checkpoints: the channel names contain
 * the nodes and their triggers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/vec.h"
#include "graph/decl/graph.h"
#include "graph/state/worker_graph_internal.h"

#define BRANCH "branch:to:"
#define JOIN "join:"

struct guess {
    const struct heddle_tuple *tuple;
    hd_json_val versions, seen;
    bool is_functional; /* an entrypoint: the input starts its only node */
    HD_VEC(struct hd_slice) nodes;
    struct hd_jw jw;
};

/* ---- names ------------------------------------------------------------ */

static bool is_hidden(struct hd_slice name)
{
    if (hd_slice_starts(name, HD_S(BRANCH)) || hd_slice_starts(name, HD_S(JOIN)))
        return true;
    return hd_slice_starts(name, HD_S("__")) && !hd_slice_eq(name, HD_S("__root__"));
}

static struct hd_slice after(struct hd_slice name, const char *prefix)
{
    size_t len = strlen(prefix);

    return hd_slice(name.ptr + len, name.len - len);
}

/* Splits `join:a+b:c`: returns "a+b", and c in *target. */
static struct hd_slice split_join(struct hd_slice name, struct hd_slice *target)
{
    struct hd_slice rest = after(name, JOIN);
    size_t at = rest.len;

    while (at > 0 && rest.ptr[at - 1] != ':')
        at--;
    *target = hd_slice(rest.ptr + at, rest.len - at);
    return hd_slice(rest.ptr, at > 0 ? at - 1 : 0);
}

static int add_node(struct guess *g, struct hd_slice name)
{
    if (name.len == 0 || g->nodes.count >= HD_GRAPH_MAX_NODES ||
        hd_slice_eq(name, HD_S("__start__")) || hd_slice_eq(name, HD_S("__input__")) ||
        hd_slice_eq(name, HD_S("__interrupt__")))
        return 0;
    for (size_t i = 0; i < g->nodes.count; i++) {
        if (hd_slice_eq(g->nodes.items[i], name))
            return 0;
    }
    return hd_vec_push(&g->nodes, name);
}

static int add_joined(struct guess *g, struct hd_slice channel)
{
    struct hd_slice target, names = split_join(channel, &target);
    int err = add_node(g, target);

    while (!err && names.len > 0) {
        const char *plus = memchr(names.ptr, '+', names.len);
        size_t len = plus ? (size_t)(plus - names.ptr) : names.len;

        err = add_node(g, hd_slice(names.ptr, len));
        len += plus != NULL;
        names = hd_slice(names.ptr + len, names.len - len);
    }
    return err;
}

static int find_nodes(struct guess *g, hd_json_val sends)
{
    struct hd_json_iter it = hd_json_iter(g->versions);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        if (hd_slice_starts(it.key, HD_S(BRANCH)))
            err = add_node(g, after(it.key, BRANCH));
        else if (hd_slice_starts(it.key, HD_S(JOIN)))
            err = add_joined(g, it.key);
        g->is_functional |=
            hd_slice_eq(it.key, HD_S("__end__")) || hd_slice_eq(it.key, HD_S("__previous__"));
    }
    it = hd_json_iter(g->seen);
    while (!err && hd_json_next(&it))
        err = add_node(g, it.key);
    it = hd_json_iter(sends);
    while (!err && hd_json_next(&it))
        err = add_node(g, hd_json_string(hd_json_get(it.val, HD_S("node"))));
    return err;
}

/* Versions are unordered: sort the nodes, so that a state is always shown in the same way. */
static int by_name(const void *a, const void *b)
{
    return hd_slice_cmp(*(const struct hd_slice *)a, *(const struct hd_slice *)b);
}

/* ---- stored values ---------------------------------------------------- */

static struct hd_slice stored_text(const struct heddle_tuple *tuple, struct hd_slice name)
{
    for (size_t i = 0; i < tuple->value_count; i++) {
        const struct heddle_value *value = &tuple->values[i];

        if (hd_slice_eq(hd_slice(value->channel.data, value->channel.len), name) &&
            hd_slice_eq(hd_slice(value->type.data, value->type.len), HD_S("hd1")))
            return hd_slice(value->data.data, value->data.len);
    }
    return hd_slice("", 0);
}

/* Channels of a deferred node are stored as [value, is_finished]. */
static bool is_pair(const struct guess *g, struct hd_slice name)
{
    struct hd_slice text = stored_text(g->tuple, name);
    struct hd_json json;
    hd_json_val last = NULL;
    struct hd_json_iter it;
    bool is_it;

    if (text.len == 0 || text.ptr[0] != '[' || hd_json_parse(&json, text, NULL))
        return false;
    it = hd_json_iter(hd_json_root(&json));
    while (hd_json_next(&it))
        last = it.val;
    is_it = hd_json_size(hd_json_root(&json)) == 2 && hd_json_is_bool(last);
    hd_json_fini(&json);
    return is_it;
}

static const char *class_of(const struct guess *g, struct hd_slice name)
{
    if (hd_slice_starts(name, HD_S(BRANCH)))
        return is_pair(g, name) ? "LastValueAfterFinish" : "EphemeralValue";
    if (hd_slice_starts(name, HD_S(JOIN)))
        return is_pair(g, name) ? "NamedBarrierValueAfterFinish" : "NamedBarrierValue";
    if (hd_slice_eq(name, HD_S("__start__")))
        return "EphemeralValue";
    return hd_slice_eq(name, HD_S("__pregel_tasks")) ? "Topic" : "";
}

/* ---- writing the structure -------------------------------------------- */

static void put_class(struct guess *g, struct hd_slice name)
{
    hd_jw_key(&g->jw, name);
    hd_jw_string(&g->jw, hd_slice_cstr(class_of(g, name)));
}

static void put_branch(struct guess *g, struct hd_slice node, bool is_key)
{
    struct hd_buf name;

    hd_buf_init(&name, (size_t)1 << 20);
    if (hd_buf_append_slice(&name, HD_S(BRANCH)) || hd_buf_append_slice(&name, node))
        g->jw.err = g->jw.err ? g->jw.err : HD_ENOMEM;
    else if (!is_key)
        hd_jw_string(&g->jw, hd_buf_slice(&name));
    else if (!hd_json_get(g->versions, hd_buf_slice(&name)))
        put_class(g, hd_buf_slice(&name));
    hd_buf_fini(&name);
}

static void put_channels(struct guess *g)
{
    struct hd_json_iter it = hd_json_iter(g->versions);

    hd_jw_put_object(&g->jw, "channels");
    while (hd_json_next(&it))
        put_class(g, it.key);
    for (size_t i = 0; i < g->nodes.count && !g->is_functional; i++)
        put_branch(g, g->nodes.items[i], true);
    hd_jw_object_end(&g->jw);
}

static void put_shown(struct guess *g)
{
    struct hd_json_iter it = hd_json_iter(g->versions);
    const char *const single[] = {"__root__", "__end__"};

    hd_jw_key(&g->jw, HD_S("stream_channels"));
    for (size_t i = 0; i < HD_COUNT(single); i++) {
        if (hd_json_get(g->versions, hd_slice_cstr(single[i]))) {
            hd_jw_string(&g->jw, hd_slice_cstr(single[i]));
            return;
        }
    }
    hd_jw_array(&g->jw);
    while (hd_json_next(&it)) {
        if (!is_hidden(it.key))
            hd_jw_string(&g->jw, it.key);
    }
    hd_jw_array_end(&g->jw);
}

/* The node's branch channel and its joins, or `__start__` if the input starts the node. */
static void put_triggers(struct guess *g, struct hd_slice node)
{
    struct hd_json_iter it = hd_json_iter(g->versions);
    struct hd_slice target;

    hd_jw_put_array(&g->jw, "triggers");
    if (g->is_functional || hd_slice_eq(node, HD_S("__start__"))) {
        if (hd_json_get(g->versions, HD_S("__start__")))
            hd_jw_string(&g->jw, HD_S("__start__"));
    } else {
        put_branch(g, node, false);
        while (hd_json_next(&it)) {
            if (!hd_slice_starts(it.key, HD_S(JOIN)))
                continue;
            (void)split_join(it.key, &target);
            if (hd_slice_eq(target, node))
                hd_jw_string(&g->jw, it.key);
        }
    }
    hd_jw_array_end(&g->jw);
}

static void put_guessed_node(struct guess *g, struct hd_slice node)
{
    hd_jw_key(&g->jw, node);
    hd_jw_object(&g->jw);
    put_triggers(g, node);
    hd_jw_object_end(&g->jw);
}

static int write(struct guess *g, struct hd_buf *out)
{
    hd_jw_init(&g->jw, out);
    hd_jw_object(&g->jw);
    put_channels(g);
    put_shown(g);
    hd_jw_put_object(&g->jw, "nodes");
    if (!g->is_functional)
        put_guessed_node(g, HD_S("__start__"));
    for (size_t i = 0; i < g->nodes.count; i++)
        put_guessed_node(g, g->nodes.items[i]);
    hd_jw_object_end(&g->jw);
    hd_jw_object_end(&g->jw);
    return hd_jw_finish(&g->jw);
}

int hd_worker_graph_guess(const struct heddle_tuple *tuple, struct hd_buf *out,
                          struct heddle_error *fault)
{
    struct hd_slice sends_text = stored_text(tuple, HD_S("__pregel_tasks"));
    struct hd_json head = {NULL}, sends = {NULL};
    struct guess g = {.tuple = tuple};
    int err = hd_json_parse(&head, hd_slice(tuple->checkpoint.data, tuple->checkpoint.len), fault);

    if (!err && sends_text.len > 0)
        err = hd_json_parse(&sends, sends_text, fault);
    g.versions = hd_json_get(hd_json_root(&head), HD_S("channel_versions"));
    g.seen = hd_json_get(hd_json_root(&head), HD_S("versions_seen"));
    if (!err)
        err = find_nodes(&g, hd_json_root(&sends));
    if (!err && g.nodes.count > 1)
        qsort(g.nodes.items, g.nodes.count, sizeof(*g.nodes.items), by_name);
    if (!err)
        err = write(&g, out);
    hd_vec_fini(&g.nodes);
    hd_json_fini(&sends);
    hd_json_fini(&head);
    return err;
}
