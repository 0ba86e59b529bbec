/* Requests of workers to the server: on store threads and on the loop, within the scope of their
 * call. */
#include "tests/unit/rt_world.h"

#include <pthread.h>
#include <stdatomic.h>

/* Records of the ops; the lock is for those on store threads. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_blocked;
    int works;
    pthread_t loop_thread;
    bool was_elsewhere;
    atomic_int freed;
    struct hd_rt_request *started;
    int cancels;
    bool answers_when_cancelled;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void reset(void)
{
    seen.is_blocked = false;
    seen.works = 0;
    seen.was_elsewhere = false;
    seen.freed = 0;
    seen.started = NULL;
    seen.cancels = 0;
    seen.answers_when_cancelled = false;
    seen.loop_thread = pthread_self();
}

/* Returns the request and its scope. */
static void do_tell(struct hd_rt_request *request)
{
    const struct hd_rt_scope *scope = request->scope;
    struct hd_jw jw;

    hd_jw_init(&jw, &request->head);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", hd_slice_cstr(request->op));
    hd_jw_put_string(&jw, "word", hd_json_string(hd_json_get(request->root, HD_S("word"))));
    if (scope) {
        hd_jw_put_string(&jw, "thread", scope->thread);
        hd_jw_put_int(&jw, "guard", scope->guard);
        hd_jw_put_int(&jw, "token", scope->token);
        hd_jw_key(&jw, HD_S("metadata"));
        if (scope->metadata)
            hd_val_put(&jw, scope->metadata);
        else
            hd_jw_null(&jw);
    }
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        (void)hd_error_set(&request->fault, HD_ENOMEM, "out of memory");
    request->blobs = (struct hd_slice *)request->message.blobs;
    request->blob_count = request->message.blob_count;
    pthread_mutex_lock(&seen.lock);
    seen.works++;
    seen.was_elsewhere |= !pthread_equal(pthread_self(), seen.loop_thread);
    pthread_mutex_unlock(&seen.lock);
}

