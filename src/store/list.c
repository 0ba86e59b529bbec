/*
 * Lists checkpoints: first collects the matching keys, newest first, then reads the checkpoints
 * page by page. The keys of one namespace come in order from the database and stop at the limit;
 * across namespaces or threads all matching keys are collected and sorted, since no index orders
 * them by id alone.
 *
 * If a namespace has strays (order.h), the keys of their window are collected and sorted between
 * those above and those below it.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/allowance.h"
#include "store/order.h"
#include "store/scan.h"
#include "store/store.h"

enum { TUPLES_PAGE = 16 };
#define KEYS_BYTES_MAX ((size_t)2 << 30)

struct heddle_list {
    struct hd_store *store;
    int flags;
    struct hd_arena arena; /* of the keys */
    HD_VEC(struct hd_key) keys;
    size_t pos; /* start of the next page */
    struct hd_allowance *allowance;
    bool keeps;
    uint64_t page_taken; /* bytes of the allowance taken by the page */

    struct hd_arena page_arena;
    struct heddle_tuple page[TUPLES_PAGE];
    size_t page_count;
    size_t page_pos;
};

struct gatherer {
    struct heddle_list *list;
    const struct heddle_query *query;
    hd_json_val filter;
    struct heddle_error *fault;
    struct hd_slice thread; /* stored key, if limited to one thread */
    struct hd_slice ns;     /* in the arena, if limited to one namespace */
    size_t limit;
    bool is_ordered;
    struct hd_order *window; /* not NULL: collects the keys of a window */
};

static bool list_matches(struct gatherer *g, const struct hd_cell *cells, int *err)
{
    struct hd_slice id = cells[HD_CHECKPOINTS_ID].bytes;
    struct hd_json metadata = {0};
    bool is_match;

    if (g->query->id && !hd_slice_eq(id, hd_from_public(*g->query->id)))
        return false;
    if (g->query->before && !g->is_ordered &&
        hd_slice_cmp(id, hd_from_public(*g->query->before)) >= 0)
        return false;
    if (g->query->ns && !hd_slice_eq(cells[HD_CHECKPOINTS_NS].bytes, hd_from_public(*g->query->ns)))
        return false;
    if (!g->filter)
        return true;
    *err = hd_json_parse(&metadata, cells[HD_CHECKPOINTS_METADATA].bytes, g->fault);
    is_match = !*err && hd_json_contains(hd_json_root(&metadata), g->filter);
    hd_json_fini(&metadata);
    return is_match;
}

static int copy_key(struct hd_arena *arena, const struct hd_cell *cells, struct hd_key *out)
{
    int err = hd_arena_copy(arena, cells[HD_CHECKPOINTS_THREAD].bytes, &out->thread);

    if (!err)
        err = hd_arena_copy(arena, cells[HD_CHECKPOINTS_NS].bytes, &out->ns);
    if (!err)
        err = hd_arena_copy(arena, cells[HD_CHECKPOINTS_ID].bytes, &out->id);
    return err;
}

static bool is_enough(const struct gatherer *g)
{
    return g->is_ordered && g->list->keys.count >= g->limit;
}

/* Keys that do not match are part of the order too. */
static int add_to_window(struct gatherer *g, const struct hd_cell *cells, bool is_match)
{
    struct hd_slice id, parent;
    int err = hd_arena_copy(&g->list->arena, cells[HD_CHECKPOINTS_ID].bytes, &id);

    if (!err)
        err = hd_arena_copy(&g->list->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &parent);
    return err ? err : hd_order_add(g->window, id, parent, is_match);
}

static int on_key(void *arg, size_t which, const struct hd_cell *cells)
{
    struct gatherer *g = arg;
    struct hd_key key;
    int err = 0;
    bool is_match = list_matches(g, cells, &err);

    (void)which;
    if (!err && g->window)
        return add_to_window(g, cells, is_match);
    if (err || !is_match)
        return err;
    err = copy_key(&g->list->arena, cells, &key);
    if (!err)
        err = hd_vec_push(&g->list->keys, key);
    return err ? err : is_enough(g);
}

static struct hd_cell key_bound(struct hd_arena *arena, struct hd_slice principal, char end)
{
    char *bound = hd_arena_alloc(arena, principal.len + 1);

    if (!bound)
        return hd_cell_null();
    if (principal.len)
        memcpy(bound, principal.ptr, principal.len);
    bound[principal.len] = end;
    return hd_cell_bytes(hd_slice(bound, principal.len + 1));
}

