/*
 * The records of rooms: threads in which people and agents write chat messages to each other.
 *
 * A thread becomes a room with its first chat message or setting. Every batch that changes a room
 * puts its record, whose revision guards the other rows; it also puts the record of the thread when
 * it adds events. The rows begin with the thread, and are deleted with it.
 *
 * As with other records (records/record.h): reading is for store threads, writing appends to a
 * batch, and members called JSON are kept as text.
 *
 *   room_record.c         the room: settings, agents, marks
 *   room_message.c        chat messages and their versions
 *   room_wait.c           messages that wait behind a question
 *   room_run.c            from message to run to answer
 *   room_cascade.c        cascades
 *   room_inbox.c          read marks and mentions of people
 */
#ifndef HD_ROOM_ROOM_H
#define HD_ROOM_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/batch.h"

struct heddle;
struct hd_app;

/* ---- the room --------------------------------------------------------- */

#define HD_ROOM_MAX_AGENTS 64 /* in a room */
#define HD_ROOM_MAX_ASKED 8   /* by one message */
#define HD_ROOM_MAX_NAME 100  /* bytes of an agent's name */
#define HD_ROOM_MAX_ID 128    /* bytes of a message's id */
#define HD_ROOM_MAX_CONTENT ((size_t)8 << 20)

enum hd_room_answers { HD_ROOM_ANSWERS_ASKER, HD_ROOM_ANSWERS_EDITORS };
extern const char *const hd_room_answers_names[]; /* ends with NULL */

struct hd_room_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    int64_t rev;      /* 0: it is not stored yet */
    int64_t last_seq; /* of its messages; 0: none */
    int64_t changes;  /* grows with each edit, deletion and switch: hd_room_message_rec.changed */
    int64_t updated_at;
    struct hd_slice default_assistant_id; /* answers messages that mention no agent; or empty */
    struct hd_slice
        agents; /* JSON list of {"assistant_id", "name", "actor"}: hd_room_agents_read() */
    struct hd_slice marks; /* JSON object: root namespace to [seq, changes], both already given */
    struct hd_slice waits; /* JSON list of [message id, assistant id]: hd_room_waits_read() */
    int64_t context_messages; /* the most messages in the input of a run */
    int64_t context_bytes;
    int64_t cascade_limit; /* regenerated runs without an approval */
    int64_t ask_depth;     /* agents may ask agents: 0: no */
    int64_t ask_runs;      /* the most runs that follow from one message */
    enum hd_room_answers answers;
    bool has_presence;
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/* A new room with the defaults of the API. Borrows both. */
void hd_room_init(struct hd_room_rec *room, struct hd_slice principal, struct hd_slice thread_id);
/* HD_ENOTFOUND: the thread is no room. */
HD_MUST_CHECK int hd_room_read(struct heddle *store, struct hd_slice principal,
                               struct hd_slice thread_id, struct hd_arena *arena,
                               struct hd_room_rec *out, struct heddle_error *fault);
/* Calls `fn` for the rooms of all threads; for the start of a server. */
typedef int (*hd_room_rec_fn)(void *arg, const struct hd_room_rec *room);
HD_MUST_CHECK int hd_rooms_scan(struct heddle *store, hd_room_rec_fn fn, void *arg,
                                struct heddle_error *fault);
/* Conflicts unless the stored one has room->rev; with rev 0, when there is one. Sets the next
 * rev. */
HD_MUST_CHECK int hd_room_put(struct hd_batch_builder *batch, struct hd_room_rec *room);

struct hd_room_agent {
    struct hd_slice assistant_id;
    struct hd_slice name;  /* unique in the room, without regard to case */
    struct hd_slice actor; /* the principal that added it, and owns or sees the assistant */
};

/* The room's agents, in the arena, in the order in which they joined. */
HD_MUST_CHECK int hd_room_agents_read(const struct hd_room_rec *room, struct hd_arena *arena,
                                      struct hd_room_agent **out, size_t *count,
                                      struct heddle_error *fault);
/* Replaces room->agents, in the arena. */
HD_MUST_CHECK int hd_room_agents_write(struct hd_room_rec *room, const struct hd_room_agent *agents,
                                       size_t count, struct hd_arena *arena);

