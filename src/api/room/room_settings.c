/*
 * The settings of a room: its agents, and the limits of what they are given and may cause. The
 * first PUT makes the thread a room. The owner changes everything, editors the agents.
 */
#include <string.h>

#include "api/api.h"
#include "api/request/access.h"
#include "api/room/room_find.h"
#include "api/room/room_people.h"
#include "api/room/room_presence.h"
#include "base/clock.h"
#include "room/room.h"
#include "run/assistant_lookup.h"
#include "store/rows.h"

#define MAX_CONTEXT_MESSAGES 1000
#define MAX_CONTEXT_BYTES ((int64_t)HD_ROOM_MAX_CONTENT)
#define MAX_CASCADE_LIMIT 1000
#define MAX_ASK_DEPTH 16
#define MAX_ASK_RUNS 100

/* ---- view ------------------------------------------------------------- */

static int show_room(struct hd_call *call, const struct hd_thread_rec *thread,
                     const struct hd_room_rec *room)
{
    struct hd_room_view view = {.room = room};
    struct hd_room_agent *agents;
    struct hd_room_person *people;
    struct hd_room_person me;
    int err = hd_room_agents_read(room, call->arena, &agents, &view.agent_count, &call->fault);

    if (!err)
        err = hd_room_people_me(call, &me);
    if (!err)
        err = hd_room_people_read(call, thread, &people, &view.people_count);
    if (!err)
        err = hd_room_find_unread(call, thread, &view.unread);
    if (err)
        return err;
    view.agents = agents;
    view.people = people;
    view.me = &me;
    hd_room_view_room(&call->jw, &view);
    return 0;
}

static struct hd_step get_room(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct hd_room_rec room;
    int err = hd_room_find(call, &thread, &room);

    return hd_step_done(err ? err : show_room(call, &thread, &room));
}

/* ---- agents ----------------------------------------------------------- */

struct agent_list {
    struct hd_room_agent *list;
    size_t count;
};

static const struct hd_room_agent *find_room_agent(const struct agent_list *agents,
                                                   struct hd_slice id)
{
    for (size_t i = 0; i < agents->count; i++) {
        if (hd_slice_eq(agents->list[i].assistant_id, id))
            return &agents->list[i];
    }
    return NULL;
}

/* A name that can be written behind `@`, also in quotes. */
static bool is_agent_name(struct hd_slice name)
{
    if (name.len == 0 || name.len > HD_ROOM_MAX_NAME || name.ptr[0] == ' ' ||
        name.ptr[name.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == '"' || name.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

/* The assistant of that id, or of the graph with that name, if the caller sees it. */
static int find_joining_assistant(struct hd_call *call, const char *member, struct hd_slice id,
                                  struct hd_room_agent *out)
{
    struct hd_assistant_rec assistant;
    int err =
        hd_assistant_lookup(call->app, call->actor, id, call->arena, &assistant, &call->fault);

    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        return hd_error_set(&call->fault, HD_EINVAL, "%s: assistant \"%.*s\" not found", member,
                            (int)(id.len < 80 ? id.len : 80), id.ptr);
    }
    if (err)
        return err;
    *out =
        (struct hd_room_agent){.assistant_id = assistant.id,
                               .name = assistant.name.len > 0 ? assistant.name : assistant.graph_id,
                               .actor = call->actor};
    return 0;
}

static int add_room_agent(struct hd_call *call, struct agent_list *agents,
                          struct hd_room_agent agent)
{
    if (!is_agent_name(agent.name))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "agents: a name has 1 to %d bytes without quotes, control characters "
                            "and spaces at its ends",
                            HD_ROOM_MAX_NAME);
    if (find_room_agent(agents, agent.assistant_id))
        return hd_error_set(&call->fault, HD_EINVAL, "agents: %.*s is there twice",
                            (int)agent.assistant_id.len, agent.assistant_id.ptr);
    for (size_t i = 0; i < agents->count; i++) {
        if (hd_slice_eq_nocase(agents->list[i].name, agent.name))
            return hd_error_set(&call->fault, HD_EINVAL, "agents: two agents are named \"%.*s\"",
                                (int)agent.name.len, agent.name.ptr);
    }
    if (agents->count == HD_ROOM_MAX_AGENTS)
        return hd_error_set(&call->fault, HD_EINVAL, "agents: a room has at most %d",
                            HD_ROOM_MAX_AGENTS);
    agents->list[agents->count++] = agent;
    return 0;
}

/* One element of `agents`. An agent of the room stays that of the user who added it. */
static int read_agent_entry(struct hd_call *call, hd_json_val val, const struct agent_list *old,
                            struct hd_room_agent *out)
{
    hd_json_val id = hd_json_get(val, HD_S("assistant_id"));
    hd_json_val name = hd_json_get(val, HD_S("name"));
    const struct hd_room_agent *known;
    int err = 0;

    if (!hd_json_is_object(val) || !hd_json_is_string(id) || hd_json_string(id).len == 0 ||
        (name && !hd_json_is_null(name) && !hd_json_is_string(name)))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "agents: expected objects with \"assistant_id\" and \"name\"");
    known = find_room_agent(old, hd_json_string(id));
    if (known)
        *out = *known;
    else
        err = find_joining_assistant(call, "agents", hd_json_string(id), out);
    if (!err && !known) {
        known = find_room_agent(old, out->assistant_id); /* it was given by the name of its graph */
        if (known)
            *out = *known;
    }
    if (!err && hd_json_is_string(name))
        out->name = hd_json_string(name);
    return err;
}

