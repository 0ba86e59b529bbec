/*
 * One run at work: from what its record says to the engine's options, and from
 * the engine's events to the thread's feed.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "config/config.h"
#include "events/event_format.h"
#include "graph/engine/events.h"
#include "graph/engine/origin.h"
#include "records/run_command.h"
#include "records/run_user.h"
#include "records/stream_modes.h"
#include "run/active_run.h"
#include "run/delegate.h"
#include "worker/worker_run.h"

#define MAX_STOPS 1024

/* ---- telling ---------------------------------------------------------- */

/* Whether there is, or may come, somebody who reads. */
static bool is_heard(const struct hd_ticket *ticket)
{
    return ticket->is_streamed || ticket->is_resumable || hd_feed_has_readers(ticket->feed);
}

static void tell(struct hd_ticket *ticket, uint32_t mode, struct hd_slice name,
                 struct hd_slice data)
{
    const struct hd_news news = {.run_id = ticket->rec.run_id,
                                 .mode = mode,
                                 .name = name,
                                 .data = data,
                                 .is_stored = ticket->is_resumable};

    if (hd_feed_add(ticket->feed, &news))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

static void tell_val(struct hd_ticket *ticket, uint32_t mode, struct hd_slice name,
                     const struct hd_val *data)
{
    struct hd_buf *scratch = &ticket->app->queue->scratch;

    hd_buf_reset(scratch);
    if (hd_val_render(scratch, data)) {
        hd_log(HD_LOG_WARN, "run", "an event is too large");
        return;
    }
    tell(ticket, mode, name, hd_buf_slice(scratch));
}

static void on_partial(void *ctx, const char *event, const struct hd_val *data)
{
    tell_val(ctx, HD_MODE_MESSAGES, hd_slice_cstr(event), data);
}

static void on_old(void *ctx, const char *event, const struct hd_val *data)
{
    (void)ctx;
    (void)event;
    (void)data;
}

/* What the state had before the run is not told: of each list all but as many as the input has. */
static int pass_over_old(struct hd_ticket *ticket, const struct hd_val *values)
{
    const struct hd_val *input = hd_val_get(ticket->kwargs, HD_S("input"));
    struct hd_val *old = hd_val_object();
    int err;

    for (size_t i = 0; i < hd_val_count(values); i++) {
        struct hd_val *key;
        const struct hd_val *list = hd_val_member(values, i, &key);
        const struct hd_val *given = hd_val_get(input, hd_val_get_string(key));
        size_t fresh = hd_val_is_list(given) ? hd_val_count(given) : !hd_val_is_null(given);

        if (hd_val_is_list(list) && hd_val_count(list) > fresh)
            old = hd_val_with(old, hd_val_get_string(key),
                              hd_val_slice(list, 0, hd_val_count(list) - fresh));
    }
    err = old ? hd_partials_values(&ticket->partials, old, on_old, NULL) : HD_ENOMEM;
    hd_val_unref(old);
    return err;
}

/* Whole messages, made of the pieces of models and of what is in the root graph's state. */
static int add_partial(struct hd_ticket *ticket, struct hd_slice ns, enum hd_stream_mode mode,
                       const struct hd_val *data)
{
    if (!(ticket->modes & HD_MODE_MESSAGES))
        return 0;
    if (mode == HD_STREAM_MESSAGES)
        return hd_partials_message(&ticket->partials, data, on_partial, ticket);
    if (mode != HD_STREAM_VALUES || ns.len > 0)
        return 0;
    if (!ticket->has_values && pass_over_old(ticket, data))
        return HD_ENOMEM;
    ticket->has_values = true;
    return hd_partials_values(&ticket->partials, data, on_partial, ticket);
}

/* `values`, or `values|node:task` of a subgraph. */
static struct hd_slice event_name(struct hd_ticket *ticket, enum hd_stream_mode mode,
                                  struct hd_slice ns, char *room, size_t size)
{
    const char *name = hd_stream_mode_name(mode);
    int len;

