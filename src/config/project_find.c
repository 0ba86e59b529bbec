/* Finds what a project needs on this machine: its files, Python, Node.js, the packages in them. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"
#include "config/config_internal.h"
#include "config/project_internal.h"
#include "config/python_probe.h"

#define PACKAGE "heddle"
#define MAX_FOLDERS 64 /* above the project's, where node_modules may be */
#define MAX_ENTRIES 10000

/* ---- files ------------------------------------------------------------ */

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_program(const char *path)
{
    return is_file(path) && access(path, X_OK) == 0;
}

/* The name in the folder that is nearest to the one that is not there. */
static void near_name(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    struct hd_near near;
    struct dirent *entry;
    char folder[PATH_MAX], names[16][NAME_MAX + 1];
    size_t kept = 0;
    DIR *dir;

    *out = '\0';
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    dir = opendir(folder);
    if (!dir) {
        (void)snprintf(out, size, "; folder %.120s does not exist", folder);
        return;
    }
    hd_near_init(&near, hd_slice_cstr(slash + 1));
    /* cppcheck-suppress readdirCalled ; the folder is this function's own */
    for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)); i++) {
        size_t before = near.distance;
        const char *best = near.best.ptr;

        hd_near_try(&near, hd_slice_cstr(entry->d_name));
        /* The entry's memory is the folder's. */
        if (near.best.ptr == best && near.distance == before)
            continue;
        (void)snprintf(names[kept % 16], sizeof(names[0]), "%s", entry->d_name);
        near.best = hd_slice_cstr(names[kept++ % 16]);
    }
    (void)closedir(dir);
    (void)snprintf(out, size, "%s", hd_near_text(&near));
}

int hd_project_find_file(const char *folder, const char *name, struct hd_slice path,
                         struct heddle_error *fault)
{
    struct hd_slice file = hd_config_code_file(path);
    bool is_absolute = hd_slice_starts(file, HD_S("/"));
    char full[PATH_MAX], near[256];

    if (hd_config_is_module(path))
        return 0;
    (void)snprintf(full, sizeof(full), "%s%s%.*s", is_absolute ? "" : folder,
                   is_absolute ? "" : "/", (int)file.len, file.ptr);
    if (is_file(full))
        return 0;
    near_name(full, near, sizeof(near));
    return hd_error_set(fault, HD_EINVAL, "%s: %.*s: no such file%s", name, HD_SHOW(file), near);
}

/* ---- programs --------------------------------------------------------- */

/* A name is looked for in PATH, anything with a slash is itself. */
static const char *find_program(const char *name, struct hd_arena *arena)
{
    const char *path = getenv("PATH");
    char full[PATH_MAX];

    if (strchr(name, '/'))
        return is_program(name) ? name : NULL;
    for (; path && *path; path += strspn(path, ":")) {
        size_t len = strcspn(path, ":");

        (void)snprintf(full, sizeof(full), "%.*s/%s", (int)len, path, name);
        path += len;
        if (is_program(full))
            return hd_arena_printf(arena, "%s", full);
    }
    return NULL;
}

static const char *in_environment(const char *folder, const char *sub, struct hd_arena *arena)
{
    const char *python =
        folder && *folder ? hd_arena_printf(arena, "%s%s/bin/python", folder, sub) : NULL;

    return python && is_program(python) ? python : NULL;
}

static const char *find_python(const struct hd_config *config, const char *folder,
                               struct hd_arena *arena)
{
    const char *found;

    if (*config->runtime_python)
        return find_program(config->runtime_python, arena);
    found = in_environment(getenv("VIRTUAL_ENV"), "", arena);
    if (!found)
        found = in_environment(folder, "/.venv", arena);
    if (!found)
        found = in_environment(folder, "/venv", arena);
    if (!found)
        found = find_program("python3", arena);
    return found ? found : find_program("python", arena);
}

/* "/app/.venv" of "/app/.venv/bin/python", when that is a virtual environment. */
static const char *environment_of(const char *python, struct hd_arena *arena)
{
    const char *bin = strstr(python, "/bin/");
    const char *folder, *mark;

    for (const char *next = bin; next; next = strstr(next + 1, "/bin/"))
        bin = next;
    if (!bin)
        return NULL;
    folder = hd_arena_printf(arena, "%.*s", (int)(bin - python), python);
    mark = folder ? hd_arena_printf(arena, "%s/pyvenv.cfg", folder) : NULL;
    return mark && is_file(mark) ? folder : NULL;
}

static int no_program(const char *setting, const char *given, const char *otherwise,
                      struct heddle_error *fault)
{
    if (*given)
        return hd_error_set(fault, HD_EINVAL, "%s: \"%.160s\" is not a program", setting, given);
    return hd_error_set(fault, HD_EINVAL, "%s", otherwise);
}

