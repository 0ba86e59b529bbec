/* The start of a loop: selects and loads its checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/origin.h"
#include "graph/engine/runtime_migrate.h"
#include "graph/engine/save.h"
#include "value/val.h"

static int keep_origin(struct hd_loop *loop, const struct heddle_tuple *tuple)
{
    struct hd_origin **list = loop->run->options.origins;
    int err;

    if (!list)
        return 0;
    err = hd_origin_add(list, tuple, hd_loop_place(loop));
    loop->origin = err ? NULL : *list;
    return err;
}

static int take_tuple(struct hd_loop *loop, const struct heddle_tuple *tuple)
{
    static const struct hd_runtime_migrate_rules strict = {.is_strict = true};
    struct heddle_error fault = {0};
    struct hd_val *metadata = NULL;
    int64_t step;
    int err =
        hd_checkpoint_state_load(&loop->live, &loop->pending_writes, loop->tracker, tuple, &fault);

    if (!err)
        err = hd_val_parse_json(hd_slice(tuple->metadata.data, tuple->metadata.len), &metadata,
                                &fault);
    if (err) {
        hd_failure_code(&loop->failure, err, &fault);
        return err;
    }
    err = keep_origin(loop, tuple);
    hd_val_unref(loop->metadata);
    loop->metadata = metadata;
    memcpy(loop->saved_id, loop->live.id, sizeof(loop->saved_id));
    hd_floor_raise(loop->run->floor, hd_slice_cstr(loop->live.id));
    hd_floor_raise(loop->run->floor, hd_slice_cstr(loop->load.greatest));
    loop->has_stored = true;
    loop->has_old_pending_writes = loop->pending_writes.count > 0;
    if (tuple->parent.len == HD_UUID_LEN)
        memcpy(loop->parent_id, tuple->parent.data, HD_UUID_LEN);
    for (size_t i = 0; i < loop->graph->channel_count; i++)
        loop->saved_versions[i] = hd_val_ref(loop->live.versions[i]);
    loop->step = hd_val_get_int(hd_val_get(metadata, HD_S("step")), &step) ? step + 1 : -1;
    if (!err)
        err = hd_runtime_migrate_writes(&loop->live, hd_loop_ns(loop), loop->step,
                                        hd_runtime_migrate_writer(metadata), &strict,
                                        &loop->pending_writes, &fault);
    if (err)
        hd_failure_code(&loop->failure, err, &fault);
    return err;
}

static void on_loaded(struct hd_loop *loop, int code, const char *text)
{
    struct heddle_error fault = {.code = code};
    int err = 0;

    if (code) {
        snprintf(fault.text, sizeof(fault.text), "%s", text[0] ? text : heddle_error_text(code));
        hd_failure_code(&loop->failure, code, &fault);
        err = code;
    }
    loop->status = HD_LOOP_RUNNING;
    loop->step = -1;
    if (!err && loop->load.tuple)
        err = take_tuple(loop, loop->load.tuple);
    heddle_tuple_free(loop->load.tuple);
    loop->load.tuple = NULL;
    memcpy(loop->loaded_id, loop->live.id, sizeof(loop->loaded_id));
    loop->stop = loop->step + loop->recursion_limit + 1;
    if (!err && !loop->is_given_up)
        err = hd_loop_apply_input(loop, loop->input, loop->input_command);
    if (err) {
        hd_failure_code(&loop->failure, err, NULL);
        hd_loop_finish(loop, HD_END_FAILED);
    }
    hd_loop_advance(loop);
}

/* The namespace without the last task id, which is the same each time the node runs. */
static struct hd_slice stable_ns(const char *ns)
{
    const char *end = strrchr(ns, ':');

    return hd_slice(ns, end ? (size_t)(end - ns) : strlen(ns));
}

/* In a replay only the first visit of a subgraph loads a checkpoint from before the replay. */
static int first_visit(struct hd_loop *loop, bool *is_first)
{
    struct hd_replay *replay = loop->run->replay;
    struct hd_slice ns = stable_ns(loop->ns);

    for (size_t i = 0; i < hd_val_count(replay->visited); i++) {
        if (hd_slice_eq(hd_val_get_string(hd_val_at(replay->visited, i)), ns)) {
            *is_first = false;
            return 0;
        }
    }
    *is_first = true;
    replay->visited = hd_val_append(replay->visited, hd_val_string(ns));
    return replay->visited ? 0 : HD_ENOMEM;
}

/* As hd_load_start(). */
static int begin_load(struct hd_loop *loop, struct heddle_error *fault)
{
    const struct hd_val *own = hd_val_get(loop->parents, hd_loop_ns(loop));
    struct hd_slice id = hd_val_get_string(own), before = {NULL, 0};
    int err = 0;

    if (!loop->outer && id.len == 0)
        id = loop->run->options.checkpoint_id;
    loop->has_checkpoint_id = id.len > 0 && !(loop->run->options.is_own && !loop->outer);
    if (id.len == 0 && loop->outer && loop->run->replay) {
        bool is_first;

        loop->has_checkpoint_id = true;
        err = first_visit(loop, &is_first);
        if (!err && is_first)
            before = hd_slice_cstr(loop->run->replay->id);
        loop->resuming = -1;
    }
    if (id.len > 0 && id.len == HD_UUID_LEN)
        memcpy(loop->saved_id, id.ptr, id.len); /* the next one's parent, even if not stored */
    return err ? err : hd_load_start(loop, id, before, on_loaded, fault);
}

int hd_loop_start(struct hd_loop *loop, struct hd_val *input, struct hd_val *command)
{
    struct hd_event event = {
        .type = HD_EVENT_GRAPH, .loop = loop, .value = command ? command : input};
    struct heddle_error fault = {.code = 0};
    int err;

    loop->input = input;
    loop->input_command = command;
    loop->status = HD_LOOP_LOADING;
    loop->is_entering = true;
    hd_emit(loop, &event);
    err = loop->saves ? begin_load(loop, &fault) : HD_READY;
    if (err)
        on_loaded(loop, err == HD_READY ? 0 : err, fault.text);
    loop->is_entering = false;
    return loop->status == HD_LOOP_ENDED ? HD_READY : 0;
}
