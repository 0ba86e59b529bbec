#include "run/room/room_post.h"

#include "auth/digest.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "events/event_batch.h"
#include "records/participants.h"
#include "records/stream_modes.h"
#include "room/room_ask.h"
#include "room/room_details.h"
#include "run/room/room_members.h"

#define MAX_REQUEST (2 * HD_ROOM_MAX_CONTENT)
#define MAX_EVENT ((size_t)64 << 20)

/* The request, and what an attempt makes of it. */
struct posting {
    struct hd_room_post *post;
    struct hd_admission_group group;
    char hash[HD_SHA256_HEX_LEN + 1];
    struct hd_slice id;
    struct hd_room_rec room;
    bool is_shared;
    struct hd_room_message_rec replied; /* zeroed: it replies to none */
    struct hd_room_cascade_reply reply; /* to the question of a cascade */
    bool is_answer;                     /* to the question that `replied` is */
    struct hd_slice resume;             /* JSON: the value of the answer */
    struct hd_room_members members;
    struct hd_ask_answer ask;
    struct hd_room_run *runs[HD_ROOM_MAX_ASKED];
    struct hd_admission *admissions[HD_ROOM_MAX_ASKED];
    size_t count;
};

static struct heddle *store_of_post(const struct posting *p)
{
    return p->post->app->store;
}

/* HD_EINVAL of a check becomes a refusal of the request. */
static int refuse_invalid(struct posting *p, int err, struct heddle_error *fault)
{
    struct heddle_error cause = fault ? *fault : (struct heddle_error){0};

    return err == HD_EINVAL ? hd_admit_refuse(&p->group, fault, 422, "%s", cause.text) : err;
}

/* ---- an earlier request ----------------------------------------------- */

static int hash_request(struct posting *p)
{
    const struct hd_room_post *post = p->post;
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    hd_buf_init(&buf, MAX_REQUEST);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    hd_jw_string(&jw, post->sender.key);
    hd_jw_string(&jw, post->reply_to);
    hd_jw_bool(&jw, post->has_mentions);
    for (size_t i = 0; i < post->mention_count; i++)
        hd_jw_string(&jw, post->mentions[i]);
    hd_jw_raw(&jw, post->content);
    hd_jw_raw_or(&jw, post->metadata, "null");
    hd_jw_array_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_sha256_hex(hd_buf_slice(&buf), p->hash);
    hd_buf_fini(&buf);
    return err;
}

/* The message as it is now. */
static int read_earlier(struct posting *p, struct heddle_error *fault)
{
    struct hd_room_post *post = p->post;
    struct hd_room_details details;
    int err = hd_room_message_read(store_of_post(p), post->principal, post->thread_id, p->id,
                                   post->arena, &post->message, fault);

    if (!err)
        err =
            hd_room_details_read(store_of_post(p), &post->message, 1, post->arena, &details, fault);
    if (err)
        return err;
    post->body = details.content;
    post->views = details.runs;
    post->view_count = details.run_count;
    post->is_repeated = true;
    return HD_EEXISTS;
}

