/* The server's rows (store/rows.h): in the same groups as puts, each with its own fate. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "store/rows.h"
#include "tests/contract/store_help.h"
#include "tests/contract/store_watch.h"

#define LANE HD_S(":t") /* the lane of thread "t" of principal "" */

/* ---- rows of crons, which are short ---- */

static void cron_key(struct hd_cell key[2], const char *id)
{
    key[HD_CRONS_PRINCIPAL] = hd_cell_bytes(HD_S(""));
    key[HD_CRONS_ID] = hd_cell_bytes(hd_slice_cstr(id));
}

/* `id` must stay until the batch is applied. */
static void add_row(struct hd_batch_builder *batch, enum hd_op_kind kind, const char *id,
                    int64_t rev)
{
    struct hd_cell row[6];

    cron_key(row, id);
    row[HD_CRONS_REV] = hd_cell_int(rev);
    row[HD_CRONS_NEXT] = hd_cell_null();
    row[HD_CRONS_CREATED] = hd_cell_int(1);
    row[HD_CRONS_BODY] = hd_cell_bytes(HD_S("{}"));
    assert_ok(hd_batch_row(batch, kind, HD_CRONS, row));
}

static void add_expectation(struct hd_batch_builder *batch, const char *id, int64_t rev)
{
    struct hd_cell key[2];

    cron_key(key, id);
    assert_ok(hd_batch_expect(batch, HD_CRONS, key, HD_CRONS_REV, rev));
}

static int on_rev(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_CRONS_REV].number;
    return 0;
}

/* -1: there is no such row. */
static int64_t rev_of(struct heddle *store, const char *id)
{
    struct hd_cell key[2];
    struct hd_query query = {.table = HD_CRONS,
                             .index = HD_PRIMARY,
                             .prefix = key,
                             .prefix_count = 2,
                             .columns = HD_ALL_COLUMNS};
    int64_t rev = -1;

    cron_key(key, id);
    assert_ok(hd_rows_read(store, &query, 1, on_rev, &rev, NULL));
    return rev;
}

static int apply(struct heddle *store, const struct hd_batch_builder *builder, size_t *failed)
{
    struct hd_batch batch = hd_batch_view(builder);
    struct heddle_error fault = {0};
    int err = hd_rows_apply(store, LANE, &batch, failed, &fault);

    assert_int_equal(fault.code, err);
    return err;
}

static void put_rev(struct heddle *store, const char *id, int64_t rev)
{
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    add_row(&batch, HD_OP_PUT, id, rev);
    assert_ok(apply(store, &batch, NULL));
    hd_batch_fini(&batch);
}

/* ---- alone ---- */

static void rows_are_applied_all_or_none(struct fixture *f)
{
    struct hd_batch_builder batch;
    size_t failed = 99;

    hd_batch_init(&batch);
    assert_ok(apply(f->store, &batch, &failed)); /* nothing to do */
    add_row(&batch, HD_OP_ADD, "a", 1);
    add_row(&batch, HD_OP_ADD, "b", 1);
    assert_ok(apply(f->store, &batch, NULL));
    hd_batch_reset(&batch);
    add_expectation(&batch, "a", 1);
    add_row(&batch, HD_OP_PUT, "a", 2);
    add_expectation(&batch, "b", 7);
    assert_code(apply(f->store, &batch, &failed), HD_ECONFLICT);
    assert_int_equal(failed, 2);
    assert_int_equal(rev_of(f->store, "a"), 1);
    hd_batch_reset(&batch);
    add_row(&batch, HD_OP_PUT, "c", 1);
    add_row(&batch, HD_OP_ADD, "b", 9);
    assert_code(apply(f->store, &batch, &failed), HD_ECONFLICT);
    assert_int_equal(failed, 1);
    assert_int_equal(rev_of(f->store, "b"), 1);
    assert_int_equal(rev_of(f->store, "c"), -1);
    hd_batch_fini(&batch);
    reopen(f);
    assert_int_equal(rev_of(f->store, "a"), 1);
}

