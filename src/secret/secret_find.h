/*
 * Looking for secrets in anything that was stored: JSON, pieces of it, msgpack, prose. Pure.
 *
 * Where admission hides what is configured (secret.h), this finds what should not be there,
 * and so looks closer: into texts too, for what only a secret looks like. Prose that speaks of
 * tokens and passwords has none.
 */
#ifndef HD_SECRET_SECRET_FIND_H
#define HD_SECRET_SECRET_FIND_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_secret_finding {
    struct hd_slice place;  /* `config.headers.0.Authorization`, or empty */
    struct hd_slice secret; /* never to be shown */
    const char *kind;       /* "a JSON Web Token", "by name", … */
    bool is_within;         /* a part of a longer text */
    const char *from;       /* where in the text given it begins, or its name; NULL: nobody knows */
};

/* A negative answer ends the search with it. */
typedef int (*hd_secret_finding_fn)(void *ctx, const struct hd_secret_finding *finding);

/* Any text. */
HD_MUST_CHECK int hd_secret_find(struct hd_slice text, hd_secret_finding_fn fn, void *ctx);
/* The same without reading it as JSON: for pieces. Findings point into `text`. */
HD_MUST_CHECK int hd_secret_find_pieces(struct hd_slice text, hd_secret_finding_fn fn, void *ctx);
/* Lines of `Name: value`. */
HD_MUST_CHECK int hd_secret_find_headers(struct hd_slice lines, hd_secret_finding_fn fn, void *ctx);

/* What kind of secret a whole text is, NULL when it is none (secret_shape.c). */
const char *hd_secret_text_kind(struct hd_slice text);

#endif
