#include "http/sse.h"

#include "tests/unit/check.h"

static void check(struct hd_slice event, struct hd_slice data, struct hd_slice id,
                  const char *expected)
{
    struct hd_buf out;

    hd_buf_init(&out, 4096);
    assert_err(hd_http_sse_frame(&out, event, data, id), 0);
    assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected));
    hd_buf_fini(&out);
}

static void frames_have_their_lines_in_order(void **state)
{
    (void)state;
    check(HD_S("values"), HD_S("{\"a\":1}"), HD_S("7"),
          "event: values\ndata: {\"a\":1}\nid: 7\n\n");
    check(HD_S("end"), HD_S("null"), HD_S(""), "event: end\ndata: null\n\n");
    check(HD_S(""), HD_S("x"), HD_S("1"), "data: x\nid: 1\n\n");
    check(HD_S("e"), hd_slice(NULL, 0), HD_S("1"), "event: e\ndata: \nid: 1\n\n");
    assert_slice(HD_SSE_HEARTBEAT, HD_S(": heartbeat\n"));
}

static void line_breaks_in_data_become_lines(void **state)
{
    (void)state;
    check(HD_S(""), HD_S("a\nb"), HD_S(""), "data: a\ndata: b\n\n");
    check(HD_S(""), HD_S("a\r\nb\rc\n"), HD_S(""), "data: a\ndata: b\ndata: c\ndata: \n\n");
    check(HD_S(""), HD_S("\n\r"), HD_S(""), "data: \ndata: \ndata: \n\n");
}

static void a_name_cannot_break_the_frame(void **state)
{
    static const struct hd_slice bad[] = {HD_S_INIT("a\nb"), HD_S_INIT("a\r"), HD_S_INIT("\0")};
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 4096);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        assert_err(hd_http_sse_frame(&out, bad[i], HD_S("x"), HD_S("1")), HD_EINVAL);
        assert_err(hd_http_sse_frame(&out, HD_S("x"), HD_S("x"), bad[i]), HD_EINVAL);
    }
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
}

static void a_frame_is_appended_wholly_or_not(void **state)
{
    struct hd_buf out;

    (void)state;
    for (size_t limit = 0; limit < 40; limit++) {
        int err;

        hd_buf_init(&out, limit);
        err = hd_http_sse_frame(&out, HD_S("event"), HD_S("data"), HD_S("1"));
        assert_err(err, limit < 31 ? HD_ELIMIT : 0);
        assert_int_equal(out.len, err ? 0 : 31);
        hd_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_have_their_lines_in_order),
        cmocka_unit_test(line_breaks_in_data_become_lines),
        cmocka_unit_test(a_name_cannot_break_the_frame),
        cmocka_unit_test(a_frame_is_appended_wholly_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
