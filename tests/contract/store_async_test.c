/* Calls that do not wait, deferred work, and group commit. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "store/list_append.h"
#include "tests/contract/store_help.h"
#include "tests/contract/store_watch.h"

enum { CALLERS = 4, REQUESTS = 250 }; /* together a thousand */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- a request that owns its input ---- */

static _Thread_local bool is_inside_a_call;

struct call {
    char thread[16], id[24], versions[40], json[JSON_ROOM];
    char *value;
    struct put put;
    struct writes writes;
    struct heddle_checkpoint checkpoint;
    struct heddle_writes batch;
    struct heddle_value values[1];
    atomic_int answers;
    atomic_int code;
    atomic_int was_inside;
    char text[252];
};

static void on_done(void *arg, int code, const struct heddle_error *error)
{
    struct call *call = arg;

    if (is_inside_a_call)
        atomic_store(&call->was_inside, 1);
    snprintf(call->text, sizeof(call->text), "%s", error->text);
    atomic_store(&call->code, code);
    atomic_fetch_add(&call->answers, 1);
}

static int wait_for(struct call *call)
{
    double until = now() + 60;

    while (atomic_load(&call->answers) == 0) {
        if (now() > until)
            fail_msg("no answer came");
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    assert_int_equal(atomic_load(&call->answers), 1);
    return atomic_load(&call->code);
}

static void make_call(struct call *call, int thread, int number, size_t len)
{
    memset(call, 0, sizeof(*call));
    snprintf(call->thread, sizeof(call->thread), "t%d", thread);
    snprintf(call->id, sizeof(call->id), "%06d", number);
    snprintf(call->versions, sizeof(call->versions), "{\"a\":%d}", number);
    call->value = long_json(len, (unsigned)number);
    call->values[0] = (struct heddle_value){text("a"), text("json"), bytes(call->value, len)};
    call->put = (struct put){.thread = call->thread, .id = call->id, .versions = call->versions};
    call->checkpoint = make_put(&call->put, call->json);
    call->checkpoint.values = call->values;
    call->checkpoint.value_count = 1;
    call->writes = (struct writes){.thread = call->thread, .id = call->id, .task = "k"};
    call->batch = make_writes(&call->writes);
    call->batch.values = call->values;
    call->batch.value_count = 1;
}

static int start(struct heddle *store, struct call *call, bool is_put)
{
    int code;

    is_inside_a_call = true;
    code = is_put ? heddle_put_async(store, &call->checkpoint, on_done, call)
                  : heddle_put_writes_async(store, &call->batch, on_done, call);
    is_inside_a_call = false;
    return code;
}

/* ---- a thousand at once ---- */

struct caller {
    struct heddle *store;
    int number;
    struct call *calls; /* REQUESTS puts, then as many writes */
    int failed;
};

static void *call_many(void *arg)
{
    struct caller *caller = arg;

    for (int i = 0; i < REQUESTS; i++) {
        struct call *put = &caller->calls[i], *writes = &caller->calls[REQUESTS + i];
        int number = caller->number * REQUESTS + i;

        make_call(put, i % 7, number, i % 3 ? 50 : 700);
        make_call(writes, i % 7, number, i % 5 ? 60 : 900);
        caller->failed |= start(caller->store, writes, false);
        caller->failed |= start(caller->store, put, true);
        if (i % 10 == 0) { /* and now and then one that waits */
            struct heddle_tuple *tuple = NULL;
            struct put sync = {.thread = "sync", .id = put->id};
            struct heddle_key key = {thread_of("sync"), text(""), text(put->id)};

            caller->failed |= try_put(caller->store, &sync, NULL);
            caller->failed |= heddle_get(caller->store, &key, &tuple, NULL);
            heddle_tuple_free(tuple);
        }
    }
    return NULL;
}

static void start_callers(struct fixture *f, struct caller *callers, pthread_t *threads)
{
    for (int c = 0; c < CALLERS; c++) {
        callers[c] = (struct caller){f->store, c, calloc(REQUESTS * 2, sizeof(struct call)), 0};
        assert_non_null(callers[c].calls);
        assert_int_equal(pthread_create(&threads[c], NULL, call_many, &callers[c]), 0);
    }
    for (int c = 0; c < CALLERS; c++) {
        pthread_join(threads[c], NULL);
        assert_int_equal(callers[c].failed, 0);
    }
}

static void check_calls(struct caller *callers)
{
    for (int c = 0; c < CALLERS; c++) {
        for (int i = 0; i < REQUESTS * 2; i++) {
            struct call *call = &callers[c].calls[i];

            assert_int_equal(atomic_load(&call->answers), 1);
            assert_int_equal(atomic_load(&call->code), 0);
            assert_int_equal(atomic_load(&call->was_inside), 0);
        }
    }
}

static void check_contents(struct heddle *store, struct caller *callers)
{
    for (int c = 0; c < CALLERS; c++) {
        for (int i = 0; i < REQUESTS; i++) {
            struct call *put = &callers[c].calls[i], *writes = &callers[c].calls[REQUESTS + i];
            struct heddle_tuple *tuple = must_get(store, put->thread, "", put->id);

            assert_int_equal(tuple->value_count, 1);
            assert_int_equal(tuple->values[0].data.len, put->values[0].data.len);
            assert_memory_equal(tuple->values[0].data.data, put->value, put->values[0].data.len);
            assert_int_equal(tuple->write_count, 1);
            assert_memory_equal(tuple->writes[0].value.data.data, writes->value,
                                writes->values[0].data.len);
            heddle_tuple_free(tuple);
        }
    }
}

static void free_callers(struct caller *callers)
{
    for (int c = 0; c < CALLERS; c++) {
        for (int i = 0; i < REQUESTS * 2; i++)
            free(callers[c].calls[i].value);
        free(callers[c].calls);
    }
}

static void closing_waits_for_two_thousand_calls(struct fixture *f)
{
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];

    start_callers(f, callers, threads);
    heddle_close(f->store);
    check_calls(callers);
    f->store = open_store(f->url);
    if (is_shared(f->base))
        check_contents(f->store, callers);
    free_callers(callers);
}

