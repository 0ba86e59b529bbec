/* Executes one run: turns its record into runner options, and runner events into log entries. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "events/event_format.h"
#include "graph/engine/events.h"
#include "graph/engine/origin.h"
#include "records/run_user.h"
#include "records/stream_modes.h"
#include "run/active_run.h"
#include "run/delegate.h"
#include "run/runner_worker_text.h"

/* ---- events ----------------------------------------------------------- */

/*
 * True if the run's events have a reader or may get one later. Readers at other servers are not
 * known here.
 */
static bool has_readers(const struct hd_active_run *active)
{
    return active->is_streamed || active->is_resumable ||
           hd_event_log_has_readers(active->log, active->rec.run_id) ||
           hd_cluster_size(active->app->cluster) > 1;
}

static void add_event(struct hd_active_run *active, uint32_t mode, struct hd_slice name,
                      struct hd_slice data)
{
    const struct hd_event_log_entry entry = {.run_id = active->rec.run_id,
                                             .mode = mode,
                                             .name = name,
                                             .data = data,
                                             .is_stored = active->is_resumable};

    if (hd_event_log_add(active->log, &entry))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

static void add_event_val(struct hd_active_run *active, uint32_t mode, struct hd_slice name,
                          const struct hd_val *data)
{
    struct hd_buf *scratch = &active->app->queue->scratch;

    hd_buf_reset(scratch);
    if (hd_val_render(scratch, data)) {
        hd_log(HD_LOG_WARN, "run", "an event is too large");
        return;
    }
    add_event(active, mode, name, hd_buf_slice(scratch));
}

static void on_partial(void *ctx, const char *event, const struct hd_val *data)
{
    add_event_val(ctx, HD_MODE_MESSAGES, hd_slice_cstr(event), data);
}

static void ignore_partial(void *ctx, const char *event, const struct hd_val *data)
{
    (void)ctx;
    (void)event;
    (void)data;
}

/*
 * Marks the messages from before the run as sent. In each list of the state these are all but the
 * last n, where n is the number of messages in the input.
 */
static int skip_old_messages(struct hd_active_run *active, const struct hd_val *values)
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
    err = old ? hd_partials_values(&active->partials, old, ignore_partial, NULL) : HD_ENOMEM;
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
    if (!active->has_values && skip_old_messages(active, data))
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

/* Model output in subgraphs is always streamed, as by the official server. */
static bool is_requested(const struct hd_active_run *active, struct hd_slice ns,
                         enum hd_stream_mode mode)
{
    return (active->modes & (uint32_t)mode) &&
           (ns.len == 0 || active->subgraphs || mode == HD_STREAM_MESSAGES);
}

static void emit_val(struct hd_active_run *active, struct hd_slice ns, enum hd_stream_mode mode,
                     const struct hd_val *data, struct hd_slice root)
{
    struct hd_val *shown;
    char room[2048];

    if (add_partial(active, ns, mode, data))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    if (!is_requested(active, ns, mode))
        return;
    shown = hd_shape_event(mode, data, shown_root(active, root));
    if (shown)
        add_event_val(active, (uint32_t)mode, event_name(active, mode, ns, room, sizeof(room)),
                      shown);
    hd_val_unref(shown);
}

/* True for modes whose text must be parsed, to be reformatted or merged into messages. */
static bool needs_parsing(const struct hd_active_run *active, enum hd_stream_mode mode)
{
    if (mode == HD_STREAM_DEBUG || mode == HD_STREAM_CHECKPOINTS)
        return true;
    return (active->modes & HD_MODE_MESSAGES) &&
           (mode == HD_STREAM_MESSAGES || mode == HD_STREAM_VALUES);
}

static void emit_text(struct hd_active_run *active, const struct hd_runner_event *event,
                      struct hd_slice root)
{
    struct hd_val *data = NULL;
    char room[2048];

