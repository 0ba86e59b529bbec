/*
 * The trees of a thread, one for each namespace, with marks on the checkpoints that stay.
 *
 * HEDDLE_KEEP_BRANCHES keeps the heads (checkpoints without children, and the named ones), the last
 * few of each branch that ends in one, and forks. Checkpoints of a subgraph, in a namespace that
 * ends in the id of a task, stay or go with the checkpoint of the enclosing graph that the task
 * belongs to.
 *
 * It also keeps the checkpoints that those need, transitively:
 *   delta channels  are rebuilt from the ancestors back to one that has a value
 *   order           a checkpoint whose id is less than an ancestor's needs that one (order.h)
 *   pending sends   of old checkpoints are in the writes of the parent, so it must stay; and if
 *                   it has none, no other checkpoint that has some may become the parent
 *
 * HEDDLE_KEEP_LATEST keeps the newest of each namespace, the named ones, and the ancestors that
 * their delta channels need.
 */
#include "store/prune_tree.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/vec.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/order.h"
#include "store/scan.h"

#define SENDS_BELOW_VERSION 4 /* see read.c */

void hd_tree_init(struct hd_tree *tree)
{
    memset(tree, 0, sizeof(*tree));
    hd_arena_init(&tree->arena, SIZE_MAX / 2);
    hd_map_init(&tree->deltas, SIZE_MAX / 2);
}

void hd_tree_fini(struct hd_tree *tree)
{
    hd_map_fini(&tree->deltas);
    hd_arena_fini(&tree->arena);
    hd_free(tree->nodes);
    hd_free(tree->spaces);
    memset(tree, 0, sizeof(*tree));
}

size_t hd_tree_find(const struct hd_tree *tree, const struct hd_tree_space *space,
                    struct hd_slice id)
{
    size_t low = space->first, high = space->first + space->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = hd_slice_cmp(tree->nodes[mid].id, id);

        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return HD_NO_NODE;
}

