/* Existing runs: read, cancel, delete. */
#include <heddle.h>
#include <string.h>

#include "api/request/access.h"
#include "api/api.h"
#include "api/peer_cancel.h"
#include "api/request/authorize.h"
#include "api/request/forward.h"
#include "api/run_view.h"
#include "api/state/branches.h"
#include "base/clock.h"
#include "config/config.h"
#include "records/record.h"
#include "records/run_kwargs.h"
#include "run/queue.h"
#include "store/rows.h"
#include "webhook/outbox.h"

/* ---- views ------------------------------------------------------------ */

struct run_view {
    const char *name;
    void (*put)(struct hd_jw *jw, const struct hd_run_rec *run); /* NULL: kwargs */
};

static void put_run_id(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_string(jw, run->run_id);
}
static void put_thread_id(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_string(jw, run->thread_id);
}
static void put_assistant_id(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_string(jw, run->assistant_id);
}
static void put_run_created_at(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_timestamp(jw, run->created_at);
}
static void put_run_updated_at(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_timestamp(jw, run->updated_at);
}
static void put_status(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_string(jw, hd_slice_cstr(hd_run_state_name(run->status)));
}
static void put_run_metadata(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_raw_or(jw, run->metadata, "{}");
}
static void put_multitask(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_string(jw, hd_slice_cstr(hd_multitask_name(run->multitask)));
}

static void put_kept_receipt(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_raw_or(jw, run->receipt, "null");
}

static void put_last_checkpoint(struct hd_jw *jw, const struct hd_run_rec *run)
{
    if (run->checkpoint_id.len > 0)
        hd_jw_string(jw, run->checkpoint_id);
    else
        hd_jw_null(jw);
}

static const struct run_view views[] = {
    {"run_id", put_run_id},
    {"thread_id", put_thread_id},
    {"assistant_id", put_assistant_id},
    {"created_at", put_run_created_at},
    {"updated_at", put_run_updated_at},
    {"status", put_status},
    {"metadata", put_run_metadata},
    {"kwargs", NULL},
    {"multitask_strategy", put_multitask},
    {"checkpoint_id", put_last_checkpoint},
    {"receipt", put_kept_receipt},
};

static bool is_named(const char *name, const struct hd_slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(names[i], hd_slice_cstr(name)))
            return true;
    }
    return count == 0;
}

void hd_run_view_some(struct hd_call *call, const struct hd_run_rec *run,
                      const struct hd_slice *names, size_t count)
{
    struct hd_jw *jw = &call->jw;

    hd_jw_object(jw);
    for (size_t i = 0; i < HD_COUNT(views); i++) {
        if (!is_named(views[i].name, names, count) ||
            (views[i].put == put_kept_receipt && run->receipt.len == 0))
            continue;
        hd_jw_key(jw, hd_slice_cstr(views[i].name));
        if (views[i].put)
            views[i].put(jw, run);
        else
            hd_run_put_kwargs(jw, run->kwargs, call->app->config->namespaces_show);
    }
    hd_jw_object_end(jw);
}

void hd_run_view(struct hd_call *call, const struct hd_run_rec *run)
{
    hd_run_view_some(call, run, NULL, 0);
}

/* ---- one -------------------------------------------------------------- */

/* The run of the path; HD_ENOTFOUND sets `Run not found` in call->fault. */
static int read_run(struct hd_call *call, struct hd_run_rec *run)
{
    struct hd_slice thread_id = {NULL, 0}, run_id = {NULL, 0};
    int err = hd_path_uuid(call, 0, "thread_id", &thread_id);

    if (!err)
        err = hd_path_uuid(call, 1, "run_id", &run_id);
    if (!err)
        err = hd_run_read(call->app->store, call->principal, thread_id, run_id, call->arena, run,
                          &call->fault);
    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        return hd_error_set(&call->fault, HD_ENOTFOUND, "Run not found");
    }
    return err;
}

static struct hd_step get_run(struct hd_call *call)
{
    struct hd_run_rec run;
    int err = read_run(call, &run);

    if (!err)
        hd_run_view(call, &run);
    return hd_step_done(err);
}

/* ---- list ------------------------------------------------------------- */

