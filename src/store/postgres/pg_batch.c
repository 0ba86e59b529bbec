/*
 * Applies a batch as one transaction in one round trip.
 *
 * Operations on different tables are independent, so they are applied table by table, each table's
 * in the given order. That brings rows of the same kind together, and each such group becomes one
 * statement with an array per column. The threads come first, so their rows are locked before the
 * rows below them are read or written.
 *
 * When a statement of several rows conflicts, the batch is sent again with one statement per row,
 * to find the row: conflicts are rare, so this costs nothing in the usual case.
 *
 * Two batches that expect several rows could deadlock and wait for the server to notice (a second,
 * by default). So a batch with several locks takes them all first, in key order.
 */
#include "store/postgres/backend_postgres.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    GROUP_ROWS_MAX = 1024,
    SEEN_SLOTS = 4 * GROUP_ROWS_MAX,
    EXPECT_GROUP_MIN = 8 /* below, planning the join costs more than it saves */
};

/* Bytes of a group's rows: the server holds a few copies of the arrays while it executes. */
#define GROUP_BYTES_MAX ((size_t)4 << 20)

/* The server's own limit for a message and for a row is 1 GiB, which includes overhead. */
#define ROW_BYTES_MAX (((size_t)1 << 30) - ((size_t)1 << 20))

enum { OID_BYTEA = 17, OID_INT8 = 20, ARRAY_HEAD = 20 };

struct plan {
    const struct hd_batch *batch;
    size_t *order;         /* numbers of operations, in the order they are sent */
    uint64_t *seen;        /* hashes of the keys in a group, an open-addressed set */
    size_t failed;         /* the operation that conflicted */
    bool is_one_by_one;    /* operations that may conflict are not grouped */
    bool has_grouped;      /* … but were, in this attempt */
    struct hd_arena arena; /* parameters of one statement */
};

/* Operations that one statement applies, by their numbers. */
struct group {
    const size_t *ops;
    size_t count;
};

static const struct hd_op *op_of(const struct plan *plan, struct group group, size_t i)
{
    return &plan->batch->ops[group.ops[i]];
}

static bool is_insert(enum hd_op_kind kind)
{
    return kind == HD_OP_PUT || kind == HD_OP_PUT_NEW || kind == HD_OP_ADD;
}

/* ---- planning ---- */

static size_t row_bytes(const struct hd_op *op)
{
    unsigned count = is_insert(op->kind)        ? hd_tables[op->table].column_count
                     : op->kind == HD_OP_DELETE ? op->key_count
                                                : hd_tables[op->table].key_count;
    size_t sum = 0;

    for (unsigned i = 0; i < count; i++) {
        if (op->cells[i].kind == HD_CELL_BYTES)
            sum += op->cells[i].bytes.len;
        if (sum > ROW_BYTES_MAX)
            break;
    }
    return sum;
}

/* Two rows with the same hash count as equal, which only costs a statement. */
static uint64_t hash_key(const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];
    uint64_t hash = 1;

    for (unsigned i = 0; i < table->key_count; i++) {
        const struct hd_cell *cell = &op->cells[i];

        if (cell->kind == HD_CELL_INT)
            hash = XXH3_64bits_withSeed(&cell->number, sizeof(cell->number), hash);
        else
            hash =
                XXH3_64bits_withSeed(cell->bytes.len ? cell->bytes.ptr : "", cell->bytes.len, hash);
    }
    return hash ? hash : 1;
}

/* Adds the key to the set; false when it was in it already. */
static bool see_key(struct plan *plan, const struct hd_op *op)
{
    uint64_t hash = hash_key(op);
    size_t slot = hash % SEEN_SLOTS;

    for (; plan->seen[slot]; slot = (slot + 1) % SEEN_SLOTS) {
        if (plan->seen[slot] == hash)
            return false;
    }
    plan->seen[slot] = hash;
    return true;
}

static bool may_conflict(enum hd_op_kind kind)
{
    return kind == HD_OP_ADD || kind == HD_OP_EXPECT;
}

