#include "gate/auth_service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/exchange.h"
#include "app/app.h"
#include "app/defer.h"
#include "auth/config.h"
#include "auth/jwk.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "config/config.h"
#include "gate/auth_worker.h"
#include "gate/sign_in.h"
#include "net/http_client.h"
#include "records/api_keys.h"
#include "records/principals.h"

#define FETCH_MS 10000
#define MAX_KNOWN 100000
#define MAX_SECRET 4096
#define MAX_RECORD 65536

struct hd_auth_service {
    struct hd_app *app;
    struct hd_auth *auth;
    struct hd_client *http; /* separate: key set URLs come from the configuration */
    struct hd_map known;    /* principals whose rows are stored; only while there are no old keys */
    struct hd_auth_worker *worker;  /* NULL: no code of the project authenticates */
    struct hd_signer *signer;       /* NULL: page.sign_in is not configured */
    char shared[HD_PRINCIPAL_SIZE]; /* the shared compartment; "": none, or not yet set */
};

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return hd_clock_now_us();
}

/* ---- secrets ---------------------------------------------------------- */

static int read_secret_bytes(int fd, struct hd_buf *out)
{
    char piece[MAX_SECRET];
    int err = 0;

    for (;;) {
        ssize_t got = read(fd, piece, sizeof(piece));

        if (got == 0)
            break;
        if (got > 0)
            err = hd_buf_append(out, piece, (size_t)got);
        else if (errno != EINTR)
            err = HD_EIO;
        if (err)
            break;
    }
    explicit_bzero(piece, sizeof(piece));
    return err;
}

static int read_secret_file(const char *path, struct hd_buf *out, struct heddle_error *fault)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), err;
    struct stat info;

    if (fd < 0)
        return hd_error_set(fault, HD_EINVAL, "%.128s: %s", path, strerror(errno));
    if (!fstat(fd, &info) && (info.st_mode & (S_IRWXG | S_IRWXO)))
        hd_log(HD_LOG_WARN, "auth", "%s is readable by other users: chmod 600", path);
    err = read_secret_bytes(fd, out);
    if (err && err != HD_ENOMEM)
        err = hd_error_set(fault, HD_EINVAL, "%.128s: %s", path,
                           err == HD_EIO ? strerror(errno) : "it is too large");
    (void)close(fd);
    return err;
}

static int read_secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                       struct heddle_error *fault)
{
    const struct hd_app *app = ctx;
    struct hd_slice folder = app->config->auth.folder;
    const char *value;
    char path[4096];

    if (is_file) {
        int len = name[0] == '/' || folder.len == 0
                      ? snprintf(path, sizeof(path), "%s", name)
                      : snprintf(path, sizeof(path), "%.*s/%s", (int)folder.len, folder.ptr, name);

        if (len < 0 || (size_t)len >= sizeof(path))
            return hd_error_set(fault, HD_EINVAL, "the path is too long");
        return read_secret_file(path, out, fault);
    }
    value = getenv(name);
    if (!value || !*value)
        return hd_error_set(fault, HD_EINVAL, "the variable %.64s is not set", name);
    return hd_buf_append(out, value, strlen(value));
}

/* ---- key sets --------------------------------------------------------- */

struct fetching {
    struct hd_auth_service *auth_service;
    void *handle;
};

/* The max-age of Cache-Control; -1: absent. */
static int64_t max_age_of(struct hd_slice headers)
{
    struct hd_slice value = hd_header_find(headers, "cache-control");
    static const struct hd_slice name = HD_S_INIT("max-age=");

    for (size_t i = 0; i + name.len <= value.len; i++) {
        int64_t seconds = 0;
        size_t at = i + name.len;

        if (strncasecmp(value.ptr + i, name.ptr, name.len) != 0 ||
            (i > 0 && value.ptr[i - 1] != ' ' && value.ptr[i - 1] != ','))
            continue;
        for (; at < value.len && value.ptr[at] >= '0' && value.ptr[at] <= '9'; at++)
            seconds = seconds > 1000000 ? seconds : seconds * 10 + (value.ptr[at] - '0');
        return at > i + name.len ? seconds : -1;
    }
    return -1;
}

