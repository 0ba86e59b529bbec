#include "run/admit.h"

#include <stdarg.h>
#include <stdio.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "gate/limits.h"
#include "records/participants.h"
#include "run/admit_internal.h"
#include "run/assistant_lookup.h"
#include "run/queue.h"
#include "run/unsettled.h"
#include "search/thread_texts.h"
#include "store/rows.h"
#include "webhook/webhook.h"

static const char too_many_runs[] = "too many runs (limits.runs)";

int hd_admit_refuse(struct hd_admission_group *group, struct heddle_error *fault, int status,
                    const char *fmt, ...)
{
    char text[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    group->refusal = status;
    return hd_error_set(fault, HD_EINVAL, "%s", text);
}

/* ---- announcing ------------------------------------------------------- */

/* An admission: its attempts, and the runs that it has announced for them. */
struct admitting {
    struct hd_admission_group *group;
    /* Each run has an id, a pending admission, and one of the actor's slots (limits.runs). */
    struct hd_slice ids[HD_ADMIT_MAX_RUNS];
    size_t count;
    size_t known; /* of group->runs; 0 until `prepare` has made them */
};

/* After hd_queue_add() the queue gives the slot of the actor back. */
static int announce_run(struct admitting *all, struct heddle_error *fault)
{
    struct hd_admission_group *group = all->group;
    char *id = hd_arena_alloc(group->arena, HD_UUID_SIZE);

    if (!id)
        return HD_ENOMEM;
    group->retry_s = hd_limits_take(group->app->limits, group->actor, HD_LIMIT_RUNS);
    if (group->retry_s > 0)
        return hd_admit_refuse(group, fault, 429, "%s", too_many_runs);
    hd_uuid_v7(id);
    all->ids[all->count] = hd_slice(id, HD_UUID_LEN);
    if (hd_queue_expect(group->app->queue, group->principal, all->ids[all->count])) {
        hd_limits_give(group->app->limits, group->actor, HD_LIMIT_RUNS);
        return HD_ENOMEM;
    }
    all->count++;
    return 0;
}

/* Withdraws all announced runs but the first `kept` ones. */
static void withdraw_runs(struct admitting *all, size_t kept)
{
    struct hd_admission_group *group = all->group;

    while (all->count > kept) {
        hd_queue_unexpect(group->app->queue, group->principal, all->ids[--all->count]);
        hd_limits_give(group->app->limits, group->actor, HD_LIMIT_RUNS);
    }
}

/* Copies the members that the run shares with the group, and clears its result. */
static void share_group(const struct hd_admission_group *group, struct hd_admission *a)
{
    a->app = group->app;
    a->arena = group->arena;
    a->principal = group->principal;
    a->actor = group->actor;
    a->subject = group->subject;
    a->stamps = group->stamps;
    a->thread_id = group->thread_id;
    a->cancelled_count = 0;
    a->run = (struct hd_run_rec){.rev = 0};
}

/* Announces the runs of the group that were not announced before. */
static int announce_runs(struct hd_admit_attempt *t, struct admitting *all)
{
    struct hd_admission_group *group = t->group;
    int err = 0;

    if (group->count > HD_ADMIT_MAX_RUNS)
        return hd_error_set(t->fault, HD_ELIMIT, "more than %d runs at once", HD_ADMIT_MAX_RUNS);
    while (!err && all->count < group->count)
        err = announce_run(all, t->fault);
    if (err)
        return err;
    withdraw_runs(all, group->count);
    t->count = group->count;
    for (size_t i = 0; i < t->count; i++) {
        share_group(group, group->runs[i]);
        group->runs[i]->run.run_id = all->ids[i];
        t->runs[i].attempt = t;
        t->runs[i].a = group->runs[i];
    }
    return 0;
}

/* Replaces the run's id by one that sorts after `after`, also in the pending admissions. */
static int renew_id(struct admitting *all, struct hd_admit_run *run, struct hd_slice after)
{
    struct hd_admission *a = run->a;
    char *id = hd_arena_alloc(a->arena, HD_UUID_SIZE);
    int err = HD_ENOMEM;

    if (id) {
        hd_uuid_v7_after(after, id);
        err = hd_queue_expect(a->app->queue, a->principal, hd_slice(id, HD_UUID_LEN));
    }
    if (err)
        return err;
    hd_queue_unexpect(a->app->queue, a->principal, a->run.run_id);
    a->run.run_id = all->ids[run - run->attempt->runs] = hd_slice(id, HD_UUID_LEN);
    return 0;
}

/* ---- reading ---------------------------------------------------------- */

static int find_assistant(struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    struct hd_slice id = run->a->request->assistant_id;
    struct hd_slice owner = run->a->lender.len > 0 ? run->a->lender : run->a->actor;
    int err = hd_assistant_lookup(run->a->app, owner, id, run->a->arena, &run->assistant, t->fault);

    if (err != HD_ENOTFOUND)
        return err;
    return hd_admit_refuse(t->group, t->fault, 404,
                           "No assistant found for \"%.*s\". Make sure the assistant ID is for a "
                           "valid assistant or a valid graph ID.",
                           (int)(id.len < 60 ? id.len : 60), id.ptr);
}

static int check_webhook(struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    struct hd_slice url = run->a->request->webhook;
    int err = url.len > 0 ? hd_webhook_allowed(run->a->app->config, url, t->fault) : 0;

    if (err == HD_EINVAL)
        t->group->refusal = 422;
    return err;
}

/* Finds the runs' assistants; independent of the thread. */
static int look_up_runs(struct hd_admit_attempt *t, struct admitting *all)
{
    int err = announce_runs(t, all);

    for (size_t i = 0; !err && i < t->count; i++) {
        err = check_webhook(&t->runs[i]);
        if (!err)
            err = find_assistant(&t->runs[i]);
    }
    return err;
}

/* Lets the caller make the runs, after it has seen the thread. */
static int prepare_runs(struct hd_admit_attempt *t, struct admitting *all)
{
    struct hd_admission_group *group = t->group;
    int err = group->prepare(group->ctx, group, &t->thread, t->fault);

    if (err)
        return err;
    all->known = group->count;
    return look_up_runs(t, all);
}

/* Only a busy thread has runs in flight. */
static int find_active(struct hd_admit_attempt *t)
{
    if (t->thread.status != HD_THREAD_BUSY || t->count == 0)
        return 0;
    return hd_runs_active(t->group->app->store, t->group->principal, t->thread.id, t->group->arena,
                          &t->active, &t->active_count, t->fault);
}

/* Finds slots where the runs of the actor are counted in the store. */
static int find_slots(struct hd_admit_attempt *t)
{
    struct hd_admission_group *group = t->group;
    int64_t most = hd_limits_cluster_runs(group->app->limits, group->actor);
    struct hd_run_slot slots[HD_ADMIT_MAX_RUNS];
    int err;

    if (most == 0 || t->count == 0)
        return 0;
    err = hd_run_slots_find(group->app->store, group->actor, most, slots, t->count, t->fault);
    for (size_t i = 0; !err && i < t->count; i++)
        t->runs[i].slot = slots[i];
    if (err != HD_ELIMIT)
        return err;
    group->retry_s = hd_limits_refuse_run(group->app->limits);
    return hd_admit_refuse(group, t->fault, 429, "%s", too_many_runs);
}

/*
 * In a room with more than one person nothing of a run's configuration is for later runs. Nor are
 * the headers in any room: others may join it.
 */
static int find_people(struct hd_admit_attempt *t)
{
    const struct hd_admission_group *group = t->group;
    bool is_shared = false;
    int err = 0;

    if (t->thread.is_room && group->actor.len > 0)
        err = hd_participants_share(group->app->store, group->principal, t->thread.id, group->actor,
                                    &is_shared, t->fault);
    for (size_t i = 0; i < t->count; i++) {
        t->runs[i].a->is_config_private |= is_shared;
        t->runs[i].a->hides_headers |= t->thread.is_room;
    }
    return err;
}

static int find_all(struct hd_admit_attempt *t, struct admitting *all)
{
    bool is_prepared = t->group->prepare != NULL;
    int err = is_prepared ? 0 : look_up_runs(t, all);

    if (!err)
        err = hd_admit_thread_find(t);
    if (!err)
        err = hd_admit_thread_check_hold(t);
    if (!err && is_prepared)
        err = prepare_runs(t, all);
    if (!err)
        err = find_people(t);
    if (!err)
        err = find_active(t);
    for (size_t i = 0; !err && i < t->count; i++)
        err = hd_admit_place_find(&t->runs[i]);
    return err ? err : find_slots(t);
}

/* ---- records ---------------------------------------------------------- */

/* Records of threads that an earlier version created lack `last_run`. */
static int find_last_run(struct hd_admit_attempt *t)
{
    struct hd_run_rec *runs;
    size_t count;
    int err;

    if (t->is_new_thread || t->thread.last_run.len > 0)
        return 0;
    err = hd_runs_list(t->group->app->store, t->group->principal, t->thread.id, NULL, 0, 1,
                       t->group->arena, &runs, &count, t->fault);
    if (!err && count > 0)
        t->thread.last_run = runs[0].run_id;
    return err;
}

/* Sets the order on the thread. The id sorts after earlier ids even if the clock went back. */
static int take_order(struct admitting *all, struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    struct hd_run_rec *rec = &run->a->run;
    int err = find_last_run(t);

    if (!err && hd_slice_cmp(rec->run_id, t->thread.last_run) <= 0)
        err = renew_id(all, run, t->thread.last_run);
    if (err)
        return err;
    rec->order = ++t->thread.run_order;
    t->thread.last_run = rec->run_id;
    if (!run->a->is_off_head)
        hd_queue_expect_order(run->a->app->queue, run->a->principal, rec->run_id, t->thread.id,
                              run->ns, rec->order);
    return 0;
}

static void fill_run(struct hd_admit_run *run, int64_t now)
{
    const struct hd_admission *a = run->a;
    struct hd_run_rec *rec = &run->a->run;

    rec->principal = a->principal;
    rec->actor = a->actor;
    rec->thread_id = run->attempt->thread.id;
    rec->assistant_id = run->assistant.id;
    rec->ns = run->ns;
    rec->status = hd_admit_place_begins_now(run) ? HD_RUN_STATE_RUNNING : HD_RUN_STATE_PENDING;
    rec->created_at = now + a->request->delay_us;
    rec->updated_at = now;
    rec->due_at = rec->created_at;
    rec->attempt = 1;
    rec->multitask = a->request->multitask;
    rec->is_off_head = a->is_off_head;
    rec->forks = a->forks;
    rec->asked = a->asked;
}

/* Lists the runs to cancel: all that are in flight on the line. */
static void list_cancelled(struct hd_admit_run *run)
{
    enum hd_multitask multitask = run->a->request->multitask;

    if (multitask != HD_MULTITASK_INTERRUPT && multitask != HD_MULTITASK_ROLLBACK)
        return;
    run->a->cancelled = run->in_flight;
    run->a->cancelled_count = run->in_flight_count;
}

static int make_run(struct admitting *all, struct hd_admit_run *run, int64_t now)
{
    int err = take_order(all, run);

    if (err)
        return err;
    fill_run(run, now);
    list_cancelled(run);
    return hd_admit_config_make(run);
}

/* The last run whose configuration and head the thread shows; NULL: all are off the head. */
static struct hd_admit_run *shown_run(struct hd_admit_attempt *t)
{
    size_t i = t->count;

    while (i > 0 && t->runs[i - 1].a->is_off_head)
        i--;
    return i > 0 ? &t->runs[i - 1] : NULL;
}

/* All runs see the thread as it was before them. */
static int make_records(struct hd_admit_attempt *t, struct admitting *all)
{
    struct hd_admit_run *shown = shown_run(t);
    int64_t now = hd_clock_now_us();
    int err = 0;

    for (size_t i = 0; !err && i < t->count; i++)
        err = make_run(all, &t->runs[i], now);
    if (!err && shown)
        err = hd_admit_config_keep(shown);
    if (!err)
        err = hd_admit_thread_fill(t, shown, now);
    for (size_t i = 0; !err && i < t->count; i++)
        err = hd_admit_config_put_secrets(&t->runs[i]);
    return err;
}

/* ---- the batch -------------------------------------------------------- */

static int add_run_record(struct hd_batch_builder *batch, struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    int err = run->slot.number ? hd_run_slot_take(batch, &run->slot, &run->a->run) : 0;

    run->a->run.guard = (struct hd_guard){t->thread.created_at, t->token};
    return err ? err : hd_run_add(batch, &run->a->run);
}

/* The label of a thread that begins with these runs. */
static int add_label(struct hd_batch_builder *batch, const struct hd_admit_attempt *t)
{
    if (t->count == 0 || hd_thread_head_is_set(&t->thread.head_before) ||
        hd_admit_config_is_temporary(t->runs))
        return 0;
    return hd_thread_texts_add_label(batch, t->group->principal, t->thread.id,
                                     t->runs->a->request->input);
}

static int fill_batch(struct hd_batch_builder *batch, struct hd_admit_attempt *t)
{
    const struct hd_admission_group *group = t->group;
    int err = group->extend ? group->extend(group->ctx, batch, &t->thread, t->fault) : 0;

    if (!err)
        err =
            t->is_new_thread ? hd_thread_add(batch, &t->thread) : hd_thread_put(batch, &t->thread);
    if (!err)
        err = add_label(batch, t);
    for (size_t i = 0; !err && i < t->count; i++)
        err = add_run_record(batch, &t->runs[i]);
    return err ? err : hd_admit_thread_add_hold(t, batch);
}

static int store_batch(struct hd_admit_attempt *t)
{
    struct hd_admission_group *group = t->group;
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err;

    hd_batch_init(&batch);
    err = fill_batch(&batch, t);
    if (!err)
        err = hd_thread_lane(group->arena, group->principal, t->thread.id, &lane);
    view = hd_batch_view(&batch);
    group->is_sent = !err;
    group->thread = t->thread;
    if (!err)
        err = hd_rows_apply(group->app->store, lane, &view, NULL, t->fault);
    hd_batch_fini(&batch);
    return err;
}

/* ---- attempts --------------------------------------------------------- */

static int try_once(struct hd_admit_attempt *t, struct admitting *all)
{
    int err = find_all(t, all);

    if (err)
        return err;
    hd_admit_thread_choose_token(t);
    err = make_records(t, all);
    return err ? err : store_batch(t);
}

static int admit_once(void *arg, struct heddle_error *fault)
{
    struct admitting *all = arg;
    struct hd_admit_attempt t = {.group = all->group, .fault = fault};
    int err;

    all->group->holder = hd_slice(NULL, 0);
    all->group->is_sent = false;
    all->known = all->group->prepare ? 0 : all->group->count;
    err = try_once(&t, all);
    for (size_t i = 0; i < t.count; i++) {
        hd_val_unref(t.runs[i].configurable);
        hd_val_unref(t.runs[i].secrets);
    }
    hd_val_unref(t.secrets);
    return err;
}

/* Copies the result of the group to its runs. */
static void share_result(const struct admitting *all)
{
    const struct hd_admission_group *group = all->group;

    for (size_t i = 0; i < all->known; i++) {
        struct hd_admission *a = group->runs[i];

        a->refusal = group->refusal;
        a->retry_s = group->retry_s;
        a->holder = group->holder;
        a->event_seq = group->thread.event_seq;
        a->is_sent = group->is_sent;
    }
}

/* The reply to the commit is missing: the runs are stored, or not. */
static void settle_later(const struct hd_admission_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        hd_unsettled_add(group->app->unsettled, &group->runs[i]->run, group->thread.event_seq);
}

int hd_admit_group(struct hd_admission_group *group, struct heddle_error *fault)
{
    struct admitting all = {.group = group};
    int err;

    group->refusal = group->retry_s = 0;
    err = hd_rows_change(group->app->store, admit_once, &all, fault);
    if (err)
        withdraw_runs(&all, 0);
    share_result(&all);
    if (!err && group->extend) /* the chat of a room has changed */
        hd_thread_indexer_note(group->app->texts, group->principal, group->thread_id);
    if (group->is_sent && hd_error_is_transient(err))
        settle_later(group);
    return group->refusal || group->holder.len > 0 ? 0 : err;
}

struct hd_admission_group hd_admit_group_of(struct hd_admission **run)
{
    const struct hd_admission *a = *run;

    return (struct hd_admission_group){.app = a->app,
                                       .arena = a->arena,
                                       .principal = a->principal,
                                       .actor = a->actor,
                                       .subject = a->subject,
                                       .stamps = a->stamps,
                                       .thread_id = a->thread_id,
                                       .creates_thread = a->request->creates_thread,
                                       .seen = a->seen,
                                       .runs = run,
                                       .count = 1};
}

int hd_admit(struct hd_admission *a, struct heddle_error *fault)
{
    struct hd_admission_group group = hd_admit_group_of(&a);

    return hd_admit_group(&group, fault);
}
