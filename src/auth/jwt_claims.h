/* Checks the claims of a token against the rules of its issuer: type, audience, times. Pure. */
#ifndef HD_AUTH_JWT_CLAIMS_H
#define HD_AUTH_JWT_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/issuer.h"
#include "auth/jwt.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

/*
 * Checks times, type, audience and required claims at `now_us`. *expires_at is the token's expiry
 * with the issuer's leeway. HD_EACCESS with the reason, for the log alone.
 */
HD_MUST_CHECK int hd_jwt_claims_check(const struct hd_issuer *issuer, const struct hd_jwt *jwt,
                                      int64_t now_us, int64_t *expires_at, const char **reason);

/* The member with that name, including dots, or the member that the dotted path leads to. */
hd_json_val hd_jwt_claim_find(hd_json_val payload, struct hd_slice path);
/* Whether the claim of the rule has its value, or one of its values. */
bool hd_jwt_claim_meets(hd_json_val payload, const struct hd_claim_rule *rule);

#endif