const struct hd_tree_space *hd_tree_space(const struct hd_tree *tree, struct hd_slice ns)
{
    size_t low = 0, high = tree->space_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = hd_slice_cmp(tree->spaces[mid].ns, ns);

        if (order == 0)
            return &tree->spaces[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- reading checkpoints ---- */

struct tree_reader {
    struct hd_tree *tree;
    struct hd_arena scratch; /* of one row */
    struct heddle_error *fault;
};

static int tree_make_room(struct hd_tree *tree)
{
    int err = hd_array_grow(tree->nodes, tree->count, tree->cap);

    return err ? err : hd_array_grow(tree->spaces, tree->space_count, tree->space_cap);
}

/* The namespace of the row, which is the last one or a new one. */
static int enter_space(struct hd_tree *tree, struct hd_slice ns)
{
    struct hd_tree_space *last = tree->space_count ? &tree->spaces[tree->space_count - 1] : NULL;
    int err;

    if (last && hd_slice_eq(last->ns, ns)) {
        last->count++;
        return 0;
    }
    last = &tree->spaces[tree->space_count];
    *last = (struct hd_tree_space){.first = tree->count, .count = 1, .level = ns.len > 0};
    for (size_t i = 0; i < ns.len; i++)
        last->level += ns.ptr[i] == '|';
    err = hd_arena_copy(&tree->arena, ns, &last->ns);
    if (!err)
        tree->space_count++;
    return err;
}

/* Assigns a number to a channel. */
static int note_delta(struct hd_tree *tree, struct hd_slice channel, struct hd_slice *out)
{
    size_t number = tree->deltas.count + 1;
    int err = hd_arena_copy(&tree->arena, channel, out);

    if (err || hd_map_get(&tree->deltas, channel))
        return err;
    return hd_map_put(&tree->deltas, channel, (void *)(uintptr_t)number);
}

/* The channels with a counter since their last value, unless they have a value here. */
static int read_open(struct hd_tree *tree, struct hd_tree_node *node, hd_json_val metadata,
                     const struct hd_checkpoint_body *body)
{
    hd_json_val counters = hd_json_get(metadata, HD_S("counters_since_delta_snapshot"));
    struct hd_json_iter it;
    struct hd_slice *open;
    int err = 0;

    if (!hd_json_is_object(counters) || hd_json_size(counters) == 0)
        return 0;
    open = hd_arena_calloc(&tree->arena, hd_json_size(counters), sizeof(*open));
    if (!open)
        return HD_ENOMEM;
    node->open = open;
    it = hd_json_iter(counters);
    while (!err && hd_json_next(&it)) {
        if (!hd_checkpoint_body_entry(body, it.key))
            err = note_delta(tree, it.key, &open[node->open_count++]);
    }
    return err;
}

/* `a:1|b:2` is inside `a:1`, and that inside "". */
static struct hd_slice outer_of(struct hd_slice ns)
{
    while (ns.len > 0 && ns.ptr[ns.len - 1] != '|')
        ns.len--;
    return hd_slice(ns.ptr, ns.len > 0 ? ns.len - 1 : 0);
}

/*
 * Without its first part, which may be a root that metadata does not contain (graph/engine/ns.h).
 */
static struct hd_slice below_root(struct hd_slice ns)
{
    const char *bar = ns.len ? memchr(ns.ptr, '|', ns.len) : NULL;
    size_t from = bar ? (size_t)(bar + 1 - ns.ptr) : ns.len;

    return hd_slice(ns.ptr ? ns.ptr + from : NULL, ns.len - from);
}

static bool belongs_to_task(struct hd_slice ns)
{
    struct hd_slice outer = outer_of(ns);

    return ns.len > 0 && memchr(ns.ptr + outer.len, ':', ns.len - outer.len) != NULL;
}

static int read_owner(struct hd_tree *tree, struct hd_tree_node *node, hd_json_val metadata)
{
    struct hd_slice ns = tree->spaces[node->space].ns, outer = outer_of(ns);
    hd_json_val parents = hd_json_get(metadata, HD_S("parents"));
    hd_json_val owner;

    if (!belongs_to_task(ns))
        return 0;
    owner = hd_json_get(parents, outer);
    if (!owner)
        owner = hd_json_get(parents, below_root(outer));
    return hd_arena_copy(&tree->arena, hd_json_string(owner), &node->owner);
}

static int read_body(struct tree_reader *r, const struct hd_cell *cells,
                     struct hd_checkpoint_body *body)
{
    struct hd_slice encoded;
    int err = hd_unpack_copy(&r->scratch, cells[HD_CHECKPOINTS_BODY].bytes, &encoded);

    return err ? err : hd_checkpoint_body_parse(encoded, &r->scratch, body);
}

static int tree_read_node(struct tree_reader *r, struct hd_tree_node *node,
                          const struct hd_cell *cells)
{
    struct hd_tree *tree = r->tree;
    struct hd_json metadata = {0};
    struct hd_checkpoint_body body;
    int err = read_body(r, cells, &body);

    if (!err)
        err = hd_arena_copy(&tree->arena, cells[HD_CHECKPOINTS_ID].bytes, &node->id);
    if (!err)
        err = hd_arena_copy(&tree->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &node->parent_id);
    if (!err)
        err = hd_json_parse(&metadata, cells[HD_CHECKPOINTS_METADATA].bytes, r->fault);
    if (err)
        return err;
    node->is_old = body.v < SENDS_BELOW_VERSION;
    node->bytes = hd_row_bytes(HD_CHECKPOINTS, cells);
    err = read_open(tree, node, hd_json_root(&metadata), &body);
    if (!err)
        err = read_owner(tree, node, hd_json_root(&metadata));
    hd_json_fini(&metadata);
    return err;
}

static int on_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tree_reader *r = arg;
    struct hd_tree *tree = r->tree;
    struct hd_tree_node node = {.parent = HD_NO_NODE};
    int err = tree_make_room(tree);

    (void)which;
    hd_arena_reset(&r->scratch);
    if (!err)
        err = enter_space(tree, cells[HD_CHECKPOINTS_NS].bytes);
    if (err)
        return err;
    node.space = tree->space_count - 1;
    err = tree_read_node(r, &node, cells);
    if (!err)
        tree->nodes[tree->count++] = node;
    return err;
}

/* ---- data that only some nodes need ---- */

static uint64_t *set_of(const struct hd_tree *tree, uint64_t *sets, size_t node)
{
    return sets + node * tree->words;
}

static void set_add(const struct hd_tree *tree, uint64_t *set, struct hd_slice channel)
{
    size_t number = (size_t)(uintptr_t)hd_map_get(&tree->deltas, channel);

    if (number > 0)
        set[(number - 1) / 64] |= UINT64_C(1) << ((number - 1) % 64);
}

static size_t node_of(const struct hd_tree *tree, struct hd_slice ns, struct hd_slice id)
{
    const struct hd_tree_space *space = hd_tree_space(tree, ns);

    return space ? hd_tree_find(tree, space, id) : HD_NO_NODE;
}

static int on_seeds(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tree_reader *r = arg;
    size_t node = node_of(r->tree, cells[HD_CHECKPOINTS_NS].bytes, cells[HD_CHECKPOINTS_ID].bytes);
    struct hd_checkpoint_body body;
    int err;

    (void)which;
    if (node == HD_NO_NODE)
        return 0; /* put meanwhile, which is detected later */
    hd_arena_reset(&r->scratch);
    err = read_body(r, cells, &body);
    for (size_t i = 0; !err && i < body.entry_count; i++)
        set_add(r->tree, set_of(r->tree, r->tree->seeds, node), body.entries[i].channel);
    return err;
}

static int tree_on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tree_reader *r = arg;
    size_t node;

    (void)which;
    if (!hd_slice_eq(cells[HD_WRITES_CHANNEL].bytes, HD_S("__pregel_tasks")))
        return 0;
    node = node_of(r->tree, cells[HD_WRITES_NS].bytes, cells[HD_WRITES_CHECKPOINT].bytes);
    if (node != HD_NO_NODE)
        r->tree->nodes[node].has_sends = true;
    return 0;
}