/* Everything up to message `seq` and change `changes` was given to the line or passed over. */
struct hd_room_mark {
    int64_t seq, changes;
};

/* {0, 0} for a line without a mark. */
HD_MUST_CHECK int hd_room_mark_get(const struct hd_room_rec *room, struct hd_slice ns,
                                   struct hd_room_mark *out, struct heddle_error *fault);
HD_MUST_CHECK int hd_room_mark_set(struct hd_room_rec *room, struct hd_slice ns,
                                   struct hd_room_mark mark, struct hd_arena *arena);

/*
 * A message that asks an agent whose question is open: its run is admitted when the agent is asked
 * by no question any more (run/room/room_waiting.h).
 */
struct hd_room_wait {
    struct hd_slice message_id;
    struct hd_slice assistant_id;
};
#define HD_ROOM_MAX_WAITS 100

/* In the arena, in the order of the messages. */
HD_MUST_CHECK int hd_room_waits_read(const struct hd_room_rec *room, struct hd_arena *arena,
                                     struct hd_room_wait **out, size_t *count,
                                     struct heddle_error *fault);
/* Appends one, or removes it, in room->waits. HD_ELIMIT: there are HD_ROOM_MAX_WAITS. */
HD_MUST_CHECK int hd_room_wait_add(struct hd_room_rec *room, const struct hd_room_wait *wait,
                                   struct hd_arena *arena);
HD_MUST_CHECK int hd_room_wait_remove(struct hd_room_rec *room, const struct hd_room_wait *wait,
                                      struct hd_arena *arena);

/* Sets *out to whether a question of the agent waits for a reply. */
HD_MUST_CHECK int hd_room_is_asking(struct heddle *store, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice assistant_id,
                                    bool *out, struct heddle_error *fault);

/* ---- chat messages ---------------------------------------------------- */

enum hd_room_state {
    HD_ROOM_PENDING, /* a question of an agent that waits for a reply */
    HD_ROOM_OK,
    HD_ROOM_STOPPED, /* the answer of a cancelled run */
    HD_ROOM_ERROR,
    HD_ROOM_STALE,
    HD_ROOM_DELETED
};
extern const char *const hd_room_states[]; /* ends with NULL */

enum hd_room_sender { HD_ROOM_PERSON, HD_ROOM_AGENT, HD_ROOM_SERVICE };
extern const char *const hd_room_senders[]; /* "person", "agent", "service", NULL */

struct hd_room_message_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    int64_t seq; /* from 1; grows by 1 */
    struct hd_slice id;
    enum hd_room_state state;
    int64_t version;    /* from 1 */
    int64_t changed;    /* hd_room_rec.changes at its last change after it was posted; 0: never */
    int64_t created_at; /* microseconds since 1970 */
    struct hd_slice sender; /* the sender's key: principal, assistant id, or name of the service */
    enum hd_room_sender kind;
    struct hd_slice sender_id; /* as clients see it: subject, assistant id, name */
    struct hd_slice sender_name;
    struct hd_slice reply_to;    /* a message id; or empty */
    struct hd_slice mentions;    /* JSON list of {"type", "id", "name"}; or empty */
    struct hd_slice replaced_by; /* a message id; or empty */
    struct hd_slice replaces;    /* the message whose answer was regenerated; or empty */
    struct hd_slice run_id;      /* of an agent's message: the run that made it; or empty */
    struct hd_slice checkpoint_id;
    struct hd_slice ns;         /* of an agent's message, or that of a plain run: its line */
    struct hd_slice source_id;  /* its id in the agent's state, if that is another one; or empty */
    struct hd_slice interrupts; /* JSON: of a question; or empty */
    struct hd_slice error;      /* JSON; or empty */
    struct hd_slice feedback;   /* JSON; or empty */
    int64_t updated_at;
    struct hd_slice unknown;
};

/* The text of one version. */
struct hd_room_content_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice message_id;
    int64_t version;
    int64_t created_at;
    struct hd_slice content;  /* JSON: a string or a list of content blocks */
    struct hd_slice metadata; /* JSON object; or empty */
    struct hd_slice unknown;
};

