/* heddle serve: the server, from its configuration to its end. */
#include <malloc.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "api/api.h"
#include "app/app.h"
#include "auth/forwarded.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"
#include "config/project.h"
#include "gate/audit.h"
#include "gate/auth_service.h"
#include "http/server.h"
#include "http/tls.h"
#include "server/open.h"
#include "server/store_lock.h"
#include "store/url.h"
#include "webhook/webhook.h"
#include "webhook/webhook_headers.h"

#define MAX_SETTINGS ((size_t)64 << 20)

extern char **environ;

struct serving {
    const char *command; /* for error texts */
    hd_greet_fn greet;
    struct hd_config config;
    uv_loop_t loop;
    uv_signal_t signals[3];
    size_t signal_count;
    struct hd_app app;
    struct hd_api *api;
    struct hd_http_server *server;
    struct hd_tls *tls;    /* NULL: no TLS */
    struct hd_arena arena; /* holds texts that the server's configuration borrows */
    regex_t origins;
    bool has_origins;
    int port;
    bool is_ending;
};

/* ---- shutdown --------------------------------------------------------- */

/* No runs and no connections are left, only handles. */
static void on_quiet(void *ctx)
{
    struct serving *s = ctx;

    hd_api_destroy(s->api);
    s->api = NULL;
    hd_server_close(&s->app);
    for (size_t i = 0; i < s->signal_count; i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
}

static void on_server_closed(void *arg)
{
    struct serving *s = arg;

    s->server = NULL;
    hd_server_drain(&s->app, on_quiet, s);
}

/*
 * The first signal: streams of a whole thread end now (api/event_stream.c); streams of a run and
 * other responses have `drain` seconds (http/server.c); then runs are suspended (run/queue.c). The
 * second signal ends the process at once. Acknowledged writes are stored in either case.
 */
static void on_signal(uv_signal_t *handle, int signum)
{
    struct serving *s = handle->data;

    if (s->is_ending) {
        (void)fprintf(stderr, "heddle: stopped\n");
        _exit(128 + signum);
    }
    s->is_ending = true;
    hd_log(HD_LOG_INFO, "serve", "stopping; send the signal again to stop at once");
    hd_server_retire(&s->app);
    hd_http_server_close(s->server, s->config.drain_us / 1000, on_server_closed, s);
    hd_api_end_thread_streams(s->api);
}

/*
 * Reopens an audit log that was rotated. Loads a renewed certificate; an invalid one changes
 * nothing.
 */
static void on_reload(uv_signal_t *handle, int signum)
{
    struct serving *s = handle->data;
    struct heddle_error fault = {0};

    (void)signum;
    hd_audit_reopen(s->app.audit);
    if (s->tls && hd_tls_reload(s->tls, &fault))
        hd_log(HD_LOG_ERROR, "serve", "cannot reload the certificate, the old one stays in use: %s",
               fault.text);
    else if (s->tls)
        hd_log(HD_LOG_INFO, "serve", "the certificate was reloaded");
}

/*
 * On a thread of the lease: another server now executes the runs of this store. No graceful
 * shutdown, because it would write.
 */
static void on_lost(void *ctx, const char *text)
{
    const struct serving *s = ctx;

    (void)fprintf(stderr, "heddle %s: %s; this server stops\n", s->command, text);
    _exit(HD_EXIT_FAILED);
}

/* ---- start ------------------------------------------------------------ */

/* "name:port" of cluster.address: the Host of the other servers' requests. */
static struct hd_slice cluster_host(const struct hd_config *config)
{
    const char *host = strstr(config->cluster_address, "://");

    return host ? hd_slice(host + 3, strcspn(host + 3, "/")) : hd_slice(NULL, 0);
}

/* With authentication off, only the server's own Host names are accepted, against DNS rebinding. */
static int set_guards(struct serving *s, struct hd_http_server_config *http)
{
    const struct hd_config *config = &s->config;
    bool has_users = config->auth.val != NULL;
    size_t count = config->allowed_hosts.count;
    struct hd_slice *hosts = hd_arena_calloc(&s->arena, count + 1, sizeof(*hosts));

    if (!hosts)
        return HD_ENOMEM;
    if (count > 0)
        memcpy(hosts, config->allowed_hosts.items, count * sizeof(*hosts));
    hosts[count] = cluster_host(config);
    http->guard.checks_host = !has_users;
    http->guard.hosts = hosts;
    http->guard.host_count = count + (hosts[count].len > 0);
    http->guard.proxies = config->proxies;
    http->guard.proxy_count = config->trusted_proxies.count;
    return 0;
}

/* "a, b"; NULL when empty or "*". */
static const char *join_cors_list(struct hd_arena *arena, const struct hd_config_list *list)
{
    const char *text = NULL;

    for (size_t i = 0; i < list->count; i++) {
        struct hd_slice item = list->items[i];

        if (hd_slice_eq(item, HD_S("*")))
            return NULL;
        text = hd_arena_printf(arena, "%s%s%.*s", text ? text : "", text ? ", " : "", (int)item.len,
                               item.ptr);
        if (!text)
            return "";
    }
    return text;
}

static int set_cors(struct serving *s, struct hd_cors *cors)
{
    const struct hd_config *config = &s->config;
    const char *pattern;

    if (*config->cors_allow_origin_regex) {
        pattern = hd_arena_printf(&s->arena, "^(%s)$", config->cors_allow_origin_regex);
        if (!pattern || regcomp(&s->origins, pattern, REG_EXTENDED | REG_NOSUB) != 0)
            return HD_ENOMEM; /* checked before */
        s->has_origins = true;
        cors->pattern = &s->origins;
    }
    cors->origins = config->cors_allow_origins.items;
    cors->origin_count = config->cors_allow_origins.count;
    cors->allows_loopback = !config->auth.val;
    cors->methods = join_cors_list(&s->arena, &config->cors_allow_methods);
    cors->headers = join_cors_list(&s->arena, &config->cors_allow_headers);
    cors->exposed = join_cors_list(&s->arena, &config->cors_expose_headers);
    cors->allow_credentials = config->cors_allow_credentials;
    cors->max_age = config->cors_max_age;
    return 0;
}

static int open_server(struct serving *s, struct heddle_error *fault)
{
    const struct hd_config *config = &s->config;
    struct hd_http_server_config http;
    int err;

    hd_http_server_config_init(&http);
    http.limits.body = config->max_body;
    http.limits.connections = config->max_connections;
    http.limits.idle_ms = config->idle_timeout_us / 1000;
    http.limits.head_ms = http.limits.body_ms = http.limits.write_ms =
        config->slow_timeout_us / 1000;
    if (s->app.cluster) { /* requests of other servers have more headers than those of clients */
        http.limits.head += HD_FORWARDED_MAX;
        http.limits.headers += 16;
    }
    err = set_guards(s, &http);
    if (!err)
        err = set_cors(s, &http.cors);
    if (err)
        return err;
    http.handler = hd_api_handle;
    if (config->log_access || hd_log_is_on(HD_LOG_DEBUG))
        http.answered = hd_api_answered;
    http.ctx = s->api;
    if (config->tls_certificate[0]) {
        err = hd_tls_create(config->tls_certificate, config->tls_key, &s->tls, fault);
        if (err)
            return err;
        http.tls = s->tls;
    }
    err = hd_http_server_create(&s->server, &s->loop, &http, fault);
    if (!err)
        err = hd_http_server_listen(s->server, config->host, config->port, !config->port_is_given,
                                    &s->port, fault);
    if (!err)
        hd_api_set_server(s->api, s->server);
    if (!err)
        s->app.port = s->port;
    return err;
}

static int open_signals(struct serving *s)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < HD_COUNT(numbers); i++) {
        if (uv_signal_init(&s->loop, &s->signals[i]))
            return HD_EIO;
        s->signals[i].data = s;
        s->signal_count++;
        /* With nothing to reload, SIGHUP keeps its default meaning: the terminal is gone. */
        if (numbers[i] == SIGHUP && !s->tls && !s->config.audit_file[0])
            continue;
        if (uv_signal_start(&s->signals[i], numbers[i] == SIGHUP ? on_reload : on_signal,
                            numbers[i]))
            return HD_EIO;
    }
    return 0;
}

