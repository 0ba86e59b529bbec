/*
 * Deletion wins against late writers (store/thread_fence.h): whatever carries the guard of a
 * thread that was deleted is refused, by the handle that deleted it and by others that remember
 * it, alone and in groups, and leaves nothing.
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
    view = hd_batch_view(&batch);
    err = hd_thread_fence_erase(store, KEY, &view, NULL);
    hd_batch_fini(&batch);
    return err;
}

/* ---- guarded writes ---- */

static int put(struct heddle *store, const char *id, int64_t guard)
{
    const struct put what = {
        .thread = "t", .id = id, .versions = "{\"a\":1}", .values = {VALUE("a", "\"a value\"")}};
    const struct hd_put_extras extras = {.guard = guard};
    struct heddle_error error = {0};
    char json[JSON_ROOM];
    struct heddle_checkpoint checkpoint = make_put(&what, json);
    int err = hd_store_put(store, &checkpoint, &extras, &error);

    if (err == HEDDLE_ENOTFOUND)
        assert_string_equal(error.text, "the thread was deleted");
    return err;
}

static int put_writes(struct heddle *store, const char *id, int64_t guard)
{
    const struct writes what = {
        .thread = "t", .id = id, .task = "k", .values = {VALUE("a", "\"a write\"")}};
    struct heddle_writes writes = make_writes(&what);

    return hd_store_put_writes(store, &writes, guard, NULL);
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
        call->extras = (struct hd_put_extras){.guard = i % 3 == 0 ? 5 : i % 3 == 1 ? 4 : 0};
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

/* ---- races ---- */

struct late_writer {
    struct heddle *store;
    int64_t guard;
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
        code = put(w->store, id, w->guard);
        if (code == 0)
            code = put_writes(w->store, id, w->guard);
        atomic_fetch_add(&w->stored, 1);
    }
    assert_int_equal(code, HEDDLE_ENOTFOUND);
    return NULL;
}

static void writers_at_work_lose_against_deletion(struct fixture *f)
{
    struct heddle *other = open_other(f);

    for (int64_t round = 1; round <= 8; round++) {
        struct late_writer writers[] = {{.store = f->store, .guard = round, .prefix = 'a'},
                                        {.store = other, .guard = round, .prefix = 'b'}};
        pthread_t threads[COUNT_OF(writers)];

        make_record(f->store, round);
        for (size_t i = 0; i < COUNT_OF(writers); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, write_on, &writers[i]), 0);
        for (size_t i = 0; i < COUNT_OF(writers); i++) {
            while (atomic_load(&writers[i].stored) < 3)
                sched_yield();
        }
        assert_ok(erase(round % 2 ? f->store : other, 1));
        for (size_t i = 0; i < COUNT_OF(writers); i++)
            pthread_join(threads[i], NULL);
        assert_nothing(f->store);
    }
    close_other(f, other);
}

static const struct store_case cases[] = {
    STORE_CASE(what_is_guarded_needs_its_thread),
    STORE_CASE(what_is_deleted_does_not_come_back),
    STORE_CASE(a_new_thread_of_that_name_is_another),
    STORE_CASE(a_plain_put_makes_a_thread_as_ever),
    STORE_CASE(in_a_group_each_has_its_own_guard),
    STORE_CASE(writers_at_work_lose_against_deletion),
    {NULL, NULL},
};

int main(void)
{
    static const struct store_case *const tables[] = {cases};

    return run_cases("guard", tables, COUNT_OF(tables), "timeout=60&durability=relaxed");
}