/* HD_EEXISTS: an earlier request has posted the message. */
static int find_earlier(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    struct hd_room_id_rec found;
    int err;

    if (post->id.len == 0)
        return 0;
    err = hd_room_id_read(store_of_post(p), post->principal, post->thread_id, p->id, post->arena,
                          &found, fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    if (found.seq == 0 || !hd_slice_eq(found.hash, hd_slice_cstr(p->hash)))
        return hd_admit_refuse(&p->group, fault, 409,
                               "id: another message of the room has this id");
    return read_earlier(p, fault);
}

/* ---- the message that it replies to ----------------------------------- */

/* The asker, the owner, or every editor if the room allows it. */
static int check_answerer(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    struct hd_run_rec run;
    int err;

    if (post->role >= HD_ROLE_OWNER || p->room.answers == HD_ROOM_ANSWERS_EDITORS)
        return 0;
    err = hd_run_read(store_of_post(p), post->principal, post->thread_id, p->replied.run_id,
                      post->arena, &run, fault);
    if (!err && hd_slice_eq(run.actor, post->sender.key))
        return 0;
    return err && err != HD_ENOTFOUND
               ? err
               : hd_admit_refuse(&p->group, fault, 403,
                                 "reply_to: only the asker and the owner may answer this question");
}

static int find_replied(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    int err;

    p->replied = (struct hd_room_message_rec){.seq = 0};
    p->is_answer = false;
    p->reply = (struct hd_room_cascade_reply){.is_needed = false};
    p->post->cascade_id = hd_slice(NULL, 0);
    if (post->reply_to.len == 0)
        return 0;
    err = hd_room_message_read(store_of_post(p), post->principal, post->thread_id, post->reply_to,
                               post->arena, &p->replied, fault);
    if (err == HD_ENOTFOUND)
        return hd_admit_refuse(&p->group, fault, 422, "reply_to: the room has no such message");
    p->is_answer = p->replied.kind == HD_ROOM_AGENT && p->replied.state == HD_ROOM_PENDING && !err;
    if (p->is_answer)
        err = check_answerer(p, fault);
    if (p->is_answer && !err)
        err = hd_room_cascade_reply_find(post->app, &p->replied, post->arena, &p->reply, fault);
    return err;
}

/* ---- the value of an answer ------------------------------------------- */

static int join_texts(const struct posting *p, struct hd_buf *out, struct heddle_error *fault)
{
    struct hd_slice *texts;
    size_t count;
    int err = hd_room_content_texts(p->post->content, p->post->arena, &texts, &count);

    (void)fault;
    for (size_t i = 0; !err && i < count; i++) {
        err = i > 0 ? hd_buf_append_byte(out, '\n') : 0;
        if (!err)
            err = hd_buf_append_slice(out, texts[i]);
    }
    return err;
}

/*
 * metadata.resume, for replies that are no text; else the text. Of a resume with a member for the
 * interrupt `id`, that member: a reply may answer each interrupt of a question differently.
 */
static int write_value(const struct posting *p, struct hd_jw *jw, struct hd_slice id,
                       struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    struct hd_buf text;
    hd_json_val given = NULL, own = NULL;
    int err = 0;

    hd_buf_init(&text, HD_ROOM_MAX_CONTENT);
    if (p->post->metadata.len > 0)
        err = hd_json_parse(&json, p->post->metadata, fault);
    if (!err)
        given = hd_json_get(hd_json_root(&json), HD_S("resume"));
    if (given && id.len > 0)
        own = hd_json_get(given, id);
    if (!err && !given)
        err = join_texts(p, &text, fault);
    if (!err && given)
        hd_jw_val(jw, own ? own : given);
    else if (!err)
        hd_jw_string(jw, hd_buf_slice(&text));
    hd_buf_fini(&text);
    hd_json_fini(&json);
    return err;
}

static int write_answers(const struct posting *p, struct hd_jw *jw, hd_json_val list, size_t *count,
                         struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));

        if (hd_json_is_array(it.val))
            err = write_answers(p, jw, it.val, count, fault);
        if (err || id.len == 0)
            continue;
        hd_jw_key(jw, id);
        err = write_value(p, jw, id, fault);
        (*count)++;
    }
    return err;
}

/* An answer for each interrupt of the question, by its id; without ids the value alone. */
static int make_resume(struct posting *p, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    size_t count = 0;
    struct hd_buf buf;
    struct hd_jw jw;
    int err = 0;

    if (p->replied.interrupts.len > 0)
        err = hd_json_parse(&json, p->replied.interrupts, fault);
    hd_buf_init(&buf, MAX_REQUEST);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    if (!err)
        err = write_answers(p, &jw, hd_json_root(&json), &count, fault);
    hd_jw_object_end(&jw);
    if (!err && count == 0) {
        hd_buf_reset(&buf);
        hd_jw_init(&jw, &buf);
        err = write_value(p, &jw, hd_slice(NULL, 0), fault);
    }
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err)
        err = hd_arena_copy(p->post->arena, hd_buf_slice(&buf), &p->resume);
    hd_buf_fini(&buf);
    hd_json_fini(&json);
    return err;
}

/* ---- who is asked ----------------------------------------------------- */

static int find_shared(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;

    return hd_participants_share(store_of_post(p), post->principal, post->thread_id,
                                 post->sender.key, &p->is_shared, fault);
}

