/* heddle state: prints a thread's state. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/thread_ns.h"
#include "graph/engine/failure.h"
#include "graph/engine/ns.h"
#include "graph/state/state.h"
#include "heddle.h"

#define MAX_STATE ((size_t)512 << 20)

struct state_options {
    struct hd_cli_thread_args at;
    const char *graph, *checkpoint;
};

/* ---- with its graph: all values --------------------------------------- */

/* Splits a stored namespace into the graph's and the rest, which is a subgraph's. */
static void split_ns(const char *stored, struct hd_slice *root, struct hd_slice *ns)
{
    const char *bar = strchr(stored, '|');

    *ns = hd_slice_cstr(stored);
    *root = hd_slice(stored, 0);
    if (strncmp(stored, "assistant:", 10) != 0)
        return;
    *root = bar ? hd_slice(stored, (size_t)(bar - stored)) : *ns;
    if (!hd_ns_split(*root, hd_slice_cstr(stored), ns))
        *ns = hd_slice(stored, 0);
}

static int show_graph(const struct state_options *options)
{
    struct hd_graph *graph = hd_cli_read_graph(options->graph);
    struct hd_address at = {.store = options->at.store,
                            .graph = graph,
                            .principal = hd_slice_cstr(options->at.principal),
                            .thread = hd_slice_cstr(options->at.thread),
                            .checkpoint_id = hd_slice_cstr(options->checkpoint)};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    struct hd_buf out;
    int status = HD_EXIT_FAILED;

    if (!graph)
        return HD_EXIT_FAILED;
    split_ns(options->at.ns, &at.root, &at.ns);
    hd_buf_init(&out, MAX_STATE);
    if (hd_state_get(&at, true, &state, &failure) != 0)
        (void)fprintf(stderr, "heddle state: %s: %s\n", failure.type,
                      failure.text ? failure.text : "");
    else if (hd_val_render(&out, state) == 0 && hd_buf_append_byte(&out, '\n') == 0 &&
             hd_cli_write_out(hd_buf_slice(&out)))
        status = HD_EXIT_OK;
    hd_buf_fini(&out);
    hd_val_unref(state);
    hd_failure_fini(&failure);
    hd_graph_destroy(graph);
    return status;
}

/* ---- without its graph: stored values --------------------------------- */

static void print_value(struct hd_slice name, struct heddle_bytes type, struct heddle_bytes data)
{
    struct hd_val *val = NULL;
    struct hd_buf out;

    (void)printf("%.*s: ", (int)name.len, name.ptr);
    hd_buf_init(&out, MAX_STATE);
    if (!hd_slice_eq(hd_slice(type.data, type.len), HD_S("hd1")))
        (void)printf("(%zu bytes of %.*s)", data.len, (int)type.len, (const char *)type.data);
    else if (hd_val_parse(hd_slice(data.data, data.len), &val, NULL) == 0 &&
             hd_val_render(&out, val) == 0)
        (void)fwrite(out.ptr, 1, out.len, stdout);
    (void)putchar('\n');
    hd_val_unref(val);
    hd_buf_fini(&out);
}

static void print_tuple(const struct heddle_tuple *tuple)
{
    (void)printf("checkpoint: %.*s\n", (int)tuple->id.len, (const char *)tuple->id.data);
    (void)printf("parent: %.*s\n", (int)tuple->parent.len, (const char *)tuple->parent.data);
    (void)printf("metadata: %.*s\n", (int)tuple->metadata.len, (const char *)tuple->metadata.data);
    (void)printf("values:\n");
    for (size_t i = 0; i < tuple->value_count; i++) {
        const struct heddle_value *value = &tuple->values[i];

        (void)printf("  ");
        print_value(hd_slice(value->channel.data, value->channel.len), value->type, value->data);
    }
    if (tuple->write_count > 0)
        (void)printf("writes:\n");
    for (size_t i = 0; i < tuple->write_count; i++) {
        const struct heddle_write *write = &tuple->writes[i];

        (void)printf("  %.*s ", (int)write->task_id.len, (const char *)write->task_id.data);
        print_value(hd_slice(write->value.channel.data, write->value.channel.len),
                    write->value.type, write->value.data);
    }
}

static struct heddle_bytes bytes_of_text(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

static int show_stored(const struct state_options *options)
{
    const struct hd_cli_thread_args *at = &options->at;
    struct heddle_error error = {0};
    struct heddle_key key = {.thread = {bytes_of_text(at->principal), bytes_of_text(at->thread)},
                             .ns = bytes_of_text(at->ns),
                             .id = bytes_of_text(options->checkpoint)};
    struct heddle_tuple *tuple;
    int err = heddle_get(at->store, &key, &tuple, &error);

    if (err) {
        (void)fprintf(stderr, "heddle state: thread %s: %s\n", at->thread,
                      error.text[0] ? error.text : heddle_error_text(err));
        return HD_EXIT_FAILED;
    }
    print_tuple(tuple);
    heddle_tuple_free(tuple);
    return HD_EXIT_OK;
}

/* ---- arguments -------------------------------------------------------- */

static int state_parse_args(int argc, char **argv, struct state_options *options)
{
    int status = 0;

    for (int i = 1; i < argc && status == 0; i++) {
        if (hd_option_value(argc, argv, &i, "--graph", &options->graph) ||
            hd_option_value(argc, argv, &i, "--checkpoint", &options->checkpoint) ||
            hd_cli_thread_arg(&hd_command_state, &options->at, argc, argv, &i, &status))
            continue;
        status = hd_usage_error(&hd_command_state, "unknown option %s", argv[i]);
    }
    if (status == 0 && (!options->at.thread || !options->checkpoint))
        status = hd_usage_error(&hd_command_state, "which URL and THREAD?");
    return status;
}

static int state_run(int argc, char **argv)
{
    struct state_options options = {.checkpoint = ""};
    int status = state_parse_args(argc, argv, &options);

    if (status != 0)
        return status;
    status = hd_cli_thread_open(&hd_command_state, &options.at);
    if (status == HD_EXIT_OK)
        status = options.graph ? show_graph(&options) : show_stored(&options);
    hd_cli_thread_close(&options.at);
    return status;
}

const struct hd_command hd_command_state = {
    .name = "state",
    .arguments = "URL THREAD [--ns NAMESPACE] [--principal P] [--graph FILE] [--checkpoint ID]",
    .summary = "show a thread's state",
    .help = "Prints the latest checkpoint of a thread: its values and its pending\n"
            "writes.\n"
            "\n"
            "  --ns NAMESPACE   of one assistant or subgraph (default: the thread's only root\n"
            "                   namespace; with several, they are listed)\n"
            "  --principal P    the thread's owner on a server with authentication\n"
            "  --graph FILE     with the graph's declaration: the state as clients see it,\n"
            "                   with tasks, interrupts and subgraphs, as JSON\n"
            "  --checkpoint ID  an older one\n"
            "\n"
            "  heddle threads sqlite:agent.db\n"
            "  heddle state sqlite:agent.db my-thread\n",
    .run = state_run,
};
