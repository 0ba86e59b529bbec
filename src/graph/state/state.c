/* Reads states: a checkpoint, its tasks, and their pending writes. */
#include "graph/state/state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/decl/subgraph.h"
#include "graph/engine/apply.h"
#include "graph/engine/ns.h"
#include "graph/engine/runtime_migrate.h"
#include "graph/engine/save.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/state/state_internal.h"
#include "graph/state/worker_graph.h"
#include "graph/state/worker_graph_internal.h"
#include "store/allowance.h"
#include "store/bytes.h"
#include "value/val.h"

static int report_store_error(struct hd_failure *failure, int err, const struct heddle_error *error)
{
    hd_failure_code(failure, err, error);
    return err;
}

/* ---- namespaces ------------------------------------------------------- */

static bool is_number(struct hd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit((unsigned char)s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

/* The node of a namespace: for `a:id|b:id`, node b of the subgraph that node a runs. */
static const struct hd_node *find_inner(const struct hd_graph *graph, struct hd_slice ns)
{
    const struct hd_node *found = NULL;

    while (ns.len > 0) {
        const char *bar = memchr(ns.ptr, '|', ns.len);
        struct hd_slice part = hd_slice(ns.ptr, bar ? (size_t)(bar - ns.ptr) : ns.len);
        const char *colon = memchr(part.ptr, ':', part.len);
        size_t node;

        ns = hd_slice(ns.ptr + part.len + (bar != NULL), ns.len - part.len - (bar != NULL));
        if (is_number(part))
            continue;
        node = hd_graph_find_node(
            graph, hd_slice(part.ptr, colon ? (size_t)(colon - part.ptr) : part.len));
        if (node == HD_GRAPH_END || !hd_node_has_states(&graph->nodes[node]))
            return NULL;
        found = &graph->nodes[node];
        graph = found->graph;
    }
    return found;
}

bool hd_state_knows_ns(const struct hd_graph *graph, struct hd_slice ns)
{
    return ns.len == 0 || find_inner(graph, ns);
}

/* A subgraph with its own memory stores its checkpoints in a namespace without task ids. */
static void strip_ids(char *ns)
{
    size_t kept = 0;
    bool is_id = false;

    for (size_t i = 0; ns[i]; i++) {
        is_id = ns[i] == ':' || (is_id && ns[i] != '|');
        if (!is_id)
            ns[kept++] = ns[i];
    }
    ns[kept] = '\0';
}

int hd_found_init(struct hd_found *found, const struct hd_address *at, struct hd_failure *failure)
{
    const struct hd_node *node = at->ns.len > 0 ? find_inner(at->graph, at->ns) : NULL;
    const struct hd_subgraph_spec *spec = node ? node->spec : NULL;
    int err;

    *found = (struct hd_found){.graph = node ? node->graph : at->graph, .step = -1};
    if (!hd_ns_is_root(at->root)) {
        hd_failure_set(failure, "ValueError", "A root namespace must not contain '|'");
        return HD_EINVAL;
    }
    if (at->ns.len > 0 && !node && !at->graph->is_open) {
        hd_failure_set(failure, "ValueError", "Subgraph %.*s not found", (int)at->ns.len,
                       at->ns.ptr);
        return HD_EINVAL;
    }
    found->place = hd_ns_join(at->root, at->ns, &found->ns);
    err = found->place ? hd_checkpoint_state_init(&found->live, found->graph) : HD_ENOMEM;
    if (err) {
        hd_failure_code(failure, err, NULL);
        hd_free(found->place);
        return err;
    }
    if (spec && spec->memory == HD_MEMORY_OWN)
        strip_ids(found->ns);
    return 0;
}

void hd_found_fini(struct hd_found *found)
{
    hd_free(found->place);
    hd_checkpoint_state_fini(&found->live);
    hd_pending_writes_fini(&found->pending_writes);
    hd_val_unref(found->metadata);
    hd_graph_destroy(found->guessed);
    *found = (struct hd_found){.graph = NULL};
}

int hd_found_take(struct hd_found *found, const struct heddle_tuple *tuple,
                  struct hd_failure *failure)
{
    static const struct hd_runtime_migrate_rules all = {.is_strict = false};
    struct heddle_error fault = {0};
    int err = hd_checkpoint_state_load(&found->live, &found->pending_writes, NULL, tuple, &fault);

    if (!err)
        err = hd_val_parse_json(hd_slice(tuple->metadata.data, tuple->metadata.len),
                                &found->metadata, &fault);
    if (err) {
        hd_failure_code(failure, err, &fault);
        return err;
    }
    found->is_there = true;
    if (tuple->parent.len == HD_UUID_LEN)
        memcpy(found->parent, tuple->parent.data, HD_UUID_LEN);
    if (!hd_val_get_int(hd_val_get(found->metadata, HD_S("step")), &found->step))
        found->step = -1;
    err = hd_runtime_migrate_writes(&found->live, hd_slice_cstr(found->ns), found->step + 1,
                                    hd_runtime_migrate_writer(found->metadata), &all,
                                    &found->pending_writes, &fault);
    if (err)
        hd_failure_code(failure, err, &fault);
    return err;
}

/* The structure of an open graph is derived from the checkpoint. */
int hd_found_fit(struct hd_found *found, const struct heddle_tuple *tuple,
                 struct hd_failure *failure)
{
    struct heddle_error fault = {0};
    struct hd_buf structure;
    int err;

    if (!found->graph->is_open)
        return 0;
    hd_buf_init(&structure, HD_WORKER_GRAPH_MAX_TEXT);
    err = hd_worker_graph_guess(tuple, &structure, &fault);
    if (!err)
        err = hd_worker_graph_create(hd_buf_slice(&structure), found->graph->ids, &found->guessed,
                                     &fault);
    hd_buf_fini(&structure);
    if (!err) {
        hd_checkpoint_state_fini(&found->live);
        found->graph = found->guessed;
        err = hd_checkpoint_state_init(&found->live, found->graph);
    }
    if (err)
        hd_failure_code(failure, err, &fault);
    return err;
}

int hd_found_fetch(struct hd_found *found, const struct hd_address *at, struct heddle_tuple **tuple,
                   struct hd_failure *failure)
{
    struct heddle_error error = {0};
    struct heddle_key key;
    int err = hd_found_init(found, at, failure);

    if (err)
        return err;
    *tuple = NULL;
    key = (struct heddle_key){{hd_to_public(at->principal), hd_to_public(at->thread)},
                              hd_to_public(hd_slice_cstr(found->place)),
                              hd_to_public(at->checkpoint_id)};
    err = hd_store_get_within(at->store, &key, at->allowance, tuple, &error);
    if (err == HEDDLE_ENOTFOUND)
        return 0;
    if (err)
        (void)report_store_error(failure, err, &error);
    else
        err = hd_found_fit(found, *tuple, failure);
    if (err) {
        heddle_tuple_free(*tuple);
        hd_found_fini(found);
    }
    return err;
}

int hd_found_load(struct hd_found *found, const struct hd_address *at, struct hd_failure *failure)
{
    struct heddle_tuple *tuple;
    int err = hd_found_fetch(found, at, &tuple, failure);

    if (err || !tuple)
        return err;
    err = hd_found_take(found, tuple, failure);
    heddle_tuple_free(tuple);
    if (err)
        hd_found_fini(found);
    return err;
}

/* ---- applying writes -------------------------------------------------- */

/*
 * Ignores invalid updates of a worker's graph: the server does not have all of its reducers, so it
 * shows the state without those updates.
 */
static int forgive(const struct hd_found *found, int err, struct hd_failure *failure)
{
    if (err != HD_EINVAL || !found->graph->is_foreign)
        return err;
    hd_failure_fini(failure);
    *failure = (struct hd_failure){0};
    return 0;
}

int hd_found_apply_null(struct hd_found *found, bool is_versioned, struct hd_failure *failure)
{
    struct hd_writes writes = {NULL, 0, 0};
    struct hd_applied applied = {.row = hd_versions_seen_input(found->graph), .writes = &writes};
    int err = 0;

    for (size_t i = 0; i < found->pending_writes.count && !err; i++) {
        if (hd_is_null_task(found->pending_writes.list[i].task))
            err = hd_writes_copy(&writes, &found->pending_writes.list[i].write, 1);
    }
    if (!err && writes.count > 0)
        err = hd_apply(&found->live, &applied, 1, is_versioned, NULL, failure);
    hd_writes_fini(&writes);
    return forgive(found, err, failure);
}

int hd_found_apply_tasks(struct hd_found *found, struct hd_tasks *tasks, bool all,
                         bool is_versioned, struct hd_failure *failure)
{
    struct hd_applied *list = hd_calloc(tasks->count + 1, sizeof(*list));
    size_t count = 0;
    int err = list ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < tasks->count && !err; i++) {
        err = hd_status_output(&found->pending_writes, tasks->list[i]->id, &tasks->list[i]->writes);
        if (all || tasks->list[i]->writes.count > 0)
            list[count++] = hd_task_applied(tasks->list[i]);
    }
    if (!err && count > 0)
        err = hd_apply(&found->live, list, count, is_versioned, NULL, failure);
    hd_free(list);
    return forgive(found, err, failure);
}

/* ---- assembling a state ----------------------------------------------- */

struct hd_val *hd_state_config(struct hd_slice thread, const char *ns, const char *id,
                               const struct hd_val *metadata)
{
    const struct hd_val *parents = hd_val_get(metadata, HD_S("parents"));
    struct hd_val *config = hd_val_object();

    config = hd_val_with(config, HD_S("thread_id"), hd_val_string(thread));
    config = hd_val_with(config, HD_S("checkpoint_ns"), hd_val_cstr(ns));
    config = hd_val_with(config, HD_S("checkpoint_id"), hd_val_cstr(id));
    if (hd_val_is_object(parents) && hd_val_count(parents) > 0)
        config = hd_val_with(config, HD_S("checkpoint_map"),
                             hd_val_with(hd_val_ref(parents), hd_slice_cstr(ns), hd_val_cstr(id)));
    return config;
}

/* The state of a thread without checkpoints. */
static struct hd_val *empty_state(const struct hd_address *at, const struct hd_found *found)
{
    struct hd_val *config =
        hd_val_with(hd_val_object(), HD_S("thread_id"), hd_val_string(at->thread));
    struct hd_val *state = hd_val_object();

    if (at->as_text)
        state = hd_val_with(state, HD_S("values_text"), hd_val_cstr("{}"));
    else
        state = hd_val_with(state, HD_S("values"), hd_val_object());
    if (at->ns.len > 0)
        config = hd_val_with(config, HD_S("checkpoint_ns"), hd_val_cstr(found->ns));
    if (at->checkpoint_id.len > 0)
        config = hd_val_with(config, HD_S("checkpoint_id"), hd_val_string(at->checkpoint_id));
    state = hd_val_with(state, HD_S("next"), hd_val_list());
    state = hd_val_with(state, HD_S("tasks"), hd_val_list());
    state = hd_val_with(state, HD_S("metadata"), hd_val_null());
    state = hd_val_with(state, HD_S("created_at"), hd_val_null());
    state = hd_val_with(state, HD_S("config"), config);
    state = hd_val_with(state, HD_S("parent_config"), hd_val_null());
    return hd_val_with(state, HD_S("interrupts"), hd_val_list());
}

/* *out: null, the config of the subgraph's checkpoints, or its state. */
static int inner_state(const struct hd_address *at, const struct hd_found *found,
                       const struct hd_task *task, bool subgraphs, struct hd_val **out,
                       struct hd_failure *failure)
{
    struct hd_address inner = *at;
    struct hd_buf ns;
    int err;

    *out = hd_val_null();
    if (!hd_node_has_states(task->node))
        return 0;
    hd_buf_init(&ns, (size_t)1 << 20);
    err = hd_task_ns(task, hd_slice_cstr(found->ns), &ns);
    if (!err && subgraphs) {
        inner.ns = hd_buf_slice(&ns);
        inner.checkpoint_id = (struct hd_slice){NULL, 0};
        err = hd_state_get(&inner, true, out, failure);
    } else if (!err) {
        *out = hd_val_with(hd_val_object(), HD_S("thread_id"), hd_val_string(at->thread));
        *out = hd_val_with(*out, HD_S("checkpoint_ns"), hd_val_string(hd_buf_slice(&ns)));
        err = *out ? 0 : HD_ENOMEM;
    }
    hd_buf_fini(&ns);
    return err;
}

static bool has_asked(const struct hd_found *found, const struct hd_task *task)
{
    for (size_t i = 0; i < found->pending_writes.count; i++) {
        const struct hd_pending_write *pending_write = &found->pending_writes.list[i];

        if (memcmp(pending_write->task, task->id, HD_UUID_LEN) == 0 &&
            (pending_write->write.channel == HD_W_INTERRUPT ||
             pending_write->write.channel == HD_W_ERROR))
            return true;
    }
    return false;
}

static struct hd_val *task_result(const struct hd_found *found, const struct hd_task *task)
{
    bool is_js = found->graph->ids == HD_IDS_JS;
    struct hd_writes output = {NULL, 0, 0};
    struct hd_val *result = NULL;

    /* JavaScript has null as the result of a task that interrupted or failed, and null for {}. */
    if (is_js && has_asked(found, task))
        return hd_val_null();
    if (hd_status_output(&found->pending_writes, task->id, &output) == 0)
        result =
            output.count > 0 ? hd_status_result(found->graph, &output, NULL, 0) : hd_val_null();
    for (size_t i = 0; i < output.count && result; i++) {
        if (output.list[i].channel != HD_W_RETURN)
            continue;
        hd_val_unref(result);
        result = hd_val_ref(output.list[i].val);
        break;
    }
    hd_writes_fini(&output);
    if (is_js && hd_val_is_object(result) && hd_val_count(result) == 0) {
        hd_val_unref(result);
        result = hd_val_null();
    }
    return result;
}

/* The error of a task. For a Python exception its repr(), as LangGraph shows it. */
static struct hd_val *task_error(const struct hd_found *found, const struct hd_task *task)
{
    struct hd_val *error = hd_status_error(&found->pending_writes, task->id);
    struct hd_failure failure = {0};
    struct hd_val *shown;

    if (!error)
        return hd_val_null();
    if (hd_val_kind(error) != HD_KIND_ERROR || found->graph->ids != HD_IDS_PYTHON)
        return hd_val_ref(error);
    hd_failure_set_text(&failure, hd_val_get_string(hd_val_get(error, HD_S("type"))),
                        hd_val_get_string(hd_val_get(error, HD_S("message"))));
    shown = hd_failure_repr(&failure);
    hd_failure_fini(&failure);
    return shown;
}

/* Takes `inner`. The current state has no interrupts of finished tasks; past states have them. */
static struct hd_val *show_task(const struct hd_found *found, const struct hd_task *task,
                                bool is_live, struct hd_val *inner)
{
    bool is_answered = is_live && hd_status_is_finished(&found->pending_writes, task->id);
    struct hd_val *shown = hd_val_with(hd_val_object(), HD_S("id"), hd_val_cstr(task->id));

    shown = hd_val_with(shown, HD_S("name"), hd_val_string(task->node->name));
    shown = hd_val_with(shown, HD_S("path"), hd_task_path_val(task));
    shown = hd_val_with(shown, HD_S("error"), task_error(found, task));
    shown = hd_val_with(shown, HD_S("interrupts"),
                        is_answered ? hd_val_list()
                                    : hd_status_interrupts(&found->pending_writes, task->id));
    shown = hd_val_with(shown, HD_S("state"), inner);
    return hd_val_with(shown, HD_S("result"), task_result(found, task));
}

struct showing {
    const struct hd_address *at;
    struct hd_found *found;
    const struct heddle_tuple *tuple; /* of `found`, to render the values from; or NULL */
    struct hd_tasks tasks;
    bool is_live;
    bool subgraphs;
    struct hd_val *shown, *next, *interrupts;
};

static int show_tasks(struct showing *s, struct hd_failure *failure)
{
    s->shown = hd_val_list();
    s->next = hd_val_list();
    s->interrupts = hd_val_list();
    for (size_t i = 0; i < s->tasks.count; i++) {
        struct hd_task *task = s->tasks.list[i];
        struct hd_val *inner, *one;
        int err = inner_state(s->at, s->found, task, s->subgraphs, &inner, failure);

        if (err)
            return err;
        one = show_task(s->found, task, s->is_live, inner);
        if (one)
            s->interrupts = hd_val_extend(s->interrupts, hd_val_get(one, HD_S("interrupts")));
        s->shown = hd_val_append(s->shown, one);
        if (task->writes.count == 0)
            s->next = hd_val_append(s->next, hd_val_string(task->node->name));
    }
    return s->shown && s->next && s->interrupts ? 0 : HD_ENOMEM;
}

static struct hd_val *text_of_values(const struct showing *s)
{
    struct hd_val *values = NULL, *text = NULL;
    struct hd_buf out;
    int err;

    hd_buf_init(&out, HD_ENGINE_MAX_VALUE);
    if (s->tuple) {
        err = hd_tuple_render(s->found->graph, s->tuple, hd_slice(NULL, 0), &out);
    } else {
        values = hd_checkpoint_state_read(&s->found->live, NULL, 0);
        err = values ? hd_val_render(&out, values) : HD_ENOMEM;
    }
    if (!err)
        text = hd_val_string(hd_buf_slice(&out));
    hd_val_unref(values);
    hd_buf_fini(&out);
    return text;
}

static struct hd_val *assemble(struct showing *s)
{
    const struct hd_found *found = s->found;
    struct hd_val *state = hd_val_object();

    if (s->at->as_text && !s->at->without_values)
        state = hd_val_with(state, HD_S("values_text"), text_of_values(s));
    else if (!s->at->without_values)
        state = hd_val_with(state, HD_S("values"), hd_checkpoint_state_read(&found->live, NULL, 0));

    state = hd_val_with(state, HD_S("next"), hd_val_ref(s->next));
    state = hd_val_with(state, HD_S("tasks"), hd_val_ref(s->shown));
    state = hd_val_with(state, HD_S("metadata"), hd_val_ref(found->metadata));
    state = hd_val_with(state, HD_S("created_at"), hd_val_cstr(found->live.ts));
    state = hd_val_with(state, HD_S("config"),
                        hd_state_config(s->at->thread, found->ns, found->live.id, found->metadata));
    state = hd_val_with(
        state, HD_S("parent_config"),
        found->parent[0] ? hd_state_config(s->at->thread, found->ns, found->parent, found->metadata)
                         : hd_val_null());
    return hd_val_with(state, HD_S("interrupts"), hd_val_ref(s->interrupts));
}

/* The tasks are those of the stored checkpoint; the values may include pending writes. */
static int show(struct showing s, struct hd_val **out, struct hd_failure *failure)
{
    struct hd_found *found = s.found;
    int err =
        hd_tasks_prepare(&s.tasks, &found->live, hd_slice_cstr(found->ns), found->step + 1, false);

    if (!err)
        err = hd_found_apply_null(found, false, failure);
    if (!err && s.is_live)
        err = hd_found_apply_tasks(found, &s.tasks, false, false, failure);
    if (!err)
        err = show_tasks(&s, failure);
    if (!err) {
        *out = assemble(&s);
        err = *out ? 0 : HD_ENOMEM;
    }
    if (err)
        hd_failure_code(failure, err, NULL);
    hd_val_unref(s.shown);
    hd_val_unref(s.next);
    hd_val_unref(s.interrupts);
    hd_tasks_fini(&s.tasks);
    return err;
}

/* Loads the checkpoint and assembles its state. Skips values that can be rendered as stored. */
static int show_tuple(const struct hd_address *at, struct hd_found *found,
                      const struct heddle_tuple *tuple, bool is_live, bool subgraphs,
                      struct hd_val **out, struct hd_failure *failure)
{
    struct showing s = {.at = at, .found = found, .is_live = is_live, .subgraphs = subgraphs};
    int err;

    if (at->as_text && hd_tuple_is_plain(found->graph, tuple, is_live)) {
        s.tuple = tuple;
        found->live.skips_state = true;
    }
    err = hd_found_take(found, tuple, failure);
    return err ? err : show(s, out, failure);
}

int hd_state_get(const struct hd_address *at, bool subgraphs, struct hd_val **out,
                 struct hd_failure *failure)
{
    struct heddle_tuple *tuple;
    struct hd_found found;
    int err = hd_found_fetch(&found, at, &tuple, failure);

    if (err)
        return err;
    if (tuple) {
        err = show_tuple(at, &found, tuple, at->checkpoint_id.len == 0, subgraphs, out, failure);
    } else {
        *out = empty_state(at, &found);
        err = *out ? 0 : HD_ENOMEM;
    }
    heddle_tuple_free(tuple);
    hd_found_fini(&found);
    return err;
}

static int show_listed(const struct hd_address *at, const struct heddle_tuple *tuple,
                       hd_state_fn fn, void *ctx, struct hd_failure *failure)
{
    struct hd_found found;
    struct hd_val *state;
    int err = hd_found_init(&found, at, failure);

    if (err)
        return err;
    err = hd_found_fit(&found, tuple, failure);
    if (!err)
        err = show_tuple(at, &found, tuple, false, false, &state, failure);
    hd_found_fini(&found);
    if (err)
        return err;
    err = fn(ctx, state);
    hd_val_unref(state);
    return err;
}

int hd_state_history(const struct hd_address *at, int64_t limit, struct hd_slice before,
                     struct hd_slice filter, hd_state_fn fn, void *ctx, struct hd_failure *failure)
{
    struct heddle_error error = {0};
    struct heddle_bytes thread = hd_to_public(at->thread), ns, id = hd_to_public(at->checkpoint_id);
    struct heddle_bytes older = hd_to_public(before);
    struct heddle_query query = {.principal = hd_to_public(at->principal),
                                 .thread = &thread,
                                 .ns = &ns,
                                 .id = id.len > 0 ? &id : NULL,
                                 .before = before.len > 0 ? &older : NULL,
                                 .filter = hd_to_public(filter),
                                 .limit = limit};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    struct hd_found found;
    int err = hd_found_init(&found, at, failure);

    if (err)
        return err;
    ns = hd_to_public(hd_slice_cstr(found.place));
    err = heddle_list_open(at->store, &query, &list, &error);
    if (err) {
        hd_found_fini(&found);
        return report_store_error(failure, err, &error);
    }
    if (at->allowance)
        hd_list_within(list, at->allowance, at->keeps_values);
    while (!err) {
        err = heddle_list_next(list, &tuple, &error);
        if (err && err != HEDDLE_ENOTFOUND)
            report_store_error(failure, err, &error);
        if (!err)
            err = show_listed(at, tuple, fn, ctx, failure);
    }
    heddle_list_close(list);
    hd_found_fini(&found);
    return err == HEDDLE_ENOTFOUND ? 0 : err;
}
