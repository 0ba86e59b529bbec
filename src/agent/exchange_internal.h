/* Shared by the files of exchange.h. */
#ifndef HD_AGENT_EXCHANGE_INTERNAL_H
#define HD_AGENT_EXCHANGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "agent/exchange.h"
#include "agent/record.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"
#include "net/http_client.h"

struct hd_agent_exchange {
    struct hd_engine *engine;
    struct hd_engine_run *run; /* NULL: detached */
    struct hd_task *task;
    HD_DLINK(struct hd_agent_exchange) in_run;
    struct hd_arena arena;
    struct hd_agent_exchange_options options; /* its pointers are in the arena */
    struct hd_slice *secrets; /* those given, and the values of headers with secret names */
    size_t secret_count;
    size_t max_given;             /* what.max_body, if set */
    struct hd_recorder *recorder; /* NULL: none */

    struct hd_client_request *request; /* NULL: between tries, or nothing was sent */
    uv_timer_t timer;
    bool has_timer;
    int tries;
    int64_t began_us;
    int64_t wait_ms;                 /* before the next try; -1: no retry */
    bool is_redirected;              /* to another server: not followed */
    int hops;                        /* redirects followed within the server */
    bool has_head;                   /* on_head was called */
    bool is_given;                   /* the body goes to on_data */
    int calling;                     /* callbacks that have not returned */
    bool is_cancelled;               /* freed when they have returned */
    struct hd_buf kept;              /* delivered data, for the recording */
    bool is_partial;                 /* `kept` is incomplete */
    struct hd_buf text;              /* of the error */
    struct hd_record_answer *replay; /* instead of the network */
};

/* ---- texts: exchange_text.c ------------------------------------------- */

/* Appends `text` with *** for each secret in it. */
HD_MUST_CHECK int hd_mask(struct hd_buf *out, struct hd_slice text, const struct hd_slice *secrets,
                          size_t count);
/* Finds the texts to be masked; HD_ENOMEM. */
HD_MUST_CHECK int hd_agent_exchange_secrets(struct hd_agent_exchange *exchange);
/* The name of a header line; its value without blanks. */
struct hd_slice hd_header_split(struct hd_slice line, struct hd_slice *value);
/* Retry-After, at most a minute; -1: none. */
int64_t hd_retry_after_ms(struct hd_slice headers, int64_t now_us);
/* The target of a redirect, in the arena; NULL: another server, or none. */
const char *hd_redirect_within(const char *url, struct hd_slice location, struct hd_arena *arena);
/* Why there is no response; valid as long as the exchange. */
const char *hd_agent_exchange_error(struct hd_agent_exchange *exchange,
                                    const struct hd_client_response *response);

/* ---- recordings: exchange_record.c ------------------------------------ */

/* Keeps delivered data, if it will be recorded. */
void hd_agent_exchange_keep(struct hd_agent_exchange *exchange, struct hd_slice data);
/* Passes the result to the recorder. */
void hd_agent_exchange_record(struct hd_agent_exchange *exchange, const struct hd_reply *reply);
/* Whether a recording provides the response: then `replay` has a copy. HD_ENOMEM. */
HD_MUST_CHECK int hd_agent_exchange_replay(struct hd_agent_exchange *exchange);

#endif
