/*
 * Names of branches. A name is stored under the id of the checkpoint that the branch began with
 * when it was named, in the member branch_names of the thread's metadata. It belongs to the branch
 * that has this checkpoint now: branches merge when others are removed.
 */
#ifndef HD_API_STATE_BRANCH_NAMES_H
#define HD_API_STATE_BRANCH_NAMES_H

#include "api/state/branch_tree.h"

#define HD_BRANCH_NAME_MAX 100 /* characters */

/* Sets the names of a grown tree; when a branch has two, that of the newer checkpoint. */
HD_MUST_CHECK int hd_branch_names_read(struct hd_branch_tree *tree);

/* The name in the body; *out is empty for null. HD_EINVAL: not a valid name. */
HD_MUST_CHECK int hd_branch_name_of_body(struct hd_call *call, struct hd_slice *out);

/* Changes a thread's metadata, in the arena: drops the names of all checkpoints of `branch` and of
 * removed branches, and adds `name` unless it is empty. `branch` may be NULL. */
HD_MUST_CHECK int hd_branch_names_change(const struct hd_branch_tree *tree,
                                         const struct hd_tree_branch *branch, struct hd_slice name,
                                         struct hd_slice *metadata);

#endif
