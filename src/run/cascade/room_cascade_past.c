#include "run/cascade/room_cascade_past.h"

#include <heddle.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "records/thread_heads.h"
#include "run/assistant_lookup.h"
#include "run/cascade/room_cascade_tools.h"
#include "store/bytes.h"
#include "store/order.h"
#include "store/rows.h"

#define MAX_CASCADES ((size_t)10000) /* of a room */
#define MAX_RUNS ((size_t)1 << 20)

/* ---- checkpoints ------------------------------------------------------ */

struct made_checkpoints {
    struct hd_order order;
    struct hd_arena *arena;
};

static int on_made_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    struct made_checkpoints *made = arg;
    struct hd_slice id, parent;
    int err = hd_arena_copy(made->arena, cells[HD_CHECKPOINTS_ID].bytes, &id);

    (void)which;
    if (!err)
        err = hd_arena_copy(made->arena, cells[HD_CHECKPOINTS_PARENT].bytes, &parent);
    return err ? err : hd_order_add(&made->order, id, parent, false);
}

/* The first checkpoint that the run has made in `ns`, and its parent. Empty: none. */
static int read_first(const struct hd_room_cascade_past *past, struct hd_slice run_id,
                      struct hd_slice ns, struct hd_order_node *out, struct heddle_error *fault)
{
    struct made_checkpoints made = {.arena = past->arena};
    struct hd_slice key;
    int err = hd_thread_lane(past->arena, past->thread->principal, past->thread->id, &key);

    *out = (struct hd_order_node){.is_marked = false};
    if (!err) {
        const struct hd_cell prefix[] = {hd_cell_bytes(run_id), hd_cell_bytes(key),
                                         hd_cell_bytes(ns)};

        err = hd_rows_scan(past->app->store,
                           (struct hd_query){.table = HD_CHECKPOINTS,
                                             .index = HD_CHECKPOINTS_BY_RUN,
                                             .prefix = prefix,
                                             .prefix_count = HD_COUNT(prefix),
                                             .columns = 1u << HD_CHECKPOINTS_PARENT},
                           on_made_checkpoint, &made, fault);
    }
    if (!err)
        err = hd_order_sort(&made.order);
    if (!err && made.order.count > 0)
        *out = made.order.nodes[0];
    hd_order_fini(&made.order);
    return err;
}

static bool is_input(const struct heddle_tuple *tuple)
{
    struct hd_json json = {NULL};
    bool is = hd_json_parse(&json, hd_slice(tuple->metadata.data, tuple->metadata.len), NULL) == 0;

    is = is && hd_slice_eq(hd_json_string(hd_json_get(hd_json_root(&json), HD_S("source"))),
                           HD_S("input"));
    hd_json_fini(&json);
    return is;
}

/* True in *out if the checkpoint has the input of its run and nothing else. */
static int check_input(const struct hd_room_cascade_past *past, struct hd_slice ns,
                       struct hd_slice id, bool *out, struct heddle_error *fault)
{
    struct heddle_bytes thread = hd_to_public(past->thread->id), of_ns = hd_to_public(ns),
                        wanted = hd_to_public(id);
    struct heddle_query query = {.principal = hd_to_public(past->thread->principal),
                                 .thread = &thread,
                                 .ns = &of_ns,
                                 .id = &wanted,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int err = heddle_list_open(past->app->store, &query, &list, fault);

    *out = false;
    if (err)
        return err;
    err = heddle_list_next(list, &tuple, fault);
    *out = !err && is_input(tuple);
    heddle_list_close(list);
    return err == HD_ENOTFOUND ? 0 : err;
}

static int check_checkpoint(const struct hd_room_cascade_past *past, struct hd_slice ns,
                            struct hd_slice id, struct hd_slice *out, struct heddle_error *fault)
{
    int err = hd_thread_heads_check(past->app->store, past->thread->principal, past->thread->id, ns,
                                    id, fault);

    if (!err)
        *out = id;
    return err == HD_ENOTFOUND ? 0 : err;
}

int hd_room_cascade_past_fork(const struct hd_room_cascade_past *past, struct hd_slice run_id,
                              struct hd_slice ns, struct hd_slice known, struct hd_slice *out,
                              struct heddle_error *fault)
{
    struct hd_order_node first;
    bool is_start = false;
    int err;

