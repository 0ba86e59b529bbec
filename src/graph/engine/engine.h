/*
 * The inside of the engine: what its files share. Users include run.h, state.h
 * and events.h.
 *
 * Who owns what: an engine has runs; a run has one loop, whose tasks may have
 * loops of their own (subgraphs). A loop works on one namespace of the thread:
 * it holds the checkpoint it stands on (struct hd_live), the writes that belong
 * to that checkpoint and the tasks of the superstep. Values are counted, all
 * else has one owner.
 */
#ifndef HD_GRAPH_ENGINE_ENGINE_H
#define HD_GRAPH_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/events.h"
#include "graph/engine/list_cache.h"
#include "graph/engine/list_tracker.h"
#include "graph/engine/run.h"
#include "graph/expr/expr.h"
#include "heddle.h"
#include "value/val.h"

#define HD_NULL_TASK "00000000-0000-0000-0000-000000000000"
#define HD_CHECKPOINT_V 4                       /* the format of checkpoints */
#define HD_ENGINE_MAX_VALUE ((size_t)256 << 20) /* bytes of what is saved at once */
#define HD_ENGINE_RECALL ((size_t)64 << 20)     /* bytes of lists kept for later runs */

/* ---- errors: fault.c -------------------------------------------------- */

/* Why a task or a run failed: what Python would have raised. */
struct hd_failure {
    char *type; /* NULL: nothing failed */
    char *text;
};

/* Keeps the first failure; memory that is not there leaves a MemoryError. */
void hd_failure_set(struct hd_failure *failure, const char *type, const char *fmt, ...)
    HD_PRINTF(3, 4);
void hd_failure_set_text(struct hd_failure *failure, struct hd_slice type, struct hd_slice text);
void hd_failure_code(struct hd_failure *failure, int err, const struct hd_fault *fault);
/* The same for what a channel says; lets the refusal go. */
void hd_failure_refusal(struct hd_failure *failure, int err, struct hd_refusal *refusal);
void hd_failure_fini(struct hd_failure *failure);
static inline bool hd_failed(const struct hd_failure *failure)
{
    return failure->type != NULL;
}
/* As Python's repr() shows the exception: what is stored in __error__. */
HD_MUST_CHECK struct hd_val *hd_failure_repr(const struct hd_failure *failure);

/* ---- writes: writes.c ------------------------------------------------- */

/* Channels that are not the graph's; numbers below 0 in struct hd_write. */
enum hd_special {
    HD_W_ERROR = -1,
    HD_W_SCHEDULED = -2,
    HD_W_INTERRUPT = -3,
    HD_W_RESUME = -4,
    HD_W_NO_WRITES = -5,
    HD_W_RETURN = -6,
    HD_W_ERROR_SOURCE = -7,
    HD_W_OTHER = -8 /* `name` says which; nobody has it */
};

struct hd_write {
    int channel;
    struct hd_val *name; /* of HD_W_OTHER; else NULL */
    struct hd_val *val;
};

struct hd_writes {
    struct hd_write *list;
    size_t count;
    size_t cap;
};

/* A write that is stored with the checkpoint it was made from. */
struct hd_pend {
    char task[HD_UUID_SIZE];
    size_t row; /* which of the stored ones it was, when it was loaded */
    struct hd_write write;
};

struct hd_pends {
    struct hd_pend *list;
    size_t count;
    size_t cap;
};

/* Takes `val`; NULL is HD_ENOMEM. */
HD_MUST_CHECK int hd_writes_add(struct hd_writes *writes, int channel, struct hd_val *val);
/* The same with a channel's name, which may be unknown. */
HD_MUST_CHECK int hd_writes_add_name(struct hd_writes *writes, const struct hd_graph *graph,
                                     struct hd_slice name, struct hd_val *val);
HD_MUST_CHECK int hd_writes_copy(struct hd_writes *to, const struct hd_write *list, size_t count);
void hd_writes_clear(struct hd_writes *writes);
void hd_writes_fini(struct hd_writes *writes);

HD_MUST_CHECK int hd_pends_add(struct hd_pends *pends, const char *task,
                               const struct hd_write *write);
