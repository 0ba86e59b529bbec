#include "store/url.h"

#include "base/arena.h"
#include "tests/unit/check.h"

struct parsed {
    const char *text;
    const char *scheme;
    const char *rest;
    const char *full;
};

static void urls_come_apart(void **state)
{
    static const struct parsed cases[] = {
        {"memory:", "memory", "", "memory:"},
        {"MEMORY:?timeout=3", "memory", "", "memory:"},
        {"sqlite:a.db", "sqlite", "a.db", "sqlite:a.db"},
        {"sqlite:/a/b%20c.db", "sqlite", "/a/b%20c.db", "sqlite:/a/b%20c.db"},
        {"sqlite:///a/b%20c%3f.db?durability=full", "sqlite", "/a/b c?.db", "sqlite:/a/b c?.db"},
        {"sqlite:////a/b", "sqlite", "//a/b", "sqlite://a/b"},
        {"sqlite::memory:", "sqlite", ":memory:", "sqlite::memory:"},
        {"sqlite:a.db?", "sqlite", "a.db", "sqlite:a.db"},
        {"postgresql://u:p%40@h/d", "postgresql", "//u:p%40@h/d", "postgresql://u:p%40@h/d"},
        {"postgres://h/d?pool=2&sslmode=off", "postgres", "//h/d?sslmode=off",
         "postgres://h/d?sslmode=off"},
        {"postgres://h/d?host=/s&pool=2&&schema=x&user=me&timeout=1", "postgres",
         "//h/d?host=/s&user=me", "postgres://h/d?host=/s&user=me"},
        {"postgres:///?schema=x", "postgres", "///", "postgres:///"},
        {"redis+tls://h", "redis+tls", "//h", "redis+tls://h"},
    };
    struct hd_arena arena;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_url url;

        hd_arena_init(&arena, 4096);
        assert_err(hd_url_parse(&url, cases[i].text, &arena, &fault), 0);
        assert_string_equal(url.scheme, cases[i].scheme);
        assert_string_equal(url.rest, cases[i].rest);
        assert_string_equal(url.full, cases[i].full);
        hd_arena_fini(&arena);
    }
}

static void parameters_have_defaults(void **state)
{
    struct hd_arena arena;
    struct hd_url url;

    (void)state;
    hd_arena_init(&arena, 4096);
    assert_err(hd_url_parse(&url, "memory:", &arena, NULL), 0);
    assert_false(url.is_relaxed);
    assert_int_equal(url.max_value, 256 << 20);
    assert_int_equal(url.pool, 4);
    assert_string_equal(url.schema, "heddle");
    assert_int_equal(url.timeout_ms, 10000);
    hd_arena_fini(&arena);
}

static void parameters_are_taken(void **state)
{
    struct hd_arena arena;
    struct hd_url url;

    (void)state;
    hd_arena_init(&arena, 4096);
    assert_err(hd_url_parse(&url,
                            "postgres://h?durability=relaxed&max_value=1000000000&pool=64"
                            "&schema=_a9&timeout=600",
                            &arena, NULL),
               0);
    assert_true(url.is_relaxed);
    assert_int_equal(url.max_value, 1000000000);
    assert_int_equal(url.pool, 64);
    assert_string_equal(url.schema, "_a9");
    assert_int_equal(url.timeout_ms, 600000);
    assert_string_equal(url.full, "postgres://h");
    hd_arena_fini(&arena);
}

static void bad_urls_are_refused_by_name(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "not a store URL"},
        {"heddle.db", "not a store URL"},
        {"/tmp/a:b", "not a store URL"},
        {":memory:", "not a store URL"},
        {"sqlite:", "needs a path"},
        {"sqlite:?timeout=1", "needs a path"},
        {"sqlite://a.db", "third slash"},
        {"sqlite:///a%", "hexadecimal"},
        {"sqlite:///a%4", "hexadecimal"},
        {"sqlite:///a%zz", "hexadecimal"},
        {"sqlite:///a%00b", "hexadecimal"},
        {"memory:?durability=never", "durability takes full or relaxed"},
        {"memory:?durability", "durability takes full or relaxed"},
        {"memory:?max_value=0", "max_value takes"},
        {"memory:?max_value=1000000001", "max_value takes"},
        {"memory:?max_value=99999999999999999999999", "max_value takes"},
        {"memory:?max_value=-1", "max_value takes"},
        {"memory:?pool=0", "pool takes"},
        {"memory:?pool=65", "pool takes"},
        {"postgres://h?pool=", "pool takes"},
        {"memory:?timeout=601", "timeout takes"},
        {"memory:?timeout=1.5", "timeout takes"},
        {"memory:?schema=Heddle", "schema takes"},
        {"memory:?schema=9a", "schema takes"},
        {"memory:?schema=a\"b", "schema takes"},
        {"memory:?schema=a23456789012345678901234567890123456789012", "schema takes"},
        {"sqlite:a.db?colour=red", "no parameter \"colour\""},
        {"memory:?colour", "no parameter \"colour\""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_arena arena;
        struct hd_url url = {.scheme = "untouched"};

        hd_arena_init(&arena, 4096);
        assert_err(hd_url_parse(&url, cases[i].text, &arena, &fault), HD_EINVAL);
        if (!strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        assert_string_equal(url.scheme, "untouched");
        hd_arena_fini(&arena);
    }
}

static void urls_are_shown_without_a_password(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"memory:", "memory:"},
        {"sqlite:/a@b:c/d?pool=1", "sqlite:/a@b:c/d?pool=1"},
        {"postgresql://h:5432/db?pool=2", "postgresql://h:5432/db?pool=2"},
        {"postgresql://u@h:5432/db", "postgresql://u@h:5432/db"},
        {"postgresql://u:p@h:5432/db?pool=2", "postgresql://u:***@h:5432/db?pool=2"},
        {"postgresql://u:p/q@h/db", "postgresql://u:***@h/db"},
        {"postgresql://u:p?q@h/db", "postgresql://u:***@h/db"},
        {"postgresql://u:p#q:r@s@h/db", "postgresql://u:***@h/db"},
        {"postgresql://h/db?user=u&password=p", "postgresql://h/db"},
        {"postgresql://u:p?q@h/db?password=p", "postgresql://u:***@h/db"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char shown[64];

        hd_url_show(cases[i].text, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].shown);
    }
}

static void faults_never_show_a_password(void **state)
{
    static const char *const texts[] = {"postgres//me:secret@h", "postgresql://me:secret@h?pool=0"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct heddle_error fault = {0};
        struct hd_arena arena;
        struct hd_url url;

        hd_arena_init(&arena, 4096);
        assert_err(hd_url_parse(&url, texts[i], &arena, &fault), HD_EINVAL);
        assert_null(strstr(fault.text, "secret"));
        hd_arena_fini(&arena);
    }
}

static int parse_one(void *arg)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, 4096);
    err = hd_url_parse(&url, arg, &arena, NULL);
    hd_arena_fini(&arena);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    char url[] = "postgres://h?schema=x&a=b";

    (void)state;
    assert_true(check_every_allocation(parse_one, url) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_come_apart),
        cmocka_unit_test(parameters_have_defaults),
        cmocka_unit_test(parameters_are_taken),
        cmocka_unit_test(bad_urls_are_refused_by_name),
        cmocka_unit_test(urls_are_shown_without_a_password),
        cmocka_unit_test(faults_never_show_a_password),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
