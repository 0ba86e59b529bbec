#include "records/thread_heads.h"

#include <heddle.h>

#include "base/buf.h"
#include "base/json.h"
#include "records/record.h"
#include "store/bytes.h"
#include "store/order.h"
#include "store/rows.h"

#define MAX_HEADS ((size_t)16 << 20)

static void put_heads(struct hd_jw *jw, hd_json_val heads, struct hd_slice ns, struct hd_slice id)
{
    struct hd_json_iter it = hd_json_iter(heads);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, ns))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    if (id.len > 0) {
        hd_jw_key(jw, ns);
        hd_jw_string(jw, id);
    }
    hd_jw_object_end(jw);
}

int hd_thread_heads_set(struct hd_arena *arena, struct hd_slice *heads, struct hd_slice ns,
                        struct hd_slice id)
{
    struct hd_json json = {NULL};
    struct hd_buf out;
    struct hd_jw jw;
    int err;

    if (heads->len == 0 && id.len == 0)
        return 0;
    err = heads->len > 0 ? hd_json_parse(&json, *heads, NULL) : 0;
    hd_buf_init(&out, MAX_HEADS);
    hd_jw_init(&jw, &out);
    put_heads(&jw, hd_json_root(&json), ns, id);
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&out), heads);
    hd_json_fini(&json);
    hd_buf_fini(&out);
    return err;
}

/*
 * The checkpoint, or with an empty id the latest. Its id goes to *found, its run to *run_id; both
 * may be NULL.
 */
static int find_checkpoint(struct heddle *store, const struct heddle_thread *thread,
                           struct hd_slice ns, struct hd_slice id, struct hd_arena *arena,
                           struct hd_slice *found, struct hd_slice *run_id,
                           struct heddle_error *fault)
{
    struct heddle_bytes wanted_ns = hd_to_public(ns), wanted = hd_to_public(id);
    struct heddle_query query = {.principal = thread->principal,
                                 .thread = &thread->id,
                                 .ns = &wanted_ns,
                                 .id = id.len > 0 ? &wanted : NULL,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct hd_json json = {NULL};
    struct heddle_list *list;
    int err = heddle_list_open(store, &query, &list, &error);

    if (!err) {
        err = heddle_list_next(list, &tuple, &error);
        if (!err && found)
            err = hd_arena_copy(arena, hd_slice(tuple->id.data, tuple->id.len), found);
        if (!err && run_id &&
            !hd_json_parse(&json, hd_slice(tuple->metadata.data, tuple->metadata.len), NULL))
            err = hd_arena_copy(
                arena, hd_json_string(hd_json_get(hd_json_root(&json), HD_S("run_id"))), run_id);
        hd_json_fini(&json);
        heddle_list_close(list);
    }
    return err && err != HD_ENOTFOUND ? hd_error_set(fault, err, "%s", error.text) : err;
}

int hd_thread_heads_check(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                          struct hd_slice ns, struct hd_slice id, struct heddle_error *fault)
{
    const struct heddle_thread of = {hd_to_public(principal), hd_to_public(thread)};

    return find_checkpoint(store, &of, ns, id, NULL, NULL, NULL, fault);
}

int hd_thread_heads_follow(struct heddle *store, struct hd_thread_rec *thread, struct hd_slice ns,
                           struct hd_slice id, struct hd_slice run_id, struct hd_arena *arena,
                           struct heddle_error *fault)
{
    const struct heddle_thread of = {hd_to_public(thread->principal), hd_to_public(thread->id)};
    struct hd_slice latest = {NULL, 0}, maker = run_id;
    int err = find_checkpoint(store, &of, ns, hd_slice(NULL, 0), arena, &latest, NULL, fault);

    if (!err && !hd_slice_eq(latest, id) && run_id.len > 0)
        err = find_checkpoint(store, &of, ns, id, arena, NULL, &maker, fault);
    if (err && err != HD_ENOTFOUND)
        return err;
    if (!err && !hd_slice_eq(maker, run_id))
        return 0; /* the latest may be a branch */
    if (err || hd_slice_eq(latest, id))
        id = hd_slice(NULL, 0);
    return hd_thread_heads_set(arena, &thread->heads, ns, id);
}

struct made_order {
    struct hd_order order;
    struct hd_arena *arena;
};

static int on_made(void *arg, size_t which, const struct hd_cell *cells)
{
    struct made_order *made = arg;
    struct hd_slice id, parent;
    int err = hd_arena_copy(made->arena, cells[HD_CHECKPOINTS_ID].bytes, &id);

    (void)which;
    if (!err)
        err = hd_arena_copy(made->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &parent);
    return err ? err : hd_order_add(&made->order, id, parent, false);
}

int hd_thread_heads_latest(struct heddle *store, const struct hd_thread_rec *thread,
                           struct hd_slice ns, struct hd_arena *arena, struct hd_slice *out,
                           struct heddle_error *fault)
{
    const struct heddle_thread of = {hd_to_public(thread->principal), hd_to_public(thread->id)};
    int err;

