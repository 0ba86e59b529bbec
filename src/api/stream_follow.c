#include "api/stream_follow.h"

#include <stdlib.h>
#include <string.h>

#include "api/request/forward.h"
#include "api/request/peer_watch.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "http/sse_reader.h"
#include "net/http_client.h"
#include "records/hold.h"
#include "records/record.h"

#define TICK_MS 200
#define DRAIN_US 2000000 /* most time to wait for the rest of an old source */
#define RETRY_US 200000
#define MAX_RETRY_US 5000000
#define CONNECT_MS 3000
#define MAX_FRAME ((size_t)128 << 20)
#define MAX_ANSWER ((size_t)1 << 20) /* of a refusal */
#define MAX_MESSAGE ((size_t)4 << 20)
#define MAX_PAGES ((size_t)256 << 20) /* bytes of stored events per read */
#define MAX_RECORD ((size_t)256 << 20)
#define MAX_READS 5 /* attempts, when events are evicted faster than they are read */

#define BASE HD_S("heddle-event-base")
#define POSITION HD_S("heddle-event-position")

struct hd_stream_follows {
    struct hd_app *app;
    uv_timer_t timer;
    struct hd_stream_follow *first;
    size_t count;
    uint64_t last_number;
    bool is_looking;
};

/* The events of a thread from another server. */
struct peer_feed {
    struct hd_stream_follow *follow;
    struct hd_peer_watch watch;
    char server[HD_UUID_SIZE];
    struct hd_client_request *request; /* NULL: it has ended */
    struct hd_sse_reader reader;
    uint64_t base; /* the server has all events above this number */
    uint64_t mark; /* everything up to this number has arrived */
    bool is_open;  /* the server answers with events */
    bool is_cut;   /* the connection has failed, or the server has dropped events */
    bool is_paused;
    long status; /* of an answer without events; 0: no answer */
};

/* A client's stream. */
struct hd_stream_follow {
    HD_DLINK(struct hd_stream_follow) all;
    struct hd_stream_follows *follows;
    uint64_t number; /* unique */
    struct hd_call *call;
    struct hd_event_stream_options events;
    struct hd_event_stream *stream; /* NULL: the first server has not answered */
    bool has_log;                   /* the source is the log of this server */
    bool is_reading;                /* that log gets its stored events */
    struct peer_feed *feed;         /* the source is another server; NULL: it is not */
    struct peer_feed *next;         /* the next source; NULL: none */
    char wanted[HD_UUID_SIZE];      /* the server with the events; empty: this one */
    int64_t wanted_at;              /* monotonic */
    uint64_t last;                  /* the number of the last event that was sent, or skipped */
    int failures;                   /* of attempts to reach the next source */
    int64_t retry_at;
    bool is_pinned; /* must not be freed */
    bool has_ended;
};

/* ---- streams ---------------------------------------------------------- */

static struct hd_stream_follow *find_follow(const struct hd_stream_follows *follows,
                                            uint64_t number)
{
    struct hd_stream_follow *follow = follows->first;

    while (follow && follow->number != number)
        follow = follow->all.next;
    return follow;
}

static void on_follow_timer(uv_timer_t *timer);

static struct hd_stream_follow *make_follow(struct hd_call *call,
                                            const struct hd_event_stream_options *events)
{
    struct hd_stream_follows *follows = hd_api_stream_follows(call->api);
    struct hd_stream_follow *follow = hd_calloc(1, sizeof(*follow));

    if (!follow)
        return NULL;
    follow->follows = follows;
    follow->number = ++follows->last_number;
    follow->call = call;
    follow->events = *events;
    if (!follows->first)
        uv_timer_start(&follows->timer, on_follow_timer, TICK_MS, TICK_MS);
    hd_dlist_insert(&follows->first, follow, all);
    follows->count++;
    return follow;
}

