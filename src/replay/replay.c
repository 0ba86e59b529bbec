#include "replay/replay.h"

#include <heddle.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "config/config.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "run/queue.h"
#include "secret/secret.h"
#include "server/open.h"
#include "store/bytes.h"
#include "store/rows.h"
#include "value/diff.h"

#define MAX_RUNS 10000
#define MAX_MEMORY ((size_t)1 << 30)

struct replay {
    struct hd_app *app;
    struct heddle *original;
    struct hd_slice principal, thread;
    struct hd_replaying *replaying;
    struct hd_arena arena;
    struct hd_run_rec *runs; /* newest first, as they are listed */
    size_t count;
    bool has_thread;
    struct hd_val *ids; /* object: ids of stored checkpoints to those made again */
    hd_replayed_fn fn;
    void *ctx;
    struct heddle_error *fault;

    /* the current run */
    struct hd_waiter waiter;
    bool has_ended;
    enum hd_run_state status;
    char error[512];
};

/* ---- a run's place ---------------------------------------------------- */

struct run_place {
    struct hd_slice root;
    const struct hd_app_graph *graph;
};

static struct hd_val *configurable_of(const struct hd_val *kwargs)
{
    return hd_val_get(hd_val_get(kwargs, HD_S("config")), HD_S("configurable"));
}

static struct run_place run_place_of(const struct replay *r, const struct hd_val *kwargs)
{
    const struct hd_val *configurable = configurable_of(kwargs);
    struct hd_slice graph = hd_val_get_string(hd_val_get(configurable, HD_S("graph_id")));

    return (struct run_place){
        .root = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_ns"))),
        .graph = hd_app_graph(r->app, graph)};
}

/* ---- the states of a run ---------------------------------------------- */

static int on_state(void *ctx, const struct hd_val *state)
{
    struct hd_val **list = ctx;
    struct hd_val *kept = hd_val_lasting(state);

    *list = hd_val_append(*list, kept);
    return *list ? 0 : HD_ENOMEM;
}

/* Newest first: the root graph's, of one run. */
static int read_states(const struct replay *r, struct heddle *store, const struct run_place *place,
                       struct hd_slice run_id, struct hd_val **out)
{
    const struct hd_address at = {.store = store,
                                  .graph = hd_app_shape(place->graph),
                                  .principal = r->principal,
                                  .thread = r->thread,
                                  .root = place->root};
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf filter;
    int err;

    *out = hd_val_list();
    hd_buf_init(&filter, 4096);
    err = hd_buf_printf(&filter, "{\"run_id\":\"%.*s\"}", (int)run_id.len, run_id.ptr);
    if (!err)
        err = hd_state_history(&at, -1, hd_slice(NULL, 0), hd_buf_slice(&filter), on_state, out,
                               &failure);
    if (err && hd_failed(&failure))
        hd_error_set(r->fault, err, "%s", failure.text ? failure.text : failure.type);
    hd_failure_fini(&failure);
    hd_buf_fini(&filter);
    return err;
}

static struct hd_slice id_in(const struct hd_val *state, struct hd_slice which)
{
    return hd_val_get_string(hd_val_get(hd_val_get(state, which), HD_S("checkpoint_id")));
}

/* From the oldest on. */
static struct hd_val *state_at(const struct hd_val *states, size_t index)
{
    size_t count = hd_val_count(states);

    return index < count ? hd_val_at(states, count - 1 - index) : NULL;
}

/* ---- comparing -------------------------------------------------------- */

static int compare_step(struct hd_diff *diff, const struct hd_val *then, const struct hd_val *now,
                        struct hd_replayed *out)
{
    static const char *const parts[] = {"values", "next"};
    int err = 0;

    for (size_t i = 0; i < HD_COUNT(parts) && !err && !out->differs; i++) {
        struct hd_slice part = hd_slice_cstr(parts[i]);

        err = hd_diff_find(diff, hd_val_get(then, part), hd_val_get(now, part), &out->differs);
    }
    if (!err && out->differs) {
        (void)hd_val_get_int(hd_val_get(hd_val_get(then, HD_S("metadata")), HD_S("step")),
                             &out->step);
        out->path = diff->path.ptr;
        out->then = diff->a;
        out->now = diff->b;
    }
    return err;
}

