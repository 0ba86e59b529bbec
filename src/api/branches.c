/*
 * The branches of a namespace. A branch is a longest row of checkpoints without a fork; all
 * that follow a fork point are alternatives of equal rank. And the current head:
 * where the next run goes on, which is the newest checkpoint unless somebody chose
 * another.
 */
#include <heddle.h>

#include "api/api.h"
#include "api/points.h"
#include "api/spot.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "graph/engine.h"
#include "graph/ns.h"
#include "graph/state.h"
#include "run/heads.h"
#include "run/ending.h"

#define MAX_STATE ((size_t)1 << 30)

struct branch {
    struct hd_point *first, *last;
    size_t count;
    bool is_current;
    struct branch *children; /* those that leave it at its last checkpoint */
    struct branch *sibling;
    struct hd_slice message; /* JSON; empty: none */
};

/* The document, while it is made. */
struct tree {
    struct hd_call *call;
    struct hd_spot spot;
    struct hd_points points;
    struct hd_point *head;
    struct branch *branches; /* in the order of their first checkpoints */
    size_t count;
    struct branch *roots;
};

/* ---- the tree --------------------------------------------------------- */

static bool is_first(const struct hd_point *point)
{
    return !point->parent || point->parent->children > 1;
}

static void follow(struct branch *branch, struct hd_point *first)
{
    branch->first = branch->last = first;
    branch->count = 1;
    first->branch = branch;
    while (branch->last->children == 1 && !branch->last->child->branch) {
        branch->last = branch->last->child;
        branch->last->branch = branch;
        branch->count++;
    }
}

static void mark_current(struct tree *tree)
{
    struct hd_point *point = tree->head;

    /* Bounded: a damaged tree may go in circles. */
    for (size_t i = 0; point && i < tree->points.count; i++) {
        struct branch *branch = point->branch;

        if (branch)
            branch->is_current = true;
        point = point->parent;
    }
}

static int grow(struct tree *tree)
{
    size_t count = 0;

    for (size_t i = 0; i < tree->points.count; i++)
        count += is_first(&tree->points.list[i]);
    tree->branches = hd_arena_calloc(&tree->points.arena, count + 1, sizeof(*tree->branches));
    if (!tree->branches)
        return HD_ENOMEM;
    for (size_t i = 0; i < tree->points.count; i++) {
        if (is_first(&tree->points.list[i]))
            follow(&tree->branches[tree->count++], &tree->points.list[i]);
    }
    for (size_t i = tree->count; i > 0; i--) {
        struct branch *branch = &tree->branches[i - 1];
        struct hd_point *fork = branch->first->parent;
        struct branch *parent = fork ? fork->branch : NULL;
        struct branch **list = parent ? &parent->children : &tree->roots;

        branch->sibling = *list;
        *list = branch;
    }
    mark_current(tree);
    return 0;
}

/* ---- the message that differs ----------------------------------------- */

static bool has_messages(const struct tree *tree)
{
    const struct hd_graph *graph = tree->spot.graph ? hd_app_shape(tree->spot.graph) : NULL;
    bool is_found = graph && (tree->spot.inner.len > 0 || graph->is_open);

    for (size_t i = 0; graph && i < graph->state_count; i++)
        is_found |= hd_slice_eq(graph->channels[i].name, HD_S("messages"));
    return is_found;
}

static struct hd_slice id_of(hd_json_val message)
{
    return hd_json_string(hd_json_get(message, HD_S("id")));
}

static bool is_same(hd_json_val a, hd_json_val b)
{
    return hd_slice_eq(id_of(a), id_of(b)) &&
           hd_json_equal(hd_json_get(a, HD_S("content")), hd_json_get(b, HD_S("content")));
}

static int index_messages(struct hd_map *map, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    while (!err && hd_json_next(&it))
        err = hd_map_put(map, id_of(it.val), it.val);
    return err;
}

