#include "records/record_internal.h"

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_cron_rec

static const struct hd_record_field cron_members[] = {
    {HD_RECORD_MEMBER("schedule", TEXT, REC, schedule)},
    {HD_RECORD_MEMBER("timezone", TEXT, REC, timezone)},
    {HD_RECORD_MEMBER("enabled", WORD, REC, is_enabled), .names = hd_record_bool},
    {HD_RECORD_MEMBER("keeps_threads", WORD, REC, keeps_threads), .names = hd_record_true},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, assistant_id)},
    {HD_RECORD_MEMBER("thread_id", TEXT, REC, thread_id)},
    {HD_RECORD_MEMBER("updated_at", INT, REC, updated_at)},
    {HD_RECORD_MEMBER("end_at", INT, REC, end_at)},
    {HD_RECORD_MEMBER("metadata", JSON, REC, metadata)},
    {HD_RECORD_MEMBER("payload", JSON, REC, payload)},
};

static int call_cron_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_cron_fn *)fn)(arg, record);
}

static const struct hd_record_type cron_type = {
    .table = HD_CRONS,
    .size = sizeof(REC),
    .id = HD_CRONS_ID,
    .rev = HD_CRONS_REV,
    .columns =
        {
            [HD_CRONS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_CRONS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_CRONS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_CRONS_NEXT] = {HD_RECORD_COLUMN(INT, REC, next_at)},
            [HD_CRONS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_CRONS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(cron_members),
    .unknown = offsetof(REC, unknown),
    .call = call_cron_fn,
};

/* ---- reading ---------------------------------------------------------- */

int hd_cron_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                 struct hd_arena *arena, struct hd_cron_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};

    return hd_record_read(store, &cron_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_crons_scan(struct heddle *store, struct hd_slice principal, hd_cron_fn fn, void *arg,
                  struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    const struct hd_query query = {.index = HD_PRIMARY, .prefix = &prefix, .prefix_count = 1};

    return hd_records_scan(store, &cron_type, query, &fn, arg, fault);
}

int hd_crons_scan_all(struct heddle *store, hd_cron_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_query query = {.index = HD_PRIMARY};

    return hd_records_scan(store, &cron_type, query, &fn, arg, fault);
}

int hd_crons_due(struct heddle *store, int64_t before, hd_cron_fn fn, void *arg,
                 struct heddle_error *fault)
{
    const struct hd_cell high = hd_cell_int(before);
    const struct hd_query query = {.index = HD_CRONS_DUE, .high = &high};

    return hd_records_scan(store, &cron_type, query, &fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

int hd_cron_add(struct hd_batch_builder *batch, struct hd_cron_rec *cron)
{
    return hd_record_add(batch, &cron_type, cron);
}

int hd_cron_put(struct hd_batch_builder *batch, struct hd_cron_rec *cron)
{
    return hd_record_put(batch, &cron_type, cron);
}

int hd_cron_delete(struct hd_batch_builder *batch, struct hd_slice principal, struct hd_slice id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};

    return hd_batch_delete(batch, HD_CRONS, key, HD_COUNT(key));
}