/* The size of a group depends on the time of a commit: here it takes a while everywhere. */
static void take_a_while(void *arg, const struct hd_batch *batch)
{
    (void)arg;
    (void)batch;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static void requests_that_come_together_are_committed_together(struct fixture *f)
{
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    struct watch watch;
    int commits;

    watch_store(&watch, f->store);
    watch.on_apply = take_a_while;
    start_callers(f, callers, threads);
    for (int c = 0; c < CALLERS; c++) {
        for (int i = 0; i < REQUESTS * 2; i++)
            assert_int_equal(wait_for(&callers[c].calls[i]), 0);
    }
    check_calls(callers);
    check_contents(f->store, callers);
    commits = atomic_load(&watch.applies);
    print_message("# %s %d requests in %d commits\n", kind_of(f->base),
                  CALLERS * REQUESTS * 2 + CALLERS * REQUESTS / 10, commits);
    assert_true(commits < CALLERS * REQUESTS);
    ((struct hd_store *)f->store)->backend = watch.inner;
    free_callers(callers);
}

/* ---- callers that wait ---- */

struct waiter {
    struct heddle *store;
    int number;
    int failed;
};

static void *put_and_wait(void *arg)
{
    struct waiter *waiter = arg;

    for (int i = 0; i < 60; i++) {
        struct call call;

        make_call(&call, waiter->number, i, 200);
        waiter->failed |= heddle_put(waiter->store, &call.checkpoint, NULL);
        free(call.value);
    }
    return NULL;
}

static void waiting_callers_share_commits(struct fixture *f)
{
    enum { WAITERS = 8 };
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    struct watch watch;

    watch_store(&watch, f->store);
    watch.on_apply = take_a_while;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){f->store, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_wait, &waiters[i]), 0);
    }
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].failed, 0);
    }
    print_message("# %s %d puts in %d commits\n", kind_of(f->base), WAITERS * 60,
                  atomic_load(&watch.applies));
    /* Eight callers in one lane, or in several. */
    assert_true(atomic_load(&watch.applies) <
                (watch.base.lanes == 1 ? WAITERS * 30 : WAITERS * 60));
    for (int i = 0; i < WAITERS; i++) {
        char thread[16];

        snprintf(thread, sizeof(thread), "t%d", i);
        assert_int_equal(usage_of(f->store, thread).checkpoints, 60);
    }
    ((struct hd_store *)f->store)->backend = watch.inner;
}

/* ---- order ---- */

