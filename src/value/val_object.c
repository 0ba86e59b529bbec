/* Objects and records: ordered members, found by a linear search if few, else by hash. */
#include "value/val.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "value/val_internal.h"

#define FIRST_CAP 4
#define FEW 8 /* up to this number of members, no index */
#define MAX_MEMBERS (UINT32_MAX / 4)

static const struct hd_val_members *members_of(const struct hd_val *object)
{
    return hd_val_is_object(object) ? (const struct hd_val_members *)object : NULL;
}

static struct hd_val_members *members_create(enum hd_val_kind kind)
{
    struct hd_val_members *object = hd_malloc(sizeof(*object));

    if (object)
        *object = (struct hd_val_members){
            .base = {.refs = 1, .depth = 1, .type = HD_VAL_OBJECT, .kind = (uint8_t)kind}};
    return object;
}

struct hd_val *hd_val_object(void)
{
    struct hd_val_members *object = members_create(HD_KIND_NONE);

    return object ? &object->base : NULL;
}

struct hd_val *hd_val_record(enum hd_val_kind kind)
{
    struct hd_val_members *object = members_create(kind);

    assert(kind != HD_KIND_NONE && kind != HD_KIND_UNKNOWN);
    return object ? &object->base : NULL;
}

struct hd_val *hd_val_unknown(struct hd_val *name)
{
    struct hd_val_members *object = name ? members_create(HD_KIND_UNKNOWN) : NULL;

    if (!object) {
        hd_val_unref(name);
        return NULL;
    }
    object->name = name;
    return &object->base;
}

/* ---- lookup ----------------------------------------------------------- */

static struct hd_slice key_at(const struct hd_val_members *object, size_t i)
{
    return hd_val_get_string(object->pairs[i].key);
}

static size_t slot_of(struct hd_slice key, size_t cap)
{
    return (size_t)XXH3_64bits(key.ptr, key.len) & (cap - 1);
}

/* The index of the member, or the number of members if not found. */
static size_t find_member(const struct hd_val_members *object, struct hd_slice key)
{
    size_t i;

    if (!object->slots) {
        for (i = 0; i < object->count && !hd_slice_eq(key_at(object, i), key); i++)
            ;
        return i;
    }
    for (i = slot_of(key, object->slot_cap); object->slots[i];
         i = (i + 1) & (object->slot_cap - 1)) {
        if (hd_slice_eq(key_at(object, object->slots[i] - 1), key))
            return object->slots[i] - 1;
    }
    return object->count;
}

static void index_member(struct hd_val_members *object, size_t number)
{
    size_t i = slot_of(key_at(object, number), object->slot_cap);

    while (object->slots[i])
        i = (i + 1) & (object->slot_cap - 1);
    object->slots[i] = (uint32_t)number + 1;
}

/* Builds an index of all members, at most half full. */
static bool index_members(struct hd_val_members *object)
{
    size_t cap = 4 * FEW;
    uint32_t *slots;

    while (cap < object->count * 2)
        cap *= 2;
    slots = hd_calloc(cap, sizeof(*slots));
    if (!slots)
        return false;
    hd_free(object->slots);
    object->slots = slots;
    object->slot_cap = cap;
    for (size_t i = 0; i < object->count; i++)
        index_member(object, i);
    return true;
}

struct hd_val *hd_val_get(const struct hd_val *val, struct hd_slice key)
{
    const struct hd_val_members *object = members_of(val);
    size_t i;

    if (!object)
        return NULL;
    i = find_member(object, key);
    return i < object->count ? object->pairs[i].val : NULL;
}

struct hd_val *hd_val_member(const struct hd_val *val, size_t index, struct hd_val **key)
{
    const struct hd_val_members *object = members_of(val);

    bool is_there = object && index < object->count;

    if (key)
        *key = is_there ? object->pairs[index].key : NULL;
    return is_there ? object->pairs[index].val : NULL;
}

/* ---- changing --------------------------------------------------------- */

