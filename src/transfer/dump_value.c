/*
 * Binary parts of a row as JSON and back:
 *
 *   reference   {"text"|"base64": …}: a short value
 *               {"size": n, "checksum": "16 digits", "parts": [part, …]}: a long one, its parts
 *               {"text"|"base64": …} or {"stream": name, "first": n, "count": n, "commas": 0…3}
 *   body        {"v": n, "checkpoint": {"json": …}, "values": [{"channel", "type", "value"}]}
 *   page        {"events": [{"seq", "mode", "last", "name", "data"}]}
 *   exchange    {"place", "peer", "method", "url", "request", "error", "headers", "body", "status",
 *               "tries", "flags"}
 *
 * In all four {"base64": …} alone stands for what cannot be read so.
 */
#include <inttypes.h>
#include <string.h>

#include "auth/base64url.h"
#include "base/utf8.h"
#include "records/record_internal.h"
#include "records/recording_internal.h"
#include "store/codec/value.h"
#include "transfer/dump_internal.h"

/* ---- bytes ------------------------------------------------------------ */

/* JSON that can stand in a line as it is. */
static bool is_json(struct hd_slice text)
{
    struct hd_json json = {NULL};
    bool is_good;

    if (text.len < 2 || !strchr("{[", text.ptr[0]) || !text.ptr[0] ||
        !strchr("}]", text.ptr[text.len - 1]) || memchr(text.ptr, '\n', text.len) ||
        memchr(text.ptr, '\r', text.len))
        return false;
    is_good = hd_json_parse(&json, text, NULL) == 0;
    hd_json_fini(&json);
    return is_good;
}

static void write_base64(struct hd_jw *jw, struct hd_slice bytes, struct hd_arena *arena)
{
    size_t len = HD_BASE64URL_LEN(bytes.len);
    char *text = hd_arena_alloc(arena, len + 1);

    if (!text) {
        jw->err = jw->err ? jw->err : HD_ENOMEM;
        return;
    }
    hd_base64url_encode(bytes.ptr, bytes.len, text);
    hd_jw_string(jw, hd_slice(text, len));
}

void hd_dump_write_bytes(struct hd_jw *jw, struct hd_slice bytes, bool may_be_json,
                         struct hd_arena *arena)
{
    hd_jw_object(jw);
    if (may_be_json && is_json(bytes)) {
        hd_jw_put_raw(jw, "json", bytes);
    } else if (hd_utf8_is_valid(bytes)) {
        hd_jw_put_string(jw, "text", bytes);
    } else {
        hd_jw_key(jw, HD_S("base64"));
        write_base64(jw, bytes, arena);
    }
    hd_jw_object_end(jw);
}

int hd_dump_read_bytes(hd_json_val val, struct hd_slice raw, struct hd_arena *arena,
                       struct hd_slice *out)
{
    hd_json_val text = hd_json_get(val, HD_S("text"));
    hd_json_val base64 = hd_json_get(val, HD_S("base64"));
    struct hd_member member = {"json", out};
    unsigned char *bytes;
    int err;

    if (hd_json_size(val) != 1)
        return HD_EINVAL;
    if (hd_json_is_string(text))
        return hd_arena_copy(arena, hd_json_string(text), out);
    if (!hd_json_is_string(base64)) {
        if (raw.len == 0 || !hd_json_get(val, HD_S("json")))
            return HD_EINVAL;
        err = hd_record_split(raw, &member, 1);
        if (!err && (out->len < 2 || !strchr("{[", out->ptr[0])))
            err = HD_EINVAL; /* scalars are written as text */
        return err ? HD_EINVAL : hd_arena_copy(arena, *out, out);
    }
    bytes = hd_arena_alloc(arena, hd_json_string(base64).len + 1);
    if (!bytes)
        return HD_ENOMEM;
    err = hd_base64url_decode(hd_json_string(base64), bytes, &out->len);
    out->ptr = (const char *)bytes;
    return err;
}

static void put_bytes(struct hd_jw *jw, const char *name, struct hd_slice bytes,
                      struct hd_arena *arena)
{
    hd_jw_key(jw, hd_slice_cstr(name));
    hd_dump_write_bytes(jw, bytes, false, arena);
}

static int get_bytes(hd_json_val val, const char *name, struct hd_arena *arena,
                     struct hd_slice *out)
{
    return hd_dump_read_bytes(hd_json_get(val, hd_slice_cstr(name)), hd_slice(NULL, 0), arena, out);
}

