/*
 * The tables of the encoding and the check against them.
 *
 * Checking is one walk: each object, a plain one or a record of its kind, is checked by the shapes
 * of its members; the members themselves follow like all other values. The walk may recurse: a
 * parsed document is never deeper than HD_JSON_MAX_DEPTH.
 */
#include "store/codec/canon.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/utf8.h"
#include "store/codec/canon_internal.h"

#define MAX_SAFE_INTEGER ((INT64_C(1) << 53) - 1)
#define FEW_NAMES 16 /* up to this many names are compared pairwise */

/* ---- tables ----------------------------------------------------------- */

/* clang-format off */

/* Required members, optional ones, and those with a default. */
#define NEEDS(name, shape) {name, HD_SHAPE_##shape, NULL, false}
#define MAY(name, shape) {name, HD_SHAPE_##shape, NULL, true}
#define ELSE(name, shape, fallback) {name, HD_SHAPE_##shape, fallback, false}
#define END {NULL, HD_SHAPE_ANY, NULL, true}

static const struct hd_canon_member
    no_members[] = {END},
    message_members[] = {NEEDS("type", TYPE), END}, /* and those below */
    send_members[] = {NEEDS("node", STRING), NEEDS("arg", ANY), MAY("timeout", TIMEOUT), END},
    command_members[] = {ELSE("graph", STRING, "null"), ELSE("update", ANY, "null"),
                         ELSE("resume", ANY, "null"), ELSE("goto", TARGETS, "[]"), END},
    interrupt_members[] = {NEEDS("value", ANY), NEEDS("id", STRING),
                           MAY("response_schema", OBJECT), END},
    value_members[] = {NEEDS("value", ANY), END},
    map_members[] = {NEEDS("items", PAIRS), MAY("map", TRUE), END},
    set_members[] = {NEEDS("items", LIST), MAY("frozen", TRUE), END},
    int_members[] = {NEEDS("v", DIGITS), END},
    float_members[] = {NEEDS("v", FLOAT), END},
    bytes_members[] = {NEEDS("v", BASE64), MAY("mutable", TRUE), END},
    utf16_members[] = {NEEDS("v", UTF16), END},
    datetime_members[] = {NEEDS("v", DATETIME), END},
    error_members[] = {NEEDS("type", STRING), NEEDS("message", STRING), END},
    foreign_members[] = {NEEDS("type", NAME), NEEDS("v", BASE64), END};

static const struct hd_canon_kind kinds[] = {
    {"message", hd_canon_render_message, message_members},
    {"send", hd_canon_render_send, send_members},
    {"command", hd_canon_render_command, command_members},
    {"interrupt", hd_canon_render_interrupt, interrupt_members},
    {"overwrite", hd_canon_render_overwrite, value_members},
    {"delta", hd_canon_render_delta, value_members},
    {"map", hd_canon_render_map, map_members},
    {"set", hd_canon_render_set, set_members},
    {"int", hd_canon_render_int, int_members},
    {"float", hd_canon_render_float, float_members},
    {"bytes", hd_canon_render_text, bytes_members},
    {"utf16", hd_canon_render_utf16, utf16_members},
    {"datetime", hd_canon_render_text, datetime_members},
    {"undefined", hd_canon_render_undefined, no_members},
    {"error", hd_canon_render_error, error_members},
    {"foreign", hd_canon_render_foreign, foreign_members},
};

const struct hd_canon_member hd_canon_common[] = {
    NEEDS("content", CONTENT),
    ELSE("id", STRING_OR_NULL, "null"),
    ELSE("name", STRING_OR_NULL, "null"),
    ELSE("additional_kwargs", OBJECT, "{}"),
    ELSE("response_metadata", OBJECT, "{}"),
    END,
};

static const struct hd_canon_member
    ai_members[] = {ELSE("tool_calls", TOOL_CALLS, "[]"),
                    ELSE("invalid_tool_calls", OBJECTS, "[]"),
                    ELSE("usage_metadata", OBJECT_OR_NULL, "null"), END},
    ai_chunk_members[] = {ELSE("tool_calls", TOOL_CALLS, "[]"),
                          ELSE("invalid_tool_calls", OBJECTS, "[]"),
                          ELSE("usage_metadata", OBJECT_OR_NULL, "null"),
                          ELSE("tool_call_chunks", OBJECTS, "[]"),
                          ELSE("chunk_position", STRING_OR_NULL, "null"), END},
    tool_members[] = {NEEDS("tool_call_id", STRING), ELSE("artifact", ANY, "null"),
                      ELSE("status", STATUS, "\"success\""), END},
    chat_members[] = {NEEDS("role", STRING), END};

