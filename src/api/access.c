#include "api/access.h"

#include <string.h>

#include "api/authorize.h"
#include "api/authorize_value.h"
#include "auth/auth.h"
#include "auth/issuer.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "gate/auth_service.h"
#include "gate/auth_worker.h"
#include "gate/limits.h"
#include "gate/worker_access.h"
#include "records/participants.h"
#include "records/principals.h"
#include "records/record.h"

#define ACT_FOR HD_S("heddle-act-for")
#define RETRY_S 5 /* Retry-After while keys are unavailable */

bool hd_access_is_thread(const struct hd_endpoint *route)
{
    return route->access == HD_ACCESS_VIEWER || route->access == HD_ACCESS_EDITOR ||
           route->access == HD_ACCESS_OWNER;
}

int hd_access_check(const struct hd_endpoint *route, struct hd_fault *fault)
{
    static const char threads[] = "/threads/{";

    if (route->access == HD_ACCESS_UNSET)
        return hd_fault_set(fault, HD_EINVAL, "%s %s declares no access",
                            hd_method_name(route->method), route->pattern);
    if (route->on == HD_ON_UNSET)
        return hd_fault_set(fault, HD_EINVAL, "%s %s declares no custom auth event",
                            hd_method_name(route->method), route->pattern);
    if (hd_access_is_thread(route) && strncmp(route->pattern, threads, strlen(threads)) != 0)
        return hd_fault_set(fault, HD_EINVAL, "%s %s requires a thread that is not in its path",
                            hd_method_name(route->method), route->pattern);
    return 0;
}

/* ---- authentication */

/* A request during authentication; in the arena of its call. */
struct access_entry {
    struct hd_call *call;
    void (*next)(struct hd_call *call);
    struct hd_slice alias, subject; /* the user for whom an administrator acts */
    char principal[HD_PRINCIPAL_SIZE];
};

/* Sends every refusal of authentication. */
static void turn_away(struct hd_call *call, int status, const char *text)
{
    if (status == 401)
        hd_call_header(call, HD_S("WWW-Authenticate"), HD_S("Bearer"));
    if (status == 503)
        hd_call_header_int(call, HD_S("Retry-After"), RETRY_S);
    hd_call_refuse(call, status, "%s", text);
    hd_call_answer(call);
}

static bool is_stream(const struct hd_endpoint *route)
{
    return route->answer && strstr(route->answer, "text/event-stream");
}

/* True when the actor is over a limit; the refusal is then sent. */
static bool is_limited(struct hd_call *call)
{
    struct hd_limits *limits = call->app->limits;
    enum hd_limit limit = HD_LIMIT_REQUESTS;
    int retry = hd_limits_request(limits, call->actor);

    if (retry == 0 && is_stream(call->route)) {
        limit = HD_LIMIT_STREAMS;
        retry = hd_limits_take(limits, call->actor, limit);
        call->has_stream = retry == 0;
    }
    if (retry == 0)
        return false;
    hd_call_refuse_limit(call, limit, retry);
    hd_call_answer(call);
    return true;
}

/* Every authenticated request passes here, once its identity is final. */
static void let_in(struct access_entry *entry)
{
    struct hd_call *call = entry->call;

    if (call->route->access == HD_ACCESS_ADMIN && call->who && !call->who->is_admin)
        turn_away(call, 403, "only administrators may do this");
    else if (!is_limited(call))
        entry->next(call);
}

static void become(struct hd_call *call, struct hd_identity *identity)
{
    call->who = hd_identity_ref(identity);
    call->actor = call->principal = call->who->principal;
    call->role = HD_ROLE_OWNER;
    hd_exchange_set_actor(call->exchange, call->actor);
}

/* ---- acting for another user */

/*
 * The identity of a user on whose behalf an administrator acts. It has no organisations, since only
 * the user's own token names them. Streams end with the administrator's credentials.
 */
static struct hd_identity *make_identity(const struct access_entry *entry)
{
    struct hd_identity *identity = hd_identity_new();
    struct hd_arena *arena = identity ? &identity->arena : NULL;

    if (!identity)
        return NULL;
    if (hd_arena_copy(arena, hd_slice_cstr(entry->principal), &identity->principal) ||
        hd_arena_copy(arena, entry->alias, &identity->issuer) ||
        hd_arena_copy(arena, entry->subject, &identity->subject) ||
        hd_arena_copy(arena, entry->call->by->key_id, &identity->key_id)) {
        hd_identity_unref(identity);
        return NULL;
    }
    identity->expires_at = entry->call->by->expires_at;
    return identity;
}

static int access_settle(struct hd_call *call)
{
    struct access_entry *entry = call->state;
    struct hd_slice alias = entry->alias, subject = entry->subject;

    hd_auth_service_compartment(call->app->gate, &alias, &subject);
    return hd_principal_settle(call->app->store, hd_auth_service_auth(call->app->gate),
                               HD_PRINCIPAL_PERSON, alias, subject, entry->principal, &call->fault);
}