/* ---- one namespace ---- */

static int list_scan(struct gatherer *g, struct hd_query query)
{
    query.table = HD_CHECKPOINTS;
    query.columns |= g->filter ? 1u << HD_CHECKPOINTS_METADATA : 0;
    return hd_scan(g->list->store->backend, query, on_key, g, g->fault);
}

/* The keys from `low` up to `high` (exclusive), newest first. */
static int gather_range(struct gatherer *g, const struct hd_cell *low, const struct hd_cell *high)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(g->thread), hd_cell_bytes(g->ns)};

    if (is_enough(g))
        return 0;
    return list_scan(g, (struct hd_query){.index = HD_PRIMARY,
                                          .prefix = prefix,
                                          .prefix_count = HD_COUNT(prefix),
                                          .low = low,
                                          .high = high,
                                          .is_reverse = true,
                                          .columns = g->window ? 1u << HD_CHECKPOINTS_PARENT : 0});
}

/* The keys of the window in their order, after `before` unless that is empty. */
static int take_window(struct gatherer *g, struct hd_order *order, struct hd_slice before)
{
    bool is_behind = before.len == 0;
    int err = 0;

    for (size_t i = order->count; !err && i > 0 && !is_enough(g); i--) {
        const struct hd_order_node *node = &order->nodes[i - 1];

        if (is_behind && node->is_marked)
            err = hd_vec_push(&g->list->keys, (struct hd_key){g->thread, g->ns, node->id});
        is_behind = is_behind || hd_slice_eq(node->id, before);
    }
    return err;
}

static bool has_node(const struct hd_order *order, struct hd_slice id)
{
    for (size_t i = 0; i < order->count; i++) {
        if (hd_slice_eq(order->nodes[i].id, id))
            return true;
    }
    return false;
}

static int gather_window(struct gatherer *g, const struct hd_window *window, struct hd_slice before)
{
    struct hd_order order = {.nodes = NULL};
    struct hd_cell low = hd_cell_bytes(window->low), high;
    int err = hd_id_behind(&g->list->arena, window->high, &high);

    g->window = &order;
    if (!err)
        err = gather_range(g, &low, &high);
    g->window = NULL;
    if (!err && before.len > 0 && !has_node(&order, before))
        err = hd_order_add(&order, before, hd_slice(NULL, 0), false);
    if (!err)
        err = hd_order_sort(&order);
    if (!err)
        err = take_window(g, &order, before);
    hd_order_fini(&order);
    return err;
}

/* With strays: the keys above their window, the window, and the keys below it. */
static int gather_parts(struct gatherer *g, const struct hd_window *window)
{
    struct hd_slice before = g->query->before ? hd_from_public(*g->query->before) : HD_S("");
    bool is_above = before.len > 0 && hd_slice_cmp(before, window->high) > 0;
    bool is_below = before.len > 0 && hd_slice_cmp(before, window->low) < 0;
    struct hd_cell behind, end = hd_cell_bytes(before), low = hd_cell_bytes(window->low);
    int err = hd_id_behind(&g->list->arena, window->high, &behind);

    if (!err && (is_above || before.len == 0))
        err = gather_range(g, &behind, is_above ? &end : NULL);
    if (!err && !is_below)
        err = gather_window(g, window, is_above ? HD_S("") : before);
    if (!err)
        err = gather_range(g, NULL, is_below ? &end : &low);
    return err;
}

static int gather_line(struct gatherer *g)
{
    const struct heddle_query *q = g->query;
    struct hd_window window;
    struct hd_cell end;
    int err;

    g->is_ordered = true;
    if (q->before && q->before->len == 0)
        return 0; /* no id is less than an empty one */
    /* The read finds the latest. */
    if (g->limit == 1 && !q->before && !g->filter)
        return hd_vec_push(&g->list->keys, (struct hd_key){g->thread, g->ns, {NULL, 0}});
    err = hd_window_read(g->list->store, g->thread, g->ns, &g->list->arena, &window, g->fault);
    if (err)
        return err;
    if (window.low.len > 0)
        return gather_parts(g, &window);
    if (q->before)
        end = hd_cell_bytes(hd_from_public(*q->before));
    return gather_range(g, NULL, q->before ? &end : NULL);
}

/* ---- several namespaces ---- */

