/* Rows to lines, and which columns there are in them. Pure. */
#include <string.h>

#include "transfer/dump_internal.h"

/* The tables of a thread, in the order in which reading is safe while it grows: see export.c. */
const enum hd_table_id hd_dump_thread_tables[] = {
    HD_THREADS,       HD_CHECKPOINTS,   HD_WRITES,       HD_CHUNKS,      HD_RUNS,
    HD_EVENT_PAGES,   HD_EXCHANGES,     HD_PARTICIPANTS, HD_LINES,       HD_ROOM,
    HD_ROOM_MESSAGES, HD_ROOM_CONTENTS, HD_ROOM_IDS,     HD_ROOM_RUNS,   HD_ROOM_CASCADES,
    HD_ROOM_READS,    HD_ROOM_MENTIONS, HD_THREAD_INFO,  HD_TABLE_COUNT,
};

const enum hd_table_id hd_dump_principal_tables[] = {
    HD_ASSISTANTS, HD_ASSISTANT_VERSIONS, HD_ITEMS, HD_VECTORS, HD_CRONS, HD_TABLE_COUNT,
};

static bool is_listed_table(const enum hd_table_id *list, enum hd_table_id table)
{
    while (*list != HD_TABLE_COUNT && *list != table)
        list++;
    return *list == table;
}

/* Principal and thread: written once per thread, or set by the import. */
static bool is_address(enum hd_table_id table, const char *name)
{
    if (strcmp(name, "principal") == 0)
        return true;
    return strcmp(name, "thread_id") == 0 && is_listed_table(hd_dump_thread_tables, table);
}

bool hd_dump_is_packed(enum hd_table_id table, unsigned column)
{
    return (table == HD_CHECKPOINTS && column == HD_CHECKPOINTS_BODY) ||
           (table == HD_CHUNKS && column == HD_CHUNKS_DATA) ||
           (table == HD_EVENT_PAGES && column == HD_EVENT_PAGES_DATA) ||
           (table == HD_EXCHANGES && column == HD_EXCHANGES_DATA);
}

bool hd_dump_is_person(enum hd_table_id table, unsigned column)
{
    return (table == HD_ROOM_MESSAGES && column == HD_ROOM_MESSAGES_SENDER) ||
           (table == HD_ROOM_READS && column == HD_ROOM_READS_READER) ||
           (table == HD_ROOM_MENTIONS && column == HD_ROOM_MENTIONS_MEMBER);
}

/* Columns that are more than text and numbers. */
static bool special(enum hd_table_id table, unsigned column, enum hd_dump_column *out)
{
    static const struct {
        enum hd_table_id table;
        unsigned column;
        enum hd_dump_column kind;
    } list[] = {
        {HD_THREADS, HD_THREADS_EPOCH, HD_DUMP_LEFT_OUT},
        {HD_CHECKPOINTS, HD_CHECKPOINTS_METADATA, HD_DUMP_BYTES},
        {HD_CHECKPOINTS, HD_CHECKPOINTS_BODY, HD_DUMP_BODY},
        {HD_WRITES, HD_WRITES_VALUE, HD_DUMP_REF},
        {HD_CHUNKS, HD_CHUNKS_HASH, HD_DUMP_LEFT_OUT},
        {HD_CHUNKS, HD_CHUNKS_DATA, HD_DUMP_BYTES},
        {HD_ASSISTANTS, HD_ASSISTANTS_BODY, HD_DUMP_BYTES},
        {HD_ASSISTANT_VERSIONS, HD_ASSISTANT_VERSIONS_BODY, HD_DUMP_BYTES},
        {HD_THREAD_INFO, HD_THREAD_INFO_BODY, HD_DUMP_BYTES},
        {HD_RUNS, HD_RUNS_BODY, HD_DUMP_BYTES},
        {HD_EVENT_PAGES, HD_EVENT_PAGES_DATA, HD_DUMP_PAGE},
        {HD_ITEMS, HD_ITEMS_VALUE, HD_DUMP_BYTES},
        {HD_VECTORS, HD_VECTORS_DATA, HD_DUMP_BYTES},
        {HD_CRONS, HD_CRONS_BODY, HD_DUMP_BYTES},
        {HD_EXCHANGES, HD_EXCHANGES_DATA, HD_DUMP_EXCHANGE},
        {HD_PARTICIPANTS, HD_PARTICIPANTS_BODY, HD_DUMP_BYTES},
        {HD_ROOM, HD_ROOM_BODY, HD_DUMP_BYTES},
        {HD_ROOM_MESSAGES, HD_ROOM_MESSAGES_BODY, HD_DUMP_BYTES},
        {HD_ROOM_CONTENTS, HD_ROOM_CONTENTS_CONTENT, HD_DUMP_BYTES},
        {HD_ROOM_CONTENTS, HD_ROOM_CONTENTS_BODY, HD_DUMP_BYTES},
        {HD_ROOM_RUNS, HD_ROOM_RUNS_BODY, HD_DUMP_BYTES},
        {HD_ROOM_CASCADES, HD_ROOM_CASCADES_BODY, HD_DUMP_BYTES},
        {HD_ROOM_READS, HD_ROOM_READS_BODY, HD_DUMP_BYTES},
    };

    for (size_t i = 0; i < HD_COUNT(list); i++) {
        if (list[i].table == table && list[i].column == column) {
            *out = list[i].kind;
            return true;
        }
    }
    return false;
}

enum hd_dump_column hd_dump_column(enum hd_table_id table, unsigned column)
{
    const struct hd_column *declared = &hd_tables[table].columns[column];
    enum hd_dump_column kind;

