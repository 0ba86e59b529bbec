/* Rollback of a run: the old writes are restored, and an interrupted rollback loses none of
 * them. */
#include "graph/engine/origin.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/check.h"

static struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

/* A checkpoint with one finished task and two interrupted ones. */
struct place {
    struct heddle *store;
    struct heddle_thread thread;
    struct hd_origin *origin;
};

static void write_one(const struct place *place, const char *task, const char *channel,
                      const char *data)
{
    const struct heddle_value value = {bytes(channel), bytes("hd1"), bytes(data)};
    const struct heddle_writes writes = {.thread = place->thread,
                                         .checkpoint_id = bytes("1"),
                                         .task_id = bytes(task),
                                         .values = &value,
                                         .value_count = 1};

    assert_err(heddle_put_writes(place->store, &writes, NULL), 0);
}

static struct heddle_tuple *read_place(const struct place *place)
{
    const struct heddle_key key = {.thread = place->thread, .id = bytes("1")};
    struct heddle_tuple *tuple;

    assert_err(heddle_get(place->store, &key, &tuple, NULL), 0);
    return tuple;
}

static void place_init(struct place *place)
{
    struct heddle_checkpoint checkpoint = {.id = bytes("1"),
                                           .checkpoint = bytes("{\"v\":4}"),
                                           .metadata = bytes("{}"),
                                           .new_versions = bytes("{}")};
    struct heddle_tuple *tuple;

    *place = (struct place){.thread = {.id = bytes("t")}};
    assert_err(heddle_open(&place->store, "memory:", NULL), 0);
    checkpoint.thread = place->thread;
    assert_err(heddle_put(place->store, &checkpoint, NULL), 0);
    write_one(place, "ended", "messages", "1");
    write_one(place, "asks", "__interrupt__", "\"first?\"");
    write_one(place, "asks", "__resume__", "\"an older answer\"");
    write_one(place, "waits", "__interrupt__", "\"second?\"");
    tuple = read_place(place);
    assert_err(hd_origin_add(&place->origin, tuple, hd_slice("", 0)), 0);
    heddle_tuple_free(tuple);
}

static void place_fini(struct place *place)
{
    hd_origins_free(place->origin);
    heddle_close(place->store);
}

/* Adds the writes of a run that resumes the interrupts and finishes a task. */
static void answer(struct place *place)
{
    write_one(place, "asks", "__resume__", "\"a new answer\"");
    write_one(place, "asks", "messages", "2");
    write_one(place, "nobody", "__resume__", "\"a new answer\"");
    place->origin->is_touched = true;
}

static bool is_same(const struct heddle_write *a, const struct heddle_write *b)
{
    const struct heddle_bytes *x[] = {&a->task_id, &a->value.channel, &a->value.data};
    const struct heddle_bytes *y[] = {&b->task_id, &b->value.channel, &b->value.data};

    for (size_t i = 0; i < HD_COUNT(x); i++) {
        if (!hd_slice_eq(hd_slice(x[i]->data, x[i]->len), hd_slice(y[i]->data, y[i]->len)))
            return false;
    }
    return a->idx == b->idx;
}

/* The number of old writes in the tuple. */
static size_t count_old(const struct place *place, const struct heddle_tuple *tuple)
{
    size_t count = 0;

    for (size_t i = 0; i < tuple->write_count; i++) {
        for (size_t j = 0; j < place->origin->write_count; j++)
            count += is_same(&tuple->writes[i], &place->origin->writes[j]);
    }
    return count;
}

static void all_is_as_before(void **state)
{
    struct heddle_error fault = {0};
    struct heddle_tuple *tuple;
    struct place place;

    (void)state;
    place_init(&place);
    answer(&place);
    for (int again = 0; again < 2; again++) {
        assert_err(
            hd_origins_restore(place.store, place.origin, &place.thread, HD_NO_GUARD, &fault), 0);
        tuple = read_place(&place);
        assert_int_equal(tuple->write_count, 4);
        assert_int_equal(count_old(&place, tuple), 4);
        heddle_tuple_free(tuple);
    }
    place_fini(&place);
}

/* A resume value may be the old or the new one, but no interrupt and no result is lost. */
static void nothing_goes_that_was_there_before(void **state)
{
    int err = HD_ENOMEM;

    (void)state;
    for (long n = 1; err; n++) {
        struct heddle_error fault = {0};
        struct heddle_tuple *tuple;
        struct place place;

        place_init(&place);
        answer(&place);
        (void)hd_alloc_fail_at(n, 1);
        err = hd_origins_restore(place.store, place.origin, &place.thread, HD_NO_GUARD, &fault);
        (void)hd_alloc_fail_at(0, 0);
        tuple = read_place(&place);
        assert_true(count_old(&place, tuple) >= 3);
        heddle_tuple_free(tuple);
        place_fini(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_as_before),
        cmocka_unit_test(nothing_goes_that_was_there_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
