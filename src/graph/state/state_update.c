/*
 * Updates a state: each superstep of updates creates a checkpoint, as if the given nodes had run
 * and returned the updates.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/engine/apply.h"
#include "graph/engine/command.h"
#include "graph/engine/save.h"
#include "graph/engine/task.h"
#include "graph/state/state_internal.h"
#include "store/bytes.h"
#include "store/list_append.h"
#include "store/order.h"

/* A superstep that is being stored. */
struct updating {
    struct hd_address at; /* `checkpoint_id` advances with each superstep */
    const struct hd_superstep *step;
    bool is_first;
    const struct hd_val *metadata; /* the caller's; NULL: none */
    struct hd_found base;
    char floor[HD_UUID_SIZE]; /* the new id must sort after this and after its base */
    struct hd_val **previous; /* versions of the base, by channel */
    struct hd_failure *failure;
};

static int refuse_update(struct updating *u, const char *text)
{
    hd_failure_set(u->failure, "InvalidUpdateError", "%s", text);
    return HD_EINVAL;
}

static int stored(struct updating *u, int err, const struct heddle_error *error)
{
    if (err)
        hd_failure_code(u->failure, err, error);
    return err;
}

/* ---- storing ---------------------------------------------------------- */

static struct hd_val *make_update_metadata(const struct updating *u, const char *source,
                                           int64_t step)
{
    const struct hd_val *parents = hd_val_get(u->base.metadata, HD_S("parents"));
    struct hd_val *metadata = hd_val_with(hd_val_object(), HD_S("source"), hd_val_cstr(source));

    metadata = hd_val_with(metadata, HD_S("step"), hd_val_int(step));
    metadata =
        hd_val_with(metadata, HD_S("parents"), parents ? hd_val_ref(parents) : hd_val_object());
    for (size_t i = 0; i < hd_val_count(u->metadata) && metadata; i++) {
        struct hd_val *key, *val = hd_val_member(u->metadata, i, &key);

        if (!hd_val_get(metadata, hd_val_get_string(key)))
            metadata = hd_val_with_key(metadata, hd_val_ref(key), hd_val_ref(val));
    }
    return metadata;
}

struct texts {
    struct hd_buf checkpoint, metadata, versions;
    struct hd_packed packed;
};

static int make_texts(struct updating *u, const struct hd_val *metadata, bool copies,
                      struct texts *texts)
{
    int err = metadata ? hd_checkpoint_state_write(&u->base.live, &texts->checkpoint) : HD_ENOMEM;

    if (!err)
        err = hd_val_render(&texts->metadata, metadata);
    if (!err && copies)
        err = hd_buf_append_slice(&texts->versions, HD_S("{}"));
    else if (!err)
        err =
            hd_save_pack_values(&texts->packed, &u->base.live, u->previous, NULL, &texts->versions);
    return err;
}

static int put_texts(struct updating *u, const char *parent, const struct texts *texts)
{
    struct heddle_error error = {0};
    struct heddle_checkpoint put = {
        .thread = {hd_to_public(u->at.principal), hd_to_public(u->at.thread)},
        .ns = hd_to_public(hd_slice_cstr(u->base.place)),
        .id = hd_to_public(hd_slice_cstr(u->base.live.id)),
        .parent = hd_to_public(hd_slice_cstr(parent)),
        .checkpoint = hd_to_public(hd_buf_slice(&texts->checkpoint)),
        .metadata = hd_to_public(hd_buf_slice(&texts->metadata)),
        .new_versions = hd_to_public(hd_buf_slice(&texts->versions)),
        .values = texts->packed.values,
        .value_count = texts->packed.value_count};

    const struct hd_put_extras extras = {.guard = u->at.guard};

    return stored(u, hd_store_put(u->at.store, &put, &extras, &error), &error);
}

/* An update of an older checkpoint must sort after all checkpoints of the namespace. */
static int find_floor(struct updating *u)
{
    const struct heddle_thread thread = {hd_to_public(u->at.principal), hd_to_public(u->at.thread)};
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_slice id;
    int err;

    u->base.live.floor = u->floor;
    if (!u->is_first || u->at.checkpoint_id.len == 0)
        return 0;
    hd_arena_init(&arena, (size_t)1 << 16);
    err = hd_greatest_id(u->at.store, &thread, hd_slice_cstr(u->base.place), &arena, &id, &fault);
    if (err)
        hd_failure_code(u->failure, err, &fault);
    else
        hd_floor_raise(u->floor, id);
    hd_arena_fini(&arena);
    return err;
}