static int on_scanned(void *arg, size_t which, const struct hd_cell *cells)
{
    size_t *count = arg;
    char expected[24];

    (void)which;
    snprintf(expected, sizeof(expected), "%05zu", (*count)++);
    assert_true(hd_slice_eq(cells[HD_CRONS_ID].bytes, hd_slice_cstr(expected)));
    return *count == 900;
}

static void a_scan_goes_along_an_index_page_by_page(struct fixture *f)
{
    enum { ROWS = 1000 };
    char ids[ROWS][16];
    struct hd_query query = {.table = HD_CRONS, .index = HD_CRONS_DUE};
    struct hd_batch_builder batch;
    size_t count = 0;

    hd_batch_init(&batch);
    for (int i = ROWS - 1; i >= 0; i--) {
        struct hd_cell row[6];

        snprintf(ids[i], sizeof(ids[i]), "%05d", i);
        cron_key(row, ids[i]);
        row[HD_CRONS_REV] = hd_cell_int(1);
        row[HD_CRONS_NEXT] = hd_cell_int(i / 3); /* some are due at the same time */
        row[HD_CRONS_CREATED] = hd_cell_int(1);
        row[HD_CRONS_BODY] = hd_cell_bytes(HD_S("{}"));
        assert_ok(hd_batch_row(&batch, HD_OP_PUT, HD_CRONS, row));
    }
    assert_ok(apply(f->store, &batch, NULL));
    hd_batch_fini(&batch);
    assert_ok(hd_rows_scan(f->store, query, on_scanned, &count, NULL));
    assert_int_equal(count, 900);
}

/* ---- in a group ---- */

struct answer {
    atomic_int count;
    atomic_int code;
};

static void on_done(void *arg, int code, const struct heddle_error *error)
{
    struct answer *answer = arg;

    assert_int_equal(error->code, code);
    atomic_store(&answer->code, code);
    atomic_fetch_add(&answer->count, 1);
}

static void await(struct answer *answer, int code)
{
    for (int i = 0; i < 600000 && atomic_load(&answer->count) == 0; i++)
        nanosleep(&(struct timespec){0, 100000}, NULL);
    assert_int_equal(atomic_load(&answer->count), 1);
    assert_code(atomic_load(&answer->code), code);
}

static void start(struct heddle *store, struct hd_batch_builder *batch, struct answer *answer)
{
    assert_ok(hd_rows_apply_async(store, LANE, batch, on_done, answer));
    /* It was taken. */
    assert_int_equal(batch->count, 0);
    hd_batch_fini(batch);
}

/* Requests queued while the leader is about to apply: the next group. */
struct group {
    struct heddle *store;
    char json[JSON_ROOM];
    struct put put;
    struct heddle_checkpoint checkpoint;
    struct answer rows[4];
    struct answer puts[2];
    int mixed; /* batches with rows and checkpoints in them */
};

static void put_checkpoint(struct group *g, struct answer *answer)
{
    g->put = (struct put){.thread = "t", .id = "1", .versions = "{}"};
    g->checkpoint = make_put(&g->put, g->json);
    assert_ok(heddle_put_async(g->store, &g->checkpoint, on_done, answer));
}

static void look_for_both(void *arg, const struct hd_batch *batch)
{
    struct group *g = arg;
    bool has_rows = false, has_checkpoint = false;

    for (size_t i = 0; i < batch->count; i++) {
        has_rows |= batch->ops[i].table == HD_CRONS;
        has_checkpoint |= batch->ops[i].table == HD_CHECKPOINTS;
    }
    g->mixed += has_rows && has_checkpoint;
}

