/* From credentials to an identity, with a fake host that the tests control. */
#include "auth/auth.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "auth/base64url.h"
#include "auth/config.h"
#include "auth/digest.h"
#include "base/log.h"
#include "tests/unit/auth_vectors.h"
#include "tests/unit/check.h"

#define SECOND INT64_C(1000000)
#define NOW_S INT64_C(1800000000)
#define SECRET "0123456789abcdef0123456789abcdef-a shared secret"
#define API_SECRET "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
#define API_ID "0123456789abcdef"

struct world {
    struct hd_auth *auth;
    struct hd_json config;
    int64_t now;
    unsigned fetches, lookups, settles;
    void *fetching; /* the handle of the pending fetch */
    void *looking;
    void *settling;
    bool settles_later;
    bool is_checking; /* hd_auth_check() has not returned */
    /* The last result. */
    unsigned answers;
    enum hd_auth_verdict verdict;
    struct hd_identity *identity;
    char reason[128];
};

/* ---- the host ---------------------------------------------------------- */

static int64_t now_us(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static int fetch(void *ctx, struct hd_auth *auth, const char *url, void *handle)
{
    struct world *w = ctx;

    (void)auth;
    assert_string_equal(url, "https://issuer.test/keys");
    assert_null(w->fetching);
    w->fetches++;
    w->fetching = handle;
    return 0;
}

static int find_key(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle)
{
    struct world *w = ctx;

    (void)auth;
    assert_slice(id, HD_S(API_ID));
    w->lookups++;
    w->looking = handle;
    return 0;
}

static int settle(void *ctx, struct hd_auth *auth, struct hd_identity *identity, void *handle)
{
    struct world *w = ctx;

    assert_int_equal(identity->principal.len, HD_PRINCIPAL_LEN);
    (void)auth;
    w->settles++;
    if (!w->settles_later)
        return HD_READY;
    w->settling = handle;
    return 0;
}

static int secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct heddle_error *fault)
{
    (void)ctx;
    (void)is_file;
    (void)fault;
    if (strcmp(name, "KEY") == 0)
        return hd_buf_append(
            out, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF\n", 65);
    if (strcmp(name, "OLD") == 0)
        return hd_buf_append(out, "AB+/ghijklmnopqrstuvwxyz0123456789ABCDEFGHA=\n", 45);
    return hd_buf_append(out, SECRET "\n", sizeof(SECRET));
}

static void fetched(struct world *w, const char *body)
{
    void *handle = w->fetching;

    assert_non_null(handle);
    w->fetching = NULL;
    hd_auth_fetched(w->auth, handle, hd_slice_cstr(body), -1);
}

static void found(struct world *w, const struct hd_api_key *key, int err)
{
    void *handle = w->looking;

    assert_non_null(handle);
    w->looking = NULL;
    hd_auth_found(w->auth, handle, key, err);
}

static int create(struct world *w, const char *config, struct heddle_error *fault)
{
    const struct hd_auth_host host = {w, now_us, fetch, find_key, settle, secret};

    assert_err(hd_json_parse(&w->config, hd_slice_cstr(config), NULL), 0);
    return hd_auth_create(hd_json_root(&w->config), &host, &w->auth, fault);
}

#define RULES                                                                                \
    "\"alias\": \"main\", \"issuer\": \"https://issuer.test\", \"audience\": \"heddle\", "   \
    "\"algorithms\": [\"HS256\", \"RS256\", \"ES256\"], \"secret\": {\"env\": \"SECRET\"}, " \
    "\"jwks_url\": \"https://issuer.test/keys\", \"leeway\": 30"
#define HEAD "{\"key\": {\"id\": \"2026\", \"env\": \"KEY\"}, \"issuers\": [{" RULES
#define CONFIG HEAD "}]}"

static void open_world(struct world *w, const char *config)
{
    struct heddle_error fault = {0};

    *w = (struct world){.now = NOW_S * SECOND};
    assert_err(create(w, config, &fault), 0);
}

static void close_world(struct world *w)
{
    hd_identity_unref(w->identity);
    hd_auth_destroy(w->auth);
    hd_json_fini(&w->config);
}

/* ---- requests ---------------------------------------------------------- */

static void take_result(struct world *w, const struct hd_auth_result *result)
{
    hd_identity_unref(w->identity);
    w->identity = hd_identity_ref(result->identity);
    w->verdict = result->verdict;
    w->answers++;
    (void)snprintf(w->reason, sizeof(w->reason), "%s", result->reason ? result->reason : "");
    assert_int_equal(result->verdict == HD_AUTH_FINE, result->identity != NULL);
}

static void on_answer(void *ctx, const struct hd_auth_result *result)
{
    struct world *w = ctx;

    assert_false(w->is_checking);
    take_result(w, result);
}

/* 0: the result is in the world, or on_answer() is called later. */
static int check(struct world *w, struct hd_slice authorization, struct hd_slice api_key)
{
    struct hd_auth_result result;
    int err;

    w->is_checking = true;
    err = hd_auth_check(w->auth, authorization, api_key, on_answer, w, &result);
    w->is_checking = false;
    if (err != HD_READY)
        return err;
    take_result(w, &result);
    hd_identity_unref(result.identity);
    return 0;
}

static void ask(struct world *w, const char *authorization, const char *api_key)
{
    assert_err(check(w, hd_slice_cstr(authorization), hd_slice_cstr(api_key)), 0);
}

static void ask_token(struct world *w, const char *token)
{
    char header[HD_MAX_CREDENTIAL + 64];

    (void)snprintf(header, sizeof(header), "Bearer %s", token);
    ask(w, header, "");
}

/* A token with these parts, signed with the secret. */
static const char *sign(const char *header, const char *payload)
{
    static char out[HD_MAX_CREDENTIAL];
    unsigned char digest[EVP_MAX_MD_SIZE];
    size_t len = HD_BASE64URL_LEN(strlen(header));
    unsigned digest_len = 0;

    hd_base64url_encode(header, strlen(header), out);
    out[len++] = '.';
    hd_base64url_encode(payload, strlen(payload), out + len);
    len += HD_BASE64URL_LEN(strlen(payload));
    assert_non_null(HMAC(EVP_sha256(), SECRET, sizeof(SECRET) - 1, (unsigned char *)out, len,
                         digest, &digest_len));
    out[len++] = '.';
    hd_base64url_encode(digest, digest_len, out + len);
    out[len + HD_BASE64URL_LEN(digest_len)] = '\0';
    return out;
}

#define HS256 "{\"alg\":\"HS256\"}"
#define GOOD \
    "\"iss\":\"https://issuer.test\",\"sub\":\"alice\",\"aud\":\"heddle\",\"exp\":1800000100"

static void expect(struct world *w, const char *payload, enum hd_auth_verdict verdict)
{
    unsigned before = w->answers;

    ask_token(w, sign(HS256, payload));
    assert_int_equal(w->answers, before + 1);
    if (w->verdict != verdict)
        print_error("%s: %s\n", payload, w->reason);
    assert_int_equal(w->verdict, verdict);
}

/* ---- headers ----------------------------------------------------------- */

static void credentials_come_in_two_headers(void **state)
{
    char header[1024];
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask(&w, "", "");
    assert_int_equal(w.verdict, HD_AUTH_MISSING);
    ask(&w, "Basic abcd", "");
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask(&w, "Bearer", "");
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask(&w, "Bearer   ", "");
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask(&w, "", "lsv2_pt_0123456789abcdef");
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    (void)snprintf(header, sizeof(header), "bEARER  %s", sign(HS256, "{" GOOD "}"));
    /* A key of another service, which clients send by default, is ignored. */
    ask(&w, header, "lsv2_pt_0123456789abcdef");
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    assert_slice(w.identity->subject, HD_S("alice"));
    close_world(&w);
}

static void an_oversized_credential_is_refused(void **state)
{
    static char token[HD_MAX_CREDENTIAL + 2];
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    memset(token, 'a', sizeof(token) - 1);
    ask_token(&w, token);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask(&w, "", token);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    close_world(&w);
}

/* ---- claims ------------------------------------------------------------ */

static void times_are_checked_with_a_leeway(void **state)
{
    static const struct {
        const char *claims;
        enum hd_auth_verdict verdict;
    } cases[] = {
        {"\"exp\":1800000001", HD_AUTH_FINE},
        {"\"exp\":1799999971", HD_AUTH_FINE},
        {"\"exp\":1799999970", HD_AUTH_REFUSED},
        {"\"exp\":1800000001.5", HD_AUTH_FINE},
        {"\"exp\":1.8000001e9", HD_AUTH_FINE},
        {"\"exp\":\"1800000100\"", HD_AUTH_REFUSED},
        {"\"exp\":null", HD_AUTH_REFUSED},
        {"\"exp\":-1", HD_AUTH_REFUSED},
        {"\"exp\":1e300", HD_AUTH_REFUSED},
        {"\"exp\":99999999999999999999", HD_AUTH_REFUSED},
        {"\"nope\":1", HD_AUTH_REFUSED},
        {"\"exp\":1800000100,\"nbf\":1800000030", HD_AUTH_FINE},
        {"\"exp\":1800000100,\"nbf\":1800000031", HD_AUTH_REFUSED},
        {"\"exp\":1800000100,\"nbf\":\"0\"", HD_AUTH_REFUSED},
        {"\"exp\":1800000100,\"iat\":1800000030", HD_AUTH_FINE},
        {"\"exp\":1800000100,\"iat\":1800000031", HD_AUTH_REFUSED},
    };
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char payload[256];

        (void)snprintf(payload, sizeof(payload),
                       "{\"iss\":\"https://issuer.test\",\"sub\":\"alice\",\"aud\":\"heddle\",%s}",
                       cases[i].claims);
        expect(&w, payload, cases[i].verdict);
    }
    close_world(&w);
}

