/*
 * Decodes msgpack of LangGraph's Python serializer to JSON. Objects are extensions whose bytes are
 * msgpack again: [module, name, arguments of the class, …].
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/codec/canon.h"
#include "store/codec/serde_import.h"
#include "store/codec/serde_import_internal.h"

#define MAX_DEPTH 200
#define MAX_TEXT ((size_t)256 << 20)

/* ---- reading ---------------------------------------------------------- */

static uint64_t take_number(struct hd_msgpack_in *in, size_t size)
{
    uint64_t number = 0;

    if ((size_t)(in->end - in->at) < size) {
        in->is_bad = true;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        number = number << 8 | *in->at++;
    return number;
}

static struct hd_slice take_bytes(struct hd_msgpack_in *in, uint64_t size)
{
    const unsigned char *at = in->at;

    if (in->is_bad || (uint64_t)(in->end - in->at) < size) {
        in->is_bad = true;
        return hd_slice("", 0);
    }
    in->at += size;
    return hd_slice((const char *)at, (size_t)size);
}

static struct hd_msgpack_item sized(struct hd_msgpack_in *in, enum hd_msgpack_kind kind,
                                    uint64_t size)
{
    struct hd_msgpack_item item = {.kind = kind};

    if (kind == HD_PACK_ARRAY || kind == HD_PACK_MAP)
        item.count = size;
    else if (kind == HD_PACK_EXT)
        item.code = (int)(int8_t)take_number(in, 1);
    if (kind == HD_PACK_STRING || kind == HD_PACK_BYTES || kind == HD_PACK_EXT)
        item.bytes = take_bytes(in, size);
    return item;
}

static struct hd_msgpack_item real(struct hd_msgpack_in *in, size_t size)
{
    struct hd_msgpack_item item = {.kind = HD_PACK_FLOAT};
    uint64_t bits = take_number(in, size);
    uint32_t half = (uint32_t)bits;
    float single;

    if (size == sizeof(single)) {
        memcpy(&single, &half, sizeof(single));
        item.real = (double)single;
    } else {
        memcpy(&item.real, &bits, sizeof(bits));
    }
    return item;
}

static struct hd_msgpack_item integer(struct hd_msgpack_in *in, size_t size, bool is_signed)
{
    struct hd_msgpack_item item = {.kind = HD_PACK_INT};
    uint64_t bits = take_number(in, size);
    unsigned spare = 64 - 8 * (unsigned)size;

    item.integer = (int64_t)bits;
    item.is_large = !is_signed && bits > INT64_MAX;
    if (is_signed && size < 8)
        item.integer = (int64_t)(bits << spare) >> spare;
    return item;
}

/* From 0xc0 on. */
static struct hd_msgpack_item tagged(struct hd_msgpack_in *in, unsigned tag)
{
    static const unsigned char lengths[] = {1, 2, 4};

    if (tag == 0xc0)
        return (struct hd_msgpack_item){.kind = HD_PACK_NULL};
    if (tag == 0xc2 || tag == 0xc3)
        return (struct hd_msgpack_item){.kind = HD_PACK_BOOL, .integer = tag == 0xc3};
    if (tag >= 0xc4 && tag <= 0xc6)
        return sized(in, HD_PACK_BYTES, take_number(in, lengths[tag - 0xc4]));
    if (tag >= 0xc7 && tag <= 0xc9)
        return sized(in, HD_PACK_EXT, take_number(in, lengths[tag - 0xc7]));
    if (tag == 0xca || tag == 0xcb)
        return real(in, tag == 0xca ? 4 : 8);
    if (tag >= 0xcc && tag <= 0xd3)
        return integer(in, (size_t)1 << ((tag - 0xcc) & 3), tag >= 0xd0);
    if (tag >= 0xd4 && tag <= 0xd8)
        return sized(in, HD_PACK_EXT, (uint64_t)1 << (tag - 0xd4));
    if (tag >= 0xd9 && tag <= 0xdb)
        return sized(in, HD_PACK_STRING, take_number(in, lengths[tag - 0xd9]));
    if (tag >= 0xdc)
        return sized(in, tag < 0xde ? HD_PACK_ARRAY : HD_PACK_MAP,
                     take_number(in, tag & 1 ? 4 : 2));
    in->is_bad = true;
    return (struct hd_msgpack_item){.kind = HD_PACK_NULL};
}

struct hd_msgpack_item hd_msgpack_next(struct hd_msgpack_in *in)
{
    unsigned tag = (unsigned)take_number(in, 1);

    if (in->is_bad)
        return (struct hd_msgpack_item){.kind = HD_PACK_NULL};
    if (tag < 0x80)
        return (struct hd_msgpack_item){.kind = HD_PACK_INT, .integer = (int64_t)tag};
    if (tag < 0x90)
        return sized(in, HD_PACK_MAP, tag & 15);
    if (tag < 0xa0)
        return sized(in, HD_PACK_ARRAY, tag & 15);
    if (tag < 0xc0)
        return sized(in, HD_PACK_STRING, tag & 31);
    if (tag >= 0xe0)
        return (struct hd_msgpack_item){.kind = HD_PACK_INT, .integer = (int64_t)tag - 256};
    return tagged(in, tag);
}

struct hd_msgpack_in hd_msgpack_inside(struct hd_slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;

    return (struct hd_msgpack_in){.at = at, .end = at + bytes.len};
}

/* ---- writing ---------------------------------------------------------- */

void hd_msgpack_put_double(struct hd_msgpack_out *out, double value)
{
    char text[40];

    if (!isfinite(value)) {
        hd_jw_null(&out->jw);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text) - 2, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (!strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", sizeof(".0"));
    hd_jw_raw(&out->jw, hd_slice_cstr(text));
}

void hd_msgpack_put_bytes(struct hd_msgpack_out *out, struct hd_slice bytes)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_TEXT);
    err = hd_canon_base64(&text, bytes);
    if (err && !out->jw.err)
        out->jw.err = err;
    hd_jw_string(&out->jw, hd_buf_slice(&text));
    hd_buf_fini(&text);
}

