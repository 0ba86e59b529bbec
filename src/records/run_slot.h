/*
 * The runs in flight of an actor, counted over the servers of a cluster (limits.runs). A run takes
 * one of the actor's slots, a row, in the batch that stores it, and frees it in the batch that ends
 * it: no two servers give the same slot away, and a run keeps its slot when another server takes it
 * over. A slot whose run is not in flight, since its thread was deleted, counts as free.
 *
 * An admission reads the actor's slots, and when all are taken up to HD_RUN_SLOT_CHECKS of the
 * runs.
 */
#ifndef HD_RECORDS_RUN_SLOT_H
#define HD_RECORDS_RUN_SLOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/batch.h"

struct heddle;
struct hd_run_rec;

#define HD_RUN_SLOT_CHECKS 64

/* A free slot; expected to be still so by the batch. */
struct hd_run_slot {
    int64_t number; /* from 1 on */
    int64_t token;  /* of the run that left it; 0: none */
};

/* Finds `count` different ones of `most` slots; HD_ELIMIT: fewer are free. Blocks. */
HD_MUST_CHECK int hd_run_slots_find(struct heddle *store, struct hd_slice actor, int64_t most,
                                    struct hd_run_slot *out, size_t count,
                                    struct heddle_error *fault);

/*
 * Appends that the run takes the slot and sets run->slot. HD_ECONFLICT when applied: another run
 * has taken it.
 */
HD_MUST_CHECK int hd_run_slot_take(struct hd_batch_builder *batch, const struct hd_run_slot *slot,
                                   struct hd_run_rec *run);
/* Appends that the run frees its slot, if it has one. */
HD_MUST_CHECK int hd_run_slot_free(struct hd_batch_builder *batch, const struct hd_run_rec *run);

#endif
