/* Reads members of a declaration, and reports errors with their path. */
#include "graph/decl/decl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_MEMORY ((size_t)256 << 20)
#define MAX_SHOWN 64
/* In objects up to this size, a pairwise comparison finds repeated members. */
#define FEW_MEMBERS 16

/* ---- memory ----------------------------------------------------------- */

struct hd_kept {
    struct hd_kept *next;
    struct hd_val *val;
};

void hd_decl_memory_init(struct hd_decl_memory *hold)
{
    hd_arena_init(&hold->arena, MAX_MEMORY);
    hold->kept = hold->frozen = NULL;
}

void hd_decl_memory_fini(struct hd_decl_memory *hold)
{
    for (struct hd_kept *kept = hold->kept; kept; kept = kept->next)
        hd_val_unref(kept->val);
    for (struct hd_kept *kept = hold->frozen; kept; kept = kept->next)
        hd_val_release(kept->val);
    hold->kept = hold->frozen = NULL;
    hd_arena_fini(&hold->arena);
}

static int push_kept(struct hd_decl_memory *hold, struct hd_kept **list, struct hd_val *val)
{
    struct hd_kept *kept = hd_arena_alloc(&hold->arena, sizeof(*kept));

    if (!kept)
        return HD_ENOMEM;
    kept->val = val;
    kept->next = *list;
    *list = kept;
    return 0;
}

int hd_decl_memory_keep(struct hd_decl_memory *hold, struct hd_val *val)
{
    int err = val ? push_kept(hold, &hold->kept, val) : HD_ENOMEM;

    if (err)
        hd_val_unref(val);
    return err;
}

static int keep_frozen(void *ctx, struct hd_val *val)
{
    struct hd_decl_memory *hold = ctx;

    return push_kept(hold, &hold->frozen, val);
}

int hd_decl_memory_freeze(struct hd_decl_memory *hold)
{
    int err = 0;

    for (struct hd_kept *kept = hold->kept; kept && !err; kept = kept->next)
        err = hd_val_freeze(kept->val, keep_frozen, hold);
    return err;
}

void *hd_decl_memory_push(struct hd_decl_memory *hold, void *array, size_t *count, size_t size)
{
    char *old, *elements;

    memcpy(&elements, array, sizeof(elements));
    /* The array is full at every power of two, so no capacity is stored. */
    if ((*count & (*count - 1)) == 0) {
        old = elements;
        elements = hd_arena_calloc(&hold->arena, *count ? 2 * *count : 1, size);
        if (!elements)
            return NULL;
        if (*count)
            memcpy(elements, old, *count * size);
        memcpy(array, &elements, sizeof(elements));
    }
    return elements + (*count)++ * size;
}

int hd_decl_copy(struct hd_decl *decl, struct hd_slice s, struct hd_slice *out)
{
    return hd_arena_copy(&decl->hold->arena, s, out);
}

/* ---- paths ------------------------------------------------------------ */

struct hd_decl_at hd_decl_at_key(const struct hd_decl_at *up, struct hd_slice key, hd_json_val val)
{
    return (struct hd_decl_at){.up = up, .key = key, .val = val};
}

struct hd_decl_at hd_decl_at_index(const struct hd_decl_at *up, size_t index, hd_json_val val)
{
    return (struct hd_decl_at){.up = up, .index = index, .val = val};
}

static int write_escaped(struct hd_buf *out, struct hd_slice key)
{
    int err = 0;

    for (size_t i = 0; i < key.len && err == 0; i++) {
        if (key.ptr[i] == '~')
            err = hd_buf_append(out, "~0", 2);
        else if (key.ptr[i] == '/')
            err = hd_buf_append(out, "~1", 2);
        else
            err = hd_buf_append(out, key.ptr + i, 1);
    }
    return err;
}

static int write_path(struct hd_buf *out, const struct hd_decl_at *at)
{
    int err;

    if (!at)
        return 0;
    if (!at->up)
        return hd_buf_append_slice(out, at->key);
    err = write_path(out, at->up);
    if (err == 0 && !at->key.ptr)
        return hd_buf_printf(out, "/%zu", at->index);
    if (err == 0)
        err = hd_buf_append_byte(out, '/');
    if (err == 0)
        err = write_escaped(out, at->key);
    return err;
}