    *out = hd_slice(NULL, 0);
    if (known.len > 0)
        return check_checkpoint(past, ns, known, out, fault);
    err = read_first(past, run_id, ns, &first, fault);
    if (err || first.id.len == 0)
        return err;
    if (first.parent.len > 0)
        return check_checkpoint(past, ns, first.parent, out, fault);
    err = check_input(past, ns, first.id, &is_start, fault);
    if (!err && is_start)
        *out = first.id;
    return err;
}

/* ---- the rows --------------------------------------------------------- */

/* A run that a finished cascade has repeated or removed, by its id. */
struct repeated_run {
    struct hd_slice new_run; /* empty: removed from its line */
};

struct past_reading {
    struct hd_room_cascade_past *past;
    struct hd_map repeated; /* run id to struct repeated_run */
    struct hd_map rows;     /* run id to struct hd_room_run_rec */
    struct hd_map runs;     /* run id to struct hd_run_rec */
    struct heddle_error *fault;
};

static int add_outcome(struct past_reading *r, struct hd_slice run_id, struct hd_slice new_run)
{
    struct repeated_run *outcome = hd_arena_alloc(r->past->arena, sizeof(*outcome));

    if (!outcome)
        return HD_ENOMEM;
    outcome->new_run = new_run;
    return hd_map_put(&r->repeated, run_id, outcome);
}

static struct hd_slice line_of(const struct past_reading *r, struct hd_slice run_id)
{
    const struct hd_room_run_rec *row = hd_map_get(&r->rows, run_id);

    return row ? row->ns : hd_slice(NULL, 0);
}

/* A run that was skipped left its line if the cascade has moved the line's head. */
static bool has_left(const struct past_reading *r, const struct hd_cascade_list *steps,
                     const struct hd_cascade_entry *skipped)
{
    struct hd_slice line = line_of(r, skipped->run_id);

    for (size_t i = 0; i < steps->count; i++) {
        if (steps->items[i].state == HD_CASCADE_STEP_DONE &&
            hd_slice_eq(line_of(r, steps->items[i].run_id), line))
            return true;
    }
    return false;
}

static int add_outcomes(struct past_reading *r, const struct hd_cascade_rec *cascade)
{
    struct hd_cascade_list steps;
    int err = hd_cascade_steps_read(cascade->plan, r->past->arena, &steps, r->fault);

    for (size_t i = 0; !err && i < steps.count; i++) {
        const struct hd_cascade_entry *entry = &steps.items[i];

        if (entry->state == HD_CASCADE_STEP_DONE)
            err = add_outcome(r, entry->run_id, entry->new_run_id);
        else if (entry->state == HD_CASCADE_STEP_SKIPPED && has_left(r, &steps, entry))
            err = add_outcome(r, entry->run_id, hd_slice(NULL, 0));
    }
    return err;
}

/* The run that is in the chat in place of this one; NULL: none. */
static const struct hd_room_run_rec *find_current(const struct past_reading *r,
                                                  const struct hd_room_run_rec *row)
{
    const struct repeated_run *outcome = row ? hd_map_get(&r->repeated, row->run_id) : NULL;
    size_t left = r->repeated.count; /* damaged records may have a circle */

    while (outcome && left-- > 0) {
        row = outcome->new_run.len > 0 ? hd_map_get(&r->rows, outcome->new_run) : NULL;
        outcome = row ? hd_map_get(&r->repeated, row->run_id) : NULL;
    }
    return outcome ? NULL : row;
}

static int read_given(const struct hd_room_run_rec *row, struct hd_arena *arena,
                      struct hd_cascade_past *out)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_cascade_pair *pairs;
    int err = row->given.len > 0 ? hd_json_parse(&json, row->given, NULL) : 0;

    it = hd_json_iter(hd_json_root(&json));
    pairs = hd_arena_calloc(arena, hd_json_size(hd_json_root(&json)) + 1, sizeof(*pairs));
    if (!err && !pairs)
        err = HD_ENOMEM;
    while (!err && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);
        struct hd_cascade_pair *to = &pairs[out->given_count++];