static int tree_scan_rows(struct hd_store *store, enum hd_table_id table, struct hd_slice thread,
                          unsigned columns, hd_row_fn fn, struct tree_reader *r)
{
    struct hd_cell key = hd_cell_bytes(thread);
    struct hd_query query = {
        .table = table, .index = HD_PRIMARY, .prefix = &key, .prefix_count = 1, .columns = columns};

    return hd_scan(store->backend, query, fn, r, r->fault);
}

static bool has_old(const struct hd_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].is_old)
            return true;
    }
    return false;
}

static int make_sets(struct hd_tree *tree)
{
    tree->words = (tree->deltas.count + 63) / 64;
    tree->seeds = hd_arena_calloc(&tree->arena, tree->count * tree->words, sizeof(*tree->seeds));
    tree->needs = hd_arena_calloc(&tree->arena, tree->count * tree->words, sizeof(*tree->needs));
    return tree->seeds && tree->needs ? 0 : HD_ENOMEM;
}

static int tree_read_all(struct hd_tree *tree, struct hd_store *store, struct hd_slice thread,
                         struct heddle_error *fault)
{
    const unsigned columns = 1u << HD_CHECKPOINTS_PARENT | 1u << HD_CHECKPOINTS_METADATA |
                             1u << HD_CHECKPOINTS_RUN | 1u << HD_CHECKPOINTS_BODY;
    struct tree_reader r = {.tree = tree, .fault = fault};
    int err;

    hd_arena_init(&r.scratch, SIZE_MAX / 2);
    err = tree_scan_rows(store, HD_CHECKPOINTS, thread, columns, on_checkpoint, &r);
    if (!err)
        err = make_sets(tree);
    if (!err && tree->words > 0)
        err =
            tree_scan_rows(store, HD_CHECKPOINTS, thread, 1u << HD_CHECKPOINTS_BODY, on_seeds, &r);
    if (!err && has_old(tree))
        err = tree_scan_rows(store, HD_WRITES, thread, 1u << HD_WRITES_CHANNEL, tree_on_write, &r);
    hd_arena_fini(&r.scratch);
    return err;
}

/* ---- parents and their order ---- */