    *out = hd_slice(NULL, 0);
    err = find_checkpoint(store, &of, ns, hd_slice(NULL, 0), arena, out, NULL, fault);
    return err == HD_ENOTFOUND ? 0 : err;
}

/* All checkpoints of `ns` that a run has made, oldest first. */
static int read_made(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                     struct hd_slice ns, struct hd_slice run_id, struct made_order *made,
                     struct heddle_error *fault)
{
    struct hd_slice key;
    int err = hd_thread_lane(made->arena, principal, thread, &key);

    if (!err) {
        const struct hd_cell prefix[] = {hd_cell_bytes(run_id), hd_cell_bytes(key),
                                         hd_cell_bytes(ns)};

        err = hd_rows_scan(store,
                           (struct hd_query){.table = HD_CHECKPOINTS,
                                             .index = HD_CHECKPOINTS_BY_RUN,
                                             .prefix = prefix,
                                             .prefix_count = HD_COUNT(prefix),
                                             .columns = 1u << HD_CHECKPOINTS_PARENT},
                           on_made, made, fault);
    }
    return err ? err : hd_order_sort(&made->order);
}

int hd_thread_heads_made(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice ns, struct hd_slice run_id, struct hd_arena *arena,
                         struct hd_slice *out, struct heddle_error *fault)
{
    struct made_order made = {.arena = arena};
    int err = read_made(store, principal, thread, ns, run_id, &made, fault);

    *out = hd_slice(NULL, 0);
    if (!err && made.order.count > 0)
        *out = made.order.nodes[made.order.count - 1].id;
    hd_order_fini(&made.order);
    return err;
}

int hd_thread_heads_began(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                          struct hd_slice ns, struct hd_slice run_id, struct hd_arena *arena,
                          struct hd_slice *out, bool *has_made, struct heddle_error *fault)
{
    struct made_order made = {.arena = arena};
    int err = read_made(store, principal, thread, ns, run_id, &made, fault);

    *out = hd_slice(NULL, 0);
    *has_made = !err && made.order.count > 0;
    if (*has_made)
        *out = made.order.nodes[0].parent;
    hd_order_fini(&made.order);
    return err;
}

int hd_thread_heads_beside(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                           struct hd_slice ns, struct hd_slice run_id, struct hd_arena *arena,
                           struct hd_slice *out, struct heddle_error *fault)
{
    const struct heddle_thread of = {hd_to_public(principal), hd_to_public(thread)};
    struct hd_slice maker = {NULL, 0};
    int err = find_checkpoint(store, &of, ns, hd_slice(NULL, 0), arena, NULL, &maker, fault);

    *out = hd_slice(NULL, 0);
    if (err || hd_slice_eq(maker, run_id))
        return err == HD_ENOTFOUND ? 0 : err;
    return hd_thread_heads_made(store, principal, thread, ns, run_id, arena, out, fault);
}

static int read_chosen(struct hd_arena *arena, struct hd_slice heads, struct hd_slice ns,
                       struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, heads, fault);

    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), ns)), out);
    hd_json_fini(&json);
    return err;
}

int hd_thread_heads_get(struct heddle *store, const struct hd_thread_rec *thread,
                        struct hd_slice ns, struct hd_arena *arena, struct hd_slice *out,
                        struct heddle_error *fault)
{
    int err = 0;

    *out = hd_slice(NULL, 0);
    if (thread->heads.len > 0)
        err = read_chosen(arena, thread->heads, ns, out, fault);
    if (!err && out->len > 0)
        err = hd_thread_heads_check(store, thread->principal, thread->id, ns, *out, fault);
    if (err)
        *out = hd_slice(NULL, 0);
    return err == HD_ENOTFOUND ? 0 : err;
}
