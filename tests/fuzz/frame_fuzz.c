/* libFuzzer: data from a worker. The bytes are read as a link reads them, in parts of changing
 * length; a parsed frame is written again as the same bytes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/frame.h"

#define LIMIT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool is_inside(struct hd_slice part, struct hd_slice whole)
{
    return part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len;
}

static void write_again(const struct hd_frame *frame, const struct hd_slice *blobs,
                        struct hd_slice bytes)
{
    struct hd_buf out;

    hd_buf_init(&out, HD_FRAME_MAX);
    require(hd_frame_write(&out, frame->type, frame->id, frame->head, blobs, frame->blob_count) ==
                0,
            "a frame that cannot be written");
    for (size_t i = 0; i < frame->blob_count; i++)
        require(hd_buf_append_slice(&out, blobs[i]) == 0, "no memory");
    /* An empty head is written as {}. */
    if (is_inside(frame->head, bytes))
        require(hd_slice_eq(hd_buf_slice(&out), bytes), "another frame");
    hd_buf_fini(&out);
}

static void try_frame(struct hd_slice bytes)
{
    struct hd_slice *blobs;
    struct hd_frame frame;
    size_t sum = 0;

    if (hd_frame_read(bytes, &frame))
        return;
    require(frame.head.len >= 2 && frame.head.ptr[0] == '{', "a head that is no object");
    blobs = hd_malloc((frame.blob_count + 1) * sizeof(*blobs));
    require(blobs != NULL, "no memory");
    hd_frame_split(&frame, blobs);
    for (size_t i = 0; i < frame.blob_count; i++) {
        require(is_inside(blobs[i], bytes), "a blob outside of its frame");
        sum += blobs[i].len;
    }
    require(sum == frame.blobs.len, "blobs with gaps");
    write_again(&frame, blobs, bytes);
    hd_free(blobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0, total = 0, seen;

    while (at < size) {
        struct hd_slice rest = hd_slice((const char *)data + at, size - at);

        if (hd_frame_size(rest, LIMIT, &total))
            break;
        if (total == 0 || total > rest.len)
            break;
        /* A prefix of a frame never gives another size. */
        for (size_t len = 0; len <= 20 && len < total; len++)
            require(hd_frame_size(hd_slice(rest.ptr, len), LIMIT, &seen) == 0 &&
                        (seen == 0 || seen == total),
                    "a part of a frame is not the beginning of it");
        try_frame(hd_slice(rest.ptr, total));
        at += total;
    }
    return 0;
}
