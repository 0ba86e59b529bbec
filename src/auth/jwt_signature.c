/* Signature verification with OpenSSL. */
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include "auth/digest.h"
#include "auth/jwt.h"

#define MAX_DER 128 /* a signature of P-384: two integers of up to 49 bytes, and their heads */

static const unsigned char *unsigned_bytes(struct hd_slice s)
{
    return (const unsigned char *)s.ptr;
}

/* Converts r || s, each of `half` bytes, to DER; 0 when it has another form. */
static size_t to_der(struct hd_slice raw, size_t half, unsigned char out[MAX_DER])
{
    ECDSA_SIG *signature;
    BIGNUM *r, *s;
    int len = 0;

    if (raw.len != 2 * half)
        return 0;
    signature = ECDSA_SIG_new();
    r = BN_bin2bn(unsigned_bytes(raw), (int)half, NULL);
    s = BN_bin2bn(unsigned_bytes(raw) + half, (int)half, NULL);
    if (signature && r && s && ECDSA_SIG_set0(signature, r, s)) {
        r = s = NULL;
        len = i2d_ECDSA_SIG(signature, NULL);
        len = len > 0 && len <= MAX_DER ? i2d_ECDSA_SIG(signature, &out) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(signature);
    return len > 0 ? (size_t)len : 0;
}

static bool verify(const struct hd_jwt *jwt, EVP_PKEY *key, struct hd_slice signature)
{
    const struct hd_alg_info *alg = hd_alg_info(jwt->alg);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *padding = NULL;
    bool is_good = context && EVP_DigestVerifyInit_ex(context, &padding, alg->digest, NULL, NULL,
                                                      key, NULL) == 1;

    if (is_good && alg->is_pss)
        is_good = EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING) == 1 &&
                  EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, RSA_PSS_SALTLEN_DIGEST) == 1;
    if (is_good)
        is_good = EVP_DigestVerify(context, unsigned_bytes(signature), signature.len,
                                   unsigned_bytes(jwt->signed_text), jwt->signed_text.len) == 1;
    EVP_MD_CTX_free(context);
    return is_good;
}

bool hd_jwt_is_signed_by(const struct hd_jwt *jwt, const struct hd_jwk *key)
{
    struct hd_slice signature = jwt->signature;
    unsigned char der[MAX_DER];
    size_t half = hd_alg_info(jwt->alg)->half;
    bool is_good = hd_jwk_fits(key, jwt->alg);

    if (is_good && half > 0) {
        signature = hd_slice(der, to_der(signature, half, der));
        is_good = signature.len > 0;
    }
    is_good = is_good && verify(jwt, key->key, signature);
    ERR_clear_error();
    return is_good;
}

bool hd_jwt_is_signed_with(const struct hd_jwt *jwt, struct hd_slice secret)
{
    const struct hd_alg_info *alg = hd_alg_info(jwt->alg);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool is_good;

    if (alg->kind != HD_KEY_SECRET)
        return false;
    is_good = HMAC(EVP_get_digestbyname(alg->digest), secret.ptr, (int)secret.len,
                   unsigned_bytes(jwt->signed_text), jwt->signed_text.len, digest, &len) != NULL &&
              hd_auth_secret_eq(hd_slice(digest, len), jwt->signature);
    ERR_clear_error();
    return is_good;
}
