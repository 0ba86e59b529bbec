#include "records/item_namespace.h"

#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

static int check_label(struct hd_slice label, const char *what, struct heddle_error *fault)
{
    if (label.len == 0)
        return hd_error_set(fault, HD_EINVAL, "%s: a label is empty", what);
    if (memchr(label.ptr, '.', label.len))
        return hd_error_set(fault, HD_EINVAL, "%s: the label \"%.*s\" contains a \".\"", what,
                            HD_SHOW(label));
    if (memchr(label.ptr, '\0', label.len))
        return hd_error_set(fault, HD_EINVAL, "%s: a label contains a NUL", what);
    return 0;
}

static int reserve(struct hd_item_namespace *labels, size_t count, const char *what,
                   struct hd_arena *arena, struct heddle_error *fault)
{
    *labels = (struct hd_item_namespace){0};
    if (count > HD_ITEM_NAMESPACE_MAX)
        return hd_error_set(fault, HD_EINVAL, "%s: more than %d labels", what,
                            HD_ITEM_NAMESPACE_MAX);
    labels->items = hd_arena_calloc(arena, count, sizeof(*labels->items));
    return labels->items ? 0 : hd_error_set(fault, HD_ENOMEM, "out of memory");
}

static int check_size(const struct hd_item_namespace *labels, const char *what,
                      struct heddle_error *fault)
{
    size_t size = 0;

    for (size_t i = 0; i < labels->count; i++)
        size += labels->items[i].len + 1;
    if (size > HD_ITEM_NAMESPACE_MAX_TEXT)
        return hd_error_set(fault, HD_EINVAL, "%s: longer than %d bytes", what,
                            HD_ITEM_NAMESPACE_MAX_TEXT);
    return 0;
}

int hd_item_namespace_parse(struct hd_item_namespace *labels, hd_json_val val, const char *what,
                            struct hd_arena *arena, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(val);
    int err;

    if (val && !hd_json_is_null(val) && !hd_json_is_array(val))
        return hd_error_set(fault, HD_EINVAL, "%s must be an array of labels, not %s", what,
                            hd_json_type_name(val));
    err = reserve(labels, hd_json_size(val), what, arena, fault);
    while (err == 0 && hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return hd_error_set(fault, HD_EINVAL, "%s: a label must be a string, not %s", what,
                                hd_json_type_name(it.val));
        labels->items[labels->count++] = hd_json_string(it.val);
        err = check_label(hd_json_string(it.val), what, fault);
    }
    return err ? err : check_size(labels, what, fault);
}

static size_t count_labels(struct hd_slice text)
{
    size_t count = text.len > 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '.';
    return count;
}

int hd_item_namespace_split(struct hd_item_namespace *labels, struct hd_slice text,
                            const char *what, struct hd_arena *arena, struct heddle_error *fault)
{
    size_t count = count_labels(text);
    int err = reserve(labels, count, what, arena, fault);

    while (err == 0 && labels->count < count) {
        const char *dot = text.len > 0 ? memchr(text.ptr, '.', text.len) : NULL;
        struct hd_slice label = hd_slice(text.ptr, dot ? (size_t)(dot - text.ptr) : text.len);

        labels->items[labels->count++] = label;
        err = check_label(label, what, fault);
        if (dot)
            text = hd_slice(dot + 1, text.len - label.len - 1);
    }
    return err ? err : check_size(labels, what, fault);
}

int hd_item_namespace_join(const struct hd_item_namespace *labels, struct hd_buf *out)
{
    int err = 0;

    for (size_t i = 0; !err && i < labels->count; i++) {
        if (i > 0)
            err = hd_buf_append_byte(out, '.');
        if (!err)
            err = hd_buf_append_slice(out, labels->items[i]);
    }
    return err;
}

