/* Sign-in with an issuer: configuration, documents, requests and responses. */
#include "auth/oidc.h"

#include <string.h>

#include "tests/unit/check.h"

#define VERIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456-._~"

static int read_secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                       struct heddle_error *fault)
{
    (void)ctx;
    (void)fault;
    assert_false(is_file);
    return hd_buf_append_slice(out, strcmp(name, "SECRET") == 0 ? HD_S("a b&c\n") : HD_S("\n"));
}

static struct hd_issuer issuers[] = {
    {.alias = HD_S_INIT("hall"), .names = {HD_S_INIT("https://hall.test/")}, .name_count = 1},
    {.alias = HD_S_INIT("many"),
     .names = {HD_S_INIT("https://many.test/{tid}"), HD_S_INIT("https://many.test/1")},
     .name_count = 2},
};
static const struct hd_auth_config settings = {.issuers = issuers, .issuer_count = 2};
static const struct hd_auth_host host = {.secret = read_secret};

static int read_list(const char *text, struct hd_json *json, struct hd_sign_ins *out,
                     struct heddle_error *fault)
{
    assert_err(hd_json_parse(json, hd_slice_cstr(text), NULL), 0);
    return hd_sign_ins_read(out, hd_json_root(json), &settings, &host, fault);
}

static void ways_are_read(void **state)
{
    struct hd_sign_ins ways;
    struct hd_json json;

    (void)state;
    assert_err(read_list("[{\"issuer\": \"hall\", \"client_id\": \"page\", \"client_secret\": "
                         "{\"env\": \"SECRET\"}},"
                         "{\"issuer\": \"many\", \"name\": \"Many\", \"client_id\": \"x\", "
                         "\"scope\": \"openid\", \"client_secret\": \"plain\", "
                         "\"authorization_endpoint\": \"https://many.test/a\", "
                         "\"token_endpoint\": \"https://many.test/t\"}]",
                         &json, &ways, NULL),
               0);
    assert_int_equal(ways.count, 2);
    assert_slice(ways.items[0].name, HD_S("hall"));
    assert_slice(ways.items[0].scope, HD_S("openid profile"));
    assert_slice(ways.items[0].client_secret, HD_S("a b&c"));
    assert_string_equal(ways.items[0].discovery_url,
                        "https://hall.test/.well-known/openid-configuration");
    assert_null(ways.items[0].token_endpoint);
    assert_slice(ways.items[1].name, HD_S("Many"));
    assert_slice(ways.items[1].client_secret, HD_S("plain"));
    assert_null(ways.items[1].discovery_url);
    assert_string_equal(ways.items[1].token_endpoint, "https://many.test/t");
    hd_sign_ins_fini(&ways);
    hd_json_fini(&json);
}

static void bad_ways_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "page.sign_in: must be a list"},
        {"[7]", "page.sign_in[0]: must be an object"},
        {"[{\"client_id\": \"x\"}]", "page.sign_in[0].issuer: is missing"},
        {"[{\"issuer\": \"who\", \"client_id\": \"x\"}]",
         "page.sign_in[0].issuer: is not an alias"},
        {"[{\"issuer\": \"hall\"}]", "page.sign_in[0].client_id: is missing"},
        {"[{\"issuer\": \"hall\", \"client_id\": \"x\", \"more\": 1}]", "unknown member \"more\""},
        {"[{\"issuer\": \"hall\", \"client_id\": \"x\"}, {\"issuer\": \"hall\", \"client_id\": "
         "\"y\"}]",
         "page.sign_in[1].name: is the name of another"},
        {"[{\"issuer\": \"hall\", \"client_id\": \"x\", \"client_secret\": {\"env\": \"EMPTY\"}}]",
         "page.sign_in[0].client_secret: is empty"},
        {"[{\"issuer\": \"hall\", \"client_id\": \"x\", \"client_secret\": 7}]",
         "page.sign_in[0].client_secret: must be an object"},
        {"[{\"issuer\": \"many\", \"client_id\": \"x\"}]", "its issuer is not an https URL"},
        {"[{\"issuer\": \"many\", \"client_id\": \"x\", \"token_endpoint\": "
         "\"https://many.test/t\"}]",
         "both `authorization_endpoint` and"},
        {"[{\"issuer\": \"hall\", \"client_id\": \"x\", \"token_endpoint\": "
         "\"http://hall.test/\"}]",
         "page.sign_in[0].token_endpoint: must be an https URL"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_sign_ins ways;
        struct hd_json json;

        assert_err(read_list(cases[i].text, &json, &ways, &fault), HD_EINVAL);
        if (!strstr(fault.text, cases[i].why))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_json_fini(&json);
    }
}

