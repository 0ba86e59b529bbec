/*
 * The events of a run: one stream, in the order in which things happen. stream.c derives the
 * client-visible stream modes from it.
 */
#ifndef HD_GRAPH_ENGINE_EVENTS_H
#define HD_GRAPH_ENGINE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/run.h"
#include "value/val.h"

struct hd_loop;
struct hd_task;
struct hd_writes;

enum hd_event_type {
    HD_EVENT_GRAPH,      /* a graph begins: the outermost, or a subgraph */
    HD_EVENT_GRAPH_END,  /* it has ended: done or, for the outermost, interrupted */
    HD_EVENT_CHECKPOINT, /* a superstep is about to begin (or nothing is left) */
    HD_EVENT_TASK,       /* a task begins */
    HD_EVENT_TASK_RESULT,
    HD_EVENT_UPDATE,    /* the writes of a task */
    HD_EVENT_VALUES,    /* the state changed */
    HD_EVENT_INTERRUPT, /* interrupts, or a breakpoint was reached (then no interrupts) */
    HD_EVENT_MODEL,     /* a task calls a model */
    HD_EVENT_MODEL_END, /* the model has replied */
    HD_EVENT_TOOL,      /* a task calls a tool */
    HD_EVENT_TOOL_END,  /* the tool has returned or failed */
    HD_EVENT_MESSAGE,   /* a message, or a piece of one, from a model or in a result */
    HD_EVENT_CUSTOM
};

/* Borrows everything. */
struct hd_event {
    enum hd_event_type type;
    struct hd_loop *loop;
    struct hd_task *task;           /* NULL for GRAPH…, CHECKPOINT, VALUES and breakpoints */
    const struct hd_writes *writes; /* TASK_RESULT, UPDATE */
    bool is_cached;                 /* UPDATE: from an earlier run */
    const struct hd_val *value;     /* INTERRUPT: the list; MESSAGE, CUSTOM; GRAPH: the input;
                                       GRAPH_END, MODEL_END: the result */
    const struct hd_val *input; /* MODEL, MODEL_END: the messages; TOOL, TOOL_END: the arguments */
    const char *name;           /* MODEL, MODEL_END, MESSAGE from a model: its name */
    struct hd_slice tool;       /* TOOL, TOOL_END: the name */
    struct hd_slice tool_id;    /* of the call; `value` is the tool message */
    bool is_error;              /* TOOL_END */
    bool is_from_model;         /* MESSAGE: not only part of a result */
};

/* The namespace of an event: "" for the root graph, else `node:task|…`. */
struct hd_slice hd_event_ns(const struct hd_event *event);
/* Appends `node:task|…` of the task that waits for the run; without such a task, nothing. */
HD_MUST_CHECK int hd_event_shown_ns(const struct hd_engine_run *run, struct hd_buf *out);
struct hd_slice hd_event_node(const struct hd_event *event);

/* ---- stream modes: stream.c ------------------------------------------- */

enum hd_stream_mode {
    HD_STREAM_VALUES = 1,
    HD_STREAM_UPDATES = 2,
    HD_STREAM_TASKS = 4,
    HD_STREAM_DEBUG = 8,
    HD_STREAM_CHECKPOINTS = 16,
    HD_STREAM_CUSTOM = 32,
    HD_STREAM_MESSAGES = 64,
    HD_STREAM_ALL = 127,
    HD_STREAM_EVENTS = 128,   /* not a mode of LangGraph: LangChain's astream_events */
    HD_STREAM_TOOLS = 1 << 17 /* only graphs in workers have it; a bit of records/stream_modes.h */
};

const char *hd_stream_mode_name(enum hd_stream_mode mode);

/* Borrows `data`. */
typedef void (*hd_stream_fn)(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                             const struct hd_val *data);

/* Calls `fn` with the data that each of `modes` shows of an event. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_stream_map(const struct hd_event *event, unsigned modes, hd_stream_fn fn,
                                void *ctx);

#endif
