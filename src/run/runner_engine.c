/* Runners of native graphs: graph/engine/run.h. */
#include "base/alloc.h"
#include "base/log.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "records/run_command.h"
#include "run/runner_internal.h"

#define MAX_STOPS 1024

struct engine_runner {
    struct hd_runner base; /* must be first */
    struct hd_engine_run *run;
};

static struct engine_runner *engine_from(struct hd_runner *runner)
{
    return (struct engine_runner *)runner;
}

/* ---- events ----------------------------------------------------------- */

static void on_stream(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                      const struct hd_val *data)
{
    const struct hd_runner *runner = ctx;
    const struct hd_runner_event event = {.ns = ns, .mode = mode, .data = data};

    runner->options.on_event(runner->options.ctx, &event);
}

/* Postpones cancels of all callers during an event, which reads the tasks that wait for it. */
static void hold_callers(const struct hd_runner *runner, int by)
{
    for (struct hd_runner *at = runner->options.caller; at; at = at->options.caller) {
        if (at->ops == &hd_runner_engine)
            engine_from(at)->run->telling += by;
    }
}

static void on_engine_event(void *ctx, const struct hd_event *event)
{
    struct hd_runner *runner = ctx;
    unsigned modes = runner->options.get_modes(runner->options.ctx);

    if (modes == 0)
        return;
    hold_callers(runner, 1);
    if (hd_stream_map(event, modes, on_stream, runner))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    hold_callers(runner, -1);
}

/* ---- end -------------------------------------------------------------- */

static void free_engine_runner(struct engine_runner *engine)
{
    hd_runner_fini(&engine->base);
    hd_free(engine);
}

static void on_engine_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct engine_runner *engine = ctx;
    const struct hd_runner_result out = {.run = *result};

    hd_runner_end(&engine->base, &out);
    free_engine_runner(engine);
}

/* Adds the message chunks and the stopped tools of a run that this one called. */
static void add_called_run(struct hd_runner *runner, const struct hd_engine_run_result *result)
{
    struct hd_engine_run *run = engine_from(runner)->run;
    struct hd_val *tools;

    run->chunk_count += result->chunk_count;
    if (!run->is_cancelled || hd_val_count(result->tools) == 0)
        return;
    tools = hd_val_extend(run->tools ? hd_val_ref(run->tools) : hd_val_list(), result->tools);
    if (!tools)
        return;
    hd_val_unref(run->tools);
    run->tools = tools;
}

/* ---- start ------------------------------------------------------------ */

/* "*" or a list. */
static int make_stops(const struct hd_val *val, struct hd_stops *out)
{
    size_t count = hd_val_count(val) < MAX_STOPS ? hd_val_count(val) : MAX_STOPS;
    struct hd_slice *names = count > 0 ? hd_calloc(count, sizeof(*names)) : NULL;

    *out = (struct hd_stops){.all = hd_val_is_string(val), .names = names};
    if (count > 0 && !names)
        return HD_ENOMEM;
    for (; out->count < count; out->count++)
        names[out->count] = hd_val_get_string(hd_val_at(val, out->count));
    return 0;
}

static enum hd_durability durability_of(struct hd_slice name)
{
    if (hd_slice_eq(name, HD_S("sync")))
        return HD_DURABLE_SYNC;
    return hd_slice_eq(name, HD_S("exit")) ? HD_DURABLE_EXIT : HD_DURABLE_ASYNC;
}

static int recursion_limit_of(const struct hd_val *config)
{
    int64_t limit = 0;

    if (hd_val_get_int(hd_val_get(config, HD_S("recursion_limit")), &limit) && limit > INT32_MAX)
        limit = INT32_MAX;
    return (int)limit;
}

static int start_run(struct engine_runner *engine, const struct hd_stops *before,
                     const struct hd_stops *after, const struct hd_val *command)
{
    const struct hd_runner_options *o = &engine->base.options;
    struct hd_engine_run_options options = {
        .graph = o->graph->graph,
        .principal = o->principal,
        .actor = o->actor,
        .thread = o->thread,
        .guard = o->guard,
        .root = o->root,
        .durability = durability_of(o->durability),
        .before = *before,
        .after = *after,
        .recursion_limit = recursion_limit_of(o->config),
        .config = hd_val_get(o->config, HD_S("configurable")),
        .secrets = o->secrets,
        .context = o->context,
        .metadata = o->metadata,
        .tags = o->tags,
        .shows_output = true,
        .asks_again = o->asks_again,
        .around = o->around,
        .origins = o->origins,
        .on_event = on_engine_event,
        .on_done = on_engine_done,
        .ctx = engine,
    };

    options.is_own = o->continue_at.len > 0;
    options.checkpoint_id = o->continue_at;
    /* A resumed run continues at its last checkpoint, without input. */
    if (!o->is_continued) {
        if (!options.is_own)
            options.checkpoint_id = o->checkpoint_id;
        options.checkpoint_map = o->checkpoint_map;
        options.command = command;
        options.input = command ? NULL : o->input;
    }
    return hd_engine_run_start(engine->base.app->engine, &options, &engine->run);
}

static int start_engine_runner(struct hd_app *app, const struct hd_runner_options *options,
                               struct hd_runner **out)
{
    struct engine_runner *engine = hd_calloc(1, sizeof(*engine));
    struct hd_stops before = {.count = 0}, after = {.count = 0};
    struct hd_val *command = NULL;
    int err;

    if (!engine)
        return HD_ENOMEM;
    hd_runner_init(&engine->base, &hd_runner_engine, app, options);
    err = make_stops(options->before, &before);
    if (!err)
        err = make_stops(options->after, &after);
    if (!err && hd_val_is_object(options->command)) {
        command = hd_run_command_make(options->command);
        err = command ? 0 : HD_ENOMEM;
    }
    if (!err)
        err = start_run(engine, &before, &after, command);
    hd_val_unref(command);
    hd_free((void *)(uintptr_t)before.names);
    hd_free((void *)(uintptr_t)after.names);
    if (err)
        free_engine_runner(engine);
    else
        *out = &engine->base;
    return err;
}

/* ---- control ---------------------------------------------------------- */

static void cancel_engine_runner(struct hd_runner *runner, bool keeps_answer)
{
    if (keeps_answer)
        hd_engine_run_stop(engine_from(runner)->run);
    else
        hd_engine_run_cancel(engine_from(runner)->run);
}

static void hold_engine_runner(struct hd_runner *runner, bool is_held)
{
    hd_engine_run_hold(engine_from(runner)->run, is_held);
}

/* Counts as a pending write, which delays the end. */
static void keep_engine_runner(struct hd_runner *runner)
{
    engine_from(runner)->run->root->saving++;
}

static void release_engine_runner(struct hd_runner *runner)
{
    struct hd_loop *root = engine_from(runner)->run->root;

    root->saving--;
    hd_loop_advance(root);
}

struct hd_runner *hd_runner_of(const struct hd_engine_run *run)
{
    return run->options.ctx;
}

const struct hd_runner_ops hd_runner_engine = {
    .start = start_engine_runner,
    .cancel = cancel_engine_runner,
    .hold = hold_engine_runner,
    .keep = keep_engine_runner,
    .release = release_engine_runner,
    .add_called = add_called_run,
};
