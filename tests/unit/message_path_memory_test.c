/* The memory of message origins: separation of places, eviction, limits. */
#include "api/state/message_path_memory.h"

#include "base/arena.h"
#include "tests/unit/check.h"

#define MANY 20000 /* more than the limit */

static struct hd_slice recall(struct hd_message_path_memory *memory, const char *thread,
                              const char *message)
{
    const struct hd_message_path_place place = {HD_S("p"), hd_slice_cstr(thread), HD_S("n")};
    struct hd_slice id = hd_message_path_recall(hd_message_path_memory_enter(memory, &place),
                                                hd_slice_cstr(message));

    hd_message_path_memory_leave(memory);
    return id;
}

static void remember(struct hd_message_path_memory *memory, struct hd_message_path_place place,
                     const char *message, const char *checkpoint)
{
    hd_message_path_remember(hd_message_path_memory_enter(memory, &place), hd_slice_cstr(message),
                             hd_slice_cstr(checkpoint));
    hd_message_path_memory_leave(memory);
}

static void places_are_apart(void **state)
{
    const struct hd_message_path_place here = {HD_S("p"), HD_S("t"), HD_S("n")};
    const struct hd_message_path_place others[] = {{HD_S("pt"), HD_S(""), HD_S("n")},
                                                   {HD_S("p"), HD_S("tn"), HD_S("")},
                                                   {HD_S(""), HD_S("pt"), HD_S("n")}};
    struct hd_message_path_memory *memory;

    (void)state;
    assert_int_equal(hd_message_path_memory_create(&memory), 0);
    remember(memory, here, "m", "1");
    for (size_t i = 0; i < HD_COUNT(others); i++)
        remember(memory, others[i], "m", "2");
    assert_true(hd_slice_eq(recall(memory, "t", "m"), HD_S("1")));
    remember(memory, here, "m", "3");
    assert_true(hd_slice_eq(recall(memory, "t", "m"), HD_S("3")));
    assert_int_equal(recall(memory, "t", "other").len, 0);
    assert_int_equal(recall(memory, "t", "").len, 0);
    hd_message_path_memory_destroy(memory);
    hd_message_path_memory_destroy(NULL);
}

static void the_oldest_is_forgotten(void **state)
{
    struct hd_message_path_memory *memory;
    char name[16];

    (void)state;
    assert_int_equal(hd_message_path_memory_create(&memory), 0);
    for (int i = 0; i < 1000; i++) {
        struct hd_message_path_place place = {HD_S("p"), hd_slice(NULL, 0), HD_S("n")};

        (void)snprintf(name, sizeof(name), "%d", i);
        place.thread = hd_slice_cstr(name);
        remember(memory, place, "m", name);
        /* A place in use is not evicted. */
        assert_true(hd_slice_eq(recall(memory, "0", "m"), HD_S("0")));
    }
    assert_true(hd_slice_eq(recall(memory, "999", "m"), HD_S("999")));
    assert_int_equal(recall(memory, "1", "m").len, 0);
    hd_message_path_memory_destroy(memory);
}

static void there_is_a_limit(void **state)
{
    const struct hd_message_path_place place = {HD_S("p"), HD_S("t"), HD_S("n")};
    struct hd_message_path_memory *memory;
    char name[16];
    int known = 0;

    (void)state;
    assert_int_equal(hd_message_path_memory_create(&memory), 0);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i);
        remember(memory, place, name, name);
    }
    for (int i = 0; i < MANY; i++) {
        struct hd_slice id;

        (void)snprintf(name, sizeof(name), "m%d", i);
        id = recall(memory, "t", name);
        assert_true(id.len == 0 || hd_slice_eq(id, hd_slice_cstr(name)));
        known += id.len > 0;
    }
    assert_true(known < MANY);
    hd_message_path_memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_apart),
        cmocka_unit_test(the_oldest_is_forgotten),
        cmocka_unit_test(there_is_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
