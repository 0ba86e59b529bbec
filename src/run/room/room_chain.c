#include "run/room/room_chain.h"

#include <heddle.h>

#include "base/buf.h"
#include "base/json.h"
#include "records/principals.h"
#include "room/room_ask.h"
#include "room/room_input.h"
#include "run/room/room_answer_internal.h"

#define MAX_TEXT ((size_t)1 << 16) /* bytes of the mentions of a message */

/* ---- what a message's runs inherit ------------------------------------ */

static int read_asker_subject(struct hd_app *app, struct hd_slice principal, struct hd_arena *arena,
                              struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_principal_rec rec;
    int err;

    *out = hd_slice(NULL, 0);
    if (principal.len == 0)
        return 0;
    err = hd_principal_read(app->store, principal, arena, &rec, fault);
    if (!err)
        *out = rec.subject;
    return err;
}

int hd_room_chain_of(struct hd_app *app, const struct hd_room_message_rec *message,
                     struct hd_arena *arena, struct hd_room_chain *out, struct heddle_error *fault)
{
    struct hd_room_run_rec room_run;
    struct hd_run_rec run;
    int err;

    *out = (struct hd_room_chain){.asker = message->sender};
    if (message->kind != HD_ROOM_AGENT) {
        if (message->sender.len > 0)
            out->subject = message->sender_id;
        return 0;
    }
    err = hd_room_run_read(app->store, message->principal, message->thread_id, message->run_id,
                           arena, &room_run, fault);
    if (!err)
        err = hd_run_read(app->store, message->principal, message->thread_id, message->run_id,
                          arena, &run, fault);
    if (err)
        return err;
    out->asker = run.actor;
    out->id = room_run.chain.len > 0 ? room_run.chain : room_run.trigger;
    out->depth = room_run.depth + 1;
    return read_asker_subject(app, run.actor, arena, &out->subject, fault);
}

/* ---- the chain so far ------------------------------------------------- */

/* The agents that run in the chain, or wait to; with room for those that an answer adds. */
struct chain_members {
    struct hd_slice *agents;
    size_t count;
};

static struct hd_slice chain_id(const struct hd_room_answering *a)
{
    return a->run.chain.len > 0 ? a->run.chain : a->run.trigger;
}

static bool is_in_chain(const struct hd_room_answering *a, const struct hd_room_run_rec *run)
{
    return hd_slice_eq(run->trigger, chain_id(a)) || hd_slice_eq(run->chain, chain_id(a));
}

/* Whether the message is the first of the chain, or an answer in it. */
static bool is_chain_message(const struct hd_room_answering *a, const struct hd_room_run_rec *runs,
                             size_t count, struct hd_slice message_id)
{
    bool is_so = hd_slice_eq(message_id, chain_id(a));

    for (size_t i = 0; i < count && !is_so; i++)
        is_so = is_in_chain(a, &runs[i]) && hd_slice_eq(runs[i].answer, message_id);
    return is_so;
}

static int read_chain(struct hd_room_answering *a, struct chain_members *out)
{
    struct hd_room_run_rec *runs = NULL;
    struct hd_room_wait *waits = NULL;
    size_t count = 0, wait_count = 0;
    int err = hd_room_runs_read(a->app->store, a->room.principal, a->room.thread_id,
                                hd_slice(NULL, 0), a->arena, &runs, &count, a->fault);

    if (!err)
        err = hd_room_waits_read(&a->room, a->arena, &waits, &wait_count, a->fault);
    if (err)
        return err;
    out->agents =
        hd_arena_calloc(a->arena, count + wait_count + HD_ROOM_MAX_ASKED, sizeof(*out->agents));
    if (!out->agents)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (is_in_chain(a, &runs[i]) && runs[i].cascade.len == 0)
            out->agents[out->count++] = runs[i].assistant_id;
    }
    for (size_t i = 0; i < wait_count; i++) {
        if (is_chain_message(a, runs, count, waits[i].message_id))
            out->agents[out->count++] = waits[i].assistant_id;
    }
    return 0;
}

