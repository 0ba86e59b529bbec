/* Tool approval: which calls require it, and which replies are accepted. */
#include "tests/unit/check.h"

#include <stdio.h>

#include "agent/approval.h"
#include "agent/tools.h"
#include "base/buf.h"

static struct hd_val *json(const char *text)
{
    struct hd_val *val;
    struct heddle_error fault = {0};

    if (hd_val_parse_json(hd_slice_cstr(text), &val, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return val;
}

static void assert_val(const struct hd_val *got, const char *wanted)
{
    struct hd_val *val = json(wanted);
    struct hd_buf text;

    hd_buf_init(&text, 100000);
    assert_err(hd_val_render(&text, got), 0);
    if (!hd_val_equal(got, val))
        fail_msg("got %.*s, wanted %s", (int)text.len, text.ptr, wanted);
    hd_buf_fini(&text);
    hd_val_unref(val);
}

static void patterns_have_wildcards(void **unused)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},         {"", "a", false},        {"*", "", true},
        {"*", "abc", true},     {"a*", "abc", true},     {"a*", "bac", false},
        {"*c", "abc", true},    {"*c", "abcd", false},   {"a*c*e", "abcde", true},
        {"a*c*e", "ace", true}, {"a*c*e", "aec", false}, {"**b", "aab", true},
        {"a", "ab", false},     {"ab", "a", false},      {"*a*b", "xaxbxb", true},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        if (hd_pattern_matches(hd_slice_cstr(cases[i].pattern), hd_slice_cstr(cases[i].text)) !=
            cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].text);
    }
}

static void a_policy_selects_the_calls_that_need_approval(void **unused)
{
    static const struct {
        const char *policy, *args;
        bool is_needed;
    } cases[] = {
        {"null", "{}", false},
        {"false", "{}", false},
        {"true", "{}", true},
        {"[]", "{}", false},
        {"[\"pay\"]", "{}", true},
        {"[\"p*\"]", "{}", true},
        {"[\"own_*\"]", "{}", true}, /* the name in its source */
        {"[\"buy\"]", "{}", false},
        {"[\"buy\",\"*\"]", "{}", true},
        {"[{\"tool\":\"pay\"}]", "{}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"to\":\"me\"}}]", "{\"to\":\"me\"}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"to\":\"me\"}}]", "{\"to\":\"you\"}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"to\":\"me\"}}]", "{}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"to\":{\"a\":1}}}]", "{\"to\":{\"a\":1}}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":10}}}]", "{\"n\":10}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":10}}}]", "{\"n\":10.5}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":10}}}]", "{}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":10}}}]", "{\"n\":\"9\"}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"ge\":10}}}]", "{\"n\":10}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"lt\":10}}}]", "{\"n\":10}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"le\":10}}}]", "{\"n\":10}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":1,\"lt\":5}}}]", "{\"n\":3}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"gt\":1,\"lt\":5}}}]", "{\"n\":7}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"eq\":1}}}]", "{\"n\":1.0}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"ne\":1}}}]", "{\"n\":1}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"n\":{\"ne\":1}}}]", "{}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"contains\":\"rm\"}}}]", "{\"s\":\"a rm b\"}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"contains\":\"rm\"}}}]", "{\"s\":\"r m\"}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"contains\":2}}}]", "{\"s\":[1,2]}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"contains\":2}}}]", "{\"s\":[1]}", false},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"like\":\"/etc/*\"}}}]", "{\"s\":\"/etc/x\"}", true},
        {"[{\"tool\":\"pay\",\"args\":{\"s\":{\"like\":\"/etc/*\"}}}]", "{\"s\":\"/x\"}", false},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *policy = json(cases[i].policy), *args = json(cases[i].args);
        struct hd_approval approval;
        struct heddle_error fault = {0};

        assert_err(hd_approval_find(policy, HD_S("pay"), HD_S("own_pay"), args, &approval, &fault),
                   0);
        if (approval.is_needed != cases[i].is_needed)
            fail_msg("%s of %s", cases[i].policy, cases[i].args);
        hd_val_unref(policy);
        hd_val_unref(args);
    }
}

static void a_bad_policy_is_refused(void **unused)
{
    static const char *const cases[] = {
        "1",
        "\"pay\"",
        "{}",
        "[1]",
        "[{}]",
        "[{\"tool\":1}]",
        "[{\"tool\":\"a\",\"arg\":{}}]",
        "[{\"tool\":\"a\",\"args\":[]}]",
        "[{\"tool\":\"a\",\"args\":{\"x\":{\"like\":1}}}]",
        "[{\"tool\":\"a\",\"allow\":[]}]",
        "[{\"tool\":\"a\",\"allow\":[\"all\"]}]",
        "[{\"tool\":\"a\",\"allow\":\"edit\"}]",
        "[{\"tool\":\"a\",\"description\":1}]",
        "[\"b\",{\"tool\":\"a\",\"description\":1}]",
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *policy = json(cases[i]);
        struct heddle_error fault = {0};

        assert_err(hd_approval_check(policy, &fault), HD_EINVAL);
        assert_true(fault.text[0] != '\0');
        hd_val_unref(policy);
    }
}

