#include "run/worker_run.h"

#include <string.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "gate/worker_access.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/run.h"
#include "graph/state/state.h"
#include "records/thread_heads.h"
#include "worker/resume_answers.h"
#include "run/worker_run_text.h"

#define MAX_OPTIONS ((size_t)64 << 20)
#define MAX_OWN ((size_t)64 << 20) /* for the ids of all checkpoints of a run */
#define MAX_HEAD ((size_t)64 << 20)
#define MAX_BLOB ((size_t)1 << 30)
#define GRACE_MS 10000 /* time for a worker to stop a cancelled run */
#define META_ATTEMPT HD_S("run_attempt")

struct hd_worker_run {
    struct hd_app *app;
    struct hd_worker_run_options options; /* texts in `arena`, values reference-counted */
    struct hd_arena arena;
    struct hd_rt_call *call;       /* NULL: no worker executes it */
    struct hd_worker_access *pass; /* of `call`; NULL: none */
    uv_timer_t timer;              /* runs after a cancel */
    int attempt;
    bool is_continued;
    bool is_cancelled;
    bool is_held;
    unsigned kept;   /* hd_worker_run_keep() calls without hd_worker_run_let_go() */
    bool is_waiting; /* the result is complete; waits for `kept` to be 0 */

    struct hd_worker_run_answer answer;
    struct hd_buf output;
    struct hd_val *state;   /* final; NULL: not read */
    char own[HD_UUID_SIZE]; /* its newest checkpoint, if not the latest of the thread; or empty */
    int err;                /* of reading the state */
    struct hd_fault fault;
};

static void end_remote(struct hd_worker_run *remote);
static int send_run(struct hd_worker_run *remote);

const struct hd_worker_run_options *hd_worker_run_options(const struct hd_worker_run *remote)
{
    return &remote->options;
}

bool hd_worker_run_is_held(const struct hd_worker_run *remote)
{
    return remote->is_held;
}

bool hd_worker_run_is_cancelled(const struct hd_worker_run *remote)
{
    return remote->is_cancelled;
}

/* ---- memory ----------------------------------------------------------- */

static int copy_texts(struct hd_worker_run *remote)
{
    struct hd_worker_run_options *o = &remote->options;
    struct hd_slice *const texts[] = {&o->run_id, &o->assistant_id, &o->principal,
                                      &o->actor,  &o->thread,       &o->checkpoint_id,
                                      &o->root,   &o->durability,   &o->goes_on_at};
    int err = 0;

    for (size_t i = 0; i < HD_COUNT(texts) && !err; i++)
        err = hd_arena_copy(&remote->arena, *texts[i], texts[i]);
    return err;
}

#define VALUES(o)                                                                      \
    {                                                                                  \
        &(o)->checkpoint_map, &(o)->input, &(o)->command, &(o)->config, &(o)->secrets, \
            &(o)->context, &(o)->metadata, &(o)->before, &(o)->after                   \
    }

static void count_values(struct hd_worker_run_options *o)
{
    const struct hd_val **const values[] = VALUES(o);

    for (size_t i = 0; i < HD_COUNT(values); i++)
        *values[i] = hd_val_ref(*values[i]);
}

static void let_values_go(struct hd_worker_run_options *o)
{
    const struct hd_val **const values[] = VALUES(o);

    for (size_t i = 0; i < HD_COUNT(values); i++)
        hd_val_unref((struct hd_val *)(uintptr_t)*values[i]);
}

static void on_remote_closed(uv_handle_t *handle)
{
    struct hd_worker_run *remote = handle->data;

    hd_free(remote);
}

static void free_remote(struct hd_worker_run *remote)
{
    hd_worker_access_close(remote->pass);
    let_values_go(&remote->options);
    hd_val_unref(remote->answer.tools);
    hd_val_unref(remote->state);
    hd_buf_fini(&remote->output);
    hd_arena_fini(&remote->arena);
    uv_close((uv_handle_t *)&remote->timer, on_remote_closed);
}

