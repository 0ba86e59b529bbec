/*
 * The scan for secrets: each row is taken apart as its table is written, and each text in it
 * handed to the search (secret/secret_find.h).
 *
 * Values are stored in pieces. Each is looked at on its own, and together with the end of the one
 * before it in its stream, so that a secret that was cut in two is found too. Pieces that several
 * checkpoints share are read once: the scan costs what is stored, not what it stands for.
 */
#include "transfer/secret_scan.h"

#include <string.h>

#include "auth/identity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "events/event_page.h"
#include "records/recording_internal.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/rows.h"

#define MAX_ROW ((size_t)1 << 30)
#define TAIL 4096 /* bytes of the piece before */
#define PROGRESS_ROWS 1000

struct scanner {
    struct hd_secret_scan *scan;
    enum hd_table_id table;
    const struct hd_cell *cells;
    unsigned column;
    struct hd_arena arena; /* of one row */
    struct hd_buf joined;  /* the end of the piece before, and this one */
    struct hd_buf stream;  /* whose */
    size_t tail;
};

/* Bodies that name people: the agents of a room (`agents.0.actor`), its cascades (`actor`). */
static bool names_actor(const struct scanner *s, struct hd_slice place)
{
    const struct hd_slice actor = HD_S("actor");

    return (s->table == HD_ROOM || s->table == HD_ROOM_CASCADES) && place.len >= actor.len &&
           hd_slice_eq(hd_slice(place.ptr + place.len - actor.len, actor.len), actor);
}

/* A principal is a random-looking hash, and one in many thousands begins like an API key. */
static bool is_principal(const struct scanner *s, const struct hd_secret_finding *finding)
{
    struct hd_slice column = hd_slice_cstr(hd_tables[s->table].columns[s->column].name);
    bool is_body = s->table == HD_RUNS || s->table == HD_PRINCIPALS;

    if (finding->secret.len != HD_PRINCIPAL_LEN)
        return false;
    if (names_actor(s, finding->place))
        return true;
    return hd_slice_eq(column, HD_S("principal")) || hd_slice_eq(column, HD_S("member")) ||
           hd_slice_eq(column, HD_S("sender")) || hd_slice_eq(column, HD_S("reader")) ||
           (is_body && (hd_slice_eq(finding->place, HD_S("actor")) ||
                        hd_slice_eq(finding->place, HD_S("moved_to"))));
}

static int on_finding(void *ctx, const struct hd_secret_finding *finding)
{
    struct scanner *s = ctx;
    struct hd_secret_place place = {s->table, s->cells, s->column, finding};

    return is_principal(s, finding) ? 0 : s->scan->found(s->scan->ctx, &place);
}

static int look_at_text(struct scanner *s, struct hd_slice text)
{
    return hd_secret_find(text, on_finding, s);
}

/* ---- references and pieces ---------------------------------------------- */

static int look_at_ref(struct scanner *s, struct hd_slice encoded)
{
    struct hd_ref ref;
    int err = hd_ref_parse(encoded, HD_S(""), &s->arena, &ref);

    if (err)
        return err;
    if (ref.is_inline)
        return look_at_text(s, ref.inline_bytes);
    for (size_t i = 0; !err && i < ref.segment_count; i++) {
        if (!ref.segments[i].is_extent)
            err = look_at_text(s, ref.segments[i].literal);
    }
    return err;
}

static int look_at_body(struct scanner *s, struct hd_slice packed)
{
    struct hd_slice encoded;
    struct hd_checkpoint_body body = {0};
    int err = hd_unpack_copy(&s->arena, packed, &encoded);

    if (!err)
        err = hd_checkpoint_body_parse(encoded, &s->arena, &body);
    if (!err)
        err = look_at_text(s, body.json);
    for (size_t i = 0; !err && i < body.entry_count; i++)
        err = look_at_ref(s, body.entries[i].ref);
    return err;
}

/* Of what lies across the border alone: the rest was or will be found in its own piece. */
static int on_joined(void *ctx, const struct hd_secret_finding *finding)
{
    struct scanner *s = ctx;
    const char *border = s->joined.ptr + s->tail;

    if (!finding->from || finding->from >= border ||
        finding->secret.ptr + finding->secret.len <= border)
        return 0;
    return on_finding(ctx, finding);
}

/* Only the end of what was joined is of use with the next piece. */
static int keep_tail(struct scanner *s, struct hd_slice piece)
{
    struct hd_buf *joined = &s->joined;
    int err = 0;

    if (piece.len > TAIL) { /* its beginning alone was joined */
        hd_buf_reset(joined);
        err = hd_buf_append(joined, piece.ptr + piece.len - TAIL, TAIL);
    } else if (joined->len > TAIL) {
        memmove(joined->ptr, joined->ptr + joined->len - TAIL, TAIL);
        joined->len = TAIL;
    }
    s->tail = joined->len;
    return err;
}

static bool is_same_stream(const struct scanner *s)
{
    struct hd_slice stream = s->cells[HD_CHUNKS_STREAM].bytes;
    struct hd_slice thread = s->cells[HD_CHUNKS_THREAD].bytes;
    struct hd_slice known = hd_buf_slice(&s->stream);

    return known.len == thread.len + stream.len && hd_slice_starts(known, thread) &&
           hd_slice_eq(hd_slice(known.ptr + thread.len, stream.len), stream);
}

