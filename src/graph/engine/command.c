/* Converts commands and the results of nodes to writes. */
#include "graph/engine/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/failure.h"
#include "graph/engine/writes.h"
#include "graph/expr/expr.h"
#include "value/val.h"

static int branch_channel(const struct hd_graph *graph, struct hd_slice node, struct hd_writes *out,
                          struct hd_val *val)
{
    struct hd_buf name;
    int err;

    hd_buf_init(&name, (size_t)1 << 16);
    err = hd_buf_printf(&name, "branch:to:%.*s", (int)node.len, node.ptr);
    if (err)
        hd_val_unref(val);
    else
        err = hd_writes_add_name(out, graph, hd_buf_slice(&name), val);
    hd_buf_fini(&name);
    return err;
}

/* One target: a send, or a node name. `mark` is written to the branch channel of the node. */
static int go_to(const struct hd_graph *graph, const struct hd_val *target, struct hd_val *mark,
                 bool end_is_nowhere, struct hd_writes *out, struct hd_failure *failure)
{
    if (hd_val_kind(target) == HD_KIND_SEND)
        return hd_writes_add(out, (int)graph->tasks_channel, hd_val_ref(target));
    if (hd_val_is_string(target)) {
        struct hd_slice name = hd_val_get_string(target);

        if (end_is_nowhere && hd_slice_eq(name, HD_S("__end__")))
            return 0;
        return branch_channel(graph, name, out, hd_val_ref(mark));
    }
    hd_failure_set(failure, "TypeError", "In Command.goto, expected Send/str, got %s",
                   hd_val_python_type(target));
    return HD_EINVAL;
}

static int go_everywhere(const struct hd_graph *graph, const struct hd_val *go, struct hd_val *mark,
                         bool end_is_nowhere, struct hd_writes *out, struct hd_failure *failure)
{
    int err = 0;

    if (hd_val_is_null(go))
        return 0;
    if (!hd_val_is_list(go))
        return go_to(graph, go, mark, end_is_nowhere, out, failure);
    for (size_t i = 0; i < hd_val_count(go) && !err; i++)
        err = go_to(graph, hd_val_at(go, i), mark, end_is_nowhere, out, failure);
    return err;
}

/* `update` is an object, or a list of pairs. */
static int add_update(const struct hd_graph *graph, const struct hd_val *update,
                      struct hd_writes *out)
{
    bool is_list = hd_val_is_list(update);
    int err = 0;

    for (size_t i = 0; i < hd_val_count(update) && !err; i++) {
        struct hd_val *pair = is_list ? hd_val_at(update, i) : NULL;
        struct hd_val *key = is_list ? hd_val_at(pair, 0) : NULL;
        struct hd_val *val = is_list ? hd_val_at(pair, 1) : hd_val_member(update, i, &key);

        err = hd_writes_add_name(out, graph, hd_val_get_string(key),
                                 val ? hd_val_ref(val) : hd_val_null());
    }
    return err;
}

int hd_command_writes(const struct hd_graph *graph, const struct hd_val *command,
                      struct hd_writes *out, struct hd_failure *failure)
{
    const struct hd_val *resume = hd_val_get(command, HD_S("resume"));
    struct hd_val *start = hd_val_cstr("__start__");
    int err = start ? 0 : HD_ENOMEM;

    if (hd_slice_eq(hd_val_get_string(hd_val_get(command, HD_S("graph"))), HD_S("__parent__"))) {
        hd_failure_set(failure, "InvalidUpdateError", "There is no parent graph");
        err = HD_EINVAL;
    }
    if (!err)
        err = go_everywhere(graph, hd_val_get(command, HD_S("goto")), start, false, out, failure);
    if (!err && !hd_val_is_null(resume))
        err = hd_writes_add(out, HD_W_RESUME, hd_val_ref(resume));
    if (!err)
        err = add_update(graph, hd_val_get(command, HD_S("update")), out);
    hd_val_unref(start);
    return err;
}

/* ---- the end of a node ------------------------------------------------ */

