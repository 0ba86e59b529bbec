/*
 * The branches of a namespace (branch_tree.h): their names, their removal, and the current head,
 * where the next run continues: the newest checkpoint unless a client chose another.
 */
#include "api/state/branches.h"

#include <heddle.h>

#include "api/state/branch_names.h"
#include "api/state/branch_tree.h"
#include "api/state/checkpoint_target.h"
#include "base/clock.h"
#include "graph/state/state.h"
#include "records/thread_heads.h"
#include "run/run_commit.h"
#include "run/thread_prune.h"
#include "search/thread_texts.h"
#include "store/rows.h"

#define MAX_STATE ((size_t)1 << 30)

static struct hd_step get_branches(struct hd_call *call)
{
    struct hd_branch_tree tree = {.call = call};
    int err = hd_checkpoint_target_of_query(call, &tree.target);

    if (!err)
        err = hd_branch_tree_read(&tree);
    if (!err)
        err = hd_branch_tree_show(&tree);
    hd_branch_tree_fini(&tree);
    return hd_step_done(err);
}

/* ---- the current head ------------------------------------------------- */

struct move {
    const struct hd_checkpoint_target *target;
    struct hd_slice id;     /* the new head */
    struct hd_slice chosen; /* the same; empty: the newest checkpoint */
    struct hd_standing standing;
    bool is_busy;
};

static void touch(struct hd_thread_rec *thread)
{
    thread->updated_at = hd_clock_now_us();
    hd_thread_touch(thread, thread->updated_at);
}

/* `thread` must have been touched. */
static int set_head(struct hd_call *call, struct hd_thread_rec *thread, struct hd_lines *lines,
                    const struct move *move)
{
    const struct hd_checkpoint_target *target = move->target;
    int err = hd_thread_heads_set(call->arena, &thread->heads, target->root, move->chosen);

    return err ? err
               : hd_checkpoint_target_settle(call, target, move->id, &move->standing, thread,
                                             lines);
}

static int apply_move(struct hd_call *call, struct hd_thread_rec *thread, struct hd_lines *lines,
                      void *ctx)
{
    struct move *move = ctx;
    int err = hd_checkpoint_target_is_busy(call, move->target, &move->is_busy);

    if (err || move->is_busy)
        return err ? err : HD_EBUSY;
    touch(thread);
    return set_head(call, thread, lines, move);
}

/* Makes the checkpoint that the request names the current head. */
static int move_head(struct hd_branch_tree *tree)
{
    struct hd_call *call = tree->call;
    struct move move = {.target = &tree->target};
    struct hd_checkpoint_node *point = NULL;
    struct hd_slice ns;
    int err = hd_checkpoint_target_ns(call, &tree->target, &ns);

    if (!err && tree->points.count > 0)
        point = hd_checkpoint_index_find(&tree->points, ns, tree->target.checkpoint_id);
    if (!err && !point)
        err = hd_error_set(&call->fault, HD_ENOTFOUND, "Checkpoint not found");
    if (!err)
        err = hd_arena_copy(call->arena, point->id, &move.id);
    if (!err && point != &tree->points.list[tree->points.count - 1])
        move.chosen = move.id;
    /* The interrupts were answered on another branch: a run from here interrupts again. */
    if (!err)
        err = hd_checkpoint_target_standing(call, &tree->target, move.id, &move.standing);
    if (err)
        return err;
    tree->head = point;
    err = hd_call_lines_change(call, &tree->target.thread, apply_move, &move);
    return move.is_busy ? HD_EBUSY : err;
}

int hd_head_renew(struct hd_call *call, struct hd_checkpoint_target *target)
{
    struct move move = {.target = target};
    int err = hd_checkpoint_target_standing(call, target, move.id, &move.standing);

    if (!err)
        err = hd_call_lines_change(call, &target->thread, apply_move, &move);
    return move.is_busy ? 0 : err;
}

static struct hd_step patch_branches(struct hd_call *call)
{
    struct hd_branch_tree tree = {.call = call};
    bool is_busy = false;
    int err = hd_checkpoint_target_of_body(call, &tree.target);

