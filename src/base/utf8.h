/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef HD_BASE_UTF8_H
#define HD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Bytes of the character that begins at `pos`, or 0 when there is none before `end`. */
size_t hd_utf8_char(const char *pos, const char *end);

/* Characters of valid text, for columns. */
size_t hd_utf8_count(struct hd_slice text);

bool hd_utf8_is_valid(struct hd_slice text);

/*
 * The greatest length not above `len` that does not cut a character of `text`
 * in two. For text that had to be shortened to fit.
 */
size_t hd_utf8_cut(const char *text, size_t len);

/*
 * Whether `part` is in `text`, be letters capital or small: those of the Latin alphabet up to
 * U+017F, the Greek and the Cyrillic one. Takes their lengths multiplied at worst.
 */
bool hd_utf8_finds(struct hd_slice text, struct hd_slice part);

#endif
