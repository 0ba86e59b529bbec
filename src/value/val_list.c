/*
 * Lists. A list is a view on the first `count` elements of a buffer. The holder of the view that
 * ends at the buffer's end may append in place. All views on a buffer end at different positions,
 * since only an append creates a view; otherwise the list itself is referenced.
 */
#include "value/val.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "value/val_internal.h"

#define FIRST_CAP 4
#define PATIENCE 4096

static const struct hd_val_array *array_of(const struct hd_val *list)
{
    return hd_val_is_list(list) ? (const struct hd_val_array *)list : NULL;
}

static struct hd_val_array *array_create(void)
{
    struct hd_val_array *array = hd_malloc(sizeof(*array));

    if (array)
        *array = (struct hd_val_array){.base = {.refs = 1, .depth = 1, .type = HD_VAL_LIST}};
    return array;
}

struct hd_val *hd_val_list(void)
{
    struct hd_val_array *array = array_create();

    return array ? &array->base : NULL;
}

static struct hd_val_buffer *buffer_create(size_t cap)
{
    struct hd_val_buffer *buffer;

    if (cap > SIZE_MAX / sizeof(*buffer->items))
        return NULL;
    buffer = hd_malloc(sizeof(*buffer));
    if (!buffer)
        return NULL;
    *buffer = (struct hd_val_buffer){.refs = 1, .cap = cap};
    buffer->items = hd_malloc(cap * sizeof(*buffer->items));
    if (buffer->items)
        return buffer;
    hd_free(buffer);
    return NULL;
}

/* Makes room for `more` elements at the end. */
static bool buffer_grow(struct hd_val_buffer *buffer, size_t more)
{
    return hd_array_reserve(buffer->items, buffer->used, buffer->cap, more) == 0;
}

static void fill_buffer(struct hd_val_buffer *buffer, struct hd_val *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer->items[buffer->used++] = hd_val_ref(items[i]);
}

/* A list with a new buffer, the same first `count` elements, and room for `more`. */
static struct hd_val_array *array_copy(const struct hd_val_array *from, size_t count, size_t more)
{
    struct hd_val_array *copy = array_create();

    if (!copy || count + more == 0)
        return copy;
    copy->buffer = buffer_create(count + more > FIRST_CAP ? count + more : FIRST_CAP);
    if (!copy->buffer) {
        hd_free(copy);
        return NULL;
    }
    if (count > 0)
        fill_buffer(copy->buffer, from->buffer->items, count);
    copy->count = count;
    copy->base.depth = from->base.depth;
    return copy;
}

/* Another view on the same buffer. */
static struct hd_val_array *array_share(const struct hd_val_array *from)
{
    struct hd_val_array *view = array_create();

    if (!view)
        return NULL;
    view->buffer = from->buffer;
    view->buffer->refs++;
    view->count = view->from = from->count;
    view->base.depth = from->base.depth;
    return view;
}

/* Removes elements that no view includes. */
static void trim_buffer(struct hd_val_array *array)
{
    struct hd_val_buffer *buffer = array->buffer;

    if (!buffer || buffer->refs > 1)
        return;
    while (buffer->used > array->count)
        hd_val_unref(buffer->items[--buffer->used]);
}

/* True if `val` contains a view on the buffer, or if the search exceeds `patience`. */
static bool contains_view(const struct hd_val *val, const struct hd_val_buffer *buffer,
                          int *patience)
{
    const struct hd_val_array *array = array_of(val);
    size_t count = hd_val_count(val);

    if (val->depth == 0)
        return false;
    if (array && array->buffer == buffer)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (--*patience < 0 ||
            contains_view(array ? hd_val_at(val, i) : hd_val_member(val, i, NULL), buffer,
                          patience))
            return true;
    }
    return false;
}

/* An element of a buffer must not contain a view on it: the cycle would never be freed. */
static bool would_hold_itself(const struct hd_val_array *array, const struct hd_val *val)
{
    int patience = PATIENCE;

    if (!array->buffer || (array->buffer->refs == 1 && array->base.refs == 1))
        return false;
    return contains_view(val, array->buffer, &patience);
}

/* The same for all elements of a list. Elements of the same buffer were already checked. */
static bool would_hold_elements(const struct hd_val_array *array, const struct hd_val_array *more)
{
    size_t i = array->buffer == more->buffer ? more->count : 0;

    while (i < more->count && !would_hold_itself(array, more->buffer->items[i]))
        i++;
    return i < more->count;
}

/*
 * Takes the list. Returns one with no other reference, whose view ends at the buffer's end, with
 * room for `more`.
 */
