#include "auth/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>

#include "base/error.h"

/* OpenSSL looks up an algorithm by name on each use, unless it is fetched once. */
static EVP_MD *sha256;

static void find_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

int hd_sha256(struct hd_slice text, unsigned char out[HD_SHA256_LEN])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned len = 0;

    if (pthread_once(&once, find_sha256) || !sha256)
        return HD_ENOMEM;
    if (!EVP_Digest(text.ptr ? text.ptr : "", text.len, out, &len, sha256, NULL))
        return HD_ENOMEM;
    return 0;
}

int hd_sha256_hex(struct hd_slice text, char out[HD_SHA256_HEX_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[HD_SHA256_LEN];
    int err = hd_sha256(text, digest);

    if (err)
        return err;
    for (size_t i = 0; i < HD_SHA256_LEN; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[HD_SHA256_HEX_LEN] = '\0';
    return 0;
}

bool hd_auth_secret_eq(struct hd_slice a, struct hd_slice b)
{
    return a.len == b.len && (a.len == 0 || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}
