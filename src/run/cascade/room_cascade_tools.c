#include "run/cascade/room_cascade_tools.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "records/thread_heads.h"
#include "run/assistant_lookup.h"

#define MAX_VALUES ((size_t)256 << 20)
#define MAX_NAMES ((size_t)10000)

/* The values of results. */
static char read_only[] = "read-only", with_effects[] = "effects";

struct tools {
    struct hd_room_cascade_past *past;
    struct heddle_error *fault;
    struct hd_map names; /* in their order of the first call: `list` */
    struct hd_jw jw;
    struct hd_buf list;
    struct hd_map results;            /* of calls, by their id and name: `read_only` or `effects` */
    const struct hd_slice *delegates; /* names of tools that are agents */
    size_t delegate_count;
    bool has_effects;
};

/* The part of a line that a run has made. */
struct line_part {
    struct hd_slice ns, graph_id, before, after;
};

/* ---- the messages ----------------------------------------------------- */

static int read_values(const struct tools *t, const struct line_part *part,
                       struct hd_slice checkpoint, struct hd_json *out)
{
    const struct hd_app_graph *graph = hd_app_graph(t->past->app, part->graph_id);
    const struct hd_address at = {.store = t->past->app->store,
                                  .graph = graph ? hd_app_shape(graph) : NULL,
                                  .principal = t->past->thread->principal,
                                  .thread = t->past->thread->id,
                                  .root = part->ns,
                                  .checkpoint_id = checkpoint,
                                  .only = HD_S("messages")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf text;
    int err;

    if (!graph || checkpoint.len == 0)
        return 0;
    hd_buf_init(&text, MAX_VALUES);
    err = hd_state_values(&at, &text, &failure);
    if (!err)
        err = hd_json_parse(out, hd_buf_slice(&text), t->fault);
    hd_buf_fini(&text);
    hd_failure_fini(&failure);
    return err;
}

static hd_json_val messages_of(const struct hd_json *values)
{
    return hd_json_get(hd_json_root(values), HD_S("messages"));
}

static int index_ids(const struct hd_json *values, struct hd_map *ids)
{
    struct hd_json_iter it = hd_json_iter(messages_of(values));
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));

        if (id.len > 0)
            err = hd_map_put(ids, id, ids);
    }
    return err;
}

static bool is_delegate(const struct tools *t, struct hd_slice name)
{
    for (size_t i = 0; i < t->delegate_count; i++) {
        if (hd_slice_eq(t->delegates[i], name))
            return true;
    }
    return false;
}

/* Models may use one id for several calls, so the name is part of the key. */
static int write_call_key(struct hd_buf *out, struct hd_slice id, struct hd_slice name)
{
    int err = hd_buf_append_slice(out, id);

    if (!err)
        err = hd_buf_append_byte(out, 0);
    return err ? err : hd_buf_append_slice(out, name);
}

static bool is_marked(hd_json_val message)
{
    hd_json_val marks = hd_json_get(message, HD_S("additional_kwargs"));

    return hd_json_is_true(hd_json_get(marks, HD_S("read_only")));
}

/* Without the mark in one of its messages, a call has effects. */
static int add_result(struct tools *t, hd_json_val message)
{
    struct hd_slice id = hd_json_string(hd_json_get(message, HD_S("tool_call_id")));
    struct hd_slice name = hd_json_string(hd_json_get(message, HD_S("name")));
    struct hd_buf key;
    int err;

    if (id.len == 0 || name.len == 0)
        return 0;
    hd_buf_init(&key, MAX_VALUES);
    err = write_call_key(&key, id, name);
    if (!err && hd_map_get(&t->results, hd_buf_slice(&key)) != with_effects)
        err = hd_map_put(&t->results, hd_buf_slice(&key),
                         is_marked(message) ? read_only : with_effects);
    hd_buf_fini(&key);
    return err;
}

static int check_effects(struct tools *t, hd_json_val call, struct hd_slice name)
{
    struct hd_slice id = hd_json_string(hd_json_get(call, HD_S("id")));
    struct hd_buf key;
    int err;

    if (t->has_effects || is_delegate(t, name))
        return 0;
    hd_buf_init(&key, MAX_VALUES);
    err = write_call_key(&key, id, name);
    if (!err)
        t->has_effects = hd_map_get(&t->results, hd_buf_slice(&key)) != read_only;
    hd_buf_fini(&key);
    return err;
}

static int add_call(struct tools *t, hd_json_val call)
{
    struct hd_slice name = hd_json_string(hd_json_get(call, HD_S("name")));
    int err = name.len > 0 ? check_effects(t, call, name) : 0;

    if (err || name.len == 0 || hd_map_get(&t->names, name))
        return err;
    hd_jw_string(&t->jw, name);
    return hd_map_put(&t->names, name, t);
}

