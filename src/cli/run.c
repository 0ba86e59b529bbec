/* heddle run: runs a graph, prints its events, and prompts for interrupts. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cli/cli.h"
#include "cli/scenario.h"
#include "graph/decl/graph.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "heddle.h"
#include "store/url.h"

#define INPUT_LIMIT ((size_t)64 << 20)
#define MAX_LINE ((size_t)256 << 20)
#define MODES (HD_STREAM_ALL & ~(unsigned)HD_STREAM_DEBUG)

struct run_options {
    const char *file;
    const char *input;
    const char *resume;
    const char *thread;
    const char *store;
    const char *scenario;
    const char *durability;
    bool is_json;
    bool has_events; /* print only events of the events mode */
};

struct session {
    const struct run_options *options;
    struct hd_graph *graph;
    struct heddle *store;
    uv_loop_t uv;
    struct hd_engine *engine;
    struct hd_agents *agents;
    enum hd_engine_run_status status;
    struct hd_val *questions; /* pending interrupts; NULL: none */
    bool is_in_line;          /* tokens were printed and no newline yet */
};

/* ---- output ----------------------------------------------------------- */

static void print_value(const struct hd_val *val)
{
    struct hd_buf out;

    hd_buf_init(&out, MAX_LINE);
    if (hd_val_render(&out, val) == 0)
        (void)fwrite(out.ptr, 1, out.len, stdout);
    hd_buf_fini(&out);
}

static void end_line(struct session *s)
{
    if (s->is_in_line)
        (void)putchar('\n');
    s->is_in_line = false;
}

static void show_message(struct session *s, const struct hd_event *event)
{
    struct hd_slice type = hd_val_get_string(hd_val_get(event->value, HD_S("type")));
    struct hd_slice text = hd_val_get_string(hd_val_get(event->value, HD_S("content")));
    bool is_piece = hd_slice_eq(type, HD_S("AIMessageChunk"));
    struct hd_slice node = hd_event_node(event);

    if (!s->is_in_line)
        (void)printf("  %.*s: ", (int)node.len, node.ptr);
    (void)fwrite(text.ptr, 1, text.len, stdout);
    s->is_in_line = true;
    if (!is_piece)
        end_line(s);
    (void)fflush(stdout);
}

static void show_chunk(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                       const struct hd_val *data)
{
    struct session *s = ctx;

    end_line(s);
    if (mode == HD_STREAM_CUSTOM)
        (void)printf("  custom ");
    else
        (void)printf("%.*s%s", (int)ns.len, ns.ptr, ns.len ? " " : "");
    print_value(data);
    (void)putchar('\n');
    (void)fflush(stdout);
}

/* One line for each event: {"ns": …, "mode": …, "data": …}. */
static void print_chunk(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                        const struct hd_val *data)
{
    struct hd_val *line = hd_val_with(hd_val_object(), HD_S("ns"), hd_val_string(ns));

    (void)ctx;
    line = hd_val_with(line, HD_S("mode"), hd_val_cstr(hd_stream_mode_name(mode)));
    line = hd_val_with(line, HD_S("data"), hd_val_ref(data));
    print_value(line);
    (void)putchar('\n');
    (void)fflush(stdout); /* a reading program sees it at once */
    hd_val_unref(line);
}

static void on_run_event(void *ctx, const struct hd_event *event)
{
    struct session *s = ctx;
    struct hd_slice node = hd_event_node(event);
    int err = 0;

    if (s->options->is_json) {
        err =
            hd_stream_map(event, s->options->has_events ? HD_STREAM_EVENTS : MODES, print_chunk, s);
    } else if (event->type == HD_EVENT_TASK) {
        end_line(s);
        (void)printf("▸ %.*s\n", (int)node.len, node.ptr);
    } else if (event->type == HD_EVENT_MESSAGE) {
        show_message(s, event);
    } else {
        err = hd_stream_map(event, HD_STREAM_UPDATES | HD_STREAM_CUSTOM, show_chunk, s);
    }
    if (err)
        (void)fprintf(stderr, "heddle run: %s\n", hd_error_text(err));
}

static void on_run_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct session *s = ctx;

    end_line(s);
    s->status = result->status;
    if (result->status == HD_ENGINE_RUN_FAILED)
        (void)fprintf(stderr, "heddle run: %s: %s\n", result->error_type, result->error_text);
    if (result->status == HD_ENGINE_RUN_INTERRUPTED && hd_val_count(result->interrupts) > 0)
        s->questions = hd_val_ref(result->interrupts);
    if (result->output && !s->options->is_json) {
        (void)printf("= ");
        print_value(result->output);
        (void)putchar('\n');
    }
}

