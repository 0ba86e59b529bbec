/*
 * Plain runs in a room: those of official clients and crons, which no chat message made. They show
 * in the chat as a turn: the human messages of the input, then the answer.
 */
#include <heddle.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/uuid.h"
#include "records/line.h"
#include "records/principals.h"
#include "room/room_input.h"
#include "run/room/room_answer_internal.h"
#include "store/bytes.h"

#define MAX_GIVEN 64 /* human messages of one run that become chat messages: the newest */
#define MAX_STALE 64 /* turns */
#define MAX_MESSAGES ((size_t)1 << 24)
#define MAX_TEXT ((size_t)16 << 20)

/* ---- who made the run -------------------------------------------------- */

/* The cron that made it; empty: none. */
static int read_cron(const struct hd_room_answering *a, struct hd_slice *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, a->commit->run->kwargs, a->fault);
    hd_json_val config = hd_json_get(hd_json_root(&json), HD_S("config"));

    if (!err)
        err = hd_arena_copy(
            a->arena,
            hd_json_string(hd_json_get(hd_json_get(config, HD_S("configurable")), HD_S("cron_id"))),
            out);
    hd_json_fini(&json);
    return err;
}

static int set_person(const struct hd_room_answering *a, struct hd_room_message_rec *message)
{
    struct hd_principal_rec person;
    int err;

    message->kind = HD_ROOM_PERSON;
    message->sender = a->commit->run->actor;
    message->sender_id = HD_S("user"); /* without authentication */
    message->sender_name = HD_S("User");
    if (message->sender.len == 0)
        return 0;
    err = hd_principal_read(a->app->store, message->sender, a->arena, &person, a->fault);
    message->sender_id = err ? hd_slice("", 0) : person.subject;
    message->sender_name = message->sender_id;
    return err == HD_ENOTFOUND ? 0 : err;
}

/* The person whose run it is, also in a shared thread; a cron is a service. */
static int set_sender(const struct hd_room_answering *a, struct hd_room_message_rec *message)
{
    struct hd_slice cron_id = {NULL, 0};
    int err = read_cron(a, &cron_id);

    if (err || cron_id.len == 0)
        return err ? err : set_person(a, message);
    message->kind = HD_ROOM_SERVICE;
    message->sender = cron_id;
    message->sender_id = cron_id;
    message->sender_name = HD_S("cron");
    return 0;
}

/* ---- the turn ----------------------------------------------------------- */

struct plain_turn {
    struct hd_room_answering *a;
    struct hd_json kwargs, before_json, after_json;
    hd_json_val input;             /* `messages` of the run's input */
    hd_json_val before, after;     /* the lists of messages; or NULL */
    struct hd_map known;           /* ids of messages before */
    struct hd_map left;            /* ids of messages after */
    struct hd_map sent;            /* ids of messages of the input */
    struct hd_map chosen;          /* ids of `humans` */
    hd_json_val humans[MAX_GIVEN]; /* to be posted; newest first */
    size_t human_count;
    struct hd_buf text, other; /* contents */
    struct hd_jw given;        /* hd_room_run_rec.given */
    struct hd_buf given_text;
    struct hd_slice last; /* the id of the newest human message of the turn; or empty */
};

static struct hd_slice plain_id(hd_json_val message)
{
    return hd_json_string(hd_json_get(message, HD_S("id")));
}

static bool is_of_human(hd_json_val message)
{
    struct hd_slice type = hd_json_string(hd_json_get(message, HD_S("type")));

    return hd_slice_eq(type, HD_S("human"));
}

static int write_text(hd_json_val content, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_val(&jw, content);
    return hd_jw_finish(&jw);
}

/* The content of a message as clients may send it: an object, a text, or [role, content]. */
static hd_json_val sent_content(hd_json_val sent)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(sent) ? sent : NULL);
    hd_json_val content = hd_json_is_string(sent) ? sent : hd_json_get(sent, HD_S("content"));

    while (hd_json_next(&it))
        content = it.val;
    return content;
}

/* Whether the message, with its content in turn->text, is this one of the input. */
static int is_sent_message(struct plain_turn *turn, hd_json_val message, hd_json_val sent,
                           bool *out)
{
    hd_json_val content = sent_content(sent);
    int err;

    *out = false;
    if (plain_id(sent).len > 0) {
        *out = hd_slice_eq(plain_id(sent), plain_id(message));
        return 0;
    }
    if (!content)
        return 0;
    err = write_text(content, &turn->other);
    *out = !err && hd_slice_eq(hd_buf_slice(&turn->text), hd_buf_slice(&turn->other));
    return err;
}

