/*
 * Delta channels: the path from a checkpoint back to the stored values of its channels.
 *
 * Ancestors are found by following parents, never by order of ids, so that sibling branches are
 * excluded. Their rows are still read in pages: the ancestors of a checkpoint are usually right
 * before it.
 */
#include "store/codec/delta.h"

#include "base/map.h"
#include "store/codec/pack.h"
#include "store/fetch.h"
#include "store/order.h"
#include "store/retry.h"

enum { PAGE = 64 };

struct chain_row {
    struct hd_slice id, parent;
    struct hd_checkpoint_body body;
};

struct chain_walker {
    struct hd_store *store;
    struct hd_slice thread, ns;
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct chain_row page[PAGE];
    size_t page_count;
    struct hd_map seen; /* ids on the path: parents may form a cycle */
};

static int chain_on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct chain_walker *w = arg;
    struct chain_row *row = &w->page[w->page_count];
    struct hd_slice body;
    int err = hd_unpack_copy(w->arena, cells[HD_CHECKPOINTS_BODY].bytes, &body);

    (void)which;
    if (!err)
        err = hd_checkpoint_body_parse(body, w->arena, &row->body);
    if (!err)
        err = hd_arena_copy(w->arena, cells[HD_CHECKPOINTS_ID].bytes, &row->id);
    if (!err)
        err = hd_arena_copy(w->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &row->parent);
    if (!err)
        w->page_count++;
    return err;
}

/* A page that starts at checkpoint `id` and goes back in order of ids. Empty: at the greatest. */
static int chain_read_page(struct chain_walker *w, struct hd_slice id)
{
    struct hd_cell prefix[] = {hd_cell_bytes(w->thread), hd_cell_bytes(w->ns)};
    struct hd_cell high;
    int err = 0;
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = 2,
                             .is_reverse = true,
                             .limit = PAGE,
                             .columns = 1u << HD_CHECKPOINTS_PARENT | 1u << HD_CHECKPOINTS_BODY};

    if (id.len) { /* the bound is exclusive: the next string after the id includes it */
        err = hd_id_behind(w->arena, id, &high);
        query.high = &high;
    }
    w->page_count = 0;
    return err ? err : hd_backend_read(w->store->backend, &query, 1, chain_on_row, w, w->fault);
}

/* NULL without an error: the checkpoint does not exist. */
static int find_row(struct chain_walker *w, struct hd_slice id, const struct chain_row **out)
{
    int err;

    *out = NULL;
    for (size_t i = 0; id.len && i < w->page_count; i++) {
        if (hd_slice_eq(w->page[i].id, id)) {
            *out = &w->page[i];
            return 0;
        }
    }
    err = chain_read_page(w, id);
    if (!err && w->page_count > 0 && (id.len == 0 || hd_slice_eq(w->page[0].id, id)))
        *out = &w->page[0];
    return err;
}

/* Marks the channels that end at this ancestor; returns the number of open ones. */
static size_t note_seeds(struct hd_chain *chain, struct hd_ancestor *ancestor)
{
    size_t open = 0;

    for (size_t i = 0; i < chain->channel_count; i++) {
        if (chain->seeds[i].ancestor)
            continue;
        const struct hd_channel_entry *entry =
            hd_checkpoint_body_entry(&ancestor->body, chain->channels[i]);

        if (entry)
            chain->seeds[i] = (struct hd_seed){ancestor, entry};
        else
            open++;
    }
    return open;
}

static int make_ancestor(struct chain_walker *w, const struct chain_row *row,
                         struct hd_ancestor **out)
{
    struct hd_ancestor *ancestor = hd_arena_calloc(w->arena, 1, sizeof(*ancestor));

    if (!ancestor)
        return HD_ENOMEM;
    ancestor->id = row->id;
    ancestor->body = row->body;
    *out = ancestor;
    return 0;
}

/* The next checkpoint on the path; NULL at the end, or when it was visited before. */
static int find_parent(struct chain_walker *w, const struct chain_row **row)
{
    struct hd_slice parent = (*row)->parent;
    int err = hd_map_put(&w->seen, (*row)->id, w);

    *row = NULL;
    if (err || parent.len == 0 || hd_map_get(&w->seen, parent))
        return err;
    return find_row(w, parent, row);
}

