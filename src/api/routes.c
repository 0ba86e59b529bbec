/* All endpoints: each table is in the file of its resource. */
#include <string.h>

#include "api/api.h"
#include "config/config.h"

static const struct hd_routes *const tables[] = {
    &hd_routes_assistants,      &hd_routes_assistant_search,
    &hd_routes_assistant_graph, &hd_routes_system,
    &hd_routes_metrics,         &hd_routes_openapi,
    &hd_routes_run_create,      &hd_routes_runs,
    &hd_routes_stream_join,     &hd_routes_thread_search,
    &hd_routes_threads,         &hd_routes_thread_delete,
    &hd_routes_states,          &hd_routes_history,
    &hd_routes_branches,        &hd_routes_timeline,
    &hd_routes_message_origins, &hd_routes_agents,
    &hd_routes_items,           &hd_routes_crons,
    &hd_routes_cron_search,     &hd_routes_participants,
    &hd_routes_invitations,     &hd_routes_page,
    &hd_routes_page_sign_in,    &hd_routes_peer_cancel,
    &hd_routes_room_settings,   &hd_routes_room_messages,
    &hd_routes_room_inbox,      &hd_routes_room_delete,
    &hd_routes_room_feedback,   &hd_routes_room_question,
    &hd_routes_room_stop,       &hd_routes_room_post,
    &hd_routes_room_typing,     &hd_routes_room_branch,
    &hd_routes_room_edit,       &hd_routes_room_cascades,
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

static bool begins(const char *pattern, const char *with)
{
    return strncmp(pattern, with, strlen(with)) == 0;
}

static bool is_cron(const char *pattern)
{
    return begins(pattern, "/runs/crons") || strstr(pattern, "}/runs/crons");
}

static bool is_about_the_server(const char *pattern)
{
    return begins(pattern, "/info") || begins(pattern, "/metrics") || begins(pattern, "/docs") ||
           begins(pattern, "/openapi");
}

static bool is_page(const char *pattern)
{
    return strcmp(pattern, "/") == 0 || begins(pattern, "/assets/") || begins(pattern, "/page/") ||
           begins(pattern, "/icon.svg");
}

/* Health checks cannot be disabled. */
bool hd_endpoint_is_on(const struct hd_config *config, const struct hd_endpoint *endpoint)
{
    const char *pattern = endpoint->pattern;
    const bool *is_off = config->http_disable;

    if (begins(pattern, "/assistants"))
        return !is_off[HD_HTTP_ASSISTANTS];
    if (is_cron(pattern))
        return !is_off[HD_HTTP_RUNS] && !is_off[HD_HTTP_CRONS];
    if (begins(pattern, "/runs") || (begins(pattern, "/threads") && strstr(pattern, "}/runs")))
        return !is_off[HD_HTTP_RUNS];
    if (begins(pattern, "/threads"))
        return !is_off[HD_HTTP_THREADS];
    if (begins(pattern, "/store"))
        return !is_off[HD_HTTP_STORE];
    if (begins(pattern, "/mcp"))
        return !is_off[HD_HTTP_MCP];
    if (begins(pattern, "/a2a") || begins(pattern, "/.well-known/agent"))
        return !is_off[HD_HTTP_A2A];
    if (begins(pattern, "/ui"))
        return !is_off[HD_HTTP_UI];
    if (is_page(pattern))
        return config->page_enabled;
    return !is_about_the_server(pattern) || !is_off[HD_HTTP_META];
}
