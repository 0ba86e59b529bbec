/*
 * Runs a scenario: steps on one graph (tests/equivalence/README.md). Prints the results as one JSON
 * document, with values in the canonical encoding.
 */
#include "cli/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/run.h"
#include "graph/state/state.h"
#include "heddle.h"
#include "store/bytes.h"
#include "store/url.h"

#define SERVER "http://heddle.test" /* stands for the test server */
#define MAX_OUTPUT ((size_t)1 << 30)

struct player {
    struct hd_graph *graph;
    struct heddle *store;
    uv_loop_t uv;
    struct hd_engine *engine;
    struct hd_val *threads;  /* list of names, in the order of use */
    struct hd_val *returned; /* the config that each step returned, or null */

    /* of the current step */
    struct hd_val *record;              /* object */
    struct hd_val *events;              /* list */
    struct hd_val *latest, *interrupts; /* invoke */
    bool is_invoke;
    bool is_direct;
    int err;
};

static struct hd_slice field_text(const struct hd_val *object, const char *key)
{
    return hd_val_get_string(hd_val_get(object, hd_slice_cstr(key)));
}

/* ---- files ------------------------------------------------------------ */

static bool read_in(const char *folder, const char *name, struct hd_buf *out)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return hd_cli_read_file(path, (size_t)64 << 20, out);
}

/* Replaces the placeholder by the address of the test server. */
static int replace_server(struct hd_buf *text)
{
    const char *server = getenv("HEDDLE_TEST_SERVER");
    struct hd_buf out;
    size_t at = 0;
    int err = 0;

    hd_buf_init(&out, MAX_OUTPUT);
    while (at < text->len && !err) {
        const char *found =
            server ? memmem(text->ptr + at, text->len - at, SERVER, sizeof(SERVER) - 1) : NULL;
        size_t len = found ? (size_t)(found - text->ptr) - at : text->len - at;

        err = hd_buf_append(&out, text->ptr + at, len);
        at += len;
        if (!err && found) {
            err = hd_buf_append_slice(&out, hd_slice_cstr(server));
            at += sizeof(SERVER) - 1;
        }
    }
    hd_buf_fini(text);
    *text = out;
    return err;
}

static struct hd_val *load_scenario(const char *folder)
{
    struct heddle_error fault = {0};
    struct hd_val *scenario = NULL;
    struct hd_buf text;

    if (!read_in(folder, "scenario.json", &text))
        return NULL;
    if (replace_server(&text) == 0 && hd_val_parse(hd_buf_slice(&text), &scenario, &fault) != 0)
        (void)fprintf(stderr, "%s/scenario.json: %s\n", folder, fault.text);
    hd_buf_fini(&text);
    return scenario;
}

static struct hd_graph *load_graph(const char *folder)
{
    struct hd_graph_error error;
    struct hd_graph *graph = NULL;
    struct hd_buf text;

    if (!read_in(folder, "graph.json", &text))
        return NULL;
    if (hd_graph_read(hd_buf_slice(&text), &graph, &error) != 0) {
        (void)fprintf(stderr, "%s/graph.json: %s: %s\n", folder, error.path, error.text);
        graph = NULL;
    }
    hd_buf_fini(&text);
    return graph;
}

static struct hd_val *make_error(const char *type, const char *text)
{
    return hd_val_with(hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(type)),
                       HD_S("message"), hd_val_cstr(text));
}

/* ---- finding checkpoints ---------------------------------------------- */

static struct hd_address address(struct player *p, struct hd_slice thread,
                                 const struct hd_val *config)
{
    return (struct hd_address){.store = p->store,
                               .graph = p->graph,
                               .thread = thread,
                               .ns = field_text(config, "checkpoint_ns"),
                               .checkpoint_id = field_text(config, "checkpoint_id")};
}

static struct hd_val *get_state(struct player *p, struct hd_slice thread,
                                const struct hd_val *config, bool subgraphs)
{
    struct hd_address at = address(p, thread, config);
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    int err = hd_state_get(&at, subgraphs, &state, &failure);

    if (err) {
        /* Reading fails if saved writes cannot be applied. */
        state = hd_val_with(hd_val_object(), HD_S("error"),
                            make_error(failure.type, failure.text ? failure.text : ""));
        hd_failure_fini(&failure);
    }
    return state;
}

