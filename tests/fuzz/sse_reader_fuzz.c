/* libFuzzer: any bytes as server-sent events. However they are cut, the parts are the same, and
 * together they are the input without its blank lines and its incomplete end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/sse_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* All parts, each with a line about it. */
static void read_cut(struct hd_slice text, size_t cut, struct hd_buf *out)
{
    struct hd_sse_reader reader;
    struct hd_sse_part part;

    hd_sse_reader_init(&reader, SIZE_MAX);
    while (text.len > 0) {
        size_t len = cut < text.len ? cut : text.len;

        if (hd_sse_reader_add(&reader, hd_slice(text.ptr, len)))
            break;
        text = hd_slice(text.ptr + len, text.len - len);
        while (hd_sse_reader_next(&reader, &part)) {
            require(part.bytes.len > 0 && part.bytes.ptr[part.bytes.len - 1] == '\n', "no line");
            if (hd_buf_append_slice(out, part.bytes) ||
                hd_buf_printf(out, "%d %d %llu\n", part.is_comment, part.has_id,
                              (unsigned long long)part.id))
                break;
        }
    }
    hd_sse_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data + 1, size > 0 ? size - 1 : 0);
    struct hd_buf whole, cut;

    if (size < 2)
        return 0;
    hd_buf_init(&whole, SIZE_MAX);
    hd_buf_init(&cut, SIZE_MAX);
    read_cut(text, text.len, &whole);
    read_cut(text, (size_t)data[0] + 1, &cut);
    require(hd_slice_eq(hd_buf_slice(&whole), hd_buf_slice(&cut)), "a cut changes the parts");
    hd_buf_fini(&whole);
    hd_buf_fini(&cut);
    return 0;
}
