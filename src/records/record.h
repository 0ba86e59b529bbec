/*
 * The server's records: threads, runs, assistants, items and crons as structs.
 *
 * Reading waits for the store: for store threads. Writing appends operations to a batch, so that
 * several records change together; hd_rows_apply() applies it. A record with a `rev` is put only if
 * it has not changed since it was read. Adding and putting set the rev that it has once the batch
 * is applied; on HD_ECONFLICT the batch is not applied: read again, decide again, retry.
 *
 * The members of a record point into the arena it was read into, or are valid during the callback
 * it was passed to. A batch borrows the memory of its records until it is applied. Members called
 * JSON are kept as text, byte for byte; they must be valid JSON, and an empty slice means none.
 *
 *   record_fields.h     the field table of a record: how its members are stored
 *   record_body.c       bodies: objects with members extracted as text
 *   record_rows.c       reading, scanning and writing rows by the type of their record
 *   line.h              the agents of a thread
 *   record_thread.c record_run.c record_assistant.c record_item.c record_cron.c
 */
#ifndef HD_RECORDS_RECORD_H
#define HD_RECORDS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/run_losses.h"
#include "records/run_request.h"
#include "store/batch.h"
#include "store/guard.h"

struct heddle;

/* ---- threads ---------------------------------------------------------- */

enum hd_thread_status { HD_THREAD_IDLE, HD_THREAD_BUSY, HD_THREAD_INTERRUPTED, HD_THREAD_ERROR };

extern const char *const hd_thread_statuses[]; /* ends with NULL */
const char *hd_thread_status_name(enum hd_thread_status status);
/* False when there is no such status; *out is untouched then. */
bool hd_thread_status_find(struct hd_slice name, enum hd_thread_status *out);

/* The checkpoint with the thread's values. All empty: none. */
struct hd_head {
    struct hd_slice ns;
    struct hd_slice checkpoint_id; /* empty: the newest of the namespace */
    struct hd_slice graph_id;
    struct hd_slice assistant_id;
};

/* False for a thread without runs and states. The namespace of a head may be empty. */
bool hd_thread_head_is_set(const struct hd_head *head);

