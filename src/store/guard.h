/* What the writes of a run expect of its thread; see store/thread_fence.h. */
#ifndef HD_STORE_GUARD_H
#define HD_STORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct hd_guard {
    int64_t created_at; /* creation time of the thread's record; 0: not checked */
    int64_t token;      /* of this server's hold on the thread; 0: not checked */
};

#define HD_NO_GUARD ((struct hd_guard){0, 0})

static inline bool hd_guard_is_set(struct hd_guard guard)
{
    return guard.created_at || guard.token;
}

static inline bool hd_guard_eq(struct hd_guard a, struct hd_guard b)
{
    return a.created_at == b.created_at && a.token == b.token;
}

#endif
