#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/check.h"

struct seen {
    int lines;
    enum hd_log_level level;
    char last[2000];
};

static void remember(void *arg, enum hd_log_level level, const char *line)
{
    struct seen *seen = arg;

    seen->lines++;
    seen->level = level;
    (void)snprintf(seen->last, sizeof(seen->last), "%s", line);
}

static int restore(void **state)
{
    (void)state;
    hd_log_set_sink(NULL, NULL);
    hd_log_set_level(HD_LOG_WARN);
    hd_log_set_format(HD_LOG_TEXT);
    return 0;
}

static void a_line_names_level_and_area(void **state)
{
    static const char *const expected[] = {"debug a: 0", "info a: 1", "warn a: 2", "error a: 3"};
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    hd_log_set_level(HD_LOG_DEBUG);
    for (int level = HD_LOG_DEBUG; level < HD_LOG_OFF; level++) {
        hd_log((enum hd_log_level)level, "a", "%d", level);
        assert_string_equal(seen.last, expected[level]);
        assert_int_equal(seen.level, level);
    }
}

static void lower_levels_are_silent(void **state)
{
    (void)state;
    for (int lowest = HD_LOG_DEBUG; lowest <= HD_LOG_OFF; lowest++) {
        struct seen seen = {0};

        hd_log_set_sink(remember, &seen);
        hd_log_set_level((enum hd_log_level)lowest);
        for (int level = HD_LOG_DEBUG; level <= HD_LOG_OFF; level++)
            hd_log((enum hd_log_level)level, "a", "text");
        assert_int_equal(seen.lines, HD_LOG_OFF - lowest);
    }
}

static void warnings_are_on_at_first(void **state)
{
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    hd_log(HD_LOG_INFO, "a", "text");
    assert_int_equal(seen.lines, 0);
    hd_log(HD_LOG_WARN, "a", "text");
    assert_int_equal(seen.lines, 1);
}

static void a_message_stays_one_line(void **state)
{
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    hd_log(HD_LOG_ERROR, "db", "one\ntwo\r\tthree\x1b[0m\x7f %s", "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(seen.last, "error db: one two  three [0m  gr\xc3\xbc\xc3\x9f");
}

static void a_long_line_is_cut_between_characters(void **state)
{
    char text[1500];
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    hd_log(HD_LOG_ERROR, "db", "%s", text);
    assert_int_equal(strlen(seen.last), strlen("error db: ") + 1000);
    memcpy(text + 999, "\xc3\xa9", 2);
    hd_log(HD_LOG_ERROR, "db", "%s", text);
    assert_int_equal(strlen(seen.last), strlen("error db: ") + 999);
    assert_int_equal(seen.last[1008], 'x');
}

static void without_a_sink_lines_go_to_standard_error(void **state)
{
    char text[200] = "";
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(file);
    assert_true(saved >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    hd_log(HD_LOG_WARN, "area", "hello %d", 7);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    rewind(file);
    assert_non_null(fgets(text, sizeof(text), file));
    (void)fclose(file);
    assert_int_equal(strlen(text), 32 + strlen(" warn area: hello 7\n"));
    assert_string_equal(text + 32, " warn area: hello 7\n");
}

static void members_follow_the_message(void **state)
{
    const struct hd_log_field fields[] = {
        hd_log_text("path", HD_S("/threads")), hd_log_number("status", -7),
        hd_log_text("none", hd_slice(NULL, 0)), hd_log_text("text", HD_S("a \"b\"\n"))};
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    hd_log_fields(HD_LOG_INFO, "http", "request ended", fields, HD_COUNT(fields));
    assert_int_equal(seen.lines, 0);
    hd_log_fields(HD_LOG_WARN, "http", "request ended", fields, HD_COUNT(fields));
    assert_string_equal(seen.last,
                        "warn http: request ended path=/threads status=-7 text=\"a \\\"b\\\" \"");
}

/* The part of a line after its time. */
static const char *without_time(const struct seen *seen)
{
    static const char head[] = "{\"time\":\"";

    assert_memory_equal(seen->last, head, sizeof(head) - 1);
    return seen->last + sizeof(head) - 1 + 32;
}

static void json_is_one_object_in_a_line(void **state)
{
    const struct hd_log_field fields[] = {hd_log_text("path", HD_S("/\xff\\")),
                                          hd_log_number("status", 200)};
    struct seen seen = {0};

    (void)state;
    hd_log_set_sink(remember, &seen);
    hd_log_set_format(HD_LOG_JSON);
    hd_log(HD_LOG_ERROR, "db", "say \"%s\"\n", "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(without_time(&seen),
                        "\",\"level\":\"error\",\"area\":\"db\",\"message\":\"say "
                        "\\\"gr\xc3\xbc\xc3\x9f\\\" \"}");
    hd_log_fields(HD_LOG_WARN, "http", "m", fields, HD_COUNT(fields));
    assert_string_equal(without_time(&seen),
                        "\",\"level\":\"warn\",\"area\":\"http\",\"message\":\"m\",\"path\":\""
                        "/\xef\xbf\xbd\\\\\",\"status\":200}");
}

static void a_line_with_too_many_members_is_still_an_object(void **state)
{
    struct hd_log_field fields[64];
    char text[600];
    struct seen seen = {0};

    (void)state;
    memset(text, '"', sizeof(text));
    for (size_t i = 0; i < HD_COUNT(fields); i++)
        fields[i] = hd_log_text("x", hd_slice(text, sizeof(text)));
    hd_log_set_sink(remember, &seen);
    hd_log_set_format(HD_LOG_JSON);
    hd_log_fields(HD_LOG_WARN, "a", "m", fields, HD_COUNT(fields));
    assert_string_equal(without_time(&seen),
                        "\",\"level\":\"warn\",\"area\":\"a\",\"message\":\"m\"}");
}

static void *log_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++)
        hd_log(HD_LOG_ERROR, "thread", "line %d", i);
    return NULL;
}

/* remember() has no lock: a lost count here means two concurrent calls. */
static void the_sink_is_called_by_one_thread_at_a_time(void **state)
{
    struct seen seen = {0};
    pthread_t threads[4];

    (void)state;
    hd_log_set_sink(remember, &seen);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(seen.lines, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(warnings_are_on_at_first, restore),
        cmocka_unit_test_teardown(a_line_names_level_and_area, restore),
        cmocka_unit_test_teardown(lower_levels_are_silent, restore),
        cmocka_unit_test_teardown(a_message_stays_one_line, restore),
        cmocka_unit_test_teardown(members_follow_the_message, restore),
        cmocka_unit_test_teardown(json_is_one_object_in_a_line, restore),
        cmocka_unit_test_teardown(a_line_with_too_many_members_is_still_an_object, restore),
        cmocka_unit_test_teardown(a_long_line_is_cut_between_characters, restore),
        cmocka_unit_test_teardown(without_a_sink_lines_go_to_standard_error, restore),
        cmocka_unit_test_teardown(the_sink_is_called_by_one_thread_at_a_time, restore),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
