#include "api/request/access.h"

#include <string.h>

#include "api/request/authorize.h"
#include "api/request/authorize_value.h"
#include "auth/auth.h"
#include "auth/forwarded.h"
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

int hd_access_check(const struct hd_endpoint *route, struct heddle_error *fault)
{
    static const char threads[] = "/threads/{";

    if (route->access == HD_ACCESS_UNSET)
        return hd_error_set(fault, HD_EINVAL, "%s %s declares no access",
                            hd_method_name(route->method), route->pattern);
    if (route->on == HD_ON_UNSET)
        return hd_error_set(fault, HD_EINVAL, "%s %s declares no custom auth event",
                            hd_method_name(route->method), route->pattern);
    if (hd_access_is_thread(route) && strncmp(route->pattern, threads, strlen(threads)) != 0)
        return hd_error_set(fault, HD_EINVAL, "%s %s requires a thread that is not in its path",
                            hd_method_name(route->method), route->pattern);
    return 0;
}

/* ---- authentication --------------------------------------------------- */

/* Every refusal of authentication. */
static struct hd_step refuse_authentication(struct hd_call *call, int status, const char *text)
{
    if (status == 401)
        hd_call_header(call, HD_S("WWW-Authenticate"), HD_S("Bearer"));
    if (status == 503)
        hd_call_header_int(call, HD_S("Retry-After"), RETRY_S);
    return hd_call_refuse(call, status, "%s", text);
}

static void set_identity(struct hd_call *call, struct hd_identity *identity)
{
    call->identity = hd_identity_ref(identity);
    call->actor = call->principal = call->identity->principal;
    hd_exchange_set_actor(call->exchange, call->actor);
}

/* The client learns only that it was refused; the reason is in the log. */
static struct hd_step use_verdict(struct hd_call *call, const struct hd_auth_result *result)
{
    switch (result->verdict) {
    case HD_AUTH_FINE:
        set_identity(call, result->identity);
        return HD_NEXT;
    case HD_AUTH_MISSING:
        return refuse_authentication(call, 401, "credentials are required");
    case HD_AUTH_REFUSED:
        return refuse_authentication(call, 401, "the credentials are not valid");
    case HD_AUTH_UNAVAILABLE:
        return refuse_authentication(call, 503, "credentials cannot be verified at the moment");
    }
    return hd_step_fail(HD_EACCESS); /* not one of these verdicts */
}

static void on_verdict(void *ctx, const struct hd_auth_result *result)
{
    hd_call_resume(ctx, use_verdict(ctx, result));
}

static struct hd_step check_native(struct hd_call *call, struct hd_slice authorization,
                                   struct hd_slice api_key)
{
    struct hd_auth_result result;
    struct hd_step step;
    int err = hd_auth_service_check(call->app->auth_service, authorization, api_key, on_verdict,
                                    call, &result);

    if (err != HD_READY)
        return err ? hd_step_fail(err) : HD_WAIT;
    step = use_verdict(call, &result);
    hd_identity_unref(result.identity);
    return step;
}

/* The project's authenticate handler has replied. */
static struct hd_step use_outcome(struct hd_call *call, const struct hd_auth_outcome *outcome)
{
    if (!outcome->identity)
        return hd_authorize_refuse(call, outcome->refusal);
    set_identity(call, outcome->identity);
    return HD_NEXT;
}

static void on_outcome(void *ctx, const struct hd_auth_outcome *outcome)
{
    hd_call_resume(ctx, use_outcome(ctx, outcome));
}

static struct hd_step check_custom(struct hd_call *call)
{
    struct hd_auth_outcome outcome = {0};
    struct hd_slice params;
    struct hd_step step;
    int err = hd_authorize_params(call, &params);

    if (!err)
        err = hd_auth_worker_authenticate(hd_auth_service_worker(call->app->auth_service),
                                          hd_exchange_request(call->exchange), params, on_outcome,
                                          call, &outcome);
    if (err != HD_READY)
        return err ? hd_step_fail(err) : HD_WAIT;
    step = use_outcome(call, &outcome);
    hd_identity_unref(outcome.identity);
    return step;
}

static struct hd_step check_credentials(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_slice authorization = hd_request_value(request, HD_S("authorization"));
    struct hd_slice api_key = hd_request_value(request, HD_S("x-api-key"));

    if (hd_auth_is_native(hd_auth_service_auth(call->app->auth_service), authorization, api_key))
        return check_native(call, authorization, api_key);
    return check_custom(call);
}