static void tree_join(struct hd_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct hd_tree_node *node = &tree->nodes[i];

        if (node->parent_id.len > 0)
            node->parent = hd_tree_find(tree, &tree->spaces[node->space], node->parent_id);
        if (hd_slice_cmp(node->parent_id, node->id) > 0)
            tree->spaces[node->space].has_strays = true;
    }
}

/* Sets the depths of the `count` nodes of the path, the first of them below the others. */
static void settle_way(struct hd_tree *tree, const size_t *way, size_t count)
{
    size_t above = tree->nodes[way[count - 1]].parent;
    bool is_circle = above != HD_NO_NODE && tree->nodes[above].depth == HD_NO_NODE;
    size_t depth = above == HD_NO_NODE || is_circle ? 0 : tree->nodes[above].depth;

    for (size_t i = count; i > 0; i--) {
        tree->nodes[way[i - 1]].depth = ++depth;
        tree->nodes[way[i - 1]].is_in_circle = is_circle;
    }
}

static void measure(struct hd_tree *tree, size_t *way)
{
    for (size_t i = 0; i < tree->count; i++) {
        size_t count = 0, at = i;

        while (at != HD_NO_NODE && tree->nodes[at].depth == 0) {
            tree->nodes[at].depth = HD_NO_NODE; /* on the path */
            way[count++] = at;
            at = tree->nodes[at].parent;
        }
        if (count > 0)
            settle_way(tree, way, count);
    }
}

static size_t depth_of(const struct hd_tree *tree, size_t node)
{
    return tree->nodes[node].depth;
}

static size_t level_of(const struct hd_tree *tree, size_t node)
{
    return tree->spaces[tree->nodes[node].space].level;
}

/* Stable sort, greatest number first. */
static int sort_by(struct hd_tree *tree,
                   size_t (*number_of)(const struct hd_tree *tree, size_t node))
{
    size_t *sorted = hd_arena_calloc(&tree->arena, tree->count, sizeof(*sorted));
    size_t *starts, most = 0;

    for (size_t i = 0; i < tree->count; i++)
        most = number_of(tree, i) > most ? number_of(tree, i) : most;
    starts = hd_arena_calloc(&tree->arena, most + 2, sizeof(*starts));
    if (!sorted || !starts)
        return HD_ENOMEM;
    for (size_t i = 0; i < tree->count; i++)
        starts[most - number_of(tree, i) + 1]++;
    for (size_t n = 1; n <= most; n++)
        starts[n] += starts[n - 1];
    for (size_t i = 0; i < tree->count; i++)
        sorted[starts[most - number_of(tree, tree->order[i])]++] = tree->order[i];
    tree->order = sorted;
    return 0;
}

/*
 * The deepest first, and before all others those of inner namespaces, because they are removed with
 * their owner: if the owner were removed in an earlier batch, a later prune could not find them.
 */
static int put_in_order(struct hd_tree *tree)
{
    int err;

    tree->order = hd_arena_calloc(&tree->arena, tree->count, sizeof(*tree->order));
    if (!tree->order)
        return HD_ENOMEM;
    tree_join(tree);
    measure(tree, tree->order);
    for (size_t i = 0; i < tree->count; i++)
        tree->order[i] = i;
    err = sort_by(tree, depth_of);
    return err ? err : sort_by(tree, level_of);
}

/* ---- checkpoints that stay ---- */

/*
 * Visits a node that stays: the channels it rebuilds are needed from its parent, unless that has a
 * value, and so on. False: it needs nothing, or the parent stays and needs as much already.
 */
static bool pass_needs(struct hd_tree *tree, size_t at, size_t parent)
{
    uint64_t any = 0, more = 0;

    for (size_t w = 0; w < tree->words; w++) {
        uint64_t need = set_of(tree, tree->needs, at)[w];
        uint64_t *theirs = &set_of(tree, tree->needs, parent)[w];
        uint64_t sum = *theirs | (need & ~set_of(tree, tree->seeds, parent)[w]);

        any |= need;
        more |= sum ^ *theirs;
        *theirs = sum;
    }
    return any != 0 && (more != 0 || !tree->nodes[parent].is_kept);
}

