#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "records/record_internal.h"

static const char *const states[] = {
    [HD_RUN_STATE_PENDING] = "pending", [HD_RUN_STATE_RUNNING] = "running",
    [HD_RUN_STATE_ERROR] = "error",     [HD_RUN_STATE_SUCCESS] = "success",
    [HD_RUN_STATE_TIMEOUT] = "timeout", [HD_RUN_STATE_INTERRUPTED] = "interrupted"};

const char *hd_run_state_name(enum hd_run_state state)
{
    return states[state];
}

bool hd_run_state_find(struct hd_slice name, enum hd_run_state *out)
{
    for (size_t i = 0; i < HD_COUNT(states); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(states[i]))) {
            *out = (enum hd_run_state)i;
            return true;
        }
    }
    return false;
}

static bool find_multitask(struct hd_slice name, enum hd_multitask *out)
{
    for (int i = HD_MULTITASK_ENQUEUE; i <= HD_MULTITASK_ROLLBACK; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(hd_multitask_name((enum hd_multitask)i)))) {
            *out = (enum hd_multitask)i;
            return true;
        }
    }
    return false;
}

int hd_run_rec_copy(struct hd_arena *arena, const struct hd_run_rec *run, struct hd_run_rec *out)
{
    struct hd_run_rec copy = *run;
    int err = hd_arena_copy(arena, run->principal, &copy.principal);

    if (!err)
        err = hd_arena_copy(arena, run->thread_id, &copy.thread_id);
    if (!err)
        err = hd_arena_copy(arena, run->run_id, &copy.run_id);
    if (!err)
        err = hd_arena_copy(arena, run->actor, &copy.actor);
    if (!err)
        err = hd_arena_copy(arena, run->assistant_id, &copy.assistant_id);
    if (!err)
        err = hd_arena_copy(arena, run->metadata, &copy.metadata);
    if (!err)
        err = hd_arena_copy(arena, run->kwargs, &copy.kwargs);
    if (!err)
        err = hd_arena_copy(arena, run->receipt, &copy.receipt);
    if (!err)
        err = hd_arena_copy(arena, run->error, &copy.error);
    if (!err)
        err = hd_arena_copy(arena, run->secrets, &copy.secrets);
    if (!err)
        *out = copy;
    return err;
}

/* ---- reading ---------------------------------------------------------- */

static int read_count(struct hd_slice raw, int *out)
{
    int64_t number = 0;
    int err = hd_record_int(raw, &number);

    if (!err && (number < 0 || number > INT_MAX))
        err = HD_ECORRUPT;
    *out = (int)number;
    return err;
}

static int decode_body(struct hd_slice body, struct hd_arena *arena, struct hd_run_rec *out)
{
    struct hd_slice attempt, losses, checkpoints, writes, suspended, assistant, multitask, actor;
    struct hd_slice order, name = {NULL, 0};
    const struct hd_member members[] = {
        {"attempt", &attempt},
        {"losses", &losses},
        {"checkpoints", &checkpoints},
        {"writes", &writes},
        {"suspended", &suspended},
        {"actor", &actor},
        {"assistant_id", &assistant},
        {"multitask_strategy", &multitask},
        {"metadata", &out->metadata},
        {"kwargs", &out->kwargs},
        {"receipt", &out->receipt},
        {"error", &out->error},
        {"order", &order},
    };
    int err = hd_record_split(body, members, HD_COUNT(members));

    if (!err)
        err = read_count(attempt, &out->attempt);
    if (!err)
        err = read_count(losses, &out->losses.count);
    if (!err)
        err = hd_record_int(checkpoints, &out->losses.checkpoints);
    if (!err)
        err = hd_record_int(writes, &out->losses.writes);
    out->is_suspended = suspended.len > 0;
    if (!err && order.len > 0)
        err = hd_record_int(order, &out->order);
    if (!err)
        err = hd_record_text(assistant, arena, &out->assistant_id);
    if (!err)
        err = hd_record_text(multitask, arena, &name);
    out->actor = out->principal;
    if (!err && actor.len > 0)
        err = hd_record_text(actor, arena, &out->actor);
    if (!err && !find_multitask(name, &out->multitask))
        err = HD_ECORRUPT;
    return err;
}

