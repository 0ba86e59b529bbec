/*
 * Renders states for the HTTP API: ThreadState, and the values alone. Nearly always no write has to
 * be applied; then the values are rendered directly from the stored text.
 */
#include <string.h>

#include "base/alloc.h"
#include "graph/engine/ns.h"
#include "graph/state/state_internal.h"
#include "heddle.h"
#include "store/codec/canon.h"

/* ---- values ----------------------------------------------------------- */

/* JavaScript's encoding of an empty channel. */
static bool is_undefined(const struct heddle_value *value)
{
    return hd_slice_eq(hd_slice(value->data.data, value->data.len), HD_S("{\"$\":\"undefined\"}"));
}

static const struct heddle_value *find_value(const struct heddle_tuple *tuple, struct hd_slice name)
{
    for (size_t i = 0; i < tuple->value_count; i++) {
        struct heddle_bytes channel = tuple->values[i].channel;

        if (hd_slice_eq(hd_slice(channel.data, channel.len), name))
            return is_undefined(&tuple->values[i]) ? NULL : &tuple->values[i];
    }
    return NULL;
}

bool hd_reducer_shows_stored(enum hd_graph_reducer reducer)
{
    switch (reducer) {
    case HD_REDUCE_UNTRACKED:
    case HD_REDUCE_TOPIC:
    case HD_REDUCE_TRIGGER_AFTER:
    case HD_REDUCE_BARRIER:
    case HD_REDUCE_BARRIER_AFTER:
        return false;
    default:
        return true;
    }
}

/* True if the channel's value equals its stored value. */
static bool is_shown_as_stored(const struct hd_graph_channel *channel,
                               const struct heddle_value *value)
{
    struct hd_slice type = hd_slice(value->type.data, value->type.len);
    struct hd_slice text = hd_slice(value->data.data, value->data.len);

    return hd_reducer_shows_stored(channel->reducer) && hd_slice_eq(type, HD_S("hd1")) &&
           !hd_slice_starts(text, HD_S("{\"$\":\"delta\""));
}

/* True if the write describes the status of a task, not its output. */
static bool is_control(const struct heddle_write *write)
{
    static const char *const names[] = {"__error__", "__interrupt__", "__resume__"};
    struct hd_slice channel = hd_slice(write->value.channel.data, write->value.channel.len);

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(channel, hd_slice_cstr(names[i])))
            return true;
    }
    return false;
}

static bool is_applied(const struct heddle_write *write, bool is_live)
{
    struct hd_slice task = hd_slice(write->task_id.data, write->task_id.len);

    return hd_slice_eq(task, HD_S(HD_NULL_TASK)) || (is_live && !is_control(write));
}

bool hd_tuple_is_plain(const struct hd_graph *graph, const struct heddle_tuple *tuple, bool is_live)
{
    bool is_plainly = true;

    for (size_t i = 0; i < tuple->write_count && is_plainly; i++)
        is_plainly = !is_applied(&tuple->writes[i], is_live);
    for (size_t i = 0; i < graph->state_count && is_plainly; i++) {
        const struct heddle_value *value = find_value(tuple, graph->channels[i].name);

        is_plainly = !value || is_shown_as_stored(&graph->channels[i], value);
    }
    return is_plainly;
}

static int put_stored(struct hd_jw *jw, const struct heddle_value *value)
{
    struct hd_json json;
    int err = hd_json_parse(&json, hd_slice(value->data.data, value->data.len), NULL);

    if (err)
        return err;
    hd_canon_render_val(jw, hd_json_root(&json));
    hd_json_fini(&json);
    return 0;
}

int hd_tuple_render(const struct hd_graph *graph, const struct heddle_tuple *tuple,
                    struct hd_slice only, struct hd_buf *out)
{
    struct hd_jw jw;
    int err = 0;

    hd_jw_init(&jw, out);
    if (!graph->is_single)
        hd_jw_object(&jw);
    for (size_t i = 0; i < graph->state_count && !err; i++) {
        const struct hd_graph_channel *channel = &graph->channels[i];
        const struct heddle_value *value = find_value(tuple, channel->name);

        if (!value && !channel->initial && !graph->is_single)
            continue;
        if (only.len > 0 && !graph->is_single && !hd_slice_eq(only, channel->name))
            continue;
        if (!graph->is_single)
            hd_jw_key(&jw, channel->name);
        if (value)
            err = put_stored(&jw, value);
        else if (channel->initial)
            hd_val_put_rendered(&jw, channel->initial);
        else
            hd_jw_null(&jw);
    }
    if (!graph->is_single)
        hd_jw_object_end(&jw);
    return err ? err : hd_jw_finish(&jw);
}

