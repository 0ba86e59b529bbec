/*
 * Maps events to LangGraph's stream modes. `debug` has the data of `tasks` and `checkpoints`,
 * wrapped with the step, the time and the type.
 */
#include "graph/stream/stream_internal.h"

#include <string.h>

#include "base/clock.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/writes.h"
#include "value/val.h"

static const struct {
    enum hd_stream_mode mode;
    const char *name;
} names[] = {
    {HD_STREAM_VALUES, "values"},
    {HD_STREAM_UPDATES, "updates"},
    {HD_STREAM_TASKS, "tasks"},
    {HD_STREAM_DEBUG, "debug"},
    {HD_STREAM_CHECKPOINTS, "checkpoints"},
    {HD_STREAM_CUSTOM, "custom"},
    {HD_STREAM_MESSAGES, "messages"},
    {HD_STREAM_EVENTS, "events"},
    {HD_STREAM_TOOLS, "tools"},
};

const char *hd_stream_mode_name(enum hd_stream_mode mode)
{
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (names[i].mode == mode)
            return names[i].name;
    }
    return "";
}

int hd_mapping_give(const struct hd_mapping *m, enum hd_stream_mode mode, struct hd_val *data)
{
    if (!data)
        return HD_ENOMEM;
    if (m->modes & (unsigned)mode)
        m->fn(m->ctx, hd_event_ns(m->event), mode, data);
    hd_val_unref(data);
    return 0;
}

/* Sends the data in `mode` and, wrapped, in `debug`. Takes `data`. */
static int give_both(const struct hd_mapping *m, enum hd_stream_mode mode, const char *type,
                     struct hd_val *data)
{
    int64_t step = m->event->loop->step - (mode == HD_STREAM_CHECKPOINTS);
    struct hd_val *wrapped;
    char now[40];
    int err;

    if (!data)
        return HD_ENOMEM;
    err = hd_mapping_give(m, mode, hd_val_ref(data));
    if (err || !(m->modes & HD_STREAM_DEBUG)) {
        hd_val_unref(data);
        return err;
    }
    hd_clock_format_iso(hd_clock_now_us(), now);
    wrapped = hd_val_with(hd_val_object(), HD_S("step"), hd_val_int(step));
    wrapped = hd_val_with(wrapped, HD_S("timestamp"), hd_val_cstr(now));
    wrapped = hd_val_with(wrapped, HD_S("type"), hd_val_cstr(type));
    return hd_mapping_give(m, HD_STREAM_DEBUG, hd_val_with(wrapped, HD_S("payload"), data));
}

/* ---- values and updates ----------------------------------------------- */

static struct hd_val *current_values(const struct hd_loop *loop)
{
    size_t count;
    const size_t *output = hd_loop_output(loop, &count);

    return hd_checkpoint_state_read(&loop->live, output, count);
}

static bool is_shown(const struct hd_loop *loop, int channel)
{
    size_t count;
    const size_t *output = hd_loop_output(loop, &count);

    if (!output)
        return channel >= 0 && (size_t)channel < loop->graph->state_count;
    for (size_t i = 0; i < count; i++) {
        if (channel >= 0 && output[i] == (size_t)channel)
            return true;
    }
    return false;
}

/* True if a channel has several writes; then each write becomes an object. */
static bool writes_twice(const struct hd_event *event)
{
    const struct hd_writes *writes = event->writes;

    for (size_t i = 0; i < writes->count; i++) {
        for (size_t j = i + 1; j < writes->count; j++) {
            if (writes->list[i].channel == writes->list[j].channel &&
                is_shown(event->loop, writes->list[i].channel))
                return true;
        }
    }
    return false;
}

struct hd_val *hd_stream_update(const struct hd_event *event)
{
    const struct hd_graph *graph = event->loop->graph;
    bool is_list = writes_twice(event);
    struct hd_val *result = is_list ? hd_val_list() : NULL;

