#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "records/hold.h"
#include "records/record_internal.h"

/* ---- how it is stored ------------------------------------------------- */

static const char *const states[] = {
    [HD_RUN_STATE_PENDING] = "pending",
    [HD_RUN_STATE_RUNNING] = "running",
    [HD_RUN_STATE_ERROR] = "error",
    [HD_RUN_STATE_SUCCESS] = "success",
    [HD_RUN_STATE_TIMEOUT] = "timeout",
    [HD_RUN_STATE_INTERRUPTED] = "interrupted",
    NULL,
};

static const char *const flag_words[] = {"", "1", NULL};

#define REC struct hd_run_rec

static const struct hd_record_field run_members[] = {
    {HD_RECORD_MEMBER("actor", TEXT, REC, actor), .flags = HD_RECORD_ELSE,
     .other = offsetof(REC, principal)},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, assistant_id)},
    {HD_RECORD_MEMBER("ns", TEXT, REC, ns)},
    {HD_RECORD_MEMBER("multitask_strategy", NAME, REC, multitask), .names = hd_multitask_names},
    {HD_RECORD_MEMBER("attempt", INT, REC, attempt)},
    {HD_RECORD_MEMBER("losses", INT, REC, losses.count)},
    {HD_RECORD_MEMBER("checkpoints", INT, REC, losses.checkpoints)},
    {HD_RECORD_MEMBER("writes", INT, REC, losses.writes)},
    {HD_RECORD_MEMBER("suspended", WORD, REC, is_suspended), .names = flag_words},
    {HD_RECORD_MEMBER("order", INT, REC, order)},
    {HD_RECORD_MEMBER("slot", INT, REC, slot)},
    {HD_RECORD_MEMBER("metadata", JSON, REC, metadata)},
    {HD_RECORD_MEMBER("kwargs", JSON, REC, kwargs)},
    {HD_RECORD_MEMBER("receipt", JSON, REC, receipt)},
    {HD_RECORD_MEMBER("error", JSON, REC, error)},
    {HD_RECORD_MEMBER("checkpoint_id", TEXT, REC, checkpoint_id)},
    {HD_RECORD_MEMBER("touched", JSON, REC, touched)},
    {HD_RECORD_MEMBER("off_head", WORD, REC, is_off_head), .names = flag_words},
    {HD_RECORD_MEMBER("forks", JSON, REC, forks)},
    {HD_RECORD_MEMBER("asked", JSON, REC, asked)},
    {HD_RECORD_COLUMN(MEMORY, REC, secrets)},
};