    if (!needs_parsing(active, event->mode)) {
        if (is_requested(active, event->ns, event->mode))
            add_event(active, (uint32_t)event->mode,
                      event_name(active, event->mode, event->ns, room, sizeof(room)), event->text);
        return;
    }
    if (hd_val_parse_json(event->text, &data, NULL))
        hd_log(HD_LOG_WARN, "run", "an event cannot be read and is missing");
    else
        emit_val(active, event->ns, event->mode, data, root);
    hd_val_unref(data);
}

void hd_run_execute_emit(struct hd_active_run *active, const struct hd_runner_event *event,
                         struct hd_slice root)
{
    if (event->data)
        emit_val(active, event->ns, event->mode, event->data, root);
    else
        emit_text(active, event, root);
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
    return has_readers(active) ? hd_run_execute_all_modes(active) : 0;
}

static unsigned get_run_modes(void *ctx)
{
    return hd_run_execute_modes(ctx);
}

static void on_run_event(void *ctx, const struct hd_runner_event *event)
{
    struct hd_active_run *active = ctx;

    hd_run_execute_emit(active, event, active->root);
}

static void emit_metadata(struct hd_active_run *active)
{
    struct hd_buf *scratch = &active->app->queue->scratch;
    struct hd_jw jw;

    hd_buf_reset(scratch);
    hd_jw_init(&jw, scratch);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "run_id", active->rec.run_id);
    hd_jw_put_int(&jw, "attempt", active->rec.attempt);
    hd_jw_put_string(&jw, "thread_id", active->rec.thread_id);
    hd_jw_put_string(&jw, "assistant_id", active->rec.assistant_id);
    hd_jw_put_string(&jw, "checkpoint_ns", shown_root(active, active->root));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
    else
        add_event(active, 0, HD_S("metadata"), hd_buf_slice(scratch));
}

/* ---- end -------------------------------------------------------------- */

static void set_error(struct hd_active_run *active, const char *type, const char *text)
{
    struct hd_jw jw;

    active->outcome.status = HD_RUN_STATE_ERROR;
    hd_buf_reset(&active->error);
    hd_jw_init(&jw, &active->error);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "error", hd_slice_cstr(type));
    hd_jw_put_string(&jw, "message", hd_slice_cstr(text));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(&active->error);
    if (hd_arena_copy(&active->arena, hd_slice_cstr(type), &active->outcome.error_type) ||
        hd_arena_copy(&active->arena, hd_slice_cstr(text), &active->outcome.error_text))
        active->outcome.error_type = HD_S("MemoryError");
}

void hd_run_execute_fail(struct hd_active_run *active, const char *type, const char *text)
{
    set_error(active, type, text);
    hd_run_complete(active);
}

static enum hd_run_state stopped_state(const struct hd_active_run *active)
{
    return active->stop == HD_STOP_TIMEOUT ? HD_RUN_STATE_TIMEOUT : HD_RUN_STATE_INTERRUPTED;
}

void hd_run_execute_receipt(struct hd_active_run *active, const struct hd_engine_run_result *result)
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
    hd_jw_put_int(&jw, "tokens_streamed", result ? result->chunk_count : 0);
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
static struct hd_val *make_output(const struct hd_engine_run_result *result)
{
    struct hd_val *output = hd_val_ref(result->output);

    if (output && hd_val_is_object(output) && hd_val_count(result->interrupts) > 0)
        output = hd_val_with(output, HD_S("__interrupt__"), hd_val_ref(result->interrupts));
    return output;
}

/* Copies the outcome, except the output. */
static void copy_outcome(struct hd_active_run *active, const struct hd_engine_run_result *result)
{
    struct hd_outcome *outcome = &active->outcome;

    switch (result->status) {
    case HD_ENGINE_RUN_DONE:
    case HD_ENGINE_RUN_INTERRUPTED:
        outcome->status = HD_RUN_STATE_SUCCESS;
        break;
    case HD_ENGINE_RUN_FAILED:
        set_error(active, result->error_type, result->error_text);
        break;
    case HD_ENGINE_RUN_CANCELLED:
        if (active->stop == HD_STOP_TIMEOUT)
            set_error(active, "TimeoutError", "the run exceeded its time limit");
        outcome->status = stopped_state(active);
        hd_run_execute_receipt(active, result);
        break;
    }
    outcome->step = result->status == HD_ENGINE_RUN_CANCELLED ? result->stopped_at : result->step;
    active->has_next = hd_val_count(result->next) > 0;
    if (result->checkpoint_id && result->checkpoint_id[0] &&
        hd_arena_copy(&active->arena, hd_slice_cstr(result->checkpoint_id),
                      &outcome->checkpoint_id))
        outcome->checkpoint_id = hd_slice(NULL, 0);
    hd_buf_reset(&active->interrupts);
    if (hd_val_count(result->asked) > 0 && hd_val_render(&active->interrupts, result->asked))
        hd_buf_reset(&active->interrupts);
}

