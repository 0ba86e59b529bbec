#include "run/room/room_request.h"

#include <stdlib.h>

#include "base/uuid.h"
#include "base/vec.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "records/participants.h"
#include "records/stream_modes.h"
#include "records/thread_heads.h"
#include "run/assistant_lookup.h"

#define MAX_REQUEST ((size_t)256 << 20)
#define MAX_VALUES ((size_t)256 << 20)
#define MAX_SCANNED 2000 /* messages of one read */
#define MAX_HELD ((size_t)1000000)

struct request_making {
    const struct hd_room_request_options *options;
    struct heddle_error *fault;
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_slice lender; /* that still takes part; or empty */
    struct hd_room_run *run;
    struct hd_room_mark mark;
    HD_VEC(struct hd_room_message_rec) messages; /* that the line may need; by seq in the end */
    size_t scanned;
    bool has_changed; /* some of them lie before the mark, or are the agent's own */
    struct hd_slice *held;
    size_t held_count;
    struct hd_room_input input;
};

static struct heddle *store_of_room(const struct request_making *m)
{
    return m->options->app->store;
}

/* ---- the agent -------------------------------------------------------- */

static bool names_messages(const struct hd_graph *graph, size_t channel)
{
    return hd_slice_eq(graph->channels[channel].name, HD_S("messages"));
}

/* True also for a graph of a worker whose structure is not known. */
static bool takes_messages(const struct hd_app_graph *found)
{
    const struct hd_app_form *form = hd_app_form(found);
    const struct hd_graph *graph = hd_app_shape(found);
    bool takes = graph->is_open || (form && !form->has_structure);

    for (size_t i = 0; !takes && graph->input && i < graph->input_count; i++)
        takes = names_messages(graph, graph->input[i]);
    for (size_t i = 0; !takes && !graph->input && i < graph->state_count; i++)
        takes = names_messages(graph, i);
    return takes;
}

/* A person who has left the room lends nothing. */
static int find_lender(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    bool takes_part = false;
    int err = 0;

    if (o->lender.len > 0)
        err = hd_participants_include(store_of_room(m), o->thread->principal, o->thread->id,
                                      o->lender, HD_ROLE_VIEWER, &takes_part, m->fault);
    if (takes_part)
        m->lender = o->lender;
    return err;
}

static int find_agent_graph(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    int err = find_lender(m);

    if (!err)
        err = hd_assistant_lookup(o->app, m->lender.len > 0 ? m->lender : o->actor, o->assistant_id,
                                  o->arena, &m->assistant, m->fault);
    if (err)
        return err;
    m->graph = hd_app_graph(o->app, m->assistant.graph_id);
    if (!m->graph || !takes_messages(m->graph))
        return hd_error_set(m->fault, HD_EINVAL, "\"%.*s\" cannot be asked: %s",
                            (int)(m->assistant.name.len < 60 ? m->assistant.name.len : 60),
                            m->assistant.name.ptr,
                            m->graph ? "its input has no messages" : "its graph is not there");
    m->run->ns = o->ns;
    return o->ns.len > 0 ? 0 : hd_admit_assistant_ns(o->arena, m->assistant.id, &m->run->ns);
}

/* ---- messages that the line may need ---------------------------------- */

/* The line has it without being given it: the agent's own, or of a plain run on this line. */
static bool is_own_message(const struct request_making *m,
                           const struct hd_room_message_rec *message)
{
    return (message->kind == HD_ROOM_AGENT && hd_slice_eq(message->sender, m->assistant.id)) ||
           (message->ns.len > 0 && hd_slice_eq(message->ns, m->run->ns));
}

static int keep_message(struct request_making *m, const struct hd_room_message_rec *message)
{
    struct hd_room_message_rec copy;
    int err = hd_room_message_copy(m->options->arena, message, &copy);

    return err ? err : hd_vec_push(&m->messages, copy);
}

/* Behind the mark, newest first: as many as the context may have. */
static int on_new_message(void *arg, const struct hd_room_message_rec *message)
{
    struct request_making *m = arg;
    bool is_given = message->state == HD_ROOM_OK || message->state == HD_ROOM_STOPPED;
    int err = 0;

    if (m->scanned++ == MAX_SCANNED)
        return 1;
    if (is_given && message->replaced_by.len == 0 && !is_own_message(m, message))
        err = keep_message(m, message);
    if (err)
        return err;
    return (int64_t)m->messages.count >= m->options->room->context_messages;
}

/* Before the mark; and the line's own ones, wherever they are. */
static int on_changed_message(void *arg, const struct hd_room_message_rec *message)
{
    struct request_making *m = arg;

    if (m->scanned++ == MAX_SCANNED)
        return 1;
    if (message->seq > m->mark.seq && !is_own_message(m, message))
        return 0;
    m->has_changed = true;
    return keep_message(m, message);
}

static int order_messages(const void *a, const void *b)
{
    const struct hd_room_message_rec *left = a, *right = b;

    return left->seq < right->seq ? -1 : left->seq > right->seq;
}

