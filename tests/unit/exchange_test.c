/* Exchanges with other servers: retries, texts, secrets, back-pressure, recordings. */
#include "agent/exchange.h"

#include "agent/agent.h"
#include "agent/exchange_internal.h"
#include "agent/source.h"
#include "tests/unit/engine_world.h"
#include "tests/unit/peer.h"

#define NAP                                                      \
    "{\"name\":\"nap\",\"state\":{\"log\":{\"type\":\"list\"}}," \
    "\"nodes\":{\"x\":{\"kind\":\"sleep\",\"ms\":600000}},"      \
    "\"edges\":[[\"__start__\",\"x\"],[\"x\",\"__end__\"]]}"

#define OK "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello"
#define BUSY "HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"
#define REDIRECT "HTTP/1.1 307 There\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n"
#define MUCH ((size_t)100 << 20)
#define FLOOD "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n"

/* A run without nodes, and its exchanges. */
struct scene {
    struct world w;
    struct hd_graph *graph;
    struct peer peer;
    struct hd_agents *agents;
    struct hd_agent_exchange *exchange;

    bool takes, cancels, cancels_head;
    int heads, ends;
    size_t given;
    char data[1024];
    char error[512];
    char body[256];
    struct hd_reply reply;
    bool has_error;

    /* the recorder's */
    int wrote, asked;
    char record[4096];
    struct hd_record_answer answer;
};

static int setup_with(void **state, struct hd_recorder *recorder)
{
    const struct hd_agents_options options = {.recorder = recorder};
    struct scene *s = calloc(1, sizeof(*s));
    struct hd_val *input = json("{\"log\":[]}");

    assert_non_null(s);
    open_world(&s->w, true);
    s->graph = read_graph(NAP);
    assert_int_equal(hd_agents_create(s->w.engine, &options, &s->agents), 0);
    peer_open(&s->peer, &s->w.uv);
    assert_int_equal(start(&s->w, s->graph, input, NULL), 0);
    hd_val_unref(input);
    s->takes = true;
    *state = s;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int teardown(void **state)
{
    struct scene *s = *state;

    if (s->w.run)
        hd_engine_run_cancel(s->w.run);
    UNTIL(&s->peer, s->w.ends == 1);
    peer_close(&s->peer);
    hd_agents_destroy(s->agents);
    close_world(&s->w);
    hd_graph_destroy(s->graph);
    free(s);
    return 0;
}

static bool on_head(void *ctx, const struct hd_reply *head)
{
    struct scene *s = ctx;

    assert_int_equal(s->ends, 0);
    assert_int_equal(s->given, 0);
    assert_null(head->error);
    s->heads++;
    if (s->cancels_head)
        hd_agent_exchange_cancel(s->exchange);
    return s->takes;
}

static void on_data(void *ctx, struct hd_slice data)
{
    struct scene *s = ctx;

    assert_int_equal(s->heads, 1);
    assert_int_equal(s->ends, 0);
    if (s->given + data.len < sizeof(s->data))
        memcpy(s->data + s->given, data.ptr, data.len);
    s->given += data.len;
    if (s->cancels)
        hd_agent_exchange_cancel(s->exchange);
}

static void on_reply(void *ctx, const struct hd_reply *reply)
{
    struct scene *s = ctx;

    s->ends++;
    s->reply = *reply;
    s->has_error = reply->error != NULL;
    snprintf(s->error, sizeof(s->error), "%s", reply->error ? reply->error : "");
    snprintf(s->body, sizeof(s->body), "%.*s", (int)reply->body.len,
             reply->body.ptr ? reply->body.ptr : "");
}

static void begin(struct scene *s, struct hd_agent_exchange_options options)
{
    char url[128];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1?key=sk-url-secret", s->peer.port);
    options.peer = options.peer ? options.peer : "model";
    options.method = "POST";
    options.url = options.url ? options.url : url;
    options.body = HD_S("{\"ask\":\"sk-body-secret\"}");
    options.on_done = on_reply;
    options.ctx = s;
    assert_err(hd_agent_exchange_start_run(s->w.run, &options, &s->exchange), 0);
    memset(url, 'X', sizeof(url)); /* the exchange has a copy */
    assert_int_equal(s->ends, 0);
}

static void post(struct scene *s, struct hd_agent_exchange_options options)
{
    s->ends = 0;
    begin(s, options);
    UNTIL(&s->peer, s->ends > 0);
    assert_int_equal(s->ends, 1);
}

#define PIECES ((struct hd_agent_exchange_options){.on_head = on_head, .on_data = on_data})

/* ---- responses -------------------------------------------------------- */

static void an_answer_is_kept(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, OK);
    post(s, (struct hd_agent_exchange_options){0});
    assert_false(s->has_error);
    assert_int_equal(s->reply.status, 200);
    assert_int_equal(s->reply.tries, 1);
    assert_string_equal(s->body, "hello");
}

