/*
 * Parses bytes to requests: strict llhttp, with additional limits and checks. Pure: no sockets, no
 * clock. One parser per connection, one request at a time.
 */
#ifndef HD_HTTP_PARSE_H
#define HD_HTTP_PARSE_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "http/request.h"

struct hd_http_server_limits;
struct hd_span; /* private: position of a header in the head's text */

enum hd_parse_outcome {
    HD_PARSE_MORE,   /* all input was used, the request is incomplete */
    HD_PARSE_DONE,   /* a request is complete; hd_parser_next() before the next feed */
    HD_PARSE_REFUSED /* with status and reason; feed nothing more */
};

struct hd_parser {
    llhttp_t http;
    const struct hd_http_server_limits *limits;
    uint64_t *body_held; /* bytes of all bodies held by the server's parsers */
    struct hd_buf head;  /* target and headers of the request, without separators */
    struct hd_buf body;
    struct hd_span *spans;
    size_t span_count;
    size_t span_cap;
    size_t target_len;
    size_t head_bytes; /* received in the head, plus extensions and trailers after it */
    bool has_head;     /* the head is complete, the body may be incomplete */
    bool is_in_value;
    bool expects_continue; /* the client waits for "100 Continue"; the sender of it clears this */
    int status;
    char reason[160];
    struct hd_arena *arena; /* memory of `request` */
    struct hd_http_request request;
};

/* Borrows all three for its life. */
void hd_parser_init(struct hd_parser *parser, const struct hd_http_server_limits *limits,
                    uint64_t *body_held, struct hd_arena *arena);
void hd_parser_fini(struct hd_parser *parser);

/* *used is the number of bytes used; bytes after a complete request are not. */
HD_MUST_CHECK enum hd_parse_outcome hd_parser_feed(struct hd_parser *parser, const char *data,
                                                   size_t len, size_t *used);

/* Drops the request and everything that refers to it; keeps small buffers. */
void hd_parser_next(struct hd_parser *parser);

/* Frees all buffers; between requests only. */
void hd_parser_trim(struct hd_parser *parser);

#endif