        if (hd_json_next(&pair))
            err = hd_arena_copy(arena, hd_json_string(pair.val), &to->message_id);
        if (!err && (!hd_json_next(&pair) || !hd_json_int(pair.val, &to->version)))
            err = HD_ECORRUPT;
    }
    hd_json_fini(&json);
    out->given = pairs;
    return err;
}

int hd_room_cascade_past_touched(struct hd_arena *arena, struct hd_slice touches,
                                 const struct hd_slice **out, size_t *count)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_slice *lines;
    int err = touches.len > 0 ? hd_json_parse(&json, touches, NULL) : 0;

    it = hd_json_iter(hd_json_root(&json));
    lines = hd_arena_calloc(arena, hd_json_size(hd_json_root(&json)) + 1, sizeof(*lines));
    *count = 0;
    if (!err && !lines)
        err = HD_ENOMEM;
    while (!err && hd_json_next(&it))
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(it.val, HD_S("ns"))),
                            &lines[(*count)++]);
    *out = lines;
    hd_json_fini(&json);
    return err;
}

/* The trigger is the last message of an input; replies to questions of the run follow it. */
static size_t count_inputs(const struct hd_cascade_past *past)
{
    for (size_t i = past->given_count; i > 0; i--) {
        if (hd_slice_eq(past->given[i - 1].message_id, past->trigger))
            return i;
    }
    return past->given_count;
}

/* Agents, forks and tools of affected runs are looked up later. */
static int add_past(struct past_reading *r, const struct hd_room_run_rec *row)
{
    struct hd_room_cascade_past *past = r->past;
    const struct hd_run_rec *run = hd_map_get(&r->runs, row->run_id);
    struct hd_cascade_past *to = &past->past[past->count];
    int err = 0;

    *to = (struct hd_cascade_past){.run_id = row->run_id,
                                   .trigger = row->trigger,
                                   .answer = row->answer,
                                   .line = row->ns,
                                   .has_fork = true,
                                   .has_agent = true};
    past->runs[past->count] = (struct hd_room_cascade_run){.row = *row};
    past->extras[past->count] = (struct hd_cascade_extra){.assistant_id = row->assistant_id};
    if (run) {
        past->runs[past->count].run = *run;
        past->runs[past->count].has_run = true;
        past->extras[past->count].is_in_flight = run->due_at != 0;
        err = hd_room_cascade_past_touched(past->arena, run->touched, &to->touched,
                                           &to->touched_count);
    }
    if (!err)
        err = read_given(row, past->arena, to);
    past->runs[past->count].input_count = count_inputs(to);
    past->count++;
    return err;
}

static size_t find_asking(const struct hd_room_cascade_past *past, struct hd_slice line)
{
    size_t i = past->count;

    while (i > 0 && !hd_slice_eq(past->past[i - 1].line, line))
        i--;
    return i;
}

static int join_given(struct hd_cascade_past *to, const struct hd_cascade_past *more,
                      struct hd_arena *arena)
{
    size_t count = to->given_count + more->given_count;
    struct hd_cascade_pair *pairs = hd_arena_calloc(arena, count + 1, sizeof(*pairs));

    if (!pairs)
        return HD_ENOMEM;
    if (to->given_count > 0)
        memcpy(pairs, to->given, to->given_count * sizeof(*pairs));
    if (more->given_count > 0)
        memcpy(&pairs[to->given_count], more->given, more->given_count * sizeof(*pairs));
    to->given = pairs;
    to->given_count = count;
    return 0;
}

static int join_touched(struct hd_cascade_past *to, const struct hd_cascade_past *more,
                        struct hd_arena *arena)
{
    size_t count = to->touched_count + more->touched_count;
    struct hd_slice *lines = hd_arena_calloc(arena, count + 1, sizeof(*lines));

    if (!lines)
        return HD_ENOMEM;
    if (to->touched_count > 0)
        memcpy(lines, to->touched, to->touched_count * sizeof(*lines));
    if (more->touched_count > 0)
        memcpy(&lines[to->touched_count], more->touched, more->touched_count * sizeof(*lines));
    to->touched = lines;
    to->touched_count = count;
    return 0;
}

