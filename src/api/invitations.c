/*
 * Invitations to a thread: a token that any holder may accept, with a limited number of uses and
 * lifetime. Only the response that creates it has the token; the store has its hash. Invalid, used
 * up and expired tokens are indistinguishable.
 */
#include <stdio.h>

#include "api/participants.h"
#include "api/state/checkpoint_target.h"
#include "base/clock.h"
#include "run/run_commit.h"
#include "store/rows.h"

#define SECOND 1000000
#define DEFAULT_LIFE (7 * 24 * 3600) /* seconds */
#define MAX_LIFE (365 * 24 * 3600)
#define MAX_USES HD_MAX_PARTICIPANTS
#define MAX_TOKEN 256

/* ---- views ------------------------------------------------------------ */

static void put_invitation_members(struct hd_jw *jw, const struct hd_invitation_rec *invitation)
{
    hd_jw_put_string(jw, "invitation_id", invitation->id);
    hd_jw_put_string(jw, "role", hd_slice_cstr(hd_role_name(invitation->role)));
    hd_jw_put_int(jw, "uses", invitation->uses);
    hd_jw_put_int(jw, "uses_left", invitation->left);
    hd_jw_put_timestamp(jw, "created_at", invitation->created_at);
    hd_jw_put_timestamp(jw, "expires_at", invitation->expires_at);
}

struct invitation_listing {
    struct hd_jw *jw;
    int64_t now;
};

static bool is_over(const struct hd_invitation_rec *invitation, int64_t now)
{
    return invitation->expires_at && invitation->expires_at <= now;
}

static int invitation_show(void *arg, const struct hd_invitation_rec *invitation)
{
    const struct invitation_listing *listing = arg;

    if (is_over(invitation, listing->now))
        return 0;
    hd_jw_object(listing->jw);
    put_invitation_members(listing->jw, invitation);
    hd_jw_object_end(listing->jw);
    return listing->jw->err;
}

static struct hd_step list_invitations(struct hd_call *call)
{
    struct invitation_listing listing = {.jw = &call->jw, .now = hd_clock_now_us()};
    struct hd_thread_rec thread;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = hd_call_thread(call, &thread);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    err = hd_invitations_scan(call->app->store, call->principal, thread.id, invitation_show,
                              &listing, &call->fault);
    hd_jw_array_end(&call->jw);
    return hd_step_done(err);
}

/* ---- creating --------------------------------------------------------- */

static int count(void *arg, const struct hd_invitation_rec *invitation)
{
    size_t *number = arg;

    (void)invitation;
    ++*number;
    return 0;
}

/* Expired invitations count until the sweep removes them. */
static struct hd_step check_count(struct hd_call *call, struct hd_slice thread_id)
{
    size_t number = 0;
    int err = hd_invitations_scan(call->app->store, call->principal, thread_id, count, &number,
                                  &call->fault);

    if (err || number < HD_MAX_INVITATIONS)
        return hd_step_next(err);
    return hd_call_refuse(call, 409, "a thread has at most %d invitations", HD_MAX_INVITATIONS);
}

static int read_invitation(struct hd_call *call, struct hd_invitation_rec *out)
{
    int64_t life = DEFAULT_LIFE;
    int err;

    *out = (struct hd_invitation_rec){.role = HD_ROLE_VIEWER, .uses = 1};
    err = hd_api_participants_role(call, false, &out->role);
    if (!err)
        err = hd_body_int(call, "expires_in", 1, MAX_LIFE, &life);
    if (!err)
        err = hd_body_int(call, "uses", 1, MAX_USES, &out->uses);
    out->left = out->uses;
    out->created_at = hd_clock_now_us();
    out->expires_at = out->created_at + life * SECOND;
    return err;
}

/* Accepting needs no page of the server; the link names the request to send. */
static void answer_made(struct hd_call *call, const struct hd_invitation_rec *invitation,
                        const char *token)
{
    char link[sizeof("/invitations/accept#token=") + HD_INVITATION_TOKEN_LEN];

    snprintf(link, sizeof(link), "/invitations/accept#token=%s", token);
    hd_call_header(call, HD_S("Cache-Control"), HD_S("no-store"));
    hd_jw_object(&call->jw);
    put_invitation_members(&call->jw, invitation);
    hd_jw_put_string(&call->jw, "token", hd_slice_cstr(token));
    hd_jw_put_string(&call->jw, "link", hd_slice_cstr(link));
    hd_jw_object_end(&call->jw);
}