static void a_question_shows_the_call_and_the_allowed_decisions(void **unused)
{
    struct hd_val *policy = json("[{\"tool\":\"pay\",\"allow\":[\"accept\",\"ignore\"],"
                                 "\"description\":\"Money!\"},\"*\"]");
    struct hd_val *args = json("{\"n\":1}"), *question;
    struct hd_approval approval, seen;

    (void)unused;
    assert_err(hd_approval_find(policy, HD_S("pay"), HD_S(""), args, &approval, NULL), 0);
    question = hd_approval_question(&approval, HD_S("pay"), args, HD_S("c1"), "no");
    assert_val(question, "{\"action_request\":{\"action\":\"pay\",\"args\":{\"n\":1}},\"config\":{"
                         "\"allow_ignore\":true,\"allow_respond\":false,\"allow_edit\":false,"
                         "\"allow_accept\":true},\"description\":\"Money!\",\"tool_call_id\":"
                         "\"c1\",\"action_requests\":[{\"name\":\"pay\",\"args\":{\"n\":1},"
                         "\"description\":\"Money!\"}],\"review_configs\":[{\"action_name\":"
                         "\"pay\",\"allowed_decisions\":[\"approve\",\"reject\"]}],"
                         "\"error\":\"no\"}");
    assert_true(hd_approval_is_question(question, HD_S("pay"), HD_S("c1"), &seen));
    assert_memory_equal(seen.allows, approval.allows, sizeof(seen.allows));
    assert_false(hd_approval_is_question(question, HD_S("pay"), HD_S("c2"), &seen));
    assert_false(hd_approval_is_question(question, HD_S("buy"), HD_S("c1"), &seen));
    assert_false(hd_approval_is_question(args, HD_S("pay"), HD_S("c1"), &seen));
    hd_val_unref(question);
    assert_err(hd_approval_find(policy, HD_S("x"), HD_S("x"), args, &approval, NULL), 0);
    question = hd_approval_question(&approval, HD_S("x"), args, HD_S(""), NULL);
    assert_val(hd_val_get(question, HD_S("description")),
               "\"The agent wants to call the tool `x`.\"");
    assert_null(hd_val_get(question, HD_S("error")));
    hd_val_unref(question);
    hd_val_unref(policy);
    hd_val_unref(args);
}

static void answers_have_many_forms(void **unused)
{
    static const struct {
        const char *answer;
        enum hd_verdict verdict;
        const char *args, *text;
    } cases[] = {
        {"{\"type\":\"accept\"}", HD_ACCEPT, NULL, NULL},
        {"{\"type\":\"accept\",\"args\":null}", HD_ACCEPT, NULL, NULL},
        {"[{\"type\":\"accept\",\"args\":{\"action\":\"pay\",\"args\":{}}}]", HD_ACCEPT, NULL,
         NULL},
        {"\"accept\"", HD_ACCEPT, NULL, NULL},
        {"\"[{\\\"type\\\":\\\"accept\\\"}]\"", HD_ACCEPT, NULL, NULL},
        {"{\"decisions\":[{\"type\":\"approve\"}]}", HD_ACCEPT, NULL, NULL},
        {"{\"type\":\"edit\",\"args\":{\"n\":2}}", HD_EDIT, "{\"n\":2}", NULL},
        {"{\"type\":\"edit\",\"args\":{\"action\":\"pay\",\"args\":{\"n\":2}}}", HD_EDIT,
         "{\"n\":2}", NULL},
        {"{\"type\":\"edit\",\"args\":{\"args\":{\"n\":2}}}", HD_EDIT, "{\"n\":2}", NULL},
        {"{\"type\":\"edit\",\"args\":{\"args\":{\"n\":2},\"x\":1}}", HD_EDIT,
         "{\"args\":{\"n\":2},\"x\":1}", NULL},
        {"{\"type\":\"edit\",\"args\":{}}", HD_EDIT, "{}", NULL},
        {"{\"decisions\":[{\"type\":\"edit\",\"edited_action\":{\"name\":\"pay\",\"args\":{\"n\":"
         "3}}}]}",
         HD_EDIT, "{\"n\":3}", NULL},
        {"{\"type\":\"response\",\"args\":\"hi\"}", HD_RESPOND, NULL, "\"hi\""},
        {"{\"type\":\"respond\",\"args\":\"\"}", HD_RESPOND, NULL, "\"\""},
        {"{\"type\":\"response\",\"args\":{\"a\":1}}", HD_RESPOND, NULL, "\"{\\\"a\\\":1}\""},
        {"{\"type\":\"ignore\"}", HD_IGNORE, NULL, NULL},
        {"{\"type\":\"ignore\",\"args\":null}", HD_IGNORE, NULL, NULL},
        {"{\"decisions\":[{\"type\":\"reject\",\"message\":\"too much\"}]}", HD_IGNORE, NULL,
         "\"too much\""},
    };
    struct hd_approval all = {.is_needed = true, .allows = {true, true, true, true}};

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *answer = json(cases[i].answer);
        struct hd_decision decision;
        struct heddle_error fault = {0};

        if (hd_approval_answer(answer, &all, HD_S("pay"), &decision, &fault) != 0)
            fail_msg("%s: %s", cases[i].answer, fault.text);
        assert_int_equal(decision.verdict, cases[i].verdict);
        assert_val(decision.args, cases[i].args ? cases[i].args : "null");
        assert_val(decision.text, cases[i].text ? cases[i].text : "null");
        hd_decision_fini(&decision);
        hd_val_unref(answer);
    }
}

