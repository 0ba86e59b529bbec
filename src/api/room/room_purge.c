#include "api/room/room_purge.h"

#include "api/room/room_find.h"
#include "api/state/branches.h"
#include "api/state/checkpoint_index.h"
#include "base/clock.h"
#include "base/map.h"
#include "events/event_log.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "room/cascade_steps.h"
#include "search/thread_texts.h"
#include "store/rows.h"

#define MAX_RUNS ((size_t)1 << 24)

/* ---- the runs that have the message ----------------------------------- */

/* `given` is a list of [message id, version]. */
static int was_given(const struct hd_room_run_rec *run, struct hd_slice id, bool *out)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = run->given.len > 0 ? hd_json_parse(&json, run->given, NULL) : 0;

    *out = false;
    it = hd_json_iter(hd_json_root(&json));
    while (!err && !*out && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        *out = hd_json_next(&pair) && hd_slice_eq(hd_json_string(pair.val), id);
    }
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_ECORRUPT : err;
}

int hd_room_purge_concerns(const struct hd_room_run_rec *run,
                           const struct hd_room_message_rec *message, bool *out)
{
    *out = hd_slice_eq(run->trigger, message->id) || hd_slice_eq(run->answer, message->id) ||
           hd_slice_eq(run->run_id, message->run_id);
    return *out ? 0 : was_given(run, message->id, out);
}

struct purging {
    struct hd_call *call;
    struct hd_room_purge *purge;
    struct hd_thread_rec thread;
    struct hd_room_message_rec message;
    struct hd_map runs; /* ids of those to remove */
    struct hd_checkpoint_index points;
};

static int mark_run(struct purging *purging, struct hd_slice id)
{
    return id.len > 0 ? hd_map_put(&purging->runs, id, purging) : 0;
}

static int find_purged_runs(struct purging *purging)
{
    const struct hd_thread_rec *thread = &purging->thread;
    struct hd_call *call = purging->call;
    struct hd_room_run_rec *runs = NULL;
    size_t count = 0;
    int err = mark_run(purging, purging->message.run_id);

    if (!err)
        err = hd_room_runs_read(call->app->store, thread->principal, thread->id, hd_slice(NULL, 0),
                                call->arena, &runs, &count, &call->fault);
    for (size_t i = 0; !err && i < count; i++) {
        bool is_found = false;

        err = hd_room_purge_concerns(&runs[i], &purging->message, &is_found);
        if (!err && is_found)
            err = mark_run(purging, runs[i].run_id);
    }
    return err;
}

/* ---- their checkpoints ------------------------------------------------ */

static bool is_purged(const struct hd_checkpoint_node *point)
{
    return point && point->branch;
}

/* Marks the checkpoints of the runs with all that follow, until there are no more. */
static int mark_points(struct purging *purging)
{
    struct hd_checkpoint_index *points = &purging->points;
    bool is_changed = true;
    int err = 0;

    while (!err && is_changed) {
        is_changed = false;
        for (size_t i = 0; !err && i < points->count; i++) {
            struct hd_checkpoint_node *point = &points->list[i];

            if (is_purged(point) ||
                (!is_purged(point->parent) && !hd_map_get(&purging->runs, point->run_id)))
                continue;
            point->branch = points;
            is_changed = true;
            err = mark_run(purging, point->run_id);
        }
    }
    return err;
}

static bool has_remaining(const struct purging *purging, struct hd_slice ns)
{
    for (size_t i = 0; i < purging->points.count; i++) {
        const struct hd_checkpoint_node *point = &purging->points.list[i];

        if (hd_slice_eq(point->ns, ns) && !is_purged(point))
            return true;
    }
    return false;
}

struct point_cut {
    struct purging *purging;
    const struct hd_checkpoint_node *point;
};

static int cut_point_once(void *arg, struct heddle_error *fault)
{
    const struct point_cut *cut = arg;
    struct hd_call *call = cut->purging->call;
    const struct hd_lines lines = {NULL, 0, 0};
    struct hd_thread_rec thread;
    int err = hd_call_thread(call, &thread);

    if (!err && thread.status == HD_THREAD_BUSY)
        return HD_EBUSY;
    return err ? err
               : hd_thread_prune_cut(call->app->store, &thread, &lines, cut->point->ns,
                                     cut->point->id, fault);
}

