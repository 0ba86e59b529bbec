/*
 * One exchange with another server on behalf of a task: a model, an MCP server, an
 * A2A agent, a plain HTTP tool. All that src/agent sends goes through here, so that
 * retries, limits, back-pressure, recording and the hiding of secrets are in one place.
 */
#ifndef HD_AGENT_EXCHANGE_H
#define HD_AGENT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_exchange;
struct hd_run;
struct hd_task;

/* How an exchange ended. */
struct hd_reply {
    /*
     * NULL: there is an answer, of whatever status. Otherwise why there is none (or not all of
     * it), for people, without secrets.
     */
    const char *error;
    bool is_timeout;
    bool is_cut; /* the answer had begun */
    long status;
    struct hd_slice headers; /* lines, as they came */
    struct hd_slice body;    /* what on_data has not been given */
    int tries;
};

struct hd_exchange_what {
    const char *peer;   /* "model", "mcp", "a2a", "http", "rag": for recordings and errors */
    const char *method; /* "POST" */
    const char *url;
    const char *const *headers; /* lines; secret ones, by name, are never recorded or shown */
    size_t header_count;
    struct hd_slice body; /* ptr NULL: none */
    int64_t timeout_ms;   /* until the answer is complete; 0: none */
    int64_t idle_ms;      /* without a byte, also before the first; 0: none */
    int tries;            /* at all: 408, 409 of models, 429, 5xx and failures to connect, before
                             any data was given on; 0: one. Honours Retry-After, up to a minute */
    bool is_direct;       /* no redirects to other servers, so that credentials go nowhere else */
    bool is_trusted;      /* the operator chose the URL: its host may have a private address */
    bool is_detached;     /* outlives its task and run, is not recorded: good-byes to sessions */
    size_t max_body;      /* 0: 16 MiB of what is kept, any of what on_data gets */
    const struct hd_slice *secrets; /* what must not be in texts: they are masked */
    size_t secret_count;

    /*
     * The status and headers are there; whether what follows is given to on_data piece by piece
     * (else it is kept for the reply). NULL: never.
     */
    bool (*on_head)(void *ctx, const struct hd_reply *head);
    void (*on_data)(void *ctx, struct hd_slice data);
    /* Once, later, unless it is cancelled. */
    void (*on_done)(void *ctx, const struct hd_reply *reply);
    void *ctx;
};

/* Everything is copied but the functions. Never calls back before it returned. */
HD_MUST_CHECK int hd_exchange_start(struct hd_task *task, const struct hd_exchange_what *what,
                                    struct hd_exchange **out);
/* The same for a run: what belongs to no task, such as opening a session. */
HD_MUST_CHECK int hd_exchange_start_run(struct hd_run *run, const struct hd_exchange_what *what,
                                        struct hd_exchange **out);
/* Its socket is closed when this returns. Not for detached ones. May be called from on_data. */
void hd_exchange_cancel(struct hd_exchange *exchange);

/* The value of a header, the last of that name, in lines as they came; ptr NULL: none. */
struct hd_slice hd_header_find(struct hd_slice headers, const char *name);

#endif
