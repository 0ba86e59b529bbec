/* Server-sent events that arrive in pieces: whole events and comments come out. */
#include "http/sse_reader.h"

#include "tests/unit/check.h"

#define FIRST "event: values\ndata: {\"a\":1}\nid: 7\n\n"
#define SECOND "event: end\ndata: null\nid: 9\n\n"
#define BEAT ": heartbeat\n"

static struct hd_sse_reader reader;
static struct hd_sse_part part;

static int setup(void **state)
{
    (void)state;
    hd_sse_reader_init(&reader, 100);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hd_sse_reader_fini(&reader);
    return 0;
}

static void add(const char *text)
{
    assert_err(hd_sse_reader_add(&reader, hd_slice_cstr(text)), 0);
}

static void assert_event(const char *bytes, uint64_t id)
{
    assert_true(hd_sse_reader_next(&reader, &part));
    assert_slice(part.bytes, hd_slice_cstr(bytes));
    assert_false(part.is_comment);
    assert_true(part.has_id);
    assert_int_equal(part.id, id);
}

static void assert_nothing(void)
{
    assert_false(hd_sse_reader_next(&reader, &part));
}

static void events_come_out_whole(void **state)
{
    (void)state;
    assert_nothing();
    add(FIRST SECOND);
    assert_event(FIRST, 7);
    assert_event(SECOND, 9);
    assert_nothing();
}

static void any_cut_gives_the_same_events(void **state)
{
    const char all[] = FIRST BEAT SECOND;

    (void)state;
    for (size_t cut = 1; cut < sizeof(all) - 1; cut++) {
        assert_err(hd_sse_reader_add(&reader, hd_slice(all, cut)), 0);
        if (cut < sizeof(FIRST) - 1) {
            assert_nothing();
            assert_err(hd_sse_reader_add(&reader, hd_slice(all + cut, sizeof(all) - 1 - cut)), 0);
            assert_event(FIRST, 7);
        } else {
            assert_event(FIRST, 7);
            assert_err(hd_sse_reader_add(&reader, hd_slice(all + cut, sizeof(all) - 1 - cut)), 0);
        }
        assert_true(hd_sse_reader_next(&reader, &part));
        assert_true(part.is_comment);
        assert_slice(part.comment, HD_S(" heartbeat"));
        assert_event(SECOND, 9);
        assert_nothing();
    }
}

static void lines_may_end_with_a_carriage_return(void **state)
{
    (void)state;
    add("data: 1\r\nid:12\r\n\r\n");
    assert_event("data: 1\r\nid:12\r\n\r\n", 12);
}

static void a_comment_within_an_event_is_a_part_of_it(void **state)
{
    (void)state;
    add("data: 1\n: x\nid: 3\n\n");
    assert_event("data: 1\n: x\nid: 3\n\n", 3);
}

static void blank_lines_between_events_are_dropped(void **state)
{
    (void)state;
    add("\n\n" FIRST "\n\r\n" SECOND "\n");
    assert_event(FIRST, 7);
    assert_event(SECOND, 9);
    assert_nothing();
}

static void an_id_that_is_no_number_is_none(void **state)
{
    static const char *const events[] = {"data: 1\n\n", "id: x\n\n", "id: 1x\n\n", "id:\n\n",
                                         "id: 12345678901234567890\n\n"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(events); i++) {
        add(events[i]);
        assert_true(hd_sse_reader_next(&reader, &part));
        assert_false(part.has_id);
    }
}

static void too_large_an_event_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        add("0123456789");
    assert_nothing();
    assert_err(hd_sse_reader_add(&reader, HD_S("0")), HD_ELIMIT);
}

static void many_events_need_no_more_room_than_one(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        add(FIRST);
        assert_event(FIRST, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_come_out_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(any_cut_gives_the_same_events, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_may_end_with_a_carriage_return, setup, teardown),
        cmocka_unit_test_setup_teardown(a_comment_within_an_event_is_a_part_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(blank_lines_between_events_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_that_is_no_number_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large_an_event_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(many_events_need_no_more_room_than_one, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