/* *out stays NULL for any status. */
static int read_status(struct hd_call *call, enum hd_run_state *room, const enum hd_run_state **out)
{
    struct hd_slice name;

    *out = NULL;
    if (!hd_params_get(&call->query, HD_S("status"), &name))
        return 0;
    if (!hd_run_state_find(name, room))
        return hd_error_set(
            &call->fault, HD_EINVAL,
            "status: expected pending, running, error, success, timeout or interrupted");
    *out = room;
    return 0;
}

static int check_thread(struct hd_call *call, struct hd_slice *thread_id)
{
    struct hd_thread_rec thread;
    int err = hd_path_uuid(call, 0, "thread_id", thread_id);

    if (!err)
        err = hd_thread_read(call->app->store, call->principal, *thread_id, call->arena, &thread,
                             &call->fault);
    return err;
}

static struct hd_step list_runs(struct hd_call *call)
{
    struct hd_slice thread_id = {NULL, 0};
    const enum hd_run_state *status = NULL;
    enum hd_run_state state;
    struct hd_run_rec *runs;
    struct hd_slice *names;
    size_t name_count, count;
    int64_t limit, offset;
    int err = hd_params_int(&call->query, HD_S("limit"), 1, 1000, 10, &limit, &call->fault);

    if (!err)
        err = hd_params_int(&call->query, HD_S("offset"), 0, INT32_MAX, 0, &offset, &call->fault);
    if (!err)
        err = read_status(call, &state, &status);
    if (!err)
        err = hd_params_list(&call->query, HD_S("select"), call->arena, &names, &name_count,
                             &call->fault);
    if (!err)
        err = check_thread(call, &thread_id);
    if (err == HD_ENOTFOUND)
        return hd_call_refuse_thread(call, thread_id);
    if (!err)
        err = hd_runs_list(call->app->store, call->principal, thread_id, status, (size_t)offset,
                           (size_t)limit, call->arena, &runs, &count, &call->fault);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    for (size_t i = 0; i < count; i++)
        hd_run_view_some(call, &runs[i], names, name_count);
    hd_jw_array_end(&call->jw);
    return HD_DONE;
}

/* ---- cancel ----------------------------------------------------------- */

/* A run to cancel, and the waiter for its end; in the arena of the call. */
struct cancelling {
    struct hd_call *call;
    enum hd_cancel action;
    bool waits;
    struct hd_run_rec run;
    struct hd_waiter waiter;
};

static int read_action(struct hd_call *call, enum hd_cancel *action)
{
    struct hd_slice name;

    *action = HD_CANCEL_INTERRUPT;
    if (!hd_params_get(&call->query, HD_S("action"), &name) || hd_slice_eq(name, HD_S("interrupt")))
        return 0;
    *action = HD_CANCEL_ROLLBACK;
    if (hd_slice_eq(name, HD_S("rollback")))
        return 0;
    return hd_error_set(&call->fault, HD_EINVAL, "action: expected interrupt or rollback");
}

static struct hd_step cancel_work(struct hd_call *call)
{
    struct cancelling *cancelling = hd_arena_calloc(call->arena, 1, sizeof(*cancelling));
    int err = cancelling ? 0 : HD_ENOMEM;

    call->state = cancelling;
    if (!err)
        err = hd_params_bool(&call->query, HD_S("wait"), false, &cancelling->waits, &call->fault);
    if (!err)
        err = read_action(call, &cancelling->action);
    if (!err)
        err = read_run(call, &cancelling->run);
    return hd_step_next(err);
}

/* The stop receipt in the run's record: all members. */
static void put_facts(struct hd_jw *jw, struct hd_slice receipt)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;

    if (receipt.len == 0 || hd_json_parse(&json, receipt, NULL))
        return;
    it = hd_json_iter(hd_json_root(&json));
    while (hd_json_next(&it)) {
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_json_fini(&json);
}

/* The receipt: the status of the run, its last step and its unfinished tasks. `outcome` NULL: the
 * run had ended before. */
static void put_receipt(struct hd_jw *jw, const struct hd_run_rec *run, const char *status,
                        const struct hd_outcome *outcome)
{
    struct hd_slice facts = outcome ? outcome->receipt : run->receipt;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", run->run_id);
    hd_jw_put_string(jw, "status", hd_slice_cstr(status));
    put_facts(jw, facts);
    if (outcome) {
        if (facts.len == 0) { /* the run ended by itself at the same time */
            hd_jw_put_int(jw, "stopped_at_step", outcome->step);
        }
        hd_jw_key(jw, HD_S("checkpoint_id"));
        if (outcome->checkpoint_id.len > 0 && !outcome->is_deleted)
            hd_jw_string(jw, outcome->checkpoint_id);
        else
            hd_jw_null(jw);
    }
    hd_jw_object_end(jw);
}

