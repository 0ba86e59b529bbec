/*
 * Value expressions (docs/graphs.md, "Values"): compiled once, when the
 * declaration is read, and evaluated against a scope.
 *
 * Evaluation has a result for operands of every type; it fails for want of
 * memory (HD_ENOMEM) and when it takes too many steps or makes too much
 * (HD_ELIMIT), never otherwise.
 */
#ifndef HD_GRAPH_EXPR_EXPR_H
#define HD_GRAPH_EXPR_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_EXPR_MAX_DEPTH 64      /* levels of an expression */
#define HD_EXPR_MAX_STEPS 5000000 /* of one evaluation; a step is about one value looked at */
#define HD_EXPR_MAX_BYTES ((size_t)64 << 20) /* made by one evaluation */

struct hd_expr;
struct hd_graph_error;

/* What a path may begin with besides channels, where the place allows it. */
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

/* What an evaluation sees; borrows everything. NULL: not there. */
struct hd_scope {
    struct hd_val *const *channels; /* by index; the state's */
    size_t channel_count;
    const struct hd_val *input; /* what a send gave: names that are no channels */
    const struct hd_val *places[HD_PLACE_COUNT];
};

HD_MUST_CHECK int hd_expr_eval(const struct hd_expr *expr, const struct hd_scope *scope,
                               struct hd_val **out);
/* The same, taken by its truth. */
HD_MUST_CHECK int hd_expr_holds(const struct hd_expr *expr, const struct hd_scope *scope,
                                bool *out);

/* ---- looking into one ------------------------------------------------- */

/* The value of an expression without paths and calls, borrowed; NULL for others. */
const struct hd_val *hd_expr_literal(const struct hd_expr *expr);

/*
 * The strings that may come out where names of nodes are wanted, and the node of
 * each send (empty when only the state knows it): as far as they stand in the
 * expression. `fn` gets each; an error of it ends the walk. *is_complete becomes
 * false when something else may come out.
 */
typedef int (*hd_expr_name_fn)(void *ctx, struct hd_slice name, bool is_send);
HD_MUST_CHECK int hd_expr_names(const struct hd_expr *expr, hd_expr_name_fn fn, void *ctx,
                                bool *is_complete);

/* Member number `index` of an expression that is an object; false when there is none. */
bool hd_expr_member(const struct hd_expr *expr, size_t index, struct hd_slice *key);

/* ---- alone ------------------------------------------------------------ */

/* An expression that belongs to no graph, with the channels it may name. */
struct hd_expr_alone;

HD_MUST_CHECK int hd_expr_create(struct hd_slice json, const struct hd_slice *channels,
                                 size_t channel_count, struct hd_expr_alone **out,
                                 struct hd_graph_error *error);
void hd_expr_destroy(struct hd_expr_alone *alone);
const struct hd_expr *hd_expr_of(const struct hd_expr_alone *alone);

#endif
