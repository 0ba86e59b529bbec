/* Messages to and from workers about runs: run/runner_worker_text.h. */
#include "run/runner_worker_text.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "run/runner_internal.h"
#include "tests/unit/check.h"

static struct hd_val *parse(const char *text)
{
    struct hd_val *val = NULL;

    assert_int_equal(hd_val_parse_json(hd_slice_cstr(text), &val, NULL), 0);
    return val;
}

static void assert_text(struct hd_slice text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.ptr ? text.ptr : "", wanted, text.len);
}

static void assert_json(struct hd_slice text, const char *wanted)
{
    struct hd_json a = {NULL}, b = {NULL};

    assert_int_equal(hd_json_parse(&a, text, NULL), 0);
    assert_int_equal(hd_json_parse(&b, hd_slice_cstr(wanted), NULL), 0);
    if (!hd_json_equal(hd_json_root(&a), hd_json_root(&b)))
        fail_msg("%.*s is not %s", (int)text.len, text.ptr, wanted);
    hd_json_fini(&a);
    hd_json_fini(&b);
}

/* ---- runs ------------------------------------------------------------- */

struct world {
    struct hd_app_graph graph;
    struct hd_val *input, *command, *config, *secrets, *context, *metadata, *map;
    struct hd_runner_options options;
    struct hd_buf head, blob;
};

static int open_world(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    *state = w;
    w->graph = (struct hd_app_graph){.id = HD_S("chat"), .is_remote = true};
    w->input = parse("{\"messages\":[\"hi\"]}");
    w->config = parse("{\"configurable\":{\"run_id\":\"r\",\"checkpoint_ns\":\"assistant:a\","
                      "\"checkpoint_id\":\"c\",\"key\":\"heddle:secret:key\",\"n\":1},"
                      "\"tags\":[\"t\"],\"recursion_limit\":7}");
    w->secrets = parse("{\"heddle:secret:key\":\"sk-something-long\"}");
    w->context = parse("{\"token\":\"heddle:secret:key\"}");
    w->metadata = parse("{\"run_id\":\"r\",\"graph_id\":\"chat\"}");
    w->map = parse("{\"\":\"c\"}");
    w->options = (struct hd_runner_options){.graph = &w->graph,
                                            .run_id = HD_S("r"),
                                            .assistant_id = HD_S("a"),
                                            .thread = HD_S("t"),
                                            .attempt = 1,
                                            .checkpoint_id = HD_S("c"),
                                            .checkpoint_map = w->map,
                                            .input = w->input,
                                            .config = w->config,
                                            .secrets = w->secrets,
                                            .context = w->context,
                                            .metadata = w->metadata,
                                            .modes = HD_STREAM_VALUES | HD_STREAM_EVENTS};
    hd_buf_init(&w->head, 1 << 20);
    hd_buf_init(&w->blob, 1 << 20);
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;

    hd_val_unref(w->input);
    hd_val_unref(w->command);
    hd_val_unref(w->config);
    hd_val_unref(w->secrets);
    hd_val_unref(w->context);
    hd_val_unref(w->metadata);
    hd_val_unref(w->map);
    hd_buf_fini(&w->head);
    hd_buf_fini(&w->blob);
    free(w);
    return 0;
}

/* The worker receives secrets, but not the location of the checkpoints. */
static void a_run_is_written(void **state)
{
    struct world *w = *state;

    assert_int_equal(hd_runner_text_write_run(&w->options, NULL, NULL, &w->head, &w->blob), 0);
    assert_json(
        hd_buf_slice(&w->head),
        "{\"op\":\"run\",\"graph\":\"chat\",\"run_id\":\"r\",\"thread_id\":\"t\","
        "\"assistant_id\":\"a\",\"attempt\":1,\"modes\":[\"values\",\"events\"],"
        "\"subgraphs\":false,\"durability\":\"async\",\"checkpoint_ns\":\"\","
        "\"config\":{\"configurable\":{\"run_id\":\"r\",\"key\":\"sk-something-long\","
        "\"n\":1,\"thread_id\":\"t\"},\"metadata\":{\"run_id\":\"r\",\"graph_id\":\"chat\"},"
        "\"tags\":[\"t\"],\"recursion_limit\":7},"
        "\"context\":{\"token\":\"sk-something-long\"},"
        "\"checkpoint_id\":\"c\",\"checkpoint_map\":{\"\":\"c\"},\"input\":{\"$blob\":0}}");
    assert_json(hd_buf_slice(&w->blob), "{\"messages\":[\"hi\"]}");
}

