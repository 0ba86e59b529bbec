/*
 * The text of every statement, made from the declarations in table.c.
 *
 * TEXT columns are bytea as well: ids are arbitrary bytes and their order is byte order, which no
 * collation provides. Views show them as text. Names are always qualified and quoted, so neither
 * search_path nor a keyword matters. Every parameter is cast, so the same text always means the
 * same types and may be prepared under a name made from it.
 */
#include "store/postgres/backend_postgres.h"

#include <assert.h>
#include <stdarg.h>

static void sql_append(struct hd_pg_sql *sql, const char *fmt, ...) HD_PRINTF(2, 3);

static void append_bytes(struct hd_pg_sql *sql, const char *bytes, size_t len)
{
    assert(len < sizeof(sql->text) - sql->len);
    memcpy(sql->text + sql->len, bytes, len);
    sql->len += len;
    sql->text[sql->len] = '\0';
}

static void append_number(struct hd_pg_sql *sql, unsigned number)
{
    char digits[10];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    append_bytes(sql, digits + at, sizeof(digits) - at);
}

/* For %s and %u. Each statement of a batch needs it: vsnprintf() took a third of a run's time. */
static void sql_append(struct hd_pg_sql *sql, const char *fmt, ...)
{
    const char *mark;
    va_list args;

    va_start(args, fmt);
    while ((mark = strchr(fmt, '%'))) {
        append_bytes(sql, fmt, (size_t)(mark - fmt));
        assert(mark[1] == 's' || mark[1] == 'u');
        if (mark[1] == 's') {
            const char *text = va_arg(args, const char *);

            append_bytes(sql, text, strlen(text));
        } else {
            append_number(sql, va_arg(args, unsigned));
        }
        fmt = mark + 2;
    }
    append_bytes(sql, fmt, strlen(fmt));
    va_end(args);
}

static void sql_start(struct hd_pg_sql *sql)
{
    sql->len = 0;
    sql->text[0] = '\0';
}

static const char *type_of(const struct hd_column *column)
{
    return column->type == HD_COL_INT ? "bigint" : "bytea";
}

static void append_table(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table)
{
    sql_append(sql, "\"%s\".\"%s\"", schema, table->name);
}

/* "a", "b", "c": the first `count` columns. */
static void append_columns(struct hd_pg_sql *sql, const struct hd_table *table, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sql_append(sql, "%s\"%s\"", i ? ", " : "", table->columns[i].name);
}

static void append_param(struct hd_pg_sql *sql, const struct hd_column *column, unsigned number,
                         const char *suffix)
{
    sql_append(sql, "$%u::%s%s", number, type_of(column), suffix);
}

/* ---- writing ---- */

static void append_on_conflict(struct hd_pg_sql *sql, const struct hd_table *table,
                               enum hd_op_kind kind)
{
    sql_append(sql, " ON CONFLICT (");
    append_columns(sql, table, table->key_count);
    if (kind == HD_OP_PUT_NEW || table->key_count == table->column_count) {
        sql_append(sql, ") DO NOTHING");
        return;
    }
    sql_append(sql, ") DO UPDATE SET ");
    for (unsigned i = table->key_count; i < table->column_count; i++) {
        const char *name = table->columns[i].name;

        sql_append(sql, "%s\"%s\" = excluded.\"%s\"", i > table->key_count ? ", " : "", name, name);
    }
}

void hd_pg_sql_insert(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                      enum hd_op_kind kind, bool is_many)
{
    sql_start(sql);
    sql_append(sql, "INSERT INTO ");
    append_table(sql, schema, table);
    sql_append(sql, " (");
    append_columns(sql, table, table->column_count);
    sql_append(sql, is_many ? ") SELECT * FROM unnest(" : ") VALUES (");
    for (unsigned i = 0; i < table->column_count; i++) {
        sql_append(sql, "%s", i ? ", " : "");
        append_param(sql, &table->columns[i], i + 1, is_many ? "[]" : "");
    }
    sql_append(sql, ")");
    if (kind != HD_OP_ADD)
        append_on_conflict(sql, table, kind);
}

