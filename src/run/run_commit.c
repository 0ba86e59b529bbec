#include "run/run_commit.h"

#include <heddle.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "events/event_log.h"
#include "graph/engine/origin.h"
#include "records/hold.h"
#include "records/line.h"
#include "records/participants.h"
#include "records/run_slot.h"
#include "records/thread_heads.h"
#include "room/room.h"
#include "run/line_touches.h"
#include "run/room/room_answer.h"
#include "search/thread_texts.h"
#include "store/bytes.h"
#include "store/rows.h"
#include "store/thread_fence.h"

#define MAX_READ ((size_t)256 << 20)

/* ---- thread record ---------------------------------------------------- */

static bool has_result(const struct hd_run_commit *commit)
{
    return commit->has_begun && !commit->is_rolled_back;
}

/* The run's end becomes the head. */
static bool moves_head(const struct hd_run_commit *commit)
{
    return has_result(commit) && !commit->run->is_off_head;
}

static bool has_failed(const struct hd_run_commit *commit)
{
    return !commit->is_rolled_back &&
           (commit->status == HD_RUN_STATE_ERROR || commit->status == HD_RUN_STATE_TIMEOUT);
}

/* A run without a result leaves its line as it was. Remaining tasks mean that the line waits. */
static int change_line(struct hd_lines *lines, const struct hd_thread_rec *thread,
                       const struct hd_run_commit *commit, struct hd_arena *arena)
{
    struct hd_line_rec *line;

    if (commit->run->is_off_head || (!has_result(commit) && !has_failed(commit)))
        return 0;
    line = hd_lines_change(lines, thread, commit->ns, arena);
    if (!line)
        return HD_ENOMEM;
    line->updated_at = thread->updated_at;
    line->status = commit->has_next ? HD_THREAD_INTERRUPTED : HD_THREAD_IDLE;
    if (has_failed(commit))
        line->status = HD_THREAD_ERROR;
    if (!has_result(commit))
        return 0;
    line->run_id = commit->run->run_id;
    line->assistant_id = commit->run->assistant_id;
    line->graph_id = commit->graph_id;
    line->interrupts = commit->interrupts;
    line->error = commit->error;
    if (commit->checkpoint_id.len > 0)
        line->checkpoint_id = commit->checkpoint_id;
    return 0;
}

/* The other runs in flight on the thread. */
struct others {
    size_t count;
    size_t off_head;
};

static bool are_all_off_head(const struct others *others)
{
    return others->count == others->off_head;
}

/* `head_before` keeps the head for the case that the other runs leave no result. */
static void keep_head(struct hd_thread_rec *thread, const struct hd_run_commit *commit,
                      const struct others *others)
{
    if (moves_head(commit))
        thread->head_before = thread->head;
    else if (!commit->run->is_off_head && are_all_off_head(others) && thread->has_before)
        thread->head = thread->head_before;
    thread->has_before = others->count > 0 && (thread->has_before || moves_head(commit));
}

/*
 * The run's last checkpoint replaces the head that a client chose. While a run is off the head, the
 * record names the head, since the latest checkpoint may be that run's next one.
 */
static int follow_run(struct heddle *store, struct hd_thread_rec *thread,
                      const struct hd_run_commit *commit, const struct others *others,
                      struct hd_arena *arena, struct heddle_error *fault)
{
    struct hd_slice run_id = commit->run->run_id, made;
    int err;

    if (others->off_head == 0)
        return hd_thread_heads_follow(store, thread, commit->ns, commit->checkpoint_id, run_id,
                                      arena, fault);
    err = hd_thread_heads_made(store, thread->principal, thread->id, commit->ns, run_id, arena,
                               &made, fault);
    if (err || made.len == 0)
        return err;
    return hd_thread_heads_set(arena, &thread->heads, commit->ns, made);
}

static int change_thread(struct heddle *store, struct hd_thread_rec *thread,
                         const struct hd_run_commit *commit, const struct others *others,
                         struct hd_arena *arena, struct heddle_error *fault)
{
    int64_t now = hd_clock_now_us();

