#include "base/vec.h"

#include <stdint.h>

#include "tests/unit/check.h"

struct pair {
    int a, b;
};

typedef HD_VEC(struct pair) pairs;

static void elements_stay_in_the_order_of_their_pushes(void **state)
{
    pairs vec = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_err(hd_vec_push(&vec, (struct pair){i, -i}), 0);
    assert_int_equal(vec.count, 1000);
    assert_true(vec.cap >= 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(vec.items[i].a, i);
        assert_int_equal(vec.items[i].b, -i);
    }
    hd_vec_fini(&vec);
    assert_null(vec.items);
    assert_int_equal(vec.count, 0);
    assert_int_equal(vec.cap, 0);
}

static void the_capacity_doubles(void **state)
{
    HD_VEC(char) vec = {0};
    long allocations;

    (void)state;
    (void)hd_alloc_fail_at(0, 0);
    for (int i = 0; i < 4096; i++)
        assert_err(hd_vec_push(&vec, 'x'), 0);
    allocations = hd_alloc_fail_at(0, 0);
    assert_in_range(allocations, 1, 12);
    hd_vec_fini(&vec);
}

static void the_limit_counts_elements(void **state)
{
    pairs vec = {.limit = 3};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_err(hd_vec_push(&vec, (struct pair){i, i}), 0);
    assert_int_equal(vec.cap, 3);
    assert_err(hd_vec_push(&vec, (struct pair){3, 3}), HD_ELIMIT);
    assert_err(hd_vec_reserve(&vec, 1), HD_ELIMIT);
    assert_int_equal(vec.count, 3);
    assert_int_equal(vec.items[2].a, 2);
    hd_vec_fini(&vec);
    assert_err(hd_vec_reserve(&vec, 4), HD_ELIMIT);
    assert_err(hd_vec_reserve(&vec, 3), 0);
    hd_vec_fini(&vec);
}

static void space_is_reserved_at_once(void **state)
{
    HD_VEC(int) vec = {0};
    const int *items;

    (void)state;
    assert_err(hd_vec_push(&vec, 7), 0);
    assert_err(hd_vec_reserve(&vec, 100), 0);
    items = vec.items;
    for (int i = 0; i < 100; i++)
        vec.items[vec.count++] = i;
    assert_ptr_equal(vec.items, items);
    assert_int_equal(vec.items[0], 7);
    assert_int_equal(vec.items[100], 99);
    hd_vec_fini(&vec);
}

static void sizes_that_overflow_are_refused(void **state)
{
    HD_VEC(uint64_t) vec = {0};

    (void)state;
    assert_err(hd_vec_push(&vec, 1), 0);
    assert_err(hd_vec_reserve(&vec, SIZE_MAX), HD_ENOMEM);
    assert_err(hd_vec_reserve(&vec, SIZE_MAX / sizeof(uint64_t)), HD_ENOMEM);
    assert_int_equal(vec.count, 1);
    assert_int_equal(vec.items[0], 1);
    hd_vec_fini(&vec);
}

static int push_some(void *arg)
{
    pairs vec = {.limit = 100};
    int err = 0;

    (void)arg;
    for (int i = 0; !err && i < 50; i++) {
        size_t before = vec.count;

        err = hd_vec_push(&vec, (struct pair){i, i});
        assert_int_equal(vec.count, before + (err ? 0 : 1));
    }
    for (size_t i = 0; i < vec.count; i++)
        assert_int_equal(vec.items[i].a, i);
    hd_vec_fini(&vec);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_in_range(check_every_allocation(push_some, NULL), 2, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stay_in_the_order_of_their_pushes),
        cmocka_unit_test(the_capacity_doubles),
        cmocka_unit_test(the_limit_counts_elements),
        cmocka_unit_test(space_is_reserved_at_once),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
