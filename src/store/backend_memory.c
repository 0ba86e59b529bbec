/*
 * The store in memory. It is the simplest driver, and the reference for the others.
 *
 * A row is one allocation: its cells, their bytes, and its links in the trees of its table, one for
 * the key and one for each index. A row in a tree never changes; replacing one removes the old row
 * and inserts a new one. So a reader takes a reference to each row while it holds the lock, and
 * reads the rows after releasing it: it sees one state and blocks no other thread.
 *
 * A batch is applied operation by operation and every change is recorded. If one fails, the changes
 * are undone in reverse order. Because links are part of the rows, undoing allocates nothing and
 * cannot fail.
 *
 * The trees are treaps: binary search trees balanced by random priorities. Their expected depth is
 * logarithmic for any order of insertion. A row has the first bytes of its key beside its links:
 * with many threads most searches need no other bytes.
 */
#include "store/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

enum { MAX_TREES = 1 + HD_MAX_INDEXES }; /* per table: the key's, then its indexes' */

struct memory_row;

struct tree_link {
    struct memory_row *left, *right;
};

struct memory_row {
    atomic_uint refs; /* one for being in the trees, one for each reader */
    uint32_t priority;
    uint64_t head; /* see head_of() */
    struct tree_link links[MAX_TREES];
    struct hd_cell cells[]; /* their bytes follow in the same allocation */
};

struct memory_backend {
    struct hd_backend base; /* must be first */

    /*
     * `lock` guards the trees. Every thread passes the gate before it takes the lock, so that
     * overlapping readers cannot starve a writer.
     */
    pthread_mutex_t gate;
    pthread_rwlock_t lock;
    struct memory_row *roots[HD_TABLE_COUNT][MAX_TREES];
    uint64_t random;
};

static struct memory_backend *memory_from(struct hd_backend *backend)
{
    return (struct memory_backend *)backend;
}

/* ---- rows ------------------------------------------------------------- */

/* A Weyl sequence, mixed: even enough for a treap, and the same in every execution. */
static uint32_t next_priority(struct memory_backend *memory)
{
    uint64_t x = memory->random += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 32);
}

/*
 * The first bytes of the key as a number. Rows with different numbers have the order of these
 * numbers.
 */
static uint64_t head_of(const struct hd_cell *key)
{
    uint64_t head = 0;

    if (key->kind == HD_CELL_INT)
        return (uint64_t)key->number ^ ((uint64_t)1 << 63);
    for (size_t i = 0; key->kind == HD_CELL_BYTES && i < sizeof(head); i++)
        head = head << 8 | (i < key->bytes.len ? (unsigned char)key->bytes.ptr[i] : 0);
    return head;
}

/* Copies a row; HD_OP_EXPECT changes a few integers of the copy before it becomes visible. */
static struct memory_row *row_create(struct memory_backend *memory, const struct hd_table *table,
                                     const struct hd_cell *cells)
{
    size_t head = sizeof(struct memory_row) + table->column_count * sizeof(struct hd_cell);
    size_t size = head;
    struct memory_row *row;
    char *end;

    for (unsigned i = 0; i < table->column_count; i++)
        size += cells[i].kind == HD_CELL_BYTES ? cells[i].bytes.len : 0;
    row = hd_malloc(size);
    if (!row)
        return NULL;
    memset(row, 0, sizeof(*row));
    atomic_init(&row->refs, 1);
    row->priority = next_priority(memory);
    row->head = head_of(cells);
    end = (char *)row + head;
    for (unsigned i = 0; i < table->column_count; i++) {
        row->cells[i] = cells[i];
        if (cells[i].kind != HD_CELL_BYTES || cells[i].bytes.len == 0)
            continue;
        memcpy(end, cells[i].bytes.ptr, cells[i].bytes.len);
        row->cells[i].bytes.ptr = end;
        end += cells[i].bytes.len;
    }
    return row;
}

static void row_ref(struct memory_row *row)
{
    atomic_fetch_add_explicit(&row->refs, 1, memory_order_relaxed);
}

