/*
 * From a request to its response.
 *
 * A route has up to two parts, which are the last stages of the pipeline (request/pipeline.h).
 * `work` runs on a store thread, where it may wait for the database; `then` follows on the loop
 * when `work` returns HD_NEXT. Most routes only have `work`, which writes the response into the
 * call and returns HD_DONE.
 *
 * To add an endpoint: write the function in the file of its resource and add one line to the table
 * of that file (routes.c names all tables). The router, /openapi.json and /docs come from these
 * tables.
 */
#ifndef HD_API_API_H
#define HD_API_API_H

#include <stdbool.h>
#include <stddef.h>

#include "api/request/budget.h"
#include "api/request/pipeline.h"
#include "app/app.h"
#include "auth/identity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "gate/limits.h"
#include "http/exchange.h"
#include "http/query.h"
#include "http/request.h"
#include "http/router.h"

struct hd_api;
struct hd_authorized;
struct hd_call;
struct hd_forwarded;
struct hd_forwarding;

/* The access that a route requires; request/access.h. */
enum hd_access {
    HD_ACCESS_UNSET,  /* a mistake */
    HD_ACCESS_PUBLIC, /* no credentials required */
    HD_ACCESS_USER,   /* any authenticated caller; finds only the caller's own records */
    HD_ACCESS_VIEWER, /* the first part of the path is a thread: its viewers, editors and owner */
    HD_ACCESS_EDITOR,
    HD_ACCESS_OWNER,
    HD_ACCESS_ADMIN /* operators */
};

/* The custom auth event of a route, `resource.action`; request/authorize.h. */
enum hd_on {
    HD_ON_UNSET,   /* a mistake */
    HD_ON_NOTHING, /* no event: handlers are not called */
    HD_ON_THREADS_CREATE,
    HD_ON_THREADS_READ,
    HD_ON_THREADS_UPDATE,
    HD_ON_THREADS_DELETE,
    HD_ON_THREADS_SEARCH,
    HD_ON_THREADS_CREATE_RUN,
    HD_ON_ASSISTANTS_CREATE,
    HD_ON_ASSISTANTS_READ,
    HD_ON_ASSISTANTS_UPDATE,
    HD_ON_ASSISTANTS_DELETE,
    HD_ON_ASSISTANTS_SEARCH,
    HD_ON_CRONS_CREATE,
    HD_ON_CRONS_UPDATE,
    HD_ON_CRONS_DELETE,
    HD_ON_CRONS_SEARCH,
    HD_ON_STORE_PUT,
    HD_ON_STORE_GET,
    HD_ON_STORE_DELETE,
    HD_ON_STORE_SEARCH,
    HD_ON_STORE_LIST_NAMESPACES
};

/* The server of a cluster that answers; request/forward.h. */
enum hd_answered_by {
    HD_BY_ANY,
    HD_BY_HOLDER,      /* the one that holds the thread of the path, when one does */
    HD_BY_LAST_HOLDER, /* the same, or the one that held it last */
    HD_BY_FOLLOWER     /* the one that was asked; it reads the events of the holders */
};

struct hd_endpoint {
    enum hd_method method;
    const char *pattern;
    enum hd_access access;
    enum hd_on on;
    enum hd_on also_on; /* a second event; HD_ON_UNSET: none */
    bool grows;         /* stores data of any size: refused over the storage limit */
    bool frees;         /* deletes data: the storage limit is measured again */
    enum hd_answered_by by;
    bool admits;         /* starts a run on the thread of the path */
    bool is_application; /* of the project's application (custom.h), which parses the query */
    hd_stage_fn work;    /* store thread; may be NULL */
    hd_stage_fn then;    /* loop; may be NULL */

    /* For /openapi.json: names in its components (schemas.json); NULL: none. */
    const char *tag;
    const char *summary;
    const char *query;  /* parameters, separated by spaces: "limit offset" */
    const char *body;   /* the schema of the body; a leading '?' marks an optional body */
    const char *answer; /* its schema, or media types, separated by spaces: "text/event-stream" */
    int status;         /* of success; 0: 200 */
    int also;           /* another status; 0: none */
};

struct hd_routes {
    const struct hd_endpoint *list;
    size_t count;
};

