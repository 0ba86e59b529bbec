/* Writes of tasks: identity, replacement, order, pending sends of old checkpoints. */
#include "tests/contract/store_cases.h"

static void writes_belong_to_their_checkpoint(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .path = "~p",
           .values = {VALUE("a", "1"), VALUE("b", "{\"x\":2}"), VALUE("a", "3")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    assert_get(f->store, "t", "", "1",
               "1< | k/0@~p a=json:1 k/1@~p b=json:{\"x\":2} k/2@~p a=json:3");
    assert_get(f->store, "t", "", "2", "2<1");
    WRITES(f->store, .thread = "t", .ns = "n", .id = "1", .task = "k", .values = {VALUE("a", "9")});
    assert_get(f->store, "t", "", "1",
               "1< | k/0@~p a=json:1 k/1@~p b=json:{\"x\":2} k/2@~p a=json:3");
}

static void writes_may_come_before_their_checkpoint(struct fixture *f)
{
    char *big = long_json(4000, 4);
    struct writes batch = {.thread = "t", .id = "1", .task = "k"};
    char expected[5000];

    batch.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_ok(try_writes(f->store, &batch, NULL));
    assert_get(f->store, "t", "", "1", "none");
    assert_get(f->store, "t", "", "", "none");
    reopen(f);
    PUT(f->store, .thread = "t", .id = "1");
    snprintf(expected, sizeof(expected), "1< | k/0 a=json:%s", big);
    assert_get(f->store, "t", "", "1", expected);
    free(big);
}

static void the_first_write_stays(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .path = "other",
           .values = {VALUE("b", "2"), VALUE("c", "3")});
    assert_get(f->store, "t", "", "1", "1< | k/0 a=json:1 k/1@other c=json:3");
}

static void special_writes_replace(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .path = "1",
           .values = {VALUE("__error__", "1"), VALUE("__scheduled__", "1"),
                      VALUE("__interrupt__", "1"), VALUE("__resume__", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .path = "2",
           .values = {VALUE("__resume__", "2"), VALUE("__interrupt__", "2")});
    assert_get(f->store, "t", "", "1",
               "1< | k/-4@2 __resume__=json:2 k/-3@2 __interrupt__=json:2"
               " k/-2@1 __scheduled__=json:1 k/-1@1 __error__=json:1");
    /* The last of two in one batch wins. */
    WRITES(f->store, .thread = "t", .id = "1", .task = "m",
           .values = {VALUE("__resume__", "1"), VALUE("__resume__", "2")});
    assert_get(f->store, "t", "", "1",
               "1< | k/-4@2 __resume__=json:2 k/-3@2 __interrupt__=json:2"
               " k/-2@1 __scheduled__=json:1 k/-1@1 __error__=json:1 m/-4 __resume__=json:2");
}

static void other_channels_are_not_special(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k",
           .values = {VALUE("__error_source_node__", "1"), VALUE("__no_writes__", "2"),
                      VALUE("__return__", "3"), VALUE("__pregel_tasks", "4"), VALUE("__end__", "5"),
                      VALUE("__error__x", "6"), VALUE("__error_", "7")});
    assert_get(f->store, "t", "", "1",
               "1< | k/0 __error_source_node__=json:1 k/1 __no_writes__=json:2 k/2 "
               "__return__=json:3 k/3 __pregel_tasks=json:4 k/4 __end__=json:5 "
               "k/5 __error__x=json:6 k/6 __error_=json:7");
}

static void each_row_of_a_mixed_batch_has_its_own_rule(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k",
           .values = {VALUE("__resume__", "1"), VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k",
           .values = {VALUE("__resume__", "2"), VALUE("a", "2"), VALUE("b", "2")});
    assert_get(f->store, "t", "", "1", "1< | k/-4 __resume__=json:2 k/1 a=json:1 k/2 b=json:2");
}

static void no_writes_are_nothing(struct fixture *f)
{
    WRITES(f->store, .thread = "t", .id = "1", .task = "k");
    assert_text(render_threads(f->store, "", "", 10), "");
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k");
    assert_get(f->store, "t", "", "1", "1<");
}

static void writes_come_in_byte_order_of_task_and_number(struct fixture *f)
{
    static const char *const tasks[] = {"b", "\xff", "B", "a", "aa", "", "00000001-x"};
    struct heddle_value many[12];
    char names[12][12];
    struct heddle_writes batch = {.thread = thread_of("t"),
                                  .checkpoint_id = text("2"),
                                  .task_id = text("k"),
                                  .values = many,
                                  .value_count = 12};

    PUT(f->store, .thread = "t", .id = "1");
    for (size_t i = 0; i < COUNT_OF(tasks); i++)
        WRITES(f->store, .thread = "t", .id = "1", .task = tasks[i], .values = {VALUE("a", "1")});
    assert_get(f->store, "t", "", "1",
               "1< | /0 a=json:1 00000001-x/0 a=json:1 B/0 a=json:1 a/0 a=json:1 aa/0 a=json:1"
               " b/0 a=json:1 \\xff/0 a=json:1");
    /* By number, not by the text of the number. */
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof(names[i]), "%d", i);
        many[i] = (struct heddle_value){text("a"), text("j"), text(names[i])};
    }
    assert_ok(heddle_put_writes(f->store, &batch, NULL));
    PUT(f->store, .thread = "t", .id = "2");
    assert_get(f->store, "t", "", "2",
               "2< | k/0 a=j:0 k/1 a=j:1 k/2 a=j:2 k/3 a=j:3 k/4 a=j:4 k/5 a=j:5 k/6 a=j:6"
               " k/7 a=j:7 k/8 a=j:8 k/9 a=j:9 k/10 a=j:10 k/11 a=j:11");
}