static bool reserve(struct hd_val_members *object, size_t cap)
{
    struct hd_val_pair *pairs;

    if (cap <= object->cap)
        return true;
    if (cap > MAX_MEMBERS)
        return false;
    pairs = hd_realloc(object->pairs, cap * sizeof(*pairs));
    if (!pairs)
        return false;
    object->pairs = pairs;
    object->cap = cap;
    return true;
}

static bool copy_index(struct hd_val_members *copy, const struct hd_val_members *from)
{
    if (!from->slots)
        return true;
    copy->slots = hd_malloc(from->slot_cap * sizeof(*copy->slots));
    if (!copy->slots)
        return false;
    memcpy(copy->slots, from->slots, from->slot_cap * sizeof(*copy->slots));
    copy->slot_cap = from->slot_cap;
    return true;
}

static struct hd_val_members *members_copy(const struct hd_val_members *from)
{
    struct hd_val_members *copy = members_create((enum hd_val_kind)from->base.kind);

    if (!copy)
        return NULL;
    if (!reserve(copy, from->count + 1) || !copy_index(copy, from)) {
        hd_val_unref(&copy->base);
        return NULL;
    }
    for (size_t i = 0; i < from->count; i++)
        copy->pairs[i] =
            (struct hd_val_pair){hd_val_ref(from->pairs[i].key), hd_val_ref(from->pairs[i].val)};
    copy->count = from->count;
    copy->name = hd_val_ref(from->name);
    copy->base.depth = from->base.depth;
    return copy;
}

/* Takes the object. Returns one with no other reference. */
static struct hd_val_members *own(struct hd_val *object)
{
    struct hd_val_members *copy;

    if (object->refs == 1)
        return (struct hd_val_members *)object;
    copy = members_copy((struct hd_val_members *)object);
    hd_val_unref(object);
    return copy;
}

/* Takes `key` and `val` on success only. */
static bool insert(struct hd_val_members *object, size_t place, struct hd_val *key,
                   struct hd_val *val)
{
    bool is_at_end = place == object->count;

    if (object->count == object->cap && !reserve(object, object->cap ? object->cap * 2 : FIRST_CAP))
        return false;
    memmove(object->pairs + place + 1, object->pairs + place,
            (object->count - place) * sizeof(*object->pairs));
    object->pairs[place] = (struct hd_val_pair){key, val};
    object->count++;
    if (object->count <= FEW)
        return true;
    if (object->slots && is_at_end && object->count * 2 <= object->slot_cap) {
        index_member(object, place);
        return true;
    }
    if (index_members(object))
        return true;
    object->count--;
    memmove(object->pairs + place, object->pairs + place + 1,
            (object->count - place) * sizeof(*object->pairs));
    return false;
}

/* The position of a member that is added to a message, in the order of docs/encoding.md. */
static size_t rank(struct hd_slice name)
{
    static const char *const order[] = {
        "type",
        "content",
        "id",
        "name",
        "additional_kwargs",
        "response_metadata",
        "tool_calls",
        "invalid_tool_calls",
        "usage_metadata",
        "tool_call_chunks",
        "chunk_position",
        "tool_call_id",
        "artifact",
        "status",
        "role",
    };
    size_t i;

    for (i = 0; i < HD_COUNT(order) && !hd_slice_eq(name, hd_slice_cstr(order[i])); i++)
        ;
    return i;
}

static size_t place_in_message(const struct hd_val_members *message, struct hd_slice key)
{
    size_t mine = rank(key), place = message->count;

    while (place > 0 && rank(key_at(message, place - 1)) > mine)
        place--;
    return place;
}

