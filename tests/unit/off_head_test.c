/* Runs off the head: they make a branch, and no head moves. */
#include "run/off_head.h"

#include <string.h>

#include "base/json.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "run/admit.h"
#include "run/run_commit.h"
#include "tests/unit/app_world.h"
#include "value/val.h"

#define REQUEST "{\"assistant_id\":\"line\",\"input\":{}}"

struct fixture {
    struct app_world *w;
    struct hd_slice thread;
    struct hd_slice ns;
    struct hd_slice ends[2]; /* of the two runs on the head */
};

static struct hd_thread_rec read_thread(struct fixture *f)
{
    struct hd_thread_rec thread;

    assert_err(
        hd_thread_read(f->w->app.store, NOBODY, f->thread, &f->w->arena, &thread, &f->w->fault), 0);
    return thread;
}

static struct hd_run_rec read_run(struct fixture *f, struct hd_slice id)
{
    struct hd_run_rec run;

    assert_err(
        hd_run_read(f->w->app.store, NOBODY, f->thread, id, &f->w->arena, &run, &f->w->fault), 0);
    return run;
}

/* An empty `fork`: a run on the head. */
static struct hd_admission admit_at(struct fixture *f, struct hd_slice fork, const char *body)
{
    struct app_world *w = f->w;
    struct hd_run_request request;
    struct hd_json json = {NULL};
    struct hd_admission a = {.app = &w->app,
                             .arena = &w->arena,
                             .request = &request,
                             .thread_id = f->thread,
                             .is_off_head = fork.len > 0};

    assert_err(hd_json_parse(&json, hd_slice_cstr(body), &w->fault), 0);
    assert_err(hd_run_request_read(&request, hd_json_root(&json), &w->fault), 0);
    request.keeps_thread = true;
    request.checkpoint_id = fork;
    assert_err(hd_admit(&a, &w->fault), 0);
    assert_int_equal(a.refusal, 0);
    hd_json_fini(&json);
    return a;
}

static void queue_run(struct fixture *f, const struct hd_admission *a)
{
    assert_err(hd_queue_add(f->w->app.queue, &a->run, a->event_seq, false), 0);
}

static void wait_until_ended(struct fixture *f, uint64_t wanted)
{
    int64_t deadline = hd_clock_monotonic_us() + 120 * INT64_C(1000000);

    while (hd_queue_counts(f->w->app.queue).ended < wanted && hd_clock_monotonic_us() < deadline)
        uv_run(&f->w->loop, UV_RUN_ONCE);
    assert_int_equal(hd_queue_counts(f->w->app.queue).ended, wanted);
}

/* Executes a run alone; returns the checkpoint at its end. */
static struct hd_slice run_at(struct fixture *f, struct hd_slice fork)
{
    uint64_t ended = hd_queue_counts(f->w->app.queue).ended;
    struct hd_admission a = admit_at(f, fork, REQUEST);

    f->thread = a.run.thread_id;
    f->ns = a.run.ns;
    queue_run(f, &a);
    wait_until_ended(f, ended + 1);
    return read_run(f, a.run.run_id).checkpoint_id;
}

/* The number of runs that led to the checkpoint; empty: the head. */
static size_t count_log(struct fixture *f, struct hd_slice checkpoint)
{
    struct hd_thread_rec thread = read_thread(f);
    struct hd_address at = {.store = f->w->app.store,
                            .graph = hd_app_shape(&f->w->graph),
                            .thread = f->thread,
                            .root = f->ns,
                            .checkpoint_id = checkpoint};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    size_t count;

    if (checkpoint.len == 0)
        assert_err(hd_thread_heads_get(f->w->app.store, &thread, f->ns, &f->w->arena,
                                       &at.checkpoint_id, &f->w->fault),
                   0);
    assert_err(hd_state_get(&at, false, &state, &failure), 0);
    count = hd_val_count(hd_val_get(hd_val_get(state, HD_S("values")), HD_S("log")));
    hd_val_unref(state);
    hd_failure_fini(&failure);
    return count;
}

static struct hd_line_rec read_line(struct fixture *f)
{
    struct hd_thread_rec thread = read_thread(f);
    struct hd_line_rec *line;
    struct hd_lines lines;

    assert_err(hd_lines_read(f->w->app.store, &thread, &f->w->arena, &lines, &f->w->fault), 0);
    line = hd_lines_find(&lines, f->ns);
    assert_non_null(line);
    return *line;
}

