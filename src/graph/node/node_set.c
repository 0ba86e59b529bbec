/* `set`: returns an update and the next nodes, both optional. */
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"

struct set_spec {
    const struct hd_expr *update; /* NULL: none */
    const struct hd_expr *go_to;  /* NULL: none */
};

struct set_members {
    struct hd_decl_at update, go_to, graph;
};

static const struct hd_field fields[] = {
    {"update", hd_decl_read_raw, offsetof(struct set_members, update), false, 0, 0, 0},
    {"goto", hd_decl_read_raw, offsetof(struct set_members, go_to), false, 0, 0, 0},
    {"graph", hd_decl_read_raw, offsetof(struct set_members, graph), false, 0, 0, 0},
};

static int read_parent(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    if (!hd_raw(at))
        return 0;
    if (!hd_slice_eq(hd_json_string(at->val), HD_S("parent")))
        return hd_decl_fail(decl, at, "can only be \"parent\"");
    if (!decl->draft->outer)
        return hd_decl_fail(decl, at, "the outermost graph has no parent");
    node->goes_to_parent = true;
    return 0;
}

static int read_update(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_node *node, struct set_spec *spec)
{
    static const struct hd_field field = {.name = "update"};

    if (!hd_raw(at))
        return 0;
    if (node->goes_to_parent)
        return hd_decl_read_outward(decl, at, &spec->update);
    return hd_decl_read_update(decl, at, &field, &spec->update);
}

static int read_set_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct set_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    struct set_members members = {0};
    int err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), &members);

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    if (err == 0)
        err = read_parent(decl, &members.graph, node);
    if (err == 0)
        err = read_update(decl, &members.update, node, spec);
    if (err == 0 && hd_raw(&members.go_to))
        err = hd_decl_read_goto(decl, &members.go_to, 0, &spec->go_to);
    return err;
}

static int start_set(struct hd_task *task)
{
    const struct set_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);

    hd_task_finish_exprs(task, &scope, spec->update, spec->go_to, task->node->goes_to_parent);
    return 0;
}

const struct hd_node_kind hd_node_set = {
    .name = "set",
    .read = read_set_node,
    .start = start_set,
};