static void audiences_issuers_and_subjects_are_exact(void **state)
{
    static const struct {
        const char *iss, *aud, *sub;
        enum hd_auth_verdict verdict;
    } cases[] = {
        {"\"https://issuer.test\"", "\"heddle\"", "\"alice\"", HD_AUTH_FINE},
        {"\"https://issuer.test\"", "[\"other\",\"heddle\"]", "\"alice\"", HD_AUTH_FINE},
        {"\"https://issuer.test/\"", "\"heddle\"", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.tes\"", "\"heddle\"", "\"alice\"", HD_AUTH_REFUSED},
        {"[\"https://issuer.test\"]", "\"heddle\"", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "\"Heddle\"", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "[]", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "[[\"heddle\"]]", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "null", "\"alice\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "\"heddle\"", "\"\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "\"heddle\"", "7", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "\"heddle\"", "\"a\\u0000b\"", HD_AUTH_REFUSED},
        {"\"https://issuer.test\"", "\"heddle\"", "\"a\\nb\"", HD_AUTH_REFUSED},
    };
    char longest[1024];
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char payload[256];

        (void)snprintf(payload, sizeof(payload),
                       "{\"iss\":%s,\"aud\":%s,\"sub\":%s,\"exp\":1800000100}", cases[i].iss,
                       cases[i].aud, cases[i].sub);
        expect(&w, payload, cases[i].verdict);
    }
    for (int len = 255; len <= 256; len++) {
        (void)snprintf(longest, sizeof(longest),
                       "{\"iss\":\"https://issuer.test\",\"aud\":\"heddle\",\"exp\":1800000100,"
                       "\"sub\":\"%0*d\"}",
                       len, 7);
        expect(&w, longest, len == 255 ? HD_AUTH_FINE : HD_AUTH_REFUSED);
    }
    close_world(&w);
}