    thread->updated_at = now;
    hd_thread_touch(thread, now);
    if (commit->event_seq > thread->event_seq)
        thread->event_seq = commit->event_seq;
    if (!moves_head(commit))
        return 0;
    thread->state_updated_at = now;
    if (commit->checkpoint_id.len == 0)
        return 0;
    thread->head.ns = commit->ns;
    thread->head.checkpoint_id = commit->checkpoint_id;
    thread->head.graph_id = commit->graph_id;
    thread->head.assistant_id = commit->run->assistant_id;
    return follow_run(store, thread, commit, others, arena, fault);
}

#define RUNS_PAGE ((size_t)16)

/* The latest other run on the head; in the arena. NULL: none. */
static int find_latest(struct heddle *store, const struct hd_run_rec *run, struct hd_arena *arena,
                       struct hd_run_rec **latest, struct heddle_error *fault)
{
    struct hd_run_rec *runs = NULL;
    size_t count = RUNS_PAGE;
    int err = 0;

    *latest = NULL;
    for (size_t from = 0; !err && !*latest && count == RUNS_PAGE; from += RUNS_PAGE) {
        err = hd_runs_list(store, run->principal, run->thread_id, NULL, from, RUNS_PAGE, arena,
                           &runs, &count, fault);
        for (size_t i = 0; !err && i < count && !*latest; i++) {
            if (!hd_slice_eq(runs[i].run_id, run->run_id) && !runs[i].is_off_head)
                *latest = &runs[i];
        }
    }
    return err;
}

/* The run leaves no result: sets the head to the latest other run, or clears it. */
static int restore_head(struct heddle *store, struct hd_thread_rec *thread,
                        const struct hd_run_rec *run, struct hd_arena *arena,
                        struct heddle_error *fault)
{
    struct hd_run_rec *latest = NULL;
    struct hd_json json = {NULL};
    hd_json_val config;
    int err = find_latest(store, run, arena, &latest, fault);

    thread->head = (struct hd_head){.ns = {NULL, 0}};
    if (err || !latest)
        return err;
    err = hd_run_line(latest, arena, &thread->head.ns, fault);
    if (!err)
        err = hd_json_parse(&json, latest->kwargs, fault);
    config = hd_json_get(hd_json_root(&json), HD_S("config"));
    if (!err)
        err = hd_arena_copy(arena,
                            hd_json_string(hd_json_get(hd_json_get(config, HD_S("configurable")),
                                                       HD_S("graph_id"))),
                            &thread->head.graph_id);
    thread->head.assistant_id = latest->assistant_id;
    hd_json_fini(&json);
    return err;
}

/* ---- one attempt ------------------------------------------------------ */

/* The stored record of the run. */
struct stored_run {
    int64_t rev;             /* 0: not found */
    struct hd_slice touched; /* as in struct hd_run_rec */
};

/* Counts the other runs in flight on the thread, and finds this one. */
static int count_others(struct heddle *store, const struct hd_run_rec *run, struct hd_arena *arena,
                        struct others *others, struct stored_run *own, struct heddle_error *fault)
{
    struct hd_run_rec *active = NULL;
    size_t count = 0;
    int err = hd_runs_active(store, run->principal, run->thread_id, arena, &active, &count, fault);

    *others = (struct others){.count = 0};
    *own = (struct stored_run){.rev = 0};
    for (size_t i = 0; !err && i < count; i++) {
        if (hd_slice_eq(active[i].run_id, run->run_id)) {
            *own = (struct stored_run){active[i].rev, active[i].touched};
        } else {
            others->count++;
            others->off_head += active[i].is_off_head;
        }
    }
    return err;
}

static int add_run(struct hd_batch_builder *batch, const struct hd_run_commit *commit,
                   const struct stored_run *own)
{
    struct hd_run_rec run = *commit->run;

    if (commit->is_rolled_back)
        return hd_run_delete(batch, &run);
    if (own->rev == 0)
        return 0; /* deleted meanwhile */
    run.rev = own->rev;
    run.touched = own->touched;
    run.status = commit->status;
    run.receipt = commit->receipt;
    run.error = commit->error;
    run.checkpoint_id = commit->checkpoint_id;
    run.updated_at = hd_clock_now_us();
    run.due_at = 0;
    return hd_run_put(batch, &run);
}

/* The hold on the thread ends with its last run. */
static int add_hold(struct hd_batch_builder *batch, const struct hd_run_rec *run, bool is_last)
{
    int64_t token = run->guard.token;

    if (!token)
        return 0;
    return is_last ? hd_hold_release(batch, run->principal, run->thread_id, token)
                   : hd_hold_expect(batch, run->principal, run->thread_id, token);
}