static bool has_at_sign(const struct hd_slice *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (texts[i].len > 0 && memchr(texts[i].ptr, '@', texts[i].len))
            return true;
    }
    return false;
}

static int ask_members(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    struct hd_room_members_query query = {.app = post->app,
                                          .arena = post->arena,
                                          .room = &p->room,
                                          .people = post->people,
                                          .people_count = post->people_count,
                                          .actor = post->sender.key};
    struct hd_ask_question question = {.has_list = post->has_mentions,
                                       .list = post->mentions,
                                       .list_count = post->mention_count,
                                       .default_agent = p->room.default_assistant_id};
    struct hd_slice *texts;
    int err = hd_room_content_texts(post->content, post->arena, &texts, &question.text_count);

    if (err)
        return err;
    question.texts = texts;
    if (p->is_answer)
        question.default_agent = hd_slice(NULL, 0);
    else if (p->replied.kind == HD_ROOM_AGENT)
        query.replied = question.replied_agent = p->replied.sender;
    query.has_mentions =
        post->has_mentions ? post->mention_count > 0 : has_at_sign(texts, question.text_count);
    err = hd_room_members_read(&query, &p->members, fault);
    question.members = p->members.list;
    question.member_count = p->members.count;
    return err ? err : hd_room_ask(&question, post->arena, &p->ask, fault);
}

/* The question's agent is asked by its answer, whether or not it is mentioned. */
static bool is_answered(const struct posting *p, const struct hd_ask_member *member)
{
    return p->is_answer && hd_slice_eq(member->key, p->replied.sender);
}

/* ---- the message ------------------------------------------------------ */

static struct hd_slice name_in_room(const struct posting *p, const struct hd_ask_member *member)
{
    for (size_t i = 0; i < p->members.agent_count && member->kind == HD_ROOM_AGENT; i++) {
        if (hd_slice_eq(p->members.agents[i].assistant_id, member->key))
            return p->members.agents[i].name;
    }
    return member->name;
}

static int write_mentions(struct posting *p)
{
    struct hd_buf buf;
    struct hd_jw jw;

    if (p->ask.mentioned_count == 0)
        return 0;
    hd_buf_init(&buf, MAX_EVENT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; i < p->ask.mentioned_count; i++) {
        const struct hd_ask_member *member = &p->members.list[p->ask.mentioned[i]];
        const struct hd_room_person shown = {
            .kind = member->kind, .id = member->id, .name = name_in_room(p, member)};

        hd_room_view_person(&jw, &shown);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, p->post->arena, &p->post->message.mentions);
}

static int make_message(struct posting *p)
{
    struct hd_room_post *post = p->post;
    int64_t now = hd_clock_now_us();

    post->message = (struct hd_room_message_rec){.principal = post->principal,
                                                 .thread_id = post->thread_id,
                                                 .seq = ++p->room.last_seq,
                                                 .id = p->id,
                                                 .state = HD_ROOM_OK,
                                                 .version = 1,
                                                 .created_at = now,
                                                 .sender = post->sender.key,
                                                 .kind = post->sender.kind,
                                                 .sender_id = post->sender.id,
                                                 .sender_name = post->sender.name,
                                                 .reply_to = post->reply_to};
    post->body = (struct hd_room_content_rec){.principal = post->principal,
                                              .thread_id = post->thread_id,
                                              .message_id = p->id,
                                              .version = 1,
                                              .created_at = now,
                                              .content = post->content,
                                              .metadata = post->metadata};
    p->room.updated_at = now;
    return write_mentions(p);
}

/* ---- its runs --------------------------------------------------------- */

