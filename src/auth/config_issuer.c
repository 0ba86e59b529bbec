#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "auth/config_internal.h"

/* ---- key sources ------------------------------------------------------ */

static bool is_loopback(struct hd_slice host)
{
    static const struct hd_slice names[] = {HD_S_INIT("localhost"), HD_S_INIT("[::1]")};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (host.len == names[i].len && strncasecmp(host.ptr, names[i].ptr, host.len) == 0)
            return true;
    }
    /* An address, not a name that begins like one. */
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9'))
            return false;
    }
    return hd_slice_starts(host, HD_S("127."));
}

static struct hd_slice url_host(const char *rest)
{
    size_t len = *rest == '[' ? strcspn(rest, "]/?#") + 1 : strcspn(rest, ":/?#");

    return hd_slice(rest, len);
}

/*
 * Keys from the URL are trusted, so the connection must be safe from tampering: https, or loopback.
 */
const char *hd_auth_url_complaint(const char *url)
{
    bool is_secure = strncmp(url, "https://", 8) == 0;
    const char *rest = is_secure ? url + 8 : url + 7;

    if (!is_secure && strncmp(url, "http://", 7) != 0)
        return "must be an https URL";
    for (const char *c = url; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return "is not a URL";
    }
    if (url_host(rest).len == 0 || memchr(rest, '@', strcspn(rest, "/?#")))
        return "must have a host, and no password";
    if (!is_secure && !is_loopback(url_host(rest)))
        return "must be an https URL (http only for loopback)";
    return NULL;
}

static int check_url(const struct hd_auth_place *at, const char *url)
{
    const char *why = hd_auth_url_complaint(url);

    return why ? hd_auth_fail(at, why) : 0;
}

static int read_secret(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    static const char *const known[] = {"file", "env", NULL};
    int err = hd_auth_members(at, known);

    if (!err)
        err = hd_auth_secret(at, &issuer->secret);
    if (err)
        return err;
    issuer->secret = hd_auth_trim(issuer->secret);
    if (issuer->secret.len < HD_MIN_SECRET)
        return hd_auth_fail(at, "is too short: a shared secret needs at least 32 bytes");
    return 0;
}

static unsigned secret_algorithms(void)
{
    return 1u << HD_HS256 | 1u << HD_HS384 | 1u << HD_HS512;
}

static int read_key_sources(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    struct hd_auth_place url = hd_auth_in(at, "jwks_url"), secret = hd_auth_in(at, "secret");
    struct hd_auth_place algorithms = hd_auth_in(at, "algorithms");
    bool needs_secret = issuer->algorithms & secret_algorithms();
    bool needs_url = issuer->algorithms & ~secret_algorithms();
    struct hd_slice text = HD_S("");
    int err = 0;

    if (url.val)
        err = hd_auth_text(&url, HD_AUTH_MAX_TEXT, &text);
    if (!err && url.val) {
        issuer->keys_url = text.ptr;
        err = check_url(&url, text.ptr);
    }
    if (!err && secret.val)
        err = read_secret(&secret, issuer);
    if (!err && needs_secret != (secret.val != NULL))
        err = hd_auth_fail(needs_secret ? &secret : &algorithms,
                           needs_secret ? "is missing: HS256, HS384 and HS512 need one"
                                        : "has no algorithm that needs `secret`");
    if (!err && needs_url != (url.val != NULL))
        err = hd_auth_fail(needs_url ? &url : &algorithms,
                           needs_url ? "is missing: the algorithms need public keys"
                                     : "has no algorithm that needs public keys");
    return err;
}

static int read_algorithms(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    struct hd_slice names[HD_ALG_COUNT];
    size_t count;
    int err;

    err = hd_auth_texts(at, HD_COUNT(names), names, &count);
    for (size_t i = 0; !err && i < count; i++) {
        enum hd_alg alg = hd_alg_find(names[i]);

        if (alg == HD_ALG_COUNT)
            return hd_error_set(
                at->reader->fault, HD_EINVAL,
                "%s: \"%.*s\" is not one of HS256, HS384, HS512, RS256, RS384, RS512, "
                "PS256, PS384, PS512, ES256, ES384, EdDSA",
                at->path, (int)(names[i].len < 32 ? names[i].len : 32), names[i].ptr);
        issuer->algorithms |= 1u << alg;
    }
    return err;
}

/* ---- required claims -------------------------------------------------- */

static bool is_scalar_claim(hd_json_val val)
{
    return hd_json_is_string(val) || hd_json_is_number(val) || hd_json_is_bool(val);
}

static int check_wanted(const struct hd_auth_place *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);

    if (is_scalar_claim(at->val))
        return 0;
    if (!hd_json_is_array(at->val) || hd_json_size(at->val) == 0)
        return hd_auth_fail(at, "must be a string, number or boolean, or a list of them");
    while (hd_json_next(&it)) {
        if (!is_scalar_claim(it.val))
            return hd_auth_fail(at, "must be a list of strings, numbers or booleans");
    }
    return 0;
}

static int read_required(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    if (!at->val)
        return 0;
    if (!hd_json_is_object(at->val))
        return hd_auth_fail(at, "must be an object of claims and their values");
    while (!err && hd_json_next(&it)) {
        struct hd_auth_place claim = *at;

        if (issuer->required_count == HD_MAX_ISSUER_NAMES || it.key.len == 0)
            return hd_auth_fail(at, "has too many claims, or one without a name");
        (void)snprintf(claim.path, sizeof(claim.path), "%.70s.%.*s", at->path,
                       (int)(it.key.len < 48 ? it.key.len : 48), it.key.ptr);
        claim.val = it.val;
        err = check_wanted(&claim);
        issuer->required[issuer->required_count++] = (struct hd_claim_rule){it.key, it.val};
    }
    return err;
}