void hd_run_view_receipt(struct hd_jw *jw, const struct hd_run_rec *run)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", run->run_id);
    hd_jw_put_string(jw, "status", hd_slice_cstr(hd_run_state_name(run->status)));
    put_facts(jw, run->receipt);
    hd_jw_put_string_or_null(jw, "checkpoint_id", run->checkpoint_id);
    hd_jw_object_end(jw);
}

static void on_cancelled(void *ctx, const struct hd_outcome *outcome)
{
    struct cancelling *cancelling = ctx;

    cancelling->waiter.link = NULL;
    if (cancelling->waits)
        put_receipt(&cancelling->call->jw, &cancelling->run,
                    outcome->is_deleted ? "deleted" : hd_run_state_name(outcome->status), outcome);
    hd_call_resume(cancelling->call, HD_DONE);
}

/*
 * A running run ends when its engine or worker has stopped; the caller need not wait for that. The
 * end of a run that has not started is stored at once, and the response follows: the next request
 * finds the run cancelled.
 */
static struct hd_step cancel_then(struct hd_call *call)
{
    struct cancelling *cancelling = call->state;
    const struct hd_run_rec *run = &cancelling->run;
    struct hd_queue *queue = call->app->queue;
    bool is_waiting = hd_queue_is_waiting(queue, call->principal, run->thread_id, run->run_id);
    bool is_in_flight =
        hd_queue_cancel(queue, call->principal, run->thread_id, run->run_id, cancelling->action);

    /* Clients expect no body with 202; only clients that wait get the receipt. */
    call->status = is_in_flight && !cancelling->waits ? 202 : 200;
    if (is_in_flight && (cancelling->waits || is_waiting)) {
        cancelling->call = call;
        cancelling->waiter.fn = on_cancelled;
        cancelling->waiter.ctx = cancelling;
        /* Succeeds: the run was just cancelled and ends later. */
        if (hd_queue_wait(queue, call->principal, run->thread_id, run->run_id, &cancelling->waiter))
            return HD_WAIT;
    }
    if (!is_in_flight)
        put_receipt(&call->jw, run, hd_run_state_name(run->status), NULL);
    return HD_DONE;
}

/* ---- cancel many ------------------------------------------------------ */

/* Either all runs of a status, or a list of runs; in the arena of the call. */
struct many {
    struct hd_slice principal; /* owner of the thread */
    enum hd_cancel action;
    bool running;
    bool pending;
    struct hd_slice thread_id;
    struct hd_slice *ids;
    size_t count;
    /* Runs by status, when a filter limits the visible threads. */
    struct hd_call *call;
    bool is_filtered;
    struct hd_run_rec *seen;
    size_t seen_count, seen_cap;
    size_t waited_for; /* runs that had not started: their ends are being stored */
    size_t cancelled;
    struct hd_run_selection selection;
    struct hd_peer_cancel elsewhere; /* runs of other servers; counts as one that is waited for */
};

struct many_waiter {
    struct hd_waiter waiter;
    struct many *many;
};

static int read_many(struct hd_call *call, struct many *many)
{
    static const char *const words[] = {"pending", "running", "all", NULL};
    bool has_status = hd_body_get(call, "status");
    bool has_ids = hd_body_get(call, "run_ids") || hd_body_get(call, "thread_id");
    int word = 2;
    int err;

    if (has_status == has_ids)
        return hd_error_set(&call->fault, HD_EINVAL,
                            "expected either status, or thread_id and run_ids");
    err = hd_body_word(call, "status", words, &word);
    many->pending = has_status && word != 1;
    many->running = has_status && word != 0;
    if (!err)
        err = hd_body_string(call, "thread_id", &many->thread_id);
    if (!err)
        err = hd_body_strings(call, "run_ids", &many->ids, &many->count);
    if (!err && has_ids && (many->thread_id.len == 0 || many->count == 0))
        return hd_error_set(&call->fault, HD_EINVAL, "expected both thread_id and run_ids");
    return err;
}

