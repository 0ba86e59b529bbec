/*
 * Runners of graphs whose code is in workers.
 *
 * The worker receives the run and sends the events that its graph streams; it stores checkpoints
 * through operations (worker/worker_ops.h). When the run has ended, its final state is read from
 * the store, so the result equals what later readers see. If a worker is lost, the run continues at
 * another worker from the last checkpoint, unless it was lost HD_MAX_LOSSES times in the same step.
 */
#include <string.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "gate/worker_access.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "records/thread_heads.h"
#include "run/runner_internal.h"
#include "run/runner_worker_text.h"
#include "worker/resume_answers.h"

#define MAX_ANSWER ((size_t)64 << 20)
#define MAX_OWN ((size_t)64 << 20) /* for the ids of all checkpoints of a run */
#define MAX_HEAD ((size_t)64 << 20)
#define MAX_BLOB ((size_t)1 << 30)
#define GRACE_MS 10000 /* time for a worker to stop a cancelled run */
#define META_ATTEMPT HD_S("run_attempt")

struct worker_run {
    struct hd_runner base;         /* must be first; its options change in each attempt */
    struct hd_arena arena;         /* memory of `answer` and the result */
    struct hd_rt_call *call;       /* NULL: no worker executes it */
    struct hd_worker_access *pass; /* of `call`; NULL: none */
    uv_timer_t timer;              /* runs after a cancel */
    bool is_cancelled;
    unsigned kept; /* hd_runner_keep() calls without hd_runner_release() */
    bool is_ended; /* the result is complete; waits for `kept` to be 0 */

    struct hd_runner_text_answer answer;
    struct hd_buf output;
    struct hd_val *state;   /* final; NULL: not read */
    char own[HD_UUID_SIZE]; /* its newest checkpoint, if not the latest of the thread; or empty */
    int err;                /* of reading the state */
    struct heddle_error fault;
};

static void end_worker_run(struct worker_run *run);
static int send_run(struct worker_run *run);

static struct worker_run *worker_run_from(struct hd_runner *runner)
{
    return (struct worker_run *)runner;
}

/* ---- memory ----------------------------------------------------------- */

static void on_worker_run_closed(uv_handle_t *handle)
{
    struct worker_run *run = handle->data;

    hd_free(run);
}

static void free_worker_run(struct worker_run *run)
{
    hd_worker_access_close(run->pass);
    hd_runner_fini(&run->base);
    hd_val_unref(run->answer.tools);
    hd_val_unref(run->state);
    hd_buf_fini(&run->output);
    hd_arena_fini(&run->arena);
    uv_close((uv_handle_t *)&run->timer, on_worker_run_closed);
}

static struct worker_run *make_worker_run(struct hd_app *app,
                                          const struct hd_runner_options *options)
{
    struct worker_run *run = hd_calloc(1, sizeof(*run));
    struct hd_runner_options own = *options;

    if (!run)
        return NULL;
    own.attempt = options->attempt > 0 ? options->attempt : 1;
    own.tags = hd_val_get(options->config, HD_S("tags"));
    hd_runner_init(&run->base, &hd_runner_worker, app, &own);
    (void)uv_timer_init(app->loop, &run->timer); /* never fails */
    run->timer.data = run;
    hd_arena_init(&run->arena, MAX_ANSWER);
    hd_buf_init(&run->output, MAX_BLOB);
    return run;
}

/* ---- the end ---------------------------------------------------------- */

static const char *text_at(const struct hd_val *state, struct hd_slice which,
                           struct hd_arena *arena)
{
    struct hd_slice id =
        hd_val_get_string(hd_val_get(hd_val_get(state, which), HD_S("checkpoint_id")));
    struct hd_slice copy;

    return hd_arena_copy(arena, id, &copy) ? "" : copy.ptr;
}

/* Fills in the result, as the engine does for its runs, from the stored state. */
static void describe_result(struct worker_run *run, struct hd_runner_result *result,
                            struct hd_val **asked)
{
    const struct hd_val *state = run->state;
    struct hd_engine_run_result *out = &result->run;
    int64_t step = -2;

