/* The `tools` node on an engine, with a source of fake tools named for what they do. A call that
 * waits for an hour makes the test time out. */
#include "tests/unit/engine_world.h"

#include "agent/agent.h"
#include "agent/source.h"
#include "agent/toolset.h"
#include "base/uuid.h"

/* ---- a source --------------------------------------------------------- */

/* Records of all fake sources. */
static struct fake {
    int opened, closed, called, cancelled;
    int gate;                      /* this number of `gather` calls end together, the last one
                                    * first */
    struct hd_tool_call *waits[8]; /* of `gather` */
    int waiting;
    struct hd_tool_source *late; /* becomes ready when the test decides */
} fake;

static int fake_check(const struct hd_val *value, struct heddle_error *fault)
{
    return hd_val_is_object(value) ? 0 : hd_error_set(fault, HD_EINVAL, "must be an object");
}

/* `{"tools": [NAME …], "schema": …, "problem": TEXT, "never": true, "fails": true}` */
static int fake_open(struct hd_tool_source *source)
{
    const struct hd_val *tools = hd_val_get(source->value, HD_S("tools"));
    const struct hd_val *problem = hd_val_get(source->value, HD_S("problem"));

    if (hd_val_get(source->value, HD_S("fails")))
        return HD_EIO;
    for (size_t i = 0; i < hd_val_count(tools); i++) {
        struct hd_tool tool = {.name = hd_val_get_string(hd_val_at(tools, i)),
                               .description = HD_S("a fake"),
                               .is_read_only =
                                   hd_val_is_true(hd_val_get(source->value, HD_S("read_only"))),
                               .parameters = hd_val_get(source->value, HD_S("schema"))};

        if (hd_slice_eq(tool.name, HD_S("hang_shortly")))
            tool.timeout_ms = 20;
        if (hd_source_add(source, &tool) != 0)
            return HD_ENOMEM;
    }
    fake.opened++;
    source->own = &fake;
    fake.late = source;
    if (!hd_val_get(source->value, HD_S("never")))
        hd_source_ready(source, problem ? hd_val_get_string(problem).ptr : NULL);
    return 0;
}

static void fake_close(struct hd_tool_source *source)
{
    assert_ptr_equal(source->own, &fake);
    fake.closed++;
}

static void end_gathered(void)
{
    while (fake.waiting > 0) {
        struct hd_tool_call *call = fake.waits[--fake.waiting];

        hd_tool_done(call, hd_val_ref(hd_val_get(call->args, HD_S("text"))), NULL);
    }
}

static void ask_or_tell(struct hd_tool_call *call)
{
    const struct hd_val *answer = hd_tool_answer(call), *question = hd_tool_question(call);
    struct hd_val *both;

    if (!answer) {
        assert_null(question);
        question = hd_val_get(call->args, HD_S("question"));
        hd_tool_ask(call, question ? hd_val_ref(question) : hd_val_cstr("who?"));
        return;
    }
    both =
        hd_val_append(hd_val_list(), hd_val_with(hd_val_object(), HD_S("q"), hd_val_ref(question)));
    hd_tool_done(call,
                 hd_val_append(both, hd_val_with(hd_val_object(), HD_S("a"), hd_val_ref(answer))),
                 hd_val_int(7));
}

static int fake_call(struct hd_tool_call *call)
{
    struct hd_slice name = call->tool->name;

    fake.called++;
    assert_ptr_equal(call->tool->source->own, &fake);
    if (hd_slice_eq(name, HD_S("refuse")))
        return HD_EBUSY;
    if (hd_slice_eq(name, HD_S("gather"))) {
        fake.waits[fake.waiting++] = call;
        if (fake.waiting == fake.gate)
            end_gathered();
    } else if (hd_slice_eq(name, HD_S("echo"))) {
        hd_tool_done(call, hd_val_ref(hd_val_get(call->args, HD_S("text"))), NULL);
    } else if (hd_slice_eq(name, HD_S("fail"))) {
        hd_tool_error(call, "it is %s", "broken");
    } else if (hd_slice_eq(name, HD_S("ask"))) {
        ask_or_tell(call);
    }
    return 0;
}

static void fake_cancel(struct hd_tool_call *call)
{
    (void)call;
    fake.cancelled++;
}

static const struct hd_source_kind fake_kind = {
    .name = "fake",
    .check = fake_check,
    .open = fake_open,
    .close = fake_close,
    .call = fake_call,
    .cancel = fake_cancel,
};
static const struct hd_source_kind hasty_kind = {
    .name = "hasty",
    .check = fake_check,
    .open = fake_open,
    .close = fake_close,
    .call = fake_call,
    .cancel = fake_cancel,
    .open_ms = 20,
};
static const struct hd_source_kind *const kinds[] = {&fake_kind, &hasty_kind};

/* ---- graphs ----------------------------------------------------------- */