/* Graphs add human messages of their own; those were not sent by a client. */
static int was_sent(struct plain_turn *turn, hd_json_val message, bool *out)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(turn->input) ? turn->input : NULL);
    int err = 0;

    *out = false;
    if (turn->input && !hd_json_is_array(turn->input))
        return is_sent_message(turn, message, turn->input, out);
    while (!err && !*out && hd_json_next(&it))
        err = is_sent_message(turn, message, it.val, out);
    return err;
}

/* Whether the line got the message, or a new content of it, with this run. */
static int is_new_message(struct plain_turn *turn, hd_json_val message, bool *out)
{
    hd_json_val old =
        plain_id(message).len > 0 ? hd_map_get(&turn->known, plain_id(message)) : NULL;
    int err;

    *out = true;
    if (!old)
        return 0;
    err = write_text(hd_json_get(old, HD_S("content")), &turn->other);
    *out = !hd_slice_eq(hd_buf_slice(&turn->text), hd_buf_slice(&turn->other));
    return err;
}

static int note_given(struct plain_turn *turn, struct hd_slice id, int64_t version)
{
    hd_jw_array(&turn->given);
    hd_jw_string(&turn->given, id);
    hd_jw_int(&turn->given, version);
    hd_jw_array_end(&turn->given);
    turn->last = id;
    return turn->given.err;
}

/* `sent_id`: its id in the line, if that is another one. */
static int add_human(struct plain_turn *turn, struct hd_slice sent_id,
                     const struct hd_room_content_rec *body)
{
    struct hd_room_answering *a = turn->a;
    struct hd_room_message_rec message = {.principal = a->room.principal,
                                          .thread_id = a->room.thread_id,
                                          .seq = a->room.last_seq + 1,
                                          .id = body->message_id,
                                          .state = HD_ROOM_OK,
                                          .version = 1,
                                          .created_at = a->now,
                                          .ns = a->run.ns,
                                          .source_id = sent_id};
    int err = set_sender(a, &message);

    if (err)
        return err;
    a->room.last_seq++;
    err = hd_room_answer_add(a, &message, body);
    return err ? err : note_given(turn, message.id, 1);
}

static int make_id(const struct plain_turn *turn, struct hd_slice *out)
{
    char made[HD_UUID_SIZE];

    hd_uuid_v7(made);
    return hd_arena_copy(turn->a->arena, hd_slice_cstr(made), out);
}

/* The room has a message with the id of this one. */
static int meet_human(struct plain_turn *turn, struct hd_room_message_rec *stored,
                      struct hd_room_content_rec *body)
{
    struct hd_room_answering *a = turn->a;
    struct hd_room_message_rec own = {.seq = 0};
    struct hd_room_content_rec old;
    int err = hd_room_contents_read(a->app->store, stored, 1, a->arena, &old, a->fault);

    if (!err && hd_slice_eq(old.content, body->content))
        return note_given(turn, stored->id, stored->version);
    if (!err)
        err = set_sender(a, &own);
    if (!err && (own.kind != stored->kind || !hd_slice_eq(own.sender, stored->sender))) {
        /* Only its author changes a message. */
        err = make_id(turn, &body->message_id);
        return err ? err : add_human(turn, stored->id, body);
    }
    body->version = ++stored->version;
    stored->state = HD_ROOM_OK;
    if (!err)
        err = hd_room_content_add(a->batch, body);
    if (!err)
        err = hd_room_answer_change(a, stored, body);
    return err ? err : note_given(turn, stored->id, stored->version);
}

/* Adds the message with its content in turn->text. */
static int take_human(struct plain_turn *turn, hd_json_val message)
{
    struct hd_room_answering *a = turn->a;
    struct hd_room_message_rec stored;
    struct hd_room_content_rec body = {.principal = a->room.principal,
                                       .thread_id = a->room.thread_id,
                                       .version = 1,
                                       .created_at = a->now};
    struct hd_slice id = plain_id(message), sent_id = {NULL, 0};
    bool is_usable = id.len > 0 && id.len <= HD_ROOM_MAX_ID;
    int err =
        is_usable ? hd_arena_copy(a->arena, id, &body.message_id) : make_id(turn, &body.message_id);

    if (!err && !is_usable)
        err = hd_arena_copy(a->arena, id, &sent_id);
    if (!err)
        err = hd_room_content_said(hd_buf_slice(&turn->text), a->arena, &body.content);
    if (err)
        return err;
    err = hd_room_message_read(a->app->store, a->room.principal, a->room.thread_id, body.message_id,
                               a->arena, &stored, a->fault);
    if (err == HD_ENOTFOUND)
        return add_human(turn, sent_id, &body);
    return err ? err : meet_human(turn, &stored, &body);
}

