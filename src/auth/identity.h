/*
 * The identity of a request's sender.
 *
 * A *principal* is the name of a compartment: 22 characters, the keyed hash of an issuer's alias
 * and a subject. Every stored row belongs to one; the empty principal owns shared rows (and all
 * rows while authentication is off).
 */
#ifndef HD_AUTH_IDENTITY_H
#define HD_AUTH_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_PRINCIPAL_LEN 22
#define HD_PRINCIPAL_SIZE (HD_PRINCIPAL_LEN + 1)
#define HD_MAX_ORGANISATIONS 16

/* Rights on a thread; each role includes the rights of those before it. */
enum hd_role { HD_ROLE_NONE, HD_ROLE_VIEWER, HD_ROLE_EDITOR, HD_ROLE_OWNER };

/* Immutable and reference-counted; safe from any thread. */
struct hd_identity {
    struct hd_slice principal;                                /* empty: authentication is off */
    struct hd_slice issuer;                                   /* its alias; "key" for API keys */
    struct hd_slice subject;                                  /* shown to clients as `owner` */
    struct hd_slice organisations[HD_MAX_ORGANISATIONS];      /* their principals */
    struct hd_slice organisation_names[HD_MAX_ORGANISATIONS]; /* the issuer's names for them */
    size_t organisation_count;
    bool is_admin;
    struct hd_slice key_id;      /* of the API key; empty: a token was used */
    int64_t expires_at;          /* microseconds since 1970; 0: never */
    struct hd_slice fingerprint; /* of the credential: SHA-256, for caches; never shown */
    /* JSON: the user object that the project's code returned; empty: none */
    struct hd_slice user;
    unsigned refs;         /* private */
    struct hd_arena arena; /* private: all of the above */
};

/* With one reference. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_identity *hd_identity_new(void);
struct hd_identity *hd_identity_ref(struct hd_identity *identity);
void hd_identity_unref(struct hd_identity *identity);

#endif