/* Keeps the listed runs that exist. Finished runs count as well. */
static int find_named(struct hd_call *call, struct many *many)
{
    struct hd_run_rec run;
    size_t found = 0;
    int err = 0;

    for (size_t i = 0; !err && i < many->count; i++) {
        err = hd_run_read(call->app->store, many->principal, many->thread_id, many->ids[i],
                          call->arena, &run, &call->fault);
        if (!err)
            many->ids[found++] = many->ids[i];
        if (err == HD_ENOTFOUND)
            err = 0;
    }
    many->count = found;
    return err;
}

static int keep_seen(struct many *many, const struct hd_run_rec *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_running = runs[i].status == HD_RUN_STATE_RUNNING;

        if (is_running ? !many->running : !many->pending)
            continue;
        if (many->seen_count == many->seen_cap) {
            size_t cap = many->seen_cap ? many->seen_cap * 2 : 16;
            struct hd_run_rec *grown = hd_arena_calloc(many->call->arena, cap, sizeof(*grown));

            if (!grown)
                return HD_ENOMEM;
            if (many->seen_count > 0)
                memcpy(grown, many->seen, many->seen_count * sizeof(*grown));
            many->seen = grown;
            many->seen_cap = cap;
        }
        many->seen[many->seen_count++] = runs[i];
    }
    return 0;
}

static int on_run_thread(void *arg, const struct hd_thread_rec *thread)
{
    struct many *many = arg;
    struct hd_call *call = many->call;
    struct hd_run_rec *runs = NULL;
    struct hd_slice id;
    size_t count = 0;
    bool is_seen = false;
    int err = 0;

    if (thread->status == HD_THREAD_BUSY)
        err = hd_call_sees(call, HD_OF_THREADS, thread->metadata, &is_seen);
    if (err || !is_seen)
        return err;
    err = hd_arena_copy(call->arena, thread->id, &id);
    if (!err)
        err = hd_runs_active(call->app->store, many->principal, id, call->arena, &runs, &count,
                             &call->fault);
    return err ? err : keep_seen(many, runs, count);
}

static int find_seen(struct hd_call *call, struct many *many)
{
    many->call = call;
    many->is_filtered = true;
    return hd_threads_scan(call->app->store, many->principal, true, on_run_thread, many,
                           &call->fault);
}

static struct hd_step cancel_many_work(struct hd_call *call)
{
    struct many *many = hd_arena_calloc(call->arena, 1, sizeof(*many));
    struct hd_step step = HD_NEXT;
    bool is_named = false;
    int err = many ? read_action(call, &many->action) : HD_ENOMEM;

    call->state = many;
    if (!err)
        err = read_many(call, many);
    if (err)
        return hd_step_fail(err);
    many->principal = call->actor;
    is_named = many->count > 0;
    if (is_named)
        step = hd_access_need(call, many->thread_id, HD_ROLE_EDITOR, &many->principal);
    if (!hd_step_is_next(step))
        return step;
    if (is_named)
        err = find_named(call, many);
    if (!err && is_named && many->count == 0)
        return hd_call_refuse(call, 404, "No runs found to cancel");
    if (!err && !is_named && hd_call_is_filtered(call, HD_OF_THREADS))
        err = find_seen(call, many);
    return hd_step_next(err);
}

static struct hd_step answer_many(struct many *many)
{
    if (many->elsewhere.has_failed)
        return hd_forward_refuse(many->call);
    many->call->status = 204;
    if (many->cancelled + many->elsewhere.found == 0)
        return hd_call_refuse(many->call, 404, "No runs found to cancel");
    return HD_DONE;
}

static void end_wait_of_many(struct many *many)
{
    if (--many->waited_for == 0)
        hd_call_resume(many->call, answer_many(many));
}

static void on_one_cancelled(void *ctx, const struct hd_outcome *outcome)
{
    struct many_waiter *own = ctx;

    (void)outcome;
    own->waiter.link = NULL;
    end_wait_of_many(own->many);
}

static void on_cancelled_elsewhere(void *ctx)
{
    end_wait_of_many(ctx);
}

/* The named or seen runs as a list, which only has their ids. */
static int list_many(struct many *many)
{
    struct hd_call *call = many->call;
    struct hd_run_rec *runs = many->seen;

    many->elsewhere.count = many->count > 0 ? many->count : many->seen_count;
    if (many->count > 0)
        runs = hd_arena_calloc(call->arena, many->count, sizeof(*runs));
    if (!runs && many->elsewhere.count > 0)
        return HD_ENOMEM;
    for (size_t i = 0; i < many->count; i++)
        runs[i] = (struct hd_run_rec){
            .principal = many->principal, .thread_id = many->thread_id, .run_id = many->ids[i]};
    many->elsewhere.runs = runs;
    return 0;
}

