/* Splits server-sent events that arrive in pieces of any size. Pure. */
#ifndef HD_HTTP_SSE_READER_H
#define HD_HTTP_SSE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_sse_reader {
    struct hd_buf buf;
    size_t at;   /* the beginning of the next part */
    size_t line; /* the beginning of the first line that was not read */
    size_t seen; /* no line ends between `line` and this */
};

/* A whole event with its blank line, or a comment between events: one line. */
struct hd_sse_part {
    struct hd_slice bytes;
    struct hd_slice comment; /* the text after the colon; an event has none */
    bool is_comment;
    bool has_id; /* of an event: a number */
    uint64_t id;
};

/* `most`: bytes of an incomplete part and of the complete ones that were not read. */
void hd_sse_reader_init(struct hd_sse_reader *reader, size_t most);
void hd_sse_reader_fini(struct hd_sse_reader *reader);

/* HD_ELIMIT: the part is too large. Ends the life of earlier parts. */
HD_MUST_CHECK int hd_sse_reader_add(struct hd_sse_reader *reader, struct hd_slice data);
/* False: no part is complete. */
bool hd_sse_reader_next(struct hd_sse_reader *reader, struct hd_sse_part *out);

#endif