/* With other reducers than add_messages a list may have a message twice: the newer one counts. */
static int choose_human(struct plain_turn *turn, hd_json_val message)
{
    struct hd_slice id = plain_id(message);

    if (id.len > 0 && hd_map_get(&turn->chosen, id))
        return 0;
    turn->humans[turn->human_count++] = message;
    return id.len > 0 ? hd_map_put(&turn->chosen, id, message) : 0;
}

static int choose_if_new(struct plain_turn *turn, hd_json_val message)
{
    bool is_new = false, is_sent = false;
    struct hd_slice id = plain_id(message);
    int err;

    if (id.len > 0 && hd_map_get(&turn->known, id) && !hd_map_get(&turn->sent, id))
        return 0;
    err = write_text(hd_json_get(message, HD_S("content")), &turn->text);
    if (err || !hd_room_content_is_said(hd_buf_slice(&turn->text)))
        return err;
    err = was_sent(turn, message, &is_sent);
    if (!err && is_sent)
        err = is_new_message(turn, message, &is_new);
    return !err && is_new ? choose_human(turn, message) : err;
}

/* Newest first. A message that is too large for the room is left out: the run ends all the same. */
static int choose_humans(struct plain_turn *turn)
{
    size_t size = hd_json_is_array(turn->after) ? hd_json_size(turn->after) : 0, count = 0;
    hd_json_val *list = hd_arena_calloc(turn->a->arena, size + 1, sizeof(*list));
    struct hd_json_iter it = hd_json_iter(size > 0 ? turn->after : NULL);
    int err = list ? 0 : HD_ENOMEM;

    while (!err && hd_json_next(&it)) {
        if (is_of_human(it.val))
            list[count++] = it.val;
    }
    while (!err && count > 0 && turn->human_count < MAX_GIVEN) {
        err = choose_if_new(turn, list[--count]);
        if (err == HD_ELIMIT)
            err = 0;
    }
    return err;
}

static int take_humans(struct plain_turn *turn)
{
    int err = choose_humans(turn);

    for (size_t i = turn->human_count; !err && i-- > 0;) {
        err = write_text(hd_json_get(turn->humans[i], HD_S("content")), &turn->text);
        if (!err)
            err = take_human(turn, turn->humans[i]);
        if (err == HD_ELIMIT)
            err = 0;
    }
    return err;
}

/* ---- reading the turn ---------------------------------------------------- */

static int index_ids(struct hd_map *map, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(list) ? list : NULL);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        if (plain_id(it.val).len > 0)
            err = hd_map_put(map, plain_id(it.val), it.val);
    }
    return err;
}

static int read_turn(struct plain_turn *turn)
{
    struct hd_room_answering *a = turn->a;
    const struct hd_room_said_place place = hd_room_answer_place(a);
    int err = hd_json_parse(&turn->kwargs, a->commit->run->kwargs, a->fault);

    turn->input =
        hd_json_get(hd_json_get(hd_json_root(&turn->kwargs), HD_S("input")), HD_S("messages"));
    if (!err && hd_app_graph(a->app, place.graph_id) && place.before.len > 0)
        err = hd_room_answer_messages(a->app, &place, place.before, &turn->before_json,
                                      &turn->before, a->fault);
    if (!err && hd_app_graph(a->app, place.graph_id))
        err = hd_room_answer_messages(a->app, &place, place.after, &turn->after_json, &turn->after,
                                      a->fault);
    if (!err)
        err = index_ids(&turn->known, turn->before);
    if (!err)
        err = index_ids(&turn->left, turn->after);
    return err ? err : index_ids(&turn->sent, turn->input);
}

