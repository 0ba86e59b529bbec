/* The driver of a request's stages: threads, order, visits and errors. */
#include "api/request/pipeline.h"

#include <pthread.h>
#include <string.h>

#include "api/api.h"
#include "tests/unit/app_world.h"

/* The last `then` of each test returns HD_WAIT and keeps the call, so no response is sent. */
static struct {
    struct app_world *w;
    struct hd_api *api;
    struct hd_call call;
    pthread_t loop;
    char trace[64]; /* one letter per function; a capital letter: on the loop */
    int err;
    bool is_over;
} t;

static void trace(char letter)
{
    size_t len = strlen(t.trace);

    assert_true(len + 1 < sizeof(t.trace));
    t.trace[len] = (char)(pthread_equal(pthread_self(), t.loop) ? letter - 'a' + 'A' : letter);
}

static struct hd_step work(struct hd_call *call)
{
    (void)call;
    trace('w');
    return HD_NEXT;
}

static struct hd_step fail_work(struct hd_call *call)
{
    trace('f');
    return hd_step_fail(hd_error_set(&call->fault, HD_EINVAL, "no"));
}

static struct hd_step last(struct hd_call *call)
{
    (void)call;
    trace('l');
    t.is_over = true;
    return HD_WAIT;
}

static struct hd_step again(struct hd_call *call)
{
    trace('a');
    return hd_call_visit(call, work, last);
}

static struct hd_step on_error(struct hd_call *call, int err)
{
    trace('e');
    t.err = err;
    assert_null(call->on_error);
    t.is_over = true;
    return HD_WAIT;
}

static struct hd_step retry_on_error(struct hd_call *call, int err)
{
    assert_err(err, HD_EINVAL);
    trace('r');
    return hd_call_visit(call, work, last);
}

static int setup(void **state)
{
    static const struct hd_endpoint route = {
        .method = HD_METHOD_GET, .pattern = "/test", .access = HD_ACCESS_PUBLIC};

    (void)state;
    memset(&t, 0, sizeof(t));
    t.w = world_open(NULL, NULL);
    t.loop = pthread_self();
    assert_err(hd_api_create(&t.w->app, &t.api, &t.w->fault), 0);
    t.call = (struct hd_call){.app = &t.w->app, .api = t.api, .arena = &t.w->arena};
    hd_call_set_route(&t.call, &route);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hd_api_destroy(t.api);
    world_close(t.w);
    return 0;
}

/* Waits for the last function, and compares the functions that ran. */
static void assert_trace(const char *expected)
{
    while (!t.is_over)
        uv_run(&t.w->loop, UV_RUN_ONCE);
    assert_string_equal(t.trace, expected);
}

static void work_runs_on_a_store_thread_and_then_on_the_loop(void **state)
{
    (void)state;
    hd_call_resume(&t.call, hd_call_visit(&t.call, work, last));
    assert_trace("wL");
}

static void a_route_visits_a_store_thread_again(void **state)
{
    (void)state;
    hd_call_resume(&t.call, hd_call_visit(&t.call, work, again));
    assert_trace("wAwL");
}

static void a_call_without_work_stays_on_the_loop(void **state)
{
    (void)state;
    hd_call_resume(&t.call, hd_call_visit(&t.call, NULL, last));
    assert_string_equal(t.trace, "L");
    assert_int_equal(hd_defer_count(t.w->app.defer), 0);
}

static void an_error_reaches_the_route_once_and_on_the_loop(void **state)
{
    struct hd_step step = hd_call_visit(&t.call, fail_work, last);

    (void)state;
    t.call.on_error = on_error;
    hd_call_resume(&t.call, step);
    assert_trace("fE");
    assert_err(t.err, HD_EINVAL);
}

static void a_route_continues_after_an_error(void **state)
{
    struct hd_step step = hd_call_visit(&t.call, fail_work, NULL);

    (void)state;
    t.call.on_error = retry_on_error;
    hd_call_resume(&t.call, step);
    assert_trace("fRwL");
}

/* An asynchronous operation fails between two stages. */
static void resume_passes_an_error_on(void **state)
{
    (void)state;
    t.call.on_error = on_error;
    hd_call_resume(&t.call, hd_step_fail(HD_EBUSY));
    assert_trace("E");
    assert_err(t.err, HD_EBUSY);
}

static void waiting_does_nothing(void **state)
{
    (void)state;
    hd_call_resume(&t.call, HD_WAIT);
    assert_string_equal(t.trace, "");
}

static void steps_of_error_codes(void **state)
{
    (void)state;
    assert_true(hd_step_is_next(hd_step_next(0)));
    assert_false(hd_step_is_next(hd_step_next(HD_EIO)));
    assert_false(hd_step_is_next(hd_step_done(0)));
    assert_int_equal(hd_step_done(0).kind, HD_STEP_DONE);
    assert_int_equal(hd_step_done(HD_EIO).kind, HD_STEP_ERROR);
    assert_err(hd_step_done(HD_EIO).err, HD_EIO);
    /* A step that was never set is no success. */
    assert_int_equal((struct hd_step){0}.kind, HD_STEP_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_runs_on_a_store_thread_and_then_on_the_loop, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_route_visits_a_store_thread_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_without_work_stays_on_the_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_reaches_the_route_once_and_on_the_loop, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_route_continues_after_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(resume_passes_an_error_on, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_does_nothing, setup, teardown),
        cmocka_unit_test(steps_of_error_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
