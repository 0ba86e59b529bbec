/*
 * Limits of a principal: requests per minute, active runs, open streams, stored bytes. 0 means no
 * limit. The empty principal (authentication is off) has none.
 *
 * Thread-safe. Counts are per process. In a cluster each server allows its share of requests and
 * streams: the limit divided by the number of live servers. Runs are counted in the store
 * (records/run_slot.h), and bytes are measured there.
 */
#ifndef HD_GATE_LIMITS_H
#define HD_GATE_LIMITS_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_cluster;
struct heddle;
struct hd_limits;

enum hd_limit { HD_LIMIT_REQUESTS, HD_LIMIT_RUNS, HD_LIMIT_STREAMS, HD_LIMIT_BYTES, HD_LIMITS };

struct hd_limits_config {
    int64_t most[HD_LIMITS];
};

HD_MUST_CHECK int hd_limits_create(const struct hd_limits_config *config, struct hd_limits **out);
void hd_limits_destroy(struct hd_limits *limits);
/* Before its first use; NULL: the server uses its store alone. */
void hd_limits_set_cluster(struct hd_limits *limits, struct hd_cluster *cluster);

/* "requests", "runs", "streams", "bytes". */
const char *hd_limit_name(enum hd_limit limit);
/* The number of refusals. */
uint64_t hd_limits_refused(const struct hd_limits *limits, enum hd_limit limit);

/*
 * These return 0 when permitted, else the number of seconds to wait before a retry. Out of memory
 * permits.
 */

/* Counts a request. Bursts up to the limit of one minute are permitted. */
HD_MUST_CHECK int hd_limits_request(struct hd_limits *limits, struct hd_slice principal);

/* Counts a run or stream; hd_limits_give() at its end, once for each that was permitted. */
HD_MUST_CHECK int hd_limits_take(struct hd_limits *limits, struct hd_slice principal,
                                 enum hd_limit limit);
void hd_limits_give(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit);
/*
 * The most runs of the principal on all servers of the cluster, to be counted in the store; 0: no
 * limit, or no cluster. hd_limits_take() permits any number of them then.
 */
int64_t hd_limits_cluster_runs(const struct hd_limits *limits, struct hd_slice principal);
/* Counts a refusal by that limit. */
HD_MUST_CHECK int hd_limits_refuse_run(struct hd_limits *limits);
/* Counts without a check: for runs that an earlier process admitted. */
void hd_limits_hold(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit);

/*
 * Checks the stored bytes. Measures from time to time, so it waits for the store: for store
 * threads. On error *retry is untouched.
 */
HD_MUST_CHECK int hd_limits_room(struct hd_limits *limits, struct heddle *store,
                                 struct hd_slice principal, int *retry, struct heddle_error *fault);
/* Measures again at the next check, after a deletion. */
void hd_limits_freed(struct hd_limits *limits, struct hd_slice principal);

/* Bytes of a principal's threads, assistants, crons and items. Waits for the store. */
HD_MUST_CHECK int hd_limits_principal_bytes(struct heddle *store, struct hd_slice principal,
                                            int64_t *out, struct heddle_error *fault);

#endif
