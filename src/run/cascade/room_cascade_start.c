#include "base/buf.h"
#include "base/json.h"
#include "records/participants.h"
#include "records/thread_heads.h"
#include "run/room/room_answer.h"
#include "run/cascade/room_cascade_internal.h"

#define MAX_FORKS ((size_t)16 << 20)
#define MAX_GIVEN ((size_t)64 << 20)
#define NO_CHECKPOINT 1 /* where the run would begin */

struct starting {
    struct hd_room_cascade_try *t;
    struct hd_cascade_entry *step;
    size_t past; /* the index of the run that is repeated */
    struct hd_room_item trigger;
    struct hd_room_item *items;
    size_t count;
    struct hd_slice fork;
    struct hd_slice forks; /* JSON */
};

/* ---- what the run is given -------------------------------------------- */

/* The step that has made another answer in place of this message; NULL: none. */
static const struct hd_cascade_entry *find_new_answer(const struct hd_cascade_list *steps,
                                                      struct hd_slice message_id)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct hd_cascade_entry *entry = &steps->items[i];

        if (entry->state == HD_CASCADE_STEP_DONE && !entry->is_equal &&
            hd_slice_eq(entry->answer, message_id))
            return entry;
    }
    return NULL;
}

/* True if the old answer will be stale. */
static bool is_dropped(const struct hd_cascade_list *steps, struct hd_slice message_id)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct hd_cascade_entry *entry = &steps->items[i];

        if (entry->state == HD_CASCADE_STEP_SKIPPED && hd_slice_eq(entry->answer, message_id))
            return true;
    }
    return false;
}

/* The new answer is not in the chat yet. */
static int replace_item(struct starting *s, const struct hd_cascade_entry *by,
                        struct hd_room_message_rec *message, struct hd_room_content_rec *content)
{
    struct hd_room_said said;
    struct hd_room_run_rec row;
    struct hd_run_rec run;
    int err = hd_room_cascade_said(s->t, by, &said, &row, &run);

    if (err)
        return err;
    message->id = content->message_id = row.answer;
    message->state = HD_ROOM_OK;
    message->version = content->version = 1;
    message->run_id = run.run_id;
    message->checkpoint_id = run.checkpoint_id;
    message->source_id = said.source_id;
    content->content = said.content;
    return 0;
}

/* HD_ENOTFOUND: the message is not there any more. */
static int read_item(struct starting *s, struct hd_slice id, struct hd_room_item *out)
{
    const struct hd_room_cascade *op = s->t->op;
    const struct hd_cascade_entry *by = find_new_answer(&op->steps, id);
    struct hd_room_message_rec *message = hd_arena_calloc(op->arena, 1, sizeof(*message));
    struct hd_room_content_rec *content = hd_arena_calloc(op->arena, 1, sizeof(*content));
    int err = HD_ENOMEM;

    if (message && content)
        err = hd_room_message_read(op->app->store, op->principal, op->thread_id, id, op->arena,
                                   message, s->t->fault);
    if (!err)
        err = hd_room_contents_read(op->app->store, message, 1, op->arena, content, s->t->fault);
    if (!err && by)
        err = replace_item(s, by, message, content);
    if (!err && !by && is_dropped(&op->steps, id))
        message->state = HD_ROOM_STALE;
    *out = (struct hd_room_item){message, content};
    return err;
}

static bool is_in_input(const struct hd_room_cascade_past *past, size_t run, struct hd_slice id)
{
    for (size_t i = 0; i < past->runs[run].input_count; i++) {
        if (hd_slice_eq(past->past[run].given[i].message_id, id))
            return true;
    }
    return false;
}

/* True if an earlier step has given the message to the branch, in its present version. */
static bool is_on_branch(const struct starting *s, const struct hd_room_message_rec *message)
{
    const struct hd_room_cascade_past *past = &s->t->past;
    const struct hd_cascade_entry *step;

    if (message->state == HD_ROOM_DELETED || message->state == HD_ROOM_STALE)
        return false;
    for (size_t i = 0; i < s->past; i++) {
        if (!hd_slice_eq(past->past[i].line, past->past[s->past].line) ||
            !is_in_input(past, i, message->id))
            continue;
        step = hd_cascade_steps_find(&s->t->op->steps, past->past[i].run_id);
        if (step && step->state == HD_CASCADE_STEP_DONE)
            return true;
    }
    return false;
}

static int read_items(struct starting *s)
{
    const struct hd_cascade_past *past = &s->t->past.past[s->past];
    int err = 0;

    s->items = hd_arena_calloc(s->t->op->arena, past->given_count + 1, sizeof(*s->items));
    if (!s->items)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < s->t->past.runs[s->past].input_count; i++) {
        if (hd_slice_eq(past->given[i].message_id, past->trigger))
            continue;
        err = read_item(s, past->given[i].message_id, &s->items[s->count]);
        s->count += !err && !is_on_branch(s, s->items[s->count].message);
        err = err == HD_ENOTFOUND ? 0 : err;
    }
    return err ? err : read_item(s, past->trigger, &s->trigger);
}

