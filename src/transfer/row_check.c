#include "transfer/row_check.h"

#include <heddle.h>

#include "base/json.h"
#include "base/utf8.h"
#include "events/event_page.h"
#include "records/recording_internal.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/rows.h"

#define MAX_ROW ((size_t)1 << 30)
#define MAX_KEY_TEXT 60 /* bytes of each part of a key that a fault shows */

struct row_checker {
    enum hd_table_id table;
    struct hd_arena arena; /* of one row */
    struct heddle_error *fault;
    uint64_t rows;
};

/* NULL: it is sound. */
typedef const char *(*check_fn)(struct row_checker *c, const struct hd_cell *cells,
                                unsigned column);

static const char *check_json(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    struct hd_json json = {NULL};
    struct hd_slice text = cells[column].bytes;
    int err = text.len > 0 ? hd_json_parse(&json, text, NULL) : 0;

    (void)c;
    hd_json_fini(&json);
    return err ? "is not JSON" : NULL;
}

static const char *check_object(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    struct hd_slice text = cells[column].bytes;

    if (text.len > 0 && text.ptr[0] != '{')
        return "is not a JSON object";
    return check_json(c, cells, column);
}

static const char *check_body(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    struct hd_json json = {NULL};
    struct hd_slice encoded;
    struct hd_checkpoint_body body = {0};
    int err = hd_unpack_copy(&c->arena, cells[column].bytes, &encoded);

    if (!err)
        err = hd_checkpoint_body_parse(encoded, &c->arena, &body);
    if (!err && hd_json_parse(&json, body.json, NULL))
        err = HD_ECORRUPT;
    hd_json_fini(&json);
    return err ? "cannot be decoded" : NULL;
}

static const char *check_ref(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    struct hd_ref ref;

    return hd_ref_parse(cells[column].bytes, HD_S(""), &c->arena, &ref) ? "cannot be decoded"
                                                                        : NULL;
}

static const char *check_chunk(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    struct hd_slice piece;

    return hd_unpack_copy(&c->arena, cells[column].bytes, &piece) ? "cannot be unpacked" : NULL;
}

static const char *check_page(struct row_checker *c, const struct hd_cell *cells, unsigned column)
{
    uint64_t first = (uint64_t)cells[HD_EVENT_PAGES_FIRST].number;
    uint64_t last = (uint64_t)cells[HD_EVENT_PAGES_LAST].number;
    struct hd_event_page_reader reader;
    struct hd_event_page_item event;
    struct hd_slice page;
    int err;

    if (hd_unpack_copy(&c->arena, cells[column].bytes, &page))
        return "cannot be unpacked";
    reader = hd_event_page_reader(cells[HD_EVENT_PAGES_RUN].bytes, page);
    while ((err = hd_event_page_reader_next(&reader, &event)) == 0) {
        if (event.seq < first || event.seq > last)
            return "has an event outside its range";
        if (!hd_utf8_is_valid(event.data) || !hd_utf8_is_valid(event.name))
            return "has an event that is not text";
    }
    return err == HD_ENOTFOUND ? NULL : "is cut off within an event";
}

static const char *check_exchange(struct row_checker *c, const struct hd_cell *cells,
                                  unsigned column)
{
    struct hd_kept_exchange kept = {.status = 0};
    struct hd_slice text;
    int err = hd_unpack_copy(&c->arena, cells[column].bytes, &text);

    if (!err)
        err = hd_kept_read(text, &kept);
    return err ? "cannot be decoded" : NULL;
}

