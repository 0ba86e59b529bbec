#include "graph/engine/list_cache.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"

/* Estimated memory of a parsed list per byte of its text. */
#define BYTES_PER_BYTE 4

struct cached_list {
    struct hd_slice channel; /* in the place's memory */
    struct hd_list_tracker tracker;
};

/*
 * The lists of one thread and namespace. One allocation, with the key and the channel names at the
 * end.
 */
struct cache_place {
    struct cache_place *newer, *older;
    struct hd_slice key;
    size_t bytes;
    size_t count;
    struct cached_list items[];
};

struct hd_list_cache {
    struct hd_map places;
    struct cache_place *newest, *oldest;
    size_t bytes;
    size_t max_bytes;
    struct hd_buf key; /* scratch */
};

struct hd_list_cache *hd_list_cache_create(size_t max_bytes)
{
    struct hd_list_cache *list_cache = hd_calloc(1, sizeof(*list_cache));

    if (!list_cache)
        return NULL;
    list_cache->max_bytes = max_bytes;
    hd_map_init(&list_cache->places, SIZE_MAX / 2);
    hd_buf_init(&list_cache->key, (size_t)1 << 20);
    return list_cache;
}

static void remove_place(struct hd_list_cache *list_cache, struct cache_place *place)
{
    *(place->newer ? &place->newer->older : &list_cache->newest) = place->older;
    *(place->older ? &place->older->newer : &list_cache->oldest) = place->newer;
    list_cache->bytes -= place->bytes;
    (void)hd_map_remove(&list_cache->places, place->key);
}

static void free_place(struct cache_place *place)
{
    for (size_t i = 0; i < place->count; i++)
        hd_list_tracker_fini(&place->items[i].tracker);
    hd_free(place);
}

void hd_list_cache_destroy(struct hd_list_cache *list_cache)
{
    if (!list_cache)
        return;
    for (struct cache_place *place = list_cache->newest, *older; place; place = older) {
        older = place->older;
        free_place(place);
    }
    hd_map_fini(&list_cache->places);
    hd_buf_fini(&list_cache->key);
    hd_free(list_cache);
}

static int make_place_key(struct hd_list_cache *list_cache, const struct hd_list_cache_key *key)
{
    int err;

    hd_buf_reset(&list_cache->key);
    err = hd_buf_append_lenslice(&list_cache->key, key->principal);
    if (!err)
        err = hd_buf_append_lenslice(&list_cache->key, key->thread);
    return err ? err : hd_buf_append_slice(&list_cache->key, key->ns);
}

static char *copy_slice(struct hd_slice *slice, char *to)
{
    if (slice->len > 0)
        memcpy(to, slice->ptr, slice->len);
    slice->ptr = to;
    return to + slice->len;
}

/* Moves the lists into a new place. NULL: no lists, or out of memory. */
static struct cache_place *make_place(struct hd_slice key, const struct hd_graph *graph,
                                      struct hd_list_tracker *tracker)
{
    size_t count = 0, size = sizeof(struct cache_place) + key.len;
    struct cache_place *place;
    char *end;

    for (size_t i = 0; i < graph->channel_count; i++) {
        if (tracker[i].listing && hd_list_tracker_outlast(&tracker[i]) != 0)
            hd_list_tracker_fini(&tracker[i]);
        if (!tracker[i].listing)
            continue;
        count++;
        size += sizeof(struct cached_list) + graph->channels[i].name.len;
    }
    place = count > 0 ? hd_malloc(size) : NULL;
    if (!place)
        return NULL;
    *place = (struct cache_place){.key = key, .bytes = size};
    end = copy_slice(&place->key, (char *)&place->items[count]);
    for (size_t i = 0; i < graph->channel_count; i++) {
        struct cached_list *item = &place->items[place->count];

        if (!tracker[i].listing)
            continue;
        *item = (struct cached_list){graph->channels[i].name, tracker[i]};
        end = copy_slice(&item->channel, end);
        tracker[i] = (struct hd_list_tracker){0};
        place->bytes += hd_list_tracker_size(&item->tracker) * BYTES_PER_BYTE;
        place->count++;
    }
    return place;
}

static void drop_oldest(struct hd_list_cache *list_cache)
{
    while (list_cache->oldest && list_cache->bytes > list_cache->max_bytes) {
        struct cache_place *place = list_cache->oldest;

        remove_place(list_cache, place);
        free_place(place);
    }
}

void hd_list_cache_keep(struct hd_list_cache *list_cache, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *tracker)
{
    struct cache_place *place, *old;

    if (make_place_key(list_cache, key) != 0)
        return;
    place = make_place(hd_buf_slice(&list_cache->key), graph, tracker);
    if (!place)
        return;
    old = hd_map_get(&list_cache->places, place->key);
    if (old) {
        remove_place(list_cache, old);
        free_place(old);
    }
    if (hd_map_put(&list_cache->places, place->key, place) != 0) {
        free_place(place);
        return;
    }
    place->older = list_cache->newest;
    *(list_cache->newest ? &list_cache->newest->newer : &list_cache->oldest) = place;
    list_cache->newest = place;
    list_cache->bytes += place->bytes;
    drop_oldest(list_cache);
}

void hd_list_cache_take(struct hd_list_cache *list_cache, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *tracker)
{
    struct cache_place *place;

    if (!list_cache->newest || make_place_key(list_cache, key) != 0)
        return;
    place = hd_map_get(&list_cache->places, hd_buf_slice(&list_cache->key));
    if (!place)
        return;
    remove_place(list_cache, place);
    for (size_t i = 0; i < place->count; i++) {
        size_t channel = hd_graph_find_channel(graph, place->items[i].channel);

        if (channel == HD_GRAPH_END)
            continue;
        tracker[channel] = place->items[i].tracker;
        place->items[i].tracker = (struct hd_list_tracker){0};
    }
    free_place(place);
}
