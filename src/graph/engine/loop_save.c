/*
 * Stores the writes of each task when it ends, and a checkpoint after each superstep. In exit mode
 * it stores only the last checkpoint and its writes, when the run ends.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/save.h"
#include "graph/engine/task.h"
#include "graph/engine/tasks.h"
#include "graph/engine/writes.h"
#include "value/val.h"

static bool is_old_special(const struct hd_pending_write *pending_write, const void *task)
{
    return memcmp(pending_write->task, task, HD_UUID_LEN) == 0 &&
           hd_write_is_special(&pending_write->write);
}

static bool is_of(const struct hd_pending_write *pending_write, const void *task)
{
    return memcmp(pending_write->task, task, HD_UUID_LEN) == 0;
}

static int note_written(struct hd_loop *loop, const char *task)
{
    for (size_t i = 0; i < loop->written_count; i++) {
        if (memcmp(loop->written[i], task, HD_UUID_LEN) == 0)
            return 0;
    }
    if (loop->written_count == loop->written_cap) {
        size_t cap = loop->written_cap ? loop->written_cap * 2 : 4;
        void *more = hd_realloc(loop->written, cap * sizeof(*loop->written));

        if (!more)
            return HD_ENOMEM;
        loop->written = more;
        loop->written_cap = cap;
    }
    memcpy(loop->written[loop->written_count], task, HD_UUID_LEN);
    loop->written[loop->written_count++][HD_UUID_LEN] = '\0';
    return 0;
}

/* If all writes are special, keeps only the last of each kind. */
static int drop_repeated(struct hd_writes *writes)
{
    for (size_t i = 0; i < writes->count; i++) {
        if (!hd_write_is_special(&writes->list[i]))
            return 0;
    }
    for (size_t i = 0; i < writes->count; i++) {
        for (size_t j = i + 1; j < writes->count;) {
            if (writes->list[j].channel != writes->list[i].channel) {
                j++;
                continue;
            }
            hd_val_unref(writes->list[i].val);
            writes->list[i].val = writes->list[j].val;
            memmove(&writes->list[j], &writes->list[j + 1],
                    (writes->count - j - 1) * sizeof(*writes->list));
            writes->count--;
        }
    }
    return 0;
}

/*
 * A stable partition: the store keeps ordinary writes by position, which special writes must not
 * shift.
 */
static int specials_last(struct hd_writes *writes)
{
    struct hd_writes sorted = {NULL, 0, 0};
    int err = 0;

    for (int special = 0; special < 2 && !err; special++) {
        for (size_t i = 0; i < writes->count && !err; i++) {
            if (hd_write_is_special(&writes->list[i]) == (special == 1))
                err = hd_writes_copy(&sorted, &writes->list[i], 1);
        }
    }
    hd_writes_fini(writes);
    *writes = sorted;
    return err;
}

static bool is_untracked(const struct hd_graph *graph, int channel)
{
    return channel >= 0 && graph->channels[channel].reducer == HD_REDUCE_UNTRACKED;
}

/*
 * Removes the values of untracked channels, which are never stored, from a send's argument. Takes
 * `send`.
 */
static struct hd_val *clean_send(const struct hd_graph *graph, struct hd_val *send)
{
    struct hd_val *arg = hd_val_ref(hd_val_get(send, HD_S("arg")));

    if (!hd_val_is_object(arg) || hd_val_kind(arg) != HD_KIND_NONE) {
        hd_val_unref(arg);
        return send;
    }
    for (size_t i = 0; i < graph->state_count && arg; i++) {
        if (is_untracked(graph, (int)i) && hd_val_get(arg, graph->channels[i].name))
            arg = hd_val_without(arg, graph->channels[i].name);
    }
    return hd_val_with(send, HD_S("arg"), arg);
}

/* Copies the writes, without values of untracked channels. */
static int storable(const struct hd_graph *graph, const struct hd_write *list, size_t count,
                    struct hd_writes *out)
{
    bool has_untracked = false;
    int err = 0;

    for (size_t i = 0; i < graph->state_count; i++)
        has_untracked = has_untracked || is_untracked(graph, (int)i);
    for (size_t i = 0; i < count && !err; i++) {
        struct hd_write *last;

        if (is_untracked(graph, list[i].channel))
            continue;
        err = hd_writes_copy(out, &list[i], 1);
        if (err || !has_untracked || list[i].channel != (int)graph->tasks_channel)
            continue;
        last = &out->list[out->count - 1];
        last->val = clean_send(graph, last->val);
        if (!last->val) {
            out->count--;
            err = HD_ENOMEM;
        }
    }
    return err;
}

/* `task` NULL: the task no longer exists, or the writes belong to the run itself. */
static int save_writes(struct hd_loop *loop, const char *task_id, const struct hd_task *task,
                       const struct hd_write *list, size_t count)
{
    struct hd_writes stored = {NULL, 0, 0};
    struct hd_buf path;
    int err = storable(loop->graph, list, count, &stored);

    hd_buf_init(&path, (size_t)1 << 16);
    if (!err && task)
        err = hd_task_path(task, &path);
    if (!err)
        err = hd_buf_append_byte(&path, 0);
    if (!err && stored.count > 0)
        err = hd_save_writes(loop, task_id, path.ptr, stored.list, stored.count);
    hd_buf_fini(&path);
    hd_writes_fini(&stored);
    return err;
}

