#include "api/owner.h"

#include "api/request/authorize.h"

#define OWNER HD_S("owner")

/* Writes the object without its member `owner`, and adds `owner` unless it is NULL. */
static int put_owner(struct hd_call *call, hd_json_val object, const struct hd_slice *owner,
                     struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(object);
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, SIZE_MAX);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, OWNER))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    if (owner) {
        hd_jw_key(&jw, OWNER);
        hd_jw_string(&jw, *owner);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, call->arena, out);
}

static int rewrite(struct hd_call *call, const struct hd_slice *owner, struct hd_slice *metadata)
{
    struct hd_json json = {NULL};
    int err = metadata->len > 0 ? hd_json_parse(&json, *metadata, &call->fault) : 0;

    if (!err)
        err = put_owner(call, hd_json_root(&json), owner, metadata);
    hd_json_fini(&json);
    return err;
}

static int has_owner(struct hd_call *call, struct hd_slice metadata, bool *out)
{
    struct hd_json json = {NULL};
    int err = metadata.len > 0 ? hd_json_parse(&json, metadata, &call->fault) : 0;

    *out = hd_json_get(hd_json_root(&json), OWNER) != NULL;
    hd_json_fini(&json);
    return err;
}

/* The project's handler may have set the owner. */
int hd_owner_set(struct hd_call *call, struct hd_slice *metadata)
{
    bool is_set = false;
    int err = hd_call_is_stamped(call) ? has_owner(call, *metadata, &is_set) : 0;

    if (err || is_set || !call->identity)
        return err;
    return rewrite(call, &call->identity->subject, metadata);
}

int hd_owner_merge(struct hd_call *call, hd_json_val more, struct hd_slice *metadata)
{
    struct hd_slice owner = hd_slice(NULL, 0);
    struct hd_json json = {NULL};
    hd_json_val val;
    int err;

    if (!call->identity || !hd_json_get(more, OWNER) || hd_call_is_stamped(call))
        return hd_call_merge(call, more, metadata);
    err = metadata->len > 0 ? hd_json_parse(&json, *metadata, &call->fault) : 0;
    val = hd_json_get(hd_json_root(&json), OWNER);
    if (!err)
        err = hd_arena_copy(call->arena, hd_json_string(val), &owner);
    if (!err)
        err = hd_call_merge(call, more, metadata);
    if (!err)
        err = rewrite(call, val ? &owner : NULL, metadata);
    hd_json_fini(&json);
    return err;
}
