#include "auth/token_cache.h"

#include "base/alloc.h"

struct hd_cached {
    struct hd_cached *newer, *older;
    struct hd_identity *identity;
    int64_t until;
};

void hd_token_cache_init(struct hd_token_cache *cache, size_t limit)
{
    *cache = (struct hd_token_cache){.limit = limit};
    hd_map_init(&cache->map, limit);
}

static void unlink_entry(struct hd_token_cache *cache, struct hd_cached *entry)
{
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        cache->newest = entry->older;
    if (entry->older)
        entry->older->newer = entry->newer;
    else
        cache->oldest = entry->newer;
}

static void link_entry(struct hd_token_cache *cache, struct hd_cached *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    if (cache->newest)
        cache->newest->newer = entry;
    else
        cache->oldest = entry;
    cache->newest = entry;
}

static void drop(struct hd_token_cache *cache, struct hd_cached *entry)
{
    unlink_entry(cache, entry);
    (void)hd_map_remove(&cache->map, entry->identity->fingerprint);
    hd_identity_unref(entry->identity);
    hd_free(entry);
}

void hd_token_cache_fini(struct hd_token_cache *cache)
{
    while (cache->oldest)
        drop(cache, cache->oldest);
    hd_map_fini(&cache->map);
    *cache = (struct hd_token_cache){0};
}

struct hd_identity *hd_token_cache_get(struct hd_token_cache *cache, struct hd_slice fingerprint,
                                       int64_t now_us)
{
    struct hd_cached *entry = hd_map_get(&cache->map, fingerprint);

    if (entry && entry->until <= now_us) {
        drop(cache, entry);
        entry = NULL;
    }
    if (!entry)
        return NULL;
    if (entry != cache->newest) {
        unlink_entry(cache, entry);
        link_entry(cache, entry);
    }
    return entry->identity;
}

void hd_token_cache_put(struct hd_token_cache *cache, struct hd_identity *identity,
                        int64_t until_us)
{
    struct hd_cached *entry = hd_map_get(&cache->map, identity->fingerprint);

    if (entry)
        drop(cache, entry);
    if (cache->oldest && cache->map.count >= cache->limit)
        drop(cache, cache->oldest);
    entry = hd_calloc(1, sizeof(*entry));
    if (!entry)
        return;
    if (hd_map_put(&cache->map, identity->fingerprint, entry)) {
        hd_free(entry);
        return;
    }
    entry->identity = hd_identity_ref(identity);
    entry->until = until_us;
    link_entry(cache, entry);
}

void hd_token_cache_forget(struct hd_token_cache *cache, struct hd_slice fingerprint)
{
    struct hd_cached *entry = hd_map_get(&cache->map, fingerprint);

    if (entry)
        drop(cache, entry);
}

void hd_token_cache_forget_key(struct hd_token_cache *cache, struct hd_slice key_id)
{
    struct hd_cached *older;

    for (struct hd_cached *entry = cache->newest; entry; entry = older) {
        older = entry->older;
        if (key_id.len > 0 && hd_slice_eq(entry->identity->key_id, key_id))
            drop(cache, entry);
    }
}
