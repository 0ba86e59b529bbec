/*
 * What was said in a thread, across its agents: the public messages on the current
 * branch of every root namespace, in the order in which they came to be there.
 *
 * The state at a head has all messages of its branch. Where each came from is found
 * by halving the way from the first checkpoint to the head, so that only states
 * are read between which something was said; with one agent, only those of the page.
 */
#include <heddle.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/points.h"
#include "api/spot.h"
#include "base/alloc.h"
#include "run/config.h"

#define MAX_AGENTS 1000
#define MAX_MESSAGES ((size_t)1 << 24)

/* One root namespace. */
struct agent {
    struct hd_spot spot;
    struct hd_point **way; /* from the first checkpoint to the current head */
    size_t length;
    struct hd_json values; /* at the head */
};

/* A message that is shown. */
struct entry {
    struct agent *agent;
    hd_json_val message;
    size_t position;        /* in the agent's list */
    struct hd_point *point; /* the first checkpoint that has it */
};

struct timeline {
    struct hd_call *call;
    struct hd_thread_rec thread;
    int64_t limit, offset;
    struct hd_points points;
    struct agent *agents;
    size_t agent_count;
    struct entry *entries;
    size_t count, cap;
};

/* ---- agents ----------------------------------------------------------- */

static int find_way(struct timeline *timeline, struct agent *agent, struct hd_point *head)
{
    struct hd_point *point = head;
    size_t count = 0;

    while (point && count < timeline->points.count) {
        point = point->parent;
        count++;
    }
    agent->way = hd_arena_calloc(&timeline->points.arena, count + 1, sizeof(struct hd_point *));
    if (!agent->way)
        return HD_ENOMEM;
    agent->length = count;
    for (point = head; count > 0; point = point->parent)
        agent->way[--count] = point;
    return 0;
}

static int add_agent(struct timeline *timeline, struct hd_slice ns)
{
    struct hd_call *call = timeline->call;
    struct agent *agent = &timeline->agents[timeline->agent_count];
    struct hd_point *head;
    int err;

    agent->spot.thread = timeline->thread;
    err = hd_spot_of_root(call, &agent->spot, ns);
    head = hd_points_find(&timeline->points, ns, agent->spot.chosen);
    if (!err)
        err = find_way(timeline, agent, head);
    /* One whose graph is not served any more has nothing to say. */
    if (!err && agent->spot.graph)
        err = hd_point_values(call, &agent->spot, agent->spot.chosen, &agent->values);
    timeline->agent_count += !err;
    return err;
}

