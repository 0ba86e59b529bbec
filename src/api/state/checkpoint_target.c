#include "api/state/checkpoint_target.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "graph/engine/failure.h"
#include "graph/engine/ns.h"
#include "records/hold.h"
#include "records/thread_heads.h"
#include "records/thread_roots.h"
#include "run/admit.h"
#include "run/assistant_lookup.h"
#include "run/delegate.h"
#include "search/thread_texts.h"
#include "store/bytes.h"
#include "store/rows.h"
#include "worker/resume_answers.h"

#define MAX_STANDING ((size_t)256 << 20)
#define MAX_NS 4096 /* bytes of a requested namespace */

/* ---- threads ---------------------------------------------------------- */

int hd_call_thread_read(struct hd_call *call, struct hd_slice id, struct hd_thread_rec *out)
{
    int err = hd_thread_read(call->app->store, call->principal, id, call->arena, out, &call->fault);

    if (!err && hd_thread_is_over(out, hd_clock_now_us()))
        err = HD_ENOTFOUND;
    if (err == HD_ENOTFOUND)
        hd_error_set(&call->fault, err, "Thread with ID %.*s not found", (int)id.len, id.ptr);
    return err;
}

int hd_call_thread(struct hd_call *call, struct hd_thread_rec *out)
{
    struct hd_slice id;
    int err = hd_path_uuid(call, 0, "thread_id", &id);

    return err ? err : hd_call_thread_read(call, id, out);
}

static int add_announcer(struct hd_call *call, struct hd_batch_builder *batch,
                         const struct hd_thread_rec *thread)
{
    struct hd_cluster *cluster = call->app->cluster;
    struct hd_hold hold;
    int err;

    if (!hd_cluster_is_on(cluster))
        return 0;
    err = hd_hold_read(call->app->store, thread->principal, thread->id, call->arena, &hold,
                       &call->fault);
    return err ? err
               : hd_hold_announce(batch, cluster, thread->principal, thread->id, &hold,
                                  &call->fault);
}

static int store_thread(struct hd_call *call, struct hd_thread_rec *thread,
                        const struct hd_lines *lines)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(call->arena, thread->principal, thread->id, &lane);

    hd_batch_init(&batch);
    if (!err)
        err = hd_thread_put(&batch, thread);
    if (!err)
        err = hd_lines_put(&batch, lines);
    if (!err)
        err = add_announcer(call, &batch, thread);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
    if (!err)
        hd_thread_indexer_note(call->app->texts, thread->principal, thread->id);
    hd_batch_fini(&batch);
    return err;
}

struct thread_change {
    struct hd_call *call;
    struct hd_slice id;
    struct hd_thread_rec *thread; /* read by the caller for the first attempt */
    hd_thread_change_fn change;
    hd_lines_change_fn change_lines; /* in place of `change` */
    void *ctx;
    bool is_retry;
};

static int apply_change(struct thread_change *change, struct hd_lines *lines)
{
    struct hd_call *call = change->call;
    int err;

    if (change->change)
        return change->change(call, change->thread, change->ctx);
    err = hd_lines_read(call->app->store, change->thread, call->arena, lines, &call->fault);
    return err ? err : change->change_lines(call, change->thread, lines, change->ctx);
}

static int thread_change_once(void *arg, struct heddle_error *fault)
{
    struct thread_change *change = arg;
    struct hd_lines lines = {NULL, 0, 0};
    int err = 0;

    (void)fault; /* errors are in call->fault */
    if (change->is_retry)
        err = hd_call_thread_read(change->call, change->id, change->thread);
    change->is_retry = true;
    if (!err)
        err = apply_change(change, &lines);
    return err ? err : store_thread(change->call, change->thread, &lines);
}

int hd_call_thread_change(struct hd_call *call, struct hd_thread_rec *thread,
                          hd_thread_change_fn change, void *ctx)
{
    struct thread_change once = {
        .call = call, .id = thread->id, .thread = thread, .change = change, .ctx = ctx};

    return hd_rows_change(call->app->store, thread_change_once, &once, &call->fault);
}

int hd_call_lines_change(struct hd_call *call, struct hd_thread_rec *thread,
                         hd_lines_change_fn change, void *ctx)
{
    struct thread_change once = {
        .call = call, .id = thread->id, .thread = thread, .change_lines = change, .ctx = ctx};

    return hd_rows_change(call->app->store, thread_change_once, &once, &call->fault);
}

/* ---- lines ------------------------------------------------------------ */

