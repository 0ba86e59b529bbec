/*
 * Turns requests into the records of runs: finds the assistant, the thread and the checkpoint, and
 * starts, queues or refuses the run. Several runs of a thread, and other rows, can be admitted
 * together. Blocks on the store: call it on store threads.
 *
 * Secrets are replaced here: the record contains markers (secret/secret.h), and their values stay
 * in memory, in run.secrets.
 *
 *   admit.c          an attempt: the order of its reads, the records, the batch
 *   admit_thread.c   the thread: its record, its hold
 *   admit_place.c    where a run starts: namespace, checkpoint, runs before it on its line
 *   admit_config.c   configuration, context, metadata and arguments of a run
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
struct hd_held_thread;

/* The most runs of a group. */
#define HD_ADMIT_MAX_RUNS 8

/* One run. */
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
    /* The thread as it was read just before; a conflict reads it again. NULL: it was not read. */
    const struct hd_held_thread *seen;
    const struct hd_run_request *request;
    struct hd_slice headers; /* JSON: request headers that are copied to the configurable */
    struct hd_slice cron_id; /* empty: none */
    struct hd_slice lender;  /* owns or sees the assistant in place of the actor; or empty */
    bool is_config_private;  /* the thread's config keeps nothing of the run's, and the run gets
                              * nothing of it; in rooms with more than one person always */
    bool hides_headers;      /* the thread's config keeps no headers; in rooms always */
    bool is_off_head;        /* as in struct hd_run_rec; the request names a checkpoint */
    struct hd_slice forks;   /* as in struct hd_run_rec */
    struct hd_slice asked;

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

/*
 * Runs of one thread that are admitted together with other rows: one batch stores all of it, or
 * nothing is stored. Refusing one run refuses all. Of two runs on one line the second waits for the
 * first. The thread keeps the configuration and shows the head of the last run.
 *
 * Without runs the batch changes the thread and the other rows only. A thread that no server holds
 * stays unheld: the revision of its record guards the batch against a claim meanwhile.
 *
 * An attempt reads the thread, calls `prepare`, makes the runs, calls `extend` and applies the
 * batch; a conflict repeats it. Both functions may be NULL, and may read the store. HD_ECONFLICT of
 * either repeats the attempt too; another error ends the admission. hd_admit_refuse() makes an
 * error that is a refusal.
 */
struct hd_admission_group {
    /* The request. The members that both structs have are copied from here to the runs. */
    struct hd_app *app;
    struct hd_arena *arena; /* memory of everything below */
    struct hd_slice principal;
    struct hd_slice actor;
    struct hd_slice subject;
    struct hd_slice stamps;
    struct hd_slice thread_id; /* empty: create a thread */
    bool creates_thread;       /* if there is none with this id */
    /* The thread as it was read just before; a conflict reads it again. NULL: it was not read. */
    const struct hd_held_thread *seen;
    /* In their order on the thread. The caller, or `prepare`, sets the request and all that only
     * struct hd_admission has. */
    struct hd_admission **runs;
    size_t count; /* up to HD_ADMIT_MAX_RUNS */
    /*
     * Called when the thread was read and is not held by another server; `thread` is as it is
     * stored. May replace `runs` and `count`, which keep their values in the next attempt.
     */
    int (*prepare)(void *ctx, struct hd_admission_group *group, const struct hd_thread_rec *thread,
                   struct heddle_error *fault);
    /*
     * Appends rows to the batch. The runs have their ids, and the thread is as it will be stored;
     * its record is put after the call, so the function may change it (hd_event_batch_put()).
     */
    int (*extend)(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                  struct heddle_error *fault);
    void *ctx; /* of both */

    /* The result, as in struct hd_admission; the runs have it too. */
    int refusal;
    int retry_s;
    struct hd_slice holder;
    struct hd_thread_rec thread; /* as stored */
    bool is_sent;
};

/* Admits one run. Returns 0, also for a refusal or with `holder`, or the store's error. */
HD_MUST_CHECK int hd_admit(struct hd_admission *admission, struct heddle_error *fault);

/* Admits a group; returns as hd_admit(). */
HD_MUST_CHECK int hd_admit_group(struct hd_admission_group *group, struct heddle_error *fault);
/* The group of one run; borrows the pointer to it. */
struct hd_admission_group hd_admit_group_of(struct hd_admission **run);
/* Refuses the group with an HTTP status; returns the error that ends the attempt. */
HD_MUST_CHECK int hd_admit_refuse(struct hd_admission_group *group, struct heddle_error *fault,
                                  int status, const char *fmt, ...) HD_PRINTF(4, 5);

/* The root namespace of an assistant's checkpoints: assistant:<id>. */
HD_MUST_CHECK int hd_admit_assistant_ns(struct hd_arena *arena, struct hd_slice assistant_id,
                                        struct hd_slice *out);

#endif