static void an_answer_comes_in_pieces(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, OK);
    post(s, PIECES);
    assert_int_equal(s->heads, 1);
    assert_string_equal(s->data, "hello");
    assert_string_equal(s->body, "");
}

static void a_response_is_a_response_with_any_status(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno");
    s->takes = false;
    post(s, PIECES);
    assert_false(s->has_error);
    assert_int_equal(s->heads, 1);
    assert_int_equal(s->reply.status, 401);
    assert_string_equal(s->body, "no");
}

/* ---- retries ---------------------------------------------------------- */

static void transient_failures_are_retried(void **state)
{
    static const char *const heads[] = {"408 Late", "409 Again", "429 Many", "500 Oops",
                                        "502 Oops", "503 No",    "529 Full"};
    struct scene *s = *state;
    struct hd_agent_exchange_options options = PIECES;
    char busy[128];

    options.tries = 3;
    for (size_t i = 0; i < HD_COUNT(heads); i++) {
        snprintf(busy, sizeof(busy),
                 "HTTP/1.1 %s\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy", heads[i]);
        s->heads = 0;
        s->given = 0;
        s->peer.answer_count = 0;
        s->peer.requests = 0;
        peer_will(&s->peer, busy);
        peer_will(&s->peer, busy);
        peer_will(&s->peer, OK);
        post(s, options);
        assert_int_equal(s->heads, 1); /* of the last response only */
        assert_int_equal(s->reply.status, 200);
        assert_int_equal(s->reply.tries, 3);
        assert_int_equal(s->peer.requests, 3);
    }
}

static void the_last_try_reports_its_response(void **state)
{
    struct scene *s = *state;
    struct hd_agent_exchange_options options = PIECES;

    options.tries = 2;
    s->takes = false;
    peer_will(&s->peer, BUSY);
    post(s, options);
    assert_false(s->has_error);
    assert_int_equal(s->reply.status, 503);
    assert_int_equal(s->reply.tries, 2);
    assert_string_equal(s->body, "busy");
    assert_int_equal(s->heads, 1);
}

static void permanent_failures_are_not_retried(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
    peer_will(&s->peer, "HTTP/1.1 409 No\r\nContent-Length: 0\r\n\r\n");
    peer_will(&s->peer, "HTTP/1.1 501 No\r\nContent-Length: 0\r\n\r\n");
    post(s, (struct hd_agent_exchange_options){.tries = 3});
    assert_int_equal(s->reply.tries, 1);
    post(s, (struct hd_agent_exchange_options){.tries = 3, .peer = "mcp"});
    assert_int_equal(s->reply.tries, 1);
    post(s, (struct hd_agent_exchange_options){.tries = 3});
    assert_int_equal(s->reply.tries, 1);
}

static void without_a_word_there_is_a_pause(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    begin(s, (struct hd_agent_exchange_options){.tries = 10});
    for (int tries = 0; tries < 3;) {
        int64_t most;

        /* A pause may end before the loop notices it. */
        UNTIL(&s->peer, s->peer.requests > tries && !s->exchange->request);
        tries = s->peer.requests;
        most = INT64_C(500) << (tries - 1);
        assert_in_range(s->exchange->wait_ms, most / 2, most);
    }
    hd_agent_exchange_cancel(s->exchange);
}

