/* The reason why a task or a run failed, as the Python exception it corresponds to. */
#ifndef HD_GRAPH_ENGINE_FAILURE_H
#define HD_GRAPH_ENGINE_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_refusal;
struct hd_val;

/* Zero-initialise it; free with hd_failure_fini(). */
struct hd_failure {
    char *type; /* name of the exception class; NULL: no failure */
    char *text;
};

/* The setters keep the first failure. When memory is exhausted they store a MemoryError. */
void hd_failure_set(struct hd_failure *failure, const char *type, const char *fmt, ...)
    HD_PRINTF(3, 4);
void hd_failure_set_text(struct hd_failure *failure, struct hd_slice type, struct hd_slice text);
void hd_failure_code(struct hd_failure *failure, int err, const struct heddle_error *fault);
/* Stores a channel's refusal and frees it. */
void hd_failure_refusal(struct hd_failure *failure, int err, struct hd_refusal *refusal);
void hd_failure_fini(struct hd_failure *failure);

static inline bool hd_failed(const struct hd_failure *failure)
{
    return failure->type != NULL;
}

/* The exception as Python's repr() formats it, which the __error__ write stores. */
HD_MUST_CHECK struct hd_val *hd_failure_repr(const struct hd_failure *failure);

#endif
