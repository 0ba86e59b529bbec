#include "auth/keyset.h"

#include <stdio.h>

#include "tests/unit/auth_vectors.h"
#include "tests/unit/check.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define START (INT64_C(1700000000) * SECOND)

static const char *reason;

static int fetched(struct hd_keyset *keys, const char *body, int64_t max_age, int64_t now)
{
    return hd_keyset_fetched(keys, hd_slice_cstr(body), max_age, now, &reason);
}

/* Requests the key set and completes its fetch. */
static void fill(struct hd_keyset *keys, int64_t max_age, int64_t now)
{
    bool fetch;

    *keys = (struct hd_keyset){0};
    assert_int_equal(hd_keyset_ask(keys, now, &fetch), HD_KEYS_WAIT);
    assert_true(fetch);
    assert_err(fetched(keys, vector_jwks, max_age, now), 0);
}

static void expect(struct hd_keyset *keys, int64_t now, enum hd_keys_answer answer, bool fetches)
{
    bool fetch;

    assert_int_equal(hd_keyset_ask(keys, now, &fetch), answer);
    assert_int_equal(fetch, fetches);
}

static void expect_again(struct hd_keyset *keys, int64_t now, enum hd_keys_answer answer,
                         bool fetches)
{
    bool fetch;

    assert_int_equal(hd_keyset_ask_again(keys, now, &fetch), answer);
    assert_int_equal(fetch, fetches);
}

static void concurrent_requests_share_one_fetch(void **state)
{
    struct hd_keyset keys = {0};

    (void)state;
    expect(&keys, START, HD_KEYS_WAIT, true);
    expect(&keys, START, HD_KEYS_WAIT, false);
    expect(&keys, START + SECOND, HD_KEYS_WAIT, false);
    assert_err(fetched(&keys, vector_jwks, 600, START + SECOND), 0);
    expect(&keys, START + SECOND, HD_KEYS_READY, false);
    hd_keyset_fini(&keys);
}

static void its_age_has_bounds(void **state)
{
    static const struct {
        int64_t given, minutes;
    } cases[] = {{-1, 5}, {0, 5}, {10, 5}, {600, 10}, {3600, 60}, {86400, 60}, {INT64_MAX, 60}};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        int64_t end = START + cases[i].minutes * MINUTE;
        struct hd_keyset keys;

        fill(&keys, cases[i].given, START);
        expect(&keys, end - 1, HD_KEYS_READY, false);
        expect(&keys, end, HD_KEYS_READY, true);
        hd_keyset_fini(&keys);
    }
}

static void it_is_renewed_in_the_background(void **state)
{
    int64_t stale = START + 5 * MINUTE;
    struct hd_keyset keys;

    (void)state;
    fill(&keys, 0, START);
    expect(&keys, stale, HD_KEYS_READY, true);
    expect(&keys, stale + SECOND, HD_KEYS_READY, false);
    assert_err(fetched(&keys, vector_jwks, 0, stale + SECOND), 0);
    expect(&keys, stale + 2 * SECOND, HD_KEYS_READY, false);
    hd_keyset_fini(&keys);
}

/* An unused key set becomes too old: a key may have been revoked meanwhile. */
static void an_expired_set_is_fetched_before_use(void **state)
{
    int64_t later = START + 3600 * SECOND;
    struct hd_keyset keys;

    (void)state;
    fill(&keys, 0, START);
    expect(&keys, later, HD_KEYS_WAIT, true);
    assert_err(fetched(&keys, "", -1, later), HD_EINVAL);
    expect(&keys, later, HD_KEYS_READY, false);
    hd_keyset_fini(&keys);
}

static void the_last_good_set_is_kept_for_a_day(void **state)
{
    struct hd_keyset keys;
    int64_t now = START + 5 * MINUTE, day = START + HD_KEYS_KEPT_US;

    (void)state;
    fill(&keys, 0, START);
    expect(&keys, now, HD_KEYS_READY, true);
    for (; now < day; now += 3600 * SECOND) {
        assert_err(fetched(&keys, "", -1, now), HD_EINVAL);
        expect(&keys, now + HD_KEYS_RETRY_US - 1, HD_KEYS_READY, false);
        expect(&keys, now + HD_KEYS_RETRY_US, HD_KEYS_READY, true);
    }
    assert_err(fetched(&keys, "", -1, day), HD_EINVAL);
    expect(&keys, day + 1, HD_KEYS_MISSING, false);
    assert_null(keys.set);
    expect(&keys, day + HD_KEYS_RETRY_US, HD_KEYS_WAIT, true);
    assert_err(fetched(&keys, vector_jwks, 0, day + HD_KEYS_RETRY_US), 0);
    expect(&keys, day + HD_KEYS_RETRY_US, HD_KEYS_READY, false);
    hd_keyset_fini(&keys);
}

