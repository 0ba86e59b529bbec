/* Outgoing requests: allowed destinations, timeouts, and limits of the response. */
#include "net/http_client.h"

#include <stdio.h>
#include <uv.h>

#include "base/compiler.h"
#include "net/outgoing.h"
#include "tests/unit/check.h"
#include "tests/unit/peer.h"

struct world {
    uv_loop_t loop;
    struct peer peer;
    struct hd_client *http;
    struct hd_client_request *request, *other;
    struct hd_arena arena; /* of rules */
    struct hd_outgoing outgoing;

    int asked; /* the number of calls of `allows` */
    bool allows;
    int ends;
    bool is_answered;
    enum hd_client_failure failure;
    bool has_head;
    long status;
    size_t body;

    /* streamed responses */
    bool takes; /* the result of on_head */
    int heads;
    size_t given;
    bool pauses;        /* at the first chunk */
    bool pauses_always; /* at each chunk */
    bool cancels;       /* at the first chunk */
    bool cancels_head;  /* at the head */
    bool cancels_other; /* at the first chunk */
    bool sends;         /* another request, at the first chunk */
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    peer_open(&w->peer, &w->loop);
    assert_err(hd_client_create(&w->loop, &w->http), 0);
    w->allows = w->takes = true;
    hd_arena_init(&w->arena, (size_t)1 << 20);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_client_destroy(w->http);
    peer_close(&w->peer);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

/* A name may have several addresses: each is checked. */
static bool on_allows(void *ctx, const struct sockaddr *address)
{
    struct world *w = ctx;

    assert_true(address->sa_family == AF_INET || address->sa_family == AF_INET6);
    w->asked++;
    return w->allows;
}

static void on_done(void *ctx, const struct hd_client_response *response)
{
    struct world *w = ctx;

    w->ends++;
    w->is_answered = !response->error;
    w->failure = response->failure;
    w->has_head = response->has_head;
    assert_int_equal(w->is_answered, response->failure == HD_CLIENT_FINE);
    w->status = response->status;
    w->body = response->body.len;
}

/* Sends to the listener by a name, so that only the resolved address can be checked. */
static struct hd_client_request *begin(struct world *w, struct hd_client_options options)
{
    struct hd_client_request *request;
    char url[64];

    snprintf(url, sizeof(url), "http://localhost:%d/x", w->peer.port);
    options.method = "POST";
    options.url = url;
    options.body = HD_S("{}");
    assert_err(hd_client_send(w->http, &options, on_done, w, &request), 0);
    assert_int_equal(w->ends, 0);
    return request;
}

static void post(struct world *w, struct hd_client_options options)
{
    w->request = begin(w, options);
    UNTIL(&w->peer, w->ends > 0);
    assert_int_equal(w->ends, 1);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void usual_requests_succeed(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_direct = true});
    assert_true(w->is_answered);
    assert_int_equal(w->status, 200);
    assert_int_equal(w->body, 5);
}

static void the_answer_may_be_passed_over(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_direct = true, .ignores_answer = true});
    assert_int_equal(w->status, 200);
    assert_int_equal(w->body, 0);
}

static void every_address_is_checked(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_direct = true, .allows = on_allows, .allows_ctx = w});
    assert_int_equal(w->status, 200);
    assert_true(w->asked > 0);
}

static void a_name_does_not_lead_where_it_may_not(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    w->allows = false;
    post(w, (struct hd_client_options){.is_direct = true, .allows = on_allows, .allows_ctx = w});
    assert_int_equal(w->failure, HD_CLIENT_REFUSED);
    assert_true(w->asked > 0);
    assert_int_equal(w->peer.connections, 0);
}

#define REDIRECT "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"

static void direct_requests_follow_no_redirect(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, REDIRECT);
    post(w, (struct hd_client_options){.is_direct = true});
    assert_int_equal(w->status, 302);
}

static void silence_ends(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, PEER_SILENCE);
    post(w, (struct hd_client_options){.is_direct = true, .timeout_ms = 1000});
    assert_false(w->is_answered);
    assert_false(w->has_head);
}