/* Supabase: the public anon key and the service_role key are signed with the users' secret. */
static void required_claims_keep_public_keys_out(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, HEAD ", \"require\": {\"role\": \"authenticated\", \"level\": [1, 2]}}]}");
    expect(&w, "{" GOOD ",\"role\":\"authenticated\",\"level\":1}", HD_AUTH_FINE);
    expect(&w, "{" GOOD ",\"role\":\"authenticated\",\"level\":2.0}", HD_AUTH_FINE);
    expect(&w, "{" GOOD ",\"role\":\"authenticated\",\"level\":3}", HD_AUTH_REFUSED);
    expect(&w, "{" GOOD ",\"role\":\"anon\",\"level\":1}", HD_AUTH_REFUSED);
    expect(&w, "{" GOOD ",\"role\":\"service_role\",\"level\":1}", HD_AUTH_REFUSED);
    expect(&w, "{" GOOD ",\"level\":1}", HD_AUTH_REFUSED);
    expect(&w, "{\"iss\":\"supabase\",\"role\":\"anon\",\"exp\":1900000000}", HD_AUTH_REFUSED);
    close_world(&w);
}

static void types_are_compared_as_media_types(void **state)
{
    static const struct {
        const char *header;
        bool is_usual, is_access;
    } cases[] = {
        {"{\"alg\":\"HS256\"}", true, false},
        {"{\"alg\":\"HS256\",\"typ\":\"JWT\"}", true, false},
        {"{\"alg\":\"HS256\",\"typ\":\"at+jwt\"}", true, true},
        {"{\"alg\":\"HS256\",\"typ\":\"application/AT+JWT\"}", true, true},
        {"{\"alg\":\"HS256\",\"typ\":\"logout+jwt\"}", false, false},
        {"{\"alg\":\"HS256\",\"typ\":\"dpop+jwt\"}", false, false},
    };
    struct world usual, access;

    (void)state;
    open_world(&usual, CONFIG);
    open_world(&access, HEAD ", \"type\": \"at+jwt\"}]}");
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        ask_token(&usual, sign(cases[i].header, "{" GOOD "}"));
        assert_int_equal(usual.verdict == HD_AUTH_FINE, cases[i].is_usual);
        ask_token(&access, sign(cases[i].header, "{" GOOD "}"));
        assert_int_equal(access.verdict == HD_AUTH_FINE, cases[i].is_access);
    }
    close_world(&usual);
    close_world(&access);
}

