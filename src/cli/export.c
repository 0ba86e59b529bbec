/* heddle export: all data of a thread or of a subject, as JSON lines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "heddle.h"
#include "transfer/dump.h"

struct export_options {
    struct hd_ops_options common;
    const char *thread, *output;
    bool is_all;
};

static int write_export(const struct export_options *options, struct hd_ops *ops, FILE *out)
{
    struct hd_export export = {
        .store = ops->store, .principal = hd_slice_cstr(ops->principal), .out = out};
    struct heddle_error fault = {0};
    int err = options->is_all ? hd_export_all(&export, &fault)
                              : hd_export_thread(&export, hd_slice_cstr(options->thread), &fault);

    if (err == HD_ENOTFOUND && !fault.code)
        (void)fprintf(stderr, "heddle export: thread %s not found\n", options->thread);
    else if (err)
        (void)fprintf(stderr, "heddle export: %s\n", fault.code ? fault.text : hd_error_text(err));
    else if (options->output)
        (void)fprintf(stderr, "%llu threads, %llu rows\n", (unsigned long long)export.threads,
                      (unsigned long long)export.rows);
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

/*
 * Writes to a temporary file beside the target and renames it when complete; readable by its owner
 * only.
 */
static int export_to_file(const struct export_options *options, struct hd_ops *ops)
{
    char part[4096];
    int len = snprintf(part, sizeof(part), "%s.part", options->output);
    mode_t mask = umask(S_IRWXG | S_IRWXO);
    FILE *out = len < (int)sizeof(part) ? fopen(part, "wbe") : NULL;
    int status;

    (void)umask(mask);
    if (!out) {
        (void)fprintf(stderr, "heddle export: %s: %s\n", part, strerror(errno));
        return HD_EXIT_FAILED;
    }
    status = write_export(options, ops, out);
    if (status == HD_EXIT_OK && fsync(fileno(out)) != 0)
        status = HD_EXIT_FAILED;
    if (fclose(out) != 0 || (status == HD_EXIT_OK && rename(part, options->output) != 0)) {
        (void)fprintf(stderr, "heddle export: %s: %s\n", options->output, strerror(errno));
        status = HD_EXIT_FAILED;
    }
    if (status != HD_EXIT_OK)
        (void)unlink(part);
    return status;
}

static int export_parse_args(int argc, char **argv, struct export_options *options)
{
    const struct hd_command *command = &hd_command_export;

    for (int i = 1; i < argc; i++) {
        int status = hd_ops_option(command, &options->common, argc, argv, &i);

        if (status == HD_OPS_TAKEN)
            continue;
        if (status != HD_OPS_OTHER)
            return status;
        if (hd_option_value(argc, argv, &i, "--output", &options->output)) {
            if (!options->output)
                return hd_usage_error(command, "--output needs a value");
        } else if (strcmp(argv[i], "--all") == 0) {
            options->is_all = true;
        } else if (argv[i][0] == '-') {
            return hd_usage_error(command, "unknown option %s", argv[i]);
        } else if (options->thread) {
            return hd_usage_error(command, "expected one THREAD, or --all");
        } else {
            options->thread = argv[i];
        }
    }
    if (options->is_all == (options->thread != NULL))
        return hd_usage_error(command, "THREAD or --all is required");
    return 0;
}

static int export_run(int argc, char **argv)
{
    struct export_options options = {.thread = NULL};
    struct hd_ops ops;
    int status = export_parse_args(argc, argv, &options);

    if (status != 0)
        return status;
    status = hd_ops_begin(&hd_command_export, &options.common, false, &ops);
    if (status != 0)
        return status;
    status = options.output && strcmp(options.output, "-") != 0
                 ? export_to_file(&options, &ops)
                 : write_export(&options, &ops, stdout);
    hd_ops_end(&ops);
    return status;
}

const struct hd_command hd_command_export = {
    .name = "export",
    .arguments =
        "THREAD | --all [--store URL] [--config FILE] [--principal P | --subject ALIAS/SUBJECT]\n"
        "       [--output FILE]",
    .summary = "write all data of a thread or of a subject as JSON lines",
    .help =
        "Writes all data of a thread: its record, checkpoints, values, writes, runs, events,\n"
        "recorded exchanges and participants. `heddle import` loads it into any database.\n"
        "\n"
        "  --all              all data of a subject: threads, assistants, items, crons\n"
        "  --store URL        the database (default: sqlite:heddle.db, or as configured)\n"
        "  --config FILE      the server's configuration: its database, and the keys that\n"
        "                     principals are derived with\n"
        "  --subject A/S      the owner: the alias of the issuer and the subject\n"
        "  --principal P      the owner's principal (default: that of a server without\n"
        "                     authentication)\n"
        "  --output FILE      instead of standard output; created when complete\n"
        "\n"
        "  heddle export 0198f0c2-… --output thread.jsonl\n"
        "  heddle export --all --subject main/alice --config heddle.json --output alice.jsonl\n",
    .run = export_run,
};