    out->status = run->answer.status;
    out->error_type = run->answer.type.ptr;
    out->error_text = run->answer.message.ptr;
    out->chunk_count = run->answer.tokens;
    out->tools = run->answer.tools;
    result->error = run->answer.error;
    *asked = hd_resume_answers_pending(state);
    out->asked = *asked;
    out->next = hd_val_get(state, HD_S("next"));
    out->interrupts = hd_val_get(state, HD_S("interrupts"));
    out->checkpoint_id = state ? text_at(state, HD_S("config"), &run->arena) : "";
    (void)hd_val_get_int(hd_val_get(hd_val_get(state, HD_S("metadata")), HD_S("step")), &step);
    out->step = step;
    out->stopped_at = step + 1;
}

static void finish_worker_run(struct worker_run *run)
{
    struct hd_runner_result result = {.output = hd_buf_slice(&run->output)};
    struct hd_val *asked = NULL;

    describe_result(run, &result, &asked);
    if (result.run.status == HD_ENGINE_RUN_FAILED || result.run.status == HD_ENGINE_RUN_CANCELLED)
        result.output = hd_slice(NULL, 0);
    hd_runner_end(&run->base, &result);
    hd_val_unref(asked);
    free_worker_run(run);
}

static void keep_worker_run(struct hd_runner *runner)
{
    worker_run_from(runner)->kept++;
}

static void release_worker_run(struct hd_runner *runner)
{
    struct worker_run *run = worker_run_from(runner);

    if (--run->kept == 0 && run->is_ended)
        finish_worker_run(run);
}

/* ---- the final state -------------------------------------------------- */

static int get_state(struct worker_run *run, struct hd_slice checkpoint_id)
{
    const struct hd_runner_options *o = &run->base.options;
    const struct hd_address at = {.store = run->base.app->store,
                                  .graph = hd_app_shape(o->graph),
                                  .principal = o->principal,
                                  .thread = o->thread,
                                  .root = o->root,
                                  .checkpoint_id = checkpoint_id,
                                  .as_text = true,
                                  .without_values = true};
    struct hd_failure failure = {NULL, NULL};

    hd_val_unref(run->state); /* of an earlier attempt */
    run->state = NULL;
    run->fault = (struct heddle_error){0};
    run->err = hd_state_get(&at, false, &run->state, &failure);
    if (run->err)
        hd_error_set(&run->fault, run->err, "%s",
                     failure.text ? failure.text : hd_error_text(run->err));
    hd_failure_fini(&failure);
    return run->err;
}

static bool has_same(const struct hd_val *a, const struct hd_val *b, struct hd_slice name)
{
    const struct hd_val *left = hd_val_get(a, name), *right = hd_val_get(b, name);

    return hd_val_is_null(left) ? hd_val_is_null(right) : right && hd_val_equal(left, right);
}

/* True if this run made the state: compares the run id and, for a delegate, the parent task. */
static bool is_own_state(const struct worker_run *run)
{
    const struct hd_val *metadata = hd_val_get(run->state, HD_S("metadata"));

    return has_same(run->base.options.metadata, metadata, HD_S("run_id")) &&
           has_same(run->base.options.metadata, metadata, HD_S(HD_META_TASK));
}

/*
 * Reads the state at the newest checkpoint of the run, which need not be the latest of the thread.
 * A run without checkpoints has the state that it started from.
 */
static void find_state(struct worker_run *run)
{
    const struct hd_runner_options *o = &run->base.options;
    struct hd_arena arena;
    struct hd_slice at;

    run->own[0] = '\0';
    if (get_state(run, hd_slice(NULL, 0)) || is_own_state(run))
        return;
    hd_arena_init(&arena, MAX_OWN);
    run->err = hd_thread_heads_beside(run->base.app->store, o->principal, o->thread, o->root,
                                      o->run_id, &arena, &at, &run->fault);
    if (!run->err && at.len == HD_UUID_LEN)
        memcpy(run->own, at.ptr, HD_UUID_SIZE);
    if (!run->err && at.len == 0)
        at = o->checkpoint_id;
    if (!run->err && at.len > 0)
        (void)get_state(run, at);
    hd_arena_fini(&arena);
}