static void a_connection_that_fails_is_tried_again(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, PEER_CLOSE);
    peer_will(&s->peer, OK);
    post(s, (struct hd_agent_exchange_options){.tries = 2});
    assert_false(s->has_error);
    assert_int_equal(s->reply.tries, 2);
}

static void nothing_is_tried_again_once_it_was_given_on(void **state)
{
    struct scene *s = *state;
    struct hd_agent_exchange_options options = PIECES;

    options.tries = 5;
    s->peer.closes = true;
    peer_will(&s->peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    post(s, options);
    assert_true(s->has_error);
    assert_true(s->reply.is_cut);
    assert_int_equal(s->reply.tries, 1);
    assert_int_equal(s->given, 5);
}

static void there_is_no_try_without_time_for_it(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 429 No\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n");
    post(s, (struct hd_agent_exchange_options){.tries = 2, .timeout_ms = 59000});
    assert_false(s->has_error);
    assert_int_equal(s->reply.status, 429);
    assert_int_equal(s->reply.tries, 1);
}

static void waiting_for_a_try_can_be_cancelled(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 429 No\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n");
    begin(s, (struct hd_agent_exchange_options){.tries = 2});
    UNTIL(&s->peer, s->peer.requests == 1 && !s->exchange->request);
    assert_int_equal(s->ends, 0);
    hd_agent_exchange_cancel(s->exchange);
    uv_run(&s->w.uv, UV_RUN_NOWAIT);
    assert_int_equal(s->ends, 0);
    assert_null(hd_agent_run_of(s->w.run)->exchanges);
}

static void retry_after_has_two_forms(void **state)
{
    static const int64_t now = INT64_C(1445412480) * 1000000; /* 21 Oct 2015 07:28:00 */
    static const struct {
        const char *headers;
        int64_t ms;
    } cases[] = {
        {"HTTP/1.1 429 X\r\n\r\n", -1},
        {"HTTP/1.1 429 X\r\nRetry-After: 7\r\n\r\n", 7000},
        {"retry-after:7", 7000},
        {"Retry-After: 0\r\n", 0},
        {"Retry-After: 61\r\n", 60000},
        {"Retry-After: 99999999999999999999999\r\n", 60000},
        {"Retry-After: -1\r\n", -1},
        {"Retry-After: soon\r\n", -1},
        {"Retry-After: \r\n", -1},
        {"Retry-After: Wed, 21 Oct 2015 07:28:05 GMT\r\n", 5000},
        {"Retry-After: Wed, 21 Oct 2015 07:27:05 GMT\r\n", 0},
        {"Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", 60000},
        {"Retry-After: 5\r\nRetry-After-Ms: 120\r\n", 120},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_int_equal(hd_retry_after_ms(hd_slice_cstr(cases[i].headers), now), cases[i].ms);
}

/* ---- texts ------------------------------------------------------------ */

static void expect_error(struct scene *s, const char *text)
{
    char wanted[256];

    assert_true(s->has_error);
    snprintf(wanted, sizeof(wanted), text, s->peer.port);
    assert_string_equal(s->error, wanted);
}

static void each_failure_has_its_text(void **state)
{
    struct scene *s = *state;

    s->peer.closes = true;
    peer_will(&s->peer, PEER_CLOSE);
    post(s, (struct hd_agent_exchange_options){0});
    expect_error(s, "the model server at http://127.0.0.1:%d closed the connection without a "
                    "response");
    assert_false(s->reply.is_cut);
    peer_will(&s->peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    post(s, (struct hd_agent_exchange_options){.peer = "mcp"});
    expect_error(s, "the response of the mcp server at http://127.0.0.1:%d was cut off");
    assert_true(s->reply.is_cut);
    peer_will(&s->peer, OK);
    post(s, (struct hd_agent_exchange_options){.max_body = 4});
    expect_error(s,
                 "the response of the model server at http://127.0.0.1:%d is larger than 4 bytes");
    peer_will(&s->peer, "SSH-2.0-OpenSSH_9.2p1\r\n");
    post(s, (struct hd_agent_exchange_options){0});
    expect_error(s, "the model server at http://127.0.0.1:%d sent a response that is not HTTP");
    peer_will(&s->peer, REDIRECT);
    post(s, (struct hd_agent_exchange_options){.is_direct = true});
    expect_error(s, "the model server at http://127.0.0.1:%d redirects to another address (status "
                    "307), which is not followed");
    s->peer.closes = false;
    peer_will(&s->peer, PEER_SILENCE);
    post(s, (struct hd_agent_exchange_options){.timeout_ms = 1000});
    expect_error(s, "the model server at http://127.0.0.1:%d timed out after 1000 ms");
    assert_true(s->reply.is_timeout);
    post(s, (struct hd_agent_exchange_options){.idle_ms = 40});
    expect_error(s, "the model server at http://127.0.0.1:%d sent nothing for 40 ms");
    assert_true(s->reply.is_timeout);
    peer_refuse(&s->peer);
    post(s, (struct hd_agent_exchange_options){0});
    expect_error(s, "could not connect to the model server at http://127.0.0.1:%d: connection "
                    "refused");
    post(s, (struct hd_agent_exchange_options){.url = "http://nowhere.invalid/?key=1"});
    expect_error(s, "could not resolve host nowhere.invalid of the model server");
    post(s, (struct hd_agent_exchange_options){.url = "gopher://x"});
    expect_error(s, "the address of the model server is not a valid http or https URL");
}

static void redirects_stay_within_the_server(void **state)
{
    static const struct {
        const char *from, *location, *to;
    } cases[] = {
        {"http://a/x", "/x/", "http://a/x/"},
        {"http://a/x", "http://a/y?z", "http://a/y?z"},
        {"http://a/x", "http://A:80/y", "http://a:80/y"},
        {"https://a/x", "https://a:443/y", "https://a:443/y"},
        {"http://a/x", "https://a/x", NULL},
        {"https://a/x", "http://a/x", NULL},
        {"http://a/x", "http://a:81/x", NULL},
        {"http://a/x", "//b/x", NULL},
        {"http://a/x", "http://b/x", NULL},
        {"http://a/x", "http://a@b/x", NULL},
        {"http://a/x", "", NULL},
        {"nothing at all", "/x", NULL},
    };
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 100000);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_slice location = hd_slice_cstr(cases[i].location);
        const char *to = hd_redirect_within(cases[i].from, location, &arena);

        if (!cases[i].to)
            assert_null(to);
        else
            assert_true(to && strcasecmp(to, cases[i].to) == 0);
    }
    hd_arena_fini(&arena);
}

static void a_slash_behind_it_is_the_same_server(void **state)
{
    struct scene *s = *state;
    struct hd_agent_exchange_options options = PIECES;

    options.is_direct = true;
    peer_will(&s->peer, "HTTP/1.1 307 There\r\nLocation: /v1/\r\nContent-Length: 0\r\n\r\n");
    peer_will(&s->peer, OK);
    post(s, options);
    assert_false(s->has_error);
    assert_int_equal(s->reply.status, 200);
    assert_int_equal(s->reply.tries, 1);
    assert_int_equal(s->heads, 1);
    assert_memory_equal(s->peer.last, "POST /v1/ HTTP", 14);
    assert_non_null(strstr(s->peer.last, "sk-body-secret"));
}

static void redirects_come_to_an_end(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, "HTTP/1.1 307 There\r\nLocation: /v1/\r\nContent-Length: 0\r\n\r\n");
    post(s, (struct hd_agent_exchange_options){.is_direct = true});
    assert_true(s->has_error);
    assert_int_equal(s->peer.requests, 4);
    s->peer.answer_count = 0;
    s->peer.requests = 0;
    peer_will(&s->peer, "HTTP/1.1 302 There\r\nLocation: /v1/\r\nContent-Length: 0\r\n\r\n");
    post(s, (struct hd_agent_exchange_options){.is_direct = true});
    assert_true(s->has_error);
    assert_int_equal(s->peer.requests, 1);
}

