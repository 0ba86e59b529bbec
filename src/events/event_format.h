/* The format of events in the HTTP API, where it differs from the engine's. */
#ifndef HD_EVENTS_EVENT_FORMAT_H
#define HD_EVENTS_EVENT_FORMAT_H

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "value/val.h"

/*
 * Returns the data of an event for clients; NULL: no memory. Adds the members `checkpoint` and
 * `parent_checkpoint` to checkpoints (modes `checkpoints` and `debug`), with `root`, which may be
 * empty, before their namespaces. Other events are unchanged.
 */
HD_MUST_CHECK struct hd_val *hd_shape_event(enum hd_stream_mode mode, const struct hd_val *data,
                                            struct hd_slice root);

#endif
