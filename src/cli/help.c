/* heddle help: all commands, or one. */
#include <stdio.h>

#include "cli/cli.h"

static void list_commands(void)
{
    const struct hd_command *command;

    (void)printf("heddle stores, runs and branches agent conversations.\n"
                 "\n"
                 "usage: heddle COMMAND [ARGUMENTS]\n"
                 "\n"
                 "commands:\n");
    for (size_t i = 0; (command = hd_cli_command_at(i)); i++)
        (void)printf("  %-10s %s\n", command->name, command->summary);
    (void)printf(
        "\n"
        "heddle help COMMAND shows its options and examples.\n"
        "\n"
        "heddle serve includes two agents (docs/agents.md); heddle mock-model is a scripted model\n"
        "to test them with. Graphs are JSON files (docs/graphs.md, examples/graphs), or Python\n"
        "and TypeScript code of a langgraph.json project: heddle new creates one, heddle dev\n"
        "serves it (docs/projects.md).\n"
        "\n"
        "Exit status: 0 success, 1 error (standard error has the cause), 2 usage error.\n");
}

static int help_run(int argc, char **argv)
{
    const struct hd_command *command;

    if (argc < 2) {
        list_commands();
        return HD_EXIT_OK;
    }
    if (argc > 2)
        return hd_usage_error(&hd_command_help, "expected one COMMAND");
    command = hd_cli_command_find(argv[1]);
    if (!command)
        return hd_cli_command_unknown(argv[1]);
    (void)printf("heddle %s: %s\n\nusage: heddle %s %s\n\n%s", command->name, command->summary,
                 command->name, command->arguments, command->help);
    if (command->more)
        command->more();
    return HD_EXIT_OK;
}

const struct hd_command hd_command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "list the commands, or explain one",
    .help = "Without COMMAND, lists all commands.\n",
    .run = help_run,
};
