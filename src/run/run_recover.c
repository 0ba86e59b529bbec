/*
 * A server that uses its store alone recovers all runs in flight after its start: no other process
 * executes them. Where several share the store, a server first claims the thread (records/hold.h).
 * All writes check `rev`: a run may end twice by mistake, but is never lost.
 */
#include "run/run_recover.h"

#include "app/app.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "events/event_batch.h"
#include "events/event_log.h"
#include "records/line.h"
#include "records/record_internal.h"
#include "run/queue.h"
#include "run/room/room_answer.h"
#include "run/run_commit.h"
#include "run/run_webhook.h"
#include "store/rows.h"
#include "store/thread_fence.h"

#define GAVE_UP "the server died three times in the same step of this run"
#define GAVE_UP_ERROR "{\"error\":\"RuntimeError\",\"message\":\"" GAVE_UP "\"}"

#define MAX_END 4096 /* bytes of a last event */

struct recovery {
    struct hd_app *app;
    struct heddle *store;
    int64_t token; /* of the hold on the thread; 0: this server uses its store alone */
    hd_run_recovered_fn fn;
    void *arg;
    struct heddle_error *fault;
    bool is_handed_over;   /* the latest run */
    bool is_again;         /* after an error: its loss is counted perhaps, and it did not begin */
    size_t webhooks;       /* stored */
    struct hd_arena arena; /* of one run */
};

static int apply_recovery(struct recovery *r, const struct hd_run_rec *run,
                          const struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    struct heddle_error failure = {0};
    struct hd_slice lane;
    int err = hd_thread_lane(&r->arena, run->principal, run->thread_id, &lane);

    if (!err)
        err = hd_rows_apply(r->store, lane, &batch, NULL, &failure);
    if (err && err != HD_ECONFLICT)
        hd_error_set(r->fault, err, "%s", failure.code ? failure.text : hd_error_text(err));
    return err;
}

/* Deletes a run whose thread was deleted. */
static int drop(struct recovery *r, struct hd_run_rec *run)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_run_delete(&batch, run);
    if (!err)
        err = apply_recovery(r, run, &batch);
    hd_batch_fini(&batch);
    return err;
}

/*
 * The numbers of events that were visible but not stored are left out. The thread's record has the
 * gap before any run of the thread starts, because all of them continue behind it.
 */
static int begin_again(struct recovery *r, struct hd_thread_rec *thread, struct hd_run_rec *run)
{
    struct hd_batch_builder batch;
    int err;

    thread->event_seq = (int64_t)hd_event_log_gap((uint64_t)thread->event_seq, run->attempt + 1);
    run->attempt++;
    run->is_suspended = false;
    run->updated_at = hd_clock_now_us();
    hd_batch_init(&batch);
    err = hd_thread_put(&batch, thread);
    if (!err)
        err = hd_run_put(&batch, run);
    if (!err)
        err = apply_recovery(r, run, &batch);
    hd_batch_fini(&batch);
    return err;
}

static bool has_flag(const struct hd_run_rec *run, const char *name)
{
    struct hd_json json = {NULL};
    bool is_so = hd_json_parse(&json, run->kwargs, NULL) == 0 &&
                 hd_json_is_true(hd_json_get(hd_json_root(&json), hd_slice_cstr(name)));

    hd_json_fini(&json);
    return is_so;
}

/* True if the thread was created for this run and is deleted with it, whatever the outcome. */
static bool is_temporary(const struct hd_run_rec *run)
{
    return has_flag(run, "temporary");
}

/*
 * The line of the run ends with the error, and has no interrupts that could be answered. A run off
 * the head leaves it as it is.
 */
static int fail_line(struct recovery *r, struct hd_thread_rec *thread, const struct hd_run_rec *run,
                     bool is_busy, struct hd_lines *lines)
{
    struct hd_line_rec *line;
    struct hd_slice ns;
    int err = hd_run_line(run, &r->arena, &ns, r->fault);

    if (!err)
        err = hd_lines_read(r->store, thread, &r->arena, lines, r->fault);
    if (err)
        return err;
    if (run->is_off_head)
        return hd_lines_settle(lines, thread, is_busy, &r->arena);
    line = hd_lines_change(lines, thread, ns, &r->arena);
    if (!line)
        return HD_ENOMEM;
    line->status = HD_THREAD_ERROR;
    line->error = run->error;
    line->interrupts = hd_slice(NULL, 0);
    line->run_id = run->run_id;
    line->assistant_id = run->assistant_id;
    line->updated_at = run->updated_at;
    return hd_lines_settle(lines, thread, is_busy, &r->arena);
}