static void init_turn(struct plain_turn *turn, struct hd_room_answering *a)
{
    *turn = (struct plain_turn){.a = a};
    hd_map_init(&turn->known, MAX_MESSAGES);
    hd_map_init(&turn->left, MAX_MESSAGES);
    hd_map_init(&turn->sent, MAX_MESSAGES);
    hd_map_init(&turn->chosen, MAX_MESSAGES);
    hd_buf_init(&turn->text, HD_ROOM_MAX_CONTENT);
    hd_buf_init(&turn->other, HD_ROOM_MAX_CONTENT);
    hd_buf_init(&turn->given_text, MAX_TEXT);
    hd_jw_init(&turn->given, &turn->given_text);
    hd_jw_array(&turn->given);
}

static void fini_turn(struct plain_turn *turn)
{
    hd_buf_fini(&turn->given_text);
    hd_buf_fini(&turn->other);
    hd_buf_fini(&turn->text);
    hd_map_fini(&turn->chosen);
    hd_map_fini(&turn->sent);
    hd_map_fini(&turn->left);
    hd_map_fini(&turn->known);
    hd_json_fini(&turn->after_json);
    hd_json_fini(&turn->before_json);
    hd_json_fini(&turn->kwargs);
}

/* ---- stale turns ---------------------------------------------------------- */

/* The checkpoints of the line, from the one at which the run began back to the first. */
struct line_path {
    struct hd_map parents; /* ids to the ids of their parents */
    struct hd_map path;
    struct hd_arena *arena;
};

static int note_parent(struct line_path *path, const struct heddle_tuple *tuple)
{
    struct hd_slice *parent = hd_arena_calloc(path->arena, 1, sizeof(*parent));
    int err =
        parent ? hd_arena_copy(path->arena, hd_from_public(tuple->parent), parent) : HD_ENOMEM;

    return err ? err : hd_map_put(&path->parents, hd_from_public(tuple->id), parent);
}

static int read_parents(const struct hd_room_answering *a, struct line_path *path)
{
    const struct heddle_bytes thread = hd_to_public(a->room.thread_id);
    const struct heddle_bytes ns = hd_to_public(a->run.ns);
    const struct heddle_query query = {.principal = hd_to_public(a->room.principal),
                                       .thread = &thread,
                                       .ns = &ns,
                                       .limit = -1,
                                       .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int err = heddle_list_open(a->app->store, &query, &list, a->fault);

    if (err)
        return err;
    while (!err) {
        err = heddle_list_next(list, &tuple, a->fault);
        if (!err)
            err = note_parent(path, tuple);
    }
    heddle_list_close(list);
    if (err != HD_ENOTFOUND)
        return err;
    *a->fault = (struct heddle_error){0};
    return 0;
}

/* Ends also in a damaged tree: no checkpoint is visited twice. */
static int follow_path(const struct hd_room_answering *a, struct line_path *path)
{
    struct hd_slice id = a->run.head_before;
    int err = 0;

    while (!err && id.len > 0 && !hd_map_get(&path->path, id)) {
        struct hd_slice *parent = hd_map_get(&path->parents, id);

        err = hd_map_put(&path->path, id, path);
        id = parent ? *parent : hd_slice(NULL, 0);
    }
    return err;
}

static int mark_stale(struct plain_turn *turn, struct hd_slice id, struct hd_slice replaced_by)
{
    struct hd_room_answering *a = turn->a;
    struct hd_room_message_rec message;
    int err = hd_room_message_read(a->app->store, a->room.principal, a->room.thread_id, id,
                                   a->arena, &message, a->fault);

    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (message.state == HD_ROOM_STALE || message.state == HD_ROOM_DELETED)
        return 0;
    message.state = HD_ROOM_STALE;
    message.replaced_by = replaced_by;
    return hd_room_answer_change(a, &message, NULL);
}

/* The messages of a plain turn go with it, unless the line still has them. */
static int mark_given_stale(struct plain_turn *turn, const struct hd_room_run_rec *run)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = run->given.len > 0 ? hd_json_parse(&json, run->given, turn->a->fault) : 0;

    it = hd_json_iter(hd_json_is_array(hd_json_root(&json)) ? hd_json_root(&json) : NULL);
    while (!err && run->trigger.len == 0 && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);
        struct hd_slice id = {NULL, 0};

        if (hd_json_is_array(it.val) && hd_json_next(&pair))
            err = hd_arena_copy(turn->a->arena, hd_json_string(pair.val), &id);
        if (!err && id.len > 0 && !hd_map_get(&turn->left, id))
            err = mark_stale(turn, id, turn->last);
    }
    hd_json_fini(&json);
    return err;
}

