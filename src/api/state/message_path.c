#include "api/state/message_path.h"

#include <stdlib.h>

#include "api/state/message_path_memory.h"
#include "base/alloc.h"

#define MAX_MESSAGES ((size_t)1 << 24)

static bool is_added(const struct hd_message_path *path, size_t at)
{
    struct hd_slice messages_version = path->points[at]->messages_version;

    return at == 0 || messages_version.len == 0 ||
           !hd_slice_eq(messages_version, path->points[at - 1]->messages_version);
}

int hd_message_path_find(struct hd_checkpoint_index *points, struct hd_checkpoint_node *head,
                         struct hd_message_path *path)
{
    struct hd_checkpoint_node *point = head;
    size_t count = 0;

    while (point && count < points->count) {
        point = point->parent;
        count++;
    }
    path->points = hd_arena_calloc(&points->arena, count + 1, sizeof(struct hd_checkpoint_node *));
    path->added = hd_arena_calloc(&points->arena, count + 1, sizeof(struct hd_checkpoint_node *));
    path->added_count = 0;
    if (!path->points || !path->added)
        return HD_ENOMEM;
    path->length = count;
    for (point = head; count > 0; point = point->parent)
        path->points[--count] = point;
    for (size_t i = 0; i < path->length; i++) {
        if (is_added(path, i))
            path->added[path->added_count++] = path->points[i];
    }
    return 0;
}

struct hd_slice hd_message_id(hd_json_val message)
{
    return hd_json_string(hd_json_get(message, HD_S("id")));
}

int hd_message_path_index(struct hd_map *map, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    while (!err && hd_json_next(&it))
        err = hd_map_put(map, hd_message_id(it.val), it.val);
    return err;
}

/* The messages that exist at news[high - 1] of the path and not before news[low]. */
struct path_stretch {
    const struct hd_message_path *path;
    struct hd_message_path_entry *entries;
    size_t count;
    size_t low, high;
};

/* ---- bisection -------------------------------------------------------- */

/* Moves the messages that exist at news[at] to the front; *count: their number. */
static int part(struct hd_call *call, const struct path_stretch *stretch, size_t at, size_t *count)
{
    const struct hd_message_path *path = stretch->path;
    struct hd_json json;
    struct hd_map there;
    int err = hd_checkpoint_index_messages(call, &path->target, path->added[at]->id, &json);

    *count = 0;
    hd_map_init(&there, MAX_MESSAGES);
    if (!err)
        err = hd_message_path_index(&there, hd_json_get(hd_json_root(&json), HD_S("messages")));
    for (size_t i = 0; !err && i < stretch->count; i++) {
        struct hd_message_path_entry entries = stretch->entries[i];

        if (!hd_map_get(&there, hd_message_id(entries.message)))
            continue;
        stretch->entries[i] = stretch->entries[*count];
        stretch->entries[(*count)++] = entries;
    }
    hd_map_fini(&there);
    hd_json_fini(&json);
    return err;
}

typedef int (*locate_fn)(struct hd_call *call, struct path_stretch stretch);

/* Splits into messages added before news[middle], and later ones. */
static int divide(struct hd_call *call, struct path_stretch stretch, size_t middle,
                  locate_fn locate)
{
    struct path_stretch early = stretch, late = stretch;
    size_t count;
    int err = part(call, &stretch, middle - 1, &count);

    if (err)
        return err;
    early.count = count;
    early.high = middle;
    late.entries += count;
    late.count -= count;
    late.low = middle;
    err = locate(call, early);
    return err ? err : locate(call, late);
}

/* The depth of recursion is the logarithm of the path's length. */
static int halve(struct hd_call *call, struct path_stretch stretch)
{
    if (stretch.count == 0)
        return 0;
    if (stretch.high - stretch.low <= 1) {
        for (size_t i = 0; i < stretch.count; i++)
            stretch.entries[i].point = stretch.path->added[stretch.low];
        return 0;
    }
    return divide(call, stretch, stretch.low + (stretch.high - stretch.low) / 2, halve);
}

/* ---- by added messages ------------------------------------------------ */

