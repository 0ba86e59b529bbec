/* Server-sent events: the rules of the standard, for any split of the bytes. */
#include "agent/model/sse_read.h"

#include "base/buf.h"
#include "tests/unit/check.h"

/* Events as text: `name|data|id`, with a `!` when the id is the event's own; each is a line. */
static int note(void *ctx, const struct hd_sse_event *event)
{
    struct hd_buf *out = ctx;
    int err = hd_buf_append_slice(out, event->name);

    if (!err)
        err = hd_buf_append_byte(out, '|');
    if (!err)
        err = hd_buf_append_slice(out, event->data);
    if (!err)
        err = hd_buf_append_byte(out, '|');
    if (!err)
        err = hd_buf_append_slice(out, event->id);
    return err ? err : hd_buf_append_slice(out, event->has_id ? HD_S("!\n") : HD_S("\n"));
}

struct result {
    struct hd_buf out;
    bool is_whole;
    int64_t retry_ms;
    int err;
};

/* In pieces of `step` bytes. */
static struct result read_in(struct hd_slice text, size_t step)
{
    struct result result;
    struct hd_sse_read sse;

    hd_buf_init(&result.out, 1 << 20);
    hd_sse_read_init(&sse, 1000);
    result.err = 0;
    for (size_t pos = 0; pos < text.len && !result.err; pos += step) {
        size_t len = text.len - pos < step ? text.len - pos : step;

        result.err = hd_sse_read(&sse, hd_slice(text.ptr + pos, len), note, &result.out);
    }
    result.is_whole = hd_sse_read_is_whole(&sse);
    result.retry_ms = sse.retry_ms;
    hd_sse_read_fini(&sse);
    return result;
}

static void expect(struct hd_slice text, const char *wanted, bool is_whole)
{
    for (size_t step = 1; step <= text.len; step++) {
        struct result result = read_in(text, step);

        assert_err(result.err, 0);
        assert_slice(hd_buf_slice(&result.out), hd_slice_cstr(wanted));
        assert_int_equal(result.is_whole, is_whole);
        hd_buf_fini(&result.out);
    }
}

static void events_end_with_an_empty_line(void **state)
{
    (void)state;
    expect(HD_S("data: one\n\ndata: two\n\n"), "|one|\n|two|\n", true);
    expect(HD_S("data: one\n\ndata: two\n"), "|one|\n", false);
    expect(HD_S("data: one\n\ndata: tw"), "|one|\n", false);
    expect(HD_S("event: x\n"), "", false);
    expect(HD_S("\n\n\n"), "", true);
}