static void an_invalid_answer_is_reported(void **unused)
{
    static const struct {
        const char *answer, *text;
    } cases[] = {
        {"null", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"true", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"7", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"\"yes\"", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"\"{\"", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"{}", "a reply is an object whose \"type\" is accept, edit, response or ignore"},
        {"{\"type\":1}", "a reply is an object whose \"type\" is accept, edit, response or "
                         "ignore"},
        {"[]", "one call needs one reply, not 0"},
        {"[{\"type\":\"accept\"},{\"type\":\"accept\"}]", "one call needs one reply, not 2"},
        {"{\"decisions\":[]}", "one call needs one reply, not 0"},
        {"{\"type\":\"ignore\"}", "the reply \"ignore\" is not allowed here"},
        {"{\"decisions\":[{\"type\":\"reject\"}]}", "the reply \"reject\" is not allowed here"},
        {"{\"type\":\"edit\"}", "\"args\" of an edit must be an object"},
        {"{\"type\":\"edit\",\"args\":\"x\"}", "\"args\" of an edit must be an object"},
        {"{\"type\":\"edit\",\"args\":{\"action\":\"buy\",\"args\":{}}}",
         "an edit changes the arguments, not the tool that is called"},
        {"{\"type\":\"response\"}", "a response needs its text in \"args\""},
    };
    struct hd_approval some = {.is_needed = true, .allows = {true, true, true, false}};

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *answer = json(cases[i].answer);
        struct hd_decision decision;
        struct heddle_error fault = {0};

        assert_err(hd_approval_answer(answer, &some, HD_S("pay"), &decision, &fault), HD_EINVAL);
        assert_string_equal(fault.text, cases[i].text);
        hd_val_unref(answer);
    }
}

/* ---- arguments and results -------------------------------------------- */

static void arguments_are_looked_at(void **unused)
{
    static const struct {
        const char *args, *text;
    } cases[] = {
        {"{\"q\":\"x\"}", NULL},
        {"{\"q\":\"x\",\"n\":1,\"f\":1.5,\"l\":[],\"o\":{},\"b\":true,\"u\":null,\"more\":1}",
         NULL},
        {"{\"q\":\"x\",\"n\":2.0,\"f\":1,\"u\":\"s\"}", NULL},
        {"{}", "\"q\" is required"},
        {"[]", "the arguments must be an object, not a list"},
        {"\"x\"", "the arguments must be an object, not a string"},
        {"{\"q\":1}", "\"q\" must be of type string, not an integer"},
        {"{\"q\":\"x\",\"n\":1.5}", "\"n\" must be of type integer, not a float"},
        {"{\"q\":\"x\",\"f\":\"1\"}", "\"f\" must be of type number, not a string"},
        {"{\"q\":\"x\",\"l\":{}}", "\"l\" must be of type array, not an object"},
        {"{\"q\":\"x\",\"o\":[]}", "\"o\" must be of type object, not a list"},
        {"{\"q\":\"x\",\"b\":1}", "\"b\" must be of type boolean, not an integer"},
        {"{\"q\":\"x\",\"u\":1}", "\"u\" must be of type [\"string\",\"null\"], not an integer"},
    };
    struct hd_val *schema = json(
        "{\"type\":\"object\",\"required\":[\"q\",3],\"properties\":{\"q\":{\"type\":\"string\"},"
        "\"n\":{\"type\":\"integer\"},\"f\":{\"type\":\"number\"},\"l\":{\"type\":\"array\"},"
        "\"o\":{\"type\":\"object\"},\"b\":{\"type\":\"boolean\"},\"u\":{\"type\":[\"string\","
        "\"null\"]},\"x\":{\"type\":\"other\"},\"any\":{}}}");

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *args = json(cases[i].args);
        struct heddle_error fault = {0};

        assert_err(hd_tool_args_check(schema, args, &fault), cases[i].text ? HD_EINVAL : 0);
        assert_string_equal(fault.text, cases[i].text ? cases[i].text : "");
        hd_val_unref(args);
    }
    hd_val_unref(schema);
}

