/* Turns retrieved documents into texts for models, bounded and escaped. */
#include "agent/rag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/vec.h"

#define MAX_HITS 4096
#define MAX_FIELD 200
#define MAX_DEPTH 32 /* of metadata */

void hd_rag_clean_name(struct hd_slice name, char out[65])
{
    size_t len = 0;

    for (size_t i = 0; i < name.len && len < 64; i++) {
        char c = name.ptr[i];
        bool is_fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-';

        /* One per character, not per byte. */
        if (((unsigned char)c & 0xc0) != 0x80)
            out[len++] = is_fine ? c : '_';
    }
    out[len] = 0;
}

/* ---- documents ---------------------------------------------------------- */

static int put_escaped(struct hd_buf *out, struct hd_slice text)
{
    int err = 0;

    for (size_t i = 0; i < text.len && !err; i++) {
        switch (text.ptr[i]) {
        case '&':
            err = hd_buf_append(out, "&amp;", 5);
            break;
        case '<':
            err = hd_buf_append(out, "&lt;", 4);
            break;
        case '>':
            err = hd_buf_append(out, "&gt;", 4);
            break;
        case '"':
            err = hd_buf_append(out, "&quot;", 6);
            break;
        default:
            err = hd_buf_append_byte(out, (uint8_t)text.ptr[i]);
        }
    }
    return err;
}

static int put_document(struct hd_buf *out, hd_json_val document)
{
    hd_json_val id = hd_json_get(document, HD_S("id"));
    struct hd_slice content = hd_json_string(hd_json_get(document, HD_S("page_content")));
    int err = hd_buf_append(out, "  <document id=\"", 16);

    if (!err)
        err =
            put_escaped(out, hd_json_is_number(id) ? hd_json_number_text(id) : hd_json_string(id));
    if (!err)
        err = hd_buf_append(out, "\">\n", 3);
    if (!err)
        err = put_escaped(out, content);
    return err ? err : hd_buf_append(out, "\n  </document>\n", 15);
}

/* Writes the whole documents that fit. */
static int put_documents(struct hd_buf *out, hd_json_val list, size_t max, size_t *left)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_buf one;
    int err = 0;

    hd_buf_init(&one, max);
    while (!err && hd_json_next(&it)) {
        hd_buf_reset(&one);
        err = put_document(&one, it.val);
        if (!err && one.len <= max - out->len) {
            err = hd_buf_append_slice(out, hd_buf_slice(&one));
        } else if (!err || err == HD_ELIMIT) {
            err = 0;
            ++*left;
        }
    }
    hd_buf_fini(&one);
    return err;
}

int hd_rag_documents(struct hd_slice body, size_t max, struct hd_buf *out)
{
    struct hd_json json;
    size_t left = 0;
    int err = hd_json_parse(&json, body, NULL);

    if (err)
        return err;
    if (!hd_json_is_array(hd_json_root(&json)))
        err = HD_EINVAL;
    if (!err)
        err = hd_buf_append(out, "<all-documents>\n", 16);
    if (!err)
        err = put_documents(out, hd_json_root(&json), max > out->len ? max : out->len, &left);
    if (!err && left)
        err = hd_buf_printf(out, "  <left-out count=\"%zu\"/>\n", left);
    if (!err)
        err = hd_buf_append(out, "</all-documents>", 16);
    hd_json_fini(&json);
    return err;
}

/* ---- hits ---------------------------------------------------------------- */

void hd_rag_hits_fini(struct hd_rag_hits *hits)
{
    for (size_t i = 0; i < hits->count; i++) {
        hd_val_unref(hits->list[i].val);
        hd_val_unref(hits->list[i].text);
    }
    hd_free(hits->list);
    *hits = (struct hd_rag_hits){0};
}

static int add_hit(struct hd_rag_hits *hits, double distance, struct hd_val *val,
                   struct hd_val *text)
{
    if (!val || !text || hits->count == MAX_HITS ||
        hd_array_grow(hits->list, hits->count, hits->cap) != 0) {
        hd_val_unref(val);
        hd_val_unref(text);
        return HD_ENOMEM;
    }
    hits->list[hits->count] = (struct hd_rag_hit){distance, hits->count, val, text};
    hits->count++;
    return 0;
}

/* Chroma returns a list per query; there is one query. */
static hd_json_val row_of(hd_json_val root, const char *key)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(root, hd_slice_cstr(key)));

    return hd_json_is_array(hd_json_get(root, hd_slice_cstr(key))) && hd_json_next(&it) ? it.val
                                                                                        : NULL;
}

static hd_json_val next_of(struct hd_json_iter *it)
{
    return hd_json_next(it) ? it->val : NULL;
}

static struct hd_val *make_val(hd_json_val id, double distance, hd_json_val metadata,
                               struct hd_slice archive)
{
    struct hd_val *val = hd_val_with(hd_val_object(), HD_S("archive"), hd_val_string(archive));
    struct hd_val *more = NULL;
    int err = 0;