static const struct hd_canon_type types[] = {
    {"human", "HumanMessage", NULL, no_members},
    {"ai", "AIMessage", NULL, ai_members},
    {"tool", "ToolMessage", NULL, tool_members},
    {"system", "SystemMessage", NULL, no_members},
    {"function", "FunctionMessage", "name", no_members},
    {"chat", "ChatMessage", NULL, chat_members},
    {"remove", "RemoveMessage", "id", no_members},
    {"HumanMessageChunk", "HumanMessageChunk", NULL, no_members},
    {"AIMessageChunk", "AIMessageChunk", NULL, ai_chunk_members},
    {"ToolMessageChunk", "ToolMessageChunk", NULL, tool_members},
    {"SystemMessageChunk", "SystemMessageChunk", NULL, no_members},
    {"FunctionMessageChunk", "FunctionMessageChunk", "name", no_members},
    {"ChatMessageChunk", "ChatMessageChunk", NULL, chat_members},
};
/* clang-format on */

/* Most names differ in their first byte, which is cheaper to compare than their lengths. */
static bool is_member_name(const char *name, struct hd_slice wanted)
{
    size_t i;

    for (i = 0; i < wanted.len; i++)
        if (name[i] == '\0' || name[i] != wanted.ptr[i])
            return false;
    return name[i] == '\0';
}

