#include "run/delegate.h"

#include <heddle.h>
#include <string.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/log.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/state/state.h"
#include "records/hold.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "run/active_run.h"
#include "run/admit.h"
#include "run/assistant_lookup.h"
#include "run/delegate_internal.h"
#include "run/line_touches.h"
#include "run/off_head.h"
#include "store/rows.h"

#define MAX_READ ((size_t)256 << 20)
#define MAX_NS ((size_t)1 << 20)

static void begin_delegate(struct hd_delegate *d);

/* ---- finding ---------------------------------------------------------- */

struct assistant_finding {
    struct hd_app *app;
    struct hd_arena arena;
    struct hd_slice actor, wanted;
    struct hd_assistant_rec found;
    bool is_found;
    struct heddle_error fault;
    void (*fn)(void *arg, const struct hd_val *assistant);
    void *arg;
};

/* Ids and graphs precede names. Names are not unique: the first match wins. */
static int on_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    struct assistant_finding *f = arg;
    int err;

    if (!hd_slice_eq(assistant->name, f->wanted))
        return 0;
    err = hd_arena_copy(&f->arena, assistant->id, &f->found.id);
    if (!err)
        err = hd_arena_copy(&f->arena, assistant->name, &f->found.name);
    if (!err)
        err = hd_arena_copy(&f->arena, assistant->description, &f->found.description);
    if (!err)
        err = hd_arena_copy(&f->arena, assistant->graph_id, &f->found.graph_id);
    f->is_found = !err;
    return err ? err : 1;
}

static int find_by_name(struct assistant_finding *f)
{
    int err = hd_assistants_scan(f->app->store, f->actor, on_assistant, f, &f->fault);

    if (err >= 0 && !f->is_found && f->actor.len > 0)
        err = hd_assistants_scan(f->app->store, hd_slice(NULL, 0), on_assistant, f, &f->fault);
    return err > 0 ? 0 : err;
}

static int find_work(void *arg)
{
    struct assistant_finding *f = arg;
    int err;

    f->fault = (struct heddle_error){0};
    err = hd_assistant_lookup(f->app, f->actor, f->wanted, &f->arena, &f->found, &f->fault);

    f->is_found = !err;
    if (err == HD_ENOTFOUND) {
        f->fault = (struct heddle_error){0};
        err = find_by_name(f);
    }
    if (err)
        hd_log(HD_LOG_ERROR, "run", "cannot look up an assistant: %s",
               f->fault.code ? f->fault.text : hd_error_text(err));
    f->is_found = f->is_found && !err && hd_app_graph(f->app, f->found.graph_id);
    return err;
}

static struct hd_val *describe_assistant(const struct assistant_finding *f)
{
    struct hd_val *object = hd_val_object(), *text = NULL;

    if (f->found.description.len > 0 && hd_val_parse_json(f->found.description, &text, NULL))
        text = NULL;
    object = hd_val_with(object, HD_S("assistant_id"), hd_val_string(f->found.id));
    object = hd_val_with(object, HD_S("name"), hd_val_string(f->found.name));
    return hd_val_with(object, HD_S("description"), text ? text : hd_val_null());
}

static void on_assistant_found(void *arg)
{
    struct assistant_finding *f = arg;
    struct hd_val *assistant = f->is_found ? describe_assistant(f) : NULL;

    f->fn(f->arg, assistant);
    hd_val_unref(assistant);
    hd_arena_fini(&f->arena);
    hd_free(f);
}

int hd_delegate_find(struct hd_delegation *delegation, struct hd_slice actor,
                     struct hd_slice assistant,
                     void (*found)(void *arg, const struct hd_val *assistant), void *arg)
{
    struct assistant_finding *f = hd_calloc(1, sizeof(*f));
    int err;

    if (!f)
        return HD_ENOMEM;
    f->app = delegation->app;
    f->fn = found;
    f->arg = arg;
    hd_arena_init(&f->arena, MAX_READ);
    err = hd_arena_copy(&f->arena, actor, &f->actor);
    if (!err)
        err = hd_arena_copy(&f->arena, assistant, &f->wanted);
    if (!err)
        err = hd_defer_patiently(delegation->app->defer, find_work, on_assistant_found, f);
    if (err) {
        hd_arena_fini(&f->arena);
        hd_free(f);
    }
    return err;
}