static hd_json_val member(const struct hd_json *json, const char *name)
{
    return hd_json_get(hd_json_root(json), hd_slice_cstr(name));
}

/* A run that has checkpoints continues from them: it gets no input and no start checkpoint. */
static void a_continued_run_has_no_input(void **state)
{
    struct world *w = *state;
    struct hd_json json = {NULL};
    int64_t attempt = 0;

    w->options.attempt = 2;
    w->options.is_continued = true;
    assert_int_equal(hd_runner_text_write_run(&w->options, NULL, NULL, &w->head, &w->blob), 0);
    assert_int_equal(hd_json_parse(&json, hd_buf_slice(&w->head), NULL), 0);
    assert_true(hd_json_int(member(&json, "attempt"), &attempt));
    assert_int_equal(attempt, 2);
    assert_null(member(&json, "input"));
    assert_null(member(&json, "checkpoint_id"));
    assert_null(member(&json, "checkpoint_map"));
    assert_int_equal(w->blob.len, 0);
    hd_json_fini(&json);
}

static void a_command_stands_for_the_input(void **state)
{
    struct world *w = *state;
    struct hd_json json = {NULL};

    w->command = parse("{\"resume\":7}");
    w->options.command = w->command;
    assert_int_equal(hd_runner_text_write_run(&w->options, NULL, NULL, &w->head, &w->blob), 0);
    assert_int_equal(hd_json_parse(&json, hd_buf_slice(&w->head), NULL), 0);
    assert_null(member(&json, "input"));
    assert_non_null(member(&json, "command"));
    assert_int_equal(w->blob.len, 0);
    hd_json_fini(&json);
}

/* With the same run id LangGraph would take the second call for the first one. */
static void one_that_is_waited_for_has_no_run_id(void **state)
{
    struct world *w = *state;
    struct hd_runner caller = {.ops = &hd_runner_worker};
    struct hd_json json = {NULL};
    hd_json_val config;

    w->options.caller = &caller;
    w->options.is_quiet = true;
    assert_int_equal(hd_runner_text_write_run(&w->options, NULL, NULL, &w->head, &w->blob), 0);
    assert_int_equal(hd_json_parse(&json, hd_buf_slice(&w->head), NULL), 0);
    config = member(&json, "config");
    assert_null(hd_json_get(hd_json_get(config, HD_S("configurable")), HD_S("run_id")));
    assert_null(hd_json_get(hd_json_get(config, HD_S("metadata")), HD_S("run_id")));
    assert_true(hd_json_is_true(member(&json, "quiet")));
    hd_json_fini(&json);
}

/* ---- pieces ----------------------------------------------------------- */

static void chunks_have_their_mode(void **state)
{
    struct hd_json json = {NULL};
    enum hd_stream_mode mode;
    struct hd_slice ns;

    (void)state;
    assert_int_equal(hd_runner_text_read_piece(HD_S("{\"mode\":\"custom\",\"ns\":\"a:1|b:2\"}"),
                                               &json, &mode, &ns),
                     0);
    assert_int_equal(mode, HD_STREAM_CUSTOM);
    assert_text(ns, "a:1|b:2");
    hd_json_fini(&json);
    assert_int_equal(hd_runner_text_read_piece(HD_S("{\"mode\":\"other\"}"), &json, &mode, &ns),
                     HD_EINVAL);
    hd_json_fini(&json);
    assert_int_equal(hd_runner_text_read_piece(HD_S("nonsense"), &json, &mode, &ns), HD_EINVAL);
    hd_json_fini(&json);
}

/* ---- ends ------------------------------------------------------------- */

static void ends_are_read(void **state)
{
    struct hd_runner_text_answer answer;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    assert_int_equal(hd_runner_text_read_answer(
                         HD_S("{\"status\":\"cancelled\",\"tokens\":3,\"tools\":[\"a\"]}"), NULL,
                         &arena, &answer),
                     0);
    assert_int_equal(answer.status, HD_ENGINE_RUN_CANCELLED);
    assert_int_equal(answer.tokens, 3);
    assert_int_equal(hd_val_count(answer.tools), 1);
    hd_val_unref(answer.tools);
    assert_int_equal(
        hd_runner_text_read_answer(HD_S("{\"status\":\"sleeping\"}"), NULL, &arena, &answer),
        HD_EINVAL);
    assert_int_equal(hd_runner_text_read_answer(HD_S("[]"), NULL, &arena, &answer), HD_EINVAL);
    hd_arena_fini(&arena);
}

