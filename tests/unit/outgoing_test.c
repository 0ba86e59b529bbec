/* Requests of our own: where they may go, how long they may take, what is kept of the answer. */
#include "graph/http.h"

#include <netinet/in.h>
#include <stdio.h>
#include <uv.h>

#include "base/compiler.h"
#include "tests/unit/check.h"

struct world {
    uv_loop_t loop;
    uv_tcp_t listening;
    uv_tcp_t peer;
    int port;
    const char *answer; /* NULL: never */
    int connections;
    struct hd_http *http;

    int asked; /* how often `allows` was */
    bool allows;
    int ends;
    bool is_answered;
    long status;
    size_t body;
};

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char room[65536];

    (void)handle;
    (void)size;
    *buf = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct world *w = stream->data;
    uv_buf_t out;

    (void)buf;
    if (len <= 0 || !w->answer)
        return;
    out = uv_buf_init((char *)(uintptr_t)w->answer, (unsigned)strlen(w->answer));
    assert_true(uv_try_write(stream, &out, 1) > 0);
    w->answer = NULL;
}

static void on_connection(uv_stream_t *listening, int status)
{
    struct world *w = listening->data;

    assert_int_equal(status, 0);
    assert_int_equal(w->connections++, 0);
    assert_int_equal(uv_tcp_init(&w->loop, &w->peer), 0);
    w->peer.data = w;
    assert_int_equal(uv_accept(listening, (uv_stream_t *)&w->peer), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&w->peer, on_alloc, on_read), 0);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct sockaddr_in address;
    int len = sizeof(address);

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(uv_tcp_init(&w->loop, &w->listening), 0);
    w->listening.data = w;
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
    assert_int_equal(uv_tcp_bind(&w->listening, (struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&w->listening, 8, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&w->listening, (struct sockaddr *)&address, &len), 0);
    w->port = ntohs(address.sin_port);
    assert_err(hd_http_create(&w->loop, &w->http), 0);
    w->allows = true;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_http_destroy(w->http);
    uv_close((uv_handle_t *)&w->listening, NULL);
    if (w->connections > 0)
        uv_close((uv_handle_t *)&w->peer, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    free(w);
    return 0;
}

/* A name may have several addresses: each is asked about. */
static bool on_allows(void *ctx, const struct sockaddr *address)
{
    struct world *w = ctx;

    assert_true(address->sa_family == AF_INET || address->sa_family == AF_INET6);
    w->asked++;
    return w->allows;
}

static void on_done(void *ctx, const struct hd_response *response)
{
    struct world *w = ctx;

    w->ends++;
    uv_stop(&w->loop);
    w->is_answered = !response->error;
    w->status = response->status;
    w->body = response->body.len;
}

/* Sends to the listener under a name, so that only the address says where that is. */
static void post(struct world *w, struct hd_http_what what)
{
    struct hd_request *request;
    char url[64];

    snprintf(url, sizeof(url), "http://localhost:%d/x", w->port);
    what.method = "POST";
    what.url = url;
    what.body = HD_S("{}");
    assert_err(hd_http_send(w->http, &what, on_done, w, &request), 0);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void what_is_usual(void **state)
{
    struct world *w = *state;

    w->answer = OK;
    post(w, (struct hd_http_what){.is_direct = true});
    assert_true(w->is_answered);
    assert_int_equal(w->status, 200);
    assert_int_equal(w->body, 5);
}

static void the_answer_may_be_passed_over(void **state)
{
    struct world *w = *state;

    w->answer = OK;
    post(w, (struct hd_http_what){.is_direct = true, .ignores_answer = true});
    assert_int_equal(w->status, 200);
    assert_int_equal(w->body, 0);
}

static void addresses_are_asked_about(void **state)
{
    struct world *w = *state;

    w->answer = OK;
    post(w, (struct hd_http_what){.is_direct = true, .allows = on_allows, .allows_ctx = w});
    assert_int_equal(w->status, 200);
    assert_true(w->asked > 0);
}

static void a_name_does_not_lead_where_it_may_not(void **state)
{
    struct world *w = *state;

    w->answer = OK;
    w->allows = false;
    post(w, (struct hd_http_what){.is_direct = true, .allows = on_allows, .allows_ctx = w});
    assert_false(w->is_answered);
    assert_true(w->asked > 0);
    assert_int_equal(w->connections, 0);
}

static void direct_requests_follow_no_redirect(void **state)
{
    struct world *w = *state;

    w->answer = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    post(w, (struct hd_http_what){.is_direct = true});
    assert_int_equal(w->status, 302);
}

static void silence_ends(void **state)
{
    struct world *w = *state;

    post(w, (struct hd_http_what){.is_direct = true, .timeout_ms = 50});
    assert_false(w->is_answered);
    assert_int_equal(w->connections, 1);
}

static void one_that_is_cancelled_says_nothing(void **state)
{
    struct world *w = *state;
    const struct hd_http_what what = {.method = "GET", .url = "http://127.0.0.1:9/"};
    struct hd_request *request;

    assert_err(hd_http_send(w->http, &what, on_done, w, &request), 0);
    hd_http_cancel(request);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->ends, 0);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(what_is_usual),
        CASE(the_answer_may_be_passed_over),
        CASE(addresses_are_asked_about),
        CASE(a_name_does_not_lead_where_it_may_not),
        CASE(direct_requests_follow_no_redirect),
        CASE(silence_ends),
        CASE(one_that_is_cancelled_says_nothing),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
