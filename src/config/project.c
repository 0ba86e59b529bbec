/* The parts of a project by language, and their description for workers. */
#include "config/project.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"
#include "config/config_internal.h"
#include "config/project_internal.h"

#define MAX_PROJECT ((size_t)8 * HD_CONFIG_MAX_FILE)

const char *hd_project_language_name(enum hd_rt_language language)
{
    return language == HD_RT_JS ? "js" : "python";
}

bool hd_project_language(struct hd_slice path, enum hd_rt_language *out)
{
    return hd_config_code(path, out) == HD_CODE;
}

/* ---- parts ------------------------------------------------------------ */

static const char *const part_names[] = {
    [HD_PROJECT_AUTH] = "auth.path",
    [HD_PROJECT_APP] = "http.app",
    [HD_PROJECT_EMBED] = "store.index.embed",
};

/* The member of the file, of any type. */
static struct hd_slice part_text(const struct hd_config *config, enum hd_project_part part)
{
    if (part == HD_PROJECT_AUTH)
        return hd_json_string(hd_json_get(config->auth.val, HD_S("path")));
    if (part == HD_PROJECT_APP)
        return hd_slice_cstr(config->http_app);
    return hd_json_string(hd_json_get(config->store_index.val, HD_S("embed")));
}

/* "openai:text-embedding-3-small"; a module of embeddings needs a dot to differ: "app.embed:embed". */
static bool is_provider(struct hd_slice path)
{
    struct hd_slice file = hd_config_code_file(path);

    return hd_config_is_module(path) && !memchr(file.ptr, '.', file.len);
}

bool hd_project_part(const struct hd_config *config, enum hd_project_part part,
                     struct hd_project_code *out)
{
    out->path = part_text(config, part);
    if (part == HD_PROJECT_EMBED && is_provider(out->path))
        return false;
    return out->path.len > 0 && hd_project_language(out->path, &out->language);
}

bool hd_project_uses(const struct hd_config *config, enum hd_rt_language language)
{
    struct hd_project_code code;

    for (size_t i = 0; i < config->graphs.count; i++) {
        const struct hd_config_graph *graph = &config->graphs.items[i];

        if (graph->is_remote && graph->language == language)
            return true;
    }
    for (size_t i = 0; i < HD_COUNT(part_names); i++) {
        if (hd_project_part(config, (enum hd_project_part)i, &code) && code.language == language)
            return true;
    }
    return false;
}

bool hd_project_needs_workers(const struct hd_config *config)
{
    return hd_project_uses(config, HD_RT_PYTHON) || hd_project_uses(config, HD_RT_JS);
}

/* ---- description for a worker ----------------------------------------- */

static void write_graphs(struct hd_jw *jw, const struct hd_config *config,
                         enum hd_rt_language language)
{
    hd_jw_put_object(jw, "graphs");
    for (size_t i = 0; i < config->graphs.count; i++) {
        const struct hd_config_graph *graph = &config->graphs.items[i];

        if (!graph->is_remote || graph->language != language)
            continue;
        hd_jw_key(jw, graph->id);
        hd_jw_object(jw);
        hd_jw_put_string(jw, "path", graph->path);
        if (graph->description.len > 0)
            hd_jw_put_string(jw, "description", graph->description);
        hd_jw_object_end(jw);
    }
    hd_jw_object_end(jw);
}

static void write_parts(struct hd_jw *jw, const struct hd_config *config,
                        enum hd_rt_language language)
{
    static const char *const keys[] = {"auth", "app", "embed"};
    struct hd_project_code code;

    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        if (!hd_project_part(config, (enum hd_project_part)i, &code) || code.language != language)
            continue;
        hd_jw_put_object(jw, keys[i]);
        hd_jw_put_string(jw, "path", code.path);
        hd_jw_object_end(jw);
    }
}

static void write_object(struct hd_jw *jw, struct hd_slice key, hd_json_val val)
{
    if (!val)
        return;
    hd_jw_key(jw, key);
    hd_jw_val(jw, val);
}

