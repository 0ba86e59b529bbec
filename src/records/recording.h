/*
 * Recordings: the exchanges of a run with models, MCP servers and other agents, stored with the
 * thread, and the replay of runs from them without network.
 *
 * An exchange is identified by its *place*: the steps, nodes and sends that lead to the task it
 * belongs to. Ids of tasks and checkpoints are new in every run; places are not.
 */
#ifndef HD_RECORDS_RECORDING_H
#define HD_RECORDS_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "agent/record.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct heddle;
struct hd_recording;
struct hd_replaying;

/* Keeps every exchange in the store, in the background. */
HD_MUST_CHECK int hd_recording_create(struct heddle *store, struct hd_recording **out);
void hd_recording_destroy(struct hd_recording *recording);
struct hd_recorder *hd_recording_recorder(struct hd_recording *recording);

/* The findings of a replay, in the order of the exchanges. */
struct hd_replay_notes {
    size_t answered;
    size_t missing;     /* exchanges that were not recorded */
    size_t differing;   /* requests that were not the recorded ones */
    struct hd_buf text; /* a line for each of the first of these; not terminated */
};

/* Reads all that is recorded of a thread. */
HD_MUST_CHECK int hd_replaying_create(struct heddle *store, struct hd_slice principal,
                                      struct hd_slice thread, struct hd_replaying **out,
                                      struct heddle_error *fault);
void hd_replaying_destroy(struct hd_replaying *replaying);
struct hd_recorder *hd_replaying_recorder(struct hd_replaying *replaying);
size_t hd_replaying_count(const struct hd_replaying *replaying);
/* Since the last call of this; resets them. Borrowed until the next exchange. */
const struct hd_replay_notes *hd_replaying_notes(struct hd_replaying *replaying);

#endif
