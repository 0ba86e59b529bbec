/*
 * Checkpoints as the runtime protocol has them: heads with numbers of blobs (docs/runtime.md).
 * Pure: reads and writes messages, does nothing with them.
 */
#ifndef HD_WORKER_WORKER_WIRE_H
#define HD_WORKER_WORKER_WIRE_H

#include <heddle.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "runtime/runtime.h"

#define HD_WIRE_MAX_BLOBS 4096 /* of a frame */

/* ---- reading ---------------------------------------------------------- */

/* A message whose head is parsed. What is read from it borrows from all three. */
struct hd_wire_in {
    const struct hd_rt_message *message;
    hd_json_val head;
    struct hd_arena *arena;
    struct hd_fault *fault;
};

/* A string; "" when it is null or not there. */
HD_MUST_CHECK int hd_wire_string(const struct hd_wire_in *in, const char *name,
                                 struct hd_slice *out);
/* The JSON text of a member, in the head or in a blob; empty when it is not there. */
HD_MUST_CHECK int hd_wire_text(const struct hd_wire_in *in, const char *name, struct hd_slice *out);
/* `[[channel, type, blob],…]` of the member `values`. */
HD_MUST_CHECK int hd_wire_values(const struct hd_wire_in *in, struct heddle_value **out,
                                 size_t *count);

/* ---- writing ---------------------------------------------------------- */

/* An answer under construction: the writer keeps the first error. Blobs are borrowed. */
struct hd_wire_out {
    struct hd_jw jw;
    struct hd_slice *blobs;
    size_t count, room;
    size_t bytes; /* of all blobs */
};

/* `most`: so many blobs will come; what is beyond HD_WIRE_MAX_BLOBS stands in the head. */
HD_MUST_CHECK int hd_wire_init(struct hd_wire_out *out, struct hd_buf *head, struct hd_arena *arena,
                               size_t most);
/* T; `ns` is the relative one. */
void hd_wire_tuple(struct hd_wire_out *out, const struct heddle_tuple *tuple, struct hd_slice ns);
/* How many blobs that takes. */
size_t hd_wire_tuple_blobs(const struct heddle_tuple *tuple);
/* The object of `history`. */
void hd_wire_histories(struct hd_wire_out *out, const struct heddle_histories *histories);

#endif
