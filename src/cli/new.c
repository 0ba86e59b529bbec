/* heddle new: creates a small working project. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slice.h"
#include "cli/cli.h"

/* The files of src/cli/projects, and their names in a project. */
#define PYTHON(X)                                   \
    X(python, langgraph_json, "langgraph.json")     \
    X(python, agent_py, "agent.py")                 \
    X(python, requirements_txt, "requirements.txt") \
    X(python, env, ".env")                          \
    X(python, gitignore, ".gitignore")              \
    X(python, README_md, "README.md")
#define TYPESCRIPT(X)                               \
    X(typescript, langgraph_json, "langgraph.json") \
    X(typescript, src_agent_ts, "src/agent.ts")     \
    X(typescript, package_json, "package.json")     \
    X(typescript, tsconfig_json, "tsconfig.json")   \
    X(typescript, env, ".env")                      \
    X(typescript, gitignore, ".gitignore")          \
    X(typescript, README_md, "README.md")
#define NATIVE(X)                               \
    X(native, langgraph_json, "langgraph.json") \
    X(native, agent_json, "agent.json")         \
    X(native, gitignore, ".gitignore")          \
    X(native, README_md, "README.md")

#define X(kind, file, name)                     \
    extern const char hd_new_##kind##_##file[]; \
    extern const size_t hd_new_##kind##_##file##_len;
PYTHON(X)
TYPESCRIPT(X)
NATIVE(X)
#undef X

struct file {
    const char *name;
    const char *text;
    const size_t *len;
};

#define X(kind, file, name) {name, hd_new_##kind##_##file, &hd_new_##kind##_##file##_len},
static const struct file python[] = {PYTHON(X)};
static const struct file typescript[] = {TYPESCRIPT(X)};
static const struct file native[] = {NATIVE(X)};
#undef X

struct project_kind {
    const char *option;
    const struct file *files;
    size_t count;
    const char *next; /* instructions to follow before `heddle dev` */
};

static const struct project_kind kinds[] = {
    {"--python", python, HD_COUNT(python),
     "  python3 -m venv .venv\n"
     "  .venv/bin/pip install -r requirements.txt\n"},
    {"--typescript", typescript, HD_COUNT(typescript), "  npm install\n"},
    {"--native", native, HD_COUNT(native), ""},
};

static int fail_path(const char *path)
{
    (void)fprintf(stderr, "heddle new: %s: %s\n", path, strerror(errno));
    return HD_EXIT_FAILED;
}

/* A folder with files may hold the user's work. */
static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool is_so = true;

    if (!dir)
        return errno == ENOENT;
    /* cppcheck-suppress readdirCalled ; there is one thread */
    while (is_so && (entry = readdir(dir)))
        is_so = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    (void)closedir(dir);
    return is_so;
}

/* Creates all parent folders: for "a/b/c", a and a/b. */
static int make_folders(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fail_path(part);
    }
    return HD_EXIT_OK;
}

static int write_file(const char *folder, const struct file *file)
{
    size_t done = 0;
    char path[PATH_MAX];
    int fd, status;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file->name) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return fail_path(folder);
    }
    status = make_folders(path);
    if (status)
        return status;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_path(path);
    while (done < *file->len) {
        ssize_t wrote = write(fd, file->text + done, *file->len - done);

        if (wrote < 0 && errno != EINTR) {
            status = fail_path(path);
            break;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    if (close(fd) != 0 && !status)
        status = fail_path(path);
    return status;
}

static int write_project(const char *folder, const struct project_kind *kind)
{
    int status = HD_EXIT_OK;

    if (!is_empty(folder)) {
        (void)fprintf(stderr, "heddle new: %s exists and is not empty\n", folder);
        return HD_EXIT_FAILED;
    }
    for (size_t i = 0; !status && i < kind->count; i++)
        status = write_file(folder, &kind->files[i]);
    if (status)
        return status;
    printf("Created %s:", folder);
    for (size_t i = 0; i < kind->count; i++)
        printf(" %s", kind->files[i].name);
    printf("\n\nNext steps:\n  cd %s\n%s  heddle dev\n", folder, kind->next);
    return HD_EXIT_OK;
}

static int new_run(int argc, char **argv)
{
    const struct project_kind *kind = NULL;
    const char *folder = NULL;

    for (int i = 1; i < argc; i++) {
        bool is_known = false;

        for (size_t k = 0; k < HD_COUNT(kinds); k++) {
            if (strcmp(argv[i], kinds[k].option) != 0)
                continue;
            if (kind && kind != &kinds[k])
                return hd_usage_error(&hd_command_new, "%s and %s exclude each other", kind->option,
                                      argv[i]);
            kind = &kinds[k];
            is_known = true;
        }
        if (is_known)
            continue;
        if (argv[i][0] == '-' || !argv[i][0])
            return hd_usage_error(&hd_command_new, "unknown option %s", argv[i]);
        if (folder)
            return hd_usage_error(&hd_command_new, "expected one FOLDER, not %s and %s", folder,
                                  argv[i]);
        folder = argv[i];
    }
    if (!folder)
        return hd_usage_error(&hd_command_new, "FOLDER is required");
    return write_project(folder, kind ? kind : &kinds[0]);
}

const struct hd_command hd_command_new = {
    .name = "new",
    .arguments = "FOLDER [--python | --typescript | --native]",
    .summary = "create a small working project: an agent and its langgraph.json",
    .help =
        "Writes a langgraph.json, an agent that responds without a model or a key, and a README\n"
        "with the next steps. The default is a Python agent; a native one is JSON and needs\n"
        "nothing but Heddle.\n"
        "\n"
        "  heddle new my-agent --native\n"
        "  heddle dev my-agent\n",
    .run = new_run,
};
