/* Which namespace of a thread a command shows when --ns is absent. */
#ifndef HD_CLI_THREAD_NS_H
#define HD_CLI_THREAD_NS_H

#include <stdbool.h>

#include "base/compiler.h"

struct heddle;
struct hd_command;

/* The arguments that `state` and `history` have in common. */
struct hd_cli_thread_args {
    const char *url, *principal, *thread;
    const char *ns;  /* NULL: --ns is absent */
    char *chosen_ns; /* set by hd_cli_thread_open(); freed by hd_cli_thread_close() */
    struct heddle *store;
};

/*
 * Reads argv[*index] when it is one of these. False: it is an option of the command. *status is
 * HD_EXIT_USAGE after an error, which is printed.
 */
bool hd_cli_thread_arg(const struct hd_command *command, struct hd_cli_thread_args *args, int argc,
                       char **argv, int *index, int *status);

/*
 * Opens the store, which must exist, and chooses the namespace: that of --ns, or the only root
 * namespace of the thread. With several it prints them all and fails. Returns HD_EXIT_*; close in
 * any case.
 */
HD_MUST_CHECK int hd_cli_thread_open(const struct hd_command *command,
                                     struct hd_cli_thread_args *args);

/* Calls `fn` for each checkpoint of the thread, newest first, without values; `ns` NULL: all. */
struct heddle_error;
struct heddle_tuple;
typedef int (*hd_thread_tuple_fn)(void *ctx, const struct heddle_tuple *tuple);
HD_MUST_CHECK int hd_cli_thread_scan(const struct hd_cli_thread_args *args, const char *ns,
                                     hd_thread_tuple_fn fn, void *ctx, struct heddle_error *error);

void hd_cli_thread_close(struct hd_cli_thread_args *args);

#endif
