#include "auth/principal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "auth/base64url.h"
#include "auth/digest.h"
#include "base/buf.h"
#include "base/error.h"

#define TAKEN 16 /* bytes of the hash */
#define MAX_MESSAGE 65536
#define MAX_CLAIMS 8

static int append_part(struct hd_buf *out, struct hd_slice part)
{
    const unsigned char len[4] = {(unsigned char)(part.len >> 24), (unsigned char)(part.len >> 16),
                                  (unsigned char)(part.len >> 8), (unsigned char)part.len};
    int err = hd_buf_append(out, len, sizeof(len));

    return err ? err : hd_buf_append_slice(out, part);
}

static int append_message(struct hd_buf *out, const char *label, struct hd_slice alias,
                          struct hd_slice subject)
{
    int err = hd_buf_append(out, label, strlen(label) + 1);

    if (!err)
        err = append_part(out, alias);
    return err ? err : append_part(out, subject);
}

static int hash(const struct hd_principal_key *key, struct hd_slice message,
                unsigned char out[HD_SHA256_LEN])
{
    unsigned len = 0;

    if (key->id.len == 0)
        return hd_sha256(message, out);
    if (!HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), (const unsigned char *)message.ptr,
              message.len, out, &len))
        return HD_ENOMEM;
    return 0;
}

int hd_auth_principal_derive(const struct hd_principal_key *key, enum hd_principal_kind kind,
                             struct hd_slice alias, struct hd_slice subject,
                             char out[HD_PRINCIPAL_SIZE])
{
    static const char *const labels[][2] = {
        [HD_PRINCIPAL_PERSON] = {"lgp/0", "lgp/1"},
        [HD_PRINCIPAL_ORGANISATION] = {"lgo/0", "lgo/1"},
    };
    unsigned char digest[HD_SHA256_LEN];
    struct hd_buf message;
    int err;

    hd_buf_init(&message, MAX_MESSAGE);
    err = append_message(&message, labels[kind][key->id.len > 0], alias, subject);
    if (!err)
        err = hash(key, hd_buf_slice(&message), digest);
    hd_buf_fini(&message);
    if (err)
        return err;
    hd_base64url_encode(digest, TAKEN, out);
    out[HD_PRINCIPAL_LEN] = '\0';
    return 0;
}

int hd_subject_join(struct hd_arena *arena, const struct hd_slice *claims, size_t count,
                    struct hd_slice *out)
{
    struct hd_buf text;
    int err = 0;

    if (count == 0 || count > MAX_CLAIMS)
        return HD_EINVAL;
    if (count == 1)
        return hd_arena_copy(arena, claims[0], out);
    hd_buf_init(&text, MAX_MESSAGE);
    for (size_t i = 0; !err && i < count; i++) {
        err = hd_buf_printf(&text, "%zu:", claims[i].len);
        if (!err)
            err = hd_buf_append_slice(&text, claims[i]);
    }
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}
