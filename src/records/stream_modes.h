/* Stream modes, as clients name them. */
#ifndef HD_RECORDS_STREAM_MODES_H
#define HD_RECORDS_STREAM_MODES_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/engine/events.h"

/* The engine's modes keep their bits. */
enum hd_mode {
    HD_MODE_VALUES = HD_STREAM_VALUES,
    HD_MODE_UPDATES = HD_STREAM_UPDATES,
    HD_MODE_TASKS = HD_STREAM_TASKS,
    HD_MODE_DEBUG = HD_STREAM_DEBUG,
    HD_MODE_CHECKPOINTS = HD_STREAM_CHECKPOINTS,
    HD_MODE_CUSTOM = HD_STREAM_CUSTOM,
    HD_MODE_TUPLES = HD_STREAM_MESSAGES, /* messages-tuple */
    HD_MODE_EVENTS = HD_STREAM_EVENTS,
    HD_MODE_MESSAGES = 1 << 16, /* whole messages as they grow */
    HD_MODE_TOOLS = HD_STREAM_TOOLS,
    /* Of a thread's stream only. */
    HD_MODE_STATE_UPDATE = 1 << 18, /* the state was changed by hand */
    HD_MODE_ROOM = 1 << 19,         /* room/message, room/run, room/cascade */
    HD_MODE_PRESENCE = 1 << 20      /* room/read, room/typing, room/presence */
};

#define HD_MODES_OF_RUNS                                                                      \
    (HD_MODE_VALUES | HD_MODE_UPDATES | HD_MODE_TASKS | HD_MODE_DEBUG | HD_MODE_CHECKPOINTS | \
     HD_MODE_CUSTOM | HD_MODE_TUPLES | HD_MODE_EVENTS | HD_MODE_MESSAGES | HD_MODE_TOOLS)

/* Adds the mode of that name to *modes; HD_EINVAL lists the known modes. */
HD_MUST_CHECK int hd_mode_add(struct hd_slice name, uint32_t *modes, struct heddle_error *fault);
/* The name of number `index`, *mode its bit; NULL after the last. */
const char *hd_mode_at(size_t index, uint32_t *mode);

#endif
