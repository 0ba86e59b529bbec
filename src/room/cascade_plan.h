/*
 * The plan of a cascade: which runs of a room an edit or a retry makes out of date, and in what
 * order they are repeated. Pure.
 *
 * A set of changed messages begins with the edited one. A run is affected when its input had a
 * message of the set in an older version, or when an earlier affected run changed a line that it
 * uses. Its answer joins the set, unless the run was repeated already and its answer was equal.
 */
#ifndef HD_ROOM_CASCADE_PLAN_H
#define HD_ROOM_CASCADE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_CASCADE_MAX_RUNS ((size_t)100000) /* of a room */

struct hd_cascade_pair {
    struct hd_slice message_id;
    int64_t version;
};

/* A run of the room, as it is now in the chat. */
struct hd_cascade_past {
    struct hd_slice run_id;
    struct hd_slice trigger; /* the message that made it; empty: a plain run */
    struct hd_slice answer;  /* the message that it made; empty: none */
    struct hd_slice line;
    const struct hd_slice *touched; /* the lines of its delegates */
    size_t touched_count;
    const struct hd_cascade_pair *given; /* the trigger included */
    size_t given_count;
    bool has_effects; /* it called tools that are not marked as read-only */
    bool has_fork;    /* the checkpoint from which it would be repeated exists, or it needs none */
    bool has_agent;   /* its agent exists and belongs to the room */
    bool has_equal_answer; /* the cascade has repeated it with an equal answer */
};

/* Why a run is affected. */
enum hd_cascade_why {
    HD_CASCADE_RETRY,   /* its answer is to be made again */
    HD_CASCADE_TRIGGER, /* a changed message made it */
    HD_CASCADE_GIVEN,   /* it was given a changed message */
    HD_CASCADE_LINE     /* an earlier affected run changed its line */
};
extern const char *const hd_cascade_whys[]; /* ends with NULL */

/* Why an affected run cannot be repeated; its answer becomes stale. */
enum hd_cascade_block {
    HD_CASCADE_FREE,
    HD_CASCADE_NO_FORK,    /* the checkpoint was pruned */
    HD_CASCADE_NO_AGENT,   /* deleted, or removed from the room */
    HD_CASCADE_NO_LINE,    /* an earlier run of its line cannot be repeated */
    HD_CASCADE_NO_TRIGGER, /* the run that makes its trigger cannot be repeated */
    HD_CASCADE_IS_PLAIN    /* no message made it */
};
/* A sentence for clients; NULL for HD_CASCADE_FREE. */
const char *hd_cascade_block_text(enum hd_cascade_block block);

enum hd_cascade_approval { HD_CASCADE_GOES, HD_CASCADE_OVER_LIMIT, HD_CASCADE_EFFECTS };

struct hd_cascade_step {
    size_t past; /* index of the run */
    enum hd_cascade_why why;
    struct hd_slice cause; /* the changed message; of HD_CASCADE_LINE: the earlier run */
    enum hd_cascade_block block;
    bool is_direct; /* the edited message made it, or the retry is about it: goes at once */
    enum hd_cascade_approval approval;
    size_t *after; /* indices of earlier steps that must have ended before it begins */
    size_t after_count;
};

struct hd_cascade_question {
    /* The runs of the room in their order: a repeated run in the place of the first one. */
    const struct hd_cascade_past *past;
    size_t past_count;
    struct hd_cascade_pair edited; /* the message, at its new version; empty: a retry */
    struct hd_slice retried;       /* the run of a retry; or empty */
    size_t limit;                  /* repeated runs besides the direct ones without an approval */
};

struct hd_cascade_answer {
    struct hd_cascade_step *steps; /* the affected runs in their order */
    size_t count;
    size_t free;     /* the steps before the first one that needs an approval */
    size_t possible; /* the steps that can be repeated */
};

/* The result is in the arena and borrows from the question. HD_ELIMIT: too many runs. */
HD_MUST_CHECK int hd_cascade_plan(const struct hd_cascade_question *question,
                                  struct hd_arena *arena, struct hd_cascade_answer *out);

#endif