/* ---- where it begins -------------------------------------------------- */

/* The newest checkpoint on `ns` of the runs that this cascade has repeated; empty: none. */
static int find_branch(struct starting *s, struct hd_slice ns, struct hd_slice *out)
{
    const struct hd_room_cascade *op = s->t->op;
    int err = 0;

    *out = hd_slice(NULL, 0);
    for (struct hd_cascade_entry *before = s->step; !err && out->len == 0;) {
        if (before-- == op->steps.items)
            break;
        if (before->state == HD_CASCADE_STEP_DONE)
            err = hd_thread_heads_made(op->app->store, op->principal, op->thread_id, ns,
                                       before->new_run_id, op->arena, out, s->t->fault);
    }
    return err;
}

static int find_step_start(struct starting *s, struct hd_slice ns, struct hd_slice known,
                           struct hd_slice *out)
{
    const struct hd_room_cascade_past *past = &s->t->past;
    int err = find_branch(s, ns, out);

    if (err || out->len > 0)
        return err;
    return hd_room_cascade_past_fork(past, past->past[s->past].run_id, ns, known, out, s->t->fault);
}

static int put_fork(struct starting *s, struct hd_jw *jw, struct hd_slice ns)
{
    struct hd_slice fork;
    int err = find_step_start(s, ns, hd_slice(NULL, 0), &fork);

    if (err || fork.len == 0)
        return err;
    hd_jw_key(jw, ns);
    hd_jw_string(jw, fork);
    return 0;
}

/* Delegates begin where they began then, or where this cascade has come to. */
static int write_forks(struct starting *s)
{
    const struct hd_room_cascade_past *past = &s->t->past;
    const struct hd_cascade_past *run = &past->past[s->past];
    struct hd_buf text;
    struct hd_jw jw;
    int err = 0, finish;

    hd_buf_init(&text, MAX_FORKS);
    hd_jw_init(&jw, &text);
    hd_jw_object(&jw);
    for (size_t i = 0; !err && i < past->lines.count; i++) {
        if (!hd_slice_eq(past->lines.list[i].ns, run->line))
            err = put_fork(s, &jw, past->lines.list[i].ns);
    }
    hd_jw_object_end(&jw);
    finish = hd_jw_finish_in(&jw, s->t->op->arena, &s->forks);
    return err ? err : finish;
}

/* ---- the run ---------------------------------------------------------- */

static struct hd_slice lender_of(const struct starting *s)
{
    const struct hd_room_cascade_past *past = &s->t->past;

    for (size_t i = 0; i < past->agent_count; i++) {
        if (hd_slice_eq(past->agents[i].assistant_id, s->step->assistant_id))
            return past->agents[i].actor;
    }
    return hd_slice(NULL, 0);
}

static int make_run(struct starting *s, struct hd_room_run **out)
{
    struct hd_room_cascade_try *t = s->t;
    struct hd_room_request_options options = {.app = t->op->app,
                                              .arena = t->op->arena,
                                              .thread = t->past.thread,
                                              .room = &t->past.room,
                                              .trigger = s->trigger,
                                              .assistant_id = s->step->assistant_id,
                                              .actor = t->cascade->actor,
                                              .lender = lender_of(s),
                                              .is_repeated = true,
                                              .fork = s->fork,
                                              .resume = s->step->resume,
                                              .items = s->items,
                                              .count = s->count};
    int err = hd_participants_share(t->op->app->store, t->op->principal, t->op->thread_id,
                                    t->cascade->actor, &options.is_shared, t->fault);

    if (s->step->resume.len > 0)
        options.ns = t->past.past[s->past].line;
    if (!err)
        err = hd_room_request_make(&options, out, t->fault);
    if (err)
        return err;
    (*out)->admission.is_off_head = true;
    (*out)->admission.user = t->cascade->user;
    (*out)->admission.forks = s->forks;
    (*out)->rec.cascade = t->cascade->id;
    (*out)->rec.replaces = s->step->run_id;
    (*out)->rec.chain = t->past.runs[s->past].row.chain;
    (*out)->rec.depth = t->past.runs[s->past].row.depth;
    return 0;
}

