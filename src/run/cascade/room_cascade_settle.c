#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/uuid.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "room/room_input.h"
#include "run/room/room_answer.h"
#include "worker/resume_answers.h"

#define MAX_INTERRUPTS ((size_t)64 << 20)
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
    struct hd_room_content_rec content = {.version = 0};
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
    struct hd_slice old = {NULL, 0};
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

static int write_interrupts(struct hd_room_cascade_try *t, const struct hd_val *state,
                            struct hd_slice *out)
{
    struct hd_val *asked = hd_resume_answers_pending(state);
    struct hd_buf text;
    int err = HD_ENOMEM;

    hd_buf_init(&text, MAX_INTERRUPTS);
    if (asked)
        err = hd_val_render(&text, asked);
    if (!err)
        err = hd_arena_copy(t->op->arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    hd_val_unref(asked);
    return err;
}

/* The open interrupts after the checkpoint, JSON: the run waits for a reply. Empty: it does not. */
static int read_question(struct hd_room_cascade_try *t, const struct hd_run_rec *run,
                         const struct hd_room_run_rec *row, struct hd_slice *out)
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

    *out = hd_slice(NULL, 0);
    if (!graph || run->checkpoint_id.len == 0)
        return 0;
    err = hd_state_get(&at, false, &state, &failure);
    if (!err && hd_val_count(hd_val_get(state, HD_S("next"))) > 0)
        err = write_interrupts(t, state, out);
    hd_val_unref(state);
    hd_failure_fini(&failure);
    return err;
}

/* Its message has no line: the head of the line waits for nothing. */
static int post_question(struct hd_room_cascade_try *t, struct hd_cascade_entry *step,
                         const struct hd_room_run_rec *row, const struct hd_run_rec *run,
                         struct hd_slice interrupts)
{
    struct hd_room_message_rec message = {.principal = t->op->principal,
                                          .thread_id = t->op->thread_id,
                                          .state = HD_ROOM_PENDING,
                                          .version = 1,
                                          .created_at = hd_clock_now_us(),
                                          .sender = row->assistant_id,
                                          .kind = HD_ROOM_AGENT,
                                          .sender_id = row->assistant_id,
                                          .sender_name = row->assistant_id,
                                          .reply_to = step->trigger,
                                          .run_id = run->run_id,
                                          .checkpoint_id = run->checkpoint_id,
                                          .interrupts = interrupts};
    struct hd_room_cascade_message *note;
    char *id = hd_arena_alloc(t->op->arena, HD_UUID_SIZE);
    int err;

    if (!id)
        return HD_ENOMEM;
    hd_uuid_v4(id);
    message.id = hd_slice(id, HD_UUID_LEN);
    message.seq = ++t->past.room.last_seq;
    for (size_t i = 0; i < t->past.agent_count; i++) {
        if (hd_slice_eq(t->past.agents[i].assistant_id, row->assistant_id))
            message.sender_name = t->past.agents[i].name;
    }
    err = hd_room_cascade_note(t, &message, NULL, &note);
    if (err)
        return err;
    note->is_new = true;
    step->state = HD_CASCADE_STEP_QUESTION;
    step->question = message.id;
    step->reply = step->resume = hd_slice(NULL, 0);
    return 0;
}

static int settle_success(struct hd_room_cascade_try *t, struct hd_cascade_entry *step,
                          const struct hd_run_rec *run)
{
    struct hd_room_run_rec row;
    struct hd_slice interrupts;
    int err = hd_room_run_read(store_of(t), t->op->principal, t->op->thread_id, step->new_run_id,
                               t->op->arena, &row, t->fault);

    if (!err)
        err = read_question(t, run, &row, &interrupts);
    if (!err && interrupts.len > 0)
        return post_question(t, step, &row, run, interrupts);
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
