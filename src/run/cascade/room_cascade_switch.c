#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "records/thread_heads.h"
#include "run/room/room_answer.h"
#include "run/cascade/room_cascade_internal.h"

#define MAX_BEFORE ((size_t)64 << 20)

static struct heddle *store_of(const struct hd_room_cascade_try *t)
{
    return t->op->app->store;
}

/* ---- messages --------------------------------------------------------- */

/* HD_ENOTFOUND: the chat has no such message. */
static int read_message(struct hd_room_cascade_try *t, struct hd_slice id,
                        struct hd_room_cascade_message **out)
{
    const struct hd_room_cascade *op = t->op;
    struct hd_room_message_rec message;
    struct hd_room_content_rec content;
    int err = id.len == 0 ? HD_ENOTFOUND
                          : hd_room_message_read(store_of(t), op->principal, op->thread_id, id,
                                                 op->arena, &message, t->fault);

    if (!err)
        err = hd_room_contents_read(store_of(t), &message, 1, op->arena, &content, t->fault);
    if (!err)
        err = hd_room_cascade_note(t, &message, content.version > 0 ? &content : NULL, out);
    if (!err) {
        (*out)->message->changed = ++t->past.room.changes;
        (*out)->message->updated_at = hd_clock_now_us();
    }
    return err;
}

/* A question at the head of a line stays open. */
static int mark_stale(struct hd_room_cascade_try *t, struct hd_slice id, bool is_question)
{
    struct hd_room_cascade_message *note;
    int err = read_message(t, id, &note);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (note->message->state != HD_ROOM_DELETED &&
        (is_question || note->message->state != HD_ROOM_PENDING))
        note->message->state = HD_ROOM_STALE;
    return 0;
}

int hd_room_cascade_mark_questions(struct hd_room_cascade_try *t,
                                   const struct hd_cascade_list *steps)
{
    int err = 0;

    for (size_t i = 0; !err && i < steps->count; i++) {
        if (steps->items[i].state == HD_CASCADE_STEP_QUESTION)
            err = mark_stale(t, steps->items[i].question, true);
    }
    return err;
}

int hd_room_cascade_mark_stale(struct hd_room_cascade_try *t, const struct hd_cascade_list *steps)
{
    int err = 0;

    for (size_t i = 0; !err && i < steps->count; i++)
        err = mark_stale(t, steps->items[i].answer, false);
    return err ? err : hd_room_cascade_mark_questions(t, steps);
}

/* ---- what an undo needs ----------------------------------------------- */

/* A line as it was, and the run that is its last one now. */
struct moved_line {
    struct hd_line_rec line;
    struct hd_slice head, new_run;
    struct hd_room_mark mark;
};

struct switching {
    struct hd_room_cascade_try *t;
    struct hd_buf messages;
    struct hd_jw messages_jw;
    struct moved_line *moved;
    size_t moved_count, moved_cap;
    int64_t changes; /* of the room, by the edit; 0: not known */
};

static void keep_message(struct switching *s, const struct hd_room_message_rec *message)
{
    struct hd_jw *jw = &s->messages_jw;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", message->id);
    hd_jw_put_string(jw, "state", hd_slice_cstr(hd_room_states[message->state]));
    hd_jw_put_raw_or(jw, "error", message->error, "null");
    hd_jw_put_string(jw, "replaced_by", message->replaced_by);
    hd_jw_put_string(jw, "run_id", message->run_id);
    hd_jw_put_string(jw, "checkpoint_id", message->checkpoint_id);
    hd_jw_put_string(jw, "source_id", message->source_id);
    hd_jw_object_end(jw);
}

static void put_moved(struct hd_jw *jw, const struct moved_line *moved)
{
    const struct hd_line_rec *line = &moved->line;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "ns", line->ns);
    hd_jw_put_string(jw, "head", moved->head);
    hd_jw_put_string(jw, "checkpoint_id", line->checkpoint_id);
    hd_jw_put_string(jw, "run_id", line->run_id);
    hd_jw_put_string(jw, "new_run", moved->new_run);
    hd_jw_put_string(jw, "status", hd_slice_cstr(hd_thread_status_name(line->status)));
    hd_jw_put_raw_or(jw, "interrupts", line->interrupts, "null");
    hd_jw_put_raw_or(jw, "error", line->error, "null");
    hd_jw_put_int(jw, "mark_seq", moved->mark.seq);
    hd_jw_put_int(jw, "mark_changes", moved->mark.changes);
    hd_jw_object_end(jw);
}

