/*
 * The participants of a thread: visible to all of them, changed by the owner. Participants may
 * remove themselves. When a participation ends or loses rights, its open streams are checked again
 * (stream_access.h).
 */
#include "api/participants.h"

#include "api/state/checkpoint_target.h"
#include "api/stream_access.h"
#include "auth/issuer.h"
#include "base/clock.h"
#include "gate/auth_service.h"
#include "records/principals.h"
#include "store/rows.h"

struct hd_step hd_api_participants_need_auth(struct hd_call *call)
{
    if (call->identity && call->app->auth_service)
        return HD_NEXT;
    return hd_call_refuse(call, 409,
                          "auth is off, so all callers share all threads and threads have no "
                          "participants (docs/authentication.md)");
}

int hd_api_participants_apply(struct hd_call *call, struct hd_slice owner,
                              struct hd_slice thread_id, struct hd_batch_builder *batch)
{
    struct hd_batch view = hd_batch_view(batch);
    struct hd_slice lane;
    int err = hd_thread_lane(call->arena, owner, thread_id, &lane);

    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
    if (err == HD_ECONFLICT)
        call->fault = (struct heddle_error){0};
    hd_batch_fini(batch);
    return err;
}

int hd_api_participants_role(struct hd_call *call, bool is_needed, enum hd_role *out)
{
    static const char *const words[] = {"viewer", "editor", NULL};
    int word = *out == HD_ROLE_EDITOR;
    int err = hd_body_word(call, "role", words, &word);

    if (!err && is_needed && !hd_body_get(call, "role"))
        err = hd_error_set(&call->fault, HD_EINVAL, "role: expected \"viewer\" or \"editor\"");
    *out = word == 0 ? HD_ROLE_VIEWER : HD_ROLE_EDITOR;
    return err;
}

/* ---- views ------------------------------------------------------------ */

static int participant_show(void *arg, const struct hd_participant_rec *participant)
{
    struct hd_jw *jw = arg;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "participant_id", participant->member);
    hd_jw_put_string(jw, "role", hd_slice_cstr(hd_role_name(participant->role)));
    hd_jw_put_string(jw, "issuer", participant->issuer);
    hd_jw_put_string(jw, participant->is_organisation ? "organisation" : "subject",
                     participant->subject);
    hd_jw_put_timestamp(jw, "since", participant->created_at);
    hd_jw_object_end(jw);
    return jw->err;
}

static struct hd_step list_participants(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = hd_call_thread(call, &thread);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    err = hd_participants_scan(call->app->store, call->principal, thread.id, participant_show,
                               &call->jw, &call->fault);
    hd_jw_array_end(&call->jw);
    return hd_step_done(err);
}

/* ---- adding ----------------------------------------------------------- */

/* A list for an issuer that builds the subject from several claims. */
static int read_subject(struct hd_call *call, struct hd_slice *out)
{
    struct hd_slice *claims;
    size_t count;
    int err;

    if (!hd_json_is_array(hd_body_get(call, "subject")))
        return hd_body_string(call, "subject", out);
    err = hd_body_strings(call, "subject", &claims, &count);
    if (!err && (count == 0 || count > HD_MAX_SUBJECT_CLAIMS))
        err = hd_error_set(&call->fault, HD_EINVAL, "subject: expected 1 to %d claims",
                           HD_MAX_SUBJECT_CLAIMS);
    return err ? err : hd_subject_join(call->arena, claims, count, out);
}

