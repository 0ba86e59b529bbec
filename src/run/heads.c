#include "run/heads.h"

#include <heddle.h>

#include "base/buf.h"
#include "base/json.h"
#include "run/record.h"

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

int hd_head_check(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                  struct hd_slice ns, struct hd_slice id, struct hd_fault *fault)
{
    struct heddle_bytes thread_id = {thread.ptr, thread.len};
    struct heddle_bytes ns_bytes = {ns.ptr, ns.len};
    struct heddle_bytes id_bytes = {id.ptr, id.len};
    struct heddle_query query = {.principal = {principal.ptr, principal.len},
                                 .thread = &thread_id,
                                 .ns = &ns_bytes,
                                 .id = &id_bytes,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct heddle_list *list;
    int err = heddle_list_open(store, &query, &list, &error);

    if (!err) {
        err = heddle_list_next(list, &tuple, &error);
        heddle_list_close(list);
    }
    return err && err != HD_ENOTFOUND ? hd_fault_set(fault, err, "%s", error.text) : err;
}

static int read_chosen(struct hd_arena *arena, struct hd_slice heads, struct hd_slice ns,
                       struct hd_slice *out, struct hd_fault *fault)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, heads, fault);

    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), ns)), out);
    hd_json_fini(&json);
    return err;
}

int hd_heads_get(struct heddle *store, const struct hd_thread_rec *thread, struct hd_slice ns,
                 struct hd_arena *arena, struct hd_slice *out, struct hd_fault *fault)
{
    int err = 0;

    *out = hd_slice(NULL, 0);
    if (thread->heads.len > 0)
        err = read_chosen(arena, thread->heads, ns, out, fault);
    if (!err && out->len > 0)
        err = hd_head_check(store, thread->principal, thread->id, ns, *out, fault);
    if (err)
        *out = hd_slice(NULL, 0);
    return err == HD_ENOTFOUND ? 0 : err;
}
