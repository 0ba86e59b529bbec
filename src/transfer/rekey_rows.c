/*
 * Moves the rows of a principal to another.
 *
 * A row moves in one batch: it must still be as it was read, goes, and is added under its new
 * key. On a conflict nothing of the batch happens, and the next pass tries again.
 */
#include <heddle.h>
#include <string.h>

#include "records/record.h"
#include "store/rows.h"
#include "store/store.h"
#include "transfer/rekey_internal.h"

#define BATCH_BYTES ((size_t)1 << 20)
#define BATCH_ROWS 100
#define THREADS_PAGE 100

/* The columns of a principal in a table, and the column that changes with a row. */
struct principal_place {
    enum hd_table_id table;
    int index;            /* with the principal as first column */
    unsigned column;      /* of the principal */
    unsigned guard;       /* an INT column */
    enum hd_op_kind kind; /* HD_OP_PUT: what came later wins */
};

/*
 * In this order: see rekey.h. A thread is complete under its new principal before participants are
 * redirected there, so the tables after FIRST_AFTER wait for all threads.
 */
static const struct principal_place places[] = {
    {HD_THREAD_INFO, HD_PRIMARY, HD_THREAD_INFO_PRINCIPAL, HD_THREAD_INFO_REV, HD_OP_ADD},
    {HD_RUNS, HD_PRIMARY, HD_RUNS_PRINCIPAL, HD_RUNS_REV, HD_OP_ADD},
    {HD_EVENT_PAGES, HD_PRIMARY, HD_EVENT_PAGES_PRINCIPAL, HD_EVENT_PAGES_LAST, HD_OP_PUT},
    {HD_EXCHANGES, HD_PRIMARY, HD_EXCHANGES_PRINCIPAL, HD_EXCHANGES_CREATED, HD_OP_PUT},
    {HD_OUTBOX, HD_PRIMARY, HD_OUTBOX_PRINCIPAL, HD_OUTBOX_CREATED, HD_OP_PUT},
    {HD_LINES, HD_PRIMARY, HD_LINES_PRINCIPAL, HD_LINES_UPDATED, HD_OP_PUT},
    {HD_HOLDS, HD_PRIMARY, HD_HOLDS_PRINCIPAL, HD_HOLDS_TOKEN, HD_OP_PUT},
    {HD_ROOM, HD_PRIMARY, HD_ROOM_PRINCIPAL, HD_ROOM_REV, HD_OP_PUT},
    {HD_ROOM_MESSAGES, HD_PRIMARY, HD_ROOM_MESSAGES_PRINCIPAL, HD_ROOM_MESSAGES_CHANGED, HD_OP_PUT},
    {HD_ROOM_CONTENTS, HD_PRIMARY, HD_ROOM_CONTENTS_PRINCIPAL, HD_ROOM_CONTENTS_CREATED, HD_OP_PUT},
    {HD_ROOM_IDS, HD_PRIMARY, HD_ROOM_IDS_PRINCIPAL, HD_ROOM_IDS_SEQ, HD_OP_PUT},
    {HD_ROOM_RUNS, HD_PRIMARY, HD_ROOM_RUNS_PRINCIPAL, HD_ROOM_RUNS_CREATED, HD_OP_PUT},
    {HD_ROOM_CASCADES, HD_PRIMARY, HD_ROOM_CASCADES_PRINCIPAL, HD_ROOM_CASCADES_REV, HD_OP_PUT},
    {HD_ROOM_READS, HD_PRIMARY, HD_ROOM_READS_PRINCIPAL, HD_ROOM_READS_SEQ, HD_OP_PUT},
    {HD_PARTICIPANTS, HD_PRIMARY, HD_PARTICIPANTS_MEMBER, HD_PARTICIPANTS_ROLE, HD_OP_PUT},
    {HD_PARTICIPANTS, HD_PARTICIPANTS_BY_THREAD, HD_PARTICIPANTS_OWNER, HD_PARTICIPANTS_ROLE,
     HD_OP_PUT},
    {HD_ROOM_MENTIONS, HD_PRIMARY, HD_ROOM_MENTIONS_MEMBER, HD_ROOM_MENTIONS_SEQ, HD_OP_PUT},
    {HD_ROOM_MENTIONS, HD_ROOM_MENTIONS_BY_THREAD, HD_ROOM_MENTIONS_PRINCIPAL, HD_ROOM_MENTIONS_SEQ,
     HD_OP_PUT},
    {HD_INVITATIONS, HD_INVITATIONS_BY_THREAD, HD_INVITATIONS_OWNER, HD_INVITATIONS_REV, HD_OP_PUT},
    {HD_ASSISTANTS, HD_PRIMARY, HD_ASSISTANTS_PRINCIPAL, HD_ASSISTANTS_UPDATED, HD_OP_ADD},
    {HD_ASSISTANT_VERSIONS, HD_PRIMARY, HD_ASSISTANT_VERSIONS_PRINCIPAL,
     HD_ASSISTANT_VERSIONS_CREATED, HD_OP_PUT},
    {HD_ITEMS, HD_PRIMARY, HD_ITEMS_PRINCIPAL, HD_ITEMS_UPDATED, HD_OP_PUT},
    {HD_VECTORS, HD_PRIMARY, HD_VECTORS_PRINCIPAL, HD_VECTORS_UPDATED, HD_OP_PUT},
    {HD_CRONS, HD_PRIMARY, HD_CRONS_PRINCIPAL, HD_CRONS_REV, HD_OP_ADD},
    {HD_RUN_SLOTS, HD_PRIMARY, HD_RUN_SLOTS_ACTOR, HD_RUN_SLOTS_TOKEN, HD_OP_PUT},
    {HD_THREAD_TEXTS, HD_PRIMARY, HD_THREAD_TEXTS_PRINCIPAL, HD_THREAD_TEXTS_REV, HD_OP_PUT},
    {HD_THREAD_WORDS, HD_PRIMARY, HD_THREAD_WORDS_PRINCIPAL, HD_THREAD_WORDS_REV, HD_OP_PUT},
};

