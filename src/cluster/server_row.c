#include "cluster/server_row.h"

#include <string.h>

#include "base/buf.h"
#include "store/rows.h"

#define MAX_BODY ((size_t)8192)

/* ---- reading ---------------------------------------------------------- */

static const struct hd_query all_rows = {
    .table = HD_SERVERS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};

static int on_server_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_server_rows *rows = arg;
    struct hd_slice slot = cells[HD_SERVERS_SLOT].bytes;
    struct hd_server_row *row;

    (void)which;
    if (slot.len >= sizeof(row->slot))
        return 0; /* none of this version's */
    if (rows->count == HD_COUNT(rows->items))
        return 1;
    row = &rows->items[rows->count++];
    memset(row, 0, sizeof(*row));
    if (slot.len > 0)
        memcpy(row->slot, slot.ptr, slot.len);
    row->token = cells[HD_SERVERS_TOKEN].number;
    row->beat = cells[HD_SERVERS_BEAT].number;
    row->started_at = cells[HD_SERVERS_STARTED].number;
    hd_server_identity_read(cells[HD_SERVERS_BODY].bytes, &row->identity);
    return 0;
}

int hd_server_row_read_all(struct hd_backend *backend, struct hd_server_rows *out,
                           struct heddle_error *fault)
{
    out->count = 0;
    return hd_backend_read(backend, &all_rows, 1, on_server_row, out, fault);
}

int hd_server_row_read_store(struct heddle *store, struct hd_server_rows *out,
                             struct heddle_error *fault)
{
    out->count = 0;
    return hd_rows_read(store, &all_rows, 1, on_server_row, out, fault);
}

const struct hd_server_row *hd_server_row_find(const struct hd_server_rows *rows, const char *slot)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->items[i].slot, slot) == 0)
            return &rows->items[i];
    }
    return NULL;
}

/* ---- changes ---------------------------------------------------------- */

static struct hd_cell slot_cell(const char *slot)
{
    return hd_cell_bytes(hd_slice_cstr(slot));
}

int hd_server_row_put(struct hd_batch_builder *batch, enum hd_op_kind kind,
                      const struct hd_server_row *row)
{
    struct hd_slice stored = {0};
    struct hd_buf body;
    int err;

    hd_buf_init(&body, MAX_BODY);
    err = hd_server_identity_write(&row->identity, &body);
    if (!err)
        err = hd_arena_copy(&batch->arena, hd_buf_slice(&body), &stored);
    hd_buf_fini(&body);
    if (err)
        return err;

    const struct hd_cell cells[] = {
        [HD_SERVERS_SLOT] = slot_cell(row->slot),
        [HD_SERVERS_TOKEN] = hd_cell_int(row->token),
        [HD_SERVERS_BEAT] = hd_cell_int(row->beat),
        [HD_SERVERS_STARTED] = hd_cell_int(row->started_at),
        [HD_SERVERS_BODY] = hd_cell_bytes(stored),
    };

    return hd_batch_row(batch, kind, HD_SERVERS, cells);
}

int hd_server_row_expect(struct hd_batch_builder *batch, const char *slot, int64_t token)
{
    const struct hd_cell key[] = {slot_cell(slot)};

    return hd_batch_expect(batch, HD_SERVERS, key, HD_SERVERS_TOKEN, token);
}

int hd_server_row_beat(struct hd_batch_builder *batch, const char *slot, int64_t token,
                       int64_t beat)
{
    const struct hd_cell key[] = {slot_cell(slot)};

    return hd_batch_expect_and_set(batch, HD_SERVERS, key, HD_SERVERS_TOKEN, token, HD_SERVERS_BEAT,
                                   beat);
}

int hd_server_row_expect_seen(struct hd_batch_builder *batch, const struct hd_server_row *seen)
{
    const struct hd_cell key[] = {slot_cell(seen->slot)};
    int err = hd_batch_expect(batch, HD_SERVERS, key, HD_SERVERS_BEAT, seen->beat);

    return err ? err : hd_batch_expect(batch, HD_SERVERS, key, HD_SERVERS_TOKEN, seen->token);
}

int hd_server_row_delete(struct hd_batch_builder *batch, const char *slot)
{
    const struct hd_cell key[] = {slot_cell(slot)};

    return hd_batch_delete(batch, HD_SERVERS, key, HD_COUNT(key));
}

int hd_server_row_apply(struct hd_backend *backend, struct hd_batch_builder *batch,
                        struct heddle_error *fault)
{
    struct hd_batch view = hd_batch_view(batch);
    int err = hd_backend_apply(backend, &view, NULL, fault);

    hd_batch_reset(batch);
    return err;
}
