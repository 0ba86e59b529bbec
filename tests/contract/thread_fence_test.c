/*
 * Deletion and take-over win against late writers (store/thread_fence.h): whatever carries the
 * guard of a thread that was deleted, or the token of a hold that was replaced, is refused, by the
 * handle that did it and by others that remember the thread, alone and in groups, and leaves
 * nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "store/list_append.h"
#include "store/rows.h"
#include "store/thread_fence.h"
#include "tests/contract/store_help.h"

#define KEY HD_S(":t")

/* ---- the record of a thread ---- */

static void make_record(struct heddle *store, int64_t created_at)
{
    const struct hd_cell row[] = {
        [HD_THREAD_INFO_PRINCIPAL] = hd_cell_bytes(HD_S("")),
        [HD_THREAD_INFO_ID] = hd_cell_bytes(HD_S("t")),
        [HD_THREAD_INFO_REV] = hd_cell_int(1),
        [HD_THREAD_INFO_STATUS] = hd_cell_bytes(HD_S("idle")),
        [HD_THREAD_INFO_CREATED] = hd_cell_int(created_at),
        [HD_THREAD_INFO_UPDATED] = hd_cell_int(1),
        [HD_THREAD_INFO_STATE_UPDATED] = hd_cell_int(1),
        [HD_THREAD_INFO_EXPIRES] = hd_cell_null(),
        [HD_THREAD_INFO_EVENT_SEQ] = hd_cell_int(0),
        [HD_THREAD_INFO_BODY] = hd_cell_bytes(HD_S("{}")),
    };
    struct hd_batch_builder batch;
    struct hd_batch view;

    hd_batch_init(&batch);
    assert_ok(hd_batch_row(&batch, HD_OP_ADD, HD_THREAD_INFO, row));
    view = hd_batch_view(&batch);
    assert_ok(hd_rows_apply(store, KEY, &view, NULL, NULL));
    hd_batch_fini(&batch);
}

static int erase(struct heddle *store, int64_t rev)
{
    const struct hd_cell key[] = {hd_cell_bytes(HD_S("")), hd_cell_bytes(HD_S("t"))};
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    assert_ok(hd_batch_expect(&batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, rev));
    assert_ok(hd_batch_delete(&batch, HD_THREAD_INFO, key, 2));
    assert_ok(hd_batch_delete(&batch, HD_HOLDS, key, 2));
    view = hd_batch_view(&batch);
    err = hd_thread_fence_erase(store, KEY, &view, NULL);
    hd_batch_fini(&batch);
    return err;
}

/* ---- its hold ---- */

/* Writes the row of the hold; `renews`: as a take-over does. */
static void hold(struct heddle *store, int64_t token, bool renews)
{
    const struct hd_cell row[] = {
        [HD_HOLDS_PRINCIPAL] = hd_cell_bytes(HD_S("")),
        [HD_HOLDS_THREAD] = hd_cell_bytes(HD_S("t")),
        [HD_HOLDS_TOKEN] = hd_cell_int(token),
        [HD_HOLDS_SERVER] = token ? hd_cell_bytes(HD_S("server")) : hd_cell_null(),
        [HD_HOLDS_LAST] = hd_cell_bytes(HD_S("server")),
    };
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    do { /* a writer may change the epoch between its read and this batch */
        hd_batch_init(&batch);
        assert_ok(hd_batch_row(&batch, HD_OP_PUT, HD_HOLDS, row));
        if (renews)
            assert_ok(hd_thread_fence_renew(store, &batch, KEY, NULL));
        view = hd_batch_view(&batch);
        err = hd_rows_apply(store, KEY, &view, NULL, NULL);
        hd_batch_fini(&batch);
    } while (err == HEDDLE_ECONFLICT);
    assert_ok(err);
}

/* ---- guarded writes ---- */

static int put_held(struct heddle *store, const char *id, int64_t created_at, int64_t token)
{
    const struct put what = {
        .thread = "t", .id = id, .versions = "{\"a\":1}", .values = {VALUE("a", "\"a value\"")}};
    const struct hd_put_extras extras = {.guard = {created_at, token}};
    struct heddle_error error = {0};
    char json[JSON_ROOM];
    struct heddle_checkpoint checkpoint = make_put(&what, json);
    int err = hd_store_put(store, &checkpoint, &extras, &error);

    if (err == HEDDLE_ENOTFOUND)
        assert_string_equal(error.text, "the thread was deleted");
    return err;
}

