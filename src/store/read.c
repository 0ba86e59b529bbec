/*
 * Reads rows as tuples. Usually two round trips: the checkpoint's row, then its writes together
 * with the chunks of its values; a third when a write's value is long enough to be chunked.
 *
 * The rows are not read in one transaction. A concurrent prune can delete chunks that an earlier
 * row refers to: then a chunk is missing, and the whole is read again. A missing chunk without a
 * deletion is damage (retry.h). A prune can also delete the checkpoint itself with its writes: so
 * its row is looked up again together with its writes.
 *
 * The latest checkpoint usually has the greatest id. Strays (order.h) are looked up in the same
 * round trip; if the greatest id is in their window, the order of the window decides.
 */
#include "base/error.h"
#include "base/list.h"
#include "store/allowance.h"
#include "store/codec/pack.h"
#include "store/fetch.h"
#include "store/list_append.h"
#include "store/order.h"
#include "store/retry.h"

enum { SENDS_BELOW_VERSION = 4 };

struct write_node {
    struct heddle_write write;
    struct hd_slice ref;
    struct write_node *next;
};

struct write_list {
    HD_FIFO(struct write_node) nodes;
    size_t count;
};

struct read_item {
    struct hd_key key;
    bool is_there;  /* it existed when its writes were read */
    bool is_latest; /* no id was given */
    struct hd_window window;
    struct heddle_tuple *tuple;
    struct hd_checkpoint_body body;
    struct write_list writes;
    struct write_list sends;
};

struct tuple_reader {
    struct hd_store *store;
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct read_item *items;
    size_t count;
    int flags;
    const struct hd_known *known;
    size_t known_count;
    struct hd_allowance *allowance;
    struct hd_reading reading;
    struct hd_fetch fetch;
};

static int reader_copy(struct tuple_reader *r, struct hd_slice s, struct heddle_bytes *out)
{
    struct hd_slice copied;
    int err = hd_arena_copy(r->arena, s, &copied);

    if (!err)
        *out = hd_to_public(copied);
    return err;
}

/* ---- checkpoints ---- */

static int on_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tuple_reader *r = arg;
    struct read_item *item = &r->items[which];
    struct heddle_tuple *tuple = item->tuple;
    struct hd_slice body;
    int err = hd_unpack_copy(r->arena, cells[HD_CHECKPOINTS_BODY].bytes, &body);

    if (!err)
        err = hd_checkpoint_body_parse(body, r->arena, &item->body);
    if (!err)
        err = reader_copy(r, cells[HD_CHECKPOINTS_METADATA].bytes, &tuple->metadata);
    if (!err)
        err = reader_copy(r, cells[HD_CHECKPOINTS_PARENT].bytes, &tuple->parent);
    if (!err)
        err = reader_copy(r, cells[HD_CHECKPOINTS_NS].bytes, &tuple->ns);
    if (!err)
        err = reader_copy(r, cells[HD_CHECKPOINTS_ID].bytes, &tuple->id);
    if (err)
        return err;
    tuple->thread = hd_store_thread_from_key(item->key.thread);
    tuple->checkpoint = hd_to_public(item->body.json);
    item->key.id = hd_from_public(tuple->id);
    return 0;
}

static int on_stray(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tuple_reader *r = arg;

    return hd_window_add(&r->items[which].window, r->arena, cells);
}

static int ask_strays(struct tuple_reader *r, size_t i, const struct hd_cell *prefix)
{
    return hd_reading_add(&r->reading,
                          (struct hd_query){.table = HD_CHECKPOINTS,
                                            .index = HD_CHECKPOINTS_BACKWARD,
                                            .prefix = prefix,
                                            .prefix_count = 2,
                                            .columns = 1u << HD_CHECKPOINTS_PARENT},
                          (struct hd_receiver){.fn = on_stray, .arg = r, .which = i});
}

