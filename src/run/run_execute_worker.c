/* Executes one run in a worker: as run_execute.c, with worker/worker_run.h for the engine. */
#include <string.h>

#include "base/log.h"
#include "run/active_run.h"
#include "worker/worker_run.h"
#include "worker/worker_run_text.h"

static void on_piece(void *ctx, struct hd_slice ns, enum hd_stream_mode mode, struct hd_slice text)
{
    struct hd_ticket *ticket = ctx;

    hd_work_tell_text(ticket, ns, mode, text, ticket->root);
}

static void on_attempt(void *ctx, int attempt, const struct hd_losses *losses)
{
    struct hd_ticket *ticket = ctx;

    ticket->rec.attempt = attempt;
    ticket->rec.losses = *losses;
    hd_work_tell_metadata(ticket);
}

/* As the event and the record have it: with what the worker knows beside type and text. */
static void keep_error(struct hd_ticket *ticket, struct hd_slice error)
{
    if (error.len == 0)
        return;
    hd_buf_reset(&ticket->error);
    if (hd_buf_append_slice(&ticket->error, error))
        hd_buf_reset(&ticket->error);
}

static void on_done(void *ctx, const struct hd_remote_result *result)
{
    struct hd_ticket *ticket = ctx;

    ticket->remote = NULL;
    hd_feed_on_reader(ticket->feed, NULL, NULL);
    hd_work_ended(ticket, &result->run);
    if (result->run.status == HD_RUN_FAILED)
        keep_error(ticket, result->error);
    if (hd_remote_output(result->output, result->run.interrupts, &ticket->values)) {
        hd_log(HD_LOG_WARN, "run", "the output of a run is too large");
        hd_buf_reset(&ticket->values);
    }
    hd_finish(ticket);
}

/* Somebody has come to read what nobody listened to. */
static void on_reader(void *ctx)
{
    struct hd_ticket *ticket = ctx;

    if (ticket->remote)
        hd_remote_listen(ticket->remote);
}

static int start(struct hd_ticket *ticket, const struct hd_val *config,
                 const struct hd_val *metadata)
{
    const struct hd_val *kwargs = ticket->kwargs;
    const struct hd_val *configurable = hd_val_get(config, HD_S("configurable"));
    const struct hd_remote_options options = {
        .graph = ticket->graph,
        .run_id = ticket->rec.run_id,
        .assistant_id = ticket->rec.assistant_id,
        .principal = ticket->rec.principal,
        .actor = ticket->rec.actor,
        .thread = ticket->rec.thread_id,
        .root = ticket->root,
        .guard = ticket->rec.thread_created,
        .attempt = ticket->rec.attempt,
        .losses = ticket->rec.losses,
        .is_continued = ticket->is_continued,
        .goes_on_at = ticket->goes_on_at,
        .checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id"))),
        .checkpoint_map = hd_val_get(configurable, HD_S("checkpoint_map")),
        .input = hd_val_get(kwargs, HD_S("input")),
        .command = hd_work_command(ticket),
        .config = config,
        .secrets = ticket->secrets,
        .context = hd_val_get(kwargs, HD_S("context")),
        .metadata = metadata,
        .durability = hd_val_get_string(hd_val_get(kwargs, HD_S("durability"))),
        .before = hd_val_get(kwargs, HD_S("interrupt_before")),
        .after = hd_val_get(kwargs, HD_S("interrupt_after")),
        .modes = hd_work_all_modes(ticket),
        .subgraphs = ticket->subgraphs,
        .is_quiet = hd_work_modes(ticket) == 0,
        .on_piece = on_piece,
        .on_attempt = on_attempt,
        .on_done = on_done,
        .ctx = ticket,
    };

    return hd_remote_start(ticket->app, &options, &ticket->remote);
}

/* One that could not be loaded says why. */
static bool is_broken(struct hd_ticket *ticket)
{
    const struct hd_app_form *form = hd_app_form(ticket->graph);
    struct hd_remote_answer answer;

    if (form->error.len == 0)
        return false;
    if (hd_remote_read_error(form->error, NULL, &ticket->arena, &answer)) {
        hd_work_fail(ticket, "ImportError", "the graph could not be loaded");
        return true;
    }
    hd_feed_unwatch(ticket->feed);
    hd_work_set_error(ticket, answer.type.ptr, answer.message.ptr);
    keep_error(ticket, answer.error);
    hd_finish(ticket);
    return true;
}

int hd_work_begin_remote(struct hd_ticket *ticket)
{
    const struct hd_val *given = hd_val_get(ticket->kwargs, HD_S("config"));
    struct hd_val *config, *metadata;
    int err;

    if (is_broken(ticket))
        return 0;
    config = hd_val_with(hd_val_is_object(given) ? hd_val_ref(given) : hd_val_object(),
                         HD_S("configurable"), hd_work_config(ticket));
    metadata = hd_work_metadata(ticket);
    err = config && metadata ? start(ticket, config, metadata) : HD_ENOMEM;
    hd_val_unref(config);
    hd_val_unref(metadata);
    if (!err)
        hd_feed_on_reader(ticket->feed, on_reader, ticket);
    return err;
}
