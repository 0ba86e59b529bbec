/*
 * Memory of answers. An answer may have max_answer bytes, and all answers that are being built or
 * sent answer_memory bytes together. Values that are read for an answer are counted by the lengths
 * in their references, before they are read; the finished answer counts until it has been sent.
 */
#ifndef HD_API_BUDGET_H
#define HD_API_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "store/allowance.h"

struct hd_call;

/* Bytes of all answers of a server. */
struct hd_answers {
    _Atomic uint64_t held;
};

/* Of one call; zero-initialised by its creation. */
struct hd_budget {
    struct hd_allowance allowance; /* the values that the answer is made of */
    struct hd_call *call;
    bool is_over; /* a value was too large for the answer */
    bool is_busy; /* … for all answers together */
    size_t shown; /* elements of the answer's list that are complete */
};

void hd_budget_init(struct hd_call *call);

/*
 * To be called when the answer is complete or `err` ended it, on the thread that built it. Counts
 * what was built, and turns an answer that is too large into a 422 that names the `limit` that
 * fits, or into a 503 when there is no memory for it now. Returns what the work then has to return.
 */
HD_MUST_CHECK int hd_budget_settle(struct hd_call *call, int err);

#endif
