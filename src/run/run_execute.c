/* Executes one run: turns its record into engine options, and engine events into log entries. */
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
#include "run/worker_run.h"

#define MAX_STOPS 1024

/* ---- events ----------------------------------------------------------- */

/* True if the run's events have a reader or may get one later. */
static bool is_heard(const struct hd_active_run *active)
{
    return active->is_streamed || active->is_resumable || hd_event_log_has_readers(active->feed);
}

static void tell_log(struct hd_active_run *active, uint32_t mode, struct hd_slice name,
                     struct hd_slice data)
{
    const struct hd_event_log_entry news = {.run_id = active->rec.run_id,
                                            .mode = mode,
                                            .name = name,
                                            .data = data,
                                            .is_stored = active->is_resumable};

    if (hd_event_log_add(active->feed, &news))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

static void tell_val(struct hd_active_run *active, uint32_t mode, struct hd_slice name,
                     const struct hd_val *data)
{
    struct hd_buf *scratch = &active->app->queue->scratch;

    hd_buf_reset(scratch);
    if (hd_val_render(scratch, data)) {
        hd_log(HD_LOG_WARN, "run", "an event is too large");
        return;
    }
    tell_log(active, mode, name, hd_buf_slice(scratch));
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

/*
 * Marks the messages from before the run as sent. In each list of the state these are all but the
 * last n, where n is the number of messages in the input.
 */
static int pass_over_old(struct hd_active_run *active, const struct hd_val *values)
{
    const struct hd_val *input = hd_val_get(active->kwargs, HD_S("input"));
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
    err = old ? hd_partials_values(&active->partials, old, on_old, NULL) : HD_ENOMEM;
    hd_val_unref(old);
    return err;
}

/* Emits whole messages, built from the models' chunks and from the root graph's state. */
static int add_partial(struct hd_active_run *active, struct hd_slice ns, enum hd_stream_mode mode,
                       const struct hd_val *data)
{
    if (!(active->modes & HD_MODE_MESSAGES))
        return 0;
    if (mode == HD_STREAM_MESSAGES)
        return hd_partials_message(&active->partials, data, on_partial, active);
    if (mode != HD_STREAM_VALUES || ns.len > 0)
        return 0;
    if (!active->has_values && pass_over_old(active, data))
        return HD_ENOMEM;
    active->has_values = true;
    return hd_partials_values(&active->partials, data, on_partial, active);
}

/* `values`, or `values|node:task` of a subgraph. */
static struct hd_slice event_name(struct hd_active_run *active, enum hd_stream_mode mode,
                                  struct hd_slice ns, char *room, size_t size)
{
    const char *name = hd_stream_mode_name(mode);
    int len;

    if (ns.len == 0 || !active->subgraphs)
        return hd_slice_cstr(name);
    len = snprintf(room, size, "%s|%.*s", name, (int)ns.len, ns.ptr);
    return hd_slice(room, len > 0 && (size_t)len < size ? (size_t)len : strlen(room));
}

static struct hd_slice shown_root(const struct hd_active_run *active, struct hd_slice root)
{
    return active->app->config->namespaces_show ? root : hd_slice(NULL, 0);
}

void hd_run_execute_emit(struct hd_active_run *active, struct hd_slice ns, enum hd_stream_mode mode,
                         const struct hd_val *data, struct hd_slice root)
{
    struct hd_val *shown;
    char room[2048];

    if (add_partial(active, ns, mode, data))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    if (!(active->modes & (uint32_t)mode))
        return;
    /* Model output in subgraphs is always streamed, as by the official server. */
    if (ns.len > 0 && !active->subgraphs && mode != HD_STREAM_MESSAGES)
        return;
    shown = hd_shape_event(mode, data, shown_root(active, root));
    if (shown)
        tell_val(active, (uint32_t)mode, event_name(active, mode, ns, room, sizeof(room)), shown);
    hd_val_unref(shown);
}

/* True for modes whose data must be parsed, to be reformatted or merged into messages. */
static bool is_looked_at(const struct hd_active_run *active, enum hd_stream_mode mode)
{
    if (mode == HD_STREAM_DEBUG || mode == HD_STREAM_CHECKPOINTS)
        return true;
    return (active->modes & HD_MODE_MESSAGES) &&
           (mode == HD_STREAM_MESSAGES || mode == HD_STREAM_VALUES);
}

void hd_run_execute_emit_text(struct hd_active_run *active, struct hd_slice ns,
                              enum hd_stream_mode mode, struct hd_slice text, struct hd_slice root)
{
    struct hd_val *data = NULL;
    char room[2048];

    if (!is_heard(active))
        return;
    if (!is_looked_at(active, mode)) {
        if ((active->modes & (uint32_t)mode) &&
            (ns.len == 0 || active->subgraphs || mode == HD_STREAM_MESSAGES))
            tell_log(active, (uint32_t)mode, event_name(active, mode, ns, room, sizeof(room)),
                     text);
        return;
    }
    if (hd_val_parse_json(text, &data, NULL))
        hd_log(HD_LOG_WARN, "run", "an event cannot be read: it is missing");
    else
        hd_run_execute_emit(active, ns, mode, data, root);
    hd_val_unref(data);
}

static void on_stream(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                      const struct hd_val *data)
{
    struct hd_active_run *active = ctx;

    hd_run_execute_emit(active, ns, mode, data, active->root);
}

unsigned hd_run_execute_all_modes(const struct hd_active_run *active)
{
    unsigned modes = active->modes & (HD_STREAM_ALL | HD_STREAM_EVENTS | HD_STREAM_TOOLS);

    if (active->modes & HD_MODE_MESSAGES)
        modes |= HD_STREAM_MESSAGES | HD_STREAM_VALUES;
    return modes;
}

unsigned hd_run_execute_modes(const struct hd_active_run *active)
{
    return is_heard(active) ? hd_run_execute_all_modes(active) : 0;
}

static void on_run_event(void *ctx, const struct hd_event *event)
{
    struct hd_active_run *active = ctx;
    unsigned modes = hd_run_execute_modes(active);

    if (modes == 0)
        return;
    if (hd_stream_map(event, modes, on_stream, active))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

void hd_run_execute_emit_metadata(struct hd_active_run *active)
{
    struct hd_buf *scratch = &active->app->queue->scratch;
    struct hd_jw jw;

    hd_buf_reset(scratch);
    hd_jw_init(&jw, scratch);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("run_id"));
    hd_jw_string(&jw, active->rec.run_id);
    hd_jw_key(&jw, HD_S("attempt"));
    hd_jw_int(&jw, active->rec.attempt);
    hd_jw_key(&jw, HD_S("thread_id"));
    hd_jw_string(&jw, active->rec.thread_id);
    hd_jw_key(&jw, HD_S("assistant_id"));
    hd_jw_string(&jw, active->rec.assistant_id);
    hd_jw_key(&jw, HD_S("checkpoint_ns"));
    hd_jw_string(&jw, shown_root(active, active->root));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    else
        tell_log(active, 0, HD_S("metadata"), hd_buf_slice(scratch));
}

/* ---- end -------------------------------------------------------------- */

void hd_run_execute_set_error(struct hd_active_run *active, const char *type, const char *text)
{
    struct hd_jw jw;

    active->outcome.status = HD_RUN_STATE_ERROR;
    hd_buf_reset(&active->error);
    hd_jw_init(&jw, &active->error);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("error"));
    hd_jw_string(&jw, hd_slice_cstr(type));
    hd_jw_key(&jw, HD_S("message"));
    hd_jw_string(&jw, hd_slice_cstr(text));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(&active->error);
    if (hd_arena_copy(&active->arena, hd_slice_cstr(type), &active->outcome.error_type) ||
        hd_arena_copy(&active->arena, hd_slice_cstr(text), &active->outcome.error_text))
        active->outcome.error_type = HD_S("MemoryError");
}

void hd_run_execute_fail(struct hd_active_run *active, const char *type, const char *text)
{
    hd_run_execute_set_error(active, type, text);
    hd_run_complete(active);
}

static enum hd_run_state stopped_state(const struct hd_active_run *active)
{
    return active->stop == HD_STOP_TIMEOUT ? HD_RUN_STATE_TIMEOUT : HD_RUN_STATE_INTERRUPTED;
}

void hd_run_execute_receipt(struct hd_active_run *active, const struct hd_run_result *result)
{
    struct hd_jw jw;

    hd_buf_reset(&active->receipt);
    hd_jw_init(&jw, &active->receipt);
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
        hd_buf_reset(&active->receipt);
    active->outcome.receipt = hd_buf_slice(&active->receipt);
}

/* The response of `wait`: the output and the open interrupts. */
static struct hd_val *make_output(const struct hd_run_result *result)
{
    struct hd_val *output = hd_val_ref(result->output);