static void headers_have_one_line(void **state)
{
    static const char *const line = "X-A: 1\r\nX-B: 2";
    struct scene *s = *state;
    const struct hd_agent_exchange_options options = {.peer = "mcp",
                                                      .method = "GET",
                                                      .url = "http://127.0.0.1/",
                                                      .headers = &line,
                                                      .header_count = 1};

    assert_err(hd_agent_exchange_start_run(s->w.run, &options, &s->exchange), HD_EINVAL);
    assert_null(hd_agent_run_of(s->w.run)->exchanges);
}

static void tls_failures_are_named(void **state)
{
    struct scene *s = *state;
    char url[64];

    peer_will(&s->peer, OK);
    snprintf(url, sizeof(url), "https://u:pw-secret@127.0.0.1:%d/", s->peer.port);
    s->peer.closes = true;
    begin(s, (struct hd_agent_exchange_options){.url = url});
    UNTIL(&s->peer, s->peer.conns && s->peer.conns->len > 0);
    for (struct peer_conn *conn = s->peer.conns; conn; conn = conn->next)
        peer_answer(conn); /* plain text where TLS belongs */
    UNTIL(&s->peer, s->ends > 0);
    assert_true(s->has_error);
    assert_memory_equal(s->error, "TLS with the model server at 127.0.0.1:", 39);
    assert_null(strstr(s->error, "pw-secret"));
}

