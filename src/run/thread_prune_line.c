/* Deletes one line of a thread, or some of its runs, with everything that the runs have stored. */
#include <heddle.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "events/event_log.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "room/room.h"
#include "run/thread_prune.h"
#include "store/prune.h"
#include "store/rows.h"
#include "store/thread_fence.h"
#include "webhook/outbox.h"

#define MAX_READ ((size_t)256 << 20)
#define MAX_RUNS ((size_t)1 << 24)
#define PAGE 100 /* runs */

struct line_removal {
    struct heddle *store;
    struct hd_thread_rec *thread;
    struct hd_slice ns;
    struct hd_arena *arena;
    struct hd_batch_builder batch;
    struct hd_map run_ids; /* of the line */
    struct hd_pruned_runs *gone;
    struct hd_slice next_ns; /* the line of the latest other run */
    bool has_next;
    bool is_busy; /* a run of another line is in flight */
    struct heddle_error *fault;
};

/* ---- runs ------------------------------------------------------------- */

static int note_gone(struct hd_pruned_runs *gone, struct hd_arena *arena, struct hd_slice id)
{
    if (gone->count == gone->cap) {
        size_t cap = gone->cap ? 2 * gone->cap : 16;
        struct hd_slice *grown = hd_arena_calloc(arena, cap, sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        if (gone->count > 0)
            memcpy(grown, gone->ids, gone->count * sizeof(*grown));
        gone->ids = grown;
        gone->cap = cap;
    }
    gone->ids[gone->count++] = id;
    return 0;
}

static int add_run(struct line_removal *removal, const struct hd_run_rec *run)
{
    struct hd_run_rec gone = {.principal = removal->thread->principal,
                              .thread_id = removal->thread->id};
    int err = hd_arena_copy(removal->arena, run->run_id, &gone.run_id);
    const struct hd_outbox_row webhook = {
        .principal = gone.principal, .thread_id = gone.thread_id, .run_id = gone.run_id};

    if (!err)
        err = hd_map_put(&removal->run_ids, gone.run_id, removal);
    if (!err)
        err = note_gone(removal->gone, removal->arena, gone.run_id);
    if (!err)
        err = hd_run_delete(&removal->batch, &gone);
    return err ? err : hd_outbox_delete(&removal->batch, &webhook);
}

static int see_run(struct line_removal *removal, const struct hd_run_rec *run,
                   struct hd_arena *arena)
{
    bool is_active = run->due_at != 0;
    struct hd_slice ns;
    int err = hd_run_line(run, arena, &ns, removal->fault);

    if (err)
        return err;
    if (hd_slice_eq(ns, removal->ns))
        return is_active ? HD_ECONFLICT : add_run(removal, run);
    removal->is_busy |= is_active;
    if (removal->has_next)
        return 0;
    removal->has_next = true;
    return hd_arena_copy(removal->arena, ns, &removal->next_ns);
}

/* Newest first. */
static int see_runs(struct line_removal *removal)
{
    const struct hd_thread_rec *thread = removal->thread;
    size_t offset = 0, count = 0;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_READ);
    do {
        struct hd_run_rec *runs = NULL;

        hd_arena_reset(&arena);
        err = hd_runs_list(removal->store, thread->principal, thread->id, NULL, offset, PAGE,
                           &arena, &runs, &count, removal->fault);
        for (size_t i = 0; !err && i < count; i++)
            err = see_run(removal, &runs[i], &arena);
        offset += count;
    } while (!err && count == PAGE);
    hd_arena_fini(&arena);
    return err;
}

static int on_exchange(void *arg, size_t which, const struct hd_cell *cells)
{
    struct line_removal *removal = arg;
    const struct hd_cell key[] = {hd_cell_bytes(removal->thread->principal),
                                  hd_cell_bytes(removal->thread->id),
                                  hd_cell_int(cells[HD_EXCHANGES_SEQ].number)};

    (void)which;
    if (!hd_map_get(&removal->run_ids, cells[HD_EXCHANGES_RUN].bytes))
        return 0;
    return hd_batch_delete(&removal->batch, HD_EXCHANGES, key, HD_COUNT(key));
}

static int delete_exchanges(struct line_removal *removal)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(removal->thread->principal),
                                     hd_cell_bytes(removal->thread->id)};
    const struct hd_query query = {.table = HD_EXCHANGES,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .columns = 1u << HD_EXCHANGES_SEQ | 1u << HD_EXCHANGES_RUN};

    return hd_rows_scan(removal->store, query, on_exchange, removal, removal->fault);
}

/* ---- the thread ------------------------------------------------------- */

static struct hd_head head_of(const struct hd_line_rec *line)
{
    return line ? (struct hd_head){.ns = line->ns,
                                   .checkpoint_id = line->checkpoint_id,
                                   .graph_id = line->graph_id,
                                   .assistant_id = line->assistant_id}
                : (struct hd_head){.ns = {NULL, 0}};
}

/* The head moves to the line of the latest other run, or to any line that has a checkpoint. */
static void move_heads(struct line_removal *removal, const struct hd_lines *lines)
{
    struct hd_thread_rec *thread = removal->thread;
    const struct hd_line_rec *next =
        removal->has_next ? hd_lines_find(lines, removal->next_ns) : NULL;

    for (size_t i = 0; !next && i < lines->count; i++)
        next = lines->list[i].checkpoint_id.len > 0 ? &lines->list[i] : NULL;
    if (hd_slice_eq(thread->head.ns, removal->ns))
        thread->head = head_of(next);
    if (hd_slice_eq(thread->head_before.ns, removal->ns))
        thread->head_before = head_of(next);
}

