#include "api/event_stream.h"

#include <string.h>

#include "api/disconnect.h"
#include "api/heartbeat.h"
#include "api/room/room_presence.h"
#include "api/stream_access.h"
#include "base/alloc.h"
#include "http/server.h"
#include "http/sse.h"

#define FRAME_PARTS 7
#define MAX_GIVEN ((size_t)256 << 20)

struct hd_event_stream {
    struct hd_call *call;
    struct hd_cursor cursor;
    struct hd_event_stream_options events;
    char runs[HD_EVENT_STREAM_MAX_RUNS][HD_UUID_SIZE]; /* of events.runs; "": it has ended */

    const struct hd_entry *entry; /* being sent; NULL: none */
    size_t sent;                  /* bytes of its frame */
    char id[24];
    char done[96]; /* of a lifecycle event: replaces the data of the entry */
    bool is_pumping;

    struct hd_stream_access watch;
    struct hd_room_presence presence;
    struct hd_heartbeat heartbeat;
    char note[48]; /* a comment between frames: a heartbeat, or a mark */
    size_t note_len, note_sent;
    uint64_t marked;     /* the number of the last mark */
    uint64_t last;       /* see hd_event_stream_last() */
    struct hd_buf given; /* frames of another server */
    size_t given_sent;
    bool is_broken; /* the stream is to be broken off */
};

/* ---- the end ---------------------------------------------------------- */

/* The exchange has ended, or is about to. */
static void event_stream_fini(struct hd_event_stream *stream)
{
    if (stream->events.giver.on_end)
        stream->events.giver.on_end(stream->events.giver.ctx);
    hd_buf_fini(&stream->given);
    hd_heartbeat_stop(&stream->heartbeat);
    hd_stream_access_stop(&stream->watch);
    hd_room_presence_leave(&stream->presence);
    hd_cursor_close(&stream->cursor);
    hd_entry_unref(stream->entry);
    hd_call_free(stream->call);
    hd_free(stream);
}

static void event_stream_end(struct hd_event_stream *stream)
{
    struct hd_exchange *ex = stream->call->exchange;

    event_stream_fini(stream);
    hd_http_stream_end(ex);
}

/* Aborts the stream of a slow reader, so that the reader does not take it for complete. */
static void break_off(struct hd_event_stream *stream)
{
    struct hd_exchange *ex = stream->call->exchange;

    event_stream_fini(stream);
    hd_http_stream_abort(ex);
}

/* The reader has lost its access. The run belongs to the thread and continues. */
static void on_watch(void *ctx, enum hd_stream_access_end why)
{
    (void)why;
    break_off(ctx);
}

static void on_event_stream_gone(void *ctx)
{
    struct hd_event_stream *stream = ctx;

    /* Stopping the run emits events, which must not reach this stream any more. */
    hd_cursor_close(&stream->cursor);
    if (stream->events.cancels_on_disconnect)
        hd_disconnect_cancel(stream->call, stream->events.thread_id, stream->events.run_id);
    event_stream_fini(stream);
}

/* ---- frames ----------------------------------------------------------- */

static struct hd_slice frame_name(const struct hd_event_stream *stream)
{
    return stream->done[0] ? HD_S("metadata") : hd_entry_name(stream->entry);
}

static struct hd_slice frame_data(const struct hd_event_stream *stream)
{
    return stream->done[0] ? hd_slice_cstr(stream->done) : hd_entry_data(stream->entry);
}

/* The rest of the frame; returns the number of parts. */
static size_t frame_parts(const struct hd_event_stream *stream, struct hd_slice parts[FRAME_PARTS])
{
    bool has_id = !stream->entry->is_transient;
    const struct hd_slice all[FRAME_PARTS] = {
        HD_S("event: "),
        frame_name(stream),
        HD_S("\ndata: "),
        frame_data(stream),
        hd_slice_cstr(has_id ? "\nid: " : ""),
        hd_slice_cstr(has_id ? stream->id : ""),
        HD_S("\n\n"),
    };
    size_t skip = stream->sent, count = 0;

    for (size_t i = 0; i < FRAME_PARTS; i++) {
        if (skip >= all[i].len) {
            skip -= all[i].len;
            continue;
        }
        parts[count++] = hd_slice(all[i].ptr + skip, all[i].len - skip);
        skip = 0;
    }
    return count;
}

