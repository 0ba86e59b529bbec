#include "api/state/supersteps.h"

#include "base/clock.h"
#include "graph/engine/failure.h"
#include "records/run_command.h"
#include "records/thread_heads.h"
#include "run/run_commit.h"

#define MAX_UPDATES 10000 /* of all supersteps of a request */

/* ---- reading ---------------------------------------------------------- */

static int expected(struct hd_call *call, const char *what)
{
    return hd_error_set(&call->fault, HD_EINVAL, "%s", what);
}

/* The caller frees `out`. */
static int read_val(struct hd_call *call, hd_json_val json, struct hd_val **out)
{
    *out = NULL;
    return json && !hd_json_is_null(json) ? hd_val_from_json(json, out, &call->fault) : 0;
}

static int read_command(struct hd_call *call, hd_json_val json, struct hd_val **out)
{
    struct hd_val *given;
    int err = read_val(call, json, &given);

    if (err)
        return err;
    *out = hd_run_command_make(given);
    hd_val_unref(given);
    return *out ? 0 : HD_ENOMEM;
}

static int read_as_node(struct hd_call *call, hd_json_val json, struct hd_slice *out)
{
    if (json && !hd_json_is_null(json) && !hd_json_is_string(json))
        return expected(call, "as_node: expected a string");
    *out = hd_json_string(json);
    return 0;
}

static int read_superstep_update(struct hd_call *call, hd_json_val json, struct hd_update *update)
{
    hd_json_val values = hd_json_get(json, HD_S("values"));
    hd_json_val command = hd_json_get(json, HD_S("command"));
    struct hd_val *val = NULL;
    int err;

    if (!hd_json_is_object(json))
        return expected(call, "supersteps: an update is an object");
    err = read_as_node(call, hd_json_get(json, HD_S("as_node")), &update->as_node);
    if (err)
        return err;
    if (command && !hd_json_is_null(command)) {
        if (!hd_json_is_object(command))
            return expected(call, "supersteps: expected an object as command");
        err = read_command(call, command, &val);
    } else {
        if (values && !hd_json_is_null(values) && !hd_json_is_object(values))
            return expected(call, "supersteps: expected an object as values");
        err = read_val(call, values, &val);
    }
    update->values = val;
    return err;
}

static int read_superstep(struct hd_call *call, hd_json_val json, struct hd_superstep *step,
                          size_t *total)
{
    hd_json_val list = hd_json_get(json, HD_S("updates"));
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_update *updates;
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) == 0)
        return expected(call, "supersteps: a superstep has a list of updates");
    *total += hd_json_size(list);
    if (*total > MAX_UPDATES)
        return expected(call, "supersteps: too many updates");
    updates = hd_arena_calloc(call->arena, hd_json_size(list), sizeof(*updates));
    if (!updates)
        return HD_ENOMEM;
    step->updates = updates;
    while (!err && hd_json_next(&it))
        err = read_superstep_update(call, it.val, &updates[step->count++]);
    return err;
}

int hd_supersteps_read(struct hd_call *call, struct hd_supersteps *out)
{
    hd_json_val list = hd_body_get(call, "supersteps");
    struct hd_json_iter it = hd_json_iter(list);
    size_t total = 0;
    int err = 0;

    *out = (struct hd_supersteps){NULL, 0};
    if (!list)
        return 0;
    if (!hd_json_is_array(list))
        return expected(call, "supersteps: expected a list");
    out->list = hd_arena_calloc(call->arena, hd_json_size(list) + 1, sizeof(*out->list));
    if (!out->list)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it))
        err = read_superstep(call, it.val, &out->list[out->count++], &total);
    return err;
}

/* Several objects are separate updates of one superstep. */
static int read_superstep_list(struct hd_call *call, hd_json_val list, struct hd_slice as_node,
                               struct hd_update *updates, size_t *count)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_val *val = NULL;

        if (!hd_json_is_object(it.val))
            return expected(call, "values: expected an object, a list of objects, or null");
        err = read_val(call, it.val, &val);
        updates[(*count)++] = (struct hd_update){.values = val, .as_node = as_node};
    }
    return err;
}

int hd_supersteps_check_values(struct hd_call *call)
{
    hd_json_val values = hd_body_get(call, "values");

    if (values && !hd_json_is_object(values) && !hd_json_is_array(values))
        return expected(call, "values: expected an object, a list of objects, or null");
    return 0;
}