static int collect(void *ctx, const struct hd_val *state)
{
    struct hd_val **list = ctx;

    *list = hd_val_append(*list, hd_val_ref(state));
    return *list ? 0 : HD_ENOMEM;
}

static struct hd_val *get_history(struct player *p, struct hd_slice thread,
                                  const struct hd_val *config, int64_t limit)
{
    struct hd_address at = address(p, thread, config);
    struct hd_failure failure = {NULL, NULL};
    struct hd_slice none = {NULL, 0};
    struct hd_val *list = hd_val_list();

    if (hd_state_history(&at, limit, none, none, collect, &list, &failure) != 0) {
        (void)fprintf(stderr, "history: %s\n", failure.text ? failure.text : "");
        hd_failure_fini(&failure);
    }
    return list;
}

static struct hd_val *find_checkpoint(struct player *p, struct hd_slice thread,
                                      const struct hd_val *ref);

/* The state of a task's subgraph, by a path of names. */
static struct hd_val *find_task(struct player *p, struct hd_slice thread, const struct hd_val *ref)
{
    const struct hd_val *of = hd_val_get(ref, HD_S("of"));
    struct hd_val *at = of ? find_checkpoint(p, thread, of) : hd_val_object();
    struct hd_val *state = get_state(p, thread, at, true), *result;
    struct hd_slice names = field_text(ref, "task");
    const struct hd_val *here = state;

    while (names.len > 0 && here) {
        const char *slash = memchr(names.ptr, '/', names.len);
        struct hd_slice name = hd_slice(names.ptr, slash ? (size_t)(slash - names.ptr) : names.len);
        const struct hd_val *tasks = hd_val_get(here, HD_S("tasks"));

        here = NULL;
        for (size_t i = 0; i < hd_val_count(tasks) && !here; i++) {
            if (hd_slice_eq(field_text(hd_val_at(tasks, i), "name"), name))
                here = hd_val_get(hd_val_at(tasks, i), HD_S("state"));
        }
        names = hd_slice(names.ptr + name.len + (slash != NULL),
                         names.len - name.len - (slash != NULL));
    }
    result = hd_val_ref(hd_val_get(here, HD_S("config")));
    hd_val_unref(state);
    hd_val_unref(at);
    return result;
}

static struct hd_val *find_parent(struct player *p, struct hd_slice thread,
                                  const struct hd_val *ref)
{
    struct hd_val *at = find_checkpoint(p, thread, hd_val_get(ref, HD_S("parent")));
    struct hd_val *state = get_state(p, thread, at, false);
    struct hd_val *config = hd_val_ref(hd_val_get(state, HD_S("parent_config")));

    hd_val_unref(state);
    hd_val_unref(at);
    return config;
}

static bool is_wanted_state(const struct hd_val *state, const struct hd_val *ref)
{
    const struct hd_val *metadata = hd_val_get(state, HD_S("metadata"));
    const struct hd_val *source = hd_val_get(ref, HD_S("source"));

    return hd_val_equal(hd_val_get(metadata, HD_S("step")), hd_val_get(ref, HD_S("step"))) &&
           (!source || hd_val_equal(hd_val_get(metadata, HD_S("source")), source));
}

/* The config of the checkpoint that a reference names. */
static struct hd_val *find_checkpoint(struct player *p, struct hd_slice thread,
                                      const struct hd_val *ref)
{
    struct hd_val *history, *config = NULL;
    int64_t index;

    if (hd_val_get_int(hd_val_get(ref, HD_S("saved")), &index))
        return hd_val_ref(hd_val_at(p->returned, (size_t)index));
    if (hd_val_get(ref, HD_S("task")))
        return find_task(p, thread, ref);
    if (hd_val_get(ref, HD_S("parent")))
        return find_parent(p, thread, ref);
    history = get_history(p, thread, NULL, -1);
    if (hd_val_get_int(hd_val_get(ref, HD_S("index")), &index))
        config = hd_val_get(hd_val_at_signed(history, index), HD_S("config"));
    for (size_t i = 0; i < hd_val_count(history) && !config; i++) {
        if (is_wanted_state(hd_val_at(history, i), ref))
            config = hd_val_get(hd_val_at(history, i), HD_S("config"));
    }
    config = hd_val_ref(config);
    hd_val_unref(history);
    return config;
}

/* ---- runs ------------------------------------------------------------- */

static struct hd_val *split_ns(struct hd_slice ns)
{
    struct hd_val *list = hd_val_list();

