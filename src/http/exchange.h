/*
 * One request and its answer.
 *
 * The handler of a server is given an exchange when a request has come
 * completely. It answers at once or later, in one of two ways:
 *
 *   - whole: one of the hd_answer functions, exactly once;
 *   - as a stream: hd_stream_begin(), hd_stream_write() as often as there is
 *     room, hd_stream_end().
 *
 * An exchange ends, and must not be touched again, when hd_answer*(),
 * hd_stream_end() or hd_stream_abort() was called, or when on_gone has returned.
 * Until then it and all that hd_exchange_request() shows stay, also when the
 * peer has gone: a handler that set no on_gone need not care, its answer is then
 * dropped. So work on another thread may read the request (and use the arena)
 * while the exchange is its own, as long as it does not set on_gone before.
 *
 * Everything here belongs to the loop's thread, but hd_exchange_request(),
 * hd_exchange_arena(), hd_exchange_id() and hd_exchange_compress(), which belong to
 * whoever has the exchange.
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

/* Memory for the time of the exchange; bounded by the server's limits. */
struct hd_arena *hd_exchange_arena(struct hd_exchange *ex);

/* What is answered as x-request-id: the client's own when it sent a sound one, else a new UUID. */
struct hd_slice hd_exchange_id(const struct hd_exchange *ex);

/* The address of the peer, or of whom a trusted proxy speaks for; without port: "127.0.0.1". */
struct hd_slice hd_exchange_peer(const struct hd_exchange *ex);

/*
 * Who sent the request, for the access log: empty until it is set. hd_exchange_set_actor() copies
 * the text into the arena; without memory for it the actor stays empty.
 */
void hd_exchange_set_actor(struct hd_exchange *ex, struct hd_slice actor);
struct hd_slice hd_exchange_actor(const struct hd_exchange *ex);

/*
 * Asks to be told when the peer goes away before the answer is complete: it
 * closed or reset the connection, read too slowly, or the server closes. Called
 * once at most, never before this call has returned; the exchange has ended when
 * `on_gone` returns. Without it a peer that only closed its sending side still
 * gets its answer; with it that counts as gone. NULL takes it back.
 */
typedef void (*hd_gone_fn)(void *ctx);
void hd_exchange_on_gone(struct hd_exchange *ex, hd_gone_fn on_gone, void *ctx);

/*
 * `at_end` is called once when the answer has been sent or given up, while the arena is still
 * there. One function for each exchange.
 */
typedef void (*hd_end_fn)(void *ctx);
void hd_exchange_at_end(struct hd_exchange *ex, hd_end_fn at_end, void *ctx);

/* The peer is known to be gone: an answer would reach nobody. */
bool hd_exchange_is_gone(const struct hd_exchange *ex);

/*
 * Adds a header to the answer; copies both. What comes from outside may be given:
 * a line break in the value is refused. When this fails (memory, too many) the
 * answer becomes a 503. Content-Length, Transfer-Encoding, Connection, Date,
 * x-request-id and the CORS headers are made by the server.
 */
void hd_answer_header(struct hd_exchange *ex, struct hd_slice name, struct hd_slice value);

/* Takes what is in `body` and leaves it empty. 204 and 304 have no body, whatever is given. */
void hd_answer(struct hd_exchange *ex, int status, struct hd_slice content_type,
               struct hd_buf *body);

/* hd_answer() with HD_TYPE_JSON. */
void hd_answer_json(struct hd_exchange *ex, int status, struct hd_buf *body);

/* Borrows `body` for ever: constants, embedded files. */
void hd_answer_static(struct hd_exchange *ex, int status, struct hd_slice content_type,
                      struct hd_slice body);

/* No body: 204, 202, … */
void hd_answer_empty(struct hd_exchange *ex, int status);

/* {"detail": "<text>"}; text that is not UTF-8 is made so. At most 1,023 bytes of it are kept. */
void hd_answer_error(struct hd_exchange *ex, int status, const char *fmt, ...) HD_PRINTF(3, 4);

/*
 * Compresses `body` in place when that pays and the client takes it, so that it need
 * not be done on the loop. hd_answer() does it itself for a body that was not given
 * here. HD_ENOMEM leaves the body as it was: it can still be answered.
 */
HD_MUST_CHECK int hd_exchange_compress(struct hd_exchange *ex, struct hd_slice content_type,
                                       struct hd_buf *body);

/*
 * Begins an answer whose end is not known. `on_room` is called, later, when the
 * socket takes more: once at first, then each time after a hd_stream_write() that took
 * less than it was given. on_gone (must not be NULL) as in hd_exchange_on_gone(),
 * with the same ctx; it is also called after the head when the request was a HEAD.
 * The head leaves with the first bytes written, or at the end of this turn of the loop.
 * To a client of HTTP/1.0 the stream is not chunked and the connection closes after it.
 */
typedef void (*hd_room_fn)(void *ctx);
void hd_stream_begin(struct hd_exchange *ex, int status, struct hd_slice content_type,
                     hd_room_fn on_room, hd_gone_fn on_gone, void *ctx);

/* hd_stream_begin() for server-sent events: type, no caching, no buffering in proxies. */
void hd_stream_begin_sse(struct hd_exchange *ex, int status, hd_room_fn on_room, hd_gone_fn on_gone,
                         void *ctx);

/*
 * Copies as much of the parts, in order, as there is room for and returns how many
 * bytes that were. Less than all of them: go on there when on_room is called. May be called
 * at any time, not only from on_room; on_gone is never called from inside.
 */
size_t hd_stream_write(struct hd_exchange *ex, const struct hd_slice *parts, size_t count);

/* The stream is complete. What was written is still sent; the exchange has ended for the caller. */
void hd_stream_end(struct hd_exchange *ex);

/* Breaks off, so that the client sees that it did not get everything. Ends the exchange. */
void hd_stream_abort(struct hd_exchange *ex);

#endif
