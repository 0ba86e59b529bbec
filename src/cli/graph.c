/* heddle graph: checks a declaration and draws it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "graph/decl/graph.h"
#include "graph/draw/draw.h"

#define MAX_PICTURE ((size_t)256 << 20)

struct graph_options {
    const char *file;
    const char *format;
    int levels;
    bool is_check;
};

struct format {
    const char *name;
    int (*draw)(const struct hd_drawing *drawing, struct hd_buf *out);
};

static const struct format formats[] = {
    {"mermaid", hd_draw_mermaid},
    {"svg", hd_draw_svg},
    {"json", hd_draw_json},
};

/* ---- arguments -------------------------------------------------------- */

static int parse_option(int argc, char **argv, int *index, struct graph_options *options)
{
    const char *value = NULL;

    if (strcmp(argv[*index], "--xray") == 0) {
        options->levels = HD_DRAW_ALL_LEVELS;
        return 0;
    }
    if (strcmp(argv[*index], "--check") == 0) {
        options->is_check = true;
        return 0;
    }
    if (!hd_option_value(argc, argv, index, "--format", &value))
        return hd_usage_error(&hd_command_graph, "unknown option %s", argv[*index]);
    if (!value)
        return hd_usage_error(&hd_command_graph, "--format needs a value");
    options->format = value;
    return 0;
}

static int graph_parse_args(int argc, char **argv, struct graph_options *options)
{
    int status = 0;

    for (int i = 1; i < argc && status == 0; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            status = parse_option(argc, argv, &i, options);
        else if (options->file)
            status = hd_usage_error(&hd_command_graph,
                                    "unexpected argument %s: one FILE is expected", argv[i]);
        else
            options->file = argv[i];
    }
    if (status == 0 && !options->file)
        status = hd_usage_error(&hd_command_graph, "FILE is required");
    return status;
}

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < HD_COUNT(formats); i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

/* ---- checking --------------------------------------------------------- */

static void count_inside(const struct hd_graph *graph, size_t *subgraphs, size_t *stops)
{
    for (size_t i = 1; i < graph->node_count; i++) {
        *subgraphs += graph->nodes[i].graph != NULL;
        *stops += graph->nodes[i].stops_before || graph->nodes[i].stops_after;
    }
}

/* "3 nodes" */
static void print_count(size_t count, const char *one, const char *many)
{
    (void)printf(", %zu %s", count, count == 1 ? one : many);
}

static void describe_graph(const char *file, const struct hd_graph *graph,
                           const struct hd_drawing *d)
{
    size_t subgraphs = 0, stops = 0, conditional = 0;

    count_inside(graph, &subgraphs, &stops);
    for (size_t i = 0; i < d->edge_count; i++)
        conditional += d->edges[i].is_conditional;
    (void)printf("%s: graph \"%.*s\" is valid: %zu %s", file, (int)graph->name.len, graph->name.ptr,
                 graph->node_count - 1, graph->node_count == 2 ? "node" : "nodes");
    print_count(d->edge_count, "edge", "edges");
    if (conditional)
        (void)printf(" (%zu conditional)", conditional);
    print_count(graph->state_count, "channel", "channels");
    if (subgraphs)
        print_count(subgraphs, "subgraph", "subgraphs");
    if (stops)
        print_count(stops, "breakpoint", "breakpoints");
    (void)printf("\n");
}

/* ---- drawing ---------------------------------------------------------- */

static int draw(const struct format *format, const struct hd_drawing *drawing)
{
    struct hd_buf out;
    int err;
    bool is_written;

    hd_buf_init(&out, MAX_PICTURE);
    err = format->draw(drawing, &out);
    if (err == 0 && out.len > 0 && out.ptr[out.len - 1] != '\n')
        err = hd_buf_append_byte(&out, '\n');
    if (err != 0)
        (void)fprintf(stderr, "heddle graph: %s\n", hd_error_text(err));
    is_written = err == 0 && hd_cli_write_out(hd_buf_slice(&out));
    hd_buf_fini(&out);
    return is_written ? HD_EXIT_OK : HD_EXIT_FAILED;
}

static int draw_or_describe(const struct graph_options *options, const struct format *format,
                            const struct hd_graph *graph)
{
    struct hd_drawing drawing;
    int status = HD_EXIT_OK;
    int err = hd_drawing_init(&drawing, graph, options->levels);

    if (err != 0) {
        (void)fprintf(stderr, "%s: cannot draw the graph: %s\n", options->file, hd_error_text(err));
        return HD_EXIT_FAILED;
    }
    if (options->is_check)
        describe_graph(options->file, graph, &drawing);
    else
        status = draw(format, &drawing);
    hd_drawing_fini(&drawing);
    return status;
}

static int graph_run(int argc, char **argv)
{
    struct graph_options options = {.format = "mermaid"};
    int status = graph_parse_args(argc, argv, &options);
    const struct format *format = find_format(options.format);
    struct hd_graph *graph;

    if (status != 0)
        return status;
    if (!format)
        return hd_usage_error(&hd_command_graph, "unknown format %s", options.format);
    graph = hd_cli_read_graph(options.file);
    if (!graph)
        return HD_EXIT_FAILED;
    status = draw_or_describe(&options, format, graph);
    hd_graph_destroy(graph);
    return status;
}

const struct hd_command hd_command_graph = {
    .name = "graph",
    .arguments = "FILE [--format mermaid|svg|json] [--xray] [--check]",
    .summary = "check a graph's declaration and draw it",
    .help = "Reads the declaration of a graph (docs/graphs.md) and prints a drawing of it.\n"
            "FILE may be - for standard input.\n"
            "\n"
            "  --format mermaid   text for Mermaid, as LangGraph writes it (the default)\n"
            "  --format svg       a picture, light or dark as the viewer prefers\n"
            "  --format json      nodes and edges, as in the HTTP API\n"
            "  --xray             subgraphs with their nodes, not as one node\n"
            "  --check            print a summary of the graph or its errors, no drawing\n"
            "\n"
            "Errors have the form \"FILE: /path/in/it: error\".\n"
            "\n"
            "  heddle graph examples/graphs/plan.json --check\n"
            "  heddle graph examples/graphs/team.json --format svg --xray > team.svg\n",
    .run = graph_run,
};
