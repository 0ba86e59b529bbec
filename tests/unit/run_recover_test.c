/* Take-overs that meet an error of the store in the middle. */
#include "run/run_recover.h"

#include "records/record_internal.h"
#include "tests/unit/app_world.h"

#define ADA HD_S("ada")
#define THREAD HD_S("00000000-0000-4000-8000-00000000000a")
#define FIRST HD_S("00000000-0000-7000-8000-000000000001")
#define SECOND HD_S("00000000-0000-7000-8000-000000000002")

struct fixture {
    struct app_world *w;
    int batches; /* that the store takes before it is away; negative: any number */
    int handed_over;
    int attempt, losses; /* of the run that was handed over last */
};

static int refuse_later(void *arg, struct heddle_error *fault)
{
    struct fixture *f = arg;

    if (f->batches == 0)
        return hd_error_set(fault, HD_EUNAVAILABLE, "away");
    f->batches -= f->batches > 0;
    return 0;
}

static void apply_batch(struct fixture *f, struct hd_batch_builder *batch)
{
    struct hd_batch view = hd_batch_view(batch);

    assert_err(hd_rows_apply(f->w->app.store, HD_S("ada:t"), &view, NULL, &f->w->fault), 0);
    hd_batch_fini(batch);
}

static void add_run(struct fixture *f, struct hd_slice id, enum hd_run_state status, int64_t order)
{
    struct hd_run_rec run = {.principal = ADA,
                             .thread_id = THREAD,
                             .run_id = id,
                             .status = status,
                             .created_at = 1,
                             .updated_at = 2,
                             .due_at = 3,
                             .attempt = 1,
                             .order = order,
                             .assistant_id = HD_S("assistant"),
                             .metadata = HD_S("{}"),
                             .kwargs = HD_S("{}")};
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    assert_err(hd_run_add(&batch, &run), 0);
    apply_batch(f, &batch);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct hd_batch_builder batch;
    struct hd_thread_rec thread;

    assert_non_null(f);
    f->w = world_open("memory:", NULL);
    f->batches = -1;
    hd_rows_set_fence(f->w->app.store, refuse_later, f);
    hd_thread_init(&thread, ADA, THREAD);
    thread.status = HD_THREAD_BUSY;
    hd_batch_init(&batch);
    assert_err(hd_thread_add(&batch, &thread), 0);
    apply_batch(f, &batch);
    add_run(f, FIRST, HD_RUN_STATE_RUNNING, 1);
    add_run(f, SECOND, HD_RUN_STATE_PENDING, 2);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->batches = -1;
    world_close(f->w);
    free(f);
    return 0;
}

static int on_recovered(void *arg, const struct hd_run_rec *run, int64_t event_seq,
                        bool is_continued)
{
    struct fixture *f = arg;

    (void)event_seq;
    (void)is_continued;
    f->handed_over++;
    f->attempt = run->attempt;
    f->losses = run->losses.count;
    hd_queue_unexpect(f->w->app.queue, ADA, run->run_id); /* as when it enters the queue */
    return 0;
}

static bool is_announced(const struct fixture *f, struct hd_slice run)
{
    return hd_queue_has(f->w->app.queue, ADA, THREAD, run);
}

static int recover_thread(struct fixture *f, struct hd_run_rest **rest)
{
    const struct hd_hold unheld = {.token = 0};
    size_t webhooks = 0;

    return hd_run_recover_thread(&f->w->app, ADA, THREAD, &unheld, on_recovered, f, &webhooks, rest,
                                 &f->w->fault);
}

static int recover_rest(struct fixture *f, struct hd_run_rest *rest)
{
    size_t webhooks = 0;

    return hd_run_recover_rest(rest, on_recovered, f, &webhooks, &f->w->fault);
}

static int64_t token_of(struct fixture *f)
{
    struct hd_hold hold;

    assert_err(hd_hold_read(f->w->app.store, ADA, THREAD, &f->w->arena, &hold, &f->w->fault), 0);
    return hold.token;
}

static void a_claimed_thread_is_recovered_after_an_error(void **state)
{
    struct fixture *f = *state;
    struct hd_run_rest *rest;
    int64_t token;

    f->batches = 1; /* the claim */
    assert_err(recover_thread(f, &rest), HD_EUNAVAILABLE);
    assert_non_null(rest);
    token = token_of(f);
    assert_true(token != 0);
    assert_true(is_announced(f, FIRST) && is_announced(f, SECOND));
    assert_err(recover_rest(f, rest), HD_EUNAVAILABLE); /* still away */
    assert_int_equal(f->handed_over, 0);
    f->batches = -1;
    assert_err(recover_rest(f, rest), 0);
    assert_int_equal(f->handed_over, 2);
    assert_true(token_of(f) == token);
    hd_run_recover_free(rest);
}

static void an_error_counts_no_second_loss(void **state)
{
    struct fixture *f = *state;
    struct hd_run_rest *rest;

    f->batches = 1;
    assert_err(recover_thread(f, &rest), HD_EUNAVAILABLE);
    for (int i = 0; i < 5; i++)
        assert_err(recover_rest(f, rest), HD_EUNAVAILABLE);
    f->batches = 1; /* the first run begins again; the second needs no batch */
    (void)recover_rest(f, rest);
    assert_int_equal(f->handed_over, 2);
    f->batches = -1;
    hd_run_recover_free(rest);
    {
        struct hd_run_rec run;

        assert_err(
            hd_run_read(f->w->app.store, ADA, THREAD, FIRST, &f->w->arena, &run, &f->w->fault), 0);
        assert_int_equal(run.attempt, 2);
        assert_true(run.losses.count <= 1);
    }
}

static void a_claim_that_was_not_stored_announces_nothing(void **state)
{
    struct fixture *f = *state;
    struct hd_run_rest *rest;

    f->batches = 0;
    assert_err(recover_thread(f, &rest), HD_EUNAVAILABLE);
    f->batches = -1;
    assert_err(recover_rest(f, rest), 0);
    hd_run_recover_free(rest);
    assert_int_equal(f->handed_over, 0);
    assert_false(is_announced(f, FIRST));
    assert_true(token_of(f) == 0);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_claimed_thread_is_recovered_after_an_error),
        CASE(an_error_counts_no_second_loss),
        CASE(a_claim_that_was_not_stored_announces_nothing),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
