#include "auth/jwt_claims.h"

#include <math.h>
#include <strings.h>

#define SECOND 1000000
#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

static int refuse_claims(const char **reason, const char *text)
{
    *reason = text;
    return HD_EACCESS;
}

hd_json_val hd_jwt_claim_find(hd_json_val object, struct hd_slice path)
{
    hd_json_val found = hd_json_get(object, path);

    for (size_t i = 0; !found && i < path.len; i++) {
        hd_json_val inner = path.ptr[i] == '.' ? hd_json_get(object, hd_slice(path.ptr, i)) : NULL;

        if (hd_json_is_object(inner))
            found = hd_jwt_claim_find(inner, hd_slice(path.ptr + i + 1, path.len - i - 1));
    }
    return found;
}

/* Whether the claim equals the value, or is a list that contains it. */
static bool claim_has(hd_json_val claim, hd_json_val wanted)
{
    struct hd_json_iter it = hd_json_iter(claim);

    if (hd_json_equal(claim, wanted))
        return true;
    while (hd_json_is_array(claim) && hd_json_next(&it)) {
        if (hd_json_equal(it.val, wanted))
            return true;
    }
    return false;
}

bool hd_jwt_claim_meets(hd_json_val payload, const struct hd_claim_rule *rule)
{
    hd_json_val claim = hd_jwt_claim_find(payload, rule->path);
    struct hd_json_iter it = hd_json_iter(rule->wanted);

    if (!claim)
        return false;
    if (!hd_json_is_array(rule->wanted))
        return claim_has(claim, rule->wanted);
    while (hd_json_next(&it)) {
        if (claim_has(claim, it.val))
            return true;
    }
    return false;
}

static bool has_audience(const struct hd_issuer *issuer, hd_json_val claim)
{
    struct hd_json_iter it = hd_json_iter(claim);
    bool is_one = hd_json_is_string(claim), has = false;

    while (!has && (is_one || (hd_json_is_array(claim) && hd_json_next(&it)))) {
        hd_json_val val = is_one ? claim : it.val;

        for (size_t i = 0; i < issuer->audience_count && hd_json_is_string(val); i++)
            has = has || hd_slice_eq(hd_json_string(val), issuer->audiences[i]);
        if (is_one)
            break;
    }
    return has;
}

/* RFC 7519's NumericDate, which may have a fraction; false when invalid. */
static bool read_date(hd_json_val val, int64_t *out)
{
    double number;

    if (hd_json_int(val, out))
        return *out >= 0 && *out <= LAST_SECOND;
    if (!hd_json_double(val, &number) || number < 0 || number > (double)LAST_SECOND)
        return false;
    *out = (int64_t)floor(number);
    return true;
}

static int check_times(const struct hd_issuer *issuer, hd_json_val payload, int64_t now_us,
                       int64_t *expires, const char **reason)
{
    hd_json_val exp = hd_json_get(payload, HD_S("exp")), nbf = hd_json_get(payload, HD_S("nbf"));
    hd_json_val iat = hd_json_get(payload, HD_S("iat"));
    int64_t now = now_us / SECOND, at;

    if (!exp || !read_date(exp, &at))
        return refuse_claims(reason, "it has no expiry time");
    *expires = (at + issuer->leeway_s) * SECOND;
    if (*expires <= now_us)
        return refuse_claims(reason, "it has expired");
    if (nbf && (!read_date(nbf, &at) || at > now + issuer->leeway_s))
        return refuse_claims(reason, "it is not valid yet");
    if (iat && (!read_date(iat, &at) || at > now + issuer->leeway_s))
        return refuse_claims(reason, "it was issued in the future");
    return 0;
}

/* Media types compare case-insensitively, and "application/" may be omitted. */
static bool is_type(struct hd_slice type, struct hd_slice wanted)
{
    static const struct hd_slice prefix = HD_S_INIT("application/");

    if (type.len > prefix.len && strncasecmp(type.ptr, prefix.ptr, prefix.len) == 0)
        type = hd_slice(type.ptr + prefix.len, type.len - prefix.len);
    return type.len == wanted.len && strncasecmp(type.ptr, wanted.ptr, wanted.len) == 0;
}

static bool has_good_type(const struct hd_issuer *issuer, struct hd_slice type)
{
    if (issuer->type.len > 0)
        return is_type(type, issuer->type);
    return type.len == 0 || is_type(type, HD_S("jwt")) || is_type(type, HD_S("at+jwt"));
}

int hd_jwt_claims_check(const struct hd_issuer *issuer, const struct hd_jwt *jwt, int64_t now_us,
                        int64_t *expires_at, const char **reason)
{
    int err = check_times(issuer, jwt->payload, now_us, expires_at, reason);

    if (err)
        return err;
    if (!has_good_type(issuer, jwt->type))
        return refuse_claims(reason, "it has another type");
    if (!has_audience(issuer, hd_json_get(jwt->payload, HD_S("aud"))))
        return refuse_claims(reason, "it is for another audience");
    for (size_t i = 0; i < issuer->required_count; i++) {
        if (!hd_jwt_claim_meets(jwt->payload, &issuer->required[i]))
            return refuse_claims(reason, "a required claim is missing or has another value");
    }
    return 0;
}
