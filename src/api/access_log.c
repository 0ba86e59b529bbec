/* The access log: a line for each answer, without queries, bodies or credentials. */
#include "base/log.h"

#include "api/api.h"
#include "http/exchange.h"
#include "run/app.h"
#include "run/config.h"

void hd_api_log_request(const struct hd_exchange *ex)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    const struct hd_log_field fields[] = {
        hd_log_text("method", request->method_name),
        hd_log_text("path", request->path),
        hd_log_text("request_id", hd_exchange_id(ex)),
    };

    hd_log_fields(HD_LOG_DEBUG, "http", "request started", fields, HD_COUNT(fields));
}

void hd_api_answered(void *ctx, const struct hd_exchange *ex, int status, size_t body_bytes,
                     int64_t took_us)
{
    bool is_access = hd_api_config(ctx)->log_access;
    const struct hd_http_request *request = hd_exchange_request(ex);
    const struct hd_log_field fields[] = {
        hd_log_text("method", request->method_name),
        hd_log_text("path", request->path),
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
