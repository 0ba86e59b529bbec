#include "auth/jwt.h"

#include <stdio.h>
#include <string.h>

#include "auth/auth.h"
#include "auth/base64url.h"
#include "tests/unit/auth_vectors.h"
#include "tests/unit/check.h"

#define ROOM (2 * HD_MAX_CREDENTIAL)

static const char *reason;
static struct hd_jwks *keys;

static int setup(void **state)
{
    (void)state;
    return hd_jwks_parse(hd_slice_cstr(vector_jwks), &keys, &reason);
}

static int teardown(void **state)
{
    (void)state;
    hd_jwks_destroy(keys);
    return 0;
}

static const struct hd_jwk *key_of(struct hd_slice kid)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (hd_slice_eq(keys->keys[i].kid, kid))
            return &keys->keys[i];
    }
    return NULL;
}

static bool is_good(const struct hd_jwt *jwt)
{
    if (hd_alg_info(jwt->alg)->kind == HD_KEY_SECRET)
        return hd_jwt_is_signed_with(jwt, hd_slice_cstr(vector_secret));
    return hd_jwt_is_signed_by(jwt, key_of(jwt->kid));
}

/* base64url(header) "." base64url(payload) "." signature */
static struct hd_slice make(const char *header, const char *payload, const char *signature)
{
    static char out[ROOM];
    size_t len = HD_BASE64URL_LEN(strlen(header)), more = HD_BASE64URL_LEN(strlen(payload));

    hd_base64url_encode(header, strlen(header), out);
    out[len++] = '.';
    hd_base64url_encode(payload, strlen(payload), out + len);
    len += more;
    len += (size_t)snprintf(out + len, sizeof(out) - len, ".%s", signature);
    return hd_slice(out, len);
}

/* ---- valid tokens ------------------------------------------------------ */

static void tokens_of_another_library_are_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(vector_tokens); i++) {
        struct hd_jwt jwt;

        assert_err(hd_jwt_parse(&jwt, hd_slice_cstr(vector_tokens[i].token), &reason), 0);
        assert_slice(hd_alg_info(jwt.alg)->name, hd_slice_cstr(vector_tokens[i].alg));
        assert_slice(jwt.issuer, HD_S("https://issuer.test"));
        assert_slice(jwt.type, HD_S("JWT"));
        assert_true(is_good(&jwt));
        hd_jwt_fini(&jwt);
    }
}

/* Each character of a token counts: changing one makes another token or an invalid one. */
static void a_token_that_was_touched_is_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(vector_tokens); i++) {
        size_t len = strlen(vector_tokens[i].token);

        for (size_t at = 0; at < len; at += 1 + len / 40) {
            char copy[2048];
            struct hd_jwt jwt;

            memcpy(copy, vector_tokens[i].token, len);
            copy[at] = copy[at] == 'A' ? 'B' : 'A';
            if (hd_jwt_parse(&jwt, hd_slice(copy, len), &reason))
                continue;
            if (hd_alg_info(jwt.alg)->kind == HD_KEY_SECRET || key_of(jwt.kid))
                assert_false(is_good(&jwt));
            hd_jwt_fini(&jwt);
        }
    }
}

/* A key verifies only its own algorithm; above all, a public key is never used as a secret. */
static void keys_are_for_their_algorithms(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(vector_tokens); i++) {
        struct hd_jwt jwt;

        assert_err(hd_jwt_parse(&jwt, hd_slice_cstr(vector_tokens[i].token), &reason), 0);
        for (size_t k = 0; k < keys->count; k++) {
            bool is_its = hd_slice_eq(keys->keys[k].kid, jwt.kid);

            assert_int_equal(hd_jwt_is_signed_by(&jwt, &keys->keys[k]), is_its);
        }
        for (int alg = 0; alg < HD_ALG_COUNT; alg++) {
            struct hd_jwt other = jwt;

            other.alg = (enum hd_alg)alg;
            if (other.alg != jwt.alg && hd_alg_info(other.alg)->kind != HD_KEY_SECRET &&
                jwt.has_kid)
                assert_false(hd_jwt_is_signed_by(&other, key_of(jwt.kid)));
            if (other.alg != jwt.alg)
                assert_false(hd_jwt_is_signed_with(&other, hd_slice_cstr(vector_secret)));
        }
        hd_jwt_fini(&jwt);
    }
}

/* ---- refused tokens ---------------------------------------------------- */

