/* libFuzzer: event streams. However the bytes are split, the events are the same, and so is the
 * incomplete event at the end. The first bytes select the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/sse_read.h"
#include "base/buf.h"
#include "base/error.h"

#define MAX_EVENT 256
#define SPLITS 8

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static void add(struct hd_buf *out, struct hd_slice text)
{
    require(hd_buf_append_lenslice(out, text) == 0);
}

static int note(void *ctx, const struct hd_sse_event *event)
{
    struct hd_buf *out = ctx;

    require(event->data.len <= MAX_EVENT && event->name.len <= MAX_EVENT);
    require(event->id.len == 0 || !memchr(event->id.ptr, 0, event->id.len));
    add(out, event->name);
    add(out, event->data);
    add(out, event->id);
    add(out, event->has_id ? HD_S("own") : HD_S(""));
    return 0;
}

/* `steps` has the lengths of the pieces, repeated; 0 is the whole rest. */
static int read_pieces(const uint8_t *steps, size_t count, struct hd_slice text, struct hd_buf *out)
{
    struct hd_sse_read sse;
    size_t pos = 0, turn = 0;
    int err = 0;

    hd_sse_read_init(&sse, MAX_EVENT);
    while (!err && pos < text.len) {
        size_t step = count > 0 ? steps[turn++ % count] : 0;

        if (step == 0 || step > text.len - pos)
            step = text.len - pos;
        err = hd_sse_read(&sse, hd_slice(text.ptr + pos, step), note, out);
        pos += step;
    }
    require(err == 0 || err == HD_ELIMIT);
    if (!err) {
        add(out, hd_sse_read_is_whole(&sse) ? HD_S("whole") : HD_S("half"));
        require(hd_buf_append_u64(out, (uint64_t)sse.retry_ms) == 0);
    }
    hd_sse_read_fini(&sse);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t one = 1;
    size_t count = size < SPLITS ? 0 : SPLITS;
    struct hd_slice text = hd_slice(data + count, size - count);
    struct hd_buf whole, split, single;
    int err;

    hd_buf_init(&whole, SIZE_MAX / 4);
    hd_buf_init(&split, SIZE_MAX / 4);
    hd_buf_init(&single, SIZE_MAX / 4);
    err = read_pieces(NULL, 0, text, &whole);
    require(read_pieces(data, count, text, &split) == err);
    require(read_pieces(&one, 1, text, &single) == err);
    require(hd_slice_eq(hd_buf_slice(&whole), hd_buf_slice(&split)));
    require(hd_slice_eq(hd_buf_slice(&whole), hd_buf_slice(&single)));
    hd_buf_fini(&whole);
    hd_buf_fini(&split);
    hd_buf_fini(&single);
    return 0;
}