/* Replaces the error by the worker's text, which has more details. */
static void copy_error(struct hd_active_run *active, struct hd_slice error)
{
    if (error.len == 0)
        return;
    hd_buf_reset(&active->error);
    if (hd_buf_append_slice(&active->error, error))
        hd_buf_reset(&active->error);
}

static void on_run_done(void *ctx, const struct hd_runner_result *result)
{
    struct hd_active_run *active = ctx;

    active->runner = NULL;
    hd_event_log_unwatch(&active->watch);
    copy_outcome(active, &result->run);
    if (result->run.status == HD_ENGINE_RUN_FAILED)
        copy_error(active, result->error);
    active->output = make_output(&result->run);
    if (hd_runner_text_output(result->output, result->run.interrupts, &active->values)) {
        hd_log(HD_LOG_WARN, "run", "the output of a run is too large");
        hd_buf_reset(&active->values);
    }
    hd_run_complete(active);
}

/* ---- control ---------------------------------------------------------- */

static void on_attempt(void *ctx, int attempt, const struct hd_run_losses *losses)
{
    struct hd_active_run *active = ctx;

    active->rec.attempt = attempt;
    active->rec.losses = *losses;
    emit_metadata(active);
}

/* The client that created the run reads too slowly: applies back-pressure to the models. */
static void on_lag(void *ctx, bool is_behind)
{
    struct hd_active_run *active = ctx;

    if (active->runner)
        hd_runner_hold(active->runner, is_behind);
    hd_delegation_hold(active->app->delegation, active, is_behind);
}

/* A reader has connected: the runner, which sends no events without readers, starts to. */
static void on_reader(void *ctx)
{
    struct hd_active_run *active = ctx;

    if (active->runner)
        hd_runner_listen(active->runner);
}

