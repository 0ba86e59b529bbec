#include "api/state/branch_tree.h"

#include <heddle.h>

#include "api/state/branch_names.h"
#include "api/state/message_path.h"
#include "base/utf8.h"

#define MAX_STATE ((size_t)1 << 30)
#define MAX_ANSWER 200

/* ---- the tree --------------------------------------------------------- */

static bool is_first(const struct hd_checkpoint_node *point)
{
    return !point->parent || point->parent->children > 1;
}

static void tree_follow(struct hd_tree_branch *branch, struct hd_checkpoint_node *first)
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

static void mark_current(struct hd_branch_tree *tree)
{
    struct hd_checkpoint_node *point = tree->head;

    /* Bounded: a damaged tree may have cycles. */
    for (size_t i = 0; point && i < tree->points.count; i++) {
        struct hd_tree_branch *branch = point->branch;

        if (branch)
            branch->is_current = true;
        point = point->parent;
    }
}

static int tree_split(struct hd_branch_tree *tree)
{
    size_t count = 0;

    for (size_t i = 0; i < tree->points.count; i++)
        count += is_first(&tree->points.list[i]);
    tree->branches = hd_arena_calloc(&tree->points.arena, count + 1, sizeof(*tree->branches));
    if (!tree->branches)
        return HD_ENOMEM;
    for (size_t i = 0; i < tree->points.count; i++) {
        if (is_first(&tree->points.list[i]))
            tree_follow(&tree->branches[tree->count++], &tree->points.list[i]);
    }
    return 0;
}

int hd_branch_tree_grow(struct hd_branch_tree *tree)
{
    int err = tree->points.count > 0 ? tree_split(tree) : 0;

    if (err || tree->points.count == 0)
        return err;
    for (size_t i = tree->count; i > 0; i--) {
        struct hd_tree_branch *branch = &tree->branches[i - 1];
        struct hd_checkpoint_node *fork = branch->first->parent;
        struct hd_tree_branch *parent = fork ? fork->branch : NULL;
        struct hd_tree_branch **list = parent ? &parent->children : &tree->roots;

        branch->sibling = *list;
        *list = branch;
    }
    mark_current(tree);
    return hd_branch_names_read(tree);
}

struct hd_tree_branch *hd_branch_find(const struct hd_branch_tree *tree, struct hd_slice id)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (hd_slice_eq(tree->branches[i].first->id, id))
            return &tree->branches[i];
    }
    return NULL;
}

/* ---- the differing message -------------------------------------------- */

static bool has_messages(const struct hd_branch_tree *tree)
{
    const struct hd_graph *graph = tree->target.graph ? hd_app_shape(tree->target.graph) : NULL;
    bool is_found = graph && (tree->target.inner.len > 0 || graph->is_open);

    for (size_t i = 0; graph && i < graph->state_count; i++)
        is_found |= hd_slice_eq(graph->channels[i].name, HD_S("messages"));
    return is_found;
}

static bool tree_is_same(hd_json_val a, hd_json_val b)
{
    return hd_slice_eq(hd_message_id(a), hd_message_id(b)) &&
           hd_json_equal(hd_json_get(a, HD_S("content")), hd_json_get(b, HD_S("content")));
}

/* The first of `now` that is not in `before`; *out NULL: none. */
static int find_new(hd_json_val now, hd_json_val before, hd_json_val *out)
{
    struct hd_json_iter it = hd_json_iter(now), old = hd_json_iter(before);
    bool is_more;
    struct hd_map map;
    int err;

    *out = NULL;
    /* Usually one list is a prefix of the other. */
    do {
        is_more = hd_json_next(&it);
    } while (is_more && hd_json_next(&old) && tree_is_same(it.val, old.val));
    if (!is_more)
        return 0;
    hd_map_init(&map, SIZE_MAX / 2);
    err = hd_message_path_index(&map, before);
    do {
        hd_json_val known = hd_map_get(&map, hd_message_id(it.val));

        if (!known || !tree_is_same(it.val, known))
            *out = it.val;
    } while (!err && !*out && hd_json_next(&it));
    hd_map_fini(&map);
    return err;
}

static bool tree_is_of(hd_json_val message, struct hd_slice type)
{
    return hd_slice_eq(hd_json_string(hd_json_get(message, HD_S("type"))), type);
}

/* The text of a content: the string, or the first text block. */
static struct hd_slice tree_text_of(hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);
    struct hd_slice text = hd_json_string(content);

    while (text.len == 0 && hd_json_next(&it)) {
        if (tree_is_of(it.val, HD_S("text")))
            text = hd_json_string(hd_json_get(it.val, HD_S("text")));
    }
    return text;
}

/* The first words of the reply to a user message, before the next one; empty: none. */
static struct hd_slice find_answer(hd_json_val list, hd_json_val question)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_slice text = hd_slice("", 0);
    bool is_after = false, is_over = !tree_is_of(question, HD_S("human"));

    while (text.len == 0 && !is_over && hd_json_next(&it)) {
        is_over = is_after && tree_is_of(it.val, HD_S("human"));
        if (is_after && tree_is_of(it.val, HD_S("ai")))
            text = tree_text_of(hd_json_get(it.val, HD_S("content")));
        is_after |= it.val == question;
    }
    return text.len > MAX_ANSWER ? hd_slice(text.ptr, hd_utf8_cut(text.ptr, MAX_ANSWER)) : text;
}

