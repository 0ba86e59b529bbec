#include "run/heads.h"

#include "base/buf.h"
#include "base/json.h"

#define MAX_HEADS ((size_t)16 << 20)

static void put_heads(struct hd_jw *jw, hd_json_val heads, struct hd_slice ns, struct hd_slice id)
{
    struct hd_json_iter it = hd_json_iter(heads);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, ns))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    if (id.len > 0) {
        hd_jw_key(jw, ns);
        hd_jw_string(jw, id);
    }
    hd_jw_object_end(jw);
}

int hd_heads_set(struct hd_arena *arena, struct hd_slice *heads, struct hd_slice ns,
                 struct hd_slice id)
{
    struct hd_json json = {NULL};
    struct hd_buf out;
    struct hd_jw jw;
    int err;

    if (heads->len == 0 && id.len == 0)
        return 0;
    err = heads->len > 0 ? hd_json_parse(&json, *heads, NULL) : 0;
    hd_buf_init(&out, MAX_HEADS);
    hd_jw_init(&jw, &out);
    put_heads(&jw, hd_json_root(&json), ns, id);
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&out), heads);
    hd_json_fini(&json);
    hd_buf_fini(&out);
    return err;
}
