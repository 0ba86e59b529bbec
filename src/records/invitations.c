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

/* ---- reading ---------------------------------------------------------- */

/* Borrows from the cells. */
static int decode_invitation(const struct hd_cell *cells, struct hd_invitation_rec *out,
                             struct hd_fault *fault)
{
    int64_t role = cells[HD_INVITATIONS_ROLE].number;
    struct hd_slice uses;
    const struct hd_member member = {"uses", &uses};
    int err;

    *out = (struct hd_invitation_rec){
        .id = cells[HD_INVITATIONS_ID].bytes,
        .rev = cells[HD_INVITATIONS_REV].number,
        .owner = cells[HD_INVITATIONS_OWNER].bytes,
        .thread_id = cells[HD_INVITATIONS_THREAD].bytes,
        .role = (enum hd_role)role,
        .left = cells[HD_INVITATIONS_LEFT].number,
        .created_at = cells[HD_INVITATIONS_CREATED].number,
        .expires_at = cells[HD_INVITATIONS_EXPIRES].number,
    };
    err = hd_record_split(cells[HD_INVITATIONS_BODY].bytes, &member, 1);
    if (!err)
        err = hd_record_int(uses, &out->uses);
    if (!err && role != HD_ROLE_VIEWER && role != HD_ROLE_EDITOR)
        err = HD_ECORRUPT;
    return err == HD_ECORRUPT ? hd_record_damaged(HD_INVITATIONS, out->id, fault) : err;
}

static bool is_over(const struct hd_invitation_rec *invitation, int64_t now)
{
    return invitation->left <= 0 || (invitation->expires_at && invitation->expires_at <= now);
}

int hd_invitation_read(struct heddle *store, struct hd_slice id, int64_t now,
                       struct hd_arena *arena, struct hd_invitation_rec *out,
                       struct hd_fault *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_INVITATIONS, &key, 1, arena, cells, fault);

    if (!err)
        err = decode_invitation(cells, out, fault);
    return !err && is_over(out, now) ? HD_ENOTFOUND : err;
}

struct invitation_scan {
    hd_invitation_fn fn;
    void *arg;
    struct hd_fault *fault;
};

static int on_invitation_row(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct invitation_scan *scan = arg;
    struct hd_invitation_rec invitation;
    int err = decode_invitation(cells, &invitation, scan->fault);

    (void)which;
    return err ? err : scan->fn(scan->arg, &invitation);
}

int hd_invitations_scan(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                        hd_invitation_fn fn, void *arg, struct hd_fault *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(owner), hd_cell_bytes(thread_id)};
    struct invitation_scan scan = {.fn = fn, .arg = arg, .fault = fault};
    struct hd_query query = {.table = HD_INVITATIONS,
                             .index = HD_INVITATIONS_BY_THREAD,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .columns = HD_ALL_COLUMNS};

    return hd_rows_scan(store, query, on_invitation_row, &scan, fault);
}

/* ---- writing ---------------------------------------------------------- */

static int write_invitation(struct hd_batch_builder *batch, struct hd_invitation_rec *invitation,
                            enum hd_op_kind kind)
{
    struct hd_record_writer writer;
    struct hd_slice body;
    int err;

    hd_record_begin(&writer);
    hd_record_put_int(&writer, "uses", invitation->uses);
    err = hd_record_end(&writer, &batch->arena, &body);
    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_INVITATIONS_ID] = hd_cell_bytes(invitation->id),
        [HD_INVITATIONS_REV] = hd_cell_int(invitation->rev + 1),
        [HD_INVITATIONS_OWNER] = hd_cell_bytes(invitation->owner),
        [HD_INVITATIONS_THREAD] = hd_cell_bytes(invitation->thread_id),
        [HD_INVITATIONS_ROLE] = hd_cell_int(invitation->role),
        [HD_INVITATIONS_LEFT] = hd_cell_int(invitation->left),
        [HD_INVITATIONS_CREATED] = hd_cell_int(invitation->created_at),
        [HD_INVITATIONS_EXPIRES] = hd_record_time(invitation->expires_at),
        [HD_INVITATIONS_BODY] = hd_cell_bytes(body),
    };

    invitation->rev++;
    return hd_batch_row(batch, kind, HD_INVITATIONS, row);
}

int hd_invitation_add(struct hd_batch_builder *batch, const struct hd_thread_rec *thread,
                      struct hd_invitation_rec *invitation)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    int err =
        hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED, thread->created_at);

    invitation->rev = 0;
    invitation->owner = thread->principal;
    invitation->thread_id = thread->id;
    return err ? err : write_invitation(batch, invitation, HD_OP_ADD);
}

int hd_invitation_use(struct hd_batch_builder *batch, struct hd_invitation_rec *invitation)
{
    const struct hd_cell key = hd_cell_bytes(invitation->id);
    int err = hd_batch_expect(batch, HD_INVITATIONS, &key, HD_INVITATIONS_REV, invitation->rev);

    if (err)
        return err;
    invitation->left--;
    if (invitation->left <= 0)
        return hd_batch_delete(batch, HD_INVITATIONS, &key, 1);
    return write_invitation(batch, invitation, HD_OP_PUT);
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
                          struct hd_fault *fault)
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
