/*
 * The checkpoints from which a run started, with the writes they had then. A run adds resume values
 * and results to such a checkpoint. Deleting the run's own checkpoints does not remove them, so a
 * rollback restores the earlier writes.
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
#include "store/guard.h"

struct hd_origin {
    struct hd_origin *next;
    struct hd_arena arena; /* holds all pointers below */
    struct heddle_bytes ns;
    struct heddle_bytes id;
    struct heddle_write *writes; /* sorted by task; special writes last within a task */
    size_t write_count;
    bool is_touched; /* the run has added writes */
};

/* Prepends a copy of `tuple`, stored in `ns`, to the list. */
HD_MUST_CHECK int hd_origin_add(struct hd_origin **list, const struct heddle_tuple *tuple,
                                struct hd_slice ns);
void hd_origins_free(struct hd_origin *list);

/*
 * Restores the earlier writes of each touched checkpoint, in steps. Stopping after any
 * step is safe. HD_ENOTFOUND: the thread was deleted (see the guard in store/list_append.h). Waits
 * for the store.
 */
HD_MUST_CHECK int hd_origins_restore(struct heddle *store, const struct hd_origin *list,
                                     const struct heddle_thread *thread, struct hd_guard guard,
                                     struct heddle_error *fault);

#endif