/* Runs on a store thread. */
static int read_final_state(void *arg)
{
    struct worker_run *run = arg;

    find_state(run);
    return run->err;
}

/* A thread without checkpoints has a state too: an empty one. */
static void on_final_state(void *arg)
{
    struct worker_run *run = arg;

    if (run->err)
        hd_log(HD_LOG_ERROR, "run", "the final state of run %.*s cannot be read: %s",
               (int)run->base.options.run_id.len, run->base.options.run_id.ptr, run->fault.text);
    run->is_ended = true;
    if (run->kept == 0)
        finish_worker_run(run);
}

static void fail_worker_run(struct worker_run *run, const char *type, const char *text)
{
    struct hd_buf head;
    struct hd_jw jw;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    hd_jw_init(&jw, &head);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "type", hd_slice_cstr(type));
    hd_jw_put_string(&jw, "message", hd_slice_cstr(text));
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_runner_text_read_error(hd_buf_slice(&head), run->base.options.secrets, &run->arena,
                                        &run->answer);
    if (err)
        run->answer = (struct hd_runner_text_answer){.status = HD_ENGINE_RUN_FAILED,
                                                     .type = HD_S("MemoryError"),
                                                     .message = HD_S("out of memory")};
    hd_buf_fini(&head);
}

static void end_worker_run(struct worker_run *run)
{
    const struct hd_runner_text_answer *answer = &run->answer;

    uv_timer_stop(&run->timer);
    if (answer->status == HD_ENGINE_RUN_FAILED)
        hd_log(HD_LOG_ERROR, "run", "run %.*s of %.*s failed%s%.*s: %.*s: %.*s",
               (int)run->base.options.run_id.len, run->base.options.run_id.ptr,
               (int)run->base.options.graph->id.len, run->base.options.graph->id.ptr,
               answer->where.len > 0 ? " at " : "", (int)answer->where.len,
               answer->where.len > 0 ? answer->where.ptr : "", (int)answer->type.len,
               answer->type.ptr, (int)(answer->message.len < 2000 ? answer->message.len : 2000),
               answer->message.ptr);
    run->err = hd_defer_patiently(run->base.app->defer, read_final_state, on_final_state, run);
    if (run->err) {
        hd_error_set(&run->fault, run->err, "%s", hd_error_text(run->err));
        on_final_state(run);
    }
}

/* ---- retry ------------------------------------------------------------ */

/*
 * Runs on a store thread. Reads how far the run got and counts the loss; progress resets the count.
 */
static int read_progress(void *arg)
{
    struct worker_run *run = arg;
    struct hd_runner_options *o = &run->base.options;

    find_state(run);
    if (!run->err)
        run->err = hd_run_losses_add(&o->losses, run->base.app->store, o->principal, o->thread,
                                     o->run_id, &run->fault);
    return run->err;
}

static int begin_again(struct worker_run *run)
{
    struct hd_runner_options *o = &run->base.options;

    o->attempt++;
    if (o->metadata) {
        o->metadata = hd_val_with((struct hd_val *)(uintptr_t)o->metadata, META_ATTEMPT,
                                  hd_val_int(o->attempt));
        if (!o->metadata)
            return HD_ENOMEM;
    }
    hd_log(HD_LOG_WARN, "run", "run %.*s continues on another worker: %.*s", (int)o->run_id.len,
           o->run_id.ptr, (int)run->answer.message.len, run->answer.message.ptr);
    if (o->on_attempt)
        o->on_attempt(o->ctx, o->attempt, &o->losses);
    return send_run(run);
}