static void close_feed(struct peer_feed **at)
{
    struct peer_feed *feed = *at;

    *at = NULL;
    if (!feed)
        return;
    if (feed->request)
        hd_client_cancel(feed->request);
    hd_peer_watch_stop(&feed->watch);
    hd_sse_reader_fini(&feed->reader);
    hd_free(feed);
}

static void free_follow(struct hd_stream_follow *follow)
{
    close_feed(&follow->feed);
    close_feed(&follow->next);
    hd_dlist_remove(follow, all);
    follow->follows->count--;
    hd_free(follow);
}

static void on_follow_end(void *ctx)
{
    struct hd_stream_follow *follow = ctx;

    follow->has_ended = true;
    if (!follow->is_pinned)
        free_follow(follow);
}

/* What was read from the log of this server counts as well. */
static uint64_t last_of(const struct hd_stream_follow *follow)
{
    uint64_t read = follow->stream ? hd_event_stream_last(follow->stream) : 0;

    return read > follow->last ? read : follow->last;
}

/* ---- the log of this server ------------------------------------------- */

/* A visit to a store thread for the stored events above a number. */
struct log_reading {
    struct hd_stream_follows *follows;
    uint64_t number; /* of the stream */
    struct hd_arena arena, pages;
    struct hd_slice principal, thread_id;
    uint64_t after;
    uint64_t settled;              /* see hd_event_log_has_hole() */
    int64_t event_seq, created_at; /* of the thread's record */
    struct hd_entry *stored;
    int reads;
    int err;
    struct heddle_error fault;
};

static void free_reading(struct log_reading *reading)
{
    hd_arena_fini(&reading->pages);
    hd_arena_fini(&reading->arena);
    hd_free(reading);
}

static void read_log(void *arg)
{
    struct log_reading *reading = arg;
    struct heddle *store = reading->follows->app->store;
    struct hd_thread_rec thread;
    struct hd_arena arena;

    hd_arena_init(&arena, MAX_RECORD);
    reading->err = reading->reads > 0
                       ? hd_event_log_pages_settle(store, reading->principal, reading->thread_id,
                                                   &reading->fault)
                       : 0;
    if (!reading->err)
        reading->err = hd_thread_read(store, reading->principal, reading->thread_id, &arena,
                                      &thread, &reading->fault);
    if (!reading->err) {
        reading->event_seq = thread.event_seq;
        reading->created_at = thread.created_at;
        reading->err = hd_event_log_pages_read(store, reading->principal, reading->thread_id,
                                               hd_slice(NULL, 0), &reading->after, &reading->pages,
                                               &reading->stored, &reading->fault);
    }
    hd_arena_fini(&arena);
}

static void on_log_read(void *arg);

/* Frees the reading on failure. */
static int visit_store(struct log_reading *reading)
{
    int err = hd_defer_run(reading->follows->app->defer, read_log, on_log_read, reading);

    if (err)
        free_reading(reading);
    return err;
}

/* The log of this server becomes the source. HD_EBUSY: it has to be read again. */
static int enter_log(struct hd_stream_follow *follow, struct log_reading *reading)
{
    struct hd_event_log *log =
        hd_event_log_open(follow->follows->app->event_logs, reading->principal, reading->thread_id,
                          reading->created_at, (uint64_t)reading->event_seq);
    int err = log ? 0 : HD_ENOMEM;

    if (!err && hd_event_log_has_hole(log, reading->stored, reading->after, reading->settled)) {
        hd_event_log_flush(log);
        reading->settled = hd_event_log_forgotten(log);
        return HD_EBUSY;
    }
    if (!err)
        err = hd_event_log_prepend(log, reading->stored, reading->after);
    if (err)
        return err;
    follow->is_reading = false;
    follow->has_log = true;
    hd_event_stream_read(follow->stream, log, follow->last);
    return 0;
}

static void read_log_again(struct hd_stream_follow *follow, struct log_reading *reading)
{
    hd_arena_fini(&reading->pages);
    hd_arena_init(&reading->pages, MAX_PAGES);
    reading->stored = NULL;
    if (++reading->reads == MAX_READS) {
        free_reading(reading);
        hd_event_stream_break_off(follow->stream);
    } else if (visit_store(reading)) {
        hd_event_stream_break_off(follow->stream);
    }
}