static int add_room_run(struct posting *p, const struct hd_room_agent *agent,
                        const struct hd_thread_rec *thread, struct hd_slice resume,
                        struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    const struct hd_room_request_options options = {
        .app = post->app,
        .arena = post->arena,
        .thread = thread,
        .room = &p->room,
        .trigger = {&post->message, &post->body},
        .assistant_id = agent->assistant_id,
        .actor = post->sender.key,
        .lender = hd_slice_eq(agent->actor, post->sender.key) ? hd_slice(NULL, 0) : agent->actor,
        .is_shared = p->is_shared,
        .modes = post->modes,
        .ns = resume.len > 0 ? p->replied.ns : hd_slice(NULL, 0),
        .resume = resume};
    struct hd_room_run *run = NULL;
    int err = hd_room_request_make(&options, &run, fault);

    if (err == HD_ENOTFOUND)
        return hd_admit_refuse(&p->group, fault, 422,
                               "the assistant of \"%.*s\" is not there any more",
                               (int)agent->name.len, agent->name.ptr);
    if (err)
        return err;
    run->admission.is_admin = post->is_admin;
    run->admission.user = post->user;
    if (!p->is_shared)
        run->admission.headers = post->headers;
    p->runs[p->count] = run;
    p->admissions[p->count++] = &run->admission;
    return 0;
}

/* The question stays open until the run that an earlier reply resumes has ended. */
static int check_unanswered(struct posting *p, const struct hd_thread_rec *thread,
                            struct heddle_error *fault)
{
    struct hd_run_rec *active = NULL;
    size_t count = 0;
    int err = 0;

    if (thread->status == HD_THREAD_BUSY)
        err = hd_runs_active(store_of_post(p), p->post->principal, p->post->thread_id,
                             p->post->arena, &active, &count, fault);
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_slice ns;

        err = hd_run_line(&active[i], p->post->arena, &ns, fault);
        if (!err && !active[i].is_off_head && hd_slice_eq(ns, p->replied.ns))
            err = hd_admit_refuse(&p->group, fault, 409,
                                  "reply_to: the question is being answered already");
    }
    return err;
}

/* The cascade resumes its run itself. */
static int reply_to_cascade(struct posting *p, struct heddle_error *fault)
{
    int err = p->reply.is_open
                  ? make_resume(p, fault)
                  : hd_admit_refuse(&p->group, fault, 409,
                                    "reply_to: the question is being answered already");

    p->post->cascade_id = p->reply.cascade.id;
    return err;
}

static int answer_question(struct posting *p, const struct hd_thread_rec *thread,
                           struct heddle_error *fault)
{
    const struct hd_room_agent agent = {.assistant_id = p->replied.sender,
                                        .name = p->replied.sender_name};
    const struct hd_room_agent *known = &agent;
    int err = check_unanswered(p, thread, fault);

    if (!err)
        err = make_resume(p, fault);
    for (size_t i = 0; i < p->members.agent_count; i++) {
        if (hd_slice_eq(p->members.agents[i].assistant_id, agent.assistant_id))
            known = &p->members.agents[i];
    }
    if (err)
        return err;
    return add_room_run(p, known, thread, p->resume, fault);
}

/* A new input would drop the open question: the run waits. */
static int ask_or_wait(struct posting *p, const struct hd_room_agent *agent,
                       const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    const struct hd_room_wait wait = {p->id, agent->assistant_id};
    bool is_asking;
    int err = hd_room_is_asking(store_of_post(p), p->post->principal, p->post->thread_id,
                                agent->assistant_id, &is_asking, fault);

    if (err)
        return err;
    if (!is_asking)
        return add_room_run(p, agent, thread, hd_slice(NULL, 0), fault);
    err = hd_room_wait_add(&p->room, &wait, p->post->arena);
    return err == HD_ELIMIT
               ? hd_admit_refuse(&p->group, fault, 409, "too many messages wait for an answer")
               : err;
}

static int add_asked_runs(struct posting *p, const struct hd_thread_rec *thread,
                          struct heddle_error *fault)
{
    int err = 0;

    if (p->is_answer)
        err = p->reply.is_needed ? reply_to_cascade(p, fault) : answer_question(p, thread, fault);
    for (size_t i = 0; !err && i < p->ask.asked_count; i++) {
        const struct hd_ask_member *member = &p->members.list[p->ask.asked[i]];
        const struct hd_room_agent *agent = NULL;

        if (is_answered(p, member))
            continue;
        if (p->count == HD_ROOM_MAX_ASKED)
            return hd_error_set(fault, HD_EINVAL, "mentions: a message asks at most %d agents",
                                HD_ROOM_MAX_ASKED);
        err = hd_room_members_join(&p->members, p->ask.asked[i], p->post->arena, &agent, fault);
        if (!err)
            err = ask_or_wait(p, agent, thread, fault);
    }
    return err;
}