struct hd_thread_rec {
    struct hd_slice principal;
    struct hd_slice id;
    int64_t rev; /* 0: it is not stored yet */
    enum hd_thread_status status;
    int64_t created_at; /* all times in microseconds since 1970 */
    int64_t updated_at;
    int64_t state_updated_at;
    int64_t expires_at;       /* 0: never */
    int64_t event_seq;        /* no event of the thread has a greater number */
    int64_t run_order;        /* the order of the last admitted run; 0: none */
    struct hd_slice last_run; /* the greatest id of its runs so far; empty: not known */
    struct hd_slice metadata; /* JSON object */
    struct hd_slice config;   /* JSON object */
    struct hd_slice ttl;      /* JSON */
    struct hd_head head;
    struct hd_slice heads;      /* JSON object: namespace to the checkpoint that a user chose */
    struct hd_slice interrupts; /* JSON object: task id to list */
    struct hd_slice error;      /* JSON */
    bool is_room;               /* it has chat messages or settings of a room (room/room.h) */
    /* While it is busy: the status and head to restore if its runs change nothing. */
    bool has_before;
    enum hd_thread_status status_before;
    struct hd_head head_before;
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/* A new thread: idle, all else 0 or empty. Borrows both. */
void hd_thread_init(struct hd_thread_rec *thread, struct hd_slice principal, struct hd_slice id);
/* HD_ENOTFOUND: it does not exist. */
HD_MUST_CHECK int hd_thread_read(struct heddle *store, struct hd_slice principal,
                                 struct hd_slice id, struct hd_arena *arena,
                                 struct hd_thread_rec *out, struct heddle_error *fault);
/* Conflicts when it exists. */
HD_MUST_CHECK int hd_thread_add(struct hd_batch_builder *batch, struct hd_thread_rec *thread);
/* Conflicts unless the stored one has thread->rev. */
HD_MUST_CHECK int hd_thread_put(struct hd_batch_builder *batch, struct hd_thread_rec *thread);
/* The key of the lane that writes to this thread, for hd_rows_apply(). */
HD_MUST_CHECK int hd_thread_lane(struct hd_arena *arena, struct hd_slice principal,
                                 struct hd_slice id, struct hd_slice *out);

/* A negative answer ends the scan with this error, a positive one without. May use the store. */
typedef int (*hd_thread_fn)(void *arg, const struct hd_thread_rec *thread);

/* All threads of a principal, by their time of creation. */
HD_MUST_CHECK int hd_threads_scan(struct heddle *store, struct hd_slice principal,
                                  bool is_newest_first, hd_thread_fn fn, void *arg,
                                  struct heddle_error *fault);
/* The same by the time of their last change. */
HD_MUST_CHECK int hd_threads_scan_updated(struct heddle *store, struct hd_slice principal,
                                          bool is_newest_first, hd_thread_fn fn, void *arg,
                                          struct heddle_error *fault);
/* All threads of all principals, by principal and id. */
HD_MUST_CHECK int hd_threads_scan_all(struct heddle *store, hd_thread_fn fn, void *arg,
                                      struct heddle_error *fault);
/* Expired threads of all principals, the first to expire first. */
HD_MUST_CHECK int hd_threads_expired(struct heddle *store, int64_t now, hd_thread_fn fn, void *arg,
                                     struct heddle_error *fault);

/* ---- runs ------------------------------------------------------------- */

/* LangGraph's words: a run that stops at a question ends with success, and its thread waits. */
enum hd_run_state {
    HD_RUN_STATE_PENDING,
    HD_RUN_STATE_RUNNING,
    HD_RUN_STATE_ERROR,
    HD_RUN_STATE_SUCCESS,
    HD_RUN_STATE_TIMEOUT,
    HD_RUN_STATE_INTERRUPTED /* cancelled */
};

const char *hd_run_state_name(enum hd_run_state state);
bool hd_run_state_find(struct hd_slice name, enum hd_run_state *out);

struct hd_run_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice run_id; /* sorts behind those of earlier runs of the thread */
    int64_t order;          /* runs of a thread begin in this order; 0: of an earlier version */
    int64_t rev;            /* 0: it is not stored yet */
    enum hd_run_state status;
    int64_t created_at;
    int64_t updated_at;
    int64_t due_at; /* not before this time; 0: it has ended */
    int attempt;    /* 1: the first */
    struct hd_run_losses losses;
    bool is_suspended;     /* its server stopped in an orderly way: that is no loss */
    struct hd_slice actor; /* the principal, or the participant, that created it */
    int64_t slot;          /* of the actor (run_slot.h); 0: none */
    struct hd_slice assistant_id;
    struct hd_slice ns; /* the root namespace, its line; empty: "", or of an earlier version */
    enum hd_multitask multitask;
    struct hd_slice metadata; /* JSON object */
    struct hd_slice kwargs;   /* JSON object */
    struct hd_slice receipt;  /* JSON: the receipt of a cancelled run; empty: not cancelled */
    struct hd_slice error;    /* JSON: the cause of a failure; empty: it has not failed */
    /* At which it ended: the last that it made or started from; empty: none, or not ended. */
    struct hd_slice checkpoint_id;
    struct hd_slice touched; /* JSON: other lines that it changed (run/line_touches.h); or empty */
    bool is_off_head;        /* it makes a branch: no head moves (run/off_head.h) */
    struct hd_slice forks;   /* off the head: JSON object: line to where its delegates begin */
    struct hd_slice asked;   /* off the head: JSON: the open interrupts that it answers; or empty */
    /* JSON: the secrets behind the markers in kwargs (secret/secret.h); never stored. */
    struct hd_slice secrets;
    struct hd_guard guard;   /* of its thread; not stored, not set: not known */
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/* Copies the record and everything it points to. */
HD_MUST_CHECK int hd_run_rec_copy(struct hd_arena *arena, const struct hd_run_rec *run,
                                  struct hd_run_rec *out);
/* HD_ENOTFOUND: it does not exist. */
HD_MUST_CHECK int hd_run_read(struct heddle *store, struct hd_slice principal,
                              struct hd_slice thread_id, struct hd_slice run_id,
                              struct hd_arena *arena, struct hd_run_rec *out,
                              struct heddle_error *fault);
/* The same without the thread id. */
HD_MUST_CHECK int hd_run_find(struct heddle *store, struct hd_slice principal,
                              struct hd_slice run_id, struct hd_arena *arena,
                              struct hd_run_rec *out, struct heddle_error *fault);
/* Conflicts when it exists. */
HD_MUST_CHECK int hd_run_add(struct hd_batch_builder *batch, struct hd_run_rec *run);
/* Conflicts unless the stored one has run->rev. */
HD_MUST_CHECK int hd_run_put(struct hd_batch_builder *batch, struct hd_run_rec *run);
HD_MUST_CHECK int hd_run_delete(struct hd_batch_builder *batch, const struct hd_run_rec *run);

/* The line of the run, in the arena; `ns` of the record, or read from the arguments. */
HD_MUST_CHECK int hd_run_line(const struct hd_run_rec *run, struct hd_arena *arena,
                              struct hd_slice *ns, struct heddle_error *fault);

/* The earliest start of a run that has not ended; 0: at once, independent of the clock. */
int64_t hd_run_not_before(const struct hd_run_rec *run);

struct hd_run_key {
    struct hd_slice principal, thread_id, run_id;
};
/*
 * The statuses of many runs, one round trip: statuses[i] is a value of enum hd_run_state, or -1 for
 * a run that does not exist.
 */
HD_MUST_CHECK int hd_run_statuses_read(struct heddle *store, const struct hd_run_key *runs,
                                       size_t count, int *statuses, struct heddle_error *fault);
/* Who made a run. */
struct hd_run_author {
    bool is_known;           /* false: the run does not exist any more */
    struct hd_slice actor;   /* as in struct hd_run_rec */
    struct hd_slice cron_id; /* empty: no cron made it */
    struct hd_slice assistant_id;
};
/* The authors of many runs, one round trip; in the arena. */
HD_MUST_CHECK int hd_run_authors_read(struct heddle *store, const struct hd_run_key *runs,
                                      size_t count, struct hd_arena *arena,
                                      struct hd_run_author *out, struct heddle_error *fault);
/* The pending and running runs of a thread: running ones first, then in their order. */
HD_MUST_CHECK int hd_runs_active(struct heddle *store, struct hd_slice principal,
                                 struct hd_slice thread_id, struct hd_arena *arena,
                                 struct hd_run_rec **out, size_t *count,
                                 struct heddle_error *fault);
/* A page of the runs of a thread, newest first; only those of `status` unless it is NULL. */
HD_MUST_CHECK int hd_runs_list(struct heddle *store, struct hd_slice principal,
                               struct hd_slice thread_id, const enum hd_run_state *status,
                               size_t offset, size_t limit, struct hd_arena *arena,
                               struct hd_run_rec **out, size_t *count, struct heddle_error *fault);

/*
 * Marks a pending run as running; one that is marked already stays as it is, since the answer to
 * the commit may have been lost. Changes `run` too: its status, rev and time. HD_ENOTFOUND: the run
 * is neither pending nor running, or not there.
 */
HD_MUST_CHECK int hd_run_mark_running(struct heddle *store, struct hd_run_rec *run,
                                      struct heddle_error *fault);

/*
 * Leaves a running run to the next process. Changes `run` too: is_suspended, rev and time.
 * HD_ENOTFOUND: it is no longer running, or does not exist.
 */
HD_MUST_CHECK int hd_run_mark_suspended(struct heddle *store, struct hd_run_rec *run,
                                        struct heddle_error *fault);

/* ---- assistants ------------------------------------------------------- */

struct hd_assistant_rec {
    struct hd_slice principal;
    struct hd_slice id;
    int64_t version; /* from 1 on */
    int64_t created_at;
    int64_t updated_at; /* of a version: when it was made */
    struct hd_slice graph_id;
    struct hd_slice name;
    struct hd_slice description; /* JSON: a string, or empty */
    struct hd_slice config;      /* JSON object */
    struct hd_slice context;     /* JSON */
    struct hd_slice metadata;    /* JSON object */
    struct hd_slice unknown;     /* members of the body that a newer version wrote */
};

HD_MUST_CHECK int hd_assistant_read(struct heddle *store, struct hd_slice principal,
                                    struct hd_slice id, struct hd_arena *arena,
                                    struct hd_assistant_rec *out, struct heddle_error *fault);
/* An assistant in one of its versions. */
HD_MUST_CHECK int hd_assistant_read_version(struct heddle *store, struct hd_slice principal,
                                            struct hd_slice id, int64_t version,
                                            struct hd_arena *arena, struct hd_assistant_rec *out,
                                            struct heddle_error *fault);
/* The greatest number of its versions, 0: none. */
HD_MUST_CHECK int hd_assistant_last_version(struct heddle *store, struct hd_slice principal,
                                            struct hd_slice id, int64_t *out,
                                            struct heddle_error *fault);
/* The assistant and its version. Conflicts when either exists. */
HD_MUST_CHECK int hd_assistant_add(struct hd_batch_builder *batch,
                                   const struct hd_assistant_rec *assistant);
/*
 * Conflicts unless the stored one has the version `from`. `is_new_version`: adds
 * assistant->version to its versions, which conflicts when it exists.
 */
HD_MUST_CHECK int hd_assistant_put(struct hd_batch_builder *batch,
                                   const struct hd_assistant_rec *assistant, int64_t from,
                                   bool is_new_version);
/* With all its versions. */
HD_MUST_CHECK int hd_assistant_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                      struct hd_slice id);

