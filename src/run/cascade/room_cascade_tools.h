/* The tools that a run of a room and its delegates have called: from the states around the run. */
#ifndef HD_RUN_ROOM_CASCADE_TOOLS_H
#define HD_RUN_ROOM_CASCADE_TOOLS_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "run/cascade/room_cascade_past.h"

/*
 * Sets the names in extras[index].tools, and past[index].has_effects: true unless each call was
 * that of a delegate, whose own calls count, or has a tool message that is marked as `read_only` in
 * its `additional_kwargs`. `fork`: where the run began. For store threads.
 */
HD_MUST_CHECK int hd_room_cascade_tools_read(struct hd_room_cascade_past *past, size_t index,
                                             struct hd_slice fork, struct heddle_error *fault);

#endif
