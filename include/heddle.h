/*
 * libheddle: checkpoints of agent conversations, in memory, SQLite or PostgreSQL.
 *
 * A store holds *threads*. A thread holds, for each *namespace* (`ns`, "" for the root graph), a
 * tree of *checkpoints*; a checkpoint names its parent. The state of a checkpoint is a set of
 * *channel values*, each `(type, bytes)` and opaque to the library, visible at exactly the version
 * the checkpoint names. *Writes* are the values that the tasks of a checkpoint have
 * produced.
 *
 * Ids, namespaces, channels and task ids are arbitrary bytes; their order is byte order. Values
 * share storage: a conversation that is saved many times is stored once.
 *
 * The latest checkpoint of a namespace is the one with the greatest id. Ids come from clocks, and
 * clocks step back: a checkpoint may have a smaller id than its parent and is still newer than its
 * parent. So if the greatest id has descendants, the latest is the greatest of those, and so on.
 * Lists have the same order: a checkpoint comes before its ancestors. If every id is greater than
 * its parent's id, this is the order of the ids.
 *
 * Ownership. Arguments are borrowed for the call (for the `_async` calls: until `done` is called).
 * Results belong to a result object (heddle_tuple, heddle_list, …), are valid until that object is
 * freed, and must not be changed.
 *
 * Threads. A store may be used from any number of threads at once. Writes that arrive together are
 * committed together (group commit). A call that returned 0 is durable, unless the store was opened
 * with `durability=relaxed`.
 *
 * Errors. Calls return 0 or a negative HEDDLE_E… code and, when `error` is not NULL, a sentence in
 * error->text. A call that failed has changed nothing, with two exceptions: retention that works
 * thread by thread (see there), and a commit whose reply was lost with the machine or the
 * connection (HEDDLE_EIO, HEDDLE_EUNAVAILABLE), which may or may not have happened. Every call may
 * be repeated.
 *
 * See examples/remember.c for a complete program.
 */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default) /* all other symbols of the library are hidden */
#endif

#define HEDDLE_VERSION "0.1.0"

enum heddle_code {
    HEDDLE_OK = 0,
    HEDDLE_ENOMEM = -1,
    HEDDLE_ENOTFOUND = -2,
    HEDDLE_ECONFLICT = -3,
    HEDDLE_EINVAL = -4,
    HEDDLE_ELIMIT = -5,
    HEDDLE_EIO = -6,
    HEDDLE_EFULL = -7,
    HEDDLE_ECORRUPT = -8,
    HEDDLE_EVERSION = -9,
    HEDDLE_EBUSY = -10,
    HEDDLE_EUNAVAILABLE = -11,
    HEDDLE_EEXISTS = -12,
    HEDDLE_EUNSUPPORTED = -13,
    HEDDLE_ECLOSED = -14,
    HEDDLE_EACCESS = -15,
    HEDDLE_ETAKEN = -16 /* another server has taken over the thread */
};

struct heddle_error {
    int code;
    char text[252]; /* NUL-terminated */
};

/* The fixed text of a code, such as "out of memory". */
const char *heddle_error_text(int code);

/* Borrowed bytes. data may be NULL when len is 0. */
struct heddle_bytes {
    const void *data;
    size_t len;
};

/* ---- opening ---------------------------------------------------------- */

struct heddle;

/*
 * Opens a store and creates the database or its tables when they are missing:
 *
 *   memory:                        lost when closed
 *   sqlite:PATH                    PATH absolute or relative; sqlite::memory: works too
 *   postgresql://user@host/db      or postgres://; any libpq URL
 *
 * Parameters are appended as ?name=value&…:
 *
 *   durability=full|relaxed   relaxed: an acknowledged write survives a crash of
 *                             the process but not of the machine; much faster
 *   max_value=BYTES           largest channel value or write (default 256 MiB)
 *   pool=N                    PostgreSQL: connections at most (default 4)
 *   schema=NAME               PostgreSQL: schema that holds the tables (default heddle)
 *   timeout=SECONDS           how long to wait for a locked or unreachable database (default 10)
 *
 * Other parameters of a postgresql URL are passed to libpq.
 */