const char *hd_decl_path(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_slice copy = {0};
    struct hd_buf buf;
    int err;

    /* Enough for 64 levels of expressions and 16 of graphs, with names of any length. */
    hd_buf_init(&buf, 2 * HD_GRAPH_MAX_TEXT + 4096);
    err = write_path(&buf, at);
    if (err == 0)
        err = hd_decl_copy(decl, hd_buf_slice(&buf), &copy);
    hd_buf_fini(&buf);
    return err == 0 ? copy.ptr : NULL;
}

/* ---- errors ----------------------------------------------------------- */

/* Replaces control characters: names from the file must not move a terminal's cursor. */
static void make_printable(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

/* Keeps the end of a path that is too long, since it names the member. */
static void set_path(struct hd_graph_error *error, const char *path)
{
    size_t len = strlen(path);
    size_t room = sizeof(error->path) - 1;
    const char *end = path + len;

    if (len > room) {
        path = end - (room - 3);
        while (path < end && (*path & 0xc0) == 0x80)
            path++;
        (void)snprintf(error->path, sizeof(error->path), "...%s", path);
    } else {
        memcpy(error->path, path, len + 1);
    }
    make_printable(error->path);
}

static int set_error(struct hd_decl *decl, int code, const char *path, const char *fmt,
                     va_list args) HD_PRINTF(4, 0);

static int set_error(struct hd_decl *decl, int code, const char *path, const char *fmt,
                     va_list args)
{
    struct hd_graph_error *error = decl->error;

    if (!error || error->code != 0)
        return code;
    error->code = code;
    set_path(error, path);
    (void)vsnprintf(error->text, sizeof(error->text), fmt, args);
    error->text[hd_utf8_cut(error->text, strlen(error->text))] = '\0';
    make_printable(error->text);
    return code;
}

int hd_decl_fail(struct hd_decl *decl, const struct hd_decl_at *at, const char *fmt, ...)
{
    const char *path = hd_decl_path(decl, at);
    va_list args;
    int err;

    if (!path)
        return HD_ENOMEM;
    va_start(args, fmt);
    err = set_error(decl, HD_EINVAL, path, fmt, args);
    va_end(args);
    return err;
}

int hd_decl_fail_path(struct hd_decl *decl, int code, const char *path, const char *fmt, ...)
{
    va_list args;
    int err;

    va_start(args, fmt);
    err = set_error(decl, code, path, fmt, args);
    va_end(args);
    return err;
}

int hd_decl_fail_type(struct hd_decl *decl, const struct hd_decl_at *at, const char *wanted)
{
    return hd_decl_fail(decl, at, "must be %s, not %s", wanted, hd_json_type_name(at->val));
}

/* ---- members ---------------------------------------------------------- */

static const struct hd_field *find_field(const struct hd_fields *fields, struct hd_slice name)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (hd_slice_eq(hd_slice_cstr(fields->list[i].name), name))
            return &fields->list[i];
    }
    return NULL;
}

static int fail_unknown(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_fields *fields)
{
    struct hd_near near;

    hd_near_init(&near, at->key);
    for (; fields; fields = fields->also) {
        for (size_t i = 0; i < fields->count; i++)
            hd_near_try(&near, hd_slice_cstr(fields->list[i].name));
    }
    return hd_decl_fail(decl, at, "unknown member%s", hd_near_text(&near));
}

static int read_member(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_fields *fields, void *out)
{
    const struct hd_field *field = find_field(fields, at->key);
    const struct hd_fields *also = fields->also;

    if (field)
        return field->read(decl, at, field, (char *)out + field->offset);
    while (also && !find_field(also, at->key))
        also = also->also;
    return also ? 0 : fail_unknown(decl, at, fields);
}

int hd_decl_fields(struct hd_decl *decl, const struct hd_decl_at *at,
                   const struct hd_fields *fields, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object");
    /* Report an unknown member before a missing one: it may be the missing one, misspelt. */
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = read_member(decl, &member, fields, out);
    }
    for (size_t i = 0; i < fields->count && err == 0; i++) {
        const struct hd_field *field = &fields->list[i];

        if (field->is_required && !hd_json_get(at->val, hd_slice_cstr(field->name)))
            err = hd_decl_fail(decl, at, "needs a member \"%s\"", field->name);
    }
    return err;
}

int hd_decl_read_text(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out)
{
    struct hd_slice text = hd_json_string(at->val);

    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "a string");
    if (field->max && (int64_t)text.len > field->max)
        return hd_decl_fail(decl, at, "must not be longer than %d bytes", (int)field->max);
    return hd_decl_copy(decl, text, out);
}

