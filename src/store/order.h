/*
 * The order of the checkpoints of a namespace, and the latest one.
 *
 * An id contains the time of the process that made the checkpoint. Clocks step back, and clocks of
 * machines differ, so a checkpoint may have a smaller id than its parent. Its parent is still
 * older. The order is:
 *
 *   The key of a checkpoint is the list of those ids on its path from the root that no later id on
 *   that path exceeds: the greatest id of the path, then the greatest after that one, and so on;
 *   the last one is its own. Checkpoints are ordered by these lists, lexicographically. A
 *   checkpoint that is its own ancestor counts as one without a parent.
 *
 * If each id is greater than the parent's id, a list has one id and the order is that of the ids. A
 * checkpoint is always newer than its ancestors. The latest checkpoint is the greatest id; if it
 * has descendants, the greatest of those; and so on.
 *
 * A *stray* is a checkpoint whose parent has a greater id. The index checkpoints_backward contains
 * only the strays, so threads without strays pay one lookup in an empty range. Below the least
 * stray and above the greatest parent of a stray the order is that of the ids: only the *window*
 * between the two is sorted here. A deleted parent counts by its id.
 */
#ifndef HD_STORE_ORDER_H
#define HD_STORE_ORDER_H

#include "store/store.h"

/*
 * The range in which the order may differ from that of the ids; `low` is empty when there are no
 * strays.
 */
struct hd_window {
    struct hd_slice low;  /* the least stray */
    struct hd_slice high; /* the greatest parent of a stray */
};

static inline bool hd_window_has(const struct hd_window *window, struct hd_slice id)
{
    return window->low.len > 0 && hd_slice_cmp(id, window->low) >= 0 &&
           hd_slice_cmp(id, window->high) <= 0;
}

/* Adds a row of checkpoints_backward that has its parent. Copies into the arena. */
HD_MUST_CHECK int hd_window_add(struct hd_window *window, struct hd_arena *arena,
                                const struct hd_cell *cells);

HD_MUST_CHECK int hd_window_read(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                                 struct hd_arena *arena, struct hd_window *out,
                                 struct heddle_error *fault);

/* The latest id; empty: it is the greatest id, or there are no checkpoints. */
HD_MUST_CHECK int hd_latest_id(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                               struct hd_arena *arena, struct hd_slice *out,
                               struct heddle_error *fault);

/* The greatest id of the namespace, which a new id must sort after; empty: no checkpoints. */
HD_MUST_CHECK int hd_greatest_id(struct heddle *heddle, const struct heddle_thread *thread,
                                 struct hd_slice ns, struct hd_arena *arena, struct hd_slice *out,
                                 struct heddle_error *fault);

/* The least id that is greater than `id`, as a bound of a query. */
HD_MUST_CHECK int hd_id_behind(struct hd_arena *arena, struct hd_slice id, struct hd_cell *out);

/* A checkpoint of the window. */
struct hd_order_node {
    struct hd_slice id;
    struct hd_slice parent; /* empty: no parent */
    bool is_marked;         /* for the caller's use */
};

struct hd_order {
    struct hd_order_node *nodes; /* oldest first after sorting */
    size_t count;
    size_t cap;
};

void hd_order_fini(struct hd_order *order);
/* Borrows both. */
HD_MUST_CHECK int hd_order_add(struct hd_order *order, struct hd_slice id, struct hd_slice parent,
                               bool is_marked);
/* The ids must be unique. */
HD_MUST_CHECK int hd_order_sort(struct hd_order *order);

/* All checkpoints of the window in order; their ids are in the arena. */
HD_MUST_CHECK int hd_order_read(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                                const struct hd_window *window, struct hd_arena *arena,
                                struct hd_order *out, struct heddle_error *fault);

#endif
