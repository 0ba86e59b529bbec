/*
 * Plans a put or put_writes as rows.
 *
 * For each changed value: its pieces are looked up in the cached thread, stored chunks are referred
 * to, and the others get the next numbers of the channel's sequence. Unchanged values keep the
 * reference that they have in the parent, so a checkpoint's row is complete and reading it follows
 * no chain.
 *
 * The cost of a row does not depend on the length of the conversation, only on the number of
 * channels, one reference each, and the new chunks.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/list_append.h"
#include "store/plan.h"
#include "store/scan.h"
#include "store/thread_fence.h"

#define TAKE_OVER_US ((int64_t)30 * 1000000)

/* ---- the thread ---- */

static int add_thread(struct hd_planner *p, int64_t now)
{
    struct hd_cell cells[] = {
        [HD_THREADS_ID] = hd_cell_bytes(p->request->thread),
        [HD_THREADS_EPOCH] = hd_cell_int(p->state->epoch),
        [HD_THREADS_CREATED] = hd_cell_int(now),
        [HD_THREADS_UPDATED] = hd_cell_int(now),
    };

    p->state->created_at = now;
    return hd_batch_row(&p->lane->batch, HD_OP_PUT_NEW, HD_THREADS, cells);
}

/*
 * A copier that died leaves an invisible thread, a collector that died one without sharing. The
 * first is taken over at once, the second after it has been seen for long enough (a live collector
 * would only start over). The cached chunks may be stale then.
 */
static bool must_take_over(const struct hd_cached_thread *state)
{
    if (!state->is_stored)
        return false;
    return state->created_at == 0 ||
           (state->epoch & 1 && hd_clock_monotonic_us() - state->loaded_at > TAKE_OVER_US);
}

static int take_over(struct hd_planner *p, int64_t now)
{
    struct hd_backend *backend = p->lane->store->backend;
    struct hd_cached_thread *state = p->state;
    struct hd_batch_builder builder;
    struct hd_batch batch;
    size_t failed;
    int err;

    hd_batch_init(&builder);
    /* Even, and different from the epoch that the copier itself would set. */
    err = hd_batch_renew(&builder, state->key, state->epoch, (state->epoch | 1) + 3,
                         state->created_at ? state->created_at : now);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_backend_apply(backend, &batch, &failed, p->fault);
    hd_batch_fini(&builder);
    hd_cache_drop(&p->lane->cache, p->request->thread);
    if (err == HD_ECONFLICT && p->fault)
        *p->fault = (struct heddle_error){0}; /* another writer was faster */
    if (err && err != HD_ECONFLICT)
        return err;
    return hd_cache_thread(&p->lane->cache, backend, p->request->thread, &p->state, p->fault);
}

/*
 * The batch's first operations on a thread: it exists and nothing was deleted from it. A put also
 * sets its time; a write does not, which saves a page.
 */
static int open_thread(struct hd_planner *p)
{
    struct hd_lane *lane = p->lane;
    const struct hd_guard *guard = &p->request->guard;
    bool is_put = p->request->kind == HD_REQUEST_PUT;
    int64_t now = hd_clock_now_us();
    int err = hd_cache_thread(&lane->cache, lane->store->backend, p->request->thread, &p->state,
                              p->fault);

    while (!err && p->state->batch != lane->batch_number && must_take_over(p->state))
        err = take_over(p, now);
    if (err)
        return err;
    p->was_stored = p->state->is_stored;
    p->has_earlier = p->state->batch == lane->batch_number;
    if (hd_guard_is_set(*guard) && !hd_guard_eq(*guard, p->state->guard))
        err = hd_thread_fence_expect(&lane->batch, p->request->thread, guard);
    if (!err && !p->was_stored)
        err = add_thread(p, now);
    if (!err && (!p->has_earlier || (is_put && p->state->put_batch != lane->batch_number)))
        err = hd_batch_expect_epoch(&lane->batch, p->request->thread, p->state->epoch,
                                    is_put ? HD_THREADS_UPDATED : 0, now);
    /* True once this batch is applied; if it fails, the state is dropped. */
    if (hd_guard_is_set(*guard))
        p->state->guard = *guard;
    p->state->batch = lane->batch_number;
    if (is_put)
        p->state->put_batch = lane->batch_number;
    p->state->is_stored = true;
    return err;
}

