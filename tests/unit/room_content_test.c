/* What of a message's content was said. */
#include "room/room_input.h"
#include "tests/unit/check.h"

static struct hd_arena arena;

static int open_arena(void **state)
{
    (void)state;
    hd_arena_init(&arena, (size_t)1 << 20);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    hd_arena_fini(&arena);
    return 0;
}

static void blank_texts_and_inner_blocks_are_not_said(void **state)
{
    (void)state;
    assert_true(hd_room_content_is_said(HD_S("\"hello\"")));
    assert_true(hd_room_content_is_said(HD_S("[{\"type\":\"text\",\"text\":\"hello\"}]")));
    assert_true(hd_room_content_is_said(HD_S("[{\"type\":\"image_url\",\"image_url\":\"x\"}]")));
    assert_true(hd_room_content_is_said(HD_S("[\"\",\"hello\"]")));
    assert_false(hd_room_content_is_said(HD_S("")));
    assert_false(hd_room_content_is_said(HD_S("\" \\n\"")));
    assert_false(hd_room_content_is_said(HD_S("[]")));
    assert_false(hd_room_content_is_said(HD_S("null")));
    assert_false(hd_room_content_is_said(HD_S("[{\"type\":\"text\",\"text\":\" \"}]")));
    assert_false(hd_room_content_is_said(HD_S(
        "[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":\"tool_use\",\"id\":\"1\"}]")));
}

static void inner_blocks_are_removed(void **state)
{
    struct hd_slice out;

    (void)state;
    assert_err(
        hd_room_content_said(
            HD_S("[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
                 "{\"type\":\"text\",\"text\":\"yes\"},{\"type\":\"tool_use\",\"id\":\"1\"}]"),
            &arena, &out),
        0);
    assert_slice(out, HD_S("[{\"type\":\"text\",\"text\":\"yes\"}]"));
    assert_err(hd_room_content_said(HD_S("\"yes\""), &arena, &out), 0);
    assert_slice(out, HD_S("\"yes\""));
}

static void the_texts_of_a_content_are_listed(void **state)
{
    struct hd_slice *texts;
    size_t count;

    (void)state;
    assert_err(hd_room_content_texts(HD_S("\"one\""), &arena, &texts, &count), 0);
    assert_int_equal(count, 1);
    assert_slice(texts[0], HD_S("one"));
    assert_err(hd_room_content_texts(HD_S("[\"one\",{\"type\":\"image_url\",\"text\":\"no\"},"
                                          "{\"type\":\"text\",\"text\":\"two\"}]"),
                                     &arena, &texts, &count),
               0);
    assert_int_equal(count, 2);
    assert_slice(texts[1], HD_S("two"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blank_texts_and_inner_blocks_are_not_said),
        cmocka_unit_test(inner_blocks_are_removed),
        cmocka_unit_test(the_texts_of_a_content_are_listed),
    };

    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
