/*
 * Rooms in threads that become the caller's: copies and branches (room/room_copy.h). For store
 * threads.
 */
#ifndef HD_API_ROOM_ROOM_COPIES_H
#define HD_API_ROOM_ROOM_COPIES_H

#include "api/api.h"
#include "records/record.h"
#include "room/room_copy.h"

/*
 * Reads the room of `source`, with the agents that the caller may use: those that others brought
 * into the room are no agents of the copy. End *out with hd_room_copy_fini(), also after an error.
 */
HD_MUST_CHECK int hd_room_copies_read(struct hd_call *call, const struct hd_thread_rec *source,
                                      int64_t up_to, struct hd_room_copy *out);
/*
 * Writes the copy into the new thread `target`, all of it read by the caller, and appends to `last`
 * what makes it a room.
 */
HD_MUST_CHECK int hd_room_copies_write(struct hd_call *call, struct hd_room_copy *copy,
                                       const struct hd_thread_rec *target,
                                       struct hd_batch_builder *last);

#endif
