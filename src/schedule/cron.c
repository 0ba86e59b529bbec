#include "schedule/cron.h"

#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "gate/audit.h"
#include "gate/limits.h"
#include "records/hold.h"
#include "records/participants.h"
#include "run/admit.h"
#include "run/queue.h"
#include "schedule/cron_schedule.h"
#include "store/rows.h"

#define MAX_SLEEP_US (60 * INT64_C(1000000))
#define CLUSTER_SLEEP_US INT64_C(1000000) /* other servers create crons and give threads back */
#define MAX_FIRED 100                     /* per check; then it checks again */
#define MAX_ARENA ((size_t)1 << 30)

/* ---- planning --------------------------------------------------------- */

int hd_scheduler_plan(struct hd_cron_rec *cron, int64_t after, struct heddle_error *fault)
{
    struct hd_schedule schedule;
    struct hd_tz *tz = NULL;
    int64_t next = 0;
    int err = hd_schedule_parse(&schedule, cron->schedule, fault);

    if (!err)
        err = hd_tz_open(&tz, NULL, cron->timezone, fault);
    if (err)
        return err;
    err = hd_schedule_next(&schedule, tz, after, &next, fault);
    hd_tz_close(tz);
    if (err == HD_ENOTFOUND) {
        next = 0;
        err = 0;
    }
    if (!cron->is_enabled || (cron->end_at != 0 && next > cron->end_at))
        next = 0;
    if (!err)
        cron->next_at = next;
    return err;
}

/* ---- firing (store threads) ------------------------------------------- */

/* A due cron. */
struct due {
    struct due *next;
    struct hd_slice principal;
    struct hd_slice id;
};

struct firing {
    struct hd_app *app;
    int64_t now;
    size_t limit;
    hd_scheduler_fired_fn fn;
    void *arg;
    struct hd_arena arena;
    struct due *first;
    struct due **tail;
    size_t count;
    int64_t next;
};

static int on_due(void *arg, const struct hd_cron_rec *cron)
{
    struct firing *firing = arg;
    struct due *due;

    if (cron->next_at > firing->now || firing->count == firing->limit) {
        firing->next = cron->next_at;
        return 1;
    }
    due = hd_arena_calloc(&firing->arena, 1, sizeof(*due));
    if (!due || hd_arena_copy(&firing->arena, cron->principal, &due->principal) ||
        hd_arena_copy(&firing->arena, cron->id, &due->id))
        return HD_ENOMEM;
    *firing->tail = due;
    firing->tail = &due->next;
    firing->count++;
    return 0;
}

static int apply_cron(struct hd_app *app, const struct hd_cron_rec *cron,
                      struct hd_batch_builder *batch, struct heddle_error *fault)
{
    struct hd_batch view = hd_batch_view(batch);

    return hd_rows_apply(app->store, cron->id, &view, NULL, fault);
}

/* Appends the row with the next time; it expects the revision that was read. */
static int put_advanced(struct hd_batch_builder *batch, struct hd_cron_rec *cron, int64_t now,
                        struct heddle_error *fault)
{
    struct heddle_error cause = {0};
    int err = hd_scheduler_plan(cron, now, &cause);

    if (err == HD_EINVAL) { /* the time zone no longer exists on this host */
        hd_log(HD_LOG_ERROR, "cron", "%.*s never fires again: %s", (int)cron->id.len, cron->id.ptr,
               cause.text);
        cron->next_at = 0;
        err = 0;
    }
    if (err)
        return cause.code ? hd_error_set(fault, err, "%s", cause.text) : err;
    return hd_cron_put(batch, cron);
}

/* Advances a cron without a run. */
static int advance(struct hd_app *app, struct hd_cron_rec *cron, int64_t now,
                   struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = put_advanced(&batch, cron, now, fault);
    if (!err)
        err = apply_cron(app, cron, &batch, fault);
    hd_batch_fini(&batch);
    return err == HD_ECONFLICT ? 0 : err; /* another process advanced or changed it */
}

