#include "records/line.h"

#include <string.h>

#include "records/record_internal.h"

#define MAX_INTERRUPTS ((size_t)256 << 20)

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_line_rec

static const struct hd_record_field line_members[] = {
    {HD_RECORD_MEMBER("checkpoint_id", TEXT, REC, checkpoint_id)},
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, graph_id)},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, assistant_id)},
    {HD_RECORD_MEMBER("run_id", TEXT, REC, run_id)},
    {HD_RECORD_MEMBER("interrupts", JSON, REC, interrupts)},
    {HD_RECORD_MEMBER("error", JSON, REC, error)},
};

static const struct hd_record_type line_type = {
    .table = HD_LINES,
    .size = sizeof(REC),
    .id = HD_LINES_THREAD,
    .columns =
        {
            [HD_LINES_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_LINES_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_LINES_NS] = {HD_RECORD_COLUMN(TEXT, REC, ns)},
            [HD_LINES_STATUS] = {HD_RECORD_COLUMN(NAME, REC, status), .names = hd_thread_statuses},
            [HD_LINES_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_LINES_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(line_members),
    .unknown = offsetof(REC, unknown),
};

/* ---- the list --------------------------------------------------------- */

struct hd_line_rec *hd_lines_find(const struct hd_lines *lines, struct hd_slice ns)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (hd_slice_eq(lines->list[i].ns, ns))
            return &lines->list[i];
    }
    return NULL;
}

/* Appends an empty entry; NULL: no memory. */
static struct hd_line_rec *append_line(struct hd_lines *lines, struct hd_arena *arena)
{
    if (lines->count == lines->cap) {
        size_t cap = lines->cap ? 2 * lines->cap : 4;
        struct hd_line_rec *grown = hd_arena_calloc(arena, cap, sizeof(*grown));

        if (!grown)
            return NULL;
        if (lines->count > 0)
            memcpy(grown, lines->list, lines->count * sizeof(*grown));
        lines->list = grown;
        lines->cap = cap;
    }
    lines->list[lines->count] = (struct hd_line_rec){.status = HD_THREAD_IDLE};
    return &lines->list[lines->count++];
}

struct hd_line_rec *hd_lines_change(struct hd_lines *lines, const struct hd_thread_rec *thread,
                                    struct hd_slice ns, struct hd_arena *arena)
{
    struct hd_line_rec *line = hd_lines_find(lines, ns);

    if (!line) {
        line = append_line(lines, arena);
        if (!line)
            return NULL;
        line->principal = thread->principal;
        line->thread_id = thread->id;
        line->ns = ns;
    }
    line->is_changed = true;
    return line;
}

void hd_lines_remove(struct hd_lines *lines, struct hd_slice ns)
{
    struct hd_line_rec *line = hd_lines_find(lines, ns);

    if (line)
        *line = lines->list[--lines->count];
}

/* ---- reading ---------------------------------------------------------- */

struct line_reading {
    struct hd_lines *lines;
    struct hd_arena *arena;
    struct heddle_error *fault;
};

static int on_line(void *arg, size_t which, const struct hd_cell *cells)
{
    struct line_reading *reading = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    struct hd_line_rec *line = append_line(reading->lines, reading->arena);
    int err = line ? hd_record_keep(reading->arena, HD_LINES, cells, kept) : HD_ENOMEM;

    (void)which;
    if (!err)
        err = hd_record_decode(&line_type, kept, reading->arena, line, reading->fault);
    if (!err)
        line->is_changed = false;
    return err;
}

/* Threads of an earlier version have one status for all agents: it belongs to their head. */
static int make_first_line(const struct hd_thread_rec *thread, struct hd_lines *lines,
                           struct hd_arena *arena)
{
    bool is_busy = thread->status == HD_THREAD_BUSY;
    const struct hd_head *head =
        is_busy && thread->has_before ? &thread->head_before : &thread->head;
    struct hd_line_rec *line;

    if (!hd_thread_head_is_set(head))
        return 0;
    line = hd_lines_change(lines, thread, head->ns, arena);
    if (!line)
        return HD_ENOMEM;
    line->status = thread->status;
    if (is_busy)
        line->status = thread->has_before ? thread->status_before : HD_THREAD_IDLE;
    if (line->status == HD_THREAD_BUSY)
        line->status = HD_THREAD_IDLE;
    line->updated_at = thread->updated_at;
    line->checkpoint_id = head->checkpoint_id;
    line->graph_id = head->graph_id;
    line->assistant_id = head->assistant_id;
    line->interrupts = thread->interrupts;
    line->error = thread->error;
    return 0;
}

