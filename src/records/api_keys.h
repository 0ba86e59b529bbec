/* API keys as they are stored: rows of the table `api_keys`. For store threads. */
#ifndef HD_RECORDS_API_KEYS_H
#define HD_RECORDS_API_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/batch.h"

struct heddle;

struct hd_key_rec {
    struct hd_api_key key;
    int64_t rev; /* 0: it is not stored yet */
    int64_t created_at;
    struct hd_slice unknown; /* members of the body that a newer version wrote */
};

/* HD_ENOTFOUND: no such key. */
HD_MUST_CHECK int hd_key_read(struct heddle *store, struct hd_slice id, struct hd_arena *arena,
                              struct hd_key_rec *out, struct heddle_error *fault);
/* A positive answer ends the scan. */
typedef int (*hd_key_fn)(void *arg, const struct hd_key_rec *key);
HD_MUST_CHECK int hd_keys_scan(struct heddle *store, hd_key_fn fn, void *arg,
                               struct heddle_error *fault);
/* Conflicts when the id exists. */
HD_MUST_CHECK int hd_key_add(struct hd_batch_builder *batch, struct hd_key_rec *key);
/* Conflicts unless the stored one has key->rev. */
HD_MUST_CHECK int hd_key_put(struct hd_batch_builder *batch, struct hd_key_rec *key);
/* The lane that writes to this table, for hd_rows_apply(). */
struct hd_slice hd_key_lane(void);

#endif