/* `members` of the tools node; a send has the call and the channels that it uses. */
#define GRAPH(members)                                                                             \
    "{\"name\":\"calls\",\"state\":{\"messages\":{\"reducer\":\"messages\"},"                      \
    "\"tools\":{},\"policy\":{},\"source\":{},\"after\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"model\":{\"kind\":\"set\"},\"act\":{\"kind\":\"tools\"," members "},"            \
    "\"next\":{\"kind\":\"set\",\"update\":{\"after\":[1]}}},"                                     \
    "\"edges\":[[\"__start__\",\"model\"],{\"from\":\"model\",\"fanout\":{"                        \
    "\"over\":\"{{messages[-1].tool_calls}}\",\"as\":\"call\",\"to\":\"act\",\"arg\":{"            \
    "\"call\":\"{{call}}\",\"tools\":\"{{tools}}\",\"policy\":\"{{policy}}\","                     \
    "\"source\":\"{{source}}\"}}},[\"act\",\"next\"]]}"
#define ALL                                                                          \
    "{\"tools\":[\"echo\",\"gather\",\"hang\",\"hang_shortly\",\"fail\",\"refuse\"," \
    "\"ask\"]}"
#define SOURCES "\"sources\":[{\"fake\":" ALL "},{\"client\":\"{{tools}}\"}]"
#define CALL(name, id, text) \
    "{\"name\":\"" name "\",\"id\":\"" id "\",\"args\":{\"text\":\"" text "\"}}"
#define CALLS(calls)                                                                               \
    "\"messages\":[{\"$\":\"message\",\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[" calls "]" \
    "}"                                                                                            \
    "]"

struct scene {
    struct world w;
    struct hd_graph *graph;
    struct hd_val *problems; /* list of custom events */
    int starts, ends, errors;
    bool cancels_at_tool;
    uv_timer_t timer;
};

static void on_event(void *ctx, const struct hd_event *event)
{
    struct scene *s = ctx;

    if (event->type == HD_EVENT_CUSTOM)
        s->problems = hd_val_append(s->problems, hd_val_ref(event->value));
    s->starts += event->type == HD_EVENT_TOOL;
    s->ends += event->type == HD_EVENT_TOOL_END;
    s->errors += event->type == HD_EVENT_TOOL_END && event->is_error;
    if (event->type == HD_EVENT_TOOL && s->cancels_at_tool)
        hd_engine_run_cancel(s->w.run);
}

static void scene_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct scene *s = ctx;

    on_done(&s->w, result);
    if (result->status == HD_ENGINE_RUN_CANCELLED && s->cancels_at_tool)
        assert_int_equal(hd_val_count(result->tools), 1);
}

static void open_scene(struct scene *s, const char *graph)
{
    memset(s, 0, sizeof(*s));
    memset(&fake, 0, sizeof(fake));
    hd_agent_kinds();
    hd_source_kinds_add(kinds, HD_COUNT(kinds));
    open_world(&s->w, true);
    s->graph = read_graph(graph);
    s->problems = hd_val_list();
}

static void close_scene(struct scene *s)
{
    close_world(&s->w);
    hd_val_unref(s->problems);
    hd_graph_destroy(s->graph);
    assert_int_equal(fake.opened, fake.closed);
}

static void begin(struct scene *s, const char *input, const char *command)
{
    struct hd_val *in = input ? json(input) : NULL, *cmd = command ? json(command) : NULL;
    struct hd_engine_run_options options = {.graph = s->graph,
                                            .thread = HD_S("t"),
                                            .input = in,
                                            .command = cmd,
                                            .on_event = on_event,
                                            .on_done = scene_done,
                                            .ctx = s};

    s->w.ends = s->starts = s->ends = s->errors = 0;
    assert_int_equal(hd_engine_run_start(s->w.engine, &options, &s->w.run), 0);
    hd_val_unref(in);
    hd_val_unref(cmd);
}

static void play(struct scene *s, const char *input, const char *command,
                 enum hd_engine_run_status status)
{
    begin(s, input, command);
    uv_run(&s->w.uv, UV_RUN_DEFAULT);
    assert_int_equal(s->w.ends, 1);
    assert_int_equal(s->w.status, status);
    assert_end_is_state(&s->w, s->graph);
}

/* A new engine on the same store: everything in memory is lost. */
static void restart(struct scene *s)
{
    hd_engine_destroy(s->w.engine);
    uv_run(&s->w.uv, UV_RUN_DEFAULT);
    assert_int_equal(hd_engine_create(s->w.store, &s->w.uv, true, &s->w.engine), 0);
}

static struct hd_val *values(struct scene *s)
{
    struct hd_val *state = state_of(&s->w, s->graph);
    struct hd_val *vals = hd_val_ref(hd_val_get(state, HD_S("values")));

    hd_val_unref(state);
    return vals;
}

/* The tool messages without their ids; each must have one. */
static void assert_results(struct scene *s, const char *wanted)
{
    struct hd_val *vals = values(s), *list = hd_val_list(), *expected = json(wanted);
    const struct hd_val *messages = hd_val_get(vals, HD_S("messages"));

    for (size_t i = 1; i < hd_val_count(messages); i++) {
        struct hd_val *message = hd_val_ref(hd_val_at(messages, i));

        assert_int_equal(hd_val_get_string(hd_val_get(message, HD_S("id"))).len, HD_UUID_LEN);
        list = hd_val_append(list, hd_val_without(message, HD_S("id")));
    }
    assert_equal("results", list, expected);
    hd_val_unref(list);
    hd_val_unref(expected);
    hd_val_unref(vals);
}

