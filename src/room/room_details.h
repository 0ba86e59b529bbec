/*
 * What clients see of chat messages besides their records: the content of the current version, and
 * the runs that they made with their status. For store threads.
 */
#ifndef HD_ROOM_ROOM_DETAILS_H
#define HD_ROOM_ROOM_DETAILS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "room/room.h"
#include "room/room_view.h"

struct hd_room_details {
    struct hd_room_content_rec content; /* zeroed: none, or the message was deleted */
    struct hd_room_view_run *runs;      /* those that it triggered, by run id */
    size_t run_count;
};

/*
 * The details of messages, also of several rooms; out[i] are those of messages[i]. The number of
 * round trips does not depend on the count. In the arena.
 */
HD_MUST_CHECK int hd_room_details_read(struct heddle *store,
                                       const struct hd_room_message_rec *messages, size_t count,
                                       struct hd_arena *arena, struct hd_room_details *out,
                                       struct heddle_error *fault);

/* The views of runs, with their status; in the arena. One round trip. */
HD_MUST_CHECK int hd_room_details_runs(struct heddle *store, const struct hd_room_run_rec *runs,
                                       size_t count, struct hd_arena *arena,
                                       struct hd_room_view_run **out, struct heddle_error *fault);

/* hd_room_view_message() with the details. */
void hd_room_details_view(struct hd_jw *jw, const struct hd_room_message_rec *message,
                          const struct hd_room_details *details);
/* The same without the brackets. */
void hd_room_details_view_members(struct hd_jw *jw, const struct hd_room_message_rec *message,
                                  const struct hd_room_details *details);

#endif
