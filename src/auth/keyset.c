#include "auth/keyset.h"

#include "base/error.h"

void hd_keyset_fini(struct hd_keyset *keys)
{
    hd_jwks_destroy(keys->set);
    *keys = (struct hd_keyset){0};
}

/* A clock that was set back must not keep a set forever. */
static bool is_too_old(const struct hd_keyset *keys, int64_t now)
{
    return now - keys->fetched_at > HD_KEYS_KEPT_US ||
           keys->fetched_at - now > HD_KEYS_MAX_FRESH_US;
}

static void begin_fetch(struct hd_keyset *keys, bool *fetch)
{
    *fetch = !keys->is_fetching;
    keys->is_fetching = true;
}

enum hd_keys_answer hd_keyset_ask(struct hd_keyset *keys, int64_t now, bool *fetch)
{
    bool may_fetch;

    *fetch = false;
    if (keys->set && is_too_old(keys, now)) {
        hd_jwks_destroy(keys->set);
        keys->set = NULL;
    }
    if (keys->set && now < keys->fresh_until)
        return HD_KEYS_READY;
    may_fetch = keys->is_fetching || !keys->has_failed || now >= keys->retry_at;
    if (may_fetch)
        begin_fetch(keys, fetch);
    if (!keys->set)
        return may_fetch ? HD_KEYS_WAIT : HD_KEYS_MISSING;
    /* While the issuer is unreachable, checks do not wait for it. */
    if (!may_fetch || keys->has_failed || now < keys->fresh_until + HD_KEYS_GRACE_US)
        return HD_KEYS_READY;
    return HD_KEYS_WAIT;
}

enum hd_keys_answer hd_keyset_ask_again(struct hd_keyset *keys, int64_t now, bool *fetch)
{
    *fetch = false;
    if (keys->is_fetching)
        return HD_KEYS_WAIT;
    if (keys->forced_at && now >= keys->forced_at && now - keys->forced_at < HD_KEYS_FORCED_US)
        return keys->has_failed ? HD_KEYS_MISSING : HD_KEYS_READY;
    keys->forced_at = now;
    begin_fetch(keys, fetch);
    return HD_KEYS_WAIT;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int hd_keyset_fetched(struct hd_keyset *keys, struct hd_slice body, int64_t max_age_s,
                      int64_t now_us, const char **reason)
{
    struct hd_jwks *set = NULL;
    int64_t fresh = HD_KEYS_MIN_FRESH_US;
    int err = HD_EINVAL;

    *reason = "it could not be fetched";
    if (body.len > 0)
        err = hd_jwks_parse(body, &set, reason);
    keys->is_fetching = false;
    keys->has_failed = err != 0;
    if (err) {
        keys->retry_at = now_us + HD_KEYS_RETRY_US;
        return err;
    }
    if (max_age_s > 0)
        fresh = clamp(max_age_s, 0, HD_KEYS_MAX_FRESH_US / 1000000) * 1000000;
    hd_jwks_destroy(keys->set);
    keys->set = set;
    keys->fetched_at = now_us;
    keys->fresh_until = now_us + clamp(fresh, HD_KEYS_MIN_FRESH_US, HD_KEYS_MAX_FRESH_US);
    return 0;
}
