/*
 * Sign-in with an OpenID issuer (page.sign_in): the address of its login page, and the exchange of
 * a code for a token. The issuers' endpoints are discovered, cached and refreshed.
 *
 * Codes and tokens exist only in memory and only during an exchange. Runs on the loop.
 */
#ifndef HD_GATE_SIGN_IN_H
#define HD_GATE_SIGN_IN_H

#include <stddef.h>
#include <stdint.h>

#include "auth/auth.h"
#include "auth/oidc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_auth_service;
struct hd_client;
struct hd_signer;

/*
 * `list` is the member page.sign_in. HD_EINVAL: `fault` names the invalid member. Borrows
 * everything; the requests of `http` must have ended before it is destroyed.
 */
HD_MUST_CHECK int hd_signer_create(struct hd_auth_service *auth_service, struct hd_client *http,
                                   hd_json_val list, const struct hd_auth_host *host,
                                   struct hd_signer **out, struct heddle_error *fault);
void hd_signer_destroy(struct hd_signer *signer);

/*
 * Waits until discovery has succeeded or failed for every issuer. HD_READY: it has. 0: `fn` is
 * called later. Failed discoveries are retried without a wait.
 */
HD_MUST_CHECK int hd_signer_prepare(struct hd_signer *signer, void (*fn)(void *ctx), void *ctx);

/* NULL after the last. */
const struct hd_sign_in *hd_signer_at(const struct hd_signer *signer, size_t index);
/* The address of the login page; NULL: the issuer is unavailable. */
const char *hd_signer_address(const struct hd_signer *signer, size_t index);

/* The result of an exchange. */
struct hd_signed {
    int status;     /* 200, or the status of the refusal */
    char text[160]; /* its error text */
    int retry_s;    /* 0: a retry is useless */
    struct hd_slice token;
    struct hd_slice refresh_token; /* empty: none */
    int64_t expires_in;            /* seconds; < 0: unknown */
};
typedef void (*hd_signed_fn)(void *ctx, const struct hd_signed *result);

/*
 * `peer` is the client's address: its exchanges are rate limited, since each sends a request to the
 * issuer. HD_READY: refused, the reason is in *out. 0: `fn` is called later; everything is borrowed
 * until then.
 */
HD_MUST_CHECK int hd_signer_exchange(struct hd_signer *signer, struct hd_slice name,
                                     const struct hd_oidc_grant *grant, struct hd_slice peer,
                                     hd_signed_fn fn, void *ctx, struct hd_signed *out);

#endif
