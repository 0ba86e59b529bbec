/*
 * Checks that need all graphs of a declaration: nesting of subgraphs, channels that a subgraph
 * shares with its node, and names that a send must define.
 */
#include <string.h>

#include "graph/decl/decl.h"
#include "graph/decl/nodes.h"
#include "graph/decl/subgraph.h"

struct hd_draft *hd_decl_find_graph(struct hd_draft *draft, struct hd_slice name)
{
    for (; draft; draft = draft->outer) {
        struct hd_draft *found = hd_map_get(&draft->graph_map, name);

        if (found)
            return found;
    }
    return NULL;
}

static struct hd_draft *draft_of(struct hd_decl *decl, const struct hd_graph *graph)
{
    struct hd_draft *draft = decl->drafts;

    while (draft->graph != graph)
        draft = draft->next;
    return draft;
}

/* Fills the frames of a node's path; `at[2]` is the node. */
static void node_at(const struct hd_draft *draft, const struct hd_node *node,
                    struct hd_decl_at at[3])
{
    at[0] = (struct hd_decl_at){.key = hd_slice_cstr(draft->path)};
    at[1] = hd_decl_at_key(&at[0], HD_S("nodes"), NULL);
    at[2] = hd_decl_at_key(&at[1], node->name, NULL);
}

/* ---- nesting of subgraphs --------------------------------------------- */

static int measure(struct hd_decl *decl, struct hd_draft *draft);

static int measure_node(struct hd_decl *decl, struct hd_draft *draft, const struct hd_node *node)
{
    struct hd_draft *inner = draft_of(decl, node->graph);
    struct hd_decl_at at[3], graph_at;
    int err;

    node_at(draft, node, at);
    graph_at = hd_decl_at_key(&at[2], HD_S("graph"), NULL);
    if (inner->height < 0)
        return hd_decl_fail(decl, &graph_at, "graph \"%.*s\" would run itself",
                            HD_SHOW(inner->graph->name));
    err = measure(decl, inner);
    if (err == 0 && inner->height >= HD_GRAPH_MAX_LEVELS)
        err = hd_decl_fail(decl, &graph_at, "graphs are nested at most %d levels deep",
                           HD_GRAPH_MAX_LEVELS);
    return err;
}

/* There are at most as many drafts as nodes, so the recursion is bounded. */
static int measure(struct hd_decl *decl, struct hd_draft *draft)
{
    int height = 1;
    int err = 0;

    if (draft->height > 0)
        return 0;
    draft->height = -1;
    for (size_t i = 1; i < draft->graph->node_count && err == 0; i++) {
        const struct hd_node *node = &draft->nodes[i];

        if (!node->graph)
            continue;
        err = measure_node(decl, draft, node);
        if (err == 0 && draft_of(decl, node->graph)->height >= height)
            height = draft_of(decl, node->graph)->height + 1;
    }
    draft->height = height;
    return err;
}

static int check_used(struct hd_decl *decl)
{
    for (struct hd_draft *draft = decl->drafts; draft; draft = draft->next) {
        if (draft->outer && !draft->is_used)
            return hd_decl_fail_path(decl, HD_EINVAL, draft->path, "no node runs this graph");
    }
    return 0;
}

/* ---- channels shared with a subgraph ---------------------------------- */

static size_t count_shared(const struct hd_draft *draft, const struct hd_draft *inner)
{
    size_t count = 0;

    for (size_t i = 0; i < inner->graph->state_count; i++)
        count += hd_map_get(&draft->channel_map, inner->channels[i].name) != NULL;
    return count;
}

static int check_input(struct hd_decl *decl, const struct hd_draft *draft, struct hd_draft *inner,
                       const struct hd_node *node)
{
    const struct hd_subgraph_spec *spec = node->spec;
    struct hd_slice key = {0};
    struct hd_decl_at at[3], input_at;
    int err = 0;

    node_at(draft, node, at);
    input_at = hd_decl_at_key(&at[2], HD_S("input"), NULL);
    if (!spec->input && count_shared(draft, inner) == 0)
        return hd_decl_fail(decl, &at[2],
                            "graph \"%.*s\" shares no channel with this graph; set \"input\"",
                            HD_SHOW(inner->graph->name));
    decl->draft = inner;
    for (size_t i = 0; spec->input && err == 0 && hd_expr_member(spec->input, i, &key); i++) {
        struct hd_decl_at member = hd_decl_at_key(&input_at, key, NULL);
        size_t ignored;

        err = hd_decl_find_channel(decl, &member, key, &ignored);
    }
    return err;
}

/* Resolves commands for the parent graph, which is known here for this use of the subgraph. */
static int check_outward(struct hd_decl *decl, struct hd_draft *draft, struct hd_draft *inner,
                         struct hd_node *node)
{
    int err = 0;

    decl->draft = draft;
    decl->node = node;
    for (struct hd_outward *out = inner->outward; out && err == 0; out = out->next) {
        struct hd_decl_at at = {.key = hd_slice_cstr(out->path)};
        size_t index = 0;

        if (out->is_channel)
            err = hd_decl_find_channel(decl, &at, out->name, &index);
        else
            err = hd_decl_find_node(decl, &at, out->name, !out->is_send, &index);
        if (err == 0 && !out->is_channel)
            err = hd_decl_add_exit(decl, index, out->is_send, HD_S(""));
    }
    if (inner->goes_outward)
        node->goes_anywhere = true;
    if (inner->sends_anywhere && inner->goes_outward)
        draft->sends_anywhere = true;
    decl->node = NULL;
    return err;
}

static int check_subgraphs(struct hd_decl *decl, struct hd_draft *draft)
{
    int err = 0;

    for (size_t i = 1; i < draft->graph->node_count && err == 0; i++) {
        struct hd_node *node = &draft->nodes[i];
        struct hd_draft *inner;

        if (!node->graph)
            continue;
        inner = draft_of(decl, node->graph);
        err = check_input(decl, draft, inner, node);
        if (err == 0)
            err = check_outward(decl, draft, inner, node);
    }
    return err;
}

/* ---- names that a send must define ------------------------------------ */

static int check_pending(struct hd_decl *decl, const struct hd_draft *draft)
{
    for (const struct hd_pending *p = draft->pending; p; p = p->next) {
        struct hd_near near;

        if (draft->sends_anywhere || draft->nodes[p->node].is_sent_to)
            continue;
        hd_near_init(&near, p->name);
        for (size_t i = 0; i < draft->graph->state_count; i++)
            hd_near_try(&near, draft->channels[i].name);
        return hd_decl_fail_path(decl, HD_EINVAL, p->path,
                                 "\"%.*s\" is neither a channel nor another known name%s",
                                 HD_SHOW(p->name), hd_near_text(&near));
    }
    return 0;
}

int hd_decl_check(struct hd_decl *decl)
{
    int err = check_used(decl);

    for (struct hd_draft *draft = decl->drafts; draft && err == 0; draft = draft->next)
        err = measure(decl, draft);
    for (struct hd_draft *draft = decl->drafts; draft && err == 0; draft = draft->next)
        err = check_subgraphs(decl, draft);
    for (struct hd_draft *draft = decl->drafts; draft && err == 0; draft = draft->next)
        err = check_pending(decl, draft);
    return err == 0 ? hd_decl_check_reach(decl) : err;
}
