/* The server's records, in memory and on SQLite. */
#include "records/record_internal.h"

#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "run/run_recover.h"
#include "tests/unit/check.h"

#define MAX_ARENA ((size_t)1 << 26)
#define ADA HD_S("ada")
#define JOB HD_S("job")

/* ---- a store ---------------------------------------------------------- */

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
};

static struct world *world_open(const char *url)
{
    struct world *w = calloc(1, sizeof(*w));
    struct heddle_error error = {0};

    assert_non_null(w);
    hd_arena_init(&w->arena, MAX_ARENA);
    if (heddle_open(&w->store, url, &error))
        fail_msg("%s", error.text);
    return w;
}

static int setup_memory(void **state)
{
    *state = world_open("memory:");
    return 0;
}

static int setup_sqlite(void **state)
{
    *state = world_open("sqlite::memory:");
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

/* Applies and ends the batch. */
static int apply(struct world *w, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL);

    hd_batch_fini(builder);
    return err;
}

#define APPLY(w, call)                     \
    do {                                   \
        struct hd_batch_builder batch;     \
        hd_batch_init(&batch);             \
        assert_err((call), 0);             \
        assert_err(apply((w), &batch), 0); \
    } while (0)
#define REFUSED(w, call)                              \
    do {                                              \
        struct hd_batch_builder batch;                \
        hd_batch_init(&batch);                        \
        assert_err((call), 0);                        \
        assert_err(apply((w), &batch), HD_ECONFLICT); \
    } while (0)

/* ---- threads ---------------------------------------------------------- */

static void assert_same_head(const struct hd_head *got, const struct hd_head *expected)
{
    assert_slice(got->ns, expected->ns);
    assert_slice(got->checkpoint_id, expected->checkpoint_id);
    assert_slice(got->graph_id, expected->graph_id);
    assert_slice(got->assistant_id, expected->assistant_id);
}

static void a_thread_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread, back;

    hd_thread_init(&thread, ADA, JOB);
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), HD_ENOTFOUND);
    assert_int_equal(w->fault.code, 0);
    thread.status = HD_THREAD_INTERRUPTED;
    thread.created_at = 1;
    thread.updated_at = 2;
    thread.state_updated_at = 3;
    thread.expires_at = 4;
    thread.event_seq = 5;
    thread.metadata = HD_S("{\"n\": 1.0}");
    thread.config = HD_S("{\"tags\":[\"a\"]}");
    thread.ttl = HD_S("{\"ttl\":5}");
    thread.head = (struct hd_head){HD_S("assistant:\"x\"\\"), HD_S("c1"), HD_S("g"), HD_S("a")};
    thread.heads = HD_S("{\"ns\":\"c0\"}");
    thread.interrupts = HD_S("{\"task\":[]}");
    thread.error = HD_S("\"boom\"");
    thread.run_order = 6;
    thread.last_run = HD_S("r1");
    thread.is_room = true;
    thread.has_before = true;
    thread.status_before = HD_THREAD_ERROR;
    thread.head_before = (struct hd_head){HD_S("n"), HD_S("c2"), HD_S("g2"), HD_S("a2")};
    APPLY(w, hd_thread_add(&batch, &thread));
    assert_int_equal(thread.rev, 1);
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), 0);
    assert_slice(back.principal, ADA);
    assert_slice(back.id, JOB);
    assert_int_equal(back.rev, 1);
    assert_int_equal(back.status, HD_THREAD_INTERRUPTED);
    assert_int_equal(back.created_at, 1);
    assert_int_equal(back.updated_at, 2);
    assert_int_equal(back.state_updated_at, 3);
    assert_int_equal(back.expires_at, 4);
    assert_int_equal(back.event_seq, 5);
    assert_slice(back.metadata, thread.metadata);
    assert_slice(back.config, thread.config);
    assert_slice(back.ttl, thread.ttl);
    assert_same_head(&back.head, &thread.head);
    assert_slice(back.heads, thread.heads);
    assert_slice(back.interrupts, thread.interrupts);
    assert_slice(back.error, thread.error);
    assert_int_equal(back.run_order, 6);
    assert_slice(back.last_run, thread.last_run);
    assert_true(back.is_room);
    assert_true(back.has_before);
    assert_int_equal(back.status_before, HD_THREAD_ERROR);
    assert_same_head(&back.head_before, &thread.head_before);
}

static void a_bare_thread_comes_back_bare(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread, back;

    hd_thread_init(&thread, HD_S(""), JOB);
    APPLY(w, hd_thread_add(&batch, &thread));
    assert_err(hd_thread_read(w->store, HD_S(""), JOB, &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.status, HD_THREAD_IDLE);
    assert_int_equal(back.expires_at, 0);
    assert_slice(back.metadata, HD_S(""));
    assert_slice(back.head.checkpoint_id, HD_S(""));
    assert_false(back.is_room);
    assert_false(back.has_before);
    assert_slice(back.error, HD_S(""));
}

static void a_stale_revision_is_rejected(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec first, second;

    hd_thread_init(&first, ADA, JOB);
    APPLY(w, hd_thread_add(&batch, &first));
    second = first;
    REFUSED(w, hd_thread_add(&batch, &second));
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &second, &w->fault), 0);
    first.status = HD_THREAD_BUSY;
    APPLY(w, hd_thread_put(&batch, &first));
    assert_int_equal(first.rev, 2);
    second.status = HD_THREAD_ERROR;
    REFUSED(w, hd_thread_put(&batch, &second));
    first.status = HD_THREAD_INTERRUPTED; /* its rev is current without another read */
    APPLY(w, hd_thread_put(&batch, &first));
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &second, &w->fault), 0);
    assert_int_equal(second.status, HD_THREAD_INTERRUPTED);
    assert_int_equal(second.rev, 3);
}

