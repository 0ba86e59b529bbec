/* Rows of undelivered webhooks. */
#include "webhook/outbox.h"

#include "records/record.h"
#include "store/rows.h"
#include "tests/unit/check.h"

static int open_store(void **state)
{
    struct heddle *store = NULL;

    assert_err(heddle_open(&store, "memory:", NULL), 0);
    *state = store;
    return 0;
}

static int close_store(void **state)
{
    heddle_close(*state);
    return 0;
}

static void put(struct heddle *store, const struct hd_outbox_row *row)
{
    struct hd_batch_builder batch;
    struct hd_batch view;

    hd_batch_init(&batch);
    assert_err(hd_outbox_put(&batch, row), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(store, HD_S(":t"), &view, NULL, NULL), 0);
    hd_batch_fini(&batch);
}

static struct hd_outbox_row make_row(const char *run, const char *server)
{
    return (struct hd_outbox_row){.principal = HD_S("p"),
                                  .thread_id = HD_S("t"),
                                  .run_id = hd_slice_cstr(run),
                                  .created_at = 1,
                                  .id = HD_S("3fa40d6b-91c7-4e28-b51c-7a902de84653"),
                                  .server = hd_slice_cstr(server),
                                  .url = HD_S("http://localhost/"),
                                  .body = HD_S("{\"a\":1}")};
}

struct reading {
    const struct hd_outbox_row *rows;
    size_t count;
};

static int compare(void *ctx, const struct hd_outbox_row *row)
{
    struct reading *reading = ctx;
    const struct hd_outbox_row *wanted = &reading->rows[reading->count++];

    assert_slice(row->principal, wanted->principal);
    assert_slice(row->thread_id, wanted->thread_id);
    assert_slice(row->run_id, wanted->run_id);
    assert_int_equal(row->created_at, wanted->created_at);
    assert_slice(row->id, wanted->id);
    assert_slice(row->server, wanted->server);
    assert_slice(row->url, wanted->url);
    assert_slice(row->body, wanted->body);
    return 0;
}

static void a_row_names_its_server(void **state)
{
    const struct hd_outbox_row rows[] = {
        make_row("alone", ""), make_row("member", "0b1c4f5e-6f0e-4c55-9d0b-6f6f8d1a2b3c")};
    struct reading reading = {.rows = rows};

    put(*state, &rows[0]);
    put(*state, &rows[1]);
    assert_err(hd_outbox_read(*state, NULL, 10, compare, &reading, NULL), 0);
    assert_int_equal(reading.count, 2);
}

static int on_id(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    assert_slice(cells[HD_OUTBOX_ID].bytes, *(const struct hd_slice *)arg);
    return 0;
}

/* Programs that know no clusters read the column too: only members of a cluster change it. */
static void a_server_alone_stores_the_bare_id(void **state)
{
    const struct hd_outbox_row row = make_row("alone", "");
    const struct hd_query query = {
        .table = HD_OUTBOX, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    struct hd_slice id = row.id;

    put(*state, &row);
    assert_err(hd_rows_read(*state, &query, 1, on_id, &id, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_names_its_server, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_server_alone_stores_the_bare_id, open_store, close_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