void hd_run_execute_stop(struct hd_active_run *active, enum hd_stop stop)
{
    bool keeps_answer = stop == HD_STOP_INTERRUPT && active->app->config->stop_keeps_answer;

    if (active->stop == HD_STOP_NONE || stop == HD_STOP_ROLLBACK)
        active->stop = stop;
    if (active->runner)
        hd_runner_cancel(active->runner, keeps_answer);
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

int hd_run_execute_prepare(struct hd_active_run *active, struct heddle_error *fault)
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

/* The metadata of every checkpoint of the run. NULL: no memory. */
static struct hd_val *make_metadata(const struct hd_active_run *active)
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

/* The run's `config`, whose configurable has the members about its user that graphs see. */
static struct hd_val *make_config(const struct hd_active_run *active)
{
    const struct hd_val *given = hd_val_get(active->kwargs, HD_S("config"));
    struct hd_val *configurable = hd_val_ref(hd_val_get(given, HD_S("configurable")));

    if (active->head.len > 0)
        configurable =
            hd_val_with(configurable, HD_S("checkpoint_id"), hd_val_string(active->head));
    if (active->rec.actor.len > 0)
        configurable = hd_user_show(configurable);
    return hd_val_with(hd_val_is_object(given) ? hd_val_ref(given) : hd_val_object(),
                       HD_S("configurable"), configurable);
}

static int start_runner(struct hd_active_run *active, const struct hd_val *config,
                        const struct hd_val *metadata)
{
    const struct hd_val *kwargs = active->kwargs;
    const struct hd_val *configurable = hd_val_get(config, HD_S("configurable"));
    const struct hd_runner_options options = {
        .graph = active->graph,
        .run_id = active->rec.run_id,
        .assistant_id = active->rec.assistant_id,
        .principal = active->rec.principal,
        .actor = active->rec.actor,
        .thread = active->rec.thread_id,
        .root = active->root,
        .guard = active->rec.guard,
        .attempt = active->rec.attempt,
        .losses = active->rec.losses,
        .is_continued = active->is_continued,
        .continue_at = active->continue_at,
        .checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id"))),
        .checkpoint_map = hd_val_get(configurable, HD_S("checkpoint_map")),
        .input = hd_val_get(kwargs, HD_S("input")),
        .command = active->command ? active->command : hd_val_get(kwargs, HD_S("command")),
        .config = config,
        .secrets = active->secrets,
        .context = hd_val_get(kwargs, HD_S("context")),
        .metadata = metadata,
        .durability = hd_val_get_string(hd_val_get(kwargs, HD_S("durability"))),
        .before = hd_val_get(kwargs, HD_S("interrupt_before")),
        .after = hd_val_get(kwargs, HD_S("interrupt_after")),
        .asks_again = active->is_answered || !active->is_continued,
        .origins = &active->origins,
        .modes = hd_run_execute_all_modes(active),
        .subgraphs = active->subgraphs,
        .is_quiet = hd_run_execute_modes(active) == 0,
        .get_modes = get_run_modes,
        .on_event = on_run_event,
        .on_attempt = on_attempt,
        .on_done = on_run_done,
        .ctx = active,
    };

    return hd_runner_start(active->app, &options, &active->runner);
}

static int begin_execution(struct hd_active_run *active)
{
    struct hd_val *config = make_config(active);
    struct hd_val *metadata = make_metadata(active);
    int err = config && metadata ? start_runner(active, config, metadata) : HD_ENOMEM;

    hd_val_unref(config);
    hd_val_unref(metadata);
    return err;
}

/* Fails the run with the load error of its graph, if there was one. */
static bool fail_unloaded(struct hd_active_run *active)
{
    const struct hd_app_form *form = hd_app_form(active->graph);
    struct hd_runner_text_answer answer;

    if (!form || form->error.len == 0)
        return false;
    if (hd_runner_text_read_error(form->error, NULL, &active->arena, &answer)) {
        hd_run_execute_fail(active, "ImportError", "the graph could not be loaded");
        return true;
    }
    set_error(active, answer.type.ptr, answer.message.ptr);
    copy_error(active, answer.error);
    hd_run_complete(active);
    return true;
}

void hd_run_execute_open_log(struct hd_active_run *active)
{
    const struct hd_run_rec *run = &active->rec;
    struct hd_event_log *log =
        hd_event_log_open(active->app->event_logs, run->principal, run->thread_id,
                          run->guard.created_at, (uint64_t)active->event_seq);

    if (active->log || !log)
        return;
    active->log = log;
    hd_event_log_hold(log);
    hd_event_log_guard(log, run->guard);
}

void hd_run_execute(struct hd_active_run *active)
{
    struct hd_app *app = active->app;
    struct heddle_error fault = {0};
    int err = hd_run_execute_prepare(active, &fault);

    active->started_at = hd_clock_now_us();
    active->deadline = hd_clock_monotonic_us() + app->config->run_timeout_us;
    hd_run_execute_open_log(active);
    if (!err && !active->log)
        err = HD_ENOMEM;
    if (err) {
        hd_run_execute_fail(active, "RuntimeError", fault.code ? fault.text : hd_error_text(err));
        return;
    }
    emit_metadata(active);
    if (!active->graph) {
        hd_run_execute_fail(active, "ValueError", "the graph of this run is no longer served");
        return;
    }
    if (fail_unloaded(active))
        return;
    active->watch =
        (struct hd_event_log_watch){.on_lag = on_lag, .on_reader = on_reader, .ctx = active};
    hd_event_log_watch(active->log, active->rec.run_id, &active->watch);
    err = begin_execution(active);
    if (err) {
        hd_event_log_unwatch(&active->watch);
        hd_run_execute_fail(active, "RuntimeError", hd_error_text(err));
    }
}

void hd_run_execute_fini(struct hd_active_run *active)
{
    hd_event_log_unwatch(&active->watch);
    if (active->log) {
        hd_event_log_page_fini(&active->last_page, active->log);
        hd_event_log_release(active->log);
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
