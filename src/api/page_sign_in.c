/*
 * Sign-in from the chat page: GET /page/settings lists the issuers, and POST /page/token exchanges
 * an authorization code for a token that this server accepts.
 *
 * Both require no credentials. The second is limited to the server's own page and to small bodies,
 * since each request makes this server send one to the issuer.
 */
#include <heddle.h>

#include "api/api.h"
#include "gate/auth_service.h"
#include "gate/sign_in.h"

#define MAX_BODY ((size_t)32 << 10)

static struct hd_signer *signer_of(const struct hd_call *call)
{
    return call->app->auth_service ? hd_auth_service_signer(call->app->auth_service) : NULL;
}

/* ---- settings --------------------------------------------------------- */

/*
 * An unreachable issuer has null for its address. Its name is the issuer identifier of its
 * redirects (RFC 9207).
 */
static void put_way(struct hd_jw *jw, const struct hd_signer *signer, size_t index)
{
    const struct hd_sign_in *way = hd_signer_at(signer, index);
    const char *address = hd_signer_address(signer, index);

    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "name", way->name);
    hd_jw_put_string_or_null(jw, "issuer", way->issuer->names[0]);
    hd_jw_put_string_or_null(jw, "client_id", way->client_id);
    hd_jw_put_string_or_null(jw, "authorization_endpoint",
                             address ? hd_slice_cstr(address) : HD_S(""));
    hd_jw_put_string_or_null(jw, "scope", way->scope);
    hd_jw_object_end(jw);
}

static struct hd_step put_settings(struct hd_call *call)
{
    const struct hd_signer *signer = signer_of(call);
    struct hd_jw *jw = &call->jw;

    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "version", HD_S(HEDDLE_VERSION));
    hd_jw_put_bool(jw, "needs_sign_in", call->app->auth_service != NULL);
    hd_jw_put_array(jw, "sign_in");
    for (size_t i = 0; signer && hd_signer_at(signer, i); i++)
        put_way(jw, signer, i);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    hd_call_header(call, HD_S("Cache-Control"), HD_S("no-cache"));
    return HD_DONE;
}

static void on_signer_prepared(void *ctx)
{
    struct hd_call *call = ctx;

    hd_call_resume(call, put_settings(call));
}

static struct hd_step get_settings(struct hd_call *call)
{
    struct hd_signer *signer = signer_of(call);
    int err;

    if (!signer)
        return put_settings(call);
    err = hd_signer_prepare(signer, on_signer_prepared, call);
    if (err == HD_READY)
        return put_settings(call);
    return err ? hd_step_fail(err) : HD_WAIT;
}

/* ---- tokens ----------------------------------------------------------- */

static struct hd_step put_token(struct hd_call *call, const struct hd_signed *result)
{
    struct hd_jw *jw = &call->jw;

    hd_call_header(call, HD_S("Cache-Control"), HD_S("no-store"));
    if (result->retry_s > 0)
        hd_call_header_int(call, HD_S("Retry-After"), result->retry_s);
    if (result->status != 200)
        return hd_call_refuse(call, result->status, "%s", result->text);
    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "token", result->token);
    hd_jw_key(jw, HD_S("expires_in"));
    if (result->expires_in < 0)
        hd_jw_null(jw);
    else
        hd_jw_int(jw, result->expires_in);
    hd_jw_put_string_or_null(jw, "refresh_token", result->refresh_token);
    hd_jw_object_end(jw);
    return HD_DONE;
}

static void on_signed(void *ctx, const struct hd_signed *result)
{
    struct hd_call *call = ctx;

    hd_call_resume(call, put_token(call, result));
}

static int read_body(struct hd_call *call, struct hd_slice *name, struct hd_oidc_grant *grant)
{
    struct hd_slice body = hd_exchange_request(call->exchange)->body;
    int err;

    if (body.len == 0)
        return hd_error_set(&call->fault, HD_EINVAL, "a JSON body is required");
    err = hd_json_parse(&call->json, body, &call->fault);
    if (err)
        return err;
    call->body = hd_json_root(&call->json);
    if (!hd_json_is_object(call->body))
        return hd_error_set(&call->fault, HD_EINVAL, "the body must be an object");
    err = hd_json_check_names(call->body, &call->fault);
    if (!err)
        err = hd_body_string(call, "name", name);
    if (!err)
        err = hd_body_string(call, "code", &grant->code);
    if (!err)
        err = hd_body_string(call, "code_verifier", &grant->verifier);
    if (!err)
        err = hd_body_string(call, "redirect_uri", &grant->redirect_uri);
    return err ? err : hd_body_string(call, "refresh_token", &grant->refresh_token);
}

/* The redirect address of a code is that of the requesting page. */
static bool is_own_address(const struct hd_call *call, struct hd_slice uri)
{
    struct hd_slice origin = hd_request_value(hd_exchange_request(call->exchange), HD_S("origin"));

    return origin.len == 0 || uri.len == 0 ||
           (hd_slice_starts(uri, origin) && uri.len > origin.len && uri.ptr[origin.len] == '/');
}

static struct hd_step get_token(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_signer *signer = signer_of(call);
    struct hd_oidc_grant grant = {0};
    struct hd_slice name = HD_S("");
    struct hd_signed result;
    int err;

    if (!hd_request_is_same_origin(request))
        return hd_call_refuse(call, 403, "only the server's own page may sign users in");
    if (!signer)
        return hd_call_refuse(call, 404, "unknown sign-in name");
    if (request->body.len > MAX_BODY)
        return hd_call_refuse(call, 413, "the body is too large");
    err = read_body(call, &name, &grant);
    if (!err && !is_own_address(call, grant.redirect_uri))
        err =
            hd_error_set(&call->fault, HD_EINVAL, "redirect_uri: must be the address of the page");
    if (err)
        return hd_step_fail(err);
    err = hd_signer_exchange(signer, name, &grant, hd_exchange_peer(call->exchange), on_signed,
                             call, &result);
    return err == HD_READY ? put_token(call, &result) : HD_WAIT;
}

/* Without tags: these routes are for the page, not part of the API. */
static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/page/settings",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_settings},
    {.method = HD_METHOD_POST,
     .pattern = "/page/token",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_token},
};

const struct hd_routes hd_routes_page_sign_in = {routes, HD_COUNT(routes)};
