/* Msgpack, for serde_import_msgpack.c and serde_import_object.c. */
#ifndef HD_STORE_CODEC_SERDE_IMPORT_INTERNAL_H
#define HD_STORE_CODEC_SERDE_IMPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/slice.h"

enum hd_pack_kind {
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

struct hd_pack_item {
    enum hd_pack_kind kind;
    int64_t integer;
    bool is_large; /* the integer is unsigned, beyond an int64_t */
    double real;
    struct hd_slice bytes; /* strings, bytes, extensions */
    uint64_t count;        /* elements, or pairs, that follow */
    int code;              /* of an extension */
};

struct hd_pack_in {
    const unsigned char *at, *end;
    bool is_bad; /* not msgpack, or too deep */
};

struct hd_pack_out {
    struct hd_jw jw;
    int depth;
    bool is_key; /* the value being written is a member name */
};

struct hd_pack_in hd_pack_inside(struct hd_slice bytes);
/* The head of the next value; elements of lists and maps are then read one by one. */
struct hd_pack_item hd_pack_next(struct hd_pack_in *in);

/* Reads a value and writes it. */
void hd_pack_put(struct hd_pack_out *out, struct hd_pack_in *in);
void hd_pack_put_double(struct hd_pack_out *out, double value);
void hd_pack_put_bytes(struct hd_pack_out *out, struct hd_slice bytes);
/* An extension; false: not in the form that the serializer writes. */
bool hd_pack_put_object(struct hd_pack_out *out, int code, struct hd_slice bytes);

#endif
