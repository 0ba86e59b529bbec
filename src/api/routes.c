/* All endpoints: each table is in the file of its resource. */
#include "api/api.h"

static const struct hd_routes *const tables[] = {
    &hd_routes_assistants,      &hd_routes_assistant_search,
    &hd_routes_assistant_graph, &hd_routes_system,
    &hd_routes_metrics,         &hd_routes_openapi,
    &hd_routes_run_create,      &hd_routes_runs,
    &hd_routes_streams,         &hd_routes_thread_search,
    &hd_routes_threads,         &hd_routes_thread_delete,
    &hd_routes_states,          &hd_routes_history,
    &hd_routes_branches,        &hd_routes_timeline,
    &hd_routes_items,           &hd_routes_crons,
    &hd_routes_cron_search,     &hd_routes_participants,
    &hd_routes_invitations,
};

const struct hd_endpoint *hd_endpoint_at(size_t index)
{
    for (size_t i = 0; i < HD_COUNT(tables); i++) {
        if (index < tables[i]->count)
            return &tables[i]->list[index];
        index -= tables[i]->count;
    }
    return NULL;
}
