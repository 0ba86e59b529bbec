/* The parts of transfer/rekey.h: the principals, their rows, and people in rooms of others. */
#ifndef HD_TRANSFER_REKEY_INTERNAL_H
#define HD_TRANSFER_REKEY_INTERNAL_H

#include "transfer/rekey.h"

/* One principal on its way. */
struct hd_mover {
    struct hd_rekey *rekey;
    struct hd_slice from, to;
    struct heddle_error *fault;
    uint64_t left;  /* what could not be moved yet, in the last pass */
    uint64_t moved; /* what was there to be moved, in the last pass */
};

/* How much there is under the old principal: nothing changes. */
HD_MUST_CHECK int hd_mover_count(struct hd_mover *mover);
/* *is_so: a run of the principal is pending or running. */
HD_MUST_CHECK int hd_mover_is_busy(struct hd_mover *mover, bool *is_so);
/* Moves what can be moved; mover->left counts what could not, because of runs or other writers. */
HD_MUST_CHECK int hd_mover_pass(struct hd_mover *mover);

/* Rows of rooms name people who may have moved: they name the new principals then. */
HD_MUST_CHECK int hd_mover_follow_people(struct hd_rekey *rekey, struct heddle_error *fault);

#endif
