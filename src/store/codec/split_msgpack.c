/*
 * Finds the elements of a msgpack array without decoding it.
 *
 * Strings, binaries and extensions contain their length, so a LangChain message, which Python
 * writes as one extension, is skipped in one step at any length.
 */
#include "store/codec/split_internal.h"

#include "base/error.h"

/* The extension in which LangGraph's Python serializer wraps a delta channel's snapshot. */
#define EXT_DELTA 7

enum shape { SCALAR, ARRAY, MAP, EXT, INVALID };

/* The head of one object: the number of bytes and the number of objects that follow. */
struct msgpack_head {
    enum shape shape;
    size_t size;      /* of the head itself */
    uint64_t body;    /* bytes after it that belong to the object */
    uint64_t objects; /* objects after that which belong to it */
};

/*
 * From 0xc0 on: bytes of a big-endian length (or count) after the tag, and
 * bytes after that. A fixext has no length field; its body includes the type.
 */
static const struct tag {
    unsigned char shape, length_size, body;
} tags[0x20] = {
    [0x00] = {SCALAR, 0, 0}, [0x01] = {INVALID, 0, 0}, [0x02] = {SCALAR, 0, 0},
    [0x03] = {SCALAR, 0, 0}, [0x04] = {SCALAR, 1, 0},  [0x05] = {SCALAR, 2, 0},
    [0x06] = {SCALAR, 4, 0}, [0x07] = {EXT, 1, 1},     [0x08] = {EXT, 2, 1},
    [0x09] = {EXT, 4, 1},    [0x0a] = {SCALAR, 0, 4},  [0x0b] = {SCALAR, 0, 8},
    [0x0c] = {SCALAR, 0, 1}, [0x0d] = {SCALAR, 0, 2},  [0x0e] = {SCALAR, 0, 4},
    [0x0f] = {SCALAR, 0, 8}, [0x10] = {SCALAR, 0, 1},  [0x11] = {SCALAR, 0, 2},
    [0x12] = {SCALAR, 0, 4}, [0x13] = {SCALAR, 0, 8},  [0x14] = {EXT, 0, 2},
    [0x15] = {EXT, 0, 3},    [0x16] = {EXT, 0, 5},     [0x17] = {EXT, 0, 9},
    [0x18] = {EXT, 0, 17},   [0x19] = {SCALAR, 1, 0},  [0x1a] = {SCALAR, 2, 0},
    [0x1b] = {SCALAR, 4, 0}, [0x1c] = {ARRAY, 2, 0},   [0x1d] = {ARRAY, 4, 0},
    [0x1e] = {MAP, 2, 0},    [0x1f] = {MAP, 4, 0},
};

static struct msgpack_head scalar_head(uint64_t body)
{
    return (struct msgpack_head){.shape = SCALAR, .size = 1, .body = body};
}

static struct msgpack_head list_head(enum shape shape, size_t size, uint64_t count)
{
    return (struct msgpack_head){
        .shape = shape, .size = size, .objects = shape == MAP ? count * 2 : count};
}

/* shape INVALID when the head is incomplete. */
static struct msgpack_head tagged_head(const unsigned char *p, const unsigned char *end)
{
    const struct tag *tag = &tags[*p - 0xc0];
    struct msgpack_head head = {.shape = (enum shape)tag->shape, .size = 1u + tag->length_size};
    uint64_t length = 0;
    size_t i;

    if (head.shape == INVALID || (size_t)(end - p) < head.size)
        return (struct msgpack_head){.shape = INVALID};
    for (i = 1; i < head.size; i++)
        length = length << 8 | p[i];
    if (head.shape == ARRAY || head.shape == MAP)
        return list_head(head.shape, head.size, length);
    head.body = length + tag->body;
    return head;
}

static struct msgpack_head read_head(const char *pos, const char *limit)
{
    const unsigned char *p = (const unsigned char *)pos;
    const unsigned char *end = (const unsigned char *)limit;