/* Removes those for which `gone` says so. */
void hd_pends_filter(struct hd_pends *pends, bool (*gone)(const struct hd_pend *, const void *),
                     const void *arg);
void hd_pends_fini(struct hd_pends *pends);

int hd_write_channel(const struct hd_graph *graph, struct hd_slice name);
struct hd_slice hd_write_name(const struct hd_graph *graph, const struct hd_write *write);
/* __error__, __scheduled__, __interrupt__, __resume__: one of each is kept for a task. */
static inline bool hd_write_is_special(const struct hd_write *write)
{
    return write->channel <= HD_W_ERROR && write->channel >= HD_W_RESUME;
}
/* Says what happened to a task and not what it made. */
static inline bool hd_write_is_control(const struct hd_write *write)
{
    return write->channel == HD_W_ERROR || write->channel == HD_W_ERROR_SOURCE ||
           write->channel == HD_W_INTERRUPT || write->channel == HD_W_RESUME;
}
static inline bool hd_is_null_task(const char *task)
{
    return memcmp(task, HD_NULL_TASK, HD_UUID_LEN) == 0;
}

/* ---- the checkpoint at work: checkpoint_state.c, checkpoint.c ----------------------- */

struct hd_saw {
    size_t channel;
    struct hd_val *version;
};

/* What a node has seen. Rows: nodes by index, then __input__ and __interrupt__. */
struct hd_seen {
    bool is_there; /* false: no row at all, which is not the same as an empty one */
    struct hd_saw *list;
    size_t count;
    size_t cap;
};

struct hd_live {
    const struct hd_graph *graph;
    struct hd_channel *channels;
    struct hd_val **versions;      /* by channel; NULL: none */
    struct hd_val *other_versions; /* object: of channels that the graph does not have */
    struct hd_seen *seen;
    struct hd_val *other_seen; /* object: of nodes that it does not have */
    char id[HD_UUID_SIZE];
    char ts[40];
    bool *updated; /* by channel; meaningful when has_updated */
    bool has_updated;
    bool skips_state; /* loads no values of the state: nobody will look at them */
    char *floor;      /* HD_UUID_SIZE bytes: the greatest id its ids have to sort behind; or NULL */
};

static inline size_t hd_seen_input(const struct hd_graph *graph)
{
    return graph->node_count;
}
static inline size_t hd_seen_interrupt(const struct hd_graph *graph)
{
    return graph->node_count + 1;
}

/* An empty checkpoint with an id of its own. */
HD_MUST_CHECK int hd_live_init(struct hd_live *live, const struct hd_graph *graph);
void hd_live_fini(struct hd_live *live);
bool hd_live_has_versions(const struct hd_live *live);
bool hd_live_any_updated(const struct hd_live *live);

/* NULL: not seen. */
struct hd_val *hd_seen_get(const struct hd_seen *seen, size_t channel);
HD_MUST_CHECK int hd_seen_put(struct hd_seen *seen, size_t channel, const struct hd_val *version);
/* a > b; NULL is less than all. */
bool hd_version_after(const struct hd_val *a, const struct hd_val *b);
/* The version after all of the checkpoint's. */
HD_MUST_CHECK struct hd_val *hd_version_next(const struct hd_live *live);

/*
 * Fills an empty live checkpoint, and `pends` with its writes, from what is stored. `growing`, by
 * channel, has the values that were not read, and gets the others; NULL: everything was read.
 */
HD_MUST_CHECK int hd_live_load(struct hd_live *live, struct hd_pends *pends,
                               struct hd_growing *growing, const struct heddle_tuple *tuple,
                               struct hd_fault *fault);
/* Gives it a new id, which sorts behind the one it has and behind live->floor, and a new time. */
void hd_live_renew(struct hd_live *live, int step);
/* Raises a floor to an id that sorts behind it. */
void hd_floor_raise(char floor[HD_UUID_SIZE], struct hd_slice id);
/* The checkpoint as JSON, without values. */
HD_MUST_CHECK int hd_live_write(const struct hd_live *live, struct hd_buf *out);

/* Whether the channel has something that the node has not seen. */
bool hd_live_is_news(const struct hd_live *live, const struct hd_node *node, size_t channel);

