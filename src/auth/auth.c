/*
 * A check is pending while it waits for its issuer's key set, for an API key, or for its principal
 * to be settled. All are in one list, so that they can be counted, and completed when this is
 * destroyed. A check that completes before hd_auth_check() returns leaves its result in `now`.
 */
#include "auth/auth.h"

#include <string.h>
#include <strings.h>

#include "auth/config.h"
#include "auth/digest.h"
#include "auth/jwt.h"
#include "auth/token_cache.h"
#include "base/alloc.h"
#include "base/log.h"

#define MAX_PENDING 4096
#define MAX_UNKNOWN 128 /* of those, with a key that is not in the set */
#define MAX_REMEMBERED 10000
#define LOG_US 1000000
#define MAX_TRIES 8 /* keys, for a token without `kid` */

/* The result of a check, if it completes before hd_auth_check() returns. */
struct immediate {
    bool is_done;
    struct hd_auth_result result;
};

struct pending {
    struct pending *prev, *next;
    struct hd_auth *auth;
    struct immediate *now; /* NULL: hd_auth_check() has returned, `fn` is called */
    hd_auth_fn fn;
    void *ctx;
    char fingerprint[HD_SHA256_LEN];
    struct hd_issuer *issuer;     /* it waits for this issuer's key set; NULL: for something else */
    bool has_retried;             /* it has waited once: waiting again would give the same set */
    bool is_unknown;              /* it waits for a set with its key */
    struct hd_identity *identity; /* being settled */
    int64_t until;                /* may be cached until then */
    char secret_hash[HD_SHA256_HEX_LEN + 1]; /* of an API key */
    size_t token_len;
    char token[]; /* overwritten when freed */
};

struct hd_auth {
    struct hd_auth_host host;
    bool is_on;
    struct hd_auth_config config;
    struct hd_token_cache cache;
    struct pending *first;
    size_t pending_count;
    size_t unknown_count;
    int64_t logged_at;
    size_t unlogged; /* refusals since */
};

/* ---- pending checks --------------------------------------------------- */

static struct pending *pending_new(struct hd_auth *auth, struct hd_slice token, hd_auth_fn fn,
                                   void *ctx)
{
    struct pending *p = hd_calloc(1, sizeof(*p) + token.len);

    if (!p)
        return NULL;
    p->auth = auth;
    p->fn = fn;
    p->ctx = ctx;
    p->token_len = token.len;
    if (token.len > 0)
        memcpy(p->token, token.ptr, token.len);
    p->next = auth->first;
    if (p->next)
        p->next->prev = p;
    auth->first = p;
    auth->pending_count++;
    return p;
}

/* Logs refusals, at a limited rate so that an attacker cannot fill the disk. */
static void log_refusal(struct hd_auth *auth, enum hd_auth_verdict verdict, const char *reason)
{
    int64_t now = auth->host.now_us(auth->host.ctx);

    auth->unlogged += verdict != HD_AUTH_FINE;
    if (verdict == HD_AUTH_FINE || (now >= auth->logged_at && now - auth->logged_at < LOG_US))
        return;
    hd_log(HD_LOG_INFO, "auth", "a credential was %s: %s (%zu since the last message)",
           verdict == HD_AUTH_REFUSED ? "refused" : "not checked", reason ? reason : "",
           auth->unlogged);
    auth->logged_at = now;
    auth->unlogged = 0;
}

static void set_unknown(struct pending *p, bool is_unknown)
{
    p->auth->unknown_count -= p->is_unknown;
    p->auth->unknown_count += is_unknown;
    p->is_unknown = is_unknown;
}

