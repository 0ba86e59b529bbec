#include "gate/sign_in.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gate/auth_service.h"
#include "gate/limits.h"
#include "net/http_client.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define ASK_MS 10000
#define FRESH_US (60 * MINUTE) /* a document is renewed after this */
#define AGAIN_US (5 * SECOND)  /* pause before a failed discovery is retried */
#define MAX_DOCUMENT ((size_t)16 << 10)
#define MAX_WAITING 1000
#define MAX_EXCHANGES 64 /* at once */
#define PEER_LIMIT 60    /* exchanges of one peer in a minute */
#define MAX_FORM ((size_t)64 << 10)
#define RETRY_S 5 /* Retry-After of 503 */

/* One sign-in method and the discovered metadata of its issuer. */
struct provider {
    struct hd_signer *signer;
    const struct hd_sign_in *sign_in;
    struct hd_oidc known; /* in `arena`, or of the configuration */
    struct hd_arena arena;
    bool is_known;
    bool is_asking;
    bool has_failed;  /* the last discovery; requests no longer wait for it */
    int64_t asked_at; /* 0: never */
};

struct waiter {
    struct waiter *next;
    void (*fn)(void *ctx);
    void *ctx;
};

struct hd_signer {
    struct hd_auth_service *auth_service;
    struct hd_client *http;
    struct hd_sign_ins sign_ins;
    struct provider *providers;
    size_t asking;
    struct waiter *waiting;
    size_t waiting_count;
    size_t exchanges;
    struct hd_limits *peers; /* exchanges by address */
};

/* An exchange under way. */
struct exchange {
    struct hd_signer *signer;
    struct provider *provider;
    struct hd_oidc_grant grant;
    hd_signed_fn fn;
    void *ctx;
    struct hd_json answer;
    struct hd_oidc_tokens tokens;
    bool has_tried_access; /* the id token is looked at now */
    struct hd_signed result;
};

/* ---- discovery -------------------------------------------------------- */

/* Callbacks added during the calls wait for the next discovery. */
static void wake(struct hd_signer *signer)
{
    struct waiter *waiter = signer->waiting;

    if (signer->asking > 0)
        return;
    signer->waiting = NULL;
    signer->waiting_count = 0;
    while (waiter) {
        struct waiter *next = waiter->next;

        waiter->fn(waiter->ctx);
        hd_free(waiter);
        waiter = next;
    }
}

/* A document takes the place of the last one; one that is no good leaves it. */
static void learn(struct provider *provider, const struct hd_client_response *response)
{
    const struct hd_sign_in *sign_in = provider->sign_in;
    const char *reason =
        response->error ? response->error : "a response that is not a metadata document";
    struct hd_oidc found = {0};
    struct hd_arena arena;
    int err = HD_EINVAL;

    hd_arena_init(&arena, MAX_DOCUMENT);
    if (!response->error && response->status == 200)
        err = hd_oidc_read(&found, response->body, sign_in, &arena, &reason);
    provider->has_failed = err != 0;
    if (err) {
        hd_log(HD_LOG_WARN, "auth", "page.sign_in: metadata of issuer %.*s: %s",
               (int)sign_in->issuer->alias.len, sign_in->issuer->alias.ptr,
               err == HD_ENOMEM ? hd_error_text(err) : reason);
        hd_arena_fini(&arena);
        return;
    }
    hd_arena_fini(&provider->arena);
    provider->arena = arena;
    provider->known = found;
    provider->is_known = true;
}

static void on_document(void *ctx, const struct hd_client_response *response)
{
    struct provider *provider = ctx;

    provider->is_asking = false;
    provider->signer->asking--;
    learn(provider, response);
    wake(provider->signer);
}

static void ask_issuer(struct provider *provider, int64_t now)
{
    static const char *const headers[] = {"Accept: application/json"};
    const struct hd_client_options options = {.method = "GET",
                                              .url = provider->sign_in->discovery_url,
                                              .headers = headers,
                                              .header_count = HD_COUNT(headers),
                                              .timeout_ms = ASK_MS,
                                              .is_final = true,
                                              .is_trusted = true,
                                              .max_body = HD_MAX_OIDC_BYTES};
    struct hd_client_request *request;

    provider->asked_at = now;
    if (hd_client_send(provider->signer->http, &options, on_document, provider, &request)) {
        hd_log(HD_LOG_WARN, "auth", "page.sign_in: an issuer is unavailable");
        return;
    }
    provider->is_asking = true;
    provider->signer->asking++;
}

