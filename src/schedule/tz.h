/*
 * IANA time zones, read from the system's compiled files (TZif, RFC 9636).
 *
 * A zone is a sequence of spans, each with one offset from UTC. Within a span local time is
 * continuous; between two spans it jumps forward (hours are skipped) or back (hours repeat). A zone
 * is immutable and may be used by several threads.
 */
#ifndef HD_SCHEDULE_TZ_H
#define HD_SCHEDULE_TZ_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define HD_TZ_MAX_NAME 128
#define HD_TZ_MAX_FILE 262144

/* Start of the first span (negative) and end of the last: beyond all dates, without overflow. */
#define HD_TZ_FOREVER (INT64_C(1) << 60)

struct hd_tz; /* NULL: UTC */

/* begin <= t < end, in seconds UTC; local time is UTC + offset. */
struct hd_tz_span {
    int64_t begin, end;
    int32_t offset;
    int32_t offset_before; /* just before `begin`; equals `offset` in the first span */
};

/*
 * Reads the zone `name` ("Europe/Berlin") from `directory` (NULL: the system's). "", "UTC" and
 * "Etc/UTC" need no file and give NULL. HD_EINVAL: unknown zone; HD_ENOTFOUND: no zones are
 * installed; HD_ECORRUPT: damaged file. `fault` has the reason. Reads a file: not for the loop.
 */
HD_MUST_CHECK int hd_tz_open(struct hd_tz **out, const char *directory, struct hd_slice name,
                             struct heddle_error *fault);
void hd_tz_close(struct hd_tz *tz);

/* Parses the contents of a zone file. HD_ECORRUPT or HD_ENOMEM. */
HD_MUST_CHECK int hd_tz_parse(struct hd_tz **out, struct hd_slice bytes,
                              struct heddle_error *fault);

struct hd_tz_span hd_tz_span(const struct hd_tz *tz, int64_t seconds);

#endif