static void calls_on_one_thread_keep_their_order(struct fixture *f)
{
    enum { COUNT = 40 };
    static struct call calls[COUNT];

    for (int i = 0; i < COUNT; i++) { /* always the same id: the last one wins */
        make_call(&calls[i], 0, i, 300);
        calls[i].checkpoint.id = text("x");
        assert_ok(start(f->store, &calls[i], true));
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(wait_for(&calls[i]), 0);
    {
        struct heddle_tuple *tuple = must_get(f->store, "t0", "", "x");

        assert_int_equal(tuple->values[0].data.len, 300);
        assert_memory_equal(tuple->values[0].data.data, calls[COUNT - 1].value, 300);
        heddle_tuple_free(tuple);
    }
    for (int i = 0; i < COUNT; i++)
        free(calls[i].value);
}

/* A chain whose links are all in one group: each continues the value of the one before it. */
static void a_chain_in_one_group_carries_values_on(struct fixture *f)
{
    enum { COUNT = 30 };
    static struct call calls[COUNT];
    static char parents[COUNT][24];

    for (int i = 0; i < COUNT; i++) {
        make_call(&calls[i], 0, i, 300);
        snprintf(parents[i], sizeof(parents[i]), "%06d", i - 1);
        if (i) {
            calls[i].put.parent = parents[i];
            calls[i].put.versions = "{\"a\":0}";
            calls[i].put.changed = "{}";
            calls[i].checkpoint = make_put(&calls[i].put, calls[i].json);
        }
        assert_ok(start(f->store, &calls[i], true));
    }
    for (int i = 0; i < COUNT; i++) {
        struct heddle_tuple *tuple;

        assert_int_equal(wait_for(&calls[i]), 0);
        tuple = must_get(f->store, "t0", "", calls[i].id);
        assert_int_equal(tuple->value_count, 1);
        assert_memory_equal(tuple->values[0].data.data, calls[0].value, 300);
        heddle_tuple_free(tuple);
    }
    for (int i = 0; i < COUNT; i++)
        free(calls[i].value);
}

/* ---- errors ---- */

static void bad_input_is_answered_and_harms_nobody(struct fixture *f)
{
    enum { COUNT = 60 };
    static struct call calls[COUNT];
    char longer[3000];

    memset(longer, 'x', sizeof(longer));
    for (int i = 0; i < COUNT; i++) {
        make_call(&calls[i], i % 3, i, 300);
        switch (i % 6) {
        case 1:
            calls[i].checkpoint.id = text("");
            break;
        case 2:
            calls[i].checkpoint.metadata = text("[");
            break;
        case 3:
            calls[i].checkpoint.thread.id = bytes(longer, sizeof(longer));
            break;
        case 4:
            calls[i].checkpoint.new_versions = text("{\"a\":null}");
            break;
        }
        assert_ok(start(f->store, &calls[i], true));
    }
    for (int i = 0; i < COUNT; i++) {
        static const int expected[] = {
            0, HEDDLE_EINVAL, HEDDLE_EINVAL, HEDDLE_ELIMIT, HEDDLE_EINVAL, 0};

        assert_int_equal(wait_for(&calls[i]), expected[i % 6]);
        assert_true((calls[i].text[0] != '\0') == (expected[i % 6] != 0));
    }
    assert_string_equal(calls[1].text, "checkpoint_id is empty");
    for (int i = 0; i < COUNT; i++) {
        char *got = render_get(f->store, calls[i].thread, "", calls[i].id);

        assert_int_equal(strcmp(got, "none") != 0, i % 6 == 0 || i % 6 == 5);
        free(got);
        free(calls[i].value);
    }
}

/* When the database does not respond, no request waits for the timeouts of the others. */
static void an_absent_database_fails_a_group_at_once(struct fixture *f)
{
    enum { COUNT = 100 };
    static struct call calls[COUNT];
    struct watch watch;

    watch_store(&watch, f->store);
    watch.death = HD_EUNAVAILABLE;
    watch.death_takes_ms = 200;
    watch.dies_at = 1;
    for (int i = 0; i < COUNT; i++) {
        make_call(&calls[i], i % 10, i, 300);
        assert_ok(start(f->store, &calls[i], true));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(wait_for(&calls[i]), HEDDLE_EUNAVAILABLE);
        assert_string_equal(calls[i].text, "dead");
    }
    assert_true(atomic_load(&watch.calls) < COUNT / 2);
    /* And when it responds again, all requests succeed. */
    watch_reset(&watch);
    for (int i = 0; i < COUNT; i++) {
        atomic_store(&calls[i].answers, 0);
        assert_ok(start(f->store, &calls[i], true));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(wait_for(&calls[i]), 0);
        free(calls[i].value);
    }
    ((struct hd_store *)f->store)->backend = watch.inner;
}

/* The database fails in between: acknowledged requests are stored, the others are not. */
static void a_broken_database_is_told_to_everybody(struct fixture *f)
{
    enum { COUNT = 60 };
    static struct call calls[COUNT];

    for (int dies_at = 1; dies_at < 12; dies_at += 2) {
        struct watch watch;

        watch_store(&watch, f->store);
        watch.dies_at = dies_at;
        for (int i = 0; i < COUNT; i++) {
            make_call(&calls[i], dies_at * 10 + i % 4, i, 300);
            assert_ok(start(f->store, &calls[i], i % 2));
        }
        for (int i = 0; i < COUNT; i++)
            (void)wait_for(&calls[i]);
        ((struct hd_store *)f->store)->backend = watch.inner;
        for (int i = 0; i < COUNT; i++) {
            char *got = render_get(f->store, calls[i].thread, "", calls[i].id);

            if (i % 2)
                assert_int_equal(strcmp(got, "none") != 0, calls[i].code == 0);
            free(got);
        }
        for (int i = 0; i < COUNT; i++) { /* again, now that it works */
            atomic_store(&calls[i].answers, 0);
            assert_ok(start(f->store, &calls[i], i % 2));
        }
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(wait_for(&calls[i]), 0);
            free(calls[i].value);
        }
    }
}

