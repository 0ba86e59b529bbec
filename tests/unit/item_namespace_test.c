#include "records/item_namespace.h"

#include <string.h>

#include "tests/unit/check.h"

static struct hd_item_namespace split(const char *text, struct hd_arena *arena)
{
    struct hd_item_namespace labels;
    struct heddle_error fault = {0};

    if (hd_item_namespace_split(&labels, hd_slice_cstr(text), "namespace", arena, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return labels;
}

static void lists_and_texts_are_the_same(void **state)
{
    static const char *const cases[][2] = {
        {"null", ""},     {"[]", ""},
        {"[\"a\"]", "a"}, {"[\"users\",\"42\",\"\u00e9 x\"]", "users.42.\u00e9 x"},
        {"[\"*\"]", "*"},
    };
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_item_namespace labels, other = split(cases[i][1], &arena);
        struct hd_json json;
        struct hd_buf text;

        hd_buf_init(&text, 4096);
        assert_err(hd_json_parse(&json, hd_slice_cstr(cases[i][0]), NULL), 0);
        assert_err(hd_item_namespace_parse(&labels, hd_json_root(&json), "prefix", &arena, NULL),
                   0);
        assert_err(hd_item_namespace_join(&labels, &text), 0);
        assert_slice(hd_buf_slice(&text), hd_slice_cstr(cases[i][1]));
        assert_int_equal(hd_item_namespace_cmp(&labels, &other), 0);
        hd_buf_fini(&text);
        hd_json_fini(&json);
    }
    hd_arena_fini(&arena);
}

static void bad_lists_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"\"a\"", "prefix must be an array of labels, not a string"},
        {"{}", "prefix must be an array of labels, not an object"},
        {"[1]", "prefix: a label must be a string, not a number"},
        {"[\"a\",null]", "prefix: a label must be a string, not null"},
        {"[\"\"]", "prefix: a label is empty"},
        {"[\"a.b\"]", "prefix: the label \"a.b\" contains a \".\""},
        {"[\"a\\u0000\"]", "prefix: a label contains a NUL"},
    };
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_item_namespace labels;
        struct hd_json json;

        assert_err(hd_json_parse(&json, hd_slice_cstr(cases[i].text), NULL), 0);
        if (hd_item_namespace_parse(&labels, hd_json_root(&json), "prefix", &arena, &fault) !=
                HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_json_fini(&json);
    }
    hd_arena_fini(&arena);
}

static void bad_texts_are_refused(void **state)
{
    static const char *const texts[] = {".", "a.", ".a", "a..b"};
    char text[HD_ITEM_NAMESPACE_MAX_TEXT + 1];
    struct hd_item_namespace labels;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < HD_COUNT(texts); i++)
        assert_err(
            hd_item_namespace_split(&labels, hd_slice_cstr(texts[i]), "namespace", &arena, NULL),
            HD_EINVAL);
    memset(text, 'a', sizeof(text));
    assert_err(hd_item_namespace_split(&labels, hd_slice(text, sizeof(text)), "n", &arena, NULL),
               HD_EINVAL);
    for (size_t i = 1; i < sizeof(text); i += 2)
        text[i] = '.';
    assert_err(hd_item_namespace_split(&labels, hd_slice(text, 129), "n", &arena, NULL), HD_EINVAL);
    assert_err(hd_item_namespace_split(&labels, hd_slice(text, 127), "n", &arena, NULL), 0);
    assert_int_equal(labels.count, HD_ITEM_NAMESPACE_MAX);
    hd_arena_fini(&arena);
}

static void some_places_are_not_for_items(void **state)
{
    struct hd_arena arena;
    struct hd_item_namespace labels;

    (void)state;
    hd_arena_init(&arena, 4096);
    labels = split("", &arena);
    assert_err(hd_item_namespace_check_put(&labels, NULL), HD_EINVAL);
    labels = split("langgraph.x", &arena);
    assert_err(hd_item_namespace_check_put(&labels, NULL), HD_EINVAL);
    labels = split("x.langgraph", &arena);
    assert_err(hd_item_namespace_check_put(&labels, NULL), 0);
    hd_arena_fini(&arena);
}

