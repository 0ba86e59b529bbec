#include "http/query.h"

#include "tests/unit/check.h"

static int start(void **state)
{
    static struct hd_arena arena;

    hd_arena_init(&arena, 1 << 20);
    *state = &arena;
    return 0;
}

static int stop(void **state)
{
    hd_arena_fini(*state);
    return 0;
}

static struct hd_params parse(struct hd_arena *arena, const char *text)
{
    struct hd_params params = {0};

    assert_err(hd_params_parse(&params, hd_slice_cstr(text), arena, NULL), 0);
    return params;
}

static void pairs_are_decoded(void **state)
{
    struct hd_params params = parse(*state, "a=1&&b=x%20y+z&c&=e&%64=%3D%26&f=a=b&u=%C3%a9");
    static const char *const expected[][2] = {{"a", "1"},  {"b", "x y z"}, {"c", ""}, {"", "e"},
                                              {"d", "=&"}, {"f", "a=b"},   {"u", "é"}};

    assert_int_equal(params.count, HD_COUNT(expected));
    for (size_t i = 0; i < HD_COUNT(expected); i++) {
        assert_slice(params.pairs[i].name, hd_slice_cstr(expected[i][0]));
        assert_slice(params.pairs[i].value, hd_slice_cstr(expected[i][1]));
    }
    assert_int_equal(parse(*state, "").count, 0);
    assert_int_equal(parse(*state, "&&&").count, 0);
}

static void wrong_encoding_is_refused(void **state)
{
    static const char *const texts[] = {"a=%",   "a=%4",   "a=%zz",    "%=1",           "a=%00",
                                        "a=%ff", "a=\xff", "a=%c3%28", "a=%F4%90%80%80"};

    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct heddle_error fault = {0};
        struct hd_params params;

        assert_err(hd_params_parse(&params, hd_slice_cstr(texts[i]), *state, &fault), HD_EINVAL);
        assert_string_equal(fault.text, "the query string is not percent-encoded UTF-8");
    }
}

static void too_many_parameters_are_refused(void **state)
{
    char text[2 * (HD_PARAMS_MAX + 1)];
    struct heddle_error fault = {0};
    struct hd_params params;

    for (size_t i = 0; i < sizeof(text); i += 2) {
        text[i] = 'a';
        text[i + 1] = '&';
    }
    assert_err(hd_params_parse(&params, hd_slice(text, 2 * HD_PARAMS_MAX - 1), *state, &fault), 0);
    assert_int_equal(params.count, HD_PARAMS_MAX);
    assert_err(hd_params_parse(&params, hd_slice(text, sizeof(text) - 1), *state, &fault),
               HD_ELIMIT);
    assert_string_equal(fault.text, "the query string has more than 256 parameters");
}

static void the_first_value_that_is_not_empty_counts(void **state)
{
    struct hd_params params = parse(*state, "a=&a=1&a=2&b=&c");
    struct hd_slice value;

    assert_true(hd_params_get(&params, HD_S("a"), &value));
    assert_slice(value, HD_S("1"));
    assert_false(hd_params_get(&params, HD_S("b"), &value));
    assert_false(hd_params_get(&params, HD_S("c"), &value));
    assert_false(hd_params_get(&params, HD_S("d"), &value));
    assert_true(hd_params_has(&params, HD_S("b")));
    assert_true(hd_params_has(&params, HD_S("c")));
    assert_false(hd_params_has(&params, HD_S("d")));
}

/* The elements of `m`, each followed by '|'. */
static const char *list_of(struct hd_arena *arena, const char *query)
{
    struct hd_params params = parse(arena, query);
    char *text = hd_arena_alloc(arena, 1024);
    struct hd_slice *items;
    size_t count, len = 0;

    assert_err(hd_params_list(&params, HD_S("m"), arena, &items, &count, NULL), 0);
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, 1024 - len, "%.*s|", (int)items[i].len, items[i].ptr);
    text[len] = '\0';
    return text;
}

static void lists_come_in_many_forms(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"m", ""},
        {"m=", ""},
        {"m=&m=", ""},
        {"n=1", ""},
        {"m=values", "values|"},
        {"m=values&m=updates", "values|updates|"},
        {"m=values,updates", "values|updates|"},
        {"m=values,+updates,,", "values|updates|"},
        {"m=[\"values\",\"updates\"]", "values|updates|"},
        {"m=%5B%22values%22%2C%20%22updates%22%5D", "values|updates|"},
        {"m=+[]", ""},
        {"m=[\"a,b\",1,2.50,true,null]", "a,b|1|2.50|true|"},
        {"m=%22values%22", "values|"},
        {"m=a&m=b,c&m=[\"d\"]&n=x&m=", "a|b|c|d|"},
        {"m=messages-tuple", "messages-tuple|"},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_string_equal(list_of(*state, cases[i][0]), cases[i][1]);
}

static void wrong_lists_are_refused(void **state)
{
    static const char *const texts[] = {"m=[",   "m=[\"a\"", "m=[[1]]",        "m=[{}]",
                                        "m=\"a", "m=[a]",    "m=[\"\\u0000\"]"};
    struct hd_slice *items;
    size_t count;

    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct hd_params params = parse(*state, texts[i]);
        struct heddle_error fault = {0};

        assert_err(hd_params_list(&params, HD_S("m"), *state, &items, &count, &fault), HD_EINVAL);
        assert_memory_equal(fault.text, "query parameter 'm' must be a list", 34);
    }
}

