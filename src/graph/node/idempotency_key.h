/*
 * Idempotency keys of calls to other servers. A call that is repeated because the process was
 * killed, or because an attempt of its task failed, has the same key, so that the server can detect
 * the repetition. All other calls have different keys: other tasks and checkpoints, other calls of
 * the same task, forks, and retries by a user.
 */
#ifndef HD_GRAPH_NODE_IDEMPOTENCY_KEY_H
#define HD_GRAPH_NODE_IDEMPOTENCY_KEY_H

#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"

#define HD_CALL_KEY_HEADER "Idempotency-Key"
#define HD_CALL_KEY_META "heddle/idempotency-key" /* in metadata of MCP and A2A */

/* "Idempotency-Key: " and the key, with a NUL. */
#define HD_CALL_KEY_LINE_SIZE (sizeof(HD_CALL_KEY_HEADER ": ") - 1 + HD_UUID_SIZE)

struct hd_task;

/*
 * `call_id`: identifies the call within the task; empty if the task makes only one. `round`: number
 * of earlier requests of that call, each with different content. The key is a hash: it reveals no
 * id.
 */
HD_MUST_CHECK int hd_idempotency_key(const struct hd_task *task, struct hd_slice call_id, int round,
                                     char out[HD_UUID_SIZE]);
/* The key as a header line. */
HD_MUST_CHECK int hd_idempotency_key_line(const struct hd_task *task, struct hd_slice call_id,
                                          char out[HD_CALL_KEY_LINE_SIZE]);

#endif
