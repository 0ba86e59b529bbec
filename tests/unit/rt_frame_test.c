/* Frames of the runtime protocol. */
#include "runtime/frame.h"

#include <stdbool.h>

#include "base/buf.h"
#include "tests/unit/check.h"

#define MAX ((size_t)1 << 20)

static struct hd_buf made; /* of the current case */

static int set_up(void **state)
{
    (void)state;
    hd_buf_init(&made, MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hd_buf_fini(&made);
    return 0;
}

static void make(enum hd_frame_type type, uint32_t id, struct hd_slice head,
                 const struct hd_slice *blobs, size_t count)
{
    hd_buf_reset(&made);
    assert_err(hd_frame_write(&made, type, id, head, blobs, count), 0);
    for (size_t i = 0; i < count; i++)
        assert_err(hd_buf_append_slice(&made, blobs[i]), 0);
}

static void written_frames_are_read(void **state)
{
    const struct hd_slice blobs[] = {HD_S_INIT("one"), HD_S_INIT(""), HD_S_INIT("thr\0e")};
    struct hd_slice split[3];
    struct hd_frame frame;
    size_t total;

    (void)state;
    make(HD_FRAME_PIECE, 0xfedcba98, HD_S("{\"mode\":\"values\"}"), blobs, 3);
    assert_err(hd_frame_size(hd_buf_slice(&made), SIZE_MAX, &total), 0);
    assert_int_equal(total, made.len);
    assert_err(hd_frame_read(hd_buf_slice(&made), &frame), 0);
    assert_int_equal(frame.type, HD_FRAME_PIECE);
    assert_int_equal(frame.id, 0xfedcba98);
    assert_slice(frame.head, HD_S("{\"mode\":\"values\"}"));
    assert_int_equal(frame.blob_count, 3);
    hd_frame_split(&frame, split);
    for (size_t i = 0; i < 3; i++)
        assert_slice(split[i], blobs[i]);
}

/* The bytes of the example in the documentation. */
static void bytes_are_as_documented(void **state)
{
    static const char expected[] = "\x17\0\0\0" /* bytes that follow */
                                   "\x01\0"     /* CALL */
                                   "\x01\0"     /* one blob */
                                   "\x05\0\0\0" /* id */
                                   "\x02\0\0\0" /* length of the head */
                                   "\x05\0\0\0" /* of the blob */
                                   "{}"
                                   "hello";
    const struct hd_slice blob = HD_S_INIT("hello");

    (void)state;
    make(HD_FRAME_CALL, 5, HD_S("{}"), &blob, 1);
    assert_slice(hd_buf_slice(&made), hd_slice(expected, sizeof(expected) - 1));
}

static void a_frame_without_head_has_an_empty_one(void **state)
{
    struct hd_frame frame;

    (void)state;
    make(HD_FRAME_CANCEL, 1, HD_S(""), NULL, 0);
    assert_int_equal(made.len, HD_FRAME_FIXED);
    assert_err(hd_frame_read(hd_buf_slice(&made), &frame), 0);
    assert_slice(frame.head, HD_S("{}"));
}

/* An incomplete frame has no size before its fourth byte, and cannot be read at any length. */
static void parts_are_waited_for(void **state)
{
    const struct hd_slice blob = HD_S_INIT("hello");
    struct hd_frame frame;
    size_t total;

    (void)state;
    make(HD_FRAME_CALL, 5, HD_S("{}"), &blob, 1);
    for (size_t len = 0; len < made.len; len++) {
        assert_err(hd_frame_size(hd_slice(made.ptr, len), SIZE_MAX, &total), 0);
        assert_int_equal(total, len < 4 ? 0 : made.len);
        assert_err(hd_frame_read(hd_slice(made.ptr, len), &frame), HD_ECORRUPT);
    }
}

static void set_u32(size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        made.ptr[at + (size_t)i] = (char)(value >> (8 * i) & 0xff);
}

static void is_refused(bool is_seen_early)
{
    struct hd_frame frame;
    size_t total;
    int err = hd_frame_size(hd_slice(made.ptr, HD_FRAME_FIXED), SIZE_MAX, &total);

    assert_err(err, is_seen_early ? HD_ECORRUPT : 0);
    assert_err(hd_frame_read(hd_buf_slice(&made), &frame), HD_ECORRUPT);
}

static void make_usual(void)
{
    const struct hd_slice blob = HD_S_INIT("hello");

    make(HD_FRAME_CALL, 5, HD_S("{}"), &blob, 1);
}

static void invalid_frames_are_refused(void **state)
{
    (void)state;
    make_usual();
    made.ptr[4] = 0; /* type */
    is_refused(true);
    made.ptr[4] = 8;
    is_refused(true);
    make_usual();
    made.ptr[5] = 1;
    is_refused(true);
    make_usual();
    made.ptr[6] = 2; /* more blobs than there are */
    is_refused(false);
    make_usual();
    made.ptr[6] = 0;
    is_refused(false);
    make_usual();
    made.ptr[7] = 0x11; /* 4,353 blobs */
    is_refused(true);
    make_usual();
    set_u32(12, 100); /* the head is longer than the frame */
    is_refused(true);
    make_usual();
    set_u32(12, UINT32_MAX);
    is_refused(true);
    make_usual();
    set_u32(16, UINT32_MAX); /* the blob is */
    is_refused(false);
    make_usual();
    set_u32(0, 11); /* too short for its fixed part */
    is_refused(true);
    set_u32(0, ((uint32_t)1 << 30) + 1);
    is_refused(true);
    make_usual();
    made.ptr[20] = '['; /* the head is no object */
    is_refused(false);
}

static void limits_are_minded(void **state)
{
    static struct hd_slice many[HD_FRAME_MAX_BLOBS + 1];
    const struct hd_slice huge[] = {{"", HD_FRAME_MAX / 2}, {"", HD_FRAME_MAX / 2}};
    struct hd_frame frame;
    size_t total;

    (void)state;
    assert_err(hd_frame_write(&made, HD_FRAME_CALL, 1, HD_S("{}"), many, HD_COUNT(many)),
               HD_ELIMIT);
    assert_err(hd_frame_write(&made, HD_FRAME_CALL, 1, HD_S("{}"), huge, 2), HD_ELIMIT);
    assert_err(
        hd_frame_write(&made, HD_FRAME_CALL, 1, hd_slice("", HD_FRAME_MAX_HEAD + 1), NULL, 0),
        HD_ELIMIT);
    assert_int_equal(made.len, 0);
    make(HD_FRAME_ANSWER, 1, HD_S("{}"), many, HD_FRAME_MAX_BLOBS);
    assert_err(hd_frame_read(hd_buf_slice(&made), &frame), 0);
    assert_int_equal(frame.blob_count, HD_FRAME_MAX_BLOBS);
    assert_err(hd_frame_size(hd_buf_slice(&made), made.len, &total), 0);
    assert_err(hd_frame_size(hd_buf_slice(&made), made.len - 1, &total), HD_ECORRUPT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(written_frames_are_read),
        CASE(bytes_are_as_documented),
        CASE(a_frame_without_head_has_an_empty_one),
        CASE(parts_are_waited_for),
        CASE(invalid_frames_are_refused),
        CASE(limits_are_minded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