/* True if requests must wait for it. */
static bool refresh(struct provider *provider, int64_t now)
{
    int64_t pause = provider->is_known ? FRESH_US : AGAIN_US;

    if (!provider->sign_in->discovery_url)
        return false;
    if (!provider->is_asking &&
        (provider->asked_at == 0 || now < provider->asked_at || now - provider->asked_at >= pause))
        ask_issuer(provider, now);
    return provider->is_asking && !provider->is_known && !provider->has_failed;
}

int hd_signer_prepare(struct hd_signer *signer, void (*fn)(void *ctx), void *ctx)
{
    int64_t now = hd_clock_now_us();
    struct waiter *waiter;
    bool waits = false;

    for (size_t i = 0; i < signer->sign_ins.count; i++)
        waits |= refresh(&signer->providers[i], now);
    if (!waits || signer->waiting_count >= MAX_WAITING)
        return HD_READY;
    waiter = hd_calloc(1, sizeof(*waiter));
    if (!waiter)
        return HD_ENOMEM;
    *waiter = (struct waiter){signer->waiting, fn, ctx};
    signer->waiting = waiter;
    signer->waiting_count++;
    return 0;
}

const struct hd_sign_in *hd_signer_at(const struct hd_signer *signer, size_t index)
{
    return index < signer->sign_ins.count ? &signer->sign_ins.items[index] : NULL;
}

const char *hd_signer_address(const struct hd_signer *signer, size_t index)
{
    return signer->providers[index].known.authorization_endpoint;
}

/* ---- the end of an exchange ------------------------------------------- */

static void end_exchange(struct exchange *e)
{
    e->signer->exchanges--;
    e->fn(e->ctx, &e->result);
    hd_json_fini(&e->answer);
    hd_free(e);
}

static struct hd_signed make_refusal(int status, const char *text, int retry_s)
{
    struct hd_signed refusal = {.status = status, .retry_s = retry_s};

    (void)snprintf(refusal.text, sizeof(refusal.text), "%s", text);
    return refusal;
}

static void refuse_exchange(struct exchange *e, int status, const char *text)
{
    e->result = make_refusal(status, text, status == 503 ? RETRY_S : 0);
    end_exchange(e);
}

/* ---- the issuer's answer ---------------------------------------------- */

static void verify(struct exchange *e);

/* Refuse tokens of other issuers. */
static bool is_of_issuer(const struct exchange *e, const struct hd_identity *identity)
{
    return hd_slice_eq(identity->issuer, e->provider->sign_in->issuer->alias);
}

/* The token is invalid here: tries the other one. */
static void try_other(struct exchange *e)
{
    if (e->has_tried_access) {
        refuse_exchange(e, 403,
                        "this server does not accept the tokens of the issuer (auth.issuers)");
        return;
    }
    e->has_tried_access = true;
    verify(e);
}

static void on_token_checked(void *ctx, const struct hd_auth_result *result)
{
    const struct hd_identity *identity = result->identity;
    struct exchange *e = ctx;

    if (result->verdict == HD_AUTH_UNAVAILABLE) {
        refuse_exchange(e, 503, "the token cannot be verified at the moment");
        return;
    }
    if (result->verdict == HD_AUTH_FINE && is_of_issuer(e, identity)) {
        int64_t left = (identity->expires_at - hd_clock_now_us()) / SECOND;

        e->result = (struct hd_signed){.status = 200, .refresh_token = e->tokens.refresh_token};
        e->result.token = e->has_tried_access ? e->tokens.id_token : e->tokens.access_token;
        e->result.expires_in = identity->expires_at == 0 ? -1 : left > 0 ? left : 0;
        end_exchange(e);
        return;
    }
    try_other(e);
}

