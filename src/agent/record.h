/*
 * Recording what agents say to other servers, and answering from a recording.
 *
 * exchange.c calls both functions, on the loop. What they are given is without secrets: headers
 * with secret names are left out, and known secrets are masked everywhere else.
 */
#ifndef HD_AGENT_RECORD_H
#define HD_AGENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct hd_run;
struct hd_task;

/* Everything is borrowed for the call. */
struct hd_record_request {
    const struct hd_run *run;
    const struct hd_task *task; /* NULL: of the run as a whole */
    struct hd_slice peer;       /* "model", "mcp", "a2a", "http", "rag" */
    struct hd_slice method;
    struct hd_slice url;
    struct hd_slice headers; /* lines, each with \r\n */
    struct hd_slice body;
    bool has_body;
};

struct hd_record_answer {
    const char *error; /* NULL: there is an answer; otherwise `status` 0 means that none began */
    bool is_timeout;
    long status;
    struct hd_slice headers; /* lines, each with \r\n */
    struct hd_slice body;
    bool is_partial; /* the body was too large to be kept for the recording */
    int tries;
};

struct hd_recorder {
    /* An exchange is complete, after its last try; NULL: nothing is recorded. */
    void (*wrote)(void *ctx, const struct hd_record_request *request,
                  const struct hd_record_answer *answer);
    /*
     * Answers instead of the network: true, and what it points to must stay until the call
     * has returned. NULL: the network is asked.
     */
    bool (*answer)(void *ctx, const struct hd_record_request *request,
                   struct hd_record_answer *answer);
    void *ctx;
};

#endif
