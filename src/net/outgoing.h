/*
 * Where the server's own requests may go: what a run was given by somebody else (URLs of tools,
 * models, webhooks) must not lead to what only this machine or its network can reach.
 *
 * The address is checked at the moment of each connection, also after redirects and for connections
 * that are used again, so a name that changes its mind (DNS rebinding) gets nowhere. A proxy of the
 * environment looks names up itself: what would go through one is refused unless its host is
 * listed or is the number of a public address. Nothing is tried before it is refused, and all
 * refusals look the same.
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

/* Says which setting allows it, and nothing of what is there. */
#define HD_OUTGOING_REFUSAL                                                                      \
    "the host is not one that this server may ask: only public addresses are, and hosts in the " \
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
 * `hosts`: "name", "*.name", an address or a network ("10.0.0.0/8"), each but the last with
 * ":port" or without. HD_EINVAL says which is none of these. What is made is in the arena.
 */
HD_MUST_CHECK int hd_outgoing_init(struct hd_outgoing *outgoing, bool is_strict,
                                   const struct hd_slice *hosts, size_t count,
                                   struct hd_arena *arena, struct hd_fault *fault);

/* Whether the host of a URL is listed: then its address does not matter. */
bool hd_outgoing_lists(const struct hd_outgoing *outgoing, struct hd_slice host, int port);
/* Whether a connection may be made to it. */
bool hd_outgoing_allows(const struct hd_outgoing *outgoing, const struct sockaddr *address);

/* A connection that is about to be made or used for a request. */
struct hd_outgoing_way {
    const char *url;     /* where the request goes now */
    const char *trusted; /* a URL whose host the operator chose; NULL: none */
    bool is_direct;      /* without a proxy */
    const struct sockaddr *address;
};
bool hd_outgoing_permits(const struct hd_outgoing *outgoing, const struct hd_outgoing_way *way);

/*
 * What can be said of a URL before anybody asks: HD_EINVAL with HD_OUTGOING_REFUSAL when its host
 * is the number, or a name, of a private address. The others are found out on the way.
 */
HD_MUST_CHECK int hd_outgoing_check(const struct hd_outgoing *outgoing, struct hd_slice url,
                                    struct hd_fault *fault);

#endif
