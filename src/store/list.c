/*
 * Listing: first the keys that match, newest first, then page by page what
 * they stand for. The keys of one namespace come in order from the database
 * and stop at the limit; across namespaces or threads all matching keys are
 * gathered and sorted, since no index orders them by id alone.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "store/scan.h"
#include "store/store.h"

enum { TUPLES_PAGE = 16 };
#define KEYS_BYTES_MAX ((size_t)2 << 30)

struct heddle_list {
    struct hd_store *store;
    int flags;
    struct hd_arena arena; /* of the keys */
    struct hd_key *keys;
    size_t count;
    size_t cap;
    size_t pos; /* of the next page */

    struct hd_arena page_arena;
    struct heddle_tuple page[TUPLES_PAGE];
    size_t page_count;
    size_t page_pos;
};

struct gatherer {
    struct heddle_list *list;
    const struct heddle_query *query;
    hd_json_val filter;
    struct hd_fault *fault;
    struct hd_slice thread; /* stored key, when one is asked for */
    size_t limit;
    bool is_ordered;
};

static bool matches(struct gatherer *g, const struct hd_cell *cells, int *err)
{
    struct hd_slice id = cells[HD_CHECKPOINTS_ID].bytes;
    struct hd_json metadata = {0};
    bool is_match;

    if (g->query->id && !hd_slice_eq(id, hd_from_public(*g->query->id)))
        return false;
    if (g->query->before && hd_slice_cmp(id, hd_from_public(*g->query->before)) >= 0)
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

static int push_key(struct heddle_list *list, struct hd_key key)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        struct hd_key *grown = hd_realloc(list->keys, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        list->keys = grown;
        list->cap = cap;
    }
    list->keys[list->count++] = key;
    return 0;
}

static bool is_enough(const struct gatherer *g)
{
    return g->is_ordered && g->list->count >= g->limit;
}

static int on_key(void *arg, size_t which, const struct hd_cell *cells)
{
    struct gatherer *g = arg;
    struct hd_key key;
    int err = 0;
    bool is_match = matches(g, cells, &err);

    (void)which;
    if (err || !is_match)
        return err;
    err = copy_key(&g->list->arena, cells, &key);
    if (!err)
        err = push_key(g->list, key);
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

static int gather(struct gatherer *g)
{
    const struct heddle_query *q = g->query;
    struct hd_cell prefix[3], low, high;
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .columns = g->filter ? 1u << HD_CHECKPOINTS_METADATA : 0};

    if (g->thread.ptr) {
        prefix[query.prefix_count++] = hd_cell_bytes(g->thread);
        if (q->ns)
            prefix[query.prefix_count++] = hd_cell_bytes(hd_from_public(*q->ns));
        if (q->ns && q->id)
            prefix[query.prefix_count++] = hd_cell_bytes(hd_from_public(*q->id));
    }
    if (query.prefix_count == 2 && q->before) {
        high = hd_cell_bytes(hd_from_public(*q->before));
        query.high = &high;
    }
    if (query.prefix_count == 0) { /* from "principal:" up to the byte after ':' */
        low = key_bound(&g->list->arena, hd_from_public(q->principal), ':');
        high = key_bound(&g->list->arena, hd_from_public(q->principal), ':' + 1);
        if (low.kind == HD_CELL_NULL || high.kind == HD_CELL_NULL)
            return HD_ENOMEM;
        query.low = &low;
        query.high = &high;
    }
    query.is_reverse = query.prefix_count >= 2;
    g->is_ordered = query.is_reverse;
    return hd_scan(g->list->store->backend, query, on_key, g, g->fault);
}

static int newest_first(const void *a, const void *b)
{
    const struct hd_key *x = a, *y = b;
    int order = hd_slice_cmp(y->id, x->id);

    if (order == 0)
        order = hd_slice_cmp(x->thread, y->thread);
    return order ? order : hd_slice_cmp(x->ns, y->ns);
}

static int list_fill(struct heddle_list *list, const struct heddle_query *query,
                     struct hd_fault *fault)
{
    struct gatherer g = {.list = list, .query = query, .fault = fault};
    struct hd_json filter = {0};
    int err = hd_check_principal(hd_from_public(query->principal), fault);

    g.limit = query->limit < 0 ? SIZE_MAX : (size_t)query->limit;
    if (err || g.limit == 0)
        return err;
    if (query->thread) {
        struct heddle_thread thread = {query->principal, *query->thread};

        err = hd_thread_key(&thread, &list->arena, &g.thread, fault);
    }
    if (!err && query->filter.len) {
        err = hd_json_parse(&filter, hd_from_public(query->filter), fault);
        if (!err && !hd_json_is_object(hd_json_root(&filter)))
            err = hd_fault_set(fault, HD_EINVAL, "filter is %s, not an object",
                               hd_json_type_name(hd_json_root(&filter)));
        if (!err && hd_json_size(hd_json_root(&filter)) > 0)
            g.filter = hd_json_root(&filter);
    }
    if (!err)
        err = gather(&g);
    hd_json_fini(&filter);
    if (err)
        return err;
    if (!g.is_ordered && list->count > 1)
        qsort(list->keys, list->count, sizeof(*list->keys), newest_first);
    if (list->count > g.limit)
        list->count = g.limit;
    return 0;
}

int hd_list_open(struct hd_store *store, const struct heddle_query *query, struct heddle_list **out,
                 struct hd_fault *fault)
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

static int next_page(struct heddle_list *list, struct hd_fault *fault)
{
    size_t left = list->count - list->pos;
    size_t count = left < TUPLES_PAGE ? left : TUPLES_PAGE;
    int err;

    hd_arena_reset(&list->page_arena);
    list->page_count = list->page_pos = 0;
    err = hd_read_tuples(list->store, list->keys + list->pos, count, list->flags, &list->page_arena,
                         list->page, fault);
    if (err)
        return err;
    list->pos += count;
    list->page_count = count;
    return 0;
}

int hd_list_next(struct heddle_list *list, const struct heddle_tuple **out, struct hd_fault *fault)
{
    for (;;) {
        while (list->page_pos < list->page_count) {
            const struct heddle_tuple *tuple = &list->page[list->page_pos++];

            if (tuple->id.data) {
                *out = tuple;
                return 0;
            }
        }
        if (list->pos == list->count)
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
    hd_arena_fini(&list->page_arena);
    hd_arena_fini(&list->arena);
    hd_free(list->keys);
    hd_free(list);
}