static void add_open(struct hd_tree *tree, size_t at)
{
    const struct hd_tree_node *node = &tree->nodes[at];

    for (size_t i = 0; i < node->open_count; i++)
        set_add(tree, set_of(tree, tree->needs, at), node->open[i]);
}

/* Keeps the node and the ancestors that it needs. */
static void keep_alone(struct hd_tree *tree, size_t at)
{
    tree->nodes[at].is_kept = true;
    add_open(tree, at);
    for (size_t parent; (parent = tree->nodes[at].parent) != HD_NO_NODE; at = parent) {
        if (!pass_needs(tree, at, parent))
            break;
        tree->nodes[parent].is_kept = true;
    }
}

/* The latest node of a namespace. */
static int find_latest(struct hd_tree *tree, const struct hd_tree_space *space, size_t *out)
{
    struct hd_order order = {.nodes = NULL};
    int err = 0;

    *out = space->first + space->count - 1;
    if (!space->has_strays)
        return 0;
    for (size_t i = space->first; !err && i < space->first + space->count; i++)
        err = hd_order_add(&order, tree->nodes[i].id, tree->nodes[i].parent_id, false);
    if (!err)
        err = hd_order_sort(&order);
    if (!err)
        *out = hd_tree_find(tree, space, order.nodes[order.count - 1].id);
    hd_order_fini(&order);
    return err;
}

static int keep_latest(struct hd_tree *tree, struct hd_slice thread,
                       const struct hd_prune_options *keep)
{
    size_t latest;
    int err = 0;

    for (size_t i = 0; !err && i < tree->space_count; i++) {
        err = find_latest(tree, &tree->spaces[i], &latest);
        if (!err)
            keep_alone(tree, latest);
    }
    for (size_t i = 0; i < keep->head_count; i++) {
        size_t head = hd_slice_eq(keep->heads[i].thread, thread)
                          ? node_of(tree, keep->heads[i].ns, keep->heads[i].id)
                          : HD_NO_NODE;

        if (head != HD_NO_NODE)
            keep_alone(tree, head);
    }
    return err;
}

/* Nodes of a subgraph are removed with their owner. Outer namespaces come before inner ones. */
static void find_orphans(struct hd_tree *tree, const struct hd_tree_space *space)
{
    const struct hd_tree_space *outer = hd_tree_space(tree, outer_of(space->ns));

    for (size_t i = space->first; outer && i < space->first + space->count; i++) {
        struct hd_tree_node *node = &tree->nodes[i];
        size_t owner = node->owner.len ? hd_tree_find(tree, outer, node->owner) : HD_NO_NODE;

        node->is_orphan = owner != HD_NO_NODE && !tree->nodes[owner].is_kept && !node->is_in_circle;
    }
}

static void name_heads(struct hd_tree *tree, const struct hd_tree_space *space,
                       struct hd_slice thread, const struct hd_prune_options *keep)
{
    for (size_t i = 0; i < keep->head_count; i++) {
        size_t head;

        if (!hd_slice_eq(keep->heads[i].thread, thread) ||
            !hd_slice_eq(keep->heads[i].ns, space->ns))
            continue;
        head = hd_tree_find(tree, space, keep->heads[i].id);
        if (head == HD_NO_NODE)
            continue;
        tree->nodes[head].left = keep->last;
        tree->nodes[head].is_orphan = false;
    }
}

static void count_children(struct hd_tree *tree, const struct hd_tree_space *space)
{
    for (size_t i = space->first; i < space->first + space->count; i++) {
        const struct hd_tree_node *node = &tree->nodes[i];

        if (!node->is_orphan && node->parent != HD_NO_NODE)
            tree->nodes[node->parent].children++;
    }
}

/* Heads, the last of their branches, and forks. */
static void mark_lines(struct hd_tree *tree, const size_t *order, size_t count, size_t last)
{
    for (size_t i = 0; i < count; i++) {
        struct hd_tree_node *node = &tree->nodes[order[i]];
        struct hd_tree_node *parent =
            node->parent == HD_NO_NODE ? NULL : &tree->nodes[node->parent];

        if (node->is_orphan)
            continue;
        if (node->children == 0)
            node->left = last;
        node->is_kept |= node->left > 0 || node->children > 1 || node->is_in_circle;
        if (parent && node->left > 1 && parent->left < node->left - 1)
            parent->left = node->left - 1;
    }
}