/* Borrows from the cells. */
static int decode_run(const struct hd_cell *cells, struct hd_arena *arena, struct hd_run_rec *out,
                      struct hd_fault *fault)
{
    int err;

    *out = (struct hd_run_rec){
        .principal = cells[HD_RUNS_PRINCIPAL].bytes,
        .thread_id = cells[HD_RUNS_THREAD].bytes,
        .run_id = cells[HD_RUNS_ID].bytes,
        .rev = cells[HD_RUNS_REV].number,
        .created_at = cells[HD_RUNS_CREATED].number,
        .updated_at = cells[HD_RUNS_UPDATED].number,
        .due_at = cells[HD_RUNS_DUE].number,
    };
    err = decode_body(cells[HD_RUNS_BODY].bytes, arena, out);
    if (!err && !hd_run_state_find(cells[HD_RUNS_STATUS].bytes, &out->status))
        err = HD_ECORRUPT;
    return err == HD_ECORRUPT ? hd_record_damaged(HD_RUNS, out->run_id, fault) : err;
}

static int read_run(struct heddle *store, int index, const struct hd_cell *prefix, unsigned count,
                    struct hd_arena *arena, struct hd_run_rec *out, struct hd_fault *fault)
{
    struct hd_query query = {.table = HD_RUNS,
                             .index = index,
                             .prefix = prefix,
                             .prefix_count = count,
                             .columns = HD_ALL_COLUMNS};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_first(store, query, arena, cells, fault);

    return err ? err : decode_run(cells, arena, out, fault);
}

int hd_run_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                struct hd_slice run_id, struct hd_arena *arena, struct hd_run_rec *out,
                struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(run_id)};

    return read_run(store, HD_PRIMARY, key, HD_COUNT(key), arena, out, fault);
}

int hd_run_find(struct heddle *store, struct hd_slice principal, struct hd_slice run_id,
                struct hd_arena *arena, struct hd_run_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(run_id), hd_cell_bytes(principal)};

    return read_run(store, HD_RUNS_BY_RUN, key, HD_COUNT(key), arena, out, fault);
}

/* A list that grows in an arena. */
struct run_list {
    struct hd_arena *arena;
    struct hd_fault *fault;
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
        err = decode_run(kept, list->arena, &list->runs[list->count], list->fault);
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
                   struct hd_fault *fault)
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
                 struct hd_fault *fault)
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

static int encode_run(const struct hd_run_rec *run, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_record_writer writer;

    hd_record_begin(&writer);
    if (!hd_slice_eq(run->actor, run->principal))
        hd_record_put_text(&writer, "actor", run->actor);
    hd_record_put_text(&writer, "assistant_id", run->assistant_id);
    hd_record_put_text(&writer, "multitask_strategy",
                       hd_slice_cstr(hd_multitask_name(run->multitask)));
    hd_record_put_int(&writer, "attempt", run->attempt);
    hd_record_put_int(&writer, "losses", run->losses.count);
    hd_record_put_int(&writer, "checkpoints", run->losses.checkpoints);
    hd_record_put_int(&writer, "writes", run->losses.writes);
    hd_record_put_int(&writer, "suspended", run->is_suspended);
    if (run->order > 0)
        hd_record_put_int(&writer, "order", run->order);
    hd_record_put_json(&writer, "metadata", run->metadata);
    hd_record_put_json(&writer, "kwargs", run->kwargs);
    hd_record_put_json(&writer, "receipt", run->receipt);
    hd_record_put_json(&writer, "error", run->error);
    return hd_record_end(&writer, arena, out);
}

