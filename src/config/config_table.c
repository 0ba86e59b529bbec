/* All settings of the server, and their names. To add one: a line here, a member in config.h. */
#include <regex.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "config/config_internal.h"
#include "config/ttl.h"
#include "store/url.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define DAY_SECONDS 86400
#define YEAR_MINUTES (INT64_C(366) * 24 * 60)

#define AT(member) offsetof(struct hd_config, member)

static const char *const levels[] = {"debug", "info", "warn", "error", "off", NULL};
static const char *const middleware_orders[] = {"default", "auth_first", "middleware_first", NULL};
static const char *const outgoing[] = {"auto", "allow", "deny", NULL};
static const char *const formats[] = {"text", "json", NULL};

static int check_host(const char *text, struct heddle_error *fault)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~' || *c == '/')
            return hd_error_set(fault, HD_EINVAL, "not a host name or address");
    }
    return *text ? 0 : hd_error_set(fault, HD_EINVAL, "a value is missing");
}

static int check_regex(const char *text, struct heddle_error *fault)
{
    char why[128];
    regex_t regex;
    int err = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);

    if (err == 0) {
        regfree(&regex);
        return 0;
    }
    (void)regerror(err, NULL, why, sizeof(why));
    return hd_error_set(fault, HD_EINVAL, "not a regular expression: %s", why);
}

/* Names of methods and headers. */
static int check_token(const char *text, struct heddle_error *fault)
{
    return hd_slice_is_token(hd_slice_cstr(text))
               ? 0
               : hd_error_set(fault, HD_EINVAL, "not a valid name");
}

static int check_prefix(const char *text, struct heddle_error *fault)
{
    size_t len = strlen(text);

    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~' || strchr("?#%{}\\", *c))
            return hd_error_set(fault, HD_EINVAL, "not a path such as /agents");
    }
    if (len > 0 && (text[0] != '/' || text[len - 1] == '/' || len > 256 || strstr(text, "//")))
        return hd_error_set(fault, HD_EINVAL, "not a path such as /agents");
    return 0;
}

static int check_listen(const char *text, struct heddle_error *fault)
{
    const char *colon = strrchr(text, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

    if (!*text || (colon && colon > text && digits > 0 && digits < 6 && !colon[1 + digits]))
        return 0;
    return hd_error_set(fault, HD_EINVAL, "not a host and a port, such as 0.0.0.0:2025");
}

static int check_key(const char *text, struct heddle_error *fault)
{
    if (!*text || strlen(text) >= 16)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "too short: at least 16 characters");
}

static int check_cluster_key(const char *text, struct heddle_error *fault)
{
    if (!*text || strlen(text) >= HD_CONFIG_CLUSTER_KEY_MIN)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "too short: at least %d characters",
                        HD_CONFIG_CLUSTER_KEY_MIN);
}

/* Other servers append the paths of requests to it. */
static int check_cluster_address(const char *text, struct heddle_error *fault)
{
    const char *host = strstr(text, "://");
    bool is_url = hd_slice_starts(hd_slice_cstr(text), HD_S("http://")) ||
                  hd_slice_starts(hd_slice_cstr(text), HD_S("https://"));

    if (!*text)
        return 0;
    is_url = is_url && host[3] && host[3] != '/' && host[3] != ':' && strlen(text) < 256;
    for (const char *c = text; is_url && *c; c++)
        is_url = *c > ' ' && *c <= '~' && !strchr("?#@{}\\\"<>", *c);
    return is_url ? 0
                  : hd_error_set(fault, HD_EINVAL,
                                 "not a URL such as http://10.0.0.5:2024, without a user and a "
                                 "query");
}

static int check_store(const char *text, struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, (size_t)4 * HD_CONFIG_MAX_FILE);
    err = hd_url_parse(&url, text, &arena, fault);
    hd_arena_fini(&arena);
    return err;
}

