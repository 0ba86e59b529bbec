/* `env` of a project: variables for its graphs, native ones too. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/suggest.h"
#include "config/config_internal.h"
#include "config/project_internal.h"

static const char *look_up(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static int read_env_text(const char *path, struct hd_buf *out, struct heddle_error *fault)
{
    FILE *file = fopen(path, "re");
    int err;

    /* Projects come without it, because it is where keys are kept. */
    if (!file && errno == ENOENT)
        return hd_error_set(fault, HD_ENOTFOUND, "env: %.160s does not exist", path);
    if (!file)
        return hd_error_set(fault, HD_EINVAL, "env: %.160s: %s", path, strerror(errno));
    err = hd_buf_reserve(out, HD_CONFIG_MAX_FILE + 1);
    if (!err) {
        out->len = fread(out->ptr, 1, HD_CONFIG_MAX_FILE + 1, file);
        if (ferror(file))
            err = hd_error_set(fault, HD_EINVAL, "env: %.160s cannot be read", path);
        else if (out->len > HD_CONFIG_MAX_FILE)
            err = hd_error_set(fault, HD_EINVAL, "env: %.160s is larger than %d bytes", path,
                               HD_CONFIG_MAX_FILE);
    }
    (void)fclose(file);
    return err;
}

static int read_env_file(const struct hd_config *config, struct hd_arena *arena,
                         struct hd_dotenv *out, struct heddle_error *fault)
{
    struct hd_slice name = hd_json_string(config->env.val), folder = config->env.folder;
    bool is_relative = name.len > 0 && name.ptr[0] != '/' && folder.len > 0;
    const char *path = hd_arena_printf(arena, "%.*s%s%.*s", is_relative ? (int)folder.len : 0,
                                       folder.ptr ? folder.ptr : "", is_relative ? "/" : "",
                                       (int)name.len, name.ptr);
    struct heddle_error why = {0};
    struct hd_buf text;
    int err;

    if (!path)
        return HD_ENOMEM;
    hd_buf_init(&text, (size_t)2 * HD_CONFIG_MAX_FILE);
    err = read_env_text(path, &text, fault);
    if (!err) {
        err = hd_dotenv_parse(hd_buf_slice(&text), look_up, NULL, arena, out, &why);
        if (err)
            (void)hd_error_set(fault, err, "%.100s: %s", path, why.text);
    }
    hd_buf_fini(&text);
    return err;
}

/* Numbers and booleans are written as they stand. */
static int read_env_object(const struct hd_config *config, struct hd_arena *arena,
                           struct hd_dotenv *out, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(config->env.val);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_slice value = hd_json_string(it.val);
        struct heddle_error why = {0};

        if (hd_json_is_number(it.val))
            value = hd_json_number_text(it.val);
        else if (hd_json_is_bool(it.val))
            value = hd_json_is_true(it.val) ? HD_S("true") : HD_S("false");
        else if (!hd_json_is_string(it.val))
            return hd_error_set(fault, HD_EINVAL, "env: %.*s: must be a string, not %s",
                                HD_SHOW(it.key), hd_json_type_name(it.val));
        err = hd_dotenv_put(out, arena, it.key, value, &why);
        if (err)
            (void)hd_error_set(fault, err, "env: %s", why.text);
    }
    return err;
}

int hd_project_read_env(const struct hd_config *config, struct hd_arena *arena,
                        struct hd_dotenv *out, struct heddle_error *fault)
{
    *out = (struct hd_dotenv){0};
    if (!config->env.val)
        return 0;
    if (hd_json_is_string(config->env.val))
        return hd_json_string(config->env.val).len > 0 ? read_env_file(config, arena, out, fault)
                                                       : 0;
    return read_env_object(config, arena, out, fault);
}

int hd_project_set_environment(const struct hd_config *config, struct heddle_error *fault)
{
    struct heddle_error why = {0};
    struct hd_dotenv env;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, (size_t)16 * HD_CONFIG_MAX_FILE);
    err = hd_project_read_env(config, &arena, &env, &why);
    if (err == HD_ENOTFOUND) {
        hd_log(HD_LOG_WARN, "config", "%s", why.text);
        err = 0;
    } else if (err) {
        (void)hd_error_set(fault, err, "%s", why.text);
    }
    for (size_t i = 0; !err && i < env.count; i++) {
        /* An empty variable in the file does not override the environment. */
        if (setenv(env.items[i].name, env.items[i].value, *env.items[i].value != '\0') != 0)
            err = hd_error_set(fault, HD_ENOMEM, "out of memory");
    }
    hd_arena_fini(&arena);
    return err;
}
