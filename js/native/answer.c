/*
 * Results as JavaScript values. Arrays instead of objects: cheaper to build, and only src/store.ts
 * reads them. A function that returns NULL has left an exception or ran out of memory.
 */
#include "addon.h"

#include <string.h>

#include "base/error.h"

/* ---- errors ----------------------------------------------------------- */

napi_value hd_js_error(napi_env env, int code, const struct heddle_error *error)
{
    const char *text = error && error->text[0] ? error->text : heddle_error_text(code);
    const char *name = hd_error_name(code);
    napi_value code_value, text_value, value = NULL;
    char full[64];

    /* HD_EINVAL in the core, HEDDLE_EINVAL in JavaScript. */
    snprintf(full, sizeof(full), "HEDDLE_%s", strncmp(name, "HD_", 3) == 0 ? name + 3 : name);
    if (napi_create_string_utf8(env, full, NAPI_AUTO_LENGTH, &code_value) != napi_ok ||
        napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &text_value) != napi_ok ||
        napi_create_error(env, code_value, text_value, &value) != napi_ok)
        napi_get_undefined(env, &value);
    return value;
}

napi_value hd_js_rejected(napi_env env, int code, const struct heddle_error *error)
{
    napi_deferred deferred;
    napi_value promise;

    if (napi_create_promise(env, &deferred, &promise) != napi_ok)
        return NULL;
    napi_reject_deferred(env, deferred, hd_js_error(env, code, error));
    return promise;
}

/* ---- parts ------------------------------------------------------------ */

static bool is_ascii(struct heddle_bytes bytes)
{
    const unsigned char *data = bytes.data;
    unsigned char seen = 0;

    for (size_t i = 0; i < bytes.len; i++)
        seen |= data[i];
    return seen < 0x80;
}

static napi_value text_value(napi_env env, struct heddle_bytes bytes)
{
    const char *data = bytes.len ? bytes.data : "";
    napi_value value;
    napi_status status;

    /* Latin-1 needs no conversion; both encodings give the same string for ASCII. */
    if (is_ascii(bytes))
        status = napi_create_string_latin1(env, data, bytes.len, &value);
    else
        status = napi_create_string_utf8(env, data, bytes.len, &value);
    return status == napi_ok ? value : NULL;
}

static bool is_canonical(struct heddle_bytes type)
{
    return type.len == 3 && memcmp(type.data, "hd1", 3) == 0;
}

/* Canonical text as a string when that cannot hide invalid UTF-8, anything else as a buffer. */
static napi_value data_value(napi_env env, struct heddle_bytes type, struct heddle_bytes data)
{
    napi_value value;

    if (is_canonical(type) && is_ascii(data))
        return text_value(env, data);
    if (napi_create_buffer_copy(env, data.len, data.len ? data.data : "", NULL, &value) != napi_ok)
        return NULL;
    return value;
}

static bool set(napi_env env, napi_value array, size_t at, napi_value value)
{
    return value && napi_set_element(env, array, (uint32_t)at, value) == napi_ok;
}

static bool set_number(napi_env env, napi_value array, size_t at, int64_t number)
{
    napi_value value;

    return napi_create_int64(env, number, &value) == napi_ok && set(env, array, at, value);
}

static napi_value array_of(napi_env env, size_t length)
{
    napi_value array;

    return napi_create_array_with_length(env, length, &array) == napi_ok ? array : NULL;
}

/* ---- tuples ----------------------------------------------------------- */

/* channel, type, data, … */
static napi_value values_value(napi_env env, const struct heddle_value *values, size_t count)
{
    napi_value array = array_of(env, count * 3);
    bool ok = array != NULL;

    for (size_t i = 0; ok && i < count; i++)
        ok = set(env, array, i * 3, text_value(env, values[i].channel)) &&
             set(env, array, i * 3 + 1, text_value(env, values[i].type)) &&
             set(env, array, i * 3 + 2, data_value(env, values[i].type, values[i].data));
    return ok ? array : NULL;
}

