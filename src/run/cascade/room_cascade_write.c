#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "events/event_batch.h"
#include "records/stream_modes.h"
#include "records/thread_heads.h"
#include "room/room_view.h"
#include "run/cascade/room_cascade_internal.h"

#define MAX_EVENT ((size_t)64 << 20)
#define MAX_EVENTS_BYTES ((size_t)32 << 20) /* of all messages: a page has 64 MiB */

void *hd_room_cascade_grow(struct hd_arena *arena, void *items, size_t size, size_t count,
                           size_t *cap)
{
    size_t more = *cap > 0 ? *cap * 2 : 8;
    void *grown;

    if (count < *cap)
        return items;
    grown = hd_arena_calloc(arena, more, size);
    if (!grown)
        return NULL;
    if (count > 0)
        memcpy(grown, items, count * size);
    *cap = more;
    return grown;
}

/* ---- notes ------------------------------------------------------------ */

int hd_room_cascade_note(struct hd_room_cascade_try *t, const struct hd_room_message_rec *message,
                         const struct hd_room_content_rec *content,
                         struct hd_room_cascade_message **out)
{
    struct hd_arena *arena = t->op->arena;
    struct hd_room_cascade_message *note;

    t->messages = hd_room_cascade_grow(arena, t->messages, sizeof(*t->messages), t->message_count,
                                       &t->message_cap);
    if (!t->messages)
        return HD_ENOMEM;
    note = &t->messages[t->message_count];
    *note = (struct hd_room_cascade_message){.is_new = false};
    note->message = hd_arena_alloc(arena, sizeof(*note->message));
    note->content = content ? hd_arena_alloc(arena, sizeof(*note->content)) : NULL;
    if (!note->message || (content && !note->content))
        return HD_ENOMEM;
    *note->message = *message;
    if (content)
        *note->content = *content;
    t->message_count++;
    *out = note;
    return 0;
}

int hd_room_cascade_note_row(struct hd_room_cascade_try *t, const struct hd_room_run_rec *row)
{
    t->rows =
        hd_room_cascade_grow(t->op->arena, t->rows, sizeof(*t->rows), t->row_count, &t->row_cap);
    if (!t->rows)
        return HD_ENOMEM;
    t->rows[t->row_count++] = row;
    return 0;
}

/* ---- events ----------------------------------------------------------- */

/* Ends the text of an event, adds the event, and frees the text. */
static int add_event(const struct hd_room_cascade_try *t, struct hd_slice run_id, const char *name,
                     struct hd_buf *text, int err)
{
    if (!err)
        err = hd_event_batch_add(t->op->events, run_id, HD_MODE_ROOM, hd_slice_cstr(name),
                                 hd_buf_slice(text));
    hd_buf_fini(text);
    return err;
}

/*
 * The last events are those of the runs and of the cascade. Readers of more changes than fit read
 * the list again.
 */
static int add_message_event(struct hd_room_cascade_try *t,
                             const struct hd_room_cascade_message *note)
{
    bool is_edited = hd_slice_eq(note->message->id, t->op->message.id);
    struct hd_buf text;
    int err;

    if (t->event_count++ >= HD_ROOM_CASCADE_EVENTS - 1 - t->op->run_count)
        return 0;
    hd_buf_init(&text, MAX_EVENT);
    err = hd_room_view_message_event(&text, note->message, note->content,
                                     is_edited ? t->op->views : NULL,
                                     is_edited ? t->op->view_count : 0);
    t->event_bytes += hd_buf_slice(&text).len;
    if (!err && t->event_bytes > MAX_EVENTS_BYTES) {
        hd_buf_fini(&text);
        return 0;
    }
    return add_event(t, note->message->run_id, "room/message", &text, err);
}

static int add_run_event(const struct hd_room_cascade_try *t, const struct hd_room_run *run)
{
    struct hd_room_view_run view =
        hd_room_view_run_of(&run->rec, hd_slice_cstr(hd_run_state_name(HD_RUN_STATE_PENDING)));
    struct hd_buf text;

    hd_buf_init(&text, MAX_EVENT);
    return add_event(t, run->rec.run_id, "room/run", &text, hd_room_view_run_event(&text, &view));
}

