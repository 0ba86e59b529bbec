/*
 * The declaration parser, shared by decl_*.c, expr_*.c and node_*.c.
 *
 * The parser makes one pass over the JSON, graph by graph. It collects the names of a graph's
 * channels, nodes and subgraphs first, so it resolves nearly all references in place. decl_check.c
 * afterwards checks properties of the whole graph: reachability and the arguments of sends.
 *
 * Parsing stops at the first error, which has the path of the member and one sentence.
 */
#ifndef HD_GRAPH_DECL_DECL_H
#define HD_GRAPH_DECL_DECL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/map.h"
#include "base/slice.h"
#include "base/suggest.h"
#include "graph/decl/graph.h"
#include "graph/expr/expr.h"
#include "value/val.h"

/* ---- memory ----------------------------------------------------------- */

/* Memory of a compiled graph: an arena, and references to values, counted or frozen. */
struct hd_decl_memory {
    struct hd_arena arena;
    struct hd_kept *kept;
    struct hd_kept *frozen; /* each once */
};

/* A graph with all the memory it owns. */
struct hd_graph_root {
    struct hd_graph graph; /* must be first: hd_graph_destroy() */
    struct hd_decl_memory hold;
};

void hd_decl_memory_init(struct hd_decl_memory *hold);
void hd_decl_memory_fini(struct hd_decl_memory *hold);
/* Freezes all values, so that any thread may use them. No value may be added afterwards. */
HD_MUST_CHECK int hd_decl_memory_freeze(struct hd_decl_memory *hold);
/* Takes `val`, which may be NULL (HD_ENOMEM), and frees it with the memory. */
HD_MUST_CHECK int hd_decl_memory_keep(struct hd_decl_memory *hold, struct hd_val *val);
/*
 * Appends a zeroed element to an array in the arena. `array` points to the pointer to the elements,
 * which may move.
 */
HD_MUST_CHECK void *hd_decl_memory_push(struct hd_decl_memory *hold, void *array, size_t *count,
                                        size_t size);

/* ---- positions -------------------------------------------------------- */

/* A value of the declaration and its path. Frames live on the stack. */
struct hd_decl_at {
    const struct hd_decl_at *up; /* NULL: `key` is a finished JSON pointer */
    struct hd_slice key;         /* ptr == NULL: an element, number `index` */
    size_t index;
    hd_json_val val;
};

struct hd_decl_at hd_decl_at_key(const struct hd_decl_at *up, struct hd_slice key, hd_json_val val);
struct hd_decl_at hd_decl_at_index(const struct hd_decl_at *up, size_t index, hd_json_val val);

/* A name in an expression that only a send's argument can define; checked at the end. */
struct hd_pending {
    struct hd_pending *next;
    struct hd_slice name;
    const char *path;
    size_t node;
};

/* A reference to a node or a channel of the parent graph, resolved later. */
struct hd_outward {
    struct hd_outward *next;
    struct hd_slice name;
    const char *path;
    bool is_channel;
    bool is_send;
};

/* A graph during parsing. */
struct hd_draft {
    struct hd_draft *next; /* all drafts of the declaration */
    struct hd_draft *outer;
    struct hd_graph *graph;
    struct hd_graph_channel *channels; /* graph->channels and graph->nodes, while they may change */
    struct hd_node *nodes;
    struct hd_map channel_map; /* name → struct hd_graph_channel *; those of the state */
    struct hd_map node_map;    /* name → struct hd_node *; without __start__ */
    struct hd_map graph_map;   /* name → struct hd_draft *; its own subgraphs */
    const char *path;
    struct hd_pending *pending;
    struct hd_pending **pending_end;
    struct hd_outward *outward;
    struct hd_outward **outward_end;
    bool goes_outward;   /* to a node named by the state */
    bool has_limit;      /* recursion_limit is in the file */
    bool sends_anywhere; /* to a node named by the state */
    bool is_used;
    int height; /* levels of subgraphs; 0: not computed, -1: being computed */
};

