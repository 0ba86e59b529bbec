/*
 * The part of a thread that a writer caches, so that a put need not read: the existing chunks with
 * their numbers, and the bodies of the newest checkpoints.
 *
 * The cache may be out of date, because other processes write to the database too. Two rules make
 * it safe to use. Every batch expects the thread's *epoch* to be the cached one: deleting rows or
 * replacing a checkpoint changes the epoch, so no batch can refer to a deleted chunk or carry on a
 * replaced value. And new chunks and checkpoints are added, not put: a row that another process has
 * added since is a conflict. On any conflict the state is dropped and read again.
 *
 * An odd epoch means that unreferenced chunks are being collected: then a put refers to no older
 * chunk (see collect.c). The same holds while the thread has no row, and so no epoch that could
 * change.
 *
 * A cache belongs to one lane and is used by its leader only: no locks.
 */
#ifndef HD_STORE_CACHE_H
#define HD_STORE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/map.h"
#include "store/backend.h"
#include "store/codec/split.h"
#include "store/guard.h"

#define HD_STATE_HEADS 8

struct hd_chunk_sequence {
    struct hd_slice name;      /* owned */
    struct hd_hash128 *hashes; /* of the chunks numbered first, first + 1, …; zero: no such chunk */
    size_t count;
    size_t cap;
    int64_t first;
    int64_t unclaimed; /* the first chunk at its end that only writes use so far, or 0 */
    unsigned hits;     /* how often a value continued with a write's chunk … */
    unsigned misses;   /* … and how often it did not: see plan_value.c */
};

struct hd_cached_head {
    struct hd_slice ns, id, body; /* one owned block, starting at ns.ptr */
    void *memory;
};

struct hd_chunk_slot {
    struct hd_hash128 hash;
    int64_t seq; /* 0: free */
    uint32_t sequence;
};

struct hd_cached_thread {
    struct hd_slice key; /* owned */
    int64_t epoch;
    int64_t created_at;    /* 0: a copy into this thread is in progress */
    int64_t loaded_at;     /* on the monotonic clock */
    bool is_stored;        /* the thread has its row; otherwise the next batch adds it */
    struct hd_guard guard; /* the one that was verified last (thread_fence.h) */
    bool was_absent;       /* it had no row when it was read */
    bool is_new;           /* … nor any other row, so sequences need not be read */

    struct hd_chunk_sequence *sequences;
    size_t sequence_count;
    struct hd_chunk_slot *slots; /* every chunk by hash; open addressing, power of two */
    size_t slot_count;
    size_t slot_cap;

    struct hd_cached_head heads[HD_STATE_HEADS]; /* newest puts first */
    /* the last batch that contains operations of this thread */
    uint64_t batch;
    uint64_t put_batch; /* … that contains a put of this thread */

    struct hd_cached_thread *newer, *older;
    struct hd_cache *cache;
    size_t bytes; /* approximate */
};

struct hd_cache {
    struct hd_map threads;
    struct hd_cached_thread *newest, *oldest;
    size_t bytes; /* of all threads */
    size_t limit;
    /*
     * After a conflict: a thread that looks new may exist, and one without a row may have chunks.
     */
    bool is_careful;
};

void hd_cache_init(struct hd_cache *cache, size_t limit);
void hd_cache_fini(struct hd_cache *cache);

/* Evicts old threads until the limit is kept. Invalidates states. */
void hd_cache_trim(struct hd_cache *cache);
void hd_cache_drop(struct hd_cache *cache, struct hd_slice key);

/* The state, or NULL; reads nothing. */
struct hd_cached_thread *hd_cache_find(struct hd_cache *cache, struct hd_slice key);

/* Reads the thread's row unless it is cached. The state stays valid until drop or trim. */
HD_MUST_CHECK int hd_cache_thread(struct hd_cache *cache, struct hd_backend *backend,
                                  struct hd_slice key, struct hd_cached_thread **out,
                                  struct heddle_error *fault);

/* Finds or loads a chunk sequence; *out is its index in the state. */
HD_MUST_CHECK int hd_cached_sequence(struct hd_cached_thread *state, struct hd_backend *backend,
                                     struct hd_slice name, uint32_t *out,
                                     struct heddle_error *fault);
/* True when hd_cached_sequence() would have to read. */
bool hd_cached_has_sequence(const struct hd_cached_thread *state, struct hd_slice name);

/* True when chunk `seq` of the sequence has this hash. */
bool hd_cached_is_chunk(const struct hd_cached_thread *state, uint32_t sequence, int64_t seq,
                        struct hd_hash128 hash);
/* The number of a chunk with this hash in the sequence, or 0. */
int64_t hd_cached_find(const struct hd_cached_thread *state, uint32_t sequence,
                       struct hd_hash128 hash);
/* The same in any loaded sequence; *sequence is set when found. */
int64_t hd_cached_find_any(const struct hd_cached_thread *state, struct hd_hash128 hash,
                           uint32_t *sequence);
/* Assigns the next number to a new chunk. */
HD_MUST_CHECK int hd_cached_add(struct hd_cached_thread *state, uint32_t sequence,
                                struct hd_hash128 hash, int64_t *seq);

/* The cached body of a checkpoint; false when it is not cached. */
bool hd_cached_head(const struct hd_cached_thread *state, struct hd_slice ns, struct hd_slice id,
                    struct hd_slice *body);
HD_MUST_CHECK int hd_cached_set_head(struct hd_cached_thread *state, struct hd_slice ns,
                                     struct hd_slice id, struct hd_slice body);

/* A new even epoch that no thread has had. */
HD_MUST_CHECK int hd_epoch_create(int64_t *out);

#endif
