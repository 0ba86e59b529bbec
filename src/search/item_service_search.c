#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "records/item_filter.h"
#include "search/embed.h"
#include "search/item_service_internal.h"

#define MAX_FOUND ((size_t)1 << 30) /* bytes of the names that are sorted */
#define MAX_NAME 4096               /* bytes of a namespace and a key */
#define MAX_SCORES ((size_t)1 << 26)
#define MAX_NAMESPACES 1000000
#define MAX_NEAR 1000 /* items requested of a database */
#define MAX_LABELS_ARENA ((size_t)1 << 20)

/* ---- items ------------------------------------------------------------ */

/* The name of an item that matches, for sorting. */
struct found {
    int64_t updated_at;
    struct hd_slice ns;
    struct hd_slice key;
    double score; /* NAN: none */
};

struct items_search {
    const struct hd_item_service *items;
    const struct hd_item_search *criteria;
    HD_VEC(struct found) found;
    struct hd_arena arena; /* of what was found */
    struct hd_map scores;  /* of items that have vectors, by name */
};

/* How far the database's own comparison of vectors has brought us. */
enum progress {
    NOTHING,
    SCORED, /* all vectors that there are have their scores */
    FOUND   /* all results to show */
};

/* ---- how near they are ------------------------------------------------ */

struct score {
    int64_t updated_at;
    double value;
};

static int name_of(struct hd_slice ns, struct hd_slice key, struct hd_buf *out)
{
    int err = hd_buf_append_slice(out, ns);

    if (!err)
        err = hd_buf_append_byte(out, 0);
    return err ? err : hd_buf_append_slice(out, key);
}

static int add_score(struct items_search *search, const struct hd_vectors_rec *vectors,
                     double *value)
{
    size_t dims = hd_embedder_dims(search->items->app->embedder);
    struct score *score = hd_arena_alloc(&search->arena, sizeof(*score));
    struct hd_buf name;
    int err;

    if (!score)
        return HD_ENOMEM;
    score->updated_at = vectors->updated_at;
    score->value = *value = hd_embed_nearness(search->criteria->vector, dims, vectors->data);
    hd_buf_init(&name, MAX_NAME);
    err = name_of(vectors->ns, vectors->key, &name);
    if (!err)
        err = hd_map_put(&search->scores, hd_buf_slice(&name), score);
    hd_buf_fini(&name);
    return err;
}

static int on_vectors(void *arg, const struct hd_vectors_rec *vectors)
{
    struct items_search *search = arg;
    double ignored;

    if ((size_t)vectors->dims != hd_embedder_dims(search->items->app->embedder))
        return 0; /* of another index */
    return add_score(search, vectors, &ignored);
}

static int find_score(const struct items_search *search, const struct hd_item_rec *item,
                      double *out)
{
    const struct score *score;
    struct hd_buf name;
    int err;

    *out = NAN;
    if (search->scores.count == 0)
        return 0;
    hd_buf_init(&name, MAX_NAME);
    err = name_of(item->ns, item->key, &name);
    score = err ? NULL : hd_map_get(&search->scores, hd_buf_slice(&name));
    if (score && score->updated_at == item->updated_at)
        *out = score->value;
    hd_buf_fini(&name);
    return err;
}

/* ---- which match ------------------------------------------------------ */