    for (size_t i = 0; i < event->writes->count; i++) {
        const struct hd_write *write = &event->writes->list[i];
        struct hd_slice name;

        if (!is_shown(event->loop, write->channel))
            continue;
        name = graph->channels[write->channel].name;
        if (is_list)
            result =
                hd_val_append(result, hd_val_with(hd_val_object(), name, hd_val_ref(write->val)));
        else
            result = hd_val_with(result ? result : hd_val_object(), name, hd_val_ref(write->val));
        if (!result)
            return NULL;
    }
    return result ? result : hd_val_null();
}

static int map_update(const struct hd_mapping *m)
{
    struct hd_val *data;

    if (!(m->modes & HD_STREAM_UPDATES))
        return 0;
    data = hd_val_with(hd_val_object(), m->event->task->node->name, hd_stream_update(m->event));
    if (m->event->is_cached)
        data = hd_val_with(data, HD_S("__metadata__"),
                           hd_val_with(hd_val_object(), HD_S("cached"), hd_val_bool(true)));
    return hd_mapping_give(m, HD_STREAM_UPDATES, data);
}

struct hd_val *hd_stream_questions(const struct hd_event *event)
{
    return event->value ? hd_val_ref(event->value) : hd_val_list();
}

static int map_interrupt(const struct hd_mapping *m)
{
    struct hd_val *list = hd_stream_questions(m->event);
    struct hd_val *data = hd_val_with(hd_val_object(), HD_S("__interrupt__"), hd_val_ref(list));
    int err = hd_mapping_give(m, HD_STREAM_UPDATES, data);

    if (!err && m->event->task && (m->modes & HD_STREAM_VALUES))
        err = hd_mapping_give(
            m, HD_STREAM_VALUES,
            hd_val_with(current_values(m->event->loop), HD_S("__interrupt__"), hd_val_ref(list)));
    hd_val_unref(list);
    return err;
}

/* ---- tasks ------------------------------------------------------------ */

static struct hd_val *strings(const struct hd_slice *list, size_t count)
{
    struct hd_val *val = hd_val_list();

    for (size_t i = 0; i < count; i++)
        val = hd_val_append(val, hd_val_string(list[i]));
    return val;
}

/*
 * Takes `metadata`. Adds the tags of the node and, with `of_run`, of the run. Calls that the task
 * makes have both.
 */
static struct hd_val *with_tags(struct hd_val *metadata, const struct hd_task *task, bool of_run)
{
    const struct hd_val *more = of_run ? task->loop->run->options.tags : NULL;
    struct hd_val *tags;

    if (task->node->tag_count + hd_val_count(more) == 0)
        return metadata;
    tags = strings(task->node->tags, task->node->tag_count);
    if (more && tags)
        tags = hd_val_extend(tags, more);
    return hd_val_with(metadata, HD_S("tags"), tags);
}

/* The run's metadata and the ids from its configuration, without the thread's id. */
static struct hd_val *known_of_run(const struct hd_engine_run *run)
{
    static const char *const shown[] = {"run_id", "assistant_id", "graph_id"};
    const struct hd_engine_run_options *options = &run->options;
    struct hd_val *metadata = hd_val_object();

    if (options->metadata)
        metadata = hd_val_merge(metadata, options->metadata);
    for (size_t i = 0; i < HD_COUNT(shown); i++) {
        const struct hd_val *val = hd_val_get(options->config, hd_slice_cstr(shown[i]));

        if (metadata && hd_val_truth(val) && !hd_val_get(metadata, hd_slice_cstr(shown[i])))
            metadata = hd_val_with(metadata, hd_slice_cstr(shown[i]), hd_val_ref(val));
    }
    return hd_val_without(metadata, HD_S("thread_id"));
}

struct hd_val *hd_stream_run_metadata(const struct hd_engine_run *run)
{
    return hd_val_with(known_of_run(run), HD_S("thread_id"), hd_val_string(run->options.thread));
}

/* The metadata and tags that users set on the node and the run. */
static struct hd_val *user_metadata(const struct hd_task *task)
{
    struct hd_val *metadata = known_of_run(task->loop->run);

    if (task->node->metadata)
        metadata = hd_val_merge(metadata, task->node->metadata);
    return with_tags(metadata, task, true);
}