/* Another server has verified the credentials and found the thread of the path. */
static struct hd_step use_forwarded(struct hd_call *call)
{
    const struct hd_forwarded *forwarded = call->forwarded;

    if (forwarded->identity)
        set_identity(call, forwarded->identity);
    call->by = hd_identity_ref(forwarded->by);
    call->principal = forwarded->principal;
    call->role = forwarded->role;
    return HD_NEXT;
}

/*
 * A request of a worker's code has a pass and acts for the caller of the run. When the pass names
 * no caller, the request's own credentials are checked.
 */
struct hd_step hd_access_authenticate(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    const struct hd_worker_access *pass;
    struct hd_slice token;

    if (call->forwarded)
        return use_forwarded(call);
    if (!call->app->auth_service)
        return HD_NEXT;
    if (!hd_request_header(request, HD_WORKER_ACCESS_HEADER, &token))
        return check_credentials(call);
    pass = hd_worker_access_find(call->app, token);
    if (!pass)
        return refuse_authentication(call, 401, "the credentials are not valid");
    if (!hd_worker_access_identity(pass))
        return check_credentials(call);
    set_identity(call, hd_worker_access_identity(pass));
    return HD_NEXT;
}

/* ---- acting for another user ------------------------------------------ */

/* The user for whom an administrator acts; in the arena, call->state until HD_STAGE_ENTER. */
struct represented_user {
    struct hd_slice alias, subject;
    char principal[HD_PRINCIPAL_SIZE];
};

static bool access_is_name(struct hd_slice s, size_t most)
{
    return s.len > 0 && s.len <= most && hd_utf8_is_valid(s);
}

bool hd_access_names_user(const struct hd_call *call)
{
    struct hd_slice target;

    return call->route->access != HD_ACCESS_PUBLIC && !call->forwarded &&
           hd_request_header(hd_exchange_request(call->exchange), ACT_FOR, &target);
}

/* Administrators may act for ALIAS/SUBJECT, with the permissions of that user and no more. */
struct hd_step hd_access_act_for(struct hd_call *call)
{
    struct hd_slice target = hd_request_value(hd_exchange_request(call->exchange), ACT_FOR);
    const char *slash = target.len > 0 ? memchr(target.ptr, '/', target.len) : NULL;
    struct represented_user *user;

    if (!call->identity || !call->identity->is_admin)
        return refuse_authentication(call, 403, "only administrators may act for others");
    user = hd_arena_calloc(call->arena, 1, sizeof(*user));
    if (!user)
        return hd_step_fail(HD_ENOMEM);
    if (slash) {
        user->alias = hd_slice(target.ptr, (size_t)(slash - target.ptr));
        user->subject = hd_slice(slash + 1, target.len - user->alias.len - 1);
    }
    if (!access_is_name(user->alias, HD_MAX_ALIAS) ||
        !access_is_name(user->subject, HD_MAX_SUBJECT))
        return refuse_authentication(call, 422, "Heddle-Act-For must be ALIAS/SUBJECT");
    call->by = call->identity;
    call->identity = NULL;
    call->state = user;
    return HD_NEXT;
}

bool hd_access_acts_for(const struct hd_call *call)
{
    return call->by && !call->forwarded;
}

struct hd_step hd_access_find_user(struct hd_call *call)
{
    struct represented_user *user = call->state;
    struct hd_slice alias = user->alias, subject = user->subject;
    int err;

    hd_auth_service_compartment(call->app->auth_service, &alias, &subject);
    err = hd_principal_settle(call->app->store, hd_auth_service_auth(call->app->auth_service),
                              HD_PRINCIPAL_PERSON, alias, subject, user->principal, &call->fault);
    if (err == HD_EBUSY)
        return refuse_authentication(call, 503, "the user's compartment is being moved");
    return hd_step_next(err);
}

/*
 * The identity of a user on whose behalf an administrator acts. It has no organisations, since only
 * the user's own token names them. Streams end with the administrator's credentials.
 */
static struct hd_identity *make_identity(const struct represented_user *user,
                                         const struct hd_identity *by)
{
    struct hd_identity *identity = hd_identity_new();
    struct hd_arena *arena = identity ? &identity->arena : NULL;

    if (!identity)
        return NULL;
    if (hd_arena_copy(arena, hd_slice_cstr(user->principal), &identity->principal) ||
        hd_arena_copy(arena, user->alias, &identity->issuer) ||
        hd_arena_copy(arena, user->subject, &identity->subject) ||
        hd_arena_copy(arena, by->key_id, &identity->key_id)) {
        hd_identity_unref(identity);
        return NULL;
    }
    identity->expires_at = by->expires_at;
    return identity;
}

