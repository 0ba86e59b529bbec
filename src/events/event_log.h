/*
 * The event log of a thread: the events of its runs, numbered for the life of the thread. Several
 * runs may add events at the same time: readers see the numbers increase, and no number is used
 * twice. An event is rendered once and kept once; each reader has a cursor.
 *
 * A log keeps the newest events in memory, within limits; a reader that falls behind them is *lost*
 * and has to reconnect. Events of resumable runs are also stored, in pages, and a log can load its
 * pages after a restart.
 *
 * All functions run on the loop, except hd_event_log_pages_read(), hd_event_log_pages_settle()
 * and hd_event_log_erase().
 */
#ifndef HD_EVENTS_EVENT_LOG_H
#define HD_EVENTS_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "events/event_page.h"
#include "store/batch.h"
#include "store/guard.h"

struct heddle;
struct hd_event_logs;
struct hd_event_log;
struct hd_map;
struct hd_thread_rec;

#define HD_PAGE_BYTES ((size_t)64 << 10) /* a page is stored when it reaches this size */

struct hd_event_log_limits {
    size_t log_bytes;   /* maximum in memory for one thread */
    size_t total_bytes; /* maximum in memory for all threads */
    int64_t idle_us;    /* a log without readers is dropped so long after its last event */
};

struct hd_entry {
    struct hd_entry *next;
    unsigned refs;
    uint64_t seq;
    uint64_t begin;    /* bytes added to the log before this entry */
    uint32_t mode;     /* one of enum hd_mode; 0: sent in all modes (metadata, error, end) */
    bool is_last;      /* the last event of its run */
    bool is_stored;    /* is or will be in the store: readable after the log drops it */
    bool is_repeat;    /* stored before with a lower number: see event_page.h */
    bool is_hidden;    /* not sent any more: hd_event_log_hide() */
    bool is_transient; /* without a number of its own: hd_event_log_send() */
    char run_id[HD_UUID_SIZE];
    size_t name_len; /* 0: not sent to clients */
    size_t data_len;
    char text[]; /* the event's name, then its data */
};

static inline struct hd_slice hd_entry_name(const struct hd_entry *entry)
{
    return hd_slice(entry->text, entry->name_len);
}
static inline struct hd_slice hd_entry_data(const struct hd_entry *entry)
{
    return hd_slice(entry->text + entry->name_len, entry->data_len);
}

/* Keeps an entry that is being sent after the log drops it. */
const struct hd_entry *hd_entry_ref(const struct hd_entry *entry);
void hd_entry_unref(const struct hd_entry *entry);

/* ---- all logs of the process ------------------------------------------ */

HD_MUST_CHECK int hd_event_logs_create(uv_loop_t *loop, struct heddle *store,
                                       const struct hd_event_log_limits *limits,
                                       struct hd_event_logs **out);
/* No cursor may be open. Closing the store waits for pages that are being stored. */
void hd_event_logs_destroy(struct hd_event_logs *logs);
/* Several servers use the store. Call it before the first log is made. */
void hd_event_logs_share(struct hd_event_logs *logs);
size_t hd_event_logs_bytes(const struct hd_event_logs *logs);

/* Returns NULL when the log is not in memory. */
struct hd_event_log *hd_event_log_find(struct hd_event_logs *logs, struct hd_slice principal,
                                       struct hd_slice thread);
/*
 * Returns the log of a thread and creates it if needed; NULL: no memory. Its next number is greater
 * than `seq`, the last one that is stored. In shared logs (hd_event_logs_share()), unless a run
 * holds the log, it skips the numbers up to `seq` that it does not have.
 */
HD_MUST_CHECK struct hd_event_log *hd_event_log_get(struct hd_event_logs *logs,
                                                    struct hd_slice principal,
                                                    struct hd_slice thread, uint64_t seq);
/*
 * The same for a thread that was created at `created_at`: shared logs drop the log of a thread
 * with this id that another server has deleted, unless a reader has not read everything.
 */
HD_MUST_CHECK struct hd_event_log *hd_event_log_open(struct hd_event_logs *logs,
                                                     struct hd_slice principal,
                                                     struct hd_slice thread, int64_t created_at,
                                                     uint64_t seq);
/*
 * The thread was deleted: ends its readers. Does nothing while a run holds the log: then the thread
 * was created again.
 */
void hd_event_log_drop(struct hd_event_log *log);

/* A thread with a log in memory. */
struct hd_event_log_place {
    struct hd_slice principal, thread;
    int64_t created_at; /* of the thread's record */
};
/*
 * Calls `fn` for the threads that another server may have deleted: no run holds their log, and it
 * has readers, or it is not known when the thread was created. created_at is not set. Logs without
 * readers are checked when they are opened again.
 */