static int map_task(const struct hd_mapping *m)
{
    struct hd_task *task = m->event->task;
    struct hd_val *data = hd_val_with(hd_val_object(), HD_S("id"), hd_val_cstr(task->id));
    struct hd_val *metadata = user_metadata(task);

    data = hd_val_with(data, HD_S("name"), hd_val_string(task->node->name));
    data = hd_val_with(data, HD_S("input"), hd_val_ref(hd_task_input(task, &task->loop->live)));
    data = hd_val_with(data, HD_S("triggers"), hd_task_triggers(task));
    if (!metadata) {
        hd_val_unref(data);
        return HD_ENOMEM;
    }
    if (hd_val_count(metadata) > 0)
        data = hd_val_with(data, HD_S("metadata"), hd_val_ref(metadata));
    hd_val_unref(metadata);
    return give_both(m, HD_STREAM_TASKS, "task", data);
}

/* Converts interrupts to plain objects. */
static struct hd_val *plain_interrupts(const struct hd_val *list)
{
    struct hd_val *plain = hd_val_list();

    for (size_t i = 0; i < hd_val_count(list); i++) {
        const struct hd_val *item = hd_val_at(list, i);
        const struct hd_val *schema = hd_val_get(item, HD_S("response_schema"));
        struct hd_val *object = hd_val_object();

        object = hd_val_with(object, HD_S("value"), hd_val_ref(hd_val_get(item, HD_S("value"))));
        object = hd_val_with(object, HD_S("id"), hd_val_ref(hd_val_get(item, HD_S("id"))));
        object = hd_val_with(object, HD_S("response_schema"),
                             schema ? hd_val_ref(schema) : hd_val_null());
        plain = hd_val_append(plain, object);
    }
    return plain;
}

static const struct hd_val *find_special(const struct hd_writes *writes, int channel)
{
    for (size_t i = 0; i < writes->count; i++) {
        if (writes->list[i].channel == channel)
            return writes->list[i].val;
    }
    return NULL;
}

static int map_result(const struct hd_mapping *m)
{
    const struct hd_task *task = m->event->task;
    const struct hd_writes *writes = m->event->writes;
    const struct hd_val *error = find_special(writes, HD_W_ERROR);
    struct hd_val *data = hd_val_with(hd_val_object(), HD_S("id"), hd_val_cstr(task->id));

    data = hd_val_with(data, HD_S("name"), hd_val_string(task->node->name));
    data = hd_val_with(data, HD_S("error"), error ? hd_val_ref(error) : hd_val_null());
    data = hd_val_with(data, HD_S("result"), hd_status_result(task->graph, writes, NULL, 0));
    data = hd_val_with(data, HD_S("interrupts"),
                       plain_interrupts(find_special(writes, HD_W_INTERRUPT)));
    return give_both(m, HD_STREAM_TASKS, "task_result", data);
}

/* ---- checkpoints ------------------------------------------------------ */

static struct hd_val *config(const struct hd_loop *loop, const char *id)
{
    const struct hd_engine_run_options *options = &loop->run->options;
    const struct hd_val *parents = hd_val_get(loop->metadata, HD_S("parents"));
    struct hd_val *inner = options->config ? hd_val_ref(options->config) : hd_val_object();

    if (!id[0]) {
        hd_val_unref(inner);
        return hd_val_null();
    }
    inner = hd_val_with(inner, HD_S("thread_id"), hd_val_string(options->thread));
    inner = hd_val_with(inner, HD_S("checkpoint_ns"), hd_val_cstr(loop->ns));
    inner = hd_val_with(inner, HD_S("checkpoint_id"), hd_val_cstr(id));
    if (hd_val_count(parents) > 0)
        inner = hd_val_with(inner, HD_S("checkpoint_map"),
                            hd_val_with(hd_val_ref(parents), hd_loop_ns(loop), hd_val_cstr(id)));
    return hd_val_with(hd_val_object(), HD_S("configurable"), inner);
}

static struct hd_val *task_state(const struct hd_loop *loop, const struct hd_task *task)
{
    struct hd_val *inner = hd_val_object();
    struct hd_buf ns;

