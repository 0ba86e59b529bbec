/*
 * metadata.owner: the owner of a thread, an assistant or a cron, which clients may filter by. With
 * authentication the server sets it to the subject of the creator; only a custom auth handler can
 * change it (request/authorize.h).
 */
#ifndef HD_API_OWNER_H
#define HD_API_OWNER_H

#include "api/api.h"

/* For a record that the caller creates; *metadata is JSON, or empty. */
HD_MUST_CHECK int hd_owner_set(struct hd_call *call, struct hd_slice *metadata);
/* hd_call_merge() that keeps the owner. */
HD_MUST_CHECK int hd_owner_merge(struct hd_call *call, hd_json_val more, struct hd_slice *metadata);

#endif
