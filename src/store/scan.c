/*
 * Rows are collected page by page and passed on after the read, so that the receiver may use the
 * backend.
 */
#include "store/scan.h"

#include "base/arena.h"
#include "base/list.h"

enum { FIRST_PAGE = 16, LAST_PAGE = 256 }; /* rows; later pages are longer */
#define PAGE_BYTES ((size_t)1 << 20)       /* long rows make shorter pages */

struct scan_row {
    struct scan_row *next;
    struct hd_cell cells[HD_MAX_COLUMNS];
};

struct scan_page {
    const struct hd_table *table;
    struct hd_arena arena;
    HD_FIFO(struct scan_row) rows;
    size_t count;
    size_t bytes;
    bool is_full;
};

static int page_on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct scan_page *page = arg;
    struct scan_row *row = hd_arena_calloc(&page->arena, 1, sizeof(*row));
    int err = row ? 0 : HD_ENOMEM;

    (void)which;
    for (unsigned i = 0; !err && i < page->table->column_count; i++) {
        row->cells[i] = cells[i];
        if (cells[i].kind != HD_CELL_BYTES)
            continue;
        err = hd_arena_copy(&page->arena, cells[i].bytes, &row->cells[i].bytes);
        page->bytes += cells[i].bytes.len;
    }
    if (err)
        return err;
    hd_fifo_push(&page->rows, row, next);
    page->count++;
    page->is_full = page->bytes > PAGE_BYTES;
    return page->is_full;
}

static int scan_read_page(struct hd_backend *backend, const struct hd_query *query,
                          struct scan_page *page, struct heddle_error *fault)
{
    int err;

    hd_arena_reset(&page->arena);
    page->rows.first = page->rows.last = NULL;
    page->count = page->bytes = 0;
    page->is_full = false;
    err = hd_backend_read(backend, query, 1, page_on_row, page, fault);
    page->is_full = page->is_full || page->count == query->limit;
    return err;
}

/* Passes the rows on. *last is the position for the next page, in its own memory. */
static int hand_on(const struct scan_page *page, const struct hd_query *query, hd_row_fn fn,
                   void *arg, struct hd_arena *arena, struct hd_cell *last)
{
    int err = 0;

    for (const struct scan_row *row = page->rows.first; !err && row; row = row->next) {
        err = fn(arg, 0, row->cells);
        if (err || row->next)
            continue;
        hd_arena_reset(arena);
        for (unsigned i = query->prefix_count; !err && i < hd_query_order_count(query); i++) {
            struct hd_cell *cell = &last[i - query->prefix_count];

            *cell = row->cells[hd_query_order_column(query, i)];
            if (cell->kind == HD_CELL_BYTES)
                err = hd_arena_copy(arena, cell->bytes, &cell->bytes);
        }
    }
    return err;
}

int hd_scan(struct hd_backend *backend, struct hd_query query, hd_row_fn fn, void *arg,
            struct heddle_error *fault)
{
    struct scan_page page = {.table = &hd_tables[query.table]};
    struct hd_cell last[HD_MAX_COLUMNS];
    struct hd_arena last_arena;
    bool has_limit = query.limit > 0;
    int err;

    if (!has_limit)
        query.limit = FIRST_PAGE;
    /* The next page begins after these. */
    for (unsigned i = 0; i < hd_query_order_count(&query); i++)
        query.columns |= 1u << hd_query_order_column(&query, i);
    hd_arena_init(&page.arena, SIZE_MAX / 2);
    hd_arena_init(&last_arena, SIZE_MAX / 2);
    do {
        err = scan_read_page(backend, &query, &page, fault);
        if (!err)
            err = hand_on(&page, &query, fn, arg, &last_arena, last);
        query.after = last;
        query.after_count = hd_query_order_count(&query) - query.prefix_count;
        if (!has_limit && query.limit < LAST_PAGE)
            query.limit *= 2;
    } while (!err && page.is_full && query.after_count > 0);
    hd_arena_fini(&last_arena);
    hd_arena_fini(&page.arena);
    return err < 0 ? err : 0;
}
