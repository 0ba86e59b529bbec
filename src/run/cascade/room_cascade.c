#include "run/cascade/room_cascade.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/uuid.h"
#include "events/event_batch.h"
#include "run/cascade/room_cascade_internal.h"

#define MAX_EDITOR ((size_t)64 << 10)
#define APPROVED_ALL (-1) /* hd_cascade_rec.approved */

static const char no_message[] = "Message with ID %.*s not found";
static const char for_approval[] = "approval";
static const char for_answer[] = "question";

/* Ends an attempt without a batch. */
static int end_attempt(struct hd_room_cascade_try *t)
{
    t->is_over = true;
    return HD_EBUSY;
}

static int refuse_message(struct hd_room_cascade_try *t)
{
    struct hd_slice id = t->op->message_id;

    return hd_admit_refuse(t->group, t->fault, 404, no_message, (int)(id.len < 100 ? id.len : 100),
                           id.ptr);
}

static int refuse_open(struct hd_room_cascade_try *t)
{
    return hd_admit_refuse(t->group, t->fault, 409,
                           "An earlier edit in this conversation is still being processed");
}

static bool is_open(const struct hd_cascade_rec *cascade)
{
    return cascade->status == HD_CASCADE_RUNNING || cascade->status == HD_CASCADE_WAITING;
}

static bool has_open(const struct hd_room_cascade_past *past)
{
    for (size_t i = 0; i < past->cascade_count; i++) {
        if (is_open(&past->cascades[i]))
            return true;
    }
    return false;
}

/* Lists the running steps' runs, for the caller to cancel. */
static int cancel_running(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;

    op->cancelled = hd_arena_calloc(op->arena, op->steps.count + 1, sizeof(*op->cancelled));
    if (!op->cancelled)
        return HD_ENOMEM;
    for (size_t i = 0; i < op->steps.count; i++) {
        if (op->steps.items[i].state == HD_CASCADE_STEP_RUNNING)
            op->cancelled[op->cancelled_count++] = op->steps.items[i].new_run_id;
    }
    return 0;
}

/* ---- the plan --------------------------------------------------------- */

static int plan_again(struct hd_room_cascade_try *t, const struct hd_room_cascade_change *change,
                      const struct hd_cascade_list *recorded, bool is_first)
{
    struct hd_room_cascade *op = t->op;
    struct hd_cascade_answer plan;
    struct hd_cascade_news news;
    int err = hd_room_cascade_past_plan(&t->past, change, &plan, t->fault);

    if (err)
        return err;
    op->free = plan.free;
    op->possible = plan.possible;
    news = (struct hd_cascade_news){.past = t->past.past,
                                    .past_count = t->past.count,
                                    .plan = &plan,
                                    .extras = t->past.extras,
                                    .is_first = is_first};
    return hd_cascade_steps_merge(recorded, &news, op->arena, &op->steps);
}

/* A cascade that only a person can continue waits for one. */
static void set_status(struct hd_cascade_rec *cascade, const struct hd_cascade_decision *decision)
{
    bool goes_on = decision->ready_count > 0 || decision->running > 0 || decision->in_flight > 0;

    cascade->status = HD_CASCADE_RUNNING;
    cascade->reason = hd_slice(NULL, 0);
    if (goes_on || decision->is_complete)
        return;
    cascade->status = HD_CASCADE_WAITING;
    cascade->reason = hd_slice_cstr(decision->questions > 0 ? for_answer : for_approval);
}

/* ---- edits and retries ------------------------------------------------ */

static int read_edited(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;
    int err = hd_room_message_read(op->app->store, op->principal, op->thread_id, op->message_id,
                                   op->arena, &op->message, t->fault);

    if (!err)
        err =
            hd_room_contents_read(op->app->store, &op->message, 1, op->arena, &op->body, t->fault);
    op->has_message = !err;
    return err == HD_ENOTFOUND ? refuse_message(t) : err;
}

static int check_author(struct hd_room_cascade_try *t)
{
    const struct hd_room_message_rec *message = &t->op->message;

    if (message->kind == HD_ROOM_AGENT)
        return hd_admit_refuse(t->group, t->fault, 422,
                               "The message of an agent cannot be edited; retry makes it again");
    if (message->kind != HD_ROOM_PERSON || !hd_slice_eq(message->sender, t->op->editor.key))
        return hd_admit_refuse(t->group, t->fault, 403, "Only its author can edit a message");
    if (message->state == HD_ROOM_DELETED)
        return hd_admit_refuse(t->group, t->fault, 409, "The message was deleted");
    return 0;
}