static void on_progress_read(void *arg)
{
    struct worker_run *run = arg;
    int err = run->err;

    if (!err && is_own_state(run)) {
        run->base.options.is_continued = true;
        run->base.options.continue_at = hd_slice_cstr(run->own);
    }
    hd_val_unref(run->state);
    run->state = NULL;
    if (run->is_cancelled) {
        run->answer.status = HD_ENGINE_RUN_CANCELLED;
        end_worker_run(run);
        return;
    }
    if (!err && run->base.options.losses.count >= HD_MAX_LOSSES) {
        end_worker_run(run); /* with the error of the last worker */
        return;
    }
    if (!err)
        err = begin_again(run);
    if (err) {
        fail_worker_run(run, "RuntimeError", run->err ? run->fault.text : hd_error_text(err));
        end_worker_run(run);
    }
}

/* True: the run continues at another worker, or ends because it was lost too often. */
static bool try_again(struct worker_run *run)
{
    bool had_worker = hd_slice_eq(run->answer.type, HD_S("WorkerLost"));

    if (run->is_cancelled || !had_worker)
        return false;
    return hd_defer_patiently(run->base.app->defer, read_progress, on_progress_read, run) == 0;
}

/* ---- calls ------------------------------------------------------------ */

/*
 * Text that is forwarded to clients must be complete JSON: a part of it would corrupt their whole
 * response.
 */
static int check_text(struct hd_slice text)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, text, NULL);

    hd_json_fini(&json);
    return err;
}

static void emit_piece(struct worker_run *run, struct hd_slice ns, enum hd_stream_mode mode,
                       struct hd_slice text)
{
    const struct hd_runner_options *o = &run->base.options;
    const struct hd_runner_event event = {.ns = ns, .mode = mode, .text = text};

    if (o->get_modes(o->ctx) & (unsigned)mode)
        o->on_event(o->ctx, &event);
}

static void on_piece(void *ctx, const struct hd_rt_message *message)
{
    struct worker_run *run = ctx;
    const struct hd_val *secrets = run->base.options.secrets;
    struct hd_json json = {NULL};
    enum hd_stream_mode mode;
    struct hd_slice ns;
    struct hd_buf text;
    int err;

    if (message->blob_count == 0 || run->is_cancelled)
        return;
    err = hd_runner_text_read_piece(message->head, &json, &mode, &ns);
    if (!err)
        err = check_text(message->blobs[0]);
    if (!err && hd_val_count(secrets) == 0) {
        emit_piece(run, ns, mode, message->blobs[0]);
    } else if (!err) {
        hd_buf_init(&text, MAX_BLOB);
        err = hd_runner_text_redact(message->blobs[0], secrets, &text);
        if (!err)
            emit_piece(run, ns, mode, hd_buf_slice(&text));
        hd_buf_fini(&text);
    }
    if (err)
        hd_log(HD_LOG_WARN, "run", "an event of a worker is lost: %s", hd_error_text(err));
    hd_json_fini(&json);
}

static void take_answer(struct worker_run *run, const struct hd_rt_message *message)
{
    int err = hd_runner_text_read_answer(message->head, run->base.options.secrets, &run->arena,
                                         &run->answer);

    if (!err && message->blob_count > 0)
        err = check_text(message->blobs[0]);
    if (!err && message->blob_count > 0)
        err = hd_runner_text_redact(message->blobs[0], run->base.options.secrets, &run->output);
    if (err)
        fail_worker_run(run, "RuntimeError",
                        err == HD_EINVAL ? "the worker's response is invalid" : hd_error_text(err));
}

static void end_pass(struct worker_run *run)
{
    hd_worker_access_close(run->pass);
    run->pass = NULL;
}

static void on_call_end(void *ctx, enum hd_rt_end how, const struct hd_rt_message *message)
{
    struct worker_run *run = ctx;

    run->call = NULL;
    end_pass(run);
    if (how == HD_RT_ANSWERED)
        take_answer(run, message);
    else if (hd_runner_text_read_error(message->head, run->base.options.secrets, &run->arena,
                                       &run->answer))
        fail_worker_run(run, "RuntimeError", "the worker was lost");
    if (how == HD_RT_LOST && try_again(run))
        return;
    if (how != HD_RT_ANSWERED && run->is_cancelled)
        run->answer.status = HD_ENGINE_RUN_CANCELLED;
    end_worker_run(run);
}