/* "a" = $1 AND "b" = $2: the first `count` key columns. */
static void append_key(struct hd_pg_sql *sql, const struct hd_table *table, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        sql_append(sql, "%s\"%s\" = ", i ? " AND " : "", table->columns[i].name);
        append_param(sql, &table->columns[i], i + 1, "");
    }
}

void hd_pg_sql_delete(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                      unsigned key_count, bool is_many)
{
    unsigned last = key_count - 1;

    sql_start(sql);
    sql_append(sql, "DELETE FROM ");
    append_table(sql, schema, table);
    sql_append(sql, " WHERE ");
    if (!is_many) {
        append_key(sql, table, key_count);
        return;
    }
    /* ANY over the last column keeps the plan an index scan, which a join does not guarantee. */
    append_key(sql, table, last);
    sql_append(sql, "%s\"%s\" = ANY (", last ? " AND " : "", table->columns[last].name);
    append_param(sql, &table->columns[last], key_count, "[]");
    sql_append(sql, ")");
}

/* unnest($1…) AS w ("key"…, expected, set0, set1): the expectations of many rows, as a table. */
static void append_wanted(struct hd_pg_sql *sql, const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];
    unsigned param = 0;

    sql_append(sql, "unnest(");
    for (; param < table->key_count; param++) {
        append_param(sql, &table->columns[param], param + 1, "[]");
        sql_append(sql, ", ");
    }
    sql_append(sql, "$%u::bigint[]", ++param);
    for (unsigned i = 0; i < op->set_count; i++)
        sql_append(sql, ", $%u::bigint[]", ++param);
    sql_append(sql, ") AS w (");
    append_columns(sql, table, table->key_count);
    sql_append(sql, ", expected");
    for (unsigned i = 0; i < op->set_count; i++)
        sql_append(sql, ", set%u", i);
    sql_append(sql, ")");
}

static void append_clearing(struct hd_pg_sql *sql, const struct hd_op *op)
{
    if (op->clear_column)
        sql_append(sql, ", \"%s\" = NULL", hd_tables[op->table].columns[op->clear_column].name);
}

static void append_expect_one(struct hd_pg_sql *sql, const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];
    unsigned param = table->key_count + 1;

    for (unsigned i = 0; i < op->set_count; i++)
        sql_append(sql, "%s\"%s\" = $%u::bigint", i ? ", " : " SET ",
                   table->columns[op->set_column + i].name, param + 1 + i);
    append_clearing(sql, op);
    sql_append(sql, " WHERE ");
    append_key(sql, table, table->key_count);
    sql_append(sql, " AND t.\"%s\" = $%u::bigint", table->columns[op->column].name, param);
}

static void append_expect_many(struct hd_pg_sql *sql, const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];

    for (unsigned i = 0; i < op->set_count; i++)
        sql_append(sql, "%s\"%s\" = w.set%u", i ? ", " : " SET ",
                   table->columns[op->set_column + i].name, i);
    append_clearing(sql, op);
    sql_append(sql, op->set_count ? " FROM " : ", ");
    append_wanted(sql, op);
    sql_append(sql, " WHERE t.\"%s\" = w.expected", table->columns[op->column].name);
    for (unsigned i = 0; i < table->key_count; i++)
        sql_append(sql, " AND t.\"%s\" = w.\"%s\"", table->columns[i].name, table->columns[i].name);
}

/*
 * Waits for a concurrent holder of the row and then reads the row it committed (READ COMMITTED).
 * Too few rows: 1 / 0, which fails the transaction with a code that our statements cannot raise
 * otherwise.
 */