/* Blocks until unblock(). */
static void do_block(struct hd_rt_request *request)
{
    (void)request;
    pthread_mutex_lock(&seen.lock);
    seen.works++;
    while (seen.is_blocked)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

static void unblock(void)
{
    pthread_mutex_lock(&seen.lock);
    seen.is_blocked = false;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static bool has_worked(int count)
{
    bool has;

    pthread_mutex_lock(&seen.lock);
    has = seen.works >= count;
    pthread_mutex_unlock(&seen.lock);
    return has;
}

static void do_fail(struct hd_rt_request *request)
{
    (void)hd_error_set(&request->fault, HD_ECONFLICT, "another writer was faster");
}

static void free_large(void *arg)
{
    hd_free(arg);
    seen.freed++;
}

/* A large answer without a copy. */
static void do_large(struct hd_rt_request *request)
{
    const size_t size = (size_t)3 << 20;
    char *bytes = hd_malloc(size);
    struct hd_slice *blob = hd_arena_alloc(request->arena, sizeof(*blob));

    assert_non_null(bytes);
    assert_non_null(blob);
    memset(bytes, 'y', size);
    *blob = hd_slice(bytes, size);
    request->blobs = blob;
    request->blob_count = 1;
    request->free_blobs = free_large;
    request->free_arg = bytes;
}

static void on_cancel(struct hd_rt_request *request)
{
    seen.cancels++;
    if (!seen.answers_when_cancelled)
        return;
    seen.started = NULL;
    (void)hd_error_set(&request->fault, HD_ECLOSED, "cancelled");
    hd_rt_request_answer(request);
}

static void start_later(struct hd_rt_request *request)
{
    assert_true(pthread_equal(pthread_self(), seen.loop_thread));
    request->on_cancel = on_cancel;
    seen.started = request;
}

static void start_at_once(struct hd_rt_request *request)
{
    assert_err(hd_buf_append_slice(&request->head, HD_S("{\"at\":\"once\"}")), 0);
    hd_rt_request_answer(request);
}

static const struct hd_rt_op ops[] = {
    {.name = "tell", .work = do_tell},
    {.name = "tell_scope", .work = do_tell, .needs_scope = true},
    {.name = "block", .work = do_block, .needs_scope = true},
    {.name = "fail", .work = do_fail},
    {.name = "large", .work = do_large},
};

static const struct hd_rt_op more_ops[] = {
    {.name = "later", .start = start_later, .needs_scope = true},
    {.name = "once", .start = start_at_once},
};

static void begin(struct rt_world *world, const char *store)
{
    struct heddle_error fault = {0};
    struct heddle_error error;

    reset();
    rt_init(world, NULL);
    if (store)
        assert_int_equal(heddle_open(&world->store, store, &error), 0);
    assert_err(
        hd_runtime_create(&world->loop, world->store, &world->settings, &world->runtime, &fault),
        0);
    assert_err(hd_runtime_add_ops(world->runtime, ops, HD_COUNT(ops), NULL), 0);
    assert_err(hd_runtime_add_ops(world->runtime, more_ops, HD_COUNT(more_ops), NULL), 0);
    assert_err(hd_runtime_start(world->runtime, &fault), 0);
}

/* A call with a scope. */
static void call(struct rt_world *world, const char *steps, struct rt_outcome *outcome)
{
    struct hd_rt_call_options options;
    struct hd_rt_scope scope = {
        .principal = HD_S_INIT("ada"), .thread = HD_S_INIT("thread 1"), .guard = 77, .token = -5};
    struct hd_val *metadata;
    char head[2048];

    memset(outcome, 0, sizeof(*outcome));
    assert_err(
        hd_val_parse_json(HD_S("{\"run_id\":\"r\",\"deep\":[1,{\"a\":null}]}"), &metadata, NULL),
        0);
    scope.metadata = metadata;
    (void)snprintf(head, sizeof(head), "{\"op\":\"run\",\"steps\":%s}", steps);
    options = rt_options(head, outcome);
    options.scope = &scope;
    options.is_run = true;
    assert_err(hd_runtime_call(world->runtime, &options, &outcome->call), 0);
    hd_val_unref(metadata); /* the call has a copy */
}

static void ask(struct rt_world *world, const char *request, struct rt_outcome *outcome)
{
    char steps[1024];

    (void)snprintf(steps, sizeof(steps), "[{\"call\":%s,\"blobs\":[\"b\"]},{\"answer\":\"$last\"}]",
                   request);
    call(world, steps, outcome);
    rt_until(world, outcome->ends);
}

static void check_ops(const char *store, bool is_elsewhere)
{
    struct rt_world world;
    struct rt_outcome outcome;

    begin(&world, store);
    ask(&world, "{\"op\":\"tell_scope\",\"word\":\"hello\"}", &outcome);
    assert_int_equal(outcome.end, HD_RT_ANSWERED);
    assert_string_equal(
        outcome.head,
        "{\"op\":\"tell_scope\",\"word\":\"hello\",\"thread\":\"thread 1\","
        "\"guard\":77,\"token\":-5,\"metadata\":{\"run_id\":\"r\",\"deep\":[1,{\"a\":null}]}}");
    assert_string_equal(outcome.blob, "b");
    ask(&world, "{\"op\":\"tell\",\"word\":\"hello\",\"call\":null}", &outcome);
    assert_string_equal(outcome.head, "{\"op\":\"tell\",\"word\":\"hello\"}");
    assert_int_equal(seen.was_elsewhere, is_elsewhere);
    ask(&world, "{\"op\":\"large\"}", &outcome);
    assert_int_equal(outcome.blob_bytes, 3 << 20);
    assert_int_equal(seen.freed, 1);
    ask(&world, "{\"op\":\"once\",\"call\":null}", &outcome);
    assert_string_equal(outcome.head, "{\"at\":\"once\"}");
    rt_fini(&world);
}

static void ops_are_carried_out(void **state)
{
    (void)state;
    check_ops(NULL, false);
}

static void ops_are_carried_out_on_threads(void **state)
{
    (void)state;
    check_ops("memory:", true);
}

static void refused(struct rt_world *world, const char *request, const char *expected)
{
    struct rt_outcome outcome;

    ask(world, request, &outcome);
    assert_int_equal(outcome.end, HD_RT_REFUSED);
    assert_string_equal(outcome.head, expected);
}

static void ops_are_refused(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, NULL);
    refused(&world, "{\"op\":\"fail\"}",
            "{\"type\":\"HeddleError\",\"message\":\"another writer was faster\","
            "\"code\":\"conflict\"}");
    refused(&world, "{\"op\":\"nothing\"}",
            "{\"type\":\"HeddleError\",\"message\":\"unknown operation `nothing`\","
            "\"code\":\"invalid\"}");
    refused(&world, "{\"op\":\"tell_scope\",\"call\":null}",
            "{\"type\":\"HeddleError\",\"message\":\"`call` is not a call number\","
            "\"code\":\"invalid\"}");
    refused(&world, "{\"op\":\"tell_scope\",\"call\":9999}",
            "{\"type\":\"HeddleError\",\"message\":\"call 9999 has ended\",\"code\":\"gone\"}");
    assert_int_equal(seen.works, 0);
    rt_call(&world, true, "[{\"call\":{\"op\":\"tell_scope\"}}]", &outcome); /* without a scope */
    rt_until(&world, outcome.ends);
    assert_int_equal(outcome.end, HD_RT_REFUSED);
    assert_non_null(strstr(outcome.head, "has no thread"));
    rt_fini(&world);
}

/* A lost call ends only after the requests of its worker are complete. */
static void ends_wait_for_work(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, "memory:");
    seen.is_blocked = true;
    call(&world, "[{\"call\":{\"op\":\"block\"}}]", &outcome);
    rt_until(&world, has_worked(1));
    hd_proc_kill(world.runtime->workers->proc, 9);
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts == 1);
    assert_int_equal(outcome.ends, 0);
    unblock();
    rt_until(&world, outcome.ends);
    rt_lost(&outcome, "was killed by signal 9");
    rt_is_well(&world);
    rt_fini(&world);
}

