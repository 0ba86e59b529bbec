#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

#include "tests/unit/check.h"

static void size_zero_gives_a_pointer(void **state)
{
    char *malloced = hd_malloc(0), *calloced = hd_calloc(0, 8), *resized;

    (void)state;
    assert_non_null(malloced);
    assert_non_null(calloced);
    resized = hd_realloc(malloced, 0);
    assert_non_null(resized);
    hd_free(resized);
    hd_free(calloced);
    hd_free(NULL);
}

static void calloc_clears_and_refuses_overflow(void **state)
{
    static const char zeros[64];
    char *ptr = hd_calloc(8, 8);
    volatile size_t many = SIZE_MAX / 2;

    (void)state;
    assert_non_null(ptr);
    assert_memory_equal(ptr, zeros, sizeof(zeros));
    hd_free(ptr);
    assert_null(hd_calloc(many, 4));
}

static void realloc_keeps_the_bytes(void **state)
{
    char *ptr = hd_malloc(4), *more;

    (void)state;
    assert_non_null(ptr);
    memcpy(ptr, "abc", 4);
    more = hd_realloc(ptr, 4000);
    assert_non_null(more);
    assert_string_equal(more, "abc");
    hd_free(more);
}

/* The pattern of failures of five allocations, one letter each. */
static void attempt_five(char out[6])
{
    for (int i = 0; i < 5; i++) {
        void *ptr = i % 2 ? hd_malloc(8) : hd_calloc(1, 8);

        out[i] = ptr ? '.' : 'x';
        hd_free(ptr);
    }
    out[5] = '\0';
}

static void the_nth_allocation_fails(void **state)
{
    static const struct {
        long n;
        int sticky;
        const char *expected;
    } cases[] = {
        {0, 0, "....."}, {0, 1, "....."}, {1, 0, "x...."}, {3, 0, "..x.."},
        {3, 1, "..xxx"}, {5, 1, "....x"}, {6, 1, "....."},
    };
    char got[6];

    (void)state;
    (void)hd_alloc_fail_at(0, 0);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        (void)hd_alloc_fail_at(cases[i].n, cases[i].sticky);
        attempt_five(got);
        assert_int_equal(hd_alloc_fail_at(0, 0), 5);
        assert_string_equal(got, cases[i].expected);
    }
}

static void a_failed_realloc_leaves_the_old_memory(void **state)
{
    char *ptr = hd_malloc(4);

    (void)state;
    assert_non_null(ptr);
    memcpy(ptr, "abc", 4);
    (void)hd_alloc_fail_at(1, 0);
    assert_null(hd_realloc(ptr, 4000));
    (void)hd_alloc_fail_at(0, 0);
    assert_string_equal(ptr, "abc");
    hd_free(ptr);
}

static void *fail_some(void *arg)
{
    long *failed = arg;

    for (int i = 0; i < 1000; i++) {
        void *ptr = hd_malloc(8);

        *failed += !ptr;
        hd_free(ptr);
    }
    return NULL;
}

static void exactly_one_fails_over_all_threads(void **state)
{
    pthread_t threads[4];
    long failed[4] = {0}, sum = 0;

    (void)state;
    (void)hd_alloc_fail_at(1500, 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_some, &failed[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        sum += failed[i];
    }
    assert_int_equal(hd_alloc_fail_at(0, 0), 4000);
    assert_int_equal(sum, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_zero_gives_a_pointer),
        cmocka_unit_test(calloc_clears_and_refuses_overflow),
        cmocka_unit_test(realloc_keeps_the_bytes),
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(a_failed_realloc_leaves_the_old_memory),
        cmocka_unit_test(exactly_one_fails_over_all_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