    while (ns.len > 0) {
        const char *bar = memchr(ns.ptr, '|', ns.len);
        size_t len = bar ? (size_t)(bar - ns.ptr) : ns.len;

        list = hd_val_append(list, hd_val_string(hd_slice(ns.ptr, len)));
        ns = hd_slice(ns.ptr + len + (bar != NULL), ns.len - len - (bar != NULL));
    }
    return list;
}

static void on_chunk(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                     const struct hd_val *data)
{
    struct player *p = ctx;
    struct hd_val *event;

    if (!p->is_invoke) {
        event = hd_val_with(hd_val_object(), HD_S("ns"), split_ns(ns));
        event = hd_val_with(event, HD_S("mode"), hd_val_cstr(hd_stream_mode_name(mode)));
        event = hd_val_with(event, HD_S("data"), hd_val_ref(data));
        p->events = hd_val_append(p->events, event);
    } else if (ns.len == 0 && mode == HD_STREAM_VALUES) {
        hd_val_unref(p->latest);
        p->latest = hd_val_ref(data);
    } else if (ns.len == 0 && mode == HD_STREAM_UPDATES) {
        const struct hd_val *asked = hd_val_get(data, HD_S("__interrupt__"));

        if (asked)
            p->interrupts = hd_val_extend(p->interrupts, asked);
    }
}

static void on_player_event(void *ctx, const struct hd_event *event)
{
    struct player *p = ctx;
    int err = hd_stream_map(event, HD_STREAM_ALL, on_chunk, p);

    if (err)
        p->err = err;
}

static void on_player_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct player *p = ctx;

    if (result->status == HD_ENGINE_RUN_FAILED)
        p->record = hd_val_with(p->record, HD_S("error"),
                                make_error(result->error_type, result->error_text));
}

static struct hd_stops read_stops(const struct hd_val *val, struct hd_slice *names, size_t room)
{
    struct hd_stops stops = {.names = names};

    stops.all = hd_slice_eq(hd_val_get_string(val), HD_S("*"));
    for (size_t i = 0; i < hd_val_count(val) && i < room; i++)
        names[stops.count++] = hd_val_get_string(hd_val_at(val, i));
    return stops;
}

/* The id of an interrupt, by its index or its value. */
static struct hd_slice find_interrupt(const struct hd_val *state, const struct hd_val *which)
{
    const struct hd_val *pending = hd_val_get(state, HD_S("interrupts"));
    int64_t index;

    if (hd_val_get_int(which, &index))
        return field_text(hd_val_at_signed(pending, index), "id");
    for (size_t i = 0; i < hd_val_count(pending); i++) {
        if (hd_val_equal(hd_val_get(hd_val_at(pending, i), HD_S("value")), which))
            return field_text(hd_val_at(pending, i), "id");
    }
    return hd_slice("", 0);
}

/* Replies refer to the thread's current interrupts. */
static struct hd_val *make_command(struct player *p, struct hd_slice thread,
                                   const struct hd_val *spec)
{
    const struct hd_val *ids = hd_val_get(spec, HD_S("resume_ids"));
    struct hd_val *command = hd_val_record(HD_KIND_COMMAND), *map, *state;

    for (size_t i = 0; i < hd_val_count(spec); i++) {
        struct hd_val *key, *val = hd_val_member(spec, i, &key);

        if (!hd_slice_eq(hd_val_get_string(key), HD_S("resume_ids")))
            command = hd_val_with(command, hd_val_get_string(key), hd_val_ref(val));
    }
    if (!ids)
        return command;
    map = hd_val_object();
    state = get_state(p, thread, NULL, false);
    for (size_t i = 0; i < hd_val_count(ids); i++) {
        const struct hd_val *pair = hd_val_at(ids, i);

        map = hd_val_with(map, find_interrupt(state, hd_val_at(pair, 0)),
                          hd_val_ref(hd_val_at(pair, 1)));
    }
    hd_val_unref(state);
    return hd_val_with(command, HD_S("resume"), map);
}

static enum hd_durability read_durability(struct hd_slice name)
{
    return hd_slice_eq(name, HD_S("sync"))   ? HD_DURABLE_SYNC
           : hd_slice_eq(name, HD_S("exit")) ? HD_DURABLE_EXIT
                                             : HD_DURABLE_ASYNC;
}

