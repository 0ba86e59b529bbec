/*
 * A server of tools, as one run speaks to it: at most one session, and requests on it.
 *
 * The session is opened when the first request needs it; requests wait meanwhile. When the server
 * has forgotten it, it is opened anew, once for each request. Callbacks are the last
 * thing that is done with a request: they may end the run, and the peer with it.
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
#include "base/slice.h"
#include "value/val.h"

#define HD_MCP_MAX_MESSAGE ((size_t)16 << 20)
#define HD_MCP_MAX_ID 1024 /* bytes of a session's or an event's id */

struct hd_mcp_request;
struct hd_mcp_token;
struct hd_run;
struct hd_task;

/* How a request ended. */
struct hd_mcp_answer {
    /*
     * The answer: a result or an error. A request of the server is one that on_request did not
     * answer: ours was given up. NULL: there is none, and `problem` says why, without secrets.
     */
    const struct hd_mcp_message *message;
    const char *problem;
    long status; /* of HTTP; 0: none */
};

struct hd_mcp_what {
    struct hd_task *task; /* whose it is; NULL: the run's */
    const char *method;   /* must stay */
    const struct hd_val *params;
    struct hd_slice name;        /* for Mcp-Name; ptr NULL: none */
    const struct hd_val *schema; /* whose x-mcp-header mirror `args`; NULL: nothing is */
    const struct hd_val *args;
    int64_t timeout_ms; /* 0: none */
    size_t max_bytes;   /* of a message; 0: HD_MCP_MAX_MESSAGE */
    int tries;
    void (*on_answer)(void *ctx, const struct hd_mcp_answer *answer);
    /* An elicitation, legacy: the result to answer with; NULL: give up. May be NULL. */
    struct hd_val *(*on_request)(void *ctx, const struct hd_mcp_message *request);
    void *ctx;
};

enum hd_mcp_state { HD_MCP_CLOSED, HD_MCP_OPENING, HD_MCP_OPEN };

struct hd_mcp_peer {
    struct hd_run *run;
    const struct hd_mcp_server *server;
    struct hd_slice user_token; /* of whoever runs the graph; for an exchange only */
    enum hd_mcp_state state;
    bool is_modern;
    bool has_tried_modern, has_tried_legacy, has_asked_again;
    char *token; /* that it was given for the user; NULL: none */
    char version[16];
    char session[HD_MCP_MAX_ID + 1]; /* empty: none */
    unsigned epoch;                  /* counts the sessions */
    int64_t last_id;
    struct hd_mcp_request *requests; /* newest first */
    struct hd_mcp_request *ear;      /* the stream on which a legacy server asks; NULL: none */
    bool hears;                      /* it is there, or will not be */
    bool is_deaf;                    /* the server has no such stream */
    struct hd_mcp_token *asking;     /* for a token */
    struct hd_exchange *notifying;   /* that it is initialized */
    char problem[512];               /* why it could not be opened the first way */
    bool *is_gone;                   /* told when it goes; NULL: nobody asks */
};

/* `server` must stay. */
void hd_mcp_peer_init(struct hd_mcp_peer *peer, struct hd_run *run,
                      const struct hd_mcp_server *server, struct hd_slice user_token);
/* Stops all requests without a word, and ends the session. */
void hd_mcp_peer_fini(struct hd_mcp_peer *peer);
/* What it is sent that others are not: under which lists are kept. Appends. */
HD_MUST_CHECK int hd_mcp_peer_credentials(const struct hd_mcp_peer *peer, struct hd_buf *out);

/* `on_answer` is called once, later, unless it is cancelled; never before this has returned. */
HD_MUST_CHECK int hd_mcp_request_start(struct hd_mcp_peer *peer, const struct hd_mcp_what *what,
                                       struct hd_mcp_request **out);
/* The server is told. */
void hd_mcp_request_cancel(struct hd_mcp_request *request);

/* ---- between mcp_client.c and mcp_session.c ---------------------------- */

struct hd_mcp_request {
    struct hd_mcp_peer *peer;
    struct hd_mcp_request *next;
    struct hd_mcp_what what; /* params, schema, args and name are its own */
    int64_t id;
    unsigned epoch;   /* of the session it was sent in */
    bool is_opening;  /* part of the opening: does not wait for it */
    bool is_waiting;  /* for the opening */
    bool is_held;     /* until the peer hears */
    bool is_ear;      /* it is the peer's */
    bool is_repeated; /* in a new session */
    bool is_stream;   /* the answer is */
    int resumes;      /* of the stream, since something came */
    long status;
    struct hd_exchange *exchange;
    struct hd_sse_read sse;
    char last_event[HD_MCP_MAX_ID + 1];
    int64_t retry_ms;
    uv_timer_t *timer;
    bool has_answer;
    struct hd_mcp_message answer;
};

/* Sends it; calls wait until the peer hears. */
HD_MUST_CHECK int hd_mcp_request_send(struct hd_mcp_request *request);
/* The session is over, and what is heard in it. */
void hd_mcp_peer_stop_hearing(struct hd_mcp_peer *peer);
/* Ends it; calls back. */
void hd_mcp_request_fail(struct hd_mcp_request *request, const char *problem, long status);
/* Starts a request that belongs to the opening. */
HD_MUST_CHECK int hd_mcp_request_open(struct hd_mcp_peer *peer, const struct hd_mcp_what *what);
/* Opens it: at once, or requests that wait are sent or ended later. */
HD_MUST_CHECK int hd_mcp_peer_open(struct hd_mcp_peer *peer);
/* The session is not known any more: the next request opens another. */
void hd_mcp_peer_forget(struct hd_mcp_peer *peer);
/* Sends a message that is not answered; `done` (of the peer) is called when it was taken. */
HD_MUST_CHECK int hd_mcp_peer_post(struct hd_mcp_peer *peer, struct hd_slice body,
                                   void (*done)(void *ctx, const struct hd_reply *reply),
                                   struct hd_exchange **out);
/* The same whatever becomes of it, also when the run is over. */
void hd_mcp_peer_tell(struct hd_mcp_peer *peer, const char *method, struct hd_slice body);

#endif
