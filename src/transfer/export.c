/*
 * Writing exports, row by row.
 *
 * A thread may grow while it is read. Its checkpoints and writes are read before its chunks, so all
 * chunks that they name are there; and if its epoch is the same at the end, nothing was taken
 * away meanwhile (store/copy.c does the same).
 */
#include <heddle.h>
#include <string.h>

#include "base/clock.h"
#include "records/record.h"
#include "store/codec/pack.h"
#include "store/rows.h"
#include "store/store.h"
#include "transfer/dump_internal.h"

#define MAX_ROW ((size_t)2 << 30)
#define THREADS_PAGE 100

struct export_writer {
    struct hd_export *export;
    enum hd_table_id table;
    struct hd_arena arena; /* of one row */
    struct hd_buf line;
    struct heddle_error *fault;
};

static int flush_line(struct export_writer *w)
{
    size_t len = w->line.len;
    bool is_written = fwrite(w->line.ptr, 1, len, w->export->out) == len;

    hd_buf_reset(&w->line);
    return is_written ? 0 : hd_error_set(w->fault, HD_EIO, "cannot write the file");
}

static int on_exported_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct export_writer *w = arg;
    struct hd_cell row[HD_MAX_COLUMNS];
    int err = 0;

    (void)which;
    hd_arena_reset(&w->arena);
    for (unsigned i = 0; !err && i < hd_tables[w->table].column_count; i++) {
        row[i] = cells[i];
        if (row[i].kind == HD_CELL_BYTES && hd_dump_is_packed(w->table, i))
            err = hd_unpack_copy(&w->arena, cells[i].bytes, &row[i].bytes);
        else if (hd_dump_is_person(w->table, i) &&
                 hd_slice_eq(cells[i].bytes, w->export->principal))
            row[i].bytes = HD_S("");
    }
    if (!err)
        err = hd_dump_write_row(&w->line, w->table, row, &w->arena);
    if (!err)
        err = flush_line(w);
    w->export->rows++;
    return err;
}

static int write_table(struct export_writer *w, enum hd_table_id table, int index,
                       const struct hd_cell *prefix, unsigned count)
{
    struct hd_query query = {.table = table,
                             .index = index,
                             .prefix = prefix,
                             .prefix_count = count,
                             .columns = HD_ALL_COLUMNS};

    w->table = table;
    return hd_rows_scan(w->export->store, query, on_exported_row, w, w->fault);
}

/* ---- a thread --------------------------------------------------------- */

static int on_epoch(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    if (cells[HD_THREADS_CREATED].number != 0) /* odd: a copy into it is active */
        *(int64_t *)arg = cells[HD_THREADS_EPOCH].number;
    return 0;
}

/* -1: the library has no such thread. */
static int read_epoch(struct export_writer *w, const struct hd_cell *key, int64_t *out)
{
    struct hd_query query = {.table = HD_THREADS,
                             .index = HD_PRIMARY,
                             .prefix = key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};

    *out = -1;
    return hd_rows_read(w->export->store, &query, 1, on_epoch, out, w->fault);
}

static bool is_of_library(enum hd_table_id table)
{
    return table == HD_THREADS || table == HD_CHECKPOINTS || table == HD_WRITES ||
           table == HD_CHUNKS;
}

/* The index whose first columns are the owner and the thread. */
static int index_of_thread(enum hd_table_id table)
{
    switch (table) {
    case HD_PARTICIPANTS:
        return HD_PARTICIPANTS_BY_THREAD;
    case HD_ROOM_MENTIONS:
        return HD_ROOM_MENTIONS_BY_THREAD;
    default:
        return HD_PRIMARY;
    }
}

static int write_tables(struct export_writer *w, struct hd_slice thread, const struct hd_cell *key)
{
    struct hd_cell own[] = {hd_cell_bytes(w->export->principal), hd_cell_bytes(thread)};
    int64_t before, after;
    int err = read_epoch(w, key, &before);

    for (const enum hd_table_id *table = hd_dump_thread_tables; !err && *table != HD_TABLE_COUNT;
         table++) {
        bool is_ours = !is_of_library(*table);

        if (!is_ours && before == -1)
            continue;
        err = write_table(w, *table, index_of_thread(*table), is_ours ? own : key, is_ours ? 2 : 1);
    }
    if (!err)
        err = read_epoch(w, key, &after);
    if (!err && before != after)
        return hd_error_set(w->fault, HD_EBUSY,
                            "data of thread %.*s was removed during the export; try again",
                            (int)(thread.len < 100 ? thread.len : 100), thread.ptr);
    return err;
}

