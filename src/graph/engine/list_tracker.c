#include "graph/engine/list_tracker.h"

#include <stdint.h>

void hd_list_tracker_fini(struct hd_list_tracker *tracker)
{
    hd_listing_destroy(tracker->listing);
    hd_val_unref(tracker->list);
    *tracker = (struct hd_list_tracker){0};
}

size_t hd_list_tracker_size(const struct hd_list_tracker *tracker)
{
    uint64_t size = 0, checksum;

    return tracker->listing && hd_listing_is(tracker->listing, &size, &checksum) ? (size_t)size : 0;
}

/* Copies the list first: elements appended to a shared buffer may depend on the graph. */
int hd_list_tracker_outlast(struct hd_list_tracker *tracker)
{
    size_t count = hd_val_count(tracker->list);
    struct hd_val *own = hd_val_extend(hd_val_list(), tracker->list);

    if (!own)
        return HD_ENOMEM;
    hd_val_unref(tracker->list);
    tracker->list = own;

    for (; tracker->lasting < count; tracker->lasting++) {
        struct hd_val *item = hd_val_at(tracker->list, tracker->lasting);
        struct hd_val *copy = hd_val_lasting(item);

        if (copy == item)
            hd_val_unref(copy);
        else
            tracker->list = hd_val_replace(tracker->list, tracker->lasting, copy);
        if (!copy || !tracker->list)
            return HD_ENOMEM;
    }
    return 0;
}

int hd_list_tracker_load(struct hd_list_tracker *tracker, const struct hd_val *val,
                         struct hd_slice text)
{
    int err;

    hd_list_tracker_fini(tracker);
    if (!hd_val_is_list(val) || hd_val_count(val) < HD_LIST_TRACKER_MIN)
        return 0;
    tracker->listing = hd_listing_create();
    err = tracker->listing ? hd_listing_read(tracker->listing, text) : HD_ENOMEM;
    if (err)
        hd_list_tracker_fini(tracker);
    else
        tracker->list = hd_val_ref(val);
    tracker->lasting = hd_val_count(tracker->list);
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

static int catch_up(struct hd_list_tracker *tracker, const struct hd_val *list)
{
    size_t from = hd_val_count(tracker->list);

    if (!tracker->listing)
        tracker->listing = hd_listing_create();
    if (!tracker->listing)
        return HD_ENOMEM;
    if (!tracker->list || !begins_with(list, tracker->list)) {
        hd_listing_reset(tracker->listing);
        tracker->lasting = 0;
        from = 0;
    }
    return add_elements(tracker->listing, list, from);
}

int hd_list_tracker_save(struct hd_list_tracker *tracker, const struct hd_val *val,
                         struct hd_growth **out)
{
    struct hd_val *old = tracker->list;
    int err;

    *out = NULL;
    if (!hd_val_is_list(val) || hd_val_count(val) < HD_LIST_TRACKER_MIN) {
        hd_list_tracker_fini(tracker);
        return 0;
    }
    err = catch_up(tracker, val);
    if (!err)
        err = hd_listing_grow(tracker->listing, out);
    if (err) {
        hd_list_tracker_fini(tracker);
        return err;
    }
    tracker->list = hd_val_ref(val);
    hd_val_unref(old);
    return 0;
}
