/* Slots of runs: how several servers count the runs of an actor. */
#include "records/run_slot.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "records/record.h"
#include "store/rows.h"
#include "tests/unit/check.h"

static int open_store(void **state)
{
    struct heddle *store = NULL;

    assert_err(heddle_open(&store, "memory:", NULL), 0);
    *state = store;
    return 0;
}

static int close_store(void **state)
{
    heddle_close(*state);
    return 0;
}

static struct hd_run_rec make_run(const char *id)
{
    return (struct hd_run_rec){.principal = HD_S("owner"),
                               .actor = HD_S("actor"),
                               .thread_id = HD_S("thread"),
                               .run_id = hd_slice_cstr(id),
                               .status = HD_RUN_STATE_PENDING,
                               .due_at = 1,
                               .attempt = 1};
}

static int apply(struct heddle *store, struct hd_batch_builder *builder)
{
    struct hd_batch view = hd_batch_view(builder);
    int err = hd_rows_apply(store, HD_S("owner:thread"), &view, NULL, NULL);

    hd_batch_fini(builder);
    return err;
}

/* Stores the run with its slot, as an admission does. */
static int admit_once(struct heddle *store, int64_t most, struct hd_run_rec *run)
{
    struct hd_batch_builder batch;
    struct hd_run_slot slot;
    int err = hd_run_slots_find(store, run->actor, most, &slot, 1, NULL);

    if (err)
        return err;
    hd_batch_init(&batch);
    assert_err(hd_run_slot_take(&batch, &slot, run), 0);
    assert_err(hd_run_add(&batch, run), 0);
    return apply(store, &batch);
}

static int admit(struct heddle *store, int64_t most, struct hd_run_rec *run)
{
    int err;

    do {
        run->rev = 0;
        err = admit_once(store, most, run);
    } while (err == HD_ECONFLICT);
    return err;
}

static void end(struct heddle *store, struct hd_run_rec *run, bool frees)
{
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    run->status = HD_RUN_STATE_SUCCESS;
    run->due_at = 0;
    assert_err(hd_run_put(&batch, run), 0);
    if (frees)
        assert_err(hd_run_slot_free(&batch, run), 0);
    assert_err(apply(store, &batch), 0);
}

static void an_actor_has_so_many_runs(void **state)
{
    struct hd_run_rec runs[] = {make_run("a"), make_run("b"), make_run("c"), make_run("d")};

    assert_err(admit(*state, 2, &runs[0]), 0);
    assert_err(admit(*state, 2, &runs[1]), 0);
    assert_int_not_equal(runs[0].slot, runs[1].slot);
    assert_err(admit(*state, 2, &runs[2]), HD_ELIMIT);
    runs[3].actor = HD_S("another");
    assert_err(admit(*state, 2, &runs[3]), 0);
    end(*state, &runs[0], true);
    assert_err(admit(*state, 2, &runs[2]), 0);
    assert_int_equal(runs[2].slot, runs[0].slot);
}

static void a_lower_limit_counts_the_slots_below_it(void **state)
{
    struct hd_run_rec runs[] = {make_run("a"), make_run("b"), make_run("c")};

    assert_err(admit(*state, 2, &runs[0]), 0);
    assert_err(admit(*state, 2, &runs[1]), 0);
    assert_err(admit(*state, 1, &runs[2]), HD_ELIMIT);
}

/* The end was stored by an older program, or the run went with its thread. */
static void a_slot_without_a_run_is_free(void **state)
{
    struct hd_run_rec runs[] = {make_run("a"), make_run("b"), make_run("c")};
    struct hd_batch_builder batch;

    assert_err(admit(*state, 1, &runs[0]), 0);
    assert_err(admit(*state, 1, &runs[1]), HD_ELIMIT);
    end(*state, &runs[0], false);
    assert_err(admit(*state, 1, &runs[1]), 0);
    hd_batch_init(&batch);
    assert_err(hd_run_delete(&batch, &runs[1]), 0);
    assert_err(apply(*state, &batch), 0);
    assert_err(admit(*state, 1, &runs[2]), 0);
}