static const struct hd_setting settings[] = {
    {"host", HD_SETTING_TEXT, AT(host), "127.0.0.1", "ADDRESS",
     .help = "address to listen on; a loopback address without `auth`", .title = "Where",
     .check = check_host},
    {"port", HD_SETTING_INT, AT(port), "2024", "NUMBER",
     .help = "port; 0: any free one. If the default is taken: the next free one", .max = 65535},
    {"store", HD_SETTING_TEXT, AT(store), "sqlite:heddle.db", "URL",
     .help = "database: sqlite:FILE, postgresql://…, memory:", .is_secret = true,
     .check = check_store},
    {"tls.certificate", HD_SETTING_TEXT, AT(tls_certificate), "", "FILE",
     .help = "certificate and its chain (PEM): serve https"},
    {"tls.key", HD_SETTING_TEXT, AT(tls_key), "", "FILE",
     .help = "private key of the certificate (PEM)"},
    {"allowed_hosts", HD_SETTING_LIST, AT(allowed_hosts), "", "HOST,…",
     .help = "additional accepted Host names when `auth` is off"},
    {"trusted_proxies", HD_SETTING_LIST, AT(trusted_proxies), "", "ADDRESS,…",
     .help = "proxies whose X-Forwarded-For is trusted: 10.0.0.0/8"},
    {"graphs", HD_SETTING_GRAPHS, AT(graphs), "", "ID=FILE",
     .help = "a graph: its declaration, or ./agent.py:graph; may be repeated"},
    {"auth", HD_SETTING_OBJECT, AT(auth), "", "an object",
     .help = "authentication (docs/authentication.md)"},
    {"config", HD_SETTING_FILE, 0, "", "FILE",
     .help = "JSON file with any of these settings, or a langgraph.json"},

    {"max_body", HD_SETTING_SIZE, AT(max_body), "64m", "BYTES", .help = "largest request body",
     .title = "Limits", .min = 1024, .max = GIB},
    {"max_answer", HD_SETTING_SIZE, AT(max_answer), "64m", "BYTES",
     .help = "largest response; larger ones are refused", .min = MIB, .max = GIB},
    {"answer_memory", HD_SETTING_SIZE, AT(answer_memory), "512m", "BYTES",
     .help = "memory of all responses that are being built or sent", .min = MIB, .max = 1024 * GIB},
    {"max_connections", HD_SETTING_SIZE, AT(max_connections), "10000", "NUMBER",
     .help = "concurrent connections", .min = 1, .max = 1000000},
    {"idle_timeout", HD_SETTING_DURATION, AT(idle_timeout_us), "75", "SECONDS",
     .help = "idle connections are closed after this time", .min = 1, .max = DAY_SECONDS,
     .scale = SECOND},
    {"slow_timeout", HD_SETTING_DURATION, AT(slow_timeout_us), "30", "SECONDS",
     .help = "time limit for clients that send or read slowly", .min = 1, .max = DAY_SECONDS,
     .scale = SECOND},
    {"max_runs", HD_SETTING_INT, AT(max_runs), "1000", "NUMBER", .help = "concurrent runs",
     .min = 1, .max = 1000000},
    {"run_timeout", HD_SETTING_DURATION, AT(run_timeout_us), "3600", "SECONDS",
     .help = "time limit of a run", .min = 1, .max = 366 * DAY_SECONDS, .scale = SECOND},
    {"outage_timeout", HD_SETTING_DURATION, AT(outage_timeout_us), "300", "SECONDS",
     .help = "how long runs wait for an unavailable or full store", .max = DAY_SECONDS,
     .scale = SECOND},
    {"drain", HD_SETTING_DURATION, AT(drain_us), "10", "SECONDS",
     .help = "time for open responses when the server stops", .max = DAY_SECONDS, .scale = SECOND},

    {"cluster.address", HD_SETTING_TEXT, AT(cluster_address), "", "URL",
     .help = "URL at which the other servers of the store reach this one",
     .title = "Several servers", .check = check_cluster_address},
    {"cluster.key", HD_SETTING_TEXT, AT(cluster_key), "", "TEXT",
     .help = "shared key of the servers of a store: at least 32 characters", .is_secret = true,
     .check = check_cluster_key},
    {"cluster.lease", HD_SETTING_DURATION, AT(cluster_lease_us), "10", "SECONDS",
     .help = "a server that is silent for so long is replaced by the others", .min = 1, .max = 600,
     .scale = SECOND},

    {"stream.end_event", HD_SETTING_BOOL, AT(stream_end_event), "true", "",
     .help = "end streams with an `end` event: run, checkpoint, status", .title = "Streams"},
    {"stream.heartbeat", HD_SETTING_DURATION, AT(stream_heartbeat_ms), "5", "SECONDS",
     .help = "a silent stream sends a comment at this interval", .min = 1, .max = 3600,
     .scale = 1000},
    {"stream.memory", HD_SETTING_SIZE, AT(stream_memory), "256m", "BYTES",
     .help = "memory for the events of all threads", .min = MIB, .max = 1024 * GIB},
    {"stream.retention.minutes", HD_SETTING_DURATION, AT(stream_retention_us), "1440", "MINUTES",
     .help = "how long events of resumable runs are stored", .max = YEAR_MINUTES, .scale = MINUTE},
    {"stream.retention.events", HD_SETTING_SIZE, AT(stream_retention_events), "100000", "NUMBER",
     .help = "stored events per thread", .min = 1, .max = 1000000000},
    {"stream.retention.bytes", HD_SETTING_SIZE, AT(stream_retention_bytes), "64m", "BYTES",
     .help = "bytes of stored events per thread", .min = 1024, .max = 1024 * GIB},

    {"errors.plain_text", HD_SETTING_BOOL, AT(errors_plain_text), "false", "",
     .help = "errors as plain text instead of {\"detail\": …}", .title = "Answers"},
    {"stop.keep_answer", HD_SETTING_BOOL, AT(stop_keeps_answer), "true", "",
     .help = "a cancelled run keeps the partial text of its agent"},
    {"namespaces.show", HD_SETTING_BOOL, AT(namespaces_show), "true", "",
     .help = "show an agent's root namespace; false: \"\" as in LangGraph"},
    {"namespaces.parallel", HD_SETTING_BOOL, AT(namespaces_parallel), "true", "",
     .help = "agents of a thread run at the same time; false: one run per thread"},
    {"headers.to_graphs", HD_SETTING_LIST, AT(headers_to_graphs),
     "user-agent,x-org-id,x-supabase-access-token,x-user-tier", "NAME,…",
     .help = "request headers passed to graphs; x-app-* is a prefix"},
    {"headers.not_to_graphs", HD_SETTING_LIST, AT(headers_not_to_graphs), "", "NAME,…",
     .help = "exceptions from headers.to_graphs"},
    {"cors.allow_origins", HD_SETTING_LIST, AT(cors_allow_origins), "", "ORIGIN,…",
     .help = "allowed origins of pages; without `auth` also loopback origins"},
    {"cors.allow_origin_regex", HD_SETTING_TEXT, AT(cors_allow_origin_regex), "", "REGEX",
     .help = "more allowed origins: https://.*\\.example\\.com (POSIX, whole)",
     .check = check_regex},
    {"cors.allow_methods", HD_SETTING_LIST, AT(cors_allow_methods), "", "METHOD,…",
     .help = "methods that pages may use; none: all", .check = check_token},
    {"cors.allow_headers", HD_SETTING_LIST, AT(cors_allow_headers), "", "NAME,…",
     .help = "headers that pages may send; none: all", .check = check_token},
    {"cors.expose_headers", HD_SETTING_LIST, AT(cors_expose_headers), "", "NAME,…",
     .help = "headers that pages may read besides Heddle's own", .check = check_token},
    {"cors.allow_credentials", HD_SETTING_BOOL, AT(cors_allow_credentials), "false", "",
     .help = "allow cookies; needs a list of origins"},
    {"cors.max_age", HD_SETTING_INT, AT(cors_max_age), "600", "SECONDS",
     .help = "how long browsers cache a preflight", .max = DAY_SECONDS},

    {"http.app", HD_SETTING_TEXT, AT(http_app), "", "FILE:NAME",
     .help = "your web application for all other paths: ./app.py:app", .title = "Parts of the API"},
    {"http.middleware_order", HD_SETTING_CHOICE, AT(http_middleware_order), "default", "WORD",
     .help = "order of its middleware: middleware_first (default), auth_first",
     .choices = middleware_orders},
    {"http.enable_custom_route_auth", HD_SETTING_BOOL, AT(http_custom_route_auth), "false", "",
     .help = "its paths require authentication"},
    {"http.mount_prefix", HD_SETTING_TEXT, AT(http_mount_prefix), "", "PATH",
     .help = "prefix of all paths: /agents", .check = check_prefix},
    {"http.disable_assistants", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_ASSISTANTS]), "false", "",
     .help = "no /assistants"},
    {"http.disable_threads", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_THREADS]), "false", "",
     .help = "no /threads, except their runs"},
    {"http.disable_runs", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_RUNS]), "false", "",
     .help = "no runs and no crons"},
    {"http.disable_store", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_STORE]), "false", "",
     .help = "no /store"},
    {"http.disable_crons", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_CRONS]), "false", "",
     .help = "no crons"},
    {"http.disable_mcp", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_MCP]), "false", "",
     .help = "no /mcp"},
    {"http.disable_a2a", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_A2A]), "false", "",
     .help = "no /a2a"},
    {"http.disable_meta", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_META]), "false", "",
     .help = "no /info, /metrics, /docs and /openapi.json"},
    {"http.disable_ui", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_UI]), "false", "",
     .help = "no /ui"},
    {"http.disable_webhooks", HD_SETTING_BOOL, AT(http_disable[HD_HTTP_WEBHOOKS]), "false", "",
     .help = "runs with a webhook are refused"},

    {"page.enabled", HD_SETTING_BOOL, AT(page_enabled), "true", "", .help = "the chat page at /",
     .title = "Chat page"},
    {"page.sign_in", HD_SETTING_OBJECTS, AT(page_sign_in), "", "a list",
     .help = "issuers for signing in (docs/authentication.md)", .is_secret = true},

    {"runtime.workers", HD_SETTING_INT, AT(runtime_workers), "1", "NUMBER",
     .help = "worker processes per language; 0: only remote ones",
     .title = "Python and TypeScript graphs", .max = 256},
    {"runtime.jobs", HD_SETTING_INT, AT(runtime_jobs), "100", "NUMBER",
     .help = "concurrent runs per worker; others wait", .min = 1, .max = 100000},
    {"runtime.memory", HD_SETTING_SIZE, AT(runtime_memory), "0", "BYTES",
     .help = "a worker with more memory is replaced; 0: no limit", .max = 1024 * GIB},
    {"runtime.hang_timeout", HD_SETTING_DURATION, AT(runtime_hang_timeout_us), "60", "SECONDS",
     .help = "a worker that does not respond for this time is killed", .min = 1, .max = DAY_SECONDS,
     .scale = SECOND},
    {"runtime.start_timeout", HD_SETTING_DURATION, AT(runtime_start_timeout_us), "120", "SECONDS",
     .help = "time for a worker to load its graphs", .min = 1, .max = DAY_SECONDS, .scale = SECOND},
    {"runtime.reload", HD_SETTING_BOOL, AT(runtime_reload), "false", "",
     .help = "reload graphs when their files change"},
    {"runtime.python", HD_SETTING_TEXT, AT(runtime_python), "", "PROGRAM",
     .help = "Python; none: the virtual environment's, else python3"},
    {"runtime.node", HD_SETTING_TEXT, AT(runtime_node), "", "PROGRAM",
     .help = "Node.js; none: node"},
    {"runtime.listen", HD_SETTING_TEXT, AT(runtime_listen), "", "HOST:PORT",
     .help = "address for remote workers; none: not offered", .check = check_listen},
    {"runtime.key", HD_SETTING_TEXT, AT(runtime_key), "", "TEXT",
     .help = "shared key of remote workers: at least 16 characters", .is_secret = true,
     .check = check_key},
    {"dependencies", HD_SETTING_LIST, AT(dependencies), "", "FOLDER,…",
     .help = "folders and packages that Python graphs need"},
    {"env", HD_SETTING_ENV, AT(env), "", "a path or an object",
     .help = "a file with variables, such as .env, or the variables"},
    {"checkpointer.serde", HD_SETTING_OBJECT, AT(serde), "", "an object",
     .help = "types that Python may load from LangGraph's own checkpoints"},
    {"store.index", HD_SETTING_OBJECT, AT(store_index), "", "an object",
     .help = "semantic search: dims, embed and fields"},

    {"ttl.threads", HD_SETTING_DURATION, AT(ttl_threads_us), "0", "MINUTES",
     .help = "threads expire this long after their last change; 0: never", .title = "Expiry",
     .max = 100 * YEAR_MINUTES, .scale = MINUTE},
    {"ttl.strategy", HD_SETTING_CHOICE, AT(ttl_strategy), "delete", "WORD",
     .help = "for expired threads: delete, keep_latest (state), keep_branches",
     .choices = hd_ttl_strategies},
    {"ttl.keep_last", HD_SETTING_INT, AT(ttl_keep_last), "1", "NUMBER",
     .help = "keep_branches: checkpoints kept per branch", .min = 1, .max = HD_KEEP_LAST_MAX},
    {"ttl.sliding", HD_SETTING_BOOL, AT(ttl_sliding), "true", "",
     .help = "each change restarts the time; false: it starts at creation"},
    {"ttl.items", HD_SETTING_DURATION, AT(ttl_items_us), "0", "MINUTES",
     .help = "store items expire this long after their last use; 0: never",
     .max = 100 * YEAR_MINUTES, .scale = MINUTE},
    {"ttl.refresh_on_read", HD_SETTING_BOOL, AT(ttl_refresh_on_read), "true", "",
     .help = "reading an item counts as a use"},
    {"ttl.sweep_interval", HD_SETTING_DURATION, AT(ttl_sweep_interval_us), "5", "MINUTES",
     .help = "interval of the removal of expired data; 0: never", .max = YEAR_MINUTES,
     .scale = MINUTE},

    {"outgoing.private", HD_SETTING_CHOICE, AT(outgoing_private), "auto", "WORD",
     .help = "requests of runs to private addresses; auto: deny with `auth`",
     .title = "Requests of runs", .choices = outgoing},
    {"outgoing.allowed_hosts", HD_SETTING_LIST, AT(outgoing_allowed_hosts), "", "HOST,…",
     .help = "hosts always allowed to runs: name, name:port, 10.0.0.0/8"},

    {"webhooks.require_https", HD_SETTING_BOOL, AT(webhooks_require_https), "false", "",
     .help = "only https URLs", .title = "Webhooks"},
    {"webhooks.allow_loopback", HD_SETTING_BOOL, AT(webhooks_allow_loopback), "true", "",
     .help = "allow URLs of this machine, and paths of this server"},
    {"webhooks.allowed_domains", HD_SETTING_LIST, AT(webhooks_allowed_domains), "", "DOMAIN,…",
     .help = "allowed domains; *.example.com: all below; none: all"},
    {"webhooks.allowed_ports", HD_SETTING_PORTS, AT(webhooks_allowed_ports), "", "PORT,…",
     .help = "allowed ports; none: all"},
    {"webhooks.max_url_length", HD_SETTING_INT, AT(webhooks_max_url_length), "65536", "BYTES",
     .help = "length limit of webhook URLs", .min = 1, .max = 65536},
    {"webhooks.headers", HD_SETTING_OBJECT, AT(webhooks_headers), "", "an object",
     .help = "more headers; ${{ env.NAME }} in a value is that variable"},
    {"webhooks.env_prefix", HD_SETTING_TEXT, AT(webhooks_env_prefix), "LG_WEBHOOK_", "TEXT",
     .help = "required prefix of NAME"},
    {"webhooks.secret", HD_SETTING_TEXT, AT(webhooks_secret), "", "TEXT",
     .help = "key of the header Heddle-Signature; none: no header", .is_secret = true},
    {"webhooks.retries", HD_SETTING_INT, AT(webhooks_retries), "5", "NUMBER",
     .help = "further attempts after the first", .max = 20},
    {"webhooks.max_age", HD_SETTING_DURATION, AT(webhooks_max_age_us), "1440", "MINUTES",
     .help = "an undelivered webhook is dropped after this time", .min = 1, .max = YEAR_MINUTES,
     .scale = MINUTE},
    {"webhooks.timeout", HD_SETTING_DURATION, AT(webhooks_timeout_us), "10", "SECONDS",
     .help = "time limit of one attempt", .min = 1, .max = 600, .scale = SECOND},

    {"limits.requests", HD_SETTING_INT, AT(limits_requests), "60000", "NUMBER",
     .help = "requests per minute; 0: no limit", .title = "Limits for each principal",
     .max = 60000000},
    {"limits.runs", HD_SETTING_INT, AT(limits_runs), "1000", "NUMBER",
     .help = "runs in flight; 0: no limit", .max = 1000000},
    {"limits.streams", HD_SETTING_INT, AT(limits_streams), "1000", "NUMBER",
     .help = "open streams; 0: no limit", .max = 1000000},
    {"limits.bytes", HD_SETTING_SIZE, AT(limits_bytes), "0", "BYTES",
     .help = "bytes stored in threads and items; 0: no limit", .max = 1024 * 1024 * GIB},

    {"log.level", HD_SETTING_CHOICE, AT(log_level), "info", "LEVEL",
     .help = "debug, info, warn, error or off", .title = "Operation", .choices = levels},
    {"log.format", HD_SETTING_CHOICE, AT(log_format), "text", "FORMAT", .help = "text or json",
     .choices = formats},
    {"log.access", HD_SETTING_BOOL, AT(log_access), "false", "",
     .help = "log each response at level info"},
    {"audit.file", HD_SETTING_TEXT, AT(audit_file), "", "FILE",
     .help = "audit log, one JSON line per request; none: no log"},
    {"record", HD_SETTING_BOOL, AT(record), "false", "",
     .help = "record exchanges with models and servers, for heddle replay"},
    {"metrics", HD_SETTING_BOOL, AT(metrics), "true", "",
     .help = "serve GET /metrics (Prometheus)"},
};