/* ---- put ---- */

struct channel {
    struct hd_slice name;
    hd_json_val version; /* NULL: if unchanged, the parent's version */
    bool has_changed;
    bool is_carried; /* the value must still be found elsewhere */
};

struct put_plan {
    struct hd_planner *p;
    int64_t v;
    struct hd_slice run_id;
    struct channel *channels;
    size_t channel_count;
    struct hd_channel_entry *entries;
    size_t entry_count;
    size_t carried_count;
    bool has_old;        /* the checkpoint exists and is replaced */
    struct hd_slice old; /* its body */
};

static bool version_eq(hd_json_val a, hd_json_val b)
{
    if (hd_json_is_string(a) && hd_json_is_string(b))
        return hd_slice_eq(hd_json_string(a), hd_json_string(b));
    return hd_json_is_number(a) && hd_json_is_number(b) &&
           hd_slice_eq(hd_json_number_text(a), hd_json_number_text(b));
}

static int check_versions(hd_json_val versions, const char *what, struct heddle_error *fault)
{
    struct hd_json_iter it;

    if (!versions)
        return 0;
    if (!hd_json_is_object(versions))
        return hd_error_set(fault, HD_EINVAL, "%s is %s, not an object", what,
                            hd_json_type_name(versions));
    it = hd_json_iter(versions);
    while (hd_json_next(&it)) {
        if (hd_json_get(versions, it.key) != it.val)
            return hd_error_set(fault, HD_EINVAL, "channel '%.*s' is a duplicate in %s",
                                (int)(it.key.len < 80 ? it.key.len : 80), it.key.ptr, what);
        if (!hd_json_is_string(it.val) && !hd_json_is_number(it.val))
            return hd_error_set(
                fault, HD_EINVAL,
                "the version of channel '%.*s' in %s is %s; it must be a string or a number",
                (int)(it.key.len < 80 ? it.key.len : 80), it.key.ptr, what,
                hd_json_type_name(it.val));
    }
    return 0;
}

static const struct heddle_value *find_value(const struct heddle_checkpoint *put,
                                             struct hd_slice channel, size_t *at)
{
    for (size_t i = 0; i < put->value_count; i++) {
        if (hd_slice_eq(hd_from_public(put->values[i].channel), channel)) {
            *at = i;
            return &put->values[i];
        }
    }
    return NULL;
}

static int record_changed(struct put_plan *plan, struct hd_slice channel)
{
    size_t at;
    const struct heddle_value *value = find_value(&plan->p->request->as.put, channel, &at);
    struct hd_channel_entry *entry = &plan->entries[plan->entry_count];
    int err;

    if (!value)
        return 0; /* empty at this version */
    entry->channel = channel;
    entry->type = hd_from_public(value->type);
    if (plan->p->request->growths && plan->p->request->growths[at])
        err = hd_plan_growth(plan->p, at, &entry->ref);
    else
        err = hd_plan_value(plan->p, value, at, &entry->ref);
    if (!err)
        plan->entry_count++;
    return err;
}

static int record_all_changed(struct put_plan *plan)
{
    int err = 0;

    for (size_t i = 0; !err && i < plan->channel_count; i++) {
        struct channel *channel = &plan->channels[i];

        if (channel->has_changed) {
            err = record_changed(plan, channel->name);
        } else {
            channel->is_carried = true;
            plan->carried_count++;
        }
    }
    return err;
}

