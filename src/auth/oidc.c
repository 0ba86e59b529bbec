#include "auth/oidc.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "auth/config_internal.h"

#define WELL_KNOWN "/.well-known/openid-configuration"
#define SCOPE HD_S("openid profile")
#define MAX_NAME 64
#define MAX_CLIENT 512
#define MIN_VERIFIER 43
#define MAX_VERIFIER 128
#define MAX_ARENA ((size_t)1 << 20)

/* ---- configuration ---------------------------------------------------- */

static const struct hd_issuer *find_issuer(const struct hd_auth_config *auth, struct hd_slice alias)
{
    for (size_t i = 0; i < auth->issuer_count; i++) {
        if (hd_slice_eq(auth->issuers[i].alias, alias))
            return &auth->issuers[i];
    }
    return NULL;
}

static int read_issuer(const struct hd_auth_place *at, const struct hd_auth_config *auth,
                       struct hd_sign_in *out)
{
    struct hd_slice alias;
    int err = hd_auth_text(at, HD_MAX_ALIAS, &alias);

    if (err)
        return err;
    out->issuer = find_issuer(auth, alias);
    return out->issuer ? 0 : hd_auth_fail(at, "is not an alias in auth.issuers");
}

/* Shown to users and used in exchange requests; defaults to the issuer's alias. */
static int read_name(const struct hd_auth_place *at, const struct hd_sign_ins *all,
                     struct hd_sign_in *out)
{
    int err = 0;

    out->name = out->issuer->alias;
    if (at->val)
        err = hd_auth_text(at, MAX_NAME, &out->name);
    for (size_t i = 0; !err && i < all->count; i++) {
        if (hd_slice_eq(all->items[i].name, out->name))
            err = hd_auth_fail(at, "is the name of another entry");
    }
    return err;
}

/* A text, or its source: {"env"} or {"file"}. */
static int read_client_secret(const struct hd_auth_place *at, struct hd_sign_in *out)
{
    static const char *const known[] = {"file", "env", NULL};
    struct hd_slice text;
    int err;

    if (!at->val)
        return 0;
    if (hd_json_is_string(at->val)) {
        err = hd_auth_text(at, MAX_CLIENT, &text);
        /* A separate copy, which can be overwritten. */
        if (!err && hd_arena_copy(&at->reader->config->arena, text, &out->client_secret))
            err = hd_auth_fail_memory(at);
        return err;
    }
    err = hd_auth_members(at, known);
    if (!err)
        err = hd_auth_secret(at, &out->client_secret);
    if (err)
        return err;
    out->client_secret = hd_auth_trim(out->client_secret);
    if (out->client_secret.len == 0 || out->client_secret.len > MAX_CLIENT)
        return hd_auth_fail(at, "is empty, or too long");
    return 0;
}

static int read_endpoint(const struct hd_auth_place *at, const char **out)
{
    struct hd_slice text;
    const char *why;
    int err;

    if (!at->val)
        return 0;
    err = hd_auth_text(at, HD_MAX_OIDC_URL, &text);
    if (err)
        return err;
    why = hd_auth_url_complaint(text.ptr);
    *out = text.ptr;
    return why ? hd_auth_fail(at, why) : 0;
}

/* Without endpoints, use the discovery document below the issuer's name. */
static int set_discovery(const struct hd_auth_place *at, struct hd_sign_in *out)
{
    struct hd_slice name = out->issuer->names[0];
    char *url;

    if (!out->authorization_endpoint != !out->token_endpoint)
        return hd_auth_fail(
            at, "must have both `authorization_endpoint` and `token_endpoint`, or neither");
    if (out->token_endpoint)
        return 0;
    while (name.len > 0 && name.ptr[name.len - 1] == '/')
        name.len--;
    url = hd_arena_printf(&at->reader->config->arena, "%.*s" WELL_KNOWN, (int)name.len, name.ptr);
    if (!url)
        return hd_auth_fail_memory(at);
    if (hd_auth_url_complaint(url) || strchr(url, '{'))
        return hd_auth_fail(at, "needs `authorization_endpoint` and `token_endpoint`: its issuer "
                                "is not an https URL");
    out->discovery_url = url;
    return 0;
}

