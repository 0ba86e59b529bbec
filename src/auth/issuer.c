#include "auth/issuer.h"

#include <string.h>

#include "auth/jwt_claims.h"

static const struct hd_slice tenant = HD_S_INIT("{tid}");

/* ---- issuer ----------------------------------------------------------- */

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

static int refuse_subject(const char **reason, const char *text)
{
    *reason = text;
    return HD_EACCESS;
}

static int read_subject(const struct hd_issuer *issuer, hd_json_val payload,
                        struct hd_identity *identity, const char **reason)
{
    struct hd_slice claims[HD_MAX_SUBJECT_CLAIMS];
    int err;

    for (size_t i = 0; i < issuer->subject_count; i++) {
        claims[i] = hd_json_string(hd_jwt_claim_find(payload, issuer->subjects[i]));
        if (!has_no_controls(claims[i]))
            return refuse_subject(reason, "its subject is missing or invalid");
    }
    err = hd_subject_join(&identity->arena, claims, issuer->subject_count, &identity->subject);
    if (!err && identity->subject.len > HD_MAX_SUBJECT)
        return refuse_subject(reason, "its subject is too long");
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
        claim = hd_jwt_claim_find(payload, issuer->organisations);
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
    int err = hd_jwt_claims_check(issuer, jwt, now_us, &identity->expires_at, reason);

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
        identity->is_admin = hd_jwt_claim_meets(jwt->payload, &issuer->admin);
    return err;
}