/* task, channel, type, data, … */
static napi_value writes_value(napi_env env, const struct heddle_write *writes, size_t count)
{
    napi_value array = array_of(env, count * 4);
    bool ok = array != NULL;

    for (size_t i = 0; ok && i < count; i++) {
        const struct heddle_value *value = &writes[i].value;

        ok = set(env, array, i * 4, text_value(env, writes[i].task_id)) &&
             set(env, array, i * 4 + 1, text_value(env, value->channel)) &&
             set(env, array, i * 4 + 2, text_value(env, value->type)) &&
             set(env, array, i * 4 + 3, data_value(env, value->type, value->data));
    }
    return ok ? array : NULL;
}

/* thread, ns, id, parent, checkpoint, metadata, values, writes, sends */
static napi_value tuple_value(napi_env env, const struct heddle_tuple *tuple)
{
    napi_value array = array_of(env, 9);

    if (!array)
        return NULL;
    if (!set(env, array, 0, text_value(env, tuple->thread.id)) ||
        !set(env, array, 1, text_value(env, tuple->ns)) ||
        !set(env, array, 2, text_value(env, tuple->id)) ||
        !set(env, array, 3, text_value(env, tuple->parent)) ||
        !set(env, array, 4, text_value(env, tuple->checkpoint)) ||
        !set(env, array, 5, text_value(env, tuple->metadata)) ||
        !set(env, array, 6, values_value(env, tuple->values, tuple->value_count)) ||
        !set(env, array, 7, writes_value(env, tuple->writes, tuple->write_count)) ||
        !set(env, array, 8, writes_value(env, tuple->sends, tuple->send_count)))
        return NULL;
    return array;
}

napi_value hd_js_answer_tuple(napi_env env, struct hd_js_op *op)
{
    napi_value undefined;

    if (op->out.tuple)
        return tuple_value(env, op->out.tuple);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

napi_value hd_js_answer_list(napi_env env, struct hd_js_op *op)
{
    napi_value external = hd_js_list_wrap(env, op->out.list);

    if (external)
        op->out.list = NULL;
    return external;
}

/* tuples, and whether these are the last ones */
napi_value hd_js_answer_page(napi_env env, struct hd_js_op *op)
{
    const struct hd_js_page *page = &op->out.page;
    napi_value array = array_of(env, 2), tuples = array_of(env, page->count), is_last;
    bool ok = array && tuples && napi_get_boolean(env, page->is_last, &is_last) == napi_ok;

    for (size_t i = 0; ok && i < page->count; i++)
        ok = set(env, tuples, i, tuple_value(env, &page->tuples[i]));
    return ok && set(env, array, 0, tuples) && set(env, array, 1, is_last) ? array : NULL;
}

/* For each channel: its seed (an array of zero or one value), its writes. */
napi_value hd_js_answer_histories(napi_env env, struct hd_js_op *op)
{
    const struct heddle_histories *histories = op->out.histories;
    size_t count = histories ? histories->channel_count : 0;
    napi_value array = array_of(env, count * 2);
    bool ok = array != NULL;

    for (size_t i = 0; ok && i < count; i++) {
        const struct heddle_history *history = &histories->channels[i];

        ok = set(env, array, i * 2, values_value(env, history->seed, history->seed ? 1 : 0)) &&
             set(env, array, i * 2 + 1, writes_value(env, history->writes, history->write_count));
    }
    return ok ? array : NULL;
}

/* thread, created, updated (microseconds since 1970), … */
napi_value hd_js_answer_threads(napi_env env, struct hd_js_op *op)
{
    const struct heddle_threads *threads = op->out.threads;
    napi_value array = array_of(env, threads->count * 3);
    bool ok = array != NULL;

    for (size_t i = 0; ok && i < threads->count; i++) {
        const struct heddle_thread_info *info = &threads->threads[i];

        ok = set(env, array, i * 3, text_value(env, info->thread.id)) &&
             set_number(env, array, i * 3 + 1, info->created_at_us) &&
             set_number(env, array, i * 3 + 2, info->updated_at_us);
    }
    return ok ? array : NULL;
}

/* checkpoints, writes, chunks, bytes */
napi_value hd_js_answer_usage(napi_env env, struct hd_js_op *op)
{
    const struct heddle_usage *usage = &op->out.usage;
    napi_value array = array_of(env, 4);

    if (!array || !set_number(env, array, 0, usage->checkpoints) ||
        !set_number(env, array, 1, usage->writes) || !set_number(env, array, 2, usage->chunks) ||
        !set_number(env, array, 3, usage->bytes))
        return NULL;
    return array;
}