    val = hd_val_with(val, HD_S("id"), hd_val_string(hd_json_string(id)));
    if (isfinite(distance))
        val = hd_val_with(val, HD_S("distance"), hd_val_float(distance));
    if (hd_json_is_object(metadata))
        err = hd_val_from_json(metadata, &more, NULL);
    if (more && hd_val_depth(more) <= MAX_DEPTH)
        return hd_val_with(val, HD_S("metadata"), more);
    hd_val_unref(more);
    if (err != HD_ENOMEM)
        return val;
    hd_val_unref(val);
    return NULL;
}

static int read_rows(struct hd_rag_hits *hits, hd_json_val root, struct hd_slice archive)
{
    hd_json_val ids = row_of(root, "ids");
    struct hd_json_iter id = hd_json_iter(ids);
    struct hd_json_iter document = hd_json_iter(row_of(root, "documents"));
    struct hd_json_iter metadata = hd_json_iter(row_of(root, "metadatas"));
    struct hd_json_iter distance = hd_json_iter(row_of(root, "distances"));
    int err = 0;

    if (!hd_json_is_array(ids))
        return HD_EINVAL;
    while (!err && hd_json_next(&id)) {
        struct hd_slice text = hd_json_string(next_of(&document));
        hd_json_val about = next_of(&metadata);
        double far = HUGE_VAL;

        (void)hd_json_double(next_of(&distance), &far);
        if (text.len)
            err = add_hit(hits, far, make_val(id.val, far, about, archive), hd_val_string(text));
    }
    return err;
}

int hd_rag_hits_read(struct hd_rag_hits *hits, struct hd_slice body, struct hd_slice archive)
{
    struct hd_json json;
    int err = hd_json_parse(&json, body, NULL);

    if (err)
        return err;
    err = read_rows(hits, hd_json_root(&json), archive);
    hd_json_fini(&json);
    return err;
}

static int compare_hits(const void *a, const void *b)
{
    const struct hd_rag_hit *one = a, *other = b;

    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

void hd_rag_hits_sort(struct hd_rag_hits *hits, size_t top)
{
    if (hits->count)
        qsort(hits->list, hits->count, sizeof(*hits->list), compare_hits);
    while (hits->count > top) {
        hits->count--;
        hd_val_unref(hits->list[hits->count].val);
        hd_val_unref(hits->list[hits->count].text);
    }
}

/* The first of these members that the metadata has. */
static int put_field(struct hd_buf *out, const struct hd_val *metadata, const char *const *keys)
{
    struct hd_val *val = NULL;
    struct hd_buf text;
    int err;

    for (; *keys && hd_val_is_null(val); keys++)
        val = hd_val_get(metadata, hd_slice_cstr(*keys));
    if (hd_val_is_null(val) || hd_val_is_list(val) || hd_val_is_object(val))
        return 0;
    hd_buf_init(&text, (size_t)1 << 20);
    err = hd_val_write_text(&text, val);
    if (!err && text.len > MAX_FIELD)
        text.len = hd_utf8_cut(text.ptr, MAX_FIELD);
    if (!err && text.len)
        err = hd_buf_append(out, ", ", 2);
    if (!err)
        err = hd_buf_append_slice(out, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err == HD_ELIMIT ? 0 : err;
}

static int put_head(struct hd_buf *out, const struct hd_rag_hit *hit, size_t number)
{
    static const char *const sources[] = {"source", "file_name", "filename", "title", NULL};
    static const char *const pages[] = {"page_number", "page", NULL};
    static const char *const headings[] = {"section_heading", "heading", NULL};
    const char *const *const fields[] = {sources, pages, headings};
    struct hd_slice archive = hd_val_get_string(hd_val_get(hit->val, HD_S("archive")));
    int err = hd_buf_printf(out, "%s[%zu] %.*s", number > 1 ? "\n\n" : "", number, (int)archive.len,
                            archive.ptr);

    for (size_t i = 0; i < HD_COUNT(fields) && !err; i++)
        err = put_field(out, hd_val_get(hit->val, HD_S("metadata")), fields[i]);
    return err ? err : hd_buf_append_byte(out, '\n');
}

int hd_rag_hits_text(const struct hd_rag_hits *hits, size_t max, struct hd_buf *out)
{
    int err = 0;

    for (size_t i = 0; i < hits->count && !err && out->len < max; i++) {
        struct hd_slice text = hd_val_get_string(hits->list[i].text);

        err = put_head(out, &hits->list[i], i + 1);
        if (!err && out->len < max && text.len > max - out->len)
            text.len = hd_utf8_cut(text.ptr, max - out->len);
        if (!err && out->len < max)
            err = hd_buf_append_slice(out, text);
    }
    return err;
}

struct hd_val *hd_rag_hits_val(const struct hd_rag_hits *hits)
{
    struct hd_val *list = hd_val_list();

    for (size_t i = 0; i < hits->count; i++)
        list = hd_val_append(list, hd_val_ref(hits->list[i].val));
    return list;
}