/* True when the whole frame was written. */
static bool send_frame(struct hd_event_stream *stream)
{
    struct hd_slice parts[FRAME_PARTS];
    size_t count = frame_parts(stream, parts), left = 0;
    size_t taken = hd_http_stream_write(stream->call->exchange, parts, count);

    for (size_t i = 0; i < count; i++)
        left += parts[i].len;
    stream->sent += taken;
    hd_heartbeat_touch(&stream->heartbeat);
    return taken == left;
}

/* The run's place in events.runs; run_count: it is none of them, or has ended. */
static size_t find_stream_run(const struct hd_event_stream *stream, const char *run_id)
{
    size_t i = 0;

    while (i < stream->events.run_count && strcmp(stream->runs[i], run_id) != 0)
        i++;
    return i;
}

/* True for an event of another run than those of the stream. */
static bool is_of_other_run(const struct hd_event_stream *stream, const struct hd_entry *entry)
{
    return stream->events.run_count > 0 && entry->run_id[0] &&
           find_stream_run(stream, entry->run_id) == stream->events.run_count;
}

/* The entry was sent: true when the last run of the stream has ended with it. */
static bool ends_stream(struct hd_event_stream *stream, const struct hd_entry *entry)
{
    size_t i = find_stream_run(stream, entry->run_id);

    if (!entry->is_last || stream->events.run_count == 0)
        return entry->is_last && stream->events.run_id.len > 0;
    if (entry->run_id[0] && i < stream->events.run_count)
        stream->runs[i][0] = '\0';
    for (i = 0; i < stream->events.run_count && !stream->runs[i][0];)
        i++;
    return i == stream->events.run_count;
}

/* Of the lifecycle events only the start and the end of runs are sent. */
static bool is_entry_shown(struct hd_event_stream *stream, const struct hd_entry *entry)
{
    stream->done[0] = '\0';
    if (entry->is_hidden || is_of_other_run(stream, entry))
        return false;
    if (entry->mode & stream->events.modes)
        return true;
    if (!stream->events.is_lifecycle)
        return entry->name_len > 0 && !stream->events.is_selected;
    if (entry->is_last)
        snprintf(stream->done, sizeof(stream->done), "{\"status\":\"run_done\",\"run_id\":\"%s\"}",
                 entry->run_id);
    return entry->is_last || hd_slice_eq(hd_entry_name(entry), HD_S("metadata"));
}

/* Takes the next entry to send as stream->entry. */
static bool take_next(struct hd_event_stream *stream)
{
    const struct hd_entry *entry = hd_cursor_peek(&stream->cursor);

    if (!entry)
        return false;
    stream->entry = hd_entry_ref(entry);
    stream->sent = 0;
    if (entry->seq > stream->last)
        stream->last = entry->seq;
    snprintf(stream->id, sizeof(stream->id), "%llu", (unsigned long long)entry->seq);
    hd_cursor_advance(&stream->cursor);
    return true;
}

/* ---- sending ---------------------------------------------------------- */

/* False: not all of it fits. */
static bool send_rest(struct hd_event_stream *stream, struct hd_slice whole, size_t *sent)
{
    struct hd_slice rest = hd_slice(whole.ptr + *sent, whole.len - *sent);

    if (rest.len > 0)
        *sent += hd_http_stream_write(stream->call->exchange, &rest, 1);
    return *sent == whole.len;
}

static bool send_note(struct hd_event_stream *stream)
{
    if (!send_rest(stream, hd_slice(stream->note, stream->note_len), &stream->note_sent))
        return false;
    stream->note_len = stream->note_sent = 0;
    return true;
}

static bool send_given(struct hd_event_stream *stream)
{
    if (stream->given.len == 0)
        return true;
    hd_heartbeat_touch(&stream->heartbeat);
    if (!send_rest(stream, hd_buf_slice(&stream->given), &stream->given_sent))
        return false;
    hd_buf_reset(&stream->given);
    stream->given_sent = 0;
    return true;
}

