/*
 * Principals under another key: `heddle rekey`.
 *
 * A principal is a keyed hash, and everything that belongs to it is stored under it. With a new key
 * all that moves, one principal after the other, while servers that have both keys run:
 *
 *   1. its row is marked as moving: new requests of it are refused (records/principals.h), and
 *      after HD_AUTH_RECHECK_US so are requests accepted before;
 *   2. wait for its active runs;
 *   3. its rows move, each with the condition that it is still as it was read. A thread's record
 *      goes first: without it late writers are refused (store/thread_fence.h), so no writer
 *      is answered as stored when its row is gone;
 *   4. rows written meanwhile move too, until none are left under the old principal;
 *   5. its row names the new principal.
 *
 * An interrupted command can be repeated: moved rows stay moved, and the mark stays set. Blocks.
 */
#ifndef HD_TRANSFER_REKEY_H
#define HD_TRANSFER_REKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct heddle;
struct hd_auth;

struct hd_rekey {
    struct heddle *store;
    const struct hd_auth *auth; /* the first of its keys is the new one */
    bool only_counts;
    int64_t patience_us; /* how long runs under way are waited for */
    /* May be NULL. `left`: principals that have not moved yet. */
    void (*progress)(void *ctx, uint64_t left);
    void *ctx;

    /* Set: what was moved, or would be. */
    uint64_t principals, threads, rows;
    uint64_t waiting; /* principals that could not be moved: their runs did not end */
};

HD_MUST_CHECK int hd_rekey(struct hd_rekey *rekey, struct heddle_error *fault);

#endif