static int store_invitation(struct hd_call *call, const struct hd_thread_rec *thread,
                            struct hd_invitation_rec *invitation)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_invitation_add(&batch, thread, invitation);
    if (err) {
        hd_batch_fini(&batch);
        return err;
    }
    err = hd_api_participants_apply(call, call->principal, thread->id, &batch);
    if (err == HD_ECONFLICT) /* the thread was deleted meanwhile */
        return hd_error_set(&call->fault, HD_ENOTFOUND, "Thread with ID %.*s not found",
                            (int)thread->id.len, thread->id.ptr);
    return err;
}

static struct hd_step create_invitation(struct hd_call *call)
{
    char token[HD_INVITATION_TOKEN_SIZE], id[HD_INVITATION_ID_SIZE];
    struct hd_invitation_rec invitation;
    struct hd_thread_rec thread = {.rev = 0};
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = read_invitation(call, &invitation);
    if (!err)
        err = hd_call_thread(call, &thread);
    step = err ? hd_step_fail(err) : check_count(call, thread.id);
    if (!hd_step_is_next(step))
        return step;
    err = hd_invitation_token(token);
    if (!err)
        err = hd_invitation_id(hd_slice(token, HD_INVITATION_TOKEN_LEN), id);
    invitation.id = hd_slice(id, HD_INVITATION_ID_LEN);
    if (!err)
        err = store_invitation(call, &thread, &invitation);
    if (!err)
        answer_made(call, &invitation, token);
    return hd_step_done(err);
}

/* ---- revoking --------------------------------------------------------- */

static struct hd_step delete_invitation(struct hd_call *call)
{
    struct hd_invitation_rec invitation;
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = hd_call_thread(call, &thread);
    if (err)
        return hd_step_fail(err);
    err = hd_invitation_read(call->app->store, call->params[1], 0, call->arena, &invitation,
                             &call->fault);
    /* An invitation of another thread is not found. */
    if (err == HD_ENOTFOUND || (!err && (!hd_slice_eq(invitation.owner, call->principal) ||
                                         !hd_slice_eq(invitation.thread_id, thread.id))))
        return hd_call_refuse(call, 404, "Invitation not found");
    if (err)
        return hd_step_fail(err);
    hd_batch_init(&batch);
    err = hd_invitation_delete(&batch, invitation.id);
    if (err) {
        hd_batch_fini(&batch);
        return hd_step_fail(err);
    }
    err = hd_api_participants_apply(call, call->principal, thread.id, &batch);
    call->status = 204;
    return hd_step_done(err);
}

/* ---- accepting -------------------------------------------------------- */

/* The accepting user and the invitation; filled again for each retry. */
struct acceptance {
    char id[HD_INVITATION_ID_SIZE];
    struct hd_invitation_rec invitation;
    struct hd_thread_rec thread;
    struct hd_participant_rec before; /* the actor's participation before */
    bool was_there;
    struct hd_call *call;
    struct hd_step step; /* the result: HD_NEXT, or a refusal */
    enum hd_role role;   /* … and the role */
};

static struct hd_step read_acceptance(struct hd_call *call, struct acceptance *a)
{
    struct heddle *store = call->app->store;
    int64_t now = hd_clock_now_us();
    int err = hd_invitation_read(store, hd_slice(a->id, HD_INVITATION_ID_LEN), now, call->arena,
                                 &a->invitation, &call->fault);

    if (!err)
        err = hd_thread_read(store, a->invitation.owner, a->invitation.thread_id, call->arena,
                             &a->thread, &call->fault);
    if (err == HD_ENOTFOUND || (!err && hd_thread_is_over(&a->thread, now)))
        return hd_call_refuse(call, 404, "Invitation not found");
    if (err)
        return hd_step_fail(err);
    err = hd_participant_read(store, call->actor, a->invitation.owner, a->invitation.thread_id,
                              call->arena, &a->before, &call->fault);
    a->was_there = err == 0;
    return hd_step_next(err == HD_ENOTFOUND ? 0 : err);
}

/* A refusal when the thread id is ambiguous for the actor. */
static struct hd_step check_names(struct hd_call *call, const struct acceptance *a)
{
    struct hd_thread_rec own;
    struct hd_slice owner;
    enum hd_role role;
    int err = hd_thread_read(call->app->store, call->actor, a->thread.id, call->arena, &own,
                             &call->fault);

    if (err == HD_ENOTFOUND)
        err = hd_participation_find(call->app->store, call->actor, call->identity->organisations,
                                    call->identity->organisation_count, a->thread.id, call->arena,
                                    &owner, &role, &call->fault);
    else if (!err)
        owner = call->actor;
    if (err == HD_ENOTFOUND || (!err && hd_slice_eq(owner, a->thread.principal)))
        return HD_NEXT;
    if (err)
        return hd_step_fail(err);
    return hd_call_refuse(call, 409, "you own another thread with this id");
}

