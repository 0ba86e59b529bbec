/* HTTP client on the loop: one libcurl multi handle per engine. */
#ifndef HD_NET_HTTP_CLIENT_H
#define HD_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_http;
struct hd_outgoing;
struct hd_request;

/* Why a request has no response. */
enum hd_http_failure {
    HD_HTTP_FINE,
    HD_HTTP_URL,     /* invalid, or not http or https */
    HD_HTTP_RESOLVE, /* unknown host */
    HD_HTTP_CONNECT,
    HD_HTTP_CONNECT_TIME, /* connect timeout */
    HD_HTTP_TLS,
    HD_HTTP_CLOSED,  /* before a response */
    HD_HTTP_TIMEOUT, /* total timeout */
    HD_HTTP_IDLE,    /* idle timeout */
    HD_HTTP_CUT,     /* within the response */
    HD_HTTP_LARGE,   /* the response exceeds max_body */
    HD_HTTP_STRANGE, /* the response is not HTTP */
    HD_HTTP_REFUSED, /* forbidden by outgoing.h */
    HD_HTTP_OTHER
};

struct hd_response {
    const char *error; /* NULL: a response arrived */
    enum hd_http_failure failure;
    int os_error;  /* errno of a connection that failed; 0: unknown */
    bool has_head; /* status and headers are valid */
    long status;
    struct hd_slice headers; /* all lines, as received */
    struct hd_slice body;
};

typedef void (*hd_response_fn)(void *ctx, const struct hd_response *response);

HD_MUST_CHECK int hd_http_create(uv_loop_t *loop, struct hd_http **out);
/* Ends pending requests: calls `done` with an error. */
void hd_http_destroy(struct hd_http *http);
/*
 * Restricts the targets of requests that are not trusted. Borrows `outgoing` for the client's life.
 */
void hd_http_set_outgoing(struct hd_http *http, const struct hd_outgoing *outgoing);

/*
 * `headers` are single lines: otherwise HD_EINVAL. Calls `done` once, asynchronously, unless the
 * request is cancelled.
 */
HD_MUST_CHECK int hd_http_start(struct hd_http *http, const char *method, const char *url,
                                const char *const *headers, size_t header_count,
                                struct hd_slice body, hd_response_fn done, void *ctx,
                                struct hd_request **out);
/*
 * No callback runs after this. Closes the connection at once, or when libcurl returns from the
 * callback that this is called in.
 */
void hd_http_cancel(struct hd_request *request);

/* A request. Everything is borrowed for the call, except `allows_ctx`. */
struct hd_http_what {
    const char *method;
    const char *url;
    const char *const *headers; /* lines */
    size_t header_count;
    struct hd_slice body;
    int64_t timeout_ms;  /* total; 0: none */
    bool is_direct;      /* no redirects and no proxy: connects to that host only */
    bool is_final;       /* no redirects, but the environment's proxy may be used */
    bool is_trusted;     /* the operator chose the URL: its host is allowed at any address */
    bool is_own;         /* this server itself: its certificate need not match the name */
    bool ignores_answer; /* discards the response body */
    int64_t idle_ms;     /* without a byte, also before the first; 0: none */
    size_t max_body;     /* of a buffered body; 0: 64 MiB */
    size_t max_given;    /* of a body passed to on_data; 0: no limit */
    /* Returns whether it may connect to the address; NULL: to any. */
    bool (*allows)(void *ctx, const struct sockaddr *address);
    void *allows_ctx;
    /*
     * Called when the head has arrived, before the body. True: the body goes to on_data in pieces;
     * false, or NULL: it is buffered. Uses the `ctx` of `done`.
     */
    bool (*on_head)(void *ctx, const struct hd_response *head);
    void (*on_data)(void *ctx, struct hd_slice data);
};

/* As hd_http_start(). */
HD_MUST_CHECK int hd_http_send(struct hd_http *http, const struct hd_http_what *what,
                               hd_response_fn done, void *ctx, struct hd_request **out);

/*
 * For bodies passed to on_data, from on_head until `done`. A paused connection is not read and has
 * no idle timeout; some kilobytes that libcurl has read already are kept. Neither calls back.
 */
void hd_http_pause(struct hd_request *request);
void hd_http_resume(struct hd_request *request);

#endif