static const struct hd_record_type run_type = {
    .table = HD_RUNS,
    .size = sizeof(REC),
    .id = HD_RUNS_ID,
    .rev = HD_RUNS_REV,
    .columns =
        {
            [HD_RUNS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_RUNS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_RUNS_ID] = {HD_RECORD_COLUMN(TEXT, REC, run_id)},
            [HD_RUNS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_RUNS_STATUS] = {HD_RECORD_COLUMN(NAME, REC, status), .names = states},
            [HD_RUNS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_RUNS_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_RUNS_DUE] = {HD_RECORD_COLUMN(INT, REC, due_at)},
            [HD_RUNS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(run_members),
    .unknown = offsetof(REC, unknown),
};

const char *hd_run_state_name(enum hd_run_state state)
{
    return states[state];
}

bool hd_run_state_find(struct hd_slice name, enum hd_run_state *out)
{
    int value;
    bool is_found = hd_record_name_find(states, name, &value);

    if (is_found)
        *out = (enum hd_run_state)value;
    return is_found;
}

int hd_run_rec_copy(struct hd_arena *arena, const struct hd_run_rec *run, struct hd_run_rec *out)
{
    return hd_record_copy(&run_type, arena, run, out);
}

int hd_run_line(const struct hd_run_rec *run, struct hd_arena *arena, struct hd_slice *ns,
                struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val config;
    int err;

    *ns = run->ns;
    if (run->ns.len > 0)
        return 0;
    err = hd_json_parse(&json, run->kwargs, fault);
    config = hd_json_get(hd_json_root(&json), HD_S("config"));
    if (!err)
        err = hd_arena_copy(arena,
                            hd_json_string(hd_json_get(hd_json_get(config, HD_S("configurable")),
                                                       HD_S("checkpoint_ns"))),
                            ns);
    hd_json_fini(&json);
    return err;
}

/* ---- reading ---------------------------------------------------------- */

int hd_run_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                struct hd_slice run_id, struct hd_arena *arena, struct hd_run_rec *out,
                struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(run_id)};

    return hd_record_read(store, &run_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_run_find(struct heddle *store, struct hd_slice principal, struct hd_slice run_id,
                struct hd_arena *arena, struct hd_run_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(run_id), hd_cell_bytes(principal)};
    const struct hd_query query = {
        .index = HD_RUNS_BY_RUN, .prefix = key, .prefix_count = HD_COUNT(key)};

    return hd_record_find(store, &run_type, query, arena, out, fault);
}

static int on_run_status(void *arg, size_t which, const struct hd_cell *cells)
{
    int *statuses = arg;
    enum hd_run_state state;

    if (!hd_run_state_find(cells[HD_RUNS_STATUS].bytes, &state))
        return HD_ECORRUPT;
    statuses[which] = (int)state;
    return 0;
}

static int read_each_run(struct heddle *store, const struct hd_run_key *runs, size_t count,
                         unsigned columns, hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct hd_cell(*keys)[3] = hd_calloc(count + 1, sizeof(*keys));
    struct hd_query *queries = hd_calloc(count + 1, sizeof(*queries));
    int err = keys && queries ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++) {
        keys[i][0] = hd_cell_bytes(runs[i].principal);
        keys[i][1] = hd_cell_bytes(runs[i].thread_id);
        keys[i][2] = hd_cell_bytes(runs[i].run_id);
        queries[i] = (struct hd_query){.table = HD_RUNS,
                                       .index = HD_PRIMARY,
                                       .prefix = keys[i],
                                       .prefix_count = HD_COUNT(keys[i]),
                                       .limit = 1,
                                       .columns = columns,
                                       .is_independent = i == 0};
    }
    if (!err && count > 0)
        err = hd_rows_read(store, queries, count, fn, arg, fault);
    hd_free(queries);
    hd_free(keys);
    return err;
}

int hd_run_statuses_read(struct heddle *store, const struct hd_run_key *runs, size_t count,
                         int *statuses, struct heddle_error *fault)
{
    for (size_t i = 0; i < count; i++)
        statuses[i] = -1;
    return read_each_run(store, runs, count, 1u << HD_RUNS_STATUS, on_run_status, statuses, fault);
}

struct author_reading {
    struct hd_arena *arena;
    struct hd_arena scratch; /* memory of one record */
    struct hd_run_author *out;
    struct heddle_error *fault;
};

static int keep_author(struct author_reading *reading, const struct hd_run_rec *run,
                       struct hd_run_author *author)
{
    struct hd_json json = {NULL};
    hd_json_val config;
    int err = hd_arena_copy(reading->arena, run->actor, &author->actor);

    author->is_known = true;
    if (!err)
        err = hd_arena_copy(reading->arena, run->assistant_id, &author->assistant_id);
    if (!err && run->kwargs.len > 0)
        err = hd_json_parse(&json, run->kwargs, reading->fault);
    config = hd_json_get(hd_json_root(&json), HD_S("config"));
    if (!err)
        err = hd_arena_copy(
            reading->arena,
            hd_json_string(hd_json_get(hd_json_get(config, HD_S("configurable")), HD_S("cron_id"))),
            &author->cron_id);
    hd_json_fini(&json);
    return err;
}

static int on_authored_run(void *arg, size_t which, const struct hd_cell *cells)
{
    struct author_reading *reading = arg;
    struct hd_run_rec run;
    int err;

    hd_arena_reset(&reading->scratch);
    err = hd_record_decode(&run_type, cells, &reading->scratch, &run, reading->fault);
    return err ? err : keep_author(reading, &run, &reading->out[which]);
}

int hd_run_authors_read(struct heddle *store, const struct hd_run_key *runs, size_t count,
                        struct hd_arena *arena, struct hd_run_author *out,
                        struct heddle_error *fault)
{
    struct author_reading reading = {.arena = arena, .out = out, .fault = fault};
    int err;

    for (size_t i = 0; i < count; i++)
        out[i] = (struct hd_run_author){.is_known = false};
    hd_arena_init(&reading.scratch, SIZE_MAX / 2);
    err = read_each_run(store, runs, count, HD_ALL_COLUMNS, on_authored_run, &reading, fault);
    hd_arena_fini(&reading.scratch);
    return err;
}