static bool is_input(const struct hd_graph *graph, size_t channel)
{
    for (size_t i = 0; graph->input && i < graph->input_count; i++) {
        if (graph->input[i] == channel)
            return true;
    }
    return !graph->input;
}

/* Takes `val`. Adds an id to a message without an id. */
static struct hd_val *with_id(struct hd_val *val)
{
    char id[HD_UUID_SIZE];

    if (hd_val_kind(val) != HD_KIND_MESSAGE || hd_val_get(val, HD_S("id")))
        return val;
    hd_uuid_v4(id);
    return hd_val_with(val, HD_S("id"), hd_val_cstr(id));
}

/* Assigns message ids here, so that events, writes and state have the same ids. */
static int add_state(const struct hd_graph *graph, size_t channel, const struct hd_val *val,
                     struct hd_writes *out)
{
    struct hd_val *made = with_id(hd_val_ref(val));

    if (graph->channels[channel].reducer != HD_REDUCE_MESSAGES || !hd_val_is_list(val))
        return hd_writes_add(out, (int)channel, made);
    for (size_t i = 0; i < hd_val_count(val) && made; i++) {
        struct hd_val *item = hd_val_at(val, i);

        if (hd_val_kind(item) == HD_KIND_MESSAGE && !hd_val_get(item, HD_S("id")))
            made = hd_val_replace(made, i, with_id(hd_val_ref(item)));
    }
    return hd_writes_add(out, (int)channel, made);
}

/* Ignores members that are not channels of the state, as LangGraph does. */
static int add_updates(const struct hd_graph *graph, const struct hd_node *node,
                       const struct hd_val *update, struct hd_writes *out,
                       struct hd_failure *failure)
{
    int err = 0;

    if (hd_val_is_null(update))
        return 0;
    if (!hd_val_is_object(update)) {
        struct hd_buf text;

        hd_buf_init(&text, (size_t)1 << 20);
        if (hd_val_write_text(&text, update) == 0)
            hd_failure_set(failure, "InvalidUpdateError",
                           "Expected dict, got %.*s\nFor troubleshooting, visit: "
                           "https://docs.langchain.com/oss/python/langgraph/errors/"
                           "INVALID_GRAPH_NODE_RETURN_VALUE",
                           (int)(text.len < 1000 ? text.len : 1000), text.ptr);
        hd_failure_set(failure, "InvalidUpdateError", "Expected dict");
        hd_buf_fini(&text);
        return HD_EINVAL;
    }
    for (size_t i = 0; i < hd_val_count(update) && !err; i++) {
        struct hd_val *key, *val = hd_val_member(update, i, &key);
        size_t channel = hd_graph_find_channel(graph, hd_val_get_string(key));

        if (channel == HD_GRAPH_END || channel >= graph->state_count ||
            (node->index == HD_GRAPH_START && !is_input(graph, channel)))
            continue;
        err = add_state(graph, channel, val, out);
    }
    return err;
}

static int add_edges(const struct hd_graph *graph, const struct hd_node *node,
                     struct hd_writes *out)
{
    int err = 0;

    for (size_t i = 0; i < node->write_count && !err; i++) {
        enum hd_graph_reducer reducer = graph->channels[node->writes[i]].reducer;
        bool is_join = reducer == HD_REDUCE_BARRIER || reducer == HD_REDUCE_BARRIER_AFTER;

        err = hd_writes_add(out, (int)node->writes[i],
                            is_join ? hd_val_string(node->name) : hd_val_null());
    }
    return err;
}

static int add_route(const struct hd_graph *graph, const struct hd_route *route,
                     struct hd_writes *out)
{
    int err = 0;

    for (size_t i = 0; i < route->to_count && !err; i++) {
        if (route->to[i].node != HD_GRAPH_END)
            err = branch_channel(graph, graph->nodes[route->to[i].node].name, out, hd_val_null());
    }
    return err;
}