static void complete_check(struct pending *p, enum hd_auth_verdict verdict, const char *reason)
{
    struct hd_identity *identity = p->identity;
    const struct hd_auth_result result = {
        .verdict = verdict,
        .identity = verdict == HD_AUTH_FINE ? identity : NULL,
        .reason = reason,
    };
    struct immediate *now = p->now;
    struct hd_auth *auth = p->auth;
    hd_auth_fn fn = p->fn;
    void *ctx = p->ctx;

    if (p->prev)
        p->prev->next = p->next;
    else
        auth->first = p->next;
    if (p->next)
        p->next->prev = p->prev;
    auth->pending_count--;
    set_unknown(p, false);
    log_refusal(auth, verdict, reason);
    explicit_bzero(p->token, p->token_len);
    hd_free(p);
    if (now)
        *now = (struct immediate){.is_done = true, .result = result};
    else
        fn(ctx, &result);
    if (!now || !result.identity) /* otherwise the caller of hd_auth_check() owns it */
        hd_identity_unref(identity);
}

static void complete_error(struct pending *p, int err, const char *reason)
{
    if (err == HD_EINVAL || err == HD_EACCESS)
        complete_check(p, HD_AUTH_REFUSED, reason);
    else
        complete_check(p, HD_AUTH_UNAVAILABLE, hd_error_text(err));
}

/* ---- the last step ---------------------------------------------------- */

static int64_t earlier_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t remembered_until(const struct hd_auth *auth, const struct hd_identity *identity,
                                int64_t now)
{
    int64_t until = now + auth->config.cache_us;

    if (identity->key_id.len > 0 || auth->config.key_count > 1)
        until = earlier_time(until, now + HD_AUTH_RECHECK_US);
    return identity->expires_at ? earlier_time(until, identity->expires_at) : until;
}

void hd_auth_settled(struct hd_auth *auth, void *handle, int err)
{
    struct pending *p = handle;

    if (err == HD_EBUSY) {
        complete_check(p, HD_AUTH_UNAVAILABLE, "its principal is being moved");
        return;
    }
    if (err) {
        complete_check(p, HD_AUTH_UNAVAILABLE, hd_error_text(err));
        return;
    }
    hd_token_cache_put(&auth->cache, p->identity, p->until);
    complete_check(p, HD_AUTH_FINE, NULL);
}

/* The credential is verified; settles the principal. */
static void settle_principal(struct pending *p)
{
    struct hd_auth *auth = p->auth;
    struct hd_identity *identity = p->identity;
    int err = hd_arena_copy(&identity->arena, hd_slice(p->fingerprint, sizeof(p->fingerprint)),
                            &identity->fingerprint);

    p->issuer = NULL;
    p->until = remembered_until(auth, identity, auth->host.now_us(auth->host.ctx));
    if (!err && auth->host.settle) {
        err = auth->host.settle(auth->host.ctx, auth, identity, p);
        if (!err)
            return;
    }
    hd_auth_settled(auth, p, err == HD_READY ? 0 : err);
}

/* ---- tokens ----------------------------------------------------------- */

/* Whether one of the candidate keys has signed it. */
static bool is_signed(const struct hd_jwt *jwt, const struct hd_jwks *set)
{
    size_t tries = 0;

    for (size_t i = 0; i < set->count && tries < MAX_TRIES; i++) {
        const struct hd_jwk *key = &set->keys[i];

        /* Either may lack a key id. */
        if (!hd_jwk_fits(key, jwt->alg) ||
            (jwt->has_kid && key->kid.len > 0 && !hd_slice_eq(key->kid, jwt->kid)))
            continue;
        if (hd_jwt_is_signed_by(jwt, key))
            return true;
        tries++;
    }
    return false;
}

static bool has_key(const struct hd_jwt *jwt, const struct hd_jwks *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (jwt->has_kid && hd_slice_eq(set->keys[i].kid, jwt->kid))
            return true;
    }
    return false;
}

static void admit(struct pending *p, const struct hd_issuer *issuer, const struct hd_jwt *jwt)
{
    struct hd_auth *auth = p->auth;
    const char *reason = NULL;
    int err = HD_ENOMEM;

    p->identity = hd_identity_new();
    if (p->identity)
        err = hd_issuer_admit(issuer, jwt, &auth->config.keys[0], auth->host.now_us(auth->host.ctx),
                              p->identity, &reason);
    if (err)
        complete_error(p, err, reason);
    else
        settle_principal(p);
}