/* A list that grows in an arena. */
struct run_list {
    struct hd_arena *arena;
    struct heddle_error *fault;
    size_t skip; /* rows that are passed over first */
    struct hd_run_rec *runs;
    size_t count;
    size_t cap;
};

static int grow_runs(struct run_list *list)
{
    size_t cap = list->cap ? list->cap * 2 : 8;
    struct hd_run_rec *grown;

    if (list->count < list->cap)
        return 0;
    grown = hd_arena_alloc(list->arena, cap * sizeof(*grown));
    if (!grown)
        return HD_ENOMEM;
    if (list->count > 0)
        memcpy(grown, list->runs, list->count * sizeof(*grown));
    list->runs = grown;
    list->cap = cap;
    return 0;
}

static int on_listed(void *arg, size_t which, const struct hd_cell *cells)
{
    struct run_list *list = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err;

    (void)which;
    if (list->skip > 0) {
        list->skip--;
        return 0;
    }
    err = grow_runs(list);
    if (!err)
        err = hd_record_keep(list->arena, HD_RUNS, cells, kept);
    if (!err)
        err = hd_record_decode(&run_type, kept, list->arena, &list->runs[list->count], list->fault);
    if (!err)
        list->count++;
    return err;
}

static int read_list(struct heddle *store, const struct hd_query *queries, size_t query_count,
                     struct run_list *list, struct hd_run_rec **out, size_t *count)
{
    int err = hd_rows_read(store, queries, query_count, on_listed, list, list->fault);

    if (err)
        return err;
    *out = list->runs;
    *count = list->count;
    return 0;
}

/* The runs of a thread in one state, oldest first. */
static struct hd_query query_state(enum hd_run_state state, struct hd_slice principal,
                                   struct hd_slice thread_id, struct hd_cell prefix[3])
{
    prefix[0] = hd_cell_bytes(hd_slice_cstr(states[state]));
    prefix[1] = hd_cell_bytes(principal);
    prefix[2] = hd_cell_bytes(thread_id);
    return (struct hd_query){.table = HD_RUNS,
                             .index = HD_RUNS_BY_STATUS,
                             .prefix = prefix,
                             .prefix_count = 3,
                             .columns = HD_ALL_COLUMNS};
}

static int in_order(const void *a, const void *b)
{
    const struct hd_run_rec *one = a, *other = b;

    if (one->status != other->status)
        return one->status == HD_RUN_STATE_RUNNING ? -1 : 1;
    if (one->order != other->order)
        return one->order < other->order ? -1 : 1;
    return hd_slice_cmp(one->run_id, other->run_id);
}

int hd_runs_active(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                   struct hd_arena *arena, struct hd_run_rec **out, size_t *count,
                   struct heddle_error *fault)
{
    struct hd_cell running[3], pending[3];
    const struct hd_query queries[] = {
        query_state(HD_RUN_STATE_RUNNING, principal, thread_id, running),
        query_state(HD_RUN_STATE_PENDING, principal, thread_id, pending),
    };
    struct run_list list = {.arena = arena, .fault = fault};
    int err = read_list(store, queries, HD_COUNT(queries), &list, out, count);

    if (!err && *count > 1)
        qsort(*out, *count, sizeof(**out), in_order);
    return err;
}

/*
 * A run without a delay is due when it is taken in, and its record was last changed then. The clock
 * may have stepped back since.
 */
int64_t hd_run_not_before(const struct hd_run_rec *run)
{
    bool is_delayed = run->status == HD_RUN_STATE_PENDING && run->due_at > run->updated_at;

    return is_delayed ? run->due_at : 0;
}

int hd_runs_list(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                 const enum hd_run_state *status, size_t offset, size_t limit,
                 struct hd_arena *arena, struct hd_run_rec **out, size_t *count,
                 struct heddle_error *fault)
{
    struct hd_cell by_state[3];
    const struct hd_cell by_key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    struct hd_query query = {.table = HD_RUNS,
                             .index = HD_PRIMARY,
                             .prefix = by_key,
                             .prefix_count = HD_COUNT(by_key),
                             .columns = HD_ALL_COLUMNS};
    struct run_list list = {.arena = arena, .fault = fault, .skip = offset};

