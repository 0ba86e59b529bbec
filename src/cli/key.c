/* heddle key: API keys for machines, and the key that principals are derived with. */
#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/base64url.h"
#include "auth/digest.h"
#include "auth/issuer.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "config/config.h"
#include "records/api_keys.h"
#include "store/rows.h"

#define DAY_US INT64_C(86400000000)
#define MAX_DAYS 36500
#define ID_BYTES 12
#define SECRET_BYTES 32
#define KEY_LEN (sizeof(HD_API_KEY_PREFIX) - 1 + HD_API_KEY_ID_LEN + 1 + HD_API_KEY_SECRET_LEN)
#define MAX_RECORD 65536

extern char **environ;

struct key_options {
    const char *subject;
    const char *expires;
    const char *target; /* the key to revoke, or the file to write */
    bool is_admin;
    char *settings[5]; /* for hd_config_load() */
    int setting_count;
    int64_t expires_at;
};

/* ---- arguments -------------------------------------------------------- */

static int missing(const char *name)
{
    return hd_usage_error(&hd_command_key, "%s needs a value", name);
}

/* --store and --config are the server's settings. */
static int take_setting(struct key_options *o, const char *name, const char *value)
{
    if (!value)
        return missing(name);
    if (o->setting_count + 2 > (int)HD_COUNT(o->settings))
        return hd_usage_error(&hd_command_key, "duplicate %s", name);
    o->settings[o->setting_count++] = (char *)name;
    o->settings[o->setting_count++] = (char *)value;
    return HD_EXIT_OK;
}

static int read_options(int argc, char **argv, struct key_options *o)
{
    static char name[] = "key";
    const char *value;
    int status = HD_EXIT_OK;

    o->settings[o->setting_count++] = name;
    for (int i = 2; status == HD_EXIT_OK && i < argc; i++) {
        if (hd_option_value(argc, argv, &i, "--subject", &o->subject))
            status = o->subject ? HD_EXIT_OK : missing("--subject");
        else if (hd_option_value(argc, argv, &i, "--expires", &o->expires))
            status = o->expires ? HD_EXIT_OK : missing("--expires");
        else if (hd_option_value(argc, argv, &i, "--store", &value))
            status = take_setting(o, "--store", value);
        else if (hd_option_value(argc, argv, &i, "--config", &value))
            status = take_setting(o, "--config", value);
        else if (strcmp(argv[i], "--admin") == 0)
            o->is_admin = true;
        else if (argv[i][0] == '-' || o->target)
            status = hd_usage_error(&hd_command_key, "%s: unknown argument", argv[i]);
        else
            o->target = argv[i];
    }
    return status;
}

static bool is_subject(const char *text)
{
    size_t len = strlen(text), step;

    for (const char *at = text; at < text + len; at += step) {
        step = hd_utf8_char(at, text + len);
        if (step == 0 || (unsigned char)*at < ' ' || *at == 127)
            return false;
    }
    return len > 0 && len <= HD_MAX_SUBJECT;
}

/* Days from now; false when invalid. */
static bool read_expiry(struct key_options *o, int64_t now)
{
    int64_t days = 0;

    if (!o->expires)
        return true;
    for (const char *c = o->expires; *c; c++) {
        if (*c < '0' || *c > '9' || days > MAX_DAYS)
            return false;
        days = days * 10 + (*c - '0');
    }
    o->expires_at = now + days * DAY_US;
    return days > 0 && days <= MAX_DAYS;
}

/* Opens the configured store; NULL after printing the error. */
static struct heddle *open_store(struct key_options *o, bool is_new)
{
    struct hd_config_source source = {o->setting_count, o->settings, environ};
    struct heddle_error fault = {0};
    struct heddle *store = NULL;
    struct hd_config config;

    if (hd_config_load(&config, &source, &fault)) {
        (void)fprintf(stderr, "heddle key: %s\n", fault.text);
        return NULL;
    }
    if (strncmp(config.store, "memory:", 7) == 0)
        (void)fprintf(stderr, "heddle key: a memory: store belongs to one process\n");
    else if (!hd_ops_open(&hd_command_key, config.store, is_new, &store))
        store = NULL;
    hd_config_fini(&config);
    return store;
}

static int fail_key_command(int err, const struct heddle_error *fault)
{
    (void)fprintf(stderr, "heddle key: %s\n", fault->code ? fault->text : hd_error_text(err));
    return HD_EXIT_FAILED;
}

/* ---- create ----------------------------------------------------------- */

/* Letters and digits only: an id that begins with "-" would look like an option. */
static void make_id(char out[HD_API_KEY_ID_LEN])
{
    unsigned char bytes[ID_BYTES];

    do {
        hd_random(bytes, sizeof(bytes));
        hd_base64url_encode(bytes, sizeof(bytes), out);
    } while (memchr(out, '-', HD_API_KEY_ID_LEN) || memchr(out, '_', HD_API_KEY_ID_LEN));
}

