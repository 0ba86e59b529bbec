/* `fail`: fails, always or the first few times. */
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "value/val.h"

#define MAX_TIMES 1000000

struct fail_spec {
    const struct hd_expr *error;
    struct hd_slice type;
    int64_t times;         /* 0: always */
    _Atomic int64_t *used; /* failures so far, in this process */
    int64_t delay_ms;
};

static const struct hd_field fields[] = {
    {"error", hd_decl_read_expr, offsetof(struct fail_spec, error), true, 0, 0, 0},
    {"type", hd_decl_read_string, offsetof(struct fail_spec, type), false, 0, HD_GRAPH_MAX_NAME, 0},
    {"times", hd_decl_read_int, offsetof(struct fail_spec, times), false, 1, MAX_TIMES, 0},
    {"delay_ms", hd_decl_read_int, offsetof(struct fail_spec, delay_ms), false, 0,
     HD_GRAPH_MAX_WAIT_MS, 0},
};

static int read_fail_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct fail_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));

    if (!spec)
        return HD_ENOMEM;
    spec->used = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec->used));
    if (!spec->used)
        return HD_ENOMEM;
    spec->type = HD_S("RuntimeError");
    node->spec = spec;
    node->may_stop = true;
    return hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
}

static int write_error(struct hd_task *task, struct hd_buf *out)
{
    const struct fail_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *val;
    int err = hd_expr_eval(spec->error, &scope, &val);

    if (err)
        return err;
    err = hd_val_write_text(out, val);
    hd_val_unref(val);
    return err;
}

static void fail_attempt(struct hd_task *task)
{
    const struct fail_spec *spec = task->node->spec;
    struct hd_buf text;
    int err;

    if (spec->times > 0 && *spec->used >= spec->times) {
        hd_task_finish(task, NULL, NULL, false);
        return;
    }
    *spec->used += 1;
    hd_buf_init(&text, HD_EXPR_MAX_BYTES);
    err = write_error(task, &text);
    if (err)
        hd_task_fail_code(task, err, NULL);
    else
        hd_task_fail_text(task, spec->type, hd_buf_slice(&text));
    hd_buf_fini(&text);
}

static int start_fail(struct hd_task *task)
{
    const struct fail_spec *spec = task->node->spec;

    if (spec->delay_ms > 0)
        return hd_task_wait(task, spec->delay_ms, fail_attempt);
    fail_attempt(task);
    return 0;
}

const struct hd_node_kind hd_node_fail = {
    .name = "fail",
    .read = read_fail_node,
    .start = start_fail,
};
