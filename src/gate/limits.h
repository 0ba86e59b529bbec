/*
 * What one principal may have: requests in a minute, runs in flight, open streams, bytes stored.
 * A limit of 0 is none. The empty principal, while nobody authenticates, has none.
 *
 * Safe to use from any thread. What is counted belongs to this process: several servers on one
 * database each allow as much.
 */
#ifndef HD_GATE_LIMITS_H
#define HD_GATE_LIMITS_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct heddle;
struct hd_limits;

enum hd_limit { HD_LIMIT_REQUESTS, HD_LIMIT_RUNS, HD_LIMIT_STREAMS, HD_LIMIT_BYTES, HD_LIMITS };

struct hd_limits_config {
    int64_t most[HD_LIMITS];
};

HD_MUST_CHECK int hd_limits_create(const struct hd_limits_config *config, struct hd_limits **out);
void hd_limits_destroy(struct hd_limits *limits);

/* "requests", "runs", "streams", "bytes". */
const char *hd_limit_name(enum hd_limit limit);
/* How often somebody was refused for it. */
uint64_t hd_limits_refused(const struct hd_limits *limits, enum hd_limit limit);

/*
 * All of these answer 0 when there is room, else the number of seconds after which it makes
 * sense to try again. Without memory there is room.
 */

/* One more request. A minute's worth may come at once. */
HD_MUST_CHECK int hd_limits_request(struct hd_limits *limits, struct hd_slice principal);

/* One more run or stream; hd_limits_give() when it is over, once for each that had room. */
HD_MUST_CHECK int hd_limits_take(struct hd_limits *limits, struct hd_slice principal,
                                 enum hd_limit limit);
void hd_limits_give(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit);
/* Takes whether or not there is room: a run that was admitted by an earlier process. */
void hd_limits_hold(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit);

/*
 * Whether more may be stored. Measures now and then, so it waits for the store: for store threads.
 * HD_E…: it could not measure; *retry is untouched.
 */
HD_MUST_CHECK int hd_limits_room(struct hd_limits *limits, struct heddle *store,
                                 struct hd_slice principal, int *retry, struct hd_fault *fault);
/* Something was deleted: measure again. */
void hd_limits_freed(struct hd_limits *limits, struct hd_slice principal);

/* Bytes of a principal's threads, assistants, crons and items. Waits for the store. */
HD_MUST_CHECK int hd_principal_bytes(struct heddle *store, struct hd_slice principal, int64_t *out,
                                     struct hd_fault *fault);

#endif
