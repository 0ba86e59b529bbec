/*
 * Authentication of requests: auth/auth.h on the loop, with the store and the HTTP requests it
 * needs. app->auth_service is set when the configuration has `auth`, NULL otherwise.
 *
 * Reasons for refusals are logged (auth.c) at most once per second, without the credential.
 */
#ifndef HD_GATE_AUTH_SERVICE_H
#define HD_GATE_AUTH_SERVICE_H

#include <stdbool.h>

#include "auth/auth.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_app;
struct hd_config;
struct hd_auth_service;
struct hd_auth_worker;
struct hd_signer;

/* Reads the configured keys. HD_EINVAL: `fault` names the invalid member. */
HD_MUST_CHECK int hd_auth_service_create(struct hd_app *app, struct hd_auth_service **out,
                                         struct heddle_error *fault);
/* No check may be pending. */
void hd_auth_service_destroy(struct hd_auth_service *auth_service);

/*
 * hd_auth_check(). HD_READY: the result is in *out, and its identity belongs to the caller. The
 * verdict is HD_AUTH_UNAVAILABLE while the principal is being moved.
 */
HD_MUST_CHECK int hd_auth_service_check(struct hd_auth_service *auth_service,
                                        struct hd_slice authorization, struct hd_slice api_key,
                                        hd_auth_fn fn, void *ctx, struct hd_auth_result *out);

/*
 * For identities that custom auth accepted (auth_worker.h): sets the principal of the identity's
 * compartment and stores its row. HD_READY: the row is known to be stored, so `fn` is not called.
 */
HD_MUST_CHECK int hd_auth_service_settle(struct hd_auth_service *auth_service,
                                         struct hd_identity *identity,
                                         void (*fn)(void *ctx, int err), void *ctx);
/*
 * Replaces alias and subject by those of the compartment: per user, or shared
 * (`auth.compartments`).
 */
void hd_auth_service_compartment(const struct hd_auth_service *auth_service, struct hd_slice *alias,
                                 struct hd_slice *subject);
/* NULL: custom auth is not configured. */
struct hd_auth_worker *hd_auth_service_worker(const struct hd_auth_service *auth_service);
/* NULL: page.sign_in is not configured (sign_in.h). */
struct hd_signer *hd_auth_service_signer(const struct hd_auth_service *auth_service);
/* True if the credential of an identity has been refused since it was accepted. */
bool hd_auth_service_is_withdrawn(const struct hd_auth_service *auth_service,
                                  struct hd_slice fingerprint);

/* Drops a revoked API key from the cache. */
void hd_auth_service_forget_key(struct hd_auth_service *auth_service, struct hd_slice key_id);

/* For records/principals.h; its keys may be read from any thread. */
const struct hd_auth *hd_auth_service_auth(const struct hd_auth_service *auth_service);

/*
 * Checks the configuration's `auth` and reads its keys. HD_EINVAL: `fault` names the invalid
 * member.
 */
HD_MUST_CHECK int hd_auth_service_check_config(const struct hd_config *config,
                                               struct heddle_error *fault);
/* For commands: only the keys that principals are derived from (hd_auth_key()). */
HD_MUST_CHECK int hd_auth_service_keys(const struct hd_config *config, struct hd_auth **out,
                                       struct heddle_error *fault);

#endif