/*
 * Per-thread heaps would keep the peak memory of each thread; large responses are frequent and
 * should not be mapped anew each time.
 */
static void tune_memory(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, 4);
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

/* A connection is a file; the usual limit of 1,024 is too low. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        hd_log(HD_LOG_WARN, "serve",
               "cannot raise the limit of open files, which limits connections");
}

static const char *shown_host(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 ? "localhost" : host;
}

static void greet_operator(struct hd_app *app, const char *url, const char *store)
{
    struct hd_slice id = app->graphs[0].id;
    bool has_users = app->config->auth.val != NULL;

    printf("Heddle listens at %s, stores in %s and serves", url, store);
    for (size_t i = 0; i < app->graph_count; i++)
        printf("%s %.*s", i > 0 ? "," : "", (int)app->graphs[i].id.len, app->graphs[i].id.ptr);
    printf(".\n");
    if (app->config->page_enabled)
        printf("\n  page    %s/\n", url);
    printf("\n"
           "Three things to try:\n"
           "  open %s/docs\n"
           "  curl -s %s/info\n"
           "  curl -sN %s/runs/stream -H 'Content-Type: application/json'%s \\\n"
           "    -d '{\"assistant_id\": \"%.*s\", \"stream_mode\": \"messages-tuple\", "
           "\"input\": {\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}}'\n"
           "\n"
           "Press Ctrl-C to stop.\n",
           url, url, url, has_users ? " -H 'x-api-key: KEY'" : "", (int)id.len, id.ptr);
    if (has_users)
        printf("`heddle key create` creates a KEY; see docs/authentication.md.\n");
}

static void print_address(struct serving *s)
{
    char url[512], store[512];

    hd_url_show(s->config.store, store, sizeof(store));
    (void)snprintf(url, sizeof(url), "%s://%s:%d%s", s->tls ? "https" : "http",
                   shown_host(s->config.host), s->port, s->config.http_mount_prefix);
    hd_store_lock_set_address(s->app.hold, url);
    if (s->config.port != 0 && s->port != s->config.port)
        printf("Port %d is in use; using port %d.\n", s->config.port, s->port);
    s->greet(&s->app, url, store);
    (void)fflush(stdout);
}

static int start_serving(struct serving *s, struct heddle_error *fault)
{
    int err = hd_config_check_host(s->config.host, s->config.auth.val != NULL, fault);

    raise_file_limit();
    tune_memory();
    s->app.loop = &s->loop;
    s->app.config = &s->config;
    s->app.lost = on_lost;
    s->app.lost_ctx = s;
    if (!err)
        err = hd_server_open(&s->app, fault);
    if (err)
        return err;
    err = hd_api_create(&s->app, &s->api, fault);
    if (!err)
        err = open_server(s, fault);
    if (!err)
        err = open_signals(s);
    if (!err)
        hd_webhooks_recover(s->app.webhooks);
    return err;
}

/* The start failed: the loop closes the open handles. */
static void abandon_serving(struct serving *s)
{
    if (s->server)
        hd_http_server_close(s->server, 0, on_server_closed, s);
    else if (s->app.queue)
        hd_server_drain(&s->app, on_quiet, s);
}