#define RESULT(name, id, content)                                                   \
    "{\"$\":\"message\",\"type\":\"tool\",\"content\":" content ",\"name\":\"" name \
    "\",\"tool_call_id\":\"" id "\"}"
#define ERROR(name, id, content)                                                    \
    "{\"$\":\"message\",\"type\":\"tool\",\"content\":" content ",\"name\":\"" name \
    "\",\"tool_call_id\":\"" id "\",\"status\":\"error\"}"

static void assert_after(struct scene *s, size_t count)
{
    struct hd_val *vals = values(s);

    assert_int_equal(hd_val_count(hd_val_get(vals, HD_S("after"))), count);
    hd_val_unref(vals);
}

/* ---- calls ------------------------------------------------------------ */

static void no_call_is_no_task(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    play(&s, "{" CALLS("") "}", NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.opened, 0);
    assert_results(&s, "[]");
    assert_after(&s, 0);
    close_scene(&s);
}

static void parallel_calls_have_their_own_answers(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    fake.gate = 5;
    play(&s,
         "{" CALLS(CALL("gather", "c1", "one") "," CALL("gather", "c2", "two") "," CALL(
             "gather", "c3", "three") "," CALL("gather", "c4", "four") "," CALL("gather", "c5",
                                                                                "five")) "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.opened, 1); /* for all of them */
    assert_int_equal(fake.called, 5);
    assert_int_equal(s.starts, 5);
    assert_int_equal(s.ends, 5);
    assert_int_equal(s.errors, 0);
    assert_results(
        &s, "[" RESULT("gather", "c1", "\"one\"") "," RESULT("gather", "c2", "\"two\"") "," RESULT(
                "gather", "c3", "\"three\"") "," RESULT("gather", "c4",
                                                        "\"four\"") "," RESULT("gather", "c5",
                                                                               "\"five\"") "]");
    assert_after(&s, 1);
    close_scene(&s);
}

#define MARKS "\"additional_kwargs\":{\"read_only\":true}"

static void results_of_read_only_tools_are_marked(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"tools\":[\"echo\",\"fail\"],"
                         "\"read_only\":true}},{\"fake\":{\"tools\":[\"hang_shortly\"]}}]"));
    play(&s,
         "{" CALLS(
             CALL("echo", "c1", "x") "," CALL("fail", "c2", "x") "," CALL("none", "c3", "x")) "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_results(&s, "[{\"$\":\"message\",\"type\":\"tool\",\"content\":\"x\",\"name\":\"echo\","
                       "\"tool_call_id\":\"c1\"," MARKS "},{\"$\":\"message\",\"type\":\"tool\","
                       "\"content\":\"Error: it is broken\",\"name\":\"fail\","
                       "\"tool_call_id\":\"c2\",\"status\":\"error\"," MARKS
                       "}," ERROR("none", "c3",
                                  "\"Error: none is not a valid tool, try one of [echo, fail, "
                                  "hang_shortly].\"") "]");
    close_scene(&s);
}

static void failures_are_reported_to_the_model(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"tools\":[\"fail\",\"refuse\",\"echo\"],"
                         "\"schema\":{\"required\":[\"text\"]}}}]"));
    play(&s,
         "{" CALLS(CALL("fail", "c1", "x") "," CALL("refuse", "c2", "x") "," CALL(
             "nothing", "c3", "x") ",{\"name\":\"echo\",\"id\":\"c4\",\"args\":{}}") "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_results(
        &s,
        "[" ERROR("fail", "c1", "\"Error: it is broken\"") "," ERROR(
            "refuse", "c2",
            "\"Error: the tool could not be called: busy\"") "," ERROR("nothing", "c3",
                                                                       "\"Error: nothing is "
                                                                       "not a valid tool, try "
                                                                       "one of [fail, refuse, "
                                                                       "echo].\"") "," ERROR("e"
                                                                                             "c"
                                                                                             "h"
                                                                                             "o",
                                                                                             "c"
                                                                                             "4",
                                                                                             "\"Err"
                                                                                             "or: "
                                                                                             "inval"
                                                                                             "id "
                                                                                             "argum"
                                                                                             "ents "
                                                                                             "for "
                                                                                             "echo:"
                                                                                             " \\\""
                                                                                             "text"
                                                                                             "\\\" "
                                                                                             "is "
                                                                                             "requi"
                                                                                             "red. "
                                                                                             "Pleas"
                                                                                             "e "
                                                                                             "fix "
                                                                                             "them "
                                                                                             "a"
                                                                                             "n"
                                                                                             "d"
                                                                                             " "
                                                                                             "t"
                                                                                             "r"
                                                                                             "y"
                                                                                             " "
                                                                                             "a"
                                                                                             "g"
                                                                                             "a"
                                                                                             "i"
                                                                                             "n"
                                                                                             "."
                                                                                             "\"") "]");
    assert_int_equal(s.starts, 2);
    assert_int_equal(s.errors, 2);
    assert_after(&s, 1);
    close_scene(&s);
}

