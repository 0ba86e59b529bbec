/*
 * One exchange with another server on behalf of a task: a model, an MCP server, an A2A agent, a
 * plain HTTP tool. All requests of src/agent go through here, so that retries, limits,
 * back-pressure, recording and masking of secrets are in one place.
 */
#ifndef HD_AGENT_EXCHANGE_H
#define HD_AGENT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_agent_exchange;
struct hd_engine_run;
struct hd_task;

/* The result of an exchange. */
struct hd_reply {
    /*
     * NULL: there is a response, of any status. Otherwise why there is none (or only a part), for
     * users, without secrets.
     */
    const char *error;
    bool is_timeout;
    bool is_cut; /* the response had begun */
    long status;
    struct hd_slice headers; /* lines, as received */
    struct hd_slice body;    /* without data passed to on_data */
    int tries;
};

struct hd_agent_exchange_options {
    const char *peer;   /* "model", "mcp", "a2a", "http", "rag": for recordings and errors */
    const char *method; /* "POST" */
    const char *url;
    const char *const *headers; /* lines; ones with secret names are never recorded or shown */
    size_t header_count;
    struct hd_slice body; /* ptr NULL: none */
    int64_t timeout_ms;   /* until the response is complete; 0: none */
    int64_t idle_ms;      /* without a byte, also before the first; 0: none */
    /*
     * total: retries 408, 409 of models, 429, 5xx and failures to connect, before any data was
     * delivered; 0: one. Honours Retry-After, up to a minute
     */
    int tries;
    bool is_direct;   /* no redirects to other servers, to keep credentials */
    bool is_trusted;  /* the operator chose the URL: its host may have a private address */
    bool is_detached; /* outlives its task and run, is not recorded: closing sessions */
    size_t max_body;  /* 0: 16 MiB of a buffered body, no limit for on_data */
    const struct hd_slice *secrets; /* masked in texts */
    size_t secret_count;

    /*
     * Status and headers have arrived; true: the body goes to on_data in pieces, else it is
     * buffered for the reply. NULL: never.
     */
    bool (*on_head)(void *ctx, const struct hd_reply *head);
    void (*on_data)(void *ctx, struct hd_slice data);
    /* Called once, asynchronously, unless it is cancelled. */
    void (*on_done)(void *ctx, const struct hd_reply *reply);
    void *ctx;
};

/* Copies everything but the functions. Never calls back before it returns. */
HD_MUST_CHECK int hd_agent_exchange_start(struct hd_task *task,
                                          const struct hd_agent_exchange_options *options,
                                          struct hd_agent_exchange **out);
/* The same for a run: exchanges of no task, such as opening a session. */
HD_MUST_CHECK int hd_agent_exchange_start_run(struct hd_engine_run *run,
                                              const struct hd_agent_exchange_options *options,
                                              struct hd_agent_exchange **out);
/* Closes the socket before it returns. Not for detached ones. May be called from on_data. */
void hd_agent_exchange_cancel(struct hd_agent_exchange *exchange);

/* Pauses or resumes reading from the exchanges of a run. */
void hd_agent_exchanges_hold(struct hd_agent_exchange *list, bool is_held);

/* The value of a header, the last with that name, in lines as received; ptr NULL: none. */
struct hd_slice hd_header_find(struct hd_slice headers, const char *name);

#endif