static void secrets_are_masked(void **state)
{
    const struct hd_slice secrets[] = {HD_S("abc"), HD_S("abcdef"), HD_S("x y"), HD_S(""),
                                       HD_S("ab")};
    static const char *const cases[][2] = {
        {"", ""},           {"nothing", "nothing"},   {"abc", "***"},     {"abcdef", "***"},
        {"abcde", "***de"}, {"-abcabc-", "-******-"}, {"ab ab", "ab ab"}, {"a x y b", "a *** b"},
    };
    struct hd_buf out;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        hd_buf_init(&out, 1000);
        assert_err(hd_mask(&out, hd_slice_cstr(cases[i][0]), secrets, HD_COUNT(secrets)), 0);
        assert_slice(hd_buf_slice(&out), hd_slice_cstr(cases[i][1]));
        hd_buf_fini(&out);
    }
}

static void a_host_that_is_a_secret_is_not_shown(void **state)
{
    const struct hd_slice secret = HD_S("nowhere");
    struct scene *s = *state;

    post(s, (struct hd_agent_exchange_options){
                .url = "http://nowhere.invalid/", .secrets = &secret, .secret_count = 1});
    assert_string_equal(s->error, "could not resolve host ***.invalid of the model server");
}

static void headers_are_found(void **state)
{
    struct hd_slice headers = HD_S("HTTP/1.1 200 OK\r\nA: 1\r\nb:2 \r\nB:\t3\r\nEmpty:\r\n\r\n");

    (void)state;
    assert_slice(hd_header_find(headers, "a"), HD_S("1"));
    assert_slice(hd_header_find(headers, "B"), HD_S("3"));
    assert_non_null(hd_header_find(headers, "empty").ptr);
    assert_null(hd_header_find(headers, "HTTP/1.1 200 OK").ptr);
    assert_null(hd_header_find(headers, "c").ptr);
    assert_null(hd_header_find(hd_slice(NULL, 0), "c").ptr);
}

/* ---- cancellation and back-pressure ----------------------------------- */

