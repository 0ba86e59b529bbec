/*
 * The server's calls to workers. A call waits in its pool for a worker, then stays in the worker's
 * table until the worker ends it, even when it is dropped (is_dropped): frames that the worker
 * still sends must be recognized.
 *
 * Callbacks that cannot run at once, because the call is held, its ops are still running, or a
 * user's call is on the stack, run in hd_rt_call_settle().
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/runtime_internal.h"

#define MAX_ERROR 4096

/* ---- queued messages -------------------------------------------------- */

static struct hd_rt_kept *keep_message(const struct hd_rt_message *message)
{
    size_t room = sizeof(struct hd_rt_kept) + message->blob_count * sizeof(struct hd_slice);
    size_t bytes = message->head.len;
    struct hd_rt_kept *kept;
    struct hd_slice *blobs;
    char *at;

    for (size_t i = 0; i < message->blob_count; i++)
        bytes += message->blobs[i].len;
    kept = hd_malloc(room + bytes);
    if (!kept)
        return NULL;
    blobs = (struct hd_slice *)(kept + 1);
    at = (char *)kept + room;
    *kept = (struct hd_rt_kept){.bytes = room + bytes,
                                .message = {.head = {at, message->head.len},
                                            .blobs = blobs,
                                            .blob_count = message->blob_count}};
    if (message->head.len > 0)
        memcpy(at, message->head.ptr, message->head.len);
    at += message->head.len;
    for (size_t i = 0; i < message->blob_count; i++) {
        blobs[i] = hd_slice(at, message->blobs[i].len);
        if (blobs[i].len > 0)
            memcpy(at, message->blobs[i].ptr, blobs[i].len);
        at += blobs[i].len;
    }
    return kept;
}

static struct hd_rt_kept *keep_error(const char *type, const char *text)
{
    struct hd_rt_kept *kept = NULL;
    struct hd_buf head;

    hd_buf_init(&head, MAX_ERROR);
    if (hd_rt_request_write_error(&head, type, HD_EUNAVAILABLE, text) == 0)
        kept = keep_message(&(struct hd_rt_message){.head = hd_buf_slice(&head)});
    hd_buf_fini(&head);
    return kept;
}

static void drop_pieces(struct hd_rt_call *call)
{
    while (call->pieces) {
        struct hd_rt_kept *piece = call->pieces;

        call->pieces = piece->next;
        if (call->worker)
            call->worker->queued -= piece->bytes;
        hd_free(piece);
    }
    call->pieces_tail = &call->pieces;
}

/* ---- tables of calls -------------------------------------------------- */

