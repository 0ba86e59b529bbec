/*
 * State updates of graphs whose code runs in workers. The worker writes the checkpoints: a store
 * thread builds the request, the loop sends it, and a store thread updates the thread's record.
 */
#include "api/state/supersteps.h"
#include "api/request/worker_query.h"
#include "base/json.h"
#include "run/assistant_lookup.h"

#define MAX_TEXT ((size_t)1 << 30)
#define COPY HD_S("__copy__") /* as_node of a fork without a change */

/* ---- the query */

static void put_superstep_member(struct hd_jw *jw, hd_json_val from, const char *name)
{
    hd_json_val val = hd_json_get(from, hd_slice_cstr(name));

    if (!val || hd_json_is_null(val))
        return;
    hd_jw_put_val(jw, name, val);
}

/* [[update, …], …] of the body's `supersteps`. */
static void put_supersteps(struct hd_jw *jw, hd_json_val list)
{
    struct hd_json_iter steps = hd_json_iter(list);

    hd_jw_array(jw);
    while (hd_json_next(&steps)) {
        struct hd_json_iter it = hd_json_iter(hd_json_get(steps.val, HD_S("updates")));

        hd_jw_array(jw);
        while (hd_json_next(&it)) {
            hd_jw_object(jw);
            put_superstep_member(jw, it.val, "values");
            put_superstep_member(jw, it.val, "command");
            put_superstep_member(jw, it.val, "as_node");
            hd_jw_object_end(jw);
        }
        hd_jw_array_end(jw);
    }
    hd_jw_array_end(jw);
}

static void put_update(struct hd_jw *jw, hd_json_val values, struct hd_slice as_node)
{
    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("values"));
    if (values)
        hd_jw_val(jw, values);
    else
        hd_jw_null(jw);
    if (as_node.len > 0)
        hd_jw_put_string(jw, "as_node", as_node);
    hd_jw_object_end(jw);
}

/* The same for the body's `values` and `as_node`, in the format of hd_supersteps_read_values(). */
static void put_values(struct hd_jw *jw, const struct hd_call *call)
{
    hd_json_val values = hd_body_get(call, "values");
    struct hd_slice as_node = hd_json_string(hd_body_get(call, "as_node"));
    bool is_list = hd_json_is_array(values) && hd_json_size(values) > 0;
    struct hd_json_iter it = hd_json_iter(values);

    hd_jw_array(jw);
    hd_jw_array(jw);
    while (is_list && hd_json_next(&it))
        put_update(jw, it.val, as_node);
    if (!is_list && !hd_json_is_object(values))
        put_update(jw, NULL, as_node.len > 0 ? as_node : COPY);
    else if (!is_list)
        put_update(jw, values, as_node);
    hd_jw_array_end(jw);
    hd_jw_array_end(jw);
}

/* The assistant's configuration, since a graph factory may depend on it. */
static int put_own(struct hd_call *call, const struct hd_checkpoint_target *target,
                   struct hd_jw *jw)
{
    struct hd_assistant_rec assistant;
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err;

    if (target->assistant_id.len == 0)
        return 0;
    err = hd_assistant_lookup(call->app, call->actor, target->assistant_id, call->arena, &assistant,
                              &call->fault);
    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        return 0;
    }
    if (!err && assistant.config.len > 0)
        err = hd_json_parse(&json, assistant.config, &call->fault);
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("configurable")));
    while (!err && hd_json_next(&it)) {
        if (hd_slice_starts(it.key, HD_S("checkpoint_")) || hd_slice_eq(it.key, HD_S("thread_id")))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_json_fini(&json);
    return err;
}

static int put_superstep_config(struct hd_call *call, const struct hd_checkpoint_target *target,
                                struct hd_jw *jw)
{
    struct hd_slice id = target->checkpoint_id.len > 0 ? target->checkpoint_id : target->chosen;
    int err;

    hd_jw_put_object(jw, "config");
    hd_jw_put_object(jw, "configurable");
    err = put_own(call, target, jw);
    hd_jw_put_string(jw, "thread_id", target->thread.id);
    hd_jw_put_string(jw, "checkpoint_ns", target->inner);
    if (id.len > 0)
        hd_jw_put_string(jw, "checkpoint_id", id);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
    return err;
}

