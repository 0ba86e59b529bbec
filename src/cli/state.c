/* heddle state: what a thread holds. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"
#include "graph/engine.h"
#include "graph/state.h"
#include "heddle.h"
#include "store/url.h"

#define MAX_STATE ((size_t)512 << 20)

struct options {
    const char *url, *thread, *graph, *checkpoint, *ns;
};

/* ---- with its graph: everything ---------------------------------------- */

static int show_graph(struct heddle *store, const struct options *options)
{
    struct hd_graph *graph = hd_read_graph(options->graph);
    struct hd_address at = {.store = store,
                            .graph = graph,
                            .thread = hd_slice_cstr(options->thread),
                            .ns = hd_slice_cstr(options->ns),
                            .checkpoint_id = hd_slice_cstr(options->checkpoint)};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    struct hd_buf out;
    int status = HD_EXIT_FAILED;

    if (!graph)
        return HD_EXIT_FAILED;
    hd_buf_init(&out, MAX_STATE);
    if (hd_state_get(&at, true, &state, &failure) != 0)
        (void)fprintf(stderr, "heddle state: %s: %s\n", failure.type,
                      failure.text ? failure.text : "");
    else if (hd_val_render(&out, state) == 0 && hd_buf_append_byte(&out, '\n') == 0 &&
             hd_write_out(hd_buf_slice(&out)))
        status = HD_EXIT_OK;
    hd_buf_fini(&out);
    hd_val_unref(state);
    hd_failure_fini(&failure);
    hd_graph_destroy(graph);
    return status;
}

/* ---- without: what is stored -------------------------------------------- */

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

static int show_stored(struct heddle *store, const struct options *options)
{
    struct heddle_error error = {0};
    struct heddle_key key = {.thread = {.id = {options->thread, strlen(options->thread)}},
                             .ns = {options->ns, strlen(options->ns)},
                             .id = {options->checkpoint, strlen(options->checkpoint)}};
    struct heddle_tuple *tuple;
    int err = heddle_get(store, &key, &tuple, &error);

    if (err) {
        (void)fprintf(stderr, "heddle state: thread %s: %s\n", options->thread,
                      error.text[0] ? error.text : heddle_error_text(err));
        return HD_EXIT_FAILED;
    }
    print_tuple(tuple);
    heddle_tuple_free(tuple);
    return HD_EXIT_OK;
}

/* ---- arguments -------------------------------------------------------- */

static int parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        if (hd_option_value(argc, argv, &i, "--graph", &options->graph) ||
            hd_option_value(argc, argv, &i, "--checkpoint", &options->checkpoint) ||
            hd_option_value(argc, argv, &i, "--ns", &options->ns))
            continue;
        if (argv[i][0] == '-')
            return hd_usage_error(&hd_command_state, "unknown option %s", argv[i]);
        if (!options->url)
            options->url = argv[i];
        else if (!options->thread)
            options->thread = argv[i];
        else
            return hd_usage_error(&hd_command_state, "what is %s?", argv[i]);
    }
    if (!options->url || !options->thread || !options->checkpoint || !options->ns)
        return hd_usage_error(&hd_command_state, "which URL and THREAD?");
    return 0;
}

static int run(int argc, char **argv)
{
    struct options options = {.checkpoint = "", .ns = ""};
    struct heddle_error error = {0};
    struct heddle *store;
    char shown[512];
    int status = parse(argc, argv, &options);

    if (status != 0)
        return status;
    if (heddle_open(&store, options.url, &error) != 0) {
        hd_url_show(options.url, shown, sizeof(shown));
        (void)fprintf(stderr, "%s: %s\n", shown, error.text);
        return HD_EXIT_FAILED;
    }
    status = options.graph ? show_graph(store, &options) : show_stored(store, &options);
    heddle_close(store);
    return status;
}

const struct hd_command hd_command_state = {
    .name = "state",
    .arguments = "URL THREAD [--graph FILE] [--checkpoint ID] [--ns NAMESPACE]",
    .summary = "show what a thread holds",
    .help = "Prints the latest checkpoint of a thread: its values and the writes that wait to\n"
            "become part of the next one.\n"
            "\n"
            "  --graph FILE     with the graph's declaration: the state as clients see it,\n"
            "                   with tasks, questions and subgraphs, as JSON\n"
            "  --checkpoint ID  an older one\n"
            "  --ns NAMESPACE   of a subgraph\n"
            "\n"
            "  heddle state sqlite:agent.db my-thread\n",
    .run = run,
};
