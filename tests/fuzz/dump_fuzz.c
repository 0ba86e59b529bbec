/* libFuzzer: any line as one of an export. An accepted row can be written, and reads back as the
 * same row. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transfer/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_row(const struct hd_dump_line *line, struct hd_arena *arena)
{
    const struct hd_table *table = &hd_tables[line->table];
    struct hd_dump_line again;
    struct heddle_error fault = {0};
    struct hd_buf text;

    hd_buf_init(&text, HD_DUMP_MAX_LINE);
    require(hd_dump_write_row(&text, line->table, line->cells, arena) == 0, "it cannot be written");
    require(text.len > 0 && text.ptr[text.len - 1] == '\n', "a line without its end");
    text.len--;
    require(memchr(text.ptr, '\n', text.len) == NULL, "more than one line");
    require(hd_dump_read(hd_buf_slice(&text), arena, &again, &fault) == 0, "it cannot be read");
    require(again.table == line->table, "another table");
    require(hd_cells_cmp(again.cells, line->cells, table->column_count) == 0, "another row");
    hd_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_dump_line line;
    struct heddle_error fault = {0};
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, (size_t)1 << 30);
    err = hd_dump_read(hd_slice(data, size), &arena, &line, &fault);
    require(err == 0 || fault.code != 0, "refused without a reason");
    if (!err && line.kind == HD_DUMP_ROW)
        check_row(&line, &arena);
    hd_arena_fini(&arena);
    return 0;
}