/* The messages of the interrupted run, then the reply. */
static int write_resumed_given(struct starting *s, struct hd_slice before, struct hd_slice *out)
{
    const struct hd_room_message_rec *reply = s->trigger.message;
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_buf text;
    struct hd_jw jw;
    int err = before.len > 0 ? hd_json_parse(&json, before, s->t->fault) : 0;

    if (err)
        return err;
    hd_buf_init(&text, MAX_GIVEN);
    hd_jw_init(&jw, &text);
    hd_jw_array(&jw);
    it = hd_json_iter(hd_json_root(&json));
    while (hd_json_next(&it))
        hd_jw_val(&jw, it.val);
    hd_jw_array(&jw);
    hd_jw_string(&jw, reply->id);
    hd_jw_int(&jw, reply->version);
    hd_jw_array_end(&jw);
    hd_jw_array_end(&jw);
    hd_json_fini(&json);
    return hd_jw_finish_in(&jw, s->t->op->arena, out);
}

/* A reply resumes the interrupted run, and is given in addition to what that run was given. */
static int resume_run(struct starting *s, struct hd_room_run **out)
{
    const struct hd_room_cascade *op = s->t->op;
    struct hd_room_message_rec question;
    struct hd_room_run_rec before;
    struct hd_run_rec run;
    int err = hd_room_message_read(op->app->store, op->principal, op->thread_id, s->step->question,
                                   op->arena, &question, s->t->fault);

    if (!err)
        err = hd_room_run_read(op->app->store, op->principal, op->thread_id, s->step->new_run_id,
                               op->arena, &before, s->t->fault);
    if (!err)
        err = hd_run_read(op->app->store, op->principal, op->thread_id, s->step->new_run_id,
                          op->arena, &run, s->t->fault);
    if (!err)
        err = read_item(s, s->step->reply, &s->trigger);
    if (err)
        return err;
    s->fork = run.checkpoint_id;
    s->forks = run.forks;
    err = make_run(s, out);
    if (err)
        return err;
    (*out)->admission.asked = question.interrupts;
    (*out)->rec.trigger = before.trigger;
    (*out)->rec.is_answer = false;
    err = write_resumed_given(s, before.given, &(*out)->rec.given);
    if (err)
        hd_room_request_fini(*out);
    return err;
}

static void skip_start(struct starting *s, const char *why)
{
    s->step->state = HD_CASCADE_STEP_SKIPPED;
    s->step->blocked = hd_slice_cstr(why);
    s->step->resume = hd_slice(NULL, 0);
    *s->t->fault = (struct heddle_error){0};
}

static int repeat_run(struct starting *s, struct hd_room_run **out)
{
    const struct hd_room_cascade_past *past = &s->t->past;
    int err = read_items(s);

    if (!err)
        err = find_step_start(s, past->past[s->past].line, past->runs[s->past].row.head_before,
                              &s->fork);
    if (!err && s->fork.len == 0)
        return NO_CHECKPOINT;
    s->step->fork = s->fork;
    if (!err)
        err = write_forks(s);
    return err ? err : make_run(s, out);
}

static int start_step(struct starting *s)
{
    struct hd_room_cascade *op = s->t->op;
    struct hd_room_run *made = NULL;
    int err = s->step->resume.len > 0 ? resume_run(s, &made) : repeat_run(s, &made);

    if (err == NO_CHECKPOINT) {
        skip_start(s, "the checkpoint before this run was pruned");
        return 0;
    }
    if (err == HD_ENOTFOUND || err == HD_EINVAL) {
        skip_start(s, err == HD_EINVAL ? "the agent cannot be asked"
                                       : "the agent or its message is not there any more");
        return 0;
    }
    if (err)
        return err;
    s->t->started[op->run_count] = s->step;
    op->runs[op->run_count++] = made;
    return 0;
}

static int join_group(struct hd_room_cascade_try *t)
{
    struct hd_admission_group *group = t->group;

    group->runs = hd_arena_calloc(t->op->arena, t->op->run_count + 1, sizeof(*group->runs));
    if (!group->runs)
        return HD_ENOMEM;
    for (size_t i = 0; i < t->op->run_count; i++)
        group->runs[i] = &t->op->runs[i]->admission;
    group->count = t->op->run_count;
    return 0;
}

int hd_room_cascade_start(struct hd_room_cascade_try *t, const size_t *ready, size_t count)
{
    struct hd_room_cascade *op = t->op;
    size_t most = count < HD_ADMIT_MAX_RUNS ? count : HD_ADMIT_MAX_RUNS;
    int err = 0;

    op->is_more = true; /* a step may be skipped, and more than a group may be ready */
    op->runs = hd_arena_calloc(op->arena, most + 1, sizeof(struct hd_room_run *));
    t->started = hd_arena_calloc(op->arena, most + 1, sizeof(struct hd_cascade_entry *));
    if (!op->runs || !t->started)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < most; i++) {
        struct starting s = {.t = t, .step = &op->steps.items[ready[i]]};

        s.past = hd_room_cascade_past_find(&t->past, s.step->run_id);
        if (s.past == t->past.count)
            skip_start(&s, "the run was deleted");
        else
            err = start_step(&s);
    }
    return err ? err : join_group(t);
}
