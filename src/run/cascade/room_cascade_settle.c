#include "base/json.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "room/room_input.h"
#include "run/room_answer.h"
#include "run/cascade/room_cascade_internal.h"

static struct heddle *store_of(const struct hd_room_cascade_try *t)
{
    return t->op->app->store;
}

/* ---- the answer ------------------------------------------------------- */

int hd_room_cascade_said(struct hd_room_cascade_try *t, const struct hd_cascade_entry *step,
                         struct hd_room_said *out, struct hd_room_run_rec *row,
                         struct hd_run_rec *run)
{
    struct hd_room_cascade *op = t->op;
    struct hd_room_said_place place;
    int err = hd_room_run_read(store_of(t), op->principal, op->thread_id, step->new_run_id,
                               op->arena, row, t->fault);

    if (!err)
        err = hd_run_read(store_of(t), op->principal, op->thread_id, step->new_run_id, op->arena,
                          run, t->fault);
    if (err)
        return err;
    place = (struct hd_room_said_place){.principal = op->principal,
                                        .thread_id = op->thread_id,
                                        .ns = row->ns,
                                        .graph_id = row->graph_id,
                                        .after = run->checkpoint_id,
                                        .kwargs = run->kwargs};
    err = hd_room_cascade_past_fork(&t->past, step->new_run_id, row->ns, hd_slice(NULL, 0),
                                    &place.before, t->fault);
    if (!err)
        err = hd_room_answer_find(op->app, &place, op->arena, out, t->fault);
    return err;
}

static int compare_contents(struct hd_slice a, struct hd_slice b, bool *out,
                            struct heddle_error *fault)
{
    struct hd_json one = {NULL}, other = {NULL};
    int err = a.len > 0 ? hd_json_parse(&one, a, fault) : 0;

    if (!err && b.len > 0)
        err = hd_json_parse(&other, b, fault);
    *out = !err &&
           (a.len == 0 || b.len == 0 ? a.len == b.len
                                     : hd_json_equal(hd_json_root(&one), hd_json_root(&other)));
    hd_json_fini(&one);
    hd_json_fini(&other);
    return err;
}

/* The old answer; an empty content when there is none. */
static int read_old(struct hd_room_cascade_try *t, struct hd_slice id, struct hd_slice *out)
{
    struct hd_room_cascade *op = t->op;
    struct hd_room_message_rec message;
    struct hd_room_content_rec content;
    int err;

    *out = hd_slice(NULL, 0);
    if (id.len == 0)
        return 0;
    err = hd_room_message_read(store_of(t), op->principal, op->thread_id, id, op->arena, &message,
                               t->fault);
    if (!err)
        err = hd_room_content_read(store_of(t), op->principal, op->thread_id, id, message.version,
                                   op->arena, &content, t->fault);
    if (!err)
        *out = content.content;
    return err == HD_ENOTFOUND ? 0 : err;
}

static void fail_step(struct hd_cascade_entry *step, const char *why)
{
    step->state = HD_CASCADE_STEP_FAILED;
    step->blocked = hd_slice_cstr(why);
}

static int note_answer(struct hd_room_cascade_try *t, struct hd_cascade_entry *step)
{
    struct hd_room_said said;
    struct hd_room_run_rec row;
    struct hd_run_rec run;
    struct hd_slice old;
    int err = hd_room_cascade_said(t, step, &said, &row, &run);

    if (!err)
        err = read_old(t, step->answer, &old);
    if (!err)
        err = compare_contents(said.content, old, &step->is_equal, t->fault);
    if (err)
        return err;
    if (!step->is_equal && said.content.len == 0) {
        fail_step(step, "the repeated run said nothing");
        return 0;
    }
    step->state = HD_CASCADE_STEP_DONE;
    step->new_answer = step->is_equal ? step->answer : row.answer;
    return 0;
}

/* ---- the end of a run ------------------------------------------------- */

/* True in *out if tasks are left after the checkpoint: the run has asked a question. */
static int has_question(struct hd_room_cascade_try *t, const struct hd_run_rec *run,
                        const struct hd_room_run_rec *row, bool *out)
{
    const struct hd_app_graph *graph = hd_app_graph(t->op->app, row->graph_id);
    const struct hd_address at = {.store = store_of(t),
                                  .graph = graph ? hd_app_shape(graph) : NULL,
                                  .principal = t->op->principal,
                                  .thread = t->op->thread_id,
                                  .root = row->ns,
                                  .checkpoint_id = run->checkpoint_id,
                                  .as_text = true,
                                  .without_values = true};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL;
    int err;

    *out = false;
    if (!graph || run->checkpoint_id.len == 0)
        return 0;
    err = hd_state_get(&at, false, &state, &failure);
    if (!err)
        *out = hd_val_count(hd_val_get(state, HD_S("next"))) > 0;
    hd_val_unref(state);
    hd_failure_fini(&failure);
    return err;
}

static int settle_success(struct hd_room_cascade_try *t, struct hd_cascade_entry *step,
                          const struct hd_run_rec *run)
{
    struct hd_room_run_rec row;
    bool is_question = false;
    int err = hd_room_run_read(store_of(t), t->op->principal, t->op->thread_id, step->new_run_id,
                               t->op->arena, &row, t->fault);

    if (!err)
        err = has_question(t, run, &row, &is_question);
    if (!err && is_question) {
        step->state = HD_CASCADE_STEP_QUESTION;
        return 0;
    }
    return err ? err : note_answer(t, step);
}

static int settle_step(struct hd_room_cascade_try *t, struct hd_cascade_entry *step)
{
    struct hd_run_rec run;
    int err = hd_run_read(store_of(t), t->op->principal, t->op->thread_id, step->new_run_id,
                          t->op->arena, &run, t->fault);

    if (err == HD_ENOTFOUND) {
        fail_step(step, "the repeated run was deleted");
        return 0;
    }
    if (err || run.due_at != 0)
        return err;
    if (run.status == HD_RUN_STATE_SUCCESS)
        return settle_success(t, step, &run);
    fail_step(step, run.status == HD_RUN_STATE_INTERRUPTED ? "the repeated run was cancelled"
                    : run.status == HD_RUN_STATE_TIMEOUT   ? "the repeated run took too long"
                                                           : "the repeated run failed");
    return 0;
}

int hd_room_cascade_settle(struct hd_room_cascade_try *t, struct hd_cascade_list *steps)
{
    int err = 0;

    for (size_t i = 0; !err && i < steps->count; i++) {
        if (steps->items[i].state == HD_CASCADE_STEP_RUNNING)
            err = settle_step(t, &steps->items[i]);
    }
    return err;
}
