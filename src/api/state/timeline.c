/*
 * The timeline of a thread, across its agents or of one of them: the public messages on the current
 * branch of every root namespace, in the order of their creation.
 *
 * The state at a head has all messages of its branch. Their origins are found by bisection of the
 * path from the first checkpoint to the head, which only reads states between which messages were
 * added; with one agent, only those of the page.
 */
#include <heddle.h>

#include "api/api.h"
#include "api/state/checkpoint_index.h"
#include "api/state/checkpoint_target.h"
#include "api/state/message_path.h"
#include "api/state/message_senders.h"
#include "base/alloc.h"
#include "config/config.h"

#define MAX_AGENTS 1000
#define MAX_MESSAGES ((size_t)1 << 24)

/* One root namespace. */
struct timeline_agent {
    struct hd_message_path path; /* to the current head */
    struct hd_json values;       /* at the head */
};

struct timeline {
    struct hd_call *call;
    struct hd_thread_rec thread;
    struct hd_slice only; /* the root namespace of the requested assistant; NULL: all */
    int64_t limit, offset;
    struct hd_checkpoint_index points;
    struct timeline_agent *agents;
    size_t agent_count;
    struct hd_message_path_entry *entries;
    size_t count, cap;
};

/* ---- agents ----------------------------------------------------------- */

static int add_agent(struct timeline *timeline, struct hd_slice ns)
{
    struct hd_call *call = timeline->call;
    struct timeline_agent *agent = &timeline->agents[timeline->agent_count];
    struct hd_checkpoint_target *target = &agent->path.target;
    struct hd_checkpoint_node *head;
    int err;

    target->thread = timeline->thread;
    err = hd_checkpoint_target_of_root(call, target, ns);
    head = hd_checkpoint_index_find(&timeline->points, ns, target->chosen);
    if (!err)
        err = hd_message_path_find(&timeline->points, head, &agent->path);
    /* An agent whose graph is not served any more has no messages. */
    if (!err && target->graph)
        err = hd_checkpoint_index_messages(call, target, target->chosen, &agent->values);
    timeline->agent_count += !err;
    return err;
}

static bool timeline_is_known(const struct timeline *timeline, struct hd_slice ns)
{
    for (size_t i = 0; i < timeline->agent_count; i++) {
        if (hd_slice_eq(timeline->agents[i].path.target.root, ns))
            return true;
    }
    return false;
}

static int find_agents(struct timeline *timeline)
{
    int err = 0;

    timeline->agents = hd_calloc(MAX_AGENTS, sizeof(*timeline->agents));
    if (!timeline->agents)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < timeline->points.count; i++) {
        struct hd_slice ns = timeline->points.list[i].ns;

        if (timeline->only.ptr && !hd_slice_eq(ns, timeline->only))
            continue;
        if (timeline->agent_count < MAX_AGENTS && !timeline_is_known(timeline, ns))
            err = add_agent(timeline, ns);
    }
    return err;
}

/* ---- messages --------------------------------------------------------- */

static bool is_text(hd_json_val part)
{
    if (hd_json_is_string(part))
        return hd_json_string(part).len > 0;
    return hd_json_string(hd_json_get(part, HD_S("text"))).len > 0;
}

static bool timeline_has_text(hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);

    if (hd_json_is_string(content))
        return hd_json_string(content).len > 0;
    while (hd_json_is_array(content) && hd_json_next(&it)) {
        if (is_text(it.val))
            return true;
    }
    return false;
}

static bool is_public(hd_json_val message)
{
    struct hd_slice type = hd_json_string(hd_json_get(message, HD_S("type")));

    return (hd_slice_eq(type, HD_S("human")) || hd_slice_eq(type, HD_S("ai"))) &&
           timeline_has_text(hd_json_get(message, HD_S("content")));
}

static int push(struct timeline *timeline, struct hd_message_path_entry entry)
{
    if (timeline->count == timeline->cap) {
        size_t cap = timeline->cap ? timeline->cap * 2 : 64;
        struct hd_message_path_entry *grown = hd_realloc(timeline->entries, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        timeline->entries = grown;
        timeline->cap = cap;
    }
    timeline->entries[timeline->count++] = entry;
    return 0;
}

/* What an agent of the room said, as another one was given it: its own line has the original. */
static bool is_copy(const struct timeline *timeline, hd_json_val message)
{
    hd_json_val mark = hd_message_senders_mark(message);
    hd_json_val type = hd_json_get(hd_json_get(mark, HD_S("sender")), HD_S("type"));

    return timeline->thread.is_room && !timeline->only.ptr &&
           hd_slice_eq(hd_json_string(type), HD_S("agent"));
}

static int add_messages(struct timeline *timeline, struct timeline_agent *agent)
{
    hd_json_val list = hd_json_get(hd_json_root(&agent->values), HD_S("messages"));
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(list) ? list : NULL);
    int err = 0;

    for (size_t i = 0; !err && hd_json_next(&it); i++) {
        if (is_public(it.val) && !is_copy(timeline, it.val))
            err = push(timeline, (struct hd_message_path_entry){
                                     .path = &agent->path, .message = it.val, .position = i});
    }
    return err;
}

