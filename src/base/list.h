/*
 * Intrusive lists: the elements contain their links. No operation allocates or fails.
 *
 * A list is a pointer to its first element. Its elements are linked both ways, so that one leaves
 * the list without a search and without knowing the list:
 *
 *   struct conn {
 *       HD_DLINK(struct conn) all;
 *   };
 *   struct conn *conns = NULL;
 *
 *   hd_dlist_insert(&conns, conn, all);
 *   for (struct conn *conn = conns; conn; conn = conn->all.next)
 *       …
 *   hd_dlist_remove(conn, all);
 *
 * A FIFO has two ends, and its elements are linked one way by a pointer of any name. All bytes zero
 * is an empty FIFO, and a FIFO is moved by assignment:
 *
 *   HD_FIFO(struct task) tasks = {0};
 *
 *   hd_fifo_push(&tasks, task, next);
 *   for (struct task *task = tasks.first; task; task = task->next)
 *       …
 *   hd_fifo_pop(&tasks, task, next);
 */
#ifndef HD_BASE_LIST_H
#define HD_BASE_LIST_H

#include <stddef.h>

/* ---- lists ------------------------------------------------------------ */

/* `at` is the pointer that points to the element; NULL while the element is in no list. */
#define HD_DLINK(type)    \
    struct {              \
        type *next, **at; \
    }

/* Inserts an element, which is in no list, in front of the one that *list points to. */
#define hd_dlist_insert(list, item, link)            \
    do {                                             \
        (item)->link.next = *(list);                 \
        (item)->link.at = (list);                    \
        if (*(list))                                 \
            (*(list))->link.at = &(item)->link.next; \
        *(list) = (item);                            \
    } while (0)

/* Removes the element from its list; does nothing when it is in none. */
#define hd_dlist_remove(item, link)                       \
    do {                                                  \
        if (!(item)->link.at)                             \
            break;                                        \
        *(item)->link.at = (item)->link.next;             \
        if ((item)->link.next)                            \
            (item)->link.next->link.at = (item)->link.at; \
        (item)->link.next = NULL;                         \
        (item)->link.at = NULL;                           \
    } while (0)

/* ---- FIFOs ------------------------------------------------------------ */

#define HD_FIFO(type)       \
    struct {                \
        type *first, *last; \
    }

/* Appends an element. `link` is the member that points to the next one. */
#define hd_fifo_push(fifo, item, link)   \
    do {                                 \
        (item)->link = NULL;             \
        if ((fifo)->last)                \
            (fifo)->last->link = (item); \
        else                             \
            (fifo)->first = (item);      \
        (fifo)->last = (item);           \
    } while (0)

/* Removes the first element and assigns it to `item`; NULL when there is none. */
#define hd_fifo_pop(fifo, item, link) \
    do {                              \
        (item) = (fifo)->first;       \
        if (!(item))                  \
            break;                    \
        (fifo)->first = (item)->link; \
        if (!(fifo)->first)           \
            (fifo)->last = NULL;      \
        (item)->link = NULL;          \
    } while (0)

#endif