/* The nearest ancestor that stays. Cycles stay whole, so the walk ends. */
static size_t kept_above(const struct hd_tree *tree, size_t at)
{
    do
        at = tree->nodes[at].parent;
    while (at != HD_NO_NODE && !tree->nodes[at].is_kept);
    return at;
}

/*
 * An old checkpoint must not follow a checkpoint whose sends are not its own: then the child of
 * that one, on the path between them, stays too. True: it was so.
 */
static bool keep_apart(struct hd_tree *tree, size_t at)
{
    size_t above, between = at;

    if (!tree->nodes[at].is_old)
        return false;
    above = kept_above(tree, at);
    if (above == HD_NO_NODE || !tree->nodes[above].has_sends || tree->nodes[at].parent == above)
        return false;
    while (tree->nodes[between].parent != above)
        between = tree->nodes[between].parent;
    tree->nodes[between].is_kept = true;
    return true;
}

/* Keeps the nearest ancestor with a greater id: it makes a node newer than its id alone. */
static void keep_greater(struct hd_tree *tree, size_t at)
{
    const struct hd_slice id = tree->nodes[at].id;

    while (at != HD_NO_NODE && !tree->nodes[at].is_in_circle &&
           hd_slice_cmp(tree->nodes[at].id, id) <= 0)
        at = tree->nodes[at].parent;
    if (at != HD_NO_NODE)
        tree->nodes[at].is_kept = true;
}

/* Keeps the parent of a node that stays if the node cannot be read without it. */
static void keep_needed(struct hd_tree *tree, size_t at)
{
    const struct hd_tree_node *node = &tree->nodes[at];
    struct hd_tree_node *parent;

    add_open(tree, at);
    if (node->parent == HD_NO_NODE)
        return;
    parent = &tree->nodes[node->parent];
    if (pass_needs(tree, at, node->parent) || (node->is_old && parent->has_sends))
        parent->is_kept = true;
}

static void keep_all_needed(struct hd_tree *tree, const size_t *order, size_t count)
{
    bool has_changed;

    do {
        has_changed = false;
        for (size_t i = 0; i < count; i++) {
            const struct hd_tree_node *node = &tree->nodes[order[i]];

            if (node->is_kept)
                keep_needed(tree, order[i]);
            if (node->is_kept && tree->spaces[node->space].has_strays)
                keep_greater(tree, order[i]);
        }
        for (size_t i = 0; i < count; i++) {
            if (tree->nodes[order[i]].is_kept)
                has_changed |= keep_apart(tree, order[i]);
        }
    } while (has_changed);
}

/* The nodes of one namespace in the tree's order. */
static int order_of(struct hd_tree *tree, size_t **out, size_t **ends)
{
    size_t *order = hd_arena_calloc(&tree->arena, tree->count, sizeof(*order));
    size_t *at = hd_arena_calloc(&tree->arena, tree->space_count, sizeof(*at));

    if (!order || !at)
        return HD_ENOMEM;
    for (size_t i = 0; i < tree->space_count; i++)
        at[i] = tree->spaces[i].first;
    for (size_t i = 0; i < tree->count; i++)
        order[at[tree->nodes[tree->order[i]].space]++] = tree->order[i];
    *out = order;
    *ends = at;
    return 0;
}

static int keep_branches(struct hd_tree *tree, struct hd_slice thread,
                         const struct hd_prune_options *keep)
{
    size_t *order, *ends;
    int err = order_of(tree, &order, &ends);

    for (size_t i = 0; !err && i < tree->space_count; i++) {
        const struct hd_tree_space *space = &tree->spaces[i];

        find_orphans(tree, space);
        name_heads(tree, space, thread, keep);
        count_children(tree, space);
        mark_lines(tree, order + space->first, space->count, keep->last);
        keep_all_needed(tree, order + space->first, space->count);
    }
    return err;
}