static void a_call_without_a_name_fails(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, "{\"name\":\"g\",\"state\":{\"messages\":{\"reducer\":\"messages\"},\"c\":{}},"
                   "\"nodes\":{\"tools\":{\"kind\":\"tools\",\"sources\":[{\"fake\":" ALL
                   "}],\"call\":\"{{c}}\"}},\"edges\":[[\"__start__\",\"tools\"]]}");
    play(&s, "{\"c\":{\"id\":\"x\"}}", NULL, HD_ENGINE_RUN_FAILED);
    assert_string_equal(s.w.error, "ValueError");
    close_scene(&s);
}

/* An expression of the node, without a send; and a result that is too large. */
static void a_node_may_declare_its_call(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, "{\"name\":\"g\",\"state\":{\"messages\":{\"reducer\":\"messages\"},\"c\":{}},"
                   "\"nodes\":{\"tools\":{\"kind\":\"tools\",\"sources\":[{\"fake\":" ALL
                   "}],\"call\":\"{{c}}\",\"max_result_bytes\":4}},"
                   "\"edges\":[[\"__start__\",\"tools\"]]}");
    play(&s, "{\"messages\":[\"hi\"],\"c\":" CALL("echo", "c1", "123456") "}", NULL,
         HD_ENGINE_RUN_DONE);
    assert_results(&s, "[" RESULT("echo", "c1", "\"1234\\n[2 of 6 bytes were left out]\"") "]");
    play(&s, "{\"c\":null}", NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 1);
    close_scene(&s);
}

static void a_call_may_take_only_so_long(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"tool_timeout_ms\":10"));
    play(&s, "{" CALLS(CALL("hang", "c1", "x") "," CALL("hang_shortly", "c2", "x")) "}", NULL,
         HD_ENGINE_RUN_DONE);
    assert_results(
        &s, "[" ERROR("hang", "c1", "\"Error: hang timed out after 0.01 seconds.\"") "," ERROR(
                "hang_shortly", "c2", "\"Error: hang_shortly timed out after 0.02 seconds.\"") "]");
    assert_int_equal(fake.cancelled, 2);
    assert_int_equal(s.errors, 2);
    close_scene(&s);
}

static void a_cancel_stops_the_call(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    s.cancels_at_tool = true;
    play(&s, "{" CALLS(CALL("hang", "c1", "x")) "}", NULL, HD_ENGINE_RUN_CANCELLED);
    assert_int_equal(fake.cancelled, 1);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(s.starts, 1);
    assert_int_equal(s.ends, 0);
    close_scene(&s);
}

static void cancel_soon(uv_timer_t *timer)
{
    struct scene *s = timer->data;

    if (fake.late) {
        hd_engine_run_cancel(s->w.run);
        uv_close((uv_handle_t *)timer, NULL);
    }
}

static void a_cancel_stops_the_opening(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"tools\":[\"echo\"],\"never\":true}}]"));
    begin(&s, "{" CALLS(CALL("echo", "c1", "x") "," CALL("echo", "c2", "x")) "}", NULL);
    uv_timer_init(&s.w.uv, &s.timer);
    s.timer.data = &s;
    uv_timer_start(&s.timer, cancel_soon, 1, 1);
    uv_run(&s.w.uv, UV_RUN_DEFAULT);
    assert_int_equal(s.w.ends, 1);
    assert_int_equal(s.w.status, HD_ENGINE_RUN_CANCELLED);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(fake.called, 0);
    close_scene(&s);
}

/* A client call writes nothing and no node follows; the other calls get results. */
static void a_client_answers_its_own_calls(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    play(&s,
         "{\"tools\":[{\"name\":\"confirm\",\"description\":\"d\",\"parameters\":{}}]," CALLS(
             CALL("confirm", "c1", "x")) "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 0);
    assert_results(&s, "[]");
    assert_after(&s, 0);
    play(&s, "{" CALLS(CALL("confirm", "c2", "x") "," CALL("echo", "c3", "x")) "}", NULL,
         HD_ENGINE_RUN_DONE);
    assert_after(&s, 1);
    assert_int_equal(fake.called, 1);
    close_scene(&s);
}

/* ---- sources ---------------------------------------------------------- */

static void a_broken_source_is_reported_once_and_the_others_work(void **unused)
{
    struct scene s;
    struct hd_val *wanted;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"problem\":\"gone\"}},"
                         "{\"fake\":{\"fails\":true}},{\"client\":\"{{policy}}\"},"
                         "{\"hasty\":{\"never\":true,\"tools\":[\"fail\"]}},"
                         "{\"fake\":{\"tools\":[\"echo\"]}},{\"fake\":\"{{source}}\"}]"));
    play(&s,
         "{\"policy\":7," CALLS(CALL("echo", "c1", "one") "," CALL("echo", "c2", "two") "," CALL(
             "fail", "c3", "three")) "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_results(
        &s, "[" RESULT("echo", "c1", "\"one\"") "," RESULT("echo", "c2", "\"two\"") "," ERROR(
                "fail", "c3", "\"Error: it is broken\"") "]");
    wanted = json("[{\"type\":\"tool_source_problem\",\"source\":\"fake\",\"message\":\"gone\"},"
                  "{\"type\":\"tool_source_problem\",\"source\":\"fake\",\"message\":"
                  "\"input or output failed\"},"
                  "{\"type\":\"tool_source_problem\",\"source\":\"client\",\"message\":"
                  "\"must be a list of tools, not an integer\"},"
                  "{\"type\":\"tool_source_problem\",\"source\":\"hasty\",\"message\":"
                  "\"not ready after 0.02 s\"}]");
    assert_equal("problems", s.problems, wanted);
    hd_val_unref(wanted);
    close_scene(&s);
}