/* Deletes a cron whose thread was deleted or is no longer shared with the cron's creator. */
static int forget(struct hd_app *app, const struct hd_cron_rec *cron, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_log(HD_LOG_INFO, "cron", "%.*s is deleted: its thread is not available", (int)cron->id.len,
           cron->id.ptr);
    hd_batch_init(&batch);
    err = hd_cron_delete(&batch, cron->principal, cron->id);
    if (!err)
        err = apply_cron(app, cron, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/*
 * Finds the owner of the cron's thread: the cron's creator, or a user that shares the thread with
 * it. Threads shared with an organisation do not count: the creator may have left it.
 */
static int find_owner(struct firing *firing, const struct hd_cron_rec *cron, struct hd_slice *out,
                      struct heddle_error *fault)
{
    struct heddle *store = firing->app->store;
    struct hd_thread_rec thread;
    enum hd_role role = HD_ROLE_NONE;
    int err;

    *out = cron->principal;
    if (cron->thread_id.len == 0)
        return 0;
    err = hd_thread_read(store, cron->principal, cron->thread_id, &firing->arena, &thread, fault);
    if (err != HD_ENOTFOUND || cron->principal.len == 0)
        return err;
    *fault = (struct heddle_error){0};
    err = hd_participation_find(store, cron->principal, NULL, 0, cron->thread_id, &firing->arena,
                                out, &role, fault);
    return !err && role < HD_ROLE_EDITOR ? HD_ENOTFOUND : err;
}

/* The cron's owner as clients see it; empty: authentication is off. */
static int read_subject(struct firing *firing, const struct hd_cron_rec *cron, struct hd_slice *out,
                        struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err = 0;

    *out = hd_slice(NULL, 0);
    if (cron->principal.len == 0 || cron->metadata.len == 0)
        return 0;
    err = hd_json_parse(&json, cron->metadata, fault);
    if (!err)
        err = hd_arena_copy(&firing->arena,
                            hd_json_string(hd_json_get(hd_json_root(&json), HD_S("owner"))), out);
    hd_json_fini(&json);
    return err;
}

/* ---- one firing ------------------------------------------------------- */

/* True if the cron was deleted, changed or fired since. */
static bool is_past(const struct firing *firing, const struct hd_cron_rec *cron, int err)
{
    return err == HD_ENOTFOUND || (!err && (cron->next_at == 0 || cron->next_at > firing->now));
}

struct advancing {
    struct firing *firing;
    const struct due *due;
    bool is_over; /* another process was faster */
};

/* Reads the cron again in each attempt: the batch that stores the run expects it as it is now. */
static int add_advance(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                       struct heddle_error *fault)
{
    struct advancing *advancing = ctx;
    struct firing *firing = advancing->firing;
    struct hd_cron_rec cron;
    int err = hd_cron_read(firing->app->store, advancing->due->principal, advancing->due->id,
                           &batch->arena, &cron, fault);

    (void)thread;
    advancing->is_over = is_past(firing, &cron, err);
    if (advancing->is_over)
        return HD_EEXISTS;
    return err ? err : put_advanced(batch, &cron, firing->now, fault);
}

static int read_request(const struct hd_cron_rec *cron, struct hd_json *json,
                        struct hd_run_request *request, struct heddle_error *fault)
{
    int err = hd_json_parse(json, cron->payload, fault);

    if (!err)
        err = hd_run_request_read(request, hd_json_root(json), fault);
    request->keeps_thread = cron->keeps_threads;
    return err;
}

static int admit_and_advance(struct hd_admission *admission, struct advancing *advancing,
                             struct heddle_error *fault)
{
    struct hd_admission_group group = hd_admit_group_of(&admission);

    group.extend = add_advance;
    group.ctx = advancing;
    return hd_admit_group(&group, fault);
}

/* Admits the run, in the batch that advances the cron. */
static int admit(struct advancing *advancing, const struct hd_cron_rec *cron,
                 struct hd_admission *admission, struct heddle_error *fault)
{
    struct firing *firing = advancing->firing;
    struct hd_json json = {NULL};
    struct hd_run_request request = {0};
    int err = hd_limits_room(firing->app->limits, firing->app->store, admission->principal,
                             &admission->retry_s, fault);

    if (!err && admission->retry_s > 0)
        err = hd_error_set(fault, HD_ELIMIT, "too many bytes (limits.bytes)");
    if (!err)
        err = read_subject(firing, cron, &admission->subject, fault);
    if (!err)
        err = read_request(cron, &json, &request, fault);
    admission->request = &request;
    if (!err)
        err = admit_and_advance(admission, advancing, fault);
    if (!err && !admission->refusal && admission->holder.len == 0)
        firing->fn(firing->arg, admission);
    admission->request = NULL;
    hd_json_fini(&json);
    return err;
}

/* A firing without a run is logged, since no request waits for it. */
static int fire_on(struct firing *firing, const struct due *due, struct hd_cron_rec *cron,
                   struct hd_slice owner, struct heddle_error *fault)
{
    struct advancing advancing = {.firing = firing, .due = due};
    struct hd_admission admission = {.app = firing->app,
                                     .arena = &firing->arena,
                                     .principal = owner,
                                     .actor = cron->principal,
                                     .thread_id = cron->thread_id,
                                     .cron_id = cron->id};
    struct heddle_error cause = {0};
    int err = admit(&advancing, cron, &admission, &cause);

    if ((!err && !admission.refusal) || advancing.is_over)
        return 0; /* with a new holder: that one fires it */
    hd_log(HD_LOG_WARN, "cron", "%.*s: no run: %s", (int)cron->id.len, cron->id.ptr,
           cause.code ? cause.text : hd_error_text(err));
    if (err == HD_EUNAVAILABLE || err == HD_EFULL)
        return hd_error_set(fault, err, "%s", cause.code ? cause.text : hd_error_text(err));
    if (err == HD_EBUSY || err == HD_ETAKEN)
        return 0; /* it stays due */
    return advance(firing->app, cron, firing->now, fault);
}

/*
 * In a cluster the holder of a thread fires its crons, so that the run enters the holder's queue;
 * the leader fires all others.
 */
static int find_is_ours(const struct firing *firing, const struct hd_cron_rec *cron,
                        struct hd_slice owner, struct hd_arena *arena, bool *out,
                        struct heddle_error *fault)
{
    struct hd_cluster *cluster = firing->app->cluster;
    struct hd_hold hold = {.token = 0};
    int err = 0;

    if (hd_cluster_is_on(cluster) && cron->thread_id.len > 0)
        err = hd_hold_read(firing->app->store, owner, cron->thread_id, arena, &hold, fault);
    *out = hold.token ? hd_slice_eq(hold.server, hd_cluster_self(cluster))
                      : hd_cluster_is_leader(cluster);
    return err;
}

static int fire(struct firing *firing, const struct due *due, struct heddle_error *fault)
{
    struct hd_app *app = firing->app;
    struct heddle_error cause = {0};
    struct hd_cron_rec cron;
    struct hd_slice owner;
    bool is_ours = false, has_ended;
    int err = hd_cron_read(app->store, due->principal, due->id, &firing->arena, &cron, fault);

    if (err || is_past(firing, &cron, err))
        return err == HD_ENOTFOUND ? 0 : err;
    err = find_owner(firing, &cron, &owner, &cause);
    if (err == HD_ENOTFOUND)
        return hd_cluster_is_leader(app->cluster) ? forget(app, &cron, fault) : 0;
    if (!err)
        err = find_is_ours(firing, &cron, owner, &firing->arena, &is_ours, &cause);
    if (err)
        return hd_error_set(fault, err, "%s", cause.code ? cause.text : hd_error_text(err));
    if (!is_ours)
        return 0;
    has_ended = !cron.is_enabled || (cron.end_at != 0 && cron.end_at < firing->now);
    return has_ended ? advance(app, &cron, firing->now, fault)
                     : fire_on(firing, due, &cron, owner, fault);
}

int hd_scheduler_fire(struct hd_app *app, int64_t now, size_t limit, hd_scheduler_fired_fn fn,
                      void *arg, int64_t *next, struct heddle_error *fault)
{
    struct firing firing = {.app = app, .now = now, .limit = limit, .fn = fn, .arg = arg};
    int err;

    hd_arena_init(&firing.arena, MAX_ARENA);
    firing.tail = &firing.first;
    err = hd_crons_due(app->store, INT64_MAX, on_due, &firing, fault);
    for (const struct due *due = firing.first; !err && due; due = due->next)
        err = fire(&firing, due, fault);
    hd_arena_fini(&firing.arena);
    *next = firing.next;
    return err;
}

/* ---- the scheduler (loop) --------------------------------------------- */

/* An admitted run that is not in the queue yet. */
struct fired {
    struct fired *next;
    struct hd_run_rec run;
    int64_t event_seq;
    struct hd_slice *cancelled;
    size_t cancelled_count;
};

struct hd_scheduler {
    struct hd_app *app;
    uv_timer_t timer;
    bool is_looking;  /* a store thread checks for due crons */
    bool looks_again; /* a cron has changed since: check again */
    bool is_stopped;
    void (*stopped)(void *ctx);
    void *stopped_ctx;

    /* State of the check; belongs to the store thread while is_looking. */
    struct hd_arena arena;
    struct fired *fired;
    struct fired **tail;
    int64_t next_at;
    int err;
    struct heddle_error fault;
};

static int keep_fired(struct hd_scheduler *s, const struct hd_admission *admission,
                      struct fired *fired)
{
    int err = hd_run_rec_copy(&s->arena, &admission->run, &fired->run);

    fired->event_seq = admission->event_seq;
    fired->cancelled =
        hd_arena_calloc(&s->arena, admission->cancelled_count + 1, sizeof(*fired->cancelled));
    if (!fired->cancelled)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < admission->cancelled_count; i++) {
        err = hd_arena_copy(&s->arena, admission->cancelled[i], &fired->cancelled[i]);
        fired->cancelled_count += !err;
    }
    return err;
}

/* Without memory, the run stays stored and the next process starts it. */
static void on_fired(void *arg, const struct hd_admission *admission)
{
    struct hd_scheduler *s = arg;
    struct fired *fired = hd_arena_calloc(&s->arena, 1, sizeof(*fired));

    if (!fired || keep_fired(s, admission, fired)) {
        hd_log(HD_LOG_ERROR, "cron", "run %.*s waits for a restart: out of memory",
               (int)admission->run.run_id.len, admission->run.run_id.ptr);
        hd_queue_unexpect(s->app->queue, admission->run.principal, admission->run.run_id);
        return;
    }
    *s->tail = fired;
    s->tail = &fired->next;
}

static void look_for_due(void *arg)
{
    struct hd_scheduler *s = arg;

    s->err = hd_scheduler_fire(s->app, hd_clock_now_us(), MAX_FIRED, on_fired, s, &s->next_at,
                               &s->fault);
}

static void audit_fired(struct hd_app *app, const struct hd_run_rec *run)
{
    const struct hd_audit_object objects[] = {{HD_S("thread_id"), run->thread_id},
                                              {HD_S("run_id"), run->run_id}};
    const struct hd_audit_entry entry = {.act_for = run->actor,
                                         .action = HD_S("cron"),
                                         .objects = objects,
                                         .object_count = HD_COUNT(objects)};

    hd_audit_note(app->audit, &entry);
}

static void enqueue(struct hd_app *app, const struct fired *fired)
{
    const struct hd_run_rec *run = &fired->run;
    enum hd_cancel action =
        run->multitask == HD_MULTITASK_ROLLBACK ? HD_CANCEL_ROLLBACK : HD_CANCEL_INTERRUPT;
    int err = hd_queue_add(app->queue, run, fired->event_seq, false);

    audit_fired(app, run);
    if (err)
        hd_log(HD_LOG_ERROR, "cron", "run %.*s waits for a restart: %s", (int)run->run_id.len,
               run->run_id.ptr, hd_error_text(err));
    for (size_t i = 0; i < fired->cancelled_count; i++)
        hd_queue_cancel(app->queue, run->principal, run->thread_id, fired->cancelled[i], action);
}

static void on_cron_timer(uv_timer_t *timer)
{
    hd_scheduler_wake(timer->data);
}

static void sleep_until_next(struct hd_scheduler *s)
{
    int64_t most = hd_cluster_is_on(s->app->cluster) ? CLUSTER_SLEEP_US : MAX_SLEEP_US;
    int64_t wait = s->next_at != 0 && !s->err ? s->next_at - hd_clock_now_us() : most;

    if (wait > most)
        wait = most;
    uv_timer_start(&s->timer, on_cron_timer, wait > 0 ? (uint64_t)wait / 1000 + 1 : 0, 0);
}

static void on_looked(void *arg)
{
    struct hd_scheduler *s = arg;
    bool again = s->looks_again;

    s->is_looking = s->looks_again = false;
    if (s->err)
        hd_log(HD_LOG_ERROR, "cron", "cannot read due crons: %s",
               s->fault.code ? s->fault.text : hd_error_text(s->err));
    /* After a stop, the next process starts the admitted runs. */
    for (const struct fired *fired = s->fired; fired && !s->is_stopped; fired = fired->next)
        enqueue(s->app, fired);
    hd_arena_fini(&s->arena);
    if (s->is_stopped)
        s->stopped(s->stopped_ctx);
    else if (again)
        hd_scheduler_wake(s);
    else
        sleep_until_next(s);
}

/* False: this server is neither the leader nor the holder of a thread. */
static bool has_work(const struct hd_scheduler *s)
{
    const struct hd_queue_counts counts = hd_queue_counts(s->app->queue);

    return hd_cluster_is_leader(s->app->cluster) || counts.running + counts.pending > 0;
}

void hd_scheduler_wake(struct hd_scheduler *s)
{
    int err;

    if (s->is_stopped)
        return;
    if (s->is_looking) {
        s->looks_again = true;
        return;
    }
    uv_timer_stop(&s->timer);
    if (!has_work(s)) {
        s->next_at = 0;
        sleep_until_next(s);
        return;
    }
    hd_arena_init(&s->arena, MAX_ARENA);
    s->fired = NULL;
    s->tail = &s->fired;
    s->fault = (struct heddle_error){0};
    err = hd_defer_run(s->app->defer, look_for_due, on_looked, s);
    s->is_looking = !err;
    if (err) {
        s->next_at = 0;
        sleep_until_next(s);
    }
}

int hd_scheduler_create(struct hd_app *app, struct hd_scheduler **out)
{
    struct hd_scheduler *s = hd_calloc(1, sizeof(*s));

    if (!s)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &s->timer)) {
        hd_free(s);
        return HD_EIO;
    }
    s->timer.data = s;
    s->app = app;
    *out = s;
    return 0;
}

static void on_scheduler_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_scheduler_destroy(struct hd_scheduler *s)
{
    if (s)
        uv_close((uv_handle_t *)&s->timer, on_scheduler_closed);
}

int hd_scheduler_stop(struct hd_scheduler *s, void (*done)(void *ctx), void *ctx)
{
    s->is_stopped = true;
    s->stopped = done;
    s->stopped_ctx = ctx;
    uv_timer_stop(&s->timer);
    return s->is_looking ? 0 : HD_READY;
}
