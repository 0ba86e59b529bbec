/*
 * Requests to other servers of the cluster that are not answered yet. Whether a server is alive
 * is known from its lease (cluster/cluster.h); here it is about the connection: a network that
 * drops packets closes nothing, and an answer may take any time. So a server that owes an answer
 * and is silent is asked for /ok, and when that fails, it counts as unreachable.
 *
 * Belongs to the loop.
 */
#ifndef HD_API_REQUEST_PEER_WATCH_H
#define HD_API_REQUEST_PEER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/uuid.h"

struct hd_client;
struct hd_peer_watches;

/* Borrows the client for requests to other servers. */
HD_MUST_CHECK int hd_peer_watches_create(struct hd_app *app, struct hd_client *client,
                                         struct hd_peer_watches **out);
void hd_peer_watches_destroy(struct hd_peer_watches *watches);

/*
 * Asks whether the server accepts connections and answers; not when it is gone, or stops. Calls
 * `fn` once, later.
 */
typedef void (*hd_peer_watches_fn)(void *ctx, bool answers);
HD_MUST_CHECK int hd_peer_watches_ask(struct hd_peer_watches *watches, struct hd_slice server,
                                      hd_peer_watches_fn fn, void *ctx);

/* An answer that a server owes. Zero-initialise; private. */
struct hd_peer_watch {
    HD_DLINK(struct hd_peer_watch) all;
    char server[HD_UUID_SIZE];
    int64_t heard_at, started_at; /* monotonic */
    void (*lost)(void *ctx);
    void *ctx;
};

/* Calls `lost` when the server is gone or unreachable; it must call hd_peer_watch_stop(). */
void hd_peer_watch_start(struct hd_peer_watches *watches, struct hd_peer_watch *watch,
                         struct hd_slice server, void (*lost)(void *ctx), void *ctx);
/* Something has arrived. */
void hd_peer_watch_touch(struct hd_peer_watch *watch);
/* Does nothing when it was not started. */
void hd_peer_watch_stop(struct hd_peer_watch *watch);

#endif