static void cancelling_closes_the_connection(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, PEER_SILENCE);
    begin(s, PIECES);
    UNTIL(&s->peer, s->peer.requests == 1);
    hd_agent_exchange_cancel(s->exchange);
    assert_null(hd_agent_run_of(s->w.run)->exchanges);
    UNTIL(&s->peer, s->peer.gone == 1);
    assert_int_equal(s->ends, 0);
}

static void callbacks_may_cancel(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, OK);
    s->cancels = true;
    begin(s, PIECES);
    UNTIL(&s->peer, s->given > 0);
    s->cancels_head = true;
    s->heads = 0;
    s->given = 0;
    begin(s, PIECES);
    UNTIL(&s->peer, s->heads > 0);
    uv_run(&s->w.uv, UV_RUN_NOWAIT);
    assert_int_equal(s->given, 0);
    assert_int_equal(s->ends, 0);
    assert_null(hd_agent_run_of(s->w.run)->exchanges);
}

static void wait_for_a_jam(struct scene *s)
{
    s->peer.blocked = 0;
    UNTIL(&s->peer, s->peer.blocked > 100 || s->peer.sent == MUCH);
    assert_true(s->peer.sent - s->given < MUCH / 2);
}

static void a_run_that_is_held_does_not_read(void **state)
{
    struct scene *s = *state;
    struct hd_agent_exchange_options options = PIECES;
    size_t given;

    options.idle_ms = 60000;
    peer_will(&s->peer, FLOOD);
    s->peer.flood = MUCH;
    begin(s, options);
    UNTIL(&s->peer, s->given > 0);
    hd_engine_run_hold(s->w.run, true);
    given = s->given;
    wait_for_a_jam(s);
    assert_int_equal(s->given, given);
    hd_engine_run_hold(s->w.run, false);
    UNTIL(&s->peer, s->given > given);
    hd_engine_run_hold(s->w.run, true);
    wait_for_a_jam(s);
    hd_engine_run_hold(s->w.run, false);
    UNTIL(&s->peer, s->ends == 1);
    assert_false(s->has_error);
    assert_int_equal(s->given, MUCH);
}

static void a_request_that_begins_while_held_waits(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, FLOOD);
    s->peer.flood = MUCH;
    hd_engine_run_hold(s->w.run, true);
    begin(s, PIECES);
    UNTIL(&s->peer, s->heads > 0);
    wait_for_a_jam(s);
    assert_true(s->given < 100000);
    hd_agent_exchange_cancel(s->exchange);
    UNTIL(&s->peer, s->peer.gone == 1);
}

/* A response that is not streamed is read even while the run is held. */
static void held_runs_still_get_whole_answers(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, OK);
    hd_engine_run_hold(s->w.run, true);
    post(s, (struct hd_agent_exchange_options){0});
    assert_string_equal(s->body, "hello");
}

/* ---- detached --------------------------------------------------------- */

static void detached_ones_outlive_the_run(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, PEER_SILENCE);
    begin(s,
          (struct hd_agent_exchange_options){.is_detached = true, .timeout_ms = 2000, .tries = 5});
    assert_null(hd_agent_run_of(s->w.run)->exchanges);
    hd_engine_run_cancel(s->w.run);
    UNTIL(&s->peer, s->w.ends == 1 && s->ends == 1);
    assert_true(s->reply.is_timeout);
    assert_int_equal(s->peer.requests, 1);
}

static void detached_ones_end_with_the_engine(void **state)
{
    struct scene *s = *state;

    peer_will(&s->peer, PEER_SILENCE);
    begin(s, (struct hd_agent_exchange_options){.is_detached = true});
    UNTIL(&s->peer, s->peer.requests == 1);
    /* teardown() checks that the loop ends and nothing leaks */
}

/* ---- recordings ------------------------------------------------------- */

static void add_record(struct scene *s, const char *name, struct hd_slice text)
{
    size_t len = strlen(s->record);

    snprintf(s->record + len, sizeof(s->record) - len, "%s=%.*s\n", name, (int)text.len,
             text.ptr ? text.ptr : "");
}

