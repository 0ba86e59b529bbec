#include "run/room/room_members.h"

#include "base/vec.h"
#include "room/mention.h"
#include "run/assistant_lookup.h"

#define MAX_SAME_NAMES 1000

struct member_reading {
    const struct hd_room_members_query *query;
    struct heddle_error *fault;
    HD_VEC(struct hd_ask_member) members;
    enum hd_ask_rank rank; /* of the assistants that are scanned */
    size_t scanned;
};

/* ---- people and agents of the room ------------------------------------ */

static int add_person_names(struct member_reading *reading, const struct hd_room_person *person)
{
    struct hd_ask_member member = {.kind = HD_ROOM_PERSON,
                                   .rank = HD_ASK_ROOM,
                                   .key = person->key,
                                   .id = person->id,
                                   .name = person->name};
    int err = hd_vec_push(&reading->members, member);

    if (err || hd_slice_eq(person->name, person->id))
        return err;
    member.name = person->id;
    return hd_vec_push(&reading->members, member);
}

static int add_agent_of_room(struct member_reading *reading, const struct hd_room_agent *agent)
{
    return hd_vec_push(&reading->members, (struct hd_ask_member){.kind = HD_ROOM_AGENT,
                                                                 .rank = HD_ASK_ROOM,
                                                                 .key = agent->assistant_id,
                                                                 .id = agent->assistant_id,
                                                                 .name = agent->name,
                                                                 .actor = agent->actor});
}

static int read_room_agents(const struct hd_room_members_query *query, struct hd_room_members *out,
                            struct heddle_error *fault)
{
    struct hd_room_agent *agents = NULL;
    int err = hd_room_agents_read(query->room, query->arena, &agents, &out->agent_count, fault);

    if (err)
        return err;
    out->agents =
        hd_arena_calloc(query->arena, out->agent_count + HD_ROOM_MAX_AGENTS, sizeof(*out->agents));
    if (!out->agents)
        return HD_ENOMEM;
    for (size_t i = 0; i < out->agent_count; i++)
        out->agents[i] = agents[i];
    return 0;
}

/* ---- assistants ------------------------------------------------------- */

/* Copies what a member keeps of an assistant, which the scan overwrites. */
static int add_assistant(struct member_reading *reading, const struct hd_assistant_rec *assistant,
                         enum hd_ask_rank rank, struct hd_slice actor)
{
    struct hd_ask_member member = {.kind = HD_ROOM_AGENT, .rank = rank, .actor = actor};
    int err = hd_arena_copy(reading->query->arena, assistant->id, &member.key);

    if (!err)
        err = hd_arena_copy(reading->query->arena, assistant->name, &member.name);
    member.id = member.key;
    return err ? err : hd_vec_push(&reading->members, member);
}

static int on_member_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    struct member_reading *reading = arg;

    if (reading->scanned++ == HD_ROOM_MAX_ASSISTANTS)
        return 1;
    return add_assistant(reading, assistant, reading->rank, reading->query->actor);
}

static int scan_assistants(struct member_reading *reading, struct hd_slice principal,
                           enum hd_ask_rank rank)
{
    reading->scanned = 0;
    reading->rank = rank;
    return hd_assistants_scan(reading->query->app->store, principal, on_member_assistant, reading,
                              reading->fault);
}

static bool has_agent_member(const struct member_reading *reading, struct hd_slice id)
{
    for (size_t i = 0; i < reading->members.count; i++) {
        const struct hd_ask_member *member = &reading->members.items[i];

        if (member->kind == HD_ROOM_AGENT && hd_slice_eq(member->key, id))
            return true;
    }
    return false;
}

