/*
 * Records exchanges with other servers, and provides recorded responses.
 *
 * exchange.c calls both functions, on the loop. The data has no secrets: headers with secret names
 * are removed, and known secrets are masked everywhere else.
 */
#ifndef HD_AGENT_RECORD_H
#define HD_AGENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct hd_engine_run;
struct hd_task;

/* Everything is borrowed for the call. */
struct hd_record_request {
    const struct hd_engine_run *run;
    const struct hd_task *task; /* NULL: of the whole run */
    struct hd_slice peer;       /* "model", "mcp", "a2a", "http", "rag" */
    struct hd_slice method;
    struct hd_slice url;
    struct hd_slice headers; /* lines, each with \r\n */
    struct hd_slice body;
    bool has_body;
};

struct hd_record_answer {
    const char *error; /* NULL: there is a response; otherwise `status` 0 means that none began */
    bool is_timeout;
    long status;
    struct hd_slice headers; /* lines, each with \r\n */
    struct hd_slice body;
    bool is_partial; /* the body was too large to be recorded */
    int tries;
};

struct hd_recorder {
    /* An exchange is complete, after its last try; NULL: no recording. */
    void (*wrote)(void *ctx, const struct hd_record_request *request,
                  const struct hd_record_answer *answer);
    /*
     * Provides the response in place of the network: returns true; its pointers must stay valid
     * until the call returns. NULL: use the network.
     */
    bool (*answer)(void *ctx, const struct hd_record_request *request,
                   struct hd_record_answer *answer);
    void *ctx;
};

#endif
