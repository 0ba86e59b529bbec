#include "auth/jwt.h"

#include <string.h>

#include "auth/auth.h"
#include "auth/base64url.h"
#include "base/alloc.h"

#define MAX_KID 1024

static int refuse_token(const char **reason, const char *text)
{
    *reason = text;
    return HD_EINVAL;
}

/* Programs differ in how they read duplicate names: a token with any is refused. */
static bool is_unambiguous(hd_json_val val, unsigned depth)
{
    struct hd_slice names[HD_MAX_JWT_MEMBERS];
    struct hd_json_iter it = hd_json_iter(val);
    size_t count = 0;

    if (depth > HD_MAX_JWT_DEPTH || hd_json_size(val) > HD_MAX_JWT_MEMBERS)
        return false;
    while (hd_json_next(&it)) {
        for (size_t i = 0; hd_json_is_object(val) && i < count; i++) {
            if (hd_slice_eq(names[i], it.key))
                return false;
        }
        names[count++] = it.key;
        if (hd_json_size(it.val) > 0 && !is_unambiguous(it.val, depth + 1))
            return false;
    }
    return true;
}

/* Decodes a part of the token to an object; uses up *room. */
static int decode_object(struct hd_slice part, unsigned char **room, struct hd_json *out,
                         const char **reason)
{
    size_t len;
    int err = hd_base64url_decode(part, *room, &len);

    if (err)
        return refuse_token(reason, "it is not base64url");
    err = hd_json_parse(out, hd_slice(*room, len), NULL);
    if (err)
        return err == HD_ENOMEM ? err : refuse_token(reason, "it is not JSON");
    *room += len;
    if (!hd_json_is_object(hd_json_root(out)))
        return refuse_token(reason, "a part of it is not an object");
    if (!is_unambiguous(hd_json_root(out), 0))
        return refuse_token(reason, "it has a duplicate name, or is too large");
    return 0;
}

static int read_header(struct hd_jwt *jwt, const char **reason)
{
    hd_json_val header = hd_json_root(&jwt->header_doc);
    hd_json_val kid = hd_json_get(header, HD_S("kid")), type = hd_json_get(header, HD_S("typ"));

    if (hd_json_get(header, HD_S("crit")))
        return refuse_token(reason, "it has critical extensions");
    if (hd_json_get(header, HD_S("zip")) || hd_json_get(header, HD_S("enc")) ||
        hd_json_get(header, HD_S("cty")))
        return refuse_token(reason, "it is compressed, encrypted or nested");
    jwt->alg = hd_alg_find(hd_json_string(hd_json_get(header, HD_S("alg"))));
    if (jwt->alg == HD_ALG_COUNT)
        return refuse_token(reason, "its algorithm is unknown");
    if ((kid && !hd_json_is_string(kid)) || hd_json_string(kid).len > MAX_KID)
        return refuse_token(reason, "its key id is not a string");
    if (type && !hd_json_is_string(type))
        return refuse_token(reason, "its type is not a string");
    jwt->has_kid = kid != NULL;
    jwt->kid = hd_json_string(kid);
    jwt->type = hd_json_string(type);
    return 0;
}

static int read_token_parts(struct hd_jwt *jwt, const struct hd_slice parts[3], const char **reason)
{
    unsigned char *room = jwt->bytes;
    size_t len;
    int err = decode_object(parts[0], &room, &jwt->header_doc, reason);

    if (!err)
        err = read_header(jwt, reason);
    if (!err)
        err = decode_object(parts[1], &room, &jwt->payload_doc, reason);
    if (err)
        return err;
    if (hd_base64url_decode(parts[2], room, &len) || len == 0)
        return refuse_token(reason, "its signature is not base64url");
    jwt->signature = hd_slice(room, len);
    jwt->payload = hd_json_root(&jwt->payload_doc);
    jwt->issuer = hd_json_string(hd_json_get(jwt->payload, HD_S("iss")));
    return jwt->issuer.len > 0 ? 0 : refuse_token(reason, "it has no issuer");
}

/* Exactly three nonempty parts. */
static bool split_token(struct hd_slice token, struct hd_slice parts[3])
{
    size_t count = 0, start = 0;

    for (size_t i = 0; i <= token.len; i++) {
        if (i < token.len && token.ptr[i] != '.')
            continue;
        if (count == 3 || i == start)
            return false;
        parts[count++] = hd_slice(token.ptr + start, i - start);
        start = i + 1;
    }
    return count == 3;
}

int hd_jwt_parse(struct hd_jwt *jwt, struct hd_slice token, const char **reason)
{
    struct hd_slice parts[3];
    int err;

    *jwt = (struct hd_jwt){.alg = HD_ALG_COUNT};
    if (token.len > HD_MAX_CREDENTIAL)
        return refuse_token(reason, "it is too long");
    if (!split_token(token, parts))
        return refuse_token(reason, "it does not have three parts");
    jwt->bytes = hd_malloc(token.len);
    if (!jwt->bytes)
        return HD_ENOMEM;
    jwt->signed_text = hd_slice(token.ptr, parts[0].len + 1 + parts[1].len);
    err = read_token_parts(jwt, parts, reason);
    if (err)
        hd_jwt_fini(jwt);
    return err;
}

void hd_jwt_fini(struct hd_jwt *jwt)
{
    hd_json_fini(&jwt->header_doc);
    hd_json_fini(&jwt->payload_doc);
    hd_free(jwt->bytes);
    *jwt = (struct hd_jwt){.alg = HD_ALG_COUNT};
}
