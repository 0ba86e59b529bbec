#include "events/event_page.h"

#include <heddle.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { FLAG_LAST = 1, FLAG_REPEAT = 2 };

/* ---- write ------------------------------------------------------------ */

/* `run_id` NULL: the format without ids. */
static int encode_event(struct hd_buf *data, const struct hd_event_page_item *event,
                        const struct hd_slice *run_id)
{
    size_t before = data->len;
    uint8_t flags =
        (uint8_t)((event->is_last ? FLAG_LAST : 0) | (event->is_repeat ? FLAG_REPEAT : 0));
    int err = hd_buf_append_varint(data, event->seq);

    if (!err)
        err = hd_buf_append_varint(data, event->mode);
    if (!err)
        err = hd_buf_append_byte(data, flags);
    if (!err && run_id)
        err = hd_buf_append_lenslice(data, *run_id);
    if (!err)
        err = hd_buf_append_lenslice(data, event->name);
    if (!err)
        err = hd_buf_append_lenslice(data, event->data);
    if (err)
        data->len = before;
    return err;
}

/* Encodes the page again in the format with ids. */
static int convert_page(struct hd_event_log_page *page)
{
    const struct hd_slice none = hd_slice(NULL, 0);
    struct hd_slice run_id = hd_slice_cstr(page->run_id);
    struct hd_event_page_reader reader = hd_event_page_reader(run_id, hd_buf_slice(&page->data));
    struct hd_event_page_item event;
    struct hd_buf data;
    int err;

    hd_buf_init(&data, page->data.limit);
    for (err = 0; !err;) {
        err = hd_event_page_reader_next(&reader, &event);
        if (!err)
            err = encode_event(&data, &event, data.len == 0 ? &run_id : &none);
    }
    if (err != HD_ENOTFOUND) {
        hd_buf_fini(&data);
        return err;
    }
    hd_buf_fini(&page->data);
    page->data = data;
    page->has_runs = true;
    return 0;
}

static bool is_run_of(const struct hd_event_log_page *page, struct hd_slice run_id)
{
    return hd_slice_eq(hd_slice_cstr(page->run_id), run_id);
}

static bool needs_ids(const struct hd_event_log_page *page, const struct hd_event_page_item *event)
{
    if (event->is_repeat)
        return true;
    return page->count > 0 && (event->seq != page->last + 1 || !is_run_of(page, event->run_id));
}

int hd_event_page_add(struct hd_event_log_page *page, const struct hd_event_page_item *event)
{
    bool is_same = page->count > 0 && is_run_of(page, event->run_id);
    struct hd_slice id = is_same ? hd_slice(NULL, 0) : event->run_id;
    int err = event->run_id.len > HD_UUID_LEN ? HD_EINVAL : 0;

    if (!err && !page->has_runs && needs_ids(page, event))
        err = convert_page(page);
    if (!err)
        err = encode_event(&page->data, event, page->has_runs ? &id : NULL);
    if (err)
        return err;
    if (page->count++ == 0)
        page->first = event->seq;
    else if (!is_same)
        page->is_shared = true;
    page->last = event->seq;
    memset(page->run_id, 0, sizeof(page->run_id));
    if (event->run_id.len > 0)
        memcpy(page->run_id, event->run_id.ptr, event->run_id.len);
    return 0;
}

void hd_event_page_reset(struct hd_event_log_page *page)
{
    struct hd_buf data = page->data;

    hd_buf_reset(&data);
    *page = (struct hd_event_log_page){.data = data};
}

void hd_event_page_label(const struct hd_event_log_page *page, char out[HD_PAGE_LABEL_SIZE])
{
    if (page->has_runs)
        snprintf(out, HD_PAGE_LABEL_SIZE, "*%llu", (unsigned long long)page->count);
    else
        snprintf(out, HD_PAGE_LABEL_SIZE, "%s", page->run_id);
}

/* ---- read ------------------------------------------------------------- */

static bool label_has_count(struct hd_slice label)
{
    return label.len > 0 && label.ptr[0] == '*';
}

uint64_t hd_event_page_count(struct hd_slice label, int64_t first, int64_t last)
{
    uint64_t count = 0;

    if (!label_has_count(label))
        return last < first ? 0 : (uint64_t)(last - first) + 1;
    for (size_t i = 1; i < label.len && label.ptr[i] >= '0' && label.ptr[i] <= '9'; i++)
        count = count * 10 + (uint64_t)(label.ptr[i] - '0');
    return count;
}

bool hd_event_page_may_have(struct hd_slice label, struct hd_slice run_id)
{
    return label_has_count(label) || hd_slice_eq(label, run_id);
}

struct hd_event_page_reader hd_event_page_reader(struct hd_slice label, struct hd_slice data)
{
    bool has_runs = label_has_count(label);

    return (struct hd_event_page_reader){.data = hd_reader(data),
                                         .run_id = has_runs ? hd_slice(NULL, 0) : label,
                                         .has_runs = has_runs};
}

int hd_event_page_reader_next(struct hd_event_page_reader *reader, struct hd_event_page_item *out)
{
    struct hd_reader *r = &reader->data;
    struct hd_slice run_id = hd_slice(NULL, 0);
    uint64_t mode;
    uint8_t flags;

    if (r->pos >= r->end)
        return HD_ENOTFOUND;
    if (hd_read_varint(r, &out->seq) || hd_read_varint(r, &mode) || hd_read_byte(r, &flags) ||
        (reader->has_runs && hd_read_lenslice(r, &run_id)) || hd_read_lenslice(r, &out->name) ||
        hd_read_lenslice(r, &out->data))
        return HD_ECORRUPT;
    if (run_id.len > 0)
        reader->run_id = run_id;
    if (reader->run_id.len > HD_UUID_LEN)
        return HD_ECORRUPT;
    out->mode = (uint32_t)mode;
    out->is_last = (flags & FLAG_LAST) != 0;
    out->is_repeat = (flags & FLAG_REPEAT) != 0;
    out->run_id = reader->run_id;
    return 0;
}

bool hd_event_page_item_replaces(const struct hd_event_page_item *event,
                                 const struct hd_event_page_item *before)
{
    return event->is_repeat && before->seq < event->seq && before->mode == event->mode &&
           before->is_last == event->is_last && hd_slice_eq(before->run_id, event->run_id) &&
           hd_slice_eq(before->name, event->name);
}
