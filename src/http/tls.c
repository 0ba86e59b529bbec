#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/alloc.h"
#include "http/wire.h"

/* Forward secrecy and authenticated encryption; TLS 1.3 always has both. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

struct hd_tls {
    SSL_CTX *ctx;
    char *certificate, *key;
};

/* Adds the system's error if there is one, else OpenSSL's last; neither is secret. */
static int fail_tls(struct heddle_error *fault, const char *what, const char *file)
{
    const char *reason = NULL, *system = NULL;
    unsigned long code;

    while ((code = ERR_get_error()) != 0) {
        if (ERR_SYSTEM_ERROR(code))
            system = strerror(ERR_GET_REASON(code));
        else
            reason = ERR_reason_error_string(code);
    }
    if (system)
        reason = system;
    return hd_error_set(fault, HD_EINVAL, "%s %.200s: %s", what, file,
                        reason ? reason : "cannot be used");
}

/* A key with a passphrase cannot be used: there is no prompt. */
static int no_passphrase(char *buf, int size, int is_writing, void *ctx)
{
    (void)is_writing;
    (void)ctx;
    if (size > 0)
        buf[0] = '\0';
    return -1;
}

/* Only HTTP/1.1 is supported; clients without ALPN get no selection. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *ctx)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int set_up(SSL_CTX *ctx)
{
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* Frees buffers of idle connections. */
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
                   SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1
               ? 0
               : HD_EIO;
}

static int load_context(struct hd_tls *tls, SSL_CTX **out, struct heddle_error *fault)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int err = ctx ? set_up(ctx) : HD_ENOMEM;

    if (!err && SSL_CTX_use_certificate_chain_file(ctx, tls->certificate) != 1)
        err = fail_tls(fault, "the certificate in", tls->certificate);
    if (!err && SSL_CTX_use_PrivateKey_file(ctx, tls->key, SSL_FILETYPE_PEM) != 1)
        err = fail_tls(fault, "the key in", tls->key);
    if (!err && SSL_CTX_check_private_key(ctx) != 1)
        err = fail_tls(fault, "the key in", tls->key);
    if (err) {
        SSL_CTX_free(ctx);
        return err;
    }
    *out = ctx;
    return 0;
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *own = hd_malloc(size);

    if (own)
        memcpy(own, text, size);
    return own;
}

int hd_tls_create(const char *certificate, const char *key, struct hd_tls **out,
                  struct heddle_error *fault)
{
    struct hd_tls *tls = hd_calloc(1, sizeof(*tls));
    int err = HD_ENOMEM;

    if (!tls)
        return HD_ENOMEM;
    tls->certificate = copy(certificate);
    tls->key = copy(key);
    if (tls->certificate && tls->key)
        err = load_context(tls, &tls->ctx, fault);
    if (err) {
        hd_tls_destroy(tls);
        return err;
    }
    *out = tls;
    return 0;
}

void hd_tls_destroy(struct hd_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx);
    hd_free(tls->certificate);
    hd_free(tls->key);
    hd_free(tls);
}

int hd_tls_reload(struct hd_tls *tls, struct heddle_error *fault)
{
    SSL_CTX *ctx;
    int err = load_context(tls, &ctx, fault);

    if (err)
        return err;
    /* Open connections keep a reference to the old one. */
    SSL_CTX_free(tls->ctx);
    tls->ctx = ctx;
    return 0;
}

SSL *hd_tls_new(struct hd_tls *tls)
{
    return SSL_new(tls->ctx);
}