/*
 * Makes the id of a message unique in its room, and repeated requests idempotent. seq 0: the id of
 * an answer whose run has not ended.
 */
struct hd_room_id_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice message_id;
    int64_t seq;
    struct hd_slice hash; /* of the first request; or empty */
};

/* HD_ENOTFOUND: the room has no message with this id (an answer that is not there yet included). */
HD_MUST_CHECK int hd_room_message_read(struct heddle *store, struct hd_slice principal,
                                       struct hd_slice thread_id, struct hd_slice id,
                                       struct hd_arena *arena, struct hd_room_message_rec *out,
                                       struct heddle_error *fault);
/* Conflicts when the seq exists. */
HD_MUST_CHECK int hd_room_message_add(struct hd_batch_builder *batch,
                                      const struct hd_room_message_rec *message);
/* Replaces it. The room's revision guards the row. */
HD_MUST_CHECK int hd_room_message_put(struct hd_batch_builder *batch,
                                      const struct hd_room_message_rec *message);

/* Which messages a list has. 0 or empty: no condition. */
struct hd_room_message_query {
    int64_t after, before; /* exclusive bounds of seq */
    bool is_newest_first;
    size_t limit;           /* 0: all */
    struct hd_slice sender; /* the key */
    int state;              /* of enum hd_room_state; -1: any */
    int64_t changed_after;  /* >= 0: only those changed since, in the order of their changes; -1 */
};

/* Copies the message and all it points to into the arena. */
HD_MUST_CHECK int hd_room_message_copy(struct hd_arena *arena,
                                       const struct hd_room_message_rec *message,
                                       struct hd_room_message_rec *out);

/* The message is valid during the call. A positive result ends the scan; may use the store. */
typedef int (*hd_room_message_fn)(void *arg, const struct hd_room_message_rec *message);

HD_MUST_CHECK int hd_room_messages_scan(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread_id,
                                        const struct hd_room_message_query *query,
                                        hd_room_message_fn fn, void *arg,
                                        struct heddle_error *fault);
/* Messages with a greater seq, by other senders than `reader` (a sender's key). */
HD_MUST_CHECK int hd_room_messages_count(struct heddle *store, struct hd_slice principal,
                                         struct hd_slice thread_id, struct hd_slice reader,
                                         int64_t after, int64_t *out, struct heddle_error *fault);

HD_MUST_CHECK int hd_room_content_read(struct heddle *store, struct hd_slice principal,
                                       struct hd_slice thread_id, struct hd_slice message_id,
                                       int64_t version, struct hd_arena *arena,
                                       struct hd_room_content_rec *out, struct heddle_error *fault);
/* The contents of many messages in their current versions, one round trip; out[i] is zeroed where
 * there is none. */
HD_MUST_CHECK int hd_room_contents_read(struct heddle *store,
                                        const struct hd_room_message_rec *messages, size_t count,
                                        struct hd_arena *arena, struct hd_room_content_rec *out,
                                        struct heddle_error *fault);
/* All versions of a message, oldest first; in the arena. */
HD_MUST_CHECK int hd_room_versions_read(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread_id, struct hd_slice message_id,
                                        struct hd_arena *arena, struct hd_room_content_rec **out,
                                        size_t *count, struct heddle_error *fault);
HD_MUST_CHECK int hd_room_content_add(struct hd_batch_builder *batch,
                                      const struct hd_room_content_rec *content);
/* Deletes all versions of a message. */
HD_MUST_CHECK int hd_room_contents_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                          struct hd_slice thread_id, struct hd_slice message_id);

HD_MUST_CHECK int hd_room_id_read(struct heddle *store, struct hd_slice principal,
                                  struct hd_slice thread_id, struct hd_slice message_id,
                                  struct hd_arena *arena, struct hd_room_id_rec *out,
                                  struct heddle_error *fault);