static void a_cancelled_request_calls_nothing(void **state)
{
    struct world *w = *state;
    const struct hd_client_options options = {.method = "GET", .url = "http://127.0.0.1:9/"};
    struct hd_client_request *request;

    assert_err(hd_client_send(w->http, &options, on_done, w, &request), 0);
    hd_client_cancel(request);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->ends, 0);
}

/* ---- redirects, connections -------------------------------------------- */

static void final_requests_follow_none_either(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, REDIRECT);
    post(w, (struct hd_client_options){.is_final = true});
    assert_int_equal(w->status, 302);
    assert_int_equal(w->peer.requests, 1);
}

static void others_follow(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, REDIRECT);
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){0});
    assert_int_equal(w->status, 200);
    assert_int_equal(w->peer.requests, 2);
}

/* Only requests that are limited to one host bypass the proxy. */
static void proxies_are_used(void **state)
{
    struct world *w = *state;
    struct hd_client_options options = {.method = "GET", .url = "http://nowhere.invalid/x"};
    char proxy[64];

    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", w->peer.port);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    peer_will(&w->peer, OK);
    options.is_final = true;
    assert_err(hd_client_send(w->http, &options, on_done, w, &w->request), 0);
    UNTIL(&w->peer, w->ends == 1);
    assert_int_equal(w->status, 200);
    assert_memory_equal(w->peer.last, "GET http://nowhere.invalid/x", 28);
    options.is_direct = true;
    assert_err(hd_client_send(w->http, &options, on_done, w, &w->request), 0);
    UNTIL(&w->peer, w->ends == 2);
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(w->failure, HD_CLIENT_RESOLVE);
    assert_int_equal(w->peer.requests, 1);
}

static void connections_are_used_again(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    for (int i = 0; i < 5; i++) {
        w->ends = 0;
        post(w, (struct hd_client_options){.is_final = true});
        assert_int_equal(w->status, 200);
    }
    assert_int_equal(w->peer.requests, 5);
    assert_int_equal(w->peer.connections, 1);
}

/* ---- allowed destinations ----------------------------------------------- */

static struct sockaddr_storage at(const char *text, int port)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    struct hd_ip ip;

    assert_true(hd_ip_parse(hd_slice_cstr(text), &ip));
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    memcpy(&six->sin6_addr, ip.bytes, sizeof(ip.bytes));
    return address;
}

/* Strict rules; `second` may be NULL. */
static const struct hd_outgoing *rules(struct world *w, const char *first, const char *second)
{
    const struct hd_slice hosts[] = {hd_slice_cstr(first), hd_slice_cstr(second)};

    assert_err(hd_outgoing_init(&w->outgoing, true, hosts, second ? 2 : 1, &w->arena, NULL), 0);
    return &w->outgoing;
}

