/*
 * The stream mode `events`: the objects of LangChain's astream_events (version v2). A graph, the
 * execution of a node and a call of a model are *runs*, each with an id and the ids of the
 * enclosing runs. As in LangChain, a run that fails or is interrupted has no end event, and only
 * the outermost graph streams its updates. Functions of conditional edges are not shown:
 * declarations have none.
 */
#include "graph/stream/stream_internal.h"

#include <string.h>
#include "base/uuid.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"

/* ---- ids -------------------------------------------------------------- */

/* Generates the id at its first use. */
static struct hd_val *trace_id(char id[HD_UUID_SIZE])
{
    if (!id[0])
        hd_uuid_v7(id);
    return hd_val_cstr(id);
}

/* The outermost graph has the id of the run, if the caller has set one. */
static struct hd_val *graph_id(struct hd_loop *loop)
{
    const struct hd_engine_run_options *options = &loop->run->options;
    bool is_outermost = !loop->outer && !options->around;
    struct hd_slice id = {NULL, 0};

    if (is_outermost)
        id = hd_val_get_string(hd_val_get(options->metadata, HD_S("run_id")));
    if (is_outermost && id.len == 0)
        id = hd_val_get_string(hd_val_get(options->config, HD_S("run_id")));
    return id.len > 0 ? hd_val_string(id) : trace_id(loop->trace);
}

/* Outermost first: graph, node, graph, node … */
static struct hd_val *ids_around(struct hd_loop *loop)
{
    struct hd_task *outer = loop->outer ? loop->outer : loop->run->options.around;
    struct hd_val *ids;

    if (!outer)
        return hd_val_list();
    ids = ids_around(outer->loop);
    ids = hd_val_append(ids, graph_id(outer->loop));
    return hd_val_append(ids, trace_id(outer->trace));
}

static struct hd_val *tags(const struct hd_engine_run *run, struct hd_val *first)
{
    struct hd_val *list = hd_val_list();

    if (first)
        list = hd_val_append(list, first);
    return run->options.tags ? hd_val_extend(list, run->options.tags) : list;
}

/* ---- objects ---------------------------------------------------------- */

/* An object of the stream. give() takes all values; a NULL is HD_ENOMEM. */
struct shown {
    const char *event;
    struct hd_val *name, *id, *tags, *metadata, *data, *around;
};

static int give(const struct hd_mapping *m, const struct shown *s)
{
    struct hd_val *object = hd_val_with(hd_val_object(), HD_S("event"), hd_val_cstr(s->event));

    object = hd_val_with(object, HD_S("name"), s->name);
    object = hd_val_with(object, HD_S("run_id"), s->id);
    object = hd_val_with(object, HD_S("tags"), s->tags);
    object = hd_val_with(object, HD_S("metadata"), s->metadata);
    object = hd_val_with(object, HD_S("data"), s->data);
    object = hd_val_with(object, HD_S("parent_ids"), s->around);
    return hd_mapping_give(m, HD_STREAM_EVENTS, object);
}

static struct hd_val *data_of(const char *key, struct hd_val *val)
{
    return hd_val_with(hd_val_object(), hd_slice_cstr(key), val);
}

/* Takes `data`. */
static int give_graph(const struct hd_mapping *m, struct hd_loop *loop, const char *event,
                      struct hd_val *data)
{
    struct hd_val *first = loop->outer ? hd_val_cstr("seq:step:1") : NULL;
    struct shown s = {.event = event,
                      .name = hd_val_string(loop->graph->name),
                      .id = graph_id(loop),
                      .tags = tags(loop->run, first),
                      .metadata = loop->outer ? hd_stream_metadata(loop->outer, true)
                                              : hd_stream_run_metadata(loop->run),
                      .data = data,
                      .around = ids_around(loop)};

    return give(m, &s);
}

static int give_node(const struct hd_mapping *m, const char *event, struct hd_val *data)
{
    struct hd_task *task = m->event->task;
    struct hd_loop *loop = m->event->loop;
    struct shown s = {.event = event,
                      .name = hd_val_string(task->node->name),
                      .id = trace_id(task->trace),
                      .tags =
                          tags(loop->run, hd_val_printf("graph:step:%lld", (long long)loop->step)),
                      .metadata = hd_stream_metadata(task, false),
                      .data = data,
                      .around = hd_val_append(ids_around(loop), graph_id(loop))};

    return give(m, &s);
}

static int give_model(const struct hd_mapping *m, const char *event, struct hd_val *data)
{
    struct hd_task *task = m->event->task;
    struct hd_val *around = hd_val_append(ids_around(task->loop), graph_id(task->loop));
    struct shown s = {.event = event,
                      .name = hd_val_cstr(m->event->name ? m->event->name : "model"),
                      .id = trace_id(task->call_trace),
                      .tags = tags(task->loop->run, hd_val_cstr("seq:step:1")),
                      .metadata = hd_stream_metadata(task, true),
                      .data = data,
                      .around = hd_val_append(around, trace_id(task->trace))};

    return give(m, &s);
}

/* ---- events ----------------------------------------------------------- */

static bool is_root(const struct hd_event *event)
{
    return event->loop->outer == NULL && !event->loop->run->options.around;
}

static struct hd_val *ref_or_null(const struct hd_val *val)
{
    return val ? hd_val_ref(val) : hd_val_null();
}

static int map_graph_end(const struct hd_mapping *m)
{
    struct hd_val *data = data_of("output", ref_or_null(m->event->value));

    if (!is_root(m->event))
        data = hd_val_with(data, HD_S("input"), ref_or_null(m->event->loop->input));
    return give_graph(m, m->event->loop, "on_chain_end", data);
}

