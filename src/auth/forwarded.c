#include "auth/forwarded.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "auth/base64url.h"
#include "base/error.h"
#include "base/json.h"
#include "base/uuid.h"

#define KEY_LABEL HD_S("heddle/forwarded/1")
#define CODE_LEN HD_BASE64URL_LEN(HD_SHA256_LEN)
#define MAX_JSON (HD_FORWARDED_MAX / 4 * 3)
#define MAX_PRINCIPAL 64

int hd_forwarded_key_derive(struct hd_slice cluster_key, struct hd_forwarded_key *out)
{
    const struct hd_slice label = KEY_LABEL;
    unsigned len = 0;

    if (cluster_key.len == 0 || cluster_key.len > INT32_MAX)
        return HD_EINVAL;
    return HMAC(EVP_sha256(), cluster_key.ptr, (int)cluster_key.len,
                (const unsigned char *)label.ptr, label.len, out->bytes, &len)
               ? 0
               : HD_ENOMEM;
}

/* ---- the code --------------------------------------------------------- */

/* Each part follows its length, so that no part can be read as the end of another. */
static int append_counted(struct hd_buf *out, struct hd_slice part)
{
    const unsigned char len[4] = {(unsigned char)(part.len >> 24), (unsigned char)(part.len >> 16),
                                  (unsigned char)(part.len >> 8), (unsigned char)part.len};
    int err = hd_buf_append(out, len, sizeof(len));

    return err ? err : hd_buf_append_slice(out, part);
}

/* The code of the encoded JSON and the request, as text. */
static int make_code(const struct hd_forwarded_key *key, struct hd_slice json,
                     const struct hd_forwarded_target *target, char out[CODE_LEN])
{
    const struct hd_slice parts[] = {json, target->method, target->path, target->query};
    unsigned char code[HD_SHA256_LEN];
    struct hd_buf message;
    unsigned len = 0;
    int err = 0;

    hd_buf_init(&message, SIZE_MAX);
    for (size_t i = 0; !err && i < HD_COUNT(parts); i++)
        err = append_counted(&message, parts[i]);
    if (!err && !HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes),
                      (const unsigned char *)message.ptr, message.len, code, &len))
        err = HD_ENOMEM;
    hd_buf_fini(&message);
    if (!err)
        hd_base64url_encode(code, sizeof(code), out);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

/* Bytes that are no text. */
static void put_encoded(struct hd_jw *jw, const char *name, struct hd_slice bytes)
{
    char text[HD_BASE64URL_LEN(2 * HD_SHA256_HEX_LEN)];

    if (bytes.len == 0)
        return;
    if (bytes.len > (size_t)2 * HD_SHA256_HEX_LEN) {
        jw->err = HD_ELIMIT;
        return;
    }
    hd_base64url_encode(bytes.ptr, bytes.len, text);
    hd_jw_put_string(jw, name, hd_slice(text, HD_BASE64URL_LEN(bytes.len)));
}

static void put_text(struct hd_jw *jw, const char *name, struct hd_slice text)
{
    if (text.len > 0)
        hd_jw_put_string(jw, name, text);
}

static void put_identity(struct hd_jw *jw, const char *name, const struct hd_identity *identity)
{
    if (!identity)
        return;
    hd_jw_put_object(jw, name);
    hd_jw_put_string(jw, "principal", identity->principal);
    hd_jw_put_string(jw, "issuer", identity->issuer);
    hd_jw_put_string(jw, "subject", identity->subject);
    hd_jw_put_array(jw, "organisations");
    for (size_t i = 0; i < identity->organisation_count; i++) {
        hd_jw_array(jw);
        hd_jw_string(jw, identity->organisations[i]);
        hd_jw_string(jw, identity->organisation_names[i]);
        hd_jw_array_end(jw);
    }
    hd_jw_array_end(jw);
    hd_jw_put_bool(jw, "is_admin", identity->is_admin);
    put_text(jw, "key_id", identity->key_id);
    hd_jw_put_int(jw, "expires_at", identity->expires_at);
    put_encoded(jw, "fingerprint", identity->fingerprint);
    put_text(jw, "user", identity->user);
    hd_jw_object_end(jw);
}

static int write_json(const struct hd_forwarded *forwarded, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "source", forwarded->source);
    hd_jw_put_string(&jw, "target", forwarded->target);
    hd_jw_put_string(&jw, "principal", forwarded->principal);
    hd_jw_put_int(&jw, "role", forwarded->role);
    put_encoded(&jw, "body", hd_slice(forwarded->body, sizeof(forwarded->body)));
    put_identity(&jw, "identity", forwarded->identity);
    put_identity(&jw, "by", forwarded->by);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int append_encoded(struct hd_buf *out, struct hd_slice bytes)
{
    int err = hd_buf_reserve(out, HD_BASE64URL_LEN(bytes.len));

    if (err)
        return err;
    hd_base64url_encode(bytes.ptr, bytes.len, out->ptr + out->len);
    out->len += HD_BASE64URL_LEN(bytes.len);
    return 0;
}

