/* The agents of a thread: the root namespaces that have checkpoints. */
#include <heddle.h>

#include "api/api.h"
#include "api/state/checkpoint_index.h"
#include "api/state/checkpoint_target.h"
#include "base/alloc.h"
#include "base/map.h"

#define MAX_AGENTS 1000

/* One root namespace. */
struct thread_agent {
    const struct hd_checkpoint_node *first, *last;
    size_t count;
    bool is_asked; /* used by a user, not only by other agents */
};

struct agents {
    struct thread_agent *list; /* in the order of their first checkpoints */
    size_t count;
    struct hd_map by_ns;
};

static int count_point(struct agents *agents, const struct hd_checkpoint_node *point)
{
    struct thread_agent *agent = hd_map_get(&agents->by_ns, point->ns);

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
                     const struct thread_agent *agent)
{
    struct hd_checkpoint_target target = {.thread = *thread};
    const struct hd_checkpoint_node *last = agent->last;
    struct hd_jw *jw = &call->jw;
    int err = hd_checkpoint_target_of_root(call, &target, last->ns);

    hd_jw_object(jw);
    hd_jw_put_string_or_null(
        jw, "assistant_id", target.assistant_id.len > 0 ? target.assistant_id : last->assistant_id);
    hd_jw_put_string_or_null(jw, "graph_id",
                             target.graph_id.len > 0 ? target.graph_id : last->graph_id);
    hd_checkpoint_target_put_ns(call, &target);
    hd_jw_put_string_or_null(jw, "head_checkpoint_id",
                             target.chosen.len > 0 ? target.chosen : last->id);
    hd_jw_put_int(jw, "checkpoints", (int64_t)agent->count);
    hd_jw_put_bool(jw, "delegated", !agent->is_asked);
    hd_jw_put_string_or_null(jw, "created_at", agent->first->created_at);
    hd_jw_put_string_or_null(jw, "updated_at", last->created_at);
    hd_jw_object_end(jw);
    return err;
}

static int agents_show(struct hd_call *call, const struct hd_thread_rec *thread,
                       const struct hd_checkpoint_index *points)
{
    struct agents agents = {.list = hd_calloc(MAX_AGENTS, sizeof(struct thread_agent))};
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

static struct hd_step get_agents(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct hd_checkpoint_index points;
    int err = hd_call_thread(call, &thread);

    if (err)
        return hd_step_fail(err);
    err = hd_checkpoint_index_read(call, thread.id, NULL, &points);
    if (!err)
        err = agents_show(call, &thread, &points);
    hd_checkpoint_index_fini(&points);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/agents",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_agents,
     .tag = "Threads",
     .summary = "List the agents of a thread in the order of first use",
     .answer = "[ThreadAgent"},
};

const struct hd_routes hd_routes_agents = {routes, HD_COUNT(routes)};
