#include "api/state/message_path_memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"

#define MAX_SLOTS 32
#define MAX_SLOT_BYTES ((size_t)1 << 20)
#define MAX_MESSAGES 8192 /* of a slot */

struct hd_message_path_slot {
    char *place; /* NULL: free */
    size_t place_len;
    struct hd_arena arena;
    struct hd_map checkpoints; /* message ids to checkpoint ids (struct hd_slice) */
    uint64_t used;
};

struct hd_message_path_memory {
    uv_mutex_t lock;
    struct hd_message_path_slot slots[MAX_SLOTS];
    uint64_t uses;
};

static void memory_forget(struct hd_message_path_slot *slot)
{
    hd_map_fini(&slot->checkpoints);
    hd_map_init(&slot->checkpoints, MAX_MESSAGES);
    hd_arena_reset(&slot->arena);
}

int hd_message_path_memory_create(struct hd_message_path_memory **out)
{
    struct hd_message_path_memory *memory = hd_calloc(1, sizeof(*memory));

    if (!memory)
        return HD_ENOMEM;
    if (uv_mutex_init(&memory->lock)) {
        hd_free(memory);
        return HD_ENOMEM;
    }
    for (size_t i = 0; i < MAX_SLOTS; i++) {
        hd_arena_init(&memory->slots[i].arena, MAX_SLOT_BYTES);
        hd_map_init(&memory->slots[i].checkpoints, MAX_MESSAGES);
    }
    *out = memory;
    return 0;
}

void hd_message_path_memory_destroy(struct hd_message_path_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < MAX_SLOTS; i++) {
        hd_free(memory->slots[i].place);
        hd_map_fini(&memory->slots[i].checkpoints);
        hd_arena_fini(&memory->slots[i].arena);
    }
    uv_mutex_destroy(&memory->lock);
    hd_free(memory);
}

/* Principal, thread and namespace, each after its length. NULL: no memory. */
static char *name_place(const struct hd_message_path_place *place, size_t *len)
{
    const struct hd_slice parts[] = {place->principal, place->thread, place->ns};
    size_t size = sizeof(parts), at = 0;
    char *name;

    for (size_t i = 0; i < HD_COUNT(parts); i++)
        size += parts[i].len;
    name = hd_malloc(size);
    for (size_t i = 0; name && i < HD_COUNT(parts); i++) {
        memcpy(name + at, &parts[i].len, sizeof(parts[i].len));
        at += sizeof(parts[i].len);
        if (parts[i].len > 0)
            memcpy(name + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    *len = at;
    return name;
}

static bool memory_is_of(const struct hd_message_path_slot *slot, const char *name, size_t len)
{
    return slot->place && slot->place_len == len && memcmp(slot->place, name, len) == 0;
}

/* The slot of the place, or the least recently used one. */
static struct hd_message_path_slot *find_slot(struct hd_message_path_memory *memory,
                                              const char *name, size_t len)
{
    struct hd_message_path_slot *oldest = &memory->slots[0];

    for (size_t i = 0; i < MAX_SLOTS; i++) {
        struct hd_message_path_slot *slot = &memory->slots[i];

        if (memory_is_of(slot, name, len))
            return slot;
        if (slot->used < oldest->used)
            oldest = slot;
    }
    return oldest;
}

struct hd_message_path_slot *hd_message_path_memory_enter(struct hd_message_path_memory *memory,
                                                          const struct hd_message_path_place *place)
{
    struct hd_message_path_slot *slot;
    size_t len;
    char *name = name_place(place, &len);

    uv_mutex_lock(&memory->lock);
    if (!name)
        return NULL;
    slot = find_slot(memory, name, len);
    if (memory_is_of(slot, name, len)) {
        hd_free(name);
    } else {
        memory_forget(slot);
        hd_free(slot->place);
        slot->place = name;
        slot->place_len = len;
    }
    slot->used = ++memory->uses;
    return slot;
}

void hd_message_path_memory_leave(struct hd_message_path_memory *memory)
{
    uv_mutex_unlock(&memory->lock);
}

struct hd_slice hd_message_path_recall(const struct hd_message_path_slot *slot,
                                       struct hd_slice message)
{
    const struct hd_slice *id = slot ? hd_map_get(&slot->checkpoints, message) : NULL;

    return id ? *id : hd_slice(NULL, 0);
}

void hd_message_path_remember(struct hd_message_path_slot *slot, struct hd_slice message,
                              struct hd_slice checkpoint)
{
    struct hd_slice *id;

    if (!slot || message.len == 0)
        return;
    id = hd_arena_alloc(&slot->arena, sizeof(*id));
    if (!id || hd_arena_copy(&slot->arena, checkpoint, id) ||
        hd_map_put(&slot->checkpoints, message, id))
        memory_forget(slot);
}
