/*
 * An HTTP/1.1 server on a libuv loop. Not thread-safe: everything runs on the loop's thread.
 *
 * Connections are kept alive; pipelined requests are handled in order, one at a time. Everything
 * that a peer can make grow or last has a limit below.
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

struct hd_http_server;
struct hd_tls;

struct hd_http_server_limits {
    /* concurrent; at the limit the longest idle one is closed, else new ones wait */
    size_t connections;
    size_t head;          /* bytes of a request's head, also of chunk extensions and trailers */
    size_t headers;       /* how many */
    size_t body;          /* bytes of a request's body */
    size_t body_total;    /* bytes of all bodies held at once */
    size_t pipelined;     /* bytes read from a socket while a request is handled */
    size_t stream_buffer; /* bytes of a stream buffered in this process */
    size_t stream_kernel; /* the same in the kernel (SO_SNDBUF); 0: the system's default */
    int64_t idle_ms;      /* between requests */
    int64_t head_ms;      /* from the first byte of a request to the end of its head */
    int64_t body_ms;      /* for the body, plus a second for each `rate` bytes received */
    int64_t write_ms;     /* for a response, likewise; for a stream: without progress */
    int64_t linger_ms;    /* after a refusal, for the client to read it */
    size_t rate;          /* minimum bytes per second of a slow peer */
};

/* Origins whose pages may use the server, besides its own. None by default. */
struct hd_cors {
    bool allows_loopback;           /* http(s) origins of this machine, with any port */
    const struct hd_slice *origins; /* "*" is every origin */
    size_t origin_count;
    const regex_t *pattern;     /* further origins; must match completely. NULL: none */
    const char *methods;        /* "GET, POST"; NULL: all */
    const char *headers;        /* request headers allowed; NULL: all */
    const char *exposed;        /* besides the server's; NULL: none */
    bool allow_credentials;     /* with a list of origins only */
    bool allow_private_network; /* pages from the internet may use a server on loopback */
    int max_age;                /* seconds that browsers cache a preflight */
};

/* Checks before a request is handled: accepted hosts, and trusted proxies. */
struct hd_browser_policy {
    /* Refuses a Host that is neither loopback nor listed, against DNS rebinding. */
    bool checks_host;
    const struct hd_slice *hosts; /* "name", "name:port", "*.name" */
    size_t host_count;
    const struct hd_net *proxies; /* with trusted X-Forwarded-For */
    size_t proxy_count;
};

/* Called on the loop when a request is complete. Responds at once or later (exchange.h). */
typedef void (*hd_handler_fn)(void *ctx, struct hd_exchange *ex);

/*
 * Called when a response is complete or dropped (status 0: the peer left before a response), for
 * logs and metrics. The exchange can still be read.
 */
typedef void (*hd_answered_fn)(void *ctx, const struct hd_exchange *ex, int status,
                               size_t body_bytes, int64_t took_us);

struct hd_http_server_config {
    struct hd_http_server_limits limits;
    struct hd_cors cors;
    struct hd_browser_policy guard;
    struct hd_tls *tls; /* NULL: without TLS */
    /*
     * Bodies of at least this many bytes are compressed if the client accepts it; 0: never. Not for
     * loopback peers, where it would only cost time.
     */
    size_t gzip_min;
    bool gzip_on_loopback;
    hd_handler_fn handler;
    hd_answered_fn answered; /* may be NULL */
    void *ctx;               /* for both */
};

struct hd_http_server_stats {
    uint64_t connections_open;
    uint64_t connections_total;
    uint64_t requests_open; /* response incomplete */
    uint64_t requests_total;
    uint64_t streams_open;
    uint64_t answers[6]; /* by status / 100; [0] had no response */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t refused;    /* malformed or over a limit */
    uint64_t timeouts;   /* connections closed as too slow */
    uint64_t gone;       /* peers that left before the response was complete */
    uint64_t body_bytes; /* held now */
};

/* Default limits, no CORS, gzip from 32 KiB on; no handler. */
void hd_http_server_config_init(struct hd_http_server_config *config);

/*
 * Copies the configuration but borrows its lists and `tls` for the server's life. The process
 * ignores SIGPIPE from now on, unless it has a handler for it.
 */
HD_MUST_CHECK int hd_http_server_create(struct hd_http_server **out, uv_loop_t *loop,
                                        const struct hd_http_server_config *config,
                                        struct heddle_error *fault);

/*
 * Listens on every address of `host` (a name or a number), with one port; skips unsupported address
 * families if at least one works. Port 0 is any free one. If the port is taken: HD_EEXISTS, or with
 * `or_next` the next free one of up to 100 ports. May be called more than once. `port_out` may be
 * NULL.
 */
HD_MUST_CHECK int hd_http_server_listen(struct hd_http_server *server, const char *host, int port,
                                        bool or_next, int *port_out, struct heddle_error *fault);

const struct hd_http_server_stats *hd_http_server_stats(const struct hd_http_server *server);

/*
 * Stops accepting connections and requests, closes idle connections, and lets active responses
 * finish for up to `grace_ms`; then closes all, which calls on_gone where it is set. When
 * everything is closed and every exchange has ended, frees the server and calls `done` (may be
 * NULL), never before this returns. A second call may shorten the time; its `done` replaces the
 * first.
 */
void hd_http_server_close(struct hd_http_server *server, int64_t grace_ms, void (*done)(void *arg),
                          void *arg);

/* hd_http_server_close() was called: streams should end. */
bool hd_http_server_is_closing(const struct hd_http_server *server);

#endif