/* True when `op` may join the statement that `first` begins, judged by their kinds. */
static bool is_alike(const struct plan *plan, const struct hd_op *first, const struct hd_op *op)
{
    if (op->kind != first->kind || op->table != first->table)
        return false;
    if (plan->is_one_by_one && may_conflict(op->kind))
        return false;
    if (op->kind == HD_OP_EXPECT)
        return op->column == first->column && op->set_column == first->set_column &&
               op->set_count == first->set_count && op->clear_column == first->clear_column;
    if (op->kind == HD_OP_DELETE)
        return op->key_count == first->key_count &&
               hd_cells_cmp(op->cells, first->cells, op->key_count - 1) == 0;
    return true;
}

/*
 * The longest group that begins at `position` of the order. Neither an upsert nor an update may
 * affect the same row twice, so a group ends before a repeated key.
 */
static struct group next_group(struct plan *plan, size_t position)
{
    size_t left = plan->batch->count - position;
    struct group group = {plan->order + position, 1};
    const struct hd_op *head = op_of(plan, group, 0);
    size_t bytes = row_bytes(head);
    bool is_distinct = head->kind == HD_OP_PUT || head->kind == HD_OP_EXPECT;

    if (left == 1 || !is_alike(plan, head, op_of(plan, group, 1)))
        return group;
    if (is_distinct) {
        memset(plan->seen, 0, SEEN_SLOTS * sizeof(*plan->seen));
        (void)see_key(plan, head);
    }
    for (; group.count < left && group.count < GROUP_ROWS_MAX; group.count++) {
        const struct hd_op *op = op_of(plan, group, group.count);

        bytes += row_bytes(op);
        if (bytes > GROUP_BYTES_MAX || !is_alike(plan, head, op) ||
            (is_distinct && !see_key(plan, op)))
            break;
    }
    if (head->kind == HD_OP_EXPECT && group.count < EXPECT_GROUP_MIN)
        group.count = 1;
    return group;
}

static int check_sizes(const struct hd_batch *batch, struct heddle_error *fault)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (row_bytes(&batch->ops[i]) > ROW_BYTES_MAX)
            return hd_error_set(fault, HD_ELIMIT,
                                "a row of table %s is larger than PostgreSQL can hold (1 GB)",
                                hd_tables[batch->ops[i].table].name);
    }
    return 0;
}

static int plan_init(struct plan *plan, const struct hd_batch *batch)
{
    size_t n = 0;

    memset(plan, 0, sizeof(*plan));
    plan->batch = batch;
    hd_arena_init(&plan->arena, SIZE_MAX);
    plan->order = hd_malloc(batch->count * sizeof(*plan->order));
    plan->seen = hd_malloc(SEEN_SLOTS * sizeof(*plan->seen));
    if (!plan->order || !plan->seen)
        return HD_ENOMEM;
    for (unsigned table = 0; table < HD_TABLE_COUNT; table++) {
        for (size_t i = 0; i < batch->count; i++) {
            if (batch->ops[i].table == table)
                plan->order[n++] = i;
        }
    }
    return 0;
}

static void plan_fini(struct plan *plan)
{
    hd_free(plan->order);
    hd_free(plan->seen);
    hd_arena_fini(&plan->arena);
}

/* ---- parameters ---- */

static char *put_u32(char *p, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (char)(value >> shift);
    return p;
}

static char *put_u64(char *p, uint64_t value)
{
    p = put_u32(p, (uint32_t)(value >> 32));
    return put_u32(p, (uint32_t)value);
}

static size_t cell_size(const struct hd_cell *cell)
{
    return cell->kind == HD_CELL_NULL ? 0 : cell->kind == HD_CELL_INT ? 8 : cell->bytes.len;
}

/* A single cell. Borrows its bytes. */
static int add_cell(struct plan *plan, struct hd_pg_params *params, const struct hd_cell *cell)
{
    int n = params->count++;
    char *number;

    params->lengths[n] = (int)cell_size(cell);
    params->values[n] = NULL;
    if (cell->kind == HD_CELL_BYTES)
        params->values[n] = cell->bytes.len ? cell->bytes.ptr : "";
    if (cell->kind != HD_CELL_INT)
        return 0;
    number = hd_arena_alloc(&plan->arena, 8);
    if (!number)
        return HD_ENOMEM;
    put_u64(number, (uint64_t)cell->number);
    params->values[n] = number;
    return 0;
}