/* Runs `queue` inside the first apply, so that all it queues is in one group. */
static void run_group(struct fixture *f, struct group *g, void (*queue)(void *arg))
{
    struct watch watch;

    g->store = f->store;
    watch_store(&watch, f->store);
    watch.on_apply = look_for_both;
    watch.on_apply_arg = g;
    watch.pause = queue;
    watch.pause_arg = g;
    watch.pauses_at = 1;
    put_rev(f->store, "first", 1);
    for (size_t i = 0; i < COUNT_OF(g->puts); i++) {
        if (g->puts[i].code != 1)
            await(&g->puts[i], 0);
    }
    (void)rev_of(f->store, "first");
    ((struct hd_store *)f->store)->backend = watch.inner;
}

static void queue_rows_and_put(void *arg)
{
    struct group *g = arg;
    struct hd_batch_builder batch;

    put_checkpoint(g, &g->puts[0]);
    hd_batch_init(&batch);
    add_row(&batch, HD_OP_ADD, "a", 1);
    start(g->store, &batch, &g->rows[0]);
    hd_batch_init(&batch);
    add_expectation(&batch, "a", 1); /* as the one before it leaves it */
    add_row(&batch, HD_OP_PUT, "a", 2);
    start(g->store, &batch, &g->rows[1]);
}

static void rows_are_committed_with_the_puts_beside_them(struct fixture *f)
{
    struct group g = {.puts = {{0, 0}, {0, 1}}};

    run_group(f, &g, queue_rows_and_put);
    await(&g.rows[0], 0);
    await(&g.rows[1], 0);
    assert_int_equal(g.mixed, 1);
    assert_int_equal(rev_of(f->store, "a"), 2);
    heddle_tuple_free(must_get(f->store, "t", "", "1"));
}

static void queue_conflicts(void *arg)
{
    struct group *g = arg;
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    add_row(&batch, HD_OP_PUT, "lost", 1);
    add_expectation(&batch, "none", 1); /* in the way at once */
    start(g->store, &batch, &g->rows[0]);
    put_checkpoint(g, &g->puts[0]);
    hd_batch_init(&batch);
    add_row(&batch, HD_OP_ADD, "a", 1);
    start(g->store, &batch, &g->rows[1]);
    hd_batch_init(&batch);
    add_row(&batch, HD_OP_PUT, "lost", 1);
    add_row(&batch, HD_OP_ADD, "a", 5); /* of the one before it */
    start(g->store, &batch, &g->rows[2]);
    hd_batch_init(&batch);
    add_row(&batch, HD_OP_PUT, "b", 1);
    start(g->store, &batch, &g->rows[3]);
}

static void a_conflict_is_that_of_one_request(struct fixture *f)
{
    struct group g = {.puts = {{0, 0}, {0, 1}}};

    run_group(f, &g, queue_conflicts);
    await(&g.rows[0], HD_ECONFLICT);
    await(&g.rows[1], 0);
    await(&g.rows[2], HD_ECONFLICT);
    await(&g.rows[3], 0);
    assert_int_equal(rev_of(f->store, "lost"), -1);
    assert_int_equal(rev_of(f->store, "a"), 1);
    assert_int_equal(rev_of(f->store, "b"), 1);
    heddle_tuple_free(must_get(f->store, "t", "", "1"));
}

static void add_item(struct hd_batch_builder *batch, struct hd_slice value)
{
    const struct hd_cell row[] = {
        [HD_ITEMS_PRINCIPAL] = hd_cell_bytes(HD_S("")),
        [HD_ITEMS_NAMESPACE] = hd_cell_bytes(HD_S("ns")),
        [HD_ITEMS_KEY] = hd_cell_bytes(HD_S("key")),
        [HD_ITEMS_CREATED] = hd_cell_int(1),
        [HD_ITEMS_UPDATED] = hd_cell_int(1),
        [HD_ITEMS_EXPIRES] = hd_cell_null(),
        [HD_ITEMS_TTL] = hd_cell_null(),
        [HD_ITEMS_VALUE] = hd_cell_bytes(value),
    };

    assert_ok(hd_batch_row(batch, HD_OP_ADD, HD_ITEMS, row));
}