/* Stores the changed base as a new checkpoint. `copies`: a fork without new values. */
static int put_checkpoint(struct updating *u, const char *source, int64_t step, int64_t id_step,
                          bool copies, struct hd_val **config)
{
    struct hd_val *metadata = make_update_metadata(u, source, step);
    struct texts texts;
    char base[HD_UUID_SIZE];
    const char *parent = copies ? u->base.parent : base;
    int err;

    hd_buf_init(&texts.checkpoint, HD_ENGINE_MAX_VALUE);
    hd_buf_init(&texts.metadata, HD_ENGINE_MAX_VALUE);
    hd_buf_init(&texts.versions, HD_ENGINE_MAX_VALUE);
    texts.packed = (struct hd_packed){.values = NULL};
    hd_buf_init(&texts.packed.text, HD_ENGINE_MAX_VALUE);
    snprintf(base, sizeof(base), "%s", u->base.is_there ? u->base.live.id : "");
    hd_checkpoint_state_renew(&u->base.live, (int)id_step);
    u->base.live.has_updated = false;
    err = make_texts(u, metadata, copies, &texts);
    if (!err)
        err = put_texts(u, parent, &texts);
    if (!err) {
        /* Without a base the config has no parents. */
        *config = hd_state_config(u->at.thread, u->base.ns, u->base.live.id,
                                  u->base.is_there ? u->base.metadata : NULL);
        err = *config ? 0 : HD_ENOMEM;
    }
    hd_val_unref(metadata);
    hd_buf_fini(&texts.checkpoint);
    hd_buf_fini(&texts.metadata);
    hd_buf_fini(&texts.versions);
    hd_packed_fini(&texts.packed);
    return err;
}

/* Stores the writes with the checkpoint that they are based on, so that its tasks show them. */
static int put_writes(struct updating *u, const char *task, size_t index,
                      const struct hd_writes *writes)
{
    struct heddle_error error = {0};
    struct hd_packed packed = {.values = NULL};
    char path[64];
    int err;

    snprintf(path, sizeof(path), "~__interrupt__, %010zu", index);
    hd_buf_init(&packed.text, HD_ENGINE_MAX_VALUE);
    err = hd_save_pack_writes(&packed, u->base.graph, writes->list, writes->count);
    if (!err && packed.value_count > 0) {
        struct heddle_writes all = {
            .thread = {hd_to_public(u->at.principal), hd_to_public(u->at.thread)},
            .ns = hd_to_public(hd_slice_cstr(u->base.place)),
            .checkpoint_id = hd_to_public(hd_slice_cstr(u->base.live.id)),
            .task_id = hd_to_public(hd_slice_cstr(task)),
            .task_path = hd_to_public(hd_slice_cstr(path)),
            .values = packed.values,
            .value_count = packed.value_count};

        err = stored(u, hd_store_put_writes(u->at.store, &all, u->at.guard, &error), &error);
    }
    hd_packed_fini(&packed);
    return err;
}

/* *out: true if the thread has a newer checkpoint than the requested base. */
static int is_superseded(struct updating *u, bool *out)
{
    struct hd_address latest = u->at;
    struct hd_found found;
    int err;

    *out = false;
    if (u->at.checkpoint_id.len == 0)
        return 0;
    latest.checkpoint_id = (struct hd_slice){NULL, 0};
    err = hd_found_load(&found, &latest, u->failure);
    if (err)
        return err;
    *out = found.is_there && strcmp(found.live.id, u->base.live.id) != 0;
    hd_found_fini(&found);
    return 0;
}

/* ---- updates of nodes ------------------------------------------------- */

/* The node that has seen the newest version, if it is unique. */
static size_t infer_node(const struct hd_checkpoint_state *live)
{
    const struct hd_val *newest = NULL;
    size_t found = HD_GRAPH_END, count = 0;

    for (size_t row = 0; row < live->graph->node_count; row++) {
        const struct hd_versions_seen *seen = &live->seen[row];

        for (size_t i = 0; i < seen->count; i++) {
            const struct hd_val *version = seen->list[i].version;

            if (hd_version_after(version, newest)) {
                newest = version;
                found = row;
                count = 1;
            } else if (!hd_version_after(newest, version)) {
                count++;
            }
        }
    }
    if (newest)
        return count == 1 ? found : HD_GRAPH_END;
    /* No node has seen a version yet, so the update is the input. */
    return live->seen[hd_versions_seen_interrupt(live->graph)].count > 0 ? HD_GRAPH_END
                                                                         : HD_GRAPH_START;
}

