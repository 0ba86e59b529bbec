/* heddle import: loads the output of `heddle export` into a database. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "heddle.h"
#include "transfer/dump.h"

struct import_options {
    struct hd_ops_options common;
    const char *file, *if_exists;
};

static void report_failure(const struct import_options *options, const struct hd_import *import,
                           int err, const struct heddle_error *fault)
{
    (void)fprintf(stderr, "heddle import: %s", options->file);
    if (import->line > 0)
        (void)fprintf(stderr, ", line %llu", (unsigned long long)import->line);
    (void)fprintf(stderr, ": %s\n", fault->code ? fault->text : hd_error_text(err));
    if (err == HD_EEXISTS)
        (void)fprintf(stderr, "  --if-exists replace overwrites it\n");
}

static int bring_in(const struct import_options *options, struct hd_ops *ops)
{
    struct hd_import import = {.store = ops->store, .principal = hd_slice_cstr(ops->principal)};
    struct heddle_error fault = {0};
    int err;

    import.replaces = options->if_exists && strcmp(options->if_exists, "replace") == 0;
    import.in = fopen(options->file, "rbe");
    if (!import.in || fseek(import.in, 0, SEEK_SET) != 0) {
        (void)fprintf(stderr, "heddle import: %s: %s\n", options->file, strerror(errno));
        if (import.in)
            (void)fclose(import.in);
        return HD_EXIT_FAILED;
    }
    err = hd_import(&import, &fault);
    (void)fclose(import.in);
    if (err) {
        report_failure(options, &import, err, &fault);
        return HD_EXIT_FAILED;
    }
    printf("%llu threads, %llu rows\n", (unsigned long long)import.threads,
           (unsigned long long)import.rows);
    if (import.ended_runs > 0)
        printf("%llu runs were active when they were exported: imported with status error\n",
               (unsigned long long)import.ended_runs);
    return HD_EXIT_OK;
}

static int import_parse_args(int argc, char **argv, struct import_options *options)
{
    const struct hd_command *command = &hd_command_import;

    for (int i = 1; i < argc; i++) {
        int status = hd_ops_option(command, &options->common, argc, argv, &i);

        if (status == HD_OPS_TAKEN)
            continue;
        if (status != HD_OPS_OTHER)
            return status;
        if (hd_option_value(argc, argv, &i, "--if-exists", &options->if_exists)) {
            if (!options->if_exists || (strcmp(options->if_exists, "refuse") != 0 &&
                                        strcmp(options->if_exists, "replace") != 0))
                return hd_usage_error(command, "--if-exists takes refuse or replace");
        } else if (argv[i][0] == '-') {
            return hd_usage_error(command, "unknown option %s", argv[i]);
        } else if (options->file) {
            return hd_usage_error(command, "expected one FILE");
        } else {
            options->file = argv[i];
        }
    }
    return options->file ? 0 : hd_usage_error(command, "FILE is required");
}

static int import_run(int argc, char **argv)
{
    struct import_options options = {.file = NULL};
    struct hd_ops ops;
    int status = import_parse_args(argc, argv, &options);

    if (status != 0)
        return status;
    status = hd_ops_begin(&hd_command_import, &options.common, true, &ops);
    if (status != 0)
        return status;
    status = bring_in(&options, &ops);
    hd_ops_end(&ops);
    return status;
}

const struct hd_command hd_command_import = {
    .name = "import",
    .arguments = "FILE [--store URL] [--config FILE] [--principal P | --subject ALIAS/SUBJECT]\n"
                 "       [--if-exists refuse|replace]",
    .summary = "load the output of `export`",
    .help = "Reads the whole file first, and changes nothing if it is invalid. Then imports all\n"
            "data or none: after a failure, the imported rows are deleted again. A running\n"
            "server sees each thread when it is complete.\n"
            "\n"
            "  --if-exists refuse   import nothing if any of the data exists (default)\n"
            "  --if-exists replace  delete existing data first\n"
            "\n"
            "The other options are those of `heddle export`; data of one subject may be\n"
            "imported as another's.\n",
    .run = import_run,
};
