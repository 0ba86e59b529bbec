/* heddle doctor: checks the environment of a server. Prints one line per check. */
#include "cli/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "config/config.h"
#include "gate/auth_service.h"
#include "heddle.h"
#include "store/table.h"
#include "store/url.h"
#include "transfer/row_check.h"

#define MAX_ARGUMENTS 64
#define MAX_PATH 4096
#define LITTLE_SPACE ((uint64_t)1 << 30) /* bytes: warn below this */
#define TOO_LITTLE_SPACE ((uint64_t)64 << 20)

extern char **environ;

struct checkup {
    struct hd_config config;
    unsigned warnings, failures;
};

enum outcome { FINE, WARNING, FAILURE };

static void HD_PRINTF(4, 5)
    report(struct checkup *c, enum outcome outcome, const char *what, const char *fmt, ...)
{
    static const char *const words[] = {[FINE] = "ok", [WARNING] = "warn", [FAILURE] = "FAIL"};
    va_list args;

    c->warnings += outcome == WARNING;
    c->failures += outcome == FAILURE;
    printf("%-4s  %-14s ", words[outcome], what);
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    (void)putchar('\n');
}

/* ---- files ------------------------------------------------------------ */

static void check_space(struct checkup *c, const char *file)
{
    char folder[MAX_PATH];
    const char *slash = strrchr(file, '/');
    struct statvfs fs;
    uint64_t left;

    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file + 1) : 1,
                   slash ? file : ".");
    if (statvfs(folder, &fs) != 0) {
        report(c, WARNING, "disk", "%s: %s", folder, strerror(errno));
        return;
    }
    left = (uint64_t)fs.f_bavail * fs.f_frsize;
    report(c,
           left < TOO_LITTLE_SPACE ? FAILURE
           : left < LITTLE_SPACE   ? WARNING
                                   : FINE,
           "disk", "%.1f GiB free in %s", (double)left / (1 << 30), folder);
}

static void check_database_file(struct checkup *c, const char *file)
{
    struct stat st;

    check_space(c, file);
    if (stat(file, &st) == 0 && (st.st_mode & (S_IRWXO)) != 0)
        report(c, WARNING, "database file",
               "%s is readable by every user of this machine: chmod 600", file);
}

/* ---- the database ----------------------------------------------------- */

/* Other rows have no checksum: only their format is checked. */
static void check_rows(struct checkup *c, struct heddle *store)
{
    struct heddle_error fault = {0};
    uint64_t rows = 0;
    int err = hd_row_check(store, &rows, &fault);

    if (err)
        report(c, FAILURE, "rows", "%s", fault.code ? fault.text : hd_error_text(err));
    else
        report(c, FINE, "rows", "%llu rows can be decoded; rows have no checksums of their own",
               (unsigned long long)rows);
}

static void check_database(struct checkup *c)
{
    struct heddle_error error = {0};
    struct heddle *store;
    char shown[512];

    hd_url_show(c->config.store, shown, sizeof(shown));
    if (heddle_open(&store, c->config.store, &error) != 0) {
        report(c, FAILURE, "database", "%s: %s", shown, error.text);
        return;
    }
    report(c, FINE, "database", "%s opens", shown);
    report(c, FINE, "schema", "version %d", HD_SCHEMA_VERSION);
    if (heddle_check(store, &error) != 0)
        report(c, FAILURE, "values", "%s", error.text);
    else
        report(c, FINE, "values", "the values of all checkpoints and writes match their checksums");
    check_rows(c, store);
    heddle_close(store);
}

static void check_store(struct checkup *c)
{
    char file[MAX_PATH], shown[512];
    struct stat st;

    if (hd_url_file(c->config.store, file, sizeof(file))) {
        check_database_file(c, file);
        if (stat(file, &st) != 0) { /* opening would create it */
            hd_url_show(c->config.store, shown, sizeof(shown));
            report(c, FINE, "database", "%s does not exist yet; `heddle serve` creates it", shown);
            return;
        }
    }
    if (strcmp(c->config.store, "memory:") == 0)
        report(c, WARNING, "database", "memory: data is lost when the server stops");
    else
        check_database(c);
}

/* ---- all checks ------------------------------------------------------- */

static void check_host(struct checkup *c)
{
    struct heddle_error fault = {0};

    if (hd_config_check_host(c->config.host, c->config.auth.val != NULL, &fault) != 0)
        report(c, FAILURE, "network", "%s", fault.text);
    else
        report(c, FINE, "network", "%s, port %d", c->config.host, c->config.port);
}

