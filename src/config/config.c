/* Reads the sources in the order of their weight: defaults, file, environment, flags. */
#include "config/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/suggest.h"
#include "config/config_internal.h"

#define VARIABLE_PREFIX "HEDDLE_"
/* Other programs have variables with our prefix; so near to one of ours it is a misspelt one. */
#define MISSPELT 2
#define MAX_SETTINGS 160
#define MAX_WARNINGS 64
#define LEAST_LEASE_US INT64_C(2000000)

/* ---- the file ----------------------------------------------------------- */

static bool is_below(const char *member, struct hd_slice name)
{
    return hd_slice_starts(hd_slice_cstr(member), name) && member[name.len] == '.';
}

static bool is_group(struct hd_slice name)
{
    const struct hd_setting *setting;
    const struct hd_config_alias *alias;

    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        if (is_below(setting->name, name))
            return true;
    }
    for (size_t i = 0; (alias = hd_config_alias_at(i)); i++) {
        if (is_below(alias->name, name))
            return true;
    }
    return false;
}

struct members {
    struct hd_config *config;
    const char *path;
    struct hd_slice folder;
    bool is_langgraph;
    bool seen[MAX_SETTINGS];
    struct heddle_error *fault;
};

void hd_config_warn(struct hd_config *config, const char *fmt, ...)
{
    struct hd_config_list *list = &config->warnings;
    struct hd_slice *items = list->items;
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (!items)
        items = hd_arena_calloc(&config->arena, MAX_WARNINGS, sizeof(*items));
    if (!items || list->count == MAX_WARNINGS ||
        hd_arena_copy(&config->arena, hd_slice_cstr(text), &items[list->count]) != 0)
        return;
    list->items = items;
    list->count++;
}

/* Misspelt groups are found by their own name, not by that of what is in them. */
static void try_name(struct hd_near *near, const char *name, struct hd_slice wanted)
{
    const char *dot = strchr(name, '.');

    hd_near_try(near, hd_slice_cstr(name));
    if (dot && !memchr(wanted.ptr, '.', wanted.len))
        hd_near_try(near, hd_slice(name, (size_t)(dot - name)));
}

static int unknown_member(const struct members *members, struct hd_slice name)
{
    const struct hd_config_alias *alias;
    const struct hd_setting *setting;
    struct hd_near near;

    hd_near_init(&near, name);
    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        if (setting->type != HD_SETTING_FILE)
            try_name(&near, setting->name, name);
    }
    for (size_t i = 0; members->is_langgraph && (alias = hd_config_alias_at(i)); i++)
        try_name(&near, alias->name, name);
    if (!members->is_langgraph)
        return hd_error_set(members->fault, HD_EINVAL, "%s: unknown setting \"%.*s\"%s",
                            members->path, HD_SHOW(name), hd_near_text(&near));
    hd_config_warn(members->config, "%s: ignored member \"%.*s\"%s", members->path, HD_SHOW(name),
                   hd_near_text(&near));
    return 0;
}

static size_t index_of(const struct hd_setting *setting)
{
    return (size_t)(setting - hd_setting_at(0));
}

static int read_member(struct members *members, const struct hd_setting *setting, hd_json_val val)
{
    char origin[192];
    struct hd_config_place place = {
        .config = members->config,
        .setting = setting,
        .origin = origin,
        .folder = members->folder,
        .fault = members->fault,
    };

    if (members->seen[index_of(setting)])
        return hd_error_set(members->fault, HD_EINVAL, "%s: duplicate setting \"%s\"",
                            members->path, setting->name);
    members->seen[index_of(setting)] = true;
    if (hd_json_is_null(val))
        return 0;
    (void)snprintf(origin, sizeof(origin), "%s: %s", members->path, setting->name);
    members->config->port_is_given |= strcmp(setting->name, "port") == 0;
    return hd_config_set_json(&place, val);
}

/* The one interval of sweeps has two names in a langgraph.json: the shorter is used. */
static int read_again(struct members *members, const struct hd_setting *setting, hd_json_val val)
{
    int64_t *target = (int64_t *)((char *)members->config + setting->offset), before = *target;
    int err;

    members->seen[index_of(setting)] = false;
    err = read_member(members, setting, val);
    if (err == 0 && before > 0 && (before < *target || *target == 0))
        *target = before;
    return err;
}