static struct hd_rt_call **find_rt_call(struct hd_rt_worker *worker, uint32_t id)
{
    struct hd_rt_call **at = &worker->calls[id % HD_RT_BUCKETS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static uint32_t new_id(struct hd_rt_worker *worker)
{
    do
        worker->last_id++;
    while (worker->last_id == 0 || *find_rt_call(worker, worker->last_id) ||
           worker->last_id == worker->ping_id || worker->last_id == worker->drain_id);
    return worker->last_id;
}

static void leave_worker(struct hd_rt_call *call)
{
    struct hd_rt_worker *worker = call->worker;
    struct hd_rt_call **at = find_rt_call(worker, call->id);

    *at = call->next;
    for (struct hd_rt_kept *piece = call->pieces; piece; piece = piece->next)
        worker->queued -= piece->bytes;
    call->worker = NULL;
    worker->call_count--;
    worker->run_count -= call->is_run;
    /* The worker it leaves may have room for another call, or nothing left to do. */
    hd_runtime_wake(call->runtime);
}

static void leave_queue(struct hd_rt_call *call)
{
    struct hd_rt_pool *pool = &call->runtime->pools[call->language];
    struct hd_rt_call **at = &pool->waiting;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!call->next)
        pool->waiting_tail = at;
    pool->waiting_count--;
    pool->waiting_others -= !call->is_run;
    call->is_waiting = false;
}

static void leave_soon(struct hd_rt_call *call)
{
    struct hd_rt_call **at = &call->runtime->soon;

    while (call->is_soon && *at != call)
        at = &(*at)->soon_next;
    if (call->is_soon) {
        *at = call->soon_next;
        if (!call->soon_next)
            call->runtime->soon_tail = at;
        call->runtime->soon_count--;
    }
    call->is_soon = false;
}

static void free_call(struct hd_rt_call *call)
{
    leave_soon(call);
    drop_pieces(call);
    *call->all_link = call->all_next;
    if (call->all_next)
        call->all_next->all_link = call->all_link;
    call->runtime->call_count[call->language]--;
    call->runtime->timed_count -= call->timeout_us > 0;
    hd_free(call->asked);
    hd_free(call->end_message);
    if (call->scope && call->scope->call == call)
        call->scope->call = NULL;
    hd_scope_unref(call->scope);
    hd_free(call);
}

/* Running ops of the call are cancelled before its owner is freed. */
static void end_scope(struct hd_rt_call *call)
{
    if (!call->scope)
        return;
    call->scope->call = NULL;
    hd_rt_request_scope_ended(call->runtime, call->scope);
}

void hd_rt_call_soon(struct hd_rt_call *call)
{
    if (!call->is_soon) {
        call->is_soon = true;
        call->soon_next = NULL;
        *call->runtime->soon_tail = call;
        call->runtime->soon_tail = &call->soon_next;
        call->runtime->soon_count++;
    }
    hd_runtime_wake(call->runtime);
}

struct hd_rt_call *hd_rt_call_find_open(struct hd_rt_worker *worker, uint32_t id)
{
    struct hd_rt_call *call = *find_rt_call(worker, id);

    return call && !call->is_dropped && !call->has_end ? call : NULL;
}

/* ---- callbacks -------------------------------------------------------- */

static void notify_call_end(struct hd_rt_call *call, const struct hd_rt_message *message)
{
    end_scope(call);
    call->is_giving = true;
    if (call->on_end)
        call->on_end(call->ctx, call->end, message);
    call->is_giving = false;
    if (call->worker) /* late: it has no more callbacks, but the worker still runs it */
        call->is_dropped = true;
    else
        free_call(call);
}

/* Calls that wait only for the next loop iteration. */
static bool can_notify(const struct hd_rt_call *call)
{
    return call->has_end && !call->pieces && (!call->scope || call->scope->at_work == 0);
}

static void give_pieces(struct hd_rt_call *call)
{
    bool is_forced = call->has_end && call->end != HD_RT_ANSWERED && call->end != HD_RT_REFUSED;

    while (call->pieces && !call->is_dropped && (!call->is_held || is_forced)) {
        struct hd_rt_kept *piece = call->pieces;

        call->pieces = piece->next;
        if (!call->pieces)
            call->pieces_tail = &call->pieces;
        if (call->worker)
            call->worker->queued -= piece->bytes;
        call->is_giving = true;
        if (call->on_piece)
            call->on_piece(call->ctx, &piece->message);
        call->is_giving = false;
        hd_free(piece);
    }
    if (call->worker)
        hd_rt_worker_regulate(call->worker);
}

static void settle_call(struct hd_rt_call *call)
{
    static const struct hd_rt_message nothing = {
        .head = HD_S_INIT("{\"type\":\"WorkerLost\",\"message\":\"out of memory\","
                          "\"code\":\"unavailable\"}")};

    if (!call->is_dropped)
        give_pieces(call);
    if (call->is_dropped && !call->worker)
        free_call(call);
    else if (!call->is_dropped && can_notify(call))
        notify_call_end(call, call->end_message ? &call->end_message->message : &nothing);
}

void hd_rt_call_settle(struct hd_runtime *runtime)
{
    /* Calls that become ready meanwhile wait for the next iteration. */
    for (size_t left = runtime->soon_count; left > 0 && runtime->soon; left--) {
        struct hd_rt_call *call = runtime->soon;

        leave_soon(call);
        settle_call(call);
    }
}

static void set_end(struct hd_rt_call *call, enum hd_rt_end end, struct hd_rt_kept *message)
{
    call->has_end = true;
    call->end = end;
    call->end_message = message;
    hd_rt_call_soon(call);
}

void hd_rt_call_lose(struct hd_rt_call *call, const char *text)
{
    if (call->is_waiting)
        leave_queue(call);
    if (!call->has_end)
        set_end(call, HD_RT_LOST, keep_error("WorkerUnavailable", text));
}

void hd_rt_call_lose_all(struct hd_rt_worker *worker)
{
    char text[400];

    (void)snprintf(text, sizeof(text), "the worker %s %s", worker->name, worker->why);
    for (size_t i = 0; i < HD_RT_BUCKETS; i++) {
        while (worker->calls[i]) {
            struct hd_rt_call *call = worker->calls[i];

            leave_worker(call);
            if (call->is_dropped)
                free_call(call);
            else if (!call->has_end)
                set_end(call, HD_RT_LOST, keep_error("WorkerLost", text));
        }
    }
}

/* ---- incoming frames -------------------------------------------------- */

/* The blobs of a frame, for the duration of a callback. */
static struct hd_slice *split_blobs(const struct hd_frame *frame, struct hd_slice *few, size_t room)
{
    struct hd_slice *blobs = few;

