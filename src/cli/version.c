/* heddle version */
#include <stdio.h>

#include "cli/cli.h"

static int version_run(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return hd_usage_error(&hd_command_version, "takes no arguments");
    return hd_cli_write_out(HD_S("heddle " HD_VERSION "\n")) ? HD_EXIT_OK : HD_EXIT_FAILED;
}

const struct hd_command hd_command_version = {
    .name = "version",
    .arguments = "",
    .summary = "print the version",
    .help = "Prints the name and the version of this program on one line.\n",
    .run = version_run,
};
