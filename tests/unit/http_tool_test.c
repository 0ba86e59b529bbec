/* Plain HTTP tools: valid declarations, and requests built from arguments. */
#include "tests/unit/check.h"

#include <stdio.h>

#include "agent/http_tool.h"

static struct hd_val *json(const char *text)
{
    struct hd_val *val;
    struct heddle_error fault = {0};

    if (hd_val_parse_json(hd_slice_cstr(text), &val, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return val;
}

#define TOOL(more) "{\"name\":\"t\",\"url\":\"http://h/x\"" more "}"
#define AT(url, more) "{\"name\":\"t\",\"url\":\"" url "\"" more "}"

static void declarations_are_checked(void **unused)
{
    static const struct {
        const char *tool, *text;
    } cases[] = {
        {TOOL(""), ""},
        {TOOL(",\"description\":\"d\",\"parameters\":{},\"method\":\"PUT\",\"headers\":{\"A\":"
              "\"b\",\"C\":null},\"query\":[\"q\"],\"body\":[\"b\"],\"result\":\"json\","
              "\"timeout_ms\":5,\"read_only\":true"),
         ""},
        {TOOL(",\"body\":true,\"result\":{\"json\":\"a.b\"},\"method\":null"), ""},
        {"[]", "a tool must be an object, not a list"},
        {"{\"url\":\"http://h\"}", "\"name\" must be a string"},
        {"{\"name\":\"\",\"url\":\"http://h\"}", "\"name\" must be a string"},
        {"{\"name\":\"t\"}", "\"url\" must begin with http:// or https://"},
        {AT("ftp://h", ""), "\"url\" must begin with http:// or https://"},
        {AT("http://h/a b", ""), "\"url\" must have no spaces, control characters or #"},
        {AT("http://h/a#b", ""), "\"url\" must have no spaces, control characters or #"},
        {AT("http:///a", ""), "\"url\" has no host"},
        {AT("https://?a", ""), "\"url\" has no host"},
        {AT("http://{h}/a", ""), "\"url\" must have no {name} in its host"},
        {AT("http://h{h}", ""), "\"url\" must have no {name} in its host"},
        {AT("http://h/{a", ""), "\"url\" has an unmatched brace"},
        {AT("http://h/a}", ""), "\"url\" has an unmatched brace"},
        {AT("http://h/{a{b}}", ""), "\"url\" has an unmatched brace"},
        {TOOL(",\"method\":\"get\""), "\"method\" must be GET, POST, PUT, PATCH, DELETE or HEAD"},
        {TOOL(",\"description\":1"), "\"description\" must be a string"},
        {TOOL(",\"parameters\":[]"), "\"parameters\" must be a JSON Schema"},
        {TOOL(",\"headers\":[]"), "\"headers\" must be an object of names to texts"},
        {TOOL(",\"headers\":{\"a b\":\"c\"}"), "invalid header name in \"headers\""},
        {TOOL(",\"headers\":{\"a\":1}"), "header \"a\" must be a line of text"},
        {TOOL(",\"headers\":{\"a\":\"b\\r\\nc: d\"}"), "header \"a\" must be a line of text"},
        {TOOL(",\"query\":true"), "\"query\" must be a list of arguments"},
        {TOOL(",\"query\":[1]"), "\"query\" must be a list of arguments"},
        {TOOL(",\"body\":\"all\""), "\"body\" must be true or a list of arguments"},
        {TOOL(",\"result\":\"xml\""),
         "\"result\" must be \"text\", \"json\" or {\"json\": \"a.path\"}"},
        {TOOL(",\"result\":{}"), "\"result\" must be \"text\", \"json\" or {\"json\": \"a.path\"}"},
        {TOOL(",\"timeout_ms\":0"), "\"timeout_ms\" must be from 1 to a day"},
        {TOOL(",\"timeout_ms\":\"1\""), "\"timeout_ms\" must be from 1 to a day"},
        {TOOL(",\"read_only\":\"yes\""), "\"read_only\" must be true or false"},
        {TOOL(",\"header\":{}"), "unknown member \"header\""},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *tool = json(cases[i].tool);
        struct heddle_error fault = {0};

        assert_err(hd_tool_http_check(tool, &fault), cases[i].text[0] ? HD_EINVAL : 0);
        assert_string_equal(fault.text, cases[i].text);
        hd_val_unref(tool);
    }
}

static void arguments_go_where_they_belong(void **unused)
{
    static const struct {
        const char *tool, *args, *method, *url, *body; /* `body` NULL: no body */
    } cases[] = {
        {TOOL(""), "{}", "GET", "http://h/x", NULL},
        {TOOL(""), "{\"a\":1,\"b\":\"c d&e\"}", "GET", "http://h/x?a=1&b=c%20d%26e", NULL},
        {AT("http://h/x?k=v", ""), "{\"a\":true}", "GET", "http://h/x?k=v&a=true", NULL},
        {TOOL(""), "{\"a\":null,\"l\":[1,\"two\"]}", "GET", "http://h/x?l=1&l=two", NULL},
        {TOOL(""), "{\"o\":{\"p\":1}}", "GET", "http://h/x?o=%7B%22p%22%3A1%7D", NULL},
        {AT("http://h/{id}/x/{id}", ""), "{\"id\":\"a/b?c\",\"q\":\"\xc3\xa4\"}", "GET",
         "http://h/a%2Fb%3Fc/x/a%2Fb%3Fc?q=%C3%A4", NULL},
        {AT("http://h/{id}", ",\"query\":[]"), "{\"id\":7,\"q\":1}", "GET", "http://h/7", NULL},
        {TOOL(",\"query\":[\"q\"]"), "{\"q\":1,\"r\":2}", "GET", "http://h/x?q=1", NULL},
        {TOOL(",\"body\":true"), "{\"a\":1}", "POST", "http://h/x", "{\"a\":1}"},
        {TOOL(",\"body\":true,\"query\":[\"q\"]"), "{\"q\":1,\"a\":null}", "POST", "http://h/x?q=1",
         "{\"a\":null}"},
        {TOOL(",\"body\":[\"b\"]"), "{\"b\":[1],\"c\":2}", "POST", "http://h/x", "{\"b\":[1]}"},
        {TOOL(",\"body\":[\"b\"],\"method\":\"PUT\""), "{}", "PUT", "http://h/x", "{}"},
        {AT("http://h/{id}", ",\"method\":\"PATCH\""), "{\"id\":1,\"a\":2}", "PATCH", "http://h/1",
         "{\"a\":2}"},
        {AT("http://h/{id}", ",\"method\":\"DELETE\""), "{\"id\":1,\"a\":2}", "DELETE",
         "http://h/1?a=2", NULL},
        {TOOL(",\"body\":false,\"method\":\"POST\""), "{\"a\":2}", "POST", "http://h/x", NULL},
        {AT("http://h/a/../b", ""), "{}", NULL, "an argument must not be . or .. in a path", NULL},
        {AT("http://h/{a}/b", ""), "{\"a\":\"..\"}", NULL,
         "an argument must not be . or .. in a path", NULL},
        {AT("http://h/{a}{b}", ""), "{\"a\":\".\",\"b\":\".\"}", NULL,
         "an argument must not be . or .. in a path", NULL},
        {AT("http://h/{a}.txt", ""), "{\"a\":\"..\"}", "GET", "http://h/...txt", NULL},
        {AT("http://h/{a}", ""), "{}", NULL, "\"a\" is required", NULL},
        {AT("http://h/{a}", ""), "{\"a\":null}", NULL, "\"a\" is required", NULL},
        {AT("http://h/{a}", ""), "{\"a\":\"\"}", NULL, "\"a\" must not be empty", NULL},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *tool = json(cases[i].tool), *args = json(cases[i].args);
        struct hd_tool_http_request request;
        struct heddle_error fault = {0};
        int err;

        hd_tool_http_request_init(&request);
        err = hd_tool_http_request(&request, tool, args, NULL, &fault);
        assert_err(err, cases[i].method ? 0 : HD_EINVAL);
        assert_string_equal(err ? fault.text : request.url.ptr, cases[i].url);
        if (!err) {
            assert_string_equal(request.method, cases[i].method);
            assert_int_equal(request.has_body, cases[i].body != NULL);
            assert_slice(hd_buf_slice(&request.body), hd_slice_cstr(cases[i].body));
            assert_int_equal(request.header_count, request.has_body ? 1 : 0);
        }
        hd_tool_http_request_fini(&request);
        hd_val_unref(tool);
        hd_val_unref(args);
    }
}

static void secrets_are_in_headers_alone(void **unused)
{
    struct hd_val *tool = json(
        TOOL(",\"body\":true,\"headers\":{\"content-type\":\"text/x\",\"A\":\"Bearer "
             "heddle:secret:keys.k1, heddle:secret:keys.k\",\"X-Api-Key\":\"plain\",\"No\":null}"));
    struct hd_val *args = json("{\"a\":\"heddle:secret:keys.k\"}");
    struct hd_val *secrets =
        json("{\"heddle:secret:keys.k\":\"one\",\"heddle:secret:keys.k1\":\"two\"}");
    struct hd_tool_http_request request;
    struct heddle_error fault = {0};

    (void)unused;
    hd_tool_http_request_init(&request);
    assert_err(hd_tool_http_request(&request, tool, args, secrets, &fault), 0);
    assert_int_equal(request.header_count, 3);
    assert_string_equal(request.headers[0], "content-type: text/x");
    assert_string_equal(request.headers[1], "A: Bearer two, one");
    assert_string_equal(request.headers[2], "X-Api-Key: plain");
    assert_slice(hd_buf_slice(&request.body), HD_S("{\"a\":\"heddle:secret:keys.k\"}"));
    assert_int_equal(request.secret_count, 3);
    assert_slice(request.secrets[0], HD_S("two"));
    assert_slice(request.secrets[1], HD_S("one"));
    assert_slice(request.secrets[2], HD_S("plain"));
    hd_tool_http_request_fini(&request);
    /* After a restart the secret is unknown. */
    hd_tool_http_request_init(&request);
    assert_err(hd_tool_http_request(&request, tool, args, NULL, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "the credentials of this tool are no longer available");
    hd_tool_http_request_fini(&request);
    hd_val_unref(tool);
    hd_val_unref(args);
    hd_val_unref(secrets);
}

static void results_are_text_or_json(void **unused)
{
    static const struct {
        const char *result, *body, *wanted; /* JSON, or the error */
    } cases[] = {
        {"null", "{\"a\":1}", "\"{\\\"a\\\":1}\""},
        {"\"text\"", "abc", "\"abc\""},
        {"\"json\"", "{\"a\": 1}", "{\"a\":1}"},
        {"{\"json\":\"\"}", "[1]", "[1]"},
        {"{\"json\":\"a.1.b\"}", "{\"a\":[0,{\"b\":\"x\"}]}", "\"x\""},
        {"{\"json\":\"a\"}", "{\"a\":null}", "null"},
        {"\"json\"", "<a>", "!the response is not JSON"},
        {"{\"json\":\"a.2\"}", "{\"a\":[0]}", "!the response has no \"a.2\""},
        {"{\"json\":\"a.x\"}", "{\"a\":[0]}", "!the response has no \"a.x\""},
        {"{\"json\":\"a.b\"}", "{\"a\":7}", "!the response has no \"a.b\""},
        {"{\"json\":\"a.99999999999999999999\"}", "{\"a\":[0]}",
         "!the response has no \"a.99999999999999999999\""},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *tool = hd_val_with(hd_val_object(), HD_S("result"), json(cases[i].result));
        bool is_error = cases[i].wanted[0] == '!';
        struct hd_val *got = NULL, *wanted = is_error ? NULL : json(cases[i].wanted);
        struct heddle_error fault = {0};

        assert_err(hd_tool_http_result(tool, hd_slice_cstr(cases[i].body), &got, &fault),
                   is_error ? HD_EINVAL : 0);
        if (is_error)
            assert_string_equal(fault.text, cases[i].wanted + 1);
        else
            assert_true(hd_val_equal(got, wanted));
        hd_val_unref(got);
        hd_val_unref(wanted);
        hd_val_unref(tool);
    }
}

static int make_request(void *arg)
{
    struct hd_val **vals = arg;
    struct hd_tool_http_request request;
    struct hd_val *result = NULL;
    int err;

    hd_tool_http_request_init(&request);
    err = hd_tool_http_request(&request, vals[0], vals[1], NULL, NULL);
    if (!err)
        err = hd_tool_http_result(vals[0], HD_S("{\"a\":[1,2]}"), &result, NULL);
    hd_val_unref(result);
    hd_tool_http_request_fini(&request);
    return err;
}

static void it_survives_without_memory(void **unused)
{
    struct hd_val *vals[] = {json(AT("http://h/{id}", ",\"body\":[\"b\"],\"query\":[\"q\"],"
                                                      "\"headers\":{\"a\":\"b\"},\"result\":{"
                                                      "\"json\":\"a.0\"}")),
                             json("{\"id\":1,\"b\":2,\"q\":{\"x\":[3]}}")};

    (void)unused;
    assert_true(check_every_allocation(make_request, vals) > 5);
    hd_val_unref(vals[0]);
    hd_val_unref(vals[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_checked),
        cmocka_unit_test(arguments_go_where_they_belong),
        cmocka_unit_test(secrets_are_in_headers_alone),
        cmocka_unit_test(results_are_text_or_json),
        cmocka_unit_test(it_survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