static void on_fetched(void *ctx, const struct hd_client_response *response)
{
    struct fetching *fetching = ctx;
    bool is_good = !response->error && response->status == 200;

    if (!is_good)
        hd_log(HD_LOG_WARN, "auth", "keys could not be fetched: %s, status %ld",
               response->error ? response->error : "a response", response->status);
    hd_auth_fetched(fetching->auth_service->auth, fetching->handle,
                    is_good ? response->body : hd_slice(NULL, 0), max_age_of(response->headers));
    hd_free(fetching);
}

static int fetch(void *ctx, struct hd_auth *auth, const char *url, void *handle)
{
    static const char *const headers[] = {"Accept: application/json"};
    const struct hd_client_options options = {.method = "GET",
                                              .url = url,
                                              .headers = headers,
                                              .header_count = HD_COUNT(headers),
                                              .timeout_ms = FETCH_MS,
                                              .is_final = true,
                                              .max_body = HD_MAX_JWKS_BYTES};
    struct hd_app *app = ctx;
    struct fetching *fetching = hd_calloc(1, sizeof(*fetching));
    struct hd_client_request *request;
    int err;

    (void)auth;
    if (!fetching)
        return HD_ENOMEM;
    *fetching = (struct fetching){app->auth_service, handle};
    err = hd_client_send(app->auth_service->http, &options, on_fetched, fetching, &request);
    if (err)
        hd_free(fetching);
    return err;
}

/* ---- API keys --------------------------------------------------------- */

struct lookup {
    struct hd_auth_service *auth_service;
    void *handle;
    char id[HD_API_KEY_ID_LEN];
    struct hd_arena arena;
    struct hd_key_rec key;
    int err;
};

static void look_up(void *arg)
{
    struct lookup *lookup = arg;
    struct heddle_error fault = {0};

    lookup->err =
        hd_key_read(lookup->auth_service->app->store, hd_slice(lookup->id, sizeof(lookup->id)),
                    &lookup->arena, &lookup->key, &fault);
    if (lookup->err && lookup->err != HD_ENOTFOUND)
        hd_log(HD_LOG_WARN, "auth", "an API key cannot be looked up: %s",
               fault.code ? fault.text : hd_error_text(lookup->err));
}

static void on_looked_up(void *arg)
{
    struct lookup *lookup = arg;
    bool is_there = lookup->err == 0;
    int err = lookup->err == HD_ENOTFOUND ? 0 : lookup->err;

    hd_auth_found(lookup->auth_service->auth, lookup->handle, is_there ? &lookup->key.key : NULL,
                  err);
    hd_arena_fini(&lookup->arena);
    hd_free(lookup);
}

static int find_key(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle)
{
    struct hd_app *app = ctx;
    struct lookup *lookup;
    int err;

    (void)auth;
    if (id.len != sizeof(lookup->id))
        return HD_EINVAL;
    lookup = hd_calloc(1, sizeof(*lookup));
    if (!lookup)
        return HD_ENOMEM;
    lookup->auth_service = app->auth_service;
    lookup->handle = handle;
    memcpy(lookup->id, id.ptr, id.len);
    hd_arena_init(&lookup->arena, MAX_RECORD);
    err = hd_defer_run(app->defer, look_up, on_looked_up, lookup);
    if (err)
        hd_free(lookup);
    return err;
}

/* ---- principals ------------------------------------------------------- */

struct settling {
    struct hd_auth_service *auth_service;
    void *handle; /* of the check; with `fn`: its context */
    void (*fn)(void *ctx, int err);
    struct hd_identity *identity; /* of the check, which is the only owner */
    char principal[HD_PRINCIPAL_SIZE];
    char organisations[HD_MAX_ORGANISATIONS][HD_PRINCIPAL_SIZE];
    int err;
};

void hd_auth_service_compartment(const struct hd_auth_service *auth_service, struct hd_slice *alias,
                                 struct hd_slice *subject)
{
    if (!hd_auth_settings(auth_service->auth)->is_shared)
        return;
    *alias = HD_S(HD_SHARED_ALIAS);
    *subject = HD_S("everybody");
}