void hd_pg_sql_expect(struct hd_pg_sql *sql, const char *schema, const struct hd_op *op,
                      bool is_many)
{
    sql_start(sql);
    sql_append(sql, "WITH hit AS (");
    sql_append(sql, op->set_count ? "UPDATE " : "SELECT 1 FROM ");
    append_table(sql, schema, &hd_tables[op->table]);
    sql_append(sql, " AS t");
    if (is_many)
        append_expect_many(sql, op);
    else
        append_expect_one(sql, op);
    sql_append(sql, "%s) SELECT 1 / ", op->set_count ? " RETURNING 1" : " FOR NO KEY UPDATE OF t");
    if (is_many)
        sql_append(sql, "(count(*) = cardinality($1))::int FROM hit");
    else
        sql_append(sql, "count(*) FROM hit");
}

/* ("a", "b") IN (SELECT * FROM unnest($1, $2)): a key of several columns in the arrays. */
static void append_keys_in(struct hd_pg_sql *sql, const struct hd_table *table)
{
    sql_append(sql, "(");
    append_columns(sql, table, table->key_count);
    sql_append(sql, ") IN (SELECT * FROM unnest(");
    for (unsigned i = 0; i < table->key_count; i++) {
        sql_append(sql, "%s", i ? ", " : "");
        append_param(sql, &table->columns[i], i + 1, "[]");
    }
    sql_append(sql, "))");
}

void hd_pg_sql_lock(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table)
{
    sql_start(sql);
    sql_append(sql, "SELECT 1 FROM ");
    append_table(sql, schema, table);
    sql_append(sql, " WHERE ");
    if (table->key_count == 1) {
        sql_append(sql, "\"%s\" = ANY (", table->columns[0].name);
        append_param(sql, &table->columns[0], 1, "[]");
        sql_append(sql, ")");
    } else {
        append_keys_in(sql, table);
    }
    sql_append(sql, " ORDER BY ");
    append_columns(sql, table, table->key_count);
    sql_append(sql, " FOR NO KEY UPDATE");
}

/* ---- reading ---- */

/* The column at `position` of the key or index that the query runs along. */
static const struct hd_column *order_column(const struct hd_query *query, unsigned position)
{
    return &hd_tables[query->table].columns[hd_query_order_column(query, position)];
}

/* Adds `"column" <op> $n` to the conditions. */
static void append_bound(struct hd_pg_sql *sql, const struct hd_query *query, unsigned position,
                         const char *op, unsigned *param)
{
    const struct hd_column *column = order_column(query, position);

    sql_append(sql, " AND \"%s\" %s ", column->name, op);
    append_param(sql, column, ++*param, "");
}

/* Row comparison, so that one condition matches the index order. */
static void append_after(struct hd_pg_sql *sql, const struct hd_query *query, unsigned *param)
{
    sql_append(sql, " AND (");
    for (unsigned i = 0; i < query->after_count; i++)
        sql_append(sql, "%s\"%s\"", i ? ", " : "",
                   order_column(query, query->prefix_count + i)->name);
    sql_append(sql, query->is_reverse ? ") < (" : ") > (");
    for (unsigned i = 0; i < query->after_count; i++) {
        sql_append(sql, "%s", i ? ", " : "");
        append_param(sql, order_column(query, query->prefix_count + i), ++*param, "");
    }
    sql_append(sql, ")");
}

static void append_order(struct hd_pg_sql *sql, const struct hd_query *query)
{
    for (unsigned i = query->prefix_count; i < hd_query_order_count(query); i++) {
        sql_append(sql, "%s\"%s\"%s", i > query->prefix_count ? ", " : " ORDER BY ",
                   order_column(query, i)->name, query->is_reverse ? " DESC" : "");
    }
}

bool hd_pg_is_selected(const struct hd_query *query, unsigned column)
{
    return column < hd_tables[query->table].key_count || (query->columns >> column & 1);
}