    if (ns.len == 0 || !ticket->subgraphs)
        return hd_slice_cstr(name);
    len = snprintf(room, size, "%s|%.*s", name, (int)ns.len, ns.ptr);
    return hd_slice(room, len > 0 && (size_t)len < size ? (size_t)len : strlen(room));
}

static struct hd_slice shown_root(const struct hd_ticket *ticket, struct hd_slice root)
{
    return ticket->app->config->namespaces_show ? root : hd_slice(NULL, 0);
}

void hd_work_tell(struct hd_ticket *ticket, struct hd_slice ns, enum hd_stream_mode mode,
                  const struct hd_val *data, struct hd_slice root)
{
    struct hd_val *shown;
    char room[2048];

    if (add_partial(ticket, ns, mode, data))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    if (!(ticket->modes & (uint32_t)mode))
        return;
    /* What models say inside subgraphs is always streamed, as the official server does. */
    if (ns.len > 0 && !ticket->subgraphs && mode != HD_STREAM_MESSAGES)
        return;
    shown = hd_shape_event(mode, data, shown_root(ticket, root));
    if (shown)
        tell_val(ticket, (uint32_t)mode, event_name(ticket, mode, ns, room, sizeof(room)), shown);
    hd_val_unref(shown);
}

/* Those whose data are not told as they come, or not only. */
static bool is_looked_at(const struct hd_ticket *ticket, enum hd_stream_mode mode)
{
    if (mode == HD_STREAM_DEBUG || mode == HD_STREAM_CHECKPOINTS)
        return true;
    return (ticket->modes & HD_MODE_MESSAGES) &&
           (mode == HD_STREAM_MESSAGES || mode == HD_STREAM_VALUES);
}

void hd_work_tell_text(struct hd_ticket *ticket, struct hd_slice ns, enum hd_stream_mode mode,
                       struct hd_slice text, struct hd_slice root)
{
    struct hd_val *data = NULL;
    char room[2048];

    if (!is_heard(ticket))
        return;
    if (!is_looked_at(ticket, mode)) {
        if ((ticket->modes & (uint32_t)mode) &&
            (ns.len == 0 || ticket->subgraphs || mode == HD_STREAM_MESSAGES))
            tell(ticket, (uint32_t)mode, event_name(ticket, mode, ns, room, sizeof(room)), text);
        return;
    }
    if (hd_val_parse_json(text, &data, NULL))
        hd_log(HD_LOG_WARN, "run", "an event cannot be read: it is missing");
    else
        hd_work_tell(ticket, ns, mode, data, root);
    hd_val_unref(data);
}

static void on_stream(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                      const struct hd_val *data)
{
    struct hd_ticket *ticket = ctx;

    hd_work_tell(ticket, ns, mode, data, ticket->root);
}

unsigned hd_work_all_modes(const struct hd_ticket *ticket)
{
    unsigned modes = ticket->modes & (HD_STREAM_ALL | HD_STREAM_EVENTS | HD_STREAM_TOOLS);

    if (ticket->modes & HD_MODE_MESSAGES)
        modes |= HD_STREAM_MESSAGES | HD_STREAM_VALUES;
    return modes;
}

unsigned hd_work_modes(const struct hd_ticket *ticket)
{
    return is_heard(ticket) ? hd_work_all_modes(ticket) : 0;
}

static void on_event(void *ctx, const struct hd_event *event)
{
    struct hd_ticket *ticket = ctx;
    unsigned modes = hd_work_modes(ticket);

    if (modes == 0)
        return;
    if (hd_stream_map(event, modes, on_stream, ticket))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

void hd_work_tell_metadata(struct hd_ticket *ticket)
{
    struct hd_buf *scratch = &ticket->app->queue->scratch;
    struct hd_jw jw;

    hd_buf_reset(scratch);
    hd_jw_init(&jw, scratch);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("run_id"));
    hd_jw_string(&jw, ticket->rec.run_id);
    hd_jw_key(&jw, HD_S("attempt"));
    hd_jw_int(&jw, ticket->rec.attempt);
    hd_jw_key(&jw, HD_S("thread_id"));
    hd_jw_string(&jw, ticket->rec.thread_id);
    hd_jw_key(&jw, HD_S("assistant_id"));
    hd_jw_string(&jw, ticket->rec.assistant_id);
    hd_jw_key(&jw, HD_S("checkpoint_ns"));
    hd_jw_string(&jw, shown_root(ticket, ticket->root));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    else
        tell(ticket, 0, HD_S("metadata"), hd_buf_slice(scratch));
}

/* ---- ending ----------------------------------------------------------- */

void hd_work_set_error(struct hd_ticket *ticket, const char *type, const char *text)
{
    struct hd_jw jw;

    ticket->outcome.status = HD_RUN_STATE_ERROR;
    hd_buf_reset(&ticket->error);
    hd_jw_init(&jw, &ticket->error);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("error"));
    hd_jw_string(&jw, hd_slice_cstr(type));
    hd_jw_key(&jw, HD_S("message"));
    hd_jw_string(&jw, hd_slice_cstr(text));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(&ticket->error);
    if (hd_arena_copy(&ticket->arena, hd_slice_cstr(type), &ticket->outcome.error_type) ||
        hd_arena_copy(&ticket->arena, hd_slice_cstr(text), &ticket->outcome.error_text))
        ticket->outcome.error_type = HD_S("MemoryError");
}

