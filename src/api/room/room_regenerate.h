/*
 * Requests that change a room by a cascade (run/room_cascade.h): they reserve numbers for events on
 * the loop, store the change on a store thread, and let the cascade continue.
 */
#ifndef HD_API_ROOM_ROOM_REGENERATE_H
#define HD_API_ROOM_ROOM_REGENERATE_H

#include "api/api.h"
#include "run/cascade/room_cascade.h"

typedef void (*hd_room_regenerate_show_fn)(struct hd_call *call, const struct hd_room_cascade *op);

/*
 * For `work`, with the request's members of `op`: sets those that all calls have, and the function
 * that writes the response. A dry run is done; otherwise HD_NEXT, and the route's `then` is
 * hd_room_regenerate_then().
 */
struct hd_step hd_room_regenerate_begin(struct hd_call *call, const struct hd_room_cascade *op,
                                        hd_room_regenerate_show_fn show);
struct hd_step hd_room_regenerate_then(struct hd_call *call);

#endif
