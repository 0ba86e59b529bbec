#include "config/python_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define PATIENCE_US (60 * 1000000LL)
#define NAP_NS (5 * 1000000L)

extern char **environ;

/*
 * Packages are located, not imported, which is fast. The runtime's folder shows whether the package
 * has a runtime.
 */
static char program[] =
    "import sys\n"
    "if sys.version_info < (3, 10): sys.exit(84)\n"
    "import os, importlib.util\n"
    "def find(name):\n"
    "    try: return importlib.util.find_spec(name)\n"
    "    except Exception: return None\n"
    "heddle = find('heddle')\n"
    "if heddle is None: sys.exit(81)\n"
    "folders = heddle.submodule_search_locations or []\n"
    "if not any(os.path.isdir(os.path.join(f, 'runtime')) for f in folders): sys.exit(82)\n"
    "if find('langgraph') is None: sys.exit(83)\n"
    "from importlib.metadata import version\n"
    "try: major = int(version('langgraph').split('.')[0])\n"
    "except Exception: major = 1\n"
    "if major < 1: sys.exit(85)\n"
    "sys.exit(80)\n";

/* The status that it ended with; -1: it did not. */
static int wait_for(pid_t pid)
{
    int64_t until = hd_clock_monotonic_us() + PATIENCE_US;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    int status = 0;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && hd_clock_monotonic_us() < until)
        (void)nanosleep(&nap, NULL);
    if (got == 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        return -1;
    }
    return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum hd_probe hd_probe_python(const char *python)
{
    char command[] = "-c";
    char *argv[] = {(char *)python, command, program, NULL};
    posix_spawn_file_actions_t actions;
    int status = -1;
    pid_t pid;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return HD_PROBE_BROKEN;
    /* Errors of the program itself go to stderr. */
    if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn(&pid, python, &actions, NULL, argv, environ) == 0)
        status = wait_for(pid);
    (void)posix_spawn_file_actions_destroy(&actions);
    return status >= HD_PROBE_GOOD && status <= HD_PROBE_OLD_LANGGRAPH ? (enum hd_probe)status
                                                                       : HD_PROBE_BROKEN;
}
