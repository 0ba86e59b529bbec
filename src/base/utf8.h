/* UTF-8 according to RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef HD_BASE_UTF8_H
#define HD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Bytes of the character that begins at `pos`, or 0 when no valid one ends before `end`. */
size_t hd_utf8_char(const char *pos, const char *end);

/* Characters of valid text, for columns. */
size_t hd_utf8_count(struct hd_slice text);

bool hd_utf8_is_valid(struct hd_slice text);

/*
 * The greatest length not above `len` that does not cut a character of `text` in two. For text that
 * must be shortened to fit.
 */
size_t hd_utf8_cut(const char *text, size_t len);

/*
 * Returns the character at *pos and advances *pos past it. An invalid byte counts as one character.
 * *pos must be before `end`.
 */
uint32_t hd_utf8_next(const char **pos, const char *end);

/* Writes a character; returns its length. */
size_t hd_utf8_put(uint32_t c, char out[4]);

/*
 * The lower-case letter of an upper-case one, in the Latin alphabet up to U+017F, Greek and
 * Cyrillic. Any other character is returned unchanged.
 */
uint32_t hd_utf8_small(uint32_t c);

/*
 * True when `text` contains `part`, ignoring case as hd_utf8_small() does. Worst case: the product
 * of their lengths.
 */
bool hd_utf8_finds(struct hd_slice text, struct hd_slice part);

#endif