/* ---- running ---------------------------------------------------------- */

static enum hd_durability durability(const struct session *s)
{
    if (strcmp(s->options->durability, "async") == 0)
        return HD_DURABLE_ASYNC;
    return strcmp(s->options->durability, "exit") == 0 ? HD_DURABLE_EXIT : HD_DURABLE_SYNC;
}

static int run_once(struct session *s, const struct hd_val *input, const struct hd_val *command)
{
    struct hd_engine_run_options options = {.graph = s->graph,
                                            .thread = hd_slice_cstr(s->options->thread),
                                            .input = input,
                                            .command = command,
                                            .durability = durability(s),
                                            .on_event = on_run_event,
                                            .on_done = on_run_done,
                                            .ctx = s};
    struct hd_engine_run *run;
    int err = hd_engine_run_start(s->engine, &options, &run);

    if (err) {
        (void)fprintf(stderr, "heddle run: %s\n", hd_error_text(err));
        s->status = HD_ENGINE_RUN_FAILED;
        return err;
    }
    uv_run(&s->uv, UV_RUN_DEFAULT);
    return 0;
}

/* JSON, or else the text itself. */
static struct hd_val *read_value(struct hd_slice text)
{
    struct hd_val *val;

    return hd_val_parse_json(text, &val, NULL) == 0 ? val : hd_val_string(text);
}

/* Prompts on the terminal; returns a command with all replies, or NULL without any. */
static struct hd_val *ask_on_terminal(const struct hd_val *questions)
{
    struct hd_val *answers = hd_val_object();
    char line[65536];

    for (size_t i = 0; i < hd_val_count(questions); i++) {
        const struct hd_val *question = hd_val_at(questions, i);

        (void)printf("? ");
        print_value(hd_val_get(question, HD_S("value")));
        (void)printf(" ");
        (void)fflush(stdout);
        if (!fgets(line, sizeof(line), stdin)) {
            (void)putchar('\n');
            hd_val_unref(answers);
            return NULL;
        }
        line[strcspn(line, "\n")] = '\0';
        answers = hd_val_with(answers, hd_val_get_string(hd_val_get(question, HD_S("id"))),
                              read_value(hd_slice_cstr(line)));
    }
    return hd_val_with(hd_val_record(HD_KIND_COMMAND), HD_S("resume"), answers);
}

static void run_all(struct session *s, struct hd_val *input, struct hd_val *command)
{
    int err = run_once(s, input, command);

    while (!err && s->questions && !s->options->is_json) {
        struct hd_val *questions = s->questions;
        struct hd_val *answers = ask_on_terminal(questions);

        s->questions = NULL;
        hd_val_unref(questions);
        if (!answers)
            break;
        err = run_once(s, NULL, answers);
        hd_val_unref(answers);
    }
    hd_val_unref(s->questions);
}

static int run_graph(struct session *s, struct hd_val *input, struct hd_val *command)
{
    bool is_direct = strncmp(s->options->store, "memory:", 7) == 0;

    uv_loop_init(&s->uv);
    s->status = HD_ENGINE_RUN_FAILED;
    if (hd_engine_create(s->store, &s->uv, is_direct, &s->engine) == 0) {
        if (hd_agents_create(s->engine, NULL, &s->agents) == 0)
            run_all(s, input, command);
        hd_agents_destroy(s->agents);
        hd_engine_destroy(s->engine);
    }
    uv_run(&s->uv, UV_RUN_DEFAULT);
    uv_loop_close(&s->uv);
    return s->status == HD_ENGINE_RUN_FAILED ? HD_EXIT_FAILED : HD_EXIT_OK;
}

/* ---- arguments -------------------------------------------------------- */

