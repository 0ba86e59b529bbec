/* What is written to workers about runs, and read from them. Pure: no I/O. */
#ifndef HD_WORKER_WORKER_RUN_TEXT_H
#define HD_WORKER_WORKER_RUN_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "value/val.h"
#include "worker/worker_run.h"

/*
 * The head of the call `run`; `input`, the text that goes with it as blob 0, stays empty when
 * there is none. `attempt` and `is_continued` win over those of the options. `app` and `pass` are
 * the worker's way to the server (worker_access.h); NULL: none.
 */
HD_MUST_CHECK int hd_worker_run_write_run(const struct hd_worker_run_options *options, int attempt,
                                          bool is_continued, const struct hd_app *app,
                                          const struct hd_worker_access *pass, struct hd_buf *head,
                                          struct hd_buf *input);

/*
 * The `configurable` that graphs see: secrets revealed, without what says where its checkpoints
 * are. NULL: no memory.
 */
HD_MUST_CHECK struct hd_val *hd_worker_run_config(const struct hd_val *config,
                                                  const struct hd_val *secrets);

/* The head of a piece. HD_EINVAL: it is none of ours. `ns` points into *json, the caller's. */
struct hd_json;
HD_MUST_CHECK int hd_worker_run_read_piece(struct hd_slice head, struct hd_json *json,
                                           enum hd_stream_mode *mode, struct hd_slice *ns);

/* How a worker says that a run ended. Texts are in the arena. */
struct hd_worker_run_answer {
    enum hd_run_status status;
    struct hd_slice type, message; /* of an error */
    struct hd_slice error;         /* JSON, as clients see it */
    struct hd_slice where;         /* "file:line"; may be empty */
    struct hd_slice code;
    int64_t tokens;
    struct hd_val *tools; /* the caller's; NULL: none */
};

HD_MUST_CHECK int hd_worker_run_read_answer(struct hd_slice head, const struct hd_val *secrets,
                                            struct hd_arena *arena,
                                            struct hd_worker_run_answer *out);
/* The same of a call that was refused or lost: its head is the error. */
HD_MUST_CHECK int hd_worker_run_read_error(struct hd_slice head, const struct hd_val *secrets,
                                           struct hd_arena *arena,
                                           struct hd_worker_run_answer *out);

/*
 * Appends JSON text in which what `secrets` (markers to texts; may be NULL) has is replaced by its
 * markers. Short ones may be anything and stay.
 */
HD_MUST_CHECK int hd_worker_run_redact(struct hd_slice text, const struct hd_val *secrets,
                                       struct hd_buf *out);

/* Appends the output with the questions that it has left, as `wait` answers it. */
HD_MUST_CHECK int hd_worker_run_output(struct hd_slice output, const struct hd_val *interrupts,
                                       struct hd_buf *out);

#endif
