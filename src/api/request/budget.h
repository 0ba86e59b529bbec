/* Memory of responses. A response may have max_answer bytes, and all responses that are being built
 * or sent answer_memory bytes together. Values read for a response are counted by the lengths in
 * their references, before they are read; the finished response counts until it has been sent. */
#ifndef HD_API_REQUEST_BUDGET_H
#define HD_API_REQUEST_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/request/pipeline.h"
#include "base/compiler.h"
#include "store/allowance.h"

struct hd_call;

/* Bytes of all responses of a server. */
struct hd_answers {
    _Atomic uint64_t held;
};

/* Of one call; zero-initialised by its creation. */
struct hd_budget {
    struct hd_allowance allowance; /* the values read for the response */
    struct hd_call *call;
    bool is_over; /* a value was too large for the response */
    bool is_busy; /* … for all responses together */
    size_t shown; /* complete elements of the response's list */
};

void hd_budget_init(struct hd_call *call);

/*
 * At the end of a visit to a store thread, whose last stage has returned `step`. Counts the
 * response, and turns one that is too large into a 422 with a `limit` that fits, or into a 503 when
 * there is no memory for it now. Returns the step to continue with.
 */
HD_MUST_CHECK struct hd_step hd_budget_settle(struct hd_call *call, struct hd_step step);

#endif