static void failures_have_their_place_and_no_secrets(void **state)
{
    struct hd_val *secrets = parse("{\"heddle:secret:key\":\"sk-\\\"quoted\\\"-long\"}");
    struct hd_runner_text_answer answer;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    assert_int_equal(
        hd_runner_text_read_answer(
            HD_S("{\"status\":\"failed\",\"error\":{\"type\":\"AuthError\",\"message\":\"not "
                 "sk-\\\"quoted\\\"-long\",\"traceback\":\"f('sk-\\\"quoted\\\"-long')\","
                 "\"file\":\"graph.py\",\"line\":3}}"),
            secrets, &arena, &answer),
        0);
    assert_text(answer.type, "AuthError");
    assert_text(answer.where, "graph.py:3");
    assert_json(answer.error,
                "{\"error\":\"AuthError\",\"message\":\"not heddle:secret:key\",\"traceback\":"
                "\"f('heddle:secret:key')\",\"file\":\"graph.py\",\"line\":3}");
    assert_null(memmem(answer.message.ptr, answer.message.len, "quoted", 6));
    hd_arena_fini(&arena);
    hd_val_unref(secrets);
}

static void an_error_without_a_type_has_one(void **state)
{
    struct hd_runner_text_answer answer;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    assert_int_equal(hd_runner_text_read_error(HD_S(""), NULL, &arena, &answer), 0);
    assert_int_equal(answer.status, HD_ENGINE_RUN_FAILED);
    assert_text(answer.type, "RuntimeError");
    assert_json(answer.error, "{\"error\":\"RuntimeError\",\"message\":\"\"}");
    hd_arena_fini(&arena);
}

/* ---- secrets and outputs ---------------------------------------------- */

static void secrets_are_replaced(void **state)
{
    struct hd_val *secrets =
        parse("{\"heddle:secret:a\":\"longsecret\",\"heddle:secret:b\":\"abc\","
              "\"heddle:secret:c\":12345678}");
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    assert_int_equal(hd_runner_text_redact(
                         HD_S("[\"longsecret\",\"xlongsecretlongsecret\",\"abc\"]"), secrets, &out),
                     0);
    assert_text(hd_buf_slice(&out),
                "[\"heddle:secret:a\",\"xheddle:secret:aheddle:secret:a\",\"abc\"]");
    hd_buf_reset(&out);
    assert_int_equal(hd_runner_text_redact(HD_S("[\"longsecret\"]"), NULL, &out), 0);
    assert_text(hd_buf_slice(&out), "[\"longsecret\"]");
    hd_buf_fini(&out);
    hd_val_unref(secrets);
}

static void questions_go_with_the_output(void **state)
{
    struct hd_val *asked = parse("[{\"value\":\"why?\",\"id\":\"i\"}]");
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    assert_int_equal(hd_runner_text_output(HD_S("{\"a\":1,\"__interrupt__\":[]}"), asked, &out), 0);
    assert_json(hd_buf_slice(&out),
                "{\"a\":1,\"__interrupt__\":[{\"value\":\"why?\",\"id\":\"i\"}]}");
    hd_buf_reset(&out);
    assert_int_equal(hd_runner_text_output(HD_S("[1]"), asked, &out), 0);
    assert_text(hd_buf_slice(&out), "[1]");
    hd_buf_reset(&out);
    assert_int_equal(hd_runner_text_output(HD_S("{\"a\" : 1.0}"), NULL, &out), 0);
    assert_text(hd_buf_slice(&out), "{\"a\" : 1.0}");
    hd_buf_fini(&out);
    hd_val_unref(asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_is_written, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_continued_run_has_no_input, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_command_stands_for_the_input, open_world, close_world),
        cmocka_unit_test_setup_teardown(one_that_is_waited_for_has_no_run_id, open_world,
                                        close_world),
        cmocka_unit_test(chunks_have_their_mode),
        cmocka_unit_test(ends_are_read),
        cmocka_unit_test(failures_have_their_place_and_no_secrets),
        cmocka_unit_test(an_error_without_a_type_has_one),
        cmocka_unit_test(secrets_are_replaced),
        cmocka_unit_test(questions_go_with_the_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