static int write_run(struct hd_batch_builder *batch, struct hd_run_rec *run, enum hd_op_kind kind)
{
    struct hd_slice body;
    int err = encode_run(run, &batch->arena, &body);

    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_RUNS_PRINCIPAL] = hd_cell_bytes(run->principal),
        [HD_RUNS_THREAD] = hd_cell_bytes(run->thread_id),
        [HD_RUNS_ID] = hd_cell_bytes(run->run_id),
        [HD_RUNS_REV] = hd_cell_int(run->rev + 1),
        [HD_RUNS_STATUS] = hd_cell_bytes(hd_slice_cstr(states[run->status])),
        [HD_RUNS_CREATED] = hd_cell_int(run->created_at),
        [HD_RUNS_UPDATED] = hd_cell_int(run->updated_at),
        [HD_RUNS_DUE] = hd_record_time(run->due_at),
        [HD_RUNS_BODY] = hd_cell_bytes(body),
    };

    run->rev++;
    return hd_batch_row(batch, kind, HD_RUNS, row);
}

int hd_run_add(struct hd_batch_builder *batch, struct hd_run_rec *run)
{
    run->rev = 0;
    return write_run(batch, run, HD_OP_ADD);
}

int hd_run_put(struct hd_batch_builder *batch, struct hd_run_rec *run)
{
    const struct hd_cell key[] = {hd_cell_bytes(run->principal), hd_cell_bytes(run->thread_id),
                                  hd_cell_bytes(run->run_id)};
    int err = hd_batch_expect(batch, HD_RUNS, key, HD_RUNS_REV, run->rev);

    return err ? err : write_run(batch, run, HD_OP_PUT);
}

int hd_run_delete(struct hd_batch_builder *batch, const struct hd_run_rec *run)
{
    const struct hd_cell key[] = {hd_cell_bytes(run->principal), hd_cell_bytes(run->thread_id),
                                  hd_cell_bytes(run->run_id)};

    return hd_batch_delete(batch, HD_RUNS, key, HD_COUNT(key));
}

/* ---- beginning -------------------------------------------------------- */

/* Puts the run alone. */
static int put_now(struct heddle *store, struct hd_run_rec *run, struct hd_fault *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err;

    hd_batch_init(&batch);
    err = hd_run_put(&batch, run);
    if (!err)
        err = hd_thread_lane(&batch.arena, run->principal, run->thread_id, &lane);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The revision of a run that another request has changed, if it is still in the same state. */
static int read_rev(struct heddle *store, struct hd_run_rec *run, enum hd_run_state state,
                    struct hd_fault *fault)
{
    struct hd_run_rec stored;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, SIZE_MAX / 2);
    err = hd_run_read(store, run->principal, run->thread_id, run->run_id, &arena, &stored, fault);
    if (!err && stored.status != state)
        err = HD_ENOTFOUND;
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

static int run_change_once(void *arg, struct hd_fault *fault)
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
                      struct hd_fault *fault)
{
    struct run_change change = {.store = store, .changed = changed, .state = run->status};
    struct hd_fault failure = {0};
    int err;

    changed->updated_at = hd_clock_now_us();
    err = hd_rows_change(store, run_change_once, &change, &failure);
    if (err)
        return hd_fault_set(fault, err, "%s", failure.code ? failure.text : hd_error_text(err));
    *run = *changed;
    return 0;
}

int hd_run_mark_running(struct heddle *store, struct hd_run_rec *run, struct hd_fault *fault)
{
    struct hd_run_rec changed = *run;
    struct hd_fault failure = {0};
    int err;

    changed.status = HD_RUN_STATE_RUNNING;
    err = change_now(store, run, &changed, &failure);
    /* An earlier commit whose reply was lost has set the mark: no other writer sets it. */
    if (err == HD_ENOTFOUND && read_rev(store, &changed, HD_RUN_STATE_RUNNING, NULL) == 0) {
        *run = changed;
        return 0;
    }
    return err ? hd_fault_set(fault, err, "%s", failure.code ? failure.text : hd_error_text(err))
               : 0;
}

int hd_run_mark_suspended(struct heddle *store, struct hd_run_rec *run, struct hd_fault *fault)
{
    struct hd_run_rec changed = *run;

    changed.is_suspended = true;
    return change_now(store, run, &changed, fault);
}
