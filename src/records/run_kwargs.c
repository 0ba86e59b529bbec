#include "records/run_kwargs.h"

#include <string.h>

/* The path of objects to the member that has a root. */
static const char *const path[] = {"config", "configurable", "checkpoint_ns"};

/* The rest behind the root: "" for the root itself. */
static struct hd_slice without_root(struct hd_slice ns)
{
    const char *bar = ns.len > 0 ? memchr(ns.ptr, '|', ns.len) : NULL;

    if (!hd_slice_starts(ns, HD_S("assistant:")))
        return ns;
    return bar ? hd_slice(bar + 1, ns.len - (size_t)(bar + 1 - ns.ptr)) : HD_S("");
}

/* Copies an object; the member path[depth] of it is copied with the namespace changed. */
static void put_object(struct hd_jw *jw, hd_json_val object, size_t depth)
{
    struct hd_json_iter it = hd_json_iter(object);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        bool is_next = hd_slice_eq(it.key, hd_slice_cstr(path[depth]));

        hd_jw_key(jw, it.key);
        if (is_next && depth + 1 < HD_COUNT(path) && hd_json_is_object(it.val))
            put_object(jw, it.val, depth + 1);
        else if (is_next && depth + 1 == HD_COUNT(path) && hd_json_is_string(it.val))
            hd_jw_string(jw, without_root(hd_json_string(it.val)));
        else
            hd_jw_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

void hd_run_put_kwargs(struct hd_jw *jw, struct hd_slice kwargs, bool shows_root)
{
    struct hd_json json = {NULL};

    if (shows_root || kwargs.len == 0 || hd_json_parse(&json, kwargs, NULL) ||
        !hd_json_is_object(hd_json_root(&json)))
        hd_jw_raw(jw, kwargs.len > 0 ? kwargs : HD_S("{}"));
    else
        put_object(jw, hd_json_root(&json), 0);
    hd_json_fini(&json);
}
