/* A parsed request. Everything in it is borrowed and valid until its exchange ends. */
#ifndef HD_HTTP_REQUEST_H
#define HD_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum hd_method {
    HD_METHOD_OTHER, /* a valid method that no route can have */
    HD_METHOD_GET,
    HD_METHOD_HEAD,
    HD_METHOD_POST,
    HD_METHOD_PUT,
    HD_METHOD_PATCH,
    HD_METHOD_DELETE,
    HD_METHOD_OPTIONS
};

#define HD_METHOD_BIT(method) (1u << (unsigned)(method))

struct hd_header {
    struct hd_slice name;  /* in lower case */
    struct hd_slice value; /* without surrounding white space */
};

struct hd_http_request {
    enum hd_method method;
    struct hd_slice method_name; /* as sent, for logs */
    struct hd_slice authority;   /* "host:port" of a target in absolute form; empty: none */
    struct hd_slice path;        /* begins with '/', still percent-encoded */
    struct hd_slice query;       /* the part after '?', still percent-encoded */
    const struct hd_header *headers;
    size_t header_count;
    struct hd_slice body; /* complete; may be empty */
    bool is_http10;
    bool is_kept_alive; /* the connection stays open */
};

/* "GET"; "" for HD_METHOD_OTHER. */
const char *hd_method_name(enum hd_method method);

/* The methods of a mask as "GET, HEAD, POST"; `out` needs 64 bytes. Returns the length. */
size_t hd_method_list(unsigned mask, char out[64]);

/* The value of the first header with that name (in lower case); false when there is none. */
bool hd_request_header(const struct hd_http_request *request, struct hd_slice name,
                       struct hd_slice *out);

/* As above; empty when there is none. */
struct hd_slice hd_request_value(const struct hd_http_request *request, struct hd_slice name);

/*
 * Whether a browser sends the request for a web page. Sec-Fetch-Mode does not show it: Node's
 * fetch() sends it too.
 */
bool hd_request_is_of_page(const struct hd_http_request *request);

/*
 * Whether the request comes from this server's pages or from no page: for actions that other pages
 * must not do, whatever cors.allow_origins allows. Browsers set the headers; a page cannot make
 * other programs send requests.
 */
bool hd_request_is_same_origin(const struct hd_http_request *request);

/* Whether the Content-Type is application/json or application/…+json, with any parameters. */
bool hd_request_is_json(const struct hd_http_request *request);

/* Whether Accept-Encoding allows gzip ("gzip", "x-gzip" or "*", not with q=0). */
bool hd_request_accepts_gzip(const struct hd_http_request *request);

/* Compares ASCII letters case-insensitively. */
bool hd_slice_eq_nocase(struct hd_slice a, struct hd_slice b);

#endif