static int ask_checkpoint(struct tuple_reader *r, size_t i)
{
    struct read_item *item = &r->items[i];
    struct hd_cell *prefix = hd_arena_alloc(r->arena, 3 * sizeof(*prefix));
    int err;

    if (!prefix)
        return HD_ENOMEM;
    prefix[0] = hd_cell_bytes(item->key.thread);
    prefix[1] = hd_cell_bytes(item->key.ns);
    prefix[2] = hd_cell_bytes(item->key.id);
    item->is_latest = item->key.id.len == 0;
    err = hd_reading_add(&r->reading,
                         (struct hd_query){.table = HD_CHECKPOINTS,
                                           .index = HD_PRIMARY,
                                           .prefix = prefix,
                                           .prefix_count = item->is_latest ? 2 : 3,
                                           .is_reverse = true,
                                           .limit = 1,
                                           .columns = HD_ALL_COLUMNS},
                         (struct hd_receiver){.fn = on_checkpoint, .arg = r, .which = i});
    return err || !item->is_latest ? err : ask_strays(r, i, prefix);
}

/* HD_ECONFLICT: the latest checkpoint was deleted meanwhile. */
static int find_latest(struct tuple_reader *r, size_t i)
{
    struct read_item *item = &r->items[i];
    struct hd_order order = {.nodes = NULL};
    int err = hd_order_read(r->store, item->key.thread, item->key.ns, &item->window, r->arena,
                            &order, r->fault);
    struct hd_slice id = order.count > 0 ? order.nodes[order.count - 1].id : hd_slice(NULL, 0);

    hd_order_fini(&order);
    if (err || hd_slice_eq(id, item->key.id))
        return err;
    item->tuple->id = (struct heddle_bytes){NULL, 0};
    item->key.id = id;
    err = id.len > 0 ? ask_checkpoint(r, i) : HD_ECONFLICT;
    if (!err)
        err = hd_reading_run(&r->reading, r->store->backend, r->fault);
    return err || item->tuple->id.data ? err : HD_ECONFLICT;
}

static int find_all_latest(struct tuple_reader *r)
{
    int err = 0;

    for (size_t i = 0; !err && i < r->count; i++) {
        struct read_item *item = &r->items[i];

        if (item->is_latest && item->tuple->id.data && hd_window_has(&item->window, item->key.id))
            err = find_latest(r, i);
    }
    return err;
}

static int on_there(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tuple_reader *r = arg;

    (void)cells;
    r->items[which].is_there = true;
    return 0;
}

/* ---- writes ---- */

static int add_write(struct tuple_reader *r, struct write_list *list, const struct hd_cell *cells)
{
    struct write_node *node = hd_arena_calloc(r->arena, 1, sizeof(*node));
    int err = node ? hd_copy_write(r->arena, cells, &node->write, &node->ref) : HD_ENOMEM;

    if (err)
        return err;
    hd_fifo_push(&list->nodes, node, next);
    list->count++;
    return 0;
}

static int reader_on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tuple_reader *r = arg;

    return add_write(r, &r->items[which].writes, cells);
}

static int on_send(void *arg, size_t which, const struct hd_cell *cells)
{
    struct tuple_reader *r = arg;

    if (!hd_slice_eq(cells[HD_WRITES_CHANNEL].bytes, HD_S("__pregel_tasks")))
        return 0;
    return add_write(r, &r->items[which].sends, cells);
}

static int ask_of(struct tuple_reader *r, size_t i, struct hd_slice checkpoint,
                  enum hd_table_id table, unsigned columns, hd_row_fn fn)
{
    struct hd_cell *prefix = hd_arena_alloc(r->arena, 3 * sizeof(*prefix));

    if (!prefix)
        return HD_ENOMEM;
    prefix[0] = hd_cell_bytes(r->items[i].key.thread);
    prefix[1] = hd_cell_bytes(r->items[i].key.ns);
    prefix[2] = hd_cell_bytes(checkpoint);
    return hd_reading_add(&r->reading,
                          (struct hd_query){.table = table,
                                            .index = HD_PRIMARY,
                                            .prefix = prefix,
                                            .prefix_count = 3,
                                            .columns = columns},
                          (struct hd_receiver){.fn = fn, .arg = r, .which = i});
}