static int put(struct heddle *store, const char *id, int64_t created_at)
{
    return put_held(store, id, created_at, 0);
}

static int put_writes_held(struct heddle *store, const char *id, int64_t created_at, int64_t token)
{
    const struct writes what = {
        .thread = "t", .id = id, .task = "k", .values = {VALUE("a", "\"a write\"")}};
    struct heddle_writes writes = make_writes(&what);

    return hd_store_put_writes(store, &writes, (struct hd_guard){created_at, token}, NULL);
}

static int put_writes(struct heddle *store, const char *id, int64_t created_at)
{
    return put_writes_held(store, id, created_at, 0);
}

static void assert_nothing(struct heddle *store)
{
    assert_int_equal(usage_of(store, "t").bytes, 0);
    assert_text(render_threads(store, "", "", 10), "");
}

static struct heddle *open_other(struct fixture *f)
{
    return is_shared(f->base) ? open_store(f->url) : f->store;
}

static void close_other(struct fixture *f, struct heddle *other)
{
    if (other != f->store)
        heddle_close(other);
}

/* ---- cases ---- */

static void what_is_guarded_needs_its_thread(struct fixture *f)
{
    assert_code(put(f->store, "1", 5), HEDDLE_ENOTFOUND);
    assert_code(put_writes(f->store, "1", 5), HEDDLE_ENOTFOUND);
    assert_nothing(f->store);
    make_record(f->store, 5);
    assert_code(put(f->store, "1", 4), HEDDLE_ENOTFOUND);
    assert_nothing(f->store);
    assert_ok(put(f->store, "1", 5));
    assert_ok(put_writes(f->store, "1", 5));
    assert_code(put(f->store, "2", 4), HEDDLE_ENOTFOUND); /* remembered, but not as that one */
    assert_code(put_writes(f->store, "1", 4), HEDDLE_ENOTFOUND);
    assert_ok(put(f->store, "2", 5));
    assert_list(f->store, "t//2 t//1");
    assert_ok(put(f->store, "3", 0));
}

static void what_is_deleted_does_not_come_back(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    assert_ok(put(other, "1", 5));
    assert_ok(put(f->store, "2", 5));
    assert_ok(put_writes(other, "2", 5));
    assert_code(erase(f->store, 7), HEDDLE_ECONFLICT); /* not as it was read */
    assert_list(f->store, "t//2 t//1");
    assert_ok(erase(f->store, 1));
    assert_code(put(other, "3", 5), HEDDLE_ENOTFOUND);
    assert_code(put_writes(other, "2", 5), HEDDLE_ENOTFOUND);
    assert_code(put(f->store, "3", 5), HEDDLE_ENOTFOUND);
    assert_code(put_writes(f->store, "2", 5), HEDDLE_ENOTFOUND);
    assert_nothing(f->store);
    close_other(f, other);
}

static void a_new_thread_of_that_name_is_another(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    assert_ok(put(other, "1", 5));
    assert_ok(erase(f->store, 1));
    make_record(f->store, 6);
    assert_ok(put(f->store, "2", 6));
    assert_code(put(other, "3", 5), HEDDLE_ENOTFOUND);
    assert_code(put_writes(other, "2", 5), HEDDLE_ENOTFOUND);
    assert_list(f->store, "t//2");
    assert_get(f->store, "t", "", "2", "2< a=json:\"a value\"");
    assert_ok(put(other, "4", 6));
    close_other(f, other);
}

static void a_plain_put_makes_a_thread_as_ever(struct fixture *f)
{
    make_record(f->store, 5);
    assert_ok(put(f->store, "1", 5));
    assert_ok(erase(f->store, 1));
    assert_ok(put(f->store, "2", 0));
    assert_list(f->store, "t//2");
}

/* ---- holds ---- */

