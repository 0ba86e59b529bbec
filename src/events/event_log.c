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
#define GAP 1000000 /* unit of hd_event_log_gap() */
#define MAX_KEY 1024

/* ---- all logs --------------------------------------------------------- */

static void on_log_tick(uv_timer_t *timer);

int hd_event_logs_create(uv_loop_t *loop, struct heddle *store,
                         const struct hd_event_log_limits *limits, struct hd_event_logs **out)
{
    struct hd_event_logs *logs = hd_calloc(1, sizeof(*logs));

    if (!logs)
        return HD_ENOMEM;
    if (uv_timer_init(loop, &logs->timer) ||
        uv_timer_start(&logs->timer, on_log_tick, TICK_MS, TICK_MS)) {
        hd_free(logs);
        return HD_EIO;
    }
    uv_unref((uv_handle_t *)&logs->timer);
    logs->timer.data = logs;
    logs->store = store;
    logs->limits = *limits;
    logs->newest = &logs->oldest;
    hd_map_init(&logs->map, MAX_FEEDS);
    *out = logs;
    return 0;
}

static void on_logs_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_event_logs_destroy(struct hd_event_logs *logs)
{
    if (!logs)
        return;
    while (logs->oldest) {
        logs->oldest->holds = 0;
        hd_event_log_flush(logs->oldest);
        hd_event_log_drop(logs->oldest);
    }
    hd_map_fini(&logs->map);
    uv_close((uv_handle_t *)&logs->timer, on_logs_closed);
}

void hd_event_logs_share(struct hd_event_logs *logs)
{
    logs->is_shared = true;
}

size_t hd_event_logs_bytes(const struct hd_event_logs *logs)
{
    return logs->bytes;
}

/* The list of logs is in the order of their last use. */
static void unlink_log(struct hd_event_log *log)
{
    *log->link = log->next;
    if (log->next)
        log->next->link = log->link;
    else
        log->logs->newest = log->link;
}