static int is_line_busy(struct hd_call *call, const struct hd_thread_rec *thread,
                        struct hd_slice root, bool *out)
{
    *out = hd_delegation_is_on_line(call->app->delegation, thread->principal, thread->id, root);
    if (*out)
        return 0;
    return hd_line_is_busy(call->app->store, thread, root, call->app->config->namespaces_parallel,
                           out, &call->fault);
}

int hd_checkpoint_target_is_busy(struct hd_call *call, const struct hd_checkpoint_target *target,
                                 bool *out)
{
    return is_line_busy(call, &target->thread, target->root, out);
}

int hd_checkpoint_target_settle(struct hd_call *call, const struct hd_checkpoint_target *target,
                                struct hd_slice checkpoint_id, const struct hd_standing *standing,
                                struct hd_thread_rec *thread, struct hd_lines *lines)
{
    bool is_busy, is_shown = hd_slice_eq(thread->head.ns, target->root);
    struct hd_line_rec *line;
    int err = is_line_busy(call, thread, target->root, &is_busy);

    if (err || is_busy)
        return err;
    line = hd_lines_change(lines, thread, target->root, call->arena);
    if (!line)
        return HD_ENOMEM;
    line->updated_at = thread->updated_at;
    line->status = standing->has_next ? HD_THREAD_INTERRUPTED : HD_THREAD_IDLE;
    line->interrupts = standing->interrupts;
    line->error = hd_slice(NULL, 0);
    line->checkpoint_id = checkpoint_id;
    line->graph_id = target->graph_id;
    if (target->assistant_id.len > 0)
        line->assistant_id = target->assistant_id;
    if (is_shown) {
        thread->state_updated_at = thread->updated_at;
        thread->head.checkpoint_id = checkpoint_id;
    }
    return hd_lines_settle(lines, thread, thread->status == HD_THREAD_BUSY, call->arena);
}

/* ---- chosen heads ----------------------------------------------------- */

static int find_chosen(struct hd_call *call, struct hd_checkpoint_target *target)
{
    target->chosen = hd_slice(NULL, 0);
    if (target->inner.len > 0)
        return 0;
    return hd_thread_heads_get(call->app->store, &target->thread, target->root, call->arena,
                               &target->chosen, &call->fault);
}

/* ---- namespaces ------------------------------------------------------- */

/* A requested namespace. */
struct wanted_ns {
    struct hd_slice text;
    bool is_given; /* even if it is empty */
};

static int set_ns(struct hd_call *call, struct hd_checkpoint_target *target, struct hd_slice ns)
{
    int err = hd_thread_root_of(call->app->store, &target->thread, ns, &target->root, &call->fault);
    size_t from = target->root.len;

    if (err)
        return err;
    target->has_root = ns.ptr[0] != '|';
    from += from > 0 && from < ns.len; /* the bar */
    target->inner = hd_slice(ns.ptr + from, ns.len - from);
    return 0;
}

static void set_root(struct hd_checkpoint_target *target, struct hd_slice root)
{
    target->has_root = true;
    target->root = root;
}

int hd_checkpoint_target_assistant_root(struct hd_call *call, struct hd_slice id,
                                        struct hd_slice *out)
{
    const struct hd_app_graph *graph = hd_app_graph(call->app, id);
    char text[HD_UUID_SIZE];
    uint8_t raw[16];

    if (graph)
        return hd_admit_assistant_ns(call->arena, hd_slice_cstr(graph->assistant_id), out);
    if (!hd_uuid_parse(id, raw))
        return hd_error_set(&call->fault, HD_ENOTFOUND,
                            "No assistant found for \"%.*s\". Make sure the assistant ID is for a "
                            "valid assistant or a valid graph ID.",
                            (int)(id.len < 60 ? id.len : 60), id.ptr);
    hd_uuid_format(raw, text);
    return hd_admit_assistant_ns(call->arena, hd_slice(text, HD_UUID_LEN), out);
}

/* The metadata of a thread without runs may name its assistant. The value is unchecked. */
static int set_by_metadata(struct hd_call *call, struct hd_checkpoint_target *target)
{
    static const char *const names[] = {"assistant_id", "graph_id"};
    struct hd_json json = {NULL};
    int err;

    if (target->thread.metadata.len == 0)
        return 0;
    err = hd_json_parse(&json, target->thread.metadata, &call->fault);
    for (size_t i = 0; !err && i < HD_COUNT(names) && !target->has_root; i++) {
        hd_json_val val = hd_json_get(hd_json_root(&json), hd_slice_cstr(names[i]));

        if (hd_json_string(val).len == 0)
            continue;
        err = hd_checkpoint_target_assistant_root(call, hd_json_string(val), &target->root);
        target->has_root = !err;
        if (err == HD_ENOTFOUND) {
            call->fault = (struct heddle_error){0};
            err = 0;
        }
    }
    hd_json_fini(&json);
    return err;
}

