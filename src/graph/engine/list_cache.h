/*
 * A cache of lists that runs have loaded or stored, for the next run on the same thread. That run
 * neither reads and parses a long conversation again nor rewrites it to append to it.
 *
 * Entries may be stale: a load passes the sizes and checksums of the cached values to the store
 * (hd_store_get_unknown()), which returns every value that differs. Other writers to the thread are
 * therefore safe.
 *
 * Each engine has one cache, used on the engine's loop. It is bounded and evicts the least recently
 * used entry.
 */
#ifndef HD_GRAPH_ENGINE_LIST_CACHE_H
#define HD_GRAPH_ENGINE_LIST_CACHE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/list_tracker.h"

struct hd_list_cache;

/* Identifies the lists of one namespace of a thread; `ns` as the store keeps it. */
struct hd_list_cache_key {
    struct hd_slice principal;
    struct hd_slice thread;
    struct hd_slice ns;
};

/* Keeps about `max_bytes`. NULL when memory is exhausted. */
HD_MUST_CHECK struct hd_list_cache *hd_list_cache_create(size_t max_bytes);
void hd_list_cache_destroy(struct hd_list_cache *list_cache);

/* Moves the lists out of `tracker`, by channel of the graph. Drops them if memory is exhausted. */
void hd_list_cache_keep(struct hd_list_cache *list_cache, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *tracker);

/* Moves the cached lists into `tracker`, which is zeroed before. The entry leaves the cache. */
void hd_list_cache_take(struct hd_list_cache *list_cache, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *tracker);

#endif