static int read_participant(struct hd_call *call, struct hd_participant_rec *out)
{
    struct hd_slice organisation = {NULL, 0};
    int err = hd_body_string(call, "issuer", &out->issuer);

    if (!err)
        err = read_subject(call, &out->subject);
    if (!err)
        err = hd_body_string(call, "organisation", &organisation);
    if (!err)
        err = hd_api_participants_role(call, true, &out->role);
    if (err)
        return err;
    if ((out->subject.len > 0) == (organisation.len > 0))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "expected either a \"subject\" or an \"organisation\"");
    out->is_organisation = organisation.len > 0;
    if (out->is_organisation)
        out->subject = organisation;
    if (!hd_auth_has_alias(hd_auth_service_auth(call->app->auth_service), out->issuer))
        return hd_error_set(&call->fault, HD_EINVAL, "issuer: expected the alias of an issuer");
    if (out->subject.len > HD_MAX_SUBJECT)
        return hd_error_set(&call->fault, HD_EINVAL, "%s: longer than %d bytes",
                            out->is_organisation ? "organisation" : "subject", HD_MAX_SUBJECT);
    out->created_at = hd_clock_now_us();
    return 0;
}

/* The user need not exist: the principal is derived from the name. */
static int find_principal(struct hd_call *call, struct hd_participant_rec *participant)
{
    char *principal = hd_arena_alloc(call->arena, HD_PRINCIPAL_SIZE);
    int err;

    if (!principal)
        return HD_ENOMEM;
    err = hd_principal_settle(call->app->store, hd_auth_service_auth(call->app->auth_service),
                              participant->is_organisation ? HD_PRINCIPAL_ORGANISATION
                                                           : HD_PRINCIPAL_PERSON,
                              participant->issuer, participant->subject, principal, &call->fault);
    participant->member = hd_slice(principal, HD_PRINCIPAL_LEN);
    return err;
}

struct hd_step hd_call_check_participants(struct hd_call *call, struct hd_slice thread_id)
{
    size_t count;
    int err = hd_participants_count(call->app->store, call->principal, thread_id,
                                    HD_MAX_PARTICIPANTS, &count, &call->fault);

    if (err || count < HD_MAX_PARTICIPANTS)
        return hd_step_next(err);
    return hd_call_refuse(call, 409, "a thread has at most %d participants", HD_MAX_PARTICIPANTS);
}

/* Write conflict: the same participant was added, or the thread was deleted. */
static struct hd_step resolve_conflict(struct hd_call *call)
{
    struct hd_thread_rec thread;
    int err = hd_call_thread(call, &thread);

    return err ? hd_step_fail(err) : hd_call_refuse(call, 409, "Participant already exists");
}

static struct hd_step add_participant(struct hd_call *call)
{
    struct hd_participant_rec participant = {.role = HD_ROLE_VIEWER};
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = read_participant(call, &participant);
    if (!err)
        err = hd_call_thread(call, &thread);
    if (!err)
        err = find_principal(call, &participant);
    if (!err && hd_slice_eq(participant.member, call->principal))
        return hd_call_refuse(call, 409, "the participant owns the thread already");
    step = err ? hd_step_fail(err) : hd_call_check_participants(call, thread.id);
    if (!hd_step_is_next(step))
        return step;
    hd_batch_init(&batch);
    err = hd_participant_add(&batch, &thread, &participant);
    if (err) {
        hd_batch_fini(&batch);
        return hd_step_fail(err);
    }
    err = hd_api_participants_apply(call, call->principal, thread.id, &batch);
    if (err == HD_ECONFLICT)
        return resolve_conflict(call);
    return hd_step_done(err ? err : participant_show(&call->jw, &participant));
}

/* ---- changing and removing -------------------------------------------- */

/* The change of a participant. */
typedef int (*change_fn)(struct hd_batch_builder *batch,
                         const struct hd_participant_rec *participant, enum hd_role role);

static int set_role(struct hd_batch_builder *batch, const struct hd_participant_rec *participant,
                    enum hd_role role)
{
    return hd_participant_set_role(batch, participant, role);
}

static int take_away(struct hd_batch_builder *batch, const struct hd_participant_rec *participant,
                     enum hd_role role)
{
    (void)role;
    return hd_participant_remove(batch, participant);
}