/* Serves until a signal ends it. */
static int serve(struct serving *s)
{
    struct heddle_error fault = {0};
    int err;

    if (uv_loop_init(&s->loop))
        return HD_EXIT_FAILED;
    err = start_serving(s, &fault);
    if (err) {
        (void)fprintf(stderr, "heddle %s: %s\n", s->command,
                      fault.code ? fault.text : hd_error_text(err));
        abandon_serving(s);
    } else {
        print_address(s);
        /* From here on, clients read error texts; those of `dev` are for its developer. */
        hd_errors_hide_places(strcmp(s->command, "serve") == 0);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    hd_server_close_store(&s->app);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&s->loop))
        hd_log(HD_LOG_WARN, "serve", "the event loop was closed with open handles");
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

/* `--check`: reads everything as for serving, opens nothing. */
static int check_serving(struct serving *s)
{
    struct heddle_error fault = {0};
    struct hd_rt_settings settings;
    struct hd_arena arena;
    int err = 0;

    if (!hd_graphs_open(&s->app, &s->config))
        return HD_EXIT_FAILED;
    if (s->config.auth.val)
        err = hd_auth_service_check_config(&s->config, &fault);
    hd_arena_init(&arena, MAX_SETTINGS);
    if (!err && hd_project_needs_workers(&s->config))
        err = hd_project_settings(&s->config, &arena, &settings, &fault);
    hd_arena_fini(&arena);
    if (err) {
        (void)fprintf(stderr, "heddle %s: %s\n", s->command,
                      fault.code ? fault.text : hd_error_text(err));
        return HD_EXIT_USAGE;
    }
    printf("The configuration is valid.\n");
    return HD_EXIT_OK;
}