/* The last events of a run that is given up: its readers wait for them. */
static int write_last_events(const struct recovery *r, const struct hd_run_rec *run, uint64_t seq,
                             struct hd_event_log_page *page)
{
    const struct hd_config *config = r->app->config;
    struct hd_event_page_item item = {
        .seq = seq + 1, .run_id = run->run_id, .name = HD_S("error"), .data = run->error};
    struct hd_buf end;
    struct hd_jw jw;
    int err = hd_event_page_add(page, &item);

    hd_buf_init(&end, MAX_END);
    hd_jw_init(&jw, &end);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "run_id", run->run_id);
    hd_jw_key(&jw, HD_S("checkpoint_id"));
    hd_jw_null(&jw);
    hd_jw_put_string(&jw, "status", hd_slice_cstr(hd_run_state_name(run->status)));
    hd_jw_object_end(&jw);
    if (!err)
        err = hd_jw_finish(&jw);
    item = (struct hd_event_page_item){.seq = seq + 2,
                                       .is_last = true,
                                       .run_id = run->run_id,
                                       .name = !config || config->stream_end_event ? HD_S("end")
                                                                                   : HD_S(""),
                                       .data = hd_buf_slice(&end)};
    if (!err)
        err = hd_event_page_add(page, &item);
    hd_buf_fini(&end);
    return err;
}

/* Appends the page of a resumable run, and counts its events. */
static int add_last_events(const struct recovery *r, struct hd_batch_builder *batch,
                           struct hd_thread_rec *thread, const struct hd_run_rec *run)
{
    struct hd_event_log_page page = {.first = 0};
    int err;

    if (!has_flag(run, "resumable"))
        return 0;
    hd_buf_init(&page.data, 2 * MAX_END);
    err = write_last_events(r, run, (uint64_t)thread->event_seq, &page);
    if (!err)
        err = hd_event_log_page_put(batch, run->principal, run->thread_id, &page);
    thread->event_seq += 2;
    hd_buf_fini(&page.data);
    return err;
}

/* Its answer in a room, with the error. *events: to end, also after an error; or NULL. */
static int add_room_answer(struct recovery *r, struct hd_batch_builder *batch,
                           struct hd_thread_rec *thread, const struct hd_run_rec *run,
                           struct hd_event_batch **events)
{
    const struct hd_run_commit commit = {
        .run = run, .status = run->status, .error = run->error, .has_begun = true};

    if (!thread->is_room)
        return 0;
    *events = hd_event_batch_apart(thread->event_seq, HD_ROOM_ANSWER_EVENTS);
    return *events
               ? hd_room_answer_put(r->app, &commit, thread, *events, batch, &r->arena, r->fault)
               : HD_ENOMEM;
}

static const struct hd_outbox_row *webhook_of(struct recovery *r, const struct hd_run_rec *run)
{
    const struct hd_run_webhook_end end = {.status = HD_RUN_STATE_ERROR, .error = HD_S(GAVE_UP)};

    return hd_run_webhook_row(r->app, run, &end, &r->arena);
}

/* The thread was created for this run and goes with it. */
static int give_up_temporary(struct recovery *r, const struct hd_run_rec *run)
{
    const struct hd_run_commit commit = {
        .run = run, .deletes_thread = true, .webhook = webhook_of(r, run)};
    int err = hd_run_commit_store(r->app, &commit, r->fault);

    r->webhooks += !err && commit.webhook;
    return err;
}

