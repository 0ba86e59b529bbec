/* `sleep`: waits. */
#include "base/compiler.h"
#include "base/error.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "value/val.h"

struct sleep_spec {
    const struct hd_expr *ms;
    const struct hd_expr *update; /* NULL: none */
};

static int read_ms(struct hd_decl *decl, const struct hd_decl_at *at, const struct hd_field *field,
                   void *out)
{
    int64_t ignored;
    int err = 0;

    /* A number is checked here, the result of an expression when the node runs. */
    if (!hd_json_is_string(at->val) && !hd_json_is_object(at->val))
        err = hd_decl_read_int(decl, at, field, &ignored);
    return err == 0 ? hd_decl_expr_in(decl, at, 0, out) : err;
}

static const struct hd_field fields[] = {
    {"ms", read_ms, offsetof(struct sleep_spec, ms), true, 0, HD_GRAPH_MAX_WAIT_MS, 0},
    {"update", hd_decl_read_update, offsetof(struct sleep_spec, update), false, 0, 0, 0},
};

static int read_sleep_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct sleep_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    return hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
}

static void wake(struct hd_task *task)
{
    const struct sleep_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);

    hd_task_finish_exprs(task, &scope, spec->update, NULL, false);
}

static int start_sleep(struct hd_task *task)
{
    const struct sleep_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *val;
    double ms = 0;
    int err = hd_expr_eval(spec->ms, &scope, &val);

    if (err)
        return err;
    if (!hd_val_get_double(val, &ms) || !(ms >= 0))
        hd_task_fail(task, "ValueError", "cannot sleep for %s", hd_val_type_name(val));
    else if (ms > (double)HD_GRAPH_MAX_WAIT_MS)
        hd_task_fail(task, "ValueError", "cannot sleep for more than a day");
    else
        err = hd_task_wait(task, (int64_t)ms, wake);
    hd_val_unref(val);
    return err;
}

const struct hd_node_kind hd_node_sleep = {
    .name = "sleep",
    .read = read_sleep_node,
    .start = start_sleep,
};
