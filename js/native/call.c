/*
 * One operation from its JavaScript arguments to the settled promise.
 */
#include "addon.h"

#include "base/alloc.h"
#include "base/error.h"

/* Texts up to this many UTF-16 units are read without a separate length query. */
#define SHORT_TEXT 80

/* ---- input ------------------------------------------------------------ */

static int copy_text(napi_env env, napi_value value, struct hd_arena *arena, size_t room,
                     struct heddle_bytes *out)
{
    char *text = hd_arena_alloc(arena, room + 1);

    if (!text)
        return HD_ENOMEM;
    if (napi_get_value_string_utf8(env, value, text, room + 1, &out->len) != napi_ok)
        return HD_EINVAL;
    out->data = text;
    return 0;
}

int hd_js_text(napi_env env, napi_value value, struct hd_arena *arena, struct heddle_bytes *out)
{
    napi_valuetype type;
    size_t units, room;

    *out = (struct heddle_bytes){NULL, 0};
    if (napi_typeof(env, value, &type) != napi_ok)
        return HD_EINVAL;
    if (type == napi_null || type == napi_undefined)
        return 0;
    if (napi_get_value_string_utf16(env, value, NULL, 0, &units) != napi_ok)
        return HD_EINVAL;
    room = units * 3;
    if (units > SHORT_TEXT && napi_get_value_string_utf8(env, value, NULL, 0, &room) != napi_ok)
        return HD_EINVAL;
    return copy_text(env, value, arena, room, out);
}

/* Copies a string; uses a Uint8Array in place, so its owner must not change it. */
static int read_data(napi_env env, napi_value value, struct hd_arena *arena,
                     struct heddle_bytes *out)
{
    napi_typedarray_type type;
    bool is_array = false;
    void *data = NULL;

    if (napi_is_typedarray(env, value, &is_array) != napi_ok)
        return HD_EINVAL;
    if (!is_array)
        return hd_js_text(env, value, arena, out);
    if (napi_get_typedarray_info(env, value, &type, &out->len, &data, NULL, NULL) != napi_ok ||
        type != napi_uint8_array)
        return HD_EINVAL;
    out->data = data;
    return 0;
}

static int read_length(napi_env env, napi_value array, size_t *out)
{
    uint32_t length;
    bool is_array = false;

    if (napi_is_array(env, array, &is_array) != napi_ok || !is_array ||
        napi_get_array_length(env, array, &length) != napi_ok)
        return HD_EINVAL;
    *out = length;
    return 0;
}

static int read_texts(napi_env env, napi_value array, struct hd_arena *arena, size_t count,
                      struct heddle_bytes *out)
{
    napi_value element;
    int err;

    for (size_t i = 0; i < count; i++) {
        if (napi_get_element(env, array, (uint32_t)i, &element) != napi_ok)
            return HD_EINVAL;
        err = hd_js_text(env, element, arena, &out[i]);
        if (err)
            return err;
    }
    return 0;
}

/* Values come as channel, type, data, channel, type, data … */
static int read_value(napi_env env, napi_value array, size_t at, struct hd_arena *arena,
                      struct heddle_value *out)
{
    napi_value channel, type, data;
    int err;

    if (napi_get_element(env, array, (uint32_t)at, &channel) != napi_ok ||
        napi_get_element(env, array, (uint32_t)at + 1, &type) != napi_ok ||
        napi_get_element(env, array, (uint32_t)at + 2, &data) != napi_ok)
        return HD_EINVAL;
    err = hd_js_text(env, channel, arena, &out->channel);
    if (!err)
        err = hd_js_text(env, type, arena, &out->type);
    if (!err)
        err = read_data(env, data, arena, &out->data);
    return err;
}

static int read_values(napi_env env, napi_value array, struct hd_js_op *op)
{
    size_t length;
    int err = read_length(env, array, &length);

    if (err)
        return err;
    op->item_count = length / 3;
    op->values = hd_arena_calloc(&op->arena, op->item_count, sizeof(*op->values));
    if (!op->values)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < op->item_count; i++)
        err = read_value(env, array, i * 3, &op->arena, &op->values[i]);
    /* Keeps its buffers alive until the work is done. */
    if (!err && napi_create_reference(env, array, 1, &op->kept) != napi_ok)
        err = HD_ENOMEM;
    return err;
}

static int read_items(napi_env env, napi_value array, struct hd_js_op *op)
{
    int err;

    if (op->operation->items == HD_JS_NO_ITEMS)
        return 0;
    if (op->operation->items == HD_JS_VALUES)
        return read_values(env, array, op);
    err = read_length(env, array, &op->item_count);
    if (err)
        return err;
    op->items = hd_arena_calloc(&op->arena, op->item_count, sizeof(*op->items));
    if (!op->items)
        return HD_ENOMEM;
    return read_texts(env, array, &op->arena, op->item_count, op->items);
}

enum { ARG_STORE, ARG_TEXTS, ARG_ITEMS, ARG_NUMBER, ARG_LIST, ARG_COUNT };

