/*
 * Inside the server: a connection is a state machine that does no I/O of its own. Bytes, ends
 * and times are told to it (hd_conn_*), and it acts through a wire (struct hd_wire_ops): the
 * real one is a uv_tcp_t (wire.c), the fuzzer has one of memory.
 *
 * A connection has one exchange at a time, which lives inside it. Callbacks to users
 * (on_room, on_gone) and all else that must not happen inside a user's call is put on the
 * hub's list of ready connections and done by hd_hub_run().
 */
#ifndef HD_HTTP_INTERNAL_H
#define HD_HTTP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
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

struct hd_wire_ops {
    /* Writes what the socket takes now; the number of bytes (0 too), or negative: broken. */
    ptrdiff_t (*try_write)(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
    /* Sends all, however long it takes; borrows it until hd_conn_sent(). One at a time. */
    int (*send)(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
    /* Bytes of send() that still wait. */
    size_t (*unsent)(const struct hd_conn *conn);
    void (*set_reading)(struct hd_conn *conn, bool is_on);
    /* Whether the peer has closed, asked while nothing is read. */
    bool (*is_hung_up)(struct hd_conn *conn);
    /* Bounds what the kernel holds of a stream. */
    void (*bound_kernel)(struct hd_conn *conn, size_t bytes);
    /* Nothing more will be written. */
    void (*shut_down)(struct hd_conn *conn);
    /* hd_conn_closed() follows, later. */
    void (*close)(struct hd_conn *conn);
    /* Frees the memory of the connection. */
    void (*release)(struct hd_conn *conn);
    /* The list of ready connections is not empty any more. */
    void (*wake)(struct hd_hub *hub);
    /* Milliseconds of a clock that never goes back. */
    int64_t (*now)(const struct hd_hub *hub);
};

/* What all connections of a server share. */
struct hd_hub {
    const struct hd_wire_ops *wire;
    struct hd_server_config config;
    struct hd_server_stats stats;
    struct hd_conn *conns; /* also those that are closed but whose exchange is still held */
    struct hd_conn *ready;
    struct hd_conn **ready_tail;
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
    HD_CONN_IDLE,      /* nothing of the next request has come */
    HD_CONN_HEAD,      /* a part of its head has */
    HD_CONN_BODY,      /* its head has */
    HD_CONN_HANDLING,  /* the handler has it */
    HD_CONN_STREAMING, /* the answer has begun */
    HD_CONN_WRITING,   /* the answer is complete and waits for the socket */
    HD_CONN_LINGERING, /* refused: what comes is thrown away until the peer closes */
    HD_CONN_CLOSED     /* the wire is closed or closing */
};

struct hd_exchange {
    struct hd_http_request request;
    struct hd_arena arena;
    char id_text[HD_UUID_SIZE];
    struct hd_slice id;
    struct hd_slice peer;
    struct hd_slice actor; /* in the arena */
    bool is_held;          /* by the handler: it will end the exchange */
    bool is_open;          /* not settled: the answer is not complete, nor given up */
    bool is_packed;
    bool has_caching; /* the answer says itself whether it may be kept */
    bool has_retry;   /* the answer has a Retry-After */
    hd_gone_fn on_gone;
    hd_room_fn on_room;
    void *ctx;
    hd_end_fn at_end;
    void *end_ctx;
    struct hd_buf lines; /* headers of the answer, each with its line break */
    size_t line_count;
    bool has_failed; /* a header could not be added */
    int status;
    int64_t started_us;
    struct hd_buf body; /* the answer's, while it is being sent */
    size_t body_bytes;
    bool is_stream; /* the rest is about streams */
    bool is_chunked;
    bool is_ended;
    bool has_sent_end;
    bool wants_room;
    bool has_sent_head;
    char *buffer;
    size_t used;  /* bytes of the stream in `buffer` */
    size_t burst; /* bytes taken in this turn of the loop */
};

enum { HD_READY_GONE = 1, HD_READY_NEXT = 2, HD_READY_FLUSH = 4, HD_READY_ROOM = 8 };

struct hd_conn {
    struct hd_hub *hub;
    struct hd_conn *prev, *next;
    struct hd_conn *ready_next;
    unsigned ready; /* HD_READY_ bits */
    bool is_queued; /* in the list of ready ones */
    unsigned pins;  /* must not be freed now */
    enum hd_conn_state state;
    int64_t since_ms; /* when this state began, or last made progress */
    bool is_paused;   /* the socket is not read */
    bool is_sending;  /* send() is under way */
    bool is_consuming;
    bool has_ended; /* the peer sends no more */
    bool is_broken; /* closed in the middle of an answer: the kernel need not send the rest */
    bool closes;    /* after this answer */
    bool is_refused;
    bool is_wire_closed;
    bool is_loopback;
    bool is_greeting; /* the handshake of TLS is not complete */
    char peer[HD_MAX_PEER];
    size_t unsent;       /* as last seen, to notice progress */
    size_t answer_bytes; /* of the answer being sent */
    size_t lingered;
    struct hd_buf pending; /* came while a request was being answered */
    size_t pending_at;
    struct hd_buf head; /* of the answer */
    struct hd_parser parser;
    struct hd_exchange ex;
};

/* hub.c */
void hd_hub_init(struct hd_hub *hub, const struct hd_wire_ops *wire,
                 const struct hd_server_config *config);
void hd_hub_fini(struct hd_hub *hub);
/* Does what is ready; connections that become ready meanwhile are left for the next call. */
void hd_hub_run(struct hd_hub *hub);
void hd_hub_mark(struct hd_conn *conn, unsigned bits);
void hd_hub_tick(struct hd_hub *hub);
/* Closes the connection that has been idle longest; false when none is. */
bool hd_hub_evict(struct hd_hub *hub);
const char *hd_hub_date(struct hd_hub *hub);
void hd_hub_new_id(struct hd_hub *hub, char out[HD_UUID_SIZE]);
/* A stream's buffer, from the pool when it has one; NULL: no memory. */
char *hd_hub_take_buffer(struct hd_hub *hub);
void hd_hub_give_buffer(struct hd_hub *hub, char *buffer);

/* conn.c: what is told to a connection */
void hd_conn_init(struct hd_conn *conn, struct hd_hub *hub);
void hd_conn_read(struct hd_conn *conn, const char *data, size_t len);
/* The peer sends no more; it may still read. */
void hd_conn_end(struct hd_conn *conn);
/* It can neither be read from nor written to any more. */
void hd_conn_break(struct hd_conn *conn);
void hd_conn_sent(struct hd_conn *conn, bool is_broken);
void hd_conn_closed(struct hd_conn *conn);
void hd_conn_tick(struct hd_conn *conn);
/* Closes now when nothing is under way, else after the answer. */
void hd_conn_finish(struct hd_conn *conn);

/* conn.c: for exchange.c, stream.c and hub.c */
static inline struct hd_conn *hd_conn_of(const struct hd_exchange *ex)
{
    return (struct hd_conn *)((char *)ex - offsetof(struct hd_conn, ex));
}
void hd_conn_run(struct hd_conn *conn, unsigned bits);
/* Writes all parts: now, or with hd_conn_sent() later. 1: all is written; 0: later; -1: broken. */
int hd_conn_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count);
/* The answer has left: the exchange is settled, the connection goes on or closes. */
void hd_conn_answered(struct hd_conn *conn);
/* The exchange is over for its holder; frees what can be freed. */
void hd_conn_settle(struct hd_conn *conn);
/* Frees the connection when nobody needs it any more. */
void hd_conn_release(struct hd_conn *conn);
void hd_conn_enter(struct hd_conn *conn, enum hd_conn_state state);

/* stream.c */
#define HD_STREAM_GAP 10 /* before the bytes, for the chunk's size and CR LF */
#define HD_STREAM_TAIL 7 /* after them: CR LF 0 CR LF CR LF */
void hd_stream_flush(struct hd_conn *conn);
/* What was being sent has left. */
void hd_stream_sent(struct hd_conn *conn);
/* Gives the buffer back. */
void hd_stream_drop(struct hd_conn *conn);

/* head.c */
struct hd_answer_head {
    int status;
    struct hd_slice content_type; /* empty: none */
    bool has_length;
    size_t length;
    bool is_chunked;
};
HD_MUST_CHECK int hd_head_write(struct hd_conn *conn, const struct hd_answer_head *head);
const char *hd_status_text(int status);
void hd_date_format(int64_t seconds, char out[HD_DATE_SIZE]);

/* cors.c */
bool hd_cors_is_preflight(const struct hd_http_request *request);
HD_MUST_CHECK int hd_cors_write(struct hd_buf *out, const struct hd_cors *cors,
                                const struct hd_http_request *request);
HD_MUST_CHECK int hd_cors_write_preflight(struct hd_buf *out, const struct hd_cors *cors,
                                          const struct hd_http_request *request);

/* Whether a page of that origin may use the server; `origin` is the header's value. */
bool hd_cors_allows(const struct hd_cors *cors, struct hd_slice origin);
bool hd_cors_allows_all(const struct hd_cors *cors);
/* "name:port" of "https://name:port"; false when it is not an origin of http or https. */
bool hd_origin_authority(struct hd_slice origin, struct hd_slice *out);

/* guard.c */
struct hd_refusal_text {
    int status; /* 0: it is not refused */
    const char *text;
};
/* What is refused before the handler sees it. */
struct hd_refusal_text hd_guard_check(const struct hd_server_config *config,
                                      const struct hd_http_request *request);
/* Whom the request comes from: the peer, or whom it, a proxy, speaks for. */
struct hd_slice hd_guard_peer(const struct hd_guard *guard, const struct hd_http_request *request,
                              struct hd_slice peer);
/* Headers that keep a browser from more than it was asked for. */
HD_MUST_CHECK int hd_guard_write(struct hd_buf *out, const struct hd_conn *conn);

/* gzip.c */
bool hd_gzip_is_worth(struct hd_slice content_type);
/* HD_ELIMIT when it would not become smaller. */
HD_MUST_CHECK int hd_gzip(struct hd_slice in, struct hd_buf *out);

/* wire.c */
extern const struct hd_wire_ops hd_wire_uv;
/* Takes the connection that waits at the listener. */
HD_MUST_CHECK int hd_wire_accept(struct hd_hub *hub, uv_stream_t *listener);

/* wire_tls.c */
extern const struct hd_wire_ops hd_wire_tls;

/* server.c, for wire.c */
uv_loop_t *hd_server_loop(const struct hd_hub *hub);
/* One for all connections: what is read is used up at once. */
uv_buf_t hd_server_read_buffer(struct hd_hub *hub);
void hd_server_wake(struct hd_hub *hub);
/* A connection was closed: there may be room for another. */
void hd_server_has_room(struct hd_hub *hub);
/* A connection's memory was given back. */
void hd_server_released(struct hd_hub *hub);

#endif