/* Says up to where the reader, another server, has everything. */
static bool make_mark(struct hd_event_stream *stream)
{
    uint64_t position = stream->events.has_marks && stream->cursor.log
                            ? hd_event_log_position(stream->cursor.log)
                            : 0;

    if (position <= stream->marked)
        return false;
    stream->marked = position;
    stream->note_len = (size_t)snprintf(stream->note, sizeof(stream->note), ": %llu\n",
                                        (unsigned long long)position);
    return true;
}

enum idle { IDLE_CONTINUES, IDLE_WAITS, IDLE_ENDED };

/* Nothing is being sent, and the log has no more entries. */
static enum idle be_idle(struct hd_event_stream *stream)
{
    const struct hd_event_stream_giver *giver = &stream->events.giver;

    bool is_skipped = stream->cursor.is_skipped && !giver->on_skipped;

    /* A reader that is another server comes back for the events that it has missed. */
    if (stream->cursor.is_lost || (is_skipped && !stream->events.has_marks)) {
        break_off(stream);
        return IDLE_ENDED;
    }
    if (stream->events.is_over || stream->cursor.is_gone || is_skipped) {
        event_stream_end(stream);
        return IDLE_ENDED;
    }
    if (stream->cursor.is_skipped)
        giver->on_skipped(giver->ctx);
    if (make_mark(stream) || (giver->on_empty && giver->on_empty(giver->ctx)))
        return IDLE_CONTINUES;
    return IDLE_WAITS;
}

/* Sends all entries that fit; true when the stream was ended. */
static bool pump_all(struct hd_event_stream *stream)
{
    for (;;) {
        bool is_last;

        if (stream->is_broken) {
            break_off(stream);
            return true;
        }
        if (!send_note(stream) || !send_given(stream))
            return false;
        if (!stream->entry && !take_next(stream)) {
            enum idle idle = be_idle(stream);

            if (idle == IDLE_CONTINUES)
                continue;
            return idle == IDLE_ENDED;
        }
        if (stream->sent > 0 || is_entry_shown(stream, stream->entry)) {
            if (!send_frame(stream))
                return false;
        }
        is_last = ends_stream(stream, stream->entry);
        hd_entry_unref(stream->entry);
        stream->entry = NULL;
        if (is_last) {
            event_stream_end(stream);
            return true;
        }
    }
}

/* A notification of readers may be sent during a pump of one of them. */
static void event_stream_pump(void *ctx)
{
    struct hd_event_stream *stream = ctx;

    if (stream->is_pumping)
        return;
    stream->is_pumping = true;
    if (!pump_all(stream))
        stream->is_pumping = false;
}

/*
 * A heartbeat is sent between frames, and not while a frame waits for room. When the server shuts
 * down, hd_api_end_thread_streams() calls this at once, and it ends the streams of whole threads.
 */
static void on_heartbeat(void *ctx)
{
    struct hd_event_stream *stream = ctx;

    if (stream->events.run_id.len == 0 &&
        hd_http_server_is_closing(hd_api_server(stream->call->api)))
        stream->events.is_over = true;
    if (stream->entry || stream->note_len > 0 || stream->given.len > 0)
        return;
    stream->note_len = HD_SSE_HEARTBEAT.len;
    memcpy(stream->note, HD_SSE_HEARTBEAT.ptr, stream->note_len);
    event_stream_pump(stream);
}

/* ---- the beginning ---------------------------------------------------- */

static void copy_runs(struct hd_event_stream *stream, const struct hd_event_stream_options *events)
{
    stream->events.runs = NULL;
    stream->events.run_count = 0;
    for (size_t i = 0; i < events->run_count && i < HD_EVENT_STREAM_MAX_RUNS; i++) {
        if (events->runs[i].len == HD_UUID_LEN)
            memcpy(stream->runs[stream->events.run_count++], events->runs[i].ptr, HD_UUID_LEN);
    }
}