static int write_before(struct switching *s)
{
    struct hd_buf text;
    struct hd_jw jw;
    int err;

    hd_jw_array_end(&s->messages_jw);
    err = hd_jw_finish(&s->messages_jw);
    if (err)
        return err;
    hd_buf_init(&text, MAX_BEFORE);
    hd_jw_init(&jw, &text);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "lines");
    for (size_t i = 0; i < s->moved_count; i++)
        put_moved(&jw, &s->moved[i]);
    hd_jw_array_end(&jw);
    hd_jw_put_raw(&jw, "messages", hd_buf_slice(&s->messages));
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, s->t->op->arena, &s->t->cascade->before);
}

/* ---- heads ------------------------------------------------------------ */

static struct hd_room_cascade_head *find_head(const struct hd_room_cascade_try *t,
                                              struct hd_slice ns)
{
    for (size_t i = 0; i < t->head_count; i++) {
        if (hd_slice_eq(t->heads[i].ns, ns))
            return &t->heads[i];
    }
    return NULL;
}

static int set_new_head(struct hd_room_cascade_try *t, struct hd_slice ns, struct hd_slice id)
{
    struct hd_room_cascade_head *head = find_head(t, ns);

    if (!head) {
        t->heads = hd_room_cascade_grow(t->op->arena, t->heads, sizeof(*t->heads), t->head_count,
                                        &t->head_cap);
        if (!t->heads)
            return HD_ENOMEM;
        head = &t->heads[t->head_count++];
    }
    *head = (struct hd_room_cascade_head){ns, id};
    t->moves_lines = true;
    return 0;
}

/* The head that the line has now: the record names it while there are branches. */
static int read_old_head(struct hd_room_cascade_try *t, const struct hd_line_rec *line,
                         struct hd_slice *out)
{
    int err =
        hd_thread_heads_get(store_of(t), t->past.thread, line->ns, t->op->arena, out, t->fault);

    if (!err && out->len == 0)
        *out = line->checkpoint_id;
    return err;
}

static struct moved_line *find_moved(const struct switching *s, struct hd_slice ns)
{
    for (size_t i = 0; i < s->moved_count; i++) {
        if (hd_slice_eq(s->moved[i].line.ns, ns))
            return &s->moved[i];
    }
    return NULL;
}

/* Keeps the line as it is before its first move. */
static int keep_line(struct switching *s, const struct hd_line_rec *line, struct moved_line **out)
{
    struct hd_room_cascade_try *t = s->t;
    struct moved_line *moved;
    int err;

    s->moved = hd_room_cascade_grow(t->op->arena, s->moved, sizeof(*s->moved), s->moved_count,
                                    &s->moved_cap);
    if (!s->moved)
        return HD_ENOMEM;
    moved = &s->moved[s->moved_count];
    *moved = (struct moved_line){.line = *line, .new_run = line->run_id};
    err = read_old_head(t, line, &moved->head);
    if (!err)
        err = hd_room_mark_get(&t->past.room, line->ns, &moved->mark, t->fault);
    s->moved_count += !err;
    *out = moved;
    return err;
}

/* The line's new runs were given the edited message: it is not given to the next one again. */
static int move_mark(struct switching *s, const struct moved_line *moved)
{
    struct hd_room_mark mark = {moved->mark.seq, s->changes};

    if (s->changes == 0 || moved->mark.changes + 1 != s->changes)
        return 0;
    return hd_room_mark_set(&s->t->past.room, moved->line.ns, mark, s->t->op->arena);
}