/* ---- the room --------------------------------------------------------- */

struct line_questions {
    struct line_removal *removal;
    struct hd_room_rec *room;
};

/* No reply can continue the line any more. */
static int on_line_question(void *arg, const struct hd_room_message_rec *message)
{
    const struct line_questions *questions = arg;
    struct line_removal *removal = questions->removal;
    struct hd_room_message_rec stopped;
    int err;

    if (!hd_slice_eq(message->ns, removal->ns))
        return 0;
    err = hd_room_message_copy(removal->arena, message, &stopped);
    stopped.state = HD_ROOM_STOPPED;
    stopped.changed = ++questions->room->changes;
    stopped.updated_at = questions->room->updated_at;
    return err ? err : hd_room_message_put(&removal->batch, &stopped);
}

/* A new line of the agent is given the chat from its beginning. What it said stays. */
static int change_room(struct line_removal *removal)
{
    const struct hd_thread_rec *thread = removal->thread;
    const struct hd_room_message_query query = {.state = HD_ROOM_PENDING, .changed_after = -1};
    struct hd_room_rec room;
    struct line_questions questions = {removal, &room};
    int err = hd_room_read(removal->store, thread->principal, thread->id, removal->arena, &room,
                           removal->fault);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    room.updated_at = hd_clock_now_us();
    err = hd_room_messages_scan(removal->store, thread->principal, thread->id, &query,
                                on_line_question, &questions, removal->fault);
    if (!err)
        err = hd_room_mark_set(&room, removal->ns, (struct hd_room_mark){0, 0}, removal->arena);
    return err ? err : hd_room_put(&removal->batch, &room);
}

/* ---- the record ------------------------------------------------------- */

static int change_thread(struct line_removal *removal)
{
    struct hd_thread_rec *thread = removal->thread;
    struct hd_lines lines;
    int err = hd_lines_read(removal->store, thread, removal->arena, &lines, removal->fault);

    if (err)
        return err;
    hd_lines_remove(&lines, removal->ns);
    move_heads(removal, &lines);
    err = hd_thread_heads_set(removal->arena, &thread->heads, removal->ns, hd_slice(NULL, 0));
    if (!err)
        err = hd_lines_settle(&lines, thread, removal->is_busy, removal->arena);
    if (!err)
        err = hd_thread_put(&removal->batch, thread);
    if (!err)
        err = hd_lines_put(&removal->batch, &lines);
    return err ? err : hd_line_delete(&removal->batch, thread, removal->ns);
}

static int delete_checkpoints(struct line_removal *removal)
{
    const struct hd_batch also = hd_batch_view(&removal->batch);
    struct hd_key fall = {.ns = removal->ns};
    const struct hd_prune_options keep = {.fall = &fall, .also = &also};
    int err = hd_thread_lane(removal->arena, removal->thread->principal, removal->thread->id,
                             &fall.thread);

    return err ? err
               : hd_prune_thread(hd_store_of(removal->store), fall.thread, &keep, removal->fault);
}

int hd_thread_prune_line(struct heddle *store, struct hd_thread_rec *changed, struct hd_slice ns,
                         struct hd_arena *arena, struct hd_pruned_runs *gone,
                         struct heddle_error *fault)
{
    struct line_removal removal = {
        .store = store, .thread = changed, .ns = ns, .arena = arena, .gone = gone, .fault = fault};
    int err;

    hd_batch_init(&removal.batch);
    hd_map_init(&removal.run_ids, MAX_RUNS);
    err = see_runs(&removal);
    if (!err && removal.run_ids.count > 0)
        err = delete_exchanges(&removal);
    if (!err)
        err = change_thread(&removal);
    if (!err && changed->is_room)
        err = change_room(&removal);
    if (!err)
        err = delete_checkpoints(&removal);
    if (!err && removal.run_ids.count > 0)
        err = hd_event_log_erase(store, changed, &removal.run_ids, hd_slice(NULL, 0), fault);
    hd_map_fini(&removal.run_ids);
    hd_batch_fini(&removal.batch);
    return err;
}

/* ---- some runs -------------------------------------------------------- */

static int apply_removal(struct line_removal *removal)
{
    const struct hd_thread_rec *thread = removal->thread;
    const struct hd_guard guard = {.created_at = thread->created_at};
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(removal->arena, thread->principal, thread->id, &lane);

    if (!err)
        err = hd_thread_fence_expect(&removal->batch, lane, &guard);
    view = hd_batch_view(&removal->batch);
    return err ? err : hd_rows_apply(removal->store, lane, &view, NULL, removal->fault);
}

int hd_thread_prune_runs(struct heddle *store, struct hd_thread_rec *thread,
                         const struct hd_map *run_ids, struct hd_slice data, struct hd_arena *arena,
                         struct hd_pruned_runs *gone, struct heddle_error *fault)
{
    struct line_removal removal = {
        .store = store, .thread = thread, .arena = arena, .gone = gone, .fault = fault};
    struct hd_run_rec run = {.rev = 0};
    void *value;
    size_t pos = 0;
    int err = 0;

    hd_batch_init(&removal.batch);
    hd_map_init(&removal.run_ids, MAX_RUNS);
    while (!err && hd_map_next(run_ids, &pos, &run.run_id, &value))
        err = add_run(&removal, &run);
    if (!err && removal.run_ids.count > 0)
        err = delete_exchanges(&removal);
    if (!err)
        err = apply_removal(&removal);
    if (!err)
        err = hd_event_log_erase(store, thread, &removal.run_ids, data, fault);
    hd_map_fini(&removal.run_ids);
    hd_batch_fini(&removal.batch);
    return err;
}
