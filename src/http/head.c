/* Writes the head of a response. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "http/internal.h"

#define RETRY_S "2" /* unless the response has one */

const char *hd_http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };

    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        if (texts[i].status == status)
            return texts[i].text;
    }
    return "Unknown";
}

/* Not strftime(), which depends on the locale. */
void hd_date_format(int64_t seconds, char out[HD_DATE_SIZE])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t time = (time_t)seconds;
    struct tm tm = {0};

    (void)gmtime_r(&time, &tm);
    (void)snprintf(out, HD_DATE_SIZE, "%s, %02u %s %04u %02u:%02u:%02u GMT",
                   days[(unsigned)tm.tm_wday % 7], (unsigned)tm.tm_mday % 100,
                   months[(unsigned)tm.tm_mon % 12], (unsigned)(tm.tm_year + 1900) % 10000,
                   (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
                   (unsigned)tm.tm_sec % 100);
}

static int write_field(struct hd_buf *out, struct hd_slice name, struct hd_slice value)
{
    int err;

    err = hd_buf_append_slice(out, name);
    if (!err)
        err = hd_buf_append_slice(out, value);
    return err ? err : hd_buf_append_slice(out, HD_S("\r\n"));
}

/* A decimal number at the end of `out`; snprintf() would cost more than everything else here. */
static struct hd_slice decimal(size_t value, char out[24])
{
    size_t at = 24;

    do {
        out[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return hd_slice(out + at, 24 - at);
}

static int write_framing(struct hd_buf *out, const struct hd_http_head *head)
{
    char digits[24];
    int err = 0;

    if (head->content_type.len > 0)
        err = write_field(out, HD_S("content-type: "), head->content_type);
    if (!err && head->has_length)
        err = write_field(out, HD_S("content-length: "), decimal(head->length, digits));
    if (!err && head->is_chunked)
        err = hd_buf_append_slice(out, HD_S("transfer-encoding: chunked\r\n"));
    return err;
}

static int write_status(struct hd_buf *out, int status)
{
    char line[64];
    int len;

    if (status == 200)
        return hd_buf_append_slice(out, HD_S("HTTP/1.1 200 OK\r\n"));
    len = snprintf(line, sizeof(line), "HTTP/1.1 %03d %s\r\n", status, hd_http_status_text(status));
    return hd_buf_append(out, line, (size_t)len);
}

static int write_connection(struct hd_buf *out, const struct hd_conn *conn)
{
    if (conn->closes)
        return hd_buf_append_slice(out, HD_S("connection: close\r\n"));
    if (conn->ex.request.is_http10)
        return hd_buf_append_slice(out, HD_S("connection: keep-alive\r\n"));
    return 0;
}

int hd_http_head_write(struct hd_conn *conn, const struct hd_http_head *head)
{
    struct hd_buf *out = &conn->head;
    struct hd_exchange *ex = &conn->ex;
    int err;

    hd_buf_reset(out);
    err = write_status(out, head->status);
    if (!err)
        err = write_framing(out, head);
    if (!err)
        err = hd_buf_append_slice(out, hd_buf_slice(&ex->lines));
    /* The cause of a 503 is temporary: clients that honour this retry. */
    if (!err && head->status == 503 && !ex->has_retry)
        err = hd_buf_append_slice(out, HD_S("retry-after: " RETRY_S "\r\n"));
    if (!err)
        err = hd_cors_write(out, &conn->hub->config.cors, &ex->request);
    if (!err)
        err = hd_browser_policy_write(out, conn);
    if (!err)
        err = write_connection(out, conn);
    if (!err && ex->id.len > 0)
        err = write_field(out, HD_S("x-request-id: "), ex->id);
    if (!err)
        err = write_field(out, HD_S("date: "), hd_slice(hd_hub_date(conn->hub), HD_DATE_SIZE - 1));
    return err ? err : hd_buf_append_slice(out, HD_S("\r\n"));
}