/* The runs that the message has made, for the events and the response. */
static int read_views(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;

    op->view_count = 0;
    op->views = hd_arena_calloc(op->arena, t->past.count + 1, sizeof(*op->views));
    if (!op->views)
        return HD_ENOMEM;
    for (size_t i = 0; i < t->past.count; i++) {
        const struct hd_room_cascade_run *run = &t->past.runs[i];
        const char *status = run->has_run ? hd_run_state_name(run->run.status) : NULL;

        if (hd_slice_eq(run->row.trigger, op->message_id))
            op->views[op->view_count++] = hd_room_view_run_of(&run->row, hd_slice_cstr(status));
    }
    return 0;
}

static int make_version(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;
    struct hd_room_cascade_message *note;
    int64_t now = hd_clock_now_us();
    int err = hd_room_cascade_mention(t, op->body.content);

    if (err)
        return err;
    op->message.version++;
    op->message.changed = ++t->past.room.changes;
    op->message.updated_at = now;
    op->body = (struct hd_room_content_rec){.principal = op->principal,
                                            .thread_id = op->thread_id,
                                            .message_id = op->message.id,
                                            .version = op->message.version,
                                            .created_at = now,
                                            .content = op->content,
                                            .metadata = op->metadata.len > 0 ? op->metadata
                                                                             : op->body.metadata};
    err = hd_room_cascade_note(t, &op->message, &op->body, &note);
    if (!err)
        note->has_new_content = true;
    return err;
}

/* Runs of the edited message that have not ended: they are refused, or cancelled and repeated. */
static int stop_direct(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;

    op->cancelled = hd_arena_calloc(op->arena, op->steps.count + 1, sizeof(*op->cancelled));
    if (!op->cancelled)
        return HD_ENOMEM;
    for (size_t i = 0; i < op->steps.count; i++) {
        const struct hd_cascade_entry *entry = &op->steps.items[i];

        if (!entry->is_in_flight || !hd_slice_eq(entry->trigger, op->message_id))
            continue;
        if (!op->interrupts_run)
            return hd_admit_refuse(t->group, t->fault, 409,
                                   "A run of this message has not ended; `if_running`: "
                                   "\"interrupt\" stops it");
        op->cancelled[op->cancelled_count++] = entry->run_id;
    }
    return 0;
}

static int write_editor(struct hd_room_cascade_try *t, struct hd_slice *out)
{
    struct hd_buf text;
    struct hd_jw jw;

    hd_buf_init(&text, MAX_EDITOR);
    hd_jw_init(&jw, &text);
    hd_room_view_person(&jw, &t->op->editor);
    return hd_jw_finish_in(&jw, t->op->arena, out);
}

static int begin_cascade(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;
    struct hd_cascade_decision decision;
    char *id = hd_arena_alloc(op->arena, HD_UUID_SIZE);
    int err;

    if (!id)
        return HD_ENOMEM;
    hd_uuid_v7(id);
    op->has_cascade = true;
    op->cascade = (struct hd_cascade_rec){.principal = op->principal,
                                          .thread_id = op->thread_id,
                                          .id = hd_slice(id, HD_UUID_LEN),
                                          .created_at = hd_clock_now_us(),
                                          .message_id = op->message_id,
                                          .version = op->message.version,
                                          .actor = op->editor.key,
                                          .user = op->user,
                                          .limit = op->limit,
                                          .approved = (int64_t)op->free};
    t->cascade = &op->cascade;
    err = write_editor(t, &op->cascade.editor);
    if (!err)
        err = hd_cascade_steps_decide(&op->steps, op->arena, &decision);
    if (!err)
        set_status(&op->cascade, &decision);
    return err;
}

static int begin_change(struct hd_room_cascade_try *t, const struct hd_room_cascade_change *change)
{
    struct hd_room_cascade *op = t->op;
    const struct hd_cascade_list none = {NULL, 0};
    int err = plan_again(t, change, &none, true);

    if (err || op->is_dry)
        return err ? err : end_attempt(t);
    if (has_open(&t->past))
        return refuse_open(t);
    err = stop_direct(t);
    if (!err && op->verb == HD_ROOM_CASCADE_EDIT)
        err = make_version(t);
    if (err || op->steps.count == 0)
        return err;
    return op->is_alone ? hd_room_cascade_mark_stale(t, &op->steps) : begin_cascade(t);
}

