/* The checkpoints of a thread as trees, with marks on those that stay. */
#ifndef HD_STORE_PRUNE_TREE_H
#define HD_STORE_PRUNE_TREE_H

#include "base/map.h"
#include "store/prune.h"

#define HD_NO_NODE ((size_t)-1)

/* A checkpoint. Slices are owned by the tree. */
struct hd_tree_node {
    struct hd_slice id;
    struct hd_slice parent_id;
    struct hd_slice owner;       /* the checkpoint of the enclosing graph; empty: none */
    const struct hd_slice *open; /* delta channels that it rebuilds from earlier ones */
    size_t open_count;
    size_t space; /* number of its namespace */
    size_t parent;
    size_t children;
    size_t depth;  /* from 1 on */
    size_t left;   /* of its branch, this many stay from here on */
    size_t joined; /* its parent as stored while others are removed */
    int64_t bytes;
    int64_t writes; /* number of its writes, when counting */
    int64_t write_bytes;
    bool is_gone;
    bool is_old;    /* its pending sends are in its parent's writes */
    bool has_sends; /* … of its children are in its writes */
    bool is_in_circle;
    bool is_orphan; /* the checkpoint it belongs to is removed */
    bool is_kept;
};

struct hd_tree_space {
    struct hd_slice ns;
    size_t first, count; /* its nodes, by id */
    size_t level;        /* its nesting depth: 0 for "" */
    bool has_strays;     /* see order.h */
};

struct hd_tree {
    struct hd_arena arena;
    struct hd_tree_node *nodes;
    size_t count, cap;
    struct hd_tree_space *spaces;
    size_t space_count, space_cap;
    size_t *order;        /* all nodes, children before their parents, inner ones first */
    struct hd_map deltas; /* numbers of the delta channels, from 1 on */
    uint64_t *seeds;      /* by node: the delta channels that have a value there */
    uint64_t *needs;      /* … that a descendant looks for there or above */
    size_t words;         /* per node */
};

void hd_tree_init(struct hd_tree *tree);
void hd_tree_fini(struct hd_tree *tree);
/* Reads the thread and marks the checkpoints that stay. */
HD_MUST_CHECK int hd_tree_read(struct hd_tree *tree, struct hd_store *store, struct hd_slice thread,
                               const struct hd_prune_options *keep, struct heddle_error *fault);
/* NULL: not found. */
const struct hd_tree_space *hd_tree_space(const struct hd_tree *tree, struct hd_slice ns);
/* HD_NO_NODE: not found. */
size_t hd_tree_find(const struct hd_tree *tree, const struct hd_tree_space *space,
                    struct hd_slice id);

#endif