int hd_lines_read(struct heddle *store, const struct hd_thread_rec *thread, struct hd_arena *arena,
                  struct hd_lines *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    const struct hd_query query = {.table = HD_LINES,
                                   .index = HD_PRIMARY,
                                   .prefix = key,
                                   .prefix_count = HD_COUNT(key),
                                   .columns = HD_ALL_COLUMNS};
    struct line_reading reading = {.lines = out, .arena = arena, .fault = fault};
    int err;

    *out = (struct hd_lines){NULL, 0, 0};
    err = hd_rows_read(store, &query, 1, on_line, &reading, fault);
    if (!err && out->count == 0)
        err = make_first_line(thread, out, arena);
    return err;
}

int hd_line_is_busy(struct heddle *store, const struct hd_thread_rec *thread, struct hd_slice ns,
                    bool is_parallel, bool *out, struct heddle_error *fault)
{
    struct hd_run_rec *runs = NULL;
    struct hd_arena arena;
    size_t count = 0;
    int err = 0;

    *out = thread->status == HD_THREAD_BUSY;
    if (!*out || !is_parallel)
        return 0;
    *out = false;
    hd_arena_init(&arena, SIZE_MAX / 2);
    err = hd_runs_active(store, thread->principal, thread->id, &arena, &runs, &count, fault);
    for (size_t i = 0; !err && i < count && !*out; i++) {
        struct hd_slice line;

        err = hd_run_line(&runs[i], &arena, &line, fault);
        *out = !err && hd_slice_eq(line, ns);
    }
    hd_arena_fini(&arena);
    return err;
}

/* ---- the thread's own status ------------------------------------------ */

static bool has_members(struct hd_slice object)
{
    return object.len > strlen("{}");
}

static int merge_interrupts(const struct hd_lines *lines, struct hd_buf *out)
{
    struct hd_jw jw;
    int err = 0;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    for (size_t i = 0; !err && i < lines->count; i++) {
        struct hd_json json = {NULL};
        struct hd_json_iter it;

        if (!has_members(lines->list[i].interrupts))
            continue;
        err = hd_json_parse(&json, lines->list[i].interrupts, NULL);
        it = hd_json_iter(hd_json_root(&json));
        while (!err && hd_json_next(&it)) {
            hd_jw_key(&jw, it.key);
            hd_jw_val(&jw, it.val);
        }
        hd_json_fini(&json);
    }
    hd_jw_object_end(&jw);
    return err ? err : hd_jw_finish(&jw);
}

/* The open interrupts of all lines. Task ids are unique in a thread. */
static int join_interrupts(const struct hd_lines *lines, struct hd_arena *arena,
                           struct hd_slice *out)
{
    struct hd_slice only = {NULL, 0};
    struct hd_buf merged;
    size_t found = 0;
    int err;

    for (size_t i = 0; i < lines->count; i++) {
        if (has_members(lines->list[i].interrupts)) {
            only = lines->list[i].interrupts;
            found++;
        }
    }
    *out = only;
    if (found < 2)
        return 0;
    hd_buf_init(&merged, MAX_INTERRUPTS);
    err = merge_interrupts(lines, &merged);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&merged), out);
    hd_buf_fini(&merged);
    return err;
}

int hd_lines_settle(const struct hd_lines *lines, struct hd_thread_rec *thread, bool is_busy,
                    struct hd_arena *arena)
{
    const struct hd_line_rec *head = hd_lines_find(lines, thread->head.ns);

    thread->status = head && head->status == HD_THREAD_ERROR ? HD_THREAD_ERROR : HD_THREAD_IDLE;
    thread->error = head ? head->error : hd_slice(NULL, 0);
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->list[i].status == HD_THREAD_INTERRUPTED)
            thread->status = HD_THREAD_INTERRUPTED;
    }
    thread->status_before = thread->status;
    if (is_busy)
        thread->status = HD_THREAD_BUSY;
    return join_interrupts(lines, arena, &thread->interrupts);
}

/* ---- writing ---------------------------------------------------------- */

int hd_lines_put(struct hd_batch_builder *batch, const struct hd_lines *lines)
{
    int err = 0;

    for (size_t i = 0; !err && i < lines->count; i++) {
        if (lines->list[i].is_changed)
            err = hd_record_write(batch, &line_type, &lines->list[i], HD_OP_PUT);
    }
    return err;
}

int hd_line_delete(struct hd_batch_builder *batch, const struct hd_thread_rec *thread,
                   struct hd_slice ns)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id),
                                  hd_cell_bytes(ns)};

    return hd_batch_delete(batch, HD_LINES, key, HD_COUNT(key));
}
