/*
 * Internals of the server. A connection is a state machine without I/O: it receives bytes, EOF and
 * times through hd_conn_*, and acts through a wire (struct hd_http_wire_ops): a uv_tcp_t
 * (wire.c), or memory in the fuzzer.
 *
 * A connection has one exchange at a time, which is part of it. User callbacks (on_room, on_gone)
 * and other work that must not run inside a user's call are queued on the hub's list of ready
 * connections and run by hd_hub_run().
 */
#ifndef HD_HTTP_INTERNAL_H
#define HD_HTTP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/uuid.h"
#include "http/parse.h"
#include "http/server.h"

#define HD_DATE_SIZE 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define HD_MAX_REQUEST_ID 128
#define HD_MAX_PEER 46
#define HD_MAX_ANSWER_HEADERS 64
#define HD_MAX_ANSWER_HEAD ((size_t)64 * 1024)

struct hd_conn;
struct hd_hub;

struct hd_http_wire_ops {
    /*
     * Writes as much as the socket takes now; the number of bytes (may be 0), or negative: broken.
     */
    ptrdiff_t (*try_write)(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
    /*
     * Sends everything, however long it takes; borrows the parts until hd_conn_sent(). One at a
     * time.
     */
    int (*send)(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
    /* Bytes of send() not yet sent. */
    size_t (*unsent)(const struct hd_conn *conn);
    void (*set_reading)(struct hd_conn *conn, bool is_on);
    /* Whether the peer has closed, checked while the socket is not read. */
    bool (*is_hung_up)(struct hd_conn *conn);
    /* Limits the kernel's send buffer of a stream. */
    void (*bound_kernel)(struct hd_conn *conn, size_t bytes);
    /* Closes the sending side. */
    void (*shut_down)(struct hd_conn *conn);
    /* hd_conn_closed() follows later. */
    void (*close)(struct hd_conn *conn);
    /* Frees the memory of the connection. */
    void (*release)(struct hd_conn *conn);
    /* Called when the list of ready connections becomes nonempty. */
    void (*wake)(struct hd_hub *hub);
    /* Milliseconds of a monotonic clock. */
    int64_t (*now)(const struct hd_hub *hub);
};

/* State shared by all connections of a server. */
struct hd_hub {
    const struct hd_http_wire_ops *wire;
    struct hd_http_server_config config;
    struct hd_http_server_stats stats;
    struct hd_conn *conns; /* includes closed ones whose exchange is still held */
    HD_FIFO(struct hd_conn) ready;
    bool is_closing;
    bool is_crowded; /* a connection waits for another to end */
    uint8_t id_seed[10];
    uint64_t id_count;
    int64_t date_second;
    char date[HD_DATE_SIZE];
    char **buffers; /* of streams, for reuse */
    size_t buffer_count;
};

enum hd_conn_state {
    HD_CONN_IDLE,      /* waiting for a request */
    HD_CONN_HEAD,      /* its head is incomplete */
    HD_CONN_BODY,      /* its body is incomplete */
    HD_CONN_HANDLING,  /* the handler has it */
    HD_CONN_STREAMING, /* a stream is open */
    HD_CONN_WRITING,   /* the response is complete and waits for the socket */
    HD_CONN_LINGERING, /* refused: input is discarded until the peer closes */
    HD_CONN_CLOSED     /* the wire is closed or closing */
};

struct hd_exchange {
    struct hd_http_request request;
    struct hd_arena arena;
    char id_text[HD_UUID_SIZE];
    struct hd_slice id;
    struct hd_slice peer;
    struct hd_slice actor; /* in the arena */
    bool is_held;          /* by the handler, which will end the exchange */
    bool is_open;          /* the response is neither complete nor dropped */
    bool is_packed;
    bool has_caching; /* the response has Cache-Control */
    bool has_retry;   /* the response has Retry-After */
    hd_gone_fn on_gone;
    hd_room_fn on_room;
    void *ctx;
    hd_end_fn at_end;
    void *end_ctx;
    struct hd_buf lines; /* headers of the response, each with its line break */
    size_t line_count;
    bool has_failed; /* a header could not be added */
    int status;
    int64_t started_us;
    struct hd_buf body; /* of the response, while it is sent */
    size_t body_bytes;
    bool is_stream; /* the members below are for streams */
    bool is_chunked;
    bool is_ended;
    bool has_sent_end;
    bool wants_room;
    bool has_sent_head;
    char *buffer;
    size_t used;  /* bytes of the stream in `buffer` */
    size_t burst; /* bytes written in this loop iteration */
};

enum { HD_READY_GONE = 1, HD_READY_NEXT = 2, HD_READY_FLUSH = 4, HD_READY_ROOM = 8 };

struct hd_conn {
    struct hd_hub *hub;
    HD_DLINK(struct hd_conn) all;
    struct hd_conn *ready_next;
    unsigned ready; /* HD_READY_ bits */
    bool is_queued; /* in the list of ready connections */
    unsigned pins;  /* not 0: must not be freed */
    enum hd_conn_state state;
    int64_t since_ms; /* start of this state, or last progress */
    bool is_paused;   /* the socket is not read */
    bool is_sending;  /* send() is pending */
    bool is_consuming;
    bool has_ended; /* the peer has closed its sending side */
    bool is_broken; /* closed within a response: the kernel need not send the rest */
    bool closes;    /* after this response */
    bool is_refused;
    bool is_wire_closed;
    bool is_loopback;
    bool is_greeting; /* the TLS handshake is not complete */
    char peer[HD_MAX_PEER];
    size_t unsent;       /* last seen value, to detect progress */
    size_t answer_bytes; /* of the response being sent */
    size_t lingered;
    struct hd_buf pending; /* received while a request was handled */
    size_t pending_at;
    struct hd_buf head; /* of the response */
    struct hd_parser parser;
    struct hd_exchange ex;
};

/* hub.c */
void hd_hub_init(struct hd_hub *hub, const struct hd_http_wire_ops *wire,
                 const struct hd_http_server_config *config);
void hd_hub_fini(struct hd_hub *hub);
/* Handles ready connections; those that become ready meanwhile wait for the next call. */
void hd_hub_run(struct hd_hub *hub);
void hd_hub_mark(struct hd_conn *conn, unsigned bits);
void hd_hub_tick(struct hd_hub *hub);
/* Closes the connection idle longest; false when none is idle. */
bool hd_hub_evict(struct hd_hub *hub);
const char *hd_hub_date(struct hd_hub *hub);
void hd_hub_new_id(struct hd_hub *hub, char out[HD_UUID_SIZE]);
/* A stream's buffer, from the pool when it has one; NULL: no memory. */
char *hd_hub_take_buffer(struct hd_hub *hub);
void hd_hub_give_buffer(struct hd_hub *hub, char *buffer);

/* conn.c: events of a connection */
void hd_conn_init(struct hd_conn *conn, struct hd_hub *hub);
void hd_conn_read(struct hd_conn *conn, const char *data, size_t len);
/* The peer closed its sending side; it may still read. */
void hd_conn_end(struct hd_conn *conn);
/* The connection can neither be read nor written any more. */
void hd_conn_break(struct hd_conn *conn);
void hd_conn_sent(struct hd_conn *conn, bool is_broken);
void hd_conn_closed(struct hd_conn *conn);
void hd_conn_tick(struct hd_conn *conn);
/* Closes now if no request is active, else after the response. */
void hd_conn_finish(struct hd_conn *conn);

/* conn.c: for exchange.c, stream.c and hub.c */
static inline struct hd_conn *hd_conn_of(const struct hd_exchange *ex)
{
    return (struct hd_conn *)((char *)ex - offsetof(struct hd_conn, ex));
}
void hd_conn_run(struct hd_conn *conn, unsigned bits);
/* Writes all parts: now, or later with hd_conn_sent(). 1: all is written; 0: later; -1: broken. */
int hd_conn_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
/* The response is sent: settles the exchange, continues or closes the connection. */
void hd_conn_answered(struct hd_conn *conn);
/* The exchange has ended for its holder; frees its memory. */
void hd_conn_settle(struct hd_conn *conn);
/* Frees the connection when it is unused. */
void hd_conn_release(struct hd_conn *conn);
void hd_conn_enter(struct hd_conn *conn, enum hd_conn_state state);

/* stream.c */
#define HD_STREAM_GAP 10 /* before the bytes, for the chunk's size and CR LF */
#define HD_STREAM_TAIL 7 /* after them: CR LF 0 CR LF CR LF */
void hd_http_stream_flush(struct hd_conn *conn);
/* A pending send has completed. */
void hd_http_stream_sent(struct hd_conn *conn);
/* Returns the buffer to the pool. */
void hd_http_stream_drop(struct hd_conn *conn);

/* head.c */
struct hd_http_head {
    int status;
    struct hd_slice content_type; /* empty: none */
    bool has_length;
    size_t length;
    bool is_chunked;
};
HD_MUST_CHECK int hd_http_head_write(struct hd_conn *conn, const struct hd_http_head *head);
const char *hd_http_status_text(int status);
void hd_date_format(int64_t seconds, char out[HD_DATE_SIZE]);

/* cors.c */
bool hd_cors_is_preflight(const struct hd_http_request *request);
HD_MUST_CHECK int hd_cors_write(struct hd_buf *out, const struct hd_cors *cors,
                                const struct hd_http_request *request);
HD_MUST_CHECK int hd_cors_write_preflight(struct hd_buf *out, const struct hd_cors *cors,
                                          const struct hd_http_request *request);

/* Whether pages of that origin may use the server; `origin` is the header's value. */
bool hd_cors_allows(const struct hd_cors *cors, struct hd_slice origin);
bool hd_cors_allows_all(const struct hd_cors *cors);
/* "name:port" of "https://name:port"; false when it is not an http or https origin. */
bool hd_http_origin_authority(struct hd_slice origin, struct hd_slice *out);

/* browser_policy.c */
struct hd_refusal_text {
    int status; /* 0: not refused */
    const char *text;
};
/* Checks a request before the handler sees it. */
struct hd_refusal_text hd_browser_policy_check(const struct hd_http_server_config *config,
                                               const struct hd_http_request *request);
/* The address of the client: the peer, or the client that the proxy names. */
struct hd_slice hd_browser_policy_peer(const struct hd_browser_policy *guard,
                                       const struct hd_http_request *request, struct hd_slice peer);
/* Security headers for browsers. */
HD_MUST_CHECK int hd_browser_policy_write(struct hd_buf *out, const struct hd_conn *conn);

/* gzip.c */
bool hd_gzip_is_worth(struct hd_slice content_type);
/* HD_ELIMIT when it would not become smaller. */
HD_MUST_CHECK int hd_gzip(struct hd_slice in, struct hd_buf *out);

/* wire.c */
extern const struct hd_http_wire_ops hd_http_wire_uv;
/* Accepts the listener's waiting connection. */
HD_MUST_CHECK int hd_http_wire_accept(struct hd_hub *hub, uv_stream_t *listener);

/* wire_tls.c */
extern const struct hd_http_wire_ops hd_http_wire_tls;

/* server.c, for wire.c */
uv_loop_t *hd_http_server_loop(const struct hd_hub *hub);
/* One for all connections: data is used up before the next read. */
uv_buf_t hd_http_server_read_buffer(struct hd_hub *hub);
void hd_http_server_wake(struct hd_hub *hub);
/* A connection was closed: another may be accepted. */
void hd_http_server_has_room(struct hd_hub *hub);
/* A connection's memory was freed. */
void hd_http_server_released(struct hd_hub *hub);

#endif
