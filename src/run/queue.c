#include "run/queue.h"

#include <string.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "config/config.h"
#include "gate/limits.h"
#include "records/thread_heads.h"
#include "run/active_run.h"
#include "run/run_commit.h"
#include "run/run_log.h"
#include "worker/resume_answers.h"

#define MAX_TURNS ((size_t)1 << 22)
#define TICK_MS 1000 /* how exact timeouts are */
#define MAX_TICKET ((size_t)512 << 20)
#define RETRY_US 100000      /* until the end of a run is stored again; doubles */
#define MAX_RETRY_US 5000000 /* up to this */
#define HELD_US 5000         /* until a run held by a pending admission is checked again */

static void on_tick(uv_timer_t *timer);
static void meet(struct hd_ticket *ticket, struct hd_coming *coming);
static void turn_away(struct hd_coming *coming);
static void go_on(struct hd_queue *queue);
static void set_timer(struct hd_queue *queue, int64_t wait_us);

int hd_queue_create(struct hd_app *app, struct hd_queue **out)
{
    struct hd_queue *queue = hd_calloc(1, sizeof(*queue));

    if (!queue)
        return HD_ENOMEM;
    if (hd_comings_init(&queue->comings)) {
        hd_free(queue);
        return HD_EIO;
    }
    if (uv_timer_init(app->loop, &queue->timer)) {
        hd_comings_fini(&queue->comings);
        hd_free(queue);
        return HD_EIO;
    }
    queue->timer.data = queue;
    queue->app = app;
    queue->ready_tail = &queue->ready;
    hd_map_init(&queue->turns, MAX_TURNS);
    hd_buf_init(&queue->scratch, HD_EVENT_LIMIT);
    *out = queue;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

static void free_ticket(struct hd_ticket *ticket)
{
    hd_work_fini(ticket);
    hd_arena_fini(&ticket->arena);
    hd_free(ticket);
}

void hd_queue_destroy(struct hd_queue *queue)
{
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    if (!queue)
        return;
    while (hd_map_next(&queue->turns, &pos, &key, &value)) {
        struct hd_turn *turn = value;

        while (turn->first) {
            struct hd_ticket *ticket = turn->first;

            turn->first = ticket->next;
            free_ticket(ticket);
        }
        hd_free(turn);
    }
    hd_map_fini(&queue->turns);
    hd_buf_fini(&queue->scratch);
    hd_comings_fini(&queue->comings);
    uv_close((uv_handle_t *)&queue->timer, on_closed);
}

struct hd_queue_counts hd_queue_counts(const struct hd_queue *queue)
{
    return (struct hd_queue_counts){.running = queue->running,
                                    .pending = queue->pending,
                                    .ended = queue->ended,
                                    .failed = queue->failed};
}

/* ---- turns ------------------------------------------------------------ */

static bool make_key(struct hd_slice principal, struct hd_slice thread, struct hd_buf *room,
                     struct hd_slice *key)
{
    hd_buf_reset(room);
    if (hd_buf_append_slice(room, principal) || hd_buf_append_byte(room, ':') ||
        hd_buf_append_slice(room, thread))
        return false;
    *key = hd_buf_slice(room);
    return true;
}

static struct hd_turn *find_turn(struct hd_queue *queue, struct hd_slice principal,
                                 struct hd_slice thread)
{
    struct hd_slice key;

    return make_key(principal, thread, &queue->scratch, &key) ? hd_map_get(&queue->turns, key)
                                                              : NULL;
}

static struct hd_turn *get_turn(struct hd_queue *queue, struct hd_slice principal,
                                struct hd_slice thread)
{
    struct hd_turn *turn = find_turn(queue, principal, thread);
    struct hd_slice key = hd_buf_slice(&queue->scratch);

    if (turn)
        return turn;
    turn = hd_calloc(1, sizeof(*turn) + key.len);
    if (!turn || hd_map_put(&queue->turns, key, turn)) {
        hd_free(turn);
        return NULL;
    }
    turn->queue = queue;
    turn->key_len = key.len;
    memcpy(turn->key, key.ptr, key.len);
    return turn;
}

static void drop_turn(struct hd_turn *turn)
{
    hd_map_remove(&turn->queue->turns, hd_slice(turn->key, turn->key_len));
    hd_free(turn);
}

static struct hd_ticket *find_ticket(struct hd_queue *queue, struct hd_slice principal,
                                     struct hd_slice thread, struct hd_slice run_id)
{
    struct hd_turn *turn = find_turn(queue, principal, thread);
    struct hd_ticket *ticket = turn ? turn->first : NULL;

    while (ticket && !hd_slice_eq(ticket->rec.run_id, run_id))
        ticket = ticket->next;
    return ticket;
}

bool hd_queue_has(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                  struct hd_slice run_id)
{
    return find_ticket(queue, principal, thread, run_id) ||
           hd_coming_find(&queue->comings, principal, run_id);
}

bool hd_queue_is_waiting(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice run_id)
{
    const struct hd_ticket *ticket = find_ticket(queue, principal, thread, run_id);

    return ticket ? !ticket->is_started
                  : hd_coming_find(&queue->comings, principal, run_id) != NULL;
}

/*
 * Returns whether a run precedes another of its thread: a run of an earlier process, first of all
 * one with stored checkpoints, since its next step builds on them; otherwise by order.
 */
static bool comes_before(const struct hd_ticket *ticket, const struct hd_ticket *other)
{
    bool has_begun = ticket->rec.status == HD_RUN_STATE_RUNNING;

    if (has_begun != (other->rec.status == HD_RUN_STATE_RUNNING))
        return has_begun;
    if (ticket->is_continued != other->is_continued)
        return ticket->is_continued;
    return ticket->rec.order < other->rec.order;
}

/* In the order of the thread; the running run stays first. */
static void insert(struct hd_turn *turn, struct hd_ticket *ticket)
{
    struct hd_ticket **link = &turn->first;

    if (turn->is_busy && *link)
        link = &(*link)->next;
    while (*link && !comes_before(ticket, *link))
        link = &(*link)->next;
    ticket->next = *link;
    *link = ticket;
}

/*
 * Returns whether an earlier run of the thread is still being admitted: two store threads report to
 * the loop in any order. A run that was stored as running has no earlier one.
 */
static bool is_held(const struct hd_ticket *ticket)
{
    return ticket->rec.status == HD_RUN_STATE_PENDING &&
           hd_coming_is_before(&ticket->turn->queue->comings, ticket->rec.principal,
                               ticket->rec.thread_id, ticket->rec.order);
}

/* The first run that is due; NULL: none, and *next is when to check again (INT64_MAX: never). */
static struct hd_ticket *find_due(const struct hd_turn *turn, int64_t *next)
{
    int64_t now = hd_clock_now_us();

    *next = INT64_MAX;
    for (struct hd_ticket *ticket = turn->first; ticket; ticket = ticket->next) {
        int64_t due = hd_run_not_before(&ticket->rec);

        if (ticket->stop != HD_STOP_NONE)
            continue;
        if (due <= now && !is_held(ticket))
            return ticket;
        if (due <= now) {
            *next = now + HELD_US;
            return NULL; /* the runs behind it are held too */
        }
        *next = due < *next ? due : *next;
    }
    return NULL;
}

static void move_to_front(struct hd_turn *turn, struct hd_ticket *ticket)
{
    struct hd_ticket **link = &turn->first;

    while (*link != ticket)
        link = &(*link)->next;
    *link = ticket->next;
    ticket->next = turn->first;
    turn->first = ticket;
}

/* ---- beginning -------------------------------------------------------- */

/*
 * The record of a run that waited says now that it is at work. Of one that was at
 * work when an earlier process ended: how far it came.
 */
struct promotion {
    struct hd_ticket *ticket;
    int err;
    bool is_gone; /* cancelled or deleted meanwhile */
    struct hd_fault fault;
};

/* Where the run works, in its arena, and whether it names a checkpoint to begin at. */
static int read_place(struct hd_ticket *ticket, struct hd_slice *ns, bool *names_checkpoint,
                      struct hd_fault *fault)
{
    struct hd_json json = {NULL};
    hd_json_val configurable;
    int err = hd_json_parse(&json, ticket->rec.kwargs, fault);

    configurable =
        hd_json_get(hd_json_get(hd_json_root(&json), HD_S("config")), HD_S("configurable"));
    *names_checkpoint = hd_json_string(hd_json_get(configurable, HD_S("checkpoint_id"))).len > 0;
    if (!err)
        err = hd_arena_copy(&ticket->arena,
                            hd_json_string(hd_json_get(configurable, HD_S("checkpoint_ns"))), ns);
    hd_json_fini(&json);
    return err;
}

/* The head that is stored, unless the run names a checkpoint. */
static int find_head(struct heddle *store, struct hd_ticket *ticket,
                     const struct hd_thread_rec *thread, struct hd_fault *fault)
{
    bool names_checkpoint;
    struct hd_slice ns;
    int err = read_place(ticket, &ns, &names_checkpoint, fault);

    if (!err && !names_checkpoint)
        err = hd_heads_get(store, thread, ns, &ticket->arena, &ticket->head, fault);
    return err;
}

/* Where it goes on, if that is not the latest checkpoint. */
static int find_end(struct hd_ticket *ticket, struct hd_fault *fault)
{
    const struct hd_run_rec *run = &ticket->rec;
    bool names_checkpoint;
    struct hd_slice ns;
    int err = read_place(ticket, &ns, &names_checkpoint, fault);

    return err ? err
               : hd_head_beside(ticket->app->store, run->principal, run->thread_id, ns, run->run_id,
                                &ticket->arena, &ticket->goes_on_at, fault);
}

/* How far an earlier process came with it: `asked` waited when it began. */
static int look_back(struct hd_ticket *ticket, struct hd_slice asked, struct hd_fault *fault)
{
    struct hd_answers_left answers;
    int err = hd_run_has_checkpoint(ticket->app->store, &ticket->rec, &ticket->is_continued, fault);

    if (!err && ticket->is_continued)
        err = find_end(ticket, fault);
    if (!err)
        err = hd_answers_check(ticket->app, &ticket->rec, ticket->head, asked, &answers, fault);
    if (err)
        return err;
    ticket->is_answered = answers.are_taken;
    ticket->command = answers.command;
    ticket->is_continued = ticket->is_continued || (answers.are_taken && !answers.command);
    return 0;
}

/* What the runs before it have made of the thread since this one was taken in. */
static int read_thread(struct heddle *store, struct hd_ticket *ticket, struct hd_fault *fault)
{
    struct hd_thread_rec thread;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_TICKET);
    err =
        hd_thread_read(store, ticket->rec.principal, ticket->rec.thread_id, &arena, &thread, fault);
    if (!err && thread.event_seq > ticket->event_seq)
        ticket->event_seq = thread.event_seq;
    if (!err && thread.heads.len > 0)
        err = find_head(store, ticket, &thread, fault);
    if (!err && ticket->rec.attempt > 1)
        err = look_back(ticket, thread.interrupts, fault);
    hd_arena_fini(&arena);
    return err;
}

