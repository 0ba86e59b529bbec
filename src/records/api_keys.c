#include "records/api_keys.h"

#include "records/record_internal.h"

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_key_rec

static const struct hd_record_field key_members[] = {
    {HD_RECORD_MEMBER("subject", TEXT, REC, key.subject), .flags = HD_RECORD_REQUIRED},
    {HD_RECORD_MEMBER("admin", WORD, REC, key.is_admin), .names = hd_record_true},
};

static int call_key_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_key_fn *)fn)(arg, record);
}

static const struct hd_record_type key_type = {
    .table = HD_API_KEYS,
    .size = sizeof(REC),
    .id = HD_API_KEYS_ID,
    .rev = HD_API_KEYS_REV,
    .columns =
        {
            [HD_API_KEYS_ID] = {HD_RECORD_COLUMN(TEXT, REC, key.id)},
            [HD_API_KEYS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_API_KEYS_HASH] = {HD_RECORD_COLUMN(TEXT, REC, key.hash)},
            [HD_API_KEYS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_API_KEYS_EXPIRES] = {HD_RECORD_COLUMN(INT, REC, key.expires_at)},
            [HD_API_KEYS_REVOKED] = {HD_RECORD_COLUMN(INT, REC, key.revoked_at)},
            [HD_API_KEYS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(key_members),
    .unknown = offsetof(REC, unknown),
    .call = call_key_fn,
};

/* ---- reading and writing ---------------------------------------------- */

int hd_key_read(struct heddle *store, struct hd_slice id, struct hd_arena *arena,
                struct hd_key_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);

    return hd_record_read(store, &key_type, &key, 1, arena, out, fault);
}

int hd_keys_scan(struct heddle *store, hd_key_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_query query = {.index = HD_PRIMARY};

    return hd_records_scan(store, &key_type, query, &fn, arg, fault);
}

int hd_key_add(struct hd_batch_builder *batch, struct hd_key_rec *key)
{
    return hd_record_add(batch, &key_type, key);
}

int hd_key_put(struct hd_batch_builder *batch, struct hd_key_rec *key)
{
    return hd_record_put(batch, &key_type, key);
}

struct hd_slice hd_key_lane(void)
{
    return HD_S(":api_keys");
}
