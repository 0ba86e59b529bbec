/* The detection of secrets, and their replacement by markers. */
#include <string.h>

#include "secret/secret.h"
#include "tests/unit/check.h"

static struct hd_val *parse(const char *text)
{
    struct hd_val *val;
    char copy[4096];

    assert_true(strlen(text) < sizeof(copy));
    for (size_t i = 0; i <= strlen(text); i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    assert_int_equal(hd_val_parse_json(hd_slice_cstr(copy), &val, NULL), 0);
    return val;
}

static void assert_same(const struct hd_val *got, const char *expected)
{
    struct hd_val *val = parse(expected);
    struct hd_buf text;

    hd_buf_init(&text, 100000);
    assert_int_equal(hd_val_render(&text, got), 0);
    assert_int_equal(hd_buf_append_byte(&text, '\0'), 0);
    if (!hd_val_equal(got, val))
        assert_string_equal(text.ptr, expected);
    hd_buf_fini(&text);
    hd_val_unref(val);
}

static void names_of_secrets(void **state)
{
    static const char *const names[] = {
        "api_key",
        "apiKey",
        "apiKeys",
        "APIKey",
        "X-Api-Key",
        "OPENAI_API_KEY",
        "custom_api_key",
        "openai_key",
        "apikey",
        "token",
        "access_token",
        "accessToken",
        "accesstoken",
        "x-supabase-access-token",
        "refreshToken",
        "authorization",
        "Authorization",
        "Proxy-Authorization",
        "cookie",
        "set-cookie",
        "password",
        "db_password",
        "PGPASSWORD",
        "client_secret",
        "clientSecret",
        "secrets",
        "private_key",
        "aws_secret_access_key",
        "service_role_key",
        "anon_key",
        "credentials",
        "passphrase",
        "auth",
        "basic_auth",
        "jwt",
        "api_key_2",
        "authToken",
        "github_tokens",
        "x-amz-security-token",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (!hd_secret_is_name(hd_slice_cstr(names[i])))
            fail_msg("%s is the name of a secret", names[i]);
    }
}

static void names_of_other_things(void **state)
{
    static const char *const names[] = {
        "max_tokens",
        "maxTokens",
        "max_output_tokens",
        "token_count",
        "total_tokens",
        "token_limit",
        "prompt_tokens",
        "secretary",
        "keyboard",
        "key",
        "primary_key",
        "sort_key",
        "cache_key",
        "monkey",
        "author",
        "auth_required",
        "langgraph_auth_user",
        "langgraph_auth_user_id",
        "token_url",
        "token_type",
        "api_key_name",
        "api_key_env",
        "model_name",
        "passport",
        "tokenizer",
        "user_id",
        "",
        "-",
        "compass",
        "stop_token",
        "thinking_budget_tokens",
        "cookie_name",
        "authorization_endpoint",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_secret_is_name(hd_slice_cstr(names[i])))
            fail_msg("%s is not the name of a secret", names[i]);
    }
}

static void texts_that_are_secrets(void **state)
{
    static const char *const texts[] = {
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.",
        "Bearer abcdefghijklmnop",
        "bearer 1234",
        "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        " Basic dXNlcjpwYXNzd29yZA== ",
        "sk-proj-abc123def456ghi789",
        "sk-ant-api03-0123456789abcdef",
        "ghp_0123456789abcdefghij",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "lsv2_pt_0123456789abcdef0123",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "postgresql://user:pass@localhost:5432/db",
        "https://u:p@example.com/",
        "https://example.com/mcp?api_key=q",
        "https://example.com?a=1&access_token=q#x",
        "https://example.com/cb#access_token=q&state=1",
        "https://example.com/?key=q",
        "https://example.com/?x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.q",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        if (!hd_secret_is_text(hd_slice_cstr(texts[i])))
            fail_msg("%s is a secret", texts[i]);
    }
}