/* The reported names, joined. */
struct seen {
    char text[256];
    size_t count;
    size_t stop; /* returns 1 at this one */
};

static int see(struct seen *seen, struct hd_slice name)
{
    size_t len = strlen(seen->text);

    snprintf(seen->text + len, sizeof(seen->text) - len, "%.*s ", (int)name.len, name.ptr);
    return ++seen->count == seen->stop;
}

static int on_thread(void *arg, const struct hd_thread_rec *thread)
{
    return see(arg, thread->id);
}

static void threads_are_listed_by_age_and_by_expiry(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    static const int64_t created[] = {30, 10, 20, 40};
    static const int64_t expires[] = {0, 9, 5, 10};
    struct world *w = *state;
    struct seen seen = {.stop = 0};

    for (size_t i = 0; i < HD_COUNT(ids); i++) {
        struct hd_thread_rec thread;

        hd_thread_init(&thread, i == 3 ? HD_S("bob") : ADA, hd_slice_cstr(ids[i]));
        thread.created_at = created[i];
        thread.expires_at = expires[i];
        APPLY(w, hd_thread_add(&batch, &thread));
    }
    assert_err(hd_threads_scan(w->store, ADA, true, on_thread, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "a c b ");
    seen = (struct seen){.stop = 2};
    assert_err(hd_threads_scan(w->store, ADA, false, on_thread, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "b c ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_threads_expired(w->store, 9, on_thread, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "c b ");
}

static void lanes_are_those_of_the_checkpoints(void **state)
{
    struct world *w = *state;
    struct hd_slice lane;

    assert_err(hd_thread_lane(&w->arena, ADA, JOB, &lane), 0);
    assert_slice(lane, HD_S("ada:job"));
    assert_err(hd_thread_lane(&w->arena, HD_S("a:b"), JOB, &lane), HD_EINVAL);
}

static void a_damaged_row_is_named(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;
    const struct hd_cell row[] = {hd_cell_bytes(ADA), hd_cell_bytes(JOB),
                                  hd_cell_int(1),     hd_cell_bytes(HD_S("idle")),
                                  hd_cell_int(0),     hd_cell_int(0),
                                  hd_cell_int(0),     hd_cell_null(),
                                  hd_cell_int(0),     hd_cell_bytes(HD_S("{\"head\":[}"))};

    APPLY(w, hd_batch_row(&batch, HD_OP_PUT, HD_THREAD_INFO, row));
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &thread, &w->fault), HD_ECORRUPT);
    assert_non_null(strstr(w->fault.text, "job"));
}

/* Another process, of a newer version, has written the row. */
static void members_of_a_newer_version_are_kept(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;
    struct hd_slice body, added;
    const struct hd_member member = {"added", &added};
    const struct hd_cell key[] = {hd_cell_bytes(ADA), hd_cell_bytes(JOB)};
    const struct hd_cell row[] = {
        hd_cell_bytes(ADA), hd_cell_bytes(JOB),
        hd_cell_int(1),     hd_cell_bytes(HD_S("idle")),
        hd_cell_int(0),     hd_cell_int(0),
        hd_cell_int(0),     hd_cell_null(),
        hd_cell_int(0),     hd_cell_bytes(HD_S("{\"added\":{\"x\": 1},\"ttl\":5}"))};
    struct hd_cell cells[HD_MAX_COLUMNS];

    APPLY(w, hd_batch_row(&batch, HD_OP_PUT, HD_THREAD_INFO, row));
    assert_err(hd_thread_read(w->store, ADA, JOB, &w->arena, &thread, &w->fault), 0);
    thread.status = HD_THREAD_BUSY;
    APPLY(w, hd_thread_put(&batch, &thread));
    assert_err(
        hd_record_get(w->store, HD_THREAD_INFO, key, HD_COUNT(key), &w->arena, cells, &w->fault),
        0);
    body = cells[HD_THREAD_INFO_BODY].bytes;
    assert_err(hd_record_split(body, &member, 1), 0);
    assert_slice(added, HD_S("{\"x\": 1}"));
}

/* ---- runs ------------------------------------------------------------- */

static struct hd_run_rec make_run(const char *thread, const char *id, enum hd_run_state status)
{
    return (struct hd_run_rec){
        .principal = ADA,
        .thread_id = hd_slice_cstr(thread),
        .run_id = hd_slice_cstr(id),
        .status = status,
        .created_at = 1,
        .updated_at = 2,
        .due_at = status <= HD_RUN_STATE_RUNNING ? 3 : 0,
        .attempt = 1,
        .assistant_id = HD_S("assistant"),
        .multitask = HD_MULTITASK_INTERRUPT,
        .metadata = HD_S("{\"m\":1}"),
        .kwargs = HD_S("{\"input\":{\"a\":\"}\"}}"),
        .receipt = HD_S("{\"stopped_at_step\":1}"),
        .error = HD_S("{\"error\":\"ValueError\"}"),
        .checkpoint_id = HD_S("c9"),
        .touched = HD_S("[{\"ns\":\"a\"}]"),
    };
}

static void add_run(struct world *w, const char *thread, const char *id, enum hd_run_state status)
{
    struct hd_run_rec run = make_run(thread, id, status);

    APPLY(w, hd_run_add(&batch, &run));
    assert_int_equal(run.rev, 1);
}

static void a_run_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_run_rec run = make_run("job", "r1", HD_RUN_STATE_PENDING), back, copy;
    struct hd_arena other;

    run.order = 4;
    run.slot = 3;
    run.losses = (struct hd_run_losses){.count = 5, .checkpoints = 6, .writes = 7};
    run.is_suspended = true;
    run.is_off_head = true;
    run.forks = HD_S("{\"n\":\"c\"}");
    run.asked = HD_S("{\"t\":[]}");
    run.actor = HD_S("bob");
    APPLY(w, hd_run_add(&batch, &run));
    assert_err(hd_run_read(w->store, ADA, JOB, HD_S("r1"), &w->arena, &back, &w->fault), 0);
    assert_slice(back.secrets, HD_S(""));
    back.secrets = HD_S("{\"s\":1}");
    back.guard.created_at = 8;
    assert_err(hd_run_find(w->store, HD_S("bob"), HD_S("r1"), &w->arena, &copy, &w->fault),
               HD_ENOTFOUND);
    assert_err(hd_run_find(w->store, ADA, HD_S("r1"), &w->arena, &copy, &w->fault), 0);
    assert_slice(copy.thread_id, JOB);
    hd_arena_init(&other, MAX_ARENA);
    assert_err(hd_run_rec_copy(&other, &back, &copy), 0);
    hd_arena_reset(&w->arena);
    assert_slice(copy.principal, ADA);
    assert_slice(copy.thread_id, JOB);
    assert_slice(copy.run_id, HD_S("r1"));
    assert_int_equal(copy.rev, 1);
    assert_int_equal(copy.status, HD_RUN_STATE_PENDING);
    assert_int_equal(copy.created_at, 1);
    assert_int_equal(copy.updated_at, 2);
    assert_int_equal(copy.due_at, 3);
    assert_int_equal(copy.attempt, 1);
    assert_int_equal(copy.order, 4);
    assert_int_equal(copy.slot, 3);
    assert_int_equal(copy.losses.count, 5);
    assert_int_equal(copy.losses.checkpoints, 6);
    assert_int_equal(copy.losses.writes, 7);
    assert_true(copy.is_suspended);
    assert_true(copy.is_off_head);
    assert_slice(copy.forks, HD_S("{\"n\":\"c\"}"));
    assert_slice(copy.asked, HD_S("{\"t\":[]}"));
    assert_slice(copy.actor, HD_S("bob"));
    assert_slice(copy.secrets, HD_S("{\"s\":1}"));
    assert_int_equal(copy.guard.created_at, 8);
    assert_slice(copy.assistant_id, HD_S("assistant"));
    assert_int_equal(copy.multitask, HD_MULTITASK_INTERRUPT);
    assert_slice(copy.metadata, run.metadata);
    assert_slice(copy.kwargs, run.kwargs);
    assert_slice(copy.receipt, run.receipt);
    assert_slice(copy.error, run.error);
    assert_slice(copy.touched, run.touched);
    assert_slice(copy.checkpoint_id, run.checkpoint_id);
    hd_arena_fini(&other);
    run.due_at = 0;
    run.status = HD_RUN_STATE_SUCCESS;
    APPLY(w, hd_run_put(&batch, &run));
    assert_err(hd_run_read(w->store, ADA, JOB, HD_S("r1"), &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.status, HD_RUN_STATE_SUCCESS);
    assert_int_equal(back.due_at, 0);
    APPLY(w, hd_run_delete(&batch, &run));
    assert_err(hd_run_read(w->store, ADA, JOB, HD_S("r1"), &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
}

static void assert_runs(const struct hd_run_rec *runs, size_t count, const char *expected)
{
    struct seen seen = {.stop = 0};

    for (size_t i = 0; i < count; i++)
        see(&seen, runs[i].run_id);
    assert_string_equal(seen.text, expected);
}

static void runs_of_a_thread_are_listed(void **state)
{
    static const enum hd_run_state success = HD_RUN_STATE_SUCCESS;
    struct world *w = *state;
    struct hd_run_rec *runs;
    size_t count;

    add_run(w, "job", "1", HD_RUN_STATE_SUCCESS);
    add_run(w, "job", "2", HD_RUN_STATE_PENDING);
    add_run(w, "job", "3", HD_RUN_STATE_RUNNING);
    add_run(w, "job", "4", HD_RUN_STATE_SUCCESS);
    add_run(w, "job", "5", HD_RUN_STATE_PENDING);
    add_run(w, "job2", "6", HD_RUN_STATE_PENDING);
    assert_err(hd_runs_active(w->store, ADA, JOB, &w->arena, &runs, &count, &w->fault), 0);
    assert_runs(runs, count, "3 2 5 ");
    assert_err(hd_runs_active(w->store, ADA, HD_S("no"), &w->arena, &runs, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    assert_err(hd_runs_list(w->store, ADA, JOB, NULL, 0, 10, &w->arena, &runs, &count, &w->fault),
               0);
    assert_runs(runs, count, "5 4 3 2 1 ");
    assert_err(hd_runs_list(w->store, ADA, JOB, NULL, 1, 2, &w->arena, &runs, &count, &w->fault),
               0);
    assert_runs(runs, count, "4 3 ");
    assert_err(
        hd_runs_list(w->store, ADA, JOB, &success, 0, 10, &w->arena, &runs, &count, &w->fault), 0);
    assert_runs(runs, count, "4 1 ");
    assert_err(hd_runs_list(w->store, ADA, JOB, NULL, 9, 2, &w->arena, &runs, &count, &w->fault),
               0);
    assert_int_equal(count, 0);
    assert_err(hd_runs_list(w->store, ADA, JOB, NULL, 0, 0, &w->arena, &runs, &count, &w->fault),
               0);
    assert_int_equal(count, 0);
}

static void a_pending_run_is_begun_once(void **state)
{
    struct world *w = *state;
    struct hd_run_rec run = make_run("job", "r", HD_RUN_STATE_PENDING), other, back;

    APPLY(w, hd_run_add(&batch, &run));
    other = run;
    APPLY(w, hd_run_put(&batch, &other)); /* another change; the run stays pending */
    assert_err(hd_run_mark_running(w->store, &run, &w->fault), 0);
    assert_int_equal(run.status, HD_RUN_STATE_RUNNING);
    assert_int_equal(run.rev, 3);
    assert_err(hd_run_read(w->store, ADA, JOB, HD_S("r"), &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.status, HD_RUN_STATE_RUNNING);
    assert_int_equal(back.rev, 3);
    /* The response to the commit may have been lost: marking the run again changes nothing. */
    assert_err(hd_run_mark_running(w->store, &other, &w->fault), 0);
    assert_int_equal(other.rev, 3);
    run.status = HD_RUN_STATE_ERROR;
    APPLY(w, hd_run_put(&batch, &run));
    APPLY(w, hd_run_delete(&batch, &run));
    assert_err(hd_run_mark_running(w->store, &other, &w->fault), HD_ENOTFOUND);
}

static int recover(struct world *w, hd_run_recovered_fn fn, void *arg)
{
    struct hd_app app = {.store = w->store};

    return hd_run_recover(&app, fn, arg, &w->fault);
}

struct recovered {
    char text[256];
};

static int on_recovered(void *arg, const struct hd_run_rec *run, int64_t event_seq,
                        bool is_continued)
{
    struct recovered *recovered = arg;
    size_t len = strlen(recovered->text);

    assert_false(is_continued); /* there is no checkpoint */
    snprintf(recovered->text + len, sizeof(recovered->text) - len, "%.*s#%d@%lld ",
             (int)run->run_id.len, run->run_id.ptr, run->attempt, (long long)event_seq);
    return 0;
}

static void add_thread(struct world *w, const char *id, int64_t event_seq)
{
    struct hd_thread_rec thread;

    hd_thread_init(&thread, ADA, hd_slice_cstr(id));
    thread.status = HD_THREAD_BUSY;
    thread.event_seq = event_seq;
    APPLY(w, hd_thread_add(&batch, &thread));
}

static void assert_thread_status(struct world *w, const char *id, enum hd_thread_status status)
{
    struct hd_thread_rec thread;

    assert_err(hd_thread_read(w->store, ADA, hd_slice_cstr(id), &w->arena, &thread, &w->fault), 0);
    assert_int_equal(thread.status, status);
}

static void runs_are_recovered_a_few_times(void **state)
{
    struct world *w = *state;
    struct hd_run_rec run;

    add_thread(w, "t1", 7);
    add_thread(w, "t2", 9);
    add_run(w, "t1", "r1", HD_RUN_STATE_RUNNING);
    add_run(w, "t1", "r2", HD_RUN_STATE_PENDING);
    add_run(w, "t2", "r3", HD_RUN_STATE_RUNNING);
    add_run(w, "t2", "r4", HD_RUN_STATE_SUCCESS);
    add_run(w, "gone", "r5", HD_RUN_STATE_RUNNING);
    for (int attempt = 2; attempt <= 3; attempt++) {
        struct recovered recovered = {""};
        /* The numbers of events before each crash are unknown: all runs continue behind them. */
        const char *expected = attempt == 2 ? "r1#2@2000000 r3#2@2000000 r2#1@2000000 "
                                            : "r1#3@5000000 r3#3@5000000 r2#1@5000000 ";

        assert_err(recover(w, on_recovered, &recovered), 0);
        assert_string_equal(recovered.text, expected);
    }
    {
        struct recovered recovered = {""};

        assert_err(recover(w, on_recovered, &recovered), 0);
        /* r1 is given up. */
        assert_string_equal(recovered.text, "r2#1@9000000 ");
    }
    assert_err(hd_run_read(w->store, ADA, HD_S("t1"), HD_S("r1"), &w->arena, &run, &w->fault), 0);
    assert_int_equal(run.status, HD_RUN_STATE_ERROR);
    assert_int_equal(run.due_at, 0);
    assert_thread_status(w, "t1", HD_THREAD_BUSY); /* r2 continues */
    assert_thread_status(w, "t2", HD_THREAD_ERROR);
    assert_err(hd_run_find(w->store, ADA, HD_S("r5"), &w->arena, &run, &w->fault), HD_ENOTFOUND);
}

/* The run makes no progress between losses; suspensions are not losses, crashes are. */
static void an_orderly_stop_is_no_loss(void **state)
{
    struct world *w = *state;
    struct recovered recovered = {""};
    struct hd_run_rec run;

    add_thread(w, "t1", 0);
    add_run(w, "t1", "r1", HD_RUN_STATE_RUNNING);
    for (int i = 0; i < 4; i++) {
        assert_err(hd_run_find(w->store, ADA, HD_S("r1"), &w->arena, &run, &w->fault), 0);
        assert_int_equal(run.losses.count, i < 3 ? 0 : 1);
        assert_int_equal(run.attempt, i + 1);
        if (i < 2)
            assert_err(hd_run_mark_suspended(w->store, &run, &w->fault), 0);
        assert_err(recover(w, on_recovered, &recovered), 0);
    }
    assert_string_equal(recovered.text, "r1#2@2000000 r1#3@5000000 r1#4@9000000 r1#5@14000000 ");
    assert_err(recover(w, on_recovered, &recovered), 0);
    assert_err(hd_run_find(w->store, ADA, HD_S("r1"), &w->arena, &run, &w->fault), 0);
    assert_int_equal(run.status, HD_RUN_STATE_ERROR);
}

/* As when a run ends: no other code deletes the thread of a stateless run. */
static void a_temporary_thread_goes_with_a_run_that_is_given_up(void **state)
{
    struct world *w = *state;
    struct hd_run_rec run = make_run("brief", "r1", HD_RUN_STATE_RUNNING);
    struct recovered recovered = {""};
    struct hd_thread_rec thread;

    add_thread(w, "brief", 7);
    run.losses.count = 2;
    run.kwargs = HD_S("{\"temporary\":true}");
    APPLY(w, hd_run_add(&batch, &run));
    assert_err(recover(w, on_recovered, &recovered), 0);
    assert_string_equal(recovered.text, "");
    assert_err(hd_thread_read(w->store, ADA, HD_S("brief"), &w->arena, &thread, &w->fault),
               HD_ENOTFOUND);
    assert_err(hd_run_find(w->store, ADA, HD_S("r1"), &w->arena, &run, &w->fault), HD_ENOTFOUND);
}

static int on_asked(void *arg, const struct hd_run_rec *run, int64_t event_seq, bool is_continued)
{
    (void)event_seq;
    (void)is_continued;
    return see(arg, run->actor);
}

/* A participant of the thread requested the run: it is in the owner's compartment regardless. */
static void a_run_keeps_its_actor(void **state)
{
    struct world *w = *state;
    struct hd_run_rec hers = make_run("t", "r1", HD_RUN_STATE_PENDING), back;
    struct hd_run_rec his = make_run("t", "r2", HD_RUN_STATE_PENDING);
    struct seen seen = {.stop = 0};

    add_thread(w, "t", 1);
    hers.actor = ADA;
    his.actor = HD_S("bob");
    APPLY(w, hd_run_add(&batch, &hers));
    APPLY(w, hd_run_add(&batch, &his));
    assert_err(hd_run_mark_running(w->store, &his, &w->fault), 0);
    assert_err(hd_run_read(w->store, ADA, HD_S("t"), HD_S("r1"), &w->arena, &back, &w->fault), 0);
    assert_slice(back.actor, ADA);
    assert_err(hd_run_read(w->store, ADA, HD_S("t"), HD_S("r2"), &w->arena, &back, &w->fault), 0);
    assert_slice(back.actor, HD_S("bob"));
    assert_slice(back.principal, ADA);
    assert_err(hd_run_find(w->store, HD_S("bob"), HD_S("r2"), &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
    assert_err(recover(w, on_asked, &seen), 0);
    assert_string_equal(seen.text, "bob ada ");
}

/* ---- assistants ------------------------------------------------------- */

static int on_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    return see(arg, assistant->name);
}

static void assistants_have_versions(void **state)
{
    struct world *w = *state;
    struct hd_assistant_rec a = {.principal = ADA,
                                 .id = JOB,
                                 .version = 1,
                                 .created_at = 10,
                                 .updated_at = 11,
                                 .graph_id = HD_S("graph"),
                                 .name = HD_S("first \"one\""),
                                 .description = HD_S("\"what it does\""),
                                 .config = HD_S("{\"c\":1}"),
                                 .context = HD_S("{\"x\":1}"),
                                 .metadata = HD_S("{\"m\":1}")};
    struct hd_assistant_rec back;
    struct seen seen = {.stop = 0};
    int64_t last;

    assert_err(hd_assistant_last_version(w->store, ADA, JOB, &last, &w->fault), 0);
    assert_int_equal(last, 0);
    APPLY(w, hd_assistant_add(&batch, &a));
    REFUSED(w, hd_assistant_add(&batch, &a));
    assert_err(hd_assistant_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), 0);
    assert_slice(back.principal, ADA);
    assert_slice(back.id, JOB);
    assert_int_equal(back.version, 1);
    assert_int_equal(back.created_at, 10);
    assert_int_equal(back.updated_at, 11);
    assert_slice(back.graph_id, a.graph_id);
    assert_slice(back.name, a.name);
    assert_slice(back.description, a.description);
    assert_slice(back.config, a.config);
    assert_slice(back.context, a.context);
    assert_slice(back.metadata, a.metadata);
    a.version = 2;
    a.updated_at = 20;
    a.name = HD_S("second");
    APPLY(w, hd_assistant_put(&batch, &a, 1, true));
    REFUSED(w, hd_assistant_put(&batch, &a, 1, true)); /* its version is 2 now */
    REFUSED(w, hd_assistant_put(&batch, &a, 2, true)); /* version 2 exists already */
    assert_err(hd_assistant_last_version(w->store, ADA, JOB, &last, &w->fault), 0);
    assert_int_equal(last, 2);
    assert_err(hd_assistant_read_version(w->store, ADA, JOB, 1, &w->arena, &back, &w->fault), 0);
    assert_slice(back.name, HD_S("first \"one\""));
    assert_slice(back.metadata, a.metadata);
    assert_int_equal(back.version, 1);
    assert_int_equal(back.created_at, 11); /* of the version */
    assert_int_equal(back.updated_at, 11);
    back.updated_at = 30;
    APPLY(w, hd_assistant_put(&batch, &back, 2, false));
    assert_err(hd_assistant_versions_scan(w->store, ADA, JOB, on_assistant, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "second first \"one\" ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_assistants_scan(w->store, ADA, on_assistant, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "first \"one\" ");
    APPLY(w, hd_assistant_delete(&batch, ADA, JOB));
    assert_err(hd_assistant_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), HD_ENOTFOUND);
    assert_err(hd_assistant_read_version(w->store, ADA, JOB, 2, &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
}

/* ---- items ------------------------------------------------------------ */

static void put_item(struct world *w, const char *ns, const char *key, int64_t expires_at)
{
    struct hd_item_rec item = {.principal = ADA,
                               .ns = hd_slice_cstr(ns),
                               .key = hd_slice_cstr(key),
                               .created_at = 1,
                               .updated_at = 2,
                               .expires_at = expires_at,
                               .ttl_us = expires_at ? 60 : 0,
                               .value = HD_S("{\"v\":1}")};

    APPLY(w, hd_item_put(&batch, &item));
}

static int on_item(void *arg, const struct hd_item_rec *item)
{
    return see(arg, item->key);
}

static int on_ns(void *arg, struct hd_slice ns)
{
    return see(arg, ns);
}

static void items_are_found_below_their_namespace(void **state)
{
    struct world *w = *state;
    struct hd_item_rec item;
    struct seen seen = {.stop = 0};
    char *wide = calloc(1, 2000);

    put_item(w, "a", "1", 0);
    put_item(w, "a-b", "2", 0);
    put_item(w, "a.b", "3", 0);
    put_item(w, "a.b.c", "4", 0);
    put_item(w, "ab", "5", 0);
    put_item(w, "a.b", "6", 0);
    assert_err(hd_items_scan(w->store, ADA, HD_S("a"), true, on_item, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "1 3 6 4 ");
    seen = (struct seen){.stop = 1};
    assert_err(hd_items_scan(w->store, ADA, HD_S("a"), true, on_item, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "1 ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_items_scan(w->store, ADA, HD_S("a.b"), true, on_item, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "3 6 4 ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_items_scan(w->store, ADA, HD_S(""), true, on_item, &seen, &w->fault), 0);
    assert_int_equal(seen.count, 6);
    seen = (struct seen){.stop = 0};
    assert_err(hd_namespaces_scan(w->store, ADA, HD_S(""), on_ns, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "a a-b a.b a.b.c ab ");
    seen = (struct seen){.stop = 3};
    assert_err(hd_namespaces_scan(w->store, ADA, HD_S(""), on_ns, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "a a-b a.b ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_namespaces_scan(w->store, ADA, HD_S("a.b"), on_ns, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "a.b a.b.c ab ");
    assert_err(hd_item_read(w->store, ADA, HD_S("a.b"), HD_S("6"), &w->arena, &item, &w->fault), 0);
    assert_slice(item.value, HD_S("{\"v\":1}"));
    assert_int_equal(item.created_at, 1);
    APPLY(w, hd_item_delete(&batch, ADA, HD_S("a.b"), HD_S("6")));
    assert_err(hd_item_read(w->store, ADA, HD_S("a.b"), HD_S("6"), &w->arena, &item, &w->fault),
               HD_ENOTFOUND);
    assert_non_null(wide);
    assert_err(hd_item_check(HD_S("a"), HD_S("b"), &w->fault), 0);
    assert_err(hd_item_check(hd_slice(wide, 2000), HD_S("b"), &w->fault), HD_ELIMIT);
    assert_err(hd_items_scan(w->store, ADA, hd_slice(wide, 2000), true, on_item, &seen, NULL), 0);
    free(wide);
}

struct expected_vectors {
    struct hd_vectors_rec rec;
    int count;
};

static int on_vectors(void *arg, const struct hd_vectors_rec *vectors)
{
    struct expected_vectors *of = arg;
    const struct hd_vectors_rec *expected = &of->rec;

    of->count++;
    assert_slice(vectors->principal, expected->principal);
    assert_slice(vectors->ns, expected->ns);
    assert_slice(vectors->key, expected->key);
    assert_int_equal(vectors->updated_at, expected->updated_at);
    assert_int_equal(vectors->dims, expected->dims);
    assert_slice(vectors->data, expected->data);
    return 0;
}

static void items_and_vectors_come_back_as_they_were(void **state)
{
    struct world *w = *state;
    int64_t later = hd_clock_now_us() + 3600000000;
    const struct hd_item_rec item = {.principal = ADA,
                                     .ns = HD_S("n"),
                                     .key = HD_S("k"),
                                     .created_at = 1,
                                     .updated_at = 2,
                                     .expires_at = later,
                                     .ttl_us = 4,
                                     .value = HD_S("{\"v\": 1.0}")};
    struct expected_vectors vectors = {.rec = {.principal = ADA,
                                               .ns = HD_S("n"),
                                               .key = HD_S("k"),
                                               .updated_at = 2,
                                               .dims = 1,
                                               .data = HD_S("\0\0\x80\x3f")}};
    struct hd_item_rec back;

    APPLY(w, hd_item_put(&batch, &item));
    APPLY(w, hd_vectors_put(&batch, &vectors.rec));
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("k"), &w->arena, &back, &w->fault), 0);
    assert_slice(back.principal, ADA);
    assert_slice(back.ns, item.ns);
    assert_slice(back.key, item.key);
    assert_int_equal(back.created_at, 1);
    assert_int_equal(back.updated_at, 2);
    assert_int_equal(back.expires_at, later);
    assert_int_equal(back.ttl_us, 4);
    assert_slice(back.value, item.value);
    assert_err(hd_vectors_scan(w->store, ADA, HD_S("n"), on_vectors, &vectors, &w->fault), 0);
    assert_int_equal(vectors.count, 1);
}

static void items_end_with_their_time(void **state)
{
    struct world *w = *state;
    int64_t now = hd_clock_now_us();
    struct seen seen = {.stop = 0};
    struct hd_item_rec item;

    put_item(w, "n", "old", 1000);
    put_item(w, "n", "older", 500);
    put_item(w, "n", "new", now + 3600000000);
    put_item(w, "n", "stays", 0);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("old"), &w->arena, &item, &w->fault),
               HD_ENOTFOUND);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("new"), &w->arena, &item, &w->fault), 0);
    assert_int_equal(item.ttl_us, 60);
    assert_err(hd_items_scan(w->store, ADA, HD_S("n"), true, on_item, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "new stays ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_items_expired(w->store, now, on_item, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "older old ");
}

static void only_unchanged_items_are_refreshed_or_expired(void **state)
{
    struct world *w = *state;
    int64_t later = hd_clock_now_us() + 3600000000;
    struct hd_item_rec a, b, gone = {.principal = ADA, .ns = HD_S("n"), .key = HD_S("gone")};
    struct hd_batch_builder batch;

    put_item(w, "n", "a", later);
    put_item(w, "n", "b", later);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("a"), &w->arena, &a, &w->fault), 0);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("b"), &w->arena, &b, &w->fault), 0);
    b.updated_at--;
    hd_batch_init(&batch);
    assert_err(hd_item_refresh(&batch, &gone, later + 5), 0);
    assert_err(hd_item_refresh(&batch, &a, later + 5), 0);
    assert_err(hd_item_refresh(&batch, &b, later + 5), 0);
    assert_err(hd_items_apply(w->store, HD_S("n"), &batch, &w->fault), 0);
    hd_batch_reset(&batch);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("a"), &w->arena, &a, &w->fault), 0);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("b"), &w->arena, &b, &w->fault), 0);
    assert_int_equal(a.expires_at, later + 5);
    assert_slice(a.value, HD_S("{\"v\":1}"));
    assert_int_equal(b.expires_at, later);

    a.expires_at = later; /* the value read before it was refreshed */
    assert_err(hd_item_expire(&batch, &a), 0);
    assert_err(hd_item_expire(&batch, &b), 0);
    assert_err(hd_item_expire(&batch, &gone), 0);
    assert_err(hd_items_apply(w->store, HD_S("n"), &batch, &w->fault), 0);
    hd_batch_fini(&batch);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("a"), &w->arena, &a, &w->fault), 0);
    assert_err(hd_item_read(w->store, ADA, HD_S("n"), HD_S("b"), &w->arena, &b, &w->fault),
               HD_ENOTFOUND);
}

