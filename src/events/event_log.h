/*
 * The event log of a thread: what its runs told, numbered for the life of the
 * thread. An event is rendered once and kept once; whoever reads has a cursor.
 *
 * In memory a feed keeps the newest events, within limits; a reader that falls
 * behind what is kept is *lost* and has to come again. Events of runs that must
 * be picked up again later are stored too, in pages, and a feed can be given
 * its pages back after a restart.
 *
 * Everything here happens on the loop, but for hd_pages_read() and hd_pages_settle().
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
#include "store/batch.h"

struct heddle;
struct hd_event_logs;
struct hd_event_log;

#define HD_PAGE_BYTES ((size_t)64 << 10) /* a page is stored when it has as many */

struct hd_event_log_limits {
    size_t feed_bytes;  /* kept in memory of one thread */
    size_t total_bytes; /* and of all */
    int64_t idle_us;    /* how long after the last event, when nobody reads */
};

struct hd_entry {
    struct hd_entry *next;
    unsigned refs;
    uint64_t seq;
    uint64_t begin; /* bytes that the feed was given before */
    uint32_t mode;  /* one of enum hd_mode; 0: belongs to all (metadata, error, end) */
    bool is_last;   /* nothing of this run comes after it */
    bool is_held;   /* nobody may see it yet */
    bool is_stored; /* or will be: it can be read again when the feed has forgotten it */
    char run_id[HD_UUID_SIZE];
    size_t name_len; /* 0: not for clients */
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

/* Keeps an entry that is being sent when the feed forgets it. */
const struct hd_entry *hd_entry_ref(const struct hd_entry *entry);
void hd_entry_unref(const struct hd_entry *entry);

/* ---- all feeds of the process ----------------------------------------- */

HD_MUST_CHECK int hd_event_logs_create(uv_loop_t *loop, struct heddle *store,
                                       const struct hd_event_log_limits *limits,
                                       struct hd_event_logs **out);
/* No cursor may be open; pages under way are waited for by closing the store. */
void hd_event_logs_destroy(struct hd_event_logs *feeds);
size_t hd_event_logs_bytes(const struct hd_event_logs *feeds);

/* NULL: nobody has asked for it lately. */
struct hd_event_log *hd_event_log_find(struct hd_event_logs *feeds, struct hd_slice principal,
                                       struct hd_slice thread);
/*
 * The feed of a thread, made when it is not there; NULL: no memory. Its numbers
 * go on behind `seq` at least, the last one that is stored.
 */
HD_MUST_CHECK struct hd_event_log *hd_event_log_get(struct hd_event_logs *feeds,
                                                    struct hd_slice principal,
                                                    struct hd_slice thread, uint64_t seq);
/*
 * The thread is gone: its readers come to their end. Nothing happens when a run holds it: then
 * the thread was made again.
 */
void hd_event_log_drop(struct hd_event_log *feed);

/* Keeps the feed while a run is at work on its thread. */
void hd_event_log_hold(struct hd_event_log *feed);
void hd_event_log_release(struct hd_event_log *feed);

bool hd_event_log_has_readers(const struct hd_event_log *feed);
uint64_t hd_event_log_seq(const struct hd_event_log *feed);
/*
 * Leaves a gap: events that were told before a crash had numbers nobody knows now. Another
 * `attempt` has another gap.
 */
void hd_event_log_skip(struct hd_event_log *feed, int attempt);
/* The last number that events of so many attempts may have had, when `seq` is stored. */
uint64_t hd_event_log_gap(uint64_t seq, int attempts);

struct hd_event_log_entry {
    struct hd_slice run_id;
    uint32_t mode;
    struct hd_slice name;
    struct hd_slice data; /* JSON */
    bool is_stored;
    bool is_last;
    bool is_held; /* not shown before hd_event_log_show(), nor is what comes behind it */
};

/* 0, or HD_ENOMEM: then the event is missing and its readers are told that they are lost. */
HD_MUST_CHECK int hd_event_log_add(struct hd_event_log *feed,
                                   const struct hd_event_log_entry *news);
/* Shows what was held of the run. */
void hd_event_log_show(struct hd_event_log *feed, struct hd_slice run_id);
/* When the thread was made: nothing of it is stored once it is gone (thread_fence.h); 0: unknown.
 */
void hd_event_log_guard(struct hd_event_log *feed, int64_t guard);
/* Stores what was added; otherwise that happens by itself, soon. */
void hd_event_log_flush(struct hd_event_log *feed);
/* Whether one of the pages that were stored was larger than twice HD_PAGE_BYTES. */
bool hd_event_log_has_large(const struct hd_event_log *feed);

/* Consecutive events of one run that are stored together. Zeroed: there are none. */
struct hd_event_page {
    uint64_t first;
    uint64_t last;
    char run_id[HD_UUID_SIZE];
    struct hd_buf data; /* encoded as event_log_store.c describes */
};

/*
 * Takes the events that wait to be stored out of the feed. They end with the last event of a run,
 * and are stored in the batch that ends the run: a stored `end` implies that the run has ended. The
 * feed keeps them in memory until hd_page_fini(), because they cannot be read from the store yet.
 */
void hd_event_log_take_page(struct hd_event_log *feed, struct hd_event_page *out);
/* Appends the page's row, which borrows both names until the batch is applied. */
HD_MUST_CHECK int hd_page_put(struct hd_batch_builder *batch, struct hd_slice principal,
                              struct hd_slice thread, const struct hd_event_page *page);
/* The page is stored, or never will be. `feed` is the one it was taken from. */
void hd_page_fini(struct hd_event_page *page, struct hd_event_log *feed);

/*
 * While a run is at work: `fn` is told when whoever began it and reads its events
 * (hd_cursor.is_creator) is behind by half of what makes a reader lost, and when that is over: it
 * has caught up, or is gone. It must not add events. One run at a time.
 */
typedef void (*hd_lag_fn)(void *ctx, bool is_behind);
void hd_event_log_watch(struct hd_event_log *feed, struct hd_slice run_id, hd_lag_fn fn, void *ctx);
void hd_event_log_unwatch(struct hd_event_log *feed);

/* `fn` is told of each cursor that is opened; NULL: nobody is. */
void hd_event_log_on_reader(struct hd_event_log *feed, void (*fn)(void *ctx), void *ctx);

/* ---- pages ------------------------------------------------------------ */

/*
 * What is stored of a thread behind number *after, oldest first; entries live in `arena`. With a
 * `run` (may be empty) it begins where that begins, and *after is put there; UINT64_MAX: nothing of
 * it is stored. For store threads.
 */
HD_MUST_CHECK int hd_pages_read(struct heddle *store, struct hd_slice principal,
                                struct hd_slice thread, struct hd_slice run, uint64_t *after,
                                struct hd_arena *arena, struct hd_entry **out,
                                struct hd_fault *fault);
/*
 * Puts them, all behind number `after`, before what the feed has, unless somebody did; HD_ENOMEM
 * changes nothing.
 */
HD_MUST_CHECK int hd_event_log_prepend(struct hd_event_log *feed, const struct hd_entry *stored,
                                       uint64_t after);

/*
 * A feed may forget what is on its way to the store: then there is a hole between `stored`, as it
 * was read, and what it has. Whether there may be one behind number `after`. Then flush the feed,
 * remember what it has forgotten, settle, and read again; what was forgotten up to there
 * (`settled`) is stored by then, or never will be.
 */
bool hd_event_log_has_hole(const struct hd_event_log *feed, const struct hd_entry *stored,
                           uint64_t after, uint64_t settled);
/* The last number that is stored, or will be, and not in memory; 0: none. */
uint64_t hd_event_log_forgotten(const struct hd_event_log *feed);
/* Waits until all pages of the thread that were flushed before are stored. For store threads. */
HD_MUST_CHECK int hd_pages_settle(struct heddle *store, struct hd_slice principal,
                                  struct hd_slice thread, struct hd_fault *fault);

/* ---- reading ---------------------------------------------------------- */

struct hd_cursor {
    struct hd_event_log *feed;
    const struct hd_entry *at; /* the next one; NULL: all were read */
    bool is_lost;              /* what it was to read next is not kept any more */
    bool is_gone;              /* the thread is: nothing more will come */
    bool is_creator;           /* the run with run_id was begun with it: see hd_event_log_watch() */
    char run_id[HD_UUID_SIZE]; /* empty: of all runs */
    uint32_t modes;            /* of these only */
    void (*on_more)(void *ctx); /* there is something to read, after there was nothing */
    void *ctx;
    struct hd_cursor *next;
    struct hd_cursor **link;
};

#define HD_FROM_NOW UINT64_MAX

/*
 * Reads what comes after number `after`: 0 everything that is kept, HD_FROM_NOW
 * nothing that is there already. Set run_id, modes, is_creator, on_more and ctx before.
 */
void hd_cursor_open(struct hd_cursor *cursor, struct hd_event_log *feed, uint64_t after);
void hd_cursor_close(struct hd_cursor *cursor);
/* The next entry that the cursor is for; NULL: none yet, or lost. */
const struct hd_entry *hd_cursor_peek(struct hd_cursor *cursor);
void hd_cursor_advance(struct hd_cursor *cursor);

#endif