void hd_work_fail(struct hd_ticket *ticket, const char *type, const char *text)
{
    hd_work_set_error(ticket, type, text);
    hd_finish(ticket);
}

static enum hd_run_state stopped_state(const struct hd_ticket *ticket)
{
    return ticket->stop == HD_STOP_TIMEOUT ? HD_RUN_STATE_TIMEOUT : HD_RUN_STATE_INTERRUPTED;
}

void hd_work_receipt(struct hd_ticket *ticket, const struct hd_run_result *result)
{
    struct hd_jw jw;

    hd_buf_reset(&ticket->receipt);
    hd_jw_init(&jw, &ticket->receipt);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("stopped_at_step"));
    if (result)
        hd_jw_int(&jw, result->stopped_at);
    else
        hd_jw_null(&jw);
    hd_jw_key(&jw, HD_S("tokens_streamed"));
    hd_jw_int(&jw, result ? result->piece_count : 0);
    hd_jw_key(&jw, HD_S("tools_in_flight"));
    if (result && result->tools) {
        hd_val_put_rendered(&jw, result->tools);
    } else {
        hd_jw_array(&jw);
        hd_jw_array_end(&jw);
    }
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(&ticket->receipt);
    ticket->outcome.receipt = hd_buf_slice(&ticket->receipt);
}

/* What `wait` answers: the output, and the questions that wait for an answer. */
static struct hd_val *make_output(const struct hd_run_result *result)
{
    struct hd_val *output = hd_val_ref(result->output);

    if (output && hd_val_is_object(output) && hd_val_count(result->interrupts) > 0)
        output = hd_val_with(output, HD_S("__interrupt__"), hd_val_ref(result->interrupts));
    return output;
}

/* Whoever began the run reads too slowly: then it reads no faster from models. */
static void on_lag(void *ctx, bool is_behind)
{
    struct hd_ticket *ticket = ctx;

    if (ticket->run)
        hd_run_hold(ticket->run, is_behind);
    if (ticket->remote)
        hd_remote_hold(ticket->remote, is_behind);
    hd_delegation_hold(ticket->app->delegation, ticket, is_behind);
}

void hd_work_ended(struct hd_ticket *ticket, const struct hd_run_result *result)
{
    struct hd_outcome *outcome = &ticket->outcome;

    hd_feed_unwatch(ticket->feed);
    switch (result->status) {
    case HD_RUN_DONE:
    case HD_RUN_INTERRUPTED:
        outcome->status = HD_RUN_STATE_SUCCESS;
        break;
    case HD_RUN_FAILED:
        hd_work_set_error(ticket, result->error_type, result->error_text);
        break;
    case HD_RUN_CANCELLED:
        if (ticket->stop == HD_STOP_TIMEOUT)
            hd_work_set_error(ticket, "TimeoutError", "the run took longer than it may");
        outcome->status = stopped_state(ticket);
        hd_work_receipt(ticket, result);
        break;
    }
    outcome->step = result->status == HD_RUN_CANCELLED ? result->stopped_at : result->step;
    ticket->has_next = hd_val_count(result->next) > 0;
    if (result->checkpoint_id && result->checkpoint_id[0] &&
        hd_arena_copy(&ticket->arena, hd_slice_cstr(result->checkpoint_id),
                      &outcome->checkpoint_id))
        outcome->checkpoint_id = hd_slice(NULL, 0);
    hd_buf_reset(&ticket->interrupts);
    if (hd_val_count(result->asked) > 0 && hd_val_render(&ticket->interrupts, result->asked))
        hd_buf_reset(&ticket->interrupts);
}

static void on_done(void *ctx, const struct hd_run_result *result)
{
    struct hd_ticket *ticket = ctx;

    ticket->run = NULL;
    hd_work_ended(ticket, result);
    ticket->output = make_output(result);
    hd_finish(ticket);
}

/* ---- beginning -------------------------------------------------------- */

static bool flag(const struct hd_val *kwargs, struct hd_slice name)
{
    return hd_val_is_true(hd_val_get(kwargs, name));
}

static uint32_t modes_of(const struct hd_val *list)
{
    uint32_t modes = 0;

    for (size_t i = 0; i < hd_val_count(list); i++) {
        if (hd_mode_add(hd_val_get_string(hd_val_at(list, i)), &modes, NULL))
            continue; /* of a newer version */
    }
    return modes ? modes : HD_MODE_VALUES;
}