static void row_unref(struct memory_row *row)
{
    if (atomic_fetch_sub_explicit(&row->refs, 1, memory_order_acq_rel) == 1)
        hd_free(row);
}

/* A growing list of rows, each with the number of the query that found it. */
struct hit {
    struct memory_row *row;
    size_t which;
};

struct hits {
    struct hit *items;
    size_t count;
    size_t cap;
};

static int hits_add(struct hits *hits, struct memory_row *row, size_t which)
{
    int err = hd_array_grow(hits->items, hits->count, hits->cap);

    if (err)
        return err;
    row_ref(row);
    hits->items[hits->count++] = (struct hit){row, which};
    return 0;
}

static void hits_fini(struct hits *hits)
{
    for (size_t i = 0; i < hits->count; i++)
        row_unref(hits->items[i].row);
    hd_free(hits->items);
}

/* ---- trees ------------------------------------------------------------ */

/* One tree of one table: tree 0 is ordered by the key, tree n by index n - 1. */
struct tree {
    struct memory_row **root;
    unsigned slot; /* which of the links of a row */
    struct hd_query order;
};

static struct tree tree_of(struct memory_backend *memory, enum hd_table_id table, int index)
{
    return (struct tree){.root = &memory->roots[table][index + 1],
                         .slot = (unsigned)(index + 1),
                         .order = {.table = table, .index = index}};
}

static int tree_compare(const struct tree *tree, const struct hd_cell *a, const struct hd_cell *b)
{
    unsigned count = hd_query_order_count(&tree->order);

    for (unsigned i = 0; i < count; i++) {
        unsigned column = hd_query_order_column(&tree->order, i);
        int order = hd_cell_cmp(&a[column], &b[column]);

        if (order != 0)
            return order;
    }
    return 0;
}

/* The same for a key and a row of the tree; compares the head first. */
static int compare_row(const struct tree *tree, uint64_t head, const struct hd_cell *key,
                       const struct memory_row *row)
{
    if (tree->slot == 0 && head != row->head)
        return head < row->head ? -1 : 1;
    return tree_compare(tree, key, row->cells);
}

static struct memory_row *tree_find(const struct tree *tree, const struct hd_cell *key)
{
    struct memory_row *node = *tree->root;
    uint64_t head = head_of(key);

    while (node) {
        int order = compare_row(tree, head, key, node);

        if (order == 0)
            return node;
        node = order < 0 ? node->links[tree->slot].left : node->links[tree->slot].right;
    }
    return NULL;
}

/* No row with the same key may be in the tree. */
static void tree_insert(const struct tree *tree, struct memory_row *row)
{
    struct memory_row **at = tree->root;
    struct memory_row **less = &row->links[tree->slot].left;
    struct memory_row **more = &row->links[tree->slot].right;
    struct memory_row *node;

    /* It belongs above every node of lower priority: find that place … */
    while (*at && (*at)->priority >= row->priority) {
        struct tree_link *link = &(*at)->links[tree->slot];

        at = compare_row(tree, row->head, row->cells, *at) < 0 ? &link->left : &link->right;
    }
    node = *at;
    *at = row;
    /* … and split the subtree there into its two sides. */
    while (node) {
        if (compare_row(tree, node->head, node->cells, row) < 0) {
            *less = node;
            less = &node->links[tree->slot].right;
            node = *less;
        } else {
            *more = node;
            more = &node->links[tree->slot].left;
            node = *more;
        }
    }
    *less = NULL;
    *more = NULL;
}

/* The row must be in the tree. */
static void tree_remove(const struct tree *tree, struct memory_row *row)
{
    struct memory_row **at = tree->root;
    struct memory_row *left = row->links[tree->slot].left;
    struct memory_row *right = row->links[tree->slot].right;

    while (*at != row) {
        struct tree_link *link = &(*at)->links[tree->slot];

        at = compare_row(tree, row->head, row->cells, *at) < 0 ? &link->left : &link->right;
    }
    /* Merges its two subtrees in its place. */
    while (left && right) {
        if (left->priority >= right->priority) {
            *at = left;
            at = &left->links[tree->slot].right;
            left = *at;
        } else {
            *at = right;
            at = &right->links[tree->slot].left;
            right = *at;
        }
    }
    *at = left ? left : right;
}