static const struct {
    enum hd_table_id table;
    unsigned column;
    check_fn check;
} checks[] = {
    {HD_CHECKPOINTS, HD_CHECKPOINTS_METADATA, check_object},
    {HD_CHECKPOINTS, HD_CHECKPOINTS_BODY, check_body},
    {HD_WRITES, HD_WRITES_VALUE, check_ref},
    {HD_CHUNKS, HD_CHUNKS_DATA, check_chunk},
    {HD_ASSISTANTS, HD_ASSISTANTS_BODY, check_object},
    {HD_ASSISTANT_VERSIONS, HD_ASSISTANT_VERSIONS_BODY, check_object},
    {HD_THREAD_INFO, HD_THREAD_INFO_BODY, check_object},
    {HD_RUNS, HD_RUNS_BODY, check_object},
    {HD_EVENT_PAGES, HD_EVENT_PAGES_DATA, check_page},
    {HD_ITEMS, HD_ITEMS_VALUE, check_json},
    {HD_CRONS, HD_CRONS_BODY, check_object},
    {HD_EXCHANGES, HD_EXCHANGES_DATA, check_exchange},
    {HD_PRINCIPALS, HD_PRINCIPALS_BODY, check_object},
    {HD_PARTICIPANTS, HD_PARTICIPANTS_BODY, check_object},
    {HD_INVITATIONS, HD_INVITATIONS_BODY, check_object},
    {HD_API_KEYS, HD_API_KEYS_BODY, check_object},
    {HD_LINES, HD_LINES_BODY, check_object},
    {HD_ROOM, HD_ROOM_BODY, check_object},
    {HD_ROOM_MESSAGES, HD_ROOM_MESSAGES_BODY, check_object},
    {HD_ROOM_CONTENTS, HD_ROOM_CONTENTS_CONTENT, check_json},
    {HD_ROOM_CONTENTS, HD_ROOM_CONTENTS_BODY, check_object},
    {HD_ROOM_RUNS, HD_ROOM_RUNS_BODY, check_object},
    {HD_ROOM_CASCADES, HD_ROOM_CASCADES_BODY, check_object},
    {HD_ROOM_READS, HD_ROOM_READS_BODY, check_object},
};

/* "runs, body of 'a', 'b': is not JSON". */
static int report_row(struct row_checker *c, const struct hd_cell *cells, unsigned column,
                      const char *what)
{
    const struct hd_table *table = &hd_tables[c->table];
    struct hd_buf key;
    int err;

    hd_buf_init(&key, 1024);
    for (unsigned i = 0; i < table->key_count; i++) {
        struct hd_slice part = cells[i].bytes;
        size_t len = part.len < MAX_KEY_TEXT ? part.len : hd_utf8_cut(part.ptr, MAX_KEY_TEXT);

        if (cells[i].kind != HD_CELL_BYTES || part.len == 0)
            continue;
        if (hd_buf_printf(&key, "%s'%.*s'", key.len > 0 ? ", " : "", (int)len, part.ptr))
            break;
    }
    err = hd_error_set(c->fault, HD_ECORRUPT, "table %s: the %s of %.*s %s", table->name,
                       table->columns[column].name, (int)key.len, key.len > 0 ? key.ptr : "", what);
    hd_buf_fini(&key);
    return err;
}

static int on_checked_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct row_checker *c = arg;

    (void)which;
    c->rows++;
    for (size_t i = 0; i < HD_COUNT(checks); i++) {
        const char *what;

        if (checks[i].table != c->table || cells[checks[i].column].kind != HD_CELL_BYTES)
            continue;
        hd_arena_reset(&c->arena);
        what = checks[i].check(c, cells, checks[i].column);
        if (what)
            return report_row(c, cells, checks[i].column, what);
    }
    return 0;
}

int hd_row_check(struct heddle *store, uint64_t *rows, struct heddle_error *fault)
{
    struct row_checker c = {.fault = fault};
    int err = 0;

    hd_arena_init(&c.arena, MAX_ROW);
    for (int table = 0; !err && table < HD_TABLE_COUNT; table++) {
        struct hd_query query = {
            .table = (enum hd_table_id)table, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};

        c.table = query.table;
        err = hd_rows_scan(store, query, on_checked_row, &c, fault);
    }
    hd_arena_fini(&c.arena);
    *rows = c.rows;
    return err;
}
