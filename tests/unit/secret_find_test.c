/* The search for secrets in stored data: findings, their places, and texts without secrets. */
#include <string.h>

#include "base/buf.h"
#include "secret/secret_find.h"
#include "tests/unit/check.h"

#define JWT \
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSIsImV4cCI6MTc2MDAwMDAwMH0.Zm9vYmFyMDEyMzQ1Njc4OTA"
#define KEY "sk-proj-4Tf9aB27Qx81LmZp0Wv3"

static int note(void *ctx, const struct hd_secret_finding *finding)
{
    struct hd_buf *out = ctx;

    return hd_buf_printf(out, "%.*s|%s|%.*s%s\n", (int)finding->place.len, finding->place.ptr,
                         finding->kind, (int)finding->secret.len, finding->secret.ptr,
                         finding->is_within ? "|within" : "");
}

static int find(struct hd_slice text, bool in_pieces, struct hd_buf *out)
{
    hd_buf_reset(out);
    return in_pieces ? hd_secret_find_pieces(text, note, out) : hd_secret_find(text, note, out);
}

/* Single quotes in `text` stand for double ones. */
static void expect(const char *text, bool in_pieces, const char *expected)
{
    struct hd_buf copy, out;

    hd_buf_init(&copy, 100000);
    hd_buf_init(&out, 100000);
    assert_int_equal(hd_buf_append(&copy, text, strlen(text)), 0);
    for (size_t i = 0; i < copy.len; i++)
        copy.ptr[i] = (char)(copy.ptr[i] == '\'' ? '"' : copy.ptr[i]);
    assert_int_equal(find(hd_buf_slice(&copy), in_pieces, &out), 0);
    assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected));
    hd_buf_fini(&copy);
    hd_buf_fini(&out);
}

static void members_by_name(void **state)
{
    (void)state;
    expect("{'configurable': {'x_api_key': 'abc', 'max_tokens': '7'}}", false,
           "configurable.x_api_key|by name|abc\n");
    expect("{'apiKeys': {'one': 'a', 'two': ['b']}}", false,
           "apiKeys.one|by name|a\napiKeys.two.0|by name|b\n");
    expect("[{'headers': {'Authorization': 'x'}}]", false, "0.headers.Authorization|by name|x\n");
}

static void headers_of_servers(void **state)
{
    (void)state;
    expect("{'servers': [{'url': 'http://x', 'headers': {'X-Key': 'k', 'Accept': 'a/b'}}]}", false,
           "servers.0.headers.X-Key|by name|k\n");
    expect("{'base_url': 'u', 'default_headers': {'x-functions-key': ['k'], 'Api-Version': '1'}}",
           false, "default_headers.x-functions-key.0|by name|k\n");
    expect("{'url': 'u', 'headers': {'X-Pass': 'heddle:secret:headers.X-Pass'}}", false, "");
    expect("{'status': 200, 'headers': {'X-Key': 'k', 'X-Session': 's'}}", false, "");
}

static void members_that_are_none(void **state)
{
    (void)state;
    expect("{'api_key': '', 'password': null, 'token': 5, 'secret': true}", false, "");
    expect("{'api_key': 'heddle:secret:configurable.api_key'}", false, "");
    expect("{'Authorization': 'Bearer heddle:secret:configurable.token'}", false, "");
    expect("{'password': '********', 'api_key': '${API_KEY}', 'token': '<your token>'}", false, "");
    expect("{'usage_metadata': {'input_tokens': 5, 'input_token_details': {'cache_read': 1}}}",
           false, "");
    expect("{'content': [{'token': 'Hel', 'logprob': -0.1}]}", false, "");
    expect("{'properties': {'api_key': {'type': 'string', 'title': 'Key'}}}", false, "");
}

static void values_by_shape(void **state)
{
    (void)state;
    expect("{'a': '" JWT "'}", false, "a|a JSON Web Token|" JWT "\n");
    expect("{'a': 'Bearer abcdef0123456789'}", false, "a|credentials|Bearer abcdef0123456789\n");
    expect("{'a': '" KEY "'}", false, "a|a key|" KEY "\n");
    expect("{'a': 'hdk_0123456789abcdef0123'}", false, "a|a key|hdk_0123456789abcdef0123\n");
    expect("{'a': 'postgresql://u:hunter2@db/x'}", false,
           "a|a URL with a password|postgresql://u:hunter2@db/x\n");
    expect("{'a': 'sid=38afes7a8; Path=/; HttpOnly'}", false,
           "a|a cookie|sid=38afes7a8; Path=/; HttpOnly\n");
    expect("{'" KEY "': 1}", false, KEY "|a key|" KEY "\n");
    expect(JWT, false, "|a JSON Web Token|" JWT "\n");
}

static void json_in_strings(void **state)
{
    (void)state;
    expect("{'arguments': '{\\'password\\': \\'hunter2\\'}'}", false,
           "arguments.password|by name|hunter2\n");
}

