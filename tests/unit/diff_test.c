/* The first difference of two values. */
#include "value/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID1 "11111111-1111-4111-8111-111111111111"
#define ID2 "22222222-2222-4222-8222-222222222222"
#define ID3 "33333333-3333-4333-8333-333333333333"

/* The path of the difference, or "same". */
static void check(const char *left, const char *right, const char *wanted)
{
    struct hd_val *a, *b;
    struct hd_diff diff;
    bool differs;

    assert_int_equal(hd_val_parse(hd_slice_cstr(left), &a, NULL), 0);
    assert_int_equal(hd_val_parse(hd_slice_cstr(right), &b, NULL), 0);
    hd_diff_init(&diff);
    assert_int_equal(hd_diff_find(&diff, a, b, &differs), 0);
    assert_string_equal(differs ? diff.path.ptr : "same", wanted);
    hd_diff_fini(&diff);
    hd_val_unref(a);
    hd_val_unref(b);
}

static void plain_values(void **state)
{
    (void)state;
    check("1", "1", "same");
    check("1", "2", "");
    check("{\"a\":[1,2]}", "{\"a\":[1,3]}", ".a[1]");
    check("{\"a\":[1]}", "{\"a\":[1,3]}", ".a[1]");
    check("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "same");
    check("{\"a\":1}", "{\"a\":1,\"b\":null}", ".b");
    check("{\"a\":1,\"b\":2}", "{\"a\":1}", ".b");
    check("{\"a\":{\"b\":[{},{\"c\":\"x\"}]}}", "{\"a\":{\"b\":[{},{\"c\":\"y\"}]}}", ".a.b[1].c");
    check("[]", "{}", "");
}

static void ids_are_compared_by_their_relations(void **state)
{
    (void)state;
    check("[\"" ID1 "\"]", "[\"" ID2 "\"]", "same");
    check("[\"lc_run--" ID1 "\",\"" ID1 "\"]", "[\"lc_run--" ID2 "\",\"" ID2 "\"]", "same");
    /* One side has the same value twice, the other has two values. */
    check("[\"" ID1 "\",\"" ID1 "\"]", "[\"" ID2 "\",\"" ID3 "\"]", "[1]");
    check("[\"" ID1 "\",\"" ID2 "\"]", "[\"" ID3 "\",\"" ID3 "\"]", "[1]");
    check("[\"a " ID1 "\"]", "[\"b " ID2 "\"]", "[0]");
    check("[\"" ID1 "\"]", "[\"not an id, but as long as one is....\"]", "[0]");
}

static void both_sides_are_shown(void **state)
{
    struct hd_val *a, *b;
    struct hd_diff diff;
    bool differs;

    (void)state;
    assert_int_equal(hd_val_parse(HD_S("{\"a\":1}"), &a, NULL), 0);
    assert_int_equal(hd_val_parse(HD_S("{}"), &b, NULL), 0);
    hd_diff_init(&diff);
    assert_int_equal(hd_diff_find(&diff, a, b, &differs), 0);
    assert_true(differs && diff.a && !diff.b);
    assert_int_equal(hd_diff_find(&diff, a, a, &differs), 0);
    assert_false(differs);
    hd_diff_fini(&diff);
    hd_val_unref(a);
    hd_val_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values),
        cmocka_unit_test(ids_are_compared_by_their_relations),
        cmocka_unit_test(both_sides_are_shown),
    };

    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
