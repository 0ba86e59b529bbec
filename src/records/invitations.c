#include <openssl/rand.h>

#include "auth/base64url.h"
#include "auth/digest.h"
#include "records/participants.h"
#include "records/record_internal.h"

#define TOKEN_BYTES 32

_Static_assert(HD_INVITATION_ID_LEN == HD_SHA256_HEX_LEN, "the id is the hash");
_Static_assert(HD_INVITATION_TOKEN_LEN == HD_BASE64URL_LEN(TOKEN_BYTES), "the token's bytes");

/* ---- tokens ----------------------------------------------------------- */

int hd_invitation_token(char token[HD_INVITATION_TOKEN_SIZE])
{
    unsigned char bytes[TOKEN_BYTES];

    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return HD_EIO;
    hd_base64url_encode(bytes, sizeof(bytes), token);
    token[HD_INVITATION_TOKEN_LEN] = '\0';
    return 0;
}

int hd_invitation_id(struct hd_slice token, char id[HD_INVITATION_ID_SIZE])
{
    return hd_sha256_hex(token, id);
}

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_invitation_rec

static const struct hd_record_field invitation_members[] = {
    {HD_RECORD_MEMBER("uses", INT, REC, uses)},
};

static int complete_invitation(const struct hd_cell *cells, void *record)
{
    int64_t role = cells[HD_INVITATIONS_ROLE].number;

    (void)record;
    return role == HD_ROLE_VIEWER || role == HD_ROLE_EDITOR ? 0 : HD_ECORRUPT;
}

static int call_invitation_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_invitation_fn *)fn)(arg, record);
}

static const struct hd_record_type invitation_type = {
    .table = HD_INVITATIONS,
    .size = sizeof(REC),
    .id = HD_INVITATIONS_ID,
    .rev = HD_INVITATIONS_REV,
    .columns =
        {
            [HD_INVITATIONS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_INVITATIONS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_INVITATIONS_OWNER] = {HD_RECORD_COLUMN(TEXT, REC, owner)},
            [HD_INVITATIONS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_INVITATIONS_ROLE] = {HD_RECORD_COLUMN(INT, REC, role)},
            [HD_INVITATIONS_LEFT] = {HD_RECORD_COLUMN(INT, REC, left)},
            [HD_INVITATIONS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_INVITATIONS_EXPIRES] = {HD_RECORD_COLUMN(INT, REC, expires_at)},
            [HD_INVITATIONS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(invitation_members),
    .unknown = offsetof(REC, unknown),
    .complete = complete_invitation,
    .call = call_invitation_fn,
};

/* ---- reading ---------------------------------------------------------- */

static bool is_over(const struct hd_invitation_rec *invitation, int64_t now)
{
    return invitation->left <= 0 || (invitation->expires_at && invitation->expires_at <= now);
}

int hd_invitation_read(struct heddle *store, struct hd_slice id, int64_t now,
                       struct hd_arena *arena, struct hd_invitation_rec *out,
                       struct heddle_error *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);
    int err = hd_record_read(store, &invitation_type, &key, 1, arena, out, fault);

    return !err && is_over(out, now) ? HD_ENOTFOUND : err;
}

int hd_invitations_scan(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                        hd_invitation_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(owner), hd_cell_bytes(thread_id)};
    const struct hd_query query = {
        .index = HD_INVITATIONS_BY_THREAD, .prefix = prefix, .prefix_count = HD_COUNT(prefix)};

    return hd_records_scan(store, &invitation_type, query, &fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

int hd_invitation_add(struct hd_batch_builder *batch, const struct hd_thread_rec *thread,
                      struct hd_invitation_rec *invitation)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    int err =
        hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED, thread->created_at);

    invitation->owner = thread->principal;
    invitation->thread_id = thread->id;
    return err ? err : hd_record_add(batch, &invitation_type, invitation);
}

int hd_invitation_use(struct hd_batch_builder *batch, struct hd_invitation_rec *invitation)
{
    const struct hd_cell key = hd_cell_bytes(invitation->id);
    int err;

    invitation->left--;
    if (invitation->left > 0)
        return hd_record_put(batch, &invitation_type, invitation);
    err = hd_batch_expect(batch, HD_INVITATIONS, &key, HD_INVITATIONS_REV, invitation->rev);
    return err ? err : hd_record_delete(batch, &invitation_type, invitation);
}

int hd_invitation_delete(struct hd_batch_builder *batch, struct hd_slice id)
{
    const struct hd_cell key = hd_cell_bytes(id);

    return hd_batch_delete(batch, HD_INVITATIONS, &key, 1);
}

/* ---- those that have expired ------------------------------------------ */

static int on_expired(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_batch_builder *batch = arg;
    struct hd_slice id;
    int err = hd_arena_copy(&batch->arena, cells[HD_INVITATIONS_ID].bytes, &id);

    (void)which;
    return err ? err : hd_invitation_delete(batch, id);
}

int hd_invitations_expire(struct heddle *store, int64_t now, size_t most, size_t *count,
                          struct heddle_error *fault)
{
    /*
     * The life of an invitation is never extended, so an expired one is deleted without a
     * condition.
     */
    const struct hd_cell high = hd_cell_int(now + 1);
    const struct hd_query query = {.table = HD_INVITATIONS,
                                   .index = HD_INVITATIONS_BY_EXPIRY,
                                   .high = &high,
                                   .limit = most,
                                   .columns = 0};
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_rows_read(store, &query, 1, on_expired, &batch, fault);
    view = hd_batch_view(&batch);
    *count = batch.count;
    if (!err && batch.count > 0)
        err = hd_rows_apply(store, HD_S("invitations"), &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}
