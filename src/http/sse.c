#include "http/sse.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

static bool is_one_line(struct hd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\n' || s.ptr[i] == '\r' || s.ptr[i] == '\0')
            return false;
    }
    return true;
}

/* The end of the line that begins at `pos`: at CR, LF or the end. */
static size_t line_end(struct hd_slice s, size_t pos)
{
    while (pos < s.len && s.ptr[pos] != '\n' && s.ptr[pos] != '\r')
        pos++;
    return pos;
}

static int append_line(struct hd_buf *out, struct hd_slice field, struct hd_slice value)
{
    int err;

    err = hd_buf_append_slice(out, field);
    if (!err)
        err = hd_buf_append_slice(out, value);
    return err ? err : hd_buf_append_byte(out, '\n');
}

/* JSON has no raw line breaks, so this is usually one line. */
static int append_data(struct hd_buf *out, struct hd_slice data)
{
    size_t pos = 0, end;
    int err;

    for (;;) {
        end = line_end(data, pos);
        err = append_line(out, HD_S("data: "), hd_slice(data.ptr + pos, end - pos));
        if (err || end == data.len)
            return err;
        pos = end + 1;
        if (data.ptr[end] == '\r' && pos < data.len && data.ptr[pos] == '\n')
            pos++;
    }
}

int hd_http_sse_frame(struct hd_buf *out, struct hd_slice event, struct hd_slice data,
                      struct hd_slice id)
{
    size_t before = out->len;
    int err = 0;

    if (!is_one_line(event) || !is_one_line(id))
        return HD_EINVAL;
    if (event.len > 0)
        err = append_line(out, HD_S("event: "), event);
    if (!err)
        err = append_data(out, data.ptr ? data : hd_slice("", 0));
    if (!err && id.len > 0)
        err = append_line(out, HD_S("id: "), id);
    if (!err)
        err = hd_buf_append_byte(out, '\n');
    if (err)
        out->len = before;
    return err;
}
