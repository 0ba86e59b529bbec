/* Reads keys and global settings; config_issuer.c reads the issuers. */
#include "auth/config.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "auth/base64url.h"
#include "auth/config_internal.h"

#define MAX_SECRET 65536
#define MAX_ARENA ((size_t)4 << 20)
#define MAX_CACHE_SECONDS 86400
#define CACHE_SECONDS 300
#define CACHE_SIZE 1000
#define MAX_CACHE_SIZE 1000000
#define SECOND INT64_C(1000000)

/* ---- paths ------------------------------------------------------------ */

struct hd_auth_place hd_auth_in(const struct hd_auth_place *at, const char *name)
{
    struct hd_auth_place in = *at;

    (void)snprintf(in.path, sizeof(in.path), "%.80s.%.40s", at->path, name);
    in.val = hd_json_get(at->val, hd_slice_cstr(name));
    return in;
}

struct hd_auth_place hd_auth_item(const struct hd_auth_place *at, size_t index, hd_json_val val)
{
    struct hd_auth_place in = *at;

    (void)snprintf(in.path, sizeof(in.path), "%.80s[%zu]", at->path, index);
    in.val = val;
    return in;
}

int hd_auth_fail(const struct hd_auth_place *at, const char *why)
{
    return hd_error_set(at->reader->fault, HD_EINVAL, "%s: %s", at->path, why);
}

int hd_auth_fail_memory(const struct hd_auth_place *at)
{
    return hd_error_set(at->reader->fault, HD_ENOMEM,
                        "out of memory while reading the configuration");
}

int hd_auth_members(const struct hd_auth_place *at, const char *const *known)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t seen = 0;

    if (!hd_json_is_object(at->val))
        return hd_auth_fail(at, at->val ? "must be an object" : "is missing");
    while (hd_json_next(&it)) {
        size_t i = 0;

        while (known[i] && !hd_slice_eq(hd_slice_cstr(known[i]), it.key))
            i++;
        if (!known[i])
            return hd_error_set(at->reader->fault, HD_EINVAL, "%s: unknown member \"%.*s\"",
                                at->path, (int)(it.key.len < 64 ? it.key.len : 64), it.key.ptr);
        if (seen >> i & 1)
            return hd_error_set(at->reader->fault, HD_EINVAL, "%s.%s: is a duplicate", at->path,
                                known[i]);
        seen |= (size_t)1 << i;
    }
    return 0;
}

int hd_auth_text(const struct hd_auth_place *at, size_t max, struct hd_slice *out)
{
    struct hd_slice text = hd_json_string(at->val);

    if (!at->val)
        return hd_auth_fail(at, "is missing");
    if (!hd_json_is_string(at->val) || text.len == 0)
        return hd_auth_fail(at, "must be a non-empty string");
    if (text.len > max || memchr(text.ptr, '\0', text.len))
        return hd_auth_fail(at, "is too long, or contains a NUL");
    *out = text;
    return 0;
}

int hd_auth_texts(const struct hd_auth_place *at, size_t limit, struct hd_slice *out, size_t *count)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    *count = 0;
    if (!hd_json_is_array(at->val)) {
        err = hd_auth_text(at, HD_AUTH_MAX_TEXT, out);
        *count = !err;
        return err;
    }
    while (!err && hd_json_next(&it)) {
        struct hd_auth_place item = hd_auth_item(at, *count, it.val);

        if (*count == limit)
            return hd_auth_fail(at, "has too many values");
        err = hd_auth_text(&item, HD_AUTH_MAX_TEXT, &out[*count]);
        *count += !err;
    }
    return !err && *count == 0 ? hd_auth_fail(at, "must not be empty") : err;
}

/* ---- secrets ---------------------------------------------------------- */

static int ask_host(const struct hd_auth_place *at, bool is_file, struct hd_slice name,
                    struct hd_buf *out)
{
    const struct hd_auth_host *host = at->reader->host;
    struct heddle_error why = {0};
    int err;

