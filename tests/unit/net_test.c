#include "base/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "tests/unit/check.h"

static struct hd_ip address(const char *text)
{
    struct hd_ip out;

    if (!hd_ip_parse(hd_slice_cstr(text), &out))
        fail_msg("%s is no address", text);
    return out;
}

/* ---- public addresses ------------------------------------------------- */

static void the_internet_is_public(void **state)
{
    static const char *const texts[] = {
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "::ffff:808:808",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "2a00::5efe:8.8.8.8",
        "3fff:1000::1",
        "3ffe::1",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct hd_ip it = address(texts[i]);

        if (!hd_ip_is_public(&it))
            fail_msg("%s is public", texts[i]);
    }
}

static void nothing_else_is_public(void **state)
{
    static const char *const texts[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.0",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::2",
        "::7f00:1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:10.1.2.3",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::ffff:0:8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "1fff::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:10::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:101::",
        "2a00::5efe:10.0.0.1",
        "2a00::200:5efe:192.168.1.1",
        "3fff::1",
        "3fff:fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "fe80::a9fe:a9fe",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ffff::1",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct hd_ip it = address(texts[i]);

        if (hd_ip_is_public(&it))
            fail_msg("%s is not public", texts[i]);
    }
}

static void loopback_is_this_machine(void **state)
{
    static const char *const ours[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"128.0.0.1", "::", "::2", "0.0.0.0", "10.0.0.1"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(ours); i++) {
        struct hd_ip it = address(ours[i]);

        assert_true(hd_ip_is_loopback(&it));
    }
    for (size_t i = 0; i < HD_COUNT(others); i++) {
        struct hd_ip it = address(others[i]);

        assert_false(hd_ip_is_loopback(&it));
    }
}

/* ---- texts ------------------------------------------------------------ */

static void only_the_usual_forms_are_addresses(void **state)
{
    static const char *const bad[] = {
        "",          "1",         "127.1",     "0x7f.0.0.1",       "0177.0.0.1",   "127.0.0.1.",
        "1.2.3.4.5", "1.2.3.256", " 1.2.3.4",  "1.2.3.4 ",         "[::1",         "::1]",
        "[]",        "[[::1]]",   "localhost", "2130706433",       "1.2.3.4%eth0", "::1::",
        ":::",       "1:2:3",     "%eth0",     "::ffff:999.0.0.1",
    };
    struct hd_ip out, zoned = address("fe80::1%eth0"), plain = address("[fe80::1]");

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (hd_ip_parse(hd_slice_cstr(bad[i]), &out))
            fail_msg("%s is no address", bad[i]);
    }
    assert_false(hd_ip_parse(hd_slice("::1\0", 4), &out));
    assert_memory_equal(&zoned, &plain, sizeof(plain));
}

static void sockets_have_addresses(void **state)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(8080)};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct hd_ip out, wanted = address("10.1.2.3");

    (void)state;
    assert_int_equal(inet_pton(AF_INET, "10.1.2.3", &four.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.1.2.3", &six.sin6_addr), 1);
    assert_true(hd_ip_of((struct sockaddr *)&four, &out));
    assert_memory_equal(&out, &wanted, sizeof(out));
    assert_true(hd_ip_of((struct sockaddr *)&six, &out));
    assert_memory_equal(&out, &wanted, sizeof(out));
    assert_int_equal(hd_ip_port((struct sockaddr *)&four), 80);
    assert_int_equal(hd_ip_port((struct sockaddr *)&six), 8080);
    assert_false(hd_ip_of(&other, &out));
    assert_int_equal(hd_ip_port(&other), 0);
}

static void a_network_contains_the_addresses_of_its_bits(void **state)
{
    static const struct {
        const char *net, *address;
        bool has;
    } table[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
        {"10.0.0.0/8", "::10.0.0.1", false},
        {"172.16.0.0/12", "172.31.0.1", true},
        {"172.16.0.0/12", "172.32.0.1", false},
        {"192.168.1.128/25", "192.168.1.200", true},
        {"192.168.1.128/25", "192.168.1.127", false},
        {"192.168.1.7", "192.168.1.7", true},
        {"192.168.1.7", "192.168.1.8", false},
        {"192.168.1.7/32", "192.168.1.6", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "::1", true},
        {"::/0", "8.8.8.8", true},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe00::1", false},
        {"::1", "::1", true},
        {"[::1]", "::1", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
    };
    static const char *const bad[] = {
        "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/",   "10.0.0.0/-1", "10.0.0.0/08", "/8",         "",
        "::/129",      "fc00::1/7",  "10.0.0.0/8/", "10.0.0.0/8x", "name/8",      "10.0.0.0/ 8"};
    struct hd_net net;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        struct hd_ip it = address(table[i].address);

        assert_true(hd_net_parse(hd_slice_cstr(table[i].net), &net));
        if (hd_net_has(&net, &it) != table[i].has)
            fail_msg("%s in %s", table[i].address, table[i].net);
    }
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (hd_net_parse(hd_slice_cstr(bad[i]), &net))
            fail_msg("%s is no network", bad[i]);
    }
}