struct path_search {
    struct hd_call *call;
    const struct path_stretch *stretch;
    struct hd_slice *ids; /* of the path's points, starting before the stretch */
    size_t *found;       /* for each message: the index in `added` of the first point that has it */
    struct hd_map there; /* message ids to elements of `found` */
    size_t *unclear;     /* indices in `added` of states to read */
    size_t unclear_count;
    size_t base; /* index in `added` of ids[0] */
};

static int search_init(struct path_search *search, struct hd_call *call,
                       const struct path_stretch *stretch)
{
    size_t base = stretch->low - (stretch->low > 0), count = stretch->high - base;
    int err = 0;

    *search = (struct path_search){.call = call, .stretch = stretch, .base = base};
    hd_map_init(&search->there, MAX_MESSAGES);
    search->ids = hd_calloc(count, sizeof(*search->ids));
    search->found = hd_calloc(stretch->count, sizeof(*search->found));
    search->unclear = hd_calloc(count, sizeof(*search->unclear));
    if (!search->ids || !search->found || !search->unclear)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++)
        search->ids[i] = stretch->path->added[base + i]->id;
    for (size_t i = 0; !err && i < stretch->count; i++) {
        struct hd_slice id = hd_message_id(stretch->entries[i].message);

        if (hd_map_get(&search->there, id))
            continue;
        /* The last checkpoint has every message. */
        search->found[i] = stretch->high - 1;
        err = hd_map_put(&search->there, id, &search->found[i]);
    }
    return err;
}

static void search_fini(struct path_search *search)
{
    hd_map_fini(&search->there);
    hd_free(search->unclear);
    hd_free(search->found);
    hd_free(search->ids);
}

static void find_in(struct path_search *search, size_t at, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        size_t *found = hd_map_get(&search->there, hd_message_id(it.val));

        if (found && at < *found)
            *found = at;
    }
}

static int on_delta(void *ctx, size_t which, hd_json_val list)
{
    struct path_search *search = ctx;

    if (list)
        find_in(search, search->base + which, list);
    else
        search->unclear[search->unclear_count++] = search->base + which;
    return 0;
}

static int read_delta(struct path_search *search)
{
    const struct path_stretch *stretch = search->stretch;
    const struct hd_state_walk walk = {.ids = search->ids,
                                       .count = stretch->high - search->base,
                                       .known = stretch->low - search->base};

    return hd_checkpoint_index_delta(search->call, &stretch->path->target, &walk, on_delta, search);
}

static size_t last_found(const struct path_search *search)
{
    size_t last = 0;

    for (size_t i = 0; i < search->stretch->count; i++)
        last = search->found[i] > last ? search->found[i] : last;
    return last;
}

/* Reads only states older than the last origin found so far. */
static int read_unclear(struct path_search *search)
{
    const struct hd_message_path *path = search->stretch->path;
    int err = 0;

    for (size_t i = 0; !err && i < search->unclear_count; i++) {
        size_t at = search->unclear[i];
        struct hd_json json = {NULL};

        if (at >= last_found(search))
            break;
        err = hd_checkpoint_index_messages(search->call, &path->target, path->added[at]->id, &json);
        if (!err)
            find_in(search, at, hd_json_get(hd_json_root(&json), HD_S("messages")));
        hd_json_fini(&json);
    }
    return err;
}

static void path_settle(const struct path_search *search)
{
    const struct path_stretch *stretch = search->stretch;

    for (size_t i = 0; i < stretch->count; i++) {
        const size_t *found =
            hd_map_get(&search->there, hd_message_id(stretch->entries[i].message));

        stretch->entries[i].point = stretch->path->added[found ? *found : stretch->high - 1];
    }
}

/* Bisection reads less when many states are unknown. */
static int locate(struct hd_call *call, struct path_stretch stretch)
{
    struct path_search search;
    bool halves = false;
    int err;

    if (stretch.count == 0 || stretch.high - stretch.low <= 1)
        return halve(call, stretch);
    err = search_init(&search, call, &stretch);
    if (!err)
        err = read_delta(&search);
    if (!err) {
        halves = search.unclear_count > stretch.count;
        err = halves ? 0 : read_unclear(&search);
    }
    if (!err && !halves)
        path_settle(&search);
    search_fini(&search);
    return err || !halves ? err : halve(call, stretch);
}

