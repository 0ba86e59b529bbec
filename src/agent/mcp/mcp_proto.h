/*
 * The Model Context Protocol: messages, versions, headers, lists and results of tools. Pure:
 * nothing here sends or waits.
 *
 * Two forms are supported. The *legacy* one (up to 2025-11-25) opens a session with `initialize`.
 * In the *modern* one (2026-07-28) each request is independent and describes itself in `_meta` and
 * in headers.
 */
#ifndef HD_AGENT_MCP_MCP_PROTO_H
#define HD_AGENT_MCP_MCP_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_MCP_MODERN "2026-07-28"
#define HD_MCP_LEGACY "2025-11-25" /* offered; older ones are accepted */

/* Error codes of servers. */
enum {
    HD_MCP_INTERACTION_REQUIRED = -32003,
    HD_MCP_HEADER_MISMATCH = -32020,
    HD_MCP_MISSING_CAPABILITY = -32021,
    HD_MCP_UNSUPPORTED_VERSION = -32022,
    HD_MCP_URL_REQUIRED = -32042,
    HD_MCP_NO_METHOD = -32601,
    HD_MCP_BAD_PARAMS = -32602
};

/* Whether that version supports sessions. */
bool hd_mcp_is_legacy(struct hd_slice version);

/* ---- messages --------------------------------------------------------- */

enum hd_mcp_kind { HD_MCP_RESULT, HD_MCP_ERROR, HD_MCP_REQUEST, HD_MCP_NOTIFICATION };

struct hd_mcp_message {
    enum hd_mcp_kind kind;
    struct hd_val *whole; /* all below borrow from it */
    const struct hd_val *id;
    struct hd_slice method;
    const struct hd_val *params;
    const struct hd_val *result; /* object */
    int64_t code;                /* of an error, with its text and data */
    struct hd_slice text;
    const struct hd_val *data;
};

/* HD_EINVAL: not a JSON-RPC message; the reason is in `fault`. */
HD_MUST_CHECK int hd_mcp_message_read(struct hd_slice text, struct hd_mcp_message *out,
                                      struct heddle_error *fault);
void hd_mcp_message_fini(struct hd_mcp_message *message);
bool hd_mcp_message_is_for(const struct hd_mcp_message *message, int64_t id);
/* An error that only servers of the modern form send. */
bool hd_mcp_message_is_modern(const struct hd_mcp_message *message);

/* These append a whole message. `params` may be NULL; modern requests get their `_meta`. */
HD_MUST_CHECK int hd_mcp_write_request(struct hd_buf *out, int64_t id, const char *method,
                                       const struct hd_val *params, bool is_modern);
HD_MUST_CHECK int hd_mcp_write_notification(struct hd_buf *out, const char *method,
                                            const struct hd_val *params);
HD_MUST_CHECK int hd_mcp_write_result(struct hd_buf *out, const struct hd_val *id,
                                      const struct hd_val *result);
HD_MUST_CHECK int hd_mcp_write_error(struct hd_buf *out, const struct hd_val *id, int code,
                                     const char *text);
/* Params of `initialize`. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_mcp_initialize_params(void);

/* ---- headers ---------------------------------------------------------- */

/* Encodes a header value: plain, or `=?base64?…?=`. */
HD_MUST_CHECK int hd_mcp_header_value(struct hd_buf *out, struct hd_slice value);

/* Whether all `x-mcp-header` members of a schema are supported. HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_mcp_headers_check(const struct hd_val *schema, struct heddle_error *fault);
/* Appends "Mcp-Param-Name: value" and a NUL for each mirrored argument. */
HD_MUST_CHECK int hd_mcp_headers_write(struct hd_buf *out, const struct hd_val *schema,
                                       const struct hd_val *args);

/* ---- results: mcp_result.c -------------------------------------------- */

struct hd_mcp_outcome {
    struct hd_val *content;  /* a string, or a list of LangChain's content blocks */
    struct hd_val *artifact; /* {"structured_content": …}, or NULL */
    bool is_error;           /* `content` is a string then */
};

/* The result of tools/call. HD_EINVAL: invalid. */
HD_MUST_CHECK int hd_mcp_result_read(const struct hd_val *result, struct hd_mcp_outcome *out,
                                     struct heddle_error *fault);
void hd_mcp_outcome_fini(struct hd_mcp_outcome *outcome);
/* An error as text for the model, with the URLs in it. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_mcp_error_text(int64_t code, struct hd_slice text,
                                               const struct hd_val *data);

/* ---- elicitations: mcp_ask.c ------------------------------------------ */

/* Requests of servers in the middle of a call, as {key: {"method", "params"}}. */

/* NULL: all can be shown to a human; else the method that cannot. */
const char *hd_mcp_ask_check(const struct hd_val *requests);
/*
 * The value of the interrupt. `state` is opaque, or NULL. `earlier`: legacy, a list of earlier
 * replies, which the server will request again; else NULL.
 */
HD_MUST_CHECK struct hd_val *hd_mcp_ask_question(struct hd_slice server, struct hd_slice tool,
                                                 const struct hd_val *requests,
                                                 const struct hd_val *state,
                                                 const struct hd_val *earlier);
/* Whether it belongs to this server and tool. */
bool hd_mcp_ask_is_question(const struct hd_val *question, struct hd_slice server,
                            struct hd_slice tool);
/* An object of key to response, from the human's reply. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_mcp_ask_responses(const struct hd_val *requests,
                                                  const struct hd_val *answer);
/* The response that accepts with the form's defaults; declines when they are incomplete. */
HD_MUST_CHECK struct hd_val *hd_mcp_ask_defaults(const struct hd_val *request);

#endif