/* Equal values share a source, and each tool has a unique name that providers accept. */
static void sources_are_shared_and_names_are_fit(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"tools\":[\"echo\",\"a.b c\xc3\xa4/d\",\"\"]}},"
                         "{\"fake\":{\"tools\":[\"echo\",\"echo-2\",\"a_b_c__d\"]}},"
                         "{\"fake\":\"{{source}}\"},{\"client\":\"{{tools}}\"}]"));
    play(&s,
         "{\"source\":{\"tools\":[\"echo\",\"echo-2\",\"a_b_c__d\"]},\"tools\":[{\"name\":"
         "\"0123456789012345678901234567890123456789012345678901234567890123456789\"},"
         "{\"name\":"
         "\"0123456789012345678901234567890123456789012345678901234567890123456789\"}]," CALLS(
             CALL("none", "c1", "x")) "}",
         NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.opened, 2);
    assert_results(
        &s,
        "[" ERROR("none", "c1",
                  "\"Error: none is not a valid tool, try one of [echo, a_b_c__d, tool, echo-2, "
                  "echo-2-2, a_b_c__d-2, echo-3, echo-2-3, a_b_c__d-3, "
                  "0123456789012345678901234567890123456789012345678901234567890123, "
                  "01234567890123456789012345678901234567890123456789012345678901-2].\"") "]");
    close_scene(&s);
}

/* Only the first 512 are used. */
static void a_node_has_only_so_many_tools(void **unused)
{
    struct scene s;
    struct hd_buf input;
    struct hd_slice text;
    const struct hd_val *messages;
    struct hd_val *vals;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    hd_buf_init(&input, 100000);
    assert_int_equal(hd_buf_append_slice(&input, HD_S("{\"tools\":[{\"name\":\"t0\"}")), 0);
    for (int i = 1; i < 600; i++)
        assert_int_equal(hd_buf_printf(&input, ",{\"name\":\"t%d\"}", i), 0);
    assert_int_equal(hd_buf_printf(&input, "],%s}%c",
                                   CALLS(CALL("t504", "c1", "x") "," CALL("t505", "c2", "x")), 0),
                     0);
    play(&s, input.ptr, NULL, HD_ENGINE_RUN_DONE);
    hd_buf_fini(&input);
    vals = values(&s);
    messages = hd_val_get(vals, HD_S("messages"));
    assert_int_equal(hd_val_count(messages), 2); /* t504 is a client tool */
    text = hd_val_get_string(hd_val_get(hd_val_at(messages, 1), HD_S("content")));
    assert_true(hd_slice_starts(text, HD_S("Error: t505 is not a valid tool, try one of [echo, ")));
    hd_val_unref(vals);
    close_scene(&s);
}

static void declarations_are_checked(void **unused)
{
    static const struct {
        const char *members, *path, *text;
    } cases[] = {
        {"\"call\":1", "/nodes/tools", "needs a member \"sources\""},
        {"\"sources\":{}", "/nodes/tools/sources", "must be a list of sources, not an object"},
        {"\"sources\":[{}]", "/nodes/tools/sources/0",
         "must be an object with one member: a kind of source"},
        {"\"sources\":[{\"fake\":{},\"client\":[]}]", "/nodes/tools/sources/0",
         "must be an object with one member: a kind of source"},
        {"\"sources\":[{\"clint\":[]}]", "/nodes/tools/sources/0/clint",
         "unknown kind of source \"clint\"; did you mean \"client\"?"},
        {"\"sources\":[{\"client\":3}]", "/nodes/tools/sources/0/client",
         "must be a list of tools, not an integer"},
        {"\"sources\":[{\"client\":[{}]}]", "/nodes/tools/sources/0/client",
         "tool 0 must be an object with \"name\""},
        {"\"sources\":[],\"approval\":3", "/nodes/tools/approval",
         "must be true, false or a list of rules"},
        {"\"sources\":[],\"channel\":\"massages\"", "/nodes/tools/channel",
         "unknown channel \"massages\"; did you mean \"messages\"?"},
        {"\"sources\":[],\"max_result_bytes\":0", "/nodes/tools/max_result_bytes",
         "must be from 1 to 16777216"},
    };

    (void)unused;
    hd_agent_kinds();
    hd_source_kinds_add(kinds, HD_COUNT(kinds));
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_graph_error error;
        struct hd_graph *graph;
        char text[4096];

        snprintf(text, sizeof(text),
                 "{\"name\":\"g\",\"state\":{\"messages\":{\"reducer\":\"messages\"}},\"nodes\":{"
                 "\"tools\":{\"kind\":\"tools\",%s}},\"edges\":[[\"__start__\",\"tools\"]]}",
                 cases[i].members);
        assert_int_equal(hd_graph_read(hd_slice_cstr(text), &graph, &error), HD_EINVAL);
        assert_string_equal(error.path, cases[i].path);
        assert_string_equal(error.text, cases[i].text);
    }
}

