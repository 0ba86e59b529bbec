/*
 * The origins of the messages on the path to a checkpoint, and their alternatives: a client needs
 * them to edit, retry and switch branches without reading the history.
 *
 * A turn begins with a checkpoint of source "input", which does not have the message yet; its child
 * is the first that has it. Clients fork a turn either from the checkpoint before the input, or
 * from the input itself, which a run then replaces by its own input. So adjacent inputs form one
 * group, and all inputs of a group that were continued are alternatives of each other. A group
 * begins after the nearest ancestor that is no input, where a new alternative is forked, or at the
 * start of the thread. A message that was added by an update, or whose input was pruned, begins its
 * turn itself.
 */
#include <heddle.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/state/checkpoint_index.h"
#include "api/state/checkpoint_target.h"
#include "api/state/message_path.h"
#include "api/state/message_senders.h"
#include "base/alloc.h"

#define MAX_MESSAGES ((size_t)1 << 24)

enum turn { TURN_UNKNOWN, TURN_YES, TURN_NO };

/* Facts about a checkpoint. */
struct origin_note {
    struct hd_checkpoint_node *leaf; /* the newest leaf below it; NULL: unknown */
    size_t waiting;                  /* children whose leaves are unknown */
    size_t seen;                     /* the number of the last group that visited it */
    enum turn turn;                  /* whether it begins a turn although it is no input */
};

struct origins {
    struct hd_call *call;
    struct hd_message_path path;
    struct hd_checkpoint_index points;
    struct hd_json values; /* at the head of the path */
    struct hd_message_path_entry *entries;
    size_t count;
    struct origin_note *notes;          /* of each point */
    struct hd_checkpoint_node **stack;  /* room for all points */
    struct hd_checkpoint_node **others; /* likewise: the alternatives of one turn */
    size_t other_count;
    size_t groups;
};

static struct origin_note *note_of(const struct origins *origins,
                                   const struct hd_checkpoint_node *point)
{
    return &origins->notes[point - origins->points.list];
}

static bool is_input(const struct hd_checkpoint_node *point)
{
    return hd_slice_eq(point->source, HD_S("input"));
}

static bool is_update(const struct hd_checkpoint_node *point)
{
    return hd_slice_eq(point->source, HD_S("update"));
}

static bool is_human(hd_json_val message)
{
    return hd_slice_eq(hd_json_string(hd_json_get(message, HD_S("type"))), HD_S("human"));
}

/* ---- leaves ----------------------------------------------------------- */

static void keep_newer(struct hd_checkpoint_node **leaf, struct hd_checkpoint_node *other)
{
    /* Points are in the order of their ids. */
    if (!*leaf || other > *leaf)
        *leaf = other;
}

/* From the leaves upwards; cycles of a damaged tree are never reached. */
static void find_leaves(struct origins *origins)
{
    struct hd_checkpoint_index *points = &origins->points;
    size_t count = 0;

    for (size_t i = 0; i < points->count; i++) {
        origins->notes[i].waiting = points->list[i].children;
        if (points->list[i].children == 0)
            origins->stack[count++] = &points->list[i];
    }
    while (count > 0) {
        struct hd_checkpoint_node *point = origins->stack[--count], *parent = point->parent;
        struct origin_note *note = note_of(origins, point);

        if (!note->leaf)
            note->leaf = point;
        if (!parent)
            continue;
        keep_newer(&note_of(origins, parent)->leaf, note->leaf);
        if (--note_of(origins, parent)->waiting == 0)
            origins->stack[count++] = parent;
    }
}

/* The newest leaf of an alternative that does not belong to another alternative of its group. */
static struct hd_checkpoint_node *leaf_of(const struct origins *origins,
                                          struct hd_checkpoint_node *point)
{
    struct hd_checkpoint_node *leaf = NULL;

    if (!is_input(point))
        return note_of(origins, point)->leaf ? note_of(origins, point)->leaf : point;
    for (struct hd_checkpoint_node *child = point->child; child; child = child->older) {
        const struct origin_note *note = note_of(origins, child);

        if (!is_input(child) && note->turn != TURN_YES && note->leaf)
            keep_newer(&leaf, note->leaf);
    }
    return leaf ? leaf : point;
}

