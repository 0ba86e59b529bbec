/*
 * Custom auth: code of the project (`auth.path`) that says who somebody is, and what it may do.
 * The code is in workers (docs/runtime.md: authenticate, authorize); who it lets in becomes an
 * identity like any other, with a principal and a compartment. Belongs to the loop.
 *
 * What the code said of somebody is remembered as `auth.cache` says, by the headers that are named
 * there. A credential that it refuses later is withdrawn: what was opened with it ends.
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

/* How somebody is turned away: what the code said, or what is wrong with it. */
struct hd_auth_refusal {
    int status;
    struct hd_slice detail;
    hd_json_val headers; /* an object of texts, or NULL */
};

/* `identity` NULL: `refusal` says why. Both are borrowed for the call. */
typedef void (*hd_auth_identity_fn)(void *ctx, struct hd_identity *identity,
                                    const struct hd_auth_refusal *refusal);
/* What the code answered; NULL: `refusal` says why not. Borrowed for the call. */
typedef void (*hd_auth_decision_fn)(void *ctx, const struct hd_rt_message *answer,
                                    const struct hd_auth_refusal *refusal);

HD_MUST_CHECK int hd_auth_worker_create(struct hd_app *app, struct hd_auth_service *gate,
                                        const struct hd_auth *auth, struct hd_auth_worker **out);
void hd_auth_worker_destroy(struct hd_auth_worker *worker);

/*
 * Who sends the request. `path_params` is a JSON object. Answers at once, before this returns, or
 * later. An error: it will not answer.
 */
HD_MUST_CHECK int hd_auth_worker_authenticate(struct hd_auth_worker *worker,
                                              const struct hd_http_request *request,
                                              struct hd_slice path_params, hd_auth_identity_fn fn,
                                              void *ctx);

/* `fn` when it is known which handlers there are: at once, before this returns, or later. */
HD_MUST_CHECK int hd_auth_worker_await(struct hd_auth_worker *worker, hd_auth_decision_fn fn,
                                       void *ctx);
/*
 * The most specific handler of an operation, as the worker calls it; empty: there is none. Valid
 * until the loop goes on.
 */
struct hd_slice hd_auth_worker_handler(const struct hd_auth_worker *worker, const char *resource,
                                       const char *action);

struct hd_auth_action {
    const struct hd_identity *who;
    const char *resource;
    const char *action;
    struct hd_slice handler;
    struct hd_slice value; /* JSON */
};

/* Later answers `fn`. An error: it will not. */
HD_MUST_CHECK int hd_auth_worker_authorize(struct hd_auth_worker *worker,
                                           const struct hd_auth_action *question,
                                           hd_auth_decision_fn fn, void *ctx);

/* Whether the code has refused the credential since it let somebody in with it. */
bool hd_auth_worker_is_withdrawn(const struct hd_auth_worker *worker, struct hd_slice fingerprint);

#endif
