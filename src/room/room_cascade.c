#include "records/record_internal.h"
#include "room/room.h"

const char *const hd_cascade_statuses[] = {
    [HD_CASCADE_RUNNING] = "running",     [HD_CASCADE_WAITING] = "waiting",
    [HD_CASCADE_DONE] = "done",           [HD_CASCADE_DECLINED] = "declined",
    [HD_CASCADE_CANCELLED] = "cancelled", [HD_CASCADE_FAILED] = "failed",
    [HD_CASCADE_UNDONE] = "undone",       NULL};

#define REC struct hd_cascade_rec

static const struct hd_record_field cascade_members[] = {
    {HD_RECORD_MEMBER("message_id", TEXT, REC, message_id)},
    {HD_RECORD_MEMBER("version", INT, REC, version)},
    {HD_RECORD_MEMBER("actor", TEXT, REC, actor)},
    {HD_RECORD_MEMBER("editor", JSON, REC, editor)},
    {HD_RECORD_MEMBER("user", JSON, REC, user)},
    {HD_RECORD_MEMBER("limit", INT, REC, limit)},
    {HD_RECORD_MEMBER("approved", INT, REC, approved)},
    {HD_RECORD_MEMBER("plan", JSON, REC, plan)},
    {HD_RECORD_MEMBER("before", JSON, REC, before)},
    {HD_RECORD_MEMBER("reason", TEXT, REC, reason)},
};

static int call_cascade_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_cascade_fn *)fn)(arg, record);
}

static const struct hd_record_type cascade_type = {
    .table = HD_ROOM_CASCADES,
    .size = sizeof(REC),
    .id = HD_ROOM_CASCADES_ID,
    .rev = HD_ROOM_CASCADES_REV,
    .columns =
        {
            [HD_ROOM_CASCADES_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_CASCADES_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_CASCADES_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_ROOM_CASCADES_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_ROOM_CASCADES_STATUS] = {HD_RECORD_COLUMN(NAME, REC, status),
                                         .names = hd_cascade_statuses},
            [HD_ROOM_CASCADES_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_CASCADES_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_ROOM_CASCADES_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(cascade_members),
    .unknown = offsetof(REC, unknown),
    .call = call_cascade_fn,
};

int hd_cascade_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                    struct hd_slice id, struct hd_arena *arena, struct hd_cascade_rec *out,
                    struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(id)};

    return hd_record_read(store, &cascade_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_cascade_put(struct hd_batch_builder *batch, struct hd_cascade_rec *cascade)
{
    return cascade->rev == 0 ? hd_record_add(batch, &cascade_type, cascade)
                             : hd_record_put(batch, &cascade_type, cascade);
}

int hd_cascades_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                     size_t limit, struct hd_arena *arena, struct hd_cascade_rec **out,
                     size_t *count, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    const struct hd_query query = {.index = HD_ROOM_CASCADES_BY_CREATED,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .is_reverse = true};
    void *cascades = NULL;
    int err = hd_records_list(store, &cascade_type, query, limit, arena, &cascades, count, fault);

    if (!err)
        *out = cascades;
    return err;
}

int hd_cascades_open(struct heddle *store, hd_cascade_fn fn, void *arg, struct heddle_error *fault)
{
    static const enum hd_cascade_status open[] = {HD_CASCADE_RUNNING, HD_CASCADE_WAITING};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(open); i++) {
        const struct hd_cell prefix = hd_cell_bytes(hd_slice_cstr(hd_cascade_statuses[open[i]]));
        const struct hd_query query = {
            .index = HD_ROOM_CASCADES_BY_STATUS, .prefix = &prefix, .prefix_count = 1};

        err = hd_records_scan(store, &cascade_type, query, &fn, arg, fault);
    }
    return err;
}