/* Agents that are mentioned have their names in the room before the message is written. */
static int join_asked(struct posting *p, struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < p->ask.asked_count; i++) {
        const struct hd_room_agent *agent;

        if (!is_answered(p, &p->members.list[p->ask.asked[i]]))
            err = hd_room_members_join(&p->members, p->ask.asked[i], p->post->arena, &agent, fault);
    }
    if (!err && p->members.has_joined)
        err = hd_room_agents_write(&p->room, p->members.agents, p->members.agent_count,
                                   p->post->arena);
    return err;
}

static void free_room_runs(struct posting *p)
{
    while (p->count > 0)
        hd_room_request_fini(p->runs[--p->count]);
}

/* ---- the group -------------------------------------------------------- */

static int read_room(struct posting *p, struct heddle_error *fault)
{
    const struct hd_room_post *post = p->post;
    int err = hd_room_read(store_of_post(p), post->principal, post->thread_id, post->arena,
                           &p->room, fault);

    if (err != HD_ENOTFOUND)
        return err;
    hd_room_init(&p->room, post->principal, post->thread_id);
    return 0;
}

static int make_post(struct posting *p, const struct hd_thread_rec *thread,
                     struct heddle_error *fault)
{
    int err = find_replied(p, fault);

    if (!err)
        err = find_shared(p, fault);
    if (!err)
        err = ask_members(p, fault);
    if (!err)
        err = join_asked(p, fault);
    if (!err)
        err = make_message(p);
    return err ? err : add_asked_runs(p, thread, fault);
}

static int prepare_post(void *ctx, struct hd_admission_group *group,
                        const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    struct posting *p = ctx;
    int err;

    free_room_runs(p);
    p->post->event_seq = thread->event_seq;
    p->post->needs_numbers = !hd_event_batch_fits(p->post->events, thread);
    if (p->post->needs_numbers)
        return HD_EBUSY;
    err = read_room(p, fault);
    if (!err)
        err = find_earlier(p, fault);
    if (!err && !group->refusal) {
        err = make_post(p, thread, fault);
        if (err == HD_EINVAL && !group->refusal)
            err = refuse_invalid(p, err, fault);
    }
    group->runs = p->admissions;
    group->count = err ? 0 : p->count;
    return err;
}

/* ---- the rows --------------------------------------------------------- */

static int put_inbox(struct hd_batch_builder *batch, const struct posting *p)
{
    const struct hd_room_post *post = p->post;
    int err = 0;

    for (size_t i = 0; !err && i < p->ask.mentioned_count; i++) {
        const struct hd_ask_member *member = &p->members.list[p->ask.mentioned[i]];
        const struct hd_mention_rec mention = {.member = member->key,
                                               .created_at = post->message.created_at,
                                               .principal = post->principal,
                                               .thread_id = post->thread_id,
                                               .message_id = p->id,
                                               .seq = post->message.seq};

        if (member->kind == HD_ROOM_PERSON && !hd_slice_eq(member->key, post->sender.key))
            err = hd_mention_add(batch, &mention);
    }
    return err;
}

static int put_message_rows(struct hd_batch_builder *batch, struct posting *p)
{
    const struct hd_room_post *post = p->post;
    const struct hd_room_id_rec id = {.principal = post->principal,
                                      .thread_id = post->thread_id,
                                      .message_id = p->id,
                                      .seq = post->message.seq,
                                      .hash = post->id.len > 0 ? hd_slice_cstr(p->hash)
                                                               : hd_slice(NULL, 0)};
    int err = hd_room_id_add(batch, &id);

    if (!err)
        err = hd_room_message_add(batch, &post->message);
    if (!err)
        err = hd_room_content_add(batch, &post->body);
    if (!err)
        err = put_inbox(batch, p);
    return err;
}