/* The first of `now` that `before` has not; *out NULL: there is none. */
static int find_new(hd_json_val now, hd_json_val before, hd_json_val *out)
{
    struct hd_json_iter it = hd_json_iter(now), old = hd_json_iter(before);
    bool is_more;
    struct hd_map map;
    int err;

    *out = NULL;
    /* Nearly always one list begins with the other. */
    do {
        is_more = hd_json_next(&it);
    } while (is_more && hd_json_next(&old) && is_same(it.val, old.val));
    if (!is_more)
        return 0;
    hd_map_init(&map, SIZE_MAX / 2);
    err = index_messages(&map, before);
    do {
        hd_json_val known = hd_map_get(&map, id_of(it.val));

        if (!known || !is_same(it.val, known))
            *out = it.val;
    } while (!err && !*out && hd_json_next(&it));
    hd_map_fini(&map);
    return err;
}

static int find_message(struct tree *tree, struct branch *branch, hd_json_val before)
{
    struct hd_json json;
    hd_json_val found = NULL;
    struct hd_buf buf;
    int err = hd_point_values(tree->call, &tree->spot, branch->last->id, &json);

    hd_buf_init(&buf, MAX_STATE);
    if (!err)
        err = find_new(hd_json_get(hd_json_root(&json), HD_S("messages")), before, &found);
    if (!err && found)
        err = hd_json_write_val(&buf, found);
    if (!err && found)
        err = hd_arena_copy(&tree->points.arena, hd_buf_slice(&buf), &branch->message);
    hd_buf_fini(&buf);
    hd_json_fini(&json);
    return err;
}

/* All that follow one fork point are compared with it, which is read once. */
static int find_of_children(struct tree *tree, const struct branch *parent)
{
    struct branch *child = parent ? parent->children : tree->roots;
    struct hd_json json = {NULL};
    int err = 0;

    if (parent && child)
        err = hd_point_values(tree->call, &tree->spot, parent->last->id, &json);
    for (; child && !err; child = child->sibling)
        err = find_message(tree, child, hd_json_get(hd_json_root(&json), HD_S("messages")));
    hd_json_fini(&json);
    return err;
}

