/*
 * Reading declarations: what the decl_*.c, expr_*.c and node_*.c files share.
 *
 * A declaration is read in one pass over its JSON, graph by graph. The names of
 * a graph's channels, nodes and subgraphs are known before anything refers to
 * them, so nearly all names are resolved where they stand. What needs the
 * finished graph (who can be reached, what a send may bring) is checked
 * afterwards, in decl_check.c.
 *
 * The first error ends the reading; it has the path of the member and one
 * sentence.
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

/* What is compiled lives in an arena; values are counted, or frozen, and must be let go. */
struct hd_hold {
    struct hd_arena arena;
    struct hd_kept *kept;
    struct hd_kept *frozen; /* each once */
};

/* A graph as it is given out, with all that it owns. */
struct hd_graph_root {
    struct hd_graph graph; /* must be first: hd_graph_destroy() */
    struct hd_hold hold;
};

void hd_hold_init(struct hd_hold *hold);
void hd_hold_fini(struct hd_hold *hold);
/* Freezes all that was kept: from now on any thread may use it. Nothing is kept afterwards. */
HD_MUST_CHECK int hd_hold_freeze(struct hd_hold *hold);
/* Takes `val`, which may be NULL (HD_ENOMEM), and keeps it as long as the hold. */
HD_MUST_CHECK int hd_hold_keep(struct hd_hold *hold, struct hd_val *val);
/*
 * One more element for an array that grows in the arena; zeroed. `array` points
 * to the pointer to the elements, which may move.
 */
HD_MUST_CHECK void *hd_hold_push(struct hd_hold *hold, void *array, size_t *count, size_t size);

/* ---- where we are ----------------------------------------------------- */

/* A value of the declaration and the way to it. Frames live on the stack. */
struct hd_at {
    const struct hd_at *up; /* NULL: `key` is a finished JSON pointer */
    struct hd_slice key;    /* ptr == NULL: an element, number `index` */
    size_t index;
    hd_json_val val;
};

struct hd_at hd_at_key(const struct hd_at *up, struct hd_slice key, hd_json_val val);
struct hd_at hd_at_index(const struct hd_at *up, size_t index, hd_json_val val);

/* A name that an expression uses and that only a send can bring; checked at the end. */
struct hd_pending {
    struct hd_pending *next;
    struct hd_slice name;
    const char *path;
    size_t node;
};

/* A node or a channel of the graph around, which is not known yet. */
struct hd_outward {
    struct hd_outward *next;
    struct hd_slice name;
    const char *path;
    bool is_channel;
    bool is_send;
};

/* A graph that is being read. */
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
    bool goes_outward;   /* to a node that only the state knows */
    bool has_limit;      /* recursion_limit is in the file */
    bool sends_anywhere; /* to a node that only the state knows */
    bool is_used;
    int height; /* levels from here down; 0: not known yet, -1: being asked for */
};

struct hd_decl {
    struct hd_hold *hold;
    struct hd_graph_error *error;
    struct hd_draft *drafts;
    struct hd_draft *draft; /* of the graph that is being read */
    struct hd_node *node;   /* whose expressions are being read; NULL: nobody's */
    size_t node_total;
    size_t channel_total;
    int level;
};

/* ---- errors ----------------------------------------------------------- */

/* Says what is wrong with the value at `at`; returns HD_EINVAL. */
int hd_decl_fail(struct hd_decl *decl, const struct hd_at *at, const char *fmt, ...)
    HD_PRINTF(3, 4);
/* The same with a path that was made before, and the code. */
int hd_decl_fail_path(struct hd_decl *decl, int code, const char *path, const char *fmt, ...)
    HD_PRINTF(4, 5);
/* "must be …, not a number" */
int hd_decl_fail_type(struct hd_decl *decl, const struct hd_at *at, const char *wanted);
/* The JSON pointer of `at`, in the arena; NULL when memory is exhausted. */
const char *hd_decl_path(struct hd_decl *decl, const struct hd_at *at);

/* ---- members ---------------------------------------------------------- */

struct hd_field;
typedef int (*hd_field_fn)(struct hd_decl *decl, const struct hd_at *at,
                           const struct hd_field *field, void *out);

/* One member of an object: how it is read, and where to. */
struct hd_field {
    const char *name;
    hd_field_fn read;
    size_t offset; /* of what it is read to */
    bool is_required;
    int64_t min, max; /* integers: the range; lists and strings: the size, when max is not 0 */
    unsigned places;  /* expressions: bits of enum hd_place that they see */
};

struct hd_fields {
    const struct hd_field *list;
    size_t count;
    const struct hd_fields *also; /* known, but read by somebody else */
};

#define HD_FIELDS(array, more)           \
    {                                    \
        (array), HD_COUNT(array), (more) \
    }
#define HD_PLACE(name) (1u << HD_PLACE_##name)

/* Reads an object: unknown members and missing ones are errors. */
HD_MUST_CHECK int hd_decl_fields(struct hd_decl *decl, const struct hd_at *at,
                                 const struct hd_fields *fields, void *out);

