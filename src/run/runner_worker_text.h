/* Encodes the messages to workers about runs, and decodes their responses. Pure: no I/O. */
#ifndef HD_RUN_RUNNER_WORKER_TEXT_H
#define HD_RUN_RUNNER_WORKER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "run/runner.h"
#include "value/val.h"

/*
 * Writes the head of the call `run`, and to `input` the text of blob 0 (empty: no input). `app`
 * and `pass` give the worker access to the server (gate/worker_access.h); NULL: none.
 */
HD_MUST_CHECK int hd_runner_text_write_run(const struct hd_runner_options *options,
                                           const struct hd_app *app,
                                           const struct hd_worker_access *pass, struct hd_buf *head,
                                           struct hd_buf *input);

/*
 * The `configurable` that graphs see: with secrets, without the checkpoint members. NULL: no
 * memory.
 */
HD_MUST_CHECK struct hd_val *hd_runner_text_config(const struct hd_val *config,
                                                   const struct hd_val *secrets);

/*
 * Reads the head of a piece. HD_EINVAL: unknown mode. `ns` points into *json, which the caller
 * frees.
 */
struct hd_json;
HD_MUST_CHECK int hd_runner_text_read_piece(struct hd_slice head, struct hd_json *json,
                                            enum hd_stream_mode *mode, struct hd_slice *ns);

/* The result of a run that a worker reports. Texts are in the arena. */
struct hd_runner_text_answer {
    enum hd_engine_run_status status;
    struct hd_slice type, message; /* of an error */
    struct hd_slice error;         /* JSON, as clients see it */
    struct hd_slice where;         /* "file:line"; may be empty */
    struct hd_slice code;
    int64_t tokens;
    struct hd_val *tools; /* the caller owns it; NULL: none */
};

HD_MUST_CHECK int hd_runner_text_read_answer(struct hd_slice head, const struct hd_val *secrets,
                                             struct hd_arena *arena,
                                             struct hd_runner_text_answer *out);
/* Reads the result of a call that was refused or lost: its head is the error. */
HD_MUST_CHECK int hd_runner_text_read_error(struct hd_slice head, const struct hd_val *secrets,
                                            struct hd_arena *arena,
                                            struct hd_runner_text_answer *out);

/*
 * Appends JSON text with each of `secrets` (markers to texts; may be NULL) replaced by its marker.
 * Short secrets stay: they may match other text by chance.
 */
HD_MUST_CHECK int hd_runner_text_redact(struct hd_slice text, const struct hd_val *secrets,
                                        struct hd_buf *out);

/* Appends the output with the pending interrupts, as `wait` returns it. */
HD_MUST_CHECK int hd_runner_text_output(struct hd_slice output, const struct hd_val *interrupts,
                                        struct hd_buf *out);

#endif