static int add_int(struct plan *plan, struct hd_pg_params *params, int64_t number)
{
    struct hd_cell cell = hd_cell_int(number);

    return add_cell(plan, params, &cell);
}

static char *put_element(char *p, const struct hd_cell *cell)
{
    if (cell->kind == HD_CELL_NULL)
        return put_u32(p, UINT32_MAX);
    p = put_u32(p, (uint32_t)cell_size(cell));
    if (cell->kind == HD_CELL_INT)
        return put_u64(p, (uint64_t)cell->number);
    if (cell->bytes.len)
        memcpy(p, cell->bytes.ptr, cell->bytes.len);
    return p + cell->bytes.len;
}

/* An array in the server's binary form: dimensions, has nulls, type, length, lower bound. */
static char *put_array_head(char *p, bool has_null, uint32_t type, size_t count)
{
    p = put_u32(p, 1);
    p = put_u32(p, has_null);
    p = put_u32(p, type);
    p = put_u32(p, (uint32_t)count);
    return put_u32(p, 1);
}

/* One column of a group. */
static int add_array(struct plan *plan, struct hd_pg_params *params, struct group group,
                     unsigned column)
{
    const struct hd_table *table = &hd_tables[op_of(plan, group, 0)->table];
    uint32_t type = table->columns[column].type == HD_COL_INT ? OID_INT8 : OID_BYTEA;
    bool has_null = false;
    size_t size = ARRAY_HEAD;
    char *p, *array;

    for (size_t i = 0; i < group.count; i++) {
        const struct hd_cell *cell = &op_of(plan, group, i)->cells[column];

        size += 4 + cell_size(cell);
        has_null |= cell->kind == HD_CELL_NULL;
    }
    array = hd_arena_alloc(&plan->arena, size);
    if (!array)
        return HD_ENOMEM;
    p = put_array_head(array, has_null, type, group.count);
    for (size_t i = 0; i < group.count; i++)
        p = put_element(p, &op_of(plan, group, i)->cells[column]);
    params->values[params->count] = array;
    params->lengths[params->count++] = (int)size;
    return 0;
}

/* The values that a group expects (`which` 0) or sets (1, 2). */
static int add_numbers(struct plan *plan, struct hd_pg_params *params, struct group group,
                       unsigned which)
{
    size_t size = ARRAY_HEAD + group.count * (4 + 8);
    char *array = hd_arena_alloc(&plan->arena, size);
    char *p;

    if (!array)
        return HD_ENOMEM;
    p = put_array_head(array, false, OID_INT8, group.count);
    for (size_t i = 0; i < group.count; i++) {
        const struct hd_op *op = op_of(plan, group, i);
        struct hd_cell cell = hd_cell_int(which ? op->set[which - 1] : op->expected);

        p = put_element(p, &cell);
    }
    params->values[params->count] = array;
    params->lengths[params->count++] = (int)size;
    return 0;
}

/* ---- statements ---- */

/*
 * A join over arrays is planned each time: a plan from when the table was small could read all of
 * it when it is large.
 */
static int send_statement(struct hd_pg *pg, struct hd_pg_conn *conn, struct plan *plan,
                          const struct hd_pg_sql *sql, const struct hd_pg_params *params,
                          bool is_join, size_t tag, struct hd_pg_failure *failure)
{
    bool is_named = !is_join && !atomic_load(&pg->is_plain);
    int err = hd_pg_send(conn, sql->text, is_named, params, tag, failure);

    hd_arena_reset(&plan->arena);
    return err;
}

static int fill_rows(struct plan *plan, struct hd_pg_params *params, struct group group,
                     struct hd_pg_sql *sql, const char *schema)
{
    const struct hd_op *op = op_of(plan, group, 0);
    const struct hd_table *table = &hd_tables[op->table];
    bool is_many = group.count > 1;
    int err = 0;

    hd_pg_sql_insert(sql, schema, table, op->kind, is_many);
    for (unsigned i = 0; !err && i < table->column_count; i++)
        err = is_many ? add_array(plan, params, group, i) : add_cell(plan, params, &op->cells[i]);
    return err;
}

