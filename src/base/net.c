#include "base/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define MAPPED_BITS 96

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void set_four(struct hd_ip *out, const void *four)
{
    memcpy(out->bytes, mapped, sizeof(mapped));
    memcpy(out->bytes + sizeof(mapped), four, 4);
}

/* ---- texts ------------------------------------------------------------ */

static struct hd_slice without_brackets(struct hd_slice text)
{
    if (text.len > 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
        return hd_slice(text.ptr + 1, text.len - 2);
    return text;
}

bool hd_ip_parse(struct hd_slice text, struct hd_ip *out)
{
    char room[INET6_ADDRSTRLEN];
    unsigned char four[4];
    const char *zone;

    text = without_brackets(text);
    zone = text.len > 0 ? memchr(text.ptr, '%', text.len) : NULL;
    if (zone)
        text.len = (size_t)(zone - text.ptr);
    if (text.len == 0 || text.len >= sizeof(room) || memchr(text.ptr, '\0', text.len))
        return false;
    memcpy(room, text.ptr, text.len);
    room[text.len] = '\0';
    if (inet_pton(AF_INET6, room, out->bytes) == 1)
        return true;
    if (zone || inet_pton(AF_INET, room, four) != 1)
        return false;
    set_four(out, four);
    return true;
}

bool hd_ip_of(const struct sockaddr *from, struct hd_ip *out)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if (from->sa_family == AF_INET) {
        memcpy(&four, from, sizeof(four));
        set_four(out, &four.sin_addr);
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(&six, from, sizeof(six));
    memcpy(out->bytes, &six.sin6_addr, sizeof(out->bytes));
    return true;
}

int hd_ip_port(const struct sockaddr *from)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if (from->sa_family == AF_INET) {
        memcpy(&four, from, sizeof(four));
        return ntohs(four.sin_port);
    }
    if (from->sa_family != AF_INET6)
        return 0;
    memcpy(&six, from, sizeof(six));
    return ntohs(six.sin6_port);
}

/* ---- networks --------------------------------------------------------- */

static bool is_four(const struct hd_ip *address)
{
    return memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

/* A decimal number of up to five digits without leading zeros; -1: not a number. */
static int net_read_number(struct hd_slice text)
{
    int number = 0;

    if (text.len == 0 || text.len > 5 || (text.len > 1 && text.ptr[0] == '0'))
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        number = number * 10 + (text.ptr[i] - '0');
    }
    return number;
}

static bool has_more_bits(const struct hd_net *net)
{
    for (int i = net->bits; i < 8 * HD_IP_LEN; i++) {
        if (net->address.bytes[i / 8] & (0x80 >> (i % 8)))
            return true;
    }
    return false;
}

bool hd_net_parse(struct hd_slice text, struct hd_net *out)
{
    const char *slash = text.len > 0 ? memchr(text.ptr, '/', text.len) : NULL;
    struct hd_slice address = text;
    bool is_six;
    int bits = -1;

    if (slash)
        address.len = (size_t)(slash - text.ptr);
    /* "::ffff:10.0.0.0/104" is an IPv6 network: the notation decides how bits are counted. */
    is_six = address.len > 0 && memchr(address.ptr, ':', address.len) != NULL;
    if (!hd_ip_parse(address, &out->address))
        return false;
    if (slash)
        bits = net_read_number(hd_slice(slash + 1, text.len - address.len - 1));
    if (slash && (bits < 0 || bits > (is_six ? 128 : 32)))
        return false;
    out->bits = !slash ? 128 : is_six ? bits : bits + MAPPED_BITS;
    return !has_more_bits(out);
}

bool hd_net_has(const struct hd_net *net, const struct hd_ip *address)
{
    size_t whole = (size_t)net->bits / 8;
    int mask = 0xff00 >> (net->bits % 8) & 0xff;

    if (memcmp(net->address.bytes, address->bytes, whole) != 0)
        return false;
    return whole == HD_IP_LEN ||
           (net->address.bytes[whole] & mask) == (address->bytes[whole] & mask);
}

/* ---- public addresses ------------------------------------------------- */

struct address_block {
    uint32_t start;
    int bits;
};

/* The registry of special-purpose addresses, and addresses of groups. */
static const struct address_block closed[] = {
    {0x00000000, 8},  /* this network */
    {0x0a000000, 8},  /* private */
    {0x64400000, 10}, /* shared by customers of a provider */
    {0x7f000000, 8},  /* loopback */
    {0xa9fe0000, 16}, /* link-local, which includes the metadata services of clouds */
    {0xac100000, 12}, /* private */
    {0xc0000000, 24}, /* protocol assignments */
    {0xc0000200, 24}, /* documentation */
    {0xc0586300, 24}, /* 6to4 relays */
    {0xc0a80000, 16}, /* private */
    {0xc6120000, 15}, /* benchmarking */
    {0xc6336400, 24}, /* documentation */
    {0xcb007100, 24}, /* documentation */
    {0xe0000000, 4},  /* multicast */
    {0xf0000000, 4},  /* reserved, broadcast */
};