static void start_run(struct player *p, struct hd_slice thread, const struct hd_val *step,
                      const struct hd_val *config, const struct hd_val *command)
{
    struct hd_slice before[64], after[64];
    struct hd_engine_run_options options = {
        .graph = p->graph,
        .thread = thread,
        .checkpoint_map = hd_val_get(config, HD_S("checkpoint_map")),
        .input = command ? NULL : hd_val_get(step, HD_S("input")),
        .command = command,
        .durability = read_durability(field_text(step, "durability")),
        .before = read_stops(hd_val_get(step, HD_S("interrupt_before")), before, HD_COUNT(before)),
        .after = read_stops(hd_val_get(step, HD_S("interrupt_after")), after, HD_COUNT(after)),
        .shows_output = p->is_invoke,
        .on_event = on_player_event,
        .on_done = on_player_done,
        .ctx = p,
    };
    struct hd_engine_run *run;
    int64_t limit;

    if (field_text(config, "checkpoint_ns").len == 0)
        options.checkpoint_id = field_text(config, "checkpoint_id");
    if (hd_val_get_int(hd_val_get(step, HD_S("recursion_limit")), &limit))
        options.recursion_limit = (int)limit;
    p->err = hd_engine_run_start(p->engine, &options, &run);
    if (!p->err)
        uv_run(&p->uv, UV_RUN_DEFAULT);
}

static void do_run(struct player *p, struct hd_slice thread, const struct hd_val *step,
                   const struct hd_val *config)
{
    const struct hd_val *spec = hd_val_get(step, HD_S("command"));
    struct hd_val *command = spec ? make_command(p, thread, spec) : NULL;

    p->events = hd_val_list();
    p->interrupts = hd_val_list();
    start_run(p, thread, step, config, command);
    hd_val_unref(command);
    if (!p->is_invoke) {
        p->record = hd_val_with(p->record, HD_S("events"), hd_val_ref(p->events));
    } else if (hd_val_is_null(hd_val_get(p->record, HD_S("error")))) {
        struct hd_val *result = p->latest ? hd_val_ref(p->latest) : hd_val_null();

        if (hd_val_count(p->interrupts) > 0)
            result = hd_val_with(hd_val_is_null(result) ? hd_val_object() : result,
                                 HD_S("__interrupt__"), hd_val_ref(p->interrupts));
        p->record = hd_val_with(p->record, HD_S("result"), result);
    }
    hd_val_unref(p->events);
    hd_val_unref(p->interrupts);
    hd_val_unref(p->latest);
    p->events = p->interrupts = p->latest = NULL;
}

/* ---- updates ---------------------------------------------------------- */

static struct hd_update read_update(const struct hd_val *spec)
{
    return (struct hd_update){.values = hd_val_get(spec, HD_S("values")),
                              .as_node = field_text(spec, "as_node")};
}

static void do_update(struct player *p, struct hd_slice thread, const struct hd_val *step,
                      const struct hd_val *config)
{
    const struct hd_val *supersteps = hd_val_get(step, HD_S("supersteps"));
    struct hd_address at = address(p, thread, config);
    struct hd_failure failure = {NULL, NULL};
    struct hd_update updates[256];
    struct hd_superstep steps[64];
    struct hd_val *result = NULL;
    size_t count = 0, used = 0;

    for (size_t i = 0; i < hd_val_count(supersteps) && count < HD_COUNT(steps); i++) {
        const struct hd_val *list = hd_val_at(supersteps, i);

        steps[count++] = (struct hd_superstep){&updates[used], hd_val_count(list)};
        for (size_t j = 0; j < hd_val_count(list) && used < HD_COUNT(updates); j++)
            updates[used++] = read_update(hd_val_at(list, j));
    }
    if (!supersteps) {
        updates[0] = read_update(step);
        steps[count++] = (struct hd_superstep){updates, 1};
    }
    if (hd_state_update(&at, steps, count, NULL, &result, &failure) == 0) {
        p->returned =
            hd_val_replace(p->returned, hd_val_count(p->returned) - 1, hd_val_ref(result));
        p->record = hd_val_with(p->record, HD_S("result"), result);
    } else {
        p->record = hd_val_with(p->record, HD_S("error"),
                                make_error(failure.type, failure.text ? failure.text : ""));
        hd_failure_fini(&failure);
    }
}

/* ---- steps ------------------------------------------------------------ */