    if (!hd_node_has_states(task->node)) {
        hd_val_unref(inner);
        return hd_val_null();
    }
    hd_buf_init(&ns, (size_t)1 << 20);
    if (hd_task_ns(task, hd_loop_ns(loop), &ns) != 0) {
        hd_val_unref(inner);
        hd_buf_fini(&ns);
        return NULL;
    }
    inner = hd_val_with(inner, HD_S("thread_id"), hd_val_string(loop->run->options.thread));
    inner = hd_val_with(inner, HD_S("checkpoint_ns"), hd_val_string(hd_buf_slice(&ns)));
    hd_buf_fini(&ns);
    return hd_val_with(hd_val_object(), HD_S("configurable"), inner);
}

/*
 * The status of a task before its step starts, as stored by earlier runs that were interrupted
 * there.
 */
static struct hd_val *show_task(const struct hd_loop *loop, const struct hd_task *task)
{
    struct hd_val *error = hd_status_error(&loop->pending_writes, task->id);
    struct hd_val *data = hd_val_with(hd_val_object(), HD_S("id"), hd_val_cstr(task->id));
    struct hd_val *asked;
    struct hd_writes output = {NULL, 0, 0};
    size_t count;
    const size_t *indexes = hd_loop_output(loop, &count);

    data = hd_val_with(data, HD_S("name"), hd_val_string(task->node->name));
    if (!hd_val_is_null(error)) {
        data = hd_val_with(data, HD_S("error"), hd_val_ref(error));
        return hd_val_with(data, HD_S("state"), task_state(loop, task));
    }
    if (hd_status_output(&loop->pending_writes, task->id, &output) != 0) {
        hd_val_unref(data);
        return NULL;
    }
    if (output.count > 0) {
        struct hd_val *result = hd_status_result(loop->graph, &output, indexes, count);

        if (hd_val_count(result) > 0)
            data = hd_val_with(data, HD_S("result"), hd_val_ref(result));
        hd_val_unref(result);
    }
    hd_writes_fini(&output);
    asked = hd_status_interrupts(&loop->pending_writes, task->id);
    data = hd_val_with(data, HD_S("interrupts"), asked ? plain_interrupts(asked) : NULL);
    hd_val_unref(asked);
    return hd_val_with(data, HD_S("state"), task_state(loop, task));
}

static int map_checkpoint(const struct hd_mapping *m)
{
    const struct hd_loop *loop = m->event->loop;
    struct hd_val *next = hd_val_list(), *tasks = hd_val_list();
    struct hd_val *data = hd_val_object();

    for (size_t i = 0; i < loop->tasks.count; i++) {
        next = hd_val_append(next, hd_val_string(loop->tasks.list[i]->node->name));
        tasks = hd_val_append(tasks, show_task(loop, loop->tasks.list[i]));
    }
    data = hd_val_with(data, HD_S("config"), config(loop, loop->live.id));
    data = hd_val_with(data, HD_S("parent_config"), config(loop, loop->parent_id));
    data = hd_val_with(data, HD_S("values"), hd_checkpoint_state_read(&loop->live, NULL, 0));
    data = hd_val_with(data, HD_S("metadata"), hd_val_ref(loop->metadata));
    data = hd_val_with(data, HD_S("next"), next);
    data = hd_val_with(data, HD_S("tasks"), tasks);
    return give_both(m, HD_STREAM_CHECKPOINTS, "checkpoint", data);
}

/* ---- messages --------------------------------------------------------- */

/*
 * The first namespace that the configuration had: inside a subgraph, that of the enclosing task of
 * the outermost graph.
 */
static int first_ns(const struct hd_task *task, struct hd_buf *out)
{
    const struct hd_loop *loop = task->loop;

    if (loop->run->options.around)
        return first_ns(loop->run->options.around, out);
    if (!loop->outer)
        return hd_task_ns(task, hd_loop_ns(loop), out);
    while (loop->outer->loop->outer)
        loop = loop->outer->loop;
    return hd_task_ns(loop->outer, HD_S(""), out);
}