static int read_sign_in(const struct hd_auth_place *at, const struct hd_auth_config *auth,
                        const struct hd_sign_ins *all, struct hd_sign_in *out)
{
    static const char *const known[] = {"issuer",         "name",  "client_id",
                                        "client_secret",  "scope", "authorization_endpoint",
                                        "token_endpoint", NULL};
    struct hd_auth_place issuer = hd_auth_in(at, "issuer"), name = hd_auth_in(at, "name");
    struct hd_auth_place client = hd_auth_in(at, "client_id"), scope = hd_auth_in(at, "scope");
    struct hd_auth_place secret = hd_auth_in(at, "client_secret");
    struct hd_auth_place where = hd_auth_in(at, "authorization_endpoint");
    struct hd_auth_place token = hd_auth_in(at, "token_endpoint");
    int err = hd_auth_members(at, known);

    out->scope = SCOPE;
    if (!err)
        err = read_issuer(&issuer, auth, out);
    if (!err)
        err = read_name(&name, all, out);
    if (!err)
        err = hd_auth_text(&client, MAX_CLIENT, &out->client_id);
    if (!err && scope.val)
        err = hd_auth_text(&scope, MAX_CLIENT, &out->scope);
    if (!err)
        err = read_client_secret(&secret, out);
    if (!err)
        err = read_endpoint(&where, &out->authorization_endpoint);
    if (!err)
        err = read_endpoint(&token, &out->token_endpoint);
    return err ? err : set_discovery(at, out);
}

static int read_sign_ins(const struct hd_auth_place *at, const struct hd_auth_config *auth,
                         struct hd_sign_ins *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    if (!hd_json_is_array(at->val) || hd_json_size(at->val) > HD_MAX_SIGN_INS)
        return hd_auth_fail(at, "must be a list of at most 16 entries");
    out->items = hd_arena_calloc(&out->own.arena, hd_json_size(at->val) + 1, sizeof(*out->items));
    if (!out->items)
        return hd_auth_fail_memory(at);
    while (!err && hd_json_next(&it)) {
        struct hd_auth_place item = hd_auth_item(at, out->count, it.val);

        err = read_sign_in(&item, auth, out, &out->items[out->count]);
        out->count++; /* counted before the check: an invalid one may hold a secret */
    }
    return err;
}

int hd_sign_ins_read(struct hd_sign_ins *out, hd_json_val list, const struct hd_auth_config *auth,
                     const struct hd_auth_host *host, struct heddle_error *fault)
{
    struct hd_auth_reader reader = {&out->own, host, fault};
    struct hd_auth_place at = {.reader = &reader, .path = "page.sign_in", .val = list};
    int err;

    *out = (struct hd_sign_ins){0};
    hd_arena_init(&out->own.arena, MAX_ARENA);
    err = read_sign_ins(&at, auth, out);
    if (err)
        hd_sign_ins_fini(out);
    return err;
}

void hd_sign_ins_fini(struct hd_sign_ins *sign_ins)
{
    for (size_t i = 0; i < sign_ins->count; i++) {
        struct hd_slice secret = sign_ins->items[i].client_secret;

        if (secret.len > 0)
            OPENSSL_cleanse((char *)secret.ptr, secret.len);
    }
    hd_arena_fini(&sign_ins->own.arena);
    *sign_ins = (struct hd_sign_ins){0};
}

/* ---- discovery -------------------------------------------------------- */

/* `list` may be missing: then returns `otherwise`. */
static bool lists(hd_json_val list, struct hd_slice word, bool otherwise)
{
    struct hd_json_iter it = hd_json_iter(list);

    if (!hd_json_is_array(list))
        return otherwise;
    while (hd_json_next(&it)) {
        if (hd_slice_eq(hd_json_string(it.val), word))
            return true;
    }
    return false;
}

static bool is_name_of(const struct hd_issuer *issuer, struct hd_slice name)
{
    for (size_t i = 0; i < issuer->name_count; i++) {
        if (hd_slice_eq(issuer->names[i], name))
            return true;
    }
    return false;
}

/* A remote issuer must not name endpoints on this machine. */
static bool is_elsewhere(const struct hd_sign_in *sign_in)
{
    return sign_in->discovery_url && strncmp(sign_in->discovery_url, "https://", 8) == 0;
}

