/* The stored form of an exchange, shared by recording and replay. */
#ifndef HD_RECORDS_RECORDING_INTERNAL_H
#define HD_RECORDS_RECORDING_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/record.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_RECORDING_LIMIT ((size_t)64 << 20) /* bytes of one exchange */

/* Borrows. */
struct hd_kept_exchange {
    struct hd_slice place;
    struct hd_slice peer, method, url;
    struct hd_slice request; /* the body */
    struct hd_slice error;   /* empty: none */
    struct hd_slice headers; /* of the answer */
    struct hd_slice body;
    uint64_t status;
    uint64_t tries;
    bool is_timeout;
    bool is_partial;
};

/*
 * The place of an exchange in the run: `step/node` and, for a send, `[index]`, from the root graph
 * on.
 */
HD_MUST_CHECK int hd_place_write(struct hd_buf *out, const struct hd_record_request *request);
/* The run that it belongs to, also for the exchanges of a delegate; may be empty. */
struct hd_slice hd_place_run(const struct hd_record_request *request);

HD_MUST_CHECK int hd_kept_write(struct hd_buf *out, const struct hd_kept_exchange *kept);
/* Borrows from `text`. HD_ECORRUPT: it is not one. */
HD_MUST_CHECK int hd_kept_read(struct hd_slice text, struct hd_kept_exchange *out);

#endif