static void texts_that_are_none(void **state)
{
    static const char *const texts[] = {
        "",
        "Bearer of good news",
        "bearer token",
        "Basic questions",
        "sk-",
        "sk-learn-is-a-python-library",
        "task-0123456789",
        "eyJ.a.b",
        "https://example.com/a@b:c",
        "https://user@example.com",
        "https://example.com/?page_token=",
        "https://example.com/api_key=q",
        "https://example.com/?max_tokens=7&sort_key=a",
        "https://example.com/?api_key",
        "https://example.com/?api_key=heddle:secret:a",
        "see https://example.com/?api_key=q",
        "mailto:a@b.example",
        "You are a helpful agent. Never show sk-proj-abc123def456ghi789 to anybody.",
        "-----BEGIN CERTIFICATE-----",
        "openai:gpt-4o",
        "01234567-89ab-7def-8123-456789abcdef",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        if (hd_secret_is_text(hd_slice_cstr(texts[i])))
            fail_msg("%s is not a secret", texts[i]);
    }
}

static void take_leaves_markers(void **state)
{
    struct hd_val *secrets = NULL;
    struct hd_val *config = hd_secrets_take(
        parse(
            "{'model_name':'openai:gpt-4o','max_tokens':100,'custom_api_key':'k1',"
            "'apiKeys':{'OPENAI_API_KEY':'k2','other':['k3',null,true,'']},'pin_password':1234,"
            "'mcp_config':{'servers':[{'url':'http://x','headers':{'Authorization':'Bearer q'}}]},"
            "'note':'Bearer abcdefghijklmnop'}"),
        &secrets);

    (void)state;
    assert_same(config, "{'model_name':'openai:gpt-4o','max_tokens':100,"
                        "'custom_api_key':'heddle:secret:custom_api_key',"
                        "'apiKeys':{'OPENAI_API_KEY':'heddle:secret:apiKeys.OPENAI_API_KEY',"
                        "'other':['heddle:secret:apiKeys.other.0',null,true,'']},"
                        "'pin_password':'heddle:secret:pin_password',"
                        "'mcp_config':{'servers':[{'url':'http://x','headers':{'Authorization':"
                        "'heddle:secret:mcp_config.servers.0.headers.Authorization'}}]},"
                        "'note':'heddle:secret:note'}");
    assert_same(secrets, "{'heddle:secret:custom_api_key':'k1',"
                         "'heddle:secret:apiKeys.OPENAI_API_KEY':'k2',"
                         "'heddle:secret:apiKeys.other.0':'k3','heddle:secret:pin_password':1234,"
                         "'heddle:secret:mcp_config.servers.0.headers.Authorization':'Bearer q',"
                         "'heddle:secret:note':'Bearer abcdefghijklmnop'}");
    hd_val_unref(secrets);
    hd_val_unref(config);
}

static void reveal_is_the_reverse(void **state)
{
    static const char text[] = "{'a':[{'token':'t'},{'token':'t'}],'b':{'token':'u'},'c':1}";
    struct hd_val *secrets = NULL;
    struct hd_val *config = hd_secrets_take(parse(text), &secrets);
    struct hd_val *back = hd_secrets_reveal(config, secrets);

    (void)state;
    assert_same(back, text);
    hd_val_unref(back);
    back = hd_secrets_reveal(config, NULL);
    assert_same(back, "{'a':[{'token':null},{'token':null}],'b':{'token':null},'c':1}");
    hd_val_unref(back);
    back = hd_secrets_reveal(NULL, secrets);
    assert_true(hd_val_is_null(back));
    hd_val_unref(secrets);
    hd_val_unref(config);
}

static void nothing_secret_is_the_same_value(void **state)
{
    struct hd_val *config = parse("{'a':[1,{'b':'c'}]}"), *secrets = NULL;
    struct hd_val *before = hd_val_ref(config);

    (void)state;
    config = hd_secrets_take(config, &secrets);
    assert_ptr_equal(config, before);
    assert_null(secrets);
    hd_val_unref(config);
    hd_val_unref(before);
}