const struct hd_setting *hd_setting_at(size_t index)
{
    return index < HD_COUNT(settings) ? &settings[index] : NULL;
}

const struct hd_setting *hd_setting_find(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(settings); i++) {
        if (hd_slice_eq(hd_slice_cstr(settings[i].name), name))
            return &settings[i];
    }
    return NULL;
}

bool hd_setting_is_json(const struct hd_setting *setting)
{
    return setting->type == HD_SETTING_OBJECT || setting->type == HD_SETTING_OBJECTS ||
           setting->type == HD_SETTING_ENV;
}

static void spell(const char *prefix, const char *name, char separator, int is_upper,
                  char out[HD_CONFIG_MAX_NAME])
{
    int len = snprintf(out, HD_CONFIG_MAX_NAME, "%s%s", prefix, name);

    for (int i = (int)strlen(prefix); i < len && i < HD_CONFIG_MAX_NAME; i++) {
        if (out[i] == '.' || out[i] == '_')
            out[i] = separator;
        else if (is_upper && out[i] >= 'a' && out[i] <= 'z')
            out[i] = (char)(out[i] - 'a' + 'A');
    }
}

/* Graphs are given one by one, so their flag is singular. */
void hd_setting_flag(const struct hd_setting *setting, char out[HD_CONFIG_MAX_NAME])
{
    spell("--", setting->type == HD_SETTING_GRAPHS ? "graph" : setting->name, '-', 0, out);
}

