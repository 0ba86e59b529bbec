/*
 * Protects the server from web pages. A server on loopback without authentication must not be
 * usable by pages that its user opens: neither under a page's own host name that resolves to this
 * machine (DNS rebinding), nor by requests that browsers send without a preflight (forms,
 * text/plain). So the server checks the origin of each request that may change something.
 */
#include "base/error.h"
#include "base/net.h"
#include "http/internal.h"

#define HOST_TEXT                                                                        \
    "the Host header is not an accepted name of this server; the setting allowed_hosts " \
    "lists accepted names"
#define ORIGIN_TEXT                                                        \
    "requests of web pages from this origin are not allowed; the setting " \
    "cors.allow_origins lists the origins that are"

/* ---- hosts ------------------------------------------------------------ */

static bool is_listed_host(const struct hd_browser_policy *guard, struct hd_slice host, int port)
{
    for (size_t i = 0; i < guard->host_count; i++) {
        struct hd_slice name;
        int only;

        if (hd_authority_split(guard->hosts[i], &name, &only) && (only == 0 || only == port) &&
            hd_host_matches(host, name))
            return true;
    }
    return false;
}

/* An empty name is accepted: programs may omit the header, browsers never do. */
static bool is_known_name(const struct hd_browser_policy *guard, struct hd_slice authority)
{
    struct hd_slice host;
    int port;

    return authority.len == 0 ||
           (hd_authority_split(authority, &host, &port) &&
            (hd_host_names_loopback(host) || is_listed_host(guard, host, port)));
}

/* A target in absolute form also names the host, and takes precedence over the header. */
static bool is_known_host(const struct hd_browser_policy *guard,
                          const struct hd_http_request *request)
{
    return !guard->checks_host || (is_known_name(guard, hd_request_value(request, HD_S("host"))) &&
                                   is_known_name(guard, request->authority));
}

/* ---- origins ---------------------------------------------------------- */

/* "https://name:port" and "name:port": the server's own pages. */
static bool is_own_origin(const struct hd_http_request *request, struct hd_slice origin)
{
    struct hd_slice host = hd_request_value(request, HD_S("host"));
    struct hd_slice site = hd_request_value(request, HD_S("sec-fetch-site"));

    if (!hd_http_origin_authority(origin, &origin))
        return false;
    /* Only browsers can set the second header; behind a proxy, Host may differ. */
    return (host.len > 0 && hd_slice_eq_nocase(origin, host)) ||
           hd_slice_eq(site, HD_S("same-origin"));
}

bool hd_request_is_of_page(const struct hd_http_request *request)
{
    struct hd_slice unused;

    return hd_request_header(request, HD_S("origin"), &unused) ||
           hd_request_header(request, HD_S("sec-fetch-site"), &unused);
}

bool hd_request_is_same_origin(const struct hd_http_request *request)
{
    struct hd_slice origin, site;

    if (hd_request_header(request, HD_S("sec-fetch-site"), &site) &&
        !hd_slice_eq(site, HD_S("same-origin")) && !hd_slice_eq(site, HD_S("none")))
        return false;
    return !hd_request_header(request, HD_S("origin"), &origin) || is_own_origin(request, origin);
}

static bool is_harmless(const struct hd_http_request *request)
{
    return request->method == HD_METHOD_GET || request->method == HD_METHOD_HEAD ||
           (request->method == HD_METHOD_OPTIONS && !hd_cors_is_preflight(request));
}

/* Programs other than browsers send neither header. */
static bool is_foreign(const struct hd_cors *cors, const struct hd_http_request *request)
{
    struct hd_slice origin;

    if (is_harmless(request))
        return false;
    if (hd_request_header(request, HD_S("origin"), &origin))
        return !hd_cors_allows(cors, origin) && !is_own_origin(request, origin);
    return hd_slice_eq(hd_request_value(request, HD_S("sec-fetch-site")), HD_S("cross-site")) &&
           !hd_cors_allows_all(cors);
}

struct hd_refusal_text hd_browser_policy_check(const struct hd_http_server_config *config,
                                               const struct hd_http_request *request)
{
    if (!is_known_host(&config->guard, request))
        return (struct hd_refusal_text){421, HOST_TEXT};
    if (is_foreign(&config->cors, request))
        return (struct hd_refusal_text){403, ORIGIN_TEXT};
    return (struct hd_refusal_text){0};
}

/* ---- proxies ---------------------------------------------------------- */

static bool is_proxy(const struct hd_browser_policy *guard, struct hd_slice text)
{
    struct hd_ip ip;

    if (!hd_ip_parse(text, &ip))
        return false;
    for (size_t i = 0; i < guard->proxy_count; i++) {
        if (hd_net_has(&guard->proxies[i], &ip))
            return true;
    }
    return false;
}

/* Removes the last of "a, b, c", as an address; false: none, or not an address. */
static bool take_last(struct hd_slice *list, struct hd_slice *out)
{
    const char *comma = list->len > 0 ? memrchr(list->ptr, ',', list->len) : NULL;
    size_t at = comma ? (size_t)(comma - list->ptr) + 1 : 0;
    struct hd_slice item = hd_slice(list->ptr + at, list->len - at);
    struct hd_ip ip;
    int port;

    list->len = comma ? at - 1 : 0;
    while (item.len > 0 && (item.ptr[0] == ' ' || item.ptr[0] == '\t'))
        item = hd_slice(item.ptr + 1, item.len - 1);
    while (item.len > 0 && (item.ptr[item.len - 1] == ' ' || item.ptr[item.len - 1] == '\t'))
        item.len--;
    return hd_authority_split(item, out, &port) && hd_ip_parse(*out, &ip);
}

/*
 * Each proxy appends the address that it received the request from, so entries before the first
 * untrusted address can be forged.
 */
struct hd_slice hd_browser_policy_peer(const struct hd_browser_policy *guard,
                                       const struct hd_http_request *request, struct hd_slice peer)
{
    for (size_t i = request->header_count; i > 0 && guard->proxy_count > 0; i--) {
        struct hd_slice list = request->headers[i - 1].value;

        if (!hd_slice_eq(request->headers[i - 1].name, HD_S("x-forwarded-for")))
            continue;
        while (list.len > 0) {
            struct hd_slice before;

            if (!is_proxy(guard, peer) || !take_last(&list, &before))
                return peer;
            peer = before;
        }
    }
    return peer;
}

/* ---- headers ---------------------------------------------------------- */

static bool has_credentials(const struct hd_http_request *request)
{
    struct hd_slice unused;

    return hd_request_header(request, HD_S("authorization"), &unused) ||
           hd_request_header(request, HD_S("x-api-key"), &unused);
}

/* The browser would remember it for every other service under that host name. */
static bool is_strict(const struct hd_conn *conn)
{
    struct hd_slice host;
    int port;

    return conn->hub->config.tls &&
           hd_authority_split(hd_request_value(&conn->ex.request, HD_S("host")), &host, &port) &&
           !hd_host_names_loopback(host);
}

int hd_browser_policy_write(struct hd_buf *out, const struct hd_conn *conn)
{
    int err = hd_buf_append_slice(out, HD_S("x-content-type-options: nosniff\r\n"));

    if (!err && !conn->ex.has_caching && has_credentials(&conn->ex.request))
        err = hd_buf_append_slice(out, HD_S("cache-control: no-store\r\n"));
    if (!err && is_strict(conn))
        err = hd_buf_append_slice(out, HD_S("strict-transport-security: max-age=31536000\r\n"));
    return err;
}