static int newest_first(const void *a, const void *b)
{
    const struct hd_key *x = a, *y = b;
    int order = hd_slice_cmp(y->id, x->id);

    if (order == 0)
        order = hd_slice_cmp(x->thread, y->thread);
    return order ? order : hd_slice_cmp(x->ns, y->ns);
}

/*
 * The keys of a window keep their set of positions among all others, in their own order. The window
 * is that of one namespace; `keys` are all keys, newest first by id.
 */
static int rearrange(struct gatherer *g, const struct hd_key *space, const struct hd_window *window)
{
    struct heddle_list *list = g->list;
    struct hd_order order = {.nodes = NULL};
    struct hd_map there;
    size_t node;
    int err = hd_order_read(list->store, space->thread, space->ns, window, &list->arena, &order,
                            g->fault);

    hd_map_init(&there, SIZE_MAX / 2);
    for (size_t i = 0; !err && i < list->keys.count; i++) {
        if (hd_slice_eq(list->keys.items[i].thread, space->thread) &&
            hd_slice_eq(list->keys.items[i].ns, space->ns))
            err = hd_map_put(&there, list->keys.items[i].id, list);
    }
    node = order.count;
    for (size_t i = 0; !err && i < list->keys.count; i++) {
        struct hd_key *key = &list->keys.items[i];

        if (!hd_window_has(window, key->id) || !hd_slice_eq(key->thread, space->thread) ||
            !hd_slice_eq(key->ns, space->ns))
            continue;
        while (node > 0 && !hd_map_get(&there, order.nodes[node - 1].id))
            node--;
        if (node > 0)
            key->id = order.nodes[--node].id;
    }
    hd_map_fini(&there);
    hd_order_fini(&order);
    return err;
}

/* The namespaces that have strays, one after the other. */
struct spaces {
    struct gatherer *g;
    struct hd_key space; /* empty: none yet */
    struct hd_window window;
};

static int end_space(struct spaces *spaces)
{
    int err =
        spaces->window.low.len > 0 ? rearrange(spaces->g, &spaces->space, &spaces->window) : 0;

    spaces->window = (struct hd_window){.low = {NULL, 0}};
    return err;
}

static int on_stray(void *arg, size_t which, const struct hd_cell *cells)
{
    struct spaces *spaces = arg;
    struct hd_arena *arena = &spaces->g->list->arena;
    int err = 0;

    (void)which;
    if (!hd_slice_eq(cells[HD_CHECKPOINTS_THREAD].bytes, spaces->space.thread) ||
        !hd_slice_eq(cells[HD_CHECKPOINTS_NS].bytes, spaces->space.ns)) {
        err = end_space(spaces);
        if (!err)
            err = copy_key(arena, cells, &spaces->space);
    }
    return err ? err : hd_window_add(&spaces->window, arena, cells);
}

static int gather_all(struct gatherer *g)
{
    struct spaces spaces = {.g = g};
    struct hd_cell prefix = hd_cell_bytes(g->thread);
    struct hd_cell low = key_bound(&g->list->arena, hd_from_public(g->query->principal), ':');
    struct hd_cell high = key_bound(&g->list->arena, hd_from_public(g->query->principal), ':' + 1);
    struct hd_query query = {.index = HD_PRIMARY};
    int err;

    if (low.kind == HD_CELL_NULL || high.kind == HD_CELL_NULL)
        return HD_ENOMEM;
    if (g->thread.ptr) {
        query.prefix = &prefix;
        query.prefix_count = 1;
    } else { /* from "principal:" up to the byte after ':' */
        query.low = &low;
        query.high = &high;
    }
    err = list_scan(g, query);
    if (err || g->list->keys.count < 2)
        return err;
    qsort(g->list->keys.items, g->list->keys.count, sizeof(*g->list->keys.items), newest_first);
    query.table = HD_CHECKPOINTS;
    query.index = HD_CHECKPOINTS_BACKWARD;
    query.columns = 1u << HD_CHECKPOINTS_PARENT;
    err = hd_scan(g->list->store->backend, query, on_stray, &spaces, g->fault);
    return err ? err : end_space(&spaces);
}

/* ---- the whole list ---- */

static int gather_one(struct gatherer *g)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(g->thread), hd_cell_bytes(g->ns),
                                     hd_cell_bytes(hd_from_public(*g->query->id))};

    return list_scan(
        g,
        (struct hd_query){.index = HD_PRIMARY, .prefix = prefix, .prefix_count = HD_COUNT(prefix)});
}