static void start_fetch(struct hd_auth *auth, struct hd_issuer *issuer)
{
    int err = auth->host.fetch(auth->host.ctx, auth, issuer->keys_url, issuer);

    if (err)
        hd_auth_fetched(auth, issuer, HD_S(""), -1);
}

/*
 * Waits for the set, or completes. If fetching cannot start, hd_auth_fetched() completes and frees
 * `p`: do not use it after this.
 */
static void wait_for_keys(struct pending *p, struct hd_issuer *issuer, bool fetch)
{
    p->issuer = issuer;
    p->has_retried = true;
    if (fetch)
        start_fetch(p->auth, issuer);
}

static void check_with_set(struct pending *p, struct hd_issuer *issuer, const struct hd_jwt *jwt)
{
    struct hd_auth *auth = p->auth;
    int64_t now = auth->host.now_us(auth->host.ctx);
    enum hd_keys_answer state;
    bool fetch = false;

    if (is_signed(jwt, issuer->keyset.set)) {
        admit(p, issuer, jwt);
        return;
    }
    if (has_key(jwt, issuer->keyset.set)) {
        complete_check(p, HD_AUTH_REFUSED, "its signature is invalid");
        return;
    }
    /* A client that sends many unknown keys must not block others. */
    if (auth->unknown_count >= MAX_UNKNOWN) {
        complete_check(p, HD_AUTH_UNAVAILABLE, "too many requests wait for unknown keys");
        return;
    }
    state = p->has_retried && !issuer->keyset.has_failed
                ? HD_KEYS_READY
                : hd_keyset_ask_again(&issuer->keyset, now, &fetch);
    set_unknown(p, state == HD_KEYS_WAIT);
    if (state == HD_KEYS_WAIT)
        wait_for_keys(p, issuer, fetch);
    else if (state == HD_KEYS_MISSING)
        complete_check(p, HD_AUTH_UNAVAILABLE,
                       "its key is unknown, and its issuer's keys cannot be fetched");
    else
        complete_check(p, HD_AUTH_REFUSED, "its key is unknown");
}

static void check_public(struct pending *p, struct hd_issuer *issuer, const struct hd_jwt *jwt)
{
    int64_t now = p->auth->host.now_us(p->auth->host.ctx);
    bool fetch = false;
    enum hd_keys_answer state = hd_keyset_ask(&issuer->keyset, now, &fetch);

    if (state == HD_KEYS_MISSING) {
        complete_check(p, HD_AUTH_UNAVAILABLE, "the keys of its issuer cannot be fetched");
        return;
    }
    if (state == HD_KEYS_WAIT) {
        wait_for_keys(p, issuer, fetch);
        return;
    }
    /* In the background: `p` does not wait for it. */
    if (fetch)
        start_fetch(p->auth, issuer);
    check_with_set(p, issuer, jwt);
}

/* Parses the token, again after a wait: pointers into it are no longer valid. */
static void check_token(struct pending *p)
{
    struct hd_auth_config *config = &p->auth->config;
    struct hd_issuer *issuer;
    const char *reason = NULL;
    struct hd_jwt jwt;
    int err = hd_jwt_parse(&jwt, hd_slice(p->token, p->token_len), &reason);

    if (err) {
        complete_error(p, err, reason);
        return;
    }
    issuer = hd_issuer_find(config->issuers, config->issuer_count, &jwt);
    if (!issuer)
        complete_check(p, HD_AUTH_REFUSED, "its issuer is unknown");
    else if (!hd_issuer_allows(issuer, jwt.alg))
        complete_check(p, HD_AUTH_REFUSED, "its algorithm is not allowed for its issuer");
    else if (hd_alg_info(jwt.alg)->kind != HD_KEY_SECRET)
        check_public(p, issuer, &jwt);
    else if (hd_jwt_is_signed_with(&jwt, issuer->secret))
        admit(p, issuer, &jwt);
    else
        complete_check(p, HD_AUTH_REFUSED, "its signature is invalid");
    hd_jwt_fini(&jwt);
}