static void lists_are_limited(void **state)
{
    char text[2 * HD_PARAMS_MAX_LIST + 16] = "m=";
    struct hd_slice *items;
    struct hd_params params;
    size_t count, len = 2;

    for (size_t i = 0; i < HD_PARAMS_MAX_LIST; i++) {
        text[len++] = 'a';
        text[len++] = ',';
    }
    params = parse(*state, text);
    assert_err(hd_params_list(&params, HD_S("m"), *state, &items, &count, NULL), 0);
    assert_int_equal(count, HD_PARAMS_MAX_LIST);
    text[len++] = 'a';
    params = parse(*state, text);
    assert_err(hd_params_list(&params, HD_S("m"), *state, &items, &count, NULL), HD_EINVAL);
}

static void booleans_have_one_reader(void **state)
{
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"b=1", 1},      {"b=0", 0},     {"b=true", 1}, {"b=False", 0}, {"b=YES", 1},
                 {"b=nO", 0},     {"b=", 2},      {"", 2},       {"b=on", -1},   {"b=2", -1},
                 {"b=truee", -1}, {"b=null", -1}, {"b=01", -1}};

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_params params = parse(*state, cases[i].text);

        for (int otherwise = 0; otherwise < 2; otherwise++) {
            struct heddle_error fault = {0};
            bool value = !otherwise;
            int err = hd_params_bool(&params, HD_S("b"), otherwise, &value, &fault);

            assert_err(err, cases[i].value < 0 ? HD_EINVAL : 0);
            if (!err)
                assert_int_equal(value, cases[i].value == 2 ? otherwise : cases[i].value);
            else
                assert_memory_equal(fault.text, "query parameter 'b' must be true or false", 41);
        }
    }
}

static void integers_are_within_bounds(void **state)
{
    static const struct {
        const char *text;
        int64_t min, max, value;
        const char *error;
    } cases[] = {
        {"", 0, 10, -1, NULL},
        {"n=", 0, 10, -1, NULL},
        {"n=0", 0, 10, 0, NULL},
        {"n=10", 0, 10, 10, NULL},
        {"n=%2B7", 0, 10, 7, NULL},
        {"n=007", 0, 10, 7, NULL},
        {"n=-5", -5, 10, -5, NULL},
        {"n=11", 0, 10, 0, "query parameter 'n' must be an integer from 0 to 10, not '11'"},
        {"n=-1", 0, INT64_MAX, 0, "query parameter 'n' must be an integer of at least 0, not '-1'"},
        {"n=1.0", 0, 10, 0, "query parameter 'n' must be an integer from 0 to 10, not '1.0'"},
        {"n=x", 0, 10, 0, "query parameter 'n' must be an integer from 0 to 10, not 'x'"},
        {"n=-", 0, 10, 0, "query parameter 'n' must be an integer from 0 to 10, not '-'"},
        {"n=1e1", 0, 10, 0, "query parameter 'n' must be an integer from 0 to 10, not '1e1'"},
        {"n=9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX, NULL},
        {"n=-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN, NULL},
        {"n=9223372036854775808", 0, 9, 0,
         "query parameter 'n' must be an integer from 0 to 9, not '9223372036854775808'"},
        {"n=-9223372036854775809", 0, 9, 0,
         "query parameter 'n' must be an integer from 0 to 9, not '-9223372036854775809'"},
        {"n=99999999999999999999", 0, 9, 0,
         "query parameter 'n' must be an integer from 0 to 9, not '99999999999999999999'"},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_params params = parse(*state, cases[i].text);
        struct heddle_error fault = {0};
        int64_t value = 77;
        int err = hd_params_int(&params, HD_S("n"), cases[i].min, cases[i].max, -1, &value, &fault);

        assert_err(err, cases[i].error ? HD_EINVAL : 0);
        assert_int_equal(value, cases[i].error ? 77 : cases[i].value);
        assert_string_equal(fault.text, cases[i].error ? cases[i].error : "");
    }
}

static void long_values_are_cut_in_errors(void **state)
{
    struct hd_params params =
        parse(*state, "n=%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9"
                      "%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9"
                      "x%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9");
    struct heddle_error fault = {0};
    int64_t value;

    assert_err(hd_params_int(&params, HD_S("n"), 0, 1, 0, &value, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "query parameter 'n' must be an integer from 0 to 1, not "
                                    "'ééééééééééééééééééééééééxééééé…'");
}

static int parse_and_list(void *arg)
{
    struct hd_slice *items;
    struct hd_params params;
    struct hd_arena arena;
    size_t count;
    int err;

    (void)arg;
    hd_arena_init(&arena, 1 << 20);
    err = hd_params_parse(&params, HD_S("m=%61&m=[\"a\",\"b\"]&m=c,d,e,f,g,h,i,j"), &arena, NULL);
    if (!err)
        err = hd_params_list(&params, HD_S("m"), &arena, &items, &count, NULL);
    hd_arena_fini(&arena);
    return err;
}

static void memory_may_end(void **state)
{
    (void)state;
    assert_true(check_every_allocation(parse_and_list, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pairs_are_decoded, start, stop),
        cmocka_unit_test_setup_teardown(wrong_encoding_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(too_many_parameters_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(the_first_value_that_is_not_empty_counts, start, stop),
        cmocka_unit_test_setup_teardown(lists_come_in_many_forms, start, stop),
        cmocka_unit_test_setup_teardown(wrong_lists_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(lists_are_limited, start, stop),
        cmocka_unit_test_setup_teardown(booleans_have_one_reader, start, stop),
        cmocka_unit_test_setup_teardown(integers_are_within_bounds, start, stop),
        cmocka_unit_test_setup_teardown(long_values_are_cut_in_errors, start, stop),
        cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