/* The access token, else the id token. */
static void verify(struct exchange *e)
{
    struct hd_auth_result result;
    struct hd_slice token;
    struct hd_buf header;
    int err;

    if (!e->has_tried_access && e->tokens.access_token.len == 0)
        e->has_tried_access = true;
    token = e->has_tried_access ? e->tokens.id_token : e->tokens.access_token;
    if (token.len == 0) {
        try_other(e);
        return;
    }
    hd_buf_init(&header, HD_MAX_CREDENTIAL + 16);
    err = hd_buf_append_slice(&header, HD_S("Bearer "));
    if (!err)
        err = hd_buf_append_slice(&header, token);
    if (!err)
        err = hd_auth_service_check(e->signer->auth_service, hd_buf_slice(&header), HD_S(""),
                                    on_token_checked, e, &result);
    hd_buf_fini_secret(&header);
    if (err == HD_READY) {
        on_token_checked(e, &result);
        hd_identity_unref(result.identity);
    } else if (err) {
        refuse_exchange(e, 503, hd_error_text(err));
    }
}

/* Only the error code is shown: the description may contain parts of the request. */
static void refuse_as_issuer(struct exchange *e)
{
    bool is_clients = strcmp(e->tokens.error, "invalid_grant") == 0;
    char text[160];

    if (!is_clients)
        hd_log(HD_LOG_WARN, "auth", "page.sign_in: issuer %.*s refused an exchange: %s",
               (int)e->provider->sign_in->issuer->alias.len,
               e->provider->sign_in->issuer->alias.ptr, e->tokens.error);
    (void)snprintf(text, sizeof(text), "the issuer refused: %s", e->tokens.error);
    refuse_exchange(e, is_clients ? 400 : 502, text);
}

static void on_token_answer(void *ctx, const struct hd_client_response *response)
{
    struct exchange *e = ctx;
    int err;

    if (response->error) {
        hd_log(HD_LOG_WARN, "auth", "page.sign_in: the token endpoint of %.*s: %s",
               (int)e->provider->sign_in->issuer->alias.len,
               e->provider->sign_in->issuer->alias.ptr, response->error);
        refuse_exchange(e, 502, "the issuer cannot be reached");
        return;
    }
    err = hd_json_parse(&e->answer, response->body, NULL);
    if (!err)
        err = hd_oidc_tokens_read(&e->tokens, hd_json_root(&e->answer));
    if (err == HD_ENOMEM)
        refuse_exchange(e, 503, hd_error_text(err));
    else if (err || (response->status != 200 && !e->tokens.error[0]))
        refuse_exchange(e, 502, "the issuer's response is invalid");
    else if (response->status != 200 || e->tokens.error[0])
        refuse_as_issuer(e);
    else
        verify(e);
}

/* ---- the request for tokens ------------------------------------------- */

static int send_form(struct exchange *e, struct hd_slice form, const char *authorization)
{
    const char *headers[] = {"Content-Type: application/x-www-form-urlencoded",
                             "Accept: application/json", authorization};
    const struct hd_client_options options = {.method = "POST",
                                              .url = e->provider->known.token_endpoint,
                                              .headers = headers,
                                              .header_count = authorization ? 3 : 2,
                                              .body = form,
                                              .timeout_ms = ASK_MS,
                                              .is_final = true,
                                              .is_trusted = true,
                                              .max_body = HD_MAX_OIDC_BYTES};
    struct hd_client_request *request;

    return hd_client_send(e->signer->http, &options, on_token_answer, e, &request);
}

static int send_token_request(struct exchange *e)
{
    const struct hd_sign_in *sign_in = e->provider->sign_in;
    bool is_in_body = e->provider->known.wants_secret_in_body;
    struct hd_buf form, authorization;
    bool is_basic = sign_in->client_secret.len > 0 && !is_in_body;
    int err;

    hd_buf_init(&form, MAX_FORM);
    hd_buf_init(&authorization, MAX_FORM);
    err = hd_oidc_form(&form, sign_in, &e->grant, is_in_body);
    if (!err && is_basic)
        err = hd_oidc_basic(&authorization, sign_in);
    if (!err && is_basic)
        err = hd_buf_append_byte(&authorization, 0);
    if (!err)
        err = send_form(e, hd_buf_slice(&form), is_basic ? authorization.ptr : NULL);
    hd_buf_fini_secret(&form);
    hd_buf_fini_secret(&authorization);
    return err;
}

/* Discovery is complete. False: the request is not sent, and the refusal is in e->result. */
static bool request_tokens(struct exchange *e)
{
    int err;

    if (!e->provider->known.token_endpoint) {
        e->result = make_refusal(503, "the issuer is unavailable", RETRY_S);
        return false;
    }
    err = send_token_request(e);
    if (err)
        e->result = make_refusal(503, hd_error_text(err), RETRY_S);
    return err == 0;
}

