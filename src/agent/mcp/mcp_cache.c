/* A small map with times to live. */
#include "agent/mcp/mcp_cache.h"

#include "agent/agent_internal.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"

#define MAX_ENTRIES 256
#define MAX_KEY ((size_t)64 << 10)

struct mcp_cache_entry {
    struct hd_val *val;
    int64_t expires_us;
};

struct hd_mcp_cache {
    struct hd_map map;
};

static struct hd_mcp_cache *cache_of(const struct hd_engine_run *run)
{
    struct hd_agents *agents = hd_agents_of_run(run);

    if (!agents || agents->options.recorder)
        return NULL;
    if (!agents->mcp) {
        agents->mcp = hd_calloc(1, sizeof(*agents->mcp));
        if (agents->mcp)
            hd_map_init(&agents->mcp->map, MAX_ENTRIES);
    }
    return agents->mcp;
}

static void free_entry(struct mcp_cache_entry *entry)
{
    if (entry)
        hd_val_unref(entry->val);
    hd_free(entry);
}

static int make_cache_key(struct hd_buf *out, const struct hd_engine_run *run,
                          enum hd_mcp_cached kind, struct hd_slice url, struct hd_slice credentials)
{
    int err = hd_buf_append_byte(out, (uint8_t)('0' + (int)kind));

    if (!err)
        err = hd_buf_append_lenslice(out, run->options.actor);
    if (!err)
        err = hd_buf_append_lenslice(out, url);
    return err ? err : hd_buf_append_slice(out, credentials);
}

const struct hd_val *hd_mcp_cache_get(const struct hd_engine_run *run, enum hd_mcp_cached kind,
                                      struct hd_slice url, struct hd_slice credentials)
{
    struct hd_mcp_cache *cache = cache_of(run);
    struct mcp_cache_entry *entry = NULL;
    struct hd_buf key;

    if (!cache)
        return NULL;
    hd_buf_init(&key, MAX_KEY);
    if (make_cache_key(&key, run, kind, url, credentials) == 0)
        entry = hd_map_get(&cache->map, hd_buf_slice(&key));
    hd_buf_fini(&key);
    return entry && entry->expires_us > hd_clock_monotonic_us() ? entry->val : NULL;
}

/* Evicts an expired entry, or any if none has expired. */
static void evict_entry(struct hd_mcp_cache *cache)
{
    int64_t now = hd_clock_monotonic_us();
    struct hd_slice key, victim = {0};
    size_t pos = 0;
    void *value;

    if (cache->map.count < MAX_ENTRIES)
        return;
    while (hd_map_next(&cache->map, &pos, &key, &value)) {
        victim = key;
        if (((struct mcp_cache_entry *)value)->expires_us <= now)
            break;
    }
    free_entry(hd_map_remove(&cache->map, victim));
}

static int keep_entry(struct hd_mcp_cache *cache, struct hd_slice key, const struct hd_val *val,
                      int64_t ttl_ms)
{
    struct mcp_cache_entry *entry = hd_calloc(1, sizeof(*entry));
    int err;

    if (!entry)
        return HD_ENOMEM;
    evict_entry(cache);
    entry->val = hd_val_ref(val);
    entry->expires_us = hd_clock_monotonic_us() + ttl_ms * 1000;
    err = hd_map_put(&cache->map, key, entry);
    if (err)
        free_entry(entry);
    return err;
}

void hd_mcp_cache_put(const struct hd_engine_run *run, enum hd_mcp_cached kind, struct hd_slice url,
                      struct hd_slice credentials, struct hd_val *val, int64_t ttl_ms)
{
    struct hd_mcp_cache *cache = cache_of(run);
    struct hd_buf key;

    hd_buf_init(&key, MAX_KEY);
    if (cache && make_cache_key(&key, run, kind, url, credentials) == 0) {
        free_entry(hd_map_remove(&cache->map, hd_buf_slice(&key)));
        if (val && ttl_ms > 0)
            (void)keep_entry(cache, hd_buf_slice(&key), val, ttl_ms);
    }
    hd_buf_fini(&key);
    hd_val_unref(val);
}

void hd_mcp_cache_destroy(struct hd_mcp_cache *cache)
{
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    if (!cache)
        return;
    while (hd_map_next(&cache->map, &pos, &key, &value))
        free_entry(value);
    hd_map_fini(&cache->map);
    hd_free(cache);
}
