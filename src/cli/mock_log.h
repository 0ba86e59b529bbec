/* The request log of a scripted model, read by tests at GET /mock/requests. */
#ifndef HD_CLI_MOCK_LOG_H
#define HD_CLI_MOCK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "http/request.h"

struct hd_cli_mock_entry;

/* The last requests; the oldest are dropped at the limit. */
struct hd_cli_mock_log {
    struct hd_cli_mock_entry *first, *last;
    size_t count, bytes;
    int64_t next_number;
};

/* Copies the request, without what is secret in it; its number, or -1 when there is no memory. */
int64_t hd_cli_mock_log_add(struct hd_cli_mock_log *log, const struct hd_http_request *request,
                            int status, int64_t rule);
/* The response has ended: it was sent completely, or the client disconnected. */
void hd_cli_mock_log_end(struct hd_cli_mock_log *log, int64_t number, bool is_gone, size_t pieces);
HD_MUST_CHECK int hd_cli_mock_log_write(const struct hd_cli_mock_log *log, struct hd_buf *out);
void hd_cli_mock_log_reset(struct hd_cli_mock_log *log);

#endif