    if (!err && tree.target.checkpoint_id.len == 0)
        err = hd_error_set(&call->fault, HD_EINVAL, "checkpoint_id: expected a string");
    if (!err && tree.target.inner.len > 0)
        err = hd_error_set(&call->fault, HD_EINVAL,
                           "checkpoint_ns: a subgraph has no head of its own");
    if (!err)
        err = hd_checkpoint_target_is_busy(call, &tree.target, &is_busy);
    if (!err && is_busy)
        return hd_call_refuse(call, 409, "Thread is busy");
    if (!err)
        err = hd_branch_tree_read(&tree);
    if (!err)
        err = move_head(&tree);
    if (!err)
        err = hd_branch_tree_show(&tree);
    hd_branch_tree_fini(&tree);
    if (err == HD_EBUSY && call->fault.code == 0)
        return hd_call_refuse(call, 409, "Thread is busy");
    return hd_step_done(err);
}

/* ---- one branch ------------------------------------------------------- */

/* The branch of the path, in the namespace of the query. */
static int find_branch(struct hd_branch_tree *tree, struct hd_tree_branch **out)
{
    struct hd_call *call = tree->call;
    int err = hd_checkpoint_target_of_query(call, &tree->target);

    if (!err)
        err = hd_branch_tree_read(tree);
    if (!err)
        err = hd_branch_tree_grow(tree);
    if (err)
        return err;
    *out = hd_branch_find(tree, call->params[1]);
    return *out ? 0 : hd_error_set(&call->fault, HD_ENOTFOUND, "Branch not found");
}

struct naming {
    const struct hd_branch_tree *tree;
    const struct hd_tree_branch *branch;
    struct hd_slice name;
};

static int apply_name(struct hd_call *call, struct hd_thread_rec *thread, void *ctx)
{
    const struct naming *naming = ctx;

    (void)call;
    touch(thread);
    return hd_branch_names_change(naming->tree, naming->branch, naming->name, &thread->metadata);
}

static struct hd_step name_branch(struct hd_call *call)
{
    struct hd_branch_tree tree = {.call = call};
    struct naming naming = {.tree = &tree};
    struct hd_tree_branch *branch = NULL;
    int err = hd_branch_name_of_body(call, &naming.name);

    if (!err)
        err = find_branch(&tree, &branch);
    naming.branch = branch;
    if (!err)
        err = hd_call_thread_change(call, &tree.target.thread, apply_name, &naming);
    if (!err) {
        branch->name = naming.name;
        err = hd_branch_show(&tree, branch);
    }
    hd_branch_tree_fini(&tree);
    return hd_step_done(err);
}

/* ---- removing a branch ------------------------------------------------ */

/* Marks the branch and everything that forks from it. */
static int mark_gone(struct hd_branch_tree *tree, struct hd_tree_branch *branch)
{
    struct hd_tree_branch **stack =
        hd_arena_calloc(&tree->points.arena, tree->count, sizeof(struct hd_tree_branch *));
    size_t depth = 0;

    if (!stack)
        return HD_ENOMEM;
    branch->is_gone = true;
    stack[depth++] = branch;
    while (depth > 0) {
        struct hd_tree_branch *child = stack[--depth]->children;

        for (; child; child = child->sibling) {
            if (child->is_gone) /* a damaged tree may have cycles */
                continue;
            child->is_gone = true;
            stack[depth++] = child;
        }
    }
    return 0;
}

static bool is_gone(const struct hd_checkpoint_node *point)
{
    const struct hd_tree_branch *branch = point ? point->branch : NULL;

    return branch && branch->is_gone;
}

/* The newest remaining checkpoint, which is a leaf; NULL: none. */
static struct hd_checkpoint_node *find_newest(const struct hd_branch_tree *tree)
{
    for (size_t i = tree->points.count; i > 0; i--) {
        if (!is_gone(&tree->points.list[i - 1]))
            return &tree->points.list[i - 1];
    }
    return NULL;
}

