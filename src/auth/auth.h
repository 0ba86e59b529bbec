/*
 * From a request's credentials to an identity. Belongs to the loop.
 *
 * Tokens are verified (jwt.h) with the keys of the issuer that their `iss` names exactly; keys come
 * from the configuration or from a key set that is fetched, kept and renewed (keyset.h). API keys
 * are looked up by their id. What was verified is remembered until it expires, at most for a while.
 *
 * Nothing here does I/O: the host reads secrets, fetches key sets, looks up keys and settles who a
 * principal is (gate/auth_service.c).
 */
#ifndef HD_AUTH_AUTH_H
#define HD_AUTH_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/identity.h"
#include "auth/principal.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

struct hd_auth;

#define HD_MAX_CREDENTIAL 16384
#define HD_API_KEY_PREFIX "hdk_"
#define HD_API_KEY_ALIAS "key"   /* the issuer of API keys */
#define HD_CODE_ALIAS "custom"   /* the issuer of whom the project's code lets in */
#define HD_SHARED_ALIAS "shared" /* of the one compartment of everybody */
#define HD_API_KEY_ID_LEN 16     /* of its id: base64url, 12 bytes */
#define HD_API_KEY_SECRET_LEN 43

/*
 * What was verified is remembered no longer than this for an API key (another process may revoke
 * it), and for anybody while there are old keys (`heddle rekey` may move its principal).
 */
#define HD_AUTH_RECHECK_US 5000000

enum hd_auth_verdict {
    HD_AUTH_FINE,
    HD_AUTH_MISSING,    /* 401: no credentials */
    HD_AUTH_REFUSED,    /* 401: bad ones; one text for all reasons, the log has the reason */
    HD_AUTH_UNAVAILABLE /* 503: the keys cannot be had now */
};

/* `identity` is borrowed for the call: take a reference. `reason` is for the log alone. */
typedef void (*hd_auth_fn)(void *ctx, enum hd_auth_verdict verdict, struct hd_identity *identity,
                           const char *reason);

/* A stored API key, without what it is made of. */
struct hd_api_key {
    struct hd_slice id;
    struct hd_slice hash;    /* hexadecimal SHA-256 of the secret part */
    struct hd_slice subject; /* whom it stands for */
    bool is_admin;
    int64_t expires_at; /* 0: never */
    int64_t revoked_at; /* 0: it is good */
};

struct hd_auth_host {
    void *ctx;
    int64_t (*now_us)(void *ctx); /* the clock on the wall; tests have their own */
    /* Fetches a key set; later answers with hd_auth_fetched(), once. */
    int (*fetch)(void *ctx, struct hd_auth *auth, const char *url, void *handle);
    /* Looks for an API key; later answers with hd_auth_found(), once. */
    int (*find_key)(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle);
    /*
     * Before an identity is given out: its principals may be those of an old key, and must be
     * known to the store. May change them; later, or at once, answers with hd_auth_settled(),
     * once. NULL: they stay as they are.
     */
    int (*settle)(void *ctx, struct hd_auth *auth, struct hd_identity *identity, void *handle);
    /* A secret's text: of a file, or of a variable of the environment. Only while creating. */
    int (*secret)(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct hd_fault *fault);
};

/*
 * `config` is the member `auth` of the configuration (docs/authentication.md), or NULL: then
 * nobody authenticates, hd_auth_is_on() is false, and everybody is the empty principal.
 * HD_EINVAL says which member is wrong. Borrows the configuration until it is destroyed.
 */
HD_MUST_CHECK int hd_auth_create(hd_json_val config, const struct hd_auth_host *host,
                                 struct hd_auth **out, struct hd_fault *fault);
void hd_auth_destroy(struct hd_auth *auth);
bool hd_auth_is_on(const struct hd_auth *auth);
/* Whether somebody can come with this alias: of an issuer, "key", "custom". From any thread. */
bool hd_auth_has_alias(const struct hd_auth *auth, struct hd_slice alias);

/*
 * The keys principals are derived with: the first one, then older ones (rotation). There is
 * always a first; its id is empty when none is configured. From any thread.
 */
const struct hd_principal_key *hd_auth_key(const struct hd_auth *auth, size_t index);
size_t hd_auth_key_count(const struct hd_auth *auth);

/*
 * `authorization` is the header's value ("Bearer …"), `api_key` that of x-api-key; either may be
 * empty. Answers at once, before this returns, or later. HD_ENOMEM: it will not answer.
 */
HD_MUST_CHECK int hd_auth_check(struct hd_auth *auth, struct hd_slice authorization,
                                struct hd_slice api_key, hd_auth_fn fn, void *ctx);

/*
 * Whether a request's credentials are for hd_auth_check(): always, unless the project's own code
 * authenticates (`path`). Then those are that name an issuer of the configuration, and API keys.
 */
bool hd_auth_is_native(const struct hd_auth *auth, struct hd_slice authorization,
                       struct hd_slice api_key);
struct hd_auth_config;
/* What was configured; from any thread. */
const struct hd_auth_config *hd_auth_settings(const struct hd_auth *auth);

/* For the host. `body` empty: it failed. `max_age_s` < 0: the answer did not say. */
void hd_auth_fetched(struct hd_auth *auth, void *handle, struct hd_slice body, int64_t max_age_s);
/* `key` NULL: there is none. `err` not 0: nobody knows. */
void hd_auth_found(struct hd_auth *auth, void *handle, const struct hd_api_key *key, int err);

/* HD_EBUSY: its principal is being moved. */
void hd_auth_settled(struct hd_auth *auth, void *handle, int err);

/* Forgets what was remembered of an API key: it was revoked. */
void hd_auth_forget_key(struct hd_auth *auth, struct hd_slice key_id);

#endif