static int write_thread(struct export_writer *w, struct hd_slice thread)
{
    struct heddle_thread id = {hd_to_public(w->export->principal), hd_to_public(thread)};
    struct hd_arena arena;
    struct hd_slice key;
    struct hd_cell cell;
    int err;

    hd_arena_init(&arena, (size_t)8 * HD_MAX_THREAD_ID);
    err = hd_store_thread_key(&id, &arena, &key, w->fault);
    if (!err)
        err = hd_buf_append_slice(&w->line, HD_S("{\"thread\":"));
    if (!err)
        err = hd_json_write_string(&w->line, thread);
    if (!err)
        err = hd_buf_append_slice(&w->line, HD_S("}\n"));
    if (!err)
        err = flush_line(w);
    if (!err) {
        cell = hd_cell_bytes(key);
        w->export->threads++;
        err = write_tables(w, thread, &cell);
    }
    hd_arena_fini(&arena);
    return err;
}

/* ---- beginning and end -------------------------------------------------- */

static int write_header(struct export_writer *w, const char *kind)
{
    char now[33];
    int err;

    hd_clock_format_iso(hd_clock_now_us(), now);
    err = hd_buf_printf(
        &w->line, "{\"heddle\":\"export\",\"version\":%d,\"of\":\"%s\",\"created_at\":\"%s\"}\n",
        HD_DUMP_VERSION, kind, now);
    return err ? err : flush_line(w);
}

static int write_end(struct export_writer *w)
{
    int err = hd_buf_printf(&w->line, "{\"end\":%llu}\n", (unsigned long long)w->export->rows);

    if (!err)
        err = flush_line(w);
    if (!err && fflush(w->export->out) != 0)
        err = hd_error_set(w->fault, HD_EIO, "cannot write the file");
    return err;
}

static void writer_init(struct export_writer *w, struct hd_export *export,
                        struct heddle_error *fault)
{
    *w = (struct export_writer){.export = export, .fault = fault};
    export->threads = export->rows = 0;
    hd_arena_init(&w->arena, MAX_ROW);
    hd_buf_init(&w->line, HD_DUMP_MAX_LINE + 1);
}

static void writer_fini(struct export_writer *w)
{
    hd_buf_fini(&w->line);
    hd_arena_fini(&w->arena);
}

int hd_export_thread(struct hd_export *export, struct hd_slice thread, struct heddle_error *fault)
{
    struct export_writer w;
    int err;

    writer_init(&w, export, fault);
    err = write_header(&w, "thread");
    if (!err)
        err = write_thread(&w, thread);
    if (!err)
        err = export->rows > 0 ? write_end(&w) : HD_ENOTFOUND;
    writer_fini(&w);
    return err;
}

/* ---- everything of a principal ------------------------------------------ */

static int on_exported_thread(void *arg, const struct hd_thread_rec *thread)
{
    return write_thread(arg, thread->id);
}

/* Threads that exist only in the library. */
static int write_unrecorded(struct export_writer *w, struct heddle_bytes id)
{
    struct hd_thread_rec record;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_ROW);
    err = hd_thread_read(w->export->store, w->export->principal, hd_from_public(id), &arena,
                         &record, w->fault);
    hd_arena_fini(&arena);
    return err == HD_ENOTFOUND ? write_thread(w, hd_from_public(id)) : err;
}

static int write_library_threads(struct export_writer *w)
{
    struct heddle_threads *page = NULL;
    struct heddle_bytes after = {NULL, 0};
    char last[HD_MAX_THREAD_ID];
    bool is_last = false;
    int err = 0;

    while (!err && !is_last) {
        err = heddle_list_threads(w->export->store, hd_to_public(w->export->principal), after,
                                  THREADS_PAGE, &page, w->fault);
        if (err)
            return err;
        for (size_t i = 0; !err && i < page->count; i++) {
            struct heddle_bytes id = page->threads[i].thread.id;

            err = write_unrecorded(w, id);
            memcpy(last, id.data, id.len);
            after = (struct heddle_bytes){last, id.len};
        }
        is_last = page->count < THREADS_PAGE;
        heddle_threads_free(page);
    }
    return err;
}

int hd_export_all(struct hd_export *export, struct heddle_error *fault)
{
    struct hd_cell principal = hd_cell_bytes(export->principal);
    struct export_writer w;
    int err;

    writer_init(&w, export, fault);
    err = write_header(&w, "principal");
    for (const enum hd_table_id *table = hd_dump_principal_tables; !err && *table != HD_TABLE_COUNT;
         table++)
        err = write_table(&w, *table, HD_PRIMARY, &principal, 1);
    if (!err)
        err =
            hd_threads_scan(export->store, export->principal, false, on_exported_thread, &w, fault);
    if (!err)
        err = write_library_threads(&w);
    if (!err)
        err = write_end(&w);
    writer_fini(&w);
    return err;
}