static int make_remote(struct hd_app *app, const struct hd_worker_run_options *options,
                       struct hd_worker_run **out)
{
    struct hd_worker_run *remote = hd_calloc(1, sizeof(*remote));
    int err;

    if (!remote)
        return HD_ENOMEM;
    (void)uv_timer_init(app->loop, &remote->timer); /* never fails */
    remote->timer.data = remote;
    remote->app = app;
    remote->options = *options;
    remote->attempt = options->attempt > 0 ? options->attempt : 1;
    remote->is_continued = options->is_continued;
    hd_arena_init(&remote->arena, MAX_OPTIONS);
    hd_buf_init(&remote->output, MAX_BLOB);
    count_values(&remote->options);
    err = copy_texts(remote);
    if (err)
        free_remote(remote);
    else
        *out = remote;
    return err;
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
static void describe_result(struct hd_worker_run *remote, struct hd_worker_run_result *result,
                            struct hd_val **asked)
{
    const struct hd_val *state = remote->state;
    struct hd_run_result *run = &result->run;
    int64_t step = -2;

    run->status = remote->answer.status;
    run->error_type = remote->answer.type.ptr;
    run->error_text = remote->answer.message.ptr;
    run->piece_count = remote->answer.tokens;
    run->tools = remote->answer.tools;
    result->error = remote->answer.error;
    result->is_read = state != NULL;
    *asked = hd_asked_of(state);
    run->asked = *asked;
    run->next = hd_val_get(state, HD_S("next"));
    run->interrupts = hd_val_get(state, HD_S("interrupts"));
    run->checkpoint_id = state ? text_at(state, HD_S("config"), &remote->arena) : "";
    (void)hd_val_get_int(hd_val_get(hd_val_get(state, HD_S("metadata")), HD_S("step")), &step);
    run->step = step;
    run->stopped_at = step + 1;
}

static void finish_remote(struct hd_worker_run *remote)
{
    struct hd_worker_run_result result = {.output = hd_buf_slice(&remote->output)};
    struct hd_val *asked = NULL;

    describe_result(remote, &result, &asked);
    if (result.run.status == HD_RUN_FAILED || result.run.status == HD_RUN_CANCELLED)
        result.output = hd_slice(NULL, 0);
    remote->options.on_done(remote->options.ctx, &result);
    hd_val_unref(asked);
    free_remote(remote);
}

void hd_worker_run_keep(struct hd_worker_run *remote)
{
    remote->kept++;
}

void hd_worker_run_let_go(struct hd_worker_run *remote)
{
    if (--remote->kept == 0 && remote->is_waiting)
        finish_remote(remote);
}

/* ---- the final state -------------------------------------------------- */

static int get_state(struct hd_worker_run *remote, struct hd_slice checkpoint_id)
{
    const struct hd_worker_run_options *o = &remote->options;
    const struct hd_address at = {.store = remote->app->store,
                                  .graph = hd_app_shape(o->graph),
                                  .principal = o->principal,
                                  .thread = o->thread,
                                  .root = o->root,
                                  .checkpoint_id = checkpoint_id,
                                  .as_text = true,
                                  .without_values = true};
    struct hd_failure failure = {NULL, NULL};

    hd_val_unref(remote->state); /* of an earlier attempt */
    remote->state = NULL;
    remote->fault = (struct hd_fault){0};
    remote->err = hd_state_get(&at, false, &remote->state, &failure);
    if (remote->err)
        hd_fault_set(&remote->fault, remote->err, "%s",
                     failure.text ? failure.text : hd_error_text(remote->err));
    hd_failure_fini(&failure);
    return remote->err;
}

static bool has_same(const struct hd_val *a, const struct hd_val *b, struct hd_slice name)
{
    const struct hd_val *left = hd_val_get(a, name), *right = hd_val_get(b, name);

    return hd_val_is_null(left) ? hd_val_is_null(right) : right && hd_val_equal(left, right);
}

/* True if this run made the state: compares the run id and, for a delegate, the parent task. */
static bool is_own_state(const struct hd_worker_run *remote)
{
    const struct hd_val *metadata = hd_val_get(remote->state, HD_S("metadata"));

    return has_same(remote->options.metadata, metadata, HD_S("run_id")) &&
           has_same(remote->options.metadata, metadata, HD_S(HD_META_TASK));
}

/*
 * Reads the state at the newest checkpoint of the run, which need not be the latest of the thread.
 * A run without checkpoints has the state that it started from.
 */
static void find_state(struct hd_worker_run *remote)
{
    const struct hd_worker_run_options *o = &remote->options;
    struct hd_arena arena;
    struct hd_slice at;

    remote->own[0] = '\0';
    if (get_state(remote, hd_slice(NULL, 0)) || is_own_state(remote))
        return;
    hd_arena_init(&arena, MAX_OWN);
    remote->err = hd_thread_heads_beside(remote->app->store, o->principal, o->thread, o->root,
                                         o->run_id, &arena, &at, &remote->fault);
    if (!remote->err && at.len == HD_UUID_LEN)
        memcpy(remote->own, at.ptr, HD_UUID_SIZE);
    if (!remote->err && at.len == 0)
        at = o->checkpoint_id;
    if (!remote->err && at.len > 0)
        (void)get_state(remote, at);
    hd_arena_fini(&arena);
}

/* Runs on a store thread. */
static int read_left(void *arg)
{
    struct hd_worker_run *remote = arg;

    find_state(remote);
    return remote->err;
}

/* A thread without checkpoints has a state too: an empty one. */
static void on_left(void *arg)
{
    struct hd_worker_run *remote = arg;

    if (remote->err)
        hd_log(HD_LOG_ERROR, "run", "what run %.*s has left cannot be read: %s",
               (int)remote->options.run_id.len, remote->options.run_id.ptr, remote->fault.text);
    remote->is_waiting = true;
    if (remote->kept == 0)
        finish_remote(remote);
}

static void fail_remote(struct hd_worker_run *remote, const char *type, const char *text)
{
    struct hd_buf head;
    struct hd_jw jw;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    hd_jw_init(&jw, &head);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("type"));
    hd_jw_string(&jw, hd_slice_cstr(type));
    hd_jw_key(&jw, HD_S("message"));
    hd_jw_string(&jw, hd_slice_cstr(text));
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_worker_run_read_error(hd_buf_slice(&head), remote->options.secrets, &remote->arena,
                                       &remote->answer);
    if (err)
        remote->answer = (struct hd_worker_run_answer){
            .status = HD_RUN_FAILED, .type = HD_S("MemoryError"), .message = HD_S("out of memory")};
    hd_buf_fini(&head);
}