static void what_is_held_needs_its_token(struct fixture *f)
{
    make_record(f->store, 5);
    assert_code(put_held(f->store, "1", 5, 11), HEDDLE_ETAKEN); /* there is no hold */
    assert_code(put_writes_held(f->store, "1", 5, 11), HEDDLE_ETAKEN);
    assert_nothing(f->store);
    hold(f->store, 11, false);
    assert_code(put_held(f->store, "1", 5, 12), HEDDLE_ETAKEN);
    assert_code(put_held(f->store, "1", 4, 12), HEDDLE_ENOTFOUND); /* it is another thread */
    assert_nothing(f->store);
    assert_ok(put_held(f->store, "1", 5, 11));
    assert_ok(put_writes_held(f->store, "1", 5, 11));
    assert_code(put_held(f->store, "2", 5, 12),
                HEDDLE_ETAKEN); /* remembered, but not as that one */
    assert_code(put_writes_held(f->store, "1", 5, 12), HEDDLE_ETAKEN);
    assert_ok(put_held(f->store, "2", 5, 11));
    assert_ok(put_held(f->store, "3", 0, 11));
    assert_ok(put(f->store, "4", 5)); /* of a server that uses the store alone */
    assert_list(f->store, "t//4 t//3 t//2 t//1");
}

static void who_takes_a_thread_over_stops_its_holder(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    hold(f->store, 11, false);
    assert_ok(put_held(other, "1", 5, 11));
    assert_ok(put_held(f->store, "2", 5, 11));
    hold(f->store, 12, true);
    assert_code(put_held(other, "3", 5, 11), HEDDLE_ETAKEN); /* though it remembers the thread */
    assert_code(put_writes_held(other, "2", 5, 11), HEDDLE_ETAKEN);
    assert_code(put_held(f->store, "3", 5, 11), HEDDLE_ETAKEN);
    assert_list(f->store, "t//2 t//1");
    assert_ok(put_held(f->store, "4", 5, 12));
    assert_ok(put_writes_held(other, "4", 5, 12));
    assert_code(put_held(other, "5", 5, 11), HEDDLE_ETAKEN);
    assert_list(f->store, "t//4 t//2 t//1");
    close_other(f, other);
}

/* Nothing is stored of the thread yet, so there is no epoch to change. */
static void a_thread_without_checkpoints_is_taken_over_too(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    hold(f->store, 11, false);
    hold(f->store, 12, true);
    assert_code(put_held(other, "1", 5, 11), HEDDLE_ETAKEN);
    assert_code(put_writes_held(other, "1", 5, 11), HEDDLE_ETAKEN);
    assert_nothing(f->store);
    assert_ok(put_held(f->store, "1", 5, 12));
    close_other(f, other);
}

static void a_thread_that_was_released_and_claimed_again_has_a_new_holder(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    hold(f->store, 11, false);
    assert_ok(put_held(other, "1", 5, 11));
    hold(f->store, 0, true);
    assert_code(put_held(other, "2", 5, 11), HEDDLE_ETAKEN);
    hold(f->store, 13, true);
    assert_code(put_held(other, "2", 5, 11), HEDDLE_ETAKEN);
    assert_ok(put_held(other, "2", 5, 13));
    assert_list(f->store, "t//2 t//1");
    close_other(f, other);
}

/* The hold goes with the record, so its token stands for both. */
static void a_held_thread_that_is_deleted_does_not_come_back(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    hold(f->store, 11, false);
    assert_ok(put_held(other, "1", 5, 11));
    assert_ok(erase(f->store, 1));
    assert_code(put_held(other, "2", 5, 11), HEDDLE_ENOTFOUND);
    assert_code(put_writes_held(other, "1", 5, 11), HEDDLE_ENOTFOUND);
    make_record(f->store, 6);
    hold(f->store, 12, false);
    assert_code(put_held(other, "2", 5, 11), HEDDLE_ENOTFOUND);
    assert_nothing(f->store);
    assert_ok(put_held(f->store, "2", 6, 12));
    close_other(f, other);
}

struct found_hold {
    size_t count, of_server; /* rows; those that the index of servers has */
    int64_t token;
    bool has_server, has_last;
};

static int on_found_hold(void *arg, size_t which, const struct hd_cell *cells)
{
    struct found_hold *found = arg;

    if (which == 1) {
        found->of_server++;
        return 0;
    }
    found->count++;
    found->token = cells[HD_HOLDS_TOKEN].number;
    found->has_server = cells[HD_HOLDS_SERVER].kind != HD_CELL_NULL;
    found->has_last = hd_slice_eq(cells[HD_HOLDS_LAST].bytes, HD_S("server"));
    return 0;
}

static void assert_hold(struct heddle *store, int64_t token)
{
    const struct hd_cell server = hd_cell_bytes(HD_S("server"));
    const struct hd_query queries[] = {
        {.table = HD_HOLDS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS, .is_independent = true},
        {.table = HD_HOLDS, .index = HD_HOLDS_BY_SERVER, .prefix = &server, .prefix_count = 1}};
    struct found_hold found = {.count = 0};

    assert_ok(hd_rows_read(store, queries, COUNT_OF(queries), on_found_hold, &found, NULL));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.token, token);
    assert_int_equal(found.has_server, token != 0);
    assert_int_equal(found.of_server, token != 0);
    assert_true(found.has_last);
}

