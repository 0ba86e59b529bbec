#include "base/list.h"

#include "tests/unit/check.h"

struct item {
    HD_DLINK(struct item) all;
    struct item *next;
    int number;
};

typedef HD_FIFO(struct item) items;

/* The numbers as digits of one number. */
static int digits_of_list(const struct item *list)
{
    int digits = 0;

    for (const struct item *item = list; item; item = item->all.next)
        digits = digits * 10 + item->number;
    return digits;
}

static int digits_of_fifo(const items *fifo)
{
    const struct item *last = NULL;
    int digits = 0;

    for (const struct item *item = fifo->first; item; item = item->next) {
        digits = digits * 10 + item->number;
        last = item;
    }
    assert_ptr_equal(fifo->last, last);
    return digits;
}

static void an_element_is_inserted_in_front(void **state)
{
    struct item a = {.number = 1}, b = {.number = 2}, c = {.number = 3}, *list = NULL;

    (void)state;
    hd_dlist_insert(&list, &a, all);
    hd_dlist_insert(&list, &b, all);
    assert_int_equal(digits_of_list(list), 21);
    hd_dlist_insert(&b.all.next, &c, all); /* between the two */
    assert_int_equal(digits_of_list(list), 231);
}

static void an_element_leaves_from_any_place(void **state)
{
    (void)state;
    for (int gone = 0; gone < 3; gone++) {
        static const int left[] = {32, 31, 21};
        struct item nodes[3] = {0}, *list = NULL;

        for (int i = 0; i < 3; i++) {
            nodes[i].number = i + 1;
            hd_dlist_insert(&list, &nodes[i], all);
        }
        hd_dlist_remove(&nodes[gone], all);
        assert_int_equal(digits_of_list(list), left[gone]);
        assert_null(nodes[gone].all.at);
        hd_dlist_remove(&nodes[gone], all); /* it is in no list */
        assert_int_equal(digits_of_list(list), left[gone]);
        hd_dlist_insert(&list, &nodes[gone], all);
        for (int i = 0; i < 3; i++)
            hd_dlist_remove(&nodes[i], all);
        assert_null(list);
    }
}

static void a_fifo_keeps_the_order(void **state)
{
    struct item nodes[3] = {{.number = 1}, {.number = 2}, {.number = 3}}, *item;
    items fifo = {0}, moved;

    (void)state;
    hd_fifo_pop(&fifo, item, next);
    assert_null(item);
    for (int i = 0; i < 3; i++) {
        nodes[i].next = &nodes[0]; /* is replaced */
        hd_fifo_push(&fifo, &nodes[i], next);
    }
    assert_int_equal(digits_of_fifo(&fifo), 123);
    hd_fifo_pop(&fifo, item, next);
    assert_ptr_equal(item, &nodes[0]);
    assert_null(item->next);
    hd_fifo_push(&fifo, item, next);
    assert_int_equal(digits_of_fifo(&fifo), 231);
    moved = fifo;
    for (int i = 0; i < 3; i++)
        hd_fifo_pop(&moved, item, next);
    assert_ptr_equal(item, &nodes[0]);
    assert_null(moved.first);
    assert_null(moved.last);
    hd_fifo_push(&moved, &nodes[1], next);
    assert_int_equal(digits_of_fifo(&moved), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_is_inserted_in_front),
        cmocka_unit_test(an_element_leaves_from_any_place),
        cmocka_unit_test(a_fifo_keeps_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
