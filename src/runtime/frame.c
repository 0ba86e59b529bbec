#include "runtime/frame.h"

#include <stdbool.h>

#include "base/error.h"

#define LENGTH 4 /* of a length field */

static uint32_t read_u32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint16_t read_u16(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint16_t)(b[0] | b[1] << 8);
}

static void write_u32(char *at, uint32_t value)
{
    for (int i = 0; i < LENGTH; i++)
        at[i] = (char)(value >> (8 * i) & 0xff);
}

/* For a frame whose fixed part is complete. */
static bool is_sound(const char *at, size_t total)
{
    size_t count = read_u16(at + 6), head = read_u32(at + 12);

    if (at[4] < HD_FRAME_CALL || at[4] > HD_FRAME_GO || at[5] != 0)
        return false;
    if (count > HD_FRAME_MAX_BLOBS || head > HD_FRAME_MAX_HEAD)
        return false;
    return HD_FRAME_FIXED + count * LENGTH + head <= total;
}

int hd_frame_size(struct hd_slice bytes, size_t limit, size_t *out)
{
    size_t total;

    *out = 0;
    if (bytes.len < LENGTH)
        return 0;
    total = (size_t)read_u32(bytes.ptr) + LENGTH;
    if (total < HD_FRAME_FIXED || total > HD_FRAME_MAX + LENGTH || total > limit)
        return HD_ECORRUPT;
    if (bytes.len >= HD_FRAME_FIXED && !is_sound(bytes.ptr, total))
        return HD_ECORRUPT;
    *out = total;
    return 0;
}

int hd_frame_read(struct hd_slice bytes, struct hd_frame *out)
{
    size_t total, head, sum = 0;
    const char *at = bytes.ptr;
    struct hd_frame frame;

    if (hd_frame_size(bytes, SIZE_MAX, &total) || total == 0 || total != bytes.len)
        return HD_ECORRUPT;
    frame.type = (enum hd_frame_type)at[4];
    frame.id = read_u32(at + 8);
    frame.blob_count = read_u16(at + 6);
    head = read_u32(at + 12);
    frame.lengths = hd_slice(at + HD_FRAME_FIXED, frame.blob_count * LENGTH);
    frame.head = hd_slice(frame.lengths.ptr + frame.lengths.len, head);
    frame.blobs =
        hd_slice(frame.head.ptr + head, total - HD_FRAME_FIXED - frame.lengths.len - head);
    for (size_t i = 0; i < frame.blob_count; i++)
        sum += read_u32(frame.lengths.ptr + i * LENGTH);
    if (sum != frame.blobs.len)
        return HD_ECORRUPT;
    if (head == 0)
        frame.head = HD_S("{}");
    if (frame.head.ptr[0] != '{' || frame.head.ptr[frame.head.len - 1] != '}')
        return HD_ECORRUPT;
    *out = frame;
    return 0;
}

void hd_frame_split(const struct hd_frame *frame, struct hd_slice *out)
{
    const char *at = frame->blobs.ptr;

    for (size_t i = 0; i < frame->blob_count; i++) {
        out[i] = hd_slice(at, read_u32(frame->lengths.ptr + i * LENGTH));
        at += out[i].len;
    }
}

int hd_frame_write(struct hd_buf *out, enum hd_frame_type type, uint32_t id, struct hd_slice head,
                   const struct hd_slice *blobs, size_t count)
{
    size_t total = HD_FRAME_FIXED - LENGTH + count * LENGTH + head.len;
    char *at;
    int err;

    if (count > HD_FRAME_MAX_BLOBS || head.len > HD_FRAME_MAX_HEAD)
        return HD_ELIMIT;
    for (size_t i = 0; i < count; i++) {
        if (blobs[i].len > HD_FRAME_MAX - total)
            return HD_ELIMIT;
        total += blobs[i].len;
    }
    err = hd_buf_reserve(out, HD_FRAME_FIXED + count * LENGTH + head.len);
    if (err)
        return err;
    at = out->ptr + out->len;
    write_u32(at, (uint32_t)total);
    at[4] = (char)type;
    at[5] = 0;
    at[6] = (char)(count & 0xff);
    at[7] = (char)(count >> 8);
    write_u32(at + 8, id);
    write_u32(at + 12, (uint32_t)head.len);
    at += HD_FRAME_FIXED;
    for (size_t i = 0; i < count; i++, at += LENGTH)
        write_u32(at, (uint32_t)blobs[i].len);
    if (head.len > 0)
        memcpy(at, head.ptr, head.len);
    out->len += HD_FRAME_FIXED + count * LENGTH + head.len;
    return 0;
}
