#include "http/sse_reader.h"

#include <string.h>

#define KEPT ((size_t)64 << 10) /* a larger buffer is freed when it is empty */
#define MAX_DIGITS 19

void hd_sse_reader_init(struct hd_sse_reader *reader, size_t most)
{
    *reader = (struct hd_sse_reader){.at = 0};
    hd_buf_init(&reader->buf, most);
}

void hd_sse_reader_fini(struct hd_sse_reader *reader)
{
    hd_buf_fini(&reader->buf);
}

/* Removes the parts that were read. */
static void forget_read(struct hd_sse_reader *reader)
{
    struct hd_buf *buf = &reader->buf;
    size_t limit = buf->limit;

    if (reader->at == 0)
        return;
    buf->len -= reader->at;
    if (buf->len > 0) {
        memmove(buf->ptr, buf->ptr + reader->at, buf->len);
    } else if (buf->cap > KEPT) {
        hd_buf_fini(buf);
        hd_buf_init(buf, limit);
    }
    reader->line -= reader->at;
    reader->seen -= reader->at;
    reader->at = 0;
}

int hd_sse_reader_add(struct hd_sse_reader *reader, struct hd_slice data)
{
    forget_read(reader);
    return hd_buf_append_slice(&reader->buf, data);
}

/* The next complete line, without its end; false: none. */
static bool take_line(struct hd_sse_reader *reader, struct hd_slice *line)
{
    const struct hd_buf *buf = &reader->buf;
    size_t from = reader->seen > reader->line ? reader->seen : reader->line;
    const char *end = from < buf->len ? memchr(buf->ptr + from, '\n', buf->len - from) : NULL;

    if (!end) {
        reader->seen = buf->len;
        return false;
    }
    *line = hd_slice(buf->ptr + reader->line, (size_t)(end - buf->ptr) - reader->line);
    reader->line += line->len + 1;
    reader->seen = reader->line;
    if (line->len > 0 && end[-1] == '\r')
        line->len--;
    return true;
}

/* The value of the line "id: 12". */
static void read_id(struct hd_slice line, struct hd_sse_part *out)
{
    struct hd_slice name = HD_S("id:");
    uint64_t id = 0;

    if (!hd_slice_starts(line, name))
        return;
    line = hd_slice(line.ptr + name.len, line.len - name.len);
    if (line.len > 0 && line.ptr[0] == ' ')
        line = hd_slice(line.ptr + 1, line.len - 1);
    out->has_id = line.len > 0 && line.len <= MAX_DIGITS;
    for (size_t i = 0; i < line.len && out->has_id; i++) {
        out->has_id = line.ptr[i] >= '0' && line.ptr[i] <= '9';
        id = id * 10 + (uint64_t)(line.ptr[i] - '0');
    }
    out->id = out->has_id ? id : 0;
}

/* The lines of the complete event that ends at reader->line. */
static void read_event(const struct hd_sse_reader *reader, struct hd_sse_part *out)
{
    struct hd_sse_reader lines = {.buf = reader->buf, .at = reader->at, .line = reader->at};
    struct hd_slice line;

    lines.buf.len = reader->line;
    while (take_line(&lines, &line))
        read_id(line, out);
}

bool hd_sse_reader_next(struct hd_sse_reader *reader, struct hd_sse_part *out)
{
    struct hd_slice line;
    size_t begin;

    *out = (struct hd_sse_part){.id = 0};
    for (;;) {
        begin = reader->line;
        if (!take_line(reader, &line))
            return false;
        out->is_comment = begin == reader->at && line.len > 0 && line.ptr[0] == ':';
        if (out->is_comment || (line.len == 0 && begin > reader->at))
            break;
        if (line.len == 0) /* no event: more than one blank line */
            reader->at = reader->line;
    }
    out->bytes = hd_slice(reader->buf.ptr + reader->at, reader->line - reader->at);
    if (out->is_comment)
        out->comment = hd_slice(line.ptr + 1, line.len - 1);
    else
        read_event(reader, out);
    reader->at = reader->line;
    return true;
}