static bool has_agent(const struct chain_members *chain, struct hd_slice assistant_id)
{
    for (size_t i = 0; i < chain->count; i++) {
        if (hd_slice_eq(chain->agents[i], assistant_id))
            return true;
    }
    return false;
}

/* ---- the agents of an answer ------------------------------------------ */

static struct hd_ask_member member_of_agent(const struct hd_room_agent *agent)
{
    return (struct hd_ask_member){.kind = HD_ROOM_AGENT,
                                  .rank = HD_ASK_ROOM,
                                  .key = agent->assistant_id,
                                  .id = agent->assistant_id,
                                  .name = agent->name,
                                  .actor = agent->actor};
}

/* The other agents of the room. */
static int list_others(struct hd_room_answering *a, struct hd_ask_member **out, size_t *count)
{
    struct hd_room_agent *agents;
    size_t agent_count;
    int err = hd_room_agents_read(&a->room, a->arena, &agents, &agent_count, a->fault);

    *count = 0;
    *out = err ? NULL : hd_arena_calloc(a->arena, agent_count + 1, sizeof(**out));
    if (!err && !*out)
        err = HD_ENOMEM;
    for (size_t i = 0; !err && i < agent_count; i++) {
        if (!hd_slice_eq(agents[i].assistant_id, a->run.assistant_id))
            (*out)[(*count)++] = member_of_agent(&agents[i]);
    }
    return err;
}

/* An answer with too many or ambiguous mentions has none. */
static int find_asked(struct hd_room_answering *a, struct hd_slice content,
                      struct hd_ask_member **members, struct hd_ask_answer *out)
{
    struct hd_ask_question question = {.has_list = false};
    struct hd_slice *texts;
    int err = list_others(a, members, &question.member_count);

    if (!err)
        err = hd_room_content_texts(content, a->arena, &texts, &question.text_count);
    if (err)
        return err;
    question.members = *members;
    question.texts = texts;
    err = hd_room_ask(&question, a->arena, out, a->fault);
    if (err != HD_EINVAL)
        return err;
    *a->fault = (struct heddle_error){0};
    *out = (struct hd_ask_answer){.asked_count = 0};
    return 0;
}

static int write_mentions(struct hd_room_answering *a, const struct hd_ask_member *members,
                          const struct hd_ask_answer *asked, struct hd_slice *out)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_TEXT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; i < asked->asked_count; i++) {
        const struct hd_ask_member *member = &members[asked->asked[i]];

        hd_jw_object(&jw);
        hd_jw_put_string(&jw, "type", HD_S("agent"));
        hd_jw_put_string(&jw, "id", member->id);
        hd_jw_put_string(&jw, "name", member->name);
        hd_jw_object_end(&jw);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, a->arena, out);
}

/* A room with too many waits makes no more: HD_ELIMIT ends the chain. */
static int add_waits(struct hd_room_answering *a, const struct hd_room_message_rec *message,
                     const struct hd_ask_member *members, const struct hd_ask_answer *asked)
{
    struct chain_members chain = {.count = 0};
    int err = read_chain(a, &chain);

    for (size_t i = 0; !err && i < asked->asked_count; i++) {
        const struct hd_room_wait wait = {message->id, members[asked->asked[i]].key};

        if (has_agent(&chain, wait.assistant_id) || (int64_t)chain.count >= a->room.ask_runs)
            continue;
        err = hd_room_wait_add(&a->room, &wait, a->arena);
        chain.agents[chain.count++] = wait.assistant_id;
    }
    return err == HD_ELIMIT ? 0 : err;
}

int hd_room_chain_ask(struct hd_room_answering *a, struct hd_room_message_rec *message,
                      struct hd_slice content)
{
    struct hd_ask_member *members = NULL;
    struct hd_ask_answer asked;
    int err;

    if (a->run.depth >= a->room.ask_depth || a->run.trigger.len == 0 || content.len == 0 ||
        message->state != HD_ROOM_OK)
        return 0;
    err = find_asked(a, content, &members, &asked);
    if (err || asked.asked_count == 0)
        return err;
    err = write_mentions(a, members, &asked, &message->mentions);
    return err ? err : add_waits(a, message, members, &asked);
}