static void on_access_settled(struct hd_call *call, int err)
{
    struct access_entry *entry = call->state;
    struct hd_identity *identity = err ? NULL : make_identity(entry);

    call->state = NULL;
    if (!err && !identity)
        err = HD_ENOMEM;
    if (err == HD_EBUSY) {
        turn_away(call, 503, "the user's compartment is being moved");
    } else if (err) {
        hd_call_fail(call, err);
    } else {
        become(call, identity);
        hd_identity_unref(identity);
        let_in(entry);
    }
}

static bool access_is_name(struct hd_slice s, size_t most)
{
    return s.len > 0 && s.len <= most && hd_utf8_is_valid(s);
}

/* Administrators may act for ALIAS/SUBJECT, with the permissions of that user and no more. */
static void act_for(struct access_entry *entry, struct hd_slice whom)
{
    struct hd_call *call = entry->call;
    const char *slash = whom.len > 0 ? memchr(whom.ptr, '/', whom.len) : NULL;
    int err;

    if (!call->who || !call->who->is_admin) {
        turn_away(call, 403, "only administrators may act for others");
        return;
    }
    if (slash) {
        entry->alias = hd_slice(whom.ptr, (size_t)(slash - whom.ptr));
        entry->subject = hd_slice(slash + 1, whom.len - entry->alias.len - 1);
    }
    if (!access_is_name(entry->alias, HD_MAX_ALIAS) ||
        !access_is_name(entry->subject, HD_MAX_SUBJECT)) {
        turn_away(call, 422, "Heddle-Act-For must be ALIAS/SUBJECT");
        return;
    }
    call->by = call->who;
    call->who = NULL;
    call->state = entry;
    err = hd_call_defer(call, access_settle, on_access_settled);
    if (err)
        hd_call_fail(call, err);
}

/* ---- credentials ------------------------------------------------------ */

static void identify(struct access_entry *entry)
{
    const struct hd_http_request *request = hd_exchange_request(entry->call->exchange);
    struct hd_slice whom;

    if (hd_request_header(request, ACT_FOR, &whom))
        act_for(entry, whom);
    else
        let_in(entry);
}

/* The client learns only that it was refused; the reason is in the log. */
static void on_verdict(void *ctx, enum hd_auth_verdict verdict, struct hd_identity *identity,
                       const char *reason)
{
    struct access_entry *entry = ctx;

    (void)reason;
    switch (verdict) {
    case HD_AUTH_FINE:
        become(entry->call, identity);
        identify(entry);
        return;
    case HD_AUTH_MISSING:
        turn_away(entry->call, 401, "credentials are needed");
        return;
    case HD_AUTH_REFUSED:
        turn_away(entry->call, 401, "the credentials are not valid");
        return;
    case HD_AUTH_UNAVAILABLE:
        turn_away(entry->call, 503, "credentials cannot be verified at the moment");
        return;
    }
}

/* The project's authenticate handler has replied. */
static void on_told(void *ctx, struct hd_identity *identity, const struct hd_auth_refusal *refusal)
{
    struct access_entry *entry = ctx;

    if (!identity) {
        hd_authorize_refuse(entry->call, refusal);
        return;
    }
    become(entry->call, identity);
    identify(entry);
}

/*
 * A request of a worker's code has a pass and acts for the caller of the run. False: the pass names
 * no caller, so the request's own credentials are checked.
 */
static bool check_pass(struct access_entry *entry, struct hd_slice token)
{
    const struct hd_worker_access *pass = hd_worker_access_find(entry->call->app, token);

    if (pass && !hd_worker_access_identity(pass))
        return false;
    if (pass) {
        become(entry->call, hd_worker_access_identity(pass));
        identify(entry);
    } else {
        turn_away(entry->call, 401, "the credentials are not valid");
    }
    return true;
}

static int access_check(struct access_entry *entry)
{
    struct hd_call *call = entry->call;
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_slice authorization = hd_request_value(request, HD_S("authorization"));
    struct hd_slice api_key = hd_request_value(request, HD_S("x-api-key"));
    struct hd_slice params;
    int err;

    if (hd_auth_is_native(hd_auth_service_auth(call->app->gate), authorization, api_key))
        return hd_auth_service_check(call->app->gate, authorization, api_key, on_verdict, entry);
    err = hd_authorize_params(call, &params);
    if (err)
        return err;
    return hd_auth_worker_authenticate(hd_auth_service_worker(call->app->gate), request, params,
                                       on_told, entry);
}

void hd_access_enter(struct hd_call *call, void (*next)(struct hd_call *call))
{
    struct access_entry *entry = hd_arena_alloc(call->arena, sizeof(*entry));
    struct hd_slice token;
    int err;

    if (!entry) {
        hd_call_fail(call, HD_ENOMEM);
        return;
    }
    *entry = (struct access_entry){.call = call, .next = next};
    call->role = HD_ROLE_OWNER;
    if (call->route->access == HD_ACCESS_PUBLIC) {
        next(call);
        return;
    }
    if (!call->app->gate) {
        identify(entry);
        return;
    }
    if (hd_request_header(hd_exchange_request(call->exchange), HD_WORKER_ACCESS_HEADER, &token) &&
        check_pass(entry, token))
        return;
    err = access_check(entry);
    if (err)
        hd_call_fail(call, err);
}

