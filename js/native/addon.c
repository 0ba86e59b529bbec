/* The addon's module: the functions that JavaScript gets. */
#include "addon.h"

#include "base/alloc.h"

static void free_env(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    hd_free(data);
}

static bool define(napi_env env, napi_value exports, const char *name, napi_callback call,
                   const void *data)
{
    napi_value function;

    /* Node-API takes data as a non-const pointer; the operations are never written to. */
    return napi_create_function(env, name, NAPI_AUTO_LENGTH, call, (void *)(uintptr_t)data,
                                &function) == napi_ok &&
           napi_set_named_property(env, exports, name, function) == napi_ok;
}

static bool define_version(napi_env env, napi_value exports)
{
    napi_value version;

    return napi_create_string_utf8(env, HEDDLE_VERSION, NAPI_AUTO_LENGTH, &version) == napi_ok &&
           napi_set_named_property(env, exports, "version", version) == napi_ok;
}

NAPI_MODULE_INIT()
{
    struct hd_js_env *home = hd_calloc(1, sizeof(*home));

    if (!home || napi_set_instance_data(env, home, free_env, NULL) != napi_ok) {
        hd_free(home);
        napi_throw_error(env, "HEDDLE_ENOMEM", "out of memory");
        return NULL;
    }
    bool ok = define_version(env, exports) &&
              define(env, exports, "open", hd_js_store_open, NULL) &&
              define(env, exports, "close", hd_js_store_close, NULL) &&
              define(env, exports, "closeAll", hd_js_store_close_all, NULL);
    for (size_t i = 0; ok && i < hd_js_operation_count; i++)
        ok = define(env, exports, hd_js_operations[i].name, hd_js_call, &hd_js_operations[i]);
    return ok ? exports : NULL;
}