static void append_select_list(struct hd_pg_sql *sql, const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[query->table];

    if (query->is_count)
        sql_append(sql, "count(*)");
    for (unsigned i = 0; !query->is_count && i < table->column_count; i++) {
        if (hd_pg_is_selected(query, i))
            sql_append(sql, "%s\"%s\"", i ? ", " : "", table->columns[i].name);
    }
}

static void append_bounds(struct hd_pg_sql *sql, const struct hd_query *query, unsigned *param)
{
    for (unsigned i = 0; i < query->prefix_count; i++)
        append_bound(sql, query, i, "=", param);
    if (query->low)
        append_bound(sql, query, query->prefix_count, ">=", param);
    if (query->high)
        append_bound(sql, query, query->prefix_count, "<", param);
}

/* The rows that an index has, so that the planner may use it. `before`: " AND" or " WHERE". */
static void append_index_condition(struct hd_pg_sql *sql, const struct hd_table *table,
                                   const struct hd_index *index, const char *before)
{
    const struct hd_column *first = &table->columns[index->columns[0]];

    if (index->is_partial)
        sql_append(sql, "%s \"%s\" > \"%s\"", before, table->columns[index->greater].name,
                   table->columns[index->lesser].name);
    else if (first->nullable)
        sql_append(sql, "%s \"%s\" IS NOT NULL", before, first->name);
}

void hd_pg_sql_select(struct hd_pg_sql *sql, const char *schema, const struct hd_query *query)
{
    unsigned param = 0;

    sql_start(sql);
    sql_append(sql, "SELECT ");
    append_select_list(sql, query);
    sql_append(sql, " FROM ");
    append_table(sql, schema, &hd_tables[query->table]);
    sql_append(sql, " WHERE true");
    if (query->index != HD_PRIMARY)
        append_index_condition(sql, &hd_tables[query->table],
                               &hd_tables[query->table].indexes[query->index], " AND");
    append_bounds(sql, query, &param);
    if (query->after_count)
        append_after(sql, query, &param);
    if (!query->is_count)
        append_order(sql, query);
    /* "The latest" is the most frequent query; a literal gives it the best plan. */
    if (query->limit == 1)
        sql_append(sql, " LIMIT 1");
    else if (query->limit)
        sql_append(sql, " LIMIT $%u::bigint", param + 1);
}

/* ---- nearest vectors, with the extension "vector" ---- */

/*
 * Of several vectors of a row the nearest counts. Compares all vectors without an index, because
 * such an index is approximate. Rows without a distance come first, so that the caller sees them.
 */
void hd_pg_sql_nearest(struct hd_pg_sql *sql, const char *schema, const char *extension,
                       const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[HD_VECTORS];
    unsigned param = 0;
    struct hd_pg_sql bounds;

    sql_start(&bounds);
    append_bounds(&bounds, query, &param);
    sql_start(sql);
    sql_append(sql, "SELECT ");
    append_select_list(sql, query);
    sql_append(sql, " FROM ");
    append_table(sql, schema, table);
    sql_append(sql,
               ", (SELECT (\"%s\".vectors_of($%u::bytea, $%u::bigint))[1] AS asked OFFSET 0) AS a",
               schema, param + 1, param + 2);
    sql_append(sql, " WHERE \"%s\" = $%u::bigint%s", table->columns[HD_VECTORS_DIMS].name,
               param + 2, bounds.text);
    sql_append(sql,
               " ORDER BY (SELECT min(one OPERATOR(\"%s\".<#>) asked) FROM unnest(meaning) AS one)"
               " NULLS FIRST LIMIT $%u::bigint",
               extension, param + 3);
}

/*
 * Decodes float32 exactly, as PostgreSQL has no cast for bytes. Never fails, because a failure
 * would reject the row: a row with an invalid number has no vectors. An incomplete number at the
 * end is ignored.
 */
