#include "http/router.h"

#include "tests/unit/check.h"

#define ROUTES(X)                                        \
    X(GET, "/")                                          \
    X(GET, "/ok")                                        \
    X(POST, "/threads")                                  \
    X(POST, "/threads/search")                           \
    X(GET, "/threads/{thread_id}")                       \
    X(PATCH, "/threads/{thread_id}")                     \
    X(DELETE, "/threads/{thread_id}")                    \
    X(GET, "/threads/{thread_id}/state")                 \
    X(GET, "/threads/{thread_id}/state/{checkpoint_id}") \
    X(POST, "/threads/{thread_id}/state/checkpoint")     \
    X(GET, "/threads/{thread_id}/runs/{run_id}/stream")  \
    X(POST, "/runs/crons")                               \
    X(DELETE, "/runs/crons/{cron_id}")                   \
    X(GET, "/runs/{a}/{b}")                              \
    X(GET, "/ui/{path*}")                                \
    X(PUT, "/store/items")

static const struct hd_router_entry entries[] = {
#define X(method, pattern) {HD_METHOD_##method, pattern},
    ROUTES(X)
#undef X
};

static int open_router(void **state)
{
    struct hd_router *router;

    if (hd_router_create(&router, entries, HD_COUNT(entries), NULL))
        return -1;
    *state = router;
    return 0;
}

static int close_router(void **state)
{
    hd_router_destroy(*state);
    return 0;
}

struct expectation {
    enum hd_method method;
    const char *path;
    const char *pattern; /* NULL: not found */
    const char *params[3];
};

static void check_found(const struct hd_router *router, const struct expectation *e)
{
    struct hd_match match;
    struct hd_arena arena;
    size_t count = 0;

    hd_arena_init(&arena, 1 << 16);
    assert_err(hd_router_match(router, e->method, hd_slice_cstr(e->path), &arena, &match), 0);
    if (match.kind != HD_MATCH_FOUND)
        fail_msg("%s was not found", e->path);
    assert_string_equal(entries[match.route].pattern, e->pattern);
    for (; count < HD_COUNT(e->params) && e->params[count]; count++)
        assert_slice(match.params[count], hd_slice_cstr(e->params[count]));
    assert_int_equal(match.param_count, count);
    hd_arena_fini(&arena);
}

static void paths_find_their_routes(void **state)
{
    static const struct expectation cases[] = {
        {HD_METHOD_GET, "/", "/", {0}},
        {HD_METHOD_GET, "///", "/", {0}},
        {HD_METHOD_GET, "/ok", "/ok", {0}},
        {HD_METHOD_GET, "/ok/", "/ok", {0}},
        {HD_METHOD_GET, "//ok", "/ok", {0}},
        {HD_METHOD_HEAD, "/ok", "/ok", {0}},
        {HD_METHOD_GET, "/%6fk", "/ok", {0}},
        {HD_METHOD_POST, "/threads", "/threads", {0}},
        {HD_METHOD_POST, "/threads/search", "/threads/search", {0}},
        {HD_METHOD_GET, "/threads/t1", "/threads/{thread_id}", {"t1"}},
        {HD_METHOD_PATCH, "/threads/t1/", "/threads/{thread_id}", {"t1"}},
        /* The static route has this path, but another method. */
        {HD_METHOD_GET, "/threads/search", "/threads/{thread_id}", {"search"}},
        {HD_METHOD_GET, "/threads/t/state", "/threads/{thread_id}/state", {"t"}},
        {HD_METHOD_GET,
         "/threads/t/state/c",
         "/threads/{thread_id}/state/{checkpoint_id}",
         {"t", "c"}},
        {HD_METHOD_GET,
         "/threads/t/state/checkpoint",
         "/threads/{thread_id}/state/{checkpoint_id}",
         {"t", "checkpoint"}},
        {HD_METHOD_POST,
         "/threads/t/state/checkpoint",
         "/threads/{thread_id}/state/checkpoint",
         {"t"}},
        {HD_METHOD_GET,
         "/threads/a%2Fb%7cc:%C3%A9/runs/+/stream",
         "/threads/{thread_id}/runs/{run_id}/stream",
         {"a/b|c:é", "+"}},
        {HD_METHOD_DELETE, "/runs/crons/x", "/runs/crons/{cron_id}", {"x"}},
        {HD_METHOD_GET, "/runs/crons/x", "/runs/{a}/{b}", {"crons", "x"}},
        {HD_METHOD_GET, "/ui/a", "/ui/{path*}", {"a"}},
        {HD_METHOD_GET, "/ui/a/b%20c//d.js", "/ui/{path*}", {"a/b c//d.js"}},
        {HD_METHOD_GET,
         "/ui/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20%21",
         "/ui/{path*}",
         {"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20!"}},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++)
        check_found(*state, &cases[i]);
}

static void check_kind(const struct hd_router *router, enum hd_method method, const char *path,
                       enum hd_match_kind kind, const char *allowed)
{
    struct hd_match match;
    struct hd_arena arena;
    char list[64];