/* ---- queues ---- */

/* Queued requests wait for hd_store_queue_go(), and then need one commit. */
static void what_is_queued_goes_together(struct fixture *f)
{
    enum { COUNT = 20 };
    static struct call calls[COUNT];
    struct hd_write_chain chain = {0};
    struct watch watch;

    make_call(&calls[0], 0, 999, 50);
    assert_ok(heddle_put(f->store, &calls[0].checkpoint, NULL));
    free(calls[0].value);
    watch_store(&watch, f->store);
    for (int i = 0; i < COUNT; i++) {
        make_call(&calls[i], 0, i, 300);
        if (i % 2)
            assert_ok(hd_store_queue_writes(f->store, &calls[i].batch, HD_NO_GUARD, on_done,
                                            &calls[i], NULL));
        else
            assert_ok(hd_store_queue_put(f->store, &calls[i].checkpoint,
                                         &(struct hd_put_extras){.chain = &chain}, on_done,
                                         &calls[i], NULL));
    }
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(atomic_load(&calls[i].answers), 0);
    hd_store_queue_go(f->store);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(wait_for(&calls[i]), 0);
        free(calls[i].value);
    }
    assert_int_equal(atomic_load(&watch.applies), 1);
    ((struct hd_store *)f->store)->backend = watch.inner;
    assert_int_equal(usage_of(f->store, "t0").checkpoints, COUNT / 2 + 1);
}

/* Each is stored, or fails, as those before it in its chain. */
static void a_train_stops_where_it_breaks(struct fixture *f)
{
    enum { COUNT = 9, BROKEN = 4 };
    static struct call calls[COUNT];
    struct hd_write_chain chain = {0};

    for (int i = 0; i < COUNT; i++) {
        make_call(&calls[i], 0, i, 300);
        if (i == BROKEN)
            calls[i].checkpoint.metadata = text("no JSON");
        assert_ok(
            hd_store_queue_put(f->store, &calls[i].checkpoint,
                               i == COUNT - 1 ? NULL : &(struct hd_put_extras){.chain = &chain},
                               on_done, &calls[i], NULL));
        if (i % 3 == 0)
            hd_store_queue_go(f->store);
    }
    hd_store_queue_go(f->store);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(wait_for(&calls[i]), i < BROKEN || i == COUNT - 1 ? 0 : HEDDLE_EINVAL);
        free(calls[i].value);
    }
    assert_non_null(strstr(calls[BROKEN].text, "metadata is not JSON"));
    assert_int_equal(usage_of(f->store, "t0").checkpoints, BROKEN + 1);
}