static int represent(struct hd_call *call)
{
    struct hd_identity *identity = make_identity(call->state, call->by);

    call->state = NULL;
    if (!identity)
        return HD_ENOMEM;
    set_identity(call, identity);
    hd_identity_unref(identity);
    return 0;
}

/* ---- limits ----------------------------------------------------------- */

static bool is_stream(const struct hd_endpoint *route)
{
    return route->answer && strstr(route->answer, "text/event-stream");
}

static struct hd_step count_request(struct hd_call *call)
{
    struct hd_limits *limits = call->app->limits;
    enum hd_limit limit = HD_LIMIT_REQUESTS;
    int retry = hd_limits_request(limits, call->actor);

    if (retry == 0 && is_stream(call->route)) {
        limit = HD_LIMIT_STREAMS;
        retry = hd_limits_take(limits, call->actor, limit);
        call->has_stream = retry == 0;
    }
    return retry == 0 ? HD_NEXT : hd_call_refuse_limit(call, limit, retry);
}

struct hd_step hd_access_enter(struct hd_call *call)
{
    int err = hd_access_acts_for(call) ? represent(call) : 0;

    if (err)
        return hd_step_fail(err);
    if (call->route->access == HD_ACCESS_ADMIN && call->identity && !call->identity->is_admin)
        return refuse_authentication(call, 403, "only administrators may do this");
    /* The server that the client has reached counts it. */
    return call->forwarded ? HD_NEXT : count_request(call);
}

void hd_access_leave(struct hd_call *call)
{
    if (call->has_stream)
        hd_limits_give(call->app->limits, call->actor, HD_LIMIT_STREAMS);
    call->has_stream = false;
    if (call->route && call->route->frees)
        hd_limits_freed(call->app->limits, call->principal);
    hd_identity_unref(call->identity);
    hd_identity_unref(call->by);
    call->identity = call->by = NULL;
}

/* ---- the thread of a request ------------------------------------------ */

static bool owns_thread(struct hd_call *call, struct hd_slice thread_id, int *err)
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
        call->fault = (struct heddle_error){0};
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
    if (!call->identity)
        return 0;
    err = hd_participation_find(call->app->store, call->actor, call->identity->organisations,
                                call->identity->organisation_count, thread_id, call->arena, &owner,
                                &found, &call->fault);
    if (!err && !owns_thread(call, thread_id, &err) && err == HD_ENOTFOUND) {
        *principal = owner;
        *role = found;
    }
    if (err && err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return hide_unseen(call, thread_id, principal);
}

struct hd_step hd_access_refuse(struct hd_call *call, enum hd_role least)
{
    return hd_call_refuse(call, 403, "%s",
                          least == HD_ROLE_OWNER ? "only the owner of the thread may do this"
                                                 : "viewers of a thread may not change it");
}

static struct hd_step compare_roles(struct hd_call *call, enum hd_role role, enum hd_role least)
{
    return role >= least ? HD_NEXT : hd_access_refuse(call, least);
}

struct hd_step hd_access_need(struct hd_call *call, struct hd_slice thread_id, enum hd_role least,
                              struct hd_slice *principal)
{
    enum hd_role role;
    int err = hd_access_find(call, thread_id, principal, &role);

    return err ? hd_step_fail(err) : compare_roles(call, role, least);
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

struct hd_step hd_access_path(struct hd_call *call)
{
    char id[HD_UUID_SIZE];
    uint8_t bytes[16];
    int err;

    if (!call->identity || !hd_access_is_thread(call->route))
        return HD_NEXT;
    if (!hd_uuid_parse(call->params[0], bytes)) /* refused by the route */
        return HD_NEXT;
    hd_uuid_format(bytes, id);
    err = hd_access_find(call, hd_slice(id, HD_UUID_LEN), &call->principal, &call->role);
    return err ? hd_step_fail(err) : compare_roles(call, call->role, needed(call->route));
}

struct hd_step hd_access_storage(struct hd_call *call)
{
    int retry = 0;
    int err;

    if (!call->route->grows)
        return HD_NEXT;
    err =
        hd_limits_room(call->app->limits, call->app->store, call->principal, &retry, &call->fault);
    if (!err && retry > 0)
        return hd_call_refuse_limit(call, HD_LIMIT_BYTES, retry);
    return hd_step_next(err);
}
