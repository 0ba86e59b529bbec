/*
 * Sign-in with an OpenID Connect issuer: authorization code with PKCE (RFC 6749, RFC 7636), the
 * parsing and formatting part. Reads `page.sign_in` of the configuration, discovery documents and
 * token responses; writes token requests. Pure: gate/sign_in.c does the I/O.
 */
#ifndef HD_AUTH_OIDC_H
#define HD_AUTH_OIDC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/auth.h"
#include "auth/config.h"
#include "auth/issuer.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

#define HD_MAX_SIGN_INS 16
#define HD_MAX_OIDC_BYTES ((size_t)256 << 10) /* of a document or a response */
#define HD_MAX_OIDC_URL 2048
#define HD_MAX_OIDC_CODE 4096
#define HD_MAX_OIDC_REFRESH 8192

/* A configured sign-in. */
struct hd_sign_in {
    struct hd_slice name;           /* shown to users, and used in exchange requests */
    const struct hd_issuer *issuer; /* the issuer of the tokens */
    struct hd_slice client_id;
    struct hd_slice client_secret; /* empty: a public client */
    struct hd_slice scope;
    const char *discovery_url;          /* NULL: both endpoints are configured */
    const char *authorization_endpoint; /* NULL: discovered */
    const char *token_endpoint;         /* NULL: discovered */
};

struct hd_sign_ins {
    struct hd_sign_in *items;
    size_t count;
    struct hd_auth_config own; /* private: where texts are */
};

/*
 * `list` is the member page.sign_in. HD_EINVAL names the member; nothing to free then. Borrows the
 * document and the issuers.
 */
HD_MUST_CHECK int hd_sign_ins_read(struct hd_sign_ins *out, hd_json_val list,
                                   const struct hd_auth_config *auth,
                                   const struct hd_auth_host *host, struct heddle_error *fault);
/* Overwrites secrets. */
void hd_sign_ins_fini(struct hd_sign_ins *sign_ins);

/* An issuer's discovery document. */
struct hd_oidc {
    const char *authorization_endpoint;
    const char *token_endpoint;
    bool wants_secret_in_body; /* it does not accept Basic authentication */
};

/*
 * Parses a discovery document; texts are in the arena. HD_EINVAL, with the reason, unless it names
 * the issuer, has both endpoints at secure URLs and supports PKCE. HD_ENOMEM.
 */
HD_MUST_CHECK int hd_oidc_read(struct hd_oidc *out, struct hd_slice text,
                               const struct hd_sign_in *sign_in, struct hd_arena *arena,
                               const char **reason);

/* A code or refresh token to exchange for tokens. */
struct hd_oidc_grant {
    struct hd_slice code, verifier, redirect_uri;
    struct hd_slice refresh_token; /* empty: a code */
};

/* NULL: valid; otherwise the reason. */
const char *hd_oidc_complaint(const struct hd_oidc_grant *grant);

/* The body of the request to the token endpoint, application/x-www-form-urlencoded. */
HD_MUST_CHECK int hd_oidc_form(struct hd_buf *out, const struct hd_sign_in *sign_in,
                               const struct hd_oidc_grant *grant, bool has_secret_in_body);
/* "Authorization: Basic …". */
HD_MUST_CHECK int hd_oidc_basic(struct hd_buf *out, const struct hd_sign_in *sign_in);

struct hd_oidc_tokens {
    struct hd_slice access_token, id_token, refresh_token; /* empty: none */
    char error[64];                                        /* the issuer's error code; "": none */
};

/* Parses a response of the token endpoint, of any status; borrows `json`. HD_EINVAL: invalid. */
HD_MUST_CHECK int hd_oidc_tokens_read(struct hd_oidc_tokens *out, hd_json_val answer);

#endif
