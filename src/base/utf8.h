/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef HD_BASE_UTF8_H
#define HD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * The character at *pos, and advances *pos behind it. A byte that begins no character counts as
 * one. *pos must be before `end`.
 */
uint32_t hd_utf8_next(const char **pos, const char *end);

/* Writes a character; returns its length. */
size_t hd_utf8_put(uint32_t c, char out[4]);

/*
 * The small letter of a capital one: of the Latin alphabet up to U+017F, the Greek and the Cyrillic
 * one. Any other character is returned unchanged.
 */
uint32_t hd_utf8_small(uint32_t c);

/*
 * Whether `part` is in `text`, ignoring case as hd_utf8_small() does. Takes their lengths
 * multiplied at worst.
 */
bool hd_utf8_finds(struct hd_slice text, struct hd_slice part);

#endif
