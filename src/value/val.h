/*
 * The engine's values: what channels hold, nodes return and expressions find.
 *
 * A value is null, a boolean, an integer, a float, a string, a list or an
 * object. A *record* (docs/encoding.md) is an object with a kind: a message's
 * content is an ordinary member of it. Members keep the order in which they
 * were added.
 *
 * Values never change, so everybody may keep one: hd_val_ref() counts. Counts
 * are not atomic: a value belongs to one thread. null, the booleans and the empty
 * string are never freed and belong to all; so do values that were frozen, such as
 * those in a graph: their counts are not touched any more, and whatever is made
 * of them is new. They must outlive everything that refers to them.
 *
 * Lists are views on a buffer that several may share. To append to the list
 * whose view ends where the buffer ends costs the same at any length and leaves
 * older views as long as they were; everything else that makes a new list copies
 * the pointers of its elements.
 *
 * Ownership: arguments that are `const` are borrowed, all other values are
 * *taken*, also when the call fails. Functions that make a value return NULL
 * when memory is exhausted, and also when a value they take is NULL: calls can
 * be nested and checked once. A container that is taken and that nobody else
 * holds is changed in place.
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
 * What is read, written and kept in the state has at most HD_JSON_MAX_DEPTH
 * levels. A value under construction may be deeper, by far more than any
 * expression over such values can make it; making a deeper one fails as if
 * memory were exhausted.
 */
#define HD_VAL_MAX_DEPTH 8192

enum hd_val_type {
    HD_VAL_NULL,
    HD_VAL_BOOL,
    HD_VAL_INT,
    HD_VAL_FLOAT, /* NaN, the infinities and -0.0 included */
    HD_VAL_STRING,
    HD_VAL_LIST,
    HD_VAL_OBJECT
};

/*
 * Kinds of records. Those of integers that fit into 64 bits, of floats and of
 * maps that stand for an object with a key `$` are plain values here.
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
    HD_KIND_INT, /* of any size, or a small one that JavaScript calls a bigint */
    HD_KIND_BYTES,
    HD_KIND_UTF16,
    HD_KIND_DATETIME,
    HD_KIND_UNDEFINED,
    HD_KIND_ERROR,
    HD_KIND_FOREIGN,
    HD_KIND_UNKNOWN, /* any other name: hd_val_kind_name() */
    HD_KIND_COUNT
};

/* Read with the functions below. */
struct hd_val {
    uint32_t refs;  /* the greatest ones: not counted */
    uint16_t depth; /* 0 for scalars, else one more than the deepest inside */
    uint8_t type;
    uint8_t kind;
};

/* Both accept NULL. */
struct hd_val *hd_val_ref(const struct hd_val *val);
void hd_val_unref(struct hd_val *val);

/*
 * Freezes the value and all that is in it. `keep` gets each that was not frozen
 * before, after those inside, and remembers it for hd_val_release(); an error of
 * it ends the walk, and is returned. Nobody but the caller may use the value yet.
 */
typedef int (*hd_val_keep_fn)(void *ctx, struct hd_val *val);
HD_MUST_CHECK int hd_val_freeze(struct hd_val *val, hd_val_keep_fn keep, void *ctx);
/* Frees the memory of one frozen value, without what is in it. */
void hd_val_release(struct hd_val *frozen);

/*
 * The same value without anything that was frozen, for who may outlive the graph:
 * itself when there is nothing, else a copy. NULL when memory is exhausted.
 */
HD_MUST_CHECK struct hd_val *hd_val_lasting(const struct hd_val *val);

/* ---- scalars ---------------------------------------------------------- */

