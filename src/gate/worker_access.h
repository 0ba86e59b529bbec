/*
 * How the code of a worker reaches this server while the server's call to it is open: an address
 * and, where users authenticate, a pass: a random credential that stands for the caller. A pass
 * lives in memory alone and ends with the call. Everything here belongs to the loop.
 */
#ifndef HD_GATE_WORKER_ACCESS_H
#define HD_GATE_WORKER_ACCESS_H

#include "auth/identity.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "value/val.h"

/* Named as a secret: such headers are neither logged nor given to graphs. */
#define HD_WORKER_ACCESS_HEADER HD_S("heddle-run-token")

struct hd_app;
struct hd_worker_access;

/*
 * Takes a reference; `identity` NULL: requests need credentials of their own. `is_inner`: the
 * middleware of the project's application has seen the request already.
 */
HD_MUST_CHECK int hd_worker_access_open(struct hd_app *app, struct hd_identity *identity,
                                        bool is_inner, struct hd_worker_access **out);
/*
 * The same for a run after its request has ended, as the user who started it (`actor`), as its
 * `configurable` describes it, without an administrator's rights. *out is NULL without
 * authentication.
 */
HD_MUST_CHECK int hd_worker_access_open_run(struct hd_app *app, struct hd_slice actor,
                                            const struct hd_val *configurable,
                                            struct hd_worker_access **out);
/* NULL is fine. */
void hd_worker_access_close(struct hd_worker_access *pass);

/* NULL: the token is none, or has ended. Borrowed until the loop goes on. */
const struct hd_worker_access *hd_worker_access_find(const struct hd_app *app,
                                                     struct hd_slice token);
/* NULL: the pass names no caller. Borrowed. */
struct hd_identity *hd_worker_access_identity(const struct hd_worker_access *pass);
bool hd_worker_access_is_inner(const struct hd_worker_access *pass);

/* The member `api` of a call: {"url", "pass"}; nothing before the server listens. */
void hd_worker_access_put(struct hd_jw *jw, const struct hd_app *app,
                          const struct hd_worker_access *pass);

#endif