static void note_thread(struct player *p, struct hd_slice thread)
{
    for (size_t i = 0; i < hd_val_count(p->threads); i++) {
        if (hd_slice_eq(hd_val_get_string(hd_val_at(p->threads, i)), thread))
            return;
    }
    p->threads = hd_val_append(p->threads, hd_val_string(thread));
}

static void do_state(struct player *p, struct hd_slice thread, const struct hd_val *step,
                     const struct hd_val *config)
{
    struct hd_val *state =
        get_state(p, thread, config, hd_val_is_true(hd_val_get(step, HD_S("subgraphs"))));
    struct hd_val *error = hd_val_get(state, HD_S("error"));

    if (error)
        p->record = hd_val_with(p->record, HD_S("error"), hd_val_ref(error));
    else
        p->record = hd_val_with(p->record, HD_S("result"), hd_val_ref(state));
    hd_val_unref(state);
}

static void do_history(struct player *p, struct hd_slice thread, const struct hd_val *step,
                       const struct hd_val *config)
{
    int64_t limit = -1;

    (void)hd_val_get_int(hd_val_get(step, HD_S("limit")), &limit);
    p->record = hd_val_with(p->record, HD_S("result"), get_history(p, thread, config, limit));
}

static struct hd_val *perform(struct player *p, const struct hd_val *step)
{
    struct hd_slice what = field_text(step, "do"), thread = field_text(step, "thread");
    const struct hd_val *from = hd_val_get(step, HD_S("from"));
    bool only_looks = hd_slice_eq(what, HD_S("state")) || hd_slice_eq(what, HD_S("history"));
    struct hd_val *config;

    if (thread.len == 0)
        thread = HD_S("main");
    note_thread(p, thread);
    config = from ? find_checkpoint(p, thread, from) : hd_val_object();
    p->returned = hd_val_append(p->returned, hd_val_null());
    p->record = hd_val_with(hd_val_object(), HD_S("do"), hd_val_string(what));
    p->record = hd_val_with(p->record, HD_S("thread"), hd_val_string(thread));
    p->record = hd_val_with(p->record, HD_S("error"), hd_val_null());
    p->is_invoke = hd_slice_eq(what, HD_S("invoke"));
    if (p->is_invoke || hd_slice_eq(what, HD_S("stream"))) {
        do_run(p, thread, step, config);
    } else if (hd_slice_eq(what, HD_S("state"))) {
        do_state(p, thread, step, config);
    } else if (hd_slice_eq(what, HD_S("history"))) {
        do_history(p, thread, step, config);
    } else {
        do_update(p, thread, step, config);
    }
    if (!only_looks)
        p->record = hd_val_with(p->record, HD_S("state"), get_state(p, thread, NULL, true));
    hd_val_unref(config);
    return p->record;
}

/* ---- stored data ------------------------------------------------------ */

static struct hd_val *parse(struct heddle_bytes text)
{
    struct hd_val *val = NULL;

    return hd_val_parse(hd_from_public(text), &val, NULL) == 0 ? val : NULL;
}

static struct hd_val *show_ids(const struct heddle_tuple *tuple, struct heddle_bytes id)
{
    struct hd_val *config;

    if (id.len == 0)
        return hd_val_null();
    config = hd_val_with(hd_val_object(), HD_S("thread_id"),
                         hd_val_string(hd_from_public(tuple->thread.id)));
    config = hd_val_with(config, HD_S("checkpoint_ns"), hd_val_string(hd_from_public(tuple->ns)));
    return hd_val_with(config, HD_S("checkpoint_id"), hd_val_string(hd_from_public(id)));
}

static struct hd_val *show_tuple(const struct heddle_tuple *tuple)
{
    struct hd_val *values = hd_val_object(), *writes = hd_val_list(), *shown, *checkpoint;