static int add_cascade_event(const struct hd_room_cascade_try *t)
{
    struct hd_buf text;

    hd_buf_init(&text, MAX_EVENT);
    return add_event(t, hd_slice(NULL, 0), "room/cascade", &text,
                     hd_room_view_cascade_event(&text, t->cascade));
}

/* ---- rows ------------------------------------------------------------- */

static int put_message(struct hd_room_cascade_try *t, struct hd_batch_builder *batch,
                       const struct hd_room_cascade_message *note)
{
    const struct hd_room_message_rec *message = note->message;
    const struct hd_room_id_rec id = {.principal = message->principal,
                                      .thread_id = message->thread_id,
                                      .message_id = message->id,
                                      .seq = message->seq};
    int err = note->has_new_content ? hd_room_content_add(batch, note->content) : 0;

    if (!err)
        err = note->is_new ? hd_room_message_add(batch, message)
                           : hd_room_message_put(batch, message);
    if (!err && note->is_new)
        err = hd_room_id_put(batch, &id);
    return err ? err : add_message_event(t, note);
}

static int put_messages(struct hd_room_cascade_try *t, struct hd_batch_builder *batch)
{
    int err = 0;

    for (size_t i = 0; !err && i < t->message_count; i++)
        err = put_message(t, batch, &t->messages[i]);
    for (size_t i = 0; !err && i < t->row_count; i++)
        err = hd_room_run_put(batch, t->rows[i]);
    return err;
}

/* The ids of the runs are known now. */
static int put_runs(const struct hd_room_cascade_try *t, struct hd_batch_builder *batch)
{
    struct hd_room_cascade *op = t->op;
    int err = 0;

    for (size_t i = 0; !err && i < op->run_count; i++) {
        err = hd_room_request_put(batch, op->runs[i], op->arena);
        if (err)
            return err;
        t->started[i]->state = HD_CASCADE_STEP_RUNNING;
        t->started[i]->new_run_id = op->runs[i]->rec.run_id;
        t->started[i]->resume = hd_slice(NULL, 0); /* the run has it */
        err = add_run_event(t, op->runs[i]);
    }
    return err;
}

static int put_cascade(struct hd_room_cascade_try *t, struct hd_batch_builder *batch)
{
    int err;

    if (!t->cascade)
        return 0;
    t->cascade->updated_at = hd_clock_now_us();
    err = hd_cascade_steps_write(&t->op->steps, t->op->arena, &t->cascade->plan);
    if (!err)
        err = hd_cascade_put(batch, t->cascade);
    return err ? err : add_cascade_event(t);
}

/* ---- heads ------------------------------------------------------------ */

static void move_shown(struct hd_head *head, const struct hd_room_cascade_head *to)
{
    if (hd_thread_head_is_set(head) && hd_slice_eq(head->ns, to->ns))
        head->checkpoint_id = to->id;
}

static int put_heads(const struct hd_room_cascade_try *t, struct hd_batch_builder *batch,
                     struct hd_thread_rec *thread)
{
    bool is_busy = thread->status == HD_THREAD_BUSY;
    int err = 0;

    if (!t->moves_lines)
        return 0;
    for (size_t i = 0; !err && i < t->head_count; i++) {
        err = hd_thread_heads_set(t->op->arena, &thread->heads, t->heads[i].ns, t->heads[i].id);
        move_shown(&thread->head, &t->heads[i]);
        if (thread->has_before)
            move_shown(&thread->head_before, &t->heads[i]);
    }
    thread->state_updated_at = thread->updated_at;
    if (!err)
        err = hd_lines_settle(&t->past.lines, thread, is_busy, t->op->arena);
    return err ? err : hd_lines_put(batch, &t->past.lines);
}

int hd_room_cascade_extend(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                           struct heddle_error *fault)
{
    struct hd_room_cascade_try *t = ctx;
    int err;

    (void)fault;
    hd_event_batch_reset(t->op->events);
    t->event_count = t->event_bytes = 0;
    err = put_messages(t, batch);
    if (!err)
        err = hd_room_cascade_put_inbox(t, batch);
    if (!err)
        err = put_runs(t, batch);
    if (!err)
        err = put_cascade(t, batch);
    if (!err)
        err = put_heads(t, batch, thread);
    t->past.room.updated_at = thread->updated_at;
    if (!err)
        err = hd_room_put(batch, &t->past.room);
    return err ? err : hd_event_batch_put(t->op->events, batch, thread);
}
