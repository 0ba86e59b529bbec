/* Removes a run's secrets from data of its worker. */
#ifndef HD_WORKER_WORKER_HIDE_H
#define HD_WORKER_WORKER_HIDE_H

#include <heddle.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

/* The secrets of a scope, prepared for searching; in the arena. */
struct hd_hidden {
    struct hd_hidden_text *texts;
    size_t count;
};

HD_MUST_CHECK int hd_hidden_init(struct hd_hidden *hidden, const struct hd_val *secrets,
                                 struct hd_arena *arena);
/*
 * Replaces the secrets in a value; a changed value is in the arena. JSON text gets markers; other
 * encodings get asterisks, because they contain lengths.
 */
HD_MUST_CHECK int hd_hidden_hide(const struct hd_hidden *hidden, struct heddle_value *value,
                                 struct hd_arena *arena);
/*
 * Prepares a checkpoint's metadata (JSON text) for the store: removes secrets, adds the members of
 * `more`, which take precedence, and the runtime's name.
 */
HD_MUST_CHECK int hd_hidden_metadata(const struct hd_hidden *hidden, struct hd_slice text,
                                     const struct hd_val *more, const char *runtime,
                                     struct hd_arena *arena, struct hd_slice *out,
                                     struct heddle_error *fault);

#endif