static int fill_delete(struct plan *plan, struct hd_pg_params *params, struct group group,
                       struct hd_pg_sql *sql, const char *schema)
{
    const struct hd_op *op = op_of(plan, group, 0);
    bool is_many = group.count > 1;
    unsigned last = op->key_count - 1;
    int err = 0;

    hd_pg_sql_delete(sql, schema, &hd_tables[op->table], op->key_count, is_many);
    for (unsigned i = 0; !err && i < last; i++)
        err = add_cell(plan, params, &op->cells[i]);
    if (!err)
        err = is_many ? add_array(plan, params, group, last)
                      : add_cell(plan, params, &op->cells[last]);
    return err;
}

static int fill_expect(struct plan *plan, struct hd_pg_params *params, struct group group,
                       struct hd_pg_sql *sql, const char *schema)
{
    const struct hd_op *op = op_of(plan, group, 0);
    unsigned key_count = hd_tables[op->table].key_count;
    bool is_many = group.count > 1;
    int err = 0;

    hd_pg_sql_expect(sql, schema, op, is_many);
    for (unsigned i = 0; !err && i < key_count; i++)
        err = is_many ? add_array(plan, params, group, i) : add_cell(plan, params, &op->cells[i]);
    for (unsigned i = 0; !err && i <= op->set_count; i++)
        err = is_many ? add_numbers(plan, params, group, i)
                      : add_int(plan, params, i ? op->set[i - 1] : op->expected);
    return err;
}

static int fill_group(struct hd_pg *pg, struct plan *plan, struct group group,
                      struct hd_pg_params *params, struct hd_pg_sql *sql)
{
    const struct hd_op *op = op_of(plan, group, 0);

    if (may_conflict(op->kind) && group.count > 1)
        plan->has_grouped = true;
    if (op->kind == HD_OP_EXPECT)
        return fill_expect(plan, params, group, sql, pg->schema);
    if (op->kind == HD_OP_DELETE)
        return fill_delete(plan, params, group, sql, pg->schema);
    return fill_rows(plan, params, group, sql, pg->schema);
}

/* The pipeline is incomplete, so its connection cannot be used any more. */
static int fail_memory(struct hd_pg_failure *failure)
{
    (void)hd_pg_fail(failure, HD_ENOMEM, "out of memory");
    failure->is_lost = true;
    return failure->err;
}

/* The statement's tag is the number of its first operation. */
static int send_group(struct hd_pg *pg, struct hd_pg_conn *conn, struct plan *plan,
                      struct group group, struct hd_pg_failure *failure)
{
    bool is_join = group.count > 1 && op_of(plan, group, 0)->kind == HD_OP_EXPECT;
    struct hd_pg_params params = {0};
    struct hd_pg_sql sql;

    if (fill_group(pg, plan, group, &params, &sql))
        return fail_memory(failure);
    return send_statement(pg, conn, plan, &sql, &params, is_join, group.ops[0], failure);
}

/* Locks the rows of a table that the batch expects, in key order, if there are several. */
static int send_locks(struct hd_pg *pg, struct hd_pg_conn *conn, struct plan *plan,
                      enum hd_table_id table, struct hd_pg_failure *failure)
{
    struct hd_pg_params params = {0};
    struct hd_pg_sql sql;
    size_t *ops, count = 0;

    for (size_t i = 0; i < plan->batch->count; i++)
        count += plan->batch->ops[i].table == table && plan->batch->ops[i].kind == HD_OP_EXPECT;
    if (count < 2)
        return 0;
    ops = hd_arena_alloc(&plan->arena, count * sizeof(*ops));
    if (!ops)
        return fail_memory(failure);
    count = 0;
    for (size_t i = 0; i < plan->batch->count; i++) {
        if (plan->batch->ops[i].table == table && plan->batch->ops[i].kind == HD_OP_EXPECT)
            ops[count++] = i;
    }
    for (unsigned i = 0; i < hd_tables[table].key_count; i++) {
        if (add_array(plan, &params, (struct group){ops, count}, i))
            return fail_memory(failure);
    }
    hd_pg_sql_lock(&sql, pg->schema, &hd_tables[table]);
    return send_statement(pg, conn, plan, &sql, &params, hd_tables[table].key_count > 1,
                          HD_PG_NO_TAG, failure);
}

/* ---- the transaction ---- */