static int prepare_edit(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade_change change = {.limit = (size_t)t->op->limit};
    int err = read_edited(t);

    if (!err)
        err = check_author(t);
    if (!err)
        err = read_views(t);
    change.edited = (struct hd_cascade_pair){t->op->message.id, t->op->message.version + 1};
    return err ? err : begin_change(t, &change);
}

static int prepare_retry(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade_change change = {.limit = (size_t)t->op->limit};
    const struct hd_room_message_rec *message = &t->op->message;
    int err = read_edited(t);
    size_t index;

    if (err)
        return err;
    if (message->kind != HD_ROOM_AGENT)
        return hd_admit_refuse(t->group, t->fault, 422,
                               "Only the message of an agent can be made "
                               "again; edit the message of a person");
    index = hd_room_cascade_past_answered(&t->past, message->id);
    if (index == t->past.count)
        return hd_admit_refuse(t->group, t->fault, 409, "The message was replaced");
    if (message->state == HD_ROOM_PENDING || message->state == HD_ROOM_DELETED)
        return hd_admit_refuse(t->group, t->fault, 409, "The message is %s",
                               hd_room_states[message->state]);
    change.retried = t->past.past[index].run_id;
    return begin_change(t, &change);
}

/* ---- the next step ---------------------------------------------------- */

/* Runs act as the editor. Without authentication an actor has no name. */
static int read_editor_subject(struct hd_room_cascade_try *t)
{
    struct hd_json json = {NULL};
    int err = 0;

    if (t->cascade->actor.len == 0)
        return 0;
    err = hd_json_parse(&json, t->cascade->editor, t->fault);
    if (!err)
        err = hd_arena_copy(t->op->arena,
                            hd_json_string(hd_json_get(hd_json_root(&json), HD_S("id"))),
                            &t->group->subject);
    hd_json_fini(&json);
    return err;
}

static int read_cascade(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;
    int err = hd_cascade_read(op->app->store, op->principal, op->thread_id, op->cascade_id,
                              op->arena, &op->cascade, t->fault);
    int len = (int)(op->cascade_id.len < 100 ? op->cascade_id.len : 100);

    if (err == HD_ENOTFOUND)
        return hd_admit_refuse(t->group, t->fault, 404, "Cascade with ID %.*s not found", len,
                               op->cascade_id.ptr);
    if (err)
        return err;
    op->has_cascade = true;
    t->cascade = &op->cascade;
    t->group->actor = t->past.actor = op->cascade.actor;
    err = read_editor_subject(t);
    return err ? err : hd_cascade_steps_read(op->cascade.plan, op->arena, &op->steps, t->fault);
}

/* What has changed: the edited message, or the answer that is made again. */
static int read_change(struct hd_room_cascade_try *t, struct hd_room_cascade_change *out)
{
    const struct hd_cascade_rec *cascade = t->cascade;
    struct hd_room_cascade *op = t->op;
    struct hd_room_message_rec message;
    size_t index;
    int err = hd_room_message_read(op->app->store, op->principal, op->thread_id,
                                   cascade->message_id, op->arena, &message, t->fault);

    *out = (struct hd_room_cascade_change){.limit = (size_t)cascade->limit};
    if (err)
        return err;
    if (message.kind != HD_ROOM_AGENT) {
        out->edited = (struct hd_cascade_pair){cascade->message_id, cascade->version};
        return 0;
    }
    index = hd_room_cascade_past_answered(&t->past, cascade->message_id);
    if (index < t->past.count)
        out->retried = t->past.past[index].run_id;
    return 0;
}

static const char *failure_of(const struct hd_cascade_list *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        if (steps->items[i].state == HD_CASCADE_STEP_FAILED)
            return steps->items[i].blocked.ptr;
    }
    return "";
}

/* The message of a retry is an agent's. */
static int read_is_retry(struct hd_room_cascade_try *t, bool *out)
{
    const struct hd_room_cascade *op = t->op;
    struct hd_room_message_rec message;
    int err = hd_room_message_read(op->app->store, op->principal, op->thread_id,
                                   t->cascade->message_id, op->arena, &message, t->fault);

    *out = !err && message.kind == HD_ROOM_AGENT;
    return err == HD_ENOTFOUND ? 0 : err;
}

