#include "events/event_log.h"

#include <heddle.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "events/event_log_internal.h"

#define MAX_FEEDS ((size_t)1 << 20)
#define TICK_MS 100 /* maximum delay before an event is stored */
#define GAP 1000000 /* unit of the gaps that hd_event_log_skip() leaves */
#define MAX_KEY 1024

/* ---- all logs --------------------------------------------------------- */

static void on_log_tick(uv_timer_t *timer);

int hd_event_logs_create(uv_loop_t *loop, struct heddle *store,
                         const struct hd_event_log_limits *limits, struct hd_event_logs **out)
{
    struct hd_event_logs *feeds = hd_calloc(1, sizeof(*feeds));

    if (!feeds)
        return HD_ENOMEM;
    if (uv_timer_init(loop, &feeds->timer) ||
        uv_timer_start(&feeds->timer, on_log_tick, TICK_MS, TICK_MS)) {
        hd_free(feeds);
        return HD_EIO;
    }
    uv_unref((uv_handle_t *)&feeds->timer);
    feeds->timer.data = feeds;
    feeds->store = store;
    feeds->limits = *limits;
    feeds->newest = &feeds->oldest;
    hd_map_init(&feeds->map, MAX_FEEDS);
    *out = feeds;
    return 0;
}

static void on_logs_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_event_logs_destroy(struct hd_event_logs *feeds)
{
    if (!feeds)
        return;
    while (feeds->oldest) {
        feeds->oldest->holds = 0;
        hd_event_log_flush(feeds->oldest);
        hd_event_log_drop(feeds->oldest);
    }
    hd_map_fini(&feeds->map);
    uv_close((uv_handle_t *)&feeds->timer, on_logs_closed);
}

size_t hd_event_logs_bytes(const struct hd_event_logs *feeds)
{
    return feeds->bytes;
}

/* The list of logs is in the order of their last use. */
static void unlink_feed(struct hd_event_log *feed)
{
    *feed->link = feed->next;
    if (feed->next)
        feed->next->link = feed->link;
    else
        feed->feeds->newest = feed->link;
}

static void link_feed(struct hd_event_log *feed)
{
    feed->next = NULL;
    feed->link = feed->feeds->newest;
    *feed->link = feed;
    feed->feeds->newest = &feed->next;
    feed->touched_at = hd_clock_monotonic_us();
}

/* ---- one log ---------------------------------------------------------- */

static bool make_log_key(struct hd_slice principal, struct hd_slice thread, char out[MAX_KEY],
                         struct hd_slice *key)
{
    if (principal.len + 1 + thread.len > MAX_KEY)
        return false;
    if (principal.len > 0)
        memcpy(out, principal.ptr, principal.len);
    out[principal.len] = ':';
    if (thread.len > 0)
        memcpy(out + principal.len + 1, thread.ptr, thread.len);
    *key = hd_slice(out, principal.len + 1 + thread.len);
    return true;
}

struct hd_event_log *hd_event_log_find(struct hd_event_logs *feeds, struct hd_slice principal,
                                       struct hd_slice thread)
{
    char buffer[MAX_KEY];
    struct hd_slice key;

    return make_log_key(principal, thread, buffer, &key) ? hd_map_get(&feeds->map, key) : NULL;
}

static struct hd_event_log *make_feed(struct hd_event_logs *feeds, struct hd_slice key,
                                      size_t principal_len)
{
    struct hd_event_log *feed = hd_calloc(1, sizeof(*feed) + key.len);

    if (!feed)
        return NULL;
    if (hd_map_put(&feeds->map, key, feed)) {
        hd_free(feed);
        return NULL;
    }
    feed->feeds = feeds;
    feed->key_len = key.len;
    feed->principal_len = principal_len;
    memcpy(feed->key, key.ptr, key.len);
    feed->tail = &feed->head;
    hd_buf_init(&feed->page.data, HD_PAGE_LIMIT);
    link_feed(feed);
    return feed;
}

struct hd_event_log *hd_event_log_get(struct hd_event_logs *feeds, struct hd_slice principal,
                                      struct hd_slice thread, uint64_t seq)
{
    char buffer[MAX_KEY];
    struct hd_slice key;
    struct hd_event_log *feed;