static int read_admin(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    static const char *const known[] = {"claim", "value", NULL};
    struct hd_auth_place claim = hd_auth_in(at, "claim"), value = hd_auth_in(at, "value");
    int err;

    if (!at->val)
        return 0;
    err = hd_auth_members(at, known);
    if (!err)
        err = hd_auth_text(&claim, HD_AUTH_MAX_TEXT, &issuer->admin.path);
    issuer->admin.wanted = value.val;
    return err ? err : check_wanted(&value);
}

static int read_subjects(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    issuer->subjects[0] = HD_S("sub");
    issuer->subject_count = 1;
    if (!at->val)
        return 0;
    return hd_auth_texts(at, HD_MAX_SUBJECT_CLAIMS, issuer->subjects, &issuer->subject_count);
}

static int read_rules(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    struct hd_auth_place subject = hd_auth_in(at, "subject"), require = hd_auth_in(at, "require");
    struct hd_auth_place organisations = hd_auth_in(at, "organisations");
    struct hd_auth_place admin = hd_auth_in(at, "admin"), leeway = hd_auth_in(at, "leeway");
    struct hd_auth_place type = hd_auth_in(at, "type");
    int err = read_subjects(&subject, issuer);

    if (!err)
        err = read_required(&require, issuer);
    if (!err && organisations.val)
        err = hd_auth_text(&organisations, HD_AUTH_MAX_TEXT, &issuer->organisations);
    if (!err)
        err = read_admin(&admin, issuer);
    if (!err)
        err = hd_auth_number(&leeway, HD_MAX_LEEWAY, &issuer->leeway_s);
    if (!err && type.val)
        err = hd_auth_text(&type, 64, &issuer->type);
    return err;
}

/* ---- identity claims -------------------------------------------------- */

static bool is_alias(struct hd_slice alias)
{
    for (size_t i = 0; i < alias.len; i++) {
        char c = alias.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return alias.len > 0;
}

static int read_alias(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    const struct hd_auth_config *config = at->reader->config;
    int err = hd_auth_text(at, HD_MAX_ALIAS, &issuer->alias);

    if (err)
        return err;
    if (!is_alias(issuer->alias))
        return hd_auth_fail(at, "must consist of letters, digits, \"-\", \"_\" and \".\"");
    if (hd_slice_eq(issuer->alias, HD_S(HD_API_KEY_ALIAS)))
        return hd_auth_fail(at, "\"" HD_API_KEY_ALIAS "\" is the alias of API keys");
    if (config->has_code && (hd_slice_eq(issuer->alias, HD_S(HD_CODE_ALIAS)) ||
                             hd_slice_eq(issuer->alias, HD_S(HD_SHARED_ALIAS))))
        return hd_auth_fail(at, "is reserved for users of auth.path");
    for (size_t i = 0; i < config->issuer_count; i++) {
        if (hd_slice_eq(config->issuers[i].alias, issuer->alias))
            return hd_auth_fail(at, "is the alias of another issuer");
    }
    return 0;
}

static bool is_taken(const struct hd_auth_config *config, struct hd_slice name)
{
    for (size_t i = 0; i < config->issuer_count; i++) {
        for (size_t n = 0; n < config->issuers[i].name_count; n++) {
            if (hd_slice_eq(config->issuers[i].names[n], name))
                return true;
        }
    }
    return false;
}

static int read_names(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    int err = hd_auth_texts(at, HD_MAX_ISSUER_NAMES, issuer->names, &issuer->name_count);

    for (size_t i = 0; !err && i < issuer->name_count; i++) {
        if (is_taken(at->reader->config, issuer->names[i]))
            err = hd_auth_fail(at, "is the issuer of another entry");
    }
    return err;
}

static int read_issuer(const struct hd_auth_place *at, struct hd_issuer *issuer)
{
    static const char *const known[] = {
        "alias",   "issuer",        "audience", "algorithms", "jwks_url", "secret", "subject",
        "require", "organisations", "admin",    "leeway",     "type",     NULL};
    struct hd_auth_place alias = hd_auth_in(at, "alias"), names = hd_auth_in(at, "issuer");
    struct hd_auth_place audience = hd_auth_in(at, "audience");
    struct hd_auth_place algorithms = hd_auth_in(at, "algorithms");
    int err = hd_auth_members(at, known);

    if (!err)
        err = read_alias(&alias, issuer);
    if (!err)
        err = read_names(&names, issuer);
    if (!err)
        err = hd_auth_texts(&audience, HD_MAX_ISSUER_NAMES, issuer->audiences,
                            &issuer->audience_count);
    if (!err)
        err = read_algorithms(&algorithms, issuer);
    if (!err)
        err = read_key_sources(at, issuer);
    return err ? err : read_rules(at, issuer);
}

int hd_auth_issuers(const struct hd_auth_place *at)
{
    struct hd_auth_config *config = at->reader->config;
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    if (!hd_json_is_array(at->val) || hd_json_size(at->val) > HD_MAX_ISSUERS)
        return hd_auth_fail(at, "must be a list of at most 64 issuers");
    config->issuers =
        hd_arena_calloc(&config->arena, hd_json_size(at->val) + 1, sizeof(*config->issuers));
    if (!config->issuers)
        return hd_auth_fail_memory(at);
    while (!err && hd_json_next(&it)) {
        struct hd_auth_place item = hd_auth_item(at, config->issuer_count, it.val);

        err = read_issuer(&item, &config->issuers[config->issuer_count]);
        config->issuer_count += !err;
    }
    return err;
}