const struct hd_canon_kind *hd_canon_kind_find(struct hd_slice name)
{
    size_t i;

    for (i = 0; i < HD_COUNT(kinds); i++)
        if (is_member_name(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

const struct hd_canon_type *hd_canon_type_find(struct hd_slice name)
{
    size_t i;

    for (i = 0; i < HD_COUNT(types); i++)
        if (is_member_name(types[i].name, name))
            return &types[i];
    return NULL;
}

const struct hd_canon_type *hd_canon_type_of_class(struct hd_slice class_name)
{
    size_t i;

    for (i = 0; i < HD_COUNT(types); i++)
        if (is_member_name(types[i].class_name, class_name))
            return &types[i];
    return NULL;
}

const struct hd_canon_member *hd_canon_member_find(const struct hd_canon_member *members,
                                                   struct hd_slice name)
{
    for (; members->name; members++)
        if (is_member_name(members->name, name))
            return members;
    return NULL;
}

/* ---- members that clients see ----------------------------------------- */

#define MAX_VIEWS 16

static struct {
    struct hd_canon_view list[MAX_VIEWS];
    size_t count;
} views[HD_COUNT(types)];

static void add_view(size_t type, const char *name, const char *fallback)
{
    assert(views[type].count < MAX_VIEWS);
    views[type].list[views[type].count++] = (struct hd_canon_view){
        .name = hd_slice_cstr(name), .fallback = hd_slice_cstr(fallback ? fallback : "null")};
}

static void make_views(void)
{
    static const char *const order[] = {
        "content", "additional_kwargs", "response_metadata", "type", "name", "id"};

    for (size_t type = 0; type < HD_COUNT(types); type++) {
        const struct hd_canon_member *member;

        for (size_t i = 0; i < HD_COUNT(order); i++) {
            member = hd_canon_member_find(hd_canon_common, hd_slice_cstr(order[i]));
            add_view(type, order[i], member ? member->fallback : NULL);
        }
        for (member = types[type].members; member->name; member++)
            add_view(type, member->name, member->fallback);
    }
}

const struct hd_canon_view *hd_canon_views(struct hd_slice type, size_t *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct hd_canon_type *found = hd_canon_type_find(type);

    *count = 0;
    if (!found || pthread_once(&once, make_views))
        return NULL;
    *count = views[found - types].count;
    return views[found - types].list;
}

const struct hd_canon_member *hd_canon_member_of_any(struct hd_slice name)
{
    const struct hd_canon_member *found = hd_canon_member_find(hd_canon_common, name);
    size_t i;

    for (i = 0; !found && i < HD_COUNT(types); i++)
        found = hd_canon_member_find(types[i].members, name);
    return found;
}

hd_json_val hd_canon_kind_of(hd_json_val val)
{
    struct hd_json_iter it;

    if (!hd_json_is_object(val))
        return NULL;
    it = hd_json_iter(val);
    return hd_json_next(&it) && is_member_name("$", it.key) && hd_json_is_string(it.val) ? it.val
                                                                                         : NULL;
}

bool hd_canon_is_kind(hd_json_val val, const char *kind)
{
    hd_json_val name = hd_canon_kind_of(val);

    return name && is_member_name(kind, hd_json_string(name));
}

/* ---- positions -------------------------------------------------------- */

/* The path from the root to a value, one frame for each level. */
struct path {
    const struct path *up;
    struct hd_slice key; /* ptr NULL: an element of an array */
    size_t index;
};

/* Appends the escaped key to text[*len..size), as much as fits. */
static void path_put_key(struct hd_slice key, char *text, size_t size, size_t *len)
{
    size_t i;

    for (i = 0; i < key.len && *len + 2 < size; i++) {
        bool is_escaped = key.ptr[i] == '~' || key.ptr[i] == '/';

        text[(*len)++] = is_escaped ? '~' : key.ptr[i];
        if (is_escaped)
            text[(*len)++] = key.ptr[i] == '~' ? '0' : '1';
    }
}

static void put_path(const struct path *path, char *text, size_t size, size_t *len)
{
    if (!path || *len + 24 > size)
        return;
    put_path(path->up, text, size, len);
    if (*len + 24 > size)
        return;
    if (!path->key.ptr) {
        *len += (size_t)snprintf(text + *len, size - *len, "/%zu", path->index);
        return;
    }
    text[(*len)++] = '/';
    path_put_key(path->key, text, size, len);
}

/* Records the error at `path`. */
static int canon_refuse(struct heddle_error *fault, const struct path *path, const char *wrong)
{
    char text[140] = {0};
    size_t len = 0;

    put_path(path, text, sizeof(text), &len);
    len = hd_utf8_cut(text, len);
    return hd_error_set(fault, HD_EINVAL, "not canonical at %.*s: %s", len ? (int)len : 8,
                        len ? text : "the root", wrong);
}

/* The same for a member of the value at `path`. */
static int refuse_member(struct heddle_error *fault, const struct path *path, struct hd_slice name,
                         const char *wrong)
{
    struct path member = {.up = path, .key = hd_slice(name.ptr ? name.ptr : "", name.len)};

    return canon_refuse(fault, &member, wrong);
}

/* ---- checking --------------------------------------------------------- */

static int twice_among_few(hd_json_val object, struct hd_slice *twice)
{
    struct hd_slice names[FEW_NAMES];
    struct hd_json_iter it = hd_json_iter(object);
    size_t count = 0;

    while (hd_json_next(&it)) {
        size_t i;

        for (i = 0; i < count; i++)
            if (hd_slice_eq(names[i], it.key)) {
                *twice = it.key;
                return 1;
            }
        names[count++] = it.key;
    }
    return 0;
}

static int twice_among_many(hd_json_val object, struct hd_slice *twice)
{
    struct hd_json_iter it = hd_json_iter(object);
    struct hd_map seen;
    int err = 0;

    hd_map_init(&seen, SIZE_MAX);
    while (err == 0 && hd_json_next(&it)) {
        *twice = it.key;
        err = hd_map_get(&seen, it.key) ? 1 : hd_map_put(&seen, it.key, object);
    }
    hd_map_fini(&seen);
    return err;
}

int hd_canon_find_twice(hd_json_val object, struct hd_slice *twice)
{
    if (hd_json_size(object) <= FEW_NAMES)
        return twice_among_few(object, twice);
    return twice_among_many(object, twice);
}

/* A map shown as an object must not have duplicate keys. */
static int check_keys(hd_json_val pairs, const struct path *path, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(pairs);
    struct hd_map seen;
    int err = 0;

    hd_map_init(&seen, SIZE_MAX);
    while (err == 0 && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        if (!hd_json_next(&pair) || !hd_json_is_string(pair.val))
            continue;
        if (hd_map_get(&seen, hd_json_string(pair.val)))
            err = refuse_member(fault, path, hd_json_string(pair.val), "a key that occurs twice");
        else
            err = hd_map_put(&seen, hd_json_string(pair.val), pairs);
    }
    hd_map_fini(&seen);
    return err;
}

/* Members in the table: present when required, and of their shape. */
static int check_members(hd_json_val record, const struct hd_canon_member *members,
                         const struct path *path, struct heddle_error *fault)
{
    for (; members->name; members++) {
        struct hd_slice name = hd_slice_cstr(members->name);
        hd_json_val val = hd_json_get(record, name);
        char wrong[96];

        if (!val && !members->fallback && !members->is_optional)
            return refuse_member(fault, path, name, "missing");
        if (!val || hd_canon_fits(members->shape, val))
            continue;
        (void)snprintf(wrong, sizeof(wrong), "%s expected", hd_canon_shape_name(members->shape));
        return refuse_member(fault, path, name, wrong);
    }
    return 0;
}

/* Members in no table. */
static int check_strangers(hd_json_val record, const struct hd_canon_kind *kind,
                           const struct hd_canon_type *type, const struct path *path,
                           struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(record);

    while (hd_json_next(&it)) {
        if (is_member_name("$", it.key) || hd_canon_member_find(kind->members, it.key))
            continue;
        if (type && (hd_canon_member_find(hd_canon_common, it.key) ||
                     hd_canon_member_find(type->members, it.key)))
            continue;
        return refuse_member(fault, path, it.key,
                             type ? "no member of such a message"
                                  : "no member of this kind of record");
    }
    return 0;
}

static int check_message(hd_json_val record, const struct hd_canon_type *type,
                         const struct path *path, struct heddle_error *fault)
{
    struct hd_slice needs = hd_slice_cstr(type->needs);
    int err = check_members(record, hd_canon_common, path, fault);

    if (err != 0)
        return err;
    if (type->needs && !hd_canon_fits(HD_SHAPE_STRING, hd_json_get(record, needs)))
        return refuse_member(fault, path, needs, "a string expected");
    if (is_member_name("remove", hd_slice_cstr(type->name)) &&
        !hd_slice_eq(hd_json_string(hd_json_get(record, HD_S("content"))), HD_S("")))
        return refuse_member(fault, path, HD_S("content"), "\"\" expected");
    return check_members(record, type->members, path, fault);
}

/* Checks a record of a known kind except the contents of its members. */
static int check_record(hd_json_val record, const struct hd_canon_kind *kind,
                        const struct path *path, struct heddle_error *fault)
{
    const struct hd_canon_type *type = NULL;
    int err = check_members(record, kind->members, path, fault);

    if (err == 0 && is_member_name("message", hd_slice_cstr(kind->name))) {
        type = hd_canon_type_find(hd_json_string(hd_json_get(record, HD_S("type"))));
        err = check_message(record, type, path, fault);
    }
    return err != 0 ? err : check_strangers(record, kind, type, path, fault);
}

bool hd_canon_is_sound(hd_json_val record, const struct hd_canon_kind *kind)
{
    return check_record(record, kind, NULL, NULL) == 0;
}

static int check_object(hd_json_val object, const struct path *path, struct heddle_error *fault)
{
    hd_json_val dollar = hd_json_get(object, HD_S("$"));
    hd_json_val name = hd_canon_kind_of(object);
    const struct hd_canon_kind *kind;
    struct hd_slice twice;
    int err = hd_canon_find_twice(object, &twice);

    if (err > 0)
        return refuse_member(fault, path, twice, "a name that occurs twice");
    if (err != 0 || !dollar)
        return err;
    if (!name)
        return refuse_member(fault, path, HD_S("$"),
                             hd_json_is_string(dollar) ? "not the first member"
                                                       : "a string expected");
    kind = hd_canon_kind_find(hd_json_string(name));
    if (!kind)
        return 0;
    err = check_record(object, kind, path, fault);
    if (err == 0 && is_member_name("map", hd_slice_cstr(kind->name)))
        err = check_keys(hd_json_get(object, HD_S("items")), path, fault);
    return err;
}

static int check_number(hd_json_val number, const struct path *path, struct heddle_error *fault)
{
    struct hd_slice text = hd_json_number_text(number);
    bool is_integer = !memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len) &&
                      !memchr(text.ptr, 'E', text.len);
    int64_t integer;
    double real;

    if (!is_integer) {
        if (!hd_json_double(number, &real) || !isfinite(real))
            return canon_refuse(fault, path, "a number too large for a double");
        return 0;
    }
    if (!hd_json_int(number, &integer) || integer > MAX_SAFE_INTEGER || integer < -MAX_SAFE_INTEGER)
        return canon_refuse(fault, path, "an integer beyond 2^53-1 that is not an int record");
    return 0;
}

static int canon_check_value(hd_json_val val, const struct path *path, struct heddle_error *fault)
{
    struct hd_json_iter it;
    struct path inner = {.up = path};
    int err = 0;

    if (hd_json_is_number(val))
        return check_number(val, path, fault);
    if (!hd_json_is_array(val) && !hd_json_is_object(val))
        return 0;
    if (hd_json_is_object(val))
        err = check_object(val, path, fault);
    it = hd_json_iter(val);
    while (err == 0 && hd_json_next(&it)) {
        if (it.is_object)
            inner.key = it.key;
        err = canon_check_value(it.val, &inner, fault);
        inner.index++;
    }
    return err;
}

int hd_canon_check(hd_json_val val, struct heddle_error *fault)
{
    if (!val)
        return hd_error_set(fault, HD_EINVAL, "not canonical: the text is empty");
    return canon_check_value(val, NULL, fault);
}

int hd_canon_validate(struct hd_slice text, struct heddle_error *fault)
{
    struct hd_json json;
    int err = hd_json_parse(&json, text, fault);

    if (err != 0)
        return err;
    err = hd_canon_check(hd_json_root(&json), fault);
    hd_json_fini(&json);
    return err;
}
