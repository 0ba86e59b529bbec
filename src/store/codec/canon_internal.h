/*
 * The tables of the encoding, which validation, rendering and writing share: the kinds of records,
 * the types of messages, and the members of each.
 */
#ifndef HD_STORE_CODEC_CANON_INTERNAL_H
#define HD_STORE_CODEC_CANON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "store/codec/canon.h"

/* The permitted values of a member; shapes[] in canon_shape.c tests for each. */
enum hd_canon_shape {
    HD_SHAPE_ANY,
    HD_SHAPE_STRING, /* or a utf16 record */
    HD_SHAPE_STRING_OR_NULL,
    HD_SHAPE_OBJECT, /* or a map record */
    HD_SHAPE_OBJECT_OR_NULL,
    HD_SHAPE_LIST,
    HD_SHAPE_OBJECTS,    /* a list of objects */
    HD_SHAPE_PAIRS,      /* a list of lists of two */
    HD_SHAPE_CONTENT,    /* a string, or a list of strings and objects */
    HD_SHAPE_TOOL_CALLS, /* a list of objects with name, args and id */
    HD_SHAPE_TARGETS,    /* a list of strings and send records */
    HD_SHAPE_TIMEOUT,
    HD_SHAPE_STATUS,
    HD_SHAPE_TYPE, /* the type of a message */
    HD_SHAPE_NAME, /* a string and no record */
    HD_SHAPE_TRUE,
    HD_SHAPE_DIGITS,
    HD_SHAPE_FLOAT,
    HD_SHAPE_BASE64,
    HD_SHAPE_UTF16,
    HD_SHAPE_DATETIME,
    HD_SHAPE_COUNT
};

bool hd_canon_fits(enum hd_canon_shape shape, hd_json_val val);

/* The shape as a phrase for error messages: "a string", "an object" … */
const char *hd_canon_shape_name(enum hd_canon_shape shape);

struct hd_canon_member {
    const char *name; /* NULL ends a list */
    enum hd_canon_shape shape;
    const char *fallback; /* JSON text of its value when absent, or NULL */
    bool is_optional;     /* may be absent although it has no fallback */
};

/* A kind of record. */
struct hd_canon_kind {
    const char *name;
    void (*render)(struct hd_jw *jw, hd_json_val record);
    const struct hd_canon_member *members;
};

/* A type of message: a record of kind `message` with the common members and these. */
struct hd_canon_type {
    const char *name;
    const char *class_name; /* of LangChain's class */
    const char *needs;      /* a common member that is required, or NULL */
    const struct hd_canon_member *members;
};

/* The members of all messages but `type`, in the order in which they are written. */
extern const struct hd_canon_member hd_canon_common[];

/* NULL: unknown name. */
const struct hd_canon_kind *hd_canon_kind_find(struct hd_slice name);
const struct hd_canon_type *hd_canon_type_find(struct hd_slice name);
const struct hd_canon_type *hd_canon_type_of_class(struct hd_slice class_name);
const struct hd_canon_member *hd_canon_member_find(const struct hd_canon_member *members,
                                                   struct hd_slice name);
/* A member of any type of message. */
const struct hd_canon_member *hd_canon_member_of_any(struct hd_slice name);

/* The string behind `$` when that is the first member of an object; else NULL. */
hd_json_val hd_canon_kind_of(hd_json_val val);

/* A record of the given kind; does not check its other members. */
bool hd_canon_is_kind(hd_json_val val, const char *kind);

/* A record of a known kind with all required members, each of its shape, and no others. */
bool hd_canon_is_sound(hd_json_val record, const struct hd_canon_kind *kind);

/* The decoded size of base64 text; false when it is not base64 with padding. */
bool hd_canon_base64_size(struct hd_slice text, size_t *size);

/* `out` has room for the size that hd_canon_base64_size() returned for the same text. */
void hd_canon_base64_decode(struct hd_slice text, unsigned char *out);

/* Finds a duplicate name and returns it in *twice. 1 when found, 0 when not, or HD_ENOMEM. */
HD_MUST_CHECK int hd_canon_find_twice(hd_json_val object, struct hd_slice *twice);

/* ---- for the writers -------------------------------------------------- */

/* Also stores the error in the writer. */
int hd_canon_fail(struct hd_jw *jw, int err);

/* HD_EINVAL when a name occurs twice in `object`. */
HD_MUST_CHECK int hd_canon_refuse_twice(struct hd_jw *jw, hd_json_val object,
                                        struct heddle_error *fault);

void hd_canon_open_record(struct hd_jw *jw, const char *kind);

/* `key` and the plain value, null when that is NULL. */
HD_MUST_CHECK int hd_canon_put_or_null(struct hd_jw *jw, const char *key, hd_json_val val,
                                       struct heddle_error *fault);

/*
 * An object to which members are added one by one. One that has a key `$` is
 * written as a map record, where members are pairs.
 */
struct hd_canon_object {
    struct hd_jw *jw;
    bool is_map;
};

struct hd_canon_object hd_canon_open_object(struct hd_jw *jw, bool has_dollar);
void hd_canon_close_object(struct hd_canon_object *object);

/* The value is written between the two. */
void hd_canon_open_member(struct hd_canon_object *object, struct hd_slice key);
void hd_canon_close_member(struct hd_canon_object *object);

HD_MUST_CHECK int hd_canon_put_member(struct hd_canon_object *object, struct hd_slice key,
                                      hd_json_val val, struct heddle_error *fault);

/* ---- for the table of kinds ------------------------------------------- */

/* The renderers of canon_render.c. */
void hd_canon_render_message(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_send(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_command(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_interrupt(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_overwrite(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_delta(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_map(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_set(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_int(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_float(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_text(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_utf16(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_undefined(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_error(struct hd_jw *jw, hd_json_val record);
void hd_canon_render_foreign(struct hd_jw *jw, hd_json_val record);

#endif