static int write_superstep_head(struct hd_call *call, const struct hd_checkpoint_target *target,
                                struct hd_buf *out)
{
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", HD_S("update"));
    hd_jw_put_string(&jw, "graph", target->graph_id);
    hd_jw_put_string(&jw, "thread_id", target->thread.id);
    hd_jw_put_string(&jw, "assistant_id", target->assistant_id);
    err = put_superstep_config(call, target, &jw);
    hd_jw_put_raw(&jw, "supersteps", HD_S("{\"$blob\":0}"));
    hd_jw_object_end(&jw);
    return err ? err : hd_jw_finish(&jw);
}

int hd_supersteps_prepare(struct hd_call *call, struct hd_checkpoint_target *target,
                          bool from_values, struct hd_supersteps_remote *out)
{
    struct hd_buf head, text;
    struct hd_jw jw;
    int err = hd_call_check_loaded(call, target->graph);

    *out = (struct hd_supersteps_remote){.target = target};
    if (err)
        return err;
    hd_buf_init(&head, MAX_TEXT);
    hd_buf_init(&text, MAX_TEXT);
    hd_jw_init(&jw, &text);
    if (from_values)
        put_values(&jw, call);
    else
        put_supersteps(&jw, hd_body_get(call, "supersteps"));
    err = hd_jw_finish(&jw);
    if (!err)
        err = write_superstep_head(call, target, &head);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&head), &out->head);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&text), &out->text);
    hd_buf_fini(&head);
    hd_buf_fini(&text);
    return err;
}

struct hd_step hd_supersteps_query(struct hd_call *call, const struct hd_supersteps_remote *remote,
                                   hd_worker_reply_fn on_reply, hd_error_fn on_error)
{
    const struct hd_checkpoint_target *target = remote->target;
    struct hd_val *metadata = hd_supersteps_metadata(target);
    const struct hd_rt_scope scope = {.principal = target->thread.principal,
                                      .actor = call->actor,
                                      .thread = target->thread.id,
                                      .root = target->root,
                                      .guard = target->thread.created_at,
                                      .metadata = metadata};
    const struct hd_worker_query query = {.language = target->graph->language,
                                          .head = remote->head,
                                          .blob = remote->text,
                                          .scope = &scope,
                                          .on_reply = on_reply,
                                          .on_error = on_error};
    struct hd_step step = hd_step_fail(HD_ENOMEM);

    call->on_error = on_error;
    if (metadata)
        step = hd_call_query_worker(call, &query);
    hd_val_unref(metadata);
    return step;
}

/* ---- the reply -------------------------------------------------------- */

int hd_supersteps_read_reply(struct hd_call *call, const struct hd_rt_message *message,
                             struct hd_supersteps_remote *remote)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, message->head, NULL);
    hd_json_val root = hd_json_root(&json);

    if (!err)
        err = hd_arena_copy(call->arena, hd_json_string(hd_json_get(root, HD_S("checkpoint_id"))),
                            &remote->checkpoint_id);
    if (!err)
        err = hd_arena_copy(call->arena, hd_json_string(hd_json_get(root, HD_S("checkpoint_ns"))),
                            &remote->ns);
    if (!err && hd_json_is_object(hd_json_get(root, HD_S("checkpoint_map"))))
        err = hd_call_text(call, hd_json_get(root, HD_S("checkpoint_map")), &remote->map);
    if (!err && remote->checkpoint_id.len == 0)
        err = HD_EINVAL;
    hd_json_fini(&json);
    return err == HD_EINVAL
               ? hd_error_set(&call->fault, HD_ECORRUPT, "the worker's response is invalid")
               : err;
}

int hd_supersteps_settle(struct hd_call *call, const struct hd_supersteps_remote *remote,
                         struct hd_val **config)
{
    struct hd_val *made = hd_val_object(), *map = NULL;
    int err = hd_supersteps_refresh(call, remote->target, remote->checkpoint_id);

    if (!err && remote->map.len > 0)
        err = hd_val_parse_json(remote->map, &map, &call->fault);
    made = hd_val_with(made, HD_S("thread_id"), hd_val_string(remote->target->thread.id));
    made = hd_val_with(made, HD_S("checkpoint_ns"), hd_val_string(remote->ns));
    made = hd_val_with(made, HD_S("checkpoint_id"), hd_val_string(remote->checkpoint_id));
    if (map)
        made = hd_val_with(made, HD_S("checkpoint_map"), map);
    if (!err && !made)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(made);
    else
        *config = made;
    return err;
}
