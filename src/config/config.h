/*
 * The server's configuration. One table (config_table.c) has the name, type, default and meaning of
 * every setting. Everything else follows from the name:
 *
 *   stream.end_event             the name, and the member of the JSON file, nested or not
 *   --stream-end-event           the flag
 *   HEDDLE_STREAM_END_EVENT      the environment variable
 *
 * A flag wins over the environment, the environment over the file, the file over the default. Every
 * value is checked, and an error names its source.
 */
#ifndef HD_CONFIG_CONFIG_H
#define HD_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/slice.h"
#include "net/outgoing.h"
#include "runtime/runtime.h"

#define HD_CONFIG_MAX_FILE (1 << 20)
#define HD_CONFIG_MAX_ITEMS 1000 /* of a list */
#define HD_CONFIG_MAX_NAME 64
#define HD_CONFIG_CLUSTER_KEY_MIN 32

struct hd_config_graph {
    struct hd_slice id;
    const char *file; /* of its declaration; from the JSON file, relative to that file's folder */
    struct hd_slice description; /* may be empty */
    bool is_remote;              /* it is code, and runs in workers; `file` is NULL */
    enum hd_rt_language language;
    struct hd_slice path; /* of a remote one: "./agent.py:graph", relative to config->folder */
};

struct hd_config_graphs {
    struct hd_config_graph *items;
    size_t count;
};

struct hd_config_list {
    struct hd_slice *items;
    size_t count;
};

struct hd_config_ports {
    int *items;
    size_t count;
};

/* A part of the file that is read elsewhere. */
struct hd_config_object {
    hd_json_val val;        /* NULL: none */
    struct hd_slice folder; /* paths in it are relative to it; may be empty */
    struct hd_json json;    /* private */
};

/* Parts of the API that can be left out: http.disable_assistants, … */
enum hd_http_part {
    HD_HTTP_ASSISTANTS,
    HD_HTTP_THREADS,
    HD_HTTP_RUNS,
    HD_HTTP_STORE,
    HD_HTTP_CRONS,
    HD_HTTP_MCP,
    HD_HTTP_A2A,
    HD_HTTP_META, /* /info, /metrics, /docs, /openapi.json */
    HD_HTTP_UI,
    HD_HTTP_WEBHOOKS,
    HD_HTTP_PARTS
};

enum hd_ttl_strategy { HD_TTL_DELETE, HD_TTL_KEEP_LATEST, HD_TTL_KEEP_BRANCHES };
/* True if credentials are checked before the application's middleware receives a request. */
enum hd_middleware_order {
    HD_MIDDLEWARE_DEFAULT, /* as middleware_first */
    HD_MIDDLEWARE_AUTH_FIRST,
    HD_MIDDLEWARE_FIRST
};

enum hd_outgoing_private { HD_OUTGOING_AUTO, HD_OUTGOING_ALLOW, HD_OUTGOING_DENY };

/* All strings are NUL-terminated and live as long as the configuration. Never changes. */
struct hd_config {
    const char *host;
    int port;
    bool port_is_given;          /* otherwise the next free one will do */
    const char *store;           /* a URL */
    const char *tls_certificate; /* files; "": without TLS */
    const char *tls_key;
    struct hd_config_list allowed_hosts;   /* names of the server besides those of loopback */
    struct hd_config_list trusted_proxies; /* with trusted X-Forwarded-For */
    const struct hd_net *proxies;          /* the same, read */
    struct hd_config_graphs graphs;
    struct hd_config_object auth; /* gate/auth_service.h */

    /* Of a project: project.h. */
    const char *file;   /* of the configuration; "": none */
    const char *folder; /* paths of the project are relative to it; "": the current one */
    struct hd_config_list dependencies;
    struct hd_config_object env;         /* an object, or the path of a file (a string) */
    struct hd_config_object store_index; /* {"dims", "embed", "fields"} */
    struct hd_config_object serde;       /* checkpointer.serde */
    const char *http_app;                /* "": none */
    const char *http_mount_prefix;       /* "": none */
    bool http_custom_route_auth;
    int http_middleware_order; /* enum hd_middleware_order */
    bool http_disable[HD_HTTP_PARTS];

    bool page_enabled;                    /* the chat page at / */
    struct hd_config_object page_sign_in; /* a list: auth/oidc.h */

    int runtime_workers; /* of each language that is used */
    int runtime_jobs;
    size_t runtime_memory; /* 0: any */
    const char *runtime_listen;
    const char *runtime_key;
    int64_t runtime_hang_timeout_us;
    int64_t runtime_start_timeout_us;
    bool runtime_reload;
    const char *runtime_python; /* "": found */
    const char *runtime_node;

    size_t max_body;
    size_t max_answer;    /* of one answer */
    size_t answer_memory; /* of all answers that are being built or sent */
    size_t max_connections;
    int64_t idle_timeout_us;
    int64_t slow_timeout_us;
    int max_runs;
    int64_t run_timeout_us;
    int64_t outage_timeout_us;
    const char *cluster_address; /* with the key: the store may have several servers */
    const char *cluster_key;
    int64_t cluster_lease_us;
    int64_t drain_us;

    bool stream_end_event;
    int64_t stream_heartbeat_ms;
    size_t stream_memory; /* of all threads */
    int64_t stream_retention_us;
    size_t stream_retention_events; /* of one thread, like the bytes */
    size_t stream_retention_bytes;