struct hd_decl {
    struct hd_decl_memory *hold;
    struct hd_graph_error *error;
    struct hd_draft *drafts;
    struct hd_draft *draft; /* of the graph that is being read */
    struct hd_node *node;   /* whose expressions are being parsed; NULL: none */
    size_t node_total;
    size_t channel_total;
    int level;
};

/* ---- errors ----------------------------------------------------------- */

/* Sets the error for the value at `at`; returns HD_EINVAL. */
int hd_decl_fail(struct hd_decl *decl, const struct hd_decl_at *at, const char *fmt, ...)
    HD_PRINTF(3, 4);
/* Sets an error with a precomputed path, and returns `code`. */
int hd_decl_fail_path(struct hd_decl *decl, int code, const char *path, const char *fmt, ...)
    HD_PRINTF(4, 5);
/* "must be …, not a number" */
int hd_decl_fail_type(struct hd_decl *decl, const struct hd_decl_at *at, const char *wanted);
/* The JSON pointer of `at`, in the arena; NULL when memory is exhausted. */
const char *hd_decl_path(struct hd_decl *decl, const struct hd_decl_at *at);

/* ---- members ---------------------------------------------------------- */

struct hd_field;
typedef int (*hd_field_fn)(struct hd_decl *decl, const struct hd_decl_at *at,
                           const struct hd_field *field, void *out);

/* One member of an object: its reader and destination. */
struct hd_field {
    const char *name;
    hd_field_fn read;
    size_t offset; /* of the destination */
    bool is_required;
    int64_t min, max; /* integers: the range; lists and strings: the size, when max is not 0 */
    unsigned places;  /* expressions: bits of enum hd_place that they see */
};

struct hd_fields {
    const struct hd_field *list;
    size_t count;
    const struct hd_fields *also; /* accepted, but read by another table */
};

#define HD_FIELDS(array, more)           \
    {                                    \
        (array), HD_COUNT(array), (more) \
    }
#define HD_PLACE(name) (1u << HD_PLACE_##name)

/* Reads an object: unknown members and missing ones are errors. */
HD_MUST_CHECK int hd_decl_fields(struct hd_decl *decl, const struct hd_decl_at *at,
                                 const struct hd_fields *fields, void *out);

/* Readers for tables of fields. The comment is the type of *out. */
int hd_decl_read_string(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out); /* struct hd_slice, not empty */
int hd_decl_read_text(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out); /* struct hd_slice */
int hd_decl_read_bool(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out); /* bool */
int hd_decl_read_int(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_field *field, void *out); /* int64_t */
int hd_decl_read_raw(
    struct hd_decl *decl, const struct hd_decl_at *at, const struct hd_field *field,
    void *out); /* struct hd_decl_at: for later, while `at->up` lives; see hd_raw() */
int hd_decl_read_names(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out); /* struct hd_slices */
int hd_decl_read_channels(struct hd_decl *decl, const struct hd_decl_at *at,
                          const struct hd_field *field,
                          void *out); /* struct hd_indexes, of the state */
int hd_decl_read_node(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out); /* size_t, not __end__ */
int hd_decl_read_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out); /* const struct hd_expr * */
int hd_decl_read_update(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field,
                        void *out); /* const struct hd_expr *: channels of this graph to values */
int hd_decl_read_exprs(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out); /* struct hd_exprs */

struct hd_slices {
    const struct hd_slice *list;
    size_t count;
};
struct hd_indexes {
    size_t *list;
    size_t count;
};
struct hd_exprs {
    const struct hd_expr **list;
    size_t count;
};

/* True if hd_decl_read_raw() has read the member. */
static inline bool hd_raw(const struct hd_decl_at *at)
{
    return at->val != NULL;
}

/* ---- parts of a declaration ------------------------------------------- */

/* HD_EINVAL if an object has a member twice. */
HD_MUST_CHECK int hd_decl_check_unique(struct hd_decl *decl, const struct hd_decl_at *at);
/* A name that is not taken, reserved, empty or too long; `what` is "channel" or "node". */
HD_MUST_CHECK int hd_decl_check_name(struct hd_decl *decl, const struct hd_decl_at *at,
                                     struct hd_slice name, const char *what);