struct hd_val *hd_val_null(void);
struct hd_val *hd_val_bool(bool value);
HD_MUST_CHECK struct hd_val *hd_val_int(int64_t value);
HD_MUST_CHECK struct hd_val *hd_val_float(double value);
/* Copies. Bytes that are not UTF-8 become U+FFFD when it is written. */
HD_MUST_CHECK struct hd_val *hd_val_string(struct hd_slice text);
HD_MUST_CHECK struct hd_val *hd_val_cstr(const char *text);
HD_MUST_CHECK struct hd_val *hd_val_printf(const char *fmt, ...) HD_PRINTF(1, 2);
HD_MUST_CHECK struct hd_val *hd_val_vprintf(const char *fmt, va_list args) HD_PRINTF(1, 0);

/* ---- reading ---------------------------------------------------------- */

/* NULL is not a value; these take it for null, so that a member that is not there reads as null. */

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
/* Records too. */
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
/* The name of the class that Python has for it ("str", "dict", "AIMessage" …), as its errors say it. */
const char *hd_val_python_type(const struct hd_val *val);
/* What `$` says: "message", "send" …; empty when it is not a record. */
struct hd_slice hd_val_kind_name(const struct hd_val *val);

/* false for anything but true */
bool hd_val_is_true(const struct hd_val *val);
/* False when it is no integer; *out is untouched then. */
bool hd_val_get_int(const struct hd_val *val, int64_t *out);
/* False when it is no number. */
bool hd_val_get_double(const struct hd_val *val, double *out);
/* A string's bytes, which may contain NUL and are followed by one; empty for anything else. */
struct hd_slice hd_val_get_string(const struct hd_val *val);

/* Elements of a list, members of an object; 0 for anything else. */
size_t hd_val_count(const struct hd_val *val);

/* All that follow borrow from `val`. NULL: not there (or not a list, not an object). */
struct hd_val *hd_val_at(const struct hd_val *list, size_t index);
/* Negative: from the end. */
struct hd_val *hd_val_at_signed(const struct hd_val *list, int64_t index);
struct hd_val *hd_val_get(const struct hd_val *object, struct hd_slice key);
/* Member number `index`; *key, if given, is a string value. */
struct hd_val *hd_val_member(const struct hd_val *object, size_t index, struct hd_val **key);

/* null, false, 0, "", [] and {} are false; records by what they stand for. */
bool hd_val_truth(const struct hd_val *val);

/*
 * Same value: numbers by their exact value (1 equals 1.0; NaN equals nothing),
 * true and 1 differ, objects in any order, records of one kind.
 */
bool hd_val_equal(const struct hd_val *a, const struct hd_val *b);

/* ---- lists ------------------------------------------------------------ */

HD_MUST_CHECK struct hd_val *hd_val_list(void);
HD_MUST_CHECK struct hd_val *hd_val_append(struct hd_val *list, struct hd_val *val);
/* All elements of `more` behind those of `list`. */
HD_MUST_CHECK struct hd_val *hd_val_extend(struct hd_val *list, const struct hd_val *more);
/* Element `index`, which must be there, becomes `val`. */
HD_MUST_CHECK struct hd_val *hd_val_replace(struct hd_val *list, size_t index, struct hd_val *val);
/* Elements from, from + 1, … to - 1; bounds beyond the list are the list's. */
HD_MUST_CHECK struct hd_val *hd_val_slice(const struct hd_val *list, size_t from, size_t to);

/*
 * How many elements at the beginning both lists have in common because they are
 * views on one buffer. 0 says nothing about their elements.
 */
size_t hd_val_common(const struct hd_val *a, const struct hd_val *b);

/* ---- objects ---------------------------------------------------------- */

HD_MUST_CHECK struct hd_val *hd_val_object(void);
/* Adds or replaces a member. A new member of a message goes where the encoding wants it. */
HD_MUST_CHECK struct hd_val *hd_val_with(struct hd_val *object, struct hd_slice key,
                                         struct hd_val *val);
/* The same with a key that is a value; the key is taken too. */
HD_MUST_CHECK struct hd_val *hd_val_with_key(struct hd_val *object, struct hd_val *key,
                                             struct hd_val *val);
HD_MUST_CHECK struct hd_val *hd_val_without(struct hd_val *object, struct hd_slice key);
/* All members of `more`, which win. */
HD_MUST_CHECK struct hd_val *hd_val_merge(struct hd_val *object, const struct hd_val *more);

