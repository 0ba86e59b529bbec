/*
 * People who sign in with an issuer (page.sign_in): where they are sent to, and what they come back
 * with is exchanged for a token. The issuers' endpoints are discovered, kept, and renewed.
 *
 * A code or a token is in memory for as long as an exchange takes, and nowhere else. Loop.
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
 * `list` is the member page.sign_in. HD_EINVAL says which member is wrong. Borrows everything; the
 * requests of `http` have ended before it is destroyed.
 */
HD_MUST_CHECK int hd_signer_create(struct hd_auth_service *gate, struct hd_client *http,
                                   hd_json_val list, const struct hd_auth_host *host,
                                   struct hd_signer **out, struct hd_fault *fault);
void hd_signer_destroy(struct hd_signer *signer);

/*
 * `fn`, at once or later: what can be known of all issuers is known; one that failed is asked again
 * meanwhile, but not waited for. An error: it is not called.
 */
HD_MUST_CHECK int hd_signer_prepare(struct hd_signer *signer, void (*fn)(void *ctx), void *ctx);

/* NULL after the last. */
const struct hd_sign_in *hd_signer_at(const struct hd_signer *signer, size_t index);
/* Where people are sent to; NULL: the issuer cannot be asked at the moment. */
const char *hd_signer_address(const struct hd_signer *signer, size_t index);

/* What became of an exchange. */
struct hd_signed {
    int status;     /* 200; otherwise that of the refusal */
    char text[160]; /* its sentence */
    int retry_s;    /* 0: not before something else is done */
    struct hd_slice token;
    struct hd_slice refresh_token; /* empty: none */
    int64_t expires_in;            /* seconds; < 0: the token does not say */
};
typedef void (*hd_signed_fn)(void *ctx, const struct hd_signed *result);

/*
 * Everything is borrowed until `fn` is called, once, at once or later. `peer` is who asks: nobody
 * can make this server ask others often.
 */
void hd_signer_exchange(struct hd_signer *signer, struct hd_slice name,
                        const struct hd_oidc_grant *grant, struct hd_slice peer, hd_signed_fn fn,
                        void *ctx);

#endif