static int chain_walk(struct chain_walker *w, struct hd_slice id, struct hd_chain *chain)
{
    size_t open = chain->channel_count;
    struct hd_ancestor *ancestor;
    const struct chain_row *row = NULL;
    int err = id.len ? 0 : hd_latest_id(w->store, w->thread, w->ns, w->arena, &id, w->fault);

    if (!err)
        err = find_row(w, id, &row);
    while (!err && row && open > 0) {
        err = find_parent(w, &row);
        if (err || !row)
            break;
        err = make_ancestor(w, row, &ancestor);
        if (err)
            break;
        ancestor->newer = chain->oldest;
        chain->oldest = ancestor;
        chain->ancestor_count++;
        open = note_seeds(chain, ancestor);
    }
    return err;
}

int hd_chain_walk(struct hd_store *store, const struct hd_key *key, struct hd_chain *chain,
                  struct hd_arena *arena, struct heddle_error *fault)
{
    struct chain_walker *w = hd_arena_calloc(arena, 1, sizeof(*w));
    int err;

    chain->seeds = hd_arena_calloc(arena, chain->channel_count, sizeof(*chain->seeds));
    if (!w || !chain->seeds)
        return HD_ENOMEM;
    *w = (struct chain_walker){
        .store = store, .thread = key->thread, .ns = key->ns, .arena = arena, .fault = fault};
    hd_map_init(&w->seen, SIZE_MAX / 2);
    err = chain_walk(w, key->id, chain);
    hd_map_fini(&w->seen);
    return err;
}

/* ---- the writes on the path ---- */

struct history_reader {
    struct hd_store *store;
    struct hd_slice thread, ns;
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct hd_chain *chain;
    struct hd_reading reading;
    struct hd_fetch fetch;
};

struct hd_delta_write {
    struct heddle_write write;
    struct hd_slice ref;
    struct hd_delta_write *next;
};

static bool is_open_channel(const struct hd_chain *chain, struct hd_slice channel)
{
    for (size_t i = 0; i < chain->channel_count; i++) {
        if (hd_slice_eq(chain->channels[i], channel))
            return true;
    }
    return false;
}

static bool is_behind(const struct hd_delta_write *w, const struct hd_delta_write *other)
{
    return hd_slice_cmp(hd_from_public(w->write.task_path),
                        hd_from_public(other->write.task_path)) >= 0;
}

/*
 * A superstep applies its tasks in the order of their paths. The rows come by (task, idx), and most
 * of them have the path of the row before.
 */
static void insert_by_path(struct hd_ancestor *ancestor, struct hd_delta_write *w)
{
    bool is_next = ancestor->last && is_behind(w, ancestor->last);
    struct hd_delta_write **at = is_next ? &ancestor->last->next : &ancestor->writes;

    while (*at && is_behind(w, *at))
        at = &(*at)->next;
    w->next = *at;
    *at = w;
    ancestor->last = w;
}

struct write_receiver {
    struct history_reader *r;
    struct hd_ancestor *ancestor;
};

static int chain_on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct write_receiver *receiver = arg;
    struct hd_arena *arena = receiver->r->arena;
    struct hd_delta_write *w;
    int err;

    (void)which;
    if (!is_open_channel(receiver->r->chain, cells[HD_WRITES_CHANNEL].bytes))
        return 0;
    w = hd_arena_calloc(arena, 1, sizeof(*w));
    if (!w)
        return HD_ENOMEM;
    err = hd_copy_write(arena, cells, &w->write, &w->ref);
    if (!err)
        insert_by_path(receiver->ancestor, w);
    return err;
}

static int request_chain_writes(struct history_reader *r, struct hd_ancestor *ancestor)
{
    struct hd_cell *prefix = hd_arena_alloc(r->arena, 3 * sizeof(*prefix));
    struct write_receiver *receiver = hd_arena_alloc(r->arena, sizeof(*receiver));

    if (!prefix || !receiver)
        return HD_ENOMEM;
    prefix[0] = hd_cell_bytes(r->thread);
    prefix[1] = hd_cell_bytes(r->ns);
    prefix[2] = hd_cell_bytes(ancestor->id);
    *receiver = (struct write_receiver){r, ancestor};
    return hd_reading_add(&r->reading,
                          (struct hd_query){.table = HD_WRITES,
                                            .index = HD_PRIMARY,
                                            .prefix = prefix,
                                            .prefix_count = 3,
                                            .columns = HD_ALL_COLUMNS},
                          (struct hd_receiver){.fn = chain_on_write, .arg = receiver});
}