/* The new state of the rows that the end of a run changes. */
struct end_plan {
    struct hd_thread_rec thread;
    struct hd_lines lines;
    struct others others;
    struct stored_run own;
};

/*
 * Appends all changes of the end to one batch: the thread and its lines, the run, its last events
 * and its webhook.
 */
static int add_end(struct hd_batch_builder *batch, const struct hd_run_commit *commit,
                   struct end_plan *plan)
{
    const struct hd_run_rec *run = commit->run;
    int err = hd_thread_put(batch, &plan->thread);

    if (!err)
        err = hd_lines_put(batch, &plan->lines);
    if (!err)
        err = add_run(batch, commit, &plan->own);
    if (!err)
        err = add_hold(batch, run, plan->others.count == 0);
    if (!err && commit->last_page && commit->last_page->data.len > 0)
        err = hd_event_log_page_put(batch, run->principal, run->thread_id, commit->last_page);
    if (!err && commit->webhook)
        err = hd_outbox_put(batch, commit->webhook);
    return err ? err : hd_run_slot_free(batch, run);
}

/*
 * Of a hold that is not as expected: HD_ETAKEN, another server holds the thread. HD_ENOTFOUND, the
 * end is stored already, by an earlier commit whose reply was lost, which released the thread.
 */
static int check_hold(struct hd_app *app, const struct hd_run_rec *run, struct hd_arena *arena,
                      struct heddle_error *fault)
{
    struct hd_hold hold;
    int err;

    if (!run->guard.token)
        return 0;
    err = hd_hold_read(app->store, run->principal, run->thread_id, arena, &hold, fault);
    if (err || hold.token == run->guard.token)
        return err;
    if (!hold.token && hd_slice_eq(hold.last, hd_cluster_self(app->cluster)))
        return HD_ENOTFOUND;
    return hd_error_set(fault, HD_ETAKEN, "%s", hd_error_text(HD_ETAKEN));
}

/* In a room. Nothing of a run whose record was deleted meanwhile, or has ended already. */
static int add_answer(struct hd_app *app, const struct hd_run_commit *commit,
                      struct hd_arena *arena, struct end_plan *plan, struct hd_batch_builder *batch,
                      struct heddle_error *fault)
{
    int err;

    if (plan->own.rev == 0)
        return 0;
    err = hd_room_answer_put(app, commit, &plan->thread, commit->events, batch, arena, fault);
    if (err == HD_EBUSY && commit->room_seq)
        *commit->room_seq = plan->thread.event_seq;
    return err;
}

/* HD_ENOTFOUND: the thread was deleted. Appends the rows of a room. */
static int plan_end(struct hd_app *app, const struct hd_run_commit *commit, struct hd_arena *arena,
                    struct end_plan *plan, struct hd_batch_builder *batch,
                    struct heddle_error *fault)
{
    struct heddle *store = app->store;
    const struct hd_run_rec *run = commit->run;
    struct hd_thread_rec *thread = &plan->thread;
    int err = hd_thread_read(store, run->principal, run->thread_id, arena, thread, fault);

    if (!err && run->guard.created_at && run->guard.created_at != thread->created_at)
        err = HD_ENOTFOUND; /* the id belongs to a new thread */
    if (!err)
        err = count_others(store, run, arena, &plan->others, &plan->own, fault);
    if (!err)
        err = add_answer(app, commit, arena, plan, batch, fault);
    if (!err)
        err = hd_lines_read(store, thread, arena, &plan->lines, fault);
    if (!err)
        err = change_thread(store, thread, commit, &plan->others, arena, fault);
    if (!err && !has_result(commit) && !run->is_off_head &&
        (!are_all_off_head(&plan->others) || !thread->has_before))
        err = restore_head(store, thread, run, arena, fault);
    if (!err)
        err = change_line(&plan->lines, thread, commit, arena);
    if (!err && commit->is_rolled_back)
        err = hd_line_touches_restore(plan->own.touched, thread, &plan->lines, arena);
    if (err)
        return err;
    keep_head(thread, commit, &plan->others);
    return hd_lines_settle(&plan->lines, thread, plan->others.count > 0, arena);
}