static int read_opposite(struct members *members, const struct hd_setting *setting,
                         const char *name, hd_json_val val)
{
    if (hd_json_is_null(val))
        return 0;
    if (!hd_json_is_bool(val))
        return hd_error_set(members->fault, HD_EINVAL, "%s: %s: must be a boolean, not %s",
                            members->path, name, hd_json_type_name(val));
    members->seen[index_of(setting)] = true;
    *(bool *)((char *)members->config + setting->offset) = !hd_json_is_true(val);
    return 0;
}

static int read_alias(struct members *members, const struct hd_config_alias *alias, hd_json_val val)
{
    const struct hd_setting *setting;

    if (alias->kind == HD_ALIAS_QUIET || hd_json_is_null(val))
        return 0;
    if (alias->kind == HD_ALIAS_REFUSE)
        return hd_error_set(members->fault, HD_EINVAL, "%s: %s: %s", members->path, alias->name,
                            alias->to);
    if (alias->kind == HD_ALIAS_WARN) {
        hd_config_warn(members->config, "%s: %s is not used: %s", members->path, alias->name,
                       alias->to);
        return 0;
    }
    setting = hd_setting_find(hd_slice_cstr(alias->to));
    if (alias->kind == HD_ALIAS_NOT)
        return read_opposite(members, setting, alias->name, val);
    if (members->seen[index_of(setting)] && setting->type == HD_SETTING_DURATION)
        return read_again(members, setting, val);
    return read_member(members, setting, val);
}

/* A name that could be one of ours: short, and text. */
static bool is_setting_name(struct hd_slice key)
{
    return key.len > 0 && key.len < HD_CONFIG_MAX_NAME && !memchr(key.ptr, '\0', key.len);
}

/* Names are at most as deep as the settings' are, so the recursion ends. */
static int read_members(struct members *members, struct hd_slice prefix, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(object);
    int err = 0;

    while (err == 0 && hd_json_next(&it)) {
        char text[2 * HD_CONFIG_MAX_NAME] = "";
        const struct hd_setting *setting;
        const struct hd_config_alias *alias;
        struct hd_slice name;

        if (!is_setting_name(it.key)) {
            err = unknown_member(members, it.key);
            continue;
        }
        (void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)prefix.len, prefix.ptr,
                       prefix.len > 0 ? "." : "", (int)it.key.len, it.key.ptr);
        name = hd_slice_cstr(text);
        setting = hd_setting_find(name);
        alias = hd_config_alias_find(name);
        /* `store` is a URL, and in a langgraph.json a group. */
        if (setting && setting->type == HD_SETTING_TEXT && hd_json_is_object(it.val) &&
            is_group(name))
            err = read_members(members, name, it.val);
        else if (setting && setting->type != HD_SETTING_FILE)
            err = read_member(members, setting, it.val);
        else if (alias)
            err = read_alias(members, alias, it.val);
        else if (!is_group(name))
            err = unknown_member(members, name);
        else if (hd_json_is_object(it.val))
            err = read_members(members, name, it.val);
        else if (!hd_json_is_null(it.val))
            err = hd_error_set(members->fault, HD_EINVAL, "%s: %s: must be an object, not %s",
                               members->path, text, hd_json_type_name(it.val));
    }
    return err;
}

int hd_config_read_json(struct hd_config *config, const char *path, struct hd_slice text,
                        struct heddle_error *fault)
{
    const char *slash = strrchr(path, '/');
    struct members members = {
        .config = config,
        .path = path,
        .folder = hd_slice(path, slash ? (size_t)(slash - path) : 0),
        .fault = fault,
    };
    struct heddle_error why = {0};
    struct hd_json json;
    int err;