/* An agent that is asked without a mention: it need not be in the room. */
static int add_needed(struct member_reading *reading, struct hd_slice id, struct hd_slice actor)
{
    const struct hd_room_members_query *query = reading->query;
    struct hd_assistant_rec found;
    int err;

    if (id.len == 0 || has_agent_member(reading, id))
        return 0;
    err = hd_assistant_lookup(query->app, actor, id, query->arena, &found, reading->fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    return add_assistant(reading, &found, HD_ASK_OWN, actor);
}

/* The owner of the room has chosen its default agent. */
static int add_assistants(struct member_reading *reading)
{
    const struct hd_room_members_query *query = reading->query;
    int err = 0;

    if (query->has_mentions)
        err = scan_assistants(reading, query->actor, HD_ASK_OWN);
    if (!err && query->has_mentions && query->actor.len > 0)
        err = scan_assistants(reading, hd_slice(NULL, 0), HD_ASK_SYSTEM);
    if (!err)
        err = add_needed(reading, query->replied, query->actor);
    if (!err)
        err = add_needed(reading, query->room->default_assistant_id, query->room->principal);
    return err;
}

static int gather_members(struct member_reading *reading, struct hd_room_members *out)
{
    const struct hd_room_members_query *query = reading->query;
    int err = read_room_agents(query, out, reading->fault);

    for (size_t i = 0; !err && i < out->agent_count; i++)
        err = add_agent_of_room(reading, &out->agents[i]);
    for (size_t i = 0; !err && i < query->people_count; i++)
        err = add_person_names(reading, &query->people[i]);
    if (!err)
        err = add_assistants(reading);
    out->count = reading->members.count;
    out->list = err ? NULL : hd_arena_calloc(query->arena, out->count + 1, sizeof(*out->list));
    if (!err && !out->list)
        err = HD_ENOMEM;
    for (size_t i = 0; !err && i < out->count; i++)
        out->list[i] = reading->members.items[i];
    return err;
}

int hd_room_members_read(const struct hd_room_members_query *query, struct hd_room_members *out,
                         struct heddle_error *fault)
{
    struct member_reading reading = {.query = query, .fault = fault};
    int err;

    *out = (struct hd_room_members){.count = 0};
    err = gather_members(&reading, out);
    hd_vec_fini(&reading.members);
    return err;
}

/* ---- joining ---------------------------------------------------------- */

static bool is_name_taken(const struct hd_room_members *members, struct hd_slice name)
{
    const struct hd_mention mention = {.text = name};

    for (size_t i = 0; i < members->agent_count; i++) {
        const struct hd_mention_name taken = {.name = members->agents[i].name};

        if (hd_mention_means(&mention, &taken))
            return true;
    }
    for (size_t i = 0; i < members->count; i++) {
        const struct hd_mention_name taken = {.name = members->list[i].name};

        if (members->list[i].kind == HD_ROOM_PERSON && hd_mention_means(&mention, &taken))
            return true;
    }
    return false;
}

/* The assistant's name, with a number if the room has that name already. */
static int choose_name(const struct hd_room_members *members, const struct hd_ask_member *member,
                       struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_slice name = member->name;

    if (name.len == 0 || name.len > HD_ROOM_MAX_NAME - 5)
        name = member->key;
    *out = name;
    for (int i = 2; is_name_taken(members, *out) && i < MAX_SAME_NAMES; i++) {
        char *text = hd_arena_printf(arena, "%.*s %d", (int)name.len, name.ptr, i);

        if (!text)
            return HD_ENOMEM;
        *out = hd_slice_cstr(text);
    }
    return 0;
}

int hd_room_members_join(struct hd_room_members *members, size_t index, struct hd_arena *arena,
                         const struct hd_room_agent **out, struct heddle_error *fault)
{
    const struct hd_ask_member *member = &members->list[index];
    struct hd_room_agent *agent = &members->agents[members->agent_count];
    int err;

    for (size_t i = 0; i < members->agent_count; i++) {
        *out = &members->agents[i];
        if (hd_slice_eq((*out)->assistant_id, member->key))
            return 0;
    }
    if (members->agent_count >= HD_ROOM_MAX_AGENTS)
        return hd_error_set(fault, HD_EINVAL, "the room has %d agents already", HD_ROOM_MAX_AGENTS);
    *agent = (struct hd_room_agent){.assistant_id = member->key, .actor = member->actor};
    err = choose_name(members, member, arena, &agent->name);
    if (err)
        return err;
    members->agent_count++;
    members->has_joined = true;
    *out = agent;
    return 0;
}
