/* Lines to rows. Pure: what comes in may be anything. */
#include <string.h>

#include "records/record_internal.h"
#include "transfer/dump_internal.h"

struct line_reader {
    struct hd_arena *arena;
    struct hd_dump_line *line;
    struct heddle_error *fault;
};

static int refuse_column(struct line_reader *r, const char *column)
{
    return hd_error_set(r->fault, HD_EINVAL, "column %s of %s has an unexpected value", column,
                        hd_tables[r->line->table].name);
}

/* ---- cells ------------------------------------------------------------ */

static int read_stored(struct line_reader *r, enum hd_dump_column kind, hd_json_val val,
                       struct hd_slice raw, struct hd_slice own, struct hd_slice *out)
{
    hd_json_val stored = hd_json_get(val, HD_S("stored"));
    struct hd_buf buf;
    int err;

    if (stored)
        return hd_dump_read_bytes(stored, hd_slice(NULL, 0), r->arena, out);
    hd_buf_init(&buf, HD_DUMP_MAX_LINE);
    if (kind == HD_DUMP_BODY)
        err = hd_dump_read_body(&buf, val, raw, r->arena);
    else if (kind == HD_DUMP_REF)
        err = hd_dump_read_ref(&buf, val, own, r->arena);
    else if (kind == HD_DUMP_PAGE)
        err = hd_dump_read_page(&buf, val, r->arena);
    else
        err = hd_dump_read_exchange(&buf, val, r->arena);
    if (!err)
        err = hd_arena_copy(r->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

static int read_cell(struct line_reader *r, unsigned column, hd_json_val val, struct hd_slice raw)
{
    const struct hd_column *declared = &hd_tables[r->line->table].columns[column];
    enum hd_dump_column kind = hd_dump_column(r->line->table, column);
    struct hd_cell *cell = &r->line->cells[column];
    struct hd_slice own =
        r->line->table == HD_WRITES ? r->line->cells[HD_WRITES_CHANNEL].bytes : hd_slice(NULL, 0);
    int err;

    *cell = hd_cell_null();
    if (hd_json_is_null(val))
        return declared->nullable ? 0 : HD_EINVAL;
    if (kind == HD_DUMP_INT) {
        *cell = hd_cell_int(0);
        return hd_json_int(val, &cell->number) ? 0 : HD_EINVAL;
    }
    *cell = hd_cell_bytes(HD_S(""));
    if (kind == HD_DUMP_TEXT && hd_json_is_string(val))
        err = hd_arena_copy(r->arena, hd_json_string(val), &cell->bytes);
    else if (kind == HD_DUMP_TEXT || kind == HD_DUMP_BYTES)
        err = hd_dump_read_bytes(val, kind == HD_DUMP_TEXT ? hd_slice(NULL, 0) : raw, r->arena,
                                 &cell->bytes);
    else
        err = read_stored(r, kind, val, raw, own, &cell->bytes);
    return err == HD_ECORRUPT || err == HD_ELIMIT ? HD_EINVAL : err;
}

static int read_column(struct line_reader *r, unsigned column, hd_json_val row,
                       struct hd_slice raw_row)
{
    const char *name = hd_tables[r->line->table].columns[column].name;
    hd_json_val val = hd_json_get(row, hd_slice_cstr(name));
    struct hd_slice raw = {NULL, 0};
    struct hd_member member = {name, &raw};
    int err = val ? hd_record_split(raw_row, &member, 1) : HD_EINVAL;

    if (!err)
        err = read_cell(r, column, val, raw);
    return err && err != HD_ENOMEM ? refuse_column(r, name) : err;
}

/* ---- lines ------------------------------------------------------------ */

static int find_table(struct line_reader *r, struct hd_slice name)
{
    for (int i = 0; i < HD_TABLE_COUNT; i++) {
        const struct hd_table *table = &hd_tables[i];
        unsigned last = table->column_count - 1;

        if (hd_slice_eq(name, hd_slice_cstr(table->name)) &&
            hd_dump_column((enum hd_table_id)i, last) != HD_DUMP_LEFT_OUT) {
            r->line->table = (enum hd_table_id)i;
            return 0;
        }
    }
    return hd_error_set(r->fault, HD_EINVAL, "unknown table %.*s",
                        (int)(name.len < 40 ? name.len : 40), name.ptr);
}

static int read_row(struct line_reader *r, hd_json_val root, struct hd_slice text)
{
    hd_json_val row = hd_json_get(root, HD_S("row"));
    struct hd_slice raw = {NULL, 0};
    struct hd_member member = {"row", &raw};
    size_t columns = 0;
    int err = find_table(r, hd_json_string(hd_json_get(root, HD_S("table"))));

    if (err)
        return err;
    r->line->kind = HD_DUMP_ROW;
    if (!hd_json_is_object(row) || hd_record_split(text, &member, 1))
        return hd_error_set(r->fault, HD_EINVAL, "a row is missing");
    for (unsigned i = 0; !err && i < hd_tables[r->line->table].column_count; i++) {
        r->line->cells[i] = hd_cell_null();
        if (hd_dump_column(r->line->table, i) == HD_DUMP_LEFT_OUT)
            continue;
        columns++;
        err = read_column(r, i, row, raw);
    }
    if (!err && hd_json_size(row) != columns)
        return hd_error_set(r->fault, HD_EINVAL,
                            "a row of %s does not match the columns of the table",
                            hd_tables[r->line->table].name);
    return err;
}

static int read_header(struct line_reader *r, hd_json_val root)
{
    r->line->kind = HD_DUMP_HEADER;
    if (!hd_slice_eq(hd_json_string(hd_json_get(root, HD_S("heddle"))), HD_S("export")) ||
        !hd_json_int(hd_json_get(root, HD_S("version")), &r->line->version))
        return hd_error_set(r->fault, HD_EINVAL, "the first line is not the header of an export");
    if (r->line->version != HD_DUMP_VERSION)
        return hd_error_set(r->fault, HD_EVERSION,
                            "an export of version %lld; this program reads version %d",
                            (long long)r->line->version, HD_DUMP_VERSION);
    return 0;
}

static int read_line_object(struct line_reader *r, hd_json_val root, struct hd_slice text)
{
    hd_json_val end = hd_json_get(root, HD_S("end"));
    hd_json_val thread = hd_json_get(root, HD_S("thread"));

    if (hd_json_get(root, HD_S("heddle")))
        return read_header(r, root);
    if (hd_json_get(root, HD_S("table")))
        return read_row(r, root, text);
    if (thread && hd_json_string(thread).len > 0) {
        r->line->kind = HD_DUMP_THREAD;
        return hd_arena_copy(r->arena, hd_json_string(thread), &r->line->thread);
    }
    r->line->kind = HD_DUMP_END;
    if (end && hd_json_int(end, &r->line->rows) && r->line->rows >= 0)
        return 0;
    return hd_error_set(r->fault, HD_EINVAL, "the line is not a row of an export");
}

int hd_dump_read(struct hd_slice line, struct hd_arena *arena, struct hd_dump_line *out,
                 struct heddle_error *fault)
{
    struct line_reader r = {arena, out, fault};
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, line, fault);

    *out = (struct hd_dump_line){.kind = HD_DUMP_END};
    if (!err)
        err = read_line_object(&r, hd_json_root(&json), line);
    hd_json_fini(&json);
    return err;
}