/* A number that is not negative. */
static int get_count(hd_json_val val, const char *name, uint64_t *out)
{
    int64_t number;

    if (!hd_json_int(hd_json_get(val, hd_slice_cstr(name)), &number) || number < 0)
        return HD_EINVAL;
    *out = (uint64_t)number;
    return 0;
}

/* ---- references --------------------------------------------------------- */

static void write_part(struct hd_jw *jw, const struct hd_segment *segment, struct hd_arena *arena)
{
    if (!segment->is_extent) {
        hd_dump_write_bytes(jw, segment->literal, false, arena);
        return;
    }
    hd_jw_object(jw);
    put_bytes(jw, "stream", segment->sequence, arena);
    hd_jw_put_int(jw, "first", segment->start);
    hd_jw_put_int(jw, "count", (int64_t)segment->count);
    hd_jw_put_int(jw, "commas", (segment->first_comma ? 1 : 0) | (segment->rest_comma ? 2 : 0));
    hd_jw_object_end(jw);
}

static void write_parts(struct hd_jw *jw, const struct hd_ref *ref, struct hd_arena *arena)
{
    char checksum[17];

    (void)snprintf(checksum, sizeof(checksum), "%016" PRIx64, ref->checksum);
    hd_jw_object(jw);
    hd_jw_put_int(jw, "size", (int64_t)ref->size);
    hd_jw_put_string(jw, "checksum", hd_slice_cstr(checksum));
    hd_jw_put_array(jw, "parts");
    for (size_t i = 0; i < ref->segment_count; i++)
        write_part(jw, &ref->segments[i], arena);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

int hd_dump_write_ref(struct hd_buf *out, struct hd_slice encoded, struct hd_slice own,
                      struct hd_arena *arena)
{
    struct hd_ref ref;
    struct hd_jw jw;
    int err = hd_ref_parse(encoded, own, arena, &ref);

    if (err)
        return err;
    hd_jw_init(&jw, out);
    if (ref.is_inline)
        hd_dump_write_bytes(&jw, ref.inline_bytes, false, arena);
    else
        write_parts(&jw, &ref, arena);
    return hd_jw_finish(&jw);
}

static int read_checksum(hd_json_val val, uint64_t *out)
{
    struct hd_slice text = hd_json_string(hd_json_get(val, HD_S("checksum")));

    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text.ptr[i] ? strchr(digits, text.ptr[i]) : NULL;

        if (!digit)
            return HD_EINVAL;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return text.len == 16 ? 0 : HD_EINVAL;
}

static int read_part(struct hd_ref_builder *builder, hd_json_val val, struct hd_arena *arena)
{
    struct hd_segment segment = {.is_extent = hd_json_get(val, HD_S("stream")) != NULL};
    uint64_t first = 0, commas = 0;
    int err;

    if (!segment.is_extent) {
        err = hd_dump_read_bytes(val, hd_slice(NULL, 0), arena, &segment.literal);
        return err ? err : hd_ref_builder_segment(builder, &segment);
    }
    err = get_bytes(val, "stream", arena, &segment.sequence);
    if (!err)
        err = get_count(val, "first", &first);
    if (!err)
        err = get_count(val, "count", &segment.count);
    if (!err)
        err = get_count(val, "commas", &commas);
    if (!err &&
        (commas > 3 || segment.count == 0 || segment.count > UINT32_MAX || first > INT64_MAX / 2))
        err = HD_EINVAL;
    segment.start = (int64_t)first;
    segment.first_comma = commas & 1;
    segment.rest_comma = commas & 2;
    return err ? err : hd_ref_builder_segment(builder, &segment);
}

static int read_ref_parts(struct hd_buf *out, hd_json_val val, struct hd_slice own,
                          struct hd_arena *arena)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(val, HD_S("parts")));
    struct hd_ref_builder builder;
    uint64_t size = 0, checksum = 0;
    int err = get_count(val, "size", &size);

    if (!err)
        err = read_checksum(val, &checksum);
    hd_ref_builder_init(&builder, own);
    while (!err && hd_json_next(&it))
        err = read_part(&builder, it.val, arena);
    if (!err)
        err = hd_ref_builder_finish(&builder, size, checksum, out);
    hd_ref_builder_fini(&builder);
    return err;
}

int hd_dump_read_ref(struct hd_buf *out, hd_json_val val, struct hd_slice own,
                     struct hd_arena *arena)
{
    struct hd_slice bytes;
    int err;

