/*
 * The audit log: one JSON line for each action with its actor, objects and outcome. Lines hold
 * names and ids, never contents or credentials. They are appended in one write at the end of a loop
 * iteration; hd_audit_reopen() creates the file again after a rotation. Everything here belongs to
 * the loop.
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
    const struct hd_identity *identity; /* NULL: not authenticated */
    struct hd_slice act_for;            /* the principal that an operator acts for */
    struct hd_slice action;             /* "POST /threads/{thread_id}/runs", "cron" */
    const struct hd_audit_object *objects;
    size_t object_count;
    struct hd_slice owner; /* owner of the objects, when not the actor */
    const char *role;      /* in the thread; NULL: not applicable */
    int status;            /* of the response; 0: no request */
    struct hd_slice request_id;
    struct hd_slice peer;
};

/* Opens the file; creates it with mode 0600 when it does not exist. */
HD_MUST_CHECK int hd_audit_create(uv_loop_t *loop, const char *path, struct hd_audit **out,
                                  struct heddle_error *fault);
/* Writes the remaining lines. The memory is freed when the loop has closed its handle. */
void hd_audit_destroy(struct hd_audit *audit);

/* Accepts NULL: no audit log is configured. */
void hd_audit_note(struct hd_audit *audit, const struct hd_audit_entry *entry);
/* Opens the file again, by its name. */
void hd_audit_reopen(struct hd_audit *audit);

/* Entries that could not be written. */
uint64_t hd_audit_lost(const struct hd_audit *audit);

#endif
