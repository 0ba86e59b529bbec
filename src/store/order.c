#include "store/order.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "store/scan.h"

#define NONE ((size_t)-1)

/* ---- sorting ---------------------------------------------------------- */

/*
 * The lists of order.h form a tree: the list of a checkpoint without its last id is the list of the
 * checkpoint `up`. The order is a walk of that tree, parents first, siblings by id.
 */
struct order_place {
    struct hd_order_node node;
    bool is_deleted; /* only its id is known: it is the parent of a stray */
    enum { PLACE_NEW, PLACE_OPEN, PLACE_DONE } state;
    size_t parent;
    size_t up; /* NONE: its list has one id */
    size_t first, last, next;
};

static int by_id(const void *a, const void *b)
{
    const struct order_place *x = a, *y = b;

    return hd_slice_cmp(x->node.id, y->node.id);
}

static size_t order_find_place(const struct order_place *places, size_t count, struct hd_slice id)
{
    const struct order_place key = {.node.id = id};
    const struct order_place *found =
        id.len > 0 ? bsearch(&key, places, count, sizeof(*places), by_id) : NULL;

    return found ? (size_t)(found - places) : NONE;
}

static bool is_stray(const struct hd_order_node *node)
{
    return hd_slice_cmp(node->parent, node->id) > 0;
}

/* Sorts the nodes by id and adds deleted parents of strays; returns their number. */
static size_t make_places(const struct hd_order *order, struct order_place *places)
{
    size_t count = order->count, all = order->count, kept = 0;

    for (size_t i = 0; i < count; i++)
        places[i] = (struct order_place){.node = order->nodes[i]};
    qsort(places, count, sizeof(*places), by_id);
    for (size_t i = 0; i < count; i++) {
        const struct hd_order_node *node = &places[i].node;

        if (is_stray(node) && order_find_place(places, count, node->parent) == NONE)
            places[all++] = (struct order_place){.node.id = node->parent, .is_deleted = true};
    }
    if (all == count)
        return all;
    qsort(places, all, sizeof(*places), by_id);
    for (size_t i = 0; i < all; i++) { /* two strays may have the same deleted parent */
        if (kept == 0 || by_id(&places[kept - 1], &places[i]) != 0)
            places[kept++] = places[i];
    }
    return kept;
}

static void find_up(struct order_place *places, size_t at)
{
    struct order_place *place = &places[at];
    size_t up = place->parent;

    while (up != NONE && by_id(&places[up], place) < 0)
        up = places[up].up;
    place->up = up;
    place->state = PLACE_DONE;
}

/* The path returns to `at`: from there on it is a cycle. */
static void break_circle(struct order_place *places, const size_t *way, size_t len, size_t at)
{
    do
        places[way[--len]].parent = NONE;
    while (way[len] != at);
}

/* Parents come before their children. `way` has room for all nodes. */
static void find_ups(struct order_place *places, size_t count, size_t *way)
{
    for (size_t i = 0; i < count; i++)
        places[i].parent = order_find_place(places, count, places[i].node.parent);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0, at = i;

        while (at != NONE && places[at].state == PLACE_NEW) {
            places[at].state = PLACE_OPEN;
            way[len++] = at;
            at = places[at].parent;
        }
        if (at != NONE && places[at].state == PLACE_OPEN)
            break_circle(places, way, len, at);
        while (len > 0)
            find_up(places, way[--len]);
    }
}

/* Children are linked in the order of their ids; the last place is the common root. */
static void link_children(struct order_place *places, size_t count)
{
    for (size_t i = 0; i <= count; i++)
        places[i].first = places[i].last = places[i].next = NONE;
    for (size_t i = 0; i < count; i++) {
        struct order_place *up = &places[places[i].up == NONE ? count : places[i].up];

        if (up->last == NONE)
            up->first = i;
        else
            places[up->last].next = i;
        up->last = i;
    }
}

static void order_walk(struct order_place *places, size_t count, struct hd_order *order)
{
    size_t at = places[count].first, done = 0;

    while (at != NONE) {
        if (!places[at].is_deleted)
            order->nodes[done++] = places[at].node;
        if (places[at].first != NONE) {
            at = places[at].first;
            continue;
        }
        while (at != NONE && places[at].next == NONE)
            at = places[at].up;
        at = at == NONE ? NONE : places[at].next;
    }
}

int hd_order_sort(struct hd_order *order)
{
    size_t count = order->count;
    struct order_place *places = hd_calloc(2 * count + 1, sizeof(*places));
    size_t *way = hd_calloc(2 * count + 1, sizeof(*way));
    int err = places && way ? 0 : HD_ENOMEM;

    if (!err) {
        count = make_places(order, places);
        find_ups(places, count, way);
        link_children(places, count);
        order_walk(places, count, order);
    }
    hd_free(places);
    hd_free(way);
    return err;
}

void hd_order_fini(struct hd_order *order)
{
    hd_free(order->nodes);
    *order = (struct hd_order){.nodes = NULL};
}

int hd_order_add(struct hd_order *order, struct hd_slice id, struct hd_slice parent, bool is_marked)
{
    int err = hd_array_grow(order->nodes, order->count, order->cap);

    if (!err)
        order->nodes[order->count++] = (struct hd_order_node){id, parent, is_marked};
    return err;
}

/* ---- reading ---------------------------------------------------------- */