static void texts_that_hold_one(void **state)
{
    (void)state;
    expect("{'content': 'here is my key: " KEY ", keep it'}", false,
           "content|a key|" KEY "|within\n");
    expect("curl -H 'Authorization: Bearer 0a1b2c3d4e5f60718293' x", false,
           "|credentials|0a1b2c3d4e5f60718293|within\n");
    expect("see https://user:hunter22@example.org/x.", false,
           "|a URL with a password|https://user:hunter22@example.org/x|within\n");
    expect("token=" JWT "&x=1", false, "|a JSON Web Token|" JWT "|within\n");
}

static void private_keys(void **state)
{
    static const char pem[] = "Look: -----BEGIN RSA PRIVATE KEY-----\n"
                              "MIIEpAIBAAKCAQEA0123456789abcdef0123456789abcdef0123456789abcdef\n"
                              "MIIEpAIBAAKCAQEA0123456789abcdef0123456789abcdef0123456789abcdef\n"
                              "-----END RSA PRIVATE KEY-----\n";
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 100000);
    assert_int_equal(find(hd_slice_cstr(pem), false, &out), 0);
    assert_non_null(memmem(out.ptr, out.len, "|a private key|-----BEGIN", 25));
    hd_buf_fini(&out);
}

/* Prose about secrets has no findings. */
static void texts_that_hold_none(void **state)
{
    static const char *const texts[] = {
        "My token is broken; what is a password, and is Bearer authentication safe?",
        "Authorization: Bearer is the scheme, then comes the token.",
        "Set OPENAI_API_KEY, then use sk-learn-compatible-estimators-2 from scikit.",
        "postgresql://user:password@localhost/db is what the manual says",
        "postgresql://user:$PASSWORD@localhost/db",
        "https://example.org/a/b?token_count=12#part",
        "call hf_hub_download_something(2) and npm_config_registry_of_mine",
        "1f0c2e58-7a4b-6f1e-8000-5d1f6a3e9b7c is a run",
        "It begins with -----BEGIN PRIVATE KEY----- and ends alike.",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "eyJ is how they begin. a.b.c",
        "C:/Users/somebody/AppData/Local/Temp/file_2026_11_15.txt",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++)
        expect(texts[i], false, "");
    expect("{'content': 'What is a JWT? eyJ…', 'id': 'run-1f0c2e58-7a4b-6f1e-8000-5d1f6a3e9b7c'}",
           false, "");
}

static void pieces(void **state)
{
    (void)state;
    expect("', 'x': 1}, {'password': 'hunter2', 'y'", true, "password|by name|hunter2\n");
    expect("d', 'token': 'Hel'", true, "");
    expect("…'api_key':'heddle:secret:a.b'", true, "");
}

/* Keys and values of msgpack: a length before each, no quotes. */
static void binary_texts(void **state)
{
    static const char packed[] = "\x82\xa1\x61\xd9\x1c" KEY "\xa1\x62\xc0";
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 100000);
    assert_int_equal(find(hd_slice(packed, sizeof(packed) - 1), false, &out), 0);
    assert_slice(hd_buf_slice(&out), HD_S("|a key|" KEY "|within\n"));
    hd_buf_fini(&out);
}

static void headers(void **state)
{
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 100000);
    assert_int_equal(hd_secret_find_headers(HD_S("Content-Type: text/plain\r\nSet-Cookie: a=b\r\n"
                                                 "X-Request-Id: 0123456789abcdef0123\r\n"),
                                            note, &out),
                     0);
    assert_slice(hd_buf_slice(&out), HD_S("Set-Cookie|by name|a=b\n"));
    hd_buf_fini(&out);
}

static int find_all(void *arg)
{
    struct hd_buf out;
    int err;

    (void)arg;
    hd_buf_init(&out, 100000);
    err = hd_secret_find(HD_S("{\"a\":{\"password\":\"x\"},\"b\":\"[\\\"" KEY "\\\"]\"}"), note,
                         &out);
    if (!err)
        assert_slice(hd_buf_slice(&out), HD_S("a.password|by name|x\nb.0|a key|" KEY "\n"));
    hd_buf_fini(&out);
    return err;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(check_every_allocation(find_all, NULL) > 0);
}

static int refuse(void *ctx, const struct hd_secret_finding *finding)
{
    (void)ctx;
    (void)finding;
    return HD_EIO;
}

static void answers_end_the_search(void **state)
{
    (void)state;
    assert_err(hd_secret_find(HD_S("{\"password\":\"x\"}"), refuse, NULL), HD_EIO);
    assert_err(hd_secret_find_pieces(HD_S("\"password\":\"x\""), refuse, NULL), HD_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_of_servers),
        cmocka_unit_test(members_by_name),
        cmocka_unit_test(members_that_are_none),
        cmocka_unit_test(values_by_shape),
        cmocka_unit_test(json_in_strings),
        cmocka_unit_test(texts_that_hold_one),
        cmocka_unit_test(private_keys),
        cmocka_unit_test(texts_that_hold_none),
        cmocka_unit_test(pieces),
        cmocka_unit_test(binary_texts),
        cmocka_unit_test(headers),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(answers_end_the_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