static int request_writes(struct tuple_reader *r, size_t i, struct hd_slice checkpoint,
                          hd_row_fn fn)
{
    return ask_of(r, i, checkpoint, HD_WRITES, HD_ALL_COLUMNS, fn);
}

/* Converts lists to arrays and requests their values. */
static int settle_writes(struct tuple_reader *r, struct read_item *item,
                         const struct write_list *list, const struct heddle_write **out,
                         size_t *out_count)
{
    struct heddle_write *writes = hd_arena_calloc(r->arena, list->count, sizeof(*writes));
    size_t i = 0;
    int err = writes ? 0 : HD_ENOMEM;

    for (struct write_node *node = list->nodes.first; !err && node; node = node->next, i++) {
        writes[i] = node->write;
        err = hd_fetch_add(&r->fetch, &r->reading, item->key.thread,
                           hd_from_public(node->write.value.channel), node->ref,
                           &writes[i].value.data);
    }
    if (!err) {
        *out = writes;
        *out_count = list->count;
    }
    return err;
}

/* ---- values ---- */

/* True when the caller has the value; then only its size is set. */
static int find_known(struct tuple_reader *r, const struct hd_channel_entry *entry,
                      struct heddle_bytes *out, bool *is_known)
{
    struct hd_ref ref;

    *is_known = false;
    for (size_t i = 0; i < r->known_count && !*is_known; i++) {
        const struct hd_known *known = &r->known[i];
        int err;

        if (!hd_slice_eq(hd_from_public(known->channel), entry->channel) ||
            !hd_slice_eq(hd_from_public(known->type), entry->type))
            continue;
        err = hd_ref_parse(entry->ref, entry->channel, r->arena, &ref);
        if (err)
            return err;
        *is_known = !ref.is_inline && ref.size == known->size && ref.checksum == known->checksum;
        *out = (struct heddle_bytes){NULL, *is_known ? (size_t)ref.size : 0};
    }
    return 0;
}

static int ask_values(struct tuple_reader *r, struct read_item *item)
{
    size_t count = item->body.entry_count;
    struct heddle_value *values = hd_arena_calloc(r->arena, count, sizeof(*values));
    int err = values ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++) {
        const struct hd_channel_entry *entry = &item->body.entries[i];
        bool is_known;

        values[i].channel = hd_to_public(entry->channel);
        values[i].type = hd_to_public(entry->type);
        err = find_known(r, entry, &values[i].data, &is_known);
        if (!err && !is_known)
            err = hd_fetch_add(&r->fetch, &r->reading, item->key.thread, entry->channel, entry->ref,
                               &values[i].data);
    }
    if (!err) {
        item->tuple->values = values;
        item->tuple->value_count = count;
    }
    return err;
}

static int ask_details(struct tuple_reader *r, size_t i)
{
    struct read_item *item = &r->items[i];
    int err = request_writes(r, i, item->key.id, reader_on_write);

    if (!err)
        err = ask_of(r, i, item->key.id, HD_CHECKPOINTS, 0, on_there);
    if (!err)
        err = ask_values(r, item);
    if (!err && item->body.v < SENDS_BELOW_VERSION && item->tuple->parent.len)
        err = request_writes(r, i, hd_from_public(item->tuple->parent), on_send);
    return err;
}

static int settle_details(struct tuple_reader *r, struct read_item *item)
{
    int err =
        settle_writes(r, item, &item->writes, &item->tuple->writes, &item->tuple->write_count);

    if (!err)
        err = settle_writes(r, item, &item->sends, &item->tuple->sends, &item->tuple->send_count);
    return err;
}

/* ---- the whole read ---- */

static bool is_found(const struct read_item *item)
{
    return item->tuple->id.data != NULL;
}

static int reader_run(struct tuple_reader *r)
{
    return hd_reading_run(&r->reading, r->store->backend, r->fault);
}

/* HD_ECONFLICT: a checkpoint was deleted before its writes were read. */
static int check_there(const struct tuple_reader *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (is_found(&r->items[i]) && !r->items[i].is_there)
            return HD_ECONFLICT;
    }
    return 0;
}