/* A rejection is returned at once: nothing was queued. */
static void what_cannot_be_queued_is_refused(struct fixture *f)
{
    struct heddle_error error = {0};
    struct call call;

    make_call(&call, 0, 1, 50);
    call.checkpoint.id = text("");
    call.batch.checkpoint_id = text("");
    assert_int_equal(hd_store_queue_put(f->store, &call.checkpoint, NULL, on_done, &call, &error),
                     HEDDLE_EINVAL);
    assert_non_null(strstr(error.text, "checkpoint_id is empty"));
    assert_int_equal(
        hd_store_queue_writes(f->store, &call.batch, HD_NO_GUARD, on_done, &call, &error),
        HEDDLE_EINVAL);
    hd_store_queue_go(f->store);
    assert_int_equal(atomic_load(&call.answers), 0);
    free(call.value);
}

/* ---- deferred work ---- */

struct deferred {
    struct heddle *store;
    atomic_int started, done, failed;
    atomic_int depth;
};

static void work_and_defer_more(void *arg)
{
    struct deferred *d = arg;
    int number = atomic_fetch_add(&d->started, 1);
    char id[16];

    snprintf(id, sizeof(id), "%06d", number);
    if (try_put(d->store, &(struct put){.thread = "deferred", .id = id}, NULL) != 0)
        atomic_fetch_add(&d->failed, 1);
    if (atomic_fetch_sub(&d->depth, 1) > 0 && heddle_defer(d->store, work_and_defer_more, d) != 0)
        atomic_fetch_add(&d->failed, 1);
    atomic_fetch_add(&d->done, 1);
}

static void closing_waits_for_deferred_work(struct fixture *f)
{
    struct deferred d = {.store = f->store};

    atomic_store(&d.depth, 40);
    for (int i = 0; i < 20; i++)
        assert_ok(heddle_defer(f->store, work_and_defer_more, &d));
    heddle_close(f->store);
    assert_int_equal(atomic_load(&d.started), atomic_load(&d.done));
    assert_int_equal(atomic_load(&d.done), 60);
    assert_int_equal(atomic_load(&d.failed), 0);
    f->store = open_store(f->url);
    if (is_shared(f->base))
        assert_int_equal(usage_of(f->store, "deferred").checkpoints, 60);
}

struct meeting {
    pthread_barrier_t barrier;
    atomic_int met;
};

static void meet(void *arg)
{
    struct meeting *meeting = arg;

    pthread_barrier_wait(&meeting->barrier);
    atomic_fetch_add(&meeting->met, 1);
}

/* Work that waits for other work must find it under way: there are four threads. */
static void deferred_work_runs_side_by_side(struct fixture *f)
{
    struct meeting meeting;

    atomic_init(&meeting.met, 0);
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, 4), 0);
    for (int round = 0; round < 30; round++) {
        double until = now() + 120;

        for (int i = 0; i < 4; i++)
            assert_ok(heddle_defer(f->store, meet, &meeting));
        while (atomic_load(&meeting.met) < (round + 1) * 4) {
            if (now() > until)
                fail_msg("deferred work waits for work that nobody starts");
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
    }
    pthread_barrier_destroy(&meeting.barrier);
}

int main(void)
{
    static const struct store_case cases[] = {
        STORE_CASE(closing_waits_for_two_thousand_calls),
        STORE_CASE(requests_that_come_together_are_committed_together),
        STORE_CASE(waiting_callers_share_commits),
        STORE_CASE(calls_on_one_thread_keep_their_order),
        STORE_CASE(a_chain_in_one_group_carries_values_on),
        STORE_CASE(bad_input_is_answered_and_harms_nobody),
        STORE_CASE(an_absent_database_fails_a_group_at_once),
        STORE_CASE(a_broken_database_is_told_to_everybody),
        STORE_CASE(what_is_queued_goes_together),
        STORE_CASE(a_train_stops_where_it_breaks),
        STORE_CASE(what_cannot_be_queued_is_refused),
        STORE_CASE(closing_waits_for_deferred_work),
        STORE_CASE(deferred_work_runs_side_by_side),
        {NULL, NULL},
    };
    static const struct store_case *const tables[] = {cases};

    return run_cases("async", tables, 1, "timeout=60");
}