static void refuse(struct hd_slice token)
{
    struct hd_jwt jwt;

    reason = NULL;
    assert_err(hd_jwt_parse(&jwt, token, &reason), HD_EINVAL);
    assert_non_null(reason);
}

static void tokens_have_one_shape(void **state)
{
    static const char *const bad[] = {
        "",         ".",           "..",          "...",         "a.b",
        "a.b.c.d",  "a.b.c.d.e",   "eyJ9.eyJ9",   "e30.e30.",    ".e30.AA",
        "e30..AA",  "e30.e30.AA ", " e30.e30.AA", "e30=.e30.AA", "e30.e30.A+A/",
        "e30.e30.A"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++)
        refuse(hd_slice_cstr(bad[i]));
}

static void headers_that_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "null",
        "\"HS256\"",
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":null}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":\"hs256\"}",
        "{\"alg\":\"ES512\"}",
        "{\"alg\":\"ES256K\"}",
        "{\"alg\":\"RSA-OAEP\",\"enc\":\"A256GCM\"}",
        "{\"alg\":\"HS256\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"\\u0061lg\":\"none\"}",
        "{\"alg\":\"HS256\",\"crit\":[]}",
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}",
        "{\"alg\":\"HS256\",\"zip\":\"DEF\"}",
        "{\"alg\":\"HS256\",\"enc\":\"A128GCM\"}",
        "{\"alg\":\"HS256\",\"cty\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":7}",
        "{\"alg\":\"HS256\",\"typ\":{}}",
        "{\"alg\":\"HS256\"} x",
        "{\"alg\":\"HS256\",}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++)
        refuse(make(bad[i], "{\"iss\":\"a\"}", "AAAA"));
}

