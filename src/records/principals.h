/*
 * Principals: the rows of the table `principals`. For store threads.
 *
 * A principal is a keyed hash, so its input is stored beside it: from that and a new key `heddle
 * rekey` computes it again. While a principal moves, requests of it are refused; requests accepted
 * before end within HD_AUTH_RECHECK_US if their server has the old key configured as an old one.
 */
#ifndef HD_RECORDS_PRINCIPALS_H
#define HD_RECORDS_PRINCIPALS_H

#include <stdint.h>

#include "auth/auth.h"
#include "auth/principal.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/batch.h"

struct heddle;

enum hd_principal_state {
    HD_PRINCIPAL_HERE,
    HD_PRINCIPAL_MOVING, /* 503 with Retry-After */
    HD_PRINCIPAL_MOVED   /* its rows belong to the principal of a newer key */
};

struct hd_principal_rec {
    struct hd_slice id; /* the principal */
    int64_t rev;        /* 0: it is not stored yet */
    enum hd_principal_kind kind;
    struct hd_slice key_id; /* the key it was derived with; empty: without one */
    struct hd_slice issuer; /* the alias */
    struct hd_slice subject;
    enum hd_principal_state state;
    int64_t created_at;
    struct hd_slice moved_to; /* the principal it became, or becomes; may be empty */
    struct hd_slice unknown;  /* members of the body that a newer version wrote */
};

/* HD_ENOTFOUND: no such row. */
HD_MUST_CHECK int hd_principal_read(struct heddle *store, struct hd_slice id,
                                    struct hd_arena *arena, struct hd_principal_rec *out,
                                    struct heddle_error *fault);
/* A positive answer ends the scan. */
typedef int (*hd_principal_fn)(void *arg, const struct hd_principal_rec *principal);
/* All of them, in the order of their ids, from behind `after` (may be empty). */
HD_MUST_CHECK int hd_principals_scan(struct heddle *store, struct hd_slice after,
                                     hd_principal_fn fn, void *arg, struct heddle_error *fault);
/* Does nothing when it exists. */
HD_MUST_CHECK int hd_principal_add(struct hd_batch_builder *batch,
                                   struct hd_principal_rec *principal);
/* Conflicts unless the stored one has principal->rev. */
HD_MUST_CHECK int hd_principal_put(struct hd_batch_builder *batch,
                                   struct hd_principal_rec *principal);
HD_MUST_CHECK int hd_principal_delete(struct hd_batch_builder *batch, struct hd_slice id);
/* The lane that writes to this table, for hd_rows_apply(). */
struct hd_slice hd_principal_lane(void);

/*
 * The principal of a user: that of the newest key, or of an older one while its rows have not
 * moved. Its row exists afterwards. HD_EBUSY: it is being moved; try again in a few seconds.
 */
HD_MUST_CHECK int hd_principal_settle(struct heddle *store, const struct hd_auth *auth,
                                      enum hd_principal_kind kind, struct hd_slice alias,
                                      struct hd_slice subject, char out[HD_PRINCIPAL_SIZE],
                                      struct heddle_error *fault);

#endif
