/*
 * Configured token issuers and their rules. The claims of a verified token are checked against
 * these rules and become an identity. Pure.
 */
#ifndef HD_AUTH_ISSUER_H
#define HD_AUTH_ISSUER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/identity.h"
#include "auth/jwt.h"
#include "auth/keyset.h"
#include "auth/principal.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

#define HD_MAX_ISSUERS 64
#define HD_MAX_ISSUER_NAMES 16 /* of one issuer; also audiences, required claims */
#define HD_MAX_SUBJECT_CLAIMS 4
#define HD_MAX_SUBJECT 255 /* bytes, of one claim and of all of them together */
#define HD_MAX_ALIAS 32
#define HD_MIN_SECRET 32
#define HD_MAX_LEEWAY 60

/* A claim, by name or path, and its required value: one value or one of a list. */
struct hd_claim_rule {
    struct hd_slice path;
    hd_json_val wanted;
};

struct hd_issuer {
    struct hd_slice alias;
    struct hd_slice names[HD_MAX_ISSUER_NAMES]; /* `iss`; may contain "{tid}" */
    size_t name_count;
    struct hd_slice audiences[HD_MAX_ISSUER_NAMES];
    size_t audience_count;
    unsigned algorithms;    /* bit n: enum hd_alg n */
    const char *keys_url;   /* NULL: only a secret */
    struct hd_slice secret; /* empty: only a key set */
    struct hd_slice subjects[HD_MAX_SUBJECT_CLAIMS];
    size_t subject_count;
    struct hd_claim_rule required[HD_MAX_ISSUER_NAMES];
    size_t required_count;
    struct hd_slice organisations; /* empty: no organisations */
    struct hd_claim_rule admin;    /* path empty: no administrators */
    int64_t leeway_s;
    struct hd_slice type; /* empty: any usual one */
    struct hd_keyset keyset;
};

static inline bool hd_issuer_allows(const struct hd_issuer *issuer, enum hd_alg alg)
{
    return alg < HD_ALG_COUNT && (issuer->algorithms >> alg & 1u);
}

/* The issuer whose name equals the token's `iss`; NULL: none. */
struct hd_issuer *hd_issuer_find(struct hd_issuer *issuers, size_t count, const struct hd_jwt *jwt);

/*
 * Checks the claims of a token with a valid signature, at `now_us`, and fills the identity except
 * for its fingerprint. HD_EACCESS, with the reason, or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_issuer_admit(const struct hd_issuer *issuer, const struct hd_jwt *jwt,
                                  const struct hd_principal_key *key, int64_t now_us,
                                  struct hd_identity *identity, const char **reason);

#endif