static void organisations_and_admins_come_from_claims(void **state)
{
    char principal[HD_PRINCIPAL_SIZE];
    struct world w;

    (void)state;
    open_world(&w, HEAD ", \"organisations\": \"app.orgs\", \"admin\": {\"claim\": "
                        "\"realm.roles\", \"value\": \"operator\"}}]}");
    expect(&w,
           "{" GOOD ",\"app\":{\"orgs\":[\"a\",\"b\",\"a\",7,\"\"]},\"realm\":{\"roles\":[\"x\","
           "\"operator\"]}}",
           HD_AUTH_FINE);
    assert_true(w.identity->is_admin);
    assert_int_equal(w.identity->organisation_count, 2);
    assert_slice(w.identity->organisation_names[1], HD_S("b"));
    assert_err(hd_auth_principal_derive(hd_auth_key(w.auth, 0), HD_PRINCIPAL_ORGANISATION,
                                        HD_S("main"), HD_S("b"), principal),
               0);
    assert_slice(w.identity->organisations[1], hd_slice_cstr(principal));
    expect(&w, "{" GOOD ",\"app.orgs\":\"one\",\"realm\":{\"roles\":\"operators\"}}", HD_AUTH_FINE);
    assert_false(w.identity->is_admin);
    assert_int_equal(w.identity->organisation_count, 1);
    assert_slice(w.identity->organisation_names[0], HD_S("one"));
    close_world(&w);
}

#define ENTRA                                                                                \
    "{\"issuers\": [{\"alias\": \"entra\", \"issuer\": [\"https://login.test/{tid}/v2.0\", " \
    "\"https://sts.test/{tid}/\"], \"audience\": \"heddle\", \"algorithms\": [\"HS256\"], "  \
    "\"secret\": {\"env\": \"SECRET\"}, \"subject\": [\"tid\", \"oid\"]}]}"
#define ENTRA_CLAIMS "\"aud\":\"heddle\",\"exp\":1800000100,\"oid\":\"o1\""

static void tenants_are_those_of_their_issuer(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, ENTRA);
    expect(&w, "{\"iss\":\"https://login.test/t1/v2.0\",\"tid\":\"t1\"," ENTRA_CLAIMS "}",
           HD_AUTH_FINE);
    assert_slice(w.identity->subject, HD_S("2:t12:o1"));
    expect(&w, "{\"iss\":\"https://sts.test/t1/\",\"tid\":\"t1\"," ENTRA_CLAIMS "}", HD_AUTH_FINE);
    assert_slice(w.identity->subject, HD_S("2:t12:o1"));
    expect(&w, "{\"iss\":\"https://login.test/t1/v2.0\",\"tid\":\"t2\"," ENTRA_CLAIMS "}",
           HD_AUTH_REFUSED);
    expect(&w, "{\"iss\":\"https://login.test/t1/v2.0\"," ENTRA_CLAIMS "}", HD_AUTH_REFUSED);
    expect(&w, "{\"iss\":\"https://login.test//v2.0\",\"tid\":\"\"," ENTRA_CLAIMS "}",
           HD_AUTH_REFUSED);
    expect(&w, "{\"iss\":\"https://login.test/a/b/v2.0\",\"tid\":\"a/b\"," ENTRA_CLAIMS "}",
           HD_AUTH_REFUSED);
    expect(&w, "{\"iss\":\"https://login.test/{tid}/v2.0\",\"tid\":\"{tid}\"," ENTRA_CLAIMS "}",
           HD_AUTH_REFUSED);
    close_world(&w);
}