/* Both have seen that the slot is free. */
static void two_servers_do_not_take_the_same_slot(void **state)
{
    struct hd_run_rec runs[] = {make_run("a"), make_run("b"), make_run("left")};
    struct hd_run_slot slot;

    for (int is_left = 0; is_left < 2; is_left++) {
        if (is_left) {
            assert_err(admit(*state, 1, &runs[2]), 0);
            end(*state, &runs[2], false);
        }
        assert_err(hd_run_slots_find(*state, runs[0].actor, 1, &slot, 1, NULL), 0);
        for (int i = 0; i < 2; i++) {
            struct hd_batch_builder batch;

            hd_batch_init(&batch);
            assert_err(hd_run_slot_take(&batch, &slot, &runs[i]), 0);
            runs[i].rev = 0;
            assert_err(hd_run_add(&batch, &runs[i]), 0);
            assert_err(apply(*state, &batch), i == 0 ? 0 : HD_ECONFLICT);
        }
        end(*state, &runs[0], true);
        runs[0] = make_run("again");
    }
}

/* Unused slots, and such whose run is gone. */
static void several_slots_differ(void **state)
{
    struct hd_run_rec runs[] = {make_run("a"), make_run("b"), make_run("c")};
    struct hd_run_slot slots[5];

    for (int round = 0; round < 20; round++) {
        bool seen[6] = {false};

        assert_err(hd_run_slots_find(*state, HD_S("actor"), 5, slots, 5, NULL), 0);
        for (int i = 0; i < 5; i++) {
            assert_in_range(slots[i].number, 1, 5);
            assert_false(seen[slots[i].number]);
            seen[slots[i].number] = true;
        }
    }
    assert_err(hd_run_slots_find(*state, HD_S("actor"), 1, slots, 2, NULL), HD_ELIMIT);
    for (int i = 0; i < 3; i++)
        assert_err(admit(*state, 3, &runs[i]), 0);
    assert_err(hd_run_slots_find(*state, HD_S("actor"), 4, slots, 2, NULL), HD_ELIMIT);
    end(*state, &runs[0], false);
    end(*state, &runs[2], false);
    assert_err(hd_run_slots_find(*state, HD_S("actor"), 4, slots, 4, NULL), HD_ELIMIT);
    assert_err(hd_run_slots_find(*state, HD_S("actor"), 4, slots, 3, NULL), 0);
    assert_int_equal(slots[0].number + slots[1].number, runs[0].slot + runs[2].slot);
    assert_int_equal(slots[2].number, 4);
}

/* ---- many at once ----------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 40, MOST = 3 };

static _Atomic int in_flight, greatest;

struct admitting {
    struct heddle *store;
    pthread_t thread;
    int number, admitted;
};

static void *admit_often(void *arg)
{
    struct admitting *own = arg;

    for (int i = 0; i < ROUNDS; i++) {
        char id[HD_UUID_SIZE];
        struct hd_run_rec run;
        int now;

        hd_uuid_v7(id);
        run = make_run(id);
        if (admit(own->store, MOST, &run))
            continue;
        now = ++in_flight;
        for (int most = greatest;
             now > most && !atomic_compare_exchange_weak(&greatest, &most, now);)
            continue;
        own->admitted++;
        in_flight--;
        end(own->store, &run, true);
    }
    return NULL;
}

static void never_more_than_the_limit_are_in_flight(void **state)
{
    struct admitting all[THREADS];
    int admitted = 0;

    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct admitting){.store = *state, .number = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, admit_often, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        admitted += all[i].admitted;
    }
    assert_in_range(greatest, 1, MOST);
    assert_true(admitted >= ROUNDS);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)
    const struct CMUnitTest tests[] = {
        TEST(an_actor_has_so_many_runs),    TEST(a_lower_limit_counts_the_slots_below_it),
        TEST(a_slot_without_a_run_is_free), TEST(two_servers_do_not_take_the_same_slot),
        TEST(several_slots_differ),         TEST(never_more_than_the_limit_are_in_flight),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
