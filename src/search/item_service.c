#include "search/item_service.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "base/clock.h"
#include "config/config.h"
#include "search/embed.h"
#include "search/item_service_internal.h"
#include "store/rows.h"

#define MAX_TTL_MINUTES 1e9
#define US_PER_MINUTE 60e6
/* A read makes an item live longer when at least this part of its time has gone. */
#define REFRESH_PART 64

/* ---- places ----------------------------------------------------------- */

int hd_item_service_join(const struct hd_item_service *items,
                         const struct hd_item_namespace *labels, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, HD_ITEM_NAMESPACE_MAX_TEXT);
    err = hd_buf_append_slice(&buf, items->base);
    if (!err && items->base.len > 0 && labels->count > 0)
        err = hd_buf_append_byte(&buf, '.');
    if (!err)
        err = hd_item_namespace_join(labels, &buf);
    if (!err)
        err = hd_arena_copy(items->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

int hd_item_service_place(const struct hd_item_service *items,
                          const struct hd_item_namespace *labels, struct hd_slice key,
                          struct hd_item_place *out)
{
    int err;

    *out = (struct hd_item_place){.labels = *labels, .key = key};
    if (key.len == 0)
        return hd_error_set(items->fault, HD_EINVAL, "key: expected a non-empty string");
    if (memchr(key.ptr, '\0', key.len))
        return hd_error_set(items->fault, HD_EINVAL, "key: contains a NUL");
    err = hd_item_service_join(items, labels, &out->ns);
    if (!err)
        err = hd_item_check(out->ns, key, items->fault);
    if (err == HD_ELIMIT) /* of the name, not of what is sent */
        items->fault->code = err = HD_EINVAL;
    return err;
}

/* ---- reading ---------------------------------------------------------- */

int hd_item_service_touch(struct hd_batch_builder *batch, const struct hd_item_rec *item,
                          int64_t now)
{
    int64_t wanted = now + item->ttl_us;

    if (item->ttl_us == 0 || wanted - item->expires_at < item->ttl_us / REFRESH_PART)
        return 0;
    return hd_item_refresh(batch, item, wanted);
}

int hd_item_service_get(const struct hd_item_service *items, const struct hd_item_place *place,
                        bool refreshes, struct hd_item_rec *out)
{
    struct heddle *store = items->app->store;
    struct hd_batch_builder batch;
    bool is_seen = true;
    int err = hd_item_read(store, items->principal, place->ns, place->key, items->arena, out,
                           items->fault);

    if (!err && items->sees)
        err = items->sees(items->ctx, out, &is_seen);
    if (!err && !is_seen)
        return HD_ENOTFOUND;
    if (err || !refreshes)
        return err;
    hd_batch_init(&batch);
    err = hd_item_service_touch(&batch, out, hd_clock_now_us());
    if (!err)
        err = hd_items_apply(store, place->ns, &batch, items->fault);
    hd_batch_fini(&batch);
    return err;
}

static void put_labels(struct hd_jw *jw, struct hd_slice ns)
{
    hd_jw_array(jw);
    for (;;) {
        const char *dot = ns.len > 0 ? memchr(ns.ptr, '.', ns.len) : NULL;
        size_t len = dot ? (size_t)(dot - ns.ptr) : ns.len;

        hd_jw_string(jw, hd_slice(ns.ptr, len));
        if (!dot)
            break;
        ns = hd_slice(dot + 1, ns.len - len - 1);
    }
    hd_jw_array_end(jw);
}

static void put_time(struct hd_jw *jw, const char *name, int64_t us)
{
    char text[33];

    hd_clock_format_iso(us, text);
    hd_jw_put_string(jw, name, hd_slice_cstr(text));
}

static void put_score(struct hd_jw *jw, double score)
{
    char text[32];

    hd_jw_key(jw, HD_S("score"));
    if (isnan(score)) {
        hd_jw_null(jw);
        return;
    }
    snprintf(text, sizeof(text), "%.9g", score);
    hd_jw_raw(jw, hd_slice_cstr(text));
}

struct hd_slice hd_item_service_below(const struct hd_item_service *items, struct hd_slice ns)
{
    size_t len = items->base.len > 0 ? items->base.len + 1 : 0;

    return ns.len > len ? hd_slice(ns.ptr + len, ns.len - len) : hd_slice("", 0);
}

void hd_item_service_write(const struct hd_item_service *items, struct hd_jw *jw,
                           const struct hd_item_rec *item, const double *score)
{
    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("namespace"));
    put_labels(jw, hd_item_service_below(items, item->ns));
    hd_jw_put_string(jw, "key", item->key);
    hd_jw_put_raw(jw, "value", item->value.len > 0 ? item->value : HD_S("{}"));
    put_time(jw, "created_at", item->created_at);
    put_time(jw, "updated_at", item->updated_at);
    if (score)
        put_score(jw, *score);
    hd_jw_object_end(jw);
}

/* ---- writing ---------------------------------------------------------- */

