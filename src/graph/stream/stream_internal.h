/* What stream.c and stream_events.c share. */
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

/* Gives it to whom it may concern. Takes `data`; NULL is HD_ENOMEM. */
HD_MUST_CHECK int hd_mapping_give(const struct hd_mapping *m, enum hd_stream_mode mode,
                                  struct hd_val *data);

/* What an UPDATE shows: an object of channels, a list of such, or null. */
HD_MUST_CHECK struct hd_val *hd_stream_update(const struct hd_event *event);
/* The questions of an INTERRUPT, a list. */
HD_MUST_CHECK struct hd_val *hd_stream_questions(const struct hd_event *event);
/* The run's own, and what is known of it by its configuration. */
HD_MUST_CHECK struct hd_val *hd_stream_run_metadata(const struct hd_run *run);
/* Of something that happens in a task, or, `is_inner`, of what the task has called. */
HD_MUST_CHECK struct hd_val *hd_stream_metadata(const struct hd_task *task, bool is_inner);

/* stream_events.c */
HD_MUST_CHECK int hd_stream_map_events(const struct hd_mapping *m);

#endif