    if (output && hd_val_is_object(output) && hd_val_count(result->interrupts) > 0)
        output = hd_val_with(output, HD_S("__interrupt__"), hd_val_ref(result->interrupts));
    return output;
}

/* The client that created the run reads too slowly: applies back-pressure to the models. */
static void on_lag(void *ctx, bool is_behind)
{
    struct hd_active_run *active = ctx;

    if (active->run)
        hd_run_hold(active->run, is_behind);
    if (active->remote)
        hd_worker_run_hold(active->remote, is_behind);
    hd_delegation_hold(active->app->delegation, active, is_behind);
}

void hd_run_execute_ended(struct hd_active_run *active, const struct hd_run_result *result)
{
    struct hd_outcome *outcome = &active->outcome;

    hd_event_log_unwatch(active->feed);
    switch (result->status) {
    case HD_RUN_DONE:
    case HD_RUN_INTERRUPTED:
        outcome->status = HD_RUN_STATE_SUCCESS;
        break;
    case HD_RUN_FAILED:
        hd_run_execute_set_error(active, result->error_type, result->error_text);
        break;
    case HD_RUN_CANCELLED:
        if (active->stop == HD_STOP_TIMEOUT)
            hd_run_execute_set_error(active, "TimeoutError", "the run took longer than it may");
        outcome->status = stopped_state(active);
        hd_run_execute_receipt(active, result);
        break;
    }
    outcome->step = result->status == HD_RUN_CANCELLED ? result->stopped_at : result->step;
    active->has_next = hd_val_count(result->next) > 0;
    if (result->checkpoint_id && result->checkpoint_id[0] &&
        hd_arena_copy(&active->arena, hd_slice_cstr(result->checkpoint_id),
                      &outcome->checkpoint_id))
        outcome->checkpoint_id = hd_slice(NULL, 0);
    hd_buf_reset(&active->interrupts);
    if (hd_val_count(result->asked) > 0 && hd_val_render(&active->interrupts, result->asked))
        hd_buf_reset(&active->interrupts);
}

static void on_run_done(void *ctx, const struct hd_run_result *result)
{
    struct hd_active_run *active = ctx;

    active->run = NULL;
    hd_run_execute_ended(active, result);
    active->output = make_output(result);
    hd_run_complete(active);
}

/* ---- start ------------------------------------------------------------ */

static bool flag(const struct hd_val *kwargs, struct hd_slice name)
{
    return hd_val_is_true(hd_val_get(kwargs, name));
}

static uint32_t modes_of(const struct hd_val *list)
{
    uint32_t modes = 0;

    for (size_t i = 0; i < hd_val_count(list); i++) {
        if (hd_mode_add(hd_val_get_string(hd_val_at(list, i)), &modes, NULL))
            continue; /* unknown: from a newer version */
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

int hd_run_execute_prepare(struct hd_active_run *active, struct hd_fault *fault)
{
    const struct hd_val *configurable;
    int err = hd_val_parse_json(active->rec.kwargs, &active->kwargs, fault);

    if (!err && active->rec.secrets.len > 0 && !active->secrets)
        err = hd_val_parse_json(active->rec.secrets, &active->secrets, fault);
    if (err)
        return err;
    configurable = hd_val_get(hd_val_get(active->kwargs, HD_S("config")), HD_S("configurable"));
    active->root = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_ns")));
    active->modes = modes_of(hd_val_get(active->kwargs, HD_S("stream_mode")));
    active->subgraphs = flag(active->kwargs, HD_S("subgraphs"));
    active->is_resumable = flag(active->kwargs, HD_S("resumable"));
    active->is_temporary = flag(active->kwargs, HD_S("temporary"));
    active->graph =
        hd_app_graph(active->app, hd_val_get_string(hd_val_get(configurable, HD_S("graph_id"))));
    return 0;
}

struct hd_val *hd_run_execute_metadata(const struct hd_active_run *active)
{
    struct hd_val *metadata =
        hd_val_ref(hd_val_get(hd_val_get(active->kwargs, HD_S("config")), HD_S("metadata")));

    if (!hd_val_is_object(metadata)) {
        hd_val_unref(metadata);
        metadata = hd_val_object();
    }
    metadata = hd_val_with(metadata, HD_S("run_id"), hd_val_string(active->rec.run_id));
    metadata = hd_val_with(metadata, HD_S("thread_id"), hd_val_string(active->rec.thread_id));
    metadata = hd_val_with(metadata, HD_S("graph_id"), hd_val_string(active->graph->id));
    metadata = hd_val_with(metadata, HD_S("assistant_id"), hd_val_string(active->rec.assistant_id));
    return hd_val_with(metadata, HD_S("run_attempt"), hd_val_int(active->rec.attempt));
}

/* The run's configurable, with the members about its user that graphs see. */
struct hd_val *hd_run_execute_config(const struct hd_active_run *active)
{
    const struct hd_val *config = hd_val_get(active->kwargs, HD_S("config"));
    struct hd_val *configurable = hd_val_ref(hd_val_get(config, HD_S("configurable")));

    if (active->head.len > 0)
        configurable =
            hd_val_with(configurable, HD_S("checkpoint_id"), hd_val_string(active->head));
    return active->rec.actor.len > 0 ? hd_user_show(configurable) : configurable;
}

static int start_engine(struct hd_active_run *active, const struct hd_val *metadata,
                        const struct hd_val *command)
{
    const struct hd_val *config = hd_val_get(active->kwargs, HD_S("config"));
    struct hd_val *configurable = hd_run_execute_config(active);
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
        .graph = active->graph->graph,
        .principal = active->rec.principal,
        .actor = active->rec.actor,
        .thread = active->rec.thread_id,
        .guard = active->rec.thread_created,
        .root = active->root,
        .durability = durability_of(active->kwargs),
        .before = stops_of(hd_val_get(active->kwargs, HD_S("interrupt_before")), names),
        .after = stops_of(hd_val_get(active->kwargs, HD_S("interrupt_after")), names + MAX_STOPS),
        .recursion_limit = (int)limit,
        .config = configurable,
        .secrets = active->secrets,
        .context = hd_val_get(active->kwargs, HD_S("context")),
        .metadata = metadata,
        .shows_output = true,
        .origins = &active->origins,
        .asks_again = active->is_answered || !active->is_continued,
        .on_event = on_run_event,
        .on_done = on_run_done,
        .ctx = active,
    };

    /* A resumed run continues at its last checkpoint, without input. */
    if (!active->is_continued) {
        options.checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id")));
        options.checkpoint_map = hd_val_get(configurable, HD_S("checkpoint_map"));
        options.command = command;
        if (!command)
            options.input = hd_val_get(active->kwargs, HD_S("input"));
    }
    err = hd_run_start(active->app->engine, &options, &active->run);
    hd_val_unref(configurable);
    hd_free(names);
    return err;
}

const struct hd_val *hd_run_execute_command(const struct hd_active_run *active)
{
    return active->command ? active->command : hd_val_get(active->kwargs, HD_S("command"));
}

/* Converts the `command` of the request to a command record; *out NULL: there was no command. */
static int make_command(const struct hd_active_run *active, struct hd_val **out)
{
    const struct hd_val *given = hd_run_execute_command(active);

    *out = NULL;
    if (!hd_val_is_object(given))
        return 0;
    *out = hd_command_make(given);
    return *out ? 0 : HD_ENOMEM;
}

static int begin_execution(struct hd_active_run *active)
{
    struct hd_val *metadata = hd_run_execute_metadata(active);
    struct hd_val *command = NULL;
    int err = metadata ? make_command(active, &command) : HD_ENOMEM;

    if (!err)
        err = start_engine(active, metadata, command);
    hd_val_unref(command);
    hd_val_unref(metadata);
    return err;
}

void hd_run_execute(struct hd_active_run *active)
{
    struct hd_app *app = active->app;
    struct hd_fault fault = {0};
    int err = hd_run_execute_prepare(active, &fault);

    active->started_at = hd_clock_now_us();
    active->deadline = hd_clock_monotonic_us() + app->config->run_timeout_us;
    active->feed = hd_event_log_get(app->feeds, active->rec.principal, active->rec.thread_id,
                                    (uint64_t)active->event_seq);
    if (active->feed) {
        hd_event_log_hold(active->feed);
        hd_event_log_guard(active->feed, active->rec.thread_created);
    }
    if (!err && !active->feed)
        err = HD_ENOMEM;
    if (err) {
        hd_run_execute_fail(active, "RuntimeError", fault.code ? fault.text : hd_error_text(err));
        return;
    }
    if (active->rec.attempt > 1)
        hd_event_log_skip(active->feed, active->rec.attempt);
    hd_run_execute_emit_metadata(active);
    if (!active->graph) {
        hd_run_execute_fail(active, "ValueError", "the graph of this run is not served any more");
        return;
    }
    hd_event_log_watch(active->feed, active->rec.run_id, on_lag, active);
    err = active->graph->is_remote ? hd_run_execute_on_worker(active) : begin_execution(active);
    if (err)
        hd_event_log_unwatch(active->feed);
    if (err)
        hd_run_execute_fail(active, "RuntimeError", hd_error_text(err));
}

void hd_run_execute_stop(struct hd_active_run *active, enum hd_stop stop)
{
    if (active->stop == HD_STOP_NONE || stop == HD_STOP_ROLLBACK)
        active->stop = stop;
    if (active->run && stop == HD_STOP_INTERRUPT && active->app->config->stop_keeps_answer)
        hd_run_stop(active->run);
    else if (active->run)
        hd_run_cancel(active->run);
    if (active->remote)
        hd_worker_run_cancel(active->remote);
}

void hd_run_execute_fini(struct hd_active_run *active)
{
    if (active->feed) {
        hd_page_fini(&active->last_page, active->feed);
        hd_event_log_release(active->feed);
    }
    hd_partials_fini(&active->partials);
    hd_origins_free(active->origins);
    hd_val_unref(active->output);
    hd_val_unref(active->kwargs);
    hd_val_unref(active->command);
    hd_val_unref(active->secrets);
    hd_buf_fini(&active->values);
    hd_buf_fini(&active->interrupts);
    hd_buf_fini(&active->error);
    hd_buf_fini(&active->receipt);
}