int hd_item_service_ttl(const struct hd_item_service *items, hd_json_val val, int64_t *out)
{
    double minutes;

    *out = items->app->config->ttl_items_us;
    if (!val || hd_json_is_null(val))
        return 0;
    if (!hd_json_double(val, &minutes) || !(minutes > 0) || minutes > MAX_TTL_MINUTES)
        return hd_error_set(items->fault, HD_EINVAL,
                            "ttl: expected a number of minutes greater than 0");
    *out = (int64_t)ceil(minutes * US_PER_MINUTE);
    return 0;
}

/* The time of creation stays; that of the change always grows, refreshing depends on it. */
static int date_item(const struct hd_item_service *items, struct hd_item_rec *item)
{
    int64_t now = hd_clock_now_us();
    struct hd_item_rec before;
    int err = hd_item_read(items->app->store, items->principal, item->ns, item->key, items->arena,
                           &before, items->fault);

    item->created_at = item->updated_at = now;
    item->expires_at = item->ttl_us > 0 ? now + item->ttl_us : 0;
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    item->created_at = before.created_at;
    if (item->updated_at <= before.updated_at)
        item->updated_at = before.updated_at + 1;
    return 0;
}

static int add_texts(const struct hd_item_service *items, hd_json_val value, struct hd_slice path,
                     struct hd_embed_texts *texts)
{
    int err = hd_embed_find(texts, value, path);

    if (err == HD_ELIMIT)
        return hd_error_set(items->fault, HD_EINVAL,
                            "index: a path is too long, or selects more than %d texts",
                            HD_EMBED_MAX_TEXTS);
    return err;
}

/* Each item has its own limit of texts. */
static int find_texts(const struct hd_item_service *items, hd_json_val value, hd_json_val index,
                      struct hd_embed_texts *found)
{
    struct hd_json_iter it = hd_json_iter(index);
    const struct hd_slice *fields;
    size_t count = 0;
    int err = 0;

    fields = hd_embedder_fields(items->app->embedder, &count);
    if (!index || hd_json_is_null(index)) {
        for (size_t i = 0; !err && i < count; i++)
            err = add_texts(items, value, fields[i], found);
        return err;
    }
    while (!err && hd_json_is_array(index) && hd_json_next(&it))
        err = add_texts(items, value, hd_json_string(it.val), found);
    return err;
}

static int check_index(const struct hd_item_service *items, hd_json_val index)
{
    struct hd_json_iter it = hd_json_iter(index);
    bool is_good =
        !index || hd_json_is_null(index) || hd_json_is_array(index) || hd_json_is_bool(index);

    while (is_good && hd_json_is_array(index) && hd_json_next(&it))
        is_good = hd_json_is_string(it.val);
    return is_good
               ? 0
               : hd_error_set(items->fault, HD_EINVAL, "index: expected false or a list of paths");
}

int hd_item_service_texts(const struct hd_item_service *items, hd_json_val value, hd_json_val index,
                          struct hd_embed_texts *texts, size_t *count)
{
    struct hd_embed_texts found = {.arena = items->arena};
    int err = check_index(items, index);

    *count = 0;
    if (err || !items->app->embedder)
        return err;
    if (hd_json_is_true(index))
        index = NULL;
    err = find_texts(items, value, index, &found);
    for (size_t i = 0; !err && i < found.count; i++)
        err = hd_embed_texts_add(texts, found.list[i]);
    *count = err ? 0 : found.count;
    return err;
}

/* Without an index old vectors stay: their revision does not match the new value. */
static int add_vectors(const struct hd_item_service *items, const struct hd_item_change *change,
                       const struct hd_item_rec *item, struct hd_batch_builder *batch)
{
    struct hd_vectors_rec vectors = {.principal = item->principal,
                                     .ns = item->ns,
                                     .key = item->key,
                                     .updated_at = item->updated_at};
    int err;

    if (!items->app->embedder)
        return 0;
    if (!change->vectors)
        return hd_vectors_delete(batch, item->principal, item->ns, item->key);
    vectors.dims = (int64_t)hd_embedder_dims(items->app->embedder);
    err = hd_embed_pack(change->vectors, change->text_count * (size_t)vectors.dims, items->arena,
                        &vectors.data);
    return err ? err : hd_vectors_put(batch, &vectors);
}

static int add_change(const struct hd_item_service *items, const struct hd_item_change *change,
                      struct hd_batch_builder *batch)
{
    struct hd_item_rec item = {.principal = items->principal,
                               .ns = change->place.ns,
                               .key = change->place.key,
                               .value = change->value,
                               .ttl_us = change->ttl_us};
    int err;

    if (change->is_deletion)
        return hd_item_delete(batch, items->principal, item.ns, item.key);
    err = date_item(items, &item);
    if (!err)
        err = hd_item_put(batch, &item);
    return err ? err : add_vectors(items, change, &item, batch);
}

int hd_item_service_change(const struct hd_item_service *items,
                           const struct hd_item_change *changes, size_t count)
{
    struct hd_batch_builder batch;
    int err = 0;

    if (count == 0)
        return 0;
    hd_batch_init(&batch);
    for (size_t i = 0; !err && i < count; i++)
        err = add_change(items, &changes[i], &batch);
    if (!err) {
        struct hd_batch view = hd_batch_view(&batch);

        err = hd_rows_apply(items->app->store, changes[0].place.ns, &view, NULL, items->fault);
    }
    hd_batch_fini(&batch);
    return err;
}