    if (frame->blob_count > room)
        blobs = hd_malloc(frame->blob_count * sizeof(*blobs));
    if (blobs)
        hd_frame_split(frame, blobs);
    return blobs;
}

static void take_piece(struct hd_rt_call *call, const struct hd_rt_message *message)
{
    struct hd_rt_worker *worker = call->worker;
    struct hd_rt_kept *piece;

    if (call->has_end)
        return; /* it has timed out */
    if (!call->is_held && !call->pieces) {
        call->is_giving = true;
        if (call->on_piece)
            call->on_piece(call->ctx, message);
        call->is_giving = false;
        return;
    }
    piece = keep_message(message);
    if (!piece) {
        hd_rt_worker_end(worker, "was ended: out of memory for its messages");
        return;
    }
    *call->pieces_tail = piece;
    call->pieces_tail = &piece->next;
    worker->queued += piece->bytes;
    hd_rt_worker_regulate(worker);
}

static void take_end(struct hd_rt_call *call, enum hd_rt_end end,
                     const struct hd_rt_message *message)
{
    struct hd_rt_worker *worker = call->worker;

    leave_worker(call);
    hd_rt_worker_regulate(worker);
    if (call->is_dropped) {
        free_call(call);
        return;
    }
    if (call->has_end) {
        hd_rt_call_soon(call); /* it had timed out already */
        return;
    }
    call->has_end = true;
    call->end = end;
    if (can_notify(call)) {
        leave_soon(call);
        notify_call_end(call, message);
        return;
    }
    call->end_message = keep_message(message);
    if (!call->end_message)
        call->end = HD_RT_LOST;
    hd_rt_call_soon(call);
}

/* Responses to the runtime's own calls. */
static bool take_plain(struct hd_rt_worker *worker, const struct hd_frame *frame)
{
    if (frame->type == HD_FRAME_PIECE)
        return false;
    if (frame->id == worker->ping_id) {
        worker->ping_id = 0;
        worker->is_late = false;
        return true;
    }
    if (frame->id != worker->drain_id)
        return false;
    worker->drain_id = 0;
    hd_rt_worker_end(worker, "was drained");
    return true;
}

bool hd_rt_call_frame(struct hd_rt_worker *worker, const struct hd_frame *frame)
{
    struct hd_rt_call *call = *find_rt_call(worker, frame->id);
    struct hd_slice few[16], *blobs;
    struct hd_rt_message message = {.head = frame->head, .blob_count = frame->blob_count};

    if (!call)
        return frame->id != 0 && take_plain(worker, frame);
    if (call->is_dropped && frame->type == HD_FRAME_PIECE)
        return true;
    blobs = split_blobs(frame, few, HD_COUNT(few));
    if (!blobs) {
        hd_rt_worker_end(worker, "was ended: out of memory for its messages");
        return true;
    }
    message.blobs = blobs;
    if (frame->type == HD_FRAME_PIECE)
        take_piece(call, &message);
    else
        take_end(call, frame->type == HD_FRAME_ANSWER ? HD_RT_ANSWERED : HD_RT_REFUSED, &message);
    if (blobs != few)
        hd_free(blobs);
    return true;
}

/* ---- outgoing frames -------------------------------------------------- */

static int send_call_frame(struct hd_rt_worker *worker, enum hd_frame_type type, uint32_t id,
                           const struct hd_rt_message *message)
{
    static const struct hd_rt_message nothing = {.head = HD_S_INIT("{}")};

    if (!worker->link)
        return HD_ECLOSED;
    return hd_link_send(worker->link, type, id, message ? message : &nothing, NULL, NULL);
}

/* A hint: if out of memory it is skipped and the worker continues as before. */
static void hint(struct hd_rt_call *call, enum hd_frame_type type)
{
    if (call->worker && send_call_frame(call->worker, type, call->id, NULL) == HD_ENOMEM)
        hd_rt_worker_end(call->worker, "out of memory for a message to it");
}

int hd_rt_call_plain(struct hd_rt_worker *worker, struct hd_slice head, uint32_t *id)
{
    uint32_t number = new_id(worker);
    int err = send_call_frame(worker, HD_FRAME_CALL, number, &(struct hd_rt_message){.head = head});

    if (!err)
        *id = number;
    return err;
}

/* Only calls of remote workers: the others are stopped as a whole. */
static bool is_suspended(const struct hd_rt_call *call)
{
    return call->runtime->is_suspended && call->worker && !call->worker->proc;
}

void hd_rt_call_suspend_all(struct hd_rt_worker *worker, bool is_suspended)
{
    for (size_t i = 0; i < HD_RT_BUCKETS && worker->link; i++) {
        for (struct hd_rt_call *call = worker->calls[i]; call; call = call->next) {
            if (!call->is_held && !call->has_end)
                hint(call, is_suspended ? HD_FRAME_HOLD : HD_FRAME_GO);
        }
    }
}

static int assign(struct hd_rt_call *call, struct hd_rt_worker *worker,
                  const struct hd_rt_message *message)
{
    uint32_t id = new_id(worker);
    int err = send_call_frame(worker, HD_FRAME_CALL, id, message);

    if (err)
        return err;
    call->id = id;
    call->worker = worker;
    call->next = worker->calls[id % HD_RT_BUCKETS];
    worker->calls[id % HD_RT_BUCKETS] = call;
    worker->call_count++;
    worker->run_count += call->is_run;
    if (call->is_held || is_suspended(call))
        hint(call, HD_FRAME_HOLD);
    return 0;
}

void hd_rt_call_assign(struct hd_rt_call *call, struct hd_rt_worker *worker)
{
    int err;

    leave_queue(call);
    err = assign(call, worker, &call->asked->message);
    hd_free(call->asked);
    call->asked = NULL;
    if (err)
        hd_rt_call_lose(call, err == HD_ELIMIT ? "the call is larger than a frame may be"
                                               : "the worker cannot be reached");
}

/* Queues it in its pool; if impossible, it soon ends as lost. */
static int wait_for_worker(struct hd_rt_call *call, const struct hd_rt_message *message)
{
    struct hd_rt_pool *pool = &call->runtime->pools[call->language];

    if (pool->waiting_count == HD_RT_MAX_WAITING)
        return HD_EBUSY;
    call->asked = keep_message(message);
    if (!call->asked)
        return HD_ENOMEM;
    call->is_waiting = true;
    *pool->waiting_tail = call;
    pool->waiting_tail = &call->next;
    pool->waiting_count++;
    pool->waiting_others += !call->is_run;
    hd_runtime_wake(call->runtime);
    return 0;
}

static struct hd_rt_call *create_rt_call(struct hd_runtime *runtime,
                                         const struct hd_rt_call_options *options)
{
    struct hd_rt_call *call = hd_calloc(1, sizeof(*call));

    if (!call)
        return NULL;
    call->runtime = runtime;
    call->language = options->language;
    call->is_run = options->is_run;
    call->made_us = hd_runtime_now(runtime);
    call->timeout_us = options->timeout_us;
    call->patience_us = options->patience_us;
    call->on_piece = options->on_piece;
    call->on_end = options->on_end;
    call->ctx = options->ctx;
    call->pieces_tail = &call->pieces;
    call->all_next = runtime->calls;
    call->all_link = &runtime->calls;
    if (call->all_next)
        call->all_next->all_link = &call->all_next;
    runtime->calls = call;
    runtime->call_count[call->language]++;
    runtime->timed_count += call->timeout_us > 0;
    return call;
}

int hd_runtime_call(struct hd_runtime *runtime, const struct hd_rt_call_options *options,
                    struct hd_rt_call **out)
{
    const struct hd_rt_message message = {
        .head = options->head, .blobs = options->blobs, .blob_count = options->blob_count};
    struct hd_rt_worker *worker;
    struct hd_rt_call *call;
    int err;