/* The values of the channels, those that have one, in order; `indexes` NULL: the state's. */
HD_MUST_CHECK struct hd_val *hd_live_read(const struct hd_live *live, const size_t *indexes,
                                          size_t count);

/* ---- apply.c ---------------------------------------------------------- */

/* Writes of one task, as the end of a superstep sees them. */
struct hd_applied {
    size_t row; /* in live->seen */
    bool bumps; /* has triggers */
    const size_t *triggers;
    size_t trigger_count;
    const struct hd_writes *writes;
    /* Order: input, updates, pulled nodes by name, pushed ones by index. */
    int rank;
    struct hd_slice name;
    size_t index;
};

/*
 * Ends a superstep: marks what was seen, empties what was consumed, reduces the
 * writes into the channels. With `is_versioned` false no version changes, as for
 * looking only. `updated` (by channel, zeroed before) says what changed; may be NULL.
 * HD_EINVAL: a channel refuses, with the reason in `failure`.
 */
HD_MUST_CHECK int hd_apply(struct hd_live *live, struct hd_applied *list, size_t count,
                           bool is_versioned, bool *updated, struct hd_failure *failure);

/* ---- tasks: tasks.c --------------------------------------------------- */

#define HD_PULL SIZE_MAX

enum hd_task_status {
    HD_TASK_READY,
    HD_TASK_RUNNING,
    HD_TASK_DONE, /* its writes are there: of this run, or of one before */
    HD_TASK_ASKING,
    HD_TASK_FAILED,
    HD_TASK_CANCELLED,
    HD_TASK_LEFT /* its command is for a graph around */
};

struct hd_task {
    struct hd_loop *loop; /* NULL: only looked at */
    const struct hd_graph *graph;
    const struct hd_node *node;
    char id[HD_UUID_SIZE];
    size_t push;          /* index of the send, or HD_PULL */
    struct hd_val *arg;   /* of the send */
    struct hd_val *input; /* made when somebody asks: hd_task_input() */
    struct hd_writes writes;
    enum hd_task_status status;
    bool has_written; /* the loop's pends may have writes of it */

    /* at work */
    struct hd_val **channels; /* what expressions see; by channel of the state */
    struct hd_val *resume;    /* list of answers it has */
    size_t asked;             /* interrupts so far, in this attempt */
    size_t subgraph_count;
    int attempts;
    bool was_retried;
    struct hd_val *questions; /* ASKING: list of interrupt records */
    struct hd_failure failure;
    struct hd_val *command; /* LEFT: update and goto for the graph around */
    uv_timer_t *timer;      /* of the kind, or between attempts */
    uv_timer_t *deadline;
    void (*on_timer)(struct hd_task *task);
    void *work;            /* the kind's own */
    struct hd_loop *inner; /* subgraph */
    int64_t began_us;      /* the attempt */
    /* Ids that the events mode shows, of the task and of the model it calls; empty: not yet. */
    char trace[HD_UUID_SIZE];
    char call_trace[HD_UUID_SIZE];
};

struct hd_tasks {
    struct hd_task **list;
    size_t count;
    size_t cap;
};

/*
 * The tasks that follow from a checkpoint. `uses_updated`: look only at nodes that
 * live->updated can start.
 */
HD_MUST_CHECK int hd_tasks_prepare(struct hd_tasks *tasks, const struct hd_live *live,
                                   struct hd_slice ns, int64_t step, bool uses_updated);
void hd_tasks_fini(struct hd_tasks *tasks);
struct hd_task *hd_tasks_find(const struct hd_tasks *tasks, const char *id);
/* In the order in which states show them: sends, then nodes as they were declared. */
void hd_tasks_sort(struct hd_tasks *tasks);

/* Its id, as a runtime makes it: JavaScript from the first of its triggers that has news. */
HD_MUST_CHECK int hd_task_js_id(const struct hd_task *task, const struct hd_live *live,
                                struct hd_slice ns, int64_t step, size_t trigger,
                                char out[HD_UUID_SIZE]);
