/* Admissions of several runs of a thread, with other rows. */
#include "run/admit.h"

#include <pthread.h>
#include <string.h>

#include "base/json.h"
#include "cluster/cluster_internal.h"
#include "gate/limits.h"
#include "records/hold.h"
#include "tests/unit/app_world.h"

#define ANN HD_S("ann")
#define THREAD hd_slice_cstr(thread_id)
#define OTHER "22222222-2222-4222-8222-222222222222"
#define LINE_RUN "{\"assistant_id\":\"line\",\"input\":{}}"
#define OTHER_RUN "{\"assistant_id\":\"" OTHER "\",\"input\":{}}"

static char thread_id[40];

/* A group, and how its functions act. */
struct post {
    struct app_world *w;
    struct hd_admission_group group;
    struct hd_json bodies[HD_ADMIT_MAX_RUNS + 1];
    struct hd_run_request requests[HD_ADMIT_MAX_RUNS + 1];
    struct hd_admission runs[HD_ADMIT_MAX_RUNS + 1];
    struct hd_admission *list[HD_ADMIT_MAX_RUNS + 1];
    size_t counts[3];  /* of runs that `prepare` makes in each attempt */
    int prepare_error; /* -1: it refuses with 418 */
    int rivals;        /* attempts during which the thread changes */
    int prepared, extended;
    int64_t seen; /* event_seq of the thread in the last attempt */
};

