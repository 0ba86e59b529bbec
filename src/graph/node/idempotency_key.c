#include "graph/node/idempotency_key.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "value/val.h"

#define MAX_TEXT ((size_t)1 << 20)

/* The UUIDv5 namespace of the keys. */
static const uint8_t keys_ns[16] = {0x8d, 0x1e, 0x52, 0x0c, 0x5b, 0x6f, 0x4a, 0x71,
                                    0x9c, 0x33, 0x2f, 0x64, 0xd0, 0x97, 0xae, 0x15};

/*
 * A task's id is a hash of its checkpoint, its namespace, its step and its node. All attempts of a
 * run have the same run id; a retry by a user, from a checkpoint, has another.
 */
int hd_idempotency_key(const struct hd_task *task, struct hd_slice call_id, int round,
                       char out[HD_UUID_SIZE])
{
    const struct hd_engine_run_options *options = &task->loop->run->options;
    const struct hd_slice parts[] = {
        options->principal,      options->thread,
        options->root,           hd_val_get_string(hd_val_get(options->metadata, HD_S("run_id"))),
        hd_slice_cstr(task->id), call_id,
    };
    struct hd_buf text;
    int err = 0;

    hd_buf_init(&text, MAX_TEXT);
    for (size_t i = 0; i < HD_COUNT(parts) && !err; i++)
        err = hd_buf_append_lenslice(&text, parts[i]);
    if (!err)
        err = hd_buf_printf(&text, "%zu %d", hd_val_count(task->resume), round);
    if (!err)
        err = hd_uuid_v5(keys_ns, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

int hd_idempotency_key_line(const struct hd_task *task, struct hd_slice call_id,
                            char out[HD_CALL_KEY_LINE_SIZE])
{
    char key[HD_UUID_SIZE];
    int err = hd_idempotency_key(task, call_id, 0, key);

    if (!err)
        (void)snprintf(out, HD_CALL_KEY_LINE_SIZE, HD_CALL_KEY_HEADER ": %s", key);
    return err;
}
