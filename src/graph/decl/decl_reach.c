/* Checks that every node is reachable and that every run can end. */
#include "graph/decl/decl.h"

/* ---- reachability ----------------------------------------------------- */

struct reach {
    struct hd_draft *draft;
    bool *is_reached;
    size_t *queue;
    size_t count;
};

static void reach(struct reach *r, size_t node)
{
    if (node == HD_GRAPH_END || r->is_reached[node])
        return;
    r->is_reached[node] = true;
    r->queue[r->count++] = node;
}

/* A join fires when all its sources have run. */
static void reach_by_channel(struct reach *r, const struct hd_graph_channel *channel)
{
    for (size_t i = 0; i < channel->source_count; i++) {
        if (!r->is_reached[channel->sources[i]])
            return;
    }
    reach(r, channel->node);
}

static void reach_from(struct reach *r, const struct hd_node *node)
{
    for (size_t i = 0; i < node->write_count; i++)
        reach_by_channel(r, &r->draft->channels[node->writes[i]]);
    for (size_t i = 0; i < node->branch_count; i++) {
        const struct hd_branch *branch = &node->branches[i];

        for (size_t j = 0; j < branch->route_count; j++) {
            for (size_t k = 0; k < branch->routes[j].to_count; k++)
                reach(r, branch->routes[j].to[k].node);
        }
        if (branch->fanout)
            reach(r, branch->fanout->to);
    }
    for (size_t i = 0; i < node->exit_count; i++)
        reach(r, node->exits[i].node);
    for (size_t i = 1; i < r->draft->graph->node_count && node->goes_anywhere; i++)
        reach(r, i);
}

static void reach_all(struct reach *r)
{
    reach(r, HD_GRAPH_START);
    for (size_t next = 0; next < r->count; next++)
        reach_from(r, &r->draft->nodes[r->queue[next]]);
}

/* ---- ending ----------------------------------------------------------- */

static bool all_can_end(const struct hd_route *route, const bool *can_end)
{
    for (size_t i = 0; i < route->to_count; i++) {
        if (route->to[i].node != HD_GRAPH_END && !can_end[route->to[i].node])
            return false;
    }
    return true;
}

/* True if possibly no route is taken, a route ends the run, or the fanout's list may be empty. */
static bool branch_can_end(const struct hd_branch *branch, const bool *can_end)
{
    if (branch->fanout || branch->routes[branch->route_count - 1].when)
        return true;
    for (size_t i = 0; i < branch->route_count; i++) {
        if (all_can_end(&branch->routes[i], can_end))
            return true;
    }
    return false;
}

static bool node_can_end(const struct hd_draft *draft, const struct hd_node *node,
                         const bool *can_end)
{
    bool is_so = !node->must_exit;

    if (node->may_stop || node->stops_before || node->stops_after)
        return true;
    for (size_t i = 0; i < node->write_count; i++) {
        if (!can_end[draft->channels[node->writes[i]].node])
            return false;
    }
    for (size_t i = 0; i < node->branch_count; i++) {
        if (!branch_can_end(&node->branches[i], can_end))
            return false;
    }
    for (size_t i = 0; i < node->exit_count && !is_so; i++)
        is_so = node->exits[i].node == HD_GRAPH_END || can_end[node->exits[i].node];
    return is_so;
}

/* Repeats until nothing changes. Iterates backwards because most edges lead forwards. */
static void find_endings(const struct hd_draft *draft, bool *can_end)
{
    bool has_changed = true;

    while (has_changed) {
        has_changed = false;
        for (size_t i = draft->graph->node_count; i-- > 0;) {
            if (!can_end[i] && node_can_end(draft, &draft->nodes[i], can_end)) {
                can_end[i] = true;
                has_changed = true;
            }
        }
    }
}

/* ---- both checks ------------------------------------------------------ */

static int fail_node(struct hd_decl *decl, const struct hd_draft *draft, size_t index,
                     const char *what)
{
    struct hd_decl_at top = {.key = hd_slice_cstr(draft->path)};
    struct hd_decl_at nodes = hd_decl_at_key(&top, HD_S("nodes"), NULL);
    struct hd_decl_at node = hd_decl_at_key(&nodes, draft->nodes[index].name, NULL);

    return hd_decl_fail(decl, &node, "%s", what);
}

static int check_draft(struct hd_decl *decl, struct hd_draft *draft)
{
    size_t count = draft->graph->node_count;
    struct reach r = {.draft = draft};
    bool *can_end = hd_arena_calloc(&decl->hold->arena, count, sizeof(*can_end));

    r.is_reached = hd_arena_calloc(&decl->hold->arena, count, sizeof(*r.is_reached));
    r.queue = hd_arena_calloc(&decl->hold->arena, count, sizeof(*r.queue));
    if (!can_end || !r.is_reached || !r.queue)
        return HD_ENOMEM;
    reach_all(&r);
    find_endings(draft, can_end);
    for (size_t i = 1; i < count; i++) {
        if (!r.is_reached[i])
            return fail_node(decl, draft, i, "cannot be reached from \"__start__\"");
    }
    for (size_t i = 1; i < count && !draft->has_limit; i++) {
        if (!can_end[i])
            return fail_node(decl, draft, i,
                             "a run that reaches this node never ends; add a path to "
                             "\"__end__\", or a \"recursion_limit\"");
    }
    return 0;
}

int hd_decl_check_reach(struct hd_decl *decl)
{
    int err = 0;

    for (struct hd_draft *draft = decl->drafts; draft && err == 0; draft = draft->next)
        err = check_draft(decl, draft);
    return err;
}
