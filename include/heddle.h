/*
 * libheddle: checkpoints of agent conversations, in memory, SQLite or PostgreSQL.
 *
 * A store holds *threads*. A thread holds, for each *namespace* (`ns`, "" for
 * the root graph), a tree of *checkpoints*; a checkpoint names its parent. The
 * state of a checkpoint is a set of *channel values*, each `(type, bytes)` and
 * opaque to the library, visible at exactly the version the checkpoint names.
 * *Writes* are what the tasks of a checkpoint have produced so far.
 *
 * Ids, namespaces, channels and task ids are arbitrary bytes; their order is
 * byte order. Values are shared underneath: a conversation costs what was said,
 * however often it is saved.
 *
 * The latest checkpoint of a namespace is the one with the greatest id. Ids come
 * from clocks, and clocks step back: a checkpoint whose id is less than that of
 * its parent is newer than its parent all the same. So if the greatest id has
 * descendants, the latest is the greatest of those, and so on. Lists have the
 * same order: a checkpoint comes before its ancestors. Where every id is greater
 * than that of its parent, this is the order of the ids.
 *
 * Ownership. Everything passed in is borrowed for the call (for the `_async`
 * calls: until `done` is called). Everything handed out belongs to an answer
 * object (heddle_tuple, heddle_list, …), is valid until that object is freed,
 * and must not be changed.
 *
 * Threads. A store may be used from any number of threads at once. Writes that
 * arrive together are committed together (group commit). A call that returned
 * 0 is durable, unless the store was opened with `durability=relaxed`.
 *
 * Errors. Calls return 0 or a negative HEDDLE_E… code and, when `error` is not
 * NULL, a sentence in error->text. A call that failed has changed nothing, with
 * two exceptions: retention that goes thread by thread (see there), and a commit
 * whose answer got lost with the machine or the connection (HEDDLE_EIO,
 * HEDDLE_EUNAVAILABLE), of which nobody can say. Every call may be repeated.
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
#pragma GCC visibility push(default) /* the library is built with everything else hidden */
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
    HEDDLE_EACCESS = -15
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
 * Opens, creating the database or its tables when they are missing:
 *
 *   memory:                        gone when closed
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
 *   timeout=SECONDS           how long to wait for a locked or absent database (default 10)
 *
 * Other parameters of a postgresql URL are passed to libpq.
 */
int heddle_open(struct heddle **out, const char *url, struct heddle_error *error);

/*
 * Waits for asynchronous calls and deferred work, then closes. No other thread
 * may be inside a call on the store, or make one later. NULL is fine.
 */
void heddle_close(struct heddle *store);

/* ---- writing ---------------------------------------------------------- */

/*
 * Which thread. `principal` seals threads of different users from each other:
 * the same thread id under two principals is two threads. Leave it empty when
 * there is only one user. It must not contain ':'.
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
     * The checkpoint as a JSON object without channel_values; kept verbatim.
     * Its "channel_versions" (channel to string or number) says which value of
     * each channel is visible.
     */
    struct heddle_bytes checkpoint;
    struct heddle_bytes metadata; /* JSON object, kept verbatim; "run_id" is indexed */

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
    size_t value_count;                /* 0 is fine and does nothing */
};

/*
 * The identity of a write is (thread, ns, checkpoint, task, idx), where idx is
 * its position, or -1 for __error__, -2 __scheduled__, -3 __interrupt__, -4
 * __resume__. Special ones replace what is there, the others keep the first.
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
    struct heddle_bytes parent;        /* empty: none */
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

/* HEDDLE_ENOTFOUND when there is none. Free the answer with heddle_tuple_free(). */
int heddle_get(struct heddle *store, const struct heddle_key *key, struct heddle_tuple **out,
               struct heddle_error *error);
void heddle_tuple_free(struct heddle_tuple *tuple);

/* Leaves out values, writes and sends: ids, checkpoint and metadata only. */
enum { HEDDLE_LIST_HEADERS = 1 };

/* What to list. Zero-initialise, then set what narrows the search. */
struct heddle_query {
    struct heddle_bytes principal;
    const struct heddle_bytes *thread; /* NULL: all threads of the principal */
    const struct heddle_bytes *ns;     /* NULL: all namespaces */
    const struct heddle_bytes *id;     /* NULL: all checkpoints */
    const struct heddle_bytes *before; /* NULL, or only checkpoints older than this id */
    struct heddle_bytes filter;        /* JSON object that the metadata must contain; empty: none */
    int64_t limit;                     /* negative: no limit */
    int flags;
};

