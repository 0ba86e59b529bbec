/*
 * Plain HTTP tools: what their declaration says, the request that a call is, and what an
 * answer means. Pure.
 *
 * Arguments come from a model, so they stay where they belong: in the path (percent-encoded, never
 * a way up), the query or the body, never in the host or in headers. Secrets are in headers
 * alone.
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

#define HD_HTTP_TOOL_MAX_HEADERS 64

/* HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_http_tool_check(const struct hd_val *tool, struct hd_fault *fault);

struct hd_http_tool_request {
    const char *method;
    struct hd_buf url; /* ends with NUL */
    struct hd_buf body;
    bool has_body;
    const char *headers[HD_HTTP_TOOL_MAX_HEADERS + 2]; /* lines; room for one more */
    size_t header_count;
    bool has_key;       /* the declaration has an Idempotency-Key, perhaps null */
    struct hd_buf text; /* of the headers */
    struct hd_slice secrets[2 * HD_HTTP_TOOL_MAX_HEADERS]; /* what must not be shown */
    size_t secret_count;
};

void hd_http_tool_request_init(struct hd_http_tool_request *request);
void hd_http_tool_request_fini(struct hd_http_tool_request *request);

/*
 * `tool` was checked. `secrets` are what markers in its headers stand for; they must stay as long
 * as the request. HD_EINVAL: the arguments cannot be sent, or a secret is not known any more.
 */
HD_MUST_CHECK int hd_http_tool_request(struct hd_http_tool_request *request,
                                       const struct hd_val *tool, const struct hd_val *args,
                                       const struct hd_val *secrets, struct hd_fault *fault);

/* What the model is told of the body of an answer. HD_EINVAL: it is not as `result` wants it. */
HD_MUST_CHECK int hd_http_tool_result(const struct hd_val *tool, struct hd_slice body,
                                      struct hd_val **out, struct hd_fault *fault);

#endif