/* Conflicts when the id exists. */
HD_MUST_CHECK int hd_room_id_add(struct hd_batch_builder *batch, const struct hd_room_id_rec *id);
HD_MUST_CHECK int hd_room_id_put(struct hd_batch_builder *batch, const struct hd_room_id_rec *id);
HD_MUST_CHECK int hd_room_id_delete(struct hd_batch_builder *batch,
                                    const struct hd_room_id_rec *id);

/* ---- runs of a room --------------------------------------------------- */

struct hd_room_run_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice run_id;
    struct hd_slice trigger; /* the id of the chat message that made it; empty: of a plain run */
    int64_t created_at;
    struct hd_slice answer; /* the id of the chat message that it makes */
    struct hd_slice assistant_id;
    struct hd_slice graph_id;
    struct hd_slice runtime; /* hd_room_run_runtime() */
    struct hd_slice ns;
    struct hd_slice given;       /* JSON list of [message id, version] */
    struct hd_slice head_before; /* of its line; empty: it had none */
    struct hd_slice head_after;  /* empty: not ended, or it made no checkpoint */
    struct hd_slice chain;       /* the message at the beginning of a chain of agents; or empty */
    int64_t depth;               /* in that chain; 0: made by a person */
    struct hd_slice cascade;     /* the cascade that it belongs to; or empty */
    struct hd_slice replaces;    /* the run that it repeats in that cascade; or empty */
    bool is_answer;              /* it answers the question of an earlier run */
    struct hd_slice unknown;
};

HD_MUST_CHECK int hd_room_run_read(struct heddle *store, struct hd_slice principal,
                                   struct hd_slice thread_id, struct hd_slice run_id,
                                   struct hd_arena *arena, struct hd_room_run_rec *out,
                                   struct heddle_error *fault);
/* "native", "python" or "typescript"; empty: the graph is not served. */
struct hd_slice hd_room_run_runtime(const struct hd_app *app, struct hd_slice graph_id);
HD_MUST_CHECK int hd_room_run_put(struct hd_batch_builder *batch,
                                  const struct hd_room_run_rec *run);
HD_MUST_CHECK int hd_room_run_delete(struct hd_batch_builder *batch,
                                     const struct hd_room_run_rec *run);
/* The runs that a message made, by run id, or all runs of the room when `trigger` is empty; in the
 * arena. */
HD_MUST_CHECK int hd_room_runs_read(struct heddle *store, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice trigger,
                                    struct hd_arena *arena, struct hd_room_run_rec **out,
                                    size_t *count, struct heddle_error *fault);

/*
 * The runs that many messages made, message by message, one round trip: counts[i] of them belong to
 * messages[i]. In the arena.
 */
HD_MUST_CHECK int hd_room_runs_of(struct heddle *store, const struct hd_room_message_rec *messages,
                                  size_t message_count, struct hd_arena *arena,
                                  struct hd_room_run_rec **out, size_t *counts,
                                  struct heddle_error *fault);

/* ---- cascades --------------------------------------------------------- */

enum hd_cascade_status {
    HD_CASCADE_RUNNING,
    HD_CASCADE_WAITING, /* for an approval, or for the answer to a question */
    HD_CASCADE_DONE,
    HD_CASCADE_DECLINED,
    HD_CASCADE_CANCELLED,
    HD_CASCADE_FAILED,
    HD_CASCADE_UNDONE
};
extern const char *const hd_cascade_statuses[]; /* ends with NULL */

struct hd_cascade_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice id;
    int64_t rev; /* 0: it is not stored yet */
    enum hd_cascade_status status;
    int64_t created_at;
    int64_t updated_at;
    struct hd_slice message_id; /* the edited message, or the one whose answer is regenerated */
    int64_t version;            /* the version that the edit made */
    struct hd_slice actor;      /* the editor */
    struct hd_slice editor;     /* JSON: the sender as clients see it */
    struct hd_slice user;       /* JSON: hd_admission.user of its runs; or empty */
    int64_t limit;
    int64_t approved;       /* runs of the plan that may go; -1: all */
    struct hd_slice plan;   /* JSON list: the runs in order, with what became of each */
    struct hd_slice before; /* JSON: heads and messages before the switch; for an undo */
    struct hd_slice reason; /* why it waits or failed; or empty */
    struct hd_slice unknown;
};

