/* `subgraph`: runs a graph as a node. decl_check.c checks the channels that both graphs share. */
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/decl/subgraph.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/writes.h"
#include "graph/expr/expr.h"
#include "value/val.h"

static int read_memory(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    static const char *const names[] = {
        [HD_MEMORY_INHERIT] = "inherit",
        [HD_MEMORY_OWN] = "own",
        [HD_MEMORY_NONE] = "none",
    };

    (void)field;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(hd_json_string(at->val), hd_slice_cstr(names[i]))) {
            *(enum hd_memory *)out = (enum hd_memory)i;
            return 0;
        }
    }
    return hd_decl_fail(decl, at, "must be \"inherit\", \"own\" or \"none\"");
}

/* Accepts the subgraphs of this graph and of the enclosing graphs. */
static int read_graph_name(struct hd_decl *decl, const struct hd_decl_at *at,
                           const struct hd_field *field, void *out)
{
    struct hd_slice name = hd_json_string(at->val);
    struct hd_draft *draft;

    (void)field;
    (void)out;
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a graph");
    draft = hd_decl_find_graph(decl->draft, name);
    if (!draft)
        return hd_decl_fail(decl, at, "unknown graph \"%.*s\"", HD_SHOW(name));
    draft->is_used = true;
    decl->node->graph = draft->graph;
    return 0;
}

static int read_input(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out)
{
    if (hd_json_is_array(at->val)) /* the channels to read, as for all kinds of nodes */
        return 0;
    if (!hd_json_is_object(at->val) && !hd_slice_starts(hd_json_string(at->val), HD_S("{{")))
        return hd_decl_fail_type(decl, at, "an object of channels to values");
    return hd_decl_read_expr(decl, at, field, out);
}

static const struct hd_field fields[] = {
    {"graph", read_graph_name, 0, true, 0, 0, 0},
    {"input", read_input, offsetof(struct hd_subgraph_spec, input), false, 0, 0, 0},
    {"update", hd_decl_read_update, offsetof(struct hd_subgraph_spec, update), false, 0, 0,
     HD_PLACE(RESULT)},
    {"memory", read_memory, offsetof(struct hd_subgraph_spec, memory), false, 0, 0, 0},
    {"recursion_limit", hd_decl_read_expr, offsetof(struct hd_subgraph_spec, recursion_limit),
     false, 0, 0, 0},
};

static int read_subgraph_node(struct hd_decl *decl, const struct hd_decl_at *at,
                              struct hd_node *node)
{
    struct hd_subgraph_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    return hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
}

bool hd_node_has_states(const struct hd_node *node)
{
    const struct hd_subgraph_spec *spec = node->spec;

    return node->graph && spec->memory != HD_MEMORY_NONE;
}

/* ---- running ---------------------------------------------------------- */

/* The interrupts that are still pending in the inner graph; NULL: unknown, or no memory. */
static struct hd_val *pending_interrupts(const struct hd_loop *inner)
{
    bool has_moved = strcmp(inner->saved_id, inner->loaded_id) != 0;
    struct hd_val *list;

    if (!inner->has_tasks && !has_moved)
        return NULL;
    list = hd_val_list();
    for (size_t i = 0; inner->has_tasks && i < inner->tasks.count && list; i++) {
        const char *id = inner->tasks.list[i]->id;
        struct hd_val *asked;

        if (hd_status_is_finished(&inner->pending_writes, id))
            continue;
        asked = hd_status_interrupts(&inner->pending_writes, id);
        list = hd_val_extend(list, asked);
        hd_val_unref(asked);
    }
    return list;
}

/*
 * If the inner graph consumed an answer before it was cancelled, replaces the stored interrupts by
 * those that are still pending.
 */
static void clear_interrupts(struct hd_task *task, struct hd_val *open)
{
    struct hd_val *asked = hd_status_interrupts(&task->loop->pending_writes, task->id);
    const struct hd_write write = {.channel = HD_W_INTERRUPT, .val = open};
    int err = 0;

    if (open && hd_val_count(asked) > 0 && !hd_val_equal(asked, open))
        err = hd_loop_put_writes(task->loop, task, &write, 1);
    if (err)
        hd_failure_code(&task->loop->failure, err, NULL);
    hd_val_unref(asked);
}

