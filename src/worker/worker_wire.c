#include "worker/worker_wire.h"

#include <string.h>

#include "base/utf8.h"
#include "store/store.h"

/* ---- reading ---------------------------------------------------------- */

static int refuse_argument(const struct hd_wire_in *in, const char *what, const char *expected,
                           hd_json_val found)
{
    return hd_error_set(in->fault, HD_EINVAL, "%s: expected %s, found %s", what, expected,
                        hd_json_type_name(found));
}

int hd_wire_string(const struct hd_wire_in *in, const char *name, struct hd_slice *out)
{
    hd_json_val val = hd_json_get(in->head, hd_slice_cstr(name));

    *out = HD_S("");
    if (!val || hd_json_is_null(val))
        return 0;
    if (!hd_json_is_string(val))
        return refuse_argument(in, name, "a string", val);
    *out = hd_json_string(val);
    return 0;
}

static int blob_at(const struct hd_wire_in *in, const char *what, hd_json_val number,
                   struct hd_slice *out)
{
    int64_t index;

    if (!hd_json_int(number, &index))
        return refuse_argument(in, what, "the number of a blob", number);
    if (index < 0 || (uint64_t)index >= in->message->blob_count)
        return hd_error_set(in->fault, HD_EINVAL, "%s: blob %lld does not exist", what,
                            (long long)index);
    *out = in->message->blobs[index];
    return 0;
}

static int render_argument(const struct hd_wire_in *in, hd_json_val val, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX / 2);
    err = hd_json_write_val(&buf, val);
    if (!err)
        err = hd_arena_copy(in->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

int hd_wire_text(const struct hd_wire_in *in, const char *name, struct hd_slice *out)
{
    hd_json_val val = hd_json_get(in->head, hd_slice_cstr(name));
    hd_json_val number = hd_json_size(val) == 1 ? hd_json_get(val, HD_S("$blob")) : NULL;

    *out = HD_S("");
    if (!val)
        return 0;
    return number ? blob_at(in, name, number, out) : render_argument(in, val, out);
}

static int read_value(const struct hd_wire_in *in, hd_json_val list, struct heddle_value *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_slice parts[3];
    size_t i = 0;
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) != 3)
        return refuse_argument(in, "values", "[channel, type, blob]", list);
    for (; !err && hd_json_next(&it); i++) {
        if (hd_json_is_string(it.val))
            parts[i] = hd_json_string(it.val);
        else if (i == 2)
            err = blob_at(in, "values", it.val, &parts[i]);
        else
            err = refuse_argument(in, "values", "a string", it.val);
    }
    if (!err)
        *out = (struct heddle_value){hd_to_public(parts[0]), hd_to_public(parts[1]),
                                     hd_to_public(parts[2])};
    return err;
}

int hd_wire_values(const struct hd_wire_in *in, struct heddle_value **out, size_t *count)
{
    hd_json_val list = hd_json_get(in->head, HD_S("values"));
    struct hd_json_iter it = hd_json_iter(list);
    size_t i = 0;
    int err = 0;

    *count = 0;
    if (list && !hd_json_is_array(list))
        return refuse_argument(in, "values", "a list", list);
    *out = hd_arena_calloc(in->arena, hd_json_size(list), sizeof(**out));
    if (!*out)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it))
        err = read_value(in, it.val, &(*out)[i++]);
    *count = err ? 0 : i;
    return err;
}

/* ---- writing ---------------------------------------------------------- */

int hd_wire_init(struct hd_wire_out *out, struct hd_buf *head, struct hd_arena *arena, size_t most)
{
    *out = (struct hd_wire_out){.room = most < HD_WIRE_MAX_BLOBS ? most : HD_WIRE_MAX_BLOBS};
    hd_jw_init(&out->jw, head);
    out->blobs = hd_arena_alloc(arena, out->room * sizeof(*out->blobs));
    return out->blobs ? 0 : HD_ENOMEM;
}

