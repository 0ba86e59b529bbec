/* The source `mcp` on an engine, with an MCP server on the same loop: every allocation fails in
 * turn. */
#include "tests/unit/engine_world.h"

#include "agent/agent.h"
#include "base/log.h"
#include "tests/unit/peer.h"

#define GRAPH                                                                                   \
    "{\"name\":\"g\",\"state\":{\"messages\":{\"reducer\":\"messages\"},\"calls\":{}},"         \
    "\"nodes\":{\"begin\":{\"kind\":\"set\",\"update\":{}},\"tools\":{\"kind\":\"tools\","      \
    "\"sources\":[{\"mcp\":\"{{config.mcp_config}}\"}]}},\"edges\":[[\"__start__\",\"begin\"]," \
    "{\"from\":\"begin\",\"fanout\":{\"over\":\"{{calls}}\",\"as\":\"call\",\"to\":\"tools\","  \
    "\"arg\":{\"call\":\"{{call}}\"}}}]}"
#define INPUT "{\"messages\":[],\"calls\":[{\"name\":\"echo\",\"args\":{},\"id\":\"c1\"}]}"

#define JSON_ANSWER(more, body) \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n" more "\r\n" body
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}"
#define ACCEPTED "HTTP/1.1 202 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define LISTED                                                                                 \
    JSON_ANSWER("", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"echo\"," \
                    "\"description\":\"d\",\"inputSchema\":{\"type\":\"object\"},"             \
                    "\"annotations\":{\"readOnlyHint\":true}}]}}")
#define NO_STREAM "HTTP/1.1 405 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define STREAMED                                                                       \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"  \
    "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"    \
    "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\"," \
    "\"text\":\"fine\"}],\"structuredContent\":{\"n\":1}}}\n\n"

#define PATIENCE_US 300000

struct scene {
    struct world w;
    struct peer *peer;
    struct peer *old[4096]; /* servers of earlier runs; late requests to them do not matter */
    size_t old_count;
    const char *const *answers;
    struct hd_graph *graph;
    struct hd_val *config;
    bool is_fine; /* the tool returned the expected result */
};

/* Each run has a separate server. */
static void renew_peer(struct scene *s)
{
    char text[128];

    if (s->peer) {
        peer_close(s->peer);
        s->old[s->old_count++] = s->peer;
        assert_true(s->old_count < HD_COUNT(s->old));
    }
    s->peer = calloc(1, sizeof(*s->peer));
    assert_non_null(s->peer);
    peer_open(s->peer, &s->w.uv);
    s->peer->closes = true;
    for (size_t i = 0; i < 6; i++)
        peer_will(s->peer, s->answers[i]);
    hd_val_unref(s->config);
    snprintf(text, sizeof(text), "{\"mcp_config\":{\"url\":\"http://127.0.0.1:%d\"}}",
             s->peer->port);
    s->config = json(text);
}

static void open_scene(struct scene *s, const char *const *answers)
{

    hd_agent_kinds();
    hd_log_set_level(HD_LOG_OFF);
    memset(s, 0, sizeof(*s));
    open_world(&s->w, true);
    s->graph = read_graph(GRAPH);
    s->answers = answers;
}

static void close_scene(struct scene *s)
{
    peer_close(s->peer);
    hd_val_unref(s->config);
    close_world(&s->w);
    hd_graph_destroy(s->graph);
    while (s->old_count > 0)
        free(s->old[--s->old_count]);
    free(s->peer);
}

static void on_end(void *ctx, const struct hd_engine_run_result *result)
{
    struct scene *s = ctx;
    const struct hd_val *message = hd_val_at(hd_val_get(result->output, HD_S("messages")), 0);

    s->w.ends++;
    s->w.status = result->status;
    s->is_fine =
        hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("content"))), HD_S("fine")) &&
        hd_val_is_true(
            hd_val_get(hd_val_get(message, HD_S("additional_kwargs")), HD_S("read_only")));
}

/* Runs the loop until the run has ended, or hangs since the n-th allocation failed. Returns the
 * number of allocations. */
static long run_until_stuck(struct scene *s, long n)
{
    long asked = 0;

    for (;;) {
        int64_t began = hd_clock_monotonic_us();

        UNTIL(s->peer, s->w.ends > 0 || hd_clock_monotonic_us() - began > PATIENCE_US);
        asked += hd_alloc_fail_at(0, 0);
        if (s->w.ends > 0 || asked >= n)
            return asked;
        (void)hd_alloc_fail_at(n - asked, 0); /* the run is only slow */
    }
}

/* Runs once with the n-th allocation failing. Returns the number of allocations. */
static long run_once(struct scene *s, long n)
{
    struct hd_val *input = json(INPUT);
    char thread[32];
    struct hd_engine_run_options options = {
        .graph = s->graph, .input = input, .config = s->config, .on_done = on_end, .ctx = s};
    long asked;
    int err;

    renew_peer(s);
    options.config = s->config;
    snprintf(thread, sizeof(thread), "t%ld", n);
    options.thread = hd_slice_cstr(thread);
    s->w.ends = 0;
    s->is_fine = false;
    (void)hd_alloc_fail_at(n, 0);
    err = hd_engine_run_start(s->w.engine, &options, &s->w.run);
    asked = err ? hd_alloc_fail_at(0, 0) : run_until_stuck(s, n);
    /* A connection that could not be polled would block the run until its timeout. */
    if (!err && s->w.ends == 0)
        hd_engine_run_cancel(s->w.run);
    UNTIL(s->peer, err || s->w.ends > 0);
    hd_val_unref(input);
    return asked;
}

static void it_survives_without_memory(void **state)
{
    static const char *const answers[] = {
        JSON_ANSWER("", INITIALIZED), ACCEPTED, LISTED, STREAMED, ACCEPTED, ACCEPTED};
    static struct scene s;
    long n = 0;

    (void)state;
    open_scene(&s, answers);
    do {
        n++;
    } while (run_once(&s, n) >= n);
    assert_int_equal(s.w.status, HD_ENGINE_RUN_DONE);
    assert_true(s.is_fine);
    close_scene(&s);
}

static void it_is_cancelled_at_any_time(void **state)
{
    static const char *const answers[] = {JSON_ANSWER("Mcp-Session-Id: s\r\n", INITIALIZED),
                                          ACCEPTED,
                                          LISTED,
                                          NO_STREAM,
                                          PEER_SILENCE,
                                          ACCEPTED};
    static struct scene s;

    (void)state;
    open_scene(&s, answers);
    for (int at = 0; at <= 5; at++) {
        struct hd_val *input = json(INPUT);
        struct hd_engine_run_options options = {
            .graph = s.graph, .thread = HD_S("t"), .input = input, .on_done = on_end, .ctx = &s};

        renew_peer(&s);
        options.config = s.config;
        s.w.ends = 0;
        assert_int_equal(hd_engine_run_start(s.w.engine, &options, &s.w.run), 0);
        UNTIL(s.peer, s.peer->requests >= at);
        hd_engine_run_cancel(s.w.run);
        UNTIL(s.peer, s.w.ends > 0);
        assert_int_equal(s.w.status, HD_ENGINE_RUN_CANCELLED);
        hd_val_unref(input);
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_survives_without_memory),
        cmocka_unit_test(it_is_cancelled_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