static int copy_endpoint(hd_json_val root, const char *name, const struct hd_sign_in *sign_in,
                         struct hd_arena *arena, const char **out)
{
    struct hd_slice text = hd_json_string(hd_json_get(root, hd_slice_cstr(name)));
    char *copy;

    if (text.len == 0 || text.len > HD_MAX_OIDC_URL || memchr(text.ptr, '\0', text.len))
        return HD_EINVAL;
    copy = hd_arena_printf(arena, "%.*s", (int)text.len, text.ptr);
    if (!copy)
        return HD_ENOMEM;
    *out = copy;
    if (is_elsewhere(sign_in) && strncmp(copy, "https://", 8) != 0)
        return HD_EINVAL;
    return hd_auth_url_complaint(copy) ? HD_EINVAL : 0;
}

static int read_document(struct hd_oidc *out, hd_json_val root, const struct hd_sign_in *sign_in,
                         struct hd_arena *arena, const char **reason)
{
    hd_json_val methods = hd_json_get(root, HD_S("token_endpoint_auth_methods_supported"));
    hd_json_val challenges = hd_json_get(root, HD_S("code_challenge_methods_supported"));
    int err;

    *reason = "its issuer is another one";
    if (!is_name_of(sign_in->issuer, hd_json_string(hd_json_get(root, HD_S("issuer")))))
        return HD_EINVAL;
    *reason = "its issuer does not support PKCE with S256";
    if (!lists(challenges, HD_S("S256"), true))
        return HD_EINVAL;
    *reason = "its authorization_endpoint is not an https URL";
    err =
        copy_endpoint(root, "authorization_endpoint", sign_in, arena, &out->authorization_endpoint);
    if (err)
        return err;
    *reason = "its token_endpoint is not an https URL";
    err = copy_endpoint(root, "token_endpoint", sign_in, arena, &out->token_endpoint);
    /* Basic is the default when the document has no list. */
    out->wants_secret_in_body = !lists(methods, HD_S("client_secret_basic"), true) &&
                                lists(methods, HD_S("client_secret_post"), false);
    return err;
}

int hd_oidc_read(struct hd_oidc *out, struct hd_slice text, const struct hd_sign_in *sign_in,
                 struct hd_arena *arena, const char **reason)
{
    struct hd_oidc found = {0};
    struct hd_json json;
    int err;

    *reason = "it is not JSON";
    if (text.len == 0 || text.len > HD_MAX_OIDC_BYTES)
        return HD_EINVAL;
    err = hd_json_parse(&json, text, NULL);
    if (err)
        return err == HD_ENOMEM ? err : HD_EINVAL;
    err = read_document(&found, hd_json_root(&json), sign_in, arena, reason);
    hd_json_fini(&json);
    if (!err)
        *out = found;
    return err;
}

/* ---- requests --------------------------------------------------------- */

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static bool is_verifier(struct hd_slice text)
{
    if (text.len < MIN_VERIFIER || text.len > MAX_VERIFIER)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_unreserved(text.ptr[i]))
            return false;
    }
    return true;
}

static bool is_printable(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] > '~')
            return false;
    }
    return true;
}

const char *hd_oidc_complaint(const struct hd_oidc_grant *grant)
{
    struct hd_slice uri = grant->redirect_uri;

    if (grant->refresh_token.len > 0) {
        if (grant->code.len > 0)
            return "code and refresh_token exclude each other";
        return grant->refresh_token.len > HD_MAX_OIDC_REFRESH || !is_printable(grant->refresh_token)
                   ? "refresh_token: is invalid"
                   : NULL;
    }
    if (grant->code.len == 0)
        return "a code or a refresh_token is required";
    if (grant->code.len > HD_MAX_OIDC_CODE || !is_printable(grant->code))
        return "code: is invalid";
    if (!is_verifier(grant->verifier))
        return "code_verifier: must be 43 to 128 letters, digits, \"-\", \".\", \"_\" and \"~\"";
    if (uri.len > HD_MAX_OIDC_URL || !is_printable(uri) ||
        memchr(uri.ptr ? uri.ptr : "", '#', uri.len) ||
        !(hd_slice_starts(uri, HD_S("https://")) || hd_slice_starts(uri, HD_S("http://"))))
        return "redirect_uri: must be the address of the page";
    return NULL;
}

