#include "cluster/observation.h"

#include <string.h>

void hd_observation_init(struct hd_observation *observation, int64_t lease_us)
{
    memset(observation, 0, sizeof(*observation));
    observation->slow_us = lease_us * 3 / 10;
    observation->gap_us = lease_us / 2;
}

void hd_observation_restart(struct hd_observation *observation)
{
    observation->ended_us = 0;
}

static struct hd_observation_entry *find_entry(const struct hd_observation *observation,
                                               const char *slot)
{
    for (size_t i = 0; i < observation->count; i++) {
        if (strcmp(observation->entries[i].slot, slot) == 0)
            return (struct hd_observation_entry *)&observation->entries[i];
    }
    return NULL;
}

void hd_observation_begin(struct hd_observation *observation, int64_t began_us, int64_t ended_us)
{
    bool has_gap = observation->ended_us == 0 ||
                   began_us - observation->ended_us > observation->gap_us ||
                   ended_us - began_us > observation->slow_us;

    observation->began_us = began_us;
    observation->ended_us = ended_us;
    for (size_t i = 0; i < observation->count; i++) {
        observation->entries[i].is_seen = false;
        if (has_gap)
            observation->entries[i].since_us = ended_us;
    }
}

void hd_observation_note(struct hd_observation *observation, const char *slot, int64_t token,
                         int64_t beat)
{
    struct hd_observation_entry *entry = find_entry(observation, slot);
    size_t len = strlen(slot);

    if (entry && entry->token == token) {
        entry->is_seen = true;
        if (entry->beat != beat) {
            entry->beat = beat;
            entry->since_us = observation->ended_us;
            entry->has_changed = true;
        }
        return;
    }
    if (len >= sizeof(entry->slot) ||
        (!entry && observation->count == HD_COUNT(observation->entries)))
        return;
    if (!entry)
        entry = &observation->entries[observation->count++];
    *entry = (struct hd_observation_entry){
        .token = token, .beat = beat, .since_us = observation->ended_us, .is_seen = true};
    memcpy(entry->slot, slot, len + 1);
}

void hd_observation_end(struct hd_observation *observation)
{
    size_t kept = 0;

    for (size_t i = 0; i < observation->count; i++) {
        if (observation->entries[i].is_seen)
            observation->entries[kept++] = observation->entries[i];
    }
    observation->count = kept;
}

int64_t hd_observation_silence(const struct hd_observation *observation, const char *slot)
{
    const struct hd_observation_entry *entry = find_entry(observation, slot);

    return entry && observation->began_us > entry->since_us
               ? observation->began_us - entry->since_us
               : 0;
}

bool hd_observation_has_changed(const struct hd_observation *observation, const char *slot)
{
    const struct hd_observation_entry *entry = find_entry(observation, slot);

    return entry && entry->has_changed;
}
