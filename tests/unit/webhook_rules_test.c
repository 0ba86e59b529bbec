#include "webhook/webhook_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/unit/check.h"

/* Calculated with Python's hmac. */
#define SIGNED "t=1767225600,v1=52500d82ebb25a98dad06e7b1caec3225a3b2527b1a47977ff5b7b22204ee99e"
#define SIGNED_EMPTY "t=0,v1=0d1dbfdae9a6e257f2fa78f48d7310b9ac3ba418a71f5ee3afe129f3c6c15578"

static const struct hd_webhook_policy open_policy = {.allow_loopback = true};

static void check_urls(const struct hd_webhook_policy *policy, const char *const *urls,
                       size_t count, const char *says)
{
    for (size_t i = 0; i < count; i++) {
        struct heddle_error fault = {0};
        int err = hd_webhook_check(policy, hd_slice_cstr(urls[i]), &fault);

        if (says ? err != HD_EINVAL || !strstr(fault.text, says) : err != 0)
            fail_msg("%s: %s", urls[i], fault.text);
    }
}

static void urls_and_paths_are_allowed(void **state)
{
    static const char *const urls[] = {
        "http://example.com",
        "https://example.com/x?y=z#f",
        "HTTPS://Example.com:8443/",
        "http://127.0.0.1:9/hook",
        "http://[::1]:9/",
        "/hook",
        "/",
        "http://localhost/",
        "https://xn--bcher-kva.example/",
    };

    (void)state;
    check_urls(&open_policy, urls, HD_COUNT(urls), NULL);
}

static void invalid_urls_are_refused(void **state)
{
    static const char *const none[] = {
        "example.com:99999",
        "http://",
        "https://[::1",
        "//example.com/x",
        "x y",
        "http://example.com:port/",
        "example",
        "http://exa mple.com",
        "http://example.com\\@x",
        "",
        "http://b\u00fccher.example/",
        "http://e.com/\n",
    };
    static const char *const schemes[] = {"ftp://example.com/", "file:///etc/passwd",
                                          "gopher://example.com/"};
    static const char *const users[] = {"http://me@example.com/", "https://me:pw@example.com/",
                                        "http://:pw@example.com/"};
    static const char *const keys[] = {"http://example.com/?token=q", "https://e.com/x?a=b&key=q"};

    (void)state;
    check_urls(&open_policy, none, HD_COUNT(none), "webhook: not a");
    check_urls(&open_policy, schemes, HD_COUNT(schemes), "webhook: ");
    check_urls(&open_policy, users, HD_COUNT(users), "a URL with a user name is not allowed");
    check_urls(&open_policy, keys, HD_COUNT(keys), "webhook: keys in a URL are not stored");
}

static void long_urls_are_refused(void **state)
{
    static char url[HD_WEBHOOK_MAX_URL + 1];
    struct heddle_error fault = {0};

    (void)state;
    memset(url, 'a', sizeof(url));
    memcpy(url, "http://e.com/", 13);
    assert_err(hd_webhook_check(&open_policy, hd_slice(url, HD_WEBHOOK_MAX_URL), &fault), 0);
    assert_err(hd_webhook_check(&open_policy, hd_slice(url, sizeof(url)), &fault), HD_EINVAL);
    assert_string_equal(fault.text, "webhook: longer than 65536 bytes");
}

static void https_can_be_required(void **state)
{
    static const char *const no[] = {"http://example.com/", "HTTP://example.com/"};
    static const char *const yes[] = {"https://example.com/", "/hook"};
    struct hd_webhook_policy policy = {.require_https = true, .allow_loopback = true};

    (void)state;
    check_urls(&policy, no, HD_COUNT(no), "webhook: https only");
    check_urls(&policy, yes, HD_COUNT(yes), NULL);
}

static void this_machine_can_be_forbidden(void **state)
{
    static const char *const no[] = {
        "http://127.0.0.1/",
        "http://127.9.9.9:80/",
        "http://localhost/",
        "http://LOCALHOST:5/",
        "http://localhost./",
        "http://x.localhost/",
        "http://0.0.0.0/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::127.0.0.1]/",
    };
    static const char *const yes[] = {"http://example.com/", "http://128.0.0.1/",
                                      "http://[2001:db8::1]/", "http://localhost.example.com/",
                                      "http://notlocalhost/"};
    static const char *const paths[] = {"/hook"};
    struct hd_webhook_policy policy = {0};

    (void)state;
    check_urls(&policy, no, HD_COUNT(no), "is this machine");
    check_urls(&policy, yes, HD_COUNT(yes), NULL);
    check_urls(&policy, paths, HD_COUNT(paths), "a path of this server is not allowed");
}

