#include "http/parse.h"

#include "http/server.h"
#include "tests/unit/check.h"

/* A parser with its surroundings. */
struct reading {
    struct hd_http_server_config config;
    struct hd_arena arena;
    struct hd_parser parser;
    uint64_t held;
};

static void reading_init(struct reading *r)
{
    hd_http_server_config_init(&r->config);
    r->held = 0;
    hd_arena_init(&r->arena, 1 << 20);
    hd_parser_init(&r->parser, &r->config.limits, &r->held, &r->arena);
}

static void reading_fini(struct reading *r)
{
    hd_parser_fini(&r->parser);
    hd_arena_fini(&r->arena);
    assert_int_equal(r->held, 0);
}

/* Feeds until a request is complete or refused; the bytes in pieces of `step`. */
static enum hd_parse_outcome feed(struct reading *r, struct hd_slice text, size_t step,
                                  size_t *taken)
{
    enum hd_parse_outcome outcome = HD_PARSE_MORE;
    size_t used;

    *taken = 0;
    while (outcome == HD_PARSE_MORE && *taken < text.len) {
        size_t len = step < text.len - *taken ? step : text.len - *taken;

        outcome = hd_parser_feed(&r->parser, text.ptr + *taken, len, &used);
        assert_true(used <= len);
        assert_true(outcome != HD_PARSE_MORE || used == len);
        *taken += used;
    }
    return outcome;
}

static void check_first(const struct hd_http_request *request)
{
    assert_int_equal(request->method, HD_METHOD_POST);
    assert_slice(request->path, HD_S("/a%20b"));
    assert_slice(request->query, HD_S("c=d&e"));
    assert_int_equal(request->header_count, 5);
    assert_slice(hd_request_value(request, HD_S("host")), HD_S("example"));
    assert_slice(hd_request_value(request, HD_S("x-mixed-case")), HD_S("Value  with spaces"));
    assert_slice(request->headers[2].name, HD_S("x-empty"));
    assert_slice(request->headers[2].value, HD_S(""));
    assert_slice(request->body, HD_S("hello world"));
    assert_true(request->is_kept_alive);
    assert_false(request->is_http10);
}

/* However the bytes are split, the parser returns the same two requests. */
static void requests_do_not_depend_on_how_they_come(void **state)
{
    const struct hd_slice first =
        HD_S("POST http://example/a%20b?c=d&e#f HTTP/1.1\r\nHost: example\r\n"
             "X-Mixed-Case: \t Value  with spaces \t\r\nX-Empty:\r\nX-Other: 1\r\n"
             "Transfer-Encoding: Chunked\r\n\r\n"
             "6\r\nhello \r\n5;name=\"v\"\r\nworld\r\n0\r\nTrailer: t\r\n\r\n");
    const struct hd_slice second = HD_S("GET / HTTP/1.0\r\n\r\n");
    char text[512];
    struct reading r;
    size_t taken;

    (void)state;
    memcpy(text, first.ptr, first.len);
    memcpy(text + first.len, second.ptr, second.len);
    for (size_t step = 1; step <= first.len + second.len; step++) {
        reading_init(&r);
        assert_int_equal(feed(&r, hd_slice(text, first.len + second.len), step, &taken),
                         HD_PARSE_DONE);
        assert_int_equal(taken, first.len);
        check_first(&r.parser.request);
        hd_parser_next(&r.parser);
        assert_int_equal(feed(&r, second, step, &taken), HD_PARSE_DONE);
        assert_slice(r.parser.request.path, HD_S("/"));
        assert_true(r.parser.request.is_http10);
        assert_false(r.parser.request.is_kept_alive);
        assert_int_equal(r.parser.request.header_count, 0);
        assert_slice(r.parser.request.body, HD_S(""));
        reading_fini(&r);
    }
}

static void targets_come_apart(void **state)
{
    static const struct {
        const char *target, *path, *query;
    } cases[] = {
        {"/", "/", ""},           {"/a?", "/a", ""},      {"/a?b?c", "/a", "b?c"},
        {"/a#b", "/a", ""},       {"http://h", "/", ""},  {"https://h:1/x", "/x", ""},
        {"HTTP://h?q", "/", "q"}, {"//a/b", "//a/b", ""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct reading r;
        char text[128];
        size_t taken;

        reading_init(&r);
        (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i].target);
        assert_int_equal(feed(&r, hd_slice_cstr(text), 1000, &taken), HD_PARSE_DONE);
        assert_slice(r.parser.request.path, hd_slice_cstr(cases[i].path));
        assert_slice(r.parser.request.query, hd_slice_cstr(cases[i].query));
        reading_fini(&r);
    }
}

/* Refused with this status, however the bytes are split. */
static void check_refused(const char *text, int status)
{
    for (size_t step = 1; step < 200; step += 60) {
        struct reading r;
        size_t taken, used;

        reading_init(&r);
        r.config.limits.head = 1000;
        r.config.limits.body = 10;
        hd_parser_trim(&r.parser);
        assert_int_equal(feed(&r, hd_slice_cstr(text), step, &taken), HD_PARSE_REFUSED);
        if (r.parser.status != status)
            fail_msg("%d (%s), expected %d: %s", r.parser.status, r.parser.reason, status, text);
        assert_true(strlen(r.parser.reason) > 0);
        assert_int_equal(hd_parser_feed(&r.parser, "GET", 3, &used), HD_PARSE_REFUSED);
        reading_fini(&r);
    }
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    check_refused("GET / HTTP/1.1\r\n\r\n", 400);
    check_refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    check_refused("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check_refused("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check_refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    check_refused("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505);
    check_refused("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501);
    check_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", 413);
    check_refused("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "6\r\nabcdef\r\n5\r\nabcde\r\n",
                  413);
    check_refused("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501);
    check_refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    check_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\n\r\n", 415);
    check_refused("POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417);
    check_refused("\x16\x03\x01", 400);
}

static void sizes_are_limited(void **state)
{
    char text[2100];
    int len;

    (void)state;
    len = snprintf(text, sizeof(text), "GET /%01000d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    assert_true(len > 1000);
    check_refused(text, 414);
    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nA: %01000d\r\n\r\n", 0);
    check_refused(text, 431);
    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nA: %1500s\r\n\r\n", "x");
    check_refused(text, 431);
    (void)snprintf(text, sizeof(text),
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;%01100d\r\n",
                   0);
    check_refused(text, 431);
}

static void continue_is_expected_for_bodies_only(void **state)
{
    static const struct {
        const char *head;
        bool is_expected;
    } cases[] = {
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n", true},
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
         true},
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", false},
        {"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct reading r;
        size_t taken;

        reading_init(&r);
        (void)feed(&r, hd_slice_cstr(cases[i].head), 1000, &taken);
        assert_int_equal(r.parser.status, 0);
        assert_int_equal(r.parser.expects_continue, cases[i].is_expected);
        reading_fini(&r);
    }
}

static int parse_one(void *arg)
{
    static const struct hd_slice text =
        HD_S_INIT("POST /a HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nContent-Length: 5\r\n\r\nhello");
    struct reading r;
    size_t taken;
    int status;

    (void)arg;
    reading_init(&r);
    (void)feed(&r, text, 7, &taken);
    status = r.parser.status;
    reading_fini(&r);
    assert_true(status == 0 || status == 503);
    return status ? HD_ENOMEM : 0;
}

static void memory_may_end(void **state)
{
    (void)state;
    assert_true(check_every_allocation(parse_one, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_do_not_depend_on_how_they_come),
        cmocka_unit_test(targets_come_apart),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(continue_is_expected_for_bodies_only),
        cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
