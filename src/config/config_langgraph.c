/*
 * Members of a langgraph.json that go by another name here, or that nothing needs to be done
 * about. Those that have the same name are settings like others (config_table.c).
 */
#include "config/config_internal.h"

#define IS(name, setting)               \
    {                                   \
        name, HD_ALIAS_SETTING, setting \
    }
#define IS_NOT(name, setting)       \
    {                               \
        name, HD_ALIAS_NOT, setting \
    }
#define QUIET(name)                \
    {                              \
        name, HD_ALIAS_QUIET, NULL \
    }

static const struct hd_config_alias aliases[] = {
    IS("checkpointer.ttl.strategy", "ttl.strategy"),
    IS("checkpointer.ttl.default_ttl", "ttl.threads"),
    IS("checkpointer.ttl.sweep_interval_minutes", "ttl.sweep_interval"),
    QUIET("checkpointer.ttl.sweep_limit"),
    {"checkpointer.path", HD_ALIAS_WARN,
     "Heddle stores checkpoints in the database that --store names"},

    IS("store.ttl.default_ttl", "ttl.items"),
    IS("store.ttl.refresh_on_read", "ttl.refresh_on_read"),
    IS("store.ttl.sweep_interval_minutes", "ttl.sweep_interval"),
    {"store.path", HD_ALIAS_WARN, "Heddle stores items in the database that --store names"},

    IS("http.cors.allow_origins", "cors.allow_origins"),
    IS("http.cors.allow_origin_regex", "cors.allow_origin_regex"),
    IS("http.cors.allow_methods", "cors.allow_methods"),
    IS("http.cors.allow_headers", "cors.allow_headers"),
    IS("http.cors.expose_headers", "cors.expose_headers"),
    IS("http.cors.allow_credentials", "cors.allow_credentials"),
    IS("http.cors.max_age", "cors.max_age"),
    IS("http.configurable_headers.includes", "headers.to_graphs"),
    IS("http.configurable_headers.excludes", "headers.not_to_graphs"),
    /* No header is ever in the log. */
    QUIET("http.logging_headers"),

    IS("webhooks.url.require_https", "webhooks.require_https"),
    IS("webhooks.url.allowed_domains", "webhooks.allowed_domains"),
    IS("webhooks.url.allowed_ports", "webhooks.allowed_ports"),
    IS("webhooks.url.max_url_length", "webhooks.max_url_length"),
    IS_NOT("webhooks.url.disable_loopback", "webhooks.allow_loopback"),

    /* Unsupported encryption is an error: ignoring it would leave data in clear text. */
    {"encryption", HD_ALIAS_REFUSE,
     "Heddle does not encrypt with code of the project: remove it, and encrypt the disk or the "
     "database"},
    {"ui", HD_ALIAS_WARN, "UI components are not served"},
    QUIET("ui_config"),

    /* For image builds. */
    QUIET("$schema"),
    QUIET("api_version"),
    QUIET("base_image"),
    QUIET("build_command"),
    QUIET("dockerfile_lines"),
    QUIET("image_distro"),
    QUIET("install_command"),
    QUIET("keep_pkg_tools"),
    QUIET("node_version"),
    QUIET("pip_config_file"),
    QUIET("pip_installer"),
    QUIET("python_version"),
    QUIET("source"),
    QUIET("_INTERNAL_docker_tag"),
};

const struct hd_config_alias *hd_config_alias_at(size_t index)
{
    return index < HD_COUNT(aliases) ? &aliases[index] : NULL;
}

const struct hd_config_alias *hd_config_alias_find(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(aliases); i++) {
        if (hd_slice_eq(hd_slice_cstr(aliases[i].name), name))
            return &aliases[i];
    }
    return NULL;
}

/* By the file's name, or by members that only langgraph.json has. */
bool hd_config_is_langgraph(const char *path, hd_json_val root)
{
    static const char *const telling[] = {"dependencies", "python_version", "node_version"};
    const char *slash = strrchr(path, '/');

    if (strncmp(slash ? slash + 1 : path, "langgraph", 9) == 0)
        return true;
    for (size_t i = 0; i < HD_COUNT(telling); i++) {
        if (hd_json_get(root, hd_slice_cstr(telling[i])))
            return true;
    }
    return false;
}