/* A failed read is repeated at the next look. */
static void on_log_read(void *arg)
{
    struct log_reading *reading = arg;
    struct hd_stream_follow *follow = find_follow(reading->follows, reading->number);
    int err = reading->err;

    if (follow && !err)
        err = enter_log(follow, reading);
    if (follow && err == HD_EBUSY && !reading->err) {
        read_log_again(follow, reading);
        return;
    }
    free_reading(reading);
    if (follow && err) {
        follow->is_reading = false;
        if (err == HD_ENOTFOUND)
            hd_event_stream_finish(follow->stream);
    }
}

static void start_reading(struct hd_stream_follow *follow)
{
    struct log_reading *reading = hd_calloc(1, sizeof(*reading));

    if (!reading)
        return; /* until the next look */
    reading->follows = follow->follows;
    reading->number = follow->number;
    reading->after = follow->last;
    hd_arena_init(&reading->arena, MAX_MESSAGE);
    hd_arena_init(&reading->pages, MAX_PAGES);
    if (hd_arena_copy(&reading->arena, follow->call->principal, &reading->principal) ||
        hd_arena_copy(&reading->arena, follow->events.thread_id, &reading->thread_id)) {
        free_reading(reading);
        return;
    }
    follow->is_reading = visit_store(reading) == 0;
}

/* The number above which this server has made all events; UINT64_MAX: not known yet. */
static uint64_t base_of_log(const struct hd_stream_follow *follow)
{
    const struct hd_event_log *log = hd_event_log_find(
        follow->follows->app->event_logs, follow->call->principal, follow->events.thread_id);

    return log ? hd_event_log_since(log) : UINT64_MAX;
}

/* ---- changing the source ---------------------------------------------- */

static bool is_feed_of(const struct peer_feed *feed, const char *server)
{
    return feed && memcmp(feed->server, server, HD_UUID_SIZE) == 0;
}

/* The old source has no more events that the new one does not have. */
static bool is_drained(const struct hd_stream_follow *follow, uint64_t base)
{
    return !follow->feed || !follow->feed->request || follow->feed->mark >= base ||
           hd_clock_monotonic_us() - follow->wanted_at > DRAIN_US;
}

/* Everything that has arrived was sent. */
static bool can_change(const struct hd_stream_follow *follow)
{
    if (follow->is_reading)
        return false;
    if (follow->wanted[0])
        return is_feed_of(follow->next, follow->wanted) && follow->next->is_open &&
               is_drained(follow, follow->next->base);
    return !follow->has_log && is_drained(follow, base_of_log(follow));
}

/* False: the stored events are read first. */
static bool change_source(struct hd_stream_follow *follow)
{
    follow->last = last_of(follow);
    if (follow->has_log)
        hd_event_stream_leave(follow->stream);
    follow->has_log = false;
    close_feed(&follow->feed);
    if (!follow->wanted[0]) {
        start_reading(follow);
        return false;
    }
    follow->feed = follow->next;
    follow->next = NULL;
    return true;
}

/* ": 12" */
static void read_mark(struct peer_feed *feed, struct hd_slice comment)
{
    uint64_t number = 0;

    if (comment.len < 2 || comment.len > 20)
        return;
    for (size_t i = 1; i < comment.len; i++) {
        if (comment.ptr[i] < '0' || comment.ptr[i] > '9')
            return;
        number = number * 10 + (uint64_t)(comment.ptr[i] - '0');
    }
    if (number > feed->mark)
        feed->mark = number;
}

static void resume_feed(struct peer_feed *feed)
{
    if (feed->is_paused && feed->request)
        hd_client_resume(feed->request);
    feed->is_paused = false;
}

