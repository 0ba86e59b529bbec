#include "api/state/checkpoint_index.h"

#include <heddle.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/engine/failure.h"
#include "graph/engine/ns.h"
#include "graph/engine/run.h"
#include "graph/state/state.h"
#include "records/line.h"
#include "records/thread_roots.h"
#include "store/bytes.h"

#define MAX_POINTS ((size_t)4 << 30) /* bytes of the index */
#define MAX_VALUES ((size_t)1 << 30)

/* ---- reading ---------------------------------------------------------- */

static struct hd_checkpoint_node *push(struct hd_checkpoint_index *points)
{
    if (points->count == points->cap) {
        size_t cap = points->cap ? points->cap * 2 : 64;
        struct hd_checkpoint_node *grown = hd_realloc(points->list, cap * sizeof(*grown));

        if (!grown)
            return NULL;
        points->list = grown;
        points->cap = cap;
    }
    points->list[points->count] = (struct hd_checkpoint_node){.parent = NULL};
    return &points->list[points->count++];
}

static int index_take(struct hd_checkpoint_index *points, hd_json_val object, const char *name,
                      struct hd_slice *out)
{
    struct hd_slice text = hd_json_string(hd_json_get(object, hd_slice_cstr(name)));

    return text.len > 0 ? hd_arena_copy(&points->arena, text, out) : 0;
}

static int take_metadata(struct hd_checkpoint_index *points, struct hd_checkpoint_node *point,
                         struct hd_slice text)
{
    struct hd_json json = {NULL};
    hd_json_val root;
    int err = hd_json_parse(&json, text, NULL);

    root = hd_json_root(&json);
    if (!err)
        err = index_take(points, root, "source", &point->source);
    if (!err)
        err = index_take(points, root, "run_id", &point->run_id);
    if (!err)
        err = index_take(points, root, "graph_id", &point->graph_id);
    if (!err)
        err = index_take(points, root, "assistant_id", &point->assistant_id);
    if (!err)
        err = index_take(points, root, HD_META_TASK, &point->task_id);
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_ECORRUPT : err;
}

/*
 * A channel with the same version in two checkpoints has the same value. Checkpoints that are not
 * JSON have neither versions nor times.
 */
static int take_checkpoint(struct hd_checkpoint_index *points, struct hd_checkpoint_node *point,
                           struct hd_slice text)
{
    struct hd_json json = {NULL};
    hd_json_val root, messages_version;
    int err = hd_json_parse(&json, text, NULL);

    root = hd_json_root(&json);
    messages_version = hd_json_get(hd_json_get(root, HD_S("channel_versions")), HD_S("messages"));
    if (!err)
        err = index_take(points, root, "ts", &point->created_at);
    if (!err && messages_version)
        err = hd_arena_copy(&points->arena,
                            hd_json_is_string(messages_version)
                                ? hd_json_string(messages_version)
                                : hd_json_number_text(messages_version),
                            &point->messages_version);
    hd_json_fini(&json);
    return err == HD_EINVAL ? 0 : err;
}

static int index_add(struct hd_checkpoint_index *points, const struct heddle_tuple *tuple)
{
    struct hd_checkpoint_node *point = push(points);
    int err =
        point ? hd_arena_copy(&points->arena, hd_from_public(tuple->ns), &point->ns) : HD_ENOMEM;

    if (!err)
        err = hd_arena_copy(&points->arena, hd_from_public(tuple->id), &point->id);
    if (!err && tuple->parent.len > 0)
        err = hd_arena_copy(&points->arena, hd_from_public(tuple->parent), &point->parent_id);
    if (!err)
        err = take_metadata(points, point, hd_from_public(tuple->metadata));
    return err ? err : take_checkpoint(points, point, hd_from_public(tuple->checkpoint));
}

/* Selects the root namespaces. The lines are read when a namespace needs them. */
struct root_filter {
    struct hd_call *call;
    struct hd_slice thread_id;
    struct hd_lines lines;
    bool has_lines;
};

static int read_lines(struct root_filter *filter)
{
    const struct hd_thread_rec thread = {.principal = filter->call->principal,
                                         .id = filter->thread_id};

    if (filter->has_lines)
        return 0;
    filter->has_lines = true;
    return hd_lines_read(filter->call->app->store, &thread, filter->call->arena, &filter->lines,
                         &filter->call->fault);
}

static int is_root_tuple(struct root_filter *filter, const struct heddle_tuple *tuple, bool *out)
{
    struct hd_slice ns = hd_from_public(tuple->ns);
    struct hd_json json = {NULL};
    int err;

    *out = hd_ns_is_root(ns);
    if (!*out || ns.len == 0 || hd_root_is_assistant(ns))
        return 0;
    err = read_lines(filter);
    if (!err && !hd_json_parse(&json, hd_from_public(tuple->metadata), NULL))
        *out = !hd_root_is_below_empty(ns, hd_json_get(hd_json_root(&json), HD_S("parents")),
                                       &filter->lines);
    hd_json_fini(&json);
    return err;
}