static int scan_messages(struct request_making *m, const struct hd_room_message_query *query,
                         hd_room_message_fn fn)
{
    const struct hd_thread_rec *thread = m->options->thread;

    m->scanned = 0;
    return hd_room_messages_scan(store_of_room(m), thread->principal, thread->id, query, fn, m,
                                 m->fault);
}

static int find_messages(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    const struct hd_room_message_query behind = {.after = m->mark.seq,
                                                 .before = o->trigger.message->seq,
                                                 .is_newest_first = true,
                                                 .state = -1,
                                                 .changed_after = -1};
    const struct hd_room_message_query changed = {
        .before = o->trigger.message->seq, .state = -1, .changed_after = m->mark.changes};
    int err = 0;

    if (o->room->context_messages > 0)
        err = scan_messages(m, &behind, on_new_message);
    if (!err)
        err = scan_messages(m, &changed, on_changed_message);
    if (!err && m->messages.count > 0)
        qsort(m->messages.items, m->messages.count, sizeof(*m->messages.items), order_messages);
    return err;
}

/* ---- what the line has ------------------------------------------------ */

static int list_held(struct request_making *m, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_arena *arena = m->options->arena;
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) > MAX_HELD)
        return 0;
    m->held = hd_arena_calloc(arena, hd_json_size(list) + 1, sizeof(*m->held));
    if (!m->held)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it))
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(it.val, HD_S("id"))),
                            &m->held[m->held_count++]);
    return err;
}

static int read_held(struct request_making *m, struct hd_slice checkpoint_id)
{
    const struct hd_address at = {.store = store_of_room(m),
                                  .graph = hd_app_shape(m->graph),
                                  .principal = m->options->thread->principal,
                                  .thread = m->options->thread->id,
                                  .root = m->run->ns,
                                  .checkpoint_id = checkpoint_id,
                                  .only = HD_S("messages")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_json json = {NULL};
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, MAX_VALUES);
    err = hd_state_values(&at, &buf, &failure);
    if (err)
        hd_error_set(m->fault, err, "%s", failure.text ? failure.text : hd_error_text(err));
    hd_failure_fini(&failure);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&buf), m->fault);
    if (!err)
        err = list_held(m, hd_json_get(hd_json_root(&json), HD_S("messages")));
    hd_json_fini(&json);
    hd_buf_fini(&buf);
    return err;
}

/* At the head of the line; of a repeated run: where it starts. */
static int find_held(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    struct hd_slice head = o->fork;
    int err = 0;

    if (o->is_repeated)
        return o->fork.len > 0 ? read_held(m, head) : 0;
    if (!m->has_changed)
        return 0;
    err = hd_thread_heads_get(store_of_room(m), o->thread, m->run->ns, o->arena, &head, m->fault);
    return err ? err : read_held(m, head);
}

/* ---- the input -------------------------------------------------------- */

static int make_input(struct request_making *m, const struct hd_room_item *items, size_t count)
{
    const struct hd_room_request_options *o = m->options;
    struct hd_room_rec unlimited = *o->room;
    struct hd_room_input_question question = {
        .room = o->room,
        .agent = m->assistant.id,
        .mark = m->mark,
        .items = items,
        .count = count,
        .trigger = o->trigger,
        .names_trigger = o->is_shared || o->trigger.message->kind == HD_ROOM_AGENT,
        .held = m->held,
        .held_count = m->held_count};

    if (o->is_repeated) {
        unlimited.context_messages = unlimited.context_bytes = INT64_MAX;
        question.room = &unlimited;
    }
    return hd_room_input_make(&question, o->arena, &m->input, m->fault);
}

static int join_contents(struct request_making *m, struct hd_room_item **out)
{
    size_t count = m->messages.count;
    struct hd_arena *arena = m->options->arena;
    struct hd_room_content_rec *contents = hd_arena_calloc(arena, count + 1, sizeof(*contents));
    int err = HD_ENOMEM;

    *out = hd_arena_calloc(arena, count + 1, sizeof(**out));
    if (contents && *out)
        err = count > 0 ? hd_room_contents_read(store_of_room(m), m->messages.items, count, arena,
                                                contents, m->fault)
                        : 0;
    for (size_t i = 0; !err && i < count; i++)
        (*out)[i] = (struct hd_room_item){&m->messages.items[i], &contents[i]};
    return err;
}

static int read_input(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    struct hd_room_item *items = NULL;
    int err = hd_room_mark_get(o->room, m->run->ns, &m->mark, m->fault);

    if (!err)
        err = find_messages(m);
    if (!err)
        err = join_contents(m, &items);
    if (!err)
        err = find_held(m);
    if (!err)
        err = make_input(m, items, m->messages.count);
    if (!err && o->trigger.message->seq > m->mark.seq)
        m->mark.seq = o->trigger.message->seq;
    m->mark.changes = o->room->changes;
    return err ? err : hd_room_mark_set(o->room, m->run->ns, m->mark, o->arena);
}

