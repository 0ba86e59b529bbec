/* Stores the end of a run. Call it on store threads. */
#ifndef HD_RUN_RUN_COMMIT_H
#define HD_RUN_RUN_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/ttl.h"
#include "records/record.h"
#include "webhook/outbox.h"

struct hd_origin;
struct hd_event_batch;
struct hd_event_log_page;

/* Limits of the thread's stored events. */
struct hd_page_limits {
    bool is_due; /* false: do not trim now */
    uint64_t events;
    uint64_t bytes;
    bool has_large; /* see hd_event_log_has_large() */
};

struct hd_run_commit {
    const struct hd_run_rec *run;
    enum hd_run_state status;
    struct hd_slice ns; /* namespace of its root graph */
    struct hd_slice graph_id;
    struct hd_slice checkpoint_id; /* empty: it made none */
    struct hd_slice interrupts;    /* JSON; empty: none */
    struct hd_slice error;         /* JSON; empty: none */
    struct hd_slice receipt;       /* JSON; empty: it was not stopped */
    bool has_begun;
    bool has_next;                   /* its last checkpoint has tasks left */
    bool is_rolled_back;             /* delete its record and checkpoints */
    const struct hd_origin *origins; /* for a rollback: the state before the run; or NULL */
    bool deletes_thread;
    int64_t event_seq;
    const struct hd_event_log_page *last_page; /* stored with the end; may be empty */
    struct hd_page_limits pages;
    const struct hd_outbox_row *webhook; /* stored with the end; NULL: none */
    struct hd_event_batch *events; /* of a room (run/room/room_answer.h); NULL: none were begun */
    bool *has_waits;   /* set: messages of the room wait for a question (run/room/room_waiting.h) */
    int64_t *room_seq; /* set with HD_EBUSY to the thread's event_seq: begin events; or NULL */
};

/*
 * Stores the end: the records of the run and its thread, the run's last events and its webhook, in
 * one batch, which has its answer too in a room. Retries after conflicts. HD_EBUSY with *room_seq
 * set: nothing was stored, because a room needs new events.
 */
HD_MUST_CHECK int hd_run_commit_store(struct hd_app *app, const struct hd_run_commit *commit,
                                      struct heddle_error *fault);

/* Sets *out to whether the run has made a checkpoint. */
HD_MUST_CHECK int hd_run_commit_has_checkpoint(struct heddle *store, const struct hd_run_rec *run,
                                               bool *out, struct heddle_error *fault);

/* Deletes a thread with its checkpoints, runs and events. It must have no active run. */
HD_MUST_CHECK int hd_run_commit_delete_thread(struct heddle *store, struct hd_slice principal,
                                              struct hd_slice thread_id,
                                              struct heddle_error *fault);
/* Deletes an expired thread. HD_ECONFLICT: its record has changed; nothing was deleted. */
HD_MUST_CHECK int hd_run_commit_expire_thread(struct heddle *store,
                                              const struct hd_thread_rec *thread,
                                              struct heddle_error *fault);

#endif