static int send_run(struct worker_run *run)
{
    const struct hd_runner_options *o = &run->base.options;
    const struct hd_rt_scope scope = {.principal = o->principal,
                                      .actor = o->actor,
                                      .thread = o->thread,
                                      .root = o->root,
                                      .guard = o->guard.created_at,
                                      .token = o->guard.token,
                                      .metadata = o->metadata,
                                      .secrets = o->secrets,
                                      .owner = &run->base};
    struct hd_buf head, input;
    struct hd_slice blob;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    hd_buf_init(&input, MAX_BLOB);
    err = hd_worker_access_open_run(run->base.app, o->actor,
                                    hd_val_get(o->config, HD_S("configurable")), &run->pass);
    if (!err)
        err = hd_runner_text_write_run(o, run->base.app, run->pass, &head, &input);
    blob = hd_buf_slice(&input);

    const struct hd_rt_call_options options = {
        .language = o->graph->language,
        .head = hd_buf_slice(&head),
        .blobs = &blob,
        .blob_count = input.len > 0,
        .scope = &scope,
        .is_run = !o->caller,
        .patience_us = run->base.app->runtime_settings.start_timeout_us,
        .on_piece = on_piece,
        .on_end = on_call_end,
        .ctx = run,
    };

    if (!err)
        err = hd_runtime_call(run->base.app->runtime, &options, &run->call);
    if (err)
        end_pass(run);
    if (!err && run->base.is_held)
        hd_rt_call_hold(run->call, true);
    hd_buf_fini(&head);
    hd_buf_fini(&input);
    return err;
}

static int start_worker_run(struct hd_app *app, const struct hd_runner_options *options,
                            struct hd_runner **out)
{
    struct worker_run *run;
    int err;

    if (!app->runtime)
        return HD_ECLOSED;
    run = make_worker_run(app, options);
    if (!run)
        return HD_ENOMEM;
    err = send_run(run);
    if (err)
        free_worker_run(run);
    else
        *out = &run->base;
    return err;
}

/* ---- control ---------------------------------------------------------- */

/* The worker did not stop in time: drops the call, so that it has no further effect. */
static void on_grace(uv_timer_t *timer)
{
    struct worker_run *run = timer->data;

    if (!run->call)
        return;
    hd_log(HD_LOG_WARN, "run", "a worker did not stop run %.*s", (int)run->base.options.run_id.len,
           run->base.options.run_id.ptr);
    hd_rt_call_drop(run->call);
    run->call = NULL;
    end_pass(run);
    run->answer.status = HD_ENGINE_RUN_CANCELLED;
    end_worker_run(run);
}

/* The worker decides about partial answers. */
static void cancel_worker_run(struct hd_runner *runner, bool keeps_answer)
{
    struct worker_run *run = worker_run_from(runner);

    (void)keeps_answer;
    if (run->is_cancelled)
        return;
    run->is_cancelled = true;
    if (!run->call)
        return;
    hd_rt_call_cancel(run->call);
    uv_timer_start(&run->timer, on_grace, GRACE_MS, 0);
}

static void hold_worker_run(struct hd_runner *runner, bool is_held)
{
    struct worker_run *run = worker_run_from(runner);

    if (run->call)
        hd_rt_call_hold(run->call, is_held);
}

/* The worker sends no pieces before the first GO. Releasing a hold sends one. */
static void listen_to_worker_run(struct hd_runner *runner)
{
    struct worker_run *run = worker_run_from(runner);

    if (!runner->options.is_quiet)
        return;
    runner->options.is_quiet = false;
    if (!run->call || runner->is_held)
        return;
    hd_rt_call_hold(run->call, true);
    hd_rt_call_hold(run->call, false);
}

const struct hd_runner_ops hd_runner_worker = {
    .start = start_worker_run,
    .cancel = cancel_worker_run,
    .hold = hold_worker_run,
    .keep = keep_worker_run,
    .release = release_worker_run,
    .listen = listen_to_worker_run,
};
