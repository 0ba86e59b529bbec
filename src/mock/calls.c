/* Tool calls that no script lists: requested in the user's text, or made for offered tools. */
#include <string.h>

#include "base/uuid.h"
#include "mock/mock_internal.h"

#define MAX_CALLS 64
#define MAX_ARGS ((size_t)1 << 20)

int hd_mock_call_id(struct hd_arena *arena, struct hd_slice *out)
{
    char uuid[HD_UUID_SIZE];
    char *text;

    hd_uuid_v4(uuid);
    text = hd_arena_printf(arena, "call_%.8s%.4s", uuid, uuid + 9);
    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

static int add_call(struct hd_mock_seen *seen, struct hd_mock_reply *out, struct hd_slice name,
                    struct hd_slice args)
{
    struct hd_mock_call *call = &out->calls[out->call_count];
    int err = hd_mock_call_id(&seen->arena, &call->id);

    call->name = name;
    if (!err)
        err = hd_arena_copy(&seen->arena, args, &call->args);
    if (!err)
        out->call_count++;
    return err;
}

static int alloc_calls(struct hd_mock_seen *seen, struct hd_mock_reply *out)
{
    out->calls = hd_arena_calloc(&seen->arena, MAX_CALLS, sizeof(*out->calls));
    return out->calls ? 0 : HD_ENOMEM;
}

/* ---- requested in the text -------------------------------------------- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static size_t name_length(struct hd_slice text)
{
    size_t len = 0;

    while (len < text.len && is_name_byte(text.ptr[len]))
        len++;
    return len;
}

static bool is_offered(const struct hd_mock_seen *seen, struct hd_slice wanted)
{
    struct hd_slice name;
    hd_json_val schema;

    for (size_t i = 0; hd_mock_offered(seen, i, &name, &schema); i++) {
        if (hd_slice_eq(name, wanted))
            return true;
    }
    return false;
}

/* Length up to the closing brace; without one, to the end of the line. */
static size_t braces_length(struct hd_slice text)
{
    bool is_in_string = false;
    int depth = 0;
    const char *line;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (is_in_string && c == '\\')
            i++;
        else if (c == '"')
            is_in_string = !is_in_string;
        else if (!is_in_string && c == '{')
            depth++;
        else if (!is_in_string && c == '}' && --depth == 0)
            return i + 1;
    }
    line = memchr(text.ptr, '\n', text.len);
    return line ? (size_t)(line - text.ptr) : text.len;
}

static struct hd_slice after(struct hd_slice text, size_t len)
{
    return hd_slice(text.ptr + len, text.len - len);
}

/*
 * "use NAME with {…}", or "use NAME" if there is such a tool. `text` follows the "use "; *used is
 * the length of the call in it.
 */
static int read_asked(struct hd_mock_seen *seen, struct hd_slice text, struct hd_mock_reply *out,
                      size_t *used)
{
    struct hd_slice name = hd_slice(text.ptr, name_length(text)), rest = after(text, name.len);
    struct hd_slice args = HD_S("{}");

    while (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    *used = name.len;
    if (name.len == 0)
        return 0;
    if (hd_slice_starts(rest, HD_S(" with {"))) {
        rest = after(rest, sizeof(" with ") - 1);
        args = hd_slice(rest.ptr, braces_length(rest));
        *used = (size_t)(rest.ptr - text.ptr) + args.len;
    } else if (!is_offered(seen, name)) {
        return 0;
    }
    return add_call(seen, out, name, args);
}

int hd_mock_calls_asked(struct hd_mock_seen *seen, struct hd_mock_reply *out)
{
    struct hd_slice rest = seen->user;
    int err = alloc_calls(seen, out);

    while (!err && out->call_count < MAX_CALLS && rest.len > 4) {
        const char *found = memmem(rest.ptr, rest.len, "use ", 4);
        size_t used;

        if (!found)
            break;
        rest = after(rest, (size_t)(found - rest.ptr) + 4);
        err = read_asked(seen, rest, out, &used);
        if (!err)
            rest = after(rest, used);
    }
    return err;
}

/* ---- for offered tools ------------------------------------------------ */

static void write_sample(struct hd_jw *jw, hd_json_val schema)
{
    struct hd_slice type = hd_json_string(hd_json_get(schema, HD_S("type")));
    hd_json_val fixed = hd_json_get(schema, HD_S("default"));
    struct hd_json_iter it = hd_json_iter(hd_json_get(schema, HD_S("enum")));

    if (!fixed && hd_json_next(&it))
        fixed = it.val;
    if (fixed)
        hd_jw_val(jw, fixed);
    else if (hd_slice_eq(type, HD_S("number")) || hd_slice_eq(type, HD_S("integer")))
        hd_jw_int(jw, 1);
    else if (hd_slice_eq(type, HD_S("boolean")))
        hd_jw_bool(jw, true);
    else if (hd_slice_eq(type, HD_S("array")))
        hd_jw_raw(jw, HD_S("[]"));
    else if (hd_slice_eq(type, HD_S("object")))
        hd_jw_raw(jw, HD_S("{}"));
    else
        hd_jw_string(jw, HD_S("text"));
}

/* Arguments that satisfy the schema. */
static int sample_args(struct hd_buf *out, hd_json_val schema)
{
    hd_json_val properties = hd_json_get(schema, HD_S("properties"));
    struct hd_json_iter it = hd_json_iter(hd_json_get(schema, HD_S("required")));
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        hd_jw_key(&jw, hd_json_string(it.val));
        write_sample(&jw, hd_json_get(properties, hd_json_string(it.val)));
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static size_t offered_count(const struct hd_mock_seen *seen)
{
    struct hd_slice name;
    hd_json_val schema;
    size_t count = 0;

    while (hd_mock_offered(seen, count, &name, &schema))
        count++;
    return count;
}

/* Calls the tools in order, and starts over when there are fewer than requested. */
int hd_mock_calls_offered(struct hd_mock_seen *seen, int64_t count, struct hd_mock_reply *out)
{
    size_t offered = offered_count(seen);
    int err = alloc_calls(seen, out);

    for (int64_t i = 0; !err && offered > 0 && i < count; i++) {
        struct hd_slice name;
        hd_json_val schema;
        struct hd_buf args;

        hd_buf_init(&args, MAX_ARGS);
        (void)hd_mock_offered(seen, (size_t)i % offered, &name, &schema);
        err = sample_args(&args, schema);
        if (!err)
            err = add_call(seen, out, name, hd_buf_slice(&args));
        hd_buf_fini(&args);
    }
    return err;
}
