/* The sweep removes expired records only. */
#include "schedule/sweep.h"

#include "records/thread_heads.h"
#include "run/run_commit.h"
#include "run/thread_prune.h"
#include "tests/unit/app_world.h"

#define MINUTE INT64_C(60000000)
#define DELETE "{\"ttl\":1,\"strategy\":\"delete\"}"
#define PRUNE "{\"ttl\":1,\"strategy\":\"keep_latest\"}"
#define BRANCHES "{\"ttl\":1,\"strategy\":\"keep_branches\",\"keep_last\":1}"
#define ID(n) "1f000000-0000-6000-8000-00000000000" n

static int setup_memory(void **state)
{
    *state = world_open("memory:", "--stream-retention-minutes=60");
    return 0;
}

static int setup_sqlite(void **state)
{
    *state = world_open(NULL, "--stream-retention-minutes=60");
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static struct hd_sweep sweep(struct app_world *w, int64_t now)
{
    struct hd_sweep found = {.arena = &w->arena};

    if (hd_sweep(&w->app, now, &found, &w->fault))
        fail_msg("%s", w->fault.text);
    return found;
}

/* ---- threads ---------------------------------------------------------- */

static struct hd_thread_rec add_thread(struct app_world *w, const char *id, int64_t expires_at,
                                       const char *ttl)
{
    struct hd_thread_rec thread;

    hd_thread_init(&thread, NOBODY, hd_slice_cstr(id));
    thread.expires_at = expires_at;
    thread.ttl = hd_slice_cstr(ttl);
    APPLY(w, hd_thread_add(&batch, &thread));
    return thread;
}

static int read_thread(struct app_world *w, const char *id, struct hd_thread_rec *out)
{
    return hd_thread_read(w->app.store, NOBODY, hd_slice_cstr(id), &w->arena, out, &w->fault);
}

static void put_checkpoint(struct app_world *w, const char *thread, const char *id,
                           const char *parent)
{
    struct heddle_checkpoint checkpoint = {.thread = {{"", 0}, {thread, strlen(thread)}},
                                           .ns = {"", 0},
                                           .id = {id, strlen(id)},
                                           .parent = {parent, strlen(parent)},
                                           .checkpoint = {"{}", 2},
                                           .metadata = {"{}", 2},
                                           .new_versions = {"{}", 2}};
    struct heddle_error error = {0};

    if (heddle_put(w->app.store, &checkpoint, &error))
        fail_msg("%s", error.text);
}

static size_t count_checkpoints(struct app_world *w, const char *id)
{
    struct heddle_bytes thread = {id, strlen(id)};
    struct heddle_query query = {.thread = &thread, .limit = -1, .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct heddle_list *list;
    size_t count = 0;

    assert_int_equal(heddle_list_open(w->app.store, &query, &list, &error), 0);
    while (heddle_list_next(list, &tuple, &error) == 0)
        count++;
    heddle_list_close(list);
    return count;
}

static void threads_go_when_their_time_has_come(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec busy, seen;
    struct hd_sweep swept;

    add_thread(w, "old", 1000, DELETE);
    add_thread(w, "new", 3000, DELETE);
    add_thread(w, "ever", 0, "");
    busy = add_thread(w, "busy", 1000, DELETE);
    busy.status = HD_THREAD_BUSY;
    APPLY(w, hd_thread_put(&batch, &busy));
    put_checkpoint(w, "old", "1f000000-0000-6000-8000-000000000001", "");
    put_checkpoint(w, "new", "1f000000-0000-6000-8000-000000000001", "");

    swept = sweep(w, 2000);
    assert_false(swept.has_more);
    assert_non_null(swept.threads);
    assert_slice(swept.threads->thread_id, HD_S("old"));
    assert_null(swept.threads->next);
    assert_err(read_thread(w, "old", &seen), HD_ENOTFOUND);
    assert_err(read_thread(w, "new", &seen), 0);
    assert_err(read_thread(w, "ever", &seen), 0);
    assert_err(read_thread(w, "busy", &seen), 0);
    assert_int_equal(count_checkpoints(w, "old"), 0);
    assert_int_equal(count_checkpoints(w, "new"), 1);
    assert_null(sweep(w, 2000).threads);
}

static void a_thread_that_was_used_meanwhile_stays(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 1000, DELETE), before = thread;

    thread.updated_at = 5;
    APPLY(w, hd_thread_put(&batch, &thread));
    assert_err(hd_run_commit_expire_thread(w->app.store, &before, &w->fault), HD_ECONFLICT);
    assert_err(read_thread(w, "t", &before), 0);
    assert_err(hd_run_commit_expire_thread(w->app.store, &thread, NULL), 0);
    assert_err(read_thread(w, "t", &before), HD_ENOTFOUND);
}

static void threads_are_pruned_when_that_is_wanted(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 1000, PRUNE);

    thread.heads = HD_S("{\"\":\"1f000000-0000-6000-8000-000000000001\"}");
    thread.head.checkpoint_id = HD_S("1f000000-0000-6000-8000-000000000001");
    APPLY(w, hd_thread_put(&batch, &thread));
    put_checkpoint(w, "t", "1f000000-0000-6000-8000-000000000001", "");
    put_checkpoint(w, "t", "1f000000-0000-6000-8000-000000000002",
                   "1f000000-0000-6000-8000-000000000001");
    put_checkpoint(w, "t", "1f000000-0000-6000-8000-000000000003",
                   "1f000000-0000-6000-8000-000000000002");
    assert_false(hd_thread_is_over(&thread, 2000));
    assert_null(sweep(w, 2000).threads);
    assert_int_equal(count_checkpoints(w, "t"), 1);
    assert_err(read_thread(w, "t", &thread), 0);
    assert_int_equal(thread.expires_at, 0);
    assert_slice(thread.ttl, HD_S(PRUNE)); /* for the next expiry */
    assert_slice(thread.heads, HD_S(""));
    assert_slice(thread.head.checkpoint_id, HD_S(""));
}

