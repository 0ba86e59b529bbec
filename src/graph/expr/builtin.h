/*
 * Expressions from the inside: for expr.c, decl_expr.c and the files of calls
 * (call_*.c). All others use expr.h.
 */
#ifndef HD_GRAPH_EXPR_BUILTIN_H
#define HD_GRAPH_EXPR_BUILTIN_H

#include "base/suggest.h"
#include "graph/expr/expr.h"

/* ---- compiled --------------------------------------------------------- */

enum hd_expr_op {
    HD_EXPR_NONE, /* an argument that was left out */
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
    HD_ROOT_INPUT     /* a member of what a send gave */
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
    bool is_spread; /* a call: its one argument gives the list of arguments */
    size_t slot;    /* a loop: its variable; a record: enum hd_val_kind */
    struct hd_val *literal;
    const struct hd_path *path;
    const struct hd_call *call;
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
/* HD_ELIMIT when nothing is left. */
HD_MUST_CHECK int hd_eval_step(struct hd_eval *ev, size_t steps);
HD_MUST_CHECK int hd_eval_bytes(struct hd_eval *ev, size_t bytes);
/* Both, for a look at all of `val`; deeper parts are guessed. */
HD_MUST_CHECK int hd_eval_look(struct hd_eval *ev, const struct hd_val *val);
/* A buffer that holds what may still be made. */
void hd_eval_buf(struct hd_eval *ev, struct hd_buf *buf);
/* Makes a string of the buffer and frees it; `err` is what happened to it so far. */
HD_MUST_CHECK int hd_eval_take(struct hd_eval *ev, struct hd_buf *buf, int err,
                               struct hd_val **out);
/* 0 with *out = val, or HD_ENOMEM when it is NULL. */
HD_MUST_CHECK int hd_eval_give(struct hd_val *val, struct hd_val **out);
/* What the path finds, borrowed; NULL: nothing. */
const struct hd_val *hd_eval_path(const struct hd_eval *ev, const struct hd_path *path);

/* ---- calls ------------------------------------------------------------ */

enum hd_call_args {
    HD_ARGS_ONE,     /* the argument itself */
    HD_ARGS_LIST,    /* a list of `min` to `max` arguments */
    HD_ARGS_ANY,     /* a list of at least `min`, or an expression that gives it */
    HD_ARGS_NAMED,   /* an object with `members` */
    HD_ARGS_MESSAGE, /* the content, or an object with `members` */
    HD_ARGS_LOOP,    /* over, as, and the member that is evaluated for each element */
    HD_ARGS_PATH,    /* a path, as a string */
    HD_ARGS_LITERAL  /* not evaluated */
};

#define HD_CALL_MAX_MEMBERS 12

struct hd_call_member {
    const char *name;
    bool is_required;
};

/*
 * One line per function in the table of a call_*.c file. Arguments that are
 * values are evaluated before `apply`, which borrows them (NULL: left out);
 * `eval` does that itself.
 */
struct hd_call {
    const char *name; /* with the @ */
    enum hd_call_args args;
    size_t min, max;
    int (*apply)(struct hd_eval *ev, const struct hd_call *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out);
    int (*eval)(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out);
    const struct hd_call_member *members; /* HD_ARGS_NAMED, _MESSAGE; ends with a NULL name */
    const char *text;                     /* for apply's own use */
};

struct hd_calls {
    const struct hd_call *list;
    size_t count;
};

extern const struct hd_calls hd_calls_logic;
extern const struct hd_calls hd_calls_number;
extern const struct hd_calls hd_calls_text;
extern const struct hd_calls hd_calls_list;
extern const struct hd_calls hd_calls_message;

/* Also gives the nearest name when there is none. */
const struct hd_call *hd_call_find(struct hd_slice name, struct hd_near *near);

/* Takes an object with the members and makes it a record; null when it has not what it needs. */
HD_MUST_CHECK int hd_eval_record(struct hd_eval *ev, size_t kind, struct hd_val *members,
                                 struct hd_val **out);

#endif