static void odd_schemas_forbid_nothing(void **unused)
{
    static const char *const schemas[] = {
        "{}",
        "{\"required\":\"q\",\"properties\":[]}",
        "{\"properties\":{\"q\":true}}",
        "{\"properties\":{\"q\":{\"type\":[]}}}",
        "{\"properties\":{\"q\":{\"type\":7}}}",
    };
    struct hd_val *args = json("{\"q\":1}");

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(schemas); i++) {
        struct hd_val *schema = json(schemas[i]);

        assert_err(hd_tool_args_check(schema, args, NULL), 0);
        hd_val_unref(schema);
    }
    hd_val_unref(args);
}

static void results_are_bounded(void **unused)
{
    static const struct {
        const char *content;
        size_t max;
        const char *wanted;
    } cases[] = {
        {"\"abcdef\"", 6, "\"abcdef\""},
        {"\"abcdef\"", 4, "\"abcd\\n[2 of 6 bytes were left out]\""},
        {"\"ab\xc3\xa4\xc3\xa4\"", 5, "\"ab\xc3\xa4\\n[2 of 6 bytes were left out]\""},
        {"\"a\\u0000cdef\"", 4, "\"a\\u0000cd\\n[2 of 6 bytes were left out]\""},
        {"null", 4, "\"\""},
        {"{\"a\":1}", 100, "\"{\\\"a\\\":1}\""},
        {"12", 100, "\"12\""},
        {"[]", 4, "[]"},
        {"[{\"type\":\"text\",\"text\":\"abcdef\"}]", 4,
         "[{\"type\":\"text\",\"text\":\"abcd\\n[2 of 6 bytes were left out]\"}]"},
        {"[\"abc\",\"def\",\"ghi\"]", 4,
         "[\"abc\",\"d\\n[2 of 3 bytes were left out]\",{\"type\":\"text\",\"text\":\"[1 more "
         "parts were left out]\"}]"},
        {"[{\"type\":\"image\",\"data\":\"abcdef\"},\"a\"]", 30,
         "[{\"type\":\"text\",\"text\":\"[content was left out: it is too large]\"},\"a\"]"},
        {"[{\"type\":\"image\",\"data\":\"abcdef\"},7]", 100,
         "[{\"type\":\"image\",\"data\":\"abcdef\"},{\"type\":\"text\",\"text\":\"7\"}]"},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *bound = hd_tool_content(json(cases[i].content), cases[i].max);

        assert_val(bound, cases[i].wanted);
        hd_val_unref(bound);
    }
}

static int use_everything(void *arg)
{
    struct hd_approval all = {.is_needed = true, .allows = {true, true, true, true}};
    struct hd_val *answer = ((struct hd_val **)arg)[0], *args = ((struct hd_val **)arg)[1];
    struct hd_val *question = hd_approval_question(&all, HD_S("pay"), args, HD_S("c"), "error");
    struct hd_val *content = hd_tool_content(hd_val_ref(args), 4);
    struct hd_decision decision = {0};
    int err = hd_approval_answer(answer, &all, HD_S("pay"), &decision, NULL);

    if (!err && (!question || !content))
        err = HD_ENOMEM;
    hd_val_unref(question);
    hd_val_unref(content);
    hd_decision_fini(&decision);
    return err;
}

static void it_survives_without_memory(void **unused)
{
    struct hd_val *vals[] = {json("\"[{\\\"type\\\":\\\"response\\\",\\\"args\\\":[1,2]}]\""),
                             json("[{\"text\":\"abcdef\"},1,{\"image\":\"abcdef\"},\"more\"]")};

    (void)unused;
    assert_true(check_every_allocation(use_everything, vals) > 5);
    hd_val_unref(vals[0]);
    hd_val_unref(vals[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_have_wildcards),
        cmocka_unit_test(a_policy_selects_the_calls_that_need_approval),
        cmocka_unit_test(a_bad_policy_is_refused),
        cmocka_unit_test(a_question_shows_the_call_and_the_allowed_decisions),
        cmocka_unit_test(answers_have_many_forms),
        cmocka_unit_test(an_invalid_answer_is_reported),
        cmocka_unit_test(arguments_are_looked_at),
        cmocka_unit_test(odd_schemas_forbid_nothing),
        cmocka_unit_test(results_are_bounded),
        cmocka_unit_test(it_survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