static int copy_entry(struct put_plan *plan, const struct hd_channel_entry *entry)
{
    struct hd_arena *arena = &plan->p->lane->batch.arena;
    struct hd_channel_entry *copy = &plan->entries[plan->entry_count];
    int err = hd_arena_copy(arena, entry->channel, &copy->channel);

    if (!err)
        err = hd_arena_copy(arena, entry->type, &copy->type);
    if (!err)
        err = hd_arena_copy(arena, entry->ref, &copy->ref);
    if (!err)
        plan->entry_count++;
    return err;
}

/* `theirs` are its versions; not read unless ours are given. */
static int carry_entries(struct put_plan *plan, const struct hd_checkpoint_body *body,
                         hd_json_val theirs)
{
    int err = 0;

    for (size_t i = 0; !err && i < plan->channel_count; i++) {
        struct channel *channel = &plan->channels[i];
        const struct hd_channel_entry *entry;

        if (!channel->is_carried ||
            (channel->version && !version_eq(hd_json_get(theirs, channel->name), channel->version)))
            continue;
        entry = hd_checkpoint_body_entry(body, channel->name);
        if (entry)
            err = copy_entry(plan, entry);
        channel->is_carried = false;
        plan->carried_count--;
    }
    return err;
}

/* Takes the values that another checkpoint's body has at the missing versions. */
static int carry_from(struct put_plan *plan, struct hd_slice encoded)
{
    struct hd_json json = {0};
    struct hd_checkpoint_body body;
    int err = hd_checkpoint_body_parse(encoded, &plan->p->lane->batch.arena, &body);

    if (!err && plan->p->request->outline) /* it is the parent */
        return carry_entries(plan, &body, NULL);
    if (!err)
        err = hd_json_parse(&json, body.json, plan->p->fault);
    if (err)
        return err;
    err = carry_entries(plan, &body, hd_json_get(hd_json_root(&json), HD_S("channel_versions")));
    hd_json_fini(&json);
    return err;
}

static int carry_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct put_plan *plan = arg;
    struct hd_slice body;
    int err = hd_unpack_copy(&plan->p->lane->batch.arena, cells[HD_CHECKPOINTS_BODY].bytes, &body);

    (void)which;
    if (!err)
        err = carry_from(plan, body);
    return err ? err : plan->carried_count == 0;
}

static int carry_from_parent(struct put_plan *plan)
{
    const struct heddle_checkpoint *put = &plan->p->request->as.put;
    struct hd_slice ns = hd_from_public(put->ns), parent = hd_from_public(put->parent);
    struct hd_cell prefix[] = {hd_cell_bytes(plan->p->request->thread), hd_cell_bytes(ns),
                               hd_cell_bytes(parent)};
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = 3,
                             .limit = 1,
                             .columns = 1u << HD_CHECKPOINTS_BODY};
    struct hd_slice body;

    if (hd_cached_head(plan->p->state, ns, parent, &body))
        return carry_from(plan, body);
    if (parent.len == 0 || !plan->p->was_stored)
        return 0;
    if (plan->p->has_earlier)
        return HD_EBUSY;
    return hd_backend_read(plan->p->lane->store->backend, &query, 1, carry_row, plan,
                           plan->p->fault);
}

/*
 * Callers outside of a graph may name versions that the parent does not have: any checkpoint's
 * value counts, newest first.
 */
static int carry_from_namespace(struct put_plan *plan)
{
    struct hd_cell prefix[] = {hd_cell_bytes(plan->p->request->thread),
                               hd_cell_bytes(hd_from_public(plan->p->request->as.put.ns))};
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = 2,
                             .is_reverse = true,
                             .columns = 1u << HD_CHECKPOINTS_BODY};

    return hd_scan(plan->p->lane->store->backend, query, carry_row, plan, plan->p->fault);
}

