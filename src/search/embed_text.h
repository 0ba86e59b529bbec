/*
 * The texts of an item that a search by meaning finds it by. Pure.
 *
 * A path is LangGraph's: "$" (or "") is the whole value; "a.b" members; "[0]", "[-1]", "[*]"
 * elements; "*" everything inside; "{a,b.c}" several members. Strings, numbers and booleans
 * are texts; lists and objects are their JSON, with sorted keys; null and what is not there
 * are none.
 */
#ifndef HD_SEARCH_EMBED_TEXT_H
#define HD_SEARCH_EMBED_TEXT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

#define HD_EMBED_MAX_PATH 1024 /* bytes */
#define HD_EMBED_MAX_TEXTS 1000

/* Everything in it is in the arena. Zero-initialise, then set the arena. */
struct hd_embed_texts {
    struct hd_arena *arena;
    struct hd_slice *list;
    size_t count, cap;
};

HD_MUST_CHECK int hd_embed_texts_add(struct hd_embed_texts *texts, struct hd_slice text);

/*
 * Adds the texts of `value` at the path. HD_ELIMIT: more than HD_EMBED_MAX_TEXTS, or the path is
 * too long; or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_embed_find(struct hd_embed_texts *texts, hd_json_val value,
                                struct hd_slice path);

#endif
