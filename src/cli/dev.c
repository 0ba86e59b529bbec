/*
 * heddle dev: the server for development. Finds langgraph.json, reloads graphs when their files
 * change, and prints which graphs were loaded and the errors of the others.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/json.h"
#include "cli/cli.h"
#include "config/config.h"
#include "config/project.h"

#define PROJECT_FILE "langgraph.json"
#define MAX_ARGUMENTS 512
#define MAX_TEXT ((size_t)1 << 20)

/* ---- loaded graphs ---------------------------------------------------- */

/* The last message for each language: several workers send the same. */
static struct hd_buf said[HD_RT_LANGUAGES];

static const char *title_of(enum hd_rt_language language)
{
    return language == HD_RT_JS ? "TypeScript" : "Python";
}

/* The error and its position; the traceback is in the log. */
static void put_error(struct hd_buf *out, hd_json_val error, int *err)
{
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    struct hd_slice text = hd_json_string(hd_json_get(error, HD_S("message")));
    struct hd_slice file = hd_json_string(hd_json_get(error, HD_S("file")));
    int64_t line = 0;

    if (!*err)
        *err = hd_buf_printf(out, "      %.*s%s%.*s\n", (int)type.len, type.ptr,
                             type.len > 0 && text.len > 0 ? ": " : "", (int)text.len, text.ptr);
    if (!*err && file.len > 0 && hd_json_int(hd_json_get(error, HD_S("line")), &line))
        *err = hd_buf_printf(out, "      %.*s:%lld\n", (int)file.len, file.ptr, (long long)line);
}

static void put_graph(struct hd_buf *out, const struct hd_config_graph *graph, hd_json_val loaded,
                      int *err)
{
    hd_json_val error = hd_json_get(loaded, HD_S("error"));

    if (!*err)
        *err =
            hd_buf_printf(out, "  %s %-16.*s %.*s%s\n", loaded && !error ? "+" : "!",
                          (int)graph->id.len, graph->id.ptr, (int)graph->path.len, graph->path.ptr,
                          error    ? ": could not be loaded"
                          : loaded ? ""
                                   : ": was not loaded");
    if (error)
        put_error(out, error, err);
}

static void put_loaded_part(struct hd_buf *out, const char *name, hd_json_val loaded, int *err)
{
    hd_json_val error = hd_json_get(loaded, HD_S("error"));

    if (!loaded || *err)
        return;
    *err = hd_buf_printf(out, "  %s %s%s\n", error ? "!" : "+", name,
                         error ? ": could not be loaded" : "");
    if (error)
        put_error(out, error, err);
}

static int describe_loaded(struct hd_buf *out, const struct hd_config *config,
                           enum hd_rt_language language, hd_json_val head)
{
    hd_json_val graphs = hd_json_get(head, HD_S("graphs"));
    int err = 0;

    for (size_t i = 0; i < config->graphs.count; i++) {
        const struct hd_config_graph *graph = &config->graphs.items[i];

        if (graph->is_remote && graph->language == language)
            put_graph(out, graph, hd_json_get(graphs, graph->id), &err);
    }
    put_loaded_part(out, "auth.path", hd_json_get(head, HD_S("auth")), &err);
    put_loaded_part(out, "http.app", hd_json_get(head, HD_S("app")), &err);
    put_loaded_part(out, "store.index.embed", hd_json_get(head, HD_S("embed")), &err);
    return err;
}

/* A worker has loaded the graphs of its language, or failed to. */
static void on_worker_ready(void *ctx, enum hd_rt_language language, struct hd_slice head)
{
    const struct hd_app *app = ctx;
    struct hd_buf text;
    struct hd_json json;

    if (hd_json_parse(&json, head, NULL))
        return;
    hd_buf_init(&text, MAX_TEXT);
    if (describe_loaded(&text, app->config, language, hd_json_root(&json)) == 0) {
        bool is_same = hd_slice_eq(hd_buf_slice(&text), hd_buf_slice(&said[language]));

        if (!is_same)
            printf("%s graphs:\n%.*s", title_of(language), (int)text.len, text.ptr);
        else if (app->config->runtime_workers == 1)
            printf("%s graphs: reloaded\n", title_of(language));
        (void)fflush(stdout);
        if (!is_same) {
            hd_buf_fini(&said[language]);
            said[language] = text;
            hd_buf_init(&text, 0);
        }
    }
    hd_buf_fini(&text);
    hd_json_fini(&json);
}

