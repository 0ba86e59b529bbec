#include "auth/token_cache.h"

#include <stdio.h>

#include "tests/unit/check.h"

static struct hd_identity *identity_of(int n, const char *key_id)
{
    struct hd_identity *identity = hd_identity_new();
    char text[32];

    assert_non_null(identity);
    (void)snprintf(text, sizeof(text), "fingerprint %d", n);
    assert_err(hd_arena_copy(&identity->arena, hd_slice_cstr(text), &identity->fingerprint), 0);
    assert_err(hd_arena_copy(&identity->arena, hd_slice_cstr(key_id), &identity->key_id), 0);
    return identity;
}

static void put(struct hd_token_cache *cache, int n, const char *key_id, int64_t until)
{
    struct hd_identity *identity = identity_of(n, key_id);

    hd_token_cache_put(cache, identity, until);
    hd_identity_unref(identity);
}

static bool has(struct hd_token_cache *cache, int n, int64_t now)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "fingerprint %d", n);
    return hd_token_cache_get(cache, hd_slice_cstr(text), now) != NULL;
}

static void entries_end(void **state)
{
    struct hd_token_cache cache;

    (void)state;
    hd_token_cache_init(&cache, 4);
    put(&cache, 1, "", 100);
    assert_true(has(&cache, 1, 99));
    assert_false(has(&cache, 1, 100));
    assert_false(has(&cache, 1, 99));
    assert_int_equal(cache.map.count, 0);
    hd_token_cache_fini(&cache);
}

static void the_least_recently_used_entry_is_evicted(void **state)
{
    struct hd_token_cache cache;

    (void)state;
    hd_token_cache_init(&cache, 3);
    for (int i = 0; i < 3; i++)
        put(&cache, i, "", 100);
    assert_true(has(&cache, 0, 1));
    put(&cache, 3, "", 100);
    assert_true(has(&cache, 0, 1));
    assert_false(has(&cache, 1, 1));
    assert_true(has(&cache, 2, 1));
    assert_true(has(&cache, 3, 1));
    for (int i = 10; i < 1000; i++)
        put(&cache, i, "", 100);
    assert_int_equal(cache.map.count, 3);
    assert_true(has(&cache, 999, 1));
    assert_true(has(&cache, 997, 1));
    assert_false(has(&cache, 996, 1));
    hd_token_cache_fini(&cache);
}

static void the_same_one_is_replaced(void **state)
{
    struct hd_token_cache cache;

    (void)state;
    hd_token_cache_init(&cache, 3);
    put(&cache, 1, "", 100);
    put(&cache, 1, "", 200);
    assert_int_equal(cache.map.count, 1);
    assert_true(has(&cache, 1, 150));
    hd_token_cache_fini(&cache);
}

static void those_of_a_key_are_forgotten(void **state)
{
    struct hd_token_cache cache;

    (void)state;
    hd_token_cache_init(&cache, 10);
    put(&cache, 1, "a", 100);
    put(&cache, 2, "", 100);
    put(&cache, 3, "a", 100);
    put(&cache, 4, "b", 100);
    hd_token_cache_forget_key(&cache, HD_S(""));
    assert_int_equal(cache.map.count, 4);
    hd_token_cache_forget_key(&cache, HD_S("a"));
    assert_int_equal(cache.map.count, 2);
    assert_true(has(&cache, 2, 1));
    assert_true(has(&cache, 4, 1));
    hd_token_cache_fini(&cache);
}

static void without_memory_nothing_is_remembered(void **state)
{
    struct hd_identity *identity = identity_of(1, "");

    (void)state;
    for (long n = 1; n < 10; n++) {
        struct hd_token_cache cache;

        hd_token_cache_init(&cache, 10);
        (void)hd_alloc_fail_at(n, 1);
        hd_token_cache_put(&cache, identity, 100);
        (void)hd_alloc_fail_at(0, 0);
        assert_int_equal(has(&cache, 1, 1), cache.map.count == 1);
        hd_token_cache_fini(&cache);
    }
    hd_identity_unref(identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_end),
        cmocka_unit_test(the_least_recently_used_entry_is_evicted),
        cmocka_unit_test(the_same_one_is_replaced),
        cmocka_unit_test(those_of_a_key_are_forgotten),
        cmocka_unit_test(without_memory_nothing_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
