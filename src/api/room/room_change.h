/*
 * A change of one chat message: its row and what belongs to it, the record of the room, and the
 * event room/message, in one batch. The server that holds the thread makes it.
 *
 *   work    hd_room_change_start()
 *   then    hd_room_change_then()
 *
 * The route is answered by HD_BY_HOLDER. The response is written by change->show.
 */
#ifndef HD_API_ROOM_ROOM_CHANGE_H
#define HD_API_ROOM_ROOM_CHANGE_H

#include "api/api.h"
#include "records/record.h"
#include "room/room.h"
#include "room/room_details.h"
#include "store/batch.h"

struct hd_admission_group;
struct hd_event_batch;

struct hd_room_change {
    struct hd_slice message_id;
    /* Store thread, before anything is changed: HD_NEXT, or a refusal. */
    struct hd_step (*check)(struct hd_call *call, struct hd_room_change *change);
    /*
     * Store thread, in each attempt: changes `message`, which is as it is stored, and appends other
     * rows. hd_room_change_refuse() makes an error that is a refusal.
     */
    int (*apply)(struct hd_call *call, struct hd_room_change *change,
                 struct hd_batch_builder *batch);
    /* Loop, after the change: writes the response. */
    void (*show)(struct hd_call *call, struct hd_room_change *change);
    void *ctx;

    struct hd_thread_rec thread;
    struct hd_thread_rec *stored; /* for `apply`: the record that the batch puts */
    struct hd_room_rec room;
    struct hd_room_message_rec message;
    struct hd_room_details details;

    /* Private. */
    struct hd_call *call;
    struct hd_admission_group *group;
    struct hd_event_batch *events;
    bool needs_numbers;
    int64_t until; /* for the reservation of numbers for the events */
    int err;
};

/* `change` is in the arena of the call. */
struct hd_step hd_room_change_start(struct hd_call *call, struct hd_room_change *change);
struct hd_step hd_room_change_then(struct hd_call *call);

/* For `apply` to return. */
HD_MUST_CHECK int hd_room_change_refuse(struct hd_room_change *change, int status,
                                        const char *text);

/* Begins the object of the response with its member `message`; the caller ends it. */
void hd_room_change_show_message(struct hd_call *call, const struct hd_room_change *change);

#endif