static int put_room_runs(struct hd_batch_builder *batch, struct posting *p)
{
    struct hd_room_post *post = p->post;
    int err = 0;

    post->views = hd_arena_calloc(post->arena, p->count + 1, sizeof(*post->views));
    if (!post->views)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < p->count; i++) {
        const struct hd_run_rec *run = &p->runs[i]->admission.run;

        err = hd_room_request_put(batch, p->runs[i], post->arena);
        post->views[i] =
            hd_room_view_run_of(&p->runs[i]->rec, hd_slice_cstr(hd_run_state_name(run->status)));
    }
    post->view_count = p->count;
    return err;
}

/* ---- the events ------------------------------------------------------- */

static int add_post_event(struct posting *p, struct hd_slice name, int err, struct hd_buf *data)
{
    if (!err)
        err = hd_event_batch_add(p->post->events, hd_slice(NULL, 0), HD_MODE_ROOM, name,
                                 hd_buf_slice(data));
    hd_buf_fini(data);
    return err;
}

static int add_post_events(struct posting *p)
{
    const struct hd_room_post *post = p->post;
    struct hd_buf data;
    int err;

    hd_buf_init(&data, MAX_EVENT);
    err = hd_room_view_message_event(&data, &post->message, &post->body, post->views,
                                     post->view_count);
    err = add_post_event(p, HD_S("room/message"), err, &data);
    for (size_t i = 0; !err && i < post->view_count; i++) {
        hd_buf_init(&data, MAX_EVENT);
        err = hd_room_view_run_event(&data, &post->views[i]);
        err = add_post_event(p, HD_S("room/run"), err, &data);
    }
    return err;
}

static int extend_post(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                       struct heddle_error *fault)
{
    struct posting *p = ctx;
    int err;

    (void)fault;
    thread->is_room = true;
    hd_event_batch_reset(p->post->events);
    err = put_message_rows(batch, p);
    if (!err)
        err = put_room_runs(batch, p);
    if (!err && p->reply.is_open)
        err = hd_room_cascade_reply_put(&p->reply, p->id, p->resume, &p->room, p->post->events,
                                        batch, p->post->arena);
    if (!err)
        err = hd_room_put(batch, &p->room);
    if (!err)
        err = add_post_events(p);
    return err ? err : hd_event_batch_put(p->post->events, batch, thread);
}

/* ---- posting ---------------------------------------------------------- */

static int choose_id(struct posting *p)
{
    char *id;

    p->id = p->post->id;
    if (p->id.len > 0)
        return hash_request(p);
    id = hd_arena_alloc(p->post->arena, HD_UUID_SIZE);
    if (!id)
        return HD_ENOMEM;
    hd_uuid_v4(id);
    p->id = hd_slice(id, HD_UUID_LEN);
    return 0;
}

/* The runs belong to the caller from now on, also when they were not admitted. */
static int share_post(struct posting *p, int err)
{
    struct hd_room_post *post = p->post;
    const struct hd_admission_group *group = &p->group;

    post->refusal = group->refusal;
    post->retry_s = group->retry_s;
    post->holder = group->holder;
    post->runs = p->runs;
    post->run_count = p->count;
    if (post->needs_numbers || post->is_repeated)
        return 0;
    if (!err && !post->refusal && post->holder.len == 0)
        post->event_seq = group->thread.event_seq;
    post->has_waits = p->room.waits.len > 0;
    return err;
}

int hd_room_post(struct hd_room_post *post, struct heddle_error *fault)
{
    struct posting *p = hd_arena_calloc(post->arena, 1, sizeof(*p));
    int err;

    post->runs = NULL;
    post->run_count = 0;
    post->needs_numbers = post->is_repeated = false; /* of an earlier call */
    if (!p)
        return HD_ENOMEM;
    p->post = post;
    p->group = (struct hd_admission_group){.app = post->app,
                                           .arena = post->arena,
                                           .principal = post->principal,
                                           .actor = post->sender.key,
                                           .subject = post->subject,
                                           .thread_id = post->thread_id,
                                           .seen = post->seen,
                                           .runs = p->admissions,
                                           .prepare = prepare_post,
                                           .extend = extend_post,
                                           .ctx = p};
    err = choose_id(p);
    if (!err)
        err = hd_admit_group(&p->group, fault);
    return share_post(p, err);
}

void hd_room_post_fini(struct hd_room_post *post)
{
    while (post->run_count > 0)
        hd_room_request_fini(post->runs[--post->run_count]);
}