/* The graph of the newest checkpoint, from its metadata. */
static int read_graph_id(struct hd_call *call, struct hd_checkpoint_target *target)
{
    struct heddle_bytes thread = hd_to_public(target->thread.id), ns = hd_to_public(target->root);
    struct heddle_query query = {.principal = hd_to_public(target->thread.principal),
                                 .thread = &thread,
                                 .ns = &ns,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct hd_json json = {NULL};
    struct heddle_list *list;
    int err = heddle_list_open(call->app->store, &query, &list, &call->fault);

    if (err)
        return err;
    err = heddle_list_next(list, &tuple, &call->fault);
    if (!err && !hd_json_parse(&json, hd_slice(tuple->metadata.data, tuple->metadata.len), NULL))
        err = hd_arena_copy(call->arena,
                            hd_json_string(hd_json_get(hd_json_root(&json), HD_S("graph_id"))),
                            &target->graph_id);
    hd_json_fini(&json);
    heddle_list_close(list);
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0}; /* the namespace has no checkpoint yet */
    return 0;
}

/* The graph of the caller's assistant, when no other source names it. */
static int find_assistant_graph(struct hd_call *call, struct hd_checkpoint_target *target)
{
    struct hd_assistant_rec assistant;
    int err;

    if (target->graph_id.len > 0 || target->assistant_id.len == 0)
        return 0;
    err = hd_assistant_lookup(call->app, call->actor, target->assistant_id, call->arena, &assistant,
                              &call->fault);
    if (!err)
        target->graph_id = assistant.graph_id;
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return 0;
}

/* In another user's thread the checkpoints have precedence: its owner may have another assistant
 * with the same id. */
static int find_graph(struct hd_call *call, struct hd_checkpoint_target *target)
{
    const struct hd_head *head = &target->thread.head;
    bool is_own = hd_slice_eq(target->thread.principal, call->actor);
    int err = 0;

    if (hd_slice_eq(target->root, head->ns))
        target->graph_id = head->graph_id;
    if (is_own)
        err = find_assistant_graph(call, target);
    if (!err && target->graph_id.len == 0)
        err = read_graph_id(call, target);
    if (!err && !is_own)
        err = find_assistant_graph(call, target);
    target->graph = target->graph_id.len > 0 ? hd_app_graph(call->app, target->graph_id) : NULL;
    return err;
}

/* Sets all members that follow from the root. */
static int target_finish(struct hd_call *call, struct hd_checkpoint_target *target)
{
    const struct hd_slice prefix = HD_S("assistant:");
    int err;

    if (!target->has_root)
        return 0;
    if (hd_root_is_assistant(target->root))
        target->assistant_id =
            hd_slice(target->root.ptr + prefix.len, target->root.len - prefix.len);
    err = find_graph(call, target);
    return err ? err : find_chosen(call, target);
}

/* Sets the root of a request that names none. */
static int set_default_root(struct hd_call *call, struct hd_checkpoint_target *target,
                            struct hd_slice assistant_id)
{
    int err = 0;

    if (assistant_id.len > 0) {
        err = hd_checkpoint_target_assistant_root(call, assistant_id, &target->root);
        target->has_root = !err;
    } else if (hd_thread_head_is_set(&target->thread.head)) {
        set_root(target, target->thread.head.ns);
    } else {
        err = set_by_metadata(call, target);
    }
    return err;
}

static int target_choose(struct hd_call *call, struct hd_checkpoint_target *target,
                         struct wanted_ns ns, struct hd_slice assistant_id)
{
    bool shows = call->app->config->namespaces_show, is_empty = false;
    int err = 0;

    if (ns.text.len > MAX_NS)
        return hd_error_set(&call->fault, HD_EINVAL, "checkpoint_ns: longer than %d bytes", MAX_NS);
    if (ns.text.len > 0 && (shows || hd_root_is_assistant(ns.text))) {
        err = set_ns(call, target, ns.text);
        return err ? err : target_finish(call, target);
    }
    target->inner = ns.text;
    if (shows && ns.is_given && assistant_id.len == 0)
        err = hd_thread_has_empty_root(call->app->store, &target->thread, &is_empty, &call->fault);
    if (is_empty)
        set_root(target, HD_S(""));
    else if (!err)
        err = set_default_root(call, target, assistant_id);
    return err ? err : target_finish(call, target);
}

