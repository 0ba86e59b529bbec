/*
 * The steps of a cascade: its plan with what became of each run, as its record keeps them
 * (hd_cascade_rec.plan) and clients see them. Pure.
 *
 * The record is the whole state of a cascade, so a server can continue one that another began:
 * it plans again, merges the plan into the recorded steps, and decides what follows.
 *
 *   waiting ──▶ running ──▶ done
 *      │           ├──────▶ question ──▶ running
 *      ▼           ▼
 *   skipped      failed
 */
#ifndef HD_ROOM_CASCADE_STEPS_H
#define HD_ROOM_CASCADE_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "room/cascade_plan.h"

enum hd_cascade_state {
    HD_CASCADE_STEP_WAITING,
    HD_CASCADE_STEP_RUNNING,
    HD_CASCADE_STEP_DONE,
    HD_CASCADE_STEP_QUESTION, /* the repeated run waits for a reply */
    HD_CASCADE_STEP_FAILED,
    HD_CASCADE_STEP_SKIPPED /* not repeated; the old answer becomes stale */
};
extern const char *const hd_cascade_states[]; /* ends with NULL */

struct hd_cascade_entry {
    struct hd_slice run_id; /* the run that is repeated */
    struct hd_slice assistant_id;
    struct hd_slice trigger; /* message ids; may be empty */
    struct hd_slice answer;
    enum hd_cascade_why why;
    struct hd_slice cause;
    enum hd_cascade_approval approval;
    struct hd_slice blocked; /* why it cannot be repeated, or was skipped; or empty */
    struct hd_slice tools;   /* JSON list of the names that its run called; or empty */
    const size_t *after;     /* indices of earlier steps that must have ended before */
    size_t after_count;
    enum hd_cascade_state state;
    struct hd_slice new_run_id; /* the latest run that repeats it; or empty */
    struct hd_slice new_answer; /* of a step that is done: the id of its answer; or empty */
    struct hd_slice question;   /* the message with which its run waits for a reply; or empty */
    struct hd_slice reply;      /* the message that replies to it; or empty */
    struct hd_slice resume;     /* JSON: the value of the reply, until its run is made; or empty */
    struct hd_slice fork;       /* the checkpoint at which its first new run began; or empty */
    bool is_approved;           /* a person has agreed to repeat it */
    bool is_joined;             /* its run was made after the plan was shown */
    bool is_equal;              /* the repeated answer is equal to the old one */
    bool is_in_flight;          /* not recorded: the run to be repeated has not ended */
};

struct hd_cascade_list {
    struct hd_cascade_entry *items;
    size_t count;
};

/* Reads the plan of a record into the arena. HD_ECORRUPT: it is no list of steps. */
HD_MUST_CHECK int hd_cascade_steps_read(struct hd_slice plan, struct hd_arena *arena,
                                        struct hd_cascade_list *out, struct heddle_error *fault);
/* As clients see them: without the values of replies. */
void hd_cascade_steps_put(struct hd_jw *jw, const struct hd_cascade_list *list);
/* As the record keeps them, into the arena. */
HD_MUST_CHECK int hd_cascade_steps_write(const struct hd_cascade_list *list, struct hd_arena *arena,
                                         struct hd_slice *out);

/* A new plan of the runs that the room has now. */
struct hd_cascade_news {
    const struct hd_cascade_past *past;
    size_t past_count;
    const struct hd_cascade_answer *plan;
    /* Of each run in `past`, what the planner does not know. */
    const struct hd_cascade_extra {
        struct hd_slice assistant_id;
        struct hd_slice tools; /* JSON list; or empty */
        bool is_in_flight;
    } * extras;
    bool is_first; /* the cascade begins: no step has joined it */
};

/*
 * Merges a new plan into the recorded steps, in the order of the room's runs. Steps that began
 * stay; waiting ones that are not in the new plan are dropped, since nothing that their runs were
 * given has changed after all. Borrows from both; in the arena.
 */
HD_MUST_CHECK int hd_cascade_steps_merge(const struct hd_cascade_list *recorded,
                                         const struct hd_cascade_news *news, struct hd_arena *arena,
                                         struct hd_cascade_list *out);

/* The step that repeats the run; NULL: none. */
struct hd_cascade_entry *hd_cascade_steps_find(const struct hd_cascade_list *list,
                                               struct hd_slice run_id);

/* Approves the steps up to that of `up_to`, or all when it is empty; later ones are skipped. */
void hd_cascade_steps_approve(struct hd_cascade_list *list, struct hd_slice up_to);
/* Approves joined steps over the limit: a person has approved all runs. Effects still need one. */
void hd_cascade_steps_approve_joined(struct hd_cascade_list *list);

struct hd_cascade_decision {
    size_t *ready; /* indices of the steps that may begin now */
    size_t ready_count;
    size_t running;
    size_t in_flight; /* steps that wait for the end of the run to be repeated */
    size_t questions;
    size_t unapproved; /* steps that wait for a person */
    bool has_failed;
    bool is_complete; /* every step is done or skipped */
};

/*
 * Skips the steps that cannot be repeated, those whose predecessors were refused, and joined ones
 * over the limit; then finds those that may begin. In the arena.
 */
HD_MUST_CHECK int hd_cascade_steps_decide(struct hd_cascade_list *list, struct hd_arena *arena,
                                          struct hd_cascade_decision *out);

#endif
