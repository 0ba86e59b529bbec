/*
 * A write request, and the lane that carries it out. Private to request.c, lane.c, plan*.c and
 * collect.c.
 */
#ifndef HD_STORE_LANE_H
#define HD_STORE_LANE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/vec.h"
#include "store/batch.h"
#include "store/cache.h"
#include "store/codec/split.h"
#include "store/store.h"

/* A job that needs exclusive use of the lane, such as a prune. It may read and apply. */
typedef int (*hd_job_fn)(struct hd_store *store, struct hd_lane *lane, void *arg,
                         struct heddle_error *fault);

struct hd_growth;
struct hd_outline;
struct hd_write_chain;

struct hd_lane_request {
    enum hd_lane_request_kind {
        HD_REQUEST_PUT,
        HD_REQUEST_WRITES,
        HD_REQUEST_ROWS, /* rows of the server's tables: store/rows.h */
        HD_REQUEST_JOB
    } kind;
    struct hd_slice thread; /* stored key */
    union {
        struct heddle_checkpoint put;
        struct heddle_writes writes;
        struct {
            struct hd_batch batch;
            struct hd_batch_builder owned; /* holds the batch of an asynchronous request */
            size_t failed;                 /* the operation that conflicted */
        } rows;
        struct {
            hd_job_fn fn;
            void *arg;
        } job;
    } as;
    const struct hd_growth *const *growths; /* of put: by value, instead of its data; or NULL */
    const struct hd_outline *outline;       /* of put; or NULL */
    struct hd_write_chain *chain;           /* of put; or NULL */
    struct hd_guard guard;                  /* of put and writes: see thread_fence.h */
    struct hd_pieces *pieces; /* of each value of put or writes that is not stored inline */
    struct hd_arena arena;    /* the key and the pieces array */

    heddle_done done; /* NULL: a thread waits in hd_lane_run() */
    void *done_arg;

    int64_t until_us; /* asynchronous: retried until then; 0: it has not failed yet */
    size_t kept_size; /* approximate memory it holds while it waits */
    bool is_kept;     /* returns to the queue; owned by the leader */

    size_t first_op;  /* where its operations begin in the lane's batch */
    bool is_settled;  /* the leader has determined the outcome */
    bool is_finished; /* the waiting caller may return; protected by the lane's lock */
    int err;
    struct heddle_error fault;
    struct hd_lane_request *next;
};

struct hd_lane {
    struct hd_store *store;
    unsigned number;

    /* Protected by `lock`: queue, is_woken, has_leader, is_closing, has_worker. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    HD_FIFO(struct hd_lane_request) queue;
    bool is_woken; /* the worker must lead the queued requests */
    bool has_leader;
    bool is_closing;
    bool has_worker;
    pthread_t worker; /* leads when no caller waits for the queued requests */

    /* monotonic: when the worker retries the kept requests; 0: there are none */
    int64_t retry_at_us;

    /* Owned by the leader. */
    size_t kept_bytes;       /* of requests that wait for the database */
    int64_t pause_us;        /* before they are retried */
    struct heddle_error why; /* the latest failure */
    HD_VEC(uint64_t) lost;   /* hashes of threads that lost a request while the process ends */
    bool has_lost_all;       /* too many threads: as if it were each of them */
    struct hd_lane_request *round; /* the requests it leads now, from the first on */
    struct hd_cache cache;
    struct hd_batch_builder batch;
    uint64_t batch_number;
    uint64_t trimmed_at; /* the batch after which the cache was last trimmed */
    struct hd_buf scratch;
};

/* Checks the input. On error there is nothing to release. */
HD_MUST_CHECK int hd_lane_request_put(struct hd_store *store, struct hd_lane_request *request,
                                      const struct heddle_checkpoint *checkpoint,
                                      struct heddle_error *fault);
HD_MUST_CHECK int hd_lane_request_writes(struct hd_store *store, struct hd_lane_request *request,
                                         const struct heddle_writes *writes,
                                         struct heddle_error *fault);
/* Borrows the key and the batch; cannot fail. */
void hd_lane_request_rows(struct hd_lane_request *request, struct hd_slice key,
                          const struct hd_batch *batch);
void hd_lane_request_fini(struct hd_lane_request *request);

/* Splits the values unless that is done already; planning calls it otherwise. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_lane_request_cut(struct hd_lane_request *request);

/* Runs `fn` with exclusive use of the lane of `thread`. */
HD_MUST_CHECK int hd_lane_job(struct hd_store *store, struct hd_slice thread, hd_job_fn fn,
                              void *arg, struct heddle_error *fault);

/*
 * Appends the request's operations to lane->batch. HD_EBUSY: it must read rows that an earlier
 * request of this batch writes; commit that first.
 */
HD_MUST_CHECK int hd_plan(struct hd_lane *lane, struct hd_lane_request *request,
                          struct heddle_error *fault);

#endif