enum { FIRST_AFTER = 14 };

struct move_pass {
    struct hd_mover *mover;
    const struct principal_place *place;
    struct hd_batch_builder batch;
    size_t rows; /* in the batch */
};

static struct hd_query query_of(const struct principal_place *place, const struct hd_cell *from)
{
    return (struct hd_query){.table = place->table,
                             .index = place->index,
                             .prefix = from,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};
}

/* ---- counting --------------------------------------------------------- */

static int on_counted(void *arg, size_t which, const struct hd_cell *cells)
{
    struct move_pass *pass = arg;

    (void)which;
    (void)cells;
    pass->mover->rekey->rows++;
    pass->mover->rekey->threads += pass->place->table == HD_THREAD_INFO;
    return 0;
}

int hd_mover_count(struct hd_mover *mover)
{
    struct hd_cell from = hd_cell_bytes(mover->from);
    struct move_pass pass = {.mover = mover};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(places); i++) {
        struct hd_query query = query_of(&places[i], &from);

        query.columns = 0;
        pass.place = &places[i];
        err = hd_rows_scan(mover->rekey->store, query, on_counted, &pass, mover->fault);
    }
    return err;
}

/* ---- runs under way ----------------------------------------------------- */

static int on_active_run(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 1;
}

/* Of one thread, or of all when it is empty. */
static int find_active(struct hd_mover *mover, struct hd_slice thread, bool *is_so)
{
    static const enum hd_run_state states[] = {HD_RUN_STATE_PENDING, HD_RUN_STATE_RUNNING};
    struct hd_cell prefix[2][3];
    struct hd_query queries[2];

    for (size_t i = 0; i < HD_COUNT(states); i++) {
        prefix[i][0] = hd_cell_bytes(hd_slice_cstr(hd_run_state_name(states[i])));
        prefix[i][1] = hd_cell_bytes(mover->from);
        prefix[i][2] = hd_cell_bytes(thread);
        queries[i] = (struct hd_query){.table = HD_RUNS,
                                       .index = HD_RUNS_BY_STATUS,
                                       .prefix = prefix[i],
                                       .prefix_count = thread.len ? 3 : 2,
                                       .limit = 1};
    }
    *is_so = false;
    return hd_rows_read(mover->rekey->store, queries, 2, on_active_run, is_so, mover->fault);
}