int hd_window_add(struct hd_window *window, struct hd_arena *arena, const struct hd_cell *cells)
{
    struct hd_slice id = cells[HD_CHECKPOINTS_ID].bytes;
    struct hd_slice parent = cells[HD_CHECKPOINTS_PARENT].bytes;
    int err = 0;

    if (window->low.len == 0 || hd_slice_cmp(id, window->low) < 0)
        err = hd_arena_copy(arena, id, &window->low);
    if (!err && hd_slice_cmp(parent, window->high) > 0)
        err = hd_arena_copy(arena, parent, &window->high);
    return err;
}

struct window_reader {
    struct hd_window *window;
    struct hd_arena *arena;
};

static int on_stray(void *arg, size_t which, const struct hd_cell *cells)
{
    struct window_reader *r = arg;

    (void)which;
    return hd_window_add(r->window, r->arena, cells);
}

int hd_window_read(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                   struct hd_arena *arena, struct hd_window *out, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(thread), hd_cell_bytes(ns)};
    struct window_reader r = {out, arena};

    *out = (struct hd_window){.low = {NULL, 0}};
    return hd_scan(store->backend,
                   (struct hd_query){.table = HD_CHECKPOINTS,
                                     .index = HD_CHECKPOINTS_BACKWARD,
                                     .prefix = prefix,
                                     .prefix_count = HD_COUNT(prefix),
                                     .columns = 1u << HD_CHECKPOINTS_PARENT},
                   on_stray, &r, fault);
}

int hd_id_behind(struct hd_arena *arena, struct hd_slice id, struct hd_cell *out)
{
    char *bytes = hd_arena_calloc(arena, id.len + 1, 1);

    if (!bytes)
        return HD_ENOMEM;
    if (id.len > 0)
        memcpy(bytes, id.ptr, id.len);
    *out = hd_cell_bytes(hd_slice(bytes, id.len + 1));
    return 0;
}

/* True when there is an id above the window. */
static int on_above(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 1;
}

static int has_above(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                     const struct hd_window *window, struct hd_arena *arena, bool *out,
                     struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(thread), hd_cell_bytes(ns)};
    struct hd_cell low;
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .low = &low,
                             .limit = 1};
    int err = hd_id_behind(arena, window->high, &low);

    *out = false;
    return err ? err : hd_backend_read(store->backend, &query, 1, on_above, out, fault);
}

int hd_latest_id(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                 struct hd_arena *arena, struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_order order = {.nodes = NULL};
    struct hd_window window;
    bool is_above = false;
    int err = hd_window_read(store, thread, ns, arena, &window, fault);

    *out = hd_slice(NULL, 0);
    if (err || window.low.len == 0)
        return err;
    err = has_above(store, thread, ns, &window, arena, &is_above, fault);
    if (!err && !is_above)
        err = hd_order_read(store, thread, ns, &window, arena, &order, fault);
    if (!err && order.count > 0)
        *out = order.nodes[order.count - 1].id;
    hd_order_fini(&order);
    return err;
}

struct id_reader {
    struct hd_arena *arena;
    struct hd_slice id;
};

static int on_id(void *arg, size_t which, const struct hd_cell *cells)
{
    struct id_reader *r = arg;

    (void)which;
    return hd_arena_copy(r->arena, cells[HD_CHECKPOINTS_ID].bytes, &r->id);
}

int hd_greatest_id(struct heddle *heddle, const struct heddle_thread *thread, struct hd_slice ns,
                   struct hd_arena *arena, struct hd_slice *out, struct heddle_error *fault)
{
    struct id_reader r = {.arena = arena};
    struct hd_cell prefix[2];
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .is_reverse = true,
                             .limit = 1};
    struct hd_slice key;
    int err = hd_store_thread_key(thread, arena, &key, fault);

    if (err)
        return err;
    prefix[0] = hd_cell_bytes(key);
    prefix[1] = hd_cell_bytes(ns);
    err = hd_backend_read(hd_store_of(heddle)->backend, &query, 1, on_id, &r, fault);
    *out = r.id;
    return err;
}

struct order_reader {
    struct hd_order *order;
    struct hd_arena *arena;
};

static int on_node(void *arg, size_t which, const struct hd_cell *cells)
{
    struct order_reader *r = arg;
    struct hd_slice id, parent;
    int err = hd_arena_copy(r->arena, cells[HD_CHECKPOINTS_ID].bytes, &id);

    (void)which;
    if (!err)
        err = hd_arena_copy(r->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &parent);
    return err ? err : hd_order_add(r->order, id, parent, false);
}

int hd_order_read(struct hd_store *store, struct hd_slice thread, struct hd_slice ns,
                  const struct hd_window *window, struct hd_arena *arena, struct hd_order *out,
                  struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(thread), hd_cell_bytes(ns)};
    struct hd_cell low = hd_cell_bytes(window->low), high;
    struct order_reader r = {out, arena};
    int err = hd_id_behind(arena, window->high, &high);

    if (!err)
        err = hd_scan(store->backend,
                      (struct hd_query){.table = HD_CHECKPOINTS,
                                        .index = HD_PRIMARY,
                                        .prefix = prefix,
                                        .prefix_count = HD_COUNT(prefix),
                                        .low = &low,
                                        .high = &high,
                                        .columns = 1u << HD_CHECKPOINTS_PARENT},
                      on_node, &r, fault);
    return err ? err : hd_order_sort(out);
}