HD_MUST_CHECK int hd_task_id(const struct hd_task *task, const struct hd_live *live,
                             struct hd_slice ns, int64_t step, enum hd_graph_ids ids,
                             char out[HD_UUID_SIZE]);
HD_MUST_CHECK struct hd_val *hd_task_input(struct hd_task *task, const struct hd_live *live);
/* `parent|node:id` */
HD_MUST_CHECK int hd_task_ns(const struct hd_task *task, struct hd_slice parent,
                             struct hd_buf *out);
/* The path as it is stored, and as clients see it. */
HD_MUST_CHECK int hd_task_path(const struct hd_task *task, struct hd_buf *out);
HD_MUST_CHECK struct hd_val *hd_task_path_val(const struct hd_task *task);
/* The channels that triggered it, sorted; `__pregel_push` for sends. */
HD_MUST_CHECK struct hd_val *hd_task_triggers(const struct hd_task *task);
/* Whether it runs a graph that has checkpoints. */
bool hd_node_has_states(const struct hd_node *node);
struct hd_applied hd_task_applied(const struct hd_task *task);

/* XXH3-128 of the text, 32 hexadecimal digits. */
void hd_hash_hex(struct hd_slice text, char out[33]);

/* ---- what the stored writes say about tasks: task_status.c ------------------- */

/* Output writes of a task, in order, are appended. */
HD_MUST_CHECK int hd_status_output(const struct hd_pends *pends, const char *task,
                                   struct hd_writes *out);
bool hd_status_is_finished(const struct hd_pends *pends, const char *task);
/* List of the interrupts that a task asked last; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_status_interrupts(const struct hd_pends *pends, const char *task);
/* Borrowed; NULL: none. */
struct hd_val *hd_status_error(const struct hd_pends *pends, const char *task);
/* How many different questions wait for an answer; the ids as a list when `out` is given. */
HD_MUST_CHECK int hd_status_pending(const struct hd_pends *pends, size_t *count);
/* `tasks` of a state and of checkpoint events share this: output as one object. */
HD_MUST_CHECK struct hd_val *hd_status_result(const struct hd_graph *graph,
                                              const struct hd_writes *writes, const size_t *indexes,
                                              size_t count);

/* ---- engine, saving: save.c ------------------------------------------- */

struct hd_save;

struct hd_engine {
    struct heddle *store;
    uv_loop_t *uv;
    bool is_direct;
    uv_async_t async;
    uv_prepare_t sender; /* starts the store on what was queued in this turn of the loop */
    unsigned open_handles;
    uv_mutex_t lock;
    struct hd_save *finished; /* by other threads; newest first */
    struct hd_save *spare;    /* for reuse */
    unsigned spare_count;
    size_t in_flight;
    void *http;                         /* struct hd_client, when one was needed */
    const struct hd_outgoing *outgoing; /* where it may send to; NULL: anywhere */
    struct hd_recall *recall;
    struct hd_patience *patience; /* with a store that is away; NULL: none */
    void *agents; /* what the kinds of src/agent share: theirs alone; NULL: nothing yet */
};

/* For requests to other servers; made when it is first asked for. NULL: no memory. */
struct hd_client *hd_engine_http(struct hd_engine *engine);

/* Loads: `done` is called later, or before it returns when the store is direct. */
typedef void (*hd_loaded_fn)(struct hd_loop *loop, int err, const char *text);

struct hd_load {
    struct heddle_tuple *tuple;  /* NULL: there is none */
    bool is_superseded;          /* an id was asked for and the thread has moved on */
    char greatest[HD_UUID_SIZE]; /* an id was asked for: the greatest id of the namespace */
};

HD_MUST_CHECK int hd_load_start(struct hd_loop *loop, struct hd_slice id, struct hd_slice before,
                                hd_loaded_fn done);

/* Stores the loop's checkpoint after those before it; values of changed channels. */
HD_MUST_CHECK int hd_save_checkpoint(struct hd_loop *loop);
/* Stores writes of a task of the current checkpoint; does not wait for anything. */
HD_MUST_CHECK int hd_save_writes(struct hd_loop *loop, const char *task, const char *path,
                                 const struct hd_write *list, size_t count);