static bool is_known(const struct hd_auth_service *auth_service, const struct hd_identity *identity)
{
    if (hd_auth_settings(auth_service->auth)->is_shared && auth_service->shared[0] == '\0')
        return false;
    if (hd_auth_key_count(auth_service->auth) > 1 ||
        !hd_map_get(&auth_service->known, identity->principal))
        return false;
    for (size_t i = 0; i < identity->organisation_count; i++) {
        if (!hd_map_get(&auth_service->known, identity->organisations[i]))
            return false;
    }
    return true;
}

/* Without memory it is looked up the next time. */
static void remember(struct hd_auth_service *auth_service, struct hd_slice principal)
{
    if (auth_service->known.count >= MAX_KNOWN) {
        hd_map_fini(&auth_service->known);
        hd_map_init(&auth_service->known, MAX_KNOWN);
    }
    if (hd_map_put(&auth_service->known, principal, auth_service))
        return;
}

static void settle_all(void *arg)
{
    struct settling *s = arg;
    const struct hd_identity *identity = s->identity;
    struct heddle *store = s->auth_service->app->store;
    struct hd_slice alias = identity->issuer, subject = identity->subject;
    struct heddle_error fault = {0};

    hd_auth_service_compartment(s->auth_service, &alias, &subject);
    s->err = hd_principal_settle(store, s->auth_service->auth, HD_PRINCIPAL_PERSON, alias, subject,
                                 s->principal, &fault);
    for (size_t i = 0; !s->err && i < identity->organisation_count; i++)
        s->err = hd_principal_settle(store, s->auth_service->auth, HD_PRINCIPAL_ORGANISATION,
                                     identity->issuer, identity->organisation_names[i],
                                     s->organisations[i], &fault);
    if (s->err && s->err != HD_EBUSY)
        hd_log(HD_LOG_WARN, "auth", "a principal cannot be looked up: %s",
               fault.code ? fault.text : hd_error_text(s->err));
}

static void end_settling(struct settling *s, int err)
{
    if (s->fn)
        s->fn(s->handle, err);
    else
        hd_auth_settled(s->auth_service->auth, s->handle, err);
    hd_free(s);
}

static void on_settled(void *arg)
{
    struct settling *s = arg;
    struct hd_identity *identity = s->identity;
    int err = s->err;

    if (!err)
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(s->principal), &identity->principal);
    for (size_t i = 0; !err && i < identity->organisation_count; i++)
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(s->organisations[i]),
                            &identity->organisations[i]);
    if (!err && hd_auth_key_count(s->auth_service->auth) == 1) {
        remember(s->auth_service, identity->principal);
        for (size_t i = 0; i < identity->organisation_count; i++)
            remember(s->auth_service, identity->organisations[i]);
        if (hd_auth_settings(s->auth_service->auth)->is_shared)
            memcpy(s->auth_service->shared, s->principal, sizeof(s->principal));
    }
    end_settling(s, err);
}

static int start_settling(struct hd_auth_service *auth_service, struct hd_identity *identity,
                          void (*fn)(void *ctx, int err), void *handle)
{
    struct settling *s;
    int err = 0;

    if (auth_service->shared[0])
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(auth_service->shared),
                            &identity->principal);
    if (err)
        return err;
    if (is_known(auth_service, identity))
        return HD_READY;
    s = hd_calloc(1, sizeof(*s));
    if (!s)
        return HD_ENOMEM;
    *s = (struct settling){
        .auth_service = auth_service, .handle = handle, .fn = fn, .identity = identity};
    err = hd_defer_run(auth_service->app->defer, settle_all, on_settled, s);
    if (err)
        hd_free(s);
    return err;
}

static int settle_identity(void *ctx, struct hd_auth *auth, struct hd_identity *identity,
                           void *handle)
{
    struct hd_app *app = ctx;

    (void)auth;
    return start_settling(app->auth_service, identity, NULL, handle);
}

int hd_auth_service_settle(struct hd_auth_service *auth_service, struct hd_identity *identity,
                           void (*fn)(void *ctx, int err), void *ctx)
{
    return start_settling(auth_service, identity, fn, ctx);
}

/* ---- the whole -------------------------------------------------------- */