/* As hd_thread_fn. */
typedef int (*hd_assistant_fn)(void *arg, const struct hd_assistant_rec *assistant);

/* All assistants of a principal, by id. */
HD_MUST_CHECK int hd_assistants_scan(struct heddle *store, struct hd_slice principal,
                                     hd_assistant_fn fn, void *arg, struct heddle_error *fault);
/* All versions of an assistant, newest first. */
HD_MUST_CHECK int hd_assistant_versions_scan(struct heddle *store, struct hd_slice principal,
                                             struct hd_slice id, hd_assistant_fn fn, void *arg,
                                             struct heddle_error *fault);

/* ---- items ------------------------------------------------------------ */

struct hd_item_rec {
    struct hd_slice principal;
    struct hd_slice ns; /* its labels, joined by dots */
    struct hd_slice key;
    int64_t created_at;
    int64_t updated_at;
    int64_t expires_at;    /* 0: never. Expired items are invisible */
    int64_t ttl_us;        /* 0: none */
    struct hd_slice value; /* JSON object */
};

/* HD_ELIMIT: a key or namespace that no database could index. */
HD_MUST_CHECK int hd_item_check(struct hd_slice ns, struct hd_slice key,
                                struct heddle_error *fault);
HD_MUST_CHECK int hd_item_read(struct heddle *store, struct hd_slice principal, struct hd_slice ns,
                               struct hd_slice key, struct hd_arena *arena, struct hd_item_rec *out,
                               struct heddle_error *fault);