/* ---- records ---------------------------------------------------------- */

/* Without members yet. Not for HD_KIND_NONE and HD_KIND_UNKNOWN. */
HD_MUST_CHECK struct hd_val *hd_val_record(enum hd_val_kind kind);

/* `id` may be NULL: none yet. */
HD_MUST_CHECK struct hd_val *hd_val_message(const char *type, struct hd_val *content,
                                            const char *id);
HD_MUST_CHECK struct hd_val *hd_val_remove(struct hd_slice id);
HD_MUST_CHECK struct hd_val *hd_val_send(struct hd_slice node, struct hd_val *arg);
HD_MUST_CHECK struct hd_val *hd_val_interrupt(struct hd_val *value, struct hd_slice id);
HD_MUST_CHECK struct hd_val *hd_val_overwrite(struct hd_val *value);
/* `items` is a list without repetitions. */
HD_MUST_CHECK struct hd_val *hd_val_set(struct hd_val *items);

/* ---- text ------------------------------------------------------------- */

/*
 * Canonical text (docs/encoding.md), validated. HD_EINVAL with the cause and
 * the path in `fault`, or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_val_parse(struct hd_slice text, struct hd_val **out, struct hd_fault *fault);
/* The same for a value that is parsed already. */
HD_MUST_CHECK int hd_val_from_canon(hd_json_val json, struct hd_val **out, struct hd_fault *fault);

/*
 * Plain JSON, such as the body of a request or a part of a declaration: `$` is
 * a key like others. HD_EINVAL when a name occurs twice in an object.
 */
HD_MUST_CHECK int hd_val_parse_json(struct hd_slice text, struct hd_val **out,
                                    struct hd_fault *fault);
HD_MUST_CHECK int hd_val_from_json(hd_json_val json, struct hd_val **out, struct hd_fault *fault);

/*
 * Appends canonical text: for what was parsed exactly the text it was parsed
 * from. HD_ELIMIT when it is too deep or the buffer is full, or HD_ENOMEM;
 * appends nothing then.
 */
HD_MUST_CHECK int hd_val_write(struct hd_buf *out, const struct hd_val *val);
/* The same into a writer, which keeps the error. */
void hd_val_put(struct hd_jw *jw, const struct hd_val *val);

/* Appends the plain JSON that clients see. Errors as hd_val_write(). */
HD_MUST_CHECK int hd_val_render(struct hd_buf *out, const struct hd_val *val);
void hd_val_put_rendered(struct hd_jw *jw, const struct hd_val *val);

/* For `{{…}}` within a longer string: strings as they are, all else as hd_val_render(). */
HD_MUST_CHECK int hd_val_write_text(struct hd_buf *out, const struct hd_val *val);

/*
 * A message record from any form that add_messages takes: a message as it is; a
 * string, a list [role, content], an object with `role` or `type`. HD_EINVAL
 * with the cause in `fault`.
 */
HD_MUST_CHECK int hd_val_to_message(const struct hd_val *val, struct hd_val **out,
                                    struct hd_fault *fault);

/* ---- arithmetic: val_ops.c -------------------------------------------- */

/*
 * As Python's operators, which reducers are: HD_EINVAL with Python's text in
 * `fault` for operands that have no sum or no order, HD_ELIMIT for integers that
 * leave 64 bits. A boolean counts as 0 or 1.
 */

/* Numbers: the sum. Strings and lists: one after the other. Takes `a`. */
HD_MUST_CHECK int hd_val_add(struct hd_val *a, const struct hd_val *b, struct hd_val **out,
                             struct hd_fault *fault);
/* *out: -1 for a < b, 0 when equal, 1 for a > b; 2 when there is no order (NaN). */
HD_MUST_CHECK int hd_val_compare(const struct hd_val *a, const struct hd_val *b, int *out,
                                 struct hd_fault *fault);

#endif