static int invitation_append(struct hd_call *call, struct acceptance *a,
                             struct hd_batch_builder *batch)
{
    const struct hd_participant_rec participant = {.member = call->actor,
                                                   .role = a->invitation.role,
                                                   .created_at = hd_clock_now_us(),
                                                   .issuer = call->identity->issuer,
                                                   .subject = call->identity->subject};
    int err = hd_invitation_use(batch, &a->invitation);

    if (err)
        return err;
    return a->was_there ? hd_participant_set_role(batch, &a->before, a->invitation.role)
                        : hd_participant_add(batch, &a->thread, &participant);
}

static struct hd_step check_participants(struct hd_call *call, const struct acceptance *a)
{
    /* Before acceptance call->principal is not the thread's owner: set it for the check only. */
    struct hd_slice principal = call->principal;
    struct hd_step step;

    if (a->was_there)
        return HD_NEXT;
    call->principal = a->thread.principal;
    step = hd_call_check_participants(call, a->thread.id);
    call->principal = principal;
    return step;
}

/* A participant who accepts again changes nothing and consumes no use. */
static int accept_once(void *arg, struct heddle_error *fault)
{
    struct acceptance *a = arg;
    struct hd_call *call = a->call;
    struct hd_batch_builder batch;
    int err;

    (void)fault; /* that of the call */
    a->step = read_acceptance(call, a);
    if (!hd_step_is_next(a->step))
        return a->step.err;
    a->role = HD_ROLE_OWNER;
    if (hd_slice_eq(a->thread.principal, call->actor))
        return 0;
    a->role = a->before.role;
    if (a->was_there && a->before.role >= a->invitation.role)
        return 0;
    a->role = a->invitation.role;
    a->step = check_names(call, a);
    if (hd_step_is_next(a->step))
        a->step = check_participants(call, a);
    if (!hd_step_is_next(a->step))
        return a->step.err;
    hd_batch_init(&batch);
    err = invitation_append(call, a, &batch);
    if (err) {
        hd_batch_fini(&batch);
        return err;
    }
    return hd_api_participants_apply(call, a->thread.principal, a->thread.id, &batch);
}

static void answer_accepted(struct hd_call *call, struct hd_slice thread_id, enum hd_role role)
{
    hd_jw_object(&call->jw);
    hd_jw_put_string(&call->jw, "thread_id", thread_id);
    hd_jw_put_string(&call->jw, "role", hd_slice_cstr(hd_role_name(role)));
    hd_jw_object_end(&call->jw);
}

static struct hd_step accept_invitation(struct hd_call *call)
{
    struct acceptance a = {.call = call, .role = HD_ROLE_NONE};
    struct hd_slice token = {NULL, 0};
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = hd_body_string(call, "token", &token);
    if (!err && (token.len == 0 || token.len > MAX_TOKEN))
        err = hd_error_set(&call->fault, HD_EINVAL, "token: expected the token of an invitation");
    if (!err)
        err = hd_invitation_id(token, a.id);
    if (!err)
        err = hd_rows_change(call->app->store, accept_once, &a, &call->fault);
    if (err)
        return hd_step_fail(err);
    if (hd_step_is_next(a.step))
        answer_accepted(call, a.thread.id, a.role);
    return HD_DONE;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/invitations",
     .access = HD_ACCESS_OWNER,
     .on = HD_ON_THREADS_READ,
     .work = list_invitations,
     .tag = "Participants",
     .summary = "List the open invitations to a thread, without their tokens",
     .answer = "[Invitation"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/invitations",
     .access = HD_ACCESS_OWNER,
     .on = HD_ON_THREADS_UPDATE,
     .work = create_invitation,
     .tag = "Participants",
     .summary = "Create an invitation to a thread; only this response has the token",
     .body = "?InvitationCreate",
     .answer = "InvitationMade"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/invitations/{invitation_id}",
     .access = HD_ACCESS_OWNER,
     .on = HD_ON_THREADS_UPDATE,
     .work = delete_invitation,
     .tag = "Participants",
     .summary = "Revoke an invitation; participants who accepted it stay",
     .status = 204},
    {.method = HD_METHOD_POST,
     .pattern = "/invitations/accept",
     .access = HD_ACCESS_USER,
     .on = HD_ON_NOTHING,
     .work = accept_invitation,
     .tag = "Participants",
     .summary = "Join a thread with the token of an invitation",
     .body = "InvitationAccept",
     .answer = "InvitationAccepted"},
};

const struct hd_routes hd_routes_invitations = {routes, HD_COUNT(routes)};