/* All tables, one for each resource. */
extern const struct hd_routes hd_routes_assistants;
extern const struct hd_routes hd_routes_assistant_search;
extern const struct hd_routes hd_routes_assistant_graph;
extern const struct hd_routes hd_routes_threads;
extern const struct hd_routes hd_routes_thread_search;
extern const struct hd_routes hd_routes_thread_delete;
extern const struct hd_routes hd_routes_states;
extern const struct hd_routes hd_routes_history;
extern const struct hd_routes hd_routes_branches;
extern const struct hd_routes hd_routes_timeline;
extern const struct hd_routes hd_routes_message_origins;
extern const struct hd_routes hd_routes_agents;
extern const struct hd_routes hd_routes_room_settings;
extern const struct hd_routes hd_routes_room_delete;
extern const struct hd_routes hd_routes_room_feedback;
extern const struct hd_routes hd_routes_room_edit;
extern const struct hd_routes hd_routes_room_cascades;
extern const struct hd_routes hd_routes_room_inbox;
extern const struct hd_routes hd_routes_room_question;
extern const struct hd_routes hd_routes_room_stop;
extern const struct hd_routes hd_routes_room_typing;
extern const struct hd_routes hd_routes_room_messages;
extern const struct hd_routes hd_routes_room_post;
extern const struct hd_routes hd_routes_room_branch;
extern const struct hd_routes hd_routes_run_create;
extern const struct hd_routes hd_routes_runs;
extern const struct hd_routes hd_routes_stream_join;
extern const struct hd_routes hd_routes_participants;
extern const struct hd_routes hd_routes_invitations;
extern const struct hd_routes hd_routes_items;
extern const struct hd_routes hd_routes_peer_cancel;
extern const struct hd_routes hd_routes_crons;
extern const struct hd_routes hd_routes_cron_search;
extern const struct hd_routes hd_routes_system;
extern const struct hd_routes hd_routes_metrics;
extern const struct hd_routes hd_routes_openapi;
extern const struct hd_routes hd_routes_page;
extern const struct hd_routes hd_routes_page_sign_in;

/* Number `index` of all routes; NULL after the last. */
const struct hd_endpoint *hd_endpoint_at(size_t index);
/* http.disable_…: false for a disabled endpoint. */
struct hd_config;
bool hd_endpoint_is_on(const struct hd_config *config, const struct hd_endpoint *endpoint);

struct hd_call_header {
    struct hd_call_header *next;
    struct hd_slice name;
    struct hd_slice value;
};

/* One request that is being handled. */
struct hd_call {
    struct hd_app *app;
    struct hd_api *api;
    const struct hd_endpoint *route;
    struct hd_exchange *exchange;
    struct hd_arena *arena; /* the exchange's */
    enum hd_stage stage;
    struct hd_step step;    /* of the latest visit to a store thread */
    hd_stage_fn work, then; /* the route's, or those of hd_call_visit() */
    hd_error_fn on_error;   /* the route's, called once; NULL: the error is sent */
    struct hd_slice path;   /* without http.mount_prefix */
    struct hd_slice params[HD_ROUTER_MAX_PARAMS]; /* of the path, decoded */
    struct hd_params query;
    struct hd_json json;
    hd_json_val body;             /* NULL: none was sent */
    struct hd_identity *identity; /* the caller; NULL: no authentication configured or required */
    struct hd_identity *by;       /* the administrator who acts for `identity`; NULL: none */
    struct hd_slice actor;        /* owner of the assistants, items and crons that it uses */
    struct hd_slice principal;    /* owner of the thread in the path, or the actor */
    enum hd_role role;            /* of the actor, in the thread of the path */
    struct hd_authorized
        *authorized;                /* the result of custom auth; NULL: none. request/authorize.h */
    struct hd_forwarded *forwarded; /* sent by another server; NULL: by a client */
    struct hd_forwarding *forwarding; /* to another server; NULL: not located. request/forward.h */
    bool has_stream;                  /* counts as one of the actor's (gate/limits.h) */
    bool is_audited;                  /* in the audit log */

    int status; /* 200 at first */
    struct hd_call_header *headers;
    struct hd_slice content_type;
    struct hd_buf out;
    struct hd_jw jw; /* writes to `out` */
    struct heddle_error fault;
    struct hd_budget budget;         /* memory of the response */
    void *state;                     /* the route's state, in the arena */
    void (*free_state)(void *state); /* when the call ends, for memory outside; may be NULL */
};

/* The route, with its `work` and `then`. */
void hd_call_set_route(struct hd_call *call, const struct hd_endpoint *route);

/* ---- for routes ------------------------------------------------------- */

/* HD_DONE with this status and text as the response: `return hd_call_refuse(call, 404, "…")`. */
struct hd_step hd_call_refuse(struct hd_call *call, int status, const char *fmt, ...)
    HD_PRINTF(3, 4);
/* The same with the texts of the contract. */
struct hd_step hd_call_refuse_limit(struct hd_call *call, enum hd_limit limit, int retry_s);
struct hd_step hd_call_refuse_thread(struct hd_call *call, struct hd_slice thread_id);

/* A header of the response; sent in any order. Copies both. */
void hd_call_header(struct hd_call *call, struct hd_slice name, struct hd_slice value);
void hd_call_header_int(struct hd_call *call, struct hd_slice name, int64_t value);
/* X-Pagination-Total, and X-Pagination-Next when there are more. */
void hd_call_pages(struct hd_call *call, int64_t offset, int64_t limit, int64_t total);

