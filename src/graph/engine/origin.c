#include "graph/engine/origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/batch.h"
#include "store/list_append.h"
#include "store/rows.h"
#include "store/store.h"

#define MAX_ORIGIN ((size_t)1 << 30)

static int copy_bytes(struct hd_arena *arena, struct heddle_bytes from, struct heddle_bytes *to)
{
    struct hd_slice copy;
    int err = hd_arena_copy(arena, hd_slice(from.data, from.len), &copy);

    if (!err)
        *to = (struct heddle_bytes){copy.ptr, copy.len};
    return err;
}

static int copy_write(struct hd_arena *arena, const struct heddle_write *from,
                      struct heddle_write *to)
{
    int err = copy_bytes(arena, from->task_id, &to->task_id);

    to->idx = from->idx;
    if (!err)
        err = copy_bytes(arena, from->task_path, &to->task_path);
    if (!err)
        err = copy_bytes(arena, from->value.channel, &to->value.channel);
    if (!err)
        err = copy_bytes(arena, from->value.type, &to->value.type);
    return err ? err : copy_bytes(arena, from->value.data, &to->value.data);
}

/* A write is identified by task and position. Special writes have negative ones and sort last. */
static int by_position(const void *a, const void *b)
{
    const struct heddle_write *x = a, *y = b;
    int order = hd_slice_cmp(hd_slice(x->task_id.data, x->task_id.len),
                             hd_slice(y->task_id.data, y->task_id.len));

    if (order)
        return order;
    if ((x->idx < 0) != (y->idx < 0))
        return x->idx < 0 ? 1 : -1;
    return (x->idx > y->idx) - (x->idx < y->idx);
}

static int fill_origin(struct hd_origin *origin, const struct heddle_tuple *tuple,
                       struct hd_slice ns)
{
    struct hd_arena *arena = &origin->arena;
    int err = copy_bytes(arena, (struct heddle_bytes){ns.ptr, ns.len}, &origin->ns);

    if (!err)
        err = copy_bytes(arena, tuple->id, &origin->id);
    if (err || tuple->write_count == 0)
        return err;
    origin->writes = hd_arena_calloc(arena, tuple->write_count, sizeof(*origin->writes));
    if (!origin->writes)
        return HD_ENOMEM;
    for (size_t i = 0; i < tuple->write_count && !err; i++)
        err = copy_write(arena, &tuple->writes[i], &origin->writes[i]);
    origin->write_count = tuple->write_count;
    qsort(origin->writes, origin->write_count, sizeof(*origin->writes), by_position);
    return err;
}

int hd_origin_add(struct hd_origin **list, const struct heddle_tuple *tuple, struct hd_slice ns)
{
    struct hd_origin *origin = hd_calloc(1, sizeof(*origin));
    int err;

    if (!origin)
        return HD_ENOMEM;
    hd_arena_init(&origin->arena, MAX_ORIGIN);
    err = fill_origin(origin, tuple, ns);
    if (err) {
        hd_origins_free(origin);
        return err;
    }
    origin->next = *list;
    *list = origin;
    return 0;
}

void hd_origins_free(struct hd_origin *list)
{
    while (list) {
        struct hd_origin *next = list->next;

        hd_arena_fini(&list->arena);
        hd_free(list);
        list = next;
    }
}

/* ---- restoring -------------------------------------------------------- */

static bool is_same_task(const struct heddle_write *a, const struct heddle_write *b)
{
    return hd_slice_eq(hd_slice(a->task_id.data, a->task_id.len),
                       hd_slice(b->task_id.data, b->task_id.len));
}

/*
 * Restores the special writes of a task, which start at `first`; *count is their number. The other
 * writes still exist, because the store keeps the first write at a position.
 */
static int put_special(struct heddle *store, const struct hd_origin *origin, size_t first,
                       const struct heddle_thread *thread, struct hd_guard guard, size_t *count,
                       struct heddle_error *fault)
{
    const struct heddle_write *writes = &origin->writes[first];
    struct heddle_value *values;
    size_t n = 1;
    int err;

    while (first + n < origin->write_count && is_same_task(&writes[0], &writes[n]))
        n++;
    *count = n;
    values = hd_calloc(n, sizeof(*values));
    if (!values)
        return HD_ENOMEM;
    for (size_t i = 0; i < n; i++)
        values[i] = writes[i].value;

    const struct heddle_writes put = {.thread = *thread,
                                      .ns = origin->ns,
                                      .checkpoint_id = origin->id,
                                      .task_id = writes[0].task_id,
                                      .task_path = writes[0].task_path,
                                      .values = values,
                                      .value_count = n};

    err = hd_store_put_writes(store, &put, guard, fault);
    hd_free(values);
    return err;
}

struct added {
    const struct hd_origin *origin;
    struct hd_batch_builder batch; /* deletes the added writes */
};

static int on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct added *added = arg;
    const struct hd_origin *origin = added->origin;
    struct hd_cell key[HD_WRITES_IDX + 1];
    struct hd_slice task = cells[HD_WRITES_TASK].bytes;
    const struct heddle_write wanted = {.task_id = {task.ptr, task.len},
                                        .idx = cells[HD_WRITES_IDX].number};
    int err = 0;

    (void)which;
    if (origin->write_count > 0 &&
        bsearch(&wanted, origin->writes, origin->write_count, sizeof(wanted), by_position))
        return 0;
    memcpy(key, cells, sizeof(key));
    for (size_t i = 0; !err && i < HD_WRITES_IDX; i++)
        err = hd_arena_copy(&added->batch.arena, cells[i].bytes, &key[i].bytes);
    return err ? err : hd_batch_delete(&added->batch, HD_WRITES, key, HD_COUNT(key));
}

/* Deletes the writes that the checkpoint did not have before the run. */
static int delete_added(struct heddle *store, const struct hd_origin *origin,
                        const struct heddle_thread *thread, struct heddle_error *fault)
{
    struct added added = {.origin = origin};
    struct hd_batch view;
    struct hd_slice key;
    int err;

    hd_batch_init(&added.batch);
    err = hd_store_thread_key(thread, &added.batch.arena, &key, fault);
    if (!err) {
        const struct hd_cell prefix[] = {hd_cell_bytes(key),
                                         hd_cell_bytes(hd_slice(origin->ns.data, origin->ns.len)),
                                         hd_cell_bytes(hd_slice(origin->id.data, origin->id.len))};
        const struct hd_query query = {.table = HD_WRITES,
                                       .index = HD_PRIMARY,
                                       .prefix = prefix,
                                       .prefix_count = HD_COUNT(prefix)};

        err = hd_rows_read(store, &query, 1, on_write, &added, fault);
    }
    view = hd_batch_view(&added.batch);
    if (!err && view.count > 0)
        err = hd_rows_apply(store, key, &view, NULL, fault);
    hd_batch_fini(&added.batch);
    return err;
}

/* Restores before it deletes: a process that ends in between loses no interrupt and no result. */
int hd_origins_restore(struct heddle *store, const struct hd_origin *list,
                       const struct heddle_thread *thread, struct hd_guard guard,
                       struct heddle_error *fault)
{
    int err = 0;

    for (; list && !err; list = list->next) {
        size_t count = 1;

        for (size_t i = 0; list->is_touched && i < list->write_count && !err; i += count) {
            count = 1;
            if (list->writes[i].idx < 0)
                err = put_special(store, list, i, thread, guard, &count, fault);
        }
        if (!err && list->is_touched)
            err = delete_added(store, list, thread, fault);
    }
    return err;
}
