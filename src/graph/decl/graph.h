/*
 * A compiled graph: read from a declaration (docs/graphs.md), checked, and immutable afterwards.
 *
 * Names are resolved to indexes. nodes[0] is always `__start__`; `__end__` is not a node but the
 * index HD_GRAPH_END. Channels are LangGraph's, in its order: the state's channels as declared,
 * `__start__`, `__pregel_tasks`, one `branch:to:<node>` per node, and one `join:<a>+<b>:<node>` per
 * edge that waits for several nodes, with their names in the order of the declaration.
 *
 * A graph owns its subgraphs and everything reachable from it. Nothing in it changes during use,
 * not even the reference counts of its values, so any number of threads may use it concurrently.
 * States, results and events may refer to values of the graph, which must outlive them.
 */
#ifndef HD_GRAPH_DECL_GRAPH_H
#define HD_GRAPH_DECL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/expr/expr.h"
#include "value/val.h"

/* ---- limits ----------------------------------------------------------- */

#define HD_GRAPH_MAX_TEXT ((size_t)1 << 20) /* bytes of a declaration */
#define HD_GRAPH_MAX_NODES 1000             /* in a declaration, subgraphs included */
#define HD_GRAPH_MAX_CHANNELS 1000          /* likewise; channels of the state */
#define HD_GRAPH_MAX_LEVELS 16              /* of nested graphs */
#define HD_GRAPH_MAX_RECURSION 10000
#define HD_GRAPH_DEFAULT_RECURSION 25
#define HD_GRAPH_MAX_NAME 128 /* bytes of a node's or channel's name */
#define HD_GRAPH_MAX_WAIT_MS (INT64_C(24) * 60 * 60 * 1000)

#define HD_GRAPH_START ((size_t)0)
#define HD_GRAPH_END SIZE_MAX

/* ---- channels --------------------------------------------------------- */

/* The effect of an update on a channel. The names are in decl_channels.c. */
enum hd_graph_reducer {
    HD_REDUCE_LAST,
    HD_REDUCE_ANY,
    HD_REDUCE_EPHEMERAL,
    HD_REDUCE_UNTRACKED,
    HD_REDUCE_MESSAGES,
    HD_REDUCE_ADD,
    HD_REDUCE_MERGE,
    HD_REDUCE_MAX,
    HD_REDUCE_MIN,
    HD_REDUCE_AND,
    HD_REDUCE_OR,
    HD_REDUCE_TOPIC,
    /* Not declarable; the graph creates these channels itself. */
    HD_REDUCE_TRIGGER,       /* ephemeral, accepts several updates: branch:to:<node> */
    HD_REDUCE_TRIGGER_AFTER, /* the same for a deferred node: visible when no other node runs */
    HD_REDUCE_BARRIER,       /* full when every source has written: join:… */
    HD_REDUCE_BARRIER_AFTER,
    HD_REDUCE_OPAQUE /* of a worker's graph: a reducer that the server does not have */
};

enum hd_graph_type {
    HD_TYPE_ANY,
    HD_TYPE_STRING,
    HD_TYPE_NUMBER,
    HD_TYPE_BOOLEAN,
    HD_TYPE_LIST,
    HD_TYPE_OBJECT
};

struct hd_graph_channel {
    struct hd_slice name;
    struct hd_slice title, description; /* for display; may be empty */
    enum hd_graph_reducer reducer;
    enum hd_graph_type type;
    struct hd_val *initial; /* NULL: initially empty */
    bool is_accumulating;   /* topics */
    size_t node;            /* branch:to: and join: the node it triggers */
    const size_t *sources;  /* join: the nodes it waits for */
    size_t source_count;
};

/* ---- nodes ------------------------------------------------------------ */

struct hd_decl;
struct hd_decl_at;
struct hd_node;
struct hd_task; /* the execution of a node in a superstep; defined by the engine */

/*
 * A kind of node: one file, and one row in node_kinds[] (decl_nodes.c). Other code uses kinds only
 * through this table.
 */
struct hd_node_kind {
    const char *name; /* value of "kind" in a declaration */

    /*
     * Reads and checks the members specific to this kind into memory of the declaration's arena;
     * sets node->spec to it. HD_EINVAL, with the path of the member in the declaration's error, or
     * HD_ENOMEM.
     */
    int (*read)(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node);

    /*
     * Starts the node. Its end is reported once, through the task, here or later on the loop; the
     * graph advances after this has returned. On error nothing was started, nothing is reported.
     */
    int (*start)(struct hd_task *task);

    /*
     * Stops a started node that has not finished. Nothing is reported after this returns. NULL if
     * the kind never waits.
     */
    void (*cancel)(struct hd_task *task);

    /*
     * Ends a started node with its partial result, if that is worth keeping: then reports the
     * task's end and returns true. NULL if the kind has no partial results.
     */
    bool (*settle)(struct hd_task *task);
};

/*
 * Adds node kinds of higher layers to the engine's. Call once, before reading graphs. `list` must
 * stay valid.
 */
void hd_graph_add_node_kinds(const struct hd_node_kind *const *list, size_t count);