/* Encodes a checkpoint's changed values and writes (shared with state.c). */
struct hd_packed {
    struct hd_buf text;
    struct heddle_value *values;
    struct hd_growth **growths; /* by value: a list that has grown, else NULL */
    size_t value_count;
    struct hd_outline outline;
    void *outline_memory;
    struct hd_val *other_versions; /* holds names of the outline */
};
/*
 * `growing`, by channel, knows what was saved before; NULL: nothing does. `new_versions` NULL: they
 * are in the outline, without its run_id.
 */
HD_MUST_CHECK int hd_pack_values(struct hd_packed *packed, const struct hd_live *live,
                                 struct hd_val *const *previous, struct hd_growing *growing,
                                 struct hd_buf *new_versions);
HD_MUST_CHECK int hd_pack_writes(struct hd_packed *packed, const struct hd_graph *graph,
                                 const struct hd_write *list, size_t count);
void hd_packed_fini(struct hd_packed *packed);

/* ---- loops: loop.c, loop_input.c ------------------------------------------- */

enum hd_loop_status {
    HD_LOOP_LOADING,
    HD_LOOP_RUNNING,
    HD_LOOP_ENDING, /* waits for saves */
    HD_LOOP_ENDED
};

enum hd_loop_end {
    HD_END_DONE,
    HD_END_INTERRUPTED,
    HD_END_FAILED,
    HD_END_LEFT, /* a command for a graph around */
    HD_END_CANCELLED
};

/* Subgraphs of a replayed run look for what was there before; each node once. */
struct hd_replay {
    char id[HD_UUID_SIZE];
    struct hd_val *visited; /* list of strings */
};

struct hd_loop {
    struct hd_run *run;
    struct hd_task *outer; /* whose subgraph it is; NULL: the root */
    const struct hd_graph *graph;
    char *place;            /* the namespace as it is stored */
    char *ns;               /* the same, relative to the run's root: the end of `place` */
    struct hd_val *parents; /* checkpoint_map of the graphs around; object */
    bool saves;             /* false: no memory */
    bool has_checkpoint_id; /* the run addressed a checkpoint */
    bool sees_replay;       /* uses run->replay */
    /* What the graph around says about resuming: -1 nothing, 0 no, 1 yes. */
    int resuming;

    enum hd_loop_status status;
    enum hd_loop_end end;
    struct hd_load load;
    struct hd_live live;
    struct hd_pends pends;
    bool has_old_pends;             /* some were there when it was loaded */
    struct hd_origin *origin;       /* of the checkpoint that was loaded; NULL: nobody wants it */
    struct hd_val **saved_versions; /* of the last checkpoint that was stored */
    struct hd_growing *growing;     /* by channel: lists as they were stored last */
    struct hd_val *metadata;        /* of the checkpoint; object */
    char saved_id[HD_UUID_SIZE];    /* the checkpoint that was loaded or stored last; empty: none */
    char parent_id[HD_UUID_SIZE];   /* its parent's; empty: none */
    char loaded_id[HD_UUID_SIZE];   /* what was found at the beginning, also when it was made up */
    int64_t step, stop;
    int64_t recursion_limit; /* supersteps; a subgraph may have one of its own */
    bool is_replaying;
    bool has_stored; /* there is a checkpoint with saved_id */
    bool has_tasks;  /* `tasks` are those of the checkpoint it stands on */
    struct hd_tasks tasks;
    struct hd_val *null_resume; /* the answer that came with this tick, for whoever asks first */
    bool null_resume_used;

    size_t running;
    bool is_advancing;
    bool is_starting;
    bool is_working;           /* the tasks of a superstep were started and not yet looked at */
    struct hd_val *latest;     /* the last values event (subgraphs) */
    struct hd_val *interrupts; /* list */
    struct hd_failure failure;
    struct hd_val *command; /* LEFT */
    struct hd_val *input;   /* what it was started with; NULL: none */
    struct hd_val *input_command;

