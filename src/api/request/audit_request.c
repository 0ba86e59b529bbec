#include "api/request/audit_request.h"

#include <stdio.h>
#include <string.h>

#include "api/request/access.h"
#include "base/uuid.h"
#include "gate/audit.h"

/* A refused path parameter that is not an id may be any text, so it is not recorded. */
static bool audit_is_known(const struct hd_call *call, struct hd_slice id)
{
    uint8_t bytes[16];

    return call->status < 400 || hd_uuid_parse(id, bytes);
}

/* The parameters of a pattern, with their values in the path. */
static size_t list_objects(const struct hd_call *call,
                           struct hd_audit_object objects[HD_ROUTER_MAX_PARAMS])
{
    const char *at = call->route->pattern;
    size_t count = 0;

    while (count < HD_ROUTER_MAX_PARAMS && (at = strchr(at, '{'))) {
        const char *end = strchr(at, '}');

        objects[count].kind = hd_slice(at + 1, (size_t)(end - at - 1));
        objects[count].id =
            audit_is_known(call, call->params[count]) ? call->params[count] : HD_S("?");
        count++;
        at = end;
    }
    return count;
}

static const char *role_of(const struct hd_call *call)
{
    static const char *const names[] = {NULL, "viewer", "editor", NULL};

    return hd_access_is_thread(call->route) ? names[call->role] : NULL;
}

void hd_call_audit(struct hd_call *call)
{
    struct hd_audit_object objects[HD_ROUTER_MAX_PARAMS];
    struct hd_audit_entry entry = {.identity = call->by ? call->by : call->identity,
                                   .objects = objects,
                                   .status = call->status,
                                   .request_id = hd_exchange_id(call->exchange),
                                   .peer = hd_exchange_peer(call->exchange)};
    char action[256];

    if (!call->app->audit || !call->route || call->route->access == HD_ACCESS_PUBLIC ||
        call->is_audited)
        return;
    call->is_audited = true;
    (void)snprintf(action, sizeof(action), "%s %s", hd_method_name(call->route->method),
                   call->route->pattern);
    entry.action = hd_slice_cstr(action);
    entry.object_count = list_objects(call, objects);
    entry.role = role_of(call);
    if (call->by)
        entry.act_for = call->actor;
    if (!hd_slice_eq(call->principal, call->actor))
        entry.owner = call->principal;
    hd_audit_note(call->app->audit, &entry);
}