static int read_arguments(napi_env env, const napi_value *argv, struct hd_js_op *op)
{
    napi_valuetype type;
    int err;

    op->texts = hd_arena_calloc(&op->arena, op->operation->text_count, sizeof(*op->texts));
    if (!op->texts)
        return HD_ENOMEM;
    err = read_texts(env, argv[ARG_TEXTS], &op->arena, op->operation->text_count, op->texts);
    if (!err)
        err = read_items(env, argv[ARG_ITEMS], op);
    if (err)
        return err;
    if (napi_typeof(env, argv[ARG_NUMBER], &type) == napi_ok && type == napi_number &&
        napi_get_value_int64(env, argv[ARG_NUMBER], &op->number) != napi_ok)
        return HD_EINVAL;
    if (!op->operation->has_list)
        return 0;
    op->list = hd_js_list_from(env, argv[ARG_LIST]);
    if (!op->list || op->list->store != op->store)
        return HD_EINVAL;
    return napi_create_reference(env, argv[ARG_LIST], 1, &op->kept) == napi_ok ? 0 : HD_ENOMEM;
}

/* ---- the life of an operation ----------------------------------------- */

static struct hd_js_op *op_create(const struct hd_js_operation *operation,
                                  struct hd_js_store *store)
{
    struct hd_js_op *op = hd_calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    op->operation = operation;
    op->store = store;
    hd_arena_init(&op->arena, SIZE_MAX / 2);
    return op;
}

void hd_js_op_free(napi_env env, struct hd_js_op *op)
{
    if (op->operation->release && !op->code)
        op->operation->release(op);
    /* Without an environment its references are already gone. */
    if (env && op->kept)
        napi_delete_reference(env, op->kept);
    hd_arena_fini(&op->arena);
    hd_free(op);
}

void hd_js_op_done(void *arg, int code, const struct heddle_error *error)
{
    struct hd_js_op *op = arg;

    op->code = code;
    if (code && error)
        op->error = *error;
    hd_js_store_finish(op->store, op);
}

static void work(void *arg)
{
    struct hd_js_op *op = arg;

    op->code = op->operation->work(op);
    hd_js_store_finish(op->store, op);
}

static napi_value make_answer(napi_env env, struct hd_js_op *op)
{
    napi_value value = NULL;

    if (op->operation->answer)
        return op->operation->answer(env, op);
    return napi_get_undefined(env, &value) == napi_ok ? value : NULL;
}

/* The error raised while a result was built, which replaces the result. */
static napi_value take_exception(napi_env env)
{
    napi_value exception;
    bool is_pending = false;

    if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending &&
        napi_get_and_clear_last_exception(env, &exception) == napi_ok)
        return exception;
    return hd_js_error(env, HD_ENOMEM, NULL);
}

void hd_js_op_settle(napi_env env, struct hd_js_op *op)
{
    napi_handle_scope scope;
    napi_value value;

    if (napi_open_handle_scope(env, &scope) != napi_ok) {
        hd_js_op_free(env, op);
        return;
    }
    if (op->code) {
        napi_reject_deferred(env, op->deferred, hd_js_error(env, op->code, &op->error));
    } else if ((value = make_answer(env, op))) {
        napi_resolve_deferred(env, op->deferred, value);
    } else {
        napi_reject_deferred(env, op->deferred, take_exception(env));
    }
    hd_js_op_free(env, op);
    napi_close_handle_scope(env, scope);
}

/* The promise of a registered operation; frees the operation when it cannot start. */
static napi_value start(napi_env env, struct hd_js_op *op)
{
    struct hd_js_store *store = op->store;
    napi_value promise;
    int err;

    if (napi_create_promise(env, &op->deferred, &promise) != napi_ok) {
        op->code = HD_ENOMEM;
        hd_js_op_free(env, op);
        hd_js_store_finish(store, NULL);
        return NULL;
    }
    hd_js_store_hold(env, store);
    if (op->operation->start)
        err = op->operation->start(op);
    else
        err = heddle_defer(store->core, work, op);
    if (err) {
        op->code = err;
        hd_js_op_settle(env, op);
        hd_js_store_finish(store, NULL);
        hd_js_store_let_go(env, store);
    }
    return promise;
}

napi_value hd_js_call(napi_env env, napi_callback_info info)
{
    size_t argc = ARG_COUNT;
    napi_value argv[ARG_COUNT];
    void *operation = NULL;
    struct hd_js_store *store;
    struct hd_js_op *op;
    int err;

    /* Omitted arguments are undefined. */
    if (napi_get_cb_info(env, info, &argc, argv, NULL, &operation) != napi_ok)
        return NULL;
    store = hd_js_store_from(env, argv[ARG_STORE]);
    if (!store)
        return hd_js_rejected(env, HD_EINVAL, NULL);
    op = op_create(operation, store);
    if (!op)
        return hd_js_rejected(env, HD_ENOMEM, NULL);
    err = read_arguments(env, argv, op);
    if (!err && !hd_js_store_begin(store))
        err = HD_ECLOSED;
    if (err) {
        op->code = err;
        hd_js_op_free(env, op);
        return hd_js_rejected(env, err, NULL);
    }
    return start(env, op);
}