    struct hd_write_chain train;   /* its checkpoints, in order */
    size_t saving;                 /* calls on the store under way */
    char (*written)[HD_UUID_SIZE]; /* tasks that wrote in this run: exit mode */
    size_t written_count, written_cap;
    struct hd_failure save_failure;
    bool is_given_up;         /* cancelled: ends when its saves are done */
    bool is_settled;          /* its last task ended with what it had, and the step is whole */
    int64_t settled_at;       /* then: that step */
    char trace[HD_UUID_SIZE]; /* its id in the events mode; empty: not yet */
    uv_idle_t *pause;         /* lets others have the loop after many steps without waiting */

    void (*on_end)(struct hd_loop *loop);
};

struct hd_run {
    struct hd_engine *engine;
    struct hd_run_options options; /* slices and values are the run's own */
    struct hd_loop *root;
    char floor[HD_UUID_SIZE]; /* the greatest id of what it has read and made so far */
    int64_t recursion_limit;
    struct hd_val *resume_map; /* object: interrupt id to answer; NULL: none */
    struct hd_replay *replay;
    struct hd_val *seen_messages; /* object: ids that the messages mode has shown */
    bool is_cancelled;
    bool is_settling; /* hd_run_stop() */
    bool is_held;     /* hd_run_hold() */
    /* What it has under way with other servers, and what is done about that when it is held. */
    struct hd_agent_exchange *exchanges;
    void (*on_hold)(struct hd_run *run);
    int64_t piece_count;  /* of messages that models have sent */
    struct hd_val *tools; /* list: the names of tools at work; NULL: none yet */
    /* What the kinds of src/agent keep for the run; `free_agent` is called when it is over. */
    void *agent;
    void (*free_agent)(void *agent);
    int telling;        /* calls of on_event that have not returned */
    uv_timer_t starter; /* begins it, or cancels it when that was asked for while telling */
};

HD_MUST_CHECK int hd_loop_create(struct hd_run *run, struct hd_task *outer,
                                 const struct hd_graph *graph, const char *ns,
                                 struct hd_loop **out);
void hd_loop_destroy(struct hd_loop *loop);
/* Begins with the input (taken; NULL: none) or command. on_end is called once, maybe at once. */
void hd_loop_start(struct hd_loop *loop, struct hd_val *input, struct hd_val *command);
void hd_loop_cancel(struct hd_loop *loop);
/* The same when nobody waits for it any more: it goes when what it has to store is stored. */
void hd_loop_abandon(struct hd_loop *loop);
/* Does what can be done; the loop may be gone afterwards. */
void hd_loop_advance(struct hd_loop *loop);
/* A task has ended: goes on when it was the last. */
void hd_loop_ended_task(struct hd_loop *loop, const struct hd_task *task);
/* A save has ended. */
void hd_loop_saved(struct hd_loop *loop);
/* loop_input.c: applies the input, the command or what a resume means. */
HD_MUST_CHECK int hd_loop_first(struct hd_loop *loop, struct hd_val *input, struct hd_val *command);
/* `task` NULL: the run's own writes. */
HD_MUST_CHECK int hd_loop_put_writes(struct hd_loop *loop, struct hd_task *task,
                                     const struct hd_write *list, size_t count);
/* Exit mode: what the tasks of the last step have left. */
HD_MUST_CHECK int hd_loop_put_pending(struct hd_loop *loop);
/* It ends like that, as soon as everything is stored. */
void hd_loop_finish(struct hd_loop *loop, enum hd_loop_end end);
/* The writes of a task as events. */
HD_MUST_CHECK int hd_loop_output_writes(struct hd_loop *loop, struct hd_task *task,
                                        const struct hd_writes *writes, bool is_cached);
/* `source` NULL: the end of a run in exit mode. */
HD_MUST_CHECK int hd_loop_put_checkpoint(struct hd_loop *loop, const char *source);
struct hd_slice hd_loop_ns(const struct hd_loop *loop);
/* Whether another run can go on with the lists of this one, and where they belong. */
bool hd_loop_is_recalled(const struct hd_loop *loop);
struct hd_recall_key hd_loop_recall_key(const struct hd_loop *loop);
/* Where its checkpoints are stored. */
struct hd_slice hd_loop_place(const struct hd_loop *loop);
HD_MUST_CHECK int hd_loop_emit_values(struct hd_loop *loop);
/* The channels that values and updates show. */
const size_t *hd_loop_output(const struct hd_loop *loop, size_t *count);

