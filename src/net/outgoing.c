/*
 * libcurl parses the URLs, because it also opens the connections: two parsers that disagree on a
 * URL would be a way around the rules.
 */
#include "net/outgoing.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"

/* ---- rules ------------------------------------------------------------ */

static bool is_host_name(struct hd_slice host)
{
    if (hd_slice_starts(host, HD_S("*.")))
        host = hd_slice(host.ptr + 2, host.len - 2);
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (c <= ' ' || c > '~' || strchr("/:*?#@\\[]%,", c))
            return false;
    }
    return host.len > 0 && host.len <= 253;
}

static int read_rule(struct hd_outgoing_rule *rule, struct hd_slice text, struct hd_arena *arena)
{
    struct hd_slice host;

    *rule = (struct hd_outgoing_rule){0};
    if (hd_net_parse(text, &rule->net))
        return 0;
    if (!hd_authority_split(text, &host, &rule->port))
        return HD_EINVAL;
    if (hd_net_parse(host, &rule->net) && rule->net.bits == 8 * HD_IP_LEN)
        return 0;
    return is_host_name(host) ? hd_arena_copy(arena, host, &rule->host) : HD_EINVAL;
}

int hd_outgoing_init(struct hd_outgoing *outgoing, bool is_strict, const struct hd_slice *hosts,
                     size_t count, struct hd_arena *arena, struct heddle_error *fault)
{
    int err = 0;

    *outgoing = (struct hd_outgoing){.is_strict = is_strict, .count = count};
    outgoing->rules = hd_arena_calloc(arena, count + 1, sizeof(*outgoing->rules));
    if (!outgoing->rules)
        return HD_ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        err = read_rule(&outgoing->rules[i], hosts[i], arena);
        if (err == HD_EINVAL)
            return hd_error_set(fault, HD_EINVAL,
                                "outgoing.allowed_hosts: \"%.*s\" is not a host, a host with a "
                                "port, or a network such as 10.0.0.0/8",
                                HD_SHOW(hosts[i]));
    }
    return err;
}

static bool rule_fits(const struct hd_outgoing_rule *rule, const struct hd_ip *address, int port)
{
    return !rule->host.ptr && (rule->port == 0 || rule->port == port) &&
           hd_net_has(&rule->net, address);
}

static bool is_allowed(const struct hd_outgoing *outgoing, const struct hd_ip *address, int port)
{
    if (hd_ip_is_public(address))
        return true;
    for (size_t i = 0; i < outgoing->count; i++) {
        if (rule_fits(&outgoing->rules[i], address, port))
            return true;
    }
    return false;
}

bool hd_outgoing_lists(const struct hd_outgoing *outgoing, struct hd_slice host, int port)
{
    for (size_t i = 0; i < outgoing->count; i++) {
        const struct hd_outgoing_rule *rule = &outgoing->rules[i];

        if (rule->host.ptr && (rule->port == 0 || rule->port == port) &&
            hd_host_matches(host, rule->host))
            return true;
    }
    return false;
}

bool hd_outgoing_allows(const struct hd_outgoing *outgoing, const struct sockaddr *address)
{
    struct hd_ip it;

    if (!outgoing->is_strict)
        return true;
    return hd_ip_of(address, &it) && is_allowed(outgoing, &it, hd_ip_port(address));
}

/* ---- URLs ------------------------------------------------------------- */

/* The parts of a URL that the rules need. */
struct url_parts {
    char *scheme, *host, *port;
};

static void free_place(struct url_parts *place)
{
    curl_free(place->scheme);
    curl_free(place->host);
    curl_free(place->port);
}

static bool find_place(const char *text, struct url_parts *place)
{
    CURLU *url = curl_url();
    bool is_found;

    *place = (struct url_parts){0};
    is_found = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_SCHEME, &place->scheme, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_HOST, &place->host, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_PORT, &place->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
    curl_url_cleanup(url);
    return is_found;
}

static int port_of(const struct url_parts *place)
{
    return (int)strtol(place->port, NULL, 10);
}

static bool is_same_host(const struct url_parts *a, const struct url_parts *b)
{
    return hd_host_matches(hd_slice_cstr(a->host), hd_slice_cstr(b->host)) &&
           strcmp(a->port, b->port) == 0;
}

static bool is_trusted(const char *trusted, const struct url_parts *place)
{
    struct url_parts chosen;
    bool is_it = trusted && find_place(trusted, &chosen) && is_same_host(&chosen, place);

    if (trusted)
        free_place(&chosen);
    return is_it;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] != '\0';
}

/*
 * Whether libcurl may use a proxy for it. NO_PROXY exceptions are ignored: hosts named there must
 * be listed here, too.
 */
static bool may_be_proxied(const char *scheme)
{
    if (is_set("all_proxy") || is_set("ALL_PROXY"))
        return true;
    return strcmp(scheme, "https") == 0 ? is_set("https_proxy") || is_set("HTTPS_PROXY")
                                        : is_set("http_proxy");
}

static bool is_allowed_number(const struct hd_outgoing *outgoing, const struct url_parts *place)
{
    struct hd_ip address;

    return hd_ip_parse(hd_slice_cstr(place->host), &address) &&
           is_allowed(outgoing, &address, port_of(place));
}

static bool permits(const struct hd_outgoing *outgoing, const struct hd_outgoing_target *target,
                    const struct url_parts *place)
{
    if (is_trusted(target->trusted, place) ||
        hd_outgoing_lists(outgoing, hd_slice_cstr(place->host), port_of(place)))
        return true;
    if (!target->is_direct && may_be_proxied(place->scheme))
        return is_allowed_number(outgoing, place);
    return hd_outgoing_allows(outgoing, target->address);
}

bool hd_outgoing_permits(const struct hd_outgoing *outgoing,
                         const struct hd_outgoing_target *target)
{
    struct url_parts place = {0};
    bool is_permitted;

    if (!outgoing->is_strict)
        return true;
    is_permitted =
        target->url && find_place(target->url, &place) && permits(outgoing, target, &place);
    free_place(&place);
    return is_permitted;
}

/* A numeric address in any form that a resolver accepts, normalized by libcurl; or localhost. */
static bool is_private(const struct hd_outgoing *outgoing, const struct url_parts *place)
{
    struct hd_slice host = hd_slice_cstr(place->host);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port_of(place))};
    struct hd_ip address;

    if (hd_outgoing_lists(outgoing, host, port_of(place)))
        return false;
    if (hd_ip_parse(host, &address))
        return !is_allowed(outgoing, &address, port_of(place));
    if (inet_aton(place->host, &four.sin_addr) != 0)
        return !hd_outgoing_allows(outgoing, (const struct sockaddr *)&four);
    return hd_host_names_loopback(host) && hd_ip_parse(HD_S("127.0.0.1"), &address) &&
           !is_allowed(outgoing, &address, port_of(place));
}

int hd_outgoing_check(const struct hd_outgoing *outgoing, struct hd_slice url,
                      struct heddle_error *fault)
{
    struct url_parts place = {0};
    char *text;
    bool is_bad;

    if (!outgoing->is_strict)
        return 0;
    text = hd_malloc(url.len + 1);
    if (!text)
        return HD_ENOMEM;
    memcpy(text, url.ptr, url.len);
    text[url.len] = '\0';
    is_bad = !find_place(text, &place) || is_private(outgoing, &place);
    free_place(&place);
    hd_free(text);
    return is_bad ? hd_error_set(fault, HD_EINVAL, "%s", HD_OUTGOING_REFUSAL) : 0;
}
