/* The ancestors from which a checkpoint's delta channels are rebuilt. */
#ifndef HD_STORE_CODEC_DELTA_H
#define HD_STORE_CODEC_DELTA_H

#include "store/codec/value.h"
#include "store/store.h"

struct hd_delta_write;

struct hd_ancestor {
    struct hd_slice id;
    struct hd_checkpoint_body body;
    struct hd_delta_write *writes; /* of the requested channels, by (path, task, idx) */
    struct hd_delta_write *last;   /* the one added last */
    struct hd_ancestor *newer;
};

/* The place of a channel's value; ancestor is NULL when no ancestor has one. */
struct hd_seed {
    struct hd_ancestor *ancestor;
    const struct hd_channel_entry *entry;
};

struct hd_chain {
    const struct hd_slice *channels;
    size_t channel_count;
    struct hd_seed *seeds;      /* one for each channel */
    struct hd_ancestor *oldest; /* linked towards the parent of the checkpoint */
    size_t ancestor_count;
};

/*
 * Walks from the parent of `key` until every channel has its seed. Fills `chain`, whose channels
 * are set by the caller.
 */
HD_MUST_CHECK int hd_chain_walk(struct hd_store *store, const struct hd_key *key,
                                struct hd_chain *chain, struct hd_arena *arena,
                                struct heddle_error *fault);

HD_MUST_CHECK int hd_delta_histories(struct hd_store *store, const struct hd_key *key,
                                     const struct hd_slice *channels, size_t count,
                                     struct hd_arena *arena, struct heddle_history *histories,
                                     struct heddle_error *fault);

#endif