static int cancel_elsewhere(struct many *many)
{
    bool is_listed = many->count > 0 || many->is_filtered;
    int err = is_listed ? list_many(many) : 0;

    many->elsewhere.call = many->call;
    many->elsewhere.action = many->action;
    many->elsewhere.selection = is_listed ? NULL : &many->selection;
    many->elsewhere.done = on_cancelled_elsewhere;
    many->elsewhere.ctx = many;
    if (!err)
        err = hd_peer_cancel_start(&many->elsewhere);
    many->waited_for += err == 0;
    return err == HD_READY ? 0 : err;
}

/* As in cancel_then(): the response follows the ends of runs that have not started. */
static void wait_unless_begun(struct many *many, struct hd_slice thread_id, struct hd_slice run_id)
{
    struct hd_queue *queue = many->call->app->queue;
    struct many_waiter *own;

    if (!hd_queue_is_waiting(queue, many->principal, thread_id, run_id))
        return;
    own = hd_arena_calloc(many->call->arena, 1, sizeof(*own));
    if (!own)
        return; /* the response may be early */
    own->many = many;
    own->waiter.fn = on_one_cancelled;
    own->waiter.ctx = own;
    if (hd_queue_wait(queue, many->principal, thread_id, run_id, &own->waiter))
        many->waited_for++;
}

static bool cancel_one(struct many *many, struct hd_slice thread_id, struct hd_slice run_id)
{
    wait_unless_begun(many, thread_id, run_id);
    return hd_queue_cancel(many->call->app->queue, many->principal, thread_id, run_id,
                           many->action);
}

static void on_each(void *ctx, const struct hd_run_rec *run)
{
    wait_unless_begun(ctx, run->thread_id, run->run_id);
}

static struct hd_step cancel_many_then(struct hd_call *call)
{
    struct many *many = call->state;
    size_t count = many->count;
    int err;

    many->call = call;
    many->selection = (struct hd_run_selection){
        .principal = &many->principal, .running = many->running, .pending = many->pending};
    for (size_t i = 0; i < many->count; i++)
        cancel_one(many, many->thread_id, many->ids[i]);
    for (size_t i = 0; i < many->seen_count; i++)
        count += cancel_one(many, many->seen[i].thread_id, many->seen[i].run_id);
    if (many->count == 0 && !many->is_filtered)
        count =
            hd_queue_cancel_all(call->app->queue, &many->selection, many->action, on_each, many);
    many->cancelled = count;
    err = cancel_elsewhere(many);
    if (err && many->waited_for == 0)
        return hd_step_fail(err);
    return many->waited_for == 0 ? answer_many(many) : HD_WAIT;
}

/* ---- delete ----------------------------------------------------------- */

/* A removed checkpoint cannot be resumed, and its interrupts cannot be answered. */
static int renew_head(struct hd_call *call, struct hd_checkpoint_target *target,
                      const struct hd_lines *lines, struct hd_slice ns)
{
    const struct hd_line_rec *line = hd_lines_find(lines, ns);
    bool is_there = true;
    int err = 0;

    if (line && line->checkpoint_id.len > 0) {
        err = hd_checkpoint_target_of_root(call, target, ns);
        if (!err)
            err = hd_checkpoint_target_has(call, target, line->checkpoint_id, &is_there);
    }
    return !err && !is_there ? hd_head_renew(call, target) : err;
}

/* A line that a delegate of the run changed waits again for what its head waits for. */
static int renew_touched(struct hd_call *call, struct hd_checkpoint_target *target,
                         struct hd_slice touched)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = touched.len > 0 ? hd_json_parse(&json, touched, &call->fault) : 0;

    it = hd_json_iter(hd_json_root(&json));
    while (!err && touched.len > 0 && hd_json_next(&it)) {
        struct hd_slice ns;

        err = hd_arena_copy(call->arena, hd_json_string(hd_json_get(it.val, HD_S("ns"))), &ns);
        if (!err)
            err = hd_checkpoint_target_of_root(call, target, ns);
        if (!err)
            err = hd_head_renew(call, target);
    }
    hd_json_fini(&json);
    return err;
}

