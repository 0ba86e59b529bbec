/*
 * Builds SQL for SQLite from the declarations in table.c.
 *
 * Names are put into the text unquoted: they are ours and plain. All external data is bound.
 */
#include "store/sqlite/backend_sqlite.h"

#include <string.h>

/* ---- text ------------------------------------------------------------- */

/* Text under construction; after the first failure nothing more is appended. */
struct text {
    struct hd_buf *buf;
    int err;
};

static void sql_add(struct text *text, const char *piece)
{
    if (!text->err)
        text->err = hd_buf_append(text->buf, piece, strlen(piece));
}

/* `piece`, `count` times, separated by `between`. */
static void add_repeated(struct text *text, const char *piece, const char *between, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        sql_add(text, i ? between : "");
        sql_add(text, piece);
    }
}

/* The names of columns first … first + count - 1, each followed by `tail`. */
static void add_columns(struct text *text, const struct hd_table *table, unsigned first,
                        unsigned count, const char *tail, const char *between)
{
    for (unsigned i = 0; i < count; i++) {
        sql_add(text, i ? between : "");
        sql_add(text, table->columns[first + i].name);
        sql_add(text, tail);
    }
}

static void add_ordering_columns(struct text *text, const struct hd_query *query, unsigned first,
                                 unsigned count, const char *tail)
{
    const struct hd_table *table = &hd_tables[query->table];

    for (unsigned i = 0; i < count; i++) {
        sql_add(text, i ? ", " : "");
        sql_add(text, table->columns[hd_query_order_column(query, first + i)].name);
        sql_add(text, tail);
    }
}

/* ---- operations ------------------------------------------------------- */

/* Every part of a shape must fit its five bits, and the columns of a row three times four. */
_Static_assert(HD_TABLE_COUNT <= 32 && HD_MAX_COLUMNS <= 12, "a shape's parts have five bits each");

static uint64_t shape(unsigned family, const unsigned *parts, size_t count)
{
    uint64_t number = family;

    for (size_t i = 0; i < count; i++)
        number = number << 5 | parts[i];
    return number;
}

enum { FAMILY_OP = 8, FAMILY_QUERY = 9 };

uint64_t hd_sqlite_op_shape(const struct hd_op *op)
{
    /*
     * PUT_NEW and ADD are the same statement; they differ in the meaning of an unchanged row count.
     */
    unsigned kind = op->kind == HD_OP_ADD ? HD_OP_PUT_NEW : op->kind;
    unsigned parts[] = {kind, op->table, 0, 0, 0, 0};

    if (op->kind == HD_OP_DELETE) {
        parts[2] = op->key_count;
    } else if (op->kind == HD_OP_EXPECT) {
        parts[2] = op->column;
        parts[3] = op->set_count;
        parts[4] = op->set_count ? op->set_column : 0;
        parts[5] = op->clear_column;
    }
    return shape(FAMILY_OP, parts, HD_COUNT(parts));
}

static void add_insert(struct text *text, const struct hd_table *table)
{
    sql_add(text, "INSERT INTO ");
    sql_add(text, table->name);
    sql_add(text, " VALUES (");
    add_repeated(text, "?", ", ", table->column_count);
    sql_add(text, ") ON CONFLICT (");
    add_columns(text, table, 0, table->key_count, "", ", ");
    sql_add(text, ") DO ");
}

static void add_put(struct text *text, const struct hd_table *table)
{
    add_insert(text, table);
    sql_add(text, "UPDATE SET ");
    for (unsigned i = table->key_count; i < table->column_count; i++) {
        sql_add(text, i > table->key_count ? ", " : "");
        sql_add(text, table->columns[i].name);
        sql_add(text, " = excluded.");
        sql_add(text, table->columns[i].name);
    }
}

static void add_expect(struct text *text, const struct hd_table *table, const struct hd_op *op)
{
    if (op->set_count == 0) {
        sql_add(text, "SELECT 1 FROM ");
        sql_add(text, table->name);
    } else {
        sql_add(text, "UPDATE ");
        sql_add(text, table->name);
        sql_add(text, " SET ");
        add_columns(text, table, op->set_column, op->set_count, " = ?", ", ");
        if (op->clear_column) {
            sql_add(text, ", ");
            add_columns(text, table, op->clear_column, 1, " = NULL", "");
        }
    }
    sql_add(text, " WHERE ");
    add_columns(text, table, 0, table->key_count, " = ?", " AND ");
    sql_add(text, " AND ");
    add_columns(text, table, op->column, 1, " = ?", "");
}

