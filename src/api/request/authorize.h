/*
 * Custom auth per operation: before a route does its work, the project's handler for its event runs
 * (hd_endpoint.on; gate/auth_worker.h). The handler may refuse, change the body, and return a
 * filter that limits the records the caller sees. Hidden and nonexistent records are
 * indistinguishable.
 *
 * The handler is called on the loop, between two visits to store threads: the first parses the
 * body, the second does the work with the body as the handler changed it. A request with several
 * events repeats HD_STAGE_AUTHORIZE and HD_STAGE_APPLY. Without a handler the call takes one visit.
 */
#ifndef HD_API_REQUEST_AUTHORIZE_H
#define HD_API_REQUEST_AUTHORIZE_H

#include <stdbool.h>

#include "api/api.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_auth_refusal;
struct hd_item_rec;

enum hd_resource { HD_OF_THREADS, HD_OF_ASSISTANTS, HD_OF_CRONS, HD_OF_STORE, HD_RESOURCES };

/* ---- stages (pipeline.h) ---------------------------------------------- */

/* HD_STAGE_FIND_HANDLERS, when the project has its own auth and the route has an event. */
bool hd_authorize_applies(const struct hd_call *call);
struct hd_step hd_authorize_find_handlers(struct hd_call *call);
/* HD_STAGE_EVENT: builds the first event. */
bool hd_authorize_has_handler(const struct hd_call *call);
struct hd_step hd_authorize_first_event(struct hd_call *call);
/* HD_STAGE_AUTHORIZE: sends the event; HD_STAGE_APPLY: applies the reply, builds the next event. */
bool hd_authorize_has_event(const struct hd_call *call);
struct hd_step hd_authorize_send_event(struct hd_call *call);
struct hd_step hd_authorize_apply(struct hd_call *call);
/* The call ends. */
void hd_authorize_free(struct hd_call *call);

/* Loop: the refusal of the project's handler. */
struct hd_step hd_authorize_refuse(struct hd_call *call, const struct hd_auth_refusal *refusal);

/* ---- for routes, on store threads ------------------------------------- */

/* True when a filter applies; otherwise every record is visible. */
bool hd_call_is_filtered(const struct hd_call *call, enum hd_resource resource);
/* *out: the caller may see a record with this metadata (JSON, or empty). */
HD_MUST_CHECK int hd_call_sees(struct hd_call *call, enum hd_resource resource,
                               struct hd_slice metadata, bool *out);
/* An item: a filter is about the members of its value, `namespace` and `key`. */
HD_MUST_CHECK int hd_call_sees_item(struct hd_call *call, const struct hd_item_rec *item,
                                    bool *out);
/* A handler has set the metadata of the body, so its owner member is stored as it is. */
bool hd_call_is_stamped(const struct hd_call *call);

#endif