/* Removes one that waits for this issuer; checks that begin to wait meanwhile come before it. */
static struct pending *take_waiting(struct hd_auth *auth, const struct hd_issuer *issuer)
{
    struct pending *found = NULL;

    for (struct pending *p = auth->first; p; p = p->next) {
        if (p->issuer == issuer)
            found = p;
    }
    return found;
}

void hd_auth_fetched(struct hd_auth *auth, void *handle, struct hd_slice body, int64_t max_age_s)
{
    struct hd_issuer *issuer = handle;
    const char *reason = "";
    struct pending *p;
    int err = hd_keyset_fetched(&issuer->keyset, body, max_age_s, auth->host.now_us(auth->host.ctx),
                                &reason);

    if (err)
        hd_log(HD_LOG_WARN, "auth", "no keys of issuer %.*s: %s", (int)issuer->alias.len,
               issuer->alias.ptr, reason);
    /* A check waits for a set only once, so this ends. */
    while (!issuer->keyset.is_fetching && (p = take_waiting(auth, issuer))) {
        p->issuer = NULL;
        set_unknown(p, false);
        if (issuer->keyset.set)
            check_token(p);
        else
            complete_check(p, HD_AUTH_UNAVAILABLE, "the keys of its issuer cannot be fetched");
    }
}

/* ---- API keys --------------------------------------------------------- */

static bool is_key_text(struct hd_slice text)
{
    return hd_slice_starts(text, HD_S(HD_API_KEY_PREFIX));
}

/* hdk_<id>_<secret>, both of fixed length, since either may contain "_". */
static bool split_key(struct hd_slice text, struct hd_slice *id, struct hd_slice *secret)
{
    size_t at = sizeof(HD_API_KEY_PREFIX) - 1;

    if (text.len != at + HD_API_KEY_ID_LEN + 1 + HD_API_KEY_SECRET_LEN ||
        text.ptr[at + HD_API_KEY_ID_LEN] != '_')
        return false;
    *id = hd_slice(text.ptr + at, HD_API_KEY_ID_LEN);
    *secret = hd_slice(text.ptr + at + HD_API_KEY_ID_LEN + 1, HD_API_KEY_SECRET_LEN);
    for (size_t i = at; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_'))
            return false;
    }
    return true;
}

static void check_key(struct pending *p)
{
    struct hd_auth *auth = p->auth;
    struct hd_slice id, secret;
    int err;

    if (!auth->config.has_api_keys) {
        complete_check(p, HD_AUTH_REFUSED, "API keys are not allowed");
        return;
    }
    if (!split_key(hd_slice(p->token, p->token_len), &id, &secret)) {
        complete_check(p, HD_AUTH_REFUSED, "it is not an API key");
        return;
    }
    err = hd_sha256_hex(secret, p->secret_hash);
    if (!err)
        err = auth->host.find_key(auth->host.ctx, auth, id, p);
    if (err)
        complete_check(p, HD_AUTH_UNAVAILABLE, hd_error_text(err));
}

static int fill_from_key(struct hd_identity *identity, const struct hd_api_key *key,
                         const struct hd_principal_key *principal_key)
{
    char principal[HD_PRINCIPAL_SIZE];
    int err = hd_auth_principal_derive(principal_key, HD_PRINCIPAL_PERSON, HD_S(HD_API_KEY_ALIAS),
                                       key->subject, principal);

    if (!err)
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(principal), &identity->principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, key->subject, &identity->subject);
    if (!err)
        err = hd_arena_copy(&identity->arena, key->id, &identity->key_id);
    identity->issuer = HD_S(HD_API_KEY_ALIAS);
    identity->is_admin = key->is_admin;
    identity->expires_at = key->expires_at;
    return err;
}