    hd_arena_init(&arena, 1 << 16);
    assert_err(hd_router_match(router, method, hd_slice_cstr(path), &arena, &match), 0);
    if (match.kind != kind)
        fail_msg("%s is %d, expected %d", path, match.kind, kind);
    (void)hd_method_list(match.methods, list);
    assert_string_equal(list, allowed);
    hd_arena_fini(&arena);
}

static void unknown_paths_are_not_found(void **state)
{
    static const char *const paths[] = {
        "/x",
        "/o",
        "/okk",
        "/threads//state",
        "/threads/t/nothing",
        "/ui",
        "/ui//",
        "",
        "/store",
        "/threads/t/state/c/d",
        "/OK",
        "*",
        "/ok//",
        "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18",
    };

    for (size_t i = 0; i < HD_COUNT(paths); i++) {
        /* The empty path is that of the root, which has a route. */
        if (paths[i][0] != '\0')
            check_kind(*state, HD_METHOD_GET, paths[i], HD_MATCH_NO_PATH, "");
    }
}

static void other_methods_get_the_allowed_ones(void **state)
{
    check_kind(*state, HD_METHOD_POST, "/ok", HD_MATCH_NO_METHOD, "GET, HEAD, OPTIONS");
    check_kind(*state, HD_METHOD_OTHER, "/ok", HD_MATCH_NO_METHOD, "GET, HEAD, OPTIONS");
    check_kind(*state, HD_METHOD_HEAD, "/threads", HD_MATCH_NO_METHOD, "POST, OPTIONS");
    check_kind(*state, HD_METHOD_PUT, "/threads/search", HD_MATCH_NO_METHOD,
               "GET, HEAD, POST, PATCH, DELETE, OPTIONS");
    check_kind(*state, HD_METHOD_OPTIONS, "/threads/t", HD_MATCH_OPTIONS,
               "GET, HEAD, PATCH, DELETE, OPTIONS");
    check_kind(*state, HD_METHOD_OPTIONS, "/nothing", HD_MATCH_NO_PATH, "");
}

static void wrong_encoding_is_malformed(void **state)
{
    static const char *const paths[] = {"/threads/%",   "/threads/%4",      "/threads/%zz",
                                        "/threads/%00", "/threads/%ff",     "/threads/%c3",
                                        "/%",           "/ui/a/b/%ed%a0%80"};

    for (size_t i = 0; i < HD_COUNT(paths); i++) {
        struct hd_match match;
        struct hd_arena arena;

        hd_arena_init(&arena, 1 << 16);
        assert_err(hd_router_match(*state, HD_METHOD_GET, hd_slice_cstr(paths[i]), &arena, &match),
                   0);
        assert_int_equal(match.kind, HD_MATCH_MALFORMED);
        hd_arena_fini(&arena);
    }
}

static void parameters_have_names(void **state)
{
    assert_slice(hd_router_param_name(*state, 8, 0), HD_S("thread_id"));
    assert_slice(hd_router_param_name(*state, 8, 1), HD_S("checkpoint_id"));
    assert_slice(hd_router_param_name(*state, 8, 2), HD_S(""));
    assert_slice(hd_router_param_name(*state, 14, 0), HD_S("path"));
    assert_slice(hd_router_param_name(*state, 999, 0), HD_S(""));
}

static void wrong_tables_are_refused(void **state)
{
    static const struct hd_router_entry tables[][2] = {
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/a"}},
        {{HD_METHOD_GET, "/{a}"}, {HD_METHOD_GET, "/{b}"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_HEAD, "/a"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_OTHER, "/b"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "b"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, ""}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, NULL}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/b//c"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/b/"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/{}"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/{*}"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/{b"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/x{b}"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/{b*}/c"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}/{9}"}},
        {{HD_METHOD_GET, "/a"}, {HD_METHOD_GET, "/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7"}},
    };
    struct hd_router *router;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(tables); i++) {
        struct heddle_error fault = {0};

        assert_err(hd_router_create(&router, tables[i], 2, &fault), HD_EINVAL);
        assert_true(strlen(fault.text) > 0);
    }
}

static int create_and_match(void *arg)
{
    struct hd_router *router;
    struct hd_match match;
    struct hd_arena arena;
    int err;

    (void)arg;
    err = hd_router_create(&router, entries, HD_COUNT(entries), NULL);
    if (err)
        return err;
    hd_arena_init(&arena, 1 << 16);
    err = hd_router_match(router, HD_METHOD_GET, HD_S("/threads/%41/state/%42"), &arena, &match);
    hd_arena_fini(&arena);
    hd_router_destroy(router);
    return err;
}

static void memory_may_end(void **state)
{
    (void)state;
    assert_true(check_every_allocation(create_and_match, NULL) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_their_routes),
        cmocka_unit_test(unknown_paths_are_not_found),
        cmocka_unit_test(other_methods_get_the_allowed_ones),
        cmocka_unit_test(wrong_encoding_is_malformed),
        cmocka_unit_test(parameters_have_names),
        cmocka_unit_test(wrong_tables_are_refused),
        cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, open_router, close_router);
}
