#include "base/error.h"

#include <string.h>

#include "base/utf8.h"
#include "tests/unit/check.h"

static void every_code_has_name_text_and_status(void **state)
{
    static const struct {
        int code;
        const char *name;
    } codes[] = {
#define X(name, code, http, text) {name, #name},
        HD_ERRORS(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(codes); i++) {
        assert_int_equal(codes[i].code, -(int)i - 1);
        assert_string_equal(hd_error_name(codes[i].code), codes[i].name);
        assert_string_not_equal(hd_error_text(codes[i].code), "unknown error");
        assert_in_range(hd_error_http_status(codes[i].code), 400, 599);
    }
}

static void examples_are_right(void **state)
{
    static const struct {
        int code, http;
        const char *name, *text;
    } cases[] = {
        {0, 200, "HD_OK", "ok"},
        {HD_ENOMEM, 503, "HD_ENOMEM", "out of memory"},
        {HD_ENOTFOUND, 404, "HD_ENOTFOUND", "no such object"},
        {1, 500, "HD_UNKNOWN", "unknown error"},
        {-1000, 500, "HD_UNKNOWN", "unknown error"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        assert_int_equal(hd_error_http_status(cases[i].code), cases[i].http);
        assert_string_equal(hd_error_name(cases[i].code), cases[i].name);
        assert_string_equal(hd_error_text(cases[i].code), cases[i].text);
    }
}

static void the_first_cause_wins(void **state)
{
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_error_set(&fault, HD_EIO, "disk %d", 7), HD_EIO);
    assert_err(hd_error_set(&fault, HD_EINVAL, "outer"), HD_EINVAL);
    assert_err(fault.code, HD_EIO);
    assert_string_equal(fault.text, "disk 7");
}

static void a_fault_is_optional(void **state)
{
    (void)state;
    assert_err(hd_error_set(NULL, HD_EIO, "lost"), HD_EIO);
}

/* "é" is two bytes: with an odd start the text ends in the middle of one. */
static void a_long_text_is_cut_between_characters(void **state)
{
    char text[400];

    (void)state;
    for (size_t start = 0; start < 2; start++) {
        struct heddle_error fault = {0};
        size_t len;

        memset(text, 'x', sizeof(text));
        for (size_t i = start; i + 1 < sizeof(text) - 1; i += 2)
            memcpy(text + i, "\xc3\xa9", 2);
        text[sizeof(text) - 1] = '\0';
        (void)hd_error_set(&fault, HD_EIO, "%s", text);
        len = strlen(fault.text);
        assert_in_range(len, sizeof(fault.text) - 2, sizeof(fault.text) - 1);
        assert_memory_equal(fault.text, text, len);
        assert_int_equal(hd_utf8_char(fault.text + len - 2, fault.text + len), 2);
    }
}

static void paths_of_this_machine_are_hidden(void **state)
{
    static const struct {
        const char *text, *hidden;
    } cases[] = {
        {"No such file: '/usr/lib/app/config.json'", "No such file: '…/config.json'"},
        {"/tmp/a/b.py:3: x, \"/etc/app/c\"", "…/b.py:3: x, \"…/c\""},
        {"GET /threads/x/state failed", "GET /threads/x/state failed"},
        {"see https://host/usr/lib/x", "see https://host/usr/lib/x"},
        {"a/usr/lib/x and /usr and / and //usr/x", "a/usr/lib/x and /usr and / and //usr/x"},
        {"", ""},
    };
    char text[100];

    (void)state;
    for (int hides = 0; hides < 2; hides++) {
        hd_errors_hide_places(hides == 1);
        for (size_t i = 0; i < HD_COUNT(cases); i++) {
            (void)snprintf(text, sizeof(text), "%s", cases[i].text);
            hd_error_hide_paths(text);
            assert_string_equal(text, hides ? cases[i].hidden : cases[i].text);
        }
    }
    hd_errors_hide_places(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_name_text_and_status),
        cmocka_unit_test(examples_are_right),
        cmocka_unit_test(the_first_cause_wins),
        cmocka_unit_test(a_fault_is_optional),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(paths_of_this_machine_are_hidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