static int read_agent_list(struct hd_call *call, const struct agent_list *old,
                           struct agent_list *agents)
{
    hd_json_val val = hd_body_get(call, "agents");
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    if (!val) {
        if (old->count > 0)
            memcpy(agents->list, old->list, old->count * sizeof(*old->list));
        agents->count = old->count;
        return 0;
    }
    if (!hd_json_is_array(val))
        return hd_error_set(&call->fault, HD_EINVAL, "agents: expected a list");
    while (!err && hd_json_next(&it)) {
        struct hd_room_agent agent;

        err = read_agent_entry(call, it.val, old, &agent);
        if (!err)
            err = add_room_agent(call, agents, agent);
    }
    return err;
}

/* A default agent that is new to the room joins it. */
static int read_default_agent(struct hd_call *call, struct agent_list *agents,
                              struct hd_room_rec *room)
{
    hd_json_val val = hd_json_get(call->body, HD_S("default_assistant_id"));
    struct hd_room_agent agent;
    int err;

    if (val && hd_json_is_null(val))
        room->default_assistant_id = hd_slice(NULL, 0);
    if (!val || hd_json_is_null(val)) {
        if (room->default_assistant_id.len > 0 &&
            !find_room_agent(agents, room->default_assistant_id))
            return hd_error_set(&call->fault, HD_EINVAL,
                                "agents: the default agent of the room is not among them");
        return 0;
    }
    err = hd_body_string(call, "default_assistant_id", &room->default_assistant_id);
    if (err || find_room_agent(agents, room->default_assistant_id))
        return err;
    err = find_joining_assistant(call, "default_assistant_id", room->default_assistant_id, &agent);
    if (err)
        return err;
    room->default_assistant_id = agent.assistant_id;
    return find_room_agent(agents, agent.assistant_id) ? 0 : add_room_agent(call, agents, agent);
}

static int change_room_agents(struct hd_call *call, struct hd_room_rec *room)
{
    struct agent_list old = {NULL, 0};
    struct agent_list agents = {NULL, 0};
    int err = hd_room_agents_read(room, call->arena, &old.list, &old.count, &call->fault);

    agents.list =
        hd_arena_calloc(call->arena, HD_ROOM_MAX_AGENTS + old.count, sizeof(*agents.list));
    if (!err && !agents.list)
        err = HD_ENOMEM;
    if (!err)
        err = read_agent_list(call, &old, &agents);
    if (!err)
        err = read_default_agent(call, &agents, room);
    return err ? err : hd_room_agents_write(room, agents.list, agents.count, call->arena);
}

/* ---- limits ----------------------------------------------------------- */

/* A number in an object of the body, such as context.messages; absent: unchanged. */
static int read_limit(struct hd_call *call, const char *object, const char *member, int64_t max,
                      int64_t *out)
{
    hd_json_val val;
    int64_t number;
    int err = hd_body_object(call, object, &val);

    val = err || !val ? NULL : hd_json_get(val, hd_slice_cstr(member));
    if (err || !val || hd_json_is_null(val))
        return err;
    if (!hd_json_whole(val, &number) || number < 0 || number > max)
        return hd_error_set(&call->fault, HD_EINVAL, "%s.%s: expected an integer from 0 to %lld",
                            object, member, (long long)max);
    *out = number;
    return 0;
}

