/*
 * A graph as the engine runs it: read from a declaration (docs/graphs.md),
 * checked, compiled, and never changed afterwards.
 *
 * Names are resolved to indexes: nodes[0] is always `__start__`, `__end__` is
 * no node but the index HD_GRAPH_END. Channels are LangGraph's, in its order:
 * those of the state as declared, `__start__`, `__pregel_tasks`, one
 * `branch:to:<node>` for each node, and a `join:<a>+<b>:<node>` for each edge
 * that waits for several nodes, their names in the order of the declaration.
 *
 * A graph owns its subgraphs and everything that can be reached from it. Nothing
 * in it changes while it is used, the counts of its values included: any number of
 * threads may use it at once. States, results and events may refer to values of
 * the graph, which must outlive them.
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
#define HD_GRAPH_MAX_CHANNELS 1000          /* likewise; those of the state */
#define HD_GRAPH_MAX_LEVELS 16              /* a graph in a graph in … */
#define HD_GRAPH_MAX_RECURSION 10000
#define HD_GRAPH_DEFAULT_RECURSION 25
#define HD_GRAPH_MAX_NAME 128 /* bytes of a node's or channel's name */
#define HD_GRAPH_MAX_WAIT_MS (INT64_C(24) * 60 * 60 * 1000)

#define HD_GRAPH_START ((size_t)0)
#define HD_GRAPH_END SIZE_MAX

/* ---- channels --------------------------------------------------------- */

/* What an update does to a channel; the names are in decl_channels.c. */
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
    /* These cannot be declared: the graph makes such channels itself. */
    HD_REDUCE_TRIGGER,       /* ephemeral; several updates are fine: branch:to:<node> */
    HD_REDUCE_TRIGGER_AFTER, /* the same for a deferred node: seen when nothing else runs */
    HD_REDUCE_BARRIER,       /* full when every source was written: join:… */
    HD_REDUCE_BARRIER_AFTER,
    HD_REDUCE_OPAQUE /* of a graph elsewhere: how it takes a second value is not known here */
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
    struct hd_slice title, description; /* for people; may be empty */
    enum hd_graph_reducer reducer;
    enum hd_graph_type type;
    struct hd_val *initial; /* NULL: begins empty */
    bool is_accumulating;   /* topics */
    size_t node;            /* branch:to: and join: the node it triggers */
    const size_t *sources;  /* join: the nodes it waits for */
    size_t source_count;
};

/* ---- nodes ------------------------------------------------------------ */

struct hd_decl;
struct hd_decl_at;
struct hd_node;
struct hd_task; /* a node at work in a superstep: the execution engine's */

/*
 * A kind of node: one file, and one line in node_kinds[] (decl_nodes.c). The
 * rest of the tree knows kinds by this table alone.
 */
struct hd_node_kind {
    const char *name; /* what "kind" says */

    /*
     * Reads and checks the members that only this kind has, into memory of the
     * declaration's arena that node->spec then points to. HD_EINVAL with the path
     * of the member in the declaration's error, or HD_ENOMEM.
     */
    int (*read)(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node);

    /*
     * Begins the node's work. It may be done before this returns or later on the
     * loop; either way its end is reported once, through the task. When it returns
     * an error nothing was begun and nothing will be reported.
     */
    int (*start)(struct hd_task *task);

    /*
     * Stops work that was begun and has not ended; nothing is reported after this
     * returned. NULL when the kind never waits.
     */
    void (*cancel)(struct hd_task *task);

    /*
     * Ends such work with what it has so far, if that is worth keeping: then the task's end is
     * reported before this returns true. NULL when nothing ever is.
     */
    bool (*settle)(struct hd_task *task);
};

/*
 * Kinds that folders above add to those of the engine; once, before graphs are read.
 * `list` must stay.
 */
void hd_node_kinds_add(const struct hd_node_kind *const *list, size_t count);

/* Where a route, a `goto` or a send may lead. */
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

/* One send for each element of a list. */
struct hd_fanout {
    const struct hd_expr *over;
    const struct hd_expr *arg; /* evaluated with the element in HD_PLACE_ITEM; NULL: the element */
    struct hd_slice as;
    size_t to;
};

