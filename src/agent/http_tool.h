/*
 * Plain HTTP tools: their declaration, the request of a call, and the result of a response. Pure.
 *
 * Arguments come from a model, so they are confined: to the path (percent-encoded, without `..`),
 * the query or the body, never the host or headers. Secrets are only in headers.
 */
#ifndef HD_AGENT_HTTP_TOOL_H
#define HD_AGENT_HTTP_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_TOOL_HTTP_MAX_HEADERS 64

/* HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_tool_http_check(const struct hd_val *tool, struct heddle_error *fault);

struct hd_tool_http_request {
    const char *method;
    struct hd_buf url; /* ends with NUL */
    struct hd_buf body;
    bool has_body;
    const char *headers[HD_TOOL_HTTP_MAX_HEADERS + 2]; /* lines; room for one more */
    size_t header_count;
    bool has_key;       /* the declaration has an Idempotency-Key, perhaps null */
    struct hd_buf text; /* of the headers */
    struct hd_slice secrets[2 * HD_TOOL_HTTP_MAX_HEADERS]; /* must not be shown */
    size_t secret_count;
};

void hd_tool_http_request_init(struct hd_tool_http_request *request);
void hd_tool_http_request_fini(struct hd_tool_http_request *request);

/*
 * `tool` must have been checked. `secrets` are the values of markers in its headers; borrowed for
 * the request's life. HD_EINVAL: the arguments cannot be sent, or a secret is unknown.
 */
HD_MUST_CHECK int hd_tool_http_request(struct hd_tool_http_request *request,
                                       const struct hd_val *tool, const struct hd_val *args,
                                       const struct hd_val *secrets, struct heddle_error *fault);

/* The result for the model from a response body. HD_EINVAL: it does not match `result`. */
HD_MUST_CHECK int hd_tool_http_result(const struct hd_val *tool, struct hd_slice body,
                                      struct hd_val **out, struct heddle_error *fault);

#endif