#define GOOD                                                           \
    "\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": " \
    "\"https://login.test/a?x=1\", \"token_endpoint\": \"https://login.test/t\""

static const struct hd_sign_in way = {.name = HD_S_INIT("hall"),
                                      .issuer = &issuers[0],
                                      .client_id = HD_S_INIT("pa ge"),
                                      .client_secret = HD_S_INIT("a:b&c=\xc3\xa9"),
                                      .scope = HD_S_INIT("openid profile"),
                                      .discovery_url = "https://hall.test/d"};

static void documents_are_read(void **state)
{
    static const struct {
        const char *text;
        bool is_good, is_in_body;
    } cases[] = {
        {"{" GOOD "}", true, false},
        {"{" GOOD ", \"code_challenge_methods_supported\": [\"plain\", \"S256\"]}", true, false},
        {"{" GOOD ", \"token_endpoint_auth_methods_supported\": [\"client_secret_post\"]}", true,
         true},
        {"{" GOOD ", \"token_endpoint_auth_methods_supported\": [\"client_secret_post\", "
         "\"client_secret_basic\"]}",
         true, false},
        {"{" GOOD ", \"token_endpoint_auth_methods_supported\": [\"none\"]}", true, false},
        {"{" GOOD ", \"code_challenge_methods_supported\": [\"plain\"]}", false, false},
        {"{" GOOD ", \"code_challenge_methods_supported\": []}", false, false},
        {"{\"issuer\": \"https://hall.test\", \"authorization_endpoint\": \"https://l.test/\", "
         "\"token_endpoint\": \"https://l.test/\"}",
         false, false},
        {"{\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": \"http://l.test/\", "
         "\"token_endpoint\": \"https://l.test/\"}",
         false, false},
        {"{\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": \"https://l.test/\", "
         "\"token_endpoint\": \"https://a:b@l.test/\"}",
         false, false},
        {"{\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": \"https://l.test/\"}",
         false, false},
        {"{\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": \"https://l.test/\", "
         "\"token_endpoint\": \"http://127.0.0.1:2024/\"}",
         false, false},
        {"{\"issuer\": \"https://hall.test/\", \"authorization_endpoint\": \"http://localhost/\", "
         "\"token_endpoint\": \"https://l.test/\"}",
         false, false},
        {"[]", false, false},
        {"{", false, false},
        {"", false, false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_oidc found = {0};
        struct hd_arena arena;
        const char *reason = NULL;
        int err;

        hd_arena_init(&arena, 16384);
        err = hd_oidc_read(&found, hd_slice_cstr(cases[i].text), &way, &arena, &reason);
        if ((err == 0) != cases[i].is_good || (err && (err != HD_EINVAL || !reason)))
            fail_msg("%s: %d", cases[i].text, err);
        if (!err)
            assert_string_equal(found.token_endpoint, "https://login.test/t");
        assert_int_equal(found.wants_secret_in_body, cases[i].is_in_body);
        hd_arena_fini(&arena);
    }
}

static void requests_are_written(void **state)
{
    struct hd_oidc_grant code = {.code = HD_S("c/1"),
                                 .verifier = HD_S(VERIFIER),
                                 .redirect_uri = HD_S("http://localhost:2024/?a=b")};
    struct hd_oidc_grant refresh = {.refresh_token = HD_S("r+1")};
    struct hd_sign_in open = way;
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 4096);
    assert_err(hd_oidc_form(&out, &way, &code, false), 0);
    assert_slice(hd_buf_slice(&out),
                 HD_S("grant_type=authorization_code&code=c%2F1&code_verifier=" VERIFIER
                      "&redirect_uri=http%3A%2F%2Flocalhost%3A2024%2F%3Fa%3Db"));
    hd_buf_reset(&out);
    assert_err(hd_oidc_form(&out, &way, &refresh, true), 0);
    assert_slice(hd_buf_slice(&out),
                 HD_S("grant_type=refresh_token&refresh_token=r%2B1&scope=openid%20profile"
                      "&client_id=pa%20ge&client_secret=a%3Ab%26c%3D%C3%A9"));
    hd_buf_reset(&out);
    open.client_secret = HD_S("");
    assert_err(hd_oidc_form(&out, &open, &refresh, false), 0);
    assert_slice(hd_buf_slice(&out), HD_S("grant_type=refresh_token&refresh_token=r%2B1"
                                          "&scope=openid%20profile&client_id=pa%20ge"));
    hd_buf_reset(&out);
    assert_err(hd_oidc_basic(&out, &way), 0);
    /* pa%20ge:a%3Ab%26c%3D%C3%A9 */
    assert_slice(hd_buf_slice(&out),
                 HD_S("Authorization: Basic cGElMjBnZTphJTNBYiUyNmMlM0QlQzMlQTk="));
    hd_buf_fini(&out);
}