void hd_setting_variable(const struct hd_setting *setting, char out[HD_CONFIG_MAX_NAME])
{
    spell("HEDDLE_", setting->name, '_', 1, out);
}

/* ---- help -------------------------------------------------------------- */

#define HELP_COLUMN 33
#define HELP_WIDTH 100

static int help_line(struct hd_buf *out, const struct hd_setting *setting)
{
    bool is_switch = setting->type == HD_SETTING_BOOL;
    size_t width;
    char flag[HD_CONFIG_MAX_NAME], left[2 * HD_CONFIG_MAX_NAME];
    int err;

    hd_setting_flag(setting, flag);
    (void)snprintf(left, sizeof(left), "  %s%s%s", flag, is_switch ? "" : " ", setting->value);
    width = hd_utf8_count(hd_slice_cstr(left));
    err = hd_buf_printf(out, "%s%*s", left,
                        width < HELP_COLUMN - 1 ? (int)(HELP_COLUMN - 1 - width) : 0, "");
    /* The text of a long option is on the next line. */
    if (!err && width >= HELP_COLUMN - 1)
        err = hd_buf_printf(out, "\n%*s", HELP_COLUMN - 1, "");
    if (!err)
        err = hd_buf_printf(out, " %s", setting->help);
    /* So is a long default. */
    if (!err && *setting->standard &&
        HELP_COLUMN + hd_utf8_count(hd_slice_cstr(setting->help)) +
                hd_utf8_count(hd_slice_cstr(setting->standard)) + 3 >
            HELP_WIDTH)
        err = hd_buf_printf(out, "\n%*s", HELP_COLUMN - 1, "");
    if (!err && *setting->standard)
        err = hd_buf_printf(out, " [%s]", setting->standard);
    return err ? err : hd_buf_append_byte(out, '\n');
}

int hd_config_help(struct hd_buf *out)
{
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(settings); i++) {
        if (settings[i].title)
            err = hd_buf_printf(out, "%s%s:\n", i > 0 ? "\n" : "", settings[i].title);
        if (!err && !hd_setting_is_json(&settings[i]))
            err = help_line(out, &settings[i]);
    }
    if (!err)
        err = hd_buf_printf(
            out,
            "\n"
            "Values are written as --port 2024 or --port=2024; switches as --metrics,\n"
            "--no-metrics or --metrics=false. Sizes may end in k, m or g; times may be decimal.\n"
            "\n"
            "Every option is an environment variable too (--stream-end-event is\n"
            "HEDDLE_STREAM_END_EVENT, --graph is HEDDLE_GRAPHS) and a member of the JSON file\n"
            "({\"stream\": {\"end_event\": false}}). A flag overrides the environment, the\n"
            "environment overrides the file. `auth` (docs/authentication.md) is a member of the\n"
            "file only. docs/configuration.md describes all settings, docs/projects.md the\n"
            "members of a langgraph.json.\n");
    return err;
}
