#include "base/map.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

#define MANY 5000

static int values[MANY];

static struct hd_slice key_of(int n, char out[32])
{
    int len = snprintf(out, 32, "key-%d", n);

    return hd_slice(out, (size_t)len);
}

static void an_empty_map_has_nothing(void **state)
{
    struct hd_slice key;
    struct hd_map map;
    size_t pos = 0;
    void *value;

    (void)state;
    hd_map_init(&map, 10);
    assert_null(hd_map_get(&map, HD_S("a")));
    assert_null(hd_map_remove(&map, HD_S("a")));
    assert_false(hd_map_next(&map, &pos, &key, &value));
    hd_map_fini(&map);
}

static void keys_are_bytes_and_are_copied(void **state)
{
    static const struct hd_slice keys[] = {
        {"", 0}, {"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"\0", 1}, {"ab", 2}, {"\xff\xfe", 2},
    };
    struct hd_map map;

    (void)state;
    hd_map_init(&map, 10);
    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        char copy[8];

        memcpy(copy, keys[i].ptr, keys[i].len);
        assert_err(hd_map_put(&map, hd_slice(copy, keys[i].len), &values[i]), 0);
        memset(copy, 'x', sizeof(copy));
    }
    assert_int_equal(map.count, HD_COUNT(keys));
    for (size_t i = 0; i < HD_COUNT(keys); i++)
        assert_ptr_equal(hd_map_get(&map, keys[i]), &values[i]);
    assert_ptr_equal(hd_map_get(&map, hd_slice(NULL, 0)), &values[0]);
    assert_null(hd_map_get(&map, HD_S("b")));
    hd_map_fini(&map);
}

static void put_replaces_the_old_value(void **state)
{
    struct hd_map map;

    (void)state;
    hd_map_init(&map, 1);
    assert_err(hd_map_put(&map, HD_S("a"), &values[1]), 0);
    assert_err(hd_map_put(&map, HD_S("a"), &values[2]), 0);
    assert_ptr_equal(hd_map_get(&map, HD_S("a")), &values[2]);
    assert_int_equal(map.count, 1);
    hd_map_fini(&map);
}

static void the_limit_counts_entries(void **state)
{
    struct hd_map map;

    (void)state;
    hd_map_init(&map, 2);
    assert_err(hd_map_put(&map, HD_S("a"), &values[1]), 0);
    assert_err(hd_map_put(&map, HD_S("b"), &values[2]), 0);
    assert_err(hd_map_put(&map, HD_S("c"), &values[3]), HD_ELIMIT);
    assert_null(hd_map_get(&map, HD_S("c")));
    assert_ptr_equal(hd_map_remove(&map, HD_S("a")), &values[1]);
    assert_err(hd_map_put(&map, HD_S("c"), &values[3]), 0);
    assert_ptr_equal(hd_map_get(&map, HD_S("c")), &values[3]);
    hd_map_fini(&map);
}

/* Against a plain array of the expected entries, through growth and removal. */
static void a_map_behaves_like_an_array(void **state)
{
    static int *expected[MANY];
    struct hd_map map;
    unsigned random = 1;
    size_t count = 0;
    char text[32];

    (void)state;
    hd_map_init(&map, MANY);
    for (int step = 0; step < 40000; step++) {
        int n = (int)((random = random * 1664525 + 1013904223) >> 8) % MANY;

        if (random % 3 == 0) {
            assert_ptr_equal(hd_map_remove(&map, key_of(n, text)), expected[n]);
            count -= expected[n] != NULL;
            expected[n] = NULL;
        } else {
            assert_err(hd_map_put(&map, key_of(n, text), &values[step % MANY]), 0);
            count += expected[n] == NULL;
            expected[n] = &values[step % MANY];
        }
        assert_int_equal(map.count, count);
    }
    for (int n = 0; n < MANY; n++)
        assert_ptr_equal(hd_map_get(&map, key_of(n, text)), expected[n]);
    hd_map_fini(&map);
    assert_null(map.entries);
}

static void removed_places_are_used_again(void **state)
{
    struct hd_map map;
    char text[32];

    (void)state;
    hd_map_init(&map, 10);
    for (int n = 0; n < 100000; n++) {
        assert_err(hd_map_put(&map, key_of(n, text), &values[0]), 0);
        assert_ptr_equal(hd_map_remove(&map, key_of(n, text)), &values[0]);
    }
    assert_int_equal(map.count, 0);
    assert_true(map.cap <= 32);
    hd_map_fini(&map);
}

static void iteration_meets_every_entry_once(void **state)
{
    int met[100] = {0};
    struct hd_slice key;
    struct hd_map map;
    size_t pos = 0, count = 0;
    void *value;
    char text[32];

    (void)state;
    hd_map_init(&map, 1000);
    for (int n = 0; n < 100; n++)
        assert_err(hd_map_put(&map, key_of(n, text), &values[n]), 0);
    for (int n = 0; n < 100; n += 3)
        assert_non_null(hd_map_remove(&map, key_of(n, text)));
    for (; hd_map_next(&map, &pos, &key, &value); count++) {
        int n = (int)((int *)value - values);

        met[n]++;
        assert_slice(key, key_of(n, text));
    }
    assert_int_equal(count, map.count);
    for (int n = 0; n < 100; n++)
        assert_int_equal(met[n], n % 3 != 0);
    hd_map_fini(&map);
}

static int fill(void *arg)
{
    struct hd_map map;
    char text[32];
    int err = 0;

    (void)arg;
    hd_map_init(&map, 100);
    for (int n = 0; !err && n < 40; n++) {
        err = hd_map_put(&map, key_of(n, text), &values[n]);
        /* A failed put changed nothing and the others are still there. */
        assert_int_equal(map.count, err ? n : n + 1);
        assert_ptr_equal(hd_map_get(&map, key_of(n, text)), err ? NULL : &values[n]);
        assert_ptr_equal(hd_map_get(&map, key_of(n / 2, text)),
                         err && n < 1 ? NULL : &values[n / 2]);
    }
    hd_map_fini(&map);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_in_range(check_every_allocation(fill, NULL), 41, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(keys_are_bytes_and_are_copied),
        cmocka_unit_test(put_replaces_the_old_value),
        cmocka_unit_test(the_limit_counts_entries),
        cmocka_unit_test(a_map_behaves_like_an_array),
        cmocka_unit_test(removed_places_are_used_again),
        cmocka_unit_test(iteration_meets_every_entry_once),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