/* ---- turns ------------------------------------------------------------ */

static int has_new_human(hd_json_val list, hd_json_val before, bool *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_map map;
    int err;

    *out = false;
    hd_map_init(&map, MAX_MESSAGES);
    err = hd_message_path_index(&map, before);
    while (!err && !*out && hd_json_next(&it))
        *out = is_human(it.val) && !hd_map_get(&map, hd_message_id(it.val));
    hd_map_fini(&map);
    return err;
}

static int compare_states(struct origins *origins, const struct hd_checkpoint_node *point,
                          bool *out)
{
    const struct hd_checkpoint_target *target = &origins->path.target;
    struct hd_json now, before = {NULL};
    int err = hd_checkpoint_index_messages(origins->call, target, point->id, &now);

    if (!err)
        err = hd_checkpoint_index_messages(origins->call, target, point->parent->id, &before);
    if (!err)
        err = has_new_human(hd_json_get(hd_json_root(&now), HD_S("messages")),
                            hd_json_get(hd_json_root(&before), HD_S("messages")), out);
    hd_json_fini(&before);
    hd_json_fini(&now);
    return err;
}

/* True when a point, which is no input and has a parent, added a human message. */
static int find_turn(struct origins *origins, const struct hd_checkpoint_node *point, bool *out)
{
    struct origin_note *note = note_of(origins, point);
    bool may_be = is_update(point) ||
                  (!is_input(point->parent) && !hd_slice_eq(point->run_id, point->parent->run_id));
    int err = 0;

    *out = false;
    if (note->turn == TURN_UNKNOWN && may_be) {
        err = compare_states(origins, point, out);
        note->turn = *out ? TURN_YES : TURN_NO;
    }
    *out = note->turn == TURN_YES;
    return err;
}

/* The start of a human message's turn; NULL: a node added it during a run. */
static struct hd_checkpoint_node *find_start(const struct origins *origins,
                                             struct hd_checkpoint_node *first)
{
    struct hd_checkpoint_node *parent = first->parent;

    if (!is_input(first) && !is_update(first) && parent) {
        if (is_input(parent))
            return parent;
        if (hd_slice_eq(first->run_id, parent->run_id))
            return NULL;
    }
    if (!is_input(first))
        note_of(origins, first)->turn = TURN_YES;
    return first;
}

/* The first point of the group that a start belongs to. */
static struct hd_checkpoint_node *find_top(const struct origins *origins,
                                           struct hd_checkpoint_node *start)
{
    struct hd_checkpoint_node *top = start;

    for (size_t i = 0; i < origins->points.count && top->parent && is_input(top->parent); i++)
        top = top->parent;
    return top;
}

/* ---- alternatives ----------------------------------------------------- */

/* Visits the children of a point: pushes inputs to the stack; *continues: a child continues its
 * turn. */
static int look_below(struct origins *origins, const struct hd_checkpoint_node *point,
                      size_t *depth, bool *continues)
{
    *continues = false;
    for (struct hd_checkpoint_node *child = point->child; child; child = child->older) {
        struct origin_note *note = note_of(origins, child);
        bool is_turn = false;
        int err = 0;

        if (note->seen == origins->groups)
            continue;
        note->seen = origins->groups;
        if (is_input(child)) {
            origins->stack[(*depth)++] = child;
            continue;
        }
        err = find_turn(origins, child, &is_turn);
        if (err)
            return err;
        if (is_turn)
            origins->others[origins->other_count++] = child;
        *continues |= !is_turn;
    }
    return 0;
}

static int compare_points(const void *a, const void *b)
{
    const struct hd_checkpoint_node *one = *(struct hd_checkpoint_node *const *)a,
                                    *other = *(struct hd_checkpoint_node *const *)b;

    return one < other ? -1 : one > other;
}