/* Ends the node when its graph has ended. */
static void on_inner_end(struct hd_loop *inner)
{
    const struct hd_subgraph_spec *spec = inner->outer->node->spec;
    struct hd_task *task = inner->outer;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *result = hd_val_ref(inner->latest);
    struct hd_val *asked = hd_val_ref(inner->interrupts);
    struct hd_val *open = inner->end == HD_END_CANCELLED ? pending_interrupts(inner) : NULL;
    struct hd_val *command = hd_val_ref(inner->command);
    struct hd_failure failure = inner->failure;
    struct hd_event event = {.type = HD_EVENT_GRAPH_END, .loop = inner, .value = result};
    enum hd_loop_end end = inner->end;

    if (end == HD_END_DONE)
        hd_emit(inner, &event);
    inner->failure = (struct hd_failure){NULL, NULL};
    task->inner = NULL;
    task->work = NULL;
    hd_loop_destroy(inner);
    switch (end) {
    case HD_END_DONE:
        scope.places[HD_PLACE_RESULT] = result;
        if (spec->update || spec->input)
            hd_task_finish_exprs(task, &scope, spec->update, NULL, false);
        else
            hd_task_finish(task, hd_val_ref(result), NULL, false);
        break;
    case HD_END_INTERRUPTED:
        hd_task_ask(task, asked ? hd_val_ref(asked) : hd_val_list());
        break;
    case HD_END_LEFT:
        hd_task_finish(task, hd_val_ref(hd_val_get(command, HD_S("update"))),
                       hd_val_ref(hd_val_get(command, HD_S("goto"))), false);
        break;
    case HD_END_FAILED:
        hd_task_fail_text(task, hd_slice_cstr(failure.type), hd_slice_cstr(failure.text));
        break;
    case HD_END_CANCELLED:
        task->status = HD_TASK_CANCELLED;
        clear_interrupts(task, open);
        hd_loop_ended_task(task->loop, task);
    }
    hd_val_unref(result);
    hd_val_unref(asked);
    hd_val_unref(open);
    hd_val_unref(command);
    hd_failure_fini(&failure);
}

/*
 * The namespace of its checkpoints: `…|node:task`. With memory "own" it has no task ids, so that
 * all tasks share it.
 */
static int make_ns(struct hd_task *task, enum hd_memory memory, struct hd_buf *out)
{
    size_t kept = 0;
    bool is_id = false;
    int err = hd_task_ns(task, hd_loop_ns(task->loop), out);

    if (!err && task->subgraph_count > 0)
        err = hd_buf_printf(out, "|%zu", task->subgraph_count);
    task->subgraph_count++;
    for (size_t i = 0; !err && memory == HD_MEMORY_OWN && i < out->len; i++) {
        if (out->ptr[i] == '|')
            is_id = false;
        else if (out->ptr[i] == ':')
            is_id = true;
        if (!is_id)
            out->ptr[kept++] = out->ptr[i];
    }
    if (!err && memory == HD_MEMORY_OWN)
        out->len = kept;
    return err ? err : hd_buf_append_byte(out, 0);
}

static int make_loop(struct hd_task *task, struct hd_loop **out)
{
    const struct hd_subgraph_spec *spec = task->node->spec;
    struct hd_loop *outer = task->loop, *inner = NULL;
    struct hd_buf ns;
    int err;

    hd_buf_init(&ns, (size_t)1 << 20);
    err = make_ns(task, spec->memory, &ns);
    if (!err)
        err = hd_loop_create(outer->run, task, task->node->graph, ns.ptr, &inner);
    hd_buf_fini(&ns);
    if (err)
        return err;
    inner->saves = outer->saves && spec->memory != HD_MEMORY_NONE;
    inner->resuming = task->was_retried ? 1 : outer->resuming;
    inner->on_end = on_inner_end;
    hd_val_unref(inner->parents);
    inner->parents =
        hd_val_with(hd_val_ref(outer->parents), hd_loop_ns(outer), hd_val_cstr(outer->live.id));
    if (!inner->parents) {
        hd_loop_destroy(inner);
        return HD_ENOMEM;
    }
    *out = inner;
    return 0;
}

/* Clamps the limit to 1 … HD_GRAPH_MAX_RECURSION; ignores a value that is not an integer. */
static int find_limit(const struct hd_subgraph_spec *spec, const struct hd_scope *scope,
                      struct hd_loop *inner)
{
    struct hd_val *val;
    int64_t limit;
    int err = spec->recursion_limit ? hd_expr_eval(spec->recursion_limit, scope, &val) : 0;

    if (err || !spec->recursion_limit)
        return err;
    if (hd_val_get_int(val, &limit))
        inner->recursion_limit = limit < 1                        ? 1
                                 : limit > HD_GRAPH_MAX_RECURSION ? HD_GRAPH_MAX_RECURSION
                                                                  : limit;
    hd_val_unref(val);
    return 0;
}

static int start_subgraph(struct hd_task *task)
{
    const struct hd_subgraph_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *input = NULL;
    struct hd_loop *inner = NULL;
    int err = 0;

    if (spec->input)
        err = hd_expr_eval(spec->input, &scope, &input);
    else
        input = hd_val_ref(hd_task_input(task, &task->loop->live));
    if (!err && !input)
        err = HD_ENOMEM;
    if (!err)
        err = make_loop(task, &inner);
    if (!err)
        err = find_limit(spec, &scope, inner);
    if (err) {
        hd_val_unref(input);
        hd_loop_destroy(inner);
        return err;
    }
    task->inner = inner;
    task->work = inner;
    if (hd_loop_start(inner, input, NULL) == HD_READY)
        on_inner_end(inner);
    return 0;
}

/* Stored checkpoints remain. The inner loop completes its pending saves without the task. */
static void cancel_subgraph(struct hd_task *task)
{
    struct hd_loop *inner = task->inner;

    task->inner = NULL;
    hd_loop_abandon(inner);
}

const struct hd_node_kind hd_node_subgraph = {
    .name = "subgraph",
    .read = read_subgraph_node,
    .start = start_subgraph,
    .cancel = cancel_subgraph,
};