/* The host's context is the app: while it is created there is no gate yet. */
static struct hd_auth_host auth_host_of(struct hd_app *app)
{
    return (struct hd_auth_host){.ctx = app,
                                 .now_us = now_us,
                                 .fetch = fetch,
                                 .find_key = find_key,
                                 .settle = settle_identity,
                                 .secret = read_secret};
}

int hd_auth_service_create(struct hd_app *app, struct hd_auth_service **out,
                           struct heddle_error *fault)
{
    struct hd_auth_service *auth_service = hd_calloc(1, sizeof(*auth_service));
    struct hd_auth_host host = auth_host_of(app);
    int err;

    if (!auth_service)
        return HD_ENOMEM;
    auth_service->app = app;
    hd_map_init(&auth_service->known, MAX_KNOWN);
    err = hd_auth_create(app->config->auth.val, &host, &auth_service->auth, fault);
    if (!err)
        err = hd_client_create(app->loop, &auth_service->http);
    if (!err && hd_auth_settings(auth_service->auth)->has_code)
        err = hd_auth_worker_create(app, auth_service, auth_service->auth, &auth_service->worker);
    if (!err && app->config->page_sign_in.val)
        err = hd_signer_create(auth_service, auth_service->http, app->config->page_sign_in.val,
                               &host, &auth_service->signer, fault);
    if (err) {
        hd_auth_service_destroy(auth_service);
        return err;
    }
    if (hd_auth_key(auth_service->auth, 0)->id.len == 0)
        hd_log(HD_LOG_WARN, "auth",
               "auth.key is not set: principals can be guessed; create a key with `heddle key "
               "principal FILE`");
    *out = auth_service;
    return 0;
}

void hd_auth_service_destroy(struct hd_auth_service *auth_service)
{
    if (!auth_service)
        return;
    /* Cancels its requests; their callbacks are called. */
    hd_client_destroy(auth_service->http);
    hd_auth_worker_destroy(auth_service->worker);
    hd_signer_destroy(auth_service->signer);
    hd_auth_destroy(auth_service->auth);
    hd_map_fini(&auth_service->known);
    hd_free(auth_service);
}

int hd_auth_service_check(struct hd_auth_service *auth_service, struct hd_slice authorization,
                          struct hd_slice api_key, hd_auth_fn fn, void *ctx,
                          struct hd_auth_result *out)
{
    return hd_auth_check(auth_service->auth, authorization, api_key, fn, ctx, out);
}

void hd_auth_service_forget_key(struct hd_auth_service *auth_service, struct hd_slice key_id)
{
    hd_auth_forget_key(auth_service->auth, key_id);
}

struct hd_auth_worker *hd_auth_service_worker(const struct hd_auth_service *auth_service)
{
    return auth_service->worker;
}

struct hd_signer *hd_auth_service_signer(const struct hd_auth_service *auth_service)
{
    return auth_service->signer;
}

bool hd_auth_service_is_withdrawn(const struct hd_auth_service *auth_service,
                                  struct hd_slice fingerprint)
{
    return auth_service->worker && hd_auth_worker_is_withdrawn(auth_service->worker, fingerprint);
}

const struct hd_auth *hd_auth_service_auth(const struct hd_auth_service *auth_service)
{
    return auth_service->auth;
}

int hd_auth_service_check_config(const struct hd_config *config, struct heddle_error *fault)
{
    struct hd_app app = {.config = config};
    struct hd_auth_host host = auth_host_of(&app);
    struct hd_auth *auth;
    struct hd_sign_ins sign_ins;
    int err = hd_auth_create(config->auth.val, &host, &auth, fault);

    if (err)
        return err;
    if (config->page_sign_in.val) {
        err = hd_sign_ins_read(&sign_ins, config->page_sign_in.val, hd_auth_settings(auth), &host,
                               fault);
        if (!err)
            hd_sign_ins_fini(&sign_ins);
    }
    hd_auth_destroy(auth);
    return err;
}

int hd_auth_service_keys(const struct hd_config *config, struct hd_auth **out,
                         struct heddle_error *fault)
{
    struct hd_app app = {.config = config};
    struct hd_auth_host host = auth_host_of(&app);

    return hd_auth_create(config->auth.val, &host, out, fault);
}
