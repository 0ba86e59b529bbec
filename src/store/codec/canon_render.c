/*
 * Renders canonical values as the plain JSON that a client of the HTTP API sees; one renderer for
 * each kind of record. A renderer is only called for a valid record of its kind.
 */
#include "store/codec/canon.h"

#include "base/alloc.h"
#include "store/codec/canon_internal.h"
#include "store/codec/serde_import.h"

/* ---- members ---------------------------------------------------------- */

static void render_key(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
}

static hd_json_val record_get(hd_json_val record, const char *name)
{
    return hd_json_get(record, hd_slice_cstr(name));
}

/* Writes the member of `record` under the same name. */
static void render_member(struct hd_jw *jw, hd_json_val record, const char *name)
{
    render_key(jw, name);
    hd_canon_render_val(jw, record_get(record, name));
}

static void put_member_if(struct hd_jw *jw, hd_json_val record, const char *name)
{
    if (record_get(record, name))
        render_member(jw, record, name);
}

/* Writes the default of an absent member. */
static void put_or_default(struct hd_jw *jw, hd_json_val record,
                           const struct hd_canon_member *member)
{
    if (record_get(record, member->name)) {
        render_member(jw, record, member->name);
        return;
    }
    render_key(jw, member->name);
    hd_jw_raw(jw, hd_slice_cstr(member->fallback));
}

static void put_list(struct hd_jw *jw, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);

    hd_jw_array(jw);
    while (hd_json_next(&it))
        hd_canon_render_val(jw, it.val);
    hd_jw_array_end(jw);
}

static void render_object(struct hd_jw *jw, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(object);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (hd_canon_is_kind(it.val, "undefined"))
            continue;
        hd_jw_key(jw, it.key);
        hd_canon_render_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

/* ---- kinds ------------------------------------------------------------ */

void hd_canon_render_message(struct hd_jw *jw, hd_json_val record)
{
    size_t count;
    const struct hd_canon_view *views =
        hd_canon_views(hd_json_string(record_get(record, "type")), &count);

    hd_jw_object(jw);
    for (size_t i = 0; i < count; i++) {
        hd_json_val val = hd_json_get(record, views[i].name);

        hd_jw_key(jw, views[i].name);
        if (val)
            hd_canon_render_val(jw, val);
        else
            hd_jw_raw(jw, views[i].fallback);
    }
    hd_jw_object_end(jw);
}

void hd_canon_render_send(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_object(jw);
    render_member(jw, record, "node");
    render_member(jw, record, "arg");
    put_member_if(jw, record, "timeout");
    hd_jw_object_end(jw);
}

void hd_canon_render_command(struct hd_jw *jw, hd_json_val record)
{
    const struct hd_canon_kind *kind = hd_canon_kind_find(HD_S("command"));
    const struct hd_canon_member *member;

    hd_jw_object(jw);
    for (member = kind->members; member->name; member++)
        put_or_default(jw, record, member);
    hd_jw_object_end(jw);
}

void hd_canon_render_interrupt(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_object(jw);
    render_member(jw, record, "value");
    render_member(jw, record, "id");
    put_member_if(jw, record, "response_schema");
    hd_jw_object_end(jw);
}

void hd_canon_render_overwrite(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_object(jw);
    render_member(jw, record, "value");
    render_key(jw, "type");
    hd_jw_string(jw, HD_S("__overwrite__"));
    hd_jw_object_end(jw);
}

void hd_canon_render_delta(struct hd_jw *jw, hd_json_val record)
{
    hd_canon_render_val(jw, record_get(record, "value"));
}

/* All strings, or all numbers, booleans and null, whose texts are the names then. */
static bool has_simple_keys(hd_json_val pairs)
{
    struct hd_json_iter it = hd_json_iter(pairs);
    size_t strings = 0;

    while (hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        if (!hd_json_next(&pair) || hd_json_is_object(pair.val) || hd_json_is_array(pair.val))
            return false;
        strings += hd_json_is_string(pair.val);
    }
    return strings == 0 || strings == hd_json_size(pairs);
}

static struct hd_slice key_text(hd_json_val key)
{
    if (hd_json_is_string(key))
        return hd_json_string(key);
    if (hd_json_is_number(key))
        return hd_json_number_text(key);
    if (hd_json_is_bool(key))
        return hd_json_is_true(key) ? HD_S("true") : HD_S("false");
    return HD_S("null");
}

void hd_canon_render_map(struct hd_jw *jw, hd_json_val record)
{
    hd_json_val pairs = record_get(record, "items");
    struct hd_json_iter it = hd_json_iter(pairs);

    if (!has_simple_keys(pairs)) {
        put_list(jw, pairs);
        return;
    }
    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        if (hd_json_next(&pair))
            hd_jw_key(jw, key_text(pair.val));
        if (hd_json_next(&pair))
            hd_canon_render_val(jw, pair.val);
    }
    hd_jw_object_end(jw);
}