static int release(struct heddle *store, int64_t token, unsigned clear_column)
{
    const struct hd_cell key[] = {hd_cell_bytes(HD_S("")), hd_cell_bytes(HD_S("t"))};
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    assert_ok(
        hd_batch_expect_and_clear(&batch, HD_HOLDS, key, HD_HOLDS_TOKEN, token, 0, clear_column));
    view = hd_batch_view(&batch);
    err = hd_rows_apply(store, KEY, &view, NULL, NULL);
    hd_batch_fini(&batch);
    return err;
}

/* One operation expects the token and releases the hold; the last holder stays. */
static void who_releases_a_hold_has_its_token(struct fixture *f)
{
    assert_code(release(f->store, 11, HD_HOLDS_SERVER), HEDDLE_ECONFLICT);
    make_record(f->store, 5);
    hold(f->store, 11, false);
    assert_hold(f->store, 11);
    assert_code(release(f->store, 12, HD_HOLDS_SERVER), HEDDLE_ECONFLICT);
    assert_code(release(f->store, 11, HD_HOLDS_LAST), HEDDLE_EINVAL); /* may not be null */
    assert_hold(f->store, 11);
    assert_ok(release(f->store, 11, HD_HOLDS_SERVER));
    assert_hold(f->store, 0);
    assert_code(release(f->store, 11, HD_HOLDS_SERVER), HEDDLE_ECONFLICT);
    assert_code(put_held(f->store, "1", 5, 11), HEDDLE_ETAKEN);
    hold(f->store, 12, false);
    assert_hold(f->store, 12);
}

/* ---- groups ---- */

struct call {
    struct heddle_checkpoint put;
    char json[JSON_ROOM];
    char id[16];
    struct hd_put_extras extras;
    atomic_int code;
};

static void on_done(void *arg, int code, const struct heddle_error *error)
{
    struct call *call = arg;

    (void)error;
    atomic_store(&call->code, code);
}

/* Of a group those that are refused fail, and only those. */
static void in_a_group_each_has_its_own_guard(struct fixture *f)
{
    enum { CALLS = 30 };
    static struct call calls[CALLS];

    make_record(f->store, 5);
    for (int i = 0; i < CALLS; i++) {
        struct call *call = &calls[i];
        struct put what = {.thread = i % 3 == 2 ? "u" : "t", .id = call->id};

        snprintf(call->id, sizeof(call->id), "%02d", i);
        call->put = make_put(&what, call->json);
        call->extras.guard = (struct hd_guard){i % 3 == 0 ? 5 : i % 3 == 1 ? 4 : 0, 0};
        atomic_store(&call->code, 1);
        assert_ok(hd_store_queue_put(f->store, &call->put, &call->extras, on_done, call, NULL));
    }
    hd_store_queue_go(f->store);
    reopen(f); /* waits for all of them, if the data survives that */
    for (int i = 0; i < CALLS; i++) {
        while (atomic_load(&calls[i].code) == 1)
            sched_yield();
        assert_int_equal(atomic_load(&calls[i].code), i % 3 == 1 ? HEDDLE_ENOTFOUND : 0);
    }
    assert_int_equal(usage_of(f->store, "t").checkpoints, CALLS / 3);
    assert_int_equal(usage_of(f->store, "u").checkpoints, CALLS / 3);
}

static void in_a_group_each_has_its_own_token(struct fixture *f)
{
    enum { CALLS = 20 };
    static struct call calls[CALLS];

    make_record(f->store, 5);
    hold(f->store, 11, false);
    for (int i = 0; i < CALLS; i++) {
        struct call *call = &calls[i];
        struct put what = {.thread = "t", .id = call->id};

        snprintf(call->id, sizeof(call->id), "%02d", i);
        call->put = make_put(&what, call->json);
        call->extras.guard = (struct hd_guard){5, i % 2 ? 10 : 11};
        atomic_store(&call->code, 1);
        assert_ok(hd_store_queue_put(f->store, &call->put, &call->extras, on_done, call, NULL));
    }
    hd_store_queue_go(f->store);
    for (int i = 0; i < CALLS; i++) {
        while (atomic_load(&calls[i].code) == 1)
            sched_yield();
        assert_int_equal(atomic_load(&calls[i].code), i % 2 ? HEDDLE_ETAKEN : 0);
    }
    assert_int_equal(usage_of(f->store, "t").checkpoints, CALLS / 2);
}

