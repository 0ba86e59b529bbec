#include "records/recording.h"

#include <heddle.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "records/record.h"
#include "records/recording_internal.h"
#include "store/batch.h"
#include "store/codec/pack.h"
#include "store/rows.h"
#include "store/thread_fence.h"

#define FORMAT 1

struct hd_recording {
    struct heddle *store;
    struct hd_recorder recorder;
    int64_t last_seq;
};

/* ---- places ----------------------------------------------------------- */

static int write_task(struct hd_buf *out, const struct hd_task *task)
{
    int err = 0;

    if (task->loop->outer)
        err = write_task(out, task->loop->outer);
    if (!err && out->len > 0)
        err = hd_buf_append_byte(out, '|');
    if (!err)
        err = hd_buf_printf(out, "%lld/%.*s", (long long)task->loop->step,
                            (int)task->node->name.len, task->node->name.ptr);
    if (!err && task->push != HD_PULL)
        err = hd_buf_printf(out, "[%zu]", task->push);
    return err;
}

int hd_place_write(struct hd_buf *out, const struct hd_record_request *request)
{
    struct hd_slice root = request->run->options.root;
    int err = hd_buf_append(out, root.ptr, root.len);

    return err || !request->task ? err : write_task(out, request->task);
}

struct hd_slice hd_place_run(const struct hd_record_request *request)
{
    return hd_val_get_string(hd_val_get(request->run->options.metadata, HD_S("run_id")));
}

/* ---- the stored form -------------------------------------------------- */

int hd_kept_write(struct hd_buf *out, const struct hd_kept_exchange *kept)
{
    const struct hd_slice texts[] = {kept->place,   kept->peer,  kept->method,  kept->url,
                                     kept->request, kept->error, kept->headers, kept->body};
    int err = hd_buf_append_byte(out, FORMAT);

    for (size_t i = 0; i < HD_COUNT(texts) && !err; i++)
        err = hd_buf_append_lenslice(out, texts[i]);
    if (!err)
        err = hd_buf_append_varint(out, kept->status);
    if (!err)
        err = hd_buf_append_varint(out, kept->tries);
    if (!err)
        err = hd_buf_append_byte(out,
                                 (char)((kept->is_timeout ? 1 : 0) | (kept->is_partial ? 2 : 0)));
    return err;
}

int hd_kept_read(struct hd_slice text, struct hd_kept_exchange *out)
{
    struct hd_slice *const texts[] = {&out->place,   &out->peer,  &out->method,  &out->url,
                                      &out->request, &out->error, &out->headers, &out->body};
    struct hd_reader r = hd_reader(text);
    uint8_t format, flags = 0;
    int err = hd_read_byte(&r, &format);

    if (!err && format != FORMAT)
        err = HD_ECORRUPT;
    for (size_t i = 0; i < HD_COUNT(texts) && !err; i++)
        err = hd_read_lenslice(&r, texts[i]);
    if (!err)
        err = hd_read_varint(&r, &out->status);
    if (!err)
        err = hd_read_varint(&r, &out->tries);
    if (!err)
        err = hd_read_byte(&r, &flags);
    out->is_timeout = flags & 1;
    out->is_partial = flags & 2;
    return err ? HD_ECORRUPT : 0;
}

/* ---- recording -------------------------------------------------------- */

static void on_exchange_stored(void *arg, int code, const struct heddle_error *error)
{
    (void)arg;
    if (code && code != HD_ECONFLICT) /* otherwise its thread was deleted */
        hd_log(HD_LOG_ERROR, "record", "an exchange was not recorded: %s", error->text);
}

/* By time, and never the same twice. */
static int64_t next_seq(struct hd_recording *recording)
{
    int64_t now = hd_clock_now_us();

    recording->last_seq = now > recording->last_seq ? now : recording->last_seq + 1;
    return recording->last_seq;
}

