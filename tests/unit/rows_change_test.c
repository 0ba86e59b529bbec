/* hd_rows_change(): one optimistic change, retried until the store's timeout. */
#include <pthread.h>
#include <stdatomic.h>

#include "store/batch.h"
#include "store/rows.h"
#include "tests/unit/check.h"

enum { WRITERS = 4, CHANGES = 25 };

static const struct hd_slice slot = HD_S_INIT("counter");

static struct heddle *open_store(const char *url)
{
    struct heddle_error error = {0};
    struct heddle *store = NULL;

    assert_err(heddle_open(&store, url, &error), 0);
    return store;
}

/* ---- a result other than a conflict ------------------------------------ */

struct script {
    int conflicts; /* results before `result` */
    int result;
    int calls;
};

static int play(void *arg, struct heddle_error *fault)
{
    struct script *script = arg;

    assert_int_equal(fault->code, 0);
    script->calls++;
    if (script->calls <= script->conflicts)
        return hd_error_set(fault, HD_ECONFLICT, "conflict %d", script->calls);
    return script->result ? hd_error_set(fault, script->result, "the last attempt") : 0;
}

static void a_conflict_is_retried_with_a_clear_fault(void **state)
{
    struct script script = {.conflicts = 7};
    struct heddle *store = open_store("memory:");
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_rows_change(store, play, &script, &fault), 0);
    assert_int_equal(script.calls, 8);
    assert_int_equal(fault.code, 0);
    heddle_close(store);
}

static void any_other_error_ends_the_change(void **state)
{
    struct script script = {.conflicts = 1, .result = HD_ENOTFOUND};
    struct heddle *store = open_store("memory:");
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_rows_change(store, play, &script, &fault), HD_ENOTFOUND);
    assert_int_equal(script.calls, 2);
    assert_string_equal(fault.text, "the last attempt");
    heddle_close(store);
}

static void endless_conflicts_end_as_busy_after_the_timeout(void **state)
{
    struct script script = {.conflicts = 1000000};
    struct heddle *store = open_store("memory:?timeout=1");
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_rows_change(store, play, &script, &fault), HD_EBUSY);
    assert_true(script.calls >= 5);
    assert_string_equal(fault.text, "write conflicts continued for 1 s");
    heddle_close(store);
}

/* ---- concurrent writers ------------------------------------------------ */

struct counter {
    struct heddle *store;
    atomic_int failed;
};

static int on_server(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_SERVERS_BEAT].number;
    return 0;
}

static int read_count(struct heddle *store, int64_t *out, struct heddle_error *fault)
{
    const struct hd_cell key = hd_cell_bytes(slot);
    const struct hd_query query = {.table = HD_SERVERS,
                                   .index = HD_PRIMARY,
                                   .prefix = &key,
                                   .prefix_count = 1,
                                   .columns = 1u << HD_SERVERS_BEAT};

    return hd_rows_read(store, &query, 1, on_server, out, fault);
}

static int add_one(void *arg, struct heddle_error *fault)
{
    struct counter *counter = arg;
    const struct hd_cell key = hd_cell_bytes(slot);
    struct hd_batch_builder batch;
    struct hd_batch view;
    int64_t count = -1;
    int err = read_count(counter->store, &count, fault);

    hd_batch_init(&batch);
    if (!err)
        err = hd_batch_expect_and_set(&batch, HD_SERVERS, &key, HD_SERVERS_BEAT, count,
                                      HD_SERVERS_BEAT, count + 1);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(counter->store, slot, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

static void *count_up(void *arg)
{
    struct counter *counter = arg;

    for (int i = 0; i < CHANGES; i++) {
        struct heddle_error fault = {0};

        if (hd_rows_change(counter->store, add_one, counter, &fault))
            atomic_fetch_add(&counter->failed, 1);
    }
    return NULL;
}

static void concurrent_changes_all_take_effect(void **state)
{
    struct counter counter = {.store = open_store("memory:")};
    const struct hd_cell row[] = {[HD_SERVERS_SLOT] = hd_cell_bytes(slot),
                                  [HD_SERVERS_TOKEN] = hd_cell_int(1),
                                  [HD_SERVERS_BEAT] = hd_cell_int(0),
                                  [HD_SERVERS_STARTED] = hd_cell_int(1),
                                  [HD_SERVERS_BODY] = hd_cell_bytes(HD_S("{}"))};
    int64_t count = -1;
    struct hd_batch_builder batch;
    pthread_t threads[WRITERS];
    struct hd_batch view;

    (void)state;
    hd_batch_init(&batch);
    assert_err(hd_batch_row(&batch, HD_OP_ADD, HD_SERVERS, row), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(counter.store, slot, &view, NULL, NULL), 0);
    hd_batch_fini(&batch);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &counter), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(counter.failed, 0);
    assert_err(read_count(counter.store, &count, NULL), 0);
    assert_int_equal(count, WRITERS * CHANGES);
    heddle_close(counter.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_is_retried_with_a_clear_fault),
        cmocka_unit_test(any_other_error_ends_the_change),
        cmocka_unit_test(endless_conflicts_end_as_busy_after_the_timeout),
        cmocka_unit_test(concurrent_changes_all_take_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
