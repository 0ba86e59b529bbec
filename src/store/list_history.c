/*
 * Checkpoints are processed in pages: their rows and the task's writes are read together, then all
 * chunks that the page has for the first time.
 *
 * An element longer than the maximal chunk is cut into several, with no comma between them. Such
 * pieces are read all or none: each alone is not JSON, and some may also belong to another element.
 */
#include "store/list_history.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/reading.h"
#include "store/store.h"

enum { PAGE = 32 };

/* Chunks seen so far: disjoint, in order, with a gap between any two. */
struct chunk_stretch {
    int64_t start, end;
};

struct cover {
    struct chunk_stretch *list;
    size_t count, cap;
};

/* Chunks to read. */
struct span {
    struct chunk_stretch chunks;
    bool joins;    /* the first continues the element at the end of the previous span */
    bool is_glued; /* each further one continues the element of the one before */
    uint64_t come; /* number of chunks that arrived */
    struct hd_cell low, high;
    struct span *next;
};

struct history_item {
    struct hd_slice id;
    struct hd_checkpoint_body body;
    struct hd_ref ref;
    bool is_there;
    bool is_opaque;
    struct span *spans, **tail;
    struct hd_buf text; /* the chunks that arrived */
};

struct history_walker {
    struct hd_store *store;
    const struct hd_list_history *history;
    struct heddle_error *fault;
    struct hd_slice thread; /* the stored key */
    struct hd_arena keys;   /* holds the stored key */
    struct cover cover;
    struct hd_reading reading;
    struct hd_arena arena; /* of a page */
    struct history_item items[PAGE];
    size_t first, count; /* the range of ids */
};

/* ---- seen chunks ------------------------------------------------------ */

