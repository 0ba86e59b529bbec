/* What the operator's commands share: doctor, export, import, rekey. */
#ifndef HD_CLI_OPS_H
#define HD_CLI_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct heddle;
struct hd_command;

/* A store's URL as it may be shown: without its password. */
void hd_ops_url(const char *url, char *out, size_t size);

/*
 * The file of a SQLite URL, into `out`; false for other databases, and for sqlite::memory:. Nothing
 * is opened.
 */
bool hd_ops_file(const char *url, char *out, size_t size);

/*
 * Opens a database that must be there; false after saying why. `is_new` allows one that
 * is not there yet.
 */
HD_MUST_CHECK bool hd_ops_open(const struct hd_command *command, const char *url, bool is_new,
                               struct heddle **out);

#endif