/* Every row is in the tree of its key; table.h defines which rows an index has. */
static bool belongs(const struct tree *tree, const struct memory_row *row)
{
    const struct hd_table *table = &hd_tables[tree->order.table];
    const struct hd_index *index =
        tree->order.index == HD_PRIMARY ? NULL : &table->indexes[tree->order.index];

    if (index && index->is_partial &&
        hd_cell_cmp(&row->cells[index->greater], &row->cells[index->lesser]) <= 0)
        return false;
    return row->cells[hd_query_order_column(&tree->order, 0)].kind != HD_CELL_NULL;
}

static void insert_row(struct memory_backend *memory, enum hd_table_id table,
                       struct memory_row *row)
{
    for (int index = HD_PRIMARY; index < (int)hd_tables[table].index_count; index++) {
        struct tree tree = tree_of(memory, table, index);

        if (belongs(&tree, row))
            tree_insert(&tree, row);
    }
}

static void remove_row(struct memory_backend *memory, enum hd_table_id table,
                       struct memory_row *row)
{
    for (int index = HD_PRIMARY; index < (int)hd_tables[table].index_count; index++) {
        struct tree tree = tree_of(memory, table, index);

        if (belongs(&tree, row))
            tree_remove(&tree, row);
    }
}

/* ---- scans ------------------------------------------------------------ */

/*
 * The position of a row relative to the range of a query, in tree order: before it (negative), in
 * it, or after it.
 */
static int place(const struct hd_query *query, const struct hd_cell *cells)
{
    int order;

    for (unsigned i = 0; i < query->prefix_count; i++) {
        order = hd_cell_cmp(&cells[hd_query_order_column(query, i)], &query->prefix[i]);
        if (order != 0)
            return order;
    }
    if (query->low || query->high) {
        const struct hd_cell *cell = &cells[hd_query_order_column(query, query->prefix_count)];

        if (query->low && hd_cell_cmp(cell, query->low) < 0)
            return -1;
        if (query->high && hd_cell_cmp(cell, query->high) >= 0)
            return 1;
    }
    order = 0;
    for (unsigned i = 0; i < query->after_count && order == 0; i++) {
        unsigned column = hd_query_order_column(query, query->prefix_count + i);

        order = hd_cell_cmp(&cells[column], &query->after[i]);
    }
    if (query->after_count == 0)
        return 0;
    if (query->is_reverse)
        return order >= 0 ? 1 : 0;
    return order <= 0 ? -1 : 0;
}

/* A running query. */
struct sweep {
    const struct hd_query *query;
    size_t which;
    bool has_head; /* all its rows have the same head */
    uint64_t head;
    struct hits *hits;
    size_t most; /* limit of hits */
};

/* Adds the rows of the range below `node` in scan order, until there are `most` hits. */
static int scan_collect(const struct sweep *sweep, struct memory_row *node)
{
    const struct tree_link *link;
    struct memory_row *first, *second;
    int order, err;

    if (!node || sweep->hits->count >= sweep->most)
        return 0;
    if (sweep->has_head && node->head != sweep->head)
        order = node->head < sweep->head ? -1 : 1;
    else
        order = place(sweep->query, node->cells);
    link = &node->links[sweep->query->index + 1];
    first = order >= 0 ? link->left : NULL;
    second = order <= 0 ? link->right : NULL;
    if (sweep->query->is_reverse) {
        struct memory_row *swapped = first;

        first = second;
        second = swapped;
    }
    err = scan_collect(sweep, first);
    if (!err && order == 0 && sweep->hits->count < sweep->most)
        err = hits_add(sweep->hits, node, sweep->which);
    if (!err)
        err = scan_collect(sweep, second);
    return err;
}