static int promote(void *arg)
{
    struct promotion *promotion = arg;
    struct hd_ticket *ticket = promotion->ticket;
    struct heddle *store = ticket->app->store;

    promotion->fault = (struct hd_fault){0};
    promotion->err = read_thread(store, ticket, &promotion->fault);
    if (!promotion->err && ticket->rec.status == HD_RUN_STATE_PENDING)
        promotion->err = hd_run_mark_running(store, &ticket->rec, &promotion->fault);
    return promotion->err;
}

static void begin(struct hd_ticket *ticket)
{
    ticket->is_started = true;
    hd_run_log("run started", &ticket->rec, HD_RUN_STATE_RUNNING);
    hd_work_begin(ticket);
}

static void on_promoted(void *arg)
{
    struct promotion *promotion = arg;
    struct hd_ticket *ticket = promotion->ticket;

    if (ticket->turn->queue->is_draining && ticket->stop == HD_STOP_NONE) {
        ticket->stop = HD_STOP_DRAIN; /* the next process begins it */
        hd_finish(ticket);
    } else if (promotion->err == HD_ENOTFOUND || ticket->stop != HD_STOP_NONE) {
        ticket->outcome.status = HD_RUN_STATE_INTERRUPTED;
        hd_finish(ticket);
    } else if (promotion->err) {
        hd_log(HD_LOG_ERROR, "run", "cannot begin a run: %s", promotion->fault.text);
        hd_work_fail(ticket, "RuntimeError", "the database did not answer");
    } else {
        begin(ticket);
    }
    hd_free(promotion);
}

