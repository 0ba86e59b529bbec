/*
 * The engine's values: contents of channels, results of nodes and of expressions.
 *
 * A value is null, a boolean, an integer, a float, a string, a list or an object. A *record*
 * (docs/encoding.md) is an object with a kind: a message's content is an ordinary member of it.
 * Members keep the order in which they were added.
 *
 * Values are immutable and reference-counted: hd_val_ref(). The counts are not atomic, so a value
 * belongs to one thread. null, the booleans and the empty string are never freed and belong to all
 * threads. So do frozen values, such as those in a graph: their counts no longer change, and values
 * made from them are new. Frozen values must outlive everything that refers to them.
 *
 * Lists are views on a buffer, which several lists may share. Appending to the list whose view ends
 * at the buffer's end takes constant time and does not change older views. Every other operation
 * that makes a new list copies the pointers of its elements.
 *
 * Ownership: `const` arguments are borrowed. All other values are *taken*, even if the call fails.
 * Functions that make a value return NULL if memory is exhausted, or if a value they take is NULL,
 * so calls can be nested and checked once. A taken container with no other reference is changed in
 * place.
 */
#ifndef HD_VALUE_VAL_H
#define HD_VALUE_VAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

/*
 * Values that are parsed, written or stored in the state have at most HD_JSON_MAX_DEPTH levels. A
 * value under construction may be deeper; the limit is far above the depth that any expression over
 * such values can reach. Making a deeper value fails as if memory were exhausted.
 */
#define HD_VAL_MAX_DEPTH 8192

enum hd_val_type {
    HD_VAL_NULL,
    HD_VAL_BOOL,
    HD_VAL_INT,
    HD_VAL_FLOAT, /* including NaN, the infinities and -0.0 */
    HD_VAL_STRING,
    HD_VAL_LIST,
    HD_VAL_OBJECT
};

/*
 * Kinds of records. Records of integers that fit into 64 bits, of floats, and of maps that
 * represent an object with a key `$` are plain values here.
 */
enum hd_val_kind {
    HD_KIND_NONE, /* not a record */
    HD_KIND_MESSAGE,
    HD_KIND_SEND,
    HD_KIND_COMMAND,
    HD_KIND_INTERRUPT,
    HD_KIND_OVERWRITE,
    HD_KIND_DELTA,
    HD_KIND_MAP,
    HD_KIND_SET,
    HD_KIND_INT, /* of any size, or a small bigint of JavaScript */
    HD_KIND_BYTES,
    HD_KIND_UTF16,
    HD_KIND_DATETIME,
    HD_KIND_UNDEFINED,
    HD_KIND_ERROR,
    HD_KIND_FOREIGN,
    HD_KIND_UNKNOWN, /* any other kind: hd_val_kind_name() */
    HD_KIND_COUNT
};

/* Use the functions below to read it. */
struct hd_val {
    uint32_t refs;  /* from HD_VAL_FROZEN up: not counted */
    uint16_t depth; /* 0 for scalars, else one more than the deepest element */
    uint8_t type;
    uint8_t kind;
};

/* Both accept NULL. */
struct hd_val *hd_val_ref(const struct hd_val *val);
void hd_val_unref(struct hd_val *val);

/*
 * Freezes the value and everything in it. Calls `keep` for each value that was not frozen before,
 * inner values first, so that it can be freed with hd_val_release(). An error of `keep` ends the
 * walk and is returned. The caller must be the only user of the value.
 */
typedef int (*hd_val_keep_fn)(void *ctx, struct hd_val *val);
HD_MUST_CHECK int hd_val_freeze(struct hd_val *val, hd_val_keep_fn keep, void *ctx);
/* Frees the memory of one frozen value, without its elements or members. */
void hd_val_release(struct hd_val *frozen);

/*
 * The same value without frozen parts, for users that may outlive the graph: the value itself if
 * nothing in it is frozen, else a copy. NULL if memory is exhausted.
 */
HD_MUST_CHECK struct hd_val *hd_val_lasting(const struct hd_val *val);

/* ---- scalars ---------------------------------------------------------- */

struct hd_val *hd_val_null(void);
struct hd_val *hd_val_bool(bool value);
HD_MUST_CHECK struct hd_val *hd_val_int(int64_t value);
HD_MUST_CHECK struct hd_val *hd_val_float(double value);
/* Copy the text. Bytes that are not UTF-8 are written as U+FFFD. */
HD_MUST_CHECK struct hd_val *hd_val_string(struct hd_slice text);
HD_MUST_CHECK struct hd_val *hd_val_cstr(const char *text);
HD_MUST_CHECK struct hd_val *hd_val_printf(const char *fmt, ...) HD_PRINTF(1, 2);
HD_MUST_CHECK struct hd_val *hd_val_vprintf(const char *fmt, va_list args) HD_PRINTF(1, 0);