int hd_item_namespace_check_put(const struct hd_item_namespace *labels, struct heddle_error *fault)
{
    if (labels->count == 0)
        return hd_error_set(fault, HD_EINVAL, "namespace: must have at least one label");
    if (hd_slice_eq(labels->items[0], HD_S("langgraph")))
        return hd_error_set(fault, HD_EINVAL,
                            "namespace: the first label \"langgraph\" is reserved");
    return 0;
}

static bool labels_match(const struct hd_slice *labels, const struct hd_item_namespace *pattern)
{
    for (size_t i = 0; i < pattern->count; i++) {
        if (!hd_slice_eq(pattern->items[i], HD_S("*")) &&
            !hd_slice_eq(pattern->items[i], labels[i]))
            return false;
    }
    return true;
}

bool hd_item_namespace_start_with(const struct hd_item_namespace *labels,
                                  const struct hd_item_namespace *pattern)
{
    return labels->count >= pattern->count && labels_match(labels->items, pattern);
}

bool hd_item_namespace_end_with(const struct hd_item_namespace *labels,
                                const struct hd_item_namespace *pattern)
{
    return labels->count >= pattern->count &&
           labels_match(labels->items + (labels->count - pattern->count), pattern);
}

int hd_item_namespace_cmp(const struct hd_item_namespace *a, const struct hd_item_namespace *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = hd_slice_cmp(a->items[i], b->items[i]);

        if (order != 0)
            return order;
    }
    return a->count < b->count ? -1 : a->count > b->count;
}

/* ---- sets --------------------------------------------------------------- */

void hd_label_set_init(struct hd_label_set *set, struct hd_arena *arena, size_t max_depth,
                       size_t limit)
{
    *set = (struct hd_label_set){.arena = arena, .max_depth = max_depth, .limit = limit};
    hd_map_init(&set->seen, limit);
}

void hd_label_set_fini(struct hd_label_set *set)
{
    hd_map_fini(&set->seen);
    *set = (struct hd_label_set){0};
}

static int grow_labels(struct hd_label_set *set)
{
    size_t cap = set->cap ? set->cap * 2 : 16;
    struct hd_item_namespace *items;

    if (set->count < set->cap)
        return 0;
    items = hd_arena_calloc(set->arena, cap, sizeof(*items));
    if (!items)
        return HD_ENOMEM;
    if (set->count > 0)
        memcpy(items, set->items, set->count * sizeof(*items));
    set->items = items;
    set->cap = cap;
    return 0;
}

/* The copy's labels are slices of one copied text. */
static int copy_labels(struct hd_label_set *set, struct hd_slice text)
{
    struct hd_slice kept;
    int err = hd_arena_copy(set->arena, text, &kept);

    if (!err)
        err = hd_item_namespace_split(&set->items[set->count], kept, "namespace", set->arena, NULL);
    /* Any non-NULL value will do: the map is a set. */
    return err ? err : hd_map_put(&set->seen, kept, set);
}

int hd_label_set_add(struct hd_label_set *set, const struct hd_item_namespace *labels)
{
    struct hd_item_namespace cut = *labels;
    struct hd_buf text;
    int err;

    if (set->max_depth > 0 && cut.count > set->max_depth)
        cut.count = set->max_depth;
    hd_buf_init(&text, HD_ITEM_NAMESPACE_MAX_TEXT);
    err = hd_item_namespace_join(&cut, &text);
    if (!err && hd_map_get(&set->seen, hd_buf_slice(&text)))
        goto done;
    if (!err && set->count == set->limit)
        err = HD_ELIMIT;
    if (!err)
        err = grow_labels(set);
    if (!err)
        err = copy_labels(set, hd_buf_slice(&text));
    if (!err)
        set->count++;
done:
    hd_buf_fini(&text);
    return err;
}

static int order(const void *a, const void *b)
{
    return hd_item_namespace_cmp(a, b);
}

void hd_label_set_sort(struct hd_label_set *set)
{
    if (set->count > 1)
        qsort(set->items, set->count, sizeof(*set->items), order);
}