static bool is_public_four(const unsigned char *bytes)
{
    uint32_t address;

    memcpy(&address, bytes, sizeof(address));
    address = ntohl(address);
    for (size_t i = 0; i < HD_COUNT(closed); i++) {
        if ((address ^ closed[i].start) >> (32 - closed[i].bits) == 0)
            return false;
    }
    return true;
}

static bool starts_with(const struct hd_ip *address, struct hd_slice bytes)
{
    return memcmp(address->bytes, bytes.ptr, bytes.len) == 0;
}

static bool is_isatap(const unsigned char *bytes)
{
    return (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

bool hd_ip_is_public(const struct hd_ip *address)
{
    const unsigned char *bytes = address->bytes;

    if (is_four(address))
        return is_public_four(bytes + 12);
    /* NAT64: a gateway would translate it to the IPv4 address. */
    if (starts_with(address, HD_S("\x00\x64\xff\x9b\0\0\0\0\0\0\0\0")))
        return is_public_four(bytes + 12);
    if ((bytes[0] & 0xe0) != 0x20)
        return false; /* only 2000::/3 is allocated */
    if (starts_with(address, HD_S("\x20\x02")) && !is_public_four(bytes + 2))
        return false; /* 6to4 */
    if (starts_with(address, HD_S("\x20\x01")) && bytes[2] < 2)
        return false; /* protocol assignments, which include Teredo */
    if (starts_with(address, HD_S("\x20\x01\x0d\xb8")))
        return false; /* documentation */
    if (starts_with(address, HD_S("\x3f\xff")) && bytes[2] < 0x10)
        return false; /* documentation */
    return !is_isatap(bytes) || is_public_four(bytes + 12);
}

bool hd_ip_is_loopback(const struct hd_ip *address)
{
    static const unsigned char one[HD_IP_LEN] = {[15] = 1};

    return memcmp(address->bytes, one, sizeof(one)) == 0 ||
           (is_four(address) && address->bytes[12] == 127);
}

/* ---- hosts ------------------------------------------------------------ */

bool hd_authority_split(struct hd_slice text, struct hd_slice *host, int *port)
{
    const char *colon, *end;
    bool is_bracketed;
    size_t len;

    *port = 0;
    *host = text;
    if (text.len == 0 || !text.ptr)
        return false;
    colon = memrchr(text.ptr, ':', text.len);
    end = memrchr(text.ptr, ']', text.len);
    is_bracketed = text.ptr[0] == '[';
    if (is_bracketed != (end != NULL))
        return false;
    /* Several colons without brackets: an IPv6 address. */
    if (colon && !is_bracketed && memchr(text.ptr, ':', (size_t)(colon - text.ptr)))
        return true;
    if (colon && (!end || colon > end)) {
        len = (size_t)(colon - text.ptr);
        *port = net_read_number(hd_slice(colon + 1, text.len - len - 1));
        if (*port < 1 || *port > 65535)
            return false;
        *host = hd_slice(text.ptr, len);
    }
    *host = without_brackets(*host);
    return host->len > 0 && (!is_bracketed || host->ptr != text.ptr) &&
           memchr(host->ptr, '[', host->len) == NULL && memchr(host->ptr, ']', host->len) == NULL;
}

static struct hd_slice without_dot(struct hd_slice host)
{
    if (host.len > 1 && host.ptr[host.len - 1] == '.')
        host.len--;
    return host;
}

bool hd_host_matches(struct hd_slice host, struct hd_slice pattern)
{
    host = without_dot(host);
    pattern = without_dot(pattern);
    if (hd_slice_starts(pattern, HD_S("*."))) {
        pattern = hd_slice(pattern.ptr + 1, pattern.len - 1);
        if (host.len <= pattern.len)
            return false;
        host = hd_slice(host.ptr + host.len - pattern.len, pattern.len);
    }
    return host.len == pattern.len && host.len > 0 &&
           strncasecmp(host.ptr, pattern.ptr, host.len) == 0;
}

bool hd_host_names_loopback(struct hd_slice host)
{
    struct hd_ip address;

    if (hd_ip_parse(host, &address))
        return hd_ip_is_loopback(&address);
    return hd_host_matches(host, HD_S("localhost")) || hd_host_matches(host, HD_S("*.localhost"));
}