    *out = NULL;
    *count = 0;
    if (limit == 0 || limit > SIZE_MAX - offset)
        return 0;
    if (status)
        query = query_state(*status, principal, thread_id, by_state);
    query.is_reverse = true;
    query.limit = offset + limit;
    return read_list(store, &query, 1, &list, out, count);
}

/* ---- writing ---------------------------------------------------------- */

int hd_run_add(struct hd_batch_builder *batch, struct hd_run_rec *run)
{
    return hd_record_add(batch, &run_type, run);
}

int hd_run_put(struct hd_batch_builder *batch, struct hd_run_rec *run)
{
    return hd_record_put(batch, &run_type, run);
}

int hd_run_delete(struct hd_batch_builder *batch, const struct hd_run_rec *run)
{
    return hd_record_delete(batch, &run_type, run);
}

/* ---- marking ---------------------------------------------------------- */

/* Puts the run alone, while this server holds its thread. */
static int put_now(struct heddle *store, struct hd_run_rec *run, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err;

    hd_batch_init(&batch);
    err = hd_run_put(&batch, run);
    if (!err && run->guard.token)
        err = hd_hold_expect(&batch, run->principal, run->thread_id, run->guard.token);
    if (!err)
        err = hd_thread_lane(&batch.arena, run->principal, run->thread_id, &lane);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* HD_ETAKEN: another server has taken over the thread. */
static int check_token(struct heddle *store, const struct hd_run_rec *run, struct hd_arena *arena,
                       struct heddle_error *fault)
{
    struct hd_hold hold;
    int err;

    if (!run->guard.token)
        return 0;
    err = hd_hold_read(store, run->principal, run->thread_id, arena, &hold, fault);
    if (!err && hold.token != run->guard.token)
        err = hd_error_set(fault, HD_ETAKEN, "%s", hd_error_text(HD_ETAKEN));
    return err;
}

/* The revision of a run that another request has changed, if it is still in the same state. */
static int read_rev(struct heddle *store, struct hd_run_rec *run, enum hd_run_state state,
                    struct heddle_error *fault)
{
    struct hd_run_rec stored;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, SIZE_MAX / 2);
    err = hd_run_read(store, run->principal, run->thread_id, run->run_id, &arena, &stored, fault);
    if (!err && stored.status != state)
        err = HD_ENOTFOUND;
    if (!err)
        err = check_token(store, run, &arena, fault);
    if (!err)
        run->rev = stored.rev;
    hd_arena_fini(&arena);
    return err;
}

struct run_change {
    struct heddle *store;
    struct hd_run_rec *changed;
    enum hd_run_state state; /* the stored run must have it */
    bool is_retry;
};

static int run_change_once(void *arg, struct heddle_error *fault)
{
    struct run_change *change = arg;
    int err = 0;

    if (change->is_retry)
        err = read_rev(change->store, change->changed, change->state, fault);
    change->is_retry = true;
    return err ? err : put_now(change->store, change->changed, fault);
}

/* Puts `changed`, which is `run` with other values, while the stored run is in its state. */
static int change_now(struct heddle *store, struct hd_run_rec *run, struct hd_run_rec *changed,
                      struct heddle_error *fault)
{
    struct run_change change = {.store = store, .changed = changed, .state = run->status};
    struct heddle_error failure = {0};
    int err;

    changed->updated_at = hd_clock_now_us();
    err = hd_rows_change(store, run_change_once, &change, &failure);
    if (err)
        return hd_error_set(fault, err, "%s", failure.code ? failure.text : hd_error_text(err));
    *run = *changed;
    return 0;
}

int hd_run_mark_running(struct heddle *store, struct hd_run_rec *run, struct heddle_error *fault)
{
    struct hd_run_rec changed = *run;
    struct heddle_error failure = {0};
    int err;

    changed.status = HD_RUN_STATE_RUNNING;
    err = change_now(store, run, &changed, &failure);
    /* An earlier commit whose reply was lost has set the mark: no other writer sets it. */
    if (err == HD_ENOTFOUND && read_rev(store, &changed, HD_RUN_STATE_RUNNING, NULL) == 0) {
        *run = changed;
        return 0;
    }
    return err ? hd_error_set(fault, err, "%s", failure.code ? failure.text : hd_error_text(err))
               : 0;
}

int hd_run_mark_suspended(struct heddle *store, struct hd_run_rec *run, struct heddle_error *fault)
{
    struct hd_run_rec changed = *run;

    changed.is_suspended = true;
    return change_now(store, run, &changed, fault);
}