/* `run_id` empty: a delegate has changed the line. */
static int move_line(struct switching *s, struct hd_slice ns, struct hd_slice id,
                     struct hd_slice run_id)
{
    struct hd_room_cascade_try *t = s->t;
    struct moved_line *moved = find_moved(s, ns);
    struct hd_line_rec *line;
    int err = 0;

    if (id.len == 0)
        return 0;
    line = hd_lines_change(&t->past.lines, t->past.thread, ns, t->op->arena);
    if (!line)
        return HD_ENOMEM;
    if (!moved)
        err = keep_line(s, line, &moved);
    if (!err && run_id.len > 0)
        err = move_mark(s, moved);
    if (err)
        return err;
    line->status = HD_THREAD_IDLE;
    line->interrupts = line->error = hd_slice(NULL, 0);
    line->updated_at = hd_clock_now_us();
    line->checkpoint_id = id;
    if (run_id.len > 0)
        line->run_id = moved->new_run = run_id;
    return set_new_head(t, ns, id);
}

static int move_lines(struct switching *s, const struct hd_room_run_rec *row,
                      const struct hd_run_rec *run)
{
    struct hd_room_cascade_try *t = s->t;
    const struct hd_slice *touched;
    size_t count = 0;
    int err = move_line(s, row->ns, run->checkpoint_id, run->run_id);

    if (!err)
        err = hd_room_cascade_past_touched(t->op->arena, run->touched, &touched, &count);
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_slice made;

        err = hd_thread_heads_made(store_of(t), t->op->principal, t->op->thread_id, touched[i],
                                   run->run_id, t->op->arena, &made, t->fault);
        if (!err)
            err = move_line(s, touched[i], made, hd_slice(NULL, 0));
    }
    return err;
}

/* ---- answers ---------------------------------------------------------- */

/* The new run has made the message, too: it is as fresh as that run, whatever it was before. */
static void renew_answer(struct hd_room_message_rec *message, const struct hd_room_said *said)
{
    if (message->state == HD_ROOM_DELETED)
        return;
    if (said->content.len > 0)
        message->state = HD_ROOM_OK;
    else if (message->state != HD_ROOM_OK)
        message->state = HD_ROOM_STALE;
    message->error = hd_slice(NULL, 0);
}

/* The old message stays, and belongs to the new run. */
static int keep_answer(struct switching *s, const struct hd_cascade_entry *step,
                       const struct hd_room_said *said, struct hd_room_run_rec *row,
                       const struct hd_run_rec *run)
{
    struct hd_room_cascade_message *note;
    int err;

    row->answer = step->answer;
    err = read_message(s->t, step->answer, &note);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    keep_message(s, note->message);
    renew_answer(note->message, said);
    note->message->run_id = run->run_id;
    note->message->checkpoint_id = run->checkpoint_id;
    note->message->source_id = said->source_id;
    return 0;
}

static struct hd_slice agent_name(const struct hd_room_cascade_try *t, struct hd_slice id)
{
    for (size_t i = 0; i < t->past.agent_count; i++) {
        if (hd_slice_eq(t->past.agents[i].assistant_id, id))
            return t->past.agents[i].name;
    }
    return id;
}

static struct hd_room_message_rec make_answer(const struct hd_room_cascade_try *t,
                                              const struct hd_room_said *said,
                                              const struct hd_room_run_rec *row,
                                              const struct hd_run_rec *run)
{
    return (struct hd_room_message_rec){.principal = t->op->principal,
                                        .thread_id = t->op->thread_id,

                                        .id = row->answer,
                                        .state = HD_ROOM_OK,
                                        .version = 1,
                                        .created_at = hd_clock_now_us(),
                                        .sender = row->assistant_id,
                                        .kind = HD_ROOM_AGENT,
                                        .sender_id = row->assistant_id,
                                        .sender_name = agent_name(t, row->assistant_id),
                                        .reply_to = row->trigger,
                                        .run_id = run->run_id,
                                        .checkpoint_id = run->checkpoint_id,
                                        .ns = row->ns,
                                        .source_id = said->source_id};
}

/* The old answer is linked to the new one; *out is empty when the chat has none. */
static int replace_old(struct switching *s, struct hd_slice old, struct hd_slice by,
                       struct hd_slice *out, bool *is_deleted)
{
    struct hd_room_cascade_message *note;
    int err = read_message(s->t, old, &note);