    if (runtime->is_draining || runtime->is_destroyed)
        return HD_ECLOSED;
    call = create_rt_call(runtime, options);
    if (!call)
        return HD_ENOMEM;
    err = hd_scope_make(options->scope, &call->scope);
    if (!err) {
        if (call->scope)
            call->scope->call = call;
        worker = hd_pool_pick(runtime, call->language, call->is_run);
        err = worker ? assign(call, worker, &message) : HD_ECLOSED;
        if (err == HD_ECLOSED) /* no worker has room, or it has just closed its connection */
            err = wait_for_worker(call, &message);
    }
    if (err) {
        free_call(call);
        return err;
    }
    *out = call;
    return 0;
}

void hd_rt_call_cancel(struct hd_rt_call *call)
{
    if (call->has_end || call->is_cancelled)
        return;
    call->is_cancelled = true;
    if (call->is_waiting)
        hd_rt_call_lose(call, "it was cancelled before a worker received it");
    else
        hint(call, HD_FRAME_CANCEL);
}

void hd_rt_call_hold(struct hd_rt_call *call, bool is_held)
{
    if (call->is_held == is_held)
        return;
    call->is_held = is_held;
    if (!call->has_end && !is_suspended(call))
        hint(call, is_held ? HD_FRAME_HOLD : HD_FRAME_GO);
    if (!is_held && (call->pieces || call->has_end))
        hd_rt_call_soon(call);
}

void hd_rt_call_drop(struct hd_rt_call *call)
{
    if (call->is_dropped)
        return;
    if (call->worker && !call->is_cancelled && !call->has_end)
        hint(call, HD_FRAME_CANCEL);
    call->is_dropped = true;
    end_scope(call);
    drop_pieces(call);
    if (call->is_waiting)
        leave_queue(call);
    if (call->worker)
        hd_rt_worker_regulate(call->worker);
    else if (!call->is_giving)
        free_call(call);
}

/* ---- timeouts --------------------------------------------------------- */

static void be_late(struct hd_rt_call *call)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "no response within %lld ms",
                   (long long)(call->timeout_us / 1000));
    if (call->is_waiting)
        leave_queue(call);
    if (!call->is_cancelled)
        hint(call, HD_FRAME_CANCEL);
    call->is_cancelled = true;
    set_end(call, HD_RT_LATE, keep_error("TimeoutError", text));
}

void hd_rt_call_tick(struct hd_runtime *runtime, int64_t now)
{
    for (struct hd_rt_call *call = runtime->calls; call; call = call->all_next)
        if (call->timeout_us > 0 && !call->has_end && !call->is_dropped &&
            now - call->made_us >= call->timeout_us)
            be_late(call);
}

void hd_rt_call_drop_all(struct hd_runtime *runtime)
{
    struct hd_rt_call *call = runtime->calls;

    while (call) {
        struct hd_rt_call *next = call->all_next;

        if (!call->is_dropped)
            hd_rt_call_drop(call);
        call = next;
    }
}
