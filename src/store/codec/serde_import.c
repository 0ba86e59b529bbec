/*
 * Selects the serializer; and decodes that of JavaScript, whose JSON has objects that represent
 * others.
 */
#include "store/codec/serde_import.h"

#include <string.h>

#include "base/error.h"
#include "store/codec/canon.h"

#define MAX_SHOWN ((size_t)256 << 20)

static void put_val(struct hd_jw *jw, hd_json_val val);

/* ---- JavaScript's ------------------------------------------------------ */

static hd_json_val serde_get(hd_json_val object, const char *name)
{
    return hd_json_get(object, hd_slice_cstr(name));
}

static hd_json_val first_of(hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);

    return hd_json_next(&it) ? it.val : NULL;
}

static hd_json_val last_of(hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    hd_json_val last = NULL;

    while (hd_json_next(&it))
        last = it.val;
    return last;
}

static bool is_text(hd_json_val val, const char *text)
{
    return hd_json_is_string(val) && hd_slice_eq(hd_json_string(val), hd_slice_cstr(text));
}

/* A message, rendered like its canonical record. */
static bool serde_put_message(struct hd_jw *jw, hd_json_val val)
{
    struct hd_jw record;
    struct hd_json json;
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_SHOWN);
    hd_jw_init(&record, &text);
    err = hd_canon_write_message(&record, val, NULL);
    if (!err)
        err = hd_jw_finish(&record);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&text), NULL);
    if (!err) {
        hd_canon_render_val(jw, hd_json_root(&json));
        hd_json_fini(&json);
    }
    hd_buf_fini(&text);
    return !err;
}

static void put_pairs(struct hd_jw *jw, hd_json_val pairs)
{
    struct hd_json_iter it = hd_json_iter(pairs);
    bool has_names = true;

    while (hd_json_next(&it))
        has_names = has_names && hd_json_is_string(first_of(it.val)) && hd_json_size(it.val) == 2;
    if (!has_names) {
        put_val(jw, pairs);
        return;
    }
    hd_jw_object(jw);
    for (it = hd_json_iter(pairs); hd_json_next(&it);) {
        hd_jw_key(jw, hd_json_string(first_of(it.val)));
        put_val(jw, last_of(it.val));
    }
    hd_jw_object_end(jw);
}

static void put_bytes(struct hd_jw *jw, hd_json_val numbers)
{
    struct hd_json_iter it = hd_json_iter(numbers);
    struct hd_buf bytes, text;
    int64_t number;
    int err = 0;

    hd_buf_init(&bytes, MAX_SHOWN);
    hd_buf_init(&text, MAX_SHOWN);
    while (!err && hd_json_next(&it))
        err = hd_buf_append_byte(&bytes, hd_json_int(it.val, &number) ? (char)(number & 255) : 0);
    if (!err)
        err = hd_canon_base64(&text, hd_buf_slice(&bytes));
    if (err && !jw->err)
        jw->err = err;
    hd_jw_string(jw, hd_buf_slice(&text));
    hd_buf_fini(&bytes);
    hd_buf_fini(&text);
}

static void put_error(struct hd_jw *jw, hd_json_val name, hd_json_val message)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "error", hd_json_string(name));
    hd_jw_put_string(jw, "message", hd_json_string(message));
    hd_jw_object_end(jw);
}

/* As JavaScript prints it. */
static void put_pattern(struct hd_jw *jw, struct hd_slice source, struct hd_slice flags,
                        bool has_flags)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_SHOWN);
    err = hd_buf_append_byte(&text, '/');
    if (!err)
        err = hd_buf_append_slice(&text, source);
    if (!err)
        err = hd_buf_append_byte(&text, '/');
    if (!err && has_flags)
        err = hd_buf_append_slice(&text, flags);
    if (err && !jw->err)
        jw->err = err;
    hd_jw_string(jw, hd_buf_slice(&text));
    hd_buf_fini(&text);
}