static void hosts_may_have_ports(void **state)
{
    static const struct {
        const char *text, *host;
        int port;
    } table[] = {
        {"example.com", "example.com", 0},   {"example.com:443", "example.com", 443},
        {"1.2.3.4:80", "1.2.3.4", 80},       {"[::1]", "::1", 0},
        {"[::1]:8000", "::1", 8000},         {"::1", "::1", 0},
        {"fe80::1:8000", "fe80::1:8000", 0},
    };
    static const char *const bad[] = {
        "",   ":80",   "a:",     "a:0",    "a:65536", "a:x",     "[::1",   "::1]",
        "[]", "[]:80", "[::1]x", "[::1]:", "a:080",   "[a]b]:1", "x[::1]", "[::1]:0"};
    struct hd_slice host;
    int port;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        if (!hd_authority_split(hd_slice_cstr(table[i].text), &host, &port) ||
            !hd_slice_eq(host, hd_slice_cstr(table[i].host)) || port != table[i].port)
            fail_msg("%s", table[i].text);
    }
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (hd_authority_split(hd_slice_cstr(bad[i]), &host, &port))
            fail_msg("%s is no host", bad[i]);
    }
}

static void names_are_compared_without_case(void **state)
{
    (void)state;
    assert_true(hd_host_matches(HD_S("Example.COM."), HD_S("example.com")));
    assert_true(hd_host_matches(HD_S("a.example.com"), HD_S("*.Example.com")));
    assert_false(hd_host_matches(HD_S("example.com"), HD_S("*.example.com")));
    assert_false(hd_host_matches(HD_S("badexample.com"), HD_S("*.example.com")));
    assert_false(hd_host_matches(HD_S("example.com.evil"), HD_S("example.com")));
    assert_false(hd_host_matches(HD_S(""), HD_S("")));
}

static void loopback_has_a_few_names(void **state)
{
    static const char *const ours[] = {"localhost", "LOCALHOST.",      "a.localhost",
                                       "127.0.0.1", "127.1.2.3",       "::1",
                                       "[::1]",     "::ffff:127.0.0.1"};
    static const char *const others[] = {"",           "localhost.evil", "evillocalhost", "0.0.0.0",
                                         "127.0.0.1.", "10.0.0.1",       "example.com",   "127.1"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(ours); i++)
        assert_true(hd_host_names_loopback(hd_slice_cstr(ours[i])));
    for (size_t i = 0; i < HD_COUNT(others); i++)
        assert_false(hd_host_names_loopback(hd_slice_cstr(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_internet_is_public),
        cmocka_unit_test(nothing_else_is_public),
        cmocka_unit_test(loopback_is_this_machine),
        cmocka_unit_test(only_the_usual_forms_are_addresses),
        cmocka_unit_test(sockets_have_addresses),
        cmocka_unit_test(a_network_contains_the_addresses_of_its_bits),
        cmocka_unit_test(hosts_may_have_ports),
        cmocka_unit_test(names_are_compared_without_case),
        cmocka_unit_test(loopback_has_a_few_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
