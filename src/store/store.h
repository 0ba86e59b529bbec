/*
 * The store behind libheddle, and how its files fit together. Reading order:
 *
 *   table.c          the tables               backend.h       the interface of a database driver
 *   split.h          where values are cut     value.h         how a value is recorded
 *   cache.h          what a writer caches     plan.c          a put as a batch of rows
 *   request.c        a request, checked       plan_value.c    a value as chunks and a reference
 *   list_append.h    lists that grow          plan_append.c   the reference of a grown list
 *   lane.c           group commit             read.c          rows as a tuple again
 *   order.h          which checkpoint is newer
 *   list.c collect.c copy.c check.c codec/delta.c   the other calls
 *   retry.h          retries after conflicts  prune.h         which checkpoints of a thread stay
 *   thread_fence.h   deletion against late writers
 *   heddle.c         the public API           rows.h          the tables of the server
 *   list_history.h   the elements that each checkpoint added to a list
 *
 * Writes to one thread always go through the same lane, one leader at a time, so within a process
 * they are ordered; between processes the epoch (cache.h) detects conflicts. Reads go straight to
 * the backend from the caller's thread.
 */
#ifndef HD_STORE_STORE_H
#define HD_STORE_STORE_H

#include <heddle.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/backend.h"
#include "store/bytes.h"

struct hd_lane;
struct hd_thread_pool;

struct hd_store {
    struct hd_backend *backend;
    size_t max_value;
    int64_t timeout_us; /* from the URL: how long conflicts are retried */
    struct hd_lane *lanes;
    unsigned lane_count;
    struct hd_thread_pool *pool; /* threads for deferred work */
    /* how long asynchronous requests wait for the database; 0: they do not wait */
    int64_t outage_us;
    _Atomic bool is_ending;       /* they wait no longer */
    _Atomic size_t waiting_count; /* requests that failed and wait */
};

/* Longer keys are rejected: databases index them (PostgreSQL: 2,700 bytes in all). */
enum {
    HD_MAX_PRINCIPAL = 128,
    HD_MAX_THREAD_ID = 512,
    HD_MAX_NS = 1024,
    HD_MAX_ID = 256, /* checkpoint, task and run ids */
    HD_MAX_CHANNEL = 1024,
    HD_MAX_PATH = 1 << 16,
    HD_MAX_TYPE = 256
};

/* The public handle. */
struct hd_store *hd_store_of(struct heddle *heddle);

/* A principal that contains ':' would reach the threads of another principal. */
HD_MUST_CHECK int hd_check_principal(struct hd_slice principal, struct heddle_error *fault);
/* The stored thread key `principal:thread_id`, in `arena`. Checks both parts. */
HD_MUST_CHECK int hd_store_thread_key(const struct heddle_thread *thread, struct hd_arena *arena,
                                      struct hd_slice *out, struct heddle_error *fault);
/* The two parts of a stored key, borrowed from it. */
struct heddle_thread hd_store_thread_from_key(struct hd_slice key);

HD_MUST_CHECK int hd_check_length(struct hd_slice s, size_t max, const char *what,
                                  struct heddle_error *fault);

/* ---- lane.c: writing ---- */

struct hd_lane_request;

/* Runs the request and waits for it. */
HD_MUST_CHECK int hd_lane_run(struct hd_store *store, struct hd_lane_request *request,
                              struct heddle_error *fault);
/*
 * Takes the request (made by hd_malloc): calls request->done later and frees it. On error it stays
 * the caller's. It may stay in the queue until the lanes are woken.
 */
HD_MUST_CHECK int hd_lane_queue(struct hd_store *store, struct hd_lane_request *request);
void hd_lanes_wake(struct hd_store *store);

HD_MUST_CHECK int hd_lanes_open(struct hd_store *store);
void hd_lanes_close(struct hd_store *store);

/* ---- thread_pool.c: deferred work ---- */

HD_MUST_CHECK int hd_thread_pool_open(struct hd_thread_pool **out, unsigned limit);
HD_MUST_CHECK int hd_thread_pool_add(struct hd_thread_pool *pool, void (*work)(void *arg),
                                     void *arg);
/* Waits until all added work has run. */
void hd_thread_pool_close(struct hd_thread_pool *pool);

/* ---- read.c ---- */

struct hd_key {
    struct hd_slice thread; /* the stored thread key */
    struct hd_slice ns;
    struct hd_slice id; /* empty: the latest */
};

/*
 * Reads several checkpoints at once. tuples[i] stays all zero (id.data NULL) when keys[i] does not
 * exist. The results live in `arena`, the thread's key included, and stay valid as long as it does.
 * `allowance` (allowance.h) may be NULL.
 */
struct hd_allowance;
HD_MUST_CHECK int hd_store_read_tuples(struct hd_store *store, const struct hd_key *keys,
                                       size_t count, int flags, struct hd_allowance *allowance,
                                       struct hd_arena *arena, struct heddle_tuple *tuples,
                                       struct heddle_error *fault);

struct hd_known;

/* The same for one checkpoint and without the known values (list_append.h). */
HD_MUST_CHECK int hd_store_read_unknown(struct hd_store *store, const struct hd_key *key,
                                        const struct hd_known *known, size_t known_count,
                                        struct hd_arena *arena, struct heddle_tuple *tuple,
                                        struct heddle_error *fault);

/* ---- list.c ---- */

HD_MUST_CHECK int hd_list_open(struct hd_store *store, const struct heddle_query *query,
                               struct heddle_list **out, struct heddle_error *fault);
HD_MUST_CHECK int hd_list_next(struct heddle_list *list, const struct heddle_tuple **out,
                               struct heddle_error *fault);
void hd_list_close(struct heddle_list *list);

/* ---- collect.c, copy.c, check.c: threads are given by their stored keys ---- */

HD_MUST_CHECK int hd_delete_thread(struct hd_store *store, struct hd_slice thread,
                                   struct heddle_error *fault);
/* The same for jobs that hold the lane. HD_ECONFLICT: the epoch, if given, differs. */
HD_MUST_CHECK int hd_delete_rows(struct hd_store *store, struct hd_slice thread,
                                 const int64_t *epoch, struct heddle_error *fault);
/* HD_ENOTFOUND when the thread does not exist. */
HD_MUST_CHECK int hd_store_read_epoch(struct hd_store *store, struct hd_slice thread,
                                      int64_t *epoch, struct heddle_error *fault);
HD_MUST_CHECK int hd_delete_runs(struct hd_store *store, struct hd_slice principal,
                                 const struct heddle_bytes *runs, size_t count,
                                 struct heddle_error *fault);
HD_MUST_CHECK int hd_copy_thread(struct hd_store *store, struct hd_slice source,
                                 struct hd_slice target, struct heddle_error *fault);
HD_MUST_CHECK int hd_store_thread_usage(struct hd_store *store, struct hd_slice thread,
                                        struct heddle_usage *out, struct heddle_error *fault);
HD_MUST_CHECK int hd_check_values(struct hd_store *store, struct heddle_error *fault);
/* The same for one thread. */
HD_MUST_CHECK int hd_check_thread(struct hd_store *store, struct hd_slice thread,
                                  struct heddle_error *fault);

#endif