/* Members of the body. NULL or null: absent. HD_EINVAL names the member. */
hd_json_val hd_body_get(const struct hd_call *call, const char *name);
HD_MUST_CHECK int hd_body_string(struct hd_call *call, const char *name, struct hd_slice *out);
HD_MUST_CHECK int hd_body_object(struct hd_call *call, const char *name, hd_json_val *out);
/* The same for an object to merge: no name may occur twice. */
HD_MUST_CHECK int hd_body_members(struct hd_call *call, const char *name, hd_json_val *out);
/*
 * Stored values must not contain secrets (secret/secret.h), detected by name or, with `by_text`, by
 * shape: HD_EINVAL with the path of the secret, which begins with `name`.
 */
HD_MUST_CHECK int hd_call_refuse_secrets(struct hd_call *call, const char *name, hd_json_val val,
                                         bool by_text);
HD_MUST_CHECK int hd_body_bool(struct hd_call *call, const char *name, bool *out);
HD_MUST_CHECK int hd_body_int(struct hd_call *call, const char *name, int64_t min, int64_t max,
                              int64_t *out);
/* One of `words`, which NULL ends; *out is its index, unchanged when the member is absent. */
HD_MUST_CHECK int hd_body_word(struct hd_call *call, const char *name, const char *const *words,
                               int *out);
/* A list of strings in the arena; *count is 0 when the member is absent. */
HD_MUST_CHECK int hd_body_strings(struct hd_call *call, const char *name, struct hd_slice **out,
                                  size_t *count);
/* The page of a search: sort_by (one of `sorts`), sort_order, limit and offset. */
struct hd_page {
    int sort;
    bool is_descending;
    int64_t limit, offset;
};
HD_MUST_CHECK int hd_body_page(struct hd_call *call, const char *const *sorts, struct hd_page *out);
/* HD_EINVAL unless the path's parameter `n` is a UUID; makes it lower case. */
HD_MUST_CHECK int hd_path_uuid(struct hd_call *call, size_t n, const char *what,
                               struct hd_slice *out);
/* The same for any text. */
HD_MUST_CHECK int hd_call_uuid(struct hd_call *call, const char *what, struct hd_slice text,
                               struct hd_slice *out);

/* The compact text of a part of the body, in the arena; empty for NULL. */
HD_MUST_CHECK int hd_call_text(struct hd_call *call, hd_json_val val, struct hd_slice *out);
/*
 * Members of `more` replace those of the object that *text is, or are added to it. The new
 * text is in the arena; numbers stay as they were written. Empty is the same as {}.
 */
HD_MUST_CHECK int hd_call_merge(struct hd_call *call, hd_json_val more, struct hd_slice *text);

/* ---- for a `then` that sends the response itself, and returns HD_WAIT -- */

/* Sends the headers only, before a stream begins. */
void hd_call_send_headers(struct hd_call *call);
/* Frees a call whose exchange has ended, or is about to. */
void hd_call_free(struct hd_call *call);

/* ---- the API object --------------------------------------------------- */

HD_MUST_CHECK int hd_api_create(struct hd_app *app, struct hd_api **out,
                                struct heddle_error *fault);
void hd_api_destroy(struct hd_api *api);
/* The handler of the HTTP server; ctx is the struct hd_api. */
void hd_api_handle(void *ctx, struct hd_exchange *ex);
/* The same for hd_http_server_config.answered: a line of the access log, or one at level debug. */
void hd_api_answered(void *ctx, const struct hd_exchange *ex, int status, size_t body_bytes,
                     int64_t took_us);
/* A line at level debug when a request arrives. */
void hd_api_log_request(const struct hd_exchange *ex);
const struct hd_config *hd_api_config(const struct hd_api *api);

/* The process shuts down: ends streams that have no end themselves. */
void hd_api_end_thread_streams(struct hd_api *api);

struct hd_answers *hd_api_answers(struct hd_api *api);
struct hd_forwards;
struct hd_forwards *hd_api_forwards(const struct hd_api *api); /* NULL: there is no cluster */
struct hd_heartbeats;
struct hd_heartbeats *hd_api_heartbeats(const struct hd_api *api);
struct hd_custom;
struct hd_custom *hd_api_custom(const struct hd_api *api); /* NULL: there is no http.app */
struct hd_site;
struct hd_site *hd_api_site(const struct hd_api *api);
struct hd_stream_follows;
struct hd_stream_follows *hd_api_stream_follows(const struct hd_api *api); /* NULL: no cluster */
struct hd_room_presences;
struct hd_room_presences *hd_api_room_presences(const struct hd_api *api);
struct hd_stream_accesses;
struct hd_stream_accesses *hd_api_stream_accesses(const struct hd_api *api);
struct hd_message_path_memory;
struct hd_message_path_memory *hd_api_message_path_memory(const struct hd_api *api);

/* The HTTP server: its statistics, and whether it is closing; set by its owner. */
struct hd_http_server;
void hd_api_set_server(struct hd_api *api, const struct hd_http_server *server);
const struct hd_http_server *hd_api_server(const struct hd_api *api);

#endif