static void start(struct hd_turn *turn, struct hd_ticket *ticket)
{
    struct hd_queue *queue = turn->queue;
    struct promotion *promotion;

    move_to_front(turn, ticket);
    turn->is_busy = true;
    queue->pending--;
    queue->running++;
    if (ticket->rec.status == HD_RUN_STATE_RUNNING && ticket->rec.attempt == 1) {
        begin(ticket);
        return;
    }
    promotion = hd_calloc(1, sizeof(*promotion));
    if (promotion)
        promotion->ticket = ticket;
    if (!promotion || hd_defer_patiently(queue->app->defer, promote, on_promoted, promotion)) {
        hd_free(promotion);
        hd_work_fail(ticket, "MemoryError", "out of memory");
    }
}

static void enqueue_ready(struct hd_turn *turn)
{
    if (turn->is_ready)
        return;
    turn->is_ready = true;
    turn->next_ready = NULL;
    *turn->queue->ready_tail = turn;
    turn->queue->ready_tail = &turn->next_ready;
}

static struct hd_turn *dequeue_ready(struct hd_queue *queue)
{
    struct hd_turn *turn = queue->ready;

    if (!turn)
        return NULL;
    queue->ready = turn->next_ready;
    if (!queue->ready)
        queue->ready_tail = &queue->ready;
    turn->is_ready = false;
    return turn;
}