/* The first stretch that ends at or after `at`. */
static size_t stretch_find(const struct cover *cover, int64_t at)
{
    size_t low = 0, high = cover->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (cover->list[middle].end < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool stretch_is_seen(const struct cover *cover, struct chunk_stretch chunks)
{
    size_t at = stretch_find(cover, chunks.end);

    return at < cover->count && cover->list[at].start <= chunks.start;
}

/* Joins it with the stretches that it touches. */
static int stretch_add(struct cover *cover, struct chunk_stretch chunks)
{
    size_t at = stretch_find(cover, chunks.start), end = at;
    int err = hd_array_grow(cover->list, cover->count, cover->cap);

    if (err)
        return err;
    for (; end < cover->count && cover->list[end].start <= chunks.end; end++) {
        if (cover->list[end].start < chunks.start)
            chunks.start = cover->list[end].start;
        if (cover->list[end].end > chunks.end)
            chunks.end = cover->list[end].end;
    }
    if (at + 1 != end)
        memmove(&cover->list[at + 1], &cover->list[end],
                (cover->count - end) * sizeof(*cover->list));
    cover->count = cover->count + 1 - (end - at);
    cover->list[at] = chunks;
    return 0;
}

/* ---- new chunks ------------------------------------------------------- */

static int add_span(struct history_walker *w, struct history_item *item, struct span span)
{
    struct span *added = hd_arena_alloc(&w->arena, sizeof(*added));

    if (!added)
        return HD_ENOMEM;
    *added = span;
    added->low = hd_cell_int(span.chunks.start);
    added->high = hd_cell_int(span.chunks.end);
    *item->tail = added;
    item->tail = &added->next;
    return 0;
}

/* Chunks that contain whole elements. */
static int extent_take(struct history_walker *w, struct history_item *item,
                       struct chunk_stretch extent)
{
    const struct cover *cover = &w->cover;
    int64_t pos = extent.start;
    int err = 0;

    for (size_t i = stretch_find(cover, pos); !err && pos < extent.end; i++) {
        bool is_last = i == cover->count || cover->list[i].start >= extent.end;
        int64_t end = is_last ? extent.end : cover->list[i].start;

        if (end > pos)
            err = add_span(w, item, (struct span){.chunks = {pos, end}});
        pos = is_last ? extent.end : cover->list[i].end;
    }
    return err ? err : stretch_add(&w->cover, extent);
}

/* An element of several chunks, from the span at *begin on: removes them if all were seen. */
static int close_element(struct history_walker *w, struct history_item *item, struct span **begin)
{
    bool is_new = false;
    int err = 0;

    for (struct span *span = *begin; span; span = span->next)
        is_new |= !stretch_is_seen(&w->cover, span->chunks);
    for (struct span *span = *begin; !err && span; span = span->next)
        err = stretch_add(&w->cover, span->chunks);
    if (!is_new) {
        *begin = NULL;
        item->tail = begin;
    }
    return err;
}

/* True when a segment's first chunk continues the element at the end of the segment before. */
static bool joins(const struct hd_ref *ref, size_t at)
{
    return at > 0 && at < ref->segment_count && ref->segments[at].is_extent &&
           ref->segments[at - 1].is_extent && !ref->segments[at].first_comma;
}

struct extent_taking {
    struct history_walker *w;
    struct history_item *item;
    struct span **begin; /* of the current element of several chunks; NULL: none */
};

static int end_element(struct extent_taking *t)
{
    int err = t->begin ? close_element(t->w, t->item, t->begin) : 0;

    t->begin = NULL;
    return err;
}

static int take_part(struct extent_taking *t, struct chunk_stretch chunks, bool continues)
{
    struct span span = {.chunks = chunks, .joins = continues, .is_glued = true};
    int err = continues ? 0 : end_element(t);

    if (err)
        return err;
    if (!t->begin)
        t->begin = t->item->tail;
    return add_span(t->w, t->item, span);
}

/* The first and the last chunk may be parts of an element, or all belong to one. */
static int take_segment(struct extent_taking *t, size_t at)
{
    const struct hd_ref *ref = &t->item->ref;
    const struct hd_segment *segment = &ref->segments[at];
    struct chunk_stretch extent = {segment->start, segment->start + (int64_t)segment->count};
    bool continues = joins(ref, at), is_cut = joins(ref, at + 1);
    int err = 0;

    if (segment->count > 1 && !segment->rest_comma)
        return take_part(t, extent, continues);
    if (continues) {
        err = take_part(t, (struct chunk_stretch){extent.start, extent.start + 1}, true);
        extent.start++;
    }
    if (is_cut && extent.start < extent.end)
        extent.end--;
    else
        is_cut = false;
    if (!err && extent.start < extent.end) {
        err = end_element(t);
        if (!err)
            err = extent_take(t->w, t->item, extent);
    }
    if (!err && is_cut)
        err = take_part(t, (struct chunk_stretch){extent.end, extent.end + 1}, false);
    return err;
}

static bool segment_is_same(const struct hd_segment *a, const struct hd_segment *b)
{
    return a->is_extent == b->is_extent && a->start == b->start && a->count == b->count &&
           a->first_comma == b->first_comma && a->rest_comma == b->rest_comma;
}

/* The number of leading segments to skip, because the previous item, if any, has them too. */
static size_t find_other(const struct hd_ref *ref, const struct history_item *before)
{
    size_t count = 1; /* after the bracket */

    if (before && !before->is_opaque && !before->ref.is_inline) {
        while (count < ref->segment_count && count < before->ref.segment_count &&
               segment_is_same(&ref->segments[count], &before->ref.segments[count]))
            count++;
        /* The last of them depends on the segment after it. */
        do
            count -= count > 1;
        while (count > 1 && joins(ref, count));
    }
    return count;
}

static int take_segments(struct history_walker *w, struct history_item *item,
                         const struct history_item *before)
{
    struct extent_taking t = {.w = w, .item = item};
    int err = 0;

    for (size_t i = find_other(&item->ref, before); !err && i + 1 < item->ref.segment_count; i++)
        err = take_segment(&t, i);
    return err ? err : end_element(&t);
}

/* ---- supported lists -------------------------------------------------- */

/* `[`, then extents of the channel's own chunks, then `]`. */
static bool is_list_reference(const struct hd_ref *ref, struct hd_slice channel)
{
    struct hd_slice text = ref->inline_bytes;
    size_t count = ref->segment_count;

    if (ref->is_inline)
        return text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']';
    if (count < 2 || ref->segments[0].is_extent || ref->segments[count - 1].is_extent ||
        !hd_slice_eq(ref->segments[0].literal, HD_S("[")) ||
        !hd_slice_eq(ref->segments[count - 1].literal, HD_S("]")))
        return false;
    for (size_t i = 1; i + 1 < count; i++) {
        if (!ref->segments[i].is_extent || !hd_slice_eq(ref->segments[i].sequence, channel))
            return false;
    }
    return true;
}

static int find_list(struct history_walker *w, struct history_item *item)
{
    struct hd_slice channel = w->history->channel;
    const struct hd_channel_entry *entry =
        item->is_there && !item->is_opaque ? hd_checkpoint_body_entry(&item->body, channel) : NULL;
    int err;

    item->is_opaque = true;
    if (!entry || !hd_slice_eq(entry->type, HD_S("hd1")))
        return 0;
    err = hd_ref_parse(entry->ref, channel, &w->arena, &item->ref);
    if (!err)
        item->is_opaque = !is_list_reference(&item->ref, channel);
    return err;
}

/* ---- rows ------------------------------------------------------------- */

static int on_checkpoint(void *arg, size_t which, const struct hd_cell *cells)
{
    struct history_walker *w = arg;
    struct hd_slice body;
    int err = hd_unpack_copy(&w->arena, cells[HD_CHECKPOINTS_BODY].bytes, &body);

    if (!err)
        err = hd_checkpoint_body_parse(body, &w->arena, &w->items[which].body);
    w->items[which].is_there = true;
    return err;
}

static int walker_on_write(void *arg, size_t which, const struct hd_cell *cells)
{
    struct history_walker *w = arg;

    w->items[which].is_opaque |= hd_slice_eq(cells[HD_WRITES_CHANNEL].bytes, w->history->channel);
    return 0;
}

static int ask_item(struct history_walker *w, size_t i)
{
    struct hd_cell *prefix = hd_arena_alloc(&w->arena, 4 * sizeof(*prefix));
    int err;

    if (!prefix)
        return HD_ENOMEM;
    prefix[0] = hd_cell_bytes(w->thread);
    prefix[1] = hd_cell_bytes(w->history->ns);
    prefix[2] = hd_cell_bytes(w->items[i].id);
    prefix[3] = hd_cell_bytes(w->history->task);
    err = hd_reading_add(&w->reading,
                         (struct hd_query){.table = HD_CHECKPOINTS,
                                           .index = HD_PRIMARY,
                                           .prefix = prefix,
                                           .prefix_count = 3,
                                           .columns = 1u << HD_CHECKPOINTS_BODY},
                         (struct hd_receiver){.fn = on_checkpoint, .arg = w, .which = i});
    if (err)
        return err;
    return hd_reading_add(&w->reading,
                          (struct hd_query){.table = HD_WRITES,
                                            .index = HD_PRIMARY,
                                            .prefix = prefix,
                                            .prefix_count = 4,
                                            .columns = 1u << HD_WRITES_CHANNEL},
                          (struct hd_receiver){.fn = walker_on_write, .arg = w, .which = i});
}

/* ---- chunks ----------------------------------------------------------- */

struct chunk_reader {
    struct history_item *item;
    struct span *span;
};

static int append_chunk(struct history_item *item, struct hd_slice packed, bool continues)
{
    size_t size, len;
    int err = hd_unpacked_size(packed, &size);

    if (!err && !continues && item->text.len > 0)
        err = hd_buf_append_byte(&item->text, ',');
    if (!err)
        err = hd_buf_reserve(&item->text, size);
    if (!err)
        err = hd_unpack(packed, item->text.ptr + item->text.len, size, &len);
    if (!err)
        item->text.len += len;
    return err;
}

/* A missing or damaged chunk is reported by the ordinary read of the checkpoint. */
static int span_on_chunk(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct chunk_reader *reader = arg;
    struct span *span = reader->span;
    int err;

    (void)which;
    if (cells[HD_CHUNKS_SEQ].number != span->chunks.start + (int64_t)span->come)
        return 1;
    err = append_chunk(reader->item, cells[HD_CHUNKS_DATA].bytes,
                       span->come == 0 ? span->joins : span->is_glued);
    if (err)
        return err == HD_ENOMEM ? err : 1;
    span->come++;
    return 0;
}

static int ask_chunks(struct history_walker *w, struct history_item *item)
{
    struct hd_cell *prefix = hd_arena_alloc(&w->arena, 2 * sizeof(*prefix));
    int err = prefix ? 0 : HD_ENOMEM;

    if (err)
        return err;
    prefix[0] = hd_cell_bytes(w->thread);
    prefix[1] = hd_cell_bytes(w->history->channel);
    for (struct span *span = item->spans; !err && span; span = span->next) {
        struct chunk_reader *reader = hd_arena_alloc(&w->arena, sizeof(*reader));

        if (!reader)
            return HD_ENOMEM;
        *reader = (struct chunk_reader){item, span};
        err = hd_reading_add(&w->reading,
                             (struct hd_query){.table = HD_CHUNKS,
                                               .index = HD_PRIMARY,
                                               .prefix = prefix,
                                               .prefix_count = 2,
                                               .low = &span->low,
                                               .high = &span->high,
                                               .columns = 1u << HD_CHUNKS_DATA},
                             (struct hd_receiver){.fn = span_on_chunk, .arg = reader});
    }
    return err;
}

static bool is_whole(const struct history_item *item)
{
    for (const struct span *span = item->spans; span; span = span->next) {
        if (span->come != (uint64_t)(span->chunks.end - span->chunks.start))
            return false;
    }
    return true;
}

/* ---- pages ------------------------------------------------------------ */

static int walker_run(struct history_walker *w)
{
    return hd_reading_run(&w->reading, w->store->backend, w->fault);
}

static int read_rows(struct history_walker *w)
{
    int err = 0;

    for (size_t i = 0; !err && i < w->count; i++) {
        w->items[i].id = w->history->ids[w->first + i];
        w->items[i].tail = &w->items[i].spans;
        err = ask_item(w, i);
    }
    return err ? err : walker_run(w);
}

/* The chunks of known checkpoints count as seen, and are not read. */
static int read_chunks(struct history_walker *w)
{
    int err = 0;

    for (size_t i = 0; !err && i < w->count; i++) {
        struct history_item *item = &w->items[i];

        err = find_list(w, item);
        hd_buf_init(&item->text, item->is_opaque ? 0 : (size_t)item->ref.size);
        if (!err && !item->is_opaque && !item->ref.is_inline)
            err = take_segments(w, item, i > 0 ? &w->items[i - 1] : NULL);
        if (!err && w->first + i >= w->history->known)
            err = ask_chunks(w, item);
    }
    return err ? err : walker_run(w);
}

static int report_item(struct history_walker *w, size_t i, hd_list_history_fn fn, void *arg)
{
    const struct history_item *item = &w->items[i];
    struct hd_slice text = hd_buf_slice(&item->text);

    if (w->first + i < w->history->known)
        return 0;
    if (item->is_opaque || !is_whole(item))
        return fn(arg, w->first + i, NULL);
    if (item->ref.is_inline)
        text = hd_slice(item->ref.inline_bytes.ptr + 1, item->ref.inline_bytes.len - 2);
    return text.len > 0 ? fn(arg, w->first + i, &text) : 0;
}

static int walk_page(struct history_walker *w, hd_list_history_fn fn, void *arg)
{
    int err;

    hd_arena_reset(&w->arena);
    memset(w->items, 0, sizeof(w->items));
    err = read_rows(w);
    if (!err)
        err = read_chunks(w);
    for (size_t i = 0; !err && i < w->count; i++)
        err = report_item(w, i, fn, arg);
    for (size_t i = 0; i < w->count; i++)
        hd_buf_fini(&w->items[i].text);
    return err;
}

int hd_list_history_walk(struct heddle *store, const struct hd_list_history *history,
                         hd_list_history_fn fn, void *arg, struct heddle_error *fault)
{
    struct history_walker *w = hd_calloc(1, sizeof(*w));
    int err;

    if (!w)
        return HD_ENOMEM;
    w->store = hd_store_of(store);
    w->history = history;
    w->fault = fault;
    hd_arena_init(&w->keys, SIZE_MAX / 2);
    hd_arena_init(&w->arena, SIZE_MAX / 2);
    hd_reading_init(&w->reading);
    err = hd_store_thread_key(&history->thread, &w->keys, &w->thread, fault);
    for (; !err && w->first < history->count; w->first += w->count) {
        w->count = history->count - w->first < PAGE ? history->count - w->first : PAGE;
        err = walk_page(w, fn, arg);
    }
    hd_reading_fini(&w->reading);
    hd_arena_fini(&w->arena);
    hd_arena_fini(&w->keys);
    hd_free(w->cover.list);
    hd_free(w);
    return err;
}
