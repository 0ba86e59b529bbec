/*
 * Observation of other servers: how long the counters in their rows have been unchanged, by the
 * observer's own clock. Pure: times are arguments, microseconds of a clock that counts while the
 * machine is suspended.
 *
 * Silence only counts while the observer could have noticed a beat: it starts again after a look
 * that failed or was slow, after a long time without a look, and when the observer could not write
 * either (hd_observation_restart()). So an outage of the database, or a pause of the observer,
 * never makes another server look dead.
 */
#ifndef HD_CLUSTER_OBSERVATION_H
#define HD_CLUSTER_OBSERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "cluster/cluster.h"

struct hd_observation_entry {
    char slot[HD_UUID_SIZE];
    int64_t token, beat;
    int64_t since_us; /* end of the first look that found this counter */
    bool has_changed; /* the counter has changed since the first look at this server */
    bool is_seen;     /* in this look */
};

struct hd_observation {
    struct hd_observation_entry entries[2 * HD_CLUSTER_MAX_SERVERS];
    size_t count;
    int64_t slow_us;  /* a look that takes longer does not count */
    int64_t gap_us;   /* a longer time between two looks does not count */
    int64_t began_us; /* of the current look */
    int64_t ended_us; /* 0: no look yet */
};

/* `lease_us` of the observer, which bounds the time of a look and between two. */
void hd_observation_init(struct hd_observation *observation, int64_t lease_us);
/* All silence so far is forgotten. */
void hd_observation_restart(struct hd_observation *observation);
/* A successful read of all rows took this time; note each row, then end the look. */
void hd_observation_begin(struct hd_observation *observation, int64_t began_us, int64_t ended_us);
/* Slots and tokens identify servers. Ignores rows beyond twice HD_CLUSTER_MAX_SERVERS. */
void hd_observation_note(struct hd_observation *observation, const char *slot, int64_t token,
                         int64_t beat);
/* Forgets the servers that the look has not found. */
void hd_observation_end(struct hd_observation *observation);
/* How long the counter of a noted server has certainly been unchanged; 0: unknown or new. */
int64_t hd_observation_silence(const struct hd_observation *observation, const char *slot);
/* True if the counter has changed since the first look at this server: it is alive. */
bool hd_observation_has_changed(const struct hd_observation *observation, const char *slot);

#endif
