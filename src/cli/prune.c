/* heddle prune: deletes old checkpoints and threads; safe beside running servers. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "records/record.h"
#include "run/thread_prune.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/url.h"

#define MINUTE_US 60e6
#define MAX_MINUTES 1e9
#define PROGRESS_EVERY 100
#define MAX_RECORD ((size_t)256 << 20)

struct prune_options {
    struct hd_ops_options common;
    const char *strategy, *keep_last, *older_than, *thread;
    bool is_dry, vacuums;

    struct hd_prune prune;
    bool has_strategy;
    int64_t before; /* only threads last changed before this; 0: all */
};

struct pruning {
    const struct prune_options *options;
    struct hd_ops *ops;
    int64_t now;
    struct hd_removed removed;
    size_t looked, changed, busy;
    struct hd_arena arena;
    struct heddle_error fault;
};

/* ---- arguments -------------------------------------------------------- */

static int take_flag(struct prune_options *o, const char *arg)
{
    if (strcmp(arg, "--dry-run") == 0)
        o->is_dry = true;
    else if (strcmp(arg, "--vacuum") == 0)
        o->vacuums = true;
    else
        return hd_usage_error(&hd_command_prune, "%s: unknown argument", arg);
    return 0;
}

static int prune_parse_args(int argc, char **argv, struct prune_options *o)
{
    const struct {
        const char *name;
        const char **value;
    } values[] = {{"--strategy", &o->strategy},
                  {"--keep-last", &o->keep_last},
                  {"--older-than", &o->older_than},
                  {"--thread", &o->thread}};

    for (int i = 1; i < argc; i++) {
        int status = hd_ops_option(&hd_command_prune, &o->common, argc, argv, &i);
        size_t n = 0;

        if (status == HD_OPS_TAKEN)
            continue;
        if (status != HD_OPS_OTHER)
            return status;
        while (n < HD_COUNT(values) &&
               !hd_option_value(argc, argv, &i, values[n].name, values[n].value))
            n++;
        if (n < HD_COUNT(values) && !*values[n].value)
            return hd_usage_error(&hd_command_prune, "%s needs a value", values[n].name);
        status = n < HD_COUNT(values) ? 0 : take_flag(o, argv[i]);
        if (status != 0)
            return status;
    }
    return 0;
}

static bool parse_limit(const char *text, double max, double *out)
{
    char *end;

    if (!text)
        return false;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && *out <= max;
}

static int read_strategy(struct prune_options *o)
{
    int found = -1;

    o->has_strategy = o->strategy != NULL;
    for (int i = 0; o->strategy && hd_ttl_strategies[i]; i++) {
        if (strcmp(o->strategy, hd_ttl_strategies[i]) == 0)
            found = i;
    }
    if (o->strategy && found < 0)
        return hd_usage_error(&hd_command_prune,
                              "--strategy takes delete, keep_latest or keep_branches");
    o->prune.strategy = found < 0 ? HD_TTL_DELETE : (enum hd_ttl_strategy)found;
    if (found == HD_TTL_DELETE && !o->thread && !o->older_than)
        return hd_usage_error(&hd_command_prune,
                              "--strategy delete needs --thread ID or --older-than MINUTES");
    if (!o->strategy && (o->thread || o->older_than || o->keep_last))
        return hd_usage_error(&hd_command_prune, "--strategy is required");
    return 0;
}

static int check_prune_options(struct prune_options *o)
{
    double number = 1;
    int status = read_strategy(o);

    if (status != 0)
        return status;
    if (o->keep_last && (!parse_limit(o->keep_last, HD_KEEP_LAST_MAX, &number) || number < 1))
        return hd_usage_error(&hd_command_prune, "--keep-last takes a number of at least 1");
    o->prune.keep_last = (size_t)number;
    o->prune.is_dry = o->is_dry;
    if (o->older_than && !parse_limit(o->older_than, MAX_MINUTES, &number))
        return hd_usage_error(&hd_command_prune, "--older-than takes a number of minutes");
    if (o->older_than)
        o->before = hd_clock_now_us() - (int64_t)(number * MINUTE_US);
    o->common.is_of_all = !o->common.principal && !o->common.subject && !o->thread;
    return 0;
}

/* ---- threads ---------------------------------------------------------- */