static int carry_unchanged(struct put_plan *plan)
{
    int err = plan->carried_count ? carry_from_parent(plan) : 0;

    if (plan->p->request->outline)
        return err;
    if (!err && plan->carried_count && plan->has_old)
        err = carry_from(plan, plan->old);
    if (err || plan->carried_count == 0 || !plan->p->was_stored)
        return err;
    if (plan->p->has_earlier)
        return HD_EBUSY;
    return carry_from_namespace(plan);
}

/* ---- replacing ---- */

static int on_old(void *arg, size_t which, const struct hd_cell *cells)
{
    struct put_plan *plan = arg;

    (void)which;
    plan->has_old = true;
    return hd_unpack_copy(&plan->p->lane->batch.arena, cells[HD_CHECKPOINTS_BODY].bytes,
                          &plan->old);
}

/*
 * Checkpoints are usually new, and are added without reading. If one exists it is a conflict, and
 * the second attempt reads.
 */
static int find_old(struct put_plan *plan)
{
    struct hd_planner *p = plan->p;
    struct hd_slice ns = hd_from_public(p->request->as.put.ns);
    struct hd_slice id = hd_from_public(p->request->as.put.id);
    struct hd_cell prefix[] = {hd_cell_bytes(p->request->thread), hd_cell_bytes(ns),
                               hd_cell_bytes(id)};
    struct hd_query query = {.table = HD_CHECKPOINTS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = 3,
                             .columns = 1u << HD_CHECKPOINTS_BODY};

    plan->has_old = hd_cached_head(p->state, ns, id, &plan->old);
    if (plan->has_old || !p->was_stored || !p->lane->cache.is_careful)
        return 0;
    if (p->has_earlier)
        return HD_EBUSY;
    return hd_backend_read(p->lane->store->backend, &query, 1, on_old, plan, p->fault);
}

/*
 * Other writers may have cached the replaced checkpoint and carry values on from it; a collector
 * may have passed the checkpoint that took them over and not yet the one that loses them. A new
 * epoch makes both read again.
 */
static int renew_epoch(struct hd_planner *p)
{
    int64_t epoch = p->state->epoch;

    p->state->epoch += 2;
    return hd_batch_expect_epoch(&p->lane->batch, p->request->thread, epoch, HD_THREADS_EPOCH,
                                 epoch + 2);
}

/* ---- the checkpoint's row ---- */

static int by_channel(const void *a, const void *b)
{
    const struct hd_channel_entry *x = a, *y = b;

    return hd_slice_cmp(x->channel, y->channel);
}

static int64_t format_version(hd_json_val checkpoint)
{
    int64_t v;

    return hd_json_int(hd_json_get(checkpoint, HD_S("v")), &v) && v > 0 ? v : 0;
}

static int put_row(struct put_plan *plan)
{
    const struct heddle_checkpoint *put = &plan->p->request->as.put;
    struct hd_lane *lane = plan->p->lane;
    struct hd_checkpoint_body body = {.v = plan->v,
                                      .json = hd_from_public(put->checkpoint),
                                      .entries = plan->entries,
                                      .entry_count = plan->entry_count};
    struct hd_slice run_id, packed;
    int err;

    qsort(plan->entries, plan->entry_count, sizeof(*plan->entries), by_channel);
    hd_buf_reset(&lane->scratch);
    err = hd_checkpoint_body_write(&lane->scratch, &body);
    if (!err)
        err = hd_plan_pack(plan->p, hd_buf_slice(&lane->scratch), &packed);
    if (!err)
        err = hd_arena_copy(&lane->batch.arena, plan->run_id, &run_id);
    if (!err && plan->has_old)
        err = renew_epoch(plan->p);
    if (!err)
        err = hd_cached_set_head(plan->p->state, hd_from_public(put->ns), hd_from_public(put->id),
                                 hd_buf_slice(&lane->scratch));
    if (err)
        return err;
    struct hd_cell cells[] = {
        [HD_CHECKPOINTS_THREAD] = hd_cell_bytes(plan->p->request->thread),
        [HD_CHECKPOINTS_NS] = hd_cell_bytes(hd_from_public(put->ns)),
        [HD_CHECKPOINTS_ID] = hd_cell_bytes(hd_from_public(put->id)),
        [HD_CHECKPOINTS_PARENT] =
            put->parent.len ? hd_cell_bytes(hd_from_public(put->parent)) : hd_cell_null(),
        [HD_CHECKPOINTS_RUN] = run_id.len ? hd_cell_bytes(run_id) : hd_cell_null(),
        [HD_CHECKPOINTS_METADATA] = hd_cell_bytes(hd_from_public(put->metadata)),
        [HD_CHECKPOINTS_BODY] = hd_cell_bytes(packed),
    };
    return hd_batch_row(&lane->batch, plan->has_old ? HD_OP_PUT : HD_OP_ADD, HD_CHECKPOINTS, cells);
}

