#include "records/extract.h"

#include <string.h>

#include "base/suggest.h"

/* The members of a thread; `extracted` itself is none of it. */
static const char *const members[] = {
    "values",     "metadata",   "interrupts",       "config", "context",   "status",
    "created_at", "updated_at", "state_updated_at", "error",  "thread_id",
};

struct parser {
    struct hd_slice name; /* for messages */
    struct hd_slice text;
    size_t pos;
    struct hd_extract_step *steps;
    size_t count;
    struct heddle_error *fault;
};

static int refuse_extract_path(const struct parser *p, const char *what)
{
    return hd_error_set(p->fault, HD_EINVAL, "extract: \"%.*s\": %s at character %zu of \"%.*s\"",
                        HD_SHOW(p->name), what, p->pos + 1, HD_SHOW(p->text));
}

static bool is_at(const struct parser *p, char c)
{
    return p->pos < p->text.len && p->text.ptr[p->pos] == c;
}

static struct hd_extract_step *add_step(struct parser *p)
{
    return p->count < HD_EXTRACT_MAX_STEPS ? &p->steps[p->count++] : NULL;
}

static int parse_key(struct parser *p)
{
    size_t begin = p->pos;
    struct hd_extract_step *step = add_step(p);

    if (!step)
        return refuse_extract_path(p, "too many steps");
    while (p->pos < p->text.len && !is_at(p, '.') && !is_at(p, '[') && !is_at(p, ']'))
        p->pos++;
    if (p->pos == begin)
        return refuse_extract_path(p, "a key is missing");
    step->key = hd_slice(p->text.ptr + begin, p->pos - begin);
    return 0;
}

/* ["any key"]: up to the quote, there are no escapes. */
static int parse_quoted(struct parser *p, struct hd_extract_step *step)
{
    char quote = p->text.ptr[p->pos++];
    const char *begin = p->text.ptr + p->pos;
    const char *end = memchr(begin, quote, p->text.len - p->pos);

    if (!end)
        return refuse_extract_path(p, "the quote is not closed");
    step->key = hd_slice(begin, (size_t)(end - begin));
    p->pos += step->key.len + 1;
    return 0;
}

static int parse_index(struct parser *p, struct hd_extract_step *step)
{
    bool is_negative = is_at(p, '-');
    size_t begin = p->pos += is_negative;
    int64_t value = 0;

    while (p->pos < p->text.len && p->text.ptr[p->pos] >= '0' && p->text.ptr[p->pos] <= '9') {
        if (value > INT32_MAX)
            return refuse_extract_path(p, "the index is too large");
        value = value * 10 + (p->text.ptr[p->pos++] - '0');
    }
    if (p->pos == begin)
        return refuse_extract_path(p, "an index or a quoted key is missing");
    step->is_index = true;
    /* -0 is 0: the first element. */
    step->index = is_negative ? -value : value;
    return 0;
}

static int parse_bracket(struct parser *p)
{
    struct hd_extract_step *step = add_step(p);
    int err;

    if (!step)
        return refuse_extract_path(p, "too many steps");
    p->pos++;
    err = is_at(p, '"') || is_at(p, '\'') ? parse_quoted(p, step) : parse_index(p, step);
    if (err == 0 && !is_at(p, ']'))
        err = refuse_extract_path(p, "\"]\" is missing");
    p->pos++;
    return err;
}

static int check_member(const struct parser *p)
{
    struct hd_near near;

    hd_near_init(&near, p->steps[0].key);
    for (size_t i = 0; i < HD_COUNT(members); i++) {
        if (hd_slice_eq(hd_slice_cstr(members[i]), p->steps[0].key))
            return 0;
        hd_near_try(&near, hd_slice_cstr(members[i]));
    }
    return hd_error_set(
        p->fault, HD_EINVAL,
        "extract: \"%.*s\": a thread has no \"%.*s\" (it has values, metadata, …)%s",
        HD_SHOW(p->name), HD_SHOW(p->steps[0].key), hd_near_text(&near));
}

static int parse_steps(struct parser *p)
{
    int err = parse_key(p);

    while (err == 0 && p->pos < p->text.len) {
        if (is_at(p, '.')) {
            p->pos++;
            err = parse_key(p);
        } else if (is_at(p, '[')) {
            err = parse_bracket(p);
        } else {
            err = refuse_extract_path(p, "\".\" or \"[\" is missing");
        }
    }
    return err == 0 ? check_member(p) : err;
}

static int parse_path(struct hd_extract_path *path, struct hd_slice name, hd_json_val val,
                      struct hd_arena *arena, struct heddle_error *fault)
{
    struct hd_extract_step steps[HD_EXTRACT_MAX_STEPS] = {0};
    struct parser p = {.name = name, .text = hd_json_string(val), .steps = steps, .fault = fault};
    int err;

    if (!hd_json_is_string(val))
        return hd_error_set(fault, HD_EINVAL, "extract: \"%.*s\" must be a path, not %s",
                            HD_SHOW(name), hd_json_type_name(val));
    if (p.text.len > HD_EXTRACT_MAX_TEXT)
        return hd_error_set(fault, HD_EINVAL, "extract: \"%.*s\": longer than %d bytes",
                            HD_SHOW(name), HD_EXTRACT_MAX_TEXT);
    err = parse_steps(&p);
    if (err != 0)
        return err;
    path->name = name;
    path->count = p.count;
    path->steps = hd_arena_calloc(arena, p.count, sizeof(*steps));
    if (!path->steps)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    memcpy(path->steps, steps, p.count * sizeof(*steps));
    return 0;
}

int hd_extract_parse(struct hd_extract *extract, hd_json_val val, struct hd_arena *arena,
                     struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    extract->count = 0;
    if (!val || hd_json_is_null(val))
        return 0;
    if (!hd_json_is_object(val))
        return hd_error_set(fault, HD_EINVAL,
                            "extract must be an object of names and paths, not %s",
                            hd_json_type_name(val));
    if (hd_json_size(val) > HD_EXTRACT_MAX_PATHS)
        return hd_error_set(fault, HD_EINVAL, "extract: %zu paths, at most %d are allowed",
                            hd_json_size(val), HD_EXTRACT_MAX_PATHS);
    while (err == 0 && hd_json_next(&it)) {
        err = parse_path(&extract->paths[extract->count], it.key, it.val, arena, fault);
        extract->count += err == 0;
    }
    return err;
}

static hd_json_val element(hd_json_val array, int64_t index)
{
    struct hd_json_iter it = hd_json_iter(array);
    int64_t size = (int64_t)hd_json_size(array);

    index += index < 0 ? size : 0;
    if (!hd_json_is_array(array) || index < 0 || index >= size)
        return NULL;
    while (hd_json_next(&it) && index-- > 0)
        ;
    return it.val;
}

hd_json_val hd_extract_find(const struct hd_extract_path *path, hd_json_val member)
{
    for (size_t i = 1; member && i < path->count; i++) {
        const struct hd_extract_step *step = &path->steps[i];

        member = step->is_index ? element(member, step->index) : hd_json_get(member, step->key);
    }
    return member;
}