static int find_callee(void *ctx, struct hd_engine_run *run, struct hd_slice assistant,
                       void (*found)(void *arg, const struct hd_val *assistant), void *arg)
{
    return hd_delegate_find(ctx, hd_runner_options(hd_runner_of(run))->actor, assistant, found,
                            arg);
}

/* ---- call chain ------------------------------------------------------- */

/* A run, or one of its delegates: `delegate` is NULL for the root graph of the run. */
struct line_holder {
    const struct hd_active_run *run; /* NULL: the line is free */
    const struct hd_delegate *delegate;
};

static bool is_same_line(const struct hd_delegate *a, const struct hd_delegate *b)
{
    return hd_slice_eq(a->root, b->root) && hd_slice_eq(a->thread, b->thread) &&
           hd_slice_eq(a->principal, b->principal);
}

/* Whatever executes on the line that `d` needs. */
static struct line_holder holder(const struct hd_delegate *d)
{
    for (const struct hd_delegate *other = d->delegation->first; other; other = other->next) {
        if (other != d && other->is_on_line && is_same_line(other, d))
            return (struct line_holder){other->active, other};
    }
    return (struct line_holder){
        hd_queue_line_run(d->delegation->app->queue, d->principal, d->thread, d->root), NULL};
}

/* True if the end of `of` depends on the end of `d`. */
static bool is_part(const struct hd_delegate *d, const struct line_holder *of)
{
    if (!of->delegate)
        return d->active == of->run;
    while (d && d != of->delegate)
        d = d->outer;
    return d != NULL;
}

/*
 * True if waiting for `at` would deadlock: `at`, or a delegate nested in it, waits for `d`
 * directly or indirectly. The delegates before `d` contain no cycle, so the recursion ends.
 */
static bool would_block(const struct hd_delegate *d, struct line_holder at)
{
    if (!at.run)
        return false;
    if (is_part(d, &at))
        return true;
    for (const struct hd_delegate *other = d->delegation->first; other; other = other->next) {
        if (other != d && other->state == HD_DELEGATE_WAITS && is_part(other, &at) &&
            would_block(d, holder(other)))
            return true;
    }
    return false;
}

/* Refuses a call that is nested too deep, or of an assistant that already waits for this call. */
static int check_chain(const struct hd_delegate *d, struct heddle_error *fault)
{
    int depth = 1;
    bool is_circle = hd_slice_eq(d->active->rec.assistant_id, d->assistant_id);

    for (const struct hd_delegate *outer = d->outer; outer; outer = outer->outer) {
        is_circle = is_circle || hd_slice_eq(outer->assistant_id, d->assistant_id);
        depth++;
    }
    if (is_circle || would_block(d, holder(d)))
        return hd_error_set(fault, HD_EINVAL, "it is already running and waits for this call");
    if (depth > HD_MAX_DELEGATES)
        return hd_error_set(fault, HD_EINVAL, "agents call each other more than %d levels deep",
                            HD_MAX_DELEGATES);
    return 0;
}

/* ---- end -------------------------------------------------------------- */

static void unlink_delegate(struct hd_delegate *d)
{
    struct hd_delegate **link = &d->delegation->first;

    while (*link != d)
        link = &(*link)->next;
    *link = d->next;
}

void hd_delegate_free(struct hd_delegate *d)
{
    hd_val_unref(d->input);
    hd_val_unref(d->answer);
    hd_val_unref(d->stored_state);
    hd_arena_fini(&d->arena);
    hd_free(d);
}

/* Starts the delegates whose line has become free. */
static void start_waiting(struct hd_delegation *delegation)
{
    struct hd_delegate *d = delegation->first;

    while (d) {
        if (d->state == HD_DELEGATE_WAITS && !holder(d).run) {
            begin_delegate(d);
            d = delegation->first; /* begin_delegate() may have changed the list */
        } else {
            d = d->next;
        }
    }
}