static int setup(void **state)
{
    struct app_world *w = world_open("memory:", "--limits-runs=4");
    const struct hd_assistant_rec other = {.principal = ANN,
                                           .id = HD_S(OTHER),
                                           .version = 1,
                                           .graph_id = HD_S("line"),
                                           .name = HD_S("other"),
                                           .config = HD_S("{\"configurable\":{\"model\":\"m\"}}")};

    *state = w;
    snprintf(thread_id, sizeof(thread_id), "11111111-1111-4111-8111-111111111111");
    APPLY(w, hd_assistant_add(&batch, &other));
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void add_thread(struct app_world *w)
{
    struct hd_thread_rec thread;

    hd_thread_init(&thread, ANN, THREAD);
    thread.created_at = thread.updated_at = 1;
    thread.event_seq = 7;
    APPLY(w, hd_thread_add(&batch, &thread));
}

static struct hd_thread_rec read_thread(struct app_world *w)
{
    struct hd_thread_rec thread;

    assert_err(hd_thread_read(w->app.store, ANN, THREAD, &w->arena, &thread, &w->fault), 0);
    return thread;
}

static size_t count_runs(struct app_world *w)
{
    struct hd_run_rec *runs;
    size_t count;

    assert_err(
        hd_runs_list(w->app.store, ANN, THREAD, NULL, 0, 100, &w->arena, &runs, &count, &w->fault),
        0);
    return count;
}

static bool has_row(struct app_world *w)
{
    struct hd_item_rec item;

    return !hd_item_read(w->app.store, ANN, HD_S("posts"), HD_S("p"), &w->arena, &item, NULL);
}

/* Another batch changes the thread between the attempt's reading and its batch. */
static void rival_changes(struct app_world *w)
{
    struct hd_thread_rec thread = read_thread(w);

    thread.event_seq += 100;
    APPLY(w, hd_thread_put(&batch, &thread));
}

static int on_prepare(void *ctx, struct hd_admission_group *group,
                      const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    struct post *post = ctx;

    assert_slice(thread->id, THREAD);
    post->seen = thread->event_seq;
    if (post->prepare_error == -1)
        return hd_admit_refuse(group, fault, 418, "I am a %s", "teapot");
    if (post->prepare_error)
        return post->prepare_error;
    group->runs = post->list;
    group->count = post->counts[post->prepared++];
    return 0;
}

static int on_extend(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                     struct heddle_error *fault)
{
    struct post *post = ctx;
    const struct hd_item_rec item = {
        .principal = ANN, .ns = HD_S("posts"), .key = HD_S("p"), .value = HD_S("{}")};

    (void)fault;
    if (post->extended++ < post->rivals)
        rival_changes(post->w);
    for (size_t i = 0; i < post->group.count; i++)
        assert_int_equal(post->group.runs[i]->run.run_id.len, HD_UUID_LEN);
    thread->event_seq += 5;
    return hd_item_put(batch, &item);
}

static void post_init(struct post *post, struct app_world *w)
{
    *post = (struct post){.w = w,
                          .group = {.app = &w->app,
                                    .arena = &w->arena,
                                    .principal = ANN,
                                    .actor = ANN,
                                    .subject = ANN,
                                    .thread_id = THREAD,
                                    .runs = post->list,
                                    .extend = on_extend,
                                    .ctx = post}};
}

static void add_run(struct post *post, const char *body)
{
    size_t i = post->group.count++;

    assert_err(hd_json_parse(&post->bodies[i], hd_slice_cstr(body), NULL), 0);
    assert_err(hd_run_request_read(&post->requests[i], hd_json_root(&post->bodies[i]), NULL), 0);
    post->runs[i].request = &post->requests[i];
    post->list[i] = &post->runs[i];
}

static int admit(struct post *post)
{
    post->w->fault = (struct heddle_error){0};
    return hd_admit_group(&post->group, &post->w->fault);
}

static void post_fini(struct post *post)
{
    for (size_t i = 0; i <= HD_ADMIT_MAX_RUNS; i++)
        hd_json_fini(&post->bodies[i]);
}

/* Admits `count` runs of different agents. */
static int admit_runs(struct post *post, struct app_world *w, size_t count)
{
    post_init(post, w);
    for (size_t i = 0; i < count; i++)
        add_run(post, i % 2 ? OTHER_RUN : LINE_RUN);
    return admit(post);
}

static bool is_pending(struct app_world *w, const struct hd_run_rec *run)
{
    return hd_queue_has(w->app.queue, ANN, THREAD, run->run_id);
}

static void run_until_ended(struct app_world *w, uint64_t wanted)
{
    int64_t deadline = hd_clock_monotonic_us() + 120 * INT64_C(1000000);

    while (hd_queue_counts(w->app.queue).ended < wanted && hd_clock_monotonic_us() < deadline)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(hd_queue_counts(w->app.queue).ended, wanted);
}

static void add_to_queue(struct app_world *w, const struct hd_admission *a)
{
    assert_err(hd_queue_add(w->app.queue, &a->run, a->event_seq, false), 0);
}

/* ---- one batch -------------------------------------------------------- */

static void the_runs_of_a_message_are_admitted_together(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread;
    struct post post;

    add_thread(w);
    assert_err(admit_runs(&post, w, 2), 0);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(post.runs[0].run.order, 1);
    assert_int_equal(post.runs[1].run.order, 2);
    assert_true(hd_slice_cmp(post.runs[0].run.run_id, post.runs[1].run.run_id) < 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(post.runs[i].run.status, HD_RUN_STATE_RUNNING);
        assert_int_equal(post.runs[i].event_seq, 12);
    }
    assert_string_not_equal(post.runs[0].run.ns.ptr, post.runs[1].run.ns.ptr);
    thread = read_thread(w);
    assert_int_equal(thread.rev, 2);
    assert_int_equal(thread.status, HD_THREAD_BUSY);
    assert_int_equal(thread.event_seq, 12);
    assert_int_equal(thread.run_order, 2);
    assert_slice(thread.last_run, post.runs[1].run.run_id);
    assert_true(thread.has_before);
    assert_int_equal(thread.status_before, HD_THREAD_IDLE);
    assert_false(hd_thread_head_is_set(&thread.head_before));
    assert_slice(thread.head.assistant_id, HD_S(OTHER));
    assert_true(has_row(w));
    add_to_queue(w, &post.runs[1]);
    add_to_queue(w, &post.runs[0]);
    run_until_ended(w, 2);
    assert_int_equal(read_thread(w).status, HD_THREAD_IDLE);
    post_fini(&post);
}

static void the_second_run_on_a_line_waits_for_the_first(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    post_init(&post, w);
    add_run(&post, LINE_RUN);
    add_run(&post, LINE_RUN);
    add_run(&post, OTHER_RUN);
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(post.runs[0].run.status, HD_RUN_STATE_RUNNING);
    assert_int_equal(post.runs[1].run.status, HD_RUN_STATE_PENDING);
    assert_int_equal(post.runs[2].run.status, HD_RUN_STATE_RUNNING);
    for (int i = 2; i >= 0; i--)
        add_to_queue(w, &post.runs[i]);
    run_until_ended(w, 3);
    post_fini(&post);
}

static void without_runs_the_thread_and_the_rows_change(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread;
    struct post post;

    add_thread(w);
    assert_err(admit_runs(&post, w, 0), 0);
    thread = read_thread(w);
    assert_int_equal(thread.rev, 2);
    assert_int_equal(thread.status, HD_THREAD_IDLE);
    assert_int_equal(thread.event_seq, 12);
    assert_int_equal(post.group.thread.event_seq, 12);
    assert_true(thread.updated_at > 1);
    assert_false(hd_thread_head_is_set(&thread.head));
    assert_false(thread.has_before);
    assert_true(has_row(w));
    assert_int_equal(count_runs(w), 0);
}

static void a_missing_thread_is_created_on_request(void **state)
{
    struct app_world *w = *state;
    struct post post;

    assert_err(admit_runs(&post, w, 0), 0);
    assert_int_equal(post.group.refusal, 404);
    assert_false(has_row(w));
    post_init(&post, w);
    post.group.creates_thread = true;
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(read_thread(w).rev, 1);
    assert_slice(read_thread(w).metadata, HD_S("{\"owner\":\"ann\"}"));
}

/* ---- all or nothing --------------------------------------------------- */

static void a_conflict_repeats_the_whole_attempt(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    post_init(&post, w);
    for (int i = 0; i < 3; i++)
        add_run(&post, i % 2 ? OTHER_RUN : LINE_RUN);
    post.group.prepare = on_prepare;
    post.group.count = 0;
    post.rivals = 2;
    post.counts[0] = 1;
    post.counts[1] = 3;
    post.counts[2] = 2;
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(post.prepared, 3);
    assert_int_equal(post.extended, 3);
    assert_int_equal(post.seen, 207);
    assert_int_equal(read_thread(w).event_seq, 212);
    assert_int_equal(read_thread(w).run_order, 2);
    assert_int_equal(count_runs(w), 2);
    assert_true(is_pending(w, &post.runs[0].run));
    assert_true(is_pending(w, &post.runs[1].run));
    assert_false(is_pending(w, &post.runs[2].run));
    post_fini(&post);
    /* The run of the second attempt has left its place. */
    assert_err(admit_runs(&post, w, 2), 0);
    assert_int_equal(post.group.refusal, 0);
    post_fini(&post);
}

static void one_refusal_refuses_all(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    for (int i = 0; i < 5; i++) {
        post_init(&post, w);
        add_run(&post, LINE_RUN);
        add_run(&post, "{\"assistant_id\":\"nobody\",\"input\":{}}");
        assert_err(admit(&post), 0);
        assert_int_equal(post.group.refusal, 404);
        assert_int_equal(post.runs[0].refusal, 404);
        assert_false(is_pending(w, &post.runs[0].run));
        post_fini(&post);
    }
    assert_int_equal(count_runs(w), 0);
    assert_int_equal(read_thread(w).rev, 1);
    assert_false(has_row(w));
    assert_err(admit_runs(&post, w, 4), 0); /* no place was lost */
    assert_int_equal(post.group.refusal, 0);
    post_fini(&post);
}

static void the_caller_can_refuse_too(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    post_init(&post, w);
    post.group.prepare = on_prepare;
    post.prepare_error = -1;
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 418);
    assert_string_equal(w->fault.text, "I am a teapot");
    post.prepare_error = HD_EEXISTS;
    assert_err(admit(&post), HD_EEXISTS);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(read_thread(w).rev, 1);
}