/* Appends `…|node:task`, as clients see it. */
static int shown_ns(const struct hd_task *task, struct hd_buf *out)
{
    int err = hd_event_shown_ns(task->loop->run, out);

    if (!err && out->len > 0)
        err = hd_buf_append_byte(out, '|');
    return err ? err : hd_task_ns(task, hd_loop_ns(task->loop), out);
}

struct hd_val *hd_stream_metadata(const struct hd_task *task, bool is_inner)
{
    const struct hd_loop *loop = task->loop;
    struct hd_val *metadata = hd_stream_run_metadata(loop->run);
    struct hd_buf ns, first;

    hd_buf_init(&ns, (size_t)1 << 20);
    hd_buf_init(&first, (size_t)1 << 20);
    if (task->node->metadata)
        metadata = hd_val_merge(metadata, task->node->metadata);
    if (shown_ns(task, &ns) != 0 || first_ns(task, &first) != 0) {
        hd_val_unref(metadata);
        metadata = NULL;
    }
    metadata = hd_val_with(metadata, HD_S("langgraph_step"), hd_val_int(loop->step));
    metadata = hd_val_with(metadata, HD_S("langgraph_node"), hd_val_string(task->node->name));
    metadata = hd_val_with(metadata, HD_S("langgraph_triggers"), hd_task_triggers(task));
    metadata = hd_val_with(metadata, HD_S("langgraph_path"), hd_task_path_val(task));
    metadata =
        hd_val_with(metadata, HD_S("langgraph_checkpoint_ns"), hd_val_string(hd_buf_slice(&ns)));
    if (is_inner || loop->outer || loop->run->options.around)
        metadata =
            hd_val_with(metadata, HD_S("checkpoint_ns"), hd_val_string(hd_buf_slice(&first)));
    hd_buf_fini(&ns);
    hd_buf_fini(&first);
    return metadata;
}

static struct hd_val *message_metadata(const struct hd_event *event)
{
    struct hd_val *metadata = hd_stream_metadata(event->task, event->is_from_model);

    return with_tags(metadata, event->task, event->is_from_model);
}

static int map_message(const struct hd_mapping *m)
{
    struct hd_val *pair;

    if (!(m->modes & HD_STREAM_MESSAGES))
        return 0;
    pair = hd_val_append(hd_val_list(), hd_val_ref(m->event->value));
    return hd_mapping_give(m, HD_STREAM_MESSAGES, hd_val_append(pair, message_metadata(m->event)));
}

int hd_stream_map(const struct hd_event *event, unsigned modes, hd_stream_fn fn, void *ctx)
{
    struct hd_mapping m = {event, modes, fn, ctx};
    int err = modes & HD_STREAM_EVENTS ? hd_stream_map_events(&m) : 0;

    if (err)
        return err;
    switch (event->type) {
    case HD_EVENT_GRAPH:
    case HD_EVENT_GRAPH_END:
    case HD_EVENT_MODEL:
    case HD_EVENT_MODEL_END:
    case HD_EVENT_TOOL:
    case HD_EVENT_TOOL_END:
        return 0;
    case HD_EVENT_CHECKPOINT:
        return modes & (HD_STREAM_CHECKPOINTS | HD_STREAM_DEBUG) ? map_checkpoint(&m) : 0;
    case HD_EVENT_TASK:
        return modes & (HD_STREAM_TASKS | HD_STREAM_DEBUG) ? map_task(&m) : 0;
    case HD_EVENT_TASK_RESULT:
        return modes & (HD_STREAM_TASKS | HD_STREAM_DEBUG) ? map_result(&m) : 0;
    case HD_EVENT_UPDATE:
        return map_update(&m);
    case HD_EVENT_VALUES:
        return modes & HD_STREAM_VALUES
                   ? hd_mapping_give(&m, HD_STREAM_VALUES, current_values(event->loop))
                   : 0;
    case HD_EVENT_INTERRUPT:
        return map_interrupt(&m);
    case HD_EVENT_MESSAGE:
        return map_message(&m);
    case HD_EVENT_CUSTOM:
        return hd_mapping_give(&m, HD_STREAM_CUSTOM, hd_val_ref(event->value));
    }
    return 0;
}
