#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/check.h"

#define LIMIT ((size_t)1 << 30)

static void everything_given_out_is_aligned_and_apart(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 15, 16, 17, 500, 2047, 2048, 2049, 70000, 300000};
    struct hd_arena arena;
    char *given[HD_COUNT(sizes) * 20];
    size_t n = 0, sum = 0;

    (void)state;
    hd_arena_init(&arena, LIMIT);
    for (; n < HD_COUNT(given); n++) {
        size_t size = sizes[n % HD_COUNT(sizes)];

        given[n] = hd_arena_alloc(&arena, size);
        assert_non_null(given[n]);
        assert_int_equal((uintptr_t)given[n] % alignof(max_align_t), 0);
        memset(given[n], (int)n, size);
        sum += size;
    }
    assert_int_equal(arena.used, sum);
    for (n = 0; n < HD_COUNT(given); n++)
        for (size_t i = 0; i < sizes[n % HD_COUNT(sizes)]; i++)
            assert_int_equal((unsigned char)given[n][i], n % 256);
    hd_arena_fini(&arena);
    assert_null(arena.head);
}

static void size_zero_gives_a_pointer(void **state)
{
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 0);
    assert_non_null(hd_arena_alloc(&arena, 0));
    assert_non_null(hd_arena_calloc(&arena, 0, 8));
    assert_int_equal(arena.used, 0);
    hd_arena_fini(&arena);
}

static void the_limit_is_exact(void **state)
{
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 100);
    assert_non_null(hd_arena_alloc(&arena, 60));
    assert_null(hd_arena_alloc(&arena, 41));
    assert_null(hd_arena_alloc(&arena, SIZE_MAX));
    assert_non_null(hd_arena_alloc(&arena, 40));
    assert_null(hd_arena_alloc(&arena, 1));
    hd_arena_fini(&arena);
}

static void calloc_clears_and_refuses_overflow(void **state)
{
    static const char zeros[64];
    struct hd_arena arena;
    char *ptr;

    (void)state;
    hd_arena_init(&arena, LIMIT);
    ptr = hd_arena_alloc(&arena, 64);
    assert_non_null(ptr);
    memset(ptr, 'x', 64);
    hd_arena_reset(&arena);
    ptr = hd_arena_calloc(&arena, 8, 8);
    assert_non_null(ptr);
    assert_memory_equal(ptr, zeros, 64);
    assert_null(hd_arena_calloc(&arena, SIZE_MAX / 2, 4));
    hd_arena_fini(&arena);
}

static void copies_end_with_nul_and_outlive_their_source(void **state)
{
    char source[] = "a\0b";
    struct hd_slice copy = {0};
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, LIMIT);
    assert_err(hd_arena_copy(&arena, hd_slice(source, 3), &copy), 0);
    memset(source, 'z', sizeof(source));
    assert_slice(copy, HD_S("a\0b"));
    assert_int_equal(copy.ptr[3], 0);
    assert_err(hd_arena_copy(&arena, hd_slice(NULL, 0), &copy), 0);
    assert_string_equal(copy.ptr, "");
    hd_arena_fini(&arena);
}

static void a_copy_over_the_limit_leaves_the_answer_alone(void **state)
{
    struct hd_slice out = HD_S("untouched");
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 3);
    assert_err(hd_arena_copy(&arena, HD_S("abc"), &out), HD_ENOMEM);
    assert_err(hd_arena_copy(&arena, hd_slice("", SIZE_MAX), &out), HD_ENOMEM);
    assert_slice(out, HD_S("untouched"));
    hd_arena_fini(&arena);
}

static void printf_formats_any_length(void **state)
{
    struct hd_arena arena;
    char *text;

    (void)state;
    hd_arena_init(&arena, 10000);
    text = hd_arena_printf(&arena, "%s-%d", "step", 42);
    assert_non_null(text);
    assert_string_equal(text, "step-42");
    text = hd_arena_printf(&arena, "%05000d", 7);
    assert_non_null(text);
    assert_int_equal(strlen(text), 5000);
    assert_null(hd_arena_printf(&arena, "%05000d", 7));
    hd_arena_fini(&arena);
}

static void reset_reuses_its_block(void **state)
{
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, LIMIT);
    hd_arena_reset(&arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++)
            assert_non_null(hd_arena_alloc(&arena, 100));
        hd_arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    (void)hd_alloc_fail_at(1, 1);
    assert_non_null(hd_arena_alloc(&arena, 1000));
    assert_int_equal(hd_alloc_fail_at(0, 0), 0);
    hd_arena_fini(&arena);
}

static int fill(void *arg)
{
    struct hd_slice copy;
    struct hd_arena arena;
    int err = HD_ENOMEM;

    (void)arg;
    hd_arena_init(&arena, LIMIT);
    for (int i = 0; i < 100; i++)
        if (!hd_arena_alloc(&arena, 100))
            goto fini_arena;
    if (!hd_arena_calloc(&arena, 10, 100000) || !hd_arena_printf(&arena, "%5000d", 1))
        goto fini_arena;
    err = hd_arena_copy(&arena, HD_S("bytes"), &copy);

fini_arena:
    hd_arena_fini(&arena);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_in_range(check_every_allocation(fill, NULL), 3, 20);
}

static void an_arena_works_on_after_a_failure(void **state)
{
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, LIMIT);
    assert_non_null(hd_arena_alloc(&arena, 8));
    (void)hd_alloc_fail_at(1, 0);
    assert_null(hd_arena_alloc(&arena, 100000));
    (void)hd_alloc_fail_at(0, 0);
    assert_int_equal(arena.used, 8);
    assert_non_null(hd_arena_alloc(&arena, 100000));
    hd_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_given_out_is_aligned_and_apart),
        cmocka_unit_test(size_zero_gives_a_pointer),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(calloc_clears_and_refuses_overflow),
        cmocka_unit_test(copies_end_with_nul_and_outlive_their_source),
        cmocka_unit_test(a_copy_over_the_limit_leaves_the_answer_alone),
        cmocka_unit_test(printf_formats_any_length),
        cmocka_unit_test(reset_reuses_its_block),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(an_arena_works_on_after_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