/* ---- reading ---------------------------------------------------------- */

/* These accept NULL and treat it as null, so that a missing member reads as null. */

static inline enum hd_val_type hd_val_type(const struct hd_val *val)
{
    return val ? (enum hd_val_type)val->type : HD_VAL_NULL;
}
static inline enum hd_val_kind hd_val_kind(const struct hd_val *val)
{
    return val ? (enum hd_val_kind)val->kind : HD_KIND_NONE;
}
static inline bool hd_val_is_null(const struct hd_val *val)
{
    return hd_val_type(val) == HD_VAL_NULL;
}
static inline bool hd_val_is_string(const struct hd_val *val)
{
    return hd_val_type(val) == HD_VAL_STRING;
}
static inline bool hd_val_is_list(const struct hd_val *val)
{
    return hd_val_type(val) == HD_VAL_LIST;
}
/* Also true for records. */
static inline bool hd_val_is_object(const struct hd_val *val)
{
    return hd_val_type(val) == HD_VAL_OBJECT;
}
static inline bool hd_val_is_number(const struct hd_val *val)
{
    return hd_val_type(val) == HD_VAL_INT || hd_val_type(val) == HD_VAL_FLOAT;
}
static inline int hd_val_depth(const struct hd_val *val)
{
    return val ? val->depth : 0;
}

/* "null", "a boolean", "an integer", "a float", "a string", "a list", "an object", "a message" …:
 * for error messages. */
const char *hd_val_type_name(const struct hd_val *val);
/* The value's class in Python ("str", "dict", "AIMessage" …), for error texts like Python's. */
const char *hd_val_python_type(const struct hd_val *val);
/* The value of `$`: "message", "send" …; empty if it is not a record. */
struct hd_slice hd_val_kind_name(const struct hd_val *val);

/* False for all values but true. */
bool hd_val_is_true(const struct hd_val *val);
/* False if it is not an integer; *out is then unchanged. */
bool hd_val_get_int(const struct hd_val *val, int64_t *out);
/* False if it is not a number. */
bool hd_val_get_double(const struct hd_val *val, double *out);
/* The bytes of a string, which may contain NUL; a NUL follows them. Empty for other values. */
struct hd_slice hd_val_get_string(const struct hd_val *val);

/* The number of elements or members; 0 for other values. */
size_t hd_val_count(const struct hd_val *val);

/* The following functions borrow from `val`. NULL: not found, or not a list or object. */
struct hd_val *hd_val_at(const struct hd_val *list, size_t index);
/* A negative index counts from the end. */
struct hd_val *hd_val_at_signed(const struct hd_val *list, int64_t index);
struct hd_val *hd_val_get(const struct hd_val *object, struct hd_slice key);
/* Member number `index`; *key, if given, is a string value. */
struct hd_val *hd_val_member(const struct hd_val *object, size_t index, struct hd_val **key);

/* null, false, 0, "", [] and {} are false; records count as the value they represent. */
bool hd_val_truth(const struct hd_val *val);

/*
 * Compares by value: numbers exactly (1 equals 1.0; NaN equals nothing), true and 1 differ, members
 * in any order, records only of the same kind.
 */
bool hd_val_equal(const struct hd_val *a, const struct hd_val *b);

/* ---- lists ------------------------------------------------------------ */

HD_MUST_CHECK struct hd_val *hd_val_list(void);
HD_MUST_CHECK struct hd_val *hd_val_append(struct hd_val *list, struct hd_val *val);
/* Appends all elements of `more`. */
HD_MUST_CHECK struct hd_val *hd_val_extend(struct hd_val *list, const struct hd_val *more);
/* Replaces element `index`, which must exist. */
HD_MUST_CHECK struct hd_val *hd_val_replace(struct hd_val *list, size_t index, struct hd_val *val);
/* Elements from `from` to `to` - 1; bounds are limited to the list's size. */
HD_MUST_CHECK struct hd_val *hd_val_slice(const struct hd_val *list, size_t from, size_t to);

/*
 * The number of leading elements that the lists share because they are views on one buffer. 0 does
 * not imply that their elements differ.
 */
size_t hd_val_common(const struct hd_val *a, const struct hd_val *b);

/* ---- objects ---------------------------------------------------------- */

