/* Helpers of all resources to read requests and write responses. */
#include <ctype.h>
#include <string.h>

#include "api/api.h"
#include "base/uuid.h"
#include "secret/secret.h"
#include "value/val.h"

#define MAX_PATH 1024

static int input_wrong(struct hd_call *call, const char *name, const char *wanted, hd_json_val val)
{
    return hd_error_set(&call->fault, HD_EINVAL, "%s: expected %s, not %s", name, wanted,
                        hd_json_type_name(val));
}

hd_json_val hd_body_get(const struct hd_call *call, const char *name)
{
    hd_json_val val = hd_json_get(call->body, hd_slice_cstr(name));

    return hd_json_is_null(val) ? NULL : val;
}

int hd_body_string(struct hd_call *call, const char *name, struct hd_slice *out)
{
    hd_json_val val = hd_body_get(call, name);

    if (val && !hd_json_is_string(val))
        return input_wrong(call, name, "a string", val);
    if (val)
        *out = hd_json_string(val);
    return 0;
}

int hd_body_object(struct hd_call *call, const char *name, hd_json_val *out)
{
    hd_json_val val = hd_body_get(call, name);

    *out = NULL;
    if (val && !hd_json_is_object(val))
        return input_wrong(call, name, "an object", val);
    *out = val;
    return 0;
}

int hd_body_members(struct hd_call *call, const char *name, hd_json_val *out)
{
    struct hd_val *val = NULL;
    int err = hd_body_object(call, name, out);

    if (!err && *out)
        err = hd_val_from_json(*out, &val, &call->fault);
    hd_val_unref(val);
    return err;
}

int hd_call_refuse_secrets(struct hd_call *call, const char *name, hd_json_val json, bool by_text)
{
    struct hd_val *val = NULL;
    struct hd_buf path;
    int err = json ? hd_val_from_json(json, &val, &call->fault) : 0;

    hd_buf_init(&path, MAX_PATH);
    if (!err && val && hd_secrets_find(val, by_text, &path))
        err = hd_error_set(&call->fault, HD_EINVAL,
                           "%s%s%.*s: keys are not stored; send it with each run, or set it in the "
                           "server's environment",
                           name, path.len > 0 ? "." : "", (int)(path.len < 120 ? path.len : 120),
                           path.len > 0 ? path.ptr : "");
    hd_buf_fini(&path);
    hd_val_unref(val);
    return err;
}

int hd_body_bool(struct hd_call *call, const char *name, bool *out)
{
    hd_json_val val = hd_body_get(call, name);

    if (val && !hd_json_is_bool(val))
        return input_wrong(call, name, "true or false", val);
    if (val)
        *out = hd_json_is_true(val);
    return 0;
}

int hd_body_int(struct hd_call *call, const char *name, int64_t min, int64_t max, int64_t *out)
{
    hd_json_val val = hd_body_get(call, name);
    int64_t number;

    if (!val)
        return 0;
    if (!hd_json_whole(val, &number) || number < min || number > max)
        return hd_error_set(&call->fault, HD_EINVAL, "%s: expected an integer from %lld to %lld",
                            name, (long long)min, (long long)max);
    *out = number;
    return 0;
}

int hd_body_word(struct hd_call *call, const char *name, const char *const *words, int *out)
{
    hd_json_val val = hd_body_get(call, name);
    struct hd_slice word = hd_json_string(val);
    char list[512] = "";

    if (!val)
        return 0;
    for (int i = 0; words[i]; i++) {
        size_t len = strlen(list);

        if (hd_json_is_string(val) && hd_slice_eq(word, hd_slice_cstr(words[i]))) {
            *out = i;
            return 0;
        }
        snprintf(list + len, sizeof(list) - len, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
    }
    return hd_error_set(&call->fault, HD_EINVAL, "%s: expected one of %s", name, list);
}

int hd_body_strings(struct hd_call *call, const char *name, struct hd_slice **out, size_t *count)
{
    hd_json_val val = hd_body_get(call, name);
    struct hd_json_iter it = hd_json_iter(val);

    *out = NULL;
    *count = 0;
    if (!val)
        return 0;
    if (!hd_json_is_array(val))
        return input_wrong(call, name, "a list of strings", val);
    *out = hd_arena_calloc(call->arena, hd_json_size(val) + 1, sizeof(**out));
    if (!*out)
        return HD_ENOMEM;
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return input_wrong(call, name, "a list of strings", it.val);
        (*out)[(*count)++] = hd_json_string(it.val);
    }
    return 0;
}

int hd_call_uuid(struct hd_call *call, const char *what, struct hd_slice text, struct hd_slice *out)
{
    uint8_t bytes[16];
    char *copy;

    if (!hd_uuid_parse(text, bytes))
        return hd_error_set(&call->fault, HD_EINVAL, "%s: \"%.*s\" is not a UUID", what,
                            (int)(text.len < 80 ? text.len : 80), text.ptr);
    copy = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    if (!copy)
        return HD_ENOMEM;
    hd_uuid_format(bytes, copy);
    *out = hd_slice(copy, HD_UUID_LEN);
    return 0;
}

int hd_body_page(struct hd_call *call, const char *const *sorts, struct hd_page *out)
{
    static const char *const orders[] = {"asc", "desc", NULL};
    int order = 1;
    int err;

    *out = (struct hd_page){.limit = 10};
    err = hd_body_word(call, "sort_by", sorts, &out->sort);
    if (!err)
        err = hd_body_word(call, "sort_order", orders, &order);
    if (!err)
        err = hd_body_int(call, "limit", 1, 1000, &out->limit);
    if (!err)
        err = hd_body_int(call, "offset", 0, INT32_MAX, &out->offset);
    out->is_descending = order == 1;
    return err;
}

int hd_path_uuid(struct hd_call *call, size_t n, const char *what, struct hd_slice *out)
{
    return hd_call_uuid(call, what, call->params[n], out);
}

int hd_call_text(struct hd_call *call, hd_json_val val, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    *out = hd_slice(NULL, 0);
    if (!val)
        return 0;
    hd_buf_init(&buf, SIZE_MAX);
    err = hd_json_write_val(&buf, val);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

static void put_merged(struct hd_jw *jw, hd_json_val old, hd_json_val more)
{
    struct hd_json_iter it = hd_json_iter(old);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        hd_json_val changed = hd_json_get(more, it.key);

        hd_jw_key(jw, it.key);
        hd_jw_val(jw, changed ? changed : it.val);
    }
    it = hd_json_iter(more);
    while (hd_json_next(&it)) {
        if (hd_json_get(old, it.key))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

int hd_call_merge(struct hd_call *call, hd_json_val more, struct hd_slice *text)
{
    struct hd_json old = {NULL};
    struct hd_buf buf;
    struct hd_jw jw;
    int err = text->len > 0 ? hd_json_parse(&old, *text, &call->fault) : 0;

    hd_buf_init(&buf, SIZE_MAX);
    hd_jw_init(&jw, &buf);
    if (!err) {
        put_merged(&jw, hd_json_root(&old), more);
        err = hd_jw_finish(&jw);
    }
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), text);
    hd_json_fini(&old);
    hd_buf_fini(&buf);
    return err;
}

void hd_call_header_int(struct hd_call *call, struct hd_slice name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    hd_call_header(call, name, hd_slice_cstr(text));
}

void hd_call_pages(struct hd_call *call, int64_t offset, int64_t limit, int64_t total)
{
    hd_call_header_int(call, HD_S("X-Pagination-Total"), total);
    if (offset + limit < total)
        hd_call_header_int(call, HD_S("X-Pagination-Next"), offset + limit);
}