/* A copy that lives as long as the graph. */
HD_MUST_CHECK int hd_decl_copy(struct hd_decl *decl, struct hd_slice s, struct hd_slice *out);

/* decl_channels.c: `state`; reserves `more` internal channels. */
HD_MUST_CHECK int hd_decl_read_state(struct hd_decl *decl, const struct hd_decl_at *at,
                                     size_t more);
HD_MUST_CHECK int hd_decl_add_channel(struct hd_decl *decl, const char *name,
                                      enum hd_graph_reducer reducer, size_t *out);
HD_MUST_CHECK int hd_decl_find_channel(struct hd_decl *decl, const struct hd_decl_at *at,
                                       struct hd_slice name, size_t *out);

/* decl_nodes.c: first all names, later the nodes. */
HD_MUST_CHECK int hd_decl_name_nodes(struct hd_decl *decl, const struct hd_decl_at *at);
HD_MUST_CHECK int hd_decl_read_nodes(struct hd_decl *decl, const struct hd_decl_at *at);
/* *out may become HD_GRAPH_END when `end_too`. */
HD_MUST_CHECK int hd_decl_find_node(struct hd_decl *decl, const struct hd_decl_at *at,
                                    struct hd_slice name, bool end_too, size_t *out);
/* Reads a node object: accepts the members common to all kinds. */
HD_MUST_CHECK int hd_decl_node_fields(struct hd_decl *decl, const struct hd_decl_at *at,
                                      const struct hd_field *list, size_t count, void *out);
/* Records that the current node may go to `node`; once per node. */
HD_MUST_CHECK int hd_decl_add_exit(struct hd_decl *decl, size_t node, bool is_send,
                                   struct hd_slice label);
/* `goto`: a node, a list, sends, or an expression that evaluates to them. */
HD_MUST_CHECK int hd_decl_read_goto(struct hd_decl *decl, const struct hd_decl_at *at,
                                    unsigned places, const struct hd_expr **out);
/* The update of a command for the parent graph. */
HD_MUST_CHECK int hd_decl_read_outward(struct hd_decl *decl, const struct hd_decl_at *at,
                                       const struct hd_expr **out);
/* Members common to all node kinds. */
extern const struct hd_fields hd_node_common;

/* decl_edges.c */
HD_MUST_CHECK int hd_decl_read_edges(struct hd_decl *decl, const struct hd_decl_at *at);
/* `has_default`: one of the routes always holds. */
HD_MUST_CHECK int hd_decl_read_routes(struct hd_decl *decl, const struct hd_decl_at *at,
                                      struct hd_branch *out, bool *has_default);
HD_MUST_CHECK int hd_decl_read_fanout(struct hd_decl *decl, const struct hd_decl_at *at,
                                      const struct hd_fields *also, struct hd_fanout *out);
/* Upper bound of the number of join channels. */
size_t hd_decl_count_joins(hd_json_val edges);

/* decl_check.c: checks that need all graphs. */
HD_MUST_CHECK int hd_decl_check(struct hd_decl *decl);
/* decl_reach.c: every node is reachable and every run can end. */
HD_MUST_CHECK int hd_decl_check_reach(struct hd_decl *decl);
/* Resolves a subgraph's name in the draft's scope; NULL: unknown. */
struct hd_draft *hd_decl_find_graph(struct hd_draft *draft, struct hd_slice name);

/* ---- expressions: decl_expr.c ----------------------------------------- */

/* Names that paths may start with, innermost first; the draft's channels are last. */
struct hd_names {
    const struct hd_names *outer;
    struct hd_slice name;
    bool is_place;
    size_t slot; /* enum hd_place, or the number of a loop's variable */
};

HD_MUST_CHECK int hd_decl_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                               const struct hd_names *names, const struct hd_expr **out);
HD_MUST_CHECK int hd_decl_expr_in(struct hd_decl *decl, const struct hd_decl_at *at,
                                  unsigned places, const struct hd_expr **out);

/* A name of a loop's variable: letters, digits and `_`. */
HD_MUST_CHECK int hd_decl_check_variable(struct hd_decl *decl, const struct hd_decl_at *at,
                                         struct hd_slice name);

#endif
