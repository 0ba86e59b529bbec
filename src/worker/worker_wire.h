/*
 * Encodes and decodes checkpoints of the runtime protocol: heads that refer to blobs by number
 * (docs/runtime.md). Pure: no I/O.
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

/*
 * A message whose head is parsed. Values read from it borrow from the message, the head and the
 * arena.
 */
struct hd_wire_in {
    const struct hd_rt_message *message;
    hd_json_val head;
    struct hd_arena *arena;
    struct heddle_error *fault;
};

/* A string; "" if it is null or missing. */
HD_MUST_CHECK int hd_wire_string(const struct hd_wire_in *in, const char *name,
                                 struct hd_slice *out);
/* The JSON text of a member, in the head or in a blob; empty if it is missing. */
HD_MUST_CHECK int hd_wire_text(const struct hd_wire_in *in, const char *name, struct hd_slice *out);
/* `[[channel, type, blob],…]` of the member `values`. */
HD_MUST_CHECK int hd_wire_values(const struct hd_wire_in *in, struct heddle_value **out,
                                 size_t *count);

/* ---- writing ---------------------------------------------------------- */

/* A response under construction; `jw` keeps the first error. Blobs are borrowed. */
struct hd_wire_out {
    struct hd_jw jw;
    struct hd_slice *blobs;
    size_t count, room;
    size_t bytes; /* of all blobs */
};

/* `most`: the number of blobs to expect. Text beyond HD_WIRE_MAX_BLOBS blobs goes into the head. */
HD_MUST_CHECK int hd_wire_init(struct hd_wire_out *out, struct hd_buf *head, struct hd_arena *arena,
                               size_t most);
/* Writes T of docs/runtime.md; `ns` is the relative one. */
void hd_wire_tuple(struct hd_wire_out *out, const struct heddle_tuple *tuple, struct hd_slice ns);
/* The number of blobs that hd_wire_tuple() adds. */
size_t hd_wire_tuple_blobs(const struct heddle_tuple *tuple);
/* Writes the object `channels` of `history`. */
void hd_wire_histories(struct hd_wire_out *out, const struct heddle_histories *histories);

#endif
