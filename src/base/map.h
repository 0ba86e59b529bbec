/*
 * Hash map from byte strings to pointers. Keys are copied in; values are
 * borrowed. Open addressing, grows by doubling up to `limit` entries.
 */
#ifndef HD_BASE_MAP_H
#define HD_BASE_MAP_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_map_entry; /* private */

struct hd_map {
    struct hd_map_entry *entries;
    size_t count;
    size_t cap;
    size_t tombstones;
    size_t limit;
};

void hd_map_init(struct hd_map *map, size_t limit);
void hd_map_fini(struct hd_map *map);

/* NULL when absent. */
void *hd_map_get(const struct hd_map *map, struct hd_slice key);

/* Adds or replaces; 0, HD_ENOMEM or HD_ELIMIT. A NULL value is not allowed. */
HD_MUST_CHECK int hd_map_put(struct hd_map *map, struct hd_slice key, void *value);

/* Returns the value removed, or NULL. */
void *hd_map_remove(struct hd_map *map, struct hd_slice key);

/*
 * Start with *pos = 0; returns 0 at the end. The order is unspecified; do not change the map during
 * the iteration.
 */
int hd_map_next(const struct hd_map *map, size_t *pos, struct hd_slice *key, void **value);

#endif
