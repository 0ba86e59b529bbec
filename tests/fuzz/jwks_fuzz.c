/* libFuzzer: any text as a key set. An accepted set has usable keys. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/jwt.h"
#include "auth/keyset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_key(const struct hd_jwk *key)
{
    unsigned fits = 0;

    for (int alg = 0; alg < HD_ALG_COUNT; alg++) {
        struct hd_jwt jwt = {.alg = (enum hd_alg)alg,
                             .signed_text = HD_S_INIT("a.b"),
                             .signature = HD_S_INIT("0123456789abcdef0123456789abcdef"
                                                    "0123456789abcdef0123456789abcdef")};

        fits += hd_jwk_fits(key, jwt.alg);
        require(!hd_jwt_is_signed_by(&jwt, key), "nothing was signed");
        require(!hd_jwk_fits(key, jwt.alg) || alg > HD_HS512, "a public key as a secret");
    }
    require(fits > 0, "a key for nothing");
    require(key->kind != HD_KEY_RSA || EVP_PKEY_get_bits(key->key) >= HD_MIN_RSA_BITS,
            "a short key");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_keyset keys = {0};
    const char *reason = NULL;
    bool fetch;
    int err = hd_keyset_fetched(&keys, hd_slice(data, size), (int64_t)size, 1, &reason);

    require(err == 0 || (err == HD_EINVAL && reason), "an odd error");
    require((err == 0) == (keys.set != NULL), "a set without success");
    for (size_t i = 0; keys.set && i < keys.set->count; i++)
        check_key(&keys.set->keys[i]);
    require(!keys.set || hd_keyset_ask(&keys, 2, &fetch) == HD_KEYS_READY, "not ready");
    hd_keyset_fini(&keys);
    return 0;
}