static int drop_line_once(void *arg, struct heddle_error *fault)
{
    const struct point_cut *cut = arg;
    struct hd_call *call = cut->purging->call;
    struct hd_thread_rec thread;
    int err = hd_call_thread(call, &thread);

    if (!err && thread.status == HD_THREAD_BUSY)
        return HD_EBUSY;
    if (err)
        return err;
    thread.updated_at = thread.state_updated_at = hd_clock_now_us();
    hd_thread_touch(&thread, thread.updated_at);
    return hd_thread_prune_line(call->app->store, &thread, cut->point->ns, call->arena,
                                &cut->purging->purge->gone, fault);
}

/* The line continues at its newest checkpoint, unless its chosen one remains. */
static int renew_head(struct purging *purging, struct hd_slice ns)
{
    struct hd_call *call = purging->call;
    struct hd_checkpoint_target target = {.graph = NULL};
    struct hd_slice chosen = {NULL, 0};
    int err = hd_call_thread(call, &target.thread);

    if (!err)
        err = hd_thread_heads_get(call->app->store, &target.thread, ns, call->arena, &chosen,
                                  &call->fault);
    if (err || chosen.len > 0)
        return err;
    err = hd_checkpoint_target_of_root(call, &target, ns);
    return err ? err : hd_head_renew(call, &target);
}

/* A line that has no other checkpoint is removed as a whole. */
static int remove_points(struct purging *purging, const struct hd_checkpoint_node *point)
{
    struct heddle *store = purging->call->app->store;
    struct point_cut cut = {purging, point};
    int err;

    if (!has_remaining(purging, point->ns))
        return hd_rows_change(store, drop_line_once, &cut, &purging->call->fault);
    err = hd_rows_change(store, cut_point_once, &cut, &purging->call->fault);
    return err ? err : renew_head(purging, point->ns);
}

/* ---- the room --------------------------------------------------------- */

static int store_purged_room(struct purging *purging, struct hd_room_rec *room,
                             struct hd_batch_builder *batch, struct heddle_error *fault)
{
    struct hd_call *call = purging->call;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(call->arena, room->principal, room->thread_id, &lane);

    if (!err)
        err = hd_room_put(batch, room);
    view = hd_batch_view(batch);
    return err ? err : hd_rows_apply(call->app->store, lane, &view, NULL, fault);
}