static void put_integer(struct hd_msgpack_out *out, const struct hd_msgpack_item *item)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)item->integer);
    if (item->is_large)
        hd_jw_raw(&out->jw, hd_slice_cstr(text));
    else
        hd_jw_int(&out->jw, item->integer);
}

/* A key is a string: for any other value its JSON, or the contents of that if it is a string. */
static void msgpack_put_key(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_out inner = {.depth = out->depth, .is_key = true};
    struct hd_msgpack_in ahead = *in;
    struct hd_msgpack_item item = hd_msgpack_next(&ahead);
    struct hd_buf text;
    int err;

    if (item.kind == HD_PACK_STRING) {
        *in = ahead;
        hd_jw_key(&out->jw, item.bytes);
        return;
    }
    /* Nested names would double in length with each level. */
    if (out->is_key) {
        in->is_bad = true;
        return;
    }
    hd_buf_init(&text, MAX_TEXT);
    hd_jw_init(&inner.jw, &text);
    hd_msgpack_put(&inner, in);
    err = hd_jw_finish(&inner.jw);
    if (err && !out->jw.err)
        out->jw.err = err;
    if (text.len > 1 && text.ptr[0] == '"') {
        struct hd_json json;

        if (hd_json_parse(&json, hd_buf_slice(&text), NULL) == 0) {
            hd_jw_key(&out->jw, hd_json_string(hd_json_root(&json)));
            hd_json_fini(&json);
        }
    } else {
        hd_jw_key(&out->jw, hd_buf_slice(&text));
    }
    hd_buf_fini(&text);
}

static void put_many(struct hd_msgpack_out *out, struct hd_msgpack_in *in,
                     const struct hd_msgpack_item *item)
{
    bool is_map = item->kind == HD_PACK_MAP;

    if (is_map)
        hd_jw_object(&out->jw);
    else
        hd_jw_array(&out->jw);
    for (uint64_t i = 0; i < item->count && !in->is_bad && !out->jw.err; i++) {
        if (is_map)
            msgpack_put_key(out, in);
        hd_msgpack_put(out, in);
    }
    if (is_map)
        hd_jw_object_end(&out->jw);
    else
        hd_jw_array_end(&out->jw);
}

static void put_item(struct hd_msgpack_out *out, struct hd_msgpack_in *in,
                     const struct hd_msgpack_item *item)
{
    switch (item->kind) {
    case HD_PACK_NULL:
        hd_jw_null(&out->jw);
        break;
    case HD_PACK_BOOL:
        hd_jw_bool(&out->jw, item->integer != 0);
        break;
    case HD_PACK_INT:
        put_integer(out, item);
        break;
    case HD_PACK_FLOAT:
        hd_msgpack_put_double(out, item->real);
        break;
    case HD_PACK_STRING:
        hd_jw_string(&out->jw, item->bytes);
        break;
    case HD_PACK_BYTES:
        hd_msgpack_put_bytes(out, item->bytes);
        break;
    case HD_PACK_ARRAY:
    case HD_PACK_MAP:
        put_many(out, in, item);
        break;
    case HD_PACK_EXT:
        if (!hd_msgpack_put_object(out, item->code, item->bytes))
            in->is_bad = true;
        break;
    }
}

void hd_msgpack_put(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);

    if (in->is_bad || ++out->depth > MAX_DEPTH) {
        in->is_bad = true;
        return;
    }
    put_item(out, in, &item);
    out->depth--;
}

int hd_serde_msgpack(struct hd_buf *out, struct hd_slice data, int depth)
{
    struct hd_msgpack_in in = hd_msgpack_inside(data);
    struct hd_msgpack_out writer = {.depth = 0};
    size_t before = out->len;
    int err;

    hd_jw_init(&writer.jw, out);
    writer.jw.depth = depth;
    hd_msgpack_put(&writer, &in);
    writer.jw.depth -= depth;
    err = writer.jw.err == HD_ENOMEM     ? HD_ENOMEM
          : in.is_bad || in.at != in.end ? HD_EINVAL
                                         : hd_jw_finish(&writer.jw);
    if (err)
        out->len = before;
    return err;
}