static void make_secret(char out[HD_API_KEY_SECRET_LEN])
{
    unsigned char bytes[SECRET_BYTES];

    hd_random(bytes, sizeof(bytes));
    hd_base64url_encode(bytes, sizeof(bytes), out);
    explicit_bzero(bytes, sizeof(bytes));
}

static int store_key(struct heddle *store, struct hd_key_rec *key, struct heddle_error *fault)
{
    struct hd_batch_builder builder;
    struct hd_batch batch;
    int err;

    hd_batch_init(&builder);
    err = key->rev ? hd_key_put(&builder, key) : hd_key_add(&builder, key);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_rows_apply(store, hd_key_lane(), &batch, NULL, fault);
    hd_batch_fini(&builder);
    return err;
}

static int create_in(struct heddle *store, const struct key_options *o, int64_t now)
{
    char id[HD_API_KEY_ID_LEN], secret[HD_API_KEY_SECRET_LEN], hash[HD_SHA256_HEX_LEN + 1];
    struct hd_key_rec key = {.created_at = now};
    struct heddle_error fault = {0};
    int err;

    make_id(id);
    make_secret(secret);
    err = hd_sha256_hex(hd_slice(secret, sizeof(secret)), hash);
    key.key = (struct hd_api_key){.id = hd_slice(id, sizeof(id)),
                                  .hash = hd_slice_cstr(hash),
                                  .subject = hd_slice_cstr(o->subject),
                                  .is_admin = o->is_admin,
                                  .expires_at = o->expires_at};
    if (!err)
        err = store_key(store, &key, &fault);
    if (err)
        return fail_key_command(err, &fault);
    printf(HD_API_KEY_PREFIX "%.*s_%.*s\n", (int)sizeof(id), id, (int)sizeof(secret), secret);
    explicit_bzero(secret, sizeof(secret));
    (void)fprintf(stderr, "This key is shown once. Requests send it as x-api-key, or as "
                          "\"Authorization: Bearer KEY\".\n");
    return HD_EXIT_OK;
}

static int create(struct key_options *o)
{
    int64_t now = hd_clock_now_us();
    struct heddle *store;
    int status;

    if (o->target)
        return hd_usage_error(&hd_command_key, "%s: unknown argument", o->target);
    if (!o->subject || !is_subject(o->subject))
        return hd_usage_error(&hd_command_key, "--subject must be a name of up to %d bytes",
                              HD_MAX_SUBJECT);
    if (!read_expiry(o, now))
        return hd_usage_error(&hd_command_key, "--expires must be a number of days up to %d",
                              MAX_DAYS);
    store = open_store(o, true);
    if (!store)
        return HD_EXIT_FAILED;
    status = create_in(store, o, now);
    heddle_close(store);
    return status;
}

/* ---- list and revoke -------------------------------------------------- */

static const char *state_of(const struct hd_api_key *key, int64_t now)
{
    if (key->revoked_at)
        return "revoked";
    return key->expires_at && key->expires_at <= now ? "expired" : "good";
}

static void show_day(int64_t us, char out[33])
{
    (void)snprintf(out, 33, "never");
    if (us) {
        hd_clock_format_iso(us, out);
        out[10] = '\0';
    }
}

static int on_key(void *arg, const struct hd_key_rec *rec)
{
    const struct hd_api_key *key = &rec->key;
    char created[33], expires[33];

    show_day(rec->created_at, created);
    show_day(key->expires_at, expires);
    printf("%-17.*s %-8s %-6s %-11s %-11s %.*s\n", (int)key->id.len, key->id.ptr,
           state_of(key, *(int64_t *)arg), key->is_admin ? "yes" : "no", created, expires,
           (int)key->subject.len, key->subject.ptr);
    return 0;
}

static int list(struct key_options *o)
{
    int64_t now = hd_clock_now_us();
    struct heddle_error fault = {0};
    struct heddle *store;
    int err;

    if (o->target || o->subject || o->expires || o->is_admin)
        return hd_usage_error(&hd_command_key, "list takes only --store or --config");
    store = open_store(o, false);
    if (!store)
        return HD_EXIT_FAILED;
    printf("%-17s %-8s %-6s %-11s %-11s %s\n", "ID", "STATE", "ADMIN", "CREATED", "EXPIRES",
           "SUBJECT");
    err = hd_keys_scan(store, on_key, &now, &fault);
    heddle_close(store);
    return err ? fail_key_command(err, &fault) : HD_EXIT_OK;
}

