/* Who takes part in a thread: the root namespaces that have checkpoints. */
#include <heddle.h>

#include "api/api.h"
#include "api/state/checkpoint_index.h"
#include "api/state/checkpoint_target.h"
#include "base/alloc.h"
#include "base/map.h"

#define MAX_AGENTS 1000

/* One root namespace. */
struct agent {
    const struct hd_point *first, *last;
    size_t count;
    bool is_asked; /* by a user, not only by other agents */
};

struct agents {
    struct agent *list; /* in the order of their first checkpoints */
    size_t count;
    struct hd_map by_ns;
};

static int count_point(struct agents *agents, const struct hd_point *point)
{
    struct agent *agent = hd_map_get(&agents->by_ns, point->ns);

    if (!agent && agents->count == MAX_AGENTS)
        return 0;
    if (!agent) {
        agent = &agents->list[agents->count++];
        agent->first = point;
    }
    agent->last = point;
    agent->count++;
    agent->is_asked |= point->task_id.len == 0;
    return agent->count == 1 ? hd_map_put(&agents->by_ns, point->ns, agent) : 0;
}

static int put_agent(struct hd_call *call, const struct hd_thread_rec *thread,
                     const struct agent *agent)
{
    struct hd_spot spot = {.thread = *thread};
    const struct hd_point *last = agent->last;
    struct hd_jw *jw = &call->jw;
    int err = hd_spot_of_root(call, &spot, last->ns);

    hd_jw_object(jw);
    hd_jw_text(jw, "assistant_id",
               spot.assistant_id.len > 0 ? spot.assistant_id : last->assistant_id);
    hd_jw_text(jw, "graph_id", spot.graph_id.len > 0 ? spot.graph_id : last->graph_id);
    hd_spot_put_ns(call, &spot);
    hd_jw_text(jw, "head_checkpoint_id", spot.chosen.len > 0 ? spot.chosen : last->id);
    hd_jw_key(jw, HD_S("checkpoints"));
    hd_jw_int(jw, (int64_t)agent->count);
    hd_jw_key(jw, HD_S("delegated"));
    hd_jw_bool(jw, !agent->is_asked);
    hd_jw_text(jw, "created_at", agent->first->created_at);
    hd_jw_text(jw, "updated_at", last->created_at);
    hd_jw_object_end(jw);
    return err;
}

static int show(struct hd_call *call, const struct hd_thread_rec *thread,
                const struct hd_points *points)
{
    struct agents agents = {.list = hd_calloc(MAX_AGENTS, sizeof(struct agent))};
    int err = agents.list ? 0 : HD_ENOMEM;

    hd_map_init(&agents.by_ns, MAX_AGENTS);
    for (size_t i = 0; !err && i < points->count; i++)
        err = count_point(&agents, &points->list[i]);
    hd_jw_array(&call->jw);
    for (size_t i = 0; !err && i < agents.count; i++)
        err = put_agent(call, thread, &agents.list[i]);
    hd_jw_array_end(&call->jw);
    hd_map_fini(&agents.by_ns);
    hd_free(agents.list);
    return err ? err : call->jw.err;
}

static int get_agents(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct hd_points points;
    int err = hd_call_thread(call, &thread);

    if (err)
        return err;
    err = hd_points_read(call, thread.id, NULL, &points);
    if (!err)
        err = show(call, &thread, &points);
    hd_points_fini(&points);
    return err;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/agents",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_agents,
     .tag = "Threads",
     .summary = "Who takes part in a thread, in the order of first use",
     .answer = "[ThreadAgent"},
};

const struct hd_routes hd_routes_agents = {routes, HD_COUNT(routes)};