static void on_discovered(void *ctx)
{
    struct exchange *e = ctx;

    if (!request_tokens(e))
        end_exchange(e);
}

/* ---- rate limit by address ------------------------------------------- */

static struct provider *find_provider(struct hd_signer *signer, struct hd_slice name)
{
    for (size_t i = 0; i < signer->sign_ins.count; i++) {
        if (hd_slice_eq(signer->sign_ins.items[i].name, name))
            return &signer->providers[i];
    }
    return NULL;
}

static int begin_exchange(struct exchange *e, struct hd_signed *out)
{
    int err = hd_signer_prepare(e->signer, on_discovered, e);

    if (err == HD_READY && request_tokens(e))
        err = 0;
    if (err == 0)
        return 0;
    *out = err == HD_READY ? e->result : make_refusal(503, hd_error_text(err), RETRY_S);
    e->signer->exchanges--;
    hd_free(e);
    return HD_READY;
}

int hd_signer_exchange(struct hd_signer *signer, struct hd_slice name,
                       const struct hd_oidc_grant *grant, struct hd_slice peer, hd_signed_fn fn,
                       void *ctx, struct hd_signed *out)
{
    struct provider *provider = find_provider(signer, name);
    const char *complaint = hd_oidc_complaint(grant);
    struct exchange *e = NULL;
    int delay = 0;

    if (!provider) {
        *out = make_refusal(404, "unknown sign-in name", 0);
    } else if (complaint) {
        *out = make_refusal(422, complaint, 0);
    } else if ((delay = hd_limits_request(signer->peers, peer)) > 0) {
        *out = make_refusal(429, "too many attempts to sign in", delay);
    } else if (signer->exchanges >= MAX_EXCHANGES || !(e = hd_calloc(1, sizeof(*e)))) {
        *out = make_refusal(503, "too many sign-ins in progress", RETRY_S);
    } else {
        *e = (struct exchange){
            .signer = signer, .provider = provider, .grant = *grant, .fn = fn, .ctx = ctx};
        signer->exchanges++;
        return begin_exchange(e, out);
    }
    return HD_READY;
}

/* ---- the whole -------------------------------------------------------- */

static const struct hd_limits_config peer_limits = {.most = {[HD_LIMIT_REQUESTS] = PEER_LIMIT}};

int hd_signer_create(struct hd_auth_service *auth_service, struct hd_client *http, hd_json_val list,
                     const struct hd_auth_host *host, struct hd_signer **out,
                     struct heddle_error *fault)
{
    struct hd_signer *signer = hd_calloc(1, sizeof(*signer));
    int err;

    if (!signer)
        return HD_ENOMEM;
    signer->auth_service = auth_service;
    signer->http = http;
    err = hd_limits_create(&peer_limits, &signer->peers);
    if (!err)
        err = hd_sign_ins_read(&signer->sign_ins, list,
                               hd_auth_settings(hd_auth_service_auth(auth_service)), host, fault);
    if (!err) {
        signer->providers = hd_calloc(signer->sign_ins.count + 1, sizeof(*signer->providers));
        err = signer->providers ? 0 : HD_ENOMEM;
    }
    for (size_t i = 0; !err && i < signer->sign_ins.count; i++) {
        const struct hd_sign_in *sign_in = &signer->sign_ins.items[i];

        signer->providers[i] =
            (struct provider){.signer = signer,
                              .sign_in = sign_in,
                              .known = {.authorization_endpoint = sign_in->authorization_endpoint,
                                        .token_endpoint = sign_in->token_endpoint}};
        hd_arena_init(&signer->providers[i].arena, MAX_DOCUMENT);
    }
    if (err) {
        hd_signer_destroy(signer);
        return err;
    }
    *out = signer;
    return 0;
}

void hd_signer_destroy(struct hd_signer *signer)
{
    if (!signer)
        return;
    for (size_t i = 0; signer->providers && i < signer->sign_ins.count; i++)
        hd_arena_fini(&signer->providers[i].arena);
    hd_free(signer->providers);
    hd_limits_destroy(signer->peers);
    hd_sign_ins_fini(&signer->sign_ins);
    hd_free(signer);
}
