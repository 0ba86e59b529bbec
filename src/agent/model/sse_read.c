/*
 * Parses the event stream format of the WHATWG HTML standard.
 *
 * A line within one piece is parsed in place; only an incomplete line is copied. The result does
 * not depend on the boundaries of pieces.
 */
#include "agent/model/sse_read.h"

#include <string.h>

#include "base/error.h"

#define MARK "\xEF\xBB\xBF" /* byte order */

void hd_sse_read_init(struct hd_sse_read *sse, size_t max)
{
    *sse = (struct hd_sse_read){.retry_ms = -1};
    hd_buf_init(&sse->line, max);
    hd_buf_init(&sse->data, max);
    hd_buf_init(&sse->name, max);
    hd_buf_init(&sse->id, max);
}

void hd_sse_read_fini(struct hd_sse_read *sse)
{
    hd_buf_fini(&sse->line);
    hd_buf_fini(&sse->data);
    hd_buf_fini(&sse->name);
    hd_buf_fini(&sse->id);
    *sse = (struct hd_sse_read){.retry_ms = -1};
}

/* An empty line: the fields since the last one are an event, if it has data. */
static int dispatch(struct hd_sse_read *sse, hd_sse_fn fn, void *ctx)
{
    const struct hd_sse_event event = {.name = hd_buf_slice(&sse->name),
                                       .data = hd_buf_slice(&sse->data),
                                       .id = hd_buf_slice(&sse->id),
                                       .has_id = sse->has_id};
    int err = sse->has_data ? fn(ctx, &event) : 0;

    if (err)
        return err; /* the callback may have freed the reader */
    hd_buf_reset(&sse->data);
    hd_buf_reset(&sse->name);
    sse->has_data = sse->has_id = false;
    return 0;
}

static int set(struct hd_buf *buf, struct hd_slice value)
{
    hd_buf_reset(buf);
    return hd_buf_append_slice(buf, value);
}

static int add_data(struct hd_sse_read *sse, struct hd_slice value)
{
    int err = sse->has_data ? hd_buf_append_byte(&sse->data, '\n') : 0;

    if (!err)
        err = hd_buf_append_slice(&sse->data, value);
    sse->has_data = true;
    return err;
}

/* Digits only; ignores numbers that are too long. */
static void set_retry(struct hd_sse_read *sse, struct hd_slice value)
{
    int64_t ms = 0;

    if (value.len == 0 || value.len > 15)
        return;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return;
        ms = ms * 10 + (value.ptr[i] - '0');
    }
    sse->retry_ms = ms;
}

static int read_field(struct hd_sse_read *sse, struct hd_slice name, struct hd_slice value)
{
    if (hd_slice_eq(name, HD_S("data")))
        return add_data(sse, value);
    if (hd_slice_eq(name, HD_S("event")))
        return set(&sse->name, value);
    if (hd_slice_eq(name, HD_S("id")) && (value.len == 0 || !memchr(value.ptr, 0, value.len))) {
        sse->has_id = true;
        return set(&sse->id, value);
    }
    if (hd_slice_eq(name, HD_S("retry")))
        set_retry(sse, value);
    return 0;
}

static int read_line(struct hd_sse_read *sse, struct hd_slice line, hd_sse_fn fn, void *ctx)
{
    const char *colon;
    struct hd_slice name, value = {NULL, 0};

    if (line.len > sse->line.limit)
        return HD_ELIMIT;
    if (!sse->has_begun && hd_slice_starts(line, HD_S(MARK)))
        line = hd_slice(line.ptr + 3, line.len - 3);
    sse->has_begun = true;
    if (line.len == 0)
        return dispatch(sse, fn, ctx);
    colon = memchr(line.ptr, ':', line.len);
    if (colon == line.ptr)
        return 0; /* a comment */
    name = colon ? hd_slice(line.ptr, (size_t)(colon - line.ptr)) : line;
    if (colon)
        value = hd_slice(colon + 1, line.len - name.len - 1);
    if (value.len > 0 && value.ptr[0] == ' ')
        value = hd_slice(value.ptr + 1, value.len - 1);
    return read_field(sse, name, value);
}

/* The end of the line; NULL: not in this piece. */
static const char *find_end(const char *pos, const char *end)
{
    const char *feed = memchr(pos, '\n', (size_t)(end - pos));
    const char *back = memchr(pos, '\r', (size_t)((feed ? feed : end) - pos));

    return back ? back : feed;
}

/* Completes a line with this piece. */
static int end_line(struct hd_sse_read *sse, struct hd_slice piece, hd_sse_fn fn, void *ctx)
{
    struct hd_buf whole;
    int err;

    if (sse->line.len == 0)
        return read_line(sse, piece, fn, ctx);
    err = hd_buf_append_slice(&sse->line, piece);
    if (err)
        return err;
    /* Its bytes stay valid during the callback, but the reader has finished the line. */
    whole = sse->line;
    hd_buf_init(&sse->line, whole.limit);
    err = read_line(sse, hd_buf_slice(&whole), fn, ctx);
    hd_buf_fini(&whole);
    return err;
}

int hd_sse_read(struct hd_sse_read *sse, struct hd_slice bytes, hd_sse_fn fn, void *ctx)
{
    const char *pos = bytes.ptr;
    const char *end = bytes.len > 0 ? pos + bytes.len : pos;
    int err = 0;

    while (!err && pos < end) {
        const char *stop;

        if (sse->was_cr && *pos == '\n') {
            sse->was_cr = false;
            pos++;
            continue;
        }
        sse->was_cr = false;
        stop = find_end(pos, end);
        if (!stop)
            return hd_buf_append(&sse->line, pos, (size_t)(end - pos));
        sse->was_cr = *stop == '\r';
        err = end_line(sse, hd_slice(pos, (size_t)(stop - pos)), fn, ctx);
        pos = stop + 1;
    }
    return err;
}

bool hd_sse_read_is_whole(const struct hd_sse_read *sse)
{
    struct hd_slice line = hd_buf_slice(&sse->line);

    if (!sse->has_begun && hd_slice_eq(line, HD_S(MARK)))
        return true;
    return line.len == 0 && !sse->has_data && !sse->has_id && sse->name.len == 0;
}
