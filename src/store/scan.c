#include "store/scan.h"

#include "base/arena.h"

enum { DEFAULT_PAGE = 256 };

struct page {
    hd_row_fn fn;
    void *arg;
    const struct hd_query *query;
    struct hd_arena arena; /* of `last` */
    struct hd_cell last[HD_MAX_COLUMNS];
    size_t rows;
    bool is_ended;
};

/* Remembers the key columns after the prefix: where the next page goes on. */
static int remember(struct page *page, const struct hd_cell *cells)
{
    const struct hd_query *query = page->query;
    unsigned count = hd_tables[query->table].key_count - query->prefix_count;
    int err = 0;

    hd_arena_reset(&page->arena);
    for (unsigned i = 0; !err && i < count; i++) {
        page->last[i] = cells[query->prefix_count + i];
        if (page->last[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(&page->arena, page->last[i].bytes, &page->last[i].bytes);
    }
    return err;
}

static int on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct page *page = arg;
    int err = page->fn(page->arg, which, cells);

    if (err < 0)
        return err;
    page->is_ended = err > 0;
    page->rows++;
    if (page->rows == page->query->limit && !page->is_ended)
        return remember(page, cells);
    return page->is_ended;
}

int hd_scan(struct hd_backend *backend, struct hd_query query, hd_row_fn fn, void *arg,
            struct hd_fault *fault)
{
    struct page page = {.fn = fn, .arg = arg, .query = &query};
    int err;

    if (query.limit == 0)
        query.limit = DEFAULT_PAGE;
    hd_arena_init(&page.arena, SIZE_MAX / 2);
    do {
        page.rows = 0;
        err = hd_backend_read(backend, &query, 1, on_row, &page, fault);
        query.after = page.last;
        query.after_count = hd_tables[query.table].key_count - query.prefix_count;
    } while (!err && !page.is_ended && page.rows == query.limit && query.after_count > 0);
    hd_arena_fini(&page.arena);
    return err;
}