/* ---- races ---- */

struct late_writer {
    struct heddle *store;
    int64_t guard;
    int64_t token;
    int end; /* the error that stops it */
    char prefix;
    atomic_int stored;
};

static void *write_on(void *arg)
{
    struct late_writer *w = arg;
    int code = 0;
    char id[16];

    for (int i = 0; code == 0; i++) {
        snprintf(id, sizeof(id), "%c%05d", w->prefix, i);
        code = put_held(w->store, id, w->guard, w->token);
        if (code == 0)
            code = put_writes_held(w->store, id, w->guard, w->token);
        atomic_fetch_add(&w->stored, 1);
    }
    assert_int_equal(code, w->end);
    return NULL;
}

static void start_writers(struct late_writer *writers, pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, &writers[i]), 0);
    for (size_t i = 0; i < count; i++) {
        while (atomic_load(&writers[i].stored) < 3)
            sched_yield();
    }
}

static void writers_at_work_lose_against_deletion(struct fixture *f)
{
    struct heddle *other = open_other(f);

    for (int64_t round = 1; round <= 8; round++) {
        struct late_writer writers[] = {
            {.store = f->store, .guard = round, .end = HEDDLE_ENOTFOUND, .prefix = 'a'},
            {.store = other, .guard = round, .end = HEDDLE_ENOTFOUND, .prefix = 'b'}};
        pthread_t threads[COUNT_OF(writers)];

        make_record(f->store, round);
        start_writers(writers, threads, COUNT_OF(writers));
        assert_ok(erase(round % 2 ? f->store : other, 1));
        for (size_t i = 0; i < COUNT_OF(writers); i++)
            pthread_join(threads[i], NULL);
        assert_nothing(f->store);
    }
    close_other(f, other);
}

/* The checkpoints at the take-over are all there will ever be. */
static void holders_at_work_lose_against_a_take_over(struct fixture *f)
{
    struct heddle *other = open_other(f);

    make_record(f->store, 5);
    for (int64_t round = 1; round <= 8; round++) {
        struct late_writer writers[] = {{.store = f->store,
                                         .guard = 5,
                                         .token = round,
                                         .end = HEDDLE_ETAKEN,
                                         .prefix = (char)('a' + round)},
                                        {.store = other,
                                         .guard = 5,
                                         .token = round,
                                         .end = HEDDLE_ETAKEN,
                                         .prefix = (char)('A' + round)}};
        pthread_t threads[COUNT_OF(writers)];
        int64_t count;

        hold(f->store, round, true);
        start_writers(writers, threads, COUNT_OF(writers));
        hold(round % 2 ? f->store : other, -round, true);
        count = usage_of(f->store, "t").checkpoints;
        for (size_t i = 0; i < COUNT_OF(writers); i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(usage_of(f->store, "t").checkpoints, count);
    }
    close_other(f, other);
}

static const struct store_case cases[] = {
    STORE_CASE(what_is_guarded_needs_its_thread),
    STORE_CASE(what_is_deleted_does_not_come_back),
    STORE_CASE(a_new_thread_of_that_name_is_another),
    STORE_CASE(a_plain_put_makes_a_thread_as_ever),
    STORE_CASE(what_is_held_needs_its_token),
    STORE_CASE(who_takes_a_thread_over_stops_its_holder),
    STORE_CASE(a_thread_without_checkpoints_is_taken_over_too),
    STORE_CASE(a_thread_that_was_released_and_claimed_again_has_a_new_holder),
    STORE_CASE(a_held_thread_that_is_deleted_does_not_come_back),
    STORE_CASE(who_releases_a_hold_has_its_token),
    STORE_CASE(in_a_group_each_has_its_own_guard),
    STORE_CASE(in_a_group_each_has_its_own_token),
    STORE_CASE(writers_at_work_lose_against_deletion),
    STORE_CASE(holders_at_work_lose_against_a_take_over),
    {NULL, NULL},
};

int main(void)
{
    static const struct store_case *const tables[] = {cases};

    return run_cases("guard", tables, COUNT_OF(tables), "timeout=60&durability=relaxed");
}
