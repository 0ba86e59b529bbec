/*
 * A copy of a room in another thread: its settings, messages in their current versions, and which
 * message made which run. No older versions, read marks, mentions, cascades or messages that wait
 * behind a question: these concern the people of the source. Senders stay. An open question of a
 * cascade is stale in the copy.
 *
 * A branch is a copy up to a message: later messages, those that were deleted and those that were
 * replaced are left out. An answer that was regenerated has the place of the one that it replaces.
 *
 * For store threads. The source may change meanwhile: what was posted after hd_room_copy_read() is
 * not in the copy.
 */
#ifndef HD_ROOM_ROOM_COPY_H
#define HD_ROOM_ROOM_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/map.h"
#include "base/slice.h"
#include "room/room.h"

struct hd_room_copy {
    struct hd_room_rec room;              /* of the source; rev 0. The caller may change agents */
    struct hd_room_message_rec *messages; /* of the copy, by seq */
    size_t count;
    struct hd_map ids; /* of these messages */
    /* Of a branch: the last answer of each line, which ends at its checkpoint; the newest first. */
    const struct hd_room_message_rec **heads;
    size_t head_count;
};

/*
 * Reads the source into the arena. `up_to`: the seq of the last message of a branch; 0: a full
 * copy, with marks of deleted messages and no heads. HD_ENOTFOUND: the thread is no room. End *out
 * with hd_room_copy_fini(), also after an error.
 */
HD_MUST_CHECK int hd_room_copy_read(struct heddle *store, struct hd_slice principal,
                                    struct hd_slice thread_id, int64_t up_to,
                                    struct hd_arena *arena, struct hd_room_copy *out,
                                    struct heddle_error *fault);
void hd_room_copy_fini(struct hd_room_copy *copy);

/*
 * Writes the rows of the copy to a thread without other writers, in several batches, and
 * appends the record of the room to `last`. Those rows stay after an error.
 */
HD_MUST_CHECK int hd_room_copy_write(struct heddle *store, struct hd_room_copy *copy,
                                     struct hd_slice principal, struct hd_slice thread_id,
                                     struct hd_batch_builder *last, struct heddle_error *fault);

#endif