/* Values that JSON cannot express: {"lc": 2, "type": "constructor", "id": ["Set"], "args": […]} */
static bool put_made(struct hd_jw *jw, hd_json_val val)
{
    hd_json_val name = last_of(serde_get(val, "id")), args = serde_get(val, "args");

    if (is_text(serde_get(val, "type"), "undefined"))
        hd_jw_null(jw);
    else if (is_text(serde_get(val, "type"), "delta_snapshot"))
        put_val(jw, serde_get(val, "value"));
    else if (!is_text(serde_get(val, "type"), "constructor"))
        return false;
    else if (is_text(name, "Set") && hd_json_is_array(first_of(args)))
        put_val(jw, first_of(args));
    else if (is_text(name, "Map") && hd_json_is_array(first_of(args)))
        put_pairs(jw, first_of(args));
    else if (is_text(name, "RegExp") && hd_json_is_string(first_of(args)))
        put_pattern(jw, hd_json_string(first_of(args)), hd_json_string(last_of(args)),
                    hd_json_size(args) > 1);
    else if (is_text(name, "Uint8Array") && hd_json_is_array(first_of(args)))
        put_bytes(jw, first_of(args));
    else if (hd_json_is_string(name) && hd_slice_starts(hd_json_string(name), HD_S("Error")))
        put_error(jw, name, first_of(args));
    else
        return false;
    return true;
}

static bool put_record(struct hd_jw *jw, hd_json_val val)
{
    int64_t version;

    if (!hd_json_int(serde_get(val, "lc"), &version))
        return false;
    if (version == 2)
        return put_made(jw, val);
    return version == 1 && is_text(serde_get(val, "type"), "constructor") &&
           serde_put_message(jw, val);
}

static bool is_undefined(hd_json_val val)
{
    return hd_json_is_object(val) && is_text(serde_get(val, "type"), "undefined") &&
           serde_get(val, "lc");
}

static void put_val(struct hd_jw *jw, hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    if (hd_json_is_array(val)) {
        hd_jw_array(jw);
        while (hd_json_next(&it))
            put_val(jw, it.val);
        hd_jw_array_end(jw);
    } else if (!hd_json_is_object(val)) {
        if (val)
            hd_jw_val(jw, val);
        else
            hd_jw_null(jw);
    } else if (!put_record(jw, val)) {
        hd_jw_object(jw);
        while (hd_json_next(&it)) {
            if (is_undefined(it.val))
                continue;
            hd_jw_key(jw, it.key);
            put_val(jw, it.val);
        }
        hd_jw_object_end(jw);
    }
}

int hd_serde_json(struct hd_buf *out, struct hd_slice text, int depth)
{
    struct hd_json json;
    struct hd_jw jw;
    int err = hd_json_parse(&json, text, NULL);

    if (err)
        return err;
    hd_jw_init(&jw, out);
    jw.depth = depth;
    put_val(&jw, hd_json_root(&json));
    jw.depth -= depth;
    hd_json_fini(&json);
    return hd_jw_finish(&jw);
}

/* ---- entry point ------------------------------------------------------- */

static int serde_show(struct hd_buf *out, struct hd_slice type, struct hd_slice data, int depth)
{
    struct hd_buf text;
    int err;

    if (hd_slice_eq(type, HD_S("msgpack")))
        return hd_serde_msgpack(out, data, depth);
    if (hd_slice_eq(type, HD_S("json")))
        return hd_serde_json(out, data, depth);
    if (!hd_slice_eq(type, HD_S("bytes")) && !hd_slice_eq(type, HD_S("bytearray")))
        return HD_EUNSUPPORTED;
    hd_buf_init(&text, MAX_SHOWN);
    err = hd_canon_base64(&text, data);
    if (!err)
        err = hd_json_write_string(out, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err;
}

bool hd_serde_put(struct hd_jw *jw, struct hd_slice type, struct hd_slice data)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_SHOWN);
    err = serde_show(&text, type, data, jw->depth);
    if (!err)
        hd_jw_raw(jw, hd_buf_slice(&text));
    else if (err == HD_ENOMEM && !jw->err)
        jw->err = err;
    hd_buf_fini(&text);
    return !err || err == HD_ENOMEM;
}