/* ---- approval --------------------------------------------------------- */

#define RESUME(value) "{\"$\":\"command\",\"resume\":" value "}"

/* The id of the interrupt number `index` (tasks in their order), and its value. */
static struct hd_slice question(struct scene *s, size_t index, const struct hd_val **value)
{
    const struct hd_val *list = hd_val_member(s->w.asked, index, NULL);
    const struct hd_val *interrupt = hd_val_at(list, 0);

    assert_int_equal(hd_val_count(list), 1);
    if (value)
        *value = hd_val_get(interrupt, HD_S("value"));
    return hd_val_get_string(hd_val_get(interrupt, HD_S("id")));
}

static void assert_error(struct scene *s, size_t index, const char *wanted)
{
    const struct hd_val *value;

    (void)question(s, index, &value);
    assert_true(
        hd_slice_eq(hd_val_get_string(hd_val_get(value, HD_S("error"))), hd_slice_cstr(wanted)));
}

static void an_approved_call_runs_once_also_after_a_restart(void **unused)
{
    struct scene s;
    const struct hd_val *value;
    struct hd_val *wanted;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":\"{{policy}}\""));
    play(&s, "{\"policy\":[\"ec*\"]," CALLS(CALL("echo", "c1", "x")) "}", NULL,
         HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(fake.called, 0);
    assert_int_equal(s.starts, 0);
    (void)question(&s, 0, &value);
    wanted = json("{\"action_request\":{\"action\":\"echo\",\"args\":{\"text\":\"x\"}},\"config\":{"
                  "\"allow_ignore\":true,\"allow_respond\":true,\"allow_edit\":true,"
                  "\"allow_accept\":true},\"description\":\"The agent wants to call the tool "
                  "`echo`.\",\"tool_call_id\":\"c1\",\"action_requests\":[{\"name\":\"echo\","
                  "\"args\":{\"text\":\"x\"},\"description\":\"The agent wants to call the tool "
                  "`echo`.\"}],\"review_configs\":[{\"action_name\":\"echo\","
                  "\"allowed_decisions\":[\"approve\",\"edit\",\"reject\"]}]}");
    assert_equal("question", value, wanted);
    hd_val_unref(wanted);
    restart(&s);
    play(&s, NULL, NULL, HD_ENGINE_RUN_INTERRUPTED); /* resuming without a value is no approval */
    assert_int_equal(fake.called, 0);
    restart(&s);
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 1);
    assert_results(&s, "[" RESULT("echo", "c1", "\"x\"") "]");
    assert_after(&s, 1);
    restart(&s);
    play(&s, NULL, NULL, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 1);
    close_scene(&s);
}

static void each_verdict_has_its_result(void **unused)
{
    static const struct {
        const char *answer, *results;
        int called;
    } cases[] = {
        {"[{\"type\":\"accept\",\"args\":null}]", "[" RESULT("echo", "c1", "\"x\"") "]", 1},
        {"{\"type\":\"edit\",\"args\":{\"action\":\"echo\",\"args\":{\"text\":\"y\"}}}",
         "[{\"$\":\"message\",\"type\":\"tool\",\"content\":\"y\",\"name\":\"echo\","
         "\"additional_kwargs\":{\"edited_args\":{\"text\":\"y\"}},\"tool_call_id\":\"c1\"}]",
         1},
        {"{\"type\":\"response\",\"args\":\"my own\"}", "[" RESULT("echo", "c1", "\"my own\"") "]",
         0},
        {"{\"type\":\"ignore\"}",
         "[" ERROR("echo", "c1",
                   "\"The user declined the call of echo. It was not executed.\"") "]",
         0},
        {"{\"decisions\":[{\"type\":\"reject\",\"message\":\"no\"}]}",
         "[" ERROR("echo", "c1", "\"no\"") "]", 0},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct scene s;
        char command[512];

        open_scene(&s, GRAPH(SOURCES ",\"approval\":true"));
        play(&s, "{" CALLS(CALL("echo", "c1", "x")) "}", NULL, HD_ENGINE_RUN_INTERRUPTED);
        snprintf(command, sizeof(command), RESUME("%s"), cases[i].answer);
        play(&s, NULL, command, HD_ENGINE_RUN_DONE);
        assert_results(&s, cases[i].results);
        assert_int_equal(fake.called, cases[i].called);
        assert_after(&s, 1);
        close_scene(&s);
    }
}

