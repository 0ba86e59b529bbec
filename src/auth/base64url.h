/* Base64 with - and _ and without padding (RFC 4648, section 5), canonical form only. */
#ifndef HD_AUTH_BASE64URL_H
#define HD_AUTH_BASE64URL_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"

#define HD_BASE64URL_LEN(bytes) (((bytes)*8 + 5) / 6)

/* Writes HD_BASE64URL_LEN(len) characters, and no NUL. */
void hd_base64url_encode(const void *bytes, size_t len, char *out);

/*
 * `out` has room for text.len * 3 / 4 bytes. HD_EINVAL: invalid characters, an impossible length,
 * or unused bits at the end that are not 0.
 */
HD_MUST_CHECK int hd_base64url_decode(struct hd_slice text, unsigned char *out, size_t *len);

#endif