    *out = hd_slice(NULL, 0);
    *is_deleted = false;
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    keep_message(s, note->message);
    *is_deleted = note->message->state == HD_ROOM_DELETED;
    if (*is_deleted)
        return 0;
    note->message->state = HD_ROOM_STALE;
    note->message->replaced_by = by;
    *out = old;
    return 0;
}

/* The answer to a run whose answer was deleted is not shown either. */
static int post_answer(struct switching *s, const struct hd_cascade_entry *step,
                       const struct hd_room_said *said, const struct hd_room_run_rec *row,
                       const struct hd_run_rec *run)
{
    struct hd_room_cascade_try *t = s->t;
    struct hd_room_message_rec message = make_answer(t, said, row, run);
    struct hd_room_content_rec content = {.principal = t->op->principal,
                                          .thread_id = t->op->thread_id,
                                          .message_id = row->answer,
                                          .version = 1,
                                          .created_at = message.created_at,
                                          .content = said->content};
    struct hd_room_cascade_message *note;
    bool is_deleted;
    int err = replace_old(s, step->answer, row->answer, &message.replaces, &is_deleted);

    if (err || is_deleted)
        return err;
    message.seq = ++t->past.room.last_seq;
    err = hd_room_cascade_note(t, &message, &content, &note);
    if (!err)
        note->is_new = note->has_new_content = true;
    return err;
}

static int switch_done(struct switching *s, const struct hd_cascade_entry *step)
{
    struct hd_room_cascade_try *t = s->t;
    struct hd_room_run_rec *row = hd_arena_calloc(t->op->arena, 1, sizeof(*row));
    struct hd_run_rec *run = hd_arena_calloc(t->op->arena, 1, sizeof(*run));
    struct hd_room_said said;
    int err = row && run ? hd_room_cascade_said(t, step, &said, row, run) : HD_ENOMEM;

    if (!err)
        err = move_lines(s, row, run);
    if (!err && step->question.len > 0)
        row->head_before = step->fork; /* the run before the question began there */
    if (!err)
        err = step->is_equal ? keep_answer(s, step, &said, row, run)
                             : post_answer(s, step, &said, row, run);
    return err ? err : hd_room_cascade_note_row(t, row);
}

/* Sets *seq to before the first message that the run was given, unless it is there already. */
static int find_before_given(struct hd_room_cascade_try *t, const struct hd_cascade_past *run,
                             int64_t *seq)
{
    const struct hd_room_cascade *op = t->op;
    int err = 0;

    for (size_t i = 0; !err && i < run->given_count; i++) {
        struct hd_room_message_rec message;

        err = hd_room_message_read(store_of(t), op->principal, op->thread_id,
                                   run->given[i].message_id, op->arena, &message, t->fault);
        if (!err && message.seq <= *seq)
            *seq = message.seq - 1;
        err = err == HD_ENOTFOUND ? 0 : err;
    }
    return err;
}

/* The moved line does not have the messages of a skipped run: its next run is given them. */
static int lower_mark(struct switching *s, const struct hd_cascade_entry *step)
{
    struct hd_room_cascade_past *past = &s->t->past;
    size_t index = hd_room_cascade_past_find(past, step->run_id);
    struct hd_room_mark mark;
    int err;

    if (index == past->count || !find_moved(s, past->past[index].line))
        return 0;
    err = hd_room_mark_get(&past->room, past->past[index].line, &mark, s->t->fault);
    if (!err)
        err = find_before_given(s->t, &past->past[index], &mark.seq);
    return err ? err : hd_room_mark_set(&past->room, past->past[index].line, mark, s->t->op->arena);
}

static int switch_skipped(struct switching *s, const struct hd_cascade_entry *step)
{
    struct hd_room_cascade_message *note;
    int err = lower_mark(s, step);

    if (!err)
        err = read_message(s->t, step->answer, &note);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (note->message->state == HD_ROOM_PENDING && !find_moved(s, note->message->ns))
        return 0; /* the head of its line still waits for the reply */
    keep_message(s, note->message);
    if (note->message->state != HD_ROOM_DELETED)
        note->message->state = HD_ROOM_STALE;
    return 0;
}