static int add_exchange(struct hd_recording *recording, struct hd_batch_builder *batch,
                        const struct hd_record_request *request, struct hd_slice text)
{
    struct hd_slice principal, thread, run, data;
    struct hd_arena *arena = &batch->arena;

    if (hd_arena_copy(arena, request->run->options.principal, &principal) ||
        hd_arena_copy(arena, request->run->options.thread, &thread) ||
        hd_arena_copy(arena, hd_place_run(request), &run) || hd_pack(arena, text, &data))
        return HD_ENOMEM;

    const struct hd_cell row[] = {
        [HD_EXCHANGES_PRINCIPAL] = hd_cell_bytes(principal),
        [HD_EXCHANGES_THREAD] = hd_cell_bytes(thread),
        [HD_EXCHANGES_SEQ] = hd_cell_int(next_seq(recording)),
        [HD_EXCHANGES_RUN] = hd_cell_bytes(run),
        [HD_EXCHANGES_CREATED] = hd_cell_int(hd_clock_now_us()),
        [HD_EXCHANGES_DATA] = hd_cell_bytes(data),
    };

    return hd_batch_row(batch, HD_OP_PUT, HD_EXCHANGES, row);
}

/* Rows of a thread that was deleted or taken over are not written. */
static int expect_thread(struct hd_batch_builder *batch,
                         const struct hd_engine_run_options *options)
{
    struct hd_slice key;
    int err = hd_thread_lane(&batch->arena, options->principal, options->thread, &key);

    return err ? err : hd_thread_fence_expect(batch, key, &options->guard);
}

static int store_exchange(struct hd_recording *recording, const struct hd_record_request *request,
                          struct hd_slice text)
{
    const struct hd_engine_run_options *options = &request->run->options;
    struct hd_batch_builder batch;
    struct hd_arena arena;
    struct hd_slice lane;
    int err;

    hd_arena_init(&arena, 4096);
    hd_batch_init(&batch);
    err = hd_thread_lane(&arena, options->principal, options->thread, &lane);
    if (!err && hd_guard_is_set(options->guard))
        err = expect_thread(&batch, options);
    if (!err)
        err = add_exchange(recording, &batch, request, text);
    if (!err)
        err = hd_rows_apply_async(recording->store, lane, &batch, on_exchange_stored, NULL);
    if (err)
        hd_batch_fini(&batch);
    hd_arena_fini(&arena);
    return err;
}

static void on_wrote(void *ctx, const struct hd_record_request *request,
                     const struct hd_record_answer *answer)
{
    struct hd_kept_exchange kept = {
        .peer = request->peer,
        .method = request->method,
        .url = request->url,
        .request = request->body,
        .error = answer->error ? hd_slice_cstr(answer->error) : hd_slice(NULL, 0),
        .headers = answer->headers,
        .body = answer->body,
        .status = answer->status > 0 ? (uint64_t)answer->status : 0,
        .tries = answer->tries > 0 ? (uint64_t)answer->tries : 0,
        .is_timeout = answer->is_timeout,
        .is_partial = answer->is_partial,
    };
    struct hd_buf place, text;
    int err;

    hd_buf_init(&place, HD_RECORDING_LIMIT);
    hd_buf_init(&text, HD_RECORDING_LIMIT);
    err = hd_place_write(&place, request);
    kept.place = hd_buf_slice(&place);
    if (!err)
        err = hd_kept_write(&text, &kept);
    if (!err)
        err = store_exchange(ctx, request, hd_buf_slice(&text));
    if (err)
        hd_log(HD_LOG_ERROR, "record", "an exchange was not recorded: %s", hd_error_text(err));
    hd_buf_fini(&place);
    hd_buf_fini(&text);
}

int hd_recording_create(struct heddle *store, struct hd_recording **out)
{
    struct hd_recording *recording = hd_calloc(1, sizeof(*recording));

    if (!recording)
        return HD_ENOMEM;
    recording->store = store;
    recording->recorder = (struct hd_recorder){.wrote = on_wrote, .ctx = recording};
    *out = recording;
    return 0;
}

void hd_recording_destroy(struct hd_recording *recording)
{
    hd_free(recording);
}

struct hd_recorder *hd_recording_recorder(struct hd_recording *recording)
{
    return &recording->recorder;
}
