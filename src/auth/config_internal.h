/* What config.c, config_issuer.c and oidc.c share: members and where they are. */
#ifndef HD_AUTH_CONFIG_INTERNAL_H
#define HD_AUTH_CONFIG_INTERNAL_H

#include "auth/config.h"

#define HD_AUTH_MAX_TEXT 2048

struct hd_auth_reader {
    struct hd_auth_config *config;
    const struct hd_auth_host *host;
    struct hd_fault *fault;
};

struct hd_auth_place {
    const struct hd_auth_reader *reader;
    char path[128];  /* "auth.issuers[0].alias": for messages */
    hd_json_val val; /* NULL: it is not there */
};

struct hd_auth_place hd_auth_in(const struct hd_auth_place *at, const char *name);
struct hd_auth_place hd_auth_item(const struct hd_auth_place *at, size_t index, hd_json_val val);
/* "auth.key: why"; returns HD_EINVAL. */
int hd_auth_fail(const struct hd_auth_place *at, const char *why);
int hd_auth_fail_memory(const struct hd_auth_place *at);

/* An object whose members are among `known` (at most 60, NULL after the last), none twice. */
HD_MUST_CHECK int hd_auth_members(const struct hd_auth_place *at, const char *const *known);
HD_MUST_CHECK int hd_auth_text(const struct hd_auth_place *at, size_t max, struct hd_slice *out);
/* A text or a list of them. */
HD_MUST_CHECK int hd_auth_texts(const struct hd_auth_place *at, size_t limit, struct hd_slice *out,
                                size_t *count);
/* Left as it is when there is none. */
HD_MUST_CHECK int hd_auth_number(const struct hd_auth_place *at, int64_t max, int64_t *out);
/* What its `file` has in it, or the variable `env`; in the configuration's arena. */
HD_MUST_CHECK int hd_auth_secret(const struct hd_auth_place *at, struct hd_slice *out);
/* Without the ends of lines behind it. */
struct hd_slice hd_auth_trim(struct hd_slice text);

/* NULL: an https URL, or one of this machine; otherwise what is wrong with it. */
const char *hd_auth_url_complaint(const char *url);

HD_MUST_CHECK int hd_auth_issuers(const struct hd_auth_place *at);

#endif
