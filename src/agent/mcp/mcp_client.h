/*
 * An MCP server as used by one run: at most one session, and requests on it.
 *
 * The session is opened when the first request needs it; requests wait meanwhile. When the server
 * has lost it, it is opened again, once per request. A callback is the last step of a request: it
 * may end the run, and the peer with it.
 */
#ifndef HD_AGENT_MCP_MCP_CLIENT_H
#define HD_AGENT_MCP_MCP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "agent/exchange.h"
#include "agent/mcp/mcp_config.h"
#include "agent/mcp/mcp_proto.h"
#include "agent/model/sse_read.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_MCP_MAX_MESSAGE ((size_t)16 << 20)
#define HD_MCP_MAX_ID 1024 /* bytes of a session's or an event's id */

struct hd_mcp_request;
struct hd_mcp_token;
struct hd_engine_run;
struct hd_task;

/* The result of a request. */
struct hd_mcp_answer {
    /*
     * The response: a result or an error. A request of the server: one that on_request did not
     * answer, and ours was abandoned. NULL: no response; `problem` has the reason, without secrets.
     */
    const struct hd_mcp_message *message;
    const char *problem;
    long status; /* of HTTP; 0: none */
};

struct hd_mcp_request_options {
    struct hd_task *task; /* NULL: of the run */
    const char *method;   /* borrowed */
    const struct hd_val *params;
    struct hd_slice name;        /* for Mcp-Name; ptr NULL: none */
    const struct hd_val *schema; /* its x-mcp-header members mirror `args`; NULL: none */
    const struct hd_val *args;
    int64_t timeout_ms; /* 0: none */
    size_t max_bytes;   /* of a message; 0: HD_MCP_MAX_MESSAGE */
    int tries;
    void (*on_answer)(void *ctx, const struct hd_mcp_answer *answer);
    /* A legacy elicitation: returns the result to send; NULL: abandon the call. May be NULL. */
    struct hd_val *(*on_request)(void *ctx, const struct hd_mcp_message *request);
    void *ctx;
};

enum hd_mcp_state { HD_MCP_CLOSED, HD_MCP_OPENING, HD_MCP_OPEN };

struct hd_mcp_peer {
    struct hd_engine_run *run;
    const struct hd_mcp_server *server;
    struct hd_slice user_token; /* of the run's user; for token exchange only */
    enum hd_mcp_state state;
    bool is_modern;
    bool has_tried_modern, has_tried_legacy, has_asked_again;
    char *token; /* exchanged for the user's token; NULL: none */
    char version[16];
    char session[HD_MCP_MAX_ID + 1]; /* empty: none */
    unsigned epoch;                  /* counts the sessions */
    int64_t last_id;
    struct hd_mcp_request *requests;     /* newest first */
    struct hd_mcp_request *ear;          /* the stream of a legacy server's requests; NULL: none */
    bool hears;                          /* it is open, or will not be */
    bool is_deaf;                        /* the server has no such stream */
    struct hd_mcp_token *token_request;  /* for a token exchange */
    struct hd_agent_exchange *notifying; /* sends `initialized` */
    char problem[512];                   /* why the first attempt to open it failed */
    bool *is_gone;                       /* set to true when it is freed; NULL: not needed */
};

/* Borrows `server`. */
void hd_mcp_peer_init(struct hd_mcp_peer *peer, struct hd_engine_run *run,
                      const struct hd_mcp_server *server, struct hd_slice user_token);
/* Cancels all requests without notice, and ends the session. */
void hd_mcp_peer_fini(struct hd_mcp_peer *peer);
/* Appends its credentials, the cache key of its lists. */
HD_MUST_CHECK int hd_mcp_peer_credentials(const struct hd_mcp_peer *peer, struct hd_buf *out);

/* Calls `on_answer` once, asynchronously, unless it is cancelled; never before this returns. */
HD_MUST_CHECK int hd_mcp_request_start(struct hd_mcp_peer *peer,
                                       const struct hd_mcp_request_options *options,
                                       struct hd_mcp_request **out);
/* Sends a cancellation to the server. */
void hd_mcp_request_cancel(struct hd_mcp_request *request);

/* ---- between mcp_client.c and mcp_session.c ---------------------------- */

struct hd_mcp_request {
    struct hd_mcp_peer *peer;
    HD_DLINK(struct hd_mcp_request) all;
    struct hd_mcp_request_options options; /* owns params, schema, args and name */
    int64_t id;
    unsigned epoch;   /* of the session it was sent in */
    bool is_opening;  /* part of opening: does not wait for it */
    bool is_waiting;  /* for the opening */
    bool is_held;     /* until the server's stream is open */
    bool is_ear;      /* it is the server's stream */
    bool is_repeated; /* in a new session */
    bool is_stream;   /* the response is a stream */
    int resumes;      /* of the stream, since the last event */
    long status;
    struct hd_agent_exchange *exchange;
    struct hd_sse_read sse;
    char last_event[HD_MCP_MAX_ID + 1];
    int64_t retry_ms;
    uv_timer_t *timer;
    bool has_answer;
    struct hd_mcp_message answer;
};

/* Sends it; calls wait until the server's stream is open. */
HD_MUST_CHECK int hd_mcp_request_send(struct hd_mcp_request *request);
/* The session is over; closes the server's stream. */
void hd_mcp_peer_stop_hearing(struct hd_mcp_peer *peer);
/* Ends it; calls back. */
void hd_mcp_request_fail(struct hd_mcp_request *request, const char *problem, long status);
/* Starts a request that is part of opening. */
HD_MUST_CHECK int hd_mcp_request_open(struct hd_mcp_peer *peer,
                                      const struct hd_mcp_request_options *options);
/* Opens it: at once, or waiting requests are sent or ended later. */
HD_MUST_CHECK int hd_mcp_peer_open(struct hd_mcp_peer *peer);
/* The session is lost: the next request opens another. */
void hd_mcp_peer_forget(struct hd_mcp_peer *peer);
/* Sends a message without a response; `done` (of the peer) is called when it was accepted. */
HD_MUST_CHECK int hd_mcp_peer_post(struct hd_mcp_peer *peer, struct hd_slice body,
                                   void (*done)(void *ctx, const struct hd_reply *reply),
                                   struct hd_agent_exchange **out);
/* The same, ignoring the result, also when the run is over. */
void hd_mcp_peer_tell(struct hd_mcp_peer *peer, const char *method, struct hd_slice body);

#endif