int hd_supersteps_read_values(struct hd_call *call, struct hd_supersteps *out)
{
    hd_json_val values = hd_body_get(call, "values");
    bool is_list = hd_json_is_array(values) && hd_json_size(values) > 0;
    struct hd_slice as_node = {NULL, 0};
    struct hd_update *updates;
    struct hd_val *val = NULL;
    int err = hd_body_string(call, "as_node", &as_node);

    *out = (struct hd_supersteps){NULL, 0};
    if (!err)
        err = hd_supersteps_check_values(call);
    if (err)
        return err;
    if (is_list && hd_json_size(values) > MAX_UPDATES)
        return expected(call, "values: too many updates");
    out->list = hd_arena_calloc(call->arena, 1, sizeof(*out->list));
    updates = hd_arena_calloc(call->arena, hd_json_size(values) + 1, sizeof(*updates));
    if (!out->list || !updates)
        return HD_ENOMEM;
    out->count = 1;
    out->list[0].updates = updates;
    if (is_list)
        return read_superstep_list(call, values, as_node, updates, &out->list[0].count);
    if (hd_json_is_object(values))
        err = read_val(call, values, &val);
    else if (as_node.len == 0)
        as_node = HD_S("__copy__"); /* nothing to write: a fork of the checkpoint */
    updates[0] = (struct hd_update){.values = val, .as_node = as_node};
    out->list[0].count = 1;
    return err;
}

void hd_supersteps_fini(struct hd_supersteps *supersteps)
{
    for (size_t i = 0; i < supersteps->count; i++) {
        for (size_t j = 0; j < supersteps->list[i].count; j++)
            hd_val_unref((struct hd_val *)(uintptr_t)supersteps->list[i].updates[j].values);
    }
    *supersteps = (struct hd_supersteps){NULL, 0};
}

/* ---- applying --------------------------------------------------------- */

struct hd_val *hd_supersteps_metadata(const struct hd_checkpoint_target *target)
{
    struct hd_val *metadata = hd_val_object();

    metadata = hd_val_with(metadata, HD_S("thread_id"), hd_val_string(target->thread.id));
    metadata = hd_val_with(metadata, HD_S("graph_id"), hd_val_string(target->graph_id));
    if (target->assistant_id.len > 0)
        metadata = hd_val_with(metadata, HD_S("assistant_id"), hd_val_string(target->assistant_id));
    return metadata;
}

struct refresh {
    const struct hd_checkpoint_target *target;
    struct hd_slice checkpoint_id;
    struct hd_standing standing;
};

/* Status and interrupts of the line follow from the new head, as at the end of a run. */
static int apply_refresh(struct hd_call *call, struct hd_thread_rec *thread, struct hd_lines *lines,
                         void *ctx)
{
    const struct refresh *refresh = ctx;
    const struct hd_checkpoint_target *target = refresh->target;
    int err;

    thread->updated_at = thread->state_updated_at = hd_clock_now_us();
    hd_thread_touch(thread, thread->updated_at);
    thread->event_seq++; /* for the event that reports the update */
    if (target->inner.len > 0)
        return 0;
    err = hd_thread_heads_follow(call->app->store, thread, target->root, refresh->checkpoint_id,
                                 hd_slice(NULL, 0), call->arena, &call->fault);
    if (err)
        return err;
    if (!hd_thread_head_is_set(&thread->head))
        thread->head = (struct hd_head){
            .ns = target->root, .graph_id = target->graph_id, .assistant_id = target->assistant_id};
    return hd_checkpoint_target_settle(call, target, refresh->checkpoint_id, &refresh->standing,
                                       thread, lines);
}

int hd_supersteps_refresh(struct hd_call *call, struct hd_checkpoint_target *target,
                          struct hd_slice checkpoint_id)
{
    struct refresh refresh = {.target = target, .checkpoint_id = checkpoint_id};
    int err = 0;

    if (target->inner.len == 0)
        err = hd_checkpoint_target_standing(call, target, checkpoint_id, &refresh.standing);
    return err ? err : hd_call_lines_change(call, &target->thread, apply_refresh, &refresh);
}

int hd_supersteps_apply(struct hd_call *call, struct hd_checkpoint_target *target,
                        const struct hd_supersteps *supersteps, struct hd_val **config)
{
    struct hd_address at = hd_checkpoint_target_address(
        call, target, target->checkpoint_id.len > 0 ? target->checkpoint_id : target->chosen);
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *metadata = hd_supersteps_metadata(target), *made = NULL;
    struct hd_slice checkpoint_id = {NULL, 0};
    int err = metadata ? 0 : HD_ENOMEM;

    if (!err)
        err = hd_call_failure(
            call,
            hd_state_update(&at, supersteps->list, supersteps->count, metadata, &made, &failure),
            &failure);
    hd_val_unref(metadata);
    if (err)
        return err;
    err = hd_arena_copy(call->arena, hd_val_get_string(hd_val_get(made, HD_S("checkpoint_id"))),
                        &checkpoint_id);
    if (!err)
        err = hd_supersteps_refresh(call, target, checkpoint_id);
    if (err)
        hd_val_unref(made);
    else
        *config = made;
    return err;
}