    bool errors_plain_text;
    bool stop_keeps_answer;
    bool namespaces_show;
    bool namespaces_parallel;
    struct hd_config_list headers_to_graphs;
    struct hd_config_list headers_not_to_graphs;
    struct hd_config_list cors_allow_origins; /* besides loopback's, without `auth` */
    const char *cors_allow_origin_regex;      /* "": none */
    struct hd_config_list cors_allow_methods; /* empty: all */
    struct hd_config_list cors_allow_headers; /* empty: all */
    struct hd_config_list cors_expose_headers;
    bool cors_allow_credentials;
    int cors_max_age;

    int64_t ttl_threads_us; /* 0: for ever */
    int ttl_strategy;       /* enum hd_ttl_strategy */
    int ttl_keep_last;      /* of HD_TTL_KEEP_BRANCHES */
    bool ttl_sliding;       /* the time begins anew with each change */
    int64_t ttl_items_us;   /* 0: for ever */
    bool ttl_refresh_on_read;
    int64_t ttl_sweep_interval_us;

    int outgoing_private; /* enum hd_outgoing_private */
    struct hd_config_list outgoing_allowed_hosts;
    struct hd_outgoing outgoing; /* what follows from both */

    bool webhooks_require_https;
    bool webhooks_allow_loopback;
    struct hd_config_list webhooks_allowed_domains; /* empty: all */
    struct hd_config_ports webhooks_allowed_ports;  /* empty: all */
    const char *webhooks_secret;                    /* "": no signature */
    int webhooks_max_url_length;
    struct hd_config_object webhooks_headers; /* names and values; ${{ env.NAME }} in them */
    const char *webhooks_env_prefix;          /* that NAME must begin with */
    int webhooks_retries;
    int64_t webhooks_max_age_us;
    int64_t webhooks_timeout_us;

    /* Of one principal; 0: any number. */
    int limits_requests; /* in a minute */
    int limits_runs;
    int limits_streams;
    size_t limits_bytes;

    const char *audit_file; /* "": none */

    bool record; /* exchanges with models and other servers: recording.h */

    int log_level;  /* enum hd_log_level */
    int log_format; /* enum hd_log_format */
    bool log_access;
    bool metrics;

    struct hd_config_list warnings; /* about ignored members of the file */

    struct hd_arena arena; /* private */
};

struct hd_config_source {
    int argc;    /* of the flags; the first is the command's name and skipped */
    char **argv; /* may be NULL */
    char **env;  /* "NAME=value", …, NULL; may be NULL */
};

/*
 * Reads everything, also the file that --config or HEDDLE_CONFIG names. HD_EINVAL (or HD_ENOMEM)
 * with a sentence; then nothing needs to be freed.
 */
HD_MUST_CHECK int hd_config_load(struct hd_config *config, const struct hd_config_source *source,
                                 struct heddle_error *fault);
void hd_config_fini(struct hd_config *config);

/* 127.0.0.0/8, ::1 (with or without brackets, also as ::ffff:127.0.0.1), localhost. */
bool hd_config_is_loopback(const char *host);
/*
 * HD_EINVAL, with the remedy in the text, when authentication is off and the host is not loopback.
 */
HD_MUST_CHECK int hd_config_check_host(const char *host, bool has_authentication,
                                       struct heddle_error *fault);

/* ---- the table -------------------------------------------------------- */

enum hd_setting_type {
    HD_SETTING_TEXT,     /* const char * */
    HD_SETTING_BOOL,     /* bool */
    HD_SETTING_INT,      /* int */
    HD_SETTING_SIZE,     /* size_t; k, m and g after the number are 2^10, 2^20 and 2^30 */
    HD_SETTING_DURATION, /* int64_t: the number given, which may have decimals, times `scale` */
    HD_SETTING_CHOICE,   /* int: the index in `choices` */
    HD_SETTING_LIST,     /* struct hd_config_list */
    HD_SETTING_PORTS,    /* struct hd_config_ports */
    HD_SETTING_GRAPHS,   /* struct hd_config_graphs */
    HD_SETTING_OBJECT,   /* struct hd_config_object; in the file alone */
    HD_SETTING_OBJECTS,  /* the same, a list */
    HD_SETTING_ENV,      /* the same, or a string */
    HD_SETTING_FILE      /* nothing: the configuration's own file */
};

struct hd_setting {
    const char *name;
    enum hd_setting_type type;
    size_t offset;        /* in struct hd_config */
    const char *standard; /* the default, written as a flag would be */
    const char *value;    /* what the help calls the value */
    const char *help;     /* one line */
    const char *title;    /* of the group that begins here, or NULL */
    int64_t min, max;     /* numbers and sizes; durations: in the unit they are given in */
    int64_t scale;
    const char *const *choices; /* NULL after the last */
    bool is_secret;             /* never shown */
    int (*check)(const char *text,
                 struct heddle_error *fault); /* texts, or each of a list; may be NULL */
};

/* NULL after the last. */
const struct hd_setting *hd_setting_at(size_t index);
const struct hd_setting *hd_setting_find(struct hd_slice name);
/* In the file alone. */
bool hd_setting_is_json(const struct hd_setting *setting);
/* "--stream-end-event" and "HEDDLE_STREAM_END_EVENT". */
void hd_setting_flag(const struct hd_setting *setting, char out[HD_CONFIG_MAX_NAME]);
void hd_setting_variable(const struct hd_setting *setting, char out[HD_CONFIG_MAX_NAME]);

/* The options in `heddle serve --help`. */
HD_MUST_CHECK int hd_config_help(struct hd_buf *out);

#endif