static int find_messages(struct tree *tree)
{
    int err = find_of_children(tree, NULL);

    for (size_t i = 0; i < tree->count && !err; i++)
        err = find_of_children(tree, &tree->branches[i]);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static void put_text(struct hd_jw *jw, const char *name, struct hd_slice text)
{
    hd_jw_key(jw, hd_slice_cstr(name));
    if (text.len > 0)
        hd_jw_string(jw, text);
    else
        hd_jw_null(jw);
}

static void put_branch(struct hd_jw *jw, const struct branch *branch)
{
    const struct hd_point *fork = branch->first->parent;
    const struct branch *parent = fork ? fork->branch : NULL;

    hd_jw_object(jw);
    put_text(jw, "branch_id", branch->first->id);
    put_text(jw, "parent_branch_id", parent ? parent->first->id : hd_slice(NULL, 0));
    put_text(jw, "fork_checkpoint_id", fork ? fork->id : hd_slice(NULL, 0));
    put_text(jw, "head_checkpoint_id", branch->last->id);
    hd_jw_key(jw, HD_S("leaf"));
    hd_jw_bool(jw, branch->last->children == 0);
    hd_jw_key(jw, HD_S("current"));
    hd_jw_bool(jw, branch->is_current);
    hd_jw_key(jw, HD_S("checkpoints"));
    hd_jw_int(jw, (int64_t)branch->count);
    put_text(jw, "source", branch->first->source);
    put_text(jw, "run_id", branch->first->run_id);
    put_text(jw, "created_at", branch->first->created_at);
    put_text(jw, "updated_at", branch->last->created_at);
    hd_jw_key(jw, HD_S("message"));
    hd_jw_json(jw, branch->message, "null");
    hd_jw_object_end(jw);
}

static void put_ns(struct tree *tree)
{
    struct hd_jw *jw = &tree->call->jw;
    char *ns;

    hd_jw_key(jw, HD_S("checkpoint_ns"));
    if (tree->spot.root.len == 0) {
        hd_jw_null(jw);
        return;
    }
    ns = hd_ns_join(hd_spot_shown_root(tree->call, &tree->spot), tree->spot.inner, NULL);
    if (ns)
        hd_jw_string(jw, hd_slice_cstr(ns));
    else
        jw->err = HD_ENOMEM;
    hd_free(ns);
}

static void put_tree(struct tree *tree)
{
    struct hd_jw *jw = &tree->call->jw;

    hd_jw_object(jw);
    put_text(jw, "thread_id", tree->spot.thread.id);
    put_text(jw, "assistant_id", tree->spot.assistant_id);
    put_ns(tree);
    put_text(jw, "head", tree->head ? tree->head->id : hd_slice(NULL, 0));
    hd_jw_key(jw, HD_S("branches"));
    hd_jw_array(jw);
    for (size_t i = 0; i < tree->count; i++)
        put_branch(jw, &tree->branches[i]);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

/* Reads the checkpoints of tree->spot. */
static int read_points(struct tree *tree)
{
    struct hd_slice ns;
    int err;

    if (tree->spot.root.len == 0)
        return 0;
    err = hd_spot_ns(tree->call, &tree->spot, &ns);
    if (!err)
        err = hd_points_read(tree->call, tree->spot.thread.id, &ns, &tree->points);
    if (!err)
        tree->head = hd_points_find(&tree->points, ns, tree->spot.chosen);
    return err;
}

static int show(struct tree *tree)
{
    int err = 0;

    if (tree->points.count > 0)
        err = grow(tree);
    if (!err && has_messages(tree))
        err = find_messages(tree);
    if (!err)
        put_tree(tree);
    return err;
}

static int get_branches(struct hd_call *call)
{
    struct tree tree = {.call = call};
    int err = hd_spot_of_query(call, &tree.spot);

    if (!err)
        err = read_points(&tree);
    if (!err)
        err = show(&tree);
    hd_points_fini(&tree.points);
    return err;
}

/* ---- the current head ------------------------------------------------- */

struct move {
    const struct hd_spot *spot;
    struct hd_slice id;     /* the new head */
    struct hd_slice chosen; /* the same; empty when it is the newest checkpoint */
    struct hd_slice interrupts;
    bool is_busy;
};

/* What the tasks of a state ask. Answers were given elsewhere: a run from here asks again. */
static void put_interrupts(struct hd_jw *jw, hd_json_val tasks)
{
    struct hd_json_iter it = hd_json_iter(tasks);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        hd_json_val asked = hd_json_get(it.val, HD_S("interrupts"));

        if (hd_json_size(asked) == 0)
            continue;
        hd_jw_key(jw, hd_json_string(hd_json_get(it.val, HD_S("id"))));
        hd_jw_val(jw, asked);
    }
    hd_jw_object_end(jw);
}

static int write_interrupts(struct hd_call *call, struct hd_slice state, struct hd_slice *out)
{
    struct hd_json json = {NULL};
    struct hd_buf buf;
    struct hd_jw jw;
    int err = hd_json_parse(&json, state, &call->fault);

    hd_buf_init(&buf, MAX_STATE);
    hd_jw_init(&jw, &buf);
    put_interrupts(&jw, hd_json_get(hd_json_root(&json), HD_S("tasks")));
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err && buf.len > 2)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    hd_json_fini(&json);
    return err;
}