static int put_encoded(struct hd_buf *out, struct hd_slice text)
{
    int err = 0;

    for (size_t i = 0; !err && i < text.len; i++) {
        if (is_unreserved(text.ptr[i]))
            err = hd_buf_append(out, &text.ptr[i], 1);
        else
            err = hd_buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.ptr[i]);
    }
    return err;
}

/* Appends and collects errors in `err`: 0 until something fails. */
static int put_field(struct hd_buf *out, const char *name, struct hd_slice value, int err)
{
    if (!err)
        err = hd_buf_printf(out, "&%s=", name);
    return err ? err : put_encoded(out, value);
}

int hd_oidc_form(struct hd_buf *out, const struct hd_sign_in *sign_in,
                 const struct hd_oidc_grant *grant, bool has_secret_in_body)
{
    bool is_refresh = grant->refresh_token.len > 0;
    bool is_public = sign_in->client_secret.len == 0;
    int err = hd_buf_append_slice(out, is_refresh ? HD_S("grant_type=refresh_token")
                                                  : HD_S("grant_type=authorization_code"));

    if (is_refresh) {
        err = put_field(out, "refresh_token", grant->refresh_token, err);
        err = put_field(out, "scope", sign_in->scope, err);
    } else {
        err = put_field(out, "code", grant->code, err);
        err = put_field(out, "code_verifier", grant->verifier, err);
        err = put_field(out, "redirect_uri", grant->redirect_uri, err);
    }
    if (is_public || has_secret_in_body)
        err = put_field(out, "client_id", sign_in->client_id, err);
    if (!is_public && has_secret_in_body)
        err = put_field(out, "client_secret", sign_in->client_secret, err);
    return err;
}

int hd_oidc_basic(struct hd_buf *out, const struct hd_sign_in *sign_in)
{
    struct hd_buf pair;
    int err;

    hd_buf_init(&pair, (size_t)8 * MAX_CLIENT);
    err = put_encoded(&pair, sign_in->client_id);
    if (!err)
        err = hd_buf_append_slice(&pair, HD_S(":"));
    if (!err)
        err = put_encoded(&pair, sign_in->client_secret);
    if (!err)
        err = hd_buf_append_slice(out, HD_S("Authorization: Basic "));
    if (!err)
        err = hd_buf_reserve(out, (pair.len + 2) / 3 * 4 + 1);
    if (!err)
        out->len += (size_t)EVP_EncodeBlock((unsigned char *)out->ptr + out->len,
                                            (const unsigned char *)pair.ptr, (int)pair.len);
    hd_buf_fini_secret(&pair);
    return err;
}

/* ---- responses -------------------------------------------------------- */

static struct hd_slice token_of(hd_json_val answer, const char *name)
{
    struct hd_slice text = hd_json_string(hd_json_get(answer, hd_slice_cstr(name)));

    return text.len <= HD_MAX_CREDENTIAL && is_printable(text) ? text : HD_S("");
}

/* An error code such as invalid_grant. It is shown, so it is restricted to safe characters. */
static void read_error(char out[64], struct hd_slice word)
{
    out[0] = '\0';
    if (word.len >= 64)
        return;
    for (size_t i = 0; i < word.len; i++) {
        if (!is_unreserved(word.ptr[i]))
            return;
    }
    (void)snprintf(out, 64, "%.*s", (int)word.len, word.len > 0 ? word.ptr : "");
}

int hd_oidc_tokens_read(struct hd_oidc_tokens *out, hd_json_val answer)
{
    *out = (struct hd_oidc_tokens){0};
    if (!hd_json_is_object(answer))
        return HD_EINVAL;
    out->access_token = token_of(answer, "access_token");
    out->id_token = token_of(answer, "id_token");
    out->refresh_token = token_of(answer, "refresh_token");
    if (out->refresh_token.len > HD_MAX_OIDC_REFRESH)
        out->refresh_token = HD_S("");
    read_error(out->error, hd_json_string(hd_json_get(answer, HD_S("error"))));
    return out->access_token.len > 0 || out->id_token.len > 0 || out->error[0] ? 0 : HD_EINVAL;
}