struct heddle_list;

/*
 * Newest first, across threads and namespaces. Where several namespaces are
 * listed, `before` compares ids alone.
 */
int heddle_list_open(struct heddle *store, const struct heddle_query *query,
                     struct heddle_list **out, struct heddle_error *error);

/*
 * The next checkpoint, valid until the following call; HEDDLE_ENOTFOUND at the
 * end. What was deleted since heddle_list_open() is left out.
 */
int heddle_list_next(struct heddle_list *list, const struct heddle_tuple **out,
                     struct heddle_error *error);
void heddle_list_close(struct heddle_list *list);

/*
 * Delta channels: what must be replayed to rebuild them at a checkpoint. Starts
 * at the parent of `key` and follows parents. For each channel: its writes,
 * oldest checkpoint first and (task_path, task_id, idx) within one, back to the nearest
 * ancestor that holds a value (the seed; that ancestor's writes included).
 */
struct heddle_history {
    struct heddle_bytes channel;
    const struct heddle_value *seed; /* NULL: reached the first checkpoint without one */
    const struct heddle_write *writes;
    size_t write_count;
};

struct heddle_histories {
    const struct heddle_history *channels; /* one for each channel asked for, in that order */
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

/* Deleting what is not there is not an error. */
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
 * Where the metadata of a checkpoint have the source's id as `thread_id`, those of
 * the copy have the target's; everything else is the same.
 *
 * HEDDLE_EEXISTS when the target is a thread already, if only an emptied one.
 * A source that does not exist copies nothing. HEDDLE_EBUSY when the source
 * changes so fast that no whole state of it could be read.
 */
int heddle_copy_thread(struct heddle *store, const struct heddle_thread *source,
                       const struct heddle_thread *target, struct heddle_error *error);

enum heddle_prune {
    /* Per namespace the latest checkpoint, its writes, and the chain its delta channels need. */
    HEDDLE_KEEP_LATEST,
    HEDDLE_DELETE_ALL,
    /*
     * Per namespace the heads (what has no children, and what `heads` names), the last `keep_last`
     * checkpoints of each line that ends in one, fork points, and every ancestor that one of these
     * needs. A parent that goes is replaced by the nearest ancestor that stays. Checkpoints of a
     * subgraph's task stay or go with the checkpoint that the task belongs to. Others may write
     * meanwhile; who is about to go on from the middle of a line names it in `heads`.
     */
    HEDDLE_KEEP_BRANCHES
};

/*
 * All or nothing for each thread (with HEDDLE_KEEP_BRANCHES: for each few hundred checkpoints of
 * it); after an error some threads may be done, and calling it again completes the rest.
 */
int heddle_prune(struct heddle *store, const struct heddle_thread *threads, size_t thread_count,
                 enum heddle_prune strategy, struct heddle_error *error);

/* Zero-initialise, then set what is wanted. */
struct heddle_prune_options {
    enum heddle_prune strategy;
    size_t keep_last;               /* HEDDLE_KEEP_BRANCHES: 0 is 1 */
    const struct heddle_key *heads; /* checkpoints that stay, of any of the threads */
    size_t head_count;
    int dry_run; /* not 0: changes nothing, only counts what would go */
};

/* The same; *removed, unless it is NULL, says what went, or would go, of all threads together. */
int heddle_prune_with(struct heddle *store, const struct heddle_thread *threads,
                      size_t thread_count, const struct heddle_prune_options *options,
                      struct heddle_usage *removed, struct heddle_error *error);

/* Gives free space back to the file system where the database keeps it (SQLite). May take long. */
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

/* The input, and what it points to, must stay unchanged until `done`. */
int heddle_put_async(struct heddle *store, const struct heddle_checkpoint *checkpoint,
                     heddle_done done, void *arg);
int heddle_put_writes_async(struct heddle *store, const struct heddle_writes *writes,
                            heddle_done done, void *arg);

/*
 * Runs work(arg) on a thread of the store, where it may make any blocking call;
 * work tells its caller itself.
 */
int heddle_defer(struct heddle *store, void (*work)(void *arg), void *arg);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
