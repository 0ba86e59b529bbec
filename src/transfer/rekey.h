/*
 * Principals under another key: `heddle rekey`.
 *
 * A principal is a keyed hash, and everything that belongs to it is stored under it. With a new key
 * all that moves, one principal after the other, while servers run that know both keys:
 *
 *   1. its row says that it moves: from then on nobody is let in as it (records/principals.h), and
 *      after HD_AUTH_RECHECK_US nobody is who was before;
 *   2. its runs under way are waited for;
 *   3. its rows move, each with the condition that it is still as it was read. A thread's record
 *      goes first: without it late writers are refused (store/thread_fence.h), so no writer
 *      is answered as stored when its row is gone;
 *   4. what came meanwhile is looked for, until nothing is left under the old principal;
 *   5. its row says where it is now.
 *
 * Whoever is interrupted begins again: what has moved has moved, and the row still says so. Blocks.
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

HD_MUST_CHECK int hd_rekey(struct hd_rekey *rekey, struct hd_fault *fault);

#endif
