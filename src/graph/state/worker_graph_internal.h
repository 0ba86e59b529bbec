/* Shared by worker_graph*.c and state.c. */
#ifndef HD_GRAPH_STATE_WORKER_GRAPH_INTERNAL_H
#define HD_GRAPH_STATE_WORKER_GRAPH_INTERNAL_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "heddle.h"

/* Appends a structure, in the worker's format, derived from the checkpoint. */
HD_MUST_CHECK int hd_worker_graph_guess(const struct heddle_tuple *tuple, struct hd_buf *out,
                                        struct heddle_error *fault);

#endif