/* Replaces an existing item. */
HD_MUST_CHECK int hd_item_put(struct hd_batch_builder *batch, const struct hd_item_rec *item);
HD_MUST_CHECK int hd_item_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                 struct hd_slice ns, struct hd_slice key);

/* Sets the expiry; conflicts when the item was deleted or written since it was read. */
HD_MUST_CHECK int hd_item_refresh(struct hd_batch_builder *batch, const struct hd_item_rec *item,
                                  int64_t expires_at);
/* Deletes an expired item; conflicts when its expiry has changed. */
HD_MUST_CHECK int hd_item_expire(struct hd_batch_builder *batch, const struct hd_item_rec *item);
/* Applies refreshes, or expiries, without those that conflict. The batch may be empty. */
HD_MUST_CHECK int hd_items_apply(struct heddle *store, struct hd_slice lane_key,
                                 struct hd_batch_builder *batch, struct heddle_error *fault);

/* As hd_thread_fn. */
typedef int (*hd_item_fn)(void *arg, const struct hd_item_rec *item);
typedef int (*hd_ns_fn)(void *arg, struct hd_slice ns);

/*
 * All items in the namespace `prefix` and below it; all items when it is empty. Without
 * `with_values` values are not read, and `value` is empty.
 */
HD_MUST_CHECK int hd_items_scan(struct heddle *store, struct hd_slice principal,
                                struct hd_slice prefix, bool with_values, hd_item_fn fn, void *arg,
                                struct heddle_error *fault);
/* Every namespace once that has items, in byte order from `from` on, one read for each. */
HD_MUST_CHECK int hd_namespaces_scan(struct heddle *store, struct hd_slice principal,
                                     struct hd_slice from, hd_ns_fn fn, void *arg,
                                     struct heddle_error *fault);
/*
 * A room with more than one person remembers in its owner's compartment, below these labels (joined
 * by dots). The other function appends the deletion of all that it remembers.
 */
HD_MUST_CHECK int hd_item_room_memory(struct hd_slice thread_id, struct hd_arena *arena,
                                      struct hd_slice *out);
HD_MUST_CHECK int hd_item_room_memory_delete(struct heddle *store, struct hd_batch_builder *batch,
                                             struct hd_slice principal, struct hd_slice thread_id,
                                             struct heddle_error *fault);
/* The vectors of an item, one for each of its texts. They belong to the item's revision. */
struct hd_vectors_rec {
    struct hd_slice principal;
    struct hd_slice ns;
    struct hd_slice key;
    int64_t updated_at;   /* of the item; vectors of another time are out of date */
    int64_t dims;         /* of each vector */
    struct hd_slice data; /* float32, little endian; each of length 1 */
};