/* The slow path: renders the values as hd_state_get() computes them. */
static int render_applied(struct hd_found *found, const struct heddle_tuple *tuple, bool is_live,
                          struct hd_buf *out, struct hd_failure *failure)
{
    struct hd_tasks tasks = {NULL, 0, 0};
    struct hd_val *values;
    int err = hd_found_take(found, tuple, failure);

    if (!err)
        err = hd_tasks_prepare(&tasks, &found->live, hd_slice_cstr(found->ns), found->step + 1,
                               false);
    if (!err)
        err = hd_found_apply_null(found, false, failure);
    if (!err && is_live)
        err = hd_found_apply_tasks(found, &tasks, false, false, failure);
    hd_tasks_fini(&tasks);
    if (err)
        return err;
    values = hd_checkpoint_state_read(&found->live, NULL, 0);
    err = values ? hd_val_render(out, values) : HD_ENOMEM;
    hd_val_unref(values);
    return err;
}

int hd_state_values(const struct hd_address *at, struct hd_buf *out, struct hd_failure *failure)
{
    struct heddle_tuple *tuple = NULL;
    bool is_live = at->checkpoint_id.len == 0;
    size_t start = out->len;
    struct hd_found found;
    int err = hd_found_fetch(&found, at, &tuple, failure);

    if (err)
        return err;
    if (!tuple) {
        err = hd_buf_append_slice(out, HD_S("{}"));
    } else if (hd_tuple_is_plain(found.graph, tuple, is_live)) {
        err = hd_tuple_render(found.graph, tuple, at->only, out);
    } else {
        err = render_applied(&found, tuple, is_live, out, failure);
    }
    heddle_tuple_free(tuple);
    hd_found_fini(&found);
    if (err) {
        out->len = start;
        hd_failure_code(failure, err, NULL);
    }
    return err;
}

/* ---- states ----------------------------------------------------------- */

struct rendering {
    struct hd_jw *jw;
    struct hd_slice thread;
    struct hd_slice root;
};

static void put_member(struct rendering *r, struct hd_slice key, const struct hd_val *val)
{
    hd_jw_key(r->jw, key);
    if (val)
        hd_val_put_rendered(r->jw, val);
    else
        hd_jw_null(r->jw);
}

static void put_ns(struct rendering *r, struct hd_slice ns,
                   void (*put)(struct hd_jw *, struct hd_slice))
{
    char *shown = hd_ns_join(r->root, ns, NULL);

    if (shown)
        put(r->jw, hd_slice_cstr(shown));
    else if (!r->jw->err)
        r->jw->err = HD_ENOMEM;
    hd_free(shown);
}

static void put_map(struct rendering *r, const struct hd_val *map)
{
    hd_jw_key(r->jw, HD_S("checkpoint_map"));
    if (!map) {
        hd_jw_null(r->jw);
        return;
    }
    hd_jw_object(r->jw);
    for (size_t i = 0; i < hd_val_count(map); i++) {
        struct hd_val *ns, *id = hd_val_member(map, i, &ns);

        put_ns(r, hd_val_get_string(ns), hd_jw_key);
        hd_val_put_rendered(r->jw, id);
    }
    hd_jw_object_end(r->jw);
}

/* Writes a C of state.h. `is_there` false: no checkpoint exists, only its namespace is written. */
static void put_place(struct rendering *r, const struct hd_val *config, bool is_there)
{
    hd_jw_object(r->jw);
    hd_jw_put_string(r->jw, "thread_id", r->thread);
    hd_jw_key(r->jw, HD_S("checkpoint_ns"));
    put_ns(r, hd_val_get_string(hd_val_get(config, HD_S("checkpoint_ns"))), hd_jw_string);
    put_member(r, HD_S("checkpoint_id"),
               is_there ? hd_val_get(config, HD_S("checkpoint_id")) : NULL);
    put_map(r, is_there ? hd_val_get(config, HD_S("checkpoint_map")) : NULL);
    hd_jw_object_end(r->jw);
}

/* Clients construct objects from interrupts and accept only these two members. */
static void put_interrupts(struct rendering *r, const struct hd_val *list)
{
    hd_jw_put_array(r->jw, "interrupts");
    for (size_t i = 0; i < hd_val_count(list); i++) {
        const struct hd_val *item = hd_val_at(list, i);
        bool is_record = hd_val_kind(item) == HD_KIND_INTERRUPT;

        hd_jw_object(r->jw);
        put_member(r, HD_S("id"), is_record ? hd_val_get(item, HD_S("id")) : NULL);
        put_member(r, HD_S("value"), is_record ? hd_val_get(item, HD_S("value")) : item);
        hd_jw_object_end(r->jw);
    }
    hd_jw_array_end(r->jw);
}

