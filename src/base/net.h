/*
 * IP addresses and networks. Pure.
 *
 * An address is always 16 bytes: IPv4 addresses are stored IPv4-mapped (::ffff:192.0.2.1), so that
 * both are compared in one way.
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

/* An address and its number of significant bits. */
struct hd_net {
    struct hd_ip address;
    int bits;
};

/*
 * "192.0.2.1", "2001:db8::1", "[::1]", with or without a zone ("%eth0"), which is left out. IPv4
 * only as four decimal numbers: the other forms that resolvers accept are rejected.
 */
bool hd_ip_parse(struct hd_slice text, struct hd_ip *out);
/* False: neither IPv4 nor IPv6. */
bool hd_ip_of(const struct sockaddr *from, struct hd_ip *out);
/* 0: no port. */
int hd_ip_port(const struct sockaddr *from);

/* "10.0.0.0/8", "fc00::/7", or an address alone. Bits after the significant ones must be 0. */
bool hd_net_parse(struct hd_slice text, struct hd_net *out);
bool hd_net_has(const struct hd_net *net, const struct hd_ip *address);

bool hd_ip_is_loopback(const struct hd_ip *address);
/*
 * True for an address of the public internet. False for this machine, private networks, link-local
 * addresses, shared (CGNAT), multicast, reserved and documentation ones, and for IPv6 addresses
 * that embed such an IPv4 address (mapped, NAT64, 6to4, ISATAP; Teredo always).
 */
bool hd_ip_is_public(const struct hd_ip *address);

/*
 * Splits "host", "host:port", "[::1]:port"; the host is without its brackets. `port` is 0 when
 * absent. False: it is neither. "::1" is a host.
 */
bool hd_authority_split(struct hd_slice text, struct hd_slice *host, int *port);
/*
 * True for "localhost", names below it, and loopback addresses; not for other names of this
 * machine.
 */
bool hd_host_names_loopback(struct hd_slice host);
/*
 * Compares without case and a final dot; the pattern "*.example.com" matches every name below it.
 */
bool hd_host_matches(struct hd_slice host, struct hd_slice pattern);

#endif
