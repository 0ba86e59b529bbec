/*
 * metadata.owner: whose a thread, an assistant or a cron is, as clients see it and may filter by.
 * Where users authenticate the server sets it to the subject of who made the thing, and nobody
 * changes it, but a handler of the project's own (authorize.h).
 */
#ifndef HD_API_OWNER_H
#define HD_API_OWNER_H

#include "api/api.h"

/* Of something that the caller makes; *metadata is JSON, or empty. */
HD_MUST_CHECK int hd_owner_set(struct hd_call *call, struct hd_slice *metadata);
/* hd_call_merge() that leaves the owner as it was. */
HD_MUST_CHECK int hd_owner_merge(struct hd_call *call, hd_json_val more, struct hd_slice *metadata);

#endif
