/* Delegates whose graph is in a worker: launch() of delegate.c for run/worker_run.h. */
#include "base/log.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "run/active_run.h"
#include "run/delegate_internal.h"

#define MAX_NS ((size_t)1 << 20)

static const char *const durabilities[] = {
    [HD_DURABLE_ASYNC] = "async", [HD_DURABLE_SYNC] = "sync", [HD_DURABLE_EXIT] = "exit"};

static void on_piece(void *ctx, struct hd_slice ns, enum hd_stream_mode mode, struct hd_slice text)
{
    struct hd_delegate *d = ctx;
    struct hd_buf path;

    if (d->is_cancelled || !(hd_run_execute_modes(d->active) & (unsigned)mode))
        return;
    hd_buf_init(&path, MAX_NS);
    if (hd_delegate_path(d, ns, &path))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    else
        hd_run_execute_emit_text(d->active, hd_buf_slice(&path), mode, text, d->root);
    hd_buf_fini(&path);
}

/* Parses the output: the waiting task expects a value, not text. */
static void on_delegate_done(void *ctx, const struct hd_worker_run_result *result)
{
    struct hd_run_result run = result->run;
    struct hd_val *output = NULL;

    if (result->output.len > 0 && hd_val_parse_json(result->output, &output, NULL)) {
        run.status = HD_RUN_FAILED;
        run.error_type = "RuntimeError";
        run.error_text = "its output cannot be read";
    }
    run.output = output;
    hd_delegate_ended(ctx, &run);
    hd_val_unref(output);
}

struct hd_delegate *hd_delegate_of(const struct hd_worker_run *remote)
{
    const struct hd_worker_run_options *options = hd_worker_run_options(remote);

    return options->on_done == on_delegate_done ? options->ctx : NULL;
}

/* True if the run was started for the same task: then it resumes at its last checkpoint. */
static bool is_begun(const struct hd_delegate *d)
{
    const struct hd_val *metadata = hd_val_get(d->state_then, HD_S("metadata"));
    const struct hd_val *task = hd_val_get(metadata, HD_S(HD_META_TASK));

    return !d->answer && task && hd_slice_eq(hd_val_get_string(task), d->task_id);
}

/* Converts the engine's command record to the form of a request. */
static struct hd_val *plain_command(const struct hd_val *command)
{
    const struct hd_val *resume = hd_val_get(command, HD_S("resume"));

    return hd_val_with(hd_val_object(), HD_S("resume"),
                       resume ? hd_val_ref(resume) : hd_val_null());
}

static int start_in_worker(struct hd_delegate *d, const struct hd_delegate_values *values,
                           const struct hd_val *config, const struct hd_val *command)
{
    const struct hd_delegate_caller caller = hd_delegate_caller(d);
    const struct hd_worker_run_options options = {
        .graph = d->graph,
        .run_id = d->active->rec.run_id,
        .assistant_id = d->assistant.id,
        .principal = d->principal,
        .actor = d->actor,
        .thread = d->thread,
        .root = d->root,
        .guard = caller.guard,
        .attempt = 1,
        .is_continued = is_begun(d),
        .checkpoint_id = d->chosen,
        .input = d->input,
        .command = command,
        .config = config,
        .secrets = values->secrets,
        .context = values->context,
        .metadata = values->metadata,
        .durability = hd_slice_cstr(durabilities[caller.durability]),
        .modes = hd_run_execute_all_modes(d->active),
        .subgraphs = d->active->subgraphs,
        .is_inner = true,
        .on_piece = on_piece,
        .on_done = on_delegate_done,
        .ctx = d,
    };
    int err = hd_worker_run_start(d->delegation->app, &options, &d->remote);

    if (!err && caller.is_held)
        hd_worker_run_hold(d->remote, true);
    return err;
}

int hd_delegate_launch_remote(struct hd_delegate *d, const struct hd_delegate_values *values)
{
    struct hd_val *command = values->command ? plain_command(values->command) : NULL;
    struct hd_val *config =
        hd_val_with(hd_val_object(), HD_S("configurable"), hd_val_ref(values->config));
    int err = values->command && !command ? HD_ENOMEM : 0;

    if (values->recursion_limit > 0)
        config = hd_val_with(config, HD_S("recursion_limit"), hd_val_int(values->recursion_limit));
    if (!config)
        err = HD_ENOMEM;
    if (!err)
        err = start_in_worker(d, values, config, command);
    hd_val_unref(command);
    hd_val_unref(config);
    return err;
}