static void long_writes_share_with_values(struct fixture *f)
{
    char *big = long_json(5000, 5);
    struct put put = {.thread = "t", .id = "1", .versions = "{\"a\":1}"};
    struct writes batch = {.thread = "t", .id = "1", .task = "k"};
    char expected[11000];
    int64_t before;

    put.values[0] = (struct heddle_value){text("a"), text("bytes"), text(big)};
    assert_ok(try_put(f->store, &put, NULL));
    before = usage_of(f->store, "t").bytes;
    batch.values[0] = (struct heddle_value){text("a"), text("bytes"), text(big)};
    batch.values[1] = (struct heddle_value){text("b"), text("bytes"), text(big)};
    assert_ok(try_writes(f->store, &batch, NULL));
    snprintf(expected, sizeof(expected), "1< a=bytes:%s | k/0 a=bytes:%s k/1 b=bytes:", big, big);
    reopen(f);
    {
        char *got = render_get(f->store, "t", "", "1");

        assert_memory_equal(got, expected, strlen(expected));
        assert_string_equal(got + strlen(expected), big);
        free(got);
    }
    assert_true(usage_of(f->store, "t").bytes < before + 1000);
    assert_int_equal(usage_of(f->store, "t").writes, 2);
    free(big);
}

static void long_special_writes_replace_each_other(struct fixture *f)
{
    char *one = long_json(3000, 6), *two = long_json(3000, 7);
    struct writes batch = {.thread = "t", .id = "1", .task = "k"};
    char expected[3100];

    PUT(f->store, .thread = "t", .id = "1");
    for (int i = 0; i < 5; i++) {
        batch.values[0] =
            (struct heddle_value){text("__resume__"), text("json"), text(i % 2 ? two : one)};
        assert_ok(try_writes(f->store, &batch, NULL));
        snprintf(expected, sizeof(expected), "1< | k/-4 __resume__=json:%s", i % 2 ? two : one);
        assert_get(f->store, "t", "", "1", expected);
    }
    free(one);
    free(two);
}

static void old_checkpoints_find_their_pending_sends(struct fixture *f)
{
    static const char old[] = "{\"v\":1,\"channel_versions\":{}}";

    PUT(f->store, .thread = "t", .id = "1", .checkpoint = old, .changed = "{}");
    WRITES(f->store, .thread = "t", .id = "1", .task = "task2",
           .values = {VALUE("__pregel_tasks", "3"), VALUE("a", "0")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "task1",
           .values = {VALUE("__pregel_tasks", "1"), VALUE("b", "0"), VALUE("__pregel_tasks", "2")});
    WRITES(f->store, .thread = "t", .ns = "n", .id = "1", .task = "task0",
           .values = {VALUE("__pregel_tasks", "4")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .checkpoint = old, .changed = "{}");
    PUT(f->store, .thread = "t", .id = "3", .parent = "1",
        .checkpoint = "{\"v\":3,\"channel_versions\":{}}", .changed = "{}");
    PUT(f->store, .thread = "t", .id = "4", .parent = "1");
    PUT(f->store, .thread = "t", .id = "5", .checkpoint = old, .changed = "{}");
    PUT(f->store, .thread = "t", .id = "6", .parent = "5", .checkpoint = old, .changed = "{}");
    assert_get(f->store, "t", "", "2",
               "2<1 ^ task1/0 __pregel_tasks=json:1 task1/2 __pregel_tasks=json:2"
               " task2/0 __pregel_tasks=json:3");
    assert_get(f->store, "t", "", "3",
               "3<1 ^ task1/0 __pregel_tasks=json:1 task1/2 __pregel_tasks=json:2"
               " task2/0 __pregel_tasks=json:3");
    assert_get(f->store, "t", "", "4", "4<1"); /* version 4 keeps them in a channel */
    assert_get(f->store, "t", "", "5", "5<");
    assert_get(f->store, "t", "", "6", "6<5");
}

static void listing_finds_pending_sends_too(struct fixture *f)
{
    static const char old[] = "{\"v\":1,\"channel_versions\":{}}";
    struct heddle_query query = {.limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;

    PUT(f->store, .thread = "t", .id = "1", .checkpoint = old, .changed = "{}");
    WRITES(f->store, .thread = "t", .id = "1", .task = "k",
           .values = {VALUE("__pregel_tasks", "1")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .checkpoint = old, .changed = "{}");
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    assert_ok(heddle_list_next(list, &tuple, NULL));
    assert_text(render_tuple(tuple), "2<1 ^ k/0 __pregel_tasks=json:1");
    assert_ok(heddle_list_next(list, &tuple, NULL));
    assert_text(render_tuple(tuple), "1< | k/0 __pregel_tasks=json:1");
    assert_code(heddle_list_next(list, &tuple, NULL), HEDDLE_ENOTFOUND);
    heddle_list_close(list);
}

const struct store_case writes_cases[] = {
    STORE_CASE(writes_belong_to_their_checkpoint),
    STORE_CASE(writes_may_come_before_their_checkpoint),
    STORE_CASE(the_first_write_stays),
    STORE_CASE(special_writes_replace),
    STORE_CASE(other_channels_are_not_special),
    STORE_CASE(each_row_of_a_mixed_batch_has_its_own_rule),
    STORE_CASE(no_writes_are_nothing),
    STORE_CASE(writes_come_in_byte_order_of_task_and_number),
    STORE_CASE(long_writes_share_with_values),
    STORE_CASE(long_special_writes_replace_each_other),
    STORE_CASE(old_checkpoints_find_their_pending_sends),
    STORE_CASE(listing_finds_pending_sends_too),
    {NULL, NULL},
};
