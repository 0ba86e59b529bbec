/* `branch`: goes to the targets of the first route whose condition holds. */
#include "base/compiler.h"
#include "base/error.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "value/val.h"

struct branch_members {
    struct hd_decl_at routes;
};

static const struct hd_field fields[] = {
    {"routes", hd_decl_read_raw, offsetof(struct branch_members, routes), true, 0, 0, 0},
};

static int add_exits(struct hd_decl *decl, const struct hd_branch *branch)
{
    int err = 0;

    for (size_t i = 0; i < branch->route_count; i++) {
        const struct hd_route *route = &branch->routes[i];

        for (size_t j = 0; j < route->to_count && err == 0; j++)
            err = hd_decl_add_exit(decl, route->to[j].node, false, route->to[j].label);
    }
    return err;
}

static int read_branch_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct hd_branch *branch = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*branch));
    struct branch_members members = {0};
    int err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), &members);

    if (!branch)
        return HD_ENOMEM;
    node->spec = branch;
    if (err == 0)
        err = hd_decl_read_routes(decl, &members.routes, branch, &node->must_exit);
    return err == 0 ? add_exits(decl, branch) : err;
}

/* The names of the targets of the first route that holds. */
static int choose_targets(struct hd_task *task, struct hd_val **out)
{
    const struct hd_branch *branch = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    bool holds = false;
    int err = 0;

    *out = hd_val_list();
    for (size_t i = 0; i < branch->route_count && !holds && !err; i++) {
        const struct hd_route *route = &branch->routes[i];

        holds = true;
        if (route->when)
            err = hd_expr_holds(route->when, &scope, &holds);
        for (size_t j = 0; holds && !err && j < route->to_count; j++) {
            if (route->to[j].node != HD_GRAPH_END)
                *out =
                    hd_val_append(*out, hd_val_string(task->graph->nodes[route->to[j].node].name));
        }
    }
    if (!err && !*out)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(*out);
    return err;
}

static int start_branch(struct hd_task *task)
{
    struct hd_val *go;
    int err = choose_targets(task, &go);

    if (!err)
        hd_task_finish(task, NULL, go, false);
    return err;
}

const struct hd_node_kind hd_node_branch = {
    .name = "branch",
    .read = read_branch_node,
    .start = start_branch,
};
