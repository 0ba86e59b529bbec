/* Algorithms, and an issuer's public keys (RFC 7517, 7518, 8037) as OpenSSL keys. Pure. */
#ifndef HD_AUTH_JWK_H
#define HD_AUTH_JWK_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

enum hd_alg {
    HD_HS256,
    HD_HS384,
    HD_HS512,
    HD_RS256,
    HD_RS384,
    HD_RS512,
    HD_PS256,
    HD_PS384,
    HD_PS512,
    HD_ES256,
    HD_ES384,
    HD_EDDSA,
    HD_ALG_COUNT /* none */
};

/* The kind of key that an algorithm uses. */
enum hd_key_kind { HD_KEY_SECRET, HD_KEY_RSA, HD_KEY_P256, HD_KEY_P384, HD_KEY_ED25519 };

struct hd_alg_info {
    struct hd_slice name;
    enum hd_key_kind kind;
    const char *digest; /* OpenSSL's name; NULL: built in */
    size_t half;        /* length of r and of s in a signature r || s; 0: another form */
    bool is_pss;
};

const struct hd_alg_info *hd_alg_info(enum hd_alg alg);
/* By exact name; HD_ALG_COUNT: unsupported (including `none`). */
enum hd_alg hd_alg_find(struct hd_slice name);

struct hd_jwk {
    struct hd_slice kid; /* empty: no key id */
    enum hd_key_kind kind;
    enum hd_alg alg; /* the only allowed one; HD_ALG_COUNT: any of its kind */
    EVP_PKEY *key;
};

#define HD_MAX_JWKS 64
#define HD_MAX_JWKS_BYTES (1 << 20)
#define HD_MIN_RSA_BITS 2048
#define HD_MAX_RSA_BITS 8192

struct hd_jwks {
    struct hd_jwk keys[HD_MAX_JWKS];
    size_t count; /* at least 1 */
    struct hd_arena arena;
};

/*
 * Parses a key set. Skips keys that cannot verify anything here (other kinds, too short, for
 * encryption, secret or private ones); HD_EINVAL, with a reason, when none is left.
 */
HD_MUST_CHECK int hd_jwks_parse(struct hd_slice text, struct hd_jwks **out, const char **reason);
void hd_jwks_destroy(struct hd_jwks *set);

/* Whether the key may verify signatures of that algorithm. */
bool hd_jwk_fits(const struct hd_jwk *key, enum hd_alg alg);

#endif
