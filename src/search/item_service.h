/*
 * Operations on items, for the API and for graphs in workers.
 *
 *   item_service.c         places, getting and changing
 *   item_service_search.c  searching, and listing namespaces
 *
 * All of it waits for the store: for store threads.
 */
#ifndef HD_SEARCH_ITEM_SERVICE_H
#define HD_SEARCH_ITEM_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "records/item_namespace.h"
#include "records/record.h"
#include "search/embed_text.h"

struct hd_app;

/* The owner of the items, and the arena for the results. */
struct hd_item_service {
    const struct hd_app *app;
    struct hd_slice principal;
    /* Labels, joined: all items are below them, and the caller does not see them; or empty. */
    struct hd_slice base;
    struct hd_arena *arena;
    struct heddle_error *fault;
    /* True if the caller may see an item; NULL: it may see all. */
    int (*sees)(void *ctx, const struct hd_item_rec *item, bool *out);
    void *ctx;
};

struct hd_item_place {
    struct hd_item_namespace labels;
    struct hd_slice ns; /* the labels, joined */
    struct hd_slice key;
};

/* Of labels that were read; HD_EINVAL when no item can be there. */
HD_MUST_CHECK int hd_item_service_place(const struct hd_item_service *items,
                                        const struct hd_item_namespace *labels, struct hd_slice key,
                                        struct hd_item_place *out);
HD_MUST_CHECK int hd_item_service_join(const struct hd_item_service *items,
                                       const struct hd_item_namespace *labels,
                                       struct hd_slice *out);

/* Minutes, from a request; NULL and null: the configured default. */
HD_MUST_CHECK int hd_item_service_ttl(const struct hd_item_service *items, hd_json_val minutes,
                                      int64_t *out);

/* HD_ENOTFOUND: no such item. */
HD_MUST_CHECK int hd_item_service_get(const struct hd_item_service *items,
                                      const struct hd_item_place *place, bool refreshes,
                                      struct hd_item_rec *out);

/* An item that is put, or deleted. */
struct hd_item_change {
    struct hd_item_place place;
    bool is_deletion;
    struct hd_slice value; /* JSON object */
    int64_t ttl_us;        /* 0: none */
    size_t text_count;     /* texts that it is found by: hd_item_service_texts() */
    const float *vectors;  /* one for each */
};

/*
 * Adds the texts that an item with this value is found by; *count is their number. `index` is the
 * client's: false, a list of paths, or NULL and null for those of the configuration.
 */
HD_MUST_CHECK int hd_item_service_texts(const struct hd_item_service *items, hd_json_val value,
                                        hd_json_val index, struct hd_embed_texts *texts,
                                        size_t *count);

/* Atomic; of two changes of one item the later wins. */
HD_MUST_CHECK int hd_item_service_change(const struct hd_item_service *items,
                                         const struct hd_item_change *changes, size_t count);

/* As clients see it. `score`: of a search with a query, NAN when it has none; NULL: no search. */
void hd_item_service_write(const struct hd_item_service *items, struct hd_jw *jw,
                           const struct hd_item_rec *item, const double *score);
/* The namespace of an item without the base. */
struct hd_slice hd_item_service_below(const struct hd_item_service *items, struct hd_slice ns);

struct hd_item_search {
    struct hd_slice prefix; /* labels, joined; empty: all there are */
    hd_json_val filter;     /* checked; or NULL */
    int64_t limit, offset;
    bool refreshes;
    struct hd_slice query; /* empty: none */
    const float *vector;   /* of the query; NULL: there is no index */
};

/*
 * Writes the list of items: with the vector of a query the nearest first, and those without
 * vectors behind them; otherwise the last written first.
 */
HD_MUST_CHECK int hd_item_service_search(const struct hd_item_service *items,
                                         const struct hd_item_search *search, struct hd_jw *jw);

/* Namespaces that begin, or end, with labels; `*` is any one. */
struct hd_ns_match {
    struct hd_item_namespace labels;
    bool is_suffix;
};

struct hd_ns_search {
    const struct hd_ns_match *matches; /* all must */
    size_t match_count;
    int64_t max_depth; /* 0: any */
    int64_t limit, offset;
};

/* Writes the list of lists of labels. */
HD_MUST_CHECK int hd_item_service_namespaces(const struct hd_item_service *items,
                                             const struct hd_ns_search *search, struct hd_jw *jw);

#endif
