/* Shared by the operator's commands: doctor, export, import, rekey. */
#ifndef HD_CLI_OPS_H
#define HD_CLI_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "auth/identity.h"
#include "base/compiler.h"
#include "config/config.h"

struct heddle;
struct hd_command;
struct hd_auth;

/*
 * Opens an existing database; false after printing the error. `is_new` permits one that does not
 * exist yet.
 */
HD_MUST_CHECK bool hd_ops_open(const struct hd_command *command, const char *url, bool is_new,
                               struct heddle **out);

/* ---- subject and store ------------------------------------------------ */

/* As given; each may be NULL. */
struct hd_ops_options {
    const char *store, *config, *principal, *subject;
    bool is_of_all; /* the command applies to all principals */
};

enum { HD_OPS_TAKEN = -1, HD_OPS_OTHER = -2 };

/* HD_OPS_TAKEN, HD_OPS_OTHER when argv[*index] is another option, or HD_EXIT_USAGE. */
int hd_ops_option(const struct hd_command *command, struct hd_ops_options *options, int argc,
                  char **argv, int *index);

struct hd_ops {
    struct hd_config config;
    struct hd_auth *auth; /* for its keys; NULL: authentication is off */
    struct heddle *store;
    char principal[HD_PRINCIPAL_SIZE + 128]; /* "": authentication is off */
};

/* Reads the configuration, opens the database and finds the principal; returns 0 or HD_EXIT_*. */
HD_MUST_CHECK int hd_ops_begin(const struct hd_command *command,
                               const struct hd_ops_options *options, bool is_new,
                               struct hd_ops *ops);
void hd_ops_end(struct hd_ops *ops);

#endif