static void rules_name_hosts_ports_and_networks(void **state)
{
    static const struct {
        const char *rule, *url, *address;
        bool is_allowed;
    } table[] = {
        {"x", "http://other/", "93.184.216.34", true},
        {"x", "http://other/", "10.0.0.1", false},
        {"x", "http://other/", "::1", false},
        {"x", "http://x/", "10.0.0.1", true},
        {"x", "http://X./", "127.0.0.1", true},
        {"x", "https://x:99/", "10.0.0.1", true},
        {"x:80", "http://x/", "10.0.0.1", true},
        {"x:80", "https://x/", "10.0.0.1", false},
        {"x:443", "https://x/", "10.0.0.1", true},
        {"x:443", "https://x:444/", "10.0.0.1", false},
        {"*.corp", "http://a.corp/", "10.0.0.1", true},
        {"*.corp", "http://corp/", "10.0.0.1", false},
        {"*.corp:8080", "http://a.corp:8080/", "10.0.0.1", true},
        {"10.0.0.0/8", "http://other/", "10.1.2.3", true},
        {"10.0.0.0/8", "http://other/", "192.168.0.1", false},
        {"10.0.0.0/8", "http://other/", "::ffff:10.1.2.3", true},
        {"10.0.0.0/8", "http://other/", "64:ff9b::a01:203", false},
        {"10.0.0.1:80", "http://10.0.0.1/", "10.0.0.1", true},
        {"10.0.0.1:80", "http://10.0.0.1:81/", "10.0.0.1", false},
        {"[::1]:8000", "http://[::1]:8000/", "::1", true},
        {"[::1]:8000", "http://[::1]:8001/", "::1", false},
        {"fd00::/8", "http://[fd00::5]/", "fd00::5", true},
        {"169.254.169.254", "http://metadata/", "169.254.169.254", true},
        {"x", "http://169.254.169.254/", "169.254.169.254", false},
        {"x", "http://x@y/", "10.0.0.1", false},
        {"x", "http://y#@x/", "10.0.0.1", false},
        {"x", "http://y?@x/", "10.0.0.1", false},
        {"x", "not a URL", "93.184.216.34", false},
    };
    struct world *w = *state;

    for (size_t i = 0; i < HD_COUNT(table); i++) {
        const char *port = strrchr(table[i].url, ':');
        struct sockaddr_storage address =
            at(table[i].address, port && port[1] != '/' ? (int)strtol(port + 1, NULL, 10) : 80);
        struct hd_outgoing_target target = {
            .url = table[i].url, .is_direct = true, .address = (struct sockaddr *)&address};

        if (hd_outgoing_permits(rules(w, table[i].rule, NULL), &target) != table[i].is_allowed)
            fail_msg("%s at %s with %s", table[i].url, table[i].address, table[i].rule);
        w->outgoing.is_strict = false;
        assert_true(hd_outgoing_permits(&w->outgoing, &target));
    }
}

static void rules_are_checked(void **state)
{
    static const char *const bad[] = {
        "",           "a b", "http://a", "a/b", "a:0",      "a:x",  "10.0.0.0/33",
        "10.0.0.1/8", "*",   "*.",       "a*",  "a:80:90]", "[::1", "10.0.0.0/8:80",
        "a@b",        "x,y", "%",        "[x]y"};
    struct hd_outgoing outgoing;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 65536);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct hd_slice host = hd_slice_cstr(bad[i]);
        struct heddle_error fault = {0};

        if (hd_outgoing_init(&outgoing, true, &host, 1, &arena, &fault) != HD_EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(fault.text, "outgoing.allowed_hosts"));
    }
    hd_arena_fini(&arena);
}

static void urls_are_checked_before_a_lookup(void **state)
{
    static const char *const bad[] = {
        "http://localhost/",
        "http://LOCALHOST:80/",
        "http://a.localhost/",
        "http://127.0.0.1:9/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://0/",
        "http://169.254.169.254/latest",
        "http://10.0.0.1",
        "http://192.168.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://a:b@127.0.0.1/",
        "http://localhost./",
        "nonsense:",
    };
    static const char *const good[] = {"http://example.com/",    "https://8.8.8.8/",
                                       "http://10.9.9.9/",       "http://10.9.9.9:8080/x",
                                       "http://[2606:4700::1]/", "http://inside.corp/"};
    struct world *w = *state;
    const struct hd_outgoing *outgoing = rules(w, "10.9.9.9", "inside.corp");
    struct heddle_error fault = {0};

    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (hd_outgoing_check(outgoing, hd_slice_cstr(bad[i]), &fault) != HD_EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_string_equal(fault.text, HD_OUTGOING_REFUSAL);
    }
    for (size_t i = 0; i < HD_COUNT(good); i++)
        assert_err(hd_outgoing_check(outgoing, hd_slice_cstr(good[i]), &fault), 0);
    w->outgoing.is_strict = false;
    assert_err(hd_outgoing_check(outgoing, HD_S("http://127.0.0.1/"), &fault), 0);
}

/* Refused without a connection, so open and closed ports are indistinguishable. */
static void private_addresses_are_not_contacted(void **state)
{
    struct world *w = *state;

    hd_client_set_outgoing(w->http, rules(w, "elsewhere", NULL));
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){0});
    assert_int_equal(w->failure, HD_CLIENT_REFUSED);
    assert_int_equal(w->peer.connections, 0);
}

static void listed_hosts_are_contacted(void **state)
{
    struct world *w = *state;

    hd_client_set_outgoing(w->http, rules(w, "localhost", NULL));
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){0});
    assert_int_equal(w->status, 200);
}

