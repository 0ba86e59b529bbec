/* Events as the HTTP API shows them, where that is not what the engine says. */
#ifndef HD_EVENTS_EVENT_FORMAT_H
#define HD_EVENTS_EVENT_FORMAT_H

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "value/val.h"

/*
 * Checkpoints (of the modes `checkpoints` and `debug`) name their place as
 * `checkpoint` and `parent_checkpoint` too, with namespaces below `root`, which
 * may be empty. Everything else as it is. NULL: no memory.
 */
HD_MUST_CHECK struct hd_val *hd_shape_event(enum hd_stream_mode mode, const struct hd_val *data,
                                            struct hd_slice root);

#endif