/* Explains a conflict about the hold; any other means that the rows must be read again. */
static int apply_end(struct hd_app *app, const struct hd_run_rec *run, struct hd_slice lane,
                     const struct hd_batch *batch, struct hd_arena *arena,
                     struct heddle_error *fault)
{
    size_t failed;
    int err = hd_rows_apply(app->store, lane, batch, &failed, fault), cause;

    if (err != HD_ECONFLICT || batch->ops[failed].table != HD_HOLDS)
        return err;
    cause = check_hold(app, run, arena, fault);
    return cause ? cause : err;
}

static int try_once(struct hd_app *app, const struct hd_run_commit *commit, struct hd_arena *arena,
                    struct heddle_error *fault)
{
    const struct hd_run_rec *run = commit->run;
    struct hd_batch_builder batch;
    struct end_plan plan = {.others = {.count = 0}};
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err;

    hd_batch_init(&batch);
    err = plan_end(app, commit, arena, &plan, &batch, fault);
    if (!err)
        err = hd_thread_lane(arena, run->principal, run->thread_id, &lane);
    if (!err)
        err = add_end(&batch, commit, &plan);
    view = hd_batch_view(&batch);
    if (!err)
        err = apply_end(app, run, lane, &view, arena, fault);
    hd_batch_fini(&batch);
    return err == HD_ENOTFOUND ? 0 : err;
}

/* ---- events ----------------------------------------------------------- */

/* The first numbers of the pages to delete, newest first. */
struct old_pages {
    struct hd_page_limits keep;
    size_t seen;
    uint64_t bytes;
    uint64_t newer; /* events in the pages seen so far */
    int64_t first[64];
    size_t count;
};

static int on_old_page(void *arg, size_t which, const struct hd_cell *cells)
{
    struct old_pages *old = arg;
    int64_t first = cells[HD_EVENT_PAGES_FIRST].number;
    int64_t last = cells[HD_EVENT_PAGES_LAST].number;
    uint64_t newer = old->newer;

    (void)which;
    old->bytes += cells[HD_EVENT_PAGES_DATA].bytes.len;
    old->newer += hd_event_page_count(cells[HD_EVENT_PAGES_RUN].bytes, first, last);
    if (old->seen++ == 0)
        return 0; /* the newest page always stays */
    if (old->bytes <= old->keep.bytes && newer < old->keep.events)
        return 0;
    if (old->count == HD_COUNT(old->first))
        return 1;
    old->first[old->count++] = first;
    return 0;
}

static int delete_pages(struct heddle *store, const struct hd_run_rec *run,
                        const struct old_pages *old, struct hd_arena *arena,
                        struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(arena, run->principal, run->thread_id, &lane);

    hd_batch_init(&batch);
    for (size_t i = 0; !err && i < old->count; i++) {
        const struct hd_cell key[] = {hd_cell_bytes(run->principal), hd_cell_bytes(run->thread_id),
                                      hd_cell_int(old->first[i])};

        err = hd_batch_delete(&batch, HD_EVENT_PAGES, key, HD_COUNT(key));
    }
    view = hd_batch_view(&batch);
    if (!err && batch.count > 0)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

static int find_old_pages(struct heddle *store, const struct hd_run_rec *run, bool with_bytes,
                          struct old_pages *old, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(run->principal), hd_cell_bytes(run->thread_id)};
    const unsigned data = with_bytes ? 1u << HD_EVENT_PAGES_DATA : 0;
    const struct hd_query query = {.table = HD_EVENT_PAGES,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .is_reverse = true,
                                   .columns =
                                       1u << HD_EVENT_PAGES_LAST | 1u << HD_EVENT_PAGES_RUN | data};

    return hd_rows_read(store, &query, 1, on_old_page, old, fault);
}

/* Reads the data of pages, for their sizes, only if the limit of bytes may be exceeded. */
static int trim_pages(struct heddle *store, const struct hd_run_commit *commit,
                      struct hd_arena *arena, struct heddle_error *fault)
{
    const struct hd_page_limits *keep = &commit->pages;
    struct old_pages old;
    int err = 0;

    if (!keep->is_due)
        return 0;
    do {
        old = (struct old_pages){.keep = *keep};
        err = find_old_pages(store, commit->run, false, &old, fault);
        if (!err && (keep->has_large || old.seen * HD_PAGE_BYTES > keep->bytes)) {
            old = (struct old_pages){.keep = *keep};
            err = find_old_pages(store, commit->run, true, &old, fault);
        }
        if (!err)
            err = delete_pages(store, commit->run, &old, arena, fault);
    } while (!err && old.count == HD_COUNT(old.first));
    return err;
}