static void garbage_replaces_nothing(void **state)
{
    static const char *const garbage[] = {
        "<html>",
        "{}",
        "[]",
        "null",
        "{\"keys\": {}}",
        "{\"keys\": []}",
        "{\"keys\": [1]}",
        "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\"}]}",
        "{\"keys\": [{}]}",
        "{\"keys\": [{\"kty\": \"RSA\", \"n\": \"AQAB\", \"e\": \"AQAB\"}]}"};
    struct hd_keyset keys;
    size_t count;

    (void)state;
    fill(&keys, 0, START);
    count = keys.set->count;
    for (size_t i = 0; i < HD_COUNT(garbage); i++) {
        const struct hd_jwks *before = keys.set;

        assert_err(fetched(&keys, garbage[i], 3600, START), HD_EINVAL);
        assert_ptr_equal(keys.set, before);
        assert_int_equal(keys.set->count, count);
    }
    hd_keyset_fini(&keys);
}

static void without_a_set_failures_are_not_repeated_at_once(void **state)
{
    struct hd_keyset keys = {0};

    (void)state;
    expect(&keys, START, HD_KEYS_WAIT, true);
    assert_err(fetched(&keys, "", -1, START), HD_EINVAL);
    for (int i = 0; i < 100; i++)
        expect(&keys, START + i, HD_KEYS_MISSING, false);
    expect(&keys, START + HD_KEYS_RETRY_US, HD_KEYS_WAIT, true);
    hd_keyset_fini(&keys);
}

/* Requests with unknown key ids cause one fetch per minute. */
static void unknown_keys_fetch_once_in_a_minute(void **state)
{
    struct hd_keyset keys;
    int fetches = 0;

    (void)state;
    fill(&keys, 3600, START);
    for (int64_t now = START; now < START + 10 * MINUTE; now += SECOND / 10) {
        bool fetch;
        enum hd_keys_answer answer = hd_keyset_ask_again(&keys, now, &fetch);

        assert_int_equal(answer, fetch ? HD_KEYS_WAIT : HD_KEYS_READY);
        if (fetch)
            assert_err(fetched(&keys, vector_jwks, 3600, now), 0);
        fetches += fetch;
    }
    assert_int_equal(fetches, 10);
    hd_keyset_fini(&keys);
}

static void unknown_keys_wait_for_the_running_fetch(void **state)
{
    struct hd_keyset keys;

    (void)state;
    fill(&keys, 3600, START);
    expect_again(&keys, START, HD_KEYS_WAIT, true);
    expect_again(&keys, START, HD_KEYS_WAIT, false);
    assert_err(fetched(&keys, "", -1, START), HD_EINVAL);
    /* The fetch failed, so it is unknown whether the key exists. */
    expect_again(&keys, START + SECOND, HD_KEYS_MISSING, false);
    /* Known keys remain valid. */
    expect(&keys, START + SECOND, HD_KEYS_READY, false);
    hd_keyset_fini(&keys);
}

static void a_clock_that_goes_back_does_no_harm(void **state)
{
    struct hd_keyset keys;

    (void)state;
    fill(&keys, 3600, START);
    expect_again(&keys, START, HD_KEYS_WAIT, true);
    assert_err(fetched(&keys, vector_jwks, 3600, START), 0);
    expect_again(&keys, START - 3600 * SECOND, HD_KEYS_WAIT, true);
    assert_err(fetched(&keys, "", -1, START - 3600 * SECOND), HD_EINVAL);
    expect(&keys, START - 2 * 3600 * SECOND, HD_KEYS_MISSING, false);
    hd_keyset_fini(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_requests_share_one_fetch),
        cmocka_unit_test(its_age_has_bounds),
        cmocka_unit_test(it_is_renewed_in_the_background),
        cmocka_unit_test(an_expired_set_is_fetched_before_use),
        cmocka_unit_test(the_last_good_set_is_kept_for_a_day),
        cmocka_unit_test(garbage_replaces_nothing),
        cmocka_unit_test(without_a_set_failures_are_not_repeated_at_once),
        cmocka_unit_test(unknown_keys_fetch_once_in_a_minute),
        cmocka_unit_test(unknown_keys_wait_for_the_running_fetch),
        cmocka_unit_test(a_clock_that_goes_back_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
