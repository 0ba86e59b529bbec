/* Formats server-sent events. Pure; exchange.h sends them. */
#ifndef HD_HTTP_SSE_H
#define HD_HTTP_SSE_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

/*
 * A comment that keeps proxies and clients' idle timers from closing the stream. It has no blank
 * line: once an id was received, decoders of the official clients emit an empty event for each
 * blank line. Send it between frames only.
 */
#define HD_SSE_HEARTBEAT HD_S(": heartbeat\n")

/*
 * Appends `event: …`, `data: …`, `id: …` (in this order, each with LF) and the blank line. An empty
 * event or id has no line. Data with line breaks becomes several data lines, as the format
 * requires; empty data is one empty line, which clients read as null. HD_EINVAL for a line break or
 * NUL in event or id; appends nothing on failure.
 */
HD_MUST_CHECK int hd_http_sse_frame(struct hd_buf *out, struct hd_slice event, struct hd_slice data,
                                    struct hd_slice id);

#endif
