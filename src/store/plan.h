/* Shared by the planning files: plan.c (threads, checkpoints, writes) and plan_*.c (values). */
#ifndef HD_STORE_PLAN_H
#define HD_STORE_PLAN_H

#include "store/codec/value.h"
#include "store/lane.h"

struct hd_planner {
    struct hd_lane *lane;
    struct hd_lane_request *request;
    struct hd_cached_thread *state;
    bool was_stored;  /* the thread is in the database, or will be after this batch */
    bool has_earlier; /* this batch already writes to the thread: reading now would miss that */
    struct heddle_error *fault;
};

/* Bytes in the form that the backend stores, in the batch's arena. */
HD_MUST_CHECK int hd_plan_pack(struct hd_planner *p, struct hd_slice bytes, struct hd_slice *out);

/*
 * The reference to value number `i` of the request, in the batch's arena; adds the chunks that are
 * not stored yet to the batch. HD_EBUSY as in hd_plan().
 */
HD_MUST_CHECK int hd_plan_value(struct hd_planner *p, const struct heddle_value *value, size_t i,
                                struct hd_slice *out);

/* A chunked value: the segments it begins with, and the pieces that follow them. */
struct hd_plan_parts {
    const struct hd_segment *base;
    size_t base_count;
    const struct hd_pieces *pieces;
    uint64_t size;
    uint64_t checksum;
};

HD_MUST_CHECK int hd_plan_parts(struct hd_planner *p, struct hd_slice channel,
                                const struct hd_plan_parts *parts, struct hd_slice *out);

/* hd_plan_value() for a value that is given as a growth. */
HD_MUST_CHECK int hd_plan_growth(struct hd_planner *p, size_t i, struct hd_slice *out);

#endif