static int repeat_input(struct request_making *m)
{
    int err = find_held(m);

    return err ? err : make_input(m, m->options->items, m->options->count);
}

/* An answer to a question reaches the agent as a value, not as a message. */
static int answer_input(struct request_making *m)
{
    return make_input(m, NULL, 0);
}

/* ---- the request ------------------------------------------------------ */

static void put_room_modes(struct hd_jw *jw, uint32_t modes)
{
    const char *name;
    uint32_t mode;

    hd_jw_put_array(jw, "stream_mode");
    for (size_t i = 0; (name = hd_mode_at(i, &mode)); i++) {
        if (modes & mode)
            hd_jw_string(jw, hd_slice_cstr(name));
    }
    hd_jw_array_end(jw);
}

static void put_line(struct hd_jw *jw, struct hd_slice ns)
{
    hd_jw_put_object(jw, "config");
    hd_jw_put_object(jw, "configurable");
    hd_jw_put_string(jw, "checkpoint_ns", ns);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static int write_request(const struct request_making *m, struct hd_buf *out)
{
    const struct hd_room_request_options *o = m->options;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "assistant_id", m->assistant.id);
    if (o->resume.len > 0) {
        hd_jw_put_object(&jw, "command");
        hd_jw_put_raw(&jw, "resume", o->resume);
    } else {
        hd_jw_put_object(&jw, "input");
        hd_jw_put_raw(&jw, "messages", m->input.messages);
    }
    hd_jw_object_end(&jw);
    if (o->is_repeated && o->fork.len > 0)
        hd_jw_put_string(&jw, "checkpoint_id", o->fork);
    if (o->ns.len > 0)
        put_line(&jw, o->ns);
    put_room_modes(&jw, o->modes ? o->modes : HD_MODE_TUPLES | HD_MODE_UPDATES);
    hd_jw_put_string(&jw, "on_disconnect", HD_S("continue"));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int make_request(struct request_making *m)
{
    struct hd_room_run *run = m->run;
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, MAX_REQUEST);
    err = write_request(m, &buf);
    if (!err)
        err = hd_json_parse(&run->body, hd_buf_slice(&buf), m->fault);
    hd_buf_fini(&buf);
    if (!err)
        err = hd_run_request_read(&run->request, hd_json_root(&run->body), m->fault);
    if (err)
        hd_json_fini(&run->body);
    return err;
}

static void fill_room_run(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    struct hd_room_run *run = m->run;

    run->admission.request = &run->request;
    run->admission.lender = m->lender;
    run->admission.is_config_private = o->is_shared;
    run->admission.hides_headers = true;
    run->rec =
        (struct hd_room_run_rec){.principal = o->thread->principal,
                                 .thread_id = o->thread->id,
                                 .trigger = o->trigger.message->id,
                                 .assistant_id = m->assistant.id,
                                 .graph_id = m->assistant.graph_id,
                                 .runtime = hd_room_run_runtime(o->app, m->assistant.graph_id),
                                 .ns = run->ns,
                                 .given = m->input.given,
                                 .is_answer = o->resume.len > 0};
}

static int make_parts(struct request_making *m)
{
    const struct hd_room_request_options *o = m->options;
    int err = find_agent_graph(m);

    if (!err && o->resume.len > 0)
        err = answer_input(m);
    else if (!err)
        err = o->is_repeated ? repeat_input(m) : read_input(m);
    if (!err)
        err = make_request(m);
    if (!err)
        fill_room_run(m);
    return err;
}

int hd_room_request_make(const struct hd_room_request_options *options, struct hd_room_run **out,
                         struct heddle_error *fault)
{
    struct request_making m = {.options = options, .fault = fault};
    int err = HD_ENOMEM;

    m.run = hd_arena_calloc(options->arena, 1, sizeof(*m.run));
    if (m.run)
        err = make_parts(&m);
    hd_vec_fini(&m.messages);
    if (!err)
        *out = m.run;
    return err;
}

void hd_room_request_fini(struct hd_room_run *run)
{
    if (run)
        hd_json_fini(&run->body);
}

/* ---- the rows --------------------------------------------------------- */

int hd_room_request_put(struct hd_batch_builder *batch, struct hd_room_run *run,
                        struct hd_arena *arena)
{
    struct hd_room_run_rec *rec = &run->rec;
    char *answer = hd_arena_alloc(arena, HD_UUID_SIZE);
    struct hd_room_id_rec id = {.principal = rec->principal, .thread_id = rec->thread_id};
    int err;

    if (!answer)
        return HD_ENOMEM;
    hd_uuid_v4(answer);
    rec->run_id = run->admission.run.run_id;
    rec->created_at = run->admission.run.updated_at;
    rec->answer = id.message_id = hd_slice(answer, HD_UUID_LEN);
    err = hd_room_id_add(batch, &id);
    return err ? err : hd_room_run_put(batch, rec);
}