void hd_auth_found(struct hd_auth *auth, void *handle, const struct hd_api_key *key, int err)
{
    struct pending *p = handle;
    int64_t now = auth->host.now_us(auth->host.ctx);
    const char *reason = NULL;

    if (err) {
        complete_check(p, HD_AUTH_UNAVAILABLE, hd_error_text(err));
        return;
    }
    /* Check the secret first: without it, nothing about the key is revealed. */
    if (!key || !hd_auth_secret_eq(hd_slice_cstr(p->secret_hash), key->hash))
        reason = "the API key is unknown";
    else if (key->revoked_at)
        reason = "the API key was revoked";
    else if (key->expires_at && key->expires_at <= now)
        reason = "the API key has expired";
    if (reason) {
        complete_check(p, HD_AUTH_REFUSED, reason);
        return;
    }
    p->identity = hd_identity_new();
    err = p->identity ? fill_from_key(p->identity, key, &auth->config.keys[0]) : HD_ENOMEM;
    if (err)
        complete_check(p, HD_AUTH_UNAVAILABLE, hd_error_text(err));
    else
        settle_principal(p);
}

void hd_auth_forget_key(struct hd_auth *auth, struct hd_slice key_id)
{
    hd_token_cache_forget_key(&auth->cache, key_id);
}

/* ---- credentials ------------------------------------------------------ */

/* The text after "Bearer "; false for another scheme. */
static bool read_bearer(struct hd_slice header, struct hd_slice *out)
{
    static const struct hd_slice scheme = HD_S_INIT("bearer ");

    if (header.len <= scheme.len || strncasecmp(header.ptr, scheme.ptr, scheme.len) != 0)
        return false;
    *out = hd_slice(header.ptr + scheme.len, header.len - scheme.len);
    while (out->len > 0 && out->ptr[0] == ' ')
        *out = hd_slice(out->ptr + 1, out->len - 1);
    return out->len > 0;
}

/*
 * Authorization takes precedence: clients send x-api-key unasked when they find another service's
 * key in their environment. Returns NULL, or the reason why there is nothing to check.
 */
static const char *choose_credential(struct hd_slice authorization, struct hd_slice api_key,
                                     struct hd_slice *out)
{
    *out = api_key;
    if (authorization.len > 0 && !read_bearer(authorization, out))
        return "it is not a bearer token";
    if (authorization.len == 0 && !is_key_text(api_key))
        return "it is not an API key";
    if (out->len > HD_MAX_CREDENTIAL)
        return "it is too long";
    return NULL;
}

static int refuse_at_once(struct hd_auth *auth, enum hd_auth_verdict verdict, const char *reason,
                          struct hd_auth_result *out)
{
    log_refusal(auth, verdict, reason);
    *out = (struct hd_auth_result){.verdict = verdict, .reason = reason};
    return HD_READY;
}

/* Verifies a credential that is not in the cache. */
static int verify_credential(struct hd_auth *auth, struct hd_slice credential,
                             const unsigned char fingerprint[HD_SHA256_LEN], hd_auth_fn fn,
                             void *ctx, struct hd_auth_result *out)
{
    struct immediate now = {.is_done = false};
    struct pending *p;

    if (auth->pending_count >= MAX_PENDING)
        return refuse_at_once(auth, HD_AUTH_UNAVAILABLE, "too many requests wait", out);
    p = pending_new(auth, credential, fn, ctx);
    if (!p)
        return HD_ENOMEM;
    memcpy(p->fingerprint, fingerprint, sizeof(p->fingerprint));
    p->now = &now;
    if (is_key_text(credential))
        check_key(p);
    else
        check_token(p);
    if (now.is_done) {
        *out = now.result;
        return HD_READY;
    }
    p->now = NULL;
    return 0;
}