static int read_writes(struct history_reader *r)
{
    int err = 0;

    for (struct hd_ancestor *a = r->chain->oldest; !err && a; a = a->newer) {
        err = request_chain_writes(r, a);
        if (!err && r->reading.queries.count == PAGE)
            err = hd_reading_run(&r->reading, r->store->backend, r->fault);
    }
    return err ? err : hd_reading_run(&r->reading, r->store->backend, r->fault);
}

/* ---- one channel's history ---- */

static size_t count_writes(const struct hd_ancestor *from, struct hd_slice channel)
{
    size_t count = 0;

    for (const struct hd_ancestor *a = from; a; a = a->newer) {
        for (const struct hd_delta_write *w = a->writes; w; w = w->next)
            count += hd_slice_eq(hd_from_public(w->write.value.channel), channel);
    }
    return count;
}

static int settle_seed(struct history_reader *r, const struct hd_channel_entry *entry,
                       struct heddle_history *out)
{
    struct heddle_value *seed = hd_arena_calloc(r->arena, 1, sizeof(*seed));

    if (!seed)
        return HD_ENOMEM;
    seed->channel = hd_to_public(entry->channel);
    seed->type = hd_to_public(entry->type);
    out->seed = seed;
    return hd_fetch_add(&r->fetch, &r->reading, r->thread, entry->channel, entry->ref, &seed->data);
}

static int settle_channel(struct history_reader *r, size_t channel, struct heddle_history *out)
{
    struct hd_slice name = r->chain->channels[channel];
    const struct hd_seed *seed = &r->chain->seeds[channel];
    const struct hd_ancestor *from = seed->ancestor ? seed->ancestor : r->chain->oldest;
    struct heddle_write *writes =
        hd_arena_calloc(r->arena, count_writes(from, name), sizeof(*writes));
    int err = writes ? 0 : HD_ENOMEM;

    out->channel = hd_to_public(name);
    out->writes = writes;
    if (!err && seed->ancestor)
        err = settle_seed(r, seed->entry, out);
    for (const struct hd_ancestor *a = from; !err && a; a = a->newer) {
        for (const struct hd_delta_write *w = a->writes; !err && w; w = w->next) {
            if (!hd_slice_eq(hd_from_public(w->write.value.channel), name))
                continue;
            writes[out->write_count] = w->write;
            err = hd_fetch_add(&r->fetch, &r->reading, r->thread, name, w->ref,
                               &writes[out->write_count].value.data);
            out->write_count++;
        }
    }
    return err;
}

static int read_once(struct history_reader *r, const struct hd_key *key,
                     struct heddle_history *histories)
{
    int err = hd_chain_walk(r->store, key, r->chain, r->arena, r->fault);

    if (!err)
        err = read_writes(r);
    for (size_t i = 0; !err && i < r->chain->channel_count; i++)
        err = settle_channel(r, i, &histories[i]);
    if (!err)
        err = hd_reading_run(&r->reading, r->store->backend, r->fault);
    return err ? err : hd_fetch_finish(&r->fetch);
}

int hd_delta_histories(struct hd_store *store, const struct hd_key *key,
                       const struct hd_slice *channels, size_t count, struct hd_arena *arena,
                       struct heddle_history *histories, struct heddle_error *fault)
{
    struct hd_conflict_retry retry = {0};
    int err;

    do {
        struct hd_chain chain = {.channels = channels, .channel_count = count};
        struct history_reader r = {.store = store,
                                   .thread = key->thread,
                                   .ns = key->ns,
                                   .arena = arena,
                                   .fault = fault,
                                   .chain = &chain};

        memset(histories, 0, count * sizeof(*histories));
        hd_reading_init(&r.reading);
        hd_fetch_init(&r.fetch, arena);
        err = read_once(&r, key, histories);
        hd_reading_fini(&r.reading);
    } while (err == HD_ECORRUPT && hd_conflict_retry_read(store, &retry, key, 1, &err, fault));
    return err;
}