/* Skipped steps come last: then it is known which lines have moved. */
static int switch_steps(struct switching *s)
{
    const struct hd_cascade_list *steps = &s->t->op->steps;
    int err = 0;

    for (size_t i = 0; !err && i < steps->count; i++) {
        if (steps->items[i].state == HD_CASCADE_STEP_DONE)
            err = switch_done(s, &steps->items[i]);
    }
    for (size_t i = 0; !err && i < steps->count; i++) {
        if (steps->items[i].state != HD_CASCADE_STEP_DONE)
            err = switch_skipped(s, &steps->items[i]);
    }
    return err;
}

/* Unless the message was changed again. */
static int find_edit(struct switching *s)
{
    const struct hd_room_cascade *op = s->t->op;
    struct hd_room_message_rec message;
    int err = hd_room_message_read(store_of(s->t), op->principal, op->thread_id,
                                   s->t->cascade->message_id, op->arena, &message, s->t->fault);

    if (!err && message.kind != HD_ROOM_AGENT && message.version == s->t->cascade->version)
        s->changes = message.changed;
    return err;
}

int hd_room_cascade_switch(struct hd_room_cascade_try *t)
{
    struct switching s = {.t = t};
    int err;

    hd_buf_init(&s.messages, MAX_BEFORE);
    hd_jw_init(&s.messages_jw, &s.messages);
    hd_jw_array(&s.messages_jw);
    err = find_edit(&s);
    if (!err)
        err = switch_steps(&s);
    if (!err)
        err = write_before(&s);
    hd_buf_fini(&s.messages);
    t->cascade->status = HD_CASCADE_DONE;
    t->cascade->reason = hd_slice(NULL, 0);
    return err;
}

/* ---- undo ------------------------------------------------------------- */

static int refuse_undo(struct hd_room_cascade_try *t)
{
    return hd_admit_refuse(t->group, t->fault, 409,
                           "The conversation has continued since: the edit cannot be undone");
}

/* The line returns to its old head, or stays: a prune may have deleted it. Empty: it had none. */
static int check_old_head(struct hd_room_cascade_try *t, struct hd_slice ns, struct hd_slice head)
{
    int err = head.len == 0 ? 0
                            : hd_thread_heads_check(store_of(t), t->op->principal, t->op->thread_id,
                                                    ns, head, t->fault);

    return err == HD_ENOTFOUND
               ? hd_admit_refuse(t->group, t->fault, 409,
                                 "The old checkpoints were pruned: the edit cannot be undone")
               : err;
}

static int copy_member(const struct hd_room_cascade_try *t, hd_json_val from, const char *name,
                       struct hd_slice *out)
{
    return hd_arena_copy(t->op->arena, hd_json_string(hd_json_get(from, hd_slice_cstr(name))), out);
}

static int copy_json(const struct hd_room_cascade_try *t, hd_json_val from, const char *name,
                     struct hd_slice *out)
{
    hd_json_val val = hd_json_get(from, hd_slice_cstr(name));
    struct hd_buf text;
    int err;