int hd_forwarded_write(const struct hd_forwarded_key *key, const struct hd_forwarded *forwarded,
                       const struct hd_forwarded_target *target, struct hd_buf *out)
{
    char code[CODE_LEN];
    struct hd_buf json, text;
    int err;

    hd_buf_init(&json, MAX_JSON);
    hd_buf_init(&text, HD_FORWARDED_MAX - CODE_LEN - 1);
    err = write_json(forwarded, &json);
    if (!err)
        err = append_encoded(&text, hd_buf_slice(&json));
    if (!err)
        err = make_code(key, hd_buf_slice(&text), target, code);
    if (!err)
        err = hd_buf_append_slice(out, hd_buf_slice(&text));
    if (!err)
        err = hd_buf_append_slice(out, HD_S("."));
    if (!err)
        err = hd_buf_append(out, code, sizeof(code));
    hd_buf_fini(&text);
    hd_buf_fini(&json);
    return err;
}

/* ---- reading ---------------------------------------------------------- */

/* Copies a member that must be a string, of at most `most` bytes; absent: empty. */
static int read_text(hd_json_val object, const char *name, size_t most, struct hd_arena *arena,
                     struct hd_slice *out)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    *out = hd_slice(NULL, 0);
    if (!val)
        return 0;
    if (!hd_json_is_string(val) || hd_json_string(val).len > most)
        return HD_EACCESS;
    return hd_arena_copy(arena, hd_json_string(val), out);
}

static int read_bytes(hd_json_val object, const char *name, struct hd_arena *arena,
                      struct hd_slice *out)
{
    struct hd_slice text;
    unsigned char *bytes;
    size_t len = 0;
    int err = read_text(object, name, (size_t)4 * HD_SHA256_HEX_LEN, arena, &text);

    *out = hd_slice(NULL, 0);
    if (err || text.len == 0)
        return err;
    bytes = hd_arena_alloc(arena, text.len);
    if (!bytes)
        return HD_ENOMEM;
    if (hd_base64url_decode(text, bytes, &len))
        return HD_EACCESS;
    *out = hd_slice(bytes, len);
    return 0;
}

static int read_server(hd_json_val object, const char *name, struct hd_arena *arena,
                       struct hd_slice *out)
{
    uint8_t bytes[16];
    int err = read_text(object, name, HD_UUID_LEN, arena, out);

    return !err && !hd_uuid_parse(*out, bytes) ? HD_EACCESS : err;
}

/* [principal, name] */
static int read_organisation(hd_json_val pair, struct hd_identity *identity)
{
    struct hd_json_iter it = hd_json_iter(pair);
    struct hd_slice *to[2] = {&identity->organisations[identity->organisation_count],
                              &identity->organisation_names[identity->organisation_count]};
    int err = hd_json_is_array(pair) && hd_json_size(pair) == 2 ? 0 : HD_EACCESS;

    for (size_t i = 0; !err && hd_json_next(&it); i++) {
        if (!hd_json_is_string(it.val))
            return HD_EACCESS;
        err = hd_arena_copy(&identity->arena, hd_json_string(it.val), to[i]);
    }
    identity->organisation_count += !err;
    return err;
}

static int read_organisations(hd_json_val list, struct hd_identity *identity)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) > HD_MAX_ORGANISATIONS)
        return HD_EACCESS;
    while (!err && hd_json_next(&it))
        err = read_organisation(it.val, identity);
    return err;
}

static int fill_identity(hd_json_val object, struct hd_identity *identity)
{
    struct hd_arena *arena = &identity->arena;
    hd_json_val is_admin = hd_json_get(object, HD_S("is_admin"));
    int err = hd_json_is_object(object) && hd_json_is_bool(is_admin) ? 0 : HD_EACCESS;

    identity->is_admin = hd_json_is_true(is_admin);
    if (!err)
        err = read_text(object, "principal", MAX_PRINCIPAL, arena, &identity->principal);
    if (!err)
        err = read_text(object, "issuer", HD_FORWARDED_MAX, arena, &identity->issuer);
    if (!err)
        err = read_text(object, "subject", HD_FORWARDED_MAX, arena, &identity->subject);
    if (!err)
        err = read_organisations(hd_json_get(object, HD_S("organisations")), identity);
    if (!err)
        err = read_text(object, "key_id", HD_FORWARDED_MAX, arena, &identity->key_id);
    if (!err && !hd_json_int(hd_json_get(object, HD_S("expires_at")), &identity->expires_at))
        err = HD_EACCESS;
    if (!err)
        err = read_bytes(object, "fingerprint", arena, &identity->fingerprint);
    if (!err)
        err = read_text(object, "user", HD_FORWARDED_MAX, arena, &identity->user);
    return err;
}