/* Lines up for a place, or has the timer look again when one of its runs is due. */
static void line_up(struct hd_turn *turn)
{
    int64_t next;

    if (turn->is_busy)
        return;
    if (find_due(turn, &next))
        enqueue_ready(turn);
    else if (next != INT64_MAX)
        set_timer(turn->queue, next - hd_clock_now_us());
}

/* Begins what may begin. */
static void go_on(struct hd_queue *queue)
{
    size_t limit = (size_t)queue->app->config->max_runs;

    while (!queue->is_draining && queue->running < limit && queue->ready) {
        struct hd_turn *turn = dequeue_ready(queue);
        struct hd_ticket *ticket;
        int64_t next;

        if (!turn->first) {
            drop_turn(turn);
            continue;
        }
        ticket = turn->is_busy ? NULL : find_due(turn, &next);
        if (ticket)
            start(turn, ticket);
        else
            line_up(turn);
    }
}

/* ---- time ------------------------------------------------------------- */

static void set_timer(struct hd_queue *queue, int64_t wait_us)
{
    uint64_t wait = wait_us <= 0 ? 1 : (uint64_t)wait_us / 1000 + 1;

    if (wait > TICK_MS)
        wait = TICK_MS;
    if (!uv_is_active((uv_handle_t *)&queue->timer) || uv_timer_get_due_in(&queue->timer) > wait)
        uv_timer_start(&queue->timer, on_tick, wait, 0);
}