/* ---- start ------------------------------------------------------------ */

static void greet_developer(struct hd_app *app, const char *url, const char *store)
{
    const struct hd_config *config = app->config;
    bool has_native = false;

    printf("Heddle: %s\n", url);
    if (config->page_enabled)
        printf("  page     %s/\n", url);
    printf("  API      %s/docs\n"
           "  project  %s\n"
           "  store    %s\n",
           url, *config->file ? config->file : "(none)", store);
    for (size_t i = 0; i < app->graph_count; i++) {
        if (app->graphs[i].is_remote)
            continue;
        if (!has_native)
            printf("Native graphs:\n");
        has_native = true;
        printf("  + %.*s\n", (int)app->graphs[i].id.len, app->graphs[i].id.ptr);
    }
    for (int i = 0; i < HD_RT_LANGUAGES; i++) {
        if (hd_project_uses(config, (enum hd_rt_language)i))
            printf("%s graphs: loading\n", title_of((enum hd_rt_language)i));
    }
    if (hd_app_on_ready(app, on_worker_ready, app))
        printf("The log shows which graphs were loaded.\n");
    printf("Press Ctrl-C to stop.\n");
}

static bool has_option(int argc, char **argv, const char *name)
{
    size_t len = strlen(name);

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, len) == 0 && (!argv[i][len] || argv[i][len] == '='))
            return true;
    }
    return false;
}

/* The first argument is the project's folder: `heddle dev my-agent`. */
static int enter_project(int *argc, char ***argv)
{
    if (*argc < 2 || (*argv)[1][0] == '-')
        return HD_EXIT_OK;
    if (chdir((*argv)[1]) != 0) {
        (void)fprintf(stderr, "heddle dev: %s: %s\n", (*argv)[1], strerror(errno));
        return HD_EXIT_FAILED;
    }
    (*argv)[1] = (*argv)[0];
    --*argc;
    ++*argv;
    return HD_EXIT_OK;
}

static int dev_run(int argc, char **argv)
{
    char reload[] = "--runtime-reload", config[] = "--config=" PROJECT_FILE;
    char *all[MAX_ARGUMENTS + 3];
    int count = 0, status = enter_project(&argc, &argv);

    if (status)
        return status;
    if (argc > MAX_ARGUMENTS)
        return hd_usage_error(&hd_command_dev, "too many arguments");
    all[count++] = argv[0];
    all[count++] = reload;
    if (!has_option(argc, argv, "--config") && !getenv("HEDDLE_CONFIG")) {
        if (access(PROJECT_FILE, F_OK) == 0)
            all[count++] = config;
        else if (!has_option(argc, argv, "--graph"))
            return hd_usage_error(&hd_command_dev,
                                  "no " PROJECT_FILE
                                  " in this directory: name one with --config, or create a "
                                  "project with `heddle new DIR`");
    }
    for (int i = 1; i < argc; i++)
        all[count++] = argv[i];
    status = hd_serve("dev", count, all, greet_developer);
    for (size_t i = 0; i < HD_RT_LANGUAGES; i++)
        hd_buf_fini(&said[i]);
    return status;
}

const struct hd_command hd_command_dev = {
    .name = "dev",
    .arguments = "[FOLDER] [OPTIONS]",
    .summary = "serve a langgraph.json project during development",
    .help =
        "Serves the graphs of the langgraph.json in FOLDER (default: the current one): Python,\n"
        "TypeScript and native ones. Prints the graphs that were loaded and the errors of the\n"
        "others, with file and line, and reloads them when a file changes. Python graphs run in\n"
        "the project's virtual environment (the active one, .venv or venv), which needs the\n"
        "package heddle; TypeScript graphs need it in node_modules.\n"
        "\n"
        "  pip install \"heddle[runtime]\"\n"
        "  heddle dev\n"
        "\n"
        "  --port N             [2024]\n"
        "  --store URL          the database [sqlite:heddle.db]\n"
        "  --config FILE        a project file with another name\n"
        "  --log-level LEVEL    error, warn, info or debug [info]\n"
        "\n"
        "Equals `heddle serve --config langgraph.json --runtime-reload` and takes the same\n"
        "options: see `heddle serve --help` and docs/projects.md.\n",
    .run = dev_run,
};
