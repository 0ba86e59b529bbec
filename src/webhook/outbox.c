#include "webhook/outbox.h"

#include <string.h>

#include "base/arena.h"
#include "records/record.h"
#include "store/codec/pack.h"
#include "store/rows.h"

#define KEY 3
#define MAX_BODY ((size_t)512 << 20)

static void set_key(const struct hd_outbox_row *row, struct hd_cell key[KEY])
{
    key[HD_OUTBOX_PRINCIPAL] = hd_cell_bytes(row->principal);
    key[HD_OUTBOX_THREAD] = hd_cell_bytes(row->thread_id);
    key[HD_OUTBOX_RUN] = hd_cell_bytes(row->run_id);
}

/* Programs without clusters send the id up to its 36th character. */
static int join_id(struct hd_arena *arena, const struct hd_outbox_row *row, struct hd_slice *out)
{
    char *text;

    *out = row->id;
    if (row->server.len == 0)
        return 0;
    text = hd_arena_printf(arena, "%.*s %.*s", (int)row->id.len, row->id.ptr, (int)row->server.len,
                           row->server.ptr);
    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

static void split_id(struct hd_slice text, struct hd_outbox_row *row)
{
    const char *space = text.len > 0 ? memchr(text.ptr, ' ', text.len) : NULL;
    size_t len = space ? (size_t)(space - text.ptr) : text.len;

    row->id = hd_slice(text.ptr, len);
    row->server = space ? hd_slice(space + 1, text.len - len - 1) : hd_slice("", 0);
}

int hd_outbox_put(struct hd_batch_builder *batch, const struct hd_outbox_row *row)
{
    struct hd_cell cells[] = {
        [HD_OUTBOX_CREATED] = hd_cell_int(row->created_at),
        [HD_OUTBOX_ID] = hd_cell_null(),
        [HD_OUTBOX_URL] = hd_cell_bytes(row->url),
        [HD_OUTBOX_BODY] = hd_cell_null(),
    };
    struct hd_slice id = {NULL, 0}, body = {NULL, 0};
    int err = hd_pack(&batch->arena, row->body, &body);

    if (!err)
        err = join_id(&batch->arena, row, &id);
    cells[HD_OUTBOX_ID] = hd_cell_bytes(id);
    cells[HD_OUTBOX_BODY] = hd_cell_bytes(body);
    set_key(row, cells);
    return err ? err : hd_batch_row(batch, HD_OP_PUT, HD_OUTBOX, cells);
}

int hd_outbox_delete(struct hd_batch_builder *batch, const struct hd_outbox_row *row)
{
    struct hd_cell key[KEY];

    set_key(row, key);
    return hd_batch_delete(batch, HD_OUTBOX, key, KEY);
}

int hd_outbox_remove(struct heddle *store, const struct hd_outbox_row *row,
                     struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err;

    hd_batch_init(&batch);
    err = hd_outbox_delete(&batch, row);
    if (!err)
        err = hd_thread_lane(&batch.arena, row->principal, row->thread_id, &lane);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

static int on_any_outbox_row(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 0;
}

int hd_outbox_find(struct heddle *store, const struct hd_outbox_row *row, bool *out,
                   struct heddle_error *fault)
{
    struct hd_cell key[KEY];
    const struct hd_query query = {
        .table = HD_OUTBOX, .index = HD_PRIMARY, .prefix = key, .prefix_count = KEY, .limit = 1};

    *out = false;
    set_key(row, key);
    return hd_rows_read(store, &query, 1, on_any_outbox_row, out, fault);
}

/* ---- reading ---------------------------------------------------------- */

struct outbox_reading {
    hd_outbox_fn fn;
    void *ctx;
    struct hd_arena arena;
};

static int on_outbox_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct outbox_reading *reading = arg;
    struct hd_outbox_row row = {
        .principal = cells[HD_OUTBOX_PRINCIPAL].bytes,
        .thread_id = cells[HD_OUTBOX_THREAD].bytes,
        .run_id = cells[HD_OUTBOX_RUN].bytes,
        .created_at = cells[HD_OUTBOX_CREATED].number,
        .url = cells[HD_OUTBOX_URL].bytes,
    };
    int err;

    (void)which;
    split_id(cells[HD_OUTBOX_ID].bytes, &row);
    hd_arena_reset(&reading->arena);
    err = hd_unpack_copy(&reading->arena, cells[HD_OUTBOX_BODY].bytes, &row.body);
    return err ? err : reading->fn(reading->ctx, &row);
}

int hd_outbox_read(struct heddle *store, const struct hd_outbox_row *after, size_t limit,
                   hd_outbox_fn fn, void *ctx, struct heddle_error *fault)
{
    struct outbox_reading reading = {.fn = fn, .ctx = ctx};
    struct hd_cell place[1 + KEY];
    struct hd_query query = {
        .table = HD_OUTBOX, .index = HD_OUTBOX_BY_AGE, .limit = limit, .columns = HD_ALL_COLUMNS};
    int err;

    if (after) {
        place[0] = hd_cell_int(after->created_at);
        set_key(after, place + 1);
        query.after = place;
        query.after_count = HD_COUNT(place);
    }
    hd_arena_init(&reading.arena, MAX_BODY);
    err = hd_rows_read(store, &query, 1, on_outbox_row, &reading, fault);
    hd_arena_fini(&reading.arena);
    return err;
}
