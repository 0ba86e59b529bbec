/*
 * Chooses the driver by URL and checks batches and queries, so that drivers need not check their
 * arguments.
 */
#include "store/backend.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define SLOW_US 100000 /* a batch that takes longer is logged at level debug */

static const struct hd_backend_ops *const drivers[] = {
    &hd_backend_memory,
    &hd_backend_sqlite,
#ifdef HD_WITH_POSTGRESQL
    &hd_backend_postgres,
#endif
};

/* ---- validation ------------------------------------------------------- */

static bool query_fits(const struct hd_column *column, const struct hd_cell *cell)
{
    switch (cell->kind) {
    case HD_CELL_NULL:
        return column->nullable;
    case HD_CELL_INT:
        return column->type == HD_COL_INT;
    case HD_CELL_BYTES:
        return column->type != HD_COL_INT && (cell->bytes.ptr || cell->bytes.len == 0);
    }
    return false;
}

static int check_cells(const struct hd_table *table, const struct hd_cell *cells, unsigned count,
                       struct heddle_error *fault)
{
    for (unsigned i = 0; i < count; i++) {
        if (!query_fits(&table->columns[i], &cells[i]))
            return hd_error_set(fault, HD_EINVAL, "invalid cell for column %s of %s",
                                table->columns[i].name, table->name);
    }
    return 0;
}

static int check_expect(const struct hd_table *table, const struct hd_op *op,
                        struct heddle_error *fault)
{
    bool is_sound = op->column < table->column_count && op->column >= table->key_count &&
                    table->columns[op->column].type == HD_COL_INT &&
                    op->set_count <= HD_COUNT(op->set) &&
                    (op->set_count == 0 || op->set_column >= table->key_count) &&
                    op->set_column + op->set_count <= table->column_count;

    for (unsigned i = 0; is_sound && i < op->set_count; i++)
        is_sound = table->columns[op->set_column + i].type == HD_COL_INT;
    if (is_sound && op->clear_column)
        is_sound = op->set_count > 0 && op->clear_column < table->column_count &&
                   table->columns[op->clear_column].nullable;
    if (!is_sound)
        return hd_error_set(fault, HD_EINVAL, "invalid columns in an expectation on %s",
                            table->name);
    return check_cells(table, op->cells, table->key_count, fault);
}

static int check_op(const struct hd_op *op, struct heddle_error *fault)
{
    const struct hd_table *table;

    if ((unsigned)op->table >= HD_TABLE_COUNT)
        return hd_error_set(fault, HD_EINVAL, "invalid table number %d", (int)op->table);
    table = &hd_tables[op->table];
    switch (op->kind) {
    case HD_OP_PUT:
    case HD_OP_PUT_NEW:
    case HD_OP_ADD:
        return check_cells(table, op->cells, table->column_count, fault);
    case HD_OP_DELETE:
        if (op->key_count == 0 || op->key_count > table->key_count)
            return hd_error_set(fault, HD_EINVAL, "a delete on %s names %u key columns",
                                table->name, op->key_count);
        return check_cells(table, op->cells, op->key_count, fault);
    case HD_OP_EXPECT:
        return check_expect(table, op, fault);
    }
    return hd_error_set(fault, HD_EINVAL, "invalid operation number %d", (int)op->kind);
}

/* The cells of a query for the ordering columns from `first` on. None of them may be null. */
static bool bounds_fit(const struct hd_query *query, unsigned first, const struct hd_cell *cells,
                       unsigned count)
{
    const struct hd_table *table = &hd_tables[query->table];

    if (first + count > hd_query_order_count(query))
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned column = hd_query_order_column(query, first + i);

        if (cells[i].kind == HD_CELL_NULL || !query_fits(&table->columns[column], &cells[i]))
            return false;
    }
    return true;
}

static int check_query(const struct hd_query *query, struct heddle_error *fault)
{
    bool is_sound = (unsigned)query->table < HD_TABLE_COUNT && query->index >= HD_PRIMARY &&
                    query->index < (int)hd_tables[query->table].index_count;

    is_sound = is_sound && bounds_fit(query, 0, query->prefix, query->prefix_count) &&
               (!query->low || bounds_fit(query, query->prefix_count, query->low, 1)) &&
               (!query->high || bounds_fit(query, query->prefix_count, query->high, 1)) &&
               bounds_fit(query, query->prefix_count, query->after, query->after_count);
    if (!is_sound)
        return hd_error_set(fault, HD_EINVAL, "the bounds of a query do not match its table");
    return 0;
}

/* ---- the operations --------------------------------------------------- */