static int tree_scan(struct memory_backend *memory, const struct hd_query *query, size_t which,
                     struct hits *hits)
{
    struct sweep sweep = {.query = query, .which = which, .hits = hits, .most = SIZE_MAX};

    if (query->limit && query->limit < SIZE_MAX - hits->count)
        sweep.most = hits->count + query->limit;
    sweep.has_head = query->index == HD_PRIMARY && query->prefix_count > 0;
    if (sweep.has_head)
        sweep.head = head_of(query->prefix);
    return scan_collect(&sweep, memory->roots[query->table][query->index + 1]);
}

/* ---- batches ---------------------------------------------------------- */

/*
 * One change to a table: `removed` was taken out, `added` was put in; either may be NULL. `removed`
 * keeps its reference.
 */
struct memory_change {
    enum hd_table_id table;
    struct memory_row *removed;
    struct memory_row *added;
};

struct memory_work {
    HD_VEC(struct memory_change) changes;
    struct memory_backend *memory;
};

/* Takes the caller's reference to `added`, also on failure. */
static int change(struct memory_work *work, enum hd_table_id table, struct memory_row *removed,
                  struct memory_row *added)
{
    int err = hd_vec_push(&work->changes, (struct memory_change){table, removed, added});

    if (err) {
        if (added)
            row_unref(added);
        return err;
    }
    if (removed)
        remove_row(work->memory, table, removed);
    if (added)
        insert_row(work->memory, table, added);
    return 0;
}

static int put_row(struct memory_work *work, const struct hd_op *op)
{
    struct tree tree = tree_of(work->memory, op->table, HD_PRIMARY);
    struct memory_row *old = tree_find(&tree, op->cells);
    struct memory_row *row;

    if (old && op->kind == HD_OP_PUT_NEW)
        return 0;
    if (old && op->kind == HD_OP_ADD)
        return HD_ECONFLICT;
    row = row_create(work->memory, &hd_tables[op->table], op->cells);
    return row ? change(work, op->table, old, row) : HD_ENOMEM;
}

static int delete_rows(struct memory_work *work, const struct hd_op *op)
{
    struct hd_query query = {.table = op->table,
                             .index = HD_PRIMARY,
                             .prefix = op->cells,
                             .prefix_count = op->key_count};
    struct hits hits = {0};
    int err = tree_scan(work->memory, &query, 0, &hits);

    for (size_t i = 0; !err && i < hits.count; i++)
        err = change(work, op->table, hits.items[i].row, NULL);
    hits_fini(&hits);
    return err;
}

static int expect_row(struct memory_work *work, const struct hd_op *op)
{
    struct tree tree = tree_of(work->memory, op->table, HD_PRIMARY);
    struct memory_row *old = tree_find(&tree, op->cells);
    struct memory_row *row;

    if (!old || old->cells[op->column].number != op->expected)
        return HD_ECONFLICT;
    if (op->set_count == 0)
        return 0;
    row = row_create(work->memory, &hd_tables[op->table], old->cells);
    if (!row)
        return HD_ENOMEM;
    for (unsigned i = 0; i < op->set_count; i++)
        row->cells[op->set_column + i] = hd_cell_int(op->set[i]);
    if (op->clear_column)
        row->cells[op->clear_column] = hd_cell_null();
    return change(work, op->table, old, row);
}

static int batch_apply(struct memory_work *work, const struct hd_op *op)
{
    switch (op->kind) {
    case HD_OP_PUT:
    case HD_OP_PUT_NEW:
    case HD_OP_ADD:
        return put_row(work, op);
    case HD_OP_DELETE:
        return delete_rows(work, op);
    case HD_OP_EXPECT:
        return expect_row(work, op);
    }
    return HD_EINVAL;
}

/* Rows that left the trees lose the trees' reference. */
static void batch_finish(struct memory_work *work, bool is_undone)
{
    while (work->changes.count > 0) {
        struct memory_change *note = &work->changes.items[--work->changes.count];

        if (is_undone && note->added)
            remove_row(work->memory, note->table, note->added);
        if (is_undone && note->removed)
            insert_row(work->memory, note->table, note->removed);
        if (is_undone ? note->added : note->removed)
            row_unref(is_undone ? note->added : note->removed);
    }
    hd_vec_fini(&work->changes);
}