/* The first occurrence counts; messages without an id are all different. */
static int drop_doubles(struct timeline *timeline)
{
    struct hd_map seen;
    size_t kept = 0;
    int err = 0;

    hd_map_init(&seen, MAX_MESSAGES);
    for (size_t i = 0; !err && i < timeline->count; i++) {
        struct hd_slice id = hd_message_id(timeline->entries[i].message);

        if (id.len > 0 && hd_map_get(&seen, id))
            continue;
        if (id.len > 0)
            err = hd_map_put(&seen, id, timeline->entries[i].message);
        timeline->entries[kept++] = timeline->entries[i];
    }
    hd_map_fini(&seen);
    timeline->count = kept;
    return err;
}

/* ---- the page --------------------------------------------------------- */

static void put_entry(struct timeline *timeline, const struct hd_message_path_entry *entry,
                      const struct hd_message_sender *sender)
{
    struct hd_jw *jw = &timeline->call->jw;
    const struct hd_checkpoint_target *target = &entry->path->target;
    const struct hd_checkpoint_node *point = entry->point;

    hd_jw_object(jw);
    hd_jw_put_val(jw, "message", entry->message);
    hd_jw_put_string_or_null(jw, "assistant_id",
                             target->assistant_id.len > 0 ? target->assistant_id
                                                          : point->assistant_id);
    hd_jw_put_string_or_null(jw, "graph_id",
                             point->graph_id.len > 0 ? point->graph_id : target->graph_id);
    hd_jw_put_string(jw, "checkpoint_ns", hd_checkpoint_target_shown_root(timeline->call, target));
    hd_jw_put_string_or_null(jw, "checkpoint_id", point->id);
    hd_jw_put_string_or_null(jw, "run_id", point->run_id);
    hd_jw_put_string_or_null(jw, "created_at", point->created_at);
    hd_message_senders_put(jw, sender);
    hd_jw_put_bool(jw, "delegated", sender->is_delegated);
    hd_jw_object_end(jw);
}

static size_t page_size(const struct timeline *timeline)
{
    size_t offset = (size_t)timeline->offset, limit = (size_t)timeline->limit;

    if (offset >= timeline->count)
        return 0;
    return timeline->count - offset < limit ? timeline->count - offset : limit;
}

/* One agent's list is in the order of its checkpoints: only the page has to be located. */
static int arrange(struct timeline *timeline)
{
    struct hd_message_path_entry *page = timeline->entries;
    size_t count;
    int err;

    if (timeline->agent_count > 1) {
        err = hd_message_path_locate(timeline->call, timeline->entries, timeline->count);
        if (!err)
            hd_message_path_sort(timeline->entries, timeline->count);
        return err ? err : drop_doubles(timeline);
    }
    err = drop_doubles(timeline);
    count = page_size(timeline);
    if (err || count == 0)
        return err;
    page += timeline->offset;
    err = hd_message_path_locate(timeline->call, page, count);
    if (!err)
        hd_message_path_sort(page, count);
    return err;
}

static int timeline_show(struct timeline *timeline)
{
    struct hd_call *call = timeline->call;
    size_t count = page_size(timeline);
    const struct hd_message_path_entry *page =
        count > 0 ? timeline->entries + timeline->offset : NULL;
    struct hd_message_sender *senders = hd_arena_calloc(call->arena, count + 1, sizeof(*senders));
    int err = senders ? hd_message_senders_find(call, &timeline->thread, page, count, call->arena,
                                                senders)
                      : HD_ENOMEM;

    if (err)
        return err;
    hd_jw_array(&call->jw);
    for (size_t i = 0; i < count; i++)
        put_entry(timeline, &page[i], &senders[i]);
    hd_jw_array_end(&call->jw);
    hd_call_pages(call, timeline->offset, timeline->limit, (int64_t)timeline->count);
    return call->jw.err;
}

static int timeline_make(struct timeline *timeline)
{
    int err =
        hd_checkpoint_index_read(timeline->call, timeline->thread.id, NULL, &timeline->points);

    if (!err)
        err = find_agents(timeline);
    for (size_t i = 0; !err && i < timeline->agent_count; i++)
        err = add_messages(timeline, &timeline->agents[i]);
    if (!err)
        err = arrange(timeline);
    return err ? err : timeline_show(timeline);
}

/* As /state and /history: a deleted assistant may still have checkpoints. */
static int read_only(struct timeline *timeline)
{
    struct hd_call *call = timeline->call;
    struct hd_slice id = {NULL, 0};

    hd_params_get(&call->query, HD_S("assistant_id"), &id);
    return id.len > 0 ? hd_checkpoint_target_assistant_root(call, id, &timeline->only) : 0;
}

static struct hd_step get_timeline(struct hd_call *call)
{
    struct timeline timeline = {.call = call};
    int err =
        hd_params_int(&call->query, HD_S("limit"), 1, 1000, 100, &timeline.limit, &call->fault);

    if (!err)
        err = hd_params_int(&call->query, HD_S("offset"), 0, INT32_MAX, 0, &timeline.offset,
                            &call->fault);
    if (!err)
        err = hd_call_thread(call, &timeline.thread);
    if (!err)
        err = read_only(&timeline);
    if (err)
        return hd_step_fail(err);
    err = timeline_make(&timeline);
    for (size_t i = 0; i < timeline.agent_count; i++)
        hd_json_fini(&timeline.agents[i].values);
    hd_free(timeline.agents);
    hd_free(timeline.entries);
    hd_checkpoint_index_fini(&timeline.points);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/timeline",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_timeline,
     .tag = "Threads",
     .summary = "List the messages of a thread across its agents",
     .query = "limit offset assistant_id",
     .answer = "[TimelineEntry"},
};

const struct hd_routes hd_routes_timeline = {routes, HD_COUNT(routes)};