/* Work for a dropped call is completed, and its result is discarded. */
static void work_outlives_its_call(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, "memory:");
    seen.is_blocked = true;
    call(&world, "[{\"call\":{\"op\":\"block\"}}]", &outcome);
    rt_until(&world, has_worked(1));
    hd_rt_call_drop(outcome.call);
    hd_runtime_destroy(world.runtime);
    for (int i = 0; i < 5; i++)
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    unblock();
    world.runtime = NULL;
    rt_fini(&world);
    assert_int_equal(outcome.ends, 0);
}

static void started_ops_answer_later(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, NULL);
    call(&world, "[{\"call\":{\"op\":\"later\"}},{\"answer\":\"$last\"}]", &outcome);
    rt_until(&world, seen.started);
    assert_err(hd_rt_request_piece(seen.started, &(struct hd_rt_message){.head = HD_S("{}")}), 0);
    rt_is_well(&world);
    assert_int_equal(outcome.ends, 0);
    assert_err(hd_buf_append_slice(&seen.started->head, HD_S("{\"late\":true}")), 0);
    hd_rt_request_answer(seen.started);
    rt_until(&world, outcome.ends);
    assert_string_equal(outcome.head, "{\"late\":true}");
    assert_int_equal(seen.cancels, 0);
    rt_fini(&world);
}

/* A started request is cancelled; it must still be answered, and the answer is discarded. */
static void started_ops_are_given_up(void **state)
{
    static const char steps[] = "[{\"call\":{\"op\":\"later\"}},{\"answer\":\"$last\"}]";
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, NULL);
    call(&world, steps, &outcome); /* the worker is lost */
    rt_until(&world, seen.started);
    hd_proc_kill(world.runtime->workers->proc, 9);
    rt_until(&world, seen.cancels == 1);
    assert_err(hd_rt_request_piece(seen.started, &(struct hd_rt_message){.head = HD_S("{}")}),
               HD_ECLOSED);
    hd_rt_request_answer(seen.started);
    rt_until(&world, outcome.ends);
    seen.started = NULL;
    call(&world, steps, &outcome); /* the call is dropped */
    rt_until(&world, seen.started);
    seen.answers_when_cancelled = true;
    hd_rt_call_drop(outcome.call);
    assert_int_equal(seen.cancels, 2);
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).calls == 0);
    rt_is_well(&world);
    rt_fini(&world);
}