/* ---- the cache --------------------------------------------------------- */

static void verified_tokens_are_cached_for_a_while(void **state)
{
    struct hd_identity *first;
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    first = w.identity;
    assert_int_equal(w.identity->expires_at, (NOW_S + 130) * SECOND);
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    assert_ptr_equal(w.identity, first);
    assert_int_equal(w.settles, 1);
    w.now = (NOW_S + 130) * SECOND - 1;
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    w.now++;
    expect(&w, "{" GOOD "}", HD_AUTH_REFUSED);
    close_world(&w);
}

static void with_old_keys_it_is_looked_at_again_soon(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, "{\"key\": {\"id\": \"2\", \"env\": \"KEY\"}, \"old_keys\": [{\"id\": \"1\", "
                   "\"env\": \"OLD\"}, null], \"issuers\": [{" RULES "}]}");
    assert_int_equal(hd_auth_key_count(w.auth), 3);
    assert_slice(hd_auth_key(w.auth, 1)->id, HD_S("1"));
    assert_slice(hd_auth_key(w.auth, 2)->id, HD_S(""));
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    assert_int_equal(w.settles, 1);
    w.now += HD_AUTH_RECHECK_US;
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    assert_int_equal(w.settles, 2);
    close_world(&w);
}

static void a_principal_that_is_being_moved_is_unavailable(void **state)
{
    void *handle;
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    w.settles_later = true;
    ask_token(&w, sign(HS256, "{" GOOD "}"));
    assert_int_equal(w.answers, 0);
    handle = w.settling;
    hd_auth_settled(w.auth, handle, HD_EBUSY);
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    /* This result is not cached. */
    w.settles_later = false;
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    close_world(&w);
}

/* ---- key sets ----------------------------------------------------------- */

static const char *vector(const char *alg)
{
    for (size_t i = 0; i < HD_COUNT(vector_tokens); i++) {
        if (strcmp(vector_tokens[i].alg, alg) == 0)
            return vector_tokens[i].token;
    }
    return NULL;
}

static void keys_are_fetched_when_they_are_needed(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    ask_token(&w, vector("ES256"));
    assert_int_equal(w.answers, 0);
    assert_int_equal(w.fetches, 1);
    fetched(&w, vector_jwks);
    assert_int_equal(w.answers, 2);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    assert_slice(w.identity->subject, HD_S("alice"));
    assert_slice(w.identity->issuer, HD_S("main"));
    ask_token(&w, vector("RS256"));
    assert_int_equal(w.answers, 3);
    assert_int_equal(w.fetches, 1);
    close_world(&w);
}

/* All signatures are valid (RS512, HS384, EdDSA …), but this issuer does not use the algorithms. */
static void only_the_issuers_algorithms_are_taken(void **state)
{
    static const char *const others[] = {"HS384", "HS512", "RS384", "RS512", "PS256",
                                         "PS384", "PS512", "ES384", "EdDSA"};
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    for (size_t i = 0; i < HD_COUNT(others); i++) {
        ask_token(&w, vector(others[i]));
        assert_int_equal(w.answers, i + 1);
        assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    }
    assert_int_equal(w.fetches, 0);
    close_world(&w);
}

#define OTHER_KEYS                                                              \
    "{\"keys\": [{\"kid\": \"other\", \"kty\": \"OKP\", \"crv\": \"Ed25519\", " \
    "\"x\": \"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"

static void a_key_that_is_not_known_is_looked_for_once(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    /* The request has waited for the set, so a second fetch would be useless. */
    ask_token(&w, vector("RS256"));
    fetched(&w, OTHER_KEYS);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    assert_int_equal(w.fetches, 1);
    /* The next request fetches the set again, and it has the key now. */
    ask_token(&w, vector("RS256"));
    assert_int_equal(w.fetches, 2);
    fetched(&w, vector_jwks);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    close_world(&w);
}

