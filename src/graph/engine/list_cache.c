#include "graph/engine/list_cache.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"

/* Estimated memory of a parsed list per byte of its text. */
#define BYTES_PER_BYTE 4

struct cached_list {
    struct hd_slice channel; /* in the place's memory */
    struct hd_list_tracker growing;
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
    struct hd_list_cache *recall = hd_calloc(1, sizeof(*recall));

    if (!recall)
        return NULL;
    recall->max_bytes = max_bytes;
    hd_map_init(&recall->places, SIZE_MAX / 2);
    hd_buf_init(&recall->key, (size_t)1 << 20);
    return recall;
}

static void remove_place(struct hd_list_cache *recall, struct cache_place *place)
{
    *(place->newer ? &place->newer->older : &recall->newest) = place->older;
    *(place->older ? &place->older->newer : &recall->oldest) = place->newer;
    recall->bytes -= place->bytes;
    (void)hd_map_remove(&recall->places, place->key);
}

static void free_place(struct cache_place *place)
{
    for (size_t i = 0; i < place->count; i++)
        hd_list_tracker_fini(&place->items[i].growing);
    hd_free(place);
}

void hd_list_cache_destroy(struct hd_list_cache *recall)
{
    if (!recall)
        return;
    for (struct cache_place *place = recall->newest, *older; place; place = older) {
        older = place->older;
        free_place(place);
    }
    hd_map_fini(&recall->places);
    hd_buf_fini(&recall->key);
    hd_free(recall);
}

static int make_place_key(struct hd_list_cache *recall, const struct hd_list_cache_key *key)
{
    int err;

    hd_buf_reset(&recall->key);
    err = hd_buf_append_lenslice(&recall->key, key->principal);
    if (!err)
        err = hd_buf_append_lenslice(&recall->key, key->thread);
    return err ? err : hd_buf_append_slice(&recall->key, key->ns);
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
                                      struct hd_list_tracker *growing)
{
    size_t count = 0, size = sizeof(struct cache_place) + key.len;
    struct cache_place *place;
    char *end;

    for (size_t i = 0; i < graph->channel_count; i++) {
        if (growing[i].listing && hd_list_tracker_outlast(&growing[i]) != 0)
            hd_list_tracker_fini(&growing[i]);
        if (!growing[i].listing)
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

        if (!growing[i].listing)
            continue;
        *item = (struct cached_list){graph->channels[i].name, growing[i]};
        end = copy_slice(&item->channel, end);
        growing[i] = (struct hd_list_tracker){0};
        place->bytes += hd_list_tracker_size(&item->growing) * BYTES_PER_BYTE;
        place->count++;
    }
    return place;
}

static void drop_oldest(struct hd_list_cache *recall)
{
    while (recall->oldest && recall->bytes > recall->max_bytes) {
        struct cache_place *place = recall->oldest;

        remove_place(recall, place);
        free_place(place);
    }
}

void hd_list_cache_keep(struct hd_list_cache *recall, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *growing)
{
    struct cache_place *place, *old;

    if (make_place_key(recall, key) != 0)
        return;
    place = make_place(hd_buf_slice(&recall->key), graph, growing);
    if (!place)
        return;
    old = hd_map_get(&recall->places, place->key);
    if (old) {
        remove_place(recall, old);
        free_place(old);
    }
    if (hd_map_put(&recall->places, place->key, place) != 0) {
        free_place(place);
        return;
    }
    place->older = recall->newest;
    *(recall->newest ? &recall->newest->newer : &recall->oldest) = place;
    recall->newest = place;
    recall->bytes += place->bytes;
    drop_oldest(recall);
}

void hd_list_cache_take(struct hd_list_cache *recall, const struct hd_list_cache_key *key,
                        const struct hd_graph *graph, struct hd_list_tracker *growing)
{
    struct cache_place *place;

    if (!recall->newest || make_place_key(recall, key) != 0)
        return;
    place = hd_map_get(&recall->places, hd_buf_slice(&recall->key));
    if (!place)
        return;
    remove_place(recall, place);
    for (size_t i = 0; i < place->count; i++) {
        size_t channel = hd_graph_find_channel(graph, place->items[i].channel);

        if (channel == HD_GRAPH_END)
            continue;
        growing[channel] = place->items[i].growing;
        place->items[i].growing = (struct hd_list_tracker){0};
    }
    free_place(place);
}