void hd_delegation_resume(struct hd_delegation *delegation)
{
    if (delegation)
        start_waiting(delegation);
}

/* Removes a delegate that ends. Waiting delegates get its line first, then queued runs. */
static void leave_line(struct hd_delegate *d)
{
    bool was_on_line = d->is_on_line;

    d->is_on_line = false;
    unlink_delegate(d);
    start_waiting(d->delegation);
    if (was_on_line) {
        hd_line_visits_remove(&d->delegation->visits, d->principal, d->thread, d->root);
        hd_queue_line_leave(d->delegation->app->queue, d->principal, d->thread, d->root);
    }
}

/* Frees a delegate whose task was cancelled. Its caller, which waited for it, may end. */
static void end_cancelled(struct hd_delegate *d)
{
    struct hd_runner *caller = d->caller;

    leave_line(d);
    hd_delegate_free(d);
    hd_runner_release(caller);
}

static void end_delegate(struct hd_delegate *d, const struct hd_engine_run_result *result)
{
    if (d->is_cancelled && d->task) {
        end_cancelled(d);
        return;
    }
    leave_line(d);
    if (d->request) {
        hd_delegate_answer(d, result);
    } else {
        d->done(d->arg, result);
        hd_delegate_free(d);
    }
}

static void fail_delegate(struct hd_delegate *d, int err, const struct heddle_error *fault)
{
    const struct hd_engine_run_result result = {
        .status = HD_ENGINE_RUN_FAILED,
        .error_type = err == HD_EINVAL ? "ValueError" : "RuntimeError",
        .error_text = fault && fault->code ? fault->text : hd_error_text(err)};

    end_delegate(d, &result);
}

/* Parses the output of a worker: the waiting task expects a value, not text. */
static void on_delegate_done(void *ctx, const struct hd_runner_result *result)
{
    struct hd_delegate *d = ctx;
    struct hd_engine_run_result run = result->run;
    struct hd_val *output = NULL;

    d->runner = NULL;
    if (result->output.len > 0 && hd_val_parse_json(result->output, &output, NULL)) {
        run.status = HD_ENGINE_RUN_FAILED;
        run.error_type = "RuntimeError";
        run.error_text = "its output is invalid";
    }
    if (output)
        run.output = output;
    end_delegate(d, &run);
    hd_val_unref(output);
}

struct hd_delegate *hd_delegate_of(const struct hd_runner *runner)
{
    const struct hd_runner_options *options = hd_runner_options(runner);

    return options->on_done == on_delegate_done ? options->ctx : NULL;
}

/* ---- events ----------------------------------------------------------- */

static int add_place(const struct hd_delegate *d, struct hd_buf *out)
{
    int err = d->outer ? add_place(d->outer, out) : 0;

    if (!err && out->len > 0)
        err = hd_buf_append_byte(out, '|');
    if (err)
        return err;
    return d->request ? hd_buf_append_slice(out, d->place)
                      : hd_task_ns(d->task, hd_loop_ns(d->task->loop), out);
}

/* The namespace of its events for clients. */
static int write_path(const struct hd_delegate *d, struct hd_slice ns, struct hd_buf *out)
{
    int err = add_place(d, out);

    if (!err && ns.len > 0 && out->len > 0)
        err = hd_buf_append_byte(out, '|');
    return err ? err : hd_buf_append_slice(out, ns);
}

static unsigned get_delegate_modes(void *ctx)
{
    const struct hd_delegate *d = ctx;

    return d->is_cancelled ? 0 : hd_run_execute_modes(d->active);
}

static void on_delegate_event(void *ctx, const struct hd_runner_event *event)
{
    struct hd_delegate *d = ctx;
    struct hd_runner_event shown = *event;
    struct hd_buf path;

    hd_buf_init(&path, MAX_NS);
    if (write_path(d, event->ns, &path)) {
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    } else {
        shown.ns = hd_buf_slice(&path);
        hd_run_execute_emit(d->active, &shown, d->root);
    }
    hd_buf_fini(&path);
}

