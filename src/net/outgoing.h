/*
 * Restricts the targets of the server's own requests: URLs in user input (tools, models, webhooks)
 * must not reach addresses that only this machine or its network can reach (SSRF).
 *
 * The address is checked for each connection, also after redirects and for reused connections, so
 * DNS rebinding has no effect. A proxy of the environment resolves names itself: requests through
 * one are refused unless the host is listed or is a public address. A refused request sends
 * nothing, and all refusals have the same text.
 */
#ifndef HD_NET_OUTGOING_H
#define HD_NET_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/net.h"
#include "base/slice.h"

/* Names the setting that allows it, but reveals nothing about the target. */
#define HD_OUTGOING_REFUSAL                                                                      \
    "this server may not connect to the host: it allows only public addresses and hosts in the " \
    "setting outgoing.allowed_hosts"

struct hd_outgoing_rule {
    struct hd_slice host; /* a name or "*.name"; ptr NULL: a network */
    struct hd_net net;
    int port; /* 0: any */
};

struct hd_outgoing {
    bool is_strict; /* false: everything is allowed */
    struct hd_outgoing_rule *rules;
    size_t count;
};

/*
 * `hosts`: "name", "*.name", an address or a network ("10.0.0.0/8"), each but the last with ":port"
 * or without. HD_EINVAL with the invalid one in the error. Results are in the arena.
 */
HD_MUST_CHECK int hd_outgoing_init(struct hd_outgoing *outgoing, bool is_strict,
                                   const struct hd_slice *hosts, size_t count,
                                   struct hd_arena *arena, struct heddle_error *fault);

/* Whether the host of a URL is listed: then any address is allowed. */
bool hd_outgoing_lists(const struct hd_outgoing *outgoing, struct hd_slice host, int port);
/* Whether a connection to the address is allowed. */
bool hd_outgoing_allows(const struct hd_outgoing *outgoing, const struct sockaddr *address);

/* A connection that is about to be opened or reused for a request. */
struct hd_outgoing_target {
    const char *url;     /* the current URL */
    const char *trusted; /* a URL whose host the operator chose; NULL: none */
    bool is_direct;      /* without a proxy */
    const struct sockaddr *address;
};
bool hd_outgoing_permits(const struct hd_outgoing *outgoing,
                         const struct hd_outgoing_target *target);

/*
 * Checks a URL before a request: HD_EINVAL with HD_OUTGOING_REFUSAL when its host is a private
 * address or a name of one. Other private hosts are found when connecting.
 */
HD_MUST_CHECK int hd_outgoing_check(const struct hd_outgoing *outgoing, struct hd_slice url,
                                    struct heddle_error *fault);

#endif