static void a_group_has_a_limit(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    assert_err(admit_runs(&post, w, HD_ADMIT_MAX_RUNS + 1), HD_ELIMIT);
    assert_int_equal(count_runs(w), 0);
    post_fini(&post);
}

static void a_busy_line_rejects_the_group(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    assert_err(admit_runs(&post, w, 1), 0);
    post_fini(&post);
    post_init(&post, w);
    add_run(&post, OTHER_RUN);
    add_run(&post, "{\"assistant_id\":\"line\",\"input\":{},\"multitask_strategy\":\"reject\"}");
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 409);
    assert_int_equal(count_runs(w), 1);
    post_fini(&post);
}

/* ---- limits ----------------------------------------------------------- */

static void limits_apply_to_all_runs_at_once(void **state)
{
    struct app_world *w = *state;
    struct post post;

    add_thread(w);
    for (int i = 0; i < 3; i++) {
        assert_err(admit_runs(&post, w, 5), 0);
        assert_int_equal(post.group.refusal, 429);
        assert_true(post.group.retry_s > 0);
        post_fini(&post);
    }
    assert_int_equal(count_runs(w), 0);
    assert_err(admit_runs(&post, w, 3), 0);
    assert_int_equal(post.group.refusal, 0);
    post_fini(&post);
    assert_err(admit_runs(&post, w, 2), 0);
    assert_int_equal(post.group.refusal, 429);
    post_fini(&post);
    assert_err(admit_runs(&post, w, 1), 0);
    assert_int_equal(post.group.refusal, 0);
    post_fini(&post);
}