static int gather(struct gatherer *g)
{
    if (!g->thread.ptr || !g->query->ns)
        return gather_all(g);
    return g->query->id ? gather_one(g) : gather_line(g);
}

static int list_fill(struct heddle_list *list, const struct heddle_query *query,
                     struct heddle_error *fault)
{
    struct gatherer g = {.list = list, .query = query, .fault = fault};
    struct hd_json filter = {0};
    int err = hd_check_principal(hd_from_public(query->principal), fault);

    g.limit = query->limit < 0 ? SIZE_MAX : (size_t)query->limit;
    if (err || g.limit == 0)
        return err;
    if (query->thread) {
        struct heddle_thread thread = {query->principal, *query->thread};

        err = hd_store_thread_key(&thread, &list->arena, &g.thread, fault);
    }
    if (!err && query->ns)
        err = hd_arena_copy(&list->arena, hd_from_public(*query->ns), &g.ns);
    if (!err && query->filter.len) {
        err = hd_json_parse(&filter, hd_from_public(query->filter), fault);
        if (!err && !hd_json_is_object(hd_json_root(&filter)))
            err = hd_error_set(fault, HD_EINVAL, "filter is %s, not an object",
                               hd_json_type_name(hd_json_root(&filter)));
        if (!err && hd_json_size(hd_json_root(&filter)) > 0)
            g.filter = hd_json_root(&filter);
    }
    if (!err)
        err = gather(&g);
    hd_json_fini(&filter);
    if (err)
        return err;
    if (list->keys.count > g.limit)
        list->keys.count = g.limit;
    return 0;
}

int hd_list_open(struct hd_store *store, const struct heddle_query *query, struct heddle_list **out,
                 struct heddle_error *fault)
{
    struct heddle_list *list = hd_calloc(1, sizeof(*list));
    int err;

    if (!list)
        return HD_ENOMEM;
    list->store = store;
    list->flags = query->flags;
    hd_arena_init(&list->arena, KEYS_BYTES_MAX);
    hd_arena_init(&list->page_arena, SIZE_MAX / 2);
    err = list_fill(list, query, fault);
    if (err) {
        hd_list_close(list);
        return err;
    }
    *out = list;
    return 0;
}

void hd_list_within(struct heddle_list *list, struct hd_allowance *allowance, bool keeps)
{
    list->allowance = allowance;
    list->keeps = keeps;
}

static void drop_page(struct heddle_list *list)
{
    hd_arena_reset(&list->page_arena);
    list->page_count = list->page_pos = 0;
    if (list->page_taken > 0 && !list->keeps)
        list->allowance->give(list->allowance, list->page_taken);
    list->page_taken = 0;
}

static int list_read_page(struct heddle_list *list, size_t count, struct heddle_error *fault)
{
    uint64_t taken = list->allowance ? list->allowance->taken : 0;
    int err;

    drop_page(list);
    err = hd_store_read_tuples(list->store, list->keys.items + list->pos, count, list->flags,
                               count > 1 || list->keeps ? list->allowance : NULL, &list->page_arena,
                               list->page, fault);
    if (!err && list->allowance)
        list->page_taken = list->allowance->taken - taken;
    if (err == HD_ELIMIT && list->allowance)
        list->allowance->fits += list->pos;
    return err;
}

static int next_page(struct heddle_list *list, struct heddle_error *fault)
{
    size_t left = list->keys.count - list->pos;
    size_t count = left < TUPLES_PAGE ? left : TUPLES_PAGE;
    int err = list_read_page(list, count, fault);

    while (err == HD_ELIMIT && list->allowance && !list->keeps && count > 1) {
        count /= 2;
        err = list_read_page(list, count, fault);
    }
    if (err)
        return err;
    list->pos += count;
    list->page_count = count;
    return 0;
}

int hd_list_next(struct heddle_list *list, const struct heddle_tuple **out,
                 struct heddle_error *fault)
{
    for (;;) {
        while (list->page_pos < list->page_count) {
            const struct heddle_tuple *tuple = &list->page[list->page_pos++];

            if (tuple->id.data) {
                *out = tuple;
                return 0;
            }
        }
        if (list->pos == list->keys.count)
            return HD_ENOTFOUND;
        int err = next_page(list, fault);

        if (err)
            return err;
    }
}

void hd_list_close(struct heddle_list *list)
{
    if (!list)
        return;
    drop_page(list);
    hd_arena_fini(&list->page_arena);
    hd_arena_fini(&list->arena);
    hd_vec_fini(&list->keys);
    hd_free(list);
}