/*
 * The first has a conflict in its last operation; the second would have one if the first
 * went through, and a database that goes table by table meets that one sooner.
 */
static void queue_misleading(void *arg)
{
    struct group *g = arg;
    struct hd_batch_builder batch;

    put_checkpoint(g, &g->puts[0]);
    hd_batch_init(&batch);
    add_item(&batch, HD_S("{\"by\":1}"));
    add_expectation(&batch, "none", 1);
    start(g->store, &batch, &g->rows[0]);
    hd_batch_init(&batch);
    add_item(&batch, HD_S("{\"by\":2}"));
    start(g->store, &batch, &g->rows[1]);
}

static int on_item(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    assert_true(hd_slice_eq(cells[HD_ITEMS_VALUE].bytes, HD_S("{\"by\":2}")));
    ++*(size_t *)arg;
    return 0;
}

static void what_was_refused_stands_in_nobody_s_way(struct fixture *f)
{
    struct hd_query query = {.table = HD_ITEMS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    struct group g = {.puts = {{0, 0}, {0, 1}}};
    size_t count = 0;

    run_group(f, &g, queue_misleading);
    await(&g.rows[0], HD_ECONFLICT);
    await(&g.rows[1], 0);
    assert_ok(hd_rows_read(f->store, &query, 1, on_item, &count, NULL));
    assert_int_equal(count, 1);
}

/* A batch that no table can hold fails alone too. */
static void queue_nonsense(void *arg)
{
    struct group *g = arg;
    struct hd_batch_builder batch;
    struct hd_cell key[2];

    put_checkpoint(g, &g->puts[0]);
    hd_batch_init(&batch);
    cron_key(key, "first");
    assert_ok(hd_batch_expect(&batch, HD_CRONS, key, HD_CRONS_BODY, 3));
    start(g->store, &batch, &g->rows[0]);
    hd_batch_init(&batch);
    add_row(&batch, HD_OP_ADD, "a", 1);
    start(g->store, &batch, &g->rows[1]);
}

static void nonsense_is_refused_and_harms_nobody(struct fixture *f)
{
    struct group g = {.puts = {{0, 0}, {0, 1}}};

    run_group(f, &g, queue_nonsense);
    await(&g.rows[0], HD_EINVAL);
    await(&g.rows[1], 0);
    assert_int_equal(rev_of(f->store, "a"), 1);
}

/* ---- crowds ---- */

enum { WRITERS = 4, STEPS = 40 };

struct crowd {
    struct heddle *store;
    atomic_int next;
    atomic_int wrong;
};

/* One step up by reading and putting, as often as it takes. */
static void count_up(struct crowd *crowd)
{
    int err = HD_ECONFLICT;

    while (err == HD_ECONFLICT) {
        struct hd_batch_builder builder;
        struct hd_batch batch;
        int64_t rev = rev_of(crowd->store, "counter");
        size_t failed = 99;

        hd_batch_init(&builder);
        add_expectation(&builder, "counter", rev);
        add_row(&builder, HD_OP_PUT, "counter", rev + 1);
        batch = hd_batch_view(&builder);
        err = hd_rows_apply(crowd->store, LANE, &batch, &failed, NULL);
        hd_batch_fini(&builder);
        if (err && (err != HD_ECONFLICT || failed != 0))
            atomic_fetch_add(&crowd->wrong, 1);
    }
}

static void *count_and_put(void *arg)
{
    struct crowd *crowd = arg;
    int me = atomic_fetch_add(&crowd->next, 1);

    for (int i = 0; i < STEPS; i++) {
        char id[16], thread[4] = {(char)('t' + me % 2)};
        struct put put = {.thread = thread, .id = id, .versions = "{}"};

        snprintf(id, sizeof(id), "%d-%04d", me, i);
        count_up(crowd);
        if (try_put(crowd->store, &put, NULL) != 0)
            atomic_fetch_add(&crowd->wrong, 1);
    }
    return NULL;
}

static void a_crowd_counts_without_losing_a_step(struct fixture *f)
{
    struct crowd crowd = {.store = f->store};
    struct answer answers[STEPS] = {{0, 0}};
    pthread_t threads[WRITERS];
    char ids[STEPS][16];

    put_rev(f->store, "counter", 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_and_put, &crowd), 0);
    for (int i = 0; i < STEPS; i++) {
        struct hd_batch_builder batch;

        snprintf(ids[i], sizeof(ids[i]), "s%d", i);
        hd_batch_init(&batch);
        add_row(&batch, HD_OP_ADD, ids[i], i);
        start(f->store, &batch, &answers[i]);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < STEPS; i++) {
        await(&answers[i], 0);
        assert_int_equal(rev_of(f->store, ids[i]), i);
    }
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_int_equal(rev_of(f->store, "counter"), WRITERS * STEPS);
}