static int find_node(struct updating *u, const struct hd_update *update, size_t *out)
{
    if (update->as_node.len > 0) {
        *out = hd_graph_find_node(u->base.graph, update->as_node);
        if (*out != HD_GRAPH_END)
            return 0;
        hd_failure_set(u->failure, "InvalidUpdateError", "Node %.*s does not exist",
                       (int)update->as_node.len, update->as_node.ptr);
        return HD_EINVAL;
    }
    if (u->step->count > 1)
        return refuse_update(u, "as_node is required when applying multiple updates");
    *out = infer_node(&u->base.live);
    return *out == HD_GRAPH_END ? refuse_update(u, "Ambiguous update, specify as_node") : 0;
}

/* Chooses the task id of an update: that of a pending task of the node, or a derived one. */
static int choose_task(struct updating *u, const struct hd_update *update, size_t index,
                       size_t node, const struct hd_tasks *tasks, bool *taken,
                       char out[HD_UUID_SIZE])
{
    uint8_t ns[16];
    char name[64];

    if (update->task_id.len == HD_UUID_LEN) {
        snprintf(out, HD_UUID_SIZE, "%.*s", (int)update->task_id.len, update->task_id.ptr);
        return 0;
    }
    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->list[i]->node->index == node && !taken[i]) {
            taken[i] = true;
            memcpy(out, tasks->list[i]->id, HD_UUID_SIZE);
            return 0;
        }
    }
    snprintf(name, sizeof(name), index == 0 ? "__interrupt__" : "__interrupt__:%zu", index);
    if (!hd_uuid_parse(hd_slice_cstr(u->base.live.id), ns))
        return HD_EINVAL;
    return hd_uuid_v5(ns, hd_slice_cstr(name), out);
}

/* Passes the update through the node's writers, like a result of the node. */
static int make_writes(struct updating *u, const struct hd_update *update, size_t node,
                       struct hd_writes *out)
{
    struct hd_scope scope = {.channels = NULL};
    const struct hd_val *values = update->values, *go = NULL;

    if (hd_val_kind(values) == HD_KIND_COMMAND) {
        go = hd_val_get(values, HD_S("goto"));
        values = hd_val_get(values, HD_S("update"));
    }
    return hd_command_node_writes(u->base.graph, &u->base.graph->nodes[node], &u->base.live, &scope,
                                  values, go, out, u->failure);
}

struct made_update {
    size_t node;
    char task[HD_UUID_SIZE];
    struct hd_writes writes;
};

static int make_all(struct updating *u, struct made_update *made)
{
    struct hd_tasks tasks = {NULL, 0, 0};
    bool *taken = NULL;
    int err = 0;

    if (u->base.is_there)
        err = hd_tasks_prepare(&tasks, &u->base.live, hd_slice_cstr(u->base.ns), u->base.step + 1,
                               false);
    if (!err) {
        taken = hd_calloc(tasks.count + 1, sizeof(*taken));
        err = taken ? 0 : HD_ENOMEM;
    }
    for (size_t i = 0; i < u->step->count && !err; i++)
        err = find_node(u, &u->step->updates[i], &made[i].node);
    for (size_t i = 0; i < u->step->count && !err; i++) {
        err = choose_task(u, &u->step->updates[i], i, made[i].node, &tasks, taken, made[i].task);
        if (!err)
            err = make_writes(u, &u->step->updates[i], made[i].node, &made[i].writes);
    }
    hd_free(taken);
    hd_tasks_fini(&tasks);
    return err;
}

static int apply_made(struct updating *u, const struct made_update *made)
{
    struct hd_applied *list = hd_calloc(u->step->count, sizeof(*list));
    int err;

    if (!list)
        return HD_ENOMEM;
    for (size_t i = 0; i < u->step->count; i++)
        list[i] = (struct hd_applied){
            .row = made[i].node, .bumps = true, .writes = &made[i].writes, .rank = 1, .index = i};
    err = hd_apply(&u->base.live, list, u->step->count, true, NULL, u->failure);
    hd_free(list);
    return err;
}

static int update_nodes(struct updating *u, struct hd_val **config)
{
    struct made_update *made = hd_calloc(u->step->count, sizeof(*made));
    bool is_old = true;
    int err = made ? make_all(u, made) : HD_ENOMEM;

    if (!err && u->base.is_there)
        err = u->is_first ? is_superseded(u, &is_old) : (is_old = false, 0);
    for (size_t i = 0; i < u->step->count && !err && !is_old; i++)
        err = put_writes(u, made[i].task, i, &made[i].writes);
    if (!err)
        err = apply_made(u, made);
    if (!err)
        err = put_checkpoint(u, "update", u->base.step + 1, u->base.step + 1, false, config);
    for (size_t i = 0; made && i < u->step->count; i++)
        hd_writes_fini(&made[i].writes);
    hd_free(made);
    return err;
}

/* ---- special nodes ---------------------------------------------------- */