static void lines_end_in_three_ways(void **state)
{
    (void)state;
    expect(HD_S("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), "|a|\n|b|\n|c|\n", true);
    expect(HD_S("data: a\r\n\rdata: b\n\r\n"), "|a|\n|b|\n", true);
    expect(HD_S("data: a\rdata: b\r\ndata: c\n\n"), "|a\nb\nc|\n", true);
}

static void a_byte_order_mark_comes_first_or_not_at_all(void **state)
{
    (void)state;
    expect(HD_S("\xEF\xBB\xBF"
                "data: a\n\n"),
           "|a|\n", true);
    expect(HD_S("\n\xEF\xBB\xBF"
                "data: a\n\n"),
           "", true);
    expect(HD_S("\xEF\xBB\xBF\xEF\xBB\xBF"
                "data: a\n\n"),
           "", true);
    expect(HD_S("\xEF\xBB\xBF"), "", true);
    expect(HD_S("\xEF\xBB\xBF\n"), "", true);
    expect(HD_S("\xEF\xBB"), "", false);
}

static void data_has_lines(void **state)
{
    (void)state;
    expect(HD_S("data: a\ndata:  b\ndata:\ndata\ndata:c\n\n"), "|a\n b\n\n\nc|\n", true);
    expect(HD_S("data\n\n"), "||\n", true);
    expect(HD_S("data\ndata\n\n"), "|\n|\n", true);
    expect(HD_S("data: : x: y\n\n"), "|: x: y|\n", true);
    expect(HD_S("data: \xC3\xA4\xF0\x9F\x98\x80\n\n"), "|\xC3\xA4\xF0\x9F\x98\x80|\n", true);
}

static void a_block_without_data_is_no_event(void **state)
{
    (void)state;
    expect(HD_S("event: x\n\ndata: a\n\n"), "|a|\n", true);
    expect(HD_S("event: x\nevent: y\ndata: a\n\ndata: b\n\n"), "y|a|\n|b|\n", true);
    expect(HD_S("id: 1\n\ndata: a\n\n"), "|a|1\n", true);
}

static void comments_and_strangers_are_passed_over(void **state)
{
    (void)state;
    expect(HD_S(": ping\n\n:\ndata: a\n:data: b\nDATA: c\n data: d\nx\nfoo: bar\n\n"), "|a|\n",
           true);
    expect(HD_S(": OPENROUTER PROCESSING"), "", false);
}

static void ids_stay(void **state)
{
    (void)state;
    expect(HD_S("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"), "|a|1!\n|b|1\n|c|!\n", true);
    expect(HD_S("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n"), "|a|1!\n|b|1\n", true);
    expect(HD_S("id: 1\n"), "", false);
}

static void retry_is_digits(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"data: x\n\n", -1},         {"retry: 1500\n\n", 1500},
        {"retry: 0\n", 0},           {"retry: 15s\n", -1},
        {"retry: -1\n", -1},         {"retry:\n", -1},
        {"retry: 7\nretry: x\n", 7}, {"retry: 99999999999999999999\n", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result = read_in(hd_slice_cstr(cases[i].text), 3);

        assert_int_equal(result.retry_ms, cases[i].ms);
        hd_buf_fini(&result.out);
    }
}

static void oversized_input_is_refused(void **state)
{
    char line[1200];
    struct hd_buf text;

    (void)state;
    memset(line, 'x', sizeof(line));
    hd_buf_init(&text, 1 << 20);
    assert_err(hd_buf_append_slice(&text, HD_S("data: first\n\ndata:")), 0);
    assert_err(hd_buf_append(&text, line, sizeof(line)), 0);
    assert_err(hd_buf_append_slice(&text, HD_S("\n\ndata: after\n\n")), 0);
    for (size_t step = 1; step < text.len; step += 7) {
        struct result result = read_in(hd_buf_slice(&text), step);

        assert_err(result.err, HD_ELIMIT);
        assert_slice(hd_buf_slice(&result.out), HD_S("|first|\n"));
        hd_buf_fini(&result.out);
    }
    hd_buf_fini(&text);
}

static void many_small_lines_are_too_large_together(void **state)
{
    struct hd_sse_read sse;
    struct hd_buf out;
    int err = 0, lines = 0;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    hd_sse_read_init(&sse, 1000);
    while (!err && lines < 1000) {
        err = hd_sse_read(&sse, HD_S("data: 0123456789\n"), note, &out);
        lines++;
    }
    assert_err(err, HD_ELIMIT);
    assert_true(lines > 80 && lines < 100);
    assert_int_equal(out.len, 0);
    hd_sse_read_fini(&sse);
    hd_buf_fini(&out);
}

static int stop(void *ctx, const struct hd_sse_event *event)
{
    struct hd_sse_read *sse = ctx;

    assert_slice(event->data, HD_S("a"));
    hd_sse_read_fini(sse); /* a callback that stops may free the reader */
    return HD_ECLOSED;
}

static void a_listener_may_stop_the_reader(void **state)
{
    struct hd_sse_read sse;

    (void)state;
    hd_sse_read_init(&sse, 1000);
    assert_err(hd_sse_read(&sse, HD_S("data: a\n\ndata: b\n\n"), stop, &sse), HD_ECLOSED);
    hd_sse_read_init(&sse, 1000);
    assert_err(hd_sse_read(&sse, HD_S("data: a\n\r"), stop, &sse), HD_ECLOSED);
    hd_sse_read_init(&sse, 1000);
    assert_err(hd_sse_read(&sse, HD_S("dat"), stop, &sse), 0);
    assert_err(hd_sse_read(&sse, HD_S("a: a\n\ndata: b\n\n"), stop, &sse), HD_ECLOSED);
}

static int read_all(void *arg)
{
    struct hd_sse_read sse;
    struct hd_buf out;
    int err;

    (void)arg;
    hd_buf_init(&out, 1000);
    hd_sse_read_init(&sse, 1000);
    err = hd_sse_read(&sse, HD_S("id: 1\nevent: x\nda"), note, &out);
    if (!err)
        err = hd_sse_read(&sse, HD_S("ta: y\n\n"), note, &out);
    hd_sse_read_fini(&sse);
    hd_buf_fini(&out);
    return err;
}

static void memory_may_be_out(void **state)
{
    (void)state;
    assert_true(check_every_allocation(read_all, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_end_with_an_empty_line),
        cmocka_unit_test(lines_end_in_three_ways),
        cmocka_unit_test(a_byte_order_mark_comes_first_or_not_at_all),
        cmocka_unit_test(data_has_lines),
        cmocka_unit_test(a_block_without_data_is_no_event),
        cmocka_unit_test(comments_and_strangers_are_passed_over),
        cmocka_unit_test(ids_stay),
        cmocka_unit_test(retry_is_digits),
        cmocka_unit_test(oversized_input_is_refused),
        cmocka_unit_test(many_small_lines_are_too_large_together),
        cmocka_unit_test(a_listener_may_stop_the_reader),
        cmocka_unit_test(memory_may_be_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
