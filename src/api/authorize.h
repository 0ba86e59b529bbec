/*
 * Custom auth per operation: before a route does its work, the project's handler for its event runs
 * (hd_endpoint.on; gate/auth_worker.h). The handler may refuse, change the body, and return a
 * filter that limits the records the caller sees. Hidden and nonexistent records are
 * indistinguishable.
 *
 * The handler is queried on the loop, between two visits to store threads: the first parses the
 * body, the second does the work with the body as the handler changed it. Without a handler the
 * call takes one visit.
 */
#ifndef HD_API_AUTHORIZE_H
#define HD_API_AUTHORIZE_H

#include <stdbool.h>

#include "api/api.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_auth_refusal;
struct hd_item_rec;

enum hd_resource { HD_OF_THREADS, HD_OF_ASSISTANTS, HD_OF_CRONS, HD_OF_STORE, HD_RESOURCES };

/* The steps of a call around its authorization. */
struct hd_authorize_steps {
    hd_work_fn prepare; /* store thread: parses the body; HD_CALL_CONTINUES: success */
    hd_work_fn work;    /* store thread: the route's */
    void (*resume)(struct hd_call *call, int err);
    void (*otherwise)(struct hd_call *call); /* loop: no handler applies */
};

/* Loop. `steps` must stay. */
void hd_authorize(struct hd_call *call, const struct hd_authorize_steps *steps);
/* The call ends. */
void hd_authorize_free(struct hd_call *call);

/* Loop: sends the refusal of the project's handler. */
void hd_authorize_refuse(struct hd_call *call, const struct hd_auth_refusal *refusal);

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
