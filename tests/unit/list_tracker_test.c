/* The text of a growing list, built by appending, always equals the text of the whole list. */
#include "graph/engine/list_tracker.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/check.h"

static struct hd_val *message(int number)
{
    char id[16];

    snprintf(id, sizeof(id), "m%d", number);
    return hd_val_message("human", hd_val_cstr("some words"), id);
}

/* Saves; true when it continued the text saved before. */
static bool save(struct hd_list_tracker *tracker, const struct hd_val *list)
{
    struct hd_growth *growth;
    struct hd_buf expected;
    char *text;
    bool has_base;

    assert_err(hd_list_tracker_save(tracker, list, &growth), 0);
    if (!growth) {
        assert_true(hd_val_count(list) < HD_LIST_TRACKER_MIN);
        return false;
    }
    hd_buf_init(&expected, 1 << 24);
    assert_err(hd_val_write(&expected, list), 0);
    text = malloc(growth->size);
    assert_non_null(text);
    hd_growth_write(growth, text);
    assert_slice(hd_slice(text, growth->size), hd_buf_slice(&expected));
    has_base = growth->has_base;
    hd_growth_destroy(growth);
    hd_buf_fini(&expected);
    free(text);
    return has_base;
}

static struct hd_val *messages(int count)
{
    struct hd_val *list = hd_val_list();

    for (int i = 0; i < count; i++)
        list = hd_val_append(list, message(i));
    assert_non_null(list);
    return list;
}

static void appending_continues_after_a_save(void **state)
{
    struct hd_list_tracker tracker = {0};
    struct hd_val *list = messages(100), *old, *copy;

    (void)state;
    assert_false(save(&tracker, list));
    for (int i = 0; i < 50; i++) {
        old = hd_val_ref(list);
        list = hd_val_append(list, message(100 + i));
        assert_true(save(&tracker, list));
        assert_true(save(&tracker, list));
        hd_val_unref(old);
    }
    /* the same elements in another buffer */
    copy = hd_val_append(hd_val_slice(list, 0, 149), hd_val_ref(hd_val_at(list, 149)));
    copy = hd_val_append(copy, message(7));
    assert_true(save(&tracker, copy));
    hd_val_unref(copy);
    hd_val_unref(list);
    hd_list_tracker_fini(&tracker);
}

static void other_changes_start_afresh(void **state)
{
    struct hd_list_tracker tracker = {0};
    struct hd_val *list = messages(100), *other;

    (void)state;
    assert_false(save(&tracker, list));
    other = hd_val_replace(hd_val_ref(list), 50, message(1000));
    assert_false(save(&tracker, other));
    other = hd_val_append(other, message(1));
    assert_true(save(&tracker, other));
    hd_val_unref(other);
    other = hd_val_slice(list, 10, 90);
    assert_false(save(&tracker, other));
    hd_val_unref(other);
    assert_false(save(&tracker, list));
    other = messages(HD_LIST_TRACKER_MIN - 1);
    assert_false(save(&tracker, other));
    hd_val_unref(other);
    assert_false(save(&tracker, hd_val_null()));
    assert_null(tracker.listing);
    assert_false(save(&tracker, list));
    hd_val_unref(list);
    hd_list_tracker_fini(&tracker);
}

static int save_twice(void *arg)
{
    struct hd_list_tracker tracker = {0};
    struct hd_val *list = hd_val_ref(arg);
    struct hd_growth *growth = NULL;
    int err = hd_list_tracker_save(&tracker, list, &growth);

    hd_growth_destroy(growth);
    growth = NULL;
    list = hd_val_append(list, hd_val_null());
    if (!err)
        err = list ? hd_list_tracker_save(&tracker, list, &growth) : HD_ENOMEM;
    hd_growth_destroy(growth);
    hd_val_unref(list);
    hd_list_tracker_fini(&tracker);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    struct hd_val *list = messages(40);

    (void)state;
    assert_true(check_every_allocation(save_twice, list) > 8);
    hd_val_unref(list);
}

static void too_deep_is_an_error(void **state)
{
    struct hd_list_tracker tracker = {0};
    struct hd_growth *growth = NULL;
    struct hd_val *list = messages(40), *deep = hd_val_null();

    (void)state;
    for (int i = 0; i < HD_JSON_MAX_DEPTH + 1; i++)
        deep = hd_val_append(hd_val_list(), deep);
    list = hd_val_append(list, deep);
    assert_err(hd_list_tracker_save(&tracker, list, &growth), HD_ELIMIT);
    assert_null(growth);
    hd_val_unref(list);
    hd_list_tracker_fini(&tracker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_continues_after_a_save),
        cmocka_unit_test(other_changes_start_afresh),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(too_deep_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
