/* Msgpack, for serde_import_msgpack.c and serde_import_object.c. */
#ifndef HD_STORE_CODEC_SERDE_IMPORT_INTERNAL_H
#define HD_STORE_CODEC_SERDE_IMPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/slice.h"

enum hd_msgpack_kind {
    HD_PACK_NULL,
    HD_PACK_BOOL,
    HD_PACK_INT,
    HD_PACK_FLOAT,
    HD_PACK_STRING,
    HD_PACK_BYTES,
    HD_PACK_ARRAY,
    HD_PACK_MAP,
    HD_PACK_EXT
};

struct hd_msgpack_item {
    enum hd_msgpack_kind kind;
    int64_t integer;
    bool is_large; /* the integer is unsigned, beyond an int64_t */
    double real;
    struct hd_slice bytes; /* strings, bytes, extensions */
    uint64_t count;        /* elements, or pairs, that follow */
    int code;              /* of an extension */
};

struct hd_msgpack_in {
    const unsigned char *at, *end;
    bool is_bad; /* not msgpack, or too deep */
};

struct hd_msgpack_out {
    struct hd_jw jw;
    int depth;
    bool is_key; /* the value being written is a member name */
};

struct hd_msgpack_in hd_msgpack_inside(struct hd_slice bytes);
/* The head of the next value; elements of lists and maps are then read one by one. */
struct hd_msgpack_item hd_msgpack_next(struct hd_msgpack_in *in);

/* Reads a value and writes it. */
void hd_msgpack_put(struct hd_msgpack_out *out, struct hd_msgpack_in *in);
void hd_msgpack_put_double(struct hd_msgpack_out *out, double value);
void hd_msgpack_put_bytes(struct hd_msgpack_out *out, struct hd_slice bytes);
/* An extension; false: not in the form that the serializer writes. */
bool hd_msgpack_put_object(struct hd_msgpack_out *out, int code, struct hd_slice bytes);

#endif