/* ---- several servers -------------------------------------------------- */

/* Admissions see these servers; the rest of the program does not. */
static void join_cluster(struct app_world *w, struct hd_cluster *cluster)
{
    *cluster = (struct hd_cluster){.store = w->app.store, .count = 1, .row.slot = "self"};
    pthread_mutex_init(&cluster->lock, NULL);
    w->app.cluster = cluster;
    hd_limits_set_cluster(w->app.limits, cluster);
}

static void leave_cluster(struct app_world *w, struct hd_cluster *cluster)
{
    w->app.cluster = NULL;
    hd_limits_set_cluster(w->app.limits, NULL);
    pthread_mutex_destroy(&cluster->lock);
}

static struct hd_hold read_hold(struct app_world *w)
{
    struct hd_hold hold;

    assert_err(hd_hold_read(w->app.store, ANN, THREAD, &w->arena, &hold, &w->fault), 0);
    return hold;
}

static void the_runs_of_an_actor_take_different_slots(void **state)
{
    struct app_world *w = *state;
    struct hd_cluster cluster;
    bool seen[5] = {false};
    struct post post;

    add_thread(w);
    join_cluster(w, &cluster);
    assert_err(admit_runs(&post, w, 5), 0);
    assert_int_equal(post.group.refusal, 429);
    assert_true(post.group.retry_s > 0);
    post_fini(&post);
    assert_err(admit_runs(&post, w, 4), 0);
    assert_int_equal(post.group.refusal, 0);
    for (int i = 0; i < 4; i++) {
        assert_in_range(post.runs[i].run.slot, 1, 4);
        assert_false(seen[post.runs[i].run.slot]);
        seen[post.runs[i].run.slot] = true;
        assert_true(post.runs[i].run.guard.token == post.runs[0].run.guard.token);
    }
    assert_true(read_hold(w).token == post.runs[0].run.guard.token);
    assert_slice(read_hold(w).server, HD_S("self"));
    post_fini(&post);
    leave_cluster(w, &cluster);
}