static struct hd_val_array *open_end(struct hd_val *list, size_t more, bool must_copy)
{
    struct hd_val_array *array = (struct hd_val_array *)list, *own = array;

    if (!hd_val_is_counted(list))
        must_copy = true; /* all threads share its buffer */
    else
        trim_buffer(array);
    if (must_copy || !array->buffer || array->buffer->used != array->count)
        own = array_copy(array, array->count, more);
    else if (list->refs > 1)
        own = array_share(array);
    if (own != array)
        hd_val_unref(list);
    if (!own || buffer_grow(own->buffer, more))
        return own;
    hd_val_unref(&own->base);
    return NULL;
}

/* Sets the depth of a container for an element of depth `inner`; false if it is too deep. */
static bool note_depth(struct hd_val *container, int inner)
{
    if (inner + 1 > HD_VAL_MAX_DEPTH)
        return false;
    if (inner + 1 > container->depth)
        container->depth = (uint16_t)(inner + 1);
    return true;
}

struct hd_val *hd_val_append(struct hd_val *list, struct hd_val *val)
{
    struct hd_val_array *own;

    assert(!list || hd_val_is_list(list));
    if (!list || !val) {
        hd_val_unref(list);
        hd_val_unref(val);
        return NULL;
    }
    own = open_end(list, 1, would_hold_itself((struct hd_val_array *)list, val));
    if (!own || !note_depth(&own->base, val->depth)) {
        hd_val_unref(own ? &own->base : NULL);
        hd_val_unref(val);
        return NULL;
    }
    own->buffer->items[own->buffer->used++] = val;
    own->count++;
    return &own->base;
}

struct hd_val *hd_val_extend(struct hd_val *list, const struct hd_val *more)
{
    const struct hd_val_array *from = array_of(more);
    struct hd_val_array *own;
    size_t count = hd_val_count(more);

    assert(!list || hd_val_is_list(list));
    if (!list || !from) {
        hd_val_unref(list);
        return NULL;
    }
    if (count == 0)
        return list;
    own = open_end(list, count, would_hold_elements((struct hd_val_array *)list, from));
    if (!own)
        return NULL;
    /* `more` may be a view on the same buffer: read its items after the buffer has grown. */
    fill_buffer(own->buffer, from->buffer->items, count);
    own->count += count;
    if (more->depth > own->base.depth)
        own->base.depth = more->depth;
    return &own->base;
}

struct hd_val *hd_val_replace(struct hd_val *list, size_t index, struct hd_val *val)
{
    struct hd_val_array *array = (struct hd_val_array *)list, *own = array;

    if (!list || !val) {
        hd_val_unref(list);
        hd_val_unref(val);
        return NULL;
    }
    assert(hd_val_is_list(list) && index < array->count);
    if (list->refs > 1 || array->buffer->refs > 1) {
        own = array_copy(array, array->count, 0);
        hd_val_unref(list);
    }
    if (!own || !note_depth(&own->base, val->depth)) {
        hd_val_unref(own ? &own->base : NULL);
        hd_val_unref(val);
        return NULL;
    }
    hd_val_unref(own->buffer->items[index]);
    own->buffer->items[index] = val;
    return &own->base;
}

struct hd_val *hd_val_slice(const struct hd_val *list, size_t from, size_t to)
{
    const struct hd_val_array *array = array_of(list);
    struct hd_val_array *copy;
    size_t count = hd_val_count(list);

    if (!array)
        return NULL;
    to = to < count ? to : count;
    from = from < to ? from : to;
    if (from == 0 && to == count)
        return hd_val_ref(list);
    copy = array_copy(array, 0, to - from);
    if (!copy)
        return NULL;
    if (to > from)
        fill_buffer(copy->buffer, array->buffer->items + from, to - from);
    copy->count = to - from;
    copy->base.depth = array->base.depth;
    return &copy->base;
}

size_t hd_val_common(const struct hd_val *a, const struct hd_val *b)
{
    const struct hd_val_array *x = array_of(a), *y = array_of(b);

    if (!x || !y || !x->buffer || x->buffer != y->buffer)
        return 0;
    return x->count < y->count ? x->count : y->count;
}

struct hd_val *hd_val_at(const struct hd_val *list, size_t index)
{
    const struct hd_val_array *array = array_of(list);

    return array && index < array->count ? array->buffer->items[index] : NULL;
}

struct hd_val *hd_val_at_signed(const struct hd_val *list, int64_t index)
{
    int64_t count = (int64_t)hd_val_count(list);

    if (index < 0)
        index += count;
    return index < 0 ? NULL : hd_val_at(list, (size_t)index);
}