/*
 * Heads stay, and what was repeated remains as branches. After an edit the old answers are out of
 * date; after a retry they are as good as before.
 */
static int end_cascade(struct hd_room_cascade_try *t, enum hd_cascade_status status,
                       struct hd_slice reason)
{
    bool is_retry;
    int err = read_is_retry(t, &is_retry);

    t->cascade->status = status;
    t->cascade->reason = reason;
    if (err)
        return err;
    return is_retry ? hd_room_cascade_mark_questions(t, &t->op->steps)
                    : hd_room_cascade_mark_stale(t, &t->op->steps);
}

static int fail_cascade(struct hd_room_cascade_try *t, struct hd_slice reason)
{
    int err = cancel_running(t);

    return err ? err : end_cascade(t, HD_CASCADE_FAILED, reason);
}

static bool is_unchanged(struct hd_room_cascade_try *t, const struct hd_cascade_rec *before,
                         int *err)
{
    struct hd_slice plan;

    *err = hd_cascade_steps_write(&t->op->steps, t->op->arena, &plan);
    return !*err && t->cascade->status == before->status && hd_slice_eq(plan, before->plan);
}

static int decide_next(struct hd_room_cascade_try *t, const struct hd_cascade_decision *decision)
{
    const struct hd_cascade_rec before = *t->cascade;
    int err = 0;

    if (decision->has_failed)
        return fail_cascade(t, hd_slice_cstr(failure_of(&t->op->steps)));
    set_status(t->cascade, decision);
    if (decision->ready_count > 0)
        return hd_room_cascade_start(t, decision->ready, decision->ready_count);
    if (decision->is_complete)
        return hd_room_cascade_switch(t);
    if (is_unchanged(t, &before, &err))
        return end_attempt(t);
    return err;
}

static int advance_cascade(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade_change change;
    struct hd_cascade_decision decision;
    struct hd_cascade_list recorded = t->op->steps;
    int err = hd_room_cascade_settle(t, &recorded);

    if (!err)
        err = read_change(t, &change);
    change.recorded = &recorded;
    if (!err)
        err = plan_again(t, &change, &recorded, false);
    if (!err && t->cascade->approved == APPROVED_ALL)
        hd_cascade_steps_approve_joined(&t->op->steps);
    if (!err)
        err = hd_cascade_steps_decide(&t->op->steps, t->op->arena, &decision);
    return err ? err : decide_next(t, &decision);
}

static int prepare_advance(struct hd_room_cascade_try *t)
{
    int err = read_cascade(t);

    if (err)
        return err;
    return t->cascade->status == HD_CASCADE_RUNNING ? advance_cascade(t) : end_attempt(t);
}

/* ---- decisions of people ---------------------------------------------- */

static int refuse_status(struct hd_room_cascade_try *t)
{
    return hd_admit_refuse(t->group, t->fault, 409, "The cascade is %s",
                           hd_cascade_statuses[t->cascade->status]);
}

static int64_t count_approved(const struct hd_cascade_list *steps)
{
    int64_t count = 0;

    for (size_t i = 0; i < steps->count; i++)
        count += steps->items[i].state != HD_CASCADE_STEP_SKIPPED;
    return count;
}

static int prepare_approve(struct hd_room_cascade_try *t)
{
    struct hd_room_cascade *op = t->op;

    if (t->cascade->status != HD_CASCADE_WAITING ||
        !hd_slice_eq(t->cascade->reason, hd_slice_cstr(for_approval)))
        return refuse_status(t);
    if (op->up_to.len > 0 && !hd_cascade_steps_find(&op->steps, op->up_to))
        return hd_admit_refuse(t->group, t->fault, 422, "`up_to` is no run of the plan");
    hd_cascade_steps_approve(&op->steps, op->up_to);
    t->cascade->approved = op->up_to.len > 0 ? count_approved(&op->steps) : APPROVED_ALL;
    t->cascade->status = HD_CASCADE_RUNNING;
    t->cascade->reason = hd_slice(NULL, 0);
    return 0;
}