/* Ends the run with an error. The thread gets status `error` unless it has other runs. */
static int give_up_run(struct recovery *r, struct hd_thread_rec *thread, struct hd_run_rec *run)
{
    struct hd_event_batch *events = NULL;
    const struct hd_outbox_row *webhook = webhook_of(r, run);
    struct hd_batch_builder batch;
    struct hd_run_rec *active;
    struct hd_lines lines;
    size_t count;
    int err = hd_runs_active(r->store, run->principal, run->thread_id, &r->arena, &active, &count,
                             r->fault);

    if (err)
        return err;
    run->status = HD_RUN_STATE_ERROR;
    run->due_at = 0;
    run->updated_at = thread->updated_at = hd_clock_now_us();
    run->error = HD_S(GAVE_UP_ERROR);
    err = fail_line(r, thread, run, count > 1, &lines);
    if (err)
        return err;
    thread->has_before = thread->has_before && count > 1;
    thread->event_seq = (int64_t)hd_event_log_gap((uint64_t)thread->event_seq, run->attempt + 1);
    hd_batch_init(&batch);
    err = add_last_events(r, &batch, thread, run);
    if (!err)
        err = add_room_answer(r, &batch, thread, run, &events);
    if (!err)
        err = hd_thread_put(&batch, thread);
    if (!err)
        err = hd_lines_put(&batch, &lines);
    if (!err)
        err = hd_run_put(&batch, run);
    if (!err && webhook)
        err = hd_outbox_put(&batch, webhook);
    if (!err)
        err = apply_recovery(r, run, &batch);
    hd_event_batch_end(events, !err);
    r->webhooks += !err && webhook;
    hd_batch_fini(&batch);
    return err;
}

static int hand_over(struct recovery *r, const struct hd_run_rec *run, int64_t event_seq)
{
    bool is_continued = false;
    int err = 0;

    if (run->status == HD_RUN_STATE_RUNNING)
        err = hd_run_commit_has_checkpoint(r->store, run, &is_continued, r->fault);
    if (!err)
        err = r->fn(r->arg, run, event_seq, is_continued);
    r->is_handed_over = !err;
    return err;
}

static int recover(struct recovery *r, struct hd_run_rec *run)
{
    struct hd_thread_rec thread;
    int err =
        hd_thread_read(r->store, run->principal, run->thread_id, &r->arena, &thread, r->fault);

    if (err == HD_ENOTFOUND)
        return drop(r, run);
    if (!err)
        run->guard = (struct hd_guard){thread.created_at, r->token};
    if (!err && run->status == HD_RUN_STATE_RUNNING && !run->is_suspended && !r->is_again)
        err = hd_run_losses_add(&run->losses, r->store, run->principal, run->thread_id, run->run_id,
                                r->fault);
    if (!err && run->status == HD_RUN_STATE_RUNNING) {
        bool is_lost = run->losses.count >= HD_MAX_LOSSES;

        if (is_lost && is_temporary(run))
            return give_up_temporary(r, run);
        if (is_lost)
            return give_up_run(r, &thread, run);
        err = begin_again(r, &thread, run);
    }
    return err ? err : hand_over(r, run, thread.event_seq);
}

struct run_recovery {
    struct recovery *recovery;
    struct hd_slice principal, thread, run_id; /* the record is read again */
};

static int recover_once(void *arg, struct heddle_error *fault)
{
    const struct run_recovery *of = arg;
    struct recovery *r = of->recovery;
    struct hd_run_rec run;
    int err;

    hd_arena_reset(&r->arena);
    err = hd_run_read(r->store, of->principal, of->thread, of->run_id, &r->arena, &run, fault);
    if (err == HD_ENOTFOUND || (!err && run.due_at == 0))
        return 0;
    return err ? err : recover(r, &run);
}

static int on_run_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct run_recovery of = {.recovery = arg,
                              .principal = cells[HD_RUNS_PRINCIPAL].bytes,
                              .thread = cells[HD_RUNS_THREAD].bytes,
                              .run_id = cells[HD_RUNS_ID].bytes};

    (void)which;
    return hd_rows_change(of.recovery->store, recover_once, &of, of.recovery->fault);
}

static int recover_all(struct recovery *r, enum hd_run_state state)
{
    const struct hd_cell prefix = hd_cell_bytes(hd_slice_cstr(hd_run_state_name(state)));
    struct hd_query query = {
        .table = HD_RUNS, .index = HD_RUNS_BY_STATUS, .prefix = &prefix, .prefix_count = 1};

    return hd_rows_scan(r->store, query, on_run_row, r, r->fault);
}

int hd_run_recover(struct hd_app *app, hd_run_recovered_fn fn, void *arg,
                   struct heddle_error *fault)
{
    struct recovery r = {.app = app, .store = app->store, .fn = fn, .arg = arg, .fault = fault};
    int err;

