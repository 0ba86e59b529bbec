/*
 * Cache of verified identities by the hash of their credential, with expiry. Evicts the least
 * recently used.
 */
#ifndef HD_AUTH_TOKEN_CACHE_H
#define HD_AUTH_TOKEN_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "auth/identity.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/slice.h"

struct hd_cached; /* private */

struct hd_token_cache {
    struct hd_map map; /* fingerprint to struct hd_cached */
    struct hd_cached *newest, *oldest;
    size_t limit;
};

void hd_token_cache_init(struct hd_token_cache *cache, size_t limit);
void hd_token_cache_fini(struct hd_token_cache *cache);
/* Borrowed until the cache changes; NULL: unknown or expired. */
struct hd_identity *hd_token_cache_get(struct hd_token_cache *cache, struct hd_slice fingerprint,
                                       int64_t now_us);
/* Takes a reference. Out of memory: does nothing. */
void hd_token_cache_put(struct hd_token_cache *cache, struct hd_identity *identity,
                        int64_t until_us);
/* Removes that entry, if present. */
void hd_token_cache_forget(struct hd_token_cache *cache, struct hd_slice fingerprint);
/* Removes all entries of that API key. */
void hd_token_cache_forget_key(struct hd_token_cache *cache, struct hd_slice key_id);

#endif
