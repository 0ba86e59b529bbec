/* The access log: a line for each response, without queries, bodies or credentials. */
#include <string.h>

#include "api/api.h"
#include "app/app.h"
#include "base/log.h"
#include "base/uuid.h"
#include "config/config.h"
#include "http/exchange.h"

enum { MAX_PATH = 512, MAX_WORD = 24 };

/* A part of a path that cannot be a credential: a UUID, or a short word as in routes. */
static bool is_harmless(struct hd_slice part)
{
    uint8_t bytes[16];

    if (hd_uuid_parse(part, bytes))
        return true;
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] != '_' && (part.ptr[i] < 'a' || part.ptr[i] > 'z'))
            return false;
    }
    return part.len <= MAX_WORD;
}

/* The path with "?" for each part that may be a credential sent by mistake. */
static struct hd_slice hide_parts(struct hd_slice path, char out[MAX_PATH])
{
    size_t used = 0;

    while (path.len > 0) {
        const char *slash = memchr(path.ptr + 1, '/', path.len - 1);
        size_t len = slash ? (size_t)(slash - path.ptr) : path.len;
        struct hd_slice part =
            is_harmless(hd_slice(path.ptr + 1, len - 1)) ? hd_slice(path.ptr, len) : HD_S("/?");

        if (used + part.len > MAX_PATH)
            break;
        memcpy(out + used, part.ptr, part.len);
        used += part.len;
        path = hd_slice(path.ptr + len, path.len - len);
    }
    return hd_slice(out, used);
}

void hd_api_log_request(const struct hd_exchange *ex)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    char path[MAX_PATH];
    const struct hd_log_field fields[] = {
        hd_log_text("method", request->method_name),
        hd_log_text("path", hide_parts(request->path, path)),
        hd_log_text("request_id", hd_exchange_id(ex)),
    };

    hd_log_fields(HD_LOG_DEBUG, "http", "request started", fields, HD_COUNT(fields));
}

void hd_api_answered(void *ctx, const struct hd_exchange *ex, int status, size_t body_bytes,
                     int64_t took_us)
{
    bool is_access = hd_api_config(ctx)->log_access;
    const struct hd_http_request *request = hd_exchange_request(ex);
    char path[MAX_PATH];
    /* The id of a found object was accepted by the server, so it is no credential. */
    const struct hd_log_field fields[] = {
        hd_log_text("method", request->method_name),
        hd_log_text("path", status < 400 ? request->path : hide_parts(request->path, path)),
        hd_log_number("status", status),
        hd_log_number("bytes", (int64_t)body_bytes),
        hd_log_number("duration_us", took_us),
        hd_log_text("request_id", hd_exchange_id(ex)),
        hd_log_text("peer", hd_exchange_peer(ex)),
        hd_log_text("principal", hd_exchange_actor(ex)),
    };

    hd_log_fields(is_access ? HD_LOG_INFO : HD_LOG_DEBUG, is_access ? "access" : "http",
                  "request ended", fields, HD_COUNT(fields));
}
