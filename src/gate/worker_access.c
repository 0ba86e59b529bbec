#include "gate/worker_access.h"

#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/uuid.h"
#include "config/config.h"
#include "gate/auth_service.h"
#include "gate/auth_worker.h"
#include "records/run_user.h"

#define TOKEN_BYTES 32
#define TOKEN_LEN ((size_t)2 * TOKEN_BYTES)
#define MAX_USER ((size_t)1 << 20)

struct hd_worker_access {
    struct hd_worker_access *next, **link;
    struct hd_identity *identity; /* NULL: no caller */
    bool is_inner;
    char token[TOKEN_LEN + 1];
};

/* ---- passes ----------------------------------------------------------- */

static size_t bucket_of(struct hd_slice token)
{
    return ((unsigned char)token.ptr[0] * 16U + (unsigned char)token.ptr[1]) % HD_APP_PASS_BUCKETS;
}

int hd_worker_access_open(struct hd_app *app, struct hd_identity *identity, bool is_inner,
                          struct hd_worker_access **out)
{
    struct hd_worker_access *pass = hd_calloc(1, sizeof(*pass));
    unsigned char bytes[TOKEN_BYTES];
    struct hd_worker_access **bucket;

    if (!pass)
        return HD_ENOMEM;
    hd_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(pass->token + 2 * i, 3, "%02x", bytes[i]);
    pass->identity = identity ? hd_identity_ref(identity) : NULL;
    pass->is_inner = is_inner;
    bucket = &app->passes[bucket_of(hd_slice(pass->token, TOKEN_LEN))];
    pass->next = *bucket;
    pass->link = bucket;
    if (pass->next)
        pass->next->link = &pass->next;
    *bucket = pass;
    *out = pass;
    return 0;
}

void hd_worker_access_close(struct hd_worker_access *pass)
{
    if (!pass)
        return;
    *pass->link = pass->next;
    if (pass->next)
        pass->next->link = pass->link;
    hd_identity_unref(pass->identity);
    memset(pass->token, 0, sizeof(pass->token));
    hd_free(pass);
}

/* Takes the same time wherever they differ. */
static bool is_same_token(const char *a, const char *b)
{
    unsigned char differs = 0;

    for (size_t i = 0; i < TOKEN_LEN; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

const struct hd_worker_access *hd_worker_access_find(const struct hd_app *app,
                                                     struct hd_slice token)
{
    if (token.len != TOKEN_LEN)
        return NULL;
    for (const struct hd_worker_access *pass = app->passes[bucket_of(token)]; pass;
         pass = pass->next) {
        if (is_same_token(pass->token, token.ptr))
            return pass;
    }
    return NULL;
}

struct hd_identity *hd_worker_access_identity(const struct hd_worker_access *pass)
{
    return pass->identity;
}

bool hd_worker_access_is_inner(const struct hd_worker_access *pass)
{
    return pass->is_inner;
}

/* ---- runs ------------------------------------------------------------- */

/* The user as custom auth returned it. */
static int copy_user(struct hd_identity *identity, const struct hd_val *user)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_USER);
    err = hd_val_render(&text, user);
    if (!err)
        err = hd_arena_copy(&identity->arena, hd_buf_slice(&text), &identity->user);
    hd_buf_fini(&text);
    return err;
}

int hd_worker_access_open_run(struct hd_app *app, struct hd_slice actor,
                              const struct hd_val *configurable, struct hd_worker_access **out)
{
    const struct hd_val *user = hd_val_get(configurable, HD_USER);
    struct hd_identity *identity;
    int err;

    *out = NULL;
    if (!app->auth_service || actor.len == 0)
        return 0;
    identity = hd_identity_new();
    if (!identity)
        return HD_ENOMEM;
    err = hd_arena_copy(&identity->arena, actor, &identity->principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, hd_val_get_string(hd_val_get(user, HD_S("identity"))),
                            &identity->subject);
    if (!err && user && hd_auth_service_worker(app->auth_service))
        err = copy_user(identity, user);
    if (!err)
        err = hd_worker_access_open(app, identity, false, out);
    hd_identity_unref(identity);
    return err;
}

/* ---- the address ------------------------------------------------------ */

/* The server's address on this machine: loopback reaches every listening address. */
static const char *reachable_host(const struct hd_config *config)
{
    if (!*config->host || strcmp(config->host, "0.0.0.0") == 0 || strcmp(config->host, "::") == 0)
        return "127.0.0.1";
    return config->host;
}

void hd_worker_access_put(struct hd_jw *jw, const struct hd_app *app,
                          const struct hd_worker_access *pass)
{
    const char *host = reachable_host(app->config);
    bool is_v6 = strchr(host, ':') && host[0] != '[';
    char url[512];

    if (app->port == 0)
        return;
    (void)snprintf(url, sizeof(url), "%s://%s%.250s%s:%d%.160s",
                   app->config->tls_certificate[0] ? "https" : "http", is_v6 ? "[" : "", host,
                   is_v6 ? "]" : "", app->port, app->config->http_mount_prefix);
    hd_jw_put_object(jw, "api");
    hd_jw_put_string(jw, "url", hd_slice_cstr(url));
    if (pass)
        hd_jw_put_string(jw, "pass", hd_slice(pass->token, TOKEN_LEN));
    hd_jw_object_end(jw);
}