void hd_access_leave(struct hd_call *call)
{
    if (call->has_stream)
        hd_limits_give(call->app->limits, call->actor, HD_LIMIT_STREAMS);
    call->has_stream = false;
    if (call->route && call->route->frees)
        hd_limits_freed(call->app->limits, call->principal);
    hd_identity_unref(call->who);
    hd_identity_unref(call->by);
    call->who = call->by = NULL;
}

/* ---- the thread of a request ------------------------------------------ */

static bool has_own(struct hd_call *call, struct hd_slice thread_id, int *err)
{
    struct hd_thread_rec own;

    *err =
        hd_thread_read(call->app->store, call->actor, thread_id, call->arena, &own, &call->fault);
    return *err == 0;
}

/*
 * A thread that the filter hides is looked up in a compartment that is always empty, so the route
 * behaves exactly as for a thread that does not exist.
 */
static int hide_unseen(struct hd_call *call, struct hd_slice thread_id, struct hd_slice *principal)
{
    struct hd_thread_rec thread;
    bool is_seen;
    int err;

    if (!hd_call_is_filtered(call, HD_OF_THREADS))
        return 0;
    err =
        hd_thread_read(call->app->store, *principal, thread_id, call->arena, &thread, &call->fault);
    if (err == HD_ENOTFOUND) {
        call->fault = (struct hd_fault){0};
        return 0;
    }
    if (!err)
        err = hd_call_sees(call, HD_OF_THREADS, thread.metadata, &is_seen);
    if (!err && !is_seen)
        *principal = HD_S("-");
    return err;
}

/*
 * Unauthorized and nonexistent threads are indistinguishable: both cost one read of participants
 * that finds none, and then the route's reads in the caller's own compartment.
 */
int hd_access_find(struct hd_call *call, struct hd_slice thread_id, struct hd_slice *principal,
                   enum hd_role *role)
{
    enum hd_role found = HD_ROLE_NONE;
    struct hd_slice owner = hd_slice(NULL, 0);
    int err;

    *principal = call->actor;
    *role = HD_ROLE_OWNER;
    if (!call->who)
        return 0;
    err = hd_participation_find(call->app->store, call->actor, call->who->organisations,
                                call->who->organisation_count, thread_id, call->arena, &owner,
                                &found, &call->fault);
    if (!err && !has_own(call, thread_id, &err) && err == HD_ENOTFOUND) {
        *principal = owner;
        *role = found;
    }
    if (err && err != HD_ENOTFOUND)
        return err;
    call->fault = (struct hd_fault){0};
    return hide_unseen(call, thread_id, principal);
}

int hd_access_refuse(struct hd_call *call, enum hd_role least)
{
    return hd_call_refuse(call, 403, "%s",
                          least == HD_ROLE_OWNER ? "only the owner of the thread may do this"
                                                 : "viewers of a thread may not change it");
}

/* 0, or positive: the call was refused. */
static int compare_roles(struct hd_call *call, enum hd_role role, enum hd_role least)
{
    if (role >= least)
        return 0;
    hd_access_refuse(call, least);
    return 1;
}

int hd_access_need(struct hd_call *call, struct hd_slice thread_id, enum hd_role least,
                   struct hd_slice *principal)
{
    enum hd_role role;
    int err = hd_access_find(call, thread_id, principal, &role);

    if (err)
        return err;
    return compare_roles(call, role, least);
}

static enum hd_role needed(const struct hd_endpoint *route)
{
    switch (route->access) {
    case HD_ACCESS_EDITOR:
        return HD_ROLE_EDITOR;
    case HD_ACCESS_OWNER:
        return HD_ROLE_OWNER;
    default:
        return HD_ROLE_VIEWER;
    }
}

int hd_access_path(struct hd_call *call)
{
    char id[HD_UUID_SIZE];
    uint8_t bytes[16];
    int err;

    if (!call->who || !hd_access_is_thread(call->route))
        return 0;
    if (!hd_uuid_parse(call->params[0], bytes)) /* refused by the route */
        return 0;
    hd_uuid_format(bytes, id);
    err = hd_access_find(call, hd_slice(id, HD_UUID_LEN), &call->principal, &call->role);
    if (err)
        return err;
    return compare_roles(call, call->role, needed(call->route));
}

int hd_access_room(struct hd_call *call)
{
    int retry = 0;
    int err;

    if (!call->route->grows)
        return 0;
    err =
        hd_limits_room(call->app->limits, call->app->store, call->principal, &retry, &call->fault);
    if (!err && retry > 0) {
        hd_call_refuse_limit(call, HD_LIMIT_BYTES, retry);
        return 1;
    }
    return err;
}