static void payloads_that_are_refused(void **state)
{
    static const char *const bad[] = {
        "[]",
        "7",
        "{}",
        "{\"iss\":7}",
        "{\"iss\":\"\"}",
        "{\"iss\":\"a\",\"iss\":\"a\"}",
        "{\"iss\":\"a\",\"sub\":\"a\",\"s\\u0075b\":\"b\"}",
        "{\"iss\":\"a\",\"app\":{\"role\":\"a\",\"role\":\"b\"}}",
        "{\"iss\":\"a\",\"app\":[{\"role\":\"a\",\"role\":\"b\"}]}",
        "{\"iss\":\"a\" /* comment */}",
        "{\"iss\":\"\xff\"}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++)
        refuse(make("{\"alg\":\"HS256\"}", bad[i], "AAAA"));
}

static void tokens_have_a_size(void **state)
{
    static char payload[HD_MAX_CREDENTIAL];
    struct hd_jwt jwt;
    int len = snprintf(payload, sizeof(payload), "{\"iss\":\"%8000d\"}", 7);

    (void)state;
    assert_err(hd_jwt_parse(&jwt, make("{\"alg\":\"HS256\"}", payload, "AAAA"), &reason), 0);
    hd_jwt_fini(&jwt);
    memset(payload + len - 2, ' ', sizeof(payload) - (size_t)len);
    payload[sizeof(payload) - 3] = '"';
    payload[sizeof(payload) - 2] = '}';
    refuse(make("{\"alg\":\"HS256\"}", payload, "AAAA"));
}

static void objects_have_a_size_and_a_depth(void **state)
{
    static char payload[HD_MAX_CREDENTIAL];
    size_t len = (size_t)snprintf(payload, sizeof(payload), "{\"iss\":\"a\"");

    (void)state;
    for (int i = 0; i < HD_MAX_JWT_MEMBERS; i++)
        len += (size_t)snprintf(payload + len, sizeof(payload) - len, ",\"%d\":0", i);
    payload[len] = '}';
    refuse(make("{\"alg\":\"HS256\"}", payload, "AAAA"));

    memset(payload, 0, sizeof(payload));
    len = (size_t)snprintf(payload, sizeof(payload), "{\"iss\":\"a\",\"deep\":");
    memset(payload + len, '[', 100);
    payload[len + 100] = '7';
    memset(payload + len + 101, ']', 100);
    payload[len + 201] = '}';
    refuse(make("{\"alg\":\"HS256\"}", payload, "AAAA"));
}

/* Keys in a token's header are ignored. */
static void keys_in_headers_are_not_looked_at(void **state)
{
    struct hd_jwt jwt;

    (void)state;
    assert_err(
        hd_jwt_parse(&jwt,
                     make("{\"alg\":\"RS256\",\"jwk\":{\"kty\":\"RSA\"},\"jku\":\"https://e\","
                          "\"x5u\":\"https://e\",\"x5c\":[],\"kid\":\"rsa\"}",
                          "{\"iss\":\"a\"}", "AAAA"),
                     &reason),
        0);
    assert_false(is_good(&jwt));
    hd_jwt_fini(&jwt);
}

static int parse_one(void *arg)
{
    struct hd_jwt jwt;
    int err = hd_jwt_parse(&jwt, hd_slice_cstr(vector_tokens[0].token), &reason);

    (void)arg;
    if (!err)
        hd_jwt_fini(&jwt);
    return err;
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    assert_true(check_every_allocation(parse_one, NULL) > 0);
}

/* ---- key sets ----------------------------------------------------------- */

static void short_keys_are_passed_over(void **state)
{
    struct hd_jwt jwt;

    (void)state;
    assert_int_equal(keys->count, 4);
    assert_null(key_of(HD_S("short")));
    assert_err(hd_jwt_parse(&jwt, hd_slice_cstr(vector_short_token), &reason), 0);
    for (size_t i = 0; i < keys->count; i++)
        assert_false(hd_jwt_is_signed_by(&jwt, &keys->keys[i]));
    hd_jwt_fini(&jwt);
}

/* The set with `more` members in each of its keys. */
static size_t count_with(const char *more)
{
    struct hd_jwks *set;
    char text[8192];
    size_t len = 0, count;

    for (const char *at = vector_jwks; *at; at++) {
        text[len++] = *at;
        if (*at == '{' && at > vector_jwks)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s, ", more);
    }
    if (hd_jwks_parse(hd_slice(text, len), &set, &reason))
        return 0;
    count = set->count;
    hd_jwks_destroy(set);
    return count;
}

static void keys_declare_their_use(void **state)
{
    (void)state;
    assert_int_equal(count_with("\"use\": \"sig\""), 4);
    assert_int_equal(count_with("\"use\": \"enc\""), 0);
    assert_int_equal(count_with("\"key_ops\": [\"verify\"]"), 4);
    assert_int_equal(count_with("\"key_ops\": [\"encrypt\"]"), 0);
    assert_int_equal(count_with("\"key_ops\": \"verify\""), 0);
    assert_int_equal(count_with("\"alg\": \"RS256\""), 1);
    assert_int_equal(count_with("\"alg\": \"ES384\""), 1);
    assert_int_equal(count_with("\"alg\": \"HS256\""), 0);
    assert_int_equal(count_with("\"alg\": \"RSA-OAEP\""), 0);
    assert_int_equal(count_with("\"d\": \"AAAA\""), 0);
    assert_int_equal(count_with("\"kid\": 7"), 0);
}

/* A point that is not on its curve, coordinates of another length, a modulus of 0. */
static void keys_that_are_none_are_passed_over(void **state)
{
    static const char *const bad[] = {
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAE\",\"y\":\"AAE\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-521\",\"x\":\"AAE\",\"y\":\"AAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"RSA\",\"n\":\"AA\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"n\":7,\"e\":\"AQAB\"}",
        "{\"kty\":\"oct\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct hd_jwks *set;
        char text[512];

        (void)snprintf(text, sizeof(text), "{\"keys\": [%s]}", bad[i]);
        assert_err(hd_jwks_parse(hd_slice_cstr(text), &set, &reason), HD_EINVAL);
    }
}

static int read_keys(void *arg)
{
    struct hd_jwks *set;
    int err = hd_jwks_parse(hd_slice_cstr(vector_jwks), &set, &reason);

    (void)arg;
    if (!err)
        hd_jwks_destroy(set);
    return err;
}

static void no_memory_for_keys_is_an_error(void **state)
{
    (void)state;
    assert_true(check_every_allocation(read_keys, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_another_library_are_good),
        cmocka_unit_test(a_token_that_was_touched_is_bad),
        cmocka_unit_test(keys_are_for_their_algorithms),
        cmocka_unit_test(tokens_have_one_shape),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(payloads_that_are_refused),
        cmocka_unit_test(tokens_have_a_size),
        cmocka_unit_test(objects_have_a_size_and_a_depth),
        cmocka_unit_test(keys_in_headers_are_not_looked_at),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(short_keys_are_passed_over),
        cmocka_unit_test(keys_declare_their_use),
        cmocka_unit_test(keys_that_are_none_are_passed_over),
        cmocka_unit_test(no_memory_for_keys_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