void hd_queue_later(struct hd_ticket *ticket)
{
    struct hd_queue *queue = ticket->turn->queue;
    int64_t wait = RETRY_US;

    for (int i = 1; i < ticket->tries && wait < MAX_RETRY_US; i++)
        wait *= 2;
    if (queue->is_draining)
        wait = 0;
    ticket->later_at = hd_clock_monotonic_us() + wait;
    ticket->next_later = queue->later;
    queue->later = ticket;
    set_timer(queue, wait);
}

/* Stores again what could not be stored; when the process ends, the next one does. */
static void go_through_later(struct hd_queue *queue, int64_t mono, int64_t *next)
{
    struct hd_ticket *list = queue->later;

    queue->later = NULL;
    while (list) {
        struct hd_ticket *ticket = list;

        list = ticket->next_later;
        if (queue->is_draining) {
            hd_queue_ended(ticket);
        } else if (ticket->later_at <= mono) {
            hd_finish_again(ticket);
        } else {
            ticket->next_later = queue->later;
            queue->later = ticket;
            if (ticket->later_at - mono < *next)
                *next = ticket->later_at - mono;
        }
    }
}

static bool is_quiet(const struct hd_queue *queue)
{
    return queue->running == 0 && queue->storing == 0 && !queue->later;
}

/* Ends what takes too long, begins what has become due, and comes again if there is more. */
static void on_tick(uv_timer_t *timer)
{
    struct hd_queue *queue = timer->data;
    int64_t mono = hd_clock_monotonic_us();
    int64_t next = queue->running > 0 ? (int64_t)TICK_MS * 1000 : INT64_MAX;
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    go_through_later(queue, mono, &next);
    if (queue->is_draining && queue->drained && is_quiet(queue)) {
        queue->drained(queue->drained_ctx); /* the queue is gone now */
        return;
    }
    while (hd_map_next(&queue->turns, &pos, &key, &value)) {
        struct hd_turn *turn = value;
        struct hd_ticket *ticket = turn->first;

        if (!ticket)
            continue;
        if (turn->is_busy && hd_work_is_on(ticket) && mono > ticket->deadline)
            hd_work_stop(ticket, HD_STOP_TIMEOUT);
        line_up(turn);
    }
    go_on(queue);
    if (next != INT64_MAX)
        set_timer(queue, next);
}

/* ---- in and out ------------------------------------------------------- */

/* `is_continued`: an earlier process has stored checkpoints of the run. */
static int queue_add(struct hd_queue *queue, const struct hd_run_rec *run, int64_t event_seq,
                     bool is_streamed, bool is_continued)
{
    struct hd_coming *coming = hd_coming_take(&queue->comings, run->principal, run->run_id);
    struct hd_turn *turn = get_turn(queue, run->principal, run->thread_id);
    struct hd_ticket *ticket = turn ? hd_calloc(1, sizeof(*ticket)) : NULL;
    int err = HD_ENOMEM;

    if (ticket) {
        hd_arena_init(&ticket->arena, MAX_TICKET);
        hd_buf_init(&ticket->values, HD_EVENT_LIMIT);
        hd_buf_init(&ticket->interrupts, HD_EVENT_LIMIT);
        hd_buf_init(&ticket->error, HD_EVENT_LIMIT);
        hd_buf_init(&ticket->receipt, HD_EVENT_LIMIT);
        err = hd_run_rec_copy(&ticket->arena, run, &ticket->rec);
    }
    if (err) {
        hd_limits_give(queue->app->limits, run->actor, HD_LIMIT_RUNS);
        if (ticket)
            free_ticket(ticket);
        if (turn && !turn->first && !turn->is_ready)
            drop_turn(turn);
        turn_away(coming);
        return err;
    }
    ticket->app = queue->app;
    ticket->turn = turn;
    ticket->event_seq = event_seq;
    ticket->is_streamed = is_streamed;
    ticket->is_continued = is_continued;
    queue->pending++;
    hd_run_log("run admitted", &ticket->rec, ticket->rec.status);
    insert(turn, ticket);
    line_up(turn);
    go_on(queue);
    set_timer(queue, 0); /* it also watches the running runs */
    meet(ticket, coming);
    return 0;
}