static void append_vectors_of(struct hd_pg_sql *sql, const char *schema, const char *extension)
{
    sql_append(
        sql,
        "CREATE OR REPLACE FUNCTION \"%s\".vectors_of(data bytea, dims bigint)"
        " RETURNS \"%s\".vector[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"
        " SET search_path = pg_catalog, pg_temp AS $$"
        " SELECT CASE WHEN dims BETWEEN 1 AND %u THEN (SELECT"
        " CASE WHEN bool_and(v IS NOT NULL) THEN array_agg(v ORDER BY t) END FROM (SELECT t,"
        " CASE WHEN bool_and(x IS NOT NULL) THEN array_agg(x ORDER BY n)::\"%s\".vector END AS v",
        schema, extension, (unsigned)HD_PG_MAX_DIMS, extension);
    sql_append(
        sql, " FROM (SELECT n, n / dims AS t, CASE WHEN e < 255 THEN ((1 - 2 * s)::float8 *"
             " (CASE e WHEN 0 THEN m ELSE m + 8388608 END) * power(2::float8, greatest(e, 1) - 150)"
             ")::real END AS x"
             " FROM (SELECT n, get_byte(d, 4 * n + 3) >> 7 AS s,"
             " ((get_byte(d, 4 * n + 3) & 127) << 1) | (get_byte(d, 4 * n + 2) >> 7) AS e,"
             " ((get_byte(d, 4 * n + 2) & 127) << 16) | (get_byte(d, 4 * n + 1) << 8) |"
             " get_byte(d, 4 * n)"
             " AS m FROM (SELECT data || ''::bytea AS d OFFSET 0) AS whole,"
             " LATERAL generate_series(0, (length(d) / (4 * dims) * dims)::int - 1) AS n"
             " OFFSET 0) AS parts OFFSET 0) AS numbers GROUP BY t) AS vectors) END $$");
}

int hd_pg_sql_create_nearest(const char *schema, const char *extension, hd_pg_emit emit, void *arg)
{
    const struct hd_table *table = &hd_tables[HD_VECTORS];
    struct hd_pg_sql sql;
    int err;

    sql_start(&sql);
    append_vectors_of(&sql, schema, extension);
    err = emit(arg, sql.text);
    if (err)
        return err;
    sql_start(&sql);
    sql_append(&sql, "ALTER TABLE ");
    append_table(&sql, schema, table);
    sql_append(&sql,
               " ADD COLUMN meaning \"%s\".vector[]"
               " GENERATED ALWAYS AS (\"%s\".vectors_of(\"%s\", \"%s\")) STORED,"
               " ALTER COLUMN meaning SET STORAGE EXTERNAL",
               extension, schema, table->columns[HD_VECTORS_DATA].name,
               table->columns[HD_VECTORS_DIMS].name);
    return emit(arg, sql.text);
}

/* ---- creating ---- */

static void append_create_table(struct hd_pg_sql *sql, const char *schema,
                                const struct hd_table *table)
{
    sql_append(sql, "CREATE TABLE ");
    append_table(sql, schema, table);
    sql_append(sql, " (");
    for (unsigned i = 0; i < table->column_count; i++) {
        const struct hd_column *column = &table->columns[i];

        sql_append(sql, "\"%s\" %s%s, ", column->name, type_of(column),
                   column->nullable ? "" : " NOT NULL");
    }
    sql_append(sql, "PRIMARY KEY (");
    append_columns(sql, table, table->key_count);
    sql_append(sql, "))");
}

/* Blobs are already compressed if that saves space: the server need not try. */
static bool append_storage(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table)
{
    unsigned blobs = 0;

    sql_append(sql, "ALTER TABLE ");
    append_table(sql, schema, table);
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].type == HD_COL_BLOB)
            sql_append(sql, "%s ALTER COLUMN \"%s\" SET STORAGE EXTERNAL", blobs++ ? "," : "",
                       table->columns[i].name);
    }
    return blobs > 0;
}