static void a_flood_of_unknown_keys_is_one_request(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    fetched(&w, OTHER_KEYS);
    for (unsigned i = 0; i < 500; i++) {
        ask_token(&w, vector("RS256"));
        if (w.fetching)
            fetched(&w, OTHER_KEYS);
        assert_int_equal(w.answers, i + 2);
        assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    }
    assert_int_equal(w.fetches, 2);
    close_world(&w);
}

static void without_keys_no_token_is_verified(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    fetched(&w, "");
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    ask_token(&w, vector("RS256"));
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    assert_int_equal(w.fetches, 1);
    /* Tokens signed with the secret do not need the key set. */
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    w.now += 10 * SECOND;
    ask_token(&w, vector("RS256"));
    fetched(&w, vector_jwks);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    close_world(&w);
}

static void too_many_do_not_wait(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    for (int i = 0; i < 4096; i++)
        ask_token(&w, vector("RS256"));
    assert_int_equal(w.answers, 0);
    ask_token(&w, vector("RS256"));
    assert_int_equal(w.answers, 1);
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    fetched(&w, vector_jwks);
    assert_int_equal(w.answers, 4097);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    close_world(&w);
}

/* While a slow issuer is fetched for unknown keys, other tokens are verified. */
static void unknown_keys_are_not_in_the_way(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    fetched(&w, OTHER_KEYS);
    for (int i = 0; i < 1000; i++)
        ask_token(&w, vector("RS256"));
    assert_int_equal(w.answers, 1 + 1000 - 128);
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    expect(&w, "{" GOOD "}", HD_AUTH_FINE);
    fetched(&w, OTHER_KEYS);
    assert_int_equal(w.answers, 1 + 1000 + 1);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask_token(&w, vector("RS256"));
    assert_int_equal(w.answers, 1 + 1000 + 2);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    close_world(&w);
}

/* A key without an id is tried for any key id of a token. */
static void keys_may_be_without_a_name(void **state)
{
    char text[8192];
    struct world w;
    size_t len = 0;

    (void)state;
    for (const char *at = vector_jwks; *at; at++)
        text[len++] = strncmp(at, "kid\"", 4) == 0 ? 'x' : *at;
    text[len] = '\0';
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    fetched(&w, text);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    ask_token(&w, vector("ES256"));
    assert_int_equal(w.answers, 2);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    close_world(&w);
}

static void waiting_checks_are_completed_on_close(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask_token(&w, vector("RS256"));
    hd_auth_destroy(w.auth);
    w.auth = NULL;
    assert_int_equal(w.answers, 1);
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    close_world(&w);
}

/* ---- API keys ------------------------------------------------------------ */

#define API_KEY HD_API_KEY_PREFIX API_ID "_" API_SECRET

static struct hd_api_key stored_key(char hash[HD_SHA256_HEX_LEN + 1])
{
    assert_err(hd_sha256_hex(HD_S(API_SECRET), hash), 0);
    return (struct hd_api_key){
        .id = HD_S(API_ID), .hash = hd_slice_cstr(hash), .subject = HD_S("bot")};
}

static void api_keys_are_looked_up(void **state)
{
    char hash[HD_SHA256_HEX_LEN + 1];
    struct hd_api_key key = stored_key(hash);
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    assert_slice(w.identity->subject, HD_S("bot"));
    assert_slice(w.identity->issuer, HD_S("key"));
    assert_slice(w.identity->key_id, HD_S(API_ID));
    assert_false(w.identity->is_admin);
    /* The key also works as a bearer token; the lookup is cached for a few seconds. */
    ask(&w, "Bearer " API_KEY, "");
    assert_int_equal(w.answers, 2);
    w.now += HD_AUTH_RECHECK_US;
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    hd_auth_forget_key(w.auth, HD_S(API_ID));
    key.revoked_at = w.now;
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    assert_int_equal(w.lookups, 3);
    close_world(&w);
}

