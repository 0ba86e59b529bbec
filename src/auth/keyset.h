/*
 * Caching rules for an issuer's key set: when to use it, fetch it or wait for it. Pure: the caller
 * passes the time and does the fetching.
 *
 * A set is fresh for as long as the response allows, at least 5 and at most 60 minutes. Then it is
 * fetched again, at first in the background. If that fails, the last valid set is kept for a day.
 * An unknown key id triggers an immediate fetch, at most once per minute for all requests.
 */
#ifndef HD_AUTH_KEYSET_H
#define HD_AUTH_KEYSET_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/jwk.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_KEYS_MIN_FRESH_US (INT64_C(5) * 60 * 1000000)
#define HD_KEYS_MAX_FRESH_US (INT64_C(60) * 60 * 1000000)
#define HD_KEYS_GRACE_US (INT64_C(5) * 60 * 1000000)   /* used while it is fetched again */
#define HD_KEYS_KEPT_US (INT64_C(24) * 3600 * 1000000) /* if fetching fails */
#define HD_KEYS_FORCED_US (INT64_C(60) * 1000000)      /* between two fetches for unknown key ids */
#define HD_KEYS_RETRY_US (INT64_C(5) * 1000000)        /* after a failure */

/* All zero: empty. */
struct hd_keyset {
    struct hd_jwks *set; /* NULL: none */
    int64_t fetched_at;  /* time of `set` */
    int64_t fresh_until;
    int64_t retry_at;  /* after a failure: no fetch before this */
    int64_t forced_at; /* last fetch for an unknown key id; 0: never */
    bool is_fetching;
    bool has_failed; /* the last fetch failed */
};

enum hd_keys_answer {
    HD_KEYS_READY,  /* use the set, even if stale */
    HD_KEYS_WAIT,   /* until the running fetch ends */
    HD_KEYS_MISSING /* there is no set, and fetching failed recently */
};

void hd_keyset_fini(struct hd_keyset *keys);

/* fetch: start fetching now. */
enum hd_keys_answer hd_keyset_ask(struct hd_keyset *keys, int64_t now_us, bool *fetch);
/*
 * The key was not in the set. READY: fetching again would not help; MISSING: no set is available.
 */
enum hd_keys_answer hd_keyset_ask_again(struct hd_keyset *keys, int64_t now_us, bool *fetch);
/*
 * Stores the result of a fetch; `body` empty: it failed. An invalid key set changes nothing.
 * `max_age_s` < 0: not given in the response. HD_EINVAL, with the reason, when there is no new set.
 */
HD_MUST_CHECK int hd_keyset_fetched(struct hd_keyset *keys, struct hd_slice body, int64_t max_age_s,
                                    int64_t now_us, const char **reason);

#endif