int hd_fanout_writes(const struct hd_graph *graph, const struct hd_fanout *fanout,
                     const struct hd_scope *scope, struct hd_writes *out)
{
    struct hd_scope inner = *scope;
    struct hd_val *list;
    int err = hd_expr_eval(fanout->over, scope, &list);

    if (err)
        return err;
    for (size_t i = 0; i < hd_val_count(list) && !err; i++) {
        struct hd_val *arg = hd_val_ref(hd_val_at(list, i));

        if (fanout->arg) {
            inner.places[HD_PLACE_ITEM] = hd_val_at(list, i);
            hd_val_unref(arg);
            err = hd_expr_eval(fanout->arg, &inner, &arg);
        }
        if (!err)
            err = hd_writes_add(out, (int)graph->tasks_channel,
                                hd_val_send(graph->nodes[fanout->to].name, arg));
    }
    hd_val_unref(list);
    return err;
}

static int add_branch(const struct hd_graph *graph, const struct hd_branch *branch,
                      const struct hd_scope *scope, struct hd_writes *out)
{
    if (branch->fanout)
        return hd_fanout_writes(graph, branch->fanout, scope, out);
    for (size_t i = 0; i < branch->route_count; i++) {
        bool holds = true;
        int err = 0;

        if (branch->routes[i].when)
            err = hd_expr_holds(branch->routes[i].when, scope, &holds);
        if (err || holds)
            return err ? err : add_route(graph, &branch->routes[i], out);
    }
    return 0;
}

/* *out is the value of a channel after only these writes; the caller owns it; NULL: empty. */
static int peek(const struct hd_checkpoint_state *live, size_t channel,
                const struct hd_writes *writes, struct hd_val **vals, struct hd_val **out,
                struct hd_failure *failure)
{
    struct hd_refusal refusal = {0};
    size_t count = 0;
    int err;

    for (size_t i = 0; i < writes->count; i++) {
        if (writes->list[i].channel == (int)channel)
            vals[count++] = writes->list[i].val;
    }
    err = hd_channel_peek(&live->channels[channel], vals, count, out, &refusal);
    if (err)
        hd_failure_refusal(failure, err, &refusal);
    return err;
}

/* Routes see the state with the node's writes applied. */
static int add_branches(const struct hd_graph *graph, const struct hd_node *node,
                        const struct hd_checkpoint_state *live, const struct hd_scope *scope,
                        struct hd_writes *out, struct hd_failure *failure)
{
    struct hd_scope fresh = {.channel_count = graph->state_count};
    struct hd_val **channels, **vals;
    int err = 0;

    if (node->branch_count == 0)
        return 0;
    channels = hd_calloc(graph->state_count, sizeof(struct hd_val *));
    vals = hd_calloc(out->count + 1, sizeof(struct hd_val *));
    if (!channels || !vals)
        err = HD_ENOMEM;
    for (size_t i = 0; i < graph->state_count && !err; i++)
        err = peek(live, i, out, vals, &channels[i], failure);
    fresh.channels = channels;
    fresh.places[HD_PLACE_CONFIG] = scope->places[HD_PLACE_CONFIG];
    fresh.places[HD_PLACE_CONTEXT] = scope->places[HD_PLACE_CONTEXT];
    for (size_t i = 0; i < node->branch_count && !err; i++)
        err = add_branch(graph, &node->branches[i], &fresh, out);
    for (size_t i = 0; channels && i < graph->state_count; i++)
        hd_val_unref(channels[i]);
    hd_free(channels);
    hd_free(vals);
    return err;
}

int hd_command_node_writes(const struct hd_graph *graph, const struct hd_node *node,
                           const struct hd_checkpoint_state *live, const struct hd_scope *scope,
                           const struct hd_val *update, const struct hd_val *go,
                           struct hd_writes *out, struct hd_failure *failure)
{
    int err = add_updates(graph, node, update, out, failure);

    if (!err)
        err = go_everywhere(graph, go, hd_val_null(), true, out, failure);
    if (!err)
        err = add_edges(graph, node, out);
    if (!err)
        err = add_branches(graph, node, live, scope, out, failure);
    if (err)
        hd_failure_code(failure, err, NULL);
    return err;
}
