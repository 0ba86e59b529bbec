#include "records/record_internal.h"
#include "room/room.h"

#define REC struct hd_room_run_rec

static const struct hd_record_field run_members[] = {
    {HD_RECORD_MEMBER("answer", TEXT, REC, answer)},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, assistant_id)},
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, graph_id)},
    {HD_RECORD_MEMBER("ns", TEXT, REC, ns)},
    {HD_RECORD_MEMBER("given", JSON, REC, given)},
    {HD_RECORD_MEMBER("head_before", TEXT, REC, head_before)},
    {HD_RECORD_MEMBER("head_after", TEXT, REC, head_after)},
    {HD_RECORD_MEMBER("chain", TEXT, REC, chain)},
    {HD_RECORD_MEMBER("depth", INT, REC, depth)},
    {HD_RECORD_MEMBER("cascade", TEXT, REC, cascade)},
    {HD_RECORD_MEMBER("replaces", TEXT, REC, replaces)},
    {HD_RECORD_MEMBER("is_answer", WORD, REC, is_answer), .names = hd_record_true},
};

static const struct hd_record_type run_type = {
    .table = HD_ROOM_RUNS,
    .size = sizeof(REC),
    .id = HD_ROOM_RUNS_RUN,
    .columns =
        {
            [HD_ROOM_RUNS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_RUNS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_RUNS_RUN] = {HD_RECORD_COLUMN(TEXT, REC, run_id)},
            [HD_ROOM_RUNS_TRIGGER] = {HD_RECORD_COLUMN(TEXT, REC, trigger)},
            [HD_ROOM_RUNS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_RUNS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(run_members),
    .unknown = offsetof(REC, unknown),
};

int hd_room_run_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                     struct hd_slice run_id, struct hd_arena *arena, struct hd_room_run_rec *out,
                     struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(run_id)};

    return hd_record_read(store, &run_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_room_run_put(struct hd_batch_builder *batch, const struct hd_room_run_rec *run)
{
    return hd_record_write(batch, &run_type, run, HD_OP_PUT);
}

int hd_room_runs_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                      struct hd_slice trigger, struct hd_arena *arena, struct hd_room_run_rec **out,
                      size_t *count, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                     hd_cell_bytes(trigger)};
    const struct hd_query query = {.index = trigger.len > 0 ? HD_ROOM_RUNS_BY_TRIGGER : HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = trigger.len > 0 ? 3 : 2};
    void *runs = NULL;
    int err = hd_records_list(store, &run_type, query, 0, arena, &runs, count, fault);

    if (!err)
        *out = runs;
    return err;
}