static void a_thread_without_runs_stays_unheld(void **state)
{
    struct app_world *w = *state;
    struct hd_cluster cluster;
    struct post post;
    int64_t token;

    add_thread(w);
    join_cluster(w, &cluster);
    assert_err(admit_runs(&post, w, 0), 0);
    assert_true(read_hold(w).token == 0);
    assert_slice(read_hold(w).last, HD_S("self")); /* it announces the events */
    assert_err(admit_runs(&post, w, 1), 0);
    post_fini(&post);
    token = read_hold(w).token;
    assert_true(token != 0);
    assert_err(admit_runs(&post, w, 0), 0);
    assert_true(read_hold(w).token == token);
    assert_int_equal(read_thread(w).rev, 4);
    leave_cluster(w, &cluster);
}

static void a_thread_of_another_server_is_left_alone(void **state)
{
    const struct hd_hold other = {.token = 9, .server = HD_S("other"), .last = HD_S("other")};
    struct app_world *w = *state;
    struct hd_cluster cluster;
    struct post post;

    add_thread(w);
    APPLY(w, hd_hold_put(&batch, ANN, THREAD, &other));
    join_cluster(w, &cluster);
    for (size_t count = 0; count < 3; count++) {
        assert_err(admit_runs(&post, w, count), 0);
        assert_slice(post.group.holder, HD_S("other"));
        assert_int_equal(post.extended, 0);
        post_fini(&post);
    }
    assert_int_equal(read_thread(w).rev, 1);
    leave_cluster(w, &cluster);
}

/* ---- configuration ---------------------------------------------------- */

#define CONFIG                                                              \
    "{\"assistant_id\":\"line\",\"input\":{},\"config\":{\"tags\":[\"t\"]," \
    "\"configurable\":{\"tone\":\"%s\",\"api_key\":\"secret\"}}}"

static struct hd_slice stored_config(struct app_world *w, const char *tone, bool is_private)
{
    struct post post;
    char body[200];

    snprintf(body, sizeof(body), CONFIG, tone);
    post_init(&post, w);
    add_run(&post, body);
    post.runs[0].is_config_private = is_private;
    assert_err(admit(&post), 0);
    assert_int_equal(post.group.refusal, 0);
    assert_non_null(strstr(post.runs[0].run.kwargs.ptr, tone));
    assert_null(strstr(post.runs[0].run.kwargs.ptr, "\"secret\""));
    assert_non_null(strstr(post.runs[0].run.secrets.ptr, "\"secret\""));
    post_fini(&post);
    return read_thread(w).config;
}

static void a_private_config_does_not_stick(void **state)
{
    static const char kept[] = "{\"tags\":[\"t\"],\"configurable\":{\"tone\":\"calm\","
                               "\"api_key\":\"heddle:secret:api_key\"}}";
    struct app_world *w = *state;

    add_thread(w);
    assert_slice(stored_config(w, "loud", true), HD_S(""));
    assert_slice(stored_config(w, "calm", false), hd_slice_cstr(kept));
    assert_slice(stored_config(w, "loud", true), hd_slice_cstr(kept));
    assert_slice(read_thread(w).head.assistant_id, hd_slice_cstr(w->graph.assistant_id));
}

/* What others left on the thread does not reach the run either. */
static void a_private_run_gets_nothing_of_the_thread(void **state)
{
    struct app_world *w = *state;
    struct hd_thread_rec thread;
    struct post post;

    add_thread(w);
    thread = read_thread(w);
    thread.config = HD_S("{\"configurable\":{\"x-team\":\"red\"}}");
    APPLY(w, hd_thread_put(&batch, &thread));
    for (int is_private = 0; is_private < 2; is_private++) {
        post_init(&post, w);
        add_run(&post, "{\"assistant_id\":\"line\",\"input\":{}}");
        post.runs[0].is_config_private = is_private;
        assert_err(admit(&post), 0);
        assert_int_equal(post.group.refusal, 0);
        assert_int_equal(strstr(post.runs[0].run.kwargs.ptr, "x-team") == NULL, is_private);
        post_fini(&post);
    }
}