    *out = hd_slice(NULL, 0);
    if (!val || hd_json_is_null(val))
        return 0;
    hd_buf_init(&text, MAX_BEFORE);
    err = hd_json_write_val(&text, val);
    if (!err)
        err = hd_arena_copy(t->op->arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

static int check_line(struct hd_room_cascade_try *t, hd_json_val before, struct hd_slice ns)
{
    const struct hd_line_rec *line = hd_lines_find(&t->past.lines, ns);
    struct hd_slice new_run = hd_json_string(hd_json_get(before, HD_S("new_run")));
    bool is_busy = false;
    int err;

    if (!line || !hd_slice_eq(line->run_id, new_run))
        return refuse_undo(t);
    err = hd_line_is_busy(store_of(t), t->past.thread, ns, true, &is_busy, t->fault);
    return !err && is_busy ? refuse_undo(t) : err;
}

static int restore_mark(struct hd_room_cascade_try *t, hd_json_val before, struct hd_slice ns)
{
    struct hd_room_mark mark;

    if (!hd_json_int(hd_json_get(before, HD_S("mark_seq")), &mark.seq) ||
        !hd_json_int(hd_json_get(before, HD_S("mark_changes")), &mark.changes))
        return HD_ECORRUPT;
    return hd_room_mark_set(&t->past.room, ns, mark, t->op->arena);
}

static int restore_line(struct hd_room_cascade_try *t, hd_json_val before)
{
    struct hd_slice ns, head;
    struct hd_line_rec *line;
    int err = copy_member(t, before, "ns", &ns);

    if (!err)
        err = check_line(t, before, ns);
    line = err ? NULL : hd_lines_change(&t->past.lines, t->past.thread, ns, t->op->arena);
    if (!err && !line)
        err = HD_ENOMEM;
    if (!err)
        err = copy_member(t, before, "head", &head);
    if (!err)
        err = check_old_head(t, ns, head);
    if (!err)
        err = copy_member(t, before, "checkpoint_id", &line->checkpoint_id);
    if (!err)
        err = copy_member(t, before, "run_id", &line->run_id);
    if (!err)
        err = copy_json(t, before, "interrupts", &line->interrupts);
    if (!err)
        err = copy_json(t, before, "error", &line->error);
    if (err)
        return err;
    if (!hd_thread_status_find(hd_json_string(hd_json_get(before, HD_S("status"))), &line->status))
        line->status = HD_THREAD_IDLE;
    err = restore_mark(t, before, ns);
    return err ? err : set_new_head(t, ns, head);
}

static int find_state(hd_json_val before, enum hd_room_state *out)
{
    struct hd_slice name = hd_json_string(hd_json_get(before, HD_S("state")));

    for (int i = 0; hd_room_states[i]; i++) {
        if (hd_slice_eq(hd_slice_cstr(hd_room_states[i]), name)) {
            *out = (enum hd_room_state)i;
            return 0;
        }
    }
    return HD_ECORRUPT;
}

/* The new answer gives its place back to the old one. */
static int withdraw_answer(struct hd_room_cascade_try *t, struct hd_slice id, struct hd_slice by)
{
    struct hd_room_cascade_message *note;
    int err = read_message(t, id, &note);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (note->message->state != HD_ROOM_DELETED)
        note->message->state = HD_ROOM_STALE;
    note->message->replaced_by = by;
    return 0;
}

/* A message that was deleted since stays deleted. */
static int restore_message(struct hd_room_cascade_try *t, hd_json_val before)
{
    struct hd_room_cascade_message *note;
    struct hd_slice id, new_answer;
    enum hd_room_state state;
    int err = copy_member(t, before, "id", &id);

    if (!err)
        err = find_state(before, &state);
    if (!err)
        err = read_message(t, id, &note);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    new_answer = note->message->replaced_by;
    if (note->message->state != HD_ROOM_DELETED)
        note->message->state = state;
    err = copy_member(t, before, "replaced_by", &note->message->replaced_by);
    if (!err)
        err = copy_member(t, before, "run_id", &note->message->run_id);
    if (!err)
        err = copy_member(t, before, "checkpoint_id", &note->message->checkpoint_id);
    if (!err)
        err = copy_member(t, before, "source_id", &note->message->source_id);
    if (!err)
        err = copy_json(t, before, "error", &note->message->error);
    if (!err && new_answer.len > 0 && !hd_slice_eq(new_answer, note->message->replaced_by))
        err = withdraw_answer(t, new_answer, id);
    return err;
}

int hd_room_cascade_undo(struct hd_room_cascade_try *t)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = hd_json_parse(&json, t->cascade->before, t->fault);

    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("lines")));
    while (!err && hd_json_next(&it))
        err = restore_line(t, it.val);
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("messages")));
    while (!err && hd_json_next(&it))
        err = restore_message(t, it.val);
    hd_json_fini(&json);
    t->cascade->status = HD_CASCADE_UNDONE;
    return err;
}