    if (slash == path)
        members.folder = HD_S("/.");
    err = hd_json_parse_commented(&json, text, &why);
    if (err != 0)
        return hd_error_set(fault, err, "%s: %s", path, why.text);
    members.is_langgraph = hd_config_is_langgraph(path, hd_json_root(&json));
    config->file = hd_arena_printf(&config->arena, "%s", path);
    config->folder = hd_arena_printf(&config->arena, "%.*s", (int)members.folder.len,
                                     members.folder.len > 0 ? members.folder.ptr : "");
    if (!config->file || !config->folder)
        err = hd_error_set(fault, HD_ENOMEM, "out of memory while reading the configuration");
    else if (hd_json_is_object(hd_json_root(&json)))
        err = read_members(&members, HD_S(""), hd_json_root(&json));
    else
        err = hd_error_set(fault, HD_EINVAL, "%s: must be an object, not %s", path,
                           hd_json_type_name(hd_json_root(&json)));
    hd_json_fini(&json);
    return err;
}

static int read_descriptor(int fd, struct hd_buf *out)
{
    for (;;) {
        ssize_t got;
        int err = hd_buf_reserve(out, 4096);

        if (err != 0)
            return err;
        got = read(fd, out->ptr + out->len, 4096);
        if (got > 0)
            out->len += (size_t)got;
        else if (got == 0)
            return 0;
        else if (errno != EINTR)
            return HD_EIO;
    }
}

static int read_config_file(struct hd_config *config, const char *path, struct heddle_error *fault)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), err;
    struct hd_buf text;

    if (fd < 0)
        return hd_error_set(fault, HD_EINVAL, "%s: %s", path, strerror(errno));
    hd_buf_init(&text, HD_CONFIG_MAX_FILE + 4096);
    err = read_descriptor(fd, &text);
    if (err == HD_EIO)
        err = hd_error_set(fault, HD_EINVAL, "%s: %s", path, strerror(errno));
    else if (err == HD_ELIMIT || (err == 0 && text.len > HD_CONFIG_MAX_FILE))
        err = hd_error_set(fault, HD_EINVAL, "%s: larger than %d bytes", path, HD_CONFIG_MAX_FILE);
    else if (err != 0)
        (void)hd_error_set(fault, err, "out of memory while reading the configuration");
    (void)close(fd);
    if (err == 0)
        err = hd_config_read_json(config, path, hd_buf_slice(&text), fault);
    hd_buf_fini(&text);
    return err;
}

/* ---- the environment ------------------------------------------------------ */

/* The value of NAME in "NAME=value"; NULL when it is another variable. */
static const char *value_of(const char *variable, const char *name)
{
    size_t len = strlen(name);

    return strncmp(variable, name, len) == 0 && variable[len] == '=' ? variable + len + 1 : NULL;
}

static const char *find_variable(char **env, const char *name)
{
    for (; env && *env; env++) {
        const char *value = value_of(*env, name);

        if (value)
            return value;
    }
    return NULL;
}

static int read_variable(struct hd_config *config, const char *variable, struct heddle_error *fault)
{
    struct hd_slice given = hd_slice(variable, strcspn(variable, "="));
    char names[MAX_SETTINGS][HD_CONFIG_MAX_NAME];
    const struct hd_setting *setting;
    struct hd_near near;

    hd_near_init(&near, given);
    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        struct hd_config_place place = {config, setting, names[i], HD_S(""), false, fault};
        const char *value;

        if (hd_setting_is_json(setting))
            continue;
        hd_setting_variable(setting, names[i]);
        value = value_of(variable, names[i]);
        if (!value) {
            hd_near_try(&near, hd_slice_cstr(names[i]));
            continue;
        }
        /* Set but empty is as good as not set, as in most programs. */
        if (!*value)
            return 0;
        config->port_is_given |= strcmp(setting->name, "port") == 0;
        return hd_config_set_text(&place, hd_slice_cstr(value));
    }
    if (near.best.len > 0 && near.distance <= MISSPELT)
        return hd_error_set(fault, HD_EINVAL, "%.*s: unknown variable%s", HD_SHOW(given),
                            hd_near_text(&near));
    return 0;
}

/* ---- flags ---------------------------------------------------------------- */

struct flag {
    const struct hd_setting *setting;
    char name[HD_CONFIG_MAX_NAME];
    struct hd_slice value;
    bool is_no; /* --no-metrics */
};

