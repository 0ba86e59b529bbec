/*
 * UUIDs as 36-character text, and the ids of checkpoints.
 *
 * A checkpoint id is a UUIDv6 whose clock sequence carries the step, so that
 * ids sort by time and show their step (`…-8003-…` is step 3).
 */
#ifndef HD_BASE_UUID_H
#define HD_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

#define HD_UUID_LEN 36
#define HD_UUID_SIZE (HD_UUID_LEN + 1)

void hd_uuid_v4(char out[HD_UUID_SIZE]);
void hd_uuid_v7(char out[HD_UUID_SIZE]);

/*
 * An id that sorts after `after` regardless of the clock: when the clock is not ahead of that id,
 * the new id counts on from it. `after` may be any UUID text; a text that is not a UUID, and a UUID
 * that no UUIDv7 sorts after, is ignored.
 */
void hd_uuid_v7_after(struct hd_slice after, char out[HD_UUID_SIZE]);

/* Bytes from the system's generator, suitable for keys. Never fails. */
void hd_random(void *out, size_t len);

/* RFC 9562 name-based with SHA-1; `ns` is the 16 raw bytes of the namespace. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_uuid_v5(const uint8_t ns[16], struct hd_slice name, char out[HD_UUID_SIZE]);

/*
 * UUIDv6 with the given clock sequence, masked to 14 bits as LangGraph's Python loop does. Strictly
 * increasing within the process, from any number of threads. The second sorts after `after`, as
 * hd_uuid_v7_after().
 */
void hd_uuid_checkpoint(int step, char out[HD_UUID_SIZE]);
void hd_uuid_checkpoint_after(int step, struct hd_slice after, char out[HD_UUID_SIZE]);

/* Accepts any 8-4-4-4-12 hex text, with any version bits. */
bool hd_uuid_parse(struct hd_slice text, uint8_t out[16]);
void hd_uuid_format(const uint8_t bytes[16], char out[HD_UUID_SIZE]);

#endif