static int check_python(const char *python, struct heddle_error *fault)
{
    switch (hd_probe_python(python)) {
    case HD_PROBE_GOOD:
        return 0;
    case HD_PROBE_NO_PACKAGE:
        return hd_error_set(fault, HD_EINVAL,
                            "%.90s has no package heddle, which runs the graphs. Install it: "
                            "%.90s -m pip install \"heddle[runtime]\"",
                            python, python);
    case HD_PROBE_NO_RUNTIME:
        return hd_error_set(fault, HD_EINVAL,
                            "the package heddle of %.80s is too old for this server. Install "
                            "another: %.80s -m pip install -U \"heddle[runtime]\"",
                            python, python);
    case HD_PROBE_NO_LANGGRAPH:
        return hd_error_set(fault, HD_EINVAL,
                            "%.90s has no package langgraph: is it the project's environment? "
                            "--runtime-python names another, or: %.60s -m pip install langgraph",
                            python, python);
    case HD_PROBE_OLD_LANGGRAPH:
        return hd_error_set(
            fault, HD_EINVAL,
            "the package langgraph of %.80s is older than " HD_RT_LANGGRAPH
            ", which graphs need: %.80s -m pip install -U \"langgraph>=" HD_RT_LANGGRAPH "\"",
            python, python);
    case HD_PROBE_TOO_OLD:
        return hd_error_set(fault, HD_EINVAL, "%.160s is older than Python 3.10", python);
    default:
        return hd_error_set(fault, HD_EINVAL,
                            "%.160s does not work: it cannot run a one-line program", python);
    }
}

/* ---- the npm package -------------------------------------------------- */

/* Node.js looks for packages here, then in each folder above. NULL: not found. */
static const char *find_package(const char *folder, const char *name, struct hd_arena *arena)
{
    char at[PATH_MAX];

    (void)snprintf(at, sizeof(at), "%s", folder);
    for (int i = 0; i < MAX_FOLDERS; i++) {
        const char *package = hd_arena_printf(arena, "%s/node_modules/%s", at, name);
        const char *file = package ? hd_arena_printf(arena, "%s/package.json", package) : NULL;
        char *slash = strrchr(at, '/');

        if (file && is_file(file))
            return package;
        if (!slash)
            return NULL;
        *slash = '\0';
    }
    return NULL;
}

/* The program's path in package.json. */
static const char *read_bin(const char *folder, struct hd_slice text, struct hd_arena *arena)
{
    struct hd_json json;
    const char *found = NULL;
    hd_json_val bin;

    if (hd_json_parse(&json, text, NULL) != 0)
        return NULL;
    bin = hd_json_get(hd_json_root(&json), HD_S("bin"));
    if (hd_json_is_object(bin))
        bin = hd_json_get(bin, HD_S("heddle-runtime"));
    if (hd_json_is_string(bin))
        found = hd_arena_printf(arena, "%s/%.*s", folder, (int)hd_json_string(bin).len,
                                hd_json_string(bin).ptr);
    hd_json_fini(&json);
    return found;
}

static int read_small(const char *path, struct hd_buf *out)
{
    FILE *file = fopen(path, "re");
    size_t got;
    int err;

    if (!file)
        return HD_ENOTFOUND;
    err = hd_buf_reserve(out, HD_CONFIG_MAX_FILE);
    if (!err) {
        got = fread(out->ptr, 1, HD_CONFIG_MAX_FILE, file);
        out->len = got;
        err = ferror(file) ? HD_EIO : 0;
    }
    (void)fclose(file);
    return err;
}

/* The text of package.json; the caller frees it. */
static int read_package(const char *package, struct hd_arena *arena, struct hd_buf *out)
{
    const char *file = hd_arena_printf(arena, "%s/package.json", package);

    hd_buf_init(out, (size_t)2 * HD_CONFIG_MAX_FILE);
    return file ? read_small(file, out) : HD_ENOMEM;
}

static const char *package_program(const char *package, struct hd_arena *arena)
{
    const char *found = NULL;
    struct hd_buf text;

    if (read_package(package, arena, &text) == 0)
        found = read_bin(package, hd_buf_slice(&text), arena);
    hd_buf_fini(&text);
    return found && is_file(found) ? found : NULL;
}

/* A project without the package, or with another layout: its worker checks the version again. */
static int check_langgraph(const char *folder, struct hd_arena *arena, struct heddle_error *fault)
{
    const char *package = find_package(folder, "@langchain/langgraph", arena);
    struct hd_json json = {NULL};
    struct hd_slice version;
    struct hd_buf text;
    int err = 0;

    if (!package)
        return 0;
    if (read_package(package, arena, &text) == 0 &&
        hd_json_parse(&json, hd_buf_slice(&text), NULL) == 0) {
        version = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("version")));
        if (!hd_rt_is_new_enough(version))
            err = hd_error_set(fault, HD_EINVAL,
                               "the package @langchain/langgraph of %.100s is %.*s, and graphs "
                               "need " HD_RT_LANGGRAPH
                               " or newer: npm install @langchain/langgraph@latest",
                               folder, (int)(version.len < 32 ? version.len : 32), version.ptr);
    }
    hd_json_fini(&json);
    hd_buf_fini(&text);
    return err;
}

