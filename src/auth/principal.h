/*
 * Derives principals: base64url(HMAC-SHA-256(K, message)) truncated to 16 bytes, 22 characters.
 *
 *   message = "lgp/1" 0x00 u32be(len(alias)) alias u32be(len(subject)) subject
 *
 * An organisation is a principal too, with the label "lgo/1". Without a key the label is "lgp/0"
 * ("lgo/0") and the hash plain SHA-256, which hides nothing: for trials only.
 */
#ifndef HD_AUTH_PRINCIPAL_H
#define HD_AUTH_PRINCIPAL_H

#include "auth/identity.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_PRINCIPAL_KEY_LEN 32

struct hd_principal_key {
    struct hd_slice id; /* empty: no key */
    unsigned char bytes[HD_PRINCIPAL_KEY_LEN];
};

enum hd_principal_kind { HD_PRINCIPAL_PERSON, HD_PRINCIPAL_ORGANISATION };

HD_MUST_CHECK int hd_auth_principal_derive(const struct hd_principal_key *key,
                                           enum hd_principal_kind kind, struct hd_slice alias,
                                           struct hd_slice subject, char out[HD_PRINCIPAL_SIZE]);
/*
 * Joins several claims to one subject (Entra: tid, oid): each after its length in decimal and a
 * colon, so that the result is unambiguous. A single claim stays as it is.
 */
HD_MUST_CHECK int hd_subject_join(struct hd_arena *arena, const struct hd_slice *claims,
                                  size_t count, struct hd_slice *out);

#endif
