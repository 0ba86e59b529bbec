/*
 * Searches stored data for secrets: JSON, fragments of it, msgpack, prose. Pure.
 *
 * Admission hides secrets in configurations (secret.h); this finds secrets that should not be
 * stored, and therefore also checks texts, by shape. Prose about tokens and passwords has none.
 */
#ifndef HD_SECRET_SECRET_FIND_H
#define HD_SECRET_SECRET_FIND_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_secret_finding {
    struct hd_slice place;  /* `config.headers.0.Authorization`, or empty */
    struct hd_slice secret; /* never show it */
    const char *kind;       /* "a JSON Web Token", "by name", … */
    bool is_within;         /* part of a longer text */
    /* position of its first byte, or of its name, in the text given; NULL: unknown */
    const char *from;
};

/* A negative result ends the search and is returned. */
typedef int (*hd_secret_finding_fn)(void *ctx, const struct hd_secret_finding *finding);

/* Searches any text. */
HD_MUST_CHECK int hd_secret_find(struct hd_slice text, hd_secret_finding_fn fn, void *ctx);
/* The same without parsing JSON: for fragments. Findings point into `text`. */
HD_MUST_CHECK int hd_secret_find_pieces(struct hd_slice text, hd_secret_finding_fn fn, void *ctx);
/* Lines of `Name: value`. */
HD_MUST_CHECK int hd_secret_find_headers(struct hd_slice lines, hd_secret_finding_fn fn, void *ctx);

/* The kind of secret that a whole text is, NULL when it is none (secret_shape.c). */
const char *hd_secret_text_kind(struct hd_slice text);

#endif