/* Sends the next event that has arrived; true: there was one. */
static bool send_event(struct hd_stream_follow *follow)
{
    struct hd_sse_part part;

    while (follow->feed && hd_sse_reader_next(&follow->feed->reader, &part)) {
        if (part.is_comment) {
            read_mark(follow->feed, part.comment);
            if (follow->feed->mark > follow->last)
                follow->last = follow->feed->mark;
            continue;
        }
        if (part.has_id && part.id <= follow->last)
            continue;
        if (part.has_id)
            follow->last = part.id;
        if (hd_event_stream_give(follow->stream, part.bytes))
            hd_event_stream_break_off(follow->stream);
        return true;
    }
    if (follow->feed)
        resume_feed(follow->feed);
    return false;
}

static void on_follow_skipped(void *ctx)
{
    struct hd_stream_follow *follow = ctx;

    follow->last = last_of(follow);
    follow->has_log = false;
    hd_event_stream_leave(follow->stream);
}

static bool on_follow_empty(void *ctx)
{
    struct hd_stream_follow *follow = ctx;

    while (!send_event(follow)) {
        if (!can_change(follow) || !change_source(follow))
            return false;
    }
    return true;
}

/* ---- other servers ---------------------------------------------------- */

static void wait_longer(struct hd_stream_follow *follow)
{
    int64_t pause = RETRY_US << (follow->failures < 5 ? follow->failures : 5);

    follow->failures++;
    follow->retry_at = hd_clock_monotonic_us() + (pause < MAX_RETRY_US ? pause : MAX_RETRY_US);
}

static uint64_t number_of(struct hd_slice lines, struct hd_slice wanted)
{
    struct hd_slice name, value;
    char text[24];

    while (hd_forward_header(&lines, &name, &value)) {
        if (!hd_slice_eq_nocase(name, wanted) || value.len >= sizeof(text))
            continue;
        memcpy(text, value.ptr, value.len);
        text[value.len] = '\0';
        return strtoull(text, NULL, 10);
    }
    return 0;
}

/* The first source has the events: the client's stream begins. False: out of memory. */
static bool follow_begin(struct hd_stream_follow *follow, struct hd_event_log *log)
{
    struct hd_event_stream_options events = follow->events;

    events.giver = (struct hd_event_stream_giver){
        .on_empty = on_follow_empty,
        .on_skipped = on_follow_skipped,
        .on_end = on_follow_end,
        .ctx = follow,
    };
    follow->stream = hd_event_stream_create(follow->call, &events);
    if (follow->stream)
        (void)hd_event_stream_begin(follow->stream, log);
    return follow->stream != NULL;
}

/* Without a response so far. */
static void refuse_stream(struct hd_stream_follow *follow, long status)
{
    struct hd_call *call = follow->call;
    struct hd_slice thread_id = follow->events.thread_id;

    hd_exchange_on_gone(call->exchange, NULL, NULL);
    free_follow(follow);
    hd_call_resume(call, status == 404 ? hd_call_refuse_thread(call, thread_id)
                                       : hd_forward_refuse(call));
}

/* The server was unreachable for a moment, and may have lost events: the client asks for them. */
static bool is_reconnected(const struct hd_stream_follow *follow, const struct peer_feed *feed)
{
    return feed == follow->next && follow->feed && follow->feed->is_cut &&
           is_feed_of(follow->feed, feed->server);
}

static bool on_feed_head(void *ctx, const struct hd_client_response *head)
{
    struct peer_feed *feed = ctx;
    struct hd_stream_follow *follow = feed->follow;
    uint64_t position = number_of(head->headers, POSITION);

    hd_peer_watch_touch(&feed->watch);
    feed->status = head->status;
    if (head->status != 200)
        return false;
    feed->base = number_of(head->headers, BASE);
    feed->is_open = true;
    follow->failures = 0;
    if (!follow->stream) {
        feed->mark = position;
        follow->last = position;
        hd_exchange_on_gone(follow->call->exchange, NULL, NULL);
        return follow_begin(follow, NULL);
    }
    feed->is_paused = true;
    hd_client_pause(feed->request);
    if (is_reconnected(follow, feed))
        hd_event_stream_break_off(follow->stream);
    else
        hd_event_stream_wake(follow->stream);
    return true;
}