    if (hd_json_is_array(hd_json_get(val, HD_S("parts"))))
        return read_ref_parts(out, val, own, arena);
    err = hd_dump_read_bytes(val, hd_slice(NULL, 0), arena, &bytes);
    return err ? err : hd_ref_write_inline(out, bytes);
}

/* ---- bodies ----------------------------------------------------------- */

static int write_values(struct hd_jw *jw, const struct hd_checkpoint_body *body,
                        struct hd_arena *arena)
{
    int err = 0;

    hd_jw_array(jw);
    for (size_t i = 0; !err && i < body->entry_count; i++) {
        const struct hd_channel_entry *entry = &body->entries[i];
        struct hd_buf ref;

        hd_buf_init(&ref, HD_DUMP_MAX_LINE);
        err = hd_dump_write_ref(&ref, entry->ref, entry->channel, arena);
        hd_jw_object(jw);
        put_bytes(jw, "channel", entry->channel, arena);
        put_bytes(jw, "type", entry->type, arena);
        hd_jw_put_raw(jw, "value", hd_buf_slice(&ref));
        hd_jw_object_end(jw);
        hd_buf_fini(&ref);
    }
    hd_jw_array_end(jw);
    return err;
}

int hd_dump_write_body(struct hd_buf *out, struct hd_slice encoded, struct hd_arena *arena)
{
    struct hd_checkpoint_body body;
    struct hd_jw jw;
    int err = hd_checkpoint_body_parse(encoded, arena, &body);
    int end;

    if (err)
        return err;
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_int(&jw, "v", body.v);
    hd_jw_key(&jw, HD_S("checkpoint"));
    hd_dump_write_bytes(&jw, body.json, true, arena);
    hd_jw_key(&jw, HD_S("values"));
    err = write_values(&jw, &body, arena);
    hd_jw_object_end(&jw);
    end = hd_jw_finish(&jw);
    return err ? err : end;
}

static int read_entry(hd_json_val val, struct hd_arena *arena, struct hd_channel_entry *entry)
{
    struct hd_buf ref;
    int err = get_bytes(val, "channel", arena, &entry->channel);

    if (!err)
        err = get_bytes(val, "type", arena, &entry->type);
    hd_buf_init(&ref, HD_REF_MAX);
    if (!err)
        err = hd_dump_read_ref(&ref, hd_json_get(val, HD_S("value")), entry->channel, arena);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&ref), &entry->ref);
    hd_buf_fini(&ref);
    return err;
}

int hd_dump_read_body(struct hd_buf *out, hd_json_val val, struct hd_slice raw,
                      struct hd_arena *arena)
{
    hd_json_val values = hd_json_get(val, HD_S("values"));
    struct hd_json_iter it = hd_json_iter(values);
    struct hd_checkpoint_body body = {.entry_count = hd_json_size(values)};
    struct hd_slice checkpoint = {NULL, 0};
    struct hd_member member = {"checkpoint", &checkpoint};
    int err = hd_json_is_array(values) ? hd_record_split(raw, &member, 1) : HD_EINVAL;

    body.entries = hd_arena_calloc(arena, body.entry_count + 1, sizeof(*body.entries));
    if (!body.entries)
        return HD_ENOMEM;
    if (!err && !hd_json_int(hd_json_get(val, HD_S("v")), &body.v))
        err = HD_EINVAL;
    if (!err)
        err =
            hd_dump_read_bytes(hd_json_get(val, HD_S("checkpoint")), checkpoint, arena, &body.json);
    for (size_t i = 0; !err && hd_json_next(&it); i++) {
        err = read_entry(it.val, arena, &body.entries[i]);
        if (!err && i > 0 &&
            hd_slice_cmp(body.entries[i - 1].channel, body.entries[i].channel) >= 0)
            err = HD_EINVAL;
    }
    return err ? err : hd_checkpoint_body_write(out, &body);
}

/* ---- events ----------------------------------------------------------- */