/* Clears the pending tasks: applies the writes of finished ones and drops the others. */
static int clear_tasks(struct updating *u, struct hd_val **config)
{
    struct hd_tasks tasks = {NULL, 0, 0};
    int err = 0;

    if (u->step->count > 1)
        return refuse_update(u, "Cannot apply multiple updates when clearing state");
    if (u->base.is_there) {
        err = hd_tasks_prepare(&tasks, &u->base.live, hd_slice_cstr(u->base.ns), u->base.step + 1,
                               false);
        if (!err)
            err = hd_found_apply_null(&u->base, true, u->failure);
        if (!err)
            err = hd_found_apply_tasks(&u->base, &tasks, true, true, u->failure);
        hd_tasks_fini(&tasks);
    }
    return err ? err : put_checkpoint(u, "update", u->base.step + 1, u->base.step, false, config);
}

static int act_as_input(struct updating *u, struct hd_val **config)
{
    const struct hd_val *values = u->step->updates[0].values;
    struct hd_writes writes = {NULL, 0, 0};
    struct hd_applied applied = {.row = hd_versions_seen_input(u->base.graph), .writes = &writes};
    int64_t step = u->base.is_there ? u->base.step + 1 : -1;
    int err;

    if (u->step->count > 1)
        return refuse_update(u, "Cannot apply multiple updates when updating as input");
    if (hd_val_is_null(values))
        return refuse_update(u, "Received no input writes for __start__");
    err = hd_writes_add(&writes, (int)u->base.graph->start_channel, hd_val_ref(values));
    if (!err)
        err = hd_apply(&u->base.live, &applied, 1, true, NULL, u->failure);
    if (!err)
        err = put_checkpoint(u, "input", step, step, false, config);
    hd_writes_fini(&writes);
    return err;
}

static int copy_checkpoint(struct updating *u, struct hd_val **config)
{
    if (u->step->count > 1)
        return refuse_update(u, "Cannot copy checkpoint with multiple updates");
    if (!u->base.is_there)
        return refuse_update(u, "Cannot copy a non-existent checkpoint");
    return put_checkpoint(u, "fork", u->base.step + 1, u->base.step, true, config);
}

static int perform(struct updating *u, struct hd_val **config)
{
    const struct hd_update *first = &u->step->updates[0];

    if (hd_val_is_null(first->values) && hd_slice_eq(first->as_node, HD_S("__end__")))
        return clear_tasks(u, config);
    if (hd_slice_eq(first->as_node, HD_S("__input__")))
        return act_as_input(u, config);
    if (hd_slice_eq(first->as_node, HD_S("__copy__")))
        return copy_checkpoint(u, config);
    return update_nodes(u, config);
}

static int superstep(struct updating *u, struct hd_val **config)
{
    size_t count;
    int err = hd_found_load(&u->base, &u->at, u->failure);

    if (err)
        return err;
    count = u->base.graph->channel_count;
    u->previous = hd_calloc(count, sizeof(struct hd_val *));
    for (size_t i = 0; u->previous && i < count; i++)
        u->previous[i] = hd_val_ref(u->base.live.versions[i]);
    err = u->previous ? find_floor(u) : HD_ENOMEM;
    if (!err)
        err = perform(u, config);
    for (size_t i = 0; u->previous && i < count; i++)
        hd_val_unref(u->previous[i]);
    hd_free(u->previous);
    hd_found_fini(&u->base);
    return err;
}

int hd_state_update(const struct hd_address *at, const struct hd_superstep *steps, size_t count,
                    const struct hd_val *metadata, struct hd_val **out, struct hd_failure *failure)
{
    struct hd_val *config = NULL;
    int err = 0;

    if (at->graph->is_foreign) {
        hd_failure_set(failure, "ValueError", "Only a worker can update this graph");
        return HD_EUNSUPPORTED;
    }
    for (size_t i = 0; i < count && !err; i++)
        err = steps[i].count == 0 ? HD_EINVAL : 0;
    if (err || count == 0) {
        hd_failure_set(failure, "ValueError", "No %s provided", err ? "updates" : "supersteps");
        return HD_EINVAL;
    }
    for (size_t i = 0; i < count && !err; i++) {
        struct updating u = {.at = *at,
                             .step = &steps[i],
                             .is_first = i == 0,
                             .metadata = metadata,
                             .failure = failure};
        struct hd_val *before = config;

        if (before)
            u.at.checkpoint_id = hd_val_get_string(hd_val_get(before, HD_S("checkpoint_id")));
        err = superstep(&u, &config);
        hd_val_unref(before);
        if (err) {
            hd_failure_code(failure, err, NULL);
            return err;
        }
    }
    *out = config;
    return 0;
}
