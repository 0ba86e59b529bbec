/* Loading and storing the checkpoints and writes of a loop. */
#ifndef HD_GRAPH_ENGINE_SAVE_H
#define HD_GRAPH_ENGINE_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "store/list_append.h"

struct hd_graph;
struct hd_list_tracker;
struct hd_checkpoint_state;
struct heddle_error;
struct hd_loop;
struct hd_val;
struct hd_write;
struct heddle_tuple;
struct heddle_value;

#define HD_ENGINE_MAX_VALUE ((size_t)256 << 20) /* bytes of one save */

/* The checkpoint is in loop->load. */
typedef void (*hd_loaded_fn)(struct hd_loop *loop, int err, const char *text);

struct hd_load {
    struct heddle_tuple *tuple;  /* NULL: not found */
    bool is_superseded;          /* an id was given and the thread has newer checkpoints */
    char greatest[HD_UUID_SIZE]; /* an id was given: the greatest id of the namespace */
};

/* HD_READY: the store is direct, and the checkpoint is loaded. 0: calls `done` later. */
HD_MUST_CHECK int hd_load_start(struct hd_loop *loop, struct hd_slice id, struct hd_slice before,
                                hd_loaded_fn done, struct heddle_error *fault);

/* Stores the loop's checkpoint after the earlier ones, with the values of changed channels. */
HD_MUST_CHECK int hd_save_checkpoint(struct hd_loop *loop);
/* Stores a task's writes to the current checkpoint, without waiting for earlier saves. */
HD_MUST_CHECK int hd_save_writes(struct hd_loop *loop, const char *task, const char *path,
                                 const struct hd_write *list, size_t count);

/* A checkpoint's changed values and writes, encoded; shared with graph/state. */
struct hd_packed {
    struct hd_buf text;
    struct heddle_value *values;
    struct hd_growth **growths; /* by value: appended elements of a list, else NULL */
    size_t value_count;
    struct hd_outline outline;
    void *outline_memory;
    struct hd_val *other_versions; /* holds names of the outline */
};

/*
 * `tracker`, by channel, has the lists as last stored; NULL: none. `new_versions` NULL: they are in
 * the outline, without its run_id.
 */
HD_MUST_CHECK int hd_save_pack_values(struct hd_packed *packed,
                                      const struct hd_checkpoint_state *live,
                                      struct hd_val *const *previous,
                                      struct hd_list_tracker *tracker, struct hd_buf *new_versions);
HD_MUST_CHECK int hd_save_pack_writes(struct hd_packed *packed, const struct hd_graph *graph,
                                      const struct hd_write *list, size_t count);
void hd_packed_fini(struct hd_packed *packed);

#endif