    hd_arena_init(&r.arena, SIZE_MAX / 2);
    err = recover_all(&r, HD_RUN_STATE_RUNNING);
    if (!err)
        err = recover_all(&r, HD_RUN_STATE_PENDING);
    hd_arena_fini(&r.arena);
    return err;
}

/* ---- take-over -------------------------------------------------------- */

struct hd_run_rest {
    struct hd_app *app;
    struct hd_slice principal, thread;
    const struct hd_hold *hold; /* as it was found */
    int64_t token;              /* the new one */
    bool is_claimed;
    struct hd_arena keys;  /* has the principal and the thread */
    struct hd_arena arena; /* of one attempt */
    /* The runs in flight when the thread was claimed; from `next` on they are announced. */
    struct hd_run_rec *runs;
    size_t run_count, next;
    struct hd_arena run_arena;
};

static void withdraw_runs(struct hd_run_rest *t)
{
    for (; t->next < t->run_count; t->next++)
        hd_queue_unexpect(t->app->queue, t->principal, t->runs[t->next].run_id);
    t->run_count = t->next = 0;
}

static int announce_run(struct hd_run_rest *t, const struct hd_run_rec *run,
                        struct heddle_error *fault)
{
    struct hd_slice ns;
    int err = hd_run_line(run, &t->run_arena, &ns, fault);

    if (!err)
        err = hd_queue_expect(t->app->queue, t->principal, run->run_id);
    if (!err && !run->is_off_head)
        hd_queue_expect_order(t->app->queue, t->principal, run->run_id, t->thread, ns, run->order);
    return err;
}

/*
 * Lists the runs in flight and announces them: as soon as the thread is claimed, this server admits
 * runs on it, which have to wait for the earlier ones.
 */
static int announce_runs(struct hd_run_rest *t, struct heddle_error *fault)
{
    size_t count = 0;
    int err;

    withdraw_runs(t);
    hd_arena_reset(&t->run_arena);
    err = hd_runs_active(t->app->store, t->principal, t->thread, &t->run_arena, &t->runs, &count,
                         fault);
    for (size_t i = 0; !err && i < count; i++) {
        err = announce_run(t, &t->runs[i], fault);
        t->run_count += !err;
    }
    return err;
}

static int write_hold(struct hd_run_rest *t, struct hd_thread_rec *record,
                      struct heddle_error *fault)
{
    struct hd_slice self = hd_cluster_self(t->app->cluster), lane;
    const struct hd_hold hold = {.token = t->token, .server = self, .last = self};
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err = hd_thread_lane(&t->arena, t->principal, t->thread, &lane);

