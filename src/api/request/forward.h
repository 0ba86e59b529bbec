/*
 * Requests that another server of the cluster must answer: the one that holds the thread
 * (records/hold.h). The server that the client has reached, the front, authenticates the caller,
 * finds the thread, counts the request and writes the audit entry. Then it sends the request on,
 * with the verified identity in a signed header (auth/forwarded.h), and passes the answer back as
 * it arrives. The other server checks the signature instead of credentials and limits, and does the
 * rest: the project's own authorization runs there, once, because it may change the body and filter
 * what the work sees. (A run whose thread is claimed by a third server while it is admitted, and
 * the stream of a stateless run, whose thread is known late, are authorized by both.)
 *
 * A forwarded request is never forwarded again. A server that does not hold the thread any more
 * answers HD_NOT_HOLDER, and the front looks the holder up again, a few times.
 *
 * Where the endpoints are answered (hd_endpoint.by):
 *
 *   HD_BY_HOLDER       create, cancel and delete a run, wait for one; update the state; choose,
 *                         name and delete branches; delete a thread or an agent: they need the
 *                         queue, the event numbers or the pending admissions of the holder.
 *   HD_BY_LAST_HOLDER  the stream of a run: events that are not stored stay in the memory of the
 *                         server that made them, also after the thread is released.
 *   HD_BY_FOLLOWER     the stream of a thread, whose holders change (api/stream_follow.h).
 *   HD_BY_ANY          everything else: reads, which the store answers; changes of rows that
 *                         expect a revision (metadata, participants, copies); new threads, which
 *                         no server holds; requests about many threads (api/peer_cancel.h).
 */
#ifndef HD_API_REQUEST_FORWARD_H
#define HD_API_REQUEST_FORWARD_H

#include "api/api.h"
#include "base/arena.h"
#include "base/compiler.h"

struct hd_client;
struct hd_forwarded_key;
struct hd_forwards;
struct hd_held_thread;
struct hd_peer_watches;

/* A header of the answer: another server holds the thread, or the request was not accepted. */
#define HD_NOT_HOLDER HD_S("heddle-not-holder")

/* *out is NULL without a cluster. */
HD_MUST_CHECK int hd_forwards_create(struct hd_app *app, struct hd_forwards **out);
/* The number of requests sent to other servers since the start; 0 for NULL. */
uint64_t hd_forwards_count(const struct hd_forwards *forwards);
void hd_forwards_destroy(struct hd_forwards *forwards);
/* The client for requests to the other servers, and the key that signs them. */
struct hd_client *hd_forwards_client(struct hd_forwards *forwards);
const struct hd_forwarded_key *hd_forwards_key(const struct hd_forwards *forwards);
struct hd_peer_watches *hd_forwards_watches(struct hd_forwards *forwards);
/* The part of a server's address without a path: that of a request has http.mount_prefix. */
struct hd_slice hd_forward_origin(const char *address);

/*
 * Loop, before the route is found. HD_NEXT: no server has forwarded the request, or call->forwarded
 * is set. A header that is not valid is refused; without a cluster it has no meaning.
 */
struct hd_step hd_forward_accept(struct hd_call *call);
/* Store thread: the body is the one that was signed. */
struct hd_step hd_forward_check_body(struct hd_call *call);

/* ---- stages (pipeline.h) ---------------------------------------------- */

/* HD_STAGE_LOCATE: finds the server that answers; HD_STAGE_FORWARD: it is another one. */
bool hd_forward_locates(const struct hd_call *call);
struct hd_step hd_forward_locate(struct hd_call *call);
bool hd_forward_is_elsewhere(const struct hd_call *call);
struct hd_step hd_forward_send(struct hd_call *call);

/* ---- for routes, on store threads ------------------------------------- */

/*
 * For a thread that is not in the path: HD_NEXT: this server answers. Otherwise the step to return;
 * the route's `work` may run again.
 */
struct hd_step hd_forward_find(struct hd_call *call, struct hd_slice thread_id,
                               enum hd_answered_by by);
/* The thread of the path, if it was read with its hold (hd_endpoint.admits); else NULL. */
const struct hd_held_thread *hd_forward_thread(const struct hd_call *call);
/* Another server has claimed the thread since it was located: the step to return. */
struct hd_step hd_forward_again(struct hd_call *call);
/* HD_BY_FOLLOWER: the id of the other server that has the events; empty: this one. */
struct hd_slice hd_forward_source(const struct hd_call *call);

/* ---- requests to other servers ---------------------------------------- */

/* A request of a client as another server gets it. In the arena. */
struct hd_forward_message {
    const char *url;
    const char **lines; /* headers */
    size_t line_count;
};

/*
 * `last_event_id` NULL: as the client sent it; "": none. HD_ENOTFOUND: the server is gone. From
 * any thread.
 */
HD_MUST_CHECK int hd_forward_write(const struct hd_call *call, struct hd_slice server,
                                   const char *last_event_id, struct hd_arena *arena,
                                   struct hd_forward_message *out);
/* Without an answer of the peer. */
struct hd_step hd_forward_refuse(struct hd_call *call);

/* The next header of the lines of an answer; false after the last. */
bool hd_forward_header(struct hd_slice *lines, struct hd_slice *name, struct hd_slice *value);
/* Headers that the answer to the client gets as well. */
bool hd_forward_is_passed_on(struct hd_slice name);

#endif