static int prepare_undo(struct hd_room_cascade_try *t)
{
    if (t->cascade->status != HD_CASCADE_DONE)
        return refuse_status(t);
    return has_open(&t->past) ? refuse_open(t) : hd_room_cascade_undo(t);
}

static int prepare_cancel(struct hd_room_cascade_try *t)
{
    int err;

    if (!is_open(t->cascade))
        return refuse_status(t);
    err = cancel_running(t);
    return err ? err : end_cascade(t, HD_CASCADE_CANCELLED, hd_slice(NULL, 0));
}

static int prepare_action(struct hd_room_cascade_try *t)
{
    int err = read_cascade(t);

    if (err)
        return err;
    switch (t->op->verb) {
    case HD_ROOM_CASCADE_APPROVE:
        return prepare_approve(t);
    case HD_ROOM_CASCADE_DECLINE:
        if (t->cascade->status != HD_CASCADE_WAITING)
            return refuse_status(t);
        return end_cascade(t, HD_CASCADE_DECLINED, hd_slice(NULL, 0));
    case HD_ROOM_CASCADE_CANCEL:
        return prepare_cancel(t);
    case HD_ROOM_CASCADE_FAIL:
        return is_open(t->cascade) ? fail_cascade(t, t->op->reason) : end_attempt(t);
    default:
        return prepare_undo(t);
    }
}

/* ---- an attempt ------------------------------------------------------- */

static void reset_result(struct hd_room_cascade *op)
{
    hd_room_cascade_fini(op);
    op->has_message = op->has_cascade = op->is_more = false;
    op->steps = (struct hd_cascade_list){NULL, 0};
    op->view_count = op->cancelled_count = 0;
}

static int read_past(struct hd_room_cascade_try *t, const struct hd_thread_rec *thread)
{
    struct hd_room_cascade *op = t->op;
    int err;

    t->past = (struct hd_room_cascade_past){
        .app = op->app, .arena = op->arena, .thread = thread, .actor = op->editor.key};
    err = hd_room_cascade_past_read(&t->past, t->fault);
    if (err != HD_ENOTFOUND)
        return err;
    if (op->message_id.len > 0)
        return refuse_message(t);
    return read_cascade(t); /* refuses: only rooms have cascades */
}

static int prepare_change(void *ctx, struct hd_admission_group *group,
                          const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    struct hd_room_cascade_try *t = ctx;
    struct hd_room_cascade *op = t->op;
    int err;

    *t = (struct hd_room_cascade_try){.op = op, .group = group, .fault = fault};
    group->runs = NULL;
    group->count = 0;
    reset_result(op);
    op->event_seq = thread->event_seq;
    op->needs_numbers = !op->is_dry && (!op->events || !hd_event_batch_fits(op->events, thread));
    if (op->needs_numbers)
        return end_attempt(t);
    err = read_past(t, thread);
    if (err)
        return err;
    if (!op->has_limit)
        op->limit = t->past.room.cascade_limit;
    if (op->verb == HD_ROOM_CASCADE_EDIT)
        return prepare_edit(t);
    if (op->verb == HD_ROOM_CASCADE_RETRY)
        return prepare_retry(t);
    return op->verb == HD_ROOM_CASCADE_ADVANCE ? prepare_advance(t) : prepare_action(t);
}

int hd_room_cascade_apply(struct hd_room_cascade *op, struct heddle_error *fault)
{
    struct hd_room_cascade_try t = {.op = op};
    struct hd_admission_group group = {.app = op->app,
                                       .arena = op->arena,
                                       .principal = op->principal,
                                       .thread_id = op->thread_id,
                                       .seen = op->seen,
                                       .prepare = prepare_change,
                                       .extend = hd_room_cascade_extend,
                                       .ctx = &t};
    int err = hd_admit_group(&group, fault);

    op->refusal = group.refusal;
    op->retry_s = group.retry_s;
    op->holder = group.holder;
    op->is_stored = !err && !group.refusal && group.holder.len == 0 && !t.is_over;
    if (op->is_stored)
        op->event_seq = group.thread.event_seq;
    if (err && t.is_over)
        *fault = (struct heddle_error){0};
    return err && t.is_over ? 0 : err;
}

void hd_room_cascade_fini(struct hd_room_cascade *op)
{
    for (size_t i = 0; i < op->run_count; i++)
        hd_room_request_fini(op->runs[i]);
    op->run_count = 0;
}