/* The new head when the current one is removed. */
static int leave_head(struct hd_branch_tree *tree, const struct hd_checkpoint_node *newest,
                      struct hd_thread_rec *thread, struct hd_lines *lines)
{
    struct hd_call *call = tree->call;
    struct move move = {.target = &tree->target};
    int err;

    if (!is_gone(tree->head))
        return 0;
    err = hd_arena_copy(call->arena, newest->id, &move.id);
    /* The interrupts were answered on another branch: a run from here interrupts again. */
    if (!err)
        err = hd_checkpoint_target_standing(call, &tree->target, move.id, &move.standing);
    if (!err)
        err = hd_lines_read(call->app->store, thread, call->arena, lines, &call->fault);
    return err ? err : set_head(call, thread, lines, &move);
}

static struct hd_step branch_cut(struct hd_branch_tree *tree, struct hd_tree_branch *branch)
{
    struct hd_thread_rec thread = tree->target.thread;
    struct hd_lines lines = {NULL, 0, 0};
    struct hd_call *call = tree->call;
    struct hd_checkpoint_node *newest;
    int err = mark_gone(tree, branch);

    if (err)
        return hd_step_fail(err);
    newest = find_newest(tree);
    if (!newest)
        return hd_call_refuse(call, 409,
                              "The branch is the whole conversation: delete the thread instead");
    touch(&thread);
    err = leave_head(tree, newest, &thread, &lines);
    if (!err)
        err = hd_branch_names_change(tree, NULL, hd_slice(NULL, 0), &thread.metadata);
    if (!err)
        err = hd_thread_prune_cut(call->app->store, &thread, &lines, branch->first->ns,
                                  branch->first->id, &call->fault);
    if (!err)
        hd_thread_indexer_note(call->app->texts, thread.principal, thread.id);
    call->status = err ? call->status : 204;
    return hd_step_done(err);
}

struct branch_removal {
    struct hd_call *call;
    struct hd_step step; /* the result */
};

static int cut_once(void *arg, struct heddle_error *fault)
{
    struct branch_removal *removal = arg;
    struct hd_call *call = removal->call;
    struct hd_branch_tree tree = {.call = call};
    struct hd_tree_branch *branch = NULL;
    bool is_busy = false;
    int err = find_branch(&tree, &branch);

    if (!err)
        err = hd_checkpoint_target_is_busy(call, &tree.target, &is_busy);
    if (!err && tree.target.inner.len > 0)
        err = hd_error_set(
            fault, HD_EINVAL,
            "checkpoint_ns: branches of a subgraph are deleted with those of its parent graph");
    if (err)
        removal->step = hd_step_fail(err);
    else if (is_busy)
        removal->step = hd_call_refuse(call, 409, "Thread is busy");
    else
        removal->step = branch_cut(&tree, branch);
    hd_branch_tree_fini(&tree);
    return removal->step.err;
}

/* A run that starts concurrently changes the record; the retry finds the thread busy. */
static struct hd_step delete_branch(struct hd_call *call)
{
    struct branch_removal removal = {.call = call};
    int err = hd_rows_change(call->app->store, cut_once, &removal, &call->fault);

    return err ? hd_step_fail(err) : removal.step;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/branches",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_branches,
     .tag = "Threads",
     .summary = "Get the tree of a namespace's checkpoints",
     .query = "checkpoint_ns assistant_id",
     .answer = "Branches"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/branches",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = patch_branches,
     .tag = "Threads",
     .summary = "Choose the checkpoint that the next run continues from",
     .body = "BranchesPatch",
     .answer = "Branches"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/branches/{branch_id}",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = name_branch,
     .tag = "Threads",
     .summary = "Name a branch, or remove its name",
     .query = "checkpoint_ns assistant_id",
     .body = "BranchPatch",
     .answer = "Branch"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/branches/{branch_id}",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .frees = true,
     .work = delete_branch,
     .tag = "Threads",
     .summary = "Delete a branch and the branches that start in it",
     .query = "checkpoint_ns assistant_id",
     .status = 204},
};

const struct hd_routes hd_routes_branches = {routes, HD_COUNT(routes)};