int hd_queue_add(struct hd_queue *queue, const struct hd_run_rec *run, int64_t event_seq,
                 bool is_streamed)
{
    return queue_add(queue, run, event_seq, is_streamed, false);
}

void hd_queue_ended(struct hd_ticket *ticket)
{
    struct hd_turn *turn = ticket->turn;
    struct hd_queue *queue = turn->queue;
    struct hd_ticket **link = &turn->first;
    bool was_first = turn->first == ticket && turn->is_busy;

    while (*link != ticket)
        link = &(*link)->next;
    *link = ticket->next;
    if (was_first) {
        turn->is_busy = false;
        queue->running--;
    } else {
        queue->pending--;
    }
    queue->ended++;
    queue->failed += ticket->outcome.status == HD_RUN_STATE_ERROR;
    hd_limits_give(queue->app->limits, ticket->rec.actor, HD_LIMIT_RUNS);
    free_ticket(ticket);
    if (turn->first)
        line_up(turn);
    else if (!turn->is_ready)
        drop_turn(turn);
    go_on(queue);
    if (queue->is_draining)
        set_timer(queue, 0);
}

/* ---- waiting and stopping --------------------------------------------- */

bool hd_queue_wait(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                   struct hd_slice run_id, struct hd_waiter *waiter)
{
    struct hd_ticket *ticket = find_ticket(queue, principal, thread, run_id);
    struct hd_coming *coming = ticket ? NULL : hd_coming_find(&queue->comings, principal, run_id);
    struct hd_waiter **list = ticket ? &ticket->waiters : coming ? &coming->waiters : NULL;

    if (!list)
        return false;
    waiter->next = *list;
    waiter->link = list;
    if (waiter->next)
        waiter->next->link = &waiter->next;
    *list = waiter;
    return true;
}

int hd_queue_expect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id)
{
    return hd_coming_add(&queue->comings, principal, run_id);
}

void hd_queue_expect_order(struct hd_queue *queue, struct hd_slice principal,
                           struct hd_slice run_id, struct hd_slice thread, int64_t order)
{
    hd_coming_set_order(&queue->comings, principal, run_id, thread, order);
}

void hd_queue_unexpect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id)
{
    hd_coming_leave(&queue->comings, principal, run_id);
}

void hd_waiter_leave(struct hd_waiter *waiter)
{
    if (!waiter->link)
        return;
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    waiter->link = NULL;
}

static bool is_at_work(const struct hd_ticket *ticket)
{
    return ticket->turn->is_busy && ticket->turn->first == ticket;
}

static void cancel(struct hd_ticket *ticket, enum hd_cancel action)
{
    enum hd_stop stop = action == HD_CANCEL_ROLLBACK ? HD_STOP_ROLLBACK : HD_STOP_INTERRUPT;
    bool was_stopped = ticket->stop != HD_STOP_NONE;

    hd_work_stop(ticket, stop);
    /* One that has not begun ends here; the others when the engine says so. */
    if (!was_stopped && !is_at_work(ticket)) {
        ticket->outcome.status = HD_RUN_STATE_INTERRUPTED;
        hd_finish(ticket);
    }
}

/* What was asked of the run before it came. */
static void meet(struct hd_ticket *ticket, struct hd_coming *coming)
{
    if (!coming)
        return;
    ticket->waiters = coming->waiters;
    if (ticket->waiters)
        ticket->waiters->link = &ticket->waiters;
    if (coming->is_cancelled)
        cancel(ticket, coming->action);
    hd_free(coming);
}

