/*
 * The records of rooms as clients see them, in responses and in the data of events. Pure: the
 * writers add one JSON value to a hd_jw, which keeps the first error. Absent values are null.
 * Principals are not shown.
 */
#ifndef HD_ROOM_ROOM_VIEW_H
#define HD_ROOM_ROOM_VIEW_H

#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "room/room.h"

/* The sender or a reader of messages. */
struct hd_room_person {
    enum hd_room_sender kind;
    struct hd_slice key;  /* hd_room_message_rec.sender; not shown */
    struct hd_slice id;   /* subject, assistant id, or name of the service */
    struct hd_slice name; /* as it is displayed */
};

/* A run of the room, with its status, which is read from the record of the run. */
struct hd_room_view_run {
    struct hd_slice run_id;
    struct hd_slice assistant_id;
    struct hd_slice trigger; /* a message id; or empty */
    struct hd_slice answer;
    struct hd_slice status; /* hd_run_state_name(); empty: the run is not there any more */
};

/* {"type", "id", "name"}. */
void hd_room_view_person(struct hd_jw *jw, const struct hd_room_person *person);
/* The sender of a message. */
void hd_room_view_sender(struct hd_jw *jw, const struct hd_room_message_rec *message);

/* The run of a room_run record. `status`: hd_run_state_name(). */
struct hd_room_view_run hd_room_view_run_of(const struct hd_room_run_rec *run,
                                            struct hd_slice status);
/* {"run_id", "assistant_id", "trigger", "answer", "status"}. */
void hd_room_view_run(struct hd_jw *jw, const struct hd_room_view_run *run);

/* `content`: of the current version; NULL or zeroed: none. `runs`: those that it triggered. */
void hd_room_view_message(struct hd_jw *jw, const struct hd_room_message_rec *message,
                          const struct hd_room_content_rec *content,
                          const struct hd_room_view_run *runs, size_t run_count);

/* The same without the brackets: members of an object that is being written. */
void hd_room_view_message_members(struct hd_jw *jw, const struct hd_room_message_rec *message,
                                  const struct hd_room_content_rec *content,
                                  const struct hd_room_view_run *runs, size_t run_count);

void hd_room_view_cascade(struct hd_jw *jw, const struct hd_cascade_rec *cascade);

/* What the record of a room does not have. */
struct hd_room_view {
    const struct hd_room_rec *room;
    const struct hd_room_agent *agents;
    size_t agent_count;
    const struct hd_room_person *people;
    size_t people_count;
    const struct hd_room_person *me;
    int64_t unread;
};
void hd_room_view_room(struct hd_jw *jw, const struct hd_room_view *view);

/* ---- the data of events, appended to `out` ---------------------------- */

HD_MUST_CHECK int hd_room_view_message_event(struct hd_buf *out,
                                             const struct hd_room_message_rec *message,
                                             const struct hd_room_content_rec *content,
                                             const struct hd_room_view_run *runs, size_t run_count);
HD_MUST_CHECK int hd_room_view_run_event(struct hd_buf *out, const struct hd_room_view_run *run);
HD_MUST_CHECK int hd_room_view_cascade_event(struct hd_buf *out,
                                             const struct hd_cascade_rec *cascade);

#endif