static int revoke_in(struct heddle *store, struct hd_slice id)
{
    struct heddle_error fault = {0};
    struct hd_key_rec key;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_RECORD);
    do {
        err = hd_key_read(store, id, &arena, &key, &fault);
        if (!err && !key.key.revoked_at) {
            key.key.revoked_at = hd_clock_now_us();
            err = store_key(store, &key, &fault);
        }
    } while (err == HD_ECONFLICT);
    hd_arena_fini(&arena);
    if (err == HD_ENOTFOUND) {
        (void)fprintf(stderr, "heddle key: key %.*s not found\n", (int)id.len, id.ptr);
        return HD_EXIT_FAILED;
    }
    return err ? fail_key_command(err, &fault) : HD_EXIT_OK;
}

/* Accepts the id, or the whole key. */
static int revoke_key(struct key_options *o)
{
    struct hd_slice id = hd_slice_cstr(o->target);
    size_t prefix = sizeof(HD_API_KEY_PREFIX) - 1;
    struct heddle *store;
    int status;

    if (!o->target || o->subject || o->expires || o->is_admin)
        return hd_usage_error(&hd_command_key, "revoke takes the id of one key");
    if (id.len == KEY_LEN && hd_slice_starts(id, HD_S(HD_API_KEY_PREFIX)))
        id = hd_slice(id.ptr + prefix, HD_API_KEY_ID_LEN);
    store = open_store(o, false);
    if (!store)
        return HD_EXIT_FAILED;
    status = revoke_in(store, id);
    heddle_close(store);
    if (status == HD_EXIT_OK)
        printf("%.*s is revoked; servers refuse it within %d seconds\n", (int)id.len, id.ptr,
               HD_AUTH_RECHECK_US / 1000000);
    return status;
}

/* ---- the principal key ------------------------------------------------ */

static bool write_whole(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, text, len);

        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            text += put;
            len -= (size_t)put;
        }
    }
    return fsync(fd) == 0;
}

/* Never overwrites an existing key: data stored under it would be lost. */
static int principal(struct key_options *o)
{
    char text[HD_API_KEY_SECRET_LEN + 1];
    bool is_written;
    int fd;

    if (!o->target || o->subject || o->expires || o->is_admin || o->setting_count > 1)
        return hd_usage_error(&hd_command_key, "principal takes the name of a new file");
    fd = open(o->target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)fprintf(stderr, "heddle key: %s: %s\n", o->target, strerror(errno));
        return HD_EXIT_FAILED;
    }
    make_secret(text);
    text[HD_API_KEY_SECRET_LEN] = '\n';
    is_written = write_whole(fd, text, sizeof(text));
    explicit_bzero(text, sizeof(text));
    if (close(fd) != 0 || !is_written) {
        (void)fprintf(stderr, "heddle key: cannot write %s\n", o->target);
        (void)unlink(o->target);
        return HD_EXIT_FAILED;
    }
    printf("Wrote a new key to %s, for auth.key.file in the configuration. Keep a copy apart from\n"
           "the database's backups: without the key the data of users cannot be found again.\n",
           o->target);
    return HD_EXIT_OK;
}

/* ---- the command ------------------------------------------------------ */

static int key_run(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct key_options *o);
    } verbs[] = {
        {"create", create}, {"list", list}, {"revoke", revoke_key}, {"principal", principal}};
    struct key_options o = {0};

    for (size_t i = 0; argc > 1 && i < HD_COUNT(verbs); i++) {
        int status;

        if (strcmp(argv[1], verbs[i].name) != 0)
            continue;
        status = read_options(argc, argv, &o);
        return status == HD_EXIT_OK ? verbs[i].run(&o) : status;
    }
    return hd_usage_error(&hd_command_key, "expected create, list, revoke or principal");
}

const struct hd_command hd_command_key = {
    .name = "key",
    .arguments = "create --subject NAME | list | revoke ID | principal FILE",
    .summary = "create, list and revoke API keys; create the principal key",
    .help =
        "An API key authenticates a program as the subject it was created for. It is printed\n"
        "once; the store keeps a hash of it. Servers on the same store accept a new key at once,\n"
        "and refuse a revoked one within seconds.\n"
        "\n"
        "  create --subject NAME   its subject: keys of one subject share all data\n"
        "    --admin               with the rights of an operator\n"
        "    --expires DAYS        expires after this time (default: never)\n"
        "  list                    all keys: id, state, subject\n"
        "  revoke ID               revoke a key permanently\n"
        "  principal FILE          a new key to derive principals with (auth.key), mode 0600\n"
        "\n"
        "  --store URL             the database (default: sqlite:heddle.db)\n"
        "  --config FILE           the server's configuration, which names it\n"
        "\n"
        "See docs/authentication.md.\n",
    .run = key_run,
};