static void report_progress(const struct pruning *p)
{
    if (p->looked % PROGRESS_EVERY == 0)
        (void)fprintf(stderr, "progress: %zu threads checked, %lld checkpoints, %lld bytes\n",
                      p->looked, (long long)p->removed.checkpoints, (long long)p->removed.bytes);
}

static bool is_meant(const struct pruning *p, struct hd_slice principal, struct hd_slice id)
{
    const struct prune_options *o = p->options;

    return (o->common.is_of_all || hd_slice_eq(principal, hd_slice_cstr(p->ops->principal))) &&
           (!o->thread || hd_slice_eq(id, hd_slice_cstr(o->thread)));
}

/* Chooses the strategy; false: do not prune the thread. */
static bool choose_strategy(struct pruning *p, const struct hd_thread_rec *thread,
                            struct hd_prune *prune)
{
    const struct prune_options *o = p->options;
    struct hd_ttl ttl = hd_ttl_read(thread->ttl);

    if (!is_meant(p, thread->principal, thread->id))
        return false;
    p->looked++;
    report_progress(p);
    *prune = o->prune;
    if (!o->has_strategy) {
        prune->strategy = ttl.strategy;
        prune->keep_last = ttl.keep_last;
        prune->is_over = true;
        if (thread->expires_at == 0 || thread->expires_at > p->now)
            return false;
    }
    if (o->before && thread->updated_at >= o->before)
        return false;
    if (thread->status == HD_THREAD_BUSY && (prune->strategy == HD_TTL_DELETE || prune->is_over)) {
        p->busy++;
        return false;
    }
    return true;
}

static int on_record(void *arg, const struct hd_thread_rec *thread)
{
    struct pruning *p = arg;
    struct hd_removed before = p->removed;
    struct hd_prune prune;
    int err;

    if (!choose_strategy(p, thread, &prune))
        return 0;
    p->fault = (struct heddle_error){0};
    err = hd_thread_prune(p->ops->store, thread, &prune, &p->removed, &p->fault);
    if (err == HD_ECONFLICT) {
        p->busy++;
        return 0;
    }
    p->changed +=
        p->removed.checkpoints > before.checkpoints || p->removed.threads > before.threads;
    return err;
}

/* A thread without a server's record: checkpoints only, written by one of the packages. */
static int prune_bare(struct pruning *p, const struct heddle_thread *thread)
{
    static const enum heddle_prune strategies[] = {[HD_TTL_DELETE] = HEDDLE_DELETE_ALL,
                                                   [HD_TTL_KEEP_LATEST] = HEDDLE_KEEP_LATEST,
                                                   [HD_TTL_KEEP_BRANCHES] = HEDDLE_KEEP_BRANCHES};
    const struct heddle_prune_options options = {.strategy = strategies[p->options->prune.strategy],
                                                 .keep_last = p->options->prune.keep_last,
                                                 .dry_run = p->options->is_dry};
    struct heddle_usage usage = {0};
    int err = heddle_prune_with(p->ops->store, thread, 1, &options, &usage, &p->fault);

    if (err)
        return err;
    p->removed.checkpoints += usage.checkpoints;
    p->removed.writes += usage.writes;
    p->removed.bytes += usage.bytes;
    p->removed.threads += options.strategy == HEDDLE_DELETE_ALL;
    p->changed += usage.checkpoints > 0;
    return 0;
}

static int on_prunable_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    struct pruning *p = arg;
    struct heddle_thread thread = hd_store_thread_from_key(cells[HD_THREADS_ID].bytes);
    struct hd_slice principal = hd_from_public(thread.principal), id = hd_from_public(thread.id);
    struct hd_thread_rec record;
    int err;

    (void)which;
    if (cells[HD_THREADS_CREATED].number == 0 || !is_meant(p, principal, id) ||
        (p->options->before && cells[HD_THREADS_UPDATED].number >= p->options->before))
        return 0;
    hd_arena_reset(&p->arena);
    err = hd_thread_read(p->ops->store, principal, id, &p->arena, &record, &p->fault);
    if (err != HD_ENOTFOUND)
        return err;
    p->looked++;
    report_progress(p);
    return prune_bare(p, &thread);
}

