/*
 * Computes the tasks that follow from a checkpoint: one for each pending send, and one for each
 * node with a trigger channel whose version it has not seen. Ids, paths and namespaces are exactly
 * LangGraph's, so that each can continue the other's threads.
 */
#include "graph/engine/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "base/vec.h"
#include "graph/decl/graph.h"
#include "graph/engine/apply.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/failure.h"
#include "graph/engine/task.h"
#include "graph/engine/writes.h"
#include "value/val.h"

#define PULL "__pregel_pull"
#define PUSH "__pregel_push"

/* ---- names ------------------------------------------------------------ */

void hd_hash_hex(struct hd_slice text, char out[33])
{
    XXH128_canonical_t canonical;
    static const char digits[] = "0123456789abcdef";

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.ptr, text.len));
    for (size_t i = 0; i < sizeof(canonical.digest); i++) {
        out[2 * i] = digits[canonical.digest[i] >> 4];
        out[2 * i + 1] = digits[canonical.digest[i] & 15];
    }
    out[32] = '\0';
}

int hd_task_ns(const struct hd_task *task, struct hd_slice parent, struct hd_buf *out)
{
    struct hd_slice name = task->node->name;
    int err = 0;

    if (parent.len > 0)
        err = hd_buf_printf(out, "%.*s|", (int)parent.len, parent.ptr);
    if (!err)
        err = hd_buf_printf(out, "%.*s:%s", (int)name.len, name.ptr, task->id);
    return err;
}

int hd_task_path(const struct hd_task *task, struct hd_buf *out)
{
    struct hd_slice name = task->node->name;

    char push[] = "~" PUSH ", 0000000000, 0000000000";
    char *digit = push + sizeof("~" PUSH ", 0000000000") - 1;
    int err;

    if (task->push != HD_PULL && task->push > UINT32_MAX) /* may have more digits */
        return hd_buf_printf(out, "~" PUSH ", %010zu, %010d", task->push, 0);
    if (task->push != HD_PULL) {
        for (size_t rest = task->push; rest > 0; rest /= 10)
            *--digit = (char)('0' + rest % 10);
        return hd_buf_append(out, push, sizeof(push) - 1);
    }
    err = hd_buf_append_slice(out, HD_S("~" PULL ", "));
    return err ? err : hd_buf_append_slice(out, name);
}

struct hd_val *hd_task_path_val(const struct hd_task *task)
{
    struct hd_val *path = hd_val_list();

    if (task->push == HD_PULL)
        return hd_val_append(hd_val_append(path, hd_val_cstr(PULL)),
                             hd_val_string(task->node->name));
    path = hd_val_append(hd_val_append(path, hd_val_cstr(PUSH)), hd_val_int((int64_t)task->push));
    if (task->graph->ids == HD_IDS_JS)
        return path;
    return hd_val_append(path, hd_val_bool(false));
}

struct hd_applied hd_task_applied(const struct hd_task *task)
{
    bool is_pull = task->push == HD_PULL;

    return (struct hd_applied){.row = task->node->index,
                               .bumps = true,
                               .triggers = is_pull ? task->node->triggers : NULL,
                               .trigger_count = is_pull ? task->node->trigger_count : 0,
                               .writes = &task->writes,
                               .rank = is_pull ? 2 : 3,
                               .name = task->node->name,
                               .index = task->push};
}

/* ---- choosing --------------------------------------------------------- */

static bool is_triggered(const struct hd_checkpoint_state *live, const struct hd_node *node)
{
    for (size_t i = 0; i < node->trigger_count; i++) {
        if (hd_checkpoint_state_has_unseen(live, node, node->triggers[i]))
            return true;
    }
    return false;
}

static int append_task(struct hd_tasks *tasks, const struct hd_checkpoint_state *live,
                       const struct hd_node *node, size_t push, struct hd_val *arg,
                       struct hd_slice ns, int64_t step)
{
    struct hd_task *task;

    if (hd_array_grow(tasks->list, tasks->count, tasks->cap) != 0)
        return HD_ENOMEM;
    task = hd_calloc(1, sizeof(*task));
    if (!task)
        return HD_ENOMEM;
    tasks->list[tasks->count++] = task;
    task->graph = live->graph;
    task->node = node;
    task->push = push;
    task->arg = hd_val_ref(arg);
    return hd_task_id(task, live, ns, step, live->graph->ids, task->id);
}

static int add_sends(struct hd_tasks *tasks, const struct hd_checkpoint_state *live,
                     struct hd_slice ns, int64_t step)
{
    const struct hd_val *sends = hd_channel_get(&live->channels[live->graph->tasks_channel]);
    int err = 0;

