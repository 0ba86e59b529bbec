#include "auth/jwk.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <string.h>

#include "auth/base64url.h"
#include "base/alloc.h"
#include "base/json.h"

#define MAX_MEMBER 2048 /* of a key, as text: a modulus of 8,192 bits has 1,366 */
#define MAX_KID 1024

static const struct hd_alg_info algs[] = {
    [HD_HS256] = {HD_S_INIT("HS256"), HD_KEY_SECRET, "SHA256", 0, false},
    [HD_HS384] = {HD_S_INIT("HS384"), HD_KEY_SECRET, "SHA384", 0, false},
    [HD_HS512] = {HD_S_INIT("HS512"), HD_KEY_SECRET, "SHA512", 0, false},
    [HD_RS256] = {HD_S_INIT("RS256"), HD_KEY_RSA, "SHA256", 0, false},
    [HD_RS384] = {HD_S_INIT("RS384"), HD_KEY_RSA, "SHA384", 0, false},
    [HD_RS512] = {HD_S_INIT("RS512"), HD_KEY_RSA, "SHA512", 0, false},
    [HD_PS256] = {HD_S_INIT("PS256"), HD_KEY_RSA, "SHA256", 0, true},
    [HD_PS384] = {HD_S_INIT("PS384"), HD_KEY_RSA, "SHA384", 0, true},
    [HD_PS512] = {HD_S_INIT("PS512"), HD_KEY_RSA, "SHA512", 0, true},
    [HD_ES256] = {HD_S_INIT("ES256"), HD_KEY_P256, "SHA256", 32, false},
    [HD_ES384] = {HD_S_INIT("ES384"), HD_KEY_P384, "SHA384", 48, false},
    [HD_EDDSA] = {HD_S_INIT("EdDSA"), HD_KEY_ED25519, NULL, 0, false},
};

const struct hd_alg_info *hd_alg_info(enum hd_alg alg)
{
    return &algs[alg];
}

enum hd_alg hd_alg_find(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(algs); i++) {
        if (hd_slice_eq(algs[i].name, name))
            return (enum hd_alg)i;
    }
    /* RFC 9864's name for the only supported curve. */
    return hd_slice_eq(name, HD_S("Ed25519")) ? HD_EDDSA : HD_ALG_COUNT;
}

/* ---- keys ------------------------------------------------------------- */

struct bytes {
    unsigned char data[MAX_MEMBER];
    size_t len;
};

static bool read_bytes(hd_json_val jwk, struct hd_slice name, struct bytes *out)
{
    struct hd_slice text = hd_json_string(hd_json_get(jwk, name));

    return text.len > 0 && text.len <= MAX_MEMBER &&
           hd_base64url_decode(text, out->data, &out->len) == 0 && out->len > 0;
}

/* Takes the builder's parameters; NULL when they are not a valid key. */
static EVP_PKEY *build(const char *type, OSSL_PARAM_BLD *builder)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (params && context && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    return key;
}

static bool is_good_rsa(EVP_PKEY *key)
{
    int bits = EVP_PKEY_get_bits(key);

    return bits >= HD_MIN_RSA_BITS && bits <= HD_MAX_RSA_BITS;
}

