/* HTTP requests on the loop: one libcurl multi handle for an engine. */
#ifndef HD_GRAPH_HTTP_H
#define HD_GRAPH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_http;
struct hd_request;

struct hd_response {
    const char *error; /* NULL: there is an answer */
    long status;
    struct hd_slice headers; /* as they came, all lines */
    struct hd_slice body;
};

typedef void (*hd_response_fn)(void *ctx, const struct hd_response *response);

HD_MUST_CHECK int hd_http_create(uv_loop_t *loop, struct hd_http **out);
/* No request may be under way. */
void hd_http_destroy(struct hd_http *http);

/* `headers` are lines. `done` is called once, later, unless the request is cancelled. */
HD_MUST_CHECK int hd_http_start(struct hd_http *http, const char *method, const char *url,
                                const char *const *headers, size_t header_count,
                                struct hd_slice body, hd_response_fn done, void *ctx,
                                struct hd_request **out);
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
    bool ignores_answer; /* the body of the answer is not kept */
    /* Whether it may connect to that address; NULL: to any. */
    bool (*allows)(void *ctx, const struct sockaddr *address);
    void *allows_ctx;
};

/* As hd_http_start(). */
HD_MUST_CHECK int hd_http_send(struct hd_http *http, const struct hd_http_what *what,
                               hd_response_fn done, void *ctx, struct hd_request **out);

#endif