static int compare(struct replay *r, struct hd_diff *diff, const struct hd_val *then,
                   const struct hd_val *now, struct hd_replayed *out)
{
    size_t count = hd_val_count(then) < hd_val_count(now) ? hd_val_count(then) : hd_val_count(now);
    int err = 0;

    out->steps_then = hd_val_count(then);
    out->steps_now = hd_val_count(now);
    for (size_t i = 0; i < count && !err; i++) {
        struct hd_val *a = state_at(then, i), *b = state_at(now, i);

        r->ids =
            hd_val_with(r->ids, id_in(a, HD_S("config")), hd_val_string(id_in(b, HD_S("config"))));
        err = r->ids ? 0 : HD_ENOMEM;
        if (!err && !out->differs)
            err = compare_step(diff, a, b, out);
    }
    if (!err && !out->differs && out->steps_then != out->steps_now) {
        out->differs = true;
        out->step = (int64_t)count;
    }
    return err;
}

/* ---- edits ------------------------------------------------------------ */

/* The same checkpoint under a new id, as the newest of its namespace. */
static int put_copy(struct replay *r, const struct heddle_tuple *tuple, const char *id)
{
    struct hd_val *body = NULL;
    struct hd_buf text, versions;
    struct heddle_error error = {0};
    int err = hd_val_parse_json(hd_from_public(tuple->checkpoint), &body, r->fault);

    hd_buf_init(&text, MAX_MEMORY);
    hd_buf_init(&versions, MAX_MEMORY);
    if (!err) {
        body = hd_val_with(body, HD_S("id"), hd_val_cstr(id));
        err = body ? hd_val_render(&text, body) : HD_ENOMEM;
    }
    if (!err)
        err = hd_val_render(&versions, hd_val_get(body, HD_S("channel_versions")));
    if (!err) {
        const struct heddle_checkpoint copy = {
            .thread = {hd_to_public(r->principal), hd_to_public(r->thread)},
            .ns = tuple->ns,
            .id = {id, strlen(id)},
            .checkpoint = {text.ptr, text.len},
            .metadata = tuple->metadata,
            .new_versions = {versions.ptr, versions.len},
            .values = tuple->values,
            .value_count = tuple->value_count};

        err = heddle_put(r->app->store, &copy, &error);
    }
    hd_val_unref(body);
    hd_buf_fini(&text);
    hd_buf_fini(&versions);
    return err;
}

/* A state that no run has made: it is taken over as it is stored. */
static int take_over(struct replay *r, struct hd_slice root, struct hd_slice id)
{
    const struct heddle_key key = {.thread = {hd_to_public(r->principal), hd_to_public(r->thread)},
                                   hd_to_public(root),
                                   hd_to_public(id)};
    struct heddle_tuple *tuple = NULL;
    char new_id[HD_UUID_SIZE];
    int err = heddle_get(r->original, &key, &tuple, r->fault);

    if (err)
        return err;
    hd_uuid_checkpoint(0, new_id);
    err = put_copy(r, tuple, new_id);
    heddle_tuple_free(tuple);
    if (!err)
        r->ids = hd_val_with(r->ids, id, hd_val_cstr(new_id));
    return err ? err : r->ids ? 0 : HD_ENOMEM;
}

/* The newest checkpoint that was made again; empty: none. */
static int newest(const struct replay *r, struct hd_slice root, char out[HD_UUID_SIZE])
{
    const struct heddle_key key = {.thread = {hd_to_public(r->principal), hd_to_public(r->thread)},
                                   hd_to_public(root),
                                   {NULL, 0}};
    struct heddle_error error = {0};
    struct heddle_tuple *tuple = NULL;
    int err = heddle_get(r->app->store, &key, &tuple, &error);

    out[0] = '\0';
    if (!err && tuple->id.len == HD_UUID_LEN) {
        memcpy(out, tuple->id.data, HD_UUID_LEN);
        out[HD_UUID_LEN] = '\0';
    }
    heddle_tuple_free(tuple);
    return err == HEDDLE_ENOTFOUND ? 0 : err;
}

/* ---- the request, as it is made again --------------------------------- */

/* The checkpoint it continued from; one that is no longer the newest must be named. */
static int find_start(struct replay *r, const struct run_place *place, const struct hd_val *then,
                      bool *was_edited, struct hd_val **start)
{
    struct hd_slice parent = id_in(state_at(then, 0), HD_S("parent_config"));
    char latest[HD_UUID_SIZE];
    int err = 0;

    *start = NULL;
    *was_edited = false;
    if (parent.len == 0)
        return 0;
    if (!hd_val_get(r->ids, parent)) {
        *was_edited = true;
        err = take_over(r, place->root, parent);
    }
    if (!err)
        err = newest(r, place->root, latest);
    if (!err && !hd_slice_eq(hd_val_get_string(hd_val_get(r->ids, parent)), hd_slice_cstr(latest)))
        *start = hd_val_ref(hd_val_get(r->ids, parent));
    return err;
}