/* Copies the pending writes of a task. */
static int pending_writes_of(const struct hd_loop *loop, const char *task, struct hd_writes *out)
{
    int err = 0;

    for (size_t i = 0; i < loop->pending_writes.count && !err; i++) {
        if (is_of(&loop->pending_writes.list[i], task))
            err = hd_writes_copy(out, &loop->pending_writes.list[i].write, 1);
    }
    return err;
}

/* The run's own writes are added to earlier ones; a task's writes replace its earlier ones. */
static int put_writes(struct hd_loop *loop, struct hd_task *task, struct hd_writes *writes)
{
    const char *task_id = task ? task->id : HD_NULL_TASK;
    struct hd_writes stored = {NULL, 0, 0};
    int err = 0;

    if (!task) {
        hd_pending_writes_filter(&loop->pending_writes, is_old_special, task_id);
        err = specials_last(writes);
        if (!err)
            err = pending_writes_of(loop, task_id, &stored);
    } else if (task->has_written || loop->has_old_pending_writes) {
        hd_pending_writes_filter(&loop->pending_writes, is_of, task_id);
    }
    if (task)
        task->has_written = true;
    if (!err)
        err = hd_writes_copy(&stored, writes->list, writes->count);
    for (size_t i = 0; i < writes->count && !err; i++)
        err = hd_pending_writes_add(&loop->pending_writes, task_id, &writes->list[i]);
    if (!err && loop->saves && loop->run->options.durability != HD_DURABLE_EXIT)
        err = save_writes(loop, task_id, task, stored.list, stored.count);
    hd_writes_fini(&stored);
    return err;
}

int hd_loop_put_writes(struct hd_loop *loop, struct hd_task *task, const struct hd_write *list,
                       size_t count)
{
    struct hd_writes writes = {NULL, 0, 0};
    int err;

    if (count == 0)
        return 0;
    err = hd_writes_copy(&writes, list, count);
    if (!err && loop->run->options.durability == HD_DURABLE_EXIT)
        err = note_written(loop, task ? task->id : HD_NULL_TASK);
    if (!err)
        err = drop_repeated(&writes);
    if (!err)
        err = put_writes(loop, task, &writes);
    if (!err && task && !loop->run->is_cancelled && task->status != HD_TASK_CANCELLED)
        err = hd_loop_output_writes(loop, task, &writes, false);
    hd_writes_fini(&writes);
    return err;
}

static struct hd_val *make_loop_metadata(const struct hd_loop *loop, const char *source)
{
    struct hd_val *metadata = hd_val_with(hd_val_object(), HD_S("source"), hd_val_cstr(source));

    metadata = hd_val_with(metadata, HD_S("step"), hd_val_int(loop->step));
    return hd_val_with(metadata, HD_S("parents"), hd_val_ref(loop->parents));
}

int hd_loop_put_checkpoint(struct hd_loop *loop, const char *source)
{
    bool is_exit = source == NULL;
    bool is_stored = loop->saves && (is_exit || loop->run->options.durability != HD_DURABLE_EXIT);
    char id[HD_UUID_SIZE];
    int err;

    if (is_exit && strcmp(loop->live.id, loop->loaded_id) == 0)
        return 0; /* already stored */
    if (!is_exit) {
        struct hd_val *metadata = make_loop_metadata(loop, source);

        if (!metadata)
            return HD_ENOMEM;
        hd_val_unref(loop->metadata);
        loop->metadata = metadata;
    }
    memcpy(id, loop->live.id, sizeof(id));
    hd_checkpoint_state_renew(&loop->live, (int)loop->step);
    if (is_exit)
        memcpy(loop->live.id, id, sizeof(id));
    if (is_stored) {
        err = hd_save_checkpoint(loop);
        if (err)
            return err;
        memcpy(loop->parent_id, loop->saved_id, sizeof(loop->parent_id));
        memcpy(loop->saved_id, loop->live.id, sizeof(loop->saved_id));
        loop->has_stored = true;
    }
    if (!is_exit)
        loop->step++;
    return 0;
}

int hd_loop_put_pending(struct hd_loop *loop)
{
    int err = 0;

    for (size_t i = 0; i < loop->written_count && !err && loop->saves; i++) {
        const char *id = loop->written[i];
        struct hd_task *task = loop->has_tasks ? hd_tasks_find(&loop->tasks, id) : NULL;
        struct hd_writes writes = {NULL, 0, 0};

        err = pending_writes_of(loop, id, &writes);
        if (!err && writes.count > 0)
            err = save_writes(loop, id, task, writes.list, writes.count);
        hd_writes_fini(&writes);
    }
    return err;
}
