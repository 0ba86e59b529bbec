/* libFuzzer: any text as an address, a network, a host with a port. A parsed host is inside the
 * text, a network contains its own address, and an IPv4-mapped address is as public as its NAT64
 * form. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size), host;
    struct hd_ip address, nat64;
    struct hd_net net;
    int port;

    if (hd_net_parse(text, &net))
        require(net.bits >= 0 && net.bits <= 128 && hd_net_has(&net, &net.address), "a network");
    if (hd_authority_split(text, &host, &port))
        require(host.len > 0 && host.ptr >= text.ptr && host.ptr + host.len <= text.ptr + size &&
                    port >= 0 && port <= 65535,
                "a host");
    (void)hd_host_names_loopback(text);
    (void)hd_host_matches(text, HD_S("*.example.com"));
    if (!hd_ip_parse(text, &address))
        return 0;
    require(!hd_ip_is_loopback(&address) || !hd_ip_is_public(&address), "both");
    nat64 = address;
    memcpy(nat64.bytes, "\x00\x64\xff\x9b\0\0\0\0\0\0\0\0", 12);
    memcpy(address.bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    require(hd_ip_is_public(&address) == hd_ip_is_public(&nat64), "embedded");
    return 0;
}