/* A possible destination of a route, a `goto` or a send. */
struct hd_target {
    size_t node; /* or HD_GRAPH_END */
    struct hd_slice label;
    bool is_send;
};

struct hd_route {
    const struct hd_expr *when; /* NULL: always */
    const struct hd_target *to;
    size_t to_count;
};

/* Creates one send for each element of a list. */
struct hd_fanout {
    const struct hd_expr *over;
    const struct hd_expr *arg; /* evaluated with the element in HD_PLACE_ITEM; NULL: the element */
    struct hd_slice as;
    size_t to;
};

/* A conditional edge: the first route whose condition is true, or sends. Sees the node's writes. */
struct hd_branch {
    const struct hd_route *routes;
    size_t route_count;
    const struct hd_fanout *fanout; /* instead of routes */
};

struct hd_retry {
    int attempts; /* 1: no retry */
    int64_t delay_ms;
    int64_t max_delay_ms;
    double backoff;
    const struct hd_slice *on; /* types of errors; NULL: all */
    size_t on_count;
};

struct hd_node {
    struct hd_slice name;
    size_t index;
    const struct hd_node_kind *kind; /* NULL for __start__ */
    const void *spec;                /* specific to the kind */
    bool is_deferred;
    bool stops_before, stops_after; /* breakpoints */
    const size_t *reads;            /* channels; NULL: the whole state */
    size_t read_count;
    const struct hd_slice *args; /* names that an external send's argument may define */
    size_t arg_count;
    const struct hd_slice *tags;
    size_t tag_count;
    struct hd_val *metadata; /* NULL: none */
    int64_t timeout_ms;      /* 0: none */
    struct hd_retry retry;
    const struct hd_expr *const *emit;
    size_t emit_count;
    const struct hd_expr *on_error; /* the update after a failure; NULL: the run fails */

    /* Channels that trigger the node: branch:to:<name>, then its joins. */
    size_t *triggers;
    size_t trigger_count;
    /* Channels written at its end: branch:to:<next> gets null, a join gets the node's name. */
    size_t *writes;
    size_t write_count;
    const struct hd_branch *branches;
    size_t branch_count;
    /* True if the node has an edge to __end__, which writes nothing but is drawn. */
    bool has_end_edge;

    /* Destinations that the node itself may choose (goto, routes and sends of its kind). */
    struct hd_target *exits;
    size_t exit_count;
    /* May go to any node: the declaration does not determine the destinations. */
    bool goes_anywhere;
    /* Its command targets the parent graph; `exits` is then empty. */
    bool goes_to_parent;
    /* True if it always goes to one of its exits; false if it may go to none. */
    bool must_exit;
    /* A run may stop here, by an interrupt or an error. */
    bool may_stop;
    /* A send may start the node; the send's argument is then its input. */
    bool is_sent_to;
    /* The subgraph of the node; NULL for all kinds but `subgraph`. */
    const struct hd_graph *graph;
};

/* ---- graphs ----------------------------------------------------------- */

/* The derivation of task ids: that of LangGraph for Python, or that of LangGraph for JavaScript. */
enum hd_graph_ids { HD_IDS_PYTHON, HD_IDS_JS };

struct hd_graph {
    struct hd_slice name;
    struct hd_slice title, description; /* for display; may be empty */
    struct hd_val *config_schema;       /* JSON Schema of `configurable`; NULL: not declared */
    struct hd_val *context_schema;

    const struct hd_graph_channel *channels;
    size_t channel_count;
    size_t state_count;   /* the first ones belong to the state */
    size_t start_channel; /* __start__ */
    size_t tasks_channel; /* __pregel_tasks */
    const size_t *input;  /* channels; NULL: the whole state */
    size_t input_count;
    const size_t *output;
    size_t output_count;

    const struct hd_node *nodes; /* nodes[0] is __start__ */
    size_t node_count;

    int recursion_limit;
    const struct hd_graph *outer; /* the graph that declares it in `graphs`; NULL: outermost */

    enum hd_graph_ids ids;
    bool is_foreign; /* its code is in a worker: worker_graph.h */
    bool is_open;    /* its structure is unknown */
    bool is_single;  /* its values are the value of its only channel */
};

/* An error in a declaration: its position and text. */
struct hd_graph_error {
    int code;
    char path[512]; /* JSON pointer; empty: the whole file */
    char text[256];
};

/*
 * HD_EINVAL if the declaration is invalid, HD_ELIMIT if it is too large, both with the details in
 * `error`, which may be NULL; or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_graph_read(struct hd_slice text, struct hd_graph **out,
                                struct hd_graph_error *error);
/* No state, result or event of the graph may be in use any more. */
void hd_graph_destroy(struct hd_graph *graph);

/* By name; HD_GRAPH_END if not found. */
size_t hd_graph_find_node(const struct hd_graph *graph, struct hd_slice name);
/* By name, all channels; HD_GRAPH_END if not found. */
size_t hd_graph_find_channel(const struct hd_graph *graph, struct hd_slice name);

const char *hd_graph_reducer_name(enum hd_graph_reducer reducer);

#endif
