/*
 * Variables of the environment that LangGraph's own servers read. LANGGRAPH_CONFIG holds the
 * configuration of each graph's first assistant. The others carry members of a langgraph.json:
 * the server refuses them, because a server that ignores `auth` or `http` is not the one that its
 * operator believes to have started.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/suggest.h"
#include "config/config_internal.h"
#include "config/project.h"
#include "secret/secret.h"

#define VARIABLE "LANGGRAPH_CONFIG"
#define MAX_PATH ((size_t)1024)

static const struct {
    const char *name;
    const char *instead; /* the member of langgraph.json; NULL: none */
} refused[] = {
    {"LANGSERVE_GRAPHS", "graphs"},
    {"LANGGRAPH_HTTP", "http"},
    {"LANGGRAPH_STORE", "store"},
    {"LANGGRAPH_CHECKPOINTER", "checkpointer"},
    {"LANGGRAPH_THREAD_TTL", "checkpointer.ttl"},
    {"LANGGRAPH_AUTH", "auth"},
    {"LANGGRAPH_WEBHOOKS", "webhooks"},
    {"CORS_CONFIG", "http.cors"},
    {"LANGGRAPH_MOUNT_PREFIX", "http.mount_prefix"},
    {"MOUNT_PREFIX", "http.mount_prefix"},
    {"LANGGRAPH_ENCRYPTION", NULL},
    {"LANGGRAPH_AES_KEY", NULL},
};

static const struct {
    const char *name, *setting;
} unused[] = {
    {"CORS_ALLOW_ORIGINS", "http.cors.allow_origins"},
    {"N_JOBS_PER_WORKER", "runtime.jobs"},
    {"LOG_JSON", "log.format"},
};

static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int refuse_variable(const char *name, const char *instead, struct heddle_error *fault)
{
    if (!instead)
        return hd_error_set(fault, HD_EINVAL,
                            "%s is set, but Heddle does not encrypt stored data: unset it, and "
                            "encrypt the disk or the database",
                            name);
    return hd_error_set(fault, HD_EINVAL,
                        "%s is set, but Heddle does not read it: set \"%s\" in the "
                        "langgraph.json and unset the variable",
                        name, instead);
}

/* ---- LANGGRAPH_CONFIG ------------------------------------------------- */

/* {"graph": {"configurable": {…}, "context": {…}}}. The value is never in an error. */
static int parse(struct hd_json *json, struct heddle_error *fault)
{
    struct hd_json_iter it;
    int err = hd_json_parse(json, hd_slice_cstr(value_of(VARIABLE)), NULL);

    if (err && err != HD_EINVAL)
        return err;
    if (err || !hd_json_is_object(hd_json_root(json)))
        return hd_error_set(fault, HD_EINVAL,
                            VARIABLE ": must be a JSON object of graph ids and configurations");
    it = hd_json_iter(hd_json_root(json));
    while (hd_json_next(&it)) {
        if (!hd_json_is_object(it.val))
            return hd_error_set(fault, HD_EINVAL, VARIABLE ": %.*s: must be an object, not %s",
                                HD_SHOW(it.key), hd_json_type_name(it.val));
    }
    return 0;
}

/* As for assistants of clients: keys belong into the environment, not into the database. */
static int check_secrets(hd_json_val object, struct hd_slice id, struct heddle_error *fault)
{
    struct hd_val *val = NULL;
    struct hd_buf path;
    int err = hd_val_from_json(object, &val, fault);

    hd_buf_init(&path, MAX_PATH);
    if (!err && hd_secrets_find(val, true, &path))
        err = hd_error_set(fault, HD_EINVAL,
                           VARIABLE ": %.*s.%.*s: keys are not stored; set it in its own variable",
                           HD_SHOW(id), (int)(path.len < 120 ? path.len : 120),
                           path.ptr ? path.ptr : "");
    hd_buf_fini(&path);
    hd_val_unref(val);
    return err;
}

static bool is_served(const struct hd_config *config, struct hd_slice id)
{
    for (size_t i = 0; i < config->graphs.count; i++) {
        if (hd_slice_eq(config->graphs.items[i].id, id))
            return true;
    }
    return false;
}

static int check_defaults(const struct hd_config *config, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = value_of(VARIABLE) ? parse(&json, fault) : 0;

    it = hd_json_iter(err || !value_of(VARIABLE) ? NULL : hd_json_root(&json));
    while (!err && hd_json_next(&it)) {
        err = check_secrets(it.val, it.key, fault);
        if (!err && !is_served(config, it.key))
            hd_log(HD_LOG_WARN, "config", VARIABLE ": unknown graph \"%.*s\"", HD_SHOW(it.key));
    }
    hd_json_fini(&json);
    return err;
}

int hd_project_check_environment(const struct hd_config *config, struct heddle_error *fault)
{
    for (size_t i = 0; i < HD_COUNT(refused); i++) {
        if (value_of(refused[i].name))
            return refuse_variable(refused[i].name, refused[i].instead, fault);
    }
    for (size_t i = 0; i < HD_COUNT(unused); i++) {
        if (value_of(unused[i].name))
            hd_log(HD_LOG_WARN, "config", "%s is not used: the setting is %s", unused[i].name,
                   unused[i].setting);
    }
    return check_defaults(config, fault);
}

/* All members but `context`, which is handled separately. */
static int write_config(hd_json_val object, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(object);
    struct hd_buf text;
    struct hd_jw jw;

    hd_buf_init(&text, HD_CONFIG_MAX_FILE);
    hd_jw_init(&jw, &text);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("context")))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, arena, out);
}

static int write_context(hd_json_val object, struct hd_arena *arena, struct hd_slice *out)
{
    hd_json_val context = hd_json_get(object, HD_S("context"));
    struct hd_buf text;
    int err;

    if (!hd_json_is_object(context))
        return 0;
    hd_buf_init(&text, HD_CONFIG_MAX_FILE);
    err = hd_json_write_val(&text, context);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

int hd_project_defaults(struct hd_slice graph_id, struct hd_arena *arena, struct hd_slice *config,
                        struct hd_slice *context, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val object;
    int err;

    *config = HD_S("{}");
    *context = HD_S("{}");
    if (!value_of(VARIABLE))
        return 0;
    err = parse(&json, fault);
    object = err ? NULL : hd_json_get(hd_json_root(&json), graph_id);
    if (object)
        err = write_config(object, arena, config);
    if (object && !err)
        err = write_context(object, arena, context);
    hd_json_fini(&json);
    return err;
}