    if (!host->secret)
        return hd_auth_fail(at, "cannot be read here");
    err = host->secret(host->ctx, is_file, name.ptr, out, &why);
    if (err == HD_ENOMEM)
        return hd_auth_fail_memory(at);
    if (err)
        return hd_auth_fail(at, why.code ? why.text : hd_error_text(err));
    return 0;
}

int hd_auth_secret(const struct hd_auth_place *at, struct hd_slice *out)
{
    struct hd_auth_place file = hd_auth_in(at, "file"), env = hd_auth_in(at, "env");
    const struct hd_auth_place *from = file.val ? &file : &env;
    struct hd_slice name;
    struct hd_buf text;
    int err;

    if (!file.val == !env.val)
        return hd_auth_fail(at, "must have either a `file` or an `env`");
    err = hd_auth_text(from, HD_AUTH_MAX_TEXT, &name);
    if (err)
        return err;
    hd_buf_init(&text, MAX_SECRET);
    err = ask_host(from, from == &file, name, &text);
    if (!err && hd_arena_copy(&at->reader->config->arena, hd_buf_slice(&text), out))
        err = hd_auth_fail_memory(at);
    hd_buf_fini_secret(&text);
    return err;
}

struct hd_slice hd_auth_trim(struct hd_slice text)
{
    while (text.len > 0 && strchr("\r\n", text.ptr[text.len - 1]) && text.ptr[text.len - 1])
        text.len--;
    return text;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode_hex(struct hd_slice text, unsigned char out[HD_PRINCIPAL_KEY_LEN])
{
    for (size_t i = 0; i < HD_PRINCIPAL_KEY_LEN; i++) {
        int high = hex_value(text.ptr[2 * i]), low = hex_value(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* Either alphabet, with or without padding: accepts the output of `openssl rand -base64 32`. */
static bool decode_base64(struct hd_slice text, unsigned char out[HD_PRINCIPAL_KEY_LEN])
{
    char letters[HD_BASE64URL_LEN(HD_PRINCIPAL_KEY_LEN)];
    bool is_key;
    size_t len;

    if (text.len == sizeof(letters) + 1 && text.ptr[sizeof(letters)] == '=')
        text.len--;
    if (text.len != sizeof(letters))
        return false;
    for (size_t i = 0; i < text.len; i++)
        letters[i] = (char)(text.ptr[i] == '+' ? '-' : text.ptr[i] == '/' ? '_' : text.ptr[i]);
    is_key = hd_base64url_decode(hd_slice(letters, sizeof(letters)), out, &len) == 0;
    OPENSSL_cleanse(letters, sizeof(letters));
    return is_key;
}

/* 32 bytes, as text. */
static bool decode_key(struct hd_slice raw, unsigned char out[HD_PRINCIPAL_KEY_LEN])
{
    struct hd_slice text = hd_auth_trim(raw);

    if (text.len == 2 * HD_PRINCIPAL_KEY_LEN)
        return decode_hex(text, out);
    return decode_base64(text, out);
}

/* ---- principal keys --------------------------------------------------- */

static int read_key(const struct hd_auth_place *at)
{
    static const char *const known[] = {"id", "file", "env", NULL};
    struct hd_auth_config *config = at->reader->config;
    struct hd_principal_key *key = &config->keys[config->key_count];
    struct hd_auth_place id = hd_auth_in(at, "id");
    struct hd_slice raw;
    bool is_key;
    int err = hd_auth_members(at, known);

    if (!err)
        err = hd_auth_text(&id, HD_MAX_KEY_ID, &key->id);
    for (size_t i = 0; !err && i < config->key_count; i++) {
        if (hd_slice_eq(config->keys[i].id, key->id))
            err = hd_auth_fail(&id, "is the id of another key");
    }
    if (!err)
        err = hd_auth_secret(at, &raw);
    if (err)
        return err;
    is_key = decode_key(raw, key->bytes);
    OPENSSL_cleanse((char *)raw.ptr, raw.len);
    if (!is_key)
        return hd_auth_fail(at, "is not a key of 32 bytes; create one with `heddle key principal`");
    config->key_count++;
    return 0;
}

static int read_keys(const struct hd_auth_place *auth)
{
    struct hd_auth_place key = hd_auth_in(auth, "key"), old = hd_auth_in(auth, "old_keys");
    struct hd_auth_config *config = auth->reader->config;
    struct hd_json_iter it = hd_json_iter(old.val);
    size_t index = 0;
    int err = 0;

    if (key.val)
        err = read_key(&key);
    else
        config->key_count = 1; /* the key without an id: plain hashes */
    if (!err && old.val && !hd_json_is_array(old.val))
        err = hd_auth_fail(&old, "must be a list");
    while (!err && hd_json_next(&it)) {
        struct hd_auth_place item = hd_auth_item(&old, index++, it.val);

        if (config->key_count == HD_MAX_PRINCIPAL_KEYS)
            return hd_auth_fail(&old, "has too many keys");
        /* null: the time before a key was configured. */
        if (hd_json_is_null(it.val) && config->keys[0].id.len > 0)
            config->keys[config->key_count++] = (struct hd_principal_key){.id = HD_S("")};
        else
            err = read_key(&item);
    }
    return err;
}

/* ---- numbers ---------------------------------------------------------- */

int hd_auth_number(const struct hd_auth_place *at, int64_t max, int64_t *out)
{
    int64_t number;

    if (!at->val)
        return 0;
    if (!hd_json_int(at->val, &number) || number < 0 || number > max)
        return hd_error_set(at->reader->fault, HD_EINVAL, "%s: must be an integer from 0 to %lld",
                            at->path, (long long)max);
    *out = number;
    return 0;
}

/* ---- custom auth ------------------------------------------------------ */

/* Header names of requests. */
static int read_cache_keys(const struct hd_auth_place *at)
{
    static const char *const standard[] = {"authorization", "x-api-key", "cookie"};
    struct hd_auth_config *config = at->reader->config;
    int err = 0;

    config->has_cache_keys = at->val != NULL;
    if (!at->val) {
        for (size_t i = 0; i < HD_COUNT(standard); i++)
            config->cache_keys[config->cache_key_count++] = hd_slice_cstr(standard[i]);
        return 0;
    }
    err = hd_auth_texts(at, HD_MAX_CACHE_KEYS, config->cache_keys, &config->cache_key_count);
    for (size_t i = 0; !err && i < config->cache_key_count; i++) {
        struct hd_slice name = config->cache_keys[i];
        char *lower = hd_arena_alloc(&config->arena, name.len);

        if (!lower)
            return hd_auth_fail_memory(at);
        for (size_t n = 0; n < name.len; n++)
            lower[n] =
                (char)(name.ptr[n] >= 'A' && name.ptr[n] <= 'Z' ? name.ptr[n] | 0x20 : name.ptr[n]);
        config->cache_keys[i] = hd_slice(lower, name.len);
    }
    return err;
}

/* Seconds, or LangGraph's form: {"cache_keys", "ttl_seconds", "max_size"}. */
static int read_cache(const struct hd_auth_place *at)
{
    static const char *const known[] = {"cache_keys", "ttl_seconds", "max_size", NULL};
    struct hd_auth_config *config = at->reader->config;
    bool is_object = hd_json_is_object(at->val);
    struct hd_auth_place seconds_at = is_object ? hd_auth_in(at, "ttl_seconds") : *at;
    struct hd_auth_place size_at = hd_auth_in(at, "max_size"),
                         keys_at = hd_auth_in(at, "cache_keys");
    int64_t seconds = CACHE_SECONDS, size = CACHE_SIZE;
    int err = is_object ? hd_auth_members(at, known) : 0;

    if (!err)
        err = hd_auth_number(&seconds_at, MAX_CACHE_SECONDS, &seconds);
    if (!err)
        err = hd_auth_number(&size_at, MAX_CACHE_SIZE, &size);
    if (!err)
        err = read_cache_keys(&keys_at);
    config->cache_us = seconds * SECOND;
    config->code_cache_us = at->val ? config->cache_us : 0;
    config->cache_size = (size_t)size;
    return err;
}

static int read_code(const struct hd_auth_place *auth)
{
    struct hd_auth_place path = hd_auth_in(auth, "path");
    struct hd_auth_place compartments = hd_auth_in(auth, "compartments");
    struct hd_auth_config *config = auth->reader->config;
    struct hd_slice text = HD_S("identity"), ignored;
    int err = path.val ? hd_auth_text(&path, HD_AUTH_MAX_TEXT, &ignored) : 0;

    config->has_code = path.val != NULL;
    if (!err && compartments.val)
        err = hd_auth_text(&compartments, HD_AUTH_MAX_TEXT, &text);
    config->is_shared = hd_slice_eq(text, HD_S("shared"));
    if (!err && !config->is_shared && !hd_slice_eq(text, HD_S("identity")))
        err = hd_auth_fail(&compartments, "must be \"identity\" or \"shared\"");
    if (!err && config->is_shared && !config->has_code)
        err = hd_auth_fail(&compartments,
                           "needs a `path`: without handlers every user would see everything");
    return err;
}

/* ---- whole configuration ---------------------------------------------- */

static int read_auth(const struct hd_auth_place *auth)
{
    /* The last two are LangGraph's; neither grants access here. */
    static const char *const known[] = {"key",
                                        "old_keys",
                                        "api_keys",
                                        "cache",
                                        "issuers",
                                        "path",
                                        "compartments",
                                        "openapi",
                                        "disable_studio_auth",
                                        NULL};
    struct hd_auth_place api_keys = hd_auth_in(auth, "api_keys"), cache = hd_auth_in(auth, "cache");
    struct hd_auth_place issuers = hd_auth_in(auth, "issuers");
    struct hd_auth_config *config = auth->reader->config;
    int err = hd_auth_members(auth, known);

    if (!err && api_keys.val && !hd_json_is_bool(api_keys.val))
        err = hd_auth_fail(&api_keys, "must be a boolean");
    config->has_api_keys = !api_keys.val || hd_json_is_true(api_keys.val);
    if (!err)
        err = read_cache(&cache);
    if (!err)
        err = read_keys(auth);
    if (!err)
        err = read_code(auth);
    if (!err && issuers.val)
        err = hd_auth_issuers(&issuers);
    if (!err && config->issuer_count == 0 && !config->has_api_keys && !config->has_code)
        err = hd_auth_fail(auth, "has neither issuers nor API keys: no request could authenticate");
    return err;
}

int hd_auth_config_read(struct hd_auth_config *config, hd_json_val val,
                        const struct hd_auth_host *host, struct heddle_error *fault)
{
    struct hd_auth_reader reader = {config, host, fault};
    struct hd_auth_place auth = {.reader = &reader, .path = "auth", .val = val};
    int err;

    *config = (struct hd_auth_config){0};
    hd_arena_init(&config->arena, MAX_ARENA);
    err = read_auth(&auth);
    if (err)
        hd_auth_config_fini(config);
    return err;
}

void hd_auth_config_fini(struct hd_auth_config *config)
{
    for (size_t i = 0; i < config->issuer_count; i++) {
        struct hd_issuer *issuer = &config->issuers[i];

        hd_keyset_fini(&issuer->keyset);
        if (issuer->secret.len > 0)
            OPENSSL_cleanse((char *)issuer->secret.ptr, issuer->secret.len);
    }
    OPENSSL_cleanse(config->keys, sizeof(config->keys));
    hd_arena_fini(&config->arena);
    *config = (struct hd_auth_config){0};
}
