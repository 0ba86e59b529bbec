/* A declared `tools` node: node_tools.c parses it, toolset.c uses its sources. */
#ifndef HD_AGENT_TOOLS_H
#define HD_AGENT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/expr/expr.h"
#include "value/val.h"

struct hd_source_kind;

struct hd_tools_source {
    const struct hd_source_kind *kind;
    const struct hd_expr *value;
};

struct hd_tools_sources {
    struct hd_tools_source *list;
    size_t count;
};

struct hd_tools_spec {
    struct hd_tools_sources sources;
    const struct hd_expr *call;     /* NULL: the member `call` of the send */
    const struct hd_expr *approval; /* NULL: none required */
    struct hd_slice channel;        /* receives the tool message */
    int64_t tool_timeout_ms;
    int64_t max_result_bytes;
};

/* tool_args.c: HD_EINVAL with the reason, for the model to read. */
HD_MUST_CHECK int hd_tool_args_check(const struct hd_val *schema, const struct hd_val *args,
                                     struct heddle_error *fault);

/* tool_result.c: a tool's result (taken), as message content. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_tool_content(struct hd_val *content, size_t max);
bool hd_tool_is_small(const struct hd_val *val, size_t max);

#endif