static void put_state(struct rendering *r, const struct hd_val *state, bool is_inner);

static void put_task(struct rendering *r, const struct hd_val *task)
{
    static const char *const plain[] = {"id", "name", "path", "error"};
    const struct hd_val *inner = hd_val_get(task, HD_S("state"));
    bool is_state = hd_val_get(inner, HD_S("next")) != NULL;

    hd_jw_object(r->jw);
    for (size_t i = 0; i < HD_COUNT(plain); i++)
        put_member(r, hd_slice_cstr(plain[i]), hd_val_get(task, hd_slice_cstr(plain[i])));
    put_interrupts(r, hd_val_get(task, HD_S("interrupts")));
    hd_jw_key(r->jw, HD_S("checkpoint"));
    if (is_state || hd_val_is_null(inner))
        hd_jw_null(r->jw);
    else
        put_place(r, inner, hd_val_get(inner, HD_S("checkpoint_id")) != NULL);
    hd_jw_key(r->jw, HD_S("state"));
    if (is_state)
        put_state(r, inner, true);
    else
        hd_jw_null(r->jw);
    put_member(r, HD_S("result"), hd_val_get(task, HD_S("result")));
    hd_jw_object_end(r->jw);
}

/* A thread without checkpoints has null here; a subgraph has at least its namespace. */
static void put_checkpoints(struct rendering *r, const struct hd_val *state, bool is_inner)
{
    const struct hd_val *config = hd_val_get(state, HD_S("config"));
    const struct hd_val *parent = hd_val_get(state, HD_S("parent_config"));
    bool is_there = !hd_val_is_null(hd_val_get(state, HD_S("metadata")));

    hd_jw_key(r->jw, HD_S("checkpoint"));
    if (is_there || is_inner)
        put_place(r, config, is_there);
    else
        hd_jw_null(r->jw);
    hd_jw_key(r->jw, HD_S("parent_checkpoint"));
    if (hd_val_is_null(parent))
        hd_jw_null(r->jw);
    else
        put_place(r, parent, true);
    put_interrupts(r, hd_val_get(state, HD_S("interrupts")));
    put_member(r, HD_S("checkpoint_id"),
               is_there ? hd_val_get(config, HD_S("checkpoint_id")) : NULL);
    put_member(r, HD_S("parent_checkpoint_id"), hd_val_get(parent, HD_S("checkpoint_id")));
}

static void put_state(struct rendering *r, const struct hd_val *state, bool is_inner)
{
    const struct hd_val *tasks = hd_val_get(state, HD_S("tasks"));
    const struct hd_val *metadata = hd_val_get(state, HD_S("metadata"));
    const struct hd_val *text = hd_val_get(state, HD_S("values_text"));

    hd_jw_object(r->jw);
    if (text) {
        hd_jw_put_raw(r->jw, "values", hd_val_get_string(text));
    } else {
        put_member(r, HD_S("values"), hd_val_get(state, HD_S("values")));
    }
    put_member(r, HD_S("next"), hd_val_get(state, HD_S("next")));
    hd_jw_put_array(r->jw, "tasks");
    for (size_t i = 0; i < hd_val_count(tasks); i++)
        put_task(r, hd_val_at(tasks, i));
    hd_jw_array_end(r->jw);
    hd_jw_key(r->jw, HD_S("metadata"));
    if (hd_val_is_null(metadata))
        hd_jw_raw(r->jw, HD_S("{}"));
    else
        hd_val_put_rendered(r->jw, metadata);
    put_member(r, HD_S("created_at"), hd_val_get(state, HD_S("created_at")));
    put_checkpoints(r, state, is_inner);
    hd_jw_object_end(r->jw);
}

void hd_state_put(struct hd_jw *jw, const struct hd_val *state, struct hd_slice thread_id,
                  struct hd_slice root)
{
    struct rendering r = {jw, thread_id, root};

    put_state(&r, state, false);
}

void hd_state_put_config(struct hd_jw *jw, const struct hd_val *config, struct hd_slice thread_id,
                         struct hd_slice root)
{
    struct rendering r = {jw, thread_id, root};

    put_place(&r, config, true);
}

int hd_state_render(struct hd_buf *out, const struct hd_val *state, struct hd_slice thread_id,
                    struct hd_slice root)
{
    size_t start = out->len;
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, out);
    hd_state_put(&jw, state, thread_id, root);
    err = hd_jw_finish(&jw);
    if (err)
        out->len = start;
    return err;
}