static int write_project(const struct hd_config *config, enum hd_rt_language language,
                         const char *folder, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_buf text;
    struct hd_jw jw;

    hd_buf_init(&text, MAX_PROJECT);
    hd_jw_init(&jw, &text);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "folder", hd_slice_cstr(folder));
    write_graphs(&jw, config, language);
    hd_jw_put_array(&jw, "dependencies");
    for (size_t i = 0; i < config->dependencies.count; i++)
        hd_jw_string(&jw, config->dependencies.items[i]);
    hd_jw_array_end(&jw);
    write_parts(&jw, config, language);
    write_object(&jw, HD_S("serde"), config->serde.val);
    write_object(&jw, HD_S("index"), config->store_index.val);
    hd_jw_put_bool(&jw, "reload", config->runtime_reload);
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, arena, out);
}

/* ---- all of it -------------------------------------------------------- */

/* Code must exist as a file; only its worker can check that it loads. */
static int check_parts(const struct hd_config *config, const char *folder,
                       struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < config->graphs.count; i++) {
        const struct hd_config_graph *graph = &config->graphs.items[i];
        char name[96];

        (void)snprintf(name, sizeof(name), "graphs.%.*s", (int)graph->id.len, graph->id.ptr);
        if (graph->is_remote)
            err = hd_project_find_file(folder, name, graph->path, fault);
    }
    for (size_t i = 0; !err && i < HD_COUNT(part_names); i++) {
        enum hd_project_part part = (enum hd_project_part)i;
        struct hd_slice text = part_text(config, part);
        struct hd_project_code code;

        if (hd_project_part(config, part, &code))
            err = hd_project_find_file(folder, part_names[i], code.path, fault);
        else if (text.len > 0 && part != HD_PROJECT_EMBED)
            err =
                hd_error_set(fault, HD_EINVAL,
                             "%s: \"%.*s\" must be a file and a name in it, such as \"./%s.py:%s\"",
                             part_names[i], HD_SHOW(text), i ? "app" : "auth", i ? "app" : "auth");
    }
    return err;
}

static int add_program(const struct hd_config *config, enum hd_rt_language language,
                       const char *folder, struct hd_arena *arena, struct hd_rt_settings *out,
                       struct heddle_error *fault)
{
    static const char *const none[] = {NULL};
    struct hd_rt_program *program = &out->programs[language];
    int err = write_project(config, language, folder, arena, &program->project);

    program->folder = folder;
    program->argv = none;
    program->env = none;
    program->workers = config->runtime_workers;
    if (!err && program->workers > 0)
        err = hd_project_find_program(config, language, folder, arena, program, fault);
    return err;
}

int hd_project_settings(const struct hd_config *config, struct hd_arena *arena,
                        struct hd_rt_settings *out, struct heddle_error *fault)
{
    char real[PATH_MAX];
    const char *folder;
    int err;

    *out = (struct hd_rt_settings){
        .listen = *config->runtime_listen ? config->runtime_listen : NULL,
        .key = *config->runtime_key ? config->runtime_key : NULL,
        .jobs = config->runtime_jobs,
        .memory = config->runtime_memory,
        .start_timeout_us = config->runtime_start_timeout_us,
        .hang_timeout_us = config->runtime_hang_timeout_us,
        .drain_us = config->drain_us,
    };
    if (out->listen && !out->key)
        return hd_error_set(fault, HD_EINVAL,
                            "runtime.listen needs runtime.key, the shared key of remote workers");
    if (!realpath(*config->folder ? config->folder : ".", real))
        return hd_error_set(fault, HD_EINVAL, "%s: %s", config->folder, strerror(errno));
    folder = hd_arena_printf(arena, "%s", real);
    if (!folder)
        return HD_ENOMEM;
    err = check_parts(config, folder, fault);
    for (int i = 0; !err && i < HD_RT_LANGUAGES; i++) {
        if (hd_project_uses(config, (enum hd_rt_language)i))
            err = add_program(config, (enum hd_rt_language)i, folder, arena, out, fault);
    }
    return err;
}
