/*
 * Signed tokens (RFC 7515, 7519): parsing and signature verification. Pure.
 *
 * Nothing in a token is trusted before its signature is verified, except `iss` and `kid`, which
 * choose the key. Headers that contain or refer to keys (jwk, jku, x5c, x5u) are ignored.
 */
#ifndef HD_AUTH_JWT_H
#define HD_AUTH_JWT_H

#include <stdbool.h>
#include <stddef.h>

#include "auth/jwk.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

#define HD_MAX_JWT_MEMBERS 256 /* of one object in it */
#define HD_MAX_JWT_DEPTH 32

struct hd_jwt {
    enum hd_alg alg;
    struct hd_slice kid; /* empty: no key id */
    bool has_kid;
    struct hd_slice type;   /* `typ`; empty: missing */
    hd_json_val payload;    /* an object without duplicate names */
    struct hd_slice issuer; /* `iss` */

    struct hd_slice signed_text; /* of the token, borrowed */
    struct hd_slice signature;
    unsigned char *bytes; /* private, like the two below */
    struct hd_json header_doc;
    struct hd_json payload_doc;
};

/* HD_EINVAL, with the reason, or HD_ENOMEM; nothing to free then. Borrows the token. */
HD_MUST_CHECK int hd_jwt_parse(struct hd_jwt *jwt, struct hd_slice token, const char **reason);
void hd_jwt_fini(struct hd_jwt *jwt);

/* Whether the key, which must fit the algorithm, made the signature. */
bool hd_jwt_is_signed_by(const struct hd_jwt *jwt, const struct hd_jwk *key);
/* The same for HS256, HS384 and HS512. */
bool hd_jwt_is_signed_with(const struct hd_jwt *jwt, struct hd_slice secret);

#endif
