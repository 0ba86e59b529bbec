/*
 * Maps a method and a path to a route. Pure: builds a tree of segments from a table once; a match
 * copies only parameters that were percent-encoded.
 *
 * A pattern has segments of fixed text or of one parameter: "/threads/{thread_id}/state". The last
 * may be "{name*}", which takes the rest of the path with slashes. Fixed text takes precedence over
 * a parameter; a route with the path but not the method does not hide one with both. One trailing
 * slash and several leading ones are ignored.
 */
#ifndef HD_HTTP_ROUTER_H
#define HD_HTTP_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "http/request.h"

#define HD_ROUTER_MAX_PARAMS 8
#define HD_ROUTER_MAX_SEGMENTS 16

struct hd_router;

struct hd_router_entry {
    enum hd_method method; /* neither HEAD (uses GET) nor OPTIONS */
    const char *pattern;
};

enum hd_match_kind {
    HD_MATCH_FOUND,
    HD_MATCH_OPTIONS,   /* an OPTIONS request: 204 with `methods` as Allow */
    HD_MATCH_NO_PATH,   /* 404 */
    HD_MATCH_NO_METHOD, /* 405 with `methods` as Allow */
    HD_MATCH_MALFORMED  /* 400: invalid percent-encoding or UTF-8, or a NUL */
};

struct hd_match {
    enum hd_match_kind kind;
    size_t route;     /* index in the table; if found */
    unsigned methods; /* HD_METHOD_BIT of all methods of this path */
    size_t param_count;
    struct hd_slice params[HD_ROUTER_MAX_PARAMS]; /* decoded, in the order of the pattern */
};

/* HD_EINVAL for an invalid or duplicate pattern. Copies the table. */
HD_MUST_CHECK int hd_router_create(struct hd_router **out, const struct hd_router_entry *entries,
                                   size_t count, struct heddle_error *fault);
void hd_router_destroy(struct hd_router *router);

/*
 * 0 with the outcome in *out, or HD_ENOMEM. `path` is percent-encoded, as in the request.
 * Parameters are borrowed from `path` or are in the arena. Safe from any thread.
 */
HD_MUST_CHECK int hd_router_match(const struct hd_router *router, enum hd_method method,
                                  struct hd_slice path, struct hd_arena *arena,
                                  struct hd_match *out);

/* The name of the route's n-th parameter; empty when it has fewer. */
struct hd_slice hd_router_param_name(const struct hd_router *router, size_t route, size_t n);

#endif
