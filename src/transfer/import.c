/*
 * Reading exports, twice: the first time to see that everything is good, the second to bring it in.
 *
 * A thread comes in as a copy does (store/copy.c): first its row, created at 0 and with an odd
 * epoch, which hides it; then everything else, in batches that expect that epoch; its record last,
 * together with the even epoch, so that it appears all at once. Another writer takes the thread
 * over by changing the epoch, and the import fails. Values are compared with their checksums
 * before. Rows are added, never replaced, so the clean-up after a failure deletes only imported
 * rows.
 */
#include <heddle.h>
#include <string.h>

#include "base/clock.h"
#include "records/participants.h"
#include "records/record.h"
#include "room/room.h"
#include "store/codec/pack.h"
#include "store/codec/split.h"
#include "store/rows.h"
#include "store/store.h"
#include "transfer/dump_internal.h"

#define BATCH_BYTES ((size_t)4 << 20)
#define BATCH_ROWS 2000
#define MAX_ROW ((size_t)2 << 30)
#define MAX_KEY 2600 /* bytes: PostgreSQL indexes no longer ones */

struct importer {
    struct hd_import *import;
    struct heddle_error *fault;
    struct hd_buf text;    /* of the line */
    struct hd_arena arena; /* what was read from it */
    struct hd_dump_line line;
    uint64_t rows;
    bool is_ended;

    struct hd_arena thread_arena; /* of the current thread */
    struct hd_slice thread;       /* its id; empty: none yet */
    struct hd_slice key;          /* its stored key */
    size_t order;                 /* of its table, in hd_dump_thread_tables */
    bool has_library;             /* it has a row of the library */
    bool has_record;
    bool is_begun; /* its row is ours */
    int64_t epoch, created;
    struct hd_buf
        failed; /* the id of the thread that could not be finished, while all is taken back */

    struct hd_batch_builder batch;
    struct hd_batch_builder last; /* what makes the thread appear */
};

static int bad(struct importer *im, const char *what)
{
    return hd_error_set(im->fault, HD_EINVAL, "%s", what);
}

/* ---- lines ------------------------------------------------------------ */

static int read_line_text(struct importer *im)
{
    int c, err = 0;

    hd_buf_reset(&im->text);
    while (!err && (c = getc_unlocked(im->import->in)) != EOF && c != '\n')
        err = hd_buf_append_byte(&im->text, (uint8_t)c);
    if (err == HD_ELIMIT)
        return hd_error_set(im->fault, err, "the line is longer than %zu bytes", HD_DUMP_MAX_LINE);
    if (err)
        return err;
    if (ferror(im->import->in))
        return hd_error_set(im->fault, HD_EIO, "cannot read the file");
    if (c == EOF)
        return im->text.len > 0 ? bad(im, "the file ends within this line") : HD_ENOTFOUND;
    return 0;
}

/* HD_ENOTFOUND: there are no more. */
static int next_line(struct importer *im)
{
    int err;

    im->import->line++;
    err = read_line_text(im);
    if (err == HD_ENOTFOUND)
        im->import->line--;
    if (err)
        return err;
    hd_arena_reset(&im->arena);
    return hd_dump_read(hd_buf_slice(&im->text), &im->arena, &im->line, im->fault);
}

static size_t order_of(const enum hd_table_id *list, enum hd_table_id table)
{
    size_t i = 0;

    while (list[i] != HD_TABLE_COUNT && list[i] != table)
        i++;
    return i;
}

static int check_key(struct importer *im)
{
    const struct hd_table *table = &hd_tables[im->line.table];
    size_t len = im->import->principal.len + im->thread.len;

    for (unsigned i = 0; i < table->key_count; i++)
        len += im->line.cells[i].kind == HD_CELL_BYTES ? im->line.cells[i].bytes.len : 8;
    return len > MAX_KEY ? bad(im, "the row's key is too long") : 0;
}

static bool is_word(struct hd_slice text, const char *const *words)
{
    while (*words && !hd_slice_eq(text, hd_slice_cstr(*words)))
        words++;
    return *words != NULL;
}