static void end_remote(struct hd_worker_run *remote)
{
    const struct hd_worker_run_answer *answer = &remote->answer;

    uv_timer_stop(&remote->timer);
    if (answer->status == HD_RUN_FAILED)
        hd_log(HD_LOG_ERROR, "run", "run %.*s of %.*s failed%s%.*s: %.*s: %.*s",
               (int)remote->options.run_id.len, remote->options.run_id.ptr,
               (int)remote->options.graph->id.len, remote->options.graph->id.ptr,
               answer->where.len > 0 ? " at " : "", (int)answer->where.len,
               answer->where.len > 0 ? answer->where.ptr : "", (int)answer->type.len,
               answer->type.ptr, (int)(answer->message.len < 2000 ? answer->message.len : 2000),
               answer->message.ptr);
    remote->err = hd_defer_patiently(remote->app->defer, read_left, on_left, remote);
    if (remote->err) {
        hd_fault_set(&remote->fault, remote->err, "%s", hd_error_text(remote->err));
        on_left(remote);
    }
}

/* ---- retry ------------------------------------------------------------ */

/*
 * Runs on a store thread. Reads how far the run got and counts the loss; progress resets the count.
 */
static int read_progress(void *arg)
{
    struct hd_worker_run *remote = arg;
    struct hd_worker_run_options *o = &remote->options;

    find_state(remote);
    if (!remote->err)
        remote->err = hd_run_losses_add(&o->losses, remote->app->store, o->principal, o->thread,
                                        o->run_id, &remote->fault);
    return remote->err;
}

