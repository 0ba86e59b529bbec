/*
 * Compiled expressions and built-in functions: internal to expr.c, decl_expr.c and builtin_*.c.
 * Other files use expr.h.
 */
#ifndef HD_GRAPH_EXPR_BUILTIN_H
#define HD_GRAPH_EXPR_BUILTIN_H

#include "base/suggest.h"
#include "graph/expr/expr.h"

/* ---- compiled --------------------------------------------------------- */

enum hd_expr_op {
    HD_EXPR_NONE, /* an omitted argument */
    HD_EXPR_LITERAL,
    HD_EXPR_PATH,
    HD_EXPR_TEXT, /* a string with paths in it: items are literals and paths */
    HD_EXPR_LIST,
    HD_EXPR_OBJECT, /* keys[i] → items[i] */
    HD_EXPR_RECORD, /* the same, of kind `slot` */
    HD_EXPR_CALL
};

enum hd_path_root {
    HD_ROOT_CHANNEL,
    HD_ROOT_PLACE,
    HD_ROOT_VARIABLE, /* of a loop */
    HD_ROOT_INPUT     /* a member of a send's argument */
};

struct hd_path_step {
    bool is_index;
    int64_t index;
    struct hd_slice key;
};

struct hd_path {
    enum hd_path_root root;
    size_t slot;
    struct hd_slice name;
    struct hd_path_step *steps;
    size_t step_count;
};

struct hd_expr {
    enum hd_expr_op op;
    bool is_spread; /* a call: its one argument evaluates to the list of arguments */
    size_t slot;    /* a loop: its variable; a record: enum hd_val_kind */
    struct hd_val *literal;
    const struct hd_path *path;
    const struct hd_builtin *call;
    struct hd_val **keys;
    struct hd_expr *items;
    size_t count;
};

/* ---- evaluating ------------------------------------------------------- */

struct hd_eval {
    const struct hd_scope *scope;
    struct hd_val *variables[HD_EXPR_MAX_DEPTH];
    uint64_t steps; /* left */
    size_t bytes;   /* left */
};

HD_MUST_CHECK int hd_eval(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out);
/* HD_ELIMIT when the budget is used up. */
HD_MUST_CHECK int hd_eval_step(struct hd_eval *ev, size_t steps);
HD_MUST_CHECK int hd_eval_bytes(struct hd_eval *ev, size_t bytes);
/* Charges both budgets for a traversal of `val`; estimates nested parts. */
HD_MUST_CHECK int hd_eval_look(struct hd_eval *ev, const struct hd_val *val);
/* Initialises a buffer limited to the remaining bytes. */
void hd_eval_buf(struct hd_eval *ev, struct hd_buf *buf);
/* Converts the buffer to a string and frees it; returns `err` if it is not 0. */
HD_MUST_CHECK int hd_eval_take(struct hd_eval *ev, struct hd_buf *buf, int err,
                               struct hd_val **out);
/* 0 with *out = val, or HD_ENOMEM when it is NULL. */
HD_MUST_CHECK int hd_eval_give(struct hd_val *val, struct hd_val **out);
/* The value at the path, borrowed; NULL: none. */
const struct hd_val *hd_eval_path(const struct hd_eval *ev, const struct hd_path *path);

/* ---- built-ins -------------------------------------------------------- */

enum hd_builtin_args {
    HD_ARGS_ONE,     /* the argument itself */
    HD_ARGS_LIST,    /* a list of `min` to `max` arguments */
    HD_ARGS_ANY,     /* a list of at least `min`, or an expression that evaluates to it */
    HD_ARGS_NAMED,   /* an object with `members` */
    HD_ARGS_MESSAGE, /* the content, or an object with `members` */
    HD_ARGS_LOOP,    /* over, as, and the member that is evaluated for each element */
    HD_ARGS_PATH,    /* a path, as a string */
    HD_ARGS_LITERAL  /* not evaluated */
};

#define HD_BUILTIN_MAX_MEMBERS 12

struct hd_builtin_member {
    const char *name;
    bool is_required;
};

/*
 * One row per function in the table of a builtin_*.c file. Arguments are evaluated before `apply`,
 * which borrows them (NULL: omitted); `eval` evaluates them itself.
 */
struct hd_builtin {
    const char *name; /* with the @ */
    enum hd_builtin_args args;
    size_t min, max;
    int (*apply)(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out);
    int (*eval)(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out);
    const struct hd_builtin_member *members; /* HD_ARGS_NAMED, _MESSAGE; ends with a NULL name */
    const char *text;                        /* private to `apply` */
};

struct hd_builtins {
    const struct hd_builtin *list;
    size_t count;
};

extern const struct hd_builtins hd_builtins_logic;
extern const struct hd_builtins hd_builtins_number;
extern const struct hd_builtins hd_builtins_text;
extern const struct hd_builtins hd_builtins_list;
extern const struct hd_builtins hd_builtins_message;

/* NULL: unknown; `near` gets the nearest name. */
const struct hd_builtin *hd_builtin_find(struct hd_slice name, struct hd_near *near);

/* Takes an object and converts it to a record; null if a required member is missing. */
HD_MUST_CHECK int hd_eval_record(struct hd_eval *ev, size_t kind, struct hd_val *members,
                                 struct hd_val **out);

#endif
