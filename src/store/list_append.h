/*
 * Puts a list that has grown, at the cost of the added elements.
 *
 * heddle_put() takes a value as bytes: to put a list of a thousand messages again means to write,
 * split and hash a thousand messages. A caller that keeps the list between puts can do better. A
 * *listing* is the text of a growing list, with the position up to which it is hashed and split.
 * Each put takes a *growth* of it: the current list, expressed as the list at the previous growth
 * and the elements added since.
 *
 * The stored rows are the same as if the whole text had been put. If the store no longer has the
 * base of the growth (another parent, a checkpoint that was never stored, a restart, a conflict, a
 * collection in progress), it uses the whole text, which the growth still has.
 *
 * A listing and its growths belong to one thread, but during a put the store's threads read the
 * growth.
 */
#ifndef HD_STORE_LIST_APPEND_H
#define HD_STORE_LIST_APPEND_H

#include <heddle.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "store/codec/split.h"
#include "store/guard.h"

struct hd_listing;

/* Total bytes of a listing and the data its growths share. */
struct hd_text;

struct hd_growth {
    struct hd_text *text;
    size_t size;             /* of the list's text */
    uint64_t checksum;       /* of the list's text */
    struct hd_pieces pieces; /* of the whole text; or, with a base, those after the base's */

    /* The value it continues; without one the pieces are the whole value. */
    bool has_base;
    uint64_t base_size;
    uint64_t base_checksum;
    bool drops_chunk; /* the base's last chunk is part of the pieces again */
};

/* NULL when memory is exhausted. The list is empty. */
HD_MUST_CHECK struct hd_listing *hd_listing_create(void);
void hd_listing_destroy(struct hd_listing *listing);

/* Appends an element, as compact JSON text; copies it. 0 or HD_ENOMEM; then it must be reset. */
HD_MUST_CHECK int hd_listing_add(struct hd_listing *listing, struct hd_slice element);

/*
 * Sets the list to this text, which is a stored value: the next growth continues from it. 0,
 * HD_ENOMEM, or HD_EINVAL when it is not a compact JSON list; on error the listing is empty.
 */
HD_MUST_CHECK int hd_listing_read(struct hd_listing *listing, struct hd_slice text);

/* The text at the last growth; false when there was none. */
bool hd_listing_is(const struct hd_listing *listing, uint64_t *size, uint64_t *checksum);

/* Empties the list. */
void hd_listing_reset(struct hd_listing *listing);

/* A growth of the current list. Free it with hd_growth_destroy(). 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_listing_grow(struct hd_listing *listing, struct hd_growth **out);
void hd_growth_destroy(struct hd_growth *growth);

/* The text as one value of growth->size bytes. */
void hd_growth_write(const struct hd_growth *growth, char *out);

/* A value that the caller still has, with its identity. */
struct hd_known {
    struct heddle_bytes channel;
    struct heddle_bytes type;
    uint64_t size;
    uint64_t checksum;
};

/*
 * As heddle_get(), but does not read known values: their data.data is NULL and their length is set.
 */
HD_MUST_CHECK int hd_store_get_unknown(struct heddle *store, const struct heddle_key *key,
                                       const struct hd_known *known, size_t known_count,
                                       struct heddle_tuple **out, struct heddle_error *error);

/*
 * Puts of one thread that depend on those before them: when one fails, the following ones fail too.
 * Zero-initialise it; it must stay valid until all of them are done.
 */
struct hd_write_chain {
    int err; /* owned by the lane */
};

/*
 * The parsed contents of a checkpoint's JSON, given by its writer so that the store need not parse
 * it.
 */
struct hd_outline {
    int64_t v;
    struct hd_slice run_id;          /* of the metadata; empty: none */
    const struct hd_slice *channels; /* those of channel_versions … */
    const bool *has_changed;         /* … are in new_versions, otherwise as in the parent */
    size_t channel_count;
};

/* Optional inputs of a put; each may be NULL and must stay valid until the put is done. */
struct hd_put_extras {
    /* By value: where one is not NULL it replaces the data, of which only data.len is used. */
    const struct hd_growth *const *growths;
    const struct hd_outline *outline;
    struct hd_write_chain *chain; /* of queued puts */
    /*
     * If the thread is not as this guard says, nothing is stored. HD_ENOTFOUND: it was deleted;
     * HD_ETAKEN: another server has taken it over.
     */
    struct hd_guard guard;
};

/* As heddle_put(); `extras` may be NULL. */
HD_MUST_CHECK int hd_store_put(struct heddle *store, const struct heddle_checkpoint *checkpoint,
                               const struct hd_put_extras *extras, struct heddle_error *error);

/* As heddle_put_writes(), with the guard of struct hd_put_extras. */
HD_MUST_CHECK int hd_store_put_writes(struct heddle *store, const struct heddle_writes *writes,
                                      struct hd_guard guard, struct heddle_error *error);

/*
 * As heddle_put_async() and heddle_put_writes_async() for a caller with several writes: these only
 * queue, in this order, until hd_store_queue_go(); then they share a commit. Errors in the input
 * are returned at once, not through `done`.
 */
HD_MUST_CHECK int hd_store_queue_put(struct heddle *store,
                                     const struct heddle_checkpoint *checkpoint,
                                     const struct hd_put_extras *extras, heddle_done done,
                                     void *arg, struct heddle_error *error);
HD_MUST_CHECK int hd_store_queue_writes(struct heddle *store, const struct heddle_writes *writes,
                                        struct hd_guard guard, heddle_done done, void *arg,
                                        struct heddle_error *error);
void hd_store_queue_go(struct heddle *store);

#endif