/* ---- memory ----------------------------------------------------------- */

/* The parts of a complete run; its ids are always of one length. */
struct complete {
    size_t kwargs_len;
    struct hd_slice metadata, thread;
};

static void check_complete(struct app_world *w, const struct post *post, struct complete *first)
{
    const struct hd_run_rec *run = &post->runs[1].run;
    const struct complete found = {run->kwargs.len, run->metadata, read_thread(w).config};

    if (!first->kwargs_len)
        *first = found;
    assert_int_equal(found.kwargs_len, first->kwargs_len);
    assert_slice(found.metadata, first->metadata);
    assert_slice(found.thread, first->thread);
    assert_slice(run->secrets, HD_S("{\"heddle:secret:api_key\":\"secret\"}"));
}

/* The test is over for these runs. */
static void forget_runs(struct app_world *w, struct post *post)
{
    for (size_t i = 0; i < post->group.count; i++) {
        hd_queue_unexpect(w->app.queue, ANN, post->runs[i].run.run_id);
        hd_limits_give(w->app.limits, ANN, HD_LIMIT_RUNS);
    }
}

/* Admits runs on a new thread while allocation `n` fails; returns whether it was needed. */
static bool admit_short_of_memory(struct app_world *w, long n, struct complete *first)
{
    struct post post;
    long asked;
    int err;

    snprintf(thread_id, sizeof(thread_id), "11111111-1111-4111-8111-%012ld", n);
    post_init(&post, w);
    post.group.creates_thread = true;
    post.group.stamps = HD_S("{\"stamp\":1}");
    add_run(&post, LINE_RUN);
    add_run(&post, "{\"assistant_id\":\"" OTHER "\",\"input\":{},\"config\":{\"configurable\":"
                   "{\"tone\":\"calm\",\"api_key\":\"secret\"}},\"metadata\":{\"a\":1},"
                   "\"context\":{\"b\":2}}");
    (void)hd_alloc_fail_at(n, 0);
    err = admit(&post);
    asked = hd_alloc_fail_at(0, 0);
    assert_int_equal(post.group.refusal, 0);
    assert_int_equal(count_runs(w), err ? 0 : 2);
    if (err) {
        assert_err(err, HD_ENOMEM);
        assert_false(is_pending(w, &post.runs[0].run));
    } else {
        check_complete(w, &post, first);
        forget_runs(w, &post);
    }
    post_fini(&post);
    return asked >= n;
}

/* A part of the configuration must not be missing either. */
static void without_memory_nothing_is_admitted(void **state)
{
    struct complete first = {.kwargs_len = 0};
    long n = 0;

    assert_false(admit_short_of_memory(*state, 1000000, &first));
    while (admit_short_of_memory(*state, ++n, &first))
        continue;
    assert_true(n > 100);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_runs_of_a_message_are_admitted_together),
        CASE(the_second_run_on_a_line_waits_for_the_first),
        CASE(without_runs_the_thread_and_the_rows_change),
        CASE(a_missing_thread_is_created_on_request),
        CASE(a_conflict_repeats_the_whole_attempt),
        CASE(one_refusal_refuses_all),
        CASE(the_caller_can_refuse_too),
        CASE(a_group_has_a_limit),
        CASE(a_busy_line_rejects_the_group),
        CASE(limits_apply_to_all_runs_at_once),
        CASE(the_runs_of_an_actor_take_different_slots),
        CASE(a_thread_without_runs_stays_unheld),
        CASE(a_thread_of_another_server_is_left_alone),
        CASE(a_private_config_does_not_stick),
        CASE(a_private_run_gets_nothing_of_the_thread),
        CASE(without_memory_nothing_is_admitted),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
