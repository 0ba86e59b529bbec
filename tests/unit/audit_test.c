/* The audit log: the content of its lines, and a file that is renamed while it is in use. */
#include "gate/audit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/unit/check.h"

struct world {
    uv_loop_t loop;
    char path[64];
    struct hd_audit *audit;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct heddle_error fault = {0};
    int file;

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    snprintf(w->path, sizeof(w->path), "/tmp/heddle-audit.XXXXXX");
    file = mkstemp(w->path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(hd_audit_create(&w->loop, w->path, &w->audit, &fault), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_audit_destroy(w->audit);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    unlink(w->path);
    free(w);
    return 0;
}

static size_t read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t len;

    assert_non_null(file);
    len = fread(out, 1, size - 1, file);
    fclose(file);
    out[len] = '\0';
    return len;
}

static void an_entry_is_a_line(void **state)
{
    struct world *w = *state;
    struct hd_identity ada = {.principal = HD_S("cHJpbmNpcGFs"),
                              .issuer = HD_S("sb"),
                              .subject = HD_S("ada \"the\" first\n"),
                              .fingerprint = HD_S("never shown")};
    const struct hd_audit_object objects[] = {{HD_S("thread_id"), HD_S("t1")},
                                              {HD_S("run_id"), HD_S("r1")}};
    const struct hd_audit_entry entry = {.identity = &ada,
                                         .action = HD_S("GET /threads/{thread_id}/runs/{run_id}"),
                                         .objects = objects,
                                         .object_count = 2,
                                         .role = "viewer",
                                         .status = 404,
                                         .request_id = HD_S("q"),
                                         .peer = HD_S("127.0.0.1")};
    struct hd_json json;
    char text[2000];
    size_t len;

    hd_audit_note(w->audit, &entry);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    len = read_file(w->path, text, sizeof(text));
    assert_true(len > 0 && text[len - 1] == '\n');
    assert_null(strstr(text, "never shown"));
    assert_int_equal(hd_json_parse(&json, hd_slice(text, len - 1), NULL), 0);
    assert_non_null(strstr(text, "\"object\":{\"thread_id\":\"t1\",\"run_id\":\"r1\"}"));
    assert_non_null(strstr(text, "\"status\":404,\"decision\":\"deny\""));
    assert_non_null(strstr(text, "\"principal\":\"cHJpbmNpcGFs\",\"issuer\":\"sb\""));
    hd_json_fini(&json);
}

static void a_file_that_was_moved_is_made_again(void **state)
{
    struct world *w = *state;
    const struct hd_audit_entry first = {.action = HD_S("first")},
                                second = {.action = HD_S("second")};
    char moved[80], text[1000];

    hd_audit_note(w->audit, &first);
    snprintf(moved, sizeof(moved), "%s.1", w->path);
    assert_int_equal(rename(w->path, moved), 0);
    hd_audit_reopen(w->audit);
    hd_audit_note(w->audit, &second);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    read_file(moved, text, sizeof(text));
    assert_non_null(strstr(text, "first"));
    assert_null(strstr(text, "second"));
    read_file(w->path, text, sizeof(text));
    assert_non_null(strstr(text, "second"));
    unlink(moved);
}

static void pending_lines_are_written_at_the_end(void **state)
{
    struct world *w = *state;
    const struct hd_audit_entry entry = {.action = HD_S("last")};
    struct heddle_error fault = {0};
    char text[1000];

    hd_audit_note(w->audit, &entry);
    hd_audit_destroy(w->audit);
    read_file(w->path, text, sizeof(text));
    assert_non_null(strstr(text, "last"));
    assert_int_equal(hd_audit_create(&w->loop, w->path, &w->audit, &fault), 0);
}

static void a_file_that_cannot_be_made_is_named(void **state)
{
    struct world *w = *state;
    struct heddle_error fault = {0};
    struct hd_audit *audit;

    assert_int_equal(hd_audit_create(&w->loop, "/no/such/folder/audit", &audit, &fault), HD_EIO);
    assert_non_null(strstr(fault.text, "/no/such/folder/audit"));
    hd_audit_note(NULL, &(struct hd_audit_entry){.action = HD_S("nothing")});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_entry_is_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_moved_is_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(pending_lines_are_written_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_made_is_named, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
