/* HTTP requests on the loop: one libcurl multi handle for an engine. */
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

/* Why there is no answer. */
enum hd_http_failure {
    HD_HTTP_FINE,
    HD_HTTP_URL,     /* it is none, or of another kind than http and https */
    HD_HTTP_RESOLVE, /* nobody knows the host */
    HD_HTTP_CONNECT,
    HD_HTTP_CONNECT_TIME, /* connecting took too long */
    HD_HTTP_TLS,
    HD_HTTP_CLOSED,  /* before there was an answer */
    HD_HTTP_TIMEOUT, /* all of it took too long */
    HD_HTTP_IDLE,    /* nothing came for too long */
    HD_HTTP_CUT,     /* within the answer */
    HD_HTTP_LARGE,   /* the answer is larger than what is kept */
    HD_HTTP_STRANGE, /* the answer is no HTTP */
    HD_HTTP_REFUSED, /* it must not be asked: outgoing.h */
    HD_HTTP_OTHER
};

struct hd_response {
    const char *error; /* NULL: there is an answer */
    enum hd_http_failure failure;
    int os_error;  /* errno of a connection that failed; 0: unknown */
    bool has_head; /* the answer had begun: status and headers are there */
    long status;
    struct hd_slice headers; /* as they came, all lines */
    struct hd_slice body;
};

typedef void (*hd_response_fn)(void *ctx, const struct hd_response *response);

HD_MUST_CHECK int hd_http_create(uv_loop_t *loop, struct hd_http **out);
/* Requests that are under way end: their `done` is called with an error. */
void hd_http_destroy(struct hd_http *http);
/* Where its requests may go, but for those that are trusted; borrowed as long as it is there. */
void hd_http_set_outgoing(struct hd_http *http, const struct hd_outgoing *outgoing);

/*
 * `headers` are lines, each of one line: otherwise HD_EINVAL. `done` is called once, later, unless
 * the request is cancelled.
 */
HD_MUST_CHECK int hd_http_start(struct hd_http *http, const char *method, const char *url,
                                const char *const *headers, size_t header_count,
                                struct hd_slice body, hd_response_fn done, void *ctx,
                                struct hd_request **out);
/* Nothing is called back any more, and its connection is closed: at once, or as soon as libcurl
 * has returned from the callback that this is called in. */
void hd_http_cancel(struct hd_request *request);

/* What is sent and how; everything is borrowed for the call, but for `allows_ctx`. */
struct hd_http_what {
    const char *method;
    const char *url;
    const char *const *headers; /* lines */
    size_t header_count;
    struct hd_slice body;
    int64_t timeout_ms;  /* for all of it; 0: none */
    bool is_direct;      /* follows no redirects and uses no proxy: only that host is spoken to */
    bool is_final;       /* follows no redirects, but may use the proxy of the environment */
    bool is_trusted;     /* the operator chose the URL: its host is allowed, wherever it is */
    bool is_own;         /* this server itself: its certificate need not be for that name */
    bool ignores_answer; /* the body of the answer is not kept */
    int64_t idle_ms;     /* without a byte, also before the first; 0: none */
    size_t max_body;     /* of what is kept; 0: 64 MiB */
    size_t max_given;    /* of what is given to on_data; 0: any */
    /* Whether it may connect to that address; NULL: to any. */
    bool (*allows)(void *ctx, const struct sockaddr *address);
    void *allows_ctx;
    /*
     * The head of the answer is there, but not its body: whether that is given to on_data, piece by
     * piece, instead of being kept. NULL: never. With the `ctx` of `done`.
     */
    bool (*on_head)(void *ctx, const struct hd_response *head);
    void (*on_data)(void *ctx, struct hd_slice data);
};

/* As hd_http_start(). */
HD_MUST_CHECK int hd_http_send(struct hd_http *http, const struct hd_http_what *what,
                               hd_response_fn done, void *ctx, struct hd_request **out);

/*
 * For answers that are given on, from on_head until `done`: paused, its connection is not read, and
 * silence is nobody's fault. What libcurl has read already, some kilobytes, waits. Neither
 * calls back.
 */
void hd_http_pause(struct hd_request *request);
void hd_http_resume(struct hd_request *request);

#endif