/* A key file: `{"file": …}` anywhere in the configuration's `auth`. */
static void check_key_file(struct checkup *c, struct hd_slice name)
{
    struct hd_slice folder = c->config.auth.folder;
    bool is_relative = name.len > 0 && name.ptr[0] != '/' && folder.len > 0;
    char path[MAX_PATH];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%.*s%s%.*s", is_relative ? (int)folder.len : 0, folder.ptr,
                   is_relative ? "/" : "", (int)name.len, name.ptr);
    if (stat(path, &st) != 0)
        report(c, FAILURE, "key file", "%s: %s", path, strerror(errno));
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        report(c, FAILURE, "key file", "%s is readable by other users: chmod 600", path);
    else
        report(c, FINE, "key file", "%s is readable by its owner only", path);
}

static void check_key_files(struct checkup *c, hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    while (hd_json_next(&it)) {
        if (it.is_object && hd_slice_eq(it.key, HD_S("file")) && hd_json_is_string(it.val))
            check_key_file(c, hd_json_string(it.val));
        else
            check_key_files(c, it.val);
    }
}

static void check_auth(struct checkup *c)
{
    hd_json_val auth = c->config.auth.val;
    struct heddle_error fault = {0};

    if (!auth) {
        report(c, FINE, "authentication", "off: every client that can connect has full access");
        return;
    }
    check_key_files(c, auth);
    if (hd_auth_service_check_config(&c->config, &fault) != 0)
        report(c, FAILURE, "authentication", "%s", fault.text);
    else if (!hd_json_get(auth, HD_S("key")))
        report(c, WARNING, "authentication",
               "on, but without `auth.key`: principals can be guessed from names");
    else
        report(c, FINE, "authentication",
               "on; keep a copy of the principal key, apart from the database's backups");
}

static int check_all(struct checkup *c)
{
    check_auth(c);
    check_host(c);
    check_store(c);
    if (c->failures > 0)
        printf("%u errors, %u warnings\n", c->failures, c->warnings);
    else if (c->warnings > 0)
        printf("ok, %u %s\n", c->warnings, c->warnings == 1 ? "warning" : "warnings");
    else
        printf("ok\n");
    return c->failures > 0 ? HD_EXIT_FAILED : HD_EXIT_OK;
}

/* All arguments except --secrets are settings, as for `serve`. */
static int check_up(int argc, char **argv)
{
    struct hd_config_source source = {.argc = argc, .argv = argv, .env = environ};
    struct heddle_error fault = {0};
    struct checkup c = {.warnings = 0};
    int status;

    if (hd_config_load(&c.config, &source, &fault)) {
        report(&c, FAILURE, "configuration", "%s", fault.text);
        return HD_EXIT_FAILED;
    }
    report(&c, FINE, "configuration", "all settings are valid");
    status = check_all(&c);
    hd_config_fini(&c.config);
    return status;
}

static int doctor_run(int argc, char **argv)
{
    char *flags[MAX_ARGUMENTS];
    const char *url = NULL;
    bool has_secrets = false;
    int count = 0;

    if (argc >= MAX_ARGUMENTS)
        return hd_usage_error(&hd_command_doctor, "too many arguments");
    for (int i = 0; i < argc; i++) {
        if (i > 0 && hd_option_value(argc, argv, &i, "--secrets", &url))
            has_secrets = true;
        else
            flags[count++] = argv[i];
    }
    if (!has_secrets)
        return check_up(count, flags);
    if (!url || count > 1)
        return hd_usage_error(&hd_command_doctor, "--secrets takes one URL and no other options");
    return hd_doctor_secrets(url);
}

const struct hd_command hd_command_doctor = {
    .name = "doctor",
    .arguments = "[--store URL] [--config FILE] | --secrets URL",
    .summary = "check a configuration, or search a database for secrets",
    .help = "Checks the settings, the network, keys and their file permissions, the disk, the\n"
            "database and its rows, and prints one line for each.\n"
            "\n"
            "  --store URL      the database (default: sqlite:heddle.db)\n"
            "  --config FILE    the same settings as the server's; all its flags work too\n"
            "\n"
            "  --secrets URL    reads all rows of a database and prints a line for each value\n"
            "                   that looks like a token, key, password or cookie, by its name or\n"
            "                   its format: its position, never the secret\n"
            "\n"
            "Exit status 1 if a check fails, or if a secret was found.\n",
    .run = doctor_run,
};