    if (!make_log_key(principal, thread, buffer, &key))
        return NULL;
    feed = hd_map_get(&feeds->map, key);
    if (!feed)
        feed = make_feed(feeds, key, principal.len);
    if (feed && feed->seq < seq)
        feed->seq = seq;
    return feed;
}

static void free_entries(struct hd_event_log *feed)
{
    while (feed->head) {
        struct hd_entry *entry = feed->head;

        feed->head = entry->next;
        hd_entry_unref(entry);
    }
    feed->tail = &feed->head;
    feed->feeds->bytes -= feed->bytes;
    feed->bytes = 0;
}

/* Ends all readers. `is_gone`: the thread was deleted; otherwise they are lost. */
static void lose_all(struct hd_event_log *feed, bool is_gone)
{
    struct hd_cursor *next;

    for (struct hd_cursor *cursor = feed->cursors; cursor; cursor = next) {
        next = cursor->next; /* on_more() may close the cursor */
        cursor->is_lost = !is_gone;
        cursor->is_gone = is_gone;
        cursor->at = NULL;
        if (cursor->on_more)
            cursor->on_more(cursor->ctx);
    }
}

void hd_event_log_drop(struct hd_event_log *feed)
{
    struct hd_event_logs *feeds = feed->feeds;

    if (feed->holds > 0)
        return;
    lose_all(feed, true);
    while (feed->cursors)
        hd_cursor_close(feed->cursors);
    hd_map_remove(&feeds->map, hd_slice(feed->key, feed->key_len));
    unlink_feed(feed);
    free_entries(feed);
    hd_page_forget(feed);
    hd_buf_fini(&feed->page.data);
    hd_free(feed);
}

void hd_event_log_hold(struct hd_event_log *feed)
{
    feed->holds++;
}

void hd_event_log_release(struct hd_event_log *feed)
{
    feed->holds--;
    unlink_feed(feed);
    link_feed(feed);
}

bool hd_event_log_has_readers(const struct hd_event_log *feed)
{
    return feed->cursors != NULL;
}

uint64_t hd_event_log_seq(const struct hd_event_log *feed)
{
    return feed->seq;
}

uint64_t hd_event_log_gap(uint64_t seq, int attempts)
{
    return (seq / GAP + (uint64_t)attempts) * GAP;
}

void hd_event_log_skip(struct hd_event_log *feed, int attempt)
{
    feed->seq = hd_event_log_gap(feed->seq, attempt);
}

const struct hd_entry *hd_entry_ref(const struct hd_entry *entry)
{
    if (entry)
        ((struct hd_entry *)entry)->refs++;
    return entry;
}

void hd_entry_unref(const struct hd_entry *entry)
{
    struct hd_entry *own = (struct hd_entry *)entry;

    if (own && --own->refs == 0)
        hd_free(own);
}

/* ---- limits ----------------------------------------------------------- */

static size_t entry_size(const struct hd_entry *entry)
{
    return sizeof(*entry) + entry->name_len + entry->data_len;
}

/* Drops the oldest entry; a cursor at this entry is lost. */
static void forget_oldest(struct hd_event_log *feed)
{
    struct hd_entry *entry = feed->head;
    struct hd_cursor *next;
    size_t size = entry_size(entry);

    feed->head = entry->next;
    if (!feed->head)
        feed->tail = &feed->head;
    feed->bytes -= size;
    feed->feeds->bytes -= size;
    feed->has_pages = false; /* the stored events can be loaded again */
    if (entry->is_stored)
        feed->forgotten = entry->seq;
    for (struct hd_cursor *cursor = feed->cursors; cursor; cursor = next) {
        next = cursor->next;
        if (cursor->at == entry) {
            cursor->is_lost = true;
            cursor->at = NULL;
            if (cursor->on_more)
                cursor->on_more(cursor->ctx);
        }
    }
    hd_entry_unref(entry);
}

/* The newest entry stays, and so do entries that cannot be read from the store yet. */
static bool can_forget(const struct hd_event_log *feed)
{
    const struct hd_entry *oldest = feed->head;

    return oldest && oldest->next && oldest != feed->held &&
           (feed->pins == 0 || oldest->seq < feed->pinned);
}

