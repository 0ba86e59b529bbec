#include "run/user.h"

struct hd_val *hd_user_drop(struct hd_val *configurable)
{
    struct hd_val *kept = configurable ? hd_val_object() : NULL;

    for (size_t i = 0; kept && i < hd_val_count(configurable); i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(configurable, i, &key);

        if (!hd_slice_starts(hd_val_get_string(key), HD_S("langgraph_auth")))
            kept = hd_val_with(kept, hd_val_get_string(key), hd_val_ref(val));
    }
    hd_val_unref(configurable);
    return kept;
}

struct hd_val *hd_user_add(struct hd_val *configurable, struct hd_slice subject, bool is_admin)
{
    struct hd_val *user = hd_val_object(), *permissions = hd_val_list();

    if (is_admin)
        permissions = hd_val_append(permissions, hd_val_cstr("admin"));
    user = hd_val_with(user, HD_S("identity"), hd_val_string(subject));
    user = hd_val_with(user, HD_S("is_authenticated"), hd_val_bool(true));
    user = hd_val_with(user, HD_S("display_name"), hd_val_string(subject));
    user = hd_val_with(user, HD_S("permissions"), hd_val_ref(permissions));
    configurable = hd_val_with(configurable, HD_S("langgraph_auth_user"), user);
    configurable = hd_val_with(configurable, HD_S("langgraph_auth_permissions"), permissions);
    return hd_val_with(configurable, HD_S("langgraph_auth_user_id"), hd_val_string(subject));
}