static int begin_again(struct hd_worker_run *remote)
{
    struct hd_worker_run_options *o = &remote->options;

    remote->attempt++;
    if (o->metadata) {
        o->metadata = hd_val_with((struct hd_val *)(uintptr_t)o->metadata, META_ATTEMPT,
                                  hd_val_int(remote->attempt));
        if (!o->metadata)
            return HD_ENOMEM;
    }
    hd_log(HD_LOG_WARN, "run", "run %.*s goes on at another worker: %.*s", (int)o->run_id.len,
           o->run_id.ptr, (int)remote->answer.message.len, remote->answer.message.ptr);
    if (o->on_attempt)
        o->on_attempt(o->ctx, remote->attempt, &o->losses);
    return send_run(remote);
}

static void on_progress_read(void *arg)
{
    struct hd_worker_run *remote = arg;
    int err = remote->err;

    if (!err && is_own_state(remote)) {
        remote->is_continued = true;
        remote->options.goes_on_at = hd_slice_cstr(remote->own);
    }
    hd_val_unref(remote->state);
    remote->state = NULL;
    if (remote->is_cancelled) {
        remote->answer.status = HD_RUN_CANCELLED;
        end_remote(remote);
        return;
    }
    if (!err && remote->options.losses.count >= HD_MAX_LOSSES) {
        end_remote(remote); /* with the error of the last worker */
        return;
    }
    if (!err)
        err = begin_again(remote);
    if (err) {
        fail_remote(remote, "RuntimeError", remote->err ? remote->fault.text : hd_error_text(err));
        end_remote(remote);
    }
}