/* Takes `start`. Without what only the first time was meant for: webhooks, waiting. */
static struct hd_val *rewrite(const struct hd_val *kwargs, struct hd_val *start)
{
    struct hd_val *config = hd_val_ref(hd_val_get(kwargs, HD_S("config")));
    struct hd_val *configurable = hd_val_ref(configurable_of(kwargs));
    struct hd_val *made = hd_val_ref(kwargs);

    configurable = hd_val_without(configurable, HD_S("checkpoint_map"));
    configurable = hd_val_without(configurable, HD_S("checkpoint_id"));
    if (start)
        configurable = hd_val_with(configurable, HD_S("checkpoint_id"), start);
    made = hd_val_without(made, HD_S("webhook"));
    made = hd_val_with(made, HD_S("temporary"), hd_val_bool(false));
    made = hd_val_with(made, HD_S("resumable"), hd_val_bool(false));
    return hd_val_with(made, HD_S("config"),
                       hd_val_with(config, HD_S("configurable"), configurable));
}

/* ---- performing ------------------------------------------------------- */

static void on_outcome(void *ctx, const struct hd_outcome *outcome)
{
    struct replay *r = ctx;

    r->has_ended = true;
    r->status = outcome->status;
    r->error[0] = '\0';
    if (outcome->error_type.len > 0)
        (void)snprintf(r->error, sizeof(r->error), "%.*s: %.*s", (int)outcome->error_type.len,
                       outcome->error_type.ptr, (int)outcome->error_text.len,
                       outcome->error_text.ptr);
}

static int store_run(struct replay *r, struct hd_run_rec *run)
{
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;
    struct hd_batch view;
    struct hd_slice lane;
    int err;

    hd_batch_init(&batch);
    hd_thread_init(&thread, r->principal, r->thread);
    thread.created_at = thread.updated_at = hd_clock_now_us();
    err = hd_thread_lane(&r->arena, r->principal, r->thread, &lane);
    if (!err && !r->has_thread)
        err = hd_thread_add(&batch, &thread);
    if (!err)
        err = hd_run_add(&batch, run);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(r->app->store, lane, &view, NULL, r->fault);
    r->has_thread = r->has_thread || !err;
    hd_batch_fini(&batch);
    return err;
}

/*
 * The original keys are gone and not needed, since nothing is sent. Secrets of the run and of the
 * environment must exist all the same.
 */
#define PRETENDED "replay"

static struct hd_val *pretend_secrets(const struct hd_val *val, struct hd_val *secrets)
{
    struct hd_slice text = hd_val_get_string(val);

    if (hd_secret_is_marker(text))
        secrets = hd_val_with(secrets, text, hd_val_cstr(PRETENDED));
    for (size_t i = 0; i < hd_val_count(val); i++)
        secrets = pretend_secrets(
            hd_val_is_list(val) ? hd_val_at(val, i) : hd_val_member(val, i, NULL), secrets);
    return secrets;
}

static void pretend_keys(const struct replay *r)
{
    static const char *const names[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY",
                                        "CUSTOM_API_KEY"};

    for (size_t i = 0; i < HD_COUNT(names) && hd_replaying_count(r->replaying) > 0; i++)
        (void)setenv(names[i], PRETENDED, 0);
}

static int perform(struct replay *r, const struct hd_run_rec *stored, const struct hd_val *kwargs)
{
    struct hd_val *pretended = pretend_secrets(kwargs, hd_val_object());
    struct hd_run_rec run = *stored;
    struct hd_buf text, secrets;
    int err;

    hd_buf_init(&text, MAX_MEMORY);
    hd_buf_init(&secrets, MAX_MEMORY);
    err = pretended ? hd_val_render(&secrets, pretended) : HD_ENOMEM;
    if (!err)
        err = hd_val_render(&text, kwargs);
    run.kwargs = hd_buf_slice(&text);
    run.secrets = hd_buf_slice(&secrets);
    run.rev = 0;
    run.status = HD_RUN_STATE_PENDING;
    run.attempt = 1;
    run.due_at = run.created_at = run.updated_at = hd_clock_now_us();
    if (!err)
        err = store_run(r, &run);
    if (!err)
        err = hd_queue_add(r->app->queue, &run, 0, false);
    r->waiter = (struct hd_waiter){.fn = on_outcome, .ctx = r};
    r->has_ended = false;
    if (!err && !hd_queue_wait(r->app->queue, r->principal, r->thread, run.run_id, &r->waiter))
        err = hd_error_set(r->fault, HD_ECLOSED, "a run could not be started");
    while (!err && !r->has_ended)
        uv_run(r->app->loop, UV_RUN_ONCE);
    hd_buf_fini(&text);
    hd_buf_fini(&secrets);
    hd_val_unref(pretended);
    return err;
}