static void api_keys_end(void **state)
{
    char hash[HD_SHA256_HEX_LEN + 1], other[HD_SHA256_HEX_LEN + 1];
    struct hd_api_key key = stored_key(hash);
    struct world w;

    (void)state;
    open_world(&w, CONFIG);
    ask(&w, "", API_KEY);
    found(&w, NULL, 0);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    ask(&w, "", API_KEY);
    found(&w, NULL, HD_EUNAVAILABLE);
    assert_int_equal(w.verdict, HD_AUTH_UNAVAILABLE);
    assert_err(hd_sha256_hex(HD_S("another"), other), 0);
    key.hash = hd_slice_cstr(other);
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    key.hash = hd_slice_cstr(hash);
    key.expires_at = w.now;
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    key.expires_at = w.now + 1;
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_FINE);
    w.now++;
    ask(&w, "", API_KEY);
    found(&w, &key, 0);
    assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    close_world(&w);
}

static void api_keys_have_one_shape(void **state)
{
    static const char *const bad[] = {"hdk_", "hdk_" API_ID, API_KEY "A",
                                      "hdk_" API_ID "." API_SECRET,
                                      "hdk_0123456789abcde/_" API_SECRET};
    struct world w, none;

    (void)state;
    open_world(&w, CONFIG);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        ask(&w, "", bad[i]);
        assert_int_equal(w.answers, i + 1);
        assert_int_equal(w.verdict, HD_AUTH_REFUSED);
    }
    assert_int_equal(w.lookups, 0);
    close_world(&w);
    open_world(&none, "{\"api_keys\": false, \"issuers\": [{" RULES "}]}");
    ask(&none, "", API_KEY);
    assert_int_equal(none.verdict, HD_AUTH_REFUSED);
    close_world(&none);
}

/* ---- the configuration ---------------------------------------------------- */

static struct hd_slice bearer(const char *token)
{
    static char header[HD_MAX_CREDENTIAL];

    (void)snprintf(header, sizeof(header), "Bearer %s", token);
    return hd_slice_cstr(header);
}

/* Credentials that the server recognizes do not reach the project's handler; all others do. */
static void other_credentials_go_to_the_auth_handler(void **state)
{
    static const char *const codes[] = {"", "Basic YTpi", "Bearer opaque", "Bearer a.b.c",
                                        "Bearer "};
    struct world w;

    (void)state;
    open_world(&w, "{\"path\": \"./auth.py:auth\", \"cache\": {\"cache_keys\": [\"X-Key\"], "
                   "\"ttl_seconds\": 60}, \"compartments\": \"shared\"}");
    for (size_t i = 0; i < HD_COUNT(codes); i++)
        assert_false(hd_auth_is_native(w.auth, hd_slice_cstr(codes[i]), HD_S("")));
    assert_false(hd_auth_is_native(w.auth, HD_S(""), HD_S("sk-of-something-else")));
    assert_false(hd_auth_is_native(w.auth, HD_S("Bearer opaque"), HD_S(API_KEY)));
    assert_true(hd_auth_is_native(w.auth, HD_S(""), HD_S(API_KEY)));
    assert_true(hd_auth_is_native(w.auth, HD_S("Bearer " API_KEY), HD_S("")));
    assert_true(hd_auth_has_alias(w.auth, HD_S(HD_CODE_ALIAS)));
    assert_false(hd_auth_is_native(w.auth, bearer(sign(HS256, "{" GOOD "}")), HD_S("")));
    assert_slice(hd_auth_settings(w.auth)->cache_keys[0], HD_S("x-key"));
    assert_int_equal(hd_auth_settings(w.auth)->code_cache_us, 60000000);
    assert_true(hd_auth_settings(w.auth)->is_shared);
    close_world(&w);
    /* A token of a configured issuer never reaches the handler, even when it is invalid. */
    open_world(&w, "{\"path\": \"./auth.py:auth\", \"issuers\": [{" RULES "}]}");
    assert_true(hd_auth_is_native(w.auth, bearer(sign(HS256, "{" GOOD "}")), HD_S("")));
    assert_int_equal(hd_auth_settings(w.auth)->code_cache_us, 0);
    close_world(&w);
    /* Without a handler the server checks all credentials. */
    open_world(&w, CONFIG);
    for (size_t i = 0; i < HD_COUNT(codes); i++)
        assert_true(hd_auth_is_native(w.auth, hd_slice_cstr(codes[i]), HD_S("")));
    close_world(&w);
}

