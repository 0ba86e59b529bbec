/* The headers of a request that the graphs of its runs receive. */
#ifndef HD_API_REQUEST_GRAPH_HEADERS_H
#define HD_API_REQUEST_GRAPH_HEADERS_H

#include "api/api.h"
#include "base/compiler.h"

/*
 * Writes a JSON object of the headers that headers.to_graphs lists, in the call's arena.
 * Headers that may carry a secret are never among them, except, `with_token`, the user's own token.
 */
HD_MUST_CHECK int hd_graph_headers_write(struct hd_call *call, bool with_token,
                                         struct hd_slice *out);

#endif
