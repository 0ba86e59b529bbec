/* A cancelled run ends, regardless of the operation that it waits for. Everything here waits for an
 * hour, so a run that does not stop at once makes the test time out. */
#include "tests/unit/engine_world.h"

#define HOUR "3600000"
#define LOG "\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"},"
#define MESSAGES "\"messages\":{\"reducer\":\"messages\"}},"
#define ONE(node)                                              \
    "{\"name\":\"one\"," LOG MESSAGES "\"nodes\":{\"n\":" node \
    "},\"edges\":[[\"__start__\",\"n\"]]}"

#define INNER(name, nodes, edges) \
    "\"" name "\":{" LOG MESSAGES "\"nodes\":{" nodes "},\"edges\":[" edges "]}"
#define SLEEP "{\"kind\":\"sleep\",\"ms\":" HOUR "}"

/* Three levels with several running tasks each. */
#define DEEP                                                                                  \
    "{\"name\":\"deep\"," LOG MESSAGES                                                        \
    "\"graphs\":{" INNER("two",                                                               \
                         "\"a\":{\"kind\":\"subgraph\",\"graph\":\"three\"},"                 \
                         "\"b\":" SLEEP ",\"c\":{\"kind\":\"subgraph\",\"graph\":\"three\"}", \
                         "[\"__start__\",\"a\"],[\"__start__\",\"b\"],[\"__start__"           \
                         "\",\"c\"]") "," INNER("three", "\"x\":" SLEEP ",\"y\":" SLEEP,      \
                                                "[\"__start__\",\"x\"],[\"__start__"          \
                                                "\",\"y\"]") "},\"nodes\":{\"s\":{"           \
                                                             "\"kind\":\"subgraph\","         \
                                                             "\"graph\":\"two\"},"            \
                                                             "\"t\":{\"kind\":"               \
                                                             "\"subgraph\","                  \
                                                             "\"graph\":\"two\"}},"           \
                                                             "\"edges\":[[\"__start_"         \
                                                             "_\",\"s\"],[\"__start_"         \
                                                             "_\",\"t\"]]}"

static void a_cancel_stops_every_kind_of_wait(void **unused)
{
    static const char *const graphs[] = {
        DEEP,
        ONE(SLEEP),
        ONE("{\"kind\":\"script\",\"replies\":[{\"content\":\"late\",\"delay_ms\":" HOUR "}]}"),
        ONE("{\"kind\":\"script\",\"replies\":[{\"content\":\"one two\"}],"
            "\"stream\":{\"by\":\"word\",\"delay_ms\":" HOUR "}}"),
        ONE("{\"kind\":\"fail\",\"error\":\"again\",\"retry\":{\"attempts\":3,"
            "\"delay_ms\":" HOUR "}}"),
    };
    struct world w;

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(graphs); i++) {
        struct hd_graph *graph = read_graph(graphs[i]);

        for (int direct = 0; direct < 2; direct++) {
            open_world(&w, direct);
            cancel_on(&w, graph, HD_EVENT_TASK, i == 0 ? "y" : "n");
            assert_int_equal(w.step, 0);
            assert_int_equal(w.stopped_at, 1);
            close_world(&w);
        }
        hd_graph_destroy(graph);
    }
}

/* ---- requests --------------------------------------------------------- */

/* A server that accepts one connection and sends no response. It cancels the run and notices that
 * the connection is closed. */
struct silent {
    struct world *world;
    uv_tcp_t server, peer;
    bool was_asked, was_left;
};

static void give_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char room[4096];

    (void)handle;
    (void)size;
    *buf = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct silent *s = stream->data;

    (void)buf;
    if (got > 0 && !s->was_asked)
        hd_engine_run_cancel(s->world->run);
    s->was_asked = s->was_asked || got > 0;
    if (got >= 0)
        return;
    s->was_left = true;
    uv_close((uv_handle_t *)&s->peer, NULL);
    uv_close((uv_handle_t *)&s->server, NULL);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct silent *s = server->data;

    assert_int_equal(status, 0);
    assert_int_equal(uv_tcp_init(server->loop, &s->peer), 0);
    s->peer.data = s;
    assert_int_equal(uv_accept(server, (uv_stream_t *)&s->peer), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&s->peer, give_room, on_read), 0);
}

