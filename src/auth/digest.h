/* SHA-256 of secrets, stored and compared in place of them. */
#ifndef HD_AUTH_DIGEST_H
#define HD_AUTH_DIGEST_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"

#define HD_SHA256_LEN 32
#define HD_SHA256_HEX_LEN 64

HD_MUST_CHECK int hd_sha256(struct hd_slice text, unsigned char out[HD_SHA256_LEN]);
/* The same in hexadecimal, lower case, with a NUL. */
HD_MUST_CHECK int hd_sha256_hex(struct hd_slice text, char out[HD_SHA256_HEX_LEN + 1]);

/* Constant-time comparison; the lengths are not secret. */
bool hd_auth_secret_eq(struct hd_slice a, struct hd_slice b);

#endif