int hd_mover_is_busy(struct hd_mover *mover, bool *is_so)
{
    return find_active(mover, hd_slice(NULL, 0), is_so);
}

/* ---- rows ------------------------------------------------------------- */

static int flush_pass(struct move_pass *pass)
{
    struct hd_batch batch = hd_batch_view(&pass->batch);
    int err = 0;

    if (pass->rows > 0)
        err = hd_rows_apply(pass->mover->rekey->store, pass->mover->to, &batch, NULL,
                            pass->mover->fault);
    if (err == HD_ECONFLICT)
        pass->mover->left += pass->rows;
    else if (!err)
        pass->mover->rekey->rows += pass->rows;
    pass->mover->moved += pass->rows;
    if (!err && pass->place->table == HD_THREAD_INFO)
        pass->mover->rekey->threads += pass->rows;
    pass->rows = 0;
    hd_batch_reset(&pass->batch);
    return err == HD_ECONFLICT ? 0 : err;
}

/* Both keys of a thread in the library's tables. */
static int thread_keys(const struct hd_mover *mover, struct hd_slice thread, struct hd_arena *arena,
                       struct hd_slice *from, struct hd_slice *to)
{
    struct heddle_thread old = {hd_to_public(mover->from), hd_to_public(thread)};
    struct heddle_thread new = {hd_to_public(mover->to), hd_to_public(thread)};
    int err = hd_store_thread_key(&old, arena, from, mover->fault);

    return err ? err : hd_store_thread_key(&new, arena, to, mover->fault);
}

/* Writers that remember the thread must look again, and will not find its record. */
static int fence(struct move_pass *pass, struct hd_slice thread)
{
    struct hd_store *store = hd_store_of(pass->mover->rekey->store);
    struct hd_slice from, to;
    int64_t epoch;
    int err = thread_keys(pass->mover, thread, &pass->batch.arena, &from, &to);

    if (!err)
        err = hd_store_read_epoch(store, from, &epoch, pass->mover->fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    return hd_batch_expect_epoch(&pass->batch, from, epoch, HD_THREADS_EPOCH, epoch + 2);
}

/* A run that has not ended, and its thread, stay for now. */
static int must_stay(struct move_pass *pass, const struct hd_cell *cells, bool *is_so)
{
    enum hd_run_state state;

    *is_so = false;
    if (pass->place->table == HD_THREAD_INFO)
        return find_active(pass->mover, cells[HD_THREAD_INFO_ID].bytes, is_so);
    if (pass->place->table == HD_RUNS && hd_run_state_find(cells[HD_RUNS_STATUS].bytes, &state))
        *is_so = state == HD_RUN_STATE_PENDING || state == HD_RUN_STATE_RUNNING;
    return 0;
}

static int add_move(struct move_pass *pass, const struct hd_cell *cells)
{
    const struct principal_place *place = pass->place;
    const struct hd_table *table = &hd_tables[place->table];
    struct hd_cell row[HD_MAX_COLUMNS], key[HD_MAX_COLUMNS];
    int err = 0;

    for (unsigned i = 0; !err && i < table->column_count; i++) {
        row[i] = cells[i];
        if (row[i].kind == HD_CELL_BYTES)
            err = hd_arena_copy(&pass->batch.arena, cells[i].bytes, &row[i].bytes);
        if (i < table->key_count)
            key[i] = row[i];
    }
    if (err)
        return err;
    row[place->column].bytes = pass->mover->to;
    err =
        hd_batch_expect(&pass->batch, place->table, key, place->guard, cells[place->guard].number);
    if (!err)
        err = hd_batch_delete(&pass->batch, place->table, key, table->key_count);
    if (!err)
        err = hd_batch_row(&pass->batch, place->kind, place->table, row);
    pass->rows++;
    return err;
}

static int on_moved_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct move_pass *pass = arg;
    bool stays;
    int err = must_stay(pass, cells, &stays);

    (void)which;
    if (err || stays) {
        pass->mover->left += stays;
        return err;
    }
    /* A thread's record alone: one that cannot move must not hold up others. */
    if (pass->place->table == HD_THREAD_INFO)
        err = fence(pass, cells[HD_THREAD_INFO_ID].bytes);
    if (!err)
        err = add_move(pass, cells);
    if (!err && (pass->place->table == HD_THREAD_INFO || pass->rows >= BATCH_ROWS ||
                 pass->batch.bytes > BATCH_BYTES))
        err = flush_pass(pass);
    return err;
}

