/* Asynchronous writes that fail while the process ends. */
#include <stdatomic.h>

#include "base/clock.h"
#include "store/rows.h"
#include "tests/unit/check.h"

struct world {
    struct heddle *store;
    _Atomic bool is_away; /* the database */
};

static int refuse_when_away(void *arg, struct heddle_error *fault)
{
    struct world *w = arg;

    return atomic_load(&w->is_away) ? hd_error_set(fault, HD_EUNAVAILABLE, "away") : 0;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_err(heddle_open(&w->store, "memory:", NULL), 0);
    hd_rows_set_fence(w->store, refuse_when_away, w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    free(w);
    return 0;
}

static void add_row(struct hd_batch_builder *batch, const char *id)
{
    const struct hd_cell row[] = {
        [HD_SERVERS_SLOT] = hd_cell_bytes(hd_slice_cstr(id)),
        [HD_SERVERS_TOKEN] = hd_cell_int(1),
        [HD_SERVERS_BEAT] = hd_cell_int(1),
        [HD_SERVERS_STARTED] = hd_cell_int(1),
        [HD_SERVERS_BODY] = hd_cell_bytes(HD_S("{}")),
    };

    hd_batch_init(batch);
    assert_err(hd_batch_row(batch, HD_OP_PUT, HD_SERVERS, row), 0);
}

struct result {
    _Atomic bool is_done;
    int code;
};

static void on_stored(void *arg, int code, const struct heddle_error *error)
{
    struct result *result = arg;

    (void)error;
    result->code = code;
    atomic_store(&result->is_done, true);
}

/* The result of an asynchronous write under the key. */
static int write_async(struct world *w, const char *key, const char *id)
{
    struct result result = {.code = 0};
    struct hd_batch_builder batch;

    add_row(&batch, id);
    assert_err(hd_rows_apply_async(w->store, hd_slice_cstr(key), &batch, on_stored, &result), 0);
    while (!atomic_load(&result.is_done))
        hd_clock_sleep_us(1000);
    hd_batch_fini(&batch);
    return result.code;
}

static int write_and_wait(struct world *w, const char *key, const char *id)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    add_row(&batch, id);
    view = hd_batch_view(&batch);
    err = hd_rows_apply(w->store, hd_slice_cstr(key), &view, NULL, NULL);
    hd_batch_fini(&batch);
    return err;
}

static void a_lost_write_is_followed_by_none_of_its_key(void **state)
{
    struct world *w = *state;

    hd_rows_set_outage(w->store, INT64_C(60000000));
    hd_rows_end_outage(w->store);
    assert_err(write_async(w, ":t", "first"), 0);
    w->is_away = true;
    assert_err(write_async(w, ":t", "second"), HD_EUNAVAILABLE);
    w->is_away = false;
    assert_err(write_async(w, ":t", "third"), HD_EUNAVAILABLE);
    assert_err(write_async(w, ":u", "of another thread"), 0);
    assert_err(write_and_wait(w, ":t", "the end of its run"), 0);
}

static void a_write_that_fails_earlier_stops_no_other(void **state)
{
    struct world *w = *state;

    w->is_away = true; /* without hd_rows_set_outage() nothing waits */
    assert_err(write_async(w, ":t", "first"), HD_EUNAVAILABLE);
    w->is_away = false;
    assert_err(write_async(w, ":t", "second"), 0);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_lost_write_is_followed_by_none_of_its_key),
        CASE(a_write_that_fails_earlier_stops_no_other),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