/* Also when the runtime is destroyed: the cancel is immediate, and the answer is discarded. */
static void started_ops_outlive_all(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    begin(&world, NULL);
    call(&world, "[{\"call\":{\"op\":\"later\"}}]", &outcome);
    rt_until(&world, seen.started);
    hd_runtime_destroy(world.runtime);
    world.runtime = NULL;
    assert_int_equal(seen.cancels, 1);
    for (int i = 0; i < 5; i++)
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    hd_rt_request_answer(seen.started);
    rt_fini(&world);
    assert_int_equal(outcome.ends, 0);
}

/* More requests than the limit: the server stops reading from the worker, and completes all. */
static void many_ops(void **state)
{
    struct rt_world world;
    static struct rt_outcome outcomes[HD_RT_MAX_WORK + 40];
    struct hd_rt_worker *worker;
    int ends = 0;

    (void)state;
    begin(&world, "memory:");
    seen.is_blocked = true;
    world.settings.jobs = 1000;
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).workers == 1);
    worker = world.runtime->workers;
    for (size_t i = 0; i < HD_COUNT(outcomes); i++)
        call(&world, "[{\"call\":{\"op\":\"block\"}}]", &outcomes[i]);
    rt_until(&world, worker->work_count >= HD_RT_MAX_WORK);
    assert_true(worker->is_crowding);
    unblock();
    rt_until(&world, rt_ends == (int)HD_COUNT(outcomes));
    for (size_t i = 0; i < HD_COUNT(outcomes); i++)
        ends += outcomes[i].end == HD_RT_ANSWERED;
    assert_int_equal(ends, (int)HD_COUNT(outcomes));
    assert_int_equal(worker->work_count, 0);
    assert_int_equal(worker->work_bytes, 0);
    rt_fini(&world);
}

/* Whichever allocation fails: the call ends, or is refused, and the next one is answered. */
static void memory_may_end(void **state)
{
    static const char head[] = "{\"op\":\"run\",\"steps\":[{\"piece\":{\"number\":0}},"
                               "{\"call\":{\"op\":\"tell_scope\"}},{\"answer\":\"$last\"}]}";
    const struct hd_rt_scope scope = {.thread = HD_S_INIT("t"), .metadata = hd_val_null()};
    struct rt_world world;
    struct rt_outcome outcome;
    long asked = 1, n;

    (void)state;
    begin(&world, NULL);
    for (n = 1; n <= asked + 1 && n < 200; n++) {
        struct hd_rt_call_options options = rt_options(head, &outcome);
        int err;

        rt_is_well(&world);
        memset(&outcome, 0, sizeof(outcome));
        options.scope = &scope;
        (void)hd_alloc_fail_at(n, 0);
        err = hd_runtime_call(world.runtime, &options, &outcome.call);
        if (!err)
            rt_until(&world, outcome.ends);
        asked = hd_alloc_fail_at(0, 0);
        assert_true(err == 0 || err == HD_ENOMEM);
    }
    assert_true(n > 5 && n < 200); /* ends when no allocation fails any more */
    assert_int_equal(outcome.end, HD_RT_ANSWERED);
    rt_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_are_carried_out),
        cmocka_unit_test(ops_are_carried_out_on_threads),
        cmocka_unit_test(ops_are_refused),
        cmocka_unit_test(ends_wait_for_work),
        cmocka_unit_test(work_outlives_its_call),
        cmocka_unit_test(started_ops_answer_later),
        cmocka_unit_test(started_ops_are_given_up),
        cmocka_unit_test(started_ops_outlive_all),
        cmocka_unit_test(many_ops),
        cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
