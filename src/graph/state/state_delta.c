/*
 * Reports the elements that each checkpoint added to a list of the state. The value of a channel
 * equals its stored value, unless the reducer stores another form, a pending write belongs to no
 * task, or the value is not a list.
 */
#include <heddle.h>

#include "base/alloc.h"
#include "graph/state/state_internal.h"
#include "store/codec/canon.h"
#include "store/list_history.h"

#define MAX_TEXT ((size_t)1 << 30)

struct delta {
    hd_state_delta_fn fn;
    void *ctx;
    struct hd_buf stored, shown; /* of one checkpoint */
};

/* ---- a checkpoint ----------------------------------------------------- */

static int show(struct delta *delta, struct hd_slice elements, struct hd_json *out)
{
    int err = hd_buf_append_byte(&delta->stored, '[');

    if (!err)
        err = hd_buf_append_slice(&delta->stored, elements);
    if (!err)
        err = hd_buf_append_byte(&delta->stored, ']');
    if (!err)
        err = hd_canon_render(&delta->shown, hd_buf_slice(&delta->stored), NULL);
    return err ? err : hd_json_parse(out, hd_buf_slice(&delta->shown), NULL);
}

static int on_delta(void *arg, size_t which, const struct hd_slice *elements)
{
    struct delta *delta = arg;
    struct hd_json json = {NULL};
    int err = 0;

    if (!elements)
        return delta->fn(delta->ctx, which, NULL);
    hd_buf_reset(&delta->stored);
    hd_buf_reset(&delta->shown);
    err = show(delta, *elements, &json);
    /* Invalid JSON: not a list in canonical encoding, so unknown. */
    if (!err || err == HD_EINVAL)
        err = delta->fn(delta->ctx, which, err ? NULL : hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

/* ---- all checkpoints -------------------------------------------------- */

static bool shows_stored(const struct hd_graph *graph, struct hd_slice name)
{
    for (size_t i = 0; i < graph->state_count && !graph->is_open && !graph->is_single; i++) {
        if (hd_slice_eq(graph->channels[i].name, name))
            return hd_reducer_shows_stored(graph->channels[i].reducer);
    }
    return false;
}

static int report_nothing(const struct hd_state_walk *walk, hd_state_delta_fn fn, void *ctx)
{
    int err = 0;

    for (size_t i = walk->known; !err && i < walk->count; i++)
        err = fn(ctx, i, NULL);
    return err;
}

static int send_delta(const struct hd_address *at, const char *place,
                      const struct hd_state_walk *walk, struct delta *delta,
                      struct heddle_error *fault)
{
    const struct hd_list_history history = {
        .thread = {{at->principal.ptr, at->principal.len}, {at->thread.ptr, at->thread.len}},
        .ns = hd_slice_cstr(place),
        .channel = at->only,
        .task = HD_S(HD_NULL_TASK),
        .ids = walk->ids,
        .count = walk->count,
        .known = walk->known};
    int err;

    hd_buf_init(&delta->stored, MAX_TEXT);
    hd_buf_init(&delta->shown, MAX_TEXT);
    err = hd_list_history_walk(at->store, &history, on_delta, delta, fault);
    hd_buf_fini(&delta->shown);
    hd_buf_fini(&delta->stored);
    return err;
}

int hd_state_delta(const struct hd_address *at, const struct hd_state_walk *walk,
                   hd_state_delta_fn fn, void *ctx, struct hd_failure *failure)
{
    struct delta delta = {.fn = fn, .ctx = ctx};
    struct heddle_error fault = {0};
    struct hd_found found;
    int err = hd_found_init(&found, at, failure);

    if (err)
        return err;
    if (shows_stored(found.graph, at->only))
        err = send_delta(at, found.place, walk, &delta, &fault);
    else
        err = report_nothing(walk, fn, ctx);
    if (err)
        hd_failure_code(failure, err, &fault);
    hd_found_fini(&found);
    return err;
}