static void link_log(struct hd_event_log *log)
{
    log->next = NULL;
    log->link = log->logs->newest;
    *log->link = log;
    log->logs->newest = &log->next;
    log->touched_at = hd_clock_monotonic_us();
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

struct hd_event_log *hd_event_log_find(struct hd_event_logs *logs, struct hd_slice principal,
                                       struct hd_slice thread)
{
    char buffer[MAX_KEY];
    struct hd_slice key;

    return make_log_key(principal, thread, buffer, &key) ? hd_map_get(&logs->map, key) : NULL;
}

static struct hd_event_log *make_log(struct hd_event_logs *logs, struct hd_slice key,
                                     size_t principal_len)
{
    struct hd_event_log *log = hd_calloc(1, sizeof(*log) + key.len);

    if (!log)
        return NULL;
    if (hd_map_put(&logs->map, key, log)) {
        hd_free(log);
        return NULL;
    }
    log->logs = logs;
    log->key_len = key.len;
    log->principal_len = principal_len;
    memcpy(log->key, key.ptr, key.len);
    log->tail = &log->head;
    hd_buf_init(&log->page.data, HD_PAGE_LIMIT);
    link_log(log);
    return log;
}

/* The record has the number of a batch that was applied, and whose events are about to be shown. */
static bool is_of_batch(const struct hd_event_log *log, uint64_t seq)
{
    const struct hd_event_batch *events = log->batches;

    while (events && (seq < events->first || seq > events->last + events->held))
        events = events->next;
    return events != NULL;
}

struct hd_event_log *hd_event_log_get(struct hd_event_logs *logs, struct hd_slice principal,
                                      struct hd_slice thread, uint64_t seq)
{
    char buffer[MAX_KEY];
    struct hd_slice key;
    struct hd_event_log *log;

    if (!make_log_key(principal, thread, buffer, &key))
        return NULL;
    log = hd_map_get(&logs->map, key);
    if (!log) {
        log = make_log(logs, key, principal.len);
        if (log)
            log->since = seq;
    } else if (is_of_batch(log, seq)) {
        return log;
    } else if (logs->is_shared && log->holds == 0 && seq > log->covered) {
        hd_event_log_skip(log, seq);
    }
    if (log && log->seq < seq)
        log->seq = seq;
    if (log)
        hd_event_log_covered(log, seq);
    return log;
}

static void free_list(struct hd_entry *first)
{
    while (first) {
        struct hd_entry *next = first->next;

        hd_entry_unref(first);
        first = next;
    }
}

static void free_entries(struct hd_event_log *log)
{
    free_list(log->head);
    free_list(log->held);
    log->head = log->held = NULL;
    log->tail = &log->head;
    log->logs->bytes -= log->bytes;
    log->bytes = 0;
}

/* Ends all readers. `is_gone`: the thread was deleted; otherwise they are lost. */
static void lose_all(struct hd_event_log *log, bool is_gone)
{
    struct hd_cursor *next;

    for (struct hd_cursor *cursor = log->cursors; cursor; cursor = next) {
        next = cursor->next; /* on_more() may close the cursor */
        cursor->is_lost = !is_gone;
        cursor->is_gone = is_gone;
        cursor->at = NULL;
        if (cursor->on_more)
            cursor->on_more(cursor->ctx);
    }
}

void hd_event_log_lose(struct hd_event_log *log)
{
    lose_all(log, false);
}

void hd_event_log_drop(struct hd_event_log *log)
{
    struct hd_event_logs *logs = log->logs;

    if (log->holds > 0)
        return;
    lose_all(log, true);
    for (struct hd_event_batch *events = log->batches; events; events = events->next)
        events->log = NULL;
    while (log->cursors)
        hd_cursor_close(log->cursors);
    while (log->watches)
        hd_event_log_unwatch(log->watches);
    hd_map_remove(&logs->map, hd_slice(log->key, log->key_len));
    unlink_log(log);
    free_entries(log);
    hd_event_log_page_forget(log);
    hd_buf_fini(&log->page.data);
    hd_free(log);
}

/* When the thread of the log was created; 0: not known. */
static int64_t known_creation(const struct hd_event_log *log)
{
    return log->guard.created_at ? log->guard.created_at : log->created_at;
}

void hd_event_logs_each(const struct hd_event_logs *logs,
                        void (*fn)(void *ctx, const struct hd_event_log_place *place), void *ctx)
{
    for (const struct hd_event_log *log = logs->oldest; log; log = log->next) {
        const struct hd_event_log_place place = {.principal = hd_event_log_principal(log),
                                                 .thread = hd_event_log_thread(log)};

        if (log->holds == 0 && (log->cursors || !known_creation(log)))
            fn(ctx, &place);
    }
}

static bool has_reader_behind(const struct hd_event_log *log)
{
    const struct hd_cursor *cursor = log->cursors;

    while (cursor && !cursor->at)
        cursor = cursor->next;
    return cursor != NULL;
}

void hd_event_logs_check(struct hd_event_logs *logs, const struct hd_event_log_place *place)
{
    struct hd_event_log *log = hd_event_log_find(logs, place->principal, place->thread);
    int64_t known;

    if (!log || log->holds > 0)
        return;
    known = known_creation(log);
    if (place->created_at && (!known || known == place->created_at))
        log->created_at = place->created_at;
    else if (!has_reader_behind(log))
        hd_event_log_drop(log);
}

struct hd_event_log *hd_event_log_open(struct hd_event_logs *logs, struct hd_slice principal,
                                       struct hd_slice thread, int64_t created_at, uint64_t seq)
{
    const struct hd_event_log_place place = {
        .principal = principal, .thread = thread, .created_at = created_at};
    struct hd_event_log *log;

    if (logs->is_shared && created_at)
        hd_event_logs_check(logs, &place);
    log = hd_event_log_get(logs, principal, thread, seq);
    if (log && !log->created_at)
        log->created_at = created_at;
    return log;
}

void hd_event_log_hold(struct hd_event_log *log)
{
    log->holds++;
}

void hd_event_log_release(struct hd_event_log *log)
{
    log->holds--;
    unlink_log(log);
    link_log(log);
}

/* Either id may be empty, for all runs. */
static bool is_same_run(const char *run_id, const char *other)
{
    return !run_id[0] || !other[0] || memcmp(run_id, other, HD_UUID_SIZE) == 0;
}

static void copy_run_id(struct hd_slice run_id, char out[HD_UUID_SIZE])
{
    size_t len = run_id.len < HD_UUID_LEN ? run_id.len : HD_UUID_LEN;

    memset(out, 0, HD_UUID_SIZE);
    if (len > 0)
        memcpy(out, run_id.ptr, len);
}

bool hd_event_log_has_readers(const struct hd_event_log *log, struct hd_slice run_id)
{
    const struct hd_cursor *cursor = log->cursors;
    char id[HD_UUID_SIZE];

    copy_run_id(run_id, id);
    while (cursor && !is_same_run(cursor->run_id, id))
        cursor = cursor->next;
    return cursor != NULL;
}

uint64_t hd_event_log_seq(const struct hd_event_log *log)
{
    return log->seq;
}

uint64_t hd_event_log_top(const struct hd_event_log *log)
{
    uint64_t top = log->seq;

    for (const struct hd_event_batch *events = log->batches; events; events = events->next) {
        if (events->last + events->held > top)
            top = events->last + events->held;
    }
    return top;
}

uint64_t hd_event_log_held(const struct hd_event_log *log)
{
    uint64_t count = 0;

    for (const struct hd_entry *entry = log->held; entry; entry = entry->next)
        count++;
    return count;
}

/* Each held event gets at most one new number, and a run's end alone gets none from another. */
uint64_t hd_event_log_reserve(const struct hd_event_log *log)
{
    bool has_others = log->batches != NULL;

    for (const struct hd_entry *entry = log->held; entry; entry = entry->next)
        has_others = has_others || memcmp(entry->run_id, log->held->run_id, HD_UUID_SIZE) != 0;
    return hd_event_log_top(log) + (has_others ? hd_event_log_held(log) : 0);
}

uint64_t hd_event_log_gap(uint64_t seq, int attempts)
{
    return (seq / GAP + (uint64_t)attempts) * GAP;
}

void hd_event_log_covered(struct hd_event_log *log, uint64_t seq)
{
    if (seq > log->covered)
        log->covered = seq;
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
static void forget_oldest(struct hd_event_log *log)
{
    struct hd_entry *entry = log->head;
    struct hd_cursor *next;
    size_t size = entry_size(entry);

    log->head = entry->next;
    if (!log->head)
        log->tail = &log->head;
    log->bytes -= size;
    log->logs->bytes -= size;
    log->has_pages = false; /* the stored events can be loaded again */
    if (entry->is_stored)
        log->forgotten = entry->seq;
    for (struct hd_cursor *cursor = log->cursors; cursor; cursor = next) {
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

void hd_event_log_skip(struct hd_event_log *log, uint64_t seq)
{
    struct hd_cursor *next;

    if (seq <= log->seq)
        return;
    while (log->head)
        forget_oldest(log);
    log->has_pages = false;
    log->seq = log->shown = log->since = seq;
    hd_event_log_covered(log, seq);
    for (struct hd_cursor *cursor = log->cursors; cursor; cursor = next) {
        next = cursor->next;
        cursor->is_skipped = !cursor->is_lost;
        if (cursor->is_skipped && cursor->on_more)
            cursor->on_more(cursor->ctx);
    }
}

uint64_t hd_event_log_since(const struct hd_event_log *log)
{
    return log->since;
}

/* Held events get visible with their numbers, unless greater ones are visible already. */
uint64_t hd_event_log_position(const struct hd_event_log *log)
{
    return log->held ? log->held->seq - 1 : log->seq;
}

/* The newest entry stays, and so do entries that cannot be read from the store yet. */
static bool can_forget(const struct hd_event_log *log)
{
    const struct hd_entry *oldest = log->head;

    if (!oldest || !oldest->next)
        return false;
    for (const struct hd_event_log_page *page = log->taken; page; page = page->next_taken) {
        if (oldest->seq >= page->first)
            return false;
    }
    return true;
}

static void keep_limits(struct hd_event_log *log)
{
    struct hd_event_logs *logs = log->logs;
    struct hd_event_log *victim = logs->oldest;

    while (can_forget(log) && log->bytes > logs->limits.log_bytes)
        forget_oldest(log);
    while (victim && logs->bytes > logs->limits.total_bytes) {
        if (can_forget(victim))
            forget_oldest(victim);
        else
            victim = victim->next;
    }
}

/* Stores waiting pages, and drops idle logs. */
static void on_log_tick(uv_timer_t *timer)
{
    struct hd_event_logs *logs = timer->data;
    int64_t now = hd_clock_monotonic_us();
    struct hd_event_log *next;

    for (struct hd_event_log *log = logs->dirty; log; log = next) {
        next = log->next_dirty;
        hd_event_log_flush(log);
    }
    for (struct hd_event_log *log = logs->oldest; log; log = next) {
        next = log->next;
        if (now - log->touched_at < logs->limits.idle_us)
            break;
        if (log->holds == 0 && !log->cursors && !log->batches && log->page.count == 0 &&
            log->seq <= log->covered)
            hd_event_log_drop(log);
    }
}

/* ---- lag -------------------------------------------------------------- */

/* The allowed lag; it shrinks when more than half of the memory of all logs is used. */
static uint64_t most_lag(const struct hd_event_log *log)
{
    const struct hd_event_log_limits *limits = &log->logs->limits;
    uint64_t most = limits->log_bytes / 2;

    if (most > limits->total_bytes / 2)
        most = limits->total_bytes / 2;
    return log->logs->bytes > limits->total_bytes / 2 ? most / 16 : most;
}

static uint64_t lag_of(const struct hd_event_log *log, const char *run_id)
{
    uint64_t lag = 0;

    for (const struct hd_cursor *cursor = log->cursors; cursor; cursor = cursor->next) {
        if (!cursor->is_creator || !cursor->at || memcmp(cursor->run_id, run_id, HD_UUID_SIZE) != 0)
            continue;
        if (log->given - cursor->at->begin > lag)
            lag = log->given - cursor->at->begin;
    }
    return lag;
}

/* A reader that is behind has to fall below half of the limit, so that the state does not flap. */
static void watch_run_lag(struct hd_event_log *log, struct hd_event_log_watch *watch)
{
    uint64_t most = most_lag(log);
    bool is_behind = lag_of(log, watch->run_id) > (watch->is_behind ? most / 2 : most);

    if (is_behind == watch->is_behind)
        return;
    watch->is_behind = is_behind;
    watch->on_lag(watch->ctx, is_behind);
}

/* `reader`: the run whose reader has read events or closed; NULL: events were added. */
static void watch_lag(struct hd_event_log *log, const char *reader)
{
    struct hd_event_log_watch *next;

    for (struct hd_event_log_watch *watch = log->watches; watch; watch = next) {
        next = watch->next; /* on_lag() may end its watch */
        if (!reader || (watch->is_behind && memcmp(watch->run_id, reader, HD_UUID_SIZE) == 0))
            watch_run_lag(log, watch);
    }
}

void hd_event_log_watch(struct hd_event_log *log, struct hd_slice run_id,
                        struct hd_event_log_watch *watch)
{
    copy_run_id(run_id, watch->run_id);
    watch->is_behind = false;
    watch->log = log;
    watch->next = log->watches;
    watch->link = &log->watches;
    if (watch->next)
        watch->next->link = &watch->next;
    log->watches = watch;
}

void hd_event_log_unwatch(struct hd_event_log_watch *watch)
{
    if (!watch->log)
        return;
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    watch->log = NULL;
    watch->is_behind = false;
}

/* ---- add -------------------------------------------------------------- */

static struct hd_entry *make_entry(const struct hd_event_log_entry *added, uint64_t seq)
{
    struct hd_entry *entry = hd_malloc(sizeof(*entry) + added->name.len + added->data.len);

    if (!entry)
        return NULL;
    *entry = (struct hd_entry){.refs = 1,
                               .seq = seq,
                               .mode = added->mode,
                               .is_last = added->is_last,
                               .is_stored = added->is_stored,
                               .name_len = added->name.len,
                               .data_len = added->data.len};
    copy_run_id(added->run_id, entry->run_id);
    if (added->name.len > 0)
        memcpy(entry->text, added->name.ptr, added->name.len);
    if (added->data.len > 0)
        memcpy(entry->text + added->name.len, added->data.ptr, added->data.len);
    return entry;
}

static bool is_entry_wanted(const struct hd_cursor *cursor, const struct hd_entry *entry)
{
    if (cursor->run_id[0] && memcmp(cursor->run_id, entry->run_id, HD_UUID_SIZE) != 0)
        return false;
    if (entry->is_transient && entry->begin < cursor->begin)
        return false;
    return entry->mode == 0 || (entry->mode & cursor->modes);
}

/* Cursors that have read everything continue at `entry`, if they want it. */
static void announce(struct hd_event_log *log, const struct hd_entry *entry)
{
    struct hd_cursor *next;

    for (struct hd_cursor *cursor = log->cursors; cursor; cursor = next) {
        next = cursor->next;
        if (cursor->at || cursor->is_lost || cursor->is_skipped || cursor->is_gone ||
            !is_entry_wanted(cursor, entry))
            continue;
        cursor->at = entry;
        if (cursor->on_more)
            cursor->on_more(cursor->ctx);
    }
}

static void append_entry(struct hd_event_log *log, struct hd_entry *entry)
{
    size_t size = entry_size(entry);

    *log->tail = entry;
    log->tail = &entry->next;
    if (!entry->is_transient)
        log->shown = entry->seq;
    entry->begin = log->given;
    log->given += size;
    log->bytes += size;
    log->logs->bytes += size;
    unlink_log(log);
    link_log(log);
}

static void show_entry(struct hd_event_log *log, struct hd_entry *entry)
{
    append_entry(log, entry);
    announce(log, entry);
    keep_limits(log);
    watch_lag(log, NULL);
}

static void hold_entry(struct hd_event_log *log, struct hd_entry *entry)
{
    struct hd_entry **link = &log->held;

    while (*link)
        link = &(*link)->next;
    *link = entry;
}

/* Readers have seen a higher number than that of the held entry. */
static void renumber_entry(struct hd_event_log *log, struct hd_entry *entry)
{
    entry->seq = ++log->seq;
    entry->is_repeat = log->has_repeats = true;
    if (entry->is_stored)
        hd_event_log_page_add(log, entry, false);
}

/*
 * The new numbers are stored at once: until then, a restart shows the old ones. The batch with the
 * run's end may have released the thread, so this server's token does not hold any more.
 */
static void begin_repeats(struct hd_event_log *log)
{
    hd_event_log_flush(log);
    log->guard.token = 0;
}

/* Continues above `seq`. Pages must not overlap that of the numbers in between. */
static void leave_numbers(struct hd_event_log *log, uint64_t seq)
{
    hd_event_log_flush(log);
    log->seq = seq;
}

int hd_event_log_add_stored(struct hd_event_log *log, const struct hd_event_page_item *event)
{
    const struct hd_event_log_entry added = {.run_id = event->run_id,
                                             .mode = event->mode,
                                             .name = event->name,
                                             .data = event->data,
                                             .is_stored = true};
    struct hd_entry *entry = make_entry(&added, event->seq);

    leave_numbers(log, event->seq);
    if (!entry) {
        lose_all(log, false);
        return HD_ENOMEM;
    }
    show_entry(log, entry);
    return 0;
}

int hd_event_log_send(struct hd_event_log *log, uint32_t mode, struct hd_slice name,
                      struct hd_slice data)
{
    const struct hd_event_log_entry added = {.mode = mode, .name = name, .data = data};
    uint64_t position = hd_event_log_position(log);
    struct hd_entry *entry = make_entry(&added, log->shown > position ? log->shown : position);

    if (!entry)
        return HD_ENOMEM;
    entry->is_transient = true;
    show_entry(log, entry);
    return 0;
}

int hd_event_log_add(struct hd_event_log *log, const struct hd_event_log_entry *added)
{
    struct hd_entry *entry;

    if (log->batches && log->seq + 1 >= log->batches->first)
        leave_numbers(log, hd_event_log_top(log));
    entry = make_entry(added, log->seq + 1);

    if (!entry) {
        lose_all(log, false);
        return HD_ENOMEM;
    }
    log->seq++;
    if (added->is_stored)
        hd_event_log_page_add(log, entry, added->is_held);
    if (added->is_held)
        hold_entry(log, entry);
    else
        show_entry(log, entry);
    return 0;
}

void hd_event_log_show(struct hd_event_log *log, struct hd_slice run_id)
{
    const struct hd_guard guard = log->guard;
    struct hd_entry **link = &log->held;
    bool is_renumbered = false;

    while (*link) {
        struct hd_entry *entry = *link;

        if (!hd_slice_eq(hd_slice_cstr(entry->run_id), run_id)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->next = NULL;
        if (entry->seq <= log->shown) {
            if (!is_renumbered)
                begin_repeats(log);
            is_renumbered = true;
            renumber_entry(log, entry);
        }
        show_entry(log, entry);
    }
    if (is_renumbered)
        hd_event_log_flush(log);
    log->guard = guard;
}

/* ---- cursors ---------------------------------------------------------- */

void hd_cursor_open(struct hd_cursor *cursor, struct hd_event_log *log, uint64_t after)
{
    const struct hd_entry *entry = NULL;

    cursor->log = log;
    cursor->is_lost = false;
    cursor->is_skipped = false;
    cursor->is_gone = false;
    cursor->begin = log->given;
    cursor->next = log->cursors;
    cursor->link = &log->cursors;
    if (cursor->next)
        cursor->next->link = &cursor->next;
    log->cursors = cursor;
    if (after != HD_FROM_NOW) {
        entry = log->head;
        while (entry && entry->seq <= after)
            entry = entry->next;
    }
    cursor->at = entry;
    for (struct hd_event_log_watch *watch = log->watches; watch; watch = watch->next) {
        if (watch->on_reader && is_same_run(watch->run_id, cursor->run_id))
            watch->on_reader(watch->ctx);
    }
}

void hd_cursor_close(struct hd_cursor *cursor)
{
    struct hd_event_log *log = cursor->log;

    if (!log)
        return;
    *cursor->link = cursor->next;
    if (cursor->next)
        cursor->next->link = cursor->link;
    cursor->log = NULL;
    cursor->at = NULL;
    if (cursor->is_creator)
        watch_lag(log, cursor->run_id);
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
    if (cursor->is_creator)
        watch_lag(cursor->log, cursor->run_id);
}
