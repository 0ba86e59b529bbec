#include "records/thread_roots.h"

#include <heddle.h>
#include <string.h>

#include "graph/engine/ns.h"
#include "records/record.h"
#include "records/thread_heads.h"
#include "store/bytes.h"

#define MAX_READ ((size_t)256 << 20)

bool hd_root_is_assistant(struct hd_slice ns)
{
    return hd_slice_starts(ns, HD_S("assistant:"));
}

static struct hd_slice first_segment(struct hd_slice ns)
{
    const char *bar = ns.len > 0 ? memchr(ns.ptr, '|', ns.len) : NULL;

    return bar ? hd_slice(ns.ptr, (size_t)(bar - ns.ptr)) : ns;
}

/* A run that started at a checkpoint of a subgraph has `parents` too, but its root has a line. */
bool hd_root_is_below_empty(struct hd_slice ns, hd_json_val parents, const struct hd_lines *lines)
{
    return !hd_root_is_assistant(ns) && hd_ns_is_below_empty(ns, parents) &&
           !hd_lines_find(lines, first_segment(ns));
}

int hd_thread_has_empty_root(struct heddle *store, const struct hd_thread_rec *thread, bool *out,
                             struct heddle_error *fault)
{
    int err;

    *out = hd_thread_head_is_set(&thread->head) && thread->head.ns.len == 0;
    if (*out)
        return 0;
    err = hd_thread_heads_check(store, thread->principal, thread->id, HD_S(""), HD_S(""), fault);
    *out = !err;
    return err == HD_ENOTFOUND ? 0 : err;
}

/* Sets *out by the newest checkpoint of `ns`; false without one. */
static int is_below_empty(struct heddle *store, const struct hd_thread_rec *thread,
                          struct hd_slice ns, const struct hd_lines *lines, bool *out,
                          struct heddle_error *fault)
{
    struct heddle_bytes id = hd_to_public(thread->id), wanted = hd_to_public(ns);
    struct heddle_query query = {.principal = hd_to_public(thread->principal),
                                 .thread = &id,
                                 .ns = &wanted,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct hd_json json = {NULL};
    struct heddle_list *list;
    int err = heddle_list_open(store, &query, &list, &error);

    *out = false;
    if (!err) {
        err = heddle_list_next(list, &tuple, &error);
        if (!err && !hd_json_parse(&json, hd_from_public(tuple->metadata), NULL))
            *out = hd_root_is_below_empty(ns, hd_json_get(hd_json_root(&json), HD_S("parents")),
                                          lines);
        hd_json_fini(&json);
        heddle_list_close(list);
    }
    if (err && err != HD_ENOTFOUND)
        return hd_error_set(fault, err, "%s", error.text);
    return 0;
}

int hd_thread_root_of(struct heddle *store, const struct hd_thread_rec *thread, struct hd_slice ns,
                      struct hd_slice *root, struct heddle_error *fault)
{
    struct hd_lines lines;
    struct hd_arena arena;
    bool is_below = false;
    int err;

    *root = first_segment(ns);
    if (ns.len == 0 || hd_root_is_assistant(ns))
        return 0;
    hd_arena_init(&arena, MAX_READ);
    err = hd_lines_read(store, thread, &arena, &lines, fault);
    if (!err)
        err = is_below_empty(store, thread, ns, &lines, &is_below, fault);
    hd_arena_fini(&arena);
    if (!err && is_below)
        *root = hd_slice(ns.ptr, 0);
    return err;
}
