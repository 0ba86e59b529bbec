/* Members of bodies that several endpoints of rooms have. For store threads. */
#ifndef HD_API_ROOM_ROOM_BODY_H
#define HD_API_ROOM_ROOM_BODY_H

#include "api/api.h"

/* `content`: a string or a list of content blocks, which is not empty. */
HD_MUST_CHECK int hd_room_body_content(struct hd_call *call, struct hd_slice *out);
/* `metadata`: an object without secrets; empty when it is absent. */
HD_MUST_CHECK int hd_room_body_metadata(struct hd_call *call, struct hd_slice *out);

#endif