/* command.c */
HD_MUST_CHECK int hd_command_writes(const struct hd_graph *graph, const struct hd_val *command,
                                    struct hd_writes *out, struct hd_failure *failure);
/* The sends of a fanout. */
HD_MUST_CHECK int hd_fanout_writes(const struct hd_graph *graph, const struct hd_fanout *fanout,
                                   const struct hd_scope *scope, struct hd_writes *out);
/*
 * What a node that ends writes: its update (an object, or NULL), its goto (a list, or
 * NULL), its edges, its branches.
 */
HD_MUST_CHECK int hd_node_writes(const struct hd_graph *graph, const struct hd_node *node,
                                 const struct hd_live *live, const struct hd_scope *scope,
                                 const struct hd_val *update, const struct hd_val *go,
                                 struct hd_writes *out, struct hd_failure *failure);

/* ---- tasks at work: task.c -------------------------------------------- */

void hd_task_start(struct hd_task *task);
/* Stops it without a word. */
void hd_task_stop(struct hd_task *task);

/* For the kinds. All end the task's work; later calls for the same attempt are ignored. */

/* Takes both; NULL: none. `to_parent`: a command for the graph around. */
void hd_task_finish(struct hd_task *task, struct hd_val *update, struct hd_val *go, bool to_parent);
/* Ends it without any write, those of its edges included: nothing follows from it. */
void hd_task_rest(struct hd_task *task);
void hd_task_fail(struct hd_task *task, const char *type, const char *fmt, ...) HD_PRINTF(3, 4);
void hd_task_fail_code(struct hd_task *task, int err, const struct hd_fault *fault);
void hd_task_fail_text(struct hd_task *task, struct hd_slice type, struct hd_slice text);
/* Takes. */
void hd_task_ask(struct hd_task *task, struct hd_val *interrupts);

/* For the kinds, while they work. */

/* What expressions of the node see; borrows from the task. */
struct hd_scope hd_task_scope(struct hd_task *task);
/* The answer to the next question: 0 and a borrowed value, or HD_ENOTFOUND. */
HD_MUST_CHECK int hd_task_answer(struct hd_task *task, struct hd_val **out);
/* The question as an interrupt record; takes `value`. */
HD_MUST_CHECK struct hd_val *hd_task_question(struct hd_task *task, struct hd_val *value);
void hd_task_emit(struct hd_task *task, const struct hd_val *value);
/* What a model says: whole, or a piece of it. `model` is its name. */
void hd_task_message(struct hd_task *task, const char *model, const struct hd_val *message);
/*
 * A model is called, or (`answer` given) has answered. `id`, at most 36 characters, is
 * what the call is known by; NULL: any.
 */
void hd_task_call(struct hd_task *task, const char *model, const char *id,
                  const struct hd_val *messages, const struct hd_val *answer);
/*
 * A tool is called, or (`output` given) has answered, or (`is_error`) has failed: `output` is its
 * message. `id` is the call's.
 */
void hd_task_tool(struct hd_task *task, struct hd_slice name, struct hd_slice id,
                  const struct hd_val *input, const struct hd_val *output, bool is_error);
/* The values of the questions it asked last, before it was resumed: a list; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_task_asked(const struct hd_task *task);
/* Calls `fn` after so long; one at a time. */
HD_MUST_CHECK int hd_task_wait(struct hd_task *task, int64_t ms, void (*fn)(struct hd_task *));
/* Evaluates the update and the goto (each may be NULL) and finishes. */
void hd_task_finish_exprs(struct hd_task *task, const struct hd_scope *scope,
                          const struct hd_expr *update, const struct hd_expr *go, bool to_parent);

/* resume.c */
HD_MUST_CHECK int hd_resume_prepare(struct hd_task *task);
bool hd_is_interrupt_id(struct hd_slice text);

/* events.c */
void hd_emit(struct hd_loop *loop, const struct hd_event *event);
static inline bool hd_run_listens(const struct hd_run *run)
{
    return run->options.on_event != NULL;
}

#endif
