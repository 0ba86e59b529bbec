/*
 * Requests of this server itself to another one of its cluster, on behalf of a call. They are
 * signed as forwarded ones are (auth/forwarded.h). Their routes are public, and answer 404 to other
 * callers: hd_peer_is_caller(). Belongs to the loop.
 */
#ifndef HD_API_REQUEST_PEER_H
#define HD_API_REQUEST_PEER_H

#include <stdbool.h>

#include "api/api.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_peer_request;

/* `status` 0: the server is gone, or has not answered. `body` is valid during the call. */
typedef void (*hd_peer_fn)(void *ctx, int status, struct hd_slice body);

/* POST with a JSON body; borrows all of them. The call must live until `fn` or hd_peer_cancel(). */
HD_MUST_CHECK int hd_peer_send(const struct hd_call *call, struct hd_slice server, const char *path,
                               struct hd_slice body, hd_peer_fn fn, void *ctx,
                               struct hd_peer_request **out);
/* No callback runs after this. */
void hd_peer_cancel(struct hd_peer_request *request);

/* Returns whether the call is such a request. */
bool hd_peer_is_caller(const struct hd_call *call);

#endif
