/* Executes one run in a worker: run_execute.c with run/worker_run.h in place of the engine. */
#include <string.h>

#include "base/log.h"
#include "run/active_run.h"
#include "run/worker_run.h"
#include "run/worker_run_text.h"

static void on_piece(void *ctx, struct hd_slice ns, enum hd_stream_mode mode, struct hd_slice text)
{
    struct hd_active_run *active = ctx;

    hd_run_execute_emit_text(active, ns, mode, text, active->root);
}

static void on_attempt(void *ctx, int attempt, const struct hd_run_losses *losses)
{
    struct hd_active_run *active = ctx;

    active->rec.attempt = attempt;
    active->rec.losses = *losses;
    hd_run_execute_emit_metadata(active);
}

/* Copies the error for the event and the record, with the worker's details. */
static void keep_error(struct hd_active_run *active, struct hd_slice error)
{
    if (error.len == 0)
        return;
    hd_buf_reset(&active->error);
    if (hd_buf_append_slice(&active->error, error))
        hd_buf_reset(&active->error);
}

static void on_worker_run_done(void *ctx, const struct hd_worker_run_result *result)
{
    struct hd_active_run *active = ctx;

    active->remote = NULL;
    hd_event_log_on_reader(active->feed, NULL, NULL);
    hd_run_execute_ended(active, &result->run);
    if (result->run.status == HD_RUN_FAILED)
        keep_error(active, result->error);
    if (hd_worker_run_output(result->output, result->run.interrupts, &active->values)) {
        hd_log(HD_LOG_WARN, "run", "the output of a run is too large");
        hd_buf_reset(&active->values);
    }
    hd_run_complete(active);
}

/* A reader has connected: the worker, which sends no events without readers, starts to. */
static void on_reader(void *ctx)
{
    struct hd_active_run *active = ctx;

    if (active->remote)
        hd_worker_run_listen(active->remote);
}

static int start_worker_run(struct hd_active_run *active, const struct hd_val *config,
                            const struct hd_val *metadata)
{
    const struct hd_val *kwargs = active->kwargs;
    const struct hd_val *configurable = hd_val_get(config, HD_S("configurable"));
    const struct hd_worker_run_options options = {
        .graph = active->graph,
        .run_id = active->rec.run_id,
        .assistant_id = active->rec.assistant_id,
        .principal = active->rec.principal,
        .actor = active->rec.actor,
        .thread = active->rec.thread_id,
        .root = active->root,
        .guard = active->rec.thread_created,
        .attempt = active->rec.attempt,
        .losses = active->rec.losses,
        .is_continued = active->is_continued,
        .goes_on_at = active->goes_on_at,
        .checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id"))),
        .checkpoint_map = hd_val_get(configurable, HD_S("checkpoint_map")),
        .input = hd_val_get(kwargs, HD_S("input")),
        .command = hd_run_execute_command(active),
        .config = config,
        .secrets = active->secrets,
        .context = hd_val_get(kwargs, HD_S("context")),
        .metadata = metadata,
        .durability = hd_val_get_string(hd_val_get(kwargs, HD_S("durability"))),
        .before = hd_val_get(kwargs, HD_S("interrupt_before")),
        .after = hd_val_get(kwargs, HD_S("interrupt_after")),
        .modes = hd_run_execute_all_modes(active),
        .subgraphs = active->subgraphs,
        .is_quiet = hd_run_execute_modes(active) == 0,
        .on_piece = on_piece,
        .on_attempt = on_attempt,
        .on_done = on_worker_run_done,
        .ctx = active,
    };

    return hd_worker_run_start(active->app, &options, &active->remote);
}

/* Fails the run with the load error of its graph, if there was one. */
static bool is_broken(struct hd_active_run *active)
{
    const struct hd_app_form *form = hd_app_form(active->graph);
    struct hd_worker_run_answer answer;

    if (form->error.len == 0)
        return false;
    if (hd_worker_run_read_error(form->error, NULL, &active->arena, &answer)) {
        hd_run_execute_fail(active, "ImportError", "the graph could not be loaded");
        return true;
    }
    hd_event_log_unwatch(active->feed);
    hd_run_execute_set_error(active, answer.type.ptr, answer.message.ptr);
    keep_error(active, answer.error);
    hd_run_complete(active);
    return true;
}

int hd_run_execute_on_worker(struct hd_active_run *active)
{
    const struct hd_val *given = hd_val_get(active->kwargs, HD_S("config"));
    struct hd_val *config, *metadata;
    int err;

    if (is_broken(active))
        return 0;
    config = hd_val_with(hd_val_is_object(given) ? hd_val_ref(given) : hd_val_object(),
                         HD_S("configurable"), hd_run_execute_config(active));
    metadata = hd_run_execute_metadata(active);
    err = config && metadata ? start_worker_run(active, config, metadata) : HD_ENOMEM;
    hd_val_unref(config);
    hd_val_unref(metadata);
    if (!err)
        hd_event_log_on_reader(active->feed, on_reader, active);
    return err;
}