static void add_request(struct scene *s, const struct hd_record_request *request)
{
    const char *path = memmem(request->url.ptr, request->url.len, "/v1", 3);

    s->record[0] = '\0';
    assert_ptr_equal(request->run, s->w.run);
    assert_non_null(path);
    add_record(s, "peer", request->peer);
    add_record(s, "method", request->method);
    add_record(s, "path", hd_slice(path, request->url.len - (size_t)(path - request->url.ptr)));
    add_record(s, "headers", request->headers);
    add_record(s, "body", request->body);
}

static void wrote(void *ctx, const struct hd_record_request *request,
                  const struct hd_record_answer *answer)
{
    struct scene *s = *(struct scene **)ctx;

    s->wrote++;
    add_request(s, request);
    add_record(s, "headers", answer->headers);
    add_record(s, "body", answer->body);
    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->tries, 2);
    assert_false(answer->is_partial);
}

static bool answer(void *ctx, const struct hd_record_request *request, struct hd_record_answer *out)
{
    struct scene *s = *(struct scene **)ctx;

    s->asked++;
    add_request(s, request);
    *out = s->answer;
    return true;
}

static struct scene *recorded;
static struct hd_recorder recorder = {.wrote = wrote, .ctx = &recorded};
static struct hd_recorder player = {.wrote = wrote, .answer = answer, .ctx = &recorded};

static int setup_recorder(void **state)
{
    int err = setup_with(state, &recorder);

    recorded = *state;
    return err;
}

static int setup_player(void **state)
{
    int err = setup_with(state, &player);

    recorded = *state;
    return err;
}

static const char *const lines[] = {"Content-Type: application/json", "Authorization: Bearer tok-1",
                                    "X-Api-Key: key-2", "X-Note: tok-1 is key-2"};
static const struct hd_slice known[] = {HD_S_INIT("sk-url-secret"), HD_S_INIT("sk-body-secret")};

#define REQUEST_RECORD                             \
    "peer=model\nmethod=POST\npath=/v1?key=***\n"  \
    "headers=Content-Type: application/json\r\n\n" \
    "body={\"ask\":\"***\"}\n"

static struct hd_agent_exchange_options with_secrets(struct hd_agent_exchange_options options)
{
    options.headers = lines;
    options.header_count = HD_COUNT(lines);
    options.secrets = known;
    options.secret_count = HD_COUNT(known);
    return options;
}

static void recordings_have_no_secrets(void **state)
{
    struct scene *s = *state;
    struct hd_agent_exchange_options options = with_secrets(PIECES);

    peer_will(&s->peer, BUSY);
    peer_will(&s->peer, "HTTP/1.1 200 OK\r\nSet-Cookie: s=1\r\nContent-Length: 13\r\n\r\n"
                        "you are tok-1");
    options.tries = 2;
    for (int i = 0; i < 2; i++) {
        s->peer.requests = 0;
        s->heads = 0;
        s->given = 0;
        s->takes = i == 0; /* streamed, and recorded */
        post(s, options);
        assert_int_equal(s->wrote, i + 1);
        assert_string_equal(s->record, REQUEST_RECORD "headers=HTTP/1.1 200 OK\r\n"
                                                      "Content-Length: 13\r\n\n"
                                                      "body=you are ***\n");
    }
    assert_non_null(strstr(s->peer.last, "Authorization: Bearer tok-1"));
    post(s, (struct hd_agent_exchange_options){.is_detached = true});
    assert_int_equal(s->wrote, 2);
}

static void recordings_answer(void **state)
{
    struct scene *s = *state;

    s->answer = (struct hd_record_answer){.status = 200, .body = HD_S("hello"), .tries = 1};
    post(s, with_secrets(PIECES));
    assert_string_equal(s->record, REQUEST_RECORD);
    assert_string_equal(s->data, "hello");
    assert_false(s->has_error);
    post(s, with_secrets((struct hd_agent_exchange_options){0}));
    assert_string_equal(s->body, "hello");
    s->answer = (struct hd_record_answer){.error = "refused"};
    post(s, with_secrets(PIECES));
    assert_string_equal(s->error, "refused");
    assert_int_equal(s->asked, 3);
    post(s, (struct hd_agent_exchange_options){.is_detached = true});
    assert_true(s->has_error);
    assert_int_equal(s->peer.connections, 0);
    assert_int_equal(s->wrote, 0);
}