int heddle_open(struct heddle **out, const char *url, struct heddle_error *error);

/*
 * Waits for asynchronous calls and deferred work, then closes the store. No other thread may be
 * inside a call on the store, or make one later. `store` may be NULL.
 */
void heddle_close(struct heddle *store);

/* ---- writing ---------------------------------------------------------- */

/*
 * Identifies a thread. `principal` separates the threads of different users: the same thread id
 * under two principals is two threads. Leave it empty when there is only one user. It must not
 * contain ':'.
 */
struct heddle_thread {
    struct heddle_bytes principal;
    struct heddle_bytes id;
};

struct heddle_value {
    struct heddle_bytes channel;
    struct heddle_bytes type; /* the serializer's tag, such as "hd1", "msgpack", "json" */
    struct heddle_bytes data;
};

struct heddle_checkpoint {
    struct heddle_thread thread;
    struct heddle_bytes ns;
    struct heddle_bytes id;     /* not empty */
    struct heddle_bytes parent; /* empty: no parent */

    /*
     * The checkpoint as a JSON object without channel_values; stored verbatim. Its
     * "channel_versions" (channel to string or number) selects the visible value of each channel.
     */
    struct heddle_bytes checkpoint;
    struct heddle_bytes metadata; /* JSON object, stored verbatim; "run_id" is indexed */

    /*
     * JSON object: the channels that changed and their new versions. A channel
     * named here without a value in `values` is empty at that version. Values
     * of channels not named here are ignored; unchanged channels keep the value
     * that their version had in the parent (or else anywhere in the namespace).
     */
    struct heddle_bytes new_versions;
    const struct heddle_value *values;
    size_t value_count;
};

/* A second put of the same id replaces the first. */
int heddle_put(struct heddle *store, const struct heddle_checkpoint *checkpoint,
               struct heddle_error *error);

struct heddle_writes {
    struct heddle_thread thread;
    struct heddle_bytes ns;
    struct heddle_bytes checkpoint_id; /* not empty; need not exist yet */
    struct heddle_bytes task_id;
    struct heddle_bytes task_path;
    const struct heddle_value *values; /* in order */
    size_t value_count;                /* 0: does nothing */
};

/*
 * The identity of a write is (thread, ns, checkpoint, task, idx), where idx is its position, or -1
 * for __error__, -2 __scheduled__, -3 __interrupt__, -4 __resume__. A special write replaces an
 * existing one; for the others the first write is kept.
 */
int heddle_put_writes(struct heddle *store, const struct heddle_writes *writes,
                      struct heddle_error *error);

/* ---- reading ---------------------------------------------------------- */

struct heddle_write {
    struct heddle_bytes task_id;
    struct heddle_bytes task_path;
    int64_t idx;
    struct heddle_value value;
};

/* One checkpoint with everything that belongs to it. */
struct heddle_tuple {
    struct heddle_thread thread;
    struct heddle_bytes ns;
    struct heddle_bytes id;
    struct heddle_bytes parent;        /* empty: no parent */
    struct heddle_bytes checkpoint;    /* JSON as it was put */
    struct heddle_bytes metadata;      /* JSON as it was put */
    const struct heddle_value *values; /* present channels only, in byte order of channel */
    size_t value_count;
    const struct heddle_write *writes; /* ordered by (task_id, idx) */
    size_t write_count;
    /*
     * Checkpoints with "v" below 4 keep their pending Sends in the parent's
     * writes: those on channel __pregel_tasks, ordered by (task_id, idx).
     */
    const struct heddle_write *sends;
    size_t send_count;
};

struct heddle_key {
    struct heddle_thread thread;
    struct heddle_bytes ns;
    struct heddle_bytes id; /* empty: the latest */
};

