/*
 * The audit log: who did what to which object and whether it was let, a JSON line each. It has
 * names and ids, never contents or credentials. Lines are appended in one piece, at the end of the
 * loop's turn; a file that was moved away is made again after hd_audit_reopen(). Everything here
 * belongs to the loop.
 */
#ifndef HD_GATE_AUDIT_H
#define HD_GATE_AUDIT_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "auth/identity.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_audit;

struct hd_audit_object {
    struct hd_slice kind; /* "thread_id" */
    struct hd_slice id;
};

/* All may be empty. */
struct hd_audit_entry {
    const struct hd_identity *who; /* NULL: nobody, or not known who */
    struct hd_slice act_for;       /* the principal that an operator acts for */
    struct hd_slice action;        /* "POST /threads/{thread_id}/runs", "cron" */
    const struct hd_audit_object *objects;
    size_t object_count;
    struct hd_slice owner; /* the principal whose objects they are, when it is not the actor's */
    const char *role;      /* in the thread; NULL: it does not matter */
    int status;            /* of the answer; 0: there was no request */
    struct hd_slice request_id;
    struct hd_slice peer;
};

/* Opens the file; it is made, for its owner only, when it is not there. */
HD_MUST_CHECK int hd_audit_create(uv_loop_t *loop, const char *path, struct hd_audit **out,
                                  struct hd_fault *fault);
/* Writes what is left. The memory goes when the loop has closed its handle. */
void hd_audit_destroy(struct hd_audit *audit);

/* Nothing happens without an audit log (NULL). */
void hd_audit_note(struct hd_audit *audit, const struct hd_audit_entry *entry);
/* Opens the file again, by its name. */
void hd_audit_reopen(struct hd_audit *audit);

/* Entries that could not be written. */
uint64_t hd_audit_lost(const struct hd_audit *audit);

#endif