/* A conditional edge: the first route that holds, or sends. Sees the node's writes. */
struct hd_branch {
    const struct hd_route *routes;
    size_t route_count;
    const struct hd_fanout *fanout; /* instead of routes */
};

struct hd_retry {
    int attempts; /* 1: none */
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
    const void *spec;                /* the kind's own */
    bool is_deferred;
    bool stops_before, stops_after; /* breakpoints */
    const size_t *reads;            /* channels; NULL: the whole state */
    size_t read_count;
    const struct hd_slice *args; /* names that a send from outside may bring */
    size_t arg_count;
    const struct hd_slice *tags;
    size_t tag_count;
    struct hd_val *metadata; /* NULL: none */
    int64_t timeout_ms;      /* 0: none */
    struct hd_retry retry;
    const struct hd_expr *const *emit;
    size_t emit_count;
    const struct hd_expr *on_error; /* the update when it has failed; NULL: the run fails */

    /* Channels that start it: branch:to:<name>, then its joins. */
    size_t *triggers;
    size_t trigger_count;
    /* Channels that its end writes to: branch:to:<next> and joins; null or its own name. */
    size_t *writes;
    size_t write_count;
    const struct hd_branch *branches;
    size_t branch_count;
    /* It has an edge to __end__, which writes nothing but is drawn. */
    bool has_end_edge;

    /* Where the node itself may go (goto, routes and sends of its kind). */
    struct hd_target *exits;
    size_t exit_count;
    /* It may also go where the file does not say: everywhere. */
    bool goes_anywhere;
    /* Its command is for the graph around; `exits` are then empty. */
    bool goes_to_parent;
    /* Whether it always goes to one of its exits (false: it may go nowhere). */
    bool must_exit;
    /* A run may stop here: to ask, or by an error. */
    bool may_stop;
    /* A send may start it; the send's argument is then its input. */
    bool is_sent_to;
    /* The graph that this node runs; NULL for all kinds but `subgraph`. */
    const struct hd_graph *graph;
};

/* ---- graphs ----------------------------------------------------------- */

/* How the ids of tasks are made: as LangGraph for Python does it, or that for JavaScript. */
enum hd_graph_ids { HD_IDS_PYTHON, HD_IDS_JS };

struct hd_graph {
    struct hd_slice name;
    struct hd_slice title, description; /* for people; may be empty */
    struct hd_val *config_schema;       /* JSON Schema of `configurable`; NULL: not said */
    struct hd_val *context_schema;

    const struct hd_graph_channel *channels;
    size_t channel_count;
    size_t state_count;   /* the first ones are the state's */
    size_t start_channel; /* __start__ */
    size_t tasks_channel; /* __pregel_tasks */
    const size_t *input;  /* channels; NULL: the whole state */
    size_t input_count;
    const size_t *output;
    size_t output_count;

    const struct hd_node *nodes; /* nodes[0] is __start__ */
    size_t node_count;

    int recursion_limit;
    const struct hd_graph *outer; /* in whose `graphs` it was declared; NULL: outermost */

    enum hd_graph_ids ids;
    bool is_foreign; /* its code is elsewhere: foreign.h */
    bool is_open;    /* nobody has told what it is made of */
    bool is_single;  /* its values are what its one channel has */
};

/* Where in a declaration something is wrong, and what. */
struct hd_graph_error {
    int code;
    char path[512]; /* JSON pointer; empty: the whole file */
    char text[256];
};

/*
 * HD_EINVAL for what is not a valid declaration and HD_ELIMIT for one that is
 * too large, both said in `error`, which may be NULL; or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_graph_read(struct hd_slice text, struct hd_graph **out,
                                struct hd_graph_error *error);
/* Nothing that was made with it may be in use any more. */
void hd_graph_destroy(struct hd_graph *graph);

/* By name; HD_GRAPH_END when there is none. */
size_t hd_graph_find_node(const struct hd_graph *graph, struct hd_slice name);
/* By name, all channels; HD_GRAPH_END when there is none. */
size_t hd_graph_find_channel(const struct hd_graph *graph, struct hd_slice name);

const char *hd_graph_reducer_name(enum hd_graph_reducer reducer);

#endif