int hd_checkpoint_target_of_query(struct hd_call *call, struct hd_checkpoint_target *target)
{
    struct hd_slice assistant_id = {NULL, 0};
    struct wanted_ns ns = {.is_given = hd_params_has(&call->query, HD_S("checkpoint_ns"))};
    int err;

    *target = (struct hd_checkpoint_target){.graph = NULL};
    hd_params_get(&call->query, HD_S("checkpoint_ns"), &ns.text);
    hd_params_get(&call->query, HD_S("assistant_id"), &assistant_id);
    err = hd_call_thread(call, &target->thread);
    return err ? err : target_choose(call, target, ns, assistant_id);
}

static int wrong_member(struct hd_call *call, const char *name, const char *wanted)
{
    return hd_error_set(&call->fault, HD_EINVAL, "checkpoint.%s: expected %s", name, wanted);
}

/* A member of the body's checkpoint; null is the same as absent. */
static int point_string(struct hd_call *call, hd_json_val point, const char *name,
                        struct hd_slice *out)
{
    hd_json_val val = hd_json_get(point, hd_slice_cstr(name));

    if (val && !hd_json_is_null(val) && !hd_json_is_string(val))
        return wrong_member(call, name, "a string");
    if (hd_json_is_string(val) && hd_json_string(val).len > 0)
        *out = hd_json_string(val);
    return 0;
}

static int read_point(struct hd_call *call, struct wanted_ns *ns, struct hd_slice *id)
{
    hd_json_val point = NULL, map;
    int err = hd_body_object(call, "checkpoint", &point);

    map = hd_json_get(point, HD_S("checkpoint_map"));
    if (!err && map && !hd_json_is_null(map) && !hd_json_is_object(map))
        err = wrong_member(call, "checkpoint_map", "an object");
    if (!err)
        err = point_string(call, point, "checkpoint_ns", &ns->text);
    ns->is_given = hd_json_is_string(hd_json_get(point, HD_S("checkpoint_ns")));
    if (!err)
        err = point_string(call, point, "checkpoint_id", id);
    if (!err && id->len == 0)
        *id = hd_json_string(hd_json_get(map, ns->text));
    return err;
}

int hd_checkpoint_target_of_body(struct hd_call *call, struct hd_checkpoint_target *target)
{
    struct hd_slice assistant_id = {NULL, 0}, id = {NULL, 0}, beside = {NULL, 0};
    struct wanted_ns ns = {.is_given = false};
    int err = read_point(call, &ns, &id);

    *target = (struct hd_checkpoint_target){.graph = NULL};
    if (!err)
        err = hd_body_string(call, "checkpoint_ns", &beside);
    if (!err)
        err = hd_body_string(call, "assistant_id", &assistant_id);
    if (!err && id.len == 0)
        err = hd_body_string(call, "checkpoint_id", &id);
    if (!err)
        err = hd_call_thread(call, &target->thread);
    if (err)
        return err;
    target->checkpoint_id = id;
    ns.is_given |= hd_body_get(call, "checkpoint_ns") != NULL;
    if (beside.len > 0)
        ns.text = beside;
    return target_choose(call, target, ns, assistant_id);
}

int hd_checkpoint_target_of_thread(struct hd_call *call, struct hd_checkpoint_target *target)
{
    return target_choose(call, target, (struct wanted_ns){.is_given = false}, hd_slice(NULL, 0));
}

int hd_checkpoint_target_of_root(struct hd_call *call, struct hd_checkpoint_target *target,
                                 struct hd_slice root)
{
    set_root(target, root);
    target->inner = hd_slice(NULL, 0);
    return target_finish(call, target);
}

/* ---- checkpoints ------------------------------------------------------ */

struct hd_address hd_checkpoint_target_address(const struct hd_call *call,
                                               const struct hd_checkpoint_target *target,
                                               struct hd_slice id)
{
    return (struct hd_address){.store = call->app->store,
                               .graph = hd_app_shape(target->graph),
                               .principal = target->thread.principal,
                               .thread = target->thread.id,
                               .guard = {.created_at = target->thread.created_at},
                               .root = target->root,
                               .ns = target->inner,
                               .checkpoint_id = id,
                               .as_text = true};
}

