/*
 * Answers that stay open are watched: streams and waits end when what let them in ends.
 *
 * A participation that was removed or became less is looked at again at once; in other processes,
 * and when an API key was revoked there, after a few seconds. A token's time is known. What is
 * looked at is read on a store thread, and what cannot be read ends nothing: the next look may.
 *
 * Nothing is watched while nobody authenticates. Belongs to the loop.
 */
#ifndef HD_API_STREAM_ACCESS_H
#define HD_API_STREAM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_watches;

enum hd_watch_end {
    HD_WATCH_GOES_ON,
    HD_WATCH_CREDENTIAL, /* 401: the token's time is over, or the key was revoked */
    HD_WATCH_GONE,       /* 404: it takes no part in the thread any more */
    HD_WATCH_ROLE        /* 403: it may not do this any more */
};

/* Ends the answer, and must stop its watch. */
typedef void (*hd_watch_fn)(void *ctx, enum hd_watch_end why);

/* Zero-initialise. Private. */
struct hd_watch {
    hd_watch_fn fn;
    void *ctx;
    const struct hd_call *call;
    struct hd_slice thread_id;
    enum hd_role needed;
    uint64_t number; /* never another one's; 0: it is not watched */
    bool is_due;     /* to be looked at */
    struct hd_watch *next;
    struct hd_watch **link;
};

HD_MUST_CHECK int hd_watches_create(struct hd_app *app, struct hd_watches **out);
/* Nothing may be watched. */
void hd_watches_destroy(struct hd_watches *watches);

/*
 * From now on until hd_watch_stop(), which the end of the call must come after. Borrows the id.
 * What changes the thread, by its route or `is_changing`, takes an editor while it is open.
 */
void hd_watch_start(struct hd_watch *watch, const struct hd_call *call, struct hd_slice thread_id,
                    bool is_changing, hd_watch_fn fn, void *ctx);
void hd_watch_stop(struct hd_watch *watch);

/* Who takes part in the thread has changed. */
void hd_watches_recheck(struct hd_watches *watches, struct hd_slice owner,
                        struct hd_slice thread_id);

/* What a client is told: status and sentence of an end. */
int hd_watch_status(enum hd_watch_end why);
const char *hd_watch_text(enum hd_watch_end why);

#endif