static void keep_limits(struct hd_event_log *feed)
{
    struct hd_event_logs *feeds = feed->feeds;
    struct hd_event_log *victim = feeds->oldest;

    while (can_forget(feed) && feed->bytes > feeds->limits.feed_bytes)
        forget_oldest(feed);
    while (victim && feeds->bytes > feeds->limits.total_bytes) {
        if (can_forget(victim))
            forget_oldest(victim);
        else
            victim = victim->next;
    }
}

/* Stores waiting pages, and drops idle logs. */
static void on_log_tick(uv_timer_t *timer)
{
    struct hd_event_logs *feeds = timer->data;
    int64_t now = hd_clock_monotonic_us();
    struct hd_event_log *next;

    for (struct hd_event_log *feed = feeds->dirty; feed; feed = next) {
        next = feed->next_dirty;
        hd_event_log_flush(feed);
    }
    for (struct hd_event_log *feed = feeds->oldest; feed; feed = next) {
        next = feed->next;
        if (now - feed->touched_at < feeds->limits.idle_us)
            break;
        if (feed->holds == 0 && !feed->cursors && feed->page.data.len == 0)
            hd_event_log_drop(feed);
    }
}

/* ---- lag -------------------------------------------------------------- */

/* The allowed lag; it shrinks when more than half of the memory of all logs is used. */
static uint64_t most_lag(const struct hd_event_log *feed)
{
    const struct hd_event_log_limits *limits = &feed->feeds->limits;
    uint64_t most = limits->feed_bytes / 2;

    if (most > limits->total_bytes / 2)
        most = limits->total_bytes / 2;
    return feed->feeds->bytes > limits->total_bytes / 2 ? most / 16 : most;
}

static uint64_t lag_of(const struct hd_event_log *feed)
{
    uint64_t lag = 0;

    for (const struct hd_cursor *cursor = feed->cursors; cursor; cursor = cursor->next) {
        if (!cursor->is_creator || !cursor->at ||
            memcmp(cursor->run_id, feed->lag_run, HD_UUID_SIZE) != 0)
            continue;
        if (feed->given - cursor->at->begin > lag)
            lag = feed->given - cursor->at->begin;
    }
    return lag;
}

/* A reader that is behind has to fall below half of the limit, so that the state does not flap. */
static void watch_lag(struct hd_event_log *feed)
{
    uint64_t most;
    bool is_behind;

    if (!feed->on_lag)
        return;
    most = most_lag(feed);
    is_behind = lag_of(feed) > (feed->is_behind ? most / 2 : most);
    if (is_behind == feed->is_behind)
        return;
    feed->is_behind = is_behind;
    feed->on_lag(feed->lag_ctx, is_behind);
}

void hd_event_log_watch(struct hd_event_log *feed, struct hd_slice run_id, hd_lag_fn fn, void *ctx)
{
    size_t len = run_id.len < HD_UUID_LEN ? run_id.len : HD_UUID_LEN;

    memset(feed->lag_run, 0, sizeof(feed->lag_run));
    if (len > 0)
        memcpy(feed->lag_run, run_id.ptr, len);
    feed->on_lag = fn;
    feed->lag_ctx = ctx;
    feed->is_behind = false;
}

void hd_event_log_unwatch(struct hd_event_log *feed)
{
    feed->on_lag = NULL;
    feed->is_behind = false;
}

void hd_event_log_on_reader(struct hd_event_log *feed, void (*fn)(void *ctx), void *ctx)
{
    feed->on_reader = fn;
    feed->reader_ctx = ctx;
}

/* ---- add -------------------------------------------------------------- */

static struct hd_entry *make_entry(const struct hd_event_log_entry *news, uint64_t seq)
{
    size_t run_len = news->run_id.len < HD_UUID_LEN ? news->run_id.len : HD_UUID_LEN;
    struct hd_entry *entry = hd_malloc(sizeof(*entry) + news->name.len + news->data.len);

    if (!entry)
        return NULL;
    *entry = (struct hd_entry){.refs = 1,
                               .seq = seq,
                               .mode = news->mode,
                               .is_last = news->is_last,
                               .is_held = news->is_held,
                               .is_stored = news->is_stored,
                               .name_len = news->name.len,
                               .data_len = news->data.len};
    if (run_len > 0)
        memcpy(entry->run_id, news->run_id.ptr, run_len);
    entry->run_id[run_len] = '\0';
    if (news->name.len > 0)
        memcpy(entry->text, news->name.ptr, news->name.len);
    if (news->data.len > 0)
        memcpy(entry->text + news->name.len, news->data.ptr, news->data.len);
    return entry;
}