void hd_canon_render_set(struct hd_jw *jw, hd_json_val record)
{
    put_list(jw, record_get(record, "items"));
}

void hd_canon_render_int(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_raw(jw, hd_json_string(record_get(record, "v")));
}

/* JSON cannot express the others. */
void hd_canon_render_float(struct hd_jw *jw, hd_json_val record)
{
    bool is_zero = hd_slice_eq(hd_json_string(record_get(record, "v")), HD_S("-0"));

    hd_jw_raw(jw, is_zero ? HD_S("-0.0") : HD_S("null"));
}

/* bytes and datetime */
void hd_canon_render_text(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_string(jw, hd_json_string(record_get(record, "v")));
}

void hd_canon_render_undefined(struct hd_jw *jw, hd_json_val record)
{
    (void)record;
    hd_jw_null(jw);
}

void hd_canon_render_error(struct hd_jw *jw, hd_json_val record)
{
    hd_jw_object(jw);
    render_key(jw, "error");
    hd_canon_render_val(jw, record_get(record, "type"));
    render_member(jw, record, "message");
    hd_jw_object_end(jw);
}

/* As its contents, if they can be decoded. */
static bool put_foreign(struct hd_jw *jw, hd_json_val record)
{
    struct hd_slice base64 = hd_json_string(record_get(record, "v"));
    unsigned char *bytes;
    size_t size = 0;
    bool is_put;

    if (jw->err != 0 || !hd_canon_base64_size(base64, &size))
        return false;
    bytes = hd_malloc(size + 1);
    if (!bytes) {
        jw->err = HD_ENOMEM;
        return true;
    }
    hd_canon_base64_decode(base64, bytes);
    is_put = hd_serde_put(jw, hd_json_string(record_get(record, "type")),
                          hd_slice((const char *)bytes, size));
    hd_free(bytes);
    return is_put;
}

void hd_canon_render_foreign(struct hd_jw *jw, hd_json_val record)
{
    if (put_foreign(jw, record))
        return;
    hd_jw_object(jw);
    render_member(jw, record, "type");
    render_key(jw, "data");
    hd_jw_string(jw, hd_json_string(record_get(record, "v")));
    hd_jw_object_end(jw);
}

/* ---- strings with unpaired surrogates --------------------------------- */

/* Decodes one character of `units` from *pos on; U+FFFD for an unpaired surrogate. */
static unsigned next_char(const unsigned char *units, size_t size, size_t *pos)
{
    unsigned unit = units[*pos] | (unsigned)units[*pos + 1] << 8;
    unsigned low = *pos + 3 < size ? units[*pos + 2] | (unsigned)units[*pos + 3] << 8 : 0;

    *pos += 2;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *pos += 2;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/* Writes one character as UTF-8; returns the number of bytes. */
static size_t put_utf8(unsigned c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

void hd_canon_render_utf16(struct hd_jw *jw, hd_json_val record)
{
    struct hd_slice base64 = hd_json_string(record_get(record, "v"));
    size_t size = 0, pos = 0, len = 0;
    unsigned char *units;
    char *text;

    if (jw->err != 0 || !hd_canon_base64_size(base64, &size))
        return;
    /* A unit of two bytes gives three bytes of UTF-8 at most. */
    units = hd_malloc(size + size / 2 * 3);
    if (!units) {
        jw->err = HD_ENOMEM;
        return;
    }
    text = (char *)units + size;
    hd_canon_base64_decode(base64, units);
    while (pos < size)
        len += put_utf8(next_char(units, size, &pos), text + len);
    hd_jw_string(jw, hd_slice(text, len));
    hd_free(units);
}

/* ---- values ----------------------------------------------------------- */

static void put_record(struct hd_jw *jw, hd_json_val record, struct hd_slice name)
{
    const struct hd_canon_kind *kind = hd_canon_kind_find(name);

    if (kind && hd_canon_is_sound(record, kind))
        kind->render(jw, record);
    else
        render_object(jw, record);
}

void hd_canon_render_val(struct hd_jw *jw, hd_json_val val)
{
    hd_json_val kind = hd_canon_kind_of(val);

    if (kind)
        put_record(jw, val, hd_json_string(kind));
    else if (hd_json_is_object(val))
        render_object(jw, val);
    else if (hd_json_is_array(val))
        put_list(jw, val);
    else
        hd_jw_val(jw, val);
}

int hd_canon_render(struct hd_buf *out, struct hd_slice text, struct heddle_error *fault)
{
    size_t before = out->len;
    struct hd_json json;
    struct hd_jw jw;
    int err = hd_json_parse(&json, text, fault);

    if (err != 0)
        return err;
    hd_jw_init(&jw, out);
    hd_canon_render_val(&jw, hd_json_root(&json));
    err = hd_jw_finish(&jw);
    hd_json_fini(&json);
    if (err != 0)
        out->len = before;
    return err;
}
