/*
 * Value expressions (docs/graphs.md, "Values"): compiled once, when the declaration is read, and
 * evaluated against a scope.
 *
 * Evaluation has a result for operands of every type. It fails only if memory is exhausted
 * (HD_ENOMEM), or if it takes too many steps or creates too many bytes (HD_ELIMIT).
 */
#ifndef HD_GRAPH_EXPR_EXPR_H
#define HD_GRAPH_EXPR_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_EXPR_MAX_DEPTH 64                 /* levels of an expression */
#define HD_EXPR_MAX_STEPS 5000000            /* of one evaluation; about one step per value read */
#define HD_EXPR_MAX_BYTES ((size_t)64 << 20) /* created by one evaluation */

struct hd_expr;
struct hd_graph_error;

/* Names besides channels that a path may start with, where they are allowed. */
enum hd_place {
    HD_PLACE_CONFIG,
    HD_PLACE_CONTEXT,
    HD_PLACE_ANSWERS,
    HD_PLACE_RESULT,
    HD_PLACE_RESPONSE,
    HD_PLACE_ITEM,
    HD_PLACE_MESSAGE,
    HD_PLACE_ERROR,
    HD_PLACE_COUNT
};

/* The values that an evaluation can read. Borrows everything. NULL: not available. */
struct hd_scope {
    struct hd_val *const *channels; /* of the state, by index */
    size_t channel_count;
    const struct hd_val *input; /* a send's argument, for names that are not channels */
    const struct hd_val *places[HD_PLACE_COUNT];
};

HD_MUST_CHECK int hd_expr_eval(const struct hd_expr *expr, const struct hd_scope *scope,
                               struct hd_val **out);
/* The same; *out is the truth value of the result. */
HD_MUST_CHECK int hd_expr_holds(const struct hd_expr *expr, const struct hd_scope *scope,
                                bool *out);

/* ---- inspection ------------------------------------------------------- */

/* The value of an expression without paths and calls, borrowed; NULL for others. */
const struct hd_val *hd_expr_literal(const struct hd_expr *expr);

/*
 * Passes to `fn` the names of nodes that the expression may evaluate to, and the node of each send
 * (empty if it depends on the state), as far as they are literals in the expression. An error of
 * `fn` ends the walk. Sets *is_complete to false if the expression may have other results.
 */
typedef int (*hd_expr_name_fn)(void *ctx, struct hd_slice name, bool is_send);
HD_MUST_CHECK int hd_expr_names(const struct hd_expr *expr, hd_expr_name_fn fn, void *ctx,
                                bool *is_complete);

/* Member number `index` of an object expression; false if it does not exist. */
bool hd_expr_member(const struct hd_expr *expr, size_t index, struct hd_slice *key);

/* ---- expressions without a graph -------------------------------------- */

/* An expression that belongs to no graph, with the channels that it may name. */
struct hd_decl_expr_alone;

HD_MUST_CHECK int hd_decl_expr_create(struct hd_slice json, const struct hd_slice *channels,
                                      size_t channel_count, struct hd_decl_expr_alone **out,
                                      struct hd_graph_error *error);
void hd_decl_expr_destroy(struct hd_decl_expr_alone *alone);
const struct hd_expr *hd_decl_expr_of(const struct hd_decl_expr_alone *alone);

#endif