/* ---- how they are started --------------------------------------------- */

static const char *const *list_of(struct hd_arena *arena, const char *const *items, size_t count)
{
    const char **list = hd_arena_calloc(arena, count + 1, sizeof(*list));

    for (size_t i = 0; list && i < count; i++)
        list[i] = items[i];
    return list;
}

/* Programs that a graph starts are those of its environment, as in a shell that activated it. */
static int add_environment(const char *python, struct hd_arena *arena, struct hd_dotenv *env,
                           struct heddle_error *fault)
{
    const char *folder = environment_of(python, arena), *path = getenv("PATH");
    const char *longer;
    int err;

    err = hd_dotenv_put(env, arena, HD_S("PYTHONUNBUFFERED"), HD_S("1"), fault);
    if (err || !folder)
        return err;
    longer = hd_arena_printf(arena, "%s/bin%s%s", folder, path ? ":" : "", path ? path : "");
    if (!longer)
        return HD_ENOMEM;
    err = hd_dotenv_put(env, arena, HD_S("VIRTUAL_ENV"), hd_slice_cstr(folder), fault);
    return err ? err : hd_dotenv_put(env, arena, HD_S("PATH"), hd_slice_cstr(longer), fault);
}

static int set_env(const struct hd_dotenv *env, struct hd_arena *arena,
                   struct hd_rt_program *program)
{
    const char **list = hd_arena_calloc(arena, env->count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return HD_ENOMEM;
    for (size_t i = 0; i < env->count; i++) {
        const struct hd_dotenv_item *item = &env->items[i];

        /* An empty variable in the file does not override the environment. */
        if (!*item->value && getenv(item->name))
            continue;
        list[count] = hd_arena_printf(arena, "%s=%s", item->name, item->value);
        if (!list[count++])
            return HD_ENOMEM;
    }
    program->env = list;
    return 0;
}

static int start_python(const struct hd_config *config, const char *folder, struct hd_arena *arena,
                        struct hd_dotenv *env, struct hd_rt_program *program,
                        struct heddle_error *fault)
{
    const char *python = find_python(config, folder, arena);
    int err;

    if (!python)
        return no_program("runtime.python", config->runtime_python,
                          "the project has Python graphs, but Python was not found: install it, "
                          "or set --runtime-python",
                          fault);
    err = check_python(python, fault);
    if (!err)
        err = add_environment(python, arena, env, fault);
    program->argv = list_of(arena, (const char *const[]){python, "-m", "heddle.runtime"}, 3);
    return err ? err : program->argv ? 0 : HD_ENOMEM;
}

static int start_node(const struct hd_config *config, const char *folder, struct hd_arena *arena,
                      struct hd_rt_program *program, struct heddle_error *fault)
{
    const char *node = find_program(*config->runtime_node ? config->runtime_node : "node", arena);
    const char *package, *script;
    int err;

    if (!node)
        return no_program("runtime.node", config->runtime_node,
                          "the project has TypeScript or JavaScript graphs, but node was not "
                          "found: install Node.js 20 or newer, or set --runtime-node",
                          fault);
    package = find_package(folder, PACKAGE, arena);
    script = package ? package_program(package, arena) : NULL;
    if (!script && package)
        return hd_error_set(fault, HD_EINVAL,
                            "the package heddle in the node_modules of %.100s is too old for this "
                            "server: npm install heddle@latest",
                            folder);
    if (!script)
        return hd_error_set(fault, HD_EINVAL,
                            "%.120s has no package heddle in its node_modules, which runs the "
                            "graphs. Install it there: npm install heddle",
                            folder);
    err = check_langgraph(folder, arena, fault);
    program->argv = list_of(arena, (const char *const[]){node, script}, 2);
    return err ? err : program->argv ? 0 : HD_ENOMEM;
}

int hd_project_find_program(const struct hd_config *config, enum hd_rt_language language,
                            const char *folder, struct hd_arena *arena,
                            struct hd_rt_program *program, struct heddle_error *fault)
{
    struct heddle_error why = {0};
    struct hd_dotenv env;
    int err = hd_project_read_env(config, arena, &env, &why);

    if (err == HD_ENOTFOUND) /* of which hd_project_set_environment() warns */
        err = 0;
    if (err)
        return hd_error_set(fault, err, "%s", why.text);
    if (language == HD_RT_PYTHON)
        err = start_python(config, folder, arena, &env, program, fault);
    else
        err = start_node(config, folder, arena, program, fault);
    return err ? err : set_env(&env, arena, program);
}
