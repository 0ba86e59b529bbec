/*
 * Access checks of open responses: streams and waits end when the caller loses its access.
 *
 * A participation that was removed or reduced is checked at once; in other processes, and when an
 * API key was revoked there, after a few seconds. A token ends at its expiry. The check reads on a
 * store thread; a failed read ends no stream, and the next check follows.
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
    HD_STREAM_ACCESS_CREDENTIAL, /* 401: the token has expired, or the key was revoked */
    HD_STREAM_ACCESS_GONE,       /* 404: the caller is no longer a participant */
    HD_STREAM_ACCESS_ROLE        /* 403: the caller's role no longer suffices */
};

/* Must end the response and call hd_stream_access_stop(). */
typedef void (*hd_stream_access_fn)(void *ctx, enum hd_stream_access_end why);

/* Zero-initialise. Private. */
struct hd_stream_access {
    hd_stream_access_fn fn;
    void *ctx;
    const struct hd_call *call;
    struct hd_slice thread_id;
    enum hd_role needed;
    uint64_t number; /* unique; 0: not started */
    bool is_due;     /* to be checked */
    struct hd_stream_access *next;
    struct hd_stream_access **link;
};

HD_MUST_CHECK int hd_stream_accesses_create(struct hd_app *app, struct hd_stream_accesses **out);
/* Every hd_stream_access must have been stopped. */
void hd_stream_accesses_destroy(struct hd_stream_accesses *watches);

/*
 * Checks the stream until hd_stream_access_stop(), which must be called before the end of the call.
 * Borrows the id. The editor role is required while it is open if the route changes the thread, or
 * with `may_change`, for a reader whose disconnect cancels the run.
 */
void hd_stream_access_start(struct hd_stream_access *watch, const struct hd_call *call,
                            struct hd_slice thread_id, bool may_change, hd_stream_access_fn fn,
                            void *ctx);
void hd_stream_access_stop(struct hd_stream_access *watch);

/* The participants of the thread have changed. */
void hd_stream_accesses_recheck(struct hd_stream_accesses *watches, struct hd_slice owner,
                                struct hd_slice thread_id);

/* Status and text of an end, for the client. */
int hd_stream_access_status(enum hd_stream_access_end why);
const char *hd_stream_access_text(enum hd_stream_access_end why);

#endif