static int unknown_flag(struct hd_slice given, struct heddle_error *fault)
{
    char names[MAX_SETTINGS][HD_CONFIG_MAX_NAME];
    const struct hd_setting *setting;
    struct hd_near near;

    if (!hd_slice_starts(given, HD_S("-")))
        return hd_error_set(fault, HD_EINVAL,
                            "\"%.*s\" is not an option; the value of a switch follows \"=\"",
                            HD_SHOW(given));
    hd_near_init(&near, given);
    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        hd_setting_flag(setting, names[i]);
        if (!hd_setting_is_json(setting))
            hd_near_try(&near, hd_slice_cstr(names[i]));
    }
    return hd_error_set(fault, HD_EINVAL, "%.*s: unknown option%s", HD_SHOW(given),
                        hd_near_text(&near));
}

static bool find_flag(struct hd_slice given, struct flag *flag)
{
    bool is_no = hd_slice_starts(given, HD_S("--no-"));

    for (size_t i = 0; (flag->setting = hd_setting_at(i)); i++) {
        if (hd_setting_is_json(flag->setting))
            continue;
        hd_setting_flag(flag->setting, flag->name);
        flag->is_no =
            is_no && flag->setting->type == HD_SETTING_BOOL &&
            hd_slice_eq(hd_slice(given.ptr + 5, given.len - 5), hd_slice_cstr(flag->name + 2));
        if (flag->is_no || hd_slice_eq(given, hd_slice_cstr(flag->name)))
            return true;
    }
    return false;
}

/* Takes one option, and its value from the next argument when it needs one. */
static int next_flag(const struct hd_config_source *source, int *index, struct flag *flag,
                     struct heddle_error *fault)
{
    const char *arg = source->argv[*index], *sign = strchr(arg, '=');
    struct hd_slice given = hd_slice(arg, sign ? (size_t)(sign - arg) : strlen(arg));

    ++*index;
    if (!find_flag(given, flag))
        return unknown_flag(given, fault);
    if (flag->is_no && sign)
        return hd_error_set(fault, HD_EINVAL, "%.*s: takes no value", HD_SHOW(given));
    if (flag->setting->type == HD_SETTING_BOOL && !sign)
        flag->value = flag->is_no ? HD_S("false") : HD_S("true");
    else if (sign)
        flag->value = hd_slice_cstr(sign + 1);
    else if (*index < source->argc)
        flag->value = hd_slice_cstr(source->argv[(*index)++]);
    else
        return hd_error_set(fault, HD_EINVAL, "%s: needs a value", flag->name);
    return 0;
}

static int read_flags(struct hd_config *config, const struct hd_config_source *source,
                      struct heddle_error *fault)
{
    bool seen[MAX_SETTINGS] = {false};
    int err = 0;

    for (int i = 1; err == 0 && i < source->argc;) {
        struct flag flag = {0};

        err = next_flag(source, &i, &flag, fault);
        if (err == 0) {
            size_t index = index_of(flag.setting);
            struct hd_config_place place = {config,   flag.setting, flag.name,
                                            HD_S(""), seen[index],  fault};

            seen[index] = true;
            config->port_is_given |= strcmp(flag.setting->name, "port") == 0;
            err = hd_config_set_text(&place, flag.value);
        }
    }
    return err;
}

/* The last --config, or the environment's. Flags that are wrong are found here already. */
static int find_file(const struct hd_config_source *source, const char **path,
                     struct heddle_error *fault)
{
    *path = find_variable(source->env, VARIABLE_PREFIX "CONFIG");
    for (int i = 1; i < source->argc;) {
        struct flag flag = {0};
        int err = next_flag(source, &i, &flag, fault);

        if (err != 0)
            return err;
        if (flag.setting->type == HD_SETTING_FILE)
            *path = flag.value.ptr;
    }
    return 0;
}

/* ---- all of it ------------------------------------------------------------ */

static int read_defaults(struct hd_config *config, struct heddle_error *fault)
{
    const struct hd_setting *setting;
    int err = 0;

    for (size_t i = 0; err == 0 && (setting = hd_setting_at(i)); i++) {
        struct hd_config_place place = {config, setting, setting->name, HD_S(""), false, fault};

        err = hd_config_set_text(&place, hd_slice_cstr(setting->standard));
    }
    return err;
}