/* Cursors that have read everything continue at `entry`. */
static void announce(struct hd_event_log *feed, const struct hd_entry *entry)
{
    struct hd_cursor *next;

    for (struct hd_cursor *cursor = feed->cursors; cursor; cursor = next) {
        next = cursor->next;
        if (cursor->at || cursor->is_lost || cursor->is_gone)
            continue;
        cursor->at = entry;
        if (cursor->on_more)
            cursor->on_more(cursor->ctx);
    }
}

static void append_entry(struct hd_event_log *feed, struct hd_entry *entry)
{
    size_t size = entry_size(entry);

    *feed->tail = entry;
    feed->tail = &entry->next;
    entry->begin = feed->given;
    feed->given += size;
    feed->bytes += size;
    feed->feeds->bytes += size;
    unlink_feed(feed);
    link_feed(feed);
}

int hd_event_log_add(struct hd_event_log *feed, const struct hd_event_log_entry *news)
{
    struct hd_entry *entry = make_entry(news, feed->seq + 1);

    if (!entry) {
        lose_all(feed, false);
        return HD_ENOMEM;
    }
    feed->seq++;
    append_entry(feed, entry);
    if (news->is_stored)
        hd_page_add(feed, entry);
    if (news->is_held && !feed->held)
        feed->held = entry;
    if (!feed->held)
        announce(feed, entry);
    keep_limits(feed);
    watch_lag(feed);
    return 0;
}

void hd_event_log_show(struct hd_event_log *feed, struct hd_slice run_id)
{
    struct hd_entry *first = feed->held, *entry;

    for (entry = first; entry; entry = entry->next) {
        if (hd_slice_eq(hd_slice_cstr(entry->run_id), run_id))
            entry->is_held = false;
    }
    for (entry = first; entry && !entry->is_held; entry = entry->next)
        continue;
    feed->held = entry;
    if (first && first != entry)
        announce(feed, first);
}

/* ---- cursors ---------------------------------------------------------- */

void hd_cursor_open(struct hd_cursor *cursor, struct hd_event_log *feed, uint64_t after)
{
    const struct hd_entry *entry = NULL;

    cursor->feed = feed;
    cursor->is_lost = false;
    cursor->is_gone = false;
    cursor->next = feed->cursors;
    cursor->link = &feed->cursors;
    if (cursor->next)
        cursor->next->link = &cursor->next;
    feed->cursors = cursor;
    if (after != HD_FROM_NOW) {
        for (entry = feed->head; entry && entry->seq <= after; entry = entry->next) {
            if (entry == feed->held)
                break;
        }
    }
    cursor->at = entry == feed->held ? NULL : entry;
    if (feed->on_reader)
        feed->on_reader(feed->reader_ctx);
}

void hd_cursor_close(struct hd_cursor *cursor)
{
    struct hd_event_log *feed = cursor->feed;

    if (!feed)
        return;
    *cursor->link = cursor->next;
    if (cursor->next)
        cursor->next->link = cursor->link;
    cursor->feed = NULL;
    cursor->at = NULL;
    if (feed->is_behind)
        watch_lag(feed);
}

static bool is_entry_wanted(const struct hd_cursor *cursor, const struct hd_entry *entry)
{
    if (cursor->run_id[0] && memcmp(cursor->run_id, entry->run_id, HD_UUID_SIZE) != 0)
        return false;
    return entry->mode == 0 || (entry->mode & cursor->modes);
}

const struct hd_entry *hd_cursor_peek(struct hd_cursor *cursor)
{
    while (cursor->at && !is_entry_wanted(cursor, cursor->at))
        hd_cursor_advance(cursor);
    return cursor->at;
}

void hd_cursor_advance(struct hd_cursor *cursor)
{
    if (!cursor->at)
        return;
    cursor->at = cursor->at->next;
    if (cursor->at && cursor->at == cursor->feed->held)
        cursor->at = NULL;
    if (cursor->is_creator && cursor->feed->is_behind)
        watch_lag(cursor->feed);
}
