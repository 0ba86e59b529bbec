#include "auth/auth_filter.h"

#include <string.h>

#include "tests/unit/check.h"

#define OR(filter) "{\"$or\":[" filter "]}"

static const char object[] =
    "{\"owner\":\"ada\",\"level\":3,\"none\":null,\"teams\":[\"a\",\"b\",1],"
    "\"at\":{\"city\":\"London\"},\"namespace\":[\"ada\",\"notes\"]}";

static bool allows(const char *text)
{
    struct hd_json filter = {NULL}, whole = {NULL};
    struct heddle_error fault = {0};
    bool is_allowed;

    assert_err(hd_json_parse(&filter, hd_slice_cstr(text), NULL), 0);
    assert_err(hd_json_parse(&whole, hd_slice_cstr(object), NULL), 0);
    if (hd_auth_filter_check(hd_json_root(&filter), &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    is_allowed = hd_auth_filter_allows(hd_json_root(&filter), hd_json_root(&whole));
    hd_json_fini(&filter);
    hd_json_fini(&whole);
    return is_allowed;
}

static void matching_metadata_is_visible(void **state)
{
    static const char *const seen[] = {
        "{}",
        "{\"owner\":\"ada\"}",
        "{\"owner\":{\"$eq\":\"ada\"}}",
        "{\"level\":3.0}",
        "{\"none\":null}",
        "{\"at\":{\"city\":\"London\"}}",
        "{\"teams\":{\"$contains\":\"a\"}}",
        "{\"teams\":{\"$contains\":[\"b\",1]}}",
        "{\"teams\":{\"$contains\":[]}}",
        "{\"teams\":{\"$contains\":\"a\",\"$eq\":[\"a\",\"b\",1]}}",
        "{\"namespace\":[\"ada\",\"notes\"]}",
        "{\"$or\":[{\"owner\":\"bob\"},{\"level\":3}]}",
        "{\"$and\":[{\"owner\":\"ada\"},{\"level\":3}]}",
        "{\"$and\":[{\"$or\":[{\"owner\":\"bob\"},{\"owner\":\"ada\"}]}],\"level\":3}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(seen); i++) {
        if (!allows(seen[i]))
            fail_msg("%s should let it be seen", seen[i]);
    }
}

static void other_metadata_is_not_visible(void **state)
{
    static const char *const unseen[] = {
        "{\"owner\":\"bob\"}",
        "{\"owner\":null}",
        "{\"missing\":null}",
        "{\"missing\":{\"$eq\":null}}",
        "{\"owner\":\"ada\",\"level\":4}",
        "{\"at\":{}}",
        "{\"teams\":\"a\"}",
        "{\"teams\":{\"$contains\":\"c\"}}",
        "{\"teams\":{\"$contains\":[\"a\",\"c\"]}}",
        "{\"owner\":{\"$contains\":\"ada\"}}",
        "{\"owner\":{\"$contains\":[]}}",
        "{\"$or\":[{\"owner\":\"bob\"},{\"level\":4}]}",
        "{\"$and\":[{\"owner\":\"ada\"},{\"level\":4}]}",
        "{\"$or\":[{\"owner\":\"ada\"}],\"level\":4}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(unseen); i++) {
        if (allows(unseen[i]))
            fail_msg("%s should let nothing be seen", unseen[i]);
    }
}

static void invalid_filters_are_refused(void **state)
{
    static const char *const bad[] = {
        "[]",
        "true",
        "\"owner\"",
        "{\"$eq\":1}",
        "{\"$not\":[{\"a\":1}]}",
        "{\"a\":{\"$ne\":1}}",
        "{\"a\":{\"$eq\":1,\"b\":2}}",
        "{\"$or\":{\"a\":1}}",
        "{\"$or\":[]}",
        "{\"$or\":[1]}",
        "{\"$or\":[{\"a\":{\"$gt\":1}}]}",
        OR(OR(OR(OR(OR(OR(OR(OR(OR("{\"a\":1}"))))))))),
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct heddle_error fault = {0};
        struct hd_json filter = {NULL};

        assert_err(hd_json_parse(&filter, hd_slice_cstr(bad[i]), NULL), 0);
        if (hd_auth_filter_check(hd_json_root(&filter), &fault) != HD_EINVAL || !fault.text[0])
            fail_msg("%s should be refused", bad[i]);
        hd_json_fini(&filter);
    }
}

static void nothing_is_no_filter(void **state)
{
    (void)state;
    assert_err(hd_auth_filter_check(NULL, NULL), 0);
    assert_true(hd_auth_filter_allows(NULL, NULL));
}

static void nothing_is_seen_in_nothing(void **state)
{
    struct hd_json filter = {NULL};

    (void)state;
    assert_err(hd_json_parse(&filter, HD_S("{\"owner\":\"ada\"}"), NULL), 0);
    assert_false(hd_auth_filter_allows(hd_json_root(&filter), NULL));
    hd_json_fini(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matching_metadata_is_visible),
        cmocka_unit_test(other_metadata_is_not_visible),
        cmocka_unit_test(invalid_filters_are_refused),
        cmocka_unit_test(nothing_is_no_filter),
        cmocka_unit_test(nothing_is_seen_in_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
