/* The agents of a thread: the root namespaces that have checkpoints or runs. */
#include <heddle.h>

#include "api/agent_delete.h"
#include "api/api.h"
#include "api/state/checkpoint_index.h"
#include "api/state/checkpoint_target.h"
#include "base/alloc.h"
#include "base/map.h"
#include "records/line.h"

#define MAX_AGENTS 1000

/* One root namespace. */
struct thread_agent {
    struct hd_slice ns;
    const struct hd_checkpoint_node *first, *last; /* NULL: no checkpoint */
    size_t count;
    bool is_asked;                /* used by a user, not only by other agents */
    const struct hd_run_rec *run; /* in flight; NULL: none */
};

struct agents {
    struct hd_call *call;
    const struct hd_thread_rec *thread;
    struct hd_checkpoint_index points;
    struct hd_lines lines;
    struct thread_agent *list; /* in the order of their first checkpoints */
    size_t count;
    struct hd_map by_ns;
};

/* NULL: too many. */
static int find_agent(struct agents *agents, struct hd_slice ns, struct thread_agent **out)
{
    *out = hd_map_get(&agents->by_ns, ns);
    if (*out || agents->count == MAX_AGENTS)
        return 0;
    *out = &agents->list[agents->count++];
    (*out)->ns = ns;
    return hd_map_put(&agents->by_ns, ns, *out);
}

static int count_point(struct agents *agents, const struct hd_checkpoint_node *point)
{
    struct thread_agent *agent;
    int err = find_agent(agents, point->ns, &agent);

    if (err || !agent)
        return err;
    if (!agent->first)
        agent->first = point;
    agent->last = point;
    agent->count++;
    agent->is_asked |= point->task_id.len == 0;
    return 0;
}

/* Running ones come first. */
static int add_run(struct agents *agents, const struct hd_run_rec *run)
{
    struct thread_agent *agent = NULL;
    struct hd_slice ns;
    int err = hd_run_line(run, agents->call->arena, &ns, &agents->call->fault);

    if (!err)
        err = find_agent(agents, ns, &agent);
    if (err || !agent)
        return err;
    agent->is_asked = true;
    if (!agent->run)
        agent->run = run;
    return 0;
}

static int add_runs(struct agents *agents)
{
    struct hd_call *call = agents->call;
    struct hd_run_rec *runs = NULL;
    size_t count = 0;
    int err = 0;

    if (agents->thread->status == HD_THREAD_BUSY)
        err = hd_runs_active(call->app->store, agents->thread->principal, agents->thread->id,
                             call->arena, &runs, &count, &call->fault);
    for (size_t i = 0; !err && i < count; i++)
        err = add_run(agents, &runs[i]);
    return err;
}

/* ---- the response ----------------------------------------------------- */

static void put_status(struct hd_jw *jw, const struct thread_agent *agent,
                       const struct hd_line_rec *line, const struct hd_standing *standing)
{
    enum hd_thread_status status = line ? line->status : HD_THREAD_IDLE;
    struct hd_slice run_id = line ? line->run_id : hd_slice(NULL, 0);

    if (agent->run) {
        status = HD_THREAD_BUSY;
        run_id = agent->run->run_id;
    }
    hd_jw_put_string(jw, "status", hd_slice_cstr(hd_thread_status_name(status)));
    hd_jw_put_raw(jw, "next", standing->next.len > 0 ? standing->next : HD_S("[]"));
    hd_jw_put_raw(jw, "interrupts",
                  line && line->interrupts.len > 0 ? line->interrupts : HD_S("{}"));
    hd_jw_put_string_or_null(jw, "run_id", run_id);
}

static struct hd_slice first_of(struct hd_slice a, struct hd_slice b, struct hd_slice c)
{
    return a.len > 0 ? a : b.len > 0 ? b : c;
}

static int put_agent(struct agents *agents, const struct thread_agent *agent)
{
    static const struct hd_checkpoint_node none = {.children = 0};
    const struct hd_checkpoint_node *last = agent->last ? agent->last : &none;
    const struct hd_checkpoint_node *first = agent->first ? agent->first : &none;
    const struct hd_line_rec *line = hd_lines_find(&agents->lines, agent->ns);
    struct hd_checkpoint_target target = {.thread = *agents->thread};
    struct hd_standing standing = {.has_next = false};
    struct hd_call *call = agents->call;
    struct hd_jw *jw = &call->jw;
    int err = hd_checkpoint_target_of_root(call, &target, agent->ns);

    if (!err && agent->last)
        err = hd_checkpoint_target_standing(call, &target, target.chosen, &standing);
    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "assistant_id",
                             first_of(target.assistant_id, last->assistant_id,
                                      agent->run ? agent->run->assistant_id : last->assistant_id));
    hd_jw_put_string_or_null(jw, "graph_id",
                             target.graph_id.len > 0 ? target.graph_id : last->graph_id);
    hd_checkpoint_target_put_ns(call, &target);
    put_status(jw, agent, line, &standing);
    hd_jw_put_string_or_null(jw, "head_checkpoint_id",
                             target.chosen.len > 0 ? target.chosen : last->id);
    hd_jw_put_int(jw, "checkpoints", (int64_t)agent->count);
    hd_jw_put_bool(jw, "delegated", !agent->is_asked);
    hd_jw_put_string_or_null(jw, "created_at", first->created_at);
    hd_jw_put_string_or_null(jw, "updated_at", last->created_at);
    hd_jw_object_end(jw);
    return err;
}

static int agents_show(struct agents *agents)
{
    struct hd_call *call = agents->call;
    int err;

    agents->list = hd_arena_calloc(call->arena, MAX_AGENTS, sizeof(*agents->list));
    err = agents->list ? 0 : HD_ENOMEM;
    for (size_t i = 0; !err && i < agents->points.count; i++)
        err = count_point(agents, &agents->points.list[i]);
    if (!err)
        err = add_runs(agents);
    hd_jw_array(&call->jw);
    for (size_t i = 0; !err && i < agents->count; i++)
        err = put_agent(agents, &agents->list[i]);
    hd_jw_array_end(&call->jw);
    return err ? err : call->jw.err;
}

static struct hd_step get_agents(struct hd_call *call)
{
    struct agents agents = {.call = call};
    struct hd_thread_rec thread;
    int err = hd_call_thread(call, &thread);

    if (err)
        return hd_step_fail(err);
    agents.thread = &thread;
    hd_map_init(&agents.by_ns, MAX_AGENTS);
    err = hd_lines_read(call->app->store, &thread, call->arena, &agents.lines, &call->fault);
    if (!err) {
        err = hd_checkpoint_index_read(call, thread.id, NULL, &agents.points);
        if (!err)
            err = agents_show(&agents);
        hd_checkpoint_index_fini(&agents.points);
    }
    hd_map_fini(&agents.by_ns);
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
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/agents/{assistant_id}",
     .access = HD_ACCESS_OWNER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .frees = true,
     .work = hd_agent_delete_start,
     .then = hd_agent_delete_then,
     .tag = "Threads",
     .summary = "Remove an agent from a thread, with its runs and checkpoints",
     .status = 204},
};

const struct hd_routes hd_routes_agents = {routes, HD_COUNT(routes)};
