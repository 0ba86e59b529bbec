/*
 * Mentions in the text of a chat message: `@name`, or `@"two words"`. Pure.
 *
 * A mention begins at a word boundary and ends at one, without regard to case; of several names
 * that fit, the longest counts. Markdown's code spans and fenced blocks, e-mail addresses and
 * addresses with a scheme have no mentions. An unknown name is text.
 */
#ifndef HD_ROOM_MENTION_H
#define HD_ROOM_MENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* A name that a text may mention. Several names may have one target. */
struct hd_mention_name {
    struct hd_slice name;
    size_t target;
    int rank; /* of two targets with the same name, that with the lower rank is meant */
};

struct hd_mention {
    struct hd_slice text; /* as it was written, without `@` and quotes */
    size_t target;
    bool is_ambiguous; /* the text means other targets as well: hd_mention_means() */
};

/*
 * Finds the mentions in a text, each target once, in their order; adds them to the *count that
 * `out` has, up to `most`. False: there are more.
 */
bool hd_mentions_find(struct hd_slice text, const struct hd_mention_name *names, size_t name_count,
                      struct hd_mention *out, size_t most, size_t *count);

/* Finds what a whole text means, as if it were written behind `@`. False: nothing. */
bool hd_mention_resolve(struct hd_slice text, const struct hd_mention_name *names,
                        size_t name_count, struct hd_mention *out);

/* True if the text of the mention is this name, without regard to case. */
bool hd_mention_means(const struct hd_mention *mention, const struct hd_mention_name *name);

#endif
