/*
 * What a run found where it began: checkpoints that it did not make, and the writes they had then.
 * A run that goes on from one adds answers and results to it, which deleting the run's own
 * checkpoints does not take away.
 */
#ifndef HD_GRAPH_ENGINE_ORIGIN_H
#define HD_GRAPH_ENGINE_ORIGIN_H

#include <heddle.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_origin {
    struct hd_origin *next;
    struct hd_arena arena; /* of what it points to */
    struct heddle_bytes ns;
    struct heddle_bytes id;
    struct heddle_write *writes; /* by task; of each those that are not special first */
    size_t write_count;
    bool is_touched; /* the run has added some */
};

/* Puts a copy of what `tuple` says, stored in `ns`, before the list. */
HD_MUST_CHECK int hd_origin_add(struct hd_origin **list, const struct heddle_tuple *tuple,
                                struct hd_slice ns);
void hd_origins_free(struct hd_origin *list);

/*
 * Gives those that were touched their old writes back; in steps, each of which leaves what was
 * there before. HD_ENOTFOUND: the thread is gone (store/list_append.h has the guard). Waits for the
 * store.
 */
HD_MUST_CHECK int hd_origins_restore(struct heddle *store, const struct hd_origin *list,
                                     const struct heddle_thread *thread, int64_t guard,
                                     struct hd_fault *fault);

#endif