/* Values that the server cannot read. */
static int check_status(struct importer *im)
{
    enum hd_run_state run;
    enum hd_thread_status thread;

    if (im->line.table == HD_RUNS && !hd_run_state_find(im->line.cells[HD_RUNS_STATUS].bytes, &run))
        return bad(im, "unknown status of a run");
    if (im->line.table == HD_THREAD_INFO &&
        !hd_thread_status_find(im->line.cells[HD_THREAD_INFO_STATUS].bytes, &thread))
        return bad(im, "unknown status of a thread");
    if (im->line.table == HD_ROOM_MESSAGES &&
        !is_word(im->line.cells[HD_ROOM_MESSAGES_STATE].bytes, hd_room_states))
        return bad(im, "unknown state of a chat message");
    if (im->line.table == HD_ROOM_CASCADES &&
        !is_word(im->line.cells[HD_ROOM_CASCADES_STATUS].bytes, hd_cascade_statuses))
        return bad(im, "unknown status of a cascade");
    if (im->line.table == HD_CHUNKS && im->line.cells[HD_CHUNKS_DATA].bytes.len > HD_CHUNK_MAX)
        return bad(im, "a chunk is too long");
    if (im->line.table == HD_CHUNKS && (im->line.cells[HD_CHUNKS_SEQ].number < 1 ||
                                        im->line.cells[HD_CHUNKS_SEQ].number > HD_CHUNK_SEQ_MAX))
        return bad(im, "invalid chunk number");
    return 0;
}

static int check_row(struct importer *im)
{
    size_t order = order_of(hd_dump_thread_tables, im->line.table);
    bool is_of_thread = hd_dump_thread_tables[order] != HD_TABLE_COUNT;
    bool is_library = is_of_thread && order <= order_of(hd_dump_thread_tables, HD_CHUNKS);
    int err = check_key(im);

    if (err)
        return err;
    if (is_of_thread != (im->thread.len > 0))
        return bad(im, is_of_thread ? "a row of a thread before the first thread"
                                    : "rows that belong to no thread must precede all threads");
    if (is_of_thread && order < im->order)
        return bad(im, "the rows are not in order");
    im->order = is_of_thread ? order : 0;
    if (im->line.table == HD_THREADS && im->has_library)
        return bad(im, "duplicate row of the thread");
    im->has_library = im->has_library || im->line.table == HD_THREADS;
    if (is_library && !im->has_library)
        return bad(im, "the row of the thread is missing");
    if (im->line.table == HD_THREAD_INFO && im->has_record)
        return bad(im, "duplicate record of the thread");
    im->has_record = im->has_record || im->line.table == HD_THREAD_INFO;
    im->rows++;
    return check_status(im);
}

static int begin_thread(struct importer *im)
{
    struct heddle_thread id = {hd_to_public(im->import->principal), hd_to_public(im->line.thread)};
    int err;

    hd_arena_reset(&im->thread_arena);
    im->order = 0;
    im->has_library = im->has_record = false;
    err = hd_arena_copy(&im->thread_arena, im->line.thread, &im->thread);
    return err ? err : hd_store_thread_key(&id, &im->thread_arena, &im->key, im->fault);
}

static int check_end(struct importer *im)
{
    if ((uint64_t)im->line.rows != im->rows)
        return bad(im, "rows are missing before this line");
    im->is_ended = true;
    return 0;
}

/* Goes through the file; `row`, `begin` and `end` may be NULL. */
struct import_pass {
    int (*begin)(struct importer *im); /* a thread has begun */
    int (*row)(struct importer *im);
    int (*end)(struct importer *im); /* its last row was read */
};

static int end_section(struct importer *im, const struct import_pass *pass)
{
    return im->thread.len > 0 && pass->end ? pass->end(im) : 0;
}

static int on_line(struct importer *im, const struct import_pass *pass)
{
    int err = 0;

    if (im->is_ended)
        return bad(im, "unexpected line after the end of the export");
    if ((im->line.kind == HD_DUMP_HEADER) != (im->import->line == 1))
        return bad(im, im->import->line == 1 ? "the first line is not the header of an export"
                                             : "duplicate header");
    switch (im->line.kind) {
    case HD_DUMP_HEADER:
        break;
    case HD_DUMP_THREAD:
        err = end_section(im, pass);
        if (!err)
            err = begin_thread(im);
        if (!err && pass->begin)
            err = pass->begin(im);
        break;
    case HD_DUMP_ROW:
        err = check_row(im);
        if (!err && pass->row)
            err = pass->row(im);
        break;
    case HD_DUMP_END:
        err = check_end(im);
        if (!err)
            err = end_section(im, pass);
        break;
    }
    return err;
}

