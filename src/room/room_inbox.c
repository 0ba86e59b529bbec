#include "records/record_internal.h"
#include "room/room.h"

/* ---- read marks ------------------------------------------------------- */

#define REC struct hd_room_read_rec

static const struct hd_record_field read_members[] = {
    {HD_RECORD_MEMBER("reader_id", TEXT, REC, reader_id)},
};

static const struct hd_record_type read_type = {
    .table = HD_ROOM_READS,
    .size = sizeof(REC),
    .id = HD_ROOM_READS_THREAD,
    .columns =
        {
            [HD_ROOM_READS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_READS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_READS_READER] = {HD_RECORD_COLUMN(TEXT, REC, reader)},
            [HD_ROOM_READS_SEQ] = {HD_RECORD_COLUMN(INT, REC, seq)},
            [HD_ROOM_READS_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_ROOM_READS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(read_members),
    .unknown = offsetof(REC, unknown),
};

int hd_room_read_mark(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                      struct hd_slice reader, struct hd_arena *arena, struct hd_room_read_rec *out,
                      struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(reader)};
    int err = hd_record_read(store, &read_type, key, HD_COUNT(key), arena, out, fault);

    if (err != HD_ENOTFOUND)
        return err;
    *out =
        (struct hd_room_read_rec){.principal = principal, .thread_id = thread_id, .reader = reader};
    return 0;
}

int hd_room_read_put(struct hd_batch_builder *batch, const struct hd_room_read_rec *mark)
{
    return hd_record_write(batch, &read_type, mark, HD_OP_PUT);
}

int hd_room_read_marks(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                       struct hd_arena *arena, struct hd_room_read_rec **out, size_t *count,
                       struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    const struct hd_query query = {
        .index = HD_PRIMARY, .prefix = prefix, .prefix_count = HD_COUNT(prefix)};
    void *marks = NULL;
    int err = hd_records_list(store, &read_type, query, 0, arena, &marks, count, fault);

    if (!err)
        *out = marks;
    return err;
}

#undef REC

/* ---- mentions --------------------------------------------------------- */

#define REC struct hd_mention_rec

static const struct hd_record_type mention_type = {
    .table = HD_ROOM_MENTIONS,
    .size = sizeof(REC),
    .id = HD_ROOM_MENTIONS_MESSAGE,
    .columns =
        {
            [HD_ROOM_MENTIONS_MEMBER] = {HD_RECORD_COLUMN(TEXT, REC, member)},
            [HD_ROOM_MENTIONS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_MENTIONS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_MENTIONS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_MENTIONS_MESSAGE] = {HD_RECORD_COLUMN(TEXT, REC, message_id)},
            [HD_ROOM_MENTIONS_SEQ] = {HD_RECORD_COLUMN(INT, REC, seq)},
        },
};

int hd_mention_add(struct hd_batch_builder *batch, const struct hd_mention_rec *mention)
{
    return hd_record_write(batch, &mention_type, mention, HD_OP_PUT);
}

int hd_mentions_read(struct heddle *store, struct hd_slice member, int64_t before, size_t limit,
                     struct hd_arena *arena, struct hd_mention_rec **out, size_t *count,
                     struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(member), high = hd_cell_int(before);
    const struct hd_query query = {.index = HD_PRIMARY,
                                   .prefix = &prefix,
                                   .prefix_count = 1,
                                   .high = before > 0 ? &high : NULL,
                                   .is_reverse = true};
    void *mentions = NULL;
    int err = hd_records_list(store, &mention_type, query, limit, arena, &mentions, count, fault);

    if (!err)
        *out = mentions;
    return err;
}

static int on_doomed_mention(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_batch_builder *batch = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = hd_record_keep(&batch->arena, HD_ROOM_MENTIONS, cells, kept);

    (void)which;
    return err ? err
               : hd_batch_delete(batch, HD_ROOM_MENTIONS, kept,
                                 hd_tables[HD_ROOM_MENTIONS].key_count);
}

struct mention_removal {
    struct hd_batch_builder *batch;
    struct hd_slice message_id;
};

static int on_member_mention(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct mention_removal *removal = arg;

    if (!hd_slice_eq(cells[HD_ROOM_MENTIONS_MESSAGE].bytes, removal->message_id))
        return 0;
    return on_doomed_mention(removal->batch, which, cells);
}

int hd_mention_remove(struct heddle *store, struct hd_batch_builder *batch,
                      const struct hd_mention_rec *mention, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(mention->principal),
                                     hd_cell_bytes(mention->thread_id),
                                     hd_cell_bytes(mention->member)};
    const struct hd_query query = {.table = HD_ROOM_MENTIONS,
                                   .index = HD_ROOM_MENTIONS_BY_THREAD,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix)};
    struct mention_removal removal = {batch, mention->message_id};

    return hd_rows_read(store, &query, 1, on_member_mention, &removal, fault);
}

int hd_mentions_delete(struct heddle *store, struct hd_batch_builder *batch,
                       struct hd_slice principal, struct hd_slice thread_id,
                       struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    const struct hd_query query = {.table = HD_ROOM_MENTIONS,
                                   .index = HD_ROOM_MENTIONS_BY_THREAD,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix)};

    return hd_rows_read(store, &query, 1, on_doomed_mention, batch, fault);
}