int hd_pg_send_begin(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                     struct hd_pg_failure *failure)
{
    /*
     * Of the server's settings only "off" gives up durability: the others flush its own disk at
     * least.
     */
    static const char full[] = "SELECT pg_catalog.set_config('lock_timeout', $1::text, true),"
                               " pg_catalog.set_config('statement_timeout', $2::text, true),"
                               " CASE pg_catalog.current_setting('synchronous_commit') WHEN 'off'"
                               " THEN pg_catalog.set_config('synchronous_commit', 'on', true) END";
    static const char relaxed[] = "SELECT pg_catalog.set_config('lock_timeout', $1::text, true),"
                                  " pg_catalog.set_config('statement_timeout', $2::text, true),"
                                  " pg_catalog.set_config('synchronous_commit', 'off', true)";
    long long left_ms = (deadline_us - hd_clock_monotonic_us()) / 1000;
    char lock_ms[24], statement_ms[24];
    struct hd_pg_params params = {.count = 2, .values = {lock_ms, statement_ms}};
    int err = hd_pg_send_plain(conn, "BEGIN ISOLATION LEVEL READ COMMITTED", false, failure);

    params.lengths[0] = snprintf(lock_ms, sizeof(lock_ms), "%lld", left_ms > 1 ? left_ms : 1);
    params.lengths[1] = snprintf(statement_ms, sizeof(statement_ms), "%d",
                                 HD_PG_STATEMENT_TIMEOUTS * pg->timeout_ms);
    if (err)
        return err;
    return hd_pg_send(conn, pg->is_relaxed ? relaxed : full, !atomic_load(&pg->is_plain), &params,
                      HD_PG_NO_TAG, failure);
}

static int send_batch(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                      struct plan *plan, struct hd_pg_failure *failure)
{
    int err = hd_pg_send_begin(pg, conn, deadline_us, failure);

    plan->has_grouped = false;
    for (unsigned table = 0; !err && table < HD_TABLE_COUNT; table++)
        err = send_locks(pg, conn, plan, table, failure);
    for (size_t at = 0; !err && at < plan->batch->count;) {
        struct group group = next_group(plan, at);

        err = send_group(pg, conn, plan, group, failure);
        at += group.count;
    }
    if (!err)
        err = hd_pg_send_plain(conn, "COMMIT", true, failure);
    return err;
}

static int run_once(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                    struct plan *plan, struct hd_pg_failure *failure)
{
    int err = send_batch(pg, conn, deadline_us, plan, failure);

    if (err)
        return err;
    err = hd_pg_finish(conn, NULL, failure);
    if (conn->is_committed)
        return 0; /* committed, even if the connection failed after that */
    if (!err) {
        (void)hd_pg_fail(failure, HD_EIO, "the server did not commit");
        failure->is_lost = true;
        err = failure->err;
    }
    return err;
}

static int run_batch(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                     struct hd_pg_failure *failure)
{
    struct plan *plan = arg;
    int err = run_once(pg, conn, deadline_us, plan, failure);

    if (err == HD_ECONFLICT && plan->has_grouped && !failure->is_lost) {
        plan->is_one_by_one = true;
        err = run_once(pg, conn, deadline_us, plan, failure);
    }
    if (err == HD_ECONFLICT && failure->tag == HD_PG_NO_TAG)
        err = failure->err = HD_EIO; /* no operation of ours: for example a trigger */
    if (err == HD_ECONFLICT) {
        plan->failed = failure->tag;
        (void)snprintf(failure->text, sizeof(failure->text),
                       "a row of %s was changed by another writer",
                       hd_tables[plan->batch->ops[plan->failed].table].name);
    }
    return err;
}

int hd_pg_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                struct heddle_error *fault)
{
    struct hd_pg *pg = hd_pg_from(backend);
    struct plan plan;
    int err = check_sizes(batch, fault);

    if (err || batch->count == 0)
        return err;
    err = plan_init(&plan, batch);
    if (err)
        (void)hd_error_set(fault, err, "%s", hd_error_text(err));
    else
        err = hd_pg_run(pg, run_batch, &plan, fault);
    if (err == HD_ECONFLICT)
        *failed = plan.failed;
    plan_fini(&plan);
    return err;
}
