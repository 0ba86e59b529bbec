/*
 * A2A agents as tools. A source names them:
 *
 *   {"agents": [{"name", "url", "endpoint", "headers", "token", "protocol"}]}, or the list alone.
 *
 * A peer is one of them, in one run: its configuration, and its card once fetched.
 */
#ifndef HD_AGENT_A2A_A2A_CLIENT_H
#define HD_AGENT_A2A_A2A_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/a2a/a2a_proto.h"
#include "agent/tool.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_A2A_MAX_PEERS 32
#define HD_A2A_MAX_HEADERS 32

struct hd_agent_exchange;

struct hd_a2a_peer {
    /* configured */
    struct hd_slice name; /* empty: the card's */
    const char *url;
    const char *endpoint; /* overrides the card's URL; NULL: use the card's */
    enum hd_a2a_dialect wanted;
    const char **lines; /* its headers, and its token */
    size_t line_count;
    struct hd_slice *secrets; /* the values of these */
    size_t secret_count;

    /* discovered */
    struct hd_tool_source *source;
    struct hd_a2a_card card;
    bool has_card;
    struct hd_agent_exchange *exchange; /* fetches the card */
    struct heddle_error fault;          /* set if it cannot be called */
    struct hd_val *context_id;          /* of the conversation with it; NULL: not yet */
};

/*
 * a2a_config.c: pure. Names borrow from `value`; all else is in the arena. Secrets in it must be
 * revealed before peers are used, not before they are checked. HD_EINVAL with the reason.
 */
HD_MUST_CHECK int hd_a2a_config_read(const struct hd_val *value, struct hd_arena *arena,
                                     struct hd_a2a_peer **out, size_t *count,
                                     struct heddle_error *fault);

/* a2a_call.c: the functions of struct hd_source_kind; the tool's `own` is the peer. */
HD_MUST_CHECK int hd_a2a_call(struct hd_tool_call *call);
void hd_a2a_call_cancel(struct hd_tool_call *call);

#endif