static const struct hd_backend_ops *find_driver(const char *scheme)
{
    for (size_t i = 0; i < HD_COUNT(drivers); i++) {
        for (size_t k = 0; k < HD_COUNT(drivers[i]->schemes) && drivers[i]->schemes[k]; k++) {
            if (strcmp(drivers[i]->schemes[k], scheme) == 0)
                return drivers[i];
        }
    }
    return NULL;
}

static int refuse_scheme(const char *scheme, struct heddle_error *fault)
{
    char known[100] = "";
    size_t len = 0;

    for (size_t i = 0; i < HD_COUNT(drivers) && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s:", i ? ", " : "",
                                drivers[i]->schemes[0]);
    return hd_error_set(fault, HD_EINVAL, "unknown store scheme \"%.60s:\"; supported: %s", scheme,
                        known);
}

int hd_backend_open(struct hd_backend **out, const struct hd_url *url, struct heddle_error *fault)
{
    const struct hd_backend_ops *driver = find_driver(url->scheme);

    return driver ? driver->open(out, url, fault) : refuse_scheme(url->scheme, fault);
}

int hd_backend_upgrade(struct hd_backend *backend, struct heddle_error *fault)
{
    return backend->ops->upgrade ? backend->ops->upgrade(backend, fault) : 0;
}

void hd_backend_close(struct hd_backend *backend)
{
    if (backend)
        backend->ops->close(backend);
}

static void log_slow(size_t operations, int64_t took_us)
{
    const struct hd_log_field fields[] = {hd_log_number("operations", (int64_t)operations),
                                          hd_log_number("duration_us", took_us)};

    if (took_us >= SLOW_US)
        hd_log_fields(HD_LOG_DEBUG, "store", "slow batch", fields, HD_COUNT(fields));
}

int hd_backend_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                     struct heddle_error *fault)
{
    size_t ignored;
    int64_t started;
    int err;

    for (size_t i = 0; i < batch->count; i++) {
        err = check_op(&batch->ops[i], fault);
        if (err)
            return err;
    }
    if (batch->count == 0)
        return 0;
    err = backend->fence ? backend->fence(backend->fence_arg, fault) : 0;
    if (err)
        return err;
    atomic_fetch_add_explicit(&backend->writes, batch->count, memory_order_relaxed);
    started = hd_clock_monotonic_us();
    err = backend->ops->apply(backend, batch, failed ? failed : &ignored, fault);
    log_slow(batch->count, hd_clock_monotonic_us() - started);
    return err;
}

static int check_queries(const struct hd_query *queries, size_t count, struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < count; i++)
        err = check_query(&queries[i], fault);
    return err;
}

int hd_backend_read(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                    hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    int err = check_queries(queries, count, fault);

    if (err || count == 0)
        return err;
    atomic_fetch_add_explicit(&backend->reads, count, memory_order_relaxed);
    return backend->ops->read(backend, queries, count, fn, arg, fault);
}

static int on_count(void *arg, size_t which, const struct hd_cell *cells)
{
    int64_t *out = arg;

    (void)which;
    *out = cells[0].number;
    return 0;
}

static int on_counted_row(void *arg, size_t which, const struct hd_cell *cells)
{
    int64_t *out = arg;

    (void)which;
    (void)cells;
    ++*out;
    return 0;
}

int hd_backend_count(struct hd_backend *backend, struct hd_query query, int64_t *out,
                     struct heddle_error *fault)
{
    *out = 0;
    if (query.limit)
        return hd_error_set(fault, HD_EINVAL, "a count must not have a limit");
    query.columns = 0;
    query.is_count = backend->ops->can_count;
    return hd_backend_read(backend, &query, 1, query.is_count ? on_count : on_counted_row, out,
                           fault);
}

int hd_backend_nearest(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                       struct hd_slice vector, hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    int err = check_queries(queries, count, fault);

    for (size_t i = 0; !err && i < count; i++) {
        if (queries[i].table != HD_VECTORS || queries[i].index != HD_PRIMARY ||
            queries[i].after_count || queries[i].is_reverse || queries[i].limit == 0)
            err = hd_error_set(fault, HD_EINVAL, "invalid query for the nearest vectors");
    }
    if (!err && (vector.len == 0 || vector.len % sizeof(float) != 0))
        err = hd_error_set(fault, HD_EINVAL, "not a vector");
    if (err)
        return err;
    if (!backend->ops->nearest)
        return 1;
    atomic_fetch_add_explicit(&backend->reads, count, memory_order_relaxed);
    return backend->ops->nearest(backend, queries, count, vector, fn, arg, fault);
}

int hd_backend_check(struct hd_backend *backend, struct heddle_error *fault)
{
    return backend->ops->check ? backend->ops->check(backend, fault) : 0;
}

int hd_backend_compact(struct hd_backend *backend, struct heddle_error *fault)
{
    return backend->ops->compact ? backend->ops->compact(backend, fault) : 0;
}
