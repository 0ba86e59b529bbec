/*
 * Putting a list that has grown, at the cost of what was added.
 *
 * heddle_put() takes a value as bytes: to put a list of a thousand messages
 * again means to write, cut and hash a thousand messages. Who keeps the list
 * between puts can do better. A *listing* is the text of a list as it grows: it
 * remembers how far the text is hashed and cut. Each put takes a *growth* of it:
 * what the list is now, said as what it was at the growth before and what came
 * since.
 *
 * The rows are the same as if the whole text had been put. If the store does not
 * know any more what the growth builds on (another parent, a checkpoint that was
 * never stored, a restart, a conflict, a collection under way), it takes the
 * whole text, which the growth still has.
 *
 * A listing and its growths belong to one thread, but while a put is under way
 * the store's threads read the growth.
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

struct hd_listing;

/* Bytes of a listing and of what its growths share, all in all. */
struct hd_text;

struct hd_growth {
    struct hd_text *text;
    size_t size;             /* of the list's text */
    uint64_t checksum;       /* of the list's text */
    struct hd_pieces pieces; /* of the whole text; or, with a base, those after the base's */

    /* The value it goes on from; without one the pieces are all there are. */
    bool has_base;
    uint64_t base_size;
    uint64_t base_checksum;
    bool drops_chunk; /* the base's last chunk is part of the pieces again */
};

/* NULL when memory is exhausted. The list is empty. */
HD_MUST_CHECK struct hd_listing *hd_listing_create(void);
void hd_listing_destroy(struct hd_listing *listing);

/* The next element, as compact JSON text; copies it. 0 or HD_ENOMEM; then it must be reset. */
HD_MUST_CHECK int hd_listing_add(struct hd_listing *listing, struct hd_slice element);

/*
 * Makes it the list of this text, which is a stored value: its next growth goes on from there. 0,
 * HD_ENOMEM, or HD_EINVAL when it is no compact list of anything; on error it is empty.
 */
HD_MUST_CHECK int hd_listing_read(struct hd_listing *listing, struct hd_slice text);

/* What the text was at the last growth; false when there was none. */
bool hd_listing_is(const struct hd_listing *listing, uint64_t *size, uint64_t *checksum);

/* Empties the list. */
void hd_listing_reset(struct hd_listing *listing);

/* What the list is now. Give it back with hd_growth_destroy(). 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_listing_grow(struct hd_listing *listing, struct hd_growth **out);
void hd_growth_destroy(struct hd_growth *growth);

/* The text as one value of growth->size bytes. */
void hd_growth_write(const struct hd_growth *growth, char *out);

/* A value that the caller still has, with what identifies it. */
struct hd_known {
    struct heddle_bytes channel;
    struct heddle_bytes type;
    uint64_t size;
    uint64_t checksum;
};

/*
 * As heddle_get(), but values that are known are not read: their data.data is
 * NULL and their length right.
 */
HD_MUST_CHECK int hd_get_unknown(struct heddle *store, const struct heddle_key *key,
                                 const struct hd_known *known, size_t known_count,
                                 struct heddle_tuple **out, struct heddle_error *error);

/*
 * Puts of one thread that mean nothing without those before them: when one
 * fails, those behind it fail too. Zero-initialise it; it must stay until all of
 * them are answered.
 */
struct hd_train {
    int err; /* the lane's */
};

/* What the JSON of a checkpoint says, from who wrote it: then the store does not read it. */
struct hd_outline {
    int64_t v;
    struct hd_slice run_id;          /* of the metadata; empty: none */
    const struct hd_slice *channels; /* those of channel_versions … */
    const bool *has_changed;         /* … are in new_versions, or else as in the parent */
    size_t channel_count;
};

/* What a put may bring along; all of it may be NULL and must stay until it is answered. */
struct hd_extras {
    /* By value: where one is not NULL it stands for the data, of which only data.len is right. */
    const struct hd_growth *const *growths;
    const struct hd_outline *outline;
    struct hd_train *train; /* of queued ones */
    /*
     * When the server's record of the thread was made. If there is none that was made then, the
     * thread was deleted, and nothing is stored: HD_ENOTFOUND. 0: whether or not there is one.
     */
    int64_t guard;
};

/* As heddle_put(); `extras` may be NULL. */
HD_MUST_CHECK int hd_put_with(struct heddle *store, const struct heddle_checkpoint *checkpoint,
                              const struct hd_extras *extras, struct heddle_error *error);

/* As heddle_put_writes(), with the guard of struct hd_extras. */
HD_MUST_CHECK int hd_writes_with(struct heddle *store, const struct heddle_writes *writes,
                                 int64_t guard, struct heddle_error *error);

/*
 * As heddle_put_async() and heddle_put_writes_async() for who has several things
 * to write: they are only queued, in this order, until hd_queue_go(); then they
 * share a commit. What is wrong with the input is answered at once, not through
 * `done`.
 */
HD_MUST_CHECK int hd_queue_put(struct heddle *store, const struct heddle_checkpoint *checkpoint,
                               const struct hd_extras *extras, heddle_done done, void *arg,
                               struct heddle_error *error);
HD_MUST_CHECK int hd_queue_writes(struct heddle *store, const struct heddle_writes *writes,
                                  int64_t guard, heddle_done done, void *arg,
                                  struct heddle_error *error);
void hd_queue_go(struct heddle *store);

#endif