static int matches(const struct items_search *search, const struct hd_item_rec *item, bool *out)
{
    struct hd_json json = {NULL};
    int err;

    *out = true;
    err = search->items->sees ? search->items->sees(search->items->ctx, item, out) : 0;
    if (err || !*out || !search->criteria->filter)
        return err;
    err = hd_json_parse(&json, item->value, search->items->fault);
    *out = !err && hd_filter_matches(search->criteria->filter, hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

static int on_item(void *arg, const struct hd_item_rec *item)
{
    struct items_search *search = arg;
    struct found *found;
    bool is_match;
    int err = matches(search, item, &is_match);

    if (err || !is_match)
        return err;
    err = hd_vec_reserve(&search->found, 1);
    if (err)
        return err;
    found = &search->found.items[search->found.count];
    *found = (struct found){.updated_at = item->updated_at, .score = NAN};
    err = find_score(search, item, &found->score);
    if (!err)
        err = hd_arena_copy(&search->arena, item->ns, &found->ns);
    if (!err)
        err = hd_arena_copy(&search->arena, item->key, &found->key);
    search->found.count += !err;
    return err;
}

/* The nearest first, then the last written. */
static int compare_found(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    int order;

    if (isnan(one->score) != isnan(other->score))
        return isnan(one->score) ? 1 : -1;
    if (one->score > other->score || one->score < other->score)
        return one->score > other->score ? -1 : 1;
    if (one->updated_at != other->updated_at)
        return one->updated_at > other->updated_at ? -1 : 1;
    order = hd_slice_cmp(one->ns, other->ns);
    return order != 0 ? order : hd_slice_cmp(one->key, other->key);
}

static int show_found(struct items_search *search, struct hd_batch_builder *batch, struct hd_jw *jw)
{
    const struct hd_item_service *items = search->items;
    const struct hd_item_search *criteria = search->criteria;
    size_t end = (size_t)(criteria->offset + criteria->limit);
    int err = 0;

    for (size_t i = (size_t)criteria->offset; !err && i < search->found.count && i < end; i++) {
        const struct found *found = &search->found.items[i];
        struct hd_item_rec item;

        err = hd_item_read(items->app->store, items->principal, found->ns, found->key, items->arena,
                           &item, items->fault);
        if (err == HD_ENOTFOUND) { /* gone a moment ago */
            err = 0;
            continue;
        }
        if (!err && criteria->refreshes)
            err = hd_item_service_touch(batch, &item, hd_clock_now_us());
        if (!err)
            hd_item_service_write(items, jw, &item, criteria->query.len > 0 ? &found->score : NULL);
    }
    return err;
}

static int show_sorted(struct items_search *search, struct hd_jw *jw)
{
    struct hd_batch_builder batch;
    int err;

    if (search->found.count > 0)
        qsort(search->found.items, search->found.count, sizeof(*search->found.items),
              compare_found);
    hd_batch_init(&batch);
    err = show_found(search, &batch, jw);
    if (!err)
        err = hd_items_apply(search->items->app->store, search->criteria->prefix, &batch,
                             search->items->fault);
    hd_batch_fini(&batch);
    return err;
}

/* ---- those that a database finds --------------------------------------- */

/*
 * A database that can compare vectors (hd_vectors_nearest()) returns candidates, and only these are
 * read. Scores are always computed here. The database's scores may differ in the last digits, and
 * the filter may drop candidates, so more than the limit are requested; a candidate that is
 * certainly nearer than all others has the same position as in a full comparison. When too few are
 * certain, all items are compared.
 */
struct near {
    struct items_search *search;
    struct hd_item_name *names;
    size_t count, cap;
    size_t counts[2]; /* in the namespace, below it */
    double last[2];   /* scores */
};

static int on_near(void *arg, size_t which, const struct hd_vectors_rec *vectors)
{
    struct near *near = arg;
    struct hd_item_name *name = &near->names[near->count];
    int err = near->count < near->cap ? 0 : HD_ELIMIT;

    if (!err)
        err = add_score(near->search, vectors, &near->last[which]);
    if (!err)
        err = hd_arena_copy(&near->search->arena, vectors->ns, &name->ns);
    if (!err)
        err = hd_arena_copy(&near->search->arena, vectors->key, &name->key);
    near->count += !err;
    near->counts[which] += !err;
    return err;
}

/*
 * An item that is not a candidate has no greater score, up to the rounding errors of two sums of
 * products.
 */
static double greatest_unnamed(const struct near *near, size_t limit)
{
    size_t dims = hd_embedder_dims(near->search->items->app->embedder);
    double greatest = -INFINITY;

    for (size_t i = 0; i < HD_COUNT(near->counts); i++) {
        if (near->counts[i] == limit && !(near->last[i] <= greatest))
            greatest = isnan(near->last[i]) ? INFINITY : near->last[i];
    }
    return greatest + (1.25 * (double)dims + 16) * 0x1p-23;
}

static void forget(struct items_search *search)
{
    search->found.count = 0;
    hd_map_fini(&search->scores);
    hd_map_init(&search->scores, MAX_SCORES);
    hd_arena_reset(&search->arena);
}

static int pick_near(struct near *near, size_t limit, size_t wanted, enum progress *out)
{
    struct items_search *search = near->search;
    const struct hd_item_service *items = search->items;
    double bound = greatest_unnamed(near, limit);
    size_t sure = 0;
    int err = hd_items_pick(items->app->store, items->principal, near->names, near->count,
                            search->criteria->filter || items->sees, on_item, search, items->fault);

    for (size_t i = 0; !err && i < search->found.count; i++)
        sure += search->found.items[i].score > bound;
    if (sure >= wanted)
        *out = FOUND;
    else
        *out = near->counts[0] < limit && near->counts[1] < limit ? SCORED : NOTHING;
    return err;
}

static int ask_near(struct items_search *search, struct hd_slice vector, size_t limit,
                    size_t wanted, enum progress *out)
{
    const struct hd_item_service *items = search->items;
    struct near near = {.search = search, .cap = 2 * limit, .last = {NAN, NAN}};
    int err;

    near.names = hd_calloc(near.cap, sizeof(*near.names));
    if (!near.names)
        return HD_ENOMEM;
    err = hd_vectors_nearest(items->app->store, items->principal, search->criteria->prefix, vector,
                             limit, on_near, &near, items->fault);
    if (!err)
        err = pick_near(&near, limit, wanted, out);
    hd_free(near.names);
    return err;
}

static int find_near(struct items_search *search, enum progress *out)
{
    const struct hd_item_search *criteria = search->criteria;
    size_t wanted = (size_t)criteria->offset + (size_t)criteria->limit;
    struct hd_slice vector;
    int err;

    *out = NOTHING;
    if (!criteria->vector || criteria->offset > MAX_NEAR || criteria->limit > MAX_NEAR)
        return 0;
    err = hd_embed_pack(criteria->vector, hd_embedder_dims(search->items->app->embedder),
                        search->items->arena, &vector);
    for (size_t limit = 2 * wanted + 32, tries = 0; !err && *out == NOTHING && tries < 2; tries++) {
        forget(search);
        err = ask_near(search, vector, limit, wanted, out);
        limit *= 8;
    }
    return err > 0 ? 0 : err;
}

static int find_all(struct items_search *search, enum progress progress)
{
    const struct hd_item_service *items = search->items;
    const struct hd_item_search *criteria = search->criteria;
    int err = 0;

    search->found.count = 0;
    if (progress == NOTHING) {
        forget(search);
        err = criteria->vector ? hd_vectors_scan(items->app->store, items->principal,
                                                 criteria->prefix, on_vectors, search, items->fault)
                               : 0;
    }
    if (!err)
        err = hd_items_scan(items->app->store, items->principal, criteria->prefix,
                            criteria->filter || items->sees, on_item, search, items->fault);
    return err;
}

int hd_item_service_search(const struct hd_item_service *items,
                           const struct hd_item_search *criteria, struct hd_jw *jw)
{
    struct items_search search = {.items = items, .criteria = criteria};
    enum progress progress;
    int err;

    hd_arena_init(&search.arena, MAX_FOUND);
    hd_map_init(&search.scores, MAX_SCORES);
    err = find_near(&search, &progress);
    if (!err && progress != FOUND)
        err = find_all(&search, progress);
    hd_jw_array(jw);
    if (!err)
        err = show_sorted(&search, jw);
    hd_jw_array_end(jw);
    hd_vec_fini(&search.found);
    hd_map_fini(&search.scores);
    hd_arena_fini(&search.arena);
    return err;
}

/* ---- namespaces ------------------------------------------------------- */

struct namespace_listing {
    const struct hd_item_service *items;
    const struct hd_ns_search *criteria;
    struct hd_slice from; /* all that match begin with it */
    struct hd_label_set set;
    struct hd_arena arena; /* of one namespace */
};

/* The labels of a prefix before its first wildcard. */
static int find_start(struct namespace_listing *listing)
{
    const struct hd_ns_search *criteria = listing->criteria;
    struct hd_item_namespace fixed = {.count = 0};

    for (size_t i = 0; i < criteria->match_count; i++) {
        const struct hd_item_namespace *labels = &criteria->matches[i].labels;

        if (criteria->matches[i].is_suffix)
            continue;
        fixed.items = labels->items;
        while (fixed.count < labels->count && !hd_slice_eq(fixed.items[fixed.count], HD_S("*")))
            fixed.count++;
        break;
    }
    return hd_item_service_join(listing->items, &fixed, &listing->from);
}

static bool is_match(const struct hd_ns_search *criteria, const struct hd_item_namespace *labels)
{
    for (size_t i = 0; i < criteria->match_count; i++) {
        const struct hd_ns_match *match = &criteria->matches[i];

        if (match->is_suffix ? !hd_item_namespace_end_with(labels, &match->labels)
                             : !hd_item_namespace_start_with(labels, &match->labels))
            return false;
    }
    return true;
}

static int on_namespace(void *arg, struct hd_slice ns)
{
    struct namespace_listing *listing = arg;
    struct hd_item_namespace labels;
    int err;

    if (!hd_slice_starts(ns, listing->from))
        return 1;
    hd_arena_reset(&listing->arena);
    ns = hd_item_service_below(listing->items, ns);
    err = hd_item_namespace_split(&labels, ns, "namespace", &listing->arena, listing->items->fault);
    if (err || !is_match(listing->criteria, &labels))
        return err;
    return hd_label_set_add(&listing->set, &labels);
}

/* Only those that have items which are seen. */
static int on_listed(void *arg, const struct hd_item_rec *item)
{
    struct namespace_listing *listing = arg;
    bool is_seen;
    int err = listing->items->sees(listing->items->ctx, item, &is_seen);

    if (!err && is_seen)
        err = on_namespace(listing, item->ns);
    return err < 0 ? err : 0;
}

static void show_namespaces(struct namespace_listing *listing, struct hd_jw *jw)
{
    size_t end = (size_t)(listing->criteria->offset + listing->criteria->limit);

    hd_label_set_sort(&listing->set);
    hd_jw_array(jw);
    for (size_t i = (size_t)listing->criteria->offset; i < listing->set.count && i < end; i++) {
        const struct hd_item_namespace *labels = &listing->set.items[i];

        hd_jw_array(jw);
        for (size_t n = 0; n < labels->count; n++)
            hd_jw_string(jw, labels->items[n]);
        hd_jw_array_end(jw);
    }
    hd_jw_array_end(jw);
}

int hd_item_service_namespaces(const struct hd_item_service *items,
                               const struct hd_ns_search *criteria, struct hd_jw *jw)
{
    struct namespace_listing listing = {.items = items, .criteria = criteria};
    int err = find_start(&listing);

    if (err)
        return err;
    hd_arena_init(&listing.arena, MAX_LABELS_ARENA);
    hd_label_set_init(&listing.set, items->arena, (size_t)criteria->max_depth, MAX_NAMESPACES);
    if (items->sees)
        err = hd_items_scan(items->app->store, items->principal, listing.from, true, on_listed,
                            &listing, items->fault);
    else
        err = hd_namespaces_scan(items->app->store, items->principal, listing.from, on_namespace,
                                 &listing, items->fault);
    if (!err)
        show_namespaces(&listing, jw);
    hd_label_set_fini(&listing.set);
    hd_arena_fini(&listing.arena);
    return err;
}