/* A connection opened by a trusted request is not reused by a request that may not use it. */
static void connections_of_others_are_no_way_around(void **state)
{
    struct world *w = *state;

    hd_client_set_outgoing(w->http, rules(w, "elsewhere", NULL));
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_trusted = true});
    assert_int_equal(w->status, 200);
    w->ends = 0;
    post(w, (struct hd_client_options){0});
    assert_int_equal(w->failure, HD_CLIENT_REFUSED);
    w->ends = 0;
    post(w, (struct hd_client_options){.is_trusted = true, .allows = on_allows, .allows_ctx = w});
    assert_int_equal(w->status, 200);
    w->ends = 0;
    w->allows = false;
    post(w, (struct hd_client_options){.is_trusted = true, .allows = on_allows, .allows_ctx = w});
    assert_int_equal(w->failure, HD_CLIENT_REFUSED);
    assert_int_equal(w->peer.requests, 2);
}

static void redirects_are_looked_at_too(void **state)
{
    struct world *w = *state;
    char answer[256];

    /* Only the named host is trusted: 127.0.0.1 is another name. */
    hd_client_set_outgoing(w->http, rules(w, "elsewhere", NULL));
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/secret\r\n"
             "Content-Length: 0\r\n\r\n",
             w->peer.port);
    peer_will(&w->peer, answer);
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_trusted = true});
    assert_int_equal(w->failure, HD_CLIENT_REFUSED);
    assert_int_equal(w->peer.requests, 1);
    /* A redirect within the host is followed. */
    w->ends = 0;
    w->peer.answer_count = 0;
    w->peer.requests = 0;
    peer_will(&w->peer, REDIRECT);
    peer_will(&w->peer, OK);
    post(w, (struct hd_client_options){.is_trusted = true});
    assert_int_equal(w->status, 200);
}

/* A proxy resolves names itself, so it only gets listed hosts and public IP addresses. */
static void proxies_do_not_hide_where_it_goes(void **state)
{
    static const struct {
        const char *url;
        bool is_allowed;
    } table[] = {{"http://listed.invalid/", true},
                 {"http://other.invalid/", false},
                 {"http://127.0.0.1/", false},
                 {"http://10.0.0.1/", false},
                 {"http://93.184.216.34/", true}};
    struct world *w = *state;
    char proxy[64];

    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", w->peer.port);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    hd_client_set_outgoing(w->http, rules(w, "listed.invalid", NULL));
    peer_will(&w->peer, OK);
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        const struct hd_client_options options = {.method = "GET", .url = table[i].url};

        w->ends = 0;
        assert_err(hd_client_send(w->http, &options, on_done, w, &w->request), 0);
        UNTIL(&w->peer, w->ends == 1);
        assert_int_equal(w->failure, table[i].is_allowed ? HD_CLIENT_FINE : HD_CLIENT_REFUSED);
    }
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(w->peer.requests, 2);
}

/* ---- failures ---------------------------------------------------------- */

static void failures_have_kinds(void **state)
{
    static const struct {
        const char *answer;
        bool closes;
        enum hd_client_failure failure;
        bool has_head;
    } cases[] = {
        {PEER_CLOSE, true, HD_CLIENT_CLOSED, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", true, HD_CLIENT_CUT, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true, HD_CLIENT_CUT,
         true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", true, HD_CLIENT_CUT, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
         "this is more than what is allowed to be",
         false, HD_CLIENT_LARGE, true},
        {"SSH-2.0-OpenSSH_9.2p1\r\n", true, HD_CLIENT_STRANGE, false},
        {"HTTP/1.1 200 OK\r\n\r\nuntil it ends", true, HD_CLIENT_FINE, true},
    };
    struct world *w = *state;

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        w->peer.answer_count = 0;
        w->peer.closes = cases[i].closes;
        w->ends = 0;
        peer_will(&w->peer, cases[i].answer);
        post(w, (struct hd_client_options){.is_final = true, .max_body = 20});
        assert_int_equal(w->failure, cases[i].failure);
        assert_int_equal(w->has_head, cases[i].has_head);
    }
}