/* ---- start ------------------------------------------------------------ */

static int read_state(struct hd_delegate *d)
{
    const struct hd_address at = {.store = d->delegation->app->store,
                                  .graph = hd_app_shape(d->graph),
                                  .principal = d->principal,
                                  .thread = d->thread,
                                  .root = d->root,
                                  .checkpoint_id = d->is_own ? d->chosen : hd_slice(NULL, 0),
                                  .as_text = true};
    struct hd_failure failure = {NULL, NULL};
    int err = hd_state_get(&at, false, &d->stored_state, &failure);

    if (err)
        hd_error_set(&d->fault, err, "%s", failure.text ? failure.text : hd_error_text(err));
    hd_failure_fini(&failure);
    return err;
}

/*
 * The call replaces what the line waited for. A question of the delegate belongs to its caller, so
 * the line itself is idle from here on. *is_changed: it was not. Notes in the run's record what a
 * rollback restores.
 */
static int quiet_line(struct hd_delegate *d, struct hd_thread_rec *thread, struct hd_lines *lines,
                      struct hd_run_rec *run, bool *is_changed, struct heddle_error *fault)
{
    int err = hd_lines_read(d->delegation->app->store, thread, &d->arena, lines, fault);
    struct hd_line_rec *line = err ? NULL : hd_lines_find(lines, d->root);

    *is_changed = line && (line->status != HD_THREAD_IDLE || line->interrupts.len > 0);
    if (!err && (*is_changed || d->chosen.len > 0))
        err = hd_line_touches_add(&run->touched, d->root, line, d->chosen, &d->arena);
    if (err || !*is_changed)
        return err;
    line = hd_lines_change(lines, thread, d->root, &d->arena);
    line->status = HD_THREAD_IDLE;
    line->interrupts = line->error = hd_slice(NULL, 0);
    return hd_lines_settle(lines, thread, thread->status == HD_THREAD_BUSY, &d->arena);
}

