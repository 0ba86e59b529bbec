#include "http/request.h"

#include "tests/unit/check.h"

static void gzip_is_taken_when_it_is_accepted(void **state)
{
    static const struct {
        const char *value;
        bool is_taken;
    } cases[] = {
        {"", false},
        {"gzip", true},
        {"GZip", true},
        {"x-gzip", true},
        {" deflate , gzip ;q=0.5, br", true},
        {"gzip; q=1.0", true},
        {"*", true},
        {"br;q=1.0, *;q=0.1", true},
        {"gzip;q=0", false},
        {"gzip; q=0.000, br", false},
        {"*;q=0", false},
        {"*, gzip;q=0", false},
        {"gzip;q=0, *", false},
        {"gzipp", false},
        {"identity", false},
        {",,;;=,", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_header headers[] = {
            {HD_S("accept"), HD_S("gzip")},
            {HD_S("accept-encoding"), hd_slice_cstr(cases[i].value)},
        };
        struct hd_http_request request = {.headers = headers, .header_count = 2};

        if (hd_request_accepts_gzip(&request) != cases[i].is_taken)
            fail_msg("'%s'", cases[i].value);
        request.header_count = 1;
        assert_false(hd_request_accepts_gzip(&request));
    }
}

static void the_first_header_of_a_name_counts(void **state)
{
    struct hd_header headers[] = {
        {HD_S("a"), HD_S("1")}, {HD_S("b"), HD_S("")}, {HD_S("a"), HD_S("2")}};
    struct hd_http_request request = {.headers = headers, .header_count = 3};
    struct hd_slice value;

    (void)state;
    assert_true(hd_request_header(&request, HD_S("a"), &value));
    assert_slice(value, HD_S("1"));
    assert_true(hd_request_header(&request, HD_S("b"), &value));
    assert_false(hd_request_header(&request, HD_S("c"), &value));
    assert_slice(hd_request_value(&request, HD_S("c")), HD_S(""));
}

static void methods_are_listed(void **state)
{
    char list[64];

    (void)state;
    assert_int_equal(hd_method_list(0, list), 0);
    assert_string_equal(list, "");
    (void)hd_method_list(HD_METHOD_BIT(HD_METHOD_GET) | HD_METHOD_BIT(HD_METHOD_OPTIONS), list);
    assert_string_equal(list, "GET, OPTIONS");
    (void)hd_method_list(~0u, list);
    assert_string_equal(list, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    assert_string_equal(hd_method_name(HD_METHOD_PATCH), "PATCH");
    assert_string_equal(hd_method_name((enum hd_method)99), "");
}

static void letters_compare_without_case(void **state)
{
    (void)state;
    assert_true(hd_slice_eq_nocase(HD_S("ChunkeD"), HD_S("cHUNKEd")));
    assert_false(hd_slice_eq_nocase(HD_S("a"), HD_S("ab")));
    assert_false(hd_slice_eq_nocase(HD_S("["), HD_S("{")));
    assert_true(hd_slice_eq_nocase(hd_slice(NULL, 0), HD_S("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_is_taken_when_it_is_accepted),
        cmocka_unit_test(the_first_header_of_a_name_counts),
        cmocka_unit_test(methods_are_listed),
        cmocka_unit_test(letters_compare_without_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
