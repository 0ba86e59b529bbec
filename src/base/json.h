/*
 * JSON: yyjson behind our own names, and a streaming writer.
 *
 * Reading keeps numbers as the text they were written in (2^53+1, 1.0 and 1e3 survive a round trip)
 * and rejects anything but strict JSON. A document borrows nothing from its source. Only this
 * header names yyjson.
 */
#ifndef HD_BASE_JSON_H
#define HD_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_arena;

/* Deeper documents are rejected, so that recursive readers need no check of their own. */
#define HD_JSON_MAX_DEPTH 512

/* A value inside a document; lives as long as the document. NULL means "absent". */
typedef yyjson_val *hd_json_val;

struct hd_json {
    yyjson_doc *doc;
};

enum hd_json_type {
    HD_JSON_NONE,
    HD_JSON_NULL,
    HD_JSON_BOOL,
    HD_JSON_NUMBER,
    HD_JSON_STRING,
    HD_JSON_ARRAY,
    HD_JSON_OBJECT
};

/* HD_EINVAL with the position and cause in `fault`, or HD_ENOMEM. */
HD_MUST_CHECK int hd_json_parse(struct hd_json *json, struct hd_slice text,
                                struct heddle_error *fault);
/* The same for text that may contain C comments; for files that people write. */
HD_MUST_CHECK int hd_json_parse_commented(struct hd_json *json, struct hd_slice text,
                                          struct heddle_error *fault);
void hd_json_fini(struct hd_json *json);

/*
 * HD_EINVAL, with the name in `fault`, when an object anywhere in `val` has two members of one
 * name: parsers disagree about which of them counts. Or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_json_check_names(hd_json_val val, struct heddle_error *fault);

static inline hd_json_val hd_json_root(const struct hd_json *json)
{
    return json->doc ? yyjson_doc_get_root(json->doc) : NULL;
}

enum hd_json_type hd_json_type(hd_json_val val);
/* "null", "a boolean", "a number", …: for error messages. */
const char *hd_json_type_name(hd_json_val val);

static inline bool hd_json_is_object(hd_json_val val)
{
    return yyjson_is_obj(val);
}
static inline bool hd_json_is_array(hd_json_val val)
{
    return yyjson_is_arr(val);
}
static inline bool hd_json_is_string(hd_json_val val)
{
    return yyjson_is_str(val);
}
static inline bool hd_json_is_number(hd_json_val val)
{
    return yyjson_is_raw(val);
}
static inline bool hd_json_is_null(hd_json_val val)
{
    return yyjson_is_null(val);
}
static inline bool hd_json_is_bool(hd_json_val val)
{
    return yyjson_is_bool(val);
}
static inline bool hd_json_is_true(hd_json_val val)
{
    return yyjson_is_true(val);
}

/* The member, or NULL when it is absent or val is not an object. */
static inline hd_json_val hd_json_get(hd_json_val val, struct hd_slice key)
{
    return yyjson_obj_getn(val, key.ptr ? key.ptr : "", key.len);
}

/* Members of an object or elements of an array. */
static inline size_t hd_json_size(hd_json_val val)
{
    return yyjson_get_len(val) * (size_t)(yyjson_is_arr(val) || yyjson_is_obj(val));
}

/* A string's bytes (may contain NUL); empty for anything else. */
static inline struct hd_slice hd_json_string(hd_json_val val)
{
    return yyjson_is_str(val) ? hd_slice(yyjson_get_str(val), yyjson_get_len(val))
                              : hd_slice("", 0);
}

/* A number's text as written; empty for anything else. */
static inline struct hd_slice hd_json_number_text(hd_json_val val)
{
    return yyjson_is_raw(val) ? hd_slice(yyjson_get_raw(val), yyjson_get_len(val))
                              : hd_slice("", 0);
}

/* False when it is not an integer (1.0 and 1e3 are not) or does not fit; *out is untouched then. */
bool hd_json_int(hd_json_val val, int64_t *out);
/* The same for a number without a fraction in any notation: 1.0, 1e3; up to 2^53 then. */
bool hd_json_whole(hd_json_val val, int64_t *out);
/* False when it is not a number or its value is not a finite double. */
bool hd_json_double(hd_json_val val, double *out);

/*
 * Iterates over an object or an array; over nothing when val is neither:
 *
 *   struct hd_json_iter it = hd_json_iter(val);
 *
 *   while (hd_json_next(&it))
 *       … it.key (objects) … it.val …
 */
