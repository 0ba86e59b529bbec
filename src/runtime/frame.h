/*
 * Frames of the runtime protocol (docs/runtime.md). Pure: bytes in, slices out.
 *
 * A reader gets the length of the next frame from hd_frame_size(), waits for that many bytes, and
 * reads the frame.
 */
#ifndef HD_RUNTIME_FRAME_H
#define HD_RUNTIME_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_FRAME_MAX ((size_t)1 << 30) /* after the first four bytes */
#define HD_FRAME_MAX_HEAD ((size_t)64 << 20)
#define HD_FRAME_MAX_BLOBS 4096
#define HD_FRAME_FIXED 16 /* bytes before the lengths of the blobs */

enum hd_frame_type {
    HD_FRAME_CALL = 1,
    HD_FRAME_ANSWER,
    HD_FRAME_ERROR,
    HD_FRAME_PIECE,
    HD_FRAME_CANCEL,
    HD_FRAME_HOLD,
    HD_FRAME_GO
};

/* Borrowed from the bytes it was read from. */
struct hd_frame {
    enum hd_frame_type type;
    uint32_t id;
    struct hd_slice head; /* {} when the frame has no head */
    size_t blob_count;
    struct hd_slice lengths; /* of blobs, as encoded in the frame */
    struct hd_slice blobs;   /* all of them */
};

/*
 * The length of the frame that `bytes` begins with, or 0 when too few bytes are given. HD_ECORRUPT
 * as soon as it cannot become a frame of at most `limit` bytes.
 */
HD_MUST_CHECK int hd_frame_size(struct hd_slice bytes, size_t limit, size_t *out);
/* `bytes` is the whole frame. HD_ECORRUPT: it violates the protocol. */
HD_MUST_CHECK int hd_frame_read(struct hd_slice bytes, struct hd_frame *out);
/* One slice for each blob. */
void hd_frame_split(const struct hd_frame *frame, struct hd_slice *out);

/*
 * Appends a frame without the bytes of its blobs, which must follow. HD_ELIMIT: larger than
 * allowed; nothing is appended.
 */
HD_MUST_CHECK int hd_frame_write(struct hd_buf *out, enum hd_frame_type type, uint32_t id,
                                 struct hd_slice head, const struct hd_slice *blobs, size_t count);

#endif