static struct hd_val *with(struct hd_val *object, struct hd_val *key, struct hd_val *val,
                           bool is_ranked)
{
    struct hd_val_members *mine = NULL;
    size_t i;

    assert(!object || hd_val_is_object(object));
    assert(!key || hd_val_is_string(key));
    if (!object || !key || !val || val->depth + 1 > HD_VAL_MAX_DEPTH)
        hd_val_unref(object);
    else
        mine = own(object);
    if (!mine)
        goto drop;
    i = find_member(mine, hd_val_get_string(key));
    if (i < mine->count) {
        hd_val_unref(mine->pairs[i].val);
        mine->pairs[i].val = hd_val_ref(val);
    } else {
        if (is_ranked && mine->base.kind == HD_KIND_MESSAGE)
            i = place_in_message(mine, hd_val_get_string(key));
        if (!insert(mine, i, key, val)) {
            hd_val_unref(&mine->base);
            mine = NULL;
            goto drop;
        }
        (void)hd_val_ref(key);
        (void)hd_val_ref(val);
    }
    if (val->depth + 1 > mine->base.depth)
        mine->base.depth = (uint16_t)(val->depth + 1);
drop:
    hd_val_unref(key);
    hd_val_unref(val);
    return mine ? &mine->base : NULL;
}

struct hd_val *hd_val_push(struct hd_val *object, struct hd_val *key, struct hd_val *val)
{
    return with(object, key, val, false);
}

struct hd_val *hd_val_with_key(struct hd_val *object, struct hd_val *key, struct hd_val *val)
{
    return with(object, key, val, true);
}

struct hd_val *hd_val_with(struct hd_val *object, struct hd_slice key, struct hd_val *val)
{
    return with(object, hd_val_string(key), val, true);
}

struct hd_val *hd_val_without(struct hd_val *object, struct hd_slice key)
{
    struct hd_val_members *mine;
    size_t i;

    if (!object || !hd_val_get(object, key))
        return object;
    mine = own(object);
    if (!mine)
        return NULL;
    i = find_member(mine, key);
    hd_val_unref(mine->pairs[i].key);
    hd_val_unref(mine->pairs[i].val);
    mine->count--;
    memmove(mine->pairs + i, mine->pairs + i + 1, (mine->count - i) * sizeof(*mine->pairs));
    if (!mine->slots)
        return &mine->base;
    /* Member numbers have changed: rebuild the index, or drop it if the members are few. */
    if (mine->count > FEW && index_members(mine))
        return &mine->base;
    hd_free(mine->slots);
    mine->slots = NULL;
    return &mine->base;
}

struct hd_val *hd_val_merge(struct hd_val *object, const struct hd_val *more)
{
    size_t count = hd_val_count(more);

    for (size_t i = 0; i < count; i++) {
        struct hd_val *key, *val = hd_val_member(more, i, &key);

        object = hd_val_with_key(object, hd_val_ref(key), hd_val_ref(val));
    }
    return object;
}

/* ---- records ---------------------------------------------------------- */

struct hd_val *hd_val_message(const char *type, struct hd_val *content, const char *id)
{
    struct hd_val *message = hd_val_record(HD_KIND_MESSAGE);

    message = hd_val_with(message, HD_S("type"), hd_val_cstr(type));
    message = hd_val_with(message, HD_S("content"), content);
    return id ? hd_val_with(message, HD_S("id"), hd_val_cstr(id)) : message;
}

struct hd_val *hd_val_remove(struct hd_slice id)
{
    struct hd_val *message = hd_val_message("remove", hd_val_cstr(""), NULL);

    return hd_val_with(message, HD_S("id"), hd_val_string(id));
}

struct hd_val *hd_val_send(struct hd_slice node, struct hd_val *arg)
{
    struct hd_val *send =
        hd_val_with(hd_val_record(HD_KIND_SEND), HD_S("node"), hd_val_string(node));

    return hd_val_with(send, HD_S("arg"), arg);
}

struct hd_val *hd_val_interrupt(struct hd_val *value, struct hd_slice id)
{
    struct hd_val *interrupt = hd_val_with(hd_val_record(HD_KIND_INTERRUPT), HD_S("value"), value);

    return hd_val_with(interrupt, HD_S("id"), hd_val_string(id));
}

struct hd_val *hd_val_overwrite(struct hd_val *value)
{
    return hd_val_with(hd_val_record(HD_KIND_OVERWRITE), HD_S("value"), value);
}

struct hd_val *hd_val_set(struct hd_val *items)
{
    return hd_val_with(hd_val_record(HD_KIND_SET), HD_S("items"), items);
}
