#include "graph/growing.h"

#include <stdint.h>

void hd_growing_fini(struct hd_growing *growing)
{
    hd_listing_destroy(growing->listing);
    hd_val_unref(growing->list);
    *growing = (struct hd_growing){0};
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

static int catch_up(struct hd_growing *growing, const struct hd_val *list)
{
    size_t from = hd_val_count(growing->list);

    if (!growing->listing)
        growing->listing = hd_listing_create();
    if (!growing->listing)
        return HD_ENOMEM;
    if (!growing->list || !begins_with(list, growing->list)) {
        hd_listing_reset(growing->listing);
        from = 0;
    }
    return add_elements(growing->listing, list, from);
}

int hd_growing_save(struct hd_growing *growing, const struct hd_val *val, struct hd_growth **out)
{
    struct hd_val *old = growing->list;
    int err;

    *out = NULL;
    if (!hd_val_is_list(val) || hd_val_count(val) < HD_GROWING_MIN) {
        hd_growing_fini(growing);
        return 0;
    }
    err = catch_up(growing, val);
    if (!err)
        err = hd_listing_grow(growing->listing, out);
    if (err) {
        hd_growing_fini(growing);
        return err;
    }
    growing->list = hd_val_ref(val);
    hd_val_unref(old);
    return 0;
}
