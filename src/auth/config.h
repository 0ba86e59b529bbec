/* The member `auth` of the configuration (docs/authentication.md), read and checked. */
#ifndef HD_AUTH_CONFIG_H
#define HD_AUTH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/auth.h"
#include "auth/issuer.h"
#include "base/arena.h"
#include "base/json.h"

#define HD_MAX_PRINCIPAL_KEYS 8
#define HD_MAX_KEY_ID 64
#define HD_MAX_CACHE_KEYS 16

struct hd_auth_config {
    struct hd_principal_key keys[HD_MAX_PRINCIPAL_KEYS];
    size_t key_count; /* at least 1 */
    bool has_api_keys;
    int64_t cache_us;
    bool has_code;         /* `path`: the project's code authenticates, in a worker */
    bool is_shared;        /* all users share one compartment */
    int64_t code_cache_us; /* cache time of the code's results; 0: no cache */
    size_t cache_size;
    /* Headers, in lower case, that are credentials for the project's code. */
    struct hd_slice cache_keys[HD_MAX_CACHE_KEYS];
    size_t cache_key_count;
    bool has_cache_keys; /* the list was given: only its headers count */
    struct hd_issuer *issuers;
    size_t issuer_count;
    struct hd_arena arena;
};

/* HD_EINVAL names the member; nothing to free then. Borrows the document. */
HD_MUST_CHECK int hd_auth_config_read(struct hd_auth_config *config, hd_json_val auth,
                                      const struct hd_auth_host *host, struct heddle_error *fault);
/* Overwrites secrets. */
void hd_auth_config_fini(struct hd_auth_config *config);

#endif
