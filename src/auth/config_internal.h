/* Shared by config.c, config_issuer.c and oidc.c: members with their paths. */
#ifndef HD_AUTH_CONFIG_INTERNAL_H
#define HD_AUTH_CONFIG_INTERNAL_H

#include "auth/config.h"

#define HD_AUTH_MAX_TEXT 2048

struct hd_auth_reader {
    struct hd_auth_config *config;
    const struct hd_auth_host *host;
    struct heddle_error *fault;
};

struct hd_auth_place {
    const struct hd_auth_reader *reader;
    char path[128];  /* "auth.issuers[0].alias", for error texts */
    hd_json_val val; /* NULL: missing */
};

struct hd_auth_place hd_auth_in(const struct hd_auth_place *at, const char *name);
struct hd_auth_place hd_auth_item(const struct hd_auth_place *at, size_t index, hd_json_val val);
/* "auth.key: why"; returns HD_EINVAL. */
int hd_auth_fail(const struct hd_auth_place *at, const char *why);
int hd_auth_fail_memory(const struct hd_auth_place *at);

/* An object with members among `known` (at most 60, NULL-terminated), none twice. */
HD_MUST_CHECK int hd_auth_members(const struct hd_auth_place *at, const char *const *known);
HD_MUST_CHECK int hd_auth_text(const struct hd_auth_place *at, size_t max, struct hd_slice *out);
/* A text or a list of texts. */
HD_MUST_CHECK int hd_auth_texts(const struct hd_auth_place *at, size_t limit, struct hd_slice *out,
                                size_t *count);
/* Leaves `out` unchanged when the member is missing. */
HD_MUST_CHECK int hd_auth_number(const struct hd_auth_place *at, int64_t max, int64_t *out);
/* The content of its `file`, or the variable `env`; in the configuration's arena. */
HD_MUST_CHECK int hd_auth_secret(const struct hd_auth_place *at, struct hd_slice *out);
/* Removes trailing line ends. */
struct hd_slice hd_auth_trim(struct hd_slice text);

/* NULL for an https URL or a loopback URL; otherwise the reason. */
const char *hd_auth_url_complaint(const char *url);

HD_MUST_CHECK int hd_auth_issuers(const struct hd_auth_place *at);

#endif
