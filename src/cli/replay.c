/* heddle replay: repeats a thread's runs from recorded exchanges, and prints where they differ. */
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "config/config.h"
#include "heddle.h"
#include "replay/replay.h"
#include "store/url.h"

#define MAX_SHOWN 300 /* characters of a value */
#define MAX_ARGUMENTS 256

extern char **environ;

struct replaying {
    size_t runs, differing;
};

/* ---- output ----------------------------------------------------------- */

static void print_side(const char *name, const struct hd_val *val)
{
    struct hd_buf text;
    int shown;

    hd_buf_init(&text, (size_t)256 << 20);
    if (!val || hd_val_render(&text, val)) {
        printf("    %s nothing\n", name);
    } else {
        shown = text.len > MAX_SHOWN ? MAX_SHOWN : (int)text.len;
        printf("    %s %.*s%s\n", name, shown, text.ptr, text.len > MAX_SHOWN ? " …" : "");
    }
    hd_buf_fini(&text);
}

static void print_difference(const struct hd_replayed *r)
{
    if (r->path) {
        printf("  step %lld differs at %s\n", (long long)r->step, r->path);
        print_side("then:", r->then);
        print_side("now: ", r->now);
    } else if (r->steps_then != r->steps_now) {
        printf("  recorded: %zu steps, now: %zu\n", r->steps_then, r->steps_now);
    }
    if (r->ended_otherwise)
        printf("  recorded: status %s, now: %s\n", hd_run_state_name(r->run->status),
               hd_run_state_name(r->status));
}

static void on_replayed(void *ctx, const struct hd_replayed *r)
{
    struct replaying *replaying = ctx;

    replaying->runs++;
    replaying->differing += r->differs;
    printf("run %zu  %.*s  %zu steps, %zu exchanges, %s: %s\n", r->number, (int)r->run->run_id.len,
           r->run->run_id.ptr, r->steps_now, r->notes->answered, hd_run_state_name(r->status),
           r->differs ? "differs" : "the same");
    if (r->was_edited)
        printf("  continues from a state that was updated manually\n");
    if (r->error)
        printf("  %s\n", r->error);
    if (r->differs)
        print_difference(r);
    if (r->notes->text.len > 0)
        (void)fwrite(r->notes->text.ptr, 1, r->notes->text.len, stdout);
    (void)fflush(stdout);
}

/* ---- replaying -------------------------------------------------------- */

/* `shown` is the store's URL. */
static int replay(const struct hd_config *config, struct heddle *store, const char *shown,
                  const char *thread)
{
    struct hd_config own = *config;
    uv_loop_t loop;
    struct hd_app app = {.loop = &loop, .config = &own};
    struct replaying replaying = {0, 0};
    struct heddle_error fault = {0};
    int err = HD_ENOMEM;

    own.store = "memory:";
    own.cluster_address = "";
    own.record = false;
    if (uv_loop_init(&loop))
        return HD_EXIT_FAILED;
    if (hd_graphs_open(&app, &own)) {
        err = hd_replay(&app, store, hd_slice(NULL, 0), hd_slice_cstr(thread), on_replayed,
                        &replaying, &fault);
        if (err == HD_ENOTFOUND && !fault.code)
            (void)fprintf(stderr, "heddle replay: thread %s not found in %s\n", thread, shown);
        else if (err)
            (void)fprintf(stderr, "heddle replay: %s\n",
                          fault.code ? fault.text : hd_error_text(err));
    }
    hd_graphs_close(&app);
    (void)uv_loop_close(&loop);
    if (!err)
        printf("%zu runs, %zu differ\n", replaying.runs, replaying.differing);
    return err || replaying.differing > 0 ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int replay_from(const struct hd_config *config, const char *thread)
{
    struct heddle *store = NULL;
    char shown[512];
    int status;

    if (!hd_ops_open(&hd_command_replay, config->store, false, &store))
        return HD_EXIT_FAILED;
    hd_url_show(config->store, shown, sizeof(shown));
    status = replay(config, store, shown, thread);
    heddle_close(store);
    return status;
}

/* All arguments except the thread are settings, as for `serve`. */
static int replay_run(int argc, char **argv)
{
    struct hd_config_source source = {.env = environ};
    char *flags[MAX_ARGUMENTS];
    struct heddle_error fault = {0};
    struct hd_config config;
    const char *thread;
    int status;

    if (argc < 2 || argv[1][0] == '-')
        return hd_usage_error(&hd_command_replay, "THREAD is required");
    if (argc > MAX_ARGUMENTS)
        return hd_usage_error(&hd_command_replay, "too many arguments");
    thread = argv[1];
    flags[0] = argv[0];
    memcpy(flags + 1, argv + 2, (size_t)(argc - 2) * sizeof(*flags));
    source.argc = argc - 1;
    source.argv = flags;
    if (hd_config_load(&config, &source, &fault))
        return hd_usage_error(&hd_command_replay, "%s", fault.text);
    hd_log_set_level(HD_LOG_ERROR);
    status = replay_from(&config, thread);
    hd_config_fini(&config);
    return status;
}

const struct hd_command hd_command_replay = {
    .name = "replay",
    .arguments = "THREAD [--store URL] [--graph ID=FILE] [--config FILE]",
    .summary = "replay a thread from its recording, without network",
    .help = "`heddle serve --record` records exchanges with models, MCP servers and other agents.\n"
            "Replays the runs of a thread in memory, with the recorded responses, and compares\n"
            "every step, request and status: run it after a change of graph, prompt or version\n"
            "of Heddle. Sends no requests and does not change the database.\n"
            "\n"
            "  --store URL        where the thread is (default: sqlite:heddle.db)\n"
            "  --graph ID=FILE    the graphs to run, as for `serve`\n"
            "  --config FILE      the same settings as the server's\n"
            "\n"
            "Exit status 1 when a state, a request or the status of a run differs.\n",
    .run = replay_run,
};