HD_MUST_CHECK struct hd_val *hd_val_object(void);
/* Adds or replaces a member. A new member of a message is inserted in the order of the encoding. */
HD_MUST_CHECK struct hd_val *hd_val_with(struct hd_val *object, struct hd_slice key,
                                         struct hd_val *val);
/* The same with a key that is a value, which is taken too. */
HD_MUST_CHECK struct hd_val *hd_val_with_key(struct hd_val *object, struct hd_val *key,
                                             struct hd_val *val);
HD_MUST_CHECK struct hd_val *hd_val_without(struct hd_val *object, struct hd_slice key);
/* Adds all members of `more`, which replace members of the same name. */
HD_MUST_CHECK struct hd_val *hd_val_merge(struct hd_val *object, const struct hd_val *more);

/* ---- records ---------------------------------------------------------- */

/* A record without members. Not for HD_KIND_NONE and HD_KIND_UNKNOWN. */
HD_MUST_CHECK struct hd_val *hd_val_record(enum hd_val_kind kind);

/* `id` may be NULL: no id yet. */
HD_MUST_CHECK struct hd_val *hd_val_message(const char *type, struct hd_val *content,
                                            const char *id);
HD_MUST_CHECK struct hd_val *hd_val_remove(struct hd_slice id);
HD_MUST_CHECK struct hd_val *hd_val_send(struct hd_slice node, struct hd_val *arg);
HD_MUST_CHECK struct hd_val *hd_val_interrupt(struct hd_val *value, struct hd_slice id);
HD_MUST_CHECK struct hd_val *hd_val_overwrite(struct hd_val *value);
/* `items` is a list without duplicates. */
HD_MUST_CHECK struct hd_val *hd_val_set(struct hd_val *items);

/* ---- text ------------------------------------------------------------- */

/*
 * Parses and validates canonical text (docs/encoding.md). HD_EINVAL with the cause and the path in
 * `fault`, or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_val_parse(struct hd_slice text, struct hd_val **out,
                               struct heddle_error *fault);
/* The same from parsed JSON. */
HD_MUST_CHECK int hd_val_from_canon(hd_json_val json, struct hd_val **out,
                                    struct heddle_error *fault);

/*
 * Plain JSON, such as a request body or a part of a declaration: `$` is an ordinary key. HD_EINVAL
 * if a name occurs twice in an object.
 */
HD_MUST_CHECK int hd_val_parse_json(struct hd_slice text, struct hd_val **out,
                                    struct heddle_error *fault);
HD_MUST_CHECK int hd_val_from_json(hd_json_val json, struct hd_val **out,
                                   struct heddle_error *fault);

/*
 * Appends canonical text. A parsed value is written as exactly the text it was parsed from.
 * HD_ELIMIT if it is too deep or the buffer is full, or HD_ENOMEM; appends nothing on error.
 */
HD_MUST_CHECK int hd_val_write(struct hd_buf *out, const struct hd_val *val);
/* The same into a writer, which keeps the error. */
void hd_val_put(struct hd_jw *jw, const struct hd_val *val);

/* Appends the plain JSON that clients see. Errors as hd_val_write(). */
HD_MUST_CHECK int hd_val_render(struct hd_buf *out, const struct hd_val *val);
void hd_val_put_rendered(struct hd_jw *jw, const struct hd_val *val);

/* For `{{…}}` within a longer string: strings unchanged, other values as hd_val_render(). */
HD_MUST_CHECK int hd_val_write_text(struct hd_buf *out, const struct hd_val *val);

/*
 * Makes a message record from any form that add_messages takes: a message, which is unchanged; a
 * string; a list [role, content]; an object with `role` or `type`. HD_EINVAL with the cause in
 * `fault`.
 */
HD_MUST_CHECK int hd_val_to_message(const struct hd_val *val, struct hd_val **out,
                                    struct heddle_error *fault);

/* ---- arithmetic: val_ops.c -------------------------------------------- */

/*
 * Python's operators, as reducers use them. HD_EINVAL, with Python's text in `fault`, if the
 * operands have no sum or no order; HD_ELIMIT if an integer exceeds 64 bits. A boolean counts as 0
 * or 1.
 */

/* The sum of numbers; the concatenation of strings or lists. Takes `a`. */
HD_MUST_CHECK int hd_val_add(struct hd_val *a, const struct hd_val *b, struct hd_val **out,
                             struct heddle_error *fault);
/* *out: -1 for a < b, 0 if equal, 1 for a > b, 2 if unordered (NaN). */
HD_MUST_CHECK int hd_val_compare(const struct hd_val *a, const struct hd_val *b, int *out,
                                 struct heddle_error *fault);

#endif