/* ---- delete ----------------------------------------------------------- */

/* Appends the deletion of the rows that other principals have because of the thread. */
static int add_rows_of_others(struct heddle *store, struct hd_batch_builder *batch,
                              struct hd_slice principal, struct hd_slice thread_id,
                              struct heddle_error *fault)
{
    int err = hd_participants_delete(store, batch, principal, thread_id, fault);

    return err ? err : hd_mentions_delete(store, batch, principal, thread_id, fault);
}

/*
 * Deletes participants and mentions added during the deletion. None can be added to the deleted
 * thread.
 */
static int forget_latecomers(struct heddle *store, struct hd_slice principal,
                             struct hd_slice thread_id, struct hd_slice lane,
                             struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = add_rows_of_others(store, &batch, principal, thread_id, fault);
    view = hd_batch_view(&batch);
    if (!err && batch.count > 0)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

struct thread_deletion {
    struct heddle *store;
    struct hd_slice principal;
    struct hd_slice thread_id;
    int64_t rev;                   /* the expected revision of the record; 0: any */
    const struct hd_run_rec *only; /* of a temporary thread: its run; it has no crons. Or NULL */
    /* The webhook of that run, which is kept; NULL: all webhooks are deleted. */
    const struct hd_outbox_row *webhook;
};

static bool has_token(const struct thread_deletion *deletion)
{
    return deletion->only && deletion->only->guard.token;
}

/* The rows whose key begins with the thread, and what is expected of them. */
static int add_deleted_rows(struct hd_batch_builder *batch, const struct thread_deletion *deletion)
{
    static const enum hd_table_id tables[] = {HD_THREAD_INFO, HD_LINES,       HD_HOLDS,
                                              HD_RUNS,        HD_EVENT_PAGES, HD_EXCHANGES};
    const struct hd_cell key[] = {hd_cell_bytes(deletion->principal),
                                  hd_cell_bytes(deletion->thread_id)};
    int err = 0;

    if (has_token(deletion))
        err = hd_hold_expect(batch, deletion->principal, deletion->thread_id,
                             deletion->only->guard.token);
    if (!err && deletion->rev)
        err = hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, deletion->rev);
    for (size_t i = 0; !err && i < HD_COUNT(tables); i++)
        err = hd_batch_delete(batch, tables[i], key, 2);
    if (!err)
        err = hd_room_delete(batch, deletion->principal, deletion->thread_id);
    if (err)
        return err;
    return deletion->webhook ? hd_outbox_put(batch, deletion->webhook)
                             : hd_batch_delete(batch, HD_OUTBOX, key, 2);
}

/* The hold was not as expected: 0 if an earlier attempt, whose reply was lost, has deleted it. */
static int explain_conflict(const struct thread_deletion *deletion, struct hd_arena *arena,
                            struct heddle_error *fault)
{
    struct hd_hold hold;
    int err = hd_hold_read(deletion->store, deletion->principal, deletion->thread_id, arena, &hold,
                           fault);

    return err || !hold.token ? err
                              : hd_error_set(fault, HD_ETAKEN, "%s", hd_error_text(HD_ETAKEN));
}

static int delete_thread(const struct thread_deletion *deletion, struct heddle_error *fault)
{
    struct heddle *store = deletion->store;
    struct hd_slice principal = deletion->principal, thread_id = deletion->thread_id;
    bool has_others = principal.len > 0 || !deletion->only;
    struct hd_batch_builder batch;
    struct hd_arena arena;
    struct hd_batch view;
    struct hd_slice lane;
    int err;

    hd_arena_init(&arena, MAX_READ);
    hd_batch_init(&batch);
    err = hd_thread_lane(&arena, principal, thread_id, &lane);
    if (!err)
        err = add_deleted_rows(&batch, deletion);
    if (!err)
        err = hd_thread_texts_delete(&batch, principal, thread_id);
    if (!err && deletion->only)
        err = hd_run_slot_free(&batch, deletion->only);
    if (!err && !deletion->only)
        err = hd_participants_delete_crons(store, &batch, principal, thread_id, fault);
    if (!err && !deletion->only && principal.len > 0)
        err = hd_item_room_memory_delete(store, &batch, principal, thread_id, fault);
    if (!err && has_others)
        err = add_rows_of_others(store, &batch, principal, thread_id, fault);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_thread_fence_erase(store, lane, &view, fault);
    if (err == HD_ECONFLICT && has_token(deletion))
        err = explain_conflict(deletion, &arena, fault);
    if (!err && has_others)
        err = forget_latecomers(store, principal, thread_id, lane, fault);
    hd_batch_fini(&batch);
    hd_arena_fini(&arena);
    return err;
}