static void on_feed_data(void *ctx, struct hd_slice data)
{
    struct peer_feed *feed = ctx;
    struct hd_stream_follow *follow = feed->follow;

    hd_peer_watch_touch(&feed->watch);
    if (hd_sse_reader_add(&feed->reader, data)) {
        hd_event_stream_break_off(follow->stream);
        return;
    }
    follow->is_pinned = true;
    hd_event_stream_wake(follow->stream); /* may end the stream, or change its source */
    follow->is_pinned = false;
    if (follow->has_ended) {
        free_follow(follow);
    } else if (feed == follow->next ||
               (feed == follow->feed && !hd_event_stream_is_empty(follow->stream))) {
        feed->is_paused = true;
        hd_client_pause(feed->request);
    }
}

/* The server sends no more. */
static void end_feed(struct peer_feed *feed)
{
    struct hd_stream_follow *follow = feed->follow;

    feed->request = NULL;
    hd_peer_watch_stop(&feed->watch);
    if (!follow->stream) {
        refuse_stream(follow, feed->status);
    } else if (feed == follow->next) {
        close_feed(&follow->next);
        wait_longer(follow);
    } else {
        hd_event_stream_wake(follow->stream);
    }
}

static void on_feed_end(void *ctx, const struct hd_client_response *response)
{
    struct peer_feed *feed = ctx;

    feed->is_cut = response->error != NULL;
    if (response->error)
        hd_log(HD_LOG_WARN, "cluster", "the events of server %s broke off: %s", feed->server,
               response->error);
    end_feed(feed);
}

static void on_feed_lost(void *ctx)
{
    struct peer_feed *feed = ctx;

    hd_client_cancel(feed->request);
    feed->is_cut = true;
    end_feed(feed);
}

static int send_request(struct peer_feed *feed, const struct hd_forward_message *message)
{
    struct hd_call *call = feed->follow->call;
    const struct hd_client_options options = {.method = "GET",
                                              .url = message->url,
                                              .headers = message->lines,
                                              .header_count = message->line_count,
                                              .connect_ms = CONNECT_MS,
                                              .is_direct = true,
                                              .is_verbatim = true,
                                              .is_trusted = true,
                                              .max_body = MAX_ANSWER,
                                              .on_head = on_feed_head,
                                              .on_data = on_feed_data};

    struct hd_forwards *forwards = hd_api_forwards(call->api);
    int err =
        hd_client_send(hd_forwards_client(forwards), &options, on_feed_end, feed, &feed->request);

    if (!err)
        hd_peer_watch_start(hd_forwards_watches(forwards), &feed->watch,
                            hd_slice_cstr(feed->server), on_feed_lost, feed);
    return err;
}

/* `last` NULL: from where the client has asked. */
static int open_feed(struct hd_stream_follow *follow, struct hd_slice server, const char *last,
                     struct peer_feed **out)
{
    struct peer_feed *feed = hd_calloc(1, sizeof(*feed));
    struct hd_forward_message message;
    struct hd_arena arena;
    int err;

    *out = feed;
    if (!feed)
        return HD_ENOMEM;
    feed->follow = follow;
    memcpy(feed->server, server.ptr, server.len < HD_UUID_LEN ? server.len : HD_UUID_LEN);
    hd_sse_reader_init(&feed->reader, MAX_FRAME);
    hd_arena_init(&arena, MAX_MESSAGE);
    err = hd_forward_write(follow->call, server, last, &arena, &message);
    if (!err)
        err = send_request(feed, &message);
    hd_arena_fini(&arena);
    if (err)
        close_feed(out);
    return err;
}

/* ---- looks ------------------------------------------------------------ */

struct follow_look {
    struct hd_stream_follows *follows;
    struct hd_arena arena;
    struct hd_hold_look *looks;
    uint64_t *numbers;
    size_t count;
    int err;
    struct heddle_error fault;
};

