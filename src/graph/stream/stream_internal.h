/* Declarations shared by stream.c and stream_events.c. */
#ifndef HD_GRAPH_STREAM_STREAM_INTERNAL_H
#define HD_GRAPH_STREAM_STREAM_INTERNAL_H

#include "base/compiler.h"
#include "graph/engine/events.h"
#include "value/val.h"

struct hd_mapping {
    const struct hd_event *event;
    unsigned modes;
    hd_stream_fn fn;
    void *ctx;
};

/* Calls `fn` if `modes` contains the mode. Takes `data`; NULL is HD_ENOMEM. */
HD_MUST_CHECK int hd_mapping_give(const struct hd_mapping *m, enum hd_stream_mode mode,
                                  struct hd_val *data);

/* The data of an UPDATE: an object of channels, a list of such objects, or null. */
HD_MUST_CHECK struct hd_val *hd_stream_update(const struct hd_event *event);
/* The interrupts of an INTERRUPT: a list. */
HD_MUST_CHECK struct hd_val *hd_stream_questions(const struct hd_event *event);
/* The run's metadata, with the ids from its configuration and the thread's id. */
HD_MUST_CHECK struct hd_val *hd_stream_run_metadata(const struct hd_engine_run *run);
/*
 * The metadata of an event in a task or, with `is_inner`, in a model or tool that the task calls.
 */
HD_MUST_CHECK struct hd_val *hd_stream_metadata(const struct hd_task *task, bool is_inner);

/* stream_events.c */
HD_MUST_CHECK int hd_stream_map_events(const struct hd_mapping *m);

#endif
