/*
 * The encoding of a page of stored events. A page starts in the format for consecutive events of
 * one run,
 *
 *   for each event: varint seq, varint mode, byte flags, name, data (with their lengths)
 *
 * and its row has the run's id. When an event of another run is added, or one that leaves a number
 * out, each event gets its run's id after the flags (empty: that of the event before), and the row
 * has `*` and the number of events in place of the id. All functions are pure.
 */
#ifndef HD_EVENTS_EVENT_PAGE_H
#define HD_EVENTS_EVENT_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"

struct hd_event_page_item {
    uint64_t seq;
    uint32_t mode;
    bool is_last;   /* the last event of its run */
    bool is_repeat; /* replaces an event with a lower number: hd_event_page_item_replaces() */
    struct hd_slice run_id;
    struct hd_slice name;
    struct hd_slice data;
};

/* Events that are stored together, in the order of their numbers. Zeroed: empty. */
struct hd_event_log_page {
    uint64_t first;
    uint64_t last;
    uint64_t count;
    char run_id[HD_UUID_SIZE]; /* of the last event */
    bool is_shared;            /* has events of several runs */
    bool has_runs;             /* in the second format */
    struct hd_buf data;
    struct hd_event_log_page *next_taken; /* see hd_event_log_take_page() */
};

/* On error the page is unchanged. */
HD_MUST_CHECK int hd_event_page_add(struct hd_event_log_page *page,
                                    const struct hd_event_page_item *event);
/* Keeps the memory and the limit of the buffer. */
void hd_event_page_reset(struct hd_event_log_page *page);

/* What the row has as run_id. */
#define HD_PAGE_LABEL_SIZE HD_UUID_SIZE
void hd_event_page_label(const struct hd_event_log_page *page, char out[HD_PAGE_LABEL_SIZE]);
/* The number of events in a page, from the cells of its row. */
uint64_t hd_event_page_count(struct hd_slice label, int64_t first, int64_t last);

/* False: the page has no event of the run. */
bool hd_event_page_may_have(struct hd_slice label, struct hd_slice run_id);

struct hd_event_page_reader {
    struct hd_reader data;
    struct hd_slice run_id; /* of the event before */
    bool has_runs;
};

/* Reads an unpacked page. The events borrow both slices. */
struct hd_event_page_reader hd_event_page_reader(struct hd_slice label, struct hd_slice data);
/* HD_ENOTFOUND: there are no more events. */
HD_MUST_CHECK int hd_event_page_reader_next(struct hd_event_page_reader *reader,
                                            struct hd_event_page_item *out);

/*
 * The last events of a run get new numbers if other events became visible while they were being
 * stored. Then they are stored a second time, and this is true: `before` must not be read.
 */
bool hd_event_page_item_replaces(const struct hd_event_page_item *event,
                                 const struct hd_event_page_item *before);

#endif
