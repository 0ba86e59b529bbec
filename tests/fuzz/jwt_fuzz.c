/* libFuzzer: any text as a credential, and as the parts of a well-formed token. None is accepted,
 * since nothing was signed with the secret. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth.h"
#include "auth/base64url.h"
#include "auth/jwt.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return INT64_C(1800000000000000);
}

static int no_fetch(void *ctx, struct hd_auth *auth, const char *url, void *handle)
{
    (void)ctx;
    (void)auth;
    (void)url;
    (void)handle;
    return HD_EIO;
}

static int no_key(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle)
{
    (void)ctx;
    (void)auth;
    require(id.len == HD_API_KEY_ID_LEN, "an id of another length");
    (void)handle;
    return HD_EIO;
}

static int secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct heddle_error *fault)
{
    (void)ctx;
    (void)is_file;
    (void)name;
    (void)fault;
    return hd_buf_append(out, "0123456789abcdef0123456789abcdef", 32);
}

static void on_answer(void *ctx, const struct hd_auth_result *result)
{
    (void)ctx;
    (void)result;
    require(false, "a check waits although nothing can be fetched");
}

static struct hd_auth *make(void)
{
    static const char text[] =
        "{\"issuers\": [{\"alias\": \"a\", \"issuer\": [\"i\", \"https://{tid}/\"], "
        "\"audience\": \"u\", \"algorithms\": [\"HS256\", \"RS256\"], "
        "\"secret\": {\"env\": \"S\"}, \"jwks_url\": \"https://example.com/\"}]}";
    static const struct hd_auth_host host = {
        .now_us = now_us, .fetch = no_fetch, .find_key = no_key, .secret = secret};
    static struct hd_json config;
    struct hd_auth *auth = NULL;

    hd_log_set_level(HD_LOG_OFF);
    require(!hd_json_parse(&config, hd_slice(text, sizeof(text) - 1), NULL), "no configuration");
    require(!hd_auth_create(hd_json_root(&config), &host, &auth, NULL), "no auth");
    return auth;
}

static void check(struct hd_auth *auth, struct hd_slice authorization, struct hd_slice api_key)
{
    struct hd_auth_result result;

    require(hd_auth_check(auth, authorization, api_key, on_answer, NULL, &result) == HD_READY,
            "not one answer");
    require(result.verdict != HD_AUTH_FINE && !result.identity, "an invalid token was accepted");
    require(result.reason && *result.reason, "no reason");
}

/* Header and payload are the two halves of the input. */
static void check_parts(struct hd_auth *auth, const uint8_t *data, size_t size)
{
    static char token[3 * HD_MAX_CREDENTIAL];
    size_t half = size > 0 ? data[0] % (size + 1) : 0, len = 7;
    struct hd_jwt jwt;
    const char *reason;

    if (size > HD_MAX_CREDENTIAL)
        return;
    memcpy(token, "Bearer ", 7);
    hd_base64url_encode(data, half, token + len);
    len += HD_BASE64URL_LEN(half);
    token[len++] = '.';
    hd_base64url_encode(data + half, size - half, token + len);
    len += HD_BASE64URL_LEN(size - half);
    memcpy(token + len, ".AAAA", 5);
    check(auth, hd_slice(token, len + 5), HD_S(""));
    if (!hd_jwt_parse(&jwt, hd_slice(token + 7, len - 2), &reason)) {
        require(jwt.issuer.len > 0 && jwt.signature.len == 3, "a token without parts");
        hd_jwt_fini(&jwt);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hd_auth *auth;

    auth = auth ? auth : make();
    check(auth, hd_slice(data, size), HD_S(""));
    check(auth, HD_S(""), hd_slice(data, size));
    check_parts(auth, data, size);
    return 0;
}
