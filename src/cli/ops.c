#include "cli/ops.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/log.h"
#include "cli/cli.h"
#include "gate/auth_service.h"
#include "heddle.h"
#include "records/principals.h"
#include "store/store.h"
#include "store/url.h"

extern char **environ;

#define MAX_URL 65536

bool hd_ops_open(const struct hd_command *command, const char *url, bool is_new,
                 struct heddle **out)
{
    struct heddle_error error = {0};
    char shown[512], file[4096];
    struct stat st;

    hd_url_show(url, shown, sizeof(shown));
    if (!is_new && hd_url_file(url, file, sizeof(file)) && stat(file, &st) != 0) {
        (void)fprintf(stderr, "heddle %s: %s: the database does not exist\n", command->name, shown);
        return false;
    }
    if (heddle_open(out, url, &error) == 0)
        return true;
    (void)fprintf(stderr, "heddle %s: %s: %s\n", command->name, shown, error.text);
    return false;
}

/* ---- options ---------------------------------------------------------- */

int hd_ops_option(const struct hd_command *command, struct hd_ops_options *options, int argc,
                  char **argv, int *index)
{
    const struct {
        const char *name;
        const char **value;
    } all[] = {{"--store", &options->store},
               {"--config", &options->config},
               {"--principal", &options->principal},
               {"--subject", &options->subject}};

    for (size_t i = 0; i < HD_COUNT(all); i++) {
        if (!hd_option_value(argc, argv, index, all[i].name, all[i].value))
            continue;
        return *all[i].value ? HD_OPS_TAKEN
                             : hd_usage_error(command, "%s needs a value", all[i].name);
    }
    return HD_OPS_OTHER;
}

static int load_ops_config(const struct hd_command *command, const struct hd_ops_options *options,
                           struct hd_config *config)
{
    char name[] = "heddle", store[] = "--store", file[] = "--config";
    char *argv[5] = {name};
    struct hd_config_source source = {.argc = 1, .argv = argv, .env = environ};
    struct heddle_error fault = {0};

    if (options->store) {
        argv[source.argc++] = store;
        argv[source.argc++] = (char *)options->store;
    }
    if (options->config) {
        argv[source.argc++] = file;
        argv[source.argc++] = (char *)options->config;
    }
    if (hd_config_load(config, &source, &fault))
        return hd_usage_error(command, "%s", fault.text);
    return 0;
}

/* ---- principals ------------------------------------------------------- */

/* Whether the principal's data is in the database: it has a row, and was not moved. */
static bool is_here(struct hd_ops *ops, const char *principal)
{
    struct hd_principal_rec record;
    struct hd_arena arena;
    bool is_so;

    hd_arena_init(&arena, MAX_URL);
    is_so = hd_principal_read(ops->store, hd_slice_cstr(principal), &arena, &record, NULL) == 0 &&
            record.state != HD_PRINCIPAL_MOVED;
    hd_arena_fini(&arena);
    return is_so;
}

/* An import creates threads for a subject that has never signed in and has no row. */
static bool has_threads(struct hd_ops *ops, const char *principal)
{
    struct heddle_threads *threads = NULL;
    bool has_any =
        heddle_list_threads(ops->store, (struct heddle_bytes){principal, strlen(principal)},
                            (struct heddle_bytes){NULL, 0}, 1, &threads, NULL) == 0 &&
        threads->count > 0;

    heddle_threads_free(threads);
    return has_any;
}

/*
 * Derived with the newest key, unless the data is still stored under an older key's principal.
 * An import (`is_new`) may name a subject that the server has not seen yet.
 */
static int find_principal(const struct hd_command *command, struct hd_ops *ops, const char *subject,
                          bool is_new)
{
    const struct hd_auth *auth = ops->auth;
    const char *slash = strchr(subject, '/');
    struct hd_slice alias = hd_slice(subject, slash ? (size_t)(slash - subject) : 0);
    char found[HD_PRINCIPAL_SIZE];
    bool is_known = is_new;

    if (!slash || alias.len == 0 || slash[1] == '\0')
        return hd_usage_error(command, "--subject takes ALIAS/SUBJECT");
    if (!hd_auth_has_alias(auth, alias)) {
        (void)fprintf(stderr, "heddle %s: no issuer with the alias %.*s in the configuration\n",
                      command->name, (int)alias.len, alias.ptr);
        return HD_EXIT_FAILED;
    }
    for (size_t i = 0; i < hd_auth_key_count(auth); i++) {
        bool is_stored;

        if (hd_auth_principal_derive(hd_auth_key(auth, i), HD_PRINCIPAL_PERSON, alias,
                                     hd_slice_cstr(slash + 1), found))
            return HD_EXIT_FAILED;
        is_stored = is_here(ops, found) || has_threads(ops, found);
        if (i == 0 || is_stored)
            (void)snprintf(ops->principal, sizeof(ops->principal), "%s", found);
        is_known = is_known || is_stored;
        if (is_stored)
            break;
    }
    if (!is_known)
        (void)fprintf(stderr, "heddle %s: subject %s of issuer %.*s not found in the database\n",
                      command->name, slash + 1, (int)alias.len, alias.ptr);
    return is_known ? 0 : HD_EXIT_FAILED;
}

static int set_principal(const struct hd_command *command, const struct hd_ops_options *options,
                         bool is_new, struct hd_ops *ops)
{
    struct heddle_error fault = {0};

    if (options->principal && options->subject)
        return hd_usage_error(command, "--principal and --subject exclude each other");
    if (options->principal) {
        if (strlen(options->principal) >= sizeof(ops->principal) ||
            hd_check_principal(hd_slice_cstr(options->principal), &fault))
            return hd_usage_error(command, "not a principal: %s", options->principal);
        (void)snprintf(ops->principal, sizeof(ops->principal), "%s", options->principal);
        return 0;
    }
    if (!options->subject && ops->auth)
        return hd_usage_error(command, "--subject or --principal is required with authentication");
    if (options->subject && !ops->auth)
        return hd_usage_error(command,
                              "--subject needs --config with `auth`, whose key derives principals");
    return options->subject ? find_principal(command, ops, options->subject, is_new) : 0;
}

int hd_ops_begin(const struct hd_command *command, const struct hd_ops_options *options,
                 bool is_new, struct hd_ops *ops)
{
    struct heddle_error fault = {0};
    int status;

    memset(ops, 0, sizeof(*ops));
    status = load_ops_config(command, options, &ops->config);
    if (status != 0)
        return status;
    hd_log_set_level(HD_LOG_ERROR);
    if (ops->config.auth.val && hd_auth_service_keys(&ops->config, &ops->auth, &fault)) {
        ops->auth = NULL;
        (void)fprintf(stderr, "heddle %s: %s\n", command->name, fault.text);
        status = HD_EXIT_FAILED;
    }
    if (status == 0 && !hd_ops_open(command, ops->config.store, is_new, &ops->store))
        status = HD_EXIT_FAILED;
    if (status == 0 && !options->is_of_all)
        status = set_principal(command, options, is_new, ops);
    if (status != 0)
        hd_ops_end(ops);
    return status;
}

void hd_ops_end(struct hd_ops *ops)
{
    heddle_close(ops->store);
    if (ops->auth)
        hd_auth_destroy(ops->auth);
    hd_config_fini(&ops->config);
}
