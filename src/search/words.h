/*
 * Splits text into the words that the search index stores and that a search looks up. Pure.
 *
 * A word is a run of letters and digits, with capital letters made small (base/utf8.h) and cut to
 * HD_WORD_MAX bytes. Scripts that are written without spaces (Chinese, Japanese, Thai, …) are
 * split into pairs of neighbouring characters instead, so that any part of a sentence is found.
 */
#ifndef HD_SEARCH_WORDS_H
#define HD_SEARCH_WORDS_H

#include "base/compiler.h"
#include "base/slice.h"

#define HD_WORD_MAX 48

/* `word` is valid during the call. A result other than 0 ends the split and is returned. */
typedef int (*hd_word_fn)(void *arg, struct hd_slice word);

/* The words of a text that is stored. A word that occurs twice is emitted twice. */
HD_MUST_CHECK int hd_words_of_text(struct hd_slice text, hd_word_fn fn, void *arg);

/* The words of a search: each must be the beginning of a stored word. */
HD_MUST_CHECK int hd_words_of_search(struct hd_slice text, hd_word_fn fn, void *arg);

#endif