static void places_of_one_name_differ(void **state)
{
    static const char text[] = "{'a':{'token':'one'},'a.token':'two'}";
    struct hd_val *secrets = NULL;
    struct hd_val *config = hd_secrets_take(parse(text), &secrets), *back;

    (void)state;
    assert_same(config, "{'a':{'token':'heddle:secret:a.token'},"
                        "'a.token':'heddle:secret:a.token#2'}");
    back = hd_secrets_reveal(config, secrets);
    assert_same(back, text);
    hd_val_unref(back);
    hd_val_unref(config);

    /* An equal secret has the same marker. */
    config = hd_secrets_take(parse("{'a':{'token':'one'}}"), &secrets);
    assert_same(config, "{'a':{'token':'heddle:secret:a.token'}}");
    assert_int_equal(hd_val_count(secrets), 2);
    hd_val_unref(config);
    hd_val_unref(secrets);
}

static void markers_that_come_in_stand_for_nothing(void **state)
{
    struct hd_val *secrets = NULL;
    struct hd_val *config = hd_secrets_take(
        parse("{'token':'t','x':'heddle:secret:token','y':['heddle:secret:']}"), &secrets);

    (void)state;
    assert_same(config, "{'token':'heddle:secret:token','x':null,'y':[null]}");
    hd_val_unref(config);
    hd_val_unref(secrets);
}

static void texts_are_revealed_within(void **state)
{
    struct hd_val *secrets = parse("{'heddle:secret:a':'one','heddle:secret:a.b':'two',"
                                   "'heddle:secret:n':7}");
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 1000);
    assert_int_equal(hd_secrets_reveal_text(HD_S("Bearer heddle:secret:a.b; heddle:secret:a "
                                                 "heddle:secret:n"),
                                            secrets, &out),
                     0);
    assert_slice(hd_buf_slice(&out), HD_S("Bearer two; one 7"));
    assert_err(hd_secrets_reveal_text(HD_S("x heddle:secret:gone"), secrets, &out), HD_ENOTFOUND);
    assert_err(hd_secrets_reveal_text(HD_S("heddle:secret:a"), NULL, &out), HD_ENOTFOUND);
    hd_buf_fini(&out);
    hd_val_unref(secrets);
}

static void find_reports_the_path(void **state)
{
    struct hd_val *val = parse("{'a':1,'configurable':{'b':[{'x':'Bearer 12345678'}],"
                               "'custom_api_key':'k'}}");
    struct hd_buf path;

    (void)state;
    hd_buf_init(&path, 1000);
    assert_true(hd_secrets_find(val, true, &path));
    assert_int_equal(hd_buf_append_byte(&path, '\0'), 0);
    assert_string_equal(path.ptr, "configurable.b.0.x");
    hd_buf_reset(&path);
    assert_true(hd_secrets_find(val, false, &path));
    assert_int_equal(hd_buf_append_byte(&path, '\0'), 0);
    assert_string_equal(path.ptr, "configurable.custom_api_key");
    hd_val_unref(val);

    hd_buf_reset(&path);
    val = parse("{'api_key':null,'token':'','auth':false,'tokens':12,'usage':{'Tokens':1.5}}");
    assert_false(hd_secrets_find(val, true, &path));
    assert_int_equal(path.len, 0);
    hd_val_unref(val);
    hd_buf_fini(&path);
}