static int change_room_limits(struct hd_call *call, struct hd_room_rec *room)
{
    const struct {
        const char *object, *member;
        int64_t max;
        int64_t *out;
    } numbers[] = {
        {"context", "messages", MAX_CONTEXT_MESSAGES, &room->context_messages},
        {"context", "bytes", MAX_CONTEXT_BYTES, &room->context_bytes},
        {"cascade", "limit", MAX_CASCADE_LIMIT, &room->cascade_limit},
        {"agents_ask", "depth", MAX_ASK_DEPTH, &room->ask_depth},
        {"agents_ask", "runs", MAX_ASK_RUNS, &room->ask_runs},
    };
    int answers = (int)room->answers;
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(numbers); i++)
        err =
            read_limit(call, numbers[i].object, numbers[i].member, numbers[i].max, numbers[i].out);
    if (!err)
        err = hd_body_word(call, "answers", hd_room_answers_names, &answers);
    if (!err)
        err = hd_body_bool(call, "presence", &room->has_presence);
    room->answers = (enum hd_room_answers)answers;
    return err;
}

/* ---- change ----------------------------------------------------------- */

struct room_change {
    struct hd_call *call;
    struct hd_thread_rec thread;
    struct hd_room_rec room;
};

static int store_room(struct room_change *change, struct heddle_error *fault)
{
    struct hd_call *call = change->call;
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(call->arena, change->thread.principal, change->thread.id, &lane);

    hd_batch_init(&batch);
    change->room.updated_at = hd_clock_now_us();
    if (!err && !change->thread.is_room) {
        change->thread.is_room = true;
        err = hd_thread_put(&batch, &change->thread);
    }
    if (!err)
        err = hd_room_put(&batch, &change->room);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

static int room_change_once(void *arg, struct heddle_error *fault)
{
    struct room_change *change = arg;
    struct hd_call *call = change->call;
    int err = hd_room_find(call, &change->thread, &change->room);
    if (!err)
        err = change_room_limits(call, &change->room);
    if (!err)
        err = change_room_agents(call, &change->room);
    return err ? err : store_room(change, fault);
}

/* Editors change the agents only. */
static bool changes_settings(const struct hd_call *call)
{
    static const char *const members[] = {"default_assistant_id", "context", "cascade",
                                          "agents_ask",           "answers", "presence"};

    for (size_t i = 0; i < HD_COUNT(members); i++) {
        if (hd_json_get(call->body, hd_slice_cstr(members[i])))
            return true;
    }
    return false;
}

static struct hd_step put_room(struct hd_call *call)
{
    struct room_change *change;
    int err;

    if (changes_settings(call) && call->role < HD_ROLE_OWNER)
        return hd_access_refuse(call, HD_ROLE_OWNER);
    change = hd_arena_calloc(call->arena, 1, sizeof(*change));
    if (!change)
        return hd_step_fail(HD_ENOMEM);
    call->state = change;
    change->call = call;
    err = hd_rows_change(call->app->store, room_change_once, change, &call->fault);
    return hd_step_next(err ? err : show_room(call, &change->thread, &change->room));
}

/* The people of open streams learn of it at once. */
static struct hd_step put_room_then(struct hd_call *call)
{
    const struct room_change *change = call->state;

    hd_room_presence_switch(hd_api_room_presences(call->api), change->thread.principal,
                            change->thread.id, change->room.has_presence);
    return HD_DONE;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/room",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_room,
     .tag = "Rooms",
     .summary = "Get the settings, agents and people of a room",
     .answer = "Room"},
    {.method = HD_METHOD_PUT,
     .pattern = "/threads/{thread_id}/room",
     .access = HD_ACCESS_EDITOR,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = put_room,
     .then = put_room_then,
     .tag = "Rooms",
     .summary = "Change the agents and settings of a room; makes the thread one",
     .body = "RoomPut",
     .answer = "Room"},
};

const struct hd_routes hd_routes_room_settings = {routes, HD_COUNT(routes)};