static void beginnings_and_ends_match(void **state)
{
    static const struct {
        const char *labels, *pattern;
        bool starts, ends;
    } cases[] = {
        {"a.b.c", "", true, true},      {"", "", true, true},
        {"a.b.c", "a", true, false},    {"a.b.c", "c", false, true},
        {"a.b.c", "a.b.c", true, true}, {"a.b.c", "a.b.c.d", false, false},
        {"a.b.c", "*", true, true},     {"a.b.c", "a.*.c", true, true},
        {"a.b.c", "*.b", true, false},  {"a.b.c", "b.*", false, true},
        {"ab.c", "a", false, false},    {"a.b.c", "*.*.*.*", false, false},
        {"*.b", "a", false, false},     {"a.b.a", "a", true, true},
    };
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_item_namespace labels = split(cases[i].labels, &arena);
        struct hd_item_namespace pattern = split(cases[i].pattern, &arena);

        if (hd_item_namespace_start_with(&labels, &pattern) != cases[i].starts ||
            hd_item_namespace_end_with(&labels, &pattern) != cases[i].ends)
            fail_msg("%s and %s", cases[i].labels, cases[i].pattern);
    }
    hd_arena_fini(&arena);
}

static int collect(const char *const *texts, size_t count, size_t max_depth, size_t limit,
                   struct hd_arena *arena, struct hd_buf *out)
{
    struct hd_label_set set;
    int err = 0;

    hd_label_set_init(&set, arena, max_depth, limit);
    for (size_t i = 0; err == 0 && i < count; i++) {
        struct hd_item_namespace labels;

        err = hd_item_namespace_split(&labels, hd_slice_cstr(texts[i]), "namespace", arena, NULL);
        if (err == 0)
            err = hd_label_set_add(&set, &labels);
    }
    hd_label_set_sort(&set);
    for (size_t i = 0; err == 0 && i < set.count; i++) {
        err = hd_item_namespace_join(&set.items[i], out);
        if (err == 0)
            err = hd_buf_append_byte(out, ' ');
    }
    hd_label_set_fini(&set);
    return err;
}

static const char *const namespaces[] = {"b", "a-b.x", "a.y.z", "a.x",
                                         "a", "a.y.w", "a.x",   "b.c.d.e"};

static void sets_are_sorted_and_cut(void **state)
{
    static const char *const expected[] = {
        "a a.x a.y.w a.y.z a-b.x b b.c.d.e ",
        "a a-b b ",
        "a a.x a.y a-b.x b b.c ",
        "a a.x a.y.w a.y.z a-b.x b b.c.d ",
    };
    struct hd_arena arena;

    (void)state;
    for (size_t depth = 0; depth < HD_COUNT(expected); depth++) {
        struct hd_buf out;

        hd_arena_init(&arena, 1 << 20);
        hd_buf_init(&out, 4096);
        assert_err(collect(namespaces, HD_COUNT(namespaces), depth, 100, &arena, &out), 0);
        assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected[depth]));
        hd_buf_fini(&out);
        hd_arena_fini(&arena);
    }
}

static void sets_have_a_limit(void **state)
{
    struct hd_arena arena;
    struct hd_buf out;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    hd_buf_init(&out, 4096);
    assert_err(collect(namespaces, HD_COUNT(namespaces), 0, 6, &arena, &out), HD_ELIMIT);
    assert_err(collect(namespaces, HD_COUNT(namespaces), 0, 7, &arena, &out), 0);
    hd_buf_fini(&out);
    hd_arena_fini(&arena);
}

static int collect_once(void *arg)
{
    struct hd_arena arena;
    struct hd_buf out;
    int err;

    (void)arg;
    hd_arena_init(&arena, 1 << 20);
    hd_buf_init(&out, 4096);
    err = collect(namespaces, HD_COUNT(namespaces), 0, 100, &arena, &out);
    hd_buf_fini(&out);
    hd_arena_fini(&arena);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(check_every_allocation(collect_once, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_texts_are_the_same),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(some_places_are_not_for_items),
        cmocka_unit_test(beginnings_and_ends_match),
        cmocka_unit_test(sets_are_sorted_and_cut),
        cmocka_unit_test(sets_have_a_limit),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
