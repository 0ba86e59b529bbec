#include "api/request/access.h"

#include <string.h>

#include "tests/unit/check.h"

static void every_route_declares_its_access(void **state)
{
    const struct hd_endpoint *route;
    size_t i;

    (void)state;
    for (i = 0; (route = hd_endpoint_at(i)); i++) {
        struct heddle_error fault = {0};

        if (hd_access_check(route, &fault))
            fail_msg("%s", fault.text);
    }
    assert_true(i > 40);
}

/* Every route below a thread's path requires a role in that thread. */
static void routes_below_a_thread_require_a_role(void **state)
{
    const struct hd_endpoint *route;

    (void)state;
    for (size_t i = 0; (route = hd_endpoint_at(i)); i++) {
        if (strncmp(route->pattern, "/threads/{thread_id}", 20) == 0 && !hd_access_is_thread(route))
            fail_msg("%s", route->pattern);
    }
}

/*
 * Viewers only read, mark what they have read, delete what they wrote before they became viewers,
 * and may remove themselves from the thread.
 */
static void viewers_change_nothing(void **state)
{
    static const char *const reading[] = {
        "/threads/{thread_id}/history",   "/threads/{thread_id}/state/checkpoint",
        "/threads/{thread_id}/copy",      "/threads/{thread_id}/participants/{participant_id}",
        "/threads/{thread_id}/room/read", "/threads/{thread_id}/room/branch"};
    const struct hd_endpoint *route;

    (void)state;
    for (size_t i = 0; (route = hd_endpoint_at(i)); i++) {
        bool reads =
            route->method == HD_METHOD_GET ||
            (route->method == HD_METHOD_DELETE &&
             strcmp(route->pattern, "/threads/{thread_id}/room/messages/{message_id}") == 0);

        for (size_t k = 0; k < HD_COUNT(reading); k++)
            reads = reads || strcmp(route->pattern, reading[k]) == 0;
        if (route->access == HD_ACCESS_VIEWER && !reads)
            fail_msg("%s", route->pattern);
    }
}

/*
 * What changes a thread's runs, states or heads is answered by its holder. The others change rows
 * that expect a revision, make new threads, or only read.
 */
static void changes_of_threads_are_answered_by_their_holder(void **state)
{
    static const char *const anywhere[] = {
        "/threads/{thread_id}/copy",          "/threads/{thread_id}/history",
        "/threads/{thread_id}/invitations",   "/threads/{thread_id}/participants",
        "/threads/{thread_id}/runs/crons",    "/threads/{thread_id}/state/checkpoint",
        "/threads/{thread_id}/invitations/{", "/threads/{thread_id}/participants/{",
        "/threads/{thread_id}/room",          "/threads/{thread_id}/room/read",
        "/threads/{thread_id}/room/branch"};
    const struct hd_endpoint *route;

    (void)state;
    for (size_t i = 0; (route = hd_endpoint_at(i)); i++) {
        bool is_change = hd_access_is_thread(route) && route->method != HD_METHOD_GET &&
                         route->method != HD_METHOD_PATCH;

        for (size_t k = 0; k < HD_COUNT(anywhere); k++) {
            size_t len = strlen(anywhere[k]);
            bool is_prefix = anywhere[k][len - 1] == '{';

            if (strncmp(route->pattern, anywhere[k], len + !is_prefix) == 0)
                is_change = false;
        }
        if (is_change && route->by != HD_BY_HOLDER && route->by != HD_BY_LAST_HOLDER)
            fail_msg("%s", route->pattern);
        if (route->by != HD_BY_ANY && !hd_access_is_thread(route))
            fail_msg("%s has no thread in its path", route->pattern);
    }
}

static void mistakes_are_refused(void **state)
{
    const struct hd_endpoint says_nothing = {.method = HD_METHOD_GET, .pattern = "/ok"};
    const struct hd_endpoint no_thread = {
        .method = HD_METHOD_GET, .pattern = "/runs/{run_id}", .access = HD_ACCESS_EDITOR};
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_access_check(&says_nothing, &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "GET /ok"));
    fault = (struct heddle_error){0};
    assert_err(hd_access_check(&no_thread, &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "/runs/{run_id}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_declares_its_access),
        cmocka_unit_test(routes_below_a_thread_require_a_role),
        cmocka_unit_test(viewers_change_nothing),
        cmocka_unit_test(changes_of_threads_are_answered_by_their_holder),
        cmocka_unit_test(mistakes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