/* Checks that involve several settings. */
static int derive(struct hd_config *config, struct heddle_error *fault)
{
    bool is_strict = config->outgoing_private == HD_OUTGOING_DENY ||
                     (config->outgoing_private == HD_OUTGOING_AUTO && config->auth.val);
    struct hd_net *proxies =
        hd_arena_calloc(&config->arena, config->trusted_proxies.count + 1, sizeof(*proxies));

    if (!proxies)
        return HD_ENOMEM;
    for (size_t i = 0; i < config->trusted_proxies.count; i++) {
        struct hd_slice text = config->trusted_proxies.items[i];

        if (!hd_net_parse(text, &proxies[i]))
            return hd_error_set(
                fault, HD_EINVAL,
                "trusted_proxies: \"%.*s\" is not an address or a network such as 10.0.0.0/8",
                HD_SHOW(text));
    }
    config->proxies = proxies;
    if ((config->tls_certificate[0] == '\0') != (config->tls_key[0] == '\0'))
        return hd_error_set(fault, HD_EINVAL,
                            "tls.certificate and tls.key belong together: one is not set");
    if ((config->cluster_address[0] == '\0') != (config->cluster_key[0] == '\0'))
        return hd_error_set(fault, HD_EINVAL,
                            "cluster.address and cluster.key belong together: %s is not set",
                            config->cluster_key[0] ? "cluster.address" : "cluster.key");
    if (config->cluster_lease_us < LEAST_LEASE_US)
        return hd_error_set(fault, HD_EINVAL, "cluster.lease: less than %d seconds",
                            (int)(LEAST_LEASE_US / 1000000));
    if (config->page_sign_in.val && !config->auth.val)
        return hd_error_set(fault, HD_EINVAL, "page.sign_in: needs `auth` with its issuers");
    return hd_outgoing_init(&config->outgoing, is_strict, config->outgoing_allowed_hosts.items,
                            config->outgoing_allowed_hosts.count, &config->arena, fault);
}

int hd_config_load(struct hd_config *config, const struct hd_config_source *source,
                   struct heddle_error *fault)
{
    struct heddle_error own = {0};
    const char *path = NULL;
    int err;

    /* Errors are looked up in the fault, so there must be one. */
    fault = fault ? fault : &own;
    *config = (struct hd_config){0};
    hd_arena_init(&config->arena, (size_t)8 * HD_CONFIG_MAX_FILE);
    config->file = config->folder = "";
    err = find_file(source, &path, fault);
    if (err == 0)
        err = read_defaults(config, fault);
    if (err == 0 && path && *path)
        err = read_config_file(config, path, fault);
    for (char **at = source->env; err == 0 && at && *at; at++) {
        if (strncmp(*at, VARIABLE_PREFIX, sizeof(VARIABLE_PREFIX) - 1) == 0)
            err = read_variable(config, *at, fault);
    }
    if (err == 0)
        err = read_flags(config, source, fault);
    if (err == 0)
        err = hd_config_check_host(config->host, config->auth.val != NULL, fault);
    if (err == 0)
        err = derive(config, fault);
    if (err != 0)
        hd_config_fini(config);
    return err;
}

void hd_config_fini(struct hd_config *config)
{
    hd_json_fini(&config->auth.json);
    hd_json_fini(&config->env.json);
    hd_json_fini(&config->store_index.json);
    hd_json_fini(&config->serde.json);
    hd_json_fini(&config->webhooks_headers.json);
    hd_json_fini(&config->page_sign_in.json);
    hd_arena_fini(&config->arena);
    *config = (struct hd_config){0};
}

/* ---- loopback --------------------------------------------------------------- */

bool hd_config_is_loopback(const char *host)
{
    size_t len = strlen(host);
    char bare[INET6_ADDRSTRLEN];
    struct in6_addr six;
    struct in_addr four;

    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    if (len >= sizeof(bare))
        return false;
    memcpy(bare, host, len);
    bare[len] = '\0';
    if (inet_pton(AF_INET6, bare, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

int hd_config_check_host(const char *host, bool has_authentication, struct heddle_error *fault)
{
    if (has_authentication || hd_config_is_loopback(host))
        return 0;
    return hd_error_set(fault, HD_EINVAL,
                        "host %.64s is reachable from other machines and authentication is off: "
                        "listen on 127.0.0.1, ::1 or localhost, or configure `auth` in the file "
                        "(docs/authentication.md)",
                        host);
}