static void an_invalid_answer_interrupts_again(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH("\"sources\":[{\"fake\":{\"tools\":[\"echo\"],\"schema\":{\"properties\":{"
                         "\"text\":{\"type\":\"string\"}}}}}],"
                         "\"approval\":[{\"tool\":\"echo\",\"allow\":[\"accept\",\"edit\"]}]"));
    play(&s, "{" CALLS(CALL("echo", "c1", "x")) "}", NULL, HD_ENGINE_RUN_INTERRUPTED);
    play(&s, NULL, RESUME("\"sure\""), HD_ENGINE_RUN_INTERRUPTED);
    assert_error(&s, 0, "a reply is an object whose \"type\" is accept, edit, response or ignore");
    play(&s, NULL, RESUME("{\"type\":\"ignore\"}"), HD_ENGINE_RUN_INTERRUPTED);
    assert_error(&s, 0, "the reply \"ignore\" is not allowed here");
    restart(&s);
    play(&s, NULL, RESUME("{\"type\":\"edit\",\"args\":{\"text\":1}}"), HD_ENGINE_RUN_INTERRUPTED);
    assert_error(&s, 0, "\"text\" must be of type string, not an integer");
    assert_int_equal(fake.called, 0);
    play(&s, NULL, RESUME("{\"type\":\"edit\",\"args\":{\"text\":\"z\"}}"), HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 1);
    close_scene(&s);
}

static void several_wait_for_answers_at_once(void **unused)
{
    struct scene s;
    char ids[3][33], command[512];

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":[{\"tool\":\"*\",\"args\":{\"text\":{\"ne\":"
                                 "\"free\"}}}]"));
    play(&s,
         "{" CALLS(CALL("echo", "c1", "one") "," CALL("echo", "c2", "free") "," CALL(
             "echo", "c3", "three") "," CALL("echo", "c4", "four")) "}",
         NULL, HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(fake.called, 1);
    assert_int_equal(hd_val_count(s.w.asked), 3);
    for (size_t i = 0; i < 3; i++)
        snprintf(ids[i], sizeof(ids[i]), "%.*s", 32, question(&s, i, NULL).ptr);
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_FAILED); /* ambiguous */
    snprintf(command, sizeof(command), RESUME("{\"%s\":{\"type\":\"accept\"}}"), ids[1]);
    play(&s, NULL, command, HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(fake.called, 2);
    assert_int_equal(hd_val_count(s.w.asked), 2);
    restart(&s);
    snprintf(
        command, sizeof(command),
        RESUME("{\"%s\":{\"type\":\"accept\"},\"%s\":{\"type\":\"response\",\"args\":\"me\"}}"),
        ids[0], ids[2]);
    play(&s, NULL, command, HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 3);
    assert_results(
        &s, "[" RESULT("echo", "c1", "\"one\"") "," RESULT("echo", "c2", "\"free\"") "," RESULT(
                "echo", "c3", "\"three\"") "," RESULT("echo", "c4", "\"me\"") "]");
    assert_after(&s, 1);
    close_scene(&s);
}

static void the_last_one_needs_no_id(void **unused)
{
    struct scene s;
    char id[33], command[512];

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":true"));
    play(&s, "{" CALLS(CALL("echo", "c1", "one") "," CALL("echo", "c2", "two")) "}", NULL,
         HD_ENGINE_RUN_INTERRUPTED);
    snprintf(id, sizeof(id), "%.*s", 32, question(&s, 0, NULL).ptr);
    snprintf(command, sizeof(command), RESUME("{\"%s\":{\"type\":\"accept\"}}"), id);
    play(&s, NULL, command, HD_ENGINE_RUN_INTERRUPTED);
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_DONE);
    assert_results(&s, "[" RESULT("echo", "c1", "\"one\"") "," RESULT("echo", "c2", "\"two\"") "]");
    close_scene(&s);
}

/* A tool that interrupts, in a call that needs approval: two interrupts, in this order. */
static void a_tool_may_interrupt(void **unused)
{
    struct scene s;
    const struct hd_val *value;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":\"{{policy}}\""));
    play(&s, "{\"policy\":true," CALLS(CALL("ask", "c1", "x")) "}", NULL,
         HD_ENGINE_RUN_INTERRUPTED);
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(fake.called, 1);
    (void)question(&s, 0, &value);
    assert_true(hd_slice_eq(hd_val_get_string(value), HD_S("who?")));
    restart(&s);
    play(&s, NULL, RESUME("\"me\""), HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 2);
    assert_results(&s, "[{\"$\":\"message\",\"type\":\"tool\",\"content\":[{\"q\":\"who?\"},"
                       "{\"a\":\"me\"}],\"name\":\"ask\",\"tool_call_id\":\"c1\",\"artifact\":7}]");
    close_scene(&s);
}