/* HEDDLE_ENOTFOUND when the checkpoint does not exist. Free the result with heddle_tuple_free(). */
int heddle_get(struct heddle *store, const struct heddle_key *key, struct heddle_tuple **out,
               struct heddle_error *error);
void heddle_tuple_free(struct heddle_tuple *tuple);

/* Leaves out values, writes and sends: ids, checkpoint and metadata only. */
enum { HEDDLE_LIST_HEADERS = 1 };

/* Selects checkpoints. Zero-initialise, then set the members that narrow the search. */
struct heddle_query {
    struct heddle_bytes principal;
    const struct heddle_bytes *thread; /* NULL: all threads of the principal */
    const struct heddle_bytes *ns;     /* NULL: all namespaces */
    const struct heddle_bytes *id;     /* NULL: all checkpoints */
    const struct heddle_bytes *before; /* NULL, or only checkpoints older than this id */
    /* JSON object that the metadata must contain; empty: no filter */
    struct heddle_bytes filter;
    int64_t limit; /* negative: no limit */
    int flags;
};

struct heddle_list;

/*
 * Newest first, across threads and namespaces. If several namespaces are listed, `before` compares
 * ids alone.
 */
int heddle_list_open(struct heddle *store, const struct heddle_query *query,
                     struct heddle_list **out, struct heddle_error *error);

/*
 * The next checkpoint, valid until the following call; HEDDLE_ENOTFOUND at the end. Skips
 * checkpoints deleted since heddle_list_open().
 */
int heddle_list_next(struct heddle_list *list, const struct heddle_tuple **out,
                     struct heddle_error *error);
void heddle_list_close(struct heddle_list *list);

/*
 * Delta channels: the writes to replay to rebuild them at a checkpoint. Starts at the parent of
 * `key` and follows parents. For each channel: its writes, oldest checkpoint first and (task_path,
 * task_id, idx) within one, back to the nearest ancestor that holds a value (the seed; that
 * ancestor's writes included).
 */
struct heddle_history {
    struct heddle_bytes channel;
    const struct heddle_value *seed; /* NULL: reached the first checkpoint without one */
    const struct heddle_write *writes;
    size_t write_count;
};

struct heddle_histories {
    const struct heddle_history *channels; /* one for each requested channel, in that order */
    size_t channel_count;
};

int heddle_delta_history(struct heddle *store, const struct heddle_key *key,
                         const struct heddle_bytes *channels, size_t channel_count,
                         struct heddle_histories **out, struct heddle_error *error);
void heddle_histories_free(struct heddle_histories *histories);

/* ---- threads and retention -------------------------------------------- */

struct heddle_thread_info {
    struct heddle_thread thread;
    int64_t created_at_us; /* since 1970 */
    int64_t updated_at_us; /* the last put */
};

struct heddle_threads {
    const struct heddle_thread_info *threads;
    size_t count;
};

/*
 * Threads of a principal in byte order of id, at most `limit` after the id
 * `after` (empty: from the start).
 */
int heddle_list_threads(struct heddle *store, struct heddle_bytes principal,
                        struct heddle_bytes after, size_t limit, struct heddle_threads **out,
                        struct heddle_error *error);
void heddle_threads_free(struct heddle_threads *threads);

struct heddle_usage {
    int64_t checkpoints;
    int64_t writes;
    int64_t chunks;
    int64_t bytes; /* stored, keys included, before the database's own overhead */
};

/* All zero for a thread that does not exist. */
int heddle_thread_usage(struct heddle *store, const struct heddle_thread *thread,
                        struct heddle_usage *out, struct heddle_error *error);

/* Deleting a thread that does not exist is not an error. */
int heddle_delete_thread(struct heddle *store, const struct heddle_thread *thread,
                         struct heddle_error *error);

/*
 * Deletes the checkpoints whose metadata has one of these run ids, and their
 * writes, in any thread of the principal. All or nothing for each thread; after
 * an error some threads may be done, and calling it again completes the rest.
 */