/* Up to line `last`; 0: to the end, which must be there. */
static int go_through(struct importer *im, const struct import_pass *pass, uint64_t last)
{
    int err = 0;

    rewind(im->import->in);
    im->import->line = im->rows = 0;
    im->is_ended = false;
    im->thread = hd_slice(NULL, 0);
    im->order = 0;
    im->has_library = im->has_record = false;
    while (!err && (last == 0 || im->import->line < last)) {
        err = next_line(im);
        if (!err)
            err = on_line(im, pass);
    }
    if (err == HD_ENOTFOUND && last == 0 && !im->is_ended)
        return bad(im, im->import->line ? "the export is incomplete: the file ends after this line"
                                        : "the file is empty");
    return err == HD_ENOTFOUND && !im->fault->code ? 0 : err;
}

/* ---- whether something is there already --------------------------------- */

static int on_existing_row(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 0;
}

static int look_for_key(struct importer *im, enum hd_table_id table, const struct hd_cell *key,
                        unsigned count, bool *is_there)
{
    struct hd_query query = {
        .table = table, .index = HD_PRIMARY, .prefix = key, .prefix_count = count, .limit = 1};

    return hd_rows_read(im->import->store, &query, 1, on_existing_row, is_there, im->fault);
}

static int exists(struct importer *im, const char *what, struct hd_slice id)
{
    return hd_error_set(im->fault, HD_EEXISTS, "%s %.*s exists already", what,
                        (int)(id.len < 100 ? id.len : 100), id.ptr);
}

static int look_for_thread(struct importer *im)
{
    struct hd_cell own[] = {hd_cell_bytes(im->import->principal), hd_cell_bytes(im->thread)};
    struct hd_cell key = hd_cell_bytes(im->key);
    bool is_there = false;
    int err = look_for_key(im, HD_THREAD_INFO, own, 2, &is_there);

    if (!err && !is_there)
        err = look_for_key(im, HD_THREADS, &key, 1, &is_there);
    if (err || !is_there)
        return err;
    return im->import->replaces ? 0 : exists(im, "thread", im->thread);
}

