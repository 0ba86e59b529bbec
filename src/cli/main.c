/* heddle: finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/suggest.h"
#include "cli/cli.h"

/* One line per command; a command is one file. */
static const struct hd_command *const commands[] = {
    &hd_command_dev,        &hd_command_doctor,  &hd_command_export,  &hd_command_graph,
    &hd_command_help,       &hd_command_history, &hd_command_import,  &hd_command_key,
    &hd_command_mock_model, &hd_command_new,     &hd_command_prune,   &hd_command_rekey,
    &hd_command_replay,     &hd_command_run,     &hd_command_serve,   &hd_command_servers,
    &hd_command_state,      &hd_command_threads, &hd_command_version,
};

const struct hd_command *hd_cli_command_at(size_t index)
{
    return index < HD_COUNT(commands) ? commands[index] : NULL;
}

const struct hd_command *hd_cli_command_find(const char *name)
{
    for (size_t i = 0; i < HD_COUNT(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

int hd_cli_command_unknown(const char *name)
{
    struct hd_near near;

    hd_near_init(&near, hd_slice_cstr(name));
    for (size_t i = 0; i < HD_COUNT(commands); i++)
        hd_near_try(&near, hd_slice_cstr(commands[i]->name));
    (void)fprintf(stderr, "heddle: unknown command '%.*s'", HD_SHOW(near.wanted));
    if (near.best.len > 0)
        (void)fprintf(stderr, "; did you mean '%.*s'?\n", HD_SHOW(near.best));
    else
        (void)fprintf(stderr, "; heddle help lists the commands\n");
    return HD_EXIT_USAGE;
}

/* Common options that mean commands. */
static const char *command_name(const char *arg)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
        return "help";
    if (strcmp(arg, "--version") == 0 || strcmp(arg, "-V") == 0)
        return "version";
    return arg;
}

int main(int argc, char **argv)
{
    const struct hd_command *command;
    char help[] = "help";
    int status;

    if (argc < 2) {
        (void)fprintf(stderr,
                      "usage: heddle COMMAND [ARGUMENTS]; heddle help lists the commands\n");
        return HD_EXIT_USAGE;
    }
    command = hd_cli_command_find(command_name(argv[1]));
    if (!command)
        return hd_cli_command_unknown(argv[1]);
    hd_agent_kinds();
    /* heddle graph --help is heddle help graph. */
    if (argc == 3 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        char *help_argv[] = {help, argv[1], NULL};

        status = hd_command_help.run(2, help_argv);
    } else {
        status = command->run(argc - 1, argv + 1);
    }
    /* Buffered output may still fail to be written. */
    if (fflush(stdout) != 0 && status == HD_EXIT_OK)
        status = HD_EXIT_FAILED;
    return status;
}