static void domains_can_be_listed(void **state)
{
    static const struct hd_slice domains[] = {HD_S_INIT("example.com"), HD_S_INIT("*.example.org"),
                                              HD_S_INIT("10.0.0.1")};
    static const char *const yes[] = {"http://example.com/", "https://EXAMPLE.com./x",
                                      "http://a.example.org/", "http://a.b.example.org/",
                                      "http://10.0.0.1/"};
    static const char *const no[] = {"http://a.example.com/",  "http://example.org/",
                                     "http://notexample.com/", "http://example.com.evil.net/",
                                     "http://xexample.org/",   "http://example.net/#@example.com",
                                     "http://10.0.0.2/",       "http://localhost/"};
    struct hd_webhook_policy policy = {
        .allow_loopback = true, .domains = domains, .domain_count = HD_COUNT(domains)};

    (void)state;
    check_urls(&policy, yes, HD_COUNT(yes), NULL);
    check_urls(&policy, no, HD_COUNT(no), "is not allowed");
}

static void ports_can_be_listed(void **state)
{
    static const int ports[] = {443, 8080};
    static const char *const yes[] = {"https://example.com/", "http://example.com:8080/",
                                      "https://example.com:443/"};
    static const char *const no[] = {"http://example.com/", "https://example.com:8443/"};
    struct hd_webhook_policy policy = {
        .allow_loopback = true, .ports = ports, .port_count = HD_COUNT(ports)};

    (void)state;
    check_urls(&policy, yes, HD_COUNT(yes), NULL);
    check_urls(&policy, no, HD_COUNT(no), "is not allowed");
}

static bool allows_four(const struct hd_webhook_policy *policy, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return hd_webhook_allows_address(policy, (struct sockaddr *)&address);
}

static bool allows_six(const struct hd_webhook_policy *policy, const char *text)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};

    assert_int_equal(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    return hd_webhook_allows_address(policy, (struct sockaddr *)&address);
}

static void addresses_are_checked_when_they_are_known(void **state)
{
    struct hd_webhook_policy policy = {0};

    (void)state;
    assert_false(allows_four(&policy, "127.0.0.1"));
    assert_false(allows_four(&policy, "0.0.0.0"));
    assert_true(allows_four(&policy, "10.1.2.3"));
    assert_false(allows_six(&policy, "::1"));
    assert_false(allows_six(&policy, "::"));
    assert_false(allows_six(&policy, "::ffff:127.3.0.1"));
    assert_true(allows_six(&policy, "2001:db8::1"));
    assert_true(allows_six(&policy, "::ffff:10.0.0.1"));
    assert_false(hd_webhook_allows_address(&policy, &(struct sockaddr){.sa_family = AF_UNIX}));
    assert_true(allows_four(&open_policy, "127.0.0.1"));
}

static void bodies_are_signed(void **state)
{
    char out[HD_WEBHOOK_SIGNATURE_SIZE];

    (void)state;
    assert_err(hd_webhook_sign(HD_S("whsec"), 1767225600, HD_S("{\"run_id\":\"1\"}"), out), 0);
    assert_string_equal(out, SIGNED);
    assert_err(hd_webhook_sign(HD_S("whsec"), 0, hd_slice(NULL, 0), out), 0);
    assert_string_equal(out, SIGNED_EMPTY);
    assert_err(hd_webhook_sign(HD_S("whsec"), INT64_MAX, HD_S("x"), out), 0);
    assert_err(hd_webhook_sign(HD_S("whsec"), -1, HD_S("x"), out), HD_EINVAL);
    assert_err(hd_webhook_sign(HD_S(""), 1, HD_S("x"), out), HD_EINVAL);
}

static void only_transient_failures_are_retried(void **state)
{
    static const int again[] = {0, 408, 425, 429, 500, 502, 503, 599};
    static const int final[] = {200, 204, 301, 400, 401, 404, 410, 422};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(again); i++) {
        assert_true(hd_webhook_may_retry(again[i]));
        assert_false(hd_webhook_may_retry(final[i]));
    }
}

static void delays_grow_to_an_end(void **state)
{
    static const int64_t seconds[] = {1, 4, 16, 64, 256, 300, 300};

    (void)state;
    for (int i = 0; i < (int)HD_COUNT(seconds); i++) {
        assert_int_equal(hd_webhook_delay_us(i + 1, 0), seconds[i] * 750000);
        assert_int_equal(hd_webhook_delay_us(i + 1, UINT32_C(1) << 31), seconds[i] * 1000000);
        assert_in_range(hd_webhook_delay_us(i + 1, UINT32_MAX), seconds[i] * 1000000,
                        seconds[i] * 1250000);
    }
    assert_int_equal(hd_webhook_delay_us(1000000000, 0), 225000000);
    assert_int_equal(hd_webhook_delay_us(0, 0), 750000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_and_paths_are_allowed),
        cmocka_unit_test(invalid_urls_are_refused),
        cmocka_unit_test(long_urls_are_refused),
        cmocka_unit_test(https_can_be_required),
        cmocka_unit_test(this_machine_can_be_forbidden),
        cmocka_unit_test(domains_can_be_listed),
        cmocka_unit_test(ports_can_be_listed),
        cmocka_unit_test(addresses_are_checked_when_they_are_known),
        cmocka_unit_test(bodies_are_signed),
        cmocka_unit_test(only_transient_failures_are_retried),
        cmocka_unit_test(delays_grow_to_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
