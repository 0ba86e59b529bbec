/*
 * From a request for a run to its record: which assistant, which thread, where
 * in it, and whether it may run now, later or not at all. Waits for the store;
 * for store threads.
 *
 * This is where secrets leave what is stored: the record has markers in their places
 * (secret/secret.h), and what they stand for goes on in memory, with run.secrets.
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

struct hd_admission {
    /* What is asked. */
    struct hd_app *app;
    struct hd_arena *arena;    /* for everything below */
    struct hd_slice principal; /* whose thread */
    struct hd_slice actor;     /* who asks, and whose assistants are meant */
    struct hd_slice subject;   /* of the actor, as clients know it; empty: nobody authenticates */
    bool is_admin;
    struct hd_slice user;      /* JSON: what the project's own code says of it; empty: nothing */
    struct hd_slice stamps;    /* JSON: metadata for a thread that is made; may be empty */
    struct hd_slice thread_id; /* empty: a thread of its own, made for the run */
    const struct hd_run_request *request;
    struct hd_slice headers; /* JSON: what of the request's headers goes to the configurable */
    struct hd_slice cron_id; /* empty: none */

    /* What became of it. */
    int refusal; /* an HTTP status; 0: there is a run. The sentence is in `fault` */
    int retry_s; /* of a 429: when to try again */
    struct hd_run_rec run;
    int64_t event_seq;          /* of its thread */
    struct hd_slice *cancelled; /* runs that make way for it */
    size_t cancelled_count;
};

/* 0, also when it was refused, or what kept the store from answering. */
HD_MUST_CHECK int hd_admit(struct hd_admission *admission, struct hd_fault *fault);

/* The root namespace of an assistant's checkpoints: assistant:<id>. */
HD_MUST_CHECK int hd_assistant_ns(struct hd_arena *arena, struct hd_slice assistant_id,
                                  struct hd_slice *out);

#endif
