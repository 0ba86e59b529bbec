/* libFuzzer: any text as `page.sign_in`, as an issuer's discovery document, as the response of its
 * token endpoint, and as a code. Accepted values can be sent on unchanged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/oidc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct hd_issuer issuer = {
    .alias = HD_S_INIT("hall"), .names = {HD_S_INIT("https://hall.test")}, .name_count = 1};
static const struct hd_auth_config settings = {.issuers = &issuer, .issuer_count = 1};
static const struct hd_auth_host host = {0};
static const struct hd_sign_in way = {.issuer = &issuer, .client_id = HD_S_INIT("page")};

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool is_line(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] > '~')
            return false;
    }
    return true;
}

static bool is_url(const char *url)
{
    return url && is_line(hd_slice_cstr(url)) && strncmp(url, "http", 4) == 0;
}

static void try_document(struct hd_slice text)
{
    struct hd_oidc found = {0};
    const char *reason = NULL;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, 65536);
    err = hd_oidc_read(&found, text, &way, &arena, &reason);
    require(err || (is_url(found.authorization_endpoint) && is_url(found.token_endpoint)),
            "an endpoint that is none");
    require(!err || reason, "no reason");
    hd_arena_fini(&arena);
}

static void try_json(struct hd_slice text)
{
    struct hd_oidc_tokens tokens;
    struct hd_sign_ins ways;
    struct heddle_error fault = {0};
    struct hd_json json;

    if (hd_json_parse(&json, text, NULL))
        return;
    if (hd_oidc_tokens_read(&tokens, hd_json_root(&json)) == 0)
        require(is_line(tokens.access_token) && is_line(tokens.id_token) &&
                    is_line(tokens.refresh_token) && is_line(hd_slice_cstr(tokens.error)),
                "more than a line");
    if (hd_sign_ins_read(&ways, hd_json_root(&json), &settings, &host, &fault) == 0) {
        for (size_t i = 0; i < ways.count; i++)
            require(ways.items[i].issuer == &issuer && ways.items[i].client_id.len > 0 &&
                        !ways.items[i].discovery_url == !!ways.items[i].token_endpoint,
                    "a way to nowhere");
        hd_sign_ins_fini(&ways);
    } else {
        require(fault.code != 0, "no fault");
    }
    hd_json_fini(&json);
}

static void try_grant(struct hd_slice text)
{
    struct hd_oidc_grant grants[] = {
        {.code = text,
         .verifier = HD_S_INIT("abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl"),
         .redirect_uri = HD_S_INIT("https://h/")},
        {.code = HD_S_INIT("c"), .verifier = text, .redirect_uri = HD_S_INIT("https://h/")},
        {.refresh_token = text},
    };

    for (size_t i = 0; i < HD_COUNT(grants); i++) {
        struct hd_buf form;

        if (hd_oidc_complaint(&grants[i]))
            continue;
        hd_buf_init(&form, 65536);
        require(hd_oidc_form(&form, &way, &grants[i], false) == 0, "no form");
        require(is_line(hd_buf_slice(&form)), "a form of several lines");
        hd_buf_fini(&form);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size);

    try_document(text);
    try_json(text);
    try_grant(text);
    return 0;
}