static int add_calls(struct tools *t, const struct hd_json *values, const struct hd_map *before)
{
    struct hd_json_iter it = hd_json_iter(messages_of(values));
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_json_iter calls = hd_json_iter(hd_json_get(it.val, HD_S("tool_calls")));
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));

        if (id.len > 0 && hd_map_get(before, id))
            continue;
        while (!err && hd_json_next(&calls))
            err = add_call(t, calls.val);
    }
    return err;
}

/* A result follows its call. */
static int add_results(struct tools *t, const struct hd_json *values, const struct hd_map *before)
{
    struct hd_json_iter it = hd_json_iter(messages_of(values));
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));

        if (id.len == 0 || !hd_map_get(before, id))
            err = add_result(t, it.val);
    }
    return err;
}

static int add_part(struct tools *t, const struct line_part *part)
{
    struct hd_json before = {NULL}, after = {NULL};
    struct hd_map ids;
    int err = read_values(t, part, part->before, &before);

    hd_map_init(&ids, MAX_VALUES);
    if (!err)
        err = index_ids(&before, &ids);
    if (!err)
        err = read_values(t, part, part->after, &after);
    hd_map_init(&t->results, MAX_VALUES);
    if (!err)
        err = add_results(t, &after, &ids);
    if (!err)
        err = add_calls(t, &after, &ids);
    hd_map_fini(&t->results);
    hd_map_fini(&ids);
    hd_json_fini(&after);
    hd_json_fini(&before);
    return err;
}

/* ---- the lines -------------------------------------------------------- */

/* A tool that is an agent has the name of its assistant. */
static int name_delegates(struct tools *t, const struct hd_cascade_past *run)
{
    const struct hd_room_cascade_past *past = t->past;
    struct hd_slice *names = hd_arena_calloc(past->arena, run->touched_count + 1, sizeof(*names));
    int err = names ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < run->touched_count; i++) {
        const struct hd_line_rec *line = hd_lines_find(&past->lines, run->touched[i]);
        struct hd_assistant_rec assistant;

        if (!line || line->assistant_id.len == 0)
            continue;
        err = hd_assistant_lookup(past->app, past->actor, line->assistant_id, past->arena,
                                  &assistant, t->fault);
        if (!err)
            names[t->delegate_count++] = assistant.name;
        err = err == HD_ENOTFOUND ? 0 : err;
    }
    t->delegates = names;
    return err;
}

static int add_delegate(struct tools *t, struct hd_slice run_id, struct hd_slice ns)
{
    struct hd_room_cascade_past *past = t->past;
    const struct hd_line_rec *line = hd_lines_find(&past->lines, ns);
    struct line_part part = {.ns = ns};
    int err;

    if (!line)
        return 0;
    part.graph_id = line->graph_id;
    err = hd_room_cascade_past_fork(past, run_id, ns, hd_slice(NULL, 0), &part.before, t->fault);
    if (!err)
        err = hd_thread_heads_made(past->app->store, past->thread->principal, past->thread->id, ns,
                                   run_id, past->arena, &part.after, t->fault);
    return err ? err : add_part(t, &part);
}

static int add_lines(struct tools *t, size_t index, struct hd_slice fork)
{
    const struct hd_room_cascade_run *run = &t->past->runs[index];
    const struct hd_cascade_past *past = &t->past->past[index];
    const struct line_part root = {past->line, run->row.graph_id, fork, run->run.checkpoint_id};
    int err = name_delegates(t, past);

    if (!err)
        err = add_part(t, &root);
    for (size_t i = 0; !err && i < past->touched_count; i++)
        err = add_delegate(t, past->run_id, past->touched[i]);
    return err;
}

int hd_room_cascade_tools_read(struct hd_room_cascade_past *past, size_t index,
                               struct hd_slice fork, struct heddle_error *fault)
{
    struct tools t = {.past = past, .fault = fault};
    int err, finish;

    if (past->extras[index].tools.len > 0)
        return 0;
    hd_map_init(&t.names, MAX_NAMES);
    hd_buf_init(&t.list, MAX_VALUES);
    hd_jw_init(&t.jw, &t.list);
    hd_jw_array(&t.jw);
    err = add_lines(&t, index, fork);
    hd_jw_array_end(&t.jw);
    finish = hd_jw_finish_in(&t.jw, past->arena, &past->extras[index].tools);
    hd_map_fini(&t.names);
    past->past[index].has_effects = t.has_effects;
    return err ? err : finish;
}