static void a_closed_port_fails(void **state)
{
    struct world *w = *state;

    peer_refuse(&w->peer);
    post(w, (struct hd_client_options){.is_final = true});
    assert_int_equal(w->failure, HD_CLIENT_CONNECT);
}

static void invalid_addresses_are_refused(void **state)
{
    static const char *const urls[] = {"", "http://", "ftp://127.0.0.1/", "http://a b/",
                                       "file:///"};
    struct world *w = *state;

    for (size_t i = 0; i < HD_COUNT(urls); i++) {
        const struct hd_client_options options = {.method = "GET", .url = urls[i]};

        w->ends = 0;
        assert_err(hd_client_send(w->http, &options, on_done, w, &w->request), 0);
        UNTIL(&w->peer, w->ends > 0);
        assert_int_equal(w->failure, HD_CLIENT_URL);
    }
}

static void the_end_of_the_client_ends_requests(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, PEER_SILENCE);
    begin(w, (struct hd_client_options){0});
    begin(w, (struct hd_client_options){0});
    UNTIL(&w->peer, w->peer.requests == 2);
    hd_client_destroy(w->http);
    w->http = NULL;
    assert_int_equal(w->ends, 2);
    assert_int_equal(w->failure, HD_CLIENT_OTHER);
    UNTIL(&w->peer, w->peer.gone == 2);
}

/* ---- streamed responses ------------------------------------------------ */

static bool on_head(void *ctx, const struct hd_client_response *head)
{
    struct world *w = ctx;

    assert_int_equal(w->ends, 0);
    assert_int_equal(w->given, 0);
    assert_true(head->status >= 200);
    assert_true(head->headers.len > 0);
    w->status = head->status;
    w->heads++;
    if (w->cancels_head)
        hd_client_cancel(w->request);
    return w->takes;
}

static void on_data(void *ctx, struct hd_slice data);

#define PIECES \
    ((struct hd_client_options){.is_final = true, .on_head = on_head, .on_data = on_data})

static void on_data(void *ctx, struct hd_slice data)
{
    struct world *w = ctx;
    bool is_first = w->given == 0;

    assert_int_equal(w->heads, 1);
    assert_true(data.len > 0);
    w->given += data.len;
    if (!is_first && !w->pauses_always)
        return;
    if (w->pauses)
        hd_client_pause(w->request);
    if (w->cancels)
        hd_client_cancel(w->request);
    if (w->cancels_other)
        hd_client_cancel(w->other);
    if (w->sends)
        w->other = begin(w, (struct hd_client_options){.is_final = true});
}

static void pieces_are_not_kept(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    post(w, PIECES);
    assert_true(w->is_answered);
    assert_int_equal(w->heads, 1);
    assert_int_equal(w->given, 5);
    assert_int_equal(w->body, 0);
}

static void the_head_callback_may_refuse(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    w->takes = false;
    post(w, PIECES);
    assert_int_equal(w->heads, 1);
    assert_int_equal(w->given, 0);
    assert_int_equal(w->body, 5);
}

static void a_head_needs_no_body(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    post(w, PIECES);
    assert_int_equal(w->heads, 1);
    assert_int_equal(w->status, 204);
    assert_true(w->is_answered);
}

static void the_head_comes_before_the_body_does(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->heads > 0);
    assert_int_equal(w->given, 0);
    hd_client_cancel(w->request);
    UNTIL(&w->peer, w->peer.gone == 1);
    assert_int_equal(w->ends, 0);
}

#define MUCH ((size_t)100 << 20)
#define FLOOD \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 104857600\r\n\r\n"

/* The peer cannot send: unread data stays in the socket. */
static void wait_for_a_jam(struct world *w)
{
    UNTIL(&w->peer, w->peer.blocked > 100 || w->peer.sent == MUCH);
    assert_true(w->peer.sent - w->given < MUCH / 2);
}