static int replay_in(struct replay *r, struct hd_replayed *out, const struct run_place *place,
                     const struct hd_val *kwargs)
{
    struct hd_val *then = NULL, *now = NULL, *start = NULL, *again = NULL;
    struct hd_diff diff;
    int err = read_states(r, r->original, place, out->run->run_id, &then);

    hd_diff_init(&diff);
    if (!err)
        err = find_start(r, place, then, &out->was_edited, &start);
    if (!err) {
        again = rewrite(kwargs, start);
        err = again ? perform(r, out->run, again) : HD_ENOMEM;
    }
    if (!err)
        err = read_states(r, r->app->store, place, out->run->run_id, &now);
    if (!err)
        err = compare(r, &diff, then, now, out);
    if (!err) {
        out->status = r->status;
        out->error = r->error[0] ? r->error : NULL;
        out->notes = hd_replaying_notes(r->replaying);
        out->ended_otherwise = out->run->due_at == 0 && out->status != out->run->status;
        /* A model that answers from the recording hides that its request has changed. */
        out->differs = out->differs || out->notes->differing > 0 || out->notes->missing > 0 ||
                       out->ended_otherwise;
        r->fn(r->ctx, out);
    }
    hd_diff_fini(&diff);
    hd_val_unref(again);
    hd_val_unref(then);
    hd_val_unref(now);
    return err;
}

static int replay_run(struct replay *r, size_t number)
{
    struct hd_replayed out = {.run = &r->runs[r->count - number], .number = number};
    struct hd_val *kwargs = NULL;
    struct run_place place;
    int err = hd_val_parse_json(out.run->kwargs, &kwargs, r->fault);

    if (err)
        return err;
    place = run_place_of(r, kwargs);
    if (!place.graph)
        err = hd_error_set(r->fault, HD_ENOTFOUND, "the graph of run %.*s is not configured",
                           (int)out.run->run_id.len, out.run->run_id.ptr);
    else
        err = replay_in(r, &out, &place, kwargs);
    hd_val_unref(kwargs);
    return err;
}

/* ---- beginning and end ------------------------------------------------ */

static int copy_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    struct replay *r = arg;
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_assistant_add(&batch, assistant);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(r->app->store, assistant->id, &view, NULL, r->fault);
    hd_batch_fini(&batch);
    return err == HD_ECONFLICT ? 0 : err; /* the system's own are there */
}

/* Copies the assistants of the participant that created a run. */
static int copy_assistants(struct replay *r, const struct hd_run_rec *run)
{
    if (hd_slice_eq(run->actor, r->principal))
        return 0;
    return hd_assistants_scan(r->original, run->actor, copy_assistant, r, r->fault);
}

static void on_quiet(void *ctx)
{
    hd_server_close(ctx);
}

static int replay_all(struct replay *r)
{
    int err;

    r->app->recorder = hd_replaying_recorder(r->replaying);
    pretend_keys(r);
    err = hd_server_open(r->app, r->fault);
    if (err)
        return err;
    err = hd_assistants_scan(r->original, r->principal, copy_assistant, r, r->fault);
    if (!err && r->principal.len > 0) /* shared assistants */
        err = hd_assistants_scan(r->original, hd_slice(NULL, 0), copy_assistant, r, r->fault);
    for (size_t i = 1; i <= r->count && !err; i++)
        err = copy_assistants(r, &r->runs[r->count - i]);
    for (size_t i = 1; i <= r->count && !err; i++)
        err = replay_run(r, i);
    hd_server_drain(r->app, on_quiet, r->app);
    uv_run(r->app->loop, UV_RUN_DEFAULT);
    hd_server_close_store(r->app);
    uv_run(r->app->loop, UV_RUN_DEFAULT);
    return err;
}

int hd_replay(struct hd_app *app, struct heddle *original, struct hd_slice principal,
              struct hd_slice thread, hd_replayed_fn fn, void *ctx, struct heddle_error *fault)
{
    struct replay r = {.app = app,
                       .original = original,
                       .principal = principal,
                       .thread = thread,
                       .ids = hd_val_object(),
                       .fn = fn,
                       .ctx = ctx,
                       .fault = fault};
    struct hd_thread_rec rec;
    int err;

    hd_arena_init(&r.arena, MAX_MEMORY);
    err = r.ids ? hd_thread_read(original, principal, thread, &r.arena, &rec, fault) : HD_ENOMEM;
    if (!err)
        err = hd_runs_list(original, principal, thread, NULL, 0, MAX_RUNS, &r.arena, &r.runs,
                           &r.count, fault);
    if (!err)
        err = hd_replaying_create(original, principal, thread, &r.replaying, fault);
    if (!err)
        err = replay_all(&r);
    hd_replaying_destroy(r.replaying);
    hd_val_unref(r.ids);
    hd_arena_fini(&r.arena);
    return err;
}