static int list(struct hd_call *call, struct hd_slice thread_id, const struct hd_slice *ns,
                struct hd_checkpoint_index *points)
{
    struct heddle_bytes thread = hd_to_public(thread_id), wanted = {NULL, 0};
    struct heddle_query query = {.principal = hd_to_public(call->principal),
                                 .thread = &thread,
                                 .ns = ns ? &wanted : NULL,
                                 .limit = -1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct heddle_list *found;
    struct root_filter filter = {.call = call, .thread_id = thread_id};
    bool is_wanted = true;
    int err;

    if (ns)
        wanted = hd_to_public(*ns);
    err = heddle_list_open(call->app->store, &query, &found, &error);
    if (err)
        return hd_error_set(&call->fault, err, "%s", error.text);
    while (!err) {
        err = heddle_list_next(found, &tuple, &error);
        if (err && err != HD_ENOTFOUND)
            hd_error_set(&call->fault, err, "%s", error.text);
        if (!err && !ns)
            err = is_root_tuple(&filter, tuple, &is_wanted);
        if (!err && is_wanted)
            err = index_add(points, tuple);
    }
    heddle_list_close(found);
    return err == HD_ENOTFOUND ? 0 : err;
}

static void reverse(struct hd_checkpoint_index *points)
{
    for (size_t i = 0; i < points->count / 2; i++) {
        struct hd_checkpoint_node other = points->list[points->count - 1 - i];

        points->list[points->count - 1 - i] = points->list[i];
        points->list[i] = other;
    }
}

struct hd_checkpoint_node *hd_checkpoint_index_find(const struct hd_checkpoint_index *points,
                                                    struct hd_slice ns, struct hd_slice id)
{
    size_t low = 0, high = points->count;

    if (id.len == 0) {
        while (high > 0 && !hd_slice_eq(points->list[high - 1].ns, ns))
            high--;
        return high > 0 ? &points->list[high - 1] : NULL;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (hd_slice_cmp(points->list[points->by_id[middle]].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < points->count; low++) {
        struct hd_checkpoint_node *point = &points->list[points->by_id[low]];

        if (!hd_slice_eq(point->id, id))
            break;
        if (hd_slice_eq(point->ns, ns))
            return point;
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b, void *arg)
{
    const struct hd_checkpoint_index *points = arg;
    const size_t *one = a, *other = b;

    return hd_slice_cmp(points->list[*one].id, points->list[*other].id);
}

static int index_ids(struct hd_checkpoint_index *points)
{
    points->by_id = hd_arena_calloc(&points->arena, points->count + 1, sizeof(*points->by_id));
    if (!points->by_id)
        return HD_ENOMEM;
    for (size_t i = 0; i < points->count; i++)
        points->by_id[i] = i;
    qsort_r(points->by_id, points->count, sizeof(*points->by_id), compare_ids, points);
    return 0;
}

static void link_parents(struct hd_checkpoint_index *points)
{
    for (size_t i = 0; i < points->count; i++) {
        struct hd_checkpoint_node *point = &points->list[i];

        if (point->parent_id.len == 0)
            continue;
        point->parent = hd_checkpoint_index_find(points, point->ns, point->parent_id);
        if (!point->parent)
            continue;
        point->parent->children++;
        point->older = point->parent->child;
        point->parent->child = point;
    }
}

int hd_checkpoint_index_read(struct hd_call *call, struct hd_slice thread_id,
                             const struct hd_slice *ns, struct hd_checkpoint_index *out)
{
    int err;

    *out = (struct hd_checkpoint_index){.list = NULL};
    hd_arena_init(&out->arena, MAX_POINTS);
    err = list(call, thread_id, ns, out);
    if (err)
        return err;
    reverse(out);
    err = index_ids(out);
    if (!err)
        link_parents(out);
    return err;
}

void hd_checkpoint_index_fini(struct hd_checkpoint_index *points)
{
    hd_free(points->list);
    hd_arena_fini(&points->arena);
    *points = (struct hd_checkpoint_index){.list = NULL};
}

/* ---- values of checkpoints -------------------------------------------- */

int hd_checkpoint_index_messages(struct hd_call *call, const struct hd_checkpoint_target *target,
                                 struct hd_slice id, struct hd_json *json)
{
    struct hd_address at = hd_checkpoint_target_address(call, target, id);
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf buf;
    int err;

    *json = (struct hd_json){NULL};
    at.only = HD_S("messages");
    hd_buf_init(&buf, MAX_VALUES);
    err = hd_call_failure(call, hd_state_values(&at, &buf, &failure), &failure);
    if (!err)
        err = hd_json_parse(json, hd_buf_slice(&buf), &call->fault);
    hd_buf_fini(&buf);
    return err;
}

int hd_checkpoint_index_delta(struct hd_call *call, const struct hd_checkpoint_target *target,
                              const struct hd_state_walk *walk, hd_state_delta_fn fn, void *ctx)
{
    struct hd_address at = hd_checkpoint_target_address(call, target, hd_slice(NULL, 0));
    struct hd_failure failure = {NULL, NULL};

    at.only = HD_S("messages");
    return hd_call_failure(call, hd_state_delta(&at, walk, fn, ctx, &failure), &failure);
}
