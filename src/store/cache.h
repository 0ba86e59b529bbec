/*
 * What a writer remembers of a thread, so that a put need not read: which
 * chunks exist and under which numbers, and the newest checkpoints' bodies.
 *
 * It is only ever a guess about the database, because other processes write
 * there too. Two rules make acting on the guess safe. Every batch expects the
 * thread's *epoch* to be the remembered one: whoever deletes something or
 * replaces a checkpoint changes the epoch, so nobody can refer to a chunk that
 * is gone or carry on a value that was replaced. And new chunks and checkpoints
 * are added, not put: what somebody else made meanwhile is a conflict. On any
 * conflict the state is dropped and read anew.
 *
 * An odd epoch means that unreferenced chunks are being collected right now:
 * then nothing old is referred to (see collect.c). Nor is it while the thread has
 * no row, and so no epoch that could change.
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

#define HD_STATE_HEADS 8

struct hd_stream {
    struct hd_slice name;      /* owned */
    struct hd_hash128 *hashes; /* of the chunks numbered first, first + 1, …; zero: no such chunk */
    size_t count;
    size_t cap;
    int64_t first;
    int64_t unclaimed; /* the first chunk at its end that only writes use so far, or 0 */
    unsigned hits;     /* how often a value went on with a write's chunk … */
    unsigned misses;   /* … and how often it did not: see plan.c */
};

struct hd_head {
    struct hd_slice ns, id, body; /* one owned block, starting at ns.ptr */
    void *memory;
};

struct hd_chunk_slot {
    struct hd_hash128 hash;
    int64_t seq; /* 0: free */
    uint32_t stream;
};

struct hd_thread_state {
    struct hd_slice key; /* owned */
    int64_t epoch;
    int64_t created_at; /* 0: somebody is copying into it */
    int64_t loaded_at;  /* on the monotonic clock */
    bool is_stored;     /* the thread has its row; otherwise the next batch adds it */
    int64_t guard;      /* that of the writers so far (list_append.h), which was true; 0: none */
    bool was_absent;    /* it had no row when it was looked for */
    bool is_new;        /* … nor anything else, so streams need not be read */

    struct hd_stream *streams;
    size_t stream_count;
    struct hd_chunk_slot *slots; /* every chunk by hash; open addressing, power of two */
    size_t slot_count;
    size_t slot_cap;

    struct hd_head heads[HD_STATE_HEADS]; /* newest puts first */
    uint64_t batch;                       /* the last batch that has operations of this thread */
    uint64_t put_batch;                   /* … that has a put of this thread */

    struct hd_thread_state *newer, *older;
    struct hd_cache *cache;
    size_t bytes; /* about */
};

struct hd_cache {
    struct hd_map threads;
    struct hd_thread_state *newest, *oldest;
    size_t bytes; /* of all threads */
    size_t limit;
    /* After a conflict: what looks new may exist, and a thread without a row have chunks. */
    bool is_careful;
};

void hd_cache_init(struct hd_cache *cache, size_t limit);
void hd_cache_fini(struct hd_cache *cache);

/* Forgets old threads until the limit is kept. Invalidates states. */
void hd_cache_trim(struct hd_cache *cache);
void hd_cache_drop(struct hd_cache *cache, struct hd_slice key);

/* The state, or NULL: no reading. */
struct hd_thread_state *hd_cache_find(struct hd_cache *cache, struct hd_slice key);

/* Reads the thread's row when it is not remembered. The state stays valid until drop or trim. */
HD_MUST_CHECK int hd_cache_thread(struct hd_cache *cache, struct hd_backend *backend,
                                  struct hd_slice key, struct hd_thread_state **out,
                                  struct hd_fault *fault);

/* Finds or loads a stream; *out is its number in the state. */
HD_MUST_CHECK int hd_state_stream(struct hd_thread_state *state, struct hd_backend *backend,
                                  struct hd_slice name, uint32_t *out, struct hd_fault *fault);
/* Whether hd_state_stream() would have to read. */
bool hd_state_has_stream(const struct hd_thread_state *state, struct hd_slice name);

/* Is chunk `seq` of the stream the one with this hash? */
bool hd_state_is_chunk(const struct hd_thread_state *state, uint32_t stream, int64_t seq,
                       struct hd_hash128 hash);
/* The number of a chunk with this hash in the stream, or 0. */
int64_t hd_state_find(const struct hd_thread_state *state, uint32_t stream, struct hd_hash128 hash);
/* The same in any loaded stream; *stream is set when found. */
int64_t hd_state_find_any(const struct hd_thread_state *state, struct hd_hash128 hash,
                          uint32_t *stream);
/* Gives a new chunk the next number. */
HD_MUST_CHECK int hd_state_add(struct hd_thread_state *state, uint32_t stream,
                               struct hd_hash128 hash, int64_t *seq);

/* The body remembered for a checkpoint; false when it is not. */
bool hd_state_head(const struct hd_thread_state *state, struct hd_slice ns, struct hd_slice id,
                   struct hd_slice *body);
HD_MUST_CHECK int hd_state_set_head(struct hd_thread_state *state, struct hd_slice ns,
                                    struct hd_slice id, struct hd_slice body);

/* A new even epoch that no thread has had. */
HD_MUST_CHECK int hd_epoch_create(int64_t *out);

#endif
