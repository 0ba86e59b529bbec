/*
 * The checkpoints of a namespace as a tree of branches: the longest sequences without a fork. All
 * children of a fork point are alternatives of equal rank. For store threads.
 */
#ifndef HD_API_STATE_BRANCH_TREE_H
#define HD_API_STATE_BRANCH_TREE_H

#include "api/state/checkpoint_index.h"

struct hd_tree_branch {
    struct hd_checkpoint_node *first, *last;
    size_t count;
    bool is_current;
    struct hd_tree_branch *children; /* they fork at its last checkpoint */
    struct hd_tree_branch *sibling;
    struct hd_slice message;                /* the message that differs, as JSON; empty: none */
    struct hd_slice answer;                 /* the first words of the reply to it; empty: none */
    struct hd_slice name;                   /* empty: none */
    const struct hd_checkpoint_node *named; /* the checkpoint that has the name */
    bool is_gone;                           /* for the user of the tree */
};

/* Set `call` and `target`, then read. */
struct hd_branch_tree {
    struct hd_call *call;
    struct hd_checkpoint_target target;
    struct hd_checkpoint_index points;
    struct hd_checkpoint_node *head;
    struct hd_tree_branch *branches; /* in the order of their first checkpoints */
    size_t count;
    struct hd_tree_branch *roots;
};

/* Reads the checkpoints and the head; hd_branch_tree_grow() builds the branches. */
HD_MUST_CHECK int hd_branch_tree_read(struct hd_branch_tree *tree);
HD_MUST_CHECK int hd_branch_tree_grow(struct hd_branch_tree *tree);
/* Also after a failed read. */
void hd_branch_tree_fini(struct hd_branch_tree *tree);

/* NULL: no branch begins with that checkpoint. */
struct hd_tree_branch *hd_branch_find(const struct hd_branch_tree *tree, struct hd_slice id);

/* Writes the response: the whole tree, after growing it, or one branch. */
HD_MUST_CHECK int hd_branch_tree_show(struct hd_branch_tree *tree);
HD_MUST_CHECK int hd_branch_show(struct hd_branch_tree *tree, struct hd_tree_branch *branch);

#endif