static void without_a_configuration_it_is_off(void **state)
{
    struct world w = {.now = 0};
    const struct hd_auth_host host = {&w, now_us, fetch, find_key, settle, secret};

    (void)state;
    assert_err(hd_auth_create(NULL, &host, &w.auth, NULL), 0);
    assert_false(hd_auth_is_on(w.auth));
    assert_int_equal(hd_auth_key_count(w.auth), 1);
    assert_slice(hd_auth_key(w.auth, 0)->id, HD_S(""));
    hd_auth_destroy(w.auth);
}

static int use(void *arg)
{
    struct world *w = arg;
    struct heddle_error fault = {0};
    const struct hd_auth_host host = {w, now_us, fetch, find_key, settle, secret};
    int err = hd_auth_create(hd_json_root(&w->config), &host, &w->auth, &fault);

    if (err)
        return err;
    err = check(w, HD_S(""), HD_S("x"));
    hd_auth_destroy(w->auth);
    w->auth = NULL;
    return err;
}

/* A refusal would make the client sign in again, so out of memory gives 503 or no response. */
static void no_memory_is_no_refusal(void **state)
{
    static const char *const algs[] = {"HS256", "RS256", "ES256"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(algs); i++) {
        bool is_fine = false;

        for (long n = 1; !is_fine; n++) {
            char header[2048];
            struct world w;
            int err;

            open_world(&w, CONFIG);
            (void)snprintf(header, sizeof(header), "Bearer %s", vector(algs[i]));
            (void)hd_alloc_fail_at(n, 1);
            err = check(&w, hd_slice_cstr(header), HD_S(""));
            if (w.fetching)
                fetched(&w, vector_jwks);
            (void)hd_alloc_fail_at(0, 0);
            assert_true(err == 0 || err == HD_ENOMEM);
            assert_int_equal(w.answers, err == 0);
            is_fine = w.answers && w.verdict == HD_AUTH_FINE;
            assert_true(err || is_fine || w.verdict == HD_AUTH_UNAVAILABLE);
            assert_true(n < 1000);
            close_world(&w);
        }
    }
}

static void no_memory_is_an_error(void **state)
{
    struct world w = {.now = NOW_S * SECOND};

    (void)state;
    assert_err(hd_json_parse(&w.config, HD_S(CONFIG), NULL), 0);
    assert_true(check_every_allocation(use, &w) > 0);
    hd_json_fini(&w.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_come_in_two_headers),
        cmocka_unit_test(an_oversized_credential_is_refused),
        cmocka_unit_test(times_are_checked_with_a_leeway),
        cmocka_unit_test(audiences_issuers_and_subjects_are_exact),
        cmocka_unit_test(required_claims_keep_public_keys_out),
        cmocka_unit_test(types_are_compared_as_media_types),
        cmocka_unit_test(organisations_and_admins_come_from_claims),
        cmocka_unit_test(tenants_are_those_of_their_issuer),
        cmocka_unit_test(verified_tokens_are_cached_for_a_while),
        cmocka_unit_test(with_old_keys_it_is_looked_at_again_soon),
        cmocka_unit_test(a_principal_that_is_being_moved_is_unavailable),
        cmocka_unit_test(keys_are_fetched_when_they_are_needed),
        cmocka_unit_test(only_the_issuers_algorithms_are_taken),
        cmocka_unit_test(a_key_that_is_not_known_is_looked_for_once),
        cmocka_unit_test(a_flood_of_unknown_keys_is_one_request),
        cmocka_unit_test(without_keys_no_token_is_verified),
        cmocka_unit_test(too_many_do_not_wait),
        cmocka_unit_test(unknown_keys_are_not_in_the_way),
        cmocka_unit_test(keys_may_be_without_a_name),
        cmocka_unit_test(waiting_checks_are_completed_on_close),
        cmocka_unit_test(api_keys_are_looked_up),
        cmocka_unit_test(api_keys_end),
        cmocka_unit_test(api_keys_have_one_shape),
        cmocka_unit_test(other_credentials_go_to_the_auth_handler),
        cmocka_unit_test(without_a_configuration_it_is_off),
        cmocka_unit_test(no_memory_is_no_refusal),
        cmocka_unit_test(no_memory_is_an_error),
    };

    hd_log_set_level(HD_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