static void note_limit(struct tuple_reader *r, size_t i, int err)
{
    if (err == HD_ELIMIT && r->allowance)
        r->allowance->fits = i;
}

static int read_details(struct tuple_reader *r)
{
    int err = 0;

    for (size_t i = 0; !err && i < r->count; i++) {
        if (is_found(&r->items[i]))
            err = ask_details(r, i);
        note_limit(r, i, err);
    }
    if (!err)
        err = reader_run(r);
    if (!err)
        err = check_there(r);
    if (!err)
        err = hd_fetch_finish(&r->fetch);
    for (size_t i = 0; !err && i < r->count; i++) {
        if (is_found(&r->items[i]))
            err = settle_details(r, &r->items[i]);
        note_limit(r, i, err);
    }
    if (!err)
        err = reader_run(r);
    return err ? err : hd_fetch_finish(&r->fetch);
}

static void reset_item(struct read_item *item, struct hd_key key, struct heddle_tuple *tuple)
{
    memset(item, 0, sizeof(*item));
    memset(tuple, 0, sizeof(*tuple));
    item->key = key;
    item->tuple = tuple;
}

static int read_once(struct tuple_reader *r, const struct hd_key *keys, struct heddle_tuple *tuples)
{
    int err = 0;

    hd_reading_reset(&r->reading);
    hd_fetch_init(&r->fetch, r->arena);
    r->fetch.allowance = r->allowance;
    for (size_t i = 0; !err && i < r->count; i++) {
        reset_item(&r->items[i], keys[i], &tuples[i]);
        err = ask_checkpoint(r, i);
    }
    if (!err)
        err = reader_run(r);
    if (!err)
        err = find_all_latest(r);
    if (!err && !(r->flags & HEDDLE_LIST_HEADERS))
        err = read_details(r);
    return err;
}

/* The part of the allowance that a failed attempt took. */
static void allowance_return(struct tuple_reader *r, uint64_t taken)
{
    if (r->allowance && r->allowance->taken > taken)
        r->allowance->give(r->allowance, r->allowance->taken - taken);
}

static int reader_read_all(struct tuple_reader *r, const struct hd_key *keys,
                           struct heddle_tuple *tuples)
{
    struct hd_conflict_retry retry = {0}, gone = {0};
    uint64_t taken = r->allowance ? r->allowance->taken : 0;
    int err;

    r->items = hd_arena_calloc(r->arena, r->count, sizeof(*r->items));
    if (!r->items)
        return HD_ENOMEM;
    hd_reading_init(&r->reading);
    do {
        allowance_return(r, taken);
        err = read_once(r, keys, tuples);
    } while ((err == HD_ECORRUPT &&
              hd_conflict_retry_read(r->store, &retry, keys, r->count, &err, r->fault)) ||
             (err == HD_ECONFLICT && hd_conflict_retry(r->store, &gone, &err, r->fault)));
    hd_reading_fini(&r->reading);
    if (err)
        allowance_return(r, taken);
    if (err == HD_ECORRUPT)
        return hd_error_set(r->fault, err, "a stored value of thread '%.*s' is damaged",
                            (int)(keys[0].thread.len < 80 ? keys[0].thread.len : 80),
                            keys[0].thread.ptr);
    return err;
}

int hd_store_read_tuples(struct hd_store *store, const struct hd_key *keys, size_t count, int flags,
                         struct hd_allowance *allowance, struct hd_arena *arena,
                         struct heddle_tuple *tuples, struct heddle_error *fault)
{
    struct tuple_reader r = {.store = store,
                             .arena = arena,
                             .fault = fault,
                             .count = count,
                             .flags = flags,
                             .allowance = allowance};

    return reader_read_all(&r, keys, tuples);
}

int hd_store_read_unknown(struct hd_store *store, const struct hd_key *key,
                          const struct hd_known *known, size_t known_count, struct hd_arena *arena,
                          struct heddle_tuple *tuple, struct heddle_error *fault)
{
    struct tuple_reader r = {.store = store,
                             .arena = arena,
                             .fault = fault,
                             .count = 1,
                             .known = known,
                             .known_count = known_count};

    return reader_read_all(&r, key, tuple);
}