/* ---- crons ------------------------------------------------------------ */

static int on_cron(void *arg, const struct hd_cron_rec *cron)
{
    return see(arg, cron->id);
}

static void crons_come_back_and_become_due(void **state)
{
    struct world *w = *state;
    struct hd_cron_rec cron = {.principal = ADA,
                               .id = HD_S("c1"),
                               .next_at = 50,
                               .created_at = 1,
                               .updated_at = 2,
                               .end_at = 3,
                               .is_enabled = true,
                               .keeps_threads = true,
                               .schedule = HD_S("*/5 * * * *"),
                               .timezone = HD_S("Europe/Berlin"),
                               .assistant_id = HD_S("a"),
                               .thread_id = HD_S("t"),
                               .metadata = HD_S("{}"),
                               .payload = HD_S("{\"input\":null}")};
    struct hd_cron_rec other = {.principal = HD_S("bob"), .id = HD_S("c2"), .next_at = 40}, back;
    struct seen seen = {.stop = 0};

    APPLY(w, hd_cron_add(&batch, &cron));
    APPLY(w, hd_cron_add(&batch, &other));
    assert_err(hd_cron_read(w->store, ADA, HD_S("c1"), &w->arena, &back, &w->fault), 0);
    assert_slice(back.principal, ADA);
    assert_slice(back.id, HD_S("c1"));
    assert_int_equal(back.rev, 1);
    assert_int_equal(back.next_at, 50);
    assert_int_equal(back.created_at, 1);
    assert_int_equal(back.updated_at, 2);
    assert_int_equal(back.end_at, 3);
    assert_true(back.is_enabled && back.keeps_threads);
    assert_slice(back.schedule, cron.schedule);
    assert_slice(back.timezone, cron.timezone);
    assert_slice(back.assistant_id, cron.assistant_id);
    assert_slice(back.thread_id, cron.thread_id);
    assert_slice(back.metadata, cron.metadata);
    assert_slice(back.payload, cron.payload);
    assert_err(hd_crons_due(w->store, 50, on_cron, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "c2 ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_crons_due(w->store, 51, on_cron, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "c2 c1 ");
    cron.next_at = 0;
    cron.is_enabled = false;
    APPLY(w, hd_cron_put(&batch, &cron));
    REFUSED(w, hd_cron_put(&batch, &back));
    assert_err(hd_cron_read(w->store, ADA, HD_S("c1"), &w->arena, &back, &w->fault), 0);
    assert_false(back.is_enabled);
    assert_int_equal(back.next_at, 0);
    seen = (struct seen){.stop = 0};
    assert_err(hd_crons_due(w->store, INT64_MAX, on_cron, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "c2 ");
    seen = (struct seen){.stop = 0};
    assert_err(hd_crons_scan(w->store, ADA, on_cron, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "c1 ");
    APPLY(w, hd_cron_delete(&batch, ADA, HD_S("c1")));
    assert_err(hd_cron_read(w->store, ADA, HD_S("c1"), &w->arena, &back, &w->fault), HD_ENOTFOUND);
}

/* ---- memory ----------------------------------------------------------- */

static int write_and_read(void *arg)
{
    struct world *w = arg;
    struct hd_run_rec run = make_run("job", "m", HD_RUN_STATE_PENDING), *runs;
    struct hd_batch_builder builder;
    struct hd_batch batch;
    struct hd_arena arena;
    size_t count;
    int err;

    hd_arena_init(&arena, MAX_ARENA);
    hd_batch_init(&builder);
    err = hd_run_delete(&builder, &run);
    if (!err)
        err = hd_run_add(&builder, &run);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL);
    hd_batch_fini(&builder);
    if (!err)
        err = hd_runs_active(w->store, ADA, JOB, &arena, &runs, &count, NULL);
    if (!err)
        assert_int_equal(count, 1);
    hd_arena_fini(&arena);
    return err;
}

/* A write that fails without memory may be retried inside, and succeed. */
static void a_failed_allocation_is_an_error_at_most(void **state)
{
    long asked = 1;

    for (long n = 1; asked >= n; n++) {
        int err;

        (void)hd_alloc_fail_at(n, n & 1);
        err = write_and_read(*state);
        asked = hd_alloc_fail_at(0, 0);
        assert_true(err == HD_ENOMEM || err == 0);
    }
    assert_err(write_and_read(*state), 0);
}

int main(void)
{
#define BOTH(function)                                                 \
    cmocka_unit_test_setup_teardown(function, setup_memory, teardown), \
    {                                                                  \
        "sqlite " #function, function, setup_sqlite, teardown, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_thread_comes_back_as_it_was),
        BOTH(a_bare_thread_comes_back_bare),
        BOTH(a_stale_revision_is_rejected),
        BOTH(threads_are_listed_by_age_and_by_expiry),
        BOTH(lanes_are_those_of_the_checkpoints),
        BOTH(a_damaged_row_is_named),
        BOTH(members_of_a_newer_version_are_kept),
        BOTH(a_run_comes_back_as_it_was),
        BOTH(a_run_keeps_its_actor),
        BOTH(runs_of_a_thread_are_listed),
        BOTH(a_pending_run_is_begun_once),
        BOTH(runs_are_recovered_a_few_times),
        BOTH(an_orderly_stop_is_no_loss),
        BOTH(a_temporary_thread_goes_with_a_run_that_is_given_up),
        BOTH(assistants_have_versions),
        BOTH(items_are_found_below_their_namespace),
        BOTH(items_and_vectors_come_back_as_they_were),
        BOTH(items_end_with_their_time),
        BOTH(only_unchanged_items_are_refreshed_or_expired),
        BOTH(crons_come_back_and_become_due),
        cmocka_unit_test_setup_teardown(a_failed_allocation_is_an_error_at_most, setup_memory,
                                        teardown),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
