#include "room/cascade_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"

#define MAX_NAMES ((size_t)1 << 20) /* changed messages, or lines */

/* What the steps so far have changed. */
struct change {
    struct hd_slice message_id;
    int64_t version; /* older ones are out of date */
    size_t step;     /* that makes the message, + 1; 0: the edited message */
};

/* The last step that changed a line. */
struct line_use {
    size_t step;
};

struct planning {
    const struct hd_cascade_question *question;
    struct hd_arena *arena;
    struct hd_cascade_answer *out;
    struct hd_map changes; /* message id to struct change */
    struct hd_map lines;   /* namespace to struct line_use */
    HD_VEC(size_t) after;  /* of the current step */
    size_t further;        /* steps that can be repeated and are not direct */
};

const char *const hd_cascade_whys[] = {
    [HD_CASCADE_RETRY] = "retry",
    [HD_CASCADE_TRIGGER] = "trigger",
    [HD_CASCADE_GIVEN] = "given",
    [HD_CASCADE_LINE] = "line",
    NULL,
};

static const char *const block_texts[] = {
    [HD_CASCADE_NO_FORK] = "the checkpoint before this run was pruned",
    [HD_CASCADE_NO_AGENT] = "the agent was deleted or removed from the room",
    [HD_CASCADE_NO_LINE] = "an earlier run of this agent cannot be repeated",
    [HD_CASCADE_NO_TRIGGER] = "the answer that asked this agent cannot be made again",
    [HD_CASCADE_IS_PLAIN] = "no chat message made this run",
};

const char *hd_cascade_block_text(enum hd_cascade_block block)
{
    return block_texts[block];
}

/* ---- changed messages and lines --------------------------------------- */

static int add_change(struct planning *p, struct hd_slice message_id, int64_t version, size_t step)
{
    struct change *change = hd_arena_alloc(p->arena, sizeof(*change));

    if (!change)
        return HD_ENOMEM;
    *change = (struct change){message_id, version, step};
    return hd_map_put(&p->changes, message_id, change);
}

static int use_line(struct planning *p, struct hd_slice line, size_t step)
{
    struct line_use *use = hd_map_get(&p->lines, line);
    int err = 0;

    if (!use) {
        use = hd_arena_alloc(p->arena, sizeof(*use));
        err = use ? hd_map_put(&p->lines, line, use) : HD_ENOMEM;
    }
    if (!err)
        use->step = step;
    return err;
}

/* ---- one run ---------------------------------------------------------- */

static int wait_for(struct planning *p, size_t step)
{
    for (size_t i = 0; i < p->after.count; i++) {
        if (p->after.items[i] == step)
            return 0;
    }
    return hd_vec_push(&p->after, step);
}

/* The trigger explains best why a run is affected, then what it was given. */
static int meet_messages(struct planning *p, const struct hd_cascade_past *past,
                         struct hd_cascade_step *step, bool *is_affected)
{
    int err = 0;

    for (size_t i = 0; !err && i < past->given_count; i++) {
        const struct hd_cascade_pair *given = &past->given[i];
        const struct change *change = hd_map_get(&p->changes, given->message_id);
        bool is_trigger = hd_slice_eq(given->message_id, past->trigger);

        if (!change || given->version >= change->version)
            continue;
        if (!*is_affected || is_trigger) {
            step->why = is_trigger ? HD_CASCADE_TRIGGER : HD_CASCADE_GIVEN;
            step->cause = given->message_id;
        }
        if (is_trigger && change->step == 0)
            step->is_direct = true;
        if (is_trigger && change->step > 0 && p->out->steps[change->step - 1].block)
            step->block = HD_CASCADE_NO_TRIGGER;
        *is_affected = true;
        if (change->step > 0)
            err = wait_for(p, change->step - 1);
    }
    return err;
}

static int meet_line(struct planning *p, struct hd_slice line, bool is_own,
                     struct hd_cascade_step *step, bool *is_affected)
{
    const struct line_use *use = hd_map_get(&p->lines, line);

    if (!use)
        return 0;
    if (!*is_affected) {
        step->why = HD_CASCADE_LINE;
        step->cause = p->question->past[p->out->steps[use->step].past].run_id;
    }
    if (is_own && p->out->steps[use->step].block)
        step->block = HD_CASCADE_NO_LINE;
    *is_affected = true;
    return wait_for(p, use->step);
}