/* Functions for tables of fields. The comment says what `out` points to. */
int hd_read_string(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                   void *out); /* struct hd_slice, not empty */
int hd_read_text(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                 void *out); /* struct hd_slice */
int hd_read_bool(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                 void *out); /* bool */
int hd_read_int(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                void *out); /* int64_t */
int hd_read_raw(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                void *out); /* struct hd_at: for later, while `at->up` lives; see hd_raw() */
int hd_read_names(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                  void *out); /* struct hd_slices */
int hd_read_channels(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                     void *out); /* struct hd_indexes, of the state */
int hd_read_node(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                 void *out); /* size_t, not __end__ */
int hd_read_expr(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                 void *out); /* const struct hd_expr * */
int hd_read_update(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                   void *out); /* const struct hd_expr *: channels of this graph to values */
int hd_read_exprs(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                  void *out); /* struct hd_exprs */

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

/* Whether hd_read_raw() has read it. */
static inline bool hd_raw(const struct hd_at *at)
{
    return at->val != NULL;
}

/* ---- parts of a declaration ------------------------------------------- */

/* HD_EINVAL when some object has a member twice. */
HD_MUST_CHECK int hd_decl_check_unique(struct hd_decl *decl, const struct hd_at *at);
/* A name that is not taken, reserved, empty or too long; `what` is "channel" or "node". */
HD_MUST_CHECK int hd_decl_check_name(struct hd_decl *decl, const struct hd_at *at,
                                     struct hd_slice name, const char *what);
/* A copy that lives as long as the graph. */
HD_MUST_CHECK int hd_decl_copy(struct hd_decl *decl, struct hd_slice s, struct hd_slice *out);

/* decl_channels.c: `state`, and room for the channels that the graph makes itself. */
HD_MUST_CHECK int hd_decl_read_state(struct hd_decl *decl, const struct hd_at *at, size_t more);
HD_MUST_CHECK int hd_decl_add_channel(struct hd_decl *decl, const char *name,
                                      enum hd_graph_reducer reducer, size_t *out);
HD_MUST_CHECK int hd_decl_find_channel(struct hd_decl *decl, const struct hd_at *at,
                                       struct hd_slice name, size_t *out);

/* decl_nodes.c: first all names, later the nodes. */
HD_MUST_CHECK int hd_decl_name_nodes(struct hd_decl *decl, const struct hd_at *at);
HD_MUST_CHECK int hd_decl_read_nodes(struct hd_decl *decl, const struct hd_at *at);
/* *out may become HD_GRAPH_END when `end_too`. */
HD_MUST_CHECK int hd_decl_find_node(struct hd_decl *decl, const struct hd_at *at,
                                    struct hd_slice name, bool end_too, size_t *out);
/* Reads an object of a kind: knows the members that all kinds have. */
HD_MUST_CHECK int hd_decl_node_fields(struct hd_decl *decl, const struct hd_at *at,
                                      const struct hd_field *list, size_t count, void *out);
/* Remembers that the current node may go to `node`; says so once per node. */
HD_MUST_CHECK int hd_decl_add_exit(struct hd_decl *decl, size_t node, bool is_send,
                                   struct hd_slice label);
/* `goto`: a node, a list, sends, or an expression that gives them. */
HD_MUST_CHECK int hd_decl_read_goto(struct hd_decl *decl, const struct hd_at *at, unsigned places,
                                    const struct hd_expr **out);
/* The update of a command for the graph around. */
HD_MUST_CHECK int hd_decl_read_outward(struct hd_decl *decl, const struct hd_at *at,
                                       const struct hd_expr **out);
/* Members that nodes of all kinds have. */
extern const struct hd_fields hd_node_common;

/* decl_edges.c */
HD_MUST_CHECK int hd_decl_read_edges(struct hd_decl *decl, const struct hd_at *at);
/* `has_default`: one of the routes always holds. */
HD_MUST_CHECK int hd_decl_read_routes(struct hd_decl *decl, const struct hd_at *at,
                                      struct hd_branch *out, bool *has_default);
HD_MUST_CHECK int hd_decl_read_fanout(struct hd_decl *decl, const struct hd_at *at,
                                      const struct hd_fields *also, struct hd_fanout *out);
/* How many join channels there can be at most. */
size_t hd_decl_count_joins(hd_json_val edges);

/* decl_check.c: everything that needs all graphs. */
HD_MUST_CHECK int hd_decl_check(struct hd_decl *decl);
/* decl_reach.c: every node can be reached, and no run goes on for ever. */
HD_MUST_CHECK int hd_decl_check_reach(struct hd_decl *decl);
/* The graph that a node of the current draft means by a name; NULL when there is none. */
struct hd_draft *hd_decl_find_graph(struct hd_draft *draft, struct hd_slice name);

/* ---- expressions: decl_expr.c ----------------------------------------- */

/* What paths may begin with, innermost first; the channels of the draft come after the last. */
struct hd_names {
    const struct hd_names *outer;
    struct hd_slice name;
    bool is_place;
    size_t slot; /* enum hd_place, or the number of a loop's variable */
};

HD_MUST_CHECK int hd_decl_expr(struct hd_decl *decl, const struct hd_at *at,
                               const struct hd_names *names, const struct hd_expr **out);
HD_MUST_CHECK int hd_decl_expr_in(struct hd_decl *decl, const struct hd_at *at, unsigned places,
                                  const struct hd_expr **out);

/* A name of a loop's variable: letters, digits and `_`. */
HD_MUST_CHECK int hd_decl_check_variable(struct hd_decl *decl, const struct hd_at *at,
                                         struct hd_slice name);

#endif