int heddle_delete_runs(struct heddle *store, struct heddle_bytes principal,
                       const struct heddle_bytes *run_ids, size_t run_count,
                       struct heddle_error *error);

/*
 * Copies a thread. In the metadata of each checkpoint a `thread_id` equal to the source's id
 * becomes the target's id; everything else is the same.
 *
 * HEDDLE_EEXISTS when the target thread exists already, even if it is empty. A source that does not
 * exist copies nothing. HEDDLE_EBUSY when the source changes too fast to read one consistent state
 * of it.
 */
int heddle_copy_thread(struct heddle *store, const struct heddle_thread *source,
                       const struct heddle_thread *target, struct heddle_error *error);

enum heddle_prune {
    /*
     * Keeps, in each namespace, the latest checkpoint, its writes, and the chain its delta channels
     * need.
     */
    HEDDLE_KEEP_LATEST,
    HEDDLE_DELETE_ALL,
    /*
     * Keeps, in each namespace, the heads (checkpoints without children, and those in `heads`), the
     * last `keep_last` checkpoints of each branch that ends in a head, fork points, and every
     * ancestor that one of these needs. The parent of a kept checkpoint becomes its nearest kept
     * ancestor. Checkpoints of a subgraph's task stay or go with the checkpoint that the task
     * belongs to. Other writers may be active. A caller that is about to continue from the middle
     * of a branch lists that checkpoint in `heads`.
     */
    HEDDLE_KEEP_BRANCHES
};

/*
 * All or nothing for each thread (with HEDDLE_KEEP_BRANCHES: for each few hundred checkpoints of
 * it); after an error some threads may be done, and calling it again completes the rest.
 */
int heddle_prune(struct heddle *store, const struct heddle_thread *threads, size_t thread_count,
                 enum heddle_prune strategy, struct heddle_error *error);

/* Zero-initialise, then set the members needed. */
struct heddle_prune_options {
    enum heddle_prune strategy;
    size_t keep_last;               /* HEDDLE_KEEP_BRANCHES: 0 means 1 */
    const struct heddle_key *heads; /* checkpoints to keep, of any of the threads */
    size_t head_count;
    int dry_run; /* not 0: counts the rows it would delete and changes nothing */
};

/*
 * As heddle_prune(), with options. If `removed` is not NULL, it receives the totals of the removed
 * rows over all threads (with dry_run: of the rows that would be removed).
 */
int heddle_prune_with(struct heddle *store, const struct heddle_thread *threads,
                      size_t thread_count, const struct heddle_prune_options *options,
                      struct heddle_usage *removed, struct heddle_error *error);

/* Returns free space to the file system if the database holds it (SQLite). May take long. */
int heddle_compact(struct heddle *store, struct heddle_error *error);

/*
 * Reads everything and reports the first damage found: the database's own
 * integrity check, then every value against its checksum.
 */
int heddle_check(struct heddle *store, struct heddle_error *error);

/* ---- for callers with an event loop ----------------------------------- */

/*
 * Called exactly once, on another thread (one of the store's, or that of a
 * caller whose write was committed in the same group), and never from inside
 * the call that started the work. It should only hand over (uv_async_send, a
 * pipe, call_soon_threadsafe). `error` is valid during the call. A call that
 * returned an error never calls it.
 */
typedef void (*heddle_done)(void *arg, int code, const struct heddle_error *error);

/* The input, and everything it points to, must stay unchanged until `done`. */
int heddle_put_async(struct heddle *store, const struct heddle_checkpoint *checkpoint,
                     heddle_done done, void *arg);
int heddle_put_writes_async(struct heddle *store, const struct heddle_writes *writes,
                            heddle_done done, void *arg);

/*
 * Runs work(arg) on a thread of the store, where it may make any blocking call; `work` signals its
 * completion itself.
 */
int heddle_defer(struct heddle *store, void (*work)(void *arg), void *arg);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