int hd_auth_check(struct hd_auth *auth, struct hd_slice authorization, struct hd_slice api_key,
                  hd_auth_fn fn, void *ctx, struct hd_auth_result *out)
{
    unsigned char fingerprint[HD_SHA256_LEN];
    struct hd_identity *known;
    struct hd_slice credential;
    const char *reason;
    int err;

    if (authorization.len == 0 && api_key.len == 0) {
        *out = (struct hd_auth_result){HD_AUTH_MISSING, NULL, "no credentials"};
        return HD_READY;
    }
    reason = choose_credential(authorization, api_key, &credential);
    if (reason)
        return refuse_at_once(auth, HD_AUTH_REFUSED, reason, out);
    err = hd_sha256(credential, fingerprint);
    if (err)
        return err;
    known = hd_token_cache_get(&auth->cache, hd_slice(fingerprint, sizeof(fingerprint)),
                               auth->host.now_us(auth->host.ctx));
    if (!known)
        return verify_credential(auth, credential, fingerprint, fn, ctx, out);
    *out = (struct hd_auth_result){HD_AUTH_FINE, hd_identity_ref(known), NULL};
    return HD_READY;
}

static bool names_issuer(const struct hd_auth *auth, struct hd_slice token)
{
    const struct hd_auth_config *config = &auth->config;
    const char *reason;
    struct hd_jwt jwt;
    bool is_known;

    if (config->issuer_count == 0 || hd_jwt_parse(&jwt, token, &reason))
        return false;
    is_known = hd_issuer_find(config->issuers, config->issuer_count, &jwt) != NULL;
    hd_jwt_fini(&jwt);
    return is_known;
}

bool hd_auth_is_native(const struct hd_auth *auth, struct hd_slice authorization,
                       struct hd_slice api_key)
{
    struct hd_slice credential;

    if (!auth->config.has_code)
        return true;
    if (choose_credential(authorization, api_key, &credential))
        return false;
    if (is_key_text(credential))
        return auth->config.has_api_keys;
    return names_issuer(auth, credential);
}

/* ---- create and destroy ----------------------------------------------- */

int hd_auth_create(hd_json_val config, const struct hd_auth_host *host, struct hd_auth **out,
                   struct heddle_error *fault)
{
    struct hd_auth *auth = hd_calloc(1, sizeof(*auth));
    int err;

    if (!auth)
        return HD_ENOMEM;
    auth->host = *host;
    auth->is_on = config != NULL;
    hd_token_cache_init(&auth->cache, MAX_REMEMBERED);
    if (config) {
        err = hd_auth_config_read(&auth->config, config, host, fault);
        if (err) {
            hd_auth_destroy(auth);
            return err;
        }
    }
    *out = auth;
    return 0;
}

void hd_auth_destroy(struct hd_auth *auth)
{
    if (!auth)
        return;
    while (auth->first)
        complete_check(auth->first, HD_AUTH_UNAVAILABLE, hd_error_text(HD_ECLOSED));
    hd_token_cache_fini(&auth->cache);
    hd_auth_config_fini(&auth->config);
    hd_free(auth);
}

bool hd_auth_is_on(const struct hd_auth *auth)
{
    return auth->is_on;
}

bool hd_auth_has_alias(const struct hd_auth *auth, struct hd_slice alias)
{
    for (size_t i = 0; i < auth->config.issuer_count; i++) {
        if (hd_slice_eq(auth->config.issuers[i].alias, alias))
            return true;
    }
    if (auth->config.has_code && hd_slice_eq(alias, HD_S(HD_CODE_ALIAS)))
        return true;
    return auth->config.has_api_keys && hd_slice_eq(alias, HD_S(HD_API_KEY_ALIAS));
}

const struct hd_auth_config *hd_auth_settings(const struct hd_auth *auth)
{
    return &auth->config;
}

const struct hd_principal_key *hd_auth_key(const struct hd_auth *auth, size_t index)
{
    return index < hd_auth_key_count(auth) ? &auth->config.keys[index] : NULL;
}

size_t hd_auth_key_count(const struct hd_auth *auth)
{
    return auth->is_on ? auth->config.key_count : 1;
}
