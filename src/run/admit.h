/*
 * Turns a request into the record of a run: finds the assistant, the thread and the checkpoint,
 * and starts, queues or refuses the run. Blocks on the store: call it on store threads.
 *
 * Secrets are replaced here: the record contains markers (secret/secret.h), and their values stay
 * in memory, in run.secrets.
 */
#ifndef HD_RUN_ADMIT_H
#define HD_RUN_ADMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"
#include "records/run_request.h"

struct hd_batch_builder;

struct hd_admission {
    /* The request. */
    struct hd_app *app;
    struct hd_arena *arena;    /* memory of everything below */
    struct hd_slice principal; /* owner of the thread */
    struct hd_slice actor;     /* the caller, and owner of the assistant */
    struct hd_slice subject;   /* the actor's name for clients; empty: authentication is off */
    bool is_admin;
    struct hd_slice user; /* JSON: the user as the project's auth code returned it; may be empty */
    struct hd_slice stamps;    /* JSON: metadata of a new thread; may be empty */
    struct hd_slice thread_id; /* empty: create a thread for the run */
    const struct hd_run_request *request;
    struct hd_slice headers; /* JSON: request headers that are copied to the configurable */
    struct hd_slice cron_id; /* empty: none */
    /* Appends to the batch that stores the run, once in each attempt; an error ends the admission.
     * NULL: nothing to append. */
    int (*extend)(void *ctx, struct hd_batch_builder *batch, struct heddle_error *fault);
    void *extend_ctx;

    /* The result. */
    int refusal;            /* an HTTP status, its text is in `fault`; 0: admitted */
    int retry_s;            /* for 429: seconds until a retry */
    struct hd_slice holder; /* another server holds the thread: nothing was admitted; else empty */
    struct hd_run_rec run;
    int64_t event_seq;          /* of the thread */
    bool is_sent;               /* a batch with the run was applied, maybe without success */
    struct hd_slice *cancelled; /* runs that it replaces */
    size_t cancelled_count;
};

/* Returns 0, also for a refusal or with `holder`, or the store's error. */
HD_MUST_CHECK int hd_admit(struct hd_admission *admission, struct heddle_error *fault);

/* The root namespace of an assistant's checkpoints: assistant:<id>. */
HD_MUST_CHECK int hd_admit_assistant_ns(struct hd_arena *arena, struct hd_slice assistant_id,
                                        struct hd_slice *out);

#endif