/* A thread with two runs. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->w = world_open("memory:", NULL);
    f->ends[0] = run_at(f, hd_slice(NULL, 0));
    f->ends[1] = run_at(f, hd_slice(NULL, 0));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    world_close(f->w);
    free(f);
    return 0;
}

static void no_head_moves(void **state)
{
    struct fixture *f = *state;
    struct hd_thread_rec before = read_thread(f), after;
    struct hd_line_rec line = read_line(f), line_after;
    struct hd_slice end;

    assert_int_equal(count_log(f, HD_S("")), 2);
    end = run_at(f, f->ends[0]);
    after = read_thread(f);
    line_after = read_line(f);
    assert_false(hd_slice_eq(end, f->ends[1]));
    assert_int_equal(count_log(f, end), 2);
    assert_int_equal(after.status, HD_THREAD_IDLE);
    assert_false(after.has_before);
    assert_slice(after.head.ns, before.head.ns);
    assert_slice(after.head.checkpoint_id, before.head.checkpoint_id);
    assert_int_equal(after.state_updated_at, before.state_updated_at);
    assert_slice(after.config, before.config);
    assert_slice(line_after.checkpoint_id, line.checkpoint_id);
    assert_slice(line_after.run_id, line.run_id);
    assert_int_equal(line_after.updated_at, line.updated_at);
    assert_int_equal(count_log(f, HD_S("")), 2);
    /* A branch of the branch is not the head either, and the line goes on at its head. */
    end = run_at(f, end);
    assert_int_equal(count_log(f, end), 3);
    assert_int_equal(count_log(f, HD_S("")), 2);
    end = run_at(f, hd_slice(NULL, 0));
    assert_int_equal(count_log(f, end), 3);
    assert_int_equal(count_log(f, HD_S("")), 3);
}

static void it_waits_for_no_run_and_delays_none(void **state)
{
    struct fixture *f = *state;
    struct hd_admission first = admit_at(f, hd_slice(NULL, 0), REQUEST);
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);
    struct hd_admission second;

    assert_int_equal(first.run.status, HD_RUN_STATE_RUNNING);
    assert_true(branch.run.is_off_head);
    queue_run(f, &branch); /* the other run is not in the queue yet */
    wait_until_ended(f, 3);
    assert_int_equal(read_thread(f).status, HD_THREAD_BUSY);
    queue_run(f, &first);
    wait_until_ended(f, 4);
    assert_int_equal(count_log(f, HD_S("")), 3);
    branch = admit_at(f, f->ends[0], REQUEST);
    second = admit_at(f, hd_slice(NULL, 0),
                      "{\"assistant_id\":\"line\",\"input\":{},\"multitask_strategy\":\"reject\"}");
    assert_int_equal(second.run.status, HD_RUN_STATE_RUNNING);
    queue_run(f, &second);
    wait_until_ended(f, 5);
    assert_int_equal(count_log(f, HD_S("")), 4);
    queue_run(f, &branch);
    wait_until_ended(f, 6);
    assert_int_equal(read_thread(f).status, HD_THREAD_IDLE);
    assert_int_equal(count_log(f, HD_S("")), 4);
}

static void a_run_with_the_strategy_interrupt_leaves_it_alone(void **state)
{
    struct fixture *f = *state;
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);
    struct hd_admission other =
        admit_at(f, hd_slice(NULL, 0),
                 "{\"assistant_id\":\"line\",\"input\":{},\"multitask_strategy\":\"interrupt\"}");

    assert_int_equal(other.cancelled_count, 0);
    queue_run(f, &other);
    queue_run(f, &branch);
    wait_until_ended(f, 4);
    assert_int_equal(read_run(f, branch.run.run_id).status, HD_RUN_STATE_SUCCESS);
}

static void a_cancelled_one_leaves_the_head(void **state)
{
    struct fixture *f = *state;
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);
    struct hd_thread_rec thread;

    queue_run(f, &branch);
    assert_true(hd_queue_cancel(f->w->app.queue, NOBODY, f->thread, branch.run.run_id,
                                HD_CANCEL_INTERRUPT));
    wait_until_ended(f, 3);
    thread = read_thread(f);
    assert_int_equal(thread.status, HD_THREAD_IDLE);
    assert_slice(thread.head.checkpoint_id, f->ends[1]);
    assert_int_equal(count_log(f, HD_S("")), 2);
    branch = admit_at(f, f->ends[0], REQUEST);
    queue_run(f, &branch);
    assert_true(
        hd_queue_cancel(f->w->app.queue, NOBODY, f->thread, branch.run.run_id, HD_CANCEL_ROLLBACK));
    wait_until_ended(f, 4);
    assert_slice(read_thread(f).head.checkpoint_id, f->ends[1]);
    assert_int_equal(count_log(f, HD_S("")), 2);
}

/* A run on the head ends without a result while one off the head is in flight. */
static void the_head_returns_to_the_end_of_the_last_run_on_it(void **state)
{
    struct fixture *f = *state;
    struct hd_admission run = admit_at(f, hd_slice(NULL, 0), REQUEST);
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);

    queue_run(f, &run);
    assert_true(
        hd_queue_cancel(f->w->app.queue, NOBODY, f->thread, run.run.run_id, HD_CANCEL_INTERRUPT));
    wait_until_ended(f, 3);
    assert_slice(read_thread(f).head.checkpoint_id, f->ends[1]);
    queue_run(f, &branch);
    wait_until_ended(f, 4);
    assert_slice(read_thread(f).head.checkpoint_id, f->ends[1]);
    assert_int_equal(read_thread(f).status, HD_THREAD_IDLE);
    assert_int_equal(count_log(f, HD_S("")), 2);
}