static void do_follow_look(void *arg)
{
    struct follow_look *look = arg;

    look->err = hd_holds_look(look->follows->app->store, look->looks, look->count, &look->fault);
}

/* The events of a server that is gone are those in the store. */
static void want(struct hd_stream_follow *follow, const char *last)
{
    struct hd_cluster *cluster = follow->follows->app->cluster;
    struct hd_slice id = hd_slice_cstr(last);
    struct hd_cluster_server found;
    char wanted[HD_UUID_SIZE] = "";

    if (id.len == HD_UUID_LEN && !hd_slice_eq(id, hd_cluster_self(cluster)) &&
        hd_cluster_find(cluster, id, &found))
        memcpy(wanted, last, HD_UUID_SIZE);
    if (memcmp(wanted, follow->wanted, HD_UUID_SIZE) == 0)
        return;
    memcpy(follow->wanted, wanted, HD_UUID_SIZE);
    follow->wanted_at = hd_clock_monotonic_us();
    follow->failures = 0;
    follow->retry_at = 0;
}

static bool has_source(const struct hd_stream_follow *follow)
{
    if (!follow->wanted[0])
        return follow->has_log || follow->is_reading;
    return is_feed_of(follow->feed, follow->wanted) && follow->feed->request;
}

static void seek_source(struct hd_stream_follow *follow)
{
    char last[24];

    if (!is_feed_of(follow->next, follow->wanted))
        close_feed(&follow->next);
    if (!has_source(follow) && follow->wanted[0] && !follow->next &&
        hd_clock_monotonic_us() >= follow->retry_at) {
        (void)snprintf(last, sizeof(last), "%llu", (unsigned long long)last_of(follow));
        if (open_feed(follow, hd_slice_cstr(follow->wanted), last, &follow->next))
            wait_longer(follow);
    }
    if (!has_source(follow))
        hd_event_stream_wake(follow->stream);
}

static void use_look(struct hd_stream_follow *follow, const struct hd_hold_look *look)
{
    if (!follow->stream) /* its server is watched */
        return;
    if (!look->has_thread) {
        hd_event_stream_finish(follow->stream);
        return;
    }
    want(follow, look->last);
    seek_source(follow);
}

static void free_follow_look(struct follow_look *look)
{
    hd_arena_fini(&look->arena);
    hd_free(look);
}

/* The list and the look have the same order; streams were added in front, others have ended. */
static void use_looks(const struct follow_look *look)
{
    struct hd_stream_follow *follow = look->follows->first, *next;
    size_t i = 0;

    for (; follow && i < look->count; follow = next) {
        next = follow->all.next;
        while (i < look->count && look->numbers[i] > follow->number)
            i++;
        if (i < look->count && look->numbers[i] == follow->number)
            use_look(follow, &look->looks[i]);
    }
}

static void on_follow_look(void *arg)
{
    struct follow_look *look = arg;

    look->follows->is_looking = false;
    if (look->err)
        hd_log(HD_LOG_WARN, "cluster", "the holders of streamed threads could not be read: %s",
               look->fault.code ? look->fault.text : hd_error_text(look->err));
    else
        use_looks(look);
    free_follow_look(look);
}

static int fill_look(struct follow_look *look)
{
    struct hd_stream_follows *follows = look->follows;
    int err = 0;

    look->looks = hd_arena_calloc(&look->arena, follows->count, sizeof(*look->looks));
    look->numbers = hd_arena_calloc(&look->arena, follows->count, sizeof(*look->numbers));
    if (!look->looks || !look->numbers)
        return HD_ENOMEM;
    for (struct hd_stream_follow *follow = follows->first; !err && follow;
         follow = follow->all.next) {
        struct hd_hold_look *one = &look->looks[look->count];

        look->numbers[look->count++] = follow->number;
        err = hd_arena_copy(&look->arena, follow->call->principal, &one->principal);
        if (!err)
            err = hd_arena_copy(&look->arena, follow->events.thread_id, &one->thread);
    }
    return err;
}