static int map_update(const struct hd_mapping *m)
{
    struct hd_task *task = m->event->task;
    struct hd_val *update = hd_stream_update(m->event), *data;
    int err = update ? 0 : HD_ENOMEM;

    if (!err && !m->event->is_cached)
        err = give_node(m, "on_chain_stream", data_of("chunk", hd_val_ref(update)));
    if (!err && !m->event->is_cached) {
        data = data_of("output", hd_val_ref(update));
        data =
            hd_val_with(data, HD_S("input"), ref_or_null(hd_task_input(task, &task->loop->live)));
        err = give_node(m, "on_chain_end", data);
    }
    if (!err && is_root(m->event)) {
        data = hd_val_with(hd_val_object(), task->node->name, hd_val_ref(update));
        err = give_graph(m, task->loop, "on_chain_stream", data_of("chunk", data));
    }
    hd_val_unref(update);
    return err;
}

static int map_interrupt(const struct hd_mapping *m)
{
    struct hd_val *data;

    if (!is_root(m->event))
        return 0;
    data = data_of("__interrupt__", hd_stream_questions(m->event));
    return give_graph(m, m->event->loop, "on_chain_stream", data_of("chunk", data));
}

/* LangChain allows a batch of calls, so this is a list of lists. */
static struct hd_val *model_input(const struct hd_event *event)
{
    struct hd_val *messages = event->input ? hd_val_ref(event->input) : hd_val_list();

    return data_of("messages", hd_val_append(hd_val_list(), messages));
}

static int map_model_end(const struct hd_mapping *m)
{
    struct hd_val *data = data_of("output", ref_or_null(m->event->value));

    data = hd_val_with(data, HD_S("input"), model_input(m->event));
    return give_model(m, "on_chat_model_end", data);
}

static int map_message(const struct hd_mapping *m)
{
    struct hd_slice type = hd_val_get_string(hd_val_get(m->event->value, HD_S("type")));

    if (!m->event->is_from_model || !hd_slice_eq(type, HD_S("AIMessageChunk")))
        return 0;
    return give_model(m, "on_chat_model_stream", data_of("chunk", ref_or_null(m->event->value)));
}

/* A task calls one tool. The call has call_trace as its id, as a model's call does. */
static int map_tool(const struct hd_mapping *m)
{
    const struct hd_event *event = m->event;
    struct hd_task *task = event->task;
    struct hd_val *around = hd_val_append(ids_around(task->loop), graph_id(task->loop));
    struct hd_val *data = hd_val_object();
    struct shown s = {.event = event->type == HD_EVENT_TOOL ? "on_tool_start"
                               : event->is_error            ? "on_tool_error"
                                                            : "on_tool_end",
                      .name = hd_val_string(event->tool),
                      .id = trace_id(task->call_trace),
                      .tags = tags(task->loop->run, hd_val_cstr("seq:step:1")),
                      .metadata = hd_stream_metadata(task, true),
                      .around = hd_val_append(around, trace_id(task->trace))};

    if (event->is_error)
        data = hd_val_with(data, HD_S("error"),
                           ref_or_null(hd_val_get(event->value, HD_S("content"))));
    else if (event->value)
        data = hd_val_with(data, HD_S("output"), hd_val_ref(event->value));
    data = hd_val_with(data, HD_S("input"), ref_or_null(event->input));
    s.data = hd_val_with(data, HD_S("tool_call_id"), hd_val_string(event->tool_id));
    return give(m, &s);
}

/* The event has the id of the node that emits it. */
static int map_custom(const struct hd_mapping *m)
{
    struct hd_task *task = m->event->task;
    struct hd_loop *loop = m->event->loop;
    struct hd_val *around = hd_val_append(ids_around(loop), graph_id(loop));
    struct shown s = {.event = "on_custom_event",
                      .name = hd_val_cstr("custom"),
                      .id = trace_id(task->trace),
                      .tags =
                          tags(loop->run, hd_val_printf("graph:step:%lld", (long long)loop->step)),
                      .metadata = hd_stream_metadata(task, false),
                      .data = ref_or_null(m->event->value),
                      .around = around};

    return give(m, &s);
}

int hd_stream_map_events(const struct hd_mapping *m)
{
    const struct hd_event *event = m->event;

    switch (event->type) {
    case HD_EVENT_GRAPH:
        return give_graph(m, event->loop, "on_chain_start",
                          data_of("input", ref_or_null(event->value)));
    case HD_EVENT_GRAPH_END:
        return map_graph_end(m);
    case HD_EVENT_TASK:
        if (event->task->status != HD_TASK_READY)
            return 0; /* completed by an earlier run */
        return give_node(
            m, "on_chain_start",
            data_of("input", ref_or_null(hd_task_input(event->task, &event->loop->live))));
    case HD_EVENT_UPDATE:
        return map_update(m);
    case HD_EVENT_INTERRUPT:
        return map_interrupt(m);
    case HD_EVENT_MODEL:
        return give_model(m, "on_chat_model_start", data_of("input", model_input(event)));
    case HD_EVENT_MODEL_END:
        return map_model_end(m);
    case HD_EVENT_TOOL:
    case HD_EVENT_TOOL_END:
        return map_tool(m);
    case HD_EVENT_MESSAGE:
        return map_message(m);
    case HD_EVENT_CUSTOM:
        return map_custom(m);
    case HD_EVENT_CHECKPOINT:
    case HD_EVENT_TASK_RESULT:
    case HD_EVENT_VALUES:
        break;
    }
    return 0;
}