/* ---- cached origins --------------------------------------------------- */

static struct hd_message_path_slot *path_enter(struct hd_call *call,
                                               const struct hd_message_path *path)
{
    const struct hd_thread_rec *thread = &path->target.thread;
    const struct hd_message_path_place place = {thread->principal, thread->id, path->added[0]->ns};

    return hd_message_path_memory_enter(hd_api_message_path_memory(call->api), &place);
}

/* Maps the ids of a path's points to their places in `added`. */
static int index_delta(struct hd_map *map, const struct hd_message_path *path)
{
    int err = 0;

    for (size_t i = 0; !err && i < path->added_count; i++)
        err = hd_map_put(map, path->added[i]->id, &path->added[i]);
    return err;
}

/* Removes the messages with known origins on this path from the stretch. The others probably do not
 * begin before news[*end], the point after the last of these origins. */
static int load_from_memory(struct hd_call *call, struct path_stretch *stretch, size_t *end)
{
    const struct hd_message_path *path = stretch->path;
    const struct hd_message_path_slot *slot = path_enter(call, path);
    struct hd_map added;
    size_t known = 0;
    int err;

    *end = 0;
    hd_map_init(&added, MAX_MESSAGES);
    err = slot ? index_delta(&added, path) : 0;
    for (size_t i = 0; slot && !err && i < stretch->count; i++) {
        struct hd_message_path_entry entries = stretch->entries[i];
        struct hd_slice id = hd_message_path_recall(slot, hd_message_id(entries.message));
        struct hd_checkpoint_node **at = id.len > 0 ? hd_map_get(&added, id) : NULL;

        if (!at)
            continue;
        entries.point = *at;
        stretch->entries[i] = stretch->entries[known];
        stretch->entries[known++] = entries;
        if ((size_t)(at - path->added) >= *end)
            *end = (size_t)(at - path->added) + 1;
    }
    hd_message_path_memory_leave(hd_api_message_path_memory(call->api));
    hd_map_fini(&added);
    stretch->entries += known;
    stretch->count -= known;
    return err;
}

static void remember(struct hd_call *call, const struct path_stretch *stretch)
{
    struct hd_message_path_slot *slot = path_enter(call, stretch->path);

    for (size_t i = 0; i < stretch->count; i++)
        hd_message_path_remember(slot, hd_message_id(stretch->entries[i].message),
                                 stretch->entries[i].point->id);
    hd_message_path_memory_leave(hd_api_message_path_memory(call->api));
}

static int locate_all(struct hd_call *call, struct path_stretch stretch)
{
    size_t end;
    int err = load_from_memory(call, &stretch, &end);

    if (err || stretch.count == 0)
        return err;
    if (end > 0 && end < stretch.high)
        err = divide(call, stretch, end, locate);
    else
        err = locate(call, stretch);
    if (!err)
        remember(call, &stretch);
    return err;
}

int hd_message_path_locate(struct hd_call *call, struct hd_message_path_entry *entries,
                           size_t count)
{
    size_t begin = 0;
    int err = 0;

    for (size_t i = 1; !err && i <= count; i++) {
        if (i < count && entries[i].path == entries[begin].path)
            continue;
        err = locate_all(call, (struct path_stretch){.path = entries[begin].path,
                                                     .entries = &entries[begin],
                                                     .count = i - begin,
                                                     .high = entries[begin].path->added_count});
        begin = i;
    }
    return err;
}

static int path_compare(const void *a, const void *b)
{
    const struct hd_message_path_entry *one = a, *other = b;

    if (one->point != other->point)
        return one->point < other->point ? -1 : 1; /* both are elements of one list */
    return one->position < other->position ? -1 : one->position > other->position;
}

void hd_message_path_sort(struct hd_message_path_entry *entries, size_t count)
{
    if (count > 0)
        qsort(entries, count, sizeof(*entries), path_compare);
}
