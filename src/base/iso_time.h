/* ISO 8601 times. Pure. */
#ifndef HD_BASE_ISO_TIME_H
#define HD_BASE_ISO_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/*
 * "2026-01-31T12:34:56.789+01:00" to microseconds since 1970 (UTC). The fraction and the seconds
 * may be left out, so may the time of day (then it is midnight) and the zone (then it is UTC); a
 * space may replace the T. Years 1 to 9999. False when the text is not a time; *out is untouched
 * then.
 */
bool hd_iso_parse(struct hd_slice text, int64_t *out);

#endif