/* No later run is given the message: an admission meanwhile conflicts with the room's record. */
static int delete_contents_once(void *arg, struct heddle_error *fault)
{
    struct purging *purging = arg;
    struct hd_batch_builder batch;
    struct hd_room_rec room;
    int err = hd_room_find(purging->call, &purging->thread, &room);

    if (err)
        return err;
    hd_batch_init(&batch);
    err = hd_room_contents_delete(&batch, room.principal, room.thread_id, purging->message.id);
    if (!err)
        err = store_purged_room(purging, &room, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The lines are given the messages behind the purged one again. */
static int reset_marks_once(void *arg, struct heddle_error *fault)
{
    struct purging *purging = arg;
    struct hd_batch_builder batch;
    struct hd_room_rec room;
    int err = hd_room_find(purging->call, &purging->thread, &room);

    for (size_t i = 0; !err && i < purging->points.count; i++) {
        const struct hd_checkpoint_node *point = &purging->points.list[i];
        struct hd_room_mark mark = {0, 0};

        if (!is_purged(point) || is_purged(point->parent))
            continue;
        err = hd_room_mark_get(&room, point->ns, &mark, fault);
        if (mark.seq >= purging->message.seq)
            mark.seq = purging->message.seq - 1;
        if (!err)
            err = hd_room_mark_set(&room, point->ns, mark, purging->call->arena);
    }
    if (err)
        return err;
    hd_batch_init(&batch);
    err = store_purged_room(purging, &room, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/* Removes the value of a reply from the step, if the message is that reply. */
static int forget_reply(const struct purging *purging, struct hd_cascade_rec *cascade,
                        struct hd_batch_builder *batch, struct heddle_error *fault)
{
    struct hd_arena *arena = purging->call->arena;
    struct hd_cascade_list steps;
    bool is_found = false;
    int err = hd_cascade_steps_read(cascade->plan, arena, &steps, fault);

    for (size_t i = 0; !err && i < steps.count; i++) {
        if (steps.items[i].resume.len == 0 ||
            !hd_slice_eq(steps.items[i].reply, purging->message.id))
            continue;
        steps.items[i].resume = hd_slice(NULL, 0);
        is_found = true;
    }
    if (err || !is_found)
        return err;
    err = hd_cascade_steps_write(&steps, arena, &cascade->plan);
    return err ? err : hd_cascade_put(batch, cascade);
}

static int forget_replies_once(void *arg, struct heddle_error *fault)
{
    struct purging *purging = arg;
    struct hd_cascade_rec *cascades = NULL;
    struct hd_batch_builder batch;
    struct hd_room_rec room;
    size_t count = 0;
    int err = hd_room_find(purging->call, &purging->thread, &room);

    if (!err)
        err = hd_cascades_read(purging->call->app->store, room.principal, room.thread_id, 0,
                               purging->call->arena, &cascades, &count, fault);
    hd_batch_init(&batch);
    for (size_t i = 0; !err && i < count; i++)
        err = forget_reply(purging, &cascades[i], &batch, fault);
    if (!err && hd_batch_view(&batch).count > 0)
        err = store_purged_room(purging, &room, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/* ---- everything ------------------------------------------------------- */

static int on_open_question(void *arg, const struct hd_room_message_rec *question)
{
    const struct purging *purging = arg;

    if (!hd_map_get(&purging->runs, question->run_id))
        return 0;
    return hd_error_set(&purging->call->fault, HD_EBUSY,
                        "an open question depends on the message: answer it or withdraw it first");
}

/* A reply could not resume a run without checkpoints. */
static int check_questions(struct purging *purging)
{
    const struct hd_thread_rec *thread = &purging->thread;
    const struct hd_room_message_query query = {.state = HD_ROOM_PENDING, .changed_after = -1};

    return hd_room_messages_scan(purging->call->app->store, thread->principal, thread->id, &query,
                                 on_open_question, purging, &purging->call->fault);
}

/* Finds the runs and their checkpoints; may be called again. */
static int find_purged(struct purging *purging)
{
    int err = find_purged_runs(purging);

    hd_checkpoint_index_fini(&purging->points);
    if (!err)
        err = hd_checkpoint_index_read(purging->call, purging->thread.id, NULL, &purging->points);
    return err ? err : mark_points(purging);
}

/* Runs that were admitted before the contents were deleted are found by the second look. */
static int purge_all(struct purging *purging)
{
    struct hd_call *call = purging->call;
    struct heddle *store = call->app->store;
    int err = find_purged(purging);

    if (!err)
        err = check_questions(purging);
    if (!err)
        err = hd_rows_change(store, delete_contents_once, purging, &call->fault);
    if (!err)
        err = hd_rows_change(store, forget_replies_once, purging, &call->fault);
    if (!err)
        err = find_purged(purging);
    for (size_t i = 0; !err && i < purging->points.count; i++) {
        const struct hd_checkpoint_node *point = &purging->points.list[i];

        if (is_purged(point) && !is_purged(point->parent))
            err = remove_points(purging, point);
    }
    if (!err)
        err = hd_thread_prune_runs(store, &purging->thread, &purging->runs, purging->purge->events,
                                   call->arena, &purging->purge->gone, &call->fault);
    return err ? err : hd_rows_change(store, reset_marks_once, purging, &call->fault);
}

int hd_room_purge_apply(struct hd_call *call, struct hd_room_purge *purge)
{
    struct purging purging = {.call = call, .purge = purge};
    int err = hd_call_thread(call, &purging.thread);

    if (!err)
        err = hd_room_find_message(call, &purging.thread, purge->message_id, &purging.message);
    if (!err && purging.thread.status == HD_THREAD_BUSY)
        err = HD_EBUSY;
    if (err)
        return err;
    hd_map_init(&purging.runs, MAX_RUNS);
    err = purge_all(&purging);
    if (!err)
        hd_thread_indexer_note(call->app->texts, purging.thread.principal, purging.thread.id);
    hd_checkpoint_index_fini(&purging.points);
    hd_map_fini(&purging.runs);
    return err;
}

/* ---- events ----------------------------------------------------------- */

void hd_room_purge_begin(struct hd_call *call, struct hd_slice thread_id)
{
    struct hd_event_log *log = hd_event_log_find(call->app->event_logs, call->principal, thread_id);

    if (log)
        hd_event_log_flush(log);
}

void hd_room_purge_end(struct hd_call *call, struct hd_slice thread_id,
                       const struct hd_room_purge *purge)
{
    struct hd_event_log *log = hd_event_log_find(call->app->event_logs, call->principal, thread_id);

    for (size_t i = 0; log && i < purge->gone.count; i++)
        hd_event_log_hide(log, purge->gone.ids[i]);
    if (log)
        hd_event_log_hide_data(log, purge->events);
}
