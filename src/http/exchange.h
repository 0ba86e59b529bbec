/*
 * One request and its response.
 *
 * The server calls its handler with an exchange when a request is complete. The handler responds at
 * once or later, in one of two ways:
 *
 *   - whole: one of the hd_answer functions, exactly once;
 *   - as a stream: hd_http_stream_begin(), then hd_http_stream_write() as often as there is room,
 *     then hd_http_stream_end().
 *
 * An exchange ends, and must not be used again, after hd_answer*(), hd_http_stream_end() or
 * hd_http_stream_abort(), or when on_gone has returned. Until then it and everything that
 * hd_exchange_request() returns stay valid, even if the peer is gone: a handler without on_gone
 * need not check, its response is dropped. So another thread may read the request (and use the
 * arena) while it holds the exchange, as long as it sets no on_gone before.
 *
 * Everything here belongs to the loop's thread, except hd_exchange_request(), hd_exchange_arena(),
 * hd_exchange_id() and hd_exchange_compress(), which belong to the thread that holds the exchange.
 */
#ifndef HD_HTTP_EXCHANGE_H
#define HD_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "http/request.h"

#define HD_TYPE_JSON HD_S("application/json")
#define HD_TYPE_TEXT HD_S("text/plain; charset=utf-8")
#define HD_TYPE_HTML HD_S("text/html; charset=utf-8")
#define HD_TYPE_SSE HD_S("text/event-stream")

struct hd_exchange;

/* The request; borrowed until the exchange ends. */
const struct hd_http_request *hd_exchange_request(const struct hd_exchange *ex);

/* Memory for the life of the exchange; bounded by the server's limits. */
struct hd_arena *hd_exchange_arena(struct hd_exchange *ex);

/* The value of x-request-id: the client's if valid, else a new UUID. */
struct hd_slice hd_exchange_id(const struct hd_exchange *ex);

/*
 * The address of the peer, or the client address from a trusted proxy; without port: "127.0.0.1".
 */
struct hd_slice hd_exchange_peer(const struct hd_exchange *ex);

/*
 * The authenticated sender, for the access log: empty until it is set. hd_exchange_set_actor()
 * copies the text into the arena; if out of memory the actor stays empty.
 */
void hd_exchange_set_actor(struct hd_exchange *ex, struct hd_slice actor);
struct hd_slice hd_exchange_actor(const struct hd_exchange *ex);

/*
 * Registers a callback for a peer that goes away before the response is complete: it closed or
 * reset the connection, read too slowly, or the server closes. Called at most once, never before
 * this returns; the exchange has ended when `on_gone` returns. Without it, a peer that only closed
 * its sending side still gets its response; with it, that counts as gone. NULL removes it.
 */
typedef void (*hd_gone_fn)(void *ctx);
void hd_exchange_on_gone(struct hd_exchange *ex, hd_gone_fn on_gone, void *ctx);

/*
 * `at_end` is called once when the response was sent or dropped, while the arena is still valid.
 * One function per exchange.
 */
typedef void (*hd_end_fn)(void *ctx);
void hd_exchange_at_end(struct hd_exchange *ex, hd_end_fn at_end, void *ctx);

/* The peer is known to be gone: a response would be dropped. */
bool hd_exchange_is_gone(const struct hd_exchange *ex);

/*
 * Adds a header to the response; copies both. Safe for untrusted text: a line break in the value is
 * refused. If this fails (memory, too many) the response becomes a 503. The server itself adds
 * Content-Length, Transfer-Encoding, Connection, Date, x-request-id and the CORS headers.
 */
void hd_answer_header(struct hd_exchange *ex, struct hd_slice name, struct hd_slice value);

/* Takes the contents of `body` and leaves it empty. 204 and 304 never have a body. */
void hd_answer(struct hd_exchange *ex, int status, struct hd_slice content_type,
               struct hd_buf *body);

/* hd_answer() with HD_TYPE_JSON. */
void hd_answer_json(struct hd_exchange *ex, int status, struct hd_buf *body);

/* Borrows `body` forever: constants, embedded files. */
void hd_answer_static(struct hd_exchange *ex, int status, struct hd_slice content_type,
                      struct hd_slice body);

/* No body: 204, 202, … */
void hd_answer_empty(struct hd_exchange *ex, int status);

/* {"detail": "<text>"}; invalid UTF-8 is replaced. At most 1,023 bytes of the text are kept. */
void hd_answer_error(struct hd_exchange *ex, int status, const char *fmt, ...) HD_PRINTF(3, 4);

/*
 * Compresses `body` in place if the client accepts it and it saves space; call it on another thread
 * to keep the work off the loop. hd_answer() compresses bodies that were not passed here. HD_ENOMEM
 * leaves the body unchanged: it can still be sent.
 */
HD_MUST_CHECK int hd_exchange_compress(struct hd_exchange *ex, struct hd_slice content_type,
                                       struct hd_buf *body);

/*
 * Begins a response of unknown length. `on_room` is called, later, when the socket has room: once
 * at first, then after each hd_http_stream_write() that took less than it was given. on_gone
 * (must not be NULL) as in hd_exchange_on_gone(), with the same ctx; it is also called after the
 * head when the request was a HEAD. The head is sent with the first bytes written, or at the end
 * of this loop iteration. For an HTTP/1.0 client the stream is not chunked and the connection
 * closes after it.
 */
typedef void (*hd_room_fn)(void *ctx);
void hd_http_stream_begin(struct hd_exchange *ex, int status, struct hd_slice content_type,
                          hd_room_fn on_room, hd_gone_fn on_gone, void *ctx);

/* hd_http_stream_begin() for server-sent events: type, no caching, no buffering in proxies. */
void hd_http_stream_begin_sse(struct hd_exchange *ex, int status, hd_room_fn on_room,
                              hd_gone_fn on_gone, void *ctx);

/*
 * Copies as much of the parts, in order, as there is room for and returns the number of bytes. If
 * less than all: continue there when on_room is called. May be called at any time, not only from
 * on_room; on_gone is never called from inside.
 */
size_t hd_http_stream_write(struct hd_exchange *ex, const struct hd_slice *parts, size_t count);

/* Completes the stream. Written data is still sent; the exchange has ended for the caller. */
void hd_http_stream_end(struct hd_exchange *ex);

/*
 * Closes the connection, so that the client sees that the response is incomplete. Ends the
 * exchange.
 */
void hd_http_stream_abort(struct hd_exchange *ex);

#endif