/* There is no memory for the run: who waits for it cannot wait for a restart. */
static void turn_away(struct hd_coming *coming)
{
    const struct hd_outcome outcome = {.status = HD_RUN_STATE_ERROR,
                                       .error_type = HD_S("MemoryError"),
                                       .error_text = HD_S("out of memory")};

    while (coming && coming->waiters) {
        struct hd_waiter *waiter = coming->waiters;

        hd_waiter_leave(waiter);
        waiter->fn(waiter->ctx, &outcome);
    }
    hd_free(coming);
}

bool hd_queue_cancel(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                     struct hd_slice run_id, enum hd_cancel action)
{
    struct hd_ticket *ticket = find_ticket(queue, principal, thread, run_id);
    struct hd_coming *coming = ticket ? NULL : hd_coming_find(&queue->comings, principal, run_id);

    if (ticket)
        cancel(ticket, action);
    if (coming) {
        coming->is_cancelled = true;
        coming->action = action;
    }
    return ticket || coming;
}

size_t hd_queue_cancel_all(struct hd_queue *queue, struct hd_slice principal, bool running,
                           bool pending, enum hd_cancel action,
                           void (*fn)(void *ctx, const struct hd_run_rec *run), void *ctx)
{
    struct hd_slice key;
    size_t pos = 0, count = 0;
    void *value;

    while (hd_map_next(&queue->turns, &pos, &key, &value)) {
        struct hd_turn *turn = value;

        for (struct hd_ticket *ticket = turn->first; ticket; ticket = ticket->next) {
            if (!hd_slice_eq(ticket->rec.principal, principal) ||
                !(is_at_work(ticket) ? running : pending))
                continue;
            fn(ctx, &ticket->rec);
            cancel(ticket, action);
            count++;
        }
    }
    return count;
}

/* Whether its record says that it works, although it waits for a free place. */
static bool looks_begun(const struct hd_turn *turn)
{
    const struct hd_ticket *first = turn->first;

    return first && !turn->is_busy && first->stop == HD_STOP_NONE &&
           first->rec.status == HD_RUN_STATE_RUNNING;
}

void hd_queue_drain(struct hd_queue *queue, void (*done)(void *ctx), void *ctx)
{
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    queue->is_draining = true;
    while (hd_map_next(&queue->turns, &pos, &key, &value)) {
        struct hd_turn *turn = value;

        if (turn->is_busy && hd_work_is_on(turn->first)) {
            hd_work_stop(turn->first, HD_STOP_DRAIN);
        } else if (looks_begun(turn)) {
            turn->first->stop = HD_STOP_DRAIN;
            hd_finish(turn->first);
        }
    }
    if (is_quiet(queue)) {
        done(ctx);
        return;
    }
    queue->drained = done;
    queue->drained_ctx = ctx;
}

/* ---- after a crash ---------------------------------------------------- */

static int on_in_flight(void *arg, const struct hd_run_rec *run, int64_t event_seq)
{
    struct hd_queue *queue = arg;
    struct hd_fault fault = {0};
    bool is_continued = false;
    int err = 0;

    if (run->status == HD_RUN_STATE_RUNNING)
        err = hd_run_has_checkpoint(queue->app->store, run, &is_continued, &fault);
    if (err)
        return err;
    queue->recovered++;
    hd_limits_hold(queue->app->limits, run->actor, HD_LIMIT_RUNS);
    return queue_add(queue, run, event_seq, false, is_continued);
}

int hd_queue_recover(struct hd_queue *queue, struct hd_fault *fault)
{
    int err;

    queue->is_draining = true; /* nothing begins before all is known */
    err = hd_runs_recover(queue->app->store, HD_MAX_LOSSES, on_in_flight, queue, fault);
    queue->is_draining = false;
    if (queue->recovered > 0)
        hd_log(HD_LOG_INFO, "run", "%zu runs were in flight: they go on", queue->recovered);
    go_on(queue);
    return err;
}