    if (p == end)
        return (struct msgpack_head){.shape = INVALID};
    if (*p < 0x80 || *p >= 0xe0)
        return scalar_head(0);
    if (*p < 0x90)
        return list_head(MAP, 1, *p & 0x0fu);
    if (*p < 0xa0)
        return list_head(ARRAY, 1, *p & 0x0fu);
    if (*p < 0xc0)
        return scalar_head(*p & 0x1fu);
    return tagged_head(p, end);
}

/*
 * The byte after `count` objects, or NULL when they are incomplete. Needs no stack: an array or map
 * only adds to the number of objects still to come, each of which takes at least a byte.
 */
static const char *skip(const char *pos, const char *end, uint64_t count)
{
    while (count > 0) {
        struct msgpack_head head = read_head(pos, end);
        uint64_t left = (uint64_t)(end - pos);

        if (head.shape == INVALID || head.body > left - head.size)
            return NULL;
        pos += head.size + head.body;
        count += head.objects - 1;
        if (count > (uint64_t)(end - pos))
            return NULL;
    }
    return pos;
}

static int cut_array(struct hd_cutter *cutter, struct msgpack_head head, const char **pos,
                     const char *end)
{
    const char *element = *pos + head.size;
    uint64_t i;

    for (i = 0; i < head.objects; i++) {
        const char *next = skip(element, end, 1);

        if (!next)
            return HD_EINVAL;
        if (hd_cutter_element(cutter, element, next) != 0)
            return HD_ENOMEM;
        element = next;
    }
    *pos = element;
    return hd_cutter_flush(cutter);
}

/* A key and its value. */
static int cut_member(struct hd_cutter *cutter, const char **pos, const char *end)
{
    struct hd_cutter_mark mark = hd_cutter_mark(cutter);
    const char *value = skip(*pos, end, 1);
    struct msgpack_head head;
    int err;

    if (!value)
        return HD_EINVAL;
    head = read_head(value, end);
    if (head.shape != ARRAY) {
        *pos = skip(value, end, 1);
        return *pos ? 0 : HD_EINVAL;
    }
    *pos = value;
    err = cut_array(cutter, head, pos, end);
    if (err == 0 && (size_t)(*pos - value) < HD_SPLIT_BIG)
        hd_cutter_rewind(cutter, mark);
    return err;
}

static int cut_map(struct hd_cutter *cutter, struct msgpack_head head, const char **pos,
                   const char *end)
{
    uint64_t i;

    *pos += head.size;
    for (i = 0; i < head.objects; i += 2) {
        int err = cut_member(cutter, pos, end);

        if (err != 0)
            return err;
    }
    /* No part is worth cutting by structure: cut the whole by content. */
    return cutter->pieces->count > 0 ? 0 : HD_EINVAL;
}

/* Enters a delta snapshot: moves *pos to its contents. */
static struct msgpack_head enter_delta(struct msgpack_head head, const char **pos, const char *end)
{
    const char *body = *pos + head.size;

    if (head.body < 1 || head.body != (uint64_t)(end - body) || *body != EXT_DELTA)
        return head;
    *pos = body + 1;
    return read_head(*pos, end);
}

int hd_split_msgpack(struct hd_cutter *cutter, struct hd_slice bytes)
{
    const char *pos = bytes.ptr;
    const char *end = pos + bytes.len;
    struct msgpack_head head = read_head(pos, end);
    int err = HD_EINVAL;

    if (head.shape == EXT)
        head = enter_delta(head, &pos, end);
    if (head.shape == EXT) { /* a message, or another object: the same chunk as in a list */
        pos = skip(pos, end, 1);
        err = pos ? hd_cutter_element(cutter, bytes.ptr, pos) : HD_EINVAL;
    } else if (head.shape == ARRAY)
        err = cut_array(cutter, head, &pos, end);
    else if (head.shape == MAP)
        err = cut_map(cutter, head, &pos, end);
    if (err != 0)
        return err;
    return pos == end ? 0 : HD_EINVAL;
}