void hd_event_logs_each(const struct hd_event_logs *logs,
                        void (*fn)(void *ctx, const struct hd_event_log_place *place), void *ctx);
/*
 * The thread was created at `created_at`; 0: it is not in the store. Drops its log if another
 * server has deleted the thread, when its readers have read everything.
 */
void hd_event_logs_check(struct hd_event_logs *logs, const struct hd_event_log_place *place);

/* Another server has taken over the thread: all readers are lost. */
void hd_event_log_lose(struct hd_event_log *log);

/* Keeps the log while a run of its thread is running. */
void hd_event_log_hold(struct hd_event_log *log);
void hd_event_log_release(struct hd_event_log *log);

/* Returns whether the run's events have a reader. `run_id` empty: those of any run. */
bool hd_event_log_has_readers(const struct hd_event_log *log, struct hd_slice run_id);
/* The last number that was used. */
uint64_t hd_event_log_seq(const struct hd_event_log *log);
/*
 * The number for the thread's record when the end of a run is stored. No event that is held then
 * gets a greater number when it is shown: after the thread's last run, other events may follow
 * from the record alone, in another process too.
 */
uint64_t hd_event_log_reserve(const struct hd_event_log *log);
/*
 * The thread's record has the number `seq`. A log whose last number is greater stays in memory,
 * because a new log would use the numbers in between again.
 */
void hd_event_log_covered(struct hd_event_log *log, uint64_t seq);
/*
 * Other servers have used the numbers up to `seq`: the log continues above them. It forgets the
 * events in memory. Its readers are lost, or skipped: those that come back read from the store.
 * Does nothing when `seq` is not above the last number.
 */
void hd_event_log_skip(struct hd_event_log *log, uint64_t seq);
/* Events with greater numbers were added to this log: no other server has others. */
uint64_t hd_event_log_since(const struct hd_event_log *log);
/* A reader that has read everything has all events up to this number. */
uint64_t hd_event_log_position(const struct hd_event_log *log);
/*
 * The highest number that events of `attempts` attempts can have if `seq` is stored: events are
 * visible before they are stored, and a process that ends loses their numbers.
 */
uint64_t hd_event_log_gap(uint64_t seq, int attempts);

struct hd_event_log_entry {
    struct hd_slice run_id;
    uint32_t mode;
    struct hd_slice name;
    struct hd_slice data; /* JSON */
    bool is_stored;
    bool is_last;
    bool is_held; /* numbered, and hidden until hd_event_log_show() */
};

/* HD_ENOMEM: the event is missing, and all readers are lost. */
HD_MUST_CHECK int hd_event_log_add(struct hd_event_log *log,
                                   const struct hd_event_log_entry *added);
/*
 * Sends an event without a number to the cursors that are open now; it is never stored. HD_ENOMEM:
 * nobody gets it.
 */
HD_MUST_CHECK int hd_event_log_send(struct hd_event_log *log, uint32_t mode, struct hd_slice name,
                                    struct hd_slice data);
/*
 * Makes the held events of the run visible. They get new numbers if later events of other runs are
 * visible already; if they are stored, they are stored again with the new numbers.
 */
void hd_event_log_show(struct hd_event_log *log, struct hd_slice run_id);
/*
 * Sets the guard of the thread (store/thread_fence.h): pages of a deleted thread, or of one that
 * another server has taken over, are not stored.
 */
void hd_event_log_guard(struct hd_event_log *log, struct hd_guard guard);
/* Stores the added events now instead of after a short delay. */
void hd_event_log_flush(struct hd_event_log *log);
/*
 * Erases the stored events of runs that have ended, and those of no run whose data begins with
 * `data` (empty: none). The numbers of the others stay. For store threads; flush the log before.
 * Then hide those in memory.
 */
HD_MUST_CHECK int hd_event_log_erase(struct heddle *store, const struct hd_thread_rec *thread,
                                     const struct hd_map *run_ids, struct hd_slice data,
                                     struct heddle_error *fault);
/* Later readers do not get the events of the run that are in memory. */
void hd_event_log_hide(struct hd_event_log *log, struct hd_slice run_id);
/* The same for events whose data begins with `data`. */
void hd_event_log_hide_data(struct hd_event_log *log, struct hd_slice data);
/* Returns whether a stored page was larger than twice HD_PAGE_BYTES. */
bool hd_event_log_has_large(const struct hd_event_log *log);

/*
 * Takes the page with the held events of the run, directly after they were added. It has no events
 * of other runs and is stored in the batch that ends the run: a stored `end` implies that the run
 * has ended. The log keeps the events in memory until hd_event_log_page_fini(), because they cannot
 * be read from the store yet. *out must stay in its place until then.
 */