static void replays_can_be_cancelled(void **state)
{
    struct scene *s = *state;

    s->answer = (struct hd_record_answer){.status = 200, .body = HD_S("hello"), .tries = 1};
    begin(s, PIECES);
    hd_agent_exchange_cancel(s->exchange);
    s->cancels = true;
    begin(s, PIECES);
    UNTIL(&s->peer, s->given > 0);
    s->heads = 0;
    s->given = 0;
    s->cancels_head = true;
    begin(s, PIECES);
    UNTIL(&s->peer, s->heads > 0);
    uv_run(&s->w.uv, UV_RUN_NOWAIT);
    assert_int_equal(s->given, 0);
    assert_int_equal(s->ends, 0);
}

/* ---- memory ----------------------------------------------------------- */

static void memory_may_be_out(void **state)
{
    struct scene *s = *state;
    long n = 0;
    int err = HD_ENOMEM;

    peer_will(&s->peer, PEER_SILENCE);
    while (err) {
        struct hd_agent_exchange_options options = with_secrets(PIECES);

        options.peer = "model";
        options.method = "GET";
        options.url = "http://127.0.0.1/";
        options.on_done = on_reply;
        (void)hd_alloc_fail_at(++n, 0);
        err = hd_agent_exchange_start_run(s->w.run, &options, &s->exchange);
        (void)hd_alloc_fail_at(0, 0);
        assert_true(err == 0 || err == HD_ENOMEM);
    }
    assert_true(n > 3);
    hd_agent_exchange_cancel(s->exchange);
    assert_int_equal(s->ends, 0);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(an_answer_is_kept),
        CASE(an_answer_comes_in_pieces),
        CASE(a_response_is_a_response_with_any_status),
        CASE(transient_failures_are_retried),
        CASE(the_last_try_reports_its_response),
        CASE(permanent_failures_are_not_retried),
        CASE(without_a_word_there_is_a_pause),
        CASE(a_connection_that_fails_is_tried_again),
        CASE(nothing_is_tried_again_once_it_was_given_on),
        CASE(there_is_no_try_without_time_for_it),
        CASE(waiting_for_a_try_can_be_cancelled),
        cmocka_unit_test(retry_after_has_two_forms),
        CASE(each_failure_has_its_text),
        cmocka_unit_test(redirects_stay_within_the_server),
        CASE(a_slash_behind_it_is_the_same_server),
        CASE(redirects_come_to_an_end),
        CASE(headers_have_one_line),
        CASE(tls_failures_are_named),
        cmocka_unit_test(secrets_are_masked),
        CASE(a_host_that_is_a_secret_is_not_shown),
        cmocka_unit_test(headers_are_found),
        CASE(cancelling_closes_the_connection),
        CASE(callbacks_may_cancel),
        CASE(a_run_that_is_held_does_not_read),
        CASE(a_request_that_begins_while_held_waits),
        CASE(held_runs_still_get_whole_answers),
        CASE(detached_ones_outlive_the_run),
        CASE(detached_ones_end_with_the_engine),
        cmocka_unit_test_setup_teardown(recordings_have_no_secrets, setup_recorder, teardown),
        cmocka_unit_test_setup_teardown(recordings_answer, setup_player, teardown),
        cmocka_unit_test_setup_teardown(replays_can_be_cancelled, setup_player, teardown),
        CASE(memory_may_be_out),
    };
#undef CASE

    (void)unsetenv("http_proxy"); /* set in the environment of the tests */
    (void)unsetenv("https_proxy");
    (void)unsetenv("HTTPS_PROXY");
    (void)unsetenv("all_proxy");
    (void)unsetenv("ALL_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
