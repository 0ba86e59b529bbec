/* The commit at the end of a run, whose thread may be deleted or taken over meanwhile. */
#include "run/run_commit.h"

#include "graph/engine/origin.h"
#include "records/hold.h"
#include "tests/unit/app_world.h"

static struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

/* Another process that deletes the thread does not wait for the thread's runs here. */
static void a_thread_that_is_gone_gets_nothing_back(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    const struct heddle_thread thread = {.id = bytes("t")};
    const struct heddle_write asked = {
        .task_id = bytes("task"),
        .idx = -3,
        .value = {bytes("__interrupt__"), bytes("hd1"), bytes("\"yes?\"")}};
    const struct heddle_tuple tuple = {.id = bytes("1"), .writes = &asked, .write_count = 1};
    const struct heddle_key key = {.thread = thread, .id = bytes("1")};
    const struct hd_run_rec run = {
        .thread_id = HD_S("t"), .run_id = HD_S("r"), .guard = {.created_at = 1}};
    struct hd_run_commit outcome = {.run = &run, .has_begun = true, .is_rolled_back = true};
    struct hd_origin *origin = NULL;
    struct heddle_tuple *found;

    (void)state;
    assert_err(hd_origin_add(&origin, &tuple, hd_slice("", 0)), 0);
    origin->is_touched = true;
    outcome.origins = origin;
    assert_err(hd_run_commit_store(&w->app, &outcome, &w->fault), 0);
    assert_err(heddle_get(w->app.store, &key, &found, NULL), HEDDLE_ENOTFOUND);
    hd_origins_free(origin);
    world_close(w);
}

/* ---- holds ---- */

static int apply(struct app_world *w, struct hd_batch_builder *builder)
{
    struct hd_batch view = hd_batch_view(builder);
    int err = hd_rows_apply(w->app.store, HD_S(":t"), &view, NULL, &w->fault);

    hd_batch_fini(builder);
    return err;
}

static struct hd_run_rec make_run(const char *id)
{
    return (struct hd_run_rec){.thread_id = HD_S("t"),
                               .run_id = hd_slice_cstr(id),
                               .status = HD_RUN_STATE_RUNNING,
                               .attempt = 1,
                               .guard = {.created_at = 5, .token = 7}};
}

/* A busy thread with two runs, held by this server with token 7. */
static void make_held_thread(struct app_world *w)
{
    const struct hd_hold hold = {.token = 7, .server = HD_S("this"), .last = HD_S("this")};
    struct hd_run_rec one = make_run("1"), two = make_run("2");
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;

    hd_thread_init(&thread, HD_S(""), HD_S("t"));
    thread.status = HD_THREAD_BUSY;
    thread.created_at = 5;
    hd_batch_init(&batch);
    assert_err(hd_thread_add(&batch, &thread), 0);
    assert_err(hd_run_add(&batch, &one), 0);
    assert_err(hd_run_add(&batch, &two), 0);
    assert_err(hd_hold_put(&batch, HD_S(""), HD_S("t"), &hold), 0);
    assert_err(apply(w, &batch), 0);
}

static void write_hold(struct app_world *w, int64_t token, struct hd_slice last)
{
    const struct hd_hold hold = {.token = token, .server = last, .last = last};
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    assert_err(hd_hold_put(&batch, HD_S(""), HD_S("t"), &hold), 0);
    assert_err(apply(w, &batch), 0);
}

static int end_run(struct app_world *w, const char *id)
{
    const struct hd_run_rec run = make_run(id);
    const struct hd_run_commit outcome = {
        .run = &run, .has_begun = true, .status = HD_RUN_STATE_SUCCESS};

    return hd_run_commit_store(&w->app, &outcome, &w->fault);
}

static struct hd_held_thread read_held(struct app_world *w)
{
    struct hd_held_thread held;

    assert_err(hd_hold_read_thread(w->app.store, HD_S(""), HD_S("t"), &w->arena, &held, &w->fault),
               0);
    return held;
}

static void the_last_end_releases_the_thread(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    struct hd_held_thread held = read_held(w);

    (void)state;
    assert_false(held.has_thread);
    assert_int_equal(held.hold.token, 0);
    make_held_thread(w);
    assert_err(end_run(w, "1"), 0);
    held = read_held(w);
    assert_true(held.has_thread);
    assert_int_equal(held.thread.status, HD_THREAD_BUSY);
    assert_int_equal(held.hold.token, 7);
    assert_err(end_run(w, "2"), 0);
    held = read_held(w);
    assert_int_equal(held.thread.status, HD_THREAD_IDLE);
    assert_int_equal(held.hold.token, 0);
    assert_int_equal(held.hold.server.len, 0);
    assert_slice(held.hold.last, HD_S("this"));
    world_close(w);
}

static void the_end_of_a_run_that_was_taken_over_is_not_stored(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    struct hd_held_thread held;
    int64_t rev;

    (void)state;
    make_held_thread(w);
    rev = read_held(w).thread.rev;
    write_hold(w, 8, HD_S("other"));
    assert_err(end_run(w, "1"), HD_ETAKEN);
    write_hold(w, 0, HD_S("other"));
    assert_err(end_run(w, "1"), HD_ETAKEN);
    held = read_held(w);
    assert_int_equal(held.thread.rev, rev);
    assert_slice(held.hold.last, HD_S("other"));
    /* Released by this server, which has no id here: an earlier commit, whose reply was lost. */
    write_hold(w, 0, HD_S(""));
    assert_err(end_run(w, "1"), 0);
    assert_int_equal(read_held(w).thread.rev, rev);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_end_releases_the_thread),
        cmocka_unit_test(the_end_of_a_run_that_was_taken_over_is_not_stored),
        cmocka_unit_test(a_thread_that_is_gone_gets_nothing_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