static void one_that_is_lost_in_the_same_step_fails_alone(void **state)
{
    struct fixture *f = *state;
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);
    struct hd_line_rec line = read_line(f);
    struct hd_thread_rec thread;

    branch.run.status = HD_RUN_STATE_RUNNING;
    for (int i = 1; i < HD_MAX_LOSSES; i++)
        assert_err(hd_run_losses_add(&branch.run.losses, f->w->app.store, NOBODY, f->thread,
                                     branch.run.run_id, &f->w->fault),
                   0);
    APPLY(f->w, hd_run_put(&batch, &branch.run));
    assert_err(hd_queue_recover(f->w->app.queue, &f->w->fault), 0);
    thread = read_thread(f);
    assert_int_equal(read_run(f, branch.run.run_id).status, HD_RUN_STATE_ERROR);
    assert_int_equal(thread.status, HD_THREAD_IDLE);
    assert_slice(thread.head.checkpoint_id, f->ends[1]);
    assert_int_equal(read_line(f).status, HD_THREAD_IDLE);
    assert_slice(read_line(f).run_id, line.run_id);
    hd_queue_unexpect(f->w->app.queue, NOBODY, branch.run.run_id);
}

/* The process ended when the run had made checkpoints, and one on the head was newer. */
static void it_continues_on_its_branch(void **state)
{
    struct fixture *f = *state;
    struct hd_slice end = run_at(f, f->ends[0]), newer = run_at(f, hd_slice(NULL, 0)), next;
    struct hd_slice run_id;
    struct hd_run_rec run;
    struct hd_run_rec *runs;
    size_t count;

    assert_int_equal(count_log(f, newer), 3);
    assert_err(hd_runs_list(f->w->app.store, NOBODY, f->thread, NULL, 0, 10, &f->w->arena, &runs,
                            &count, &f->w->fault),
               0);
    assert_int_equal(count, 4);
    run = runs[1];
    assert_true(run.is_off_head);
    run_id = run.run_id;
    run.status = HD_RUN_STATE_RUNNING;
    run.due_at = 1;
    APPLY(f->w, hd_run_put(&batch, &run));
    assert_err(hd_queue_recover(f->w->app.queue, &f->w->fault), 0);
    wait_until_ended(f, 5);
    next = read_run(f, run_id).checkpoint_id;
    assert_int_equal(count_log(f, next), 2);
    assert_slice(next, end);
    assert_int_equal(count_log(f, HD_S("")), 3);
}

/* The end of a run on the head is not the latest checkpoint when a branch has newer ones. */
static void the_end_of_a_run_names_the_head_beside_a_branch(void **state)
{
    struct fixture *f = *state;
    struct hd_admission branch = admit_at(f, f->ends[0], REQUEST);
    struct hd_slice end = run_at(f, hd_slice(NULL, 0)), chosen;
    struct hd_thread_rec thread = read_thread(f);

    assert_err(
        hd_thread_heads_get(f->w->app.store, &thread, f->ns, &f->w->arena, &chosen, &f->w->fault),
        0);
    assert_slice(chosen, end);
    queue_run(f, &branch);
    wait_until_ended(f, 4);
    assert_int_equal(count_log(f, HD_S("")), 3);
}

static void a_delegate_begins_where_the_run_says(void **state)
{
    struct fixture *f = *state;
    struct hd_run_rec run = {.thread_id = f->thread, .run_id = HD_S("none"), .is_off_head = true};
    struct hd_slice at;
    char forks[200];
    bool is_own;

    assert_err(hd_off_head_fork(&f->w->app, &run, f->ns, &f->w->arena, &at, &is_own, &f->w->fault),
               0);
    assert_slice(at, f->ends[1]);
    assert_false(is_own);
    snprintf(forks, sizeof(forks), "{\"%.*s\":\"%.*s\"}", (int)f->ns.len, f->ns.ptr,
             (int)f->ends[0].len, f->ends[0].ptr);
    run.forks = hd_slice_cstr(forks);
    assert_err(hd_off_head_fork(&f->w->app, &run, f->ns, &f->w->arena, &at, &is_own, &f->w->fault),
               0);
    assert_slice(at, f->ends[0]);
    assert_false(is_own);
    run.run_id = read_line(f).run_id;
    assert_err(hd_off_head_fork(&f->w->app, &run, f->ns, &f->w->arena, &at, &is_own, &f->w->fault),
               0);
    assert_slice(at, f->ends[1]);
    assert_true(is_own);
    assert_err(
        hd_off_head_fork(&f->w->app, &run, HD_S("new"), &f->w->arena, &at, &is_own, &f->w->fault),
        0);
    assert_int_equal(at.len, 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(no_head_moves),
        CASE(it_waits_for_no_run_and_delays_none),
        CASE(a_run_with_the_strategy_interrupt_leaves_it_alone),
        CASE(a_cancelled_one_leaves_the_head),
        CASE(the_head_returns_to_the_end_of_the_last_run_on_it),
        CASE(one_that_is_lost_in_the_same_step_fails_alone),
        CASE(it_continues_on_its_branch),
        CASE(the_end_of_a_run_names_the_head_beside_a_branch),
        CASE(a_delegate_begins_where_the_run_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