/* 1 - 2, and 3 - 4 after 1: the branch of a cascade that did not take effect. 2 is the head. */
static void heads_of_a_room_stay(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 1000, PRUNE);

    thread.is_room = true;
    thread.heads = HD_S("{\"\":\"" ID("2") "\"}");
    thread.head.checkpoint_id = HD_S(ID("2"));
    APPLY(w, hd_thread_put(&batch, &thread));
    put_checkpoint(w, "t", ID("1"), "");
    put_checkpoint(w, "t", ID("2"), ID("1"));
    put_checkpoint(w, "t", ID("3"), ID("1"));
    put_checkpoint(w, "t", ID("4"), ID("3"));
    assert_int_equal(sweep(w, 2000).removed.checkpoints, 2);
    assert_err(
        hd_thread_heads_check(w->app.store, NOBODY, HD_S("t"), HD_S(""), HD_S(ID("2")), &w->fault),
        0);
    assert_err(read_thread(w, "t", &thread), 0);
    assert_int_equal(thread.expires_at, 0);
    assert_slice(thread.heads, HD_S("{\"\":\"" ID("2") "\"}"));
    assert_slice(thread.head.checkpoint_id, HD_S(ID("2")));
}

/* 1 - 2 - 3 - 5, and 4 after 2; 3 is the chosen head. */
static void branches_stay_when_that_is_wanted(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 1000, BRANCHES);
    struct hd_sweep swept;

    thread.heads = HD_S("{\"\":\"" ID("3") "\"}");
    APPLY(w, hd_thread_put(&batch, &thread));
    put_checkpoint(w, "t", ID("1"), "");
    put_checkpoint(w, "t", ID("2"), ID("1"));
    put_checkpoint(w, "t", ID("3"), ID("2"));
    put_checkpoint(w, "t", ID("4"), ID("2"));
    put_checkpoint(w, "t", ID("5"), ID("3"));
    assert_false(hd_thread_is_over(&thread, 2000));
    swept = sweep(w, 2000);
    assert_null(swept.threads);
    assert_int_equal(swept.pruned, 1);
    assert_int_equal(swept.removed.checkpoints, 1);
    assert_true(swept.removed.bytes > 0);
    assert_int_equal(count_checkpoints(w, "t"), 4);
    assert_err(read_thread(w, "t", &thread), 0);
    assert_int_equal(thread.expires_at, 0);
    assert_slice(thread.heads, HD_S("{\"\":\"" ID("3") "\"}"));
}