HD_MUST_CHECK int hd_cascade_read(struct heddle *store, struct hd_slice principal,
                                  struct hd_slice thread_id, struct hd_slice id,
                                  struct hd_arena *arena, struct hd_cascade_rec *out,
                                  struct heddle_error *fault);
/* Conflicts unless the stored one has cascade->rev; with rev 0, when there is one. */
HD_MUST_CHECK int hd_cascade_put(struct hd_batch_builder *batch, struct hd_cascade_rec *cascade);
/* The cascades of a room, newest first; at most `limit` of them. In the arena. */
HD_MUST_CHECK int hd_cascades_read(struct heddle *store, struct hd_slice principal,
                                   struct hd_slice thread_id, size_t limit, struct hd_arena *arena,
                                   struct hd_cascade_rec **out, size_t *count,
                                   struct heddle_error *fault);
/* Calls `fn` for every cascade of all rooms that runs or waits; for the start of a server. */
typedef int (*hd_cascade_fn)(void *arg, const struct hd_cascade_rec *cascade);
HD_MUST_CHECK int hd_cascades_open(struct heddle *store, hd_cascade_fn fn, void *arg,
                                   struct heddle_error *fault);

/* ---- people ----------------------------------------------------------- */

struct hd_room_read_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice reader; /* a principal */
    int64_t seq;            /* everything up to it was read */
    int64_t updated_at;
    struct hd_slice reader_id; /* as clients see it */
    struct hd_slice unknown;
};

/* seq 0 for a reader without a mark. */
HD_MUST_CHECK int hd_room_read_mark(struct heddle *store, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice reader,
                                    struct hd_arena *arena, struct hd_room_read_rec *out,
                                    struct heddle_error *fault);
HD_MUST_CHECK int hd_room_read_put(struct hd_batch_builder *batch,
                                   const struct hd_room_read_rec *mark);
/* Everybody's marks, in the arena. */
HD_MUST_CHECK int hd_room_read_marks(struct heddle *store, struct hd_slice principal,
                                     struct hd_slice thread_id, struct hd_arena *arena,
                                     struct hd_room_read_rec **out, size_t *count,
                                     struct heddle_error *fault);

/* An entry in the inbox of a person. Derived from messages; deleted with its thread. */
struct hd_mention_rec {
    struct hd_slice member; /* the principal that is mentioned */
    int64_t created_at;
    struct hd_slice principal; /* owner of the thread */
    struct hd_slice thread_id;
    struct hd_slice message_id;
    int64_t seq; /* of the message */
};

HD_MUST_CHECK int hd_mention_add(struct hd_batch_builder *batch,
                                 const struct hd_mention_rec *mention);
/* Appends the deletion of the entries for that member and message, whatever their times. */
HD_MUST_CHECK int hd_mention_remove(struct heddle *store, struct hd_batch_builder *batch,
                                    const struct hd_mention_rec *mention,
                                    struct heddle_error *fault);
/* Newest first, older than `before` (0: all); in the arena. */
HD_MUST_CHECK int hd_mentions_read(struct heddle *store, struct hd_slice member, int64_t before,
                                   size_t limit, struct hd_arena *arena,
                                   struct hd_mention_rec **out, size_t *count,
                                   struct heddle_error *fault);
/* The mentioning messages, one round trip; out[i].seq is 0 for one that does not exist. In the
 * arena. */
HD_MUST_CHECK int hd_mention_messages_read(struct heddle *store,
                                           const struct hd_mention_rec *mentions, size_t count,
                                           struct hd_arena *arena, struct hd_room_message_rec *out,
                                           struct heddle_error *fault);
/* Appends the deletion of all mentions in a thread. */
HD_MUST_CHECK int hd_mentions_delete(struct heddle *store, struct hd_batch_builder *batch,
                                     struct hd_slice principal, struct hd_slice thread_id,
                                     struct heddle_error *fault);

/* Appends the deletion of all rows of the room but mentions. */
HD_MUST_CHECK int hd_room_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                 struct hd_slice thread_id);

#endif
