#include "base/uuid.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/check.h"

/* The namespaces of RFC 9562 for DNS names and for URLs. */
#define DNS "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
#define URL "6ba7b811-9dad-11d1-80b4-00c04fd430c8"

static int restore_clock(void **state)
{
    (void)state;
    hd_clock_set_for_test(0);
    return 0;
}

static void assert_version(const char *text, char version)
{
    uint8_t bytes[16];

    assert_int_equal(strlen(text), HD_UUID_LEN);
    assert_true(hd_uuid_parse(hd_slice_cstr(text), bytes));
    assert_int_equal(text[14], version);
    assert_non_null(strchr("89ab", text[19]));
}

static void text_and_bytes_are_the_same(void **state)
{
    static const char text[] = "00112233-4455-6677-8899-aabbccddeeff";
    static const uint8_t bytes[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                      0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    char out[HD_UUID_SIZE];
    uint8_t got[16];

    (void)state;
    hd_uuid_format(bytes, out);
    assert_string_equal(out, text);
    assert_true(hd_uuid_parse(hd_slice_cstr(text), got));
    assert_memory_equal(got, bytes, 16);
    assert_true(hd_uuid_parse(HD_S("00112233-4455-6677-8899-AABBCCDDEEFF"), got));
    assert_memory_equal(got, bytes, 16);
    assert_true(hd_uuid_parse(HD_S("00000000-0000-f000-f000-000000000000"), got));
}

static void text_that_is_not_a_uuid_is_rejected(void **state)
{
    static const struct hd_slice cases[] = {
        {NULL, 0},
        HD_S_INIT(""),
        HD_S_INIT("00112233-4455-6677-8899-aabbccddeef"),
        HD_S_INIT("00112233-4455-6677-8899-aabbccddeefff"),
        HD_S_INIT("00112233-4455-6677-8899-aabbccddeefg"),
        HD_S_INIT("0011223344556677-8899-aabbccddeeff00"),
        HD_S_INIT("00112233-4455-6677-8899_aabbccddeeff"),
        HD_S_INIT("0011223-34455-6677-8899-aabbccddeeff"),
        HD_S_INIT("{0112233-4455-6677-8899-aabbccddeef}"),
        HD_S_INIT("00112233-4455-6677-8899-aabbccdd\0eff"),
        HD_S_INIT("+0112233-4455-6677-8899-aabbccddeeff"),
    };
    uint8_t out[16] = {7};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_false(hd_uuid_parse(cases[i], out));
    assert_int_equal(out[0], 7);
}

static void random_ids_are_of_version_4_and_differ(void **state)
{
    char a[HD_UUID_SIZE], b[HD_UUID_SIZE];

    (void)state;
    hd_uuid_v4(a);
    hd_uuid_v4(b);
    assert_version(a, '4');
    assert_version(b, '4');
    assert_string_not_equal(a, b);
}

static void version_7_begins_with_the_time(void **state)
{
    char first[HD_UUID_SIZE], second[HD_UUID_SIZE];

    (void)state;
    /* The time of the example in RFC 9562, and 999 microseconds later. */
    hd_clock_set_for_test(INT64_C(0x017f22e279b0) * 1000);
    hd_uuid_v7(first);
    assert_version(first, '7');
    assert_memory_equal(first, "017f22e2-79b0-7000-", 19);
    hd_clock_set_for_test(INT64_C(0x017f22e279b0) * 1000 + 999);
    hd_uuid_v7(second);
    assert_memory_equal(second, "017f22e2-79b0-7ffb-", 19);
    assert_string_not_equal(first + 19, second + 19);
}

static void assert_behind(const char *id, const char *after)
{
    if (strcmp(id, after) <= 0)
        fail_msg("%s does not sort behind %s", id, after);
}

/* The clock is set to 1970. */
static void ids_sort_behind_another_with_any_clock(void **state)
{
    static const char *const cases[] = {
        "2f0a1b2c-3d4e-6fff-8003-aabbccddeeff", "2f0a1b2c-3d4e-6000-8003-aabbccddeeff",
        "2f0a1b2c-3d4e-7abc-8003-aabbccddeeff", "2f0a1b2c-3d4e-1abc-8003-aabbccddeeff",
        "2f0affff-ffff-6fff-bfff-ffffffffffff", "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "00000000-0000-6000-8000-000000000000", "fffffffe-ffff-ffff-ffff-ffffffffffff",
    };
    char id[HD_UUID_SIZE], next[HD_UUID_SIZE];

    (void)state;
    hd_clock_set_for_test(1);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        hd_uuid_checkpoint_after(3, hd_slice_cstr(cases[i]), id);
        assert_version(id, '6');
        assert_memory_equal(id + 19, "8003", 4);
        assert_behind(id, cases[i]);
        hd_uuid_checkpoint_after(3, hd_slice_cstr(id), next);
        assert_behind(next, id);
        hd_uuid_v7_after(hd_slice_cstr(cases[i]), id);
        assert_version(id, '7');
        assert_behind(id, cases[i]);
        hd_uuid_v7_after(hd_slice_cstr(id), next);
        assert_behind(next, id);
    }
}