static int run_parse_args(int argc, char **argv, struct run_options *options)
{
    const struct {
        const char *name;
        const char **value;
    } known[] = {
        {"--input", &options->input},       {"--resume", &options->resume},
        {"--thread", &options->thread},     {"--store", &options->store},
        {"--scenario", &options->scenario}, {"--durability", &options->durability},
    };

    for (int i = 1; i < argc; i++) {
        bool is_known = false;

        for (size_t k = 0; k < HD_COUNT(known) && !is_known; k++)
            is_known = hd_option_value(argc, argv, &i, known[k].name, known[k].value);
        if (is_known)
            continue;
        if (strcmp(argv[i], "--json") == 0)
            options->is_json = true;
        else if (strcmp(argv[i], "--events") == 0)
            options->is_json = options->has_events = true;
        else if (argv[i][0] == '-')
            return hd_usage_error(&hd_command_run, "unknown option %s", argv[i]);
        else if (options->file)
            return hd_usage_error(&hd_command_run, "unexpected argument %s: one FILE is expected",
                                  argv[i]);
        else
            options->file = argv[i];
    }
    if (!options->file && !options->scenario)
        return hd_usage_error(&hd_command_run, "FILE is required");
    if (strcmp(options->durability, "sync") != 0 && strcmp(options->durability, "async") != 0 &&
        strcmp(options->durability, "exit") != 0)
        return hd_usage_error(&hd_command_run, "--durability takes sync, async or exit");
    return 0;
}

/* A JSON argument, "-" for standard input. False after printing the error. */
static bool read_argument(const char *name, const char *text, struct hd_val **out)
{
    struct heddle_error fault = {0};
    struct hd_buf all;
    bool is_read;

    *out = NULL;
    if (!text)
        return true;
    if (strcmp(text, "-") != 0) {
        is_read = hd_val_parse_json(hd_slice_cstr(text), out, &fault) == 0;
    } else {
        if (!hd_cli_read_file("-", INPUT_LIMIT, &all))
            return false;
        is_read = hd_val_parse_json(hd_buf_slice(&all), out, &fault) == 0;
        hd_buf_fini(&all);
    }
    if (!is_read)
        (void)fprintf(stderr, "heddle run: %s: %s\n", name, fault.text);
    return is_read;
}

static int run_with_store(struct session *s, struct hd_val *input, struct hd_val *command)
{
    struct heddle_error error = {0};
    int status = HD_EXIT_FAILED;
    char shown[512];

    hd_url_show(s->options->store, shown, sizeof(shown));
    if (heddle_open(&s->store, s->options->store, &error) != 0)
        (void)fprintf(stderr, "%s: %s\n", shown, error.text);
    else
        status = run_graph(s, input, command);
    heddle_close(s->store);
    return status;
}

static int run_run(int argc, char **argv)
{
    char thread[HD_UUID_SIZE];
    struct run_options options = {.store = "memory:", .thread = thread, .durability = "async"};
    struct session s = {.options = &options};
    struct hd_val *input = NULL, *answer = NULL, *command = NULL;
    int status;

    hd_uuid_v4(thread);
    status = run_parse_args(argc, argv, &options);
    if (status != 0)
        return status;
    if (options.scenario)
        return hd_scenario_run(options.scenario, options.store);
    status = HD_EXIT_FAILED;
    s.graph = hd_cli_read_graph(options.file);
    if (s.graph && read_argument("--input", options.input, &input) &&
        read_argument("--resume", options.resume, &answer)) {
        if (answer)
            command =
                hd_val_with(hd_val_record(HD_KIND_COMMAND), HD_S("resume"), hd_val_ref(answer));
        status = run_with_store(&s, input, command);
    }
    hd_val_unref(input);
    hd_val_unref(answer);
    hd_val_unref(command);
    hd_graph_destroy(s.graph);
    return status;
}

const struct hd_command hd_command_run = {
    .name = "run",
    .arguments = "FILE [--input JSON|-] [--resume JSON] [--thread ID] [--store URL]\n"
                 "                  [--durability D] [--json|--events]",
    .summary = "run a graph",
    .help =
        "Runs the graph that FILE declares (docs/graphs.md) and prints its events: nodes that\n"
        "start, model output, state changes. Prompts for replies to interrupts on the terminal\n"
        "(JSON, or plain text).\n"
        "\n"
        "  --input JSON     the input; - reads it from standard input\n"
        "  --resume JSON    the reply to the thread's pending interrupt\n"
        "  --thread ID      the thread (default: a new one)\n"
        "  --store URL      its store, such as sqlite:agent.db (default: memory:)\n"
        "  --durability D   sync: each step is stored before the next begins; async (default):\n"
        "                   while the next runs; exit: all at the end\n"
        "  --json           one line of JSON for each event, and no prompts\n"
        "  --events         the same with LangChain's events of graphs, nodes and models\n"
        "  --scenario DIR   run DIR/scenario.json on DIR/graph.json, print a record\n"
        "\n"
        "  heddle run examples/graphs/echo.json --input '{\"messages\": [\"Hello\"]}'\n",
    .run = run_run,
};