static void closing_waits_for_rows(struct fixture *f)
{
    struct answer answers[STEPS] = {{0, 0}};

    for (int i = 0; i < STEPS; i++) {
        struct hd_batch_builder batch;
        char *id;

        /* The operations' data is in the builder, which is taken. */
        hd_batch_init(&batch);
        id = hd_arena_printf(&batch.arena, "r%d", i);
        assert_non_null(id);
        add_row(&batch, HD_OP_ADD, id, i);
        start(f->store, &batch, &answers[i]);
    }
    heddle_close(f->store);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(atomic_load(&answers[i].count), 1);
        assert_code(atomic_load(&answers[i].code), 0);
    }
    f->store = open_store(f->url);
}

/* ---- memory ---- */

/* Either it was not taken and `done` is not called, or it was and `done` gets the result. */
static void a_failed_allocation_is_told_once(struct fixture *f)
{
    bool was_whole = false;

    for (long n = 1; !was_whole && n < 1000; n++) {
        struct answer answer = {0, 0};
        struct hd_batch_builder batch;
        int err;

        hd_batch_init(&batch);
        add_row(&batch, HD_OP_PUT, "a", n);
        (void)hd_alloc_fail_at(n, 0);
        err = hd_rows_apply_async(f->store, LANE, &batch, on_done, &answer);
        while (!err && atomic_load(&answer.count) == 0)
            nanosleep(&(struct timespec){0, 100000}, NULL);
        was_whole = hd_alloc_fail_at(0, 0) < n;
        if (err) {
            assert_code(err, HD_ENOMEM);
            assert_int_equal(batch.count, 1);
            assert_int_equal(atomic_load(&answer.count), 0);
        } else if (atomic_load(&answer.code) == 0) {
            assert_int_equal(rev_of(f->store, "a"), n);
        } else {
            assert_code(atomic_load(&answer.code), HD_ENOMEM);
        }
        hd_batch_fini(&batch);
    }
    assert_true(was_whole);
}

int main(void)
{
    static const struct store_case cases[] = {
        STORE_CASE(rows_are_applied_all_or_none),
        STORE_CASE(a_scan_goes_along_an_index_page_by_page),
        STORE_CASE(rows_are_committed_with_the_puts_beside_them),
        STORE_CASE(a_conflict_is_that_of_one_request),
        STORE_CASE(what_was_refused_stands_in_nobody_s_way),
        STORE_CASE(nonsense_is_refused_and_harms_nobody),
        STORE_CASE(a_crowd_counts_without_losing_a_step),
        STORE_CASE(closing_waits_for_rows),
        STORE_CASE(a_failed_allocation_is_told_once),
        {NULL, NULL},
    };
    static const struct store_case *const tables[] = {cases};

    return run_cases("rows", tables, 1, "timeout=60");
}