/* Replaces existing vectors. They are deleted with their item. */
HD_MUST_CHECK int hd_vectors_put(struct hd_batch_builder *batch,
                                 const struct hd_vectors_rec *vectors);
HD_MUST_CHECK int hd_vectors_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                    struct hd_slice ns, struct hd_slice key);
typedef int (*hd_vectors_fn)(void *arg, const struct hd_vectors_rec *vectors);
/* Those of the items that hd_items_scan() finds, and in its order. */
HD_MUST_CHECK int hd_vectors_scan(struct heddle *store, struct hd_slice principal,
                                  struct hd_slice prefix, hd_vectors_fn fn, void *arg,
                                  struct heddle_error *fault);

typedef int (*hd_near_fn)(void *arg, size_t which, const struct hd_vectors_rec *vectors);
/*
 * Those of them that are nearest to `vector` (packed), of its dimensions, about in this order: at
 * most `limit` right in the namespace (`which` is 0), and as many below it (1). 1: the database
 * cannot find them. `fn` must not use the store.
 */
HD_MUST_CHECK int hd_vectors_nearest(struct heddle *store, struct hd_slice principal,
                                     struct hd_slice prefix, struct hd_slice vector, size_t limit,
                                     hd_near_fn fn, void *arg, struct heddle_error *fault);

/* The name of an item. */
struct hd_item_name {
    struct hd_slice ns;
    struct hd_slice key;
};

/* As hd_items_scan(), for those of these items that exist. `fn` must not use the store. */
HD_MUST_CHECK int hd_items_pick(struct heddle *store, struct hd_slice principal,
                                const struct hd_item_name *names, size_t count, bool with_values,
                                hd_item_fn fn, void *arg, struct heddle_error *fault);

/* Expired items of all principals; `value` is empty. */
HD_MUST_CHECK int hd_items_expired(struct heddle *store, int64_t now, hd_item_fn fn, void *arg,
                                   struct heddle_error *fault);

/* ---- crons ------------------------------------------------------------ */

struct hd_cron_rec {
    struct hd_slice principal;
    struct hd_slice id;
    int64_t rev;     /* 0: it is not stored yet */
    int64_t next_at; /* 0: it does not run again, or is disabled */
    int64_t created_at;
    int64_t updated_at;
    int64_t end_at; /* 0: none */
    bool is_enabled;
    bool keeps_threads;       /* those made for its runs */
    struct hd_slice schedule; /* five fields */
    struct hd_slice timezone; /* empty: UTC */
    struct hd_slice assistant_id;
    struct hd_slice thread_id; /* empty: each run has a new thread */
    struct hd_slice metadata;  /* JSON object */
    struct hd_slice payload;   /* JSON object: the body of its runs */
    struct hd_slice unknown;   /* members of the body that a newer version wrote */
};

HD_MUST_CHECK int hd_cron_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                               struct hd_arena *arena, struct hd_cron_rec *out,
                               struct heddle_error *fault);
/* Conflicts when it exists. */
HD_MUST_CHECK int hd_cron_add(struct hd_batch_builder *batch, struct hd_cron_rec *cron);
/* Conflicts unless the stored one has cron->rev. */
HD_MUST_CHECK int hd_cron_put(struct hd_batch_builder *batch, struct hd_cron_rec *cron);
HD_MUST_CHECK int hd_cron_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                 struct hd_slice id);

/* As hd_thread_fn. */
typedef int (*hd_cron_fn)(void *arg, const struct hd_cron_rec *cron);

/* All crons of a principal, by id. */
HD_MUST_CHECK int hd_crons_scan(struct heddle *store, struct hd_slice principal, hd_cron_fn fn,
                                void *arg, struct heddle_error *fault);
/* All crons of all principals, by principal and id. */
HD_MUST_CHECK int hd_crons_scan_all(struct heddle *store, hd_cron_fn fn, void *arg,
                                    struct heddle_error *fault);
/* Crons of all principals with next_at < before, the first due first. */
HD_MUST_CHECK int hd_crons_due(struct heddle *store, int64_t before, hd_cron_fn fn, void *arg,
                               struct heddle_error *fault);

/* ---- time to live (config/ttl.h) -------------------------------------- */

/* The thread was used: sets expires_at. */
void hd_thread_touch(struct hd_thread_rec *thread, int64_t now);
/* It has expired and waits for the sweep: readers do not see it. */
bool hd_thread_is_over(const struct hd_thread_rec *thread, int64_t now);

#endif