/* Finds all starts of the group that begins with `top`, except those that were not continued. */
static int find_others(struct origins *origins, struct hd_checkpoint_node *top,
                       const struct hd_checkpoint_node *start)
{
    size_t depth = 0;
    bool continues;
    int err = 0;

    origins->other_count = 0;
    origins->groups++;
    if (top->parent) {
        err = look_below(origins, top->parent, &depth, &continues);
    } else {
        note_of(origins, top)->seen = origins->groups;
        origins->stack[depth++] = top;
    }
    while (!err && depth > 0) {
        struct hd_checkpoint_node *point = origins->stack[--depth];

        if (!is_input(point)) {
            origins->others[origins->other_count++] = point;
            continue;
        }
        err = look_below(origins, point, &depth, &continues);
        if (!err && (continues || point == start))
            origins->others[origins->other_count++] = point;
    }
    if (!err && origins->other_count > 1)
        qsort(origins->others, origins->other_count, sizeof(struct hd_checkpoint_node *),
              compare_points);
    return err;
}

/* ---- the response ----------------------------------------------------- */

static void put_others(struct origins *origins, const struct hd_checkpoint_node *start)
{
    struct hd_jw *jw = &origins->call->jw;

    for (size_t i = 0; i < origins->other_count; i++) {
        struct hd_checkpoint_node *other = origins->others[i];

        hd_jw_object(jw);
        hd_jw_put_string_or_null(jw, "branch_id", other->id);
        hd_jw_put_string_or_null(jw, "head_checkpoint_id", leaf_of(origins, other)->id);
        hd_jw_put_string_or_null(jw, "created_at", other->created_at);
        hd_jw_put_bool(jw, "current", other == start);
        hd_jw_object_end(jw);
    }
}

static int put_entry(struct origins *origins, const struct hd_message_path_entry *entry,
                     const struct hd_message_sender *sender)
{
    struct hd_jw *jw = &origins->call->jw;
    struct hd_checkpoint_node *start = NULL, *top = NULL, *fork = NULL;
    int err = 0;

    /* A message of an agent to its delegate is retried by a retry of the agent. */
    if (is_human(entry->message) && entry->point->task_id.len == 0)
        start = find_start(origins, entry->point);
    if (start) {
        top = find_top(origins, start);
        fork = top->parent || !is_input(top) ? top->parent : top;
        err = find_others(origins, top, start);
    }
    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "id", hd_message_id(entry->message));
    hd_jw_put_string_or_null(jw, "type", hd_json_string(hd_json_get(entry->message, HD_S("type"))));
    hd_jw_put_string_or_null(jw, "checkpoint_id", entry->point->id);
    hd_jw_put_string_or_null(jw, "run_id", entry->point->run_id);
    hd_jw_put_string_or_null(jw, "created_at", entry->point->created_at);
    hd_message_senders_put(jw, sender);
    hd_jw_put_bool(jw, "delegated", sender->is_delegated);
    hd_jw_put_string_or_null(jw, "fork_checkpoint_id", fork ? fork->id : hd_slice(NULL, 0));
    hd_jw_put_array(jw, "alternatives");
    if (start && !err)
        put_others(origins, start);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    return err;
}

static int origins_show(struct origins *origins)
{
    const struct hd_message_path *path = &origins->path;
    struct hd_jw *jw = &origins->call->jw;
    struct hd_arena *arena = origins->call->arena;
    struct hd_message_sender *senders =
        hd_arena_calloc(arena, origins->count + 1, sizeof(*senders));
    int err = senders ? hd_message_senders_find(origins->call, &path->target.thread,
                                                origins->entries, origins->count, arena, senders)
                      : HD_ENOMEM;

    if (err)
        return err;
    hd_jw_object(jw);
    hd_jw_put_string_or_null(jw, "thread_id", path->target.thread.id);
    hd_jw_put_string_or_null(jw, "assistant_id", path->target.assistant_id);
    hd_checkpoint_target_put_ns(origins->call, &path->target);
    hd_jw_put_string_or_null(jw, "checkpoint_id",
                             path->length > 0 ? path->points[path->length - 1]->id
                                              : hd_slice(NULL, 0));
    hd_jw_put_array(jw, "messages");
    for (size_t i = 0; !err && i < origins->count; i++)
        err = put_entry(origins, &origins->entries[i], &senders[i]);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    return err ? err : jw->err;
}

/* ---- reading ---------------------------------------------------------- */