/* If all blobs of the frame are used, text goes into the head; other bytes fail with HD_ELIMIT. */
static void put_blob(struct hd_wire_out *out, struct heddle_bytes bytes)
{
    struct hd_slice blob = hd_from_public(bytes);

    out->bytes += blob.len;
    if (out->count < out->room) {
        hd_jw_int(&out->jw, (int64_t)out->count);
        out->blobs[out->count++] = blob;
    } else if (hd_utf8_is_valid(blob)) {
        hd_jw_string(&out->jw, blob);
    } else if (!out->jw.err) {
        out->jw.err = HD_ELIMIT;
    }
}

static void put_string(struct hd_wire_out *out, struct heddle_bytes bytes)
{
    hd_jw_string(&out->jw, hd_from_public(bytes));
}

static void put_text_blob(struct hd_wire_out *out, const char *name, struct heddle_bytes text)
{
    hd_jw_key(&out->jw, hd_slice_cstr(name));
    if (out->count == out->room) {
        hd_jw_raw(&out->jw, hd_from_public(text));
        return;
    }
    hd_jw_object(&out->jw);
    hd_jw_key(&out->jw, HD_S("$blob"));
    put_blob(out, text);
    hd_jw_object_end(&out->jw);
}

static void put_write(struct hd_wire_out *out, const struct heddle_write *write, bool has_channel)
{
    hd_jw_array(&out->jw);
    put_string(out, write->task_id);
    put_string(out, write->task_path);
    hd_jw_int(&out->jw, write->idx);
    if (has_channel)
        put_string(out, write->value.channel);
    put_string(out, write->value.type);
    put_blob(out, write->value.data);
    hd_jw_array_end(&out->jw);
}

static void put_writes(struct hd_wire_out *out, const char *name, const struct heddle_write *writes,
                       size_t count, bool has_channel)
{
    hd_jw_put_array(&out->jw, name);
    for (size_t i = 0; i < count; i++)
        put_write(out, &writes[i], has_channel);
    hd_jw_array_end(&out->jw);
}

static void put_values(struct hd_wire_out *out, const struct heddle_value *values, size_t count)
{
    hd_jw_put_array(&out->jw, "values");
    for (size_t i = 0; i < count; i++) {
        hd_jw_array(&out->jw);
        put_string(out, values[i].channel);
        put_string(out, values[i].type);
        put_blob(out, values[i].data);
        hd_jw_array_end(&out->jw);
    }
    hd_jw_array_end(&out->jw);
}

void hd_wire_tuple(struct hd_wire_out *out, const struct heddle_tuple *tuple, struct hd_slice ns)
{
    struct hd_jw *jw = &out->jw;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "ns", ns);
    hd_jw_key(jw, HD_S("id"));
    put_string(out, tuple->id);
    hd_jw_key(jw, HD_S("parent"));
    if (tuple->parent.len)
        put_string(out, tuple->parent);
    else
        hd_jw_null(jw);
    put_text_blob(out, "checkpoint", tuple->checkpoint);
    put_text_blob(out, "metadata", tuple->metadata);
    put_values(out, tuple->values, tuple->value_count);
    put_writes(out, "writes", tuple->writes, tuple->write_count, true);
    put_writes(out, "sends", tuple->sends, tuple->send_count, true);
    hd_jw_object_end(jw);
}

size_t hd_wire_tuple_blobs(const struct heddle_tuple *tuple)
{
    return 2 + tuple->value_count + tuple->write_count + tuple->send_count;
}

static void put_history(struct hd_wire_out *out, const struct heddle_history *history)
{
    struct hd_jw *jw = &out->jw;

    hd_jw_key(jw, hd_from_public(history->channel));
    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("seed"));
    if (history->seed) {
        hd_jw_array(jw);
        put_string(out, history->seed->type);
        put_blob(out, history->seed->data);
        hd_jw_array_end(jw);
    } else {
        hd_jw_null(jw);
    }
    put_writes(out, "writes", history->writes, history->write_count, false);
    hd_jw_object_end(jw);
}

void hd_wire_histories(struct hd_wire_out *out, const struct heddle_histories *histories)
{
    hd_jw_object(&out->jw);
    for (size_t i = 0; i < histories->channel_count; i++)
        put_history(out, &histories->channels[i]);
    hd_jw_object_end(&out->jw);
}