static int find_interrupts(struct hd_call *call, struct move *move)
{
    struct hd_address at = hd_spot_address(call, move->spot, move->chosen);
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    struct hd_buf buf;
    int err = hd_call_failure(call, hd_state_get(&at, false, &state, &failure), &failure);

    hd_buf_init(&buf, MAX_STATE);
    if (!err)
        err = hd_state_render(&buf, state, move->spot->thread.id, hd_slice(NULL, 0));
    if (!err)
        err = write_interrupts(call, hd_buf_slice(&buf), &move->interrupts);
    hd_buf_fini(&buf);
    hd_val_unref(state);
    return err;
}

static int apply_move(struct hd_call *call, struct hd_thread_rec *thread, void *ctx)
{
    struct move *move = ctx;
    const struct hd_spot *spot = move->spot;
    int err;

    move->is_busy = thread->status == HD_THREAD_BUSY;
    if (move->is_busy)
        return HD_EBUSY;
    thread->updated_at = hd_clock_now_us();
    hd_ttl_touch(thread, thread->updated_at);
    err = hd_heads_set(call->arena, &thread->heads, spot->root, move->chosen);
    if (err || !hd_slice_eq(thread->head.ns, spot->root))
        return err;
    thread->state_updated_at = thread->updated_at;
    thread->head.checkpoint_id = move->id;
    thread->status = move->interrupts.len > 0 ? HD_THREAD_INTERRUPTED : HD_THREAD_IDLE;
    thread->interrupts = move->interrupts;
    thread->error = hd_slice(NULL, 0);
    return 0;
}

/* Makes the checkpoint that the request names the current head. */
static int move_head(struct tree *tree)
{
    struct hd_call *call = tree->call;
    struct move move = {.spot = &tree->spot};
    struct hd_point *point = NULL;
    struct hd_slice ns;
    int err = hd_spot_ns(call, &tree->spot, &ns);

    if (!err && tree->points.count > 0)
        point = hd_points_find(&tree->points, ns, tree->spot.checkpoint_id);
    if (!err && !point)
        err = hd_fault_set(&call->fault, HD_ENOTFOUND, "Checkpoint not found");
    if (!err)
        err = hd_arena_copy(call->arena, point->id, &move.id);
    if (!err && point != &tree->points.list[tree->points.count - 1])
        move.chosen = move.id;
    if (!err && tree->spot.graph)
        err = find_interrupts(call, &move);
    if (err)
        return err;
    tree->head = point;
    err = hd_call_thread_change(call, &tree->spot.thread, apply_move, &move);
    return move.is_busy ? HD_EBUSY : err;
}

static int patch_branches(struct hd_call *call)
{
    struct tree tree = {.call = call};
    int err = hd_spot_of_body(call, &tree.spot);

    if (!err && tree.spot.checkpoint_id.len == 0)
        err = hd_fault_set(&call->fault, HD_EINVAL, "checkpoint_id: expected a string");
    if (!err && tree.spot.inner.len > 0)
        err = hd_fault_set(&call->fault, HD_EINVAL,
                           "checkpoint_ns: a subgraph has no head of its own");
    if (!err && tree.spot.thread.status == HD_THREAD_BUSY)
        return hd_call_refuse(call, 409, "Thread is busy");
    if (!err)
        err = read_points(&tree);
    if (!err)
        err = move_head(&tree);
    if (!err)
        err = show(&tree);
    hd_points_fini(&tree.points);
    return err == HD_EBUSY && call->fault.code == 0 ? hd_call_refuse(call, 409, "Thread is busy")
                                                    : err;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/branches",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_branches,
     .tag = "Threads",
     .summary = "The tree of a namespace's checkpoints",
     .query = "checkpoint_ns assistant_id",
     .answer = "Branches"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/branches",
     .access = HD_ACCESS_EDITOR,
     .on = HD_ON_THREADS_UPDATE,
     .work = patch_branches,
     .tag = "Threads",
     .summary = "Choose the checkpoint that the next run goes on from",
     .body = "BranchesPatch",
     .answer = "Branches"},
};

const struct hd_routes hd_routes_branches = {routes, HD_COUNT(routes)};