/* ---- the driver ------------------------------------------------------- */

static void lock_for_reading(struct memory_backend *memory)
{
    pthread_mutex_lock(&memory->gate);
    pthread_rwlock_rdlock(&memory->lock);
    pthread_mutex_unlock(&memory->gate);
}

static void lock_for_writing(struct memory_backend *memory)
{
    pthread_mutex_lock(&memory->gate);
    pthread_rwlock_wrlock(&memory->lock);
    pthread_mutex_unlock(&memory->gate);
}

static int memory_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                        struct heddle_error *fault)
{
    struct memory_work work = {.memory = memory_from(backend)};
    int err = 0;
    size_t i;

    lock_for_writing(work.memory);
    for (i = 0; !err && i < batch->count; i++)
        err = batch_apply(&work, &batch->ops[i]);
    batch_finish(&work, err != 0);
    pthread_rwlock_unlock(&work.memory->lock);
    if (err == HD_ECONFLICT)
        *failed = i - 1;
    return err ? hd_error_set(fault, err, "memory: %s", hd_error_text(err)) : 0;
}

static int deliver(const struct hits *hits, hd_row_fn fn, void *arg)
{
    size_t skipped = SIZE_MAX;

    for (size_t i = 0; i < hits->count; i++) {
        int answer;

        if (hits->items[i].which == skipped)
            continue;
        answer = fn(arg, hits->items[i].which, hits->items[i].row->cells);
        if (answer < 0)
            return answer;
        if (answer > 0)
            skipped = hits->items[i].which;
    }
    return 0;
}

static int memory_read(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                       hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct memory_backend *memory = memory_from(backend);
    struct hits hits = {0};
    int err = 0;

    lock_for_reading(memory);
    for (size_t i = 0; !err && i < count; i++)
        err = tree_scan(memory, &queries[i], i, &hits);
    pthread_rwlock_unlock(&memory->lock);
    if (err)
        hd_error_set(fault, err, "memory: %s", hd_error_text(err));
    else
        err = deliver(&hits, fn, arg);
    hits_fini(&hits);
    return err;
}

static void free_rows(struct memory_row *node)
{
    if (!node)
        return;
    free_rows(node->links[0].left);
    free_rows(node->links[0].right);
    row_unref(node);
}

static void memory_close(struct hd_backend *backend)
{
    struct memory_backend *memory = memory_from(backend);

    for (int table = 0; table < HD_TABLE_COUNT; table++)
        free_rows(memory->roots[table][0]);
    pthread_rwlock_destroy(&memory->lock);
    pthread_mutex_destroy(&memory->gate);
    hd_free(memory);
}

static int memory_open(struct hd_backend **out, const struct hd_url *url,
                       struct heddle_error *fault)
{
    struct memory_backend *memory;

    if (*url->rest)
        return hd_error_set(fault, HD_EINVAL, "memory: takes no path");
    memory = hd_calloc(1, sizeof(*memory));
    if (!memory)
        return hd_error_set(fault, HD_ENOMEM, "memory: out of memory");
    memory->base = (struct hd_backend){.ops = &hd_backend_memory, .lanes = 1, .keeps_raw = true};
    if (pthread_mutex_init(&memory->gate, NULL) != 0)
        goto free_memory;
    if (pthread_rwlock_init(&memory->lock, NULL) != 0)
        goto destroy_gate;
    *out = &memory->base;
    return 0;

destroy_gate:
    pthread_mutex_destroy(&memory->gate);
free_memory:
    hd_free(memory);
    return hd_error_set(fault, HD_ENOMEM, "memory: too many locks");
}

const struct hd_backend_ops hd_backend_memory = {
    .schemes = {"memory"},
    .open = memory_open,
    .close = memory_close,
    .apply = memory_apply,
    .read = memory_read,
};
