/* The representation of values. For val*.c only; other files use val.h. */
#ifndef HD_VALUE_VAL_INTERNAL_H
#define HD_VALUE_VAL_INTERNAL_H

#include "value/val.h"

/* Integers of greater magnitude are written as records: not every parser reads them exactly. */
#define HD_VAL_SAFE_INT ((INT64_C(1) << 53) - 1)

struct hd_val_number {
    struct hd_val base;
    union {
        int64_t integer;
        double real;
    } as;
    size_t text_len; /* the text it was parsed from, if it must be kept; else 0 */
    char text[];
};

struct hd_val_text {
    struct hd_val base;
    size_t len;
    char bytes[]; /* with a NUL at the end */
};

/* The elements that lists are views on. Holds a reference to each element. */
struct hd_val_buffer {
    size_t refs; /* views */
    size_t used;
    size_t cap;
    struct hd_val **items;
};

struct hd_val_array {
    struct hd_val base;
    struct hd_val_buffer *buffer; /* NULL when count is 0 */
    size_t count;
    size_t from; /* the buffer's end when this view began to append */
};

struct hd_val_pair {
    struct hd_val *key;
    struct hd_val *val;
};

struct hd_val_members {
    struct hd_val base;
    size_t count;
    size_t cap;
    struct hd_val_pair *pairs;
    uint32_t *slots;     /* by hash of the key: member number + 1, or 0 if free; NULL while small */
    size_t slot_cap;     /* a power of two */
    struct hd_val *name; /* of an unknown kind */
};

/* Values of `refs` for uncounted values: static ones, and frozen ones of a graph. */
#define HD_VAL_FOREVER UINT32_MAX
#define HD_VAL_FROZEN (UINT32_MAX - 1)
static inline bool hd_val_is_counted(const struct hd_val *val)
{
    return val->refs < HD_VAL_FROZEN;
}

/* A number that is written as `text`; if empty, by its value. */
HD_MUST_CHECK struct hd_val *hd_val_int_as(int64_t value, struct hd_slice text);
HD_MUST_CHECK struct hd_val *hd_val_float_as(double value, struct hd_slice text);

/* A record of an unknown kind. Takes the name of the kind. */
HD_MUST_CHECK struct hd_val *hd_val_unknown(struct hd_val *name);

/* HD_KIND_UNKNOWN if no kind has the name. */
enum hd_val_kind hd_val_kind_find(struct hd_slice name);

/* As hd_val_with_key(), but always appends new members, in messages too. */
HD_MUST_CHECK struct hd_val *hd_val_push(struct hd_val *object, struct hd_val *key,
                                         struct hd_val *val);

#define HD_VAL_FLOAT_SIZE 40
/* The shortest text that parses to the same finite double, in Python's format. */
struct hd_slice hd_val_format_double(double value, char out[HD_VAL_FLOAT_SIZE]);

#endif