/* Parents come first here: `order` is read from its end. */
static void mark_fallen(struct hd_tree *tree, const size_t *order, size_t count, size_t fall)
{
    for (size_t i = count; i > 0; i--) {
        struct hd_tree_node *node = &tree->nodes[order[i - 1]];
        bool has_lost = fall != HD_NO_NODE && node->space == tree->nodes[fall].space &&
                        node->parent != HD_NO_NODE && !tree->nodes[node->parent].is_kept &&
                        !node->is_in_circle;

        node->is_kept = order[i - 1] != fall && !node->is_orphan && !has_lost;
    }
}

/* True if `ns` is `root` or below it. */
static bool is_in_line(struct hd_slice ns, struct hd_slice root)
{
    return hd_slice_starts(ns, root) && (ns.len == root.len || ns.ptr[root.len] == '|');
}

static void mark_line_fallen(struct hd_tree *tree, const struct hd_tree_space *space,
                             struct hd_slice root)
{
    bool is_fallen = is_in_line(space->ns, root);

    for (size_t i = space->first; i < space->first + space->count; i++)
        tree->nodes[i].is_kept = !is_fallen && !tree->nodes[i].is_orphan;
}

static int keep_standing(struct hd_tree *tree, const struct hd_prune_options *keep)
{
    const bool is_line = keep->fall->id.len == 0;
    size_t fall = is_line ? HD_NO_NODE : node_of(tree, keep->fall->ns, keep->fall->id);
    size_t *order, *ends;
    int err = order_of(tree, &order, &ends);

    for (size_t i = 0; !err && i < tree->space_count; i++) {
        const struct hd_tree_space *space = &tree->spaces[i];

        find_orphans(tree, space);
        if (is_line)
            mark_line_fallen(tree, space, keep->fall->ns);
        else
            mark_fallen(tree, order + space->first, space->count, fall);
        keep_all_needed(tree, order + space->first, space->count);
    }
    return err;
}

/* The head and its ancestors. Those of a circle are found once. */
static void mark_path(struct hd_tree *tree, size_t head)
{
    for (size_t i = head; i != HD_NO_NODE && !tree->nodes[i].is_kept; i = tree->nodes[i].parent)
        tree->nodes[i].is_kept = true;
}

/* What belongs to the tasks of a checkpoint stays with it. */
static void mark_owned(struct hd_tree *tree, const struct hd_tree_space *space)
{
    const struct hd_tree_space *outer = hd_tree_space(tree, outer_of(space->ns));

    for (size_t i = space->first; outer && i < space->first + space->count; i++) {
        struct hd_tree_node *node = &tree->nodes[i];
        size_t owner = node->owner.len ? hd_tree_find(tree, outer, node->owner) : HD_NO_NODE;

        node->is_kept |= owner != HD_NO_NODE && tree->nodes[owner].is_kept;
    }
}

static int keep_paths(struct hd_tree *tree, struct hd_slice thread,
                      const struct hd_prune_options *keep)
{
    size_t *order, *ends;
    int err = order_of(tree, &order, &ends);

    for (size_t i = 0; !err && i < keep->head_count; i++) {
        if (hd_slice_eq(keep->heads[i].thread, thread))
            mark_path(tree, node_of(tree, keep->heads[i].ns, keep->heads[i].id));
    }
    for (size_t i = 0; !err && i < tree->space_count; i++) {
        const struct hd_tree_space *space = &tree->spaces[i];

        mark_owned(tree, space);
        keep_all_needed(tree, order + space->first, space->count);
    }
    return err;
}

int hd_tree_read(struct hd_tree *tree, struct hd_store *store, struct hd_slice thread,
                 const struct hd_prune_options *keep, struct heddle_error *fault)
{
    int err = tree_read_all(tree, store, thread, fault);

    if (!err)
        err = put_in_order(tree);
    if (err)
        return err;
    if (keep->fall)
        return keep_standing(tree, keep);
    if (keep->keeps_paths)
        return keep_paths(tree, thread, keep);
    if (keep->strategy == HEDDLE_KEEP_BRANCHES)
        return keep_branches(tree, thread, keep);
    return keep_latest(tree, thread, keep);
}
