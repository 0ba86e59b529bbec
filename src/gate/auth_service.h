/*
 * Who is let in: auth/auth.h on the loop, with the store and with the requests it needs. There is
 * one (app->gate) when the configuration has `auth`, and none otherwise.
 *
 * Why somebody was refused is logged (auth.c), at most once in a second, without what was sent.
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

/* Reads the keys that the configuration names. HD_EINVAL says which member is wrong. */
HD_MUST_CHECK int hd_auth_service_create(struct hd_app *app, struct hd_auth_service **out,
                                         struct hd_fault *fault);
/* Nothing may be under way. */
void hd_auth_service_destroy(struct hd_auth_service *gate);

/*
 * hd_auth_check(): answers at once, before this returns, or later. Somebody whose principal is
 * being moved is HD_AUTH_UNAVAILABLE. An error: it will not answer.
 */
HD_MUST_CHECK int hd_auth_service_check(struct hd_auth_service *gate, struct hd_slice authorization,
                                        struct hd_slice api_key, hd_auth_fn fn, void *ctx);

/*
 * For those whom the project's own code lets in (auth_worker.h): the identity gets the principal of
 * its compartment, whose row exists then. `fn` at once, before this returns, or later; an error: it
 * will not be called.
 */
HD_MUST_CHECK int hd_auth_service_settle(struct hd_auth_service *gate, struct hd_identity *identity,
                                         void (*fn)(void *ctx, int err), void *ctx);
/* Whose compartment somebody's is: its own, or that of everybody (`auth.compartments`). */
void hd_auth_service_compartment(const struct hd_auth_service *gate, struct hd_slice *alias,
                                 struct hd_slice *subject);
/* NULL: no code of the project authenticates. */
struct hd_auth_worker *hd_auth_service_worker(const struct hd_auth_service *gate);
/* NULL: nobody can sign in with an issuer (sign_in.h). */
struct hd_signer *hd_auth_service_signer(const struct hd_auth_service *gate);
/* The credential that an identity came with was refused since. */
bool hd_auth_service_is_withdrawn(const struct hd_auth_service *gate, struct hd_slice fingerprint);

/* An API key was revoked: the next time it is looked up again. */
void hd_auth_service_forget_key(struct hd_auth_service *gate, struct hd_slice key_id);

/* For principals of others (records/principals.h); its keys may be read from any thread. */
const struct hd_auth *hd_auth_service_auth(const struct hd_auth_service *gate);

/*
 * Whether the configuration's `auth` is good, and its keys can be read. HD_EINVAL says which member
 * is wrong.
 */
HD_MUST_CHECK int hd_auth_service_check_config(const struct hd_config *config,
                                               struct hd_fault *fault);
/* For commands: the keys that principals are made with (hd_auth_key()), and nothing else of it. */
HD_MUST_CHECK int hd_auth_service_keys(const struct hd_config *config, struct hd_auth **out,
                                       struct hd_fault *fault);

#endif
