/* Assembles values from their references: add the values to a reading, run it, finish. */
#ifndef HD_STORE_FETCH_H
#define HD_STORE_FETCH_H

#include "base/list.h"
#include "store/codec/value.h"
#include "store/reading.h"
#include "store/store.h"

struct hd_allowance;
struct hd_range;
struct hd_fetch_source;

struct hd_fetch_target {
    struct hd_ref ref;
    struct hd_fetch_source *sources; /* one for each segment; those of extents are used */
    char *bytes;
    size_t filled;
    size_t segment;     /* the next one to fill */
    uint64_t in_extent; /* chunks of the extent that have arrived */
    struct heddle_bytes *out;
    struct hd_fetch_target *next;
};

struct hd_fetch {
    struct hd_arena *arena; /* holds the values */
    HD_FIFO(struct hd_fetch_target) targets;
    struct hd_range *ranges; /* the ranges to read, latest first */
    /* limit of the values' bytes; NULL: none. Set it after the init */
    struct hd_allowance *allowance;
};

void hd_fetch_init(struct hd_fetch *fetch, struct hd_arena *arena);

/*
 * *out is set at once for a short value, by hd_fetch_finish() otherwise. Borrows `ref` and
 * `channel` as long as the arena lives.
 */
HD_MUST_CHECK int hd_fetch_add(struct hd_fetch *fetch, struct hd_reading *reading,
                               struct hd_slice thread, struct hd_slice channel, struct hd_slice ref,
                               struct heddle_bytes *out);

/* After the reading was run. HD_ECORRUPT when a chunk is missing or a checksum is wrong. */
HD_MUST_CHECK int hd_fetch_finish(struct hd_fetch *fetch);

/*
 * Decodes the row of a write, with the reference instead of the value's bytes. Copies everything
 * into `arena`.
 */
HD_MUST_CHECK int hd_copy_write(struct hd_arena *arena, const struct hd_cell *cells,
                                struct heddle_write *write, struct hd_slice *ref);

#endif
