/*
 * The root namespaces of a thread, as clients name them when the server shows roots.
 *
 * A subgraph of the root `x` has the namespace `x|node:task`, one of the empty root `node:task`,
 * which may also be a root that a run named. The thread's checkpoints and lines distinguish them.
 */
#ifndef HD_RECORDS_THREAD_ROOTS_H
#define HD_RECORDS_THREAD_ROOTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "records/line.h"

struct heddle;
struct hd_thread_rec;

/* True if the root is that of an assistant, not one that a run named. */
bool hd_root_is_assistant(struct hd_slice ns);

/* Sets *out to whether the thread uses the empty root, for its latest run or any checkpoint. */
HD_MUST_CHECK int hd_thread_has_empty_root(struct heddle *store, const struct hd_thread_rec *thread,
                                           bool *out, struct heddle_error *fault);

/* The root of a namespace, borrowed from `ns`: the part before the first `|`, or empty. */
HD_MUST_CHECK int hd_thread_root_of(struct heddle *store, const struct hd_thread_rec *thread,
                                    struct hd_slice ns, struct hd_slice *root,
                                    struct heddle_error *fault);

/*
 * True if `ns` belongs to a subgraph of the empty root. `parents` is from the metadata of one of
 * its checkpoints, `lines` those of the thread.
 */
bool hd_root_is_below_empty(struct hd_slice ns, hd_json_val parents, const struct hd_lines *lines);

#endif
