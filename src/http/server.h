/*
 * An HTTP/1.1 server on a libuv loop. Not thread-safe: everything happens on the
 * loop's thread.
 *
 * Connections are kept alive; pipelined requests are handled in order, one at a time.
 * All that a peer can make grow or last has a limit below.
 */
#ifndef HD_HTTP_SERVER_H
#define HD_HTTP_SERVER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/net.h"
#include "http/exchange.h"

struct hd_server;
struct hd_tls;

struct hd_server_limits {
    size_t connections; /* at once; beyond it the longest idle one makes room, else new ones wait */
    size_t head;        /* bytes of a request's head, also of chunk extensions and trailers */
    size_t headers;     /* how many */
    size_t body;        /* bytes of a request's body */
    size_t body_total;  /* bytes of all bodies that are held at once */
    size_t pipelined;   /* bytes that are taken from a socket while a request is being answered */
    size_t stream_buffer; /* bytes of a stream that wait for the socket, in this process */
    size_t stream_kernel; /* the same in the kernel (SO_SNDBUF); 0: the system's own choice */
    int64_t idle_ms;      /* between requests */
    int64_t head_ms;      /* from the first byte of a request to the end of its head */
    int64_t body_ms;      /* for the body, and a second more for each `rate` bytes that came */
    int64_t write_ms;     /* for an answer, likewise; for a stream: without any progress */
    int64_t linger_ms;    /* after a refusal, for the client to read it */
    size_t rate;          /* bytes per second that a slow peer must manage */
};

/* Origins whose pages may use the server, besides its own. By default there are none. */
struct hd_cors {
    bool allows_loopback;           /* http(s) origins of this machine, with any port */
    const struct hd_slice *origins; /* "*" is every origin */
    size_t origin_count;
    const regex_t *pattern;     /* origins besides; matches all of it. NULL: none */
    const char *methods;        /* "GET, POST"; NULL: all */
    const char *headers;        /* that pages may send; NULL: all that they ask for */
    const char *exposed;        /* besides those of the server; NULL: none */
    bool allow_credentials;     /* with a list of origins only */
    bool allow_private_network; /* pages from the internet may ask a server on loopback */
    int max_age;                /* seconds that a preflight is remembered */
};

/* Who is let in, before anybody looks at what is asked for; and whom a proxy speaks for. */
struct hd_guard {
    /*
     * A Host that is neither this machine's nor listed is refused: a page that got its own name to
     * stand for this machine (DNS rebinding) is not let in.
     */
    bool checks_host;
    const struct hd_slice *hosts; /* "name", "name:port", "*.name" */
    size_t host_count;
    const struct hd_net *proxies; /* whose X-Forwarded-For is believed */
    size_t proxy_count;
};

/* Called on the loop when a request is complete. It answers at once or later (exchange.h). */
typedef void (*hd_handler_fn)(void *ctx, struct hd_exchange *ex);

/*
 * Called when an answer is complete or was given up (status 0: the peer went before
 * there was one), for logs and measurements. The exchange can still be read.
 */
typedef void (*hd_answered_fn)(void *ctx, const struct hd_exchange *ex, int status,
                               size_t body_bytes, int64_t took_us);

struct hd_server_config {
    struct hd_server_limits limits;
    struct hd_cors cors;
    struct hd_guard guard;
    struct hd_tls *tls; /* NULL: without TLS */
    /*
     * Bodies of at least this many bytes are compressed when the client takes it; 0:
     * never. Loopback peers get them as they are, because there it costs and saves nothing.
     */
    size_t gzip_min;
    bool gzip_on_loopback;
    hd_handler_fn handler;
    hd_answered_fn answered; /* may be NULL */
    void *ctx;               /* for both */
};

struct hd_server_stats {
    uint64_t connections_open;
    uint64_t connections_total;
    uint64_t requests_open; /* whose answer is not complete */
    uint64_t requests_total;
    uint64_t streams_open;
    uint64_t answers[6]; /* by status / 100; [0] were never answered */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t refused;    /* requests that were malformed or over a limit */
    uint64_t timeouts;   /* connections closed for being slow */
    uint64_t gone;       /* peers that left before their answer was complete */
    uint64_t body_bytes; /* held now */
};

/* Sane limits, no CORS, gzip from 32 KiB on; no handler. */
void hd_server_config_init(struct hd_server_config *config);

/*
 * Copies the configuration but borrows its lists and `tls` for as long as the server lives. From
 * now on the process ignores SIGPIPE, unless it has a handler for it.
 */
HD_MUST_CHECK int hd_server_create(struct hd_server **out, uv_loop_t *loop,
                                   const struct hd_server_config *config, struct hd_fault *fault);

/*
 * Listens on every address that `host` (a name or a number) stands for, with one port; those
 * that this machine does not have are left out as long as one is there. Port 0 is any free
 * one. When the port is taken: HD_EEXISTS, or with `or_next` the next of up to 100 ports that
 * is free. May be called more than once. `port_out` may be NULL.
 */
HD_MUST_CHECK int hd_server_listen(struct hd_server *server, const char *host, int port,
                                   bool or_next, int *port_out, struct hd_fault *fault);

const struct hd_server_stats *hd_server_stats(const struct hd_server *server);

/*
 * Takes no more connections and requests, closes idle connections, and lets answers
 * under way end for up to `grace_ms`; then closes all, which calls on_gone where it
 * is set. When everything is closed and every exchange has ended the server is freed and
 * `done` (may be NULL) is called. Never before this has returned. Calling it again before
 * that may shorten the time; the new `done` is then the one called.
 */
void hd_server_close(struct hd_server *server, int64_t grace_ms, void (*done)(void *arg),
                     void *arg);

/* hd_server_close() was called: streams should come to their end. */
bool hd_server_is_closing(const struct hd_server *server);

#endif
