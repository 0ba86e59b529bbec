/* CORS (the Fetch standard's protocol): lets pages of other origins use the API. */
#include "base/error.h"
#include "base/net.h"
#include "http/internal.h"

#define EXPOSED                                                           \
    "content-location, location, x-pagination-total, x-pagination-next, " \
    "x-request-id"
#define METHODS "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

#define MAX_ORIGIN 512

static bool matches(const struct hd_cors *cors, struct hd_slice origin)
{
    char text[MAX_ORIGIN];

    if (!cors->pattern || origin.len >= sizeof(text))
        return false;
    memcpy(text, origin.ptr, origin.len);
    text[origin.len] = '\0';
    return strlen(text) == origin.len && regexec(cors->pattern, text, 0, NULL, 0) == 0;
}

bool hd_http_origin_authority(struct hd_slice origin, struct hd_slice *out)
{
    size_t skip = 0;

    if (hd_slice_starts(origin, HD_S("https://")))
        skip = 8;
    else if (hd_slice_starts(origin, HD_S("http://")))
        skip = 7;
    *out = hd_slice(origin.ptr + skip, origin.len - skip);
    return skip > 0;
}

/* "http://localhost:3000", "https://app.localhost", "http://127.0.0.1:5173", "http://[::1]". */
static bool is_loopback(struct hd_slice origin)
{
    struct hd_slice authority, host;
    int port;

    return hd_http_origin_authority(origin, &authority) &&
           hd_authority_split(authority, &host, &port) && hd_host_names_loopback(host);
}

static bool is_listed_origin(const struct hd_cors *cors, struct hd_slice origin)
{
    for (size_t i = 0; i < cors->origin_count; i++) {
        if (hd_slice_eq(cors->origins[i], origin))
            return true;
    }
    return false;
}

bool hd_cors_allows_all(const struct hd_cors *cors)
{
    return is_listed_origin(cors, HD_S("*"));
}

bool hd_cors_allows(const struct hd_cors *cors, struct hd_slice origin)
{
    return hd_cors_allows_all(cors) || is_listed_origin(cors, origin) || matches(cors, origin) ||
           (cors->allows_loopback && is_loopback(origin));
}

static bool allows_none(const struct hd_cors *cors)
{
    return cors->origin_count == 0 && !cors->pattern && !cors->allows_loopback;
}

/*
 * Without "*" the response depends on the origin, so it needs Vary. With "*" the origin is never
 * repeated: that would allow credentials from every origin.
 */
static int write_origin(struct hd_buf *out, const struct hd_cors *cors, struct hd_slice origin)
{
    int err;

    if (hd_cors_allows_all(cors))
        return hd_buf_append_slice(out, HD_S("access-control-allow-origin: *\r\n"));
    err = hd_buf_append_slice(out, HD_S("vary: origin\r\n"));
    if (err || !hd_cors_allows(cors, origin))
        return err;
    err = hd_buf_append_slice(out, HD_S("access-control-allow-origin: "));
    if (!err)
        err = hd_buf_append_slice(out, origin);
    if (!err)
        err = hd_buf_append_slice(out, HD_S("\r\n"));
    if (!err && cors->allow_credentials)
        err = hd_buf_append_slice(out, HD_S("access-control-allow-credentials: true\r\n"));
    return err;
}

bool hd_cors_is_preflight(const struct hd_http_request *request)
{
    struct hd_slice unused;

    return request->method == HD_METHOD_OPTIONS &&
           hd_request_header(request, HD_S("origin"), &unused) &&
           hd_request_header(request, HD_S("access-control-request-method"), &unused);
}

int hd_cors_write(struct hd_buf *out, const struct hd_cors *cors,
                  const struct hd_http_request *request)
{
    struct hd_slice origin;
    int err;

    if (allows_none(cors) || !hd_request_header(request, HD_S("origin"), &origin))
        return 0;
    err = write_origin(out, cors, origin);
    if (err || !hd_cors_allows(cors, origin))
        return err;
    return hd_buf_printf(out, "access-control-expose-headers: " EXPOSED "%s%s\r\n",
                         cors->exposed ? ", " : "", cors->exposed ? cors->exposed : "");
}

/*
 * Unless headers are configured, the requested ones are allowed by name: "*" would not cover
 * Authorization.
 */
int hd_cors_write_preflight(struct hd_buf *out, const struct hd_cors *cors,
                            const struct hd_http_request *request)
{
    struct hd_slice wanted = hd_request_value(request, HD_S("access-control-request-headers"));
    struct hd_slice private =
        hd_request_value(request, HD_S("access-control-request-private-network"));
    int err;

    if (cors->headers)
        wanted = hd_slice_cstr(cors->headers);
    err = hd_buf_printf(out, "access-control-allow-methods: %s\r\n",
                        cors->methods ? cors->methods : METHODS);
    if (!err && wanted.len > 0)
        err = hd_buf_append_slice(out, HD_S("access-control-allow-headers: "));
    if (!err && wanted.len > 0)
        err = hd_buf_append_slice(out, wanted);
    if (!err && wanted.len > 0)
        err = hd_buf_append_slice(out, HD_S("\r\n"));
    if (!err && cors->allow_private_network && hd_slice_eq(private, HD_S("true")))
        err = hd_buf_append_slice(out, HD_S("access-control-allow-private-network: true\r\n"));
    return err ? err : hd_buf_printf(out, "access-control-max-age: %d\r\n", cors->max_age);
}