static int plan_entries(struct put_plan *plan)
{
    struct hd_arena *arena = &plan->p->lane->batch.arena;
    int err;

    plan->entries = hd_arena_calloc(arena, plan->channel_count + 1, sizeof(*plan->entries));
    if (!plan->entries)
        return HD_ENOMEM;
    err = record_all_changed(plan);
    return err ? err : carry_unchanged(plan);
}

static int make_channels(struct put_plan *plan, size_t count)
{
    plan->channels =
        hd_arena_calloc(&plan->p->lane->batch.arena, count + 1, sizeof(*plan->channels));
    plan->channel_count = count;
    return plan->channels ? 0 : HD_ENOMEM;
}

static int follow_outline(struct put_plan *plan, const struct hd_outline *outline)
{
    int err = make_channels(plan, outline->channel_count);

    for (size_t i = 0; !err && i < plan->channel_count; i++)
        plan->channels[i] =
            (struct channel){.name = outline->channels[i], .has_changed = outline->has_changed[i]};
    plan->v = outline->v;
    plan->run_id = outline->run_id;
    return err;
}

/* The versions of the checkpoint, with marks on the new ones. */
static int note_channels(struct put_plan *plan, hd_json_val versions, hd_json_val changed)
{
    struct hd_json_iter it = hd_json_iter(versions);
    int err = check_versions(versions, "channel_versions", plan->p->fault);

    if (!err)
        err = check_versions(changed, "new_versions", plan->p->fault);
    if (!err)
        err = make_channels(plan, hd_json_size(versions));
    for (size_t i = 0; !err && hd_json_next(&it); i++) {
        hd_json_val now = hd_json_get(changed, it.key);

        plan->channels[i] = (struct channel){
            .name = it.key, .version = it.val, .has_changed = now && version_eq(now, it.val)};
    }
    return err;
}

static int parse_object(struct hd_json *json, struct heddle_bytes text, const char *what,
                        struct heddle_error *fault)
{
    struct heddle_error cause = {0};
    int err = hd_json_parse(json, hd_from_public(text), &cause);

    if (err == HD_EINVAL)
        return hd_error_set(fault, err, "%s is not JSON: %s", what, cause.text);
    if (!err && !hd_json_is_object(hd_json_root(json)))
        return hd_error_set(fault, HD_EINVAL, "%s is %s, not an object", what,
                            hd_json_type_name(hd_json_root(json)));
    return err;
}

static int plan_request(struct put_plan *plan)
{
    int err = hd_check_length(plan->run_id, HD_MAX_ID, "run_id", plan->p->fault);

    if (!err)
        err = open_thread(plan->p);
    if (!err)
        err = find_old(plan);
    if (!err)
        err = plan_entries(plan);
    return err ? err : put_row(plan);
}

