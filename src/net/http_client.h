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

struct hd_client;
struct hd_outgoing;
struct hd_client_request;

/* Why a request has no response. */
enum hd_client_failure {
    HD_CLIENT_FINE,
    HD_CLIENT_URL,     /* invalid, or not http or https */
    HD_CLIENT_RESOLVE, /* unknown host */
    HD_CLIENT_CONNECT,
    HD_CLIENT_CONNECT_TIME, /* connect timeout */
    HD_CLIENT_TLS,
    HD_CLIENT_CLOSED,  /* before a response */
    HD_CLIENT_TIMEOUT, /* total timeout */
    HD_CLIENT_IDLE,    /* idle timeout */
    HD_CLIENT_CUT,     /* within the response */
    HD_CLIENT_LARGE,   /* the response exceeds max_body */
    HD_CLIENT_STRANGE, /* the response is not HTTP */
    HD_CLIENT_REFUSED, /* forbidden by outgoing.h */
    HD_CLIENT_OTHER
};

struct hd_client_response {
    const char *error; /* NULL: a response arrived */
    enum hd_client_failure failure;
    int os_error;  /* errno of a connection that failed; 0: unknown */
    bool has_head; /* status and headers are valid */
    long status;
    struct hd_slice headers; /* all lines, as received */
    struct hd_slice body;
};

typedef void (*hd_client_response_fn)(void *ctx, const struct hd_client_response *response);

HD_MUST_CHECK int hd_client_create(uv_loop_t *loop, struct hd_client **out);
/* Ends pending requests: calls `done` with an error. */
void hd_client_destroy(struct hd_client *http);
/*
 * Restricts the targets of requests that are not trusted. Borrows `outgoing` for the client's life.
 */
void hd_client_set_outgoing(struct hd_client *http, const struct hd_outgoing *outgoing);

/*
 * `headers` are single lines: otherwise HD_EINVAL. Calls `done` once, asynchronously, unless the
 * request is cancelled.
 */
HD_MUST_CHECK int hd_client_start(struct hd_client *http, const char *method, const char *url,
                                  const char *const *headers, size_t header_count,
                                  struct hd_slice body, hd_client_response_fn done, void *ctx,
                                  struct hd_client_request **out);
/*
 * No callback runs after this. Closes the connection at once, or when libcurl returns from the
 * callback that this is called in.
 */
void hd_client_cancel(struct hd_client_request *request);

/*
 * A frozen client does nothing: it neither connects, sends nor reads, and runs no callback.
 * Requests can be made and cancelled; they begin when it is released. Their total time goes on, the
 * idle time does not.
 */
void hd_client_freeze(struct hd_client *http, bool is_frozen);

/* A request. Everything is borrowed for the call, except `allows_ctx`. */
struct hd_client_options {
    const char *method;
    const char *url;
    const char *const *headers; /* lines */
    size_t header_count;
    struct hd_slice body;
    int64_t timeout_ms;  /* total; 0: none */
    int64_t connect_ms;  /* to connect; 0: 30 seconds */
    bool is_direct;      /* no redirects and no proxy: connects to that host only */
    bool is_verbatim;    /* the path of the URL is sent as it is, with any "." and ".." */
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
    bool (*on_head)(void *ctx, const struct hd_client_response *head);
    void (*on_data)(void *ctx, struct hd_slice data);
};

/* As hd_client_start(). */
HD_MUST_CHECK int hd_client_send(struct hd_client *http, const struct hd_client_options *options,
                                 hd_client_response_fn done, void *ctx,
                                 struct hd_client_request **out);

/* The number of connections at a time, 2048 by default, 0: no limit; further requests wait. */
void hd_client_set_connections(struct hd_client *http, long count);

/*
 * For bodies passed to on_data, from on_head until `done`. A paused connection is not read and has
 * no idle timeout; some kilobytes that libcurl has read already are kept. Neither calls back.
 */
void hd_client_pause(struct hd_client_request *request);
void hd_client_resume(struct hd_client_request *request);

#endif