/* ---- public functions ------------------------------------------------- */

/* Deletes the run's checkpoints, and its writes to the checkpoints from which it started. */
static int roll_back(struct heddle *store, const struct hd_run_commit *commit,
                     struct heddle_error *fault)
{
    const struct hd_run_rec *run = commit->run;
    const struct heddle_thread thread = {hd_to_public(run->principal),
                                         hd_to_public(run->thread_id)};
    const struct heddle_bytes id = hd_to_public(run->run_id);
    int err = hd_origins_restore(store, commit->origins, &thread, run->guard, fault);

    if (err == HD_ENOTFOUND)
        err = 0; /* the thread was deleted */
    if (err)
        return err;
    err = heddle_delete_runs(store, hd_to_public(run->principal), &id, 1, fault);
    return err;
}

struct commit_attempt {
    struct hd_app *app;
    const struct hd_run_commit *commit;
    struct hd_arena arena;
};

static int commit_once(void *arg, struct heddle_error *fault)
{
    struct commit_attempt *attempt = arg;

    hd_arena_reset(&attempt->arena);
    return try_once(attempt->app, attempt->commit, &attempt->arena, fault);
}

int hd_run_commit_store(struct hd_app *app, const struct hd_run_commit *commit,
                        struct heddle_error *fault)
{
    struct commit_attempt attempt = {.app = app, .commit = commit};
    int err = 0;

    if (commit->deletes_thread) {
        const struct thread_deletion deletion = {.store = app->store,
                                                 .principal = commit->run->principal,
                                                 .thread_id = commit->run->thread_id,
                                                 .only = commit->run,
                                                 .webhook = commit->webhook};

        return delete_thread(&deletion, fault);
    }
    hd_arena_init(&attempt.arena, MAX_READ);
    if (commit->is_rolled_back) {
        err = check_hold(app, commit->run, &attempt.arena, fault);
        if (!err)
            err = roll_back(app->store, commit, fault);
    }
    if (!err)
        err = hd_rows_change(app->store, commit_once, &attempt, fault);
    if (!err)
        err = trim_pages(app->store, commit, &attempt.arena, fault);
    hd_arena_fini(&attempt.arena);
    return err == HD_ENOTFOUND && commit->is_rolled_back ? 0 : err;
}

static int on_any_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 1;
}

int hd_run_commit_has_checkpoint(struct heddle *store, const struct hd_run_rec *run, bool *out,
                                 struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_slice thread;
    int err;

    *out = false;
    hd_arena_init(&arena, 4096);
    err = hd_thread_lane(&arena, run->principal, run->thread_id, &thread);
    if (!err) {
        const struct hd_cell key[] = {hd_cell_bytes(run->run_id), hd_cell_bytes(thread)};
        const struct hd_query query = {.table = HD_CHECKPOINTS,
                                       .index = HD_CHECKPOINTS_BY_RUN,
                                       .prefix = key,
                                       .prefix_count = HD_COUNT(key),
                                       .limit = 1,
                                       .columns = 0};

        err = hd_rows_read(store, &query, 1, on_any_checkpoint, out, fault);
    }
    hd_arena_fini(&arena);
    return err > 0 ? 0 : err;
}

int hd_run_commit_delete_thread(struct heddle *store, struct hd_slice principal,
                                struct hd_slice thread_id, struct heddle_error *fault)
{
    const struct thread_deletion deletion = {
        .store = store, .principal = principal, .thread_id = thread_id};

    return delete_thread(&deletion, fault);
}

int hd_run_commit_expire_thread(struct heddle *store, const struct hd_thread_rec *thread,
                                struct heddle_error *fault)
{
    const struct thread_deletion deletion = {.store = store,
                                             .principal = thread->principal,
                                             .thread_id = thread->id,
                                             .rev = thread->rev};

    return delete_thread(&deletion, fault);
}