int hd_sqlite_op_sql(struct hd_buf *out, const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];
    struct text text = {.buf = out};

    switch (op->kind) {
    case HD_OP_PUT:
        add_put(&text, table);
        break;
    case HD_OP_PUT_NEW:
    case HD_OP_ADD:
        add_insert(&text, table);
        sql_add(&text, "NOTHING");
        break;
    case HD_OP_DELETE:
        sql_add(&text, "DELETE FROM ");
        sql_add(&text, table->name);
        sql_add(&text, " WHERE ");
        add_columns(&text, table, 0, op->key_count, " = ?", " AND ");
        break;
    case HD_OP_EXPECT:
        add_expect(&text, table, op);
        break;
    }
    return text.err;
}

/* ---- queries ---------------------------------------------------------- */

/* Bit n: column n is in the result. */
static unsigned wanted_columns(const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[query->table];

    return (query->columns | ((1u << table->key_count) - 1)) & ((1u << table->column_count) - 1);
}

uint64_t hd_sqlite_query_shape(const struct hd_query *query)
{
    unsigned columns = wanted_columns(query);
    unsigned parts[] = {query->table,
                        (unsigned)(query->index + 1),
                        query->prefix_count,
                        (query->low ? 1u : 0) | (query->high ? 2u : 0),
                        query->after_count,
                        (query->is_reverse ? 1u : 0) | (query->limit ? 2u : 0) |
                            (query->is_count ? 4u : 0),
                        columns & 15,
                        columns >> 4 & 15,
                        columns >> 8 & 15};

    return shape(FAMILY_QUERY, parts, HD_COUNT(parts));
}

/* A column that is not requested comes as null, so that the others keep their numbers. */
static void add_select(struct text *text, const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[query->table];
    unsigned wanted = wanted_columns(query);

    sql_add(text, "SELECT ");
    if (query->is_count) {
        sql_add(text, "count(*)");
        add_repeated(text, ", NULL", "", table->column_count - 1);
    }
    for (unsigned i = 0; !query->is_count && i < table->column_count; i++) {
        sql_add(text, i ? ", " : "");
        sql_add(text, wanted >> i & 1 ? table->columns[i].name : "NULL");
    }
    sql_add(text, " FROM ");
    sql_add(text, table->name);
    /*
     * Explicit, because without statistics SQLite may prefer to read a whole wide table and sort
     * it. The key of a table with rowid is its first index.
     */
    if (query->index != HD_PRIMARY) {
        sql_add(text, " INDEXED BY ");
        sql_add(text, table->indexes[query->index].name);
    } else if (table->is_wide) {
        sql_add(text, " INDEXED BY sqlite_autoindex_");
        sql_add(text, table->name);
        sql_add(text, "_1");
    }
}

static void add_bound(struct text *text, const struct hd_query *query, const char *comparison)
{
    sql_add(text, " AND ");
    add_ordering_columns(text, query, query->prefix_count, 1, comparison);
}

/* The rows that an index has, so that SQLite may use it. `before`: " AND " or " WHERE ". */
static void add_index_condition(struct text *text, const struct hd_table *table, int number,
                                const char *before)
{
    const struct hd_index *index = &table->indexes[number];
    const struct hd_column *first = &table->columns[index->columns[0]];

    if (index->is_partial) {
        sql_add(text, before);
        sql_add(text, table->columns[index->greater].name);
        sql_add(text, " > ");
        sql_add(text, table->columns[index->lesser].name);
    } else if (first->nullable) {
        sql_add(text, before);
        sql_add(text, first->name);
        sql_add(text, " IS NOT NULL");
    }
}

static void add_where(struct text *text, const struct hd_query *query)
{
    sql_add(text, " WHERE 1");
    if (query->index != HD_PRIMARY)
        add_index_condition(text, &hd_tables[query->table], query->index, " AND ");
    for (unsigned i = 0; i < query->prefix_count; i++) {
        sql_add(text, " AND ");
        add_ordering_columns(text, query, i, 1, " = ?");
    }
    if (query->low)
        add_bound(text, query, " >= ?");
    if (query->high)
        add_bound(text, query, " < ?");
    if (query->after_count) {
        sql_add(text, " AND (");
        add_ordering_columns(text, query, query->prefix_count, query->after_count, "");
        sql_add(text, query->is_reverse ? ") < (" : ") > (");
        add_repeated(text, "?", ", ", query->after_count);
        sql_add(text, ")");
    }
}

