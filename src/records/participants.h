/*
 * Shared threads: their participants, and the invitations to become one.
 *
 * A participant is a principal, or an organisation: every user whose token names it. The key of its
 * row begins with the participant, so looking up a thread of another owner is a single read,
 * whether or not the thread is shared. Rows are added and changed only while the thread exists: the
 * batch expects its record, and deleting a thread deletes them.
 *
 * The key of an invitation is the hash of its token; the token itself is not stored.
 *
 * As with other records (record.h): reading is for store threads, writing appends to a batch.
 *
 *   participants.c invitations.c
 */
#ifndef HD_RECORDS_PARTICIPANTS_H
#define HD_RECORDS_PARTICIPANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/identity.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"
#include "store/batch.h"

struct heddle;

#define HD_MAX_PARTICIPANTS 1000 /* of a thread */
#define HD_MAX_INVITATIONS 100   /* of a thread */
#define HD_MAX_SHARED 100000     /* threads of one participant; more are not listed */

/* "viewer", "editor", "owner"; "none" for no role. */
const char *hd_role_name(enum hd_role role);

/* ---- participants ----------------------------------------------------- */

struct hd_participant_rec {
    struct hd_slice member; /* its principal */
    struct hd_slice thread_id;
    struct hd_slice owner; /* the thread's owner */
    enum hd_role role;
    int64_t created_at;
    bool is_organisation;
    struct hd_slice issuer;  /* the alias */
    struct hd_slice subject; /* as clients see it: of the person, or the organisation's name */
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/*
 * The owner and the role of a thread with that id that is shared with the actor or with one of its
 * organisations. Of several owners the one that shared first counts, with the greatest role it
 * gave. One read. *owner is in the arena. HD_ENOTFOUND: not shared.
 */
HD_MUST_CHECK int hd_participation_find(struct heddle *store, struct hd_slice actor,
                                        const struct hd_slice *organisations, size_t count,
                                        struct hd_slice thread_id, struct hd_arena *arena,
                                        struct hd_slice *owner, enum hd_role *role,
                                        struct heddle_error *fault);

/* A thread that is shared with a participant. */
struct hd_shared {
    struct hd_slice thread_id;
    struct hd_slice owner;
    enum hd_role role;
    int64_t since;
};

/* All that hd_participation_find() finds, each once, by id; in the arena. HD_ELIMIT: too many. */
HD_MUST_CHECK int hd_participations_list(struct heddle *store, struct hd_slice actor,
                                         const struct hd_slice *organisations, size_t count,
                                         struct hd_arena *arena, struct hd_shared **out,
                                         size_t *out_count, struct heddle_error *fault);

/* As hd_thread_fn: a negative answer ends the scan with this error, a positive one without. */
typedef int (*hd_participant_fn)(void *arg, const struct hd_participant_rec *participant);

/* Everything that is shared with a principal, by thread and owner; `fn` may use the store. */
HD_MUST_CHECK int hd_participations_scan(struct heddle *store, struct hd_slice member,
                                         hd_participant_fn fn, void *arg,
                                         struct heddle_error *fault);
/* The participants of a thread, in the order of their principals. */
HD_MUST_CHECK int hd_participants_scan(struct heddle *store, struct hd_slice owner,
                                       struct hd_slice thread_id, hd_participant_fn fn, void *arg,
                                       struct heddle_error *fault);
/* The number of participants of a thread; counts up to `most`. */
HD_MUST_CHECK int hd_participants_count(struct heddle *store, struct hd_slice owner,
                                        struct hd_slice thread_id, size_t most, size_t *out,
                                        struct heddle_error *fault);
/* Whether the thread has more than one person: participants, or an actor who is not its owner. */
HD_MUST_CHECK int hd_participants_share(struct heddle *store, struct hd_slice owner,
                                        struct hd_slice thread_id, struct hd_slice actor, bool *out,
                                        struct heddle_error *fault);
/*
 * Whether a principal is the owner, or takes part with at least this role: for work that continues
 * long after its request. Only a token proves the membership of an organisation; so a thread that
 * is shared with one includes everybody.
 */
HD_MUST_CHECK int hd_participants_include(struct heddle *store, struct hd_slice owner,
                                          struct hd_slice thread_id, struct hd_slice principal,
                                          enum hd_role least, bool *out,
                                          struct heddle_error *fault);
HD_MUST_CHECK int hd_participant_read(struct heddle *store, struct hd_slice member,
                                      struct hd_slice owner, struct hd_slice thread_id,
                                      struct hd_arena *arena, struct hd_participant_rec *out,
                                      struct heddle_error *fault);

/* Conflicts when the participant exists, or `thread` was deleted. */
HD_MUST_CHECK int hd_participant_add(struct hd_batch_builder *batch,
                                     const struct hd_thread_rec *thread,
                                     const struct hd_participant_rec *participant);
/* Sets another role; conflicts when participant->role is out of date. Keeps the record as it is. */
HD_MUST_CHECK int hd_participant_set_role(struct hd_batch_builder *batch,
                                          const struct hd_participant_rec *participant,
                                          enum hd_role role);
/* Conflicts when participant->role is out of date, or the row was deleted. */
HD_MUST_CHECK int hd_participant_remove(struct hd_batch_builder *batch,
                                        const struct hd_participant_rec *participant);

/* ---- invitations ------------------------------------------------------ */

#define HD_INVITATION_ID_LEN 64 /* SHA-256, hexadecimal */
#define HD_INVITATION_ID_SIZE (HD_INVITATION_ID_LEN + 1)
#define HD_INVITATION_TOKEN_LEN 43 /* 32 random bytes, base64url */
#define HD_INVITATION_TOKEN_SIZE (HD_INVITATION_TOKEN_LEN + 1)

struct hd_invitation_rec {
    struct hd_slice id; /* the hash of its token */
    int64_t rev;        /* 0: it is not stored yet */
    struct hd_slice owner;
    struct hd_slice thread_id;
    enum hd_role role;
    int64_t left; /* remaining acceptances; at least 1 */
    int64_t uses; /* acceptances allowed when it was created */
    int64_t created_at;
    int64_t expires_at;      /* 0: never */
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/* A new token. HD_EIO: the system has no randomness. */
HD_MUST_CHECK int hd_invitation_token(char token[HD_INVITATION_TOKEN_SIZE]);
/* The id that belongs to a token, whatever was sent as one. */
HD_MUST_CHECK int hd_invitation_id(struct hd_slice token, char id[HD_INVITATION_ID_SIZE]);

/* HD_ENOTFOUND also when it has expired. */
HD_MUST_CHECK int hd_invitation_read(struct heddle *store, struct hd_slice id, int64_t now,
                                     struct hd_arena *arena, struct hd_invitation_rec *out,
                                     struct heddle_error *fault);
/* Conflicts when `thread` was deleted. */
HD_MUST_CHECK int hd_invitation_add(struct hd_batch_builder *batch,
                                    const struct hd_thread_rec *thread,
                                    struct hd_invitation_rec *invitation);
/*
 * Counts one acceptance; the last one deletes the invitation. The batch conflicts when the
 * invitation has changed since it was read, so the participant's row belongs into the same batch.
 */
HD_MUST_CHECK int hd_invitation_use(struct hd_batch_builder *batch,
                                    struct hd_invitation_rec *invitation);
HD_MUST_CHECK int hd_invitation_delete(struct hd_batch_builder *batch, struct hd_slice id);

/* As hd_thread_fn. */
typedef int (*hd_invitation_fn)(void *arg, const struct hd_invitation_rec *invitation);

/* The invitations of a thread, also those that have expired, by id. */
HD_MUST_CHECK int hd_invitations_scan(struct heddle *store, struct hd_slice owner,
                                      struct hd_slice thread_id, hd_invitation_fn fn, void *arg,
                                      struct heddle_error *fault);
/* Removes up to `most` expired invitations of all principals; *count is their number. */
HD_MUST_CHECK int hd_invitations_expire(struct heddle *store, int64_t now, size_t most,
                                        size_t *count, struct heddle_error *fault);

/* ---- deleting a thread ------------------------------------------------ */

/*
 * Appends the deletion of the crons that run on a thread: those of its owner and of the persons
 * that take part in it. A cron of a former participant is deleted when it is due.
 */
HD_MUST_CHECK int hd_participants_delete_crons(struct heddle *store, struct hd_batch_builder *batch,
                                               struct hd_slice owner, struct hd_slice thread_id,
                                               struct heddle_error *fault);

/* Appends the deletion of all participants and invitations that a thread has now. */
HD_MUST_CHECK int hd_participants_delete(struct heddle *store, struct hd_batch_builder *batch,
                                         struct hd_slice owner, struct hd_slice thread_id,
                                         struct heddle_error *fault);

#endif