static int make_origins_room(struct origins *origins)
{
    struct hd_arena *arena = &origins->points.arena;
    size_t count = origins->points.count + 1;

    origins->notes = hd_arena_calloc(arena, count, sizeof(*origins->notes));
    origins->stack = hd_arena_calloc(arena, count, sizeof(struct hd_checkpoint_node *));
    origins->others = hd_arena_calloc(arena, count, sizeof(struct hd_checkpoint_node *));
    return origins->notes && origins->stack && origins->others ? 0 : HD_ENOMEM;
}

static int find_way(struct origins *origins)
{
    struct hd_checkpoint_target *target = &origins->path.target;
    struct hd_checkpoint_node *head;
    struct hd_slice ns;
    int err = hd_checkpoint_target_ns(origins->call, target, &ns);

    if (!err)
        err = hd_checkpoint_index_read(origins->call, target->thread.id, &ns, &origins->points);
    if (err)
        return err;
    head = hd_checkpoint_index_find(&origins->points, ns,
                                    target->checkpoint_id.len > 0 ? target->checkpoint_id
                                                                  : target->chosen);
    if (!head && target->checkpoint_id.len > 0)
        return hd_error_set(&origins->call->fault, HD_ENOTFOUND, "Checkpoint not found");
    return hd_message_path_find(&origins->points, head, &origins->path);
}

/* Locating reorders the messages; restores the order of the list. */
static int order_entries(struct origins *origins, const struct hd_message_path_entry *located)
{
    origins->entries = hd_arena_calloc(&origins->points.arena, origins->count, sizeof(*located));
    for (size_t i = 0; origins->entries && i < origins->count; i++)
        origins->entries[located[i].position] = located[i];
    return origins->entries ? 0 : HD_ENOMEM;
}

static int locate_messages(struct origins *origins)
{
    const struct hd_message_path *path = &origins->path;
    struct hd_json_iter it;
    struct hd_message_path_entry *entries;
    hd_json_val list;
    int err = hd_checkpoint_index_messages(origins->call, &path->target,
                                           path->points[path->length - 1]->id, &origins->values);

    list = hd_json_get(hd_json_root(&origins->values), HD_S("messages"));
    if (err || !hd_json_is_array(list) || hd_json_size(list) == 0)
        return err;
    entries = hd_calloc(hd_json_size(list), sizeof(*entries));
    if (!entries)
        return HD_ENOMEM;
    it = hd_json_iter(list);
    for (; hd_json_next(&it); origins->count++)
        entries[origins->count] = (struct hd_message_path_entry){
            .path = path, .message = it.val, .position = origins->count};
    err = hd_message_path_locate(origins->call, entries, origins->count);
    if (!err)
        err = order_entries(origins, entries);
    hd_free(entries);
    return err;
}

static int origins_make(struct origins *origins)
{
    const struct hd_checkpoint_target *target = &origins->path.target;
    int err = 0;

    if (target->has_root)
        err = find_way(origins);
    else if (target->checkpoint_id.len > 0)
        err = hd_error_set(&origins->call->fault, HD_ENOTFOUND, "Checkpoint not found");
    if (!err && origins->path.length > 0)
        err = hd_checkpoint_target_check_graph(origins->call, target);
    if (!err && origins->path.length > 0 && target->graph)
        err = locate_messages(origins);
    if (!err && origins->count > 0)
        err = make_origins_room(origins);
    if (!err && origins->count > 0)
        find_leaves(origins);
    return err ? err : origins_show(origins);
}

static struct hd_step get_messages(struct hd_call *call)
{
    struct origins origins = {.call = call};
    int err = hd_checkpoint_target_of_query(call, &origins.path.target);

    if (err)
        return hd_step_fail(err);
    hd_params_get(&call->query, HD_S("checkpoint_id"), &origins.path.target.checkpoint_id);
    err = origins_make(&origins);
    hd_json_fini(&origins.values);
    hd_checkpoint_index_fini(&origins.points);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/messages",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_messages,
     .tag = "Threads",
     .summary = "List the origins of a state's messages and their alternatives",
     .query = "checkpoint_ns assistant_id checkpoint_id",
     .answer = "MessageOrigins"},
};

const struct hd_routes hd_routes_message_origins = {routes, HD_COUNT(routes)};
