/* Shared by event_log.c, event_log_store.c and event_batch.c. */
#ifndef HD_EVENTS_EVENT_LOG_INTERNAL_H
#define HD_EVENTS_EVENT_LOG_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "events/event_batch.h"
#include "events/event_log.h"

#define HD_PAGE_LIMIT ((size_t)64 << 20) /* bytes of a page before it is packed */

struct hd_event_logs {
    uv_timer_t timer;
    struct heddle *store;
    struct hd_event_log_limits limits;
    struct hd_map map;           /* by principal:thread */
    struct hd_event_log *oldest; /* list in the order of last use */
    struct hd_event_log **newest;
    struct hd_event_log *dirty; /* logs with a page to store */
    size_t bytes;
    bool is_shared; /* see hd_event_logs_share() */
};

struct hd_event_log {
    struct hd_event_logs *logs;
    struct hd_event_log *next;
    struct hd_event_log **link;
    int64_t touched_at;
    unsigned holds;

    struct hd_entry *head;
    struct hd_entry **tail;
    struct hd_entry *held; /* list of the entries that readers do not see yet; not in `head` */
    struct hd_event_batch *batches; /* their numbers are reserved, in this order */
    size_t bytes;
    uint64_t seq;
    uint64_t shown;   /* the highest number in `head` */
    uint64_t since;   /* see hd_event_log_since() */
    uint64_t covered; /* see hd_event_log_covered() */
    bool has_repeats; /* an entry with is_repeat was added */
    bool has_pages;   /* the stored events above pages_after are in memory */
    uint64_t pages_after;
    uint64_t forgotten; /* see hd_event_log_forgotten() */
    struct hd_cursor *cursors;
    uint64_t given; /* bytes of all entries that were ever added */

    struct hd_event_log_watch *watches;

    struct hd_guard guard;         /* see hd_event_log_guard() */
    struct hd_event_log_page page; /* stored next */
    int64_t created_at;            /* of the thread when it was checked first; 0: not yet */
    bool is_dirty;
    bool has_large; /* see hd_event_log_has_large() */
    struct hd_event_log *next_dirty;
    struct hd_event_log_page *taken; /* entries from their numbers on stay in memory */

    size_t key_len;
    size_t principal_len;
    char key[]; /* principal:thread */
};

struct hd_event_batch {
    struct hd_event_log *log; /* NULL: it was dropped */
    struct hd_event_batch *next;
    uint64_t first, last; /* the reserved numbers */
    uint64_t held;        /* events were held when it began: they may get numbers above its own */
    struct hd_event_log_page page;
    bool is_ended;
};

static inline struct hd_slice hd_event_log_principal(const struct hd_event_log *log)
{
    return hd_slice(log->key, log->principal_len);
}
static inline struct hd_slice hd_event_log_thread(const struct hd_event_log *log)
{
    return hd_slice(log->key + log->principal_len + 1, log->key_len - log->principal_len - 1);
}

/* The last number that is used or reserved. */
uint64_t hd_event_log_top(const struct hd_event_log *log);
/* The number of held events. */
uint64_t hd_event_log_held(const struct hd_event_log *log);
/* Shows an event that is stored already, with a number above the last one that is used. */
HD_MUST_CHECK int hd_event_log_add_stored(struct hd_event_log *log,
                                          const struct hd_event_page_item *event);

/*
 * Adds the entry to the page that is stored next. An entry that is too large is not stored.
 * `is_held`: it gets into a page without events of other runs, which is not stored yet.
 */
void hd_event_log_page_add(struct hd_event_log *log, const struct hd_entry *entry, bool is_held);
/* Discards the page that is stored next. */
void hd_event_log_page_forget(struct hd_event_log *log);

#endif