/* A tool's interrupt may look like an approval request of Heddle, about another call. */
static void a_tool_may_interrupt_like_an_approval(void **unused)
{
    struct scene s;
    const struct hd_val *value;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":false"));
    play(&s,
         "{" CALLS("{\"name\":\"ask\",\"id\":\"c1\",\"args\":{\"question\":{"
                   "\"action_request\":{\"action\":\"ask\",\"args\":{}},\"config\":{"
                   "\"allow_accept\":true},\"tool_call_id\":\"inner\"}}}") "}",
         NULL, HD_ENGINE_RUN_INTERRUPTED);
    (void)question(&s, 0, &value);
    assert_non_null(hd_val_get(value, HD_S("action_request")));
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 2);
    close_scene(&s);
}

/* Changing the policy does not change a pending approval request. */
static void a_question_needs_its_answer_after_a_change_of_policy(void **unused)
{
    struct scene s;
    struct hd_graph *first;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":[{\"tool\":\"echo\",\"allow\":[\"accept\"]}]"));
    play(&s, "{" CALLS(CALL("echo", "c1", "x")) "}", NULL, HD_ENGINE_RUN_INTERRUPTED);
    first = s.graph;
    s.graph = read_graph(GRAPH(SOURCES));
    play(&s, NULL, RESUME("{\"type\":\"ignore\"}"), HD_ENGINE_RUN_INTERRUPTED);
    assert_error(&s, 0, "the reply \"ignore\" is not allowed here");
    assert_int_equal(fake.called, 0);
    play(&s, NULL, RESUME("{\"type\":\"accept\"}"), HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 1);
    close_scene(&s);
    hd_graph_destroy(first);
}

static void a_policy_that_is_none_lets_nothing_through(void **unused)
{
    struct scene s;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES ",\"approval\":\"{{policy}}\""));
    play(&s, "{\"policy\":\"always\"," CALLS(CALL("echo", "c1", "x")) "}", NULL,
         HD_ENGINE_RUN_DONE);
    assert_int_equal(fake.called, 0);
    assert_results(&s, "[" ERROR("echo", "c1",
                                 "\"Error: echo was not called, because it is not clear whether it "
                                 "needs approval: the policy must be true, false or a list of "
                                 "rules\"") "]");
    close_scene(&s);
}

/* ---- memory ----------------------------------------------------------- */

/* Whichever allocation fails, the run ends, and every opened source is closed. */
static void it_survives_without_memory(void **unused)
{
    struct scene s;
    long n = 0, asked;

    (void)unused;
    open_scene(&s, GRAPH(SOURCES));
    do {
        struct hd_val *in =
            json("{" CALLS(CALL("echo", "c1", "one") "," CALL("fail", "c2", "x")) "}");
        char thread[32];
        struct hd_engine_run_options options = {
            .graph = s.graph, .input = in, .on_done = scene_done, .ctx = &s};
        int err;

        snprintf(thread, sizeof(thread), "t%ld", n);
        options.thread = hd_slice_cstr(thread);
        s.w.ends = 0;
        (void)hd_alloc_fail_at(++n, 0);
        err = hd_engine_run_start(s.w.engine, &options, &s.w.run);
        uv_run(&s.w.uv, UV_RUN_DEFAULT);
        asked = hd_alloc_fail_at(0, 0);
        assert_int_equal(s.w.ends, err ? 0 : 1);
        assert_int_equal(fake.opened, fake.closed);
        hd_val_unref(in);
    } while (asked >= n);
    assert_int_equal(s.w.status, HD_ENGINE_RUN_DONE);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_is_no_task),
        cmocka_unit_test(parallel_calls_have_their_own_answers),
        cmocka_unit_test(results_of_read_only_tools_are_marked),
        cmocka_unit_test(failures_are_reported_to_the_model),
        cmocka_unit_test(a_call_without_a_name_fails),
        cmocka_unit_test(a_node_may_declare_its_call),
        cmocka_unit_test(a_call_may_take_only_so_long),
        cmocka_unit_test(a_cancel_stops_the_call),
        cmocka_unit_test(a_cancel_stops_the_opening),
        cmocka_unit_test(a_client_answers_its_own_calls),
        cmocka_unit_test(a_broken_source_is_reported_once_and_the_others_work),
        cmocka_unit_test(sources_are_shared_and_names_are_fit),
        cmocka_unit_test(a_node_has_only_so_many_tools),
        cmocka_unit_test(declarations_are_checked),
        cmocka_unit_test(an_approved_call_runs_once_also_after_a_restart),
        cmocka_unit_test(each_verdict_has_its_result),
        cmocka_unit_test(an_invalid_answer_interrupts_again),
        cmocka_unit_test(several_wait_for_answers_at_once),
        cmocka_unit_test(the_last_one_needs_no_id),
        cmocka_unit_test(a_tool_may_interrupt),
        cmocka_unit_test(a_tool_may_interrupt_like_an_approval),
        cmocka_unit_test(a_question_needs_its_answer_after_a_change_of_policy),
        cmocka_unit_test(a_policy_that_is_none_lets_nothing_through),
        cmocka_unit_test(it_survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