static void look_at_holds(struct hd_stream_follows *follows)
{
    struct follow_look *look = hd_calloc(1, sizeof(*look));
    int err;

    if (!look)
        return; /* the timer tries again */
    look->follows = follows;
    hd_arena_init(&look->arena, SIZE_MAX);
    err = fill_look(look);
    if (!err)
        err = hd_defer_run(follows->app->defer, do_follow_look, on_follow_look, look);
    if (err)
        free_follow_look(look);
    else
        follows->is_looking = true;
}

static void on_follow_timer(uv_timer_t *timer)
{
    struct hd_stream_follows *follows = timer->data;

    if (!follows->first)
        uv_timer_stop(timer);
    else if (!follows->is_looking)
        look_at_holds(follows);
}

/* ---- public functions ------------------------------------------------- */

int hd_stream_follows_create(struct hd_app *app, struct hd_stream_follows **out)
{
    struct hd_stream_follows *follows;

    *out = NULL;
    if (!hd_cluster_is_on(app->cluster))
        return 0;
    follows = hd_calloc(1, sizeof(*follows));
    if (!follows)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &follows->timer)) {
        hd_free(follows);
        return HD_EIO;
    }
    follows->app = app;
    follows->timer.data = follows;
    uv_unref((uv_handle_t *)&follows->timer);
    *out = follows;
    return 0;
}

static void on_follows_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_stream_follows_destroy(struct hd_stream_follows *follows)
{
    if (follows)
        uv_close((uv_handle_t *)&follows->timer, on_follows_closed);
}

bool hd_stream_follow_applies(const struct hd_call *call)
{
    return hd_api_stream_follows(call->api) && !call->forwarded &&
           hd_exchange_request(call->exchange)->method != HD_METHOD_HEAD;
}

/* The client has left before the first server has answered. */
static void on_early_gone(void *ctx)
{
    struct hd_stream_follow *follow = ctx;
    struct hd_call *call = follow->call;

    free_follow(follow);
    hd_call_free(call);
}

static struct hd_step follow_log(struct hd_stream_follow *follow, struct hd_event_log *log)
{
    follow->has_log = true;
    follow->last =
        follow->events.after == HD_FROM_NOW ? hd_event_log_position(log) : follow->events.after;
    if (follow_begin(follow, log))
        return HD_WAIT;
    free_follow(follow);
    return hd_step_fail(HD_ENOMEM);
}

/* The client's stream begins when the server answers: it misses no event after that. */
static struct hd_step follow_server(struct hd_stream_follow *follow, struct hd_slice server)
{
    struct hd_call *call = follow->call;
    int err;

    memcpy(follow->wanted, server.ptr, server.len < HD_UUID_LEN ? server.len : HD_UUID_LEN);
    err = open_feed(follow, server, NULL, &follow->feed);
    if (err) {
        free_follow(follow);
        return err == HD_ENOTFOUND ? hd_forward_refuse(call) : hd_step_fail(err);
    }
    hd_exchange_on_gone(call->exchange, on_early_gone, follow);
    return HD_WAIT;
}

struct hd_step hd_stream_follow_send(struct hd_call *call, struct hd_event_log *log,
                                     const struct hd_event_stream_options *events)
{
    struct hd_stream_follow *follow = make_follow(call, events);

    if (!follow)
        return hd_step_fail(HD_ENOMEM);
    return log ? follow_log(follow, log) : follow_server(follow, hd_forward_source(call));
}

void hd_stream_follow_announce(struct hd_call *call, const struct hd_event_log *log,
                               struct hd_event_stream_options *events)
{
    uint64_t position = events->after == HD_FROM_NOW ? hd_event_log_position(log) : events->after;

    events->has_marks = true;
    hd_call_header_int(call, BASE, (int64_t)hd_event_log_since(log));
    hd_call_header_int(call, POSITION, (int64_t)position);
}
