#include "records/run_user.h"

#define USER_ID HD_S("langgraph_auth_user_id")
#define PERMISSIONS HD_S("langgraph_auth_permissions")

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
    if (is_admin)
        configurable = hd_val_with(configurable, PERMISSIONS,
                                   hd_val_append(hd_val_list(), hd_val_cstr("admin")));
    return hd_val_with(configurable, USER_ID, hd_val_string(subject));
}

struct hd_val *hd_user_add_known(struct hd_val *configurable, struct hd_val *known)
{
    struct hd_val *user = known ? hd_val_get(known, HD_USER) : NULL;
    struct hd_val *permissions = user ? hd_val_get(user, HD_S("permissions")) : NULL;

    if (permissions)
        configurable = hd_val_with(configurable, PERMISSIONS, hd_val_ref(permissions));
    configurable = hd_val_with(configurable, HD_USER, hd_val_ref(user));
    hd_val_unref(known);
    return configurable;
}

struct hd_val *hd_user_show(struct hd_val *configurable)
{
    struct hd_val *id = hd_val_get(configurable, USER_ID);
    struct hd_val *permissions;
    struct hd_val *user;

    if (!id)
        return configurable;
    id = hd_val_ref(id);
    if (!hd_val_get(configurable, HD_S("user_id")))
        configurable = hd_val_with(configurable, HD_S("user_id"), hd_val_ref(id));
    if (hd_val_get(configurable, HD_USER)) {
        hd_val_unref(id);
        return configurable;
    }
    permissions = hd_val_get(configurable, PERMISSIONS);
    user = hd_val_object();
    permissions = permissions ? hd_val_ref(permissions) : hd_val_list();
    user = hd_val_with(user, HD_S("identity"), hd_val_ref(id));
    user = hd_val_with(user, HD_S("is_authenticated"), hd_val_bool(true));
    user = hd_val_with(user, HD_S("display_name"), hd_val_ref(id));
    user = hd_val_with(user, HD_S("permissions"), hd_val_ref(permissions));
    hd_val_unref(id);
    configurable = hd_val_with(configurable, PERMISSIONS, permissions);
    return hd_val_with(configurable, HD_USER, user);
}

void hd_user_put(struct hd_jw *jw, const struct hd_identity *who)
{
    if (who->user.len > 0) {
        hd_jw_raw(jw, who->user);
        return;
    }
    hd_jw_object(jw);
    hd_jw_put_string(jw, "identity", who->subject);
    hd_jw_put_bool(jw, "is_authenticated", true);
    hd_jw_put_string(jw, "display_name", who->subject);
    hd_jw_put_raw(jw, "permissions", who->is_admin ? HD_S("[\"admin\"]") : HD_S("[]"));
    hd_jw_object_end(jw);
}
