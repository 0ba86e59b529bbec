/*
 * Namespaces of items: lists of labels such as ["users", "42"]. A label is not
 * empty and has no "." in it, so that "users.42" is the same namespace as text.
 */
#ifndef HD_RECORDS_ITEM_NAMESPACE_H
#define HD_RECORDS_ITEM_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/map.h"
#include "base/slice.h"

#define HD_ITEM_NAMESPACE_MAX 64
#define HD_ITEM_NAMESPACE_MAX_TEXT 4096 /* bytes of all, with the dots */

struct hd_item_namespace {
    struct hd_slice *items;
    size_t count;
};

/*
 * From a JSON array; `what` names it in errors ("prefix"). NULL and null are the
 * empty list. Strings are those of `val`. HD_EINVAL with a sentence, or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_item_namespace_parse(struct hd_item_namespace *labels, hd_json_val val,
                                          const char *what, struct hd_arena *arena,
                                          struct heddle_error *fault);
/* From "a.b"; "" is the empty list. Borrows the text. */
HD_MUST_CHECK int hd_item_namespace_split(struct hd_item_namespace *labels, struct hd_slice text,
                                          const char *what, struct hd_arena *arena,
                                          struct heddle_error *fault);
/* Appends "a.b". */
HD_MUST_CHECK int hd_item_namespace_join(const struct hd_item_namespace *labels,
                                         struct hd_buf *out);

/* May items be put there? Not under no label, and not under "langgraph", which is reserved. */
HD_MUST_CHECK int hd_item_namespace_check_put(const struct hd_item_namespace *labels,
                                              struct heddle_error *fault);

/* `*` in the pattern matches any one label. */
bool hd_item_namespace_start_with(const struct hd_item_namespace *labels,
                                  const struct hd_item_namespace *pattern);
bool hd_item_namespace_end_with(const struct hd_item_namespace *labels,
                                const struct hd_item_namespace *pattern);

/* Label by label, in byte order: not the order of the text with dots. */
int hd_item_namespace_cmp(const struct hd_item_namespace *a, const struct hd_item_namespace *b);

/* ---- collecting namespaces for a list ----------------------------------- */

/* Namespaces, each once, cut to `max_depth` labels (0: not cut). Memory is the arena's. */
struct hd_label_set {
    struct hd_arena *arena;
    size_t max_depth;
    struct hd_map seen;
    struct hd_item_namespace *items;
    size_t count, cap, limit;
};

/* No more than `limit` different ones: HD_ELIMIT then. */
void hd_label_set_init(struct hd_label_set *set, struct hd_arena *arena, size_t max_depth,
                       size_t limit);
void hd_label_set_fini(struct hd_label_set *set);
/* Copies the labels that it keeps. */
HD_MUST_CHECK int hd_label_set_add(struct hd_label_set *set,
                                   const struct hd_item_namespace *labels);
void hd_label_set_sort(struct hd_label_set *set);

#endif