/* A clock that is ahead determines the time, and no id sorts after the greatest one. */
static void the_time_is_that_of_the_clock_where_it_can_be(void **state)
{
    char id[HD_UUID_SIZE];

    (void)state;
    hd_clock_set_for_test(INT64_C(0x017f22e279b0) * 1000);
    hd_uuid_v7_after(HD_S("017f22e2-79af-7fff-bfff-ffffffffffff"), id);
    assert_memory_equal(id, "017f22e2-79b0-7000-", 19);
    hd_uuid_v7_after(HD_S("ffffffff-ffff-ffff-ffff-ffffffffffff"), id);
    assert_memory_equal(id, "017f22e2-79b0-7000-", 19);
    hd_uuid_v7_after(HD_S("no UUID"), id);
    assert_memory_equal(id, "017f22e2-79b0-7000-", 19);
}

static void version_5_is_that_of_the_standard(void **state)
{
    static const struct {
        const char *ns;
        struct hd_slice name;
        const char *expected;
    } cases[] = {
        {DNS, {"www.example.com", 15}, "2ed6657d-e927-568b-95e1-2665a8aea6a2"},
        {DNS, {"python.org", 10}, "886313e1-3b8a-5372-9b90-0c9aee199e5d"},
        {URL, {"", 0}, "1b4db7eb-4057-5ddf-91e0-36dec72071f5"},
        {URL, {NULL, 0}, "1b4db7eb-4057-5ddf-91e0-36dec72071f5"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char out[HD_UUID_SIZE];
        uint8_t ns[16];

        assert_true(hd_uuid_parse(hd_slice_cstr(cases[i].ns), ns));
        assert_err(hd_uuid_v5(ns, cases[i].name, out), 0);
        assert_string_equal(out, cases[i].expected);
    }
}

static void checkpoint_ids_show_their_step(void **state)
{
    static const struct {
        int step;
        const char *group;
    } cases[] = {
        {0, "-8000-"},     {3, "-8003-"},  {16383, "-bfff-"},
        {16384, "-8000-"}, {-1, "-bfff-"}, {-2, "-bffe-"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char out[HD_UUID_SIZE];

        hd_uuid_checkpoint(cases[i].step, out);
        assert_version(out, '6');
        assert_memory_equal(out + 18, cases[i].group, 6);
    }
}

static void checkpoint_ids_grow_even_when_the_clock_stands_or_goes_back(void **state)
{
    int64_t now = hd_clock_now_us();
    char before[HD_UUID_SIZE], after[HD_UUID_SIZE];

    (void)state;
    hd_uuid_checkpoint(16383, before);
    for (int i = 0; i < 1000; i++) {
        hd_clock_set_for_test(now - (i % 2) * INT64_C(3600000000));
        hd_uuid_checkpoint(-i, after);
        assert_true(strcmp(before, after) < 0);
        memcpy(before, after, sizeof(before));
    }
}

/* Sets the clock far ahead. Later ids of this process keep that time, so it must run last. */
static void checkpoint_ids_have_the_layout_of_version_6(void **state)
{
    char out[HD_UUID_SIZE];

    (void)state;
    /* 2100-01-01: 0x243dd56b5a6c000 ticks of 100 ns since 1582-10-15. */
    hd_clock_set_for_test(INT64_C(4102444800000000));
    hd_uuid_checkpoint(5, out);
    assert_memory_equal(out, "243dd56b-5a6c-6000-8005-", 24);
    hd_clock_set_for_test(INT64_C(4102444800000001));
    hd_uuid_checkpoint(5, out);
    assert_memory_equal(out, "243dd56b-5a6c-600a-8005-", 24);
}

#define PER_THREAD 2000

static void *make_ids(void *arg)
{
    char(*ids)[HD_UUID_SIZE] = arg;

    for (int i = 0; i < PER_THREAD; i++)
        hd_uuid_checkpoint(i, ids[i]);
    return NULL;
}

static int compare_ticks(const void *a, const void *b)
{
    return memcmp(a, b, 18);
}

static void no_tick_is_given_twice_over_all_threads(void **state)
{
    static char ids[4 * PER_THREAD][HD_UUID_SIZE];
    pthread_t threads[4];

    (void)state;
    for (size_t t = 0; t < 4; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, make_ids, ids[t * PER_THREAD]), 0);
    for (size_t t = 0; t < 4; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (size_t i = 0; i < 4 * PER_THREAD; i++)
        if (i % PER_THREAD > 0)
            assert_true(compare_ticks(ids[i - 1], ids[i]) < 0);
    qsort(ids, 4 * PER_THREAD, sizeof(ids[0]), compare_ticks);
    for (size_t i = 1; i < 4 * PER_THREAD; i++)
        assert_true(compare_ticks(ids[i - 1], ids[i]) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_bytes_are_the_same),
        cmocka_unit_test(text_that_is_not_a_uuid_is_rejected),
        cmocka_unit_test(random_ids_are_of_version_4_and_differ),
        cmocka_unit_test_teardown(version_7_begins_with_the_time, restore_clock),
        cmocka_unit_test_teardown(ids_sort_behind_another_with_any_clock, restore_clock),
        cmocka_unit_test_teardown(the_time_is_that_of_the_clock_where_it_can_be, restore_clock),
        cmocka_unit_test(version_5_is_that_of_the_standard),
        cmocka_unit_test(checkpoint_ids_show_their_step),
        cmocka_unit_test_teardown(checkpoint_ids_grow_even_when_the_clock_stands_or_goes_back,
                                  restore_clock),
        cmocka_unit_test(no_tick_is_given_twice_over_all_threads),
        cmocka_unit_test_teardown(checkpoint_ids_have_the_layout_of_version_6, restore_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