    for (size_t i = 0; i < hd_val_count(sends) && !err; i++) {
        const struct hd_val *send = hd_val_at(sends, i);
        size_t node =
            hd_graph_find_node(live->graph, hd_val_get_string(hd_val_get(send, HD_S("node"))));

        if (hd_val_kind(send) == HD_KIND_SEND && node != HD_GRAPH_END)
            err = append_task(tasks, live, &live->graph->nodes[node], i,
                              hd_val_get(send, HD_S("arg")), ns, step);
    }
    return err;
}

static int nodes_by_name(const void *a, const void *b)
{
    const struct hd_node *const *x = a, *const *y = b;

    return hd_slice_cmp((*x)->name, (*y)->name);
}

static bool may_start(const struct hd_checkpoint_state *live, const struct hd_node *node)
{
    for (size_t i = 0; i < node->trigger_count; i++) {
        if (live->updated[node->triggers[i]])
            return true;
    }
    return false;
}

static int add_pulled(struct hd_tasks *tasks, const struct hd_checkpoint_state *live,
                      struct hd_slice ns, int64_t step, bool uses_updated)
{
    const struct hd_graph *graph = live->graph;
    const struct hd_node **nodes = hd_malloc(graph->node_count * sizeof(struct hd_node *));
    size_t count = 0;
    int err = 0;

    if (!nodes)
        return HD_ENOMEM;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct hd_node *node = &graph->nodes[i];

        if ((!uses_updated || may_start(live, node)) && is_triggered(live, node))
            nodes[count++] = node;
    }
    if (uses_updated)
        qsort(nodes, count, sizeof(struct hd_node *), nodes_by_name);
    for (size_t i = 0; i < count && !err; i++)
        err = append_task(tasks, live, nodes[i], HD_PULL, NULL, ns, step);
    hd_free(nodes);
    return err;
}

int hd_tasks_prepare(struct hd_tasks *tasks, const struct hd_checkpoint_state *live,
                     struct hd_slice ns, int64_t step, bool uses_updated)
{
    int err;

    hd_tasks_fini(tasks);
    err = add_sends(tasks, live, ns, step);
    /* If no updated channels are recorded, checks every node. */
    if (!err && hd_checkpoint_state_has_versions(live))
        err = add_pulled(tasks, live, ns, step,
                         uses_updated && hd_checkpoint_state_any_updated(live));
    if (err)
        hd_tasks_fini(tasks);
    return err;
}

static void free_task(struct hd_task *task)
{
    hd_task_stop(task);
    hd_val_unref(task->arg);
    hd_val_unref(task->input);
    hd_writes_fini(&task->writes);
    hd_free(task->channels);
    hd_val_unref(task->resume);
    hd_val_unref(task->questions);
    hd_failure_fini(&task->failure);
    hd_val_unref(task->command);
    hd_free(task);
}

void hd_tasks_fini(struct hd_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        free_task(tasks->list[i]);
    hd_free(tasks->list);
    *tasks = (struct hd_tasks){NULL, 0, 0};
}

struct hd_task *hd_tasks_find(const struct hd_tasks *tasks, const char *id)
{
    for (size_t i = 0; i < tasks->count; i++) {
        if (memcmp(tasks->list[i]->id, id, HD_UUID_LEN) == 0)
            return tasks->list[i];
    }
    return NULL;
}

static int by_declaration(const void *a, const void *b)
{
    const struct hd_task *const *x = a, *const *y = b;
    size_t left = (*x)->push, right = (*y)->push; /* HD_PULL is the greatest */

    if (left == right) {
        left = (*x)->node->index;
        right = (*y)->node->index;
    }
    return left < right ? -1 : left > right;
}

void hd_tasks_sort(struct hd_tasks *tasks)
{
    if (tasks->count > 1)
        qsort(tasks->list, tasks->count, sizeof(struct hd_task *), by_declaration);
}

struct hd_val *hd_task_input(struct hd_task *task, const struct hd_checkpoint_state *live)
{
    const struct hd_node *node = task->node;

    if (!task->input) {
        if (task->push != HD_PULL)
            task->input = hd_val_ref(task->arg);
        else if (node->index == HD_GRAPH_START)
            task->input = hd_val_ref(hd_channel_get(&live->channels[live->graph->start_channel]));
        else
            task->input = hd_checkpoint_state_read(live, node->reads, node->read_count);
    }
    return task->input;
}