struct hd_event_stream *hd_event_stream_create(struct hd_call *call,
                                               const struct hd_event_stream_options *events)
{
    struct hd_event_stream *stream = hd_calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->call = call;
    stream->events = *events;
    hd_buf_init(&stream->given, MAX_GIVEN);
    /* The copies outlive the caller's memory: they name the run to cancel on disconnect. */
    if (hd_arena_copy(call->arena, events->thread_id, &stream->events.thread_id) ||
        hd_arena_copy(call->arena, events->run_id, &stream->events.run_id) ||
        hd_buf_append_slice(&stream->given, events->first)) {
        hd_free(stream);
        return NULL;
    }
    copy_runs(stream, events);
    stream->cursor.modes = events->modes;
    stream->cursor.is_creator = events->is_creator;
    stream->cursor.on_more = event_stream_pump;
    stream->cursor.ctx = stream;
    if (events->run_id.len == HD_UUID_LEN)
        memcpy(stream->cursor.run_id, events->run_id.ptr, HD_UUID_LEN);
    return stream;
}

/* A stream that another server gives its events is present there. */
static void enter_room(struct hd_event_stream *stream)
{
    struct hd_call *call = stream->call;
    struct hd_room_presences *presences = hd_api_room_presences(call->api);

    if (!stream->events.person)
        return;
    hd_room_presence_enter(presences, &stream->presence, call->principal, stream->events.thread_id,
                           stream->events.person);
    hd_room_presence_switch(presences, call->principal, stream->events.thread_id,
                            stream->events.has_presence);
}

struct hd_step hd_event_stream_begin(struct hd_event_stream *stream, struct hd_event_log *log)
{
    struct hd_call *call = stream->call;

    hd_call_send_headers(call);
    if (log) {
        hd_cursor_open(&stream->cursor, log, stream->events.after);
        enter_room(stream);
    }
    hd_heartbeat_start(hd_api_heartbeats(call->api), &stream->heartbeat, on_heartbeat, stream);
    hd_stream_access_start(&stream->watch, call, stream->events.thread_id,
                           stream->events.cancels_on_disconnect, on_watch, stream);
    hd_http_stream_begin_sse(call->exchange, call->status, event_stream_pump, on_event_stream_gone,
                             stream);
    return HD_WAIT;
}

struct hd_step hd_event_stream_send(struct hd_call *call, struct hd_event_log *log,
                                    const struct hd_event_stream_options *events)
{
    struct hd_event_stream *stream = hd_event_stream_create(call, events);

    if (!stream)
        return hd_step_fail(HD_ENOMEM);
    if (!log)
        stream->events.is_over = true;
    return hd_event_stream_begin(stream, log);
}

/* ---- streams with changing sources ------------------------------------ */

void hd_event_stream_read(struct hd_event_stream *stream, struct hd_event_log *log, uint64_t after)
{
    hd_cursor_close(&stream->cursor);
    hd_cursor_open(&stream->cursor, log, after);
    event_stream_pump(stream);
}

void hd_event_stream_leave(struct hd_event_stream *stream)
{
    hd_cursor_close(&stream->cursor);
    stream->cursor.is_skipped = false;
}

void hd_event_stream_wake(struct hd_event_stream *stream)
{
    event_stream_pump(stream);
}

int hd_event_stream_give(struct hd_event_stream *stream, struct hd_slice frame)
{
    int err = hd_buf_append_slice(&stream->given, frame);

    if (!err)
        event_stream_pump(stream);
    return err;
}

bool hd_event_stream_is_empty(const struct hd_event_stream *stream)
{
    return !stream->entry && !stream->cursor.at && !stream->cursor.is_lost &&
           stream->given.len == 0;
}

uint64_t hd_event_stream_last(const struct hd_event_stream *stream)
{
    return stream->last;
}

void hd_event_stream_finish(struct hd_event_stream *stream)
{
    stream->events.is_over = true;
    event_stream_pump(stream);
}

void hd_event_stream_break_off(struct hd_event_stream *stream)
{
    stream->is_broken = true;
    event_stream_pump(stream);
}