    hd_batch_init(&batch);
    if (!err && t->hold->token)
        err = hd_hold_expect(&batch, t->principal, t->thread, t->hold->token);
    if (!err)
        err = hd_hold_put(&batch, t->principal, t->thread, &hold);
    if (!err)
        err = hd_thread_put(&batch, record);
    if (!err)
        err = hd_thread_fence_renew(t->app->store, &batch, lane, fault);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(t->app->store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* A deleted thread has no hold; its row went with it. */
static int claim_once(void *arg, struct heddle_error *fault)
{
    struct hd_run_rest *t = arg;
    struct hd_thread_rec record;
    struct hd_hold hold;
    int err;

    hd_arena_reset(&t->arena);
    err = hd_hold_read(t->app->store, t->principal, t->thread, &t->arena, &hold, fault);
    if (!err && hold.token == t->token) {
        t->is_claimed = true; /* by a commit whose reply was lost */
        return 0;
    }
    if (err || hold.token != t->hold->token)
        return err;
    err = hd_thread_read(t->app->store, t->principal, t->thread, &t->arena, &record, fault);
    if (!err)
        err = announce_runs(t, fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    err = write_hold(t, &record, fault);
    t->is_claimed = !err;
    return err;
}

/* Releases the thread, unless a run was admitted meanwhile. */
static int release_once(void *arg, struct heddle_error *fault)
{
    struct hd_run_rest *t = arg;
    struct hd_batch_builder batch;
    struct hd_thread_rec record;
    struct hd_run_rec *active;
    struct hd_batch view;
    struct hd_slice lane;
    size_t count = 0;
    int err;

    hd_arena_reset(&t->arena);
    err = hd_thread_read(t->app->store, t->principal, t->thread, &t->arena, &record, fault);
    if (!err)
        err = hd_runs_active(t->app->store, t->principal, t->thread, &t->arena, &active, &count,
                             fault);
    if (err || count > 0)
        return err == HD_ENOTFOUND ? 0 : err;
    hd_batch_init(&batch);
    err = hd_thread_lane(&t->arena, t->principal, t->thread, &lane);
    if (!err)
        err = hd_hold_release(&batch, t->principal, t->thread, t->token);
    if (!err)
        err = hd_thread_put(&batch, &record);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(t->app->store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* Hands over the announced runs; withdraws those that end here. */
static int recover_announced(struct hd_run_rest *t, struct recovery *r)
{
    for (; t->next < t->run_count; t->next++) {
        struct hd_slice run_id = t->runs[t->next].run_id;
        struct run_recovery of = {
            .recovery = r, .principal = t->principal, .thread = t->thread, .run_id = run_id};
        int err;

        r->is_handed_over = false;
        err = hd_rows_change(r->store, recover_once, &of, r->fault);
        if (err)
            return err;
        if (!r->is_handed_over)
            hd_queue_unexpect(t->app->queue, t->principal, run_id);
        r->is_again = false;
    }
    return 0;
}

static int recover_claimed(struct hd_run_rest *t, bool is_again, hd_run_recovered_fn fn, void *arg,
                           size_t *webhooks, struct heddle_error *fault)
{
    struct recovery r = {.app = t->app,
                         .store = t->app->store,
                         .token = t->token,
                         .fn = fn,
                         .arg = arg,
                         .fault = fault,
                         .is_again = is_again};
    int err;

    hd_arena_init(&r.arena, SIZE_MAX / 2);
    err = recover_announced(t, &r);
    hd_arena_fini(&r.arena);
    *webhooks += r.webhooks;
    return err ? err : hd_rows_change(t->app->store, release_once, t, fault);
}

void hd_run_recover_free(struct hd_run_rest *rest)
{
    if (!rest)
        return;
    withdraw_runs(rest);
    hd_arena_fini(&rest->run_arena);
    hd_arena_fini(&rest->arena);
    hd_arena_fini(&rest->keys);
    hd_free(rest);
}

static struct hd_run_rest *create_rest(struct hd_app *app, struct hd_slice principal,
                                       struct hd_slice thread)
{
    struct hd_run_rest *rest = hd_calloc(1, sizeof(*rest));

    if (!rest)
        return NULL;
    rest->app = app;
    rest->token = hd_hold_token();
    hd_arena_init(&rest->keys, SIZE_MAX / 2);
    hd_arena_init(&rest->arena, SIZE_MAX / 2);
    hd_arena_init(&rest->run_arena, SIZE_MAX / 2);
    if (hd_arena_copy(&rest->keys, principal, &rest->principal) ||
        hd_arena_copy(&rest->keys, thread, &rest->thread)) {
        hd_run_recover_free(rest);
        return NULL;
    }
    return rest;
}

int hd_run_recover_thread(struct hd_app *app, struct hd_slice principal, struct hd_slice thread,
                          const struct hd_hold *hold, hd_run_recovered_fn fn, void *arg,
                          size_t *webhooks, struct hd_run_rest **rest, struct heddle_error *fault)
{
    struct hd_run_rest *t = create_rest(app, principal, thread);
    int err;

    *rest = NULL;
    if (!t)
        return HD_ENOMEM;
    t->hold = hold;
    err = hd_rows_change(app->store, claim_once, t, fault);
    t->hold = NULL;
    if (!err && t->is_claimed)
        err = recover_claimed(t, false, fn, arg, webhooks, fault);
    if (err)
        *rest = t;
    else
        hd_run_recover_free(t);
    return err;
}

int hd_run_recover_rest(struct hd_run_rest *rest, hd_run_recovered_fn fn, void *arg,
                        size_t *webhooks, struct heddle_error *fault)
{
    struct hd_hold hold;
    int err;

    hd_arena_reset(&rest->arena);
    err = hd_hold_read(rest->app->store, rest->principal, rest->thread, &rest->arena, &hold, fault);
    if (err || hold.token != rest->token)
        return err; /* the claim was not stored, or another server has taken over */
    return recover_claimed(rest, true, fn, arg, webhooks, fault);
}