static int prune_all(struct pruning *p)
{
    const struct hd_query query = {
        .table = HD_THREADS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    int err = hd_threads_scan_all(p->ops->store, on_record, p, &p->fault);

    /* They have no time to live. */
    if (!err && p->options->has_strategy)
        err = hd_rows_scan(p->ops->store, query, on_prunable_thread, p, &p->fault);
    return err;
}

/* ---- the command ------------------------------------------------------ */

static long long file_bytes(const struct hd_ops *ops)
{
    char path[4096];
    struct stat st;

    return hd_url_file(ops->config.store, path, sizeof(path)) && stat(path, &st) == 0
               ? (long long)st.st_size
               : -1;
}

static int vacuum(struct hd_ops *ops)
{
    struct heddle_error error = {0};
    long long before = file_bytes(ops), after;

    if (heddle_compact(ops->store, &error)) {
        (void)fprintf(stderr, "heddle prune: %s\n", error.text);
        return HD_EXIT_FAILED;
    }
    after = file_bytes(ops);
    if (before >= 0 && after >= 0)
        printf("file: %lld bytes before, %lld bytes now\n", before, after);
    return HD_EXIT_OK;
}

static void print_removed(const struct pruning *p)
{
    const struct hd_removed *r = &p->removed;

    printf("%s %lld threads, %lld checkpoints, %lld writes, %lld runs, %lld bytes\n",
           p->options->is_dry ? "would remove" : "removed", (long long)r->threads,
           (long long)r->checkpoints, (long long)r->writes, (long long)r->runs,
           (long long)r->bytes);
    printf("threads: %zu checked, %zu %s, %zu busy and skipped\n", p->looked, p->changed,
           p->options->is_dry ? "would change" : "changed", p->busy);
}

static int prune_store(const struct prune_options *options, struct hd_ops *ops)
{
    struct pruning p = {.options = options, .ops = ops, .now = hd_clock_now_us()};
    int err;

    hd_arena_init(&p.arena, MAX_RECORD);
    err = prune_all(&p);
    hd_arena_fini(&p.arena);
    if (err)
        (void)fprintf(stderr, "heddle prune: %s\n",
                      p.fault.code ? p.fault.text : hd_error_text(err));
    print_removed(&p);
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int prune_run(int argc, char **argv)
{
    struct prune_options options = {.strategy = NULL};
    struct hd_ops ops;
    int status = prune_parse_args(argc, argv, &options);

    if (status == 0)
        status = check_prune_options(&options);
    if (status != 0)
        return status;
    status = hd_ops_begin(&hd_command_prune, &options.common, false, &ops);
    if (status != 0)
        return status;
    status = prune_store(&options, &ops);
    if (status == HD_EXIT_OK && options.vacuums && !options.is_dry)
        status = vacuum(&ops);
    hd_ops_end(&ops);
    return status;
}

const struct hd_command hd_command_prune = {
    .name = "prune",
    .arguments =
        "[--dry-run] [--strategy WORD [--keep-last K] [--older-than MINUTES] [--thread ID]]\n"
        "       [--principal P | --subject ALIAS/SUBJECT] [--store URL] [--config FILE] [--vacuum]",
    .summary = "delete old checkpoints and threads",
    .help =
        "Without --strategy: deletes data that has expired by the `ttl` of its thread. With it: "
        "prunes\n"
        "all threads, or those that the other options select.\n"
        "\n"
        "  --dry-run          change nothing, only count\n"
        "  --strategy WORD    delete, keep_latest (the newest checkpoint of each namespace) or\n"
        "                     keep_branches (heads, the last of each branch, forks)\n"
        "  --keep-last K      keep_branches: checkpoints of each branch that stay [1]\n"
        "  --older-than N     threads not changed for this many minutes\n"
        "  --thread ID        only this thread\n"
        "  --principal P, --subject A/S   only threads of this owner\n"
        "  --store URL        the database (default: sqlite:heddle.db, or as configured)\n"
        "  --config FILE      the server's configuration\n"
        "  --vacuum           then return free space to the file system (SQLite)\n"
        "\n"
        "Servers may use the database meanwhile; busy threads are not deleted.\n"
        "\n"
        "  heddle prune --strategy keep_branches --keep-last 5 --dry-run\n"
        "  heddle prune --strategy delete --older-than 43200 --vacuum\n",
    .run = prune_run,
};
