/*
 * Custom auth: code of the project (`auth.path`) that authenticates and authorizes requests. It
 * runs in workers (docs/runtime.md: authenticate, authorize); a user it accepts becomes an ordinary
 * identity with a principal and a compartment. Runs on the loop.
 *
 * Results are cached as `auth.cache` configures, keyed by the headers named there. A credential
 * that the code refuses later is withdrawn: streams opened with it end.
 */
#ifndef HD_GATE_AUTH_WORKER_H
#define HD_GATE_AUTH_WORKER_H

#include <stdbool.h>

#include "auth/auth.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "http/request.h"
#include "runtime/runtime.h"

struct hd_app;
struct hd_arena;
struct hd_auth_service;
struct hd_auth_worker;

/* A refusal: the response of the code, or its failure. */
struct hd_auth_refusal {
    int status;
    struct hd_slice detail;
    hd_json_val headers; /* an object of texts, or NULL */
};

/* The result of an authentication: either an identity or a refusal, the other is NULL. */
struct hd_auth_outcome {
    struct hd_identity *identity;
    const struct hd_auth_refusal *refusal;
};

/* The outcome is borrowed for the call. */
typedef void (*hd_auth_identity_fn)(void *ctx, const struct hd_auth_outcome *outcome);
/* `answer` NULL: `refusal` has the reason. Both are borrowed for the call. */
typedef void (*hd_auth_decision_fn)(void *ctx, const struct hd_rt_message *answer,
                                    const struct hd_auth_refusal *refusal);

HD_MUST_CHECK int hd_auth_worker_create(struct hd_app *app, struct hd_auth_service *auth_service,
                                        const struct hd_auth *auth, struct hd_auth_worker **out);
void hd_auth_worker_destroy(struct hd_auth_worker *worker);

/*
 * Authenticates a request. `path_params` is a JSON object. HD_READY: the result is in *out; its
 * identity belongs to the caller (hd_identity_unref()). 0: `fn` is called later.
 */
HD_MUST_CHECK int hd_auth_worker_authenticate(struct hd_auth_worker *worker,
                                              const struct hd_http_request *request,
                                              struct hd_slice path_params, hd_auth_identity_fn fn,
                                              void *ctx, struct hd_auth_outcome *out);

/*
 * Waits until a worker has reported its handlers. HD_READY: one has; *out is NULL, or the refusal
 * of all requests when the code could not be loaded. 0: `fn` is called later.
 */
HD_MUST_CHECK int hd_auth_worker_await(struct hd_auth_worker *worker, hd_auth_decision_fn fn,
                                       void *ctx, const struct hd_auth_refusal **out);
/*
 * The name of the most specific handler of an operation; empty: none. Valid during this loop
 * callback.
 */
struct hd_slice hd_auth_worker_handler(const struct hd_auth_worker *worker, const char *resource,
                                       const char *action);

struct hd_auth_action {
    const struct hd_identity *identity;
    const char *resource;
    const char *action;
    struct hd_slice handler;
    struct hd_slice value; /* JSON */
};

/* Calls `fn` later. On error it is not called. */
HD_MUST_CHECK int hd_auth_worker_authorize(struct hd_auth_worker *worker,
                                           const struct hd_auth_action *question,
                                           hd_auth_decision_fn fn, void *ctx);

/* True if the code has refused the credential after accepting it. */
bool hd_auth_worker_is_withdrawn(const struct hd_auth_worker *worker, struct hd_slice fingerprint);

#endif