static int move_rows(struct hd_mover *mover, size_t first, size_t end)
{
    struct hd_cell from = hd_cell_bytes(mover->from);
    struct move_pass pass = {.mover = mover};
    int err = 0;

    hd_batch_init(&pass.batch);
    for (size_t i = first; !err && i < end; i++) {
        pass.place = &places[i];
        err = hd_rows_scan(mover->rekey->store, query_of(&places[i], &from), on_moved_row, &pass,
                           mover->fault);
        if (!err)
            err = flush_pass(&pass);
    }
    hd_batch_fini(&pass.batch);
    return err;
}

/* ---- checkpoints ------------------------------------------------------ */

/* Its record moved before, or it had none: writers are refused. */
static int move_thread(struct hd_mover *mover, struct hd_slice thread, struct hd_arena *arena)
{
    struct hd_store *store = hd_store_of(mover->rekey->store);
    struct hd_thread_rec record;
    struct hd_slice from, to;
    int err =
        hd_thread_read(mover->rekey->store, mover->from, thread, arena, &record, mover->fault);

    if (!err) {
        mover->left++; /* its record could not be moved yet */
        return 0;
    }
    if (err != HD_ENOTFOUND)
        return err;
    err = thread_keys(mover, thread, arena, &from, &to);
    if (!err)
        err = hd_copy_thread(store, from, to, mover->fault);
    /* There already: a move that was interrupted had come so far. */
    if (!err || err == HD_EEXISTS)
        err = hd_delete_thread(store, from, mover->fault);
    if (err == HD_EBUSY)
        mover->left++;
    mover->moved++;
    return err == HD_EBUSY ? 0 : err;
}

static int move_page(struct hd_mover *mover, const struct heddle_threads *page,
                     struct hd_arena *arena, struct heddle_bytes *after)
{
    int err = 0;

    for (size_t i = 0; !err && i < page->count; i++) {
        struct hd_slice id;

        hd_arena_reset(arena);
        err = hd_arena_copy(arena, hd_from_public(page->threads[i].thread.id), &id);
        if (!err)
            err = move_thread(mover, id, arena);
    }
    if (page->count > 0)
        *after = page->threads[page->count - 1].thread.id;
    return err;
}

static int move_threads(struct hd_mover *mover)
{
    struct heddle_bytes after = {NULL, 0};
    struct heddle_threads *page = NULL, *next;
    struct heddle_error error = {0};
    struct hd_arena arena;
    size_t count = THREADS_PAGE;
    int err = 0;

    hd_arena_init(&arena, (size_t)64 << 20);
    while (!err && count == THREADS_PAGE) {
        err = heddle_list_threads(mover->rekey->store, hd_to_public(mover->from), after,
                                  THREADS_PAGE, &next, &error);
        heddle_threads_free(page); /* `after` was in it */
        page = err ? NULL : next;
        if (err) {
            err = hd_error_set(mover->fault, err, "%s", error.text);
            break;
        }
        count = page->count;
        err = move_page(mover, page, &arena, &after);
    }
    heddle_threads_free(page);
    hd_arena_fini(&arena);
    return err;
}

int hd_mover_pass(struct hd_mover *mover)
{
    int err;

    mover->left = mover->moved = 0;
    err = move_rows(mover, 0, FIRST_AFTER);
    if (!err)
        err = move_threads(mover);
    return err || mover->left > 0 ? err : move_rows(mover, FIRST_AFTER, HD_COUNT(places));
}