    if (is_address(table, declared->name) || (!is_listed_table(hd_dump_thread_tables, table) &&
                                              !is_listed_table(hd_dump_principal_tables, table)))
        return HD_DUMP_LEFT_OUT;
    if (special(table, column, &kind))
        return kind;
    return declared->type == HD_COL_INT ? HD_DUMP_INT : HD_DUMP_TEXT;
}

/* ---- writing ---------------------------------------------------------- */

static int write_readable(struct hd_buf *out, enum hd_dump_column kind, struct hd_slice bytes,
                          struct hd_slice own, struct hd_arena *arena)
{
    switch (kind) {
    case HD_DUMP_BODY:
        return hd_dump_write_body(out, bytes, arena);
    case HD_DUMP_REF:
        return hd_dump_write_ref(out, bytes, own, arena);
    case HD_DUMP_PAGE:
        return hd_dump_write_page(out, bytes, arena);
    default:
        return hd_dump_write_exchange(out, bytes, arena);
    }
}

static int read_readable(struct hd_buf *out, enum hd_dump_column kind, struct hd_slice text,
                         struct hd_slice own, struct hd_arena *arena)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, text, NULL);

    if (!err && kind == HD_DUMP_BODY)
        err = hd_dump_read_body(out, hd_json_root(&json), text, arena);
    else if (!err && kind == HD_DUMP_REF)
        err = hd_dump_read_ref(out, hd_json_root(&json), own, arena);
    else if (!err && kind == HD_DUMP_PAGE)
        err = hd_dump_read_page(out, hd_json_root(&json), arena);
    else if (!err)
        err = hd_dump_read_exchange(out, hd_json_root(&json), arena);
    hd_json_fini(&json);
    return err;
}

/* The readable form, if it is complete: reading it must return the same bytes. */
static int put_readable(struct hd_jw *jw, enum hd_dump_column kind, struct hd_slice bytes,
                        struct hd_slice own, struct hd_arena *arena)
{
    struct hd_buf text, again;
    int err;

    hd_buf_init(&text, HD_DUMP_MAX_LINE);
    hd_buf_init(&again, HD_DUMP_MAX_LINE);
    err = write_readable(&text, kind, bytes, own, arena);
    if (!err)
        err = read_readable(&again, kind, hd_buf_slice(&text), own, arena);
    if (!err && hd_slice_eq(hd_buf_slice(&again), bytes)) {
        hd_jw_raw(jw, hd_buf_slice(&text));
    } else if (err != HD_ENOMEM) {
        hd_jw_object(jw);
        hd_jw_key(jw, HD_S("stored"));
        hd_dump_write_bytes(jw, bytes, false, arena);
        hd_jw_object_end(jw);
        err = 0;
    }
    hd_buf_fini(&again);
    hd_buf_fini(&text);
    return err;
}

/* Plain text as a string; what is not UTF-8 as an object. */
static void put_text_cell(struct hd_jw *jw, struct hd_slice bytes, struct hd_arena *arena)
{
    struct hd_buf text;
    struct hd_jw inner;

    hd_buf_init(&text, HD_DUMP_MAX_LINE);
    hd_jw_init(&inner, &text);
    hd_dump_write_bytes(&inner, bytes, false, arena);
    if (hd_jw_finish(&inner))
        jw->err = jw->err ? jw->err : HD_ENOMEM;
    else if (hd_slice_starts(hd_buf_slice(&text), HD_S("{\"text\"")))
        hd_jw_string(jw, bytes);
    else
        hd_jw_raw(jw, hd_buf_slice(&text));
    hd_buf_fini(&text);
}

static int put_cell(struct hd_jw *jw, enum hd_table_id table, unsigned column,
                    const struct hd_cell *cells, struct hd_arena *arena)
{
    const struct hd_cell *cell = &cells[column];
    enum hd_dump_column kind = hd_dump_column(table, column);
    struct hd_slice own = table == HD_WRITES ? cells[HD_WRITES_CHANNEL].bytes : hd_slice(NULL, 0);

    hd_jw_key(jw, hd_slice_cstr(hd_tables[table].columns[column].name));
    if (cell->kind == HD_CELL_NULL)
        hd_jw_null(jw);
    else if ((cell->kind == HD_CELL_INT) != (kind == HD_DUMP_INT))
        return HD_ECORRUPT;
    else if (kind == HD_DUMP_INT)
        hd_jw_int(jw, cell->number);
    else if (kind == HD_DUMP_TEXT)
        put_text_cell(jw, cell->bytes, arena);
    else if (kind == HD_DUMP_BYTES)
        hd_dump_write_bytes(jw, cell->bytes, true, arena);
    else
        return put_readable(jw, kind, cell->bytes, own, arena);
    return 0;
}

int hd_dump_write_row(struct hd_buf *out, enum hd_table_id table, const struct hd_cell *cells,
                      struct hd_arena *arena)
{
    struct hd_jw jw;
    int err = 0;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "table", hd_slice_cstr(hd_tables[table].name));
    hd_jw_put_object(&jw, "row");
    for (unsigned i = 0; !err && i < hd_tables[table].column_count; i++) {
        if (hd_dump_column(table, i) != HD_DUMP_LEFT_OUT)
            err = put_cell(&jw, table, i, cells, arena);
    }
    hd_jw_object_end(&jw);
    hd_jw_object_end(&jw);
    if (!err)
        err = hd_jw_finish(&jw);
    return err ? err : hd_buf_append_byte(out, '\n');
}