static int renew_heads(struct hd_call *call, const struct hd_run_rec *run)
{
    struct hd_checkpoint_target target = {.graph = NULL};
    struct hd_lines lines;
    struct hd_slice ns = {NULL, 0};
    int err = hd_call_thread_read(call, run->thread_id, &target.thread);

    if (!err)
        err = hd_run_line(run, call->arena, &ns, &call->fault);
    if (!err)
        err = hd_lines_read(call->app->store, &target.thread, call->arena, &lines, &call->fault);
    if (!err)
        err = renew_head(call, &target, &lines, ns);
    if (!err)
        err = renew_touched(call, &target, run->touched);
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0}; /* the thread was deleted, too */
    return 0;
}

/* A run in flight is rolled back, which deletes it. Otherwise its record and checkpoints are
 * deleted. */
static struct hd_step delete_stored(struct hd_call *call)
{
    struct cancelling *cancelling = call->state;
    const struct hd_run_rec *run = &cancelling->run;
    const struct heddle_bytes id = {run->run_id.ptr, run->run_id.len};
    const struct heddle_bytes principal = {run->principal.ptr, run->principal.len};
    struct heddle_error error = {0};
    const struct hd_outbox_row webhook = {
        .principal = run->principal, .thread_id = run->thread_id, .run_id = run->run_id};
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = heddle_delete_runs(call->app->store, principal, &id, 1, &error);

    if (err)
        return hd_step_fail(hd_error_set(&call->fault, err, "%s", error.text));
    err = hd_thread_lane(call->arena, run->principal, run->thread_id, &lane);
    hd_batch_init(&batch);
    if (!err)
        err = hd_run_delete(&batch, run);
    if (!err)
        err = hd_outbox_delete(&batch, &webhook);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
    hd_batch_fini(&batch);
    if (!err)
        err = renew_heads(call, run);
    call->status = 204;
    return hd_step_done(err);
}

static void on_rolled_back(void *ctx, const struct hd_outcome *outcome)
{
    struct cancelling *cancelling = ctx;
    struct hd_call *call = cancelling->call;

    cancelling->waiter.link = NULL;
    call->status = 204;
    hd_call_resume(call, outcome->is_deleted ? HD_DONE : hd_call_visit(call, delete_stored, NULL));
}

static struct hd_step delete_then(struct hd_call *call)
{
    struct cancelling *cancelling = call->state;
    const struct hd_run_rec *run = &cancelling->run;

    if (hd_queue_cancel(call->app->queue, call->principal, run->thread_id, run->run_id,
                        HD_CANCEL_ROLLBACK)) {
        cancelling->call = call;
        cancelling->waiter.fn = on_rolled_back;
        cancelling->waiter.ctx = cancelling;
        if (hd_queue_wait(call->app->queue, call->principal, run->thread_id, run->run_id,
                          &cancelling->waiter))
            return HD_WAIT;
    }
    return hd_call_visit(call, delete_stored, NULL);
}

static struct hd_step delete_work(struct hd_call *call)
{
    struct cancelling *cancelling = hd_arena_calloc(call->arena, 1, sizeof(*cancelling));
    int err = cancelling ? read_run(call, &cancelling->run) : HD_ENOMEM;

    call->state = cancelling;
    return hd_step_next(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/runs",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = list_runs,
     .tag = "Runs",
     .summary = "List the runs of a thread, newest first",
     .query = "limit offset status select",
     .answer = "[RunPart"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/runs/{run_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_run,
     .tag = "Runs",
     .summary = "Get a run",
     .answer = "Run"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/runs/{run_id}",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_DELETE,
     .frees = true,
     .work = delete_work,
     .then = delete_then,
     .tag = "Runs",
     .summary = "Delete a run and its checkpoints",
     .status = 204},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/runs/{run_id}/cancel",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = cancel_work,
     .then = cancel_then,
     .tag = "Runs",
     .summary = "Cancel a run",
     .query = "wait action",
     .body = "?Ignored",
     .answer = "CancelReceipt",
     .also = 202},
    {.method = HD_METHOD_POST,
     .pattern = "/runs/cancel",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_UPDATE,
     .work = cancel_many_work,
     .then = cancel_many_then,
     .tag = "Runs",
     .summary = "Cancel several runs",
     .query = "action",
     .body = "RunsCancel",
     .status = 204},
};

const struct hd_routes hd_routes_runs = {routes, HD_COUNT(routes)};