int hd_decl_read_string(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    if (hd_json_is_string(at->val) && hd_json_string(at->val).len == 0)
        return hd_decl_fail(decl, at, "must not be empty");
    return hd_decl_read_text(decl, at, field, out);
}

int hd_decl_read_bool(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out)
{
    (void)field;
    if (!hd_json_is_bool(at->val))
        return hd_decl_fail_type(decl, at, "true or false");
    *(bool *)out = hd_json_is_true(at->val);
    return 0;
}

int hd_decl_read_int(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_field *field, void *out)
{
    int64_t value;

    if (!hd_json_is_number(at->val))
        return hd_decl_fail_type(decl, at, "an integer");
    if (!hd_json_int(at->val, &value))
        return hd_decl_fail(decl, at, "must be an integer");
    if (value < field->min || value > field->max)
        return hd_decl_fail(decl, at, "must be from %lld to %lld", (long long)field->min,
                            (long long)field->max);
    *(int64_t *)out = value;
    return 0;
}

int hd_decl_read_raw(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_field *field, void *out)
{
    (void)decl;
    (void)field;
    *(struct hd_decl_at *)out = *at;
    return 0;
}

int hd_decl_read_names(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val), count = 0;
    struct hd_slice *list;
    int err = 0;

    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of strings");
    list = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(*list));
    if (!list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, count, it.val);

        err = hd_decl_read_string(decl, &element, field, &list[count++]);
    }
    *(struct hd_slices *)out = (struct hd_slices){list, count};
    return err;
}

/* ---- names ------------------------------------------------------------ */

static int check_few(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct hd_slice seen[FEW_MEMBERS];
    size_t count = 0;

    while (hd_json_next(&it)) {
        for (size_t i = 0; i < count; i++) {
            if (hd_slice_eq(seen[i], it.key)) {
                struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

                return hd_decl_fail(decl, &member, "is a duplicate");
            }
        }
        seen[count++] = it.key;
    }
    return 0;
}

static int check_many(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct hd_map seen;
    int err = 0;

    hd_map_init(&seen, hd_json_size(at->val));
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        if (hd_map_get(&seen, it.key))
            err = hd_decl_fail(decl, &member, "is a duplicate");
        else
            err = hd_map_put(&seen, it.key, it.val);
    }
    hd_map_fini(&seen);
    return err;
}

int hd_decl_check_unique(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 0;
    int err = 0;

    if (hd_json_is_object(at->val))
        err = hd_json_size(at->val) <= FEW_MEMBERS ? check_few(decl, at) : check_many(decl, at);
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at inner = it.is_object ? hd_decl_at_key(at, it.key, it.val)
                                               : hd_decl_at_index(at, index++, it.val);

        if (hd_json_size(it.val) > 0)
            err = hd_decl_check_unique(decl, &inner);
    }
    return err;
}

static bool has_control(struct hd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f)
            return true;
    }
    return false;
}

int hd_decl_check_name(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice name,
                       const char *what)
{
    if (name.len == 0)
        return hd_decl_fail(decl, at, "the name of a %s must not be empty", what);
    if (name.len > HD_GRAPH_MAX_NAME)
        return hd_decl_fail(decl, at, "the name of a %s has at most %d bytes", what,
                            HD_GRAPH_MAX_NAME);
    if (hd_slice_starts(name, HD_S("__")))
        return hd_decl_fail(decl, at, "names that begin with \"__\" are reserved");
    if (memchr(name.ptr, '|', name.len) || memchr(name.ptr, ':', name.len))
        return hd_decl_fail(decl, at, "the name of a %s must not contain '|' or ':'", what);
    if (name.ptr[0] == '@' || name.ptr[0] == '$')
        return hd_decl_fail(decl, at, "the name of a %s must not begin with '@' or '$'", what);
    if (has_control(name))
        return hd_decl_fail(decl, at, "the name of a %s must not contain control characters", what);
    return 0;
}

int hd_decl_check_variable(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    bool is_good = name.len > 0 && name.len <= HD_GRAPH_MAX_NAME;

    for (size_t i = 0; i < name.len && is_good; i++)
        is_good = memchr(allowed, name.ptr[i], sizeof(allowed) - 1) != NULL;
    if (!is_good || (name.ptr[0] >= '0' && name.ptr[0] <= '9'))
        return hd_decl_fail(decl, at, "must be a name of letters, digits and '_'");
    return 0;
}