/* A run that was resumed by a reply is one with the interrupted run: both are repeated together. */
static int join_answer(struct past_reading *r, const struct hd_room_run_rec *row)
{
    struct hd_room_cascade_past *past = r->past;
    size_t asking = find_asking(past, row->ns);
    struct hd_room_cascade_run *run;
    struct hd_cascade_past *to, *last;
    int err = add_past(r, row);

    if (err || asking == 0)
        return err;
    past->count--;
    to = &past->past[asking - 1];
    last = &past->past[past->count];
    run = &past->runs[asking - 1];
    to->answer = last->answer;
    run->run.checkpoint_id = past->runs[past->count].run.checkpoint_id;
    run->has_run = run->has_run && past->runs[past->count].has_run;
    past->extras[asking - 1].is_in_flight |= past->extras[past->count].is_in_flight;
    err = join_given(to, last, past->arena);
    return err ? err : join_touched(to, last, past->arena);
}

/* True when the interrupted run was repeated: this one, which resumed it, is a part of that. */
static bool is_superseded(const struct past_reading *r, const struct hd_room_run_rec *rows,
                          size_t index)
{
    size_t i = index;

    while (i-- > 0) {
        if (rows[i].cascade.len == 0 && !rows[i].is_answer &&
            hd_slice_eq(rows[i].ns, rows[index].ns))
            return hd_map_get(&r->repeated, rows[i].run_id) != NULL;
    }
    return false;
}

static int add_all(struct past_reading *r, const struct hd_room_run_rec *rows, size_t count)
{
    struct hd_room_cascade_past *past = r->past;
    int err = 0;

    past->count = 0;
    past->past = hd_arena_calloc(past->arena, count + 1, sizeof(*past->past));
    past->runs = hd_arena_calloc(past->arena, count + 1, sizeof(*past->runs));
    past->extras = hd_arena_calloc(past->arena, count + 1, sizeof(*past->extras));
    if (!past->past || !past->runs || !past->extras)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        const struct hd_room_run_rec *row = rows[i].cascade.len > 0 ? NULL : &rows[i];

        if (row && row->is_answer) {
            err = is_superseded(r, rows, i) ? 0 : join_answer(r, row);
            continue;
        }
        row = find_current(r, row);
        if (row)
            err = add_past(r, row);
    }
    return err;
}

static int index_runs(struct past_reading *r)
{
    const struct hd_thread_rec *thread = r->past->thread;
    struct hd_run_rec *runs;
    size_t count;
    int err = hd_runs_list(r->past->app->store, thread->principal, thread->id, NULL, 0, MAX_RUNS,
                           r->past->arena, &runs, &count, r->fault);

    for (size_t i = 0; !err && i < count; i++)
        err = hd_map_put(&r->runs, runs[i].run_id, &runs[i]);
    return err;
}

static int read_runs(struct past_reading *r)
{
    struct hd_room_cascade_past *past = r->past;
    const struct hd_thread_rec *thread = past->thread;
    struct hd_room_run_rec *rows = NULL;
    size_t count = 0;
    int err = hd_room_runs_read(past->app->store, thread->principal, thread->id, hd_slice(NULL, 0),
                                past->arena, &rows, &count, r->fault);

    for (size_t i = 0; !err && i < count; i++)
        err = hd_map_put(&r->rows, rows[i].run_id, &rows[i]);
    for (size_t i = past->cascade_count; !err && i > 0; i--) {
        if (past->cascades[i - 1].status == HD_CASCADE_DONE)
            err = add_outcomes(r, &past->cascades[i - 1]);
    }
    if (!err)
        err = index_runs(r);
    return err ? err : add_all(r, rows, count);
}