static void a_pause_reaches_the_other_side(void **state)
{
    struct world *w = *state;
    size_t given;

    peer_will(&w->peer, FLOOD);
    w->peer.flood = MUCH;
    w->pauses = true;
    w->request = begin(w, PIECES);
    wait_for_a_jam(w);
    given = w->given;
    assert_true(given > 0 && given < 100000);
    for (int i = 0; i < 5; i++) {
        hd_client_resume(w->request);
        assert_int_equal(w->given, given); /* not before the call has returned */
        UNTIL(&w->peer, w->given > given);
        hd_client_pause(w->request);
        given = w->given;
        w->peer.blocked = 0;
        wait_for_a_jam(w);
        assert_int_equal(w->given, given);
    }
    hd_client_resume(w->request);
    hd_client_pause(w->request);
    hd_client_resume(w->request);
    UNTIL(&w->peer, w->ends > 0);
    assert_true(w->is_answered);
    assert_int_equal(w->given, MUCH);
}

/* Parts of chunks are buffered in libcurl: none may be lost or delivered twice. */
static void a_pause_may_come_within_chunks(void **state)
{
    struct world *w = *state;
    size_t given = 0;

    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    w->peer.is_chunked = true;
    w->peer.flood = (size_t)2000 * PEER_FRAME + PEER_END;
    w->pauses = w->pauses_always = true;
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->ends > 0)
    {
        if (w->given == given || w->ends > 0)
            continue;
        given = w->given;
        hd_client_resume(w->request);
        assert_int_equal(w->given, given);
    }
    assert_true(w->is_answered);
    assert_int_equal(w->given, 2000 * PEER_CHUNK);
}

static void a_paused_request_can_be_cancelled(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, FLOOD);
    w->peer.flood = MUCH;
    w->pauses = true;
    w->request = begin(w, PIECES);
    wait_for_a_jam(w);
    hd_client_resume(w->request);
    hd_client_cancel(w->request);
    UNTIL(&w->peer, w->peer.gone == 1);
    assert_int_equal(w->ends, 0);
}

static void cancelling_closes_the_connection(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, PEER_SILENCE);
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->peer.requests == 1);
    hd_client_cancel(w->request);
    UNTIL(&w->peer, w->peer.gone == 1);
    assert_int_equal(w->ends, 0);
}

static void a_piece_may_cancel(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, FLOOD);
    w->peer.flood = MUCH;
    w->cancels = true;
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->peer.gone == 1);
    assert_int_equal(w->ends, 0);
    assert_true(w->given > 0 && w->given < 100000);
}

static void a_head_may_cancel(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, FLOOD);
    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    w->cancels_head = true;
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->peer.gone == 1);
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->heads == 2);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->ends, 0);
    assert_int_equal(w->given, 0);
}

static void a_piece_may_cancel_another(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, PEER_SILENCE);
    peer_will(&w->peer, OK);
    w->cancels_other = true;
    w->other = begin(w, PIECES);
    UNTIL(&w->peer, w->peer.requests == 1);
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->ends == 1 && w->peer.gone == 1);
    assert_true(w->is_answered);
    assert_int_equal(w->given, 5);
}

static void a_piece_may_lead_to_another_request(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, OK);
    w->sends = true;
    w->request = begin(w, PIECES);
    UNTIL(&w->peer, w->ends == 2);
    assert_int_equal(w->peer.requests, 2);
    assert_true(w->is_answered);
}

static void pieces_may_be_too_many(void **state)
{
    struct world *w = *state;
    struct hd_client_options options = PIECES;

    peer_will(&w->peer, FLOOD);
    w->peer.flood = MUCH;
    options.max_given = 1000000;
    post(w, options);
    assert_int_equal(w->failure, HD_CLIENT_LARGE);
    assert_true(w->given <= 1000000);
}

static void a_cut_connection_keeps_the_received_part(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    w->peer.closes = true;
    post(w, PIECES);
    assert_int_equal(w->failure, HD_CLIENT_CUT);
    assert_int_equal(w->given, 5);
}

/* ---- idle timeout ------------------------------------------------------ */

static void silence_before_the_first_byte(void **state)
{
    struct world *w = *state;

    peer_will(&w->peer, PEER_SILENCE);
    post(w, (struct hd_client_options){.is_final = true, .idle_ms = 300});
    assert_int_equal(w->failure, HD_CLIENT_IDLE);
    assert_false(w->has_head);
    UNTIL(&w->peer, w->peer.gone == w->peer.connections);
}