    for (size_t i = 0; i < tuple->value_count; i++)
        values = hd_val_with(values, hd_from_public(tuple->values[i].channel),
                             parse(tuple->values[i].data));
    for (size_t i = 0; i < tuple->write_count; i++) {
        const struct heddle_write *write = &tuple->writes[i];
        struct hd_val *one = hd_val_with(hd_val_object(), HD_S("task_id"),
                                         hd_val_string(hd_from_public(write->task_id)));

        one =
            hd_val_with(one, HD_S("channel"), hd_val_string(hd_from_public(write->value.channel)));
        one = hd_val_with(one, HD_S("value"), parse(write->value.data));
        writes = hd_val_append(writes, one);
    }
    checkpoint = hd_val_with(parse(tuple->checkpoint), HD_S("channel_values"), values);
    shown = hd_val_with(hd_val_object(), HD_S("config"), show_ids(tuple, tuple->id));
    shown = hd_val_with(shown, HD_S("parent_config"), show_ids(tuple, tuple->parent));
    shown = hd_val_with(shown, HD_S("metadata"), parse(tuple->metadata));
    shown = hd_val_with(shown, HD_S("checkpoint"), checkpoint);
    return hd_val_with(shown, HD_S("pending_writes"), writes);
}

static struct hd_val *dump_thread(struct player *p, struct hd_slice thread)
{
    struct heddle_bytes id = {thread.ptr, thread.len};
    struct heddle_query query = {.thread = &id, .limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    struct hd_val *all = hd_val_object();

    if (heddle_list_open(p->store, &query, &list, NULL) != 0)
        return all;
    while (heddle_list_next(list, &tuple, NULL) == 0) {
        struct hd_slice ns = hd_from_public(tuple->ns);
        struct hd_val *items = hd_val_ref(hd_val_get(all, ns));

        items = hd_val_append(items ? items : hd_val_list(), show_tuple(tuple));
        all = hd_val_with(all, ns, items);
    }
    heddle_list_close(list);
    return all;
}

/* ---- the command ------------------------------------------------------ */

static struct hd_val *play(struct player *p, const char *folder, const struct hd_val *scenario)
{
    const struct hd_val *steps = hd_val_get(scenario, HD_S("steps"));
    const char *name = strrchr(folder, '/');
    struct hd_val *records = hd_val_list(), *threads = hd_val_object(), *document;

    for (size_t i = 0; i < hd_val_count(steps) && !p->err; i++)
        records = hd_val_append(records, perform(p, hd_val_at(steps, i)));
    for (size_t i = 0; i < hd_val_count(p->threads); i++) {
        struct hd_slice thread = hd_val_get_string(hd_val_at(p->threads, i));

        threads = hd_val_with(threads, thread, dump_thread(p, thread));
    }
    document =
        hd_val_with(hd_val_object(), HD_S("scenario"), hd_val_cstr(name ? name + 1 : folder));
    document = hd_val_with(document, HD_S("steps"), records);
    return hd_val_with(document, HD_S("threads"), threads);
}

static int print(struct hd_val *document)
{
    struct hd_buf out;
    int status = HD_EXIT_FAILED;

    hd_buf_init(&out, MAX_OUTPUT);
    if (document && hd_val_write(&out, document) == 0 && hd_buf_append_byte(&out, '\n') == 0 &&
        hd_cli_write_out(hd_buf_slice(&out)))
        status = HD_EXIT_OK;
    else
        (void)fprintf(stderr, "heddle run: cannot write the record\n");
    hd_buf_fini(&out);
    hd_val_unref(document);
    return status;
}

static int play_all(struct player *p, const char *folder, const struct hd_val *scenario)
{
    int status = HD_EXIT_FAILED;

    p->threads = hd_val_list();
    p->returned = hd_val_list();
    uv_loop_init(&p->uv);
    if (hd_engine_create(p->store, &p->uv, p->is_direct, &p->engine) == 0) {
        status = print(play(p, folder, scenario));
        hd_engine_destroy(p->engine);
    }
    uv_run(&p->uv, UV_RUN_DEFAULT);
    uv_loop_close(&p->uv);
    hd_val_unref(p->threads);
    hd_val_unref(p->returned);
    return status;
}

int hd_scenario_run(const char *folder, const char *store_url)
{
    struct player p = {.graph = load_graph(folder),
                       .is_direct = strncmp(store_url, "memory:", 7) == 0};
    struct hd_val *scenario = p.graph ? load_scenario(folder) : NULL;
    struct heddle_error error = {0};
    int status = HD_EXIT_FAILED;
    char shown[512];

    hd_url_show(store_url, shown, sizeof(shown));
    if (scenario && heddle_open(&p.store, store_url, &error) != 0)
        (void)fprintf(stderr, "%s: %s\n", shown, error.text);
    else if (scenario)
        status = play_all(&p, folder, scenario);
    heddle_close(p.store);
    hd_val_unref(scenario);
    hd_graph_destroy(p.graph);
    return status;
}