static bool is_known(const struct timeline *timeline, struct hd_slice ns)
{
    for (size_t i = 0; i < timeline->agent_count; i++) {
        if (hd_slice_eq(timeline->agents[i].spot.root, ns))
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

        if (timeline->agent_count < MAX_AGENTS && !is_known(timeline, ns))
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

static bool has_text(hd_json_val content)
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
           has_text(hd_json_get(message, HD_S("content")));
}

static struct hd_slice id_of(hd_json_val message)
{
    return hd_json_string(hd_json_get(message, HD_S("id")));
}

static int push(struct timeline *timeline, struct entry entry)
{
    if (timeline->count == timeline->cap) {
        size_t cap = timeline->cap ? timeline->cap * 2 : 64;
        struct entry *grown = hd_realloc(timeline->entries, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        timeline->entries = grown;
        timeline->cap = cap;
    }
    timeline->entries[timeline->count++] = entry;
    return 0;
}

static int add_messages(struct timeline *timeline, struct agent *agent)
{
    hd_json_val list = hd_json_get(hd_json_root(&agent->values), HD_S("messages"));
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(list) ? list : NULL);
    int err = 0;

    for (size_t i = 0; !err && hd_json_next(&it); i++) {
        if (is_public(it.val))
            err = push(timeline, (struct entry){.agent = agent, .message = it.val, .position = i});
    }
    return err;
}

/* Whoever comes first keeps it; messages without an id are all different. */
static int drop_doubles(struct timeline *timeline)
{
    struct hd_map seen;
    size_t kept = 0;
    int err = 0;

    hd_map_init(&seen, MAX_MESSAGES);
    for (size_t i = 0; !err && i < timeline->count; i++) {
        struct hd_slice id = id_of(timeline->entries[i].message);

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

/* ---- where they came from --------------------------------------------- */

/* Entries of one agent that are in the state at way[high - 1] and not in those before way[low]. */
struct stretch {
    struct agent *agent;
    struct entry *entries;
    size_t count;
    size_t low, high;
};

/* Puts the entries that are there at way[at] before the others; *count: how many. */
static int part(struct timeline *timeline, const struct stretch *stretch, size_t at, size_t *count)
{
    struct hd_json json;
    struct hd_json_iter it;
    struct hd_map there;
    int err =
        hd_point_values(timeline->call, &stretch->agent->spot, stretch->agent->way[at]->id, &json);

    *count = 0;
    hd_map_init(&there, MAX_MESSAGES);
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("messages")));
    while (!err && hd_json_next(&it))
        err = hd_map_put(&there, id_of(it.val), it.val);
    for (size_t i = 0; !err && i < stretch->count; i++) {
        struct entry entry = stretch->entries[i];

        if (!hd_map_get(&there, id_of(entry.message)))
            continue;
        stretch->entries[i] = stretch->entries[*count];
        stretch->entries[(*count)++] = entry;
    }
    hd_map_fini(&there);
    hd_json_fini(&json);
    return err;
}

/* Recurses as deep as the logarithm of the way's length. */
static int locate(struct timeline *timeline, struct stretch stretch)
{
    size_t middle = stretch.low + (stretch.high - stretch.low) / 2, count;
    struct stretch early = stretch, late = stretch;
    int err;

    if (stretch.count == 0)
        return 0;
    if (stretch.high - stretch.low <= 1) {
        for (size_t i = 0; i < stretch.count; i++)
            stretch.entries[i].point = stretch.agent->way[stretch.low];
        return 0;
    }
    err = part(timeline, &stretch, middle - 1, &count);
    if (err)
        return err;
    early.count = count;
    early.high = middle;
    late.entries += count;
    late.count -= count;
    late.low = middle;
    err = locate(timeline, early);
    return err ? err : locate(timeline, late);
}

/* All entries of one agent stand together. */
static int locate_all(struct timeline *timeline, struct entry *entries, size_t count)
{
    size_t begin = 0;
    int err = 0;

    for (size_t i = 1; !err && i <= count; i++) {
        if (i < count && entries[i].agent == entries[begin].agent)
            continue;
        err = locate(timeline, (struct stretch){.agent = entries[begin].agent,
                                                .entries = &entries[begin],
                                                .count = i - begin,
                                                .high = entries[begin].agent->length});
        begin = i;
    }
    return err;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    int order = hd_slice_cmp(one->point->id, other->point->id);

    if (order != 0)
        return order;
    return one->position < other->position ? -1 : one->position > other->position;
}

static void sort(struct entry *entries, size_t count)
{
    if (count > 0)
        qsort(entries, count, sizeof(*entries), compare_entries);
}

/* ---- the page --------------------------------------------------------- */

static void put_text(struct hd_jw *jw, const char *name, struct hd_slice text)
{
    hd_jw_key(jw, hd_slice_cstr(name));
    if (text.len > 0)
        hd_jw_string(jw, text);
    else
        hd_jw_null(jw);
}

static void put_entry(struct timeline *timeline, const struct entry *entry)
{
    struct hd_jw *jw = &timeline->call->jw;
    const struct hd_spot *spot = &entry->agent->spot;
    const struct hd_point *point = entry->point;

    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("message"));
    hd_jw_val(jw, entry->message);
    put_text(jw, "assistant_id",
             spot->assistant_id.len > 0 ? spot->assistant_id : point->assistant_id);
    put_text(jw, "graph_id", point->graph_id.len > 0 ? point->graph_id : spot->graph_id);
    hd_jw_key(jw, HD_S("checkpoint_ns"));
    hd_jw_string(jw, hd_spot_shown_root(timeline->call, spot));
    put_text(jw, "checkpoint_id", point->id);
    put_text(jw, "run_id", point->run_id);
    put_text(jw, "created_at", point->created_at);
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
    struct entry *page = timeline->entries;
    size_t count;
    int err;

    if (timeline->agent_count > 1) {
        err = locate_all(timeline, timeline->entries, timeline->count);
        if (!err)
            sort(timeline->entries, timeline->count);
        return err ? err : drop_doubles(timeline);
    }
    err = drop_doubles(timeline);
    count = page_size(timeline);
    if (err || count == 0)
        return err;
    page += timeline->offset;
    err = locate_all(timeline, page, count);
    if (!err)
        sort(page, count);
    return err;
}

static int show(struct timeline *timeline)
{
    struct hd_call *call = timeline->call;
    size_t count = page_size(timeline);

    hd_jw_array(&call->jw);
    for (size_t i = 0; i < count; i++)
        put_entry(timeline, &timeline->entries[(size_t)timeline->offset + i]);
    hd_jw_array_end(&call->jw);
    hd_call_pages(call, timeline->offset, timeline->limit, (int64_t)timeline->count);
    return call->jw.err;
}

static int make(struct timeline *timeline)
{
    int err = hd_points_read(timeline->call, timeline->thread.id, NULL, &timeline->points);

    if (!err)
        err = find_agents(timeline);
    for (size_t i = 0; !err && i < timeline->agent_count; i++)
        err = add_messages(timeline, &timeline->agents[i]);
    if (!err)
        err = arrange(timeline);
    return err ? err : show(timeline);
}

static int get_timeline(struct hd_call *call)
{
    struct timeline timeline = {.call = call};
    int err =
        hd_params_int(&call->query, HD_S("limit"), 1, 1000, 100, &timeline.limit, &call->fault);

    if (!err)
        err = hd_params_int(&call->query, HD_S("offset"), 0, INT32_MAX, 0, &timeline.offset,
                            &call->fault);
    if (!err)
        err = hd_call_thread(call, &timeline.thread);
    if (err)
        return err;
    err = make(&timeline);
    for (size_t i = 0; i < timeline.agent_count; i++)
        hd_json_fini(&timeline.agents[i].values);
    hd_free(timeline.agents);
    hd_free(timeline.entries);
    hd_points_fini(&timeline.points);
    return err;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/timeline",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_timeline,
     .tag = "Threads",
     .summary = "What was said in a thread, by all of its agents",
     .query = "limit offset",
     .answer = "[TimelineEntry"},
};

const struct hd_routes hd_routes_timeline = {routes, HD_COUNT(routes)};
