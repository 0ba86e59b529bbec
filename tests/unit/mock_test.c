/* The scripted model: replies in each provider's form, chunks, and failing allocations. */
#include "base/json.h"
#include "mock/mock.h"
#include "tests/unit/check.h"

static const char script[] =
    "{\"pieces\":{\"chunks\":3},\"rules\":[{\"when\":{\"contains\":\"fail\"},\"error\":{\"status\":"
    "529,"
    "\"retry_after\":2}},{\"content\":\"you said {{last}}\",\"reasoning\":\"well\",\"delay_ms\":5,"
    "\"tool_calls\":[{\"name\":\"t\",\"id\":\"c1\",\"args\":{\"q\":\"{{user}}\"}}]}]}";

static struct hd_slice request(enum hd_mock_form form, bool fails)
{
    if (form == HD_MOCK_GEMINI)
        return fails ? HD_S("{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"fail\"}]}]}")
                     : HD_S("{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"a "
                            "\\\"b\\\"\"}]}]}");
    return fails ? HD_S("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"fail\"}]}")
                 : HD_S("{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                        "\"content\":[{\"type\":\"text\",\"text\":\"a \\\"b\\\"\"}]}]}");
}

static int ask(struct hd_mock *mock, enum hd_mock_form form, bool fails, struct hd_mock_answer *out)
{
    struct hd_mock_ask question = {.form = form, .body = request(form, fails), .is_stream = !fails};

    question.model = form == HD_MOCK_GEMINI ? HD_S("m") : hd_slice(NULL, 0);
    return hd_mock_chat(mock, &question, out);
}

/* Sends every kind of request, with a separate script. */
static int everything(void *arg)
{
    struct hd_mock *mock = NULL;
    struct hd_mock_answer answer;
    int err = hd_mock_create(&mock, hd_slice_cstr(script), NULL);

    (void)arg;
    for (int i = 0; !err && i < 6; i++) {
        err = ask(mock, (enum hd_mock_form)(i / 2), i % 2 == 0, &answer);
        if (!err)
            hd_mock_answer_fini(&answer);
    }
    if (!err)
        err = hd_mock_models(mock, &answer);
    if (!err)
        hd_mock_answer_fini(&answer);
    if (!err)
        err = hd_mock_embed(HD_S("{\"input\":[\"a b\",\"c\"]}"), &answer);
    if (!err)
        hd_mock_answer_fini(&answer);
    hd_mock_destroy(mock);
    return err;
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    assert_true(check_every_allocation(everything, NULL) > 10);
}

static void a_stream_has_its_pieces_in_order(void **state)
{
    struct hd_mock *mock;
    struct hd_mock_answer answer;
    size_t before = 0;

    (void)state;
    assert_err(hd_mock_create(&mock, hd_slice_cstr(script), NULL), 0);
    for (int form = HD_MOCK_OPENAI; form <= HD_MOCK_GEMINI; form++) {
        assert_err(ask(mock, (enum hd_mock_form)form, false, &answer), 0);
        assert_true(answer.is_stream && answer.delay_ms == 5 && answer.rule == 1);
        assert_true(answer.count >= 6); /* three of the reasoning, three of the text */
        before = 0;
        for (size_t i = 0; i < answer.count; i++) {
            assert_true(answer.ends[i] > before);
            before = answer.ends[i];
        }
        assert_int_equal(before, answer.text.len);
        hd_mock_answer_fini(&answer);
    }
    hd_mock_destroy(mock);
}

static void an_error_is_an_answer(void **state)
{
    struct hd_mock *mock;
    struct hd_mock_answer answer;

    (void)state;
    assert_err(hd_mock_create(&mock, hd_slice_cstr(script), NULL), 0);
    assert_err(ask(mock, HD_MOCK_ANTHROPIC, true, &answer), 0);
    assert_int_equal(answer.status, 529);
    assert_int_equal(answer.retry_after, 2);
    assert_slice(
        hd_buf_slice(&answer.text),
        HD_S("{\"type\":\"error\",\"error\":{\"message\":\"the script says that this fails\","
             "\"type\":\"overloaded_error\"}}"));
    hd_mock_answer_fini(&answer);
    hd_mock_destroy(mock);
}

static void rules_are_counted_until_it_is_reset(void **state)
{
    struct hd_mock *mock;
    struct hd_mock_answer answer;

    (void)state;
    assert_err(hd_mock_create(&mock, HD_S("{\"rules\":[{\"times\":1,\"content\":\"x\"}]}"), NULL),
               0);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            hd_mock_reset(mock);
        assert_err(ask(mock, HD_MOCK_OPENAI, true, &answer), 0);
        assert_int_equal(answer.status, i % 2 == 0 ? 200 : 404);
        hd_mock_answer_fini(&answer);
    }
    hd_mock_destroy(mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_has_its_pieces_in_order),
        cmocka_unit_test(an_error_is_an_answer),
        cmocka_unit_test(rules_are_counted_until_it_is_reset),
        cmocka_unit_test(memory_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
