#include "records/api_keys.h"

#include "records/record_internal.h"
#include "store/rows.h"

/* Borrows from the cells, but for what is in the body. */
static int decode_api_key(const struct hd_cell *cells, struct hd_arena *arena,
                          struct hd_key_rec *out, struct hd_fault *fault)
{
    struct hd_slice subject, admin;
    const struct hd_member members[] = {{"subject", &subject}, {"admin", &admin}};
    int err = hd_record_split(cells[HD_API_KEYS_BODY].bytes, members, HD_COUNT(members));

    *out = (struct hd_key_rec){
        .key = {.id = cells[HD_API_KEYS_ID].bytes,
                .hash = cells[HD_API_KEYS_HASH].bytes,
                .is_admin = hd_slice_eq(admin, HD_S("true")),
                .expires_at = cells[HD_API_KEYS_EXPIRES].number,
                .revoked_at = cells[HD_API_KEYS_REVOKED].number},
        .rev = cells[HD_API_KEYS_REV].number,
        .created_at = cells[HD_API_KEYS_CREATED].number,
    };
    if (!err)
        err = hd_record_text(subject, arena, &out->key.subject);
    if (!err && out->key.subject.len == 0)
        err = HD_ECORRUPT;
    return err == HD_ECORRUPT ? hd_record_damaged(HD_API_KEYS, out->key.id, fault) : err;
}

int hd_key_read(struct heddle *store, struct hd_slice id, struct hd_arena *arena,
                struct hd_key_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_API_KEYS, &key, 1, arena, cells, fault);

    return err ? err : decode_api_key(cells, arena, out, fault);
}

struct key_scan {
    hd_key_fn fn;
    void *arg;
};

static int on_key_row(void *arg, const struct hd_cell *cells, struct hd_arena *arena,
                      struct hd_fault *fault)
{
    const struct key_scan *scan = arg;
    struct hd_key_rec key;
    int err = decode_api_key(cells, arena, &key, fault);

    return err ? err : scan->fn(scan->arg, &key);
}

int hd_keys_scan(struct heddle *store, hd_key_fn fn, void *arg, struct hd_fault *fault)
{
    struct hd_query query = {.table = HD_API_KEYS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    struct key_scan scan = {.fn = fn, .arg = arg};

    return hd_record_scan(store, query, on_key_row, &scan, fault);
}

static int write_key(struct hd_batch_builder *batch, struct hd_key_rec *rec, enum hd_op_kind kind)
{
    struct hd_record_writer writer;
    struct hd_slice body;
    int err;

    hd_record_begin(&writer);
    hd_record_put_text(&writer, "subject", rec->key.subject);
    hd_record_put_json(&writer, "admin", rec->key.is_admin ? HD_S("true") : HD_S(""));
    err = hd_record_end(&writer, &batch->arena, &body);
    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_API_KEYS_ID] = hd_cell_bytes(rec->key.id),
        [HD_API_KEYS_REV] = hd_cell_int(rec->rev + 1),
        [HD_API_KEYS_HASH] = hd_cell_bytes(rec->key.hash),
        [HD_API_KEYS_CREATED] = hd_cell_int(rec->created_at),
        [HD_API_KEYS_EXPIRES] = hd_record_time(rec->key.expires_at),
        [HD_API_KEYS_REVOKED] = hd_record_time(rec->key.revoked_at),
        [HD_API_KEYS_BODY] = hd_cell_bytes(body),
    };

    rec->rev++;
    return hd_batch_row(batch, kind, HD_API_KEYS, row);
}

int hd_key_add(struct hd_batch_builder *batch, struct hd_key_rec *key)
{
    key->rev = 0;
    return write_key(batch, key, HD_OP_ADD);
}

int hd_key_put(struct hd_batch_builder *batch, struct hd_key_rec *key)
{
    const struct hd_cell id = hd_cell_bytes(key->key.id);
    int err = hd_batch_expect(batch, HD_API_KEYS, &id, HD_API_KEYS_REV, key->rev);

    return err ? err : write_key(batch, key, HD_OP_PUT);
}

struct hd_slice hd_key_lane(void)
{
    return HD_S(":api_keys");
}