static int write_event(struct hd_jw *jw, struct hd_reader *reader, struct hd_arena *arena)
{
    struct hd_slice name, data;
    uint64_t seq, mode;
    uint8_t is_last;

    if (hd_read_varint(reader, &seq) || hd_read_varint(reader, &mode) ||
        hd_read_byte(reader, &is_last) || hd_read_lenslice(reader, &name) ||
        hd_read_lenslice(reader, &data) || seq > INT64_MAX || mode > INT64_MAX)
        return HD_ECORRUPT;
    hd_jw_object(jw);
    hd_jw_put_int(jw, "seq", (int64_t)seq);
    hd_jw_put_int(jw, "mode", (int64_t)mode);
    hd_jw_put_int(jw, "last", is_last);
    put_bytes(jw, "name", name, arena);
    put_bytes(jw, "data", data, arena);
    hd_jw_object_end(jw);
    return 0;
}

int hd_dump_write_page(struct hd_buf *out, struct hd_slice page, struct hd_arena *arena)
{
    struct hd_reader reader = hd_reader(page);
    struct hd_jw jw;
    int err = 0, end;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "events");
    while (!err && reader.pos < reader.end)
        err = write_event(&jw, &reader, arena);
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    end = hd_jw_finish(&jw);
    return err ? err : end;
}

static int read_event(struct hd_buf *out, hd_json_val val, struct hd_arena *arena)
{
    struct hd_slice name = {NULL, 0}, data = {NULL, 0};
    uint64_t seq = 0, mode = 0, last = 0;
    int err = get_count(val, "seq", &seq);

    if (!err)
        err = get_count(val, "mode", &mode);
    if (!err)
        err = get_count(val, "last", &last);
    if (!err)
        err = get_bytes(val, "name", arena, &name);
    if (!err)
        err = get_bytes(val, "data", arena, &data);
    if (!err && (last > UINT8_MAX || mode > UINT32_MAX))
        err = HD_EINVAL;
    if (!err)
        err = hd_buf_append_varint(out, seq);
    if (!err)
        err = hd_buf_append_varint(out, mode);
    if (!err)
        err = hd_buf_append_byte(out, (uint8_t)last);
    if (!err)
        err = hd_buf_append_lenslice(out, name);
    return err ? err : hd_buf_append_lenslice(out, data);
}

int hd_dump_read_page(struct hd_buf *out, hd_json_val val, struct hd_arena *arena)
{
    hd_json_val events = hd_json_get(val, HD_S("events"));
    struct hd_json_iter it = hd_json_iter(events);
    int err = hd_json_is_array(events) ? 0 : HD_EINVAL;

    while (!err && hd_json_next(&it))
        err = read_event(out, it.val, arena);
    return err;
}

/* ---- exchanges -------------------------------------------------------- */

int hd_dump_write_exchange(struct hd_buf *out, struct hd_slice exchange, struct hd_arena *arena)
{
    struct hd_kept_exchange kept = {.status = 0};
    struct hd_jw jw;
    int err = hd_kept_read(exchange, &kept);

    if (err)
        return err;
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    put_bytes(&jw, "place", kept.place, arena);
    put_bytes(&jw, "peer", kept.peer, arena);
    put_bytes(&jw, "method", kept.method, arena);
    put_bytes(&jw, "url", kept.url, arena);
    put_bytes(&jw, "request", kept.request, arena);
    put_bytes(&jw, "error", kept.error, arena);
    put_bytes(&jw, "headers", kept.headers, arena);
    put_bytes(&jw, "body", kept.body, arena);
    hd_jw_put_int(&jw, "status", (int64_t)(kept.status & INT64_MAX));
    hd_jw_put_int(&jw, "tries", (int64_t)(kept.tries & INT64_MAX));
    hd_jw_put_int(&jw, "flags", (kept.is_timeout ? 1 : 0) | (kept.is_partial ? 2 : 0));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_dump_read_exchange(struct hd_buf *out, hd_json_val val, struct hd_arena *arena)
{
    struct hd_kept_exchange kept = {.status = 0};
    const struct {
        const char *name;
        struct hd_slice *out;
    } texts[] = {{"place", &kept.place},     {"peer", &kept.peer},       {"method", &kept.method},
                 {"url", &kept.url},         {"request", &kept.request}, {"error", &kept.error},
                 {"headers", &kept.headers}, {"body", &kept.body}};
    uint64_t flags = 0;
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(texts); i++)
        err = get_bytes(val, texts[i].name, arena, texts[i].out);
    if (!err)
        err = get_count(val, "status", &kept.status);
    if (!err)
        err = get_count(val, "tries", &kept.tries);
    if (!err)
        err = get_count(val, "flags", &flags);
    kept.is_timeout = flags & 1;
    kept.is_partial = flags & 2;
    return err ? err : hd_kept_write(out, &kept);
}
