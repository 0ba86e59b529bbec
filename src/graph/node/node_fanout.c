/* `fanout`: one send for each element of a list. */
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/command.h"
#include "graph/engine/task.h"
#include "graph/engine/writes.h"
#include "graph/expr/expr.h"
#include "value/val.h"

static int read_fanout_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct hd_fanout *fanout = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*fanout));
    int err;

    if (!fanout)
        return HD_ENOMEM;
    node->spec = fanout;
    err = hd_decl_read_fanout(decl, at, &hd_node_common, fanout);
    return err == 0 ? hd_decl_add_exit(decl, fanout->to, true, HD_S("")) : err;
}

static int start_fanout(struct hd_task *task)
{
    const struct hd_fanout *fanout = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_writes sends = {NULL, 0, 0};
    struct hd_val *go = hd_val_list();
    int err = hd_fanout_writes(task->graph, fanout, &scope, &sends);

    for (size_t i = 0; i < sends.count; i++)
        go = hd_val_append(go, hd_val_ref(sends.list[i].val));
    hd_writes_fini(&sends);
    if (!err && !go)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(go);
    else
        hd_task_finish(task, NULL, go, false);
    return err;
}

const struct hd_node_kind hd_node_fanout = {
    .name = "fanout",
    .read = read_fanout_node,
    .start = start_fanout,
};
