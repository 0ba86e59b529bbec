/* A header `Heddle-Forwarded` of any JSON with a valid code, which no server writes. */
#ifndef TESTS_UNIT_FORWARDED_SIGN_H
#define TESTS_UNIT_FORWARDED_SIGN_H

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>

#include "auth/base64url.h"
#include "auth/forwarded.h"
#include "base/buf.h"

static inline int sign_part(struct hd_buf *message, struct hd_slice part)
{
    int err = 0;

    for (int shift = 24; !err && shift >= 0; shift -= 8)
        err = hd_buf_append_byte(message, (uint8_t)(part.len >> shift));
    return err ? err : hd_buf_append_slice(message, part);
}

static inline int sign_json(const struct hd_forwarded_key *key, struct hd_slice json,
                            const struct hd_forwarded_target *target, struct hd_buf *out)
{
    unsigned char code[HD_SHA256_LEN];
    struct hd_buf message;
    unsigned len = 0;
    int err = hd_buf_reserve(out, HD_BASE64URL_LEN(json.len) + HD_BASE64URL_LEN(sizeof(code)) + 1);

    if (err)
        return err;
    hd_base64url_encode(json.ptr, json.len, out->ptr);
    out->len = HD_BASE64URL_LEN(json.len);
    hd_buf_init(&message, SIZE_MAX);
    err = sign_part(&message, hd_buf_slice(out));
    if (!err)
        err = sign_part(&message, target->method);
    if (!err)
        err = sign_part(&message, target->path);
    if (!err)
        err = sign_part(&message, target->query);
    if (!err)
        HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), (const unsigned char *)message.ptr,
             message.len, code, &len);
    hd_buf_fini(&message);
    out->ptr[out->len++] = '.';
    hd_base64url_encode(code, sizeof(code), out->ptr + out->len);
    out->len += HD_BASE64URL_LEN(sizeof(code));
    return err;
}

#endif