/* "*" or a list; `names` has room for MAX_STOPS. */
static struct hd_stops stops_of(const struct hd_val *val, struct hd_slice *names)
{
    struct hd_stops stops = {.all = hd_val_is_string(val), .names = names};

    for (size_t i = 0; i < hd_val_count(val) && i < MAX_STOPS; i++)
        names[stops.count++] = hd_val_get_string(hd_val_at(val, i));
    return stops;
}

static enum hd_durability durability_of(const struct hd_val *kwargs)
{
    struct hd_slice name = hd_val_get_string(hd_val_get(kwargs, HD_S("durability")));

    if (hd_slice_eq(name, HD_S("sync")))
        return HD_DURABLE_SYNC;
    return hd_slice_eq(name, HD_S("exit")) ? HD_DURABLE_EXIT : HD_DURABLE_ASYNC;
}

int hd_work_prepare(struct hd_ticket *ticket, struct hd_fault *fault)
{
    const struct hd_val *configurable;
    int err = hd_val_parse_json(ticket->rec.kwargs, &ticket->kwargs, fault);

    if (!err && ticket->rec.secrets.len > 0 && !ticket->secrets)
        err = hd_val_parse_json(ticket->rec.secrets, &ticket->secrets, fault);
    if (err)
        return err;
    configurable = hd_val_get(hd_val_get(ticket->kwargs, HD_S("config")), HD_S("configurable"));
    ticket->root = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_ns")));
    ticket->modes = modes_of(hd_val_get(ticket->kwargs, HD_S("stream_mode")));
    ticket->subgraphs = flag(ticket->kwargs, HD_S("subgraphs"));
    ticket->is_resumable = flag(ticket->kwargs, HD_S("resumable"));
    ticket->is_temporary = flag(ticket->kwargs, HD_S("temporary"));
    ticket->graph =
        hd_app_graph(ticket->app, hd_val_get_string(hd_val_get(configurable, HD_S("graph_id"))));
    return 0;
}

/* What every checkpoint of the run says of it. */
struct hd_val *hd_work_metadata(const struct hd_ticket *ticket)
{
    struct hd_val *metadata =
        hd_val_ref(hd_val_get(hd_val_get(ticket->kwargs, HD_S("config")), HD_S("metadata")));

    if (!hd_val_is_object(metadata)) {
        hd_val_unref(metadata);
        metadata = hd_val_object();
    }
    metadata = hd_val_with(metadata, HD_S("run_id"), hd_val_string(ticket->rec.run_id));
    metadata = hd_val_with(metadata, HD_S("thread_id"), hd_val_string(ticket->rec.thread_id));
    metadata = hd_val_with(metadata, HD_S("graph_id"), hd_val_string(ticket->graph->id));
    metadata = hd_val_with(metadata, HD_S("assistant_id"), hd_val_string(ticket->rec.assistant_id));
    return hd_val_with(metadata, HD_S("run_attempt"), hd_val_int(ticket->rec.attempt));
}

/* The run's configurable, and whom it works for. */
struct hd_val *hd_work_config(const struct hd_ticket *ticket)
{
    const struct hd_val *config = hd_val_get(ticket->kwargs, HD_S("config"));
    struct hd_val *configurable = hd_val_ref(hd_val_get(config, HD_S("configurable")));

    if (ticket->head.len > 0)
        configurable =
            hd_val_with(configurable, HD_S("checkpoint_id"), hd_val_string(ticket->head));
    return ticket->rec.actor.len > 0 ? hd_user_show(configurable) : configurable;
}

static int start_engine(struct hd_ticket *ticket, const struct hd_val *metadata,
                        const struct hd_val *command)
{
    const struct hd_val *config = hd_val_get(ticket->kwargs, HD_S("config"));
    struct hd_val *configurable = hd_work_config(ticket);
    struct hd_slice *names = hd_calloc((size_t)2 * MAX_STOPS, sizeof(*names));
    int64_t limit = 0;
    int err;

    if (!names || !configurable) {
        hd_val_unref(configurable);
        hd_free(names);
        return HD_ENOMEM;
    }
    if (hd_val_get_int(hd_val_get(config, HD_S("recursion_limit")), &limit) && limit > INT32_MAX)
        limit = INT32_MAX;

    struct hd_run_options options = {
        .graph = ticket->graph->graph,
        .principal = ticket->rec.principal,
        .actor = ticket->rec.actor,
        .thread = ticket->rec.thread_id,
        .guard = ticket->rec.thread_created,
        .root = ticket->root,
        .durability = durability_of(ticket->kwargs),
        .before = stops_of(hd_val_get(ticket->kwargs, HD_S("interrupt_before")), names),
        .after = stops_of(hd_val_get(ticket->kwargs, HD_S("interrupt_after")), names + MAX_STOPS),
        .recursion_limit = (int)limit,
        .config = configurable,
        .secrets = ticket->secrets,
        .context = hd_val_get(ticket->kwargs, HD_S("context")),
        .metadata = metadata,
        .shows_output = true,
        .origins = &ticket->origins,
        .asks_again = ticket->is_answered || !ticket->is_continued,
        .on_event = on_event,
        .on_done = on_done,
        .ctx = ticket,
    };

    /* What has begun goes on where it stands. */
    if (!ticket->is_continued) {
        options.checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id")));
        options.checkpoint_map = hd_val_get(configurable, HD_S("checkpoint_map"));
        options.command = command;
        if (!command)
            options.input = hd_val_get(ticket->kwargs, HD_S("input"));
    }
    err = hd_run_start(ticket->app->engine, &options, &ticket->run);
    hd_val_unref(configurable);
    hd_free(names);
    return err;
}

