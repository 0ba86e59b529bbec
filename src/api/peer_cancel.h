/*
 * Cancels runs that other servers of the cluster execute. A route first cancels those of its own
 * server, in the queue; then this finds the others in the store, by the holds of their threads, and
 * sends each server the ones that it holds. A run whose holder does not answer, is gone, or has
 * changed is looked up again until it was cancelled or has ended, for up to HD_PEER_CANCEL_S.
 */
#ifndef HD_API_PEER_CANCEL_H
#define HD_API_PEER_CANCEL_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "base/compiler.h"
#include "records/record.h"
#include "run/queue.h"

#define HD_PEER_CANCEL_S 20

struct hd_peer_cancel {
    struct hd_call *call;
    enum hd_cancel action;
    bool waits; /* until all have ended; otherwise until those that had not begun have ended */
    /* Either those of a list, of one owner, or those that are selected; borrowed until `done`. */
    const struct hd_run_rec *runs; /* only their ids are used */
    size_t count;
    const struct hd_run_selection *selection; /* NULL: the list */
    void (*done)(void *ctx);
    void *ctx;

    /* The result. */
    size_t found;    /* runs of other servers */
    bool has_failed; /* a server has not answered in time */
};

/* HD_READY: there are no other servers. 0: calls `done` later. On the loop. */
HD_MUST_CHECK int hd_peer_cancel_start(struct hd_peer_cancel *cancel);

#endif