static int take_head_once(void *arg, struct heddle_error *fault)
{
    struct hd_delegate *d = arg;
    struct heddle *store = d->delegation->app->store;
    struct hd_slice before = d->chosen; /* by an attempt with an unknown outcome */
    struct hd_slice lane = {NULL, 0};
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;
    struct hd_run_rec run;
    struct hd_batch view;
    struct hd_lines lines;
    bool is_changed = false;
    int err = hd_thread_read(store, d->principal, d->thread, &d->arena, &thread, fault);

    if (!err)
        err = hd_thread_heads_get(store, &thread, d->root, &d->arena, &d->chosen, fault);
    if (!err)
        err = hd_run_read(store, d->principal, d->thread, d->active->rec.run_id, &d->arena, &run,
                          fault);
    if (!err)
        err = quiet_line(d, &thread, &lines, &run, &is_changed, fault);
    if (err || d->chosen.len == 0)
        d->chosen = before;
    if (err || (d->chosen.len == 0 && !is_changed))
        return err;
    hd_batch_init(&batch);
    err = hd_thread_heads_set(&d->arena, &thread.heads, d->root, hd_slice(NULL, 0));
    if (!err)
        err = hd_thread_put(&batch, &thread);
    if (!err)
        err = hd_lines_put(&batch, &lines);
    if (!err)
        err = hd_run_put(&batch, &run);
    if (!err && d->active->rec.guard.token)
        err = hd_hold_expect(&batch, d->principal, d->thread, d->active->rec.guard.token);
    if (!err)
        err = hd_thread_lane(&d->arena, d->principal, d->thread, &lane);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* Off the head the line stays as it is, and the delegate makes a branch of it. */
static int take_fork(struct hd_delegate *d)
{
    struct hd_app *app = d->delegation->app;
    const struct hd_run_rec *run = &d->active->rec;
    int err = hd_off_head_keep(app, run, d->root, &d->fault);

    if (!err)
        err = hd_off_head_fork(app, run, d->root, &d->arena, &d->chosen, &d->is_own, &d->fault);
    d->is_own = d->is_own || (d->answer && d->chosen.len > 0);
    return err;
}

/* Starts at the head that a client chose, and removes the choice: the new head replaces it. */
static int take_head(struct hd_delegate *d)
{
    return hd_rows_change(d->delegation->app->store, take_head_once, d, &d->fault);
}

static int read_target(struct hd_delegate *d)
{
    struct hd_app *app = d->delegation->app;
    int err =
        hd_assistant_lookup(app, d->actor, d->assistant_id, &d->arena, &d->assistant, &d->fault);

    if (err)
        return err;
    d->graph = hd_app_graph(app, d->assistant.graph_id);
    if (!d->graph)
        return hd_error_set(&d->fault, HD_EINVAL, "its graph is no longer served");
    if (d->active->rec.is_off_head)
        err = take_fork(d);
    else if (!d->answer)
        err = take_head(d);
    /* The engine reads the state of its runs itself. */
    if (!err && (d->answer || (d->graph->is_remote && (d->chosen.len == 0 || d->is_own))))
        err = read_state(d);
    return err;
}

static int read_work(void *arg)
{
    struct hd_delegate *d = arg;

    if (d->err && !hd_error_is_transient(d->err))
        return d->err;
    d->fault = (struct heddle_error){0};
    d->err = read_target(d);
    return d->err;
}

static int launch(struct hd_delegate *d)
{
    struct hd_runner_options options;
    int err = hd_delegate_options(d, &options, &d->fault);

    if (err)
        return err;
    options.get_modes = get_delegate_modes;
    options.on_event = on_delegate_event;
    options.on_done = on_delegate_done;
    options.ctx = d;
    err = hd_runner_start(d->delegation->app, &options, &d->runner);
    hd_runner_options_fini(&options);
    return err;
}

static void on_state_read(void *arg)
{
    struct hd_delegate *d = arg;
    int err = d->err;

    d->state = HD_DELEGATE_WORKS;
    if (d->is_cancelled) {
        const struct hd_engine_run_result stopped = {.status = HD_ENGINE_RUN_CANCELLED};

        end_delegate(d, &stopped);
        return;
    }
    if (!err)
        err = launch(d);
    if (err)
        fail_delegate(d, err, &d->fault);
}

static int enter_line(struct hd_delegate *d)
{
    struct hd_line_visits *visits = &d->delegation->visits;
    int err = hd_line_visits_add(visits, d->principal, d->thread, d->root);

    if (err)
        return err;
    err = hd_queue_line_enter(d->delegation->app->queue, d->principal, d->thread, d->root);
    if (err)
        hd_line_visits_remove(visits, d->principal, d->thread, d->root);
    d->is_on_line = !err;
    return err;
}

static void begin_delegate(struct hd_delegate *d)
{
    int err = enter_line(d);

    d->state = HD_DELEGATE_READS;
    if (!err)
        err = hd_defer_patiently(d->delegation->app->defer, read_work, on_state_read, d);
    if (err)
        fail_delegate(d, err, NULL);
}

static int make_delegate(struct hd_delegation *delegation, struct hd_task *task,
                         struct hd_delegate **out)
{
    struct hd_delegate *d = hd_calloc(1, sizeof(*d));
    const struct hd_runner_options *options;
    int err;

    if (!d)
        return HD_ENOMEM;
    d->delegation = delegation;
    d->task = task;
    d->caller = hd_runner_of(task->loop->run);
    d->outer = hd_delegate_of(d->caller);
    options = hd_runner_options(d->caller);
    d->active = d->outer ? d->outer->active : options->ctx;
    hd_arena_init(&d->arena, MAX_READ);
    err = hd_arena_copy(&d->arena, options->principal, &d->principal);
    if (!err)
        err = hd_arena_copy(&d->arena, options->actor, &d->actor);
    if (!err)
        err = hd_arena_copy(&d->arena, options->thread, &d->thread);
    if (!err)
        err = hd_arena_copy(&d->arena, hd_slice_cstr(task->id), &d->task_id);
    if (err)
        hd_delegate_free(d);
    else
        *out = d;
    return err;
}

static void append_delegate(struct hd_delegate *d)
{
    struct hd_delegate **link = &d->delegation->first;

    while (*link)
        link = &(*link)->next;
    *link = d;
}

static int start_delegate(void *ctx, struct hd_task *task, struct hd_slice assistant_id,
                          struct hd_slice tool_call_id, const struct hd_val *input,
                          const struct hd_val *answer,
                          void (*done)(void *arg, const struct hd_engine_run_result *result),
                          void *arg, struct hd_delegate **out)
{
    struct hd_delegate *d;
    int err = make_delegate(ctx, task, &d);

    if (err)
        return err;
    d->input = hd_val_ref(input);
    d->answer = hd_val_ref(answer);
    d->done = done;
    d->arg = arg;
    err = hd_arena_copy(&d->arena, assistant_id, &d->assistant_id);
    if (!err)
        err = hd_arena_copy(&d->arena, tool_call_id, &d->tool_call_id);
    if (err) {
        hd_delegate_free(d);
        return err;
    }
    *out = d;
    return hd_delegate_start(d);
}

int hd_delegate_start(struct hd_delegate *d)
{
    int err = hd_admit_assistant_ns(&d->arena, d->assistant_id, &d->root);

    append_delegate(d);
    if (!err)
        d->err = check_chain(d, &d->fault);
    if (!err && !d->err && holder(d).run)
        return 0; /* queued */
    if (!err && !d->err)
        err = enter_line(d);
    d->state = HD_DELEGATE_READS;
    if (!err)
        err = hd_defer_patiently(d->delegation->app->defer, read_work, on_state_read, d);
    if (err) {
        leave_line(d);
        hd_delegate_free(d);
    }
    return err;
}

void hd_delegate_stop(struct hd_delegate *d)
{
    const struct hd_engine_run_result stopped = {.status = HD_ENGINE_RUN_CANCELLED};

    d->is_cancelled = true;
    if (d->runner)
        hd_runner_cancel(d->runner, false);
    else if (d->state == HD_DELEGATE_WAITS)
        end_delegate(d, &stopped);
}

/* The caller ends after the delegate, whose pending writes belong to the same run. */
static void cancel_delegate(void *ctx, struct hd_delegate *d)
{
    (void)ctx;
    if (d->state == HD_DELEGATE_WAITS) {
        leave_line(d);
        hd_delegate_free(d);
        return;
    }
    hd_runner_keep(d->caller);
    hd_delegate_stop(d);
}

/* ---- delegation ------------------------------------------------------- */

void hd_delegation_hold(struct hd_delegation *delegation, const struct hd_active_run *active,
                        bool is_held)
{
    for (struct hd_delegate *d = delegation->first; d; d = d->next) {
        if (d->active == active && d->runner)
            hd_runner_hold(d->runner, is_held);
    }
}

const struct hd_delegates *hd_delegation_table(const struct hd_delegation *delegation)
{
    return &delegation->table;
}

int hd_delegation_create(struct hd_app *app, struct hd_delegation **out)
{
    struct hd_delegation *delegation = hd_calloc(1, sizeof(*delegation));

    if (!delegation)
        return HD_ENOMEM;
    if (hd_line_visits_init(&delegation->visits)) {
        hd_free(delegation);
        return HD_EIO;
    }
    delegation->app = app;
    delegation->table = (struct hd_delegates){
        .find = find_callee, .start = start_delegate, .cancel = cancel_delegate, .ctx = delegation};
    *out = delegation;
    return 0;
}

void hd_delegation_destroy(struct hd_delegation *delegation)
{
    if (delegation)
        hd_line_visits_fini(&delegation->visits);
    hd_free(delegation);
}

bool hd_delegation_is_on_line(struct hd_delegation *delegation, struct hd_slice principal,
                              struct hd_slice thread, struct hd_slice ns)
{
    return delegation && hd_line_visits_has(&delegation->visits, principal, thread, ns);
}