static void append_create_index(struct hd_pg_sql *sql, const char *schema,
                                const struct hd_table *table, const struct hd_index *index)
{
    sql_append(sql, "CREATE INDEX \"%s\" ON ", index->name);
    append_table(sql, schema, table);
    for (unsigned i = 0; i < index->column_count; i++)
        sql_append(sql, "%s\"%s\"", i ? ", " : " (", table->columns[index->columns[i]].name);
    sql_append(sql, ")");
    append_index_condition(sql, table, index, " WHERE");
}

/*
 * Bytes as text if they are text, otherwise escaped. Not parallel safe: an exception block is a
 * subtransaction.
 */
static void append_readable(struct hd_pg_sql *sql, const char *schema)
{
    sql_append(sql,
               "CREATE FUNCTION \"%s\".readable(bytes bytea) RETURNS text"
               " LANGUAGE plpgsql IMMUTABLE STRICT AS $$"
               "BEGIN RETURN pg_catalog.convert_from(bytes, 'UTF8');"
               " EXCEPTION WHEN others THEN RETURN pg_catalog.encode(bytes, 'escape'); END$$",
               schema);
}

static void append_readable_column(struct hd_pg_sql *sql, const char *schema,
                                   const struct hd_column *column, const char *between)
{
    sql_append(sql, "%s\"%s\".readable(\"%s\") AS \"%s\"", between, schema, column->name,
               column->name);
}

/* The two halves of a stored thread key, `principal:thread_id`. */
static void append_thread_key(struct hd_pg_sql *sql, const char *schema,
                              const struct hd_column *column)
{
    const char *name = column->name;

    sql_append(
        sql,
        "\"%s\".readable(substring(\"%s\" FROM 1 FOR greatest(position('\\x3a'::bytea IN \"%s\") - "
        "1, 0))) AS principal,"
        " \"%s\".readable(substring(\"%s\" FROM position('\\x3a'::bytea IN \"%s\") + 1)) AS \"%s\"",
        schema, name, name, schema, name, name, name);
}

/* Microseconds as a time, or null. */
static void append_time(struct hd_pg_sql *sql, const struct hd_column *column, const char *between)
{
    sql_append(sql,
               "%sCASE WHEN \"%s\" BETWEEN 0 AND 253402300799999999"
               " THEN to_timestamp(\"%s\" / 1000000.0) END AS \"%s\"",
               between, column->name, column->name, column->name);
}

static void append_thread_list(struct hd_pg_sql *sql, const char *schema)
{
    const struct hd_table *table = &hd_tables[HD_THREADS];

    sql_append(sql, "CREATE VIEW \"%s\".thread_list AS SELECT ", schema);
    append_thread_key(sql, schema, &table->columns[HD_THREADS_ID]);
    append_time(sql, &table->columns[HD_THREADS_CREATED], ", ");
    append_time(sql, &table->columns[HD_THREADS_UPDATED], ", ");
    sql_append(sql, " FROM ");
    append_table(sql, schema, table);
}

static void append_checkpoint_list(struct hd_pg_sql *sql, const char *schema)
{
    const struct hd_table *table = &hd_tables[HD_CHECKPOINTS];

    sql_append(sql, "CREATE VIEW \"%s\".checkpoint_list AS SELECT ", schema);
    append_thread_key(sql, schema, &table->columns[HD_CHECKPOINTS_THREAD]);
    for (unsigned i = HD_CHECKPOINTS_NS; i < table->column_count; i++) {
        if (table->columns[i].type == HD_COL_TEXT)
            append_readable_column(sql, schema, &table->columns[i], ", ");
    }
    sql_append(sql, " FROM ");
    append_table(sql, schema, table);
}

/* True when an INT column is a time, by its name. */
static bool is_time(const struct hd_column *column)
{
    size_t len = strlen(column->name);

    return column->type == HD_COL_INT && len > 3 && strcmp(column->name + len - 3, "_at") == 0;
}