static void grants_are_checked(void **state)
{
    static const struct {
        struct hd_oidc_grant grant;
        bool is_good;
    } cases[] = {
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER), HD_S_INIT("https://h/"), HD_S_INIT("")}, true},
        {{HD_S_INIT(""), HD_S_INIT(""), HD_S_INIT(""), HD_S_INIT("r")}, true},
        {{HD_S_INIT(""), HD_S_INIT(""), HD_S_INIT(""), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER), HD_S_INIT("https://h/"), HD_S_INIT("r")}, false},
        {{HD_S_INIT("c\n"), HD_S_INIT(VERIFIER), HD_S_INIT("https://h/"), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT("short"), HD_S_INIT("https://h/"), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER "+"), HD_S_INIT("https://h/"), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER), HD_S_INIT(""), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER), HD_S_INIT("ftp://h/"), HD_S_INIT("")}, false},
        {{HD_S_INIT("c"), HD_S_INIT(VERIFIER), HD_S_INIT("https://h/#a"), HD_S_INIT("")}, false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_int_equal(hd_oidc_complaint(&cases[i].grant) == NULL, cases[i].is_good);
}

static int read_answer(const char *text, struct hd_json *json, struct hd_oidc_tokens *out)
{
    assert_err(hd_json_parse(json, hd_slice_cstr(text), NULL), 0);
    return hd_oidc_tokens_read(out, hd_json_root(json));
}

static void answers_are_read(void **state)
{
    struct hd_oidc_tokens tokens;
    struct hd_json json;

    (void)state;
    assert_err(read_answer("{\"access_token\": \"a\", \"id_token\": \"i\", \"refresh_token\": "
                           "\"r\"}",
                           &json, &tokens),
               0);
    assert_slice(tokens.access_token, HD_S("a"));
    assert_slice(tokens.id_token, HD_S("i"));
    assert_slice(tokens.refresh_token, HD_S("r"));
    assert_string_equal(tokens.error, "");
    hd_json_fini(&json);
    assert_err(read_answer("{\"error\": \"invalid_grant\", \"error_description\": \"secret\"}",
                           &json, &tokens),
               0);
    assert_string_equal(tokens.error, "invalid_grant");
    hd_json_fini(&json);
    /* A shown error is a single word, and a token that becomes a header is a single line. */
    assert_err(read_answer("{\"error\": \"<b>\"}", &json, &tokens), HD_EINVAL);
    hd_json_fini(&json);
    assert_err(read_answer("{\"access_token\": \"a\\r\\nb\"}", &json, &tokens), HD_EINVAL);
    hd_json_fini(&json);
    assert_err(read_answer("{\"access_token\": 7}", &json, &tokens), HD_EINVAL);
    hd_json_fini(&json);
    assert_err(read_answer("[]", &json, &tokens), HD_EINVAL);
    hd_json_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_are_read),      cmocka_unit_test(bad_ways_are_refused),
        cmocka_unit_test(documents_are_read), cmocka_unit_test(requests_are_written),
        cmocka_unit_test(grants_are_checked), cmocka_unit_test(answers_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