void hd_event_log_take_page(struct hd_event_log *log, struct hd_slice run_id,
                            struct hd_event_log_page *out);
/* Appends the page's row, which borrows both names until the batch is applied. */
HD_MUST_CHECK int hd_event_log_page_put(struct hd_batch_builder *batch, struct hd_slice principal,
                                        struct hd_slice thread,
                                        const struct hd_event_log_page *page);
/* The page is stored, or never will be. `log`: the log it was taken from. */
void hd_event_log_page_fini(struct hd_event_log_page *page, struct hd_event_log *log);

/* Observes the readers of one run while it is running. The callbacks must not add events. */
struct hd_event_log_watch {
    /*
     * Called when the reader that created the run (hd_cursor.is_creator) is behind by half of the
     * limit at which a reader is lost, and again when it has caught up or closed.
     */
    void (*on_lag)(void *ctx, bool is_behind);
    void (*on_reader)(void *ctx); /* for each cursor that is opened for the run; may be NULL */
    void *ctx;

    struct hd_event_log *log; /* NULL: not watching */
    char run_id[HD_UUID_SIZE];
    bool is_behind; /* last argument of on_lag */
    struct hd_event_log_watch *next;
    struct hd_event_log_watch **link;
};

/* Set the callbacks and ctx before. The caller keeps ownership. */
void hd_event_log_watch(struct hd_event_log *log, struct hd_slice run_id,
                        struct hd_event_log_watch *watch);
/* Does nothing when it is not watching. */
void hd_event_log_unwatch(struct hd_event_log_watch *watch);

/* ---- pages ------------------------------------------------------------ */

/*
 * Reads the stored events of a thread with numbers above *after, oldest first; entries live in
 * `arena`. With a `run` (may be empty) it starts at the first event of that run and sets *after;
 * UINT64_MAX: no event of the run is stored. For store threads.
 */
HD_MUST_CHECK int hd_event_log_pages_read(struct heddle *store, struct hd_slice principal,
                                          struct hd_slice thread, struct hd_slice run,
                                          uint64_t *after, struct hd_arena *arena,
                                          struct hd_entry **out, struct heddle_error *fault);
/*
 * Inserts stored events, all above number `after`, before those in memory, unless the log already
 * has them. HD_ENOMEM: the log is unchanged.
 */
HD_MUST_CHECK int hd_event_log_prepend(struct hd_event_log *log, const struct hd_entry *stored,
                                       uint64_t after);

/*
 * A log may drop events that are still being stored: this leaves a hole between the events in
 * `stored`, read before, and those in memory. Returns whether a hole above number `after` is
 * possible. If so, flush the log, remember hd_event_log_forgotten(), call
 * hd_event_log_pages_settle(), and read again; events up to that number (`settled`) are stored by
 * then, or never will be.
 */
bool hd_event_log_has_hole(const struct hd_event_log *log, const struct hd_entry *stored,
                           uint64_t after, uint64_t settled);
/* The highest number of a dropped event that is or will be stored; 0: none. */
uint64_t hd_event_log_forgotten(const struct hd_event_log *log);
/* Waits until all pages of the thread that were flushed before are stored. For store threads. */
HD_MUST_CHECK int hd_event_log_pages_settle(struct heddle *store, struct hd_slice principal,
                                            struct hd_slice thread, struct heddle_error *fault);

/* ---- reading ---------------------------------------------------------- */

struct hd_cursor {
    struct hd_event_log *log;
    const struct hd_entry *at; /* the next entry; NULL: all were read */
    bool is_lost;              /* its next entry was dropped */
    bool is_skipped;           /* it had read everything, and others have added events */
    bool is_gone;              /* the thread was deleted: no more events */
    bool is_creator;           /* it created the run with run_id: see hd_event_log_watch() */
    char run_id[HD_UUID_SIZE]; /* empty: all runs */
    uint32_t modes;            /* filter */
    uint64_t begin;            /* it does not read events without a number from before this */
    /*
     * Called when an entry is available after none was, and when is_lost, is_skipped or is_gone is
     * set.
     */
    void (*on_more)(void *ctx);
    void *ctx;
    struct hd_cursor *next;
    struct hd_cursor **link;
};

#define HD_FROM_NOW UINT64_MAX

/*
 * Reads the entries above number `after`: 0 for all that are kept, HD_FROM_NOW for new ones.
 * Set run_id, modes, is_creator, on_more and ctx before.
 */
void hd_cursor_open(struct hd_cursor *cursor, struct hd_event_log *log, uint64_t after);
void hd_cursor_close(struct hd_cursor *cursor);
/* Returns the next matching entry; NULL: none yet, or lost. */
const struct hd_entry *hd_cursor_peek(struct hd_cursor *cursor);
void hd_cursor_advance(struct hd_cursor *cursor);

#endif
