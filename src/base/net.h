/*
 * Addresses of the internet and networks of them. Pure.
 *
 * An address is always 16 bytes: those of version 4 are written as version 6 has them
 * (::ffff:192.0.2.1), so that both are compared in one way.
 */
#ifndef HD_BASE_NET_H
#define HD_BASE_NET_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/slice.h"

#define HD_IP_LEN 16

struct hd_ip {
    unsigned char bytes[HD_IP_LEN];
};

/* An address and how many bits of it count. */
struct hd_net {
    struct hd_ip address;
    int bits;
};

/*
 * "192.0.2.1", "2001:db8::1", "[::1]", with or without a zone ("%eth0"), which is left out. Only the
 * usual four decimal numbers: what else resolvers take for a number is none here.
 */
bool hd_ip_parse(struct hd_slice text, struct hd_ip *out);
/* False: it is neither of version 4 nor of 6. */
bool hd_ip_of(const struct sockaddr *from, struct hd_ip *out);
/* 0: it has none. */
int hd_ip_port(const struct sockaddr *from);

/* "10.0.0.0/8", "fc00::/7", or an address alone. Bits behind those that count must be 0. */
bool hd_net_parse(struct hd_slice text, struct hd_net *out);
bool hd_net_has(const struct hd_net *net, const struct hd_ip *address);

bool hd_ip_is_loopback(const struct hd_ip *address);
/*
 * Whether it is one of the public internet. False for this machine, private networks, link-local
 * addresses, shared (CGNAT), multicast, reserved and documentation ones, and for those of version 6
 * that stand for such an address of version 4 (mapped, NAT64, 6to4, ISATAP; Teredo always).
 */
bool hd_ip_is_public(const struct hd_ip *address);

/*
 * Takes "host", "host:port", "[::1]:port" apart; the host is without its brackets. `port` is 0 when
 * there is none. False: it is neither. "::1" is a host.
 */
bool hd_authority_split(struct hd_slice text, struct hd_slice *host, int *port);
/* "localhost", what is below it, and numbers of this machine; not its other names. */
bool hd_host_names_loopback(struct hd_slice host);
/* Equal but for case and a dot at the end; a pattern "*.example.com" is all below it. */
bool hd_host_matches(struct hd_slice host, struct hd_slice pattern);

#endif
