/*
 * The key set of an issuer: when to use it, to fetch it, to wait for it. Pure: times are given, and
 * whoever asks does the fetching that he is told to do.
 *
 * A set is fresh as long as the answer said, but at least 5 and at most 60 minutes. Then it is
 * fetched anew, at first in the background. When that fails the last good one is kept for a day. A
 * key id that is not in it makes it be fetched at once, but not more than once in a minute, whoever
 * asks for whatever.
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
#define HD_KEYS_GRACE_US (INT64_C(5) * 60 * 1000000)   /* used while it is fetched anew */
#define HD_KEYS_KEPT_US (INT64_C(24) * 3600 * 1000000) /* when it cannot be */
#define HD_KEYS_FORCED_US (INT64_C(60) * 1000000)      /* between two for unknown key ids */
#define HD_KEYS_RETRY_US (INT64_C(5) * 1000000)        /* after one that failed */

/* All zero: nothing is known. */
struct hd_keyset {
    struct hd_jwks *set; /* NULL: there is none */
    int64_t fetched_at;  /* that one */
    int64_t fresh_until;
    int64_t retry_at;  /* not before, after a failure */
    int64_t forced_at; /* the last time; 0: never */
    bool is_fetching;
    bool has_failed; /* the last time */
};

enum hd_keys_answer {
    HD_KEYS_READY,  /* use the set, such as it is */
    HD_KEYS_WAIT,   /* until the fetching that is under way has ended */
    HD_KEYS_MISSING /* there is no set and there will be none soon */
};

void hd_keyset_fini(struct hd_keyset *keys);

/* *fetch: start fetching, now. */
enum hd_keys_answer hd_keyset_ask(struct hd_keyset *keys, int64_t now_us, bool *fetch);
/* The key was not in the set. READY: it will not get better; MISSING: nobody knows. */
enum hd_keys_answer hd_keyset_ask_again(struct hd_keyset *keys, int64_t now_us, bool *fetch);
/*
 * It was fetched; `body` empty: it could not be. Whatever is no key set changes nothing.
 * `max_age_s` < 0: the answer did not say. HD_EINVAL, with the reason, when there is no new set.
 */
HD_MUST_CHECK int hd_keyset_fetched(struct hd_keyset *keys, struct hd_slice body, int64_t max_age_s,
                                    int64_t now_us, const char **reason);

#endif
