#include <string.h>

#include "app/app.h"
#include "records/record_internal.h"
#include "room/room.h"

#define REC struct hd_room_run_rec

static const struct hd_record_field run_members[] = {
    {HD_RECORD_MEMBER("answer", TEXT, REC, answer)},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, assistant_id)},
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, graph_id)},
    {HD_RECORD_MEMBER("runtime", TEXT, REC, runtime)},
    {HD_RECORD_MEMBER("ns", TEXT, REC, ns)},
    {HD_RECORD_MEMBER("given", JSON, REC, given)},
    {HD_RECORD_MEMBER("head_before", TEXT, REC, head_before)},
    {HD_RECORD_MEMBER("head_after", TEXT, REC, head_after)},
    {HD_RECORD_MEMBER("chain", TEXT, REC, chain)},
    {HD_RECORD_MEMBER("depth", INT, REC, depth)},
    {HD_RECORD_MEMBER("cascade", TEXT, REC, cascade)},
    {HD_RECORD_MEMBER("replaces", TEXT, REC, replaces)},
    {HD_RECORD_MEMBER("is_answer", WORD, REC, is_answer), .names = hd_record_true},
};

static const struct hd_record_type run_type = {
    .table = HD_ROOM_RUNS,
    .size = sizeof(REC),
    .id = HD_ROOM_RUNS_RUN,
    .columns =
        {
            [HD_ROOM_RUNS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_RUNS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_RUNS_RUN] = {HD_RECORD_COLUMN(TEXT, REC, run_id)},
            [HD_ROOM_RUNS_TRIGGER] = {HD_RECORD_COLUMN(TEXT, REC, trigger)},
            [HD_ROOM_RUNS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_RUNS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(run_members),
    .unknown = offsetof(REC, unknown),
};

int hd_room_run_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                     struct hd_slice run_id, struct hd_arena *arena, struct hd_room_run_rec *out,
                     struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(run_id)};

    return hd_record_read(store, &run_type, key, HD_COUNT(key), arena, out, fault);
}

struct hd_slice hd_room_run_runtime(const struct hd_app *app, struct hd_slice graph_id)
{
    const struct hd_app_graph *graph = hd_app_graph(app, graph_id);

    if (!graph)
        return hd_slice("", 0);
    if (!graph->is_remote)
        return HD_S("native");
    return graph->language == HD_RT_PYTHON ? HD_S("python") : HD_S("typescript");
}

int hd_room_run_put(struct hd_batch_builder *batch, const struct hd_room_run_rec *run)
{
    return hd_record_write(batch, &run_type, run, HD_OP_PUT);
}

int hd_room_run_delete(struct hd_batch_builder *batch, const struct hd_room_run_rec *run)
{
    return hd_record_delete(batch, &run_type, run);
}

int hd_room_runs_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                      struct hd_slice trigger, struct hd_arena *arena, struct hd_room_run_rec **out,
                      size_t *count, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                     hd_cell_bytes(trigger)};
    const struct hd_query query = {.index = trigger.len > 0 ? HD_ROOM_RUNS_BY_TRIGGER : HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = trigger.len > 0 ? 3 : 2};
    void *runs = NULL;
    int err = hd_records_list(store, &run_type, query, 0, arena, &runs, count, fault);

    if (!err)
        *out = runs;
    return err;
}

/* ---- the runs of many messages ---------------------------------------- */

struct triggered_runs {
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct hd_room_run_rec *runs;
    size_t count, cap;
    size_t *counts;
};

static int grow_triggered(struct triggered_runs *list)
{
    size_t cap = list->cap ? list->cap * 2 : 16;
    struct hd_room_run_rec *grown;

    if (list->count < list->cap)
        return 0;
    grown = hd_arena_calloc(list->arena, cap, sizeof(*grown));
    if (!grown)
        return HD_ENOMEM;
    if (list->count > 0)
        memcpy(grown, list->runs, list->count * sizeof(*grown));
    list->runs = grown;
    list->cap = cap;
    return 0;
}

static int on_triggered_run(void *arg, size_t which, const struct hd_cell *cells)
{
    struct triggered_runs *list = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = grow_triggered(list);

    if (!err)
        err = hd_record_keep(list->arena, HD_ROOM_RUNS, cells, kept);
    if (!err)
        err = hd_record_decode(&run_type, kept, list->arena, &list->runs[list->count], list->fault);
    if (err)
        return err;
    list->count++;
    list->counts[which]++;
    return 0;
}

int hd_room_runs_of(struct heddle *store, const struct hd_room_message_rec *messages,
                    size_t message_count, struct hd_arena *arena, struct hd_room_run_rec **out,
                    size_t *counts, struct heddle_error *fault)
{
    struct triggered_runs list = {.arena = arena, .fault = fault, .counts = counts};
    struct hd_cell(*prefixes)[3] = hd_arena_calloc(arena, message_count + 1, sizeof(*prefixes));
    struct hd_query *queries = hd_arena_calloc(arena, message_count + 1, sizeof(*queries));
    int err = 0;

    if (!prefixes || !queries)
        return HD_ENOMEM;
    for (size_t i = 0; i < message_count; i++) {
        prefixes[i][0] = hd_cell_bytes(messages[i].principal);
        prefixes[i][1] = hd_cell_bytes(messages[i].thread_id);
        prefixes[i][2] = hd_cell_bytes(messages[i].id);
        queries[i] = (struct hd_query){.table = HD_ROOM_RUNS,
                                       .index = HD_ROOM_RUNS_BY_TRIGGER,
                                       .prefix = prefixes[i],
                                       .prefix_count = HD_COUNT(prefixes[i]),
                                       .columns = HD_ALL_COLUMNS,
                                       .is_independent = i == 0};
        counts[i] = 0;
    }
    if (message_count > 0)
        err = hd_rows_read(store, queries, message_count, on_triggered_run, &list, fault);
    *out = list.runs;
    return err;
}
