/*
 * Answers that stay open are watched: streams and waits end when what let them in ends.
 *
 * A participation that was removed or reduced is checked at once; in other processes, and when an
 * API key was revoked there, after a few seconds. The expiry of a token is known. The check reads
 * on a store thread; a failed read ends no stream, and the next check follows.
 *
 * Without authentication no stream is checked. Belongs to the loop.
 */
#ifndef HD_API_STREAM_ACCESS_H
#define HD_API_STREAM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_stream_accesses;

enum hd_stream_access_end {
    HD_STREAM_ACCESS_CONTINUES,
    HD_STREAM_ACCESS_CREDENTIAL, /* 401: the token's time is over, or the key was revoked */
    HD_STREAM_ACCESS_GONE,       /* 404: it takes no part in the thread any more */
    HD_STREAM_ACCESS_ROLE        /* 403: it may not do this any more */
};

/* Ends the answer, and must stop its watch. */
typedef void (*hd_stream_access_fn)(void *ctx, enum hd_stream_access_end why);

/* Zero-initialise. Private. */
struct hd_stream_access {
    hd_stream_access_fn fn;
    void *ctx;
    const struct hd_call *call;
    struct hd_slice thread_id;
    enum hd_role needed;
    uint64_t number; /* never another one's; 0: it is not watched */
    bool is_due;     /* to be looked at */
    struct hd_stream_access *next;
    struct hd_stream_access **link;
};

HD_MUST_CHECK int hd_stream_accesses_create(struct hd_app *app, struct hd_stream_accesses **out);
/* Nothing may be watched. */
void hd_stream_accesses_destroy(struct hd_stream_accesses *watches);

/*
 * Checks the stream until hd_stream_access_stop(), which must come before the end of the call.
 * Borrows the id. A route or `is_changing` that changes the thread requires the editor role while
 * it is open.
 */
void hd_stream_access_start(struct hd_stream_access *watch, const struct hd_call *call,
                            struct hd_slice thread_id, bool is_changing, hd_stream_access_fn fn,
                            void *ctx);
void hd_stream_access_stop(struct hd_stream_access *watch);

/* The participants of the thread have changed. */
void hd_stream_accesses_recheck(struct hd_stream_accesses *watches, struct hd_slice owner,
                                struct hd_slice thread_id);

/* Status and text of an end, for the client. */
int hd_stream_access_status(enum hd_stream_access_end why);
const char *hd_stream_access_text(enum hd_stream_access_end why);

#endif