/* True: the run continues at another worker, or ends because it was lost too often. */
static bool try_again(struct hd_worker_run *remote)
{
    bool was_there = hd_slice_eq(remote->answer.type, HD_S("WorkerLost"));

    if (remote->is_cancelled || !was_there)
        return false;
    return hd_defer_patiently(remote->app->defer, read_progress, on_progress_read, remote) == 0;
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

static void on_piece(void *ctx, const struct hd_rt_message *message)
{
    struct hd_worker_run *remote = ctx;
    struct hd_json json = {NULL};
    enum hd_stream_mode mode;
    struct hd_slice ns;
    struct hd_buf text;
    int err;

    if (!remote->options.on_piece || message->blob_count == 0 || remote->is_cancelled)
        return;
    err = hd_worker_run_read_piece(message->head, &json, &mode, &ns);
    if (!err)
        err = check_text(message->blobs[0]);
    if (!err && hd_val_count(remote->options.secrets) == 0) {
        remote->options.on_piece(remote->options.ctx, ns, mode, message->blobs[0]);
    } else if (!err) {
        hd_buf_init(&text, MAX_BLOB);
        err = hd_worker_run_redact(message->blobs[0], remote->options.secrets, &text);
        if (!err)
            remote->options.on_piece(remote->options.ctx, ns, mode, hd_buf_slice(&text));
        hd_buf_fini(&text);
    }
    if (err)
        hd_log(HD_LOG_WARN, "run", "an event of a worker is lost: %s", hd_error_text(err));
    hd_json_fini(&json);
}

static void take_answer(struct hd_worker_run *remote, const struct hd_rt_message *message)
{
    int err = hd_worker_run_read_answer(message->head, remote->options.secrets, &remote->arena,
                                        &remote->answer);

    if (!err && message->blob_count > 0)
        err = check_text(message->blobs[0]);
    if (!err && message->blob_count > 0)
        err = hd_worker_run_redact(message->blobs[0], remote->options.secrets, &remote->output);
    if (err)
        fail_remote(remote, "RuntimeError",
                    err == HD_EINVAL ? "the worker's answer cannot be read" : hd_error_text(err));
}

static void end_pass(struct hd_worker_run *remote)
{
    hd_worker_access_close(remote->pass);
    remote->pass = NULL;
}

static void on_call_end(void *ctx, enum hd_rt_end how, const struct hd_rt_message *message)
{
    struct hd_worker_run *remote = ctx;

    remote->call = NULL;
    end_pass(remote);
    if (how == HD_RT_ANSWERED)
        take_answer(remote, message);
    else if (hd_worker_run_read_error(message->head, remote->options.secrets, &remote->arena,
                                      &remote->answer))
        fail_remote(remote, "RuntimeError", "the worker was lost");
    if (how == HD_RT_LOST && try_again(remote))
        return;
    if (how != HD_RT_ANSWERED && remote->is_cancelled)
        remote->answer.status = HD_RUN_CANCELLED;
    end_remote(remote);
}

static int send_run(struct hd_worker_run *remote)
{
    const struct hd_worker_run_options *o = &remote->options;
    const struct hd_rt_scope scope = {.principal = o->principal,
                                      .actor = o->actor,
                                      .thread = o->thread,
                                      .root = o->root,
                                      .guard = o->guard,
                                      .metadata = o->metadata,
                                      .secrets = o->secrets,
                                      .owner = remote};
    struct hd_buf head, input;
    struct hd_slice blob;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    hd_buf_init(&input, MAX_BLOB);
    err = hd_worker_access_open_run(remote->app, o->actor,
                                    hd_val_get(o->config, HD_S("configurable")), &remote->pass);
    if (!err)
        err = hd_worker_run_write_run(o, remote->attempt, remote->is_continued, remote->app,
                                      remote->pass, &head, &input);
    blob = hd_buf_slice(&input);

    const struct hd_rt_call_options options = {
        .language = o->graph->language,
        .head = hd_buf_slice(&head),
        .blobs = &blob,
        .blob_count = input.len > 0,
        .scope = &scope,
        .is_run = !o->is_inner,
        .patience_us = remote->app->runtime_settings.start_timeout_us,
        .on_piece = on_piece,
        .on_end = on_call_end,
        .ctx = remote,
    };

    if (!err)
        err = hd_runtime_call(remote->app->runtime, &options, &remote->call);
    if (err)
        end_pass(remote);
    if (!err && remote->is_held)
        hd_rt_call_hold(remote->call, true);
    hd_buf_fini(&head);
    hd_buf_fini(&input);
    return err;
}

int hd_worker_run_start(struct hd_app *app, const struct hd_worker_run_options *options,
                        struct hd_worker_run **out)
{
    struct hd_worker_run *remote;
    int err;

    if (!app->runtime)
        return HD_ECLOSED;
    err = make_remote(app, options, &remote);
    if (err)
        return err;
    err = send_run(remote);
    if (err)
        free_remote(remote);
    else
        *out = remote;
    return err;
}

/* ---- control ---------------------------------------------------------- */

/* The worker did not stop in time: drops the call, so that it has no further effect. */
static void on_grace(uv_timer_t *timer)
{
    struct hd_worker_run *remote = timer->data;

    if (!remote->call)
        return;
    hd_log(HD_LOG_WARN, "run", "a worker has not stopped run %.*s", (int)remote->options.run_id.len,
           remote->options.run_id.ptr);
    hd_rt_call_drop(remote->call);
    remote->call = NULL;
    end_pass(remote);
    remote->answer.status = HD_RUN_CANCELLED;
    end_remote(remote);
}

void hd_worker_run_cancel(struct hd_worker_run *remote)
{
    if (remote->is_cancelled)
        return;
    remote->is_cancelled = true;
    if (!remote->call)
        return;
    hd_rt_call_cancel(remote->call);
    uv_timer_start(&remote->timer, on_grace, GRACE_MS, 0);
}

void hd_worker_run_hold(struct hd_worker_run *remote, bool is_held)
{
    remote->is_held = is_held;
    if (remote->call)
        hd_rt_call_hold(remote->call, is_held);
}

/* The worker sends no pieces before the first GO. Releasing a hold sends one. */
void hd_worker_run_listen(struct hd_worker_run *remote)
{
    if (!remote->options.is_quiet)
        return;
    remote->options.is_quiet = false;
    if (!remote->call || remote->is_held)
        return;
    hd_rt_call_hold(remote->call, true);
    hd_rt_call_hold(remote->call, false);
}