static int meet_lines(struct planning *p, const struct hd_cascade_past *past,
                      struct hd_cascade_step *step, bool *is_affected)
{
    int err = meet_line(p, past->line, true, step, is_affected);

    for (size_t i = 0; !err && i < past->touched_count; i++)
        err = meet_line(p, past->touched[i], false, step, is_affected);
    return err;
}

/*
 * Its own causes come before those of earlier steps. A run whose line was repeated before continues
 * there, and needs no checkpoint of its own.
 */
static void check_block(struct planning *p, const struct hd_cascade_past *past,
                        struct hd_cascade_step *step)
{
    if (past->trigger.len == 0)
        step->block = HD_CASCADE_IS_PLAIN;
    else if (!past->has_agent)
        step->block = HD_CASCADE_NO_AGENT;
    else if (!step->block && !past->has_fork && !hd_map_get(&p->lines, past->line))
        step->block = HD_CASCADE_NO_FORK;
}

static void check_approval(struct planning *p, const struct hd_cascade_past *past,
                           struct hd_cascade_step *step)
{
    if (step->block)
        return;
    p->out->possible++;
    if (!step->is_direct && ++p->further > p->question->limit)
        step->approval = HD_CASCADE_OVER_LIMIT;
    if (past->has_effects)
        step->approval = HD_CASCADE_EFFECTS;
}

static int copy_after(struct planning *p, struct hd_cascade_step *step)
{
    step->after_count = p->after.count;
    step->after = hd_arena_calloc(p->arena, p->after.count + 1, sizeof(*step->after));
    for (size_t i = 0; step->after && i < p->after.count; i++)
        step->after[i] = p->after.items[i];
    return step->after ? 0 : HD_ENOMEM;
}

static int add_step(struct planning *p, const struct hd_cascade_past *past,
                    struct hd_cascade_step *step)
{
    size_t index = p->out->count;
    int err;

    check_block(p, past, step);
    check_approval(p, past, step);
    err = copy_after(p, step);
    if (err)
        return err;
    if (p->out->free == index && step->approval == HD_CASCADE_GOES)
        p->out->free++;
    p->out->steps[p->out->count++] = *step;
    if (past->answer.len > 0 && !past->has_equal_answer)
        err = add_change(p, past->answer, INT64_MAX, index + 1);
    if (!err)
        err = use_line(p, past->line, index);
    for (size_t i = 0; !err && i < past->touched_count; i++)
        err = use_line(p, past->touched[i], index);
    return err;
}

static int plan_run(struct planning *p, size_t index)
{
    const struct hd_cascade_past *past = &p->question->past[index];
    struct hd_cascade_step step = {.past = index};
    bool is_affected = false;
    int err;

    p->after.count = 0;
    err = meet_messages(p, past, &step, &is_affected);
    if (!err)
        err = meet_lines(p, past, &step, &is_affected);
    if (!err && hd_slice_eq(past->run_id, p->question->retried)) {
        step.why = HD_CASCADE_RETRY;
        step.cause = past->answer;
        step.is_direct = is_affected = true;
    }
    return err || !is_affected ? err : add_step(p, past, &step);
}

int hd_cascade_plan(const struct hd_cascade_question *question, struct hd_arena *arena,
                    struct hd_cascade_answer *out)
{
    struct planning p = {.question = question, .arena = arena, .out = out};
    int err = question->past_count > HD_CASCADE_MAX_RUNS ? HD_ELIMIT : 0;

    *out = (struct hd_cascade_answer){.steps = NULL};
    if (err)
        return err;
    out->steps = hd_arena_calloc(arena, question->past_count + 1, sizeof(*out->steps));
    if (!out->steps)
        return HD_ENOMEM;
    hd_map_init(&p.changes, MAX_NAMES);
    hd_map_init(&p.lines, MAX_NAMES);
    if (question->edited.message_id.len > 0)
        err = add_change(&p, question->edited.message_id, question->edited.version, 0);
    for (size_t i = 0; !err && i < question->past_count; i++)
        err = plan_run(&p, i);
    hd_vec_fini(&p.after);
    hd_map_fini(&p.lines);
    hd_map_fini(&p.changes);
    return err;
}
