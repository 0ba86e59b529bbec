#include "graph/engine/list_tracker.h"

#include <stdint.h>

void hd_list_tracker_fini(struct hd_list_tracker *growing)
{
    hd_listing_destroy(growing->listing);
    hd_val_unref(growing->list);
    *growing = (struct hd_list_tracker){0};
}

size_t hd_list_tracker_size(const struct hd_list_tracker *growing)
{
    uint64_t size = 0, checksum;

    return growing->listing && hd_listing_is(growing->listing, &size, &checksum) ? (size_t)size : 0;
}

/* Copies the list first: elements appended to a shared buffer may depend on the graph. */
int hd_list_tracker_outlast(struct hd_list_tracker *growing)
{
    size_t count = hd_val_count(growing->list);
    struct hd_val *own = hd_val_extend(hd_val_list(), growing->list);

    if (!own)
        return HD_ENOMEM;
    hd_val_unref(growing->list);
    growing->list = own;

    for (; growing->lasting < count; growing->lasting++) {
        struct hd_val *item = hd_val_at(growing->list, growing->lasting);
        struct hd_val *copy = hd_val_lasting(item);

        if (copy == item)
            hd_val_unref(copy);
        else
            growing->list = hd_val_replace(growing->list, growing->lasting, copy);
        if (!copy || !growing->list)
            return HD_ENOMEM;
    }
    return 0;
}

int hd_list_tracker_load(struct hd_list_tracker *growing, const struct hd_val *val,
                         struct hd_slice text)
{
    int err;

    hd_list_tracker_fini(growing);
    if (!hd_val_is_list(val) || hd_val_count(val) < HD_LIST_TRACKER_MIN)
        return 0;
    growing->listing = hd_listing_create();
    err = growing->listing ? hd_listing_read(growing->listing, text) : HD_ENOMEM;
    if (err)
        hd_list_tracker_fini(growing);
    else
        growing->list = hd_val_ref(val);
    growing->lasting = hd_val_count(growing->list);
    return err == HD_ENOMEM ? err : 0;
}

/* Values never change, so the same element has the same text. */
static bool begins_with(const struct hd_val *list, const struct hd_val *old)
{
    size_t count = hd_val_count(old), i = hd_val_common(list, old);

    if (count > hd_val_count(list))
        return false;
    while (i < count && hd_val_at(list, i) == hd_val_at(old, i))
        i++;
    return i == count;
}

static int add_elements(struct hd_listing *listing, const struct hd_val *list, size_t from)
{
    struct hd_buf text;
    int err = 0;

    hd_buf_init(&text, SIZE_MAX / 2);
    for (size_t i = from; !err && i < hd_val_count(list); i++) {
        hd_buf_reset(&text);
        err = hd_val_write(&text, hd_val_at(list, i));
        if (!err)
            err = hd_listing_add(listing, hd_buf_slice(&text));
    }
    hd_buf_fini(&text);
    return err;
}

static int catch_up(struct hd_list_tracker *growing, const struct hd_val *list)
{
    size_t from = hd_val_count(growing->list);

    if (!growing->listing)
        growing->listing = hd_listing_create();
    if (!growing->listing)
        return HD_ENOMEM;
    if (!growing->list || !begins_with(list, growing->list)) {
        hd_listing_reset(growing->listing);
        growing->lasting = 0;
        from = 0;
    }
    return add_elements(growing->listing, list, from);
}

int hd_list_tracker_save(struct hd_list_tracker *growing, const struct hd_val *val,
                         struct hd_growth **out)
{
    struct hd_val *old = growing->list;
    int err;

    *out = NULL;
    if (!hd_val_is_list(val) || hd_val_count(val) < HD_LIST_TRACKER_MIN) {
        hd_list_tracker_fini(growing);
        return 0;
    }
    err = catch_up(growing, val);
    if (!err)
        err = hd_listing_grow(growing->listing, out);
    if (err) {
        hd_list_tracker_fini(growing);
        return err;
    }
    growing->list = hd_val_ref(val);
    hd_val_unref(old);
    return 0;
}
