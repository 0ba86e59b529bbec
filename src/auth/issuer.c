#include "auth/issuer.h"

#include <math.h>
#include <strings.h>

#define SECOND 1000000
#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

static const struct hd_slice tenant = HD_S_INIT("{tid}");

static int refuse_claims(const char **reason, const char *text)
{
    *reason = text;
    return HD_EACCESS;
}

/* ---- issuer and audience ---------------------------------------------- */

static const char *find_tenant(struct hd_slice name)
{
    return memmem(name.ptr, name.len, tenant.ptr, tenant.len);
}

/* A tenant id in a URL: must not contain characters that change the URL. */
static bool is_tenant(struct hd_slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              c == '-'))
            return false;
    }
    return id.len > 0 && id.len <= 64;
}

/* `name` with the token's `tid` in place of the placeholder. */
static bool is_of_tenant(struct hd_slice name, const char *place, const struct hd_jwt *jwt)
{
    struct hd_slice id = hd_json_string(hd_json_get(jwt->payload, HD_S("tid")));
    struct hd_slice before = hd_slice(name.ptr, (size_t)(place - name.ptr));
    struct hd_slice after = hd_slice(place + tenant.len, name.len - before.len - tenant.len);
    struct hd_slice iss = jwt->issuer;

    if (!is_tenant(id) || iss.len != before.len + id.len + after.len)
        return false;
    return hd_slice_starts(iss, before) &&
           hd_slice_eq(hd_slice(iss.ptr + before.len, id.len), id) &&
           hd_slice_eq(hd_slice(iss.ptr + before.len + id.len, after.len), after);
}

static bool has_name(const struct hd_issuer *issuer, const struct hd_jwt *jwt)
{
    for (size_t i = 0; i < issuer->name_count; i++) {
        const char *place = find_tenant(issuer->names[i]);

        if (place ? is_of_tenant(issuer->names[i], place, jwt)
                  : hd_slice_eq(issuer->names[i], jwt->issuer))
            return true;
    }
    return false;
}

struct hd_issuer *hd_issuer_find(struct hd_issuer *issuers, size_t count, const struct hd_jwt *jwt)
{
    for (size_t i = 0; i < count; i++) {
        if (has_name(&issuers[i], jwt))
            return &issuers[i];
    }
    return NULL;
}

/* ---- claims ----------------------------------------------------------- */

/* The member with that name, including dots, or the member that the dotted path leads to. */
static hd_json_val find_claim(hd_json_val object, struct hd_slice path)
{
    hd_json_val found = hd_json_get(object, path);

    for (size_t i = 0; !found && i < path.len; i++) {
        hd_json_val inner = path.ptr[i] == '.' ? hd_json_get(object, hd_slice(path.ptr, i)) : NULL;

        if (hd_json_is_object(inner))
            found = find_claim(inner, hd_slice(path.ptr + i + 1, path.len - i - 1));
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

static bool meets(hd_json_val payload, const struct hd_claim_rule *rule)
{
    hd_json_val claim = find_claim(payload, rule->path);
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

static int check_claims(const struct hd_issuer *issuer, const struct hd_jwt *jwt,
                        const char **reason)
{
    if (!has_good_type(issuer, jwt->type))
        return refuse_claims(reason, "it has another type");
    if (!has_audience(issuer, hd_json_get(jwt->payload, HD_S("aud"))))
        return refuse_claims(reason, "it is for another audience");
    for (size_t i = 0; i < issuer->required_count; i++) {
        if (!meets(jwt->payload, &issuer->required[i]))
            return refuse_claims(reason, "a required claim is missing or has another value");
    }
    return 0;
}

/* ---- identity --------------------------------------------------------- */

/* Text that is shown, stored and hashed: must not contain control characters. */
static bool has_no_controls(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 127)
            return false;
    }
    return text.len > 0 && text.len <= HD_MAX_SUBJECT;
}

static int read_subject(const struct hd_issuer *issuer, hd_json_val payload,
                        struct hd_identity *identity, const char **reason)
{
    struct hd_slice claims[HD_MAX_SUBJECT_CLAIMS];
    int err;

    for (size_t i = 0; i < issuer->subject_count; i++) {
        claims[i] = hd_json_string(find_claim(payload, issuer->subjects[i]));
        if (!has_no_controls(claims[i]))
            return refuse_claims(reason, "its subject is missing or invalid");
    }
    err = hd_subject_join(&identity->arena, claims, issuer->subject_count, &identity->subject);
    if (!err && identity->subject.len > HD_MAX_SUBJECT)
        return refuse_claims(reason, "its subject is too long");
    return err;
}

static bool has_organisation(const struct hd_identity *identity, struct hd_slice name)
{
    for (size_t i = 0; i < identity->organisation_count; i++) {
        if (hd_slice_eq(identity->organisation_names[i], name))
            return true;
    }
    return false;
}

static int add_organisation(const struct hd_issuer *issuer, const struct hd_principal_key *key,
                            struct hd_slice name, struct hd_identity *identity)
{
    size_t n = identity->organisation_count;
    char principal[HD_PRINCIPAL_SIZE];
    int err;

    if (!has_no_controls(name) || n == HD_MAX_ORGANISATIONS || has_organisation(identity, name))
        return 0;
    err = hd_auth_principal_derive(key, HD_PRINCIPAL_ORGANISATION, issuer->alias, name, principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, name, &identity->organisation_names[n]);
    if (!err)
        err =
            hd_arena_copy(&identity->arena, hd_slice_cstr(principal), &identity->organisations[n]);
    identity->organisation_count += !err;
    return err;
}

static int read_organisations(const struct hd_issuer *issuer, const struct hd_principal_key *key,
                              hd_json_val payload, struct hd_identity *identity)
{
    hd_json_val claim = NULL;
    struct hd_json_iter it;
    int err = 0;

    if (issuer->organisations.len > 0)
        claim = find_claim(payload, issuer->organisations);
    if (hd_json_is_string(claim))
        return add_organisation(issuer, key, hd_json_string(claim), identity);
    it = hd_json_iter(claim);
    while (!err && hd_json_is_array(claim) && hd_json_next(&it))
        err = add_organisation(issuer, key, hd_json_string(it.val), identity);
    return err;
}

int hd_issuer_admit(const struct hd_issuer *issuer, const struct hd_jwt *jwt,
                    const struct hd_principal_key *key, int64_t now_us,
                    struct hd_identity *identity, const char **reason)
{
    char principal[HD_PRINCIPAL_SIZE];
    int err = check_times(issuer, jwt->payload, now_us, &identity->expires_at, reason);

    if (!err)
        err = check_claims(issuer, jwt, reason);
    if (!err)
        err = read_subject(issuer, jwt->payload, identity, reason);
    if (!err)
        err = hd_auth_principal_derive(key, HD_PRINCIPAL_PERSON, issuer->alias, identity->subject,
                                       principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(principal), &identity->principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, issuer->alias, &identity->issuer);
    if (!err)
        err = read_organisations(issuer, key, jwt->payload, identity);
    if (!err && issuer->admin.path.len > 0)
        identity->is_admin = meets(jwt->payload, &issuer->admin);
    return err;
}
