#include "api/room/room_body.h"

#include "room/room.h"
#include "room/room_input.h"

/* Blocks are objects with a type; strings are texts. */
static bool are_content_blocks(hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);

    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val) && !hd_json_is_string(hd_json_get(it.val, HD_S("type"))))
            return false;
    }
    return true;
}

int hd_room_body_content(struct hd_call *call, struct hd_slice *out)
{
    hd_json_val content = hd_body_get(call, "content");
    int err;

    if (!hd_json_is_string(content) && !(hd_json_is_array(content) && are_content_blocks(content)))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "content: expected a string or a list of content blocks");
    err = hd_call_text(call, content, out);
    if (err)
        return err;
    if (out->len > HD_ROOM_MAX_CONTENT)
        return hd_error_set(&call->fault, HD_ELIMIT, "content: more than %zu bytes",
                            HD_ROOM_MAX_CONTENT);
    return hd_room_content_is_said(*out)
               ? 0
               : hd_error_set(&call->fault, HD_EINVAL, "content: it must not be empty");
}

int hd_room_body_metadata(struct hd_call *call, struct hd_slice *out)
{
    hd_json_val metadata = NULL;
    int err = hd_body_object(call, "metadata", &metadata);

    if (!err && metadata)
        err = hd_call_refuse_secrets(call, "metadata", metadata, false);
    return err || !metadata ? err : hd_call_text(call, metadata, out);
}