const struct hd_val *hd_work_command(const struct hd_ticket *ticket)
{
    return ticket->command ? ticket->command : hd_val_get(ticket->kwargs, HD_S("command"));
}

/* The command record that a request's `command` stands for; NULL without one. */
static int make_command(const struct hd_ticket *ticket, struct hd_val **out)
{
    const struct hd_val *given = hd_work_command(ticket);

    *out = NULL;
    if (!hd_val_is_object(given))
        return 0;
    *out = hd_command_make(given);
    return *out ? 0 : HD_ENOMEM;
}

static int begin(struct hd_ticket *ticket)
{
    struct hd_val *metadata = hd_work_metadata(ticket);
    struct hd_val *command = NULL;
    int err = metadata ? make_command(ticket, &command) : HD_ENOMEM;

    if (!err)
        err = start_engine(ticket, metadata, command);
    hd_val_unref(command);
    hd_val_unref(metadata);
    return err;
}

void hd_work_begin(struct hd_ticket *ticket)
{
    struct hd_app *app = ticket->app;
    struct hd_fault fault = {0};
    int err = hd_work_prepare(ticket, &fault);

    ticket->started_at = hd_clock_now_us();
    ticket->deadline = hd_clock_monotonic_us() + app->config->run_timeout_us;
    ticket->feed = hd_feed_get(app->feeds, ticket->rec.principal, ticket->rec.thread_id,
                               (uint64_t)ticket->event_seq);
    if (ticket->feed) {
        hd_feed_hold(ticket->feed);
        hd_feed_guard(ticket->feed, ticket->rec.thread_created);
    }
    if (!err && !ticket->feed)
        err = HD_ENOMEM;
    if (err) {
        hd_work_fail(ticket, "RuntimeError", fault.code ? fault.text : hd_error_text(err));
        return;
    }
    if (ticket->rec.attempt > 1)
        hd_feed_skip(ticket->feed, ticket->rec.attempt);
    hd_work_tell_metadata(ticket);
    if (!ticket->graph) {
        hd_work_fail(ticket, "ValueError", "the graph of this run is not served any more");
        return;
    }
    hd_feed_watch(ticket->feed, ticket->rec.run_id, on_lag, ticket);
    err = ticket->graph->is_remote ? hd_work_begin_remote(ticket) : begin(ticket);
    if (err)
        hd_feed_unwatch(ticket->feed);
    if (err)
        hd_work_fail(ticket, "RuntimeError", hd_error_text(err));
}

void hd_work_stop(struct hd_ticket *ticket, enum hd_stop stop)
{
    if (ticket->stop == HD_STOP_NONE || stop == HD_STOP_ROLLBACK)
        ticket->stop = stop;
    if (ticket->run && stop == HD_STOP_INTERRUPT && ticket->app->config->stop_keeps_answer)
        hd_run_stop(ticket->run);
    else if (ticket->run)
        hd_run_cancel(ticket->run);
    if (ticket->remote)
        hd_remote_cancel(ticket->remote);
}

void hd_work_fini(struct hd_ticket *ticket)
{
    if (ticket->feed) {
        hd_page_fini(&ticket->last_page, ticket->feed);
        hd_feed_release(ticket->feed);
    }
    hd_partials_fini(&ticket->partials);
    hd_origins_free(ticket->origins);
    hd_val_unref(ticket->output);
    hd_val_unref(ticket->kwargs);
    hd_val_unref(ticket->command);
    hd_val_unref(ticket->secrets);
    hd_buf_fini(&ticket->values);
    hd_buf_fini(&ticket->interrupts);
    hd_buf_fini(&ticket->error);
    hd_buf_fini(&ticket->receipt);
}