static void long_places_are_cut_in_whole_characters(void **state)
{
    struct hd_val *val = parse("'s'"), *secrets = NULL, *back, *key;
    char name[90];

    (void)state;
    memset(name, 'x', sizeof(name));
    memcpy(name, "token", 5);
    name[5] = '_';
    memcpy(name + 63, "\xc3\xa9", 2);
    for (int i = 0; i < 40; i++)
        val = hd_val_with(hd_val_object(), hd_slice(name, sizeof(name)), val);
    back = hd_val_ref(val);
    val = hd_secrets_take(val, &secrets);
    assert_int_equal(hd_val_count(secrets), 1);
    hd_val_member(secrets, 0, &key);
    assert_true(hd_val_get_string(key).len < 512);
    assert_memory_equal(hd_val_get_string(key).ptr + sizeof(HD_SECRET_PREFIX) - 1 + 63, ".", 1);
    {
        struct hd_val *again = hd_secrets_reveal(val, secrets);

        assert_true(hd_val_equal(again, back));
        hd_val_unref(again);
    }
    hd_val_unref(back);
    hd_val_unref(val);
    hd_val_unref(secrets);
}

static void names_of_headers(void **state)
{
    static const char *const secret[] = {"X-Key",  "x-functions-key", "DD-APPLICATION-KEY",
                                         "X-Pass", "X-Session",       "Authorization",
                                         "X",      "X-Tenant",        "ocp-apim-subscription-key"};
    static const char *const harmless[] = {"Accept",       "content-type",      "USER-AGENT",
                                           "traceparent",  "anthropic-version", "Notion-Version",
                                           "X-Request-Id", "Idempotency-Key",   ""};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(secret); i++)
        assert_true(hd_secret_is_header(hd_slice_cstr(secret[i])));
    for (size_t i = 0; i < HD_COUNT(harmless); i++)
        assert_false(hd_secret_is_header(hd_slice_cstr(harmless[i])));
}

static void headers_of_servers_are_secret(void **state)
{
    struct hd_val *secrets = NULL;
    struct hd_val *taken = hd_secrets_take(
        parse("{'servers':[{'url':'http://x','headers':{'X-Key':'k1','Accept':'a/b'}}],"
              "'tool':{'base_url':'u','default_headers':{'x-pass':['p1']}},"
              "'answer':{'status':200,'headers':{'X-Key':'shown'}}}"),
        &secrets);
    struct hd_val *assistant = parse("{'agents':[{'endpoint':'u','headers':{'X-Session':'s'}}]}");
    struct hd_buf path;

    (void)state;
    assert_same(taken, "{'servers':[{'url':'http://x','headers':"
                       "{'X-Key':'heddle:secret:servers.0.headers.X-Key','Accept':'a/b'}}],"
                       "'tool':{'base_url':'u','default_headers':"
                       "{'x-pass':['heddle:secret:tool.default_headers.x-pass.0']}},"
                       "'answer':{'status':200,'headers':{'X-Key':'shown'}}}");
    assert_same(secrets, "{'heddle:secret:servers.0.headers.X-Key':'k1',"
                         "'heddle:secret:tool.default_headers.x-pass.0':'p1'}");
    hd_buf_init(&path, 1000);
    assert_true(hd_secrets_find(assistant, false, &path));
    assert_slice(hd_buf_slice(&path), HD_S("agents.0.headers.X-Session"));
    hd_buf_fini(&path);
    hd_val_unref(assistant);
    hd_val_unref(taken);
    hd_val_unref(secrets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_secrets),
        cmocka_unit_test(names_of_other_things),
        cmocka_unit_test(texts_that_are_secrets),
        cmocka_unit_test(texts_that_are_none),
        cmocka_unit_test(take_leaves_markers),
        cmocka_unit_test(reveal_is_the_reverse),
        cmocka_unit_test(nothing_secret_is_the_same_value),
        cmocka_unit_test(places_of_one_name_differ),
        cmocka_unit_test(markers_that_come_in_stand_for_nothing),
        cmocka_unit_test(texts_are_revealed_within),
        cmocka_unit_test(find_reports_the_path),
        cmocka_unit_test(long_places_are_cut_in_whole_characters),
        cmocka_unit_test(names_of_headers),
        cmocka_unit_test(headers_of_servers_are_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