/* With any strategy: an admitted run must find its start checkpoint. */
static void checkpoints_that_runs_begin_at_stay(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 0, "");
    const struct hd_prune latest = {.strategy = HD_TTL_KEEP_LATEST, .keep_last = 1};
    struct hd_removed removed = {0};
    struct hd_run_rec run = {.principal = NOBODY,
                             .thread_id = HD_S("t"),
                             .run_id = HD_S("r"),
                             .status = HD_RUN_STATE_PENDING,
                             .due_at = 1,
                             .attempt = 1,
                             .assistant_id = HD_S("a"),
                             .metadata = HD_S("{}"),
                             .kwargs = HD_S("{\"config\":{\"configurable\":{\"checkpoint_ns\":\"\","
                                            "\"checkpoint_id\":\"" ID("2") "\"}}}")};

    thread.status = HD_THREAD_BUSY;
    APPLY(w, hd_thread_put(&batch, &thread));
    APPLY(w, hd_run_add(&batch, &run));
    put_checkpoint(w, "t", ID("1"), "");
    put_checkpoint(w, "t", ID("2"), ID("1"));
    put_checkpoint(w, "t", ID("3"), ID("2"));
    put_checkpoint(w, "t", ID("4"), ID("3"));
    assert_err(hd_thread_prune_by_id(w->app.store, NOBODY, HD_S("t"), &latest, &removed, &w->fault),
               0);
    assert_int_equal(removed.checkpoints, 2);
    assert_err(
        hd_thread_heads_check(w->app.store, NOBODY, HD_S("t"), HD_S(""), HD_S(ID("2")), &w->fault),
        0);
    assert_err(hd_thread_prune_by_id(w->app.store, NOBODY, HD_S("none"), &latest, &removed, NULL),
               HD_ENOTFOUND);
}

static void a_thread_that_changes_is_not_pruned(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread = add_thread(w, "t", 0, ""), before = thread;
    const struct hd_prune latest = {.strategy = HD_TTL_KEEP_LATEST, .keep_last = 1};
    struct hd_removed removed = {0};

    put_checkpoint(w, "t", ID("1"), "");
    put_checkpoint(w, "t", ID("2"), ID("1"));
    APPLY(w, hd_thread_put(&batch, &thread));
    assert_err(hd_thread_prune(w->app.store, &before, &latest, &removed, &w->fault), HD_ECONFLICT);
    assert_int_equal(count_checkpoints(w, "t"), 2);
    assert_int_equal(removed.checkpoints, 0);
    assert_err(hd_thread_prune(w->app.store, &thread, &latest, &removed, NULL), 0);
    assert_int_equal(count_checkpoints(w, "t"), 1);
}

