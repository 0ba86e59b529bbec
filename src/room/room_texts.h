/* The chat of a room as messages of a state, for the search index. For store threads. */
#ifndef HD_ROOM_ROOM_TEXTS_H
#define HD_ROOM_ROOM_TEXTS_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

struct heddle;

#define HD_ROOM_TEXTS_MOST 500 /* messages, the newest ones */

/*
 * Writes a list of {"type", "content"}, oldest first: the first message, for a label, and the
 * newest ones. Those that were deleted or replaced are left out.
 */
HD_MUST_CHECK int hd_room_texts_write(struct heddle *store, struct hd_slice principal,
                                      struct hd_slice thread_id, struct hd_arena *arena,
                                      struct hd_jw *jw, struct heddle_error *fault);

#endif
