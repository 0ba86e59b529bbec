/*
 * From bytes to requests: llhttp, strict, with the limits and the checks that it leaves to
 * others. Pure: no sockets, no clock. One parser for a connection, one request at a time.
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

struct hd_server_limits;
struct hd_span; /* private: where a header is in the text of the head */

enum hd_parse_outcome {
    HD_PARSE_MORE,   /* all was taken, the request is not complete */
    HD_PARSE_DONE,   /* a request is complete; hd_parser_next() before the next feed */
    HD_PARSE_REFUSED /* status and reason say why; nothing more can be fed */
};

struct hd_parser {
    llhttp_t http;
    const struct hd_server_limits *limits;
    uint64_t *body_held; /* bytes of bodies held by all parsers of the server */
    struct hd_buf head;  /* target and headers of the request, without what is between them */
    struct hd_buf body;
    struct hd_span *spans;
    size_t span_count;
    size_t span_cap;
    size_t target_len;
    size_t head_bytes; /* taken while in the head, and extensions and trailers after it */
    bool has_head;     /* the head is complete, the body may not be */
    bool is_in_value;
    bool expects_continue; /* the client waits for "100 Continue"; cleared by who sends it */
    int status;
    char reason[160];
    struct hd_arena *arena; /* for what `request` refers to */
    struct hd_http_request request;
};

/* Borrows all three for its life. */
void hd_parser_init(struct hd_parser *parser, const struct hd_server_limits *limits,
                    uint64_t *body_held, struct hd_arena *arena);
void hd_parser_fini(struct hd_parser *parser);

/* *used is how many of the bytes were taken; what follows a complete request is not. */
HD_MUST_CHECK enum hd_parse_outcome hd_parser_feed(struct hd_parser *parser, const char *data,
                                                   size_t len, size_t *used);

/* Forgets the request, which ends what refers to it, and keeps small buffers. */
void hd_parser_next(struct hd_parser *parser);

/* Gives back all buffers; between requests only. */
void hd_parser_trim(struct hd_parser *parser);

#endif
