/* The member `auth` of a configuration: accepted values and error texts. */
#include "auth/config.h"

#include <stdio.h>
#include <string.h>

#include "auth/auth.h"
#include "base/log.h"
#include "tests/unit/check.h"

/* ---- a host with secrets only -------------------------------------------- */

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return 0;
}

static int fetch(void *ctx, struct hd_auth *auth, const char *url, void *handle)
{
    (void)ctx;
    (void)auth;
    (void)url;
    (void)handle;
    return HD_EIO;
}

static int find_key(void *ctx, struct hd_auth *auth, struct hd_slice id, void *handle)
{
    (void)ctx;
    (void)auth;
    (void)id;
    (void)handle;
    return HD_EIO;
}

static int secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct heddle_error *fault)
{
    static const char text[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF";
    bool is_short = strcmp(name, "SHORT") == 0;

    (void)ctx;
    if (is_file)
        return hd_error_set(fault, HD_EINVAL, "no such file");
    return hd_buf_append(out, text, is_short ? 31 : sizeof(text) - 1);
}

/* Creates the object and destroys it again. */
static int create(const char *config, struct hd_auth **auth, struct heddle_error *fault)
{
    const struct hd_auth_host host = {NULL, now_us, fetch, find_key, NULL, secret};
    struct hd_json json;
    int err;

    assert_err(hd_json_parse(&json, hd_slice_cstr(config), NULL), 0);
    err = hd_auth_create(hd_json_root(&json), &host, auth, fault);
    if (!err)
        hd_auth_destroy(*auth);
    hd_json_fini(&json);
    return err;
}

/* ---- the configuration ---------------------------------------------------- */

#define ISSUER "\"alias\": \"a\", \"issuer\": \"i\", \"audience\": \"u\""
#define WITH_SECRET ISSUER ", \"algorithms\": [\"HS256\"], \"secret\": {\"env\": \"SECRET\"}"

static void mistakes_are_named_by_their_place(void **state)
{
    static const struct {
        const char *config, *place;
    } cases[] = {
        {"{\"issuer\": []}", "auth: unknown member \"issuer\""},
        {"{\"api_keys\": 1}", "auth.api_keys: "},
        {"{\"api_keys\": false}", "auth: "},
        {"{\"cache\": -1}", "auth.cache: "},
        {"{\"cache\": {\"ttl\": 1}}", "auth.cache: "},
        {"{\"cache\": {\"ttl_seconds\": \"1\"}}", "auth.cache.ttl_seconds: "},
        {"{\"cache\": {\"cache_keys\": []}}", "auth.cache.cache_keys: "},
        {"{\"path\": 1}", "auth.path: "},
        {"{\"path\": \"a.py:auth\", \"compartments\": \"none\"}", "auth.compartments: "},
        {"{\"compartments\": \"shared\"}", "auth.compartments: needs a `path`"},
        {"{\"path\": \"a.py:auth\", \"issuers\": [{\"alias\": \"custom\"}]}",
         "auth.issuers[0].alias: "},
        {"{\"key\": \"x\"}", "auth.key: "},
        {"{\"key\": {\"id\": \"1\"}}", "auth.key: "},
        {"{\"key\": {\"id\": \"1\", \"env\": \"SHORT\"}}", "auth.key: "},
        {"{\"key\": {\"id\": \"1\", \"file\": \"x\"}}", "auth.key.file: no such file"},
        {"{\"key\": {\"id\": \"1\", \"file\": \"x\", \"env\": \"KEY\"}}", "auth.key: "},
        {"{\"key\": {\"id\": \"1\", \"env\": \"KEY\"}, \"old_keys\": [{\"id\": \"1\", \"env\": "
         "\"OLD\"}]}",
         "auth.old_keys[0].id: "},
        {"{\"old_keys\": {}}", "auth.old_keys: "},
        {"{\"issuers\": {}}", "auth.issuers: "},
        {"{\"issuers\": [7]}", "auth.issuers[0]: "},
        {"{\"issuers\": [{}]}", "auth.issuers[0].alias: is missing"},
        {"{\"issuers\": [{\"alias\": \"key\"}]}", "auth.issuers[0].alias: "},
        {"{\"issuers\": [{\"alias\": \"a/b\"}]}", "auth.issuers[0].alias: "},
        {"{\"issuers\": [{\"alias\": \"a\", \"issuer\": []}]}", "auth.issuers[0].issuer: "},
        {"{\"issuers\": [{\"alias\": \"a\", \"issuer\": \"i\"}]}", "auth.issuers[0].audience: "},
        {"{\"issuers\": [{" ISSUER "}]}", "auth.issuers[0].algorithms: is missing"},
        {"{\"issuers\": [{" ISSUER ", \"algorithms\": [\"none\"]}]}",
         "auth.issuers[0].algorithms: \"none\""},
        {"{\"issuers\": [{" ISSUER ", \"algorithms\": [\"HS256\"]}]}", "auth.issuers[0].secret: "},
        {"{\"issuers\": [{" ISSUER ", \"algorithms\": [\"RS256\"]}]}",
         "auth.issuers[0].jwks_url: "},
        {"{\"issuers\": [{" ISSUER
         ", \"algorithms\": [\"RS256\"], \"jwks_url\": \"http://example.com/keys\"}]}",
         "auth.issuers[0].jwks_url: "},
        {"{\"issuers\": [{" ISSUER
         ", \"algorithms\": [\"RS256\"], \"jwks_url\": \"http://127.0.0.1.example.com/\"}]}",
         "auth.issuers[0].jwks_url: "},
        {"{\"issuers\": [{" ISSUER
         ", \"algorithms\": [\"RS256\"], \"jwks_url\": \"https://a:b@example.com/\"}]}",
         "auth.issuers[0].jwks_url: "},
        {"{\"issuers\": [{" ISSUER
         ", \"algorithms\": [\"RS256\"], \"jwks_url\": \"file:///etc/keys\"}]}",
         "auth.issuers[0].jwks_url: "},
        {"{\"issuers\": [{" ISSUER
         ", \"algorithms\": [\"HS256\"], \"secret\": {\"env\": \"SHORT\"}}]}",
         "auth.issuers[0].secret: is too short"},
        {"{\"issuers\": [{" ISSUER ", \"algorithms\": [\"HS256\"], \"secret\": \"text\"}]}",
         "auth.issuers[0].secret: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"jwks_url\": \"https://example.com/\"}]}",
         "auth.issuers[0].algorithms: "},
        {"{\"issuers\": [{" WITH_SECRET "}, {" WITH_SECRET "}]}", "auth.issuers[1].alias: "},
        {"{\"issuers\": [{" WITH_SECRET "}, {\"alias\": \"b\", \"issuer\": \"i\"}]}",
         "auth.issuers[1].issuer: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"alias\": \"b\"}]}",
         "auth.issuers[0].alias: is a duplicate"},
        {"{\"issuers\": [{" WITH_SECRET ", \"leeway\": 61}]}", "auth.issuers[0].leeway: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"subject\": []}]}", "auth.issuers[0].subject: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"require\": {\"role\": {}}}]}",
         "auth.issuers[0].require.role: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"require\": {\"role\": []}}]}",
         "auth.issuers[0].require.role: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"admin\": {\"claim\": \"x\"}}]}",
         "auth.issuers[0].admin.value: "},
        {"{\"issuers\": [{" WITH_SECRET ", \"organisations\": 7}]}",
         "auth.issuers[0].organisations: "},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_auth *auth;

        assert_err(create(cases[i].config, &auth, &fault), HD_EINVAL);
        if (!strstr(fault.text, cases[i].place))
            print_error("%s\n  says: %s\n", cases[i].config, fault.text);
        assert_memory_equal(fault.text, cases[i].place, strlen(cases[i].place));
        assert_null(strstr(fault.text, "0123456789abcde"));
    }
}

static void loopback_may_be_plain(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:8080/keys", "http://localhost/keys",
                                       "http://[::1]:1/keys", "https://example.com/keys"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(urls); i++) {
        struct heddle_error fault = {0};
        struct hd_auth *auth;
        char config[512];

        (void)snprintf(config, sizeof(config),
                       "{\"issuers\": [{" ISSUER
                       ", \"algorithms\": [\"RS256\"], \"jwks_url\": \"%s\"}]}",
                       urls[i]);
        assert_err(create(config, &auth, &fault), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named_by_their_place),
        cmocka_unit_test(loopback_may_be_plain),
    };

    hd_log_set_level(HD_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