static void times_slide_unless_they_are_fixed(void **state)
{
    static const struct {
        const char *ttl;
        int64_t first, second; /* used at 10 and at 20 minutes */
    } table[] = {
        {"", 0, 0},
        {"{\"ttl\":5}", 15 * MINUTE, 25 * MINUTE},
        {"{\"ttl\":5,\"sliding\":true}", 15 * MINUTE, 25 * MINUTE},
        {"{\"ttl\":5,\"sliding\":false}", 15 * MINUTE, 15 * MINUTE},
        {"{\"ttl\":1e12}", 0, 0},
        {"nonsense", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        struct hd_thread_rec thread = {.ttl = hd_slice_cstr(table[i].ttl)};

        hd_thread_touch(&thread, 10 * MINUTE);
        assert_int_equal(thread.expires_at, table[i].first);
        hd_thread_touch(&thread, 20 * MINUTE);
        assert_int_equal(thread.expires_at, table[i].second);
    }
}

static void a_sweep_is_bounded(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec seen;
    int sweeps = 0, left = 0;
    char ids[250][8];

    for (int i = 0; i < 250; i++) {
        snprintf(ids[i], sizeof(ids[i]), "t%d", i);
        add_thread(w, ids[i], 1000 + i, DELETE);
    }
    while (sweep(w, 2000).has_more)
        sweeps++;
    assert_int_equal(sweeps, 2);
    for (int i = 0; i < 250; i++)
        left += read_thread(w, ids[i], &seen) == 0;
    assert_int_equal(left, 0);
}

/* ---- items ------------------------------------------------------------ */

static void put_item(struct app_world *w, const char *key, int64_t expires_at)
{
    struct hd_item_rec item = {.ns = HD_S("n"),
                               .key = hd_slice_cstr(key),
                               .created_at = 1,
                               .updated_at = 1,
                               .expires_at = expires_at,
                               .ttl_us = 1,
                               .value = HD_S("{}")};

    APPLY(w, hd_item_put(&batch, &item));
}

static int count_item(void *arg, const struct hd_item_rec *item)
{
    (void)item;
    (*(size_t *)arg)++;
    return 0;
}

static void items_go_in_many_sweeps(void **state)
{
    struct app_world *w = *state;
    size_t left = 0;
    int sweeps = 0;
    char key[16];

    for (int i = 0; i < 1100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        put_item(w, key, 1000);
    }
    put_item(w, "later", 3000);
    put_item(w, "ever", 0);
    while (sweep(w, 2000).has_more)
        sweeps++;
    assert_int_equal(sweeps, 2);
    assert_err(hd_items_expired(w->app.store, INT64_C(1) << 60, count_item, &left, &w->fault), 0);
    assert_int_equal(left, 1);
}

/* ---- events ----------------------------------------------------------- */

static void put_page(struct app_world *w, int64_t first, int64_t created_at)
{
    const struct hd_cell row[] = {
        [HD_EVENT_PAGES_PRINCIPAL] = hd_cell_bytes(NOBODY),
        [HD_EVENT_PAGES_THREAD] = hd_cell_bytes(HD_S("t")),
        [HD_EVENT_PAGES_FIRST] = hd_cell_int(first),
        [HD_EVENT_PAGES_LAST] = hd_cell_int(first),
        [HD_EVENT_PAGES_RUN] = hd_cell_bytes(HD_S("r")),
        [HD_EVENT_PAGES_CREATED] = hd_cell_int(created_at),
        [HD_EVENT_PAGES_DATA] = hd_cell_bytes(HD_S("x")),
    };

    APPLY(w, hd_batch_row(&batch, HD_OP_PUT, HD_EVENT_PAGES, row));
}

static int on_page(void *arg, size_t which, const struct hd_cell *cells)
{
    int64_t *sum = arg;

    (void)which;
    *sum += cells[HD_EVENT_PAGES_FIRST].number;
    return 0;
}

static void old_events_go(void **state)
{
    struct app_world *w = *state;
    const struct hd_query query = {.table = HD_EVENT_PAGES, .index = HD_PRIMARY};
    int64_t now = 1000 * MINUTE, sum = 0;

    put_page(w, 1, now - 61 * MINUTE);
    put_page(w, 2, now - 60 * MINUTE);
    put_page(w, 4, now - 59 * MINUTE);
    put_page(w, 8, now - 600 * MINUTE);
    assert_false(sweep(w, now).has_more);
    assert_err(hd_rows_read(w->app.store, &query, 1, on_page, &sum, &w->fault), 0);
    assert_int_equal(sum, 2 + 4);
}

/* ---- the sweeper ------------------------------------------------------ */

static void the_sweeper_comes_again(void **state)
{
    struct app_world *w = world_open("memory:", "--ttl-sweep-interval=0.0001");
    int64_t deadline = hd_clock_monotonic_us() + 120 * INT64_C(1000000);
    struct hd_thread_rec seen;

    (void)state;
    for (int i = 0; i < 2; i++) {
        add_thread(w, "t", 1000, DELETE);
        while (read_thread(w, "t", &seen) == 0 && hd_clock_monotonic_us() < deadline)
            uv_run(&w->loop, UV_RUN_ONCE);
        assert_err(read_thread(w, "t", &seen), HD_ENOTFOUND);
    }
    world_close(w);
}

int main(void)
{
#define BOTH(function)                                                 \
    cmocka_unit_test_setup_teardown(function, setup_memory, teardown), \
    {                                                                  \
        "sqlite " #function, function, setup_sqlite, teardown, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(threads_go_when_their_time_has_come),
        BOTH(a_thread_that_was_used_meanwhile_stays),
        BOTH(threads_are_pruned_when_that_is_wanted),
        BOTH(heads_of_a_room_stay),
        BOTH(branches_stay_when_that_is_wanted),
        BOTH(checkpoints_that_runs_begin_at_stay),
        BOTH(a_thread_that_changes_is_not_pruned),
        cmocka_unit_test(times_slide_unless_they_are_fixed),
        BOTH(a_sweep_is_bounded),
        BOTH(items_go_in_many_sweeps),
        BOTH(old_events_go),
        cmocka_unit_test(the_sweeper_comes_again),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