static int begin_stream(struct scanner *s)
{
    int err;

    hd_buf_reset(&s->joined);
    hd_buf_reset(&s->stream);
    s->tail = 0;
    err = hd_buf_append_slice(&s->stream, s->cells[HD_CHUNKS_THREAD].bytes);
    return err ? err : hd_buf_append_slice(&s->stream, s->cells[HD_CHUNKS_STREAM].bytes);
}

static int look_at_chunk(struct scanner *s, struct hd_slice packed)
{
    struct hd_slice piece;
    int err = hd_unpack_copy(&s->arena, packed, &piece);

    if (!err)
        err = look_at_text(s, piece);
    if (!err && !is_same_stream(s))
        err = begin_stream(s);
    if (!err)
        err = hd_buf_append_slice(&s->joined,
                                  hd_slice(piece.ptr, piece.len < TAIL ? piece.len : TAIL));
    if (!err && s->tail > 0)
        err = hd_secret_find_pieces(hd_buf_slice(&s->joined), on_joined, s);
    return err ? err : keep_tail(s, piece);
}

/* ---- what the server packs ---------------------------------------------- */

/* As event_log_store.c writes them. */
static int look_at_page(struct scanner *s, struct hd_slice packed)
{
    struct hd_event_page_reader reader;
    struct hd_event_page_item event;
    struct hd_slice page;
    int err = hd_unpack_copy(&s->arena, packed, &page);

    if (err)
        return err;
    reader = hd_event_page_reader(s->cells[HD_EVENT_PAGES_RUN].bytes, page);
    while (!err) {
        err = hd_event_page_reader_next(&reader, &event);
        if (!err)
            err = look_at_text(s, event.data);
        if (!err)
            err = look_at_text(s, event.name);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

static int look_at_webhook(struct scanner *s, struct hd_slice packed)
{
    struct hd_slice text;
    int err = hd_unpack_copy(&s->arena, packed, &text);

    return err ? err : look_at_text(s, text);
}

static int look_at_exchange(struct scanner *s, struct hd_slice packed)
{
    struct hd_kept_exchange kept = {.status = 0};
    struct hd_slice text;
    int err = hd_unpack_copy(&s->arena, packed, &text);

    if (!err)
        err = hd_kept_read(text, &kept);
    if (!err)
        err = hd_secret_find_headers(kept.headers, on_finding, s);

    const struct hd_slice parts[] = {kept.url, kept.request, kept.error, kept.body, kept.place};

    for (size_t i = 0; !err && i < HD_COUNT(parts); i++)
        err = look_at_text(s, parts[i]);
    return err;
}

/* ---- rows ------------------------------------------------------------- */

static int look_at_cell(struct scanner *s, const struct hd_cell *cell)
{
    if (s->table == HD_CHECKPOINTS && s->column == HD_CHECKPOINTS_BODY)
        return look_at_body(s, cell->bytes);
    if (s->table == HD_WRITES && s->column == HD_WRITES_VALUE)
        return look_at_ref(s, cell->bytes);
    if (s->table == HD_CHUNKS && s->column == HD_CHUNKS_DATA)
        return look_at_chunk(s, cell->bytes);
    if (s->table == HD_CHUNKS && s->column == HD_CHUNKS_HASH)
        return 0;
    if (s->table == HD_EVENT_PAGES && s->column == HD_EVENT_PAGES_DATA)
        return look_at_page(s, cell->bytes);
    if (s->table == HD_EXCHANGES && s->column == HD_EXCHANGES_DATA)
        return look_at_exchange(s, cell->bytes);
    if (s->table == HD_OUTBOX && s->column == HD_OUTBOX_BODY)
        return look_at_webhook(s, cell->bytes);
    return look_at_text(s, cell->bytes);
}

static int on_scanned_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct scanner *s = arg;
    uint64_t *rows = &s->scan->rows[s->table];
    int err = 0;

    (void)which;
    hd_arena_reset(&s->arena);
    s->cells = cells;
    for (unsigned i = 0; !err && i < hd_tables[s->table].column_count; i++) {
        s->column = i;
        if (cells[i].kind == HD_CELL_BYTES)
            err = look_at_cell(s, &cells[i]);
    }
    ++*rows;
    if (s->scan->progress && *rows % PROGRESS_ROWS == 0)
        s->scan->progress(s->scan->ctx, s->table, *rows);
    return err;
}

int hd_secret_scan(struct heddle *store, struct hd_secret_scan *scan, struct heddle_error *fault)
{
    struct scanner s = {.scan = scan};
    int err = 0;

    memset(scan->rows, 0, sizeof(scan->rows));
    hd_arena_init(&s.arena, MAX_ROW);
    hd_buf_init(&s.joined, (size_t)2 * TAIL);
    hd_buf_init(&s.stream, MAX_ROW);
    for (int table = 0; !err && table < HD_TABLE_COUNT; table++) {
        struct hd_query query = {
            .table = (enum hd_table_id)table, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};

        s.table = query.table;
        err = hd_rows_scan(store, query, on_scanned_row, &s, fault);
    }
    hd_buf_fini(&s.stream);
    hd_buf_fini(&s.joined);
    hd_arena_fini(&s.arena);
    return err;
}
