/*
 * Lists that runs have loaded or stored, kept for the next run on the same
 * thread: it then neither reads and parses a long conversation again nor writes
 * it again to add to it.
 *
 * Only ever a guess: whoever loads a checkpoint says which values it still has
 * (hd_store_get_unknown()), and what the store has under another size or checksum is
 * read as ever. So it does not matter who else writes to the thread.
 *
 * Each engine has its own, used on its loop. Bounded; what was not used for
 * longest goes first.
 */
#ifndef HD_GRAPH_ENGINE_LIST_CACHE_H
#define HD_GRAPH_ENGINE_LIST_CACHE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/list_tracker.h"

struct hd_recall;

/* Where the lists belong; `ns` as it is stored. */
struct hd_recall_key {
    struct hd_slice principal;
    struct hd_slice thread;
    struct hd_slice ns;
};

/* NULL when memory is exhausted. Keeps about so many bytes. */
HD_MUST_CHECK struct hd_recall *hd_recall_create(size_t max_bytes);
void hd_recall_destroy(struct hd_recall *recall);

/* Takes the lists out of `growing`, by channel of the graph. When there is no memory they go. */
void hd_recall_keep(struct hd_recall *recall, const struct hd_recall_key *key,
                    const struct hd_graph *graph, struct hd_growing *growing);

/* The way back: puts what is kept into `growing`, all zero before. Nobody else has it then. */
void hd_recall_take(struct hd_recall *recall, const struct hd_recall_key *key,
                    const struct hd_graph *graph, struct hd_growing *growing);

#endif