struct participant_change {
    struct hd_call *call;
    struct hd_slice thread_id;
    change_fn change;
    enum hd_role role;
    struct hd_participant_rec *out;
};

static int participant_change_once(void *arg, struct heddle_error *fault)
{
    const struct participant_change *change = arg;
    struct hd_call *call = change->call;
    struct hd_batch_builder batch;
    int err = hd_participant_read(call->app->store, call->params[1], call->principal,
                                  change->thread_id, call->arena, change->out, fault);

    if (err == HD_ENOTFOUND)
        return hd_error_set(fault, HD_ENOTFOUND, "Participant not found");
    if (err)
        return err;
    hd_batch_init(&batch);
    err = change->change(&batch, change->out, change->role);
    if (err) {
        hd_batch_fini(&batch);
        return err;
    }
    return hd_api_participants_apply(call, call->principal, change->thread_id, &batch);
}

static int change_participant(struct hd_call *call, change_fn change, enum hd_role role,
                              struct hd_participant_rec *out)
{
    struct hd_slice *thread_id = hd_arena_alloc(call->arena, sizeof(*thread_id));
    struct hd_thread_rec thread;
    int err = thread_id ? hd_call_thread(call, &thread) : HD_ENOMEM;

    if (err)
        return err;
    *thread_id = thread.id;
    call->state = thread_id;
    return hd_rows_change(call->app->store, participant_change_once,
                          &(struct participant_change){call, thread.id, change, role, out},
                          &call->fault);
}

static struct hd_step patch_participant(struct hd_call *call)
{
    struct hd_participant_rec participant;
    enum hd_role role = HD_ROLE_VIEWER;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    err = hd_api_participants_role(call, true, &role);
    if (!err)
        err = change_participant(call, set_role, role, &participant);
    if (err)
        return hd_step_fail(err);
    participant.role = role;
    err = participant_show(&call->jw, &participant);
    return hd_step_next(err);
}

/* The owner removes others; others remove themselves. */
static struct hd_step remove_participant(struct hd_call *call)
{
    struct hd_participant_rec participant;
    struct hd_step step = hd_api_participants_need_auth(call);
    int err;

    if (!hd_step_is_next(step))
        return step;
    if (call->role != HD_ROLE_OWNER && !hd_slice_eq(call->params[1], call->actor))
        return hd_call_refuse(call, 403, "only the owner of the thread may do this");
    err = change_participant(call, take_away, HD_ROLE_NONE, &participant);
    if (err)
        return hd_step_fail(err);
    call->status = 204;
    return HD_NEXT;
}

/* The open streams of a changed participant end if it has lost its access. */
static struct hd_step recheck_streams(struct hd_call *call)
{
    const struct hd_slice *thread_id = call->state;

    hd_stream_accesses_recheck(hd_api_stream_accesses(call->api), call->principal, *thread_id);
    return HD_DONE;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/participants",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = list_participants,
     .tag = "Participants",
     .summary = "List the participants of a thread besides its owner",
     .answer = "[Participant"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/participants",
     .access = HD_ACCESS_OWNER,
     .on = HD_ON_THREADS_UPDATE,
     .work = add_participant,
     .tag = "Participants",
     .summary = "Share a thread with a user or an organisation",
     .body = "ParticipantCreate",
     .answer = "Participant"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/participants/{participant_id}",
     .access = HD_ACCESS_OWNER,
     .on = HD_ON_THREADS_UPDATE,
     .work = patch_participant,
     .then = recheck_streams,
     .tag = "Participants",
     .summary = "Change the role of a participant",
     .body = "ParticipantPatch",
     .answer = "Participant"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/participants/{participant_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_UPDATE,
     .work = remove_participant,
     .then = recheck_streams,
     .tag = "Participants",
     .summary = "Remove a participant, or leave; open streams of the thread end at once",
     .status = 204},
};

const struct hd_routes hd_routes_participants = {routes, HD_COUNT(routes)};