static int find_message(struct hd_branch_tree *tree, struct hd_tree_branch *branch,
                        hd_json_val before)
{
    struct hd_json json;
    hd_json_val list, found = NULL;
    struct hd_buf buf;
    int err = hd_checkpoint_index_messages(tree->call, &tree->target, branch->last->id, &json);

    hd_buf_init(&buf, MAX_STATE);
    list = err ? NULL : hd_json_get(hd_json_root(&json), HD_S("messages"));
    if (!err)
        err = find_new(list, before, &found);
    if (!err && found)
        err = hd_json_write_val(&buf, found);
    if (!err && found)
        err = hd_arena_copy(&tree->points.arena, hd_buf_slice(&buf), &branch->message);
    if (!err && found)
        err = hd_arena_copy(&tree->points.arena, find_answer(list, found), &branch->answer);
    hd_buf_fini(&buf);
    hd_json_fini(&json);
    return err;
}

/* All children of a fork point are compared with it; it is read once. */
static int find_of_children(struct hd_branch_tree *tree, const struct hd_tree_branch *parent)
{
    struct hd_tree_branch *child = parent ? parent->children : tree->roots;
    struct hd_json json = {NULL};
    int err = 0;

    if (parent && child)
        err = hd_checkpoint_index_messages(tree->call, &tree->target, parent->last->id, &json);
    for (; child && !err; child = child->sibling)
        err = find_message(tree, child, hd_json_get(hd_json_root(&json), HD_S("messages")));
    hd_json_fini(&json);
    return err;
}

static int find_messages(struct hd_branch_tree *tree)
{
    int err = find_of_children(tree, NULL);

    for (size_t i = 0; i < tree->count && !err; i++)
        err = find_of_children(tree, &tree->branches[i]);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static void put_branch(struct hd_jw *jw, const struct hd_tree_branch *branch)
{
    const struct hd_checkpoint_node *fork = branch->first->parent;
    const struct hd_tree_branch *parent = fork ? fork->branch : NULL;

    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "branch_id", branch->first->id);
    hd_jw_put_string_or_null(jw, "name", branch->name);
    hd_jw_put_string_or_null(jw, "parent_branch_id",
                             parent ? parent->first->id : hd_slice(NULL, 0));
    hd_jw_put_string_or_null(jw, "fork_checkpoint_id", fork ? fork->id : hd_slice(NULL, 0));
    hd_jw_put_string_or_null(jw, "head_checkpoint_id", branch->last->id);
    hd_jw_put_bool(jw, "leaf", branch->last->children == 0);
    hd_jw_put_bool(jw, "current", branch->is_current);
    hd_jw_put_int(jw, "checkpoints", (int64_t)branch->count);
    hd_jw_put_string_or_null(jw, "source", branch->first->source);
    hd_jw_put_string_or_null(jw, "run_id", branch->first->run_id);
    hd_jw_put_string_or_null(jw, "created_at", branch->first->created_at);
    hd_jw_put_string_or_null(jw, "updated_at", branch->last->created_at);
    hd_jw_put_raw_or(jw, "message", branch->message, "null");
    hd_jw_put_string_or_null(jw, "answer", branch->answer);
    hd_jw_object_end(jw);
}

static void put_tree(struct hd_branch_tree *tree)
{
    struct hd_jw *jw = &tree->call->jw;

    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "thread_id", tree->target.thread.id);
    hd_jw_put_string_or_null(jw, "assistant_id", tree->target.assistant_id);
    hd_checkpoint_target_put_ns(tree->call, &tree->target);
    hd_jw_put_string_or_null(jw, "head", tree->head ? tree->head->id : hd_slice(NULL, 0));
    hd_jw_put_array(jw, "branches");
    for (size_t i = 0; i < tree->count; i++)
        put_branch(jw, &tree->branches[i]);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

int hd_branch_tree_show(struct hd_branch_tree *tree)
{
    int err = hd_branch_tree_grow(tree);

    if (!err && tree->count > 0 && has_messages(tree))
        err = find_messages(tree);
    if (!err)
        put_tree(tree);
    return err;
}

int hd_branch_show(struct hd_branch_tree *tree, struct hd_tree_branch *branch)
{
    const struct hd_checkpoint_node *fork = branch->first->parent;
    struct hd_json json = {NULL};
    int err = 0;

    if (has_messages(tree)) {
        if (fork)
            err = hd_checkpoint_index_messages(tree->call, &tree->target, fork->id, &json);
        if (!err)
            err = find_message(tree, branch, hd_json_get(hd_json_root(&json), HD_S("messages")));
        hd_json_fini(&json);
    }
    if (!err)
        put_branch(&tree->call->jw, branch);
    return err;
}

/* ---- reading ---------------------------------------------------------- */

int hd_branch_tree_read(struct hd_branch_tree *tree)
{
    struct hd_slice ns;
    int err;

    if (!tree->target.has_root)
        return 0;
    err = hd_checkpoint_target_ns(tree->call, &tree->target, &ns);
    if (!err)
        err = hd_checkpoint_index_read(tree->call, tree->target.thread.id, &ns, &tree->points);
    if (!err)
        tree->head = hd_checkpoint_index_find(&tree->points, ns, tree->target.chosen);
    return err;
}

void hd_branch_tree_fini(struct hd_branch_tree *tree)
{
    hd_checkpoint_index_fini(&tree->points);
}
