/* Rows of servers, in a database in memory. */
#include "cluster/server_row.h"

#include <string.h>

#include "tests/unit/check.h"

static struct hd_backend *backend;
static struct hd_batch_builder batch;
static struct hd_server_rows rows;

static int set_up(void **state)
{
    struct hd_arena arena;
    struct hd_url url;

    (void)state;
    hd_arena_init(&arena, 65536);
    assert_err(hd_url_parse(&url, "memory:", &arena, NULL), 0);
    assert_err(hd_backend_open(&backend, &url, NULL), 0);
    hd_arena_fini(&arena);
    hd_batch_init(&batch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hd_batch_fini(&batch);
    hd_backend_close(backend);
    return 0;
}

static struct hd_server_row make_row(const char *slot, int64_t token, int64_t beat)
{
    struct hd_server_row row = {.token = token, .beat = beat, .started_at = 5};

    (void)snprintf(row.slot, sizeof(row.slot), "%s", slot);
    (void)snprintf(row.identity.id, sizeof(row.identity.id), "%s", slot);
    (void)snprintf(row.identity.address, sizeof(row.identity.address), "http://%s", slot);
    row.identity.lease_us = *slot ? 2000000 : 0;
    return row;
}

static void add(const char *slot, int64_t token, int64_t beat)
{
    struct hd_server_row row = make_row(slot, token, beat);

    assert_err(hd_server_row_put(&batch, HD_OP_ADD, &row), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), 0);
}

static const struct hd_server_row *read_row(const char *slot)
{
    assert_err(hd_server_row_read_all(backend, &rows, NULL), 0);
    return hd_server_row_find(&rows, slot);
}

static void rows_are_read_as_they_were_written(void **state)
{
    struct hd_server_row wanted = make_row("b", 2, -7);

    (void)state;
    add("b", 2, -7);
    add("", 1, 1);
    assert_memory_equal(read_row("b"), &wanted, sizeof(wanted));
    assert_int_equal(rows.count, 2);
    assert_string_equal(rows.items[0].slot, "");
    assert_false(hd_server_row_is_shared(&rows.items[0]));
    assert_true(hd_server_row_is_shared(&rows.items[1]));
    assert_null(hd_server_row_find(&rows, "c"));
}

static void a_slot_is_claimed_once(void **state)
{
    struct hd_server_row row = make_row("a", 2, 2);

    (void)state;
    add("a", 1, 1);
    assert_err(hd_server_row_put(&batch, HD_OP_ADD, &row), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), HD_ECONFLICT);
    assert_int_equal(read_row("a")->token, 1);
}

static void a_beat_needs_the_token(void **state)
{
    (void)state;
    add("a", 1, 1);
    assert_err(hd_server_row_beat(&batch, "a", 1, 9), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), 0);
    assert_int_equal(read_row("a")->beat, 9);
    assert_err(hd_server_row_beat(&batch, "a", 2, 10), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), HD_ECONFLICT);
    assert_int_equal(read_row("a")->beat, 9);
    assert_string_equal(read_row("a")->identity.address, "http://a");
}

static void a_server_that_has_beaten_since_is_not_removed(void **state)
{
    struct hd_server_row seen;

    (void)state;
    add("", 7, 7);
    add("a", 1, 1);
    seen = *read_row("a");
    assert_err(hd_server_row_beat(&batch, "a", 1, 2), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), 0);
    assert_err(hd_server_row_expect_seen(&batch, &seen), 0);
    assert_err(hd_server_row_delete(&batch, "a"), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), HD_ECONFLICT);
    seen = *read_row("a");
    assert_err(hd_server_row_expect_seen(&batch, &seen), 0);
    assert_err(hd_server_row_delete(&batch, "a"), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), 0);
    assert_null(read_row("a"));
    assert_int_equal(rows.count, 1);
}

static void a_batch_of_a_removed_server_changes_nothing(void **state)
{
    (void)state;
    add("", 7, 7);
    assert_err(hd_server_row_expect(&batch, "a", 1), 0);
    assert_err(hd_server_row_delete(&batch, ""), 0);
    assert_err(hd_server_row_apply(backend, &batch, NULL), HD_ECONFLICT);
    assert_non_null(read_row(""));
}

static void rows_beyond_the_limit_are_left_out(void **state)
{
    char slot[HD_UUID_SIZE];

    (void)state;
    for (int i = 0; i < HD_SERVER_ROWS_MAX + 2; i++) {
        (void)snprintf(slot, sizeof(slot), "%03d", i);
        add(slot, i, i);
    }
    assert_null(read_row(slot));
    assert_int_equal(rows.count, HD_SERVER_ROWS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_read_as_they_were_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slot_is_claimed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_beat_needs_the_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_has_beaten_since_is_not_removed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_batch_of_a_removed_server_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rows_beyond_the_limit_are_left_out, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