static int open_silent(struct silent *s, struct world *w)
{
    struct sockaddr_in at;
    int len = sizeof(at);

    memset(s, 0, sizeof(*s));
    s->world = w;
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &at), 0);
    assert_int_equal(uv_tcp_init(&w->uv, &s->server), 0);
    s->server.data = s;
    assert_int_equal(uv_tcp_bind(&s->server, (const struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&s->server, 1, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&s->server, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void a_request_is_given_up(void **unused)
{
    struct silent s;
    struct hd_graph *graph;
    struct world w;
    char text[512];

    (void)unused;
    open_world(&w, true);
    snprintf(text, sizeof(text),
             ONE("{\"kind\":\"http\",\"url\":\"http://127.0.0.1:%d/\",\"timeout_ms\":" HOUR "}"),
             open_silent(&s, &w));
    graph = read_graph(text);
    cancel_on(&w, graph, HD_EVENT_TASK, "");
    assert_true(s.was_asked);
    assert_true(s.was_left); /* the connection was closed before uv_run() returned */
    close_world(&w);
    hd_graph_destroy(graph);
}

/* ---- from an event ------------------------------------------------------ */

struct canceller {
    struct world world;
    enum hd_event_type at;
    int told, told_after;
    bool is_cancelled;
};

static void cancel_at(void *ctx, const struct hd_event *event)
{
    struct canceller *c = ctx;

    c->told++;
    c->told_after += c->is_cancelled;
    if (event->type == c->at && !c->is_cancelled) {
        c->is_cancelled = true;
        hd_engine_run_cancel(c->world.run);
    }
}

/* on_done of the world, which is the first member. */
static void cancelling_from_an_event_is_fine(void **unused)
{
    static const enum hd_event_type types[] = {
        HD_EVENT_GRAPH,  HD_EVENT_CHECKPOINT, HD_EVENT_TASK,  HD_EVENT_TASK_RESULT,
        HD_EVENT_UPDATE, HD_EVENT_VALUES,     HD_EVENT_MODEL, HD_EVENT_MESSAGE};
    struct hd_graph *graph = read_graph(
        "{\"name\":\"talk\"," LOG MESSAGES
        "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[\"a\"]}},"
        "\"b\":{\"kind\":\"script\",\"replies\":[{\"content\":\"one two\"}],\"stream\":{}},"
        "\"c\":" SLEEP "},\"edges\":[[\"__start__\",\"a\"],[\"a\",\"b\"],[\"b\",\"c\"]]}");
    struct hd_val *in = json("{\"log\":[\"in\"]}");

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(types); i++) {
        struct canceller c = {.at = types[i]};
        struct hd_engine_run_options options = {.graph = graph,
                                                .thread = HD_S("t"),
                                                .input = in,
                                                .on_event = cancel_at,
                                                .on_done = on_done,
                                                .ctx = &c};

        open_world(&c.world, i % 2);
        assert_int_equal(hd_engine_run_start(c.world.engine, &options, &c.world.run), 0);
        uv_run(&c.world.uv, UV_RUN_DEFAULT);
        assert_int_equal(c.world.ends, 1);
        assert_int_equal(c.world.status, HD_ENGINE_RUN_CANCELLED);
        assert_end_is_state(&c.world, graph);
        close_world(&c.world);
    }
    hd_val_unref(in);
    hd_graph_destroy(graph);
}

/* A second cancel, or one after the end, has no effect. */
static void cancelling_again_does_nothing(void **unused)
{
    struct hd_graph *graph = read_graph(DEEP);
    struct hd_val *in = json("{\"log\":[\"in\"]}");
    struct world w;

    (void)unused;
    open_world(&w, false);
    assert_int_equal(start(&w, graph, in, NULL), 0);
    hd_engine_run_cancel(w.run);
    hd_engine_run_cancel(w.run);
    uv_run(&w.uv, UV_RUN_DEFAULT);
    assert_int_equal(w.ends, 1);
    assert_int_equal(w.status, HD_ENGINE_RUN_CANCELLED);
    assert_string_equal(w.checkpoint_id, "");
    hd_val_unref(in);
    close_world(&w);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_stops_every_kind_of_wait),
        cmocka_unit_test(a_request_is_given_up),
        cmocka_unit_test(cancelling_from_an_event_is_fine),
        cmocka_unit_test(cancelling_again_does_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