/* A table of the server, all but its blobs: ids and bodies as text, times as times. */
static void append_table_list(struct hd_pg_sql *sql, const char *schema,
                              const struct hd_table *table, const char *name)
{
    sql_append(sql, "CREATE VIEW \"%s\".%s AS SELECT ", schema, name);
    for (unsigned i = 0; i < table->column_count; i++) {
        const struct hd_column *column = &table->columns[i];
        const char *between = i ? ", " : "";

        if (column->type == HD_COL_TEXT)
            append_readable_column(sql, schema, column, between);
        else if (is_time(column))
            append_time(sql, column, between);
        else if (column->type == HD_COL_INT)
            sql_append(sql, "%s\"%s\"", between, column->name);
    }
    sql_append(sql, " FROM ");
    append_table(sql, schema, table);
}

static void append_assistant_list(struct hd_pg_sql *sql, const char *schema)
{
    append_table_list(sql, schema, &hd_tables[HD_ASSISTANTS], "assistant_list");
}

static void append_thread_info_list(struct hd_pg_sql *sql, const char *schema)
{
    append_table_list(sql, schema, &hd_tables[HD_THREAD_INFO], "thread_info_list");
}

static void append_run_list(struct hd_pg_sql *sql, const char *schema)
{
    append_table_list(sql, schema, &hd_tables[HD_RUNS], "run_list");
}

static void append_item_list(struct hd_pg_sql *sql, const char *schema)
{
    append_table_list(sql, schema, &hd_tables[HD_ITEMS], "item_list");
}

static void append_cron_list(struct hd_pg_sql *sql, const char *schema)
{
    append_table_list(sql, schema, &hd_tables[HD_CRONS], "cron_list");
}

/* The indexes that `version` adds to a table that is older. */
static int create_indexes(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                          int version, hd_pg_emit emit, void *arg)
{
    int err = 0;

    for (unsigned i = 0; !err && i < table->index_count; i++) {
        if (table->indexes[i].since != version)
            continue;
        sql_start(sql);
        append_create_index(sql, schema, table, &table->indexes[i]);
        err = emit(arg, sql->text);
    }
    return err;
}

static int create_table(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                        hd_pg_emit emit, void *arg)
{
    int err;

    sql_start(sql);
    append_create_table(sql, schema, table);
    err = emit(arg, sql->text);
    sql_start(sql);
    if (!err && append_storage(sql, schema, table))
        err = emit(arg, sql->text);
    return err ? err : create_indexes(sql, schema, table, 0, emit, arg);
}

/* The objects besides tables, by the version that added them. */
static const struct {
    int since;
    void (*append)(struct hd_pg_sql *, const char *);
} others[] = {
    {1, append_readable},       {1, append_thread_list},      {1, append_checkpoint_list},
    {2, append_assistant_list}, {2, append_thread_info_list}, {2, append_run_list},
    {2, append_item_list},      {2, append_cron_list},
};

int hd_pg_sql_create(const char *schema, int version, hd_pg_emit emit, void *arg)
{
    struct hd_pg_sql sql;
    int err = 0;

    for (unsigned i = 0; !err && i < HD_TABLE_COUNT; i++) {
        if (hd_tables[i].since == version)
            err = create_table(&sql, schema, &hd_tables[i], emit, arg);
        else if (hd_tables[i].since < version)
            err = create_indexes(&sql, schema, &hd_tables[i], version, emit, arg);
    }
    for (unsigned i = 0; !err && i < HD_COUNT(others); i++) {
        if (others[i].since != version)
            continue;
        sql_start(&sql);
        others[i].append(&sql, schema);
        err = emit(arg, sql.text);
    }
    if (!err && version == HD_PG_ROOM_VIEWS_SINCE)
        err = hd_pg_sql_create_room_views(schema, emit, arg);
    return err;
}