static EVP_PKEY *build_rsa(const struct bytes *modulus, const struct bytes *exponent)
{
    BIGNUM *n = BN_bin2bn(modulus->data, (int)modulus->len, NULL);
    BIGNUM *e = BN_bin2bn(exponent->data, (int)exponent->len, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;

    /* A huge exponent would make verifying as expensive as signing; 1 is insecure. */
    if (n && e && builder && BN_is_odd(e) && !BN_is_one(e) && BN_num_bits(e) <= 64 &&
        BN_num_bits(n) <= HD_MAX_RSA_BITS &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e))
        key = build("RSA", builder);
    if (key && !is_good_rsa(key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return key;
}

static EVP_PKEY *read_rsa(hd_json_val jwk)
{
    struct bytes modulus, exponent;

    if (!read_bytes(jwk, HD_S("n"), &modulus) || !read_bytes(jwk, HD_S("e"), &exponent))
        return NULL;
    return build_rsa(&modulus, &exponent);
}

static bool is_on_curve(EVP_PKEY *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    bool is_good = context && EVP_PKEY_public_check(context) == 1;

    EVP_PKEY_CTX_free(context);
    return is_good;
}

static EVP_PKEY *read_ec(hd_json_val jwk, enum hd_key_kind kind)
{
    size_t half = kind == HD_KEY_P256 ? 32 : 48;
    unsigned char point[1 + 2 * 48] = {4 /* uncompressed: both coordinates follow */};
    OSSL_PARAM_BLD *builder;
    struct bytes x, y;
    EVP_PKEY *key = NULL;

    if (!read_bytes(jwk, HD_S("x"), &x) || !read_bytes(jwk, HD_S("y"), &y) || x.len != half ||
        y.len != half)
        return NULL;
    memcpy(point + 1, x.data, half);
    memcpy(point + 1 + half, y.data, half);
    builder = OSSL_PARAM_BLD_new();
    if (builder &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME,
                                        kind == HD_KEY_P256 ? "prime256v1" : "secp384r1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * half))
        key = build("EC", builder);
    OSSL_PARAM_BLD_free(builder);
    if (key && !is_on_curve(key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    return key;
}

static EVP_PKEY *read_ed25519(hd_json_val jwk)
{
    struct bytes x;

    if (!read_bytes(jwk, HD_S("x"), &x) || x.len != 32)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.data, x.len);
}

/* False: unsupported, or a kind that must not be published. */
static bool read_kind(hd_json_val jwk, enum hd_key_kind *out)
{
    struct hd_slice type = hd_json_string(hd_json_get(jwk, HD_S("kty")));
    struct hd_slice curve = hd_json_string(hd_json_get(jwk, HD_S("crv")));

    if (hd_slice_eq(type, HD_S("RSA")))
        *out = HD_KEY_RSA;
    else if (hd_slice_eq(type, HD_S("EC")) && hd_slice_eq(curve, HD_S("P-256")))
        *out = HD_KEY_P256;
    else if (hd_slice_eq(type, HD_S("EC")) && hd_slice_eq(curve, HD_S("P-384")))
        *out = HD_KEY_P384;
    else if (hd_slice_eq(type, HD_S("OKP")) && hd_slice_eq(curve, HD_S("Ed25519")))
        *out = HD_KEY_ED25519;
    else
        return false;
    return !hd_json_get(jwk, HD_S("d"));
}

/* `use` and `key_ops` permit verifying, or are missing. */
static bool is_for_verifying(hd_json_val jwk)
{
    hd_json_val use = hd_json_get(jwk, HD_S("use")), ops = hd_json_get(jwk, HD_S("key_ops"));
    struct hd_json_iter it = hd_json_iter(ops);

    if (use && !hd_slice_eq(hd_json_string(use), HD_S("sig")))
        return false;
    if (!ops)
        return true;
    while (hd_json_is_array(ops) && hd_json_next(&it)) {
        if (hd_slice_eq(hd_json_string(it.val), HD_S("verify")))
            return true;
    }
    return false;
}

/* The key's `alg`; false when it does not match the kind or is unknown. */
static bool read_alg(hd_json_val jwk, enum hd_key_kind kind, enum hd_alg *out)
{
    hd_json_val alg = hd_json_get(jwk, HD_S("alg"));

    *out = HD_ALG_COUNT;
    if (!alg)
        return true;
    *out = hd_alg_find(hd_json_string(alg));
    return *out != HD_ALG_COUNT && algs[*out].kind == kind;
}

/* Returns 0 also for a skipped key. */
static int add_jwk(struct hd_jwks *set, hd_json_val jwk)
{
    struct hd_jwk *key = &set->keys[set->count];
    hd_json_val kid = hd_json_get(jwk, HD_S("kid"));

    *key = (struct hd_jwk){0};
    if (!read_kind(jwk, &key->kind) || !is_for_verifying(jwk) ||
        !read_alg(jwk, key->kind, &key->alg))
        return 0;
    if (kid && (!hd_json_is_string(kid) || hd_json_string(kid).len > MAX_KID))
        return 0;
    if (hd_arena_copy(&set->arena, hd_json_string(kid), &key->kid))
        return HD_ENOMEM;
    if (key->kind == HD_KEY_RSA)
        key->key = read_rsa(jwk);
    else if (key->kind == HD_KEY_ED25519)
        key->key = read_ed25519(jwk);
    else
        key->key = read_ec(jwk, key->kind);
    set->count += key->key != NULL;
    return 0;
}

static int add_keys(struct hd_jwks *set, hd_json_val root, const char **reason)
{
    hd_json_val keys = hd_json_get(root, HD_S("keys"));
    struct hd_json_iter it = hd_json_iter(keys);
    int err = 0;

    *reason = "it is not a key set";
    if (!hd_json_is_array(keys))
        return HD_EINVAL;
    while (!err && hd_json_next(&it) && set->count < HD_MAX_JWKS)
        err = add_jwk(set, it.val);
    *reason = "it has no usable key";
    return !err && set->count == 0 ? HD_EINVAL : err;
}

int hd_jwks_parse(struct hd_slice text, struct hd_jwks **out, const char **reason)
{
    struct hd_jwks *set;
    struct hd_json json;
    int err;

    *reason = "it is too large";
    if (text.len > HD_MAX_JWKS_BYTES)
        return HD_EINVAL;
    *reason = "it is not JSON";
    err = hd_json_parse(&json, text, NULL);
    if (err)
        return err;
    set = hd_calloc(1, sizeof(*set));
    if (set) {
        hd_arena_init(&set->arena, (size_t)HD_MAX_JWKS * (MAX_KID + 64));
        err = add_keys(set, hd_json_root(&json), reason);
    } else {
        err = HD_ENOMEM;
    }
    hd_json_fini(&json);
    /* OpenSSL's error queue is per thread: do not leave errors for other code. */
    ERR_clear_error();
    if (err) {
        hd_jwks_destroy(set);
        return err;
    }
    *out = set;
    return 0;
}

void hd_jwks_destroy(struct hd_jwks *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        EVP_PKEY_free(set->keys[i].key);
    hd_arena_fini(&set->arena);
    hd_free(set);
}

bool hd_jwk_fits(const struct hd_jwk *key, enum hd_alg alg)
{
    return key->kind == algs[alg].kind && (key->alg == HD_ALG_COUNT || key->alg == alg);
}
