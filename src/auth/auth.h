/*
 * Turns a request's credentials into an identity. Belongs to the loop.
 *
 * Tokens are verified (jwt.h) with the keys of the issuer whose name equals their `iss`; keys come
 * from the configuration or from a key set that is fetched, cached and renewed (keyset.h). API keys
 * are looked up by id. Verified credentials are cached until they expire, for a limited time.
 *
 * Nothing here does I/O: the host reads secrets, fetches key sets, looks up keys and settles
 * principals (gate/auth_service.c).
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
#define HD_API_KEY_ALIAS "key" /* the issuer of API keys */
/* the issuer of identities that the project's code authenticates */
#define HD_CODE_ALIAS "custom"
#define HD_SHARED_ALIAS "shared" /* of the single compartment shared by all users */
#define HD_API_KEY_ID_LEN 16     /* of its id: base64url, 12 bytes */
#define HD_API_KEY_SECRET_LEN 43

/*
 * Maximum cache time for an API key (another process may revoke it), and for every credential while
 * old principal keys are configured (`heddle rekey` may move its principal).
 */
#define HD_AUTH_RECHECK_US 5000000

enum hd_auth_verdict {
    HD_AUTH_FINE,
    HD_AUTH_MISSING,    /* 401: no credentials */
    HD_AUTH_REFUSED,    /* 401: invalid; one text for all reasons, the log has the reason */
    HD_AUTH_UNAVAILABLE /* 503: the keys are unavailable */
};

/* The result of a check. */
struct hd_auth_result {
    enum hd_auth_verdict verdict;
    struct hd_identity *identity; /* of HD_AUTH_FINE, otherwise NULL */
    const char *reason;           /* for the log alone; NULL: none */
};

/* The result is borrowed for the call: take a reference to its identity. */
typedef void (*hd_auth_fn)(void *ctx, const struct hd_auth_result *result);

/* A stored API key, without its secret. */
struct hd_api_key {
    struct hd_slice id;
    struct hd_slice hash;    /* hexadecimal SHA-256 of the secret part */
    struct hd_slice subject; /* its owner */
    bool is_admin;
    int64_t expires_at; /* 0: never */
    int64_t revoked_at; /* 0: valid */
};

struct hd_auth_host {
    void *ctx;
    int64_t (*now_us)(void *ctx); /* wall clock; replaced in tests */
    /* Fetches a key set; calls hd_auth_fetched() once, asynchronously. */
    int (*fetch)(void *ctx, struct hd_auth *auth, const char *url, void *handle);
    /* Looks up an API key; calls hd_auth_found() once, asynchronously. */
    int (*find_key)(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle);
    /*
     * Runs before an identity is returned: its principals may be those of an old key, and must be
     * in the store. May change them; calls hd_auth_settled() once, asynchronously. HD_READY: they
     * are settled already. NULL: they stay unchanged.
     */
    int (*settle)(void *ctx, struct hd_auth *auth, struct hd_identity *identity, void *handle);
    /*
     * Reads a secret from a file or an environment variable. Called only during hd_auth_create().
     */
    int (*secret)(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct heddle_error *fault);
};

/*
 * `config` is the member `auth` of the configuration (docs/authentication.md), or NULL:
 * authentication is off, hd_auth_is_on() is false, and every request has the empty principal.
 * HD_EINVAL names the invalid member. Borrows the configuration until it is destroyed.
 */
HD_MUST_CHECK int hd_auth_create(hd_json_val config, const struct hd_auth_host *host,
                                 struct hd_auth **out, struct heddle_error *fault);
void hd_auth_destroy(struct hd_auth *auth);
bool hd_auth_is_on(const struct hd_auth *auth);
/*
 * Whether identities with this alias can exist: an issuer's alias, "key", "custom". From any
 * thread.
 */
bool hd_auth_has_alias(const struct hd_auth *auth, struct hd_slice alias);

/*
 * The keys that principals are derived with: the current one, then older ones (rotation). There is
 * always a current one; its id is empty when none is configured. From any thread.
 */
const struct hd_principal_key *hd_auth_key(const struct hd_auth *auth, size_t index);
size_t hd_auth_key_count(const struct hd_auth *auth);

/*
 * `authorization` is the header's value ("Bearer …"), `api_key` that of x-api-key; either may be
 * empty. HD_READY: the result is in *out, and its identity belongs to the caller
 * (hd_identity_unref()). 0: `fn` is called later. HD_ENOMEM: it is not called.
 */
HD_MUST_CHECK int hd_auth_check(struct hd_auth *auth, struct hd_slice authorization,
                                struct hd_slice api_key, hd_auth_fn fn, void *ctx,
                                struct hd_auth_result *out);

/*
 * Whether hd_auth_check() handles a request's credentials: always, unless the project's code
 * authenticates (`path`). Then it handles only API keys and tokens of a configured issuer.
 */
bool hd_auth_is_native(const struct hd_auth *auth, struct hd_slice authorization,
                       struct hd_slice api_key);
struct hd_auth_config;
/* The configuration; from any thread. */
const struct hd_auth_config *hd_auth_settings(const struct hd_auth *auth);

/*
 * Called by the host. `body` empty: the request failed. `max_age_s` < 0: not given in the response.
 */
void hd_auth_fetched(struct hd_auth *auth, void *handle, struct hd_slice body, int64_t max_age_s);
/* `key` NULL: not found. `err` not 0: the lookup failed. */
void hd_auth_found(struct hd_auth *auth, void *handle, const struct hd_api_key *key, int err);

/* HD_EBUSY: the principal is being moved. */
void hd_auth_settled(struct hd_auth *auth, void *handle, int err);

/* Removes an API key from the cache: it was revoked. */
void hd_auth_forget_key(struct hd_auth *auth, struct hd_slice key_id);

#endif
