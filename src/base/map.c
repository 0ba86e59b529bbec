/*
 * Linear probing in a table of a power of two, at most three quarters full. Hashes are stored, so
 * that growing reads no key and most probes compare no bytes. They are seeded per process, because
 * keys come from clients.
 */
#define XXH_INLINE_ALL
#include "base/map.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/uuid.h"

#define FIRST_CAP 16

struct hd_map_entry {
    uint64_t hash;
    char *key; /* NULL: never used; &removed: used once */
    size_t key_len;
    void *value;
};

/* The key of removed entries. */
static char removed;

static bool is_free(const struct hd_map_entry *entry)
{
    return !entry->key;
}

static bool is_tombstone(const struct hd_map_entry *entry)
{
    return entry->key == &removed;
}

static uint64_t seed(void)
{
    static _Atomic uint64_t chosen;
    uint64_t value = atomic_load_explicit(&chosen, memory_order_relaxed), none = 0;

    if (value != 0)
        return value;
    hd_random(&value, sizeof(value));
    value |= 1;
    /* Two threads may race here: the first value wins. */
    return atomic_compare_exchange_strong(&chosen, &none, value) ? value : none;
}

static uint64_t hash_of(struct hd_slice key)
{
    return XXH3_64bits_withSeed(key.ptr ? key.ptr : "", key.len, seed());
}

static bool has_key(const struct hd_map_entry *entry, struct hd_slice key, uint64_t hash)
{
    return entry->hash == hash && !is_tombstone(entry) &&
           hd_slice_eq(hd_slice(entry->key, entry->key_len), key);
}

static struct hd_map_entry *map_find(const struct hd_map *map, struct hd_slice key, uint64_t hash)
{
    size_t mask = map->cap - 1;

    if (map->cap == 0)
        return NULL;
    for (size_t i = hash & mask; !is_free(&map->entries[i]); i = (i + 1) & mask)
        if (has_key(&map->entries[i], key, hash))
            return &map->entries[i];
    return NULL;
}

/* The first slot for a new key with this hash; one always exists. */
static struct hd_map_entry *find_slot(struct hd_map_entry *entries, size_t cap, uint64_t hash)
{
    size_t i = hash & (cap - 1);

    while (!is_free(&entries[i]) && !is_tombstone(&entries[i]))
        i = (i + 1) & (cap - 1);
    return &entries[i];
}

/* Makes space for one more; a table full of tombstones is rebuilt at its size. */
static int map_make_room(struct hd_map *map)
{
    size_t cap = map->cap ? map->cap : FIRST_CAP;
    struct hd_map_entry *entries;

    if (map->cap && map->count + map->tombstones + 1 <= map->cap / 4 * 3)
        return 0;
    if (map->cap && map->count + 1 > map->cap / 2)
        cap *= 2;
    entries = hd_calloc(cap, sizeof(*entries));
    if (!entries)
        return HD_ENOMEM;
    for (size_t i = 0; i < map->cap; i++) {
        const struct hd_map_entry *entry = &map->entries[i];

        if (!is_free(entry) && !is_tombstone(entry))
            *find_slot(entries, cap, entry->hash) = *entry;
    }
    hd_free(map->entries);
    map->entries = entries;
    map->cap = cap;
    map->tombstones = 0;
    return 0;
}

void hd_map_init(struct hd_map *map, size_t limit)
{
    *map = (struct hd_map){.limit = limit};
}

void hd_map_fini(struct hd_map *map)
{
    for (size_t i = 0; i < map->cap; i++)
        if (!is_tombstone(&map->entries[i]))
            hd_free(map->entries[i].key);
    hd_free(map->entries);
    *map = (struct hd_map){0};
}

void *hd_map_get(const struct hd_map *map, struct hd_slice key)
{
    const struct hd_map_entry *entry = map_find(map, key, hash_of(key));

    return entry ? entry->value : NULL;
}

int hd_map_put(struct hd_map *map, struct hd_slice key, void *value)
{
    uint64_t hash = hash_of(key);
    struct hd_map_entry *entry = map_find(map, key, hash);
    char *copy;
    int err;

    if (entry) {
        entry->value = value;
        return 0;
    }
    if (map->count >= map->limit)
        return HD_ELIMIT;
    err = map_make_room(map);
    if (err)
        return err;
    copy = hd_malloc(key.len);
    if (!copy)
        return HD_ENOMEM;
    if (key.len > 0)
        memcpy(copy, key.ptr, key.len);
    entry = find_slot(map->entries, map->cap, hash);
    map->tombstones -= is_tombstone(entry);
    map->count++;
    *entry = (struct hd_map_entry){hash, copy, key.len, value};
    return 0;
}

void *hd_map_remove(struct hd_map *map, struct hd_slice key)
{
    struct hd_map_entry *entry = map_find(map, key, hash_of(key));
    void *value;

    if (!entry)
        return NULL;
    value = entry->value;
    hd_free(entry->key);
    *entry = (struct hd_map_entry){.key = &removed};
    map->tombstones++;
    map->count--;
    return value;
}

int hd_map_next(const struct hd_map *map, size_t *pos, struct hd_slice *key, void **value)
{
    while (*pos < map->cap) {
        const struct hd_map_entry *entry = &map->entries[(*pos)++];

        if (is_free(entry) || is_tombstone(entry))
            continue;
        *key = hd_slice(entry->key, entry->key_len);
        *value = entry->value;
        return 1;
    }
    return 0;
}