/* The row with its addresses; cells that are stored packed are packed. */
static int stored_row(struct importer *im, struct hd_arena *arena, struct hd_cell *row)
{
    const struct hd_table *table = &hd_tables[im->line.table];
    bool is_library = im->line.table <= HD_CHUNKS;
    int err = 0;

    for (unsigned i = 0; !err && i < table->column_count; i++) {
        row[i] = im->line.cells[i];
        if (strcmp(table->columns[i].name, "principal") == 0)
            row[i] = hd_cell_bytes(im->import->principal);
        else if (im->thread.len > 0 && strcmp(table->columns[i].name, "thread_id") == 0)
            row[i] = hd_cell_bytes(is_library ? im->key : im->thread);
        else if (row[i].bytes.len == 0 && hd_dump_is_person(im->line.table, i))
            row[i] = hd_cell_bytes(im->import->principal);
        else if (row[i].kind == HD_CELL_BYTES && hd_dump_is_packed(im->line.table, i))
            err = hd_pack(arena, im->line.cells[i].bytes, &row[i].bytes);
        else if (row[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(arena, row[i].bytes, &row[i].bytes);
    }
    return err;
}

static int look_for_row(struct importer *im)
{
    struct hd_cell row[HD_MAX_COLUMNS];
    bool is_there = false;
    int err;

    if (im->thread.len > 0 || im->import->replaces)
        return 0;
    err = stored_row(im, &im->arena, row);
    if (!err)
        err = look_for_key(im, im->line.table, row, hd_tables[im->line.table].key_count, &is_there);
    return !err && is_there ? exists(im, "a row of", hd_slice_cstr(hd_tables[im->line.table].name))
                            : err;
}

/* ---- taking away ------------------------------------------------------ */

static int apply_import(struct importer *im, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = 0;

    if (batch.count > 0)
        err = hd_rows_apply(im->import->store, im->thread.len ? im->key : im->import->principal,
                            &batch, NULL, im->fault);
    hd_batch_reset(builder);
    if (err == HD_ECONFLICT)
        return hd_error_set(im->fault, HD_EEXISTS,
                            "another writer changed the thread, or a row occurs twice");
    return err;
}

/* All rows of a thread, of any writer. */
static int remove_thread(struct importer *im)
{
    static const enum hd_table_id tables[] = {
        HD_THREAD_INFO, HD_RUNS, HD_EVENT_PAGES, HD_EXCHANGES, HD_OUTBOX, HD_LINES, HD_HOLDS};
    struct heddle_thread id = {hd_to_public(im->import->principal), hd_to_public(im->thread)};
    struct hd_cell own[] = {hd_cell_bytes(im->import->principal), hd_cell_bytes(im->thread)};
    struct hd_batch_builder batch;
    struct heddle_error error = {0};
    int err = 0;

    hd_batch_init(&batch);
    for (size_t i = 0; !err && i < HD_COUNT(tables); i++)
        err = hd_batch_delete(&batch, tables[i], own, 2);
    if (!err)
        err = hd_room_delete(&batch, im->import->principal, im->thread);
    if (!err)
        err = hd_mentions_delete(im->import->store, &batch, im->import->principal, im->thread,
                                 im->fault);
    if (!err)
        err = hd_participants_delete(im->import->store, &batch, im->import->principal, im->thread,
                                     im->fault);
    if (!err)
        err = apply_import(im, &batch);
    if (!err && heddle_delete_thread(im->import->store, &id, &error) != 0)
        err = hd_error_set(im->fault, error.code, "%s", error.text);
    hd_batch_fini(&batch);
    return err;
}

/*
 * Removes imported rows: complete threads as a whole; of the last thread the rows in the file, and
 * the library's rows while the epoch is still ours.
 */
static int take_thread_back(struct importer *im)
{
    struct hd_store *store = hd_store_of(im->import->store);
    int err = 0;

    if (!hd_slice_eq(im->thread, hd_buf_slice(&im->failed)))
        return remove_thread(im);
    if (im->is_begun)
        err = hd_delete_rows(store, im->key, &im->epoch, im->fault);
    return err == HD_ECONFLICT ? 0 : err;
}

static int take_row_back(struct importer *im)
{
    struct hd_cell row[HD_MAX_COLUMNS];
    int err;

    if (im->line.table <= HD_CHUNKS || im->line.table == HD_THREAD_INFO)
        return 0;
    err = stored_row(im, &im->batch.arena, row);
    if (!err)
        err = hd_batch_delete(&im->batch, im->line.table, row, hd_tables[im->line.table].key_count);
    return err ? err : apply_import(im, &im->batch);
}

/* ---- bringing in ------------------------------------------------------ */

/* The thread's row reserves its id; readers do not see it. */
static int add_thread_row(struct importer *im, const struct hd_cell *row)
{
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err;

    im->epoch = hd_clock_now_us() * 4 + 1; /* odd, and none that the thread has had */
    memcpy(cells, row, sizeof(*row) * hd_tables[HD_THREADS].column_count);
    im->created = row[HD_THREADS_CREATED].number;
    cells[HD_THREADS_EPOCH] = hd_cell_int(im->epoch);
    cells[HD_THREADS_CREATED] = hd_cell_int(0);
    err = hd_batch_row(&im->batch, HD_OP_ADD, HD_THREADS, cells);
    if (!err)
        err = apply_import(im, &im->batch);
    im->is_begun = !err;
    return err;
}

static int flush_import(struct importer *im)
{
    int err = 0;

    if (im->batch.count == 0)
        return 0;
    if (im->thread.len > 0 && im->has_library)
        err = hd_batch_expect_epoch(&im->batch, im->key, im->epoch, 0, 0);
    return err ? err : apply_import(im, &im->batch);
}

/* Runs and cascades that were active at the source cannot continue here. */
static void end_run(struct importer *im, struct hd_cell *row)
{
    enum hd_run_state state;

    if (im->line.table == HD_ROOM_CASCADES &&
        hd_slice_eq(row[HD_ROOM_CASCADES_STATUS].bytes,
                    hd_slice_cstr(hd_cascade_statuses[HD_CASCADE_RUNNING])))
        row[HD_ROOM_CASCADES_STATUS].bytes = hd_slice_cstr(hd_cascade_statuses[HD_CASCADE_FAILED]);
    if (im->line.table == HD_THREAD_INFO &&
        hd_slice_eq(row[HD_THREAD_INFO_STATUS].bytes,
                    hd_slice_cstr(hd_thread_status_name(HD_THREAD_BUSY))))
        row[HD_THREAD_INFO_STATUS].bytes = hd_slice_cstr(hd_thread_status_name(HD_THREAD_IDLE));
    if (im->line.table != HD_RUNS || !hd_run_state_find(row[HD_RUNS_STATUS].bytes, &state) ||
        (state != HD_RUN_STATE_PENDING && state != HD_RUN_STATE_RUNNING))
        return;
    row[HD_RUNS_STATUS].bytes = hd_slice_cstr(hd_run_state_name(HD_RUN_STATE_ERROR));
    row[HD_RUNS_DUE] = hd_cell_null();
    im->import->ended_runs++;
}

static int add_hash(struct hd_arena *arena, struct hd_slice piece, struct hd_cell *out)
{
    struct hd_hash128 hash = hd_hash128_of(piece);

    *out = hd_cell_bytes(hd_slice(NULL, 0));
    return hd_arena_copy(arena, hd_slice(&hash, sizeof(hash)), &out->bytes);
}

static int bring_row(struct importer *im)
{
    bool is_record = im->line.table == HD_THREAD_INFO;
    struct hd_batch_builder *batch = is_record ? &im->last : &im->batch;
    struct hd_cell row[HD_MAX_COLUMNS];
    bool replaces = im->import->replaces && im->thread.len == 0;
    int err = stored_row(im, &batch->arena, row);

    if (!err && im->line.table == HD_CHUNKS)
        err = add_hash(&batch->arena, im->line.cells[HD_CHUNKS_DATA].bytes, &row[HD_CHUNKS_HASH]);
    if (err)
        return err;
    im->import->rows++;
    if (im->line.table == HD_THREADS)
        return add_thread_row(im, row);
    end_run(im, row);
    err = hd_batch_row(batch, replaces ? HD_OP_PUT : HD_OP_ADD, im->line.table, row);
    if (!err && (im->batch.bytes > BATCH_BYTES || im->batch.count > BATCH_ROWS))
        err = flush_import(im);
    return err;
}

static int start_thread(struct importer *im)
{
    int err = flush_import(im); /* rows of the principal: the thread has nothing yet */

    im->is_begun = false;
    hd_batch_reset(&im->last);
    if (!err && im->import->replaces)
        err = remove_thread(im);
    return err;
}

/* All rows are stored and all checksums match: make the thread visible. */
static int finish_thread(struct importer *im)
{
    struct hd_store *store = hd_store_of(im->import->store);
    int err = flush_import(im);

    if (!err && im->has_library)
        err = hd_check_thread(store, im->key, im->fault);
    if (!err && im->has_library)
        err = hd_batch_renew(&im->last, im->key, im->epoch, im->epoch + 1, im->created);
    if (!err)
        err = apply_import(im, &im->last);
    im->import->threads++;
    return err;
}

/* ---- all of it -------------------------------------------------------- */

static const struct import_pass checking = {.begin = look_for_thread, .row = look_for_row};
static const struct import_pass bringing = {
    .begin = start_thread, .row = bring_row, .end = finish_thread};
static const struct import_pass removing = {.begin = take_thread_back, .row = take_row_back};

/* The first error matters more than whether this works. */
static void take_back(struct importer *im)
{
    struct heddle_error ignored = {0}, *fault = im->fault;
    uint64_t line = im->import->line;
    int err;

    hd_batch_reset(&im->batch);
    hd_batch_reset(&im->last);
    im->fault = &ignored;
    err = hd_buf_append_slice(&im->failed, im->thread);
    if (!err)
        err = go_through(im, &removing, line);
    (void)err;
    im->fault = fault;
    im->import->line = line;
}

static int bring_all(struct importer *im)
{
    int err = go_through(im, &checking, 0);

    if (err)
        return err;
    err = go_through(im, &bringing, 0);
    if (!err) {
        im->thread = hd_slice(NULL, 0);
        err = flush_import(im);
    }
    if (err)
        take_back(im);
    return err;
}

int hd_import(struct hd_import *import, struct heddle_error *fault)
{
    struct heddle_error own = {0};
    struct importer im = {.import = import, .fault = fault ? fault : &own};
    int err;

    import->threads = import->rows = import->ended_runs = import->line = 0;
    hd_buf_init(&im.text, HD_DUMP_MAX_LINE);
    hd_buf_init(&im.failed, HD_DUMP_MAX_LINE);
    hd_arena_init(&im.arena, MAX_ROW);
    hd_arena_init(&im.thread_arena, (size_t)16 * HD_MAX_THREAD_ID);
    hd_batch_init(&im.batch);
    hd_batch_init(&im.last);
    err = bring_all(&im);
    hd_batch_fini(&im.last);
    hd_batch_fini(&im.batch);
    hd_arena_fini(&im.thread_arena);
    hd_arena_fini(&im.arena);
    hd_buf_fini(&im.failed);
    hd_buf_fini(&im.text);
    return err;
}
