/* The command line: one file and one const struct per command, one table in main.c. */
#ifndef HD_CLI_CLI_H
#define HD_CLI_CLI_H

#include "base/buf.h"
#include "base/compiler.h"

/* Exit status of a command. */
enum {
    HD_EXIT_OK = 0,
    HD_EXIT_FAILED = 1, /* error, printed on stderr */
    HD_EXIT_USAGE = 2   /* wrong arguments */
};

struct hd_command {
    const char *name;
    const char *arguments; /* for the usage line */
    const char *summary;   /* one line, for the list of commands */
    const char *help;      /* the rest of `heddle help <name>`; ends with a newline */

    void (*more)(void); /* prints text after the help; may be NULL */

    /* argv[0] is the command's name. Returns an exit status. */
    int (*run)(int argc, char **argv);
};

extern const struct hd_command hd_command_dev;
extern const struct hd_command hd_command_doctor;
extern const struct hd_command hd_command_export;
extern const struct hd_command hd_command_graph;
extern const struct hd_command hd_command_help;
extern const struct hd_command hd_command_history;
extern const struct hd_command hd_command_import;
extern const struct hd_command hd_command_key;
extern const struct hd_command hd_command_mock_model;
extern const struct hd_command hd_command_rekey;
extern const struct hd_command hd_command_new;
extern const struct hd_command hd_command_prune;
extern const struct hd_command hd_command_replay;
extern const struct hd_command hd_command_run;
extern const struct hd_command hd_command_serve;
extern const struct hd_command hd_command_servers;
extern const struct hd_command hd_command_state;
extern const struct hd_command hd_command_threads;
extern const struct hd_command hd_command_version;

/* Prints an error that names the closest command; returns HD_EXIT_USAGE. */
int hd_cli_command_unknown(const char *name);
/* By name; NULL when there is none. */
const struct hd_command *hd_cli_command_find(const char *name);
/* Command number `index`; NULL after the last. */
const struct hd_command *hd_cli_command_at(size_t index);

/* ---- for commands: common.c ------------------------------------------- */

/* "heddle graph: …" on stderr; returns HD_EXIT_USAGE. */
int hd_usage_error(const struct hd_command *command, const char *fmt, ...) HD_PRINTF(2, 3);

/*
 * An option with a value, as "--name value" or "--name=value": sets *value and moves *index to the
 * last argument used. False: argv[*index] is something else. A missing value is NULL.
 */
bool hd_option_value(int argc, char **argv, int *index, const char *name, const char **value);

/* Reads a whole file, "-" for standard input; false after printing the error on stderr. */
bool hd_cli_read_file(const char *path, size_t limit, struct hd_buf *out);
/* True when all of it was written. */
bool hd_cli_write_out(struct hd_slice text);

/* Reads a declaration; NULL after printing the error on stderr. */
struct hd_graph;
HD_MUST_CHECK struct hd_graph *hd_cli_read_graph(const char *path);

/*
 * graphs.c: reads the graphs of the configuration, or the built-in ones, into the app; false after
 * printing the error on stderr. Close in any case.
 */
struct hd_app;
struct hd_config;
HD_MUST_CHECK bool hd_graphs_open(struct hd_app *app, const struct hd_config *config);
void hd_graphs_close(struct hd_app *app);

/*
 * serve.c: runs a server from its options to its end. `greet` prints the start message on standard
 * output once the server listens. Returns an exit status.
 */
typedef void (*hd_greet_fn)(struct hd_app *app, const char *url, const char *store);
int hd_serve(const char *command, int argc, char **argv, hd_greet_fn greet);
/* Prints the server's options. */
void hd_serve_options(void);

#endif
