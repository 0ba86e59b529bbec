/* Shared by channel.c, reducers.c and messages.c. */
#ifndef HD_GRAPH_ENGINE_CHANNEL_INTERNAL_H
#define HD_GRAPH_ENGINE_CHANNEL_INTERNAL_H

#include "graph/engine/channel.h"

/*
 * Returns HD_EINVAL, so that callers write `return hd_refuse(...)`, or HD_ENOMEM. `refusal` may be
 * NULL. Keeps the first refusal.
 */
int hd_refuse(struct hd_refusal *refusal, const char *type, const char *fmt, ...) HD_PRINTF(3, 4);

/*
 * A binary operator: combines the channel's value and one update. Takes `left`. HD_EINVAL with
 * `refusal` set, HD_ENOMEM.
 */
typedef int (*hd_combine_fn)(struct hd_channel *channel, struct hd_val *left,
                             const struct hd_val *right, struct hd_val **out,
                             struct hd_refusal *refusal);

int hd_combine_add(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_merge(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                     struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_max(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_min(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_and(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_or(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                  struct hd_val **out, struct hd_refusal *refusal);
int hd_combine_messages(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                        struct hd_val **out, struct hd_refusal *refusal);

/* The functions below accept NULL. */
void hd_messages_destroy(struct hd_messages *messages);
/*
 * Call one after each update: commit if it succeeded; rewind to `value` if it failed or was a peek.
 */
void hd_messages_commit(struct hd_messages *messages);
void hd_messages_rewind(struct hd_messages *messages, const struct hd_val *value);

#endif