int hd_room_cascade_past_read(struct hd_room_cascade_past *past, struct heddle_error *fault)
{
    struct heddle *store = past->app->store;
    const struct hd_thread_rec *thread = past->thread;
    struct past_reading r = {.past = past, .fault = fault};
    int err = hd_room_read(store, thread->principal, thread->id, past->arena, &past->room, fault);

    hd_map_init(&r.repeated, MAX_RUNS);
    hd_map_init(&r.rows, MAX_RUNS);
    hd_map_init(&r.runs, MAX_RUNS);
    if (!err)
        err =
            hd_room_agents_read(&past->room, past->arena, &past->agents, &past->agent_count, fault);
    if (!err)
        err = hd_cascades_read(store, thread->principal, thread->id, MAX_CASCADES, past->arena,
                               &past->cascades, &past->cascade_count, fault);
    if (!err)
        err = hd_lines_read(store, thread, past->arena, &past->lines, fault);
    if (!err)
        err = read_runs(&r);
    hd_map_fini(&r.runs);
    hd_map_fini(&r.rows);
    hd_map_fini(&r.repeated);
    return err;
}

/* ---- planning --------------------------------------------------------- */

static const struct hd_room_agent *find_agent(const struct hd_room_cascade_past *past,
                                              struct hd_slice assistant_id)
{
    for (size_t i = 0; i < past->agent_count; i++) {
        if (hd_slice_eq(past->agents[i].assistant_id, assistant_id))
            return &past->agents[i];
    }
    return NULL;
}

static int check_agent(const struct hd_room_cascade_past *past, const struct hd_room_run_rec *row,
                       bool *out, struct heddle_error *fault)
{
    const struct hd_room_agent *agent = find_agent(past, row->assistant_id);
    struct hd_assistant_rec assistant;
    int err;

    *out = false;
    if (!agent || !hd_app_graph(past->app, row->graph_id))
        return 0;
    err = hd_assistant_lookup(past->app, agent->actor, row->assistant_id, past->arena, &assistant,
                              fault);
    *out = err == 0;
    return err == HD_ENOTFOUND ? 0 : err;
}

static int check_run(struct hd_room_cascade_past *past, size_t index, struct heddle_error *fault)
{
    const struct hd_room_cascade_run *run = &past->runs[index];
    struct hd_cascade_past *to = &past->past[index];
    struct hd_slice fork;
    int err;

    if (to->trigger.len == 0)
        return 0;
    err = check_agent(past, &run->row, &to->has_agent, fault);
    if (!err)
        err = hd_room_cascade_past_fork(past, to->run_id, to->line, run->row.head_before, &fork,
                                        fault);
    if (err)
        return err;
    to->has_fork = run->has_run && (fork.len > 0 || past->extras[index].is_in_flight);
    return to->has_agent ? hd_room_cascade_tools_read(past, index, fork, fault) : 0;
}

static void note_equal(struct hd_room_cascade_past *past, const struct hd_cascade_list *recorded)
{
    for (size_t i = 0; recorded && i < past->count; i++) {
        const struct hd_cascade_entry *entry =
            hd_cascade_steps_find(recorded, past->past[i].run_id);

        past->past[i].has_equal_answer = entry && entry->is_equal;
    }
}

int hd_room_cascade_past_plan(struct hd_room_cascade_past *past,
                              const struct hd_room_cascade_change *change,
                              struct hd_cascade_answer *out, struct heddle_error *fault)
{
    const struct hd_cascade_question question = {.past = past->past,
                                                 .past_count = past->count,
                                                 .edited = change->edited,
                                                 .retried = change->retried,
                                                 .limit = change->limit};
    int err;

    note_equal(past, change->recorded);
    err = hd_cascade_plan(&question, past->arena, out);
    for (size_t i = 0; !err && i < out->count; i++)
        err = check_run(past, out->steps[i].past, fault);
    return err ? err : hd_cascade_plan(&question, past->arena, out);
}

size_t hd_room_cascade_past_find(const struct hd_room_cascade_past *past, struct hd_slice run_id)
{
    size_t i = 0;

    while (i < past->count && !hd_slice_eq(past->past[i].run_id, run_id))
        i++;
    return i;
}

size_t hd_room_cascade_past_answered(const struct hd_room_cascade_past *past,
                                     struct hd_slice message_id)
{
    size_t i = past->count;

    while (i > 0 && !hd_slice_eq(past->past[i - 1].answer, message_id))
        i--;
    return i > 0 ? i - 1 : past->count;
}
