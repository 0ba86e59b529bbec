/*
 * Removes a run's secrets from data before it is stored. Only the graph's code may see them, but it
 * can copy them anywhere: LangGraph itself copies `configurable` into metadata.
 */
#include "worker/worker_hide.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "secret/secret.h"
#include "store/store.h"

enum {
    MIN_SECRET = 8 /* bytes; a shorter text may match other text by chance */
};

struct hd_hidden_text {
    struct hd_slice text;    /* as it is */
    struct hd_slice escaped; /* in a JSON string */
    struct hd_slice marker;  /* likewise: names in it may have quotes */
};

/* ---- the list --------------------------------------------------------- */

static int escape(struct hd_arena *arena, struct hd_slice text, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX / 2);
    err = hd_json_write_string(&buf, text);
    if (!err)
        err = hd_arena_copy(arena, hd_slice(buf.ptr + 1, buf.len - 2), out);
    hd_buf_fini(&buf);
    return err;
}

int hd_hidden_init(struct hd_hidden *hidden, const struct hd_val *secrets, struct hd_arena *arena)
{
    size_t count = hd_val_count(secrets);
    int err = 0;

    *hidden = (struct hd_hidden){.count = 0};
    if (count == 0)
        return 0;
    hidden->texts = hd_arena_calloc(arena, count, sizeof(*hidden->texts));
    if (!hidden->texts)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_hidden_text *one = &hidden->texts[hidden->count];
        struct hd_val *key = NULL;

        one->text = hd_val_get_string(hd_val_member(secrets, i, &key));
        if (one->text.len < MIN_SECRET)
            continue;
        err = escape(arena, one->text, &one->escaped);
        if (!err)
            err = escape(arena, hd_val_get_string(key), &one->marker);
        hidden->count++;
    }
    return err;
}

/* ---- values ----------------------------------------------------------- */

static bool is_json(struct heddle_bytes type)
{
    struct hd_slice tag = hd_from_public(type);

    return hd_slice_eq(tag, HD_S("hd1")) || hd_slice_eq(tag, HD_S("json"));
}

static const char *find_needle(struct hd_slice text, struct hd_slice needle)
{
    return text.len >= needle.len ? memmem(text.ptr, text.len, needle.ptr, needle.len) : NULL;
}

/* Replaces each `needle` in *text by `marker`; *text is then in the arena. */
static int replace(struct hd_slice *text, struct hd_slice needle, struct hd_slice marker,
                   struct hd_arena *arena)
{
    struct hd_slice rest = *text;
    struct hd_buf buf;
    const char *at;
    int err = 0;

    hd_buf_init(&buf, SIZE_MAX / 2);
    while (!err && (at = find_needle(rest, needle))) {
        size_t before = (size_t)(at - rest.ptr);

        err = hd_buf_append(&buf, rest.ptr, before);
        if (!err)
            err = hd_buf_append_slice(&buf, marker);
        rest = hd_slice(at + needle.len, rest.len - before - needle.len);
    }
    if (!err)
        err = hd_buf_append_slice(&buf, rest);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&buf), text);
    hd_buf_fini(&buf);
    return err;
}

/* Overwrites each `needle`, so that lengths stay. */
static int blot_out(struct hd_slice *text, struct hd_slice needle, struct hd_arena *arena)
{
    struct hd_slice rest;
    const char *at;
    int err = hd_arena_copy(arena, *text, text);

    rest = *text;
    while (!err && (at = find_needle(rest, needle))) {
        size_t before = (size_t)(at - rest.ptr);

        memset((char *)at, '*', needle.len);
        rest = hd_slice(at + needle.len, rest.len - before - needle.len);
    }
    return err;
}

int hd_hidden_hide(const struct hd_hidden *hidden, struct heddle_value *value,
                   struct hd_arena *arena)
{
    struct hd_slice text = hd_from_public(value->data);
    bool has_json = is_json(value->type);
    int err = 0;

    for (size_t i = 0; !err && i < hidden->count; i++) {
        const struct hd_hidden_text *one = &hidden->texts[i];
        struct hd_slice needle = has_json ? one->escaped : one->text;

        if (!find_needle(text, needle))
            continue;
        err =
            has_json ? replace(&text, needle, one->marker, arena) : blot_out(&text, needle, arena);
    }
    value->data = hd_to_public(text);
    return err;
}

/* ---- metadata --------------------------------------------------------- */

/* `more` belongs to another thread: read it, but never take a reference. */
static int write_members(const struct hd_val *own, const struct hd_val *more, const char *runtime,
                         struct hd_buf *out)
{
    struct hd_val *key;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    for (size_t i = 0; i < hd_val_count(own); i++) {
        const struct hd_val *val = hd_val_member(own, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (hd_val_get(more, name) || hd_slice_eq(name, HD_S("runtime")))
            continue;
        hd_jw_key(&jw, name);
        hd_val_put_rendered(&jw, val);
    }
    for (size_t i = 0; i < hd_val_count(more); i++) {
        const struct hd_val *val = hd_val_member(more, i, &key);

        hd_jw_key(&jw, hd_val_get_string(key));
        hd_val_put_rendered(&jw, val);
    }
    hd_jw_put_string(&jw, "runtime", hd_slice_cstr(runtime));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* Removes secrets by name and by shape; the secrets of the run are removed from the text later. */
static int parse_metadata(struct hd_slice text, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_val *secrets = NULL;
    int err = hd_val_parse_json(text.len ? text : HD_S("{}"), out, fault);

    if (!err && !hd_val_is_object(*out))
        err = hd_error_set(fault, HD_EINVAL, "metadata: expected an object, found %s",
                           hd_val_type_name(*out));
    if (!err) {
        *out = hd_secrets_take(*out, &secrets);
        hd_val_unref(secrets);
        err = *out ? 0 : HD_ENOMEM;
    }
    return err;
}

int hd_hidden_metadata(const struct hd_hidden *hidden, struct hd_slice text,
                       const struct hd_val *more, const char *runtime, struct hd_arena *arena,
                       struct hd_slice *out, struct heddle_error *fault)
{
    struct heddle_value value = {.type = hd_to_public(HD_S("json"))};
    struct hd_val *own = NULL;
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX / 2);
    err = parse_metadata(text, &own, fault);
    if (!err)
        err = write_members(own, more, runtime, &buf);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    hd_val_unref(own);
    if (err)
        return err;
    value.data = hd_to_public(*out);
    err = hd_hidden_hide(hidden, &value, arena);
    *out = hd_from_public(value.data);
    return err;
}