struct hd_json_iter {
    yyjson_arr_iter arr;
    yyjson_obj_iter obj;
    bool is_object;
    struct hd_slice key;
    hd_json_val val;
};

struct hd_json_iter hd_json_iter(hd_json_val val);
bool hd_json_next(struct hd_json_iter *it);

/*
 * True for the same JSON value: numbers by exact decimal value (1 equals 1.0, and two integers
 * never compare equal by rounding), objects in any order.
 */
bool hd_json_equal(hd_json_val a, hd_json_val b);

/*
 * PostgreSQL's jsonb containment: an object contains another when it has all
 * its members, each contained; an array when each element of the other is
 * contained in some element; scalars when equal.
 */
bool hd_json_contains(hd_json_val whole, hd_json_val part);

/* Appends the compact text of `val`; numbers as they were written. */
HD_MUST_CHECK int hd_json_write_val(struct hd_buf *out, hd_json_val val);

/* Appends `s` as a quoted JSON string. Bytes that are not UTF-8 become U+FFFD. */
HD_MUST_CHECK int hd_json_write_string(struct hd_buf *out, struct hd_slice s);

/*
 * The streaming writer: inserts commas, keeps the first error, and hd_jw_finish() returns it. Depth
 * beyond HD_JSON_MAX_DEPTH is HD_ELIMIT.
 */
struct hd_jw {
    struct hd_buf *out;
    int err;
    int depth;
    bool needs_comma;
};

void hd_jw_init(struct hd_jw *jw, struct hd_buf *out);
void hd_jw_object(struct hd_jw *jw);
void hd_jw_object_end(struct hd_jw *jw);
void hd_jw_array(struct hd_jw *jw);
void hd_jw_array_end(struct hd_jw *jw);
void hd_jw_key(struct hd_jw *jw, struct hd_slice key);
void hd_jw_string(struct hd_jw *jw, struct hd_slice s);
void hd_jw_int(struct hd_jw *jw, int64_t value);
void hd_jw_bool(struct hd_jw *jw, bool value);
void hd_jw_null(struct hd_jw *jw);
void hd_jw_val(struct hd_jw *jw, hd_json_val val);
/* `text` is already JSON. */
void hd_jw_raw(struct hd_jw *jw, struct hd_slice text);
/* The same; `otherwise` when the text is empty. */
void hd_jw_raw_or(struct hd_jw *jw, struct hd_slice text, const char *otherwise);
/* Microseconds since 1970 as hd_clock_format_iso() writes them. */
void hd_jw_timestamp(struct hd_jw *jw, int64_t us);
HD_MUST_CHECK int hd_jw_finish(struct hd_jw *jw);
/* As hd_jw_finish(), and copies the text into the arena. Frees the buffer in either case. */
HD_MUST_CHECK int hd_jw_finish_in(struct hd_jw *jw, struct hd_arena *arena, struct hd_slice *out);

/*
 * Members of an object: hd_jw_put_X(jw, "key", …) writes the key and the value that
 * hd_jw_X(jw, …) writes. Inline, so that the length of a literal key is a constant.
 */
/* Begins an object or an array; hd_jw_object_end() or hd_jw_array_end() ends it. */
static inline void hd_jw_put_object(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_object(jw);
}
static inline void hd_jw_put_array(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_array(jw);
}
static inline void hd_jw_put_string(struct hd_jw *jw, const char *key, struct hd_slice s)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_string(jw, s);
}
/* null when the string is empty. */
void hd_jw_put_string_or_null(struct hd_jw *jw, const char *key, struct hd_slice s);
static inline void hd_jw_put_int(struct hd_jw *jw, const char *key, int64_t value)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_int(jw, value);
}
static inline void hd_jw_put_bool(struct hd_jw *jw, const char *key, bool value)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_bool(jw, value);
}
static inline void hd_jw_put_null(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_null(jw);
}
static inline void hd_jw_put_val(struct hd_jw *jw, const char *key, hd_json_val val)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_val(jw, val);
}
static inline void hd_jw_put_raw(struct hd_jw *jw, const char *key, struct hd_slice text)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_raw(jw, text);
}
static inline void hd_jw_put_raw_or(struct hd_jw *jw, const char *key, struct hd_slice text,
                                    const char *otherwise)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_raw_or(jw, text, otherwise);
}
static inline void hd_jw_put_timestamp(struct hd_jw *jw, const char *key, int64_t us)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_timestamp(jw, us);
}

#endif
