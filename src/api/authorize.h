/*
 * Custom auth, operation by operation: before a route does its work, the project's handler for what
 * it does is asked (hd_endpoint.on; gate/auth_worker.h). It may refuse, change what was sent, and
 * say by a filter which things the caller sees. What it does not see is not there, in the same
 * words.
 *
 * The handler is asked on the loop, between two visits to store threads: first the body is read,
 * then the question is asked, then the work is done with the body as the handler left it. Where
 * there is no handler nothing of this happens.
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

/* How a call goes on. */
struct hd_authorize_steps {
    hd_work_fn prepare; /* store thread: up to the body; HD_CALL_GOES_ON: so far it is good */
    hd_work_fn work;    /* store thread: the route's */
    void (*go_on)(struct hd_call *call, int err);
    void (*otherwise)(struct hd_call *call); /* loop: nobody is to be asked */
};

/* Loop. `steps` must stay. */
void hd_authorize(struct hd_call *call, const struct hd_authorize_steps *steps);
/* The call ends. */
void hd_authorize_free(struct hd_call *call);

/* Loop: sends what the project's code has to say to somebody whom it turns away. */
void hd_authorize_refuse(struct hd_call *call, const struct hd_auth_refusal *refusal);

/* ---- for routes, on store threads ------------------------------------- */

/* There is a filter; otherwise everything is seen. */
bool hd_call_is_filtered(const struct hd_call *call, enum hd_resource resource);
/* Whether the caller sees a thing with these metadata (JSON, or empty). */
HD_MUST_CHECK int hd_call_sees(struct hd_call *call, enum hd_resource resource,
                               struct hd_slice metadata, bool *out);
/* An item: a filter is about the members of its value, `namespace` and `key`. */
HD_MUST_CHECK int hd_call_sees_item(struct hd_call *call, const struct hd_item_rec *item,
                                    bool *out);
/* A handler has made the metadata of the body, and what it says of the owner is to stay. */
bool hd_call_is_stamped(const struct hd_call *call);

#endif