static int plan_put(struct hd_planner *p)
{
    const struct heddle_checkpoint *put = &p->request->as.put;
    struct hd_json checkpoint = {0}, metadata = {0}, changed = {0};
    struct put_plan plan = {.p = p};
    int err;

    if (p->request->outline) {
        err = follow_outline(&plan, p->request->outline);
        return err ? err : plan_request(&plan);
    }
    err = parse_object(&checkpoint, put->checkpoint, "checkpoint", p->fault);
    if (!err)
        err = parse_object(&metadata, put->metadata, "metadata", p->fault);
    if (!err)
        err = parse_object(&changed, put->new_versions, "new_versions", p->fault);
    if (!err)
        err = note_channels(&plan, hd_json_get(hd_json_root(&checkpoint), HD_S("channel_versions")),
                            hd_json_root(&changed));
    if (!err) {
        plan.v = format_version(hd_json_root(&checkpoint));
        plan.run_id = hd_json_string(hd_json_get(hd_json_root(&metadata), HD_S("run_id")));
        err = plan_request(&plan);
    }
    hd_json_fini(&checkpoint);
    hd_json_fini(&metadata);
    hd_json_fini(&changed);
    return err;
}

/* ---- put_writes ---- */

/* Special channels have fixed negative positions and replace existing writes. */
static int64_t write_idx(struct hd_slice channel, size_t position)
{
    static const struct {
        struct hd_slice channel;
        int64_t idx;
    } special[] = {
        {{"__error__", 9}, -1},
        {{"__scheduled__", 13}, -2},
        {{"__interrupt__", 13}, -3},
        {{"__resume__", 10}, -4},
    };

    for (size_t i = 0; i < HD_COUNT(special); i++) {
        if (hd_slice_eq(special[i].channel, channel))
            return special[i].idx;
    }
    return (int64_t)position;
}

static int plan_write(struct hd_planner *p, size_t i)
{
    const struct heddle_writes *writes = &p->request->as.writes;
    const struct heddle_value *value = &writes->values[i];
    struct hd_slice channel = hd_from_public(value->channel), ref;
    int64_t idx = write_idx(channel, i);
    int err = hd_plan_value(p, value, i, &ref);

    if (err)
        return err;
    struct hd_cell cells[] = {
        [HD_WRITES_THREAD] = hd_cell_bytes(p->request->thread),
        [HD_WRITES_NS] = hd_cell_bytes(hd_from_public(writes->ns)),
        [HD_WRITES_CHECKPOINT] = hd_cell_bytes(hd_from_public(writes->checkpoint_id)),
        [HD_WRITES_TASK] = hd_cell_bytes(hd_from_public(writes->task_id)),
        [HD_WRITES_IDX] = hd_cell_int(idx),
        [HD_WRITES_PATH] = hd_cell_bytes(hd_from_public(writes->task_path)),
        [HD_WRITES_CHANNEL] = hd_cell_bytes(channel),
        [HD_WRITES_TYPE] = hd_cell_bytes(hd_from_public(value->type)),
        [HD_WRITES_VALUE] = hd_cell_bytes(ref),
    };
    return hd_batch_row(&p->lane->batch, idx < 0 ? HD_OP_PUT : HD_OP_PUT_NEW, HD_WRITES, cells);
}

static int plan_writes(struct hd_planner *p)
{
    size_t count = p->request->as.writes.value_count;
    int err = count ? open_thread(p) : 0;

    for (size_t i = 0; !err && i < count; i++)
        err = plan_write(p, i);
    return err;
}

int hd_plan(struct hd_lane *lane, struct hd_lane_request *request, struct heddle_error *fault)
{
    struct hd_planner p = {.lane = lane, .request = request, .fault = fault};
    int err;

    if (request->kind == HD_REQUEST_ROWS)
        return hd_batch_append(&lane->batch, &request->as.rows.batch);
    err = hd_lane_request_cut(request);
    if (err)
        return err;
    return request->kind == HD_REQUEST_PUT ? plan_put(&p) : plan_writes(&p);
}