static int read_identity(hd_json_val object, struct hd_identity **out)
{
    int err;

    *out = NULL;
    if (!object)
        return 0;
    *out = hd_identity_new();
    if (!*out)
        return HD_ENOMEM;
    err = fill_identity(object, *out);
    /* An empty principal would be that of all rows without authentication. */
    return !err && (*out)->principal.len == 0 ? HD_EACCESS : err;
}

static int read_role(hd_json_val object, enum hd_role *out)
{
    int64_t role = 0;

    if (!hd_json_int(hd_json_get(object, HD_S("role")), &role) || role < HD_ROLE_VIEWER ||
        role > HD_ROLE_OWNER)
        return HD_EACCESS;
    *out = (enum hd_role)role;
    return 0;
}

static int read_body_hash(hd_json_val object, struct hd_arena *arena,
                          unsigned char out[HD_SHA256_LEN])
{
    struct hd_slice bytes;
    int err = read_bytes(object, "body", arena, &bytes);

    if (!err && bytes.len != HD_SHA256_LEN)
        err = HD_EACCESS;
    if (!err)
        memcpy(out, bytes.ptr, HD_SHA256_LEN);
    return err;
}

static int read_forwarded(hd_json_val root, struct hd_arena *arena, struct hd_forwarded *out)
{
    int err = hd_json_is_object(root) ? 0 : HD_EACCESS;

    if (!err)
        err = read_server(root, "source", arena, &out->source);
    if (!err)
        err = read_server(root, "target", arena, &out->target);
    if (!err)
        err = read_text(root, "principal", MAX_PRINCIPAL, arena, &out->principal);
    if (!err)
        err = read_role(root, &out->role);
    if (!err)
        err = read_body_hash(root, arena, out->body);
    if (!err)
        err = read_identity(hd_json_get(root, HD_S("identity")), &out->identity);
    if (!err)
        err = read_identity(hd_json_get(root, HD_S("by")), &out->by);
    if (!err && (out->identity ? out->principal.len == 0 : out->by != NULL))
        err = HD_EACCESS;
    return err;
}

static int parse_forwarded(struct hd_slice encoded, struct hd_arena *arena,
                           struct hd_forwarded *out)
{
    unsigned char *text = hd_arena_alloc(arena, encoded.len * 3 / 4 + 1);
    struct hd_json json = {NULL};
    size_t len = 0;
    int err;

    if (!text)
        return HD_ENOMEM;
    if (hd_base64url_decode(encoded, text, &len))
        return HD_EACCESS;
    err = hd_json_parse(&json, hd_slice(text, len), NULL);
    if (!err)
        err = read_forwarded(hd_json_root(&json), arena, out);
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_EACCESS : err;
}

int hd_forwarded_read(const struct hd_forwarded_key *key, struct hd_slice self,
                      struct hd_slice header, const struct hd_forwarded_target *target,
                      struct hd_arena *arena, struct hd_forwarded *out)
{
    const char *dot = header.len > 0 ? memchr(header.ptr, '.', header.len) : NULL;
    struct hd_slice encoded, code;
    char expected[CODE_LEN];
    int err;

    *out = (struct hd_forwarded){.role = HD_ROLE_NONE};
    if (!dot || header.len > HD_FORWARDED_MAX)
        return HD_EACCESS;
    encoded = hd_slice(header.ptr, (size_t)(dot - header.ptr));
    code = hd_slice(dot + 1, header.len - encoded.len - 1);
    err = make_code(key, encoded, target, expected);
    if (!err && !hd_auth_secret_eq(code, hd_slice(expected, sizeof(expected))))
        err = HD_EACCESS;
    if (!err)
        err = parse_forwarded(encoded, arena, out);
    if (!err && !hd_slice_eq(out->target, self))
        err = HD_ETAKEN;
    if (err)
        hd_forwarded_fini(out);
    return err;
}

void hd_forwarded_fini(struct hd_forwarded *forwarded)
{
    hd_identity_unref(forwarded->identity);
    hd_identity_unref(forwarded->by);
    forwarded->identity = forwarded->by = NULL;
}