/* Removes it from the arguments; all others are settings. */
static bool take_check(int *argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--check") != 0)
            argv[kept++] = argv[i];
    }
    if (kept == *argc)
        return false;
    *argc = kept;
    return true;
}

/* Reads settings that must be known before anything is opened. */
static int prepare(struct serving *s, struct heddle_error *fault)
{
    const struct hd_config_list *warnings = &s->config.warnings;
    int err;

    hd_log_set_level((enum hd_log_level)s->config.log_level);
    hd_log_set_format((enum hd_log_format)s->config.log_format);
    for (size_t i = 0; i < warnings->count; i++)
        hd_log(HD_LOG_WARN, "config", "%.*s", (int)warnings->items[i].len, warnings->items[i].ptr);
    err = hd_project_set_environment(&s->config, fault);
    if (!err && hd_project_needs_workers(&s->config))
        err = hd_project_check_environment(&s->config, fault);
    return err ? err : hd_webhook_headers_check(&s->config, fault);
}

int hd_serve(const char *command, int argc, char **argv, hd_greet_fn greet_user)
{
    bool is_check = take_check(&argc, argv);
    struct hd_config_source source = {.argc = argc, .argv = argv, .env = environ};
    struct heddle_error fault = {0};
    struct serving *s = hd_calloc(1, sizeof(*s));
    int status = HD_EXIT_FAILED;

    if (!s)
        return HD_EXIT_FAILED;
    hd_arena_init(&s->arena, MAX_SETTINGS);
    s->command = command;
    s->greet = greet_user;
    if (hd_config_load(&s->config, &source, &fault)) {
        (void)fprintf(stderr, "heddle %s: %s\n", command, fault.text);
        hd_free(s);
        return HD_EXIT_USAGE;
    }
    if (prepare(s, &fault)) {
        (void)fprintf(stderr, "heddle %s: %s\n", command, fault.text);
        status = HD_EXIT_USAGE;
    } else if (is_check)
        status = check_serving(s);
    else if (hd_graphs_open(&s->app, &s->config))
        status = serve(s);
    hd_tls_destroy(s->tls);
    if (s->has_origins)
        regfree(&s->origins);
    hd_arena_fini(&s->arena);
    hd_graphs_close(&s->app);
    hd_config_fini(&s->config);
    hd_free(s);
    return status;
}

static int serve_run(int argc, char **argv)
{
    return hd_serve("serve", argc, argv, greet_operator);
}

void hd_serve_options(void)
{
    struct hd_buf text;

    hd_buf_init(&text, (size_t)1 << 20);
    if (!hd_config_help(&text))
        printf("\n%.*s", (int)text.len, text.ptr);
    hd_buf_fini(&text);
}

const struct hd_command hd_command_serve = {
    .name = "serve",
    .arguments = "[OPTIONS]",
    .summary = "serve the LangGraph API: threads, runs, streams, branches",
    .help =
        "Serves until SIGTERM or Ctrl-C. Without configured graphs it serves `agent`,\n"
        "`research_agent` and `demo` (docs/agents.md); with OPENAI_API_KEY or another provider's\n"
        "key they use a model, without one they respond offline. Acknowledged writes are\n"
        "stored; runs interrupted by a crash continue when the server restarts.\n"
        "\n"
        "  OPENAI_API_KEY=sk-... heddle serve\n"
        "  heddle mock-model --port 4010 &\n"
        "  OPENAI_BASE_URL=http://localhost:4010/v1 OPENAI_API_KEY=any heddle serve\n"
        "  heddle serve --config langgraph.json --runtime-workers 4\n"
        "\n"
        "Every option is also an environment variable (HEDDLE_PORT) and a member of the JSON\n"
        "file that --config names; see docs/configuration.md. --check only checks the\n"
        "settings and prints errors.\n",
    .more = hd_serve_options,
    .run = serve_run,
};