static void silence_behind_some_bytes(void **state)
{
    struct world *w = *state;
    struct hd_client_options options = PIECES;

    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    options.idle_ms = 2000;
    post(w, options);
    assert_int_equal(w->failure, HD_CLIENT_IDLE);
    assert_true(w->has_head);
    assert_int_equal(w->given, 5);
}

static void silence_of_one_is_not_that_of_another(void **state)
{
    struct world *w = *state;
    struct hd_client_options options = PIECES;

    peer_will(&w->peer, PEER_SILENCE);
    options.idle_ms = 600000;
    w->other = begin(w, options);
    UNTIL(&w->peer, w->peer.requests == 1);
    options.idle_ms = 30;
    w->request = begin(w, options);
    UNTIL(&w->peer, w->ends == 1);
    assert_int_equal(w->failure, HD_CLIENT_IDLE);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->ends, 1);
    hd_client_cancel(w->other);
}

static void on_wait(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* All data has arrived, but it is not read for longer than the idle timeout. */
static void a_pause_is_no_silence(void **state)
{
    struct world *w = *state;
    struct hd_client_options options = PIECES;
    uv_timer_t timer;
    bool is_over = false;

    peer_will(&w->peer, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n");
    w->peer.flood = 60000;
    w->pauses = true;
    options.idle_ms = 2000;
    w->request = begin(w, options);
    UNTIL(&w->peer, w->given > 0 && w->peer.sent == 60000);
    assert_int_equal(uv_timer_init(&w->loop, &timer), 0);
    timer.data = &is_over;
    assert_int_equal(uv_timer_start(&timer, on_wait, 2500, 0), 0);
    UNTIL(&w->peer, is_over);
    assert_int_equal(w->ends, 0);
    hd_client_resume(w->request);
    UNTIL(&w->peer, w->ends == 1);
    assert_true(w->is_answered);
    assert_int_equal(w->given, 60000);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(usual_requests_succeed),
        CASE(the_answer_may_be_passed_over),
        CASE(every_address_is_checked),
        CASE(a_name_does_not_lead_where_it_may_not),
        CASE(direct_requests_follow_no_redirect),
        CASE(silence_ends),
        CASE(a_cancelled_request_calls_nothing),
        CASE(final_requests_follow_none_either),
        CASE(others_follow),
        CASE(proxies_are_used),
        CASE(connections_are_used_again),
        CASE(rules_name_hosts_ports_and_networks),
        CASE(rules_are_checked),
        CASE(urls_are_checked_before_a_lookup),
        CASE(private_addresses_are_not_contacted),
        CASE(listed_hosts_are_contacted),
        CASE(connections_of_others_are_no_way_around),
        CASE(redirects_are_looked_at_too),
        CASE(proxies_do_not_hide_where_it_goes),
        CASE(failures_have_kinds),
        CASE(a_closed_port_fails),
        CASE(invalid_addresses_are_refused),
        CASE(the_end_of_the_client_ends_requests),
        CASE(pieces_are_not_kept),
        CASE(the_head_callback_may_refuse),
        CASE(a_head_needs_no_body),
        CASE(the_head_comes_before_the_body_does),
        CASE(a_pause_reaches_the_other_side),
        CASE(a_pause_may_come_within_chunks),
        CASE(a_paused_request_can_be_cancelled),
        CASE(cancelling_closes_the_connection),
        CASE(a_piece_may_cancel),
        CASE(a_head_may_cancel),
        CASE(a_piece_may_cancel_another),
        CASE(a_piece_may_lead_to_another_request),
        CASE(pieces_may_be_too_many),
        CASE(a_cut_connection_keeps_the_received_part),
        CASE(silence_before_the_first_byte),
        CASE(silence_behind_some_bytes),
        CASE(silence_of_one_is_not_that_of_another),
        CASE(a_pause_is_no_silence),
    };
#undef CASE

    (void)unsetenv("http_proxy"); /* set in the environment of the tests */
    (void)unsetenv("all_proxy");
    (void)unsetenv("ALL_PROXY");
    (void)unsetenv("no_proxy");
    (void)unsetenv("NO_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