int hd_sqlite_query_sql(struct hd_buf *out, const struct hd_query *query)
{
    struct text text = {.buf = out};
    unsigned ordered = hd_query_order_count(query) - query->prefix_count;

    add_select(&text, query);
    add_where(&text, query);
    if (ordered > 0 && !query->is_count) {
        sql_add(&text, " ORDER BY ");
        add_ordering_columns(&text, query, query->prefix_count, ordered,
                             query->is_reverse ? " DESC" : "");
    }
    if (query->limit)
        sql_add(&text, " LIMIT ?");
    return text.err;
}

/* ---- tables ----------------------------------------------------------- */

static void add_column_declaration(struct text *text, const struct hd_column *column)
{
    static const char *const types[] = {
        [HD_COL_TEXT] = " TEXT", [HD_COL_INT] = " INTEGER", [HD_COL_BLOB] = " BLOB"};

    sql_add(text, "    ");
    sql_add(text, column->name);
    sql_add(text, types[column->type]);
    sql_add(text, column->nullable ? ",\n" : " NOT NULL,\n");
}

static void add_index_declaration(struct text *text, const struct hd_table *table, int number)
{
    const struct hd_query order = {.table = (enum hd_table_id)(table - hd_tables), .index = number};
    const struct hd_index *index = &table->indexes[number];

    sql_add(text, "CREATE INDEX ");
    sql_add(text, index->name);
    sql_add(text, " ON ");
    sql_add(text, table->name);
    sql_add(text, " (");
    add_ordering_columns(text, &order, 0, index->column_count, "");
    sql_add(text, ")");
    add_index_condition(text, table, number, " WHERE ");
    sql_add(text, ";\n");
}

int hd_sqlite_table_sql(struct hd_buf *out, const struct hd_table *table)
{
    struct text text = {.buf = out};

    sql_add(&text, "CREATE TABLE ");
    sql_add(&text, table->name);
    sql_add(&text, " (\n");
    for (unsigned i = 0; i < table->column_count; i++)
        add_column_declaration(&text, &table->columns[i]);
    sql_add(&text, "    PRIMARY KEY (");
    add_columns(&text, table, 0, table->key_count, "", ", ");
    /*
     * Long rows slow down a tree that is searched by key: those tables store their rows separately.
     */
    sql_add(&text, table->is_wide ? "));\n" : ")) WITHOUT ROWID;\n");
    for (unsigned i = 0; i < table->index_count; i++)
        add_index_declaration(&text, table, (int)i);
    return text.err;
}

int hd_sqlite_new_indexes_sql(struct hd_buf *out, const struct hd_table *table, int version)
{
    struct text text = {.buf = out};

    for (unsigned i = 0; i < table->index_count; i++) {
        if (table->indexes[i].since > version)
            add_index_declaration(&text, table, (int)i);
    }
    return text.err;
}

/* Microseconds as text; all INT columns that end in _at are times. */
static void add_view_column(struct text *text, const struct hd_column *column)
{
    size_t len = strlen(column->name);

    if (column->type == HD_COL_INT && len > 3 && strcmp(column->name + len - 3, "_at") == 0) {
        sql_add(text, "strftime('%Y-%m-%dT%H:%M:%fZ', ");
        sql_add(text, column->name);
        sql_add(text, " / 1e6, 'unixepoch') AS ");
    }
    sql_add(text, column->name);
}

int hd_sqlite_view_sql(struct hd_buf *out, const struct hd_table *table)
{
    struct text text = {.buf = out};

    sql_add(&text, "CREATE VIEW heddle_");
    sql_add(&text, table->name);
    sql_add(&text, " AS\nSELECT ");
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].type == HD_COL_BLOB)
            continue;
        sql_add(&text, i ? ",\n       " : "");
        add_view_column(&text, &table->columns[i]);
    }
    sql_add(&text, "\nFROM ");
    sql_add(&text, table->name);
    sql_add(&text, ";\n");
    return text.err;
}