/* As JSON, in the arena; nothing for an empty value. */
static int keep_json(struct hd_call *call, const struct hd_val *value, struct hd_slice *out)
{
    struct hd_buf text;
    int err = 0;

    if (hd_val_count(value) == 0)
        return 0;
    hd_buf_init(&text, MAX_STANDING);
    err = hd_val_render(&text, value);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

static int keep_asked(struct hd_call *call, const struct hd_val *state, struct hd_slice *out)
{
    struct hd_val *asked = hd_resume_answers_pending(state);
    int err = asked ? keep_json(call, asked, out) : HD_ENOMEM;

    hd_val_unref(asked);
    return err;
}

int hd_checkpoint_target_standing(struct hd_call *call, const struct hd_checkpoint_target *target,
                                  struct hd_slice id, struct hd_standing *out)
{
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    struct hd_address at;
    int err;

    *out = (struct hd_standing){.has_next = false};
    if (!target->graph)
        return 0;
    at = hd_checkpoint_target_address(call, target, id);
    at.without_values = true;
    err = hd_call_failure(call, hd_state_get(&at, false, &state, &failure), &failure);
    if (!err)
        err = keep_asked(call, state, &out->interrupts);
    if (!err)
        err = keep_json(call, hd_val_get(state, HD_S("next")), &out->next);
    out->has_next = out->next.len > 0;
    hd_val_unref(state);
    return err;
}

struct hd_slice hd_checkpoint_target_shown_root(const struct hd_call *call,
                                                const struct hd_checkpoint_target *target)
{
    return call->app->config->namespaces_show ? target->root : hd_slice(NULL, 0);
}

void hd_checkpoint_target_put_ns(struct hd_call *call, const struct hd_checkpoint_target *target)
{
    char *ns;

    hd_jw_key(&call->jw, HD_S("checkpoint_ns"));
    if (!target->has_root) {
        hd_jw_null(&call->jw);
        return;
    }
    ns = hd_ns_join(hd_checkpoint_target_shown_root(call, target), target->inner, NULL);
    if (ns)
        hd_jw_string(&call->jw, hd_slice_cstr(ns));
    else
        call->jw.err = HD_ENOMEM;
    hd_free(ns);
}

int hd_checkpoint_target_ns(struct hd_call *call, const struct hd_checkpoint_target *target,
                            struct hd_slice *out)
{
    char *ns = hd_ns_join(target->root, target->inner, NULL);
    int err = ns ? hd_arena_copy(call->arena, hd_slice_cstr(ns), out) : HD_ENOMEM;

    hd_free(ns);
    return err;
}

int hd_checkpoint_target_has(struct hd_call *call, const struct hd_checkpoint_target *target,
                             struct hd_slice id, bool *out)
{
    struct heddle_bytes thread = hd_to_public(target->thread.id), ns, wanted = hd_to_public(id);
    struct heddle_query query = {.principal = hd_to_public(target->thread.principal),
                                 .thread = &thread,
                                 .ns = &ns,
                                 .id = id.len > 0 ? &wanted : NULL,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    struct hd_slice stored;
    int err = hd_checkpoint_target_ns(call, target, &stored);

    *out = false;
    if (err)
        return err;
    ns = hd_to_public(stored);
    err = heddle_list_open(call->app->store, &query, &list, &call->fault);
    if (!err) {
        err = heddle_list_next(list, &tuple, &call->fault);
        heddle_list_close(list);
    }
    *out = !err;
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return 0;
}

int hd_checkpoint_target_check(struct hd_call *call, const struct hd_checkpoint_target *target)
{
    bool is_there = true;
    int err = 0;

    if (target->checkpoint_id.len > 0 && !target->has_root)
        is_there = false;
    else if (target->checkpoint_id.len > 0)
        err = hd_checkpoint_target_has(call, target, target->checkpoint_id, &is_there);
    if (!err && !is_there)
        err = hd_error_set(&call->fault, HD_ENOTFOUND, "Checkpoint not found");
    return err;
}

int hd_checkpoint_target_check_graph(struct hd_call *call,
                                     const struct hd_checkpoint_target *target)
{
    bool has_any = false;
    int err = 0;

    if (target->graph_id.len > 0 && !target->graph)
        err = hd_checkpoint_target_has(call, target, hd_slice(NULL, 0), &has_any);
    if (has_any)
        err = hd_error_set(&call->fault, HD_ENOTFOUND, "Graph with id \"%.*s\" not found",
                           (int)(target->graph_id.len < 80 ? target->graph_id.len : 80),
                           target->graph_id.ptr);
    return err;
}

int hd_call_failure(struct hd_call *call, int err, struct hd_failure *failure)
{
    if (err)
        hd_error_set(&call->fault, err, "%s", failure->text ? failure->text : hd_error_text(err));
    hd_failure_fini(failure);
    return err;
}

int hd_checkpoint_target_failure(struct hd_call *call, const struct hd_checkpoint_target *target,
                                 int err, struct hd_failure *failure)
{
    if (err == HD_EINVAL && target->inner.len > 0 && failure->text &&
        hd_slice_starts(hd_slice_cstr(failure->text), HD_S("Subgraph ")))
        err = 0;
    return hd_call_failure(call, err, failure);
}
