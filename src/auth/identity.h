/*
 * Who sends a request, as far as the rest of the server cares.
 *
 * A *principal* is the name of a compartment: 22 characters, the keyed hash of an issuer's alias
 * and a subject. Everything that is stored belongs to one; the empty principal owns what is
 * everybody's (and everything, while nobody authenticates).
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

/* What somebody may do with a thread; each may do what those before it may. */
enum hd_role { HD_ROLE_NONE, HD_ROLE_VIEWER, HD_ROLE_EDITOR, HD_ROLE_OWNER };

/* Never changes once it is made; shared by counting, from any thread. */
struct hd_identity {
    struct hd_slice principal;                                /* empty: nobody authenticates here */
    struct hd_slice issuer;                                   /* its alias; "key" for API keys */
    struct hd_slice subject;                                  /* what clients see as `owner` */
    struct hd_slice organisations[HD_MAX_ORGANISATIONS];      /* their principals */
    struct hd_slice organisation_names[HD_MAX_ORGANISATIONS]; /* as the issuer calls them */
    size_t organisation_count;
    bool is_admin;
    struct hd_slice key_id;      /* of the API key; empty: it was a token */
    int64_t expires_at;          /* microseconds since 1970; 0: never */
    struct hd_slice fingerprint; /* of the credential: SHA-256, for caches; never shown */
    struct hd_slice user;        /* JSON: what the project's code said of it; empty: nothing */
    unsigned refs;               /* private */
    struct hd_arena arena;       /* private: all of the above */
};

/* With one reference. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_identity *hd_identity_new(void);
struct hd_identity *hd_identity_ref(struct hd_identity *identity);
void hd_identity_unref(struct hd_identity *identity);

#endif