/* The turns whose ends are not on the path of this run. */
static int mark_turns(struct plain_turn *turn, struct line_path *path)
{
    struct hd_room_answering *a = turn->a;
    struct hd_room_run_rec *runs;
    size_t count, marked = 0;
    int err = hd_room_runs_read(a->app->store, a->room.principal, a->room.thread_id,
                                hd_slice(NULL, 0), a->arena, &runs, &count, a->fault);

    for (size_t i = 0; !err && i < count && marked < MAX_STALE; i++) {
        const struct hd_room_run_rec *run = &runs[i];

        if (!hd_slice_eq(run->ns, a->run.ns) || run->head_after.len == 0 || run->cascade.len > 0 ||
            hd_map_get(&path->path, run->head_after))
            continue;
        if (a->replaces.len == 0)
            a->replaces = run->answer;
        err = mark_stale(turn, run->answer, a->run.answer);
        if (!err)
            err = mark_given_stale(turn, run);
        marked++;
    }
    return err;
}

/* Whether the run began where the last one on its line had ended, or on a new line. */
static int began_at_head(const struct hd_room_answering *a, bool *out)
{
    const struct hd_line_rec *line;
    struct hd_lines lines;
    int err = hd_lines_read(a->app->store, a->thread, a->arena, &lines, a->fault);

    line = err ? NULL : hd_lines_find(&lines, a->run.ns);
    *out = !line || hd_slice_eq(line->checkpoint_id, a->run.head_before);
    return err;
}

static int mark_later_turns(struct plain_turn *turn)
{
    struct hd_room_answering *a = turn->a;
    struct line_path path = {.arena = a->arena};
    bool is_at_head;
    int err = began_at_head(a, &is_at_head);

    if (err || is_at_head)
        return err;
    hd_map_init(&path.parents, MAX_MESSAGES);
    hd_map_init(&path.path, MAX_MESSAGES);
    err = read_parents(a, &path);
    if (!err)
        err = follow_path(a, &path);
    if (!err)
        err = mark_turns(turn, &path);
    hd_map_fini(&path.path);
    hd_map_fini(&path.parents);
    return err;
}

/* ---- the record of the run ------------------------------------------------ */

static int make_run(struct hd_room_answering *a)
{
    const struct hd_run_rec *run = a->commit->run;
    char answer[HD_UUID_SIZE];

    hd_uuid_v7(answer);
    a->run.principal = a->room.principal;
    a->run.thread_id = a->room.thread_id;
    a->run.created_at = run->created_at;
    a->run.assistant_id = run->assistant_id;
    a->run.graph_id = a->commit->graph_id;
    a->run.runtime = hd_room_run_runtime(a->app, a->run.graph_id);
    return hd_arena_copy(a->arena, hd_slice_cstr(answer), &a->run.answer);
}

/* The line has the turn already, so nothing of it is given again, if nothing else was missed. */
static int move_mark(struct hd_room_answering *a, int64_t seq)
{
    struct hd_room_mark mark;
    int err = hd_room_mark_get(&a->room, a->run.ns, &mark, a->fault);

    if (err || mark.seq != seq)
        return err;
    mark.seq = a->room.last_seq + 1; /* the answer follows */
    return hd_room_mark_set(&a->room, a->run.ns, mark, a->arena);
}

static int add_turn(struct plain_turn *turn)
{
    struct hd_room_answering *a = turn->a;
    int64_t seq = a->room.last_seq;
    int err = make_run(a);

    if (!err)
        err = read_turn(turn);
    if (hd_room_answer_is_lasting(err)) { /* the answer has the reason */
        *a->fault = (struct heddle_error){0};
        err = 0;
    }
    if (!err)
        err = take_humans(turn);
    a->reply_to = turn->last;
    if (!err)
        err = mark_later_turns(turn);
    if (!err)
        err = move_mark(a, seq);
    hd_jw_array_end(&turn->given);
    if (!err)
        err = hd_jw_finish(&turn->given);
    return err ? err : hd_arena_copy(a->arena, hd_buf_slice(&turn->given_text), &a->run.given);
}

int hd_room_plain_add(struct hd_room_answering *a)
{
    struct plain_turn turn;
    int err;

    init_turn(&turn, a);
    err = add_turn(&turn);
    fini_turn(&turn);
    return err;
}
