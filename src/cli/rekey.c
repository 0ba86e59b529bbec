/* heddle rekey: moves all data to the principals of a new key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "transfer/rekey.h"

#define SECOND INT64_C(1000000)
#define MAX_WAIT 86400

static void on_rekey_progress(void *ctx, uint64_t left)
{
    (void)ctx;
    (void)fprintf(stderr, "\r%llu principals left in this group ", (unsigned long long)left);
}

static void summarise(const struct hd_rekey *rekey)
{
    printf("%s %llu principals, %llu threads, %llu rows\n",
           rekey->only_counts ? "would move" : "moved", (unsigned long long)rekey->principals,
           (unsigned long long)rekey->threads, (unsigned long long)rekey->rows);
    if (rekey->waiting > 0)
        printf("%llu principals not moved: they have active runs; run the command again later\n",
               (unsigned long long)rekey->waiting);
    else if (!rekey->only_counts)
        printf("no data is left under an old key: remove the key from the configuration\n");
}

static int rekey_all(struct hd_ops *ops, bool only_counts, int64_t wait_s)
{
    bool has_progress = isatty(STDERR_FILENO) && !only_counts;
    struct hd_rekey rekey = {.store = ops->store,
                             .auth = ops->auth,
                             .only_counts = only_counts,
                             .patience_us = wait_s * SECOND,
                             .progress = has_progress ? on_rekey_progress : NULL};
    struct heddle_error fault = {0};
    int err;

    if (!ops->auth || hd_auth_key(ops->auth, 0)->id.len == 0)
        return hd_usage_error(&hd_command_rekey, "the configuration has no auth.key");
    err = hd_rekey(&rekey, &fault);
    if (has_progress)
        (void)fprintf(stderr, "\r%50s\r", "");
    if (err) {
        (void)fprintf(stderr, "heddle rekey: %s; run the command again to continue\n",
                      fault.code ? fault.text : hd_error_text(err));
        return HD_EXIT_FAILED;
    }
    summarise(&rekey);
    return rekey.waiting > 0 ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int rekey_run(int argc, char **argv)
{
    const struct hd_command *command = &hd_command_rekey;
    struct hd_ops_options options = {.is_of_all = true};
    const char *wait = "600";
    bool only_counts = false;
    struct hd_ops ops;
    char *end;
    long seconds;
    int status;

    for (int i = 1; i < argc; i++) {
        status = hd_ops_option(command, &options, argc, argv, &i);
        if (status == HD_OPS_TAKEN || hd_option_value(argc, argv, &i, "--wait", &wait))
            continue;
        if (status != HD_OPS_OTHER)
            return status;
        if (strcmp(argv[i], "--dry-run") != 0)
            return hd_usage_error(command, "unknown argument %s", argv[i]);
        only_counts = true;
    }
    seconds = wait ? strtol(wait, &end, 10) : -1;
    if (!wait || *end || end == wait || seconds < 0 || seconds > MAX_WAIT)
        return hd_usage_error(command, "--wait takes a number of seconds");
    if (options.principal || options.subject)
        return hd_usage_error(command,
                              "--principal and --subject do not apply: all principals are moved");
    if (!options.config)
        return hd_usage_error(command, "--config FILE is required: it names the keys");
    status = hd_ops_begin(command, &options, false, &ops);
    if (status != 0)
        return status;
    status = rekey_all(&ops, only_counts, seconds);
    hd_ops_end(&ops);
    return status;
}

const struct hd_command hd_command_rekey = {
    .name = "rekey",
    .arguments = "--config FILE [--store URL] [--dry-run] [--wait SECONDS]",
    .summary = "move all data to the principals of a new key",
    .help = "Principals are keyed hashes. To change the key, put the new one into `auth.key` and\n"
            "the previous one into `auth.old_keys`, restart the server, and run this\n"
            "command: it moves all data from the principals of old keys to those of the new key.\n"
            "The server keeps running; requests of a user who is being moved get 503 with\n"
            "Retry-After for some seconds. After an interruption run the command again.\n"
            "\n"
            "  --config FILE    the server's configuration, with both keys\n"
            "  --dry-run        only count the data to move\n"
            "  --wait SECONDS   maximum wait for active runs of a user (default: 600)\n"
            "\n"
            "Exit status 1 if a user could not be moved.\n",
    .run = rekey_run,
};
